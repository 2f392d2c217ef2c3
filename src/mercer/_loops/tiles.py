"""What happens to one tile of a Gram matrix.

A tile is a 2-D float32 or float64 array whose rows are contiguous; the rows may lie apart (a view of a larger matrix),
and inputs may be read-only. A name that ends in an underscore works in place. Nothing here starts a thread; every
loop runs without the interpreter lock.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numpy as np

from .addresses import LINE, Array, address, aligned, extent, like, readable, rows, target
from .exponential import exp
from .gaussian import Packed, gaussian_product, gaussian_product_symmetric, gaussian_tile, pack_gaussian
from .vectors import (
    BYTES,
    SQUARE_BYTES,
    absolute,
    count,
    equal,
    fence,
    fill,
    fma,
    get,
    inline,
    least,
    load,
    load_some,
    loop,
    put,
    put_as,
    side,
    splat,
    sqrt,
    store,
    store_as,
    store_some,
    stream_line,
    transpose,
    where_less,
)

__all__ = [
    "Packed", "exp_", "gaussian_from_sqdist_", "gaussian_product", "gaussian_product_symmetric", "gaussian_tile",
    "l1_tile", "match_tile", "matern_", "mirror", "pack_gaussian", "sqdist_", "sqdist_tile",
]  # fmt: skip

VECTORS = "3b5af5c271a6c3c0"  # digest of vectors.py and exponential.py, see there


# --- elementwise -----------------------------------------------------------------------------------------------------


def exp_(a: Array) -> None:
    """a = exp(a) in place; 0 below the smallest normal number, inf above the largest, NaN for NaN."""
    _exp(a.dtype.type(1), *target(a), *extent(a))


def gaussian_from_sqdist_(a: Array, s: float) -> None:
    """a = exp(-s a) in place."""
    _exp(a.dtype.type(-s), *target(a), *extent(a))


@loop
def _exp(scale, a, stride, rows, columns):
    lanes = count(scale)
    whole = columns - columns % lanes
    for i in range(rows):
        row = a + i * stride
        for j in range(0, whole, lanes):
            store(row, j, exp(load(scale, row, j) * scale))
        rest = columns - whole
        if rest:
            store_some(row, whole, exp(load_some(scale, row, whole, 0, rest) * scale), 0, rest)


def matern_(a: Array, twice_nu: int, s: float) -> None:
    """The Matern kernel of squared distances a, in place: with r = s sqrt(2 nu a), s = 1/sigma,

    exp(-r) for 2 nu = 1, (1 + r) exp(-r) for 2 nu = 3, (1 + r + r^2/3) exp(-r) for 2 nu = 5.
    """
    coefficients = {1: (0.0, 0.0), 3: (1.0, 0.0), 5: (1.0, 1.0 / 3.0)}.get(twice_nu)
    if coefficients is None:
        raise ValueError(f"twice_nu must be 1, 3 or 5, got {twice_nu}")
    first, second = map(a.dtype.type, coefficients)
    # sqrt before the scale: a s^2 may underflow where a and s do not
    _matern(a.dtype.type(np.sqrt(twice_nu) * s), first, second, *target(a), *extent(a))


@loop
def _matern(scale, first, second, a, stride, rows, columns):
    lanes = count(scale)
    whole = columns - columns % lanes
    for i in range(rows):
        row = a + i * stride
        for j in range(0, whole, lanes):
            store(row, j, _matern_of(load(scale, row, j), scale, first, second))
        rest = columns - whole
        if rest:
            x = load_some(scale, row, whole, 0, rest)
            store_some(row, whole, _matern_of(x, scale, first, second), 0, rest)


@inline
def _matern_of(x, scale, first, second):
    nothing = fill(scale, 0)
    r = sqrt(where_less(x, nothing, nothing, x)) * scale
    e = exp(nothing - r)
    polynomial = fma(fma(r, splat(second), splat(first)), r, fill(scale, 1))
    # where e = 0 the polynomial may be infinite
    return where_less(nothing, e, polynomial * e, e)


def sqdist_(g: Array, nx: Array, nz: Array, X: Array, Z: Array, tol: float) -> None:
    """Squared distances from inner products, in place.

    On entry g = X Z^T, nx and nz the squared norms of the rows of X (r, d) and Z (c, d). On exit

        g_ij = max(nx_i + nz_j - 2 g_ij, 0),

    and where that is below tol (nx_i + nz_j), so that the difference has cancelled, sum_k (X_ik - Z_jk)^2 in float64.
    """
    _fits(X, Z, g)
    if nx.shape != g.shape[:1] or nz.shape != g.shape[1:]:
        raise ValueError(f"one norm per row is required: g {g.shape}, nx {nx.shape}, nz {nz.shape}")
    nx, nz = np.ascontiguousarray(nx, dtype=g.dtype), np.ascontiguousarray(nz, dtype=g.dtype)
    dtype = np.result_type(X, Z, np.float32)
    X, Z = readable(X, dtype), readable(Z, dtype)
    _sqdist(g.dtype.type(tol), like(X), *target(g), address(nx), address(nz), *rows(X), *rows(Z), *g.shape, X.shape[1])


@loop
def _sqdist(tol, like, g, stride, nx, nz, x, x_stride, z, z_stride, rows, columns, d):
    lanes = count(tol)
    whole = columns - columns % lanes
    rest = columns - whole
    nothing = fill(tol, 0)
    for i in range(rows):
        row = g + i * stride
        own = get(tol, nx, i)
        # The search for cancelled entries does not vectorise, their smallest margin does: most rows need no search.
        margin = nothing
        for j in range(0, whole, lanes):
            n, product = load(tol, nz, j) + own, load(tol, row, j)
            distance = n - (product + product)
            margin = _smaller(distance - n * tol, margin)
            store(row, j, where_less(distance, nothing, nothing, distance))
        if rest:
            n, product = load_some(tol, nz, whole, 0, rest) + own, load_some(tol, row, whole, 0, rest)
            distance = n - (product + product)
            margin = _smaller(distance - n * tol, margin)
            store_some(row, whole, where_less(distance, nothing, nothing, distance), 0, rest)
        if least(margin) < 0:
            for j in range(columns):
                if get(tol, row, j) < tol * (own + get(tol, nz, j)):
                    squares = 0.0
                    for k in range(d):
                        xk, zk = get(like, x + i * x_stride, k), get(like, z + j * z_stride, k)
                        difference = np.float64(xk) - np.float64(zk)
                        squares += difference * difference
                    put_as(tol, row, j, squares)


@inline
def _smaller(x, y):
    return where_less(x, y, x, y)


# --- pairs of rows ---------------------------------------------------------------------------------------------------


def l1_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k |X_ik - Z_jk| for the rows of X (r, d) and Z (c, d), in out's dtype."""
    _pairs(X, Z, out, 0)


def sqdist_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = sum_k (X_ik - Z_jk)^2 for the rows of X (r, d) and Z (c, d), in out's dtype. No cancellation."""
    _pairs(X, Z, out, 1)


def _pairs(X: Array, Z: Array, out: Array, squared: int) -> None:
    _fits(X, Z, out)
    X, panels = readable(X, out.dtype), _panels(Z, out.dtype)
    _differences(like(out), squared, *rows(X), address(panels), *target(out), *out.shape, X.shape[1])


def match_tile(A: Array, B: Array, out: Array) -> None:
    """out_ij = the number of k with A_ik = B_jk, for integer codes A (r, d) and B (c, d)."""
    _fits(A, B, out)
    A, panels = readable(A, np.int64), _panels(B, np.int64)
    _matches(like(A), like(out), *rows(A), address(panels), *target(out), *out.shape, A.shape[1])


def _fits(X: Array, Z: Array, out: Array) -> None:
    if out.shape != (X.shape[0], Z.shape[0]) or X.shape[1] != Z.shape[1]:
        raise ValueError(f"shapes do not fit: X {X.shape}, Z {Z.shape}, out {out.shape}")


def _panels(Z: Array, dtype: type | np.dtype) -> Array:
    """The rows of Z in panels (p, d, lanes), so that one coordinate of many points is contiguous."""
    lanes = BYTES // np.dtype(dtype).itemsize
    n, d = Z.shape
    panels = aligned((-(-n // lanes), d, lanes), dtype)
    whole = n // lanes
    panels[:whole] = Z[: whole * lanes].reshape(whole, lanes, d).transpose(0, 2, 1)
    if whole < len(panels):
        panels[whole, :, : n - whole * lanes] = Z[whole * lanes :].T
    return panels


@loop
def _differences(like, squared, x, x_stride, z, out, stride, rows, columns, d):
    lanes = count(like)
    for i in range(0, rows, 4):
        # rows beyond the end repeat the last one
        i1, i2, i3 = min(i + 1, rows - 1), min(i + 2, rows - 1), min(i + 3, rows - 1)
        x0, x1, x2, x3 = x + i * x_stride, x + i1 * x_stride, x + i2 * x_stride, x + i3 * x_stride
        for j in range(0, columns, lanes):
            panel = z + j // lanes * d * BYTES
            a0 = a1 = a2 = a3 = fill(like, 0)
            if squared:
                for k in range(d):
                    zk = load(like, panel, k * lanes)
                    u0, u1 = zk - get(like, x0, k), zk - get(like, x1, k)
                    u2, u3 = zk - get(like, x2, k), zk - get(like, x3, k)
                    a0, a1, a2, a3 = fma(u0, u0, a0), fma(u1, u1, a1), fma(u2, u2, a2), fma(u3, u3, a3)
            else:
                for k in range(d):
                    zk = load(like, panel, k * lanes)
                    a0 += absolute(zk - get(like, x0, k))
                    a1 += absolute(zk - get(like, x1, k))
                    a2 += absolute(zk - get(like, x2, k))
                    a3 += absolute(zk - get(like, x3, k))
            store_some(out + i * stride, j, a0, 0, columns - j)
            store_some(out + i1 * stride, j, a1, 0, columns - j)
            store_some(out + i2 * stride, j, a2, 0, columns - j)
            store_some(out + i3 * stride, j, a3, 0, columns - j)


@loop
def _matches(code, like, a, a_stride, b, out, stride, rows, columns, d):
    lanes = count(code)
    for i in range(0, rows, 4):
        i1, i2, i3 = min(i + 1, rows - 1), min(i + 2, rows - 1), min(i + 3, rows - 1)
        a0, a1, a2, a3 = a + i * a_stride, a + i1 * a_stride, a + i2 * a_stride, a + i3 * a_stride
        for j in range(0, columns, lanes):
            panel = b + j // lanes * d * BYTES
            m0 = m1 = m2 = m3 = splat(code)
            for k in range(d):
                bk = load(code, panel, k * lanes)
                m0 += equal(bk, splat(get(code, a0, k)))
                m1 += equal(bk, splat(get(code, a1, k)))
                m2 += equal(bk, splat(get(code, a2, k)))
                m3 += equal(bk, splat(get(code, a3, k)))
            store_as(like, out + i * stride, j, m0, 0, columns - j)
            store_as(like, out + i1 * stride, j, m1, 0, columns - j)
            store_as(like, out + i2 * stride, j, m2, 0, columns - j)
            store_as(like, out + i3 * stride, j, m3, 0, columns - j)


# --- the other half of a symmetric matrix ----------------------------------------------------------------------------

STRIP = 256
"""Rows of src that become one stretch of a row of dst."""
HUGE = 32 * 1024
"""From this distance of rows on (bytes), dst belongs to a matrix that no cache holds."""


def mirror(src: Array, dst: Array) -> None:
    """dst = src^T, for src (r, c) and dst (c, r) that do not overlap; both may be views of one matrix.

    Mirror a tile while it is in the cache. The rows of a huge dst are written past the caches, line by line: else each
    line would be fetched only to be overwritten, which costs more than all the rest. (On memory that was never touched
    the fetch is free and this is slower: fill a matrix from the top, so that the mirrored part was touched before.)
    """
    if src.shape != dst.shape[::-1] or src.dtype != dst.dtype:
        raise ValueError(f"dst must be the transpose of src, got {dst.shape} {dst.dtype} and {src.shape} {src.dtype}")
    strip = aligned((SQUARE_BYTES // src.itemsize, STRIP), src.dtype)
    _mirror(like(src), *rows(src), *target(dst), *src.shape, address(strip), int(abs(dst.strides[0]) >= HUGE))


@loop
def _mirror(like, src, stride, dst, dst_stride, rows, columns, strip, huge):
    n = side(like)
    size = SQUARE_BYTES // n
    line = LINE // size
    whole = columns - columns % n
    for top in range(0, rows, STRIP):
        height = min(STRIP, rows - top)
        squares = height - height % n
        for j in range(0, whole, n):
            for i in range(0, squares, n):
                transpose(like, src + (top + i) * stride + j * size, stride, strip + i * size, STRIP * size)
            for i in range(squares, height):
                for r in range(n):
                    put(strip + r * STRIP * size, i, get(like, src + (top + i) * stride, j + r))
            for r in range(n):
                start, end = strip + r * STRIP * size, dst + (j + r) * dst_stride + top * size
                head = min(-end % LINE // size, height)
                for i in range(head):
                    put(end, i, get(like, start, i))
                lines = (height - head) // line
                if huge:
                    for k in range(lines):
                        stream_line(like, start + head * size + k * LINE, end + head * size + k * LINE)
                else:
                    for i in range(head, head + lines * line):
                        put(end, i, get(like, start, i))
                for i in range(head + lines * line, height):
                    put(end, i, get(like, start, i))
        for j in range(whole, columns):
            for i in range(top, top + height):
                put(dst + j * dst_stride, i, get(like, src + i * stride, j))
    if huge:
        fence()
