"""
Where a motif stands decides: promoters of DNA
==============================================

A promoter is a piece of DNA at which the copying of a gene begins. In bacteria, two short motifs stand at nearly fixed
distances from that point. The strings here are artificial: both classes contain the same two motifs, with a few letters
changed. In promoters they stand at their place, in the other strings anywhere.

Two kernels compare runs of letters: ``Spectrum`` counts what occurs, and ``WeightedDegree`` what occurs where.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

# %%
# Fifty-three promoters, then as many other strings, of 57 letters each.

rng = np.random.default_rng(0)


def strand(starts: tuple[int, int]) -> str:
    """Random letters with two motifs, of whose letters one in six is redrawn."""
    letters = rng.choice(list("acgt"), 57)
    for start, motif in zip(starts, ("ttgaca", "tataat")):
        kept = np.where(rng.random(6) < 1 / 6, rng.choice(list("acgt"), 6), list(motif))
        letters[start : start + 6] = kept
    return "".join(letters)


def sample(n: int) -> tuple[list[str], np.ndarray]:
    """n promoters, then n other strings, and their labels."""
    others = [strand((int(rng.integers(0, 22)), int(rng.integers(28, 51)))) for _ in range(n)]
    return [strand((14, 37)) for _ in range(n)] + others, np.repeat([1.0, -1.0], n)


X, y = sample(53)
new, truth = sample(200)
print(X[0])

# %%
# Both matrices show the same strings. A ridge regression on their labels is judged on 400 new strings. Both classes
# have the same motifs, so counting runs is hardly better than guessing.

kernels = {"Spectrum(3): what occurs": mc.Spectrum(3), "WeightedDegree(3): what occurs where": mc.WeightedDegree(3)}
with mc.plot.style() as colours:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for (title, leaf), panel in zip(kernels.items(), axes):
        kernel = leaf.normalize()
        model = mc.KernelRidge(kernel, alpha="loo").fit(X, y)
        wrong = float((np.sign(model.predict(new)) != truth).mean())
        print(f"{title}: {wrong:.0%} of the new strings wrong")
        K = kernel(X)
        np.fill_diagonal(K, np.nan)
        panel.imshow(K, cmap=colours.amounts(), vmin=np.nanquantile(K, 0.01), vmax=np.nanquantile(K, 0.99))
        panel.axhline(52.5, color=colours.red, lw=0.8)
        panel.axvline(52.5, color=colours.red, lw=0.8)
        panel.set(title=f"{title}\n{wrong:.0%} of new strings wrong", xticks=[26, 79], yticks=[26, 79])
        panel.set_xticklabels(["promoters", "others"])
        panel.set_yticklabels(["promoters", "others"], rotation=90, va="center")
plt.show()
