"""Missing values: None, NaN, NaT and NA. The one place that decides which values are missing.

Arrays mark them in one way each: numbers by NaN, dates by NaT, objects by None (`marked`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import MissingValues

Array = NDArray[Any]


def is_missing(value: Any) -> bool:
    """Whether one value is missing: None, or a value that is not equal to itself (NaN, NaT, NA).

    >>> is_missing(float("nan")), is_missing(None), is_missing(""), is_missing([])
    (True, True, False, False)
    """
    if value is None or isinstance(value, (str, np.ndarray)):  # an array is a value
        return value is None
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA has no truth value
        return not hasattr(value, "__len__")


def missing_entries(A: Array) -> NDArray[np.bool_]:
    """Which entries of an array are missing."""
    if A.dtype.kind == "f":
        return np.isnan(A)
    if A.dtype.kind in "mM":
        return np.isnat(A)
    if A.dtype.kind != "O":
        return np.zeros(A.shape, dtype=bool)
    try:
        missing: Array = (A == None) | (A != A)  # noqa: E711
        if missing.dtype == bool and missing.shape == A.shape:
            return missing
    except (TypeError, ValueError):  # NA, or values that are arrays
        pass
    return np.fromiter(map(is_missing, A.ravel()), dtype=bool, count=A.size).reshape(A.shape)


def marked(A: Array, missing: NDArray[np.bool_]) -> Array:
    """The values as objects, None where they are missing."""
    objects = A.astype(object)
    objects[missing] = None
    return objects


def refuse_missing(A: Array, column: object, advice: str) -> None:
    """Raise if values of a column are missing."""
    rows = np.flatnonzero(missing_entries(A))
    if len(rows):
        raise MissingValues(
            f"Column {column!r} must have no missing values",
            got=f"{len(rows)}, the first in row {rows[0]}",
            advice=advice,
        )


def is_na(value: Any) -> bool:
    """Whether a value is pandas.NA itself."""
    return type(value).__name__ == "NAType"


def na() -> Any:
    """pandas.NA; None without pandas."""
    try:
        return import_module("pandas").NA
    except ImportError:
        return None
