"""`mercer explain`: the kernel and its proof, the rows that carry the function, and the columns it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from mercer.cli.predicting import as_read
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import readable, say_scores, score_facts, scores_title
from mercer.errors import InvalidInput
from mercer.models.base import innermost
from mercer.models.importance import MEANING, feature_importance
from mercer.models.provenance import Provenance, provenance
from mercer.report.frames import fitted_rows
from mercer.words import brief

TRIED = 300
"""Rows on which feature importance is measured."""


def explain(voice: Voice, path: str, *, data: str | None, top: int, reading: dict[str, Any]) -> None:
    """What a kept model is made of."""
    model = mc.load(path)
    known = provenance(model)
    inner = innermost(model)
    kernel = getattr(inner, "kernel_", None)
    content: dict[str, Any] = {
        "command": "explain",
        "model": type(inner).__name__,
        "target": known.target,
        "task": known.task,
        "columns": known.columns,
        "kernel": repr(kernel) if kernel is not None else None,
        "status": str(getattr(inner, "status_", "")),
        "scores": score_facts(known.scores),
    }
    target = f", of {known.target!r}" if known.target else ""
    voice.say(f"{path}: {type(inner).__name__}{target}", strong=True)
    voice.pairs(
        [
            ("fitted to", f"{known.data}, {fitted_rows(model, known.rows)}" if known.data else ""),
            ("fitted on", f"{known.time}, mercer {known.version}" if known.time else ""),
            ("columns", f"{len(known.columns)}" if known.columns else ""),
            ("left out", ", ".join(f"{k} ({v})" for k, v in list(known.left_out.items())[:8])),
            ("solved", content["status"]),
            ("kernel", readable(inner)),
        ]
    )
    chosen = _choices(model)
    if chosen:
        content["choices"] = chosen
        voice.say("Chosen:")
    for line in chosen:
        voice.line(f"  {brief(line)}")
    if known.scores:
        say_scores(voice, known.scores, scores_title(known.judged, known.held_out))
    if kernel is not None and hasattr(kernel, "proof"):
        proof = kernel.proof()
        content["proven"] = proof.valid
        voice.say()
        voice.say("Proof:" if proof.valid else "Not proven:")
        for line in str(proof).splitlines()[1:]:
            voice.line(f"  {brief(line)}")
    points, strength = influential(inner)
    X = _sample(voice, points, known, data, as_read(known, reading))
    ordered: list[tuple[str, float]] = []
    if X is not None:
        with voice.progress("importance of the columns"), warnings_as_notes(voice):
            ordered = by_importance(model, X)
    if strength is not None:
        order = np.argsort(-strength)[:top]
        share = float(strength[order].sum() / strength.sum()) if strength.sum() > 0 else 0.0
        voice.say()
        voice.say(
            f"Rows that carry the function (largest |coefficient|; {len(order)} of {len(strength):,} are {share:.0%}):"
        )
        rows = [_row(points, int(i)) for i in order]
        relied = [name for name, _ in ordered if rows and name in rows[0]]
        names = (relied or list(rows[0] if rows else ()))[:6]
        places = _places(inner, known, len(strength))
        carriers: list[dict[str, Any]] = [
            {"place": places[i] + 1 if places else None, "strength": float(strength[i]), "row": row}
            for i, row in zip(order, rows)
        ]
        voice.table(
            ["row"] * bool(places) + ["|c|", *names],
            [[c["place"]] * bool(places) + [c["strength"], *[c["row"].get(n) for n in names]] for c in carriers],
        )
        content["influential"] = carriers
    if X is not None:
        voice.say()
        voice.say(MEANING)
        voice.table(["column", "relied on"], [[name, f"{value:.1%}"] for name, value in ordered[: max(top, 20)]])
        if len(ordered) > max(top, 20):
            voice.say(f"  … and {len(ordered) - max(top, 20)} more below {ordered[max(top, 20)][1]:.1%}")
        content["sensitivity"] = dict(ordered)
    voice.document(content)


def _choices(model: Any) -> list[str]:
    """The decisions of an automatic model, line by line."""
    chosen = getattr(model, "model_", model) if isinstance(model, mc.ConformalRegressor) else model
    return str(getattr(chosen, "choices_", "")).splitlines()


def influential(model: Any) -> tuple[Any, Any]:
    """The points of the function and how large their coefficients are, or (None, None)."""
    try:
        f = model.function_
        coef = np.asarray(f.coef)
        return f.points, np.abs(coef) if coef.ndim == 1 else np.linalg.norm(coef, axis=1)
    except (AttributeError, InvalidInput):  # not every model has a function, nor every file what it needs
        pass
    points, dual = getattr(model, "support_vectors_", None), getattr(model, "dual_coef_", None)
    if points is None or dual is None:
        return None, None
    size = np.linalg.norm(np.atleast_2d(np.asarray(dual)), axis=0)
    return (points, size) if len(size) == _length(points) else (None, None)


def _places(model: Any, known: Provenance, n: int) -> list[int]:
    """The places in the training file of n points of the function, from 0; empty where they are not known."""
    rows = list(known.places)
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
    if isinstance(raw, pl.DataFrame):
        return dict(raw.row(i, named=True))
    if hasattr(raw, "iloc"):
        return {str(k): v for k, v in raw.iloc[i].to_dict().items()}
    if hasattr(raw, "toarray"):
        row = raw[[i]].tocoo()
        return {f"f{int(c) + 1}": float(v) for c, v in list(zip(row.col, row.data))[:6]}
    if isinstance(raw, dict):
        return {str(k): v[i] for k, v in raw.items()}
    value = raw[i]
    return {f"x{k}": v for k, v in enumerate(np.atleast_1d(np.asarray(value)).tolist())}


def _sample(
    voice: Voice, points: Any, known: Provenance, data: str | None, reading: dict[str, Any]
) -> pl.DataFrame | None:
    """Rows to try the columns on: from a file, else those that the model keeps."""
    if not known.columns:
        return None
    names = list(known.columns)
    if data is not None:
        from mercer.cli.reading import batches

        with batches(data, known.columns, **reading) as (tables, notes):
            first = next(tables, None)
        if first is None:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add rows to it.")
        frame = first.frame.select(names)
        for note in notes:
            voice.note(note)
    else:
        raw = _raw(points)
        if raw is None:
            voice.note("the model keeps no rows to try its columns on: --data FILE gives some")
            return None
        if hasattr(raw, "iloc"):
            raw = pl.DataFrame({str(c): raw[c].to_list() for c in raw.columns})
        if not isinstance(raw, pl.DataFrame):
            raw = np.asarray(raw)
            if raw.ndim != 2 or raw.shape[1] != len(names):
                voice.note("the model keeps no rows to try its columns on: --data FILE gives some")
                return None
            raw = pl.DataFrame(raw, schema=names, orient="row")
        if not set(names) <= set(raw.columns):
            return None
        frame = raw.select(names)
    if frame.height > TRIED:
        frame = frame[np.sort(np.random.default_rng(0).permutation(frame.height)[:TRIED])]
    return frame


def by_importance(model: Any, X: pl.DataFrame) -> list[tuple[str, float]]:
    """The columns with their importance, the most important first."""
    return sorted(zip(X.columns, feature_importance(model, X).tolist()), key=lambda item: -item[1])
