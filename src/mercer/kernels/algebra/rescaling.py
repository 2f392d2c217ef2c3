"""f(x) k(x, z) f(z): any rescaling of the feature vectors, and the one that makes them unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.points import Array, Points, as_argument, length
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels import costs
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.differences import dense_sides, input_slopes, scales
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.algebra.nodes import Unary, inside
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.proof import RESCALING, Proof
from mercer.kernels.algebra.rounding import precisely
from mercer.kernels.algebra.rowwise import UserFunction, require_rowwise
from mercer.kernels.base import ATOM, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.vectors.arccosine import lengths
from mercer.threads import spans
from mercer.validation import real_numbers

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class Rescaled(Unary):
    """f(x) k(x, z) f(z) for any function f of data sets, X → one number per point.

    >>> import mercer as mc
    >>> mc.Rescaled(mc.Linear(), lambda X: X[:, 0])([[2.0]])
    array([[16.]])
    """

    about: ClassVar[About] = About(
        "f(x) k(x, z) f(z)",
        "Your own function f as a factor for every point: k.rescale(f).",
        "mc.Linear().rescale(lambda X: 1.0 / (1.0 + np.abs(X).sum(axis=1)))",
        arguments={"f": Argument(domain="Python function X → one number per point")},
        in_python="if f(x) = 1/√k(x, x), write k.normalize(), else build it in Python",
    )

    kernel: Any
    f: Callable[[Any], Any]

    def _factors(self, points: Points) -> NDArray[np.float64]:
        f = UserFunction(self.f)

        def make() -> NDArray[np.float64]:
            values = self._values(points.raw)
            require_rowwise(f, "f", points, values, self._values)
            return values

        return points.current(("factors", f), f.state(), make)

    def _values(self, X: Any) -> NDArray[np.float64]:
        """f(x) for every point, checked to be one finite number each."""
        try:
            values = np.asarray(real_numbers(self.f(as_argument(X))), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "f must return real numbers", got=f"{error}", advice="Check what f(X) returns."
            ) from error
        if values.shape != (length(X),):
            raise InvalidInput(
                f"f must return one number per point, shape ({length(X)},)",
                got=f"shape {values.shape}",
                advice="Write f for whole data sets: reduce over columns with axis=1.",
            )
        if not np.isfinite(values).all():
            raise InvalidInput("f must return finite numbers", got="NaN or infinity", advice="Check what f(X) returns.")
        return values

    def touch(self, points: Points) -> None:
        super().touch(points)
        self._factors(points)

    def _sides(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """f of both sides, computed once, so that all tiles of a matrix see the same values."""

        def make() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            x = self._factors(pair.x)
            return x, x if pair.same else self._factors(pair.z)

        return pair.once(("factors", UserFunction(self.f)), make)

    def _scale(self, block: Block, out: Array) -> Array:
        x, z = self._sides(block.pair)
        with np.errstate(over="ignore", invalid="ignore"):
            out *= x[block.rows, None].astype(out.dtype)
            out *= z[block.cols].astype(out.dtype)
        return out

    def tile(self, block: Block, out: Array) -> None:
        block.evaluate(self.inner, out)
        self._scale(block, out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self._factors(points) ** 2 * self.inner.diagonal(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.inner.tile_gradient(block, self._scale(block, np.array(G, dtype=np.float64)))

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """f(x) f(z) ∂k/∂x + f'(x) k f(z): the slope of f alone is taken by differences."""
        x, _ = dense_sides(block)
        weights = (G * block.values(self.inner).astype(np.float64)) @ self._sides(block.pair)[1][block.cols]
        by_factor = input_slopes(lambda X: self._values(X)[:, None], x, scales(block.pair), weights[:, None])
        return by_factor + self.inner.tile_input_gradient(block, self._scale(block, np.array(G, dtype=np.float64)))

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return Tags(finite_rank=self.inner.tags.finite_rank)

    def conclusion(self, *premises: Proof) -> Proof:
        return RESCALING(self, *premises, condition=f"f = {show(self.f)}, a function of one point")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import RescaledMap

        return RescaledMap(self.inner.features(d, index=index), self.f, show(self.f))

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.rescale({show(self.f)})"


class Normalized(Unary):
    """k(x, z)/√(k(x, x) k(z, z)), and 0 where k(x, x) = 0. Computed from logarithms if log k is known exactly.

    >>> import numpy as np, mercer as mc
    >>> k = mc.exp(np.log(2) * mc.Intersection()).normalize()
    >>> k([set(range(2000)), set(range(1, 2001))]).round(12)      # 2^1999 / 2^2000, though 2^2000 overflows
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    about: ClassVar[About] = About(
        "k(x, z)/√(k(x, x) k(z, z))",
        "Cosines, which ignore sizes, lengths and norms: k.normalize().",
        "Polynomial(2, c=1.0).normalize()",
    )

    kernel: Any

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return self.joint_term(columns)

    def _factors(self, points: Points, dtype: np.dtype[Any]) -> NDArray[np.float64]:
        """½ log k(x, x) in the log domain, else 1/√k(x, x), and 0 where k(x, x) = 0."""
        if self.inner.exact_log:
            return 0.5 * self.inner.log_diagonal(points)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.inner.diagonal(points)
        require_finite(diagonal, self.inner)
        if (diagonal < 0).any():
            raise RuleBroken(
                "Rule k/√(k(x,x)k(z,z)): k(x, x) must be ≥ 0",
                got=f"{diagonal.min():.3g}",
                advice="Use a kernel; a function with a negative k(x, x) is not a kernel.",
            )
        zero = diagonal == 0
        lost = ~zero & (diagonal < float(np.finfo(dtype).tiny))
        if zero.any() and self.inner.vanishes_at_origin_only:
            lost |= zero & (lengths(points.vectors()) > 0)
        if lost.any():
            raise InvalidInput(
                f"k(x, x) must be 0 or a normal number of {dtype}, so that it can be divided by",
                got=f"{diagonal[lost][0]:.3g} at point {np.flatnonzero(lost)[0]}, whose squares underflow",
                advice="Rescale the points (for example to unit variance)"
                + (", or use float64." if dtype == np.float32 else "."),
            )
        return np.divide(1.0, np.sqrt(diagonal), out=np.zeros(points.n), where=~zero)

    def _sides(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        def make() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            x = self._factors(pair.x, pair.dtype)
            return x, x if pair.same else self._factors(pair.z, pair.dtype)

        return pair.once(("norms", self.inner), make)

    def tile(self, block: Block, out: Array) -> None:
        if self.inner.exact_log:
            self.log_tile(block, out)
            _loops.tiles.exp_(out)
            return
        x, z = self._sides(block.pair)
        with np.errstate(over="ignore", invalid="ignore"):
            block.evaluate(self.inner, out)
            require_finite(out, self.inner)  # here, because `Tags.bounded` skips it later
            out *= x[block.rows, None].astype(out.dtype)
            out *= z[block.cols].astype(out.dtype)
        if block.diagonal:
            np.fill_diagonal(out, x[block.rows] > 0)

    def log_tile(self, block: Block, out: Array) -> None:
        if not self.inner.exact_log:
            super().log_tile(block, out)
            return
        sides = {id(points): points for points in (block.pair.x, block.pair.z)}.values()
        size = block.pair.once(("log size", self), lambda: max(map(self.log_size, sides)))
        precisely(self, self.inner.log_cosine_tile, block, out, size)
        if block.diagonal:
            np.fill_diagonal(out, 0.0)

    def log_size(self, points: Points) -> float:
        return self.inner.log_cosine_size(points)

    def log_cosine_size(self, points: Points) -> float:
        return self.log_size(points)

    @property
    def exact_log(self) -> bool:
        return self.inner.exact_log

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        if self.inner.exact_log:
            return np.ones(points.n)
        return (self._factors(points, self.dtype_of(points)) > 0).astype(np.float64)

    def _plain_sides(self, block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """1/√k(x, x) of the rows and columns; None if k over- or underflows, so that only its logarithm is known."""
        x, z = self._sides(block.pair)
        x, z = x[block.rows], z[block.cols]
        if not self.inner.exact_log:
            return x, z
        far = max(np.abs(x).max(), np.abs(z).max()) > 0.4 * np.log(float(np.finfo(block.dtype).max))
        return None if far else (np.exp(-x), np.exp(-z))

    # With K = k/√(k(x,x) k(z,z)):  dK = dk/√(k(x,x) k(z,z)) − ½ K dk(x,x)/k(x,x) − ½ K dk(z,z)/k(z,z).

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        sides = self._plain_sides(block)
        if sides is None:
            return super().tile_gradient(block, G)
        if not len(self.theta):
            return np.empty(0)
        adjoint = G * sides[0][:, None] * sides[1]
        if block.diagonal:
            np.fill_diagonal(adjoint, 0.0)  # K(x, x) = 1 whatever theta is
        if self.inner.tags.normalised:
            return self.inner.tile_gradient(block, adjoint)
        weights = adjoint * block.values(self.inner).astype(np.float64)
        on_diagonal = [0.5 * weights.sum(axis=1 - side) * sides[side] ** 2 for side in (0, 1)]
        if block.diagonal:  # the pairs (x, x) are there already
            np.fill_diagonal(adjoint, -on_diagonal[0] - on_diagonal[1])
            return self.inner.tile_gradient(block, adjoint)
        gradient = self.inner.tile_gradient(block, adjoint)
        for side in (0, 1):
            for part, W in _diagonal_blocks(block, side, on_diagonal[side], constant=self.inner.tags.stationary):
                gradient = gradient - self.inner.tile_gradient(part, W)
        return gradient

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        sides = self._plain_sides(block)
        if sides is None:
            return super().tile_input_gradient(block, G)
        adjoint = G * sides[0][:, None] * sides[1]
        if self.inner.tags.normalised or self.inner.tags.stationary:
            return self.inner.tile_input_gradient(block, adjoint)
        # ½ dk(x, x)/dx is the derivative of k(x, z) by x at z = x, because k is symmetric.
        on_diagonal = (adjoint * block.values(self.inner).astype(np.float64)).sum(axis=1) * sides[0] ** 2
        if block.diagonal:
            return self.inner.tile_input_gradient(block, adjoint - np.diag(on_diagonal))
        gradient = self.inner.tile_input_gradient(block, adjoint)
        parts = _diagonal_blocks(block, 0, on_diagonal)
        return gradient - np.concatenate([self.inner.tile_input_gradient(part, W) for part, W in parts])

    def enclose(self, x: Any, z: Any) -> Interval:
        xx, zz = self.inner.enclose(x, x), self.inner.enclose(z, z)
        if xx.upper <= 0 or zz.upper <= 0:
            return xx * 0.0
        return self.inner.enclose(x, z) / (xx.sqrt() * zz.sqrt())

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.inner.tags, normalised=True)

    def conclusion(self, *premises: Proof) -> Proof:
        condition = "f(x) = 1/√k(x,x), and 0 where k(x,x) = 0"
        return RESCALING(self, *premises, condition=condition)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import RescaledMap

        def one_over_norm(X: Any) -> NDArray[np.float64]:
            points = self.prepare(X)
            factors = self._factors(points, self.dtype_of(points))
            return np.exp(-factors) if self.inner.exact_log else factors

        return RescaledMap(self.inner.features(d, index=index), one_over_norm, "‖phi‖", inverse=True)

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.normalize()"


def _diagonal_blocks(
    block: Block, side: int, weights: NDArray[np.float64], *, constant: bool = False
) -> Iterator[tuple[Block, Array]]:
    """The pairs (x, x) of the rows (side 0) or columns (1) of a block, in small blocks with diagonal adjoints.

    If k(x, x) is `constant`, one pair stands for all.
    """
    pair = block.pair
    if not pair.same:
        points = (pair.x, pair.z)[side]
        pair = pair.once(("with itself", side), lambda: Pair(points, None, pair.dtype, shared=pair.shared))
    start = (block.rows, block.cols)[side].start
    if constant:
        yield pair.block(slice(start, start + 1), slice(start, start + 1)), np.array([[weights.sum()]])
        return
    for span in spans(len(weights), costs.DIAGONAL_POINTS):
        place = slice(start + span.start, start + span.stop)
        yield pair.block(place, place).remembering(), np.diag(weights[span])
