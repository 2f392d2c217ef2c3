"""From values of models to JSON and tensors: plain values, arrays, data sets, kernels, and small classes."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.data.graphs import Graph
from mercer.data.missing import is_na
from mercer.data.packing import frame_parts, graph_parts
from mercer.data.sampling import StreamedPoints
from mercer.errors import InvalidInput
from mercer.files.checking import Checker, Unfit
from mercer.files.names import CODES, SMALL, dtype_from, holds_code, home, is_small, label, library
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Similarity

Array = NDArray[Any]
LONGEST_LIST = 100
"""Lists with more entries than this are stored as a tensor, since readers of the format limit the header's size."""
LARGEST_ARRAY = 1000
"""Kernels with larger arrays than this are not written as expressions."""


class Encoder:
    """Values → JSON, with arrays stored as tensors. Values that the model shares are written once.

    Attributes
    ----------
    tensors
        The arrays by name, contiguous, little-endian.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        self._arrays: dict[int, str] = {}
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # keeps objects alive, so that their ids stay unique
        self._check = Checker()

    def __call__(self, value: Any, where: str) -> Any:
        """The value as JSON; `where` is its name in errors."""
        match value:
            case np.generic():
                return self._scalar(value, where)
            case None | bool() | str():
                return value
            case int():
                return int(value)
            case float():
                return float(value) if math.isfinite(value) else {"float": str(float(value))}
            case bytes():
                return {"bytes": value.hex()}
            case range():
                return {"range": [value.start, value.stop, value.step]}
            case np.dtype():
                return {"dtype": self._dtype(value, where)}
            case np.ndarray():
                return self._array(value, where)
            case Value():
                return self._kernel(value, where)
            case Graph():
                return {"graph": self._graphs([value], where)}
            case StreamedPoints():
                raise InvalidInput(
                    "A model file holds everything that predictions need",
                    got="a model that sums over rows in batches, which stay in their source",
                    advice="Fit a sample of the rows as an array, and save that model.",
                )
        if sp.issparse(value):
            return self._sparse(value, where)
        if is_frame(value):
            return self._frame(value, where)
        kind = type(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": self._dtype(np.dtype(value), where)}
        if kind is list:
            return self._list(value, where)
        if kind is tuple:
            return {"tuple": [self(v, where) for v in value]}
        if kind in (set, frozenset):
            members = [self(v, where) for v in value]
            return {kind.__name__: sorted(members, key=lambda v: json.dumps(v, sort_keys=True))}
        if kind is dict:
            return {"dict": [[self(k, where), self(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        if hasattr(kind, "_file_state") or is_small(kind):
            return self._small(value, where)
        return self._named(value, where)

    def model(self, model: Any) -> dict[str, Any]:
        """An estimator: its class, parameters and fitted attributes."""
        name, kind = type(model).__name__, type(model)
        if home(name) != kind.__module__:
            raise InvalidInput(
                "A model file holds models of this library",
                got=f"{kind.__module__}.{kind.__qualname__}",
                advice="Save an estimator of this library, or pickle a class of your own.",
            )
        parameters, fitted, omitted = model._file_state()
        parts = {
            "class": name,
            "parameters": {k: self(v, k) for k, v in sorted(parameters.items())},
            "fitted": {k: self(v, k) for k, v in sorted(fitted.items())},
            "left_out": sorted(omitted),
        }
        self._require(model, fitted)
        return parts

    def _require(self, value: Any, fields: dict[str, Any]) -> None:
        """Refuse values that the schema does not declare, which a reader would refuse.

        Estimators that are parameters of others need not be fitted, and then have no attributes.
        """
        try:
            dims = self._check(type(value).__name__, fields) if fields or is_small(type(value)) else {}
            self._check.remember(value, dims)
        except Unfit as error:
            raise InvalidInput(
                "A model file must hold what is declared in mercer/files/schema.py",
                got=str(error),
                advice="Report this as a defect, and keep the model by pickle until it is fixed.",
            ) from None

    def _scalar(self, value: Any, where: str) -> Any:
        code = self._dtype(value.dtype, where)
        if value.dtype.kind in "mM":
            return {"scalar": [code, int(value.astype(np.int64))]}
        if value.dtype.kind not in "biufU":
            raise holds_code(where, f"a number of type {value.dtype}", "Convert it to float or int.")
        return {"scalar": [code, self(value.item(), where)]}

    @staticmethod
    def _dtype(dtype: np.dtype[Any], where: str) -> str:
        code = dtype.newbyteorder("<").str
        if dtype_from(code) is None:
            raise holds_code(where, f"values of dtype {dtype}", "Use float64, integers, bool, text or datetime64.")
        return code

    def _array(self, A: Array, where: str) -> Any:
        if type(A) is not np.ndarray:
            raise holds_code(where, f"a {type(A).__name__}", "Fit on plain arrays.")
        if A.dtype == object:
            return {"objects": self._list(list(A.ravel()), where), "shape": list(A.shape)}
        code = self._dtype(A.dtype, where)
        if A.size > 1 and not any(A.strides):  # a broadcast number
            return {"repeated": self._scalar(A.flat[0], where), "shape": list(A.shape)}
        order = "F" if A.flags.f_contiguous and not A.flags.c_contiguous else "C"
        if id(A) not in self._arrays:
            flat = np.asarray(A.T if order == "F" else A, dtype=code, order="C")
            self._arrays[id(A)] = self.tensor(_as_tensor(flat), where)
            self._alive.append(A)
        entry: dict[str, Any] = {"tensor": self._arrays[id(A)]}
        if np.dtype(code) not in CODES:  # texts and dates, which the format does not have
            entry |= {"dtype": code, "shape": list(A.shape)}
        if order == "F":
            entry["order"] = order
        if not A.flags.writeable:
            entry["frozen"] = True
        return entry

    def tensor(self, flat: Array, where: str) -> str:
        """Store an array as a tensor, and return its unique name."""
        stem = re.sub(r"[^A-Za-z0-9_]+", ".", where).strip(".") or "value"
        name, count = stem, 1
        while name in self.tensors:
            count += 1
            name = f"{stem}.{count}"
        self.tensors[name] = flat
        return name

    def _sparse(self, S: Any, where: str) -> Any:
        if S.format != "csr":
            S = sp.csr_array(S) if isinstance(S, sp.sparray) else sp.csr_matrix(S)
        parts = [self(part, where) for part in (S.data, S.indices, S.indptr)]
        return {"csr": parts, "shape": list(S.shape), "kind": "array" if isinstance(S, sp.sparray) else "matrix"}

    def _frame(self, X: Any, where: str) -> Any:
        kind, columns = frame_parts(X, where)
        return {"frame": kind, "columns": [self(part, f"{where}[{part['name']!r}]") for part in columns]}

    def _graphs(self, graphs: list[Graph], where: str) -> Any:
        parts = graph_parts(graphs)
        return parts and {"graphs": {name: self(part, f"{where}.{name}") for name, part in parts.items()}}

    def _kernel(self, kernel: Value, where: str) -> Any:
        if isinstance(kernel, Similarity) and not _holds_arrays(kernel):
            with suppress(ImportError, InvalidInput):
                from mercer.kernels.algebra.expression import parse

                text = repr(kernel)
                if parse(text) == kernel:
                    return {"kernel": text}
        kind = type(kernel)
        if home(kind.__name__) != kind.__module__:
            if is_small(kind):
                return self._small(kernel, where)
            raise holds_code(where, f"{kind.__module__}.{kind.__qualname__}", "Use a kernel of this library.")
        if id(kernel) in self._seen:
            return {"same": self._seen[id(kernel)]}
        fields = {name: self(value, f"{where}: {kind.__name__}") for name, value in kernel._fields().items()}
        self._remember(kernel)
        return {"kernel": kind.__name__, "fields": fields}

    def _small(self, value: Any, where: str) -> Any:
        if id(value) in self._seen:
            return {"same": self._seen[id(value)]}
        kind = type(value)
        if hasattr(kind, "_file_state"):
            entry: dict[str, Any] = {"model": self.model(value)}
        else:
            fields = _fields_of(value)
            entry = {
                "object": label(kind),
                "fields": {name: self(part, f"{where}.{name}") for name, part in fields.items()},
            }
            self._require(value, fields)
        self._remember(value)
        return entry

    def _remember(self, value: Any) -> None:
        """Number the values that may be shared, in the order in which a reader builds them."""
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)

    def _list(self, values: list[Any], where: str) -> Any:
        """A list as JSON, in a tensor if it is long; graphs together, as a few arrays."""
        if values and all(isinstance(v, Graph) for v in values) and (entry := self._graphs(values, where)):
            return entry
        entries = [self(v, where) for v in values]
        if len(entries) <= LONGEST_LIST:
            return entries
        text = json.dumps(entries, separators=(",", ":")).encode()
        return {"json": self.tensor(np.frombuffer(text, dtype=np.uint8), where)}

    def _named(self, value: Any, where: str) -> Any:
        """A class or rule of the library, by its name; other values cannot be written."""
        name = getattr(value, "__name__", "")
        if home(name) and getattr(library, name) is value:
            return {"name": name}
        if is_na(value):
            return {"missing": "NA"}
        shown = name if callable(value) and name else f"a {type(value).__module__}.{type(value).__qualname__}"
        if where == "kernel":
            advice = "Keep the kernel that it made, with model.set_params(kernel=model.kernel_)."
            raise holds_code(where, f"the rule {shown}", advice)
        if where == "random_state":
            raise holds_code(where, shown, "Pass a whole number as random_state.")
        raise holds_code(where, shown, _advice(value))


def _advice(value: Any) -> str:
    if hasattr(value, "transform") or hasattr(value, "fit"):
        return "Use models and features of this library, or save the whole pipeline with joblib."
    if callable(value):
        return "Use kernels and features by name (mc.Polynomial(2).features(d), k.on(columns)), or pickle the model."
    return "Encode the objects as numbers, texts, sets, lists or tables."


def _holds_arrays(kernel: Value) -> bool:
    """Whether an expression has arrays that are too large for a text."""
    large = any(isinstance(v, np.ndarray) and v.size > LARGEST_ARRAY for v in kernel._fields().values())
    return large or any(_holds_arrays(child) for child in kernel.children.values())


def _fields_of(value: Any) -> dict[str, Any]:
    kind = type(value)
    names = SMALL[label(kind)][1]
    if names is None:
        if hasattr(kind, "_fields"):  # a named tuple
            return dict(zip(kind._fields, value))
        if dataclasses.is_dataclass(kind):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(kind) if field.init}
        return dict(vars(value))
    return {name: getattr(value, name) for name in names}


def _as_tensor(A: Array) -> Array:
    """The same bytes as numbers of a type that the format has."""
    if A.dtype in CODES:
        return A
    kinds = {"U": "<u4", "S": "|u1", "M": "<i8", "m": "<i8", "c": "<f8" if A.dtype.itemsize == 16 else "<f4"}
    return A.reshape(-1).view(kinds[A.dtype.kind])
