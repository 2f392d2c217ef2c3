"""`mercer bench` and `mercer doctor`: how fast this machine is, and what stands in its way."""

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
from mercer.memory import available, budget, show_bytes
from mercer.words import seconds

BLAS = ("openblas", "mkl", "blis")
LIBRARIES = ("numpy", "scipy", "sklearn", "numba", "polars", "matplotlib", "rich", "typer")


def bench(voice: Voice, rows: int) -> None:
    """Times of the steps of a fit, the best of several runs each."""
    from scipy.linalg import cholesky
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics.pairwise import rbf_kernel

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=rows)
    kernel, gamma = mc.Gaussian(3.0), 1.0 / 18.0
    K = kernel(X)
    K[np.diag_indices(rows)] += 0.1
    measured: list[dict[str, Any]] = []
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
    with voice.progress("measuring") as tell:
        for name, run, peer, flops in steps:
            tell(f"measuring: {name}")
            ours_took, theirs_took = _least(run, peer)
            row: dict[str, Any] = {"step": name, "seconds": ours_took}
            if theirs_took is not None:
                row |= {"scikit-learn": theirs_took, "times faster": theirs_took / ours_took}
            if flops is not None:
                row["Gflop/s"] = flops / ours_took / 1e9
            measured.append(row)
    voice.say(f"{rows:,} rows of 10 columns, {threads()} threads; the best of several runs", strong=True)
    voice.table(
        ["step", "mercer", "scikit-learn", "times faster", "Gflop/s"],
        [
            [r["step"], seconds(r["seconds"]), seconds(r["scikit-learn"]) if "scikit-learn" in r else "",
             f"{r['times faster']:.1f}" if "times faster" in r else "", f"{r['Gflop/s']:.1f}" if "Gflop/s" in r else ""]
            for r in measured
        ],
    )  # fmt: skip
    voice.say(f"Predictions of the two agree to {difference:.1e}.")
    voice.document(
        {
            "command": "bench",
            "rows": rows,
            "columns": 10,
            "threads": threads(),
            "steps": measured,
            "difference": difference,
        }
    )


def _least(run: Callable[[], Any], peer: Callable[[], Any] | None) -> tuple[float, float | None]:
    """The least time of each, taken in turns so that both meet the same noise."""
    run()
    if peer is not None:
        peer()
    own: list[float] = []
    other: list[float] = []
    begin = time.perf_counter()
    while len(own) < 3 or (len(own) < 7 and time.perf_counter() - begin < 2.0):
        for times, what in ((own, run), (other, peer)):
            if what is not None:
                start = time.perf_counter()
                what()
                times.append(time.perf_counter() - start)
    return min(own), min(other) if other else None


def threads() -> int:
    """Threads that tiles are filled with."""
    from mercer.threads import n_threads

    return n_threads()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def doctor(voice: Voice) -> int:
    """What is here, and advice; exit code 0 if all is well, 1 if something is missing."""
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
            f"{load:.1f} processes want {n} cores: other programs are running, and times here are theirs, too."
        )
    if any((p["threads"] or 1) < n for p in pools if p["library"] in BLAS):
        advice.append(
            "BLAS has fewer threads than there are cores: OMP_NUM_THREADS, OPENBLAS_NUM_THREADS or MKL_NUM_THREADS "
            "limits it."
        )
    if not any(p["library"] in BLAS for p in pools):
        advice.append("No fast BLAS was found: Cholesky factors will be slow. Install NumPy from PyPI or conda-forge.")
    if speed < 5:
        advice.append(f"Matrix products run at {speed:.1f} Gflop/s, which is slow: see the load and the threads above.")
    memory = budget()
    exact = int((memory / 16) ** 0.5)
    if exact < 5000:
        advice.append(
            f"The memory budget holds exact fits of {exact:,} rows only, then centres. MERCER_MEMORY raises it."
        )
    if not cache:
        advice.append(
            "Numba's cache cannot be written: loops are compiled in every run. Set NUMBA_CACHE_DIR to your own folder."
        )
    elif not compiled:
        advice.append("Numba's cache is empty: the first fits compile their loops, which takes some seconds once.")
    if missing:
        advice.append(f'Not installed: {", ".join(missing)}. pip install "mercer[cli,plot]" brings them.')
    voice.say(
        f"mercer {mc.__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        strong=True,
    )
    voice.pairs(
        [
            ("libraries", ", ".join(f"{name} {v}" for name, v in versions.items())),
            *[
                ("BLAS" if p["library"] in BLAS else "", f"{p['library']} {p['version'] or ''}, {p['threads']} threads")
                for p in pools
            ],
            ("cores", f"{n} (load {load:.1f}); tiles use {threads()} threads"),
            ("memory", f"{show_bytes(available())} free, budget {show_bytes(memory)}: exact fits to {exact:,} rows"),
            ("products", f"{speed:.1f} Gflop/s"),
            ("disk", f"{disk:.0f} MB/s into {tempfile.gettempdir()}" if disk else "temporary files cannot be written"),
            ("Numba cache", f"{compiled} compiled loops" if cache else "cannot be written"),
        ]
    )  # fmt: skip
    for text in advice:
        voice.say(f"- {text}")
    if not advice:
        voice.say("All is well.")
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
    A = np.random.default_rng(0).normal(size=(n, n))
    spent, _ = _least(lambda: A @ A, None)
    return 2 * n**3 / spent / 1e9


def _disk_speed(size: int = 16 << 20) -> float:
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
    """Whether compiled loops can be kept, and how many are."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    place = Path(given) if given else Path(mc.__file__).parent / "_loops" / "__pycache__"
    try:
        place.mkdir(parents=True, exist_ok=True)
        writable = os.access(place, os.W_OK)
        return writable, sum(1 for _ in place.rglob("*.nbc"))
    except OSError:
        return False, 0
