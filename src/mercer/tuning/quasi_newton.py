"""The descent of all searches by gradient: BFGS within bounds, which can start from a known curvature.

SciPy's L-BFGS-B cannot: here the curvature on a sample of the rows, scaled by their number, gives good first steps on
all rows, so that only a few evaluations remain.

The L-BFGS of `solvers/descent.py` does another job: there the unknowns are functions without bounds, too many for a
matrix B, and a line search is nearly free; here every value costs a factorisation, so that the first step must be good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
LONGEST = 2.0
"""The longest step in the logarithm of a parameter."""


class Evaluation(NamedTuple):
    """A value to minimise with its gradient, and its x, which a criterion may have moved."""

    x: Matrix
    value: float
    gradient: Matrix


class Reached(NamedTuple):
    """The end of a descent, the curvature B that it has learnt, and the number of its evaluations."""

    at: Evaluation
    B: Matrix
    evaluations: int


def minimise(
    f: Callable[[Matrix], Evaluation],
    x: Matrix,
    low: Matrix,
    high: Matrix,
    B: Matrix | None = None,
    precision: float = 0.05,
    limit: int = 100,
) -> Reached:
    """A minimum of f within bounds: BFGS steps on the free parameters, projected, with a backtracking line search.

    B is the curvature to begin with; a descent ends when a Newton step promises less than `precision`.

    >>> import numpy as np
    >>> f = lambda x: Evaluation(x, float((x - 1) @ (x - 1)), 2 * (x - 1))
    >>> minimise(f, np.zeros(2), np.full(2, -9.0), np.array([9.0, 0.5]), precision=1e-9).at.x.round(4)
    array([1. , 0.5])
    """
    at = f(np.clip(x, low, high))
    evaluations, known = 1, B is not None
    if B is None:
        B = np.eye(len(x)) * max(float(np.abs(at.gradient).max()), EPS)
    while evaluations < limit and np.isfinite(at.value):
        g = at.gradient
        free = ~(((at.x <= low) & (g >= 0)) | ((at.x >= high) & (g <= 0)))
        if not free.any():
            break
        p = np.zeros_like(g)
        p[free] = -_solve(B[np.ix_(free, free)], g[free])
        if -0.5 * float(g @ p) < precision:
            break
        p *= min(1.0, LONGEST / float(np.abs(p).max()))
        t, after = 1.0, at
        while evaluations < limit:
            trial = np.clip(at.x + t * p, low, high)
            after = f(trial)
            evaluations += 1
            slope = float(g @ (trial - at.x))
            if after.value <= at.value + 1e-4 * slope:
                break
            # The minimum of the parabola through both values and the slope.
            rise = after.value - at.value - slope
            t *= float(np.clip(-0.5 * slope / rise, 0.1, 0.5)) if np.isfinite(rise) else 0.2
            if t < 1e-3:
                break
        if not after.value < at.value:
            break
        s, change = after.x - at.x, after.gradient - g
        if not known and float(s @ change) > 0:
            B, known = np.eye(len(x)) * float(change @ change) / float(s @ change), True
        B = _updated(B, s, change)
        at = after
    return Reached(at, B, evaluations)


def positive_definite(H: Matrix, least: float) -> Matrix:
    """H with its eigenvalues replaced by their absolute values, or by `least` if these are smaller.

    >>> import numpy as np
    >>> positive_definite(np.diag([-2.0, 0.0]), 0.1)
    array([[2. , 0. ],
           [0. , 0.1]])
    """
    values, U = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray((U * np.maximum(np.abs(values), least)) @ U.T)


def _solve(B: Matrix, g: Matrix) -> Matrix:
    """B⁻¹ g, for the nearest B that is safely positive definite."""
    values, U = np.linalg.eigh(B)
    values = np.maximum(np.abs(values), max(1e-8 * float(np.abs(values).max()), EPS))
    return np.asarray(U @ ((U.T @ g) / values))


def _updated(B: Matrix, s: Matrix, change: Matrix) -> Matrix:
    """The BFGS update, damped by Powell's rule so that B stays positive definite."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ change)
    if sBs <= 0:
        return B
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        change = theta * change + (1 - theta) * Bs
        sy = 0.2 * sBs
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(change, change) / sy)
