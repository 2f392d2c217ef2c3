"""Intervals of automatic models from left-out residuals, and a distribution of counts with any dispersion.

Counts whose variance is φ times their mean μ: for φ > 1 negative binomial with θ = μ/(φ − 1), for φ = 1 Poisson's, for
φ < 1 the numbers of events after waiting times that are gamma distributed (Winkelmann, Duration dependence and
dispersion in count-data models, 1995), P(Y ≥ y) = P(y/φ, λ) with the regularised incomplete gamma function.

Intervals contain a new target with the given probability even if these distributions are wrong: their level is the
conformal quantile of the levels that rows need when they are left out (Chernozhukov, Wüthrich and Zhu, Distributional
conformal prediction, 2021). The distributions decide only where intervals are wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer.models.residual_scale import KNOTS, ResidualScale

Matrix = NDArray[np.float64]
# Smaller means and probabilities are replaced by this, so that logarithms and shapes of distributions are finite.
SMALLEST = 1e-12
# The smallest dispersion.
LEAST_DISPERSION = 1e-3


@dataclass(frozen=True)
class Counts:
    """Counts of a mean μ and the variance φμ (nearly, where φ < 1), with one φ or one for each mean.

    >>> import numpy as np
    >>> y = np.arange(200.0)
    >>> for phi in (0.3, 1.0, 4.0):
    ...     p = np.exp(Counts(phi).log_probability(y, np.full(200, 10.0)))
    ...     print(round(p @ y, 1), round(p @ y**2 - (p @ y) ** 2, 1))
    10.0 3.2
    10.0 10.0
    10.0 40.0
    """

    dispersion: float | Matrix

    @classmethod
    def of(cls, y: Matrix, mu: Matrix, weights: Matrix | None = None) -> Counts:
        """Counts with the dispersion of the residuals around μ: Σ(y − μ)²/Σμ."""
        variance, mean = (float(np.average(each, weights=weights)) for each in ((y - mu) ** 2, mu))
        return cls(max(variance / max(mean, SMALLEST), LEAST_DISPERSION))

    def _shapes(self) -> tuple[NDArray[np.bool_], Matrix, Matrix]:
        """Where φ > 1, φ there (2 elsewhere), and φ where it is at most 1 (1 elsewhere)."""
        phi = np.maximum(np.asarray(self.dispersion, dtype=np.float64), LEAST_DISPERSION)
        wide = phi > 1.0
        return wide, np.where(wide, phi, 2.0), np.where(wide, 1.0, phi)

    def at_least(self, y: Matrix, mu: Matrix) -> Matrix:
        """P(Y ≥ y)."""
        mu, some = np.maximum(mu, SMALLEST), np.maximum(y, 1.0)
        wide, more, less = self._shapes()
        # A renewal process is ahead of its rate by (φ − 1)/2.
        tail = np.where(
            wide,
            special.betainc(some, mu / (more - 1.0), 1.0 - 1.0 / more),
            special.gammainc(some / less, (mu + 0.5 * (1.0 - less)) / less),
        )
        return np.asarray(np.where(y <= 0, 1.0, tail))

    def at_most(self, y: Matrix, mu: Matrix) -> Matrix:
        """P(Y ≤ y), not by 1 − P(Y ≥ y + 1): small probabilities keep their digits."""
        mu, some = np.maximum(mu, SMALLEST), np.maximum(y, 0.0) + 1.0
        wide, more, less = self._shapes()
        tail = np.where(
            wide,
            special.betainc(mu / (more - 1.0), some, 1.0 / more),
            special.gammaincc(some / less, (mu + 0.5 * (1.0 - less)) / less),
        )
        return np.asarray(np.where(y < 0, 0.0, tail))

    def log_probability(self, y: Matrix, mu: Matrix) -> Matrix:
        """log P(Y = y), by the smaller tail."""
        above = self.at_least(y, mu) - self.at_least(y + 1.0, mu)
        below = self.at_most(y, mu) - self.at_most(y - 1.0, mu)
        probability = np.where(self.at_least(y, mu) < 0.5, above, below)
        return np.asarray(np.log(np.maximum(probability, 1e-300)))

    def level(self, y: Matrix, mu: Matrix) -> Matrix:
        """min(P(Y ≤ y), P(Y ≥ y)): the greatest level whose interval holds y."""
        return np.minimum(self.at_most(y, mu), self.at_least(y, mu))

    def interval(self, mu: Matrix, level: float) -> Matrix:
        """The whole numbers y with P(Y ≤ y) ≥ level and P(Y ≥ y) ≥ level, from the first to the last, shape (m, 2)."""
        if level <= 0.0:
            return np.stack([np.zeros_like(mu), np.full_like(mu, np.inf)], axis=1)
        lower = _first(lambda y: self.at_most(y, mu) >= level, mu)
        upper = _first(lambda y: self.at_least(y + 1.0, mu) < level, mu)
        # At a level above ½ the two ends may cross: the interval is then the point where they meet.
        return np.stack([np.minimum(lower, upper), np.maximum(lower, upper)], axis=1)


def dispersion_by_mean(y: Matrix, mu: Matrix, weights: Matrix | None = None) -> tuple[ResidualScale, Matrix]:
    """The variance of counts in units of their mean, as a function of the mean, and for each row from other rows.

    It is one number φ, or 1 + μ/θ as for a negative binomial distribution: the one with the higher log likelihood. A
    trend of the residuals that is left corrects it. Large means of few rows need the second form, whose trend these
    rows alone could not prove.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.uniform(1, 40, size=300)
    >>> scale, _ = dispersion_by_mean(rng.poisson(mu * rng.gamma(2.0, 0.5, size=300)).astype(float), mu)
    >>> low, high = scale(np.array([2.0, 35.0]))                                    # 1 + μ/2
    >>> bool(1.0 < low < 4.0), bool(10.0 < high < 30.0)
    (True, True)
    """
    base = np.full(len(y), Counts.of(y, mu, weights).dispersion)
    beyond = float(np.average((y - mu) ** 2 - mu, weights=weights))
    if beyond > 0:
        rising = 1.0 + mu * beyond / max(float(np.average(mu**2, weights=weights)), SMALLEST)
        gain = Counts(rising).log_probability(y, mu) - Counts(base).log_probability(y, mu)
        base = rising if np.average(gain, weights=weights) > 0 else base
    scale, sizes = ResidualScale.of(mu, (y - mu) ** 2 / np.maximum(mu * base, SMALLEST), weights)
    at, first = np.unique(mu, return_index=True)
    knots = np.unique(np.linspace(0, len(at) - 1, min(len(at), KNOTS)).astype(np.int64))
    return ResidualScale(at[knots], scale(at[knots]) * base[first][knots]), sizes * base


def _first(holds: Any, mu: Matrix) -> Matrix:
    """The first whole number ≥ 0 from which on a condition holds, for each mean."""
    low, high = np.full(len(mu), -1.0), np.ceil(mu) + 1.0
    with np.errstate(over="ignore"):
        while (short := ~holds(high) & np.isfinite(2.0 * high)).any():
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    while True:
        middle = np.floor(low + 0.5 * (high - low))
        wide = (low < middle) & (middle < high)  # beyond 2⁵³ neighbours are more than 1 apart
        if not wide.any():
            return high
        there = holds(np.where(wide, middle, high))
        low, high = np.where(wide & ~there, middle, low), np.where(wide & there, middle, high)


def log_normal(y: Matrix, mean: Matrix, weights: Matrix | None = None) -> Matrix:
    """log P(Y = y) of whole numbers ≥ 0 as rounded from a normal distribution of one variance, that of the residuals.

    The probability below 0 belongs to 0.
    """
    spread = np.sqrt(max(float(np.average((y - mean) ** 2, weights=weights)), SMALLEST))
    low, high = (y - 0.5 - mean) / spread, (y + 0.5 - mean) / spread
    low = np.where(y <= 0, -np.inf, low)
    flip = low > 0  # the other tail keeps its digits
    probability = np.where(flip, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))
    return np.asarray(np.log(np.maximum(probability, 1e-300)))
