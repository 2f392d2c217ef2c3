"""Σ k(x', z') over the parts x' of x and z' of z: a kernel on parts gives a kernel on objects (Haussler's convolution).

An object is a bag of parts: the points of a cloud, the words of a text, the atoms of a molecule. With the features phi
of the kernel on parts, Σ k(x', z') is the inner product of Σ phi(x') and Σ phi(z'), and their means give the mean of k.
All parts of all objects form one data set, whose Gram matrix is computed in tiles and added up by owners.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import memory
from mercer.data.objects import objects_of
from mercer.data.points import Array, Points, length, nbytes
from mercer.data.ragged import entries_of
from mercer.errors import InvalidInput
from mercer.kernels import costs, tiling
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.nodes import Unary, inside
from mercer.kernels.algebra.parameters import Same, show
from mercer.kernels.algebra.proof import CONVOLUTION, Proof
from mercer.kernels.algebra.rowwise import same_parts, some_rows
from mercer.kernels.base import ATOM, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.spaces import ANY
from mercer.threads import spans

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


@dataclass(frozen=True, eq=False)
class Bags:
    """The parts of all objects, one after the other.

    Attributes
    ----------
    points : Points or None
        All parts as one data set; None if there are none.
    ends : array
        Object i has the parts ends[i] … ends[i + 1] − 1.
    """

    points: Points | None
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, bags: list[Any]) -> Bags:
        """Parts given object by object."""
        ends = np.concatenate([[0], np.cumsum([length(bag) for bag in bags], dtype=np.int64)])
        return cls(None if ends[-1] == 0 else Points(_joined(bags)), ends)

    @property
    def nbytes(self) -> int:
        """The bytes of the parts."""
        return self.ends.nbytes + (0 if self.points is None else nbytes(self.points))

    def encoded_rows(self, index: Any) -> Bags:
        """The parts of the objects at these positions."""
        at, ends = entries_of(self.ends, index)
        return Bags(None if self.points is None or not len(at) else self.points.take(at), ends)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The object of every part."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def weights(self, *, mean: bool) -> NDArray[np.float64]:
        """The weight of every part: 1, or one over the number of parts of its object."""
        sizes = np.diff(self.ends)
        return np.repeat(1.0 / np.maximum(sizes, 1) if mean else np.ones(len(sizes)), sizes)


def _joined(bags: list[Any]) -> Any:
    """All parts as one data set: a matrix if all bags are matrices, else a list."""
    full = [bag for bag in bags if length(bag)]
    if all(sp.issparse(bag) for bag in full):
        return sp.vstack(full, format="csr")
    if all(isinstance(bag, np.ndarray) and bag.ndim == 2 for bag in full):
        widths = {bag.shape[1] for bag in full}
        if len(widths) > 1:
            at = next(i for i, bag in enumerate(bags) if length(bag) and bag.shape[1] != full[0].shape[1])
            raise InvalidInput(
                "The parts of all objects must have the same number of columns",
                got=f"{full[0].shape[1]}, and {bags[at].shape[1]} in object {at}",
                advice="Compute the same features for every part.",
            )
        return np.concatenate(full)
    return [part for bag in full for part in bag]


class OverParts(Unary):
    """The sum or the mean of a kernel over all pairs of parts of two objects."""

    @property
    @abstractmethod
    def averaged(self) -> bool:
        """Whether it is the mean."""

    @abstractmethod
    def split(self, X: Any) -> list[Any]:
        """The parts of every object, as a data set each."""

    @property
    def state(self) -> Hashable:
        """A value that changes when `split` would give something else."""
        return None

    @property
    def division(self) -> Hashable:
        """The key of the split: nodes with the same key share the parts."""
        return type(self)

    def bags(self, points: Points) -> Bags:
        """All parts of the objects, made once."""

        def make() -> Bags:
            bags = Bags.of(self.split(points.raw))
            if self.averaged and (empty := np.flatnonzero(np.diff(bags.ends) == 0)).size:
                raise InvalidInput(
                    "An object must have at least one part, so that a mean over its parts exists",
                    got=f"none in object {empty[0]}",
                    advice="Leave empty objects out, or take the sum, k.over(parts).",
                )
            return bags

        return points.current(("parts", self.division), self.state, make)

    def inside(self, pair: Pair) -> tuple[Pair | None, Bags, Bags]:
        """The pair of all parts, and to which objects they belong."""

        def make() -> tuple[Pair | None, Bags, Bags]:
            x = self.bags(pair.x)
            z = x if pair.same else self.bags(pair.z)
            if x.points is None or z.points is None:
                return None, x, z
            return Pair(x.points, None if pair.same else z.points, pair.dtype, shared=pair.shared), x, z

        return pair.once(("parts", self.division, self.state), make)

    def seen_by_parts(self, points: Points) -> Points:
        return self.bags(points).points or points

    def touch(self, points: Points) -> None:
        parts = self.bags(points).points
        if parts is not None:
            self.inner.touch(parts)

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        parts = self.bags(points).points
        return np.dtype(np.float64) if parts is None else self.inner.dtype_of(parts)

    # -- values ---------------------------------------------------------------------------------------------------

    def _tiles(self, block: Block) -> Iterator[tuple[Block, tuple[Array, Array], tuple[Array, Array]]]:
        """Tiles of parts, each with the objects (from the first of the block on) and the weights of both sides."""
        pair, x, z = self.inside(block.pair)
        if pair is None:
            return
        sides = []
        for bags, span, size in ((x, block.rows, costs.TILE_ROWS), (z, block.cols, costs.TILE_COLS)):
            start, stop = int(bags.ends[span.start]), int(bags.ends[span.stop])
            owners, weights = bags.owners[start:stop] - span.start, bags.weights(mean=self.averaged)[start:stop]
            sides.append([(slice(start + s.start, start + s.stop), owners[s], weights[s])
                          for s in spans(stop - start, size)])  # fmt: skip
        mark = block.workspace.used
        for rows, *left in sides[0]:
            for cols, *right in sides[1]:
                yield pair.block(rows, cols, block.workspace), (left[0], left[1]), (right[0], right[1])
                block.workspace.release(mark)

    def tile(self, block: Block, out: Array) -> None:
        total = np.zeros(block.shape)
        for tile, left, right in self._tiles(block):
            values = tile.scratch()
            self.inner.tile(tile, values)
            rows, by_row = _sums(*left, values)
            cols, sums = _sums(*right, by_row.T)
            total[np.ix_(rows, cols)] += sums.T
        out[...] = total

    def distance_tile(self, block: Block, out: Array) -> None:
        super().distance_tile(block, out)
        np.maximum(out, 0.0, out=out)  # equal objects, up to rounding
        if block.diagonal:
            np.fill_diagonal(out, 0.0)

    def fill(self, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
        _, x, z = self.inside(pair)
        sizes = [max(1.0, float(bags.ends[-1]) / (len(bags.ends) - 1)) for bags in (x, z)]
        # Few objects of many parts each are work for several threads, too.
        side = max(1, int(np.sqrt(memory.HELD / (sizes[0] * sizes[1]))))
        rows, columns = tiling.shape_for(self)
        return tiling.fill(self, pair, out, finish, (min(side, rows), min(side, columns)))

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        """The sums over owners of (the Gram matrix of all parts) × (the rows of V, given to every part)."""
        parts, x, z = self.inside(pair)
        result = np.zeros((pair.shape[0], V.shape[1]))
        if parts is not None:
            spread = (z.weights(mean=self.averaged)[:, None] * V[z.owners]).astype(parts.dtype, copy=False)
            rows, sums = _sums(x.owners, x.weights(mean=self.averaged), self.inner.multiply(parts, spread))
            result[rows] = sums
        return result

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        """Σ k over the pairs of parts of each object, for as many objects at a time as have few parts."""
        ends = self.bags(points).ends
        out, start = np.empty(points.n), 0
        pair = Pair(points, None, self.dtype_of(points))
        while start < points.n:
            stop = max(start + 1, int(np.searchsorted(ends, ends[start] + costs.TILE_ROWS, side="right")) - 1)
            span = slice(start, stop)
            tile = np.empty((stop - start, stop - start))
            self.tile(pair.block(span, span), tile)
            out[span] = np.diagonal(tile)
            start = stop
        return out

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        total = np.zeros(len(self.theta))
        for tile, (rows, left), (cols, right) in self._tiles(block):
            total += self.inner.tile_gradient(tile.remembering(), G[np.ix_(rows, cols)] * left[:, None] * right)
        return total

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        left, right = self.split([x])[0], self.split([z])[0]
        total = exactly(0)
        for a in left:
            for b in right:
                total = total + self.inner.enclose(_exact(a), _exact(b))
        return total / (length(left) * length(right)) if self.averaged else total

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return Tags(nonnegative=self.inner.tags.nonnegative, cpd_order=self.inner.tags.cpd_order)

    def dimension_of_parts(self, dim: int | None) -> int | None:
        return None

    def conclusion(self, *premises: Proof) -> Proof:
        return CONVOLUTION(self, *premises, condition=self.condition)

    @property
    def condition(self) -> str:
        """Which parts, in words."""
        return "the mean over all parts" if self.averaged else ""


def _sums(owners: Array, weights: Array, values: Array) -> tuple[Array, NDArray[np.float64]]:
    """The weighted sums of the rows of each owner; owners are in increasing order."""
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    first = weights[starts, None]  # the parts of an object have one weight
    return owners[starts], np.add.reduceat(values, starts, axis=0, dtype=np.float64) * first


def _exact(part: Any) -> Any:
    """A row of numbers as the tuple that `enclose` takes; other parts as they are."""
    return tuple(part.tolist()) if isinstance(part, np.ndarray) and part.ndim == 1 else part


class Convolution(OverParts):
    """Σ k(x', z') over the parts x' of x and z' of z, or its mean: a kernel on objects from one on their parts.

    Parameters
    ----------
    kernel : Kernel
        The kernel on parts.
    parts_of : function
        A function of one object that returns its parts, as a list or a matrix with one row per part. It must depend on
        nothing but the object; the parts of some objects are computed twice to find out.
    mean : bool
        Whether to divide by both numbers of parts, so that large objects do not have large values.

    References
    ----------
    Haussler 1999, Convolution kernels on discrete structures.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Convolution(mc.Delta(), str.split)(["to be or not to be", "to do"])
    array([[10.,  2.],
           [ 2.,  2.]])
    """

    about: ClassVar[About] = About(
        "Σ k(x′, z′) over parts x′ of x and z′ of z, or its mean",
        "Your own objects: say what their parts are, and take a kernel on parts: k.over(parts).",
        "mc.Gaussian(1.0).over(np.atleast_2d)",
        arguments={
            "parts_of": Argument("parts", "Python function of an object → its parts"),
            "mean": Argument(domain="True or False"),
        },
        in_python="build it in Python",
    )

    kernel: Any
    parts_of: Any
    mean: bool = False
    space: ClassVar[str] = ANY

    def check(self) -> None:
        super().check()
        if not callable(self.parts_of):
            raise InvalidInput(
                "`parts_of` must be a function of one object that returns its parts",
                got=repr(self.parts_of),
                advice="Pass a function such as str.split.",
            )
        if not isinstance(self.mean, (bool, np.bool_)):
            raise InvalidInput("`mean` must be True or False", got=repr(self.mean), advice="Pass mean=True.")

    @property
    def averaged(self) -> bool:
        return self.mean

    @property
    def division(self) -> Hashable:
        return type(self), Same(self.parts_of), self.mean

    def split(self, X: Any) -> list[Any]:
        objects = objects_of(X, "Objects")
        bags = [self._parts(x, i) for i, x in enumerate(objects)]
        for i in some_rows(len(objects)):
            again = self._parts(objects[i], int(i))
            if not same_parts(bags[i], again):
                count = length(bags[i]), length(again)
                raise InvalidInput(
                    "`parts_of` must return the same parts for the same object",
                    got=f"{'other' if count[0] == count[1] else f'{count[0]} and then {count[1]}'} parts of object {i}",
                    advice="Remove randomness and state from the function.",
                )
        return bags

    def _parts(self, x: Any, position: int) -> Any:
        bag = self.parts_of(x)
        if isinstance(bag, (str, bytes, dict)) or not (hasattr(bag, "__len__") or hasattr(bag, "__iter__")):
            raise InvalidInput(
                "`parts_of` must return a list of parts, or a matrix with one row per part",
                got=f"a {type(bag).__name__} for object {position}",
                advice="Return a list; an object without parts has an empty one.",
            )
        return bag if isinstance(bag, (np.ndarray, list, tuple)) or sp.issparse(bag) else list(bag)

    @property
    def condition(self) -> str:
        mean = "the mean over all parts, " if self.mean else ""
        return f"{mean}parts = {show(self.parts_of)}, which depend on their object alone"

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.over({show(self.parts_of)}{', mean=True' if self.mean else ''})"
