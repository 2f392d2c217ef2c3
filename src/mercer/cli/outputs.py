"""Output files: which paths can be written, and tables that are written piece by piece."""

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

from mercer.cli.speaking import plain
from mercer.errors import InvalidInput
from mercer.files.replace import replacing

KINDS = {"csv": "csv", "tsv": "tsv", "parquet": "parquet", "pq": "parquet", "jsonl": "jsonl", "ndjson": "jsonl",
         "arrow": "arrow", "ipc": "arrow", "feather": "arrow"}  # fmt: skip


def require_writable(path: str) -> None:
    """Refuse at once what could not be written at the end."""
    target = Path(path).expanduser()
    folder = target.parent
    why = None
    if target.is_dir():
        why = "a folder"
    elif not folder.is_dir():
        why = f"no folder {folder}"
    elif target.exists() and not os.access(target, os.W_OK):
        why = "a file that you may not write"
    elif not target.exists() and not os.access(folder, os.W_OK):
        why = f"a folder that you may not write to: {folder}"
    if why is not None:
        raise InvalidInput(f"{path} must be a path that can be written", got=why, advice="Choose another path.")


def require_outputs(outputs: dict[str, str | None], inputs: tuple[str, ...]) -> None:
    """Refuse outputs, by the option that names them, that cannot be written, are an input, or are each other."""
    taken = {os.path.realpath(Path(path).expanduser()): path for path in inputs if path != "-"}
    for option, path in outputs.items():
        if path is None or path == "-":
            continue
        require_writable(path)
        place = os.path.realpath(Path(path).expanduser())
        if not os.path.exists(place) or os.path.isfile(place):  # several may write to one pipe or device
            same = next((name for known, name in taken.items() if _same(place, known)), None)
            if same is not None:
                what = "an input" if same in inputs else "another output"
                raise InvalidInput(
                    f"{option} must be a file of its own",
                    got=f"{path}, which is {what} of this command, too",
                    advice="Choose another name. Nothing was written.",
                )
            taken[place] = path


def _same(one: str, other: str) -> bool:
    """Whether two paths lead to one file, also by a hard link or another spelling of the name."""
    try:
        return one == other or os.path.samefile(one, other)
    except OSError:
        return False


class Sink:
    """A table that is written in pieces: to stdout, or to a file that appears when the last piece is in."""

    def __init__(self, kind: str, stream: IO[bytes] | None, parts: Path | None) -> None:
        self.kind, self.stream, self.parts, self.rows, self._count = kind, stream, parts, 0, 0
        self.facts: dict[str, Any] = {}

    def write(self, frame: pl.DataFrame) -> None:
        """One more piece."""
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
    """The format of an output by its suffix."""
    suffix = path.rpartition(".")[2].lower() if "." in os.path.basename(path) else ""
    if path == "-" or path.startswith("/dev/"):
        return "csv"
    if suffix not in KINDS:
        raise InvalidInput(
            "--out must end in .csv, .tsv, .parquet, .arrow or .jsonl",
            got=repr(os.path.basename(path)),
            advice="Give the file one of these endings.",
        )
    return KINDS[suffix]


@contextmanager
def sink(path: str | None, kind: str | None = None) -> Iterator[Sink]:
    """Where pieces go; a file of this name is replaced at the end, and stays as it was if anything goes wrong."""
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
        if target.exists() and not target.is_file():  # a pipe or a device gets the pieces as they come
            with open(target, "wb") as stream:
                yield Sink(kind if kind in ("csv", "tsv", "jsonl") else "csv", stream, None)
            return
        with replacing(str(target)) as beside:
            if kind not in ("parquet", "arrow"):
                with open(beside, "wb") as stream:
                    yield Sink(kind, stream, None)
            else:
                with tempfile.TemporaryDirectory(prefix="mercer-", ignore_cleanup_errors=True) as folder:
                    yield Sink(kind, None, Path(folder))
                    pieces = pl.scan_parquet(sorted(Path(folder).glob("*.parquet")), glob=False)
                    if kind == "parquet":
                        pieces.sink_parquet(beside)
                    else:
                        pieces.sink_ipc(beside)
    except BrokenPipeError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(
            f"{path} must be a path with room that can be written",
            got=getattr(error, "strerror", None) or str(error).rpartition(": ")[2],
            advice="Nothing was kept. Choose another path, or make room.",
        ) from None


@contextmanager
def _document() -> Iterator[Sink]:
    """One JSON document on stdout, when it is whole: `facts`, and the rows as "predictions"."""
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
    """The columns to write: those that were predicted, after those of the input if asked for."""
    new = pl.DataFrame(predicted)
    if not keep:
        return new
    clash = {name: f"{name}_input" for name in frame.columns if name in new.columns}
    flat = [pl.col(name).cast(pl.String) for name, dtype in zip(frame.columns, frame.dtypes) if dtype.is_nested()]
    return pl.concat([frame.with_columns(flat).rename(clash), new], how="horizontal")
