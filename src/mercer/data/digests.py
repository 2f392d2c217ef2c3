"""Rows as digests below 2⁵³: equal rows have equal digests in every process, and different rows different ones.

A model file keeps the digests of its training rows, so that rows that were trained on are recognised later without the
rows themselves. Two different rows share a digest with probability 2⁻⁵³.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.columns import as_array, tabled
from mercer.data.keys import keys_of
from mercer.data.missing import is_missing, missing_entries
from mercer.errors import InvalidInput

Keys = NDArray[np.uint64]
Digests = NDArray[np.int64]

BITS = 53
"""Digests are whole numbers that float64 and JSON hold exactly."""

_MISSING = np.uint64(0x6D697373696E6721)
_GOLDEN, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def column_keys(X: Any) -> list[Keys] | None:
    """One key per value and column: numbers by their value, texts and others by a hash, one key for a missing value.

    X is an array, a sparse matrix or a frame; None for other objects, such as graphs, and for values without a key. A
    sparse matrix has one column of keys, of whole rows.

    >>> import numpy as np
    >>> keys = column_keys(np.array([[1.0, 0.0], [1.0, -0.0], [2.0, np.nan]]))
    >>> [len(set(column.tolist())) for column in keys]
    [2, 2]
    """
    if sp.issparse(X):
        return [_sparse_keys(sp.csr_matrix(X, copy=True))]
    try:
        if isinstance(X, list):
            return [_keys(np.fromiter(X, dtype=object, count=len(X)))]
        return [_keys(as_array(column, name)) for name, column in tabled(X).items()]
    except (InvalidInput, TypeError):
        return None


def row_digests(columns: Sequence[Keys]) -> Digests:
    """One digest per row, from the keys of its columns in their order.

    >>> import numpy as np
    >>> rows = row_digests(column_keys(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])))
    >>> bool(rows[0] == rows[2]), bool(rows[0] == rows[1])
    (True, False)
    """
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for keys in columns:
        state = _mixed(state + _GOLDEN ^ keys)
    return np.asarray(state >> np.uint64(64 - BITS)).astype(np.int64)


def digest_at(X: Any, start: int) -> Keys | None:
    """A digest of rows at the positions from `start` on: two numbers, whose sums over parts do not depend on the parts.

    None if the values have no key.

    >>> import numpy as np
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> bool((digest_at(X, 0) == digest_at(X[:1], 0) + digest_at(X[1:], 1)).all())
    True
    >>> bool((digest_at(X, 0) == digest_at(X[::-1], 0)).any())
    False
    """
    columns = column_keys(X)
    if columns is None:
        return None
    rows = row_digests(columns).view(np.uint64)
    place = _mixed(np.arange(start, start + len(rows), dtype=np.uint64) + _GOLDEN)
    keys = _mixed(rows ^ place)
    return np.array([keys.sum(dtype=np.uint64), _mixed(keys + _GOLDEN).sum(dtype=np.uint64)])


def _keys(A: NDArray[Any]) -> Keys:
    """One key per value of a column."""
    missing = missing_entries(A)
    if A.dtype.kind in "biuf":
        keys = (A.astype(np.float64) + 0.0).view(np.uint64)  # + 0 makes −0 and 0 equal
    elif A.dtype.kind in "mM":
        unit = "M8[us]" if A.dtype.kind == "M" else "m8[us]"
        keys = A.astype(unit).view(np.int64).view(np.uint64)
    else:
        values = A.tolist()
        if set(map(type, values)) <= {str, type(None)}:  # each text is hashed once
            distinct = list(dict.fromkeys(values))
            of_text = dict(zip(distinct, keys_of(distinct).tolist()))
            keys = np.array([of_text[value] for value in values], dtype=np.uint64)
        else:
            keys = keys_of([None if is_missing(value) else _hashable(value) for value in values])
    return np.where(missing, _MISSING, _mixed(keys))


def _hashable(value: Any) -> Any:
    """Lists and sets as values that have a key."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(_hashable(part) for part in value)
    return frozenset(value) if isinstance(value, set) else value


def _sparse_keys(A: sp.csr_matrix) -> Keys:
    """A key per row of a sparse matrix: a sum over its entries that are not 0, in any order."""
    A.sum_duplicates()
    A.eliminate_zeros()
    values = (A.data.astype(np.float64) + 0.0).view(np.uint64)
    keys = _mixed(_mixed(values) ^ (A.indices.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return np.asarray(sums[A.indptr[1:]] - sums[A.indptr[:-1]])


def _mixed(x: Keys) -> Keys:
    """A bijection of 64-bit numbers in which each bit depends on all (Steele, Lea and Flood's splitmix64, 2014)."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return np.asarray(x ^ (x >> np.uint64(31)))
