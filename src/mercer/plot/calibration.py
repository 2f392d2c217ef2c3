"""Calibration plots: do probabilities and intervals keep their promises?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.calibration import Calibration, calibration
from mercer.models.judging.reliability import BAND, ReliabilityCurve, event
from mercer.plot.looks import Display, canvas, legend, numbers

Matrix = NDArray[np.float64]

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(eq=False, repr=False)
class Reliability(Display):
    """Predicted probabilities of an event against its observed frequency, with the bands of a calibrated model.

    Attributes
    ----------
    probabilities, happened : array
        The probability of every row, and whether the event happened, shape (n,).
    predicted, observed, counts : array
        The mean probability, the observed share and the number of rows of each bin.
    lower, upper : array
        The binomial band with 95 % of the observed shares if the probabilities are right, shape (bins,).
    error : float
        Σ counts |observed − predicted|/n, the expected calibration error.
    brier : float
        Mean (probability − happened)².
    what : str
        The event.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> right = mc.plot.Reliability.from_predictions(rng.uniform(size=1000) < p, p, bins=5)
    >>> right.counts, bool(((right.lower <= right.observed) & (right.observed <= right.upper)).all())
    (array([200, 200, 200, 200, 200]), True)
    >>> matplotlib.pyplot.close("all")
    """

    probabilities: Matrix
    happened: NDArray[np.bool_]
    predicted: Matrix
    observed: Matrix
    counts: NDArray[np.int64]
    lower: Matrix
    upper: Matrix
    error: float
    brier: float
    what: str = "it happens"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, label: Any = None, bins: int | None = None, ax: Any = None, **style: Any
    ) -> Self:
        """The probabilities of a fitted classifier on held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`.
        X, y : array or frame, array
            Held-out rows and their classes.
        label
            The class whose probability is shown. By default the second of two classes; with more classes, the event is
            that the predicted class is the true one.
        bins : int or None
            The number of bins, with equally many rows each; by default ten, and fewer for less than 200 rows.
        ax : Axes or None
            Axes to draw in; by default new ones.
        **style
            As for `plot`.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise InvalidInput(
                "A reliability diagram needs a classifier with predict_proba",
                got=type(estimator).__name__,
                advice="Use a model such as mc.KernelLogisticRegression() or mc.SVC(calibrated=True); for a regressor "
                "draw Coverage.",
            )
        classes = np.asarray(estimator.classes_)
        P = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        truth = np.asarray(y).ravel()
        if len(truth) != len(P):
            raise InvalidInput(
                "y must hold one class per row",
                got=f"{len(truth)} for {len(P)} rows",
                advice="Pass X and y of the same rows.",
            )
        happened, p, what = event(classes, P, truth, label)
        return cls.from_predictions(happened, p, bins=bins, what=what, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        happened: Any,
        probabilities: Any,
        *,
        bins: int | None = None,
        what: str = "it happens",
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Probabilities of any model, shape (n,), and whether the event happened."""
        p, hit = numbers(probabilities, "Probabilities").ravel(), np.asarray(happened).ravel()
        curve = ReliabilityCurve.of(hit, p, bins)
        return cls(
            p, hit.astype(bool), curve.predicted, curve.observed, curve.counts, curve.lower, curve.upper, curve.error,
            curve.brier, what,
        ).plot(ax, **style)  # fmt: skip

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones; the bars at the bottom show how often each probability is predicted."""
        with canvas(ax, (6.0, 5.2)) as (ax, palette):
            heights, edges = np.histogram(self.probabilities, bins=25, range=(0.0, 1.0))
            ax.bar(
                edges[:-1], 0.12 * heights / heights.max(), width=np.diff(edges), align="edge", color=palette.grey,
                alpha=0.35, lw=0, label="frequency of predictions",
            )  # fmt: skip
            ax.plot([0, 1], [0, 1], color=palette.grey, lw=1)
            ax.vlines(
                self.predicted, self.lower, self.upper, color=palette.grey, lw=5, alpha=0.45,
                label=f"{100 * BAND:.0f} % if calibrated",
            )  # fmt: skip
            out = (self.observed < self.lower) | (self.observed > self.upper)
            ax.plot(self.predicted, self.observed, color=palette.blue, lw=1.2, zorder=3)
            for some, colour, word in ((~out, palette.blue, "observed"), (out, palette.red, "outside the band")):
                if some.any():
                    ax.plot(self.predicted[some], self.observed[some], "o", color=colour, ms=6, label=word, zorder=4)
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04), ylabel="observed share of rows")
            ax.set(xlabel=f"predicted probability that {self.what}")
            words = f"calibration error {self.error:.3f}, Brier score {self.brier:.3f}"
            ax.set_title(words if title is None else title)
            legend(ax, below=True)
        return self._drawn(ax)


@dataclass(eq=False, repr=False)
class Coverage(Display):
    """Promised against observed coverage of the intervals of a regression on held-out rows.

    Attributes
    ----------
    coverages, observed : array
        Promised and observed shares, shape (c,).
    lower, upper : array
        The band that contains 95 % of the observed shares if the promise holds.
    widths : array
        Mean widths of the intervals.
    n : int
        The number of targets.
    verdict : str
        The verdict in words.
    ax_, figure_ : Axes, Figure
        The axes and the figure of the last drawing.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(400, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.01).fit(X[:200], y[:200])
    >>> mc.plot.Coverage.from_estimator(model, X[200:], y[200:]).verdict
    'well calibrated'
    >>> matplotlib.pyplot.close("all")
    """

    coverages: Matrix
    observed: Matrix
    lower: Matrix
    upper: Matrix
    widths: Matrix
    n: int
    verdict: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverages: Sequence[float] = COVERAGES,
        method: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The intervals of a fitted regressor on these rows; arguments as for `mercer.calibration`."""
        check_is_fitted(estimator)
        model = getattr(estimator, "best_estimator_", estimator)
        return cls.from_calibration(calibration(model, X, y, coverages, method=method), ax=ax, **style)

    @classmethod
    def from_calibration(cls, report: Calibration, *, ax: Any = None, **style: Any) -> Self:
        """The result of `mercer.calibration`."""
        if not isinstance(report, Calibration):
            raise InvalidInput(
                "`report` must be a result of mc.calibration",
                got=type(report).__name__,
                advice="Pass one, or use from_estimator.",
            )
        p = np.asarray(report.coverages)
        ends = [binom.ppf(q, report.n, p) / report.n for q in ((1 - BAND) / 2, (1 + BAND) / 2)]
        observed, widths = np.asarray(report.observed), np.asarray(report.widths)
        return cls(p, observed, ends[0], ends[1], widths, report.n, report.verdict).plot(ax, **style)

    def plot(self, ax: Any = None, *, title: str | None = None) -> Self:
        """Draw in these axes, or in new ones."""
        with canvas(ax, (6.0, 5.0)) as (ax, palette):
            p = np.unique([*np.linspace(0, 1, 21), *self.coverages])
            ends = [binom.ppf(q, self.n, p) / self.n for q in ((1 - BAND) / 2, (1 + BAND) / 2)]
            ends = [np.where(p == 0, 0.0, np.where(p == 1, 1.0, end)) for end in ends]
            label = f"{100 * BAND:.0f} % if the promise holds"
            ax.fill_between(p, *ends, color=palette.grey, alpha=0.3, lw=0, label=label)
            ax.plot([0, 1], [0, 1], color=palette.grey, lw=1)
            ax.plot(self.coverages, self.observed, color=palette.blue, lw=1.2, zorder=3)
            out = (self.observed < self.lower) | (self.observed > self.upper)
            for some, colour, word in ((~out, palette.blue, "observed"), (out, palette.red, "outside the band")):
                if some.any():
                    ax.plot(self.coverages[some], self.observed[some], "o", color=colour, ms=6, label=word, zorder=4)
            ax.set(xlabel="promised coverage", ylabel="observed coverage", xlim=(0, 1.02), ylim=(0, 1.02))
            ax.set_title(f"{self.n:,} targets: {self.verdict.partition(':')[0]}" if title is None else title)
            legend(ax, loc="upper left")
        return self._drawn(ax)
