"""Scores of a model on held-out rows, beside a baseline that uses no column.

The baseline is that of the rows that the model was fitted to: their mean, for the absolute error their median, for
classes the most frequent one, and for the log loss the share of each class. Every score has a bootstrap interval, which
shows what another test set of this size might give, not what another training set would.

    train, test = hold_out(y, 0.2)
    model = mc.KernelRidge(alpha="loo").fit(X[train], y[train])
    judgement = judge(model, X[test], y[test], Baseline.of(y[train]))
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.models.base import exposures_in, innermost
from mercer.models.judging.counts import CountFit, count_fit
from mercer.models.judging.measures import COVERAGE, MEASURES, Guesses, Predicted, measured
from mercer.tuning.folds import group_numbers, time_ranks
from mercer.validation import check_number, generator

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
Judged = Literal["held out", "left out", "folds", "fitted"]
"""Which predictions are scored: of held-out rows, of training rows by leave-one-out or cross-validation, or of training
rows directly."""


@dataclass(frozen=True)
class Baseline:
    """A model without columns: the mean, median and middle 90 % of the training targets, or the share of each class.

    Of counts over an exposure, `rate` is their sum divided by that of the exposures: the mean for an exposure of 1.

    >>> import numpy as np
    >>> Baseline.of(np.array([1.0, 2.0, 6.0]))
    Baseline(mean=3.0, median=2.0, classes=(), shares=(), low=1.1, high=5.6, rate=None)
    >>> Baseline.of(np.array(["no", "no", "yes", "no"]), classes=True)
    Baseline(mean=nan, median=nan, classes=('no', 'yes'), shares=(0.75, 0.25), low=nan, high=nan, rate=None)
    >>> counts = Baseline.of(np.array([1.0, 2.0]), exposure=np.array([2.0, 4.0]))
    >>> counts.rate, counts.guesses(np.array([0.0, 2.0]), np.array([1.0, 3.0])).mean
    (0.5, array([0.5, 1.5]))
    """

    mean: float = np.nan
    median: float = np.nan
    classes: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()
    low: float = np.nan
    high: float = np.nan
    rate: float | None = None

    @classmethod
    def of(cls, y: NDArray[Any], *, classes: bool = False, exposure: Matrix | None = None) -> Baseline:
        """The baseline of these training targets, and of their exposures if they are counts over these."""
        y = np.asarray(y)
        if not classes:
            tail = (1 - COVERAGE) / 2
            low, median, high = np.quantile(y.astype(np.float64), [tail, 0.5, 1 - tail]).tolist()
            rate = None if exposure is None else float(y.sum() / exposure.sum())
            return cls(mean=float(y.astype(np.float64).mean()), median=median, low=low, high=high, rate=rate)
        values, times = np.unique(y, return_counts=True)
        return cls(classes=tuple(values.tolist()), shares=tuple((times / len(y)).tolist()))

    def guesses(self, y: NDArray[Any], exposure: Matrix | None = None) -> Guesses:
        """The predictions of this baseline for rows with the targets y: one rate for all of them if it is known."""
        values, shares = np.asarray(self.classes), np.asarray(self.shares)
        if len(values):
            right = (y == values[shares.argmax()]).astype(np.float64)
            share = np.where(values == y[:, None], shares, 0.0).sum(axis=1)
        else:
            right = share = np.full(len(y), np.nan)
        mean, median, low, high = (np.full(len(y), value) for value in (self.mean, self.median, self.low, self.high))
        if self.rate is not None and exposure is not None:
            mean = self.rate * exposure
        return Guesses(mean, median, low, high, right, share)


def baseline_in_words(names: Set[str], *, rate: bool = False) -> str:
    """The predictions of the baseline of these measures, in words; with `rate` the targets are counts over an exposure.

    >>> baseline_in_words({"R²", "RMSE", "MAE"})
    'always the mean of the training targets (for the MAE their median)'
    """
    if "accuracy" not in names:
        mean = "the mean of the training targets"
        if rate:
            mean = "one rate for all rows, that of the training rows, times the exposure"
        median = "the median of the training targets" if rate else "their median"
        return f"always {mean}" + (f" (for the MAE {median})" if "MAE" in names else "")
    shares = " (for the log loss the share of each class)" if "log loss" in names else ""
    return f"always the most frequent class of the training rows{shares}"


@dataclass(frozen=True)
class Score:
    """A measure with its 90 % interval (NaN for few rows) and the value of the baseline (NaN if it is not known)."""

    name: str
    value: float
    low: float
    high: float
    baseline: float

    @property
    def rounded_baseline(self) -> float:
        """The baseline to show: an R² near 0 is 0, since the mean of other rows differs only a little.

        >>> Score("R²", 0.8, 0.7, 0.9, -1.9e-5).rounded_baseline, Score("RMSE", 3.0, 2.5, 3.5, 0.004).rounded_baseline
        (0.0, 0.004)
        """
        return round(self.baseline, 3) + 0.0 if self.name == "R²" else self.baseline

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
    """Predictions of rows, and their scores.

    Attributes
    ----------
    predictions : array
        Shape (m,).
    losses : array
        The loss of each row: its squared error; −log of the probability of its class; or 1 if its class is wrong.
    scores : tuple of Score
        The measures that are finite.
    probabilities, classes : array or None
        The probabilities of the classes, shape (m, k), and their labels, or None.
    by : Judged
        Which predictions are scored.
    rows : Index
        The position of the row that each prediction is for, shape (m,): all rows once, except for cross-validation,
        which may predict a row by several repeats, or in time not at all.
    folds : Index or None
        The number of the fold that made each prediction, shape (m,); None without folds.
    intervals : array or None
        The ends of 90 % intervals, shape (m, 2); None if they are not judged.
    counts : bool
        Whether the targets are counts and the predictions their means.
    rate : bool
        Whether the baseline is one rate for all rows times their exposures.
    apart
        Whether the rows are of other groups, or later, than the rows of the fit.
    units
        The number of the group of each prediction, of which rows depend on each other; None without groups.
    """

    predictions: NDArray[Any]
    losses: Matrix
    scores: tuple[Score, ...]
    probabilities: Matrix | None
    classes: NDArray[Any] | None
    by: Judged
    rows: Index
    folds: Index | None = None
    intervals: Matrix | None = None
    counts: bool = False
    rate: bool = False
    apart: bool = False
    units: Index | None = None

    @classmethod
    def of(
        cls,
        predicted: Predicted,
        by: Judged,
        rows: Index | None = None,
        folds: Index | None = None,
        apart: bool = False,
    ) -> Judgement:
        """The scores of predictions."""
        scores = tuple(Score(*score) for score in measured(predicted))
        rows = np.arange(len(predicted.y)) if rows is None else rows
        return cls(
            predicted.predictions, predicted.losses, scores, predicted.probabilities, predicted.classes, by, rows,
            folds, predicted.intervals, predicted.counts, predicted.rate, apart, predicted.units,
        )  # fmt: skip

    def once(self) -> Judgement:
        """The same scores with one prediction for each row, the first, if repeats made several."""
        first = np.sort(np.unique(self.rows, return_index=True)[1])
        return replace(
            self,
            predictions=self.predictions[first],
            losses=self.losses[first],
            probabilities=None if self.probabilities is None else self.probabilities[first],
            rows=self.rows[first],
            folds=None if self.folds is None else self.folds[first],
            intervals=None if self.intervals is None else self.intervals[first],
            units=None if self.units is None else self.units[first],
        )

    def count_fit(self, y: Any) -> CountFit | None:
        """The fit of the targets y of these predictions if they are counts, with the interval of the dispersion."""
        score = next((score for score in self.scores if score.name == "dispersion"), None)
        if not self.counts or score is None:
            return None
        return count_fit(y, self.predictions, (score.low, score.high) if np.isfinite(score.low) else None)

    def __getitem__(self, name: str) -> Score:
        """The score of this name."""
        return next(score for score in self.scores if score.name == name)

    def __str__(self) -> str:
        return "\n".join(f"{s.name} {s.value:.4g} (baseline {s.baseline:.4g})" for s in self.scores)


def hold_out(
    y: Any,
    share: float = 0.2,
    *,
    classes: bool = False,
    groups: Any = None,
    times: Any = None,
    random_state: int = 0,
) -> tuple[Index, Index]:
    """Training rows and held-out rows, in their order.

    Parameters
    ----------
    y : array
        (n,) targets or labels.
    share : float
        The share of rows to hold out.
    classes : bool
        Whether y are labels. Each class then keeps its share, and at least one training row.
    groups
        (n,) or None. Whole groups are held out, drawn at random, in about the given share of the rows.
    times
        (n,) numbers or dates, or None. The last rows in time are held out.
    random_state : int
        Seed of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> train, test = hold_out(np.arange(50.0), 0.2)
    >>> len(train), len(test), len(np.intersect1d(train, test))
    (40, 10, 0)
    >>> hold_out(np.arange(6.0), 0.3, times=[3, 1, 2, 3, 1, 2])
    (array([1, 2, 4, 5]), array([0, 3]))
    """
    y = np.asarray(y)
    check_number(share, "share", least=0, below=1, such_as=0.2)
    rng, every = generator(random_state), np.arange(len(y))
    if share == 0:
        return every, every[:0]
    if groups is not None or times is not None:
        if groups is not None and times is not None:
            raise InvalidInput(
                "Rows are held out by groups or by time", got="both", advice="Pass one of `groups` and `times`."
            )
        test = _last_in_time(times, len(y), share) if groups is None else _whole_groups(groups, len(y), share, rng)
        return np.setdiff1d(every, test), test
    if not classes:
        order, size = rng.permutation(len(y)), min(max(1, round(share * len(y))), len(y) - 1)
        return np.sort(order[size:]), np.sort(order[:size])
    held_out: list[int] = []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        held_out += rows[: min(round(share * len(rows)), len(rows) - 1)].tolist()
    test = np.sort(np.asarray(held_out, dtype=np.int64))
    return np.setdiff1d(every, test), test


def _whole_groups(groups: Any, n: int, share: float, rng: np.random.Generator) -> Index:
    """The rows of groups that are drawn at random, nearest to a share of the rows."""
    members = group_numbers(groups, n)
    return _nearest(members, rng.permutation(members.max() + 1), share, "groups")


def _last_in_time(times: Any, n: int, share: float) -> Index:
    """The rows of the last times, nearest to a share of the rows."""
    ranks = time_ranks(times, n)
    return _nearest(ranks, np.arange(ranks.max() + 1)[::-1], share, "times")


def _nearest(codes: Index, order: Index, share: float, what: str) -> Index:
    """The rows of the first codes in this order, as many codes as bring them nearest to a share of the rows."""
    if len(order) < 2:
        raise InvalidInput(
            f"`{what}` must have at least two different values", got="one", advice="Hold rows out without them."
        )
    sizes = np.cumsum(np.bincount(codes)[order])
    last = int(np.abs(sizes[:-1] - share * len(codes)).argmin())
    return np.flatnonzero(np.isin(codes, order[: last + 1]))


def judge(
    model: Any,
    X: Any,
    y: Any,
    baseline: Baseline | None = None,
    *,
    predictions: NDArray[Any] | None = None,
    probabilities: Matrix | None = None,
    intervals: bool | Matrix | None = False,
    apart: bool = False,
    groups: Any = None,
    exposure: Matrix | None = None,
    by: Judged = "held out",
) -> Judgement:
    """Score a fitted regressor or classifier on rows.

    Parameters
    ----------
    model : estimator
        A fitted model.
    X, y : array or frame, array
        n rows and their targets.
    baseline : Baseline or None
        The baseline of the training targets; None if they are not known (the scored rows must not decide it).
    predictions, probabilities : array or None
        Predictions to score instead of those of the model, such as leave-one-out predictions.
    intervals : bool
        Whether 90 % intervals are scored: those of the model, or if `with_intervals` would take them from the residuals
        of these rows, those from the residuals of one half of the rows for the other half. Or the ends of the intervals
        to score, shape (n, 2).
    apart : bool
        Whether these rows are of other groups, or later, than the training rows, as for `with_intervals`.
    groups
        (n,) or None. Rows of one group depend on each other: the intervals of scores draw whole groups.
    exposure : array or None
        (n,) or None. The exposures of the rows, for a baseline of counts over an exposure; by default the column of X
        that is the exposure of the model.
    by : Judged
        Which predictions are scored, for the record.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01).fit(X[:100], y[:100])
    >>> judgement = judge(model, X[100:], y[100:], Baseline.of(y[:100]))
    >>> [score.name for score in judgement.scores], judgement["R²"].value > 0.99
    (['R²', 'RMSE', 'MAE'], True)
    """
    y = np.asarray(y)
    baseline = Baseline() if baseline is None else baseline
    units = None if groups is None else group_numbers(groups, len(y))
    judged = predicted(
        model, X, y, baseline, predictions=predictions, probabilities=probabilities, units=units, exposure=exposure
    )
    if isinstance(intervals, np.ndarray):
        judged = replace(judged, intervals=intervals)
    elif intervals and judged.classes is None and predictions is None:
        # Imported here, since intervals need the record of where a model comes from, and that needs this module.
        from mercer.models.judging.held_out_intervals import held_out_intervals

        ends = held_out_intervals(model, X, y, judged.predictions, COVERAGE, units=units, apart=apart)
        judged = replace(judged, intervals=ends)
    return Judgement.of(judged, by, apart=apart)


def predicted(
    model: Any,
    X: Any,
    y: NDArray[Any],
    baseline: Baseline,
    *,
    predictions: NDArray[Any] | None = None,
    probabilities: Matrix | None = None,
    units: Index | None = None,
    exposure: Matrix | None = None,
) -> Predicted:
    """The predictions of a fitted model for rows, beside their targets and the guesses of a baseline."""
    classes, P = np.asarray(model.classes_) if is_classifier(model) else None, probabilities
    if predictions is None:
        predictions = np.asarray(model.predict(X))
        if classes is not None and hasattr(model, "predict_proba"):
            P = np.asarray(model.predict_proba(X), dtype=np.float64)
    exposure = exposures_in(X, model) if exposure is None else exposure
    rate = baseline.rate is not None and exposure is not None
    guesses = baseline.guesses(y, exposure)
    return Predicted(y, predictions, guesses, classes, P, counts=predicts_counts(model), units=units, rate=rate)


def predicts_counts(model: Any) -> bool:
    """Whether a model predicts the mean of a count, by the likelihood that it was fitted with."""
    family = getattr(innermost(model), "family_", None)
    return getattr(family, "name", "") in ("poisson", "negative_binomial")


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
    baseline, P = Baseline.of(y, classes=is_classifier(model), exposure=exposures_in(X, model)), None
    if is_classifier(model):
        try:
            P = np.asarray(model.loo_proba_)
        except (AttributeError, InvalidInput):
            P = None
    return judge(model, X, y, baseline, predictions=predictions, probabilities=P, by="left out")
