"""`mercer tune`: the parameters of a kernel, moved to where the data wants them."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.fitting import parsed, save, value_ranges
from mercer.cli.outputs import require_outputs
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import finite, kernel_of, readable
from mercer.cli.tables import Problem, problem
from mercer.errors import InvalidInput
from mercer.models import menu
from mercer.models.provenance import Provenance
from mercer.words import count, number, seconds


def tune(
    voice: Voice,
    data: str,
    target: str | None,
    *,
    kernel: str | None,
    model: str,
    by: str,
    task: str,
    out: str | None,
    drop: tuple[str, ...],
    drop_missing_target: bool,
    rows: int,
    seed: int,
    reading: dict[str, Any],
) -> None:
    """Move the parameters of a kernel to where the data wants them, and say what it gained."""
    expression = parsed(kernel)
    require_outputs({"--out": out}, inputs=(data,))
    if model != "svm" and task == "classification":
        raise InvalidInput(
            "--task classification of mercer tune needs a model of classes",
            got=f"--model {model}",
            advice="Choose --model svm.",
        )
    with voice.progress(f"reading {data}"):
        table = read(data, **reading)
    task = task if model == "svm" else "regression"
    asked = problem(table, target, voice, drop=drop, task=task, drop_missing_target=drop_missing_target)
    some = np.arange(len(asked))
    if len(some) > rows:
        some = np.sort(np.random.default_rng(seed).permutation(len(some))[:rows])
        voice.note(f"{rows:,} of {len(asked):,} rows are used for the search; --rows sets how many")
    X, y = asked.X[some], asked.y[some]
    start, left_out = (expression, {}) if kernel else menu.default_kernel(model, X)
    for name, why in left_out.items():
        voice.note(f"column {name!r} is left out: {why}; write it into --kernel if it matters")
    estimator: Any
    began = time.monotonic()
    with voice.progress(f"tuning on {len(some):,} rows") as tell, warnings_as_notes(voice):
        if model == "svm":
            estimator = mc.SVR(start) if asked.task == "regression" else mc.SVC(start)
            tuned = mc.tune(estimator, X, y, cv=3, random_state=seed)
        else:
            estimator = (
                mc.KernelRidge(start, fit_intercept=True)
                if model == "ridge"
                else mc.GaussianProcessRegressor(start, normalize_y=True)
            )
            tuned = mc.tune(estimator, X, y, by=by, n_restarts=0 if len(some) > 1000 else 2, random_state=seed)
        if len(some) < len(asked):
            tell("fitting all rows with the tuned parameters")
            tuned = _on_all(tuned, asked)
    spent = time.monotonic() - began
    search = tuned.tuning_
    tuned.provenance_ = Provenance.of(
        asked.X, asked.y, classes=asked.task == "classification", columns=asked.columns, places=asked.places,
        data="standard input" if data == "-" else Path(data).name, target=asked.target,
        left_out=asked.left_out | left_out, seed=seed, missing=tuple(reading.get("na") or ()),
        ranges=value_ranges(asked.X),
    )  # fmt: skip
    if out is not None:
        save(tuned, out)
    value, before = search.value, finite(search.start_value)
    if "alpha" in search.parameters:  # the kernel is shown above
        measure = {"loo": "leave-one-out error", "evidence": "log evidence"}[by]
        result = f"alpha = {tuned.alpha_:.3g}; {measure} {number(value)}, at the start {number(search.start_value)}"
    else:
        chosen = ", ".join(f"{name} = {at:.3g}" for name, at in _machine(tuned).items())
        measure = "R²" if asked.task == "regression" else "accuracy"
        result = f"{chosen}; mean {measure} over 3 folds {number(search.value)}, baseline {number(search.baseline)}"
    tuned_kernel = repr(kernel_of(tuned))
    voice.say(f"{data}: {count(len(asked), 'row')}, target {asked.target!r}", strong=True)
    voice.pairs([("kernel", readable(tuned)), ("found", result), ("time", seconds(spent))])
    for note in search.notes:
        voice.note(note)
    if out is not None:
        voice.say(f"Saved as {out}.")
    options = {"target": asked.target, "model": model, "task": asked.task, "kernel": tuned_kernel, "drop": drop}
    fit_command = _command("fit", data, options | {"drop_missing_target": drop_missing_target} | reading)
    voice.say(f"Next: {fit_command}")
    voice.document({
        "command": "tune", "data": data, "rows": len(asked), "searched": len(some), "target": asked.target,
        "model": type(tuned).__name__, "kernel": tuned_kernel, "alpha": getattr(search, "alpha", None),
        "C": None, "epsilon": None, **_machine(tuned), "next": fit_command,
        "by": by if model != "svm" else "3 folds", "value": value, "before": before,
        "baseline": finite(search.baseline), "beats_baseline": search.beats_baseline, "found": str(search),
        "notes": list(search.notes), "seconds": spent, "out": out,
    })  # fmt: skip


def _machine(tuned: Any) -> dict[str, float]:
    """C and, of a regression, ε of a support vector machine; empty for other models."""
    known = tuned.get_params(deep=False)
    return {name: float(known[name]) for name in ("C", "epsilon") if name in known}


def _command(name: str, data: str, options: dict[str, Any]) -> str:
    """A command that can be typed: of the options those that were given, repeated where they have several values."""
    words = ["mercer", name, data]
    for option, given in options.items():
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and value is not False:
                flag = f"--{option.replace('_', '-')}"
                text = str(value)
                words += [flag] if value is True else [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return shlex.join(words)


def _on_all(tuned: Any, asked: Problem) -> Any:
    """The tuned model, fitted to all rows: on centres where they are many."""
    search = tuned.tuning_
    if len(asked) > menu.EXACT and hasattr(tuned, "n_centers"):
        tuned.set_params(n_centers=menu.CENTRES)
    fitted = tuned.fit(asked.X, asked.y)
    fitted.tuning_ = search
    return fitted
