"""`mercer fit`: from a table to a model that is kept."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli.columns import missing_values_located
from mercer.cli.outputs import require_outputs
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import judged_on, kernel_of, readable, say_scores, score_facts, scores_title
from mercer.cli.tables import Problem, problem, split
from mercer.errors import InvalidInput
from mercer.files.container import FORMAT
from mercer.memory import show_bytes
from mercer.models import menu
from mercer.models.base import innermost
from mercer.models.conformal import ConformalRegressor, moved, with_intervals
from mercer.models.provenance import Provenance, provenance
from mercer.models.scores import Baseline, Judgement, Score, judge, judge_by_leave_one_out
from mercer.words import brief, count, seconds


def fit(
    voice: Voice,
    data: str,
    target: str | None,
    *,
    kernel: str | None,
    model: str,
    task: str,
    out: str | None,
    report: str | None,
    budget: float,
    test_size: float | None,
    drop: tuple[str, ...],
    drop_missing_target: bool,
    centers: int | None,
    refit: bool,
    seed: int,
    reading: dict[str, Any],
) -> Any:
    """Read, fit, judge, keep, and report; the positions of the rows held out."""
    began = time.monotonic()
    if not 0 < budget < float("inf"):
        raise InvalidInput(
            "--time must be a number of seconds > 0", got=f"{budget:g}", advice="Give a number such as 60."
        )
    expression = parsed(kernel)
    place = _place(data, out)
    require_outputs({"--out": place, "--report": report}, inputs=(data,))
    if report is not None:
        require_plots("--report")
    with voice.progress(f"reading {data}"):
        table = read(data, **reading)
    asked = problem(table, target, voice, drop=drop, task=task, drop_missing_target=drop_missing_target)
    train, test = split(asked, 0.2 if test_size is None else test_size, seed, voice, asked=test_size is not None)
    classes = asked.task == "classification"
    X, y = asked.X[train], asked.y[train]
    held = (asked.X[test], asked.y[test])
    refit = refit and len(test) > 0
    with (
        voice.progress(f"fitting {count(len(train), 'row')}") as tell,
        warnings_as_notes(voice),
        missing_values_located(asked.X, table.name, asked.places),
    ):
        fitted = menu.fit(
            model, X, y, task=asked.task, kernel=expression, time=budget, centers=centers, random_state=seed,
            progress=tell,
        )  # fmt: skip
        tell("scores")
        judgement = (
            judge(fitted.model, *held, Baseline.of(y, classes=classes))
            if len(test)
            else judge_by_leave_one_out(fitted.model, X, y)
        )
        kept = with_intervals(fitted.model, *held)
        if refit:
            tell("fitting once more, on all rows")
            again = menu.refit(fitted.model, asked.X, asked.y)
            kept = moved(kept, again) if isinstance(kept, ConformalRegressor) else again
    spent = time.monotonic() - began
    rows = np.arange(len(asked)) if refit else train
    left_out = asked.left_out | fitted.left_out
    kept.provenance_ = Provenance.of(
        asked.X[rows], asked.y[rows], classes=classes, columns=asked.columns, places=asked.places[rows],
        data="standard input" if data == "-" else Path(data).name, target=asked.target, left_out=left_out,
        held_out=len(test), refitted=refit, seed=seed, judged=judgement.by if judgement else None,
        scores=judgement.scores if judgement else (), missing=tuple(reading.get("na") or ()),
        ranges=value_ranges(asked.X[rows]),
    )  # fmt: skip
    unsaved: InvalidInput | None = None
    try:
        size = save(kept, place) if place is not None else 0
    except InvalidInput as error:  # the result is reported all the same
        unsaved, place, size = error, None, 0
    if report is not None:
        with voice.progress("writing the report"), warnings_as_notes(voice):
            mc.report.write(
                fitted.model, X, y, report, held_out=held if len(test) else None,
                rows=asked.places[test if len(test) else train], target=asked.target, command=_typed(),
                left_out=judgement.predictions if judgement and judgement.by == "left out" else None,
            )  # fmt: skip
    for name, why in fitted.left_out.items():
        voice.note(f"column {name!r} is left out: {why}; write it into --kernel if it matters")
    if not fitted.in_time:
        voice.note("the time was up before the search was done: --time gives it more")
    _doubt(voice, kept, kept.provenance_.scores)
    if not voice.quiet:
        _say(voice, kept, fitted, asked, spent, place, size, report, data)
    voice.document(_facts(kept, fitted, asked, judgement, spent, place, report, data))
    if unsaved is not None:
        raise unsaved
    return test


def parsed(kernel: str | None) -> Any:
    """The kernel that an expression stands for."""
    if kernel is None:
        return None
    expression = mc.parse(kernel)
    if not isinstance(expression, mc.Kernel):
        raise InvalidInput(
            "--kernel must be a positive semidefinite kernel",
            got=kernel,
            advice="Choose one of those that `mercer kernels` lists.",
        )
    return expression


def require_plots(option: str) -> None:
    """Refuse at once what needs pictures where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            f"{option} needs matplotlib, which draws the pictures of the report",
            got="an installation without it",
            advice='Install it with: pip install "mercer[plot]"',
        )


def _typed() -> str:
    """The command as it was typed."""
    return shlex.join(["mercer", *sys.argv[1:]])


def _place(data: str, out: str | None) -> str | None:
    """Where the model goes: the given place, or the name of the data in the current folder; None to keep no model."""
    if out in ("none", "/dev/null"):
        return None
    if out is not None:
        return out
    stem = "model" if data == "-" else Path(data).name.split(".")[0] or "model"
    place = f"{stem}.mercer"
    if os.path.exists(place) and not _is_model(place):
        raise InvalidInput(
            "The model must not replace a file that is not a model",
            got=f"{place} in this folder",
            advice="Name another file with --out.",
        )
    return place


def _is_model(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return FORMAT.encode() in file.read(100_000)
    except OSError:
        return False


def save(model: Any, place: str) -> int:
    """Save a model; the bytes of its file, 0 for a pipe or a device."""
    model.save(place)
    return os.stat(place).st_size if os.path.isfile(place) else 0


CATEGORIES = 1000
"""Different words of a column that a model file remembers, at most."""


def value_ranges(X: Any) -> dict[str, list[Any]]:
    """The values of every column: the least and the largest number, or the words where they repeat."""
    ranges: dict[str, list[Any]] = {}
    for column in X.get_columns() if isinstance(X, pl.DataFrame) else []:
        values = column.drop_nulls()
        if column.dtype.is_numeric() and values.len():
            ranges[column.name] = [values.min(), values.max()]
        elif column.dtype == pl.String and values.n_unique() <= min(CATEGORIES, values.len() // 2):
            ranges[column.name] = values.unique().sort().to_list()
    return ranges


USELESS = 0.005
"""A gain over the baseline below which a model is not worth more."""


def _doubt(voice: Voice, model: Any, scores: Sequence[Score]) -> None:
    """A note where the model is not what it should be."""
    if getattr(innermost(model), "end_", "converged") != "converged":
        voice.note(
            "the last fit stopped before it was exact, so that the model may be much worse than it could be: "
            "give it more --time, try another --model, or --model ridge with other --centers"
        )
    gains = [score.gain for score in scores if np.isfinite(score.baseline)]
    if gains and max(gains) < USELESS:
        voice.note(
            "the model is no better than the baseline, which uses no column: do not rely on it. Either the columns say "
            "nothing about the target, or another --model may do better"
        )


def _facts(
    model: Any, fitted: menu.Fitted, asked: Problem, judgement: Judgement | None, spent: float, place: str | None,
    report: str | None, data: str,
) -> dict[str, Any]:  # fmt: skip
    """The answer for a program."""
    inner, known = innermost(model), provenance(model)
    return {
        "command": "fit",
        "data": data,
        "rows": len(asked),
        "columns": asked.columns or asked.X.shape[1],
        "left_out": known.left_out,
        "target": asked.target,
        "task": asked.task,
        "model": type(inner).__name__,
        "kernel": repr(kernel_of(inner)),
        "status": str(getattr(inner, "status_", "")),
        "choices": list(fitted.choices),
        "scores": score_facts(known.scores),
        "judged_on": judged_on(known.judged, known.held_out),
        "seconds": spent,
        "out": place,
        "report": report,
    }


def _say(
    voice: Voice, model: Any, fitted: menu.Fitted, asked: Problem, spent: float, place: str | None, size: int,
    report: str | None, data: str,
) -> None:  # fmt: skip
    """The answer for a person."""
    inner, known = innermost(model), provenance(model)
    kind = {"regression": "numbers", "classification": "classes"}[asked.task]
    voice.say(
        f"{data}: {count(len(asked), 'row')}, {count(asked.X.shape[1], 'column')}, target {asked.target!r} ({kind})",
        strong=True,
    )
    voice.pairs(
        [
            ("model", type(inner).__name__),
            ("kernel", readable(inner)),
            *[("chosen" if k == 0 else "", brief(text)) for k, text in enumerate(fitted.choices)],
            ("solved", "" if hasattr(fitted.model, "choices_") else str(getattr(inner, "status_", ""))),
            ("time", seconds(spent)),
        ]
    )
    say_scores(voice, known.scores, scores_title(known.judged, known.held_out))
    if place is not None:
        voice.say(f"Saved as {place}" + (f" ({show_bytes(size)})." if size else "."))
    if report is not None:
        voice.say(f"Report in {report}.")
    if place is not None:
        voice.say(f"Next: mercer predict {shlex.quote(place)} NEW.csv, or mercer explain {shlex.quote(place)}")
