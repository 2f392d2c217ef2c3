"""The bordered system of a conditionally positive definite function: its null space first, then Cholesky.

    (A  P) (u)   (z)
    (Pᵀ 0) (b) = (0),      A = K̃ + alpha I.

A is positive definite only for Pᵀu = 0. With P = Q (R; 0), Q = (Q₁ Q₂), these are the vectors u = Q₂v, and

    Q₂ᵀAQ₂ v = Q₂ᵀz,      R b = Q₁ᵀ(z − A u),

where Q₂ᵀAQ₂ has a Cholesky factor. Q is kept as p reflections, so that everything happens in the memory of A.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mercer.gram import Gram
from mercer.gram.lapack import cholesky
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.tail import Singular
from mercer.solvers.cholesky import condition
from mercer.solvers.factor import Factor, Matrix

# Beyond this condition number no digit of the solution is right: equal rows are searched for.
HOPELESS = 1e14
REQUIRED = "The points must determine the function"


class SaddleFactor(Factor):
    """The system at one alpha by reflections onto the tail's null space and a Cholesky factor there.

    Its `condition` is that of Q₂ᵀAQ₂ in the 1-norm, estimated.

    Parameters
    ----------
    K : array
        K̃, symmetric, float64. It is overwritten.
    alpha : float
        Added to the diagonal.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    definite : bool
        Whether Q₂ᵀAQ₂ is positive definite. If it need not be (the tail's degree is too low), LU replaces Cholesky.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> factor = SaddleFactor(-np.abs(X - X.T), 0.0, tail=np.ones((3, 1)))     # −r with a constant: broken lines
    >>> c, b = factor.solve(np.array([[0.0], [1.0], [0.0]]))
    >>> c.ravel().round(12), bool(abs(b[0, 0]) < 1e-12)
    (array([-0.5,  1. , -0.5]), True)
    """

    def __init__(
        self,
        K: Matrix,
        alpha: float,
        roots: Matrix | None = None,
        tail: Matrix | None = None,
        *,
        definite: bool = True,
    ) -> None:
        self.alpha, self.roots, self.tail, self.definite, n = alpha, roots, tail, definite, len(K)
        K.flat[:: n + 1] += alpha
        self.p = 0 if tail is None else tail.shape[1]
        A = K.T  # symmetric, so that this is K in LAPACK's order
        if tail is not None and self.p:
            P = tail if roots is None else roots[:, None] * tail
            if self.p > n:
                raise _dependent(f"{n} points do not determine {self.p} unpenalised functions")
            (self._reflectors, self._tau), R = sla.qr(P, mode="raw", check_finite=False)
            self.R = R[: self.p]
            sizes = np.abs(np.diagonal(self.R))
            if sizes.min() <= n * np.finfo(float).eps * sizes.max():
                raise _dependent(f"the {self.p} unpenalised functions depend on each other at these points")
            A = self._reflect_both(A)
        self.across: Matrix = A[: self.p, self.p :].copy()  # Q₁ᵀAQ₂
        core = _lower_right(A, self.p)
        self._condition = 1.0
        if core.size:
            self._factorise(core)

    def _factorise(self, core: Matrix) -> None:
        size = float(lapack.dlange("1", core))
        if self.definite:
            self.L = np.require(core, requirements=["F", "W"])
            info = cholesky(self.L, lower=True)
            if info:
                raise np.linalg.LinAlgError(f"pivot {info} of {len(core)} is not positive")
            self._condition = condition(self.L, size)
        else:
            self.L, self._pivots, info = lapack.dgetrf(core, overwrite_a=1)
            if info:
                raise np.linalg.LinAlgError(f"pivot {info} of {len(core)} is zero")
            reciprocal, _ = lapack.dgecon(self.L, size)
            self._condition = 1.0 / reciprocal if reciprocal > 0 else np.inf

    @classmethod
    def of(cls, problem: LeastSquares, alpha: float) -> SaddleFactor:
        """The factor of a problem; raises an error with the reason if there is none."""
        try:
            factor = cls(problem.matrix(np.float64), alpha, problem.roots, problem.tail)
        except np.linalg.LinAlgError as error:
            raise diagnose(problem.gram, alpha, error) from None
        if factor.condition > HOPELESS and repeated(problem.gram) is not None:
            raise diagnose(problem.gram, alpha)
        return factor

    # -- reflections ------------------------------------------------------------------------------------------------

    def _reflect(self, B: Matrix, side: str, trans: str) -> Matrix:
        """QB or BQ, Q transposed with trans = "T"; B is overwritten if it is in LAPACK's order."""
        if not self.p:
            return B
        B = np.asfortranarray(B)
        work = lapack.dormqr(side, trans, self._reflectors, self._tau, B, -1)[1]
        turned, _, info = lapack.dormqr(side, trans, self._reflectors, self._tau, B, int(work[0]), overwrite_c=1)
        if info:
            raise np.linalg.LinAlgError(f"argument {-info} of dormqr")
        return np.asarray(turned)

    def _reflect_both(self, A: Matrix) -> Matrix:
        """QᵀAQ in place, by one product: with Q = I − VTVᵀ it is A − GVᵀ − VGᵀ, G = AVT − ½V(TᵀVᵀAVT)."""
        V = np.tril(self._reflectors[:, : self.p], -1)
        np.fill_diagonal(V, 1.0)
        T = np.diag(self._tau)
        for j in range(1, self.p):
            T[:j, j] = -self._tau[j] * (T[:j, :j] @ (V[:, :j].T @ V[:, j]))
        B = A @ (V @ T)
        G = B - 0.5 * V @ (T.T @ (V.T @ B))
        return np.asarray(blas.dgemm(-1.0, np.hstack([G, V]), np.hstack([V, G]), 1.0, A, trans_b=1, overwrite_c=1))

    def _core(self, B: Matrix) -> Matrix:
        """(Q₂ᵀAQ₂)⁻¹ B."""
        if not B.size:
            return B
        if self.definite:
            return np.asarray(sla.cho_solve((self.L, True), B, check_finite=False))
        return np.asarray(sla.lu_solve((self.L, self._pivots), B, check_finite=False))

    # -- the weighted system --------------------------------------------------------------------------------------

    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix | None]:
        z = self._reflect(np.array(Z, dtype=np.float64, order="F"), "L", "T")
        v = self._core(z[self.p :])
        b = None
        if self.p:
            b = sla.solve_triangular(self.R, z[: self.p] - self.across @ v, check_finite=False)
        return self._reflect(np.concatenate([np.zeros((self.p, v.shape[1])), v]), "L", "N"), b

    def _smoother(self, Z: Matrix, Pz: Matrix | None) -> Matrix:
        k = self._reflect(np.array(Z.T, dtype=np.float64, order="F"), "L", "T")
        q = np.zeros((self.p, k.shape[1]))
        if self.p and Pz is not None:
            q = sla.solve_triangular(self.R, Pz.T, trans="T", check_finite=False)
        v = self._core(k[self.p :] - self.across.T @ q)
        return self._reflect(np.concatenate([q, v]), "L", "N").T

    def _inverse(self) -> Matrix:
        # Q₂ (Q₂ᵀAQ₂)⁻¹ Q₂ᵀ
        if self.definite:
            W = self._half()
            return W.T @ W
        return self._null_space().T @ self._core(self._null_space())

    def _diagonal(self) -> Matrix:
        if not self.definite:
            return np.diagonal(self._inverse()).copy()
        W = self._half()
        return np.asarray(np.einsum("ij,ij->j", W, W))

    @property
    def condition(self) -> float:
        return self._condition

    def _log_determinant(self) -> float:
        pivots = np.abs(np.diagonal(self.L)) if self.across.shape[1] else np.ones(0)
        value = (2.0 if self.definite else 1.0) * float(np.log(pivots).sum())
        return value + 2.0 * float(np.log(np.abs(np.diagonal(self.R))).sum()) if self.p else value

    def _null_space(self) -> Matrix:
        """Q₂ᵀ, shape (n − p, n)."""
        return self._reflect(np.eye(self.p + self.across.shape[1], order="F"), "L", "T")[self.p :]

    def _half(self) -> Matrix:
        """L⁻¹Q₂ᵀ."""
        B = self._null_space()
        return np.asarray(sla.solve_triangular(self.L, B, lower=True, check_finite=False)) if B.size else B


def _lower_right(A: Matrix, p: int) -> Matrix:
    """A[p:, p:] of a matrix in LAPACK's order, moved to the front of its own memory."""
    n = len(A)
    if not p:
        return A
    memory = A.T.reshape(-1)
    m = n - p
    for j in range(m):  # towards the front, column by column: nothing is overwritten before it is read
        memory[j * m : (j + 1) * m] = memory[(j + p) * n + p : (j + p + 1) * n]
    return memory[: m * m].reshape(m, m).T


def repeated(gram: Gram) -> tuple[int, int] | None:
    """Two rows of data that K cannot distinguish, or None."""
    K = gram.fresh(np.float64)
    mixed = K @ np.random.default_rng(0).normal(size=len(K))
    order = np.argsort(mixed, kind="stable")
    near = np.flatnonzero(np.diff(mixed[order]) <= 1e-9 * np.abs(mixed).max())
    for a, b in zip(order[near], order[near + 1]):
        if np.array_equal(K[a], K[b]):
            i, j = sorted((int(a), int(b)))
            known = gram.x.index
            return (i, j) if known is None else (int(known[i]), int(known[j]))
    return None


def _dependent(reason: str) -> Singular:
    return Singular(REQUIRED, got=reason, advice="Use a tail of lower degree, or more points.")


def diagnose(gram: Gram, alpha: float, error: np.linalg.LinAlgError | None = None) -> Singular:
    """Why the system has no unique solution, in words; `error` is the error of the factorisation."""
    if isinstance(error, Singular):  # which knows the reason itself
        return error
    pair = repeated(gram)
    if pair is not None and alpha == 0:
        return Singular(
            f"{REQUIRED}: at alpha = 0 no two of them may coincide",
            got=f"rows {pair[0]} and {pair[1]}, which are the same",
            advice="Drop one of them, or raise alpha: then targets of the same point are averaged.",
        )
    return Singular(
        f"{REQUIRED}: its system must be positive definite to rounding",
        got=f"alpha = {alpha:.3g}; {error or 'a singular matrix'}",
        advice="Raise alpha, rescale the columns to similar ranges, or use a radial function of lower order.",
    )


@dataclass(frozen=True, eq=False)
class Projected(LeastSquares):
    """The problem whose matrix is (I − QQᵀ)K̃(I − QQᵀ), Q an orthonormal basis of the tail: positive semidefinite.

    Its coefficients and leave-one-out residuals are the same as those of the problem, because Pᵀu = 0 there. An
    eigendecomposition of it serves all alphas.
    """

    @cached_property
    def size(self) -> float:
        """‖K̃‖ before the projection, in the Frobenius norm: the scale of its rounding."""
        return float(np.linalg.norm(super().matrix(np.float64)))

    def matrix(self, dtype: Any = None) -> NDArray[Any]:
        K = super().matrix(dtype)
        P = self.weighted_tail
        if P is None:
            return K
        Q = np.linalg.qr(P)[0].astype(K.dtype)
        QK = Q.T @ K
        # K − Q(QᵀK) − (KQ)Qᵀ + Q(QᵀKQ)Qᵀ, the last term split in two halves so that the result stays symmetric
        half = QK.T - 0.5 * Q @ (QK @ Q)
        K -= Q @ half.T
        K -= half @ Q.T
        return (K + K.T) / 2
