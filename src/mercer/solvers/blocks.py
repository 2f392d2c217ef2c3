"""The whole kernel beyond the reach of full products: blocks of coordinates, after Nyström centres.

A product with all of K takes minutes from some 10⁵ rows on. A step of accelerated sketch-and-project takes b rows of K
only. With z the present point, B a block of coordinates drawn at random and g = (K̃z + alpha z − s∘y)_B its residual,

    d = (K̃_BB + rho I)⁻¹ g,      rho = alpha + the rounding of a row's product,

and −d is the step. Nesterov's averages w, v, z accelerate it, with nu = n/b and mu = (alpha / rho) / nu: a vector that
K maps to zero shrinks by the share alpha / rho in a block, and by mu on average. Both are ratios, so that the unit of
the kernel does not matter. n/b steps cost as much as one product with K, and are counted as one pass.

The energy ½ uᵀ(K̃ + alpha I)u − uᵀ(s∘y) that steps lower, with c = s∘u, penalises alpha ‖u‖² too. There the
coefficients of the centres, large numbers that cancel in f, are far worse than zero. But at the minimum alpha u are the
weighted residuals s∘(y − f). So the start is a multiple of the residuals of the centres, the one of least energy.

In the objective of f itself, ½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖², few blocks may still lose against the centres. If the
steps end before they converged, both functions are compared there, and the better one is returned. At a relative
residual of tol, the objective exceeds its minimum by at most ½ tol² ‖s∘y‖², and nothing has to be compared. Both times,
sums over pairs of rows are estimated by rows drawn at random.

The residuals g of the last pass estimate the whole residual, without a further product. A tail (the intercept) keeps
the coefficients that the centres gave it.

Rathore, Frangella, Yang, Dereziński and Udell, *Have ASkotch: a neat solution for large-scale kernel ridge regression*
(2024). They approximate K̃_BB with low rank; up to `MOST` rows its Cholesky factor costs less than the rows of K.
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
        work at most, in products with the whole matrix.
    random_state : int, Generator or None
        The seed of the blocks.
    progress : Progress or None
        called with a `Step` after every block; False stops it there.
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
    rounding = float(np.finfo(fast).eps) * math.sqrt(n) * float((s[:, 0] ** 2 * gram.diag()).max())
    mu = alpha / (alpha + rounding) / nu
    beta, gamma = 1.0 - np.sqrt(mu / nu), 1.0 / np.sqrt(mu * nu)
    mix = 1.0 / (1.0 + gamma * nu)
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
        rows = gram.between(points, gram.x, fast)
        g = sB * rows.multiply(s * z) + alpha * z[index] - Y[index]
        H = sB * gram.between(points, None, gram.dtype).fresh(np.float64) * sB.T
        direction = np.empty_like(g)
        with single_threaded_blas():  # in small matrices, threads would mostly wait for each other
            for value in np.unique(alpha):
                factor = shifted(H, float(value), rounding)
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


def _start(problem: LeastSquares, Y: Matrix, centres: Matrix, rng: np.random.Generator) -> Matrix:
    """The multiple of the residuals of the centres that has the least energy."""
    gram, at = problem.gram, np.flatnonzero(centres.any(axis=1))
    s = 1.0 if problem.roots is None else problem.roots[:, None]
    u = Y / problem.alpha
    if len(at):
        u -= s * gram.between(gram.x, gram.x.take(at), gram.dtype).multiply(centres[at]) / problem.alpha
    index, share, F = _drawn(problem, s * u, rng)
    energy = np.maximum(share * np.einsum("ij,ij->j", (s * u)[index], F), 0.0)
    energy += problem.alpha * np.einsum("ij,ij->j", u, u)
    along = np.maximum(np.einsum("ij,ij->j", u, Y), 0.0)
    return np.asarray(u * np.divide(along, energy, out=np.zeros_like(along), where=energy > 0))


def _worse(
    problem: LeastSquares, Y: Matrix, coef: Matrix, centres: Matrix, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """For which targets the objective of f is larger with `coef` than with `centres`.

    ‖f‖² is a sum over rows too, but for the centres over few large terms: theirs is computed from all of them.
    """
    gram, t = problem.gram, Y.shape[1]
    index, share, F = _drawn(problem, np.hstack([coef, centres]), rng)
    E = np.hstack([Y, Y])[index] - (F if problem.roots is None else problem.roots[index, None] * F)
    loss = share * np.einsum("ij,ij->j", E, E)
    norm = share * np.einsum("ij,ij->j", coef[index], F[:, :t])
    at = np.flatnonzero(centres.any(axis=1))
    few = gram.between(gram.x.take(at), None, gram.dtype).multiply(centres[at]) if len(at) else centres[at]
    other = loss[t:] + problem.alpha * np.einsum("ij,ij->j", centres[at], few)
    return np.asarray(~(loss[:t] + problem.alpha * norm <= other))


def _drawn(
    problem: LeastSquares, coef: Matrix, rng: np.random.Generator
) -> tuple[NDArray[np.int64], float, NDArray[np.float64]]:
    """Rows drawn at random, the number of rows that each stands for, and the values of the functions there."""
    gram, n = problem.gram, problem.n
    index = np.sort(rng.choice(n, min(n, MOST), replace=False))
    return index, n / len(index), gram.between(gram.x.take(index), gram.x, gram.dtype).multiply(coef)
