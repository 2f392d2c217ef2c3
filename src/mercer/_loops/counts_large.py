"""The loops of `counts` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from itertools import pairwise

import numba
import numpy as np

from . import costs
from .addresses import Array

loop = numba.njit(cache=True, nogil=True)


def tally(keys: Array, ends: Array, values: Array | None) -> tuple[Array, Array, Array]:
    keys, ends = np.ascontiguousarray(keys, np.uint64), np.ascontiguousarray(ends, np.int64)
    merged, sums, starts = np.empty(len(keys), np.uint64), np.empty(len(keys)), np.zeros(len(ends), np.int64)
    if values is None:
        long = len(keys) > costs.SORTED_KEYS * (len(ends) - 1)
        if long:
            keys = keys.copy()
            for low, high in pairwise(ends.tolist()):
                keys[low:high].sort()
        total = _counted(keys, ends, not long, merged, sums, starts)
    else:
        total = _summed(keys, np.ascontiguousarray(values, np.float64), ends, merged, sums, starts)
    return merged[:total].copy(), sums[:total].copy(), starts


@loop
def _counted(keys, ends, unsorted, merged, sums, starts):
    at = 0
    for i in range(len(ends) - 1):
        row = keys[ends[i] : ends[i + 1]]
        if unsorted:
            row = np.sort(row)
        for j in range(len(row)):
            if j > 0 and row[j] == row[j - 1]:
                sums[at - 1] += 1.0
            else:
                merged[at], sums[at] = row[j], 1.0
                at += 1
        starts[i + 1] = at
    return at


@loop
def _summed(keys, values, ends, merged, sums, starts):
    at = 0
    for i in range(len(ends) - 1):
        row = keys[ends[i] : ends[i + 1]]
        weights = values[ends[i] : ends[i + 1]]
        order = np.argsort(row, kind="mergesort")
        for j in range(len(row)):
            if j > 0 and row[order[j]] == row[order[j - 1]]:
                sums[at - 1] += weights[order[j]]
            else:
                merged[at], sums[at] = row[order[j]], weights[order[j]]
                at += 1
        starts[i + 1] = at
    return at


def numbers(keys: Array) -> tuple[Array, int]:
    """A number from 0 for every key, in the order of first appearance, and how many there are."""
    result = np.empty(len(keys), np.int64)
    bits = max(4, int(2 * len(keys) - 1).bit_length())
    return result, int(_numbers(np.ascontiguousarray(keys, np.uint64), bits, result))


@loop
def _numbers(keys, bits, result):
    size = 1 << bits
    table = np.full(size, -1, np.int64)  # the position of the first key that has this place
    spread, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - bits)
    total = 0
    for i in range(len(keys)):
        at = np.int64((keys[i] * spread) >> shift)
        while True:
            first = table[at]
            if first < 0:
                table[at] = i
                result[i] = total
                total += 1
                break
            if keys[first] == keys[i]:
                result[i] = result[first]
                break
            at = (at + 1) & (size - 1)
    return total


def by_columns(ends: Array, columns: Array, values: Array, width: int) -> tuple[Array, Array, Array]:
    column_ends = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=width))])
    rows, sorted_values = np.empty(len(columns), np.int32), np.empty_like(values)
    _by_columns(ends, columns, values, column_ends[:-1].copy(), rows, sorted_values)
    return column_ends, rows, sorted_values


@loop
def _by_columns(ends, columns, values, at, rows, sorted_values):
    for i in range(len(ends) - 1):
        for p in range(ends[i], ends[i + 1]):
            k = columns[p]
            rows[at[k]], sorted_values[at[k]] = i, values[p]
            at[k] += 1


def add_products(
    x: tuple[Array, Array, Array],
    z: tuple[Array, Array, Array],
    first: tuple[int, int],
    out: Array,
    fresh: bool,
    term: int,
) -> None:
    _add_products(*x, *z, first[0], first[1], out, fresh, term)


@loop
def _add_products(x_ends, x_columns, x_values, z_ends, z_rows, z_values, row, column, out, fresh, term):
    rows, columns = out.shape
    end, most, touched = column + columns, 0, 0
    for i in range(rows):
        most = max(most, x_ends[row + i + 1] - x_ends[row + i])
    lows, highs = np.empty(most, np.int64), np.empty(most, np.int64)
    for i in range(rows):
        target = out[i]
        if fresh:
            target[:] = 0.0
        start = x_ends[row + i]
        number = x_ends[row + i + 1] - start
        # Look up all lists first: the processor then waits for many of them at a time, and not for one after the other.
        for p in range(number):
            k = x_columns[start + p]
            lows[p], highs[p] = z_ends[k], z_ends[k + 1]
        for p in range(number):
            if lows[p] < highs[p]:
                touched += z_rows[lows[p]] + np.int64(z_values[lows[p]])
        for p in range(number):
            value, low, stop = x_values[start + p], lows[p], highs[p]
            high = stop if column > 0 else low
            while low < high:  # the first entry of this feature at or beyond the first column
                middle = (low + high) // 2
                if z_rows[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            while low < stop and z_rows[low] < end:
                other = z_values[low]
                if term == 0:
                    target[z_rows[low] - column] += value * other
                elif term == 1:
                    target[z_rows[low] - column] += min(value, other)
                elif min(value, other) > 0.0:
                    least, most = min(value, other), max(value, other)
                    target[z_rows[low] - column] += 2.0 * least * (most / (value + other))
                low += 1
    return touched
