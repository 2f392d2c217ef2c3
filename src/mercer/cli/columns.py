"""The types of columns, as they are recorded with a model and restored when it predicts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from mercer.cli.cells import HOURS, TRUTH, NumberStyle, hours, hours_of, read_dates, read_times
from mercer.cli.delimited import MISSING
from mercer.data.frames import is_whole_type, kind_of_type
from mercer.errors import InvalidInput, MissingValues

MISSING_NUMBERS = [
    ".",
    "-",
    "--",
    "*",
    "na",
    "n.a.",
    "n.d.",
    "nd",
    "n/d",
    "none",
    "missing",
    "unknown",
    "inf?",
    "#div/0!",
    "#value!",
]
"""Texts that mark a missing value in a numeric column; in a column of texts they may mean something."""

# -- of every file -----------------------------------------------------------------------------------------------------


def usable(frame: pl.DataFrame, name: str, notes: list[str]) -> pl.DataFrame:
    """The table with NaN as missing values and types that NumPy has, without the row numbers that pandas writes."""
    wide = [
        pl.col(c).cast(pl.Float64) for c, d in frame.schema.items() if d.is_decimal() or d in (pl.Int128, pl.UInt128)
    ]
    times = [hours_of(column) for column in frame.get_columns() if column.dtype == pl.Time]
    frame = frame.with_columns(wide).with_columns(times).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    # `to_csv` of pandas writes row numbers as a first column without a name.
    first = frame.columns[0] if frame.width else ""
    if first == "column_1" and frame.width > 1 and frame.columns[1] != "column_2":
        values = frame[first]
        if values.dtype.is_integer() and values.null_count() == 0:
            steps = values.to_numpy()
            if steps[0] in (0, 1) and bool((np.diff(steps) == 1).all()):
                notes.append(f"ignored the first column of {name}, which has no name and counts the rows")
                frame = frame.drop(first)
    return frame


def words_of(column: pl.Series, na: Sequence[str]) -> pl.Series:
    """The texts of a column without blanks around them, and without those that mark a missing value."""
    words = column.str.strip_chars()
    missing = words.is_in([*MISSING, *na]).fill_null(False)
    return words.set(missing, None) if missing.any() else words


def plain_numbers(words: pl.Series, comma: bool) -> pl.Series:
    """Numbers without any mark but that of decimals; with decimal commas, points separate thousands."""
    if not comma:
        return words.cast(pl.Float64, strict=False)
    bare = words.set(words.str.contains(r"^[-+]?\d{1,3}(?:\.\d{3})+$").fill_null(False), None)
    return bare.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


def as_whole(values: pl.Series) -> pl.Series:
    """Numbers as integers, if all of them are whole."""
    some = values.drop_nulls()
    integral = bool((some == some.floor()).all()) and float(some.abs().max() or 0) < 2**53  # type: ignore[arg-type]
    return values.cast(pl.Int64) if integral and some.len() else values


# -- known from a model ------------------------------------------------------------------------------------------------


def as_fitted(
    frame: pl.DataFrame, columns: dict[str, str], name: str, before: int, comma: bool, na: Sequence[str] = ()
) -> pl.DataFrame:
    """The columns in the types that they had when the model was fitted; `before` is the number of earlier rows."""
    return frame.with_columns([_cast(frame[c], dtype, name, before, comma, na) for c, dtype in columns.items()])


def _cast(column: pl.Series, dtype: str, name: str, before: int, comma: bool, na: Sequence[str]) -> pl.Series:
    kind, has = kind_of_type(dtype), column.dtype
    if has == pl.String:
        return _read(column, dtype, name, before, comma, na)
    if has == pl.Time and kind == "number":
        return hours_of(column)
    if has.is_integer() and kind == "date" and "[" in dtype:  # 20270301
        return _read(column.cast(pl.String), dtype, name, before, comma, na)
    if has == pl.Null:
        nothing: dict[str, Any] = {"number": pl.Float64, "word": pl.String, "truth": pl.Boolean, "date": pl.Date}
        return column.cast(nothing.get(kind, pl.Datetime("us") if kind == "time" else pl.Null))
    if has.is_float():
        column = column.fill_nan(None)
    if kind == "word" and (has.is_numeric() or has == pl.Boolean):
        return column.cast(pl.String)
    if kind == "number" and (has == pl.Boolean or has.is_decimal()):
        column = column.cast(pl.Float64)
    elif kind == "truth" and has.is_integer():
        return column.cast(pl.Boolean)
    elif kind not in ("word", "other") and kind_of_type(str(has)) not in (kind, "date", "time"):
        raise InvalidInput(
            f"Column {column.name!r} of {name} must hold {dtype} as in the training file",
            got=str(has),
            advice="Convert the column to that type.",
        )
    return _finite(column, name, before) if kind == "number" else column


def _read(column: pl.Series, dtype: str, name: str, before: int, comma: bool, na: Sequence[str]) -> pl.Series:
    """A column of texts as values of this type."""
    kind, words, format = kind_of_type(dtype), words_of(column, na), format_of(dtype)
    if kind in ("word", "other"):
        return words
    required = "a date"
    if kind == "number":
        required = "a time of day" if format == HOURS else f"a number like {format}" if format else "a number"
        words = words.set(words.str.to_lowercase().is_in(MISSING_NUMBERS).fill_null(False), None)
        if format == HOURS:
            values = hours(words)
        else:
            values = NumberStyle.parse(format).read(words) if format else plain_numbers(words, comma)
    elif kind == "truth":
        required = "true or false"
        values = words.str.to_lowercase().replace_strict(TRUTH, default=None, return_dtype=pl.Boolean)
    else:
        values = read_dates(words, format) if kind == "date" else read_times(words, format)
        required = f"a date in the format {format or 'YYYY-MM-DD'}"
    _refuse(column, words.is_not_null() & values.is_null(), required, name, before)
    if kind != "number":
        return values
    values = _finite(values, name, before)
    return as_whole(values) if is_whole_type(dtype) else values


def format_of(dtype: str) -> str:
    """The format by which texts become values of a recorded type, or "".

    >>> format_of("Date[%d/%m/%Y]"), format_of("Int64[1,234.5]"), format_of("Float64")
    ('%d/%m/%Y', '1,234.5', '')
    """
    return dtype.partition("[")[2].removesuffix("]")


def _finite(column: pl.Series, name: str, before: int) -> pl.Series:
    if column.dtype.is_float():
        _refuse(column, column.is_infinite().fill_null(False), "finite numbers", name, before)
    return column


def require_finite(frame: pl.DataFrame, name: str) -> None:
    """Refuse infinities, with their row in the file."""
    infinite = frame.select(pl.selectors.float().is_infinite().any())
    for column in infinite.columns:
        if infinite[column][0]:
            _finite(frame[column], name, 0)


def _refuse(column: pl.Series, wrong: pl.Series, what: str, name: str, before: int) -> None:
    if wrong.any():
        raise wrong_cell(column, wrong, what, name, before)


def wrong_cell(column: pl.Series, wrong: pl.Series, what: str, name: str, before: int) -> InvalidInput:
    """The error about the first wrong cell."""
    k = int(wrong.arg_max() or 0)
    words = column.filter(wrong).unique(maintain_order=True).head(3).to_list()
    options = " ".join(f"--na {shlex.quote(word.strip())}" for word in words if isinstance(word, str))
    return InvalidInput(
        f"Column {column.name!r} of {name} must hold {what} in every row",
        got=f"{column[k]!r} in row {before + k + 1}",
        advice=f"Correct it. If the value is missing, leave the cell empty{f', or add {options}' if options else ''}.",
    )


@contextmanager
def missing_values_located(frame: Any, name: str, places: Any) -> Iterator[None]:
    """Inside this context, the error about a missing value names file, row and column; `places` are rows' positions."""
    try:
        yield
    except MissingValues:
        columns = frame.get_columns() if isinstance(frame, pl.DataFrame) else []
        column = next((column for column in columns if column.null_count()), None)
        if column is None:
            raise
        raise InvalidInput(
            f"Column {column.name!r} of {name} must have a value in every row for this model",
            got=f"none in row {places[int(column.is_null().arg_max() or 0)] + 1}",
            advice="Fill it in, or drop the row. The models auto and ridge without --kernel accept missing values, if "
            "some of the rows that they are fitted to have them.",
        ) from None
