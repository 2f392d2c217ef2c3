"""ROC and precision-recall curves: the rows that each threshold of a probability finds, and its false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.models.judging.thresholds import ThresholdCurve, threshold_curve
from mercer.plot.looks import Display, canvas, caption, legend
from mercer.words import shortened

Matrix = NDArray[np.float64]

MOST = 5
"""The largest number of classes whose curves are drawn: those with most rows."""


@dataclass(eq=False, repr=False)
class OfThresholds(Display):
    """Curves over all thresholds, one for each class that is compared with the others.

    Attributes
    ----------
    curves : tuple of ThresholdCurve
        The curves.
    threshold : float or None
        The threshold to mark, or None; for one curve only.
    """

    curves: tuple[ThresholdCurve, ...]
    threshold: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, label: Any = None, ax: Any = None, **style: Any) -> Self:
        """The curve of a fitted classifier on held-out rows, with its threshold if it has one.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`.
        X, y : array or frame, array
            Held-out rows and their classes.
        label
            The class whose probability is compared with thresholds; by default the second of two classes, and with more
            classes each of them against the others (at most five, those with most rows).
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        classes = np.asarray(getattr(estimator, "classes_", ()))
        if label is None and len(classes) > 2 and hasattr(estimator, "predict_proba"):
            P = np.asarray(estimator.predict_proba(X), dtype=np.float64)
            return cls.from_predictions(np.asarray(y).ravel(), P, classes, ax=ax, **style)
        curve = threshold_curve(estimator, X, y, label=label)
        own = getattr(estimator, "label", None)
        same = bool(curve.label == (classes[-1] if own is None else own))
        return cls((curve,), getattr(estimator, "threshold_", None) if same else None).plot(ax, **style)

    @classmethod
    def from_predictions(
        cls, y: Any, P: Any, classes: Any, *, threshold: float | None = None, ax: Any = None, **style: Any
    ) -> Self:
        """Probabilities P (n, k) of these classes for rows of the classes y; of two classes the second is shown."""
        truth, P, classes = np.asarray(y).ravel(), np.asarray(P, dtype=np.float64), np.asarray(classes)
        if P.ndim != 2 or P.shape != (len(truth), len(classes)) or not len(truth):
            raise InvalidInput(
                "P must hold one row for each label and one column for each class",
                got=f"shape {P.shape} for {len(truth)} labels and {len(classes)} classes",
                advice="Pass the result of predict_proba and classes_.",
            )
        rows = (truth[:, None] == classes).sum(axis=0)
        at = [1] if len(classes) == 2 else np.sort(np.argsort(-rows, kind="stable")[:MOST])
        curves = [ThresholdCurve.of(truth == classes[j], P[:, j], label=classes[j]) for j in at]
        curves = [curve for curve in curves if curve.positives and curve.negatives]
        if not curves:
            raise InvalidInput(
                "A curve needs rows of two classes",
                got=f"{len(np.unique(truth))} class",
                advice="Use more held-out rows.",
            )
        return cls(tuple(curves), threshold if len(curves) == 1 else None).plot(ax, **style)

    @classmethod
    def from_curves(
        cls, curves: Sequence[ThresholdCurve], *, threshold: float | None = None, ax: Any = None, **style: Any
    ) -> Self:
        """Curves that were computed before, such as those of several models."""
        if not curves or not all(isinstance(curve, ThresholdCurve) for curve in curves):
            raise InvalidInput(
                "`curves` must hold results of mc.threshold_curve", got=shortened(curves), advice="Pass a list of them."
            )
        return cls(tuple(curves), threshold).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (6.0, 5.0)) as (ax, palette):
            for curve, colour in zip(self.curves, palette.series):
                x, y = self._line(curve)
                name = caption(str(curve.label), 30)
                ax.plot(x, y, color=colour, lw=1.8, zorder=3, label=f"{name}, {self._summary(curve)}", **self._steps())
                if self.threshold is not None:
                    at = curve.at(self.threshold)
                    label = f"threshold {self.threshold:.3g}"
                    ax.plot(x[at], y[at], "o", color=palette.ink, ms=7, zorder=4, label=label)
            self._reference(ax, palette)
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
            ax.set_title(title or "")
            legend(ax, below=len(self.curves) > 1)
        return self._drawn(ax)

    def _line(self, curve: ThresholdCurve) -> tuple[Matrix, Matrix]:
        raise NotImplementedError

    def _summary(self, curve: ThresholdCurve) -> str:
        raise NotImplementedError

    def _steps(self) -> dict[str, Any]:
        return {}

    def _reference(self, ax: Any, palette: Any) -> None:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ROC(OfThresholds):
    """The ROC curve of a classifier: recall of a class against the share of false alarms among other rows.

    Attributes
    ----------
    curves : tuple of ThresholdCurve
        The curves, one for each class that is compared with the others.
    threshold : float or None
        The threshold to mark, or None; for one curve only.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=200) > 0
    >>> model = mc.KernelLogisticRegression(mc.Gaussian(2.0)).fit(X[:100], y[:100])
    >>> roc = mc.plot.ROC.from_estimator(model, X[100:], y[100:])
    >>> roc.curves[0].area > 0.8
    True
    >>> matplotlib.pyplot.close("all")
    """

    def _line(self, curve: ThresholdCurve) -> tuple[Matrix, Matrix]:
        return curve.false_positive_rate, curve.recall

    def _summary(self, curve: ThresholdCurve) -> str:
        return f"area {curve.area:.3f}"

    def _reference(self, ax: Any, palette: Any) -> None:
        ax.plot([0, 1], [0, 1], color=palette.grey, lw=1, label="chance")
        ax.set(xlabel="false positive rate (share of the other rows)", ylabel="recall (share of the class)")


@dataclass(eq=False, repr=False)
class PrecisionRecall(OfThresholds):
    """The precision-recall curve of a classifier: the share of predictions that are right against the share of rows
    found.

    Attributes
    ----------
    curves : tuple of ThresholdCurve
        The curves, one for each class that is compared with the others.
    threshold : float or None
        The threshold to mark, or None; for one curve only.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=200) > 0
    >>> model = mc.KernelLogisticRegression(mc.Gaussian(2.0)).fit(X[:100], y[:100])
    >>> curve = mc.plot.PrecisionRecall.from_estimator(model, X[100:], y[100:]).curves[0]
    >>> curve.average_precision > 0.7
    True
    >>> matplotlib.pyplot.close("all")
    """

    def _line(self, curve: ThresholdCurve) -> tuple[Matrix, Matrix]:
        return curve.recall, curve.precision

    def _summary(self, curve: ThresholdCurve) -> str:
        return f"average precision {curve.average_precision:.3f}"

    def _steps(self) -> dict[str, Any]:
        return {"drawstyle": "steps-pre"}

    def _reference(self, ax: Any, palette: Any) -> None:
        if len(self.curves) == 1:
            curve = self.curves[0]
            share = curve.positives / (curve.positives + curve.negatives)
            ax.axhline(share, color=palette.grey, lw=1, label=f"chance, {share:.1%} of the rows")
        ax.set(xlabel="recall (share of the class that is found)", ylabel="precision (share that is right)")
