"""`mercer predict` and `mercer evaluate`: a kept model on new rows, as many as there are."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from mercer.cli.columns import as_fitted, gaps_told, kind_of
from mercer.cli.fitting import HELD_OUT, as_facts, quieted, say_scores
from mercer.cli.reading import Table, batches
from mercer.cli.speaking import Voice, count, number, seconds
from mercer.cli.tables import complete, named
from mercer.cli.writing import parts, require_outputs, sink
from mercer.errors import InvalidInput
from mercer.report.scores import Baseline, judge


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


def baseline_of(known: dict[str, Any]) -> Baseline | None:
    """The baseline of the targets that the model was fitted on, where its file holds them."""
    facts = known.get("baseline")
    if not facts:
        return None
    classes, shares = facts.get("classes") or (), facts.get("shares") or ()
    return Baseline(facts.get("mean", np.nan), facts.get("median", np.nan), tuple(classes), tuple(shares))


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
    require_outputs({"--out": out}, inputs=(data, model_path))
    model = loaded(model_path)
    known = facts(model)
    _require(model, interval, proba)
    if interval is not None and by_held_out_rows(model, known):
        before = ", before the last fit" if known.get("refitted") else ""
        voice.note(f"intervals are by the residuals of {known['misses']['rows']:,} rows held out{before}")
    p = getattr(model, "n_features_in_", None)
    to_stdout = out in (None, "-")
    rows, strange = 0, Counter[str]()
    reading = as_read(known, reading)
    with (
        batches(data, known["columns"], n_features=p, keep=keep, **reading) as (tables, notes),
        voice.progress("predicting") as tell,
        quieted(voice),
        sink(out, "document" if voice.as_json and to_stdout else None) as target,
    ):
        for table in tables:
            for note in notes:
                voice.note(note)
            if keep and not isinstance(table.frame, pl.DataFrame):
                raise InvalidInput("--keep needs a table", got="a sparse file", advice="Leave it out.")
            X = _inputs(table)
            with gaps_told(X, table.name, range(rows, rows + table.rows)):
                made = predictions(model, X, interval, proba)
            strange += strangers(X, known)
            target.write(parts(table.frame, made, keep=keep))
            rows += table.rows
            tell(f"{rows:,} rows predicted")
        if not rows:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add some.")
        tell_strangers(voice, strange, known)
        target.facts = {"command": "predict", "rows": rows, "seconds": time.monotonic() - began, "notes": voice.notes}
    spent = time.monotonic() - began
    if not to_stdout:
        if not voice.quiet:
            voice.say(f"{count(rows, 'row')} predicted in {seconds(spent)}: {out}")
        voice.document(
            {"command": "predict", "model": model_path, "data": data, "rows": rows, "out": out, "seconds": spent}
        )


def as_read(known: dict[str, Any], reading: dict[str, Any]) -> dict[str, Any]:
    """How to read a file for a model: what was missing to its fit is missing again."""
    return reading | {"na": [*(reading.get("na") or ()), *known.get("na", ())]}


def strangers(X: Any, known: dict[str, Any]) -> Counter[str]:
    """How many rows have what the fit has not seen, by column: other words, or numbers half a range beyond theirs."""
    found = Counter[str]()
    for name, values in (known.get("seen") or {}).items() if isinstance(X, pl.DataFrame) else ():
        if kind_of(known["columns"][name]) == "number":
            low, high = map(float, values)
            far = ((X[name].cast(pl.Float64) - (low + high) / 2).abs() > high - low).sum()
        else:
            far = (~X[name].cast(pl.String).drop_nulls().is_in(values)).sum()
        found[name] = int(far or 0)
    return found


def tell_strangers(voice: Voice, found: Counter[str], known: dict[str, Any]) -> None:
    """Notes on the columns that have most of them."""
    columns = [name for name, rows in found.most_common() if rows]
    for name in columns[:STRANGE]:
        what = "a value that fit has not seen"
        if kind_of(known["columns"][name]) == "number":
            low, high = known["seen"][name]
            what = f"a number far outside those of fit ({number(float(low))} to {number(float(high))})"
        have = "has" if found[name] == 1 else "have"
        voice.note(f"column {name!r}: {count(found[name], 'row')} {have} {what}; predictions there are guesses")
    if columns[STRANGE:]:
        voice.note(f"and so have {count(len(columns) - STRANGE, 'more column')}")


def _require(model: Any, interval: float | None, proba: bool) -> None:
    classes = hasattr(model, "classes_")
    conformal = bool(facts(model).get("misses"))
    if interval is not None and (classes or not (model._has_intervals or conformal)):
        raise InvalidInput(
            "--interval needs a model of numbers that has intervals, or the residuals of rows held out",
            got=type(model).__name__,
            advice="--proba shows how sure a classifier is."
            if classes
            else f"Fit with at least {HELD_OUT} rows held out: --test-size says their share.",
        )
    if proba and not (classes and hasattr(model, "predict_proba")):
        raise InvalidInput(
            "--proba needs a classifier that has probabilities",
            got=type(model).__name__,
            advice="Fit with --model logistic or svm." if classes else "--interval tells how sure a regression is.",
        )


def _inputs(table: Table) -> Any:
    """What the model takes: the columns it knows, the numbers of one that knows no names, or a sparse matrix."""
    if not isinstance(table.frame, pl.DataFrame):
        return table.frame
    rows = table.frame.select(table.inputs)
    return rows if table.named else rows.to_numpy()


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
        P = np.asarray(model.predict_proba(X))
        made |= {f"p_{label}": P[:, k] for k, label in enumerate(np.asarray(model.classes_).tolist())}
    return made


STRANGE = 5
"""Columns that are told to have what fit has not seen, at most."""
JACKKNIFE = 2000
"""Rows up to which intervals are the model's own: each costs a system of that size, and every query a pass over it."""


def by_held_out_rows(model: Any, known: dict[str, Any]) -> bool:
    """Whether intervals come from residuals of rows held out (split conformal) instead of the model itself."""
    large = (known.get("rows") or 0) > JACKKNIFE
    return bool(known.get("misses")) and (large or not model._has_intervals)


def intervals(model: Any, X: Any, values: Any, coverage: float) -> Any:
    """Lower and upper ends, shape (m, 2)."""
    known = facts(model)
    if not by_held_out_rows(model, known):
        return np.asarray(model.predict_interval(X, coverage))
    misses = known["misses"]
    ends = conformal(np.asarray(misses["values"]), misses["rows"], coverage)
    with np.errstate(over="ignore"):
        return values[:, None] * ends if misses["kind"] == "ratio" else values[:, None] + ends


def conformal(off: Any, n: int, coverage: float) -> Any:
    """The ends between which the residual of one more row lies, with at least this probability.

    Of n exchangeable residuals these are the k-th least and the k-th greatest, k = ⌊(n + 1)(1 − coverage)/2⌋; `off`
    holds them in order, or evenly spaced ones of them.

    >>> conformal(np.arange(-9.0, 10.0), 19, 0.9)
    array([-9.,  9.])
    """
    k = int((n + 1) * (1 - coverage) / 2 + 1e-9)
    if k < 1:
        raise InvalidInput(
            f"--interval {coverage:g} needs at least {int(np.ceil(2 / (1 - coverage) - 1e-9)) - 1} rows held out",
            got=f"{n}, by whose residuals the intervals of this model are made",
            advice="Ask for less, or fit with more rows held out: --test-size.",
        )
    at = (k - 1) / max(n - 1, 1)
    return np.quantile(off, [at, 1 - at])


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
    p = getattr(model, "n_features_in_", None)
    X: list[Any] = []
    y: list[Any] = []
    with (
        batches(data, known["columns"], n_features=p, keep=True, apart=name, **as_read(known, reading)) as (
            tables,
            notes,
        ),
        voice.progress(f"reading {data}") as tell,
    ):
        for table in tables:
            answers, name = _answers(table, name, known["task"], sum(map(len, y)))
            X.append(_inputs(table))
            y.append(answers)
            tell(f"reading {data}: {sum(map(len, y)):,} rows")
    for note in notes:
        voice.note(note)
    if not y:
        raise InvalidInput(f"{data} must have rows", got="none", advice="Add some.")
    frame, answers = complete(_stacked(X), pl.concat(y), name, data, voice, drop=drop_missing_target)
    truth = _as_classes(answers, model) if hasattr(model, "classes_") else answers.to_numpy()
    with (
        voice.progress(f"predicting {count(len(truth), 'row')}"),
        quieted(voice),
        gaps_told(frame, data, range(len(truth))),
    ):
        found = judge(model, frame, truth, baseline_of(known))
    tell_strangers(voice, strangers(frame, known), known)
    if baseline_of(known) is None:
        voice.note("the model file does not hold the baseline of its training targets, so scores stand alone")
    scores, values = as_facts(found.scores), found.answers
    voice.say(f"{model_path} on {data}, target {name!r}", strong=True)
    say_scores(voice, scores, count(len(truth), "row"))
    content: dict[str, Any] = {
        "command": "evaluate", "model": model_path, "data": data, "target": name, "rows": len(truth), "scores": scores,
        "seconds": time.monotonic() - began,
    }  # fmt: skip
    if hasattr(model, "classes_"):
        content["confusion"] = _confusion(voice, truth, values)
    elif worst:
        order = np.argsort(-np.abs(truth - values))[:worst]
        voice.say("Worst predicted rows:")
        rows = [[int(i) + 1, float(truth[i]), float(values[i]), float(truth[i] - values[i])] for i in order]
        voice.table(["row", "target", "prediction", "error"], rows)
        content["worst"] = [dict(zip(("row", "target", "prediction", "error"), row)) for row in rows]
    voice.document(content)


def _answers(table: Table, name: str | None, task: str, before: int) -> tuple[pl.Series, str]:
    """The targets of a piece and their name: numbers for a regression, else as they are."""
    if table.label is not None:
        return pl.Series("label", table.label), "label"
    if name is None:
        raise InvalidInput(
            "--target must name the column that has the answers", got="none", advice="The model knows no name of it."
        )
    name = named(name, table.frame.columns, table.name, text=table.layout is not None)
    kind = "Float64" if task == "regression" else "String"
    return as_fitted(table.frame.select(name), {name: kind}, table.name, before, table.comma)[name], name


def _stacked(X: list[Any]) -> Any:
    if isinstance(X[0], pl.DataFrame):
        return pl.concat(X)
    import scipy.sparse as sp

    return sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)


def _as_classes(answers: pl.Series, model: Any) -> Any:
    """Labels as the model has them: 1, 1.0 and "1" are the same class."""
    classes = np.asarray(model.classes_).tolist()
    known = {_spelt(label): label for label in classes}
    labels = [known.get(_spelt(label), label) for label in answers.to_list()]
    strange = next((label for label in labels if type(label) is not type(classes[0])), None)
    if strange is not None:
        raise InvalidInput(
            "The target must hold classes of the model", got=repr(strange), advice=f"They are {str(classes)[:200]}."
        )
    return np.asarray(labels)


def _spelt(label: Any) -> str:
    """A label as text, one for every way to write a number.

    >>> _spelt("1.0"), _spelt(1), _spelt(True), _spelt("yes")
    ('1', '1', 'true', 'yes')
    """
    text = str(label).lower() if isinstance(label, bool) else str(label)
    try:
        return format(float(text), ".17g")
    except ValueError:
        return text


def _confusion(voice: Voice, truth: Any, values: Any) -> dict[str, dict[str, int]]:
    pairs = Counter(zip(map(str, truth.tolist()), map(str, values.tolist())))
    labels = sorted({label for pair in pairs for label in pair})
    table = {a: {b: pairs[a, b] for b in labels} for a in labels}
    if len(labels) <= 12:
        voice.say("Rows by class (down) and prediction (across):")
        voice.table(["", *labels], [[a, *table[a].values()] for a in labels])
    else:
        wrong = sorted((-times, a, b) for (a, b), times in pairs.items() if a != b)[:5]
        if wrong:
            voice.say("Taken for another class most often:")
            voice.table(["class", "taken for", "rows"], [[a, b, -times] for times, a, b in wrong])
    return table
