"""Graphs as frozen values.

A graph here is undirected. Its nodes and edges may have labels (any hashable values), its edges weights, its nodes rows
of numbers. An edge from a node to itself makes the node a neighbour of itself, once. `graph_sources` reads graphs of
other libraries and matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.graph_arguments import (
    as_attributes,
    as_pairs,
    finite_numbers,
    label_keys,
    listed,
    number_of_nodes,
    once,
)
from mercer.errors import InvalidInput

SHOWN = 12
"""Graphs with more nodes than this are shown by their sizes."""


class Graph:
    """An undirected graph: numbered nodes 0 … n − 1, edges, and what is known about them. It cannot be changed.

    An edge may be given once, in both directions or several times; it counts once. Repetitions with different labels
    or weights are refused. An edge (v, v) makes v a neighbour of itself.

    Parameters
    ----------
    edges : array
        Pairs of nodes, an array of shape (m, 2) or a list; [] for a graph without edges.
    labels
        One hashable value per node: text, numbers, None, tuples of these.
    edge_labels
        One hashable value per edge.
    weights : array
        One number per edge. Edges without weights weigh 1.
    attributes : array
        Numbers of every node, of shape (n, d) or (n,).
    n : int or None
        The number of nodes; by default that of `labels` or `attributes`, or the largest number in `edges` plus 1.

    Attributes
    ----------
    ends, neighbours : array
        The neighbours of node v are neighbours[ends[v] : ends[v + 1]].
    labels, attributes
        Of the nodes, or None.
    edge_labels, weights
        Of the entries of `neighbours` (every edge twice), or None.

    Examples
    --------
    >>> import mercer as mc
    >>> water = mc.Graph([(0, 1), (0, 2)], labels=["O", "H", "H"])
    >>> water
    Graph([(0, 1), (0, 2)], labels=['O', 'H', 'H'])
    >>> water.n, water.edges.tolist(), water.neighbours.tolist()
    (3, [[0, 1], [0, 2]], [1, 2, 0, 0])
    """

    ends: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    labels: tuple[Any, ...] | None
    edge_labels: tuple[Any, ...] | None
    weights: NDArray[np.float64] | None
    attributes: NDArray[np.float64] | None

    def __init__(
        self,
        edges: Any = (),
        *,
        labels: Iterable[Any] | None = None,
        edge_labels: Iterable[Any] | None = None,
        weights: Any = None,
        attributes: Any = None,
        n: int | None = None,
    ) -> None:
        pairs = as_pairs(edges)
        node_labels, values = listed(labels), as_attributes(attributes)
        n = number_of_nodes(n, pairs, node_labels, values)
        given = listed(edge_labels)
        lengths = None if weights is None else finite_numbers(weights, "Weights of edges")
        for what, part in (("labels", given), ("weights", lengths)):
            if part is not None and np.shape(part)[:1] != (len(pairs),):
                raise InvalidInput(
                    f"Every edge must have one of the edge {what}",
                    got=f"{len(part)} {what} for {len(pairs)} edges",
                    advice="Pass one value per edge, in the order of the edges.",
                )
        pairs, first = once(pairs, n, given, lengths)
        loops = pairs[:, 0] == pairs[:, 1]
        sources = np.concatenate([pairs[:, 0], pairs[~loops, 1]])
        targets = np.concatenate([pairs[:, 1], pairs[~loops, 0]])
        slots = np.concatenate([first, first[~loops]])
        order = np.lexsort((targets, sources))
        ends = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=n))]).astype(np.int64)
        slots = slots[order]
        self._set(
            ends,
            targets[order],
            node_labels,
            tuple(given[i] for i in slots.tolist()) if given else None,
            lengths[slots] if lengths is not None and len(slots) else None,
            values,
        )

    def _set(self, ends: Any, neighbours: Any, labels: Any, edge_labels: Any, weights: Any, attributes: Any) -> None:
        for part in (ends, neighbours, weights, attributes):
            if part is not None:
                part.flags.writeable = False
        self.__dict__.update(
            ends=ends, neighbours=neighbours, labels=labels, edge_labels=edge_labels, weights=weights,
            attributes=attributes,
        )  # fmt: skip

    @classmethod
    def of_neighbours(
        cls,
        degrees: Sequence[int],
        neighbours: Sequence[int],
        labels: tuple[Any, ...] | None = None,
        edge_labels: tuple[Any, ...] | None = None,
        weights: NDArray[np.float64] | None = None,
        attributes: NDArray[np.float64] | None = None,
    ) -> Graph:
        """The graph whose nodes have these numbers of neighbours, all listed in turn, each edge from both ends.

        Nothing is checked: the caller has read them from a graph.

        >>> Graph.of_neighbours([1, 1], [1, 0]).edges.tolist()
        [[0, 1]]
        """
        ends = np.zeros(len(degrees) + 1, np.int64)
        np.cumsum(degrees, out=ends[1:])
        graph = cls.__new__(cls)
        graph._set(ends, np.array(neighbours, np.int64), labels, edge_labels, weights, attributes)
        return graph

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        label: str | None = "label",
        edge_label: str | None = "label",
        weight: str | None = "weight",
        attributes: str | None = "attributes",
    ) -> Graph:
        """A graph of networkx; the parameters name the attributes of its nodes and edges, None reads none.

        An attribute that no node (or no edge) has is not read; one that only some have is refused. Kernels read a
        networkx graph with the defaults.
        """
        from mercer.data.graph_sources import from_networkx

        return from_networkx(graph, label, edge_label, weight, attributes)

    @classmethod
    def from_igraph(
        cls,
        graph: Any,
        *,
        label: str | None = "label",
        edge_label: str | None = "label",
        weight: str | None = "weight",
        attributes: str | None = "attributes",
    ) -> Graph:
        """A graph of python-igraph, read as `from_networkx` reads one of networkx."""
        from mercer.data.graph_sources import from_igraph

        return from_igraph(graph, label, edge_label, weight, attributes)

    @classmethod
    def from_adjacency(cls, A: Any, *, labels: Iterable[Any] | None = None, attributes: Any = None) -> Graph:
        """A graph from its symmetric matrix, dense or sparse: an entry that is not 0 is an edge.

        Entries other than 1 are weights.

        >>> Graph.from_adjacency([[0, 1], [1, 0]], labels="ab")
        Graph([(0, 1)], labels=['a', 'b'])
        """
        from mercer.data.graph_sources import from_adjacency

        return from_adjacency(A, labels, attributes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Graph cannot be changed: {name} is read-only; make a new Graph")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Graph cannot be changed: {name} is read-only")

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return sum(part.nbytes for part in (self.ends, self.neighbours, self.weights, self.attributes)
                   if part is not None)  # fmt: skip

    @property
    def edges(self) -> NDArray[np.int64]:
        """Every edge once, as a pair (smaller, larger) of nodes, in increasing order."""
        return self._edges()[0]

    def _edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The edges, and the position of each among the neighbours."""
        sources = np.repeat(np.arange(self.n), np.diff(self.ends))
        at = np.flatnonzero(sources <= self.neighbours)
        at = at[np.lexsort((self.neighbours[at], sources[at]))]
        return np.column_stack([sources[at], self.neighbours[at]]), at

    def arguments(self) -> dict[str, Any]:
        """The arguments with which `Graph` makes an equal graph.

        >>> Graph([(1, 0)], labels="ab").arguments()["labels"]
        ['a', 'b']
        """
        edges, at = self._edges()
        return {
            "edges": edges,
            "labels": None if self.labels is None else list(self.labels),
            "edge_labels": None if self.edge_labels is None else [self.edge_labels[i] for i in at.tolist()],
            "weights": None if self.weights is None else self.weights[at],
            "attributes": self.attributes,
            "n": self.n,
        }

    @cached_property
    def label_keys(self) -> NDArray[np.uint64] | None:
        """The labels of the nodes as 64-bit keys."""
        return None if self.labels is None else label_keys(self.labels, "Labels of nodes")

    @cached_property
    def edge_keys(self) -> NDArray[np.uint64] | None:
        """The labels of the entries of `neighbours` as 64-bit keys."""
        return None if self.edge_labels is None else label_keys(self.edge_labels, "Labels of edges")

    def __eq__(self, other: object) -> bool:
        """Whether nodes of the same numbers have the same edges, labels, weights and attributes."""
        if not isinstance(other, Graph):
            return NotImplemented
        mine, others = self.arguments(), other.arguments()
        return all(np.array_equal(mine[name], others[name]) if isinstance(mine[name], np.ndarray)
                   else mine[name] is others[name] or (others[name] is not None and mine[name] == others[name])
                   for name in mine)  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.n, self.edges.tobytes(), self.labels))

    def __repr__(self) -> str:
        if self.n > SHOWN:
            return f"Graph({self.n} nodes, {len(self.edges)} edges)"
        parts = self.arguments()
        shown = [str([tuple(edge) for edge in parts.pop("edges").tolist()])]
        if self.labels is not None or self.attributes is not None:
            del parts["n"]
        for name, value in parts.items():
            if value is not None:
                shown.append(f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r}")
        return f"Graph({', '.join(shown)})"


def as_graph(graph: Any, position: int) -> Graph:
    """One point as a graph, or an error that names its position.

    Points may be `Graph`s, graphs of networkx or igraph, and square symmetric matrices.
    """
    if isinstance(graph, Graph):
        return graph
    from mercer.data.graph_sources import read

    try:
        return read(graph)
    except InvalidInput as error:
        raise at_position(error, position) from None


def at_position(error: InvalidInput, position: int) -> InvalidInput:
    """The same error, with the position of the object."""
    return type(error)(error.required, got=f"{error.got} (the graph at position {position})", advice=error.advice)
