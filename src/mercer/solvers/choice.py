"""Which solver, and why: from the size, the penalty and the memory budget of a problem.

The ladder, as measured on two cores (Gaussian kernel, d = 20):

* n up to `costs.FLOAT64_ROWS`: the float64 Cholesky factor, in place.
* above: a float32 factor (half the time, half the memory) as the preconditioner of float64 conjugate gradients, 3 to 6
  iterations; K is recomputed in float64 tile by tile, or stored if the budget allows and that pays (`gram.costs`).
* alpha large compared with k(x, x): no factor at all, but a few hundred randomly pivoted columns as the preconditioner
  of float32 iterations, refined by float64 residuals.
* not enough memory for a float32 matrix, but a stationary kernel on at most three columns: a grid of frequencies, if it
  is affordable, within a stated tolerance.
* the same with other kernels, and up to about 2·10⁵ rows: the whole kernel nevertheless. Every product
  computes K anew, in float32; one or two thousand pivoted columns are the preconditioner; a relative residual of 1e-3
  is enough.
* more rows: Nyström, an approximation, and the status says so. On request, blocks of coordinates of the whole kernel
  start from there.

Every rung falls back to a safer one: pivots to the float32 factor, the float32 factor to the float64 factor.
All decisions are made by counting, none by a clock: the same problem is solved in the same way every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.memory import budget as _budget
from mercer.memory import within
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.validation import check_choice
from mercer.words import show_bytes

SOLVERS = ("auto", "cholesky", "eigen", "cg", "nystrom", "blocks", "fourier")

FLOAT64 = np.dtype(np.float64)
TOL, TOL_BEYOND_MEMORY = 1e-10, 1e-3
"""The default relative residual of the exact solvers, and where every iteration computes K anew."""

LONGEST_PASS = 8e10
"""Nanoseconds on one core, by count: a K that does not fit the memory is computed anew for every product up to here,
which is 2·10⁵ rows of 20 columns with a Gaussian kernel. Beyond it, centres replace the points."""


@dataclass(frozen=True, eq=False)
class Size:
    """All that the choice of a solver depends on.

    Attributes
    ----------
    n : int
        The number of points.
    alpha : array
        The different penalties, ascending.
    scale : float
        The mean of wᵢ k(xᵢ, xᵢ).
    dtype
        Of K.
    entry : float
        Nanoseconds that one entry of K takes on one core, by counting operations.
    bounded : bool
        Whether all entries lie within [−1, 1], so that float32 cannot overflow.
    targets : int
        The number of targets.
    """

    n: int
    alpha: NDArray[np.float64]
    scale: float = 1.0
    dtype: np.dtype[Any] = FLOAT64
    entry: float = 2.0
    bounded: bool = True
    targets: int = 1

    @classmethod
    def of(cls, problem: LeastSquares) -> Size:
        """The size of a problem."""
        gram, alpha = problem.gram, np.unique(problem.alpha)
        targets = problem.y.shape[1] + (0 if problem.tail is None else problem.tail.shape[1])
        scale = mean_diagonal(problem)
        return cls(problem.n, alpha, scale, gram.dtype, gram.entry_cost, gram.bounded, targets)

    @property
    def share(self) -> float:
        """The smallest alpha in units of the mean k(x, x)."""
        return float(self.alpha.min()) / max(self.scale, float(np.finfo(np.float64).tiny))

    @property
    def rounded(self) -> Any:
        """The dtype in which products are fast, and safe."""
        return np.dtype(np.float32) if self.bounded or self.dtype == np.float32 else self.dtype


@dataclass(frozen=True)
class Choice:
    """The solver of a problem, and why.

    Attributes
    ----------
    solver : str
        "cholesky", "eigen", "cg", "nystrom", "blocks" or "fourier".
    why : str
        One sentence.
    preconditioner : str or None
        For "cg", "factor" (float32 Cholesky) or "pivots" (randomly pivoted columns).
    low_memory : bool
        Whether "cg" must do without a stored float64 matrix.
    rank : int
        For "pivots", the number of columns.
    tol : float
        The relative residual at which it stops, unless the caller gives one.
    """

    solver: str
    why: str
    preconditioner: str | None = None
    low_memory: bool = False
    rank: int = 0
    tol: float = TOL

    @property
    def streamed(self) -> bool:
        """Whether every iteration computes the matrix anew, so that a time limit has a meaning."""
        return self.solver in ("nystrom", "blocks") or (self.preconditioner == "pivots" and self.low_memory)


def choose(size: Size, solver: str = "auto", budget: Any = None, grid: Callable[[int], bool] | None = None) -> Choice:
    """The solver that `solve` uses for problems of this size, and why.

    `grid` says whether a grid of frequencies can represent the kernel in a number of bytes; it is asked only if no
    matrix fits the memory.

    >>> choose(Size(4, np.array([0.0]))).why
    'alpha = 0 requires the solution of minimum norm'
    >>> choice = choose(Size(100_000, np.array([0.1])), budget="2 GB")
    >>> choice.solver, choice.rank, choice.tol
    ('cg', 2236, 0.001)
    >>> choose(Size(1_000_000, np.array([0.1])), budget="2 GB").solver
    'nystrom'
    """
    check_choice(solver, "solver", SOLVERS, advice="Use 'auto' if in doubt.")
    n, limit = size.n, _budget(budget)
    if solver in ("cg", "blocks") and (size.alpha == 0).any():
        advice = "Use `solver='eigen'` for the minimum norm."
        raise InvalidInput(f"`alpha` must be > 0 for `solver='{solver}'`", got="0", advice=advice)
    if solver == "cg":
        return _iterative(size, limit, "as requested")
    if solver == "blocks":
        return Choice("blocks", "as requested", tol=TOL_BEYOND_MEMORY)
    if solver != "auto":
        return Choice(solver, "as requested")
    if (size.alpha == 0).any():
        advice = "Use alpha > 0, or solver='nystrom'."
        within(24 * n * n, limit, f"The eigendecomposition of {n} points", advice)
        return Choice("eigen", "alpha = 0 requires the solution of minimum norm")
    different = len(size.alpha)
    if different >= costs.SOLUTIONS and 24 * n * n <= limit:
        return Choice("eigen", f"one decomposition serves all {different} values of alpha")
    if n <= costs.FLOAT64_ROWS and size.dtype.itemsize * n * n <= limit and size.dtype == np.float64:
        return Choice("cholesky", f"n = {n} is small")
    if 4 * n * n <= limit:
        return _iterative(size, limit, f"n = {n}")
    figures = f"a float32 matrix of {n} points takes {show_bytes(4 * n * n)}, the budget is {show_bytes(limit)}"
    if grid is not None and grid(limit):
        return Choice("fourier", f"{figures}: a grid of frequencies within a tolerance")
    if n * n * size.entry > LONGEST_PASS:
        slow = "and computing it again and again takes too long"
        return Choice("nystrom", f"{figures}, {slow}: an approximation, which solver='blocks' refines")
    if pivots(size, limit) < math.isqrt(n):
        return Choice("nystrom", f"{figures}, too little for a preconditioner: an approximation")
    return _iterative(size, limit, figures)


def pivots(size: Size, limit: int) -> int:
    """Pivoted columns for a K that is not stored: computing them costs as much as one product, in half of the budget.

    >>> pivots(Size(100_000, np.ones(1)), 2 * 10**9), pivots(Size(100_000, np.ones(1)), 4 * 10**8)
    (2236, 500)
    """
    by_cost = math.isqrt(int(costs.ENTRY_FLOPS * size.n))
    return max(1, min(size.n, by_cost, limit // 2 // (size.rounded.itemsize * size.n)))


def _iterative(size: Size, limit: int, reason: str) -> Choice:
    """Conjugate gradients, with the preconditioner that the penalty and the budget call for."""
    n, share = size.n, size.share
    if 4 * n * n > limit:
        rank = pivots(size, limit)
        return Choice("cg", reason, "pivots", low_memory=True, rank=rank, tol=TOL_BEYOND_MEMORY)
    # The factor is made in float64 and kept in float32, beside the matrix.
    beside = 4 * n * n + 12 * n * costs.PIVOTED_RANK <= limit
    if share >= costs.PIVOTED_SHARE and n >= costs.PIVOTED_ROWS and beside:
        why = f"{reason}, and alpha is {share:.2g} of the mean k(x, x)"
        return Choice("cg", why, "pivots", rank=costs.PIVOTED_RANK)
    both = 4 * n * n if size.dtype == np.float32 else 12 * n * n
    if both <= limit:
        return Choice("cg", reason, "factor")
    why = f"{reason}, and the float64 matrix does not fit the budget of {show_bytes(limit)}"
    return Choice("cg", why, "factor", low_memory=True)


def mean_diagonal(problem: LeastSquares) -> float:
    """The mean diagonal entry of K̃."""
    diagonal = problem.gram.diag().astype(np.float64)
    return float((diagonal if problem.roots is None else diagonal * problem.roots**2).mean())
