"""Rows that are read in batches, again for every pass: from files, memory-mapped arrays and functions.

A fit that needs only sums over rows never holds them all: its number of rows is limited by the disk, not by the memory.

Complete rows of numbers are arrays. A file with other columns, or one that is read by `as_tables`, gives frames.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data import frames
from mercer.data.digests import Keys, digest_at
from mercer.data.frames import is_frame
from mercer.data.row_files import Array, Batch, RowFiles, mapped_array, unknown
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.memory import HELD


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
        self.files: RowFiles | None = None
        if isinstance(source, (str, os.PathLike)) and Path(source).suffix != ".npy":
            self._read = self._rows_of(RowFiles.at(Path(source), target))
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
            self._read = self._array(mapped_array(source))
        elif isinstance(source, np.ndarray):
            self._read = self._array(source)
        else:
            raise unknown(type(source).__name__)

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
        rows, targets, start = None, list[Array](), 0
        for X, y in self:
            first, last = np.searchsorted(index, [start, start + len(X)])
            part = index[first:last] - start
            start += len(X)
            if first == last:
                continue
            rows = frames.rows(X, part) if rows is None else joined(rows, frames.rows(X, part))
            targets += [] if y is None else [y[part]]
        return rows, np.concatenate(targets) if targets else None

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

    def _rows_of(self, files: RowFiles) -> Callable[[bool], Iterator[Batch]]:
        self.files, self.names, self.tables, self._n = files, list(files.features), files.mixed, files.n
        step = max(1, HELD // (len(files.features) + (files.target is not None)))
        return lambda tables: (files.read(tables, i, min(files.n, i + step)) for i in range(0, files.n, step))


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


def is_source(X: Any) -> bool:
    """Whether X are rows that are read in batches: a `Batches`, or the path of a file or folder.

    >>> is_source("rows.parquet"), is_source([[1.0]])
    (True, False)
    """
    return isinstance(X, (str, os.PathLike, Batches))


def joined(first: Any, second: Any) -> Any:
    """The rows of two arrays or frames, one after the other."""
    return frames.concatenated(first, second) if is_frame(first) else np.concatenate([first, second])
