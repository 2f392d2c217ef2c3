"""
From under- to overfitting
==========================

From under- to overfitting by degree and by width, judged by the closed-form leave-one-out error (lecture 002).
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

RNG = np.random.default_rng(3)
X = np.linspace(0, 1, 50)[:, None]
Z = np.linspace(0, 1, 500)[:, None]

# %%
# The true curve, and the two families of models: polynomials by degree, Gaussians by width.


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x[:, 0]) + 0.5 * np.cos(5 * np.pi * x[:, 0])


Y = truth(X) + RNG.normal(0, 0.3, len(X))


def degree(p: int) -> mc.KernelRidge:
    """A polynomial of degree p with a small penalty; [0, 1] is mapped to [−1, 1] first."""
    return mc.KernelRidge(mc.Polynomial(p, c=1.0).after(lambda x: 2 * x - 1), alpha=1e-3)


def width(sigma: float) -> mc.KernelRidge:
    """A Gaussian of width σ: a small one follows every point, a large one is flat (lecture 002's γ is σ²)."""
    return mc.KernelRidge(mc.Gaussian(sigma), alpha=1e-2)


# %%
# Left the errors along each family, right its two extremes and the choice between them.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 7.4), layout="constrained")
    families = (
        ("degree", degree, np.arange(1, 26), (1, 25)),
        ("width σ", width, np.geomspace(0.004, 2.0, 40), (2.0, 0.004)),
    )
    for row, (name, model, values, (under, over)) in enumerate(families):
        fits = [model(v.item()).fit(X, Y) for v in values]
        left_out = np.array([np.mean((f.loo_predictions_ - Y) ** 2) for f in fits])
        training = np.array([np.mean((f.predict(X) - Y) ** 2) for f in fits])
        fresh = np.array([np.mean((f.predict(Z) - truth(Z)) ** 2) + 0.3**2 for f in fits])
        best = values[np.argmin(left_out)].item()

        error, curves = axes[row, 0], axes[row, 1]
        error.plot(values, training, color=colours.blue, lw=1.5, label="training error")
        error.plot(values, left_out, color=colours.red, lw=2, label="leave-one-out, in closed form")
        error.plot(values, fresh, color=colours.ink, lw=1.2, ls="--", label="error on new data")
        error.axvline(best, color=colours.grey, lw=1)
        error.set(title=f"Error by {name}", xlabel=name, ylabel="mean squared error", yscale="log")
        error.set(ylim=(0.01, 2.5))
        error.legend(framealpha=1, edgecolor="white", loc="lower left")
        if row:
            error.set(xscale="log")
            error.invert_xaxis()

        curves.plot(X, Y, "o", color=colours.ink, ms=3.5)
        curves.plot(Z, truth(Z), color=colours.ink, lw=1.2, ls="--", label="truth")
        for value, color, word in (
            (under, colours.blue, "underfits"),
            (best, colours.green, "best"),
            (over, colours.red, "overfits"),
        ):
            curves.plot(Z, model(value).fit(X, Y).predict(Z), color=color, lw=1.8, label=f"{name} {value:.3g}: {word}")
        curves.set(title=f"Three fits by {name}", xlabel="x", ylabel="y", ylim=(-2.6, 2.6))
        curves.legend(frameon=False, fontsize=8, ncols=2, loc="lower left")
        print(f"best {name} by leave-one-out: {best:.3g}")
plt.show()
