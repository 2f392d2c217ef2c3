"""Compact smoothing weights, for Nadaraya-Watson, local regression and densities; they are not kernels.

Each is a profile of u = ‖x − z‖²/σ² that vanishes for u > 1, with peak 1. Their Fourier transforms change sign, so
they are not positive semidefinite; only the triangular one is, and only on a line (Pólya).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import reduce
from operator import mul
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
    from mercer.kernels.vectors.densities import Density

LOCAL = Tags(stationary=True, radial=True, normalised=True, nonnegative=True, cpd_order=None)


class Compact(Radial, Weight):  # type: ignore[override]
    """(1 − r^q)^p for r ≤ 1, else 0: a piecewise polynomial of r = ‖x − z‖/σ, as a function of u = r²."""

    sigma: Any = positive(1.0, vector=True)
    family: ClassVar[Tags] = LOCAL

    @property
    @abstractmethod
    def q(self) -> int:
        """The exponent of r."""

    @property
    @abstractmethod
    def p(self) -> int:
        """The exponent of 1 − r^q."""

    @property
    def density(self) -> Density:
        from mercer.kernels.vectors.densities import CompactDensity

        return CompactDensity(self.q, self.p)

    @property
    def variance(self) -> float:
        """The variance of the profile as a density on a line, for σ = 1."""
        return self.density.variance(1)

    def _base(self, u: Any, root: Any) -> Any:
        """1 − r^q from u = r², with a function for the square root."""
        return 1 - (u if self.q == 2 else root(u) if self.q == 1 else u * root(u))

    def _shape(self, u: Array) -> Array:
        """φ on [0, 1]."""
        return np.asarray(_power(self._base(u, np.sqrt), self.p)) if self.p else np.ones_like(u)

    def _shape_slope(self, u: Array) -> Array:
        """φ' = −(pq/2) u^(q/2 − 1) (1 − u^(q/2))^(p − 1) on [0, 1]."""
        if self.p == 0:
            return np.zeros_like(u)
        slope = -0.5 * self.p * self.q * _power(self._base(u, np.sqrt), self.p - 1)
        if self.q == 1:
            slope /= np.sqrt(np.where(u > 0, u, 1.0))
        return np.asarray(slope * np.sqrt(u) if self.q == 3 else slope)

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
        from mercer.kernels.validity.interval import Interval

        u = self._squared(x, z)
        return _power(self._base(u, Interval.sqrt), self.p) if u.upper <= 1 else u * 0

    def derivation(self) -> Proof:
        return Unproven(self, "a smoothing weight, not a kernel: its Fourier transform changes sign")


def _power(base: Any, n: int) -> Any:
    """baseⁿ of an array or an interval, by multiplication."""
    return reduce(mul, [base] * n) if n else base * 0 + 1


class Uniform(Compact):
    """1 for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Uniform(1.0)([[0.0]], [[0.9], [1.1]])
    array([[1., 0.]])
    """

    about: ClassVar[About] = About(
        "1 for r ≤ 1, else 0, r = ‖x − z‖/σ", "Plain averages over a ball.", "Uniform(sigma=1.0)"
    )

    sigma: Any = positive(1.0, vector=True)
    q: ClassVar[int] = 1
    p: ClassVar[int] = 0

    def squared(self) -> Uniform:
        return self


class Triangular(Compact):
    """1 − ‖x − z‖/σ for ‖x − z‖ ≤ σ, else 0. A kernel on a line (d = 1), only a weight from d = 2 on.

    >>> import mercer as mc
    >>> mc.Triangular(2.0)([[0.0]], [[1.0]])
    array([[0.5]])
    >>> mc.Triangular(2.0).proof(dim=1).valid, mc.Triangular(2.0).proof(dim=2).valid
    (True, False)
    """

    about: ClassVar[About] = About(
        "max(1 − r, 0), r = ‖x − z‖/σ", "Local averages without jumps; a kernel on a line.", "Triangular(sigma=1.0)"
    )

    sigma: Any = positive(1.0, vector=True)
    q: ClassVar[int] = 1
    p: ClassVar[int] = 1

    def proof(self, dim: int | None = None) -> Proof:
        if dim == 1:
            return Axiom(self, "Pólya: convex, decreasing, even on a line", condition="d = 1", reference="Pólya 1949")
        return Unproven(self, "a kernel on a line only: see proof(dim=1); refuted from d = 2 on")


class Epanechnikov(Compact):
    """1 − ‖x − z‖²/σ² for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Epanechnikov(2.0)([[0.0]], [[1.0]])
    array([[0.75]])
    """

    about: ClassVar[About] = About(
        "max(1 − r², 0), r = ‖x − z‖/σ", "The weight of least asymptotic error in smoothing.", "Epanechnikov(sigma=1.0)"
    )

    sigma: Any = positive(1.0, vector=True)
    q: ClassVar[int] = 2
    p: ClassVar[int] = 1

    def squared(self) -> Biweight:
        return Biweight(self.sigma)


class Biweight(Compact):
    """(1 − ‖x − z‖²/σ²)² for ‖x − z‖ ≤ σ, else 0.

    >>> import mercer as mc
    >>> mc.Biweight(2.0)([[0.0]], [[1.0]])
    array([[0.5625]])
    """

    about: ClassVar[About] = About(
        "max(1 − r², 0)², r = ‖x − z‖/σ", "Smoothers and densities with a continuous slope.", "Biweight(sigma=1.0)"
    )

    sigma: Any = positive(1.0, vector=True)
    q: ClassVar[int] = 2
    p: ClassVar[int] = 2


class Tricube(Compact):
    """(1 − ‖x − z‖³/σ³)³ for ‖x − z‖ ≤ σ, else 0: the weight of lowess.

    >>> import mercer as mc
    >>> mc.Tricube(2.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6699]])
    """

    about: ClassVar[About] = About("max(1 − r³, 0)³, r = ‖x − z‖/σ", "The weight of lowess.", "Tricube(sigma=1.0)")

    sigma: Any = positive(1.0, vector=True)
    q: ClassVar[int] = 3
    p: ClassVar[int] = 3
