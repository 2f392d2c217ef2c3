"""
Patches of digits
=================

Patches of digits: what the anchors look like, and how far a digit may move before it is another one.

The match kernel of patches compares small parts of two images at nearby places; a Gaussian on pixels compares pixels
at the same place. Digits are moved by one or two pixels: the similarity of pixels to the original collapses, that of
patches does not. On held-out digits that were moved, patches keep their accuracy.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import mercer as mc

TRAIN, SHIFTS, ANCHORS, SIDE = 600, (0, 1, 2), 48, 3

# %%
# Digits move on a canvas with a margin, so that nothing is cut off.


def moved(images: np.ndarray, shift: int) -> np.ndarray:
    """Images on a canvas with a margin, moved to the right by some pixels."""
    return np.pad(images, ((0, 0), (2, 2), (2 + shift, 2 - shift)))


# %%
# Anchors are learned from the training digits; a machine is fitted for each kernel to digits that were not moved.

digits, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(digits))[: 2 * TRAIN]
images, y = digits[order].reshape(-1, 8, 8) / 16, y[order]
X, test, labels = moved(images[:TRAIN], 0), images[TRAIN:], y[TRAIN:]
phi = mc.patch_features(mc.Patches(size=SIDE, sigma=0.5, spread=1.5), X, ANCHORS)
kernels = {
    "Gaussian on pixels": mc.Gaussian(2.0).after(mc.pixels),
    "patches": mc.Linear().after(phi).normalize(),
}
models = {name: mc.SVC(kernel, C=10.0).fit(X, y[:TRAIN]) for name, kernel in kernels.items()}

# %%
# Left the anchors, in the middle similarities of a digit to itself after a move, on the right the accuracy.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(11, 3.4), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.1, 1, 1.2])
    axes = left.subplots(6, 8)
    for axis, anchor in zip(axes.ravel(), phi.anchors):
        axis.imshow(anchor.reshape(SIDE, SIDE), cmap="gray_r")
        axis.set_axis_off()
    left.suptitle(f"{ANCHORS} anchors, patches of {SIDE} × {SIDE} pixels", fontsize=10)
    for axis, shift in zip(middle.subplots(1, len(SHIFTS)), SHIFTS):
        pair = moved(test[:1], 0), moved(test[:1], shift)
        values = [float(kernel(pair[0], pair[1])[0, 0]) for kernel in kernels.values()]
        axis.imshow(pair[1][0], cmap="gray_r")
        axis.set_title(f"moved by {shift}\npixels {values[0]:.2f}\npatches {values[1]:.2f}", fontsize=9)
        axis.set_axis_off()
    middle.suptitle("similarity to the first", fontsize=10)
    axis = right.subplots()
    for (name, model), colour in zip(models.items(), ("#d1733f", "#3b6ea5")):
        scores = [float((model.predict(moved(test, shift)) == labels).mean()) for shift in SHIFTS]
        axis.plot(SHIFTS, scores, "o-", color=colour, label=name)
        print(f"{name:>20}: held-out accuracy {', '.join(f'{s:.3f}' for s in scores)} for digits moved by {SHIFTS}")
    axis.set(xlabel="test digits moved by (pixels)", ylabel="held-out accuracy", xticks=SHIFTS, ylim=(0, 1.02))
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
