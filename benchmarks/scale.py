"""Kernel ridge from a thousand to ten million rows: the plan beside the fit, and the whole kernel beside centres.

    python benchmarks/scale.py                      # n = 1e3 … 1e7, and every solver: about an hour on two cores
    python benchmarks/scale.py --quick              # a minute, small sizes: does it run?
    python benchmarks/scale.py --most 1000000       # up to this number of rows
    python benchmarks/scale.py --plot scale.png     # also draw predicted and measured times (needs matplotlib)

Points are float32, d = 20, of which 5 matter most; the target is a noisy sum of waves and products. Each fit runs in a
process of its own, within a budget of 2 GB, after small fits that compile and load everything. First the solver that is
chosen for growing numbers of rows; then every solver by its name, rows in batches, and a grid of frequencies (two
columns). Memory is the peak of that process minus its memory before the fit. The error is that of 5 000 other points,
against the target without noise. The whole kernel of 100 000 rows is compared with 2 000 centres. Targets are judged at
full size only.
"""

from __future__ import annotations

import json
import warnings
from typing import Any
from unittest import mock

import numpy as np

from measure import alone, clock, curves, heading, judge, machine, peak, sizes_parser, table, timed

D, SIGMA, ALPHA, TEST, BUDGET = 20, 2.0, 0.1, 5_000, "2 GB"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
QUICK = (500, 2_000, 4_000)
COMPARED, CENTERS = 100_000, 2_000
SOLVERS: dict[str, dict[str, Any]] = {
    "a Cholesky factor": {"n": 10_000, "solver": "cholesky"},
    "every alpha, by leave-one-out": {"n": 3_000, "alpha": "loo"},
    "iterations": {"n": 20_000, "solver": "cg"},
    "frequencies": {"n": 1_000_000, "solver": "fourier", "columns": 2, "sigma": 0.3},
    "batches, 1,000 centres": {"n": 1_000_000, "n_centers": 1_000, "batches": True},
    "1,000 centres, then blocks": {"n": 100_000, "n_centers": 1_000, "solver": "blocks", "max_passes": 3},
}
"""Fits whose solver is named: rows, and options that differ."""


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their targets, and the targets without noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D), dtype=np.float32)
    X[:, 5:] *= 0.3
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.3 * np.sin(3 * X[:, 4])
    return X, f + 0.1 * rng.standard_normal(n), f


FIGURES = ["n", "rank", "centers", "predicted", "seconds", "predicted_mb", "mb", "error", "residual"]


def child(n: int, budget: str, columns: int = D, sigma: float = SIGMA, batches: bool = False, **options: Any) -> None:
    """Plan and fit once, in this process, and print the `FIGURES`."""
    import mercer as mc

    warnings.simplefilter("ignore")  # blocks end at their limit

    def model(budget: str) -> Any:
        return mc.KernelRidge(mc.Gaussian(sigma), **{"alpha": ALPHA, "budget": budget} | options)

    def rows(n: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
        X, y, f = data(n, seed)
        return (mc.Batches(X) if batches else X[:, :columns].astype(np.float64) if columns < D else X), y, f

    warm, y, _ = rows(1_500, 2)
    for small in ("20 MB", "4 MB", "300 kB") if len(options) == 0 else ("200 MB",):
        model(small).set_params(**{"n_centers": 100} if "n_centers" in options else {}).fit(warm, y)
    X, y, _ = rows(n, 0)
    fitted = model(budget)
    mb, (seconds, _) = peak(lambda: timed(fitted.fit, X, y))
    mb = max(mb, 1.0)  # a small fit may find the memory that those before it returned
    with mock.patch("time.perf_counter", clock):
        plan = mc.plan(fitted, data(n, 0)[0] if batches else X)
    Z, _, f = data(TEST, 1)
    error = float(np.sqrt(np.mean((fitted.predict(Z[:, :columns]) - f) ** 2)))
    predicted = plan.seconds, seconds, plan.nbytes / 1e6, mb
    print(n, plan.rank, plan.centers, *predicted, error, fitted.residual_)


def run(**order: Any) -> dict[str, float]:
    """The figures of one fit in a process of its own."""
    return dict(zip(FIGURES, alone(__file__, order), strict=True))


def how(run: dict[str, float]) -> str:
    """The solver in a few words."""
    if run["centers"]:
        return f"{run['centers']:,.0f} centres"
    return f"iterations, {run['rank']:,.0f} pivoted columns" if run["rank"] else "a Cholesky factor"


def row(run: dict[str, float], solver: str) -> list[str]:
    """A line of the table."""
    times = [f"{run[key]:.2f} s" for key in ("predicted", "seconds")]
    memory = [f"{run[key]:.0f}" for key in ("predicted_mb", "mb")]
    ratios = [f"{run['predicted'] / run['seconds']:.2f}", f"{run['predicted_mb'] / run['mb']:.2f}"]
    return [f"{run['n']:,.0f}", solver, *times, ratios[0], *memory, ratios[1], f"{run['error']:.4f}"]


def right(run: dict[str, float], predicted: str, measured: str) -> float:
    """The ratio of prediction and measurement that is at most one."""
    ratio = run[predicted] / run[measured]
    return min(ratio, 1.0 / ratio)


def main() -> None:
    args = sizes_parser(__doc__, SIZES[-1]).parse_args()
    if args.child:
        child(**json.loads(args.child))
        return
    machine()
    sizes = QUICK if args.quick else tuple(n for n in SIZES if n <= args.most)
    budget = "40 MB" if args.quick else BUDGET
    runs = [run(n=n, budget=budget) for n in sizes]
    named = {
        words: run(**{"budget": BUDGET} | options | {"n": 2_000 if args.quick else options["n"]})
        for words, options in SOLVERS.items()
        if options["n"] <= args.most
    }
    head = ["rows", "solver", "predicted", "measured", "ratio", "predicted MB", "MB", "ratio", "error"]
    title = f"Kernel ridge within {budget}, {D} columns: plan and fit"
    heading(title)
    table(head, [*(row(r, how(r)) for r in runs), *(row(r, words) for words, r in named.items())])
    lines = {
        label: [(r["n"], r[key]) for r in runs] for label, key in (("predicted", "predicted"), ("measured", "seconds"))
    }
    curves(title, "rows", "seconds of fit", lines, args.plot)
    targets = [
        (f"{r['n']:,.0f} rows, {words}: predicted/measured {what}, or its inverse", right(r, *keys), 0.5)
        for words, r in [*((how(r), r) for r in runs), *named.items()]
        for what, keys in (("time", ("predicted", "seconds")), ("memory", ("predicted_mb", "mb")))
    ]
    whole = next((r for r in runs if r["n"] == (QUICK[-1] if args.quick else COMPARED)), None)
    if whole is not None:
        few = run(n=int(whole["n"]), n_centers=100 if args.quick else CENTERS, budget=budget)
        words = f"the whole kernel takes {whole['seconds']:.1f} s to the error {whole['error']:.4f} (residual "
        words += f"{whole['residual']:.1e}), {how(few)} take {few['seconds']:.1f} s to {few['error']:.4f}"
        print(f"{whole['n']:,.0f} rows: {words}.\n")
        targets.append(
            ("the error of centres in units of that of the whole kernel", few["error"] / whole["error"], 1.1)
        )
    if not args.quick:
        judge(targets)


if __name__ == "__main__":
    main()
