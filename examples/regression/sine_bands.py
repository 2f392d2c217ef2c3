"""
Bayesian regression of a noisy sine
===================================

Bayesian regression of a noisy sine: the posterior after 1, 2, 4 and 25 points (lecture 004).

The model has nine Gaussian basis functions, and a constant with a flat prior. Above: the mean, and a band of two
standard deviations of new targets. In the middle: functions drawn from the posterior. Below: the equivalent kernel,
by which the mean is Σ k(x, xₙ) tₙ. These weights sum to one because the prior of the constant is flat.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

CENTRES = np.linspace(0, 1, 9)

# %%
# Nine bumps are the features of the model.


def bumps(X: np.ndarray) -> np.ndarray:
    """Gaussians around nine centres."""
    return np.exp(-((np.asarray(X) - CENTRES) ** 2) / (2 * 0.12**2))


# %%
# Twenty-five noisy values of a sine, of which the model sees more and more.

rng = np.random.default_rng(7)
X = rng.uniform(0, 1, size=(25, 1))
t = np.sin(2 * np.pi * X[:, 0]) + 0.2 * rng.normal(size=25)
x = np.linspace(0, 1, 300)[:, None]

# %%
# `partial_fit` adds points: the posterior becomes the next prior. Below is the kernel that turns targets into the mean.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(13, 9.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(2, 1.05))
    panels = above.subplots(2, 4, sharex=True, sharey=True)

    model = mc.BayesianLinearRegression(features=bumps, prior_precision=1.0, noise_precision=25.0, fit_intercept=True)
    seen = 0
    for column, n in enumerate((1, 2, 4, 25)):
        model.partial_fit(X[seen:n], t[seen:n])  # the posterior becomes the prior
        seen = n
        mean, std = model.predict(x, return_std=True)
        band, draws = panels[:, column]
        band.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color=colours.red, alpha=0.18, lw=0, label="± 2 std")
        band.plot(x, mean, color=colours.red, lw=2, label="mean")
        draws.plot(x, model.sample_functions(x, 6, random_state=1), color=colours.red, lw=1, alpha=0.8)
        for axis in (band, draws):
            axis.plot(x, np.sin(2 * np.pi * x), color=colours.green, lw=1.3, ls="--", label="sin 2πx")
            axis.plot(X[:n], t[:n], "o", color=colours.blue, ms=4.5, label="data")
            axis.set(xlim=(0, 1), ylim=(-2.6, 2.6))
        band.set_title(f"N = {n}")
        draws.set_xlabel("x")
    panels[0, 0].legend(fontsize=8, loc="lower left")
    panels[0, 0].set_ylabel("t: mean and band")
    panels[1, 0].set_ylabel("t: samples of the posterior")

    k = model.equivalent_kernel_
    picture, slices = below.subplots(1, 2)
    image = picture.imshow(k(x), origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-0.5, vmax=0.5, aspect="auto")
    below.colorbar(image, ax=picture, label="k(x, z)")
    picture.plot(X, X, "o", color=colours.ink, ms=3, label="data")
    picture.legend(fontsize=9, loc="upper left")
    picture.set(title="the equivalent kernel k(x, z) = β φ(x)ᵀ S_N φ(z)", xlabel="z", ylabel="x")
    for z, color in zip((0.2, 0.5, 0.8), (colours.red, colours.blue, colours.green)):
        slices.plot(x, k([[z]], x)[0], color=color, lw=2, label=f"k({z:g}, z)")
        slices.plot(X, k([[z]], X)[0], "o", color=color, ms=4)
    slices.axhline(0, color=colours.ink, lw=0.6)
    defect = abs(model.summation_defect(x)).max()
    slices.set(title=f"weights of the targets; |1 − Σ k(x, xₙ)| ≤ {defect:.0e}", xlabel="z", ylabel="k(x, z)")
    slices.legend(fontsize=9)

    assert k.proof().valid
    assert np.allclose(k(x, X) @ t, model.predict(x))
plt.show()
