"""Hyperparameter tuning: Mercer beside its peers, in one process, interleaved.

    python benchmarks/tuning.py                   # about a quarter of an hour on two cores
    python benchmarks/tuning.py --quick           # a minute, small sizes: does it run?
    python benchmarks/tuning.py --only evidence   # ridge | evidence

*Ridge*: alpha and the width of a Gaussian kernel at n = 2 000, d = 20. GridSearchCV refits 10 x 5 candidates on 5
folds; Mercer compares the same candidates by the same folds, and searches by gradient. All choices are judged by their
exact leave-one-out error. *Evidence*: scikit-learn's GaussianProcessRegressor and Mercer's, from the same start, judged
by the log evidence they reach.

Every figure is the minimum of several runs of the whole `fit`; a round runs every competitor once, so that a slow
minute of the machine meets all of them. Targets are judged at full size only. himalaya and GPyTorch are not measured.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

from measure import judge, machine, race, table


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + X[:, 3] + 0.3 * rng.normal(size=n)
    return X, y - y.mean()


# --- ridge ------------------------------------------------------------------------------------------------------------


def ridge(n: int, quick: bool) -> None:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    import mercer as mc
    from mercer.models.kernel_ridge import KernelRidge as Ridge
    from mercer.models.tune import tune
    from mercer.tuning.loo import loo_error

    X, y = data(n, 20)
    sigmas, alphas = np.geomspace(1.0, 30.0, 10), np.geomspace(1e-3, 10.0, 5)
    model = Ridge(mc.Gaussian(math.sqrt(20)))
    peer = GridSearchCV(
        KernelRidge(kernel="rbf"), {"gamma": 0.5 / sigmas**2, "alpha": alphas}, cv=5, n_jobs=2
    )  # fmt: skip
    competitors = {
        "scikit-learn GridSearchCV, 5 folds, n_jobs=2": lambda: peer.fit(X, y),
        "Mercer, same grid, 5 folds": lambda: tune(model, X, y, by=5, grid={"kernel__sigma": sigmas, "alpha": alphas}),
        "Mercer, by gradient, leave-one-out": lambda: tune(model, X, y, by="loo"),
    }
    tune(model, X[:300], y[:300])  # compile
    runs = dict(zip(competitors, [1, 1, 1] if quick else [2, 4, 4]))
    found = race(competitors, runs)
    (first, _), (second, grid), (third, gradient) = found.values()
    peer_sigma = math.sqrt(0.5 / peer.best_params_["gamma"])
    choices = [
        (peer_sigma, peer.best_params_["alpha"]),
        (grid.kernel.sigma, grid.alpha),
        (gradient.kernel.sigma, gradient.alpha),
    ]
    points = mc.Gaussian().prepare(X)
    errors = [loo_error(mc.Gaussian(s), points, y[:, None], a, gradient=False)[0] for s, a in choices]
    print(f"### Ridge: alpha and sigma, n = {n}, d = 20, 10 x 5 grid\n")
    table(
        ["", "seconds", "faster by", "sigma", "alpha", "leave-one-out error"],
        [
            [name, f"{t:.2f}", "" if i == 0 else f"{first / t:.1f}x", f"{s:.3f}", f"{a:.4g}", f"{e:.5f}"]
            for i, (name, (t, _), (s, a), e) in enumerate(zip(found, found.values(), choices, errors))
        ],
    )
    full = int((grid.tuning_.grid.folds == 5).sum())
    print(
        f"Candidates that ran on all folds: {full} of 50. Mean R2 of the choice: scikit-learn {peer.best_score_:.6f}, "
    )
    print(
        f"Mercer {grid.tuning_.value:.6f}. Full evaluations of the gradient search: {gradient.tuning_.evaluations}.\n"
    )
    same = math.isclose(choices[0][0], choices[1][0], rel_tol=1e-9) and choices[0][1] == choices[1][1]
    if not quick:
        judge(
            [
                ("grid, x GridSearchCV" + ("" if same else " (another choice!)"), first / second if same else 0.0, 8.0),
                ("gradient, x GridSearchCV", first / third, 15.0),
                ("gradient, leave-one-out error of GridSearchCV's choice over its own", errors[0] / errors[2], 1.0),
            ]
        )


# --- evidence ---------------------------------------------------------------------------------------------------------


def evidence(n: int, quick: bool) -> None:
    for points, d, relevance, wanted in ((n, 20, False, 8.0), (n // 2, 5, True, 6.0), (n, 20, True, 10.0)):
        _evidence(points, d, relevance, wanted, quick)


def _evidence(n: int, d: int, relevance: bool, wanted: float, quick: bool) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    import mercer as mc
    from mercer.models.gaussian_process import GaussianProcessRegressor as Process
    from mercer.models.tune import tune

    X, y = data(n, d)
    width = math.sqrt(d) * (np.ones(d) if relevance else 1.0)
    kernel = ConstantKernel(1.0, (1e-5, 1e5)) * RBF(width, (1e-3, 1e5)) + WhiteKernel(0.1, (1e-8, 1e2))
    model = Process(1.0 * mc.Gaussian(width), alpha=0.1)
    competitors = {
        "scikit-learn GaussianProcessRegressor": lambda: GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y),
        "Mercer": lambda: tune(model, X, y, by="evidence"),
    }
    tune(model, X[:300], y[:300], by="evidence")  # compile
    slow = relevance and d > 5
    runs = dict(zip(competitors, [1, 1] if quick else [1 if slow else 2, 4]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's about bounds
        found = race(competitors, runs)
    (first, peer), (second, own) = found.values()
    reached = peer.log_marginal_likelihood_value_, own.tuning_.value
    print(f"### Evidence: {'one width per column' if relevance else 'one width'}, n = {n}, d = {d}\n")
    table(
        ["", "seconds", "faster by", "log evidence"],
        [
            ["scikit-learn GaussianProcessRegressor", f"{first:.2f}", "", f"{reached[0]:.3f}"],
            ["Mercer", f"{second:.2f}", f"{first / second:.1f}x", f"{reached[1]:.3f}"],
        ],
    )
    print(f"Full evaluations: {own.tuning_.evaluations}. {' '.join(own.tuning_.notes)}\n")
    if not quick:
        judge(
            [
                ("x scikit-learn", first / second, wanted),
                ("log evidence above scikit-learn's, minus 0.05", reached[1] - reached[0] + 0.05, 0.0),
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--only", choices=["ridge", "evidence"])
    options = parser.parse_args()
    machine()
    for name, run in (("ridge", ridge), ("evidence", evidence)):
        if options.only in (None, name):
            run(500 if options.quick else 2000, options.quick)


if __name__ == "__main__":
    main()
