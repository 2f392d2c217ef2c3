"""Common fragments of pairs of trees: sums over pairs of nodes, each from the pairs of their children.

A node is numbered after its children, so that one pass over the nodes of the first tree meets every pair after those
that it needs. The functions are plain Python for few nodes, and compiled by Numba for many (`trees_large`). `log` asks
for logarithms all the way, for trees whose sums overflow.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numpy as np

from . import costs
from .addresses import Array


def subset_trees(x: Any, z: Any, decay: float, log: bool, out: Array) -> None:
    """out_ij = Σ C(n, m) over nodes n of tree i and m of tree j with the same production.

    C(n, m) = decay · Π (1 + C(child of n, child of m)); a node is (keys, arities, starts, children, ends).
    """
    _run("subset", x, z, (decay,), log, out)


def partial_trees(x: Any, z: Any, decay: float, gap: float, log: bool, out: Array) -> None:
    """out_ij = Σ D(n, m) over nodes n of tree i and m of tree j with the same label.

    D(n, m) = decay · (gap² + Σ gap^(span + span') Π D(child, child')) over equally long sequences of children.
    """
    _run("partial", x, z, (decay, gap), log, out)


def _run(name: str, x: Any, z: Any, parameters: tuple[float, ...], log: bool, out: Array) -> None:
    function: Any = {"subset": subset, "partial": partial}[name]
    if len(x[0]) * len(z[0]) >= costs.INTERPRETED_NODES:
        from . import trees_large

        function = getattr(trees_large, name)
    values = np.empty(out.shape)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        function(*x, *z, *parameters, log, values)
    out[...] = values


def subset(keys, arities, starts, children, ends, keys2, arities2, starts2, children2, ends2, decay, log, out):
    nothing = -np.inf if log else 0.0
    for j in range(len(ends2) - 1):
        second, m = ends2[j], ends2[j + 1] - ends2[j]
        order = np.argsort(keys2[second : second + m])
        ordered = keys2[second : second + m][order]
        for i in range(len(ends) - 1):
            first, n = ends[i], ends[i + 1] - ends[i]
            C = np.full((n, m), nothing)
            total = nothing
            for a in range(n):
                key = keys[first + a]
                if key == 0:
                    continue
                place = np.searchsorted(ordered, key)
                while place < m and ordered[place] == key:
                    b = order[place]
                    value = np.log(decay) if log else decay
                    p, q = starts[first + a], starts2[second + b]
                    for c in range(arities[first + a]):
                        below = C[children[p + c], children2[q + c]]
                        if log:
                            value += np.logaddexp(0.0, below)
                        else:
                            value *= 1.0 + below
                    C[a, b] = value
                    total = np.logaddexp(total, value) if log else total + value
                    place += 1
            out[i, j] = total


def partial(keys, arities, starts, children, ends, keys2, arities2, starts2, children2, ends2, decay, gap, log, out):
    nothing = -np.inf if log else 0.0
    for j in range(len(ends2) - 1):
        second, m = ends2[j], ends2[j + 1] - ends2[j]
        order = np.argsort(keys2[second : second + m])
        ordered = keys2[second : second + m][order]
        for i in range(len(ends) - 1):
            first, n = ends[i], ends[i + 1] - ends[i]
            D = np.full((n, m), nothing)
            total = nothing
            for a in range(n):
                key = keys[first + a]
                place = np.searchsorted(ordered, key)
                while place < m and ordered[place] == key:
                    b = order[place]
                    p, q = starts[first + a], starts2[second + b]
                    r, s = arities[first + a], arities2[second + b]
                    # before[h + 1] = Σ gap^(k − k' + h − h') (sums that end at k', h'), over k' ≤ k and h' ≤ h
                    before = np.full(s + 1, nothing)
                    value = 2.0 * np.log(gap) if log else gap * gap
                    for k in range(r):
                        diagonal, running = before[0], nothing
                        for h in range(s):
                            below = D[children[p + k], children2[q + h]]
                            if log:
                                ending = below + 2.0 * np.log(gap) + np.logaddexp(0.0, diagonal)
                                value = np.logaddexp(value, ending)
                                running = np.logaddexp(ending, running + np.log(gap))
                                diagonal = before[h + 1]
                                before[h + 1] = np.logaddexp(running, diagonal + np.log(gap))
                            else:
                                ending = below * gap * gap * (1.0 + diagonal)
                                value += ending
                                running = ending + gap * running
                                diagonal = before[h + 1]
                                before[h + 1] = running + gap * diagonal
                    value = np.log(decay) + value if log else decay * value
                    D[a, b] = value
                    total = np.logaddexp(total, value) if log else total + value
                    place += 1
            out[i, j] = total
