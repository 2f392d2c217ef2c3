"""Gaussian process regression on UCI data with the published splits: test error, density and calibration.

    python benchmarks/uci.py --data DIR               # energy, yacht, power plant, wine; or set MERCER_DATA
    python benchmarks/uci.py --data DIR --splits 3    # the first three splits only
    python benchmarks/uci.py --data DIR --all         # also Boston, concrete and kin8nm
    python benchmarks/uci.py --data DIR --only yacht

DIR contains NAME.csv.gz (one row per point, the target in the last column) and NAME_splits.csv.gz (one column per
split, 1 for test rows): the 20 splits of 90 % and 10 % by Hernández-Lobato and Adams. Only the training part of a
split is used to standardise columns, to choose one of the kernels below by the evidence of up to 1 000 of its rows,
and to tune it by the evidence of up to 2 000; the posterior is exact, given all training rows. The test part is used
once. Figures are means over splits ± standard errors, in the units of the target.

More than a quarter of the wine test rows are copies of training rows, including the target. The evidence adapts to that
(it removes nearly all noise), so the error and above all the density do not hold for new wines.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mercer as mc
from measure import machine

CHOSEN_ON, TUNED_ON = 1000, 2000
"""Numbers of rows on which the kernel is chosen, and its parameters are tuned."""


class Reference(NamedTuple):
    """A data set: its file, the published error, whether it needs --all, and columns whose numbers are codes."""

    file: str
    rmse: float | None = None
    more: bool = False
    names: tuple[int, ...] = ()


# Published results: exact Gaussian processes (energy, yacht), sparse ones with 512 points (power plant, wine).
DATA = {
    # X8, where the glazing is: 0 nowhere, 1 everywhere, 2 north, 3 east, 4 south, 5 west.
    "energy": Reference("energy", 0.48, names=(7,)),
    "yacht": Reference("yacht", 0.42),
    "power plant": Reference("power_plant_ccpp", 3.8),
    "wine": Reference("wine_red", 0.63),
    "boston": Reference("boston", more=True),
    "concrete": Reference("concrete", more=True),
    "kin8nm": Reference("kin8nm", more=True),
}


def kernels(d: int, names: tuple[int, ...]) -> dict[str, mc.Kernel]:
    """The candidates: one width per column, smooth to rough; a smooth function plus a rougher one, or one per code."""
    widths = np.ones(d)
    candidates: dict[str, mc.Kernel] = {
        "Gaussian": 1.0 * mc.Gaussian(widths),
        "Matérn 5/2": 1.0 * mc.Matern(widths, nu=2.5),
        "Matérn 1/2": 1.0 * mc.Matern(widths, nu=0.5),
        "Gaussian + Matérn 3/2": 1.0 * mc.Gaussian(widths) + 0.1 * mc.Matern(widths, nu=1.5),
    }
    if names:
        rest = [j for j in range(d) if j not in names]
        by_code = mc.Gaussian(np.ones(len(rest))).on(*rest) * mc.Delta().on(*names)
        candidates["Gaussian + Gaussian × Delta"] = 1.0 * mc.Gaussian(widths) + 0.1 * by_code
    return candidates


class Outcome(NamedTuple):
    rmse: float
    nlpd: float
    covered: float
    kernel: str
    seconds: float


def run(X: np.ndarray, y: np.ndarray, test: np.ndarray, names: tuple[int, ...], seed: int) -> Outcome:
    """One split: choose and tune by evidence on the training rows, predict the others."""
    began = time.perf_counter()
    train = np.random.default_rng(seed).permutation(np.flatnonzero(~test))
    centre, unit = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - centre) / np.where(unit > 0, unit, 1.0)

    def tuned(kernel: mc.Kernel, alpha: float, rows: np.ndarray, n_restarts: int) -> mc.GaussianProcessRegressor:
        model = mc.GaussianProcessRegressor(
            kernel, alpha=alpha, tune="evidence", normalize_y=True, n_restarts=n_restarts, random_state=seed
        )
        return model.fit(Z[rows], y[rows])

    candidates = kernels(X.shape[1], names)
    tried = {name: tuned(kernel, 0.01, train[:CHOSEN_ON], 1) for name, kernel in candidates.items()}
    name = max(tried, key=lambda k: tried[k].log_evidence_)
    model = tried[name]
    if len(train) > CHOSEN_ON:
        model = tuned(model.kernel_, model.alpha_, train[:TUNED_ON], 0)
    if len(train) > TUNED_ON:
        model = mc.GaussianProcessRegressor(model.kernel_, alpha=model.alpha_, normalize_y=True).fit(Z[train], y[train])
    report = mc.calibration(model, Z[test], y[test], coverages=(0.9,))
    assert report.nlpd is not None
    return Outcome(report.rmse, report.nlpd, report.observed[0], name, time.perf_counter() - began)


def mean_and_error(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def line(name: str, folder: Path, splits: int) -> str:
    """One row of the table."""
    reference = DATA[name]
    A = pd.read_csv(folder / f"{reference.file}.csv.gz").to_numpy(dtype=float)
    masks = pd.read_csv(folder / f"{reference.file}_splits.csv.gz").to_numpy().astype(bool)
    X, y = A[:, :-1], A[:, -1]
    outcomes = []
    for k in range(min(splits, masks.shape[1])):
        outcomes.append(run(X, y, masks[:, k], reference.names, seed=k))
        print(f"  {name}, split {k}: RMSE {outcomes[-1].rmse:.4g}, {outcomes[-1].kernel}", file=sys.stderr, flush=True)
    rmse = [o.rmse for o in outcomes]
    wanted = "–"
    if reference.rmse is not None:
        wanted = f"≤ {reference.rmse:g}: " + ("met" if np.mean(rmse) <= reference.rmse else "missed")
    chosen = ", ".join(f"{kernel} {count}×" for kernel, count in Counter(o.kernel for o in outcomes).most_common())
    cells: list[Any] = [
        f"{name} ({len(y)} × {X.shape[1]})",
        len(outcomes),
        mean_and_error(rmse),
        wanted,
        mean_and_error([o.nlpd for o in outcomes]),
        f"{np.mean([o.covered for o in outcomes]):.1%}",
        chosen,
        f"{np.mean([o.seconds for o in outcomes]):.1f}",
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with the data")
    parser.add_argument("--splits", type=int, default=20, help="number of splits")
    parser.add_argument("--all", action="store_true", help="also boston, concrete, kin8nm")
    parser.add_argument("--only", choices=DATA, help="one data set")
    arguments = parser.parse_args()
    machine()
    if not arguments.data:
        parser.error("name the folder with the data: use --data DIR or set MERCER_DATA")
    names = [arguments.only] if arguments.only else [n for n, r in DATA.items() if arguments.all or not r.more]
    print("| data (n × d) | splits | test RMSE | reference | NLPD | in 90 % intervals | kernel chosen | s per split |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        print(line(name, Path(arguments.data), arguments.splits), flush=True)


if __name__ == "__main__":
    main()
