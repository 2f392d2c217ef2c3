"""Pairs of rows of a table: all columns of categories, or all columns of numbers, in one pass."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numpy as np

from .addresses import Array, address, aligned, fits, like, readable, rows, target
from .exponential import exp
from .large import panels
from .vectors import (
    BYTES,
    absolute,
    count,
    fill,
    fma,
    get,
    load,
    load_some,
    loop,
    put,
    splat,
    store_some,
    total,
    where_less,
)

VECTORS = "3b5af5c271a6c3c0"  # digest of vectors.py and exponential.py, see there

CODES = 2**24
"""Codes below this are different numbers in float32, too."""


def mismatch_tile(A: Array, B: Array, weights: Array, out: Array, *, log: bool = False) -> None:
    """out_ij = exp(-sum_k weights_k [A_ik != B_jk]) for codes A (r, d) and B (c, d), or its logarithm.

    Codes are whole numbers below 2^24 in any dtype: they are compared as numbers of out's dtype.
    """
    fits(A, B, out)
    if weights.shape != A.shape[1:]:
        raise ValueError(f"one weight per column is required: A {A.shape}, weights {weights.shape}")
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
    """out_ij = mean_k 1/(1 + (X_ik - Z_jk)^2) for the rows of X (r, d) and Z (c, d), in out's dtype.

    The product of two of these denominators must not overflow: differences are below 1e9 in float32, 1e70 in float64.
    """
    fits(X, Z, out)
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
    """2 sum_ij G_ij u^2/(1 + u^2)^2 with u = X_ik - Z_jk, for every column k: float64, shape (d,)."""
    fits(X, Z, G)
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
