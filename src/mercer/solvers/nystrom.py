"""Least squares on m centres: min ½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖² over f = Σ cⱼ k(zⱼ, ·) + tail.

In whitened coordinates β = Lᵀc (`gram.lowrank`), with Φ̃ = diag(√w) Φ and Q an orthonormal basis of the weighted
tail's columns, the tail is projected out and β solves

    A β = Φ̃ᵀ(I − QQᵀ)√w∘y,      A = Φ̃ᵀ(I − QQᵀ)Φ̃ + alpha I.

A product of conjugate gradients with A is one pass over the rows of K_nm. Their preconditioner M is the same matrix for
a few rows drawn at random: with s rows per centre the eigenvalues of M⁻¹A lie about within (1 ± 1/√s)², so an iteration
gains a factor √s, whatever alpha and the kernel. If all rows are cheap, M = A and the first step is exact.

The error is measured in the objective: rᵀM⁻¹r ≈ ‖β − β*‖²_A is twice the excess of the objective over its minimum, and
`tol` bounds its root relative to that of β = 0. So at most the share tol² of the targets' variance is lost.

Rounding is noise in K_nm of variance (u k)²/12, u the unit of the dtype that f will be evaluated in. On average it adds
½ rounding ‖c‖² to the objective, rounding = Σ wᵢ (u k)²/12, and A contains this term in addition. It is negligible in
float64; in float32 it keeps the coefficients from growing until f is only rounding, even at alpha = 0.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import scipy.linalg as sla

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.gram.centers import choose_centers
from mercer.gram.lowrank import Nystrom, RowTerms
from mercer.memory import budget as _budget
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.base import Matrix, Solution
from mercer.solvers.cg import Measure, conjugate_gradients
from mercer.solvers.checkpoint import Checkpoint, Journal
from mercer.solvers.factor import orthonormal
from mercer.solvers.step import Progress, Step
from mercer.validation import check_number, generator

# The smallest tolerance that float32 passes can reach.
FLOAT32 = 1e-4
# Steps without a halved error after which the cause must be float32 rounding, or too few rows (in float64).
PATIENCE = 6, 20
# Centres that add more than this share to the span of the others are never dropped.
ENOUGH = 1e-6


def default_centers(n: int, limit: int) -> int:
    """5 √n centres, at least 100 and at most n, whose factors take no more than a quarter of the budget.

    With alpha ~ √n, O(√n) centres do not increase the order of the statistical error of kernel ridge regression.

    >>> default_centers(100_000, 10**9), default_centers(50, 10**9)
    (1581, 50)
    """
    return min(n, max(100, int(5 * np.sqrt(n))), max(1, int(np.sqrt(limit / 4 / 32))))


def solve(
    problem: LeastSquares,
    *,
    n_centers: int | None = None,
    centers: Any = "uniform",
    tol: float = 1e-3,
    max_iter: int = 200,
    random_state: int = 0,
    budget: Any = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | Journal | None = None,
) -> Solution:
    """The minimiser over the span of the centres, by preconditioned conjugate gradients.

    Parameters
    ----------
    problem : LeastSquares
        n points, t targets, their penalties, weights and tail.
    n_centers : int or None
        m; by default `default_centers(n)`.
    centers : str
        How to choose them, or the centres: see `gram.centers.choose_centers`.
    tol : float
        Relative error of f in the norm of the objective; the loss in R² is about its square. From 1e-4 up, passes may
        run in float32; below, and for small problems, everything is float64.
    max_iter : int
        The largest number of passes over the rows.
    random_state : int
        Seed of the centres and of the rows that the preconditioner uses.
    budget : int, str or None
        Memory, see `memory.budget`.
    progress : Progress or None
        Called with a `Step` after every iteration; False stops it there.
    checkpoint : Checkpoint or None
        Keeps the results of passes over the rows; a later call with the same problem does not repeat them.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.linspace(0.0, 6.0, 500)[:, None]
    >>> problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), np.sin(X), np.array([1e-3]))
    >>> solution = solve(problem, n_centers=12)
    >>> f = mc.Expansion(mc.Gaussian(1.0), solution.points, solution.coef)
    >>> solution.coef.shape, bool(np.abs(f(X) - np.sin(X)).max() < 1e-2)
    ((12, 1), True)
    """
    check_number(tol, "tol", above=0, below=1, advice="Use the default, 1e-3.")
    gram, n, limit = problem.gram, problem.n, _budget(budget)
    rng, journal = generator(random_state), Journal.of(checkpoint)
    chosen = choose_centers(gram, default_centers(n, limit) if n_centers is None else n_centers, centers, rng=rng)
    known, steps = np.zeros((chosen.n, problem.y.shape[1])), 0
    ways = [(dtype, False) for dtype in _precisions(gram, tol, n * chosen.n**2 <= costs.SAMPLED_FLOPS)]
    for dtype, careful in [*ways, (np.float64, True)]:
        # If float32 does not reach the tolerance, float64 continues from there. If that fails too, the penalty is tiny:
        # single rows matter, so all rows, not a sample, make the preconditioner; and centres amplify the rounding of
        # sums by 1/√least, so centres that add less than this rounding are dropped.
        least = _least_share(problem) if careful else 0.0
        Phi = gram.low_rank(chosen, dtype, limit, least)
        if journal is not None:
            Phi.once = journal.once
        m = Phi.shape[1]
        rows = n if careful or n * m * m <= costs.SAMPLED_FLOPS else sample_size(n, m, tol)
        system = System(problem, Phi)
        precondition = _Preconditioner(system, rows, rng)
        start = system.start(known[Phi.kept])
        patience = max_iter if careful else PATIENCE[dtype == np.float64]
        beta, error, passes, stopped = _solve(system, precondition, start, tol, max_iter - steps, patience, progress)
        steps += passes
        coef, tail = system.finish(beta)
        known[:] = 0.0
        known[Phi.kept] = coef
        if error <= tol or stopped or steps >= max_iter:
            break
    stats = {
        "iterations": steps,
        "converged": error <= tol,
        "stopped": stopped,
        "centers": m,
        "sampled_rows": rows,
        "dtype": str(Phi.dtype),
        "stored": Phi.stored,
    }
    status = _status(problem, centers, chosen.n, stats, error)
    if not stats["converged"]:
        status = f"stopped after {steps} iterations above the tolerance {tol:g} (raise it, or alpha): {status}"
    return Solution(coef, tail, "nystrom", status, error, stats, Phi.centers)


def _status(problem: LeastSquares, centers: Any, wanted: int, stats: dict[str, Any], error: float) -> str:
    """The centres, the method and the error, in words."""
    n, m = problem.n, stats["centers"]
    which = f"{m:,} centres" + (f" ({centers})" if isinstance(centers, str) else "")
    if wanted == n:
        which = "all points as centres"
    if m < wanted:
        which += f" ({wanted - m:,} more add nothing to their span)"
    way = "solved directly" if stats["sampled_rows"] == n else f"by {stats['iterations']} steps of conjugate gradients"
    return f"Nyström approximation with {which} for {n:,} points, {way} in {stats['dtype']}, relative error {error:.1e}"


def _precisions(gram: Gram, tol: float, exact: bool) -> list[Any]:
    """float32 first if it may suffice, then float64; float32 values of unbounded kernels could overflow."""
    if exact or tol < FLOAT32 or not (gram.bounded or gram.dtype == np.float32):
        return [np.float64]
    return [np.float32, np.float64]


def _least_share(problem: LeastSquares) -> float:
    """The share of k(z, z) above which a centre amplifies the rounding of n terms to less than alpha."""
    rounding = problem.n * float(np.finfo(np.float64).eps) * float(problem.gram.diag().max())
    return min((rounding / max(float(problem.alpha.min()), rounding)) ** 2, ENOUGH)


def sample_size(n: int, m: int, tol: float) -> int:
    """Rows for the preconditioner, s per centre: s m³ operations to build it against log(1/tol)/log(√s) passes."""
    s = np.arange(3, 65)
    cost = 1.0 * s * m**3 + np.log(1 / tol) / np.log(np.sqrt(s)) * costs.ENTRY_FLOPS * n * m
    rows = int(s[cost.argmin()]) * m
    return n if rows > n // 2 else rows


class System:
    """A and the right-hand side, with the tail projected out: Φ̃ᵀ(u − Q Qᵀu), with Qᵀu = Gᵀβ known beforehand."""

    def __init__(self, problem: LeastSquares, Phi: Nystrom) -> None:
        self.problem, self.Phi, self.alpha = problem, Phi, problem.alpha
        unit = float(np.finfo(problem.gram.dtype).eps) * float(np.einsum("ij,ij->i", Phi.L, Phi.L).max())
        total = float(problem.n if problem.roots is None else (problem.roots**2).sum())
        self.ridge = total * unit**2 / 12.0 if problem.gram.dtype == np.float32 else 0.0
        self.weights = None if problem.roots is None else (problem.roots**2)[:, None]
        # Targets are scaled to one, whatever their unit, for float32.
        self.scale = np.abs(problem.y).max(axis=0)
        self.scale[self.scale == 0] = 1.0
        targets, tail = problem.weighted_targets / self.scale, problem.weighted_tail
        self.Q: Matrix | None = None
        if tail is not None:
            self.Q, self.to_tail = orthonormal(tail)
            self.in_tail = self.Q.T @ targets
            targets = np.hstack([targets - self.Q @ self.in_tail, self.Q])
        if problem.roots is not None:
            targets = problem.roots[:, None] * targets
        t = problem.y.shape[1]
        both = Phi.adjoint(targets)
        self.target, self.G = both[:, :t], both[:, t:]
        self.Qw = None if self.Q is None else targets[:, t:]  # √w∘Q

    def multiply(self, V: Matrix) -> Matrix:
        """A V, column by column with its own alpha."""
        product = self.Phi.normal(V, self._between(V)) + self.alpha * V
        return product + self.ridge * self.Phi.whiten(self.Phi.coefficients(V)) if self.ridge else product

    def _between(self, V: Matrix) -> RowTerms | None:
        if self.weights is None and self.Qw is None:
            return None
        return RowTerms(self.weights, self.Qw, self.G.T @ V)

    def start(self, coef: Matrix) -> Matrix:
        """β of coefficients that are known already."""
        return np.asarray(self.Phi.L.T @ (coef / self.scale))

    def finish(self, beta: Matrix) -> tuple[Matrix, Matrix | None]:
        """The coefficients of the centres, and of the tail."""
        tail = None if self.Q is None else self.to_tail @ (self.in_tail - self.G.T @ beta) * self.scale
        return self.Phi.coefficients(beta) * self.scale, tail


class _Preconditioner:
    """M = Φ̃ᵀ(I − QQᵀ)Φ̃ + alpha I over some rows, scaled up to all."""

    def __init__(self, system: System, rows: int, rng: np.random.Generator) -> None:
        problem, Phi = system.problem, system.Phi
        n, roots, tail, factor = problem.n, problem.roots, system.Q, 1.0
        if rows >= n:
            index = np.arange(n)
        elif roots is None:
            index, factor = np.sort(rng.choice(n, rows, replace=False)), n / rows
        else:
            # In proportion to the weights, so that every row drawn counts the same.
            w = roots**2
            index, factor = np.sort(rng.choice(n, rows, p=w / w.sum())), w.sum() / rows
        if rows < n and tail is not None:
            # The tail on the drawn rows: projecting on less than its own span keeps M positive.
            drawn = tail[index] if roots is None else tail[index] / roots[index, None]
            tail, roots = orthonormal(drawn)[0], None
        elif rows < n:
            roots = None
        H = factor * Phi.normal_matrix(index, roots, tail, system.ridge / factor)
        # Eigenvalues of M below the rounding of its sums mean nothing, and are raised to it.
        floor = float(np.finfo(Phi.dtype).eps) * float(np.diagonal(H).max())
        alphas, self.which = np.unique(problem.alpha, return_inverse=True)
        self.vectors: Matrix | None = None
        if len(alphas) >= costs.FACTORS:
            spectrum, self.vectors = sla.eigh(H, overwrite_a=True, check_finite=False, driver="evd")
            self.spectrum = np.maximum(spectrum, 0.0)[:, None] + problem.alpha + floor
        else:
            self.factors = [shifted(H, float(alpha), floor) for alpha in alphas]

    def __call__(self, R: Matrix) -> Matrix:
        """M⁻¹ R, every column with its own alpha."""
        if self.vectors is not None:
            return np.asarray(self.vectors @ ((self.vectors.T @ R) / self.spectrum))
        out = np.empty_like(R)
        for i, factor in enumerate(self.factors):
            columns = np.flatnonzero(self.which == i)
            out[:, columns] = sla.cho_solve(factor, R[:, columns], check_finite=False)
        return out


def shifted(H: Matrix, alpha: float, floor: float) -> Any:
    """The Cholesky factor of H + alpha I, with a larger diagonal if needed: at most by the size of H."""
    size = max(float(np.diagonal(H).max()), float(np.finfo(np.float64).tiny))
    while floor <= size < np.inf:
        A = H.copy(order="F")
        with np.errstate(over="ignore"):
            A.flat[:: len(A) + 1] += alpha + floor
        with contextlib.suppress(np.linalg.LinAlgError):
            factor, lower = sla.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
            if np.isfinite(np.diagonal(factor)).all():  # not every LAPACK refuses NaN
                return factor, lower
        floor = max(10.0 * floor, float(np.finfo(np.float64).tiny))
    raise InvalidInput(
        "The sums over the rows of the features must be finite numbers",
        got=f"a matrix with {size:.3g} on its diagonal that has no Cholesky factor",
        advice="Scale the columns of X, the kernel or the weights, whose squares overflow.",
    )


class _Watch:
    """Ends a run of conjugate gradients whose error grows, or has not halved in `patience` steps."""

    def __init__(self, error: float, before: int, patience: int, tol: float, progress: Progress | None) -> None:
        self.first = self.halved = error
        self.before, self.patience, self.tol, self.progress = before, patience, tol, progress
        self.at, self.stopped = 0, False

    def __call__(self, step: Step) -> bool:
        """Whether to go on; `stopped` is set if the caller's `progress` returned False."""
        if self.progress is not None:
            so_far = Step(iteration=self.before + step.iteration, gap=step.gap, tol=self.tol)
            self.stopped = self.progress(so_far) is False
        if step.gap < 0.5 * self.halved:
            self.halved, self.at = step.gap, step.iteration
        stale = step.iteration - self.at >= self.patience
        return not self.stopped and step.gap < 10.0 * self.first and not stale


def _solve(
    system: System,
    precondition: _Preconditioner,
    beta: Matrix,
    tol: float,
    max_iter: int,
    patience: int,
    progress: Progress | None,
) -> tuple[Matrix, float, int, bool]:
    """β, its relative error (the largest over the targets), the number of steps, and whether `progress` stopped them.

    A run of conjugate gradients ends early if the error has not halved in `patience` steps; then the residual itself is
    computed: the recursion drifts from it by rounding, and only the residual shows the rounding of K_nm.
    """
    sizes = np.sqrt(np.maximum(_dots(system.target, precondition(system.target)), 0.0))
    sizes[sizes == 0] = 1.0

    def error_of(R: Matrix) -> float:
        return float((np.sqrt(np.abs(_dots(R, precondition(R)))) / sizes).max())

    R = system.target - system.multiply(beta) if beta.any() else system.target
    error, best, steps, stopped = error_of(R), np.inf, 0, False
    if error > 1.0:
        beta, R = np.zeros_like(beta), system.target
        error = error_of(R)

    while error > tol and error < 0.5 * best and steps < max_iter and not stopped:
        best = error
        watch = _Watch(error, steps, patience, tol, progress)
        run = conjugate_gradients(
            system.multiply,
            R,
            precondition=precondition,
            tol=0.5 * tol,
            max_iter=max_iter - steps,
            progress=watch,
            measure=Measure.ENERGY,
            sizes=sizes,
            together=True,
        )
        steps, stopped = steps + run.iterations, watch.stopped
        moved = beta + run.X
        R = system.target - system.multiply(moved)
        error = error_of(R)
        if not error < best:
            return beta, best, steps, stopped
        beta = moved
    return beta, error, steps, stopped


def _dots(A: Matrix, B: Matrix) -> Matrix:
    """⟨a, b⟩ of corresponding columns."""
    return np.asarray(np.einsum("ij,ij->j", A, B))
