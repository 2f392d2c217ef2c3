"""One eigendecomposition, every alpha: K̃ = U diag(λ) Uᵀ.

With Z = Uᵀ(s∘y), Q = UᵀP̃ and D = 1/(λ + alpha), everything that depends on alpha is a sum over eigenvalues:

    u = U D (Z − Q b),   b = (QᵀDQ)⁻¹ QᵀDZ,   (M⁻¹) = diag(s) U [D − DQ (QᵀDQ)⁻¹ QᵀD] Uᵀ diag(s).

At alpha = 0 the limit is used: among all functions with the least squared error, the one with the smallest norm.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.gram import lapack
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.base import TOLERANCE, Solution, left_over, not_psd, recomputed, refined, relative, verdict
from mercer.solvers.factor import Border, Factor, Matrix, require_left, spread
from mercer.solvers.saddle import Projected


class Eigendecomposition:
    """The spectrum of a problem: `at(alpha)` is its factorised system, for any alpha ≥ 0, in O(n²).

    Attributes
    ----------
    values
        λ, ascending; values that are negative by rounding are set to zero.
    tolerance
        The largest value that rounding alone can make of a zero.
    vectors
        U, in the dtype of the decomposition.
    rank
        Eigenvalues above rounding.
    functions
        P, the tail's functions at the points, or None; `tail` is P̃ in the eigenbasis.
    """

    def __init__(self, problem: LeastSquares, dtype: Any = np.float64) -> None:
        K = problem.matrix(dtype)
        values, vectors = lapack.eigh(np.require(K.T, requirements=["F", "W"]))
        self.vectors: NDArray[Any] = vectors
        precision = np.float32 if np.float32 in (problem.gram.dtype, vectors.dtype) else np.float64
        largest = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
        if isinstance(problem, Projected):  # the projected-out part leaves its rounding behind
            largest = max(largest, problem.size)
        self.tolerance = len(values) * float(np.finfo(precision).eps) * largest
        if values[0] < -100 * self.tolerance:
            raise not_psd(float(values[0]), len(values))
        self.values: Matrix = np.maximum(values, 0.0).astype(np.float64)
        self.rank = int((self.values > self.tolerance).sum())
        if not self.rank:  # K is zero to rounding, and the size of that rounding is the scale for alpha
            self.values = np.maximum(self.values, self.tolerance)
        self.roots = np.ones(problem.n) if problem.roots is None else problem.roots
        self.targets = self.coordinates(problem.weighted_targets)
        self.functions, tail = problem.tail, problem.weighted_tail
        self.tail = None if tail is None else self.coordinates(tail)

    def coordinates(self, A: Matrix) -> Matrix:
        """Uᵀ A."""
        return np.asarray(self.vectors.T @ A.astype(self.vectors.dtype), dtype=np.float64)

    @cached_property
    def squares(self) -> NDArray[Any]:
        """U∘U."""
        return self.vectors * self.vectors

    def at(self, alpha: float) -> SpectralFactor:
        """The system for this alpha."""
        return SpectralFactor(self, float(alpha))


class SpectralFactor(Factor):
    """The system of a spectrum at one alpha: D = 1/(λ + alpha), 0 on the null space if alpha = 0; b = B Z."""

    def __init__(self, spectrum: Eigendecomposition, alpha: float) -> None:
        self.spectrum, self.alpha, self.roots, self.tail = spectrum, alpha, spectrum.roots, spectrum.functions
        shifted = spectrum.values + alpha
        # Only alpha = 0 requires a decision which eigenvalues are zero; an alpha > 0 outweighs rounding.
        self.null = spectrum.values <= spectrum.tolerance if alpha == 0 else shifted == 0
        self.D = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=~self.null)
        self.B = self._tail_map()

    def _tail_map(self) -> Matrix:
        """The tail's coefficients as a linear map of the targets: (QᵀDQ)⁻¹QᵀD.

        If alpha = 0, the tail first fits the part that no function reaches (the null space), then the rest.
        """
        Q = self.spectrum.tail
        if Q is None:
            return np.zeros((0, len(self.D)))
        p = Q.shape[1]
        B = np.zeros((p, len(self.D)))
        rest = np.eye(p)
        if self.null.any():
            _, sizes, Vt = np.linalg.svd(Q[self.null])
            reach = int((sizes > 1e-8 * np.linalg.norm(Q)).sum())
            first, rest = Vt[:reach].T, Vt[reach:].T
            B[:, self.null] = first @ np.linalg.pinv(Q[self.null] @ first)
        if rest.shape[1]:
            roots = np.sqrt(self.D)[:, None]
            border = Border.of(roots * (Q @ rest), lambda X: roots * X)
            step = rest @ (border.T @ border.W.T)
            B += step - (step @ Q) @ B
        return B

    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix | None]:
        return self.from_coordinates(self.spectrum.coordinates(Z))

    def from_coordinates(self, Z: Matrix) -> tuple[Matrix, Matrix | None]:
        """(u, b) for weighted targets that are given in the eigenbasis."""
        s, b = self.spectrum, None
        if s.tail is not None:
            b = self.B @ Z
            Z = Z - s.tail @ b
        return s.vectors @ (self.D[:, None] * Z), b

    def _smoother(self, Z: Matrix, Pz: Matrix | None) -> Matrix:
        s = self.spectrum
        weights = Z @ s.vectors * self.D
        if s.tail is not None and Pz is not None:
            weights = weights + (Pz - weights @ s.tail) @ self.B
        return np.asarray(weights @ s.vectors.T)

    def _diagonal(self) -> Matrix:
        s = self.spectrum
        H = s.squares @ self.D
        if s.tail is not None:
            H = H - np.einsum("ip,ip->i", s.vectors @ (self.D[:, None] * s.tail), s.vectors @ self.B.T)
        return np.asarray(H)

    def _inverse(self) -> Matrix:
        s = self.spectrum
        U = s.vectors
        inverse = (U * self.D) @ U.T
        if s.tail is not None:
            inverse -= (U @ (self.D[:, None] * s.tail)) @ (U @ self.B.T).T
        return np.asarray(inverse)

    @property
    def condition(self) -> float:
        return spread(self.spectrum.values + self.alpha)

    def _log_determinant(self) -> float:
        if self.null.any():
            return -np.inf
        value = -float(np.log(self.D).sum())
        if self.spectrum.tail is None:
            return value
        roots = np.sqrt(self.D)[:, None]
        return value + Border.of(roots * self.spectrum.tail, lambda X: X).log_determinant

    def leave_one_out(self, y: Matrix) -> Matrix:
        if not self.null.any():
            return super().leave_one_out(y)
        require_left(self.tail)
        # The limit alpha → 0. If the null space contains a share of a point, that share and the residual decide;
        # otherwise the inverse stays finite.
        s = self.spectrum
        U = s.vectors[:, self.null]
        if s.tail is not None:
            # As in the tail's map: relative to the whole tail, because its part in the null space may be rounding.
            basis, sizes, _ = np.linalg.svd(s.tail[self.null], full_matrices=False)
            basis = basis[:, sizes > 1e-8 * np.linalg.norm(s.tail)]
            U = U - (U @ basis) @ basis.T
        share = (U * U).sum(axis=1)
        moved = share > 1e-10
        residuals = U @ (U.T @ (s.roots[:, None] * y)) / (s.roots * np.where(moved, share, 1.0))[:, None]
        if not moved.all():
            residuals[~moved] = super().leave_one_out(y)[~moved]
        return residuals

    def leave_fold_out(self, y: Matrix, fold: NDArray[np.int64]) -> Matrix:
        if self.null.any():
            raise InvalidInput(
                "`alpha` must be > 0 to leave whole folds out of a singular Gram matrix",
                got=f"alpha = 0 and rank {self.spectrum.rank} of {len(self.D)}",
                advice="Raise `alpha`.",
            )
        return super().leave_fold_out(y, fold)

    @property
    def degrees_of_freedom(self) -> float:
        """The trace of the smoother on the training points."""
        s = self.spectrum
        if s.tail is None:
            return float(s.values @ self.D)
        QB = np.einsum("jp,pj->j", s.tail, self.B)
        return float((s.values * self.D) @ (1 - QB) + QB.sum())


def solve(problem: LeastSquares, spectrum: Eigendecomposition | None = None) -> Solution:
    """The exact solution, of minimum norm if alpha = 0 and K is singular; its residual is computed anew."""
    spectrum = spectrum or Eigendecomposition(problem)
    factors = {float(alpha): spectrum.at(alpha) for alpha in np.unique(problem.alpha)}

    def by_columns(y: Matrix) -> tuple[Matrix, Matrix | None]:
        s = spectrum.roots[:, None]
        Z = spectrum.coordinates(s * y)
        columns = [factors[float(alpha)].from_coordinates(Z[:, [t]]) for t, alpha in enumerate(problem.alpha)]
        tail = None if problem.tail is None else np.hstack([b for _, b in columns if b is not None])
        return s * np.hstack([u for u, _ in columns]), tail

    # At alpha = 0 the residual need not vanish, so it cannot be used for refinement.
    tol = TOLERANCE[problem.gram.dtype.itemsize] if problem.alpha.all() else np.inf
    coef, tail, R = refined(by_columns, lambda c, b: left_over(problem, c, b), problem.y, problem.roots, tol)
    residual = _residual(problem, R, float(spectrum.values[-1]))
    how = f"by eigendecomposition; rank {spectrum.rank} of {problem.n}"
    status, _ = verdict(how, residual, float(problem.alpha.min()))
    return Solution(coef, tail, "eigen", status, residual, {"rank": spectrum.rank}, factors=dict(factors))


def _residual(problem: LeastSquares, R: Matrix, largest: float) -> float:
    """The relative residual as `Solution` defines it; with alpha = 0 it is that of the normal equations."""
    Y, P, free = problem.weighted_targets, problem.weighted_tail, problem.alpha == 0
    residual = relative(R[:, ~free], Y[:, ~free])
    if free.any():
        R, Y = R[:, free], Y[:, free]
        along = recomputed(problem).multiply(R) / max(largest, np.finfo(np.float64).tiny)
        residual = max(residual, relative(along, Y))
        if P is not None:
            residual = max(residual, relative(np.linalg.qr(P)[0].T @ R, Y))
    return residual
