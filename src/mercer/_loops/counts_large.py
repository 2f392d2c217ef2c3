"""The loops of `counts` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numba
import numpy as np

from .addresses import Array

loop = numba.njit(cache=True, nogil=True)


def tally(keys: Array, ends: Array, values: Array | None) -> tuple[Array, Array, Array]:
    keys, ends = np.ascontiguousarray(keys, np.uint64), np.ascontiguousarray(ends, np.int64)
    merged, sums, starts = np.empty(len(keys), np.uint64), np.empty(len(keys)), np.zeros(len(ends), np.int64)
    if values is None:
        total = _counted(keys, ends, merged, sums, starts)
    else:
        total = _summed(keys, np.ascontiguousarray(values, np.float64), ends, merged, sums, starts)
    return merged[:total].copy(), sums[:total].copy(), starts


@loop
def _counted(keys, ends, merged, sums, starts):
    """Keys find their place in a table of twice as many places; only the distinct ones are sorted."""
    longest = 0
    for i in range(len(ends) - 1):
        longest = max(longest, ends[i + 1] - ends[i])
    bits = 2
    while (1 << bits) < 2 * longest:
        bits += 1
    table = np.full(1 << bits, -1, np.int64)  # where the key of this place stands among the merged ones
    places = np.empty(longest, np.int64)
    spread, at = np.uint64(0x9E3779B97F4A7C15), 0
    for i in range(len(ends) - 1):
        small = 2
        while (1 << small) < 2 * (ends[i + 1] - ends[i]):
            small += 1
        shift, size, start = np.uint64(64 - small), 1 << small, at
        for j in range(ends[i], ends[i + 1]):
            place = np.int64((keys[j] * spread) >> shift)
            while table[place] >= 0 and merged[table[place]] != keys[j]:
                place = (place + 1) & (size - 1)
            if table[place] < 0:
                places[at - start] = place
                table[place] = at
                merged[at], sums[at] = keys[j], 1.0
                at += 1
            else:
                sums[table[place]] += 1.0
        for j in range(at - start):
            table[places[j]] = -1
        order = np.argsort(merged[start:at])
        merged[start:at] = merged[start:at][order]
        sums[start:at] = sums[start:at][order]
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


def add_products(
    x: tuple[Array, Array, Array],
    z: tuple[Array, Array, Array],
    first: tuple[int, int],
    out: Array,
    term: int,
) -> None:
    _add_products(*x, *z, first[0], first[1], out, term)


@loop
def _add_products(x_ends, x_columns, x_values, z_ends, z_rows, z_values, row, column, out, term):
    rows, columns = out.shape
    end = column + columns
    for i in range(rows):
        for p in range(x_ends[row + i], x_ends[row + i + 1]):
            k, value = x_columns[p], x_values[p]
            low, high = z_ends[k], z_ends[k + 1]
            stop = high
            while low < high:  # the first entry of this feature at or beyond the first column
                middle = (low + high) // 2
                if z_rows[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            while low < stop and z_rows[low] < end:
                other = z_values[low]
                if term == 0:
                    out[i, z_rows[low] - column] += value * other
                elif term == 1:
                    out[i, z_rows[low] - column] += min(value, other)
                elif value * other > 0.0:
                    out[i, z_rows[low] - column] += 2.0 * value * other / (value + other)
                low += 1
