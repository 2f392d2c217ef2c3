"""The whole kernel beyond the reach of full products: blocks of coordinates, started from Nyström centres.

A product with all of K takes minutes from some 10⁵ rows on. A step of accelerated sketch-and-project takes b rows of K
only. With z the present point, B a block of coordinates drawn at random and g = (K̃z + alpha z − s∘y)_B its residual,

    d = (K̂ + rho I)⁻¹ g,      rho = alpha + the smallest eigenvalue of K̂,

where K̂ is a randomised Nyström approximation of K̃_BB, of rank `RANK`; the step along −d has the length 1/λ, λ the
largest eigenvalue of (K̂ + rho I)⁻¹(K̃_BB + alpha I) by power iterations. Nesterov's averages w, v, z accelerate it, with
nu = n/b and mu = min(alpha, 1/nu). n/b steps cost as much as one product with K, and are counted as one pass.

The residuals g of the last pass estimate the whole residual, without a further product. A tail (the intercept) keeps
the coefficients that the centres gave it.

Rathore, Frangella, Yang, Dereziński and Udell, *Have ASkotch: a neat solution for large-scale kernel ridge regression*
(2024).
"""

from __future__ import annotations

import json
import math
from collections import deque
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.base import Matrix, Solution
from mercer.solvers.checkpoint import Checkpoint, Journal
from mercer.solvers.step import Progress, Step
from mercer.threads import single_threaded_blas
from mercer.validation import generator

SHARE, LEAST = 100, 256
"""A block is this share of the rows, and at least this many rows."""
RANK, POWERS = 100, 10
"""The rank of the approximation of a block, and the power iterations for its step."""
PASSES = 10
"""Passes at most: each takes as long as one product with the whole matrix."""


def solve(
    problem: LeastSquares,
    start: Matrix,
    tail: Matrix | None,
    *,
    tol: float,
    passes: float = PASSES,
    random_state: Any = 0,
    progress: Progress | None = None,
    checkpoint: Checkpoint | Journal | None = None,
) -> Solution:
    """The coefficients of all points, improved block by block from `start`.

    Parameters
    ----------
    problem : LeastSquares
        The points, targets, penalties, weights and tail.
    start, tail : array, array or None
        Coefficients of all points, shape (n, t), and of the tail, which is kept.
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
    size = min(n, max(n // SHARE, LEAST))
    nu, alpha = n / size, problem.alpha
    mu = np.minimum(alpha, 1.0 / nu)
    beta, gamma = 1.0 - np.sqrt(mu / nu), 1.0 / np.sqrt(mu * nu)
    mix = 1.0 / (1.0 + gamma * nu)
    w = start / s
    v, z = w.copy(), w.copy()
    whole = np.maximum(np.einsum("ij,ij->j", problem.weighted_targets, problem.weighted_targets), 1e-300)
    squares: deque[Matrix] = deque(maxlen=math.ceil(nu))
    count, most, residual, stopped = 0, max(1, math.ceil(passes * nu)), np.inf, False
    kept = None if checkpoint is None else checkpoint.load()
    if kept is not None:
        w, v, z = (kept[f"blocks.{name}"] for name in "wvz")
        squares.extend(kept["blocks.squares"])
        count = int(kept["blocks.count"][0])
        rng.bit_generator.state = json.loads(kept["blocks.random"].tobytes())
    while count < most and not stopped:
        index = np.sort(rng.choice(n, size, replace=False))
        points, sB = gram.x.take(index), s[index]
        rows = gram.between(points, gram.x, fast)
        g = sB * rows.multiply(s * z) + alpha * z[index] - Y[index]
        with single_threaded_blas():  # its matrices have RANK columns: threads would mostly wait for each other
            direction = _Block(gram.between(points, None, fast), sB, rng).step(g, alpha)
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
    stats = {"iterations": count, "passes": made, "converged": converged, "tol": tol, "stopped": stopped}
    return Solution(s * w, tail, "blocks", f"{status}{residual:.1e}", residual, stats)


class _Block:
    """K̂ ≈ K̃_BB of rank `RANK`, by randomised Nyström: K̂ = U diag(values) Uᵀ."""

    def __init__(self, gram: Gram, roots: Matrix, rng: np.random.Generator) -> None:
        self.gram, self.roots = gram, roots
        b = gram.shape[0]
        omega = np.linalg.qr(rng.standard_normal((b, min(RANK, b))))[0]
        sketch = self.multiply(omega)
        shift = float(np.finfo(gram.dtype).eps) * float(np.linalg.norm(sketch))
        sketch += shift * omega
        core = omega.T @ sketch
        eigenvalues, vectors = sla.eigh((core + core.T) / 2, check_finite=False)
        keep = eigenvalues > shift
        half = sketch @ (vectors[:, keep] / np.sqrt(eigenvalues[keep]))
        self.U, singular, _ = sla.svd(half, full_matrices=False, check_finite=False)
        self.values = np.maximum(singular**2 - shift, 0.0)
        self.probe = rng.standard_normal((b, 1))

    def multiply(self, V: NDArray[Any]) -> Matrix:
        """K̃_BB V."""
        return np.asarray(self.roots * self.gram.multiply(self.roots * V), dtype=np.float64)

    def step(self, g: Matrix, alpha: Matrix) -> Matrix:
        """The step along the preconditioned residual, every column with its own alpha."""
        least = float(self.values[-1]) if len(self.values) else 0.0
        out = np.empty_like(g)
        for value in np.unique(alpha):
            columns = alpha == value
            x = self.probe
            top = 1.0
            for _ in range(POWERS):
                x = self._solve(self.multiply(x) + value * x, value + least)
                top = float(np.linalg.norm(x))
                x = x / top
            out[:, columns] = self._solve(g[:, columns], value + least) / max(top, 1.0)
        return out

    def _solve(self, g: Matrix, rho: float) -> Matrix:
        """(K̂ + rho I)⁻¹ g."""
        inside = self.U.T @ g
        return np.asarray(self.U @ (inside / (self.values + rho)[:, None]) + (g - self.U @ inside) / rho)
