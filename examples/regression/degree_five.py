"""
From a line to a polynomial of degree five
==========================================

From a line through the origin to a polynomial of degree five: one regression on different features (lecture 000).

The primal form solves for five weights, the dual form for one coefficient per point, and both give the same curve.
The leave-one-out error, in closed form, shows which degree is right without further data.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

DEGREES = range(1, 13)

# %%
# The features, and the true curve.


def powers(degree: int):
    """x → (x, x², …, xᵖ)."""
    return lambda X: np.asarray(X) ** np.arange(1, degree + 1)


def truth(x: np.ndarray) -> np.ndarray:
    """A polynomial of degree five through the origin."""
    return 2.5 * x - 9.0 * x**3 + 7.5 * x**5


# %%
# Primal and dual form of the same regression, and the leave-one-out error of every degree.

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(-1, 1, size=(30, 1)), axis=0)
t = truth(X[:, 0]) + 0.12 * rng.normal(size=30)
x = np.linspace(-1, 1, 400)[:, None]

line = mc.Ridge(alpha=0.0, fit_intercept=False).fit(X, t)
primal = mc.Ridge(powers(5), alpha=0.0, fit_intercept=False).fit(X, t)
dual = mc.Ridge(powers(5), alpha=0.0, fit_intercept=False, form="dual").fit(X, t)
print("weights of x, …, x⁵:", primal.coef_.round(2))
print(f"largest difference between primal and dual on the curve: {abs(primal.predict(x) - dual.predict(x)).max():.1e}")

errors = {"on the points it was fitted to": [], "on the point left out": []}
for degree in DEGREES:
    model = mc.Ridge(powers(degree), alpha=0.0, fit_intercept=False).fit(X, t)
    errors["on the points it was fitted to"].append(np.sqrt(np.mean((model.predict(X) - t) ** 2)))
    errors["on the point left out"].append(np.sqrt(np.mean((model.loo_predictions_ - t) ** 2)))

# %%
# The error on the fitted points always falls with the degree; the leave-one-out error is smallest at the true one.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.1), layout="constrained")
    for axis, title, model in zip(axes, ("φ(x) = x, a line through 0", "φ(x) = (x, x², …, x⁵)"), (line, primal)):
        low, high = model.predict_interval(x, 0.9).T
        axis.fill_between(x[:, 0], low, high, color=colours.red, alpha=0.15, lw=0, label="90 % of new points")
        axis.plot(x, truth(x), color=colours.grey, lw=1.2, ls="--", label="the truth")
        axis.plot(x, model.predict(x), color=colours.red, lw=2, label="wᵀφ(x)")
        axis.plot(X, t, "o", color=colours.blue, ms=4.5, label="data")
        axis.set(title=title, xlabel="x", ylabel="t", ylim=(-1.6, 1.6), xticks=[-1, -0.5, 0, 0.5, 1])
    axes[0].legend(loc="lower right", fontsize=9)
    for (name, values), color in zip(errors.items(), (colours.grey, colours.red)):
        axes[2].semilogy(DEGREES, values, "o-", color=color, label=name)
    axes[2].axhline(0.12, color=colours.blue, lw=1, ls=":", label="the noise")
    axes[2].set(
        title="which degree?", xlabel="degree", ylabel="root mean squared error", xticks=list(DEGREES), ylim=(0.07, 2)
    )
    axes[2].set_yticks([0.1, 0.2, 0.4, 0.8], ["0.1", "0.2", "0.4", "0.8"])
    axes[2].minorticks_off()
    axes[2].legend(loc="upper left", fontsize=9)
plt.show()
