"""
Two rings, and the maps that separate them
==========================================

Two rings: no line separates them, but both maps of lecture 000 do: (x₁, x₂, x₁² + x₂²) and (x₁², x₂²).

The lower row shows kernels that need no explicit map: kernel PCA, which does not use the labels, and Fisher's
discriminant in the kernel's space, which does. The lines and planes are those of one linear classifier, logistic
regression on the coordinates of each picture.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

# %%
# Noisy rings, and a drawing of points with the line or plane that logistic regression finds for them.


def rings(rng: np.random.Generator, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """n points on each of two noisy rings."""
    angle = rng.uniform(0, 2 * np.pi, 2 * n)
    radius = np.repeat([1.0, 2.2], n) + 0.16 * rng.normal(size=2 * n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), np.repeat(["inner", "outer"], n)


def separated(axis: plt.Axes, Z: np.ndarray, y: np.ndarray, name: str, labels: tuple[str, ...]) -> None:
    """Draw points in two or three coordinates, with the line or plane of logistic regression."""
    unit = Z.std(axis=0)
    model = mc.LogisticRegression(alpha=1e-2).fit(Z / unit, y)
    wrong = int((model.predict(Z / unit) != y).sum())
    w, b = np.ravel(model.coef_) / unit, float(np.ravel(model.intercept_)[0])
    axis.scatter(*Z.T, s=12, c=np.where(y == "outer", colours.red, colours.blue), edgecolor=colours.ink, lw=0.3)
    if Z.shape[1] == 2:
        low, high = Z.min(axis=0) - 0.05 * np.ptp(Z, axis=0), Z.max(axis=0) + 0.05 * np.ptp(Z, axis=0)
        u, v = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
        axis.contour(u, v, w[0] * u + w[1] * v + b, levels=[0.0], colors=colours.ink, linewidths=1.5)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    else:
        u, v = np.meshgrid(*(np.linspace(Z[:, j].min(), Z[:, j].max(), 2) for j in range(2)))
        axis.plot_surface(u, v, -(w[0] * u + w[1] * v + b) / w[2], color=colours.ink, alpha=0.25)
        axis.set_zlabel(labels[2])
        axis.view_init(elev=12, azim=-60)
        axis.set_box_aspect(None, zoom=0.85)
    axis.set_title(f"{name}\n{wrong} of {len(y)} on the wrong side", fontsize=10)
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    print(f"{name:>42}: {wrong:3d} of {len(y)} on the wrong side")


# %%
# Three hundred points, half of them on each ring.

X, y = rings(np.random.default_rng(0))

# %%
# Only the first panel has points on the wrong side.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(13, 8), layout="constrained")
    separated(figure.add_subplot(2, 3, 1), X, y, "the rings: no line separates them", ("x₁", "x₂"))
    lifted = np.column_stack([X, (X**2).sum(axis=1)])
    axis = figure.add_subplot(2, 3, 2, projection="3d")
    separated(axis, lifted, y, "lifted to (x₁, x₂, x₁² + x₂²): a plane", ("x₁", "x₂", "x₁² + x₂²"))
    separated(figure.add_subplot(2, 3, 3), X**2, y, "squared to (x₁², x₂²): a line", ("x₁²", "x₂²"))

    gaussian, square = mc.Gaussian(1.0), mc.Polynomial(2)
    for place, kernel, pair in ((4, square, (0, 2)), (5, gaussian, (0, 2))):
        model = mc.KernelPCA(kernel, n_components=3).fit(X)
        share = model.explained_variance_ratio_[list(pair)]
        labels = tuple(f"component {j + 1} ({s:.0%} of the variance)" for j, s in zip(pair, share))
        separated(
            figure.add_subplot(2, 3, place), model.transform(X)[:, list(pair)], y, f"kernel PCA, {kernel!r}", labels
        )

    fisher = mc.KernelFisherDiscriminant(gaussian, alpha=0.1).fit(X, y)
    scores = fisher.transform(X)[:, 0]
    axis = figure.add_subplot(2, 3, 6)
    bins = np.linspace(scores.min(), scores.max(), 40)
    for label, color in (("inner", colours.blue), ("outer", colours.red)):
        axis.hist(scores[y == label], bins, color=color, alpha=0.8, label=label)
    wrong = int((fisher.predict(X) != y).sum())
    axis.set(title=f"kernel Fisher discriminant, {gaussian!r}\n{wrong} of {len(y)} on the wrong side")
    axis.set(xlabel="the discriminant", ylabel="points")
    axis.title.set_fontsize(10)
    axis.legend(frameon=False)
    print(f"{'kernel Fisher discriminant':>42}: {wrong:3d} of {len(y)} on the wrong side")
    print("A line fails only in the original plane; the kernels find the radius without an explicit map.")
plt.show()
