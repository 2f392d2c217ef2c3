"""`mercer predict` and `mercer evaluate`: a saved model on new rows, read in batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli.columns import as_fitted, missing_values_located
from mercer.cli.details import detail_facts, say_details
from mercer.cli.names import named, spelling
from mercer.cli.outputs import kind_of as table_kind
from mercer.cli.outputs import parts, sink
from mercer.cli.reading import Table, batches
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import caution_facts, say_scores, score_facts
from mercer.cli.tables import complete
from mercer.errors import InvalidInput
from mercer.models.conformal import CALIBRATED, ConformalRegressor
from mercer.models.judging.cautions import Caution
from mercer.models.judging.held_out_intervals import own_intervals
from mercer.models.judging.measures import COVERAGE
from mercer.models.judging.new_rows import Watch
from mercer.models.judging.unseen import unseen_classes
from mercer.models.provenance import Provenance, provenance
from mercer.models.quantiles import ROUNDING
from mercer.models.scores import judge
from mercer.words import count, seconds


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
    """Predict every row of a file, batch by batch."""
    if interval is not None and not 0 < interval < 1:
        raise InvalidInput(
            "--interval must be a coverage in (0, 1)", got=f"{interval:g}", advice="Give a coverage such as 0.9."
        )
    if out not in (None, "-"):
        table_kind(out)
    model = mc.load(model_path)
    origin = provenance(model)
    watch = Watch(model)
    _require(model, interval, proba)
    if interval is not None and isinstance(model, ConformalRegressor):
        before = ", measured before the last fit" if origin.refitted else ""
        voice.note(f"the intervals come from the residuals of {model.n_calibration_:,} held-out rows{before}")
    p = getattr(model, "n_features_in_", None)
    to_stdout = out in (None, "-")
    rows = 0
    reading = reading_for(origin, reading)
    with (
        batches(data, origin.columns, n_features=p, keep=keep, **reading) as (tables, notes),
        voice.progress("predicting") as update,
        warnings_as_notes(voice),
        sink(out, "document" if voice.as_json and to_stdout else None) as target,
    ):
        for table in tables:
            for note in notes:
                voice.note(note)
            if keep and not isinstance(table.frame, pl.DataFrame):
                raise InvalidInput("--keep needs a table", got="a sparse file", advice="Remove --keep.")
            X = inputs_of(table)
            with missing_values_located(X, table.name, range(rows, rows + table.rows)):
                predicted = predictions(model, X, interval, proba)
            watch.add(X)
            target.write(parts(table.frame, predicted, keep=keep))
            rows += table.rows
            update(f"{rows:,} rows predicted")
        if not rows:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add rows to the file.")
        for caution in watch.cautions():
            voice.note(caution.words)
        cautions = [caution_facts(caution) for caution in watch.cautions()]
        spent = voice.seconds
        target.facts = {"command": "predict", "rows": rows, "seconds": spent, "cautions": cautions}
        target.facts |= {"notes": voice.notes} if voice.notes else {}
    if not to_stdout:
        if not voice.quiet:
            voice.say(f"{count(rows, 'row')} predicted in {seconds(spent)}: {out}")
        voice.document(target.facts | {"model": model_path, "data": data, "out": out})


def reading_for(origin: Provenance, reading: dict[str, Any]) -> dict[str, Any]:
    """The reading options for a file of this model, with the --na texts of its training file."""
    return reading | {"na": [*(reading.get("na") or ()), *origin.missing]}


def _require(model: Any, interval: float | None, proba: bool) -> None:
    """Refuse --interval and --proba for models that cannot answer them."""
    classes = hasattr(model, "classes_")
    more_rows = "hold out more rows in mercer fit with --test-size"
    if interval is not None and classes:
        raise InvalidInput(
            "--interval needs a model that predicts numbers",
            got=f"{type(model).__name__}, which predicts classes",
            advice="Use --proba for the probability of each class.",
        )
    if interval is not None and not model.has_intervals():
        raise InvalidInput(
            "--interval needs a model with intervals, of its own or from residuals of held-out rows",
            got=type(model).__name__,
            advice=f"Fit again, and {more_rows}. At least {CALIBRATED} held-out rows are needed.",
        )
    if interval is not None and isinstance(model, ConformalRegressor) and interval > model.largest_coverage_ + ROUNDING:
        raise InvalidInput(
            f"--interval must be at most {model.largest_coverage_:.4g} for this model",
            got=f"{interval:g}, with intervals from the residuals of {model.n_calibration_} held-out rows",
            advice=f"Choose a smaller coverage, or {more_rows}.",
        )
    if proba and not (classes and hasattr(model, "predict_proba")):
        raise InvalidInput(
            "--proba needs a classifier with probabilities",
            got=type(model).__name__,
            advice="Fit again with --model logistic or svm."
            if classes
            else "Use --interval to see how sure a regression is.",
        )


def inputs_of(table: Table) -> Any:
    """The input of the model: its columns by name, a matrix if it was fitted to one, or a sparse matrix."""
    if not isinstance(table.frame, pl.DataFrame):
        return table.frame
    rows = table.frame.select(table.inputs)
    return rows if table.named else rows.to_numpy()


def predictions(model: Any, X: Any, interval: float | None = None, proba: bool = False) -> dict[str, Any]:
    """The predicted columns: `prediction`, then `lower` and `upper`, or one probability per class."""
    predicted: dict[str, Any] = {}
    values = np.asarray(model.predict(X))
    if values.ndim == 2:
        predicted |= {f"prediction_{k + 1}": values[:, k] for k in range(values.shape[1])}
    else:
        predicted["prediction"] = values.tolist() if values.dtype.kind in "OUS" else values
    if interval is not None:
        ends = np.asarray(model.predict_interval(X, interval))
        predicted["lower"], predicted["upper"] = ends[..., 0], ends[..., 1]
    if proba:
        P = np.asarray(model.predict_proba(X))
        predicted |= {f"p_{label}": P[:, k] for k, label in enumerate(np.asarray(model.classes_).tolist())}
    return predicted


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
    """Score a saved model on a file that contains the target."""
    model = mc.load(model_path)
    origin = provenance(model)
    name = target or origin.target
    p = getattr(model, "n_features_in_", None)
    X: list[Any] = []
    y: list[Any] = []
    with (
        batches(data, origin.columns, n_features=p, keep=True, apart=name, **reading_for(origin, reading)) as (
            tables,
            notes,
        ),
        voice.progress(f"reading {data}") as update,
    ):
        for table in tables:
            targets, name = targets_in(table, name, origin, sum(map(len, y)))
            X.append(inputs_of(table))
            y.append(targets)
            update(f"reading {data}: {sum(map(len, y)):,} rows")
    for note in notes:
        voice.note(note)
    if not y:
        raise InvalidInput(f"{data} must have rows", got="none", advice="Add rows to the file.")
    everything = pl.concat(y)
    places = np.flatnonzero(everything.is_not_null().to_numpy())
    frame, targets = complete(_stacked(X), everything, str(name), data, voice, drop=drop_missing_target)
    truth = as_classes(targets, model) if hasattr(model, "classes_") else targets.to_numpy()
    with (
        voice.progress(f"predicting {count(len(truth), 'row')}"),
        warnings_as_notes(voice),
        missing_values_located(frame, data, places),
    ):
        # Only intervals that `predict` gives: none from the residuals of these rows.
        judgement = judge(model, frame, truth, origin.baseline, intervals=own_intervals(model, frame, COVERAGE))
    cautions = _doubts(model, origin, frame, truth)
    for caution in cautions:
        voice.note(caution.words)
    if origin.baseline is None:
        voice.note("the scores have no baseline, since the model file does not record its training targets")
    values = judgement.predictions
    voice.say(f"{model_path} on {data}, target {name!r}", strong=True)
    say_scores(voice, judgement.scores, f"Scores on {count(len(truth), 'row')}:", rate=judgement.rate)
    content: dict[str, Any] = {
        "command": "evaluate", "model": model_path, "data": data, "target": name, "rows": len(truth),
        "scores": score_facts(judgement.scores), "seconds": voice.seconds,
        "cautions": [caution_facts(caution) for caution in cautions],
    }  # fmt: skip
    details = detail_facts(model, truth, judgement)
    say_details(voice, details, count(len(truth), "row"))
    content |= details
    if hasattr(model, "classes_"):
        content["confusion"] = _confusion(voice, truth, values)
    elif worst:
        order = np.argsort(-np.abs(truth - values))[:worst]
        voice.say("Worst predicted rows:")
        rows = [[int(places[i]) + 1, float(truth[i]), float(values[i]), float(truth[i] - values[i])] for i in order]
        voice.table(["row", "target", "prediction", "residual"], rows)
        content["worst"] = [dict(zip(("row", "target", "prediction", "error"), row)) for row in rows]
    voice.document(content)


def _doubts(model: Any, origin: Provenance, X: Any, y: Any) -> tuple[Caution, ...]:
    """The reasons to doubt scores on these rows."""
    watch = Watch(model)
    watch.add(X)
    overlap = None if origin.seen is None else origin.seen.overlap(X, y, held_out=False)
    unknown = unseen_classes(model, y)
    return (
        *watch.cautions(),
        *([overlap] if overlap is not None and overlap.notable else []),
        *([unknown] if unknown is not None and unknown.notable else []),
    )


def targets_in(table: Table, name: str | None, origin: Provenance, before: int) -> tuple[pl.Series, str]:
    """The targets of a batch and their name: numbers for a regression, else texts."""
    if table.label is not None:
        return pl.Series("label", table.label), "label"
    if name is None:
        raise InvalidInput(
            "--target must name the column to compare with",
            got="no --target, and a model without the name of its target",
            advice="Add --target with the name of the column.",
        )
    name = named(name, table.frame.columns, table.name, text=table.layout is not None)
    kind = (origin.target_type or "Float64") if origin.task == "regression" else "String"
    return as_fitted(table.frame.select(name), {name: kind}, table.name, before, table.comma)[name], name


def _stacked(X: list[Any]) -> Any:
    if isinstance(X[0], pl.DataFrame):
        return pl.concat(X)
    import scipy.sparse as sp

    return sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X)


def as_classes(targets: pl.Series, model: Any) -> Any:
    """Labels of the model's type: 1, 1.0 and "1" are the same class."""
    classes = np.asarray(model.classes_).tolist()
    by_spelling = {spelling(label): label for label in classes}
    labels = [by_spelling.get(spelling(label), label) for label in targets.to_list()]
    unknown = sorted({label for label in labels if type(label) is not type(classes[0])})
    try:
        others = {label: type(classes[0])(float(label)) for label in unknown}  # a number that was not seen in fit
    except ValueError:
        raise InvalidInput(
            "The target must hold classes of the model",
            got=repr(unknown[0]),
            advice=f"Use the classes {str(classes)[:200]}.",
        ) from None
    return np.asarray([others.get(label, label) for label in labels])


def _confusion(voice: Voice, truth: Any, values: Any) -> dict[str, dict[str, int]]:
    pairs = Counter(zip(map(str, truth.tolist()), map(str, values.tolist())))
    labels = sorted({label for pair in pairs for label in pair})
    table = {a: {b: pairs[a, b] for b in labels} for a in labels}
    if len(labels) <= 12:
        voice.say("Confusion matrix (rows: true class, columns: predicted class):")
        voice.table(["", *labels], [[a, *table[a].values()] for a in labels])
    else:
        wrong = sorted((-times, a, b) for (a, b), times in pairs.items() if a != b)[:5]
        if wrong:
            voice.say("Most frequent confusions:")
            voice.table(["true class", "predicted class", "rows"], [[a, b, -times] for times, a, b in wrong])
    return table
