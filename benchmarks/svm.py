"""Support vector classification beside its peers: seconds of a whole fit, dual objective, test accuracy, prediction.

    python benchmarks/svm.py                       # synthetic problems; some minutes on two cores
    python benchmarks/svm.py --data DIR            # also Letter, Shuttle and MNIST; or set MERCER_DATA
    python benchmarks/svm.py --quick               # small sizes, one run each: does it run?
    python benchmarks/svm.py --only letter

One table for each problem, in Markdown. All solve the same dual with a Gaussian kernel, the same C, gamma and tolerance
(1e-3); columns are standardised. Peers are scikit-learn's SVC (LIBSVM) and, where it is installed, that of
scikit-learn-intelex (oneDAL) in float64 and float32.

DIR holds letter.csv.gz (the letter first), shuttle.parquet and mnist_5k.parquet (the class last); the first rows are
for training. Every figure is the minimum of several runs; a round runs every peer once, so that a slow minute of the
machine meets all of them. The dual objective is computed in the same way for everyone, from coefficients and float64
kernel values, and summed over the pairs of classes; the largest difference of two is to be below a thousandth.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mercer as mc
from measure import judge, machine, race, table

TOL = 1e-3
TEST = 2000
"""Test rows of the synthetic problems."""


class Problem(NamedTuple):
    """Rows for training and for testing, the parameters, and how many times faster than the best peer it should be."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    C: float
    gamma: float
    wanted: float


# --- the competitors -------------------------------------------------------------------------------------------------


def mercer_fit(p: Problem, dtype: Any = np.float64) -> Any:
    return mc.SVC(mc.Gaussian.from_gamma(p.gamma), C=p.C, tol=TOL).fit(p.X, p.y)


def sklearn_fit(p: Problem, dtype: Any = np.float64) -> Any:
    from sklearn.svm import SVC

    return SVC(C=p.C, gamma=p.gamma, tol=TOL, cache_size=1000).fit(p.X.astype(dtype), p.y)


def intelex_fit(p: Problem, dtype: Any = np.float64) -> Any:
    from sklearnex.svm import SVC

    return SVC(C=p.C, gamma=p.gamma, tol=TOL, cache_size=1000).fit(p.X.astype(dtype), p.y)


def peers() -> dict[str, Callable[[Problem], Any]]:
    found: dict[str, Callable[[Problem], Any]] = {"Mercer": mercer_fit, "scikit-learn SVC": sklearn_fit}
    if importlib.util.find_spec("sklearnex"):
        found["scikit-learn-intelex, float64"] = intelex_fit
        found["scikit-learn-intelex, float32"] = lambda p: intelex_fit(p, np.float32)
    return found


# --- the problems ----------------------------------------------------------------------------------------------------


def synthetic(n: int, d: int, informative: int, wanted: float) -> Problem:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n + TEST, d, n_informative=informative, class_sep=0.8, flip_y=0.02, random_state=0
    )  # fmt: skip
    return split(X, y, n, 1.0, 1 / d, wanted)


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
    """Even or odd; the pixels are not standardised, and gamma is scikit-learn's 'scale'."""
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
        # scikit-learn's layout: row j - 1 holds class i's coefficients against class j > i, row i those of class j
        a, b = np.flatnonzero(of == i), np.flatnonzero(of == j)
        beta = np.concatenate([coef[j - 1, a], coef[i, b]])
        used = np.flatnonzero(beta)
        rows = support[np.concatenate([a, b])[used]]
        total += float(0.5 * beta[used] @ (mc.gram.of(k, p.X[rows]) @ beta[used]) - np.abs(beta).sum())
    return total


def measure(name: str, p: Problem, quick: bool) -> None:
    competitors = peers()
    small = len(p.X) <= 3000
    runs = {
        peer: 1 if quick else (10 if small else 5) if peer == "Mercer" else 5 if small else 2 for peer in competitors
    }
    few = np.unique(np.concatenate([np.flatnonzero(p.y == c)[:60] for c in np.unique(p.y)]))
    warm = p._replace(X=p.X[few], y=p.y[few])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in competitors.values():
            fit(warm).predict(p.X_test[:100])  # compile, start the threads
        if not quick:
            mercer_fit(p)
        fits = race({peer: lambda fit=fit: fit(p) for peer, fit in competitors.items()}, runs)
    models = {peer: model for peer, (_, model) in fits.items()}
    guesses = race({peer: lambda model=model: model.predict(p.X_test) for peer, model in models.items()}, runs)
    objectives = {peer: dual(p, model) for peer, model in models.items()}
    ours, best = fits["Mercer"][0], min(fits[peer][0] for peer in competitors if peer != "Mercer")
    rows = [
        [
            peer,
            f"{fits[peer][0]:.4f}",
            "" if peer == "Mercer" else f"{fits[peer][0] / ours:.1f}×",
            f"{objectives[peer]:.8g}",
            f"{len(models[peer].support_)}",
            f"{(guesses[peer][1] == p.y_test).mean():.4f}",
            f"{guesses[peer][0]:.4f}",
        ]
        for peer in competitors
    ]
    print(f"### {name}: {len(p.X)} × {p.X.shape[1]}, C = {p.C:g}, gamma = {p.gamma:.4g}\n")
    table(["", "fit (s)", "Mercer is faster by", "dual objective", "support", "test accuracy", "predict (s)"], rows)
    apart = np.ptp(list(objectives.values())) / abs(objectives["Mercer"])
    accuracies = [float((guess == p.y_test).mean()) for _, guess in guesses.values()]
    predicted = min(seconds for peer, (seconds, _) in guesses.items() if peer != "Mercer") / guesses["Mercer"][0]
    if not quick:
        judge(
            [
                ("× the best peer", best / ours, p.wanted),
                ("digits of the objective", -math.log10(max(apart, 1e-16)), 3.0),
                ("1 − difference of test accuracies", 1 - float(np.ptp(accuracies)), 0.998),
                ("× the best peer's prediction", predicted, 1.2),
            ]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, one run each")
    parser.add_argument("--only", help="problems whose name contains this")
    options = parser.parse_args()
    machine()
    for name, make in problems(Path(options.data) if options.data else None, options.quick).items():
        if options.only is None or options.only in name:
            measure(name, make(), options.quick)


if __name__ == "__main__":
    main()
