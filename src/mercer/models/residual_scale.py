"""The typical size of residuals as a function of the prediction: large predictions often have large errors.

The size at a prediction v is a mean over the rows whose predictions are nearest to v in rank, without the row itself
where it is judged. A constant size is kept unless the other one describes left-out residuals better by more than
two standard errors (of the log score of a Laplace distribution of that size), so that intervals of rows that are alike
do not differ by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

FEWEST, EXPONENT = 20, 0.7
"""A mean is over n^EXPONENT of n rows, at least FEWEST of them; sizes of fewer than twice as many rows are constant."""
KNOTS = 200
"""The largest number of predictions between which sizes are interpolated."""
SMALLEST = 0.02
"""No size is a smaller share than this of the mean size."""


@dataclass(frozen=True, eq=False)
class ResidualScale:
    """Sizes of residuals, by the prediction.

    Attributes
    ----------
    at : array
        increasing predictions, shape (k,).
    sizes : array
        The size of residuals there, > 0, shape (k,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(1, 10, 2000)
    >>> scale, own = ResidualScale.of(f, f * rng.normal(size=2000))
    >>> (scale(np.array([2.0, 8.0])) / np.sqrt(2 / np.pi)).round(0)
    array([2., 8.])
    >>> len(ResidualScale.of(f, rng.normal(size=2000))[0].at)                      # no trend: constant
    1
    """

    at: Matrix
    sizes: Matrix

    @classmethod
    def of(cls, predictions: Matrix, residuals: Matrix, weights: Matrix | None = None) -> tuple[ResidualScale, Matrix]:
        """From predictions and residuals of n rows, each left out, with their weights.

        Returns
        -------
        tuple
            The scale, and for each of the rows the size that follows from the other rows, shape (n,).
        """
        n, size = len(predictions), np.abs(residuals)
        w = np.ones(n) if weights is None else weights
        mean = float(np.average(size, weights=w))
        constant = cls(predictions[:1].copy(), np.array([mean or 1.0])), np.full(n, mean or 1.0)
        k = max(FEWEST, round(n**EXPONENT))
        if n < 2 * FEWEST or k >= n or not mean > 0 or not np.ptp(predictions) > 0:
            return constant
        order = np.argsort(predictions, kind="stable")
        start = np.clip(np.arange(n) - k // 2, 0, n - k)
        total, masses = (np.concatenate([[0.0], np.cumsum(each[order])]) for each in (w * size, w))
        sums, mass = total[start + k] - total[start], masses[start + k] - masses[start]
        without = mass - w[order]
        if not (without > 0).all():
            return constant
        floor = SMALLEST * mean
        own = np.empty(n)
        own[order] = np.maximum((sums - (w * size)[order]) / without, floor)
        gain = np.log(mean / own) + size / mean - size / own
        if not np.average(gain, weights=w) > 2.0 * gain.std() / np.sqrt(n):
            return constant
        knots = np.unique(np.linspace(0, n - 1, min(n, KNOTS)).astype(np.int64))
        at, first = np.unique(predictions[order][knots], return_index=True)
        return cls(at, np.maximum(sums / mass, floor)[knots][first]), own

    def __call__(self, predictions: Matrix) -> Matrix:
        """The size of residuals at these predictions; beyond the first and the last one it stays the same."""
        return np.interp(predictions, self.at, self.sizes)
