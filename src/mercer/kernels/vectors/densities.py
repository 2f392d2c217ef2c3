"""Profiles of smoothing kernels as probability densities: their mass, their moments, draws from them.

A profile k((x − z)/σ) with peak 1 becomes a density when it is divided by its mass ∫k(u)du · Πσ. Every family here is
known in closed form in d columns: the compact ones are (1 − r^q)^p within the unit ball, so that r^q is a beta
variable; Matérn and rational quadratic profiles are mixtures of Gaussians. The property `density` of a leaf returns
one of them. All lengths are in units of the width.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer.errors import InvalidInput

Float = NDArray[np.float64]


class Density(ABC):
    """The profile of a kernel, divided by its integral.

    A family defines `log_mass`, `variance` and `draw`; `log_roughness` if ∫k² is known; and, if `on_a_line`,
    `log_profile`, `cdf` and `quantile`.
    """

    reach = math.inf
    """Beyond this many widths the profile is 0 in float64."""

    @property
    def on_a_line(self) -> bool:
        """Whether the distribution function is known in closed form."""
        return True

    def require_integrable(self, d: int) -> None:
        """Raise if the integral over d columns is infinite; by default it never is."""
        return

    @abstractmethod
    def log_mass(self, d: int) -> float:
        """log ∫ k(u) du over d columns."""

    @abstractmethod
    def variance(self, d: int) -> float:
        """The variance of each column; infinite for heavy tails."""

    def log_roughness(self, d: int) -> float:
        """log of ∫ k(u)² du / (∫ k(u) du)²; NaN if it is not known."""
        return math.nan

    @abstractmethod
    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        """n independent draws around 0, shape (n, d)."""

    @abstractmethod
    def log_profile(self, u: Float) -> Float:
        """log k(u) on a line."""

    @abstractmethod
    def cdf(self, u: Float) -> Float:
        """The integral of the density on a line up to u."""

    @abstractmethod
    def quantile(self, p: Float) -> Float:
        """The inverse of `cdf`."""


class NormalDensity(Density):
    """exp(−‖u‖²/2).

    >>> NormalDensity().cdf(np.array([0.0]))
    array([0.5])
    """

    reach = 38.5

    def log_mass(self, d: int) -> float:
        return 0.5 * d * math.log(2 * math.pi)

    def variance(self, d: int) -> float:
        return 1.0

    def log_roughness(self, d: int) -> float:
        return -0.5 * d * math.log(4 * math.pi)

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        return rng.standard_normal((n, d))

    def log_profile(self, u: Float) -> Float:
        return -0.5 * u * u

    def cdf(self, u: Float) -> Float:
        return np.asarray(special.ndtr(u))

    def quantile(self, p: Float) -> Float:
        return np.asarray(special.ndtri(p))


class LaplaceDensity(Density):
    """exp(−‖u‖₁)."""

    reach = 745.0

    def log_mass(self, d: int) -> float:
        return d * math.log(2.0)

    def variance(self, d: int) -> float:
        return 2.0

    def log_roughness(self, d: int) -> float:
        return -d * math.log(4.0)

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        return rng.laplace(size=(n, d))

    def log_profile(self, u: Float) -> Float:
        return -np.abs(u)

    def cdf(self, u: Float) -> Float:
        tail = 0.5 * np.exp(-np.abs(u))
        return np.where(u < 0, tail, 1.0 - tail)

    def quantile(self, p: Float) -> Float:
        with np.errstate(divide="ignore"):
            return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))


@dataclass(frozen=True)
class MaternDensity(LaplaceDensity):
    """The Matérn profile of smoothness ν: Gaussians whose variance has a gamma distribution.

    On a line only ν = ½ has a closed form, the density of Laplace.
    """

    nu: float
    reach = math.inf

    @property
    def on_a_line(self) -> bool:
        return self.nu == 0.5

    def log_mass(self, d: int) -> float:
        gammas = float(special.gammaln(self.nu + d / 2) - special.gammaln(self.nu))
        return 0.5 * d * math.log(2 * math.pi / self.nu) + gammas

    def variance(self, d: int) -> float:
        return float((self.nu + d / 2) / self.nu)

    def log_roughness(self, d: int) -> float:
        return math.nan

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        normal = rng.standard_normal((n, d))
        return normal * np.sqrt(rng.gamma(self.nu + d / 2, size=(n, 1)) / self.nu)


@dataclass(frozen=True)
class StudentDensity(Density):
    """(1 + ‖u‖²/2α)^(−α): Gaussians whose precision has a gamma distribution, a multivariate t of 2α − d degrees."""

    alpha: float

    def require_integrable(self, d: int) -> None:
        if self.alpha <= d / 2:
            raise InvalidInput(
                f"RationalQuadratic is a density in {d} columns for alpha > {d / 2:g} only",
                got=f"alpha={self.alpha:g}",
                advice="Raise alpha, because the integral is infinite.",
            )

    def log_mass(self, d: int) -> float:
        a = self.alpha
        return 0.5 * d * math.log(2 * math.pi * a) + float(special.gammaln(a - d / 2) - special.gammaln(a))

    def variance(self, d: int) -> float:
        a = self.alpha
        return 2 * a / (2 * a - d - 2) if 2 * a > d + 2 else math.inf

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        normal = rng.standard_normal((n, d))
        return normal * np.sqrt(self.alpha / rng.gamma(self.alpha - d / 2, size=(n, 1)))

    def log_profile(self, u: Float) -> Float:
        return np.asarray(-self.alpha * np.log1p(u * u / (2 * self.alpha)))

    def _unit(self) -> float:
        """The width of the t distribution with 2α − 1 degrees of freedom, as a factor."""
        return math.sqrt((2 * self.alpha - 1) / (2 * self.alpha))

    def cdf(self, u: Float) -> Float:
        return np.asarray(special.stdtr(2 * self.alpha - 1, u * self._unit()))

    def quantile(self, p: Float) -> Float:
        inside = special.stdtrit(2 * self.alpha - 1, np.clip(p, 1e-300, 1.0)) / self._unit()
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))  # as SciPy does from 1.16 on


@dataclass(frozen=True)
class CompactDensity(Density):
    """(1 − r^q)^p for r = ‖u‖ ≤ 1, else 0.

    >>> float(np.exp(CompactDensity(q=2, p=1).log_mass(1)).round(6))                       # Epanechnikov
    1.333333
    """

    q: int
    p: int
    reach = 1.0

    def log_mass(self, d: int) -> float:
        return self._log_integral(d, self.p)

    def _log_integral(self, d: int, p: int) -> float:
        """log ∫ (1 − r^q)^p over the unit ball in d columns."""
        log_sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(d / 2)
        return log_sphere + float(special.betaln(d / self.q, p + 1)) - math.log(self.q)

    def variance(self, d: int) -> float:
        moments = special.betaln((d + 2) / self.q, self.p + 1) - special.betaln(d / self.q, self.p + 1)
        return math.exp(moments) / d

    def log_roughness(self, d: int) -> float:
        return self._log_integral(d, 2 * self.p) - 2 * self.log_mass(d)

    def draw(self, n: int, d: int, rng: np.random.Generator) -> Float:
        normal = rng.standard_normal((n, d))
        direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        return direction * rng.beta(d / self.q, self.p + 1, size=(n, 1)) ** (1.0 / self.q)

    def log_profile(self, u: Float) -> Float:
        r = np.abs(u)
        with np.errstate(divide="ignore"):
            inside = self.p * np.log1p(-(np.minimum(r, 1.0) ** self.q)) if self.p else 0.0
            return np.where(r <= 1, inside, -np.inf)

    def cdf(self, u: Float) -> Float:
        # the mass beyond |u|, which keeps its digits in the tail
        tail = 0.5 * special.betaincc(1.0 / self.q, self.p + 1.0, np.minimum(np.abs(u), 1.0) ** self.q)
        return np.where(u < 0, tail, 1.0 - tail)

    def quantile(self, p: Float) -> Float:
        beyond = 2 * np.minimum(p, 1 - p)
        return np.sign(p - 0.5) * special.betainccinv(1.0 / self.q, self.p + 1.0, beyond) ** (1.0 / self.q)
