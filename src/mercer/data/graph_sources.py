"""Graphs from other libraries (networkx, igraph) and from matrices. No library is imported here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.graph_arguments import finite_numbers
from mercer.data.graphs import Graph, as_graph
from mercer.errors import InvalidInput
from mercer.validation import real_numbers

_NONE = object()  # an attribute that is not there
_KNOWN: dict[type, str] = {}  # the library of every class that was seen


def library(x: Any) -> str:
    """The library of a graph: "networkx" or "igraph"; "" for any other object.

    >>> library(1)
    ''
    """
    kind = type(x)
    if kind not in _KNOWN:
        homes = [base.__module__.partition(".")[0] for base in kind.__mro__ if base.__name__ == "Graph"]
        _KNOWN[kind] = next((home for home in homes if home in ("networkx", "igraph")), "")
    return _KNOWN[kind]


def frozen(x: Any, position: int) -> Any:
    """A graph of another library as a `Graph`, which later changes do not reach; anything else unchanged."""
    return as_graph(x, position) if library(x) else x


def read(graph: Any) -> Graph:
    """A graph of any source that is not a `Graph` yet."""
    match library(graph):
        case "networkx":
            return from_networkx(graph, "label", "label", "weight", "attributes")
        case "igraph":
            return from_igraph(graph, "label", "label", "weight", "attributes")
    if sp.issparse(graph) or (isinstance(graph, np.ndarray) and graph.ndim == 2):
        return from_adjacency(graph, None, None)
    raise InvalidInput(
        "Every point must be a graph: a mc.Graph, a graph of networkx or igraph, or a symmetric matrix",
        got=f"a {type(graph).__name__}",
        advice="Convert it with mc.Graph(edges, labels=labels).",
    )


def from_networkx(
    graph: Any, label: str | None, edge_label: str | None, weight: str | None, attributes: str | None
) -> Graph:
    """A graph of networkx, with the attributes of these names."""
    _require(graph, "networkx")
    if graph.is_directed():
        raise _directed("graph.to_undirected()")
    data = list(graph.nodes.data())
    if not data:
        raise _empty()
    names, details = zip(*data)
    labels = _column(details, label, "node")
    values = _column(details, attributes, "node")
    rows = list(map(list, map(_second, graph.adjacency())))
    if graph.is_multigraph():
        return _from_multigraph(graph, names, (labels, values), edge_label, weight)
    flat = list(chain.from_iterable(rows))
    if names != tuple(range(len(names))):
        flat = list(map(dict(zip(names, range(len(names)))).__getitem__, flat))
    edge_labels = weights = None
    between = [d for _, row in graph.adjacency() for d in row.values()] if flat else []
    if any(between):
        edge_labels, weights = _column(between, edge_label, "edge"), _column(between, weight, "edge")
    return Graph.of_neighbours(
        list(map(len, rows)), flat, None if labels is None else tuple(labels),
        None if edge_labels is None else tuple(edge_labels),
        None if weights is None else finite_numbers(weights, "Weights of edges"), _rows(values),
    )  # fmt: skip


def _second(pair: Any) -> Any:
    return pair[1]


def _from_multigraph(
    graph: Any, names: tuple[Any, ...], nodes: tuple[Any, Any], edge_label: str | None, weight: str | None
) -> Graph:
    """Parallel edges count once, if their labels and weights agree."""
    numbers = dict(zip(names, range(len(names))))
    edges = list(graph.edges(data=True))
    details = [d for _, _, d in edges]
    return Graph(
        [(numbers[u], numbers[v]) for u, v, _ in edges], labels=nodes[0],
        edge_labels=_column(details, edge_label, "edge"), weights=_column(details, weight, "edge"),
        attributes=_rows(nodes[1]), n=len(names),
    )  # fmt: skip


def from_igraph(
    graph: Any, label: str | None, edge_label: str | None, weight: str | None, attributes: str | None
) -> Graph:
    """A graph of python-igraph, with the attributes of these names."""
    _require(graph, "igraph")
    if graph.is_directed():
        raise _directed("graph.as_undirected()")
    if graph.vcount() == 0:
        raise _empty()

    def column(sequence: Any, name: str | None) -> Any:
        return sequence[name] if name is not None and name in sequence.attributes() else None

    values = column(graph.vs, attributes)
    return Graph(
        graph.get_edgelist(), labels=column(graph.vs, label), edge_labels=column(graph.es, edge_label),
        weights=column(graph.es, weight), attributes=_rows(values), n=graph.vcount(),
    )  # fmt: skip


def from_adjacency(A: Any, labels: Iterable[Any] | None, attributes: Any) -> Graph:
    """A graph from a symmetric matrix, whose entries other than 0 are edges."""
    try:
        matrix = sp.coo_array(A) if sp.issparse(A) else np.asarray(real_numbers(A), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "An adjacency matrix must hold numbers", got=str(error), advice="Pass 1 for an edge, 0 for none."
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(
            "An adjacency matrix must be square",
            got=f"shape {matrix.shape}",
            advice="Pass one row and one column per node; for lists of edges use mc.Graph(edges).",
        )
    if matrix.shape[0] == 0:
        raise _empty()
    entries = sp.csr_array(matrix)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    if not np.isfinite(entries.data).all():
        raise InvalidInput("An adjacency matrix must be finite", got="NaN or infinity", advice="Pass 0 for no edge.")
    if (entries != entries.T).nnz:
        raise InvalidInput(
            "The adjacency matrix of an undirected graph must be symmetric",
            got="a matrix that is not",
            advice="Pass A + A.T, or np.maximum(A, A.T), if the directions do not matter.",
        )
    upper = sp.coo_array(sp.triu(entries))
    weights = None if (upper.data == 1).all() else upper.data
    edges = np.column_stack(upper.coords).astype(np.int64)
    return Graph(edges, labels=labels, weights=weights, attributes=attributes, n=matrix.shape[0])


def _column(details: Any, name: str | None, what: str) -> list[Any] | None:
    """An attribute of all nodes (or edges), None if none has it."""
    if name is None:
        return None
    values = [d.get(name, _NONE) for d in details]
    absent = values.count(_NONE)
    if absent == len(values):
        return None
    if absent:
        raise InvalidInput(
            f"Either all {what}s of a graph must have the attribute {name!r}, or none",
            got=f"{absent} of {len(values)} {what}s without it",
            advice="Set it everywhere, or name another attribute in mc.Graph.from_networkx.",
        )
    return values


def _rows(values: Any) -> Any:
    """The attributes of all nodes as rows."""
    if values is None:
        return None
    widths = {np.size(row) for row in values}
    if len(widths) > 1:
        raise InvalidInput(
            "All nodes must have the same number of attributes",
            got=f"{min(widths)} to {max(widths)}",
            advice="Give every node the same attributes.",
        )
    return finite_numbers([np.ravel(row).tolist() for row in values], "Attributes of nodes")


def _require(graph: Any, wanted: str) -> None:
    if library(graph) != wanted:
        raise InvalidInput(
            f"Graph.from_{wanted} reads graphs of {wanted}",
            got=f"a {type(graph).__module__}.{type(graph).__name__}",
            advice="Use mc.Graph(edges, labels=labels) for edges, or Graph.from_adjacency(A) for a matrix.",
        )


def _directed(how: str) -> InvalidInput:
    return InvalidInput(
        "Graphs must be undirected", got="a directed graph", advice=f"Pass {how} if the directions do not matter."
    )


def _empty() -> InvalidInput:
    return InvalidInput("A graph must have at least one node", got="a graph without nodes", advice="Leave it out.")
