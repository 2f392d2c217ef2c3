"""Hyperparameter tuning: Mercer and other libraries, in one process, in turns.

    python benchmarks/tuning.py                   # about a quarter of an hour on two cores
    python benchmarks/tuning.py --quick           # a minute, small sizes: does it run?
    python benchmarks/tuning.py --only ridge      # or evidence-one, evidence-5, evidence-20

*Ridge*: alpha and the width of a Gaussian kernel at n = 2 000, d = 20. GridSearchCV refits 10 x 5 candidates on 5
folds; Mercer compares the same candidates by the same folds, and searches by gradient. All choices are judged by their
exact leave-one-out error. *Evidence*: scikit-learn's GaussianProcessRegressor and Mercer's, from the same start, judged
by the log evidence they reach.

Each time is the shortest of several runs (slow competitors get fewer, at least one) of the whole `fit`; a round runs
every competitor once, so that a slow minute of the machine affects all. Targets are judged at full size only. Rows of
libraries that are not installed (himalaya, GPyTorch) are left out.
"""

from __future__ import annotations

import argparse
import math
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from measure import WORKERS, compared, heading, judge, machine, race, table


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + X[:, 3] + 0.3 * rng.normal(size=n)
    return X, y - y.mean()


PEER = f"scikit-learn GridSearchCV, 5 folds, n_jobs={WORKERS}"


# --- ridge ------------------------------------------------------------------------------------------------------------


def ridge(n: int, quick: bool) -> None:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    import mercer as mc
    from mercer.tuning.loo import loo_error

    X, y = data(n, 20)
    sigmas, alphas = np.geomspace(1.0, 30.0, 10), np.geomspace(1e-3, 10.0, 5)
    model = mc.KernelRidge(mc.Gaussian(math.sqrt(20)))

    def sklearn() -> tuple[float, float]:
        search = GridSearchCV(
            KernelRidge(kernel="rbf"), {"gamma": 0.5 / sigmas**2, "alpha": alphas}, cv=5, n_jobs=WORKERS
        )
        best = search.fit(X, y).best_params_
        return math.sqrt(0.5 / best["gamma"]), best["alpha"]

    def himalaya() -> tuple[float, float]:
        """One KernelRidgeCV for each width: it searches alphas only."""
        from himalaya.kernel_ridge import KernelRidgeCV

        found = []
        for sigma in sigmas:
            peer = KernelRidgeCV(alphas, kernel="rbf", kernel_params={"gamma": 0.5 / sigma**2}, cv=5).fit(X, y)
            found.append((float(np.max(peer.cv_scores_)), sigma, float(np.ravel(peer.best_alphas_)[0])))
        return max(found)[1:]

    def grid() -> tuple[float, float]:
        tuned = mc.tune(model, X, y, by=5, grid={"kernel__sigma": sigmas, "alpha": alphas})
        return tuned.kernel_.sigma, tuned.alpha_

    def gradient() -> tuple[float, float]:
        tuned = mc.tune(model, X, y, by="loo")
        return tuned.kernel_.sigma, tuned.alpha_

    competitors = {
        PEER: sklearn,
        "himalaya KernelRidgeCV, 5 folds": himalaya,
        "Mercer, same grid, 5 folds": grid,
        "Mercer, by gradient, leave-one-out": gradient,
    }
    runs = dict(zip(competitors, [1, 1, 1, 1] if quick else [2, 1, 4, 4]))
    if not find_spec("himalaya"):
        del competitors["himalaya KernelRidgeCV, 5 folds"]
    mc.tune(model, X[:300], y[:300])  # compile
    found = race(competitors, {name: runs[name] for name in competitors})
    points = mc.Gaussian().prepare(X)
    first = found[PEER]
    errors = {
        name: loo_error(mc.Gaussian(s), points, y[:, None], a, gradient=False)[0] for name, (_, (s, a)) in found.items()
    }
    heading(f"Ridge: alpha and sigma, n = {n}, d = 20, 10 × 5 grid")
    table(
        ["", "seconds", "faster than GridSearchCV by", "sigma", "alpha", "leave-one-out error"],
        [
            [name, f"{t:.2f}", f"{first[0] / t:.1f}×", f"{s:.3f}", f"{a:.4g}", f"{errors[name]:.5f}"]
            for name, (t, (s, a)) in found.items()
        ],
    )
    seconds = {PEER: first[0], "Mercer": found["Mercer, same grid, 5 folds"][0]}
    compared(f"Ridge: alpha and sigma on a grid of 10 × 5, {n:,} × 20", seconds)
    same = np.allclose(found["Mercer, same grid, 5 folds"][1], first[1])
    names = list(competitors)
    by_grid, by_gradient = found[names[-2]], found[names[-1]]
    other = found.get("himalaya KernelRidgeCV, 5 folds", (math.nan,))[0]
    if not quick:
        judge(
            [
                ("grid, × GridSearchCV" + ("" if same else " (another choice!)"), first[0] / by_grid[0] * same, 8.0),
                ("gradient, × GridSearchCV", first[0] / by_gradient[0], 15.0),
                ("gradient, × himalaya", other / by_gradient[0], 15.0),
                ("leave-one-out error, GridSearchCV over gradient", errors[names[0]] / errors[names[-1]], 1.0),
            ]
        )


# --- evidence ---------------------------------------------------------------------------------------------------------


EVIDENCE = {"evidence-one": (1, 20, False, 8.0), "evidence-5": (2, 5, True, 6.0), "evidence-20": (1, 20, True, 10.0)}
"""By the name of a table: the part of the rows, columns, whether each has its own width, and the wanted factor."""


def evidence(n: int, d: int, relevance: bool, wanted: float, quick: bool) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    import mercer as mc
    from mercer.tuning.evidence import log_evidence

    X, y = data(n, d)
    width = math.sqrt(d) * (np.ones(d) if relevance else 1.0)
    model = mc.GaussianProcessRegressor(1.0 * mc.Gaussian(width), alpha=0.1, tune="evidence")

    def exact(scale: float, sigma: Any, alpha: float) -> float:
        kernel = scale * mc.Gaussian(sigma)
        return log_evidence(kernel, kernel.prepare(X), y[:, None], alpha, gradient=False)[0]

    def sklearn() -> float:
        kernel = ConstantKernel(1.0, (1e-5, 1e5)) * RBF(width, (1e-3, 1e5)) + WhiteKernel(0.1, (1e-8, 1e2))
        return float(GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y).log_marginal_likelihood_value_)

    def mercer() -> float:
        return float(model.fit(X, y).log_evidence_)

    competitors = {
        "scikit-learn GaussianProcessRegressor": sklearn,
        "GPyTorch, 50 steps of Adam": lambda: exact(*gpytorch(X, y, relevance)),
        "Mercer": mercer,
    }
    slow = relevance and d > 5
    runs = dict(zip(competitors, [1, 1, 1] if quick else [1 if slow else 2, 1, 4]))
    if not find_spec("gpytorch"):
        del competitors["GPyTorch, 50 steps of Adam"]
    model.fit(X[:300], y[:300])  # compile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of scikit-learn about bounds
        found = race(competitors, {name: runs[name] for name in competitors})
    seconds, reached = found["Mercer"]
    first, peak = found["scikit-learn GaussianProcessRegressor"]
    heading(f"Evidence: {'one width per column' if relevance else 'one width'}, n = {n}, d = {d}")
    table(
        ["", "seconds", "Mercer is faster by", "log evidence"],
        [
            [name, f"{t:.2f}", "" if name == "Mercer" else f"{t / seconds:.1f}×", f"{value:.3f}"]
            for name, (t, value) in found.items()
        ],
    )
    widths = "one width per column" if relevance else "one width"
    compared(f"Gaussian process by the evidence, {widths}, {n:,} × {d}", {k: v[0] for k, v in found.items()})
    if not quick:
        other = found.get("GPyTorch, 50 steps of Adam", (math.nan,))[0]
        judge(
            [
                ("× scikit-learn", first / seconds, wanted),
                ("× GPyTorch", other / seconds, 4.0),
                ("log evidence above scikit-learn's, plus 0.05", reached - peak + 0.05, 0.0),
            ]
        )


def gpytorch(X: np.ndarray, y: np.ndarray, relevance: bool) -> tuple[float, Any, float]:
    """Scale, widths and noise after 50 steps of Adam on the exact (Cholesky) objective, from the same start."""
    import gpytorch as gp
    import torch

    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)

    class Process(gp.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gp.means.ZeroMean()
            self.covar_module = gp.kernels.ScaleKernel(
                gp.kernels.RBFKernel(ard_num_dims=X.shape[1] if relevance else None)
            )

        def forward(self, x: Any) -> Any:
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gp.likelihoods.GaussianLikelihood()
    model = Process(likelihood).double()
    model.covar_module.outputscale = 1.0
    model.covar_module.base_kernel.lengthscale = math.sqrt(X.shape[1])
    likelihood.noise = 0.1
    objective = gp.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    with gp.settings.fast_computations(False, False, False), gp.settings.max_cholesky_size(10_000):
        for _ in range(50):
            optimiser.zero_grad()
            loss = -objective(model(inputs), targets)
            loss.backward()
            optimiser.step()
    widths = model.covar_module.base_kernel.lengthscale.detach().numpy().ravel()
    scale = float(model.covar_module.outputscale.detach())
    return scale, widths if relevance else float(widths[0]), float(likelihood.noise.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--only", choices=["ridge", *EVIDENCE], help="one table")
    options = parser.parse_args()
    machine()
    n = 500 if options.quick else 2000
    if options.only in (None, "ridge"):
        ridge(n, options.quick)
    for name, (share, *problem) in EVIDENCE.items():
        if options.only in (None, name):
            evidence(n // share, *problem, options.quick)


if __name__ == "__main__":
    main()
