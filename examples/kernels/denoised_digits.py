"""
Digits without noise, by kernel PCA
===================================

Digits without noise by kernel PCA: project on the leading components, then find the digit with these scores.

A digit has large scores along the components of other digits; the noise on it has hardly any, because nothing in the
digits looks like noise. The pre-image of the scores is the picture whose feature vector is nearest to the projection.
PCA (the linear kernel, with its best number of components) does the same in a linear subspace; scikit-learn's
KernelPCA learns a map from scores to pictures by ridge regression.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

import mercer as mc

SIGMA, COMPONENTS, PLANES, NOISE = 2.0, 120, 18, 0.25

# %%
# A thousand digits train the models, and 300 others get noise. Each model transforms them and goes back.

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
order = rng.permutation(len(X))
X, y = X[order] / 16, y[order]
train, clean, labels = X[:1000], X[1000:1300], y[1000:1300]
noisy = clean + NOISE * rng.normal(size=clean.shape)
models = {
    f"PCA,\n{PLANES} components": mc.KernelPCA(mc.Linear(), n_components=PLANES),
    "kernel PCA,\nlearned map": KernelPCA(
        COMPONENTS, kernel="rbf", gamma=0.5 / SIGMA**2, fit_inverse_transform=True, alpha=0.1
    ),
    "kernel PCA,\nnearest\nfeature vector": mc.KernelPCA(mc.Gaussian(SIGMA), n_components=COMPONENTS),
}
pictures = {"clean": clean, "with noise": noisy}
for name, model in models.items():
    pictures[name] = model.fit(train).inverse_transform(model.transform(noisy))
shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]

# %%
# The number below each name is the mean squared distance from the clean digits.

with mc.plot.style() as colours:
    figure, axes = plt.subplots(len(pictures), 11, figsize=(11, 5.2), layout="constrained")
    for row, (name, images) in zip(axes, pictures.items()):
        error = float(((images - clean) ** 2).mean())
        row[0].text(1.0, 0.5, name if name == "clean" else f"{name}\n{error:.4f}", ha="right", va="center", fontsize=9)
        for axis, i in zip(row[1:], shown):
            axis.imshow(images[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        for axis in row:
            axis.set_axis_off()
        print(f"{' '.join(name.split()):>36}: mean squared distance from the clean digits {error:.4f}")
    figure.suptitle(f"Held-out digits; kernel PCA with {COMPONENTS} components of 1000 others", fontsize=11)
plt.show()
