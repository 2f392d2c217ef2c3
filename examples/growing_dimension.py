"""Nadaraya-Watson against locally weighted lines as the dimension grows: error and time (lecture 000).

A smooth function of more and more columns, of which the later ones matter less and less; every method
chooses its widths by leave-one-out. Local lines mend the bias at borders and slopes, at the price of d + 1 unknowns for
every query; with the dimension neighbourhoods empty and both approach the mean of all targets.

Run `python examples/growing_dimension.py` (about a minute); the picture is written to out/growing_dimension.png.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib
import numpy as np

import mercer as mc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK, RED, BLUE, GREY = "#222222", "#c0392b", "#2471a3", "#7f8c8d"
DIMENSIONS = (1, 2, 3, 4, 6, 8)
ROWS = 1500


def target(X: np.ndarray) -> np.ndarray:
    """Every column counts, the later ones less."""
    return sum(np.sin(2 * X[:, k]) / (k + 1) for k in range(X.shape[1]))


def main() -> None:
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK})
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
                found = model.predict(Z)
                times.append(time.perf_counter() - start)
            seconds[name].append(1e3 * min(times))
            errors[name].append(float(np.sqrt(np.mean((found - truth) ** 2)) / truth.std()))
    print(f"{'d':>3} " + "".join(f"{name:>36}" for name in methods))
    for row, d in enumerate(DIMENSIONS):
        print(f"{d:>3} " + "".join(f"{errors[n][row]:>22.3f} {seconds[n][row]:>10.2f} ms" for n in methods))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
    for (name, error), color, marker in zip(errors.items(), (BLUE, RED, GREY), "osD"):
        left.plot(DIMENSIONS, error, color=color, marker=marker, lw=2, label=name)
        right.plot(DIMENSIONS, seconds[name], color=color, marker=marker, lw=2)
    left.axhline(1, color=INK, lw=0.8, ls=":")
    left.annotate("as bad as the mean", (DIMENSIONS[0], 1.0), xytext=(0, 4), textcoords="offset points", fontsize=8)
    left.set(
        xlabel="columns", ylabel="error, in deviations of the function", ylim=(0, 1.15), title="error at new points"
    )
    right.set(
        xlabel="columns", ylabel="milliseconds", yscale="log", title=f"time for {ROWS} predictions from {ROWS} rows"
    )
    left.legend(fontsize=9, loc="upper left", bbox_to_anchor=(0, 0.88))
    path = Path("out/growing_dimension.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"The picture: {path}")


if __name__ == "__main__":
    main()
