"""Work over threads: the worker pool, its time limit and interrupts, and sums that do not depend on thread timing.

Every worker thread takes its own share of the work; BLAS is held to one thread meanwhile, because two thread pools on
the same cores cost more than either gains.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._loops import costs, tiles
from mercer.data.points import making

WORTH_A_THREAD = 2**19
"""Entries of elementwise work: for fewer, one thread has finished before a second one has started."""

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
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
    """Forget the pool after a fork: the child has none of its parent's threads."""
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
    """Run the jobs on the worker threads and raise the first error. In a worker, run them in that thread."""
    global _pool, _pool_size
    workers = n_threads()
    if workers == 1 or len(jobs) == 1 or making() or getattr(_local, "busy", False):
        with single_threaded_blas():
            for job in jobs:
                job()
        return
    with _lock:
        if _pool is None or _pool_size < workers:
            _pool, _pool_size = ThreadPoolExecutor(workers, thread_name_prefix="mercer"), workers
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


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Inside this context all work runs in the calling thread, BLAS too: for a task among others on the same cores.

    >>> with alone():
    ...     run([lambda: print(threading.current_thread() is threading.main_thread())] * 2)
    True
    True
    """
    before = getattr(_local, "busy", False)
    _local.busy = True
    try:
        with single_threaded_blas():
            yield
    finally:
        _local.busy = before


def stopped() -> bool:
    """Whether this worker should give up because another one failed or the caller was interrupted."""
    stop: threading.Event | None = getattr(_local, "stop", None)
    return stop is not None and stop.is_set()


@contextlib.contextmanager
def to_the_end() -> Iterator[Callable[[], bool]]:
    """Inside this context every tile is computed, even if this worker should give up.

    It yields a function that returns whether the worker should. Check for an interrupt only with that function, so that
    no caller sees a partial result.
    """
    stop: threading.Event | None = getattr(_local, "stop", None)
    _local.stop = None
    try:
        yield lambda: stop is not None and stop.is_set()
    finally:
        _local.stop = stop


class OutOfTime(Exception):
    """The time that `time_limit` allows is over: the computation is not complete."""


@contextlib.contextmanager
def time_limit(late: Callable[[], bool]) -> Iterator[None]:
    """Inside this context, loops over tiles call `late` between two tiles, and raise `OutOfTime` if it is too late.

    >>> import mercer as mc
    >>> from mercer import threads
    >>> with threads.time_limit(lambda: True):
    ...     mc.Linear()(np.ones((200, 1)))
    Traceback (most recent call last):
    mercer.threads.OutOfTime
    """
    before = getattr(_local, "late", None)
    _local.late = late
    try:
        yield
    finally:
        _local.late = before


def over() -> bool:
    """Whether to give up before the next tile; raises `OutOfTime` if the time is over."""
    if stopped():
        return True
    late: Callable[[], bool] | None = getattr(_local, "late", None)
    if late is not None and late():
        raise OutOfTime
    return False


def spans(n: int, step: int) -> list[slice]:
    """0 … n − 1 in slices of at most `step` positions."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


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
    small = columns is not None and entries < costs.COMPILED_ENTRIES
    shares = 1 if small else min(n_threads(), len(parts))

    def job(share: int) -> None:
        with tiles.part_of(entries):
            for span in parts[share::shares]:
                if over():
                    return
                work(span, share)

    run([partial(job, share) for share in range(shares)])
