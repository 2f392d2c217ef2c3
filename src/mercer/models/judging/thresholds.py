"""Which threshold of a probability? Recall, precision, false alarms and costs of all of them, in one record.

A class is predicted for the rows whose probability of it is at least a threshold. The ROC curve and the
precision-recall curve are two views of the same counts: how many rows of the class, and how many others, lie above each
threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.base import weights as sample_weights
from mercer.models.labels import position_of_label
from mercer.validation import check_number, check_paired
from mercer.words import shortened, shown

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
Rule = Literal["f1", "balanced accuracy"]


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdCurve:
    """Predictions of one class at every threshold of its probability.

    Attributes
    ----------
    label
        The class.
    thresholds : array
        Decreasing, shape (t,); the first is infinite, so that no row is predicted to be of the class.
    found, false_alarms : array
        The number of rows of the class, and of other rows, with at least this probability, shape (t,); with weights
        their sums.
    positives, negatives : float
        The number of rows of the class, and of others.

    Examples
    --------
    >>> import numpy as np
    >>> curve = ThresholdCurve.of(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    >>> curve.recall, curve.precision.round(2)
    (array([0. , 0.5, 0.5, 1. , 1. ]), array([1.  , 1.  , 0.5 , 0.67, 0.5 ]))
    >>> curve.area, round(curve.average_precision, 3), round(curve.best("f1"), 3)
    (0.75, 0.833, 0.225)
    """

    label: Any
    thresholds: Matrix
    found: Matrix
    false_alarms: Matrix
    positives: float
    negatives: float

    @classmethod
    def of(cls, happened: Any, probabilities: Any, *, weights: Any = None, label: Any = True) -> ThresholdCurve:
        """The curve of probabilities, shape (n,), of rows that are of the class (1) or not (0)."""
        hit, p = np.asarray(happened).ravel().astype(np.float64), np.asarray(probabilities, dtype=np.float64).ravel()
        w = np.ones(len(p)) if weights is None else sample_weights(weights, len(p))
        w = np.ones(len(p)) if w is None else w
        check_paired(
            "There must be as many finite probabilities as outcomes 0 or 1", "Pass one outcome for each probability.",
            probability=(p, np.isfinite(p)), outcome=(hit, np.isin(hit, (0, 1))),
        )  # fmt: skip
        order = np.argsort(-p, kind="stable")
        last = np.flatnonzero(np.append(np.diff(p[order]) != 0, True))  # equal probabilities cannot be separated
        found, alarms = np.cumsum((w * hit)[order])[last], np.cumsum((w * (1 - hit))[order])[last]
        return cls(
            label,
            np.concatenate([[np.inf], p[order][last]]),
            np.concatenate([[0.0], found]),
            np.concatenate([[0.0], alarms]),
            float(w @ hit),
            float(w @ (1 - hit)),
        )

    @property
    def recall(self) -> Matrix:
        """The share of the rows of the class that are found, the true positive rate; NaN if there are none."""
        return self.found / (self.positives or np.nan)

    @property
    def false_positive_rate(self) -> Matrix:
        """The share of the other rows that are predicted to be of the class; NaN if there are none."""
        return self.false_alarms / (self.negatives or np.nan)

    @property
    def precision(self) -> Matrix:
        """The share of the predicted rows that are of the class; 1 if none is predicted."""
        predicted = self.found + self.false_alarms
        return np.where(predicted > 0, self.found / np.where(predicted > 0, predicted, 1.0), 1.0)

    @property
    def f1(self) -> Matrix:
        """The harmonic mean of recall and precision."""
        return 2 * self.found / np.maximum(self.found + self.false_alarms + self.positives, np.finfo(float).tiny)

    @property
    def balanced_accuracy(self) -> Matrix:
        """The mean recall of the class and of the others."""
        return (self.recall + 1 - self.false_positive_rate) / 2

    def cost(self, missed: float, false_alarm: float) -> Matrix:
        """The mean cost of a row, if a missed row of the class and a false alarm cost this much."""
        total = missed * (self.positives - self.found) + false_alarm * self.false_alarms
        return np.asarray(total / (self.positives + self.negatives))

    @property
    def area(self) -> float:
        """The area under the ROC curve: how often a random row of the class is ranked above another row."""
        return float(np.trapezoid(self.recall, self.false_positive_rate))

    @property
    def average_precision(self) -> float:
        """The mean precision over the recalls that are reached, the area under the precision-recall curve."""
        return float(np.diff(self.recall) @ self.precision[1:])

    def best(self, by: Rule = "f1", *, costs: tuple[float, float] | None = None) -> float:
        """The threshold of the largest F1 or balanced accuracy; with `costs` (missed, false alarm), of the least cost.

        It lies halfway between two probabilities of the rows, so that it does not depend on the last digit of one. If
        it is best to predict no row, it may be just above 1.
        """
        if costs is not None:
            score = -self.cost(*costs)
        elif by in ("f1", "balanced accuracy"):
            score = self.f1 if by == "f1" else self.balanced_accuracy
        else:
            raise InvalidInput(
                "`by` must be 'f1' or 'balanced accuracy'", got=shortened(by), advice="Choose one of the two."
            )
        if not np.isfinite(score).all():
            raise InvalidInput(
                "A threshold needs rows of the class and others",
                got=f"{self.positives:g} of {shown(self.label)} and {self.negatives:g} others",
                advice="Use rows of both classes.",
            )
        at = int(score.argmax())
        below = float(self.thresholds[at + 1]) if at + 1 < len(self.thresholds) else 0.0
        above = float(self.thresholds[at]) if at else float(np.nextafter(max(1.0, below), np.inf))
        middle = (above + below) / 2
        return middle if middle > below else above  # the middle of two neighbouring numbers may be the lower one

    def at(self, threshold: float) -> int:
        """The position of a threshold: the counts there are those of all rows with at least this probability."""
        return int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1

    def __str__(self) -> str:
        return (
            f"{shown(self.label)}: {self.positives:g} rows of {self.positives + self.negatives:g}, area under ROC "
            f"{self.area:.3f}, average precision {self.average_precision:.3f}"
        )

    __repr__ = __str__


def threshold_curve(model: Any, X: Any, y: Any, *, label: Any = None) -> ThresholdCurve:
    """The ROC and precision-recall curve of a fitted classifier on held-out rows.

    Parameters
    ----------
    model : estimator
        A fitted classifier with `predict_proba`.
    X, y : array or frame, array
        Held-out rows and their labels.
    label
        The class whose probability is compared with thresholds; by default the second of two classes.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X[:, 0] + np.random.default_rng(1).normal(size=300) > 1, "yes", "no")
    >>> model = mc.KernelLogisticRegression(mc.Gaussian(2.0)).fit(X[:200], y[:200])
    >>> curve = mc.threshold_curve(model, X[200:], y[200:])
    >>> curve.label, curve.area > 0.8, 0.2 < curve.best("f1") < 0.5
    ('yes', True, True)
    >>> bool(curve.recall[curve.at(0.1)] > 0.7)              # recall if "yes" is predicted from a probability of 0.1
    True
    """
    check_is_fitted(model)
    if not hasattr(model, "predict_proba"):
        raise InvalidInput(
            "Thresholds need a classifier with predict_proba",
            got=type(model).__name__,
            advice="Wrap it: mc.CalibratedClassifier(model).",
        )
    at = position_of_label(np.asarray(model.classes_), label)
    P = np.asarray(model.predict_proba(X), dtype=np.float64)
    positive = np.asarray(model.classes_)[at : at + 1].tolist()[0]
    truth = np.asarray(y).ravel()
    if set(truth.tolist()).isdisjoint(np.asarray(model.classes_).tolist()):
        raise InvalidInput(
            "y must hold classes of the model",
            got=f"{shown(truth[0])} and no class" if len(truth) else "no row",
            advice=f"Pass labels such as {shown(positive)}, with the same type.",
        )
    return ThresholdCurve.of(truth == positive, P[:, at], label=positive)


def threshold_of_costs(missed: Any, false_alarm: Any) -> float:
    """The threshold of the least expected cost, false_alarm/(missed + false_alarm), if probabilities are calibrated.

    >>> threshold_of_costs(9, 1)
    0.1
    """
    a, b = (
        check_number(
            value, name, above=0, advice="Pass the costs of a missed row and of a false alarm, such as (5, 1)."
        )
        for value, name in ((missed, "missed"), (false_alarm, "false_alarm"))
    )
    return float(b / (a + b))
