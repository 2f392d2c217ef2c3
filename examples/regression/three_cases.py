"""
Kernel regression in three cases
================================

Kernel regression on the three cases of lecture 000: a line, a sine on a line, and pure noise.

Nadaraya-Watson and local lines choose their widths by leave-one-out and draw bands of the mean and of new targets. On
pure noise there is hardly anything to explain (the leave-one-out R² is near 0), and the curve stays close to the flat
truth.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

CASES = {
    "linear + noise": lambda x, e: 0.8 * x - 1 + 0.5 * e,
    "sine + linear + noise": lambda x, e: np.sin(2 * x) + 0.5 * x - 1 + 0.35 * e,
    "completely random": lambda x, e: e,
}

# %%
# The same 150 places and the same noise for all three cases.

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(0, 6, 150))[:, None]
noise = rng.normal(size=150)
x = np.linspace(X.min(), X.max(), 400)[:, None]

# %%
# Above Nadaraya-Watson, below local lines; the widths are chosen by leave-one-out.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained", sharex=True, sharey="col")
    for column, (name, target) in enumerate(CASES.items()):
        y = target(X[:, 0], noise)
        for axis, model in zip(
            axes[:, column],
            (mc.NadarayaWatsonRegressor(bandwidth="loo"), mc.LocalRegression(degree=1, bandwidth="loo")),
        ):
            model.fit(X, y)
            interval = model.predict_interval(x, coverage=0.9)
            band = model.bands(x, coverage=0.95)
            axis.fill_between(x[:, 0], *interval.T, color=colours.blue, alpha=0.10, lw=0, label="90 % of new targets")
            axis.fill_between(x[:, 0], *band.T, color=colours.red, alpha=0.22, lw=0, label="95 % band of the mean")
            axis.plot(X, y, ".", color=colours.ink, ms=4, alpha=0.6)
            if column < 2:
                axis.plot(x, target(x[:, 0], 0.0), color=colours.ink, lw=1, ls="--", label="without noise")
            axis.plot(x, model.predict(x), color=colours.red, lw=2)
            axis.set_ylim(y.min() - 1, y.max() + 1)
            width, size = float(np.ravel(model.bandwidth_)[0]), np.median(model.effective_sample_size(X))
            axis.set_title(
                f"{name}\nwidth {width:.2g}, {size:.0f} neighbours, LOO R² {model.loo_score_:.2f}", fontsize=9.5
            )
            print(f"{type(model).__name__:>24}, {name}: width {width:.3g}, leave-one-out R² {model.loo_score_:.3f}")
    axes[0, 0].set_ylabel("Nadaraya-Watson")
    axes[1, 0].set_ylabel("local lines")
    axes[0, 0].legend(fontsize=8, loc="lower right")
plt.show()
