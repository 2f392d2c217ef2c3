"""Shortest paths, counted by the labels of their two ends and their number of edges."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from mercer import memory
from mercer._loops import graphs as loops
from mercer.data.graph_union import Union
from mercer.errors import InvalidInput
from mercer.features.counted import mixed
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.histograms import node_labels
from mercer.kernels.graphs.space import GRAPHS
from mercer.memory import budget, within
from mercer.validation import check_number

BYTES = 80
"""Bytes per pair of nodes while they are counted."""
MOST_UNITS = 2.0**50
"""Lengths stay below this many units, so that a float64 still tells neighbouring ones apart."""
ROUNDING = 1e-9
"""Sums in another order differ by less than this share of a unit, and must not fall on two sides of a half."""


class ShortestPath(Counted):
    """Σ_(a, b, d) #abd(G)·#abd(H): how many pairs of nodes (u, v), u ≠ v, have labels a and b and distance d.

    The distance is the number of edges of a shortest path, or with `unit` its length: then the weights of edges are
    their lengths, and a distance is rounded to a multiple of the unit. Labels of edges are not used, and pairs that no
    path joins are not counted. Nodes of graphs without labels all have the same label. The cost is O(nodes · edges)
    per graph, with `unit` O(nodes · edges · log nodes).

    Parameters
    ----------
    unit : float or None
        None to count edges, or the unit in which lengths of paths are measured, > 0.

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
    >>> near, far = mc.Graph([(0, 1)], weights=[1.1]), mc.Graph([(0, 1)], weights=[7.9])
    >>> mc.ShortestPath(unit=1.0)([near, far])
    array([[4., 0.],
           [0., 4.]])
    """

    about: ClassVar[About] = About(
        "Σ_abd #abd(x)·#abd(z), labels a and b at distance d (unit)",
        "Graphs whose large-scale shape matters; slower than WeisfeilerLehman on large graphs.",
        "ShortestPath()",
        arguments={"unit": Argument(domain="> 0, or None")},
    )
    unit: float | None = None
    space: ClassVar[str] = GRAPHS

    def check(self) -> None:
        if self.unit is not None:
            self._set(unit=check_number(self.unit, "unit", above=0))

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        labels = mixed(node_labels(graphs))
        if self.unit is not None:
            _require_lengths(graphs)
        pairs = np.cumsum(np.diff(graphs.nodes) ** 2)
        parts = [
            _counted(graphs, labels, int(rows[0]), int(rows[-1]) + 1, self.unit)
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


def _counted(graphs: Union, labels: Any, first: int, last: int, unit: float | None) -> Counts:
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
    if unit is None:
        steps = mixed(np.arange(np.diff(nodes).max(), dtype=np.uint64))
        keys, ends = loops.path_keys(nodes, graphs.ends, graphs.neighbours, labels, steps)
    else:
        keys, ends = _keys_by_length(graphs, labels, first, last, unit)
    counts = Counts.of(keys, ends)  # the lowest bit of a key: equal labels; the next one: (b, a, d)
    times = np.where(counts.keys & np.uint64(1), 1, 2)
    starts = np.concatenate([[0], np.cumsum(times)])
    doubled = np.repeat(counts.keys, times)
    doubled[starts[:-1][times == 2] + 1] |= np.uint64(2)
    return Counts(doubled, np.repeat(counts.values * (3 - times), times), starts[counts.ends])


def _require_lengths(graphs: Union) -> None:
    """Raise if a weight cannot be a length, with the position of its graph."""
    if graphs.weights is not None and (graphs.weights < 0).any():
        entry = int(np.flatnonzero(graphs.weights < 0)[0])
        node = int(np.searchsorted(graphs.ends, entry, side="right")) - 1
        raise InvalidInput(
            "Weights of edges must be ≥ 0 to be lengths",
            got=f"{graphs.weights[entry]:g} in graph {int(graphs.of_nodes()[node])}",
            advice="Shift or transform the weights, or count edges: mc.ShortestPath().",
        )


def _keys_by_length(
    graphs: Union, labels: Any, first: int, last: int, unit: float
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys of all pairs of nodes that a path joins, by its length in units, and where each graph ends."""
    weights = np.ones(len(graphs.neighbours)) if graphs.weights is None else graphs.weights
    parts, ends = [np.empty(0, np.uint64)], [0]
    for i in range(first, last):
        start, stop = graphs.nodes[i], graphs.nodes[i + 1]
        rows = graphs.ends[start : stop + 1]
        entries = slice(rows[0], rows[-1])
        lengths = csr_array(
            (weights[entries], graphs.neighbours[entries] - start, rows - rows[0]), shape=(stop - start, stop - start)
        )
        _, part = connected_components(lengths, directed=False)
        with np.errstate(over="ignore"):
            far = np.floor(dijkstra(lengths) / unit + (0.5 + ROUNDING))
        u, v = np.nonzero(np.triu(part[:, None] == part, 1))
        if (far[u, v] > MOST_UNITS).any():
            raise InvalidInput(
                "Lengths of paths must be below 2⁵⁰ units",
                got=f"a longer one in graph {i}, with the unit {unit:g}",
                advice="Take a larger unit.",
            )
        steps = mixed(far[u, v].astype(np.uint64))
        parts.append(loops.pair_keys(labels[start + u], labels[start + v], steps))
        ends.append(ends[-1] + len(u))
    return np.concatenate(parts), np.array(ends)
