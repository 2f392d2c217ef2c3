"""Many graphs as one: their disjoint union, on which kernels work in whole arrays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.graph_arguments import label_keys
from mercer.data.graphs import Graph, as_graph, at_position
from mercer.data.objects import objects_of
from mercer.errors import InvalidInput

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Union:
    """Many graphs as one, without edges between them.

    Attributes
    ----------
    nodes : array
        Graph i has the nodes nodes[i] … nodes[i + 1] − 1.
    ends, neighbours : array
        The neighbours of node v are neighbours[ends[v] : ends[v + 1]].
    labels, edge_labels : array or None
        Keys of the nodes, and of the entries of `neighbours`; None if the graphs have none.
    weights, attributes : array or None
        Of the entries of `neighbours`, and of the nodes; None if the graphs have none.
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
        keys = label_keys(labels, "Labels of nodes")
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
        advice="Add them where they are missing.",
    )
