"""The primal side: weights on explicit features, ½ Σ wᵢ (yᵢ − θᵀφ(xᵢ) − bᵀp(xᵢ))² + ½ alpha ‖θ‖², for every alpha.

With the weighted features Φ̃ and tail P̃ = QR, the singular values of (I − QQᵀ)Φ̃ = U S Vᵀ give all at once:

    fitted = QQᵀỹ + U S²/(S² + alpha) Uᵀỹ,   θ = V S/(S² + alpha) Uᵀỹ,   leverage hᵢᵢ, leave-one-out rᵢ = eᵢ/(1 − hᵢᵢ).

It is the same function as the dual's with K = ΦΦᵀ, at the cost of the number of features instead of points.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.solvers.base import Matrix


class FeatureSpectrum:
    """The singular values of a feature matrix: `at(alpha)` solves for any alpha ≥ 0.

    Parameters
    ----------
    features : Φ, shape (n, M).
    roots : √w > 0, shape (n,), or None.
    tail : P, shape (n, p), features that are not penalised, or None.

    Attributes
    ----------
    values : S², with what is zero by rounding set to zero.
    rank : how many are not.
    tolerance : what is rounding among them.
    """

    def __init__(self, features: NDArray[np.floating], roots: Matrix | None = None, tail: Matrix | None = None) -> None:
        A = np.asarray(features, dtype=np.float64)
        self.roots = np.ones(len(A)) if roots is None else roots
        self.features = self.roots[:, None] * A if roots is not None else A
        self.Q = np.zeros((len(A), 0))
        self.R_inverse = np.zeros((0, 0))
        A = self.features
        if tail is not None:
            P = self.roots[:, None] * tail
            left, sizes, right = sla.svd(P, full_matrices=False, check_finite=False)
            usable = sizes > len(P) * np.finfo(float).eps * max(sizes.max(initial=0.0), np.finfo(float).tiny)
            self.Q = left[:, usable]
            self.R_inverse = right[usable].T / sizes[usable]
            A = A - self.Q @ (self.Q.T @ A)
        if A.shape[0] > 2 * A.shape[1]:  # the triangular factor has the singular values at a fraction of the cost
            Q, R = sla.qr(A, mode="economic", check_finite=False)
            U, S, self.Vt = sla.svd(R, full_matrices=False, check_finite=False)
            self.U = Q @ U
        else:
            self.U, S, self.Vt = sla.svd(A, full_matrices=False, check_finite=False)
        # Relative to the features before the tail was taken out: what it explains leaves rounding behind.
        largest = max(S.max(initial=0.0), np.linalg.norm(self.features) if tail is not None else 0.0)
        rounding = max(A.shape) * np.finfo(float).eps * largest
        self.S = np.where(rounding < S, S, 0.0)
        self.tolerance = float(rounding**2)
        self.values: Matrix = self.S**2
        self.rank = int((self.S > 0).sum())

    def at(self, alpha: float) -> FeatureFactor:
        """The system for this alpha."""
        return FeatureFactor(self, float(alpha))


class FeatureFactor:
    """The solution for one alpha, of minimum norm where alpha = 0 and the features are dependent."""

    def __init__(self, spectrum: FeatureSpectrum, alpha: float) -> None:
        self.spectrum, self.alpha = spectrum, alpha
        shifted = spectrum.values + alpha
        used = spectrum.S > 0
        self.shrink = np.divide(spectrum.values, shifted, out=np.zeros_like(shifted), where=used)
        self.inverse = np.divide(spectrum.S, shifted, out=np.zeros_like(shifted), where=used)

    def solve(self, y: Matrix) -> tuple[Matrix, Matrix]:
        """(θ, b) of shapes (M, t) and (p, t) for targets of shape (n, t)."""
        s = self.spectrum
        z = s.roots[:, None] * y
        theta = s.Vt.T @ (self.inverse[:, None] * (s.U.T @ z))
        return theta, s.R_inverse @ (s.Q.T @ (z - s.features @ theta))

    def smoother(self, features: Matrix, tail: Matrix | None = None) -> Matrix:
        """The weights lᵢ(z) with f(z) = Σ lᵢ(z) yᵢ, shape (m, n), for the features (m, M) and tail (m, p) of queries."""
        s = self.spectrum
        L = (features @ s.Vt.T * self.inverse) @ s.U.T
        if tail is not None:
            # b = R⁻¹Qᵀ(z − Φ̃θ), and Qᵀ U = 0.
            direct = tail @ s.R_inverse
            through = (direct @ (s.Q.T @ s.features)) @ s.Vt.T * self.inverse
            L = L + direct @ s.Q.T - through @ s.U.T
        return L * s.roots

    def leverage(self) -> Matrix:
        """hᵢᵢ, the share of each target in its own fitted value, shape (n,)."""
        s = self.spectrum
        return (s.Q**2).sum(axis=1) + (s.U**2) @ self.shrink

    @property
    def degrees_of_freedom(self) -> float:
        """Σ hᵢᵢ."""
        return float(self.shrink.sum()) + self.spectrum.Q.shape[1]

    def leave_one_out(self, y: Matrix) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ), shape (n, t)."""
        s = self.spectrum
        z = s.roots[:, None] * y
        fitted = s.Q @ (s.Q.T @ z) + s.U @ (self.shrink[:, None] * (s.U.T @ z))
        room = 1 - self.leverage()
        free = room > 1e-10
        residuals = (z - fitted) / (s.roots * np.where(free, room, 1.0))[:, None]
        if not free.all():
            # Interpolated points (alpha = 0, as many features as rows): the limit alpha → 0, by the dual's cᵢ/(K⁻¹)ᵢᵢ.
            pseudo = np.divide(1.0, s.values, out=np.zeros_like(s.values), where=s.values > 0)
            c = s.U @ (pseudo[:, None] * (s.U.T @ z))
            share = (s.U**2) @ pseudo
            held = ~free & (share > 0)
            residuals[held] = c[held] / (s.roots * share)[held, None]
        return residuals
