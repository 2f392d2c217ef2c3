"""Columns of tables, read by name and kind: numbers with NaN, words and sets with None where a value is missing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import frames, molecules
from mercer.data.missing import marked, missing_entries
from mercer.data.objects import in_microseconds, object_array, object_matrix
from mercer.errors import InvalidInput, InvalidType
from mercer.words import shown

Array = NDArray[Any]
Mask = NDArray[np.bool_]

DAY = 86_400_000_000  # microseconds
NO_TOKENS = frozenset({()})
"""An empty list of tokens: not missing, and like another one."""


def tabled(X: Any) -> dict[str, Any]:
    """The columns of a frame by name; columns without names are called x0, x1, …"""
    if frames.is_frame(X):
        frames.require_distinct_names(X)
        return dict(zip(frames.column_names(X), frames.columns(X)))
    frames.require_memory(X)
    if sp.issparse(X):
        raise InvalidInput("A table must be dense", got="a sparse matrix", advice="Use a kernel on vectors.")
    if isinstance(X, Mapping) or len(getattr(X, "shape", (0, 0))) != 2:
        got = f"shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        raise InvalidInput("A table must be 2-D: a frame, or rows", got=got, advice="Pass pandas.DataFrame(X).")
    A = X if isinstance(X, np.ndarray) else object_matrix(list(X))
    return {f"x{j}": A[:, j] for j in range(A.shape[1])}


def as_array(column: Any, name: str) -> Array:
    """A column of any library as a 1-D array: of numbers, dates or booleans if it has such a type, else of objects."""
    dtype = getattr(column, "dtype", None)
    try:
        A = np.asarray(frames.without_zone(column))
    except Exception as error:  # the library of the column cannot make an array of it
        raise _must(
            name, "values that NumPy can hold", f"dtype {dtype}: {error}", "Cast it, for example to Float64."
        ) from None
    if A.dtype.kind == "c" or getattr(dtype, "fields", None):
        raise _must(name, "single real values", f"dtype {dtype}", "Split it into one column for each part.")
    if A.dtype.kind in "US":
        A = A.astype(object)
    return A if A.ndim == 1 else object_array(list(A))  # lists of equal length


def read(column: Any, kind: str, name: str, levels: tuple[Any, ...] = ()) -> Array:
    """A column read as values of a kind, or an error that names it."""
    A = as_array(column, name)
    return read_array(A, missing_entries(A), kind, name, levels)


def read_array(A: Array, missing: Mask, kind: str, name: str, levels: tuple[Any, ...] = ()) -> Array:
    """`read` for an array whose missing values are known."""
    if missing.all():  # a column without values may have any type
        return np.full(len(A), None if kind in ("category", "tokens", "text", "molecule") else np.nan)
    return _ranks(A, missing, levels) if kind == "ordered" else READERS[kind](A, missing, name)


def _must(name: str, what: str, got: object, advice: str) -> InvalidType:
    return InvalidType(f"Column {name!r} must hold {what}", got=got, advice=advice)


def _present(A: Array, missing: Mask) -> Iterator[tuple[int, Any]]:
    """The values that are present as objects, with their rows."""
    return zip(np.flatnonzero(~missing).tolist(), _objects(A[~missing]).tolist())


def _numbers(A: Array, missing: Mask, name: str) -> Array:
    advice = f"Convert it back to numbers, or make a new kernel: roles={{{name!r}: 'category'}}."
    if A.dtype.kind in "iufb":
        out = A.astype(np.float64)
    elif A.dtype.kind == "m":
        out = np.where(np.isnat(A), np.nan, A.astype("m8[us]").astype(np.int64) / DAY)
    elif A.dtype.kind == "O":
        out = np.full(len(A), np.nan)
        for i, value in _present(A, missing):
            try:
                out[i] = _number(value)
            except (TypeError, ValueError, OverflowError):
                raise _must(name, "numbers", f"{shown(value)} in row {i}", advice) from None
    else:
        raise _must(name, "numbers", f"dtype {A.dtype}", advice)
    infinite = np.flatnonzero(np.isinf(out))
    if len(infinite):
        raise InvalidInput(
            f"Column {name!r} must be finite",
            got=f"infinity in row {infinite[0]}",
            advice="Drop this row, or replace infinity by a finite number.",
        )
    return out


def _number(value: Any) -> float:
    """A number, or a duration in days."""
    if not is_numeric(type(value)):
        raise TypeError("not a number")
    return value / timedelta(days=1) if isinstance(value, timedelta) else float(value)


def is_numeric(kind: type) -> bool:
    """Whether values of this type are numbers or durations."""
    words = (str, bytes, np.ndarray, np.flexible, np.datetime64, np.timedelta64)
    return issubclass(kind, timedelta) or (hasattr(kind, "__float__") and not issubclass(kind, words))


def _dates(A: Array, missing: Mask, name: str) -> Array:
    """Days since 1970-01-01, UTC."""
    if A.dtype.kind == "O":
        out = np.full(len(A), "NaT", dtype="M8[us]")
        for i, value in _present(A, missing):
            try:
                out[i] = _instant(value)
            except (ValueError, TypeError):
                raise _must(name, "dates", f"{shown(value)} in row {i}", "Use pandas.to_datetime.") from None
        A = out
    if A.dtype.kind != "M":
        raise _must(name, "dates", f"dtype {A.dtype}", "Use pandas.to_datetime.")
    return np.where(np.isnat(A), np.nan, A.astype("M8[us]").astype(np.int64) / DAY)


def _instant(value: Any) -> np.datetime64:
    """A date, a time with or without zone, or an ISO 8601 text, in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, (date, np.datetime64)):
        return np.datetime64(value).astype("M8[us]")
    raise TypeError("not a date")


def _ranks(A: Array, missing: Mask, levels: tuple[Any, ...]) -> Array:
    """The position of every value among the levels; a value that is not a level is missing."""
    rank = {level: float(r) for r, level in enumerate(levels)}
    out = np.full(len(A), np.nan)
    for i, value in _present(A, missing):
        out[i] = rank.get(as_level(value), np.nan)
    return out


def as_level(value: Any) -> Any:
    """A level of an ordered category: a number or a word, or the text of anything else, such as an interval."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float)) else str(value)


def _categories(A: Array, missing: Mask, name: str) -> Array:
    present = _objects(A[~missing])
    kinds = set(map(type, present))
    if all(map(is_numeric, kinds)) or not all(issubclass(kind, Hashable) for kind in kinds):
        advice = "Convert it to text, or make a new kernel for this table."
        raise _must(name, "categories in words", f"{shown(present[0])}, among others", advice)
    return marked(in_microseconds(A), missing)


def _codes(A: Array, missing: Mask, name: str) -> Array:
    numbers = _numbers(A, missing, name)
    return numbers if A.dtype.kind in "fm" else marked(A, missing)  # whole numbers may be too large for a float


def _tokens(A: Array, missing: Mask, name: str) -> Array:
    out = np.full(len(A), None, dtype=object)
    for i, value in _present(A, missing):
        if isinstance(value, np.ndarray) or hasattr(value, "to_list"):
            value = frames.listed(value)
        if not isinstance(value, (Set, list, tuple)):
            raise _must(name, "lists or sets of tokens", f"{shown(value)} in row {i}", "Split it: text.split().")
        try:
            out[i] = frozenset(value) or NO_TOKENS
        except TypeError as error:
            raise _must(name, "hashable tokens", f"{error} in row {i}", "Use words or numbers.") from None
    return out


def _texts(A: Array, missing: Mask, name: str) -> Array:
    """Texts between blanks, so that even an empty text has a run of two characters in common with itself."""
    for i, value in _present(A, missing):
        if not isinstance(value, str):
            raise _must(name, "texts", f"{shown(value)} in row {i}", "Convert it: str(value).")
    return object_array([None if absent else f" {text} " for absent, text in zip(missing, A)])


def _molecules(A: Array, missing: Mask, name: str) -> Array:
    """RDKit's molecules of SMILES texts."""
    chem, out = molecules.rdkit("Chem"), np.full(len(A), None, dtype=object)
    with molecules.rdkit("rdBase").BlockLogs():  # the error below says it
        for i, value in _present(A, missing):
            out[i] = molecules.molecule_or_none(chem, value)
            if out[i] is None:
                raise InvalidType(
                    f"Column {name!r} must hold molecules as valid SMILES texts",
                    got=f"{shown(value)} in row {i}",
                    advice=f"Correct or empty this cell, or make a new kernel: roles={{{name!r}: 'text'}}.",
                    option=f"Correct or empty this cell, or fit with --text {name}.",
                )
    return out


def _objects(A: Array) -> Array:
    return in_microseconds(A).astype(object, copy=False)


READERS: dict[str, Callable[[Array, Mask, str], Array]] = {
    "number": _numbers,
    "date": _dates,
    "code": _codes,
    "category": _categories,
    "tokens": _tokens,
    "text": _texts,
    "molecule": _molecules,
}


def gathered(X: Any, index: Array) -> Any:
    """A table whose cell (i, j) is the cell of X in row index[i, j] of column j.

    >>> gathered(np.array([[1.0, 10.0], [2.0, 20.0]]), np.array([[0, 1], [1, 1], [0, 0]]))
    array([[ 1., 20.],
           [ 2., 20.],
           [ 1., 10.]])
    """
    if frames.is_frame(X):
        return frames.gathered(X, index)
    table = np.asarray(X)
    return table[index, np.arange(table.shape[1])]
