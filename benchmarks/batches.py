"""Kernel ridge from Parquet files of a hundred thousand to ten million rows: is the time linear in the rows?

    python benchmarks/batches.py                        # n = 1e5, 1e6, 1e7: about ten minutes on two cores
    python benchmarks/batches.py --quick                # seconds, small sizes: does it run?
    python benchmarks/batches.py --most 1000000         # up to this number of rows
    python benchmarks/batches.py --plot PNG             # also draw the times (needs matplotlib)

The rows are those of `scale.py`, float32, d = 20, in a folder of files of a million rows each. Every fit runs in a
process of its own, on 1 000 centres, within a budget of 2 GB, after a small fit that compiles and loads everything.
Memory is the peak of the whole process. The error is that of 5 000 other points, against the target without noise.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from measure import alone, curves, heading, held, judge, machine, sizes_parser, table, timed
from scale import ALPHA, SIGMA, TEST, D, data

SIZES, QUICK = (100_000, 1_000_000, 10_000_000), (2_000, 20_000)
PART, CENTERS, BUDGET = 1_000_000, 1_000, "2 GB"
FIGURES = ["n", "seconds", "mb", "error", "residual"]


def write(folder: Path, n: int) -> None:
    """The rows as files, part by part: no array holds them all."""
    for i, start in enumerate(range(0, n, PART)):
        X, y, _ = data(min(PART, n - start), 100 + i)
        columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y.astype(np.float32)}
        pl.DataFrame(columns).write_parquet(folder / f"{i:03}.parquet")


def child(n: int, folder: str) -> None:
    """Fit once, in this process, and print the `FIGURES`."""
    import mercer as mc

    X, y, _ = data(3_000, 2)
    mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, n_centers=100).fit(mc.Batches(X), y)
    Z, _, f = data(TEST, 1)
    model = mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, n_centers=CENTERS, budget=BUDGET)
    seconds, _ = timed(lambda: model.fit(folder, target="y"))
    mb = held("VmHWM")
    queries = pl.DataFrame(Z, schema=[f"x{j}" for j in range(D)])
    error = float(np.sqrt(np.mean((model.predict(queries) - f) ** 2)))
    print(n, seconds, mb, error, model.residual_)


def run(n: int) -> dict[str, float]:
    """The figures of one fit in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n)
        return dict(zip(FIGURES, alone(__file__, {"n": n, "folder": folder}), strict=True))


def main() -> None:
    args = sizes_parser(__doc__, SIZES[-1]).parse_args()
    if args.child:
        child(**json.loads(args.child))
        return
    machine()
    runs = []
    for n in QUICK if args.quick else [n for n in SIZES if n <= args.most]:
        runs.append(run(n))
        print(runs[-1], flush=True)
    rows = [
        [
            f"{r['n']:,.0f}",
            f"{r['seconds']:.1f} s",
            f"{1e6 * r['seconds'] / r['n']:.1f}",
            f"{r['mb']:.0f}",
            f"{r['error']:.4f}",
        ]
        for r in runs
    ]
    title, last = f"From Parquet, {CENTERS:,} centres, {D} columns", runs[-1]
    heading(title)
    table(["rows", "time", "µs per row", "MB", "error"], rows)
    lines = {
        "measured": [(r["n"], r["seconds"]) for r in runs],
        "proportional to the rows": [(r["n"], last["seconds"] * r["n"] / last["n"]) for r in runs],
    }
    curves(title, "rows", "seconds of fit", lines, args.plot)
    if not args.quick and len(runs) > 1:
        linear = last["n"] / runs[0]["n"] * runs[0]["seconds"] / last["seconds"]
        judge([("the time per row of the first in units of that of the last", linear, 0.5)])


if __name__ == "__main__":
    main()
