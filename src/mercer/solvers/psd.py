"""Whether a Gram matrix is positive semidefinite, before a solver relies on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.gram import Gram, lapack
from mercer.solvers.base import not_psd


def negative_eigenvalue(gram: Gram) -> float | None:
    """The smallest eigenvalue of K if it is negative beyond rounding, else None.

    K + τI has a Cholesky factor iff every eigenvalue is above −τ, which is cheaper than computing them.

    >>> import numpy as np, mercer as mc
    >>> from mercer import gram
    >>> negative_eigenvalue(gram.of(mc.FromFunction(lambda x, z: x[0] * z[0]), [[1.0], [2.0]]))
    >>> round(negative_eigenvalue(gram.of(mc.FromFunction(lambda x, z: -x[0] * z[0]), [[1.0], [2.0]])), 6)
    -5.0
    """
    K = gram.fresh(np.float64)
    n = len(K)
    bound = float(np.abs(K).sum(axis=1).max())  # ≥ the largest eigenvalue
    tolerance = 100 * n * float(np.finfo(gram.dtype).eps) * bound
    K.flat[:: n + 1] += max(tolerance, float(np.finfo(np.float64).tiny))
    failed = lapack.cholesky(K.T, lower=True)
    return float(lapack.eigh(gram.fresh(np.float64).T)[0][0]) if failed else None


def require_psd(gram: Gram, *, warn: Callable[[float, int], None] | None = None) -> None:
    """Raise an error with the smallest eigenvalue if it is negative beyond rounding; for kernels without a proof.

    Parameters
    ----------
    gram : Gram
        K, or a part of it.
    warn : function or None
        Called with the eigenvalue and the number of points instead of raising, for models that have a solution anyway:
        the box of a support vector machine is bounded.
    """
    smallest = negative_eigenvalue(gram)
    if smallest is None:
        return
    if warn is None:
        raise not_psd(smallest, gram.shape[0])
    warn(smallest, gram.shape[0])
