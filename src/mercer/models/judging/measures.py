"""Measures of predictions beside their targets, each with the value of a baseline and a bootstrap interval.

Rows are drawn again with replacement, and the interval contains the middle 90 % of the scores. Predictions that belong
together (of one row by several repeats, of the rows of one group) are drawn together, because they are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mercer.models.judging.counts import deviances
from mercer.models.judging.intervals import interval_scores

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
Statistic = Callable[[Index], Matrix]
"""The scores, shape (...), of samples of predictions, shape (..., n)."""

RESAMPLES, RESAMPLED_ROWS, TOGETHER = 1000, 5_000_000, 10
"""The largest number of bootstrap samples, of rows in all of them, and the number of samples at a time."""
FEWEST = 10
"""A bootstrap interval needs at least this many rows, or groups of rows."""
COVERAGE = 0.9
"""The coverage of the intervals of scores, and of the intervals that are scored."""
SMALLEST_PROBABILITY = 1e-15
"""Smaller probabilities count as this in the log loss."""


class Measure(NamedTuple):
    """The meaning of a score, and whether a larger value is better."""

    meaning: str
    greater_is_better: bool


OF_INTERVALS = "90 % interval score"
"""The measure of intervals, whose baseline is an interval as well."""
MEASURES = {
    "R²": Measure(
        "the share of the target's variance that the model explains; 1 is perfect, 0 is no better than the mean", True
    ),
    "RMSE": Measure(
        "root mean squared error, in units of the target; large errors count most", False
    ),
    "MAE": Measure("mean absolute error, in units of the target", False),
    "90 % coverage": Measure("the share of targets inside their 90 % intervals; 0.9 keeps the promise", True),
    OF_INTERVALS: Measure(
        "the mean width of the 90 % intervals, plus 20 times the mean distance of missed targets from them; smaller is "
        "better", False
    ),
    "Poisson deviance": Measure("the distance between the counts and their predicted means; 0 is perfect", False),
    "dispersion": Measure(
        "the mean of (count − mean)²/mean; 1 for a Poisson distribution, larger if counts vary more than it says", False
    ),
    "accuracy": Measure("the share of rows whose class is predicted correctly", True),
    "balanced accuracy": Measure("the mean recall of the classes, in which rare classes count as much as others", True),
    "log loss": Measure(
        "the mean of −log(predicted probability of the true class); 0 is perfect, and confident errors cost most",
        False,
    ),
    "area under ROC": Measure(
        "how often a random row of one class is ranked correctly against one of the other class; 0.5 is chance",
        True,
    ),
}  # fmt: skip
"""The measures by name."""


class Guesses(NamedTuple):
    """The predictions of the baseline for each row, from the targets of the rows that the model was fitted to.

    Attributes
    ----------
    mean, median : array
        The mean and the median of the training targets, shape (n,); NaN for classes.
    low, high : array
        The ends of the middle 90 % of the training targets, shape (n,); NaN for classes.
    right : array
        Whether the most frequent class of the training rows is the true one, as 0 or 1; NaN for numbers.
    share : array
        The share of the true class among the training rows; NaN for numbers.
    """

    mean: Matrix
    median: Matrix
    low: Matrix
    high: Matrix
    right: Matrix
    share: Matrix


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions beside their targets.

    Attributes
    ----------
    y, predictions : array
        The targets and their predictions, shape (n,).
    guesses : Guesses
        The predictions of the baseline.
    classes : array or None
        The labels that the columns of `probabilities` stand for; None for a regression.
    probabilities : array or None
        Shape (n, k), or None.
    counts : bool
        Whether the targets are counts and the predictions their means.
    units : Index or None
        The number of the row, or of the group of rows, that each prediction belongs to, shape (n,); None if all are
        independent.
    intervals : array or None
        The ends of 90 % intervals, shape (n, 2), or None.
    rate : bool
        Whether the baseline is one rate for all rows times their exposures.
    """

    y: NDArray[Any]
    predictions: NDArray[Any]
    guesses: Guesses
    classes: NDArray[Any] | None = None
    probabilities: Matrix | None = None
    counts: bool = False
    units: Index | None = None
    intervals: Matrix | None = None
    rate: bool = False

    @property
    def losses(self) -> Matrix:
        """The loss of each row: its squared error; −log of the probability of its class; or 1 if its class is wrong."""
        if self.classes is None:
            return np.asarray((self.y.astype(np.float64) - self.predictions) ** 2)
        if self.probabilities is None:
            return (self.predictions != self.y).astype(np.float64)
        same = self.classes == self.y[:, None]
        return -np.log(np.clip((self.probabilities * same).sum(axis=1), SMALLEST_PROBABILITY, 1.0))


class Measured(NamedTuple):
    """The value of a measure, its 90 % interval (NaN for few rows), and the value of the baseline."""

    name: str
    value: float
    low: float
    high: float
    baseline: float


def measured(predicted: Predicted) -> list[Measured]:
    """The measures that suit the predictions and are finite.

    >>> import numpy as np
    >>> nothing = np.full(3, np.nan)
    >>> guesses = Guesses(np.full(3, 2.0), np.full(3, 2.0), nothing, nothing, nothing, nothing)
    >>> for score in measured(Predicted(np.array([1.0, 2.0, 6.0]), np.array([1.0, 3.0, 6.0]), guesses)):
    ...     print(f"{score.name} {score.value:.3f}, baseline {score.baseline:.3f}")
    R² 0.929, baseline -0.214
    RMSE 0.577, baseline 2.380
    MAE 0.333, baseline 1.667
    """
    statistics = _of_numbers(predicted) if predicted.classes is None else _of_classes(predicted)
    scores = [_scored(*statistic, predicted) for statistic in statistics]
    return [score for score in scores if np.isfinite(score.value)]


def _of_numbers(predicted: Predicted) -> list[tuple[str, Statistic, float]]:
    """Name, statistic and baseline of each measure of a regression."""
    y, f, guesses = predicted.y.astype(np.float64), predicted.predictions, predicted.guesses

    def r2(i: Index) -> Matrix:
        residual = ((y[i] - f[i]) ** 2).sum(axis=-1)
        total = ((y[i] - y[i].mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        return np.asarray(1 - residual / np.where(total > 0, total, np.nan))

    mean = guesses.mean
    residual, total = ((y - mean) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    measures: list[tuple[str, Statistic, float]] = [
        ("R²", r2, float(1 - residual / total) if total > 0 else np.nan),
        ("RMSE", lambda i: np.sqrt(((y[i] - f[i]) ** 2).mean(axis=-1)), float(np.sqrt(((y - mean) ** 2).mean()))),
        ("MAE", lambda i: np.abs(y[i] - f[i]).mean(axis=-1), float(np.abs(y - guesses.median).mean())),
    ]
    if predicted.intervals is not None:
        low, high = predicted.intervals.T
        scores = interval_scores(y, predicted.intervals, COVERAGE)
        of_quantiles = interval_scores(y, np.column_stack([guesses.low, guesses.high]), COVERAGE)
        measures.append(("90 % coverage", _mean(((low <= y) & (y <= high)).astype(np.float64)), np.nan))
        measures.append((OF_INTERVALS, _mean(scores), float(of_quantiles.mean())))
    if predicted.counts and (f > 0).all() and (y >= 0).all():
        of_mean = float(deviances(y, mean).mean()) if (mean > 0).all() else np.nan
        measures.append(("Poisson deviance", _mean(deviances(y, f)), of_mean))
        measures.append(("dispersion", _mean((y - f) ** 2 / f), np.nan))
    return measures


def _of_classes(predicted: Predicted) -> list[tuple[str, Statistic, float]]:
    """Name, statistic and baseline of each measure of a classification."""
    y, P, guesses = predicted.y, predicted.probabilities, predicted.guesses
    right = (predicted.predictions == y).astype(np.float64)
    measures: list[tuple[str, Statistic, float]] = [("accuracy", _mean(right), float(guesses.right.mean()))]
    members = np.unique(y)[:, None] == y
    if len(members) > 1:

        def balanced(i: Index) -> Matrix:
            sizes = members[:, i].sum(axis=-1)
            recalls = (members[:, i] * right[i]).sum(axis=-1) / np.where(sizes > 0, sizes, np.nan)
            return np.asarray(np.nanmean(recalls, axis=0))

        measures.append(("balanced accuracy", balanced, 1.0 / len(members)))  # the baseline has one recall of 1
    if P is not None:
        of_shares = float(-np.log(np.clip(guesses.share, SMALLEST_PROBABILITY, 1.0)).mean())
        measures.append(("log loss", _mean(predicted.losses), of_shares))
    if P is not None and P.shape[1] == len(members) == 2:
        assert predicted.classes is not None
        second, p = y == predicted.classes[1], P[:, 1]

        def area(i: Index) -> Matrix:
            ones = second[i].sum(axis=-1)
            pairs = ones * (i.shape[-1] - ones)
            above = (rankdata(p[i], axis=-1) * second[i]).sum(axis=-1) - ones * (ones + 1) / 2
            return np.asarray(above / np.where(pairs > 0, pairs, np.nan))

        measures.append(("area under ROC", area, 0.5))
    return measures


def _mean(values: Matrix) -> Statistic:
    return lambda i: np.asarray(values[i].mean(axis=-1))


# -- bootstrap ---------------------------------------------------------------------------------------------------------


def _scored(name: str, statistic: Statistic, baseline: float, predicted: Predicted) -> Measured:
    """A measure with its bootstrap interval."""
    n = len(predicted.y)
    value, ends = float(statistic(np.arange(n))), (np.nan, np.nan)
    samples = _samples(n, predicted.units)
    if samples is not None:
        values = np.concatenate([np.atleast_1d(statistic(sample)) for sample in samples])
        values = values[np.isfinite(values)]
        if len(values):
            tail = (1 - COVERAGE) / 2
            ends = tuple(np.quantile(values, [tail, 1 - tail]).tolist())
    return Measured(name, value, *ends, baseline)


def _samples(n: int, units: Index | None) -> Any:
    """Samples of n predictions with replacement, whole units at a time; None if there are too few."""
    rng, rounds = np.random.default_rng(0), min(RESAMPLES, max(50, RESAMPLED_ROWS // max(n, 1)))
    if units is None:
        if n < FEWEST:
            return None
        return (rng.integers(0, n, size=(TOGETHER, n)) for _ in range(rounds // TOGETHER))
    _, codes = np.unique(units, return_inverse=True)
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    if len(sizes) < FEWEST:
        return None
    starts = np.cumsum(sizes) - sizes

    def sample() -> Index:
        drawn = rng.integers(0, len(sizes), size=len(sizes))
        lengths = sizes[drawn]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.asarray(order[np.repeat(starts[drawn], lengths) + within])

    return (sample() for _ in range(rounds))
