"""Kernels of counted features: k(x, z) = Σ_g φ_g(x) φ_g(z), where every object has few of very many features.

Runs of letters in a string, labels of neighbourhoods in a graph, subtrees of a tree: an object becomes a sparse row of
keys and values, and the Gram matrix is a product of sparse rows. A key is a 64-bit hash of the feature. Two features
that share a key, which has a probability of about 10⁻⁸ for a million different features, would count as one; the
function is a kernel in any case, because it is an inner product whatever the keys are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._loops import counts as loops
from mercer.data.points import Array, Points
from mercer.data.ragged import entries_of
from mercer.kernels import costs
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block, Pair

if TYPE_CHECKING:
    from mercer.features.counted import CountMap
    from mercer.kernels.validity.interval import Interval

EXACT = 2**24
"""Whole numbers below this are exact in float32, and so are their sums as long as these stay below it."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Features of objects as sparse rows: each row has distinct keys in increasing order, and their values.

    Attributes
    ----------
    keys : array
        The features that occur, as uint64, row after row.
    values : array
        How often each occurs in its object, or its weight.
    ends : array
        Row i has the entries ends[i] … ends[i + 1] − 1.
    """

    keys: NDArray[np.uint64]
    values: NDArray[np.float64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, keys: Any, ends: Any, values: Any = None) -> Counts:
        """The tally of keys that may repeat within a row, each counting 1, or `values` if they are given.

        >>> counts = Counts.of(np.array([7, 5, 7], np.uint64), np.array([0, 3, 3]))
        >>> counts.keys, counts.values, counts.ends
        (array([5, 7], dtype=uint64), array([1., 2.]), array([0, 2, 2]))
        """
        return cls(*loops.tally(np.asarray(keys, np.uint64), np.asarray(ends, np.int64), values))

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        """The bytes of the three arrays, and of the layout if there is one."""
        layout: Layout | None = self.__dict__.get("layout")
        return self.keys.nbytes + self.values.nbytes + self.ends.nbytes + (layout.nbytes if layout else 0)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of every entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.ends))

    def encoded_rows(self, index: Any) -> Counts:
        """The rows at these positions."""
        at, ends = entries_of(self.ends, index)
        return Counts(self.keys[at], self.values[at], ends)

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        squares, filled = np.zeros(len(self)), np.diff(self.ends) > 0  # reduceat would give empty rows another's value
        squares[filled] = np.add.reduceat(self.values**2, self.ends[:-1][filled]) if filled.any() else 0.0
        return squares

    @cached_property
    def _whole(self) -> bool:
        return bool((self.values == np.rint(self.values)).all())

    @cached_property
    def layout(self) -> Layout:
        """The rows as columns of their features, kept for the next few rows that meet them."""
        return Layout(self)

    def squares(self) -> NDArray[np.float64]:
        """The sum of squared values of each row."""
        return self._squares.copy()

    def whole_below(self, limit: float) -> bool:
        """Whether all values are whole numbers, and the squares of each row add up to less than `limit`."""
        return self._whole and float(self._squares.max(initial=0.0)) < limit

    @property
    def exact_type(self) -> np.dtype[Any]:
        """float32 if it holds all values and their products exactly."""
        return np.dtype(np.float32 if self.whole_below(EXACT) else np.float64)


class Layout:
    """Sparse rows by the columns of their features, and which column each feature has."""

    def __init__(self, counts: Counts) -> None:
        self.columns, _, width = loops.numbered(counts.keys, None)
        self.width = max(width, 1)
        keys = np.zeros(self.width, np.uint64)
        keys[self.columns] = counts.keys
        self.order = np.argsort(keys)
        self.keys = keys[self.order]
        values = counts.values.astype(counts.exact_type)
        self.by_columns = loops.by_columns(counts.ends, self.columns, values, self.width)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(part.nbytes for part in (self.columns, self.order, self.keys, *self.by_columns))

    def met_by(self, counts: Counts) -> tuple[Counts, NDArray[np.int64]]:
        """The entries of other rows whose features occur here, and their columns."""
        at = np.minimum(np.searchsorted(self.keys, counts.keys), self.width - 1)
        known = self.keys[at] == counts.keys
        ends = np.concatenate([[0], np.cumsum(known)])[counts.ends]
        return Counts(counts.keys[known], counts.values[known], ends), self.order[at[known]]


class Sides:
    """Two sets of sparse rows over one numbering of their features, laid out for tiles of x zᵀ.

    Frequent features form two dense matrices; the others are stored by rows for x, and by columns for z. A `term` such
    as `LEAST` replaces the product of two values (see `mercer._loops.counts`), and leaves no dense part; nor do a few
    new rows x, for which the layout of z is kept.
    """

    def __init__(self, x: Counts, z: Counts, term: int = loops.PRODUCT) -> None:
        same, self.term, self._earlier = x is z, term, None
        # All sums are at most √(k(x, x) k(z, z)), so that no partial sum is rounded.
        self.dtype = np.promote_types(x.exact_type, z.exact_type)
        if len(x) <= costs.FEW_ROWS and len(x) < len(z):
            self._meet(x, z)
            return
        left, right, width = loops.numbered(x.keys, None if same else z.keys)
        self._parts = (x, left), (x, left) if right is None else (z, right)
        self.width = max(width, 1)
        occurrences = np.bincount(left, minlength=self.width)
        others = occurrences if right is None else np.bincount(right, minlength=self.width)
        rare = occurrences * (others / max(1, len(x) * len(z))) <= costs.FREQUENT_SHARE
        rare |= term != loops.PRODUCT
        self.dense_x = self._dense(0, rare)
        self.dense_z = self.dense_x if same else self._dense(1, rare)
        self.sparse_x = self._rare(0, rare)
        if same:
            self.sparse_z, self._earlier = loops.with_earlier(*self.sparse_x, self.width)
        else:
            self.sparse_z = loops.by_columns(*self._rare(1, rare), self.width)

    def _meet(self, x: Counts, z: Counts) -> None:
        """Lay out a few rows x by the columns of z."""
        layout = z.layout
        known, columns = layout.met_by(x)
        self._parts, self.width = ((known, columns), (z, layout.columns)), layout.width
        self.dense_x, self.dense_z = np.zeros((len(x), 0), self.dtype), np.zeros((len(z), 0), self.dtype)
        self.sparse_x = known.ends, columns, known.values.astype(self.dtype)
        self.sparse_z = layout.by_columns

    @cached_property
    def x(self) -> sp.csr_array:
        """The first side as a sparse matrix."""
        return self._matrix(0)

    @cached_property
    def z(self) -> sp.csr_array:
        """The second side as a sparse matrix."""
        return self.x if self._parts[0] is self._parts[1] else self._matrix(1)

    def _matrix(self, side: int) -> sp.csr_array:
        counts, columns = self._parts[side]
        return sp.csr_array((counts.values, columns, counts.ends), shape=(len(counts), self.width))

    def _dense(self, side: int, rare: NDArray[np.bool_]) -> Array:
        """The values of the frequent features, as columns."""
        counts, columns = self._parts[side]
        place = np.cumsum(~rare) - 1
        frequent = ~rare[columns]
        dense = np.zeros((len(counts), int((~rare).sum())), self.dtype)
        if dense.size:
            dense[counts.rows[frequent], place[columns[frequent]]] = counts.values[frequent]
        return dense

    def _rare(self, side: int, rare: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """The entries of the other features, by rows: ends, columns, values."""
        counts, columns = self._parts[side]
        ends, values = counts.ends, counts.values
        if not rare.all():
            inside = rare[columns]
            ends = np.concatenate([[0], np.cumsum(inside)])[ends]
            columns, values = columns[inside], values[inside]
        return ends, columns, values.astype(self.dtype)

    def tile(self, block: Block, out: Array) -> None:
        """out = x zᵀ for the rows and columns of the block."""
        fresh = not self.dense_x.shape[1]
        if not fresh:
            product = block.workspace.take(out.shape, self.dtype)
            np.matmul(self.dense_x[block.rows], self.dense_z[block.cols].T, out=product)
            np.copyto(out, product, casting="same_kind")
        if fresh or len(self.sparse_x[1]):
            first = block.rows.start, block.cols.start
            loops.add_products(self.sparse_x, self.sparse_z, first, out, fresh, self.term, self._earlier)

    def multiply(self, V: Array) -> NDArray[np.float64]:
        """x (zᵀ V), for products only."""
        return np.asarray(self.x @ (self.z.T @ V), dtype=np.float64)


class Counted(Kernel):
    """Σ_g φ_g(x) φ_g(z) over features that are counted: a leaf defines `encode`, which returns `Counts`.

    Everything else follows: tiles, products K v without K, the diagonal, distances, and explicit features.
    """

    tags: ClassVar[Tags] = Tags(nonnegative=True)
    tile_shape: ClassVar[tuple[int, int]] = (128, 16384)

    @abstractmethod
    def encode(self, X: Any) -> Counts:
        """The features of every object."""

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        sides = Sides(x, z)
        return sides, sides

    def sides(self, pair: Pair) -> Sides:
        """Both data sets, laid out for products."""
        sides: Sides = pair.encoded(self)[0]
        return sides

    def tile(self, block: Block, out: Array) -> None:
        self.sides(block.pair).tile(block, out)

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        """x (zᵀ V): the matrix is never formed."""
        return self.sides(pair).multiply(V)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        counts: Counts = points.encoded(self)
        return counts.squares()

    def distance_size(self, points: Points) -> float:
        """Whole numbers cancel without rounding."""
        return 0.0 if points.encoded(self).whole_below(2.0**53) else super().distance_size(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return super().tile_gradient(block, G) if len(self.theta) else np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        a, b = (dict(zip(c.keys.tolist(), c.values.tolist())) for c in (self.encode([x]), self.encode([z])))
        return exactly(sum((Fraction(v) * Fraction(b[g]) for g, v in a.items() if g in b), Fraction(0)))

    def features(self, d: Any, *, index: str = "monomials") -> CountMap:
        """The counts of all features that occur in the objects `d`, a data set.

        The inner product of two images is k(x, z) if at least one of x and z is in `d`.
        """
        from mercer.features.counted import CountMap

        points = Points(d)
        keys = np.unique(points.encoded(self).keys)
        return CountMap(self, tuple(keys.tolist()), self.spelled(points.raw, keys))

    def spelled(self, X: Any, keys: NDArray[np.uint64]) -> tuple[str, ...]:
        """The name of each of these features of the objects; empty if they have no other names than their keys."""
        return ()
