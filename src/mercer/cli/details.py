"""Scores in detail: by class, by size of the prediction, of probabilities and of counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import mercer as mc
from mercer.cli.speaking import Voice
from mercer.cli.summary import finite
from mercer.models.calibrated import decision_in_words
from mercer.models.judging.by_class import scores_by_class
from mercer.models.judging.intervals import FEWEST_ROWS, coverage_by_size
from mercer.models.judging.measures import COVERAGE
from mercer.models.judging.reliability import ReliabilityCurve, event
from mercer.models.scores import Judgement
from mercer.words import number

SHOWN_CLASSES = 12
"""The largest number of classes in a table for a person."""


def detail_facts(model: Any, truth: Any, judgement: Judgement) -> dict[str, Any]:
    """Parts of a JSON document: recall and precision by class, errors and coverage by size of the prediction, and more.

    `truth` are the targets of the predictions of the judgement.
    """
    if judgement.classes is None:
        return _of_numbers(truth, judgement)
    content: dict[str, Any] = {
        "by_class": [
            {
                "class": one.label,
                "rows": one.rows,
                "predicted": one.predicted,
                "recall": finite(one.recall),
                "precision": finite(one.precision),
                "f1": one.f1,
            }
            for one in scores_by_class(truth, judgement.predictions)
        ]
    }
    if isinstance(model, mc.CalibratedClassifier):
        content["threshold"], content["decision"] = model.threshold_, decision_in_words(model)
    if judgement.probabilities is not None:
        happened, p, what = event(judgement.classes, judgement.probabilities, truth)
        curve = ReliabilityCurve.of(happened, p)
        content["reliability"] = {
            "event": what,
            "calibration_error": curve.error,
            "bins": [
                {"predicted": float(a), "observed": float(b), "rows": int(n)}
                for a, b, n in zip(curve.predicted, curve.observed, curve.counts)
            ],
        }
    return content


def _of_numbers(truth: Any, judgement: Judgement) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if judgement.intervals is not None and len(truth) >= FEWEST_ROWS:
        parts = coverage_by_size(truth, judgement.predictions, judgement.intervals, COVERAGE)
        content["by_size"] = [asdict(part) for part in parts]
    fit = judgement.count_fit(truth)
    if fit is not None:
        content["counts"] = {
            "deviance": fit.deviance,
            "dispersion": fit.dispersion,
            "error": fit.error,
            "interval": list(fit.interval),
            "theta": finite(fit.theta),
            "verdict": fit.verdict,
        }
    return content


def say_details(voice: Voice, facts: dict[str, Any], of: str, *, brief: bool = False) -> None:
    """Print the details of scores on these rows, in words.

    With `brief` only recall and precision by class, and the dispersion of counts.
    """
    by_class = facts.get("by_class", ())
    if 0 < len(by_class) <= SHOWN_CLASSES:
        decision = "" if brief else facts.get("decision", "")
        voice.say("By class" + (f" ({decision}):" if decision else ":"))
        rows = [[str(one["class"]), one["rows"], _share(one["recall"]), _share(one["precision"])] for one in by_class]
        voice.table(["class", "rows", "recall", "precision"], rows)
    if "by_size" in facts and not brief:
        voice.say("By size of the prediction:")
        rows = [
            [f"{number(p['low'], 3)} … {number(p['high'], 3)}", p["rows"], p["mae"], _share(p["observed"]), p["width"]]
            for p in facts["by_size"]
        ]
        voice.table(["predictions", "rows", "MAE", "inside 90 % intervals", "mean width"], rows)
    if "reliability" in facts and not brief:
        error = facts["reliability"]["calibration_error"]
        voice.say(f"Probabilities differ from observed shares by {error:.3f} on average (calibration error).")
    if "counts" in facts:
        fit = facts["counts"]
        low, high = fit["interval"]
        voice.say(
            f"Dispersion of the counts ({of}): {fit['dispersion']:.2f}, 90 % interval [{low:.2f}, {high:.2f}], "
            f"{fit['verdict']}."
        )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
