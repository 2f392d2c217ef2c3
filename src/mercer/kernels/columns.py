"""Columns of tables as arrays: numbers with NaN, words and sets with None, whichever library the table came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput, InvalidType
from mercer.kernels.missing import gaps_of
from mercer.kernels.points import Array, is_frame, object_matrix

DAY = 86_400_000_000  # microseconds


class Column(np.ndarray[Any, Any]):
    """One column of a table: an array that also answers as a frame's column does."""

    def to_list(self) -> list[Any]:
        return list(self.tolist())


class Table:
    """Columns by name, all of one length: as much of a data frame as kernels need."""

    def __init__(self, columns: dict[str, Array]) -> None:
        self._columns = columns
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))) if columns else 0, len(columns))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._columns[index].view(Column)
        if isinstance(index, list) and all(isinstance(name, str) for name in index):
            return Table({name: self._columns[name] for name in index})
        return Table({name: column[index] for name, column in self._columns.items()})

    def to_numpy(self) -> Array:
        return np.column_stack([column.astype(object) for column in self._columns.values()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.to_numpy().astype(dtype or object)


def tabled(X: Any) -> dict[str, Any]:
    """The columns of a frame by name; those of rows without names are called x0, x1, …"""
    if isinstance(X, Table):
        return {name: X[name] for name in X.columns}
    if is_frame(X):
        names = [str(name) for name in X.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInput("Column names must be distinct", got=f"{twice[0]!r} twice", advice="Rename one.")
        if hasattr(X, "iloc"):
            return {name: X.iloc[:, j] for j, name in enumerate(names)}
        return {name: X[name] for name in names}
    if sp.issparse(X):
        raise InvalidInput("A table must be dense", got="a sparse matrix", advice="Use a kernel on vectors.")
    A = X if isinstance(X, np.ndarray) else object_matrix(list(X))
    if A.ndim != 2:
        raise InvalidInput("A table must be 2-D", got=f"shape {A.shape}", advice="One row per point.")
    return {f"x{j}": A[:, j] for j in range(A.shape[1])}


def as_array(column: Any) -> Array:
    """A column of any library as a 1-D array: of numbers, dates or booleans where it is so typed, else of objects."""
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)  # pandas; Polars converts by itself
    A = np.asarray(column)
    if A.dtype.kind in "US":
        A = A.astype(object)
    if A.ndim > 1:  # a column of lists of equal length
        rows, A = list(A), np.empty(len(A), dtype=object)
        for i, row in enumerate(rows):
            A[i] = row
    return A


def read(column: Any, kind: str, name: str, levels: tuple[Any, ...] = ()) -> Array:
    """A column as what it is said to be, or an error that names it."""
    A = as_array(column)
    if gaps_of(A).all():  # a column without values may have any type
        return np.full(len(A), None if kind in ("category", "tokens", "text") else np.nan)
    return _ranks(A, name, levels) if kind == "ordered" else READERS[kind](A, name)


def _must(name: str, what: str, got: object, advice: str) -> InvalidType:
    return InvalidType(f"Column {name!r} must hold {what}", got=got, advice=advice)


def _values(A: Array) -> Iterator[tuple[int, Any]]:
    """The values that are present, with their rows."""
    missing = gaps_of(A)
    return ((int(i), A[i]) for i in np.flatnonzero(~missing))


def _numbers(A: Array, name: str) -> Array:
    advice = "Convert it, or say what it is: roles={...: 'category'}."
    if A.dtype.kind in "iufb":
        out = A.astype(np.float64)
    elif A.dtype.kind == "m":
        out = np.where(np.isnat(A), np.nan, A.astype("m8[us]").astype(np.int64) / DAY)
    elif A.dtype.kind == "O":
        out = np.full(len(A), np.nan)
        for i, value in _values(A):
            if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
                raise _must(name, "numbers", f"{value!r} in row {i}", advice)
            out[i] = float(value)
    else:
        raise _must(name, "numbers", f"dtype {A.dtype}", advice)
    infinite = np.flatnonzero(np.isinf(out))
    if len(infinite):
        raise InvalidInput(
            f"Column {name!r} must be finite", got=f"infinity in row {infinite[0]}", advice="Clip or drop it."
        )
    return out


def _dates(A: Array, name: str) -> Array:
    """Days since 1970-01-01, UTC."""
    if A.dtype.kind == "O":
        out = np.full(len(A), "NaT", dtype="M8[us]")
        for i, value in _values(A):
            try:
                out[i] = _instant(value)
            except (ValueError, TypeError):
                raise _must(name, "dates", f"{value!r} in row {i}", "Convert it: pandas.to_datetime.") from None
        A = out
    if A.dtype.kind != "M":
        raise _must(name, "dates", f"dtype {A.dtype}", "Convert it: pandas.to_datetime.")
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


def _ranks(A: Array, name: str, levels: tuple[Any, ...]) -> Array:
    """The position of every value among the levels; what is no level is missing."""
    rank = {level: float(r) for r, level in enumerate(levels)}
    try:
        return np.array([rank.get(v, np.nan) for v in A.tolist()], dtype=np.float64)
    except TypeError as error:
        raise _must(name, f"one of {list(levels)}", error, "Check the column.") from None


def _categories(A: Array, name: str) -> Array:
    advice = "Convert it to text, as it was when the kernel was made."
    if A.dtype.kind != "O":
        raise _must(name, "categories in words", f"dtype {A.dtype}", advice)
    gaps = gaps_of(A)
    out = np.full(len(A), None, dtype=object)
    out[~gaps] = A[~gaps]
    kinds = set(map(type, A[~gaps]))
    if all(hasattr(kind, "__float__") for kind in kinds):
        raise _must(name, "categories in words", f"numbers such as {A[~gaps][0]!r}", advice)
    return out


def _codes(A: Array, name: str) -> Array:
    return _numbers(A, name)


def _tokens(A: Array, name: str) -> Array:
    out = np.full(len(A), None, dtype=object)
    for i, value in _values(_objects(A)):
        if isinstance(value, np.ndarray) or hasattr(value, "to_list"):
            value = value.tolist() if isinstance(value, np.ndarray) else value.to_list()
        if isinstance(value, (str, bytes)) or not isinstance(value, (Set, list, tuple)):
            raise _must(name, "lists or sets of tokens", f"{value!r} in row {i}", "Split it: text.split().")
        try:
            out[i] = frozenset(value)
        except TypeError as error:
            raise _must(name, "hashable tokens", f"{error} in row {i}", "Use words or numbers.") from None
    return out


def _texts(A: Array, name: str) -> Array:
    gaps = gaps_of(A)
    out = np.full(len(A), None, dtype=object)
    out[~gaps] = A[~gaps]
    if not all(issubclass(kind, str) for kind in set(map(type, out[~gaps]))):
        i = next(i for i in np.flatnonzero(~gaps) if not isinstance(out[i], str))
        raise _must(name, "texts", f"{out[i]!r} in row {i}", "Convert it: str(value).")
    return out


def _objects(A: Array) -> Array:
    return A if A.dtype == object else A.astype(object)


READERS: dict[str, Callable[[Array, str], Array]] = {
    "number": _numbers,
    "date": _dates,
    "code": _codes,
    "category": _categories,
    "tokens": _tokens,
    "text": _texts,
}
