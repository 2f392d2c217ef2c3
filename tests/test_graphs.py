"""Kernels on graphs: against naive references, under renumbering, in models, files and frames."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import mercer as mc
from mercer import memory
from mercer.data.graph_union import Union
from mercer.kernels.graphs import refinement
from mercer.kernels.graphs.graphlets import graphlets
from mercer.kernels.graphs.space import GRAPHS
from mercer.testing import check_laws

KERNELS = [
    mc.VertexHistogram(), mc.EdgeHistogram(), mc.WeisfeilerLehman(3), mc.WeisfeilerLehmanAssignment(3),
    mc.ShortestPath(), mc.Graphlet(3), mc.Graphlet(4), mc.Propagation(2, width=0.7), mc.RandomWalk(0.01),
]  # fmt: skip


def name_of(kernel):
    return repr(kernel)


def drawn(n, seed=0, low=1, high=9, density=0.35, edge_labels=True):
    """Random graphs with labels of nodes and edges, some without edges, some not connected."""
    rng, graphs = np.random.default_rng(seed), []
    for _ in range(n):
        size = int(rng.integers(low, high))
        edges = [e for e in itertools.combinations(range(size), 2) if rng.random() < density]
        graphs.append(
            mc.Graph(
                edges,
                labels=rng.choice(list("CNO"), size=size).tolist(),
                edge_labels=rng.integers(1, 3, size=len(edges)).tolist() if edge_labels else None,
                attributes=rng.normal(size=(size, 2)),
            )
        )
    return graphs


def renumbered(graph, order):
    """The same graph, in which node v has the number order[v]."""
    parts = graph.arguments()
    parts["edges"] = np.asarray(order)[parts["edges"]]
    back = np.argsort(order)
    parts["labels"] = [parts["labels"][v] for v in back]
    parts["attributes"] = parts["attributes"][back]
    return mc.Graph(**parts)


def adjacency(graph):
    A = np.zeros((graph.n, graph.n))
    for u, v in graph.edges:
        A[u, v] = A[v, u] = 1.0
    return A


# -- references --------------------------------------------------------------------------------------------------------


def refined_naively(graph, h):
    """The labels of all rounds as nested tuples, which are their own dictionary."""
    labels = list(graph.labels)
    counts = Counter((0, label) for label in labels)
    between = dict(zip(map(tuple, graph.edges.tolist()), graph.arguments()["edge_labels"] or []))
    for r in range(1, h + 1):
        around = [
            tuple(sorted(repr((labels[v], between.get((min(u, v), max(u, v)))))
                         for v in graph.neighbours[graph.ends[u] : graph.ends[u + 1]].tolist()))
            for u in range(graph.n)
        ]  # fmt: skip
        labels = list(zip(labels, around))
        counts.update((r, label) for label in labels)
    return counts


def paths_naively(graph):
    D = np.where(adjacency(graph) > 0, 1.0, np.inf)
    np.fill_diagonal(D, 0.0)
    for k in range(graph.n):
        D = np.minimum(D, D[:, k, None] + D[k])
    pairs = itertools.permutations(range(graph.n), 2)
    return Counter((graph.labels[u], graph.labels[v], D[u, v]) for u, v in pairs if np.isfinite(D[u, v]))


def graphlets_naively(graph, k):
    """Induced subgraphs by their sorted degrees, which tell the connected graphs of up to four nodes apart."""
    A, types = adjacency(graph), {3: [(1, 1, 2), (2, 2, 2)]}.get(
        k, [(1, 1, 2, 2), (1, 1, 1, 3), (2, 2, 2, 2), (1, 2, 2, 3), (2, 2, 3, 3), (3, 3, 3, 3)]
    )  # fmt: skip
    counts = Counter(tuple(sorted(A[np.ix_(s, s)].sum(axis=0))) for s in itertools.combinations(range(graph.n), k))
    return [float(counts[degrees]) for degrees in types]


def walks_naively(x, z, decay, labels=True):
    pairs = [(u, v) for u in range(x.n) for v in range(z.n) if not labels or x.labels[u] == z.labels[v]]
    A, B = adjacency(x), adjacency(z)
    W = np.array([[A[u, s] * B[v, t] for s, t in pairs] for u, v in pairs]).reshape(len(pairs), len(pairs))
    return np.linalg.solve(np.eye(len(pairs)) - decay * W, np.ones(len(pairs))).sum()


def inner(a, b):
    return float(sum(count * b[g] for g, count in a.items()))


def table(values, X, Z):
    return np.array([[values(x, z) for z in Z] for x in X])


@pytest.mark.thorough
@pytest.mark.parametrize("n", [7, 150])
def test_weisfeiler_lehman_counts_neighbourhoods(n):
    graphs, h = drawn(n, high=9 if n < 100 else 60, density=0.35 if n < 100 else 0.05), 3
    counts = [refined_naively(graph, h) for graph in graphs]
    np.testing.assert_array_equal(mc.WeisfeilerLehman(h)(graphs), table(inner, counts, counts))
    least = table(lambda a, b: float((a & b).total()), counts, counts)
    np.testing.assert_array_equal(mc.WeisfeilerLehmanAssignment(h)(graphs), least)
    np.testing.assert_array_equal(mc.WeisfeilerLehman(0)(graphs), mc.VertexHistogram()(graphs))


def test_edges_are_counted_once():
    graphs = drawn(9)
    counts = [Counter(graph.arguments()["edge_labels"] or []) for graph in graphs]
    np.testing.assert_array_equal(mc.EdgeHistogram()(graphs), table(inner, counts, counts))
    triangle = mc.Graph([(0, 1), (1, 2), (2, 0), (2, 2)])
    assert mc.EdgeHistogram()([triangle])[0, 0] == 16.0


@pytest.mark.parametrize("n", [9, 90])
def test_shortest_paths_are_those_of_floyd_and_warshall(n):
    graphs = drawn(n, seed=1, high=9 if n < 50 else 60, density=0.3 if n < 50 else 0.05)
    assert (sum(graph.n**2 for graph in graphs) > 2**16) == (n > 50)  # both the NumPy and the compiled loop
    counts = [paths_naively(graph) for graph in graphs]
    np.testing.assert_array_equal(mc.ShortestPath()(graphs), table(inner, counts, counts))


def weighted(graph, weights):
    return mc.Graph(**(graph.arguments() | {"weights": weights}))


def test_shortest_paths_by_their_lengths():
    nx = pytest.importorskip("networkx")
    graphs, rng = drawn(9, seed=1), np.random.default_rng(1)
    np.testing.assert_array_equal(mc.ShortestPath(unit=1.0)(graphs), mc.ShortestPath()(graphs))
    graphs = [weighted(g, rng.choice([0.0, 0.5, 1.3, 4.0], size=len(g.edges))) for g in graphs]
    counts = []
    for graph in graphs:
        G, edge_weights = nx.Graph(), [] if graph.weights is None else graph.arguments()["weights"]
        G.add_nodes_from(range(graph.n))
        G.add_weighted_edges_from((*e, w) for e, w in zip(graph.edges.tolist(), edge_weights))
        lengths = dict(nx.all_pairs_dijkstra_path_length(G))
        found = [(u, v, int(np.floor(lengths[u][v] / 0.5 + 0.5 + 1e-9))) for u in G for v in lengths[u] if u != v]
        counts.append(Counter((graph.labels[u], graph.labels[v], d) for u, v, d in found))
    np.testing.assert_array_equal(mc.ShortestPath(unit=0.5)(graphs), table(inner, counts, counts))
    check_laws(mc.ShortestPath(unit=0.5), graphs)


def test_lengths_of_paths_that_are_refused():
    good, bad = (mc.Graph([(0, 1)], weights=[w]) for w in (1.0, -2.0))
    with pytest.raises(mc.InvalidInput, match="got -2 in graph 1"):
        mc.ShortestPath(unit=1.0)([good, bad])
    with pytest.raises(mc.InvalidInput, match="a longer one in graph 0"):
        mc.ShortestPath(unit=1e-20)([good])
    with pytest.raises(mc.InvalidInput, match="larger unit"):
        mc.ShortestPath(unit=1e-320)([good])
    with pytest.raises(mc.InvalidInput, match="`unit`"):
        mc.ShortestPath(unit=0.0)
    assert mc.ShortestPath(unit=1.0)([mc.Graph([], n=1), mc.Graph([], n=2)]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_shortest_paths_in_several_parts(monkeypatch):
    graphs = drawn(20, seed=2)
    whole = mc.ShortestPath()(graphs)
    monkeypatch.setattr(memory, "CACHED", 100)
    np.testing.assert_array_equal(mc.ShortestPath()(graphs), whole)


@pytest.mark.parametrize("k", [3, 4])
def test_graphlets_are_the_induced_subgraphs(k):
    graphs = [g for d in (0.0, 0.2, 0.5, 0.8, 1.0) for g in drawn(4, seed=int(10 * d), high=10, density=d)]
    counts = np.array([graphlets_naively(graph, k) for graph in graphs])
    np.testing.assert_array_equal(graphlets(Union.of(graphs), k), counts)
    np.testing.assert_array_equal(mc.Graphlet(k)(graphs), counts @ counts.T)


@pytest.mark.parametrize("n", [8, 40])
def test_walks_solve_the_product_graph(n):
    graphs, decay = drawn(n, seed=4, high=8), 0.02
    wanted = table(lambda x, z: walks_naively(x, z, decay), graphs[:8], graphs[:8])
    np.testing.assert_allclose(mc.RandomWalk(decay)(graphs)[:8, :8], wanted, rtol=1e-12)
    bare = [mc.Graph(graph.edges, n=graph.n) for graph in graphs[:8]]
    wanted = table(lambda x, z: walks_naively(x, z, decay, labels=False), bare, bare)
    np.testing.assert_allclose(mc.RandomWalk(decay)(bare), wanted, rtol=1e-12)
    alike = [mc.Graph(graph.edges, labels=["C"] * graph.n) for graph in bare]
    np.testing.assert_allclose(mc.RandomWalk(decay)(alike), wanted, rtol=1e-12)


def test_weights_multiply_along_walks():
    light, heavy = mc.Graph([(0, 1)], weights=[1.0]), mc.Graph([(0, 1)], weights=[3.0])
    k = mc.RandomWalk(0.1)
    np.testing.assert_allclose(k([light], [heavy]), [[4 / (1 - 0.3)]], rtol=1e-14)
    labelled = [mc.Graph(g.edges, labels="ab", weights=g.arguments()["weights"]) for g in (light, heavy)]
    np.testing.assert_allclose(k(labelled)[0, 1], 2 / (1 - 0.3), rtol=1e-14)


def test_walks_that_do_not_converge_are_refused():
    star = mc.Graph([(0, i) for i in range(1, 11)], labels="a" * 11)
    with pytest.raises(mc.InvalidInput, match=r"decay < 0\.01"):
        mc.RandomWalk(0.01)([star])
    assert mc.RandomWalk(0.0099)([star])[0, 0] > 121 / 11
    with pytest.raises(mc.InvalidInput, match="labels in one of them"):
        mc.RandomWalk(0.001)([star], [mc.Graph([(0, 1)])])


@pytest.mark.parametrize("labels", [None, "aaaaaaaaa"])
def test_walks_near_the_limit_are_enclosed(labels):
    """All walks of a graph of nine nodes with six neighbours each: Σ_l decayˡ·(9·6ˡ)² = 81/(1 − 36·decay)."""
    graph = mc.Graph([(i, (i + step) % 9) for i in range(9) for step in (1, 2, 3)], labels=labels)
    for margin in (1e-2, 1e-5, 1e-8):
        decay = (1 - margin) / 36
        value = mc.RandomWalk(decay).enclose(graph, graph)
        assert 81 / (1 - 36 * Fraction(decay)) in value
        assert value.width < value.upper / 1000
    with pytest.raises(mc.InvalidInput, match="clearly below"):
        mc.RandomWalk((1 - 1e-12) / 36)([graph])


def test_propagation_averages_over_neighbours():
    ring = mc.Graph([(i, (i + 1) % 6) for i in range(6)], attributes=np.arange(6.0))
    other = mc.Graph(ring.edges, attributes=[2.5] * 6)
    k = mc.Propagation(40, width=0.5)
    K = k([ring, other])
    assert (
        K[0, 1] > 10 * mc.Propagation(0, width=0.5)([ring, other])[0, 1]
    )  # the ring tends to its mean, 2.5, or a wave
    assert (mc.Propagation(3, seed=1)([ring]) != mc.Propagation(3, seed=2)([ring])).any()
    alone = mc.Graph([], attributes=[[1.0, 2.0]])
    assert mc.Propagation(3)([alone])[0, 0] == 4.0  # it keeps its attributes
    with pytest.raises(mc.InvalidInput, match="graphs without attributes"):
        k([mc.Graph([(0, 1)])])
    with pytest.raises(mc.InvalidInput, match="wider bins"):
        mc.Propagation(1, width=1e-300)([ring])


def test_bins_do_not_depend_on_the_other_graphs():
    rng = np.random.default_rng(0)
    graphs = [mc.Graph(g.edges, attributes=rng.normal(size=(g.n, 17)), n=g.n) for g in drawn(40, seed=3)]
    k = mc.Propagation(2, width=1e-13)
    whole = k.encode(graphs)
    for i, graph in enumerate(graphs):
        alone = k.encode([graph])
        np.testing.assert_array_equal(alone.keys, whole.encoded_rows([i]).keys)
    with pytest.raises(mc.InvalidInput, match="beyond 2⁵⁰"):
        mc.Propagation(2, width=1e-17)(graphs)


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_laws(kernel):
    check_laws(kernel, drawn(8, seed=5), drawn(4, seed=6))
    check_laws((0.5 * kernel + 1.0).normalize() * mc.VertexHistogram(), drawn(6, seed=5), drawn(4, seed=6))
    assert kernel.proof().valid
    assert mc.parse(repr(kernel)) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_numbers_of_nodes_do_not_matter(kernel):
    rng, graphs = np.random.default_rng(7), drawn(12, seed=7)
    others = [renumbered(graph, rng.permutation(graph.n)) for graph in graphs]
    assert any(graph != other for graph, other in zip(graphs, others))
    np.testing.assert_allclose(kernel(others, graphs), kernel(graphs), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_values_do_not_depend_on_the_other_graphs(kernel):
    graphs = drawn(30, seed=8, high=25, density=0.15)
    K = kernel.replace(decay=1e-4)(graphs) if isinstance(kernel, mc.RandomWalk) else kernel(graphs)
    kernel = kernel.replace(decay=1e-4) if isinstance(kernel, mc.RandomWalk) else kernel
    np.testing.assert_allclose(kernel([graphs[3]], [graphs[5]])[0, 0], K[3, 5], rtol=1e-13)
    np.testing.assert_allclose(kernel(graphs[20:], graphs[:7]), K[20:, :7], rtol=1e-13)


def test_an_unlucky_hash_keeps_it_a_kernel(monkeypatch):
    graphs = drawn(30, seed=9)
    lucky = mc.WeisfeilerLehman(3)(graphs)
    monkeypatch.setattr(refinement, "mixed", lambda keys: keys & np.uint64(1))
    for kernel in (mc.WeisfeilerLehman(3), mc.WeisfeilerLehmanAssignment(3)):
        K = kernel(graphs)
        assert (K == K.T).all()
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
        np.testing.assert_array_equal(np.diagonal(K), kernel.diag(graphs))
    assert (mc.WeisfeilerLehman(3)(graphs) >= lucky).all()  # features that fall together only add products
    assert (mc.WeisfeilerLehman(3)(graphs) > lucky).any()


def test_refutation_finds_what_is_not_a_kernel():
    assert not mc.refute(mc.WeisfeilerLehman(1), seconds=0.3).refuted
    apart = mc.refute(mc.FromFunction(lambda x, z: float(abs(x.n - z.n))), space="graphs", seconds=5.0)
    assert apart.refuted
    assert "Graph(" in str(apart)


def test_mutations_are_graphs_of_the_space():
    rng = np.random.default_rng(0)
    graph, seen = GRAPHS.sample(None, 1, rng)[0], set()
    for _ in range(50):
        graph = GRAPHS.mutated(graph, None, "", rng)
        seen.add(graph)
    assert len(seen) > 20
    mc.WeisfeilerLehman(2)(list(seen))


def test_gradient_by_decay_without_labels():
    bare = [mc.Graph(graph.edges, n=graph.n) for graph in drawn(6, seed=10)]
    assert "gradient" in check_laws(mc.RandomWalk(0.015), bare)
    assert len(mc.RandomWalk(mc.Fixed(0.01)).gradient(bare, np.ones((6, 6)))) == 0


def test_features_are_explicit():
    graphs = drawn(12, seed=11)
    for kernel in (mc.WeisfeilerLehman(2), mc.ShortestPath(), mc.Graphlet(4)):
        phi = kernel.features(graphs)
        np.testing.assert_allclose(phi(graphs) @ phi(graphs).T, kernel(graphs))


def test_the_training_side_is_encoded_once(monkeypatch):
    calls = []
    encode = mc.WeisfeilerLehman.encode
    monkeypatch.setattr(mc.WeisfeilerLehman, "encode", lambda self, X: calls.append(len(X)) or encode(self, X))
    graphs, kernel = drawn(30, seed=12), mc.WeisfeilerLehman(2)
    train = kernel.prepare(graphs[:20])
    for graph in graphs[20:]:
        kernel([graph], train)
    assert calls == [20] + [1] * 10


@pytest.mark.parametrize("wrong", [{"h": -1}, {"h": 1.5}, {"h": True}, {"h": "2"}])
def test_rounds_are_whole_numbers(wrong):
    with pytest.raises(mc.InvalidInput, match="`h` must be a whole number ≥ 0"):
        mc.WeisfeilerLehman(**wrong)
    with pytest.raises(mc.InvalidInput, match="from 3 to 4"):
        mc.Graphlet(5)


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    """Graphs with and without a triangle of equal labels: a question that counts of labels alone cannot answer."""
    graphs = drawn(60, seed=13, low=4, high=9, density=0.3)
    y = np.array([len(graph.edges) / graph.n for graph in graphs])
    return graphs, y, np.where(y > np.median(y), "many", "few")


@pytest.mark.parametrize("kernel", [k for k in KERNELS if not isinstance(k, mc.VertexHistogram)], ids=name_of)
def test_files(task, kernel, tmp_path):
    graphs, _, labels = task
    model = mc.SVC(kernel.normalize() + 0.1, C=10.0).fit(graphs[:40], labels[:40])
    model.save(tmp_path / "m")
    again = mc.load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(graphs[40:]), model.decision_function(graphs[40:]))
    assert all(isinstance(graph, mc.Graph) for graph in again.function_.points.raw)


def test_models(task, tmp_path):
    graphs, y, labels = task
    kernel = mc.WeisfeilerLehman(2).normalize()
    regressors = [mc.KernelRidge(kernel, alpha=0.01), mc.GaussianProcessRegressor(kernel, alpha=0.1)]
    for model in regressors:
        model.fit(graphs[:45], y[:45])
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(mc.load(tmp_path / "m").predict(graphs[45:]), model.predict(graphs[45:]))
    assert mc.KernelNeighborsClassifier(kernel).fit(graphs, labels).score(graphs, labels) > 0.6
    assert mc.KernelPCA(kernel, n_components=2).fit_transform(graphs).shape == (60, 2)
    assert cross_val_score(mc.SVC(kernel, C=10.0), graphs, labels, cv=3).mean() > 0.6
    pipeline = make_pipeline(mc.KernelPCA(kernel, n_components=5), mc.Ridge(alpha=1.0)).fit(graphs, y)
    assert pipeline.predict(graphs[:3]).shape == (3,)
    search = GridSearchCV(mc.KernelRidge(mc.WeisfeilerLehman(1), alpha=1.0), {"kernel__h": [0, 2]}, cv=3)
    assert search.fit(graphs, y).best_params_["kernel__h"] in (0, 2)


def test_rounds_inside_normalize_are_tuned(task):
    graphs, _, labels = task
    grid = {"kernel__kernel__h": [1, 2, 3], "C": [1, 10]}
    tuned = mc.tune(mc.SVC(mc.WeisfeilerLehman(3).normalize()), graphs, labels, grid=grid, cv=3)
    assert tuned.kernel_.kernel.h in (1, 2, 3)
    assert tuned.C in (1, 10)
    assert tuned.score(graphs, labels) > 0.8


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_a_frame(task, library, tmp_path):
    graphs, y, _ = task
    size = [float(graph.n) for graph in graphs]
    cells = graphs if library is pd else pl.Series("graph", graphs, dtype=pl.Object)
    frame = library.DataFrame({"graph": cells, "size": size})
    kernel = mc.WeisfeilerLehman(2).on("graph") + mc.Gaussian(2.0).on("size")
    np.testing.assert_array_equal(mc.WeisfeilerLehman(2).on("graph")(frame), mc.WeisfeilerLehman(2)(graphs))
    model = mc.KernelRidge(kernel, alpha=0.1).fit(frame, y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(mc.load(tmp_path / "m").predict(frame), model.predict(frame))
