"""From a file to a table, with a note for every decision.

`read` reads the whole file and detects the types of its columns, for fitting. `batches` reads a file in batches, with
the types of the columns known from the model, for predicting.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from mercer.cli import delimited
from mercer.cli.cells import HOURS
from mercer.cli.columns import as_fitted, usable
from mercer.cli.conversion import LEADING_ZERO, Conversion
from mercer.cli.names import placed, shown_names, similar
from mercer.cli.roles import Assigned, assigned
from mercer.cli.sources import LIBSVM, SEVERAL, Source, first_line, opened, unreadable
from mercer.data.objects import object_array
from mercer.data.tu import is_tu, read_tu
from mercer.errors import InvalidInput

DENSE = 20_000_000
"""A LIBSVM file with more numbers than this, zeros included, stays a sparse matrix."""
WIDEST = 2000
"""So does a LIBSVM file with more columns than this."""
BATCH_ROWS = 20_000
"""The largest number of rows in a batch."""
BATCH_CELLS = 2_000_000
"""The largest number of values in a batch."""


@dataclass
class Table:
    """Rows of a file.

    Attributes
    ----------
    frame
        A Polars frame, a sparse matrix of a wide LIBSVM file, or an array of graphs.
    name : str
        The name of the file.
    notes : list of str
        The decisions that were made while reading.
    label
        The targets of a LIBSVM file, or of graphs.
    layout : delimited.Layout or None
        The layout of delimited text; None for other formats.
    given : Assigned
        The roles that the user assigned to columns.
    types : dict
        By column, the recorded type of values that were read by a format, such as Date[%d/%m/%Y].
    mixed : dict
        By column, why a column of decimals could not be read as numbers.
    inputs, named : list of str, bool
        The columns that the model takes, and whether it knows their names.
    """

    frame: Any
    name: str
    notes: list[str] = field(default_factory=list)
    label: Any = None
    layout: delimited.Layout | None = None
    given: Assigned = field(default_factory=Assigned)
    types: dict[str, str] = field(default_factory=dict)
    mixed: dict[str, InvalidInput] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    named: bool = True

    @property
    def rows(self) -> int:
        return int(self.frame.shape[0])

    @property
    def comma(self) -> bool:
        """Whether numbers have a decimal comma."""
        return self.layout is not None and self.layout.decimal_comma


def read(
    path: str,
    *,
    roles: dict[str, Any] | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    na: Sequence[str] | None = None,
) -> Table:
    """Read the whole table in a file.

    Parameters
    ----------
    path : str
        The file, or - for standard input; DATA::NAME is a table of a database or a sheet.
    roles : dict or None
        Columns by the options that assign roles to them, such as {"category": ["zip"], "weight": "w"}.
    target : str or None
        The target, whose words stay words.
    delimiter, encoding, format : str or None
        Override what is detected.
    na : sequence of str or None
        Cells of a text file that are missing values, too.
    """
    na, roles = na or (), roles or {}
    if is_tu(path):
        return _without_roles(_graphs(path, with_targets=True), roles)
    with opened(path, encoding=encoding, format=format) as source:
        if source.format == "libsvm":
            return _without_roles(_read_libsvm(source), roles)
        table = Table(None, source.name, source.notes)
        layout = table.layout = delimited.layout(source, delimiter) if source.format == "csv" else None
        codes: list[str] = []
        if layout is None:
            frame = _collected(source)
        else:
            frame, codes = _text_table(source, layout, na, assigned(roles, list(layout.names), source.name))
        typed = source.format not in ("csv", "excel", "ods")
        return _with_types(table, frame, roles, target, na, codes, typed)


def as_table(frame: pl.DataFrame, name: str, roles: dict[str, Any], target: str, na: Sequence[str] | None) -> Table:
    """The table of rows with types, such as a sample of a Parquet file."""
    return _with_types(Table(None, name), frame, roles, target, na or (), [], typed=True)


def _with_types(
    table: Table, frame: pl.DataFrame, roles: dict[str, Any], target: str | None, na: Sequence[str], codes: list[str],
    typed: bool,
) -> Table:  # fmt: skip
    """The table with these rows, its columns in the types that fits use; `typed` if they have types of a file."""
    times = {name: f"Float64[{HOURS}]" for name, dtype in frame.schema.items() if dtype == pl.Time}
    frame = usable(frame, table.name, table.notes)
    target = placed(target, frame.columns)
    table.given = assigned(roles, frame.columns, table.name, target)
    if not typed and table.layout is None:  # a sheet, in which the digits of a text may be a code
        words = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        codes = [name for name in words if frame[name].str.contains(LEADING_ZERO).any()]
    conversion = Conversion(table.name, table.notes, na, table.comma, table.given, target, times, table.mixed)
    table.frame, table.types = conversion.apply(frame, all_columns=not typed, codes=codes), conversion.types
    if not frame.height or not frame.width:
        raise InvalidInput(
            f"{table.name} must have rows",
            got="a header only" if frame.width else "no columns",
            advice="Add rows to the file.",
        )
    return table


def _without_roles(table: Table, roles: dict[str, Any]) -> Table:
    """A sparse file or graphs, for which roles of columns are refused."""
    if any(roles.values()) and not isinstance(table.frame, pl.DataFrame):
        raise InvalidInput(
            "Roles are for the columns of a table",
            got=f"{table.name}, a sparse file or graphs",
            advice="Remove the options that name columns.",
        )
    if isinstance(table.frame, pl.DataFrame):
        table.given = assigned(roles, table.frame.columns, table.name)
    return table


@contextmanager
def batches(
    path: str,
    columns: dict[str, str],
    *,
    n_features: int | None = None,
    keep: bool = False,
    apart: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    na: Sequence[str] | None = None,
) -> Iterator[tuple[Iterator[Table], list[str]]]:
    """The file in batches with these columns in these types (and all others if `keep`), and the notes.

    A model that does not know the names of its columns takes all of them except `apart`; there must be `n_features`.
    """
    if is_tu(path):
        yield iter([_graphs(path)]), []
        return
    size = max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, len(columns) or n_features or 1)))
    with opened(path, encoding=encoding, format=format) as source:
        if source.format == "libsvm":
            yield _libsvm_batches(source, columns, n_features, size), source.notes
        else:
            yield _batches(source, columns, n_features, keep, apart, delimiter, na or (), size), source.notes


def _batches(
    source: Source, columns: dict[str, str], n_features: int | None, keep: bool, apart: str | None,
    delimiter: str | None, na: Sequence[str], size: int,
) -> Iterator[Table]:  # fmt: skip
    layout = delimited.layout(source, delimiter) if source.format == "csv" else None
    lazy = _scanned(source) if layout is None else delimited.scan(source, layout, na, infer_schema=False)
    try:
        names, known = list(lazy.collect_schema()), bool(columns)
        columns = columns or {name: "Float64" for name in names if name != apart}
        if not known and n_features is not None and len(columns) != n_features:
            raise InvalidInput(
                f"{source.name} must have the {n_features} numeric columns that the model was fitted to",
                got=f"{len(columns)}: {shown_names(list(columns))}",
                advice="Pass a file with only these columns, in their order: the model does not know their names.",
            )
        require_columns(columns, names, source.name)
        if not keep:
            lazy = lazy.select(list(columns))
        done = 0
        for frame in lazy.collect_batches(chunk_size=size, maintain_order=True):
            for start in range(0, frame.height, size):
                table = Table(
                    frame.slice(start, size), source.name, source.notes, layout=layout, inputs=list(columns),
                    named=known,
                )  # fmt: skip
                table.frame = as_fitted(table.frame, columns, source.name, done, table.comma, na)
                done += table.rows
                yield table
    except pl.exceptions.PolarsError as error:
        raise (unreadable(source, error) if layout is None else delimited.misread(source, layout, error)) from None


def require_columns(columns: dict[str, str], names: list[str], name: str) -> None:
    """Refuse a table that lacks columns of the model."""
    present = set(names)
    absent = [column for column in columns if column not in present]
    if absent:
        near = similar(absent[0], names)
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise InvalidInput(
            f"{name} must have the column {absent[0]!r}{more}, which the model was fitted to",
            got=f"columns {shown_names(names)}",
            advice=f"Rename {near!r} if it is this column." if near else "Name the columns as in the training file.",
        )


def _scanned(source: Source) -> pl.LazyFrame:
    try:
        if source.format == "parquet":
            lazy = pl.scan_parquet(source.path, glob=False)
        elif source.format == "arrow":
            lazy = pl.scan_ipc(source.path, glob=False)
        elif source.format == "arrow-stream":
            lazy = pl.read_ipc_stream(source.path).lazy()
        elif source.format in SEVERAL:
            lazy = _of_several(source).lazy()
        elif source.format == "jsonl":
            lazy = pl.scan_ndjson(source.path, infer_schema_length=None)
        else:
            lazy = pl.read_json(source.path, infer_schema_length=None).lazy()
        lazy.collect_schema()
        return lazy
    except InvalidInput:
        raise
    except Exception as error:  # Polars raises several kinds for damaged files
        raise unreadable(source, error) from None


def _of_several(source: Source) -> pl.DataFrame:
    """A table of a database, or a sheet."""
    if source.format in ("excel", "ods"):
        from mercer.cli import spreadsheets

        return spreadsheets.read(source)
    from mercer.cli import databases

    return databases.read_sqlite(source) if source.format == "sqlite" else databases.read_duckdb(source)


def _collected(source: Source) -> pl.DataFrame:
    try:
        return _scanned(source).collect()
    except pl.exceptions.PolarsError as error:
        raise unreadable(source, error) from None


def _text_table(
    source: Source, layout: delimited.Layout, na: Sequence[str], given: Assigned
) -> tuple[pl.DataFrame, list[str]]:
    """The table in a text file, and the columns of digits with leading zeros, which stay text."""
    try:
        schema = delimited.scan(source, layout, na, infer_schema_length=None).collect_schema()
        texts = delimited.scan(source, layout, na, infer_schema=False)
        whole = [name for name, dtype in schema.items() if dtype.is_integer()]
        zeros = texts.select(pl.col(whole).str.contains(LEADING_ZERO).any()).collect() if whole else pl.DataFrame()
        codes = [name for name in zeros.columns if zeros[name][0] and given.roles.get(name) != "number"]
        as_text = {*codes, *given.of("text"), *given.of("molecule")}
        types = [pl.String if name in as_text else dtype for name, dtype in schema.items()]
        return delimited.scan(source, layout, na, schema_overrides=types).collect(), codes
    except pl.exceptions.NoDataError:
        raise InvalidInput(
            f"{source.name} must have rows", got="a header only", advice="Add rows to the file."
        ) from None
    except pl.exceptions.PolarsError as error:
        raise delimited.misread(source, layout, error) from None


def _graphs(path: str, *, with_targets: bool = False) -> Table:
    """The graphs of a data set in the TU format, as an array of objects, with their labels."""
    graphs, y = read_tu(path)
    if (y is None and with_targets) or (y is not None and y.ndim != 1):
        raise InvalidInput(
            f"{path} must have one target per graph",
            got="no graph labels" if y is None else f"{y.shape[1]} attributes per graph",
            advice="Add a file NAME_graph_labels.txt, or use Python: graphs, y = mc.read_tu(path).",
        )
    notes = [f"{path} is read as {len(graphs)} graphs in the TU format"]
    return Table(object_array(graphs)[:, None], path, notes, y)


# -- LIBSVM ------------------------------------------------------------------------------------------------------------


def _read_libsvm(source: Source) -> Table:
    with open(source.path, "rb") as file:
        X, y = _svmlight(file, source)
    first = 0 if X[:, [0]].nnz else 1  # features are numbered from 1, in some files from 0
    n, p = X.shape
    if n * p > DENSE or p > WIDEST:
        return Table(X, source.name, source.notes, y)
    frame = pl.DataFrame(X[:, first:].toarray(), schema=[f"f{k}" for k in range(first, p)], orient="row")
    return Table(frame, source.name, source.notes, y)


def _libsvm_batches(source: Source, columns: dict[str, str], n_features: int | None, size: int) -> Iterator[Table]:
    """Batches with features by their numbers: 3:0.5 is in column f3. Features that the model lacks are ignored."""
    if not all(re.fullmatch(r"f\d+", name) for name in columns):
        raise InvalidInput(
            f"{source.name} is a LIBSVM file, which needs a model with columns f1, f2, …",
            got=f"a model with columns {shown_names(list(columns))}",
            advice="Pass a file with these columns.",
        )
    places = [int(name[1:]) for name in columns] or list(range(n_features or 0))
    width = max(places, default=0) + 1
    with open(source.path, "rb") as file:
        done = 0
        while lines := [line for _, line in zip(range(size), file)]:
            X, y = _svmlight(io.BytesIO(b"".join(lines)), source, done)
            done += len(lines)
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], max(width, X.shape[1])))
            if columns:
                frame = pl.DataFrame(X[:, places].toarray(), schema=list(columns), orient="row")
                yield Table(frame, source.name, source.notes, y, inputs=list(columns))
            else:
                yield Table(X[:, :width], source.name, source.notes, y)


def _svmlight(file: Any, source: Source, before: int = 0) -> Any:
    """The matrix and the targets of lines, with feature k in column k."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OverflowError) as error:
        file.seek(0)
        wrong = (k for k, line in enumerate(file, 1) if line.strip() and not LIBSVM.fullmatch(line.decode().strip()))
        line = next(wrong, None)
        raise InvalidInput(
            f"{source.name} must be a LIBSVM file of lines like '1 3:0.5 7:1'",
            got=first_line(error) if line is None else f"something else in line {before + line}",
            advice="Correct the line, with its features in ascending order.",
        ) from None
    if not np.isfinite(X.data).all():
        raise InvalidInput(
            f"{source.name} must hold finite numbers", got="NaN or infinities", advice="Correct these values."
        )
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr), shape=X.shape), y
