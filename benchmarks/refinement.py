"""Does the whole kernel, refined block by block, lower the error of centres within a given time?

    python benchmarks/refinement.py                                   # a million rows, 1 000 centres, 35 minutes
    python benchmarks/refinement.py --rows 200000 --centers 2000 --seconds 300
    python benchmarks/refinement.py --quick                           # seconds, small: does it run?
    python benchmarks/refinement.py --plot error.png                  # also draw error against time (needs matplotlib)

The rows are those of `scale.py`. The error is that of 5 000 other points, against the target without noise. The
refinement runs with a quarter and with all of the seconds, each time from the beginning.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import mercer as mc
from measure import curves, heading, judge, machine, table, timed
from scale import ALPHA, BUDGET, SIGMA, TEST, data

SHARES = (0.25, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--centers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=1_500.0, help="for the refinement")
    parser.add_argument("--plot", help="draw error against time to this file")
    args = parser.parse_args()
    n, m, seconds = (5_000, 200, 5.0) if args.quick else (args.rows, args.centers, args.seconds)
    machine()
    X, y, _ = data(n, 0)
    Z, _, f = data(TEST, 1)
    warnings.simplefilter("ignore")  # it stops at its time limit, as the status says

    def fitted(solver: str, limit: float | None) -> tuple[float, float, str]:
        model = mc.KernelRidge(
            mc.Gaussian(SIGMA), alpha=ALPHA, n_centers=m, solver=solver, budget=BUDGET, max_time=limit
        )
        took, _ = timed(model.fit, X, y)
        return took, float(np.sqrt(np.mean((model.predict(Z) - f) ** 2))), str(model.status_)

    runs = [fitted("nystrom", None), *(fitted("blocks", share * seconds) for share in SHARES)]
    title = f"{n:,} rows: {m:,} centres, refined by blocks of the whole kernel"
    heading(title)
    table(["time", "error", "status"], [[f"{took:.1f} s", f"{error:.4f}", words] for took, error, words in runs])
    curves(title, "seconds of fit", "error on new points", {"Mercer": [run[:2] for run in runs]}, args.plot)
    if not args.quick:
        judge([("the error of centres in units of the refined one", runs[0][1] / runs[-1][1], 1.0)])


if __name__ == "__main__":
    main()
