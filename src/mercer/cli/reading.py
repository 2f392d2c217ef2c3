"""From a file to a table, with every decision noted.

Two ways lead there. `read` takes the whole file, and finds the types of its columns: for fitting. `batches` takes a
file piece by piece, with the types of the columns known from the model: for predicting.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from mercer.cli import delimited
from mercer.cli.columns import as_fitted, typed, usable
from mercer.cli.sources import LIBSVM, Source, first_line, opened, unreadable
from mercer.errors import InvalidInput

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
    layout : of delimited text.
    dates : how dates are written that are not as ISO has it, by column.
    mixed : why columns of decimals are no numbers, by column.
    inputs, named : the columns that the model takes, and whether it knows their names.
    """

    frame: Any
    name: str
    notes: list[str] = field(default_factory=list)
    label: Any = None
    layout: delimited.Layout | None = None
    dates: dict[str, str] = field(default_factory=dict)
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
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    na: Sequence[str] | None = None,
) -> Table:
    """The whole table in a file; cells of a text that are in `na` are missing."""
    na = na or ()
    with opened(path, encoding=encoding, format=format) as source:
        if source.format == "libsvm":
            return _read_libsvm(source)
        table = Table(None, source.name, source.notes)
        layout = table.layout = delimited.layout(source, delimiter) if source.format == "csv" else None
        frame = usable(_collected(source, layout, na), source.name, source.notes)
        if layout is not None:
            frame, table.dates, table.mixed = typed(frame, source.name, source.notes, na, layout.decimal_comma)
        if not frame.height or not frame.width:
            raise InvalidInput(
                f"{source.name} must have rows",
                got="a header only" if frame.width else "no columns",
                advice="Add rows to it.",
            )
        table.frame = frame
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
    """The file piece by piece, each with these columns in these types (and the others too if `keep`), and the notes.

    A model that knows no names takes all columns but the one `apart`, which must be `n_features` numbers.
    """
    size = max(1, min(ROWS, CELLS // max(1, len(columns) or n_features or 1)))
    with opened(path, encoding=encoding, format=format) as source:
        if source.format == "libsvm":
            yield _pieces_libsvm(source, columns, n_features, size), source.notes
        else:
            yield _pieces(source, columns, n_features, keep, apart, delimiter, na or (), size), source.notes


def _pieces(
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
                f"{source.name} must have the {n_features} columns of numbers that the model was fitted on",
                got=f"{len(columns)}: {shown_names(list(columns))}",
                advice="Give just these columns in their order: the model does not know their names.",
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
    there = set(names)
    lacking = [column for column in columns if column not in there]
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
    some = ", ".join(repr(name if len(name) <= 60 else name[:60] + "…") for name in names[:most])
    return some + (f", … ({len(names)} in all)" if len(names) > most else "")


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
    except Exception as error:  # Polars raises several kinds for damaged files
        raise unreadable(source, error) from None


def _collected(source: Source, layout: delimited.Layout | None, na: Sequence[str]) -> pl.DataFrame:
    try:
        if layout is None:
            return _scanned(source).collect()
        return delimited.scan(source, layout, na, infer_schema_length=None).collect()
    except pl.exceptions.NoDataError:
        raise InvalidInput(f"{source.name} must have rows", got="a header only", advice="Add rows to it.") from None
    except pl.exceptions.PolarsError as error:
        raise (unreadable(source, error) if layout is None else delimited.misread(source, layout, error)) from None


# -- LIBSVM ------------------------------------------------------------------------------------------------------------


def _read_libsvm(source: Source) -> Table:
    with open(source.path, "rb") as file:
        X, y = _svmlight(file, source)
    first = 0 if X[:, [0]].nnz else 1  # features count from 1, but for some files
    n, p = X.shape
    if n * p > DENSE or p > WIDEST:
        return Table(X, source.name, source.notes, y)
    frame = pl.DataFrame(X[:, first:].toarray(), schema=[f"f{k}" for k in range(first, p)], orient="row")
    return Table(frame, source.name, source.notes, y)


def _pieces_libsvm(source: Source, columns: dict[str, str], n_features: int | None, size: int) -> Iterator[Table]:
    """Features by their numbers: f3 is what stands behind 3:, and those that the model does not know are ignored."""
    if not all(re.fullmatch(r"f\d+", name) for name in columns):
        raise InvalidInput(
            f"A LIBSVM file has columns f1, f2, …, and {source.name} is one",
            got=f"a model on {shown_names(list(columns))}",
            advice="Give a file with these columns.",
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
    """Matrix and targets of lines, the feature of number k in column k."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OverflowError) as error:
        file.seek(0)
        wrong = (k for k, line in enumerate(file, 1) if line.strip() and not LIBSVM.fullmatch(line.decode().strip()))
        line = next(wrong, None)
        raise InvalidInput(
            f"{source.name} must be a LIBSVM file of lines like '1 3:0.5 7:1'",
            got=first_line(error) if line is None else f"another one in line {before + line}",
            advice="Number the features of every line in ascending order.",
        ) from None
    if not np.isfinite(X.data).all():
        raise InvalidInput(f"{source.name} must hold finite numbers", got="others", advice="Correct the file.")
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr), shape=X.shape), y
