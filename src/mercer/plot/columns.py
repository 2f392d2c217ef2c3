"""Data around its middle, with one column moved: what a curve along that column is asked at."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput

MORE = 0.03
"""Of the range of a column, beyond the data on both sides."""
MISSING = "None", "nan", "<NA>", "NaT"


LEVELS = 12
"""Values of a category that are shown, the commonest."""


def along(
    X: Any, column: Any, at: Any, resolution: int
) -> tuple[NDArray[Any], NDArray[Any], Any, str, tuple[str, ...]]:
    """The data in one column, its grid, the queries of that grid, the column's name, and its values in words.

    There are such words of categories, which are columns of something else than numbers and dates, and of numbers with
    two values: the grid then counts them, and NaN in the data is a value that is not among the commonest.
    Other columns are at `at`, a mapping or one value per column; else at their medians, and columns of something else
    than numbers at their most frequent value.
    """
    if not isinstance(resolution, (int, np.integer)) or resolution < 2:
        raise InvalidInput("`resolution` must be a whole number ≥ 2", got=repr(resolution), advice="Such as 300.")
    names = list(X.columns) if hasattr(X, "columns") else None
    table = X if names is not None else _matrix(X)
    every = list(range(table.shape[1])) if names is None else names
    if not table.shape[0]:
        raise InvalidInput("X must have rows", got="none", advice="Pass the data to show.")
    j = _position(column, every)
    given = _given(at, every)
    shown = np.asarray(table[:, j] if names is None else table[every[j]])
    if shown.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            column = table[every[j]] if names is not None else shown
            nullable = hasattr(column, "iloc")
            shown = column.to_numpy(dtype="float64", na_value=np.nan) if nullable else shown.astype(np.float64)
    if names is not None and shown.dtype.kind != "M" and (first := _levels(shown)) is not None:
        words = tuple(str(shown[i]) for i in first)
        place = {word: float(k) for k, word in enumerate(words)}
        moved = {
            name: _taken(table[name], first) if i == j else _repeated(table[name], given.get(i), i in given, len(first))
            for i, name in enumerate(every)
        }
        where = np.array([place.get(str(v), np.nan) for v in shown])
        return where, np.arange(len(first), dtype=np.float64), type(X)(moved), str(every[j]), words
    if shown.dtype.kind not in "iufM":
        raise InvalidInput(
            "The curve runs along a column of numbers or dates",
            got=f"column {every[j]!r} of {shown.dtype}",
            advice="Choose another `column`.",
        )
    known = shown[~np.isnat(shown)] if shown.dtype.kind == "M" else shown[np.isfinite(shown.astype(np.float64))]
    if not len(known):
        raise InvalidInput("The column must hold numbers", got="missing values only", advice="Choose another `column`.")
    low, high = known.min(), known.max()
    steps = np.linspace(-MORE, 1 + MORE, resolution)
    if shown.dtype.kind == "M":
        grid = low + np.asarray((high - low).astype("timedelta64[ns]").astype(np.float64) * steps).astype(
            "timedelta64[ns]"
        )
        grid = grid.astype(shown.dtype)
    else:
        wide = float(high) - float(low)
        grid = float(low) + (wide if wide > 0 else 1.0) * steps
    if names is None:
        queries = np.tile(
            np.array([_middle(table[:, i]) if i not in given else given[i] for i in every]), (resolution, 1)
        )
        queries[:, j] = grid
        return shown, grid, queries, "x" if len(every) == 1 else f"column {j}", ()
    columns = {}
    for i, name in enumerate(every):
        columns[name] = grid if i == j else _repeated(table[name], given.get(i), i in given, resolution)
    return shown, grid, type(X)(columns), str(every[j]), ()


def _levels(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """Where each of the commonest values of a category is first, in their order; None of numbers and of texts."""
    numeric = values.dtype.kind in "iuf"
    words = values if numeric else np.array([str(v) for v in values.tolist()])
    keys, first, counts = np.unique(words, return_index=True, return_counts=True)
    known = np.isfinite(keys) if numeric else ~np.isin(keys, MISSING)
    first, counts = first[known], counts[known]
    if len(first) != 2 if numeric else not len(first) or len(first) > max(LEVELS, len(values) / 2):
        return None
    return np.asarray(first[np.sort(np.argsort(-counts, kind="stable")[:LEVELS])])


def _matrix(X: Any) -> NDArray[Any]:
    required = "X must be a frame, or a matrix of numbers"
    try:
        table = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=type(X).__name__, advice="A curve is drawn along a column.") from None
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidInput(required, got=f"shape {table.shape}", advice="Of one column pass x[:, None].")
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
        advice=f"Did you mean {close[0]!r}?" if close else f"Such as {every[0]!r}.",
    )


def _given(at: Any, every: list[Any]) -> dict[int, Any]:
    """The values of other columns by position."""
    if at is None:
        return {}
    if hasattr(at, "items"):
        return {_position(name, every): value for name, value in at.items()}
    values = list(at)
    if len(values) != len(every):
        raise InvalidInput(
            f"`at` must hold {len(every)} values, one per column, or be a dictionary",
            got=f"{len(values)}",
            advice="Such as {'age': 40}.",
        )
    return dict(enumerate(values))


def _middle(values: NDArray[Any]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _repeated(column: Any, value: Any, given: bool, times: int) -> Any:
    """A column of a frame with one value: a row's own where it can be, so that its type stays what it is."""
    values = np.asarray(column)
    if given:
        return [value] * times
    if values.dtype.kind == "f":
        return np.full(times, _middle(values), dtype=values.dtype)
    if values.dtype.kind in "iuM":
        row = int(np.argsort(values, kind="stable")[(len(values) - 1) // 2])
    else:
        keys, first, counts = np.unique([str(v) for v in values.tolist()], return_index=True, return_counts=True)
        known = ~np.isin(keys, MISSING)
        row = int(first[np.where(known, counts, -1 if known.any() else counts).argmax()])
    return _taken(column, [row] * times)


def _taken(column: Any, rows: Any) -> Any:
    """Some rows of a column of a frame."""
    rows = list(map(int, rows))
    return column.iloc[rows].reset_index(drop=True) if hasattr(column, "iloc") else column[rows]
