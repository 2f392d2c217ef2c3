"""Operations on one tile of a Gram matrix: small tiles by NumPy, large ones by compiled loops.

A tile is a 2-D float32 or float64 array whose rows are contiguous; the rows may lie apart (a view of a larger matrix),
and inputs may be read-only. A name that ends in an underscore works in place.

Importing Numba and loading a compiled loop takes half a second, and compiling one takes several: a tile of NumPy takes
a fraction of a millisecond. So `small` holds every function a second time. Which of them is called depends on the
number of entries only (of the matrix, where a tile is a part of it), never on what is loaded, so that a call gives the
same numbers in every process. Both keep the same error bounds: less than two roundings for an exponential, one per term
for a sum, float64 where products cancelled.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import costs, small
from .addresses import Array, fits, target


class _Matrix(threading.local):
    """The matrix that this thread fills tile by tile."""

    entries = 0


_matrix = _Matrix()


@contextlib.contextmanager
def part_of(entries: int) -> Iterator[None]:
    """Within, tiles count as parts of a matrix of this many entries: its rims are filled as the rest is."""
    before = _matrix.entries
    _matrix.entries = max(before, entries)
    try:
        yield
    finally:
        _matrix.entries = before


def by_size(tile: Array) -> Any:
    """The module whose functions work on a tile of this size."""
    if max(tile.size, _matrix.entries) < costs.COMPILED_ENTRIES:
        return small
    from . import large

    return large


def filling(tile: Array) -> Any:
    """The same for a tile that will be written to, checked."""
    target(tile)
    return by_size(tile)


def __getattr__(name: str) -> Any:
    # The fused Gaussian works on packed points, and has no form for small tiles.
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import gaussian

    return getattr(gaussian, name)


# --- elementwise -----------------------------------------------------------------------------------------------------


def exp_(a: Array) -> None:
    """a = exp(a) in place; 0 below the smallest normal number, inf above the largest, NaN for NaN."""
    filling(a).exp_(a, 1.0)


def gaussian_from_sqdist_(a: Array, s: float) -> None:
    """a = exp(-s a) in place."""
    filling(a).exp_(a, -s)


def matern_(a: Array, twice_nu: int, s: float) -> None:
    """The Matern kernel of squared distances a, in place: with r = s sqrt(2 nu a), s = 1/sigma,

    exp(-r) for 2 nu = 1, (1 + r) exp(-r) for 2 nu = 3, (1 + r + r^2/3) exp(-r) for 2 nu = 5.
    """
    coefficients = {1: (0.0, 0.0), 3: (1.0, 0.0), 5: (1.0, 1.0 / 3.0)}.get(twice_nu)
    if coefficients is None:
        raise ValueError(f"twice_nu must be 1, 3 or 5, got {twice_nu}")
    # sqrt before the scale: a s^2 may underflow where a and s do not
    filling(a).matern_(a, np.sqrt(twice_nu) * s, *coefficients)


def sqdist_(g: Array, nx: Array, nz: Array, X: Array, Z: Array, tol: float) -> None:
    """Squared distances from inner products, in place.

    On entry g = X Z^T, nx and nz the squared norms of the rows of X (r, d) and Z (c, d). On exit

        g_ij = max(nx_i + nz_j - 2 g_ij, 0),

    and where that is below tol (nx_i + nz_j), so that the difference has cancelled, sum_k (X_ik - Z_jk)^2 in float64.
    """
    fits(X, Z, g)
    if nx.shape != g.shape[:1] or nz.shape != g.shape[1:]:
        raise ValueError(f"one norm per row is required: g {g.shape}, nx {nx.shape}, nz {nz.shape}")
    filling(g).sqdist_(g, nx, nz, X, Z, tol)


# --- pairs of rows ---------------------------------------------------------------------------------------------------


def l1_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k |X_ik - Z_jk| for the rows of X (r, d) and Z (c, d), in out's dtype."""
    fits(X, Z, out)
    filling(out).l1_tile(X, Z, out)


def sqdist_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k (X_ik - Z_jk)^2 for the rows of X (r, d) and Z (c, d), in out's dtype. No cancellation."""
    fits(X, Z, out)
    filling(out).sqdist_tile(X, Z, out)


def least_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k min(X_ik, Z_jk)."""
    fits(X, Z, out)
    filling(out).least_tile(X, Z, out)


def harmonic_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k 2 X_ik Z_jk/(X_ik + Z_jk) for rows of numbers >= 0, where 0/0 is 0."""
    fits(X, Z, out)
    filling(out).harmonic_tile(X, Z, out)


def chi_squared_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k (X_ik - Z_jk)^2/(X_ik + Z_jk) for rows of numbers >= 0, where 0/0 is 0."""
    fits(X, Z, out)
    filling(out).chi_squared_tile(X, Z, out)


def match_tile(A: Array, B: Array, out: Array) -> None:
    """out_ij = the number of k with A_ik = B_jk, for integer codes A (r, d) and B (c, d)."""
    fits(A, B, out)
    filling(out).match_tile(A, B, out)


# --- the other half of a symmetric matrix ----------------------------------------------------------------------------


def mirror(src: Array, dst: Array) -> None:
    """dst = src^T, for src (r, c) and dst (c, r) that do not overlap; both may be views of one matrix."""
    if src.shape != dst.shape[::-1] or src.dtype != dst.dtype:
        raise ValueError(f"dst must be the transpose of src, got {dst.shape} {dst.dtype} and {src.shape} {src.dtype}")
    filling(dst).mirror(src, dst)
