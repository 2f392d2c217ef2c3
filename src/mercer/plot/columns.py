"""Queries of a curve along one column, with the other columns at their median or most frequent value."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.frames import is_frame
from mercer.data.missing import missing_entries
from mercer.data.vectors import as_numbers
from mercer.errors import InvalidInput, InvalidType
from mercer.validation import check_whole_number

WHOLE = 30
"""A column of whole numbers with at most this many different values is drawn at these values only."""
LEVELS = 12
"""The largest number of values of a category that are shown, the most frequent ones."""


def along(
    X: Any, column: Any, at: Any, resolution: int
) -> tuple[NDArray[Any], NDArray[Any], Any, str, tuple[str, ...], bool]:
    """The data in one column, its grid, the queries there, its name, its values as texts, and if they are few integers.

    Only categories have such texts: columns that hold neither numbers nor dates, and numeric columns with two values.
    Their grid is 0, 1, …, and NaN in the data stands for a value that is not among the most frequent ones. The grid of
    other columns is inside the range of the data; that of few whole numbers consists of these numbers.
    Other columns are at `at`, a mapping or one value per column; else at their medians, and columns that are not
    numeric at their most frequent value.
    """
    check_whole_number(resolution, "resolution", least=2, such_as=300)
    named = is_frame(X)
    table = X if named else _matrix(X)
    every = list(X.columns) if named else list(range(table.shape[1]))
    if not table.shape[0]:
        raise InvalidInput("X must have rows", got="none", advice="Pass the rows to show.")
    j = _position(column, every)
    given = _given(at, every)
    shown = np.asarray(frames.column(table, j)) if named else table[:, j]
    if shown.dtype.kind == "O":
        with suppress(InvalidType):
            shown = as_numbers(shown, missing=True)
    if named and shown.dtype.kind != "M" and (first := _levels(shown)) is not None:
        words = tuple(str(shown[i]) for i in first)
        place = {word: float(k) for k, word in enumerate(words)}
        where = np.array([place.get(str(v), np.nan) for v in shown])
        moved = frames.taken(frames.column(X, j), first)
        return where, np.arange(len(first), dtype=np.float64), _queries(X, j, moved, given), str(every[j]), words, False
    if shown.dtype.kind not in "iufM":
        raise InvalidInput(
            "`column` must be a column of numbers or dates",
            got=f"column {every[j]!r} of {shown.dtype}",
            advice="Choose another `column`.",
        )
    known = shown[~np.isnat(shown)] if shown.dtype.kind == "M" else shown[np.isfinite(shown.astype(np.float64))]
    if not len(known):
        raise InvalidInput("`column` must hold numbers", got="missing values only", advice="Choose another `column`.")
    low, high = known.min(), known.max()
    steps = np.linspace(0, 1, resolution)
    whole = whole_values(known)
    if whole is not None:
        grid = whole
    elif shown.dtype.kind == "M":
        grid = low + np.asarray((high - low).astype("timedelta64[ns]").astype(np.float64) * steps).astype(
            "timedelta64[ns]"
        )
        grid = grid.astype(shown.dtype)
    else:
        wide = float(high) - float(low)
        grid = float(low) + (wide if wide > 0 else 1.0) * steps
    if not named:
        queries = np.tile(
            np.array([_middle(table[:, i]) if i not in given else given[i] for i in every]), (len(grid), 1)
        )
        queries[:, j] = grid
        return shown, grid, queries, "x" if len(every) == 1 else f"column {j}", (), whole is not None
    return shown, grid, _queries(X, j, grid, given), str(every[j]), (), whole is not None


def whole_values(known: NDArray[Any]) -> NDArray[np.float64] | None:
    """The different values, ascending, of a column of few whole numbers; None for other columns.

    >>> whole_values(np.array([3.0, 1.0, 3.0])), whole_values(np.array([0.5, 1.0]))
    (array([1., 3.]), None)
    """
    if known.dtype.kind not in "iuf":
        return None
    different = np.unique(known).astype(np.float64)
    few = len(different) <= WHOLE and len(different) < len(known)
    return different if few and bool((different == np.round(different)).all()) else None


def _queries(X: Any, j: int, moved: Any, given: dict[int, Any]) -> Any:
    """A frame like X with these values in column j; other columns have the given value, else their middle value."""
    parts = zip(X.columns, frames.columns(X))
    return frames.build(
        X,
        {
            name: moved if i == j else [given[i]] * len(moved) if i in given else _repeated(column, len(moved))
            for i, (name, column) in enumerate(parts)
        },
    )


def _levels(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """The first row of each of the most frequent values of a category, in their order; None for numbers and texts."""
    numeric = values.dtype.kind in "iuf"
    rows = np.flatnonzero(np.isfinite(values) if numeric else ~missing_entries(values))
    first, counts = _different(values, rows)
    if len(first) != 2 if numeric else not len(first) or len(first) > max(LEVELS, len(values) / 2):
        return None
    return np.asarray(first[np.sort(np.argsort(-counts, kind="stable")[:LEVELS])])


def _different(values: NDArray[Any], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each different value among these rows, and its frequency; objects are compared as texts."""
    some = values[rows]
    keys = some if values.dtype.kind in "iuf" else np.array([str(v) for v in some.tolist()], dtype=str)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return rows[first], counts


def _matrix(X: Any) -> NDArray[Any]:
    required = "X must be a frame, or a matrix of numbers"
    try:
        table = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=type(X).__name__, advice="Pass a table with the column to draw.") from None
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidInput(required, got=f"shape {table.shape}", advice="Pass x[:, None] for one column.")
    return table


def _position(column: Any, every: list[Any]) -> int:
    if column is None:
        if len(every) == 1:
            return 0
        column = every[0]
    if column in every:
        return every.index(column)
    if isinstance(column, (int, np.integer)) and -len(every) <= column < len(every):
        return int(column) % len(every)
    close = get_close_matches(str(column), list(map(str, every)), 1)
    raise InvalidInput(
        f"`column` must be one of {len(every)}, by name or position",
        got=repr(column),
        advice=f"Did you mean {close[0]!r}?" if close else f"Pass a column such as {every[0]!r}.",
    )


def _given(at: Any, every: list[Any]) -> dict[int, Any]:
    """The fixed values of other columns, by position."""
    if at is None:
        return {}
    if hasattr(at, "items"):
        return {_position(name, every): value for name, value in at.items()}
    values = list(at)
    if len(values) != len(every):
        raise InvalidInput(
            f"`at` must hold {len(every)} values, one per column, or be a dictionary",
            got=f"{len(values)}",
            advice="Pass a dictionary, such as {'age': 40}.",
        )
    return dict(enumerate(values))


def _middle(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _repeated(column: Any, times: int) -> Any:
    """A column with its middle value in every row: the value of a row if possible, so that the type is kept."""
    values = np.asarray(column)
    if values.dtype.kind == "f":
        return np.full(times, _middle(values), dtype=values.dtype)
    if values.dtype.kind in "iuM":
        row = int(np.argsort(values, kind="stable")[(len(values) - 1) // 2])
    else:
        rows = np.flatnonzero(~missing_entries(values))
        first, counts = _different(values, rows if len(rows) else np.arange(len(values)))
        row = int(first[counts.argmax()])
    return frames.taken(column, np.full(times, row))
