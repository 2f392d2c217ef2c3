"""Data frames and graphs as arrays and plain values, and back, for model files.

A frame comes back as the same kind of frame; without its library, as a plain table.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.frames import Table
from mercer.data.graphs import Graph
from mercer.data.objects import object_array
from mercer.errors import InvalidInput

Array = NDArray[Any]
Part = dict[str, Any]

# Types of pandas columns that hold Python values, from which they can be rebuilt.
_PANDAS = re.compile(r"object|str|string|boolean|U?Int(8|16|32|64)|Float(32|64)")
_POLARS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
LARGEST_GRAPH = 2**31
"""Nodes that a graph may have."""
_OTHER = ("Boolean", "String", "Categorical", "Date", "Time", "Null", "Object")


def frame_parts(X: Any, where: str) -> tuple[str, list[Part]]:
    """The kind of a frame, and its columns as plain values: each with its name, dtype and what it holds."""
    kind = frames.library(X)
    if kind == "table":
        return kind, [{"name": name, "dtype": str(X[name].dtype), "values": X[name]} for name in X.columns]
    if kind == "pandas":
        return kind, [_pandas_part(name, column) for name, column in zip(X.columns, frames.columns(X))]
    if kind == "polars":
        return kind, [_polars_part(column) for column in frames.columns(X)]
    raise InvalidInput(
        "A frame in a model file must be of pandas or Polars",
        got=f"`{where}`, a {type(X).__module__}.{type(X).__name__}", advice="Fit on one of these, or on an array.",
    )  # fmt: skip


def frame_from(kind: Any, parts: list[Part]) -> Any:
    """The frame that has these columns."""
    columns = [part["codes"] if "codes" in part else part["values"] for part in parts]
    plain = all(type(column) in (list, np.ndarray) for column in columns)
    if kind not in ("pandas", "polars", "table") or not plain or len({p["name"] for p in parts}) < len(parts):
        raise ValueError("a table whose columns do not fit")
    if len({len(column) for column in columns}) > 1:
        raise ValueError("a table whose columns do not fit")
    if kind != "table":
        try:
            library = import_module(kind)  # one of the two names above
        except ImportError:
            kind = "table"
        else:
            make = _pandas_column if kind == "pandas" else _polars_column
            return library.DataFrame({part["name"]: make(library, part) for part in parts})
    return Table({str(part["name"]): _plain(part) for part in parts})


def _plain(part: Part) -> Array:
    """A column as an array."""
    if "codes" in part:
        levels = np.array([*list(part["categories"]), None], dtype=object)
        return levels[np.asarray(part["codes"])]
    values = part["values"]
    return values if isinstance(values, np.ndarray) else object_array(values)


# -- pandas ------------------------------------------------------------------------------------------------------------


def _pandas_part(name: Any, column: Any) -> Part:
    dtype, part = column.dtype, {"name": name, "dtype": str(column.dtype)}
    if part["dtype"] == "category":
        levels = dtype.categories
        plain = isinstance(levels.dtype, np.dtype) and levels.dtype.kind != "O"
        values = levels.to_numpy() if plain else list(levels)
        codes = column.cat.codes.to_numpy()
        return part | {
            "codes": codes, "categories": values, "levels": str(levels.dtype), "ordered": bool(dtype.ordered)
        }  # fmt: skip
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return part | {"values": column.to_numpy()}
    if hasattr(dtype, "tz"):
        return part | {"values": frames.without_zone(column).to_numpy(), "zone": str(dtype.tz)}
    return part | {"values": list(column)}


def _pandas_column(pd: Any, part: Part) -> Any:
    if "codes" in part:
        levels = pd.Index(part["categories"], dtype=_pandas_dtype(part["levels"]))
        return pd.Categorical.from_codes(part["codes"], levels, ordered=bool(part["ordered"]))
    values = part["values"]
    if "zone" in part:
        return pd.Series(values).dt.tz_localize("UTC").dt.tz_convert(part["zone"])
    return (
        pd.Series(values) if isinstance(values, np.ndarray) else pd.Series(values, dtype=_pandas_dtype(part["dtype"]))
    )


def _pandas_dtype(text: Any) -> str | None:
    if _PANDAS.fullmatch(text):
        return str(text)
    return str(np.dtype(text)) if re.fullmatch(r"u?int\d+|float\d+|bool|datetime64\[\w+\]", text) else "object"


# -- Polars ------------------------------------------------------------------------------------------------------------


def _polars_part(column: Any) -> Part:
    part = {"name": column.name, "dtype": str(column.dtype)}
    if part["dtype"] in _POLARS and column.null_count() == 0:
        return part | {"values": column.to_numpy()}
    if part["dtype"].startswith(("Date", "Time", "Duration")):
        return part | {"values": column.to_physical().to_list()}
    if part["dtype"].startswith("Enum"):
        return part | {"values": column.to_list(), "categories": list(column.dtype.categories)}
    return part | {"values": column.to_list()}


def _polars_column(pl: Any, part: Part) -> Any:
    values, text = part["values"], part["dtype"]
    if "categories" in part:
        return pl.Series(part["name"], values, dtype=pl.Enum(part["categories"]))
    dtype = _polars_dtype(pl, text)
    if text.startswith(("Date", "Time", "Duration")):
        return pl.Series(part["name"], values, dtype=pl.Int32 if text == "Date" else pl.Int64).cast(dtype)
    return pl.Series(part["name"], values, dtype=dtype)


def _polars_dtype(pl: Any, text: Any) -> Any:
    """A type of Polars by its text, if it is one of the types known here."""
    if text in _POLARS or text in _OTHER:
        return getattr(pl, text)
    if match := re.fullmatch(r"List\((.{1,60})\)", text):
        return pl.List(_polars_dtype(pl, match[1]))
    if match := re.fullmatch(r"Datetime\(time_unit='(ms|us|ns)', time_zone=(?:None|'([\w/+-]{1,40})')\)", text):
        return pl.Datetime(match[1], match[2])
    if match := re.fullmatch(r"Duration\(time_unit='(ms|us|ns)'\)", text):
        return pl.Duration(match[1])
    raise ValueError(f"the column type {str(text)[:40]!r}")


# -- graphs ------------------------------------------------------------------------------------------------------------


def graph_parts(graphs: list[Graph]) -> Part | None:
    """Many graphs as a few arrays and lists, or None if some have labels, weights or attributes that others lack."""
    parts = [graph.arguments() for graph in graphs]
    together: Part = {
        "n": np.array([part["n"] for part in parts]),
        "m": np.array([len(part["edges"]) for part in parts]),
        "edges": np.concatenate([part["edges"] for part in parts]),
    }
    for name in ("labels", "edge_labels", "weights", "attributes"):
        of_edges = name in ("edge_labels", "weights")
        values = [part[name] for part in parts if not of_edges or len(part["edges"])]
        present = [value for value in values if value is not None]
        if not present:
            together[name] = None
        elif len(present) < len(values) or len({np.shape(value)[1:] for value in present if name == "attributes"}) > 1:
            return None
        else:
            lists = name in ("labels", "edge_labels")
            together[name] = [v for value in present for v in value] if lists else np.concatenate(present)
    return together


def graphs_from(parts: Part) -> list[Graph]:
    """The graphs that have these parts; whatever does not fit together is a ValueError."""
    if set(parts) != {"n", "m", "edges", "labels", "edge_labels", "weights", "attributes"}:
        raise ValueError("graphs of an unknown kind")
    sizes, numbers, edges = parts["n"], parts["m"], parts["edges"]
    for A, ndim in ((sizes, 1), (numbers, 1), (edges, 2)):
        if not isinstance(A, np.ndarray) or A.ndim != ndim or A.dtype != np.int64 or (A.size and A.min() < 0):
            raise ValueError("graphs whose sizes are not whole numbers")
    totals = [sum(A.tolist()) for A in (sizes, numbers)]
    labels, edge_labels, weights, attributes = (parts[n] for n in ("labels", "edge_labels", "weights", "attributes"))
    for values, total in ((labels, totals[0]), (edge_labels, totals[1]), (weights, totals[1]), (attributes, totals[0])):
        if values is not None and (not isinstance(values, (list, np.ndarray)) or len(values) != total):
            raise ValueError("graphs whose labels do not fit their nodes and edges")
    if len(sizes) != len(numbers) or len(edges) != totals[1] or max(sizes, default=0) > LARGEST_GRAPH:
        raise ValueError("graphs whose edges do not fit their sizes")
    graphs, node, edge = [], 0, 0
    for n, m in zip(sizes.tolist(), numbers.tolist()):
        nodes, between = slice(node, node + n), slice(edge, edge + m)
        graphs.append(
            Graph(
                edges[between],
                labels=None if labels is None else labels[nodes],
                edge_labels=None if edge_labels is None else edge_labels[between],
                weights=None if weights is None else weights[between],
                attributes=None if attributes is None else attributes[nodes],
                n=n,
            )
        )
        node, edge = node + n, edge + m
    return graphs
