"""The Matérn kernels: Bessel profiles of the distance, with closed forms for ν = ½, 3/2 and 5/2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.points import Array
from mercer.errors import InvalidInput
from mercer.features.base import SpectralDensity
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.radial import Radial

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval
    from mercer.kernels.vectors.densities import Density


class Matern(Radial, Kernel):
    """2^(1−ν)/Γ(ν) tᵛ K_ν(t), t = √(2ν)‖x − z‖/σ: functions that are ⌈ν⌉ − 1 times differentiable.

    ν = ½ is exp(−r), 3/2 is (1 + t)e⁻ᵗ, 5/2 is (1 + t + t²/3)e⁻ᵗ; ν → ∞ is the Gaussian.

    >>> import mercer as mc
    >>> mc.Matern(1.0, nu=1.5)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.
    """

    about: ClassVar[About] = About(
        "2^(1−ν)/Γ(ν) tᵛ K_ν(t), t = √(2ν)‖x − z‖/σ",
        "Rougher functions: ⌈ν⌉ − 1 derivatives; 3/2 and 5/2 are usual in regression.",
        "Matern(sigma=1.0, nu=1.5)",
        arguments={"nu": Argument(domain="> 0, at most 100")},
    )

    sigma: Any = positive(1.0, vector=True)
    nu: float = positive(1.5, free=False)
    spectrum: ClassVar[SpectralDensity] = SpectralDensity.STUDENT

    def check(self) -> None:
        super().check()
        if self.nu > 100:
            raise InvalidInput("`nu` of Matern must be ≤ 100", got=self.nu, advice="Use Gaussian(sigma), its limit.")

    @property
    def _half_integer(self) -> bool:
        return self.nu in (0.5, 1.5, 2.5)

    def _profile(self, sqdist: Array, sigma: float) -> None:
        if self._half_integer:
            _loops.tiles.matern_(sqdist, int(2 * self.nu), 1.0 / sigma)
        else:
            t = np.sqrt(sqdist.astype(np.float64)) * (np.sqrt(2 * self.nu) / sigma)
            sqdist[...] = _bessel_profile(t, self.nu)

    @property
    def _roughness(self) -> float:
        return min(self.nu, 1.0)

    def _slope(self, u: Array) -> Array:
        t = np.sqrt(2 * self.nu * u)
        if self.nu == 0.5:
            return np.asarray(-0.5 * np.exp(-t) / np.where(t > 0, t, 1.0))
        if self.nu == 1.5:
            return np.asarray(-1.5 * np.exp(-t))
        if self.nu == 2.5:
            return np.asarray(-5 / 6 * (1 + t) * np.exp(-t))
        return _bessel_slope(t, self.nu)

    @property
    def density(self) -> Density:
        from mercer.kernels.vectors.densities import MaternDensity

        return MaternDensity(float(self.nu))

    def enclose(self, x: Any, z: Any) -> Interval:
        if not self._half_integer:
            return super().enclose(x, z)
        t = (self._squared(x, z) * int(2 * self.nu)).sqrt()
        decay = (-t).exp()
        if self.nu == 0.5:
            return decay
        return (t + 1) * decay if self.nu == 1.5 else (t + 1 + t * t / 3) * decay

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "Bochner: its spectral density is a multivariate t, which is ≥ 0",
            condition=f"nu = {self.nu:g} > 0",
            reference="Rasmussen & Williams 2006, (4.15)",
        )


FAR = 1e5  # tᵛ K_ν(t) is 0 here for every ν up to 100


def _bessel_profile(t: NDArray[np.float64], nu: float) -> NDArray[np.float64]:
    """2^(1−ν)/Γ(ν) tᵛ K_ν(t) through logarithms, 1 at t = 0."""
    value = np.exp(_log_bessel(t, nu))
    near = ~np.isfinite(value) | (t == 0)
    value[near] = _near_origin(t[near], nu)
    return np.where(t > FAR, 0.0, np.minimum(value, 1.0))


def _log_bessel(t: NDArray[np.float64], nu: float) -> NDArray[np.float64]:
    """log(2^(1−ν)/Γ(ν) tᵛ K_ν(t)); not finite if K_ν(t) is not finite."""
    from scipy.special import gammaln, kve

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray((1 - nu) * np.log(2.0) - gammaln(nu) + nu * np.log(t) + np.log(kve(nu, t)) - t)


def _near_origin(t: NDArray[np.float64], nu: float) -> NDArray[np.float64]:
    """The profile where K_ν(t) overflows: Σₙ (−t²/4)ⁿ/(n! (ν − 1)(ν − 2)…(ν − n)), DLMF 10.27.4 and 10.25.2.

    For ν > 30 that is t < 0.1, where five terms are exact to rounding; for smaller ν the first is.
    """
    total, term = np.ones_like(t), np.ones_like(t)
    if nu > 30:
        for n in range(1, 6):
            term = term * (-(t**2) / 4) / (n * (nu - n))
            total += term
    return total


def _bessel_slope(t: NDArray[np.float64], nu: float) -> NDArray[np.float64]:
    """dφ/du = −ν 2^(1−ν)/Γ(ν) t^(ν−1) K_{ν−1}(t); for ν > 1 that is −ν/(2(ν−1)) times the profile of ν − 1."""
    if nu > 1:
        return np.asarray(-nu / (2 * (nu - 1)) * _bessel_profile(t, nu - 1))
    from scipy.special import gamma, kve

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = -nu * 2 ** (1 - nu) / gamma(nu) * t ** (nu - 1) * kve(1 - nu, t) * np.exp(-t)
    return np.where((t > FAR) | ~np.isfinite(slope), 0.0, slope)
