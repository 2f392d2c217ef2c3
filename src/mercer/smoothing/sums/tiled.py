"""Kernel sums for every similarity on every kind of object, tile by tile.

If the logarithm of the similarity is known exactly, each row is shifted by its running maximum (log-sum-exp), so that
sums far from all data neither underflow nor lose digits. Otherwise the values themselves are summed, in units of the
largest in the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops, threads
from mercer.data.points import Array, Points, View
from mercer.kernels import costs as kernel_costs
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Block, Pair, Workspace
from mercer.kernels.vectors.radial import ByWidth, uncentred

Float = NDArray[np.float64]


class Stretched(Block):
    """A tile whose distances are divided by a factor: one per row (r, 1), which gives every query a width, or one per
    column (c,), which gives every point a width.
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
    # One pair is shared between the leaves: fused loops would ignore that a block is stretched.
    pair = Pair(x if z is None else z, None if z is None else x, np.float64, shared=True)
    m, n = pair.shape
    log_scale = np.full(m, -np.inf)
    totals = np.zeros((m, len(powers), V.shape[1]))
    left_out = np.arange(m)
    # Points without any value count nowhere, not even for the unit of a row.
    empty: NDArray[np.bool_] = np.abs(V).max(axis=1) == 0
    void = empty if empty.any() else None

    def work(rows: slice, share: int) -> None:
        space = tiling.workspace()
        for cols in threads.spans(n, kernel_costs.TILE_COLS):
            if threads.stopped():
                return
            mark = space.used
            try:
                if scale is None:
                    block = pair.block(rows, cols, space)
                else:
                    block = Stretched(pair, rows, cols, space, scale[rows, None])
                tile = np.empty(block.shape)
                hidden = left_out[rows] if exclude else None
                without_value = None if void is None else void[cols]
                _add(similarity, block, tile, V[cols], powers, hidden, without_value, log_scale[rows], totals[rows])
            finally:
                space.release(mark)

    # Called before the threads start, so that all of them use the prepared points.
    similarity.touch(pair.x)
    similarity.touch(pair.z)
    threads.stripes(m, work, rows=kernel_costs.TILE_ROWS, columns=n)
    return log_scale, totals


def _add(
    similarity: Similarity,
    block: Block,
    W: Array,
    V: Float,
    powers: NDArray[np.int64],
    left_out: NDArray[np.int64] | None,
    empty: NDArray[np.bool_] | None,
    log_scale: Float,
    totals: Float,
) -> None:
    """Add one tile to the totals of its rows, both in units of exp(log_scale), the row's running maximum."""
    logarithmic = similarity.exact_log
    if logarithmic:
        with np.errstate(over="ignore", invalid="ignore"):
            similarity.log_tile(block, W)
    else:
        tiling.evaluate(similarity, block, W, similarity.tags.bounded)
    if left_out is not None:
        inside = np.flatnonzero((left_out >= block.cols.start) & (left_out < block.cols.stop))
        W[inside, left_out[inside] - block.cols.start] = -np.inf if logarithmic else 0.0
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
    """(a, W u^α) for every monomial α = powers[a], each computed as its parent times one coordinate of u."""
    yield 0, W
    if len(powers) == 1:
        return
    z, x = uncentred(block)
    sigma = np.broadcast_to(unit_of(similarity), x.shape[1:])
    u = [(x[:, k] - z[:, k, None]) / s for k, s in enumerate(sigma)]
    place = {tuple(alpha): a for a, alpha in enumerate(powers.tolist())}
    # Depth first: at most `degree` tiles are in memory.
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
    """The unit of u = (x − z)/σ: the width of a function of u, or one for any other similarity."""
    return np.asarray(similarity.sigma if isinstance(similarity, ByWidth) else 1.0, dtype=np.float64)
