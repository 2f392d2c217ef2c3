"""Negative log-likelihoods of many rows in one pass: value, slope and second derivative in the linear predictor.

    logistic   e = exp(-|eta|):  log1p(e) + (1 - y) eta^+ + y eta^-,    slope (1 - y) p - y (1 - p),   p (1 - p)
    Poisson    exp(eta) - y + y (log y - eta),                          slope exp(eta) - y,            exp(eta)
    softmax    log sum exp(eta_j) - eta_y,                              slope p - onehot(y),           p (1 - p)

Nothing is computed as 1 - p where p is near one, so that losses and slopes far on the right side keep their digits.
Logarithms are made of log(1 + x) = 2 artanh(x / (2 + x)); on 0 <= x <= 1

    log1p(x) = x - s (x - z q(z)),   s = x / (2 + x),   z = s^2 <= 1/9,   q(z) = 2/3 + 2z/5 + 2z^2/7 + ...

with q interpolated in Chebyshev points, relative error 2e-16 in a term that is less than a fortieth of the result.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numpy as np
from llvmlite import ir

from . import costs
from .addresses import Array, address, aligned, rows
from .exponential import exp
from .vectors import (
    I64,
    absolute,
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
    store,
    store_some,
    total,
    where_less,
)

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py
HELD = 150.0
"""exp of the Poisson loss is taken of at most this, and at least its negative."""
_INT = np.int64(0)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_MAGIC_BITS, _MAGIC = 0x4338000000000000, 1.5 * 2.0**52
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def logistic_terms(y: Array, eta: Array, value: Array, slope: Array, bend: Array) -> float:
    """Fill value, slope and bend, all (n,) and contiguous float64; return sum y (1 - y), 0 iff every y is 0 or 1."""
    return _logistic(address(y), address(eta), address(value), address(slope), address(bend), len(y))


def logistic_values(y: Array, eta: Array, value: Array) -> float:
    """The same without derivatives."""
    return _logistic_values(address(y), address(eta), address(value), len(y))


def poisson_terms(y: Array, eta: Array, value: Array, slope: Array, mean: Array) -> None:
    """Fill value, slope and mean (the second derivative), all (n,) and contiguous float64."""
    _poisson(address(y), address(eta), address(value), address(slope), address(mean), len(y))


def poisson_values(y: Array, eta: Array, value: Array) -> None:
    """The same without derivatives."""
    _poisson_values(address(y), address(eta), address(value), len(y))


def softmax_terms(y: Array, eta: Array, value: Array, P: Array, slope: Array, bend: Array) -> None:
    """Fill value (n,), and P, slope and bend (n, k), contiguous; y (n,) int64, eta (n, k) with contiguous rows."""
    n, k = eta.shape
    if n == 0:
        return
    start, stride = rows(eta)
    gaps = aligned((costs.SOFTMAX_ENTRIES,), np.float64, empty=True)
    _softmax(address(y), start, stride, address(value), address(P), address(slope), address(bend), address(gaps), n, k)


def softmax_values(y: Array, eta: Array, value: Array) -> None:
    """The same without derivatives."""
    n, k = eta.shape
    if n == 0:
        return
    start, stride = rows(eta)
    scratch = aligned((costs.SOFTMAX_ENTRIES + max(costs.SOFTMAX_ENTRIES, k),), np.float64, empty=True)
    gaps = address(scratch)
    _softmax_values(address(y), start, stride, address(value), gaps + 8 * costs.SOFTMAX_ENTRIES, gaps, n, k)


# --- logarithms -------------------------------------------------------------------------------------------------------


@intrinsic
def _exponent(typingctx, x):
    """k of x = 2^k m with sqrt(1/2) <= m < sqrt(2), for normal x > 0."""

    def generate(context, builder, sig, args):
        k = _shift(builder, x, args[0])[1]
        magic = ir.Constant(k.type, [I64(_MAGIC_BITS)] * x.count)
        vector = args[0].type
        number = builder.bitcast(builder.add(k, magic), vector)
        return builder.fsub(number, ir.Constant(vector, [ir.Constant(vector.element, _MAGIC)] * x.count))

    return x(x), generate


@intrinsic
def _mantissa(typingctx, x):
    """m of x = 2^k m."""

    def generate(context, builder, sig, args):
        bits, k = _shift(builder, x, args[0])
        places = ir.Constant(k.type, [I64(52)] * x.count)
        return builder.bitcast(builder.sub(bits, builder.shl(k, places)), args[0].type)

    return x(x), generate


def _shift(builder, lanes, value):
    """The bits of a number, and k."""
    integers = ir.VectorType(I64, lanes.count)
    bits = builder.bitcast(value, integers)
    half, places = (ir.Constant(integers, [I64(c)] * lanes.count) for c in (_ROOT_HALF, 52))
    return bits, builder.ashr(builder.sub(bits, half), places)


@inline
def _log(like, x):
    """log of every lane, for normal x > 0: the polynomial of fdlibm."""
    f, k = _mantissa(x) - 1.0, _exponent(x)
    s = f / (f + 2.0)
    z = s * s
    r = fma(fill(like, 1.479819860511658591e-01), z, fill(like, 1.531383769920937332e-01))
    r = fma(r, z, fill(like, 1.818357216161805012e-01))
    r = fma(r, z, fill(like, 2.222219843214978396e-01))
    r = fma(r, z, fill(like, 2.857142874366239149e-01))
    r = fma(r, z, fill(like, 3.999999999940941908e-01))
    r = fma(r, z, fill(like, 6.666666666666735130e-01))
    h = f * f * 0.5
    return k * _LN2_HIGH - ((h - (s * (h + r * z) + k * _LN2_LOW)) - f)


@inline
def _log1p(like, x):
    """log(1 + x) of every lane, for 0 <= x <= 1."""
    s = x / (x + 2.0)
    z = s * s
    q = fma(fill(like, 0.1616404561194353), z, fill(like, 0.08800738486144674))
    q = fma(q, z, fill(like, 0.12001072809590713))
    q = fma(q, z, fill(like, 0.13314144209654935))
    q = fma(q, z, fill(like, 0.15385570064958623))
    q = fma(q, z, fill(like, 0.18181789436132859))
    q = fma(q, z, fill(like, 0.22222222717427864))
    q = fma(q, z, fill(like, 0.2857142856710876))
    q = fma(q, z, fill(like, 0.40000000000014585))
    q = fma(q, z, fill(like, 0.6666666666666666))
    return x - s * (x - z * q)


# --- one predictor ----------------------------------------------------------------------------------------------------


@inline
def _logistic_lanes(like, y, eta):
    """Value, slope, second derivative, and y (1 - y)."""
    zero, one = fill(like, 0), fill(like, 1)
    size = absolute(eta)
    e = exp(zero - size)
    high = one / (e + 1.0)
    low = e * high
    rest = one - y
    value = fma(size, where_less(eta, zero, y, rest), _log1p(like, e))
    slope = rest * where_less(eta, zero, low, high) - y * where_less(eta, zero, high, low)
    return value, slope, high * low, y * rest


@loop
def _logistic(y, eta, value, slope, bend, n):
    like = np.float64(0)
    lanes = count(like)
    shares = fill(like, 0)
    whole = n - n % lanes
    for i in range(0, whole, lanes):
        v, g, h, share = _logistic_lanes(like, load(like, y, i), load(like, eta, i))
        store(value, i, v)
        store(slope, i, g)
        store(bend, i, h)
        shares = shares + share
    if whole < n:
        m = n - whole
        v, g, h, share = _logistic_lanes(like, load_some(like, y, whole, 0, m), load_some(like, eta, whole, 0, m))
        store_some(value, whole, v, 0, m)
        store_some(slope, whole, g, 0, m)
        store_some(bend, whole, h, 0, m)
        shares = shares + share
    return total(shares)


@loop
def _logistic_values(y, eta, value, n):
    like = np.float64(0)
    lanes = count(like)
    shares = fill(like, 0)
    whole = n - n % lanes
    for i in range(0, whole, lanes):
        v, _, _, share = _logistic_lanes(like, load(like, y, i), load(like, eta, i))
        store(value, i, v)
        shares = shares + share
    if whole < n:
        m = n - whole
        v, _, _, share = _logistic_lanes(like, load_some(like, y, whole, 0, m), load_some(like, eta, whole, 0, m))
        store_some(value, whole, v, 0, m)
        shares = shares + share
    return total(shares)


@inline
def _poisson_lanes(like, y, eta):
    """Value and mean."""
    zero, least, most = fill(like, 0), fill(like, -HELD), fill(like, HELD)
    eta = where_less(eta, least, least, where_less(most, eta, most, eta))
    mean = exp(eta)
    tiny = fill(like, 1e-300)
    value = mean - y + y * (_log(like, where_less(y, tiny, tiny, y)) - eta)
    return where_less(value, zero, zero, value), mean


@loop
def _poisson(y, eta, value, slope, mean, n):
    like = np.float64(0)
    lanes = count(like)
    whole = n - n % lanes
    for i in range(0, whole, lanes):
        ys = load(like, y, i)
        v, mu = _poisson_lanes(like, ys, load(like, eta, i))
        store(value, i, v)
        store(slope, i, mu - ys)
        store(mean, i, mu)
    if whole < n:
        m = n - whole
        ys = load_some(like, y, whole, 0, m)
        v, mu = _poisson_lanes(like, ys, load_some(like, eta, whole, 0, m))
        store_some(value, whole, v, 0, m)
        store_some(slope, whole, mu - ys, 0, m)
        store_some(mean, whole, mu, 0, m)


@loop
def _poisson_values(y, eta, value, n):
    like = np.float64(0)
    lanes = count(like)
    whole = n - n % lanes
    for i in range(0, whole, lanes):
        store(value, i, _poisson_lanes(like, load(like, y, i), load(like, eta, i))[0])
    if whole < n:
        m = n - whole
        v = _poisson_lanes(like, load_some(like, y, whole, 0, m), load_some(like, eta, whole, 0, m))[0]
        store_some(value, whole, v, 0, m)


# --- several classes --------------------------------------------------------------------------------------------------
#
# Relative to the largest of a row its exponential is exactly 1, and every other is less (or ties with it): the sum of
# the others is known without a subtraction, and so is 1 - p of the largest.


@inline
def _exponentials(like, y, eta, stride, first, last, k, target, gaps):
    """target = exp(eta - max) of rows first ... last - 1, one after the other; gaps = max - eta_y."""
    lanes = count(like)
    for i in range(first, last):
        row, at = eta + i * stride, (i - first) * k
        most = get(like, row, 0)
        for j in range(1, k):
            x = get(like, row, j)
            most = x if x > most else most  # noqa: FURB136  (max would be a branch)
        for j in range(k):
            put(target, at + j, get(like, row, j) - most)
        put(gaps, i - first, most - get(like, row, get(_INT, y, i)))
    size = (last - first) * k
    whole = size - size % lanes
    for i in range(0, whole, lanes):
        store(target, i, exp(load(like, target, i)))
    if whole < size:
        store_some(target, whole, exp(load_some(like, target, whole, 0, size - whole)), 0, size - whole)


@inline
def _others(like, row, k):
    """The sum of the exponentials of a row but for one that is 1."""
    rest, ones = 0.0, -1.0
    for j in range(k):
        e = get(like, row, j)
        below = e < 1.0
        rest += e if below else 0.0
        ones += 0.0 if below else 1.0
    return rest + ones


@inline
def _log_sums(like, value, gaps, m):
    """value = log1p(value) + gaps."""
    lanes = count(like)
    for i in range(0, m, lanes):
        rest = load_some(like, value, i, 0, m - i)
        u = rest + 1.0
        found = _log(like, u) + (rest - (u - 1.0)) / u
        store_some(value, i, found + load_some(like, gaps, i, 0, m - i), 0, m - i)


@loop
def _softmax(y, eta, stride, value, P, slope, bend, gaps, n, k):
    like = np.float64(0)
    step = max(costs.SOFTMAX_ENTRIES // k, 1)
    for first in range(0, n, step):
        last = min(first + step, n)
        _exponentials(like, y, eta, stride, first, last, k, P + 8 * first * k, gaps)
        for i in range(first, last):
            at, own = 8 * i * k, get(_INT, y, i)
            row = P + at
            rest = _others(like, row, k)
            put(value, i, rest)
            scale = 1.0 / (1.0 + rest)
            rest *= scale
            missed = (get(like, row, own) * scale - 1.0) if get(like, row, own) < 1.0 else -rest
            for j in range(k):
                e = get(like, row, j)
                p = e * scale
                put(row, j, p)
                put(slope + at, j, p)
                put(bend + at, j, p * ((1.0 - p) if e < 1.0 else rest))
            put(slope + at, own, missed)
        _log_sums(like, value + 8 * first, gaps, last - first)


@loop
def _softmax_values(y, eta, stride, value, scratch, gaps, n, k):
    like = np.float64(0)
    step = max(costs.SOFTMAX_ENTRIES // k, 1)
    for first in range(0, n, step):
        last = min(first + step, n)
        _exponentials(like, y, eta, stride, first, last, k, scratch, gaps)
        for i in range(first, last):
            put(value, i, _others(like, scratch + 8 * (i - first) * k, k))
        _log_sums(like, value + 8 * first, gaps, last - first)
