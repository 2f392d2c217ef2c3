"""K of rows that are read in batches: only sums over rows, through centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.batches import Batches
from mercer.data.dask_rows import DaskRows
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.gram import costs
from mercer.gram.base import Gram
from mercer.gram.lowrank import Matrix, Nystrom
from mercer.gram.tiled import TiledGram
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.memory import within


class StreamedGram(Gram):
    """K of all rows of a source, which are read again for every pass.

    Parameters
    ----------
    kernel : Similarity
        The kernel.
    batches : Batches
        The rows.
    sample : Points
        Some of them, prepared, which show their kind.
    dtype : dtype or None
        Of the entries, by default that of the rows.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> few = mc.Gaussian(0.5).prepare(X[::10])
    >>> K = StreamedGram(mc.Gaussian(0.5), Batches(X), few)
    >>> K.shape, bool(np.allclose(K.low_rank(few).adjoint(np.ones((50, 1))).ravel()[0], K.kernel(X[:1], X).sum()))
    ((50, 50), True)
    """

    def __init__(self, kernel: Similarity, batches: Batches, sample: Points, dtype: Any = None) -> None:
        super().__init__(sample, None, kernel.pair(sample, None, dtype).dtype)
        self.kernel, self.batches = kernel, batches
        self.shape = (batches.n, batches.n)

    def pieces(self) -> Iterator[tuple[int, Points]]:
        """The position of the first row of every batch, and its rows."""
        start = 0
        for X, _ in self.batches:
            if start + len(X) <= self.shape[0]:
                yield start, self.kernel.prepare(X)
            start += len(X)
        if start != self.shape[0]:
            raise InvalidInput(
                f"A source of rows must return the same {self.shape[0]:,} rows at every pass",
                got=f"{start:,} rows",
                advice="Pass a function that starts anew whenever it is called.",
            )

    def block(self, rows: Any, cols: Any) -> Array:
        raise self._not_here()

    def recomputed(self, dtype: Any = None) -> Gram:
        raise self._not_here()

    def restrict(self, index: Any) -> Gram:
        raise self._not_here()

    def between(self, x: Points, z: Points | None = None, dtype: Any = None) -> TiledGram:
        return TiledGram(self.kernel, self.kernel.pair(x, z, dtype))

    def points(self, X: Any) -> Points:
        return self.kernel.prepare(X)

    def low_rank(self, centers: Points, dtype: Any = None, budget: Any = None, least: float = 0.0) -> Nystrom:
        if isinstance(self.batches, DaskRows):
            from mercer.gram.distributed import DistributedNystrom

            return DistributedNystrom(self, centers, dtype, budget, least)
        return StreamedNystrom(self, centers, dtype, budget, least)

    def diag(self) -> Array:
        if self.normalised:
            return np.ones(self.shape[0], self.dtype)
        if isinstance(self.batches, DaskRows):
            parts = self.batches.map(_diagonal, [self.kernel])
        else:
            parts = [self.kernel.diagonal(points) for _, points in self.pieces()]
        return np.concatenate(parts).astype(self.dtype, copy=False)

    @property
    def normalised(self) -> bool:
        return self.kernel.tags.normalised

    @property
    def bounded(self) -> bool:
        return self.kernel.tags.bounded

    @property
    def entry_cost(self) -> float:
        return costs.entry(self.kernel, self.x)

    def _not_here(self) -> InvalidInput:
        return InvalidInput(
            "Rows in batches allow sums over rows only",
            got="a request for entries of their Gram matrix",
            advice="Use solver='nystrom', or load the rows as an array.",
        )


def _diagonal(kernel: Similarity, X: Any) -> Array:
    """k(x, x) of some rows: what a worker runs."""
    with threads.alone():
        return kernel.diagonal(kernel.prepare(X))


class StreamedNystrom(Nystrom):
    """`Nystrom` of rows in batches: every sum over rows is one pass over the source."""

    gram: StreamedGram

    def _store(self, limit: int) -> None:
        return None

    def sum_over_rows(self, work: Callable[[slice, Array], Matrix], shape: tuple[int, ...]) -> Matrix:
        totals = threads.Totals(shape)
        for start, points in self.gram.pieces():
            self.K = self.gram.between(points, self.centers, self.dtype)

            def add(rows: slice, share: int, start: int = start) -> None:
                totals[share] += work(slice(start + rows.start, start + rows.stop), self.block(rows))

            threads.stripes(points.n, add, rows=self.height)
        return totals.sum()

    def __matmul__(self, V: Any) -> Matrix:
        W = self.coefficients(np.asarray(V, np.float64)).astype(self.dtype)
        out = np.empty((self.shape[0], *W.shape[1:]))
        for start, points in self.gram.pieces():
            self.K = self.gram.between(points, self.centers, self.dtype)

            def work(rows: slice, share: int, start: int = start) -> None:
                out[start + rows.start : start + rows.stop] = tiling.product(self.block(rows), W)

            threads.stripes(points.n, work, rows=self.height)
        return out

    def features(self, index: Any = None) -> Array:
        chosen = np.arange(self.shape[0])[slice(None) if index is None else index]
        within(
            len(chosen) * self.shape[1] * self.dtype.itemsize,
            memory.budget(),
            f"The features of {len(chosen):,} rows on {self.shape[1]:,} centres",
            "Use fewer centres, or rows that fit into memory.",
        )
        ordered = np.unique(chosen)
        features = np.concatenate([self.features_of(points) for _, points in self.parts(ordered, len(ordered))])
        return features[np.searchsorted(ordered, chosen)]

    def parts(self, index: NDArray[np.int64], step: int) -> Iterator[tuple[slice, Points]]:
        for start, points in self.gram.pieces():
            first, last = np.searchsorted(index, [start, start + points.n])
            for span in threads.spans(int(last - first), step):
                part = slice(int(first) + span.start, int(first) + span.stop)
                yield part, points.take(index[part] - start)
