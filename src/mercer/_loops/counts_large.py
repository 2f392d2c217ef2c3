"""The loops of `counts` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from itertools import pairwise

import numba
import numpy as np

from . import costs
from .addresses import Array
from .counts import beside_rows

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
    short = np.int32 if len(keys) < 2**31 else np.int64
    result = np.empty(len(keys), short)
    table = np.full(1 << max(4, int(2 * len(keys) - 1).bit_length()), -1, short)
    return result, int(_numbers(np.ascontiguousarray(keys, np.uint64), table, result))


@loop
def _numbers(keys, table, result):
    # The table has the position of the first key at each place.
    bits, last = 0, len(table) - 1
    while (1 << bits) <= last:
        bits += 1
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
            at = (at + 1) & last
    return total


def by_columns(ends: Array, columns: Array, values: Array, width: int) -> tuple[Array, Array]:
    column_ends, entries, so_far, short = _prepared(columns, values, width)
    _by_columns(ends, columns, values, so_far, entries, np.empty((0, 3), short))
    return column_ends, entries


def with_earlier(ends: Array, columns: Array, values: Array, width: int) -> tuple[tuple[Array, Array], Array]:
    column_ends, entries, so_far, short = _prepared(columns, values, width)
    earlier: Array = np.empty((len(columns), 3), short)
    _by_columns(ends, columns, values, so_far, entries, earlier)
    return (column_ends, entries), earlier


def _prepared(columns: Array, values: Array, width: int) -> tuple[Array, Array, Array, type]:
    """The ends of the columns, room for the entries, and what is known of each column before the first entry."""
    short = np.int32 if len(columns) < 2**31 else np.int64
    column_ends = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=width))])
    entries, so_far = np.empty((len(columns), 2), beside_rows(values)), np.empty((width, 3), short)
    so_far[:, 0] = so_far[:, 1] = column_ends[:-1]
    so_far[:, 2] = -1
    return column_ends, entries, so_far, short


@loop
def _by_columns(ends, columns, values, so_far, entries, earlier):
    # so_far[k]: where column k begins, where its next entry goes, and the row of its last one.
    follow = len(earlier) > 0
    for i in range(len(ends) - 1):
        for p in range(ends[i], ends[i + 1]):
            k = columns[p]
            at = so_far[k, 1]
            entries[at, 0], entries[at, 1] = i, values[p]
            if follow:
                earlier[p, 0], earlier[p, 1], earlier[p, 2] = so_far[k, 0], at, so_far[k, 2]
                so_far[k, 2] = i
            so_far[k, 1] = at + 1


def add_products(
    x: tuple[Array, Array, Array],
    z: tuple[Array, Array],
    first: tuple[int, int],
    out: Array,
    fresh: bool,
    term: int,
) -> None:
    low, high = x[0][first[0]], x[0][first[0] + len(out)]
    columns = x[1][low:high]
    stretches = np.column_stack([z[0][columns], z[0][columns + 1]])
    _add_products(x[0], low, x[2], stretches, z[1], first[0], first[1], out, fresh, term)


def add_own_products(
    x: tuple[Array, Array, Array],
    z: tuple[Array, Array],
    earlier: Array,
    first: tuple[int, int],
    out: Array,
    fresh: bool,
    term: int,
) -> None:
    if first[0] == first[1]:
        _add_square(x[0], x[2], earlier, z[1], first[0], out, fresh, term)
    else:
        _add_products(x[0], 0, x[2], earlier, z[1], first[0], first[1], out, fresh, term)


@loop
def _add_products(x_ends, skipped, x_values, stretches, z_entries, row, column, out, fresh, term):
    rows, columns = out.shape
    end, touched = column + columns, 0
    for i in range(rows):
        target = out[i]
        if fresh:
            target[:] = 0.0
        low, high = x_ends[row + i] - skipped, x_ends[row + i + 1] - skipped
        # Read all lists first: the processor then waits for many of them at a time, and not for one after the other.
        for p in range(low, high):
            start, stop = stretches[p, 0], stretches[p, 1]
            if start < stop:
                touched += np.int64(z_entries[start, 0] + z_entries[stop - 1, 0])
        for p in range(low, high):
            value, start, stop = x_values[skipped + p], np.int64(stretches[p, 0]), np.int64(stretches[p, 1])
            after = stop if column > 0 else start
            while start < after:  # the first entry of this feature at or beyond the first column
                middle = (start + after) // 2
                if z_entries[middle, 0] < column:
                    start = middle + 1
                else:
                    after = middle
            for q in range(start, stop):
                if z_entries[q, 0] >= end:
                    break
                target[np.int64(z_entries[q, 0]) - column] += _together(term, value, z_entries[q, 1])
    return touched


@loop
def _add_square(x_ends, x_values, earlier, z_entries, row, out, fresh, term):
    for i in range(len(out)):
        target = out[i]
        if fresh:
            target[: i + 1] = 0.0
        for p in range(x_ends[row + i], x_ends[row + i + 1]):
            value = x_values[p]
            target[i] += _together(term, value, value)
            if earlier[p, 2] >= row:  # seldom: most features of a row occur in no other row of the square
                q = np.int64(earlier[p, 1]) - 1
                while q >= earlier[p, 0] and z_entries[q, 0] >= row:
                    target[np.int64(z_entries[q, 0]) - row] += _together(term, value, z_entries[q, 1])
                    q -= 1
        for j in range(i):
            out[j, i] = target[j]


@loop
def _together(term, value, other):
    if term == 0:
        return value * other
    if term == 1:
        return min(value, other)
    least, most = min(value, other), max(value, other)
    return 2.0 * least * (most / (value + other)) if least > 0.0 else 0.0
