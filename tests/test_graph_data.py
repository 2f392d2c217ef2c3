"""Graphs as data: where they come from, what is refused and why, and how they are kept."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer as mc
from forged import changed, moved
from mercer.data.graph_union import Union
from mercer.data.graphs import as_graph
from mercer.data.packing import graph_parts, graphs_from
from mercer.data.points import owned
from mercer.files.reading import Decoder
from mercer.files.writing import Encoder

WATER = mc.Graph(
    [(0, 1), (0, 2)], labels="OHH", edge_labels=[1, 1], weights=[0.5, 2.0], attributes=[[1.0], [2.0], [3.0]]
)


def test_a_graph_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot be changed"):
        WATER.labels = ()
    with pytest.raises(AttributeError, match="cannot be changed"):
        del WATER.labels
    for part in (WATER.ends, WATER.neighbours, WATER.weights, WATER.attributes):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 9
    again = pickle.loads(pickle.dumps(WATER))
    assert again == WATER
    assert hash(again) == hash(WATER)
    assert eval(repr(WATER), {"Graph": mc.Graph}) == WATER
    assert repr(mc.Graph([(0, 1)], n=30)) == "Graph(30 nodes, 1 edges)"


def test_equality_is_by_content():
    edges = [(0, 1), (1, 2)]
    base = mc.Graph(edges, labels="abc")
    assert base == mc.Graph([(2, 1), (1, 0), (0, 1)], labels=("a", "b", "c"))
    assert base != mc.Graph(edges, labels="abd")
    assert base != mc.Graph(edges)
    assert base != mc.Graph([(0, 1)], labels="abc")
    assert mc.Graph(edges, weights=[1, 2]) != mc.Graph(edges, weights=[2, 1])
    assert mc.Graph(edges) != 1


def test_edges_count_once_and_loops_make_neighbours():
    graph = mc.Graph([(0, 1), (1, 0), (0, 1), (2, 2)])
    assert graph.edges.tolist() == [[0, 1], [2, 2]]
    assert [graph.neighbours[a:b].tolist() for a, b in zip(graph.ends, graph.ends[1:])] == [[1], [0], [2]]
    plain, loop = mc.Graph([(0, 1)]), mc.Graph([(0, 1), (1, 1)])
    np.testing.assert_array_equal(mc.ShortestPath()([plain]), mc.ShortestPath()([loop]))
    assert mc.WeisfeilerLehman(1)([plain], [loop])[0, 0] < mc.WeisfeilerLehman(1)([plain])[0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "at least one node"),
        ({"edges": [(0, 1, 2)]}, "pairs of whole numbers"),
        ({"edges": [(0.0, 1.0)]}, "pairs of whole numbers"),
        ({"edges": np.eye(3)}, "from_adjacency"),
        ({"edges": [(-1, 0)]}, "numbered from 0, got node -1"),
        ({"edges": [(0, 2**40)]}, "numbered from 0"),
        ({"edges": [(0, 3)], "labels": "abc"}, "labels for 3 nodes, and edges between 4 nodes"),
        ({"edges": [(0, 1)], "labels": "abc", "n": 2}, "labels for 3 nodes, n = 2"),
        ({"edges": [(0, 1)], "n": 1.5}, "`n` must be a whole number"),
        ({"edges": [(0, 1)], "edge_labels": "ab"}, "2 labels for 1 edges"),
        ({"edges": [(0, 1)], "weights": [1.0, 2.0]}, "2 weights for 1 edges"),
        ({"edges": [(0, 1)], "weights": [np.nan]}, "Weights of edges must be finite"),
        ({"edges": [(0, 1)], "weights": ["x"]}, "Weights of edges must be numbers"),
        ({"edges": [(0, 1)], "attributes": [0.0, np.inf]}, "Attributes of nodes must be finite"),
        ({"edges": [(0, 1)], "attributes": np.zeros((2, 1, 1))}, r"shape \(n, d\)"),
        ({"edges": [(0, 1), (1, 0)], "edge_labels": "ab"}, "one label, got 'a' and 'b' for the edge"),
        ({"edges": [(0, 1), (1, 0)], "weights": [1, 2]}, "one weight"),
    ],
)
def test_graphs_that_are_refused(arguments, message):
    with pytest.raises(mc.InvalidInput, match=message):
        mc.Graph(**arguments)


GOOD = mc.Graph([(0, 1)], labels="ab")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (3, "a int .the graph at position 1"),
        ([(0, 1)], "a list .the graph at position 1"),
        (np.zeros((2, 3)), "must be square.*position 1"),
        (np.triu(np.ones((3, 3))), "must be symmetric.*position 1"),
        (np.full((2, 2), np.nan), "must be finite.*position 1"),
        (np.zeros((0, 0)), "at least one node.*position 1"),
        (mc.Graph([(0, 1)], labels=[["x"], "b"]), "Labels of nodes must be text.*position 1"),
        (mc.Graph([(0, 1)], labels=[float("nan"), 1.0]), "NaN.*position 1"),
        (mc.Graph([(0, 1)]), "labels of the nodes, or none, got none at position 1"),
        (mc.Graph([(0, 1)], labels="ab", edge_labels=[1]), "labels of the edges"),
        (mc.Graph([(0, 1)], labels="ab", edge_labels=[{}]), "Labels of edges must be text.*position 1"),
        (mc.Graph([(0, 1)], labels="ab", attributes=[1.0, 2.0]), "attributes of the nodes, or none, got none at"),
    ],
)  # fmt: skip
def test_points_that_are_refused(graph, message):
    with pytest.raises(mc.InvalidInput, match=message):
        mc.WeisfeilerLehman(1)([GOOD, graph, GOOD])


def test_a_single_graph_is_not_a_data_set():
    with pytest.raises(mc.InvalidInput, match="a single Graph"):
        mc.WeisfeilerLehman(1)(GOOD)


def test_numbers_of_attributes_agree():
    graphs = [mc.Graph([(0, 1)], attributes=np.ones((2, d))) for d in (1, 2)]
    with pytest.raises(mc.InvalidInput, match="1 in the first graph, 2 at position 1"):
        mc.Propagation(1)(graphs)


def test_labels_of_any_hashable_kind():
    labels = ["a", 1, 1.0, None, ("a", 1), frozenset({2}), True, np.int64(1)]
    graph = mc.Graph([], labels=labels)
    assert mc.VertexHistogram()([graph])[0, 0] == 4**2 + 4  # 1, 1.0, True and np.int64(1) are equal
    texts = [mc.Graph([], labels=["1"]), mc.Graph([], labels=[1])]
    np.testing.assert_array_equal(mc.VertexHistogram()(texts), np.eye(2))
    unlabelled = mc.Graph([(0, 1)]), mc.Graph([(0, 1)], labels=[None, None])
    assert mc.WeisfeilerLehman(2)(unlabelled[:1], unlabelled[1:])[0, 0] == 12.0


def test_matrices_dense_and_sparse():
    A = np.array([[0, 1, 0], [1, 0, 2], [0, 2, 1.0]])
    graph = mc.Graph.from_adjacency(A, labels="abc")
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert graph.arguments()["weights"].tolist() == [1.0, 2.0, 1.0]
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        assert mc.Graph.from_adjacency(form(A), labels="abc") == graph
    bare = mc.Graph.from_adjacency(A)
    for X in ([A], A[None], [sp.csr_array(A)]):
        np.testing.assert_array_equal(mc.WeisfeilerLehman(2)(X), mc.WeisfeilerLehman(2)([bare]))
    assert mc.Graph.from_adjacency(A > 0).weights is None


def test_edges_without_weights_weigh_one():
    A = np.array([[0, 1], [1, 0.0]])
    k = mc.RandomWalk(0.1)
    np.testing.assert_allclose(k([A, 2 * A]), [[4 / 0.9, 4 / 0.8], [4 / 0.8, 4 / 0.6]], rtol=1e-14)
    np.testing.assert_array_equal(k([A, 2 * A])[:1, 1:], k([A], [2 * A]))
    assert Union.of([A, 2 * A, np.zeros((2, 2))]).weights.tolist() == [1.0, 1.0, 2.0, 2.0]


# -- networkx and igraph -----------------------------------------------------------------------------------------------


def test_networkx():
    nx = pytest.importorskip("networkx")
    G = nx.Graph()
    G.add_node("o", label="O", attributes=[1.0])
    G.add_node("h", label="H", attributes=[2.0])
    G.add_node("i", label="H", attributes=[3.0])
    G.add_edge("i", "o", label=1, weight=2.0)
    G.add_edge("o", "h", label=1, weight=0.5)
    assert as_graph(G, 0) == WATER
    assert mc.Graph.from_networkx(G, edge_label=None, weight=None, attributes=None) == mc.Graph(
        [(0, 1), (0, 2)], labels="OHH"
    )
    nx.set_node_attributes(G, {"o": 8, "h": 1, "i": 1}, "atom")
    assert mc.Graph.from_networkx(G, label="atom").labels == (8, 1, 1)
    assert mc.Graph.from_networkx(nx.path_graph(4)) == mc.Graph([(0, 1), (1, 2), (2, 3)])
    loop = nx.Graph([(0, 0), (0, 1)])
    assert mc.Graph.from_networkx(loop) == mc.Graph([(0, 0), (0, 1)])
    assert mc.Graph.from_networkx(nx.MultiGraph([(0, 1), (0, 1)])) == mc.Graph([(0, 1)])


def test_networkx_graphs_that_are_refused():
    nx = pytest.importorskip("networkx")
    parallel = nx.MultiGraph()
    parallel.add_edge(0, 1, label="a")
    parallel.add_edge(0, 1, label="b")
    partly = nx.path_graph(3)
    partly.nodes[1]["label"] = "x"
    wordy = nx.path_graph(2)
    wordy.edges[0, 1]["weight"] = "heavy"
    ragged = nx.path_graph(2)
    nx.set_node_attributes(ragged, {0: [1.0], 1: [1.0, 2.0]}, "attributes")
    for graph, message in [
        (nx.DiGraph([(0, 1)]), r"a directed graph \(the graph at position 1\)\. Pass graph\.to_undirected"),
        (nx.Graph(), "without nodes .the graph at position 1"),
        (parallel, "one label.*position 1"),
        (partly, "2 of 3 nodes without it .the graph at position 1"),
        (wordy, "Weights of edges must be numbers.*position 1"),
        (ragged, "same number of attributes.*position 1"),
    ]:
        with pytest.raises(mc.InvalidInput, match=message):
            mc.WeisfeilerLehman(1)([nx.path_graph(2), graph])
    with pytest.raises(mc.InvalidInput, match="reads graphs of networkx"):
        mc.Graph.from_networkx(WATER)


def test_igraph():
    ig = pytest.importorskip("igraph")
    G = ig.Graph(3, [(0, 2), (1, 0)])
    G.vs["label"], G.vs["attributes"] = ["O", "H", "H"], [[1.0], [2.0], [3.0]]
    G.es["label"], G.es["weight"] = [1, 1], [2.0, 0.5]
    assert as_graph(G, 0) == WATER
    with pytest.raises(mc.InvalidInput, match=r"directed graph .the graph at position 0"):
        mc.WeisfeilerLehman(1)([ig.Graph([(0, 1)], directed=True)])
    with pytest.raises(mc.InvalidInput, match="without nodes"):
        mc.WeisfeilerLehman(1)([ig.Graph()])


def test_later_changes_do_not_reach_a_model():
    nx = pytest.importorskip("networkx")
    graphs = [nx.cycle_graph(n) for n in (3, 4, 5, 6)] + [nx.star_graph(n) for n in (3, 4, 5, 6)]
    y = np.arange(8.0)
    table = np.empty((8, 1), object)
    table[:, 0] = graphs
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frames = [pd.DataFrame({"g": graphs}), pl.DataFrame({"g": pl.Series("g", graphs, dtype=pl.Object)})]
    kernel = mc.WeisfeilerLehman(2)
    models = [mc.KernelRidge(kernel, alpha=0.1).fit(X, y) for X in (graphs, table, *frames)]
    new = [mc.Graph([(0, 1), (1, 2)])]
    asked = [new, new, pd.DataFrame({"g": new}), pl.DataFrame({"g": pl.Series("g", new, dtype=pl.Object)})]
    before = [model.predict(X) for model, X in zip(models, asked)]
    for graph in graphs:
        graph.add_edges_from([(0, 9), (9, 8)])
    for model, X, value in zip(models, asked, before):
        np.testing.assert_array_equal(model.predict(X), value)
        np.testing.assert_array_equal(value, before[0])
    assert all(isinstance(graph, mc.Graph) for graph in owned(graphs))
    matrix = sp.csr_array(np.ones((2, 2)))
    assert owned([matrix])[0] is not matrix


# -- model files -------------------------------------------------------------------------------------------------------


def round_trip(value):
    encoder = Encoder()
    node = json.loads(json.dumps(encoder(value, "value")))
    return Decoder(encoder.tensors, 10_000)(node)


def test_graphs_in_files():
    many = [WATER, mc.Graph([], labels=[("a", 1)], attributes=[0.0]), WATER]
    assert round_trip(WATER) == WATER
    assert round_trip(many) == many
    mixed = [WATER, mc.Graph([(0, 1)]), mc.Graph([], n=2)]
    assert graph_parts(mixed) is None
    assert round_trip(mixed) == mixed
    assert round_trip([WATER, 1]) == [WATER, 1]
    assert len(Encoder().tensors) == 0
    encoder = Encoder()
    encoder([mc.Graph([(0, 1)], labels="ab")] * 500, "graphs")
    assert len(encoder.tensors) < 8  # together, not one by one


@pytest.mark.parametrize(
    "change",
    [
        {"n": np.array([3, 10**12])}, {"n": np.array([-1, 4])}, {"n": np.array([3])}, {"n": np.array([1.5, 1.5])},
        {"m": np.array([5, -3])}, {"m": np.array([9, 9])}, {"edges": np.full((3, 2), 7)}, {"edges": None},
        {"edges": np.zeros((3, 3), int)}, {"labels": ["a"]}, {"labels": 4}, {"weights": np.array(["x", "y", "z"])},
        {"attributes": np.full((5, 1), np.nan)}, {"edge_labels": [1]}, {"more": 1},
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(change):
    parts = graph_parts([WATER, mc.Graph([(0, 1)], labels="ab", edge_labels=[2], weights=[1.0], attributes=[1.0, 2.0])])
    assert len(graphs_from(parts)) == 2
    with pytest.raises(ValueError, match=r"graph|Graph|[Ww]eights|[Aa]ttributes|[Ee]dges|Nodes|integer"):
        graphs_from({**parts, **change})


@pytest.mark.thorough
def test_forged_files(tmp_path):
    graphs = [mc.Graph([(0, 1), (1, 2)], labels=label, weights=[1.0, 2.0]) for label in ("abc", "abb", "aab", "bbb")]
    model = mc.KernelRidge(mc.WeisfeilerLehman(2), alpha=0.1).fit(graphs, np.arange(4.0))
    model.save(tmp_path / "m")
    data, rng = (tmp_path / "m").read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        (tmp_path / "forged").write_bytes(moved(data, rng))
        try:
            mc.load(tmp_path / "forged").predict(graphs)
        except mc.InvalidInput:
            refused += 1
    assert refused > 50

    def enlarge(tree):
        tree["points_"] = {"graphs": {"n": {"repeated": {"scalar": ["<i8", 2**40]}, "shape": [4]}}}

    (tmp_path / "forged").write_bytes(changed(data, "fitted", enlarge))
    with pytest.raises(mc.InvalidInput):
        mc.load(tmp_path / "forged")


# -- the TU format -----------------------------------------------------------------------------------------------------

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 4\n4, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "6\n7\n6\n8\n6\n",
    "edge_labels": "1\n1\n2\n2\n1\n1\n",
    "node_attributes": "0.5, 1\n1.5, 1\n2.5, 1\n3.5, 1\n4.5, 1\n",
    "edge_attributes": "1\n1\n3\n3\n1\n1\n",
}


def folder_of(path, files):
    path.mkdir()
    for part, text in files.items():
        (path / f"DS_{part}.txt").write_text(text)
    (path / "README.txt").write_text("About the data.")
    return path


def test_the_tu_format(tmp_path):
    folder = folder_of(tmp_path / "DS", FILES)
    graphs, y = mc.read_tu(folder)
    first = mc.Graph([(0, 1), (1, 2)], labels=[6, 7, 6], edge_labels=[1, 2], weights=[1.0, 3.0],
                     attributes=[[0.5, 1.0], [1.5, 1.0], [2.5, 1.0]])  # fmt: skip
    assert graphs[0] == first
    assert graphs[1].labels == (8, 6)
    assert y.tolist() == [1, -1]
    with zipfile.ZipFile(tmp_path / "DS.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"DS/{file.name}")
    zipped, targets = mc.read_tu(tmp_path / "DS.zip")
    assert zipped == graphs
    assert targets.tolist() == [1, -1]
    assert mc.SVC(mc.WeisfeilerLehman(1)).fit(graphs, y).predict(zipped).tolist() == [1, -1]


def test_the_tu_format_without_targets(tmp_path):
    bare = {part: FILES[part] for part in ("A", "graph_indicator")}
    assert mc.read_tu(folder_of(tmp_path / "a", bare))[1] is None
    graphs, y = mc.read_tu(
        folder_of(tmp_path / "b", {**bare, "graph_attributes": "0.5\n1.5\n", "node_labels": "1, 2\n" * 5})
    )
    assert y.tolist() == [0.5, 1.5]
    assert graphs[0].labels == ((1, 2),) * 3
    graphs, _ = mc.read_tu(folder_of(tmp_path / "c", {"A": "", "graph_indicator": "2\n1\n"}))
    assert [graph.n for graph in graphs] == [1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": "1, 9\n"}, "must join nodes 1 … 5, got node 9"),
        ({"A": "0, 1\n"}, "got node 0"),
        ({"A": "1, 4\n", "edge_labels": None, "edge_attributes": None}, "an edge between two graphs"),
        ({"A": None}, "DS_A.txt"),
        ({"A": "one, two\n"}, "A must hold whole numbers"),
        ({"graph_indicator": "1\n1\n1\n3\n3\n"}, "no node of graph 2"),
        ({"graph_indicator": "0\n1\n1\n2\n2\n"}, "every graph from 1 on"),
        ({"graph_indicator": ""}, "an empty file"),
        ({"graph_indicator": None}, "0 such files"),
        ({"graph_labels": "1\n"}, "each of the 2 graphs, got 1 targets"),
        ({"node_labels": "1\n"}, "node_labels must have 5 lines, got 1 lines"),
        ({"node_attributes": "nan\n" * 5}, "Attributes of nodes must be finite"),
        ({"edge_labels": "1\n" * 5}, "edge_labels must have 6 lines"),
        ({"edge_labels": "1\n2\n2\n2\n1\n1\n"}, "one label"),
    ],
)
def test_the_tu_format_damaged(tmp_path, change, message):
    files = {part: text for part, text in {**FILES, **change}.items() if text is not None}
    with pytest.raises(mc.InvalidInput, match=message):
        mc.read_tu(folder_of(tmp_path / "DS", files))


def test_what_is_no_data_set(tmp_path):
    with pytest.raises(mc.InvalidInput, match="no such file or folder"):
        mc.read_tu(tmp_path / "none")
    (tmp_path / "text.zip").write_text("not a zip archive")
    with pytest.raises(mc.InvalidInput, match="readable folder or zip archive"):
        mc.read_tu(tmp_path / "text.zip")
    with pytest.raises(mc.InvalidInput, match="0 such files"):
        mc.read_tu(tmp_path)


def test_large_archives_are_refused_before_they_are_read(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "DS.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("DS_A.txt", "1, 1\n" * 10**6)
        archive.writestr("DS_graph_indicator.txt", "1\n")
    monkeypatch.setenv("MERCER_MEMORY", "1000000")
    with pytest.raises(mc.InvalidInput, match="MERCER_MEMORY"):
        mc.read_tu(tmp_path / "DS.zip")


def test_a_union_keeps_graphs_apart():
    union = Union.of([WATER, WATER])
    assert union.of_nodes().tolist() == [0, 0, 0, 1, 1, 1]
    assert union.neighbours.tolist() == [1, 2, 0, 0, 4, 5, 3, 3]
    assert union.degrees.tolist() == [2, 1, 1, 2, 1, 1]
    assert union.over_neighbours(np.ones(8)).tolist() == [2, 1, 1, 2, 1, 1]


def test_the_command_line_reads_graphs(tmp_path, capsys):
    from mercer.cli.app import run

    rng, edges, graph_of, start = np.random.default_rng(0), [], [], 1
    for i in range(40):
        n = int(rng.integers(4, 8))
        edges += [(start + k, start + k + 1) for k in range(n - 1)] + [(start + n - 1, start)] * (i % 2)
        graph_of += [i + 1] * n
        start += n
    files = {
        "A": "".join(f"{u}, {v}\n" for u, v in edges),
        "graph_indicator": "".join(f"{g}\n" for g in graph_of),
        "graph_labels": "".join(f"{i % 2}\n" for i in range(40)),
    }
    folder, model = str(folder_of(tmp_path / "RINGS", files)), str(tmp_path / "rings.mercer")
    assert run(["fit", folder, "--kernel", "WeisfeilerLehman(2)", "--model", "svm", "--out", model]) == 0
    said = capsys.readouterr()
    assert "40 graphs in the TU format" in said.err
    assert "WeisfeilerLehman(h=2)" in said.out
    assert run(["predict", model, folder]) == 0
    assert capsys.readouterr().out.split()[1:] == [str(i % 2) for i in range(40)]
    assert run(["evaluate", model, folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert run(["fit", folder, "--time", "8", "--out", model, "--force"]) == 0
    assert "4 kernels to try (graphs, compared as wholes)" in capsys.readouterr().out, "as AutoClassifier does"
    (tmp_path / "RINGS" / "DS_graph_labels.txt").unlink()
    assert run(["fit", folder]) != 0
    assert "no graph labels" in capsys.readouterr().err
    assert run(["predict", model, folder]) == 0


def test_models_name_the_position_of_a_graph_that_cannot_be_read():
    nx = pytest.importorskip("networkx")
    for bad, words in ((nx.Graph(), "without nodes"), (nx.DiGraph([(0, 1)]), "directed")):
        graphs = [nx.path_graph(2), bad]
        frame = pd.DataFrame({"molecule": graphs})
        with pytest.raises(mc.InvalidInput, match=f"{words}.*position 1"):
            mc.SVC(mc.WeisfeilerLehman(1)).fit(graphs, [0, 1])
        with pytest.raises(mc.InvalidInput, match=f"{words}.*position 1"):
            mc.SVC(mc.WeisfeilerLehman(1).on("molecule")).fit(frame, [0, 1])
