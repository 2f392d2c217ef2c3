"""Missing values: which entries and rows of a data set are missing, in arrays, frames and lists of objects alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points, frame_columns, is_frame, object_matrix
from mercer.errors import InvalidInput


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA: what is not even equal to itself."""
    if value is None or isinstance(value, (str, np.ndarray)):  # an array is a value
        return value is None
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA
        return not hasattr(value, "__len__")


def missing_rows(points: Points) -> NDArray[np.bool_]:
    """Which points miss a value: a row with None, NaN, NaT or NA in any column."""
    return points.once("missing", lambda: np.asarray(missing_entries(matrix_of(points)).any(axis=1)))


def matrix_of(points: Points) -> Array:
    """The points as an array with one row each: of numbers, or of objects."""
    return points.once("rows", lambda: rows_of(points.raw))


def rows_of(X: Any) -> Array:
    """Numbers or objects, one row per point."""
    if is_frame(X):
        columns = frame_columns(X)
        if all(c.dtype.kind in "iufb" for c in columns):
            return np.column_stack(columns)
        return _objects_of(list(zip(*columns)) if len(columns) > 1 else list(columns[0]), len(columns))
    if isinstance(X, np.ndarray):
        if X.ndim > 2:
            raise InvalidInput("Points must be values or rows", got=f"shape {X.shape}", advice="Reshape X.")
        return X[:, None] if X.ndim == 1 else X
    values = list(X)
    if values and all(isinstance(v, (list, tuple, np.ndarray)) and all(map(np.isscalar, v)) for v in values):
        try:
            A = np.asarray(values)
        except ValueError:  # lists of different lengths: tokens
            return _objects_of(values, 1)
        return A if A.ndim == 2 and A.dtype.kind in "iufb" else _objects_of(values, 1)
    if values and all(isinstance(v, (int, float, np.number)) for v in values):
        return np.asarray(values, dtype=np.float64)[:, None]
    return _objects_of(values, 1)


def _objects_of(values: list[Any], width: int) -> Array:
    if width > 1:
        return object_matrix(values)
    out = np.empty((len(values), 1), dtype=object)
    for i, value in enumerate(values):  # assigned one by one: a list stays a value
        out[i, 0] = value
    return out


def missing_entries(A: Array) -> NDArray[np.bool_]:
    """Which entries are missing."""
    if A.dtype.kind == "f":
        return np.isnan(A)
    if A.dtype.kind in "mM":
        return np.isnat(A)
    if A.dtype.kind != "O":
        return np.zeros(A.shape, dtype=bool)
    try:
        found: Array = (A == None) | (A != A)  # noqa: E711
        if found.dtype == bool and found.shape == A.shape:
            return found
    except (TypeError, ValueError):  # pandas.NA, or values that are arrays
        pass
    return np.fromiter(map(is_missing, A.ravel()), dtype=bool, count=A.size).reshape(A.shape)
