"""A model and its scores in a few lines of text, or as parts of a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.speaking import Voice
from mercer.models.scores import Judged, Score
from mercer.words import brief, count, number


def readable(model: Any) -> str:
    """The kernel of a model for a person: with few digits, and without the list of column types around it."""
    kernel = kernel_of(model)
    return brief(kernel.inner if isinstance(kernel, mc.Typed) else kernel) if kernel is not None else ""


def kernel_of(model: Any) -> Any:
    """The kernel that a model was fitted with, else its parameter `kernel`; None if it has neither."""
    kernel = getattr(model, "kernel_", None)
    return kernel if kernel is not None else getattr(model, "kernel", None)


def finite(value: float) -> float | None:
    """A number as JSON can hold it: None if it is not finite."""
    return float(value) if np.isfinite(value) else None


def score_facts(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Scores as parts of a JSON document."""
    return [
        {
            "name": score.name,
            "value": score.value,
            "interval": [score.low, score.high] if np.isfinite(score.low) else None,
            "baseline": finite(score.baseline),
        }
        for score in scores
    ]


def judged_on(judged: Judged | None, rows: int) -> str:
    """The rows on which the model was scored, in words; `rows` is the number of held-out rows."""
    if judged is None:
        return "no rows: none were held out"
    return "leave-one-out" if judged == "left out" else count(rows, "held-out row")


def say_scores(voice: Voice, scores: Sequence[Score], title: str) -> None:
    """Print the scores as a small table under a title."""
    voice.say(title)
    rows = [
        [
            score.name,
            score.value,
            f"[{number(score.low)}, {number(score.high)}]" if np.isfinite(score.low) else "",
            number(score.baseline) if np.isfinite(score.baseline) else "",
        ]
        for score in scores
    ]
    if rows:
        voice.table(["", "value", "90 % interval", "baseline"], rows)


def scores_title(judged: Judged | None, rows: int) -> str:
    """The title of a table of scores."""
    if judged is None:
        return "No scores: no rows were held out."
    if judged == "left out":
        return "Leave-one-out scores (slightly optimistic, since they also chose the parameters):"
    return f"Scores on {judged_on(judged, rows)}:"
