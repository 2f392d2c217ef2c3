"""Automatic models compared with scikit-learn's SVC and SVR, scaled and tuned by a grid in five folds.

    python benchmarks/auto.py --data DIR                   # 20 tables, up to 1 000 training rows, two splits
    python benchmarks/auto.py --data DIR --others          # 20 other tables
    python benchmarks/auto.py --data DIR --seed 7 --rows 600 --splits 3 --only sonar,yacht

Constants of the automatic models were chosen on rows of the first tables, and a few of them on rows of the others, so
neither is a blind test.

DIR contains NAME.csv.gz or NAME.parquet for the names below. For each table at most `rows` rows are fitted and at most
as many others tested; small tables are split into three quarters and a quarter. For every split both models are fitted
one after the other in this process, on the same rows. The score is the accuracy, or R², on the test rows. A win is a
higher mean score; a difference of at most one standard error (over rows) is a tie.
The grid for SVC: C in 0.1, 1, …, 1000. The grid for SVR: C in 0.1, 1, 10, 100 and epsilon in 0.01, 0.1, both in
standard deviations of the target. For both: gamma in 0.1/d … 10/d. Categories are one-hot encoded, with missing values
as one more category. Times are of `fit`: wall time, and processor time of all threads.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from measure import machine
from mercer.models.auto.classifier import AutoClassifier
from mercer.models.auto.regressor import AutoRegressor

REGRESSION = {
    "abalone": "rings",
    "airfoil": "sound_pressure",
    "boston": "MEDV",
    "california_housing": "medianHouseValue",
    "concrete": "strength",
    "diabetes_efron": "target",
    "energy": "Y1_heating",
    "kin8nm": "y",
    "wine_white": "quality",
    "yacht": "resistance",
}
CLASSES = {
    "adult": "income",
    "banana": "class",
    "breast_cancer_wdbc": "target",
    "ionosphere": "Class",
    "pima": "diabetes",
    "satellite": "classes",
    "sonar": "Class",
    "spam": "type",
    "vehicle": "Class",
    "vowel": "Class",
}
OTHER_REGRESSION = {
    "bike_hour": "cnt",
    "elevators": "Goal",
    "jura": "Cd",
    "meuse": "zinc",
    "naval": "kMc",
    "power_plant_ccpp": "PE",
    "protein_casp": "RMSD",
    "quakes": "mag",
    "randhie": "mdvis",
    "wine_red": "quality",
}
OTHER_CLASSES = {
    "banknote": "class",
    "digits": "target",
    "dna_splice_binary": "Class",
    "letter": "lettr",
    "mushrooms": "class",
    "musk1": "Class",
    "ring": "class",
    "shuttle": "Class",
    "twonorm": "class",
    "wine_uci": "target",
}
LEFT_OUT = {
    "adult": ["split"],
    "energy": ["Y2_cooling"],
    "naval": ["kMt"],
    "jura": ["split"],
    "meuse": ["om"],
    "bike_hour": ["instant", "dteday", "casual", "registered"],
}


def load(folder: Path, name: str, target: str) -> tuple[pd.DataFrame, pd.Series]:
    """The columns and the target of a table."""
    path = next(p for p in sorted(folder.glob(f"{name}.*")))
    read = pl.read_parquet(path).to_dict(as_series=False) if path.suffix == ".parquet" else None
    frame = pd.read_csv(path) if read is None else pd.DataFrame(read)
    frame = frame.drop(columns=[c for c in LEFT_OUT.get(name, []) if c in frame])
    frame = frame[frame[target].notna()]
    return frame.drop(columns=target), frame[target]


def peer(X: pd.DataFrame, y: pd.Series, regression: bool) -> GridSearchCV:
    """A support vector machine with scaled numbers and one-hot categories, tuned by a grid in five folds."""
    words = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    scale: Any = StandardScaler()
    if words:
        numbers = [c for c in X if c not in words]
        scale = make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
        )
    grid: dict[str, Any] = {"gamma": np.geomspace(0.1, 10, 5) / X.shape[1], "C": np.geomspace(0.1, 1000.0, 5)}
    machine: Any = SVR() if regression else SVC()
    if regression:
        unit = float(np.std(y))
        grid |= {"C": unit * np.geomspace(0.1, 100.0, 4), "epsilon": unit * np.array([0.01, 0.1])}
    name = "svr" if regression else "svc"
    return GridSearchCV(make_pipeline(scale, machine), {f"{name}__{k}": v for k, v in grid.items()}, cv=5)


def split(n: int, rows: int, seed: int) -> tuple[Any, Any]:
    """Training and test rows: three quarters and a quarter, or `rows` of each."""
    order = np.random.default_rng(seed).permutation(n)
    train = min(rows, 3 * n // 4)
    return order[:train], order[train : train + rows]


def measured(model: Any, X: Any, y: Any, Z: Any) -> tuple[Any, float, float]:
    """Predictions at Z, wall time and processor time in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model.predict(Z), time.perf_counter() - wall, time.process_time() - cpu


def losses(y: Any, predicted: Any, regression: bool) -> Any:
    """One number per row whose mean is 1 − score."""
    if regression:
        y = np.asarray(y, dtype=float)
        return (y - predicted) ** 2 / max(float(np.var(y)), 1e-300)
    return (np.asarray(y) != predicted).astype(float)


def compare(folder: Path, name: str, target: str, regression: bool, options: Any) -> dict[str, Any]:
    """Both models on every split of one table."""
    rows, splits, seconds = options.rows, options.splits, options.time
    X, y = load(folder, name, target)
    gains, means = [], {key: np.zeros(3) for key in ("auto", "peer")}
    n = 0
    for seed in range(options.seed, options.seed + splits):
        train, test = split(len(y), rows, seed)
        n = len(train)
        parts = (X.iloc[train], y.iloc[train], X.iloc[test])
        models = {"auto": AutoRegressor(time=seconds) if regression else AutoClassifier(time=seconds),
                  "peer": peer(parts[0], parts[1], regression)}  # fmt: skip
        errors = {}
        for key, model in models.items():
            predicted, wall, cpu = measured(model, *parts)
            errors[key] = losses(y.iloc[test], predicted, regression)
            means[key] += np.array([1.0 - errors[key].mean(), wall, cpu]) / splits
        gains.append(errors["peer"] - errors["auto"])
    gain = np.concatenate(gains)
    error = float(gain.std() / np.sqrt(len(gain)))
    mean = float(gain.mean())
    verdict = "tie" if abs(mean) <= error else "auto" if mean > 0 else "peer"
    return {"name": name, "n": n, "d": X.shape[1], "gain": mean, "error": error, "verdict": verdict, **means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder with the tables")
    parser.add_argument("--rows", type=int, default=1000, help="largest number of training rows")
    parser.add_argument("--splits", type=int, default=2, help="number of splits")
    parser.add_argument("--time", type=float, default=60.0, help="time budget of the automatic models in seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first split")
    parser.add_argument("--others", action="store_true", help="twenty other tables")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    options = parser.parse_args()
    machine()
    if options.data is None:
        sys.exit("Name the folder with the data: use --data DIR or set MERCER_DATA.")
    numbers, classes = (OTHER_REGRESSION, OTHER_CLASSES) if options.others else (REGRESSION, CLASSES)
    tables = numbers | classes
    names = [n for n in tables if not options.only or n in options.only.split(",")]
    warm = np.random.default_rng(0).normal(size=(800, 2))  # compile before the clock starts
    AutoRegressor().fit(warm, warm[:, 0])
    AutoClassifier().fit(warm, warm[:, 0] > 0)
    print(f"{'table':20s} {'rows':>5s} {'cols':>4s} {'auto':>7s} {'grid':>7s} {'gain':>7s} {'± se':>6s}  verdict "
          f"{'auto s':>8s} {'grid s':>8s} {'auto cpu':>8s} {'grid cpu':>8s} {'share':>6s}", flush=True)  # fmt: skip
    results = []
    for name in names:
        r = compare(Path(options.data), name, tables[name], name in numbers, options)
        results.append(r)
        a, p = r["auto"], r["peer"]
        print(f"{name:20s} {r['n']:5d} {r['d']:4d} {a[0]:7.4f} {p[0]:7.4f} {r['gain']:+7.4f} {r['error']:6.4f}  "
              f"{r['verdict']:7s} {a[1]:8.2f} {p[1]:8.2f} {a[2]:8.2f} {p[2]:8.2f} {a[2] / p[2]:6.2f}",
              flush=True)  # fmt: skip
    count = {v: sum(r["verdict"] == v for r in results) for v in ("auto", "tie", "peer")}
    ahead = sum(r["gain"] > 0 for r in results)
    total = np.sum([[r["auto"][1:], r["peer"][1:]] for r in results], axis=0)
    print(f"\n{len(results)} tables: {count['auto']} better by more than a standard error, {count['tie']} ties, "
          f"{count['peer']} worse; a higher mean score on {ahead} ({ahead / len(results):.0%})")  # fmt: skip
    shares = [r["auto"][2] / r["peer"][2] for r in results]
    print(f"wall time: {total[0, 0]:.1f} s of {total[1, 0]:.1f} s ({total[0, 0] / total[1, 0]:.1%}); processor time "
          f"{total[0, 1]:.1f} s of {total[1, 1]:.1f} s ({total[0, 1] / total[1, 1]:.1%}); median share "
          f"{np.median(shares):.1%}, at most a tenth on {sum(s <= 0.1 for s in shares)} of {len(results)}")  # fmt: skip


if __name__ == "__main__":
    main()
