"""Tables that are written batch by batch."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from mercer.cli.destinations import require_writable
from mercer.cli.speaking import plain
from mercer.errors import InvalidInput
from mercer.files.replace import replacing

KINDS = {"csv": "csv", "tsv": "tsv", "parquet": "parquet", "pq": "parquet", "jsonl": "jsonl", "ndjson": "jsonl",
         "arrow": "arrow", "ipc": "arrow", "feather": "arrow", "xlsx": "excel", "ods": "ods"}  # fmt: skip
TEXTS = ("csv", "tsv", "jsonl")
"""Formats that are written batch by batch; in other formats all batches are written at the end."""


class Sink:
    """A table that is written in batches, to a stream or as Parquet files in the folder `parts`.

    Attributes
    ----------
    rows : int
        The number of rows so far.
    facts
        Entries of the JSON document beside the rows.
    """

    def __init__(self, kind: str, stream: IO[bytes] | None, parts: Path | None) -> None:
        self.kind, self.stream, self.parts, self.rows, self._count = kind, stream, parts, 0, 0
        self.facts: dict[str, Any] = {}

    def write(self, frame: pl.DataFrame) -> None:
        """Write one more batch."""
        if self.stream is not None:
            if self.kind == "jsonl":
                for row in frame.iter_rows(named=True):
                    self.stream.write((json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n").encode())
            else:
                separator = "\t" if self.kind == "tsv" else ","
                text = frame.write_csv(include_header=self.rows == 0 and self._count == 0, separator=separator)
                self.stream.write(text.encode())
        else:
            assert self.parts is not None
            frame.write_parquet(self.parts / f"{self._count:09}.parquet")
        self._count += 1
        self.rows += frame.height


def kind_of(path: str) -> str:
    """The format of an output file, from its suffix."""
    suffix = path.rpartition(".")[2].lower() if "." in os.path.basename(path) else ""
    if path == "-" or path.startswith("/dev/"):
        return "csv"
    if suffix not in KINDS:
        raise InvalidInput(
            "--out must end in .csv, .tsv, .parquet, .arrow, .jsonl, .xlsx or .ods",
            got=repr(os.path.basename(path)),
            advice="Use one of these suffixes.",
        )
    if KINDS[suffix] == "excel":
        from mercer.cli.spreadsheets import require

        require("xlsxwriter", "Writing .xlsx")
    return KINDS[suffix]


@contextmanager
def sink(path: str | None, kind: str | None = None) -> Iterator[Sink]:
    """The destination of the batches. An existing file is replaced at the end, and kept if anything goes wrong."""
    if kind == "document":
        with _document() as whole:
            yield whole
        return
    if path is None or path == "-":
        yield Sink(kind or "csv", sys.stdout.buffer, None)
        sys.stdout.buffer.flush()
        return
    require_writable(path)
    kind = kind or kind_of(path)
    target = Path(path).expanduser()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device gets each batch at once
            with open(target, "wb") as stream:
                yield Sink(kind if kind in TEXTS else "csv", stream, None)
            return
        with replacing(str(target)) as beside:
            if kind in TEXTS:
                with open(beside, "wb") as stream:
                    yield Sink(kind, stream, None)
            else:
                with tempfile.TemporaryDirectory(prefix="mercer-", ignore_cleanup_errors=True) as folder:
                    yield Sink(kind, None, Path(folder))
                    batches = pl.scan_parquet(sorted(Path(folder).glob("*.parquet")), glob=False)
                    if kind == "parquet":
                        batches.sink_parquet(beside)
                    elif kind == "arrow":
                        batches.sink_ipc(beside)
                    else:
                        from mercer.cli import spreadsheets

                        spreadsheets.write(batches.collect(), beside, kind)
    except BrokenPipeError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(
            f"{path} must be a path that can be written, on a disk with free space",
            got=getattr(error, "strerror", None) or str(error).rpartition(": ")[2],
            advice="Choose another path, or free disk space. Nothing was written.",
        ) from None


@contextmanager
def _document() -> Iterator[Sink]:
    """Print one complete JSON document to stdout: `facts`, and the rows as "predictions"."""
    with tempfile.TemporaryFile() as stream:
        target = Sink("jsonl", stream, None)
        yield target
        stream.seek(0)
        head = json.dumps(plain(target.facts), ensure_ascii=False, indent=2, allow_nan=False).removesuffix("\n}")
        sys.stdout.write(f'{head},\n  "predictions": [')
        for k, line in enumerate(stream):
            sys.stdout.write((",\n    " if k else "\n    ") + line.decode().rstrip())
        sys.stdout.write("\n  ]\n}\n")


def parts(frame: pl.DataFrame, predicted: dict[str, Any], *, keep: bool) -> pl.DataFrame:
    """The columns to write: the predicted ones, and with `keep` before them the columns of the input."""
    new = pl.DataFrame(predicted)
    if not keep:
        return new
    clash = {name: f"{name}_input" for name in frame.columns if name in new.columns}
    flat = [pl.col(name).cast(pl.String) for name, dtype in zip(frame.columns, frame.dtypes) if dtype.is_nested()]
    return pl.concat([frame.with_columns(flat).rename(clash), new], how="horizontal")
