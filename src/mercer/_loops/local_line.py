"""Sums over windows of sorted points on a line: the Gaussian relative to the nearest point, and the Laplacian exactly.

Relative to the nearest point x0 of the query z the exponent of the Gaussian is

    -(u^2 - u0^2) / 2 = -(x - x0) ((x - z) + (x0 - z)) / (2 sigma^2),

which keeps its digits however far the query is.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import math

import numpy as np

from .addresses import Array, address, aligned
from .exponential import exp
from .vectors import BYTES, count, fill, fma, get, inline, load, load_some, loop, put, store, total, where_less

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
_INT = np.int64(0)


def window_sums(x: Array, V: Array, z: Array, factors: Array, windows: Array, out: Array) -> None:
    """out[j, k, c] = sum_i exp((u0^2 - u_i^2) / 2) u_i^k V_ci, u = (x - z_j) factors_j, over the window of query j.

    x (n,) sorted, V (c, n), z and factors (m,), windows (m, 4) with first, last (exclusive), the nearest point in it,
    and the point that is left out or -1; out (m, degree + 1, c).
    """
    _, M, c = out.shape
    scratch = aligned((c * M, BYTES // 8), np.float64)
    _windows(
        address(x), address(V), V.strides[0], c, M, address(z), address(factors), address(windows), len(z),
        address(out), address(scratch),
    )  # fmt: skip


@inline
def _relative(like, x, i, stop, z, factor, x0, u0):
    """u and the weight of up to a vector of points."""
    xs = load_some(like, x, i, 0, stop - i)
    u = (xs - z) * factor
    e = (xs - x0) * factor * (u + u0) * fill(like, -0.5)
    # Another point may be nearer by what distances are rounded; lanes past the end must not overflow.
    most = fill(like, 40)
    return u, exp(where_less(most, e, most, e))


@loop
def _windows(x, v, v_stride, c, M, z, factors, windows, m, out, scratch):
    like = np.float64(0)
    lanes = count(like)
    for j in range(m):
        first, last = get(_INT, windows, 4 * j), get(_INT, windows, 4 * j + 1)
        nearest, own = get(_INT, windows, 4 * j + 2), get(_INT, windows, 4 * j + 3)
        zj, factor, x0 = get(like, z, j), get(like, factors, j), get(like, x, nearest)
        u0 = (x0 - zj) * factor
        small = M == 1 and c <= 2
        a0 = a1 = fill(like, 0)
        if not small:
            for k in range(0, M * c * lanes, lanes):
                store(scratch, k, fill(like, 0))
        for part in range(2):
            if own < 0:
                start, stop = (first, last) if part == 0 else (0, 0)
            else:
                start, stop = (first, own) if part == 0 else (own + 1, last)
            for i in range(start, stop, lanes):
                u, w = _relative(like, x, i, stop, zj, factor, x0, u0)
                if small:
                    a0 = fma(w, load_some(like, v, i, 0, stop - i), a0)
                    if c == 2:
                        a1 = fma(w, load_some(like, v + v_stride, i, 0, stop - i), a1)
                else:
                    for col in range(c):
                        p = w * load_some(like, v + col * v_stride, i, 0, stop - i)
                        for k in range(M):
                            at = (k * c + col) * lanes
                            store(scratch, at, load(like, scratch, at) + p)
                            p = p * u
        if small:
            put(out, j * c, total(a0))
            if c == 2:
                put(out, 2 * j + 1, total(a1))
        else:
            for k in range(M * c):
                put(out, j * M * c + k, total(load(like, scratch, k * lanes)))


# --- the Laplacian ----------------------------------------------------------------------------------------------------


def laplacian_sums(
    x: Array, V: Array, z: Array, places: Array, factor: float, exclude: bool, log_scale: Array, out: Array
) -> None:
    """out[j, k, c] = exp(-log_scale_j) sum_i exp(-|u_i|) u_i^k V_ic, u = (x - z) factor, for sorted x and z.

    Two recursions, one from the left and one from the right: moving a sum by a distance multiplies it by an exponential
    and mixes its moments with terms of one sign, so nothing cancels. places[j] is the number of points before query j;
    with `exclude` the point of that number is the query itself and is left out.
    """
    _, M, c = out.shape
    binomials = np.array([[math.comb(k, j) for j in range(M)] for k in range(M)], dtype=np.float64)
    right = np.zeros((len(z), M, c))
    scratch = np.zeros((2, M, c))
    _laplacian(
        address(x), address(V), len(x), c, M, address(z), address(places), len(z), factor, int(exclude),
        address(binomials), address(log_scale), address(out), address(right), address(scratch),
    )  # fmt: skip


@inline
def _move(like, sums, target, binomials, M, c, distance, sign):
    """target = the moments `sums` (of |u|) seen from `distance` farther away, without the factor exp(-distance)."""
    for k in range(M):
        for col in range(c):
            value, power = 0.0, 1.0
            for j in range(k, -1, -1):
                value += get(like, binomials, k * M + j) * power * get(like, sums, j * c + col)
                power *= distance
            put(target, k * c + col, value * (sign if k % 2 else 1.0))


@loop
def _laplacian(x, v, n, c, M, z, places, m, factor, exclude, binomials, log_scale, out, right, scratch):
    like = np.float64(0)
    size = M * c
    sums, moved = scratch, scratch + 8 * size
    # from the left: `sums` are the moments of |u| of all points before, seen from the last one of them
    i = 0
    for j in range(m):
        stop = get(_INT, places, j)
        while i < stop:
            if i > 0:
                gap = (get(like, x, i) - get(like, x, i - 1)) * factor
                shrink = math.exp(-gap)
                _move(like, sums, moved, binomials, M, c, gap, 1.0)
                for k in range(size):
                    put(sums, k, get(like, moved, k) * shrink)
            for col in range(c):
                put(sums, col, get(like, sums, col) + get(like, v, i * c + col))
            i += 1
        if i > 0:
            distance = (get(like, z, j) - get(like, x, i - 1)) * factor
            _move(like, sums, out + 8 * j * size, binomials, M, c, distance, -1.0)
            put(log_scale, j, -distance)
        else:
            put(log_scale, j, -np.inf)
    for k in range(size):
        put(sums, k, 0.0)
    # from the right, and both together in units of the nearer side
    i = n
    for j in range(m - 1, -1, -1):
        start = get(_INT, places, j) + exclude
        while i > start:
            i -= 1
            if i < n - 1:
                gap = (get(like, x, i + 1) - get(like, x, i)) * factor
                shrink = math.exp(-gap)
                _move(like, sums, moved, binomials, M, c, gap, 1.0)
                for k in range(size):
                    put(sums, k, get(like, moved, k) * shrink)
            for col in range(c):
                put(sums, col, get(like, sums, col) + get(like, v, i * c + col))
        left = get(like, log_scale, j)
        if i < n:
            distance = (get(like, x, i) - get(like, z, j)) * factor
            _move(like, sums, moved, binomials, M, c, distance, 1.0)
            largest = max(left, -distance)
            put(log_scale, j, largest)
            ours, theirs = math.exp(-distance - largest), math.exp(left - largest)
            for k in range(size):
                value = get(like, out, j * size + k) * theirs + get(like, moved, k) * ours
                put(out, j * size + k, value)
