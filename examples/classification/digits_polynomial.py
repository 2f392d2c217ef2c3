"""
Digits classified with polynomials of their pixels
==================================================

Digits classified with (xᵀz + 1)^p on raw pixels (lecture 000): the error for each degree.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import mercer as mc

# %%
# Numbers of features are written as powers of ten.


def powers(count: int) -> str:
    """A count to one digit, such as 2·10³."""
    mantissa, exponent = f"{count:.0e}".split("e+")
    return f"{mantissa}·10{exponent.lstrip('0').translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


# %%
# One half of the digits trains a machine for each degree, the other half tests it. The number of features grows to
# billions; the kernel needs 64 products for every degree.

X, y = load_digits(return_X_y=True)
X = X / np.linalg.norm(X, axis=1, keepdims=True)
half = len(X) // 2
degrees = range(1, 9)
errors, features, best = [], [], None
for p in degrees:
    model = mc.SVC(mc.Polynomial(p, c=1.0), C=10.0).fit(X[:half], y[:half])
    wrong = model.predict(X[half:]) != y[half:]
    errors.append(wrong.mean())
    features.append(mc.Polynomial(p, c=1.0).features(64).dimension)
    print(f"degree {p}: {wrong.mean():.2%} wrong, {features[-1]:,} features, {len(model.support_)} support vectors")
    if best is None or wrong.mean() < min(errors[:-1]):
        best = p, np.flatnonzero(wrong), model.predict(X[half:])

# %%
# The error falls with the degree, ever more slowly. The digits on the right are wrong even at the best one.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(12, 4.2), layout="constrained")
    grid = figure.add_gridspec(2, 9)
    axis = figure.add_subplot(grid[:, :5])
    axis.plot(degrees, 100 * np.array(errors), "o-", color=colours.red)
    for p, error, count in zip(degrees, errors, features):
        axis.annotate(powers(count), (p, 100 * error), (0, 8), textcoords="offset points",
                      fontsize=7, color=colours.grey, ha="center")  # fmt: skip
    axis.set(title="(xᵀz + 1)^p on pixels: error by degree (grey: features)", xlabel="degree p", ylabel="% wrong")
    axis.set_ylim(0, 6)
    degree, wrong, predicted = best
    for i, row in enumerate(wrong[:8]):
        panel = figure.add_subplot(grid[i // 4, 5 + i % 4])
        panel.imshow(X[half + row].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"{y[half + row]} read as {predicted[row]}", fontsize=8)
        panel.set_xticks([])
        panel.set_yticks([])
    print(f"The panels on the right show digits that degree {degree} gets wrong.")
plt.show()
