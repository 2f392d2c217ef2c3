"""Parquet and Arrow files that the workers of a Dask cluster read: the passes of a fit run there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.batches import Batches
from mercer.data.cluster import SHARE, Array, Cluster
from mercer.data.dask_rows import DaskRows, piece_rows
from mercer.data.frames import is_frame
from mercer.data.row_files import Batch, RowFiles
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
        if self.files is None:
            raise InvalidInput(
                "The workers of a cluster read Parquet and Arrow files",
                got=f"{str(source)!r}",
                advice="Pass such a file, or dask.array.from_array(numpy.load(path, mmap_mode='r')).",
            )
        self.cluster, self._files, n = Cluster(client), self.files, self.files.n
        if n == 0:
            raise InvalidInput("Files of rows must have rows", got="none", advice="Check how they were written.")
        step = piece_rows(n, self.width, self.cluster.threads, SHARE * self.cluster.memory()[1])
        self._start(list(pairwise([*range(0, n, step), n])))

    @property
    def width(self) -> int:
        return len(self._files.features)

    def __iter__(self) -> Iterator[Batch]:
        return Batches.__iter__(self)

    def _piece(self, start: int, stop: int) -> Any:
        return self.cluster.task(_read, self._files, self.tables, start, stop)

    def _all_targets(self) -> Array | None:
        return self._files.targets()


def _read(files: RowFiles, tables: bool, start: int, stop: int) -> Any:
    """Some rows of the files: what a worker runs."""
    X, _ = files.read(tables, start, stop)
    return X if is_frame(X) else as_vectors(X)
