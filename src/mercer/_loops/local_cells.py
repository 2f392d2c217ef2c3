"""Gaussian sums on a line through moments of cells.

With x = c + delta and z = c + t in units of sigma, c the centre of a cell,

    exp(-(z - x)^2 / 2) = exp(-t^2 / 2) exp(-delta^2 / 2) sum_k t^k delta^k / k!,

so all points of a cell act on a query through the moments m_k = sum_i V_i exp(-delta_i^2 / 2) delta_i^k / k!. The
derivatives of P(t) = sum_k m_k t^k give the moments of delta, and these the moments of u = x - z = delta - t:

    sum w u^k V = exp(-t^2 / 2) sum_j C(k, j) (-t)^(k - j) P^(j)(t).

Points are met once, in any order: 8 moments are one vector, added to the row of the point's cell.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types

from .addresses import Array, address, aligned
from .exponential import exp
from .vectors import (
    Lanes,
    call,
    count,
    fill,
    fma,
    get,
    inline,
    intrinsic,
    load,
    load_some,
    loop,
    put,
    splat,
    store,
    store_some,
)

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
LANES = 8
"""Moments that are added at once."""

_INT = np.int64(0)
_EIGHT = Lanes(types.float64, LANES)


@intrinsic
def whole(typingctx, x):
    """Every lane rounded towards zero, as an int64."""

    def generate(context, builder, sig, args):
        return builder.fptosi(args[0], ir.VectorType(ir.IntType(64), x.count))

    return Lanes(types.int64, x.count)(x), generate


@intrinsic
def powers(typingctx, x):
    """1, x, ..., x^7 for a float64 x."""

    def generate(context, builder, sig, args):
        vector = ir.VectorType(ir.DoubleType(), LANES)
        one = ir.Constant(vector, [ir.Constant(vector.element, 1.0)] * LANES)
        result, factor = one, args[0]
        for bit in (1, 2, 4):
            start = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.IntType(32)(0))
            # a lane takes the factor where its number has the bit
            places = [0 if lane & bit else LANES for lane in range(LANES)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
            result = builder.fmul(result, builder.shuffle_vector(start, one, mask))
            factor = builder.fmul(factor, factor)
        return result

    return _EIGHT(types.float64), generate


@intrinsic
def times(typingctx, p, s):
    """p s for eight lanes and a scalar."""

    def generate(context, builder, sig, args):
        return builder.fmul(args[0], _spread(builder, args[1]))

    return p(p, types.float64), generate


@intrinsic
def accumulate(typingctx, address, p, s):
    """`address`[0 : 8] += p s."""

    def generate(context, builder, sig, args):
        vector = args[1].type
        pointer = builder.inttoptr(args[0], vector.as_pointer())
        old = builder.load(pointer, align=8)
        new = call(builder, f"llvm.fmuladd.v{LANES}f64", vector, args[1], _spread(builder, args[2]), old)
        builder.store(new, pointer, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, p, types.float64), generate


def _spread(builder, scalar):
    vector = ir.VectorType(ir.DoubleType(), LANES)
    start = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(start, start, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


# --- from points to moments -------------------------------------------------------------------------------------------


def add_moments(
    x: Array,
    V: Array | None,
    grid: tuple[float, float],
    places: Array,
    by_point: bool,
    centres: Array,
    factor: float,
    out: Array,
) -> None:
    """out[s, c, k] += sum_i V_ic exp(-delta_i^2 / 2) delta_i^k over the points of cell s, delta = (x - centre) factor.

    x (n,), V (n, c) or None for ones; the cell of x_i is places[i] or, if not `by_point`, int((x - start) / width) with
    grid = (start, 1 / width), for len(places) cells; out (cells, c, K) with K a multiple of 8.
    """
    n, (_, c, K) = len(x), out.shape
    scratch = aligned((4, count_of_lanes()), np.float64)
    _moments(
        address(x), n, 0 if V is None else address(V), c, *grid, address(places) if by_point else 0, len(out) - 1,
        address(centres), factor, K // LANES, address(out), address(scratch),
    )  # fmt: skip


def count_of_lanes() -> int:
    """Queries that are worked on at once."""
    return Lanes(types.float64).count


@loop
def _moments(x, n, v, c, start, per_width, given, last, centres, factor, groups, out, scratch):
    like = np.float64(0)
    lanes = count(like)
    row = 8 * lanes
    places, deltas, weights = scratch, scratch + row, scratch + 2 * row
    for i in range(0, n, lanes):
        rest = min(lanes, n - i)
        if rest == lanes:
            xs = load(like, x, i)
        else:
            xs = load_some(like, x, i, 0, rest)
        store(places, 0, whole((xs - start) * per_width))
        for j in range(rest):
            # rounding may put the last points just outside
            slot = min(max(get(_INT, places, j), 0), last) if given == 0 else get(_INT, given, i + j)
            put(places, j, slot)
            put(deltas, j, get(like, x, i + j) - get(like, centres, slot))
        delta = load(like, deltas, 0) * factor
        store(deltas, 0, delta)
        store(weights, 0, exp(delta * delta * fill(like, -0.5)))
        for j in range(rest):
            delta_j, weight = get(like, deltas, j), get(like, weights, j)
            p = times(powers(delta_j), weight)
            target = out + get(_INT, places, j) * c * groups * 64
            if v == 0:
                accumulate(target, p, 1.0)
            else:
                for col in range(c):
                    accumulate(target + col * groups * 64, p, get(like, v, (i + j) * c + col))
            if groups > 1:
                square = delta_j * delta_j
                eighth = square * square * square * square
                for g in range(1, groups):
                    p = times(p, eighth)
                    if v == 0:
                        accumulate(target + g * 64, p, 1.0)
                    else:
                        for col in range(c):
                            value = get(like, v, (i + j) * c + col)
                            accumulate(target + (col * groups + g) * 64, p, value)


# --- from moments to queries ------------------------------------------------------------------------------------------


def evaluate_cells(
    z: Array,
    bounds: Array,
    groups: Array,
    cells: Array,
    centres: Array,
    moments: Array,
    terms: Array,
    factor: float,
    degree: int,
    out: Array,
) -> None:
    """out[j, k, c] = exp(t0^2 / 2) sum_i exp(-u^2 / 2) u^k V_ic, t0 from query j to the centre of its nearest cell.

    z (m,) the queries, those of one cell together: z[bounds[g] : bounds[g + 1]] lies in cell groups[g, 0] and meets
    the occupied cells groups[g, 2] to groups[g, 3] (exclusive), groups[g, 1] being the nearest; cells and centres of
    these, moments (., c, K) with the factorials divided out, terms[o] the number of them at o cells' distance.
    out (m, degree + 1, c).
    """
    _, c, K = moments.shape
    scratch = aligned(((degree + 1) * (c + 1), count_of_lanes()), np.float64)
    binomials = np.ones((degree + 1, degree + 1))
    for k in range(degree + 1):
        for j in range(1, k + 1):
            binomials[k, j] = binomials[k, j - 1] * (k - j + 1)  # C(k, j) j!
    evaluate = _sums if degree == 0 and c <= 2 else _sums_of_moments
    evaluate(
        address(z), address(bounds), len(groups), address(groups), address(cells), address(centres), address(moments),
        c, K, address(terms), factor, degree, address(binomials), address(out), address(scratch),
    )  # fmt: skip


@loop
def _sums(z, bounds, n_groups, groups, cells, centres, moments, c, K, terms, factor, degree, binomials, out, scratch):
    """Degree 0 and one or two columns: everything stays in registers."""
    like = np.float64(0)
    lanes = count(like)
    half = fill(like, -0.5)
    for g in range(n_groups):
        own, nearest = get(_INT, groups, 4 * g), get(_INT, groups, 4 * g + 1)
        first, last = get(_INT, groups, 4 * g + 2), get(_INT, groups, 4 * g + 3)
        stop = get(_INT, bounds, g + 1)
        for i in range(get(_INT, bounds, g), stop, lanes):
            zs = load_some(like, z, i, 0, stop - i)
            t0 = (zs - get(like, centres, nearest)) * factor
            a0 = a1 = fill(like, 0)
            for s in range(first, last):
                t = (zs - get(like, centres, s)) * factor
                w = exp((t - t0) * (t + t0) * half)
                n_terms = get(_INT, terms, abs(get(_INT, cells, s) - own))
                row = moments + s * c * K * 8
                p0 = splat(get(like, row, n_terms - 1))
                if c == 1:
                    for k in range(n_terms - 2, -1, -1):
                        p0 = fma(p0, t, splat(get(like, row, k)))
                else:
                    p1 = splat(get(like, row, K + n_terms - 1))
                    for k in range(n_terms - 2, -1, -1):
                        p0 = fma(p0, t, splat(get(like, row, k)))
                        p1 = fma(p1, t, splat(get(like, row, K + k)))
                    a1 = fma(w, p1, a1)
                a0 = fma(w, p0, a0)
            if c == 1:
                store_some(out, i, a0, 0, stop - i)
            else:
                store(scratch, 0, a0)
                store(scratch, lanes, a1)
                for j in range(min(lanes, stop - i)):
                    put(out, 2 * (i + j), get(like, scratch, j))
                    put(out, 2 * (i + j) + 1, get(like, scratch, lanes + j))


@loop
def _sums_of_moments(
    z, bounds, n_groups, groups, cells, centres, moments, c, K, terms, factor, degree, binomials, out, scratch
):
    """Any degree and number of columns: P and its derivatives by repeated Horner, u's moments from them."""
    like = np.float64(0)
    lanes = count(like)
    half = fill(like, -0.5)
    M = degree + 1
    totals = scratch + M * lanes * 8
    for g in range(n_groups):
        own, nearest = get(_INT, groups, 4 * g), get(_INT, groups, 4 * g + 1)
        first, last = get(_INT, groups, 4 * g + 2), get(_INT, groups, 4 * g + 3)
        stop = get(_INT, bounds, g + 1)
        for i in range(get(_INT, bounds, g), stop, lanes):
            zs = load_some(like, z, i, 0, stop - i)
            t0 = (zs - get(like, centres, nearest)) * factor
            for k in range(0, M * c * lanes, lanes):
                store(totals, k, fill(like, 0))
            for s in range(first, last):
                t = (zs - get(like, centres, s)) * factor
                w = exp((t - t0) * (t + t0) * half)
                n_terms = get(_INT, terms, abs(get(_INT, cells, s) - own))
                for col in range(c):
                    row = moments + (s * c + col) * K * 8
                    target = totals + col * M * lanes * 8
                    if degree == 0:
                        p0 = fill(like, 0)
                        for k in range(n_terms - 1, -1, -1):
                            p0 = fma(p0, t, splat(get(like, row, k)))
                        store(target, 0, fma(w, p0, load(like, target, 0)))
                    elif degree == 2:
                        p0 = p1 = p2 = fill(like, 0)
                        for k in range(n_terms - 1, -1, -1):
                            p2 = fma(p2, t, p1)
                            p1 = fma(p1, t, p0)
                            p0 = fma(p0, t, splat(get(like, row, k)))
                        store(target, 0, fma(w, p0, load(like, target, 0)))
                        d1 = p1 - t * p0
                        store(target, lanes, fma(w, d1, load(like, target, lanes)))
                        # P''/2 - t P' + t^2 P / 2, twice
                        d2 = p2 - t * p1 + t * t * p0 * fill(like, 0.5)
                        store(target, 2 * lanes, fma(w, d2 + d2, load(like, target, 2 * lanes)))
                    else:
                        _any_degree(like, scratch, target, row, n_terms, degree, binomials, t, w)
            for j in range(min(lanes, stop - i)):
                for col in range(c):
                    for k in range(M):
                        put(out, ((i + j) * M + k) * c + col, get(like, totals, (col * M + k) * lanes + j))


@inline
def _any_degree(like, scratch, target, row, n_terms, degree, binomials, t, w):
    lanes = count(like)
    for j in range(degree + 1):
        store(scratch, j * lanes, fill(like, 0))
    for k in range(n_terms - 1, -1, -1):
        for j in range(degree, 0, -1):
            store(scratch, j * lanes, fma(load(like, scratch, j * lanes), t, load(like, scratch, (j - 1) * lanes)))
        store(scratch, 0, fma(load(like, scratch, 0), t, splat(get(like, row, k))))
    opposite = fill(like, 0) - t
    for k in range(degree + 1):
        total = load(like, scratch, 0)
        for j in range(1, k + 1):
            coefficient = splat(get(like, binomials, k * (degree + 1) + j))
            total = fma(total, opposite, load(like, scratch, j * lanes) * coefficient)
        store(target, k * lanes, fma(w, total, load(like, target, k * lanes)))
