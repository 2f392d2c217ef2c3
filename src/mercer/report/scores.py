"""The sections of a report that judge the predictions: scores, classes, probabilities, intervals and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.models.calibrated import CalibratedClassifier, decision_in_words
from mercer.models.judging.by_class import scores_by_class
from mercer.models.judging.intervals import FEWEST_ROWS, coverage_by_size
from mercer.models.judging.measures import COVERAGE, MEASURES, OF_INTERVALS
from mercer.models.judging.reliability import ReliabilityCurve, event
from mercer.models.scores import Judgement, Score, baseline_in_words
from mercer.report.frames import cell
from mercer.report.page import paragraph, section, table, tiles
from mercer.words import number

SHOWN_CLASSES = 60
"""The largest number of classes that are shown."""
DEVIATION = 2.5
"""A share deviates from its promise if the difference is more than this number of standard errors."""


def scores_section(judgement: Judgement, truth: NDArray[Any]) -> str:
    """The scores as tiles, with their meaning, after a sentence about the most important one."""
    classes = judgement.classes is not None
    if classes:
        accuracy = judgement["accuracy"]
        lead = (
            f"Accuracy {accuracy.value:.1%}. Always predicting the most frequent class would give "
            f"{accuracy.baseline:.1%}."
        )
    else:
        rmse = judgement["RMSE"]
        always = "One rate for all rows, times the exposure," if judgement.rate else "Always predicting the mean"
        lead = (
            f"RMSE {number(rmse.value, 3)}, the root mean squared error. {always} would give "
            f"{number(rmse.baseline, 3)}. {_off_by(truth, judgement)}"
        )
    names = [score.name for score in judgement.scores]
    small = (
        "The 90 % intervals show how much the scores would vary between test sets of this size. Prediction of the "
        f"baseline: {baseline_in_words(set(names), rate=judgement.rate)}."
    )
    if OF_INTERVALS in names:
        small += " Baseline of the interval score: the middle 90 % of the training targets."
    words = ". ".join(f"{name[0].upper()}{name[1:]}: {MEASURES[name].meaning}" for name in names) + "."
    warning = {
        "held out": "",
        "left out": "These are leave-one-out scores: each row is predicted by a model that is fitted without it. "
        "If they also chose the parameters of the model, they are slightly optimistic.",
        "folds": "These are scores by cross-validation: each row is predicted by a model that is fitted without "
        "the rows of its fold. The plots of the model and its feature importance show the model of all rows.",
        "fitted": "The model was fitted to these rows: on new rows it will be worse.",
    }[judgement.by]
    return section(
        "Scores",
        paragraph(lead, "lead"),
        paragraph(warning, "warn"),
        tiles([(score.name, number(score.value, 3), _beside(score)) for score in judgement.scores]),
        paragraph(words, "soft"),
        paragraph(small, "soft"),
    )


def _off_by(truth: NDArray[Any], judgement: Judgement) -> str:
    """The sizes of the errors of half and of nine of ten rows, in words."""
    errors = np.abs(truth.astype(np.float64) - judgement.predictions)
    half, most = (number(size, 3) for size in np.quantile(errors, [0.5, 0.9]))
    return f"Half of the predictions are off by less than {half}, nine out of ten by less than {most}."


def _beside(score: Score) -> str:
    parts = [f"90 %: {number(score.low, 3)} … {number(score.high, 3)}"] if np.isfinite(score.low) else []
    parts += [f"baseline: {number(score.rounded_baseline, 3)}"] if np.isfinite(score.baseline) else []
    return "; ".join(parts)


def classes_section(model: Any, truth: NDArray[Any], judgement: Judgement) -> str:
    """Recall and precision of each class, the classes it is confused with, and the threshold if there is one."""
    if judgement.classes is None:
        return ""
    rows = []
    for one in [score for score in scores_by_class(truth, judgement.predictions) if score.rows][:SHOWN_CLASSES]:
        confused = ", ".join(f"{cell(label)} ({times})" for label, times in one.confused)
        precision = f"{one.precision:.1%}" if one.predicted else "never predicted"
        rows.append(
            [cell(one.label), f"{one.rows:,}", f"{one.recall:.1%}", precision, f"{one.f1:.3f}", confused or "–"]
        )
    header = ["class", "rows", "recall", "precision", "F1", "confused with"]
    decision = decision_in_words(model) if isinstance(model, CalibratedClassifier) else ""
    return section(
        "Class by class",
        paragraph(_sentence(decision)),
        table(header, rows, numbers=(1, 2, 3, 4)),
        paragraph(
            "Recall: the share of the rows of a class that are predicted to be of it. Precision: the share of the rows "
            "predicted to be of a class that are of it. F1: the harmonic mean of the two.",
            "soft",
        ),
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words else ""


def probabilities_section(truth: NDArray[Any], judgement: Judgement) -> str:
    """Log loss, and predicted probabilities beside observed shares, with the number of rows in each bin."""
    P, classes = judgement.probabilities, judgement.classes
    if P is None or classes is None:
        return ""
    happened, p, what = event(classes, P, truth)
    curve, loss = ReliabilityCurve.of(happened, p), judgement["log loss"]
    outside = (curve.observed < curve.lower) | (curve.observed > curve.upper)
    rows = [
        [f"{a:.3f}", f"{b:.3f}", f"{low:.3f} … {high:.3f}", f"{n:,}", "outside" if out else ""]
        for a, b, low, high, n, out in zip(
            curve.predicted, curve.observed, curve.lower, curve.upper, curve.counts, outside
        )
    ]
    lead = (
        f"Log loss {number(loss.value, 3)}; the shares of the classes alone would give {number(loss.baseline, 3)}. "
        f"Probability and observed share differ by {curve.error:.3f} on average (calibration error)."
    )
    rule = "Rows are sorted by the probability that " + f"{what}, and divided into bins of equal size."
    if judgement.by == "fitted":
        rule += " The model was fitted to these rows, so its probabilities look better than they are."
    return section(
        "Probabilities",
        paragraph(lead),
        table(["predicted", "observed", "95 % if calibrated", "rows", ""], rows, numbers=(0, 1, 2, 3)),
        paragraph(rule, "soft"),
    )


def sizes_section(truth: NDArray[Any], judgement: Judgement) -> str:
    """Errors and coverage of the intervals for small, middle and large predictions."""
    if judgement.classes is not None or len(truth) < FEWEST_ROWS:
        return ""
    f, ends = judgement.predictions, judgement.intervals
    unknown = np.full((len(f), 2), np.nan)
    parts = coverage_by_size(truth, f, unknown if ends is None else ends, COVERAGE)
    rows, off = [], []
    names = {1: ("all",), 2: ("small", "large"), 3: ("small", "middle", "large")}[len(parts)]
    for name, part in zip(names, parts):
        row = [name, f"{number(part.low, 3)} … {number(part.high, 3)}", f"{part.rows:,}", number(part.mae, 3)]
        if ends is not None:
            row += [f"{part.observed:.1%}", number(part.width, 3)]
            off += [name] if abs(part.observed - COVERAGE) > DEVIATION * part.error else []
        rows.append(row)
    header = ["predictions", "from … to", "rows", "MAE"]
    words = "Do large predictions have larger errors? The rows are divided into thirds by their prediction. "
    if ends is not None:
        header += ["inside 90 % intervals", "mean width"]
        words += "Intervals should contain 90 % of the targets in each third, not only of all targets."
        if off:
            words += f" For {', '.join(off)} predictions, the share differs from 90 % by more than chance explains."
    return section(
        "Errors by size of the prediction",
        table(header, rows, numbers=(2, 3, 4, 5), ranges=(1,)),
        paragraph(words, "soft"),
    )


def counts_section(truth: NDArray[Any], judgement: Judgement) -> str:
    """Dispersion of counts around their predicted means."""
    fit = judgement.count_fit(truth)
    if fit is None:
        return ""
    words = (
        f"Poisson deviance {number(fit.deviance, 3)}, dispersion {fit.dispersion:.2f}: the variance of the counts "
        f"is about {fit.dispersion:.2g} times their mean. The 90 % interval of the dispersion is "
        f"[{fit.interval[0]:.2f}, {fit.interval[1]:.2f}]; it is {fit.verdict}."
    )
    if np.isfinite(fit.theta) and fit.is_overdispersed:
        words += f" A negative binomial distribution with the same dispersion has θ = {number(fit.theta, 3)}."
    return section("Counts", paragraph(words))
