"""Kernel PCA compared with scikit-learn's: seconds of a fit and of a transform, and errors of the leading eigenvalues.

    python benchmarks/kernel_pca.py               # n = 2 000 and 10 000, 10 components; two or three minutes
    python benchmarks/kernel_pca.py --quick       # small sizes, one run each: does it run?
    python benchmarks/kernel_pca.py --only 2000

There is one table for each problem, in Markdown. All fit the same Gaussian kernel, Mercer with its defaults,
scikit-learn with each of its solvers: "dense" (which "auto" takes from 10 components on), "arpack", and "randomized"
with its default number of power iterations and with 30. "error" is the largest relative difference of an eigenvalue
from that of ARPACK, which iterates to rounding; solvers with an error above 1e-8 are shown, but do not count as
competitors. Each time is the shortest of several runs (slow competitors get fewer, at least one), and a round runs
each of them once. The last tables show matrices beyond memory, and pre-images of noisy digits: the mean squared
distance from the clean ones before and after.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

import mercer as mc
from measure import compared, heading, judge, machine, race, table, timed

COMPONENTS, EQUAL = 10, 1e-8
"""The number of components, and the relative error of an eigenvalue up to which two solvers count as equal."""


def rows(n: int, decay: float) -> np.ndarray:
    """n rows of 20 columns of standard deviations 1, decay, decay², …"""
    return np.random.default_rng(0).normal(size=(n, 20)) * decay ** np.arange(20)


def peer(X: np.ndarray, gamma: float, solver: str, power: Any = "auto") -> Any:
    return KernelPCA(
        COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver=solver, iterated_power=power, random_state=0
    ).fit(X)


def leading(n: int, decay: float, gamma: float, quick: bool) -> None:
    X, Z = rows(n, decay), rows(2000, decay)[::-1]
    competitors: dict[str, Callable[[], Any]] = {
        "Mercer": lambda: mc.KernelPCA(mc.Gaussian.from_gamma(gamma), n_components=COMPONENTS).fit(X),
        "scikit-learn, arpack": lambda: peer(X, gamma, "arpack"),
        "scikit-learn, randomized": lambda: peer(X, gamma, "randomized"),
        "scikit-learn, randomized, power 30": lambda: peer(X, gamma, "randomized", 30),
    }
    if n <= 2000:
        competitors["scikit-learn, dense (auto)"] = lambda: peer(X, gamma, "dense")
    runs = {name: 1 if quick or (n > 2000 and "power" in name) else 5 if n <= 2000 else 3 for name in competitors}
    found = race(competitors, runs)
    exact = found["scikit-learn, arpack"][1].eigenvalues_
    errors = {name: float(np.abs(model.eigenvalues_ / exact - 1).max()) for name, (_, model) in found.items()}
    transforms = race({name: lambda model=model: model.transform(Z) for name, (_, model) in found.items()}, runs)
    ours = found["Mercer"][0]
    slow = "slow" if decay == 1.0 else "fast"
    heading(f"n = {n}, {COMPONENTS} components, {slow} decay: λ₁ = {exact[0]:.4g}, λ₁₀ = {exact[-1]:.4g}")
    table(
        ["", "fit, s", "Mercer is faster by", "error", "transform of 2000, s"],
        [
            [
                name,
                f"{seconds:.3f}",
                "" if name == "Mercer" else f"{seconds / ours:.1f}×",
                f"{errors[name]:.0e}",
                f"{transforms[name][0]:.3f}",
            ]
            for name, (seconds, _) in found.items()
        ],
    )
    print(found["Mercer"][1].status_ + "\n")
    task = f"Kernel PCA, {COMPONENTS} components, {slow} decay"
    equals = [name for name in found if name == "Mercer" or errors[name] <= EQUAL]
    compared(task, {name: found[name][0] for name in equals}, size=n)
    if not quick:
        equal = min(seconds for name, (seconds, _) in found.items() if name != "Mercer" and errors[name] <= EQUAL)
        others = min(seconds for name, (seconds, _) in transforms.items() if name != "Mercer")
        judge(
            [
                ("× the fastest peer of equal accuracy", equal / ours, 1.0),
                ("digits of the eigenvalues", -np.log10(max(errors["Mercer"], 1e-16)), -np.log10(EQUAL)),
                ("× the fastest peer's transform", others / transforms["Mercer"][0], 1.0),
            ]
        )


def beyond_memory(quick: bool) -> None:
    """A matrix that is recomputed in each product, and Nyström."""
    n = 2000 if quick else 30_000
    X, k = rows(n, 0.8), mc.Gaussian(2.0)
    budget = n * n  # an eighth of the float64 matrix
    results = {
        "K recomputed": timed(lambda: mc.KernelPCA(k, n_components=COMPONENTS, budget=budget).fit(X)),
        "Nyström": timed(lambda: mc.KernelPCA(k, n_components=COMPONENTS, solver="nystrom").fit(X)),
    }
    exact = results["K recomputed"][1].eigenvalues_
    heading(f"n = {n} within {budget / 1e9:.3g} GB; K would take {8 * n * n / 1e9:.3g} GB")
    table(
        ["", "fit, s", "error", "status"],
        [
            [name, f"{seconds:.2f}", f"{np.abs(model.eigenvalues_ / exact - 1).max():.0e}", model.status_]
            for name, (seconds, model) in results.items()
        ],
    )


def denoising(quick: bool) -> None:
    X = load_digits().data / 16
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))]
    train, clean = X[:1000], X[1000 : 1050 if quick else 1500]
    noisy = clean + 0.25 * rng.normal(size=clean.shape)
    sigma, t = 2.0, 60
    models = {
        "Mercer, nearest feature vector": mc.KernelPCA(mc.Gaussian(sigma), n_components=t),
        "Mercer, regression": mc.KernelPCA(mc.Gaussian(sigma), n_components=t, inverse="regression"),
        **{
            f"scikit-learn, regression, alpha = {alpha:g}": KernelPCA(
                t, kernel="rbf", gamma=0.5 / sigma**2, fit_inverse_transform=True, alpha=alpha
            )
            for alpha in (1.0, 0.1, 0.01)
        },
    }
    runs = dict.fromkeys(models, 1 if quick else 3)
    fits = race({name: lambda model=model: model.fit(train) for name, model in models.items()}, runs)
    scores = {name: model.transform(noisy) for name, model in models.items()}
    found = race({name: lambda name=name: models[name].inverse_transform(scores[name]) for name in models}, runs)
    errors = {name: float(((images - clean) ** 2).mean()) for name, (_, images) in found.items()}
    before = float(((noisy - clean) ** 2).mean())
    heading(f"{len(clean)} noisy digits, {t} components of 1000 others: error before {before:.4f}")
    table(
        ["", "error after", "fit, s", "inverse_transform, s"],
        [[name, f"{errors[name]:.4f}", f"{fits[name][0]:.3f}", f"{found[name][0]:.3f}"] for name in models],
    )
    best = min(error for name, error in errors.items() if "scikit" in name)
    judge([("the best peer's error over Mercer's", best / errors["Mercer, nearest feature vector"], 1.0)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one run each")
    parser.add_argument("--only", help="problems whose name contains this")
    options = parser.parse_args()
    machine()
    for n in (2000, 10_000):
        for decay, gamma in ((1.0, 1 / 32), (0.8, 1 / 8)):
            if options.only is None or options.only in str(n):
                leading(n // 10 if options.quick else n, decay, gamma, options.quick)
    for name, run in (("memory", beyond_memory), ("digits", denoising)):
        if options.only is None or options.only in name:
            run(options.quick)


if __name__ == "__main__":
    main()
