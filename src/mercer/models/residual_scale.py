"""The typical size of residuals as a function of the prediction: large predictions often have large errors.

The logarithm of the size is first a line in the rank of the prediction (as a quantile of the normal distribution), by
the likelihood of a Laplace distribution of that size. Its slope is drawn towards 0 as far as its standard error demands
(James and Stein 1961), so that tables of a hundred rows follow a trend that a test could not prove, and rows that are
alike hardly differ by chance. Then a mean of the sizes over the rows whose predictions are nearest in rank corrects the
line, if that describes left-out residuals better by their log score. If the line is flat, the gain must be more than
two standard errors. Where a row is judged, its size comes from other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Matrix = NDArray[np.float64]

FOLDS, STEPS = 10, 25
"""The folds by which the line of each row is fitted without it, and the most Newton steps of a line."""
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
        Increasing predictions, shape (k,).
    sizes : array
        The size of residuals there, > 0, shape (k,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(1, 10, 2000)
    >>> scale, own = ResidualScale.of(f, f * rng.normal(size=2000))
    >>> (scale(np.array([2.0, 8.0])) / np.sqrt(2 / np.pi)).round(0)
    array([2., 8.])
    >>> sizes = ResidualScale.of(f, rng.normal(size=2000))[0].sizes                # no trend: nearly constant
    >>> bool(sizes.max() < 1.3 * sizes.min())
    True
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
        _, tied, counts = np.unique(predictions, return_inverse=True, return_counts=True)
        z = ndtri((np.cumsum(counts) - counts / 2) / n)[tied]  # equal predictions have the same rank
        slope, level = _line(z, size, w)
        line, sizes = level * np.exp(slope * z), np.empty(n)
        fold = np.empty(n, dtype=np.int64)
        fold[order] = np.arange(n) % FOLDS
        for left_out in range(FOLDS):
            some = fold == left_out
            own_slope, own_level = _line(z[~some], size[~some], w[~some])
            sizes[some] = own_level * np.exp(own_slope * z[some])
        floor = SMALLEST * mean
        line, sizes = np.maximum(line, floor), np.maximum(sizes, floor)
        ratio = size / sizes  # what is left to the mean over neighbours
        start = np.clip(np.arange(n) - k // 2, 0, n - k)
        total, masses = (np.concatenate([[0.0], np.cumsum(each[order])]) for each in (w * ratio, w))
        sums, mass = total[start + k] - total[start], masses[start + k] - masses[start]
        without = mass - w[order]
        if not (without > 0).all():
            return constant
        typical, near = float(np.average(ratio, weights=w)), np.empty(n)
        near[order] = np.maximum((sums - (w * ratio)[order]) / without, SMALLEST)
        gain = np.log(typical / near) + ratio / typical - ratio / near
        doubt = 2.0 if slope == 0.0 else 0.0  # a constant needs no other shape, a trend needs the best one
        if np.average(gain, weights=w) > doubt * gain.std() / np.sqrt(n):
            sizes = np.maximum(sizes * near, floor)
            line[order] = np.maximum(line[order] * sums / mass, floor)
        elif slope == 0.0:
            return constant
        knots = np.unique(np.linspace(0, n - 1, min(n, KNOTS)).astype(np.int64))
        at, first = np.unique(predictions[order][knots], return_index=True)
        return cls(at, line[order][knots][first]), sizes

    def __call__(self, predictions: Matrix) -> Matrix:
        """The size of residuals at these predictions; beyond the first and the last one it stays the same."""
        return np.interp(predictions, self.at, self.sizes)


def _line(z: Matrix, size: Matrix, w: Matrix) -> tuple[float, float]:
    """The slope b, drawn towards 0, and the level e^a of sizes e^(a + b z), by the likelihood of Laplace distributions.

    >>> z = np.linspace(-2, 2, 400)
    >>> slope, level = _line(z, 3.0 * np.exp(0.5 * z), np.ones(400))
    >>> round(slope, 3), round(level, 3)
    (0.5, 3.0)
    """
    a, b = float(np.log(np.average(size, weights=w))), 0.0
    for _ in range(STEPS):
        e = w * size * np.exp(-a - b * z)
        moments = [float((e * z**p).sum()) for p in range(3)]
        information = np.array([moments[:2], moments[1:]])
        slopes = np.array([w.sum() - moments[0], float((w * z).sum()) - moments[1]])
        if not np.linalg.det(information) > 0:
            return 0.0, float(np.average(size, weights=w))
        step = np.clip(np.linalg.solve(information, slopes), -1.0, 1.0)
        a, b = a - step[0], b - step[1]
        if np.abs(step).max() < 1e-8:
            break
    inverse = np.linalg.inv(information)
    scores = w * (1.0 - size * np.exp(-a - b * z)) * np.stack([np.ones_like(z), z])
    variance = float((inverse @ (scores @ scores.T) @ inverse)[1, 1])  # whatever the distribution is
    b *= max(0.0, 1.0 - variance / b**2) if b else 0.0
    return float(b), float(np.average(size * np.exp(-b * z), weights=w))
