"""Mixed tables: the kernel that `mc.TableKernel()` makes from the columns, compared with one-hot encoding and scaling.

    python benchmarks/tables.py --data DIR                # all data sets; or set MERCER_DATA
    python benchmarks/tables.py --data DIR --only adult
    python benchmarks/tables.py --data DIR --rows 3000    # rows to tune and fit on; the others are test rows
    python benchmarks/tables.py --data DIR --seed 1       # another choice of these rows
    python benchmarks/tables.py --data DIR --full         # adult with all 32 561 training rows of the original split

DIR contains adult.parquet, mushrooms.csv.gz, abalone.csv.gz, bike_hour.csv.gz and freMTPL2freq.parquet. Both sides
use the same rows and columns. Mercer fits a Polars frame; a pandas frame of the same rows must give the same kernel
and the same predictions. scikit-learn has a ColumnTransformer (numbers and dates are standardised, with missing
values imputed by the median; other columns are one-hot encoded), then SVC or SVR with gamma="scale", or
PoissonRegressor. Both sides tune C or alpha by three folds of the fitted rows (kernel ridge by leave-one-out). Errors
on test rows are the rate of misclassification, the root mean squared error in standard deviations of the target, or
the Poisson deviance of claims per year, weighted by exposure.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import mercer as mc
from measure import machine

MARGIN = 0.003
"""Smaller differences of errors are noise of the test rows."""


class Task(NamedTuple):
    """A table: its file, target, the kind of the target, the number of rows to fit, and columns to leave out."""

    file: str
    target: str
    kind: str
    rows: int
    without: tuple[str, ...] = ()


TASKS = {
    "adult": Task("adult.parquet", "income", "classes", 3000, ("split",)),
    "mushrooms": Task("mushrooms.csv.gz", "class", "classes", 300),
    "abalone": Task("abalone.csv.gz", "rings", "numbers", 2000),
    "bike": Task("bike_hour.csv.gz", "cnt", "numbers", 2000, ("casual", "registered", "instant")),
    "freMTPL2": Task("freMTPL2freq.parquet", "ClaimNb", "counts", 30000, ("IDpol", "Exposure")),
}


class Data(NamedTuple):
    """A table, its target, the exposure in years, and the rows to fit and to test."""

    table: pl.DataFrame
    y: Any
    years: Any
    fit: Any
    test: Any


def load(directory: Path, task: Task, rows: int | None, seed: int, *, full: bool) -> Data:
    path = directory / task.file
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, try_parse_dates=True)
    order = np.random.default_rng(seed).permutation(table.height)
    rows = rows or task.rows
    if "split" in table.columns:
        later = (table["split"] == "test").to_numpy()[order]
        fit, test = order[~later][: None if full else rows], order[later]
    else:
        fit, test = order[:rows], order[rows : rows + 100_000]
    y, years = table[task.target].to_numpy(), np.ones(table.height)
    if task.kind == "numbers":
        y = np.log1p(y) if task.target == "cnt" else y.astype(float)
        y = (y - y.mean()) / y.std()
    elif task.kind == "counts":  # at most four claims and one year, as in scikit-learn's example
        y, years = np.minimum(y, 4.0), np.minimum(table["Exposure"].to_numpy(), 1.0)
    return Data(table.drop(task.target, *task.without), y, years, fit, test)


def to_pandas(table: pl.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(table.to_dict(as_series=False))


def encoder(frame: pd.DataFrame) -> Any:
    numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    words = [c for c in frame if c not in numbers]
    filled = SimpleImputer(strategy="constant", fill_value="?", missing_values=np.nan)
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (make_pipeline(filled, OneHotEncoder(handle_unknown="ignore")), words),
    )


class Side(NamedTuple):
    """A model, its frame, and the parameter to tune with its values."""

    model: Any
    frame: Any
    parameter: str = ""
    grid: tuple[float, ...] = ()


def sides(kind: str, data: Data) -> dict[str, Side]:
    C = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    rule, table, frame = (
        mc.TableKernel(),
        data.table,
        to_pandas(data.table.with_columns(pl.selectors.date().to_physical())),
    )
    one_hot = encoder(frame)
    match kind:
        case "classes":
            peer = Side(make_pipeline(one_hot, SVC()), frame, "svc__C", C)
            return {"mercer": Side(mc.SVC(rule), table, "C", C), "scikit-learn": peer}
        case "numbers":
            peer = Side(make_pipeline(one_hot, SVR()), frame, "svr__C", C)
            return {
                "mercer": Side(mc.KernelRidge(rule, alpha="loo", fit_intercept=True), table),
                "scikit-learn": peer,
            }
    peer = Side(make_pipeline(one_hot, PoissonRegressor(max_iter=1000)), frame, "poissonregressor__alpha",
                (1e-5, 1e-4, 1e-3, 1e-2, 1e-1))  # fmt: skip
    glm = mc.KernelGLM(rule, family="poisson", n_centers=400)
    return {"mercer": Side(glm, table, "alpha", (0.1, 0.3, 1.0, 3.0, 10.0)), "scikit-learn": peer}


def learn(side: Side, data: Data, rows: Any, value: float | None) -> Any:
    """The model, fitted to some rows."""
    model = clone(side.model)
    if value is not None:
        model.set_params(**{side.parameter: value})
    X, y, years = take(side.frame, rows), data.y[rows], data.years[rows]
    if isinstance(model, mc.KernelGLM):
        return model.fit(X, y, exposure=years)
    if side.parameter.startswith("poisson"):
        return model.fit(X, y / years, poissonregressor__sample_weight=years)
    return model.fit(X, y)


def take(frame: Any, rows: Any) -> Any:
    return frame.iloc[rows] if isinstance(frame, pd.DataFrame) else frame[rows]


def answers(model: Any, frame: Any, rows: Any) -> Any:
    return np.concatenate([model.predict(take(frame, rows[i : i + 5000])) for i in range(0, len(rows), 5000)])


def error(kind: str, predicted: Any, data: Data, rows: Any) -> float:
    y, years = data.y[rows], data.years[rows]
    if kind == "classes":
        return float(np.mean(predicted != y))
    if kind == "numbers":
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return float(mean_poisson_deviance(y / years, predicted, sample_weight=years))


def chosen(kind: str, side: Side, data: Data, rows: Any) -> float | None:
    """The value of the parameter with the smallest error in three folds of some rows."""

    def left(value: float) -> float:
        folds = [(rows[a], rows[b]) for a, b in KFold(3).split(rows)]
        return sum(error(kind, answers(learn(side, data, a, value), side.frame, b), data, b) for a, b in folds)

    return min(side.grid, key=left) if side.grid else None


def run(name: str, data: Data, *, full: bool) -> dict[str, float]:
    kind = TASKS[name].kind
    print(f"{name}: {len(data.fit)} rows to fit, {len(data.test)} to test, {data.table.width} columns", flush=True)
    errors = {}
    for who, side in sides(kind, data).items():
        start = time.perf_counter()
        value = chosen(kind, side, data, data.fit[:3000] if full else data.fit)
        model = learn(side, data, data.fit, value)
        seconds = time.perf_counter() - start
        predicted = answers(model, side.frame, data.test)
        errors[who] = error(kind, predicted, data, data.test)
        parameter = "" if value is None else f"{side.parameter} = {value:g}"
        print(f"  {who:14} error {errors[who]:.4f}   tuned and fitted in {seconds:6.1f} s   {parameter}", flush=True)
        if who == "mercer":
            some = to_pandas(data.table[data.fit])
            assert mc.table_kernel(some) == model.kernel_, "pandas gives another kernel"
            other = model.predict(to_pandas(data.table[data.test[:1000]]))
            assert np.array_equal(other, model.predict(data.table[data.test[:1000]])), "pandas gives other predictions"
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCER_DATA"), help="folder with the tables")
    parser.add_argument("--only", choices=list(TASKS), help="one table")
    parser.add_argument("--rows", type=int, help="number of rows to tune and fit on")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of rows")
    parser.add_argument("--full", action="store_true", help="adult with all of its training rows")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder with the data: use --data DIR or set MERCER_DATA")
    machine()
    errors = {}
    for name in [options.only] if options.only else ["adult"] if options.full else TASKS:
        data = load(Path(options.data), TASKS[name], options.rows, options.seed, full=options.full)
        errors[name] = run(name, data, full=options.full)
    print(f"\n{'table':12}{'mercer':>10}{'one-hot':>10}")
    for name, both in errors.items():
        print(f"{name:12}{both['mercer']:10.4f}{both['scikit-learn']:10.4f}")
    lost = [name for name, both in errors.items() if both["mercer"] > both["scikit-learn"] + MARGIN]
    print("target: at least as good as one-hot + scikit-learn:", f"MISSED on {lost}" if lost else "met")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
