"""Do intervals and probabilities of automatic models keep their promise? Coverage and calibration by data set.

    python benchmarks/promises.py --data DIR                    # all tables; a second run goes on where one stopped
    python benchmarks/promises.py --data DIR --only abalone,adult
    python benchmarks/promises.py --table promises.jsonl        # only print the tables of results

The protocol, fixed before the first run:

* Every table below, `SPLITS` random splits each (`numpy.random.default_rng(split).permutation(n)`). At most `ROWS` rows
  are fitted, at most 3 000 others tested; tables with fewer rows are split into three quarters and a quarter.
* `mc.AutoRegressor(time=20)` and `mc.AutoClassifier(time=20)` with their defaults, on Polars frames as they are read.
* Intervals for new targets at 50 %, 80 % and 90 %: the share of test targets inside, for all test rows and for the
  thirds of test rows with the smallest, middle and largest predictions (of equal predictions, the first rows). Also the
  mean width over that of the constant interval that holds the same share of test targets around their median, and
  whether an end is below 0 although no target is.
* Probabilities: the log loss beside that of the class shares of the training rows, and the expected calibration error
  (ten bins of equal counts of the largest probability) beside its value for labels drawn from the probabilities
  themselves (mean of 200 draws), which is what chance alone gives.

Nothing here is used to choose anything in the library. Rows say "off" where a coverage deviates from its promise by
more than 2.5 standard errors, √(p(1 − p)/m + p(1 − p)/n) with m test rows and n fitted rows, over all splits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import mercer as mc
from measure import machine

ROWS, TESTED, SPLITS = 2000, 3000, 3
COVERAGES = (0.5, 0.8, 0.9)
REGRESSION: dict[str, tuple[str, tuple[str, ...]]] = {
    "abalone": ("rings", ()),
    "airfoil": ("sound_pressure", ()),
    "airquality": ("Ozone", ()),
    "bike_hour": ("cnt", ("casual", "registered", "instant")),
    "boston": ("MEDV", ()),
    "california_housing": ("medianHouseValue", ()),
    "cars": ("dist", ()),
    "concrete": ("strength", ()),
    "diabetes_efron": ("target", ()),
    "elevators": ("Goal", ()),
    "energy": ("Y1_heating", ("Y2_cooling",)),
    "fair": ("affairs", ()),
    "kin8nm": ("y", ()),
    "mcycle": ("accel", ()),
    "meuse": ("zinc", ("cadmium", "copper", "lead")),
    "power_plant_ccpp": ("PE", ()),
    "protein_casp": ("RMSD", ()),
    "quakes": ("mag", ("stations",)),
    "quine": ("Days", ()),
    "randhie": ("mdvis", ()),
    "wine_white": ("quality", ()),
    "yacht": ("resistance", ()),
}
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "adult": ("income", ("split",)),
    "banana": ("class", ()),
    "banknote": ("class", ()),
    "breast_cancer_wdbc": ("target", ()),
    "ionosphere": ("Class", ()),
    "mushrooms": ("class", ()),
    "pima": ("diabetes", ()),
    "satellite": ("classes", ()),
    "sms_spam": ("label", ()),
    "sonar": ("Class", ()),
    "spam": ("type", ()),
    "vehicle": ("Class", ()),
    "vowel": ("Class", ()),
    "wine_uci": ("target", ()),
}


def read(folder: Path, name: str, target: str, without: tuple[str, ...]) -> tuple[pl.DataFrame, np.ndarray]:
    path = folder / f"{name}.parquet"
    if path.exists():
        table = pl.read_parquet(path)
    else:
        table = pl.read_csv(folder / f"{name}.csv.gz", null_values=["NA", ""], infer_schema_length=None)
    table = table.drop_nulls(target).drop([column for column in without if column in table.columns])
    return table.drop(target), table[target].to_numpy()


def rows(n: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(split).permutation(n)
    fitted = ROWS if n >= 2 * ROWS else round(0.75 * n)
    return order[:fitted], order[fitted : fitted + TESTED]


def numbers(X: pl.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    model = mc.AutoRegressor(time=20).fit(X[train], y[train])
    y = y.astype(np.float64)
    centre, truth = np.median(y[train]), y[test]
    thirds = np.array_split(np.argsort(model.predict(X[test]), kind="stable"), 3)
    found: dict[str, Any] = {
        "fitted": len(train),
        "tested": len(test),
        "coverage": {},
        "width": {},
        "below zero": False,
    }
    for coverage in COVERAGES:
        low, high = model.predict_interval(X[test], coverage=coverage).T
        inside = (low <= truth) & (truth <= high)
        found["coverage"][str(coverage)] = [float(inside.mean()), *(float(inside[part].mean()) for part in thirds)]
        constant = 2.0 * np.quantile(np.abs(truth - centre), inside.mean())
        found["width"][str(coverage)] = float(np.mean(high - low) / constant) if constant > 0 else float("nan")
        found["below zero"] |= bool(y.min() >= 0 and (low < 0).any())
    return found


def calibration_error(top: np.ndarray, right: np.ndarray) -> float:
    bins = np.array_split(np.argsort(top, kind="stable"), 10)
    return float(sum(len(part) * abs(top[part].mean() - right[part].mean()) for part in bins if len(part)) / len(top))


def classes(X: pl.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    model = mc.AutoClassifier(time=20).fit(X[train], y[train])
    P, truth = model.predict_proba(X[test]), y[test]
    column = {label: j for j, label in enumerate(model.classes_)}
    at = np.array([column.get(label, -1) for label in truth])
    shares = np.array([(y[train] == label).mean() for label in model.classes_])
    known = at >= 0
    top, right = P.max(axis=1), P.argmax(axis=1) == at
    rng = np.random.default_rng(0)
    chance = [calibration_error(top, rng.random(len(top)) < top) for _ in range(200)]
    return {
        "fitted": len(train),
        "tested": len(test),
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(np.maximum(P[known, at[known]], 1e-15)).mean()),
        "baseline": float(-np.log(shares[at[known]]).mean()),
        "calibration error": calibration_error(top, right),
        "by chance": float(np.mean(chance)),
        "chance, 99 %": float(np.quantile(chance, 0.99)),
    }


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(path: Path) -> None:
    by: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results(path):
        by[result["data"]].append(result)
    print("\n| data | fitted | 50 % | 80 % | 90 % | 90 % by thirds of the prediction | width | below 0 | |")
    print("|---|---:|---:|---:|---:|---|---:|---|---|")
    for name in REGRESSION:
        if name in by:
            some, off = by[name], []
            mean = {c: np.mean([r["coverage"][str(c)] for r in some], axis=0) for c in COVERAGES}
            m, n = sum(r["tested"] for r in some), some[0]["fitted"]
            for c in COVERAGES:
                parts = (m, m / 3, m / 3, m / 3)
                errors = [np.sqrt(c * (1 - c) * (1 / part + 1 / n)) for part in parts]
                off += [c for value, error in zip(mean[c], errors) if abs(value - c) > 2.5 * error]
            shares = " | ".join(f"{100 * mean[c][0]:.0f}" for c in COVERAGES)
            thirds = " ".join(f"{100 * value:.0f}" for value in mean[0.9][1:])
            width = np.mean([r["width"]["0.9"] for r in some])
            below = "yes" if any(r["below zero"] for r in some) else ""
            print(f"| {name} | {n} | {shares} | {thirds} | {width:.2f} | {below} | {'off' if off else ''} |")
    print("\n| data | fitted | accuracy | log loss | baseline | calibration error | by chance | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for name in CLASSES:
        if name in by:
            some = by[name]
            mean_of = {
                key: np.mean([r[key] for r in some]) for key in some[0] if key not in ("data", "split", "seconds")
            }
            off = mean_of["calibration error"] > mean_of["chance, 99 %"]
            print(
                f"| {name} | {some[0]['fitted']} | {mean_of['accuracy']:.3f} | {mean_of['log loss']:.3f} | "
                f"{mean_of['baseline']:.3f} | {mean_of['calibration error']:.3f} | {mean_of['by chance']:.3f} | "
                f"{'off' if off else ''} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MERCER_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=Path("promises.jsonl"), help="where results are added as they come")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--splits", type=int, default=SPLITS, help="the first splits only")
    parser.add_argument("--table", type=Path, help="only print the tables of this file")
    options = parser.parse_args()
    if options.table:
        return table(options.table)
    machine()
    only = set(filter(None, options.only.split(",")))
    for split in range(options.splits):
        for kind, tasks in ((numbers, REGRESSION), (classes, CLASSES)):
            for name, (target, without) in tasks.items():
                done = {(r["data"], r["split"]) for r in results(options.out)}
                if (only and name not in only) or (name, split) in done:
                    continue
                X, y = read(options.data, name, target, without)
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result = kind(X, y, *rows(len(y), split))
                line = {"data": name, "split": split, "seconds": round(time.perf_counter() - start, 1), **result}
                with open(options.out, "a") as file:
                    file.write(json.dumps(line) + "\n")
                print(f"{name}, split {split}: {line['seconds']} s", file=sys.stderr, flush=True)
    table(options.out)


if __name__ == "__main__":
    main()
