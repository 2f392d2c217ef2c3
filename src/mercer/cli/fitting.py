"""`mercer fit` and `mercer tune`: from a table to a model that is kept."""

from __future__ import annotations

import os
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli import menu
from mercer.cli.columns import gaps_told
from mercer.cli.reading import read
from mercer.cli.speaking import Voice, brief, count, number, seconds, shortened
from mercer.cli.tables import Problem, problem, split
from mercer.cli.writing import require_outputs
from mercer.errors import InvalidInput
from mercer.memory import show_bytes
from mercer.models.auto.model import AutoModel
from mercer.report.scores import Baseline, Score, judge


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
    """Read, fit, judge, keep, and say so; the places of the rows held out."""
    began = time.monotonic()
    if not 0 < budget < float("inf"):
        raise InvalidInput("--time must be a number of seconds > 0", got=f"{budget:g}", advice="Such as 60.")
    expression = parsed(kernel)
    place = _place(data, out)
    require_outputs({"--out": place, "--report": report}, inputs=(data,))
    if report is not None:
        require_plots("--report")
    with voice.progress(f"reading {data}"):
        table = read(data, **reading)
    asked = problem(table, target, voice, drop=drop, task=task, drop_missing_target=drop_missing_target)
    train, test = split(asked, 0.2 if test_size is None else test_size, seed, voice, asked=test_size is not None)
    X, y = asked.X[train], asked.y[train]
    held = (asked.X[test], asked.y[test])
    with (
        voice.progress(f"fitting {count(len(train), 'row')}") as tell,
        quieted(voice),
        gaps_told(asked.X, table.name, asked.places),
    ):
        wish = menu.Wish(
            model, asked.task, expression if kernel else table_kernel(X, model, asked, voice), given=bool(kernel),
            time=budget, centers=centers, seed=seed, tell=tell,
        )  # fmt: skip
        fitted = menu.fit(wish, X, y)
        tell("scores")
        scores, answers, judged = _judged(fitted, asked, y, held)
        misses = residuals(fitted, held[1], answers) if len(test) else None
        judged_model = fitted
        if refit and len(test):
            tell("fitting once more, on all rows")
            fitted = _refitted(fitted, asked)
    spent = time.monotonic() - began
    places = asked.places if refit else asked.places[train]
    fitted.table_ = {
        "target": asked.target,
        "task": asked.task,
        "columns": asked.columns,
        "left_out": asked.left_out,
        "rows": len(places),
        "refitted": refit and bool(len(test)),
        "scores": scores,
        "judged": judged,
        "misses": misses,
        "data": Path(data).name if data != "-" else "standard input",
        "places": places.tolist() if len(places) <= menu.EXACT else [],
        "na": list(reading.get("na") or ()),
        "seen": seen(asked.X if refit else X),
        "baseline": asdict(Baseline.of(asked.y if refit else y, classes=asked.task == "classification")),
    }
    trouble: InvalidInput | None = None
    try:
        size = _save(fitted, place) if place is not None else 0
    except InvalidInput as error:  # what was found is told all the same
        trouble, place, size = error, None, 0
    if report is not None:
        from mercer.report import write

        with voice.progress("writing the report"), quieted(voice):
            write(
                judged_model, X, y, report, held_out=held if len(test) else None,
                rows=asked.places[test if len(test) else train], target=asked.target, command=typed(),
                left_out=None if len(test) else answers,
            )  # fmt: skip
    _doubt(voice, fitted, scores)
    _tell_fit(voice, fitted, asked, wish, scores, judged, spent, place, size, report, data)
    if trouble is not None:
        raise trouble
    return test


def parsed(kernel: str | None) -> Any:
    """The kernel that an expression says."""
    if kernel is None:
        return None
    from mercer.kernels.algebra.expression import parse

    found = parse(kernel)
    if not isinstance(found, mc.Kernel):
        raise InvalidInput(
            "--kernel must be a positive semidefinite kernel", got=kernel, advice="mercer kernels lists them."
        )
    return found


def table_kernel(X: Any, model: str, problem: Problem, voice: Voice) -> Any:
    """A kernel from the types of the columns; None where the model makes its own."""
    if not problem.columns or model in ("linear", "local"):
        return None
    if (
        model in ("nw", "neighbors")
        and all(dtype.is_numeric() for dtype in X.dtypes)
        and not any(X.null_count().row(0))
    ):
        return None
    from mercer.kernels.tables.rule import TableKernel

    plan = TableKernel().explain(X)
    for name, why in plan.left_out.items():
        problem.left_out[name] = why
        voice.note(f"column {name!r} is left out: {why}; write it into --kernel if it matters")
    return None if model == "auto" else plan.kernel  # which goes by the same plan, and tries several


def require_plots(option: str) -> None:
    """Refuse at once what needs pictures where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InvalidInput(
            f"{option} needs matplotlib, which draws the pictures of the report",
            got="an installation without it",
            advice='Install it with: pip install "mercer[plot]"',
        )


@contextmanager
def quieted(voice: Voice) -> Iterator[None]:
    """Warnings of the fit as notes, each one once."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    for warning in heard:
        if not issubclass(warning.category, (DeprecationWarning, PendingDeprecationWarning, FutureWarning)):
            what, late, _ = str(warning.message).partition(". Raise `")  # what follows is for those who write Python
            voice.note(shortened(what + ": --time gives it more" * bool(late)))


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["mercer", *sys.argv[1:]])


def _place(data: str, out: str | None) -> str | None:
    """Where the model goes: as told, or beside nothing: the name of the data in the current folder."""
    if out in ("none", "/dev/null"):
        return None
    if out is not None:
        return out
    stem = "model" if data == "-" else Path(data).name.split(".")[0] or "model"
    place = f"{stem}.mercer"
    if os.path.exists(place) and not _is_model(place):
        raise InvalidInput(
            "The model would be written to a file that is no model",
            got=f"{place} in this folder",
            advice="Name one: --out.",
        )
    return place


def _is_model(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"mercer model" in file.read(100_000)
    except OSError:
        return False


def _judged(model: Any, asked: Problem, y: Any, held: tuple[Any, Any]) -> tuple[list[dict[str, Any]], Any, str]:
    """Scores, the predictions that they are of, and what these are of: the rows held out, else leave-one-out."""
    known = Baseline.of(y, classes=asked.task == "classification")
    if len(held[1]):
        found = judge(model, *held, known)
        return as_facts(found.scores), found.answers, f"{count(len(held[1]), 'row')} held out"
    left = _left_out(model)
    if len(left) != len(asked):
        return [], None, "no rows: none were held out"
    return as_facts(judge(model, asked.X, asked.y, known, answers=left).scores), left, "leave-one-out"


def _left_out(model: Any) -> Any:
    """Leave-one-out predictions of the rows that a model was fitted to; empty where it does not have them."""
    try:
        if isinstance(model, AutoModel):
            return model._in_units(np.asarray(model.model_.loo_predictions_))
        return np.asarray(model.loo_predictions_)
    except (AttributeError, InvalidInput, ValueError):
        return np.empty(0)


def plain_number(value: float) -> float | None:
    """A number as JSON has it: None where there is none."""
    return float(value) if np.isfinite(value) else None


def as_facts(scores: list[Score]) -> list[dict[str, Any]]:
    """Scores as a model file and JSON have them."""
    return [
        {
            "name": s.name,
            "value": s.value,
            "interval": [s.low, s.high] if np.isfinite(s.low) else None,
            "baseline": plain_number(s.baseline),
        }
        for s in scores
        if np.isfinite(s.value)
    ]


MISSES = 1000
"""Quantiles of the residuals that a model file keeps, at most."""
HELD_OUT = 20
"""Rows held out from which residuals are kept, at least."""


def residuals(model: Any, y: Any, f: Any) -> dict[str, Any] | None:
    """How far predictions were from rows held out, sorted: what intervals are made of where the model's own cost much.

    Ratios of target and prediction where the model is of log y, else differences.
    """
    if hasattr(model, "classes_") or len(y) < HELD_OUT:
        return None
    ratio = getattr(model, "loss_", "") == "log" and bool((y > 0).all() and (f > 0).all())
    off = np.sort(y / f if ratio else y - f)
    if len(off) > MISSES:
        off = off[np.linspace(0, len(off) - 1, MISSES).round().astype(int)]
    return {"kind": "ratio" if ratio else "difference", "rows": len(y), "values": off.tolist()}


CATEGORIES = 1000
"""Values of a column that a model file remembers, at most."""


def seen(X: Any) -> dict[str, list[Any]]:
    """What the rows held, by column: the least and the largest number, or the words where they repeat."""
    found = {}
    for column in X.get_columns() if isinstance(X, pl.DataFrame) else []:
        values = column.drop_nulls()
        if column.dtype.is_numeric() and values.len():
            found[column.name] = [values.min(), values.max()]
        elif column.dtype == pl.String and values.n_unique() <= min(CATEGORIES, values.len() // 2):
            found[column.name] = values.unique().sort().to_list()
    return found


def _doubt(voice: Voice, model: Any, scores: list[dict[str, Any]]) -> None:
    """A note where the model is not what it should be."""
    if getattr(getattr(model, "model_", model), "end_", "converged") != "converged":
        voice.note(
            "the last fit stopped before it was exact, so that the model may be much worse than it could be: "
            "give it more --time, try another --model, or --model ridge with other --centers"
        )
    least = ("RMSE", "MAE", "log loss", "Poisson deviance")
    gains = [(s["baseline"] - s["value"]) / (s["baseline"] or 1) if s["name"] in least else s["value"] - s["baseline"]
             for s in scores if s["baseline"] is not None]  # fmt: skip
    if gains and max(gains) < 0.005:
        voice.note(
            "the model is no better than the baseline, which uses no column: do not rely on it. Either the columns say "
            "nothing about the target, or another --model may do better"
        )


def _refitted(model: Any, problem: Problem) -> Any:
    from sklearn.base import clone

    if hasattr(model, "model_"):  # chosen from several: its choice, on the other rows
        return clone(model).set_params(kernel=model.model_.kernel_, loss=model.loss_).fit(problem.X, problem.y)
    inner, again = model, clone(model)
    if hasattr(inner, "alpha_") and "alpha" in again.get_params(deep=False):
        again.set_params(alpha=inner.alpha_)
    known = again.get_params(deep=False)
    if known.get("tune") is not None:
        again.set_params(tune=None, kernel=inner.kernel_)
    return again.fit(problem.X, problem.y)


def _save(model: Any, place: str) -> int:
    model.save(place)
    return os.stat(place).st_size if os.path.isfile(place) else 0


def readable(model: Any) -> str:
    """The kernel of a model, for a person: without the kinds of columns around it, and in few digits."""
    kernel = getattr(model, "kernel_", None) or getattr(model, "kernel", None)
    return brief(repr(kernel.inner if isinstance(kernel, mc.Typed) else kernel)) if kernel is not None else ""


def _tell_fit(
    voice: Voice, model: Any, asked: Problem, wish: menu.Wish, scores: Any, judged: str, spent: float,
    place: str | None, size: int, report: str | None, data: str,
) -> None:  # fmt: skip
    inner = getattr(model, "model_", model)
    status = str(getattr(inner, "status_", ""))
    if not voice.quiet:
        _summary(voice, inner, status, asked, wish, scores, judged, spent, place, size, report, data)
    voice.document(
        {
            "command": "fit",
            "data": data,
            "rows": len(asked),
            "columns": asked.columns or asked.X.shape[1],
            "left_out": asked.left_out,
            "target": asked.target,
            "task": asked.task,
            "model": type(inner).__name__,
            "kernel": repr(getattr(inner, "kernel_", None) or getattr(inner, "kernel", None)),
            "status": status,
            "choices": wish.choices,
            "scores": scores,
            "judged_on": judged,
            "seconds": spent,
            "out": place,
            "report": report,
        }
    )


def _summary(
    voice: Voice, inner: Any, status: str, asked: Problem, wish: menu.Wish, scores: Any, judged: str, spent: float,
    place: str | None, size: int, report: str | None, data: str,
) -> None:  # fmt: skip
    words = {"regression": "numbers", "classification": "classes"}[asked.task]
    voice.say(
        f"{data}: {count(len(asked), 'row')}, {count(asked.X.shape[1], 'column')}, target {asked.target!r} ({words})",
        strong=True,
    )
    voice.pairs(
        [
            ("model", type(inner).__name__),
            ("kernel", readable(inner)),
            *[("chosen" if k == 0 else "", brief(text)) for k, text in enumerate(wish.choices)],
            ("solved", status),
            ("time", seconds(spent)),
        ]
    )
    say_scores(voice, scores, judged)
    if place is not None:
        voice.say(f"Saved as {place}" + (f" ({show_bytes(size)})." if size else "."))
    if report is not None:
        voice.say(f"Report in {report}.")
    if place is not None:
        voice.say(f"Next: mercer predict {shlex.quote(place)} NEW.csv, or mercer explain {shlex.quote(place)}")


def say_scores(voice: Voice, scores: list[dict[str, Any]], judged: str) -> None:
    """The scores as a small table."""
    if not scores:
        voice.say(f"Scores on {judged}.")
        return
    voice.say(
        f"Scores on {judged}:" if judged != "leave-one-out" else "Scores by leave-one-out, by which it was also chosen:"
    )
    rows = []
    for score in scores:
        ends = score["interval"]
        between = f"[{number(ends[0])}, {number(ends[1])}]" if ends else ""
        of_baseline = "" if score.get("baseline") is None else number(score["baseline"])  # not in older files
        rows.append([score["name"], score["value"], between, of_baseline])
    voice.table(["", "value", "90 % interval", "baseline"], rows)


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
            advice="Take --model svm.",
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
    start = expression if kernel else table_kernel(X, model, asked, voice)
    estimator: Any
    began = time.monotonic()
    with voice.progress(f"tuning on {len(some):,} rows") as tell, quieted(voice):
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
            tell("fitting all rows with what was found")
            tuned = _on_all(tuned, asked)
    spent = time.monotonic() - began
    found = tuned.tuning_
    tuned.table_ = {
        "target": asked.target, "task": asked.task, "columns": asked.columns, "left_out": asked.left_out,
        "rows": len(asked), "scores": [], "judged": "", "data": Path(data).name, "na": list(reading.get("na") or ()),
        "seen": seen(asked.X), "places": asked.places.tolist() if len(asked) <= menu.EXACT else [],
        "baseline": asdict(Baseline.of(asked.y, classes=asked.task == "classification")),
    }  # fmt: skip
    if out is not None:
        _save(tuned, out)
    value, before = found.value, plain_number(found.start_value)
    if "alpha" in found.parameters:  # the kernel is said above
        measure = {"loo": "leave-one-out error", "evidence": "log evidence"}[by]
        said = f"alpha = {tuned.alpha_:.3g}; {measure} {number(value)}, at the start {number(found.start_value)}"
    else:
        chosen = ", ".join(f"{name} = {at:.3g}" for name, at in _machine(tuned).items())
        measure = "R²" if asked.task == "regression" else "accuracy"
        said = f"{chosen}; mean {measure} over 3 folds {number(found.value)}, baseline {number(found.baseline)}"
    tuned_kernel = repr(getattr(tuned, "kernel_", tuned.kernel))
    voice.say(f"{data}: {count(len(asked), 'row')}, target {asked.target!r}", strong=True)
    voice.pairs([("kernel", readable(tuned)), ("found", said), ("time", seconds(spent))])
    for note in found.notes:
        voice.note(note)
    if out is not None:
        voice.say(f"Saved as {out}.")
    options = {"target": asked.target, "model": model, "task": asked.task, "kernel": tuned_kernel, "drop": drop}
    fit_command = _command("fit", data, options | {"drop_missing_target": drop_missing_target} | reading)
    voice.say(f"Next: {fit_command}")
    voice.document({
        "command": "tune", "data": data, "rows": len(asked), "searched": len(some), "target": asked.target,
        "model": type(tuned).__name__, "kernel": tuned_kernel, "alpha": getattr(found, "alpha", None),
        "C": None, "epsilon": None, **_machine(tuned), "next": fit_command,
        "by": by if model != "svm" else "3 folds", "value": value, "before": before,
        "baseline": plain_number(found.baseline), "beats_baseline": found.beats_baseline, "found": str(found),
        "notes": list(found.notes), "seconds": spent, "out": out,
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
    found = tuned.tuning_
    kept = (
        tuned.set_params(n_centers=menu.CENTRES) if len(asked) > menu.EXACT and hasattr(tuned, "n_centers") else tuned
    )
    fitted = kept.fit(asked.X, asked.y)
    fitted.tuning_ = found
    return fitted
