"""Parquet and Arrow files that the workers of a Dask cluster read: the passes of a fit run there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.batches import Batch, Batches, FileSpan
from mercer.data.cluster import SHARE, Array, Cluster
from mercer.data.dask_rows import DaskRows, piece_rows
from mercer.data.frames import is_frame
from mercer.data.frames import rows as rows_of
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput

Index = NDArray[np.int64]


class DaskFiles(DaskRows):
    """Rows of Parquet or Arrow files, read by the workers of a cluster.

    Every model that takes a `Batches` takes them, the automatic models included. Sums over rows run on the workers,
    each of which reads its rows itself; a sample, and the targets, are read in this process.

    Parameters
    ----------
    source : str or Path
        A .parquet, .arrow, .ipc or .feather file, or a folder of files of one of these kinds, which all workers see
        under the same path.
    target : str or None
        The name of the target column; the other columns are features.
    client : distributed.Client or None
        By default the active client, or Dask's threaded scheduler if there is none.

    Examples
    --------
    >>> import tempfile, polars as pl, mercer as mc
    >>> x = np.linspace(0.0, 6.0, 500)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": x, "y": np.sin(x)}).write_parquet(f"{folder}/rows.parquet")
    ...     rows = mc.DaskFiles(f"{folder}/rows.parquet", "y")
    ...     model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01, n_centers=20).fit(rows)
    >>> bool(abs(model.predict(pl.DataFrame({"x": [1.5]}))[0] - np.sin(1.5)) < 0.01)
    True
    """

    def __init__(self, source: Any, target: str | None = None, client: Any = None) -> None:
        if not isinstance(source, (str, os.PathLike)):
            raise InvalidInput(
                "Files for the workers of a cluster must be given by their path",
                got=type(source).__name__,
                advice="Pass a path, or rows of Dask as mc.DaskRows(X).",
            )
        Batches.__init__(self, source, target)
        if self.span is None:
            raise InvalidInput(
                "The workers of a cluster read Parquet and Arrow files",
                got=f"{str(source)!r}",
                advice="Pass such a file, or dask.array.from_array(numpy.load(path, mmap_mode='r')).",
            )
        self.cluster = Cluster(client)
        self._gone: Index = np.empty(0, dtype=np.int64)
        self._steps: tuple[Callable[[Any], Any], ...] = ()
        self._of_targets: tuple[Callable[[Array], Array], ...] = ()
        self._report: Callable[[int], Any] | None = None
        self._in_file = self.n
        self._cut()

    def _cut(self) -> None:
        """Cut the rows into pieces, which are tasks that are made at their first use."""
        assert self.span is not None
        room = SHARE * self.cluster.memory()[1]
        step = piece_rows(self._in_file, self.width, self.cluster.threads, room)
        self._ends = [*range(0, self._in_file, step), self._in_file]
        before = np.searchsorted(self._gone, self._ends)
        starts = [int(end - gone) for end, gone in zip(self._ends, before)]
        self.spans = [slice(a, b) for a, b in pairwise(starts)]
        self._made: list[Any] | None = None

    @property
    def width(self) -> int:
        return len(self.names or ())

    @property
    def pieces(self) -> list[Any]:
        """The tasks that read the rows of each span; on workers with enough memory they stay there."""
        if self._made is None:
            reads = []
            for start, stop in pairwise(self._ends):
                first, last = np.searchsorted(self._gone, [start, stop])
                gone = self._gone[first:last] - start
                reads.append(self.cluster.task(_read, self.span, self.tables, start, stop, gone, self._steps))
            fits = self._in_file * self.width * 8 <= SHARE * self.cluster.memory()[0]
            self._made = self.cluster.kept(reads) if fits else reads
        return self._made

    @pieces.setter
    def pieces(self, pieces: list[Any]) -> None:
        self._made = pieces

    def __exit__(self, *error: object) -> None:
        self.cluster.release()
        self._made = None  # a later question reads the rows again

    def __iter__(self) -> Iterator[Batch]:
        return Batches.__iter__(self)

    # -- other rows ---------------------------------------------------------------------------------------------------

    def as_tables(self) -> DaskFiles:
        return self._cut_again(super().as_tables())

    def without(self, positions: Any) -> DaskFiles:
        if len(self._gone):
            raise InvalidInput(
                "Rows of files on a cluster are left out in one call",
                got="a second one",
                advice="Pass all positions together.",
            )
        gone = np.unique(np.asarray(positions, dtype=np.int64))
        return self._cut_again(super().without(gone), _gone=gone)

    def mapped(self, change: Callable[[Any], Any], targets: Callable[[Array], Array] | None = None) -> DaskFiles:
        of_targets = self._of_targets if targets is None else (*self._of_targets, targets)
        return self._cut_again(super().mapped(change, targets), _steps=(*self._steps, change), _of_targets=of_targets)

    def watched(self, report: Callable[[int], Any]) -> DaskFiles:
        """The same rows; `report` is called with the number of all rows after every sum over them."""
        return self._cut_again(copy(self), _report=report)

    def _cut_again(self, other: Any, **changes: Any) -> DaskFiles:
        for name, value in changes.items():
            setattr(other, name, value)
        other._cut()
        changed: DaskFiles = other
        return changed

    # -- work on the rows ---------------------------------------------------------------------------------------------

    def sum(
        self,
        work: Callable[..., Any],
        shared: list[Any],
        arrays: tuple[Array | None, ...] = (),
        merge: Callable[..., Any] | None = None,
    ) -> Any:
        return self._reported(super().sum(work, shared, arrays, merge))

    def map(self, work: Callable[..., Any], shared: list[Any], arrays: tuple[Array | None, ...] = ()) -> list[Any]:
        found: list[Any] = self._reported(super().map(work, shared, arrays))
        return found

    def _reported(self, result: Any) -> Any:
        if self._report is not None:
            self._report(self.n)
        return result

    def targets(self) -> Array | None:
        """The targets of all rows, read in this process."""
        assert self.span is not None
        y = self.span.targets(self._in_file)
        return None if y is None else reduce(lambda y, change: change(y), self._of_targets, np.delete(y, self._gone))


def _read(
    span: FileSpan, tables: bool, start: int, stop: int, gone: Index, steps: tuple[Callable[[Any], Any], ...]
) -> Any:
    """The rows of a span of the files without some of them, changed: what a worker runs."""
    X, _ = span(tables, start, stop)
    if not is_frame(X):
        X = as_vectors(X)
    if len(gone):
        X = rows_of(X, np.setdiff1d(np.arange(stop - start), gone))
    for step in steps:
        X = step(X)
    return X
