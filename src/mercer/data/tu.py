"""Graphs in the TU format: text files NAME_A.txt, NAME_graph_indicator.txt, … in a folder or a zip archive.

Line i of A is an edge "u, v" between nodes numbered from 1 over all graphs; line v of graph_indicator is the graph of
node v. Labels and attributes stand in files of one line per node, edge or graph. Nothing in these files is executed.

Reference: Morris et al. 2020, TUDataset: a collection of benchmark datasets for learning with graphs.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.graphs import Graph
from mercer.errors import InvalidInput
from mercer.memory import budget, within
from mercer.words import one_line

Array = NDArray[Any]
PARTS = (
    "A", "graph_indicator", "graph_labels", "graph_attributes", "node_labels", "node_attributes", "edge_labels",
    "edge_attributes",
)  # fmt: skip
INDICATOR = "_graph_indicator.txt"
"""The end of the name of the file that every data set has."""
SPACIOUS = 40
"""The memory of the graphs is at most about this many times the size of the files."""


def read_tu(path: Any) -> tuple[list[Graph], Array | None]:
    """Graphs and their targets from a folder or zip archive in the TU format.

    Node labels and edge labels become labels (tuples if there are several per line), node attributes become
    attributes; edge attributes, if there is one per edge, become weights. Edges in both directions count once.

    Parameters
    ----------
    path : str or Path
        The folder or the zip archive, with files such as MUTAG_A.txt.

    Returns
    -------
    graphs : list of Graph
        The graphs, in the order of the files.
    y : array or None
        The labels of the graphs, or their attributes if there are no labels; None without both.

    Examples
    --------
    >>> import tempfile, pathlib, mercer as mc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "TWO_A.txt").write_text("1, 2\\n2, 1\\n")
    >>> _ = (folder / "TWO_graph_indicator.txt").write_text("1\\n1\\n2\\n")
    >>> _ = (folder / "TWO_graph_labels.txt").write_text("-1\\n1\\n")
    >>> mc.read_tu(folder)
    ([Graph([(0, 1)], n=2), Graph([], n=1)], array([-1,  1]))
    """
    texts = _texts(Path(path).expanduser(), str(path))
    name = f"{path}"
    graph_of = _integers(texts, "graph_indicator", name)
    if graph_of.ndim != 1 or len(graph_of) == 0:
        raise _unfit(name, "graph_indicator must have one number per line", f"shape {graph_of.shape}")
    edges = _integers(texts, "A", name).reshape(-1, 2) if texts["A"].strip() else np.empty((0, 2), np.int64)
    n, n_graphs = len(graph_of), int(graph_of.max())
    if len(edges) and (edges.min() < 1 or edges.max() > n):
        raise _unfit(name, f"edges must join nodes 1 … {n}", f"node {edges.max() if edges.min() >= 1 else edges.min()}")
    sizes = np.bincount(graph_of, minlength=n_graphs + 1)[1:] if graph_of.min() >= 1 else np.zeros(1, np.int64)
    if not sizes.all():
        raise _unfit(name, "every graph from 1 on must have nodes", f"no node of graph {int(np.argmin(sizes)) + 1}")
    y = _targets(texts, name, n_graphs)
    if (graph_of[edges[:, 0] - 1] != graph_of[edges[:, 1] - 1]).any():
        raise _unfit(name, "an edge must join nodes of one graph", "an edge between two graphs")
    return _split(graph_of - 1, sizes, edges - 1, *_details(texts, name, n, len(edges))), y


def is_tu(path: Any) -> bool:
    """Whether a folder or a zip archive holds graphs in the TU format.

    >>> is_tu("no such folder")
    False
    """
    try:
        file = Path(path).expanduser()
        if file.is_dir():
            return any(entry.name.endswith(INDICATOR) for entry in file.iterdir())
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith(INDICATOR) for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def _split(graph_of: Array, sizes: Array, edges: Array, labels: Any, edge_labels: Any, weights: Any,
           attributes: Any) -> list[Graph]:  # fmt: skip
    """The graphs, from arrays over all nodes and edges."""
    by_graph = np.argsort(graph_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    local = np.empty(len(graph_of), np.int64)
    local[by_graph] = np.arange(len(graph_of)) - np.repeat(starts[:-1], sizes)
    owner = graph_of[edges[:, 0]]
    order = np.argsort(owner, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(sizes)))])
    ends = local[edges][order]

    def part(values: Any, at: Array) -> Any:
        if values is None:
            return None
        return values[at] if isinstance(values, np.ndarray) else [values[i] for i in at.tolist()]

    graphs = []
    for i in range(len(sizes)):
        nodes, between = by_graph[starts[i] : starts[i + 1]], order[first[i] : first[i + 1]]
        graphs.append(
            Graph(
                ends[first[i] : first[i + 1]],
                labels=part(labels, nodes),
                edge_labels=part(edge_labels, between),
                weights=part(weights, between),
                attributes=part(attributes, nodes),
                n=int(sizes[i]),
            )
        )
    return graphs


def _details(texts: dict[str, str], name: str, n: int, m: int) -> tuple[Any, Any, Any, Any]:
    """Labels of nodes and edges, weights of edges, attributes of nodes."""
    labels, edge_labels = (
        _labels(texts, part, name, rows) if part in texts else None
        for part, rows in (("node_labels", n), ("edge_labels", m))
    )
    attributes = _rows(texts, "node_attributes", name, n)
    weights = _rows(texts, "edge_attributes", name, m)
    return labels, edge_labels, weights[:, 0] if weights is not None and weights.shape[1] == 1 else None, attributes


def _labels(texts: dict[str, str], part: str, name: str, rows: int) -> Any:
    values = _integers(texts, part, name)
    if len(values) != rows:
        raise _unfit(name, f"{part} must have {rows} lines", f"{len(values)} lines")
    return values if values.ndim == 1 else list(map(tuple, values.tolist()))


def _rows(texts: dict[str, str], part: str, name: str, rows: int) -> Array | None:
    if part not in texts:
        return None
    values = _table(texts[part], part, name, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if len(values) != rows:
        raise _unfit(name, f"{part} must have {rows} lines", f"{len(values)} lines")
    return values


def _targets(texts: dict[str, str], name: str, n: int) -> Array | None:
    if "graph_labels" in texts:
        y = _integers(texts, "graph_labels", name)
    elif "graph_attributes" in texts:
        y = _table(texts["graph_attributes"], "graph_attributes", name, np.float64)
    else:
        return None
    if len(y) != n:
        raise _unfit(name, f"there must be a target for each of the {n} graphs", f"{len(y)} targets")
    return y


def _integers(texts: dict[str, str], part: str, name: str) -> Array:
    return _table(texts[part], part, name, np.int64)


def _table(text: str, part: str, name: str, dtype: Any) -> Array:
    """Lines of numbers with commas between them."""
    if not text.strip():
        raise _unfit(name, f"{part} must hold numbers", "an empty file")
    try:
        return np.loadtxt(io.StringIO(text), dtype=dtype, delimiter=",", comments=None, ndmin=1)
    except (ValueError, OverflowError) as error:
        what = "whole numbers" if dtype is np.int64 else "numbers"
        raise _unfit(name, f"{part} must hold {what} with commas between them", one_line(str(error), 120)) from None


def _texts(path: Path, name: str) -> dict[str, str]:
    """The text of every part of the data set."""
    try:
        if path.is_dir():
            files = {file.name: file for file in sorted(path.iterdir()) if file.is_file()}
            return {part: _decoded(files[file].read_bytes(), name) for part, file in _named(files, name, files)}
        with zipfile.ZipFile(path) as archive:
            members = {entry.filename.rpartition("/")[2]: entry for entry in archive.infolist() if not entry.is_dir()}
            return {part: _decoded(archive.read(members[f]), name) for part, f in _named(members, name, members)}
    except FileNotFoundError:
        raise InvalidInput(f"{name} must exist", got="no such file or folder", advice="Check the path.") from None
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise _unfit(name, "it must be a readable folder or zip archive", one_line(str(error), 120)) from None


def _named(names: Any, name: str, files: dict[str, Any]) -> list[tuple[str, str]]:
    """The parts that exist, with the names of their files; their size is checked before anything is read."""
    indicators = [file for file in names if file.endswith(INDICATOR)]
    if len(indicators) != 1:
        raise _unfit(name, "it must hold one file NAME_graph_indicator.txt", f"{len(indicators)} such files")
    stem = indicators[0].removesuffix(INDICATOR)
    parts = [(part, f"{stem}_{part}.txt") for part in PARTS if f"{stem}_{part}.txt" in names]
    if "A" not in dict(parts):
        raise _unfit(name, f"it must hold the edges, {stem}_A.txt", "no such file")
    sizes = [f.file_size if isinstance(f, zipfile.ZipInfo) else f.stat().st_size for f in (files[n] for _, n in parts)]
    within(SPACIOUS * sum(sizes), budget(), f"The graphs of {name}", "Set MERCER_MEMORY to allow more.")
    return parts


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _unfit(name, "its files must be text", "bytes that are not UTF-8") from None


def _unfit(name: str, required: str, got: str) -> InvalidInput:
    return InvalidInput(
        f"{name} must hold graphs in the TU format: {required}",
        got=got,
        advice="Check the files: A, graph_indicator, graph_labels, node_labels, …, as TUDataset describes them.",
    )
