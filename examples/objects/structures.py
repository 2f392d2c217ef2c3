"""
Molecules and trees as they are, beside their most similar ones
===============================================================

Fingerprints of SMILES, and parts of expressions.

Above: paracetamol, and the three most similar of ten other medicines by the neighbourhoods of their atoms (`MinMax` of
counts). Below: an expression of Python, and the three most similar of six others by their common parts (`PartialTree`).
It needs RDKit.
"""

from __future__ import annotations

import ast

import matplotlib.pyplot as plt
import numpy as np

import mercer as mc

MEDICINES = {
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "phenacetin": "CCOc1ccc(NC(C)=O)cc1",
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "ibuprofen": "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "lidocaine": "CCN(CC)CC(=O)Nc1c(C)cccc1C",
    "benzocaine": "CCOC(=O)c1ccc(N)cc1",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "theophylline": "Cn1c(=O)c2[nH]cnc2n(C)c1=O",
    "nicotine": "CN1CCCC1c1cccnc1",
    "salbutamol": "CC(C)(C)NCC(O)c1ccc(O)c(CO)c1",
    "metformin": "CN(C)C(=N)NC(N)=N",
}
EXPRESSIONS = ["a + 2 * b", "a + 3 * c", "b * (a + 2)", "f(a, b)", "a if b else 2", "[a, 2, b]", "a - b"]


def tree(text: str) -> mc.Tree:
    """A Python expression as a tree of operators and names, without the parts that mean nothing here."""

    def of(node: ast.AST) -> tuple[object, ...]:
        if isinstance(node, ast.Name):
            return (node.id,)
        if isinstance(node, ast.Constant):
            return (str(node.value),)
        name = type(node.op).__name__ if isinstance(node, ast.BinOp) else type(node).__name__
        parts = (ast.expr_context, ast.operator)
        return (name, *(of(child) for child in ast.iter_child_nodes(node) if not isinstance(child, parts)))

    return mc.Tree.of(of(ast.parse(text, mode="eval").body))


def nearest(k: mc.Kernel, objects: list[object]) -> list[tuple[int, float]]:
    """The first object and the three most similar to it."""
    values = k(objects[:1], objects)[0]
    return [(int(i), float(values[i])) for i in np.argsort(-values, kind="stable")[:4]]


# %%
# The most similar molecules and expressions.

with mc.plot.style():
    figure, axes = plt.subplots(2, 4, figsize=(12, 5.2), layout="constrained")
    by_counts = mc.MinMax().after(mc.Fingerprint(counts=True))
    for axis, (i, value) in zip(axes[0], nearest(by_counts, list(MEDICINES.values()))):
        name = list(MEDICINES)[i]
        title = name if i == 0 else f"{name}: {value:.2f}"
        mc.plot.Structure.from_object(MEDICINES[name], ax=axis, title=title)
        print(title)
    trees = [tree(text) for text in EXPRESSIONS]
    for axis, (i, value) in zip(axes[1], nearest(mc.PartialTree(0.5, 0.5).normalize(), trees)):
        title = EXPRESSIONS[i] if i == 0 else f"{EXPRESSIONS[i]}: {value:.2f}"
        mc.plot.Structure.from_object(trees[i], ax=axis, title=title)
        print(title)
