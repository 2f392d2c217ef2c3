"""Scores of a model on held-out rows, beside a baseline that uses no column.

Every score has a bootstrap interval: rows are drawn again with replacement, and the interval contains the middle 90 %
of the scores. It shows what another test set of this size might give, not what another training set would.

    train, test = hold_out(y, 0.2)
    model = mc.KernelRidge(alpha="loo").fit(X[train], y[train])
    judgement = judge(model, X[test], y[test], Baseline.of(y[train]))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import rankdata
from sklearn.base import is_classifier

from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.validation import check_number, generator

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
Statistic = Callable[[Index], Matrix]
"""The scores, shape (...), of samples of rows, shape (..., n)."""
Judged = Literal["held out", "left out", "fitted"]
"""Which predictions are scored: of held-out rows, of training rows by leave-one-out, or of training rows directly."""

RESAMPLES, RESAMPLED_ROWS, TOGETHER = 1000, 5_000_000, 10
"""The largest number of bootstrap samples, of rows in all of them, and the number of samples at a time."""
FEWEST = 10
"""A bootstrap interval needs at least this many rows."""
COVERAGE = 0.9
SMALLEST_PROBABILITY = 1e-15
"""Smaller probabilities count as this in the log loss."""


class Measure(NamedTuple):
    """The meaning of a score, and whether a larger value is better."""

    meaning: str
    greater_is_better: bool


MEASURES = {
    "R²": Measure(
        "the share of the target's variance that the model explains; 1 is perfect, 0 is no better than the mean", True
    ),
    "RMSE": Measure(
        "root mean squared error, in units of the target; large errors count most", False
    ),
    "MAE": Measure("mean absolute error, in units of the target", False),
    "Poisson deviance": Measure("the distance between the counts and their predicted means; 0 is perfect", False),
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


@dataclass(frozen=True)
class Baseline:
    """A model that uses no column: the mean and median of the training targets, or the share of each class.

    >>> import numpy as np
    >>> Baseline.of(np.array([1.0, 2.0, 6.0]))
    Baseline(mean=3.0, median=2.0, classes=(), shares=())
    >>> Baseline.of(np.array(["no", "no", "yes", "no"]), classes=True)
    Baseline(mean=nan, median=nan, classes=('no', 'yes'), shares=(0.75, 0.25))
    """

    mean: float = np.nan
    median: float = np.nan
    classes: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()

    @classmethod
    def of(cls, y: NDArray[Any], *, classes: bool = False) -> Baseline:
        """The baseline of these training targets."""
        y = np.asarray(y)
        if not classes:
            return cls(mean=float(y.astype(np.float64).mean()), median=float(np.median(y.astype(np.float64))))
        values, times = np.unique(y, return_counts=True)
        return cls(classes=tuple(values.tolist()), shares=tuple((times / len(y)).tolist()))


@dataclass(frozen=True)
class Score:
    """A measure with its 90 % interval (NaN for few rows) and the value of the baseline (NaN if it is not known)."""

    name: str
    value: float
    low: float
    high: float
    baseline: float

    @property
    def gain(self) -> float:
        """The improvement over the baseline: the difference of shares, or the relative reduction of the error.

        >>> Score("RMSE", 3.0, 2.5, 3.5, 4.0).gain
        0.25
        """
        if MEASURES[self.name].greater_is_better:
            return self.value - self.baseline
        return (self.baseline - self.value) / (self.baseline or 1.0)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The predictions for some rows, and their scores.

    Attributes
    ----------
    predictions : shape (n,).
    losses : the loss of each row: its squared error; −log of the probability of its class; or 1 if its class is wrong.
    scores : the measures that are finite.
    probabilities : the probabilities of the classes, shape (n, k), or None.
    by : which predictions are scored.
    """

    predictions: NDArray[Any]
    losses: Matrix
    scores: tuple[Score, ...]
    probabilities: Matrix | None
    by: Judged = "held out"

    def __getitem__(self, name: str) -> Score:
        """The score of this name."""
        return next(score for score in self.scores if score.name == name)

    def __str__(self) -> str:
        return "\n".join(f"{s.name} {s.value:.4g} (baseline {s.baseline:.4g})" for s in self.scores)


def hold_out(y: Any, share: float = 0.2, *, classes: bool = False, random_state: int = 0) -> tuple[Index, Index]:
    """Training rows and held-out rows, in their order; each class keeps its share, and one row in training at least.

    >>> import numpy as np
    >>> train, test = hold_out(np.arange(50.0), 0.2)
    >>> len(train), len(test), len(np.intersect1d(train, test))
    (40, 10, 0)
    """
    y = np.asarray(y)
    check_number(share, "share", least=0, below=1, such_as=0.2)
    rng, every = generator(random_state), np.arange(len(y))
    if share == 0:
        return every, every[:0]
    if not classes:
        order, size = rng.permutation(len(y)), min(max(1, round(share * len(y))), len(y) - 1)
        return np.sort(order[size:]), np.sort(order[:size])
    held_out: list[int] = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        held_out += rows[: min(round(share * len(rows)), len(rows) - 1)].tolist()
    test = np.sort(np.asarray(held_out, dtype=np.int64))
    return np.setdiff1d(every, test), test


def judge(
    model: Any,
    X: Any,
    y: Any,
    baseline: Baseline | None = None,
    *,
    predictions: NDArray[Any] | None = None,
    by: Judged = "held out",
) -> Judgement:
    """Score a fitted regressor or classifier on rows.

    Parameters
    ----------
    model : a fitted model.
    X, y : n rows and their targets.
    baseline : the baseline of the training targets; None if they are not known (the scored rows must not decide it).
    predictions : predictions to score instead of `model.predict(X)`, such as leave-one-out predictions.
    by : which predictions are scored, for the record.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01).fit(X[:100], y[:100])
    >>> judgement = judge(model, X[100:], y[100:], Baseline.of(y[:100]))
    >>> [score.name for score in judgement.scores], judgement["R²"].value > 0.99
    (['R²', 'RMSE', 'MAE'], True)
    """
    y, baseline = np.asarray(y), Baseline() if baseline is None else baseline
    P: Matrix | None = None
    if predictions is None:
        predictions, P, losses = _predicted(model, X, y)
    else:
        losses = row_losses(model, y, predictions)
    if is_classifier(model):
        measures = _classes(model, y, baseline, predictions, P, losses)
    else:
        measures = _numbers(model, y.astype(np.float64), baseline, predictions)
    scores = [_score(*measure, len(y)) for measure in measures]
    return Judgement(predictions, losses, tuple(s for s in scores if np.isfinite(s.value)), P, by)


def judge_by_leave_one_out(model: Any, X: Any, y: Any) -> Judgement | None:
    """Score a model on its training rows by leave-one-out; None if the model has no leave-one-out predictions.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(30.0)[:, None]
    >>> judgement = judge_by_leave_one_out(mc.Ridge().fit(X, X[:, 0]), X, X[:, 0])
    >>> judgement.by, judgement["R²"].value > 0.99
    ('left out', True)
    >>> judge_by_leave_one_out(mc.SVR().fit(X, X[:, 0]), X, X[:, 0]) is None
    True
    """
    try:
        predictions = np.asarray(model.loo_predictions_)
    except (AttributeError, InvalidInput):  # this kind of model, or this solver, does not have them
        return None
    if len(predictions) != length(X):
        return None
    baseline = Baseline.of(y, classes=is_classifier(model))
    return judge(model, X, y, baseline, predictions=predictions, by="left out")


def row_losses(model: Any, y: NDArray[Any], predictions: NDArray[Any]) -> Matrix:
    """The loss of each row: 1 if its class is wrong, or its squared error."""
    if is_classifier(model):
        return (predictions != y).astype(np.float64)
    return np.asarray((y.astype(np.float64) - predictions) ** 2)


def _predicted(model: Any, X: Any, y: NDArray[Any]) -> tuple[NDArray[Any], Matrix | None, Matrix]:
    """Predictions, probabilities, and the loss of each row."""
    predictions = np.asarray(model.predict(X))
    if not is_classifier(model) or not hasattr(model, "predict_proba"):
        return predictions, None, row_losses(model, y, predictions)
    P = np.asarray(model.predict_proba(X), dtype=np.float64)
    same = np.asarray(model.classes_) == np.asarray(y)[:, None]
    return predictions, P, -np.log(np.clip((P * same).sum(axis=1), SMALLEST_PROBABILITY, 1.0))


def _numbers(model: Any, y: Matrix, baseline: Baseline, f: Matrix) -> list[tuple[str, Statistic, float]]:
    """Name, statistic and baseline of each measure of a regression."""

    def r2(i: Index) -> Matrix:
        residual = ((y[i] - f[i]) ** 2).sum(axis=-1)
        total = ((y[i] - y[i].mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        return np.asarray(1 - residual / np.where(total > 0, total, np.nan))

    mean = baseline.mean
    residual, total = ((y - mean) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    measures: list[tuple[str, Statistic, float]] = [
        ("R²", r2, float(1 - residual / total) if total > 0 else np.nan),
        ("RMSE", lambda i: np.sqrt(((y[i] - f[i]) ** 2).mean(axis=-1)), float(np.sqrt(((y - mean) ** 2).mean()))),
        ("MAE", lambda i: np.abs(y[i] - f[i]).mean(axis=-1), float(np.abs(y - baseline.median).mean())),
    ]
    counts = str(getattr(getattr(model, "model_", model), "family", "")) == "poisson"
    if counts and (f > 0).all():
        deviances = 2 * (xlogy(y, y / f) - y + f)
        of_mean = float((2 * (xlogy(y, y / mean) - y + mean)).mean()) if mean > 0 else np.nan
        measures.append(("Poisson deviance", _mean(deviances), of_mean))
    return measures


def _classes(
    model: Any, y: NDArray[Any], baseline: Baseline, predictions: NDArray[Any], P: Matrix | None, losses: Matrix
) -> list[tuple[str, Statistic, float]]:
    """Name, statistic and baseline of each measure of a classification."""
    values, shares = np.asarray(baseline.classes), np.asarray(baseline.shares)
    right = (predictions == y).astype(np.float64)
    frequent = float((y == values[shares.argmax()]).mean()) if len(values) else np.nan
    measures: list[tuple[str, Statistic, float]] = [("accuracy", _mean(right), frequent)]
    members = np.unique(y)[:, None] == y
    if len(members) > 1:

        def balanced(i: Index) -> Matrix:
            sizes = members[:, i].sum(axis=-1)
            recalls = (members[:, i] * right[i]).sum(axis=-1) / np.where(sizes > 0, sizes, np.nan)
            return np.asarray(np.nanmean(recalls, axis=0))

        measures.append(("balanced accuracy", balanced, 1.0 / len(members)))  # the baseline has one recall of 1
    if P is not None:
        of_shares = np.nan
        if len(values):
            share = np.where(values == y[:, None], shares, 0.0).sum(axis=1)
            of_shares = float(-np.log(np.clip(share, SMALLEST_PROBABILITY, 1.0)).mean())
        measures.append(("log loss", _mean(losses), of_shares))
    if P is not None and P.shape[1] == len(members) == 2:
        second, p = y == np.asarray(model.classes_)[1], P[:, 1]

        def area(i: Index) -> Matrix:
            ones = second[i].sum(axis=-1)
            pairs = ones * (i.shape[-1] - ones)
            above = (rankdata(p[i], axis=-1) * second[i]).sum(axis=-1) - ones * (ones + 1) / 2
            return np.asarray(above / np.where(pairs > 0, pairs, np.nan))

        measures.append(("area under ROC", area, 0.5))
    return measures


def _mean(values: Matrix) -> Statistic:
    return lambda i: np.asarray(values[i].mean(axis=-1))


def _score(name: str, statistic: Statistic, baseline: float, n: int) -> Score:
    """A measure of n rows with its bootstrap interval."""
    value, ends = float(statistic(np.arange(n))), (np.nan, np.nan)
    if n >= FEWEST:
        rng = np.random.default_rng(0)
        rounds = min(RESAMPLES, max(50, RESAMPLED_ROWS // n)) // TOGETHER
        values = np.concatenate([statistic(rng.integers(0, n, size=(TOGETHER, n))) for _ in range(rounds)])
        values = values[np.isfinite(values)]
        if len(values):
            tail = (1 - COVERAGE) / 2
            ends = tuple(np.quantile(values, [tail, 1 - tail]).tolist())
    return Score(name, value, *ends, baseline)
