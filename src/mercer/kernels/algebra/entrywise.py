"""h(k) for functions h with non-negative Taylor coefficients: whole powers, polynomials, the exponential."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.points import Array, Points
from mercer.errors import RuleBroken
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.elementwise import whole_power
from mercer.kernels.algebra.linear import Scaled
from mercer.kernels.algebra.nodes import Unary, inside
from mercer.kernels.algebra.parameters import nonnegative, show
from mercer.kernels.algebra.proof import EXPONENTIAL, POLYNOMIAL, PRODUCT, Proof
from mercer.kernels.algebra.rounding import precise, precisely, require_power
from mercer.kernels.base import ATOM, POWER, Tags
from mercer.kernels.block import Block
from mercer.validation import is_number

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class _Entrywise(Unary):
    """h(k(x, z)) for a function h with non-negative Taylor coefficients."""

    @abstractmethod
    def _apply(self, tile: Array) -> None:
        """Replace k by h(k), in place."""

    @abstractmethod
    def _slope(self, tile: Array) -> Array:
        """h'(k)."""

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return self.joint_term(columns)

    def tile(self, block: Block, out: Array) -> None:
        precisely(self, self._fill, block, out, self.amplification)

    def _fill(self, block: Block, out: Array) -> None:
        block.evaluate(self.inner, out)
        self._apply(out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        diagonal = np.array(self.inner.diagonal(points), dtype=np.float64)[None, :]
        with np.errstate(over="ignore"):
            self._apply(diagonal)
        return diagonal[0]

    def _inner_adjoint(self, block: Block, G: Array) -> Array:
        block = precise(self, block, self.amplification)
        return G * self._slope(block.values(self.inner))

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.inner.tile_gradient(block, self._inner_adjoint(block, G))

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.inner.tile_input_gradient(block, self._inner_adjoint(block, G))


class Exp(_Entrywise):
    """exp(k(x, z)): the limit of polynomials with non-negative coefficients 1/n!.

    >>> import mercer as mc
    >>> mc.exp(mc.Linear())
    exp(Linear())
    """

    about: ClassVar[About] = About(
        "exp(k(x, z))", "All powers at once: exp(k); exp(0.693 * Intersection()) is 2^|x ∩ z|.", "exp(Linear())"
    )

    kernel: Any

    def tile(self, block: Block, out: Array) -> None:
        """The relative error of exp(k) is the absolute one of k, which matters where k itself amplifies rounding."""
        block.evaluate(self.inner, out)
        if self.inner.amplification > 1:
            overflow = float(np.log(np.finfo(block.dtype).max))
            largest = max(1.0, min(float(np.abs(out).max()), overflow))

            def again(wide: Block, tile: Array) -> None:
                if tile is not out:
                    wide.evaluate(self.inner, tile)

            precisely(self, again, block, out, largest * self.inner.amplification)
        self._apply(out)

    def _apply(self, tile: Array) -> None:
        _loops.tiles.exp_(tile)

    def _slope(self, tile: Array) -> Array:
        return np.exp(tile)

    def log_tile(self, block: Block, out: Array) -> None:
        block.evaluate(self.inner, out)

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        """−½‖phi(x) − phi(z)‖², with phi of the kernel inside the exponential."""
        self.inner.distance_tile(block, out)
        out *= -0.5

    def log_size(self, points: Points) -> float:
        return super().log_size(points) * self.inner.amplification

    def log_cosine_size(self, points: Points) -> float:
        return 0.5 * self.inner.distance_size(points)

    @property
    def exact_log(self) -> bool:
        return True

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.inner.diagonal(points)

    def enclose(self, x: Any, z: Any) -> Interval:
        return self.inner.enclose(x, z).exp()

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        from mercer.kernels.vectors.dot import Linear

        core = self.inner.kernel if isinstance(self.inner, Scaled) else self.inner
        inner = self.inner.tags
        universal = isinstance(core, Linear) or inner.universal
        return replace(inner, normalised=False, nonnegative=True, finite_rank=False, universal=universal)

    def conclusion(self, *premises: Proof) -> Proof:
        largest = float(np.log(np.finfo(np.float64).max))
        return EXPONENTIAL(self, *premises, amplification=largest)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import SubsetMap
        from mercer.kernels.sets import Intersection

        core, c = (self.inner.kernel, self.inner.scale) if isinstance(self.inner, Scaled) else (self.inner, 1.0)
        if isinstance(core, Intersection):
            with np.errstate(over="ignore"):
                return SubsetMap(d, weight=float(np.expm1(c)))
        return super().features(d, index=index)

    def __repr__(self) -> str:
        return f"exp({self.inner!r})"


class Power(_Entrywise):
    """k(x, z)ⁿ for a whole number n ≥ 1.

    >>> import mercer as mc
    >>> mc.Linear() ** 3
    Linear() ** 3
    """

    about: ClassVar[About] = About(
        "k(x, z)ⁿ",
        "Interactions of a kernel's features: k ** n.",
        "Linear() ** 3",
        arguments={"exponent": Argument("n", "whole number ≥ 1")},
    )

    kernel: Any
    exponent: int = 1
    precedence: ClassVar[int] = POWER

    def check(self) -> None:
        super().check()
        n = self.exponent
        if not is_number(n) or not float(n).is_integer() or n < 1:
            raise RuleBroken(
                "Rule kⁿ: the exponent must be a whole number ≥ 1",
                got=show(n),
                advice="Choose a whole number: other powers are in general not kernels; mc.refute refutes "
                "(⟨x,z⟩+1)^0.5.",
            )
        self._set(exponent=int(n))
        if n > float(np.finfo(np.float32).max):
            raise RuleBroken("Rule kⁿ: the exponent must fit float32", got=show(n), advice="Choose a smaller exponent.")
        require_power(self, "Rule kⁿ", "the exponent", self.exponent)

    @property
    def amplification(self) -> float:
        """If the logarithm is known, multiplying it by n keeps its digits."""
        return self.inner.amplification * (1 if self.inner.exact_log else self.exponent)

    @property
    def vanishes_at_origin_only(self) -> bool:
        return all(part.vanishes_at_origin_only for part in self.parts)

    def tile(self, block: Block, out: Array) -> None:
        if not self.inner.exact_log:
            super().tile(block, out)
            return
        self.log_tile(block, out)
        _loops.tiles.exp_(out)

    def _size(self, block: Block) -> float:
        """The error of the logarithm in roundings, beyond its own."""
        sides = {id(points): points for points in (block.pair.x, block.pair.z)}.values()
        return block.pair.once(("log size", self), lambda: max(map(self.log_size, sides)))

    def log_size(self, points: Points) -> float:
        return self.exponent * self.inner.log_size(points)

    def log_cosine_size(self, points: Points) -> float:
        return self.exponent * self.inner.log_cosine_size(points)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        if not self.inner.exact_log:
            return super().diagonal(points)
        with np.errstate(over="ignore"):
            return np.exp(self.log_diagonal(points))

    def _inner_adjoint(self, block: Block, G: Array) -> Array:
        if not self.inner.exact_log:
            return super()._inner_adjoint(block, G)
        block = precise(self, block, self._size(block))
        log = block.scratch()
        self.inner.log_tile(block, log)
        below = np.multiply(log, float(self.exponent - 1), dtype=np.float64, where=log > -np.inf, out=log.astype(float))
        return np.asarray(G * self.exponent * np.exp(below))

    def _apply(self, tile: Array) -> None:
        whole_power(tile, self.exponent)

    def _slope(self, tile: Array) -> Array:
        return np.asarray(self.exponent * tile ** (self.exponent - 1))

    def log_tile(self, block: Block, out: Array) -> None:
        def multiple(block: Block, out: Array) -> None:
            self.inner.log_tile(block, out)
            out *= block.dtype.type(self.exponent)

        precisely(self, multiple, block, out, self._size(block) if self.inner.exact_log else 1.0)

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        self.inner.log_cosine_tile(block, out)
        out *= block.dtype.type(self.exponent)

    @property
    def exact_log(self) -> bool:
        return self.inner.exact_log

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.exponent * self.inner.log_diagonal(points)

    def enclose(self, x: Any, z: Any) -> Interval:
        return self.inner.enclose(x, z) ** self.exponent

    def conclusion(self, *premises: Proof) -> Proof:
        factors = f"n = {self.exponent} equal factors"
        return PRODUCT(self, *premises, condition=factors, amplification=self.exponent)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import PowerMap

        return PowerMap(self.inner.features(d, index=index), self.exponent, index=index)

    def __repr__(self) -> str:
        return f"{inside(self.inner, ATOM)} ** {self.exponent}"


class Poly(_Entrywise):
    """q(k(x, z)) = Σₙ aₙ k(x, z)ⁿ with aₙ ≥ 0.

    >>> import mercer as mc
    >>> mc.Poly(mc.Linear(), [1.0, 2.0]).diag([[3.0]])
    array([19.])
    """

    about: ClassVar[About] = About(
        "Σₙ aₙ k(x, z)ⁿ",
        "Every power with its own weight: k.poly([a0, a1, …]).",
        "Linear().poly([1.0, 0.5, 0.25])",
        arguments={"coefficients": Argument("aₙ", "≥ 0, one per power")},
    )

    kernel: Any
    coefficients: Any = nonnegative(vector=True)

    def __post_init__(self) -> None:
        values = np.atleast_1d(np.asarray(getattr(self.coefficients, "value", self.coefficients), dtype=object))
        for n, a in enumerate(values):
            if isinstance(a, (int, float)) and a < 0:
                raise RuleBroken(
                    "Rule q(k): every coefficient must be ≥ 0",
                    got=f"{a} for k^{n}",
                    advice="Drop the term, or test the expression as mc.FromFunction with mc.refute.",
                )
        super().__post_init__()

    def check(self) -> None:
        super().check()
        self._set(coefficients=np.atleast_1d(self.coefficients))
        if not np.any(self.coefficients > 0):
            raise RuleBroken(
                "Rule q(k): some coefficient must be > 0", got="all zero", advice="Pass at least one coefficient > 0."
            )

    @property
    def amplification(self) -> float:
        return self.inner.amplification * max(int(np.flatnonzero(self.coefficients)[-1]), 1)

    def _apply(self, tile: Array) -> None:
        tile[...] = _horner(self.coefficients, tile)

    def _slope(self, tile: Array) -> Array:
        a = self.coefficients
        return _horner(a[1:] * np.arange(1, len(a)), tile) if len(a) > 1 else np.zeros_like(tile)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        wide = block.values(self.inner).astype(np.float64)
        by_coefficient = []
        if len(self.theta) > len(self.inner.theta):
            by_coefficient = [a * np.vdot(G, wide**n) for n, a in enumerate(self.coefficients) if a > 0]
        return np.concatenate([by_coefficient, self.inner.tile_gradient(block, G * self._slope(wide))])

    def enclose(self, x: Any, z: Any) -> Interval:
        k = self.inner.enclose(x, z)
        return reduce(lambda total, a: total * k + float(a), self.coefficients[::-1], k * 0.0)

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.inner.tags, normalised=False, universal=False)

    def conclusion(self, *premises: Proof) -> Proof:
        condition = f"coefficients {show(self.coefficients)} ≥ 0"
        degree = len(self.coefficients) - 1
        return POLYNOMIAL(self, *premises, condition=condition, amplification=max(degree, 1))

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ConstantMap, PowerMap, ScaledMap, StackedMap

        phi = self.inner.features(d, index=index)
        terms = [
            ScaledMap(PowerMap(phi, n, index=index) if n else ConstantMap(phi), float(a))
            for n, a in enumerate(self.coefficients)
            if a > 0
        ]
        return StackedMap(tuple(terms))

    def __repr__(self) -> str:
        return f"Poly({self.inner!r}, {show(self._wrapped('coefficients'))})"


def _horner(coefficients: NDArray[np.float64], k: Array) -> Array:
    total = np.full_like(k, coefficients[-1])
    for a in coefficients[-2::-1]:
        total *= k
        total += k.dtype.type(a)
    return total
