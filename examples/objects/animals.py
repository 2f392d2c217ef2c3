"""
A map of animals by what they share
===================================

Sets: animals and what is true of them, compared by the share of traits that they have in common.

No animal is a row of numbers, and none has a class here. ``Jaccard`` is the number of common traits, divided by the
number of traits that at least one of the two has. Kernel PCA of it draws a map; the matrix shows which groups it makes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

# %%
# Each animal is a set of words, as many as it needs.

ANIMALS = {
    "dolphin": "swims milk lungs live-young fins hunts sea warm",
    "whale": "swims milk lungs live-young fins sea warm filters",
    "seal": "swims milk lungs live-young fins hunts sea warm hair walks",
    "bat": "flies milk lungs live-young hair warm hunts insects",
    "mouse": "walks milk lungs live-young hair warm seeds four-legs",
    "cat": "walks milk lungs live-young hair warm hunts four-legs",
    "horse": "walks milk lungs live-young hair warm grazes four-legs",
    "platypus": "swims walks milk lungs eggs hair warm hunts four-legs bill",
    "penguin": "swims walks lungs eggs feathers warm hunts sea bill",
    "sparrow": "flies walks lungs eggs feathers warm seeds bill",
    "swallow": "flies lungs eggs feathers warm insects hunts bill",
    "ostrich": "walks lungs eggs feathers warm grazes bill",
    "snake": "lungs eggs scales hunts crawls",
    "crocodile": "swims walks lungs eggs scales hunts four-legs",
    "turtle": "swims walks lungs eggs scales grazes four-legs shell",
    "frog": "swims walks lungs eggs insects hunts four-legs",
    "shark": "swims gills live-young fins hunts sea",
    "herring": "swims gills eggs scales fins sea filters",
    "pike": "swims gills eggs scales fins hunts",
    "bee": "flies eggs six-legs nectar",
    "butterfly": "flies eggs six-legs nectar crawls",
    "ant": "walks eggs six-legs hunts seeds",
}
GROUPS = {"mammals": 8, "birds": 4, "reptiles, frog": 4, "fish": 3, "insects": 3}
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#7d3c98", "#b9770e")

names, traits = list(ANIMALS), [set(text.split()) for text in ANIMALS.values()]
kernel = mc.Jaccard()
K = kernel(traits)
Z = mc.KernelPCA(kernel, n_components=2).fit_transform(traits)

# %%
# The kernel knows nothing of the groups: colours only show where they are. The platypus lies between mammals and birds.

group = np.repeat(np.arange(len(GROUPS)), list(GROUPS.values()))
for name in ("platypus", "bat", "dolphin"):
    i = names.index(name)
    near = np.argsort(-K[i], kind="stable")[1:4]
    print(f"{name:>9}: most like {', '.join(f'{names[j]} ({K[i, j]:.2f})' for j in near)}")

with mc.plot.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.6), layout="constrained", width_ratios=[1, 1.25])
    left.imshow(np.where(np.eye(len(K)) > 0, np.nan, K), cmap="viridis")
    left.set(title="shares of common traits", xticks=range(len(K)), yticks=range(len(K)))
    left.set_xticklabels(names, rotation=90, fontsize=8)
    left.set_yticklabels(names, fontsize=8)
    for axis in (left.get_xticklabels(), left.get_yticklabels()):
        for label, g in zip(axis, group):
            label.set_color(COLOURS[g])
    for g, (title, colour) in enumerate(zip(GROUPS, COLOURS)):
        right.scatter(*Z[group == g].T, s=30, color=colour, label=title)
    places = [
        {"xytext": (5, 4)},
        {"xytext": (5, -11)},
        {"xytext": (-5, 4), "ha": "right"},
    ]
    for i, name in enumerate(names):
        place = places[i % 3] | {"textcoords": "offset points"}
        right.annotate(name, Z[i], **place, fontsize=9, color=COLOURS[group[i]])
    right.margins(0.12)
    right.set(title="kernel PCA: what lies close shares traits", xlabel="first component", ylabel="second component")
    right.legend(frameon=False)
plt.show()
