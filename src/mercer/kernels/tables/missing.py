"""Missing values: a kernel that compares them with each other and with values that are present.

No value is guessed and no row is dropped. A missing value ? is a point of its own, added to the space of the kernel so
that the kernel stays positive semidefinite:

* without examples it is like nothing but itself, k(?, x) = 0 and k(?, ?) = 1: the direct sum of two spaces;
* with examples v₁ … v_N it is an unknown value V, which equals each of them with the same probability:
  k(?, x) = E k(V, x) and k(?, ?) = E k(V, V). This is the mean of the kernels k(rᵥ(x), rᵥ(z)), where rᵥ replaces a
  missing value by v, and a mean of kernels is a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.data.missing import is_missing
from mercer.data.objects import rows_of
from mercer.data.points import Array, Points, take
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.nodes import Unary
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.proof import COMPOSITION, RESCALING, SUM, Axiom, Proof
from mercer.kernels.base import Tags
from mercer.kernels.block import Block, Pair

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


@dataclass(frozen=True)
class Present:
    """The points, each missing one replaced by the first that is present."""

    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        missing = points.missing()
        if not missing.any():
            return points.raw
        rows = np.where(missing, np.flatnonzero(~missing)[0], np.arange(points.n))
        return take(points.raw if is_frame(points.raw) else points.matrix(), rows)


PRESENT = Present()


class Missing(Unary):
    """k, extended to missing values (None, NaN, NaT, NA): a point of its own, or an unknown one among examples.

    With V drawn from `like`: k(?, x) = E k(V, x), k(?, ?) = E k(V, V). Without examples: k(?, x) = 0, k(?, ?) = 1.

    Parameters
    ----------
    kernel : Kernel
        The kernel of present values, on one column (on several, a row with any missing value counts as missing).
    like
        Values that a missing one might have had, such as quantiles of the column.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = [[0.0], [1.0], [np.nan]]
    >>> mc.Missing(mc.Gaussian(1.0))(X).round(3)
    array([[1.   , 0.607, 0.   ],
           [0.607, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    >>> mc.Missing(mc.Gaussian(1.0), like=[0.0, 1.0])(X).round(3)
    array([[1.   , 0.607, 0.803],
           [0.607, 1.   , 0.803],
           [0.803, 0.803, 1.   ]])
    """

    about: ClassVar[About] = About(
        "k(x, z); for a missing x the mean: k(?, z) = E k(v, z)",
        "Missing values without imputation: a point of its own, or an unknown one among examples.",
        "Missing(Gaussian(1.0), like=[0.0, 1.0])",
        arguments={"like": Argument("v", "values that are present, of the kernel's space")},
    )

    kernel: Any
    like: Any = ()

    def check(self) -> None:
        super().check()
        like = self.like.tolist() if isinstance(self.like, np.ndarray) else self.like
        if isinstance(like, (str, bytes, dict)) or not hasattr(like, "__iter__"):
            raise InvalidInput(
                "`like` must be a list of values", got=repr(like), advice="Pass a list, such as like=[1.0, 2.0]."
            )
        like = tuple(tuple(v) if isinstance(v, list) else v for v in like)
        self._set(like=like, _examples=None)
        if not like:
            return
        examples = Points(rows_of(list(like)))
        if examples.missing().any():
            raise InvalidInput(
                "`like` must hold values that are present", got=show(like), advice="Drop the missing ones."
            )
        self.inner.touch(examples)
        self._set(_examples=examples)

    @property
    def _like(self) -> Points:
        examples: Points = self._examples  # type: ignore[attr-defined]
        return examples

    @property
    def space(self) -> str:  # type: ignore[override]
        return self.inner.space

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        inner = self.inner.tags
        return Tags(
            stationary=inner.stationary and inner.normalised and not self.like,  # ? + t = ?
            normalised=inner.normalised,
            nonnegative=inner.nonnegative,
        )

    def touch(self, points: Points) -> None:
        if not points.missing().all():
            self.inner.touch(points.view(PRESENT))

    def dtype_of(self, points: Points) -> np.dtype[Any]:
        if points.missing().all():
            return np.dtype(np.float64)
        return self.inner.dtype_of(points.view(PRESENT))

    def tile(self, block: Block, out: Array) -> None:
        x, z = self._missing(block)
        if not x.all() and not z.all():
            self.inner.tile(block.view(PRESENT), out)
        if x.any():
            out[x] = self._means(block.pair, 1)[block.cols]
        if z.any():
            out[:, z] = self._means(block.pair, 0)[block.rows, None]
        if x.any() and z.any():
            out[np.ix_(x, z)] = self._itself()

    @staticmethod
    def _missing(block: Block) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return block.pair.x.missing()[block.rows], block.pair.z.missing()[block.cols]

    def _means(self, pair: Pair, side: int) -> NDArray[np.float64]:
        """E k(V, x) for every point x of one side; meaningless where x is missing."""

        def make() -> NDArray[np.float64]:
            points = pair.z if side else pair.x
            if not self.like or points.missing().all():
                return np.zeros(points.n)
            return np.asarray(self.inner(points.view(PRESENT), self._like, dtype=np.float64).mean(axis=1))

        return pair.once(("like", self, side and not pair.same), make)

    def _itself(self) -> float:
        """k(?, ?)."""
        return float(self.inner.diagonal(self._like).mean()) if self.like else 1.0

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        missing = points.missing()
        if missing.all():
            return np.full(points.n, self._itself())
        diagonal = np.array(self.inner.diagonal(points.view(PRESENT)), dtype=np.float64)
        if missing.any():
            diagonal[missing] = self._itself()
        return diagonal

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        gradient = np.zeros(len(self.theta))
        if not len(gradient):
            return gradient
        x, z = self._missing(block)
        if not x.all() and not z.all():
            present = np.where(x[:, None] | z, 0.0, G)
            gradient += self.inner.tile_gradient(block.view(PRESENT), present)
        if not self.like:
            return gradient
        for side, near, far in ((0, x, z), (1, z, x)):
            if far.any() and not near.all():
                beside, weights = self._beside(block, side, np.where(near, 0.0, (G if side else G.T)[far].sum(axis=0)))
                gradient += self.inner.tile_gradient(beside, weights)
        if x.any() and z.any():
            n = self._like.n
            whole = Pair(self._like, None, np.float64).block(slice(0, n), slice(0, n))
            gradient += self.inner.tile_gradient(whole, np.eye(n) * (G[np.ix_(x, z)].sum() / n))
        return gradient

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        x, z = self._missing(block)
        gradient = np.zeros((block.shape[0], block.pair.x.matrix().shape[1]))
        if not x.all() and not z.all():
            gradient += self.inner.tile_input_gradient(block.view(PRESENT), np.where(x[:, None] | z, 0.0, G))
        if self.like and z.any() and not x.all():
            beside, weights = self._beside(block, 0, np.where(x, 0.0, G[:, z].sum(axis=1)))
            gradient += self.inner.tile_input_gradient(beside, weights)
        gradient[x] = 0.0
        return gradient

    def _beside(self, block: Block, side: int, weights: NDArray[np.float64]) -> tuple[Block, NDArray[np.float64]]:
        """The rows (side 0) or columns (1) of a block beside the examples, each point's weight shared among them."""
        pair = block.pair

        def make() -> Pair:
            return Pair((pair.z if side else pair.x).view(PRESENT), self._like, np.float64, shared=pair.shared)

        n = self._like.n
        beside = pair.once(("beside", self, side), make)
        return beside.block((block.rows, block.cols)[side], slice(0, n)), np.repeat(weights[:, None] / n, n, axis=1)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        missing = [any(map(is_missing, p)) if isinstance(p, tuple) else is_missing(p) for p in (x, z)]
        if not any(missing):
            return self.inner.enclose(x, z)
        if not self.like:
            return exactly(int(all(missing)))
        total = exactly(0)
        for v in self.like:
            v = tuple(map(float, np.atleast_1d(v))) if isinstance(x if missing[1] else z, tuple) else v
            total = total + self.inner.enclose(v if missing[0] else x, v if missing[1] else z)
        return total / len(self.like)

    def conclusion(self, *premises: Proof) -> Proof:
        (inner,) = premises
        if not self.like:
            absent = Axiom("1[x is missing]·1[z is missing]", "inner product: phi(x) = 1[x is missing]")
            return SUM(self, RESCALING("k on present values", inner, condition="f(x) = 1[x is present]"), absent)
        filled = COMPOSITION("k(r(x), r(z))", inner, condition="r replaces a missing value by a value v")
        return SUM(self, filled, condition=f"the mean over {len(self.like)} values v")

    def __repr__(self) -> str:
        return f"Missing({self.inner!r}{f', like={list(self.like)!r}' if self.like else ''})"
