"""Which solver, and why: from the size, the penalty and the memory budget of a problem.

The ladder, as measured on two cores (Gaussian kernel, d = 20):

* n up to `costs.FLOAT64_ROWS`: the float64 Cholesky factor, in place.
* above: a float32 factor (half the time, half the memory) as the preconditioner of float64 conjugate gradients, 3 to 6
  iterations; K is recomputed in float64 tile by tile, or stored if the budget allows and that pays (`gram.costs`).
* alpha large compared with k(x, x): no factor at all, but a few hundred randomly pivoted columns as the preconditioner
  of float32 iterations, refined by float64 residuals.
* not enough memory for a float32 matrix: a grid of frequencies if the kernel is stationary on at most three columns and
  the grid is affordable, else Nyström; both are approximations, and the status says so.

Every rung falls back to a safer one: pivots to the float32 factor, the float32 factor to the float64 factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.errors import InvalidInput
from mercer.gram.pivoted import by_rows, pivoted_cholesky
from mercer.memory import budget as _budget
from mercer.memory import within
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import cholesky, costs, eigen, fourier
from mercer.solvers.base import TOLERANCE, UNSOLVED, Matrix, Solution, recomputed, relative, verdict
from mercer.solvers.cg import Linear, conjugate_gradients
from mercer.solvers.cholesky import CholeskyFactor, require_independent, upper_product
from mercer.solvers.preconditioners import LowRank, RoundedFactor
from mercer.solvers.step import Progress
from mercer.validation import check_choice, generator
from mercer.words import show_bytes

SOLVERS = ("auto", "cholesky", "eigen", "cg", "nystrom", "fourier")

# Relative residual of the exact solvers.
TOL = 1e-10
# The limit if no safer rung fits the memory.
LAST_ITERATIONS = 1000
# The entries of a float32 matrix are accurate to 6e-8: a smaller residual would mean nothing.
FLOAT32_TOL = 1e-7


@dataclass(frozen=True)
class Choice:
    """The solver of a problem, and why.

    Attributes
    ----------
    solver : "cholesky", "eigen", "cg", "nystrom" or "fourier".
    why : one sentence.
    preconditioner : for "cg", "factor" (float32 Cholesky) or "pivots" (randomly pivoted columns).
    low_memory : whether "cg" must do without a stored float64 matrix.
    """

    solver: str
    why: str
    preconditioner: str | None = None
    low_memory: bool = False


def choose(
    problem: LeastSquares, solver: str = "auto", budget: Any = None, tol: float | None = None, *, grids: bool = True
) -> Choice:
    """The solver that `solve` uses, and why; `grids` says whether it may be a grid of frequencies.

    >>> import mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.arange(4.0)[:, None]
    >>> choose(LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), X, np.array([0.0]))).why
    'alpha = 0 requires the solution of minimum norm'
    """
    check_choice(solver, "solver", SOLVERS, advice="Use 'auto' if in doubt.")
    n, limit = problem.n, _budget(budget)
    square = problem.gram.dtype.itemsize * n * n
    if solver == "cg":
        if (problem.alpha == 0).any():
            raise InvalidInput(
                "`alpha` must be > 0 for `solver='cg'`", got="0", advice="Use `solver='eigen'` for the minimum norm."
            )
        return _iterative(problem, limit, "as requested")
    if solver != "auto":
        return Choice(solver, "as requested")
    if (problem.alpha == 0).any():
        _fits(24 * n * n, limit, n)
        return Choice("eigen", "alpha = 0 requires the solution of minimum norm")
    different = len(np.unique(problem.alpha))
    if different >= costs.SOLUTIONS and 24 * n * n <= limit:
        return Choice("eigen", f"one decomposition serves all {different} values of alpha")
    if n <= costs.FLOAT64_ROWS and square <= limit and problem.gram.dtype == np.float64:
        return Choice("cholesky", f"n = {n} is small")
    if 4 * n * n > limit:
        figures = f"a float32 matrix of {n} points takes {show_bytes(4 * n * n)}, the budget is {show_bytes(limit)}"
        if grids and fourier.affordable(problem, tol, limit):
            return Choice("fourier", f"{figures}: a grid of frequencies within a tolerance")
        return Choice("nystrom", f"{figures}: an approximation")
    return _iterative(problem, limit, f"n = {n}")


def _iterative(problem: LeastSquares, limit: int, reason: str) -> Choice:
    """Conjugate gradients, with the preconditioner that the penalty and the budget call for."""
    n = problem.n
    share = float(problem.alpha.min()) / max(_scale(problem), np.finfo(np.float64).tiny)
    if (share >= costs.PIVOTED_SHARE and n >= costs.PIVOTED_ROWS) or 4 * n * n > limit:
        why = f"{reason}, and alpha is {share:.2g} of the mean k(x, x)" if share >= costs.PIVOTED_SHARE else reason
        # The factor is made in float64 and kept in float32; the matrix beside it only if both fit.
        stored = 4 * n * n + 12 * n * costs.PIVOTED_RANK <= limit
        return Choice("cg", why, "pivots", low_memory=not stored)
    both = 4 * n * n if problem.gram.dtype == np.float32 else 12 * n * n
    if both <= limit:
        return Choice("cg", reason, "factor")
    why = f"{reason}, and the float64 matrix does not fit the budget of {show_bytes(limit)}"
    return Choice("cg", why, "factor", low_memory=True)


def _scale(problem: LeastSquares) -> float:
    """The mean diagonal entry of K̃."""
    diagonal = problem.gram.diag().astype(np.float64)
    return float((diagonal if problem.roots is None else diagonal * problem.roots**2).mean())


def _fits(nbytes: int, limit: int, n: int) -> None:
    within(nbytes, limit, f"The eigendecomposition of {n} points", "Use alpha > 0, or solver='nystrom'.")


def solve(
    problem: LeastSquares,
    solver: str = "auto",
    *,
    budget: Any = None,
    tol: float | None = None,
    random_state: int = 0,
    n_centers: Any = None,
    centers: Any = "uniform",
    progress: Progress | None = None,
    grids: bool = True,
) -> Solution:
    """The coefficients, by the given solver or the one that suits size, penalty and memory.

    Parameters
    ----------
    problem : the Gram matrix, the targets, one alpha each, weights and tail.
    solver : "auto", "cholesky", "eigen", "cg", "nystrom" or "fourier".
    budget : bytes, or a text such as "2 GB"; by default MERCER_MEMORY, else half of the available memory.
    tol : relative residual at which iterations stop, by default 1e-10; "nystrom" and "fourier" have their own
        measures and defaults.
    random_state : the seed of pivots and centres.
    n_centers, centers : the number of centres for "nystrom", and how they are chosen.
    progress : called with a `Step` after every iteration of "cg"; False stops it there.
    grids : whether "auto" may take "fourier", whose solution is not an expansion in the points.

    >>> import mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.arange(4.0)[:, None]
    >>> s = solve(LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), X, np.array([0.1])))
    >>> s.status, s.residual < 1e-14
    ('exact, by a Cholesky factor (n = 4 is small)', True)
    """
    choice = choose(problem, solver, budget, tol, grids=grids)
    if choice.solver == "nystrom":
        from mercer.solvers import nystrom

        more: dict[str, Any] = {} if tol is None else {"tol": tol}
        solution = nystrom.solve(
            problem,
            n_centers=n_centers,
            centers=centers,
            random_state=random_state,
            budget=budget,
            progress=progress,
            **more,
        )
    elif choice.solver == "fourier":
        solution = fourier.solve(problem, tol=tol, budget=budget, progress=progress)
    elif choice.solver == "eigen":
        solution = eigen.solve(problem)
        solution.stats["converged"] = solution.residual <= UNSOLVED
    elif choice.solver == "cholesky":
        solution = cholesky.solve(problem)
    else:
        solution = Iteration(
            problem, choice, _budget(budget), TOL if tol is None else tol, random_state, progress
        ).solve()
    return replace(solution, status=f"{solution.status} ({choice.why})")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The solution (u, b) at one alpha: its residual vectors, and how it was computed."""

    u: Matrix
    b: Matrix | None
    R: Matrix
    iterations: int
    converged: bool
    stopped: bool
    how: str
    direct: bool = False


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
        stats = {"iterations": iterations, "converged": converged, "tol": self.tol}
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
        """Randomly pivoted columns as the preconditioner of float32 iterations on a float32 matrix, refined; or of
        float64 iterations on tiles if not even that matrix fits."""
        rng = generator(self.seed)
        if self.choice.low_memory:
            if self.F is None:
                self.F = pivoted_cholesky(self.tiles.gram, costs.PIVOTED_RANK, rng=rng).factor
                self.F = self.F if self.problem.roots is None else self.problem.roots[:, None] * self.F
            multiply = inner = self.shifted(self.recomputed, alpha)
            limit, precise = LAST_ITERATIONS, True
        else:
            if self.K32 is None:
                self.K32 = self.problem.matrix(np.float32)
            K = self.K32
            if self.F is None:
                diagonal = np.diagonal(K).astype(np.float64)
                self.F = by_rows(lambda index: K[index], diagonal, np.float32, costs.PIVOTED_RANK, rng=rng).factor
            operator = self.rounded if self.single else self.recomputed
            multiply = self.shifted(operator, alpha)
            inner = self.shifted(lambda V: symmetric_product(K, V), alpha)
            limit, precise = costs.PIVOTED_ITERATIONS, False
        low_rank = LowRank(self.F, alpha)
        how = f"conjugate gradients preconditioned by {self.F.shape[1]} randomly pivoted columns"
        return self.refine(alpha, columns, multiply, inner, low_rank, limit, how, precise=precise)

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
            shift = alpha + 100 * float(np.finfo(np.float32).eps) * self.problem.n * _scale(self.problem)
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
    ) -> Outcome:
        """(u, b) by conjugate gradients on the residual of the right-hand side, until the true residual is small.

        A = K̃ + alpha I is `multiply` in float64, `inner` in the iterations. The tail's columns are solved for
        together with the targets: with V = A⁻¹P̃, b = (P̃ᵀV)⁻¹P̃ᵀA⁻¹(s∘y). Their residuals are kept, too.
        """
        dtype = np.float64 if precise else np.float32
        t = len(columns)
        Y, sizes = self.Y[:, columns], np.where(self.sizes[columns] > 0, self.sizes[columns], 1.0)
        B = Y if self.P is None else np.hstack([Y, self.P])
        u = np.zeros_like(Y)
        b = None if self.P is None else np.zeros((self.P.shape[1], t))
        V = RV = schur = None
        iterations, reached, stopped, R = 0, np.inf, False, B
        while True:
            scales = np.linalg.norm(R, axis=0)
            scales[scales == 0] = 1.0
            # The residual of the recursion is a little too small; half the tolerance makes up for that.
            goal = float(np.clip(0.5 * self.tol / min(reached, 1.0), 1e-13 if precise else 1e-4, 0.1))
            step = conjugate_gradients(
                inner,
                np.asarray(R / scales, dtype=dtype),
                precondition=precondition,
                tol=goal,
                max_iter=limit - iterations,
                progress=self.progress,
            )
            X = step.X * scales
            iterations, stopped = iterations + step.iterations, step.stopped
            R = R - multiply(X)
            if self.P is not None and b is not None:
                if V is None:
                    X, V, R, RV = X[:, :t], X[:, t:], R[:, :t], R[:, t:]
                    schur = sla.lu_factor(self.P.T @ V)
                db = sla.lu_solve(schur, self.P.T @ X)
                X, R, b = X - V @ db, R - RV @ db, b + db
            u += X
            before, reached = reached, float((np.linalg.norm(R, axis=0) / sizes).max(initial=0.0))
            converged = reached <= self.tol
            if converged or stopped or iterations >= limit or reached > 0.5 * before:
                return Outcome(u, b, R, iterations, converged, stopped, f"{how}, {iterations} iterations")


def symmetric_product(K: NDArray[Any], V: NDArray[Any]) -> NDArray[Any]:
    """K V for a symmetric C-ordered K in its own dtype; a single column reads only half of the matrix."""
    if V.shape[1] > 2:
        return K @ V
    (symv,) = blas.get_blas_funcs(("symv",), (K,))
    return np.stack([symv(1.0, K.T, V[:, j], lower=1) for j in range(V.shape[1])], axis=1)
