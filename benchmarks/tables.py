"""Mixed tables: the kernel that `mc.TableKernel()` makes of the columns, beside one-hot encoding and standardising.

    python benchmarks/tables.py --data DIR                # all data sets; or set MERCER_DATA
    python benchmarks/tables.py --data DIR --only adult
    python benchmarks/tables.py --data DIR --rows 3000    # rows to tune and fit on; the others are test rows
    python benchmarks/tables.py --data DIR --full         # adult with all 32 561 training rows of the original split

DIR holds adult.parquet, abalone.csv.gz, mushrooms.csv.gz, bike_hour.csv.gz, sms_spam.csv.gz and concrete.csv.gz. Both
sides see the same rows. scikit-learn: ColumnTransformer (numbers standardised, missing ones imputed by the median, the
rest one-hot, texts as TF-IDF of characters), then SVC or SVR with gamma="scale". Classifiers tune C, regressors C or
alpha, by three folds of the fitted rows (alpha by leave-one-out). Test figures are the share of wrong classes, or the
root of the mean squared error in units of the target's standard deviation.
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
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import mercer as mc
from measure import machine

MARGIN = 0.005
"""Of the error: differences below are noise of 16 281 test rows."""
GRID = [0.3, 1.0, 3.0, 10.0, 30.0, 100.0]


class Task(NamedTuple):
    """A table: its file, target, what to leave out, whether the target is a class, and the columns of text."""

    file: str
    target: str
    without: tuple[str, ...] = ()
    classes: bool = False
    text: str | None = None
    log: bool = False


TASKS = {
    "adult": Task("adult.parquet", "income", ("split",), classes=True),
    "mushrooms": Task("mushrooms.csv.gz", "class", classes=True),
    "sms": Task("sms_spam.csv.gz", "label", classes=True, text="text"),
    "abalone": Task("abalone.csv.gz", "rings"),
    "bike": Task("bike_hour.csv.gz", "cnt", ("casual", "registered", "dteday"), log=True),
    "concrete": Task("concrete.csv.gz", "strength"),
}
ROWS = {"mushrooms": 300, "sms": 1500, "concrete": 700}


def load(directory: Path, task: Task) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    path = directory / task.file
    frame = pd.DataFrame(pl.read_parquet(path).to_dict(as_series=False)) if path.suffix == ".parquet" else None
    frame = pd.read_csv(path) if frame is None else frame
    test = (frame["split"] == "test").to_numpy() if "split" in frame else None
    y = frame.pop(task.target)
    frame = frame.drop(columns=list(task.without))
    if task.classes:
        return frame, y.astype(str).to_numpy(), test
    values = y.to_numpy(dtype=float)
    values = np.log1p(values) if task.log else values
    return frame, (values - values.mean()) / values.std(), test


def encoder(frame: pd.DataFrame, text: str | None) -> Any:
    numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    words = [c for c in frame if c not in numbers and c != text]
    steps: list[Any] = [
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="?", missing_values=np.nan),
                       OneHotEncoder(handle_unknown="ignore")), words),
    ]  # fmt: skip
    if text:
        steps.append((TfidfVectorizer(analyzer="char", ngram_range=(2, 4)), text))
    return make_column_transformer(*[s for s in steps if len(s[1])])


def competitors(task: Task, frame: pd.DataFrame) -> dict[str, Any]:
    C = {"C": GRID}
    if task.classes:
        return {
            "mercer": GridSearchCV(mc.SVC(mc.TableKernel()), C, cv=3),
            "scikit-learn": GridSearchCV(
                make_pipeline(encoder(frame, task.text), SVC()), {"svc__C": GRID}, cv=3
            ),
        }  # fmt: skip
    return {
        "mercer": mc.KernelRidge(mc.TableKernel(), alpha="loo", fit_intercept=True),
        "mercer, tuned": mc.KernelRidge(mc.TableKernel(), alpha=0.05, fit_intercept=True, tune="loo"),
        "scikit-learn": GridSearchCV(make_pipeline(encoder(frame, task.text), SVR()), {"svr__C": GRID}, cv=3),
    }


def error(model: Any, X: pd.DataFrame, y: np.ndarray, classes: bool) -> float:
    found = np.concatenate([model.predict(X[i : i + 5000]) for i in range(0, len(X), 5000)])
    return float(np.mean(found != y)) if classes else float(np.sqrt(np.mean((found - y) ** 2)))


def run(name: str, directory: Path, rows: int | None, *, full: bool) -> dict[str, float]:
    task = TASKS[name]
    frame, y, test = load(directory, task)
    order = np.random.default_rng(0).permutation(len(y))
    if test is not None:
        order = np.concatenate([order[~test[order]], order[test[order]]])
        size = int((~test).sum()) if full else min(rows or 3000, int((~test).sum()))
        fitted, held = order[:size], order[int((~test).sum()) :]
    else:
        size = min(rows or ROWS.get(name, 2000), len(y) // 2 if not ROWS.get(name) else len(y))
        fitted, held = order[:size], order[size : size + 8000]
    errors = {}
    print(f"{name}: {len(fitted)} rows to fit, {len(held)} to test, {frame.shape[1]} columns", flush=True)
    for who, model in competitors(task, frame).items():
        if full and isinstance(model, GridSearchCV):  # C as found on fewer rows
            some = fitted[:3000]
            chosen = model.fit(frame.iloc[some], y[some]).best_params_
            model = model.estimator.set_params(**chosen)
        start = time.perf_counter()
        model.fit(frame.iloc[fitted], y[fitted])
        seconds = time.perf_counter() - start
        errors[who] = error(model, frame.iloc[held], y[held], task.classes)
        chosen = getattr(model, "best_params_", "")
        print(f"  {who:14} error {errors[who]:.4f}   fitted in {seconds:6.1f} s   {chosen}", flush=True)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCER_DATA"))
    parser.add_argument("--only", choices=list(TASKS))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--full", action="store_true", help="adult with all of its training rows")
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data DIR, or set MERCER_DATA")
    machine()
    lost = []
    for name in [options.only] if options.only else ["adult"] if options.full else TASKS:
        errors = run(name, Path(options.data), options.rows, full=options.full)
        if min(v for k, v in errors.items() if k != "scikit-learn") > errors["scikit-learn"] + MARGIN:
            lost.append(name)
    print("\ntarget: at least as good as one-hot + scikit-learn:", f"MISSED on {lost}" if lost else "met")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
