"""`mercer explain`: scores, feature importance, influential rows and the kernel; or the reasons for one prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.kept_rows import Given, given_rows, kept_table, places_of, row_values
from mercer.cli.predicting import reading_for
from mercer.cli.reasons import explain_row
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.cli.summary import importance_facts, readable, say_scores, score_facts, scores_title
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.auto.record import Choices
from mercer.models.base import innermost, unwrapped
from mercer.models.calibrated import decision_in_words
from mercer.models.explaining.importance import Importance, measured_importance
from mercer.models.explaining.similar import kept_rows
from mercer.models.provenance import Provenance, provenance
from mercer.report.frames import fitted_rows
from mercer.words import brief, count

SHOWN_IMPORTANCES = 20
"""Columns whose importance is shown, unless --top is larger."""
SHOWN_COLUMNS = 6
"""Columns of influential rows that are shown."""


def explain(
    voice: Voice, path: str, *, data: str | None, row: int | None, label: str | None, top: int, proof: bool,
    reading: dict[str, Any],
) -> None:  # fmt: skip
    """Describe a saved model, or explain its prediction of one row."""
    model = mc.load(path)
    origin = provenance(model)
    given = None if data is None else given_rows(voice, model, origin, data, reading_for(origin, reading), row or 1)
    if row is not None:
        explain_row(voice, path, model, origin, given, row, label=label, top=top)
        return
    if label is not None:
        raise InvalidInput("--class needs a row to explain", got="no --row", advice="Add --row with its number.")
    inner = innermost(model)
    kernel = getattr(inner, "kernel_", None)
    target = f", predicts {origin.target!r}" if origin.target else ""
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
    voice.say(f"{path}: {type(inner).__name__}{target}", strong=True)
    voice.pairs(
        [
            ("fitted to", f"{fitted_rows(model, origin.rows)} of {origin.data}" if origin.data else ""),
            ("date", f"{origin.time}, mercer {origin.version}" if origin.time else ""),
            ("columns", f"{len(origin.columns)}" if origin.columns else ""),
            ("not used", ", ".join(f"{k} ({v})" for k, v in list(origin.left_out.items())[:8])),
            ("decision", decision_in_words(model) if isinstance(model, mc.CalibratedClassifier) else ""),
        ]
    )
    if origin.scores:
        voice.say()
        rate = origin.baseline is not None and origin.baseline.rate is not None
        say_scores(voice, origin.scores, scores_title(origin), rate=rate)
    importance = _importance(voice, model, origin, given, top)
    content["importance"] = importance_facts(importance)
    content["influential"] = _influential(voice, model, origin, importance, top)
    voice.say()
    voice.say("How it was made:")
    voice.pairs([("kernel", readable(inner)), ("solver", content["status"])])
    content["choices"] = _choices(model)
    for line in content["choices"]:
        voice.line(f"  {brief(line)}")
    if kernel is not None and not isinstance(kernel, mc.Weight):
        content["proven"] = _proof(voice, kernel, whole=proof)
    if importance is not None and not voice.as_json:
        voice.say()
        voice.say(f"Why one prediction: mercer explain {path} --row N, with --data FILE for rows of another file")
    voice.document(content)


def _importance(voice: Voice, model: Any, origin: Provenance, given: Given | None, top: int) -> Importance | None:
    """Print and return the feature importance: on the rows of --data, else as `mercer fit` measured it."""
    importance, rows = origin.importance, "held-out rows" if origin.held_out else "training rows"
    if given is not None:
        if given.y is None:
            voice.note(f"feature importance needs the target, and {given.name} has no column {origin.target!r}")
            return None
        unknown = length(given.X) - len(given.y)
        if unknown:
            voice.note(f"{count(unknown, 'row')} of {given.name} without a target: not used for feature importance")
        if len(given.y) < 2:
            return None
        rows = f"of the first {given.last:,} rows of {given.name}" if given.more else f"rows of {given.name}"
        with voice.progress("feature importance"), warnings_as_notes(voice):
            importance = measured_importance(model, take(given.X, given.known), given.y)
    if importance is None:
        if len(origin.columns) > 1:
            voice.note("the model file has no feature importance: pass a file with the target as --data to measure it")
        return None
    voice.say()
    voice.say(importance.words(rows))
    shown = max(top, SHOWN_IMPORTANCES)
    voice.table(
        ["column", f"rise of the {importance.measure}", "±"],
        [[name, *map(importance.shown, rises)] for name, *rises in importance.ranked[:shown]],
    )
    if len(importance.names) > shown:
        voice.say(
            f"  … and {len(importance.names) - shown} more of at most {importance.shown(importance.ranked[shown][1])}"
        )
    return importance


def _influential(
    voice: Voice, model: Any, origin: Provenance, importance: Importance | None, top: int
) -> list[dict[str, Any]] | None:
    """Print and return the rows with the largest coefficients; None if the model has none."""
    points, coef = kept_rows(model)
    if points is None or coef is None:
        return None
    strength = np.abs(coef) if coef.ndim == 1 else np.linalg.norm(coef, axis=1)
    order = np.argsort(-strength, kind="stable")[:top]
    share = float(strength[order].sum() / strength.sum()) if strength.sum() > 0 else 0.0
    table = kept_table(points, origin)
    rows = [row_values(points if table is None else table, int(i)) for i in order]
    ranked = [] if importance is None else [name for name, _, _ in importance.ranked if rows and name in rows[0]]
    names = (ranked or list(rows[0] if rows else ()))[:SHOWN_COLUMNS]
    places = places_of(model, origin, len(strength))
    voice.say()
    voice.say(
        f"Most influential training rows (largest |coefficient| c; these {len(order)} of {len(strength):,} hold "
        f"{share:.0%} of the total):"
    )
    influential: list[dict[str, Any]] = [
        {"place": places[i] + 1 if places else None, "strength": float(strength[i]), "row": row}
        for i, row in zip(order, rows)
    ]
    voice.table(
        ["row"] * bool(places) + ["|c|", *names],
        [
            [entry["place"]] * bool(places) + [entry["strength"], *[entry["row"].get(n) for n in names]]
            for entry in influential
        ],
    )
    return influential


def _proof(voice: Voice, kernel: Any, *, whole: bool) -> bool:
    """Print whether the kernel is proven, in a line or with all steps."""
    proof = kernel.proof()
    steps = str(proof).splitlines()[1:]
    words = "Proof that it is a kernel" if proof.valid else "Not proven to be a kernel"
    voice.line(f"  {words}: " + ("" if whole else f"{count(len(steps), 'step')}, shown with --proof"))
    for line in steps if whole else ():
        voice.line(f"  {brief(line)}")
    return bool(proof.valid)


def _choices(model: Any) -> list[str]:
    """The decisions of an automatic model, line by line."""
    choices = getattr(unwrapped(model), "choices_", ())
    return str(Choices(tuple(replace(decision, advice="") for decision in choices))).splitlines()
