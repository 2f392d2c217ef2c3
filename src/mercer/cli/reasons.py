"""`mercer explain --row`: the contributions of columns to one prediction, and the most similar training rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.kept_rows import Given, has_columns, kept_table, places_of, row_values, targets_of
from mercer.cli.names import class_named
from mercer.cli.speaking import Voice, warnings_as_notes
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.base import exposure_of
from mercer.models.explaining.contributions import Contributions
from mercer.models.explaining.similar import SimilarRows, kept_rows
from mercer.models.provenance import Provenance
from mercer.words import count, number

SHOWN_COLUMNS = 12
"""The largest number of columns whose contribution is shown."""
COMPARED_COLUMNS = 5
"""The number of columns of similar rows that are shown, those with the largest contributions."""
COVERAGE = 0.9


def explain_row(
    voice: Voice, path: str, model: Any, origin: Provenance, given: Given | None, row: int, *, label: str | None,
    top: int,
) -> None:  # fmt: skip
    """Explain the prediction of row `row`, counted from 1: of a file, or of the training file."""
    points, _ = kept_rows(model)
    kept = None if points is None else kept_table(points, origin)
    background, total, whose = kept, 0 if points is None else points.n, "training rows that the model keeps"
    if origin.background is not None:
        background, total, whose = kept_table(origin.background, origin), origin.rows, "training rows"
    places = [] if points is None else places_of(model, origin, points.n)
    if given is not None:
        at = row - 1 - given.before
        if not 0 <= at < length(given.X):
            raise InvalidInput(
                f"--row must be a row of {given.name}, from 1 to {given.last:,}",
                got=str(row),
                advice="Count from 1, without the header.",
            )
        X, truth, where = take(given.X, [at]), given.target(at), given.name
        if background is None:
            background, total, whose = given.X, length(given.X), f"rows of {given.name}"
    else:
        if kept is None or row - 1 not in places:
            raise InvalidInput(
                "--row must be a training row that is in the model file, or a row of the file that --data names",
                got=f"row {row}, which is not in the model file: it was held out, or the model does not need it",
                advice="Add --data with the file of the row.",
            )
        at = places.index(row - 1)
        known = targets_of(model, origin, points.n)  # type: ignore[union-attr]
        X, truth, where = take(kept, [at]), known[at] if known else None, origin.data
    classes = np.asarray(getattr(model, "classes_", [])).tolist()
    chosen = None if label is None else class_named(label, classes, "--class")
    with voice.progress("contributions"), warnings_as_notes(voice):
        parts = mc.contributions(model, X, background, label=chosen) if has_columns(X) else None
        similar = _similar(model, X, top)
        interval = _interval(model, X)
        prediction = np.asarray(model.predict(X)).tolist()[0]
    actual = "" if truth is None else f", actual {_shown(truth)}"
    between = "" if interval is None else f" (90 % interval {_shown(interval[0])} to {_shown(interval[1])})"
    voice.say(f"{path}, row {row} of {where}: predicted {_shown(prediction)}{between}{actual}", strong=True)
    values = row_values(X, 0)
    content: dict[str, Any] = {
        "command": "explain", "row": row, "prediction": prediction, "interval": interval, "actual": truth,
        "values": values,
    }  # fmt: skip
    names = list(values)
    if parts is not None:
        names = [name for name, _, _ in parts.ranked()]
        over = "" if exposure_of(model) is None else " with the same exposure"
        content["mean"] = float(parts.mean[0])
        content["contributions"] = _say_contributions(voice, parts, values, parts.background(total, whose) + over)
    else:
        if hasattr(model, "predict_proba"):
            at = np.asarray(model.classes_).tolist().index(prediction if chosen is None else chosen)
            content["probability"] = float(np.asarray(model.predict_proba(X))[0, at])
            voice.say(f"The probability of {model.classes_[at]} is {number(content['probability'])}.")
        voice.table(["column", "value"], [[name, value] for name, value in values.items()])
    if similar is not None:
        names = names[:COMPARED_COLUMNS]
        content["similar"] = _say_similar(voice, model, origin, similar, names)
    voice.document(content)


def _shown(value: Any) -> str:
    return number(value, padded=False) if isinstance(value, float) else str(value)


def _similar(model: Any, X: Any, top: int) -> SimilarRows | None:
    try:
        return mc.similar_rows(model, X, top=top)
    except InvalidInput:  # a model without a kernel, or without its rows
        return None


def _interval(model: Any, X: Any) -> list[float] | None:
    """The 90 % prediction interval, if the model has one."""
    if not hasattr(model, "predict_interval") or not getattr(model, "has_intervals", lambda: True)():
        return None
    return np.asarray(model.predict_interval(X, COVERAGE))[0].tolist()


def _say_contributions(
    voice: Voice, parts: Contributions, values: dict[str, Any], compared: str
) -> dict[str, dict[str, float]]:
    """Print the contributions, the largest first, after the mean over the rows `compared`, from which they start."""
    ranked = parts.ranked()
    voice.say(
        f"The {parts.what()}, {number(float(parts.predictions[0]))}, is {number(float(parts.mean[0]))}, the mean over "
        f"{compared}, plus the contributions of the columns"
        f"{'' if parts.exact else ' (± standard error)'}:"
    )
    most = len(ranked) if len(ranked) == SHOWN_COLUMNS + 1 else SHOWN_COLUMNS  # a line is enough for a last column
    shown = [[name, values.get(name), f"{value:+.4g}", f"{error:.2g}" if error else ""]
             for name, value, error in ranked[:most]]  # fmt: skip
    rest = ranked[most:]
    if rest:
        shown.append([f"{count(len(rest), 'other column')}", "", f"{sum(value for _, value, _ in rest):+.4g}", ""])
    columns = 3 if parts.exact else 4
    voice.table(["column", "value", "contribution", "±"][:columns], [entry[:columns] for entry in shown])
    return {name: {"contribution": value, "error": error} for name, value, error in ranked}


def _say_similar(
    voice: Voice, model: Any, origin: Provenance, similar: SimilarRows, names: list[str]
) -> list[dict[str, Any]]:
    """Print the most similar training rows with their targets, if they are known."""
    places = places_of(model, origin, similar.compared)
    known = targets_of(model, origin, similar.compared)
    table = kept_table(similar.points, origin)
    rows = [row_values(similar.points if table is None else table, i) for i in range(len(similar.kept))]
    names = [name for name in names if rows and name in rows[0]] or list(rows[0] if rows else ())[:COMPARED_COLUMNS]
    target = [origin.target or "target"] if known else []
    voice.say()
    voice.say("Most similar training rows, by the kernel of the model (1 means identical):")
    entries: list[dict[str, Any]] = [
        {
            "place": places[i] + 1 if places else None, "similarity": float(similar.similarity[k]),
            "share": float(similar.share[k]), "target": known[i] if known else None, "row": rows[k],
        }
        for k, i in enumerate(similar.kept.tolist())
    ]  # fmt: skip
    voice.table(
        ["row"] * bool(places) + ["similarity", *target, *names],
        [
            [entry["place"]] * bool(places)
            + [
                f"{entry['similarity']:.3f}",
                *([entry["target"]] if known else []),
                *(entry["row"].get(n) for n in names),
            ]
            for entry in entries
        ],
    )
    return entries
