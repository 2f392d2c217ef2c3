"""Least squares on a grid of frequencies: for stationary kernels on one to three columns, and any number of points.

With K ≈ ΦΦ* (`gram.fourier`), Φ̃ = diag(√w) Φ and Q an orthonormal basis of the weighted tail's columns, f = Φβ + tail
with

    A β = Φ̃*(I − QQᵀ)√w∘y,      A = Φ̃*(I − QQᵀ)Φ̃ + alpha I.

Φ̃*Φ̃ = D T D has a Toeplitz core, Tⱼₗ = t(j − l) with t(q) = Σᵢ wᵢ exp(−2πi Σ qₖhₖxᵢₖ): one transform of the weights
and targets reads all points once, and from then on n does not matter. A product with T is a convolution, by fast
transforms of twice the size. The preconditioner is A itself at the low frequencies, factorised, and its diagonal at the
others: k̂ decays, so that what is left is well-conditioned unless alpha is tiny.

`tol` bounds three errors. The kernel is represented within tol·k(x, x), in the box of the data. A frequency is left out
only if the smoother passes less than the share tol of it, λ/(λ + alpha) with λ = Σw k̂(ξ)/volume, where the volume is
that which the points fill: this is exact for evenly spread points, and an estimate for others. Conjugate gradients end
at the relative error tol of f, in the norm of the objective, whatever the preconditioner (`cg.Measure.ERROR`).

Coefficients are complex and conjugate symmetric; they are handled as real vectors of the same length, see `Half`.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy import fft

from mercer import threads
from mercer.errors import InvalidInput
from mercer.features.nonuniform import ROUNDING, Complex, Frequencies
from mercer.gram.fourier import FourierGrid
from mercer.memory import budget as _budget
from mercer.memory import within
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.base import Matrix, Solution
from mercer.solvers.cg import Measure, conjugate_gradients
from mercer.solvers.factor import orthonormal
from mercer.solvers.step import Progress
from mercer.validation import check_number
from mercer.words import count

TOL = 1e-4
MAX_ITER = 3000


def plan(problem: LeastSquares, tol: float | None = None) -> FourierGrid | None:
    """The grid that `solve` would use; None if the kernel has no known density or the points have too many columns.

    >>> import mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.linspace(0.0, 6.0, 500)[:, None]
    >>> plan(LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), np.sin(X), np.array([0.1]))).frequencies.number
    31
    """
    tol = TOL if tol is None else tol
    return problem.gram.fourier(tol, tol * float(problem.alpha.min()) / _total(problem))


def nbytes(problem: LeastSquares, grid: FourierGrid, n: int | None = None) -> int:
    """Bytes that a fit to n points, by default those of the problem, takes beside the data."""
    columns = problem.y.shape[1] + (0 if problem.tail is None else problem.tail.shape[1])
    return grid.nbytes(columns) + 8 * (problem.n if n is None else n) * (2 * columns + 2)


def least_alpha(problem: LeastSquares, grid: FourierGrid) -> float:
    """The rounding of the sums over the points: a smaller alpha would be lost in it."""
    return ROUNDING * _total(problem) * sum(term.scale for term in grid.terms)


def _total(problem: LeastSquares) -> float:
    """Σw."""
    return float(problem.n if problem.roots is None else (problem.roots**2).sum())


def affordable(problem: LeastSquares, tol: float | None, limit: int, n: int | None = None) -> bool:
    """Whether `solve` applies, fits into this many bytes for n points, and its iterations are fast."""
    grid = plan(problem, tol)
    if grid is None or float(problem.alpha.min()) < least_alpha(problem, grid):
        return False
    return grid.frequencies.number <= costs.MOST_FREQUENCIES and nbytes(problem, grid, n) <= limit


def measured(problem: LeastSquares, tol: float | None, n: int) -> tuple[float, int, int]:
    """Seconds, bytes and iterations of `solve` for n points like those of a sample, whose alpha is scaled to it.

    The sample is solved: its grid and its iterations are those of n points, and only the pass over them grows.
    """
    grid = plan(problem, tol)
    assert grid is not None
    begin = time.perf_counter()
    solution = solve(problem, tol=tol)
    end = time.perf_counter()
    points, ones = problem.gram.x.vectors(), np.ones((problem.n, 1 + problem.y.shape[1]))
    double, seconds = grid.frequencies.doubled(), []
    for number in (1, problem.n):
        start = time.perf_counter()
        double.to_grid(points[:number], ones[:number], TOL)
        seconds.append(time.perf_counter() - start)
    pass_over_points = max(seconds[1] - seconds[0], 0.0) / problem.n
    took = end - begin + pass_over_points * (n - problem.n)
    factored = min(grid.frequencies.number, costs.FACTORED_FREQUENCIES)  # its matrix, a copy, and the parts of both
    return took, nbytes(problem, grid, n) + 4 * 8 * factored**2, int(solution.stats["iterations"])


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    max_iter: int = MAX_ITER,
    budget: Any = None,
    progress: Progress | None = None,
) -> Solution:
    """The minimiser over functions on the grid, by preconditioned conjugate gradients.

    Parameters
    ----------
    problem : LeastSquares
        n points in at most three columns, t targets, their penalties > 0, weights and tail.
    tol : float or None
        See above; by default 1e-4.
    max_iter : int
        The largest number of iterations.
    budget : int, str or None
        Memory, see `memory.budget`.
    progress : Progress or None
        Called with a `Step` after every iteration; False stops it there.

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.linspace(0.0, 6.0, 500)[:, None]
    >>> problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), np.sin(X), np.array([0.1]))
    >>> solution = solve(problem)
    >>> solution.coef.shape, solution.grid.frequencies.number, solution.stats["iterations"]
    ((32, 1), 31, 1)
    """
    tol = check_number(TOL if tol is None else tol, "tol", above=0, below=1, advice=f"Use the default, {TOL:g}.")
    grid = plan(problem, tol)
    if grid is None:
        raise InvalidInput(
            "`solver='fourier'` needs at most three columns of numbers and a kernel whose spectral density is known: "
            "sums and multiples of Gaussian, Matern and Laplacian",
            got=repr(problem.gram),
            advice="Use `solver='nystrom'`, which takes any kernel.",
        )
    least = least_alpha(problem, grid)
    if float(problem.alpha.min()) < least:
        raise InvalidInput(
            f"`alpha` must be ≥ {least:.1e} for `solver='fourier'`, the rounding of sums over {problem.n} points",
            got=f"{problem.alpha.min():.3g}",
            advice="Raise `alpha`, or use `solver='eigen'` or `solver='cholesky'` on fewer points.",
        )
    number = grid.frequencies.number
    within(
        nbytes(problem, grid),
        _budget(budget),
        f"Least squares on the {number:.3g} frequencies that the widths, the extent of the data, alpha and tol require",
        "Raise `tol`, take a smoother kernel or a larger width, or use `solver='nystrom'`.",
    )
    system = _System(problem, grid, tol)
    precondition = _Preconditioner(system)
    target = system.target
    sizes = np.sqrt(np.maximum(np.einsum("ij,ij->j", target, precondition(target)), 0.0))
    run = conjugate_gradients(
        system.multiply,
        target,
        precondition=precondition,
        tol=tol,
        max_iter=max_iter,
        progress=progress,
        measure=Measure.ERROR,
        sizes=np.where(sizes > 0, sizes, 1.0),
        together=True,
    )
    error = float(run.residual.max(initial=0.0))
    stats = {
        "iterations": run.iterations,
        "converged": run.converged,
        "tol": tol,
        "frequencies": number,
        "kernel_error": grid.error,
    }
    way = f"{number} frequencies for {problem.n} points, kernel within {grid.error:.1e} of k(x, x)"
    status = (
        f"least squares on {way}, by {count(run.iterations, 'step')} of conjugate gradients, relative error {error:.1e}"
    )
    if not run.converged:
        why = "stopped" if run.stopped else "not converged"
        status = f"{why} after {run.iterations} iterations above the tolerance {tol:g} (raise it, or alpha): {status}"
    coef, tail = system.finish(run.X)
    return Solution(coef, tail, "fourier", status, error, stats, grid=grid)


class Half:
    """Conjugate symmetric coefficients, of which a half is stored, as real vectors of the same length.

    A stored coefficient whose last number is > 0 stands for two, and is multiplied by √2.
    """

    def __init__(self, frequencies: Frequencies) -> None:
        self.shape = frequencies.shape
        self.unit = np.where(np.arange(self.shape[-1]) > 0, math.sqrt(2.0), 1.0)

    def real(self, C: Complex) -> Matrix:
        """Coefficients of shape (c, *shape) as vectors of shape (2 ∏ shape, c)."""
        scaled = np.ascontiguousarray(C * self.unit).reshape(len(C), -1)
        return scaled.view(np.float64).T

    def complex(self, V: Matrix) -> Complex:
        """The inverse of `real`."""
        flat = np.ascontiguousarray(V.T).view(np.complex128)
        return flat.reshape(len(flat), *self.shape) / self.unit


class _System:
    """A and the right-hand side, with the tail projected out."""

    def __init__(self, problem: LeastSquares, grid: FourierGrid, tol: float) -> None:
        self.alpha, self.frequencies = problem.alpha, grid.frequencies
        self.half, self.roots = Half(grid.frequencies), grid.roots
        weights = np.ones(problem.n) if problem.roots is None else problem.roots**2
        # Targets are scaled to one, whatever their unit.
        self.scale = np.abs(problem.y).max(axis=0)
        self.scale[self.scale == 0] = 1.0
        Y, tail, t = problem.weighted_targets / self.scale, problem.weighted_tail, problem.y.shape[1]
        self.to_tail: Matrix | None = None
        if tail is not None:
            Q, self.to_tail = orthonormal(tail)
            self.in_tail = Q.T @ Y
            Y = np.hstack([Y - Q @ self.in_tail, Q])
        if problem.roots is not None:
            Y = problem.roots[:, None] * Y
        # The error of the sums is multiplied by up to Σw k(x, x)/alpha.
        self.total = _total(problem)
        size = self.total * sum(term.scale for term in grid.terms)
        accuracy = max(min(0.1 * tol, tol * float(problem.alpha.min()) / size), ROUNDING)
        double = grid.frequencies.doubled()
        sums = double.to_grid(problem.gram.x.vectors(), np.column_stack([weights, Y]), accuracy)
        self.core = sums[0]
        inner = tuple(slice(m, 3 * m + 1) for m in grid.frequencies.largest[:-1])
        both = self.half.real(sums[(slice(1, None), *inner, slice(grid.frequencies.largest[-1] + 1))] * self.roots)
        self.target, self.G = np.asfortranarray(both[:, :t]), both[:, t:]
        # The convolution by fast transforms.
        self.sizes = tuple(fft.next_fast_len(4 * m + 1, real=True) for m in grid.frequencies.largest)
        self.window = self._spatial(self.core, double)

    def _spatial(self, C: Complex, frequencies: Frequencies) -> Matrix:
        """The function with these coefficients, on the grid of the convolution."""
        padded = np.zeros((*self.sizes[:-1], self.sizes[-1] // 2 + 1), np.complex128)
        padded[frequencies.places(self.sizes)] = C
        return fft.irfftn(padded, self.sizes, norm="forward", overwrite_x=True, workers=threads.n_threads())

    def multiply(self, V: Matrix) -> Matrix:
        """A V, column by column with its own alpha."""
        products = np.empty((V.shape[1], *self.half.shape), np.complex128)
        for column, c in enumerate(self.half.complex(V)):
            values = self._spatial(self.roots * c, self.frequencies)
            values *= self.window
            spectrum = fft.rfftn(values, norm="forward", overwrite_x=True, workers=threads.n_threads())
            products[column] = self.roots * spectrum[self.frequencies.places(self.sizes)]
        return self.half.real(products) + self.alpha * V - self.G @ (self.G.T @ V)

    def finish(self, V: Matrix) -> tuple[Matrix, Matrix | None]:
        """The coefficients Dβ of f, as real vectors of shape (2 ∏ shape, t), and those of the tail."""
        tail = None if self.to_tail is None else self.to_tail @ (self.in_tail - self.G.T @ V) * self.scale
        C = (self.half.complex(V) * self.roots).reshape(V.shape[1], -1)
        return np.ascontiguousarray(C.view(np.float64).T) * self.scale, tail


class _Preconditioner:
    """A at the low frequencies, factorised, and its diagonal at the others.

    The factor is that of real coefficients: of 1, √2 cos and √2 sin, for one of each pair of frequencies ±j ≠ 0.
    """

    def __init__(self, system: _System) -> None:
        self.half, frequencies = system.half, system.frequencies
        share = min(1.0, costs.FACTORED_FREQUENCIES / frequencies.number) ** (1 / len(frequencies.largest))
        m = np.array([int(share * largest) for largest in frequencies.largest])
        J = np.stack(np.meshgrid(*(np.arange(-k, k + 1) for k in m), indexing="ij"), axis=-1).reshape(-1, len(m))
        J = J[len(J) // 2 :]  # zero, and one of each pair
        self.place, self.mirror = (_flat(_upper(s * J), frequencies) for s in (1, -1))
        self.flipped = (J[:, -1] < 0)[:, None]
        self.twice = np.where(J[:, -1:] == 0, math.sqrt(2.0), 1.0)
        H = self._matrix(J, system)
        diagonal = system.total * system.roots**2
        alphas, self.which = np.unique(system.alpha, return_inverse=True)
        self.factors = [_factor(H, float(alpha)) for alpha in alphas]
        flat = np.repeat(diagonal.ravel(), 2)[:, None]
        self.diagonal = flat + system.alpha
        self.count = len(J)

    def _matrix(self, J: NDArray[np.int64], system: _System) -> Matrix:
        """Φ̃*(I − QQᵀ)Φ̃ in real coefficients."""
        core, double = system.core.ravel(), system.frequencies.doubled()

        def sums(q: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
            """Σ w cos and Σ w sin of the phase of q."""
            below = q[..., -1] < 0
            t = core[_flat(np.where(below[..., None], -q, q), double)]
            return t.real, np.where(below, t.imag, -t.imag)

        minus, plus = sums(J[:, None] - J[None]), sums(J[:, None] + J[None])
        cos = minus[0] + plus[0]
        sin = (minus[0] - plus[0])[1:, 1:]
        mixed = (plus[1] - minus[1])[:, 1:]  # 2 cos(j) sin(l)
        cos[0] /= math.sqrt(2.0)
        cos[:, 0] /= math.sqrt(2.0)
        mixed[0] /= math.sqrt(2.0)
        D = system.roots.ravel()[self.place]
        scale = np.concatenate([D, D[1:]])
        H = np.block([[cos, mixed], [mixed.T, sin]]) * scale[:, None] * scale
        G = self._low(system.G)
        return H - G @ G.T

    def _low(self, V: Matrix) -> Matrix:
        """The real coefficients of the low frequencies."""
        pairs = V.reshape(len(V) // 2, 2, V.shape[1])[self.place]
        cos, sin = self.twice * pairs[:, 0], -self.twice * pairs[:, 1]
        cos[0] /= math.sqrt(2.0)
        return np.concatenate([cos, np.where(self.flipped, -sin, sin)[1:]])

    def __call__(self, R: Matrix) -> Matrix:
        """M⁻¹ R, every column with its own alpha."""
        out = R / self.diagonal
        low = self._low(R)
        for i, factor in enumerate(self.factors):
            columns = np.flatnonzero(self.which == i)
            low[:, columns] = sla.cho_solve(factor, low[:, columns], check_finite=False)
        cos, sin = low[: self.count], np.concatenate([np.zeros((1, R.shape[1])), low[self.count :]])
        cos[0] *= math.sqrt(2.0)
        sin = np.where(self.flipped, -sin, sin)
        pairs = out.reshape(len(R) // 2, 2, R.shape[1])
        plane = self.twice[:, 0] > 1.0
        pairs[self.mirror[plane], 0], pairs[self.mirror[plane], 1] = (
            cos[plane] / math.sqrt(2.0),
            sin[plane] / math.sqrt(2.0),
        )
        pairs[self.place, 0], pairs[self.place, 1] = cos / self.twice, -sin / self.twice
        return out


def _factor(H: Matrix, alpha: float) -> Any:
    """The Cholesky factor of H + alpha I; if rounding made H indefinite, with a larger diagonal."""
    more = 0.0
    while True:
        A = H.copy(order="F")
        A.flat[:: len(A) + 1] += alpha + more
        try:
            return sla.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            more = max(10 * more, ROUNDING * float(np.diagonal(H).max()))
            if not np.isfinite(more):
                raise


def _upper(J: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each pair ±j the stored one."""
    return np.where(J[..., -1:] < 0, -J, J)


def _flat(J: NDArray[np.int64], frequencies: Frequencies) -> NDArray[np.int64]:
    """Where stored frequencies are among all that are stored."""
    shifted = [J[..., k] + m for k, m in enumerate(frequencies.largest[:-1])]
    return np.ravel_multi_index((*shifted, J[..., -1]), frequencies.shape)
