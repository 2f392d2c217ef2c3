"""Conjugate gradients on all points, refined until the residual in float64 is small: the rungs of the ladder in `auto`.

The preconditioner is a float32 Cholesky factor, or a few randomly pivoted columns. K is stored, or computed anew for
every product if it does not fit the memory: then the iterations use float32 products, which cost half as much, and
float64 products check the residual. The fitted values of an iterate differ from the exact ones by less than its
residual, ‖K(c − c*)‖ ≤ ‖r‖, so a relative residual of 1e-3 changes R² by about 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.gram.pivoted import by_rows, pivoted_cholesky
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.base import TOLERANCE, Matrix, Solution, recomputed, relative, verdict
from mercer.solvers.cg import Linear, conjugate_gradients
from mercer.solvers.choice import Choice, Size, mean_diagonal
from mercer.solvers.cholesky import CholeskyFactor, require_independent, upper_product
from mercer.solvers.preconditioners import LowRank, RoundedFactor
from mercer.solvers.step import Progress, Step
from mercer.validation import generator

LAST_ITERATIONS = 1000
"""The limit if no safer rung fits the memory."""
PASSES = 100
"""The limit if every iteration computes K anew: more would take hours."""
FLOAT32_TOL = 1e-7
"""The entries of a float32 matrix are accurate to 6e-8: a smaller residual would mean nothing."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The solution (u, b) at one alpha: its residual vectors, how it was computed, and in how many products with K."""

    u: Matrix
    b: Matrix | None
    R: Matrix
    iterations: int
    converged: bool
    stopped: bool
    how: str
    direct: bool = False
    passes: int = 0


class Iteration:
    """Conjugate gradients with refinement, one alpha after the other, with a fallback if they are slow."""

    def __init__(
        self, problem: LeastSquares, choice: Choice, limit: int, tol: float, seed: int, progress: Progress | None
    ) -> None:
        self.problem, self.choice, self.limit, self.seed, self.progress = problem, choice, limit, seed, progress
        self.tiles = recomputed(problem)
        self.single = problem.gram.dtype == np.float32
        self.tol = max(tol, FLOAT32_TOL) if self.single else tol
        self.Y, self.P = problem.weighted_targets, problem.weighted_tail
        if self.P is not None:
            require_independent(self.P)
        self.sizes = np.linalg.norm(self.Y, axis=0)
        self.stored: Matrix | None = None
        self.K32: NDArray[np.float32] | None = None
        self.F: NDArray[Any] | None = None

    def solve(self) -> Solution:
        problem = self.problem
        u, R = np.empty_like(self.Y), np.empty_like(self.Y)
        b = None if self.P is None else np.empty((self.P.shape[1], self.Y.shape[1]))
        outcomes = []
        for alpha in np.unique(problem.alpha):
            columns = np.flatnonzero(problem.alpha == alpha)
            outcome = self.at(float(alpha), columns)
            u[:, columns], R[:, columns] = outcome.u, outcome.R
            if b is not None:
                b[:, columns] = outcome.b
            outcomes.append(outcome)
        residual = relative(R, self.Y)
        converged = all(o.converged for o in outcomes)
        iterations = max(o.iterations for o in outcomes)
        status = "; ".join(dict.fromkeys(o.how for o in outcomes))
        if not any(o.direct and not o.converged for o in outcomes):  # whose status gives the residual already
            status = f"{status}, residual {residual:.1e}"
        if any(not o.converged and not o.direct for o in outcomes):
            why = "stopped" if any(o.stopped for o in outcomes) else "not converged"
            status = f"{why} after {iterations} iterations above the tolerance {self.tol:.0e}: {status}"
        direct = all(o.direct for o in outcomes)
        stats: dict[str, Any] = {"iterations": iterations, "converged": converged, "tol": self.tol}
        stats["passes"] = sum(o.passes for o in outcomes)
        if self.F is not None:
            stats["pivots"] = self.F.shape[1]
        coef = u if problem.roots is None else problem.roots[:, None] * u
        return Solution(coef, b, "cholesky" if direct else "cg", status, residual, stats)

    def at(self, alpha: float, columns: NDArray[np.int64]) -> Outcome:
        """The solution for the targets of one alpha, by the first rung that succeeds."""
        n = self.problem.n
        if self.choice.preconditioner == "pivots":
            first = self.by_pivots(alpha, columns)
            if first.converged or first.stopped or 4 * n * n > self.limit:
                return first
            self.F = None
        last = 8 * n * n > self.limit
        outcome = self.by_factor(alpha, columns, last=last)
        if outcome is not None and (outcome.converged or outcome.stopped or last):
            return outcome
        self.stored = None
        return self.exactly(
            alpha, columns, "the float32 one does not exist" if outcome is None else "the iterations were slow"
        )

    # -- the rungs ------------------------------------------------------------------------------------------------

    def by_pivots(self, alpha: float, columns: NDArray[np.int64]) -> Outcome:
        """Randomly pivoted columns as the preconditioner of float32 iterations on a float32 matrix, refined."""
        if self.choice.low_memory:
            return self.beyond_memory(alpha, columns)
        if self.K32 is None:
            self.K32 = self.problem.matrix(np.float32)
        K = self.K32
        if self.F is None:
            diagonal, rng = np.diagonal(K).astype(np.float64), generator(self.seed)
            self.F = by_rows(lambda index: K[index], diagonal, np.float32, self.choice.rank, rng=rng).factor
        multiply = self.shifted(self.rounded if self.single else self.recomputed, alpha)
        inner = self.shifted(lambda V: symmetric_product(K, V), alpha)
        how = f"conjugate gradients preconditioned by {self.F.shape[1]} randomly pivoted columns"
        limit = costs.PIVOTED_ITERATIONS
        return self.refine(alpha, columns, multiply, inner, LowRank(self.F, alpha), limit, how, precise=False)

    def beyond_memory(self, alpha: float, columns: NDArray[np.int64]) -> Outcome:
        """The same without any stored matrix: products with float32 tiles that are computed anew, then float64 ones."""
        gram = self.problem.gram
        fast = replace(self.problem, gram=gram.recomputed(Size.of(self.problem).rounded))
        if self.F is None:
            self.F = pivoted_cholesky(fast.gram, self.choice.rank, rng=generator(self.seed)).factor
            if self.problem.roots is not None:
                self.F *= self.problem.roots[:, None].astype(self.F.dtype)
        multiply = self.shifted(self.recomputed, alpha)
        inner = self.shifted(lambda V: fast.multiply(V).astype(V.dtype, copy=False), alpha)
        how = f"conjugate gradients with a matrix that is never stored, preconditioned by {self.F.shape[1]} randomly "
        how += "pivoted columns"
        precise, M = fast.gram.dtype == np.float64, LowRank(self.F, alpha)
        return self.refine(alpha, columns, multiply, inner, M, PASSES, how, precise=precise, last=True)

    def by_factor(self, alpha: float, columns: NDArray[np.int64], *, last: bool) -> Outcome | None:
        """The float32 factor as the preconditioner; None if it does not exist, unless this is the last rung."""
        K, self.K32 = self.K32, None
        if K is None and self.problem.n <= costs.STORED_ROWS and not (self.single or self.choice.low_memory):
            K = self.store().astype(np.float32)
        elif K is None:
            K = self.problem.matrix(np.float32)
        try:
            rounded = RoundedFactor(K, alpha)
        except np.linalg.LinAlgError:
            if not last:
                return None
            # There is no memory for the exact factor: use a larger shift, which costs more iterations.
            del K
            shift = alpha + 100 * float(np.finfo(np.float32).eps) * self.problem.n * mean_diagonal(self.problem)
            rounded = RoundedFactor(self.problem.matrix(np.float32), shift)
        multiply = self.shifted(self.multiply, alpha)
        if self.single and rounded.factor.alpha == alpha:  # the factor keeps the float32 matrix
            multiply = rounded.factor.multiply
        how = "conjugate gradients preconditioned by a float32 Cholesky factor"
        limit = LAST_ITERATIONS if last else costs.FACTOR_ITERATIONS
        return self.refine(alpha, columns, multiply, multiply, rounded, limit, how, precise=True)

    def exactly(self, alpha: float, columns: NDArray[np.int64], why: str) -> Outcome:
        """The float64 factor."""
        factor = CholeskyFactor.of(self.problem, alpha, np.float64)
        y = self.problem.y[:, columns]
        c, b, R = factor.refined(y, TOLERANCE[8])
        u = c if self.problem.roots is None else c / self.problem.roots[:, None]
        how, converged = verdict(f"by a float64 Cholesky factor, because {why}", relative(R, self.Y[:, columns]), alpha)
        return Outcome(u, b, R, 0, converged, False, how, direct=True)

    # -- products with K̃ ------------------------------------------------------------------------------------------

    def recomputed(self, U: Matrix) -> Matrix:
        """K̃U, from float64 tiles that are computed anew."""
        return self.tiles.multiply(U)

    def rounded(self, U: Matrix) -> Matrix:
        """K̃U with the stored float32 matrix, accumulated in float64."""
        assert self.K32 is not None
        return upper_product(self.K32.T, np.diagonal(self.K32).astype(np.float64), U)

    def store(self) -> Matrix:
        """K̃ in float64, kept."""
        if self.stored is None:
            self.stored = self.problem.matrix(np.float64)
        return self.stored

    def multiply(self, U: Matrix) -> Matrix:
        """K̃U in float64: stored if the budget allows it and an entry costs much more to compute than to fetch."""
        keep = not self.choice.low_memory and self.problem.gram.worth_storing(np.float64)
        return symmetric_product(self.store(), U) if self.stored is not None or keep else self.recomputed(U)

    @staticmethod
    def shifted(multiply: Linear, alpha: float) -> Linear:
        return lambda U: multiply(U) + U.dtype.type(alpha) * U

    # -- refinement -----------------------------------------------------------------------------------------------

    def refine(
        self,
        alpha: float,
        columns: NDArray[np.int64],
        multiply: Linear,
        inner: Linear,
        precondition: Linear,
        limit: int,
        how: str,
        *,
        precise: bool,
        last: bool = False,
    ) -> Outcome:
        """(u, b) by conjugate gradients on the residual of the right-hand side, until the true residual is small.

        A = K̃ + alpha I is `multiply` in float64, `inner` in the iterations. The tail's columns are solved for
        together with the targets: with V = A⁻¹P̃, b = (P̃ᵀV)⁻¹P̃ᵀA⁻¹(s∘y). Their residuals are kept, too. If this is
        the `last` rung, float64 iterations continue where float32 ones no longer halve the residual.
        """
        t = len(columns)
        Y, sizes = self.Y[:, columns], np.where(self.sizes[columns] > 0, self.sizes[columns], 1.0)
        B = Y if self.P is None else np.hstack([Y, self.P])
        u = np.zeros_like(Y)
        b = None if self.P is None else np.zeros((self.P.shape[1], t))
        V = RV = schur = None
        iterations, sweeps, reached, stopped, R = 0, 0, np.inf, False, B
        while True:
            scales = np.linalg.norm(R, axis=0)
            scales[scales == 0] = 1.0
            # The residual of the recursion is a little too small; half the tolerance makes up for that.
            goal = float(np.clip(0.5 * self.tol / min(reached, 1.0), 1e-13 if precise else 1e-4, 0.1))
            step = conjugate_gradients(
                inner,
                np.asarray(R / scales, dtype=np.float64 if precise else np.float32),
                precondition=precondition,
                tol=goal,
                max_iter=limit - iterations,
                progress=self.reporting(iterations, min(reached, 1.0)),
            )
            X = step.X * scales
            iterations, sweeps, stopped = iterations + step.iterations, sweeps + 1, step.stopped
            R = R - multiply(X)
            if self.P is not None and b is not None:
                if V is None:
                    X, V, R, RV = X[:, :t], X[:, t:], R[:, :t], R[:, t:]
                    schur = sla.lu_factor(self.P.T @ V)
                db = sla.lu_solve(schur, self.P.T @ X)
                X, R, b = X - V @ db, R - RV @ db, b + db
            u += X
            before, reached = reached, float((np.linalg.norm(R, axis=0) / sizes).max(initial=0.0))
            converged, slow = reached <= self.tol, reached > 0.5 * before
            if slow and last and not precise:
                precise, slow, inner = True, False, multiply
            if converged or stopped or iterations >= limit or slow:
                how = f"{how}, {iterations} iterations"
                return Outcome(u, b, R, iterations, converged, stopped, how, passes=iterations + sweeps)

    def reporting(self, iterations: int, reached: float) -> Progress | None:
        """`progress` in terms of the whole run, for a sweep that starts after this many iterations at this residual."""
        progress, tol = self.progress, self.tol
        if progress is None:
            return None

        def report(step: Step) -> bool:
            step = replace(step, iteration=iterations + step.iteration, gap=step.gap * reached, tol=tol)
            return progress(step) is not False

        return report


def symmetric_product(K: NDArray[Any], V: NDArray[Any]) -> NDArray[Any]:
    """K V for a symmetric C-ordered K in its own dtype; a single column reads only half of the matrix."""
    if V.shape[1] > 2:
        return K @ V
    (symv,) = blas.get_blas_funcs(("symv",), (K,))
    return np.stack([symv(1.0, K.T, V[:, j], lower=1) for j in range(V.shape[1])], axis=1)
