"""Data frames: the one module that knows how their libraries differ.

A frame of pandas or Polars is recognised by its attributes, so that neither library is imported. `Table` is a third
kind, with only the methods that kernels need: for columns that were read, and for model files without their library.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Array = NDArray[Any]


class Table:
    """Columns by name, all of one length: the part of a data frame that kernels need.

    >>> table = Table({"size": np.array([1.0, 2.0]), "name": np.array(["a", "b"], dtype=object)})
    >>> table.shape, table[np.array([1])]["size"]
    ((2, 2), array([2.]))
    """

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = dict(columns)
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))) if columns else 0, len(columns))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._columns[index]
        if isinstance(index, list) and all(isinstance(name, str) for name in index):
            return Table({name: self._columns[name] for name in index})
        return Table({name: column[index] for name, column in self._columns.items()})

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        return [column.dtype for column in self._columns.values()]

    def copy(self) -> Table:
        return Table({name: column.copy() for name, column in self._columns.items()})

    def equals(self, other: Table) -> bool:
        return self.columns == other.columns and all(
            np.array_equal(self[name].astype(object), other[name].astype(object)) for name in self.columns
        )

    def to_numpy(self) -> Array:
        return np.column_stack([column.astype(object) for column in self._columns.values()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.to_numpy().astype(dtype or object)


# -- frames ------------------------------------------------------------------------------------------------------------


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas or Polars, or a `Table`."""
    return hasattr(X, "to_numpy") and hasattr(X, "shape") and hasattr(X, "columns")  # a LazyFrame has no `to_numpy`


def is_column(X: Any) -> bool:
    """Whether X is one column of a frame of pandas or Polars."""
    return hasattr(X, "to_list") and not is_frame(X)


def _is_pandas(value: Any) -> bool:
    """Whether a frame or a column is of pandas, or of a library with the same attributes."""
    return hasattr(value, "iloc")


def library(frame: Any) -> str:
    """The name of a frame's library: "pandas" or "polars", or "table" for our own."""
    return "table" if isinstance(frame, Table) else str(_class(frame).__module__).partition(".")[0]


def require_memory(X: Any) -> None:
    """Raise if X is a query that was not run yet."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise InvalidInput("A table must be in memory", got="a LazyFrame", advice="Collect it: frame.collect().")


def column_names(X: Any) -> list[str]:
    """The names of a frame's columns as text; an empty list for anything else."""
    return [str(name) for name in X.columns] if is_frame(X) else []


def require_distinct_names(X: Any) -> None:
    """Raise if two columns of a frame have the same name: a kernel could not distinguish them."""
    name, times = next(iter(Counter(column_names(X)).most_common(1)), ("", 0))
    if times > 1:
        raise InvalidInput(
            "The columns of a data frame must have different names",
            got=f"{times} columns called {name!r}",
            advice="Rename them, or pass X.to_numpy().",
        )


def columns(frame: Any) -> list[Any]:
    """The columns in their order, as the library holds them."""
    if _is_pandas(frame):
        return [column for _, column in frame.items()]  # also if names repeat
    return [frame[name] for name in frame.columns]


def column(frame: Any, position: int) -> Any:
    """One column, as the library holds it."""
    return frame.iloc[:, position] if _is_pandas(frame) else frame[frame.columns[position]]


def selected(frame: Any, names: list[str]) -> Any:
    """The columns of these names, in this order."""
    places = {name: k for k, name in enumerate(column_names(frame))}
    positions = [places[name] for name in names]
    return frame.iloc[:, positions] if _is_pandas(frame) else frame[[frame.columns[k] for k in positions]]


def arrays(frame: Any) -> list[Array]:
    """The columns in their order, as arrays."""
    return [np.asarray(values) for values in columns(frame)]


def dtypes(frame: Any) -> list[Any]:
    """The types of the columns, in the library's own terms."""
    return list(frame.dtypes)


def kind_of_type(dtype: str) -> str:
    """The kind of a type, from its name in Polars or pandas.

    >>> types = "Int64", "float32", "Datetime(time_unit='us', time_zone=None)", "str"
    >>> [kind_of_type(dtype) for dtype in types]
    ['number', 'number', 'time', 'word']
    """
    kinds = {
        "number": ("int", "uint", "float", "decimal"),
        "time": ("datetime",),
        "date": ("date",),
        "truth": ("bool",),
        "word": ("string", "str", "object", "utf8", "cat", "enum", "large_string"),
    }
    return next((kind for kind, names in kinds.items() if dtype.lower().startswith(names)), "other")


def is_whole_type(dtype: str) -> bool:
    """Whether a type, by its name in Polars or pandas, is that of whole numbers.

    >>> is_whole_type("Int64"), is_whole_type("float32")
    (True, False)
    """
    return dtype.lower().startswith(("int", "uint"))


def rows(X: Any, index: Any) -> Any:
    """The rows of a frame, a column or an array at these positions: a slice, a mask or an index array."""
    return X.iloc[index] if _is_pandas(X) else X[index]


def row_labels(X: Any) -> list[Any] | None:
    """The labels of the rows (the index of a pandas frame); None if rows have only positions."""
    return list(X.index) if is_frame(X) and _is_pandas(X) else None


def copied(frame: Any, frozen: Callable[[Any, int], Any] | None = None) -> Any:
    """A frame that does not change with this one; `frozen` makes the object of a row unchangeable, where it can."""
    copy = frame.copy() if _is_pandas(frame) or isinstance(frame, Table) else frame.clone()
    if frozen is None:
        return copy
    for position, (name, kind) in enumerate(zip(list(copy.columns), dtypes(copy))):
        if str(kind).lower() != "object":
            continue
        values = listed(column(copy, position))
        kept = [frozen(value, row) for row, value in enumerate(values)]
        if any(new is not old for new, old in zip(kept, values)):
            copy = _with_objects(copy, position, name, kept)
    return copy


def _with_objects(frame: Any, position: int, name: Any, values: list[Any]) -> Any:
    """The frame with other Python objects in a column."""
    cells = np.fromiter(values, dtype=object, count=len(values))
    if isinstance(frame, Table):
        return Table({other: cells if other == name else frame[other] for other in frame.columns})
    if _is_pandas(frame):
        frame.isetitem(position, cells)
        return frame
    series = type(frame[name])
    return frame.with_columns(series(name, values, dtype=frame[name].dtype))


def build(like: Any, values: Mapping[Any, Any], retyped: Iterable[int] = ()) -> Any:
    """A frame of the library of `like`: columns by name, those at the positions `retyped` in the types of `like`."""
    kind, positions = _class(like), list(retyped)
    if not positions or kind is Table:
        return kind(dict(values))
    types = {name: dtypes(like)[k] for k, name in enumerate(values) if k in positions}
    if _is_pandas(like):
        return kind(dict(values)).astype(types)
    plain = {name: np.asarray(part).tolist() if name in types else part for name, part in values.items()}
    return kind(plain).cast(types)


def as_table(like: Any, numbers: Array) -> Any:
    """Rows of numbers as the kind of table that `like` is: with its column names, if it is a data frame."""
    return build(like, dict(zip(like.columns, numbers.T))) if is_frame(like) else numbers


def concatenated(first: Any, second: Any) -> Any:
    """The rows of two frames of one library, one after the other."""
    if isinstance(first, Table):
        return Table({name: np.concatenate([first[name], second[name]]) for name in first.columns})
    return sys.modules[library(first)].concat([first, second])


def gathered(frame: Any, index: Any) -> Any:
    """A frame whose cell (i, j) is the cell of this one in row index[i, j] of column j."""
    index = np.asarray(index)
    parts = [taken(values, index[:, j]) for j, values in enumerate(columns(frame))]
    if not _is_pandas(frame):
        return build(frame, dict(zip(frame.columns, parts)))
    new = rows(frame, index[:, 0]).reset_index(drop=True)
    for j, values in enumerate(parts):
        new.isetitem(j, values.array)  # also if names repeat
    return new


def _class(frame: Any) -> Any:
    """The class of frames of a library, even if the frame is of a subclass."""
    return next((base for base in type(frame).__mro__ if base.__name__ == "DataFrame"), type(frame))


# -- columns of frames -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """The categories that the type of a column declares.

    Attributes
    ----------
    names : tuple of str
        The categories in the order of the type; None if it does not list them, as a Categorical of Polars.
    ordered : bool or None
        Whether that order has a meaning; None if the type does not say so, as an Enum of Polars.
    """

    names: tuple[Any, ...] | None
    ordered: bool | None


def declared_levels(column: Any) -> Levels | None:
    """The categories of a column; None if its type declares none."""
    dtype = getattr(column, "dtype", None)
    declared = getattr(dtype, "categories", None)
    if declared is None:
        return None
    names = tuple(declared.to_list()) if hasattr(declared, "to_list") else None
    ordered = getattr(dtype, "ordered", None)
    return Levels(names, None if ordered is None else bool(ordered))


def without_zone(column: Any) -> Any:
    """Times with a time zone converted to UTC, without a zone; anything else unchanged."""
    if getattr(getattr(column, "dtype", None), "tz", None) is None:
        return column  # Polars converts by itself
    return column.dt.tz_convert("UTC").dt.tz_localize(None)


def taken(column: Any, index: Any) -> Any:
    """The values of a column at these positions, as the library holds them."""
    part = rows(column, index)
    return part.reset_index(drop=True) if _is_pandas(part) else part


def listed(column: Any) -> list[Any]:
    """The values of a column as Python objects."""
    return list(column.to_list() if hasattr(column, "to_list") else column.tolist())


def unframed(values: Any) -> Any:
    """A column or a frame as an array; anything else unchanged."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values
