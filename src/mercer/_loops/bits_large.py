"""The loops of `bits` for large inputs, compiled. Nothing here starts a thread."""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import extending
from numba.core import types

from . import costs
from .addresses import Array

loop = numba.njit(cache=True, nogil=True)
intrinsic: Any = extending.intrinsic


@intrinsic
def _ones(context, word):
    """The number of ones in a word: one instruction of the processor."""

    def code(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


def jaccard_tile(X: Array, Z: Array, x_sizes: Array, z_sizes: Array, out: Array) -> None:
    X, Z, x_sizes, z_sizes = (np.ascontiguousarray(a) for a in (X, Z, x_sizes, z_sizes))
    _jaccard(X, Z, x_sizes, z_sizes, costs.NEAR_ROWS, out)


@loop
def _jaccard(X, Z, x_sizes, z_sizes, near, out):
    words = X.shape[1]
    for start in range(0, len(Z), near):
        stop = min(start + near, len(Z))
        for i in range(len(X)):
            for j in range(start, stop):
                ones = np.uint64(0)
                for k in range(words):
                    ones += _ones(X[i, k] & Z[j, k])
                common = np.int64(ones)
                union = x_sizes[i] + z_sizes[j] - common
                out[i, j] = common / union if union > 0 else 1.0
