"""The names of a file's columns, before anything else is loaded: a mistyped name is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mercer.cli import delimited
from mercer.cli.names import named, no_target
from mercer.cli.roles import assigned
from mercer.cli.sources import COMPRESSED, HEAD, address, existing, opened

LARGER = (".zip", ".zst", ".zstd")
"""Files whose beginning is not enough: archives, and what Python before 3.14 cannot decompress."""


def check(
    data: str, target: str | None, roles: dict[str, Any], reading: dict[str, Any], *, predicts: bool = False
) -> None:
    """Refuse a file that does not exist, names of columns that it does not have, and no target if one `predicts` it.

    Files whose columns are known only after all of the file has been read are checked then.
    """
    header = names_of(data, **reading)
    if header is None:
        return
    names, text = header
    file = address(data)[0]
    if target is not None:
        target = named(target, names, file, text=text)
    elif predicts:
        raise no_target(names, file)
    assigned(roles, names, file, target)


def require_file(path: str) -> None:
    """Refuse a file that does not exist, with a similar name."""
    existing(path)


def names_of(
    data: str, *, delimiter: str | None = None, encoding: str | None = None, format: str | None = None, na: Any = None
) -> tuple[list[str], bool] | None:
    """The names of the columns, and whether the file is a text; None if they are not known from its beginning."""
    path = Path(address(data)[0]).expanduser()
    unknown = data == "-" or path.is_dir() or (path.exists() and not path.is_file())
    if unknown or path.suffix.lower() in LARGER:
        return None
    with opened(data, encoding=encoding, format=format, most=HEAD) as source:
        if source.format == "csv":
            return list(delimited.layout(source, delimiter).names), True
        if path.suffix.lower().lstrip(".") in COMPRESSED:
            return None
        if source.format == "sqlite":
            from mercer.cli.databases import sqlite_names

            return sqlite_names(source), False
        if source.format in ("parquet", "arrow"):
            import polars as pl

            try:
                schema = pl.read_parquet_schema if source.format == "parquet" else pl.read_ipc_schema
                return list(schema(source.path)), False
            except Exception:  # a damaged file, about which reading it will say more
                return None
    return None
