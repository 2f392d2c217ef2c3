"""Tools that all benchmarks share: time, memory, tables, the verdict on a target, and the record of all of them.

A script calls `machine` once; then `heading`, `table` and `judge` print, and `compared` keeps the numbers of a
comparison for the plots. All four write to a result file if `run.py` runs the script (see `results.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import results

BUSY = bool(os.environ.get(results.BUSY))
"""Whether the processor time of one thread counts instead of the time on the clock (`run.py --busy`)."""
WORKERS = 1 if BUSY else 2
"""Processes of other libraries that run candidates side by side."""
clock: Callable[[], float] = time.process_time if BUSY else time.perf_counter
_title = ""
REST = 0.3
"""Seconds between two runs: thread pools stay busy for a while after their work and would slow down the next run."""


def machine() -> None:
    """Print the machine of the measurement, and begin the record."""
    results.started()
    about, load = results.machine(), os.getloadavg()[0]
    print(f"{about['processor']}, {about['cores']} cores, {about['vectors']}, {about['memory_gb']} GB, load {load:.1f}")
    print(", ".join(f"{name} {number}" for name, number in results.versions().items()) + "\n", flush=True)
    if BUSY:
        print("Processor time of one thread.\n", flush=True)


def heading(text: str) -> None:
    """Print the title of the next table."""
    global _title
    _title = text
    print(f"### {text}\n", flush=True)


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds of one call, after a rest, and its result."""
    gc.collect()
    time.sleep(REST)
    start = clock()
    result = function(*arguments)
    return clock() - start, result


def race(competitors: dict[str, Callable[[], Any]], runs: dict[str, int]) -> dict[str, tuple[float, Any]]:
    """The shortest time and the last result of each; a round runs each once, so that a slow minute affects all."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    results: dict[str, Any] = {}
    for turn in range(max(runs.values())):
        for name, run in competitors.items():
            if turn < runs[name]:
                results.pop(name, None)
                seconds, results[name] = timed(run)
                times[name].append(seconds)
    return {name: (min(times[name]), results[name]) for name in competitors}


def held(key: str) -> float:
    """VmRSS (now) or VmHWM (the peak) of this process in MB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1024


def peak(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """MB that one call needs in addition to the memory of the process before it, and its result."""
    gc.collect()
    before = held("VmRSS")
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # reset the peak
    result = function(*arguments)
    return held("VmHWM") - before, result


def alone(script: str, order: dict[str, Any], **environment: str) -> list[float]:
    """The numbers that `script --child order` prints last, in a process of its own."""
    answer = subprocess.run(
        [sys.executable, script, "--child", json.dumps(order)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return [float(word) for word in answer.stdout.split()]


def sizes_parser(description: str | None, most: int) -> argparse.ArgumentParser:
    """The arguments of a script that fits growing numbers of rows, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--most", type=int, default=most, help="the largest number of rows")
    parser.add_argument("--plot", help="also draw the times to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser


def curves(title: str, x: str, y: str, lines: dict[str, list[tuple[float, float]]], path: str | None = None) -> None:
    """Record lines of points by their labels, in logarithms, which the page draws; also draw them to a file."""
    results.add("curves", {"title": title, "x": x, "y": y, "lines": lines})
    if path is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for label, points in lines.items():
        axes.loglog(*zip(*points, strict=True), "o-", label=label)
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def table(header: list[str], rows: list[list[str]]) -> None:
    """Print and record a table under the last heading."""
    results.add("tables", {"title": _title, "header": header, "rows": rows})
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join(" --- " if i == 0 else " ---: " for i in range(len(header))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def compared(task: str, seconds: dict[str, float], size: float | None = None) -> None:
    """Record seconds of the same task by the names of the libraries, of which one is Mercer.

    Comparisons with the same words and different sizes (numbers of rows) are drawn as growth.
    """
    known = {name: float(f"{value:.4g}") for name, value in seconds.items() if math.isfinite(value)}
    if "Mercer" not in known:
        raise ValueError(f"no time of Mercer among {list(seconds)}")
    results.add("comparisons", {"task": task, "size": size, "seconds": known})


def judge(targets: list[tuple[str, float, float]]) -> None:
    """Print and record each target, given as (what, measured, required at least), and whether it is met."""
    targets = [target for target in targets if math.isfinite(target[1])]
    results.judged([{"what": w, "measured": float(f"{m:.4g}"), "required": float(r)} for w, m, r in targets])
    for what, measured, required in targets:
        verdict = "met" if measured >= required else "**missed**"
        print(f"* {what}: {measured:.3g}, target ≥ {required:g}: {verdict}")
    print(flush=True)
