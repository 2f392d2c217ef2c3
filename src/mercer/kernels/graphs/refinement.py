"""Neighbourhoods of growing size, by the colour refinement of Weisfeiler and Lehman.

In every round a node gets a new label, which stands for its old one together with the labels of its neighbours (and of
the edges to them): after r rounds, the tree of all walks of r steps from the node. A label is a 64-bit number,

    l'(v) = mix(l(v) ^ mix(Σ_u mix(l(u)))),

a hash of the old label and of the sum, in any order, of hashes of the neighbours. So a label depends on its graph
alone, not on the graphs that are encoded with it, and a new graph needs no dictionary of the labels seen before. Two
different neighbourhoods share a hash with probability about 2⁻⁶⁴; even then the function stays a kernel, because an
inner product of counts is one whatever is counted together.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.graph_union import Union
from mercer.features.counted import mixed
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.histograms import node_labels
from mercer.kernels.graphs.space import GRAPHS
from mercer.memory import budget, within
from mercer.validation import check_whole_number

BYTES = 40
"""Bytes per node and round while labels are counted."""
ROUNDS = Argument(domain="whole number ≥ 0")


def refined(graphs: Union, rounds: int) -> NDArray[np.uint64]:
    """The labels of all nodes after 0, 1, …, `rounds` rounds as keys: one row per node, one column per round.

    The number of the round is part of the key, so that labels of different rounds are never counted together.
    """
    within(
        BYTES * int(graphs.nodes[-1]) * (rounds + 1),
        budget(),
        f"The labels of {graphs.nodes[-1]} nodes after {rounds} rounds",
        "Take fewer rounds, or fewer graphs at a time.",
    )
    labels = node_labels(graphs)
    keys = np.empty((len(labels), rounds + 1), np.uint64)
    keys[:, 0] = labels
    for r in range(1, rounds + 1):
        around = mixed(labels)[graphs.neighbours]
        if graphs.edge_labels is not None:
            around = mixed(around + graphs.edge_labels)
        labels = mixed(labels ^ mixed(graphs.over_neighbours(around)))
        np.bitwise_xor(labels, mixed(np.array([r], np.uint64)), out=keys[:, r])
    return keys


class WeisfeilerLehman(Counted):
    """Σ_r Σ_a #a(G)·#a(H) over all labels a of round r = 0 … h of colour refinement (the subtree kernel).

    Labels of nodes start the refinement, and labels of edges take part in it. In graphs without labels all nodes start
    with the same one, and the first round counts their degrees. A value does not depend on other graphs in the data
    set. `WeisfeilerLehman(5).normalize()` does not grow with the size of the graphs. The cost is O(h·edges) per graph.

    Parameters
    ----------
    h : int
        The number of rounds; 0 is `VertexHistogram`.

    References
    ----------
    Shervashidze et al. 2011, Weisfeiler-Lehman graph kernels. Journal of Machine Learning Research 12.

    Examples
    --------
    >>> import mercer as mc
    >>> path, star = mc.Graph([(0, 1), (1, 2), (2, 3)]), mc.Graph([(0, 1), (0, 2), (0, 3)])
    >>> mc.WeisfeilerLehman(1)([path, star])
    array([[24., 22.],
           [22., 26.]])
    """

    about: ClassVar[About] = About(
        "Σ_a #a(x)·#a(z) over labels a of rounds 0 … h",
        "Graphs with labels, such as molecules; the first kernel to try on graphs.",
        "WeisfeilerLehman(5)",
        arguments={"h": ROUNDS},
    )
    h: int = 5
    space: ClassVar[str] = GRAPHS

    def check(self) -> None:
        self._set(h=check_whole_number(self.h, "h", least=0, such_as=5))

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        return Counts.of(refined(graphs, self.h).ravel(), graphs.nodes * (self.h + 1))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_(r, a) = the number of nodes with label a in round r",
            condition=f"r = 0 … {self.h}; labels with equal hashes count as one, which is an inner product, too",
            reference="Shervashidze et al. 2011, section 3.2",
        )


class WeisfeilerLehmanAssignment(Counted):
    """Σ_r Σ_a min(#a(G), #a(H)) over all labels a of round r = 0 … h: the value of an optimal assignment.

    Every node of the smaller graph is assigned to a node of the other one so that the sum over the pairs of the number
    of rounds in which their labels agree is largest; the sum is the intersection of the two histograms. A frequent
    label counts less than in `WeisfeilerLehman`, where it counts as a product. Inputs are the same.

    Parameters
    ----------
    h : int
        The number of rounds.

    References
    ----------
    Kriege, Giscard and Wilson 2016, On valid optimal assignment kernels and applications to graph classification.

    Examples
    --------
    >>> import mercer as mc
    >>> path, star = mc.Graph([(0, 1), (1, 2), (2, 3)]), mc.Graph([(0, 1), (0, 2), (0, 3)])
    >>> mc.WeisfeilerLehmanAssignment(1)([path, star])
    array([[8., 6.],
           [6., 8.]])
    """

    about: ClassVar[About] = About(
        "Σ_a min(#a(x), #a(z)) over labels a of rounds 0 … h",
        "Graphs with labels; often better than WeisfeilerLehman where graphs differ in size.",
        "WeisfeilerLehmanAssignment(5)",
        arguments={"h": ROUNDS},
    )
    h: int = 5
    space: ClassVar[str] = GRAPHS

    def check(self) -> None:
        self._set(h=check_whole_number(self.h, "h", least=0, such_as=5))

    def encode(self, X: Any) -> Counts:
        graphs = Union.of(X)
        return unary(Counts.of(refined(graphs, self.h).ravel(), graphs.nodes * (self.h + 1)))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of indicators, min(m, n) = Σ_j 1[m ≥ j] 1[n ≥ j]: phi(G)_(r, a, j) = 1[#a(G) ≥ j]",
            condition=f"r = 0 … {self.h}; labels with equal hashes count as one, which is an inner product, too",
            reference="Kriege, Giscard and Wilson 2016, section 4.2",
        )


def unary(counts: Counts) -> Counts:
    """Each count c as c features (g, 1), …, (g, c) of value 1, so that inner products are Σ_g min(c, c').

    >>> counts = Counts.of(np.array([7, 7, 5], np.uint64), np.array([0, 3]))
    >>> unary(counts).values
    array([1., 1., 1.])
    """
    times = counts.values.astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(times)])
    which = np.arange(starts[-1]) - np.repeat(starts[:-1], times)
    keys = mixed(np.repeat(counts.keys, times) + mixed(which.astype(np.uint64)))
    return Counts.of(keys, starts[counts.ends])
