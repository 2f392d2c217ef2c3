"""Rows that are read in batches, again for every pass: from files, memory-mapped arrays and functions.

A fit that needs only sums over rows never holds them all: its number of rows is limited by the disk, not by the memory.
This is the only module that reads files of rows outside of the command line. Parquet and Arrow files need Polars.

Complete rows of numbers are arrays. A file with other columns, or one that is read by `as_tables`, gives frames.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.columns import as_array
from mercer.data.digests import Keys, digest_at
from mercer.data.frames import is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import Points
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.memory import HELD

Array = NDArray[Any]
Batch = tuple[Any, Array | None]
"""Rows, an array or a frame, and their targets."""
SCANS = {".parquet": "scan_parquet", ".arrow": "scan_ipc", ".ipc": "scan_ipc", ".feather": "scan_ipc"}
"""The function of Polars that reads each kind of file."""
KINDS = (
    "a .parquet, .arrow, .ipc or .feather file, a folder of them, a .npy file, an array, or a function that starts "
    "anew at every call"
)
EMPTY = "Check the source; a function must start anew at every call, not continue an iterator."


class Batches:
    """Rows of numbers, or of a table, batch by batch.

    Parameters
    ----------
    source : str, Path, array or function
        A .parquet, .arrow, .ipc or .feather file, or a folder of files of one of these kinds (read in the order of
        their names); a .npy file; an array, for instance memory-mapped; or a function without arguments that returns an
        iterator over batches, pairs (X, y) or X alone, the same ones at every call; X are arrays or data frames.
    target : str or None
        The name of the target column of a file; the other columns are features.

    Attributes
    ----------
    names : list of str or None
        The names of the columns, or None if the source has none.
    tables : bool
        Whether the batches of a file are frames: it has columns that are not numbers, or `as_tables` asked for it.

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
        self.tables = False
        self._n: int | None = None
        self.span: FileSpan | None = None
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
            self._read = lambda tables: _pairs(source)
        elif isinstance(source, (str, os.PathLike)):
            self._read = self._array(_opened(source))
        elif isinstance(source, np.ndarray):
            self._read = self._array(source)
        else:
            raise _unknown(type(source).__name__)

    @classmethod
    def of(cls, X: Any, y: Any, target: str | None) -> Batches:
        """The rows that `fit` was given, whose targets are y, or the column `target` of a file: one of the two."""
        if target is not None and (y is not None or isinstance(X, cls)):
            raise InvalidInput(
                "`target` names the column of a file with the targets, in place of y",
                got=f"target={target!r} and {'rows in batches' if y is None else 'y'}",
                advice="Leave out one of them. For a `Batches`, name the column there: mc.Batches(path, target).",
            )
        return X if isinstance(X, cls) else cls(X, target)

    @property
    def n(self) -> int:
        """The number of rows; a function is called once to count them."""
        if self._n is None:
            self._n = sum(len(X) for X, _ in self)
        return self._n

    def __iter__(self) -> Iterator[Batch]:
        start, width = 0, None
        for X, y in self._read(self.tables):
            if not len(X):
                continue
            checked = X
            if not is_frame(X):
                try:
                    checked = as_vectors(X)
                except InvalidInput as error:
                    raise InvalidInput(
                        f"The rows from {start:,} on must be complete rows of numbers",
                        got=error.got,
                        advice="Correct the source, leave such rows out of it, or use an automatic model or the kernel "
                        "mc.TableKernel(), which accept missing values in files.",
                    ) from None
            width = checked.shape[1] if width is None else width
            if checked.shape[1] != width:
                raise InvalidInput(
                    f"The rows from {start:,} on must have {width} columns, as those before",
                    got=f"{checked.shape[1]} columns",
                    advice="Correct the source: all batches have the same columns.",
                )
            start += len(checked)
            yield checked, y

    def as_tables(self) -> Batches:
        """The same rows; those of a file as frames with all of their types and missing values."""
        other = copy(self)
        other.tables = self.names is not None
        return other

    def without(self, positions: Any) -> Batches:
        """The same rows without those at these positions.

        >>> [X.ravel() for X, y in Batches(np.arange(4.0)[:, None]).without([1, 2])]
        [array([0., 3.])]
        """
        gone = np.unique(np.asarray(positions, dtype=np.int64))

        def kept(start: int, X: Any, y: Array | None) -> Batch:
            first, last = np.searchsorted(gone, [start, start + len(X)])
            if first == last:
                return X, y
            index = np.setdiff1d(np.arange(len(X)), gone[first:last] - start)
            return frames.rows(X, index), None if y is None else y[index]

        return self._changed(kept, self.n - len(gone))

    def mapped(self, change: Callable[[Any], Any], targets: Callable[[Array], Array] | None = None) -> Batches:
        """The same rows, each batch changed by a function that treats every row by itself, and so its targets."""
        return self._changed(
            lambda start, X, y: (change(X), y if targets is None or y is None else targets(y)), self._n
        )

    def watched(self, report: Callable[[int], Any]) -> Batches:
        """The same rows; `report` is called with the number of rows that were read in this pass, after every batch."""

        def told(start: int, X: Any, y: Array | None) -> Batch:
            report(start + len(X))
            return X, y

        return self._changed(told, self._n)

    def _changed(self, change: Callable[[int, Any, Array | None], Batch], n: int | None) -> Batches:
        other = copy(self)
        other._n = n

        def read(tables: bool) -> Iterator[Batch]:
            start = 0
            for X, y in self.as_tables() if tables else self:
                changed = change(start, X, y)
                start += len(X)
                if len(changed[0]):
                    yield changed

        other._read = read
        return other

    def at(self, positions: Any) -> Batch:
        """The rows at these positions in ascending order, and their targets, in one pass."""
        index = np.unique(np.asarray(positions, dtype=np.int64))
        found, targets, start = None, list[Array](), 0
        for X, y in self:
            first, last = np.searchsorted(index, [start, start + len(X)])
            part = index[first:last] - start
            start += len(X)
            if first == last:
                continue
            found = frames.rows(X, part) if found is None else joined(found, frames.rows(X, part))
            targets += [] if y is None else [y[part]]
        return found, np.concatenate(targets) if targets else None

    def digest(self) -> Keys | None:
        """A digest of all rows in their order, the same for all sizes of batches; None if their values have no key.

        >>> X = np.arange(6.0).reshape(3, 2)
        >>> def one_by_one():
        ...     yield from (X[i : i + 1] for i in range(3))
        >>> bool((Batches(X).digest() == Batches(one_by_one).digest()).all())
        True
        """
        total, start = np.zeros(2, dtype=np.uint64), 0
        for X, _ in self:
            part = digest_at(X, start)
            if part is None:
                return None
            total, start = total + part, start + len(X)
        return total

    def _array(self, A: Array) -> Callable[[bool], Iterator[Batch]]:
        if A.ndim != 2 or 0 in A.shape:
            raise InvalidInput(
                "An array of rows must have two dimensions, and rows",
                got=f"shape {A.shape}",
                advice="Pass X of (n, d).",
            )
        self._n, step = len(A), max(1, HELD // A.shape[1])
        return lambda tables: ((np.asarray(A[i : i + step]), None) for i in range(0, len(A), step))

    def _files(self, path: Path, target: str | None) -> Callable[[bool], Iterator[Batch]]:
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
        with _readable(path, pl.exceptions.PolarsError):
            frame = getattr(pl, SCANS[kinds.pop()])(paths)
            schema = frame.collect_schema()
            n = int(frame.select(pl.len()).collect().item())
        names, features = schema.names(), [name for name in schema.names() if name != target]
        if target is not None and target not in names:
            raise InvalidInput(
                "`target` must be a column of the file",
                got=repr(target),
                advice=f"The columns are {', '.join(names[:10])}.",
            )
        self.tables = not all(schema[name].is_numeric() or schema[name] == pl.Boolean for name in features)
        self.names, self._n = features, n
        single = all(schema[name] == pl.Float32 for name in features)
        step = max(1, HELD // len(names))
        self.span = FileSpan(tuple(map(str, paths)), tuple(features), target, single)
        read = self.span

        def batches(tables: bool) -> Iterator[Batch]:
            for start in range(0, n, step):
                with _readable(path, pl.exceptions.PolarsError):
                    batch = read(tables, start, min(n, start + step))
                yield batch

        return batches


@dataclass(frozen=True)
class FileSpan:
    """Reads some rows of Parquet or Arrow files, in this process or on a worker.

    Attributes
    ----------
    paths
        The files, in their order.
    features, target
        The columns to read.
    single
        Whether arrays of the features are float32.
    """

    paths: tuple[str, ...]
    features: tuple[str, ...]
    target: str | None
    single: bool

    def __call__(self, tables: bool, start: int, stop: int) -> Batch:
        """The rows from `start` to `stop`, as a frame or as an array, and their targets."""
        import polars as pl

        features, target = list(self.features), self.target
        columns = features if target is None else [*features, target]
        part = self._scan().select(columns).slice(start, stop - start).collect()
        y = None if target is None else part[target].to_numpy()
        if y is not None and target is not None and y.dtype == object and not part[target].null_count():
            y = y.astype(str)  # one array of short texts instead of millions of objects
        kind = pl.Float32 if self.single else pl.Float64
        X = part.select(features) if tables else part.select(pl.col(features).cast(kind)).to_numpy()
        return X if tables else np.ascontiguousarray(X), y

    def targets(self, n: int) -> Array | None:
        """The targets of the first n rows."""
        return replace(self, features=())(True, 0, n)[1]

    def _scan(self) -> Any:
        import polars as pl

        return getattr(pl, SCANS[Path(self.paths[0]).suffix])(list(self.paths))


def _opened(path: Any) -> Array:
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
def _readable(path: Path, error: type[Exception]) -> Iterator[None]:
    """Errors of the library that reads files, as ours."""
    try:
        yield
    except (error, OSError) as problem:
        raise InvalidInput(
            "Files of rows must be complete, and those of a folder have the same columns of the same types",
            got=f"{str(path)!r}: {(str(problem).splitlines() or ['unreadable'])[0]}",
            advice="Check the files, or write them again.",
        ) from None


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
        yield X if is_frame(X) else np.asarray(X), None if y is None else np.asarray(y)


def _unknown(got: str) -> InvalidInput:
    return InvalidInput(
        f"Rows in batches must come from {KINDS}", got=got, advice="Write the rows to a file of one of these kinds."
    )


class Drawn(NamedTuple):
    """Rows drawn at random.

    Attributes
    ----------
    X
        The rows, in random order.
    at
        Their positions in the source.
    y
        The targets of all rows of the source, or None.
    """

    X: Any
    at: NDArray[np.int64]
    y: Array | None


def sampled(batches: Batches, count: int, rng: np.random.Generator) -> tuple[Any, Array | None]:
    """Rows drawn at random without replacement, in random order, and all targets: see `drawn`.

    >>> X, y = sampled(Batches(np.arange(100.0)[:, None]), 3, np.random.default_rng(0))
    >>> X.shape, y
    ((3, 1), None)
    """
    found = drawn(batches, count, rng)
    return found.X, found.y


def drawn(
    batches: Batches, count: int, rng: np.random.Generator, also: Callable[[int, Any, Array | None], Any] | None = None
) -> Drawn:
    """Rows drawn at random without replacement, in one pass.

    Every row gets a random key, and the smallest keys win: the sample does not depend on the sizes of the batches.

    Parameters
    ----------
    batches
        The rows.
    count
        How many to draw.
    rng
        The source of the keys.
    also
        Called with the position of each batch, its rows and their targets; returns positions within the batch of rows
        that are drawn in any case, beside the others.

    Examples
    --------
    >>> drawn(Batches(np.arange(100.0)[:, None]), 3, np.random.default_rng(0), lambda start, X, y: [7]).at
    array([ 7, ...])
    """
    if also is None and hasattr(batches, "drawn"):  # rows on a cluster are drawn there, by the same keys
        found: Drawn = batches.drawn(count, rng)
        return found
    kept: Any = None
    keys, index = np.empty(0), np.empty(0, dtype=np.int64)
    targets: list[Array] = []
    start = 0
    for X, y in batches:
        key = rng.random(len(X))
        certain = np.asarray([] if also is None else also(start, X, y), dtype=np.int64)
        key[certain] = -1.0
        count += len(certain)
        # Only rows that may win are copied: a batch is much larger than its share of the sample.
        new = np.arange(len(X)) if len(keys) < count else np.flatnonzero(key <= keys[-1])
        if len(new):
            kept = frames.rows(X, new) if kept is None else joined(kept, frames.rows(X, new))
            keys, index = np.append(keys, key[new]), np.append(index, start + new)
            best = np.argsort(keys, kind="stable")[:count]
            kept, keys, index = frames.rows(kept, best), keys[best], index[best]
        start += len(X)
        if y is not None:
            targets.append(np.array(y))  # a copy: a function may use its array again for the next batch
    if kept is None:
        raise InvalidInput("A source of rows must have rows", got="none", advice=EMPTY)
    return Drawn(kept, index, np.concatenate(targets) if targets else None)


class StreamedPoints(Points):
    """All rows of a source as points, of which only a sample is held.

    Parameters
    ----------
    batches
        The rows.
    sample
        Some of them, in random order.

    Examples
    --------
    >>> batches = Batches(np.arange(50.0)[:, None])
    >>> points = StreamedPoints(batches, drawn(batches, 5, np.random.default_rng(0)))
    >>> points.n, points.sample.n
    (50, 5)
    """

    def __init__(self, batches: Batches | None, sample: Drawn, n: int | None = None) -> None:
        super().__init__(sample.X)
        self._source, self._drawn, self.sample = batches, sample, Points(sample.X)
        self.n = self.batches.n if n is None else n

    @property
    def batches(self) -> Batches:
        """The rows; a pickled model does not hold them."""
        if self._source is None:
            raise InvalidInput(
                "A pickled model does not hold the source of the rows that it was fitted to in batches",
                got="a request that reads these rows again",
                advice="Ask the model that was fitted, or fit again.",
            )
        return self._source

    def take(self, index: Any) -> Points:
        raise InvalidInput(
            "Rows in batches are used all, with weights > 0",
            got="a request for some of them",
            advice="Leave the others out of the source, or load the rows as an array.",
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"batches": None, "sample": self._drawn._replace(y=None), "n": self.n}


def is_source(X: Any) -> bool:
    """Whether X are rows that are read in batches: a `Batches`, or the path of a file or folder.

    >>> is_source("rows.parquet"), is_source([[1.0]])
    (True, False)
    """
    return isinstance(X, (str, os.PathLike, Batches))


class Witnesses:
    """Rows that a sample must hold to show what all rows are like: missing values in a column, and every class.

    Parameters
    ----------
    classes
        Whether the targets are labels, of each of which the sample must hold two rows.

    Examples
    --------
    >>> import pandas as pd
    >>> Witnesses()(0, pd.DataFrame({"a": [1.0, None, None], "b": ["x", "z", "x"]}), None)
    [1]
    >>> Witnesses(classes=True)(0, np.zeros((5, 1)), np.array(["a", "b", "a", "a", "b"]))
    [0, 1, 2, 4]
    """

    def __init__(self, *, classes: bool = False) -> None:
        self.incomplete: set[int] = set()
        self.seen: dict[Any, int] | None = {} if classes else None

    def __call__(self, start: int, X: Any, y: Array | None) -> list[int]:
        """The positions of such rows in a batch."""
        found: set[int] = set()
        for j, column in enumerate(frames.columns(X)) if is_frame(X) else ():
            if j in self.incomplete or _surely_complete(column):
                continue
            missing = missing_entries(as_array(column, str(j)))
            if missing.any():
                self.incomplete.add(j)
                found.add(int(missing.argmax()))
        if self.seen is not None and y is not None:
            for label in np.unique(y).tolist():
                rows = np.flatnonzero(y == label)[: 2 - self.seen.get(label, 0)]
                self.seen[label] = self.seen.get(label, 0) + len(rows)
                found |= set(rows.tolist())
        return sorted(found)


def _surely_complete(column: Any) -> bool:
    """Whether the library of a column knows without a search that no value is missing; NaN is missing, too."""
    floats = str(getattr(column, "dtype", "float")).lower().startswith("float")
    return not floats and hasattr(column, "null_count") and column.null_count() == 0


def joined(first: Any, second: Any) -> Any:
    """The rows of two arrays or frames, one after the other."""
    return frames.concatenated(first, second) if is_frame(first) else np.concatenate([first, second])
