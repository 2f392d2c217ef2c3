"""The fused Gaussian: distances, the exponential and what follows, in registers.

With x' = x sqrt(log2(e) / 2) / sigma,

    exp(-|x - z|^2 / 2 sigma^2) = 4^(-|x' - z'|^2 / 2) = 4^(x'.z' - |x'|^2 / 2 - |z'|^2 / 2),

one product per coordinate and one power for a pair. Where the norms are so large that their difference would lose
digits, the same loop sums (x'_k - z'_k)^2 instead, at two operations per coordinate: this is decided by itself.

A register tile is four rows by one `Lanes` of columns. `Packed` points lie in panels of as many points as there are
lanes, coordinate by coordinate; the same panels serve as rows and as columns. Both sides are scaled alike, and sums run
in the same order for (x, z) and (z, x), so the result is exactly symmetric. Computing both triangles is as
fast as copying one into the other (float32), or nearly so.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import costs
from .addresses import TERMS, Array, address, aligned, like, target
from .exponential import exp4_negative
from .vectors import (
    BYTES,
    count,
    fill,
    fma,
    get,
    inline,
    load,
    loop,
    put,
    splat,
    store,
    store_some,
    total,
)

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
SPREAD = {4: 64.0, 8: 512.0}
"""By bytes of the dtype: up to this |x'|^2 + |z'|^2 norms and product are subtracted, above it coordinates are."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Points ready for the fused Gaussian."""

    panels: Array
    """(p, 1 + d, lanes): point i is [i // lanes, :, i % lanes] = (-|x'|^2 / 2, x'); padding is (-inf, 0)."""
    n: int
    """The number of points."""
    spread: float
    """The largest |x'|^2."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.panels.dtype

    @property
    def d(self) -> int:
        """The number of coordinates."""
        return self.panels.shape[1] - 1


def pack_gaussian(X: Array, sigma: Any, dtype: Any) -> Packed:
    """Pack the rows of X (n, d) for exp(-|(x - z) / sigma|^2 / 2), sigma a number or one per column.

    Centre X before (both sides by the same vector): smaller norms keep more digits and the faster of the two sums.
    """
    n, d = X.shape
    dtype = np.dtype(dtype)
    lanes = BYTES // dtype.itemsize
    panels = aligned((-(-n // lanes), 1 + d, lanes), dtype)
    panels[:, 0] = -np.inf
    scale = np.sqrt(0.5 * math.log2(math.e)) / np.asarray(sigma, dtype=np.float64)
    spread = 0.0
    step = 64 * lanes
    for start in range(0, n, step):
        # norms of the rounded coordinates, in float64: the kernel of the points as they are stored
        points = (X[start : start + step] * scale).astype(dtype)
        norms = np.einsum("ij,ij->i", points, points, dtype=np.float64)
        spread = max(spread, float(norms.max()))
        first, whole = start // lanes, len(points) // lanes
        panels[first : first + whole, 0] = -0.5 * norms[: whole * lanes].reshape(whole, lanes)
        panels[first : first + whole, 1:] = points[: whole * lanes].reshape(whole, lanes, d).transpose(0, 2, 1)
        rest = len(points) - whole * lanes
        if rest:
            panels[first + whole, 0, :rest] = -0.5 * norms[whole * lanes :]
            panels[first + whole, 1:, :rest] = points[whole * lanes :].T
    return Packed(panels, n, spread)


def _together(x: Packed, z: Packed) -> tuple[int, int, int, int]:
    """Both addresses, the number of coordinates, and whether to sum differences instead of products."""
    if x.dtype != z.dtype or x.d != z.d:
        raise ValueError(f"the points do not match: {x.d} coordinates {x.dtype} and {z.d} coordinates {z.dtype}")
    direct = not x.spread + z.spread <= SPREAD[x.dtype.itemsize]
    return address(x.panels), address(z.panels), x.d, int(direct)


def _inside(start: int, stop: int, n: int) -> None:
    if not 0 <= start <= stop <= n:
        raise IndexError(f"points {start}:{stop} of {n}")


# --- four rows by one panel -------------------------------------------------------------------------------------------


@inline
def _point(like, x, i, d):
    """The address of point i."""
    lanes = count(like)
    return x + (i // lanes * (d + 1) * lanes + i % lanes) * (BYTES // lanes)


@inline
def _values(like, x0, x1, x2, x3, z, d, direct):
    """k(x, z) for four points and one panel z."""
    lanes = count(like)
    if direct:
        a0 = a1 = a2 = a3 = fill(like, 0)
        for k in range(lanes, (d + 1) * lanes, lanes):
            zk = load(like, z, k)
            u0, u1 = zk - get(like, x0, k), zk - get(like, x1, k)
            u2, u3 = zk - get(like, x2, k), zk - get(like, x3, k)
            a0, a1, a2, a3 = fma(u0, u0, a0), fma(u1, u1, a1), fma(u2, u2, a2), fma(u3, u3, a3)
        half = fill(like, -0.5)
        a0, a1, a2, a3 = a0 * half, a1 * half, a2 * half, a3 * half
    else:
        norms = load(like, z, 0)
        a0, a1 = norms + get(like, x0, 0), norms + get(like, x1, 0)
        a2, a3 = norms + get(like, x2, 0), norms + get(like, x3, 0)
        for k in range(lanes, (d + 1) * lanes, lanes):
            zk = load(like, z, k)
            a0 = fma(zk, splat(get(like, x0, k)), a0)
            a1 = fma(zk, splat(get(like, x1, k)), a1)
            a2 = fma(zk, splat(get(like, x2, k)), a2)
            a3 = fma(zk, splat(get(like, x3, k)), a3)
    return exp4_negative(a0), exp4_negative(a1), exp4_negative(a2), exp4_negative(a3)


def _near(z: Packed) -> int:
    """The number of columns that fit the first-level cache, with a lower limit below which short sums would be slow."""
    _, coordinates, lanes = z.panels.shape
    return max(costs.NEAR_BYTES // (coordinates * BYTES), 4) * lanes


# --- the matrix -------------------------------------------------------------------------------------------------------


def gaussian_tile(x: Packed, z: Packed, i0: int, i1: int, j0: int, j1: int, out: Array) -> None:
    """out = k(x_i, z_j) for i0 <= i < i1 and j0 <= j < j1; out is (i1 - i0, j1 - j0) in the packed dtype.

    The loop is blocked inside: one call for many rows and all columns is the fastest.
    """
    if out.shape != (i1 - i0, j1 - j0) or out.dtype != x.dtype:
        raise ValueError(f"out must be ({i1 - i0}, {j1 - j0}) {x.dtype}, got {out.shape} {out.dtype}")
    _inside(i0, i1, x.n)
    _inside(j0, j1, z.n)
    _tile(like(out), *_together(x, z), i0, i1, j0, j1, *target(out), _near(z))


@loop
def _tile(like, x, z, d, direct, i0, i1, j0, j1, out, stride, width):
    lanes = count(like)
    size = BYTES // lanes
    out -= i0 * stride + j0 * size
    for top in range(i0, i1, costs.PANEL_ROWS):
        bottom = min(top + costs.PANEL_ROWS, i1)
        for left in range(j0 // lanes * lanes, j1, width):
            right = min(left + width, j1)
            for i in range(top, bottom, 4):
                # rows beyond the end repeat the last one
                i_1, i_2, i_3 = min(i + 1, i1 - 1), min(i + 2, i1 - 1), min(i + 3, i1 - 1)
                x0, x1 = _point(like, x, i, d), _point(like, x, i_1, d)
                x2, x3 = _point(like, x, i_2, d), _point(like, x, i_3, d)
                for j in range(left, right, lanes):
                    k0, k1, k2, k3 = _values(like, x0, x1, x2, x3, _point(like, z, j, d), d, direct)
                    if j >= j0 and j + lanes <= j1:
                        store(out + i * stride, j, k0)
                        store(out + i_1 * stride, j, k1)
                        store(out + i_2 * stride, j, k2)
                        store(out + i_3 * stride, j, k3)
                    else:
                        store_some(out + i * stride, j, k0, j0 - j, j1 - j)
                        store_some(out + i_1 * stride, j, k1, j0 - j, j1 - j)
                        store_some(out + i_2 * stride, j, k2, j0 - j, j1 - j)
                        store_some(out + i_3 * stride, j, k3, j0 - j, j1 - j)


# --- products ---------------------------------------------------------------------------------------------------------


def gaussian_product(x: Packed, z: Packed, V: Array, i0: int, i1: int, out: Array) -> None:
    """out[i0:i1] += K[i0:i1] @ V, K never stored; V is (m,) or (m, t), out float64 of shape (n,) or (n, t)."""
    _inside(i0, i1, x.n)
    _multiply(x, z, _columns(x, z, V, out), out, (i0, i1), (0, z.n), both=False)


def gaussian_product_symmetric(x: Packed, V: Array, i0: int, i1: int, out: Array) -> None:
    """The part of out += K(X, X) @ V that the rows i0:i1 of the lower triangle give, each pair computed once:

        out_i += sum_{j <= i} k_ij V_j,    out_j += k_ij V_i for j < i;    i0 <= i < i1.

    V is (n,) or (n, t), out float64 of the same shape. Over ranges that cover 0:n this sums to K @ V in about half the
    time of `gaussian_product`. Rows of out before i0 are written too: every thread needs an `out` of its own.
    """
    _inside(i0, i1, x.n)
    columns = _columns(x, x, V, out)
    _multiply(x, x, columns, out, (i0, i1), (0, i0), both=True)
    _multiply(x, x, columns, out, (i0, i1), (i0, i1), both=False)


def _columns(x: Packed, z: Packed, V: Array, out: Array) -> Array:
    """The columns of V as rows (t, m), filled up with zeros to whole panels."""
    if V.shape[0] != z.n or out.dtype != np.float64 or out.shape != (x.n, *V.shape[1:]):
        raise ValueError(f"V {V.shape}, out {out.shape} {out.dtype} do not fit {x.n} x {z.n} points")
    columns = aligned((V.size // max(z.n, 1), z.panels.shape[0] * z.panels.shape[2]), x.dtype)
    columns[:, : z.n] = V.T
    return columns


def _multiply(
    x: Packed, z: Packed, V: Array, out: Array, rows: tuple[int, int], columns: tuple[int, int], both: bool
) -> None:
    start, stride = target(out.reshape(x.n, len(V)))
    width = min(_near(z), TERMS * z.panels.shape[2])
    scratch = aligned((4 + len(V), width), x.dtype)
    _product(
        like(V), *_together(x, z), *rows, *columns, address(V), V.strides[0], len(V), start, stride,
        address(scratch), width, int(both),
    )  # fmt: skip


@loop
def _product(like, x, z, d, direct, i0, i1, j0, j1, v, v_stride, t, out, stride, scratch, width, both):
    """out_i += sum_j k_ij v_j, and if `both` out_j += sum_i k_ij v_i.

    Four rows of K, as wide as the first-level cache allows, then all columns of V. Every lane adds TERMS columns at
    most (and every column TERMS rows) in the points' precision, and float64 takes over from there.
    """
    lanes = count(like)
    size = BYTES // lanes
    row = width * size
    partial = scratch + 4 * row
    for top in range(i0, i1, costs.PANEL_ROWS):
        bottom = min(top + costs.PANEL_ROWS, i1)
        for left in range(j0 // lanes * lanes, j1, width):
            right = min(left + width, j1)
            if both:
                for j in range(0, t * width, lanes):
                    store(partial, j, fill(like, 0))
            for i in range(top, bottom, 4):
                i_1, i_2, i_3 = min(i + 1, i1 - 1), min(i + 2, i1 - 1), min(i + 3, i1 - 1)
                x0, x1 = _point(like, x, i, d), _point(like, x, i_1, d)
                x2, x3 = _point(like, x, i_2, d), _point(like, x, i_3, d)
                for j in range(left, right, lanes):
                    k0, k1, k2, k3 = _values(like, x0, x1, x2, x3, _point(like, z, j, d), d, direct)
                    store(scratch, j - left, k0)
                    store(scratch + row, j - left, k1)
                    store(scratch + 2 * row, j - left, k2)
                    store(scratch + 3 * row, j - left, k3)
                    # columns before the first and after the last count nothing
                    for outside in range(j, j0):
                        _clear(like, scratch, row, outside - left)
                    for outside in range(j1, j + lanes):
                        _clear(like, scratch, row, outside - left)
                for c in range(t):
                    vc = v + c * v_stride
                    s0 = s1 = s2 = s3 = fill(like, 0)
                    if both:
                        # a repeated row must not count twice: its v is 0
                        v0 = get(like, vc, i)
                        v1 = get(like, vc, i + 1) if i + 1 < i1 else like
                        v2 = get(like, vc, i + 2) if i + 2 < i1 else like
                        v3 = get(like, vc, i + 3) if i + 3 < i1 else like
                        for j in range(left, right, lanes):
                            k0, k1 = load(like, scratch, j - left), load(like, scratch + row, j - left)
                            k2, k3 = load(like, scratch + 2 * row, j - left), load(like, scratch + 3 * row, j - left)
                            w = load(like, vc, j)
                            s0, s1, s2, s3 = fma(k0, w, s0), fma(k1, w, s1), fma(k2, w, s2), fma(k3, w, s3)
                            u = load(like, partial + c * row, j - left)
                            u = fma(k1, splat(v1), fma(k0, splat(v0), u))
                            store(partial + c * row, j - left, fma(k3, splat(v3), fma(k2, splat(v2), u)))
                    else:
                        for j in range(left, right, lanes):
                            w = load(like, vc, j)
                            s0 = fma(load(like, scratch, j - left), w, s0)
                            s1 = fma(load(like, scratch + row, j - left), w, s1)
                            s2 = fma(load(like, scratch + 2 * row, j - left), w, s2)
                            s3 = fma(load(like, scratch + 3 * row, j - left), w, s3)
                    _add(out + i * stride, c, total(s0))
                    if i + 1 < i1:
                        _add(out + i_1 * stride, c, total(s1))
                    if i + 2 < i1:
                        _add(out + i_2 * stride, c, total(s2))
                    if i + 3 < i1:
                        _add(out + i_3 * stride, c, total(s3))
                if both and ((i + 4 - top) % TERMS == 0 or i + 4 >= bottom):
                    for c in range(t):
                        for j in range(left, right):
                            _add(out + j * stride, c, np.float64(get(like, partial + c * row, j - left)))
                        for j in range(0, width, lanes):
                            store(partial + c * row, j, fill(like, 0))


@inline
def _add(address, index, value):
    put(address, index, get(value, address, index) + value)


@inline
def _clear(like, scratch, row, j):
    for r in range(4):
        put(scratch + r * row, j, like)
