"""Labels of nodes and edges, counted: the simplest kernels on graphs, and the baseline for all others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.graph_union import Union
from mercer.data.keys import keys_of
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.space import GRAPHS

NO_LABEL = keys_of([None])[0]
"""The label of nodes and edges of graphs without labels."""


def node_labels(graphs: Union) -> NDArray[np.uint64]:
    """The label of every node as a key; all nodes of unlabelled graphs have the same one."""
    return np.full(graphs.nodes[-1], NO_LABEL) if graphs.labels is None else graphs.labels


class VertexHistogram(Counted):
    """Σ_a #a(G)·#a(H) over all labels a of nodes: how many pairs of nodes have the same label.

    Nodes of graphs without labels all have the same label.

    >>> import mercer as mc
    >>> water = mc.Graph([(0, 1), (0, 2)], labels="OHH")
    >>> methane = mc.Graph([(0, 1), (0, 2), (0, 3), (0, 4)], labels="CHHHH")
    >>> mc.VertexHistogram()([water, methane])
    array([[ 5.,  8.],
           [ 8., 17.]])
    """

    about: ClassVar[About] = About(
        "Σ_a #a(x)·#a(z) over labels a of nodes", "Labels of nodes, without edges: a baseline.", "VertexHistogram()"
    )
    space: ClassVar[str] = GRAPHS

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        return Counts.of(node_labels(graphs), graphs.nodes)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_a = the number of nodes with label a",
            reference="Sugiyama and Borgwardt 2015, section 2",
        )


class EdgeHistogram(Counted):
    """Σ_a #a(G)·#a(H) over all labels a of edges: how many pairs of edges have the same label.

    Edges of graphs without labels all have the same label.

    >>> import mercer as mc
    >>> ethene = mc.Graph([(0, 1)], labels="CC", edge_labels=["double"])
    >>> propene = mc.Graph([(0, 1), (1, 2)], labels="CCC", edge_labels=["double", "single"])
    >>> mc.EdgeHistogram()([ethene, propene])
    array([[1., 1.],
           [1., 2.]])
    """

    about: ClassVar[About] = About(
        "Σ_a #a(x)·#a(z) over labels a of edges", "Labels of edges, without nodes: a baseline.", "EdgeHistogram()"
    )
    space: ClassVar[str] = GRAPHS

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        sources = np.repeat(np.arange(graphs.nodes[-1]), graphs.degrees)
        once = sources <= graphs.neighbours
        labels = graphs.edge_labels
        keys = np.full(np.count_nonzero(once), NO_LABEL) if labels is None else labels[once]
        ends = np.concatenate([[0], np.cumsum(once)])[graphs.ends[graphs.nodes]]
        return Counts.of(keys, ends)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_a = the number of edges with label a",
            reference="Sugiyama and Borgwardt 2015, section 2",
        )
