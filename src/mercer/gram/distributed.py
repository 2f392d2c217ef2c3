"""K of rows on a Dask cluster through centres: every sum over rows runs on the workers, and only sums come back.

A pass sends the coefficients once and returns m × t sums, whatever the number of rows. Weights and the basis of a tail
are sent once and stay on the workers. A task has one thread, for tiles and for BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer import memory, threads
from mercer.data.dask_rows import DaskRows
from mercer.data.points import Array, Points
from mercer.gram.lowrank import Matrix, RowTerms
from mercer.gram.streamed import StreamedGram, StreamedNystrom
from mercer.gram.tiled import TiledGram
from mercer.kernels import tiling
from mercer.kernels.base import Similarity


@dataclass(frozen=True, eq=False)
class Columns:
    """K_nm as a worker computes it: the kernel, the centres, and the type of its entries."""

    kernel: Similarity
    centers: Points
    dtype: Any

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows of K_nm: which rows, and their entries in memory that the next block reuses."""
        points, m = X if isinstance(X, Points) else self.kernel.prepare(X), self.centers.n
        K = TiledGram(self.kernel, self.kernel.pair(points, self.centers, self.dtype))
        height = min(points.n, max(16, memory.CACHED // m))
        tile = np.empty((height, m), K.dtype)
        for rows in threads.spans(points.n, height):
            out = tile[: rows.stop - rows.start]
            K.fill_rows(rows, out)
            yield rows, out


class DistributedNystrom(StreamedNystrom):
    """`StreamedNystrom` of rows on a cluster.

    >>> import dask.array as da, mercer as mc
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> few = mc.Gaussian(0.5).prepare(X[::10])
    >>> K = StreamedGram(mc.Gaussian(0.5), DaskRows(da.from_array(X, chunks=(20, 1))), few)
    >>> Phi, here = K.low_rank(few), mc.gram.of(mc.Gaussian(0.5), X).low_rank(few)
    >>> type(Phi).__name__, bool(np.allclose(Phi.normal(np.eye(5)), here.normal(np.eye(5))))
    ('DistributedNystrom', True)
    """

    def __init__(self, gram: StreamedGram, centers: Points, dtype: Any, budget: Any, least: float) -> None:
        super().__init__(gram, centers, dtype, budget, least)
        assert isinstance(gram.batches, DaskRows)
        self.rows = gram.batches
        self.columns = self.rows.cluster.shipped(Columns(gram.kernel, self.centers, self.dtype))

    def normal(self, V: Matrix, between: Callable[[slice, Matrix], Matrix] | None = None) -> Matrix:
        W = self.coefficients(V).astype(self.dtype)
        if between is None or isinstance(between, RowTerms):
            arrays = (None, None) if between is None else (between.weights, between.basis)
            sent = self.rows.cluster.value((W, None if between is None else between.inside))
            return self.whiten(self.once(lambda: self.rows.sum(_normal, [self.columns, sent], arrays)))
        # A function of the caller's works on the values of all rows here: two passes instead of one.
        return self.adjoint(between(slice(0, self.shape[0]), self._values(W)))

    def adjoint(self, U: Matrix) -> Matrix:
        return self.whiten(self.once(lambda: self._sum(_adjoint, [self.columns], U)))

    def _sum(self, work: Callable[..., Matrix], shared: list[Any], A: Matrix | None) -> Matrix:
        """A sum over rows with an array of the caller's, which is sent for it only."""
        try:
            return np.asarray(self.rows.sum(work, shared, (A,)))
        finally:
            if A is not None:
                self.rows.cluster.forget(A)

    def __matmul__(self, V: Any) -> Matrix:
        return self._values(self.coefficients(np.asarray(V, np.float64)).astype(self.dtype))

    def _values(self, W: Array) -> Matrix:
        return np.concatenate(self.rows.map(_values, [self.columns, self.rows.cluster.value(W)]))

    def parts(self, index: NDArray[np.int64], step: int) -> Iterator[tuple[slice, Points]]:
        # All of them together: every call waits for the cluster.
        few = max(step, memory.HELD // self.rows.width)
        for span in threads.spans(len(index), few):
            points = self.gram.points(self.rows.taken(index[span]))
            for part in threads.spans(points.n, step):
                yield slice(span.start + part.start, span.start + part.stop), points.take(part)

    def normal_matrix(
        self, index: NDArray[np.int64], roots: Matrix | None = None, tail: Matrix | None = None, ridge: float = 0.0
    ) -> Matrix:
        if len(index) < self.shape[0]:
            return super().normal_matrix(index, roots, tail, ridge)  # a sample of the rows comes here
        return self.once(lambda: self._of_all_rows(roots, tail, ridge))

    def _of_all_rows(self, roots: Matrix | None, tail: Matrix | None, ridge: float) -> Matrix:
        """`normal_matrix` of all rows, summed on the workers."""
        L, s = self.rows.cluster.shipped(self.L.astype(self.dtype)), None if roots is None else roots[:, None]
        H = self._sum(_square, [self.columns, L], s)
        if tail is not None:
            G = self.whiten(self._sum(_adjoint, [self.columns], tail if s is None else s * tail))
            H -= np.tril(G @ G.T)
        if ridge > 0.0:
            Phi = self._solve(np.sqrt(ridge) * np.eye(self.shape[1], dtype=self.dtype))
            H += np.tril(Phi @ Phi.T)
        return H + np.tril(H, -1).T


# -- what runs on workers ----------------------------------------------------------------------------------------------


def _normal(columns: Columns, sent: tuple[Array, Matrix | None], X: Array, weights: Any, basis: Any) -> Matrix:
    W, inside = sent
    with threads.alone():
        total = np.zeros((columns.centers.n, W.shape[1]))
        terms = RowTerms(_all(weights, len(X)), _all(basis, len(X)), np.zeros(0) if inside is None else inside)
        for rows, K in columns.blocks(X):
            U = terms(rows, tiling.product(K, W))
            total += tiling.product(K.T, U.astype(columns.dtype))
    return total


def _adjoint(columns: Columns, X: Array, U: Array) -> Matrix:
    with threads.alone():
        U = _all(U, len(X))
        total = np.zeros((columns.centers.n, U.shape[1]))
        for rows, K in columns.blocks(X):
            total += tiling.product(K.T, U[rows].astype(columns.dtype))
    return total


def _values(columns: Columns, W: Array, X: Array) -> Matrix:
    with threads.alone():
        return np.concatenate([tiling.product(K, W) for _, K in columns.blocks(X)])


def _square(columns: Columns, L: Array, X: Array, roots: Any) -> Matrix:
    """The lower triangle of Φ̃ᵀΦ̃ of a piece."""
    with threads.alone():
        trsm, syrk = blas.get_blas_funcs(("trsm", "syrk"), (L,))
        s = _all(roots, len(X))
        total = np.zeros(L.shape)
        points = columns.kernel.prepare(X)
        for rows in threads.spans(points.n, max(2048, len(L))):
            K = np.concatenate([K.copy() for _, K in columns.blocks(points.take(rows))])
            Phi = trsm(1.0, L, K.T, lower=1, overwrite_b=1)
            if s is not None:
                Phi *= s[rows, 0].astype(columns.dtype)
            total += syrk(1.0, Phi, lower=1)
    return np.tril(total)


def _all(part: Any, n: int) -> Any:
    """Rows of an array that was sent: one row stands for equal ones."""
    return part if part is None else np.broadcast_to(part, (n, part.shape[1]))
