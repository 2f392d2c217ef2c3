"""The plots that suit a model: predictions, residuals or probabilities, its kernel, and how it was fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer import plot
from mercer.data.points import take
from mercer.models.base import exposure_of, innermost
from mercer.models.calibration import Calibration
from mercer.models.conformal import with_intervals
from mercer.models.explaining.effects import BACKGROUND, interactions
from mercer.models.explaining.effort import Effort
from mercer.models.judging.counts import count_fit
from mercer.models.judging.held_out_intervals import held_out_intervals, own_intervals
from mercer.models.judging.measures import COVERAGE
from mercer.models.judging.reliability import event
from mercer.models.scores import Judgement
from mercer.plot.looks import caption, pyplot
from mercer.report.frames import cell, described
from mercer.words import number

CURVES, PAIRED, SURFACES = 4, 5, 2
"""The numbers of columns along which a curve is drawn, of columns whose pairs are compared, and of drawn pairs."""
NOTABLE = 0.1
"""Pairs of columns with a smaller share of interaction are not drawn."""
CURVE_ROWS, KERNEL_ROWS, INTERVAL_ROWS = 1000, 300, 300
"""The largest numbers of rows shown with a curve, in plots of the kernel, and for the coverage of intervals."""
SIZE = (6.0, 4.6)
"""Width and height of every plot, in inches."""
COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95)
GRID, FEWEST = 25, 10
"""The number of values along a column, and the fewest background rows in limited time."""
CURVES_SHARE, SURFACES_SHARE, PAIRS_SHARE, COVERAGE_SHARE = 0.25, 0.2, 0.2, 0.05
"""Shares of the time for explanations: of the curves, the surfaces, the comparison of pairs, and of intervals."""

Plot = tuple[Callable[[], Any], str]
"""A function that draws, and the caption."""


@dataclass(eq=False)
class Plots:
    """The plots of a model that was fitted to X, y and scored on Z, z.

    Attributes
    ----------
    judgement : Judgement
        The predictions of Z and their scores.
    target : str
        The name of the target.
    names, order : list of str, array
        The names of the columns, and their positions, the most important first.
    effort
        The time for predictions of other rows, which decides on how many.
    """

    model: Any
    X: Any
    y: NDArray[Any]
    Z: Any
    z: NDArray[Any]
    judgement: Judgement
    target: str
    names: list[str]
    order: NDArray[np.int64]
    effort: Effort

    def of_predictions(self) -> Iterator[Plot]:
        """How good predictions, probabilities and intervals are."""
        yield from self._of_classes() if is_classifier(self.model) else self._of_numbers()

    def of_columns(self) -> Iterator[Plot]:
        """How predictions depend on the most important columns, and on pairs that interact."""
        if is_classifier(self.model):
            if len(self.names) == 2:
                yield (
                    lambda: plot.DecisionSurface.from_estimator(self.model, self.X, y=self.y),
                    "Where each class is predicted.",
                )
            if not hasattr(self.model, "predict_proba"):
                return
        label, columns = self._label(), self._drawable()
        if label is None and len(self.names) == 1 and columns:
            yield self._curve, f"{self.target} along {self.names[0]}. {self._band}".rstrip()
            return
        what = self.target if label is None else f"Probability of {cell(label)}"
        for j in columns[:CURVES]:
            yield (
                partial(self._dependence, [j], label),
                f"{what} by {self.names[j]}: the mean prediction over rows if all of them had this value (partial "
                f"dependence). {self._band or 'The band holds the curves of 90 % of the rows.'}",
            )
        if len(columns) < 2:
            return
        positions = {name: j for j, name in enumerate(self.names)}
        effects = PAIRED * (PAIRED + 1) // 2  # of one and of two columns, at every row over all rows
        rows = math.isqrt(self.effort.most(effects * self.effort.row, FEWEST**2, BACKGROUND**2, PAIRS_SHARE))
        for pair in interactions(self.model, self.X, columns[:PAIRED], label=label, rows=rows)[:SURFACES]:
            if pair.share < NOTABLE:
                break
            first, second = pair.columns
            yield (
                partial(self._dependence, [positions[first], positions[second]], label),
                f"{what} by {first} and {second}, the mean prediction over rows. These columns interact: their joint "
                f"effect differs from the sum of their single effects by {number(pair.strength, 2)} (standard "
                f"deviation; Friedman's H is {pair.share:.2f}).",
            )

    def of_kernel(self) -> Iterator[Plot]:
        """The kernel, and how the model was fitted."""
        inner = innermost(self.model)
        if getattr(inner, "kernel_", None) is not None:
            yield from self._of_kernel(inner.kernel_)
        if hasattr(inner, "path_"):
            yield lambda: plot.TuningPath.from_estimator(inner), "How the penalty alpha was chosen."
        if hasattr(inner, "trace_"):
            yield lambda: plot.Convergence.from_estimator(inner), "Convergence of the solver."

    def _drawable(self) -> list[int]:
        """The positions of features that are numbers, dates or categories, the most important first; not of texts."""
        if isinstance(self.X, list) or hasattr(self.X, "tocsr"):
            return []
        rows = take(self.X, evenly_spaced(len(self.y), CURVE_ROWS))
        kinds = [column.kind for column in described(rows)]
        exposure = exposure_of(self.model)
        return [int(j) for j in self.order if kinds[j] != "text" and self.names[j] != exposure]

    def _label(self) -> Any:
        """The class whose probability is explained: the second of two, or the most frequent one; None for numbers."""
        if not is_classifier(self.model):
            return None
        labels, counts = np.unique(self.y, return_counts=True)
        classes = np.asarray(self.model.classes_).tolist()
        return classes[1] if len(classes) == 2 else labels.tolist()[counts.argmax()]

    def _dependence(self, columns: list[int], label: Any) -> Any:
        pair = columns[0] if len(columns) == 1 else tuple(columns)
        what = self.target if label is None else f"probability of {cell(label)}"
        banded = None if len(columns) > 1 else self._with_intervals
        coverage = None if banded is None else COVERAGE
        model = self.model if banded is None else banded
        cost = self.effort.row if banded is None else self.effort.interval
        each, share = (SURFACES * GRID**2, SURFACES_SHARE) if len(columns) > 1 else (CURVES * GRID, CURVES_SHARE)
        rows = self.effort.most(each * cost, FEWEST, BACKGROUND, share)
        return plot.PartialDependence.from_estimator(
            model, self.X, pair, label=label, what=what, coverage=coverage, grid=GRID, rows=rows
        )

    def _of_classes(self) -> Iterator[Plot]:
        P, classes = self.judgement.probabilities, self.judgement.classes
        if P is not None and classes is not None:
            happened, p, what = event(classes, P, self.z)
            yield (
                lambda: plot.Reliability.from_predictions(happened, p, what=what),
                "Predicted probability against the observed share of rows: on the diagonal the model is calibrated. "
                "The calibration error is the mean distance from the diagonal. The Brier score is the mean squared "
                "difference between the probability and the outcome (1 or 0): 0 is perfect, 0.25 is a coin toss.",
            )
            threshold = self._threshold
            each = "" if len(classes) == 2 else ", of each class against the others"
            yield (
                lambda: plot.ROC.from_predictions(self.z, P, classes, threshold=threshold),
                f"ROC curve{each}: recall (the share of the class that is found) against the share of false alarms "
                "among other rows, for every threshold of the probability. The area is 1 if the class is always "
                "ranked first, 0.5 by chance.",
            )
            yield (
                lambda: plot.PrecisionRecall.from_predictions(self.z, P, classes, threshold=threshold),
                f"Precision-recall curve{each}: precision (the share of predictions of the class that are right) "
                "against recall (the share of the class that is found). It matters more than the ROC curve if the "
                "class is rare.",
            )

    @property
    def _threshold(self) -> float | None:
        """The probability from which the second of two classes is predicted, if it is not the more probable one."""
        threshold: float | None = getattr(self.model, "threshold_", None)
        if threshold is None:
            return None
        return 1.0 - threshold if self.model.label == self.model.classes_[0] else threshold

    def _of_numbers(self) -> Iterator[Plot]:
        predictions, ends = self.judgement.predictions, self.judgement.intervals
        words = "" if ends is None else f", with {100 * COVERAGE:.0f} % intervals"
        yield (
            lambda: plot.PredictedActual.from_predictions(
                self.z, predictions, intervals=ends, coverage=None if ends is None else COVERAGE, name=self.target
            ),
            f"Actual against predicted {self.target}{words}: on the diagonal a prediction is right.",
        )
        yield (
            lambda: plot.Residuals.from_predictions(self.z, predictions, name=self.target),
            f"Residuals against predicted {self.target}: a trend is structure that the model missed, and a band that "
            "widens means larger errors there.",
        )
        if self.judgement.counts and count_fit(self.z, predictions) is not None:
            yield (
                lambda: plot.Rootogram.from_predictions(self.z, predictions, name=self.target),
                "Rootogram: how often each count occurs, as bars that hang from the expected numbers of a Poisson "
                "distribution with the predicted means. A bar that ends above 0 is rarer than expected, below 0 more "
                "frequent; bars beyond the band deviate by more than chance.",
            )
        if ends is None:
            tail = (1 - COVERAGE) / 2
            low, high = (number(end, 3) for end in np.quantile(self.z - predictions, [tail, 1 - tail]))
            yield (
                lambda: plot.Residuals.from_predictions(self.z, predictions, kind="histogram", name=self.target),
                f"Distribution of the residuals: {100 * COVERAGE:.0f} % of them are between {low} and {high}.",
            )
        elif self.judgement.by == "held out":
            yield self._coverage, "Observed against promised coverage of the prediction intervals."

    def _coverage(self) -> Any:
        """Observed against promised coverage of the intervals that predictions of this model get."""
        each = len(COVERAGES) * self.effort.interval
        rows = evenly_spaced(len(self.z), self.effort.most(each, 100, INTERVAL_ROWS, COVERAGE_SHARE))
        Z, z, f = take(self.Z, rows), self.z[rows], self.judgement.predictions[rows]
        apart, units = self.judgement.apart, self.judgement.units
        units = None if units is None else units[rows]
        intervals = {c: held_out_intervals(self.model, Z, z, f, c, units=units, apart=apart) for c in COVERAGES}
        known = {c: ends for c, ends in intervals.items() if ends is not None}
        return plot.Coverage.from_calibration(Calibration.of(z, f, known))

    def _of_kernel(self, kernel: Any) -> Iterator[Plot]:
        rows = evenly_spaced(len(self.y), KERNEL_ROWS)
        X = take(self.X, rows)
        labels = self.y[rows] if is_classifier(self.model) else None
        yield (
            lambda: plot.GramHeatMap.from_kernel(kernel, X, labels, title=""),
            f"Similarity of each pair of {len(rows)} rows (the Gram matrix). Similar rows are neighbours, so that "
            "groups appear as blocks.",
        )
        yield (
            lambda: plot.EigenvalueSpectrum.from_kernel(kernel, X, title=""),
            "Eigenvalues of this matrix: how much the rows vary along one independent direction after the other. The "
            "faster they fall, the simpler the data is to the kernel.",
        )

    @property
    def _band(self) -> str:
        if self._with_intervals is None:
            return ""
        of = "" if len(self.names) == 1 else ", averaged over these rows"
        return f"The band is the {100 * COVERAGE:.0f} % prediction interval{of}."

    @cached_property
    def _with_intervals(self) -> Any:
        """The regressor with quick intervals, its own or those of residuals of rows not fitted; None without."""
        model = self.model
        if is_classifier(model):
            return None
        if self.judgement.by != "fitted":
            judged = self.judgement
            model = with_intervals(model, self.Z, self.z, judged.predictions, apart=judged.apart)
        return None if own_intervals(model, take(self.X, [0]), COVERAGE) is None else model

    def _curve(self) -> Any:
        """The curve of a model of one column, with the data."""
        rows = evenly_spaced(len(self.y), CURVE_ROWS)
        banded = self._with_intervals
        model, coverage = (self.model, None) if banded is None else (banded, COVERAGE)
        bands = plot.RegressionBands.from_estimator(model, take(self.X, rows), self.y[rows], coverage=coverage)
        bands.ax_.set_ylabel(caption(self.target, 40))
        return bands


def evenly_spaced(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` of n positions, at even steps."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def drawn(draw: Callable[[], Any]) -> str:
    """A plot as SVG."""
    with plot.style("light"):
        display = draw()
        try:
            display.figure_.set_size_inches(SIZE)
            return plot.svg(display, clear=True)
        finally:
            pyplot().close(display.figure_)
