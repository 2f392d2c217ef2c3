"""The whole kernel beyond the reach of full products: blocks of coordinates, after Nyström centres.

A product with all of K takes minutes from about 10⁵ rows on. A step of accelerated sketch-and-project takes b rows of K
only. With z the present point, B a block of coordinates drawn at random and g = (K̃z + alpha z − s∘y)_B its residual,

    d = (K̃_BB + rho I)⁻¹ g,      rho = alpha + λ_{b/4} − λ_b with the eigenvalues λ of K̃_BB,

and −d is the step. Without the damping, a step would fit the block as closely as alpha allows. For a small alpha that
is interpolation: it lowers the energy ½ uᵀ(K̃ + alpha I)u − uᵀ(s∘y), but b points do not determine that many directions,
and the residual of the other rows grows by orders of magnitude. As K̃_BB + rho I ⪰ K̃_BB + alpha I, the length 1 is safe.

Nesterov's averages w, v, z accelerate the steps, with nu = n/b and mu the rate at which an error shrinks in the slowest
direction. The steps multiply the error by I − E[S(K̃_BB + rho I)⁻¹Sᵀ](K̃ + alpha I) on average, S the columns of the
block, and that expectation is about (K̃ + (rho + tau) I)⁻¹ (exact for blocks drawn by determinants). Its trace gives
tau = (n − b) / tr (K̃_BB + rho I)⁻¹. A vector that K̃ maps to zero shrinks at the rate mu = alpha / (rho + tau) ≤ 1/nu.
The averages extend over 1/√(mu nu) passes. Over many passes they swing, and the residual grows for passes on end, so
that mu is at least 1/(LONGEST² nu). The eigenvalues of one block give rho and tau.
All are ratios: the unit of the kernel does not matter. n/b steps cost as much as one product with K, and are counted as
one pass.

The start has the form theta₁ c + theta₂ (y − f), f the function of the centres and c its coefficients. For large alpha
c are large numbers that cancel in f but not in alpha c; then the residuals y − f are better, which at the minimum are
alpha u. For small alpha they contain the parts of y that f misses, too large for u by orders of magnitude; then c is
better. The thetas give the least residual r, and the objective of f, ½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖², exceeds its
minimum by at most ½ ‖r‖². Nevertheless, after few blocks the objective may be larger than that of the centres: if the
steps end before they converged, the objectives of both functions are compared, and the better function is returned.
Both times, sums over pairs of rows are estimated by the rows of the centres and others drawn at random.

Rows of K are float32 as long as their rounding is a small part of the residual, then float64. The residuals g of the
last pass estimate the whole residual, without a further product. A tail (the intercept) keeps the coefficients that the
centres gave it.

Rathore, Frangella, Yang, Dereziński and Udell, *Have ASkotch: a neat solution for large-scale kernel ridge regression*
(2024). There the damping is alpha and the smallest of the 100 eigenvalues of a randomised low-rank approximation of
K̃_BB, a power iteration finds the step, and mu is alpha. Here the damping is the same with b/4 eigenvalues instead of
100, and the block is factorised whole: up to `MOST` rows that costs less than the rows of K, and the step is known.
With 100 eigenvalues of a block of 1 000 rows, a slowly decaying spectrum takes about twice as many passes (8 000 rows
in 20 columns, alpha = 0.1: the distance to the exact function after 8 passes is 0.066 with the approximation, 0.040
with the factor and 100 eigenvalues, and 0.016 with 250).
"""

from __future__ import annotations

import json
import math
from collections import deque
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.problems.least_squares import LeastSquares
from mercer.solvers.base import Matrix, Solution
from mercer.solvers.checkpoint import Checkpoint, Journal
from mercer.solvers.nystrom import shifted
from mercer.solvers.step import Progress, Step
from mercer.threads import single_threaded_blas
from mercer.validation import generator

SHARE, LEAST, MOST = 100, 256, 4096
"""A block is this share of the rows, at least and at most this many; sums over pairs of rows take at most as many."""
RESOLVED = 4
"""A block of b points determines about b / RESOLVED directions: with 2 or 3 the residual grows at first for small
alpha, with 8 the steps are slow (4 000 rows, blocks of 256, alpha from 1e-8 to 0.1, 3 and 20 columns)."""
LONGEST = 3
"""Passes over which averages extend at most: with 10, residuals of single runs doubled on the way down, with 1 nothing
is accelerated."""
ROUNDED = 0.1
"""The part of the residual that may come from the rounding of float32 rows."""
PASSES = 10
"""Passes at most: each takes as long as one product with the whole matrix."""


def solve(
    problem: LeastSquares,
    centres: Matrix,
    tail: Matrix | None,
    *,
    tol: float,
    passes: float = PASSES,
    random_state: Any = 0,
    progress: Progress | None = None,
    checkpoint: Checkpoint | Journal | None = None,
) -> Solution:
    """The coefficients of all points, block by block; those of the centres where they are better in the end.

    Parameters
    ----------
    problem : LeastSquares
        The points, targets, penalties, weights and tail.
    centres, tail : array, array or None
        The function of the centres: coefficients of all points, shape (n, t), zero for most of them, and of the tail,
        which is kept.
    tol : float
        The estimated relative residual at which it stops.
    passes : float
        The largest amount of work, in products with the whole matrix.
    random_state : int, Generator or None
        The seed of the blocks.
    progress : Progress or None
        Called with a `Step` after every block; False stops it there.
    checkpoint : Checkpoint or None
        Keeps the state after a block; a later call with the same problem continues there.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), np.sin(X[:, :1]), np.array([0.1]))
    >>> solution = solve(problem, np.zeros((600, 1)), None, tol=1e-2, passes=30)
    >>> solution.residual <= 1e-2, solution.stats["converged"]
    (True, True)
    """
    n, gram, rng = problem.n, problem.gram, generator(random_state)
    fast = np.float32 if gram.bounded or gram.dtype == np.float32 else gram.dtype
    s = np.ones((n, 1)) if problem.roots is None else problem.roots[:, None]
    Y = problem.weighted_targets
    if tail is not None and problem.weighted_tail is not None:
        Y = Y - problem.weighted_tail @ tail
    size = block_size(n)
    nu, alpha = n / size, problem.alpha
    spectrum = _spectrum(problem, rng.choice(n, size, replace=False))
    damping, floor = spectrum[size // RESOLVED] - spectrum[-1], float(np.finfo(gram.dtype).eps * spectrum[0])
    rho = alpha + damping
    tau = (n - size) / (1.0 / (spectrum[:, None] + rho)).sum(axis=0)
    mu = np.maximum(alpha / (rho + tau), 1.0 / (LONGEST**2 * nu))
    beta, gamma = 1.0 - np.sqrt(mu / nu), 1.0 / np.sqrt(mu * nu)
    mix = 1.0 / (1.0 + gamma * nu)
    rounding = float(np.finfo(fast).eps) * float((s[:, 0] ** 2 * gram.diag()).max()) * math.sqrt(size)
    whole = np.maximum(np.einsum("ij,ij->j", problem.weighted_targets, problem.weighted_targets), 1e-300)
    squares: deque[Matrix] = deque(maxlen=math.ceil(nu))
    count, most, residual, stopped = 0, max(1, math.ceil(passes * nu)), np.inf, False
    kept = None if checkpoint is None else checkpoint.load()
    if kept is None:
        w = _start(problem, Y, centres, rng)
        v, z = w.copy(), w.copy()
    else:
        w, v, z = (kept[f"blocks.{name}"] for name in "wvz")
        squares.extend(kept["blocks.squares"])
        count = int(kept["blocks.count"][0])
        rng.bit_generator.state = json.loads(kept["blocks.random"].tobytes())
    while count < most and not stopped:
        index = np.sort(rng.choice(n, size, replace=False))
        points, sB = gram.x.take(index), s[index]
        noise = rounding * np.linalg.norm(z, axis=0)
        exact = len(squares) > 0 and bool((noise > ROUNDED * np.sqrt(squares[-1])).any())
        rows = gram.between(points, gram.x, np.float64 if exact else fast)
        g = sB * rows.multiply(s * z) + alpha * z[index] - Y[index]
        H = sB * gram.between(points, None, gram.dtype).fresh(np.float64) * sB.T
        direction = np.empty_like(g)
        with single_threaded_blas():  # in small matrices, threads would mostly wait for each other
            for value in np.unique(alpha):
                factor = shifted(H, float(value + damping), floor)
                direction[:, alpha == value] = sla.cho_solve(factor, g[:, alpha == value], check_finite=False)
        count += 1
        squares.append(np.einsum("ij,ij->j", g, g))
        w = z.copy()
        w[index] -= direction
        v = beta * v + (1.0 - beta) * z
        v[index] -= gamma * direction
        z = mix * v + (1.0 - mix) * w
        residual = float(np.sqrt(np.mean(squares, axis=0) * nu / whole).max())
        state = Step(iteration=count, gap=residual, tol=tol)
        stopped = progress is not None and progress(state) is False
        if checkpoint is not None:
            random = np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)
            now = {"w": w, "v": v, "z": z, "squares": np.array(squares), "count": np.array([count]), "random": random}
            checkpoint.save({f"blocks.{name}": A for name, A in now.items()})
        if len(squares) == squares.maxlen and residual <= tol:
            break
    converged = len(squares) == squares.maxlen and residual <= tol
    made = count / nu
    why = "" if converged else ("stopped: " if stopped else "not converged: ")
    status = f"{why}{count} blocks of {size} coordinates of the whole kernel ({made:.2g} passes), estimated residual "
    status += f"{residual:.1e}"
    coef = s * w
    if not converged:
        worse = _worse(problem, Y, coef, centres, rng)
        coef[:, worse] = centres[:, worse]
        if worse.any():
            which = "the centres" if worse.all() else f"the centres for {worse.sum()} of {len(worse)} targets"
            status += f", worse than {which}, which are kept"
    stats = {"iterations": count, "passes": made, "converged": converged, "tol": tol, "stopped": stopped}
    return Solution(coef, tail, "blocks", status, residual, stats)


def block_size(n: int) -> int:
    """The number of coordinates in a block.

    >>> block_size(100), block_size(100_000), block_size(1_000_000)
    (100, 1000, 4096)
    """
    return min(n, max(n // SHARE, LEAST), MOST)


def _spectrum(problem: LeastSquares, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """The eigenvalues of a block, descending; those below the rounding of its entries are raised to it."""
    gram = problem.gram
    H = gram.between(gram.x.take(index), None, gram.dtype).fresh(np.float64)
    if problem.roots is not None:
        H *= problem.roots[index, None] * problem.roots[index]
    values = sla.eigvalsh(H, overwrite_a=True, check_finite=False)[::-1]
    tiny = float(np.finfo(np.float64).tiny)
    return np.maximum(values, max(float(np.finfo(gram.dtype).eps) * float(values[0]), tiny))


def _start(problem: LeastSquares, Y: Matrix, centres: Matrix, rng: np.random.Generator) -> Matrix:
    """The combination of the coefficients and of the residuals of the centres that has the least residual."""
    gram, at = problem.gram, np.flatnonzero(centres.any(axis=1))
    s = 1.0 if problem.roots is None else problem.roots[:, None]
    u = Y.copy()
    if len(at):
        u -= s * gram.between(gram.x, gram.x.take(at), gram.dtype).multiply(centres[at])
    sums, t = _Sample(problem, at, rng), Y.shape[1]
    V = np.hstack([centres / s, u])
    A = sums.s * sums.values(s * V) + np.tile(problem.alpha, 2) * V[sums.index]
    starts = np.empty_like(u)
    for j in range(t):
        # Each of the two is scaled to length one: their units may differ by orders of magnitude.
        pair, target = np.sqrt(sums.share)[:, None] * A[:, [j, t + j]], np.sqrt(sums.share) * Y[sums.index, j]
        lengths = np.linalg.norm(pair, axis=0)
        lengths[lengths == 0] = 1.0
        theta = np.linalg.lstsq(pair / lengths, target, rcond=None)[0] / lengths
        starts[:, j] = V[:, [j, t + j]] @ theta
    return starts


def _worse(
    problem: LeastSquares, Y: Matrix, coef: Matrix, centres: Matrix, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """For which targets the objective of f is larger with `coef` than with `centres`."""
    sums, t = _Sample(problem, np.flatnonzero(centres.any(axis=1)), rng), Y.shape[1]
    both = np.hstack([coef, centres])
    F = sums.values(both)
    E = np.hstack([Y, Y])[sums.index] - sums.s * F
    objective = sums.share @ (E**2 + np.tile(problem.alpha, 2) * both[sums.index] * F)
    return np.asarray(~(objective[:t] <= objective[t:]))


class _Sample:
    """Rows that stand for all in sums over rows: those of the centres, whose terms are large, and some of the others.

    Attributes
    ----------
    index : array
        The rows.
    share : array
        The number of rows that each stands for.
    s : array of shape (rows, 1)
        The roots of their weights.
    """

    def __init__(self, problem: LeastSquares, centres: NDArray[np.int64], rng: np.random.Generator) -> None:
        others = np.setdiff1d(np.arange(problem.n), centres, assume_unique=True)
        drawn = rng.choice(others, min(len(others), MOST), replace=False)
        self.problem, self.index = problem, np.concatenate([centres, np.sort(drawn)])
        self.share = np.repeat([1.0, len(others) / max(len(drawn), 1)], [len(centres), len(drawn)])
        self.s = np.ones((len(self.index), 1)) if problem.roots is None else problem.roots[self.index, None]

    def values(self, coef: Matrix) -> Matrix:
        """The values of functions at these rows."""
        gram = self.problem.gram
        return np.asarray(gram.between(gram.x.take(self.index), gram.x, gram.dtype).multiply(coef))
