"""Sparse rows of counted features: tallies of keys, a common numbering of two sets of keys, and products of rows.

A key is a uint64 that stands for a feature (a run of letters, a label of a node, a subtree). Rows are stored one after
the other: row i has the entries ends[i] … ends[i + 1] − 1. Small inputs are left to NumPy, as in `tiles`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .costs import COMPILED_ENTRIES
from .small import harmonic
from .tiles import by_size

Array = NDArray[Any]

PRODUCT, LEAST, HARMONIC = 0, 1, 2
"""What two entries of a feature add to a value: u v, min(u, v), or 2 u v/(u + v); the last two for entries > 0."""


def tally(keys: Array, ends: Array, values: Array | None = None) -> tuple[Array, Array, Array]:
    """Equal keys within each row merged: (keys, values, ends), the keys of a row in increasing order.

    The value of a key is the sum of its values, or the number of its occurrences if `values` is None.
    """
    if len(keys) < COMPILED_ENTRIES:
        return _tally(keys, ends, values)
    from . import counts_large

    return counts_large.tally(keys, ends, values)


def numbered(keys: Array, others: Array | None) -> tuple[Array, Array | None, int]:
    """Every distinct key as a number from 0: those of the first, those of the second, and how many there are."""
    n = len(keys)
    everything = keys if others is None else np.concatenate([keys, others])
    if len(everything) < COMPILED_ENTRIES:
        distinct, numbers = np.unique(everything, return_inverse=True)
        number = len(distinct)
    else:
        from . import counts_large

        numbers, number = counts_large.numbers(everything)
    return numbers[:n], None if others is None else numbers[n:], number


def beside_rows(values: Array) -> np.dtype[Any]:
    """The type in which a row and a value of this type stand side by side; values in float32 are whole numbers."""
    return np.dtype(np.int32 if values.dtype == np.float32 else np.float64)


def by_columns(ends: Array, columns: Array, values: Array, width: int) -> tuple[Array, Array]:
    """Entries by rows as entries by columns: the ends of the columns, and the entries.

    An entry is a row with a value beside it; those of a column are in the increasing order of their rows.
    """
    if len(columns) >= COMPILED_ENTRIES:
        from . import counts_large

        return counts_large.by_columns(ends, columns, values, width)
    order = np.argsort(columns, kind="stable")
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    entries = np.column_stack([rows[order], values[order]]).astype(beside_rows(values))
    return np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=width))]), entries


def with_earlier(ends: Array, columns: Array, values: Array, width: int) -> tuple[tuple[Array, Array], Array | None]:
    """The same, and for every entry by rows three numbers about its column; None if there are few entries.

    They are: where the column begins, where the entry stands in it, and the row of the entry before (−1 for none).
    """
    if len(columns) < COMPILED_ENTRIES:
        return by_columns(ends, columns, values, width), None
    from . import counts_large

    return counts_large.with_earlier(ends, columns, values, width)


def add_products(
    x: tuple[Array, Array, Array],
    z: tuple[Array, Array],
    first: tuple[int, int],
    out: Array,
    fresh: bool,
    term: int = PRODUCT,
    earlier: Array | None = None,
) -> None:
    """out_ij += Σ_k x_(i + first row, k) z_(j + first column, k) for x by rows (CSR) and z from `by_columns`.

    The values in `out` count as 0 if it is `fresh`. `term` may replace the product of two entries by another function
    of them. Pass `earlier` (see `with_earlier`) if x and z are the same rows: on and below the diagonal it saves time.
    """
    if by_size(out).__name__.endswith("large"):
        from . import counts_large

        below, square = first[1] + out.shape[1] <= first[0], first[0] == first[1] and out.shape[0] == out.shape[1]
        if earlier is not None and (below or square):
            counts_large.add_own_products(x, z, earlier, first, out, fresh, term)
        else:
            counts_large.add_products(x, z, first, out, fresh, term)
    else:
        if fresh:
            out[...] = 0.0
        _add_products(x, z, first, out, term)


def _tally(keys: Array, ends: Array, values: Array | None) -> tuple[Array, Array, Array]:
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    order = np.lexsort((keys, rows))
    rows, keys = rows[order], keys[order]
    new = np.ones(len(keys), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1])
    groups = np.cumsum(new) - 1
    weights = None if values is None else values[order]
    sums = np.bincount(groups, weights, minlength=0).astype(np.float64) if len(keys) else np.empty(0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[new], minlength=len(ends) - 1))])
    return keys[new], sums, starts.astype(np.int64)


def _add_products(
    x: tuple[Array, Array, Array], z: tuple[Array, Array], first: tuple[int, int], out: Array, term: int
) -> None:
    (x_ends, x_columns, x_values), (z_ends, z_entries) = x, z
    z_rows, z_values = z_entries[:, 0].astype(np.int64), z_entries[:, 1]
    if term == PRODUCT:
        rows = x_ends[first[0] : first[0] + len(out) + 1]
        entries, width, end = slice(rows[0], rows[-1]), len(z_ends) - 1, first[1] + out.shape[1]
        left = sp.csr_array((x_values[entries], x_columns[entries], rows - rows[0]), shape=(len(out), width))
        right = sp.csr_array((z_values, z_rows, z_ends), shape=(width, max(end, z_rows.max(initial=-1) + 1)))
        out += (left @ right)[:, first[1] : end].toarray().astype(out.dtype)
        return
    for i in range(len(out)):
        row = slice(x_ends[i + first[0]], x_ends[i + first[0] + 1])
        starts, stops = z_ends[x_columns[row]], z_ends[x_columns[row] + 1]
        sizes = stops - starts
        at = np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        columns = z_rows[at] - first[1]
        inside = (columns >= 0) & (columns < out.shape[1])
        u, v = np.repeat(x_values[row], sizes)[inside], z_values[at][inside]
        terms = np.minimum(u, v) if term == LEAST else harmonic(u, v)
        out[i] += np.bincount(columns[inside], terms, minlength=out.shape[1]).astype(out.dtype)
