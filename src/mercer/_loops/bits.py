"""Rows of bits, packed 64 to a word: how many ones two rows have in common.

Small inputs are left to NumPy, as in `tiles`.
"""

from __future__ import annotations

import numpy as np

from .addresses import Array, fits, target
from .tiles import by_size


def packed(X: Array) -> Array:
    """The rows of a matrix whose entries are 0 or 1, as words of 64 bits, filled up with zeros."""
    octets = np.packbits(X, axis=1)
    words = np.zeros((len(X), -(-octets.shape[1] // 8) * 8), np.uint8)
    words[:, : octets.shape[1]] = octets
    return words.view(np.uint64)


def unpacked(words: Array, columns: int) -> Array:
    """The same matrix again, as float64."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=columns).astype(np.float64)


def sizes(words: Array) -> Array:
    """The number of ones in each row."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)


def jaccard_tile(X: Array, Z: Array, x_sizes: Array, z_sizes: Array, out: Array) -> None:
    """out_ij = c/(a + b − c) for rows with a and b ones, c of them in common; 1 for two empty rows."""
    fits(X, Z, out)
    target(out)
    if by_size(out).__name__.endswith("large"):
        from . import bits_large

        bits_large.jaccard_tile(X, Z, x_sizes, z_sizes, out)
        return
    left, right = (unpacked(words, 64 * words.shape[1]) for words in (X, Z))
    common = left @ right.T
    union = x_sizes[:, None] + z_sizes - common
    out[...] = np.divide(common, union, out=np.ones_like(common), where=union > 0)
