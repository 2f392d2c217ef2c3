"""Sheets of Excel and OpenDocument files, read by calamine, which runs no macro and no formula, and written."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from datetime import date
from importlib.util import find_spec
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from mercer.cli.databases import chosen
from mercer.cli.sources import Source, unreadable
from mercer.errors import InvalidInput

MOST_ROWS = 1_048_575
"""Rows below the header that a sheet can hold."""
INSTALL = 'Install it with: pip install "mercer[excel]"'


def require(package: str, what: str) -> None:
    """Refuse a spreadsheet if the package that reads or writes it is not installed."""
    if find_spec(package) is None:
        raise InvalidInput(
            f"{what} needs the package {package}", got="an installation without it", advice=f"{INSTALL}, or use CSV."
        )


def read(source: Source) -> pl.DataFrame:
    """The named or only sheet of a spreadsheet. Its first row is the header."""
    require("fastexcel", f"Reading {source.name}")
    import fastexcel

    try:
        sheet = chosen(source, list(fastexcel.read_excel(source.path).sheet_names), "sheet")
        return pl.read_excel(
            source.path, sheet_name=sheet, engine="calamine", infer_schema_length=None, raise_if_empty=False
        )
    except InvalidInput:
        raise
    except Exception as error:  # calamine and Polars raise several kinds for damaged files
        raise unreadable(source, error) from None


def write(frame: pl.DataFrame, path: str, kind: str) -> None:
    """Write a table as the only sheet of a new file, of the kind "excel" or "ods"."""
    if frame.height > MOST_ROWS:
        raise InvalidInput(
            f"A sheet can hold {MOST_ROWS:,} rows", got=f"{frame.height:,}", advice="Write .parquet or .csv instead."
        )
    with open(path, "wb") as stream:
        if kind == "ods":
            _write_ods(frame, stream)
        else:
            frame.write_excel(stream, worksheet="predictions", float_precision=6)


# -- OpenDocument ------------------------------------------------------------------------------------------------------

_MIME = "application/vnd.oasis.opendocument.spreadsheet"
_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest manifest:version="1.2" '
    'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
    f'manifest:full-path="/" manifest:media-type="{_MIME}"/><manifest:file-entry manifest:full-path="content.xml" '
    'manifest:media-type="text/xml"/></manifest:manifest>'
)


def _write_ods(frame: pl.DataFrame, stream: IO[bytes]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), _MIME)  # first and not compressed, by the standard
        archive.writestr("META-INF/manifest.xml", _MANIFEST)
        with archive.open("content.xml", "w") as file:
            for text in _content(frame):
                file.write(text.encode())


def _content(frame: pl.DataFrame) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="UTF-8"?><office:document-content office:version="1.2" {_NAMES}>'
    yield '<office:body><office:spreadsheet><table:table table:name="predictions">'
    for row in ([frame.columns], frame.iter_rows()):
        for cells in row:
            yield f"<table:table-row>{''.join(map(_cell, cells))}</table:table-row>\n"
    yield "</table:table></office:spreadsheet></office:body></office:document-content>"


def _cell(value: Any) -> str:
    """A cell of OpenDocument.

    >>> _cell("a < b")
    '<table:table-cell office:value-type="string"><text:p>a &lt; b</text:p></table:table-cell>'
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "<table:table-cell/>"
    if isinstance(value, bool):
        kind, stored = "boolean", f"office:boolean-value={quoteattr(str(value).lower())}"
    elif isinstance(value, (int, float)):
        kind, stored = "float", f"office:value={quoteattr(repr(value))}"
    elif isinstance(value, date):
        kind, stored = "date", f"office:date-value={quoteattr(value.isoformat())}"
    else:
        kind, stored = "string", ""
    stored = f" {stored}" if stored else ""
    text = escape("".join(c for c in str(value) if c >= " " or c in "\t\n"))
    return f'<table:table-cell office:value-type="{kind}"{stored}><text:p>{text}</text:p></table:table-cell>'
