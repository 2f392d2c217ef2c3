"""Files of rows: Parquet and Arrow files, one or a folder of them, read span by span, and .npy files.

Polars reads Parquet and Arrow: this is the only module that imports it outside of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Array = NDArray[Any]
Batch = tuple[Any, Array | None]
"""Rows, an array or a frame, and their targets."""
SCANS = {".parquet": "scan_parquet", ".arrow": "scan_ipc", ".ipc": "scan_ipc", ".feather": "scan_ipc"}
"""The function of Polars that reads each kind of file."""
KINDS = (
    "a .parquet, .arrow, .ipc or .feather file, a folder of them, a .npy file, an array, or a function that starts "
    "anew at every call"
)


@dataclass(frozen=True)
class RowFiles:
    """Parquet or Arrow files, which this process or a worker reads.

    Attributes
    ----------
    paths
        The files, in their order.
    features, target
        The columns to read.
    single
        Whether arrays of the features are float32.
    mixed
        Whether some features are not numbers.
    n
        The number of rows.
    """

    paths: tuple[str, ...]
    features: tuple[str, ...]
    target: str | None
    single: bool
    mixed: bool
    n: int

    @classmethod
    def at(cls, path: Path, target: str | None) -> RowFiles:
        """The files at a path, a file or a folder, whose other columns than the target are features."""
        paths = sorted(p for p in path.iterdir() if p.suffix in SCANS) if path.is_dir() else [path]
        kinds = {p.suffix for p in paths}
        if len(kinds) != 1 or kinds.isdisjoint(SCANS):
            raise unknown(f"{str(path)!r}" + (f" with files of {len(kinds)} kinds" if path.is_dir() else ""))
        if not all(p.exists() for p in paths):
            raise InvalidInput("A file of rows must exist", got=f"{str(path)!r}", advice="Check the path.")
        try:
            import polars as pl
        except ImportError:
            raise InvalidInput(
                "Parquet and Arrow files need Polars",
                got="an installation without it",
                advice='Install it with: pip install "mercer[cli]"',
            ) from None
        with _readable(paths):
            frame = getattr(pl, SCANS[kinds.pop()])(paths)
            schema = frame.collect_schema()
            n = int(frame.select(pl.len()).collect().item())
        names, features = schema.names(), [name for name in schema.names() if name != target]
        if target is not None and target not in names:
            raise InvalidInput(
                "`target` must be a column of the file",
                got=repr(target),
                advice=f"Choose one of the columns {', '.join(names[:10])}.",
            )
        mixed = not all(schema[name].is_numeric() or schema[name] == pl.Boolean for name in features)
        single = all(schema[name] == pl.Float32 for name in features)
        return cls(tuple(map(str, paths)), tuple(features), target, single, mixed, n)

    def read(self, tables: bool, start: int, stop: int) -> Batch:
        """The rows from `start` to `stop`, as a frame or as an array, and their targets."""
        import polars as pl

        features, target = list(self.features), self.target
        columns = features if target is None else [*features, target]
        with _readable(self.paths):
            scan = getattr(pl, SCANS[Path(self.paths[0]).suffix])(list(self.paths))
            part = scan.select(columns).slice(start, stop - start).collect()
        y = None if target is None else part[target].to_numpy()
        if y is not None and target is not None and y.dtype == object and not part[target].null_count():
            y = y.astype(str)  # one array of short texts instead of millions of objects
        kind = pl.Float32 if self.single else pl.Float64
        X = part.select(features) if tables else part.select(pl.col(features).cast(kind)).to_numpy()
        return X if tables else np.ascontiguousarray(X), y

    def targets(self) -> Array | None:
        """The targets of all rows."""
        return replace(self, features=()).read(True, 0, self.n)[1]


def mapped_array(path: Any) -> Array:
    """The array of a .npy file, in the file."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "A .npy file must hold an array of numbers",
            got=f"{str(path)!r}: {error}",
            advice="Write it by np.save(path, X), with the numbers as an array X of floats.",
        ) from None


@contextmanager
def _readable(paths: Sequence[str | Path]) -> Iterator[None]:
    """Errors of the library that reads files, as ours."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as problem:
        where = Path(paths[0]) if len(paths) == 1 else Path(paths[0]).parent
        raise InvalidInput(
            "Files of rows must be complete, and those of a folder have the same columns of the same types",
            got=f"{str(where)!r}: {(str(problem).splitlines() or ['unreadable'])[0]}",
            advice="Check the files, or write them again.",
        ) from None


def unknown(got: str) -> InvalidInput:
    """The error for a source of rows of another kind."""
    return InvalidInput(
        f"Rows in batches must come from {KINDS}", got=got, advice="Write the rows to a file of one of these kinds."
    )
