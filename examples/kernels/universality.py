"""
Sums of Gaussians reach every continuous function
=================================================

Sums of Gaussians come arbitrarily close to every continuous function on a compact set (lecture 002).

A function with a kink, a ramp and a spike is approximated by Σ cᵢ k(xᵢ, ·) with more and narrower terms. A polynomial
kernel has finite rank: its error stops falling.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

Z = np.linspace(0, 1, 4001)[:, None]

# %%
# The function to approximate, and its approximation by n terms.


def continuous(x: np.ndarray) -> np.ndarray:
    """A continuous function that is not differentiable at six points."""
    x = x[:, 0]
    return np.abs(x - 0.3) + np.clip(6 * (x - 0.5), 0, 0.6) - np.maximum(0, 0.5 - 12 * np.abs(x - 0.85))


def approximation(kernel: mc.Kernel, n: int) -> mc.Expansion:
    """The function through n points of the curve, or its least-squares fit if the space is too small for that."""
    X = np.linspace(0, 1, n)[:, None]
    return mc.KernelRidge(kernel, alpha=1e-7, fit_intercept=True).fit(X, continuous(X)).function_


# %%
# More terms and narrower Gaussians; the polynomials get more points, too, but no more freedom.

sizes = [4, 8, 16, 32, 64, 128, 256, 512]
gaussians = {n: approximation(mc.Gaussian(1.5 / n), n) for n in sizes}
polynomials = {n: approximation(mc.Polynomial(5, c=1.0), n) for n in sizes}
error = {n: np.abs(f(Z) - continuous(Z)).max() for n, f in gaussians.items()}
stuck = {n: np.abs(f(Z) - continuous(Z)).max() for n, f in polynomials.items()}

# %%
# On the left, three of the approximations. On the right, the largest error: it falls for the Gaussian only.

with mc.plot.style() as colours:
    figure, (curves, errors) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
    curves.plot(Z, continuous(Z), color=colours.ink, lw=3, alpha=0.25, label="continuous function")
    for n, color in ((8, colours.blue), (32, colours.green), (256, colours.red)):
        curves.plot(Z, gaussians[n](Z), color=color, lw=1.5, label=f"{n} Gaussian terms, σ = {1.5 / n:.2g}")
    curves.set(title="f = Σ cᵢ k(xᵢ, ·) + b", xlabel="x", ylabel="y")
    curves.legend(frameon=False, fontsize=8)
    errors.loglog(sizes, list(stuck.values()), "s--", color=colours.grey, label="Polynomial(5): finite rank")
    errors.loglog(sizes, list(error.values()), "o-", color=colours.red, label="Gaussian: universal")
    errors.set(title="Largest error on [0, 1]", xlabel="number of terms", ylabel="max |f(x) − target(x)|")
    errors.legend(frameon=False)
    for n in sizes:
        print(f"{n:4d} terms: largest error {error[n]:.4f} (Gaussian), {stuck[n]:.4f} (polynomial)")
plt.show()
