"""Zeros of many increasing functions at once, by SciPy's method of Chandrupatla."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Functions = Callable[[Matrix, NDArray[np.int64]], Matrix]
"""f(x, rows): the values at x of the functions with these numbers, as far as they are still searched."""

# An infinite value counts as this much: its sign is all that a search needs of it, and SciPy refuses infinities.
INFINITE = 1e300
# A bracket grows at most this often, by a factor of three each time: to more than 10⁴⁷ times its width.
GROWTHS, ITERATIONS = 100, 200
NO_SIGN_CHANGE = -1  # SciPy's status of a bracket that encloses no zero


def find_roots(
    f: Functions, low: Matrix, high: Matrix, *, atol: float = 1e-13, rtol: float = 1e-13, grow: bool = False
) -> Matrix:
    """The zero of each increasing function within its bracket, to the tolerance atol + rtol·|x|, shape (n,).

    Where a function has no change of sign in its bracket, the result is the end of the bracket that is nearer to one.
    With `grow` the brackets are guesses, whose ends are moved outwards first until they enclose a zero.

    >>> find_roots(lambda x, rows: x**3 - np.array([8.0, 27.0])[rows], np.zeros(2), np.full(2, 9.0))
    array([2., 3.])
    """
    from scipy.optimize import elementwise  # a third of a second

    if not len(low):
        return low.copy()

    def values(x: Matrix, rows: NDArray[np.int64]) -> Matrix:
        return np.clip(f(x, rows), -INFINITE, INFINITE)

    search = elementwise.find_root(
        values, (low, high), args=(np.arange(len(low)),), tolerances={"xatol": atol, "xrtol": rtol}, maxiter=ITERATIONS
    )
    x = np.asarray(search.x, dtype=np.float64)
    some = np.flatnonzero(search.status == NO_SIGN_CHANGE)
    if not len(some):
        return x
    if grow:
        x[some] = find_roots(lambda at, rows: f(at, some[rows]), *_enclose(f, some, low, high), atol=atol, rtol=rtol)
    else:
        x[some] = np.where(search.f_bracket[0][some] > 0, low[some], high[some])
    return x


def _enclose(f: Functions, rows: NDArray[np.int64], low: Matrix, high: Matrix) -> tuple[Matrix, Matrix]:
    """Brackets of some of the functions with their ends moved outwards until these enclose the zeros."""
    low, high = low[rows], high[rows]
    for _ in range(GROWTHS):
        if not (over := f(low, rows) > 0).any():
            break
        low = np.where(over, low - 2 * (high - low), low)
    for _ in range(GROWTHS):
        if not (short := f(high, rows) < 0).any():
            break
        high = np.where(short, high + 2 * (high - low), high)
    return low, high
