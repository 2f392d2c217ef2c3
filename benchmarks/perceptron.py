"""Perceptrons: one pass over 60 000 rows compared with the pseudo-code in NumPy, and examples per second on a budget.

    python benchmarks/perceptron.py                       # artificial digits; a quarter of an hour on two cores
    python benchmarks/perceptron.py --data DIR            # 5 000 digits of MNIST in twelve positions each
    python benchmarks/perceptron.py --quick               # small sizes: does it run?
    python benchmarks/perceptron.py --only stream         # one minute
    python benchmarks/perceptron.py --only pass --rows 10000

"NumPy" is a direct translation of lecture 002's pseudo-code: a support array with room to grow, and for each example
one vectorised k(S, x) by the formula np.exp(-gamma * ((S - x) ** 2).sum(axis=1)). "NumPy, by a product" stores the
norms and uses ‖s − x‖² = ‖s‖² + ‖x‖² − 2⟨s, x⟩: a product of a matrix and a vector, by BLAS on all cores. For the
polynomial both are the same. A method that computes all kernel values in float64 can be faster than that only as far
as a product of matrices is faster than products with vectors (about ten times, on a quiet machine). All make the same
mistakes, which the table counts. DIR contains mnist_5k.parquet, with the class in the last column.

The stream has 20 columns and two or five classes, made of 40 cells of a Voronoi diagram. It comes in chunks of 1 000
examples, and is timed when the budget of 500 support vectors is used up. scikit-learn's
SGDClassifier(loss="perceptron") on the columns themselves is a reference for the speed: it is a linear model with
correspondingly large errors.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mercer as mc
from measure import compared, heading, judge, machine, race, table

WANTED_PASS, WANTED_STREAM = 20.0, 50_000.0
SIDE = 28


# --- the pseudo-code -------------------------------------------------------------------------------------------------

Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


class Numpy:
    """Lecture 002's algorithm for two classes, with a support array that doubles when it is full."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: np.ndarray, y: np.ndarray) -> Numpy:
        signs = np.where(y, 1.0, -1.0)
        S, norms, a, m = np.empty((1024, X.shape[1])), np.empty(1024), np.empty(1024), 0
        for x, s in zip(X, signs):
            norm = x @ x
            f = a[:m] @ self.kernel(S[:m], norms[:m], x, norm)
            if (f > 0) != (s > 0):
                if m == len(a):
                    S, norms, a = (np.concatenate([part, np.empty_like(part)]) for part in (S, norms, a))
                S[m], norms[m], a[m] = x, norm, s
                m += 1
        self.mistakes_ = m
        return self


def gaussian(gamma: float, S: np.ndarray, norms: np.ndarray, x: np.ndarray, norm: float) -> np.ndarray:
    return np.exp(-gamma * ((S - x) ** 2).sum(axis=1))


def gaussian_by_product(gamma: float, S: np.ndarray, norms: np.ndarray, x: np.ndarray, norm: float) -> np.ndarray:
    return np.exp(-gamma * (norms + norm - 2 * (S @ x)))


def polynomial(S: np.ndarray, norms: np.ndarray, x: np.ndarray, norm: float) -> np.ndarray:
    return (1 + S @ x) ** 4


# --- the data --------------------------------------------------------------------------------------------------------


class Digits(NamedTuple):
    """Pixels in [0, 1], and a class 0 … 9."""

    X: np.ndarray
    y: np.ndarray


def artificial(n: int) -> Digits:
    """Fifty prototypes for each of ten classes (smooth strokes), mixed with a second prototype and noise."""
    from scipy.ndimage import gaussian_filter

    r = np.random.default_rng(0)
    fields = gaussian_filter(r.normal(size=(500, SIDE, SIDE)), (0, 2, 2))
    prototypes = np.clip(8 * fields - 0.6, 0, 1).reshape(500, -1)
    first, second = r.integers(0, 500, n), r.integers(0, 500, n)
    X = np.clip(prototypes[first] + 0.4 * prototypes[second] + 0.25 * r.normal(size=(n, SIDE * SIDE)), 0, 1)
    return Digits(X, first % 10)


def shifted(folder: Path, n: int) -> Digits:
    """Each of MNIST's 5 000 digits, unchanged and in eleven positions that are shifted by up to two pixels."""
    import polars as pl

    frame = pl.read_parquet(folder / "mnist_5k.parquet")
    X = (frame[:, :-1].to_numpy().astype(np.float64) / 255).reshape(-1, SIDE, SIDE)
    y = frame[:, -1].to_numpy().astype(int)
    r = np.random.default_rng(0)
    moves = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]
    chosen = [(0, 0), *(moves[i] for i in r.permutation(len(moves))[:11])]
    rows = np.concatenate([np.roll(X, move, axis=(1, 2)).reshape(len(X), -1) for move in chosen])
    order = r.permutation(len(rows))[:n]
    return Digits(rows[order], np.tile(y, len(chosen))[order])


def cells(n: int, d: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal points in the cells of a Voronoi diagram."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    centers = np.random.default_rng(99).normal(size=(40, d))
    nearest = ((centers**2).sum(axis=1) - 2 * X @ centers.T).argmin(axis=1)
    return X, nearest % classes


# --- the races -------------------------------------------------------------------------------------------------------


def one_pass(digits: Digits, source: str, quick: bool) -> list[tuple[str, float, float]]:
    X, odd = digits.X, digits.y % 2 == 1
    gamma = 1 / (X.shape[1] * X.var())
    rbf, power = mc.Gaussian.from_gamma(gamma), mc.Polynomial(4, c=1.0)
    pseudo: dict[str, dict[str, Kernel]] = {
        "Gaussian": {"NumPy, by a product": partial(gaussian_by_product, gamma), "NumPy": partial(gaussian, gamma)},
        "(1 + ⟨x, z⟩)⁴": {"NumPy": polynomial},
    }
    targets = []
    for name, kernel in zip(pseudo, (rbf, power)):
        mc.KernelPerceptron(kernel).fit(X[:600], odd[:600])  # compile
        competitors: dict[str, Callable[[], Any]] = {
            "Mercer": partial(mc.KernelPerceptron(kernel).fit, X, odd),
            "Mercer, averaged": partial(mc.KernelPerceptron(kernel, variant="averaged").fit, X, odd),
            "Mercer, ten classes": partial(mc.KernelPerceptron(kernel).fit, X, digits.y),
        }
        competitors |= {who: partial(Numpy(formula).fit, X, odd) for who, formula in pseudo[name].items()}
        found = race(competitors, {who: 3 if who == "Mercer" else 1 for who in competitors})
        heading(f"{source}, {len(X)} rows of {X.shape[1]}, even or odd, {name}: one pass")
        ours = found["Mercer"][0]
        rows = [
            [who, f"{seconds:.2f}", "" if "Mercer" in who else f"{seconds / ours:.1f}×", f"{result.mistakes_}"]
            for who, (seconds, result) in found.items()
        ]
        table(["", "seconds", "Mercer is faster by", "mistakes"], rows)
        others = {who: seconds for who, (seconds, _) in found.items() if "Mercer," not in who}
        compared(f"Kernel perceptron, one pass over {len(X):,} × {X.shape[1]}, {name}", others)
        if not quick:
            targets.append((f"{source}, {name}: × NumPy", found["NumPy"][0] / ours, WANTED_PASS))
    return targets


def fed(model: Any, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> Any:
    for start in range(0, len(X), 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000], classes=classes)
    return model


def stream(n: int, quick: bool) -> list[tuple[str, float, float]]:
    from sklearn.linear_model import SGDClassifier

    targets, kernel = [], mc.Gaussian(4.0)
    for classes in (2, 5):
        labels = np.arange(classes)
        X, y = cells(n, 20, classes, 1)
        X_test, y_test = cells(5000, 20, classes, 2)
        kinds = {
            "Mercer, Projectron++": mc.KernelPerceptron(kernel, max_support=500),
            "Mercer, Projectron++, averaged": mc.KernelPerceptron(kernel, max_support=500, variant="averaged"),
            "Mercer, Forgetron": mc.KernelPerceptron(kernel, max_support=500, on_full="forgetron"),
            "Mercer, Perceptron (linear)": mc.Perceptron(),
            "scikit-learn, SGDClassifier (linear)": SGDClassifier(
                loss="perceptron", learning_rate="constant", eta0=1.0
            ),
        }
        for model in kinds.values():
            fed(model, *cells(20_000, 20, classes, 3), labels)  # until the budget is used up
        found = race(
            {name: partial(fed, model, X, y, labels) for name, model in kinds.items()}, dict.fromkeys(kinds, 3)
        )
        heading(f"A stream of {n} examples, d = 20, {classes} classes, budget 500")
        rows = [
            [
                name,
                f"{n / seconds:,.0f}",
                f"{len(model.support_)}" if isinstance(model, mc.KernelPerceptron) else "",
                f"{100 * (1 - model.score(X_test, y_test)):.1f}",
            ]
            for name, (seconds, model) in found.items()
        ]
        table(["", "examples/s", "support vectors", "wrong, %"], rows)
        if not quick:
            targets += [
                (f"{name}, {classes} classes: examples per second", n / found[name][0], WANTED_STREAM)
                for name in ("Mercer, Projectron++", "Mercer, Forgetron")
            ]
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCER_DATA"), help="folder with mnist_5k.parquet")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--rows", type=int, default=60_000, help="number of rows of the pass")
    parser.add_argument("--only", choices=("pass", "stream"), help="one of the two")
    chosen = parser.parse_args()
    machine()
    began = time.perf_counter()
    targets = []
    if chosen.only != "pass":
        targets += stream(4000 if chosen.quick else 100_000, chosen.quick)
    if chosen.only != "stream":
        n = 2000 if chosen.quick else chosen.rows
        digits = artificial(n) if chosen.data is None else shifted(Path(chosen.data), n)
        source = "Artificial digits" if chosen.data is None else "MNIST, shifted"
        targets += one_pass(digits, source, chosen.quick)
    judge(targets)
    print(f"{time.perf_counter() - began:.0f} s in total.")


if __name__ == "__main__":
    main()
