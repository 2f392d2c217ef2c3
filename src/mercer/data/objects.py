"""Lists of objects: sets, texts, categories and records as kernels read them, from lists, arrays and frames alike."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.frames import is_frame
from mercer.data.missing import is_missing, is_na
from mercer.errors import InvalidInput

Array = NDArray[Any]

LARGEST = float(np.finfo(np.float64).max)
HEAVIEST = 1e307
"""Sums of the weights of two sets below this are finite."""


def object_matrix(records: list[Any]) -> Array:
    """Records of equal length as an object array, one row each."""
    widths = {len(r) if isinstance(r, (list, tuple, np.ndarray)) else -1 for r in records}
    if len(widths) != 1 or -1 in widths:
        raise InvalidInput(
            "Records must be rows of equal length",
            got=f"lengths {sorted(w for w in widths if w >= 0)}" + (" and single values" if -1 in widths else ""),
            advice="Pad the rows, or pass a data frame.",
        )
    table = np.empty((len(records), widths.pop()), dtype=object)
    for i, record in enumerate(records):
        table[i, :] = record
    return table


def object_array(values: list[Any]) -> Array:
    """A 1-D array of these objects, even if they are lists or arrays."""
    return np.fromiter(values, dtype=object, count=len(values))  # `np.array` would look into them


def objects_of(X: Any, what: str) -> list[Any]:
    """The objects of a list, an array, or a table with one column; `what` they are, for the error."""
    if is_frame(X):
        if X.shape[1] != 1:
            raise InvalidInput(
                f"{what} must be one column of a table",
                got=f"{X.shape[1]} columns",
                advice="Choose the column by its name: k.on('name').",
            )
        return frames.listed(frames.column(X, 0))
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        return list(X[:, 0])
    return list(X)


def as_set(A: Any, position: int) -> frozenset[Any]:
    """One point as a set, or an error that says where it is."""
    if not isinstance(A, (Set, list, tuple)):
        raise InvalidInput(
            "Every point must be a set (or a list or tuple of hashable elements)",
            got=f"{type(A).__name__} at position {position}",
            advice="Wrap it as set(tokens), or use a kernel on vectors.",
        )
    try:
        elements = frozenset(A)
    except TypeError as error:
        raise InvalidInput(
            "Elements of a set must be hashable",
            got=f"{error} at position {position}",
            advice="Use tuples in place of lists.",
        ) from None
    if any(map(_holds_nan, elements)):
        raise InvalidInput(
            "Elements of a set must equal themselves, or common elements could not be counted",
            got=f"NaN at position {position}",
            advice="Leave missing elements out, or write them as None.",
        )
    return elements


def as_weighted_set(A: Any, position: int) -> frozenset[Any] | dict[Any, float]:
    """One point as a set, or as a dict of elements and their weights > 0, or an error that says where it is."""
    if not isinstance(A, Mapping):
        return as_set(A, position)
    as_set(list(A), position)
    weights: dict[Any, float] = {}
    for element, weight in A.items():
        if not isinstance(weight, (int, float, np.integer, np.floating)) or not 0 <= weight <= LARGEST:
            huge = isinstance(weight, int) and weight > LARGEST  # such a number may be too long to print
            shown = f"a number above {LARGEST:.3g}" if huge else repr(weight)
            raise InvalidInput(
                "Weights of a set must be finite numbers ≥ 0",
                got=f"{shown} for {element!r} at position {position}",
                advice="Give every element its count or weight, as collections.Counter(tokens) does.",
            )
        if weight:
            weights[element] = weight.item() if isinstance(weight, np.number) else weight
    if (total := sum(map(float, weights.values()))) >= HEAVIEST:
        raise InvalidInput(
            f"Weights of a set must add up to less than {HEAVIEST:g}",
            got=f"{total:g} at position {position}",
            advice="Divide all weights by the same number.",
        )
    return weights


def _holds_nan(element: Any) -> bool:
    """Whether an element is NaN or NaT, or holds one. (None and pandas.NA are single objects, equal to themselves.)"""
    if isinstance(element, (tuple, frozenset)):
        return any(map(_holds_nan, element))
    return element is not None and not is_na(element) and is_missing(element)


def category_columns(X: Any) -> list[Array]:
    """The columns of a table of categories, or the one column of a list of them; dates in microseconds."""
    columns = frames.arrays(X) if is_frame(X) else _columns(X)
    return [in_microseconds(column) for column in columns]


def in_microseconds(A: Array) -> Array:
    """Dates in microseconds, which NumPy can turn into objects; anything else unchanged."""
    return A.astype("M8[us]") if A.dtype.kind == "M" else A


def _columns(X: Any) -> list[Array]:
    if sp.issparse(X):
        raise InvalidInput("Categories must not be sparse", got="a sparse matrix", advice="Pass X.toarray().")
    if not isinstance(X, np.ndarray):
        rows = list(X)
        table = bool(rows) and isinstance(rows[0], (list, tuple, np.ndarray))
        X = object_matrix(rows) if table else object_array(rows)
    if X.ndim == 1:
        return [X]
    if X.ndim != 2 or X.shape[1] == 0:
        raise InvalidInput(
            "Categories must come as one value or one row of values per point",
            got=f"an array of shape {X.shape}",
            advice="Pass a list of values, or a table.",
        )
    return list(X.T)


def rows_of(X: Any) -> Array:
    """A data set as a 2-D array with one row per point: of numbers, else of objects."""
    if is_frame(X):
        columns = frames.arrays(X)
        if all(c.dtype.kind in "iufb" for c in columns):
            return np.column_stack(columns)
        return object_matrix(list(zip(*columns))) if len(columns) > 1 else object_array(list(columns[0]))[:, None]
    if isinstance(X, np.ndarray):
        if X.ndim > 2:
            raise InvalidInput(
                "X must have one or two dimensions", got=f"shape {X.shape}", advice="Reshape X to (n, d)."
            )
        return X[:, None] if X.ndim == 1 else X
    values = list(X)
    if values and all(isinstance(v, (list, tuple, np.ndarray)) and all(map(np.isscalar, v)) for v in values):
        try:
            A = np.asarray(values)
        except ValueError:  # lists of different lengths: tokens
            return object_array(values)[:, None]
        return A if A.ndim == 2 and A.dtype.kind in "iufb" else object_array(values)[:, None]
    if values and all(isinstance(v, (int, float, np.number)) for v in values):
        return np.asarray(values, dtype=np.float64)[:, None]
    return object_array(values)[:, None]
