"""What a solver gives back: the coefficients and how well they solve the problem; or the factorised system itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.points import Points

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solution:
    """The coefficients of f = Σ cᵢ k(xᵢ, ·) + Σ bⱼ pⱼ.

    Attributes
    ----------
    coef : c, shape (n, t), or (m, t) on m centres.
    tail : b, shape (p, t), or None where the problem has no tail.
    solver : the one that was used: "cholesky", "eigen", "cg", "nystrom".
    status : in words what was done, and why this solver.
    residual : the relative residual of the linear system, measured in float64.
    stats : iterations, rank, and whatever else the solver knows.
    points : the centres that the coefficients belong to, or None where they are the problem's own n points.
    """

    coef: Matrix
    tail: Matrix | None
    solver: str
    status: str
    residual: float
    stats: dict[str, Any] = field(default_factory=dict)
    points: Points | None = None


def not_psd(value: float, n: int) -> InvalidInput:
    """The error for a Gram matrix with a negative eigenvalue."""
    return InvalidInput(
        "The Gram matrix must be positive semidefinite",
        got=f"the eigenvalue {value:.4g} < 0 on these {n} points",
        advice="mc.check(kernel, X) shows where, kernel.proof() names the unproven part, mc.repair(K) mends a matrix.",
    )


class Factor(ABC):
    """The bordered system M = [[K + alpha W⁻¹, P], [Pᵀ, 0]], factorised for one alpha: all exact answers at O(n²).

    The fit is linear in the targets: f(z) = Σᵢ lᵢ(z) yᵢ, where l(z) are the first n entries of M⁻¹ [k(z); p(z)].
    Leaving row i out changes it to f(z) − lᵢ(z) rᵢ, with the leave-one-out residual rᵢ = cᵢ / (M⁻¹)ᵢᵢ.
    """

    alpha: float
    roots: Matrix | None

    @property
    def degrees_of_freedom(self) -> float:
        """The trace of the smoother on the training points: fitted = y − alpha W⁻¹ M⁻¹ y."""
        H = self.diagonal()
        return float(len(H) - self.alpha * (H if self.roots is None else H / self.roots**2).sum())

    @abstractmethod
    def solve(self, y: Matrix) -> tuple[Matrix, Matrix | None]:
        """(c, b) for targets y of shape (n, t)."""

    @abstractmethod
    def smoother(self, Kz: NDArray[Any], Pz: Matrix | None = None) -> Matrix:
        """l(z) for m queries, shape (m, n), from Kz = k(Z, X) of shape (m, n) and the tail's functions (m, p) there."""

    @abstractmethod
    def diagonal(self) -> Matrix:
        """(M⁻¹)ᵢᵢ for the n points, shape (n,)."""

    @abstractmethod
    def inverse(self) -> Matrix:
        """The first n rows and columns of M⁻¹, shape (n, n)."""

    def leave_one_out(self, y: Matrix) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ): what each point says about the model fitted without it, shape (n, t)."""
        c, _ = self.solve(y)
        return np.asarray(c / self.diagonal()[:, None])

    def leave_fold_out(self, y: Matrix, fold: NDArray[np.int64]) -> Matrix:
        """The residuals yᵢ − f₋B(xᵢ) where the whole fold B of point i was left out: (M⁻¹)_BB⁻¹ c_B.

        `fold` says for each point to which fold it belongs; −1 belongs to none, and its row is NaN.
        """
        c, _ = self.solve(y)
        G = self.inverse()
        residuals = np.full_like(c, np.nan)
        for label in np.unique(fold[fold >= 0]):
            B = np.flatnonzero(fold == label)
            residuals[B] = np.linalg.solve(G[np.ix_(B, B)], c[B])
        return residuals
