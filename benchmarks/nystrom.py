"""Ridge regression on m centres: Mercer and scikit-learn's Nystroem + Ridge, in one process, in turns.

    python benchmarks/nystrom.py            # n = 100 000, m = 1 000 and 2 000: a few minutes on two cores
    python benchmarks/nystrom.py --quick    # seconds, small sizes: does it run?
    python benchmarks/nystrom.py --large    # n = 1 000 000, m = 1 000: scikit-learn takes 8 GB, each in its own process

The tables are in Markdown. Points are float32, d = 20, normal; the target is a noisy sum of waves and products of
coordinates, and R² is measured on 10 000 other points. Each time is the shortest of several fits (slow competitors get
fewer, at least one) of the whole model (centres, kernel, solution); a round runs each of them once, so that a slow
minute of the machine affects all. Memory is the peak of a fresh process that makes one fit, minus its memory before the
fit. Targets are judged at full size only.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from measure import alone, compared, heading, judge, machine, peak, table, timed

D, ALPHA, TEST = 20, 1e-3, 10_000
SIGMA = math.sqrt(D)


def mercer(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    import mercer as mc

    return mc.KernelRidge(mc.Gaussian(SIGMA), alpha=ALPHA, solver="nystrom", n_centers=m).fit(X, y).predict


def sklearn(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    features = Nystroem(kernel="rbf", gamma=0.5 / SIGMA**2, n_components=m, random_state=0)
    model = make_pipeline(features, Ridge(alpha=ALPHA, fit_intercept=False)).fit(X, y)
    return model.predict


PEERS = {"Mercer": mercer, "scikit-learn Nystroem + Ridge": sklearn}
WARM = (2_500, 50)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(n, D), dtype=np.float32)
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + np.cos(2 * X[:, 3]) + 0.1 * rng.standard_normal(n)
    return X, y.astype(np.float32)


def r2(f: Callable[[np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray) -> float:
    return 1.0 - float(((y - f(X)) ** 2).mean() / y.var())


def warm(X: np.ndarray, y: np.ndarray, names: list[str]) -> None:
    """Compile and start the threads on both paths: exact for few rows, conjugate gradients for more."""
    for name in names:
        PEERS[name](X[: WARM[0]], y[: WARM[0]], WARM[1])
        PEERS[name](X[:20_000], y[:20_000], 500)


def child(order: dict[str, Any]) -> None:
    """One fit in a fresh process: seconds, R² and peak MB."""
    X, y = data(order["n"] + TEST)
    X, Z, y, v = X[:-TEST], X[-TEST:], y[:-TEST], y[-TEST:]
    warm(X, y, [order["name"]])
    megabytes, (seconds, f) = peak(timed, PEERS[order["name"]], X, y, order["m"])
    print(seconds, r2(f, Z, v), megabytes)


def fresh(name: str, n: int, m: int) -> tuple[float, float, float]:
    """Seconds, R² and peak MB of one fit in a process of its own."""
    seconds, score, megabytes = alone(__file__, {"name": name, "n": n, "m": m})
    return seconds, score, megabytes


def race(n: int, m: int, rounds: int, apart: bool) -> dict[str, tuple[float, float, float]]:
    """The shortest time, R² and peak MB of every peer; with `apart` each fit has a process of its own."""
    figures: dict[str, tuple[float, float, float]] = {}
    if apart:
        for name in PEERS:
            figures[name] = fresh(name, n, m)
        return figures
    X, y = data(n + TEST)
    X, Z, y, v = X[:-TEST], X[-TEST:], y[:-TEST], y[-TEST:]
    warm(X, y, list(PEERS))
    seconds = dict.fromkeys(PEERS, math.inf)
    scores = {}
    for _ in range(rounds):
        for name in PEERS:
            spent, f = timed(PEERS[name], X, y, m)
            seconds[name] = min(seconds[name], spent)
            scores[name] = r2(f, Z, v)
            del f
    return {name: (seconds[name], scores[name], fresh(name, n, m)[2]) for name in PEERS}


def show(n: int, m: int, figures: dict[str, tuple[float, float, float]], targets: tuple[float, float] | None) -> None:
    heading(f"n = {n}, m = {m}, d = {D}, float32")
    ours = figures["Mercer"]
    rows = []
    for name, (seconds, score, peak_) in figures.items():
        ratios = ["", ""] if name == "Mercer" else [f"{seconds / ours[0]:.1f}×", f"{peak_ / ours[2]:.1f}×"]
        rows.append([name, f"{seconds:.2f}", f"{score:.4f}", f"{peak_:.0f}", *ratios])
    table(["", "seconds", "R² on new points", "peak MB", "Mercer is faster by", "and smaller by"], rows)
    compared(f"Kernel ridge on {m:,} centres, {D} columns, float32", {k: v[0] for k, v in figures.items()}, size=n)
    if targets is None:
        return
    peer = figures["scikit-learn Nystroem + Ridge"]
    wanted = [("× in time", peer[0] / ours[0], targets[0]), ("× in memory", peer[2] / ours[2], targets[1])]
    wanted = [target for target in wanted if target[2]]
    judge([*wanted, ("R² above the peer's, plus 0.001", ours[1] - peer[1] + 1e-3, 0.0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--large", action="store_true", help="n = 1 000 000")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    machine()
    if options.quick:
        show(20_000, 300, race(20_000, 300, 1, apart=False), None)
    elif options.large:
        show(1_000_000, 1_000, race(1_000_000, 1_000, 1, apart=True), (6.0, 8.0))
    else:
        show(100_000, 1_000, race(100_000, 1_000, 4, apart=False), (2.5, 0.0))
        show(100_000, 2_000, race(100_000, 2_000, 2, apart=False), (2.5, 0.0))


if __name__ == "__main__":
    main()
