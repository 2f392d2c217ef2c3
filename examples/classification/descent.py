"""
Down the cross-entropy surface
==============================

Down the cross-entropy surface: gradient descent, Newton and L-BFGS from several starts (lecture 003).

The objective of logistic regression is convex: every start leads to the same minimum. Fixed steps zigzag along a
narrow valley; Newton's method uses the curvature, and needs one step for a quadratic. A curve for each method shows
how far the objective is above its minimum after each step.
"""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import mercer as mc

ALPHA = 0.1

# %%
# Data, the objective as a function of two weights, and a fit that records every step.


def data() -> tuple[np.ndarray, np.ndarray]:
    """Two columns on different scales, and two classes that overlap."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2)) * [1.0, 2.5]
    odds = 1 / (1 + np.exp(-(1.2 * X[:, 0] - 0.8 * X[:, 1])))
    return X, (rng.random(120) < odds).astype(int)


def surface(X: np.ndarray, y: np.ndarray, W1: np.ndarray, W2: np.ndarray) -> np.ndarray:
    """−log-likelihood + ½ alpha ‖w‖² on a grid of weights."""
    eta = W1[..., None] * X[:, 0] + W2[..., None] * X[:, 1]
    loss = np.logaddexp(0.0, eta) - y * eta
    return loss.sum(axis=-1) + 0.5 * ALPHA * (W1**2 + W2**2)


def fit(solver: str, X: np.ndarray, y: np.ndarray, start: list[float], **options: object) -> mc.LogisticRegression:
    model = mc.LogisticRegression(alpha=ALPHA, fit_intercept=False, solver=solver, start=start, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fixed steps may stop at max_iter
        return model.fit(X, y)


# %%
# Two columns on different scales make a narrow valley.

X, y = data()

# %%
# Paths from four starts over the contours of the objective; the star is its minimum.

starts = [[-2.5, 1.5], [3.5, 1.8], [3.2, -2.6], [-2.0, -2.6]]
with mc.plot.style() as colours:
    names = ("gradient", "backtracking", "lbfgs", "newton", "newton-cg")
    COLORS = dict(zip(names, (colours.blue, colours.green, colours.gold, colours.red, colours.ink)))
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    W1, W2 = np.meshgrid(np.linspace(-3, 4, 201), np.linspace(-3, 2.4, 201))
    J = surface(X, y, W1, W2)
    levels = J.min() + np.geomspace(0.5, J.max() - J.min(), 14)
    for axis, solvers, title in (
        (axes[0], ("gradient",), "Fixed steps of 1/L from four starts"),
        (axes[1], ("newton", "lbfgs"), "Newton and L-BFGS from the same starts"),
    ):
        axis.contour(W1, W2, J, levels=levels, colors=colours.grey, linewidths=0.6)
        for solver in solvers:
            for start in starts:
                path = fit(solver, X, y, start, max_iter=200).trace_.coef
                label = f"{solver}: {len(path) - 1} steps" if start is starts[0] else None
                axis.plot(*path.T, "o-", ms=3, lw=1.2, color=COLORS[solver], label=label)
        axis.plot(*fit("newton", X, y, [0.0, 0.0]).coef_[0], "*", color=colours.ink, ms=13, zorder=4)
        axis.set(title=title, xlabel="w₁", ylabel="w₂", xlim=(-3, 4), ylim=(-3, 2.4))
        axis.legend(loc="upper center", framealpha=1, edgecolor="white", fontsize=9)
plt.show()

# %%
# How far the objective is above its minimum after each step, and why there is only one minimum: the loss lies above all
# of its tangents.

with mc.plot.style() as colours:
    figure, (left, curve) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    best = fit("newton", X, y, starts[0], tol=1e-12).objective_
    for solver, color in COLORS.items():
        trace = fit(solver, X, y, starts[0], tol=1e-9, max_iter=400).trace_
        above = np.maximum(trace.objective - best, 1e-14)
        style = "x:" if solver == "newton-cg" else "o-"  # its curve lies on that of Newton
        left.semilogy(np.arange(len(above)), above, style, ms=4, color=color, label=solver)
        print(f"{solver:>13}: {len(trace) - 1:4d} steps, objective {trace.objective[-1]:.10f}")
    left.set(title="Objective above its minimum", xlabel="step", xlim=(-1, 60), ylim=(1e-13, None))
    left.legend(framealpha=1, edgecolor="white")

    squares = mc.GLM(alpha=ALPHA, fit_intercept=False, start=starts[0], solver="newton").fit(X, y)
    slope = np.linspace(-6, 6, 300)
    loss = np.logaddexp(0.0, -slope)
    curve.plot(slope, loss, color=colours.red, lw=2, label="−log σ(η), the loss of y = 1")
    for at in (-3.0, 0.0, 3.0):
        value, gradient = np.logaddexp(0.0, -at), -1 / (1 + np.exp(at))
        curve.plot(slope, value + gradient * (slope - at), color=colours.grey, lw=1)
        curve.plot(at, value, "o", color=colours.ink, ms=5)
    curve.set(
        title=f"A convex function lies above its tangents (Newton on a quadratic: {squares.n_iter_} step)",
        xlabel="η",
        ylim=(-1.0, 6.2),
    )
    curve.title.set_fontsize(10)
    curve.legend(framealpha=1, edgecolor="white")
    print(f"Newton on least squares: {squares.n_iter_} step")
plt.show()
