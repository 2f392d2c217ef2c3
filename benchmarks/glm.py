"""Logistic and Poisson regression compared with other libraries: seconds of a whole fit at the same objective.

    python benchmarks/glm.py                       # a few minutes on two cores
    python benchmarks/glm.py --quick               # small sizes, one run each: does it run?
    python benchmarks/glm.py --only primal         # or exact, or nystrom

primal: n = 100 000 rows, d = 50 columns, compared with scikit-learn's lbfgs and newton-cholesky (with the loosest
tolerance of 1e-4, 1e-5, … at which they reach the smallest objective to a relative 1e-8) and with statsmodels, which
has no penalty, and is compared with a fit without one. The objective Σ loss + ½ alpha ‖w‖² is computed in the same way
for all.
exact: kernel logistic regression on 5000 points, compared with one Cholesky factorisation of a matrix of that size.
nystrom: 50 000 points on centres, compared with scikit-learn's Nystroem + LogisticRegression at several numbers of
components: the log loss of held-out rows, and the seconds of the fit.

Each time is the shortest of several runs (slow competitors get fewer, at least one); a round runs each of them once, so
that a slow minute of the machine affects all.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

import mercer as mc
from measure import compared, heading, judge, machine, race, table

EQUAL = 1e-8
"""Objectives with at most this relative difference count as equal."""


class Problem(NamedTuple):
    """Rows, responses of a family, and the penalty."""

    X: np.ndarray
    y: np.ndarray
    family: str
    alpha: float

    def objective(self, w: np.ndarray, b: float, alpha: float) -> float:
        """−log-likelihood + ½ alpha ‖w‖²."""
        eta = self.X @ np.ravel(w) + b
        if self.family == "bernoulli":
            loss = np.logaddexp(0.0, eta).sum() - self.y @ eta
        else:
            loss = np.exp(eta).sum() - self.y @ eta + gammaln(self.y + 1).sum()
        return float(loss + 0.5 * alpha * np.ravel(w) @ np.ravel(w))


def problem(family: str, n: int, d: int, alpha: float = 1.0) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    eta = X @ (rng.normal(size=d) / np.sqrt(d)) * (1.0 if family == "bernoulli" else 0.7)
    y = rng.random(n) < 1 / (1 + np.exp(-eta)) if family == "bernoulli" else rng.poisson(np.exp(eta))
    return Problem(X, y.astype(np.float64), family, alpha)


# --- the competitors: each returns weights and intercept --------------------------------------------------------------


def mercer_fit(p: Problem, alpha: float) -> tuple[np.ndarray, float]:
    if p.family == "bernoulli":
        model = mc.LogisticRegression(alpha=alpha).fit(p.X, p.y)
        return model.coef_[0], float(model.intercept_[0])
    model = mc.GLM(family=p.family, alpha=alpha).fit(p.X, p.y)
    return model.coef_, model.intercept_


def sklearn_fit(p: Problem, solver: str, tol: float) -> tuple[np.ndarray, float]:
    from sklearn.linear_model import LogisticRegression, PoissonRegressor

    if p.family == "bernoulli":
        model = LogisticRegression(C=1 / p.alpha, solver=solver, tol=tol, max_iter=1000).fit(p.X, p.y)
        return model.coef_[0], float(model.intercept_[0])
    model = PoissonRegressor(alpha=p.alpha / len(p.y), solver=solver, tol=tol, max_iter=1000).fit(p.X, p.y)
    return model.coef_, float(model.intercept_)


def statsmodels_fit(p: Problem) -> tuple[np.ndarray, float]:
    import statsmodels.api as sm

    family = sm.families.Binomial() if p.family == "bernoulli" else sm.families.Poisson()
    weights = sm.GLM(p.y, sm.add_constant(p.X, prepend=False), family=family).fit().params
    return weights[:-1], float(weights[-1])


def tolerance(p: Problem, solver: str, least: float) -> float:
    """The loosest tolerance at which scikit-learn's solver reaches the smallest objective."""
    for tol in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        if p.objective(*sklearn_fit(p, solver, tol), p.alpha) <= least * (1 + EQUAL):
            break
    return tol


def primal(quick: bool) -> None:
    n, d = (5000, 20) if quick else (100_000, 50)
    for family, name in (("bernoulli", "logistic"), ("poisson", "Poisson")):
        p = problem(family, n, d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = p._replace(X=p.X[:2000], y=p.y[:2000])
            mercer_fit(small, p.alpha)  # compile, start the threads
            least = p.objective(*mercer_fit(p, p.alpha), p.alpha)
            competitors: dict[str, Callable[[], Any]] = {
                f"Mercer, alpha = {p.alpha:g}": partial(mercer_fit, p, p.alpha)
            }
            for solver in ("lbfgs", "newton-cholesky"):
                tol = tolerance(p, solver, least)
                competitors[f"scikit-learn {solver}, tol = {tol:.0e}"] = partial(sklearn_fit, p, solver, tol)
            competitors["Mercer, alpha = 0"] = partial(mercer_fit, p, 0.0)
            if importlib.util.find_spec("statsmodels"):
                statsmodels_fit(small)
                competitors["statsmodels, alpha = 0"] = partial(statsmodels_fit, p)
            runs = {peer: 1 if quick else 10 if "Mercer" in peer else 5 for peer in competitors}
            fits = race(competitors, runs)
        alphas = {peer: 0.0 if peer.endswith("alpha = 0") else p.alpha for peer in fits}
        values = {peer: p.objective(*found, alphas[peer]) for peer, (_, found) in fits.items()}
        best = {a: min(v for peer, v in values.items() if alphas[peer] == a) for a in set(alphas.values())}
        excess = {peer: values[peer] / best[alphas[peer]] - 1 for peer in fits}
        ours = {alphas[peer]: seconds for peer, (seconds, _) in fits.items() if "Mercer" in peer}
        heading(f"{name}, {n} × {d}")
        table(
            ["", "seconds", "Mercer is faster by", "objective", "relative excess"],
            [
                [
                    peer,
                    f"{seconds:.4f}",
                    "" if "Mercer" in peer else f"{seconds / ours[alphas[peer]]:.2f}×",
                    f"{values[peer]:.8f}",
                    f"{excess[peer]:.1e}",
                ]
                for peer, (seconds, _) in fits.items()
            ],
        )
        penalised = {peer: seconds for peer, (seconds, _) in fits.items() if alphas[peer] and "Mercer" not in peer}
        task = f"{name.capitalize()} regression, {n:,} × {d}"
        compared(task, {"Mercer": ours[p.alpha], **penalised})
        if "statsmodels, alpha = 0" in fits:
            compared(f"{task}, no penalty", {"Mercer": ours[0.0], "statsmodels": fits["statsmodels, alpha = 0"][0]})
        if quick:
            continue
        rivals = [seconds for peer, (seconds, _) in fits.items() if "scikit-learn" in peer]
        judge(
            [
                ("× the fastest of scikit-learn", min(rivals) / ours[p.alpha], 1.0),
                ("× statsmodels", fits.get("statsmodels, alpha = 0", (math.nan,))[0] / ours[0.0], 4.0),
                (
                    "digits of the objective",
                    -math.log10(max(*(v for k, v in excess.items() if "Mercer" in k), 1e-16)),
                    8.0,
                ),
            ]
        )


# --- kernels ---------------------------------------------------------------------------------------------------------


def rough_classes(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy classes by a rough function of all columns, which more centres approximate better."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = np.random.default_rng(1).normal(size=(200, d))
    heights = np.random.default_rng(2).normal(size=200)
    f = 12.0 * mc.Gaussian(0.5 * np.sqrt(d))(X, Z) @ heights
    return X, rng.random(n) < 1 / (1 + np.exp(-f))


def cholesky(K: np.ndarray) -> None:
    A = K.copy(order="F")
    lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)


def exact(quick: bool) -> None:
    n, d = (500, 20) if quick else (5000, 20)
    X, y = rough_classes(n, d)
    k = mc.Gaussian(0.5 * np.sqrt(d))
    K = k(X) + np.eye(n)
    mc.KernelLogisticRegression(k).fit(X[:300], y[:300])
    rows, targets = [], []
    for alpha in (1.0, 0.1, 0.01):
        model = mc.KernelLogisticRegression(k, alpha=alpha)
        found = race(
            {"Mercer": partial(model.fit, X, y), "Cholesky": partial(cholesky, K)},
            {"Mercer": 1 if quick else 3, "Cholesky": 1 if quick else 6},
        )
        ours, one = found["Mercer"][0], found["Cholesky"][0]
        rows.append([f"{alpha:g}", f"{ours:.3f}", f"{one:.3f}", f"{ours / one:.2f}", model.status_])
        targets.append((f"8 Cholesky factors over a fit, alpha = {alpha:g}", 8 * one / ours, 1.0))
    heading(f"kernel logistic, {n} × {d}, with the Gram matrix")
    table(["alpha", "fit (s)", "one Cholesky (s)", "ratio", "status"], rows)
    if not quick:
        judge(targets)


def nystrom(quick: bool) -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.pipeline import make_pipeline

    n, d, held = (3000, 10, 1000) if quick else (50_000, 10, 10_000)
    X, y = rough_classes(n + held, d)
    sigma, alpha = 0.5 * np.sqrt(d), 0.1
    gamma = 0.5 / sigma**2
    sizes, theirs = ((50,), (25, 50)) if quick else ((200, 400, 800), (50, 100, 200, 400, 800))
    competitors: dict[str, Callable[[], Any]] = {}
    for m in sizes:
        model = mc.KernelLogisticRegression(mc.Gaussian(sigma), alpha=alpha, n_centers=m)
        competitors[f"Mercer, {m} centres"] = partial(model.fit, X[:n], y[:n])
    for m in theirs:
        peer = make_pipeline(
            Nystroem(gamma=gamma, n_components=m, random_state=0), LogisticRegression(C=1 / alpha, max_iter=1000)
        )
        competitors[f"scikit-learn, {m} components"] = partial(peer.fit, X[:n], y[:n])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mc.KernelLogisticRegression(mc.Gaussian(sigma), n_centers=20).fit(X[:500], y[:500])
        fits = race(competitors, {peer: 2 if not quick and "Mercer" in peer else 1 for peer in competitors})
    losses = {peer: log_loss(y[n:], model.predict_proba(X[n:])) for peer, (_, model) in fits.items()}
    heading(f"kernel logistic on centres, {n} × {d}, alpha = {alpha:g}")
    table(
        ["", "fit (s)", "log loss of held-out rows"],
        [[peer, f"{seconds:.2f}", f"{losses[peer]:.5f}"] for peer, (seconds, _) in fits.items()],
    )
    if quick:
        return
    targets = []
    for m in sizes:
        seconds = fits[f"Mercer, {m} centres"][0]
        inside = [losses[peer] for peer, (other, _) in fits.items() if "scikit" in peer and other <= seconds]
        best = min(inside, default=math.log(2.0))
        targets.append(
            (
                f"log loss of the best peer within {seconds:.1f} s, over Mercer's",
                best / losses[f"Mercer, {m} centres"],
                1.0,
            )
        )
    judge(targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--only", help="primal, exact or nystrom")
    options = parser.parse_args()
    machine()
    for measure in (primal, exact, nystrom):
        if options.only is None or options.only in measure.__name__:
            measure(options.quick)


if __name__ == "__main__":
    main()
