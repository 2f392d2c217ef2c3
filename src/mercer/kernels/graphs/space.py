"""The space of graphs: small ones are drawn, and changed by one edge or one label."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.graphs import Graph
from mercer.kernels.base import Similarity
from mercer.kernels.spaces import POOL, Space, distinct

LABELS = "CNO"


class Graphs(Space):
    """Undirected graphs whose nodes and edges have labels, with one attribute per node."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return [_random(int(rng.integers(1, 7)), rng) for _ in range(n)]

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        return distinct([_random(int(rng.integers(1, max(2, length + 1))), rng) for _ in range(POOL)])

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        parts = x.arguments()
        if rng.random() < 0.5:
            parts["labels"][rng.integers(x.n)] = str(rng.choice(list(LABELS)))
            return Graph(**parts)
        edges = {tuple(edge): label for edge, label in zip(parts["edges"].tolist(), parts["edge_labels"] or [])}
        u, v = sorted(rng.integers(x.n, size=2).tolist())
        if edges.pop((u, v), None) is None and u != v:
            edges[u, v] = 1
        return _labelled(edges, parts["labels"], parts["attributes"])

    def holds(self, x: Any) -> bool:
        return isinstance(x, Graph)

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Labels refined by those of neighbours, and shortest paths; attributes, where nodes have nothing else."""
        from mercer.kernels.graphs.paths import ShortestPath
        from mercer.kernels.graphs.propagation import Propagation
        from mercer.kernels.graphs.refinement import WeisfeilerLehman, WeisfeilerLehmanAssignment

        if all(graph.labels is None and graph.attributes is not None for graph in X):
            return {"propagated attributes": Propagation(3).normalize(), "paths": ShortestPath().normalize()}
        return {
            "neighbourhoods up to 3 steps": WeisfeilerLehman(3).normalize(),
            "neighbourhoods up to 1 step": WeisfeilerLehman(1).normalize(),
            "matched neighbourhoods": WeisfeilerLehmanAssignment(3).normalize(),
            "paths": ShortestPath().normalize(),
        }


def _random(n: int, rng: np.random.Generator) -> Graph:
    """A graph in which every pair of nodes is joined with probability ½."""
    edges = {(u, v): int(rng.integers(1, 3)) for v in range(n) for u in range(v) if rng.random() < 0.5}
    return _labelled(edges, rng.choice(list(LABELS), size=n).tolist(), rng.normal(size=n))


def _labelled(edges: dict[tuple[int, int], Any], labels: list[str], attributes: Any) -> Graph:
    return Graph(list(edges), labels=labels, edge_labels=list(edges.values()), attributes=attributes)


GRAPHS = Graphs("graphs")
