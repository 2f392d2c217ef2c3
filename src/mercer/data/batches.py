"""Rows that are read in batches, again for every pass: from files, memory-mapped arrays and functions.

A fit that needs only sums over rows never holds them all: its number of rows is limited by the disk, not by the memory.
This is the only module that reads files of rows outside of the command line. Parquet and Arrow files need Polars.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.memory import HELD

Array = NDArray[Any]
Batch = tuple[Array, Array | None]
SCANS = {".parquet": "scan_parquet", ".arrow": "scan_ipc", ".ipc": "scan_ipc", ".feather": "scan_ipc"}
"""The function of Polars that reads each kind of file."""
KINDS = "a .parquet, .arrow, .ipc or .feather file, a folder of them, a .npy file, an array, or a function"


class Batches:
    """Rows of numbers, batch by batch.

    Parameters
    ----------
    source : str, Path, array or function
        A .parquet, .arrow, .ipc or .feather file, or a folder of files of one of these kinds (read in the order of
        their names); a .npy file; an array, for instance memory-mapped; or a function without arguments that returns an
        iterator over batches, pairs (X, y) or X alone, the same ones at every call.
    target : str or None
        The name of the target column of a file; the other columns are features.

    Attributes
    ----------
    names : list of str or None
        The names of the columns, or None if the source has none.

    Examples
    --------
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> rows = Batches(X)
    >>> rows.n, [X.shape for X, y in rows]
    (5, [(5, 2)])
    >>> def halves():
    ...     yield X[:2], np.zeros(2)
    ...     yield X[2:], np.ones(3)
    >>> Batches(halves).n, [y.sum() for X, y in Batches(halves)]
    (5, [np.float64(0.0), np.float64(3.0)])
    """

    def __init__(self, source: Any, target: str | None = None) -> None:
        self.names: list[str] | None = None
        self._n: int | None = None
        if isinstance(source, (str, os.PathLike)) and Path(source).suffix != ".npy":
            self._read = self._files(Path(source), target)
            return
        if target is not None:
            raise InvalidInput(
                "`target` names a column of a file",
                got=f"target={target!r} with {type(source).__name__}",
                advice="Pass the targets as y, or in the pairs that the function yields.",
            )
        if callable(source):
            self._read = lambda: _pairs(source)
        elif isinstance(source, (str, os.PathLike)):
            self._read = self._array(_opened(source))
        elif isinstance(source, np.ndarray):
            self._read = self._array(source)
        else:
            raise _unknown(type(source).__name__)

    @property
    def n(self) -> int:
        """The number of rows; a function is called once to count them."""
        if self._n is None:
            self._n = sum(len(X) for X, _ in self)
        return self._n

    def __iter__(self) -> Iterator[Batch]:
        start = 0
        for X, y in self._read():
            try:
                checked = as_vectors(X)
            except InvalidInput as error:
                raise InvalidInput(
                    f"The rows from {start:,} on must be complete rows of numbers",
                    got=error.got,
                    advice="Correct the source, or leave such rows out of it.",
                ) from None
            start += len(checked)
            yield checked, y

    def _array(self, A: Array) -> Callable[[], Iterator[Batch]]:
        if A.ndim != 2 or 0 in A.shape:
            raise InvalidInput(
                "An array of rows must have two dimensions, and rows",
                got=f"shape {A.shape}",
                advice="Pass X of (n, d).",
            )
        self._n, step = len(A), max(1, HELD // A.shape[1])
        return lambda: ((np.asarray(A[i : i + step]), None) for i in range(0, len(A), step))

    def _files(self, path: Path, target: str | None) -> Callable[[], Iterator[Batch]]:
        """Batches of Parquet or Arrow files."""
        paths = sorted(p for p in path.iterdir() if p.suffix in SCANS) if path.is_dir() else [path]
        kinds = {p.suffix for p in paths}
        if len(kinds) != 1 or kinds.isdisjoint(SCANS):
            raise _unknown(f"{str(path)!r}" + (f" with files of {len(kinds)} kinds" if path.is_dir() else ""))
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
        frame = getattr(pl, SCANS[kinds.pop()])(paths)
        schema = frame.collect_schema()
        names, features = schema.names(), [name for name in schema.names() if name != target]
        if target is not None and target not in names:
            raise InvalidInput(
                "`target` must be a column of the file",
                got=repr(target),
                advice=f"The columns are {', '.join(names[:10])}.",
            )
        others = [name for name in names if not (schema[name].is_numeric() or schema[name] == pl.Boolean)]
        if others:
            raise InvalidInput(
                "The columns of a file of rows must be numbers",
                got=f"{others[0]!r} of type {schema[others[0]]}",
                advice="Encode it as numbers, or leave it out of the file.",
            )
        self.names, self._n = features, int(frame.select(pl.len()).collect().item())
        single = all(schema[name] == pl.Float32 for name in features)
        kind, step = pl.Float32 if single else pl.Float64, max(1, HELD // len(names))

        def batches() -> Iterator[Batch]:
            for start in range(0, self.n, step):
                part = frame.slice(start, step).collect()
                X = part.select(pl.col(features).cast(kind)).to_numpy()
                y = None if target is None else part[target].cast(pl.Float64).to_numpy()
                yield np.ascontiguousarray(X), y

        return batches


def _opened(path: Any) -> Array:
    """The array of a .npy file, in the file."""
    try:
        A: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInput("A .npy file must hold an array of numbers", got=str(error), advice="Check it.") from None
    return A


def _pairs(function: Callable[[], Any]) -> Iterator[Batch]:
    """The batches of a user's function, as pairs."""
    for batch in function():
        X, y = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        if y is not None and len(y) != len(X):
            raise InvalidInput(
                "A batch (X, y) must have as many targets as rows",
                got=f"{len(X)} rows and {len(y)} targets",
                advice="Yield them in pairs.",
            )
        yield np.asarray(X), None if y is None else np.asarray(y)


def _unknown(got: str) -> InvalidInput:
    return InvalidInput(
        f"Rows in batches must come from {KINDS}", got=got, advice="Write the rows to a file of one of these kinds."
    )


def sampled(batches: Batches, count: int, rng: np.random.Generator) -> tuple[Array, Array | None]:
    """Rows drawn at random without replacement, in random order, and all targets, in one pass.

    Every row gets a random key, and the smallest keys win: the sample does not depend on the sizes of the batches.

    >>> X, y = sampled(Batches(np.arange(100.0)[:, None]), 3, np.random.default_rng(0))
    >>> X.shape, y
    ((3, 1), None)
    """
    if hasattr(batches, "drawn"):  # rows on a cluster are drawn there, by the same keys
        return batches.drawn(count, rng)[0], None
    kept: Array | None = None
    keys = np.empty(0)
    targets: list[Array] = []
    for X, y in batches:
        drawn = rng.random(len(X))
        kept = X if kept is None else np.concatenate([kept, X])
        keys = np.concatenate([keys, drawn])
        best = np.argsort(keys, kind="stable")[:count]
        kept, keys = kept[best], keys[best]
        if y is not None:
            targets.append(np.asarray(y))
    if kept is None:
        raise InvalidInput("A source of rows must have rows", got="none", advice="Check the source.")
    return kept, np.concatenate(targets) if targets else None
