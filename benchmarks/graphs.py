"""Gram matrices of graph kernels beside GraKeL's: 1,000 made molecules with 5 labels, and NCI1 if it is at hand.

Three ways are timed: from networkx objects (reading them included, for both libraries), from `mc.Graph`s (GraKeL: from
its own graphs, which it reads again), and from prepared points, where only the matrix is left. The matrices must be
equal. GraKeL's assignment kernel, which loops over pairs in Python, is run once.

    python benchmarks/graphs.py --data ../shared/data
"""

from __future__ import annotations

import argparse
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import mercer as mc
from measure import compared, heading, judge, machine, race, table

RUNS = {"mercer": 7, "mercer graphs": 7, "mercer prepared": 7, "GraKeL": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="the folder with NCI1.zip")
    parser.add_argument("--quick", action="store_true", help="100 made molecules instead of 1000: does it run?")
    parser.add_argument("--only", default="", help="only kernels whose name contains a word")
    options = parser.parse_args()
    machine()
    warnings.simplefilter("ignore")  # GraKeL warns about the attributes it does not use
    from grakel.kernels import (
        ShortestPath,
        VertexHistogram,
        WeisfeilerLehman,
        WeisfeilerLehmanOptimalAssignment,
    )

    molecules = made(100 if options.quick else 1000)
    peers: dict[str, tuple[mc.Kernel, float, float, Any, int]] = {
        "WeisfeilerLehman(5)": (
            mc.WeisfeilerLehman(5), 8, 30, lambda: WeisfeilerLehman(n_iter=5, base_graph_kernel=VertexHistogram), 3),
        "ShortestPath()": (mc.ShortestPath(), 8, 30, ShortestPath, 3),
        "WeisfeilerLehmanAssignment(5)": (
            mc.WeisfeilerLehmanAssignment(5), 100, 100, lambda: WeisfeilerLehmanOptimalAssignment(n_iter=5), 1),
    }  # fmt: skip
    for name, (kernel, aim, prepared_aim, peer, runs) in peers.items():
        if options.only in name:
            RUNS["GraKeL"] = runs
            compare(name, kernel, molecules, aim, prepared_aim, peer)
    path = Path(options.data) / "NCI1.zip"
    if path.exists():
        graphs, _ = mc.read_tu(path)
        for kernel in (mc.WeisfeilerLehman(5), mc.WeisfeilerLehmanAssignment(5)):
            if options.only not in repr(kernel):
                continue
            seconds = race({"mercer": lambda kernel=kernel: kernel(graphs)}, {"mercer": 5})["mercer"][0]
            heading(f"{kernel!r} of NCI1, {len(graphs):,} graphs")
            table(["", "seconds"], [["Mercer, from mc.Graph", f"{seconds:.2f}"]])
            judge([("one second over the time", 1.0 / seconds, 1.0)])


def compare(name: str, kernel: mc.Kernel, molecules: list[Any], aim: float, prepared_aim: float, peer: Any) -> None:
    """Time both libraries in turns, and assert that the matrices are equal."""
    from grakel import graph_from_networkx

    graphs = [mc.Graph.from_networkx(molecule) for molecule in molecules]
    points = kernel.prepare(graphs)
    results = race(
        {
            "mercer": lambda: kernel(molecules),
            "mercer graphs": lambda: kernel(graphs),
            "mercer prepared": lambda: kernel(points),
            "GraKeL": lambda: peer().fit_transform(graph_from_networkx(molecules, node_labels_tag="label")),
        },
        RUNS,
    )
    theirs, wanted = results["GraKeL"]
    for way in ("mercer", "mercer graphs", "mercer prepared"):
        np.testing.assert_array_equal(results[way][1], wanted)
    ways = {"mercer": "from networkx", "mercer graphs": "from mc.Graph", "mercer prepared": "from prepared points"}
    heading(f"{name}, {len(molecules):,} graphs; the matrices are equal")
    rows = [[f"Mercer, {words}", f"{results[way][0]:.4f}", f"{theirs / results[way][0]:.1f}×"]
            for way, words in ways.items()]  # fmt: skip
    table(["", "seconds", "Mercer is faster by"], [*rows, ["GraKeL, from networkx", f"{theirs:.3f}", ""]])
    judge([
        ("× GraKeL, from networkx", theirs / results["mercer"][0], aim),
        ("× GraKeL, from prepared points", theirs / results["mercer prepared"][0], prepared_aim),
    ])  # fmt: skip
    compared(f"{name} of networkx graphs", {"Mercer": results["mercer"][0], "GraKeL": theirs}, size=len(molecules))


def made(n: int, seed: int = 0) -> list[Any]:
    """Connected graphs of 20 to 40 nodes with few rings and five labels of unequal frequency, as networkx objects."""
    import networkx as nx

    rng, molecules = random.Random(seed), []
    for _ in range(n):
        size, graph = rng.randint(20, 40), nx.Graph()
        for v in range(size):
            graph.add_node(v, label="CNOSF"[min(4, int(rng.expovariate(1.0)))])
            if v:
                graph.add_edge(v, rng.randint(max(0, v - 4), v - 1))
        for _ in range(3):
            graph.add_edge(*rng.sample(range(size), 2))
        molecules.append(graph)
    return molecules


if __name__ == "__main__":
    main()
