"""Names that files may contain: types of tensors, small classes of the library, and its public names."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.files.schema import small

library: Any = import_module("mercer")

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""Types of tensors, by their names in the safetensors format."""
CODES = {np.dtype(code): name for name, code in DTYPES.items()}

SMALL = small()
"""The module of every small class that a fitted model may hold, and the arguments of its constructor, if it is used."""


def holds_code(where: str, what: str, advice: str) -> InvalidInput:
    """The error for a value that cannot be saved without code."""
    return InvalidInput(f"A model file holds values and no code, but `{where}` needs code", got=what, advice=advice)


def damaged(why: str) -> InvalidInput:
    """The error for a file with values that do not fit together."""
    return InvalidInput(
        "A model file must hold values that fit together and that this version knows",
        got=why,
        advice="Save the model again, or install the version that saved it.",
    )


def home(name: Any) -> str:
    """The module of a public name of the library, or "" if there is no such name."""
    return library._NAMES.get(name, "") if isinstance(name, str) else ""


def public(name: Any, *kinds: str) -> Any:
    """The object with this public name, in these parts of the library (such as "mercer.kernels")."""
    if not home(name).startswith(kinds):
        raise damaged(f"the unknown name {str(name)[:60]!r}")
    return getattr(library, name)


def is_small(kind: type) -> bool:
    """Whether a class is one of the small classes."""
    return label(kind) in SMALL and SMALL[label(kind)][0] == kind.__module__


def label(kind: type) -> str:
    """The name of a small class in files, such as "tail.Monomials"."""
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def dtype_from(code: Any) -> np.dtype[Any] | None:
    """The dtype of a code that files may hold, or None."""
    if not isinstance(code, str) or len(code) > 16:
        return None
    is_tensor_type = code in DTYPES.values()
    if not is_tensor_type and not re.fullmatch(
        r"<c8|<c16|<U[1-9]\d{0,6}|\|S[1-9]\d{0,6}|<[mM]8\[(Y|M|W|D|h|m|s|ms|us|ns)\]", code
    ):
        return None
    return np.dtype(code)
