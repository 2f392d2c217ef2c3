"""Checks that values are what the schema of model files declares, with dimensions that fit together."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.frames import is_frame
from mercer.data.points import length
from mercer.files.schema import Choice, Kind, declarations
from mercer.kernels.algebra.values import Value
from mercer.validation import is_number, is_whole_number

Dims = dict[str, int]
LARGEST = 2**53
"""Whole numbers must be below this: float64 holds them exactly, and sums of them stay far from the end of int64."""


# Types that the compiled loops do not support; uint64 also becomes float64 when it is joined with other integers.
_UNSUPPORTED = (np.float16, np.uint64)


class Unfit(ValueError):
    """A value that does not fit its declaration."""


class Checker:
    """Checks the attributes of objects, inner objects first, and remembers the dimensions of each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Dims]] = {}  # keeps each object alive, so that its id stays unique

    def remember(self, value: Any, dims: Dims) -> None:
        """Record the dimensions of an object that was checked."""
        self._known[id(value)] = value, dims

    def __call__(self, name: str, fields: dict[str, Any]) -> Dims:
        """The dimensions of an object of this class with these attributes, which must fit the declaration."""
        declared = declarations().get(name)
        if declared is None:
            raise Unfit(f"a {name}, which is not declared")
        unknown = set(fields) - set(declared.kinds)
        if unknown:
            raise Unfit(f"`{min(unknown)[:60]}`, which a {name} does not have")
        absent = set(declared.kinds) - set(fields) - declared.optional
        if absent:
            raise Unfit(f"a {name} without `{min(absent)}`")
        return _Dimensions(self._known, name).settle(
            {key: (declared.kinds[key], value) for key, value in fields.items()}, declared.where
        )


class _Dimensions:
    """The dimensions of one object: the first value that has a dimension sets it, and all others must agree.

    Attributes
    ----------
    dims
        The dimensions that are known so far.
    sums
        Dimensions that are sums over the parts of a list.
    later
        Conditions to check when all dimensions are known: dimension, value, relation, attribute.
    """

    def __init__(self, known: dict[int, tuple[Any, Dims]], name: str) -> None:
        self.known, self.name = known, name
        self.dims: Dims = {}
        self.sums: Dims = {}
        self.later: list[tuple[str, int, str, str]] = []

    def settle(self, fields: dict[str, tuple[Choice, Any]], where: tuple[tuple[str, str, str], ...]) -> Dims:
        """Check all attributes and then the conditions between dimensions."""
        for key, (choice, value) in fields.items():
            self.check(choice, value, key)
        for dim, total in self.sums.items():
            self.later.append((dim, total, "=", "parts"))
        for dim, value, relation, key in self.later:
            limit = self.value(dim)
            if limit is None and relation != "=":
                raise Unfit(f"`{key}` of {self.name}: positions in rows that do not exist")
            if limit is not None and not _holds(value, relation, limit):
                raise Unfit(f"`{key}` of {self.name}: {value} where {relation} {limit} is required")
        for left, relation, right in where:
            a, b = self.value(left), self.value(right)
            if a is not None and b is not None and not _holds(a, relation, b):
                raise Unfit(f"a {self.name} with {left} = {a} and {right} = {b}")
        return self.dims

    def value(self, dim: str) -> int | None:
        """The value of a dimension, or None if it is not known."""
        if re.fullmatch(r"-?\d+", dim):
            return int(dim)
        if maximum := re.fullmatch(r"max\((\w+),(\d+)\)", dim):
            value = self.dims.get(maximum[1])
            return None if value is None else max(value, int(maximum[2]))
        name, _, more = dim.partition("+")
        value = self.dims.get(name)
        return None if value is None else value + int(more or 0)

    def bind(self, dim: str, value: int | None, key: str) -> None:
        """Set a dimension, or check later that it has this value."""
        if dim == "_" or value is None:
            return
        if dim.startswith("+"):
            self.sums[dim[1:]] += value
        elif dim.isidentifier() and dim not in self.dims:
            self.dims[dim] = value
        else:
            self.later.append((dim, value, "=", key))

    def check(self, choice: Choice, value: Any, key: str) -> None:
        """Check that a value is of one of these kinds, and bind its dimensions."""
        kind = next((kind for kind in choice if self.is_a(kind, value)), None)
        if kind is None:
            raise Unfit(f"`{key}` of {self.name}: {_shown(value)}")
        match kind.name:
            case "int":
                self.whole(kind, int(value), int(value), key)
            case "real" | "finite" | "flag" | "whole" | "label" | "data" if kind.dims is not None:
                for dim, size in zip(kind.dims, _shape(value)):
                    self.bind(dim, size, key)
                if kind.name == "whole" and value.size:
                    self.whole(kind, int(value.min()), int(value.max()), key)
                elif kind.name == "whole" and kind.bound is not None and kind.bound[0] == "^":
                    self.bind(kind.bound[1], 0, key)
            case "list" | "tuple":
                self.sums |= {dim[1:]: 0 for part in kind.parts[0] for dim in part.dims or () if dim.startswith("+")}
                for part in value:
                    self.check(kind.parts[0], part, key)
                for dim in kind.dims or ():
                    self.bind(dim, len(value), key)
            case "dict":
                for name, entry in value.items():
                    self.check(kind.parts[0], entry, f"{key}[{name[:40]!r}]")
            case "(":
                for part, entry in zip(kind.parts, value):
                    self.check(part, entry, key)
            case "{":
                inside = dict(zip(kind.keys, kind.parts))
                for name, entry in value.items():
                    self.check(inside[name], entry, f"{key}[{name!r}]")
            case declared if declared in declarations():
                inner = self.known[id(value)][1]
                for dim, inner_dim in zip(kind.dims or (), declarations()[declared].dims):
                    self.bind(dim, inner.get(inner_dim), key)

    def whole(self, kind: Kind, low: int, high: int, key: str) -> None:
        """Check whole numbers from `low` to `high`: not negative, and within their bound."""
        relation, dim = kind.bound or ("", "")
        smallest = int(dim) if relation == ">=" else 0
        if low < smallest or high >= LARGEST:
            raise Unfit(f"`{key}` of {self.name}: the number {low if low < smallest else high}")
        if relation in ("<", "<="):
            self.later.append((dim, high, relation, key))
        elif relation == "^":
            self.bind(dim, high + 1, key)
        elif relation == "=":
            self.bind(dim, high, key)

    def is_a(self, kind: Kind, value: Any) -> bool:
        """Whether a value is of this kind as far as its own type says."""
        arrays = {"real": "f", "finite": "f", "flag": "b", "whole": "iu"}
        match kind.name:
            case "none":
                return value is None
            case "text":
                return isinstance(value, str)
            case "int":
                return is_whole_number(value)
            case "real" | "finite" | "flag" | "whole" if kind.dims is not None:
                right = isinstance(value, np.ndarray) and value.ndim == len(kind.dims)
                right = right and value.dtype.kind in arrays[kind.name] and value.dtype not in _UNSUPPORTED
                return right and (kind.name != "finite" or bool(np.isfinite(value).all()))
            case "flag":
                return isinstance(value, (bool, np.bool_))
            case "real":
                return is_number(value)
            case "label":
                return isinstance(value, np.ndarray) and value.ndim == 1
            case "data":
                return _is_data(value)
            case "kernel":
                return isinstance(value, Value)
            case "dtype":
                return isinstance(value, np.dtype)
            case "type":
                return isinstance(value, type) and issubclass(value, np.generic)
            case "plain":
                return _is_plain(value)
            case "list" | "tuple":
                return type(value).__name__ == kind.name
            case "dict":
                return type(value) is dict and all(type(name) is str for name in value)
            case "(":
                return type(value) is tuple and len(value) == len(kind.parts)
            case "{":
                return type(value) is dict and set(value) <= set(kind.keys)
        known = id(value) in self.known
        return known and any(base.__name__ == kind.name for base in type(value).__mro__)


def _holds(a: int, relation: str, b: int) -> bool:
    return a == b if relation == "=" else a < b if relation == "<" else a <= b


def _is_data(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return sp.issparse(value) or is_frame(value) or type(value) in (list, tuple, range)


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, list, set, frozenset):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes, range, np.generic, np.ndarray))


def _shape(value: Any) -> tuple[int, ...]:
    shape = getattr(value, "shape", None)
    return tuple(map(int, shape)) if shape is not None else (length(value),)


def _shown(value: Any) -> str:
    """A value by its type, and its shape where it has one."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    return f"{str(value)[:40]!r}, of the wrong type or size" if isinstance(value, (int, float, str)) else (
        f"a {type(value).__name__} of the wrong type or size"
    )  # fmt: skip
