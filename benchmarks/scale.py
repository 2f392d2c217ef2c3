"""Kernel ridge from a thousand to ten million rows: the plan beside the fit, and the whole kernel beside centres.

    python benchmarks/scale.py                      # n = 1e3 … 1e7: about an hour on two cores
    python benchmarks/scale.py --quick              # seconds, small sizes: does it run?
    python benchmarks/scale.py --most 1000000       # up to this number of rows
    python benchmarks/scale.py --plot scale.png     # also draw predicted and measured times (needs matplotlib)

Points are float32, d = 20, of which 5 matter most; the target is a noisy sum of waves and products. Each fit runs in a
process of its own, within a budget of 2 GB, after a small fit that compiles and loads everything. Memory is the peak of
that process minus its memory before the fit. The error is that of 5 000 other points, against the target without noise.
The whole kernel of 100 000 rows is compared with 2 000 centres. Targets are judged at full size only.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from measure import alone, compared, heading, judge, machine, peak, table, timed

D, SIGMA, ALPHA, TEST, BUDGET = 20, 2.0, 0.1, 5_000, "2 GB"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
QUICK = (500, 2_000, 4_000)
COMPARED, CENTERS = 100_000, 2_000


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their targets, and the targets without noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D), dtype=np.float32)
    X[:, 5:] *= 0.3
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.3 * np.sin(3 * X[:, 4])
    return X, f + 0.1 * rng.standard_normal(n), f


FIGURES = ["n", "rank", "centers", "predicted", "seconds", "predicted_mb", "mb", "error", "residual"]


def child(n: int, centers: int, budget: str) -> None:
    """Plan and fit once, in this process, and print the `FIGURES`."""
    import mercer as mc

    warm, y, _ = data(1_500, 2)
    for small in ("20 MB", "4 MB", "300 kB"):
        mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, budget=small).fit(warm, y)
    X, y, _ = data(n, 0)
    Z, _, f = data(TEST, 1)
    fitted = mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, n_centers=centers or None, budget=budget)
    mb, (seconds, _) = peak(lambda: timed(fitted.fit, X, y))
    plan = mc.plan(fitted, X)
    error = float(np.sqrt(np.mean((fitted.predict(Z) - f) ** 2)))
    predicted = plan.seconds, seconds, plan.nbytes / 1e6, mb
    print(n, plan.rank, plan.centers, *predicted, error, fitted.residual_)


def run(n: int, centers: int, budget: str) -> dict[str, float]:
    """The figures of one fit in a process of its own."""
    return dict(zip(FIGURES, alone(__file__, {"n": n, "centers": centers, "budget": budget}), strict=True))


def how(run: dict[str, float]) -> str:
    """The solver in a few words."""
    if run["centers"]:
        return f"{run['centers']:,.0f} centres"
    return f"iterations, {run['rank']:,.0f} pivoted columns" if run["rank"] else "a Cholesky factor"


def row(run: dict[str, float]) -> list[str]:
    """A line of the table."""
    times = [f"{run[key]:.2f} s" for key in ("predicted", "seconds")]
    rest = [f"{run['predicted'] / run['seconds']:.2f}", f"{run['predicted_mb']:.0f}", f"{run['mb']:.0f}"]
    return [f"{run['n']:,.0f}", how(run), *times, *rest, f"{run['error']:.4f}"]


def draw(runs: list[dict[str, float]], path: str) -> None:
    """Predicted and measured seconds by the number of rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    n = [run["n"] for run in runs]
    axes.loglog(n, [run["predicted"] for run in runs], "o--", label="predicted")
    axes.loglog(n, [run["seconds"] for run in runs], "s-", label="measured")
    axes.set(xlabel="rows", ylabel="seconds of fit", title=f"Kernel ridge within {BUDGET}, {D} columns")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest number of rows")
    parser.add_argument("--plot", help="draw the times to this file")
    parser.add_argument("--out", help="write the figures as JSON to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(**json.loads(args.child))
        return
    machine()
    sizes = QUICK if args.quick else tuple(n for n in SIZES if n <= args.most)
    budget = "40 MB" if args.quick else BUDGET
    runs = [run(n, 0, budget) for n in sizes]
    head = ["rows", "solver", "predicted", "measured", "ratio", "predicted MB", "MB", "error"]
    heading(f"Kernel ridge within {budget}, {D} columns: plan and fit")
    table(head, [row(r) for r in runs])
    for r in runs:
        compared(f"Kernel ridge within {budget}, {D} columns, float32", {"Mercer": r["seconds"]}, size=r["n"])
    if args.out:
        Path(args.out).write_text(json.dumps(runs, indent=1))
    if args.plot:
        draw(runs, args.plot)
    targets = [(f"{r['n']:,.0f} rows, predicted/measured time, or its inverse", right(r), 0.5) for r in runs]
    whole = next((r for r in runs if r["n"] == (QUICK[-1] if args.quick else COMPARED)), None)
    if whole is not None:
        few = run(int(whole["n"]), 100 if args.quick else CENTERS, budget)
        words = f"the whole kernel takes {whole['seconds']:.1f} s to the error {whole['error']:.4f} (residual "
        words += f"{whole['residual']:.1e}), {how(few)} take {few['seconds']:.1f} s to {few['error']:.4f}"
        print(f"{whole['n']:,.0f} rows: {words}.\n")
        targets.append(
            ("the error of centres in units of that of the whole kernel", few["error"] / whole["error"], 1.1)
        )
    if not args.quick:
        judge(targets)


def right(run: dict[str, float]) -> float:
    """The ratio of predicted and measured time that is at most one."""
    ratio = run["predicted"] / run["seconds"]
    return min(ratio, 1.0 / ratio)


if __name__ == "__main__":
    main()
