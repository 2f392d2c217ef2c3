"""Local methods compared with other libraries: prediction, bandwidths and densities at a stated error.

    python benchmarks/smoothing.py                  # a few minutes on two cores
    python benchmarks/smoothing.py --quick          # a twentieth of the rows, one run each: does it run?
    python benchmarks/smoothing.py --only density

The competitors are statsmodels' KernelReg, scikit-learn's KernelDensity, SciPy's gaussian_kde, KDEpy's FFTKDE, and
brute force in NumPy. Each time is the shortest of several runs (slow competitors get fewer, at least one), and a
round runs each of them once. A competitor that would take hours runs on a part of the queries, and its time is
extrapolated; the table says so. Errors are relative to sums in float64 without any shortcut, at randomly drawn
queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import mercer as mc
from measure import compared, heading, judge, machine, race, table, timed

FEW = 200
"""The number of queries at which errors are measured."""


def noisy(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """d uniform columns, and a smooth function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)


# --- brute force ------------------------------------------------------------------------------------------------------


def weights(X: np.ndarray, Z: np.ndarray, h: float) -> np.ndarray:
    return np.exp(-0.5 * sum(((Z[:, k, None] - X[:, k]) / h) ** 2 for k in range(X.shape[1])))


def brute_constant(X: np.ndarray, y: np.ndarray, Z: np.ndarray, h: float) -> np.ndarray:
    """Nadaraya-Watson, block by block."""
    parts = []
    for block in np.array_split(Z, max(1, len(Z) * len(X) // 4_000_000)):
        W = weights(X, block, h)
        parts.append(W @ y / W.sum(axis=1))
    return np.concatenate(parts)


def brute_linear(X: np.ndarray, y: np.ndarray, Z: np.ndarray, h: float) -> np.ndarray:
    """Local lines, by weighted least squares at every query."""
    values = np.empty(len(Z))
    for i, z in enumerate(Z):
        A = np.column_stack([np.ones(len(X)), X - z])
        w = weights(X, z[None], h)[0]
        values[i] = np.linalg.lstsq(A * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0][0]
    return values


def brute_density(X: np.ndarray, Z: np.ndarray, h: float) -> np.ndarray:
    norm = len(X) * (h * np.sqrt(2 * np.pi)) ** X.shape[1]
    parts = [weights(X, block, h).sum(axis=1) for block in np.array_split(Z, max(1, len(Z) * len(X) // 4_000_000))]
    return np.concatenate(parts) / norm


def statsmodels_regression(X: np.ndarray, y: np.ndarray, Z: np.ndarray, h: float, kind: str) -> np.ndarray:
    from statsmodels.nonparametric.kernel_regression import KernelReg

    model = KernelReg(y, X, "c" * X.shape[1], reg_type=kind, bw=np.full(X.shape[1], h))
    return model.fit(Z)[0]


def some(Z: np.ndarray, k: int = FEW) -> np.ndarray:
    return np.random.default_rng(1).choice(len(Z), min(k, len(Z)), replace=False)


def largest_error(values: np.ndarray, exact: np.ndarray) -> str:
    return f"{np.max(np.abs(values - exact) / np.maximum(np.abs(exact), 1e-300)):.1e}"


# --- regression -------------------------------------------------------------------------------------------------------


def regression(quick: bool) -> None:
    n = 1000 if quick else 20_000
    for d, h, kind, wanted in ((1, 0.1, "lc", 500), (1, 0.1, "ll", 500), (3, 0.4, "lc", 150), (3, 0.4, "ll", 150)):
        X, y = noisy(n, d)
        Z, _ = noisy(n, d, seed=2)
        part = Z[some(Z, 50 if quick else 500)]
        if kind == "lc":
            model: Any = mc.NadarayaWatsonRegressor(bandwidth=h).fit(X, y)
            brute: Callable[..., np.ndarray] = brute_constant
        else:
            model = mc.LocalRegression(degree=1, bandwidth=h).fit(X, y)
            brute = brute_linear
        model.predict(part)
        competitors: dict[str, Callable[[], Any]] = {
            "Mercer": lambda m=model, X=X, y=y, Z=Z: m.fit(X, y).predict(Z),
            "statsmodels, extrapolated": lambda X=X, y=y, p=part, h=h, k=kind: statsmodels_regression(X, y, p, h, k),
        }
        if kind == "lc":
            competitors["NumPy brute force"] = lambda X=X, y=y, Z=Z, h=h: brute_constant(X, y, Z, h)
        found = race(competitors, {name: 1 if quick else 5 if "Mercer" in name else 2 for name in competitors})
        seconds = {name: t for name, (t, _) in found.items()}
        seconds["statsmodels, extrapolated"] *= len(Z) / len(part)
        at = some(Z)
        error = largest_error(found["Mercer"][1][at], brute(X, y, Z[at], h))
        name = "Nadaraya-Watson" if kind == "lc" else "local linear"
        heading(f"{name}, n = queries = {n}, d = {d}, bandwidth {h}; largest relative error {error}")
        compare(f"{name}, {d} column{'s' * (d > 1)}, {n:,} rows and queries", seconds)
        if not quick:
            judge([("× statsmodels", seconds["statsmodels, extrapolated"] / seconds["Mercer"], wanted)])


def compare(task: str, seconds: dict[str, float]) -> None:
    ours = seconds["Mercer"]
    rows = [[k, f"{t:.4g}", "" if k == "Mercer" else f"{t / ours:.1f}×"] for k, t in seconds.items()]
    table(["", "seconds", "Mercer is faster by"], rows)
    compared(task, seconds)


def large(quick: bool) -> None:
    n = 50_000 if quick else 1_000_000
    X, y = noisy(n, 1)
    Z, _ = noisy(n, 1, seed=2)
    rows = []
    for name, model, brute in (
        ("Nadaraya-Watson", mc.NadarayaWatsonRegressor(bandwidth=0.05), brute_constant),
        ("local linear", mc.LocalRegression(degree=1, bandwidth=0.05), brute_linear),
    ):
        model.fit(X[:1000], y[:1000]).predict(Z[:1000])
        seconds, found = race({name: lambda m=model: m.fit(X, y).predict(Z)}, {name: 1 if quick else 3})[name]
        at = some(Z, 50)
        rows.append([name, f"{seconds:.3f}", largest_error(found[at], brute(X, y, Z[at], 0.05))])
    heading(f"n = queries = {n}, d = 1, bandwidth 0.05, fit and predict")
    table(["", "seconds", "largest relative error"], rows)


def narrow(quick: bool) -> None:
    """Cells compared with the product K V over all pairs, tile by tile, as Mercer computes it for every kernel."""
    n, h = (5000, 0.1) if quick else (100_000, 0.1)
    X, y = noisy(n, 3)
    Z, _ = noisy(n, 3, seed=2)
    model = mc.NadarayaWatsonRegressor(bandwidth=h).fit(X, y)
    model.predict(Z[:1000])
    V = np.column_stack([np.ones(n), y])
    part = Z[: len(Z) // 10]
    cells, tiles = "Mercer, by cells", "Mercer, K @ V tile by tile (a tenth of the queries, extrapolated)"
    found = race(
        {cells: lambda: model.predict(Z), tiles: lambda: mc.gram.of(mc.Gaussian(h), part, X) @ V},
        {cells: 1 if quick else 3, tiles: 1 if quick else 2},
    )
    seconds = {cells: found[cells][0], tiles: 10 * found[tiles][0]}
    at = some(Z, 50)
    error = largest_error(found[cells][1][at], brute_constant(X, y, Z[at], h))
    heading(f"Nadaraya-Watson, n = queries = {n}, d = 3, bandwidth {h}; largest relative error {error}")
    table(["", "seconds"], [[k, f"{t:.3g}"] for k, t in seconds.items()])
    if not quick:
        judge([("× the tiled brute force", seconds[tiles] / seconds[cells], 10)])


def leave_one_out(quick: bool) -> None:
    """The peer takes one evaluation of its criterion at full size, times the evaluations of a search on fewer rows."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    class Counted(KernelReg):
        calls = 0

        def cv_loo(self, bw: np.ndarray, func: Any) -> float:
            Counted.calls += 1
            return super().cv_loo(bw, func)

    n, small = (1000, 100) if quick else (20_000, 400)
    X, y = noisy(n, 2)
    mc.NadarayaWatsonRegressor(bandwidth="loo").fit(X[:500], y[:500])
    name = f"Mercer, n = {n}"
    seconds, model = race(
        {name: lambda: mc.NadarayaWatsonRegressor(bandwidth="loo").fit(X, y)}, {name: 1 if quick else 3}
    )[name]
    took, searched = timed(lambda: Counted(y[:small], X[:small], "cc", reg_type="lc", bw="cv_ls"))
    evaluations = Counted.calls
    whole = KernelReg(y, X, "cc", reg_type="lc", bw=model.bandwidth_)
    once, _ = timed(whole.cv_loo, model.bandwidth_, whole.est["lc"])
    guess = once * evaluations
    heading("leave-one-out bandwidths of Nadaraya-Watson, d = 2")
    table(
        ["", "seconds", "bandwidths", "Mercer is faster by"],
        [
            [name, f"{seconds:.3g}", f"{model.bandwidth_}", ""],
            [f"statsmodels cv_ls, n = {small}: {evaluations} evaluations", f"{took:.3g}", f"{searched.bw}", ""],
            [f"statsmodels, one evaluation, n = {n}", f"{once:.3g}", "", f"{once / seconds:.0f}×"],
            [f"statsmodels, n = {n}, {evaluations} evaluations", f"{guess:.3g}", "", f"{guess / seconds:.0f}×"],
        ],
    )
    both = {"Mercer": seconds, f"statsmodels, extrapolated to {evaluations} evaluations": guess}
    compared(f"Leave-one-out bandwidths of Nadaraya-Watson, {n:,} × 2", both)
    if not quick:
        judge([("× statsmodels", guess / seconds, 1000)])


# --- densities --------------------------------------------------------------------------------------------------------


def density(quick: bool) -> None:
    from scipy.stats import gaussian_kde
    from sklearn.neighbors import KernelDensity

    n, m = (5000, 500) if quick else (100_000, 10_000)
    for d, h, wanted in ((1, 0.1, 100), (2, 0.2, 10), (3, 0.3, 10)):
        rng = np.random.default_rng(0)
        X, Z = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        ours = mc.ParzenDensity(bandwidth=h, tolerance=1e-5).fit(X)
        ours.score_samples(Z)
        scipy = gaussian_kde(X.T, bw_method=h / np.sqrt(np.cov(X.T).reshape(d, d)[0, 0]))
        sklearn = KernelDensity(bandwidth=h, rtol=1e-4).fit(X)
        names = ("Mercer", "scikit-learn KernelDensity, rtol 1e-4", "SciPy gaussian_kde (its own covariance)")
        found = race(
            dict(zip(names, (partial(ours.score_samples, Z), partial(sklearn.score_samples, Z), partial(scipy, Z.T)))),
            dict(zip(names, (1 if quick else 5, 1 if quick else 2, 1 if quick else 2))),
        )
        seconds = {name: t for name, (t, _) in found.items()}
        at = some(Z)
        error = largest_error(np.exp(found["Mercer"][1][at]), brute_density(X, Z[at], h))
        heading(f"density off a grid, n = {n}, {m} queries, d = {d}, bandwidth {h}; largest relative error {error}")
        compare(f"Density of {n:,} rows at {m:,} points, {d} column{'s' * (d > 1)}", seconds)
        if not quick:
            judge(
                [
                    ("× scikit-learn", seconds[names[1]] / seconds["Mercer"], wanted),
                    ("× SciPy", seconds[names[2]] / seconds["Mercer"], 20),
                ]
            )


def grid(quick: bool) -> None:
    from KDEpy import FFTKDE

    n = 50_000 if quick else 1_000_000
    x = np.random.default_rng(0).normal(size=n)
    h = 0.05
    points = np.linspace(x.min() - 1, x.max() + 1, 1024)
    ours = mc.ParzenDensity(bandwidth=h, tolerance=1e-6).fit(x[:, None])
    ours.score_samples(points[:, None])
    theirs = FFTKDE(kernel="gaussian", bw=h).fit(x)
    theirs(points)
    names = "Mercer", "KDEpy FFTKDE"
    found = race(
        dict(zip(names, (lambda: np.exp(ours.score_samples(points[:, None])), lambda: theirs(points)))),
        dict.fromkeys(names, 1 if quick else 9),
    )
    exact = brute_density(x[:, None], points[:, None], h)
    heading(f"density on a grid of 1 024 points, n = {n}, d = 1, bandwidth {h}")
    errors = {name: np.abs(p - exact).max() / exact.max() for name, (_, p) in found.items()}
    table(["", "seconds", "error over the peak"], [[k, f"{t:.5f}", f"{errors[k]:.1e}"] for k, (t, _) in found.items()])
    compared(f"Density of {n:,} values on a grid of 1 024 points", {name: t for name, (t, _) in found.items()})
    if not quick:
        judge([("× KDEpy", found["KDEpy FFTKDE"][0] / found["Mercer"][0], 1)])


SECTIONS: dict[str, Callable[[bool], None]] = {
    "regression": regression, "large": large, "narrow": narrow, "loo": leave_one_out, "density": density, "grid": grid
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, one run each")
    parser.add_argument("--only", choices=list(SECTIONS), help="one section")
    options = parser.parse_args()
    machine()
    for name, section in SECTIONS.items():
        if options.only in (None, name):
            section(options.quick)


if __name__ == "__main__":
    main()
