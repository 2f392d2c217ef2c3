"""
Four smoothing problems
=======================

Curves, surfaces and densities without a formula: a curve with a sharp bend, a curve whose noise grows, a surface of two
columns, and times between eruptions that have two typical lengths. All widths are chosen by leave-one-out. The data are
simulated, in the shape of classic data sets.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

rng = np.random.default_rng(1)

# %%
# Two curves
# ----------
# Left: flat, then a deep and a high wave, as the head of a dummy in a crash. Right: noise that grows along the curve.
# The inner band is for the mean; the outer one is for new values, and follows the noise because it is that of a
# conditional density.

times = np.sort(rng.uniform(2, 58, 130))
crash = -110 * np.exp(-(((times - 21) / 5.5) ** 2)) + 45 * np.exp(-(((times - 33) / 6) ** 2))
crash += rng.normal(scale=np.where(times < 14, 2.0, 20.0))
reach = np.sort(rng.uniform(390, 720, 220))
ratio = -0.75 / (1 + np.exp(-(reach - 590) / 22)) + rng.normal(scale=0.02 + 0.1 / (1 + np.exp(-(reach - 590) / 20)))

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, x, y in ((axes[0], times, crash), (axes[1], reach, ratio)):
        X, z = x[:, None], np.linspace(x.min(), x.max(), 400)[:, None]
        model = mc.LocalRegression(degree=2, bandwidth="loo").fit(X, y)
        density = mc.ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(X, y)
        ends = density.predict_interval(z, 0.9)
        axis.fill_between(z[:, 0], *ends.T, color=colours.blue, alpha=0.12, lw=0, label="90 % of new values")
        axis.fill_between(
            z[:, 0], *model.bands(z, 0.95).T, color=colours.red, alpha=0.25, lw=0, label="95 % band of the mean"
        )
        axis.plot(x, y, ".", color=colours.ink, ms=4, alpha=0.7)
        axis.plot(z, model.predict(z), color=colours.red, lw=2, label="local parabolas")
        width = float(np.ravel(model.bandwidth_)[0])
        axis.set_title(f"width {width:.3g}, leave-one-out R² = {model.loo_score_:.2f}")
    axes[0].set(xlabel="ms after the impact", ylabel="acceleration (g)")
    axes[1].set(xlabel="range (m)", ylabel="log ratio")
    axes[0].legend(fontsize=8)
plt.show()

# %%
# A surface
# ---------
# Leave-one-out chooses one width for each column. The second column bends the surface more, and gets the smaller one in
# relation to its range.

C, E = rng.uniform(7.5, 18, 90), rng.uniform(0.54, 1.23, 90)
emission = 4 * np.exp(-(((E - 0.92) / 0.16) ** 2)) * (1 + 0.02 * (C - 12)) + rng.normal(scale=0.25, size=90)
surface = mc.LocalRegression(degree=2, bandwidth="loo").fit(np.column_stack([C, E]), emission)
side = np.linspace(7.5, 18, 80), np.linspace(0.54, 1.23, 120)
plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
print(f"widths {surface.bandwidth_.round(3)}, leave-one-out R² {surface.loo_score_:.3f}")
with mc.plot.style() as colours:
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    image = axis.contourf(*side, surface.predict(plane).reshape(120, 80), levels=14, cmap=colours.amounts())
    figure.colorbar(image, ax=axis, label="emission")
    axis.plot(C, E, ".", color=colours.red, ms=5)
    axis.set(xlabel="compression", ylabel="equivalence ratio")
plt.show()

# %%
# A density, and the next waiting time
# ------------------------------------
# Eruptions are short or long. Three rules choose the width of their density. On the right is the density of the next
# waiting time after each eruption.

long = rng.random(270) < 0.65
eruptions = np.where(long, rng.normal(4.3, 0.4, 270), rng.normal(2.0, 0.3, 270))
waiting = 33 + 11 * eruptions + rng.normal(scale=5.5, size=270)
with mc.plot.style() as colours:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    z = np.linspace(0.8, 6, 400)
    for rule, color in (("isj", colours.red), ("silverman", colours.blue), ("loo", colours.green)):
        density = mc.ParzenDensity(bandwidth=rule).fit(eruptions[:, None])
        width = float(np.ravel(density.bandwidth_)[0])
        left.plot(z, density.pdf(z[:, None]), color=color, lw=2, label=f"{rule}: {width:.2g}")
    left.plot(eruptions, np.full(270, -0.012), "|", color=colours.ink, ms=7, alpha=0.4)
    left.set(xlabel="eruption (min)", ylabel="density", title="widths by three rules")
    left.legend()
    model = mc.ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(eruptions[:, None], waiting)
    z, levels = np.linspace(1.2, 5.2, 160)[:, None], np.linspace(35, 105, 160)
    values = np.array([model.pdf(z, np.full(len(z), level)) for level in levels])
    right.pcolormesh(z[:, 0], levels, values, cmap="Greys", shading="auto", rasterized=True)
    right.plot(eruptions, waiting, ".", color=colours.blue, ms=3, alpha=0.5)
    right.plot(z, model.predict(z), color=colours.red, lw=2, label="mean")
    right.plot(z, model.predict_interval(z, 0.9), color=colours.red, lw=1, ls=":")
    right.set(xlabel="last eruption (min)", ylabel="next waiting time (min)", title="conditional density")
    right.legend()
plt.show()
