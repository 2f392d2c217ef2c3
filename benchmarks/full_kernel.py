"""Kernel ridge on the whole kernel of 100 000 rows beside GPyTorch (SGPR), KeOps and Falkon on the CPU: error and time.

    python benchmarks/full_kernel.py --peers PYTHON               # about an hour on two cores
    python benchmarks/full_kernel.py --peers PYTHON --quick       # a minute, 2 000 rows: does it run?
    python benchmarks/full_kernel.py --peers PYTHON --plot FILE   # also draw error against time (needs matplotlib)

PYTHON (or MERCER_PEERS) is the interpreter of an environment of its own for the peers, which Mercer does not depend on:

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install torch==2.13.0 gpytorch pykeops falkon     # those that install

The rows are those of `scale.py` (float32, d = 20), with one Gaussian kernel and one alpha for all, none of them tuned.
Every run is a process of its own; the time is that of the fit, without imports, data and compilation (a small fit comes
first). Mercer solves the whole kernel within 2 GB to three tolerances, KeOps by conjugate gradients to the same ones.
SGPR and Falkon use inducing points, 500 to 2 000 rows drawn at random. The error is that of 5 000 other points, against
the target without noise. A peer is judged at its least error: how many times longer it takes than the fastest run of
Mercer that is at least as accurate. A peer that cannot be imported or fails is named and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

D, SIGMA, ALPHA, TEST, BUDGET = 20, 2.0, 0.1, 5_000, "2 GB"
ROWS, WARM, QUICK = 100_000, 1_500, 2_000
TOLERANCES, POINTS = (1e-1, 1e-2, 1e-3), (500, 1_000, 2_000)
GOALS = {"GPyTorch SGPR": 3.0, "KeOps": 3.0, "Falkon": 1.0}
"""How many times faster Mercer shall be."""

Predict = Callable[[np.ndarray], np.ndarray]


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of `scale.py`, which the peers' environment cannot import."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D), dtype=np.float32)
    X[:, 5:] *= 0.3
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] * X[:, 3]) + 0.3 * np.sin(3 * X[:, 4])
    return X, f + 0.1 * rng.standard_normal(n), f


# -- the fits: each returns a function that predicts -------------------------------------------------------------------


def mercer(X: np.ndarray, y: np.ndarray, tol: float) -> Predict:
    import mercer as mc

    model = mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, solver="cg", tol=tol, budget=BUDGET)
    return model.fit(X, y).predict


def sgpr(X: np.ndarray, y: np.ndarray, points: float) -> Predict:
    import gpytorch
    import torch

    A, b = torch.from_numpy(X), torch.from_numpy(y.astype(np.float32))
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = ALPHA
    base = gpytorch.kernels.RBFKernel()
    base.lengthscale = SIGMA
    chosen = A[torch.from_numpy(np.random.default_rng(0).choice(len(X), int(points), replace=False))]

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(A, b, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.InducingPointKernel(base, inducing_points=chosen, likelihood=likelihood)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().eval()

    def predict(Z: np.ndarray) -> np.ndarray:
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            return model(torch.from_numpy(Z)).mean.numpy()

    predict(X[:1])  # the factors are computed, and kept, by the first prediction
    return predict


def keops(X: np.ndarray, y: np.ndarray, tol: float) -> Predict:
    import torch
    from pykeops.torch import LazyTensor

    def matrix(Z: np.ndarray) -> Any:
        rows, columns = LazyTensor(torch.from_numpy(Z)[:, None, :]), LazyTensor(torch.from_numpy(X)[None, :, :])
        return (-((rows - columns) ** 2).sum(-1) / (2 * SIGMA**2)).exp()

    b = torch.from_numpy(y.astype(np.float32))[:, None]
    eps = tol * float(b.norm()) / math.sqrt(len(X))  # KeOps compares the root mean square of the residual with it
    coef = matrix(X).solve(b, alpha=ALPHA, eps=eps)
    return lambda Z: (matrix(Z) @ coef)[:, 0].numpy()


def falkon(X: np.ndarray, y: np.ndarray, points: float) -> Predict:
    import falkon as library
    import torch

    options = library.FalkonOptions(use_cpu=True, keops_active="no")
    kernel = library.kernels.GaussianKernel(SIGMA, opt=options)
    model = library.Falkon(kernel=kernel, penalty=ALPHA / len(X), M=int(points), options=options, seed=0)
    model.fit(torch.from_numpy(X), torch.from_numpy(y.astype(np.float32))[:, None])
    return lambda Z: model.predict(torch.from_numpy(Z))[:, 0].numpy()


FITS = {
    "Mercer": (mercer, TOLERANCES), "GPyTorch SGPR": (sgpr, POINTS), "KeOps": (keops, TOLERANCES),
    "Falkon": (falkon, POINTS),
}  # fmt: skip
"""The libraries, with the tolerances or numbers of inducing points of their runs."""


# -- runs --------------------------------------------------------------------------------------------------------------


def child(name: str, setting: float, n: int) -> None:
    """Fit once in this process, and print the seconds and the error."""
    fit, _ = FITS[name]
    warm, y, _ = data(WARM, 2)
    fit(warm, y, min(setting, 100))(warm[:10])
    X, y, _ = data(n, 0)
    Z, _, f = data(TEST, 1)
    start = time.perf_counter()
    predict = fit(X, y, setting)
    seconds = time.perf_counter() - start
    print(seconds, float(np.sqrt(np.mean((predict(Z) - f) ** 2))))


def run(python: str, name: str, setting: float, n: int) -> tuple[float, float] | str:
    """Seconds and error of one fit, or why there is none."""
    order = json.dumps({"name": name, "setting": setting, "n": n})
    answer = subprocess.run([python, __file__, "--child", order], capture_output=True, text=True, check=False)
    if answer.returncode:
        return (answer.stderr.strip().splitlines() or [f"ended with the code {answer.returncode}"])[-1]
    seconds, error = answer.stdout.split()[-2:]
    return float(seconds), float(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    peers = os.environ.get("MERCER_PEERS", sys.executable)
    parser.add_argument("--peers", default=peers, help="the interpreter that has the peers, or set MERCER_PEERS")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--plot", help="draw error against time to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(**json.loads(args.child))
        return
    from measure import compared, curves, heading, judge, machine, table

    machine()
    n, runs, rows = QUICK if args.quick else args.rows, dict[str, list[tuple[float, float]]](), []
    for name, (_, settings) in FITS.items():
        for setting in settings:
            python = sys.executable if name == "Mercer" else str(Path(args.peers).absolute())
            result = run(python, name, setting, n)
            if isinstance(result, str):
                print(f"{name} is left out: {result}", flush=True)
                break
            runs.setdefault(name, []).append(result)
            what = f"tolerance {setting:g}" if setting < 1 else f"{setting:,.0f} points"
            rows.append([name, what, f"{result[0]:.1f} s", f"{result[1]:.4f}"])
    title = f"Kernel ridge, {n:,} rows, {D} columns, one kernel and alpha"
    heading(title)
    table(["library", "run", "time", "error"], rows)
    lines = {name: sorted(points) for name, points in runs.items()}
    curves(title, "seconds of fit", "error on new points", lines, args.plot)
    targets = []
    for name, goal in GOALS.items():
        if name not in runs:
            continue
        error, seconds = min((error, seconds) for seconds, error in runs[name])
        ours = [took for took, reached in runs["Mercer"] if reached <= error]
        targets.append((f"time of {name} to its least error, {error:.4f}, in units of Mercer's", 0.0, goal))
        if ours:
            targets[-1] = (targets[-1][0], seconds / min(ours), goal)
            compared(f"Kernel ridge to the error of {name}, {n:,} rows", {"Mercer": min(ours), name: seconds}, size=n)
    if not args.quick:
        judge(targets)


if __name__ == "__main__":
    main()
