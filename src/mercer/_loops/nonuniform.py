"""Sums between scattered points and a regular periodic grid: the loops of the nonuniform Fourier transform.

A point at u, in units of the grid, meets the w nearest grid points of every axis through the window

    psi(s - u), ..., psi(s + w - 1 - u),    s = ceil(u - w / 2),

and the window of its place is the product over the axes. For each of the w offsets psi is a polynomial of the place
within a cell, so that all of them come from one Horner scheme over vectors. The grid is padded by w points per axis,
which the caller folds back: no index wraps around here.

Points are taken in the order of cells along the first axis, so that a share of them touches one stretch of the grid.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numba
import numpy as np

from . import costs
from .addresses import Array

loop = numba.njit(cache=True, nogil=True, fastmath={"contract"})


def cells(X: Array, centre: Array, spacing: Array, sizes: Array, first: int, last: int, out: Array) -> int:
    """out[i] = the number of the cell of point i, for first <= i < last; returns the largest number + 1 over all."""
    per_axis = -(-sizes // costs.CELL_POINTS) + 1
    _cells(X, centre, spacing, sizes, per_axis, costs.CELL_POINTS, first, last, out)
    return int(per_axis.prod())


def in_order(cell: Array, number: int) -> Array:
    """The points in the order of their cells, those of one cell in their own order."""
    order = np.empty(len(cell), np.int32 if len(cell) < 2**31 else np.int64)
    _in_order(cell, np.zeros(number + 1, np.int64), order)
    return order


@loop
def _cells(X, centre, spacing, sizes, per_axis, width, first, last, out):
    for i in range(first, last):
        number = 0
        for k in range(X.shape[1]):
            u = (np.float64(X[i, k]) - centre[k]) * spacing[k]
            u = (u - np.floor(u)) * sizes[k]
            number = number * per_axis[k] + np.int64(u) // width
        out[i] = number


@loop
def _in_order(cell, ends, order):
    for i in range(len(cell)):
        ends[cell[i] + 1] += 1
    for c in range(1, len(ends)):
        ends[c] += ends[c - 1]
    for i in range(len(cell)):
        order[ends[cell[i]]] = i
        ends[cell[i]] += 1


@loop
def _window(x, centre, spacing, size, table, out):
    """The window of one coordinate, and its first place on the padded axis."""
    terms, w = table.shape
    u = (np.float64(x) - centre) * spacing
    u = (u - np.floor(u)) * size
    s = np.ceil(u - 0.5 * w)
    t = 2.0 * (s - u + 0.5 * w) - 1.0
    for j in range(w):
        out[j] = table[0, j]
    for g in range(1, terms):
        for j in range(w):
            out[j] = out[j] * t + table[g, j]
    return np.int64(s) + w // 2


@loop
def stretch(X, order, first, last, centre, spacing, sizes, table, strides):
    """The first and the last place of the padded grid, flat, at which points first ... last - 1 of the order begin."""
    w = table.shape[1]
    low, high = np.int64(2**62), np.int64(-1)
    for p in range(first, last):
        at = 0
        for k in range(X.shape[1]):
            u = (np.float64(X[order[p], k]) - centre[k]) * spacing[k]
            u = (u - np.floor(u)) * sizes[k]
            at += (np.int64(np.ceil(u - 0.5 * w)) + w // 2) * strides[k]
        low, high = min(low, at), max(high, at)
    return low, high


@loop
def spread(X, order, first, last, centre, spacing, sizes, table, strides, V, base, out):
    """out[c, place - base] += V[i, c] psi(place) for points first ... last - 1 of the order."""
    d, w, channels = X.shape[1], table.shape[1], V.shape[1]
    K = np.empty((3, w))
    for p in range(first, last):
        i = order[p]
        at = -base
        for k in range(d):
            at += _window(X[i, k], centre[k], spacing[k], sizes[k], table, K[k]) * strides[k]
        inner = K[d - 1]
        for c in range(channels):
            v, row = V[i, c], out[c]
            if d == 1:
                line = row[at : at + w]
                for j in range(w):
                    line[j] += v * inner[j]
            elif d == 2:
                for a in range(w):
                    q = v * K[0, a]
                    line = row[at + a * strides[0] : at + a * strides[0] + w]
                    for j in range(w):
                        line[j] += q * inner[j]
            else:
                for a in range(w):
                    for b in range(w):
                        q = v * K[0, a] * K[1, b]
                        begin = at + a * strides[0] + b * strides[1]
                        line = row[begin : begin + w]
                        for j in range(w):
                            line[j] += q * inner[j]


@loop
def interpolate(X, order, first, last, centre, spacing, sizes, table, strides, grid, out):
    """out[i, c] = sum over places of grid[c, place] psi(place) for points first ... last - 1 of the order."""
    d, w, channels = X.shape[1], table.shape[1], out.shape[1]
    K = np.empty((3, w))
    sums = np.empty(w)
    for p in range(first, last):
        i = order[p]
        at = 0
        for k in range(d):
            at += _window(X[i, k], centre[k], spacing[k], sizes[k], table, K[k]) * strides[k]
        inner = K[d - 1]
        for c in range(channels):
            row = grid[c]
            for j in range(w):
                sums[j] = 0.0
            if d == 1:
                line = row[at : at + w]
                for j in range(w):
                    sums[j] = line[j]
            elif d == 2:
                for a in range(w):
                    q = K[0, a]
                    line = row[at + a * strides[0] : at + a * strides[0] + w]
                    for j in range(w):
                        sums[j] += q * line[j]
            else:
                for a in range(w):
                    for b in range(w):
                        q = K[0, a] * K[1, b]
                        begin = at + a * strides[0] + b * strides[1]
                        line = row[begin : begin + w]
                        for j in range(w):
                            sums[j] += q * line[j]
            total = 0.0
            for j in range(w):
                total += sums[j] * inner[j]
            out[i, c] = total
