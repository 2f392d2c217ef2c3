"""
Fast to train, slow to predict
==============================

Memory-based methods are fast to train and slow to predict (lecture 004): a table of times.

A noisy function of two columns is learnt by methods that keep all rows and by methods that condense them. Widths and
penalties are fixed, so only the training itself is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

ROWS, QUERIES = 4000, 4000

# %%
# The shortest of several runs counts, since other programs only make a run longer.


def clocked(function: Callable[[], Any]) -> float:
    """The shortest of five runs, in milliseconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


# %%
# Methods that keep all rows, and methods that condense them, on the same data.

rng = np.random.default_rng(0)
X, Z = rng.uniform(-2, 2, (ROWS, 2)), rng.uniform(-2, 2, (QUERIES, 2))
truth = np.sin(3 * Z[:, 0]) * np.cos(2 * Z[:, 1])
y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + 0.2 * rng.normal(size=ROWS)
k = mc.Gaussian(0.5)
methods = {
    "nearest neighbours (5)": mc.KernelNeighborsRegressor(k, n_neighbors=5),
    "Nadaraya-Watson": mc.NadarayaWatsonRegressor(bandwidth=0.12),
    "local lines": mc.LocalRegression(degree=1, bandwidth=0.18),
    "SVR": mc.SVR(k, C=10.0, epsilon=0.3),
    "kernel ridge": mc.KernelRidge(k, alpha=1.0),
    "RBF network, 100 centres": mc.RBFNetwork(k, n_centers=100, alpha=1e-3),
}
print(f"{ROWS} training rows, {QUERIES} predictions, 2 columns; the shortest of five runs.\n")
print("| method | train (ms) | predict (ms) | predict : train | kept points | RMSE |")
print("| --- | ---: | ---: | ---: | ---: | ---: |")
times = {}
for name, model in methods.items():
    model.fit(X, y)
    model.predict(Z)
    train, predict = clocked(lambda m=model: m.fit(X, y)), clocked(lambda m=model: m.predict(Z))
    times[name] = train, predict
    error = np.sqrt(np.mean((model.predict(Z) - truth) ** 2))
    kept = len(model.support_) if hasattr(model, "support_") else 100 if "100" in name else ROWS
    print(f"| {name} | {train:.2f} | {predict:.2f} | {predict / train:.2g} | {kept} | {error:.3f} |")

# %%
# Below the line a method takes longer to train than to predict as many points.

with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    for (name, (train, predict)), color in zip(times.items(), colours.series):
        axis.plot(train, predict, "o", ms=9, color=color)
        axis.annotate(name, (train, predict), xytext=(8, 5), textcoords="offset points", fontsize=9)
    ends = min(map(min, times.values())) / 2, max(map(max, times.values())) * 4
    axis.plot(ends, ends, color=colours.grey, lw=1, ls=":")
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="training (ms)", ylabel="predicting (ms)")
plt.show()
