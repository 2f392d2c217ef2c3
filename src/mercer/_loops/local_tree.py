"""Sums of compact weights over sorted points on a line, in O(log n) per query at any width.

The weights are polynomials of |u| on either side of the query. Blocks of points, pairs of blocks, pairs of pairs, ...
know their moments sum V delta^k about their own middle. A window is at most a few points at its ends, summed directly,
and O(log n) of these nodes: with u = tau + delta the weight is a polynomial in delta whose coefficients are the Taylor
coefficients at tau, so that a node costs as many terms as the polynomial has. Unlike in differences of prefix sums,
nothing here is larger than the result's own terms.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import costs
from .addresses import Array, address, aligned
from .local_direct import KINDS, weight
from .vectors import BYTES, count, fill, get, inline, load, load_some, loop, put, store, total

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
WEIGHTS = "3ce25849f1fb8a9e"  # digest of local_direct.py, which has the weights
_INT = np.int64(0)
DEGREES = {"Uniform": 0, "Triangular": 1, "Epanechnikov": 2, "Biweight": 4, "Tricube": 9}


@dataclass(frozen=True, eq=False)
class Tree:
    """Sorted points x (n,) with values V (c, n), and the moments (nodes, c, K) of all nodes about their centres."""

    kind: str
    x: Array
    V: Array
    unit: float
    """Moments are of delta = (x - centre) unit."""
    starts: Array
    """The first node of every level: blocks, pairs of them, ..."""
    centres: Array
    moments: Array


def tree(kind: str, x: Array, V: Array, unit: float, degree: int) -> Tree:
    """The tree for a compact weight and moments of u up to this degree."""
    c, n = V.shape
    sizes = [-(-n // costs.LEAF_POINTS)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    K = DEGREES[kind] + degree + 1
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    centres, moments = np.zeros(starts[-1]), np.zeros((starts[-1], c, K))
    binomials = np.array([[math.comb(k, j) for j in range(K)] for k in range(K)], dtype=np.float64)
    _build(
        address(x), n, address(V), V.strides[0], c, K, unit, address(starts), len(sizes), address(binomials),
        address(centres), address(moments),
    )  # fmt: skip
    return Tree(kind, x, V, unit, starts, centres, moments)


@loop
def _build(x, n, v, v_stride, c, K, unit, starts, levels, binomials, centres, moments):
    like = np.float64(0)
    for level in range(levels):
        first, stop = get(_INT, starts, level), get(_INT, starts, level + 1)
        for node in range(first, stop):
            width = costs.LEAF_POINTS << level
            start = (node - first) * width
            end = min(start + width, n)
            # half the sum might overflow, and half a difference is exact enough
            centre = get(like, x, start) + 0.5 * (get(like, x, end - 1) - get(like, x, start))
            put(centres, node, centre)
            target = moments + node * c * K * 8
            if level == 0:
                for i in range(start, end):
                    delta = (get(like, x, i) - centre) * unit
                    for col in range(c):
                        p = get(like, v + col * v_stride, i)
                        for k in range(K):
                            put(target, col * K + k, get(like, target, col * K + k) + p)
                            p *= delta
            else:
                below = get(_INT, starts, level - 1)
                for side in range(2):
                    child = below + 2 * (node - first) + side
                    if child < first:
                        shift = (get(like, centres, child) - centre) * unit
                        source = moments + child * c * K * 8
                        for col in range(c):
                            for k in range(K):
                                value, power = 0.0, 1.0
                                for j in range(k, -1, -1):
                                    value += get(like, binomials, k * K + j) * power * get(like, source, col * K + j)
                                    power *= shift
                                put(target, col * K + k, get(like, target, col * K + k) + value)


def tree_sums(of: Tree, z: Array, places: Array, inverse: float, ratios: Array, own: Array | None, out: Array) -> None:
    """out[j, k, c] = sum_i w(q) u^k V_ci, q = |x - z_j|^2 ratios_j inverse, u = (x - z_j) unit.

    z (m,) with places[j] points before query j; own (m,) the point that a query leaves out, or None; out (m, M, c).
    """
    _, M, c = out.shape
    K = of.moments.shape[2]
    scratch = aligned((M * c, BYTES // 8), np.float64)
    polynomial = np.zeros(4 * (K + 8))
    _tree(
        KINDS[of.kind], address(of.x), len(of.x), address(of.V), of.V.strides[0], c, M, K, of.unit, address(of.starts),
        address(of.centres), address(of.moments), address(z), len(z), address(places), inverse, address(ratios),
        0 if own is None else address(own), address(out), address(scratch), address(polynomial),
    )  # fmt: skip


@loop
def _points(kind, x, v, v_stride, c, M, start, stop, z, unit, ratio, inverse, scratch):
    """Add the points themselves."""
    like = np.float64(0)
    lanes = count(like)
    for i in range(start, stop, lanes):
        d = load_some(like, x, i, 0, stop - i) - z
        w = weight(like, kind, d * d * ratio * inverse)
        u = d * unit
        for col in range(c):
            p = w * load_some(like, v + col * v_stride, i, 0, stop - i)
            for k in range(M):
                at = (k * c + col) * lanes
                store(scratch, at, load(like, scratch, at) + p)
                p = p * u


@inline
def _expand(kind, tau, p):
    """The Taylor coefficients of the weight at tau, written to p; how many there are."""
    side = 1.0 if tau >= 0 else -1.0
    r = abs(tau)
    if kind == 1:
        put(p, 0, 1.0)
        return 1
    if kind == 2:
        put(p, 0, 1.0 - r)
        put(p, 1, -side)
        return 2
    if kind == 3:
        put(p, 0, (1.0 - r) * (1.0 + r))
        put(p, 1, -2.0 * tau)
        put(p, 2, -1.0)
        return 3
    if kind == 4:
        a = (1.0 - r) * (1.0 + r)
        put(p, 0, a * a)
        put(p, 1, -4.0 * a * tau)
        put(p, 2, 4.0 * tau * tau - 2.0 * a)
        put(p, 3, 4.0 * tau)
        put(p, 4, 1.0)
        return 5
    # (a + b d + c d^2 + e d^3)^3: the square first
    a, b, c, e = (1.0 - r) * (1.0 + r + r * r), -3.0 * side * tau * tau, -3.0 * side * tau, -side
    s0, s1, s2, s3 = a * a, 2.0 * a * b, 2.0 * a * c + b * b, 2.0 * (a * e + b * c)
    s4, s5, s6 = 2.0 * b * e + c * c, 2.0 * c * e, e * e
    put(p, 0, s0 * a)
    put(p, 1, s1 * a + s0 * b)
    put(p, 2, s2 * a + s1 * b + s0 * c)
    put(p, 3, s3 * a + s2 * b + s1 * c + s0 * e)
    put(p, 4, s4 * a + s3 * b + s2 * c + s1 * e)
    put(p, 5, s5 * a + s4 * b + s3 * c + s2 * e)
    put(p, 6, s6 * a + s5 * b + s4 * c + s3 * e)
    put(p, 7, s6 * b + s5 * c + s4 * e)
    put(p, 8, s6 * c + s5 * e)
    put(p, 9, s6 * e)
    return 10


@loop
def _node(kind, node, c, M, K, unit, centres, moments, z, factor, out, polynomial):
    """Add all points of a node: factor turns x - z into u of the weight."""
    like = np.float64(0)
    distance = get(like, centres, node) - z
    size = _expand(kind, distance * factor, polynomial)
    # in powers of delta, in the unit of the moments
    step = factor / unit
    power = 1.0
    for k in range(size):
        put(polynomial, k, get(like, polynomial, k) * power)
        power *= step
    tau = distance * unit
    for m in range(M):
        if m:
            # times u = tau + delta
            put(polynomial, size, 0.0)
            for k in range(size, 0, -1):
                put(polynomial, k, tau * get(like, polynomial, k) + get(like, polynomial, k - 1))
            put(polynomial, 0, tau * get(like, polynomial, 0))
            size += 1
        for col in range(c):
            value, source = 0.0, moments + (node * c + col) * K * 8
            for k in range(size):
                value += get(like, polynomial, k) * get(like, source, k)
            put(out, m * c + col, get(like, out, m * c + col) + value)


@loop
def _tree(
    kind, x, n, v, v_stride, c, M, K, unit, starts, centres, moments, z, m, places, inverse, ratios, owns, out, scratch,
    polynomial
):  # fmt: skip
    like = np.float64(0)
    lanes = count(like)
    for j in range(m):
        zj, ratio, place = get(like, z, j), get(like, ratios, j), get(_INT, places, j)
        factor = math.sqrt(ratio * inverse)
        own = -1 if owns == 0 else get(_INT, owns, j)
        target = out + j * M * c * 8
        for k in range(M * c):
            store(scratch, k * lanes, fill(like, 0))
            put(target, k, 0.0)
        # the window: distances grow away from `place` on both sides
        low, high = 0, place
        while low < high:
            middle = (low + high) // 2
            d = get(like, x, middle) - zj
            if d * d * ratio * inverse <= 1.0:
                high = middle
            else:
                low = middle + 1
        first = low
        low, high = place, n
        while low < high:
            middle = (low + high) // 2
            d = get(like, x, middle) - zj
            if d * d * ratio * inverse <= 1.0:
                low = middle + 1
            else:
                high = middle
        last = low
        for part in range(3):
            if part == 0:
                start, stop = first, place
            elif part == 1:
                start, stop = place, last if own < 0 else min(max(own, place), last)
            else:
                start, stop = (last, last) if own < 0 else (own + 1, last)
            inner, outer = -(-start // costs.LEAF_POINTS), stop // costs.LEAF_POINTS
            if inner + 1 >= outer:
                _points(kind, x, v, v_stride, c, M, start, stop, zj, unit, ratio, inverse, scratch)
                continue
            _points(kind, x, v, v_stride, c, M, start, inner * costs.LEAF_POINTS, zj, unit, ratio, inverse, scratch)
            _points(kind, x, v, v_stride, c, M, outer * costs.LEAF_POINTS, stop, zj, unit, ratio, inverse, scratch)
            level = 0
            while inner < outer:
                base = get(_INT, starts, level)
                if inner % 2:
                    _node(kind, base + inner, c, M, K, unit, centres, moments, zj, factor, target, polynomial)
                    inner += 1
                if outer % 2:
                    outer -= 1
                    _node(kind, base + outer, c, M, K, unit, centres, moments, zj, factor, target, polynomial)
                inner //= 2
                outer //= 2
                level += 1
        for k in range(M * c):
            put(target, k, get(like, target, k) + total(load(like, scratch, k * lanes)))
