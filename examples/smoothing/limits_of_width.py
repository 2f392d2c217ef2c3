"""
From the closest point to all points
====================================

From the closest point to all points: the width of a smoother (lectures 000 and 002).

Above is a regression, below a classification. A width near zero gives the nearest neighbour, a huge one the mean or
the majority of all rows. The effective number of neighbours grows from 1 to n with the width; leave-one-out chooses
it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import mercer as mc

# %%
# A noisy sine for the regression, two half-moons for the classification.

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 60))[:, None]
y = np.sin(1.5 * x[:, 0]) + 0.3 * rng.normal(size=60)
X, c = make_moons((75, 45), noise=0.25, random_state=1)
line = np.linspace(-0.2, 6.2, 500)[:, None]
side = np.linspace(-1.8, 2.8, 160), np.linspace(-1.4, 1.9, 120)
plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)

# %%
# The width grows from left to right; the second column has the one that leave-one-out chooses.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(2, 4, figsize=(14.5, 6.6), layout="constrained")
    for axis, width in zip(axes[0], (0.01, "loo", 1.5, 100.0)):
        model = mc.NadarayaWatsonRegressor(bandwidth=width).fit(x, y)
        axis.plot(x, y, ".", color=colours.blue, ms=5)
        axis.plot(line, model.predict(line), color=colours.red, lw=2)
        neighbours = np.mean(model.effective_sample_size(line))
        value = float(np.ravel(model.bandwidth_)[0])
        axis.set(
            title=f"width {value:.3g}{' by LOO' if width == 'loo' else ''}: {neighbours:.1f} neighbours", ylim=(-2, 2)
        )
        print(f"width {value:8.3g}: {neighbours:6.1f} effective neighbours, leave-one-out R² {model.loo_score_:.3f}")
    for axis, width in zip(axes[1], (0.01, "loo", 1.0, 100.0)):
        model = mc.NadarayaWatsonClassifier(bandwidth=width).fit(X, c)
        share = model.predict_proba(plane)[:, 1].reshape(len(side[1]), len(side[0]))
        axis.contourf(*side, share, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5, vmin=0, vmax=1)
        axis.contour(*side, share, levels=[0.5], colors=[colours.ink], linewidths=1.4)
        axis.scatter(*X.T, s=12, color=np.where(c == 1, colours.red, colours.blue), edgecolor="white", lw=0.4)
        values = "/".join(f"{w:.3g}" for w in np.unique(np.ravel(model.bandwidth_)))
        axis.set(title=f"width {values}{' by LOO' if width == 'loo' else ''}", aspect="equal")
    axes[0, 0].set_ylabel("mean of the neighbours")
    axes[1, 0].set_ylabel("majority of the neighbours")
plt.show()
