"""The cost of an entry of K, counted before anything is computed.

Whether K is stored or computed again for every product is decided by these counts, never by a clock: sums over stored
and recomputed entries round differently, and the same call has to give the same numbers every time. The times were
measured on one core of a server of about 2020; only their ratios matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.frames import is_frame
from mercer.data.points import Points
from mercer.kernels.base import Similarity
from mercer.kernels.custom import FromFunction

# Nanoseconds: for one coordinate of a dense product, one stored number of a sparse one, one pass of an elementwise
# function or of arithmetic over a tile, one call of a Python function, and one byte fetched from memory.
COORDINATE, NONZERO, PASS, CALL, BYTE = 0.05, 1.0, 1.0, 1000.0, 0.125
# Storing pays if an entry costs this many times as much as fetching it: writing the matrix costs time and memory, too.
WORTH_STORING = 4.0


def entry(kernel: Similarity, points: Points) -> float:
    """The nanoseconds that one k(x, z) takes on one core, by counting operations.

    >>> import mercer as mc
    >>> X = Points(np.zeros((10, 20)))
    >>> entry(mc.Gaussian(1.0), X), entry(mc.Gaussian(1.0) + mc.Linear(), X)
    (2.0, 5.0)
    """
    children = [child for child in kernel.children.values() if isinstance(child, Similarity)]
    if children:
        return PASS + sum(entry(child, points) for child in children)
    return CALL if isinstance(kernel, FromFunction) else PASS + _numbers(points.raw)


def _numbers(X: Any) -> float:
    """The nanoseconds for reading all numbers of a point: the columns of a table, or the elements of an object."""
    if sp.issparse(X):
        return NONZERO * X.nnz / X.shape[0]
    if is_frame(X) or isinstance(X, np.ndarray):
        return COORDINATE * (X.shape[1] if len(X.shape) > 1 else 1)
    some = X[:: max(1, len(X) // 100)]
    return NONZERO * float(np.mean([len(x) if hasattr(x, "__len__") else 1 for x in some]))


def worth_storing(kernel: Similarity, points: Points, dtype: Any) -> bool:
    """Whether an entry costs so much more to compute than to fetch that keeping it pays.

    >>> import mercer as mc
    >>> X = Points(np.zeros((10, 3)))
    >>> worth_storing(mc.Gaussian(1.0), X, "float64"), worth_storing(mc.FromFunction(max), X, "float64")
    (False, True)
    """
    return entry(kernel, points) > WORTH_STORING * BYTE * np.dtype(dtype).itemsize
