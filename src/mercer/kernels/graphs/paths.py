"""Shortest paths, counted by the labels of their two ends and their number of edges."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer import memory
from mercer._loops import graphs as loops
from mercer.data.graphs import Union
from mercer.features.counted import mixed
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.histograms import node_labels
from mercer.kernels.graphs.space import GRAPHS
from mercer.memory import budget, within

BYTES = 80
"""Bytes per pair of nodes while they are counted."""


class ShortestPath(Counted):
    """Σ_(a, b, d) #abd(G)·#abd(H): how many pairs of nodes (u, v), u ≠ v, have labels a and b and distance d.

    The distance is the number of edges of a shortest path; weights and labels of edges are not used, and pairs that no
    path joins are not counted. Nodes of graphs without labels all have the same label. The cost is O(nodes · edges)
    per graph.

    References
    ----------
    Borgwardt and Kriegel 2005, Shortest-path kernels on graphs. International Conference on Data Mining.

    Examples
    --------
    >>> import mercer as mc
    >>> path, star = mc.Graph([(0, 1), (1, 2), (2, 3)]), mc.Graph([(0, 1), (0, 2), (0, 3)])
    >>> mc.ShortestPath()([path, star])
    array([[56., 60.],
           [60., 72.]])
    """

    about: ClassVar[About] = About(
        "Σ_abd #abd(x)·#abd(z), labels a and b at distance d",
        "Graphs whose large-scale shape matters; slower than WeisfeilerLehman on large graphs.",
        "ShortestPath()",
    )
    space: ClassVar[str] = GRAPHS

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        labels = mixed(node_labels(graphs))
        pairs = np.cumsum(np.diff(graphs.nodes) ** 2)
        parts = [
            _counted(graphs, labels, int(rows[0]), int(rows[-1]) + 1)
            for rows in np.split(np.arange(len(graphs)), np.flatnonzero(np.diff(pairs // memory.CACHED)) + 1)
        ]
        starts = np.cumsum([0, *(len(part.keys) for part in parts)])
        return Counts(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([[0], *(part.ends[1:] + start for part, start in zip(parts, starts))]),
        )

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_(a, b, d) = the number of pairs of nodes with labels a, b at distance d",
            condition="labels and distances with equal hashes count as one, which is an inner product, too",
            reference="Borgwardt and Kriegel 2005, lemma 3",
        )


def _counted(graphs: Union, labels: Any, first: int, last: int) -> Counts:
    """The counts of the graphs first … last − 1.

    A pair u < v stands for (u, v) and (v, u). If the labels differ, (a, b, d) and (b, a, d) are two features with the
    same count, next to each other; if they are equal, both pairs have the same feature, whose count doubles.
    """
    within(
        BYTES * int((np.diff(graphs.nodes[first : last + 1]) ** 2).sum()),
        budget(),
        f"The pairs of nodes of graph {first}" + f" to {last - 1}" * (last - first > 1),
        "Use mc.WeisfeilerLehman for graphs of this size.",
    )
    nodes = graphs.nodes[first : last + 1]
    steps = mixed(np.arange(np.diff(nodes).max(), dtype=np.uint64))
    keys, ends = loops.path_keys(nodes, graphs.ends, graphs.neighbours, labels, steps)
    counts = Counts.of(keys, ends)  # the lowest bit of a key: equal labels; the next one: (b, a, d)
    times = np.where(counts.keys & np.uint64(1), 1, 2)
    starts = np.concatenate([[0], np.cumsum(times)])
    doubled = np.repeat(counts.keys, times)
    doubled[starts[:-1][times == 2] + 1] |= np.uint64(2)
    return Counts(doubled, np.repeat(counts.values * (3 - times), times), starts[counts.ends])
