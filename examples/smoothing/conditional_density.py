"""
The conditional density of a noisy sine
=======================================

The conditional density of a noisy sine: lecture 004's picture.

Gaussians on all points (x, t) form a joint density, and for every x a conditional density of t. Its mean is
Nadaraya-Watson, and its standard deviation gives a band. Left: the data, the one-σ contour of every component, the
mean, and a band of two standard deviations. Middle and right: the density itself, and its values at three places.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import mercer as mc

WIDTH, HEIGHT = 0.055, 0.16

# %%
# The mean of the conditional density is Nadaraya-Watson with the same width.

rng = np.random.default_rng(4)
X = rng.uniform(0, 1, (40, 1))
t = np.sin(2 * np.pi * X[:, 0]) + 0.2 * rng.normal(size=40)
model = mc.ConditionalDensity(bandwidth=WIDTH, target_bandwidth=HEIGHT).fit(X, t)
x = np.linspace(0, 1, 300)[:, None]
mean, std = model.predict(x, return_std=True)
smoother = mc.NadarayaWatsonRegressor(bandwidth=WIDTH).fit(X, t)
print(f"The mean differs from Nadaraya-Watson by at most {np.abs(mean - smoother.predict(x)).max():.1g}.")

# %%
# From left to right: components and mean, the density with its quantiles, and cuts through it.

with mc.plot.style() as colours:
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(14, 4.6), layout="constrained", width_ratios=(1.3, 1.3, 0.9)
    )
    left.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color=colours.red, alpha=0.15, lw=0, label="± 2 std")
    for (a,), b in zip(X, t):
        left.add_patch(Ellipse((a, b), 2 * WIDTH, 2 * HEIGHT, fill=False, ec=colours.blue, lw=0.5, alpha=0.6))
    left.plot(x, np.sin(2 * np.pi * x), color=colours.green, lw=1.5, ls="--", label="sin 2πx")
    left.plot(X, t, "o", color=colours.blue, ms=4, label="data")
    left.plot(x, mean, color=colours.red, lw=2, label="mean of t given x")
    left.set(xlim=(0, 1), ylim=(-1.9, 1.9), xlabel="x", ylabel="t", title="data, one-σ contours, mean and band")
    left.legend(fontsize=8)

    levels = np.linspace(-1.9, 1.9, 240)
    density = np.array([model.pdf(x, np.full(len(x), level)) for level in levels])
    image = middle.pcolormesh(x[:, 0], levels, density, cmap="Greys", vmin=0, shading="auto", rasterized=True)
    figure.colorbar(image, ax=middle, label="p(t | x)")
    for p, style in ((0.1, ":"), (0.5, "-"), (0.9, ":")):
        middle.plot(x, model.quantile(x, p), color=colours.red, lw=1.2, ls=style, label=f"{100 * p:.0f} % quantile")
    middle.set(xlim=(0, 1), ylim=(-1.9, 1.9), xlabel="x", title="the conditional density and its quantiles")
    middle.legend(fontsize=8)

    for at, color in zip((0.1, 0.5, 0.8), (colours.blue, colours.red, colours.green)):
        right.plot(
            levels, model.pdf(np.full((len(levels), 1), at), levels), color=color, lw=2, label=f"p(t | x = {at})"
        )
    right.set(xlabel="t", title="at three places")
    right.legend(fontsize=8)
plt.show()
