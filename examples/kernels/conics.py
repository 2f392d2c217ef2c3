"""
Conic sections from quadratic features
======================================

Ellipses, parabolas and hyperbolas from quadratic features and a linear classifier (lecture 002).

(xᵀz + 1)² has the features x₁², x₂², √2·x₁x₂, √2·x₁, √2·x₂ and 1. A linear classifier on them decides by the sign of
a quadratic, whose zeros form a conic section. Its kind depends on the data; the fitted weights show it by the sign of
4ac − b² in ax₁² + bx₁x₂ + cx₂² + ….
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

TRUTHS = {
    "ellipse": lambda u, v: 1.6 - u**2 - u * v - 1.5 * v**2,
    "parabola": lambda u, v: v - u**2 + 0.7,
    "hyperbola": lambda u, v: u**2 - 2 * v**2 - 0.5 * u - 0.4,
}

# %%
# The fitted weights as a quadratic, and the kind of its zeros.


def quadratic(model: mc.LogisticRegression) -> dict[str, float]:
    """The coefficients of the fitted quadratic by monomial, including the factors √2 of the features."""
    coefficients = {}
    for name, weight in zip(mc.Polynomial(2, c=1.0).features(2).names, np.ravel(model.coef_)):
        monomial = name.removeprefix("√2·").replace("x1", "x₂").replace("x0", "x₁")
        coefficients[monomial] = float(weight) * (2**0.5 if "√2" in name else 1.0)
    coefficients["1"] = coefficients.get("1", 0.0) + float(np.ravel(model.intercept_)[0])
    return coefficients


def section(q: dict[str, float]) -> str:
    """The kind of conic section; estimated weights are called a parabola if they are close to one."""
    a, b, c = q["x₁²"], q["x₁·x₂"], q["x₂²"]
    share = (4 * a * c - b**2) / (a**2 + b**2 + c**2)  # 2 for a circle, −2 for a right-angled hyperbola
    return "parabola" if abs(share) < 0.2 else "ellipse" if share > 0 else "hyperbola"


# %%
# Each boundary is drawn for 400 random points with some noise.

rng = np.random.default_rng(4)

# %%
# Solid lines are found by the classifier, dashed ones are the truth.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.9), layout="constrained")
    u, v = np.meshgrid(np.linspace(-2, 2, 300), np.linspace(-2, 2, 300))
    for axis, (name, truth) in zip(axes, TRUTHS.items()):
        X = rng.uniform(-2, 2, (400, 2))
        y = truth(*X.T) + 0.35 * rng.normal(size=400) > 0
        model = mc.LogisticRegression(features=mc.Polynomial(2, c=1.0), alpha=1e-2).fit(X, y)
        line = mc.LogisticRegression(alpha=1e-2).fit(X, y)
        q = quadratic(model)
        values = model.decision_function(np.column_stack([u.ravel(), v.ravel()])).reshape(u.shape)
        axis.contourf(u, v, values, levels=[-np.inf, 0, np.inf], colors=[colours.blue, colours.red], alpha=0.13)
        axis.contour(u, v, values, levels=[0.0], colors=colours.ink, linewidths=2)
        axis.contour(u, v, truth(u, v), levels=[0.0], colors=colours.ink, linewidths=1, linestyles="--")
        axis.scatter(*X.T, s=12, c=np.where(y, colours.red, colours.blue), edgecolor=colours.ink, lw=0.3)
        right, straight = model.score(X, y), line.score(X, y)
        axis.set(title=f"{section(q)}: {right:.0%} correct; a line: {straight:.0%}", xlabel="x₁", aspect="equal")
        size = max(abs(weight) for weight in q.values())
        shown = " ".join(f"{weight / size:+.2f} {monomial}" for monomial, weight in q.items())
        print(f"{name:>9}: fitted as {section(q)}, {right:.0%} correct (a line: {straight:.0%}); {shown} = 0")
    axes[0].set_ylabel("x₂")
    figure.suptitle("Logistic regression, linear in x₁², x₂², x₁x₂, x₁, x₂ (dashed: the truth)", fontsize=11)
    print("The same linear classifier finds a conic section of the right kind for each of the data sets.")
plt.show()
