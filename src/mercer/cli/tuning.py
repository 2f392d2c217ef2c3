"""`mercer tune`: the parameters of a kernel, fitted to the data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.fitting import parsed, save
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import command_to_type, finite, kernel_of, readable
from mercer.cli.tables import Problem, problem_from
from mercer.data.assignment import Roles
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
    roles: dict[str, Any],
    drop_missing_target: bool,
    rows: int,
    seed: int,
    reading: dict[str, Any],
) -> None:
    """Fit the parameters of a kernel to the data, and report the gain."""
    expression = parsed(kernel)
    if model != "svm" and task == "classification":
        raise InvalidInput(
            "`mercer tune --task classification` needs a classifier",
            got=f"--model {model}",
            advice="Choose --model svm.",
        )
    with voice.progress(f"reading {data}"):
        table = read(data, roles=roles, target=target, **reading)
    task = task if model == "svm" else "regression"
    problem = problem_from(
        table, target, voice, task=task, drop_missing_target=drop_missing_target, own_kernel=expression is not None
    )
    if "exposure" in problem.roles.values():
        raise InvalidInput(
            "`mercer tune` tunes models without an exposure",
            got="--exposure",
            advice="Use mercer fit, which tunes the kernel, too.",
        )
    sample = np.arange(len(problem))
    if len(sample) > rows:
        sample = np.sort(np.random.default_rng(seed).permutation(len(sample))[:rows])
        voice.note(f"the search uses {rows:,} of {len(problem):,} rows; --rows changes this number")
    X, y = problem.X[sample], problem.y[sample]
    weights = None if problem.weights is None else problem.weights[sample]
    start = expression if kernel else menu.default_kernel(model, X, Roles.of(problem.roles))[0]
    estimator: Any
    began = time.monotonic()
    with voice.progress(f"tuning on {len(sample):,} rows") as update, warnings_as_notes(voice):
        if model == "svm":
            estimator = mc.SVR(start) if problem.task == "regression" else mc.SVC(start)
            tuned = mc.tune(estimator, X, y, cv=3, random_state=seed, sample_weight=weights)
        else:
            estimator = (
                mc.KernelRidge(start, fit_intercept=True)
                if model == "ridge"
                else mc.GaussianProcessRegressor(start, normalize_y=True)
            )
            restarts = 0 if len(sample) > 1000 else 2
            tuned = mc.tune(estimator, X, y, by=by, n_restarts=restarts, random_state=seed, sample_weight=weights)
        if len(sample) < len(problem):
            update("fitting all rows with the tuned parameters")
            tuned = _fit_all_rows(tuned, problem)
    spent = time.monotonic() - began
    search = tuned.tuning_
    tuned.provenance_ = Provenance.of(
        problem.X, problem.y, classes=problem.task == "classification", columns=problem.columns,
        places=problem.places, data="standard input" if data == "-" else Path(data).name, target=problem.target,
        target_type=problem.target_type, left_out=problem.left_out, seed=seed, missing=tuple(reading.get("na") or ()),
    )  # fmt: skip
    if out is not None:
        save(tuned, out)
    value, before = search.value, finite(search.start_value)
    if "alpha" in search.parameters:  # the line above shows the kernel
        measure = {"loo": "mean squared leave-one-out error", "evidence": "log evidence"}[by]
        result = f"alpha = {tuned.alpha_:.3g}; {measure} {number(value)}, before tuning {number(search.start_value)}"
    else:
        chosen = ", ".join(f"{name} = {at:.3g}" for name, at in _margin_parameters(tuned).items())
        measure = "R²" if problem.task == "regression" else "accuracy"
        result = f"{chosen}; mean {measure} over 3 folds {number(search.value)}, baseline {number(search.baseline)}"
    tuned_kernel = repr(kernel_of(tuned))
    voice.say(f"{data}: {count(len(problem), 'row')}, target {problem.target!r}", strong=True)
    voice.pairs([("kernel", readable(tuned)), ("result", result), ("time", seconds(spent))])
    for note in search.notes:
        voice.note(note)
    if out is not None:
        voice.say(f"Saved as {out}.")
    options = {"target": problem.target, "model": model, "task": problem.task, "kernel": tuned_kernel}
    fit_command = command_to_type("fit", data, options | roles | {"drop_missing_target": drop_missing_target} | reading)
    voice.say(f"Next: {fit_command}")
    voice.document({
        "command": "tune", "data": data, "rows": len(problem), "searched": len(sample), "target": problem.target,
        "model": type(tuned).__name__, "kernel": tuned_kernel, "alpha": getattr(search, "alpha", None),
        "C": None, "epsilon": None, **_margin_parameters(tuned), "next": fit_command,
        "by": by if model != "svm" else "3 folds", "value": value, "before": before,
        "baseline": finite(search.baseline), "beats_baseline": search.beats_baseline, "found": str(search),
        "notes": list(search.notes), "seconds": spent, "out": out,
    })  # fmt: skip


def _margin_parameters(tuned: Any) -> dict[str, float]:
    """C of a support vector machine, and ε if it is a regression; empty for other models."""
    parameters = tuned.get_params(deep=False)
    return {name: float(parameters[name]) for name in ("C", "epsilon") if name in parameters}


def _fit_all_rows(tuned: Any, problem: Problem) -> Any:
    """The tuned model, fitted to all rows: with centres if there are many rows."""
    search = tuned.tuning_
    if len(problem) > menu.EXACT and hasattr(tuned, "n_centers"):
        tuned.set_params(n_centers=menu.CENTRES)
    weighted = {} if problem.weights is None else {"sample_weight": problem.weights}
    fitted = tuned.fit(problem.X, problem.y, **weighted)
    fitted.tuning_ = search
    return fitted
