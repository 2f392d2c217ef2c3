"""Kernels of the inner product ⟨x, z⟩: linear, polynomial, xᵀAz, and tanh, which is not a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.elementwise import whole_power
from mercer.kernels.algebra.parameters import Units, nonnegative, positive, real, show
from mercer.kernels.algebra.proof import BILINEAR, POLYNOMIAL, Axiom, Proof, Unproven
from mercer.kernels.algebra.rounding import precise, precisely, require_power
from mercer.kernels.base import Indefinite, Kernel, Similarity, Tags
from mercer.kernels.block import Block, squared_norms
from mercer.validation import is_number, real_numbers

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class _Dot(Similarity):
    """h(⟨x, z⟩) for a scalar function h."""

    @abstractmethod
    def _apply(self, s: Array) -> None:
        """Replace ⟨x, z⟩ by h(⟨x, z⟩), in place."""

    @abstractmethod
    def _slope(self, s: Array) -> Array:
        """h'(⟨x, z⟩)."""

    def tile(self, block: Block, out: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            block.dot(out)
            self._apply(out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        diagonal = squared_norms(points.vectors())
        with np.errstate(over="ignore"):
            self._apply(diagonal)
        return diagonal

    def _slopes(self, block: Block, G: Array) -> Array:
        """Gᵢⱼ h'(⟨xᵢ, zⱼ⟩)."""
        return np.asarray(G * self._slope(precise(self, block, self.amplification).dot().astype(np.float64)))

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        _, z = block.vectors()
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._slopes(block, G) @ z)


class Linear(_Dot, Kernel):
    """⟨x, z⟩ = xᵀz.

    >>> import mercer as mc
    >>> mc.Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    about: ClassVar[About] = About("xᵀz", "Linear models: ridge, linear SVM, PCA in the dual.", "Linear()")

    tags: ClassVar[Tags] = Tags(finite_rank=True)
    vanishes_at_origin_only: ClassVar[bool] = True

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return [{column} for column in columns]

    def _apply(self, s: Array) -> None:
        """h is the identity."""

    def _slope(self, s: Array) -> Array:
        return np.ones_like(s)

    def distance_tile(self, block: Block, out: Array) -> None:
        block.sqdist(out)

    def distance_size(self, points: Points) -> float:
        return 0.0

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import dot

        return dot(x, z)

    def derivation(self) -> Proof:
        return Axiom(self, "inner product: phi(x) = x", reference="Bishop 2006, (6.1)")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import IdentityMap

        return IdentityMap(d)


class Polynomial(_Dot, Kernel):
    """(⟨x, z⟩ + c)ᵖ with a whole degree p ≥ 1 and c ≥ 0; homogeneous for c = 0.

    Its features are all monomials of degree p (c = 0) or at most p (c > 0), with multinomial weights.

    >>> import mercer as mc
    >>> mc.Polynomial(2, c=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    >>> mc.Polynomial(4, c=1.0).features(784).dimension
    15943435565
    """

    about: ClassVar[About] = About(
        "(xᵀz + c)ᵖ",
        "Interactions of up to p columns, without making them.",
        "Polynomial(degree=2, c=1.0)",
        arguments={"degree": Argument("p", "whole number ≥ 1")},
    )

    degree: int
    c: float = nonnegative(0.0)
    units: ClassVar[Units] = {"c": "product"}
    tags: ClassVar[Tags] = Tags(finite_rank=True)
    vanishes_at_origin_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        value = getattr(self.c, "value", self.c)
        if isinstance(value, (int, float, np.integer, np.floating)) and value < 0:
            raise RuleBroken(
                "Rule q(k): the offset `c` of a polynomial kernel must be ≥ 0",
                got=value,
                advice="Choose c ≥ 0: (⟨x,z⟩ − 1)² is not a kernel, as mc.refute shows.",
            )
        super().__post_init__()

    def check(self) -> None:
        p: Any = self.degree
        if not is_number(p) or (not isinstance(p, int) and not float(p).is_integer()) or p < 1:
            raise RuleBroken(
                "Rule q(k): the `degree` of a polynomial kernel must be a whole number ≥ 1",
                got=show(p),
                advice="Choose a whole degree: (⟨x,z⟩ + 1)^0.5 is not a kernel, as mc.refute shows.",
            )
        self._set(degree=int(p))
        require_power(self, "Rule q(k)", "degree", self.degree)

    @property
    def amplification(self) -> float:
        return float(self.degree)

    def tile(self, block: Block, out: Array) -> None:
        precisely(self, super().tile, block, out, self.amplification)

    def _apply(self, s: Array) -> None:
        s += s.dtype.type(self.c)
        whole_power(s, self.degree)

    def _slope(self, s: Array) -> Array:
        base = s + s.dtype.type(self.c)
        whole_power(base, self.degree - 1)
        return np.asarray(self.degree * base)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if not len(self.theta):
            return np.empty(0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array([self.c * self._slopes(block, G).sum()])

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import dot

        return (dot(x, z) + self.c) ** self.degree

    def derivation(self) -> Proof:
        condition = f"(⟨x,z⟩ + c)ᵖ, p = {self.degree} is a whole number ≥ 1, c = {self.c:g} ≥ 0"
        return POLYNOMIAL(self, Linear().proof(), condition=condition)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import MonomialMap

        return MonomialMap(d, self.degree, self.c, index=index)


@dataclass(frozen=True)
class Transformed:
    """The data set times a matrix, X F."""

    key: bytes
    shape: tuple[int, int]
    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        X, F = points.vectors(), self.matrix
        if X.shape[1] != F.shape[0]:
            raise InvalidInput(
                f"Points must have {F.shape[0]} columns, like A", got=X.shape[1], advice="Check the columns of X."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(X.astype(np.float64) @ F)

    @property
    def matrix(self) -> NDArray[np.float64]:
        return np.frombuffer(self.key).reshape(self.shape)


class Bilinear(Kernel):
    """xᵀ A z with A symmetric positive semidefinite.

    >>> import mercer as mc
    >>> mc.Bilinear([[2.0, 0.0], [0.0, 1.0]])([[1.0, 2.0]], [[3.0, 4.0]]).round(12)
    array([[14.]])
    """

    about: ClassVar[About] = About(
        "xᵀA z",
        "A metric known beforehand, such as an inverse covariance.",
        "Bilinear([[2.0, 1.0], [1.0, 2.0]])",
        arguments={"A": Argument(domain="symmetric positive semidefinite matrix")},
    )

    A: Any
    tags: ClassVar[Tags] = Tags(finite_rank=True)

    def check(self) -> None:
        rule = "Rule xᵀAz: A must be a symmetric positive semidefinite matrix"
        try:
            A = np.array(real_numbers(self.A.toarray() if sp.issparse(self.A) else self.A), dtype=np.float64)
        except (TypeError, ValueError):
            raise RuleBroken(rule, got=repr(self.A), advice="Pass a matrix of real numbers.") from None
        if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0 or not np.isfinite(A).all():
            raise RuleBroken(rule, got=f"an array of shape {A.shape}", advice="Pass a finite square matrix.")
        if not np.allclose(A, A.T, rtol=1e-12, atol=1e-12 * np.abs(A).max()):
            raise RuleBroken(rule, got="an asymmetric matrix", advice="Pass (A + A.T)/2, of the same quadratic form.")
        values, vectors = np.linalg.eigh(A / 2 + A.T / 2)
        if not np.isfinite(values).all():
            raise RuleBroken(
                rule,
                got=f"entries up to {np.abs(A).max():.3g}",
                advice="Divide A by a constant: its eigenvalues overflow.",
            )
        tolerance = len(A) * np.finfo(np.float64).eps * max(abs(values[0]), abs(values[-1]))
        if values[0] < -tolerance:
            raise RuleBroken(
                rule,
                got=f"smallest eigenvalue {values[0]:.6g}",
                advice="Pass mc.repair(A).K, the nearest valid matrix.",
            )
        A.flags.writeable = False
        factor = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        self._set(A=A, _smallest=float(values[0]), _root=Transformed(factor.tobytes(), factor.shape))

    @property
    def _view(self) -> Transformed:
        """The data times √A: made once, because hashing its bytes takes time."""
        view: Transformed = self._root  # type: ignore[attr-defined]
        return view

    def touch(self, points: Points) -> None:
        points.view(self._view)

    def tile(self, block: Block, out: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            block.view(self._view).dot(out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return squared_norms(points.view(self._view).vectors())

    def distance_tile(self, block: Block, out: Array) -> None:
        block.view(self._view).sqdist(out)

    def distance_size(self, points: Points) -> float:
        # √A x is rounded by ε‖√A x‖, and with it a distance: its square by about ε‖√A x‖ + (ε‖√A x‖)².
        with np.errstate(over="ignore"):
            norm = float(np.sqrt(np.abs(self.diagonal(points)).max()))
        return norm * (1.0 + float(np.finfo(np.float64).eps) * norm)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        _, z = block.vectors()
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(G @ (z @ self.A))

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        # Through √A, as in `tile`, so that the enclosed matrix is exactly positive semidefinite.
        columns = [[Fraction(f) for f in column] for column in self._view.matrix.T.tolist()]
        images = ([sum((Fraction(p) * f for p, f in zip(v, c)), Fraction(0)) for c in columns] for v in (x, z))
        return exactly(sum((a * b for a, b in zip(*images)), Fraction(0)))

    def derivation(self) -> Proof:
        condition = f"A is symmetric, smallest eigenvalue {self._smallest:.3g} ≥ 0 to rounding"  # type: ignore[attr-defined]
        return BILINEAR(self, Linear().proof(), condition=condition)

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import LinearMap

        if d != len(self.A):
            raise InvalidInput(
                f"A has {len(self.A)} columns, so d must be {len(self.A)}", got=d, advice=f"Pass d={len(self.A)}."
            )
        return LinearMap(self._view.matrix)

    def __repr__(self) -> str:
        return f"Bilinear({show(self.A)})"


class Tanh(_Dot, Indefinite):
    """tanh(scale·⟨x, z⟩ + offset): often called the sigmoid kernel, though it is not a kernel.

    Its Taylor coefficients are not all ≥ 0, so it is not positive semidefinite; `mc.refute` finds points that show it.
    The algebra refuses it, and so do models that need a Hilbert space; `SVC` and `SVR` accept it with a warning.

    >>> import mercer as mc
    >>> mc.refute(mc.Tanh(1.0, -1.0), dim=2).refuted
    True
    """

    about: ClassVar[About] = About(
        "tanh(a·xᵀz + b)",
        "Comparing with other software; it is not positive semidefinite.",
        "Tanh(scale=1.0, offset=-1.0)",
        arguments={"scale": Argument("a"), "offset": Argument("b")},
    )

    scale: float = positive(1.0)
    offset: float = real(-1.0)
    tags: ClassVar[Tags] = Tags(cpd_order=None)

    @property
    def instead(self) -> str:
        return "Take a kernel such as mc.Polynomial or mc.ArcCosine; mc.SVC and mc.SVR accept Tanh by itself."

    def _apply(self, s: Array) -> None:
        s *= s.dtype.type(self.scale)
        s += s.dtype.type(self.offset)
        np.tanh(s, out=s)

    def _slope(self, s: Array) -> Array:
        return np.asarray(self.scale * (1.0 - np.tanh(self.scale * s + self.offset) ** 2))

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            s = np.clip(block.dot().astype(np.float64), -1e300, 1e300)  # where the slope is 0, not 0 · ∞
            return np.full(len(self.theta), np.vdot(G, self._slope(s) * s))

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import dot

        return (dot(x, z) * self.scale + self.offset).tanh()

    def derivation(self) -> Proof:
        return Unproven(self, "not a kernel: the Taylor coefficients of tanh are not all ≥ 0")
