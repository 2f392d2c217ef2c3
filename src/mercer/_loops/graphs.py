"""Loops over graphs: shortest paths counted by their ends, and walks that two graphs have in common.

Graphs are stored one after the other: graph i has the nodes nodes[i] … nodes[i + 1] − 1, and node v the neighbours
neighbours[ends[v] : ends[v + 1]]. Small inputs are left to NumPy, as in `tiles`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .costs import COMPILED_ENTRIES

Array = NDArray[Any]


def path_keys(nodes: Array, ends: Array, neighbours: Array, labels: Array, steps: Array) -> tuple[Array, Array]:
    """A key for every pair u < v of nodes of one graph that a path joins, and where each graph ends.

    The key of nodes with labels a and b at distance d is a hash of a + b + steps[d], whose last two bits are 01 if
    a = b and else 00.
    """
    if int((np.diff(nodes) ** 2).sum()) < COMPILED_ENTRIES:
        u, v, d, totals = _distances(nodes, ends, neighbours)
        return pair_keys(labels[u], labels[v], steps[d]), totals
    from . import graphs_large

    return graphs_large.path_keys(nodes, ends, neighbours, labels, steps)


def pair_keys(a: Array, b: Array, step: Array) -> Array:
    """The keys of pairs of nodes with labels a and b, `step` a hash of their distance."""
    bits = a + b + step
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits & ~np.uint64(3)) | (a == b)


def _distances(nodes: Array, ends: Array, neighbours: Array) -> tuple[Array, Array, Array, Array]:
    """Every pair u < v of nodes that a path joins: (u, v, number of edges, where each graph ends).

    Breadth first from all nodes of a graph at once: the front of every node is a row of a matrix.
    """
    parts, total = [], [0]
    for first, last in zip(nodes[:-1].tolist(), nodes[1:].tolist()):
        n = last - first
        A = np.zeros((n, n), bool)
        sources = np.repeat(np.arange(n), np.diff(ends[first : last + 1]))
        A[sources, neighbours[ends[first] : ends[last]] - first] = True
        seen, front, steps = np.eye(n, dtype=bool), np.eye(n, dtype=bool), np.zeros((n, n), np.int64)
        step = 0
        while front.any():
            step += 1
            front = (front @ A) & ~seen
            seen |= front
            steps[front] = step
        u, v = np.nonzero(np.triu(steps))
        parts.append((u + first, v + first, steps[u, v]))
        total.append(total[-1] + len(u))
    u, v, d = (np.concatenate(column) for column in zip(*parts))
    return u, v, d, np.array(total)


def walk_sums(
    x: tuple[Array, ...], z: tuple[Array, ...], rows: Array, columns: Array, decay: float
) -> tuple[Array, Array]:
    """1ᵀ y and yᵀ(y − 1) with (I − decay·W) y = 1 for each pair of graphs, W the product graph of equal labels.

    Each side is (nodes, ends, neighbours, weights, labels). The second number is the derivative of the first by the
    logarithm of the decay.
    """
    sums, slopes = np.empty(len(rows)), np.empty(len(rows))
    nodes = int(np.diff(x[0])[rows] @ np.diff(z[0])[columns])
    if nodes < COMPILED_ENTRIES // 16:
        matrices = [_matrices(*side[:4]) for side in (x, z)]
        for p, (i, j) in enumerate(zip(rows.tolist(), columns.tolist())):
            equal = x[4][x[0][i] : x[0][i + 1], None] == z[4][z[0][j] : z[0][j + 1]]
            y = _walks(matrices[0][i], matrices[1][j], equal.astype(np.float64), decay)
            sums[p], slopes[p] = y.sum(), (y * (y - equal)).sum()
        return sums, slopes
    from . import graphs_large

    graphs_large.walk_sums(x, z, rows, columns, decay, sums, slopes)
    return sums, slopes


def _matrices(nodes: Array, ends: Array, neighbours: Array, weights: Array) -> list[Array]:
    matrices = []
    for first, last in zip(nodes[:-1].tolist(), nodes[1:].tolist()):
        A = np.zeros((last - first, last - first))
        sources = np.repeat(np.arange(last - first), np.diff(ends[first : last + 1]))
        A[sources, neighbours[ends[first] : ends[last]] - first] = weights[ends[first] : ends[last]]
        matrices.append(A)
    return matrices


TINY = 1e-30
"""The squared residual, as a share of the right side's, at which conjugate gradients end."""


def _walks(A: Array, B: Array, one: Array, decay: float) -> Array:
    """Conjugate gradients; a vector over pairs of nodes is a matrix that is 0 where labels differ."""
    y, r = np.zeros_like(one), one.copy()
    p, size = r.copy(), (r * r).sum()
    enough = TINY * size
    for _ in range(2 * one.size):
        if size <= enough:
            break
        q = p - decay * one * (A @ p @ B)
        step = size / (p * q).sum()
        y += step * p
        r -= step * q
        before, size = size, (r * r).sum()
        p = r + (size / before) * p
    return y
