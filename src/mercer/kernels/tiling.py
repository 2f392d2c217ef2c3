"""Tiles over threads: the one loop that fills Gram matrices and multiplies by them.

Every worker thread takes its own tiles; BLAS is held to one thread meanwhile, because two thread pools on the same
cores cost more than either gains. A symmetric matrix computes the tiles on and below the diagonal and mirrors them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer._loops.addresses import TERMS
from mercer.data.points import Array, making
from mercer.errors import InvalidInput
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.block import Block, Pair, Workspace

if TYPE_CHECKING:
    from mercer.kernels.base import Similarity

TILE_ROWS, TILE_COLS = 256, 1024
# Columns of a product in float32 that are added up together: partial sums of more would leave the cache.
TOGETHER = 128

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_local = threading.local()
_blas_users = 0
_blas_limit: Any = None
_controller: Any = None


def n_threads() -> int:
    """Worker threads: MERCER_NUM_THREADS, else the cores this process may use."""
    wanted = os.environ.get("MERCER_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _lock, _blas_users, _blas_limit
    _pool, _lock, _blas_users, _blas_limit = None, threading.Lock(), 0, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while any caller is inside; the last one out restores it."""
    global _blas_users, _blas_limit, _controller
    with _lock:
        if _blas_users == 0:
            if _controller is None:
                from threadpoolctl import ThreadpoolController

                _controller = ThreadpoolController()
            _blas_limit = _controller.limit(limits=1, user_api="blas")
            _blas_limit.__enter__()
        _blas_users += 1
    try:
        yield
    finally:
        with _lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.__exit__(None, None, None)
                _blas_limit = None


def run(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs on the worker threads and raise the first error. Called from a worker, run them right there."""
    global _pool
    workers = n_threads()
    if workers == 1 or len(jobs) == 1 or making() or getattr(_local, "busy", False):
        with single_threaded_blas():
            for job in jobs:
                job()
        return
    with _lock:
        if _pool is None or _pool._max_workers < workers:
            _pool = ThreadPoolExecutor(workers, thread_name_prefix="mercer")
        pool = _pool
    stop = threading.Event()
    with single_threaded_blas():
        futures = [pool.submit(_as_worker, job, stop, getattr(_local, "late", None)) for job in jobs]
        try:
            # Wake now and then: a signal that reached another thread is handled only when this one runs.
            while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done and not stop.is_set():
                pass
        finally:
            # After an error or an interrupt the other jobs end after their current tile.
            stop.set()
            wait(futures)
        for future in futures:
            future.result()


def _as_worker(job: Callable[[], None], stop: threading.Event, late: Callable[[], bool] | None) -> None:
    _local.busy, _local.stop, _local.late = True, stop, late
    try:
        job()
    except BaseException:
        stop.set()
        raise
    finally:
        _local.busy, _local.stop, _local.late = False, None, None


def stopped() -> bool:
    """Whether this worker should give up because another one failed or the caller was interrupted."""
    stop: threading.Event | None = getattr(_local, "stop", None)
    return stop is not None and stop.is_set()


@contextlib.contextmanager
def to_the_end() -> Iterator[Callable[[], bool]]:
    """Within, every tile is computed even if this worker should give up; what is yielded says whether it should.

    For those who must not see half a product: they look for themselves, where they can leave.
    """
    stop: threading.Event | None = getattr(_local, "stop", None)
    _local.stop = None
    try:
        yield lambda: stop is not None and stop.is_set()
    finally:
        _local.stop = stop


class OutOfTime(Exception):
    """The time that `within` allows is over: what was being computed is not complete."""


@contextlib.contextmanager
def within(late: Callable[[], bool]) -> Iterator[None]:
    """Within, loops over tiles ask between two of them whether it is too late, and raise `OutOfTime` if so.

    >>> import mercer as mc
    >>> from mercer.kernels import tiling
    >>> with tiling.within(lambda: True):
    ...     mc.Linear()(np.ones((200, 1)))
    Traceback (most recent call last):
    mercer.kernels.tiling.OutOfTime
    """
    before = getattr(_local, "late", None)
    _local.late = late
    try:
        yield
    finally:
        _local.late = before


def _over() -> bool:
    """Whether to give up before the next tile; raises `OutOfTime` where it is too late for it."""
    if stopped():
        return True
    late: Callable[[], bool] | None = getattr(_local, "late", None)
    if late is not None and late():
        raise OutOfTime
    return False


def workspace() -> Workspace:
    """This thread's scratch buffers."""
    if not hasattr(_local, "workspace"):
        _local.workspace = Workspace()
    space: Workspace = _local.workspace
    return space


def spans(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def blocks(
    pair: Pair, rows: int = TILE_ROWS, cols: int = TILE_COLS, *, triangle: bool = True
) -> list[tuple[slice, slice]]:
    """The tiles of a pair; of a symmetric one, those that meet the lower triangle, square ones on the diagonal."""
    n, m = pair.shape
    if not (pair.same and triangle):
        return [(r, c) for r in spans(n, rows) for c in spans(m, cols)]
    return [(r, c) for r in spans(n, rows) for c in [*spans(r.start, cols), r]]


def each(pair: Pair, work: Callable[[Block, int], None], *, triangle: bool = True) -> None:
    """Call `work(block, share)` on every tile of the pair, over the threads; all of them unless `triangle`.

    The tiles of one share run in a fixed order in one thread, so that sums per share are reproducible.
    """
    n, m = pair.shape
    if n * m < _loops.tiles.SMALL:  # one tile, and nothing to set up
        _work_through(pair, [(slice(0, n), slice(0, m))], work, 0)
        return
    tile_list = blocks(pair, triangle=triangle)
    shares = min(n_threads(), len(tile_list))
    run([partial(_work_through, pair, tile_list[i::shares], work, i) for i in range(shares)])


def _work_through(
    pair: Pair, tile_list: list[tuple[slice, slice]], work: Callable[[Block, int], None], share: int
) -> None:
    space = workspace()
    mark = space.used
    with _loops.tiles.part_of(pair.shape[0] * pair.shape[1]):
        for rows, cols in tile_list:
            if _over():
                return
            try:
                work(pair.block(rows, cols, space), share)
            finally:
                space.release(mark)


def fill(kernel: Similarity, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
    """out = finish(K) for the pair, exactly symmetric where both sides are the same."""

    bounded = _bounded(kernel)

    def work(block: Block, share: int) -> None:
        tile = out[block.rows, block.cols]
        evaluate(kernel, block, tile, bounded)
        if finish is not None:
            finish(tile)
        if block.diagonal:
            symmetrise(tile)
        elif pair.same:
            _loops.tiles.mirror(tile, out[block.cols, block.rows])

    each(pair, work)
    return out


def _bounded(kernel: Similarity) -> bool:
    """Whether values stay within [−1, 1], so that none can overflow."""
    tags = kernel.tags
    return tags.stationary and tags.normalised


def evaluate(kernel: Similarity, block: Block, tile: Array, bounded: bool) -> None:
    """Fill a tile and make sure that nothing overflowed."""
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

    bounded = _bounded(kernel)

    def work(block: Block, share: int) -> None:
        total = totals[share]
        tile = block.scratch()
        evaluate(kernel, block, tile, bounded)
        total[block.rows] += product(tile, V[block.cols])
        if pair.same and not block.diagonal:
            total[block.cols] += product(tile.T, V[block.rows])

    each(pair, work)
    return totals.sum()


def product(A: Array, V: Array) -> NDArray[np.float64]:
    """A V for V of shape (m, t): of float32, `TERMS` terms are added up at a time, and their sums in float64.

    What BLAS loses in long float32 sums depends on the width of its vectors; this bounds it on every processor.

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


class Totals(dict[int, NDArray[np.float64]]):
    """One float64 sum per share, added up in a fixed order."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __missing__(self, share: int) -> NDArray[np.float64]:
        self[share] = np.zeros(self.shape)
        return self[share]

    def sum(self) -> NDArray[np.float64]:
        total = self[0]
        for share in sorted(self)[1:]:
            total += self[share]
        return total


def stripes(n: int, work: Callable[[slice, int], None], *, rows: int = 128, columns: int | None = None) -> None:
    """Call `work(span, share)` on stripes of whole rows, over the threads, each share in a fixed order.

    columns : the number of columns of the matrix that the stripes are tiles of; a small one needs no threads.
    """
    parts = spans(n, rows)
    entries = 0 if columns is None else n * columns
    small = columns is not None and entries < _loops.tiles.SMALL
    shares = 1 if small else min(n_threads(), len(parts))

    def job(share: int) -> None:
        with _loops.tiles.part_of(entries):
            for span in parts[share::shares]:
                if _over():
                    return
                work(span, share)

    run([partial(job, share) for share in range(shares)])
