"""Whether a Gram matrix is positive semidefinite, before a solver relies on it."""

from __future__ import annotations

import numpy as np

from mercer.gram import Gram, lapack
from mercer.solvers.base import not_psd


def require_psd(gram: Gram) -> None:
    """Raise, with the negative eigenvalue, if K has one beyond rounding: for kernels that nobody has proven.

    K + τI has a Cholesky factor iff every eigenvalue is above −τ, which is cheaper than computing them.
    """
    K = gram.fresh(np.float64)
    n = len(K)
    bound = float(np.abs(K).sum(axis=1).max())  # ≥ the largest eigenvalue
    tolerance = 100 * n * float(np.finfo(gram.dtype).eps) * bound
    K.flat[:: n + 1] += tolerance
    if lapack.cholesky(K.T, lower=True):
        smallest = float(lapack.eigh(gram.fresh(np.float64).T)[0][0])
        raise not_psd(smallest, n)
