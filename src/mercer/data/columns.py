"""Columns of tables as arrays: numbers with NaN, words and sets with None, whichever library the table came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.missing import missing_entries
from mercer.data.points import Array, is_frame, object_matrix
from mercer.errors import InvalidInput, InvalidType

DAY = 86_400_000_000  # microseconds
NO_TOKENS = frozenset({()})
"""An empty list of tokens: like another one."""


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
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise InvalidInput("A table must be in memory", got="a LazyFrame", advice="Collect it: frame.collect().")
    if is_frame(X):
        names = [str(name) for name in X.columns]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise InvalidInput("Column names must be distinct", got=f"{twice!r} twice", advice="Rename one.")
        return dict(zip(names, (column for _, column in X.items()) if hasattr(X, "items") else X.iter_columns()))
    if sp.issparse(X):
        raise InvalidInput("A table must be dense", got="a sparse matrix", advice="Use a kernel on vectors.")
    if isinstance(X, Mapping) or len(getattr(X, "shape", (0, 0))) != 2:
        got = f"shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        raise InvalidInput("A table must be 2-D: a frame, or rows", got=got, advice="pandas.DataFrame(X) makes one.")
    A = X if isinstance(X, np.ndarray) else object_matrix(list(X))
    return {f"x{j}": A[:, j] for j in range(A.shape[1])}


def as_array(column: Any, name: str) -> Array:
    """A column of any library as a 1-D array: of numbers, dates or booleans where it is so typed, else of objects."""
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)  # pandas; Polars converts by itself
    try:
        A = np.asarray(column)
    except Exception as error:  # of the library that the column is from: it has no such array
        raise _must(name, "what NumPy can hold", f"dtype {dtype}: {error}", "Cast it, such as to Float64.") from None
    if A.dtype.kind == "c" or getattr(dtype, "fields", None):
        raise _must(name, "single real values", f"dtype {dtype}", "Split it into one column for each part.")
    if A.dtype.kind in "US":
        A = A.astype(object)
    if A.ndim > 1:  # a column of lists of equal length
        rows, A = list(A), np.empty(len(A), dtype=object)
        for i, row in enumerate(rows):
            A[i] = row
    return A


def read(column: Any, kind: str, name: str, levels: tuple[Any, ...] = ()) -> Array:
    """A column as what it is said to be, or an error that names it."""
    A = as_array(column, name)
    if missing_entries(A).all():  # a column without values may have any type
        return np.full(len(A), None if kind in ("category", "tokens", "text") else np.nan)
    return _ranks(A, levels) if kind == "ordered" else READERS[kind](A, name)


def _must(name: str, what: str, got: object, advice: str) -> InvalidType:
    return InvalidType(f"Column {name!r} must hold {what}", got=got, advice=advice)


def _values(A: Array) -> Iterator[tuple[int, Any]]:
    """The values that are present, with their rows."""
    missing = missing_entries(A)
    return ((int(i), A[i]) for i in np.flatnonzero(~missing))


def _numbers(A: Array, name: str) -> Array:
    advice = f"Convert it to what it was when the kernel was made, or make one anew: roles={{{name!r}: 'category'}}."
    if A.dtype.kind in "iufb":
        out = A.astype(np.float64)
    elif A.dtype.kind == "m":
        out = np.where(np.isnat(A), np.nan, A.astype("m8[us]").astype(np.int64) / DAY)
    elif A.dtype.kind == "O":
        out = np.full(len(A), np.nan)
        for i, value in _values(A):
            try:
                out[i] = _number(value)
            except (TypeError, ValueError, OverflowError):
                raise _must(name, "numbers", f"{_shown(value)} in row {i}", advice) from None
    else:
        raise _must(name, "numbers", f"dtype {A.dtype}", advice)
    infinite = np.flatnonzero(np.isinf(out))
    if len(infinite):
        raise InvalidInput(
            f"Column {name!r} must be finite", got=f"infinity in row {infinite[0]}", advice="Clip or drop it."
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


def _dates(A: Array, name: str) -> Array:
    """Days since 1970-01-01, UTC."""
    if A.dtype.kind == "O":
        out = np.full(len(A), "NaT", dtype="M8[us]")
        for i, value in _values(A):
            try:
                out[i] = _instant(value)
            except (ValueError, TypeError):
                raise _must(name, "dates", f"{_shown(value)} in row {i}", "Convert it: pandas.to_datetime.") from None
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


def _ranks(A: Array, levels: tuple[Any, ...]) -> Array:
    """The position of every value among the levels; what is no level is missing."""
    rank = {level: float(r) for r, level in enumerate(levels)}
    out = np.full(len(A), np.nan)
    for i, value in _values(_objects(A)):
        out[i] = rank.get(as_level(value), np.nan)
    return out


def as_level(value: Any) -> Any:
    """A level of an ordered category: a number or a word, for what else it may be (an interval, a date) its text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float)) else str(value)


def _categories(A: Array, name: str) -> Array:
    gaps, A = missing_entries(A), _objects(A)
    kinds = set(map(type, A[~gaps]))
    if all(map(is_numeric, kinds)) or not all(issubclass(kind, Hashable) for kind in kinds):
        advice = "Convert it to text, as it was when the kernel was made."
        raise _must(name, "categories in words", f"{_shown(A[~gaps][0])}, among others", advice)
    return _marked(A)


def _codes(A: Array, name: str) -> Array:
    numbers = _numbers(A, name)
    return numbers if A.dtype.kind in "fm" else _marked(_objects(A))  # whole ones may be too large for a float


def _tokens(A: Array, name: str) -> Array:
    out = np.full(len(A), None, dtype=object)
    for i, value in _values(_objects(A)):
        if isinstance(value, np.ndarray) or hasattr(value, "to_list"):
            value = value.tolist() if isinstance(value, np.ndarray) else value.to_list()
        if isinstance(value, (str, bytes)) or not isinstance(value, (Set, list, tuple)):
            raise _must(name, "lists or sets of tokens", f"{_shown(value)} in row {i}", "Split it: text.split().")
        try:
            out[i] = frozenset(value) or NO_TOKENS
        except TypeError as error:
            raise _must(name, "hashable tokens", f"{error} in row {i}", "Use words or numbers.") from None
    return out


def _texts(A: Array, name: str) -> Array:
    """Texts between blanks, so that even an empty one has a run of two characters, which it shares with itself."""
    gaps = missing_entries(A)
    if not all(issubclass(kind, str) for kind in set(map(type, A[~gaps]))):
        i, value = next((i, value) for i, value in _values(A) if not isinstance(value, str))
        raise _must(name, "texts", f"{_shown(value)} in row {i}", "Convert it: str(value).")
    return np.array([None if gap else f" {text} " for gap, text in zip(gaps, A)], dtype=object)


def _marked(A: Array) -> Array:
    """The same objects, with None for what is missing."""
    A = A.copy()
    A[missing_entries(A)] = None
    return A


def _objects(A: Array) -> Array:
    return A if A.dtype == object else A.astype("M8[us]" if A.dtype.kind == "M" else A.dtype).astype(object)


def _shown(value: Any) -> str:
    """A value, in no more than a line."""
    text = repr(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)
    return text if len(text) <= 60 else f"{text[:59]}…"


READERS: dict[str, Callable[[Array, str], Array]] = {
    "number": _numbers,
    "date": _dates,
    "code": _codes,
    "category": _categories,
    "tokens": _tokens,
    "text": _texts,
}


def shuffled(X: Any, j: int, order: Array) -> Any:
    """A table whose column j is in another order."""
    if hasattr(X, "iloc"):
        table = X.copy()
        table[X.columns[j]] = X[X.columns[j]].iloc[order].array
        return table
    if hasattr(X, "with_columns"):
        return X.with_columns(X[X.columns[j]][order])
    table = np.array(X)
    table[:, j] = table[order, j]
    return table
