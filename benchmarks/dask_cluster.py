"""A pass over rows on a Dask cluster beside the threads of one process, and what follows for many machines.

    python benchmarks/dask_cluster.py            # about two minutes on two idle cores
    python benchmarks/dask_cluster.py --quick    # small sizes: does it run?

On an idle machine only: Dask's own threads on workers (its profiler, heartbeats) work by the clock, so that a pass that
waits for other processes counts more of their processor time.

The work is Φᵀ(Φ v) on m centres, one iteration of a fit on centres, float32 rows. Times are the shortest of several
passes, in turns. Processor time is that of all processes together, which other work on the machine does not lengthen;
the constants are made from it. Two workers with one thread each stand beside two threads of this process. The overhead
is the time of a pass of as many tasks over so few rows that nothing else takes time. Bytes are those that the workers
receive from each other, and the description of the tasks that the client sends.

The last table projects these figures to 10⁹ rows of 100 columns: see `projected` for what it counts and assumes.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np

from measure import heading, judge, machine, table

COLUMNS = 100


@dataclass(frozen=True)
class Constants:
    """What was measured here.

    Attributes
    ----------
    entry : seconds of one entry of K_nm in a pass, on one core, for 100 columns.
    task : processor seconds of the scheduler and the client per task.
    received : bytes that workers receive in a pass beyond the sums and coefficients themselves, per task.
    described : bytes of the description of a task that the client sends.
    """

    entry: float
    task: float
    received: float
    described: float


@dataclass(frozen=True)
class Machines:
    """What is assumed about a cluster: a common cloud machine."""

    cores: int = 4
    memory: float = 16e9
    network: float = 1.25e9  # bytes per second, 10 Gbit/s
    latency: float = 5e-4
    disk: float = 2e8  # bytes per second and machine, from an object store
    client: float = 64e9  # memory of the process that calls `fit`


@dataclass(frozen=True)
class Projection:
    """One iteration on a cluster, in seconds and bytes, and the fit.

    Attributes
    ----------
    workers : machines.
    compute, scheduling, network, reading : seconds of an iteration.
    once : seconds before the first iteration: targets to the workers, the preconditioner.
    nbytes : bytes over the network in an iteration.
    per_worker : bytes of rows on every machine, if they are kept there.
    client : bytes in the process that calls `fit`.
    """

    workers: int
    compute: float
    scheduling: float
    network: float
    reading: float
    once: float
    nbytes: float
    per_worker: float
    client: float

    @property
    def seconds(self) -> float:
        """Workers compute and read while the scheduler sends the next tasks; sums wait for both."""
        return max(self.compute + self.reading, self.scheduling) + self.network

    @property
    def bottleneck(self) -> str:
        parts = {
            "kernel entries": self.compute,
            "the scheduler": self.scheduling,
            "the network": self.network,
            "reading rows again": self.reading,
        }
        return max(parts, key=lambda name: parts[name])


def projected(
    constants: Constants, workers: int, n: int = 10**9, m: int = 10_000, t: int = 1, on: Machines | None = None
) -> Projection:
    """An iteration of a fit on m centres to n rows of 100 columns, float32.

    Rows stay in the memory of the workers if they take at most 30 % of it (as in the library); else every iteration
    reads them again. The coefficients reach all workers, and sums come back, through trees of depth log₂ and log₈ of
    the workers and tasks. Before the first iteration the targets go from the client through the scheduler, and the
    client computes the preconditioner from s m rows, s m³ operations, whose time beside that of an entry is the ratio
    that the solver itself assumes (`ENTRY_FLOPS`).
    """
    from mercer.data.cluster import SHARE, WIDTH
    from mercer.data.dask_rows import piece_rows
    from mercer.solvers.costs import ENTRY_FLOPS
    from mercer.solvers.nystrom import sample_size

    on, d = on or Machines(), COLUMNS
    rows = piece_rows(n, d, workers * on.cores, SHARE * on.memory / on.cores)
    tasks = -(-n // rows)
    waves = -(-tasks // (workers * on.cores))
    added = merges(tasks)
    sums = 8 * m * t
    stay = 4 * n * d <= SHARE * on.memory * workers
    moved = sums * (workers + tasks + added) + constants.received * tasks + constants.described * (tasks + added)
    levels = np.log2(max(2, workers)) + np.log(max(2, tasks)) / np.log(WIDTH)
    return Projection(
        workers=workers,
        compute=waves * rows * m * constants.entry,
        scheduling=(tasks + added) * constants.task,
        network=levels * (on.latency + sums / on.network) + constants.described * (tasks + added) / on.network,
        reading=0.0 if stay else 4 * n * d / (workers * on.disk),
        once=2 * 8 * n * t / on.network + sample_size(n, m, 1e-3) * m**2 * constants.entry / ENTRY_FLOPS / on.cores,
        nbytes=moved,
        per_worker=4 * n * d / workers,
        client=4 * 8 * n * t,
    )


def projections(constants: Constants) -> None:
    """Print the table of the page on many machines."""
    lines = []
    for workers in (10, 100, 1000):
        p = projected(constants, workers)
        lines.append(
            [
                f"{workers:,}",
                f"{p.compute:,.1f}",
                f"{p.reading:,.1f}",
                f"{p.scheduling:,.1f}",
                f"{p.network:,.2f}",
                f"{p.seconds:,.0f}",
                f"{p.nbytes / 1e9:.2f}",
                f"{p.per_worker / 1e9:,.1f}",
                f"{p.once:,.0f}",
                p.bottleneck,
            ]
        )
    heads = ["machines", "entries s", "reading s", "scheduling s", "network s", "iteration s", "network GB"]
    table([*heads, "rows GB per machine", "before s", "bottleneck"], lines)


@dataclass(frozen=True)
class Pass:
    """One pass: seconds on the clock, processor seconds of this process (with the scheduler) and of the workers, and
    bytes that workers received from each other."""

    seconds: float
    here: float
    workers: float
    received: float


def passed(Phi: Any, V: np.ndarray, client: Any = None) -> Pass:
    before, here, start = _spent(client), process_time(), perf_counter()
    Phi.normal(V)
    seconds, here = perf_counter() - start, process_time() - here
    after = _spent(client)
    return Pass(seconds, here, after[0] - before[0], after[1] - before[1])


def _spent(client: Any) -> np.ndarray:
    """Processor seconds of all workers so far, and bytes that they received."""
    return np.zeros(2) if client is None else np.sum(list(client.run(_counters).values()), axis=0)


def _counters(dask_worker: Any) -> tuple[float, float]:
    return process_time(), float(sum(entry["total"] for entry in dask_worker.transfer_incoming_log))


def measured(n: int, m: int, rounds: int) -> tuple[Constants, dict[str, float]]:
    import cloudpickle
    import dask.array as da
    from distributed import Client, LocalCluster

    import mercer as mc
    from mercer.data import cluster, dask_rows
    from mercer.data.dask_rows import DaskRows
    from mercer.gram.streamed import StreamedGram

    there_rows = da.random.default_rng(0).standard_normal(size=(n, COLUMNS), chunks=(-(-n // 16), COLUMNS))
    there_rows = there_rows.astype(np.float32)  # made on the workers
    X = there_rows.compute(scheduler="threads")
    k, V = mc.Gaussian(float(np.sqrt(COLUMNS))), np.ones((m, 1))
    few, fewer = k.prepare(X[:m].copy()), k.prepare(X[:8].copy())  # a view of the rows would be copied per block
    here = mc.gram.of(k, X).low_rank(few, np.float32, budget=64 * m * m)
    assert not here.stored
    runs: dict[str, list[Pass]] = {"threads": [], "cluster": [], "overhead": []}
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local, Client(local) as client:
        rows = DaskRows(there_rows)
        dask_rows.FEWEST_ROWS = 16  # as many tasks for a few rows
        tiny = DaskRows(da.from_array(X[: 16 * len(rows.spans)], chunks=(16, COLUMNS)))
        assert len(rows.spans) == len(tiny.spans)
        there = StreamedGram(k, rows, few).low_rank(few, np.float32)
        empty = StreamedGram(k, tiny, fewer).low_rank(fewer, np.float32)
        np.testing.assert_allclose(there.normal(V), here.normal(V), rtol=1e-3)
        empty.normal(V[:8])

        sizes: list[int] = []
        result = cluster.Cluster.result

        def weighed(self: Any, task: Any) -> Any:
            sizes.append(len(cloudpickle.dumps(dict(task.__dask_graph__()))))
            return result(self, task)

        cluster.Cluster.result = weighed  # type: ignore[method-assign]
        there.normal(V)
        cluster.Cluster.result = result  # type: ignore[method-assign]
        for _ in range(rounds):
            runs["threads"].append(passed(here, V))
            runs["cluster"].append(passed(there, V, client))
            runs["overhead"].append(passed(empty, V[:8], client))
        tasks = len(rows.spans) + merges(len(rows.spans)) + 1  # and one that returns the coefficients
        for source in (rows, tiny):
            source.cluster.release()
    figures = {"tasks": tasks, "graph": sizes[0], "sums": 8 * m, "received": min(r.received for r in runs["cluster"])}
    for name, values in runs.items():
        figures[name] = min(run.seconds for run in values)
        figures[f"{name} spent"] = min(run.here + run.workers for run in values)
    entry = figures["threads spent"] / (n * m)
    task = min(run.here for run in runs["overhead"]) / tasks
    received = max(0.0, figures["received"] - 8 * m * tasks) / tasks
    described = (figures["graph"] - 4 * m) / tasks  # the coefficients are float32
    return Constants(float(entry), float(task), float(received), float(described)), figures


def merges(parts: int) -> int:
    """Tasks that add up so many parts."""
    from mercer.data.cluster import WIDTH

    total = 0
    while parts > 1:
        parts = -(-parts // WIDTH)
        total += parts
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, m, rounds = (20_000, 200, 2) if quick else (200_000, 1000, 5)
    machine()
    constants, f = measured(n, m, rounds)
    heading(f"One pass on a Dask cluster, n = {n:,}, {COLUMNS} columns, m = {m:,}, float32")
    table(
        ["", "figure", "aim"],
        [
            ["two threads of this process, s", f"{f['threads']:.3f}", ""],
            ["two workers, s", f"{f['cluster']:.3f}", ""],
            ["speed of the workers beside the threads", f"{f['threads'] / f['cluster']:.2f}", "≥ 0.8"],
            ["the same in processor time", f"{f['threads spent'] / f['cluster spent']:.2f}", ""],
            ["overhead of a pass, ms", f"{1e3 * f['overhead']:.0f}", "< 50"],
            ["its processor time, ms", f"{1e3 * f['overhead spent']:.0f}", ""],
            ["tasks of a pass", f"{f['tasks']:.0f}", ""],
            ["bytes of one sum", f"{f['sums']:,.0f}", ""],
            ["bytes that workers receive from each other", f"{f['received']:,.0f}", ""],
            ["bytes that the client sends", f"{f['graph']:,.0f}", ""],
        ],
    )
    if not quick:
        judge(
            [
                ("speed of two workers in units of two threads", f["threads"] / f["cluster"], 0.8),
                ("50 ms in units of the overhead of a pass", 0.05 / f["overhead"], 1.0),
            ]
        )
    print(f"{constants}\n")
    heading(f"Projected: an iteration on 10⁹ rows of {COLUMNS} columns, 10 000 centres")
    projections(constants)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
