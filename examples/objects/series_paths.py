"""
Gestures compared by their signatures
=====================================

Signatures of paths: gestures at different speeds and places, compared point by point and by their signatures.

Three kinds of gestures (a loop to the left, a loop to the right, and a zigzag) are drawn at random speeds and begin
anywhere. Point by point, two of the same kind are far apart; their signatures are not, because a signature depends on
the steps of a path alone. Kernel PCA shows both views.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

KINDS, EACH, POINTS, NOISE = ("loop to the left", "loop to the right", "zigzag"), 30, 60, 0.03
COLOURS = ("#3b6ea5", "#d1733f", "#4a8f5c")

# %%
# A gesture has the shape of its kind, at a random speed, place, size and angle.


def gesture(kind: int, rng: np.random.Generator) -> np.ndarray:
    """One path of POINTS points in the plane, at a random speed, turned and scaled a little."""
    s = np.cumsum(rng.gamma(0.15, size=POINTS))
    t = (s - s[0]) / (s[-1] - s[0])
    if kind == 2:
        path = np.column_stack([t, 0.5 * np.abs((3 * t) % 2 - 1)])
    else:
        angle = 2 * np.pi * t * (1 if kind == 0 else -1)
        path = np.column_stack([0.5 * t + 0.4 * np.sin(angle), 0.4 - 0.4 * np.cos(angle)])
    turn = rng.normal(0, 0.15)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return rng.uniform(0.8, 1.2) * path @ rotation + NOISE * rng.normal(size=path.shape) + 0.5 * rng.normal(size=2)


# %%
# Thirty gestures of each kind, and the two ways to compare them.

rng = np.random.default_rng(0)
y = np.repeat(np.arange(3), EACH)
X = np.array([gesture(kind, rng) for kind in y])
views = {
    "point by point: Gaussian(2.0) of all coordinates": mc.Gaussian(2.0).after(lambda X: X.reshape(len(X), -1)),
    "as paths: Signature(level=3).normalize()": mc.Signature(level=3).normalize(),
}

# %%
# Left some gestures; then the map by points and the map by signatures, each with the accuracy of a classifier.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for kind, name in enumerate(KINDS):
        for n, path in enumerate(X[y == kind][:3]):
            shown = path - path.mean(axis=0) + [2.0 * kind, -1.3 * n]
            axes[0].plot(*shown.T, ".-", color=COLOURS[kind], lw=1, ms=3)
        axes[0].text(2.0 * kind, 0.8, name.replace(" to", "\nto"), ha="center", color=COLOURS[kind], fontsize=9)
    axes[0].set(aspect="equal", xlim=(-1.1, 5.1), ylim=(-3.5, 1.6))
    axes[0].set_axis_off()
    test = np.arange(len(X)) % 2 == 1
    for axis, (name, kernel) in zip(axes[1:], views.items()):
        scores = mc.KernelPCA(kernel, n_components=2).fit_transform(X)
        for kind in range(3):
            axis.plot(*scores[y == kind].T, "o", color=COLOURS[kind], ms=4, alpha=0.8)
        accuracy = (mc.SVC(kernel, C=10.0).fit(X[~test], y[~test]).predict(X[test]) == y[test]).mean()
        axis.set(title=f"{name}\nheld-out accuracy {accuracy:.2f}", xlabel="component 1", ylabel="component 2")
        axis.title.set_fontsize(9)
        axis.spines[["top", "right"]].set_visible(False)
        print(f"{name:>50}: held-out accuracy {accuracy:.3f}")
plt.show()
