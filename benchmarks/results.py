"""Result files of benchmarks: one JSON file for each job, in benchmarks/results.

A script writes its file while it runs: `measure.py` calls `started` once, then `add` for every table, target and
comparison. `run.py` names the file by the environment variable MERCER_BENCH_RECORD and renames it when the script has
ended, so that a file in the folder is always complete. The page "Benchmarks" of the documentation is made from the
files.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
RECORD = "MERCER_BENCH_RECORD"
BUSY = "MERCER_BENCH_BUSY"
LIBRARIES = {
    "numpy": "NumPy", "scipy": "SciPy", "sklearn": "scikit-learn", "numba": "Numba", "torch": "PyTorch",
    "pykeops": "KeOps", "gpytorch": "GPyTorch", "himalaya": "himalaya", "sklearnex": "scikit-learn-intelex",
    "libsvm": "LIBSVM", "statsmodels": "statsmodels", "KDEpy": "KDEpy", "grakel": "GraKeL", "networkx": "networkx",
    "rdkit": "RDKit", "iisignature": "iisignature",
}  # fmt: skip
"""The names of libraries by their modules."""
ALWAYS = ("numpy", "scipy", "sklearn", "numba")
PACKAGES = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex", "libsvm": "libsvm-official"}

_held: dict[str, Any] = {}


def machine() -> dict[str, Any]:
    """The processor, its vector instructions, cores, memory in GB, and the system."""
    import numpy as np

    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8").splitlines()
        processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), processor)
    found = np.show_config("dicts").get("SIMD Extensions", {}).get("found", [])
    vectors = "AVX-512" if any(name.startswith(("AVX512", "X86_V4")) for name in found) else ""
    vectors = vectors or ("AVX2" if {"AVX2", "X86_V3"} & set(found) else "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    return {"processor": processor, "vectors": vectors, "cores": cores, "memory_gb": round(memory),
            "system": platform.system()}  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of Python, of the dependencies, and of the other libraries that this process has imported."""
    found = {"Python": platform.python_version()}
    for module, name in LIBRARIES.items():
        if module in sys.modules or module in ALWAYS:
            try:
                found[name] = version(PACKAGES.get(module, module))
            except PackageNotFoundError:
                found[name] = "unknown"
    return found


def commit() -> str:
    """The commit of this clone, or nothing."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=FOLDER.parent
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


def started() -> None:
    """Begin the file of this process, if `run.py` has asked for one."""
    if RECORD in os.environ:
        _held.update(
            date=datetime.now(UTC).strftime("%Y-%m-%d"), commit=commit(), machine=machine(),
            clock="processor time of one thread" if os.environ.get(BUSY) else "time on the clock",
            load=[round(os.getloadavg()[0], 1)], tables=[], comparisons=[], curves=[],
        )  # fmt: skip
        _write()


def add(kind: str, value: dict[str, Any]) -> None:
    """Add a table, a comparison or curves."""
    if _held:
        _held[kind].append(value)
        _write()


def judged(targets: list[dict[str, Any]]) -> None:
    """Add targets to the last table."""
    if _held and _held["tables"]:
        _held["tables"][-1].setdefault("targets", []).extend(targets)
        _write()


def _write() -> None:
    _held["versions"] = versions()
    _held["load"] = [_held["load"][0], round(os.getloadavg()[0], 1)]
    text = json.dumps(_held, indent=1, ensure_ascii=False, allow_nan=False)
    Path(os.environ[RECORD]).write_text(text + "\n", encoding="utf-8")


def read(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """All results by the names of their jobs."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
