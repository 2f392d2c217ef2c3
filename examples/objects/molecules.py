"""
Molecules seen through the Weisfeiler-Lehman kernel
===================================================

Artificial molecules of four families, seen through the Weisfeiler-Lehman kernel: kernel PCA, and the nearest
neighbours.

Chains, rings, chains with an alcohol group and rings with a nitrogen atom, with branches at random. The kernel knows
neither families nor coordinates, only atoms and bonds. Left: the first two components of kernel PCA. Right: one
molecule and the three that are most similar to it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

COLOURS = {"chain": "#2471a3", "ring": "#c0392b", "alcohol": "#1e8449", "ring with N": "#7d3c98"}

# %%
# A molecule is a graph of atoms without hydrogen; the family decides on its ring, its oxygen or its nitrogen.


def molecule(family: str, rng: np.random.Generator) -> mc.Graph:
    """A molecule without its hydrogen atoms: a chain or a ring of carbon with branches, and what the family adds."""
    size = int(rng.integers(5, 10)) if family in ("chain", "alcohol") else int(rng.integers(5, 7))
    edges = [(i, i + 1) for i in range(size - 1)]
    labels = ["C"] * size
    if "ring" in family:
        edges.append((size - 1, 0))
    if family == "ring with N":
        labels[int(rng.integers(size))] = "N"
    for _ in range(int(rng.integers(0, 4))):
        edges.append((int(rng.integers(len(labels))), len(labels)))
        labels.append("C")
    if family == "alcohol":
        edges.append((int(rng.integers(len(labels))), len(labels)))
        labels.append("O")
    return mc.Graph(edges, labels=labels)


# %%
# Forty molecules of each family, and their coordinates by kernel PCA.

rng = np.random.default_rng(3)
families = np.repeat(list(COLOURS), 40)
molecules = [molecule(family, rng) for family in families]
kernel = mc.WeisfeilerLehman(4).normalize()
Z = mc.KernelPCA(kernel, n_components=2).fit_transform(molecules)

# %%
# Rings with a nitrogen atom stand apart, and the other families lie in layers, although the kernel does not know them.

with mc.plot.style() as colours:
    figure = plt.figure(figsize=(10, 5), layout="constrained")
    grid = figure.add_gridspec(2, 4)
    axis = figure.add_subplot(grid[:, :2])
    for family, colour in COLOURS.items():
        axis.scatter(*Z[families == family].T, s=22, color=colour, label=family, edgecolor="white", lw=0.4)
    axis.set(xlabel="first component", ylabel="second component", title="Kernel PCA of 160 molecules")
    axis.legend(frameon=False)
    query = 130
    K = kernel(molecules)
    shown = [query]
    for i in np.argsort(-K[query]):  # molecules that the kernel cannot tell apart are shown once
        if K[i, shown].max() < 1 - 1e-9 and len(shown) < 4:
            shown.append(int(i))
    for place, i in enumerate(shown):
        title = f"a {families[i]}" if i == query else f"{families[i]}, cosine {K[query, i]:.2f}"
        beside = figure.add_subplot(grid[place // 2, 2 + place % 2])
        mc.plot.Structure.from_object(molecules[i], ax=beside)
        beside.set_title(title, fontsize=10, color=COLOURS[families[i]])
        print(f"{families[i]:>12}: {molecules[i].n} atoms, cosine {K[query, i]:.2f}")
    neighbours = mc.KernelNeighborsClassifier(kernel, n_neighbors=5)
    right = np.mean(neighbours.fit(molecules[::2], families[::2]).predict(molecules[1::2]) == families[1::2])
    print(f"{right:.0%} of the molecules that were held out are put into their family by five neighbours")
plt.show()
