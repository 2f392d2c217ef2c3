"""Compact smoothing weights: what Nadaraya-Watson, local regression and densities use, and what is no kernel.

Each is a profile of u = ‖x − z‖²/σ² that vanishes for u > 1, with peak 1. Their Fourier transforms change sign, so
they are not positive semidefinite; only the triangular one is, and only on a line (Pólya).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mercer.data.points import Array
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof, Unproven
from mercer.kernels.base import Tags, Weight
from mercer.kernels.vectors.radial import Radial

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

LOCAL = Tags(stationary=True, radial=True, normalised=True, nonnegative=True, cpd_order=None)


class _Compact(Radial, Weight):  # type: ignore[override]
    """φ(u) on 0 ≤ u ≤ 1, zero beyond."""

    sigma: Any = positive(1.0, vector=True)
    family: ClassVar[Tags] = LOCAL
    variance: ClassVar[float]  # of the profile as a density on a line, for σ = 1

    @abstractmethod
    def _shape(self, u: Array) -> Array:
        """φ on [0, 1]."""

    @abstractmethod
    def _shape_slope(self, u: Array) -> Array:
        """φ' on [0, 1]."""

    @abstractmethod
    def _exact_shape(self, u: Interval) -> Interval:
        """φ of an interval within [0, 1]."""

    def _profile(self, sqdist: Array, sigma: float) -> None:
        with np.errstate(over="ignore"):
            sqdist *= sqdist.dtype.type(1.0 / sigma**2)
        inside = sqdist <= 1
        np.minimum(sqdist, 1, out=sqdist)
        sqdist[...] = self._shape(sqdist)
        sqdist *= inside

    def _slope(self, u: Array) -> Array:
        return np.where(u <= 1, self._shape_slope(np.minimum(u, 1.0)), 0.0)

    def enclose(self, x: Any, z: Any) -> Interval:
        u = self._squared(x, z)
        return self._exact_shape(u) if u.upper <= 1 else u * 0

    def proof(self, dim: int | None = None) -> Proof:
        return Unproven(self, "a smoothing weight, not a kernel: its Fourier transform changes sign")


class Uniform(_Compact):
    """1 for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Uniform(1.0)([[0.0]], [[0.9], [1.1]])
    array([[1., 0.]])
    """

    about: ClassVar[About] = About(
        "1 for r ≤ 1, else 0, r = ‖x − z‖/σ",
        "Plain averages over a ball.",
        "Uniform(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    variance: ClassVar[float] = 1 / 3

    def _shape(self, u: Array) -> Array:
        return np.ones_like(u)

    def _shape_slope(self, u: Array) -> Array:
        return np.zeros_like(u)

    def _exact_shape(self, u: Interval) -> Interval:
        return u * 0 + 1


class Triangular(_Compact):
    """1 − ‖x − z‖/σ for ‖x − z‖ ≤ σ, else 0. A kernel on a line (d = 1), a mere weight from d = 2 on.

    >>> import mercer as mc
    >>> mc.Triangular(2.0)([[0.0]], [[1.0]])
    array([[0.5]])
    >>> mc.Triangular(2.0).proof(dim=1).valid, mc.Triangular(2.0).proof(dim=2).valid
    (True, False)
    """

    about: ClassVar[About] = About(
        "max(1 − r, 0), r = ‖x − z‖/σ",
        "Local averages without jumps; a kernel on a line.",
        "Triangular(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    variance: ClassVar[float] = 1 / 6

    def _shape(self, u: Array) -> Array:
        return np.asarray(1 - np.sqrt(u))

    def _shape_slope(self, u: Array) -> Array:
        return np.asarray(-0.5 / np.sqrt(np.where(u > 0, u, 1.0)))

    def _exact_shape(self, u: Interval) -> Interval:
        return -u.sqrt() + 1

    def proof(self, dim: int | None = None) -> Proof:
        if dim == 1:
            return Axiom(self, "Pólya: convex, decreasing, even on a line", condition="d = 1", reference="Pólya 1949")
        return Unproven(self, "a kernel on a line only: say proof(dim=1) there; refuted from d = 2 on")


class Epanechnikov(_Compact):
    """1 − ‖x − z‖²/σ² for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Epanechnikov(2.0)([[0.0]], [[1.0]])
    array([[0.75]])
    """

    about: ClassVar[About] = About(
        "max(1 − r², 0), r = ‖x − z‖/σ",
        "The weight of least asymptotic error in smoothing.",
        "Epanechnikov(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    variance: ClassVar[float] = 1 / 5

    def _shape(self, u: Array) -> Array:
        return 1 - u

    def _shape_slope(self, u: Array) -> Array:
        return -np.ones_like(u)

    def _exact_shape(self, u: Interval) -> Interval:
        return -u + 1


class Biweight(_Compact):
    """(1 − ‖x − z‖²/σ²)² for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Biweight(2.0)([[0.0]], [[1.0]])
    array([[0.5625]])
    """

    about: ClassVar[About] = About(
        "max(1 − r², 0)², r = ‖x − z‖/σ",
        "Smoothers and densities with a continuous slope.",
        "Biweight(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    variance: ClassVar[float] = 1 / 7

    def _shape(self, u: Array) -> Array:
        return np.square(1 - u)

    def _shape_slope(self, u: Array) -> Array:
        return np.asarray(-2 * (1 - u))

    def _exact_shape(self, u: Interval) -> Interval:
        return (-u + 1) ** 2


class Tricube(_Compact):
    """(1 − ‖x − z‖³/σ³)³ for ‖x − z‖ ≤ σ, else 0: the weight of lowess.

    >>> import mercer as mc
    >>> mc.Tricube(2.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6699]])
    """

    about: ClassVar[About] = About(
        "max(1 − r³, 0)³, r = ‖x − z‖/σ",
        "The weight of lowess.",
        "Tricube(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    variance: ClassVar[float] = 35 / 243

    def _shape(self, u: Array) -> Array:
        cube = 1 - u * np.sqrt(u)
        return cube * cube * cube

    def _shape_slope(self, u: Array) -> Array:
        return np.asarray(-4.5 * np.sqrt(u) * np.square(1 - u * np.sqrt(u)))

    def _exact_shape(self, u: Interval) -> Interval:
        return (-(u * u.sqrt()) + 1) ** 3
