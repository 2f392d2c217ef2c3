"""How well a distribution of counts fits: deviance, dispersion, and observed beside expected frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import nbinom, poisson

from mercer.validation import check_paired
from mercer.words import number

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_BINS = 40
"""The largest number of bins: of more counts, several are taken together."""
WITHIN = 1.645
"""A normal variable is within this number of deviations of its mean in 90 % of all cases."""


@dataclass(frozen=True, eq=False, repr=False)
class CountFit:
    """Counts beside their predicted means.

    Attributes
    ----------
    n : int
        The number of rows.
    deviance : float
        The mean Poisson deviance, 2(y log(y/μ) − y + μ); about 1 for a Poisson distribution with means above 5.
    dispersion : float
        The mean of (y − μ)²/μ, which is 1 for a Poisson distribution; a larger value is overdispersion: counts vary
        more than a Poisson distribution says.
    error : float
        The standard error of the dispersion.
    interval : tuple
        A 90 % interval of the dispersion, which decides whether it differs from 1.
    theta : float
        The size of a negative binomial distribution, variance μ + μ²/θ, with the same dispersion; infinite for a
        Poisson distribution.
    starts : Index
        The first count of each bin, shape (b,); a bin ends before the next one, and the last holds all larger counts.
    observed : array
        The number of rows with a count in the bin, shape (b,).
    poisson, overdispersed : array
        The number that a Poisson distribution with these means, and the negative binomial distribution with `theta`,
        lead to expect, shape (b,).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(1, 9, 4000)
    >>> print(CountFit.of(rng.poisson(mean), mean))
    4,000 counts: Poisson deviance 1.076, dispersion 1.01 ± 0.02 (not distinguishable from 1, that of Poisson counts)
    >>> print(CountFit.of(rng.negative_binomial(2.0, 2.0 / (2.0 + mean)), mean))
    4,000 counts: Poisson deviance 3.362, dispersion 3.53 ± 0.13 (above 1: the counts are overdispersed)
    """

    n: int
    deviance: float
    dispersion: float
    error: float
    interval: tuple[float, float]
    theta: float
    starts: Index
    observed: Matrix
    poisson: Matrix
    overdispersed: Matrix

    @classmethod
    def of(cls, y: Any, means: Any, interval: tuple[float, float] | None = None) -> CountFit:
        """The fit of counts y ≥ 0, shape (n,), to their predicted means > 0.

        `interval` is a 90 % interval of the dispersion if one is known, for example of rows in groups; by default it
        follows from the standard error.
        """
        y, mu = np.asarray(y, dtype=np.float64).ravel(), np.asarray(means, dtype=np.float64).ravel()
        check_paired(
            "There must be as many counts 0, 1, 2, … as means > 0",
            "Pass whole numbers, and the predicted means of the same rows.",
            count=(y, (y >= 0) & (y == np.round(y))), mean=(mu, mu > 0),
        )  # fmt: skip
        ratio = (y - mu) ** 2 / mu
        excess = float(((y - mu) ** 2 - mu).sum() / (mu**2).sum())  # E (y − μ)² = μ + μ²/θ
        theta = 1.0 / excess if excess > 0 else np.inf
        dispersion, error = float(ratio.mean()), float(ratio.std() / np.sqrt(len(y)))
        starts = _bins(y)
        edges = np.append(starts, np.inf)
        observed = np.histogram(y, bins=edges)[0].astype(np.float64)
        return cls(
            len(y),
            float(deviances(y, mu).mean()),
            dispersion,
            error,
            interval or (dispersion - WITHIN * error, dispersion + WITHIN * error),
            theta,
            starts,
            observed,
            _expected(starts, mu, np.inf),
            _expected(starts, mu, theta),
        )

    @property
    def is_overdispersed(self) -> bool:
        """Whether counts vary more than a Poisson distribution says, by more than chance explains."""
        return self.interval[0] > 1.0

    @property
    def verdict(self) -> str:
        """The dispersion in words."""
        if self.is_overdispersed:
            return "above 1: the counts are overdispersed"
        if self.interval[1] < 1.0:
            return "below 1: the counts are underdispersed"
        return "not distinguishable from 1, that of Poisson counts"

    def __str__(self) -> str:
        return (
            f"{self.n:,} counts: Poisson deviance {number(self.deviance)}, dispersion {self.dispersion:.2f} ± "
            f"{self.error:.2f} ({self.verdict})"
        )

    __repr__ = __str__


def count_fit(y: Any, predictions: Any, interval: tuple[float, float] | None = None) -> CountFit | None:
    """The fit of counts to their predicted means; None if the targets are not counts, or a mean is not > 0."""
    y, means = np.asarray(y), np.asarray(predictions)
    if not ((y >= 0) & (y == np.round(y))).all() or not (means > 0).all():
        return None
    return CountFit.of(y, means, interval)


def deviances(y: Matrix, mean: Matrix) -> Matrix:
    """The Poisson deviance of each row."""
    return np.asarray(2 * (xlogy(y, y / mean) - y + mean))


def _bins(y: Matrix) -> Index:
    """The first counts of bins of equal width; the last one holds the largest counts, one row in a hundred or fewer."""
    most = int(np.quantile(y, 0.99)) + 1
    return np.arange(0, most + 1, most // MOST_BINS + 1)


def _expected(starts: Index, mu: Matrix, theta: float) -> Matrix:
    """The expected number of rows in each bin."""
    below = np.zeros(len(starts))
    for k, start in enumerate(starts):
        if start:
            p = poisson.cdf(start - 1, mu) if np.isinf(theta) else nbinom.cdf(start - 1, theta, theta / (theta + mu))
            below[k] = p.sum()
    return np.asarray(np.diff(np.append(below, len(mu))))
