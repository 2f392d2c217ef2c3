"""Predicted against actual targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.plot.looks import Display, canvas, caption, dots, legend, numbers
from mercer.validation import check_number

Matrix = NDArray[np.float64]

BARS = 150
"""The largest number of rows whose intervals are drawn."""


@dataclass(eq=False, repr=False)
class PredictedActual(Display):
    """Targets of a regression against their predictions: on the diagonal a prediction is right.

    Attributes
    ----------
    predicted, actual : array
        The predictions and the targets, shape (n,).
    lower, upper : array or None
        The ends of the intervals, shape (n,); or None.
    coverage : float or None
        The coverage of the intervals, or None.
    name : str
        The name of the target, or "".
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X[::2], y[::2])
    >>> shown = mc.plot.PredictedActual.from_estimator(model, X[1::2], y[1::2], coverage=0.9)
    >>> bool(np.mean((shown.lower <= shown.actual) & (shown.actual <= shown.upper)) > 0.8)
    True
    >>> matplotlib.pyplot.close("all")
    """

    predicted: Matrix
    actual: Matrix
    lower: Matrix | None = None
    upper: Matrix | None = None
    coverage: float | None = None
    name: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, coverage: float | None = None, ax: Any = None, **style: Any
    ) -> Self:
        """The predictions of a fitted regressor for held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor; intervals need `predict_interval`.
        X, y : array or frame, array
            Held-out rows and their targets, shape (n,).
        coverage : float or None
            The coverage of intervals to draw; None draws none.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        if is_classifier(estimator):
            raise InvalidInput(
                "Predicted against actual needs a regressor", got=type(estimator).__name__, advice="Draw Reliability."
            )
        ends = None
        if coverage is not None:
            check_number(coverage, "coverage", above=0, below=1, such_as=0.9)
            if not hasattr(estimator, "predict_interval"):
                raise InvalidInput(
                    "`coverage` needs a model with predict_interval",
                    got=type(estimator).__name__,
                    advice="Pass coverage=None, or fit mc.ConformalRegressor(model).",
                )
            ends = estimator.predict_interval(X, coverage)
        name = str(getattr(y, "name", None) or "")
        return cls.from_predictions(
            y, estimator.predict(X), intervals=ends, coverage=coverage, name=name, ax=ax, **style
        )

    @classmethod
    def from_predictions(
        cls, y: Any, predicted: Any, *, intervals: Any = None, coverage: float | None = None, name: str = "",
        ax: Any = None, **style: Any,
    ) -> Self:  # fmt: skip
        """Targets and predictions by any model, shape (n,), and intervals, shape (n, 2), or None."""
        actual, f = numbers(y, "y"), numbers(predicted, "Predictions")
        ends = None if intervals is None else numbers(intervals, "Intervals")
        wrong = actual.ndim != 1 or actual.shape != f.shape or not len(f) or not np.isfinite(actual - f).all()
        if wrong or (ends is not None and ends.shape != (len(f), 2)):
            raise InvalidInput(
                "y and predictions must be finite and of equal length, with two ends for each interval",
                got=f"shapes {actual.shape} and {f.shape}" + ("" if ends is None else f" with {ends.shape}"),
                advice="Pass one target at a time.",
            )
        lower, upper = (None, None) if ends is None else ends.T
        return cls(f, actual, lower, upper, coverage, name).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; of many intervals, some at even steps of the prediction are drawn."""
        with canvas(ax, (6.0, 5.2)) as (ax, palette):
            f, y = self.predicted, self.actual
            ax.plot(
                [f.min(), f.max()], [f.min(), f.max()], color=palette.grey, lw=1, zorder=1, label="predicted = actual"
            )
            ax.plot(f, y, "o", color=palette.blue, zorder=3, **dots(len(f)))
            if self.lower is not None and self.upper is not None:
                shown = np.argsort(f, kind="stable")[np.linspace(0, len(f) - 1, min(len(f), BARS)).astype(int)]
                share = "" if self.coverage is None else f"{100 * self.coverage:.4g} % "
                ax.vlines(
                    f[shown], self.lower[shown], self.upper[shown], color=palette.wash(palette.blue, 0.35), lw=1.2,
                    zorder=2, label=f"{share}intervals",
                )  # fmt: skip
            margin = 0.03 * (np.ptp(f) or 1.0)
            ax.set_xlim(f.min() - margin, f.max() + margin)
            name = caption(self.name, 40)
            ax.set(xlabel=f"predicted {name}".rstrip(), ylabel=f"actual {name}".rstrip())
            ax.set_title(title or "")
            legend(ax)
        return self._drawn(ax)
