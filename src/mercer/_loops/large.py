"""Large tiles, by compiled loops: `tiles` says what each function does, and has checked its arguments.

Nothing here starts a thread; every loop runs without the interpreter lock.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numba
import numpy as np

from . import costs
from .addresses import LINE, Array, address, aligned, extent, like, readable, rows, target
from .exponential import exp
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
    total,
    transpose,
    where_less,
)

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py


# --- elementwise -----------------------------------------------------------------------------------------------------


def exp_(a: Array, scale: float) -> None:
    _exp(a.dtype.type(scale), *target(a), *extent(a))


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


def matern_(a: Array, scale: float, first: float, second: float) -> None:
    of = a.dtype.type
    _matern(of(scale), of(first), of(second), *target(a), *extent(a))


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
    _pairs(X, Z, out, 0)


def sqdist_tile(X: Array, Z: Array, out: Array) -> None:
    _pairs(X, Z, out, 1)


def _pairs(X: Array, Z: Array, out: Array, squared: int) -> None:
    X, Z_panels = readable(X, out.dtype), panels(Z, out.dtype)
    _differences(like(out), squared, *rows(X), address(Z_panels), *target(out), *out.shape, X.shape[1])


def least_tile(X: Array, Z: Array, out: Array) -> None:
    _terms(*_by_columns(X, Z, out), 0, out)


def harmonic_tile(X: Array, Z: Array, out: Array) -> None:
    _terms(*_by_columns(X, Z, out), 1, out)


def chi_squared_tile(X: Array, Z: Array, out: Array) -> None:
    _terms(*_by_columns(X, Z, out), 2, out)


def _by_columns(X: Array, Z: Array, out: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(X, out.dtype), np.ascontiguousarray(Z.T, out.dtype)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _terms(X, columns, term, out):
    for i in range(len(X)):
        out[i] = 0
        for k in range(X.shape[1]):
            x = X[i, k]
            if term == 0:
                for j in range(columns.shape[1]):
                    z = columns[k, j]
                    out[i, j] += z if z < x else x  # noqa: FURB136 (`min` is not vectorised)
            elif term == 1:
                for j in range(columns.shape[1]):
                    z = columns[k, j]
                    total, least = x + z, z if z < x else x  # noqa: FURB136
                    # not the product of x and z, which may overflow
                    out[i, j] += (least + least) * ((total - least) / total) if total > 0 else total
            else:
                for j in range(columns.shape[1]):
                    z = columns[k, j]
                    total, apart = x + z, x - z
                    out[i, j] += apart * (apart / total) if total > 0 else total


def match_tile(A: Array, B: Array, out: Array) -> None:
    A, B_panels = readable(A, np.int64), panels(B, np.int64)
    _matches(like(A), like(out), *rows(A), address(B_panels), *target(out), *out.shape, A.shape[1])


def panels(Z: Array, dtype: type | np.dtype) -> Array:
    """The rows of Z in panels (p, d, lanes), so that one coordinate of many points is contiguous."""
    lanes = BYTES // np.dtype(dtype).itemsize
    n, d = Z.shape
    laid = aligned((-(-n // lanes), d, lanes), dtype)
    whole = n // lanes
    laid[:whole] = Z[: whole * lanes].reshape(whole, lanes, d).transpose(0, 2, 1)
    if whole < len(laid):
        laid[whole, :, : n - whole * lanes] = Z[whole * lanes :].T
    return laid


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


# --- pairs of rows of a table ----------------------------------------------------------------------------------------


def mismatch_tile(A: Array, B: Array, weights: Array, out: Array, log: bool) -> None:
    A, B_panels, w = readable(A, out.dtype), panels(B, out.dtype), aligned(weights.shape, out.dtype)
    w[:] = -weights
    _mismatches(like(out), int(log), *rows(A), address(B_panels), address(w), *target(out), *out.shape, A.shape[1])


@loop
def _mismatches(like, log, a, a_stride, b, w, out, stride, rows, columns, d):
    lanes = count(like)
    nothing, one = fill(like, 0), fill(like, 1)
    for i in range(0, rows, 4):
        # rows beyond the end repeat the last one
        i1, i2, i3 = min(i + 1, rows - 1), min(i + 2, rows - 1), min(i + 3, rows - 1)
        a0, a1, a2, a3 = a + i * a_stride, a + i1 * a_stride, a + i2 * a_stride, a + i3 * a_stride
        for j in range(0, columns, lanes):
            panel = b + j // lanes * d * BYTES
            m0 = m1 = m2 = m3 = nothing
            for k in range(d):
                bk, wk = load(like, panel, k * lanes), splat(get(like, w, k))
                # whole numbers are equal where they differ by less than one
                m0 += where_less(absolute(bk - get(like, a0, k)), one, nothing, wk)
                m1 += where_less(absolute(bk - get(like, a1, k)), one, nothing, wk)
                m2 += where_less(absolute(bk - get(like, a2, k)), one, nothing, wk)
                m3 += where_less(absolute(bk - get(like, a3, k)), one, nothing, wk)
            if not log:
                m0, m1, m2, m3 = exp(m0), exp(m1), exp(m2), exp(m3)
            store_some(out + i * stride, j, m0, 0, columns - j)
            store_some(out + i1 * stride, j, m1, 0, columns - j)
            store_some(out + i2 * stride, j, m2, 0, columns - j)
            store_some(out + i3 * stride, j, m3, 0, columns - j)


def additive_tile(X: Array, Z: Array, out: Array) -> None:
    X, Z_panels = readable(X, out.dtype), panels(Z, out.dtype)
    share = out.dtype.type(1.0 / X.shape[1])
    _additive(share, *rows(X), address(Z_panels), *target(out), *out.shape, X.shape[1])


@loop
def _additive(share, x, x_stride, z, out, stride, rows, columns, d):
    lanes = count(share)
    one = fill(share, 1)
    for i in range(0, rows, 2):
        i1 = min(i + 1, rows - 1)
        x0, x1 = x + i * x_stride, x + i1 * x_stride
        for j in range(0, columns, lanes):
            panel = z + j // lanes * d * BYTES
            s0 = s1 = fill(share, 0)
            # a division costs as much as ten other steps: 1/p + 1/q = (p + q)/pq takes two columns at once
            for k in range(0, d - 1, 2):
                zk, zl = load(share, panel, k * lanes), load(share, panel, (k + 1) * lanes)
                u0, v0 = zk - get(share, x0, k), zl - get(share, x0, k + 1)
                u1, v1 = zk - get(share, x1, k), zl - get(share, x1, k + 1)
                p0, q0 = fma(u0, u0, one), fma(v0, v0, one)
                p1, q1 = fma(u1, u1, one), fma(v1, v1, one)
                s0 += (p0 + q0) / (p0 * q0)
                s1 += (p1 + q1) / (p1 * q1)
            if d % 2:
                zk = load(share, panel, (d - 1) * lanes)
                u0, u1 = zk - get(share, x0, d - 1), zk - get(share, x1, d - 1)
                s0 += one / fma(u0, u0, one)
                s1 += one / fma(u1, u1, one)
            store_some(out + i * stride, j, s0 * share, 0, columns - j)
            store_some(out + i1 * stride, j, s1 * share, 0, columns - j)


def additive_slopes(X: Array, Z: Array, G: Array) -> Array:
    X, Z, G = (readable(side, np.float64) for side in (X, Z, G))
    slopes = np.zeros(X.shape[1])
    columns = np.ascontiguousarray(Z.T)
    _slopes(*rows(X), *rows(columns), *rows(G), address(slopes), *G.shape, X.shape[1])
    return slopes


@loop
def _slopes(x, x_stride, z, z_stride, g, g_stride, slopes, rows, columns, d):
    lanes = count(0.0)
    one = fill(0.0, 1)
    whole = columns - columns % lanes
    rest = columns - whole
    for k in range(d):
        column = z + k * z_stride
        sum_ = fill(0.0, 0)
        for i in range(rows):
            own, row = get(0.0, x + i * x_stride, k), g + i * g_stride
            for j in range(0, whole, lanes):
                u = load(0.0, column, j) - own
                v = one / fma(u, u, one)
                sum_ = fma(load(0.0, row, j), v - v * v, sum_)
            if rest:
                u = load_some(0.0, column, whole, 0, rest) - own
                v = one / fma(u, u, one)
                sum_ = fma(load_some(0.0, row, whole, 0, rest), v - v * v, sum_)
        put(slopes, k, 2.0 * total(sum_))


# --- the other half of a symmetric matrix ----------------------------------------------------------------------------


def mirror(src: Array, dst: Array) -> None:
    """Mirror a tile while it is in the cache.

    The rows of a huge dst are written past the caches, line by line: else each line would be fetched only to be
    overwritten, which costs more than all the rest. (On memory that was never touched the fetch is free and this is
    slower: fill a matrix from the top, so that the mirrored part was touched before.)
    """
    strip = aligned((SQUARE_BYTES // src.itemsize, costs.MIRROR_ROWS), src.dtype)
    far = int(abs(dst.strides[0]) >= costs.FAR_BYTES)
    _mirror(like(src), *rows(src), *target(dst), *src.shape, address(strip), far)


@loop
def _mirror(like, src, stride, dst, dst_stride, rows, columns, strip, huge):
    n = side(like)
    size = SQUARE_BYTES // n
    line = LINE // size
    whole = columns - columns % n
    for top in range(0, rows, costs.MIRROR_ROWS):
        height = min(costs.MIRROR_ROWS, rows - top)
        squares = height - height % n
        for j in range(0, whole, n):
            for i in range(0, squares, n):
                transpose(like, src + (top + i) * stride + j * size, stride, strip + i * size, costs.MIRROR_ROWS * size)
            for i in range(squares, height):
                for r in range(n):
                    put(strip + r * costs.MIRROR_ROWS * size, i, get(like, src + (top + i) * stride, j + r))
            for r in range(n):
                start, end = strip + r * costs.MIRROR_ROWS * size, dst + (j + r) * dst_stride + top * size
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
