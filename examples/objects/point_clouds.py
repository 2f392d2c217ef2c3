"""
A map of point clouds
=====================

Point clouds of different sizes, mapped by kernel PCA of their mean embeddings: no cloud has an order or a length.

Each object is a sample of 20 to 60 points from a ring, a disc or a cross. The kernel is the Gaussian of the distance
between mean embeddings (MMD); kernel PCA does not use the shapes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

COLOURS = {"ring": "#c0392b", "disc": "#2471a3", "cross": "#229954"}

# %%
# A cloud has between 20 and 60 points of one shape, in no order.


def cloud(shape: str, rng: np.random.Generator) -> np.ndarray:
    """A sample of a shape, of 20 to 60 points."""
    n = int(rng.integers(20, 61))
    angle, noise = rng.uniform(0, 2 * np.pi, n), 0.05 * rng.normal(size=(n, 2))
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    if shape == "ring":
        return circle + noise
    if shape == "disc":
        return np.sqrt(rng.random((n, 1))) * circle + noise
    arm = rng.integers(0, 2, n)
    return np.column_stack([np.where(arm == i, rng.uniform(-1, 1, n), 0.0) for i in (0, 1)]) + noise


# %%
# Twenty clouds of each shape, and the kernel of their mean embeddings.

rng = np.random.default_rng(0)
shapes = list(COLOURS) * 20
clouds = [cloud(shape, rng) for shape in shapes]
kernel = (mc.MeanEmbedding(mc.Gaussian(0.3)) / 0.2**2).exp().normalize()
Z = mc.KernelPCA(kernel, n_components=2).fit_transform(clouds)

# %%
# Left three of the clouds; right each cloud is one dot.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(9, 4.2), layout="constrained")
    grid = figure.add_gridspec(3, 4)
    for i in range(3):
        axis = figure.add_subplot(grid[i, 0])
        axis.scatter(*clouds[i].T, s=6, color=COLOURS[shapes[i]])
        axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xticks=[], yticks=[], aspect="equal")
        axis.set_title(f"a {shapes[i]}, {len(clouds[i])} points", fontsize=9)
    axis = figure.add_subplot(grid[:, 1:])
    for shape, colour in COLOURS.items():
        chosen = np.array(shapes) == shape
        axis.scatter(*Z[chosen].T, s=25, color=colour, label=shape)
    axis.set_title("60 clouds by kernel PCA of their mean embeddings; each dot is a cloud", fontsize=10)
    axis.set_xlabel("first component")
    axis.set_ylabel("second component")
    axis.legend()
plt.show()
