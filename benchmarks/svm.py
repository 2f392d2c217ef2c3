"""Support vector classification compared with other libraries: whole fit, dual objective, test accuracy, prediction.

    python benchmarks/svm.py                       # synthetic problems; a few minutes on two cores
    python benchmarks/svm.py --data DIR            # also Letter, Shuttle and MNIST; or set MERCER_DATA
    python benchmarks/svm.py --quick               # small sizes, one run each: does it run?
    python benchmarks/svm.py --only letter
    python benchmarks/svm.py --only grid           # 8 C × 6 gamma × 5 folds

There is one table for each problem, in Markdown. All solve the same dual with a Gaussian kernel and the same C, gamma
and tolerance (1e-3 unless the title says otherwise); columns are standardised. The competitors are scikit-learn's SVC,
LIBSVM itself (only its training is timed, on data in its own format), and scikit-learn-intelex (oneDAL). Rows with
"float32" take the same data in float32.

DIR contains letter.csv.gz (with the letter in the first column), shuttle.parquet and mnist_5k.parquet (with the class
in the last); the first rows are for training. Each time is the shortest of several runs (slow competitors get fewer,
at least one); a round runs each of them once, so that a slow minute of the machine affects all. The dual objective is
computed in the same way for all, from coefficients and float64 kernel values, and summed over the pairs of classes;
the largest relative difference must be below a thousandth.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import mercer as mc
from measure import WORKERS, compared, heading, judge, machine, race, table

TEST = 2000
"""The number of test rows of the synthetic problems."""


class Problem(NamedTuple):
    """Rows for training and testing, the parameters, and the wanted factor to the time of the best competitor."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    C: float
    gamma: float
    wanted: float
    tol: float = 1e-3

    def single(self) -> Problem:
        """The same problem in float32."""
        return self._replace(X=self.X.astype(np.float32), X_test=self.X_test.astype(np.float32))


# --- the competitors -------------------------------------------------------------------------------------------------


def mercer_fit(p: Problem) -> Any:
    return mc.SVC(mc.Gaussian.from_gamma(p.gamma), C=p.C, tol=p.tol).fit(p.X, p.y)


def sklearn_fit(p: Problem) -> Any:
    from sklearn.svm import SVC

    return SVC(C=p.C, gamma=p.gamma, tol=p.tol, cache_size=1000).fit(p.X, p.y)


def intelex_fit(p: Problem) -> Any:
    from sklearnex.svm import SVC

    return SVC(C=p.C, gamma=p.gamma, tol=p.tol, cache_size=1000).fit(p.X, p.y)


class Libsvm:
    """LIBSVM's own training, with scikit-learn's names for the results."""

    def __init__(self, p: Problem) -> None:
        from libsvm.svmutil import svm_parameter, svm_problem

        # LIBSVM numbers classes by their first rows: sorting the rows gives the same order as the others have.
        codes = np.unique(p.y, return_inverse=True)[1]
        self.sorted = np.argsort(codes, kind="stable")
        self.problem = svm_problem(codes[self.sorted].astype(np.float64), sp.csr_matrix(p.X[self.sorted]))
        self.order = svm_parameter(f"-s 0 -t 2 -c {float(p.C)} -g {float(p.gamma)} -e {float(p.tol)} -m 1000 -q")

    def fit(self, p: Problem) -> Any:
        from libsvm.svmutil import svm_train

        self.model = svm_train(self.problem, self.order)
        return self

    @property
    def support_(self) -> np.ndarray:
        return self.sorted[np.asarray(self.model.get_sv_indices()) - 1]

    @property
    def dual_coef_(self) -> np.ndarray:
        return np.asarray(self.model.get_sv_coef(), dtype=np.float64).T


def peers(p: Problem) -> dict[str, tuple[Problem, Callable[[Problem], Any]]]:
    """The data and the fit of every competitor, by name."""
    fits: dict[str, tuple[Problem, Callable[[Problem], Any]]] = {
        "Mercer": (p, mercer_fit), "Mercer, float32": (p.single(), mercer_fit), "scikit-learn SVC": (p, sklearn_fit)
    }  # fmt: skip
    if importlib.util.find_spec("libsvm"):
        fits["LIBSVM"] = p, Libsvm(p).fit
    if importlib.util.find_spec("sklearnex"):
        fits["scikit-learn-intelex"] = p, intelex_fit
        fits["scikit-learn-intelex, float32"] = p.single(), intelex_fit
    return fits


# --- the problems ----------------------------------------------------------------------------------------------------


def synthetic(n: int, d: int, informative: int, wanted: float, C: float = 1.0, tol: float = 1e-3) -> Problem:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n + TEST, d, n_informative=informative, class_sep=0.8, flip_y=0.02, random_state=0
    )  # fmt: skip
    return split(X, y, n, C, 1 / d, wanted)._replace(tol=tol)


def split(X: np.ndarray, y: np.ndarray, n: int, C: float, gamma: float, wanted: float) -> Problem:
    """The first n rows for training; columns standardised by them."""
    mean, deviation = X[:n].mean(axis=0), X[:n].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    return Problem(X[:n], y[:n], X[n:], y[n:], C, gamma, wanted)


def columns(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All columns of a file but the label, and the label."""
    import polars as pl

    if path.name.endswith(".parquet"):
        frame = pl.read_parquet(path)
        return frame[:, :-1].to_numpy().astype(np.float64), frame[:, -1].to_numpy()
    frame = pl.read_csv(path)
    return frame[:, 1:].to_numpy().astype(np.float64), frame[:, 0].to_numpy()


def letters(folder: Path, classes: int, n: int) -> Problem:
    X, y = columns(folder / "letter.csv.gz")
    y = np.asarray(y, dtype=str)
    return split(X, y if classes > 2 else y > "M", n, 10.0, 0.1, 12.0 if classes > 2 else 4.0)


def shuttle(folder: Path, n: int) -> Problem:
    X, y = columns(folder / "shuttle.parquet")
    return split(X, np.asarray(y, dtype=str), n, 10.0, 1 / 9, 6.0)


def digits(folder: Path, n: int) -> Problem:
    """Even or odd digits; the pixels are not standardised, and gamma is scikit-learn's 'scale'."""
    X, y = columns(folder / "mnist_5k.parquet")
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 255.0, np.asarray(y)[order].astype(int) % 2
    return Problem(X[:n], y[:n], X[n:], y[n:], 10.0, 1 / (X.shape[1] * X.var()), 2.0)


def problems(folder: Path | None, quick: bool) -> dict[str, Callable[[], Problem]]:
    small = 20 if quick else 1
    found: dict[str, Callable[[], Problem]] = {
        f"n = {n}, d = {d}": lambda n=n, d=d, i=i, wanted=wanted: synthetic(n // small, d, i, wanted)
        for n, d, i, wanted in (
            (2000, 20, 10, 3.0), (10_000, 20, 10, 5.0), (40_000, 20, 10, 4.0), (10_000, 200, 50, 2.0)
        )
    }  # fmt: skip
    found["n = 10000, tol = 1e-5"] = lambda: synthetic(10_000 // small, 20, 10, 1.0, tol=1e-5)
    found["n = 10000, C = 1000"] = lambda: synthetic(10_000 // small, 20, 10, 1.0, C=1000.0)
    if folder is not None:
        found["letter, A–M or N–Z"] = lambda: letters(folder, 2, 16_000 // small)
        found["letter, 26 classes"] = lambda: letters(folder, 26, 16_000 // small)
        found["shuttle, 7 classes"] = lambda: shuttle(folder, 43_500 // small)
        found["mnist, even or odd"] = lambda: digits(folder, 4500 // small)
    return found


# --- measuring -------------------------------------------------------------------------------------------------------


def dual(p: Problem, model: Any) -> float:
    """The sum over pairs of classes of ½ βᵀKβ − Σ|β|, from the coefficients."""
    k = mc.Gaussian.from_gamma(p.gamma)
    classes, codes = np.unique(p.y, return_inverse=True)
    if isinstance(model, mc.SVC):
        return float(np.sum(model.objective_))
    support, coef = np.asarray(model.support_), np.asarray(model.dual_coef_, dtype=np.float64)
    of, total = codes[support], 0.0
    for i, j in itertools.combinations(range(len(classes)), 2):
        # scikit-learn's layout: row j - 1 has the coefficients of class i against class j > i, row i those of class j
        a, b = np.flatnonzero(of == i), np.flatnonzero(of == j)
        beta = np.concatenate([coef[j - 1, a], coef[i, b]])
        used = np.flatnonzero(beta)
        rows = support[np.concatenate([a, b])[used]]
        total += float(0.5 * beta[used] @ (mc.gram.of(k, p.X[rows]) @ beta[used]) - np.abs(beta).sum())
    return total


def measure(name: str, p: Problem, quick: bool) -> None:
    few = np.unique(np.concatenate([np.flatnonzero(p.y == c)[:60] for c in np.unique(p.y)]))
    competitors = peers(p)
    small = len(p.X) <= 3000
    runs = {
        peer: 1 if quick else (10 if small else 5) if "Mercer" in peer else 5 if small else 2 for peer in competitors
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data, fit in competitors.values():  # compile, start the threads
            model = fit(data._replace(X=data.X[few], y=data.y[few]))
            if hasattr(model, "predict"):
                model.predict(data.X_test[:100])
        if not quick:
            mercer_fit(p)
        fits = race({peer: partial(fit, data) for peer, (data, fit) in competitors.items()}, runs)
    models = {peer: model for peer, (_, model) in fits.items()}
    guesses = race(
        {
            peer: partial(model.predict, competitors[peer][0].X_test)
            for peer, model in models.items()
            if hasattr(model, "predict")
        },
        runs,
    )
    objectives = {peer: dual(p, model) for peer, model in models.items()}
    ours = fits["Mercer"][0]
    best = min(seconds for peer, (seconds, _) in fits.items() if "Mercer" not in peer)
    accuracies = {peer: float((guess == p.y_test).mean()) for peer, (_, guess) in guesses.items()}
    rows = [
        [
            peer,
            f"{fits[peer][0]:.4f}",
            "" if "Mercer" in peer else f"{fits[peer][0] / ours:.1f}×",
            f"{objectives[peer]:.8g}",
            f"{len(models[peer].support_)}",
            f"{accuracies[peer]:.4f}" if peer in guesses else "",
            f"{guesses[peer][0]:.4f}" if peer in guesses else "",
        ]
        for peer in competitors
    ]
    heading(f"{name}: {len(p.X)} × {p.X.shape[1]}, C = {p.C:g}, gamma = {p.gamma:.4g}, tolerance {p.tol:g}")
    table(["", "fit (s)", "Mercer is faster by", "dual objective", "support", "test accuracy", "predict (s)"], rows)
    task = f"SVC, {p.X.shape[1]} columns, {len(np.unique(p.y))} classes, C = {p.C:g}, tolerance {p.tol:g}"
    compared(task, {peer: seconds for peer, (seconds, _) in fits.items()}, size=len(p.X))
    if quick:
        return
    apart = np.ptp(list(objectives.values())) / abs(objectives["Mercer"])
    judge(
        [
            ("× the best peer", best / ours, p.wanted),
            ("digits of the objective", -math.log10(max(apart, 1e-16)), 3.0),
            ("1 − difference of test accuracies", 1 - float(np.ptp(list(accuracies.values()))), 0.998),
            ("the tolerance over the float64 gap", p.tol / models["Mercer"].gap_, 1.0),
            *(
                (f"× the best peer's prediction{kind}", predicted(guesses, kind), 1.2)
                for kind in ("", ", float32")
                if any(peer not in ("Mercer", "Mercer, float32") and peer.endswith(kind) for peer in guesses)
            ),
        ]
    )


def predicted(guesses: dict[str, tuple[float, Any]], kind: str) -> float:
    """The time of the best peer over Mercer's, both on data of this precision."""
    single = {peer: seconds for peer, (seconds, _) in guesses.items() if peer.endswith(", float32") == bool(kind)}
    return min(seconds for peer, seconds in single.items() if "Mercer" not in peer) / single["Mercer" + kind]


def grid(quick: bool) -> None:
    """A grid over C and gamma in five folds, which are the same for all."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    p = synthetic(400 if quick else 4000, 20, 10, 15.0)
    Cs = np.logspace(-1, 2.5, 2 if quick else 8)
    gammas = np.geomspace(0.005, 0.5, 2 if quick else 6)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    both = {"C": Cs, "gamma": gammas}
    competitors: dict[str, Callable[[], Any]] = {
        "Mercer": lambda: mc.tune(
            mc.SVC(mc.Gaussian(1.0)), p.X, p.y, grid={"C": Cs, "kernel__sigma": np.sqrt(0.5 / gammas)}, cv=folds
        ),
        "GridSearchCV of scikit-learn": lambda: GridSearchCV(SVC(cache_size=500), both, cv=folds, n_jobs=WORKERS).fit(
            p.X, p.y
        ),
    }
    if importlib.util.find_spec("sklearnex"):
        from sklearnex.svm import SVC as Intelex

        X = p.X.astype(np.float32)
        competitors["GridSearchCV of scikit-learn-intelex, float32"] = lambda: GridSearchCV(
            Intelex(cache_size=500), both, cv=folds
        ).fit(X, p.y)
    found = race(competitors, {peer: 1 if quick or "Grid" in peer else 2 for peer in competitors})
    scores = {
        peer: model.tuning_.value if peer == "Mercer" else model.best_score_ for peer, (_, model) in found.items()
    }
    ours = found["Mercer"][0]
    heading(f"grid of {len(Cs)} C × {len(gammas)} gamma, 5 folds, {len(p.X)} × 20, including the final fit")
    table(
        ["", "seconds", "Mercer is faster by", "best mean accuracy"],
        [
            [peer, f"{seconds:.2f}", "" if peer == "Mercer" else f"{seconds / ours:.1f}×", f"{scores[peer]:.5f}"]
            for peer, (seconds, _) in found.items()
        ],
    )
    task = f"SVC, grid of {len(Cs)} C × {len(gammas)} gamma, 5 folds, {len(p.X):,} × 20"
    compared(task, {peer: seconds for peer, (seconds, _) in found.items()})
    if not quick:
        best = min(seconds for peer, (seconds, _) in found.items() if peer != "Mercer")
        judge([("× the best peer", best / ours, p.wanted)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with the data sets")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, one run each")
    parser.add_argument("--only", help="problems whose name contains this")
    options = parser.parse_args()
    machine()
    for name, make in problems(Path(options.data) if options.data else None, options.quick).items():
        if options.only is None or options.only in name:
            measure(name, make(), options.quick)
    if options.only is None or options.only in "grid":
        grid(options.quick)


if __name__ == "__main__":
    main()
