"""Tools that all benchmarks share: time, memory, tables, and the verdict on a target."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

clock: Callable[[], float] = time.perf_counter
_one_thread: Any = None
REST = 0.3
"""Seconds between two runs: thread pools stay busy for a while after their work and would slow down the next run."""


def machine() -> None:
    """Print the machine of the measurement."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{platform.processor() or platform.machine()}, {cores} cores, Python {platform.python_version()}, ", end="")
    print(f"NumPy {np.__version__}, load before {os.getloadavg()[0]:.1f}\n", flush=True)


def on_busy_machine() -> None:
    """From here on, count the processor time of one thread instead of the time on the clock."""
    global clock, _one_thread
    os.environ["MERCER_NUM_THREADS"] = "1"
    clock, _one_thread = time.process_time, threadpool_limits(limits=1)
    print("Processor time of one thread.\n", flush=True)


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


def table(header: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join(" --- " if i == 0 else " ---: " for i in range(len(header))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def judge(targets: list[tuple[str, float, float]]) -> None:
    """Print each target, given as (what, measured, required at least), and whether it is met."""
    for what, measured, required in targets:
        if math.isfinite(measured):
            verdict = "met" if measured >= required else "**missed**"
            print(f"* {what}: {measured:.3g}, target ≥ {required:g}: {verdict}")
    print(flush=True)
