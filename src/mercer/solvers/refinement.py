"""Conjugate gradients on all points, refined until the residual in float64 is small: the rungs of the ladder in `auto`.

The preconditioner is a float32 Cholesky factor, or a few randomly pivoted columns. K is stored, or computed anew for
every product if it does not fit the memory: then the iterations use float32 products, which cost half as much, and
float64 products check the residual. The fitted values of an iterate differ from the exact ones by less than its
residual, ‖K(c − c*)‖ ≤ ‖r‖, so a relative residual of 1e-3 changes R² by about 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.gram.pivoted import by_rows, pivoted_cholesky
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.base import TOLERANCE, Matrix, Solution, recomputed, relative, verdict
from mercer.solvers.cg import Linear, State, conjugate_gradients
from mercer.solvers.checkpoint import Arrays, Checkpoint
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


@dataclass(eq=False)
class Sweep:
    """The state of the refinement between two runs of conjugate gradients, as arrays in a checkpoint hold it.

    Attributes
    ----------
    u, b, R : array, array or None
        The solution so far, and its residual; at first R is the right-hand side with the tail's columns.
    V, RV : array or None
        A⁻¹P̃ and its residual, from the first run on.
    reached : float
        The relative residual.
    iterations, sweeps : int
        Their numbers so far.
    precise : bool
        Whether products are float64.
    """

    u: Matrix
    b: Matrix | None
    R: Matrix
    V: Matrix | None
    RV: Matrix | None
    reached: float
    iterations: int
    sweeps: int
    precise: bool

    @classmethod
    def first(cls, B: Matrix, t: int, tails: int, *, precise: bool) -> Sweep:
        """Before the first iteration."""
        b = np.zeros((tails, t)) if tails else None
        return cls(np.zeros((len(B), t)), b, np.ascontiguousarray(B), None, None, np.inf, 0, 0, precise)

    def arrays(self, state: State[NDArray[Any]]) -> Arrays:
        """This sweep, and the state of its conjugate gradients, as arrays."""
        parts = {name: getattr(self, name) for name in ("u", "b", "R", "V", "RV")}
        counts = np.array([self.reached, self.iterations, self.sweeps, self.precise, state.iterations, state.flat])
        inside = {f"cg.{f.name}": getattr(state, f.name) for f in fields(state) if f.name not in ("iterations", "flat")}
        return {"sweep": counts.astype(np.float64)} | {n: A for n, A in parts.items() if A is not None} | inside

    @classmethod
    def restored(cls, kept: Arrays) -> tuple[Sweep, State[NDArray[Any]]]:
        """The inverse of `arrays`, which takes the entries from `kept`."""
        reached, iterations, sweeps, precise, inner, flat = kept.pop("sweep").tolist()
        u, b, R, V, RV = (kept.pop(name, None) for name in ("u", "b", "R", "V", "RV"))
        assert u is not None
        assert R is not None
        names = [f.name for f in fields(State) if f.name not in ("iterations", "flat")]
        inside = {name: np.asfortranarray(kept.pop(f"cg.{name}")) for name in names}
        state: State[NDArray[Any]] = State(**inside, iterations=int(inner), flat=bool(flat))
        return cls(u, b, R, V, RV, reached, int(iterations), int(sweeps), bool(precise)), state


class Iteration:
    """Conjugate gradients with refinement, one alpha after the other, with a fallback if they are slow."""

    def __init__(
        self,
        problem: LeastSquares,
        choice: Choice,
        limit: int,
        tol: float,
        seed: int,
        progress: Progress | None,
        checkpoint: Checkpoint | None = None,
        max_passes: int | None = None,
    ) -> None:
        self.max_passes = PASSES if max_passes is None else max_passes
        self.checkpoint = checkpoint if choice.streamed else None
        self.kept: Arrays = {}
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
        self.kept = (self.checkpoint.load() if self.checkpoint else None) or {}
        if "rank" in self.kept:
            self.choice = replace(self.choice, rank=int(self.kept["rank"][0]))
        for i, alpha in enumerate(np.unique(problem.alpha)):
            columns = np.flatnonzero(problem.alpha == alpha)
            outcome = self.solved(i) or self.at(float(alpha), columns)
            self.remember(i, outcome)
            if outcome.stopped:  # stopped is stopped: the targets of other penalties get one step, and no checkpoint
                self.progress = lambda step: False
            u[:, columns], R[:, columns] = outcome.u, outcome.R
            if b is not None:
                b[:, columns] = outcome.b
            outcomes.append(outcome)
        if self.checkpoint is not None and not any(o.stopped for o in outcomes):
            self.checkpoint.remove()
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

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def solved(self, i: int) -> Outcome | None:
        """The outcome at the i-th alpha, if the checkpoint has it."""
        if f"{i}.u" not in self.kept:
            return None
        iterations, passes, converged, rank = (int(value) for value in self.kept[f"{i}.figures"])
        how = f"{beyond(rank)}, {iterations} iterations"
        u, b, R = (self.kept.get(f"{i}.{name}") for name in "ubR")
        assert u is not None
        assert R is not None
        return Outcome(u, b, R, iterations, bool(converged), False, how, passes=passes)

    def remember(self, i: int, outcome: Outcome) -> None:
        """Add a finished outcome to what the next checkpoint holds; a later fit continues one that was stopped."""
        if self.checkpoint is None or self.F is None:
            return
        self.kept = {name: A for name, A in self.kept.items() if name[0].isdigit()}
        if outcome.stopped:
            return
        figures = [outcome.iterations, outcome.passes, int(outcome.converged), self.F.shape[1]]
        of_it = {"u": outcome.u, "R": outcome.R, "figures": np.array(figures, dtype=np.int64)}
        of_it |= {} if outcome.b is None else {"b": outcome.b}
        self.kept |= {f"{i}.{name}": A for name, A in of_it.items()}

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
        how = beyond(self.F.shape[1])
        precise, M = fast.gram.dtype == np.float64, LowRank(self.F, alpha)
        return self.refine(alpha, columns, multiply, inner, M, self.max_passes, how, precise=precise, last=True)

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
        halves = slice(0, t), slice(t, None)
        now = Sweep.first(B, t, 0 if self.P is None else self.P.shape[1], precise=precise)
        state: State[NDArray[Any]] | None = None
        if "sweep" in self.kept:
            now, state = Sweep.restored(self.kept)
        while True:
            if now.precise:
                inner = multiply
            scales = np.linalg.norm(now.R, axis=0)
            scales[scales == 0] = 1.0
            # The residual of the recursion is a little too small; half the tolerance makes up for that.
            goal = float(np.clip(0.5 * self.tol / min(now.reached, 1.0), 1e-13 if now.precise else 1e-4, 0.1))
            step = conjugate_gradients(
                inner,
                np.asarray(now.R / scales, dtype=np.float64 if now.precise else np.float32),
                precondition=precondition,
                tol=goal,
                max_iter=limit - now.iterations,
                progress=self.reporting(now.iterations, min(now.reached, 1.0)),
                start=state,
                keep=self.keeping(now),
            )
            state, stopped = None, step.stopped
            X = step.X * scales
            R = np.ascontiguousarray(now.R - multiply(X))  # in another layout, sums would round differently
            if self.P is not None and now.b is not None:
                if now.V is None:
                    X, now.V, R, now.RV = (np.ascontiguousarray(A[:, part]) for A in (X, R) for part in halves)
                db = np.linalg.solve(self.P.T @ now.V, self.P.T @ X)
                X, R, now.b = X - now.V @ db, R - now.RV @ db, now.b + db
            before = now.reached
            now.iterations, now.sweeps = now.iterations + step.iterations, now.sweeps + 1
            now.u, now.R, now.reached = now.u + X, R, float((np.linalg.norm(R, axis=0) / sizes).max(initial=0.0))
            converged, slow = now.reached <= self.tol, now.reached > 0.5 * before
            if slow and last and not now.precise:
                now.precise, slow = True, False
            if converged or stopped or now.iterations >= limit or slow:
                how, passes = f"{how}, {now.iterations} iterations", now.iterations + now.sweeps
                return Outcome(now.u, now.b, R, now.iterations, converged, stopped, how, passes=passes)

    def keeping(self, sweep: Sweep) -> Callable[[State[NDArray[Any]]], None] | None:
        """Write the state of the iterations of this sweep to the checkpoint, if there is one."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return None
        finished = {name: A for name, A in self.kept.items() if name[0].isdigit()}
        finished["rank"] = np.array([self.choice.rank])
        return lambda state: checkpoint.save(finished | sweep.arrays(state))

    def reporting(self, iterations: int, reached: float) -> Progress | None:
        """`progress` in terms of the whole run, for a sweep that starts after this many iterations at this residual."""
        progress, tol = self.progress, self.tol
        if progress is None:
            return None

        def report(step: Step) -> bool:
            step = replace(step, iteration=iterations + step.iteration, gap=step.gap * reached, tol=tol)
            return progress(step) is not False

        return report


def beyond(rank: int) -> str:
    """How a matrix that is never stored is solved, in words."""
    return f"conjugate gradients with a matrix that is never stored, preconditioned by {rank} randomly pivoted columns"


def symmetric_product(K: NDArray[Any], V: NDArray[Any]) -> NDArray[Any]:
    """K V for a symmetric C-ordered K in its own dtype; a single column reads only half of the matrix."""
    if V.shape[1] > 2:
        return K @ V
    (symv,) = blas.get_blas_funcs(("symv",), (K,))
    return np.stack([symv(1.0, K.T, V[:, j], lower=1) for j in range(V.shape[1])], axis=1)
