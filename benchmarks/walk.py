"""Which modules a value passes: the flows of docs/architecture.md, recorded with a profiler.

    python benchmarks/walk.py

prints the drawing in "The walk of a value" there: folders in the order in which they are first called, and the modules
of each in the same order.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc

HOME = str(Path(mc.__file__).parent)


def modules(flow: Callable[[], Any]) -> list[str]:
    """The modules of the library whose functions a flow calls, as paths, in the order of the first call."""
    seen: dict[str, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(HOME) and frame.f_code.co_name != "<module>":
            seen.setdefault(path[len(HOME) + 1 : -3])

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        flow()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def drawing(paths: list[str], arrow: str = " → ") -> str:
    """Arrows from folder to folder, each with its modules and subfolders in brackets."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, rest = path.removesuffix("/__init__").partition("/")
        folders.setdefault(folder, []).extend([rest] if rest else [])
    return arrow.join(f"{folder}({drawing(rest, ' ')})" if rest else folder for folder, rest in folders.items())


def flows() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    labels = np.where(y > 0, "yes", "no")
    k = mc.Gaussian(1.0) + 0.5 * mc.Linear()
    folder = Path(tempfile.mkdtemp())
    table = folder / "table.csv"
    lines = ["a,b,c,y", *(",".join(f"{v:.6f}" for v in (*row, target)) for row, target in zip(X, y))]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def fitted_in_the_shell() -> None:
        from mercer.cli import main

        try:
            main(["fit", str(table), "-t", "y", "-o", str(folder / "model.mercer"), "-m", "ridge", "--quiet"])
        except SystemExit as end:
            if end.code:
                raise

    return {
        "kernel → proof": lambda: k.proof().valid,
        "k(X)": lambda: k(X),
        "KernelRidge.fit → loo": lambda: mc.KernelRidge(k, alpha=0.1).fit(X, y).loo_score_,
        "SVC.fit → predict_proba": lambda: mc.SVC(k, calibrated=True).fit(X, labels).predict_proba(X),
        "AutoRegressor.fit": lambda: mc.AutoRegressor(time=60.0).fit(X, y),
        "mercer fit": fitted_in_the_shell,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, flow in flows().items():
        flow()  # imports and compilation at the first call are not part of the walk
        passed = modules(flow)
        print(f"{name}, {len(passed)} modules")
        print(textwrap.fill(drawing(passed), 114, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
