"""Leave-one-out over centres for every alpha, for rows that are too many to hold: errors of a sample of them.

With the features Φ̃ of all rows, the tail projected out, the eigenvectors V of Φ̃ᵀ(I − QQᵀ)Φ̃ are found from one pass over
the rows. At a row of the sample with the projected features φᵢ the fit of all rows at any alpha, and its leverage, are

    fᵢ = (QQᵀỹ)ᵢ + φᵢᵀV (λ + alpha)⁻¹ Vᵀb,      hᵢ = ‖Qᵢ‖² + Σⱼ (φᵢᵀvⱼ)²/(λⱼ + alpha),      b = Φ̃ᵀ(I − QQᵀ)ỹ,

and the fit without it misses it by (ỹᵢ − fᵢ)/(1 − hᵢ). So each error is that of the fit to all other rows; only their
mean is taken over a sample.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.gram.lowrank import Nystrom
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.base import Matrix, Solution
from mercer.solvers.nystrom import System

EPS = float(np.finfo(np.float64).eps)


class LeftOutSample:
    """The leave-one-out residuals of some rows, by fits of all rows on centres.

    Parameters
    ----------
    problem
        All rows; its alpha is not used.
    Phi
        Their features on the centres.
    points, index
        The rows of the sample, and their positions among all rows.

    Attributes
    ----------
    values
        Λ, ascending, with those at rounding level set to zero.
    rank
        The number of eigenvalues that are not zero.
    tolerance
        Eigenvalues up to this are rounding.
    y, weights
        Targets of the sample, shape (s, t), and weights or None.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 6.0, 80)[:, None]
    >>> K = mc.gram.of(mc.Gaussian(1.0), X)
    >>> problem = LeastSquares(K, np.sin(X), np.ones(1))
    >>> sample = LeftOutSample(problem, K.low_rank(K.x.take(slice(0, 80, 8))), K.x.take([3, 70]), np.array([3, 70]))
    >>> sample.residuals(1e-2, [0]).shape
    (2, 1)
    """

    def __init__(self, problem: LeastSquares, Phi: Nystrom, points: Points, index: NDArray[np.int64]) -> None:
        self.system = system = System(problem, Phi)
        every = np.arange(problem.n)
        H = Phi.normal_matrix(every, problem.roots, system.Q, system.ridge)
        values, vectors = sla.eigh(H, overwrite_a=True, check_finite=False, driver="evd")
        unit = float(np.finfo(Phi.dtype).eps)
        self.tolerance = max(float(values[-1]), 0.0) * len(values) * unit
        self.values = np.where(values > self.tolerance, values, 0.0)
        self.rank = int((self.values > 0).sum())
        roots = None if problem.roots is None else problem.roots[index]
        features = Phi.features_of(points).astype(np.float64, copy=False)
        if roots is not None:
            features = roots[:, None] * features
        self.leverage, self.offset = np.zeros(len(index)), np.zeros((len(index), problem.y.shape[1]))
        if system.Q is not None:
            Q = system.Q[index]
            features = features - Q @ system.G.T
            self.leverage = np.einsum("ij,ij->i", Q, Q)
            self.offset = Q @ (system.in_tail * system.scale)
        self.vectors = vectors
        self.T = features @ vectors
        self.squares = self.T**2
        self.inside = vectors.T @ (system.target * system.scale)
        self.y, self.weights = problem.y[index], None if roots is None else roots**2
        self.roots = np.ones(len(index)) if roots is None else roots
        self.z = self.roots[:, None] * self.y

    def solution(self, alpha: Matrix) -> Solution:
        """The fit of all rows at one alpha per target, solved directly; `residual` bounds its relative rounding."""
        system, Phi = self.system, self.system.Phi
        D = np.divide(1.0, self.values[:, None] + alpha, where=self.values[:, None] > 0, out=np.zeros_like(self.inside))
        coef, tail = system.finish(self.vectors @ (D * self.inside) / system.scale)
        rounding = min(1.0, self.tolerance / max(float(alpha.min()), self.tolerance))
        stats = {"iterations": 0, "converged": True, "centers": Phi.shape[1], "dtype": str(Phi.dtype)}
        status = f"Nyström approximation with {Phi.shape[1]:,} centres for {system.problem.n:,} points, solved directly"
        return Solution(coef, tail, "nystrom", f"{status} in {Phi.dtype}", rounding, stats, Phi.centers)

    def residuals(self, alpha: float, targets: list[int]) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ) of the sample at one alpha, shape (s, targets)."""
        shifted = self.values + alpha
        D = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=self.values > 0)
        fitted = self.offset[:, targets] + self.T @ (D[:, None] * self.inside[:, targets])
        left = np.maximum(1.0 - self.leverage - self.squares @ D, EPS)
        return np.asarray((self.z[:, targets] - fitted) / (left * self.roots)[:, None])

    def errors(self, logs: Matrix, targets: list[int]) -> Matrix:
        """The mean of their squares at each log alpha, shape (a, targets)."""
        w = np.full(len(self.y), 1.0 / len(self.y)) if self.weights is None else self.weights / self.weights.sum()
        return np.array([w @ self.residuals(float(alpha), targets) ** 2 for alpha in np.exp(logs)])
