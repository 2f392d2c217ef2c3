"""Tiles over threads: the one loop that fills Gram matrices and multiplies by them.

Every worker thread (`mercer.threads`) takes its own tiles. A symmetric matrix computes the tiles on and below the
diagonal and mirrors them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer._loops.addresses import TERMS
from mercer.data.points import Array
from mercer.errors import InvalidInput
from mercer.kernels import costs
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.block import Block, Pair, Workspace
from mercer.threads import Totals, n_threads, over, run, spans

if TYPE_CHECKING:
    from mercer.kernels.base import Similarity


# Terms of a product in float32 that are added up before float64 takes over: this bounds the error, not the time.
TOGETHER = 128

_local = threading.local()


def workspace() -> Workspace:
    """This thread's scratch buffers."""
    if not hasattr(_local, "workspace"):
        _local.workspace = Workspace()
    space: Workspace = _local.workspace
    return space


def blocks(pair: Pair, shape: tuple[int, int] | None = None, *, triangle: bool = True) -> list[tuple[slice, slice]]:
    """The tiles of a pair; of a symmetric one, those that meet the lower triangle, square ones on the diagonal."""
    n, m = pair.shape
    rows, cols = shape or usual_shape()
    if not (pair.same and triangle):
        return [(r, c) for r in spans(n, rows) for c in spans(m, cols)]
    return [(r, c) for r in spans(n, rows) for c in [*spans(r.start, cols), r]]


def usual_shape() -> tuple[int, int]:
    """Rows and columns of a tile, unless a leaf wants other ones."""
    return costs.TILE_ROWS, costs.TILE_COLS


def shape_for(kernel: Similarity) -> tuple[int, int]:
    """Rows and columns of tiles that suit all leaves of an expression."""
    shapes = [shape for leaf in kernel.leaves if (shape := leaf.tile_shape) is not None]  # type: ignore[attr-defined]
    return (min(s[0] for s in shapes), min(s[1] for s in shapes)) if shapes else usual_shape()


def each(
    pair: Pair,
    work: Callable[[Block, int], None],
    *,
    triangle: bool = True,
    shape: tuple[int, int] | None = None,
) -> None:
    """Call `work(block, share)` on every tile of the pair, over the threads; all of them unless `triangle`.

    The tiles of one share run in a fixed order in one thread, so that sums per share are reproducible.
    """
    n, m = pair.shape
    shape = shape or usual_shape()
    if n * m < min(_loops.costs.COMPILED_ENTRIES, shape[0] * shape[1]):  # one tile, and nothing to set up
        _work_through(pair, [(slice(0, n), slice(0, m))], work, 0)
        return
    tile_list = blocks(pair, shape, triangle=triangle)
    shares = min(n_threads(), len(tile_list))
    run([partial(_work_through, pair, tile_list[i::shares], work, i) for i in range(shares)])


def _work_through(
    pair: Pair, tile_list: list[tuple[slice, slice]], work: Callable[[Block, int], None], share: int
) -> None:
    space = workspace()
    mark = space.used
    with _loops.tiles.part_of(pair.shape[0] * pair.shape[1]):
        for rows, cols in tile_list:
            if over():
                return
            try:
                work(pair.block(rows, cols, space), share)
            finally:
                space.release(mark)


def fill(
    kernel: Similarity,
    pair: Pair,
    out: Array,
    finish: Callable[[Array], None] | None = None,
    shape: tuple[int, int] | None = None,
) -> Array:
    """out = finish(K) for the pair, exactly symmetric where both sides are the same, in tiles of this shape."""

    bounded = kernel.tags.bounded

    def work(block: Block, share: int) -> None:
        tile = out[block.rows, block.cols]
        evaluate(kernel, block, tile, bounded)
        if finish is not None:
            finish(tile)
        if block.diagonal:
            symmetrise(tile)
        elif pair.same:
            _loops.tiles.mirror(tile, out[block.cols, block.rows])

    each(pair, work, shape=shape or shape_for(kernel))
    return out


def evaluate(kernel: Similarity, block: Block, tile: Array, bounded: bool) -> None:
    """Fill a tile, and raise if a value overflowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        returned: object = kernel.tile(block, tile)
    if returned is not None:
        raise InvalidInput(
            f"`tile` of {type(kernel).__name__} must write its values to `out` and return None",
            got=f"a {type(returned).__name__}",
            advice="Write out[...] = values.",
        )
    if not bounded:
        require_finite(tile, kernel)


def symmetrise(tile: Array) -> None:
    """Copy the lower triangle of a square tile onto its upper one."""
    np.copyto(tile, tile.T, where=_above_diagonal(len(tile)))


@lru_cache(maxsize=4)
def _above_diagonal(n: int) -> NDArray[np.bool_]:
    return ~np.tri(n, dtype=np.bool_)


def multiply(kernel: Similarity, pair: Pair, V: Array) -> NDArray[np.float64]:
    """K V without storing K: each tile is computed, used (twice where K is symmetric) and forgotten.

    V has shape (m, t) in the pair's dtype; sums accumulate in float64.
    """
    totals = Totals((pair.shape[0], V.shape[1]))

    bounded = kernel.tags.bounded

    def work(block: Block, share: int) -> None:
        total = totals[share]
        tile = block.scratch()
        evaluate(kernel, block, tile, bounded)
        total[block.rows] += product(tile, V[block.cols])
        if pair.same and not block.diagonal:
            total[block.cols] += product(tile.T, V[block.rows])

    each(pair, work, shape=shape_for(kernel))
    return totals.sum()


def product(A: Array, V: Array) -> NDArray[np.float64]:
    """A V for V of shape (m, t): in float32, `TOGETHER` terms are added at a time, and their sums in float64.

    The error of BLAS in long float32 sums depends on the width of its vectors; this bounds it on every processor.

    >>> ones = np.full((1, 10**6), 0.1, np.float32)
    >>> bool(abs(product(ones, ones.T) - 10**6 * np.float64(np.float32(0.1)) ** 2) < 1e-2)
    True
    """
    if A.dtype != np.float32:
        return np.asarray(A @ V, dtype=np.float64)
    n, m = A.shape
    whole = m - m % TERMS
    total = np.asarray(A[:, whole:] @ V[whole:], dtype=np.float64)
    terms = A[:, :whole].reshape(n, -1, TERMS).transpose(1, 0, 2)
    for columns in spans(V.shape[1], TOGETHER) if whole else ():
        parts = terms @ V[:whole, columns].reshape(whole // TERMS, TERMS, -1)
        total[:, columns] += parts.sum(axis=0, dtype=np.float64)
    return total
