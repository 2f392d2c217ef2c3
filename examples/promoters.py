"""Where a motif stands decides: promoters of E. coli, told apart from other DNA by an aligned and by a plain spectrum.

    python examples/promoters.py promoters.csv.gz [picture.png]

The file has the columns `label` (+ or -) and `sequence`, 106 strings of 57 letters (UCI, Promoter Gene
Sequences, CC BY 4.0). Both matrices show the same strings, the promoters first.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mercer as mc

KERNELS = {"Spectrum(3): what occurs": mc.Spectrum(3), "WeightedDegree(3): what occurs where": mc.WeightedDegree(3)}


def main(path: str, picture: str = "promoters.png") -> None:
    frame = pd.read_csv(path).sort_values("label", key=lambda labels: labels != "+", kind="stable")
    X, y = frame["sequence"].tolist(), np.where(frame["label"] == "+", 1.0, -1.0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for (title, leaf), panel in zip(KERNELS.items(), axes):
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
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
