"""Work on a Dask cluster: the only module that knows Dask.

Tasks are pure functions of their arguments and stay on no particular worker, so the scheduler repeats those of a worker
that died. Data that this process sends (centres, coefficients, rows of arrays) becomes tasks that return it, so that
sending can be repeated, too.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Array = NDArray[Any]
SHARE = 0.3
"""The share of a worker's memory that rows may take: it begins to write to disk at 0.6."""
WIDTH = 8
"""Parts that one task adds up."""
MESSAGE = 2**22
"""Bytes of an array that are sent at a time: Dask warns of graphs over 10 MB."""
CONNECTING = 10.0
"""Seconds to wait for the scheduler of a cluster."""
EXAMPLES = {"b": False, "i": 1, "u": 1, "f": 1.0}


class ClusterLost(InvalidInput):
    """The scheduler of a cluster cannot be reached any more, or a task ended every worker that ran it."""


def is_dask(value: Any) -> bool:
    """Whether a value is a collection of Dask, which is not imported for this.

    >>> is_dask(np.ones(3))
    False
    """
    return type(value).__module__.partition(".")[0] == "dask" and hasattr(value, "__dask_graph__")


def is_bag(value: Any) -> bool:
    """Whether a value is a bag of Dask: a sequence of any objects in partitions."""
    return _from(value, "bag")


def is_frame_of_dask(value: Any) -> bool:
    """Whether a value is a data frame of Dask."""
    return _from(value, "dataframe") and getattr(value, "ndim", 0) == 2


def _from(value: Any, part: str) -> bool:
    """Whether a value is a collection of one part of Dask."""
    return is_dask(value) and type(value).__module__.split(".")[1] == part


def require_rows(X: Any) -> None:
    """Refuse a collection of Dask that is not a two-dimensional array or a data frame."""
    if not is_frame_of_dask(X) and not (_from(X, "array") and X.ndim == 2):
        shape = f" with {X.ndim} dimensions" if _from(X, "array") else ""
        raise InvalidInput(
            "Rows of Dask must be a two-dimensional array or a data frame",
            got=f"{type(X).__name__}{shape}",
            advice="Make one row per point: X.reshape, series.to_frame(), or compute it first, X.compute().",
        )


def in_memory(value: Any) -> Any:
    """A collection of Dask as NumPy or pandas holds it; any other value unchanged."""
    return value.compute() if is_dask(value) else value


class Cluster:
    """Where tasks run: a client's cluster, or the threads of this process.

    Parameters
    ----------
    client : distributed.Client or None
        By default the active client, or Dask's threaded scheduler if there is none.

    Examples
    --------
    >>> cluster = Cluster()
    >>> cluster.result(cluster.tree([cluster.task(pow, 2, k) for k in range(4)], lambda *parts: sum(parts)))
    15
    """

    def __init__(self, client: Any = None) -> None:
        try:
            import cloudpickle  # type: ignore[import-untyped]
            import dask
            from dask.delayed import delayed
        except ImportError:
            raise InvalidInput(
                "Rows on a cluster need Dask",
                got="an installation without it",
                advice='Install it with: pip install "mercer[dask]"',
            ) from None
        self._dumps = cloudpickle.dumps
        self._config, self._delayed, self.client = dask.config, delayed, _active() if client is None else client
        self._sent: dict[int, tuple[Array, list[slice], list[Any]]] = {}
        self._kept: list[Any] = []
        self.keeping, self.releases = True, 0
        if self.client is not None and self.client.status != "running":
            raise _lost(self.client, f"the client is {self.client.status}")

    @property
    def threads(self) -> int:
        """Tasks that run at the same time, at least one: an adaptive cluster may have no worker yet."""
        if self.client is None:
            from dask.system import CPU_COUNT

            return int(self._config.get("num_workers", None) or CPU_COUNT)
        with self._reachable():
            return max(1, sum(self.client.nthreads().values()))

    def memory(self) -> tuple[float, float]:
        """Bytes of all workers together, and bytes per task of the worker with the least; infinite if not limited."""
        if self.client is None:
            return np.inf, np.inf
        with self._reachable():
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [(worker["memory_limit"] or np.inf, max(1, worker["nthreads"])) for worker in workers]
        return sum(limit for limit, _ in limits) or np.inf, min((limit / n for limit, n in limits), default=np.inf)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call that runs on a worker; arguments may be other tasks."""
        return self._delayed(function, pure=False, traverse=False)(*arguments)

    def value(self, value: Any) -> Any:
        """A small value for many tasks of one computation, sent once: a task that returns it."""
        return self.task(partial(_same, value))

    def kept(self, tasks: list[Any]) -> list[Any]:
        """The same tasks, whose results stay on the workers; those of a worker that dies are computed again.

        After `release` nothing is kept any more, unless `keeping` is set.
        """
        if not self.keeping:
            return tasks
        kept = self._persisted(tasks)
        self._kept += kept
        return kept

    def shipped(self, value: Any) -> Any:
        """A value of any size for many computations, sent once, which stays on the workers."""
        if self.client is None:
            return self.value(value)
        packed = np.frombuffer(self._dumps(value), np.uint8)
        parts = [self._persisted([self.value(packed[i : i + MESSAGE])])[0] for i in range(0, len(packed), MESSAGE)]
        (there,) = self.kept([self.task(_unpacked, *parts)])
        return there

    def each(self, function: Callable[..., Any], shared: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """function(shared, *arguments) for every tuple of arguments, in their order; `shared` is sent once.

        >>> Cluster().each(pow, 2, [(1,), (3,)])
        [2, 8]
        """
        self.keeping = True
        there = self.shipped(shared)
        try:
            return list(self.result(self.task(listed, *[self.task(function, there, *some) for some in arguments])))
        finally:
            self.release()

    def sent(self, A: Array, spans: list[slice]) -> list[Any]:
        """The rows of an array in these spans, sent once, which stay on the workers; one row if all of them are equal.

        They are tasks that return them, so that the scheduler can repeat them: what `scatter` sends is lost with a
        worker.
        """
        known = self._sent.get(id(A))
        if known is not None and known[0] is A and known[1] == spans:
            return known[2]
        if (A[:1] == A).all():
            parts = self._persisted([self.value(A[:1].copy())]) * len(spans)
        else:
            parts = []
            step = max(1, MESSAGE * len(spans) // A.nbytes)
            for i in range(0, len(spans), step):
                parts += self._persisted([self.value(A[span]) for span in spans[i : i + step]])
        self._sent[id(A)] = A, spans, parts
        return parts

    def forget(self, A: Array) -> None:
        """Release the rows of an array that were sent."""
        self._sent.pop(id(A), None)

    def _persisted(self, tasks: list[Any]) -> list[Any]:
        if self.client is None:
            return tasks
        with self._reachable():
            return list(self.client.persist(tasks, optimize_graph=False))

    def tree(self, parts: list[Any], merge: Callable[..., Any]) -> Any:
        """One task from many: every `merge` takes a few parts, in their order."""
        while len(parts) > 1:
            parts = [self.task(merge, *parts[i : i + WIDTH]) for i in range(0, len(parts), WIDTH)]
        return parts[0]

    def stacked(self, tasks: list[Any], shapes: list[tuple[int, int]], dtype: Any) -> Any:
        """A Dask array of the results of tasks, each some of its rows."""
        import dask.array

        da: Any = dask.array
        return da.concatenate([da.from_delayed(task, shape, dtype) for task, shape in zip(tasks, shapes)])

    def result(self, task: Any) -> Any:
        """The value of a task."""
        if self.client is None:
            return task.compute(scheduler="threads", optimize_graph=False)
        from distributed import KilledWorker

        with self._reachable():
            future = self.client.compute(task, optimize_graph=False)
        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterLost(
                "A task must not end the worker that runs it",
                got=f"{error}",
                advice="Give workers more memory or fewer threads, or make the partitions smaller: X.rechunk, "
                "frame.repartition.",
            ) from error
        except CancelledError as error:
            raise _lost(self.client, str(error)) from error
        except BaseException:
            future.cancel()  # an interrupt: the workers stop, too
            raise
        finally:
            future.release()

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        """Calls of the scheduler, whose failures are reported in plain words."""
        try:
            yield
        except (OSError, TimeoutError) as error:
            raise _lost(self.client, f"{type(error).__name__}: {error}") from error

    def release(self) -> None:
        """Release everything that this computation keeps on the workers, at once."""
        kept, self._kept = [*self._kept, *(part for *_, parts in self._sent.values() for part in parts)], []
        self._sent.clear()
        self.keeping, self.releases = False, self.releases + 1
        if self.client is not None and kept:
            from distributed import futures_of

            with contextlib.suppress(Exception):  # the cluster may be gone
                for future in futures_of(kept):  # type: ignore[no-untyped-call]
                    future.release()


def client_at(address: str) -> Any:
    """A client of the cluster whose scheduler has this address."""
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput(
            "A cluster needs Dask's distributed package",
            got="an installation without it",
            advice='Install it with: pip install "mercer[dask]"',
        ) from None
    try:
        client = Client(address, timeout=CONNECTING)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "--dask must be the address of a running Dask scheduler, such as tcp://10.0.0.1:8786",
            got=f"{address}, which does not answer ({type(error).__name__})",
            advice="Start one with `dask scheduler` and `dask worker ADDRESS`, or correct the address of --dask.",
        ) from None
    return client


def _active() -> Any:
    """The active client, or None; without a client there is no need to load `distributed`."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    try:
        return Client.current()  # type: ignore[no-untyped-call]
    except ValueError:
        return None


def _lost(client: Any, reason: str) -> ClusterLost:
    where = "the cluster" if client is None else f"the cluster at {client.scheduler.address}"
    return ClusterLost(
        "The scheduler and the workers of a cluster must stay reachable during a computation",
        got=f"no answer from {where} ({' '.join(reason.split())})",
        advice="Start the cluster again and repeat the call; with `checkpoint` a fit continues where it was.",
    )


def _same(value: Any) -> Any:
    return value


def listed(*parts: Any) -> list[Any]:
    """The results of several tasks, as one task."""
    return list(parts)


def _unpacked(*parts: Array) -> Any:
    return pickle.loads(b"".join(part.tobytes() for part in parts))


# -- lazy results ------------------------------------------------------------------------------------------------------


def each_block(call: Callable[..., Any], model: Any, X: Any) -> Any:
    """`call(model, rows)` on every block of rows of a Dask array, frame or bag, lazily.

    A Dask array for an array; for a frame a series or a frame with its index; for a bag of objects a bag of results.
    Shape and type are found on one made-up row, and stated to Dask, which computes nothing here. The model is one task,
    not a part of every task.
    """
    from dask.delayed import delayed

    sent = delayed(model, traverse=False)
    if is_bag(X):
        return X.map_partitions(_on_bag, sent, call)
    require_rows(X)
    if is_frame_of_dask(X):
        example = _checked(call(model, X._meta_nonempty))
        return X.map_partitions(_on_frame, sent, call, example[:0], meta=_labelled(X._meta, example[:0]))
    X = whole_rows(X)
    example = _checked(call(model, np.full((1, X.shape[1]), EXAMPLES.get(X.dtype.kind, 1.0), X.dtype)))
    layout: dict[str, Any] = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], *example.shape[1:])}
    if example.ndim > 2:
        layout["new_axis"] = list(range(2, example.ndim))
    return X.map_blocks(_on_array, sent, call, example[:0], dtype=example.dtype, meta=example[:0], **layout)


def whole_rows(X: Any) -> Any:
    """A Dask array with rows in one piece: chunks of the same rows are joined, and no row changes its chunk."""
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _checked(result: Any) -> Array:
    if not isinstance(result, np.ndarray) or result.ndim == 0:
        raise InvalidInput(
            "On rows of Dask a method must return one array",
            got=type(result).__name__,
            advice="Compute the rows first, X.compute(), or ask for one result at a time.",
        )
    return result


def _on_array(X: Any, model: Any, call: Callable[..., Any], nothing: Array) -> Array:
    return np.asarray(call(model, X)) if len(X) else nothing


def _on_bag(objects: Any, model: Any, call: Callable[..., Any]) -> list[Any]:
    some = list(objects)
    return list(call(model, some)) if some else []


def _on_frame(X: Any, model: Any, call: Callable[..., Any], nothing: Array) -> Any:
    return _labelled(X, np.asarray(call(model, X)) if len(X) else nothing)


def _labelled(X: Any, values: Array) -> Any:
    """Values as a series or a frame with the index of the rows."""
    frame = type(X)(values[:, None] if values.ndim == 1 else values, index=X.index)
    return frame.iloc[:, 0] if values.ndim == 1 else frame


def row_blocks(X: Any) -> list[Any]:
    """The blocks of rows of a Dask array or frame, as tasks."""
    blocks: Iterator[Any] = iter(X.to_delayed() if is_frame_of_dask(X) else whole_rows(X).to_delayed().ravel())
    return list(blocks)
