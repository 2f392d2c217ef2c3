"""The result of a solver: the coefficients, and how well they solve the problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram.fourier import FourierGrid
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.factor import Factor

Matrix = NDArray[np.float64]

# Iterative refinement: at most this many sweeps, to this relative residual, by the itemsize of the matrix's dtype.
SWEEPS, TOLERANCE = 3, {4: 1e-7, 8: 1e-10}
# Above this relative residual the system was not solved: it is singular to rounding.
UNSOLVED = 1e-6


class End(Enum):
    """Why an iteration ended."""

    CONVERGED = "converged"
    ITERATIONS = "iterations"
    TIME = "time"
    CALLER = "caller"
    INTERRUPTED = "interrupted"
    UNBOUNDED = "unbounded"
    DIVERGED = "diverged"
    STALLED = "stalled"
    NO_MARGIN = "no margin"


@dataclass(frozen=True, eq=False)
class Solution:
    """The coefficients of f = Σ cᵢ k(xᵢ, ·) + Σ bⱼ pⱼ.

    Attributes
    ----------
    coef : array
        c, shape (n, t), or (m, t) on m centres; on a grid of frequencies the real and imaginary parts of the stored
        coefficients, one after the other.
    tail : array or None
        b, shape (p, t), or None if the problem has no tail.
    solver : str
        The solver used: "cholesky", "eigen", "cg", "nystrom" or "fourier".
    status : str
        How it was solved, and why by this solver, in words.
    residual : float
        The relative residual of the linear system, measured in float64: the largest ‖r‖/‖s∘y‖ over the targets with r =
        s∘y − (K̃ + alpha I)u − P̃b. At alpha = 0 r is the part of s∘y that no function reaches, and need not vanish.
        Then the residual is its part along functions and tail, the larger of ‖K̃r‖/(‖K̃‖‖s∘y‖) and ‖Qᵀr‖/‖s∘y‖, Q a
        basis of the tail.
    stats
        Iterations, rank, and other figures of the solver.
    points : Points or None
        The centres that the coefficients belong to, or None for the n points of the problem.
    factors : dict
        The system at each alpha, if the solver factorised it in float64 and in memory that it needed anyway. They give
        leave-one-out, intervals and evidence without a second factorisation. Each keeps n² numbers in memory as long as
        it is referenced: a caller that does not need them drops them with the solution.
    grid : FourierGrid or None
        The frequencies that the coefficients belong to, or None.
    """

    coef: Matrix
    tail: Matrix | None
    solver: str
    status: str
    residual: float
    stats: dict[str, Any] = field(default_factory=dict)
    points: Points | None = None
    factors: dict[float, Factor] = field(default_factory=dict)
    grid: FourierGrid | None = None


def not_psd(value: float, n: int) -> InvalidInput:
    """The error for a Gram matrix with a negative eigenvalue."""
    return InvalidInput(
        "The Gram matrix must be positive semidefinite",
        got=f"the eigenvalue {value:.4g} < 0 on these {n} points",
        advice="Run mc.check(kernel, X) to see where. kernel.proof() shows the unproven part, mc.repair(K) mends K.",
    )


# -- how well a system is solved ---------------------------------------------------------------------------------------


def recomputed(problem: LeastSquares) -> LeastSquares:
    """The problem with a float64 Gram that is never stored."""
    return replace(problem, gram=problem.gram.recomputed(np.float64))


def left_over(problem: LeastSquares, coef: Matrix, tail: Matrix | None) -> Matrix:
    """s∘y − (K̃ + alpha I)u − P̃b for a solution of the problem, from a float64 Gram that is computed anew, (n, t)."""
    u = coef if problem.roots is None else coef / problem.roots[:, None]
    R = problem.weighted_targets - recomputed(problem).multiply(u) - problem.alpha * u
    return R if tail is None or problem.weighted_tail is None else R - problem.weighted_tail @ tail


def relative(R: Matrix, Y: Matrix) -> float:
    """The largest ‖rⱼ‖/‖yⱼ‖ over the columns; a column of zeros is solved by zeros."""
    sizes = np.linalg.norm(Y, axis=0)
    return float((np.linalg.norm(R, axis=0) / np.where(sizes > 0, sizes, 1.0)).max(initial=0.0))


Pair = tuple[Matrix, Matrix | None]


def refined(
    solve: Callable[[Matrix], Pair],
    residual: Callable[[Matrix, Matrix | None], Matrix],
    y: Matrix,
    roots: Matrix | None,
    tol: float,
) -> tuple[Matrix, Matrix | None, Matrix]:
    """(c, b) by iterative refinement, and its residual vectors: repeat for the residual as long as that halves it."""
    s = np.ones(1) if roots is None else roots[:, None]
    c, b = solve(y)
    R = residual(c, b)
    for _ in range(SWEEPS):
        reached = relative(R, s * y)
        if reached <= tol:
            break
        dc, db = solve(R / s)
        moved = c + dc, None if b is None or db is None else b + db
        left = residual(*moved)
        if not relative(left, s * y) <= 0.5 * reached:
            break
        (c, b), R = moved, left
    return c, b, R


def verdict(how: str, residual: float, alpha: float) -> tuple[str, bool]:
    """The status of a direct solution, and whether it is exact: "exact, …" unless the residual is too large."""
    if residual <= UNSOLVED:
        return f"exact, {how}", True
    advice = "Raise `alpha`, or scale columns of very different size"
    return (
        f"inexact, {how}: at alpha = {alpha:.3g} singular to rounding, relative residual {residual:.1e}. {advice}",
        False,
    )
