"""JSON and tensors as values again: built from the tables of names alone, so that nothing a file holds is called."""

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
from mercer.data.packing import frame_from
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.files.checking import Checker, Dims, Unfit
from mercer.files.names import SMALL, damaged, dtype_from, home, public
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Similarity
from mercer.memory import budget, within
from mercer.rkhs.expansion import Expansion

Array = NDArray[Any]
# JSON takes up to so many times its length in memory, as Python objects.
SPACIOUS = 40


class Decoder:
    """JSON and tensors → values.

    Parameters
    ----------
    tensors : the arrays of a file by name.
    size : bytes of its text. No range and no repeated number stands for more values than the file has bytes.

    Attributes
    ----------
    data : the data sets (points, frames) among them.
    """

    def __init__(self, tensors: dict[str, Array], size: int) -> None:
        self.tensors = tensors
        self._arrays: dict[tuple[Any, ...], Array] = {}
        self._size = size + sum(A.nbytes for A in tensors.values())
        self._made: list[Any] = []
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
            raise damaged("an entry of no known kind")
        kind = next(iter(node))
        read = self._KINDS.get(kind)
        if read is None:
            raise damaged(f"an entry of the unknown kind {kind[:40]!r}")
        return read(self, node)

    def model(self, node: Any) -> Any:
        """An estimator, from what `Encoder.model` wrote."""
        if not isinstance(node, dict) or set(node) != {"class", "parameters", "fitted", "left_out"}:
            raise damaged("a model without its parts")
        cls = public(node["class"], "mercer.models")
        if not isinstance(cls, type) or not hasattr(cls, "_from_file"):
            raise damaged(f"{node['class']!r}, which is no model")
        parts = node["parameters"], node["fitted"], node["left_out"]
        if not isinstance(parts[0], dict) or not isinstance(parts[1], dict) or not _texts(parts[2]):
            raise damaged("a model whose parts are of the wrong kind")
        parameters, fitted = ({k: self(v) for k, v in part.items()} for part in parts[:2])
        dims = self._required(node["class"], fitted) if fitted else {}  # a parameter that is not fitted itself
        model = cls._from_file(parameters, fitted, tuple(parts[2]))
        self._check.remember(model, dims)
        return model

    def _required(self, name: str, fields: dict[str, Any]) -> Dims:
        """The dimensions of a value with these attributes, which must be what is declared for its class."""
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
            raise damaged("a range of no known kind")
        found = range(*ends)
        if len(found) > self._size:
            raise damaged("a range that is longer than its file")
        return found

    def _dtype(self, node: Any) -> np.dtype[Any]:
        found = dtype_from(node["dtype"])
        if found is None:
            raise damaged(f"the dtype {str(node['dtype'])[:40]!r}")
        return found

    def _scalar(self, node: Any) -> Any:
        code, value = node["scalar"]
        dtype = self._dtype({"dtype": code})
        value = self(value)
        if not isinstance(value, (bool, int, float, str)):
            raise damaged("a number that is none")
        return np.array(value, dtype=np.int64).view(dtype)[()] if dtype.kind in "mM" else dtype.type(value)

    def _tensor(self, node: Any) -> Array:
        name, order, frozen = node["tensor"], node.get("order", "C"), bool(node.get("frozen", False))
        if not isinstance(name, str) or name not in self.tensors or order not in ("C", "F"):
            raise damaged(f"the tensor {str(name)[:60]!r}, which is not there")
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
        """Text and dates, from their bytes."""
        dtype, shape = self._dtype(node), _shape(node["shape"])
        if A.ndim != 1 or A.nbytes != math.prod(shape) * dtype.itemsize:
            raise damaged("text or dates of another size")
        if dtype.kind == "U" and A.size and int(A.max()) > 0x10FFFF:
            raise damaged("text that is none")
        made = A.view(dtype)
        return made.reshape(shape[::-1]).T if node.get("order") == "F" else made.reshape(shape)

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
            raise damaged("a sparse matrix of no known kind")
        for part, kinds in ((data, "biuf"), (indices, "i"), (indptr, "i")):
            if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in kinds:
                raise damaged("a sparse matrix without its parts")
        starts = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
        if not starts or (np.diff(indptr) < 0).any():
            raise damaged("a sparse matrix whose rows do not begin where they end")
        if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= shape[1]):
            raise damaged("a sparse matrix with columns that it does not have")
        make = sp.csr_array if node["kind"] == "array" else sp.csr_matrix
        return make((data, indices, indptr), shape=shape)

    def _json(self, node: Any) -> Any:
        text = self.tensors.get(node["json"])
        if text is None or text.dtype != np.uint8 or node["json"] in self._read:  # once: lists of lists would explode
            raise damaged("a list that is not there")
        within(SPACIOUS * text.nbytes, budget(), "The objects of a model", "Raise MERCER_MEMORY if you trust the file.")
        self._read.add(node["json"])
        return self(read_json(text.tobytes()))

    def _kernel(self, node: Any) -> Any:
        text = node["kernel"]
        if "fields" in node:
            cls = public(text, "mercer.kernels")
            if not isinstance(cls, type) or not issubclass(cls, Value):
                raise damaged(f"{text!r}, which is no kernel")
            self._made.append(cls(**{name: self(value) for name, value in node["fields"].items()}))
            return self._made[-1]
        from mercer.kernels.algebra.expression import parse

        if not isinstance(text, str):
            raise damaged("a kernel that is no expression")
        if text not in self._kernels:
            self._kernels[text] = parse(text)
        return self._kernels[text]

    def _object(self, node: Any) -> Any:
        name = node["object"]
        if not isinstance(name, str) or name not in SMALL or not isinstance(node["fields"], dict):
            raise damaged(f"the unknown name {str(name)[:60]!r}")
        module, order = SMALL[name]
        short = name.partition(".")[2]
        cls = getattr(import_module(module), short)  # a module of the table, never one of the file
        fields = {k: self(v) for k, v in node["fields"].items()}
        dims = self._required(short, fields)
        made: Any
        if order is not None:
            made = _expansion(fields) if cls is Expansion else cls(*(fields[k] for k in order))
        elif hasattr(cls, "_fields") or dataclasses.is_dataclass(cls):
            made = cls(**fields)
        else:
            made = cls.__new__(cls)
            made.__dict__.update(fields)
        self._check.remember(made, dims)
        if isinstance(made, Points):
            self.data.append(made.raw)
        self._made.append(made)
        return made

    def _model(self, node: Any) -> Any:
        made = self.model(node["model"])
        self._made.append(made)
        return made

    def _same(self, node: Any) -> Any:
        position = node["same"]
        if not isinstance(position, int) or isinstance(position, bool) or not 0 <= position < len(self._made):
            raise damaged("a value that is said to be there already")
        return self._made[position]

    def _frame(self, node: Any) -> Any:
        self.data.append(frame_from(node["frame"], [self(part) for part in node["columns"]]))
        return self.data[-1]

    def _name(self, node: Any) -> Any:
        """A rule X → kernel, or a family of kernels."""
        found = public(node["name"], "mercer.kernels")
        rule = home(node["name"]) in ("mercer.kernels.vectors.median", "mercer.kernels.tables.rule")
        if not rule and not (isinstance(found, type) and issubclass(found, Similarity)):
            raise damaged(f"{node['name']!r}, which makes no kernels")
        return found

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
    made = Expansion(*(fields[name] for name in ("kernel", "points", "coef", "tail")))
    object.__setattr__(made, "pruning", fields["pruning"])
    if not fields["coef"].flags.writeable:  # checked, and shared with the model: no copy is needed
        object.__setattr__(made, "coef", fields["coef"])
    return made


def _texts(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(v, str) for v in node)


def _shape(node: Any) -> tuple[int, ...]:
    if not isinstance(node, list) or len(node) > 32 or not all(type(v) is int and 0 <= v < 2**62 for v in node):
        raise damaged("a shape that is none")
    return tuple(node)


def read_json(text: bytes) -> Any:
    """JSON without repeated names and without numbers that JSON does not have."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise damaged("an entry that is there twice")
        return found

    def refuse(name: str) -> Any:
        raise damaged(f"the number {name}")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise damaged(f"text that is no JSON ({type(error).__name__}: {str(error)[:80]})") from None
