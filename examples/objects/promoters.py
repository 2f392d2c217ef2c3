"""
Where a motif stands decides: promoters of DNA
==============================================

A promoter is a piece of DNA at which the copying of a gene begins. In E. coli, short motifs stand at fixed distances
from that point. The data are 106 strings of 57 letters, half of them promoters (UCI Machine Learning Repository,
Molecular Biology: Promoter Gene Sequences, CC BY 4.0), in the file ``promoters.csv`` beside this script.

Two kernels compare runs of letters: ``Spectrum`` counts what occurs, and ``WeightedDegree`` what occurs where.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mercer as mc

# %%
# The promoters come first, then the other strings. The working directory of a notebook is the folder of the example.

here = Path(__file__).parent if "__file__" in globals() else Path()
frame = pd.read_csv(here / "promoters.csv").sort_values("label", key=lambda labels: labels != "+", kind="stable")
X, y = frame["sequence"].tolist(), np.where(frame["label"] == "+", 1.0, -1.0)
print(X[0])

# %%
# Both matrices show the same strings. With ``WeightedDegree`` the promoters are similar to each other, and a ridge
# regression on the labels, judged by its leave-one-out predictions, makes fewer mistakes.

kernels = {"Spectrum(3): what occurs": mc.Spectrum(3), "WeightedDegree(3): what occurs where": mc.WeightedDegree(3)}
with mc.plot.style():
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for (title, leaf), panel in zip(kernels.items(), axes):
        kernel = leaf.normalize()
        model = mc.KernelRidge(kernel, alpha="loo").fit(X, y)
        wrong = int((np.sign(model.loo_predictions_) != y).sum())
        print(f"{title}: {wrong} of {len(y)} wrong (leave-one-out)")
        K = kernel(X)
        np.fill_diagonal(K, np.nan)
        panel.imshow(K, cmap="viridis", vmin=np.nanquantile(K, 0.01), vmax=np.nanquantile(K, 0.99))
        panel.axhline(52.5, color="white", lw=0.8)
        panel.axvline(52.5, color="white", lw=0.8)
        panel.set(title=f"{title}\n{wrong} of {len(y)} wrong (leave-one-out)", xticks=[26, 79], yticks=[26, 79])
        panel.set_xticklabels(["promoters", "others"])
        panel.set_yticklabels(["promoters", "others"], rotation=90, va="center")
plt.show()
