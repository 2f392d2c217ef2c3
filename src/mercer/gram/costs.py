"""The cost of an entry of K, counted before anything is computed.

Whether K is stored or computed again for every product is decided by these counts, never by a clock: sums over stored
and recomputed entries round differently, and the same call has to give the same numbers every time. The times were
measured on one core of a server of about 2020; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.frames import arrays, is_frame, rows
from mercer.data.points import Points, length
from mercer.kernels.base import Similarity
from mercer.kernels.custom import POSITIONS, FromFunction
from mercer.kernels.discrete import CATEGORIES
from mercer.kernels.spaces import Vectors

COORDINATE = 0.05
"""Nanoseconds for one coordinate of a dense product."""
OPERATION = 1.0
"""Nanoseconds for one stored number of a sparse product, or one elementwise operation on an entry."""
WORTH_STORING = 0.5
"""Nanoseconds per byte: an entry that takes longer is stored; a faster one is computed again for every product."""
STORED_SHARE = 0.25
"""Share of the budget: K_nm is stored up to here, and computed again for every product if it takes more."""
STORED_ROWS = 12_000
"""Rows: the values of an expensive kernel are stored up to here; beyond it most would never be reused."""
PIVOTS = 128
"""Pivots of a Cholesky factor proposed at a time: fewer mean small products, more are rejected more often."""
INTERRUPTIBLE_ROWS = 1000
"""Rows: LAPACK works on more in a thread of its own, which can be interrupted; on fewer the thread costs more."""


def entry(kernel: Similarity, points: Points) -> float:
    """The nanoseconds that one k(x, z) takes on one core, by counting operations.

    >>> import mercer as mc
    >>> X = Points(np.zeros((10, 20)))
    >>> entry(mc.Gaussian(1.0), X), entry(mc.Gaussian(1.0) + mc.Linear(), X)
    (2.0, 5.0)
    >>> texts = Points(["as long as", "this here?"])
    >>> entry(mc.Spectrum(3), texts)
    11.0
    """
    children = [child for child in kernel.children.values() if isinstance(child, Similarity)]
    if children:
        seen = kernel.seen_by_parts(points)
        return OPERATION + sum(entry(child, seen) for child in children)
    if isinstance(kernel, FromFunction):
        return math.inf  # a Python function per pair: beyond every comparison
    return OPERATION + _numbers(kernel, points.raw)


def _numbers(kernel: Similarity, X: Any) -> float:
    """The nanoseconds for reading all numbers of a point: the columns of a table, or the elements of an object."""
    if sp.issparse(X):
        return OPERATION * X.nnz / X.shape[0]
    by_cell = is_frame(X) and not isinstance(kernel.space, Vectors) and kernel.space not in (CATEGORIES, POSITIONS)
    if not by_cell and (is_frame(X) or isinstance(X, np.ndarray)):
        return COORDINATE * (X.shape[1] if len(X.shape) > 1 else 1)
    some = rows(X, slice(None, None, max(1, length(X) // 100)))
    if by_cell:  # objects in the cells of a column, such as texts
        some = [x for column in arrays(some) for x in column]
    return OPERATION * float(np.mean([len(x) if hasattr(x, "__len__") else 1 for x in some]))


def worth_storing(kernel: Similarity, points: Points, dtype: Any) -> bool:
    """Whether an entry costs so much more to compute than to fetch that keeping it pays.

    >>> import mercer as mc
    >>> X = Points(np.zeros((10, 3)))
    >>> worth_storing(mc.Gaussian(1.0), X, "float64"), worth_storing(mc.FromFunction(max), X, "float64")
    (False, True)
    """
    return entry(kernel, points) > WORTH_STORING * np.dtype(dtype).itemsize
