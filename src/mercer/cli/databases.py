"""Tables of SQLite and DuckDB files, by address: houses.db::sales.

Files are opened for reading only. Views, virtual tables and triggers, which are programs inside the file, do not run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mercer.cli.names import similar
from mercer.cli.sources import Source, unreadable
from mercer.errors import InvalidInput
from mercer.words import first_few

if TYPE_CHECKING:
    import polars as pl

ROWS = 50_000
"""Rows of a database that are fetched at a time."""


def chosen(source: Source, parts: list[str], what: str) -> str:
    """The table or sheet that the user named, or the only one."""
    if source.part in parts:
        return str(source.part)
    if source.part is None and len(parts) == 1:
        return parts[0]
    some = first_few(parts, 8, repr) or "none"
    if source.part is None:
        first = parts[0] if parts else "NAME"
        advice = f"Name one of them after two colons: {source.name}::{first}" if parts else f"Add a {what} to the file."
        raise InvalidInput(
            f"{source.name} must have one {what}, or its name must be given", got=f"{len(parts)}: {some}", advice=advice
        )
    near = similar(source.part, parts)
    raise InvalidInput(
        f"{source.name} must have the {what} {source.part!r}",
        got=some,
        advice=f"Did you mean {source.name}::{near}?" if near else "Name one of them.",
    )


def _quoted(name: str) -> str:
    """A name quoted for SQL, so that no part of it is read as a command."""
    return '"' + name.replace('"', '""') + '"'


def _connected(source: Source) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{source.path.resolve().as_uri()}?mode=ro", uri=True)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    return connection


def _sqlite_table(connection: sqlite3.Connection, source: Source) -> str:
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND upper(ltrim(sql)) NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return chosen(source, [name for (name,) in tables], "table")


def sqlite_names(source: Source) -> list[str]:
    """The columns of a table of an SQLite file."""
    try:
        with closing(_connected(source)) as connection:
            table = _sqlite_table(connection, source)
            return [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")]
    except sqlite3.Error as error:
        raise unreadable(source, error) from None


def read_sqlite(source: Source) -> pl.DataFrame:
    """A table of an SQLite file. Each value has its own type there: a column with any text becomes one of texts."""
    import polars as pl

    try:
        with closing(_connected(source)) as connection:
            rows = connection.execute(f"SELECT * FROM {_quoted(_sqlite_table(connection, source))}")
            names = [column[0] for column in rows.description]
            parts = [_typed(dict(zip(names, zip(*batch)))) for batch in _batches(rows)]
    except sqlite3.Error as error:
        raise unreadable(source, error) from None
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    texts = {name for part in parts for name, dtype in part.schema.items() if dtype == pl.String}
    aligned = [part.with_columns(pl.col(name).cast(pl.String) for name in texts) for part in parts]
    return pl.concat(aligned, how="vertical_relaxed")


def _batches(rows: Any) -> Iterator[list[Any]]:
    while batch := rows.fetchmany(ROWS):
        yield batch


def _typed(columns: dict[str, tuple[Any, ...]]) -> pl.DataFrame:
    import polars as pl

    series = []
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        if bytes in kinds:  # not a value of a table
            values, kinds = tuple(None for _ in values), set()
        if kinds <= {int, float}:
            dtype: Any = pl.Float64 if float in kinds else pl.Int64 if kinds else pl.Null
            series.append(pl.Series(name, values, dtype=dtype))
        else:
            series.append(pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String))
    return pl.DataFrame(series)


def read_duckdb(source: Source) -> pl.DataFrame:
    """A table of a DuckDB file, if DuckDB is installed."""
    if find_spec("duckdb") is None:
        raise InvalidInput(
            f"{source.name} is a DuckDB database, which the package duckdb reads",
            got="an installation without it",
            advice="Install it with: pip install duckdb",
        )
    import duckdb
    import polars as pl

    try:
        settings: dict[str, Any] = {"enable_external_access": "false", "autoload_known_extensions": "false"}
        with duckdb.connect(str(source.path), read_only=True, config=settings) as connection:
            tables = connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY table_name"
            ).fetchall()
            table = chosen(source, [name for (name,) in tables], "table")
            rows = connection.execute(f"SELECT * FROM {_quoted(table)}")
            names = [column[0] for column in rows.description or ()]
            return pl.DataFrame(rows.fetchall(), schema=names, orient="row", infer_schema_length=None)
    except duckdb.Error as error:
        raise unreadable(source, error) from None
