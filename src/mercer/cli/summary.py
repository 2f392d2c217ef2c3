"""A model and its scores in a few lines of text, or as parts of a JSON document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.speaking import Voice
from mercer.models.explaining.importance import Importance
from mercer.models.judging.cautions import Caution
from mercer.models.judging.measures import OF_INTERVALS
from mercer.models.provenance import Provenance
from mercer.models.scores import Score, baseline_in_words
from mercer.words import brief, count, number, one_line

NAMED = 5
"""The number of important columns that a summary names."""


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


def caution_facts(caution: Caution) -> dict[str, Any]:
    """A caution as part of a JSON document: its kind, its numbers and its words."""
    return {"kind": type(caution).__name__, **asdict(caution), "words": caution.words}


def importance_facts(importance: Importance | None) -> dict[str, Any] | None:
    """Feature importance as part of a JSON document."""
    if importance is None:
        return None
    columns = {name: {"rise": rise, "spread": spread} for name, rise, spread in importance.ranked}
    return {"measure": importance.measure, "error": importance.error, "columns": columns}


def most_important(importance: Importance) -> str:
    """The most important columns in a line.

    >>> from mercer.models.explaining.importance import Importance
    >>> most_important(Importance(("a", "b", "c"), (0.5, 2.0, 0.0), (0.1, 0.2, 0.0), "RMSE", 3.0, 90, 5))
    'Most important columns: b (RMSE + 2), a (+ 0.5).'
    >>> most_important(Importance(("a", "b"), (0.0, 0.0), (0.0, 0.0), "RMSE", 3.0, 90, 5))
    'Most important columns: none; shuffling a column never raises the RMSE by more than the spread between shuffles.'
    """
    shown = [(name, rise) for name, rise, spread in importance.ranked if rise > spread][:NAMED]
    if not shown:
        rise = f"shuffling a column never raises the {importance.measure} by more than the spread between shuffles"
        return f"Most important columns: none; {rise}."
    rises = [f"+ {number(rise, 2, padded=False)}" for _, rise in shown]
    words = [f"{one_line(name, 40)} ({rise})" for (name, _), rise in zip(shown, rises)]
    words[0] = f"{one_line(shown[0][0], 40)} ({importance.measure} {rises[0]})"
    return f"Most important columns: {', '.join(words)}."


def judged_on(origin: Provenance) -> str:
    """The rows on which the model was scored, in words."""
    split = origin.split
    if origin.judged is None:
        return "no rows: none were held out"
    if origin.judged == "left out":
        return "leave-one-out"
    by = f", whole groups of {split.group!r}" if split.group else ""
    if origin.judged == "folds":
        times = f", drawn {split.repeats} times" if split.repeats > 1 else ""
        if split.time:
            by = f", each predicted from earlier rows by {split.time!r}"
        return f"cross-validation with {split.folds} folds{times}{by}"
    return count(origin.held_out, "held-out row") + (f", the last ones by {split.time!r}" if split.time else by)


def say_scores(voice: Voice, scores: Sequence[Score], title: str, *, rate: bool = False) -> None:
    """Print the scores as a small table under a title, and what the baseline is."""
    voice.say(title)
    rows = [
        [
            score.name,
            score.value,
            f"[{number(score.low)}, {number(score.high)}]" if np.isfinite(score.low) else "",
            number(score.rounded_baseline, padded=score.name != "R²") if np.isfinite(score.baseline) else "",
        ]
        for score in scores
    ]
    if rows:
        voice.table(["", "value", "90 % interval", "baseline"], rows)
    names = {score.name for score in scores if np.isfinite(score.baseline)}
    if names:
        voice.say(f"  Baseline: {baseline_in_words(names, rate=rate)}.")
    if OF_INTERVALS in names:
        voice.say("  Baseline of the interval score: the middle 90 % of the training targets.")


def scores_title(origin: Provenance) -> str:
    """The title of a table of scores."""
    if origin.judged is None:
        return "No scores: no rows were held out. --folds 5 gives scores, and a model of all rows."
    if origin.judged == "left out":
        return "Leave-one-out scores (slightly optimistic, since they also chose the parameters):"
    return f"Scores {'by' if origin.judged == 'folds' else 'on'} {judged_on(origin)}:"


def command_to_type(name: str, data: str, options: dict[str, Any]) -> str:
    """A command to type, with the options that are set; an option with several values is repeated."""
    words = ["mercer", name, data]
    for option, setting in options.items():
        for value in setting if isinstance(setting, (list, tuple)) else [setting]:
            if value is not None and value is not False:
                flag = f"--{option.replace('_', '-')}"
                text = str(value)
                words += [flag] if value is True else [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return shlex.join(words)
