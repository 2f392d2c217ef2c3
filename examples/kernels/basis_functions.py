"""
Basis functions and the kernels they induce
===========================================

Basis functions and the kernels they induce: k(x, z) = Σᵢ φᵢ(x) φᵢ(z) (lecture 004, equation 9 and its figure).
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

CENTRES = np.linspace(-1, 1, 11)

# %%
# Three sets of eleven functions: powers, bumps and steps.


def polynomials(X: np.ndarray) -> np.ndarray:
    """x, x², …, x¹¹."""
    return X ** np.arange(1, 12)


def bumps(X: np.ndarray) -> np.ndarray:
    """Gaussians around eleven centres."""
    return np.exp(-((X - CENTRES) ** 2) / (2 * 0.2**2))


def sigmoids(X: np.ndarray) -> np.ndarray:
    """Sigmoids around eleven centres."""
    return 1 / (1 + np.exp(-(X - CENTRES) / 0.1))


# %%
# A point z for each set, at which the kernel is drawn.

x = np.linspace(-1, 1, 400)[:, None]
where = {"polynomials": -0.5, "Gaussians": 0.0, "sigmoids": 0.0}

# %%
# Above the functions, below the kernel k(x, z) as a function of x. It is large where the functions that are large at z
# are large, too.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(2, 3, figsize=(11, 5.2), sharex=True, layout="constrained")
    for column, (name, phi) in enumerate(zip(where, (polynomials, bumps, sigmoids))):
        kernel = mc.FromFeatures(phi)
        z = where[name]
        axes[0, column].plot(x, phi(x), lw=1)
        axes[0, column].set_title(f"{name}: φᵢ(x)")
        axes[1, column].plot(x, kernel(x, [[z]]), color=colours.red, lw=2)
        axes[1, column].plot(z, 0, "x", color=colours.ink, ms=8, mew=2)
        axes[1, column].set_title(f"k(x, z) at z = {z:g}")
        assert kernel.proof().valid
plt.show()
