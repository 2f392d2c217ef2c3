"""f(x) k(x, z) f(z): any rescaling of the feature vectors, and the one that makes them unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.base import ATOM, Similarity, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.elementwise import require_finite
from mercer.kernels.nodes import Unary, inside, premises
from mercer.kernels.parameters import show
from mercer.kernels.points import Array, Points, as_argument
from mercer.kernels.proof import RESCALING, Proof

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.interval import Interval


class Rescaled(Unary):
    """f(x) k(x, z) f(z) for any function f of data sets, X → one number per point.

    >>> import mercer as mc
    >>> mc.Rescaled(mc.Linear(), lambda X: X[:, 0])([[2.0]])
    array([[16.]])
    """

    kernel: Any
    f: Callable[[Any], Any]

    def _factors(self, points: Points) -> NDArray[np.float64]:
        def make() -> NDArray[np.float64]:
            values = np.asarray(self.f(as_argument(points.raw)), dtype=np.float64)
            if values.shape != (points.n,):
                raise InvalidInput(
                    f"f must return one number per point, shape ({points.n},)",
                    got=f"shape {values.shape}",
                    advice="f receives the whole data set; reduce over columns with axis=1.",
                )
            if not np.isfinite(values).all():
                raise InvalidInput("f must return finite numbers", got="NaN or infinity", advice="Check f on X.")
            return values

        return points.once(("factors", self), make)

    def touch(self, points: Points) -> None:
        super().touch(points)
        self._factors(points)

    def _scale(self, block: Block, out: Array) -> Array:
        x, z = self._factors(block.pair.x), self._factors(block.pair.z)
        out *= x[block.rows, None].astype(out.dtype)
        out *= z[block.cols].astype(out.dtype)
        return out

    def tile(self, block: Block, out: Array) -> None:
        self.inner.tile(block, out)
        self._scale(block, out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self._factors(points) ** 2 * self.inner.diagonal(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.inner.tile_gradient(block, self._scale(block, np.array(G, dtype=np.float64)))

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return Tags(finite_rank=self.inner.tags.finite_rank)

    def proof(self, dim: int | None = None) -> Proof:
        return RESCALING(self, *premises(self, dim), condition=f"f = {show(self.f)}")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import RescaledMap

        return RescaledMap(self.inner.features(d, index=index), self.f, show(self.f))

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.rescale({show(self.f)})"


class Normalized(Unary):
    """k(x, z)/√(k(x, x) k(z, z)), and 0 where k(x, x) = 0. In the log domain where log k is known exactly.

    >>> import numpy as np, mercer as mc
    >>> k = mc.exp(np.log(2) * mc.Intersection()).normalize()
    >>> k([set(range(2000)), set(range(1, 2001))]).round(12)      # 2^1999 / 2^2000, though 2^2000 overflows
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    kernel: Any

    def _factors(self, points: Points) -> NDArray[np.float64]:
        """½ log k(x, x) in the log domain, else 1/√k(x, x), and 0 where that is no normal number of the dtype."""
        if self.inner.exact_log:
            return 0.5 * self.inner.log_diagonal(points)
        diagonal = self.inner.diagonal(points)
        if (diagonal < 0).any():
            raise RuleBroken(
                "Rule k/√(k(x,x)k(z,z)): k(x, x) must be ≥ 0",
                got=f"{diagonal.min():.3g}",
                advice="A function with a negative diagonal is no kernel.",
            )
        require_finite(diagonal, self.inner)
        normal = diagonal >= float(np.finfo(self.dtype_of(points)).tiny)
        return np.divide(1.0, np.sqrt(diagonal), out=np.zeros(points.n), where=normal)

    def _sides(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        def make() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            x = self._factors(pair.x)
            return x, x if pair.same else self._factors(pair.z)

        return pair.once(("norms", self.inner), make)

    def tile(self, block: Block, out: Array) -> None:
        x, z = self._sides(block.pair)
        rows, columns = x[block.rows, None], z[block.cols]
        if self.inner.exact_log:
            self.inner.log_tile(block, out)
            out -= (rows + columns).astype(out.dtype)
            _loops.tiles.exp_(out)
        else:
            self.inner.tile(block, out)
            out *= rows.astype(out.dtype)
            out *= columns.astype(out.dtype)
        if block.diagonal:
            np.fill_diagonal(out, 1.0 if self.inner.exact_log else x[block.rows] > 0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n) if self.inner.exact_log else (self._factors(points) > 0).astype(np.float64)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        # The diagonal moves with theta too; central differences on both at once.
        return Similarity.tile_gradient(self, block, G)

    def enclose(self, x: Any, z: Any) -> Interval:
        xx, zz = self.inner.enclose(x, x), self.inner.enclose(z, z)
        if xx.upper <= 0 or zz.upper <= 0:
            return xx * 0.0
        return self.inner.enclose(x, z) / (xx.sqrt() * zz.sqrt())

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.inner.tags, normalised=True, universal=self.inner.tags.universal)

    def proof(self, dim: int | None = None) -> Proof:
        condition = "f(x) = 1/√k(x,x), and 0 where k(x,x) = 0"
        return RESCALING(self, *premises(self, dim), condition=condition)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import RescaledMap

        def one_over_norm(X: Any) -> NDArray[np.float64]:
            factors = self._factors(self.prepare(X))
            return np.exp(-factors) if self.inner.exact_log else factors

        return RescaledMap(self.inner.features(d, index=index), one_over_norm, "1/‖phi‖")

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)}.normalize()"
