"""Kernel sums for every similarity on every kind of object, tile by tile.

Where the logarithm of the similarity is known exactly, each row is shifted by its running maximum (log-sum-exp), so
that sums far from all data neither underflow nor lose digits. Else the values themselves are summed, in units of the
row's largest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops, threads
from mercer.data.points import Array, Points, View
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Block, Pair, Workspace
from mercer.kernels.vectors.radial import uncentred

Float = NDArray[np.float64]

ROWS, COLS = 64, 1024
"""Queries and points of one tile."""


class Stretched(Block):
    """A tile whose distances are divided by a factor: of the row (r, 1), so that every query has its own width, or of
    the column (c,), so that every point has.
    """

    def __init__(self, pair: Pair, rows: slice, cols: slice, workspace: Workspace, scale: Float) -> None:
        super().__init__(pair, rows, cols, workspace)
        self.scale = scale

    def view(self, view: View) -> Block:
        if view not in self._views:
            self._views[view] = Stretched(self.pair.view(view), self.rows, self.cols, self.workspace, self.scale)
        return self._views[view]

    def rescaled(self, scale: tuple[float, ...]) -> Block:
        if scale not in self._views:
            pair = self.pair.rescaled(scale)
            self._views[scale] = Stretched(pair, self.rows, self.cols, self.workspace, self.scale)
        return self._views[scale]

    def _fill_sqdist(self, out: Array) -> None:
        super()._fill_sqdist(out)
        with np.errstate(over="ignore"):
            out *= 1.0 / np.square(self.scale)

    def _fill_l1(self, out: Array) -> None:
        super()._fill_l1(out)
        out /= self.scale


def tiled(
    similarity: Similarity,
    x: Points,
    V: Float,
    z: Points | None,
    powers: NDArray[np.int64],
    *,
    exclude: bool,
    scale: Float | None,
) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, M, c)."""
    # The one pair is shared between the leaves: the fused loops would know nothing of a stretched block.
    pair = Pair(x if z is None else z, None if z is None else x, np.float64, shared=True)
    m, n = pair.shape
    log_scale = np.full(m, -np.inf)
    totals = np.zeros((m, len(powers), V.shape[1]))
    own = np.arange(m)
    # Points without any value count nowhere, not even for the unit of a row.
    empty: NDArray[np.bool_] = np.abs(V).max(axis=1) == 0
    void = empty if empty.any() else None

    def work(rows: slice, share: int) -> None:
        space = tiling.workspace()
        for cols in threads.spans(n, COLS):
            if threads.stopped():
                return
            mark = space.used
            try:
                if scale is None:
                    block = pair.block(rows, cols, space)
                else:
                    block = Stretched(pair, rows, cols, space, scale[rows, None])
                tile = np.empty(block.shape)
                hidden = own[rows] if exclude else None
                nobody = None if void is None else void[cols]
                _add(similarity, block, tile, V[cols], powers, hidden, nobody, log_scale[rows], totals[rows])
            finally:
                space.release(mark)

    # Made before the threads: what a pair keeps about its points is then there for all of them.
    similarity.touch(pair.x)
    similarity.touch(pair.z)
    threads.stripes(m, work, rows=ROWS, columns=n)
    return log_scale, totals


def _add(
    similarity: Similarity,
    block: Block,
    W: Array,
    V: Float,
    powers: NDArray[np.int64],
    own: NDArray[np.int64] | None,
    empty: NDArray[np.bool_] | None,
    log_scale: Float,
    totals: Float,
) -> None:
    """Add one tile to the totals of its rows, both in units of exp(log_scale), which grows with the row's maximum."""
    logarithmic = similarity.exact_log
    if logarithmic:
        with np.errstate(over="ignore", invalid="ignore"):
            similarity.log_tile(block, W)
    else:
        tiling.evaluate(similarity, block, W, similarity.tags.bounded)
    if own is not None:
        inside = np.flatnonzero((own >= block.cols.start) & (own < block.cols.stop))
        W[inside, own[inside] - block.cols.start] = -np.inf if logarithmic else 0.0
    if empty is not None:
        W[:, empty] = -np.inf if logarithmic else 0.0
    with np.errstate(divide="ignore"):
        largest = W.max(axis=1) if logarithmic else np.log(np.abs(W).max(axis=1))
    largest = np.maximum(log_scale, largest)
    # A row without any weight so far has no unit yet.
    unit = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(invalid="ignore"):
        totals *= np.exp(np.minimum(log_scale - unit, 0.0))[:, None, None]
    log_scale[...] = largest
    if logarithmic:
        W -= unit[:, None]
        _loops.tiles.exp_(W)
    else:
        W *= np.exp(-unit)[:, None]
    for a, weighted in _times_monomials(similarity, block, W, powers):
        totals[:, a] += weighted @ V


def _times_monomials(
    similarity: Similarity, block: Block, W: Array, powers: NDArray[np.int64]
) -> Iterator[tuple[int, Array]]:
    """(a, W u^α) for every monomial α = powers[a], each as its parent times one coordinate of u."""
    yield 0, W
    if len(powers) == 1:
        return
    z, x = uncentred(block)
    sigma = np.broadcast_to(unit_of(similarity), x.shape[1:])
    u = [(x[:, k] - z[:, k, None]) / s for k, s in enumerate(sigma)]
    place = {tuple(alpha): a for a, alpha in enumerate(powers.tolist())}
    # Depth first: no more tiles are alive than the degree.
    stack: list[tuple[list[int], int, Array]] = [([0] * len(u), 0, W)]
    while stack:
        alpha, first, product = stack.pop()
        for k in range(first, len(u)):
            child = alpha.copy()
            child[k] += 1
            a = place.get(tuple(child))
            if a is not None:
                times = product * u[k]
                yield a, times
                stack.append((child, k, times))


def unit_of(similarity: Any) -> Any:
    """The unit of u = (x − z)/σ: the similarity's own width, one where it has none."""
    return np.asarray(getattr(similarity, "sigma", 1.0), dtype=np.float64)
