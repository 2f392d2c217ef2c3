"""
Exact interpolation overfits
============================

Exact interpolation overfits: radial basis functions on every noisy point (lecture 004), and three remedies.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

NOISE = 0.3
WIDTH = mc.Gaussian(0.35)

# %%
# The true curve, and four networks: without and with a penalty, with few centres, and with a normalised basis.


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(x)


def models() -> dict[str, mc.RBFNetwork]:
    return {
        "a centre on every point, no penalty": mc.RBFNetwork(WIDTH, centers="all", alpha=0.0),
        "the same with a penalty (alpha by leave-one-out)": mc.RBFNetwork(WIDTH, centers="all", alpha="loo"),
        "eight centres by k-means, alpha = 0.01": mc.RBFNetwork(mc.Gaussian(0.8), n_centers=8, alpha=1e-2),
        "normalised basis on every point, ‖w‖² penalty": mc.RBFNetwork(
            WIDTH, centers="all", normalized=True, alpha="loo"
        ),
    }


# %%
# Thirty noisy points of a sine.

rng = np.random.default_rng(4)
X = np.linspace(0, 2 * np.pi, 30)[:, None] + rng.uniform(-0.07, 0.07, size=(30, 1))
y = truth(X[:, 0]) + NOISE * rng.normal(size=len(X))
x = np.linspace(0, 2 * np.pi, 800)[:, None]

# %%
# Without a penalty the curve passes through every point, noise included.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(2, 2, figsize=(11, 6.6), sharex=True, sharey=True, layout="constrained")
    print(f"{'model':<52}{'training error':>15}{'leave-one-out':>15}{'to the truth':>15}")
    for axis, (name, model) in zip(axes.flat, models().items()):
        model.fit(X, y)
        curve = model.predict(x)
        errors = [
            float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
            float(np.sqrt(np.mean((model.loo_predictions_ - y) ** 2))),
            float(np.sqrt(np.mean((curve - truth(x[:, 0])) ** 2))),
        ]
        print(f"{name:<52}" + "".join(f"{error:>15.3f}" for error in errors))
        axis.plot(x, truth(x), color="#2e8b57", lw=1.5, label="sin x")
        axis.plot(x, curve, color=colours.red, lw=1.8, label="the network")
        axis.plot(X, y, "o", color="#2c5f9e", ms=5, mfc="white", mew=1.4, label="data", zorder=3)
        if len(model.centers_) < len(X):
            axis.plot(
                model.centers_, np.full(len(model.centers_), -2.05), "^", color=colours.ink, ms=6, label="centres"
            )
            axis.legend(handles=axis.lines[-1:], loc="upper right", frameon=False)
        axis.set_title(name, fontsize=11)
        note = f"training error {errors[0]:.2f}, leave-one-out {errors[1]:.2f}, to the truth {errors[2]:.2f}"
        axis.text(0.02, 0.04 if len(model.centers_) == len(X) else 0.12, note, transform=axis.transAxes, fontsize=9)
        axis.set_ylim(-2.3, 2.3)
    axes[0, 0].legend(loc="upper right", frameon=False)
plt.show()
