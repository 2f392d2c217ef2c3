"""The dynamic programs of `series` for large inputs, compiled. Nothing here starts a thread.

Loops over the lanes are innermost and of constant length, so that the compiler makes vector instructions of them.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.core import types

from .addresses import Array, address, aligned, rows
from .series import LANES
from .vectors import Lanes, absolute, fma, inline, intrinsic, loop, store

VECTORS = "218e3449b460e253"  # digest of vectors.py and exponential.py, see there

SAFE = 64
"""Rows of alignments are divided by a power of two once a value exceeds 2^SAFE, so that nothing overflows."""


def signature(tile: Array, ends: Array, level: int, out: Array, sizes: Array) -> None:
    if level == 1:
        _first_level(tile, ends, out)
        np.abs(out, out=sizes)
    else:
        top, steps = level - 1, tile.shape[1] // LANES - 1
        sums = aligned(((top + 3) * top * top + 2 * top, LANES), np.float64)
        above = aligned((steps * (top + 1) * top, LANES), np.float64)
        weights = aligned((level, LANES), np.float64)
        weights[:] = 1.0 / np.cumprod(np.arange(1.0, level + 1))[:, None]
        scratch = address(weights), address(sums), address(above)
        _signature(*rows(tile), tile.shape[1], ends, level, *scratch, address(out), address(sizes))


@loop
def _first_level(tile, ends, out):
    last = tile.shape[1] - LANES
    for a in range(len(ends) - 1):
        first, final = tile[ends[a]], tile[ends[a + 1] - 1]
        for q in range(LANES):
            out[a, q] = 1.0 + (final[last + q] - first[last + q]) - (final[q] - first[q])


@intrinsic
def _load(typingctx, address, index):
    """The LANES numbers at `address`, `index` times LANES numbers on."""
    lanes = Lanes(types.float64, LANES)

    def generate(context, builder, sig, args):
        vector = ir.VectorType(ir.DoubleType(), LANES)
        pointer = builder.gep(builder.inttoptr(args[0], vector.as_pointer()), [args[1]])
        return builder.load(pointer, align=8)

    return lanes(types.int64, types.int64), generate


@intrinsic
def _splat(typingctx, value):
    """LANES times the same number."""
    lanes = Lanes(types.float64, LANES)

    def generate(context, builder, sig, args):
        vector = ir.VectorType(ir.DoubleType(), LANES)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[0], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return builder.shuffle_vector(one, one, zeros)

    return lanes(types.float64), generate


@inline
def _store(address, index, x):
    store(address, index * LANES, x)


@loop
def _signature(tile, stride, width, ends, level, weights, sums, above, out, sizes):
    """weights are 1/1!, 1/2!, …; sums and above are scratch. Every number there stands for LANES of them.

    A term of level m + 1 that uses its last step of x r + 1 times and its last step of z s + 1 times is divided by both
    factorials when it is added up, so that B = M B' for the term B' that uses both steps once less.
    """
    steps, top, row = width // LANES - 1, level - 1, LANES * 8
    square = top * top
    # B at runs + (m top + r) top + s; its weighted sums over s (by_x) and over r (by_z), and over both (whole); those
    # of by_x over earlier steps of z (before_x), and of whole over earlier steps of both (before).
    runs, by_x, by_z, before_x = 0, top * square, (top + 1) * square, (top + 2) * square
    before, whole = (top + 3) * square, (top + 3) * square + top
    # At each step of z, sums over earlier steps of x: of by_z, and then of whole.
    size = square + top
    zero = _splat(0.0)
    for a in range(len(ends) - 1):
        total = magnitude = _splat(1.0)
        for index in range(steps * size):
            _store(above, index, zero)
        for i in range(ends[a], ends[a + 1] - 1):
            upper, lower = tile + i * stride, tile + (i + 1) * stride
            for index in range(before_x, before + top):
                _store(sums, index, zero)
            difference = _load(lower, 0) - _load(upper, 0)
            for j in range(steps):
                further = _load(lower, j + 1) - _load(upper, j + 1)
                M = further - difference
                difference = further
                column = above + j * size * row
                _store(sums, runs, M)
                _store(sums, by_x, M)
                _store(sums, by_z, M)
                _store(sums, whole, M)
                total = total + M
                magnitude = magnitude + absolute(M)
                for m in range(1, top):
                    here, last = m * top, (m - 1) * top
                    first = M * _load(sums, before + m - 1)
                    _store(sums, runs + here * top, first)
                    first_x = first_z = first
                    terms = absolute(first)
                    for s in range(1, m + 1):
                        z = M * _load(column, last + s - 1)
                        _store(sums, runs + here * top + s, z)
                        _store(sums, by_z + here + s, z)
                        first_x = fma(_load(weights, s), z, first_x)
                        terms = fma(_load(weights, s), absolute(z), terms)
                    sum = first_x
                    for r in range(1, m + 1):
                        x = M * _load(sums, before_x + last + r - 1)
                        w = _load(weights, r)
                        _store(sums, runs + (here + r) * top, x)
                        first_z = fma(w, x, first_z)
                        own = absolute(x)
                        for s in range(1, m + 1):
                            both = M * _load(sums, runs + (last + r - 1) * top + s - 1)
                            _store(sums, runs + (here + r) * top + s, both)
                            x = fma(_load(weights, s), both, x)
                            own = fma(_load(weights, s), absolute(both), own)
                            _store(sums, by_z + here + s, fma(w, both, _load(sums, by_z + here + s)))
                        _store(sums, by_x + here + r, x)
                        sum = fma(w, x, sum)
                        terms = fma(w, own, terms)
                    _store(sums, by_x + here, first_x)
                    _store(sums, by_z + here, first_z)
                    _store(sums, whole + m, sum)
                    total = total + sum
                    magnitude = magnitude + terms
                # The terms of the highest level are only added up.
                last = (top - 1) * top
                final = _load(sums, before + top - 1)
                terms = absolute(final)
                for r in range(top):
                    x, z = _load(sums, before_x + last + r), _load(column, last + r)
                    parts, own = x + z, absolute(x) + absolute(z)
                    for s in range(top):
                        w, both = _load(weights, s + 1), _load(sums, runs + (last + r) * top + s)
                        parts, own = fma(w, both, parts), fma(w, absolute(both), own)
                    final = fma(_load(weights, r + 1), parts, final)
                    terms = fma(_load(weights, r + 1), own, terms)
                total = fma(M, final, total)
                magnitude = fma(absolute(M), terms, magnitude)
                for m in range(top):
                    _store(sums, before + m, _load(sums, before + m) + _load(column, square + m))
                    _store(column, square + m, _load(column, square + m) + _load(sums, whole + m))
                    for r in range(m * top, m * top + m + 1):
                        _store(sums, before_x + r, _load(sums, before_x + r) + _load(sums, by_x + r))
                        _store(column, r, _load(column, r) + _load(sums, by_z + r))
        _store(out, a, total)
        _store(sizes, a, magnitude)


def goursat(tile: Array, ends: Array, refine: int, out: Array) -> None:
    _goursat(tile, ends, 2**refine, out)


@loop
def _goursat(tile, ends, pieces, out):
    steps = tile.shape[1] // LANES - 1
    u = np.empty((steps * pieces + 1, LANES))
    smooth, corner = np.empty((steps, LANES)), np.empty((steps, LANES))
    left, both = np.empty(LANES), np.empty(LANES)
    for a in range(len(ends) - 1):
        u[:] = 1.0
        for i in range(ends[a], ends[a + 1] - 1):
            for j in range(steps):
                at, next = j * LANES, (j + 1) * LANES
                for q in range(LANES):
                    G = (tile[i + 1, next + q] - tile[i + 1, at + q]) - (tile[i, next + q] - tile[i, at + q])
                    G /= pieces * pieces
                    smooth[j, q], corner[j, q] = 1.0 + G / 2 + G * G / 12, 1.0 - G * G / 12
            for _ in range(pieces):
                left[:] = 1.0
                both[:] = 1.0
                for j in range(steps):
                    for p in range(pieces):
                        for q in range(LANES):
                            up = u[j * pieces + p + 1, q]
                            left[q] = (left[q] + up) * smooth[j, q] - both[q] * corner[j, q]
                            both[q] = up
                            u[j * pieces + p + 1, q] = left[q]
        for q in range(LANES):
            out[a, q] = u[steps * pieces, q]


def alignments(tile: Array, ends: Array, lengths: Array, out: Array) -> None:
    _alignments(tile, ends, lengths, out)


@loop
def _alignments(tile, ends, lengths, out):
    points = tile.shape[1] // LANES
    u, left, both = np.empty((points, LANES)), np.empty(LANES), np.empty(LANES)
    scale, largest = np.empty(LANES), np.empty(LANES)
    for a in range(len(ends) - 1):
        u[:] = 0.0
        scale[:] = 0.0
        for i in range(ends[a], ends[a + 1]):
            left[:] = 0.0
            largest[:] = 0.0
            both[:] = 1.0 if i == ends[a] else 0.0
            for j in range(points):
                for q in range(LANES):
                    up = u[j, q]
                    left[q] = (left[q] + up + both[q]) * tile[i, j * LANES + q]
                    both[q] = up
                    u[j, q] = left[q]
                    largest[q] = max(largest[q], left[q])
            for q in range(LANES):
                if largest[q] > 2.0**SAFE:
                    power = math.floor(math.log2(largest[q]))
                    scale[q] += power
                    for j in range(points):
                        u[j, q] *= 2.0**-power
        for q in range(LANES):
            # Products below 2^-1022 were lost, at most 2^(SAFE + 4) times larger by what they were multiplied with,
            # in each cell; at most (1 + sqrt 2)^(n + m) alignments continue from there.
            n, m = ends[a + 1] - ends[a], lengths[q]
            lost = SAFE + 4 - 1022 + math.log2(n * m) + (n + m) * math.log2(1 + math.sqrt(2.0))
            value = u[m - 1, q]
            if value > 0.0 and math.log2(value) > lost + 53:
                out[a, q] = math.log(value) + scale[q] * math.log(2.0)
            else:
                out[a, q] = np.nan


def log_alignments(tile: Array, ends: Array, lengths: Array, out: Array) -> None:
    _log_alignments(tile, ends, lengths, out)


@loop
def _log_alignments(tile, ends, lengths, out):
    u = np.empty(tile.shape[1] // LANES)
    for a in range(len(ends) - 1):
        for q in range(LANES):
            u[:] = -np.inf
            for i in range(ends[a], ends[a + 1]):
                left, both = -np.inf, 0.0 if i == ends[a] else -np.inf
                for j in range(lengths[q]):
                    up = u[j]
                    largest = max(left, up, both)
                    if largest == -np.inf:
                        left = -np.inf
                    else:
                        terms = math.exp(left - largest) + math.exp(up - largest) + math.exp(both - largest)
                        left = largest + math.log(terms) + tile[i, j * LANES + q]
                    both = up
                    u[j] = left
            out[a, q] = u[lengths[q] - 1]


def warping(tile: Array, ends: Array, lengths: Array, out: Array) -> None:
    _warping(tile, ends, lengths, out)


@loop
def _warping(tile, ends, lengths, out):
    points = tile.shape[1] // LANES
    u, left, both = np.empty((points, LANES)), np.empty(LANES), np.empty(LANES)
    for a in range(len(ends) - 1):
        u[:] = np.inf
        for i in range(ends[a], ends[a + 1]):
            left[:] = np.inf
            both[:] = 0.0 if i == ends[a] else np.inf
            for j in range(points):
                for q in range(LANES):
                    up = u[j, q]
                    left[q] = min(min(left[q], up), both[q]) + tile[i, j * LANES + q]
                    both[q] = up
                    u[j, q] = left[q]
        for q in range(LANES):
            out[a, q] = u[lengths[q] - 1, q]
