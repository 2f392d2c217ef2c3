"""`mercer predict` and `mercer evaluate`: a kept model on new rows, as many as there are."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import polars as pl

from mercer.cli.fitting import quieted, say_scores
from mercer.cli.reading import Table, batches, shown_names
from mercer.cli.scoring import probabilities, scores_of
from mercer.cli.speaking import Voice, count, plain, seconds
from mercer.cli.tables import target_of
from mercer.cli.writing import parts, require_writable, sink
from mercer.errors import InvalidInput


def loaded(path: str) -> Any:
    """The model in a file."""
    from mercer.files import load

    return load(path)


def facts(model: Any) -> dict[str, Any]:
    """What the command line knows of a model: target, task, and the columns with their types."""
    known = dict(getattr(model, "table_", None) or {})
    if not known.get("columns"):
        inner = getattr(model, "model_", model)
        names = getattr(model, "feature_names_in_", getattr(inner, "feature_names_in_", None))
        fitted_on = getattr(model, "_fitted_on", getattr(inner, "_fitted_on", {})) or {}
        types = fitted_on.get("dtypes") or []
        if names is not None:
            types = types if len(types) == len(names) else [types[0] if types else "float64"] * len(names)
            known["columns"] = dict(zip(map(str, names), types))
    known.setdefault("columns", {})
    known.setdefault("target", None)
    known.setdefault("task", "classification" if hasattr(model, "classes_") else "regression")
    return known


def predict(
    voice: Voice,
    model_path: str,
    data: str,
    *,
    interval: float | None,
    proba: bool,
    out: str | None,
    keep: bool,
    reading: dict[str, Any],
) -> None:
    """Predict every row of a file, a batch at a time."""
    began = time.monotonic()
    if interval is not None and not 0 < interval < 1:
        raise InvalidInput("--interval must be a coverage in (0, 1)", got=f"{interval:g}", advice="Such as 0.9.")
    if out is not None and out != "-":
        require_writable(out)
    model = loaded(model_path)
    known = facts(model)
    _require(model, interval, proba)
    if interval is not None and by_held_out_rows(model):
        voice.note(
            f"intervals are from the residuals of {facts(model)['misses']['rows']:,} rows held out (split conformal)"
        )
    columns = known["columns"]
    p = getattr(model, "n_features_in_", None)
    as_document = voice.as_json and (out is None or out == "-")
    told = False
    rows = 0
    opening = batches(data, columns, n_features=p, keep=keep, **reading)
    writing = sink(None if as_document else out, None)
    with opening as (tables, notes), voice.progress("predicting") as tell, quieted(voice), writing as target:
        for table in tables:
            if not told:
                for note in notes:
                    voice.note(note)
                told = True
            X = _inputs(table, columns, p)
            made = predictions(model, X, interval, proba)
            if as_document:
                for row in pl.DataFrame(made).iter_rows(named=True):
                    lead = ",\n    " if rows else '{\n  "command": "predict",\n  "predictions": [\n    '
                    sys.stdout.write(lead + json.dumps(plain(row), ensure_ascii=False, allow_nan=False))
                    rows += 1
            else:
                if keep and not isinstance(table.frame, pl.DataFrame):
                    raise InvalidInput("--keep needs a table", got="a sparse file", advice="Leave it out.")
                target.write(parts(table.frame, made, keep=keep))
                rows += table.rows
            tell(f"{rows:,} rows predicted")
        if not rows:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add some.")
    spent = time.monotonic() - began
    if as_document:
        notes_text = json.dumps(plain(voice.notes), ensure_ascii=False)
        sys.stdout.write(f'\n  ],\n  "rows": {rows},\n  "seconds": {spent:.6g},\n  "notes": {notes_text}\n}}\n')
        return
    if out is not None and out != "-":
        voice.say(f"{count(rows, 'row')} predicted in {seconds(spent)}: {out}")
        voice.document(
            {"command": "predict", "model": model_path, "data": data, "rows": rows, "out": out, "seconds": spent}
        )


def _require(model: Any, interval: float | None, proba: bool) -> None:
    classes = hasattr(model, "classes_")
    conformal = bool(facts(model).get("misses"))
    if interval is not None and (classes or not (hasattr(model, "predict_interval") or conformal)):
        raise InvalidInput(
            "--interval needs a model of numbers that has intervals",
            got=type(model).__name__,
            advice="--proba tells how sure a classifier is." if classes else "Fit with rows held out: --test-size 0.2.",
        )
    if proba and not (classes and hasattr(model, "predict_proba")):
        raise InvalidInput(
            "--proba needs a classifier that has probabilities",
            got=type(model).__name__,
            advice="Fit with --model logistic or svm." if classes else "--interval tells how sure a regression is.",
        )


def _inputs(table: Table, columns: dict[str, str], p: int | None) -> Any:
    if columns and isinstance(table.frame, pl.DataFrame):
        return table.frame.select(list(columns))
    if isinstance(table.frame, pl.DataFrame):
        # A model of bare arrays: the numbers of the table, in order.
        numbers = table.frame.select(
            pl.col(c) for c, d in zip(table.frame.columns, table.frame.dtypes) if d.is_numeric()
        )
        if p is not None and numbers.width != p:
            raise InvalidInput(
                f"{table.name} must have the {p} columns of numbers that the model was fitted on",
                got=f"{numbers.width}: {shown_names(numbers.columns)}",
                advice="The model knows no names of columns: give just those, in order.",
            )
        return numbers.to_numpy()
    return table.frame


def predictions(model: Any, X: Any, interval: float | None = None, proba: bool = False) -> dict[str, Any]:
    """The columns that are predicted: prediction, then lower and upper, or one per class."""
    made: dict[str, Any] = {}
    values = np.asarray(model.predict(X))
    if values.ndim == 2:
        made |= {f"prediction_{k + 1}": values[:, k] for k in range(values.shape[1])}
    else:
        made["prediction"] = values.tolist() if values.dtype.kind in "OUS" else values
    if interval is not None:
        ends = intervals(model, X, values, interval)
        made["lower"], made["upper"] = ends[..., 0], ends[..., 1]
    if proba:
        P = probabilities(model, X)
        if P is None:
            raise InvalidInput(
                "--proba needs probabilities", got=type(model).__name__, advice="Fit with --model logistic."
            )
        made |= {f"p_{label}": P[:, k] for k, label in enumerate(np.asarray(model.classes_).tolist())}
    return made


JACKKNIFE = 2000
"""Rows up to which intervals are the model's own: each costs a system of that size, and every query a pass over it."""


def by_held_out_rows(model: Any) -> bool:
    """Whether intervals come from residuals of rows held out (split conformal) instead of the model itself."""
    known = facts(model)
    large = (known.get("rows") or 0) > JACKKNIFE
    return bool(known.get("misses")) and (large or not hasattr(model, "predict_interval"))


def intervals(model: Any, X: Any, values: Any, coverage: float) -> Any:
    """Lower and upper ends, shape (m, 2)."""
    if not by_held_out_rows(model):
        return np.asarray(model.predict_interval(X, coverage))
    misses = facts(model)["misses"]
    # The finite-sample quantiles of n residuals: at least `coverage` of exchangeable rows lie between them.
    off, n = np.asarray(misses["values"]), misses["rows"]
    tail = (1 - coverage) / 2
    low, high = np.quantile(off, [max(0.0, tail - 1 / n), min(1.0, 1 - tail + 1 / n)])
    with np.errstate(over="ignore"):
        ends = (
            values[:, None] * np.array([low, high])
            if misses["kind"] == "ratio"
            else values[:, None] + np.array([low, high])
        )
    return np.asarray(ends)


def evaluate(
    voice: Voice,
    model_path: str,
    data: str,
    *,
    target: str | None,
    drop_missing_target: bool,
    worst: int,
    reading: dict[str, Any],
) -> None:
    """Scores of a kept model on a file that has the answers."""
    began = time.monotonic()
    model = loaded(model_path)
    known = facts(model)
    name = target or known["target"]
    columns = known["columns"]
    X, y = [], []
    if name is not None and name != "label":
        columns = columns | {name: "Float64" if known["task"] == "regression" else "String"}
    with batches(data, columns, n_features=getattr(model, "n_features_in_", None), **reading) as (tables, notes):
        for table in tables:
            answers = target_of(table, name)
            X.append(_inputs(table, known["columns"], getattr(model, "n_features_in_", None)))
            y.append(answers)
    for note in notes:
        voice.note(note)
    if not y:
        raise InvalidInput(f"{data} must have rows", got="none", advice="Add some.")
    answers = pl.concat(y)
    X = pl.concat(X) if isinstance(X[0], pl.DataFrame) else X[0] if len(X) == 1 else _stacked(X)
    keep = ~answers.is_null().to_numpy()
    if not keep.all():
        rows = np.flatnonzero(~keep) + 1
        some = ", ".join(map(str, rows[:5]))
        if not drop_missing_target:
            raise InvalidInput(
                f"The target {name!r} of {data} must have a value in every row",
                got=f"{count(len(rows), 'row')} without one: {some}",
                advice="Fill them in, or leave these rows out with --drop-missing-target.",
            )
        voice.note(f"{count(len(rows), 'row')} without a target left out: {some}")
        X, answers = X[np.flatnonzero(keep)], answers.filter(keep)
    truth = _as_classes(answers, model) if hasattr(model, "classes_") else answers.cast(pl.Float64).to_numpy()
    with voice.progress(f"predicting {len(truth):,} rows"), quieted(voice):
        found = scores_of(model, X, truth, baseline=truth)
        made = predictions(model, X)
    spent = time.monotonic() - began
    values = np.asarray(made["prediction"])
    voice.say(f"{model_path} on {data}, target {name or 'label'!r}", strong=True)
    say_scores(voice, found, count(len(truth), "row"))
    content: dict[str, Any] = {
        "command": "evaluate", "model": model_path, "data": data, "target": name, "rows": len(truth), "scores": found,
        "seconds": spent,
    }  # fmt: skip
    if hasattr(model, "classes_"):
        content["confusion"] = _confusion(voice, truth, values)
    elif worst:
        order = np.argsort(-np.abs(truth - values))[:worst]
        voice.say("Worst predicted rows:")
        rows_ = [[int(i) + 1, float(truth[i]), float(values[i]), float(truth[i] - values[i])] for i in order]
        voice.table(["row", "target", "prediction", "error"], rows_)
        content["worst"] = [dict(zip(("row", "target", "prediction", "error"), row)) for row in rows_]
    voice.document(content)


def _stacked(X: list[Any]) -> Any:
    import scipy.sparse as sp

    return sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)


def _as_classes(answers: pl.Series, model: Any) -> Any:
    """Labels in the kind that the model has."""
    classes = np.asarray(model.classes_)
    if classes.dtype.kind in "iuf":
        numbers = answers.cast(pl.Float64, strict=False)
        if numbers.null_count() > answers.null_count():
            wrong = answers.filter(numbers.is_null())[0]
            raise InvalidInput(
                "The target must hold classes of the model",
                got=repr(wrong),
                advice=f"They are {classes.tolist()[:10]}.",
            )
        return numbers.to_numpy().astype(classes.dtype)
    if classes.dtype.kind == "b":
        return np.array([str(v).lower() in ("true", "1", "yes") for v in answers.to_list()])
    return np.asarray(answers.cast(pl.String).to_list())


def _confusion(voice: Voice, truth: Any, values: Any) -> dict[str, dict[str, int]]:
    labels = np.unique(np.concatenate([np.asarray(truth).astype(str), values.astype(str)])).tolist()
    t, v = np.asarray(truth).astype(str), values.astype(str)
    table = {a: {b: int(np.sum((t == a) & (v == b))) for b in labels} for a in labels}
    if len(labels) <= 12:
        voice.say("Rows by class (down) and prediction (across):")
        voice.table(["", *labels], [[a, *table[a].values()] for a in labels])
    return table
