"""Weighted sums over points near a query, in any dimension: all points, or those of the cells around it.

The points that a group of queries meets are first copied to a buffer in the near cache, coordinate by coordinate; then
every query passes over the buffer with whole vectors: weights, their products with the monomials of v = x - z, and the
sums of these with each column of V. The own point of a query is left out by setting its weight to zero.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from . import costs
from .addresses import Array, address, aligned
from .vectors import (
    BYTES,
    call,
    constant,
    count,
    fill,
    fma,
    get,
    inline,
    intrinsic,
    load,
    loop,
    put,
    sqrt,
    store,
    suffix,
    total,
    where_less,
)

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
_INT = np.int64(0)
COPIED = 4 * costs.WEIGHED_POINTS
"""Points that are copied for a group of queries before the queries pass over them."""
KINDS = {"Gaussian": 0, "Uniform": 1, "Triangular": 2, "Epanechnikov": 3, "Biweight": 4, "Tricube": 5}
COARSE = 6
"""The Gaussian with a relative error of 2e-12 instead of rounding."""

# 2^r = 1 + r q(r) for |r| <= 1/2, q by its values in Chebyshev points: relative errors 9e-18 and 2e-12.
_FINE = (0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606871,
         0.0013333558146416927, 0.00015403530441765088, 1.5252733829851596e-05, 1.321544257022465e-06,
         1.0178062436412765e-07, 7.072589488396345e-09, 4.4549624846332125e-10)  # fmt: skip
_ROUGH = (0.6931471805568324, 0.24022650695888503, 0.055504109063258665, 0.00961812913523614, 0.0013333478473685416,
          0.00015403475186530786, 1.5303700711365693e-05, 1.325080551750225e-06)  # fmt: skip
_SHIFT = 1.5 * 2.0**52 + 1023


def _power(coefficients):
    @intrinsic
    def power(typingctx, x):
        """2^x of every lane, for x <= 0; as if x were -1000 where it is below."""

        def generate(context, builder, sig, args):
            fmuladd, vector = f"llvm.fmuladd.{suffix(x)}", args[0].type
            shift, lowest = constant(x, _SHIFT), constant(x, -1000.0)
            value = builder.select(builder.fcmp_ordered(">", args[0], lowest), args[0], lowest)
            t = builder.fadd(value, shift)
            r = builder.fsub(value, builder.fsub(t, shift))
            p = constant(x, coefficients[-1])
            for c in reversed((1.0, *coefficients[:-1])):
                p = call(builder, fmuladd, vector, p, r, constant(x, c))
            integers = ir.VectorType(ir.IntType(64), x.count)
            places = ir.Constant(integers, [ir.Constant(integers.element, 52)] * x.count)
            scale = builder.bitcast(builder.shl(builder.bitcast(t, integers), places), vector)
            return builder.fmul(p, scale)

        return x(x), generate

    return power


_power_fine, _power_rough = _power(_FINE), _power(_ROUGH)


@inline
def weight(like, kind, q):
    """The weight of q >= 0: for the Gaussians 2^(-q), for the others the profile of q = |u|^2, zero from 1 on."""
    if kind == COARSE:
        return _power_rough(fill(like, 0) - q)
    if kind == 0:
        return _power_fine(fill(like, 0) - q)
    one, nothing = fill(like, 1), fill(like, 0)
    if kind == 1:
        w = one
    elif kind == 2:
        w = one - sqrt(q)
    elif kind == 3:
        w = one - q
    elif kind == 4:
        w = (one - q) * (one - q)
    else:
        cube = one - q * sqrt(q)
        w = cube * cube * cube
    return where_less(one, q, nothing, w)


@dataclass(frozen=True, eq=False)
class Monomials:
    """The monomials v^alpha, each as an earlier one (its parent) times a coordinate."""

    parents: Array
    coordinates: Array
    kept: Array
    """1 where the monomial is itself a parent, or stands between two that are."""


def monomials(exponents: Array) -> Monomials:
    """For exponents (M, d) in graded order."""
    place = {tuple(alpha): a for a, alpha in enumerate(exponents.tolist())}
    parents, coordinates = np.zeros((2, len(exponents)), dtype=np.int64)
    for a, alpha in enumerate(exponents.tolist()):
        if a:
            k = max(k for k, power in enumerate(alpha) if power)
            parent = list(alpha)
            parent[k] -= 1
            parents[a], coordinates[a] = place[tuple(parent)], k
    kept = np.zeros(len(exponents), dtype=np.int64)
    # up to the last parent: neighbours in a pair are kept together
    kept[: parents[-1] + 1] = 1
    return Monomials(parents, coordinates, kept)


@dataclass(frozen=True, eq=False)
class Grid:
    """Points sorted by the cells of a grid of at most three dimensions (sides of one cell for those that lack)."""

    shape: tuple[int, int, int]
    side: float
    """Of a cell, in the unit of `reach`."""
    reach: float
    """Points further away do not count."""
    numbers: Array
    """The numbers (a shape[1] + b) shape[2] + k of the occupied cells, sorted, or nothing if `starts` has all cells."""
    starts: Array
    """The first point of each of these cells, and at the end their number."""


def direct_sums(
    kind: int,
    x: Array,
    V: Array,
    z: Array,
    unit: float,
    ratios: Array,
    of: Monomials,
    groups: Array,
    grid: Grid | None,
    own: Array | None,
    out: Array,
) -> None:
    """out[j, a, c] += sum_i w(q_ij) v_ij^alpha V_ci, v = x - z, q = |v|^2 ratios_j unit.

    x (d, n), V (c, n), z (m, d); groups (g, 5): first and last query (exclusive), and the cell a, b, k of all of them.
    Without a grid every query meets all points. own (m,): the point that a query leaves out, increasing in every group.
    out (m, M, c).
    """
    (d, n), (_, M, c) = x.shape, out.shape
    pad = BYTES // 8
    buffer = aligned((d + c, COPIED + pad), np.float64)
    scratch = aligned((1 + d + M, costs.WEIGHED_POINTS), np.float64)
    totals = aligned((M * c, pad), np.float64)
    if grid is None:
        shape, side, reach, dense = (0, 0, 0), 1.0, 0.0, 1
        numbers = starts = np.zeros(1, dtype=np.int64)
    else:
        shape, side, reach, dense = grid.shape, grid.side, grid.reach, int(len(grid.numbers) == 0)
        numbers, starts = grid.numbers, grid.starts
    _direct(
        kind, address(x), x.strides[0], n, address(V), V.strides[0], d, c, M, address(of.parents),
        address(of.coordinates), address(of.kept), address(z), unit, address(ratios), address(groups), len(groups),
        *shape, side, reach, dense, address(numbers), len(numbers), address(starts), 0 if own is None else address(own),
        address(out), address(buffer), COPIED + pad, address(scratch), address(totals),
    )  # fmt: skip


@inline
def _find(numbers, n, key):
    """The first position whose number is not below the key."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if get(_INT, numbers, middle) < key:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def _pass(kind, size, own, d, c, M, parents, coordinates, kept, z, unit, ratio, out, buffer, stride, scratch, totals):
    """Add the points of the buffer to the sums of one query; `own` is the position that is left out, or -1."""
    like = np.float64(0)
    lanes = count(like)
    row, values = costs.WEIGHED_POINTS * 8, buffer + d * stride * 8
    for k in range(M * c):
        store(totals, k * lanes, fill(like, 0))
    for top in range(0, size, costs.WEIGHED_POINTS):
        length = min(costs.WEIGHED_POINTS, size - top)
        for i in range(0, length, lanes):
            q = fill(like, 0)
            for k in range(d):
                v = load(like, buffer, k * stride + top + i) - get(like, z, k)
                q = fma(v, v, q)
                if M > 1:
                    store(scratch + (1 + k) * row, i, v)
            store(scratch, i, weight(like, kind, q * ratio * unit))
        for i in range(length, -(-length // lanes) * lanes):
            put(scratch, i, 0.0)
        if top <= own < top + length:
            put(scratch, own - top, 0.0)
        a = 0
        while a < M:
            parent = get(_INT, parents, a)
            p = scratch if parent == 0 else scratch + (d + parent) * row
            u = scratch + (1 + get(_INT, coordinates, a)) * row
            keep = a > 0 and get(_INT, kept, a) == 1
            if c == 2 and a > 0 and a + 1 < M and get(_INT, parents, a + 1) == parent:
                # two children of one parent, two columns: what is loaded is used twice
                u1 = scratch + (1 + get(_INT, coordinates, a + 1)) * row
                y0, y1 = values + top * 8, values + (stride + top) * 8
                at = a * 2 * lanes
                s0, s1 = load(like, totals, at), load(like, totals, at + lanes)
                s2, s3 = load(like, totals, at + 2 * lanes), load(like, totals, at + 3 * lanes)
                for i in range(0, length, lanes):
                    w, v0, v1 = load(like, p, i), load(like, y0, i), load(like, y1, i)
                    w0, w1 = w * load(like, u, i), w * load(like, u1, i)
                    s0, s1 = fma(w0, v0, s0), fma(w0, v1, s1)
                    s2, s3 = fma(w1, v0, s2), fma(w1, v1, s3)
                    if keep:
                        store(scratch + (d + a) * row, i, w0)
                        store(scratch + (d + a + 1) * row, i, w1)
                store(totals, at, s0)
                store(totals, at + lanes, s1)
                store(totals, at + 2 * lanes, s2)
                store(totals, at + 3 * lanes, s3)
                a += 2
                continue
            for col in range(0, c, 2):
                at = (a * c + col) * lanes
                y0 = values + (col * stride + top) * 8
                s0 = load(like, totals, at)
                if col + 1 < c:
                    y1, s1 = y0 + stride * 8, load(like, totals, at + lanes)
                    if a == 0:
                        for i in range(0, length, lanes):
                            w = load(like, p, i)
                            s0, s1 = fma(w, load(like, y0, i), s0), fma(w, load(like, y1, i), s1)
                    else:
                        for i in range(0, length, lanes):
                            w = load(like, p, i) * load(like, u, i)
                            s0, s1 = fma(w, load(like, y0, i), s0), fma(w, load(like, y1, i), s1)
                            if keep:
                                store(scratch + (d + a) * row, i, w)
                    store(totals, at + lanes, s1)
                elif a == 0:
                    for i in range(0, length, lanes):
                        s0 = fma(load(like, p, i), load(like, y0, i), s0)
                else:
                    for i in range(0, length, lanes):
                        w = load(like, p, i) * load(like, u, i)
                        s0 = fma(w, load(like, y0, i), s0)
                        if keep:
                            store(scratch + (d + a) * row, i, w)
                store(totals, at, s0)
            a += 1
    for k in range(M * c):
        put(out, k, get(like, out, k) + total(load(like, totals, k * lanes)))


@loop
def _all(
    kind, size, first, last, owns, own_from, own_to, own_at, d, c, M, parents, coordinates, kept, z, unit, ratios, out,
    buffer, stride, scratch, totals
):  # fmt: skip
    """Every query of the group passes over the buffer, which holds the points own_from to own_to at own_at."""
    for query in range(first, last):
        own = -1
        if owns != 0:
            point = get(_INT, owns, query)
            if own_from <= point < own_to:
                own = own_at + point - own_from
        _pass(
            kind, size, own, d, c, M, parents, coordinates, kept, z + query * d * 8, unit,
            get(np.float64(0), ratios, query), out + query * M * c * 8, buffer, stride, scratch, totals,
        )  # fmt: skip


@loop
def _direct(
    kind, x, x_stride, n, v, v_stride, d, c, M, parents, coordinates, kept, z, unit, ratios, groups, n_groups,
    na, nb, nk, side, reach, dense, numbers, n_numbers, starts, owns, out, buffer, stride, scratch, totals
):  # fmt: skip
    like = np.float64(0)
    for g in range(n_groups):
        first, last = get(_INT, groups, 5 * g), get(_INT, groups, 5 * g + 1)
        a, b = get(_INT, groups, 5 * g + 2), get(_INT, groups, 5 * g + 3)
        k = get(_INT, groups, 5 * g + 4)
        radius = 0 if na == 0 else int(reach / side) + 1
        a0, a1 = (0, 1) if na == 0 else (max(a - radius, 0), min(a + radius + 1, na))
        b0, b1 = (0, 1) if na == 0 else (max(b - radius, 0), min(b + radius + 1, nb))
        size, own_from, own_to, own_at = 0, 0, 0, 0
        own_first = 0 if owns == 0 else get(_INT, owns, first)
        own_last = 0 if owns == 0 else get(_INT, owns, last - 1) + 1
        for i in range(a0, a1):
            for j in range(b0, b1):
                if na == 0:
                    start, stop = 0, n
                else:
                    # cells that are o apart are at least o - 1 sides apart
                    gap_a, gap_b = max(abs(i - a) - 1, 0) * side, max(abs(j - b) - 1, 0) * side
                    room = reach * reach - gap_a * gap_a - gap_b * gap_b
                    if room < 0.0:
                        continue
                    width = int(np.sqrt(room) / side) + 1
                    low, high = max(k - width, 0), min(k + width + 1, nk)
                    if low >= high:
                        continue
                    base = (i * nb + j) * nk
                    if dense:
                        start, stop = get(_INT, starts, base + low), get(_INT, starts, base + high)
                    else:
                        start = get(_INT, starts, _find(numbers, n_numbers, base + low))
                        stop = get(_INT, starts, _find(numbers, n_numbers, base + high))
                while start < stop:
                    taken = min(stop - start, COPIED - size)
                    for col in range(d):
                        for t in range(taken):
                            put(buffer, col * stride + size + t, get(like, x + col * x_stride, start + t))
                    for col in range(c):
                        for t in range(taken):
                            put(buffer, (d + col) * stride + size + t, get(like, v + col * v_stride, start + t))
                    if own_first < start + taken and start < own_last:
                        own_from, own_to = max(start, own_first), min(start + taken, own_last)
                        own_at = size + own_from - start
                    size += taken
                    start += taken
                    if size == COPIED:
                        _all(
                            kind, size, first, last, owns, own_from, own_to, own_at, d, c, M, parents, coordinates,
                            kept, z, unit, ratios, out, buffer, stride, scratch, totals,
                        )  # fmt: skip
                        size, own_from, own_to = 0, 0, 0
        if size > 0:
            _all(
                kind, size, first, last, owns, own_from, own_to, own_at, d, c, M, parents, coordinates, kept, z,
                unit, ratios, out, buffer, stride, scratch, totals,
            )  # fmt: skip
