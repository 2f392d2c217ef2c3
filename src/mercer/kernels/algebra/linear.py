"""Sums, products and positive multiples of kernels, and products of weights."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.algebra.nodes import Node, inside, operand
from mercer.kernels.algebra.parameters import Units, positive, show
from mercer.kernels.algebra.proof import MULTIPLE, PRODUCT, SUM, Proof
from mercer.kernels.base import PLUS, POWER, TIMES, Kernel, Tags, Weight
from mercer.kernels.block import Block, Pair
from mercer.validation import is_number

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval
    from mercer.kernels.vectors.spectra import SpectralTerm


def operands(kernels: Any, rule: str) -> tuple[Kernel, ...]:
    if not isinstance(kernels, (tuple, list)) or not kernels:
        raise RuleBroken(f"{rule}: operands must be a tuple of kernels", got=repr(kernels), advice="Pass (k1, k2).")
    return tuple(operand(k, rule) for k in kernels)


def all_of(tags: list[Tags]) -> Tags:
    """The tags of a combination: those that all its parts have."""
    orders = [t.cpd_order for t in tags]
    return Tags(
        stationary=all(t.stationary for t in tags),
        radial=all(t.radial for t in tags),
        normalised=all(t.normalised for t in tags),
        nonnegative=all(t.nonnegative for t in tags),
        finite_rank=all(t.finite_rank for t in tags),
        cpd_order=None if None in orders else max(o for o in orders if o is not None),
    )


def sum_of(arrays: Any) -> NDArray[np.float64]:
    return reduce(operator.add, arrays)


class Joined(Node):
    """A sum or a product of several parts."""

    kernels: tuple[Any, ...]

    @property
    def vanishes_at_origin_only(self) -> bool:
        return all(part.vanishes_at_origin_only for part in self.parts)

    def narrowed(self, share: float) -> Kernel | None:
        parts = [part.narrowed(share) for part in self.parts]
        return None if None in parts else Product(tuple(parts))


class _Product(Joined):
    """Tiles multiplied."""

    kernels: tuple[Any, ...]
    precedence: ClassVar[int] = TIMES

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return self.joint_term(columns)

    @property
    def scale_factors(self) -> NDArray[np.bool_] | None:
        """Those of the first factor that has some."""
        masks = [part.scale_factors for part in self.parts]
        first = next((i for i, mask in enumerate(masks) if mask is not None), None)
        if first is None:
            return None
        others = [np.zeros(len(part.theta), dtype=bool) for part in self.parts]
        return np.concatenate([*others[:first], masks[first], *others[first + 1 :]])

    def tile(self, block: Block, out: Array) -> None:
        block.evaluate(self.parts[0], out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            block.evaluate(part, scratch)
            out *= scratch

    def log_tile(self, block: Block, out: Array) -> None:
        self.parts[0].log_tile(block, out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            part.log_tile(block, scratch)
            out += scratch

    @property
    def exact_log(self) -> bool:
        return all(part.exact_log for part in self.parts)

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        self.parts[0].log_cosine_tile(block, out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            part.log_cosine_tile(block, scratch)
            out += scratch

    def log_size(self, points: Points) -> float:
        return sum(part.log_size(points) for part in self.parts)

    def log_cosine_size(self, points: Points) -> float:
        return sum(part.log_cosine_size(points) for part in self.parts)

    @property
    def amplification(self) -> float:
        return sum(part.amplification for part in self.parts)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return reduce(operator.mul, (part.diagonal(points) for part in self.parts))

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return reduce(operator.add, (part.log_diagonal(points) for part in self.parts))

    def _adjoints(self, block: Block, G: Array) -> list[Array]:
        """G times the product of all other factors, for every factor."""
        filled = [block.values(part) for part in self.parts]
        return [reduce(operator.mul, filled[:i] + filled[i + 1 :], G) for i in range(len(filled))]

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        adjoints = self._adjoints(block, G)
        return np.concatenate([part.tile_gradient(block, A) for part, A in zip(self.parts, adjoints)])

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        adjoints = self._adjoints(block, G)
        return sum_of(part.tile_input_gradient(block, A) for part, A in zip(self.parts, adjoints))

    def enclose(self, x: Any, z: Any) -> Interval:
        return reduce(operator.mul, (part.enclose(x, z) for part in self.parts))

    def __repr__(self) -> str:
        if any(isinstance(part, _Product) for part in self.parts) or len(self.parts) == 1:
            return f"{type(self).__name__}(({', '.join(map(repr, self.parts))},))"
        return " * ".join([inside(self.parts[0], TIMES), *(inside(p, POWER) for p in self.parts[1:])])


class Product(_Product, Kernel):
    """k₁(x, z) · k₂(x, z) · …

    >>> import mercer as mc
    >>> mc.Linear() * mc.Linear() == mc.Product((mc.Linear(), mc.Linear()))
    True
    """

    about: ClassVar[About] = About("Πᵢ kᵢ(x, z)", "Both similarities are needed: k1 * k2.", "Linear() * Gaussian(1.0)")

    kernels: tuple[Any, ...]

    def check(self) -> None:
        self._set(kernels=operands(self.kernels, "Rule k₁ · k₂"))
        super().check()

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        parts = [part.tags for part in self.parts]
        return replace(all_of(parts), universal=all(tags.universal for tags in parts))

    def conclusion(self, *premises: Proof) -> Proof:
        return PRODUCT(self, *premises)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import TensorMap

        return TensorMap(tuple(part.features(d, index=index) for part in self.parts))


class WeightProduct(_Product, Weight):
    """A product weight, local in every column on which a factor is.

    >>> import mercer as mc
    >>> w = mc.Epanechnikov(1.0).on(0) * mc.Uniform(2.0).on(1)
    >>> w([[0.0, 0.0]], [[0.5, 1.0]])
    array([[0.75]])
    """

    about: ClassVar[About] = About(
        "Πᵢ wᵢ(x, z)",
        "A weight that is local in every column: w1 * w2.",
        "Epanechnikov(2.0).on(0) * Tricube(3.0).on(1)",
        arguments={"kernels": Argument("wᵢ", "tuple of weights")},
    )

    kernels: tuple[Any, ...]

    def check(self) -> None:
        if (
            not isinstance(self.kernels, tuple)
            or not all(isinstance(w, Weight) for w in self.kernels)
            or not self.kernels
        ):
            raise InvalidInput(
                "A product weight must be made of weights", got=repr(self.kernels), advice="Write w1 * w2."
            )
        super().check()

    def conclusion(self, *premises: Proof) -> Proof:
        return Weight.derivation(self)


class Sum(Joined, Kernel):
    """k₁(x, z) + k₂(x, z) + …

    >>> import mercer as mc
    >>> (mc.Linear() + 1.0)([[1.0], [2.0]])
    array([[2., 3.],
           [3., 5.]])
    """

    about: ClassVar[About] = About("Σᵢ kᵢ(x, z)", "Either similarity counts: k1 + k2.", "Linear() + Gaussian(1.0)")

    kernels: tuple[Any, ...]
    precedence: ClassVar[int] = PLUS

    def check(self) -> None:
        self._set(kernels=operands(self.kernels, "Rule k₁ + k₂"))
        super().check()

    def tile(self, block: Block, out: Array) -> None:
        block.evaluate(self.parts[0], out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            block.evaluate(part, scratch)
            out += scratch

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return reduce(operator.add, (part.diagonal(points) for part in self.parts))

    def distance_tile(self, block: Block, out: Array) -> None:
        """Features are stacked: squares add."""
        self.parts[0].distance_tile(block, out)
        scratch = block.scratch()
        for part in self.parts[1:]:
            part.distance_tile(block, scratch)
            out += scratch

    def distance_size(self, points: Points) -> float:
        return sum(part.distance_size(points) for part in self.parts)

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return [term for part in self.parts for term in part.terms(columns)]

    @property
    def scale_factors(self) -> NDArray[np.bool_] | None:
        """Those of all parts, if all have some."""
        masks = [mask for part in self.parts if (mask := part.scale_factors) is not None]
        return np.concatenate(masks) if len(masks) == len(self.parts) else None

    def spectral_terms(self, d: int) -> tuple[SpectralTerm, ...]:
        """Densities add, if all of them are known."""
        parts = [part.spectral_terms(d) for part in self.parts]
        return tuple(term for terms in parts for term in terms) if all(parts) else ()

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.concatenate([part.tile_gradient(block, G) for part in self.parts])

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return sum_of(part.tile_input_gradient(block, G) for part in self.parts)

    def enclose(self, x: Any, z: Any) -> Interval:
        return reduce(operator.add, (part.enclose(x, z) for part in self.parts))

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        parts = [part.tags for part in self.parts]
        return replace(all_of(parts), normalised=False, universal=any(tags.universal for tags in parts))

    def conclusion(self, *premises: Proof) -> Proof:
        return SUM(self, *premises)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import StackedMap

        return StackedMap(tuple(part.features(d, index=index) for part in self.parts))

    def __repr__(self) -> str:
        if any(isinstance(part, Sum) for part in self.parts) or len(self.parts) == 1:
            return f"Sum(({', '.join(map(repr, self.parts))},))"
        return " + ".join([repr(self.parts[0]), *(inside(p, TIMES) for p in self.parts[1:])])


class Scaled(Node, Kernel):
    """c · k(x, z) with c > 0.

    >>> import mercer as mc
    >>> (0.5 * mc.Gaussian(1.0)).diag([[0.0]])
    array([0.5])
    """

    about: ClassVar[About] = About(
        "c·k(x, z)",
        "The weight of a term in a sum: c * k.",
        "0.5 * Gaussian(1.0)",
        arguments={"scale": Argument("c")},
    )

    scale: float = positive()
    kernel: Any = None
    units: ClassVar[Units] = {"scale": "factor"}
    precedence: ClassVar[int] = TIMES

    def __post_init__(self) -> None:
        value = getattr(self.scale, "value", self.scale)
        if is_number(value) and not value > 0:
            raise RuleBroken(
                "Rule c·k: the factor must be > 0",
                got=value,
                advice="Leave the term out, since only positive multiples of kernels are kernels, or test it as a "
                "mc.FromFunction with mc.refute.",
            )
        super().__post_init__()

    def check(self) -> None:
        self._set(kernel=operand(self.kernel, "Rule c·k"))

    def tile(self, block: Block, out: Array) -> None:
        block.evaluate(self.kernel, out)
        out *= block.dtype.type(self.scale)

    def fill(self, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
        bounded = self.kernel.tags.bounded
        with np.errstate(over="ignore"):
            scale = pair.dtype.type(self.scale)
        require_finite(np.array([scale]), self)

        def scaled(part: Array) -> None:
            with np.errstate(over="ignore"):
                part *= scale
            if not bounded:
                require_finite(part, self)
            if finish is not None:
                finish(part)

        return self.kernel.fill(pair, out, scaled)

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        return self.scale * self.kernel.multiply(pair, V)

    def log_tile(self, block: Block, out: Array) -> None:
        self.kernel.log_tile(block, out)
        out += block.dtype.type(np.log(self.scale))

    @property
    def exact_log(self) -> bool:
        return bool(self.kernel.exact_log)

    def log_cosine_tile(self, block: Block, out: Array) -> None:
        self.kernel.log_cosine_tile(block, out)

    def log_size(self, points: Points) -> float:
        return abs(float(np.log(self.scale))) + float(self.kernel.log_size(points))

    def log_cosine_size(self, points: Points) -> float:
        return float(self.kernel.log_cosine_size(points))

    def distance_tile(self, block: Block, out: Array) -> None:
        self.kernel.distance_tile(block, out)
        out *= block.dtype.type(self.scale)

    def distance_size(self, points: Points) -> float:
        return self.scale * float(self.kernel.distance_size(points))

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        terms: list[set[str]] = self.kernel.terms(columns)
        return terms

    def spectral_terms(self, d: int) -> tuple[SpectralTerm, ...]:
        return tuple(term.times(self.scale) for term in self.kernel.spectral_terms(d))

    @property
    def vanishes_at_origin_only(self) -> bool:
        return all(part.vanishes_at_origin_only for part in self.parts)

    def narrowed(self, share: float) -> Kernel | None:
        narrow: Kernel | None = self.kernel.narrowed(share)
        return narrow

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.scale * self.kernel.diagonal(points)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.log(self.scale) + self.kernel.log_diagonal(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        by_scale = []
        if len(self.theta) > len(self.kernel.theta):
            by_scale = [np.vdot(G, block.values(self).astype(np.float64))]
        return np.concatenate([by_scale, self.kernel.tile_gradient(block, self.scale * G)])

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return self.scale * self.kernel.tile_input_gradient(block, G)

    def enclose(self, x: Any, z: Any) -> Interval:
        return self.kernel.enclose(x, z) * self.scale

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.kernel.tags, normalised=False)

    def conclusion(self, *premises: Proof) -> Proof:
        return MULTIPLE(self, *premises, condition=f"c = {self.scale:g} > 0")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ScaledMap

        return ScaledMap(self.kernel.features(d, index=index), self.scale)

    def __repr__(self) -> str:
        if isinstance(self.kernel, Scaled) or "scale" in self.fixed:
            return f"Scaled({show(self._wrapped('scale'))}, {self.kernel!r})"
        return f"{show(self.scale)} * {inside(self.kernel, POWER)}"
