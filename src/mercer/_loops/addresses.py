"""How an array reaches a compiled loop: as a number for the dtype, an address, and bytes from row to row.

Passed as arrays, a tile and a view of one, a writeable array and a read-only one would each be a version to compile,
and rows of a view would not be known to be contiguous. Integers have one version. The caller keeps the array alive.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LINE = 64
"""Bytes of a cache line."""
TERMS = 64
"""Terms that a product adds up in the points' own precision before float64 takes over, whatever the vectors' width.

A sum of m terms loses m - 1 rounding errors at most; the values of a float32 Gaussian lose about as many by themselves
(`gaussian.SPREAD`).
"""


def like(a: Array) -> Any:
    """The number 0 in a's dtype: it chooses the compiled version."""
    return a.dtype.type(0)


def address(a: Array) -> int:
    """The address of a's first element."""
    return a.__array_interface__["data"][0]


def rows(a: Array) -> tuple[int, int]:
    """The address of the first element, and bytes from one row to the next."""
    if a.ndim != 2 or (a.shape[1] > 1 and a.strides[1] != a.itemsize) or not a.flags.aligned:
        raise ValueError(f"a tile is 2-D with contiguous, aligned rows, got shape {a.shape} and strides {a.strides}")
    return a.__array_interface__["data"][0], a.strides[0]


def target(a: Array) -> tuple[int, int]:
    """The same of a tile that is to be written."""
    if not a.flags.writeable:
        raise ValueError("the tile to be filled is read-only")
    if a.dtype != np.float32 and a.dtype != np.float64:
        raise TypeError(f"a tile is float32 or float64, got {a.dtype}")
    return rows(a)


def fits(X: Array, Z: Array, out: Array) -> None:
    """Check that `out` has an entry for every pair of rows of X and Z."""
    if out.shape != (X.shape[0], Z.shape[0]) or X.shape[1] != Z.shape[1]:
        raise ValueError(f"shapes do not fit: X {X.shape}, Z {Z.shape}, out {out.shape}")


def readable(a: Array, dtype: Any) -> Array:
    """a itself, or a copy if the dtype differs or the rows are not contiguous and aligned."""
    a = np.asarray(a, dtype=dtype)
    plain = (a.shape[1] <= 1 or a.strides[1] == a.itemsize) and a.flags.aligned
    return a if plain else np.array(a, order="C")


def extent(a: Array) -> tuple[int, int]:
    """Rows and columns of an elementwise loop: a contiguous tile is one long row."""
    return (1, a.size) if a.flags.c_contiguous else (a.shape[0], a.shape[1])


def aligned(shape: tuple[int, ...], dtype: Any, empty: bool = False) -> Array:
    """Zeros (or anything, if `empty`) that begin on a cache line.

    Whole vectors then touch one line each, not two: a tenth of the time of a large Gram matrix. NumPy's own begin 16
    bytes after a line.
    """
    count, dtype = math.prod(shape), np.dtype(dtype)
    memory = (np.empty if empty else np.zeros)(count * dtype.itemsize + LINE, dtype=np.uint8)
    start = -address(memory) % LINE
    return memory[start : start + count * dtype.itemsize].view(dtype).reshape(shape)
