"""
The support vector machine as a smart nearest neighbour
=======================================================

k nearest neighbours, Nadaraya-Watson and the SVM on one data set: "the smart nearest neighbour" (lecture 001).

All three compare a new point with the training points. Nearest neighbours count the closest ones, Nadaraya-Watson
weights all of them by similarity, and the SVM weights a few (the support vectors) by similarity times a coefficient.
Fitted again to these few alone, the SVM is the same function.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

KERNEL = mc.Gaussian(0.45)

# %%
# Two arcs that interleave, so that a straight line cannot separate them.


def data(n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved arcs with noise."""
    rng = np.random.default_rng(1)
    t = rng.uniform(0, np.pi, n)
    y = np.repeat([-1.0, 1.0], n // 2)
    arc = np.column_stack([np.cos(t), np.sin(t)])
    arc[y > 0] = np.column_stack([1 - np.cos(t), 0.4 - np.sin(t)])[y > 0]
    return arc + rng.normal(0, 0.22, (n, 2)), y


# %%
# The machine, the same machine fitted again to its support vectors alone, and the two methods that keep all points.

X, y = data()
svm = mc.SVC(KERNEL, C=3.0, tol=1e-6).fit(X, y)
support = svm.support_
again = mc.SVC(KERNEL, C=3.0, tol=1e-6).fit(X[support], y[support])


def neighbours(Z: np.ndarray) -> np.ndarray:
    return y[mc.nearest(KERNEL, X, Z, 7)[1]].mean(axis=1)


def nadaraya_watson(Z: np.ndarray) -> np.ndarray:
    K = KERNEL(Z, X)
    return K @ y / K.sum(axis=1)


side = np.linspace(-1.9, 2.9, 220), np.linspace(-1.5, 1.9, 160)
plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
difference = np.abs(svm.decision_function(plane) - again.decision_function(plane)).max()
print(f"{len(support)} support vectors of {len(X)} points.")
print(f"Fitted again to these alone, the function changes by at most {difference:.1g}.")
panels = (
    (f"7 nearest neighbours: {len(X)} points kept", neighbours, np.arange(len(X))),
    (f"Nadaraya-Watson: {len(X)} points kept", nadaraya_watson, np.arange(len(X))),
    (f"SVM: {len(support)} support vectors kept", svm.decision_function, support),
    ("SVM on its support vectors alone", again.decision_function, support),
)

# %%
# Marked points are those that a method needs for its predictions.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.7), layout="constrained", sharex=True, sharey=True)
    for axis, (title, f, kept) in zip(axes, panels):
        height = f(plane).reshape(len(side[1]), len(side[0]))
        axis.contourf(*side, height, levels=[-1e9, 0, 1e9], colors=[colours.blue, colours.red], alpha=0.12)
        axis.contour(*side, height, levels=[0], colors=[colours.ink], linewidths=1.4)
        shown = np.isin(np.arange(len(X)), kept)
        if title.endswith("alone"):
            axis.plot(*X[~shown].T, ".", color=colours.grey, ms=2)
        else:
            axis.scatter(*X[~shown].T, s=10, color=np.where(y[~shown] > 0, colours.red, colours.blue), alpha=0.35, lw=0)
        axis.scatter(
            *X[shown].T, s=22, color=np.where(y[shown] > 0, colours.red, colours.blue), edgecolor=colours.ink, lw=0.6
        )
        axis.set(title=title, xlabel="x₁", aspect="equal")
    axes[0].set_ylabel("x₂")
plt.show()
