"""Runs of symbols as 64-bit keys, and dynamic programmes over pairs of strings; small inputs are left to NumPy.

Strings are stored one after the other: string i has the codes ends[i] … ends[i + 1] − 1. A run has the key
Σⱼ table[j, code of its j-th symbol] modulo 2⁶⁴, where the table holds random numbers: two different runs share a key
with probability 2⁻⁶⁴ (Zobrist 1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .costs import COMPILED_ENTRIES

Array = NDArray[Any]


def run_keys(codes: Array, ends: Array, lengths: range, table: Array) -> tuple[Array, Array]:
    """The keys of all runs of these lengths, string after string (within one, from the shortest on), and their ends."""
    sizes = np.diff(ends)
    numbers = np.maximum(sizes[:, None] - (np.array(lengths) - 1), 0)
    key_ends = np.concatenate([[0], np.cumsum(numbers.sum(axis=1))])
    keys = np.empty(key_ends[-1], np.uint64)
    if len(keys) >= COMPILED_ENTRIES:
        from . import strings_large

        strings_large.run_keys(codes, ends, lengths.start, lengths.stop, table, key_ends, keys)
        return keys, key_ends
    first = key_ends[:-1, None] + np.cumsum(numbers, axis=1) - numbers
    sums = table[0][codes]
    for n in range(1, lengths.stop):
        if n > 1:
            sums = sums[:-1] + table[n - 1][codes[n - 1 :]]
        if n >= lengths.start:
            number = numbers[:, n - lengths.start]
            within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            keys[np.repeat(first[:, n - lengths.start], number) + within] = sums[np.repeat(ends[:-1], number) + within]
    return keys, key_ends


def masked_keys(codes: Array, ends: Array, masks: Array, table: Array) -> tuple[Array, Array]:
    """The keys of all windows of g symbols through masks (rows of g booleans), string after string, and their ends."""
    g = masks.shape[1]
    number = np.maximum(np.diff(ends) - g + 1, 0)
    key_ends = np.concatenate([[0], np.cumsum(number * len(masks))])
    keys = np.empty((int(number.sum()), len(masks)), np.uint64)
    if keys.size >= COMPILED_ENTRIES:
        from . import strings_large

        strings_large.masked_keys(codes, ends, masks, table, keys)
    else:
        starts = np.arange(len(keys)) + np.repeat(ends[:-1] - np.cumsum(number) + number, number)
        terms = table[np.arange(g), codes[starts[:, None] + np.arange(g)]]
        np.matmul(terms, masks.T.astype(np.uint64), out=keys)
    return keys.ravel(), key_ends
