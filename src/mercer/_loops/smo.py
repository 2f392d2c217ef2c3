"""Sequential minimal optimisation: two variables at a time, chosen by the second-order rule, on a stored matrix.

    min ½ βᵀKβ + qᵀβ,   lower ≤ β ≤ upper,   Σβ as at the start (of each group where there are two).

f = Kβ + q is kept up to date. `up` and `low` are 0 where β may still grow or shrink, and a huge number where not, so
that one addition takes a variable out of a search. f has the matrix's dtype, β and its box are float64: what leaves one
variable enters the other, so their sum keeps its digits, and a bound that is reached is reached exactly. Everything is
padded to whole vectors with variables that cannot move.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .addresses import Array, address, aligned
from .exponential import exp4_negative
from .gaussian import Packed, _together
from .vectors import BYTES, count, fill, fma, get, inline, least, load, loop, put, splat, store, where_less

VECTORS = "218e3449b460e253"  # digest of vectors.py, exponential.py and costs.py, see vectors.py

BIG = {4: 1e30, 8: 1e300}
"""Beyond every gradient, by the bytes of a number."""
TINY = 1e-12
"""The least curvature along a pair, in units of the diagonal: equal points have none, and the step goes to a bound."""


def padded(n: int, dtype: Any) -> int:
    """n rounded up to whole vectors."""
    whole = BYTES // np.dtype(dtype).itemsize
    return -(-n // whole) * whole


@inline
def _first(best, where, far):
    """The smallest value and its position (the first of equal ones)."""
    value = least(best)
    return value, least(where_less(splat(value), best, far, where))


@inline
def _row(like, K, stride, n, made, x, d, direct, one, i):
    """The address of row i of K, computed from the packed points x where that was not done before."""
    lanes = count(like)
    row = K + i * stride
    if get(np.int64(0), made, i) == 0:
        size = BYTES // lanes
        point = x + (i // lanes * (d + 1) * lanes + i % lanes) * size
        half = fill(like, -0.5)
        for t in range(0, n, lanes):
            z = x + t * (d + 1) * size
            if direct:
                a = fill(like, 0)
                for k in range(lanes, (d + 1) * lanes, lanes):
                    u = load(like, z, k) - splat(get(like, point, k))
                    a = fma(u, u, a)
                a = a * half
            else:
                a = load(like, z, 0) + splat(get(like, point, 0))
                for k in range(lanes, (d + 1) * lanes, lanes):
                    a = fma(load(like, z, k), splat(get(like, point, k)), a)
            store(row, t, exp4_negative(a))
        put(row, i, one)
        put(made, i, np.int64(1))
    return row


@inline
def _least(like, n, f, up, iota, big):
    """The least f that may grow, and its position."""
    far, where, index = splat(big), fill(like, 0), load(like, iota, 0)
    best, step = far, fill(like, count(like))
    for t in range(0, n, count(like)):
        x = load(like, f, t) + load(like, up, t)
        where = where_less(x, best, index, where)
        best = where_less(x, best, x, best)
        index = index + step
    return _first(best, where, far)


@inline
def _partner(like, n, f, low, diag, row, i, fi, iota, big, tiny):
    """The variable that gains most with i, of those that may shrink, and the largest f − fᵢ among them."""
    zero, floor, step = fill(like, 0), splat(tiny), fill(like, count(like))
    kii, vfi = splat(get(like, diag, i)), splat(fi)
    # The gain is apart²/eta. Fractions are compared by products: a division takes longer than all the rest.
    best, per, where, index, worst = zero, fill(like, 1), zero, load(like, iota, 0), zero
    for t in range(0, n, count(like)):
        apart = load(like, f, t) - load(like, low, t) - vfi
        apart = where_less(zero, apart, apart, zero)
        k = load(like, row, t)
        eta = load(like, diag, t) + kii - k - k
        eta = where_less(eta, floor, floor, eta)
        square = apart * apart
        ours, theirs = square * per, best * eta
        where = where_less(theirs, ours, index, where)
        best = where_less(theirs, ours, square, best)
        per = where_less(theirs, ours, eta, per)
        worst = where_less(worst, apart, apart, worst)
        index = index + step
    _, at = _first(zero - best / per, where, splat(big))
    return np.int64(at), -least(zero - worst)


@inline
def _move(like, row, f, up, low, diag, beta, lower, upper, i, j, fi, big, tiny):
    """βᵢ grows and βⱼ shrinks by the best step within the box, which is returned."""
    wide = np.float64(0)
    kij = get(like, row, j)
    eta = get(like, diag, i) + get(like, diag, j) - kij - kij
    if eta < tiny:
        eta = tiny
    bi, bj = get(wide, beta, i), get(wide, beta, j)
    top, bottom = get(wide, upper, i), get(wide, lower, j)
    room_i, room_j = top - bi, bj - bottom
    move = np.float64((get(like, f, j) - fi) / eta)
    if move >= room_i and room_i <= room_j:
        move = room_i
    elif move >= room_j:
        move = room_j
    put(low, i, like)
    put(up, j, like)
    # A bound that is reached is reached exactly, also where the sum with the step would round to it.
    if move == room_i or bi + move >= top:
        put(beta, i, top)
        put(up, i, big)
    else:
        put(beta, i, bi + move)
    if move == room_j or bj - move <= bottom:
        put(beta, j, bottom)
        put(low, j, big)
    else:
        put(beta, j, bj - move)
    return move


@loop
def _pairs(
    like, K, stride, n, made, x, d, direct, f, diag, beta, lower, upper, iota, one, tol, big, tiny, most, up, low
):
    """One sum: pairs until the gap is below `tol`."""
    lanes = count(like)
    far = splat(big)
    zero = fill(like, 0)
    step = fill(like, lanes)
    fi, at = _least(like, n, f, up, iota, big)
    iterations = 0
    while True:
        i = np.int64(at)
        row_i = _row(like, K, stride, n, made, x, d, direct, one, i)
        j, gap = _partner(like, n, f, low, diag, row_i, i, fi, iota, big, tiny)
        if gap < tol or iterations >= most:
            return iterations, gap
        row_j = _row(like, K, stride, n, made, x, d, direct, one, j)
        vm = fill(like, _move(like, row_i, f, up, low, diag, beta, lower, upper, i, j, fi, big, tiny))
        best, where, index = far, zero, load(like, iota, 0)
        for t in range(0, n, lanes):
            new = fma(vm, load(like, row_i, t) - load(like, row_j, t), load(like, f, t))
            store(f, t, new)
            new = new + load(like, up, t)
            where = where_less(new, best, index, where)
            best = where_less(new, best, new, best)
            index = index + step
        fi, at = _first(best, where, far)
        iterations += 1


@loop
def _pairs_of_two(
    like, K, stride, n, made, x, d, direct, f, diag, beta, lower, upper, iota, one, tol, big, tiny, most,
    up0, low0, up1, low1,
):  # fmt: skip
    """Two sums: every pair is of the group that is further from optimal."""
    lanes = count(like)
    far = splat(big)
    zero = fill(like, 0)
    step = fill(like, lanes)
    vm, row_i, row_j = zero, f, f  # at first nothing moves
    iterations = 0
    while True:
        best0, where0, high0 = far, zero, zero - far
        best1, where1, high1 = far, zero, zero - far
        index = load(like, iota, 0)
        for t in range(0, n, lanes):
            new = fma(vm, load(like, row_i, t) - load(like, row_j, t), load(like, f, t))
            store(f, t, new)
            u0, u1 = new + load(like, up0, t), new + load(like, up1, t)
            where0, where1 = where_less(u0, best0, index, where0), where_less(u1, best1, index, where1)
            best0, best1 = where_less(u0, best0, u0, best0), where_less(u1, best1, u1, best1)
            u0, u1 = new - load(like, low0, t), new - load(like, low1, t)
            high0, high1 = where_less(high0, u0, u0, high0), where_less(high1, u1, u1, high1)
            index = index + step
        f0, at0 = _first(best0, where0, far)
        f1, at1 = _first(best1, where1, far)
        gap0, gap1 = -least(zero - high0) - f0, -least(zero - high1) - f1
        gap = max(gap0, gap1)
        if gap < tol or iterations >= most:
            return iterations, max(gap, like)
        if gap0 >= gap1:
            i, fi, up, low = np.int64(at0), f0, up0, low0
        else:
            i, fi, up, low = np.int64(at1), f1, up1, low1
        row_i = _row(like, K, stride, n, made, x, d, direct, one, i)
        j, _ = _partner(like, n, f, low, diag, row_i, i, fi, iota, big, tiny)
        row_j = _row(like, K, stride, n, made, x, d, direct, one, j)
        vm = fill(like, _move(like, row_i, f, up, low, diag, beta, lower, upper, i, j, fi, big, tiny))
        iterations += 1


def matrix(n: int, dtype: Any, memory: Array | None = None) -> Array:
    """An n × n matrix to be filled, its rows whole vectors on cache lines. What is beyond column n is for `close`.

    `memory` is a larger such matrix that is not needed any more.
    """
    p = padded(n, dtype)
    return aligned((n, p), dtype, empty=True) if memory is None else memory.reshape(-1)[: n * p].reshape(n, p)


def close(K: Array) -> None:
    """Make what is beyond the last column zeros."""
    K[:, len(K) :] = 0


def rows_of(packed: Packed) -> Array:
    """The points of the fused Gaussian one after the other, shape (n, 1 + d)."""
    panels = packed.panels
    return panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[: packed.n]


def pack(rows: Array, spread: float) -> Packed:
    """Points as `rows_of` gave them, packed again; `spread` is that of all, so that all parts sum in the same way."""
    n, d = rows.shape
    lanes = BYTES // rows.itemsize
    whole = n // lanes
    panels = aligned((-(-n // lanes), d, lanes), rows.dtype, empty=True)
    panels[:whole] = rows[: whole * lanes].reshape(whole, lanes, d).transpose(0, 2, 1)
    if n % lanes:
        panels[whole] = 0
        panels[whole, 0] = -np.inf
        panels[whole, :, : n % lanes] = rows[whole * lanes :].T
    return Packed(panels, n, spread)


class State:
    """The variables of one working set and the iteration on them.

    Parameters
    ----------
    K : Array
        A `matrix`, filled; or of which only the rows marked in `made` are, the others being computed when they are
        first needed.
    gradient, beta, lower, upper : array
        Of its n variables, float64.
    group : array or None
        0 or 1 for each, or None.
    packed, made : Packed or None, array or None
        The points of a Gaussian kernel, whose matrix K is, and 1 for each row that is filled, else 0.

    Attributes
    ----------
    beta : array
        The iterate, float64, shape (n,).
    f : array
        Its gradient, in K's dtype, shape (n,).
    """

    def __init__(
        self,
        K: Array,
        gradient: NDArray[np.float64],
        beta: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        group: NDArray[np.int64] | None = None,
        packed: Packed | None = None,
        made: NDArray[np.int64] | None = None,
    ) -> None:
        (n, p), dtype = K.shape, K.dtype
        number = dtype.type
        big = BIG[dtype.itemsize]
        sums = 1 if group is None else 2
        numbers = aligned((2 + 2 * sums, p), dtype)
        self._f, diag = numbers[:2]
        self._f[:n] = gradient
        diag[:n] = np.diagonal(K) if packed is None else 1.0
        if packed is None or made is None:
            made, points = np.ones(n, dtype=np.int64), (0, 0, 0)
        else:
            points = _together(packed, packed)[1:]
        masks = numbers[2:]
        masks.fill(big)
        up, low = np.where(beta < upper, 0.0, big), np.where(beta > lower, 0.0, big)
        for g in range(sums):
            member = True if group is None else group == g
            masks[2 * g, :n] = np.where(member, up, big)
            masks[2 * g + 1, :n] = np.where(member, low, big)
        doubles = np.empty((3, n))
        doubles[0], doubles[1], doubles[2] = beta, lower, upper
        iota = np.arange(BYTES // dtype.itemsize, dtype=dtype)
        tiny = TINY * float(np.abs(diag).max()) or TINY
        self.beta, self.f = doubles[0], self._f[:n]
        self._alive = K, numbers, doubles, iota, packed, made
        self._big, self._tiny, self._number = number(big), number(tiny), number
        self._arrays: tuple[Any, ...] = (number(0), address(K), K.strides[0], p, address(made), *points)
        self._arrays += (address(self._f), address(diag), *(address(row) for row in doubles), address(iota), number(1))
        self._masks = [address(row) for row in masks]

    def run(self, tol: float, most: int) -> tuple[int, float]:
        """Move at most `most` pairs, until the gap is below `tol`; return the number of moved pairs and the gap."""
        search = _pairs if len(self._masks) == 2 else _pairs_of_two
        done, gap = search(*self._arrays, self._number(tol), self._big, self._tiny, most, *self._masks)
        return done, float(gap)
