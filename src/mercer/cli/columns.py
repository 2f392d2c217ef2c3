"""The types of columns: detected when a model is fitted, and restored when it predicts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from mercer.errors import InvalidInput, MissingValues
from mercer.words import count

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A", "#NA", "<NA>"]
"""Texts that mark a missing value in every column."""
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
TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False, "t": True, "f": False}
ISO = re.compile(r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?)?")
DATED = re.compile(r"(\d{1,2}|\d{4})([/.-])\d{1,2}\2(\d{4}|\d\d)")


# -- detected in a file ------------------------------------------------------------------------------------------------


def usable(frame: pl.DataFrame, name: str, notes: list[str]) -> pl.DataFrame:
    """The table with NaN as missing values and types that NumPy has, without the row numbers that pandas writes."""
    wide = [
        pl.col(c).cast(pl.Float64) for c, d in frame.schema.items() if d.is_decimal() or d in (pl.Int128, pl.UInt128)
    ]
    frame = frame.with_columns(wide).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
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


def typed(
    frame: pl.DataFrame, name: str, notes: list[str], na: Sequence[str] = (), comma: bool = False
) -> tuple[pl.DataFrame, dict[str, str], dict[str, InvalidInput]]:
    """The table with its text columns converted to numbers and dates if all their values are.

    Also returns, by column, the format of dates, and why a column of decimals is not numeric.
    """
    converted, formats, mixed = [], {}, {}
    for column in frame.get_columns():
        if column.dtype != pl.String:
            continue
        words = _words(column, na)
        values = _numbers(words, comma)
        failed = words.filter(words.is_not_null() & values.is_null())
        present = values.drop_nulls().len()
        if present and failed.str.to_lowercase().is_in(MISSING_NUMBERS).all():
            converted.append(_whole(values))
            if failed.len():
                marks = ", ".join(map(repr, sorted(failed.unique().to_list())))
                notes.append(f"{marks} in the numeric column {column.name!r} is read as a missing value")
            continue
        if values.n_unique() > 1 + 9 * failed.n_unique() and _whole(values).dtype == pl.Float64:
            mixed[column.name] = _wrong(column, words.is_not_null() & values.is_null(), "numbers", name, 0)
        elif present > 4 * failed.len():
            row = int((words.is_not_null() & values.is_null()).arg_max() or 0) + 1
            notes.append(
                f"column {column.name!r} is read as text: {count(failed.len(), 'cell')} of {words.len():,} "
                f"{'are' if failed.len() > 1 else 'is'} not a number ({failed[0]!r} in row {row}); "
                f"if that means a missing value, add --na {shlex.quote(failed[0])}"
            )
        dates, format = _as_dates(words)
        converted.append(dates)
        if format:
            formats[column.name] = format
            notes.append(f"the dates in column {column.name!r} are read as {format}")
    return frame.with_columns(converted), formats, mixed


def _words(column: pl.Series, na: Sequence[str]) -> pl.Series:
    words = column.str.strip_chars()
    missing = words.is_in([*MISSING, *na]).fill_null(False)
    return words.set(missing, None) if missing.any() else words


def _numbers(words: pl.Series, comma: bool) -> pl.Series:
    return (words.str.replace(",", ".", literal=True) if comma else words).cast(pl.Float64, strict=False)


def _whole(values: pl.Series) -> pl.Series:
    """Numbers as integers, if all of them are whole."""
    some = values.drop_nulls()
    integral = bool((some == some.floor()).all()) and float(some.abs().max() or 0) < 2**53  # type: ignore[arg-type]
    return values.cast(pl.Int64) if integral and some.len() else values


def _as_dates(words: pl.Series) -> tuple[pl.Series, str]:
    """Texts as dates or times if all of them are, and their format if it is not ISO's."""
    some = words.drop_nulls().head(20).to_list()
    iso = [ISO.fullmatch(word) for word in some]
    if some and all(iso):
        dates = _times(words) if any(match and match[1] for match in iso) else words.str.to_date(strict=False)
        return (words if (words.is_not_null() & dates.is_null()).any() else dates), ""
    first = DATED.fullmatch(some[0]) if some else None
    if first is not None and not (len(first[1]) == 4 == len(first[3])):
        mark, year = first[2], "%Y" if len(first[3]) == 4 else "%y"
        orders = ("%d{0}%m{0}{1}", "%m{0}%d{0}{1}") if len(first[1]) < 3 else ("%Y{0}%m{0}%d",)
        possible = [format for order in orders if _all_dates(words, format := order.format(mark, year))]
        if len(possible) == 1:  # otherwise 03/04/2027 may be in March or in April
            return words.str.to_date(possible[0], strict=False), possible[0]
    return words, ""


def _all_dates(words: pl.Series, format: str) -> bool:
    return words.str.to_date(format, strict=False).null_count() == words.null_count()


def _times(words: pl.Series) -> pl.Series:
    return words.str.to_datetime(strict=False, time_unit="us")


# -- known from a model ------------------------------------------------------------------------------------------------


def as_fitted(
    frame: pl.DataFrame, columns: dict[str, str], name: str, before: int, comma: bool, na: Sequence[str] = ()
) -> pl.DataFrame:
    """The columns in the types that they had when the model was fitted; `before` is the number of earlier rows."""
    return frame.with_columns([_cast(frame[c], dtype, name, before, comma, na) for c, dtype in columns.items()])


def kind_of(dtype: str) -> str:
    """The kind of a type, from its name in Polars or pandas.

    >>> kind_of("Int64"), kind_of("float32"), kind_of("Datetime(time_unit='us', time_zone=None)"), kind_of("str")
    ('number', 'number', 'time', 'word')
    """
    kinds = {
        "number": ("int", "uint", "float", "decimal"),
        "time": ("datetime",),
        "date": ("date",),
        "truth": ("bool",),
        "word": ("string", "str", "object", "utf8", "cat", "enum", "large_string"),
    }
    return next((kind for kind, names in kinds.items() if dtype.lower().startswith(names)), "other")


def _cast(column: pl.Series, dtype: str, name: str, before: int, comma: bool, na: Sequence[str]) -> pl.Series:
    kind, has = kind_of(dtype), column.dtype
    if has == pl.String:
        return _read(column, dtype, name, before, comma, na)
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
    elif kind not in ("word", "other") and kind_of(str(has)) not in (kind, "date", "time"):
        raise InvalidInput(
            f"Column {column.name!r} of {name} must hold {dtype} as in the training file",
            got=str(has),
            advice="Convert the column to that type.",
        )
    return _finite(column, name, before) if kind == "number" else column


def _read(column: pl.Series, dtype: str, name: str, before: int, comma: bool, na: Sequence[str]) -> pl.Series:
    """A column of texts as values of this type."""
    kind, words = kind_of(dtype), _words(column, na)
    if kind in ("word", "other"):
        return words
    required = "a date"
    if kind == "number":
        required = "a number"
        words = words.set(words.str.to_lowercase().is_in(MISSING_NUMBERS).fill_null(False), None)
        values = _numbers(words, comma)
    elif kind == "truth":
        required = "true or false"
        values = words.str.to_lowercase().replace_strict(TRUTH, default=None, return_dtype=pl.Boolean)
    elif kind == "date":
        format = dtype.partition("[")[2].rstrip("]")
        values = words.str.to_date(format or None, strict=False)
        required = f"a date in the format {format or 'YYYY-MM-DD'}"
    else:
        values = _times(words)
    _refuse(column, words.is_not_null() & values.is_null(), required, name, before)
    if kind != "number":
        return values
    values = _finite(values, name, before)
    return _whole(values) if dtype.lower().startswith(("int", "uint")) else values


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
        raise _wrong(column, wrong, what, name, before)


def _wrong(column: pl.Series, wrong: pl.Series, what: str, name: str, before: int) -> InvalidInput:
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
    """Report a missing value that a model refuses with its file, row and column; `places` are the rows' positions."""
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
            advice="Fill it in, or drop the row. Or fit --model auto or ridge without --kernel to a file with missing "
            "values: such models accept them.",
        ) from None
