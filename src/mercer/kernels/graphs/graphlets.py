"""Small connected subgraphs, counted exactly from degrees, triangles and common neighbours."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.graph_union import Union
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.graphs.space import GRAPHS
from mercer.validation import check_whole_number

NAMES = {
    3: ("path", "triangle"),
    4: ("path", "star", "cycle", "triangle with a tail", "cycle with a diagonal", "complete"),
}
"""The connected graphs of k nodes, in the order of their counts."""


class Graphlet(Counted):
    """Σ_s #s(G)·#s(H) over the connected graphs s of k nodes: how often s is an induced subgraph.

    There are two graphlets of 3 nodes (path, triangle) and six of 4. They are counted exactly, from degrees, triangles
    and common neighbours, without visiting each subgraph. Labels, weights and edges from a node to itself are not
    used. `Graphlet(4).normalize()` compares the shares of the graphlets. Five nodes are not offered: there are 21
    connected graphs of that size, and their counts need subgraphs of four nodes at every edge, not only sums over nodes
    and edges.

    Parameters
    ----------
    k : int
        The number of nodes of the subgraphs, 3 or 4.

    References
    ----------
    Shervashidze et al. 2009, Efficient graphlet kernels for large graph comparison. Ahmed et al. 2015, Efficient
    graphlet counting for large networks.

    Examples
    --------
    >>> import mercer as mc
    >>> square, triangle = mc.Graph([(0, 1), (1, 2), (2, 3), (3, 0)]), mc.Graph([(0, 1), (1, 2), (2, 0)])
    >>> mc.Graphlet(3)([square, triangle])
    array([[16.,  0.],
           [ 0.,  1.]])
    """

    about: ClassVar[About] = About(
        "Σ_s #s(x)·#s(z) over connected graphs s of k nodes",
        "Graphs without labels that differ in their local structure.",
        "Graphlet(4)",
        arguments={"k": Argument(domain="whole number, 3 or 4")},
    )
    k: int = 3
    space: ClassVar[str] = GRAPHS

    def check(self) -> None:
        self._set(k=check_whole_number(self.k, "k", least=3, most=4, such_as=3))

    def encode(self, X: Any) -> Counts:
        counts = graphlets(Union.of(X), self.k)
        rows, types = np.nonzero(counts)
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(counts)))])
        return Counts(types.astype(np.uint64), counts[rows, types], ends)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(G)_s = the number of induced subgraphs of G that are isomorphic to s",
            condition=f"s connected, of {self.k} nodes",
            reference="Shervashidze et al. 2009, section 2",
        )


def graphlets(graphs: Union, k: int) -> NDArray[np.float64]:
    """The number of induced subgraphs of every type in every graph, in the order of `NAMES`.

    First all subgraphs are counted, whether other edges join their nodes or not; then those of types with more edges
    are taken away, as often as they contain the type.
    """
    n, graph_of = int(graphs.nodes[-1]), graphs.of_nodes()
    ones = np.ones(len(graphs.neighbours), np.int64)
    A = sp.csr_array((ones, graphs.neighbours, graphs.ends), shape=(n, n), copy=True)
    A.setdiag(0)
    A.eliminate_zeros()
    degrees = A.sum(axis=1)
    u, v = sp.coo_array(A).coords
    once = u < v
    u, v = u[once], v[once]
    between = sp.csr_array(A[u].multiply(A[v]))  # the common neighbours of the ends of every edge
    common = np.asarray(between.sum(axis=1)).ravel()

    def per_graph(where: Any, values: Any) -> NDArray[np.float64]:
        return np.bincount(graph_of[where], values, minlength=len(graphs)).astype(np.float64)

    nodes = np.arange(n)
    triangles = per_graph(u, common) / 3
    if k == 3:
        return np.column_stack([per_graph(nodes, _choose(degrees, 2)) - 3 * triangles, triangles])
    at_node = np.bincount(u, common, n) + np.bincount(v, common, n)  # twice the triangles at a node
    two_steps = sp.coo_array(sp.triu(A @ A, 1))
    complete = per_graph(u, np.asarray((between @ A).multiply(between).sum(axis=1)).ravel()) / 12
    diagonal = per_graph(u, _choose(common, 2)) - 6 * complete
    cycle = per_graph(two_steps.coords[0], _choose(two_steps.data, 2)) / 2 - diagonal - 3 * complete
    tail = per_graph(nodes, at_node / 2 * (degrees - 2)) - 4 * diagonal - 12 * complete
    star = per_graph(nodes, _choose(degrees, 3)) - tail - 2 * diagonal - 4 * complete
    ways = per_graph(u, (degrees[u] - 1) * (degrees[v] - 1))
    path = ways - 3 * triangles - 2 * tail - 4 * cycle - 6 * diagonal - 12 * complete
    return np.column_stack([path, star, cycle, tail, diagonal, complete])


def _choose(n: Any, k: int) -> NDArray[np.float64]:
    n = np.asarray(n, np.float64)
    return n * (n - 1) / 2 if k == 2 else n * (n - 1) * (n - 2) / 6
