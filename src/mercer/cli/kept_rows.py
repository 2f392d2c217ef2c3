"""Rows to explain and to compare with: those of a file, and those that a model keeps of its training file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mercer.cli.predicting import as_classes, inputs_of, targets_in
from mercer.cli.reading import batches
from mercer.cli.speaking import Voice
from mercer.data import frames
from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.models.base import innermost
from mercer.models.explaining.contributions import background_rows
from mercer.models.explaining.similar import kept_rows, positions_of_innermost
from mercer.models.provenance import Provenance


@dataclass(frozen=True, eq=False)
class Given:
    """Consecutive rows of a file: its first ones, or those around one row.

    Attributes
    ----------
    name : str
        The name of the file.
    X
        The rows as the model reads them.
    y, known
        The targets of the rows that have one, and the positions of these rows; y is None if the file has no target.
    before
        The number of rows of the file before these.
    more
        Whether the file goes on after these.
    """

    name: str
    X: Any
    y: Any
    known: NDArray[np.int64]
    before: int
    more: bool

    @property
    def last(self) -> int:
        """The number of the last of these rows in the file, counted from 1."""
        return self.before + length(self.X)

    def target(self, i: int) -> Any:
        """The target of the row at this position; None if it is not known."""
        at = np.flatnonzero(self.known == i)
        return self.y[at[0]] if self.y is not None and len(at) else None


def given_rows(voice: Voice, model: Any, origin: Provenance, data: str, reading: dict[str, Any], row: int = 1) -> Given:
    """The first rows of a file, or those around the row of this number, with their targets if it has them."""
    p = getattr(model, "n_features_in_", None)
    with batches(data, origin.columns, n_features=p, keep=True, apart=None, **reading) as (tables, notes):
        table, before = next(tables, None), 0
        for note in notes:
            voice.note(note)
        if table is None:
            raise InvalidInput(f"{data} must have rows", got="none", advice="Add rows to the file.")
        following = next(tables, None)
        while following is not None and before + table.rows < row:
            before += table.rows
            table, following = following, next(tables, None)
        has_target = table.label is not None or (
            isinstance(table.frame, pl.DataFrame) and origin.target in table.frame.columns
        )
        targets = targets_in(table, origin.target, origin, before)[0] if has_target else None
        X = inputs_of(table)
    if targets is None:
        return Given(data, X, None, np.arange(0), before, following is not None)
    known, targets = np.flatnonzero(targets.is_not_null().to_numpy()), targets.drop_nulls()
    y = as_classes(targets, model) if hasattr(model, "classes_") else targets.to_numpy()
    return Given(data, X, y, known, before, following is not None)


def has_columns(X: Any) -> bool:
    """Whether there are several columns whose contributions can be compared."""
    return not isinstance(X, list) and not hasattr(X, "tocsr") and np.ndim(X) == 2 and X.shape[1] > 1


def kept_background(model: Any, X: Any) -> Any:
    """Training rows to save for explanations; None if the file of the model would hold no training rows otherwise."""
    omitted: tuple[str, ...] = getattr(innermost(model), "_training_only", tuple)()
    if not has_columns(X) or "_rows" in omitted or kept_rows(model)[0] is None:
        return None
    return background_rows(model, X)


def kept_table(points: Any, origin: Provenance) -> pl.DataFrame | None:
    """The rows that a model keeps as a table with the columns of its file; None if some columns are not kept."""
    names, raw = list(origin.columns), getattr(points, "raw", points)
    if not names or raw is None or isinstance(raw, list):
        return None
    if frames.is_frame(raw):
        table = pl.DataFrame(dict(zip(frames.column_names(raw), map(frames.listed, frames.columns(raw)))))
        return table.select(names) if set(names) <= set(table.columns) else None
    matrix = np.asarray(raw.todense() if hasattr(raw, "todense") else raw)
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        return None
    return pl.DataFrame(matrix, schema=names, orient="row")


def places_of(model: Any, origin: Provenance, n: int) -> list[int]:
    """The positions in the training file of the n rows that a model keeps, from 0; empty if they are not known."""
    return [origin.places[i] for i in _positions(model, origin, n)]


def targets_of(model: Any, origin: Provenance, n: int) -> list[Any]:
    """The targets of the n rows that a model keeps; empty if they are not known."""
    return [origin.targets[i] for i in _positions(model, origin, n)] if origin.targets else []


def _positions(model: Any, origin: Provenance, n: int) -> list[int]:
    """The position among the rows of the last fit of each of the n rows that a model keeps; empty if not known."""
    positions, rows = positions_of_innermost(innermost(model), n), len(origin.places)
    return [] if positions is None or positions.max(initial=0) >= rows else positions.tolist()


def row_values(rows: Any, i: int) -> dict[str, Any]:
    """The values of one row by the names of its columns."""
    raw = getattr(rows, "raw", rows)
    if frames.is_frame(raw):
        row = frames.rows(raw, [i])
        return {name: frames.listed(column)[0] for name, column in zip(frames.column_names(row), frames.columns(row))}
    if hasattr(raw, "toarray"):
        row = raw[[i]].tocoo()
        return {f"f{int(c) + 1}": float(v) for c, v in list(zip(row.col, row.data))[:6]}
    if isinstance(raw, dict):
        return {str(k): v[i] for k, v in raw.items()}
    return {f"x{k}": v for k, v in enumerate(np.atleast_1d(np.asarray(raw[i])).tolist())}
