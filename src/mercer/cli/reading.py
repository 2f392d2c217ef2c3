"""From a file to a table: delimiter, header, types and missing values, with every decision told.

Two ways lead there. `read` takes the whole file, and finds the types of its columns: for fitting. `batches` takes a
file of any length piece by piece, with the types of the columns known from the model: for predicting.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from mercer.cli.sources import Source, first_line, opened
from mercer.errors import InvalidInput

MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "#N/A", "#NA", "<NA>"]
# Marks that say "missing" in a column of numbers, and may mean something among words.
NO_NUMBER = {".", "-", "--", "*", "na", "none", "missing", "unknown", "inf?", "#div/0!", "#value!"}
DELIMITERS = ",\t;|"
NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
# A LIBSVM file with up to so many numbers, zeros counted, becomes a table; a larger one stays sparse.
DENSE = 20_000_000
WIDEST = 2000
ROWS = 20_000
"""Rows of a batch, at most."""
CELLS = 2_000_000
"""Numbers in a batch, at most."""


@dataclass
class Table:
    """Rows of a file.

    Attributes
    ----------
    frame : a Polars frame, or a sparse matrix of a wide LIBSVM file.
    name : of the file.
    notes : what was decided while reading.
    label : the targets that a LIBSVM file has beside its columns.
    """

    frame: Any
    name: str
    notes: list[str] = field(default_factory=list)
    label: Any = None

    @property
    def rows(self) -> int:
        return int(self.frame.shape[0])


@dataclass(frozen=True)
class Layout:
    """How a delimited text is laid out."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    decimal_comma: bool = False


def read(path: str, *, delimiter: str | None = None, encoding: str | None = None, format: str | None = None) -> Table:
    """The whole table in a file."""
    with opened(path, encoding=encoding, format=format) as source:
        if source.format == "libsvm":
            return _read_libsvm(source)
        notes = source.notes
        if source.format == "csv":
            frame = _read_csv(source, _layout(source, delimiter))
        else:
            frame = _scanned(source).collect()
        frame = _typed(_usable(frame, source.name, notes), notes)
        if not frame.height or not frame.width:
            raise InvalidInput(
                f"{source.name} must have rows",
                got="a header only" if frame.width else "no columns",
                advice="Add some.",
            )
        return Table(frame, source.name, notes)


@contextmanager
def batches(
    path: str,
    columns: dict[str, str],
    *,
    n_features: int | None = None,
    keep: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
) -> Iterator[tuple[Iterator[Table], list[str]]]:
    """The file piece by piece, each with these columns in these types (and the others too if `keep`), and the notes."""
    size = max(1, min(ROWS, CELLS // max(1, len(columns) or n_features or 1)))
    with opened(path, encoding=encoding, format=format) as source:
        yield _pieces(source, columns, n_features, keep, delimiter, size), source.notes


def _pieces(
    source: Source, columns: dict[str, str], n_features: int | None, keep: bool, delimiter: str | None, size: int
) -> Iterator[Table]:
    if source.format == "libsvm":
        yield from _pieces_libsvm(source, columns, n_features, size)
        return
    layout = _layout(source, delimiter) if source.format == "csv" else None
    if layout is not None:
        lazy = _scan_csv(source, layout, infer_schema=False)
    else:
        lazy = _scanned(source)
    try:
        names = list(lazy.collect_schema())
        require_columns(columns, names, source.name)
        if not keep:
            lazy = lazy.select(list(columns))
        done = 0
        for frame in lazy.collect_batches(chunk_size=size, maintain_order=True):
            for start in range(0, frame.height, size):
                piece = frame.slice(start, size)
                yield Table(_as_fitted(piece, columns, source.name, done, layout), source.name, source.notes)
                done += piece.height
    except pl.exceptions.PolarsError as error:
        raise _unreadable(source, layout, error) from None


def require_columns(columns: dict[str, str], names: list[str], name: str) -> None:
    """Refuse a table that lacks columns of the model."""
    lacking = [column for column in columns if column not in names]
    if lacking:
        near = get_close_matches(lacking[0], names, 1, 0.7)
        several = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InvalidInput(
            f"{name} must have the column {lacking[0]!r}{several}, which the model was fitted on",
            got=f"columns {shown_names(names)}",
            advice=f"Did you mean {near[0]!r}? Rename it." if near else "Name the columns as in the training file.",
        )


def shown_names(names: list[str], most: int = 8) -> str:
    """Some names of columns."""
    return ", ".join(map(repr, names[:most])) + (f", … ({len(names)} in all)" if len(names) > most else "")


# -- delimited text ----------------------------------------------------------------------------------------------------


def _layout(source: Source, delimiter: str | None) -> Layout:
    text = source.head()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InvalidInput(f"{source.name} must hold a table", got="blank lines", advice="Check how it was written.")
    if delimiter is None:
        delimiter = _delimiter(lines, source)
        lines = [line for line in source.head().splitlines() if line.strip()]
    elif delimiter in ("\\t", "tab"):
        delimiter = "\t"
    elif len(delimiter.encode()) != 1:
        raise InvalidInput("A delimiter must be one character", got=repr(delimiter), advice="Such as ';' or 'tab'.")
    rows = _split("\n".join(lines[:50]), delimiter)
    first = [cell.strip() for cell in rows[0]]
    header = not all(_is_number(cell) or cell in MISSING for cell in first) or not any(first)
    if header and len(rows) > 1 and all(not _is_number(c) for c in first) and first == [c.strip() for c in rows[1]]:
        source.notes.append(f"the first two rows of {source.name} are the same: the first is taken for the header")
    if not header:
        source.notes.append(
            f"{source.name} has no header (its first row is numbers): columns are column_1 to column_{len(first)}"
        )
    names = first if header else [""] * len(first)
    twice = [name for name, times in Counter(names).items() if name and times > 1]
    if twice:
        where = [str(k + 1) for k, name in enumerate(names) if name == twice[0]]
        raise InvalidInput(
            f"{source.name} must have columns with different names",
            got=f"{twice[0]!r} as columns {' and '.join(where)}",
            advice="Rename one of them in the file.",
        )
    taken = set(names)
    called = []
    for k, name in enumerate(names, start=1):
        own = name or f"column_{k}"
        while not name and own in taken:
            own += "_"
        taken.add(own)
        called.append(own)
    comma = delimiter != "," and _decimal_comma(rows[1:])
    if comma:
        source.notes.append(f"numbers of {source.name} have a decimal comma: 3,14 is read as 3.14")
    return Layout(delimiter, tuple(called), header, comma)


def _split(text: str, delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row] or [[""]]


def _delimiter(lines: list[str], source: Source) -> str:
    """The delimiter that cuts the first lines into the same number of cells, as many as possible."""
    some = "\n".join(lines[:50])
    best, most = ",", 0.0
    for candidate in "\t,;|" if source.suffix in ("tsv", "tab") else DELIMITERS:
        widths = [len(row) for row in _split(some, candidate)]
        head = widths[0]
        if len(lines) > 50:  # a quoted cell may have been cut
            widths = widths[:-1] or widths
        common, times = Counter(widths).most_common(1)[0]
        # The comma of 0,5;1,5 cuts rows, and not the header.
        worth = common * (times / len(widths)) ** 4 if common > 1 and head == common else 0.0
        if worth > most and times >= 0.5 * len(widths):
            best, most = candidate, worth
    if most == 0 and len(lines) > 1:
        spaced = [line.split() for line in lines[:50]]
        same = len({len(cells) for cells in spaced}) == 1 and len(spaced[0]) > 1
        if same and sum(_is_number(c) for row in spaced[1:] for c in row) >= 0.5 * len(spaced[1:]):
            _respace(source)
            return "\t"
    usual = "\t" if source.suffix in ("tsv", "tab") else ","
    if most > 0 and best != usual:
        source.notes.append(f"the columns of {source.name} are separated by a {NAMES[best]}")
    return best


def _respace(source: Source) -> None:
    """Columns apart by blanks, as a table with tabs."""
    target = source.folder / "spaced"
    with open(source.path, encoding="utf-8-sig") as old, open(target, "w", encoding="utf-8") as new:
        for line in old:
            if line.strip():
                new.write("\t".join(line.split()) + "\n")
    source.path = target
    source.notes.append(f"the columns of {source.name} are separated by blanks")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")


def _decimal_comma(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row if cell.strip()]
    points = sum("." in cell and _is_number(cell) for cell in cells)
    return sum(bool(_COMMA.fullmatch(cell)) for cell in cells) > max(points, 0.2 * len(cells), 0)


def _scan_csv(source: Source, layout: Layout, **how: Any) -> pl.LazyFrame:
    return pl.scan_csv(
        source.path,
        separator=layout.delimiter,
        has_header=layout.header,
        new_columns=list(layout.names),
        null_values=MISSING,
        decimal_comma=layout.decimal_comma,
        glob=False,
        **how,
    )


def _read_csv(source: Source, layout: Layout) -> pl.DataFrame:
    try:
        return _scan_csv(source, layout, infer_schema_length=None).collect()
    except pl.exceptions.NoDataError:
        raise InvalidInput(f"{source.name} must have rows", got="a header only", advice="Add some.") from None
    except pl.exceptions.PolarsError as error:
        raise _unreadable(source, layout, error) from None


def _unreadable(source: Source, layout: Layout | None, error: Exception) -> InvalidInput:
    """Why a file could not be parsed: where it is a line that has more cells than the header, that line."""
    if layout is not None:
        with open(source.path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=layout.delimiter)
            try:
                for row in rows:
                    if len(row) > len(layout.names):
                        return InvalidInput(
                            f"{source.name} must have {len(layout.names)} columns in every line, as in its header",
                            got=f"{len(row)} in line {rows.line_num}",
                            advice="Put cells that hold the delimiter in quotes, or say --delimiter.",
                        )
            except csv.Error:
                pass
    return InvalidInput(
        f"{source.name} must be readable as {source.format.upper()}", got=first_line(error), advice="Check the file."
    )


# -- other files -------------------------------------------------------------------------------------------------------


def _scanned(source: Source) -> pl.LazyFrame:
    try:
        if source.format == "parquet":
            lazy = pl.scan_parquet(source.path, glob=False)
        elif source.format == "arrow":
            lazy = pl.scan_ipc(source.path, glob=False)
        elif source.format == "arrow-stream":
            lazy = pl.read_ipc_stream(source.path).lazy()
        elif source.format == "jsonl":
            lazy = pl.scan_ndjson(source.path, infer_schema_length=None)
        else:
            lazy = pl.read_json(source.path, infer_schema_length=None).lazy()
        lazy.collect_schema()
        return lazy
    except Exception as error:  # Polars raises several kinds for damaged files, some of them panics
        raise _unreadable(source, None, error) from None


def _read_libsvm(source: Source) -> Table:
    X, y = _svmlight(source)
    n, p = X.shape
    if n * p <= DENSE and p <= WIDEST:
        frame = pl.DataFrame(X.toarray(), schema=[f"f{k}" for k in range(1, p + 1)], orient="row")
        return Table(frame, source.name, source.notes, y)
    return Table(X, source.name, source.notes, y)


def _svmlight(source: Source, **part: Any) -> Any:
    from sklearn.datasets import load_svmlight_file

    try:
        with open(source.path, "rb") as file:
            X, y = load_svmlight_file(file, **part)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{source.name} must be a LIBSVM file of lines like '1 3:0.5 7:1'",
            got=first_line(error),
            advice="A model takes no more columns than it was fitted on.",
        ) from None
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr), shape=X.shape), y


def _pieces_libsvm(source: Source, columns: dict[str, str], n_features: int | None, size: int) -> Iterator[Table]:
    p = n_features or len(columns)
    names = [f"f{k}" for k in range(1, p + 1)]
    if columns and list(columns) != names:
        kept = [int(name[1:]) - 1 for name in columns if re.fullmatch(r"f\d+", name)]
        if len(kept) != len(columns):
            raise InvalidInput(
                f"A LIBSVM file has columns f1, f2, …, and {source.name} is one",
                got=f"a model on {shown_names(list(columns))}",
                advice="Give a file with these columns.",
            )
    for block in _line_blocks(source, size):
        from sklearn.datasets import load_svmlight_file

        try:
            X, y = load_svmlight_file(io.BytesIO(block), zero_based=False)
        except (ValueError, OverflowError) as error:
            raise InvalidInput(
                f"{source.name} must be a LIBSVM file of lines like '1 3:0.5 7:1'",
                got=first_line(error),
                advice="Check it.",
            ) from None
        if columns:
            wide = sp.csc_matrix(X)
            data = {}
            for name in columns:
                k = int(name[1:]) - 1
                data[name] = wide[:, [k]].toarray()[:, 0] if k < wide.shape[1] else np.zeros(wide.shape[0])
            yield Table(pl.DataFrame(data), source.name, source.notes, y)
            continue
        if X.shape[1] > p:
            raise InvalidInput(
                f"{source.name} must have at most the {p} columns that the model was fitted on",
                got=f"{X.shape[1]}",
                advice="It may be another data set.",
            )
        X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr), shape=(X.shape[0], p))
        yield Table(X, source.name, source.notes, y)


def _line_blocks(source: Source, size: int) -> Iterator[bytes]:
    with open(source.path, "rb") as file:
        lines: list[bytes] = []
        for line in file:
            if line.strip():
                lines.append(line)
            if len(lines) == size:
                yield b"".join(lines)
                lines = []
        if lines:
            yield b"".join(lines)


# -- types -------------------------------------------------------------------------------------------------------------


def _usable(frame: pl.DataFrame, name: str, notes: list[str]) -> pl.DataFrame:
    """NaN is missing, and columns of nothing are left out."""
    frame = frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))
    # `to_csv` of pandas writes its row numbers first, under no name.
    first = frame.columns[0] if frame.width else ""
    if first == "column_1" and frame.width > 1 and frame.columns[1] != "column_2":
        values = frame[first]
        if values.dtype.is_integer() and values.null_count() == 0:
            steps = values.to_numpy()
            if steps[0] in (0, 1) and bool((np.diff(steps) == 1).all()):
                notes.append(f"the first column of {name} has no name and counts the rows: left out")
                frame = frame.drop(first)
    return frame


def _typed(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Words that are numbers but for blanks or a mark of missing values become numbers."""
    changed: dict[str, pl.Series] = {}
    marked: dict[str, set[str]] = {}
    for column in frame.get_columns():
        if column.dtype != pl.String:
            continue
        words = column.str.strip_chars()
        words = words.set(words.is_in(MISSING).fill_null(False), None) if words.is_in(MISSING).any() else words
        values = words.cast(pl.Float64, strict=False)
        failed = words.is_not_null() & values.is_null()
        marks = set(words.filter(failed).unique().to_list()) if failed.any() else set()
        if values.drop_nulls().len() and marks <= {w for w in marks if w.lower() in NO_NUMBER}:
            whole = values.drop_nulls()
            integral = bool((whole == whole.floor()).all()) and float(whole.abs().max() or 0) < 2**53  # type: ignore[arg-type]
            changed[column.name] = values.cast(pl.Int64) if integral else values
            if marks:
                marked[column.name] = marks
        else:
            changed[column.name] = _dated(words)
    for name, marks in marked.items():
        notes.append(f"{', '.join(map(repr, sorted(marks)))} in column {name!r} of numbers is read as missing")
    return frame.with_columns(**changed) if changed else frame


_ISO = re.compile(r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?)?")


def _dated(words: pl.Series) -> pl.Series:
    """Words that all are ISO dates, as dates (or times); others as they are."""
    some = words.drop_nulls().head(20).to_list()
    found = [_ISO.fullmatch(word) for word in some]
    if not some or not all(found):
        return words
    if any(match and match[1] for match in found):
        dates = words.str.to_datetime(strict=False, time_unit="us")
    else:
        dates = words.str.to_date(strict=False)
    return words if (words.is_not_null() & dates.is_null()).any() else dates


def _as_fitted(
    frame: pl.DataFrame, columns: dict[str, str], name: str, before: int, layout: Layout | None
) -> pl.DataFrame:
    """The columns in the types that they had when the model was fitted."""
    made = []
    for column, dtype in columns.items():
        made.append(_cast(frame[column], dtype, name, before, layout))
    return frame.with_columns(made) if made else frame


def kind_of(dtype: str) -> str:
    """What a type is, by its name in Polars or pandas.

    >>> kind_of("Int64"), kind_of("float32"), kind_of("Datetime(time_unit='us', time_zone=None)"), kind_of("str")
    ('number', 'number', 'time', 'word')
    """
    text = dtype.lower()
    if text.startswith(("int", "uint", "float", "decimal")):
        return "number"
    if text.startswith("datetime"):
        return "time"
    if text.startswith("date"):
        return "date"
    if text.startswith("bool"):
        return "truth"
    if text.startswith(("string", "str", "object", "utf8", "cat", "enum", "large_string")):
        return "word"
    return "other"


TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False, "t": True, "f": False}


def _cast(column: pl.Series, dtype: str, name: str, before: int, layout: Layout | None) -> pl.Series:
    kind, has = kind_of(dtype), column.dtype
    if has == pl.Null:
        targets: dict[str, Any] = {"number": pl.Float64, "word": pl.String, "truth": pl.Boolean, "date": pl.Date}
        return column.cast(targets.get(kind, pl.Datetime("us") if kind == "time" else pl.Null))
    if has.is_float():
        column = column.fill_nan(None)
    if has == pl.String:
        words = column.str.strip_chars()
        words = words.set(words.is_in(MISSING).fill_null(False), None) if words.is_in(MISSING).any() else words
        if kind == "word" or kind == "other":
            return words
        if kind == "number":
            if layout is not None and layout.decimal_comma:
                words = words.str.replace(",", ".", literal=True)
            made = words.cast(pl.Float64, strict=False)
            marks = words.is_not_null() & made.is_null() & ~words.str.to_lowercase().is_in(list(NO_NUMBER))
            _refuse(column, marks, "a number", name, before)
            if dtype.lower().startswith(("int", "uint")) and made.drop_nulls().len():
                whole = made.drop_nulls()
                if bool((whole == whole.floor()).all()) and float(whole.abs().max()) < 2**53:  # type: ignore[arg-type]
                    return made.cast(pl.Int64)
            return made
        if kind == "truth":
            made = words.str.to_lowercase().replace_strict(TRUTH, default=None, return_dtype=pl.Boolean)
        elif kind == "date":
            made = words.str.to_date(strict=False)
        else:
            made = words.str.to_datetime(strict=False, time_unit="us")
        _refuse(
            column, words.is_not_null() & made.is_null(), {"truth": "true or false"}.get(kind, "a date"), name, before
        )
        return made
    if kind == "word" and (has.is_numeric() or has == pl.Boolean):
        return column.cast(pl.String)
    if kind == "number" and has == pl.Boolean:
        return column.cast(pl.Int64)
    if kind == "truth" and has.is_integer():
        return column.cast(pl.Boolean)
    if kind in ("number", "date", "time", "truth") and kind_of(str(has)) not in (kind, "date", "time"):
        raise InvalidInput(
            f"Column {column.name!r} of {name} must hold {dtype} as in the training file",
            got=str(has),
            advice="Convert it.",
        )
    return column


def _refuse(column: pl.Series, wrong: pl.Series, what: str, name: str, before: int) -> None:
    if wrong.any():
        k = int(wrong.arg_max() or 0)
        raise InvalidInput(
            f"Column {column.name!r} of {name} must hold {what} in every row, as when the model was fitted",
            got=f"{column[k]!r} in row {before + k + 1}",
            advice="Correct it, or leave the cell empty if the value is missing.",
        )
