"""
Far points pull at least squares
================================

Far points pull at the boundary of a least-squares classifier, but not of logistic regression (lecture 003).

Points far on the correct side, whose class is beyond doubt, rotate the line of least squares. If three classes lie in a
row, least squares masks the middle one: its output is hardly ever the largest. Logistic regression has neither
problem.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import mercer as mc

# %%
# Two classes with or without far points, three classes in a row, and the regions of a classifier.


def two(rng: np.random.Generator, far: bool) -> tuple[np.ndarray, np.ndarray]:
    X = np.vstack([rng.normal((-1.2, 0.8), 0.7, (40, 2)), rng.normal((1.2, -0.2), 0.7, (40, 2))])
    y = np.repeat([0, 1], 40)
    if far:
        X, y = np.vstack([X, rng.normal((7.0, -5.0), 0.5, (12, 2))]), np.append(y, np.ones(12, dtype=int))
    return X, y


def three(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = np.vstack([rng.normal((c, c), 0.5, (40, 2)) for c in (-3.0, 0.0, 3.0)])
    return X, np.repeat([0, 1, 2], 40)


def regions(axis: plt.Axes, model: object, X: np.ndarray, y: np.ndarray, title: str) -> None:
    low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
    G = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    label = model.fit(X, y).predict(np.column_stack([g.ravel() for g in G])).reshape(300, 300)
    k = len(np.unique(y))
    axis.pcolormesh(*G, label, cmap=ListedColormap(COLORS[:k].tolist()), vmin=0, vmax=k - 1, alpha=0.18, shading="auto")
    axis.scatter(*X.T, s=16, color=COLORS[y], edgecolor=colours.ink, lw=0.4)
    wrong = int((model.predict(X) != y).sum())
    axis.set(xlabel="x₁", ylabel="x₂")
    axis.set_title(f"{title}: {wrong} of {len(y)} wrong", fontsize=10)
    print(f"{title}: {wrong} of {len(y)} wrong")


# %%
# Above least squares, below logistic regression, on the same points.

with mc.plot.style() as colours:
    COLORS = np.array([colours.blue, colours.red, colours.green])
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    plain, far = (two(np.random.default_rng(5), far=more) for more in (False, True))
    row = three(np.random.default_rng(6))
    for line, name in enumerate(("Least squares", "Logistic regression")):
        for column, (X, y), what in ((0, plain, ""), (1, far, ", far points"), (2, row, ", three in a row")):
            model = mc.LeastSquaresClassifier(alpha=1e-6) if line == 0 else mc.LogisticRegression(alpha=1e-2)
            regions(axes[line, column], model, X, y, f"{name}{what}")
plt.show()
