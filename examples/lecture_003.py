"""Every classifier and every method of descent of lecture 003 on real data: breast cancer, spam and census incomes.

The upper row shows how far the objective of logistic regression is above its minimum after how many seconds, one curve
per solver; the lower row shows the test error of each classifier. Breast cancer comes with scikit-learn. To add the
other two, run `python examples/lecture_003.py --data DIR` (or set MERCER_DATA) with spam.csv.gz (UCI's spambase, with
the class in the column `type`) and adult.parquet (UCI's Adult, with `income` and `split`) in DIR. The picture is
written to out/lecture_003.png.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, RED, BLUE, GREEN, GOLD, GREY = "#222222", "#c0392b", "#2471a3", "#1e8449", "#b9770e", "#999999"
SOLVERS = {"gradient": BLUE, "backtracking": GREEN, "lbfgs": GOLD, "newton-cg": INK, "newton": RED}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def breast_cancer() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    X, Z, y, z = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    scale = StandardScaler().fit(X)
    return scale.transform(X), scale.transform(Z), y, z


def spam(folder: Path) -> Split:
    import polars as pl

    table = pl.read_csv(folder / "spam.csv.gz")
    X, y = table.drop("type").to_numpy(), table["type"].to_numpy()
    X, Z, y, z = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    scale = FunctionTransformer(np.log1p)  # frequencies with long tails
    standard = StandardScaler().fit(scale.transform(X))
    return standard.transform(scale.transform(X)), standard.transform(scale.transform(Z)), y, z


def adult(folder: Path) -> Split:
    import polars as pl

    table = pl.read_parquet(folder / "adult.parquet")
    train = table["split"].to_numpy() == "train"
    y = table["income"].to_numpy()
    table = table.drop("split", "income")
    numbers = table.select(pl.selectors.numeric()).to_numpy()
    words = table.select(pl.selectors.string().fill_null("unknown")).to_numpy()
    scale, encode = StandardScaler().fit(numbers[train]), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    X = np.hstack([scale.transform(numbers), encode.fit(words[train]).transform(words)])
    return X[train], X[~train], y[train], y[~train]


def classifiers(n: int) -> dict[str, object]:
    """The classifiers by name; with many rows the kernel models use centres."""
    centres = {"n_centers": 800} if n > 5000 else {}
    ridge = {"solver": "nystrom", "n_centers": 800} if n > 5000 else {}
    return {
        "least squares": mc.LeastSquaresClassifier(alpha=1.0),
        "perceptron": mc.Perceptron(max_iter=5, variant="averaged"),
        "LDA": mc.LinearDiscriminant(),
        "logistic": mc.LogisticRegression(alpha=1.0),
        "kernel perceptron": mc.KernelPerceptron(max_iter=3, variant="averaged"),
        "kernel least squares": mc.LeastSquaresClassifier(mc.median_gaussian, alpha=0.3, **ridge),
        "kernel logistic": mc.KernelLogisticRegression(alpha=0.1, **centres),
    }


def descend(axis: plt.Axes, X: np.ndarray, y: np.ndarray) -> None:
    best = mc.LogisticRegression(alpha=1.0, tol=1e-11).fit(X, y).objective_
    for solver, color in SOLVERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # max_time stops some of them
            trace = mc.LogisticRegression(alpha=1.0, solver=solver, tol=1e-9, max_time=10.0).fit(X, y).trace_
        above = np.maximum((trace.objective - best) / best, 1e-15)
        axis.loglog(
            np.maximum(trace.seconds, 1e-3), above, "-", lw=1.6, color=color, label=f"{solver}: {len(trace) - 1}"
        )
        print(
            f"  {solver:>13}: {len(trace) - 1:5d} steps, {trace.seconds[-1]:6.2f} s, {above[-1]:.1e} above the minimum"
        )
    axis.set(xlabel="seconds", ylabel="relative distance to the minimum", ylim=(1e-13, 3))
    axis.legend(title="solver: steps", loc="lower left", framealpha=0, fontsize=8, title_fontsize=8)


def compare(axis: plt.Axes, X: np.ndarray, Z: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    errors = {}
    for name, model in classifiers(len(X)).items():
        began = time.perf_counter()
        errors[name] = 100 * (1 - model.fit(X, y).score(Z, z))
        print(f"  {name:>20}: {errors[name]:5.2f} % wrong, {time.perf_counter() - began:6.2f} s")
    bars = axis.barh(list(errors), list(errors.values()), color=[BLUE] * 4 + [RED] * 3, height=0.65)
    axis.bar_label(bars, fmt="%.1f", padding=3, fontsize=9)
    axis.invert_yaxis()
    axis.set(xlabel="test error in %", xlim=(0, 1.15 * max(errors.values())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default=os.environ.get("MERCER_DATA"), help="folder with spam.csv.gz and adult.parquet"
    )
    folder = parser.parse_args().data
    sets = {"Breast cancer": breast_cancer()}
    if folder:
        sets |= {"Spam": spam(Path(folder)), "Census incomes": adult(Path(folder))}
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
    figure, axes = plt.subplots(2, len(sets), figsize=(1 + 4.6 * len(sets), 8), layout="constrained", squeeze=False)
    for column, (name, (X, Z, y, z)) in enumerate(sets.items()):
        print(f"{name}: {len(X)} + {len(Z)} rows, {X.shape[1]} columns")
        axes[0, column].set_title(f"{name}: {len(X)} × {X.shape[1]}")
        descend(axes[0, column], X, y)
        compare(axes[1, column], X, Z, y, z)
    path = Path("out/lecture_003.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)
    print(f"The picture is in {path}")


if __name__ == "__main__":
    main()
