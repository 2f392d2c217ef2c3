"""Graphs as frozen values, and many of them as one: their disjoint union, on which kernels work in whole arrays.

A graph here is undirected. Its nodes and edges may have labels (any hashable values), its edges weights, its nodes rows
of numbers. An edge from a node to itself makes the node a neighbour of itself, once. `graph_sources` reads graphs of
other libraries and matrices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.keys import keys_of
from mercer.data.objects import objects_of
from mercer.data.vectors import real_numbers
from mercer.errors import InvalidInput
from mercer.validation import is_whole_number
from mercer.words import shown

Array = NDArray[Any]
PLAIN = (int, str, float)
"""Types whose values are equal if and only if their keys are."""
SHOWN = 12
"""Graphs with more nodes than this are shown by their sizes."""


class Graph:
    """An undirected graph: numbered nodes 0 … n − 1, edges, and what is known about them. It cannot be changed.

    An edge may be given once, in both directions or several times; it counts once. Repetitions with different labels
    or weights are refused. An edge (v, v) makes v a neighbour of itself.

    Parameters
    ----------
    edges : array
        pairs of nodes, an array of shape (m, 2) or a list; [] for a graph without edges.
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
        pairs = _pairs(edges)
        node_labels, values = _listed(labels), _attributes(attributes)
        n = _number_of_nodes(n, pairs, node_labels, values)
        given = _listed(edge_labels)
        lengths = None if weights is None else finite_numbers(weights, "Weights of edges")
        for what, part in (("labels", given), ("weights", lengths)):
            if part is not None and np.shape(part)[:1] != (len(pairs),):
                raise InvalidInput(
                    f"Every edge must have one of the edge {what}",
                    got=f"{len(part)} {what} for {len(pairs)} edges",
                    advice="Pass one value per edge, in the order of the edges.",
                )
        pairs, first = _once(pairs, n, given, lengths)
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
        return None if self.labels is None else _keys(self.labels, "Labels of nodes")

    @cached_property
    def edge_keys(self) -> NDArray[np.uint64] | None:
        """The labels of the entries of `neighbours` as 64-bit keys."""
        return None if self.edge_labels is None else _keys(self.edge_labels, "Labels of edges")

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


@dataclass(frozen=True, eq=False)
class Union:
    """Many graphs as one, without edges between them.

    Attributes
    ----------
    nodes : graph i has the nodes nodes[i] … nodes[i + 1] − 1.
    ends, neighbours : the neighbours of node v are neighbours[ends[v] : ends[v + 1]].
    labels, edge_labels : keys of the nodes, and of the entries of `neighbours`; None if the graphs have none.
    weights, attributes : of the entries of `neighbours`, and of the nodes; None if the graphs have none.
    """

    nodes: NDArray[np.int64]
    ends: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    labels: NDArray[np.uint64] | None
    edge_labels: NDArray[np.uint64] | None
    weights: NDArray[np.float64] | None
    attributes: NDArray[np.float64] | None

    @classmethod
    def of(cls, X: Any) -> Union:
        """The union of a data set of graphs, which must all have labels (attributes), or none of them.

        If only some have weights, the edges of the others weigh 1.

        >>> pair = Union.of([Graph([(0, 1)]), Graph([(0, 1)])])
        >>> pair.nodes, pair.neighbours
        (array([0, 2, 4]), array([1, 0, 3, 2]))
        """
        graphs = [as_graph(graph, i) for i, graph in enumerate(objects_of(X, "Graphs"))]
        sizes = np.array([graph.n for graph in graphs])
        entries = np.array([len(graph.neighbours) for graph in graphs])
        nodes, starts = (np.concatenate([[0], np.cumsum(part)]) for part in (sizes, entries))
        ends = np.concatenate([[0], *(graph.ends[1:] for graph in graphs)])
        ends[1:] += np.repeat(starts[:-1], sizes)
        neighbours = np.concatenate([graph.neighbours for graph in graphs])
        neighbours += np.repeat(nodes[:-1], entries)
        attributes = _joined(graphs, "attributes", "attributes of the nodes")
        return cls(
            nodes, ends, neighbours, _label_keys(graphs), _joined(graphs, "edge_keys", "labels of the edges"),
            _weights(graphs), attributes,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.nodes) - 1

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours of every node."""
        return np.diff(self.ends)

    def of_nodes(self) -> NDArray[np.int64]:
        """The graph of every node."""
        return np.repeat(np.arange(len(self)), np.diff(self.nodes))

    def over_neighbours(self, values: Array) -> Array:
        """The sum over each node's neighbours of values given by entries of `neighbours`; unsigned numbers wrap."""
        totals = np.zeros((len(values) + 1, *values.shape[1:]), values.dtype)
        np.cumsum(values, axis=0, out=totals[1:])
        return totals[self.ends[1:]] - totals[self.ends[:-1]]


def _joined(graphs: list[Graph], name: str, what: str) -> Any:
    parts = []
    for i, graph in enumerate(graphs):
        try:
            parts.append(getattr(graph, name))
        except InvalidInput as error:
            raise at_position(error, i) from None
    _all_or_none([part is not None or not _can_have(name, graph) for part, graph in zip(parts, graphs)],
                 [part is None or not _can_have(name, graph) for part, graph in zip(parts, graphs)], what)  # fmt: skip
    present = [part for part in parts if part is not None]
    if not present:
        return None
    widths = [part.shape[1:] for part in present]
    if len(set(widths)) > 1:
        other = next(i for i, width in enumerate(widths) if width != widths[0])
        raise InvalidInput(
            "All nodes must have the same number of attributes",
            got=f"{widths[0][0]} in the first graph, {widths[other][0]} at position {other}",
            advice="Give every node the same attributes.",
        )
    return np.concatenate(present)


def _weights(graphs: list[Graph]) -> NDArray[np.float64] | None:
    if all(graph.weights is None for graph in graphs):
        return None
    return np.concatenate([np.ones(len(g.neighbours)) if g.weights is None else g.weights for g in graphs])


def _can_have(name: str, graph: Graph) -> bool:
    """Whether there is anything to label: a graph without edges says nothing about the labels of edges."""
    return name == "attributes" or len(graph.neighbours) > 0


def _label_keys(graphs: list[Graph]) -> NDArray[np.uint64] | None:
    """The keys of all nodes: each distinct label is hashed once."""
    absent = [graph.labels is None for graph in graphs]
    _all_or_none([not a for a in absent], absent, "labels of the nodes")
    if absent[0]:
        return None
    ready = [graph.__dict__.get("label_keys") for graph in graphs]
    if all(keys is not None for keys in ready):
        return np.concatenate(ready)  # type: ignore[arg-type]
    labels = list(itertools.chain.from_iterable(graph.labels or () for graph in graphs))
    try:
        keys = _keys(labels, "Labels of nodes")
    except InvalidInput:
        for i, graph in enumerate(graphs):
            try:
                _ = graph.label_keys
            except InvalidInput as error:
                raise at_position(error, i) from None
        raise
    keys.flags.writeable = False
    start = 0
    for graph in graphs:
        graph.__dict__["label_keys"] = keys[start : start + graph.n]
        start += graph.n
    return keys


def _all_or_none(with_it: list[bool], without: list[bool], what: str) -> None:
    if all(with_it) or all(without):
        return
    raise InvalidInput(
        f"Either all graphs must have {what}, or none",
        got=f"none at position {with_it.index(False)}, and some at position {without.index(False)}",
        advice="Add them where they are missing, with one label such as None where nothing is known.",
    )


def _keys(labels: Sequence[Any], what: str) -> NDArray[np.uint64]:
    """Keys of labels. Numbers and texts, the usual labels, are looked up without a look at each type."""
    types = set(map(type, labels))
    if len(types) == 1 and types <= set(PLAIN):
        distinct = list(set(labels))
        table = dict(zip(distinct, keys_of(distinct, what).tolist()))
        return np.fromiter(map(table.__getitem__, labels), np.uint64, len(labels))
    return keys_of(labels, what)


# -- arguments, checked ------------------------------------------------------------------------------------------------


def _pairs(edges: Any) -> NDArray[np.int64]:
    pairs = np.asarray(list(edges) if not isinstance(edges, np.ndarray) else edges)
    if pairs.size == 0 and pairs.ndim <= 2:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        square = pairs.ndim == 2 and pairs.shape[0] == pairs.shape[1]
        raise InvalidInput(
            "Edges must be pairs of whole numbers, the nodes that they join",
            got=f"an array of {pairs.dtype} and shape {pairs.shape}",
            advice="Use Graph.from_adjacency(A) for a matrix." if square else "Number the nodes from 0.",
        )
    if int(pairs.min()) < 0 or int(pairs.max()) >= 2**31:
        raise InvalidInput(
            "Nodes must be numbered from 0",
            got=f"node {pairs.min() if pairs.min() < 0 else pairs.max()}",
            advice="Number the nodes 0, 1, 2, ….",
        )
    return pairs.astype(np.int64)


def _listed(values: Iterable[Any] | None) -> tuple[Any, ...] | None:
    if values is None:
        return None
    return tuple(values.tolist()) if isinstance(values, np.ndarray) else tuple(values)


def finite_numbers(values: Any, what: str) -> NDArray[np.float64]:
    """A copy of the values as floats; `what` they are, for errors."""
    try:
        numbers = np.array(real_numbers(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be numbers", got=str(error), advice="Pass one float for each.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{what} must be finite", got="NaN or infinity", advice="Replace missing values first.")
    return numbers


def _attributes(values: Any) -> NDArray[np.float64] | None:
    if values is None:
        return None
    numbers = finite_numbers(values, "Attributes of nodes")
    if numbers.ndim not in (1, 2):
        raise InvalidInput(
            "Attributes of nodes must have the shape (n, d)",
            got=f"shape {numbers.shape}",
            advice="Pass a row per node.",
        )
    return numbers[:, None] if numbers.ndim == 1 else numbers


def _number_of_nodes(n: Any, pairs: Array, labels: Any, attributes: Any) -> int:
    sizes = {name: len(part) for name, part in (("labels", labels), ("attributes", attributes)) if part is not None}
    if n is not None:
        if not is_whole_number(n):
            raise InvalidInput("`n` must be a whole number", got=repr(n), advice="Pass the number of nodes.")
        sizes["n"] = int(n)
    largest = int(pairs.max()) + 1 if len(pairs) else 0
    number = next(iter(sizes.values()), largest)
    if number == 0 and largest == 0:
        raise InvalidInput(
            "A graph must have at least one node", got="a graph without nodes", advice="Leave it out, or pass n=1."
        )
    if largest > number or any(size != number for size in sizes.values()):
        parts = [f"{name} for {size} nodes" if name != "n" else f"n = {size}" for name, size in sizes.items()]
        raise InvalidInput(
            "Edges, labels and attributes must belong to the same nodes",
            got=f"{', '.join(parts)}, and edges between {largest} nodes",
            advice="Pass one label and one row of attributes per node, and number the nodes from 0.",
        )
    return number


def _once(pairs: Array, n: int, labels: Any, weights: Any) -> tuple[Array, Array]:
    """Every edge once, as (smaller, larger), and the position of its first appearance."""
    low, high = pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=0)
    codes, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    for what, part in (("label", labels), ("weight", weights)):
        if part is None or len(first) == len(pairs):
            continue
        for i, j in enumerate(first[which].tolist()):
            if i != j and part[i] != part[j]:
                raise InvalidInput(
                    f"An edge must have one {what}",
                    got=f"{shown(part[j])} and {shown(part[i])} for the edge {tuple(pairs[i].tolist())}",
                    advice="Merge parallel edges first.",
                )
    return np.column_stack([codes // n, codes % n]) if len(codes) else pairs, first
