"""Exact kernel ridge regression compared with other libraries: seconds, residual, memory.

    python benchmarks/ridge.py            # every table; a quarter of an hour on two cores, 3 GB
    python benchmarks/ridge.py --quick    # a minute, small sizes: does it run?
    python benchmarks/ridge.py --only 10000

There is one table for each n and alpha, in Markdown: the whole fit of c = (K + alpha I)⁻¹ y with a Gaussian kernel on n
normal points in 20 dimensions, sigma = √20, including the Gram matrix, in float64.

Each time is the shortest of several runs (slow competitors get fewer, at least one); a round runs each of them once, so
that a slow minute of the machine affects all. The residual is ‖y − (K + alpha I) c‖/‖y‖ on 300 rows, with K computed
from differences of coordinates. Memory is the peak of a fresh process that makes one fit, minus its memory before the
fit, in units of the float64 n × n matrix. Targets are judged at full size only.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure import alone, compared, heading, judge, machine, peak, table, timed

D, SIGMA = 20, math.sqrt(20.0)


# --- the competitors: functions of X, y and alpha that return the coefficients ----------------------------------------


def mercer_fit(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    import mercer as mc

    return mc.KernelRidge(mc.Gaussian(SIGMA), alpha=alpha, budget=16 * len(X) ** 2).fit(X, y).dual_coef_


def mercer_low_memory(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """With a memory budget of 0.6 times the float64 matrix."""
    import mercer as mc

    return mc.KernelRidge(mc.Gaussian(SIGMA), alpha=alpha, budget=0.6 * 8 * len(X) ** 2).fit(X, y).dual_coef_


def sklearn_fit(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    from sklearn.kernel_ridge import KernelRidge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelRidge(kernel="rbf", gamma=0.5 / SIGMA**2, alpha=alpha).fit(X, y).dual_coef_


def _solve_in_place(K: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    from scipy.linalg import cho_solve, lapack

    K.flat[:: len(K) + 1] += alpha
    L, info = lapack.dpotrf(K.T, lower=1, overwrite_a=1, clean=0)
    if info:
        raise np.linalg.LinAlgError("not positive definite")
    return cho_solve((L, True), y, check_finite=False)


def scipy_cdist(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    from scipy.spatial.distance import cdist

    K = cdist(X, X, "sqeuclidean")
    K *= -0.5 / SIGMA**2
    np.exp(K, out=K)
    return _solve_in_place(K, y, alpha)


def scipy_own_kernel(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    import mercer as mc

    return _solve_in_place(mc.Gaussian(SIGMA)(X), y, alpha)


@dataclass(frozen=True)
class Peer:
    name: str
    function: Callable[..., np.ndarray]
    runs: int = 4
    small: int = 12
    """The number of runs if one takes less than half a second."""


PEERS = [
    Peer("Mercer", mercer_fit),
    Peer("Mercer, low memory", mercer_low_memory),
    Peer("scikit-learn KernelRidge", sklearn_fit, runs=2, small=6),
    Peer("SciPy: cdist, potrf in place", scipy_cdist, runs=2, small=6),
    Peer("SciPy: Mercer's Gram, potrf in place", scipy_own_kernel, runs=3),
]


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass
class Figure:
    """The measurements of one peer."""

    peer: Peer
    seconds: float = math.inf
    residual: float = math.nan
    matrices: float = math.nan
    times: list[float] = field(default_factory=list)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def residual(X: np.ndarray, y: np.ndarray, alpha: float, c: np.ndarray) -> float:
    """The relative residual, estimated from evenly spaced rows of a K that no solver has computed."""
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), 300)).astype(int))
    K = np.stack([np.exp(-0.5 * ((X - X[i]) ** 2).sum(1) / SIGMA**2) for i in rows])
    return float(np.linalg.norm(y[rows] - K @ c - alpha * c[rows]) / np.linalg.norm(y[rows]))


def race(n: int, alpha: float, quick: bool) -> list[Figure]:
    figures = [Figure(peer) for peer in PEERS]
    X, y = data(n)
    for figure in figures:
        figure.peer.function(X[:400], y[:400], alpha)  # compile, start the threads
    round_ = 0
    while any(wanted(figure, n, quick) > round_ for figure in figures):
        for figure in figures:
            if round_ >= wanted(figure, n, quick):
                continue
            seconds, c = timed(figure.peer.function, X, y, alpha)
            figure.times.append(seconds)
            figure.seconds = min(figure.times)
            if round_ == 0:
                figure.residual = residual(X, y, alpha, c)
        round_ += 1
    for figure in figures:
        (megabytes,) = alone(__file__, {"peak": figure.peer.name, "n": n, "alpha": alpha})
        figure.matrices = megabytes / (8 * n * n / 2**20)
    return figures


def wanted(figure: Figure, n: int, quick: bool) -> int:
    return 1 if quick else figure.peer.small if n <= 3000 else figure.peer.runs


def child(order: dict[str, Any]) -> None:
    peer = next(p for p in PEERS if p.name == order["peak"])
    X, y = data(order["n"])
    peer.function(X[:400], y[:400], order["alpha"])
    print(peak(peer.function, X, y, order["alpha"])[0])


# --- tables -----------------------------------------------------------------------------------------------------------


def show(figures: list[Figure], n: int, alpha: float) -> None:
    mercer = figures[0]
    rows = [
        [
            figure.peer.name,
            f"{figure.seconds:.3f}",
            "" if figure is mercer else f"{figure.seconds / mercer.seconds:.2f}×",
            f"{figure.residual:.1e}",
            f"{figure.matrices:.2f}",
        ]
        for figure in figures
    ]
    table(["", "seconds", "Mercer is faster by", "relative residual", "peak memory (in float64 matrices)"], rows)
    compared(f"Kernel ridge, {D} columns, alpha = {alpha:g}", {f.peer.name: f.seconds for f in figures}, size=n)


def verdict(figures: list[Figure], n: int, alpha: float) -> None:
    """Print the targets: the measured and the required values."""
    mercer, low, sklearn, *scipy = figures
    required = 5.0 if n == 10_000 and alpha >= 0.05 else 3.0 if n == 15_000 else 2.5
    targets = [
        ("× scikit-learn", sklearn.seconds / mercer.seconds, required),
        ("× tuned SciPy", min(peer.seconds for peer in scipy) / mercer.seconds, 1.0),
        ("digits of the residual", -math.log10(max(mercer.residual, low.residual)), 10.0),
    ]
    if n >= 5000:  # for smaller n the buffers of the libraries are larger than the matrix
        targets += [("1.6 over memory", 1.6 / mercer.matrices, 1.0), ("0.6 over low memory", 0.6 / low.matrices, 1.0)]
    judge(targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--only", type=int, help="only this n")
    parser.add_argument("--alpha", type=float, help="only this alpha")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    machine()
    sizes = (
        {500: (0.1,), 3500: (1e-3,)}
        if options.quick
        else dict.fromkeys((2000, 5000, 10_000, 15_000), (0.1, 1e-3, 1e-6))
    )
    for n, alphas in sizes.items():
        if options.only not in (None, n) and not options.quick:
            continue
        for alpha in alphas:
            if options.alpha not in (None, alpha):
                continue
            heading(f"Kernel ridge, n = {n}, d = {D}, alpha = {alpha:g}")
            figures = race(n, alpha, options.quick)
            show(figures, n, alpha)
            if not options.quick:
                verdict(figures, n, alpha)


if __name__ == "__main__":
    main()
