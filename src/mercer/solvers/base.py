"""What a solver gives back: the coefficients and how well they solve the problem; or the factorised system itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.tail import Singular

Matrix = NDArray[np.float64]

# Iterative refinement: at most so many sweeps, towards this relative residual by bytes of the matrix's dtype.
SWEEPS, TOLERANCE = 3, {4: 1e-7, 8: 1e-10}
# A solution whose relative residual is above this is none: the system is singular to rounding.
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
    coef : c, shape (n, t), or (m, t) on m centres.
    tail : b, shape (p, t), or None where the problem has no tail.
    solver : the one that was used: "cholesky", "eigen", "cg", "nystrom".
    status : in words what was done, and why this solver.
    residual : the relative residual of the linear system, measured in float64: the largest ‖r‖/‖s∘y‖ over the targets
        with r = s∘y − (K̃ + alpha I)u − P̃b. At alpha = 0 r is what no function reaches, and need not vanish: what does
        is its part along functions and tail, the larger of ‖K̃r‖/(‖K̃‖‖s∘y‖) and ‖Qᵀr‖/‖s∘y‖, Q a basis of the tail.
    stats : iterations, rank, and whatever else the solver knows.
    points : the centres that the coefficients belong to, or None where they are the problem's own n points.
    """

    coef: Matrix
    tail: Matrix | None
    solver: str
    status: str
    residual: float
    stats: dict[str, Any] = field(default_factory=dict)
    points: Points | None = None


def not_psd(value: float, n: int) -> InvalidInput:
    """The error for a Gram matrix with a negative eigenvalue."""
    return InvalidInput(
        "The Gram matrix must be positive semidefinite",
        got=f"the eigenvalue {value:.4g} < 0 on these {n} points",
        advice="mc.check(kernel, X) shows where, kernel.proof() names the unproven part, mc.repair(K) mends a matrix.",
    )


class Factor(ABC):
    """The bordered system M = [[K + alpha W⁻¹, P], [Pᵀ, 0]], factorised for one alpha: all exact answers at O(n²).

    The fit is linear in the targets: f(z) = Σᵢ lᵢ(z) yᵢ, where l(z) are the first n entries of M⁻¹ [k(z); p(z)].
    Leaving row i out changes it to f(z) − lᵢ(z) rᵢ, with the leave-one-out residual rᵢ = cᵢ / (M⁻¹)ᵢᵢ.
    """

    alpha: float
    roots: Matrix | None
    tail: Matrix | None = None

    @property
    def degrees_of_freedom(self) -> float:
        """The trace of the smoother on the training points: fitted = y − alpha W⁻¹ M⁻¹ y."""
        H = self.diagonal()
        return float(len(H) - self.alpha * (H if self.roots is None else H / self.roots**2).sum())

    @abstractmethod
    def solve(self, y: Matrix) -> tuple[Matrix, Matrix | None]:
        """(c, b) for targets y of shape (n, t)."""

    @abstractmethod
    def smoother(self, Kz: NDArray[Any], Pz: Matrix | None = None) -> Matrix:
        """l(z) for m queries, shape (m, n), from Kz = k(Z, X) of shape (m, n) and the tail's functions (m, p) there."""

    @abstractmethod
    def diagonal(self) -> Matrix:
        """(M⁻¹)ᵢᵢ for the n points, shape (n,)."""

    @abstractmethod
    def inverse(self) -> Matrix:
        """The first n rows and columns of M⁻¹, shape (n, n)."""

    def leave_one_out(self, y: Matrix) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ): what each point says about the model fitted without it, shape (n, t)."""
        require_left(self.tail)
        c, _ = self.solve(y)
        return np.asarray(c / self.diagonal()[:, None])

    def leave_fold_out(self, y: Matrix, fold: NDArray[np.int64]) -> Matrix:
        """The residuals yᵢ − f₋B(xᵢ) where the whole fold B of point i was left out: (M⁻¹)_BB⁻¹ c_B.

        `fold` says for each point to which fold it belongs; −1 belongs to none, and its row is NaN.
        """
        c, _ = self.solve(y)
        G = self.inverse()
        residuals = np.full_like(c, np.nan)
        for label in np.unique(fold[fold >= 0]):
            B = np.flatnonzero(fold == label)
            require_left(self.tail, B, f"fold {label}")
            residuals[B] = np.linalg.solve(G[np.ix_(B, B)], c[B])
        return residuals


def require_left(P: Matrix | None, out: NDArray[np.int64] | None = None, name: str = "") -> None:
    """Raise where the rows that are left do not determine the tail P, shape (n, p): without any one, or without `out`.

    With an orthonormal basis Q of P, the rows left when B is out have the least singular value √(1 − ‖Q_B‖²).
    """
    if P is None or not P.any():
        return
    sizes = np.linalg.norm(P, axis=0)
    left, values, _ = np.linalg.svd(P / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    rounding = 10 * len(P) * float(np.finfo(np.float64).eps)
    Q = left[:, values > rounding * max(values[0], np.finfo(np.float64).tiny)]
    if out is None:
        share = np.einsum("ip,ip->i", Q, Q)
        worst = int(share.argmax())
        taken, what, name = (
            float(share[worst]),
            "Leave-one-out needs points whose tail is determined without any one of them",
            f"row {worst}",
        )
    else:
        taken, what = float(np.linalg.norm(Q[out], 2)) ** 2, "Folds must leave points that determine the tail"
    if taken >= 1 - rounding:
        raise Singular(
            what, got=f"{name}, without which it is not", advice="Add points, or take a tail of lower degree."
        )


# -- how well a system is solved ---------------------------------------------------------------------------------------


def recomputed(problem: LeastSquares) -> LeastSquares:
    """The problem with a float64 Gram that is never stored, whatever it is now."""
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
    """(c, b) and its residual vectors: solved for y, then for what is left, as long as that halves it."""
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
    """The status of a direct solution, and whether it is one: "exact, …" unless its residual says otherwise."""
    if residual <= UNSOLVED:
        return f"exact, {how}", True
    advice = "Raise `alpha`, or scale columns of very different size"
    return (
        f"inexact, {how}: at alpha = {alpha:.3g} singular to rounding, relative residual {residual:.1e}. {advice}",
        False,
    )
