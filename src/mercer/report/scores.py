"""How good a model is on rows it has not seen, with the uncertainty of having seen only so many.

Intervals are by the bootstrap: rows are drawn again with replacement, and the middle 90 % of the scores is shown. They
tell what another test set of this size might say, not what another training set would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import rankdata
from sklearn.base import is_classifier

from mercer.report import frames

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]
Measure = Callable[[Rows], Matrix]
"""Of draws of rows, shape (..., n), the score of each, shape (...)."""

DRAWS, CELLS, TOGETHER = 1000, 5_000_000, 10
"""Resamples, at most so many rows in all of them, and so many at a time."""
FEWEST = 10
"""Rows that can be drawn again."""
COVERAGE = 0.9
RELIED = (
    "Relied on: each column in turn is shuffled among the rows, and the predictions change. This is how much of that "
    "change is the column's own: together they are 100 %, and the model does without a column at 0 %."
)
"""What `sensitivities` are, for a reader."""
LEAST = 1e-15
"""Probabilities below this are counted as this."""
ROUNDINGS = 100
"""Units in the last place of the largest prediction that its rounding may amount to."""


@dataclass(frozen=True)
class Baseline:
    """What a model without columns knows of the training targets: their mean and median, or the share of each class.

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
    """A measure with its 90 % interval (NaN for a few rows), and the baseline's value (NaN where there is none)."""

    name: str
    value: float
    low: float
    high: float
    baseline: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a model says of some rows, and how bad each answer is.

    Attributes
    ----------
    answers : predictions, shape (n,).
    losses : of each row: its squared error; −log of the probability of its class, or 1 where it is wrong.
    scores : the measures.
    probabilities : of the classes, shape (n, k), or None.
    """

    answers: NDArray[Any]
    losses: Matrix
    scores: list[Score]
    probabilities: Matrix | None


def judge(
    model: Any, X: Any, y: NDArray[Any], baseline: Baseline | None, *, answers: NDArray[Any] | None = None
) -> Judgement:
    """Score a fitted model on rows, classes or numbers.

    `baseline` is that of the training targets, or None where they are not known: the judged rows must not say what the
    baseline is. `answers` are predictions made elsewhere, such as of leaving one out, instead of the model's own.
    """
    known = Baseline() if baseline is None else baseline
    P: Matrix | None = None
    if answers is None:
        answers, P, losses = _answered(model, X, y)
    else:
        losses = _misses(model, y, answers)
    if is_classifier(model):
        measures = _classes(model, y, known, answers, P, losses)
    else:
        measures = _numbers(model, y.astype(np.float64), known, answers)
    return Judgement(answers, losses, [_score(*measure, len(y)) for measure in measures], P)


def sensitivities(model: Any, X: Any) -> Matrix:
    """How much the predictions rely on each column, as shares that add up to 1, shape (d,).

    Each column in turn is shuffled among the rows. How much predictions change is the mean square of the change, or how
    many rows get another class; the share of a column is its change over the sum of those of all columns. (Of a sum of
    functions of independent columns these are their shares of the variance.) All are 0 where nothing ever changes, and
    changes within the rounding of the predictions count as none.
    """
    base = np.asarray(model.predict(X))
    order = np.random.default_rng(0).permutation(len(base))
    tables = (frames.shuffled(X, j, order) for j in range(len(frames.names(X))))
    changes = np.array([_misses(model, base, np.asarray(model.predict(table))).mean() for table in tables])
    if base.dtype.kind == "f" and not is_classifier(model):
        changes[changes <= (ROUNDINGS * np.finfo(base.dtype).eps * np.abs(base).max()) ** 2] = 0.0
    return np.asarray(changes / (changes.sum() or 1.0))


def _answered(model: Any, X: Any, y: NDArray[Any]) -> tuple[NDArray[Any], Matrix | None, Matrix]:
    """Answers, probabilities, and the loss of each row alone."""
    answers = np.asarray(model.predict(X))
    if not is_classifier(model) or not hasattr(model, "predict_proba"):
        return answers, None, _misses(model, y, answers)
    P = np.asarray(model.predict_proba(X), dtype=np.float64)
    same = np.asarray(model.classes_) == np.asarray(y)[:, None]
    return answers, P, -np.log(np.clip((P * same).sum(axis=1), LEAST, 1.0))


def _misses(model: Any, y: NDArray[Any], answers: NDArray[Any]) -> Matrix:
    """Wrong or not, or the squared error."""
    return (answers != y).astype(np.float64) if is_classifier(model) else (y.astype(np.float64) - answers) ** 2


def _numbers(model: Any, y: Matrix, known: Baseline, f: Matrix) -> list[tuple[str, Measure, float]]:
    def r2(i: Rows) -> Matrix:
        rest = ((y[i] - f[i]) ** 2).sum(axis=-1)
        whole = ((y[i] - y[i].mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
        return np.asarray(1 - rest / np.where(whole > 0, whole, np.nan))

    mean = known.mean
    off, spread = ((y - mean) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    found: list[tuple[str, Measure, float]] = [
        ("R²", r2, float(1 - off / spread) if spread > 0 else np.nan),
        ("RMSE", lambda i: np.sqrt(((y[i] - f[i]) ** 2).mean(axis=-1)), float(np.sqrt(((y - mean) ** 2).mean()))),
        ("MAE", lambda i: np.abs(y[i] - f[i]).mean(axis=-1), float(np.abs(y - known.median).mean())),
    ]
    counts = str(getattr(getattr(model, "model_", model), "family", "")) == "poisson"
    if counts and (f > 0).all():
        own = 2 * (xlogy(y, y / f) - y + f)
        of_mean = float((2 * (xlogy(y, y / mean) - y + mean)).mean()) if mean > 0 else np.nan
        found.append(("Poisson deviance", _mean(own), of_mean))
    return found


def _classes(
    model: Any, y: NDArray[Any], known: Baseline, answers: NDArray[Any], P: Matrix | None, losses: Matrix
) -> list[tuple[str, Measure, float]]:
    values, shares = np.asarray(known.classes), np.asarray(known.shares)
    right = (answers == y).astype(np.float64)
    found = [("accuracy", _mean(right), float((y == values[shares.argmax()]).mean()) if len(values) else np.nan)]
    own = np.unique(y)[:, None] == y
    if len(own) > 1:

        def balanced(i: Rows) -> Matrix:
            there = own[:, i].sum(axis=-1)
            recalls = (own[:, i] * right[i]).sum(axis=-1) / np.where(there > 0, there, np.nan)
            return np.asarray(np.nanmean(recalls, axis=0))

        found.append(("balanced accuracy", balanced, 1.0 / len(own)))  # one class for all rows: one recall of 1
    if P is not None:
        of_shares = np.nan
        if len(values):
            said = np.where(values == y[:, None], shares, 0.0).sum(axis=1)
            of_shares = float(-np.log(np.clip(said, LEAST, 1.0)).mean())
        found.append(("log loss", _mean(losses), of_shares))
    if P is not None and P.shape[1] == len(own) == 2:
        second, p = y == np.asarray(model.classes_)[1], P[:, 1]

        def area(i: Rows) -> Matrix:
            ones = second[i].sum(axis=-1)
            pairs = ones * (i.shape[-1] - ones)
            above = (rankdata(p[i], axis=-1) * second[i]).sum(axis=-1) - ones * (ones + 1) / 2
            return np.asarray(above / np.where(pairs > 0, pairs, np.nan))

        found.append(("area under ROC", area, 0.5))
    return found


def _mean(values: Matrix) -> Measure:
    return lambda i: np.asarray(values[i].mean(axis=-1))


def _score(name: str, measure: Measure, baseline: float, n: int) -> Score:
    value, ends = float(measure(np.arange(n))), (np.nan, np.nan)
    if n >= FEWEST:
        rng = np.random.default_rng(0)
        rounds = min(DRAWS, max(50, CELLS // n)) // TOGETHER
        drawn = np.concatenate([measure(rng.integers(0, n, size=(TOGETHER, n))) for _ in range(rounds)])
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn):
            tail = (1 - COVERAGE) / 2
            ends = tuple(np.quantile(drawn, [tail, 1 - tail]).tolist())
    return Score(name, value, *ends, baseline)
