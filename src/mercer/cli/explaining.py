"""`mercer explain`: the kernel and its proof, the most influential rows, and feature importance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli.predicting import reading_for
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import readable, say_scores, score_facts, scores_title
from mercer.data import frames
from mercer.errors import InvalidInput
from mercer.models.auto.record import Choices
from mercer.models.base import innermost, unwrapped
from mercer.models.calibrated import decision_in_words
from mercer.models.importance import exposure_of, feature_importance, meaning, measured_rows
from mercer.models.provenance import Provenance, provenance
from mercer.report.frames import fitted_rows
from mercer.words import brief

SHOWN_IMPORTANCES = 20
"""Columns whose importance is shown, unless --top is larger."""
NO_ROWS = "the model file keeps no rows on which to measure feature importance: pass a file with --data"


def explain(voice: Voice, path: str, *, data: str | None, top: int, reading: dict[str, Any]) -> None:
    """Describe a saved model."""
    model = mc.load(path)
    origin = provenance(model)
    inner = innermost(model)
    kernel = getattr(inner, "kernel_", None)
    content: dict[str, Any] = {
        "command": "explain",
        "model": type(inner).__name__,
        "target": origin.target,
        "task": origin.task,
        "columns": origin.columns,
        "kernel": repr(kernel) if kernel is not None else None,
        "status": str(getattr(inner, "status_", "")),
        "scores": score_facts(origin.scores),
    }
    target = f", predicts {origin.target!r}" if origin.target else ""
    voice.say(f"{path}: {type(inner).__name__}{target}", strong=True)
    voice.pairs(
        [
            ("fitted to", f"{fitted_rows(model, origin.rows)} of {origin.data}" if origin.data else ""),
            ("date", f"{origin.time}, mercer {origin.version}" if origin.time else ""),
            ("columns", f"{len(origin.columns)}" if origin.columns else ""),
            ("not used", ", ".join(f"{k} ({v})" for k, v in list(origin.left_out.items())[:8])),
            ("solver", content["status"]),
            ("kernel", readable(inner)),
            ("decision", decision_in_words(model) if isinstance(model, mc.CalibratedClassifier) else ""),
        ]
    )
    choices = _choices(model)
    if choices:
        content["choices"] = choices
        voice.say("Choices:")
    for line in choices:
        voice.line(f"  {brief(line)}")
    if origin.scores:
        say_scores(voice, origin.scores, scores_title(origin))
    if kernel is not None and not isinstance(kernel, mc.Weight):
        proof = kernel.proof()
        content["proven"] = proof.valid
        voice.say()
        voice.say("Proof:" if proof.valid else "Not proven:")
        for line in str(proof).splitlines()[1:]:
            voice.line(f"  {brief(line)}")
    points, strength = influential(inner)
    source = _importance_rows(voice, points, origin, data, reading_for(origin, reading))
    importances: list[tuple[str, float]] = []
    if source is not None:
        X, n, rows_in_words = source
        with voice.progress("feature importance"), warnings_as_notes(voice):
            importances = by_importance(model, X)
    if strength is not None:
        order = np.argsort(-strength)[:top]
        share = float(strength[order].sum() / strength.sum()) if strength.sum() > 0 else 0.0
        voice.say()
        voice.say(
            f"Most influential training rows (largest |coefficient| c; these {len(order)} of {len(strength):,} hold "
            f"{share:.0%} of the total):"
        )
        rows = [_row(points, int(i)) for i in order]
        important = [name for name, _ in importances if rows and name in rows[0]]
        names = (important or list(rows[0] if rows else ()))[:6]
        places = _places(inner, origin, len(strength))
        influential_rows: list[dict[str, Any]] = [
            {"place": places[i] + 1 if places else None, "strength": float(strength[i]), "row": row}
            for i, row in zip(order, rows)
        ]
        voice.table(
            ["row"] * bool(places) + ["|c|", *names],
            [
                [entry["place"]] * bool(places) + [entry["strength"], *[entry["row"].get(n) for n in names]]
                for entry in influential_rows
            ],
        )
        content["influential"] = influential_rows
    if source is not None:
        shown = max(top, SHOWN_IMPORTANCES)
        content["sensitivity_meaning"] = meaning(X.height, n, rows_in_words)
        voice.say()
        voice.say(content["sensitivity_meaning"])
        voice.table(["column", "importance"], [[name, f"{value:.1%}"] for name, value in importances[:shown]])
        if len(importances) > shown:
            voice.say(f"  … and {len(importances) - shown} more of at most {importances[shown][1]:.1%}")
        content["sensitivity"] = dict(importances)
    voice.document(content)


def _choices(model: Any) -> list[str]:
    """The decisions of an automatic model, line by line."""
    choices = getattr(unwrapped(model), "choices_", ())
    return str(Choices(tuple(replace(decision, advice="") for decision in choices))).splitlines()


def influential(model: Any) -> tuple[Any, Any]:
    """The points of the fitted function and the sizes of their coefficients, or (None, None)."""
    try:
        f = model.function_
        coef = np.asarray(f.coef)
        return f.points, np.abs(coef) if coef.ndim == 1 else np.linalg.norm(coef, axis=1)
    except (AttributeError, InvalidInput):  # some models have no function, and some files lack its points
        pass
    points, dual = getattr(model, "support_vectors_", None), getattr(model, "dual_coef_", None)
    if points is None or dual is None:
        return None, None
    size = np.linalg.norm(np.atleast_2d(np.asarray(dual)), axis=0)
    return (points, size) if len(size) == _length(points) else (None, None)


def _places(model: Any, origin: Provenance, n: int) -> list[int]:
    """The positions in the training file of the n points of the function, from 0; empty if they are not known."""
    rows = list(origin.places)
    support = [int(i) for i in getattr(model, "support_", ())]
    if n == len(support) and max(support, default=0) < len(rows):
        return [rows[i] for i in support]
    return rows if n == len(rows) else []


def _length(points: Any) -> int:
    return int(points.shape[0]) if hasattr(points, "shape") else len(points)


def _raw(points: Any) -> Any:
    return getattr(points, "raw", points)


def _row(points: Any, i: int) -> dict[str, Any]:
    raw = _raw(points)
    if frames.is_frame(raw):
        row = frames.rows(raw, [i])
        return {name: frames.listed(column)[0] for name, column in zip(frames.column_names(row), frames.columns(row))}
    if hasattr(raw, "toarray"):
        row = raw[[i]].tocoo()
        return {f"f{int(c) + 1}": float(v) for c, v in list(zip(row.col, row.data))[:6]}
    if isinstance(raw, dict):
        return {str(k): v[i] for k, v in raw.items()}
    value = raw[i]
    return {f"x{k}": v for k, v in enumerate(np.atleast_1d(np.asarray(value)).tolist())}


def _importance_rows(
    voice: Voice, points: Any, origin: Provenance, data: str | None, reading: dict[str, Any]
) -> tuple[pl.DataFrame, int, str] | None:
    """Rows to measure feature importance on, and the number and name of the rows that they are a sample of.

    They are rows of a file, else training rows that the model keeps; None if it keeps no rows with columns.
    """
    if not origin.columns:
        return None
    names = list(origin.columns)
    if data is not None:
        from mercer.cli.reading import batches

        with batches(data, origin.columns, **reading) as (tables, notes):
            first = next(tables, None)
            more = next(tables, None) is not None
        if first is None:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add rows to the file.")
        frame = first.frame.select(names)
        n, rows_in_words = frame.height, f"first rows of {data}" if more else f"rows of {data}"
        for note in notes:
            voice.note(note)
    else:
        raw = _raw(points)
        if raw is None:
            voice.note(NO_ROWS)
            return None
        if frames.is_frame(raw) and not isinstance(raw, pl.DataFrame):
            raw = pl.DataFrame(dict(zip(frames.column_names(raw), map(frames.listed, frames.columns(raw)))))
        if not isinstance(raw, pl.DataFrame):
            raw = np.asarray(raw)
            if raw.ndim != 2 or raw.shape[1] != len(names):
                voice.note(NO_ROWS)
                return None
            raw = pl.DataFrame(raw, schema=names, orient="row")
        if not set(names) <= set(raw.columns):
            return None
        frame = raw.select(names)
        n, rows_in_words = max(frame.height, origin.rows), "training rows"
    return frame[measured_rows(frame.height)], n, rows_in_words


def by_importance(model: Any, X: pl.DataFrame) -> list[tuple[str, float]]:
    """The columns with their importance, the most important first."""
    shares = zip(X.columns, feature_importance(model, X).tolist())
    return sorted((item for item in shares if item[0] != exposure_of(model)), key=lambda item: -item[1])
