"""
Every classifier of lecture 003 on real data
============================================

The left picture shows how far the objective of logistic regression is above its minimum after how many seconds, one
curve per solver. The right one shows the test error of each classifier, on the breast cancer data of scikit-learn.
"""

from __future__ import annotations

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import mercer as mc

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

# %%
# The data, and the classifiers of the lecture by name.


def breast_cancer() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    X, Z, y, z = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    scale = StandardScaler().fit(X)
    return scale.transform(X), scale.transform(Z), y, z


def classifiers() -> dict[str, object]:
    """The classifiers by name."""
    return {
        "least squares": mc.LeastSquaresClassifier(alpha=1.0),
        "perceptron": mc.Perceptron(max_iter=5, variant="averaged"),
        "LDA": mc.LinearDiscriminant(),
        "logistic": mc.LogisticRegression(alpha=1.0),
        "kernel perceptron": mc.KernelPerceptron(max_iter=3, variant="averaged"),
        "kernel least squares": mc.LeastSquaresClassifier(mc.median_gaussian, alpha=0.3),
        "kernel logistic": mc.KernelLogisticRegression(alpha=0.1),
    }


# %%
# One function for each of the two pictures: the descent of every solver, and the test error of every classifier.


def descend(axis: plt.Axes, X: np.ndarray, y: np.ndarray) -> None:
    best = mc.LogisticRegression(alpha=1.0, tol=1e-11).fit(X, y).objective_
    for solver, color in SOLVERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # max_time stops some of them
            trace = mc.LogisticRegression(alpha=1.0, solver=solver, tol=1e-9, max_time=5.0).fit(X, y).trace_
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
    for name, model in classifiers().items():
        began = time.perf_counter()
        errors[name] = 100 * (1 - model.fit(X, y).score(Z, z))
        print(f"  {name:>20}: {errors[name]:5.2f} % wrong, {time.perf_counter() - began:6.2f} s")
    bars = axis.barh(list(errors), list(errors.values()), color=[colours.blue] * 4 + [colours.red] * 3, height=0.65)
    axis.bar_label(bars, fmt="%.1f", padding=3, fontsize=9)
    axis.invert_yaxis()
    axis.set(xlabel="test error in %", xlim=(0, 1.15 * max(errors.values())))


# %%
# Two thirds of the patients are for the fits, one third for the test.

X, Z, y, z = breast_cancer()
print(f"{len(X)} + {len(Z)} rows, {X.shape[1]} columns")
with mc.plot.style() as colours:
    series = (colours.blue, colours.green, colours.gold, colours.ink, colours.red)
    SOLVERS = dict(zip(("gradient", "backtracking", "lbfgs", "newton-cg", "newton"), series))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    descend(left, X, y)
    compare(right, X, Z, y, z)
plt.show()
