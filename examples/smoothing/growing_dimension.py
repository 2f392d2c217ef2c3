"""
Local methods as the dimension grows
====================================

Nadaraya-Watson and locally weighted lines as the dimension grows: error and time (lecture 000).

The target is a smooth function of more and more columns, and each column matters less than the one before. The local
methods choose their widths by leave-one-out, kernel ridge its penalty. Local lines remove the bias at borders and on
slopes, at the price of d + 1 unknowns for every query, which are too many for the data at d = 8. As the dimension
grows, neighbourhoods become empty, and the errors of both local methods grow.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

DIMENSIONS = (1, 2, 3, 4, 6, 8)
ROWS = 500

# %%
# Each further column matters less than the one before.


def target(X: np.ndarray) -> np.ndarray:
    """A sum of sines with decreasing factors, one for each column."""
    return sum(np.sin(2 * X[:, k]) / (k + 1) for k in range(X.shape[1]))


# %%
# Five hundred rows for every number of columns; predictions are timed at 500 others.

methods = {
    "Nadaraya-Watson": lambda: mc.NadarayaWatsonRegressor(bandwidth="loo"),
    "local lines": lambda: mc.LocalRegression(degree=1, bandwidth="loo"),
    "kernel ridge (all points at once)": lambda: mc.KernelRidge(alpha="loo"),
}
errors = {name: [] for name in methods}
seconds = {name: [] for name in methods}
for d in DIMENSIONS:
    rng = np.random.default_rng(d)
    X, Z = rng.uniform(-1.5, 1.5, (ROWS, d)), rng.uniform(-1.5, 1.5, (ROWS, d))
    truth = target(Z)
    y = target(X) + 0.2 * rng.normal(size=ROWS)
    for name, make in methods.items():
        model = make().fit(X, y)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            predicted = model.predict(Z)
            times.append(time.perf_counter() - start)
        seconds[name].append(1e3 * min(times))
        errors[name].append(float(np.sqrt(np.mean((predicted - truth) ** 2)) / truth.std()))
print(f"{'d':>3} " + "".join(f"{name:>36}" for name in methods))
for row, d in enumerate(DIMENSIONS):
    print(f"{d:>3} " + "".join(f"{errors[n][row]:>22.3f} {seconds[n][row]:>10.2f} ms" for n in methods))

# %%
# Errors of the local methods grow with the dimension; kernel ridge uses all points at once.

with mc.plot.style() as colours:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for (name, error), color, marker in zip(errors.items(), (colours.blue, colours.red, colours.grey), "osD"):
        left.plot(DIMENSIONS, error, color=color, marker=marker, lw=2, label=name)
        right.plot(DIMENSIONS, seconds[name], color=color, marker=marker, lw=2)
    left.axhline(1, color=colours.ink, lw=0.8, ls=":")
    left.annotate(
        "no better than the mean", (DIMENSIONS[0], 1.0), xytext=(0, 4), textcoords="offset points", fontsize=8
    )
    left.set(xlabel="columns", ylabel="RMSE / standard deviation", ylim=(0, 1.15), title="error at new points")
    right.set(
        xlabel="columns", ylabel="milliseconds", yscale="log", title=f"time for {ROWS} predictions from {ROWS} rows"
    )
    left.legend(fontsize=9, loc="upper left", bbox_to_anchor=(0, 0.88))
plt.show()
