"""From JSON and tensors back to values; only classes in the tables of names are built, so that no file runs code."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.missing import na
from mercer.data.objects import object_array
from mercer.data.packing import frame_from, graphs_from
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.files.checking import Checker, Dims, Unfit
from mercer.files.names import SMALL, damaged, dtype_from, home, public
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Similarity
from mercer.memory import budget, within
from mercer.rkhs.expansion import Expansion

Array = NDArray[Any]
FUNCTIONS = ("kernels.vectors.median", "kernels.tables.rule", "features.series", "features.images")
"""The modules whose public functions a file may name."""
SPACIOUS = 40
"""The memory of parsed JSON as Python objects is at most this many times its length."""


class Decoder:
    """JSON and tensors → values.

    Parameters
    ----------
    tensors : dict
        The arrays of a file by name.
    size : int
        The size of its text in bytes. A range or a repeated number may not stand for more values than the file has
        bytes.

    Attributes
    ----------
    data
        The data sets (points, frames) among the values.
    """

    def __init__(self, tensors: dict[str, Array], size: int) -> None:
        self.tensors = tensors
        self._arrays: dict[tuple[Any, ...], Array] = {}
        self._size = size + sum(A.nbytes for A in tensors.values())
        self._shared: list[Any] = []  # values that later entries may refer to, in their order
        self.data: list[Any] = []
        self._read: set[str] = set()
        self._kernels: dict[str, Any] = {}
        self._check = Checker()

    def __call__(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return [self(v) for v in node]
        if not isinstance(node, dict) or not node:
            raise damaged("an entry of an unknown kind")
        kind = next(iter(node))
        read = self._KINDS.get(kind)
        if read is None:
            raise damaged(f"an entry of the unknown kind {kind[:40]!r}")
        return read(self, node)

    def model(self, node: Any) -> Any:
        """An estimator, from what `Encoder.model` wrote."""
        if not isinstance(node, dict) or set(node) != {"class", "parameters", "fitted", "left_out"}:
            raise damaged("an incomplete model")
        cls = public(node["class"], "mercer.models")
        if not isinstance(cls, type) or not hasattr(cls, "_from_file"):
            raise damaged(f"{node['class']!r}, which is not a model")
        parts = node["parameters"], node["fitted"], node["left_out"]
        if not isinstance(parts[0], dict) or not isinstance(parts[1], dict) or not _texts(parts[2]):
            raise damaged("a model whose parts are of the wrong kind")
        parameters, fitted = ({k: self(v) for k, v in part.items()} for part in parts[:2])
        dims = self._required(node["class"], fitted) if fitted else {}  # an estimator parameter need not be fitted
        model = cls._from_file(parameters, fitted, tuple(parts[2]))
        self._check.remember(model, dims)
        return model

    def _required(self, name: str, fields: dict[str, Any]) -> Dims:
        """The dimensions of a value with these attributes, which must fit the declaration of its class."""
        try:
            return self._check(name, fields)
        except Unfit as error:
            raise damaged(str(error)) from None

    def _float(self, node: Any) -> float:
        if node["float"] not in ("nan", "inf", "-inf"):
            raise damaged(f"the number {str(node['float'])[:40]!r}")
        return float(node["float"])

    def _range(self, node: Any) -> range:
        ends = node["range"]
        if not isinstance(ends, list) or len(ends) != 3 or not all(type(v) is int and abs(v) < 2**62 for v in ends):
            raise damaged("a range of an unknown kind")
        values = range(*ends)
        if len(values) > self._size:
            raise damaged("a range that is longer than its file")
        return values

    def _dtype(self, node: Any) -> np.dtype[Any]:
        dtype = dtype_from(node["dtype"])
        if dtype is None:
            raise damaged(f"the dtype {str(node['dtype'])[:40]!r}")
        return dtype

    def _scalar(self, node: Any) -> Any:
        code, value = node["scalar"]
        dtype = self._dtype({"dtype": code})
        value = self(value)
        if not isinstance(value, (bool, int, float, str)):
            raise damaged("a scalar that is not a number or a text")
        return np.array(value, dtype=np.int64).view(dtype)[()] if dtype.kind in "mM" else dtype.type(value)

    def _tensor(self, node: Any) -> Array:
        name, order, frozen = node["tensor"], node.get("order", "C"), bool(node.get("frozen", False))
        if not isinstance(name, str) or name not in self.tensors or order not in ("C", "F"):
            raise damaged(f"the tensor {str(name)[:60]!r}, which does not exist")
        key = (name, order, frozen, node.get("dtype"), str(node.get("shape")))
        if key not in self._arrays:
            A = self.tensors[name]
            if "dtype" in node:
                A = self._viewed(A, node)
            elif order == "F":
                A = A.T
            if frozen:
                A.flags.writeable = False
            self._arrays[key] = A
        return self._arrays[key]

    def _viewed(self, A: Array, node: Any) -> Array:
        """Texts and dates, from their bytes."""
        dtype, shape = self._dtype(node), _shape(node["shape"])
        if A.ndim != 1 or A.nbytes != math.prod(shape) * dtype.itemsize:
            raise damaged("texts or dates of another size")
        if dtype.kind == "U" and A.size and int(A.max()) > 0x10FFFF:
            raise damaged("numbers that are not characters")
        values = A.view(dtype)
        return values.reshape(shape[::-1]).T if node.get("order") == "F" else values.reshape(shape)

    def _repeated(self, node: Any) -> Array:
        value, shape = self(node["repeated"]), _shape(node["shape"])
        if not isinstance(value, np.generic) or math.prod(shape) > self._size:
            raise damaged("a number that is repeated too often")
        return np.broadcast_to(value, shape)

    def _objects(self, node: Any) -> Array:
        values, shape = self(node["objects"]), _shape(node["shape"])
        if not isinstance(values, list) or math.prod(shape) != len(values):
            raise damaged("objects that do not fill their table")
        return object_array(values).reshape(shape)

    def _csr(self, node: Any) -> Any:
        data, indices, indptr = (self(part) for part in node["csr"])
        shape = _shape(node["shape"])
        if len(shape) != 2 or node["kind"] not in ("array", "matrix"):
            raise damaged("a sparse matrix of an unknown kind")
        for part, kinds in ((data, "biuf"), (indices, "i"), (indptr, "i")):
            if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in kinds:
                raise damaged("an incomplete sparse matrix")
        complete = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
        if not complete or (np.diff(indptr) < 0).any():
            raise damaged("a sparse matrix whose rows do not follow each other")
        if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= shape[1]):
            raise damaged("a sparse matrix with columns that it does not have")
        make = sp.csr_array if node["kind"] == "array" else sp.csr_matrix
        return make((data, indices, indptr), shape=shape)

    def _json(self, node: Any) -> Any:
        text = self.tensors.get(node["json"])
        # Each list is read once: lists that name each other could otherwise grow without bound.
        if text is None or text.dtype != np.uint8 or node["json"] in self._read:
            raise damaged("a list that does not exist")
        within(SPACIOUS * text.nbytes, budget(), "The objects of a model", "Raise MERCER_MEMORY if you trust the file.")
        self._read.add(node["json"])
        return self(read_json(text.tobytes()))

    def _kernel(self, node: Any) -> Any:
        text = node["kernel"]
        if "fields" in node:
            cls = public(text, "mercer.kernels")
            if not isinstance(cls, type) or not issubclass(cls, Value):
                raise damaged(f"{text!r}, which is not a kernel")
            self._shared.append(cls(**{name: self(value) for name, value in node["fields"].items()}))
            return self._shared[-1]
        from mercer.kernels.algebra.expression import parse

        if not isinstance(text, str):
            raise damaged("a kernel that is not an expression")
        if text not in self._kernels:
            self._kernels[text] = parse(text)
        return self._kernels[text]

    def _object(self, node: Any) -> Any:
        name = node["object"]
        if not isinstance(name, str) or name not in SMALL or not isinstance(node["fields"], dict):
            raise damaged(f"the unknown name {str(name)[:60]!r}")
        module, order = SMALL[name]
        short = name.partition(".")[2]
        cls = getattr(import_module(module), short)  # a module of the table, never a name in the file
        fields = {k: self(v) for k, v in node["fields"].items()}
        dims = self._required(short, fields)
        value: Any
        if order is not None:
            value = _expansion(fields) if cls is Expansion else cls(*(fields[k] for k in order))
        elif hasattr(cls, "_fields") or dataclasses.is_dataclass(cls):
            value = cls(**fields)
        else:
            value = cls.__new__(cls)
            value.__dict__.update(fields)
        self._check.remember(value, dims)
        if isinstance(value, Points):
            self.data.append(value.raw)
        self._shared.append(value)
        return value

    def _model(self, node: Any) -> Any:
        model = self.model(node["model"])
        self._shared.append(model)
        return model

    def _same(self, node: Any) -> Any:
        position = node["same"]
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(self._shared):
            raise damaged("a reference to a value that does not exist")
        return self._shared[position]

    def _frame(self, node: Any) -> Any:
        self.data.append(frame_from(node["frame"], [self(part) for part in node["columns"]]))
        return self.data[-1]

    def _graphs(self, node: Any) -> Any:
        """A list of graphs; one whose nodes exceed the file would take memory that the file does not justify."""
        parts = {name: self(part) for name, part in node["graphs"].items()}
        sizes = parts.get("n")
        if isinstance(sizes, np.ndarray) and sizes.size and sum(map(int, sizes.ravel().tolist())) > self._size:
            raise damaged("graphs with more nodes than the file has bytes")
        return graphs_from(parts)

    def _graph(self, node: Any) -> Any:
        graphs = self(node["graph"])
        if not isinstance(graphs, list) or len(graphs) != 1:
            raise damaged("a graph that is not one graph")
        return graphs[0]

    def _name(self, node: Any) -> Any:
        """A rule X → kernel, a map of series, or a class of kernels."""
        value = public(node["name"], "mercer.kernels", "mercer.features.")
        if not home(node["name"]).endswith(FUNCTIONS) and not (
            isinstance(value, type) and issubclass(value, Similarity)
        ):
            raise damaged(f"{node['name']!r}, which does not make kernels")
        return value

    _KINDS: dict[str, Callable[[Decoder, Any], Any]] = {
        "float": _float,
        "bytes": lambda self, node: bytes.fromhex(node["bytes"]),
        "range": _range,
        "dtype": _dtype,
        "type": lambda self, node: self._dtype({"dtype": node["type"]}).type,
        "scalar": _scalar,
        "tensor": _tensor,
        "objects": _objects,
        "repeated": _repeated,
        "csr": _csr,
        "json": _json,
        "frame": _frame,
        "graphs": _graphs,
        "graph": _graph,
        "kernel": _kernel,
        "object": _object,
        "same": _same,
        "missing": lambda self, node: na(),
        "name": _name,
        "model": _model,
        "tuple": lambda self, node: tuple(self(v) for v in node["tuple"]),
        "set": lambda self, node: {self(v) for v in node["set"]},
        "frozenset": lambda self, node: frozenset(self(v) for v in node["frozenset"]),
        "dict": lambda self, node: {self(k): self(v) for k, v in node["dict"]},
    }


def _expansion(fields: dict[str, Any]) -> Expansion:
    function = Expansion(*(fields[name] for name in ("kernel", "points", "coef", "tail")))
    object.__setattr__(function, "pruning", fields["pruning"])
    if not fields["coef"].flags.writeable:  # checked, and shared with the model: no copy is needed
        object.__setattr__(function, "coef", fields["coef"])
    return function


def _texts(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(v, str) for v in node)


def _shape(node: Any) -> tuple[int, ...]:
    if not isinstance(node, list) or len(node) > 32 or not all(type(v) is int and 0 <= v < 2**62 for v in node):
        raise damaged("a shape that is not a list of whole numbers")
    return tuple(node)


def read_json(text: bytes) -> Any:
    """Parse strict JSON: without repeated names, NaN and infinities."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise damaged("a repeated entry")
        return entries

    def refuse(name: str) -> Any:
        raise damaged(f"the number {name}")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise damaged(f"text that is not JSON ({type(error).__name__}: {str(error)[:80]})") from None
