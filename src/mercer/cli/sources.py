"""Input files: their format is detected from the first bytes; they are decompressed, and text becomes UTF-8.

Names are only hints. A Parquet file called data.csv is read as Parquet, with a note; a file that cannot be a table is
refused with its kind.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import json
import lzma
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

from mercer.errors import InvalidInput
from mercer.words import one_line

SUFFIXES = {
    "csv": "csv", "tsv": "csv", "tab": "csv", "txt": "csv", "dat": "csv", "data": "csv",
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
    "xlsx": "excel", "xlsm": "excel", "xlsb": "excel", "xls": "excel", "ods": "ods",
    "db": "sqlite", "sqlite": "sqlite", "sqlite3": "sqlite", "duckdb": "duckdb",
    "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "libsvm": "libsvm", "svmlight": "libsvm", "svm": "libsvm",
}  # fmt: skip
COMPRESSED = {"gz": "gzip", "zst": "zstd", "zstd": "zstd", "bz2": "bzip2", "xz": "xz"}
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
TABLES = {
    b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow-stream", b"SQLite format 3\0": "sqlite",
    b"\xd0\xcf\x11\xe0": "excel",
}  # fmt: skip
SEVERAL = {"sqlite": "table", "duckdb": "table", "excel": "sheet", "ods": "sheet"}
"""Formats that may hold several tables, and what these are called: DATA::NAME is one of them."""
NOT_TABLES = {
    b"PK\x03\x04": ("a ZIP archive, or a damaged spreadsheet", "Unzip it, or save the sheet again."),
    b"%PDF": ("a PDF", "Pass its table as CSV or Parquet."),
    b"\x89HDF": ("an HDF5 file", "Export the table as Parquet or CSV."),
    b"\x80\x04": ("a Python pickle, which could run code", "Save the table as Parquet or CSV."),
    b"\x80\x05": ("a Python pickle, which could run code", "Save the table as Parquet or CSV."),
    b"\x93NUMPY": ("a NumPy array", "Save it as CSV or Parquet with column names."),
    b"\x89PNG": ("an image", "Pass a table."),
}
BLOCK = 1 << 20
"""Bytes that are copied at a time."""
HEAD = 1 << 16
"""Bytes at the beginning of a text from which its layout is detected."""
READABLE = (
    "CSV, TSV, Parquet, Arrow, JSON lines, LIBSVM, Excel, ODS, SQLite and DuckDB can be read, also compressed as .gz, "
    ".zst, .bz2 or .xz."
)


@dataclass
class Source:
    """A file that is ready to be parsed.

    Attributes
    ----------
    name : str
        The name that the user gave.
    path : Path
        The path of its decompressed bytes, text in UTF-8.
    format : str
        One of csv, parquet, arrow, arrow-stream, jsonl, json, libsvm, excel, ods, sqlite or duckdb.
    suffix : str
        The suffix of its name, without the suffix of a compression.
    folder : Path
        A folder for temporary files.
    part : str or None
        The table or sheet that the user named after ::, or None.
    notes : list of str
        The decisions that were made about it.
    """

    name: str
    path: Path
    format: str
    suffix: str
    folder: Path
    part: str | None = None
    notes: list[str] = field(default_factory=list)

    def head(self) -> str:
        """The beginning of a text, in whole lines."""
        with open(self.path, "rb") as file:
            start = file.read(HEAD)
            more = bool(file.read(1))
        text = start.decode("utf-8", "ignore").removeprefix("\ufeff")
        return text.rpartition("\n")[0] if more and "\n" in text else text


@contextmanager
def opened(
    path: str, *, encoding: str | None = None, format: str | None = None, most: int | None = None
) -> Iterator[Source]:
    """The file (or standard input for "-"), decompressed if needed; temporary files are removed at the end.

    With `most` only the beginning of a text or of a compressed file, of that many bytes.
    """
    folder = Path(tempfile.mkdtemp(prefix="mercer-"))
    try:
        yield _open_or_refuse(path, folder, encoding, format, most)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def address(path: str) -> tuple[str, str | None]:
    """The file and the table or sheet in it: houses.db::sales, book.xlsx::May.

    >>> address("houses.db::sales"), address("houses.csv")
    (('houses.db', 'sales'), ('houses.csv', None))
    """
    if "::" not in path or os.path.exists(os.path.expanduser(path)):
        return path, None
    file, _, part = path.rpartition("::")
    return (file, part) if file and part else (path, None)


def _open_or_refuse(path: str, folder: Path, encoding: str | None, format: str | None, most: int | None) -> Source:
    try:
        return _open(path, folder, encoding, format, most)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise InvalidInput(
            f"{path} must be readable" + f", and {folder.parent} must have space to decompress it" * full,
            got=error.strerror or str(error),
            advice="Set TMPDIR to a folder with free space." if full else "Check the path and its permissions.",
        ) from None


def _open(address_: str, folder: Path, encoding: str | None, format: str | None, most: int | None) -> Source:
    path, part = address(address_)
    name = "standard input" if path == "-" else path
    file = _from_stdin(folder) if path == "-" else existing(path)
    parts = [] if path == "-" else [part.lower() for part in file.name.split(".")[1:]]
    if parts and parts[-1] in COMPRESSED:
        parts.pop()
    suffix = parts[-1] if parts else ""
    source = Source(name, file, "", suffix, folder, part)
    _decompress(source, folder, most)
    start = _start(source.path)
    if not start:
        raise InvalidInput(f"{name} must hold a table", got="an empty file", advice="Check the program that wrote it.")
    kind = _kind_of_bytes(source.path, start)
    named = format or SUFFIXES.get(suffix)
    if part is not None and kind not in SEVERAL:
        raise InvalidInput(
            f"{name} must be a database or a spreadsheet, of which ::{part} is a table or a sheet",
            got=f"a file of another kind{'' if kind is None else f', {kind}'}",
            advice=f"Leave ::{part} out.",
        )
    if kind is not None:
        if named is not None and named.partition("-")[0] != kind.partition("-")[0]:
            source.notes.append(f"{name} is read as {kind.title()}, which it is in spite of its name")
        source.format = kind
        return source
    _refuse_other_kinds(name, start)
    if encoding is None and b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidInput(
            f"{name} must hold a table",
            got="binary data of an unknown kind",
            advice=f"If it is text, set its encoding, for instance --encoding utf-16-le. {READABLE}",
        )
    if most is not None and source.path == file:
        with open(file, "rb") as stream:
            source.path = _copied(stream, folder / "beginning", most)
    _to_utf8(source, folder, encoding)
    detected = format or ("libsvm" if named == "libsvm" else _kind_of_text(source))
    binary_name = named in ("parquet", "arrow", *SEVERAL)
    if binary_name or (named is not None and named != detected and {named, detected} != {"json", "jsonl"}):
        source.notes.append(f"{name} is read as {detected.upper()}, which it is in spite of its name")
    source.format = detected
    return source


def _kind_of_bytes(path: Path, start: bytes) -> str | None:
    """The format of a binary file, from its first bytes; None if it is another one."""
    if start[8:12] == b"DUCK":
        return "duckdb"
    if start.startswith(b"PK\x03\x04"):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if names & {"xl/workbook.xml", "xl/workbook.bin"}:
                return "excel"
            if "content.xml" in names and "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                return "ods" if b"opendocument.spreadsheet" in archive.read("mimetype") else None
    return next((kind for magic, kind in TABLES.items() if start.startswith(magic)), None)


def existing(path: str) -> Path:
    """The file at this path, or an error with a similar name."""
    file = Path(path).expanduser()
    if file.is_dir():
        raise InvalidInput(f"{path} must be a file", got="a folder", advice="Name a file in it.")
    if not file.exists():
        near: list[str] = []
        with suppress(OSError):
            stem, _, ending = file.name.partition(".")
            others = sorted(os.listdir(file.parent), key=lambda name: name.endswith(ending))
            by_stem = {name.partition(".")[0]: name for name in others}  # of equal stems the one with this ending
            near = [by_stem[name] for name in get_close_matches(stem, by_stem, 1, 0.7)]
        advice = f"Did you mean {file.parent / near[0]}?" if near else "Check the path; - is standard input."
        raise InvalidInput(f"{path} must be a file", got="no file of that name", advice=advice)
    return file


def _from_stdin(folder: Path) -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInput(
            "- reads a table from standard input",
            got="a terminal",
            advice="Pipe a file into the command: cat data.csv | mercer …",
        )
    return _copied(sys.stdin.buffer, folder / "stdin")


def _copied(stream: IO[bytes], target: Path, most: int | None = None) -> Path:
    with open(target, "wb") as file:
        if most is None:
            shutil.copyfileobj(stream, file, BLOCK)
        else:
            file.write(stream.read(most))
    return target


def _start(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(4096)


def _decompress(source: Source, folder: Path, most: int | None = None) -> None:
    if not source.path.is_file():  # a named pipe, such as <(command), can be read only once
        with open(source.path, "rb") as stream:
            source.path = _copied(stream, folder / "piped")
    start = _start(source.path)
    compression = next((kind for magic, kind in COMPRESSIONS.items() if start.startswith(magic)), None)
    if compression is None:
        ending = source.name.rpartition(".")[2].lower()
        if ending in COMPRESSED and start:
            source.notes.append(f"{source.name} is not compressed in spite of its name")
        return
    target = folder / "decompressed"
    try:
        if compression == "zstd":
            _decompress_zstd(source, target)
        else:
            openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
            with openers[compression](source.path, "rb") as stream:
                _copied(stream, target, most)
    except (EOFError, zlib.error, lzma.LZMAError, OSError, ValueError) as error:
        if isinstance(error, InvalidInput) or getattr(error, "errno", None) is not None:
            raise
        raise InvalidInput(
            f"{source.name} must be a complete {compression} file",
            got=first_line(error),
            advice="Copy it again: it is cut off or damaged.",
        ) from None
    source.path = target


def _decompress_zstd(source: Source, target: Path) -> None:
    """Decompress with Python 3.14 or later, else with Polars, which can read text only."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        import polars as pl

        try:
            lines = pl.scan_csv(
                source.path, has_header=False, separator="\x01", quote_char=None, infer_schema=False,
                new_columns=["line"], truncate_ragged_lines=True,
            )  # fmt: skip
            lines.sink_csv(target, include_header=False, quote_style="never", separator="\x01")
        except pl.exceptions.PolarsError as error:
            raise InvalidInput(
                f"{source.name} must be a complete zstd file of text, since Python before 3.14 reads no other",
                got=one_line(first_line(error), 80),
                advice="Decompress it first with zstd -d.",
            ) from None
        return
    with zstd.open(source.path, "rb") as stream:
        _copied(stream, target)


def first_line(error: BaseException) -> str:
    """The first line of a message."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def unreadable(source: Source, error: Exception) -> InvalidInput:
    """The error for a file that could not be parsed in its format."""
    return InvalidInput(
        f"{source.name} must be readable as {source.format.upper()}",
        got=one_line(first_line(error), 200),
        advice="Check whether it is cut off or has an unclosed quote, or set --format.",
    )


def _refuse_other_kinds(name: str, start: bytes) -> None:
    for magic, (what, advice) in NOT_TABLES.items():
        if start.startswith(magic):
            raise InvalidInput(f"{name} must hold a table", got=what, advice=f"{advice} {READABLE}")
    if start[8:9] == b"{" and b"__metadata__" in start:
        raise InvalidInput(
            f"{name} must hold a table",
            got="a model file",
            advice="Put the model first: mercer predict MODEL DATA.",
        )
    text = start.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InvalidInput(f"{name} must hold a table", got="a web page or XML", advice="Download the file itself.")
    if text.startswith((b"@relation", b"@attribute")):
        raise InvalidInput(f"{name} must hold a table", got="an ARFF file", advice="Save it as CSV.")


def _to_utf8(source: Source, folder: Path, encoding: str | None) -> None:
    """Convert text to UTF-8; lines that are not valid UTF-8 are read as latin-1, with a note."""
    start = _start(source.path)
    if encoding is None and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
        source.notes.append(f"{source.name} is read as UTF-16")
    if encoding is not None:
        target = folder / "text"
        try:
            with (
                open(source.path, encoding=encoding, newline="") as old,
                open(target, "w", encoding="utf-8", newline="") as new,
            ):
                shutil.copyfileobj(old, new, BLOCK)
        except (UnicodeError, LookupError) as error:
            raise InvalidInput(
                f"{source.name} must be in the encoding {encoding}", got=str(error), advice="Try --encoding latin-1."
            ) from None
        source.path = target
        return
    if not _is_utf8(source.path):
        _from_latin1(source, folder)
    if b"\r" in start and b"\n" not in start:  # line ends of the classic Mac OS
        with open(source.path, encoding="utf-8") as old, open(folder / "lines", "w", encoding="utf-8") as new:
            shutil.copyfileobj(old, new, BLOCK)
        source.path = folder / "lines"


def _from_latin1(source: Source, folder: Path) -> None:
    """Convert each line that is not UTF-8 from latin-1."""
    target = folder / "latin1"
    first = wrong = 0
    with open(source.path, "rb") as old, open(target, "wb") as new:
        for k, line in enumerate(old, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                first, wrong = first or k, wrong + 1
                line = line.decode("latin-1").encode()
            new.write(line)
    lines = f"{wrong:,} lines are" if wrong > 1 else "1 line is"
    source.notes.append(f"{lines} not UTF-8 (first: line {first}) and read as latin-1; set --encoding if that is wrong")
    source.path = target


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
LIBSVM = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*+(?:\s++qid:\d++)?(?:\s++\d++:{_NUMBER})*+\s*+(?:#.*)?")


def _kind_of_text(source: Source) -> str:
    lines = [line for line in source.head().splitlines() if line.strip()][:20]
    if not lines:
        raise InvalidInput(
            f"{source.name} must hold a table", got="blank lines", advice="Check the program that wrote it."
        )
    if lines[0].lstrip().startswith("["):
        return "json"
    if lines[0].lstrip().startswith("{"):
        try:
            json.loads(lines[0])
        except ValueError:
            if len(lines) > 1 and not lines[1].lstrip().startswith("{"):
                return "json"
        return "jsonl"
    if any(":" in line for line in lines) and all(LIBSVM.fullmatch(line.strip()) for line in lines):
        return "libsvm"
    return "csv"
