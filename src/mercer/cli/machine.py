"""`mercer bench` and `mercer doctor`: how fast this machine is, and what slows it down."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from mercer.cli.speaking import Voice
from mercer.memory import available, budget
from mercer.words import count, seconds, show_bytes

BLAS = ("openblas", "mkl", "blis")
LIBRARIES = ("numpy", "scipy", "sklearn", "numba", "polars", "matplotlib", "rich", "typer")

EQUAL = 1.05
"""Times whose ratio is below this are equal."""


def bench(voice: Voice, rows: int) -> None:
    """Time the steps of a fit, each as the best of several runs."""
    from scipy.linalg import cholesky
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics.pairwise import rbf_kernel

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=rows)
    kernel, gamma = mc.Gaussian(3.0), 1.0 / 18.0
    K = kernel(X)
    K[np.diag_indices(rows)] += 0.1
    timings: list[dict[str, Any]] = []
    steps: list[tuple[str, Callable[[], Any], Callable[[], Any] | None, float | None]] = [
        ("Gram matrix", lambda: kernel(X), lambda: rbf_kernel(X, gamma=gamma), None),
        ("Cholesky factor", lambda: cholesky(K, lower=True, check_finite=False), None, rows**3 / 3),
        (
            "kernel ridge, fit",
            lambda: mc.KernelRidge(kernel, alpha=0.1).fit(X, y),
            lambda: KernelRidge(alpha=0.1, kernel="rbf", gamma=gamma).fit(X, y),
            None,
        ),
    ]
    ours = mc.KernelRidge(kernel, alpha=0.1).fit(X, y)
    theirs = KernelRidge(alpha=0.1, kernel="rbf", gamma=gamma).fit(X, y)
    steps.append(("kernel ridge, predict", lambda: ours.predict(X), lambda: theirs.predict(X), None))
    difference = float(np.abs(ours.predict(X) - theirs.predict(X)).max())
    with voice.progress("measuring") as update:
        for name, run, peer, flops in steps:
            update(f"measuring: {name}")
            our_time, their_time = _best_times(run, peer)
            row: dict[str, Any] = {"step": name, "seconds": our_time}
            if their_time is not None:
                row |= {"scikit-learn": their_time, "scikit-learn / mercer": their_time / our_time}
            if flops is not None:
                row["Gflop/s"] = flops / our_time / 1e9
            timings.append(row)
    voice.say(f"{rows:,} rows of 10 columns, {count(threads(), 'thread')}; the best of several runs", strong=True)
    voice.table(
        ["step", "mercer", "scikit-learn", "mercer is", "Gflop/s"],
        [
            [r["step"], seconds(r["seconds"]), seconds(r["scikit-learn"]) if "scikit-learn" in r else "",
             _compared(r.get("scikit-learn / mercer")), f"{r['Gflop/s']:.1f}" if "Gflop/s" in r else ""]
            for r in timings
        ],
    )  # fmt: skip
    voice.say(f"The largest difference between the two sets of predictions is {difference:.1e}.")
    voice.document(
        {
            "command": "bench",
            "rows": rows,
            "columns": 10,
            "threads": threads(),
            "steps": timings,
            "difference": difference,
        }
    )


def _compared(ratio: float | None) -> str:
    """How many times as fast, or as slow, as the other library.

    >>> _compared(2.5), _compared(0.25), _compared(1.02), _compared(None)
    ('2.5 times as fast', '4.0 times as slow', 'as fast', '')
    """
    if ratio is None:
        return ""
    if 1 / EQUAL <= ratio <= EQUAL:
        return "as fast"
    return f"{ratio:.1f} times as fast" if ratio > 1 else f"{1 / ratio:.1f} times as slow"


def _best_times(run: Callable[[], Any], peer: Callable[[], Any] | None) -> tuple[float, float | None]:
    """The shortest time of each, run in turns so that both meet the same disturbances."""
    run()
    if peer is not None:
        peer()
    run_times: list[float] = []
    peer_times: list[float] = []
    begin = time.perf_counter()
    while len(run_times) < 3 or (len(run_times) < 7 and time.perf_counter() - begin < 2.0):
        for times, function in ((run_times, run), (peer_times, peer)):
            if function is not None:
                start = time.perf_counter()
                function()
                times.append(time.perf_counter() - start)
    return min(run_times), min(peer_times) if peer_times else None


def threads() -> int:
    """The number of threads that fill tiles."""
    from mercer.threads import n_threads

    return n_threads()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def doctor(voice: Voice) -> int:
    """Describe the environment and give advice; exit code 0, or 1 if a needed package is missing."""
    import threadpoolctl

    versions = {}
    missing = []
    for name in LIBRARIES:
        try:
            versions[name] = version({"sklearn": "scikit-learn"}.get(name, name))
        except PackageNotFoundError:
            missing.append(name)
    import scipy.linalg  # loads the second BLAS, if there is one

    assert scipy.linalg is not None
    pools = [
        {
            "library": p.get("internal_api"),
            "version": p.get("version"),
            "threads": p.get("num_threads"),
            "file": p.get("filepath"),
        }
        for p in threadpoolctl.threadpool_info()
    ]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    advice: list[str] = []
    with voice.progress("measuring"):
        speed = _matrix_speed()
        disk = _disk_speed()
        cache, compiled = _numba_cache()
    n = cores()
    if load > 1.2 * n:
        advice.append(
            f"{load:.1f} processes compete for {n} cores: other programs slow down this one, and all times here."
        )
    if any((p["threads"] or 1) < n for p in pools if p["library"] in BLAS):
        advice.append(
            "BLAS uses fewer threads than there are cores: check OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and "
            "MKL_NUM_THREADS."
        )
    if not any(p["library"] in BLAS for p in pools):
        advice.append("No fast BLAS was found, so factorisations are slow: install NumPy from PyPI or conda-forge.")
    if speed < 5:
        advice.append(f"Matrix products are slow ({speed:.1f} Gflop/s): check the load and the threads above.")
    memory = budget()
    exact = int((memory / 16) ** 0.5)
    if exact < 5000:
        advice.append(
            f"The memory budget allows exact fits of up to {exact:,} rows only: set MERCER_MEMORY to raise it."
        )
    if not cache:
        advice.append(
            "Numba's cache cannot be written, so every run compiles its loops: set NUMBA_CACHE_DIR to your own folder."
        )
    elif not compiled:
        advice.append("Numba's cache is empty: the first fits compile their loops once, which takes some seconds.")
    if missing:
        advice.append(f'Not installed: {", ".join(missing)}. Install them with: pip install "mercer[cli,plot]"')
    voice.say(
        f"mercer {mc.__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        strong=True,
    )
    voice.pairs(
        [
            ("libraries", ", ".join(f"{name} {v}" for name, v in versions.items())),
            *[
                (
                    "BLAS" if p["library"] in BLAS else "",
                    f"{p['library']} {p['version'] or ''}, {count(p['threads'] or 1, 'thread')}",
                )
                for p in pools
            ],
            ("cores", f"{n} (load {load:.1f}); mercer uses {count(threads(), 'thread')}"),
            (
                "memory",
                f"{show_bytes(available())} free, budget {show_bytes(memory)}: exact fits of up to {exact:,} rows",
            ),
            ("speed", f"{speed:.1f} Gflop/s in matrix products"),
            ("disk", f"{disk:.0f} MB/s to {tempfile.gettempdir()}" if disk else "temporary files cannot be written"),
            ("Numba cache", f"{compiled} compiled loops" if cache else "cannot be written"),
        ]
    )  # fmt: skip
    for text in advice:
        voice.say(f"- {text}")
    if not advice:
        voice.say("No problems found.")
    voice.document(
        {
            "command": "doctor", "version": mc.__version__, "python": platform.python_version(),
            "platform": platform.platform(),
            "executable": sys.executable, "libraries": versions, "missing": missing, "blas": pools,
            "cores": n, "load": load,
            "threads": threads(), "memory_available": available(), "memory_budget": memory, "gflops": speed,
            "disk_mb_s": disk,
            "numba_cache_writable": cache, "numba_cached": compiled, "advice": advice,
        }
    )  # fmt: skip
    return 1 if "polars" in missing or "numba" in missing else 0


def _matrix_speed(n: int = 600) -> float:
    """Gflop/s of a matrix product."""
    A = np.random.default_rng(0).normal(size=(n, n))
    spent, _ = _best_times(lambda: A @ A, None)
    return 2 * n**3 / spent / 1e9


def _disk_speed(size: int = 16 << 20) -> float:
    """MB/s of writing a temporary file; 0 if that fails."""
    block = os.urandom(1 << 20)
    try:
        with tempfile.TemporaryFile() as file:
            start = time.perf_counter()
            for _ in range(size >> 20):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            return size / 1e6 / (time.perf_counter() - start)
    except OSError:
        return 0.0


def _numba_cache() -> tuple[bool, int]:
    """Whether Numba's cache can be written, and the number of compiled loops in it."""
    setting = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(setting) if setting else Path(mc.__file__).parent / "_loops" / "__pycache__"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
        return writable, sum(1 for _ in folder.rglob("*.nbc"))
    except OSError:
        return False, 0
