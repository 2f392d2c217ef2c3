"""Radial functions that are kernels only beside a polynomial: thin plates, polyharmonic splines, multiquadrics.

φ is conditionally positive definite of order m if cᵀΦc ≥ 0 for all coefficients with Σ cᵢ p(xᵢ) = 0 for every
polynomial p of degree < m. Such a φ serves functions with a polynomial tail of degree m − 1 that is not penalised: RBF
networks and interpolation. In every dimension it is sufficient that (−1)ᵐ times the m-th derivative of φ(√t) is
completely monotone (Micchelli 1986).

    −r: 1     r² log r: 2     r³: 2     −r⁴ log r: 3     −r⁵: 3     −√(1 + r²/σ²): 1

Their positive definite relatives are rational quadratics, kernels like any other: the inverse multiquadric
1/√(1 + r²/σ²) is `RationalQuadratic(σ, alpha=0.5)`, the inverse quadratic 1/(1 + r²/σ²) is
`RationalQuadratic(σ/√2, alpha=1.0)`.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.elementwise import whole_power
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Proof
from mercer.kernels.base import Indefinite, Kind, Tags
from mercer.kernels.vectors.radial import Radial
from mercer.validation import check_whole_number

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

HIGHEST_DEGREE = 20
"""The highest degree of a spline: beyond it powers of distances differ by more than a float holds."""


class ConditionalKernel(Indefinite):
    """A similarity that is positive definite only on coefficients that vanish on polynomials of degree < `order`.

    It needs a polynomial tail of degree order − 1 beside it.
    """

    kind: ClassVar[Kind] = "conditional"

    @property
    @abstractmethod
    def order(self) -> int:
        """m, the order of conditional positive definiteness; the tail has degree m − 1."""

    def derivation(self) -> Proof:
        """The theorem, and why this is not a kernel: `valid` is False, because a polynomial is needed beside it."""
        m = self.order
        return Proof(
            str(self),
            f"conditionally positive definite of order {m}, not a kernel by itself",
            condition=f"cᵀKc ≥ 0 if Σ cᵢ p(xᵢ) = 0 for every polynomial p of degree < {m}",
            reference=f"Micchelli 1986: (−1)^{m} dᵐφ(√t)/dtᵐ is completely monotone",
            kind="unproven",
        )

    @property
    def instead(self) -> str:
        return (
            f"It is conditionally positive definite of order {self.order} and needs a polynomial tail of degree "
            f"{self.order - 1}: pass it unchanged to mc.RBFNetwork."
        )


def _width(*, free: bool) -> Any:
    """The field `sigma`, by keyword only if the degree comes first."""
    return dataclasses.field(default=1.0, kw_only=True, metadata=positive(1.0, vector=True, free=free).metadata)


class _RadialSpline(Radial, ConditionalKernel):
    """A conditionally positive definite profile φ(u), u = ‖x − z‖²/σ²."""

    sigma: Any = positive(1.0, vector=True)
    family: ClassVar[Tags] = Tags(stationary=True, radial=True)

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return dataclasses.replace(super().tags, cpd_order=self.order)


class _Power(_RadialSpline):
    """±rᵏ for odd k, ±rᵏ log r for even k, r = ‖x − z‖/σ. σ changes only the size of the penalty."""

    sigma: Any = _width(free=False)

    @property
    @abstractmethod
    def exponent(self) -> int:
        """k."""

    @property
    def order(self) -> int:
        return self.exponent // 2 + 1

    @property
    def _sign(self) -> int:
        return 1 if self.order % 2 == 0 else -1

    def _profile(self, sqdist: Array, sigma: float) -> None:
        number = sqdist.dtype.type
        sqdist *= number(1.0 / sigma**2)
        if self.exponent % 2:
            factor = np.sqrt(sqdist)
            factor *= number(self._sign)
        else:
            factor = np.log(np.where(sqdist > 0, sqdist, number(1)))
            factor *= number(0.5 * self._sign)
        whole_power(sqdist, self.exponent // 2)
        sqdist *= factor

    def _slope(self, u: Array) -> Array:
        half, u = self.exponent / 2, np.where(u > 0, u, 1.0)
        if self.exponent % 2:
            return np.asarray(self._sign * half * u ** (half - 1))
        return np.asarray(0.5 * self._sign * u ** (half - 1) * (half * np.log(u) + 1))

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def enclose(self, x: Any, z: Any) -> Interval:
        u = self._squared(x, z)
        if u.upper <= 0:
            return u * 0
        factor = u.sqrt() if self.exponent % 2 else u.log() / 2
        return u ** (self.exponent // 2) * factor * self._sign


class Polyharmonic(_Power):
    """±rᵏ for odd degree k, ±rᵏ log r for even k, r = ‖x − z‖/σ: the surface of least bending energy.

    The signs are those of −r, r² log r, r³, −r⁴ log r, −r⁵: conditionally positive definite of order ⌊k/2⌋ + 1.

    Parameters
    ----------
    degree : int
        k, a whole number from 1 to 20.
    sigma
        The unit of distances, one or one per column. It changes the size of the penalty, not the interpolant.

    References
    ----------
    Wendland, Scattered Data Approximation, 2005, theorems 8.16 and 8.17.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Polyharmonic(3)([[0.0]], [[2.0]]), mc.Polyharmonic(1)([[0.0]], [[2.0]])
    (array([[8.]]), array([[-2.]]))
    >>> mc.Polyharmonic(3).order                                       # so that it needs a linear tail
    2
    """

    about: ClassVar[About] = About(
        "±rᵏ for odd k, ±rᵏ log r for even k, r = ‖x − z‖/σ",
        "Scattered data in any dimension, without a width to choose (mc.RBFInterpolator).",
        "Polyharmonic(3)",
        arguments={"degree": Argument("k", "whole number from 1 to 20")},
    )

    sigma: Any = _width(free=False)
    degree: int = 3

    if TYPE_CHECKING:

        def __init__(self, degree: int = 3, *, sigma: Any = 1.0) -> None: ...

    def check(self) -> None:
        super().check()
        advice = "Choose 1 for −r, 2 for the thin plate r² log r, or 3 for the cubic r³."
        k = check_whole_number(self.degree, "degree", most=HIGHEST_DEGREE, advice=advice, owner="Polyharmonic")
        self._set(degree=k)

    @property
    def exponent(self) -> int:
        return self.degree


class ThinPlate(_Power):
    """r² log r, r = ‖x − z‖/σ: in the plane, the shape of a thin metal plate that is bent through the data. Order 2.

    >>> import mercer as mc
    >>> mc.ThinPlate()([[0.0]], [[1.0], [np.e]]).round(4)
    array([[0.    , 7.3891]])
    >>> print(mc.ThinPlate().proof())
    ThinPlate(sigma=1.0) is NOT proven to be a kernel:
    ThinPlate(sigma=1.0)   [UNPROVEN: conditionally positive definite of order 2, not a kernel by itself; cᵀKc ≥ 0 if \
Σ cᵢ p(xᵢ) = 0 for every polynomial p of degree < 2; Micchelli 1986: (−1)^2 dᵐφ(√t)/dtᵐ is completely monotone]
    """

    about: ClassVar[About] = About(
        "r² log r, r = ‖x − z‖/σ", "Surfaces over the plane of least bending (mc.RBFInterpolator).", "ThinPlate()"
    )

    sigma: Any = positive(1.0, vector=True, free=False)

    @property
    def exponent(self) -> int:
        return 2


class Multiquadric(_RadialSpline):
    """−√(1 + ‖x − z‖²/σ²): Hardy's multiquadric, of order 1; it needs a constant beside it.

    >>> import mercer as mc
    >>> mc.Multiquadric(1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[-1.    , -1.4142]])
    """

    about: ClassVar[About] = About(
        "−√(1 + ‖x − z‖²/σ²)", "Interpolation of scattered data, smooth everywhere.", "Multiquadric(sigma=1.0)"
    )

    sigma: Any = positive(1.0, vector=True)

    @property
    def order(self) -> int:
        return 1

    def _profile(self, sqdist: Array, sigma: float) -> None:
        sqdist *= sqdist.dtype.type(1.0 / sigma**2)
        sqdist += 1
        np.sqrt(sqdist, out=sqdist)
        np.negative(sqdist, out=sqdist)

    def _slope(self, u: Array) -> Array:
        return np.asarray(-0.5 / np.sqrt(1 + u))

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.full(points.n, -1.0)

    def enclose(self, x: Any, z: Any) -> Interval:
        return -(self._squared(x, z) + 1).sqrt()
