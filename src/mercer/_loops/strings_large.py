"""The loops of `strings` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

import numba
import numpy as np

loop = numba.njit(cache=True, nogil=True)


@loop
def run_keys(codes, ends, shortest, stop, table, key_ends, keys):
    for i in range(len(ends) - 1):
        at = key_ends[i]
        low, high = ends[i], ends[i + 1]
        if high - low < shortest:
            continue
        sums = np.zeros(high - low, np.uint64)
        for n in range(1, min(stop, high - low + 1)):
            number = high - low - n + 1
            row = table[n - 1]
            for j in range(number):
                sums[j] += row[codes[low + j + n - 1]]
            if n >= shortest:
                keys[at : at + number] = sums[:number]
                at += number


@loop
def masked_keys(codes, ends, masks, table, keys):
    g, at = masks.shape[1], 0
    for i in range(len(ends) - 1):
        for start in range(ends[i], ends[i + 1] - g + 1):
            for p in range(len(masks)):
                key = np.uint64(0)
                for j in range(g):
                    if masks[p, j]:
                        key += table[j, codes[start + j]]
                keys[at, p] = key
            at += 1
