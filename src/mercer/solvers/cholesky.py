"""The exact solution by a Cholesky factor: K̃ + alpha I = L Lᵀ."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.errors import InvalidInput
from mercer.gram import lapack
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.base import TOLERANCE, UNSOLVED, Factor, Matrix, Solution, not_psd, refined, relative, verdict

# Up to this many columns, one after the other at the speed of memory beats a packed matrix product.
FEW_COLUMNS = 8
# A negative eigenvalue counts as rounding down to this many times n ε of the matrix's size.
ROUNDINGS = 100
# Up to this size the diagnosis computes every eigenvalue; above, Lanczos finds the extreme ones.
ALL_EIGENVALUES = 1500


class CholeskyFactor(Factor):
    """The system at one alpha by L, the lower Cholesky factor of K̃ + alpha I.

    Parameters
    ----------
    K : K̃, symmetric and C-ordered. It is overwritten by the factor.
    alpha : > 0 unless K̃ is positive definite by itself.
    roots, tail : √w and P as in `LeastSquares`, or None.
    shift : ≥ 0, added to the diagonal that is factorised only: `multiply` and `residual` are those of alpha.

    Attributes
    ----------
    L : the factor on and below the diagonal. Above the diagonal the entries of K̃ stay, so that `multiply` needs no
        second matrix.
    """

    def __init__(
        self,
        K: NDArray[Any],
        alpha: float,
        roots: Matrix | None = None,
        tail: Matrix | None = None,
        shift: float = 0.0,
    ) -> None:
        self.alpha, self.roots, self.tail = alpha, roots, tail
        self.shifted = np.diagonal(K).astype(np.float64) + alpha
        K.flat[:: len(K) + 1] = self.shifted + shift
        # A symmetric C-ordered matrix is its own Fortran-ordered transpose: LAPACK works in place.
        self.L = np.require(K.T, requirements=["F", "W"])
        info = lapack.cholesky(self.L, lower=True)
        if info:
            raise np.linalg.LinAlgError(f"pivot {info} of {len(K)} is not positive")
        self.V: Matrix | None = None
        if tail is not None:
            self.P = tail if roots is None else roots[:, None] * tail
            require_independent(self.P)
            self.V = self.solve_system(self.P)
            self.inner = sla.cho_factor(self.P.T @ self.V)

    @classmethod
    def of(cls, problem: LeastSquares, alpha: float, dtype: Any = None) -> CholeskyFactor:
        """The factor of a problem; an error that names the eigenvalue where its Gram matrix is not one.

        Beside an alpha > 0 that is below the rounding of K̃, whether a pivot comes out positive is an accident of the
        order of operations. Then K̃ is factorised with what rounding can amount to on its diagonal, and the residual,
        which is always that of alpha, says how well this solves the system.
        """
        shift = 0.0
        while True:
            K = problem.matrix(dtype)
            rounding = float(np.finfo(K.dtype).eps) * float(np.trace(K, dtype=np.float64))
            try:
                return cls(K, alpha, problem.roots, problem.tail, shift)
            except np.linalg.LinAlgError:
                shift = max(10.0 * shift, rounding)
                if alpha == 0 or not shift <= ROUNDINGS * rounding:
                    raise diagnose(problem, alpha) from None

    def solve_system(self, B: Matrix) -> Matrix:
        """(K̃ + alpha I)⁻¹ B."""
        return triangular(self.L, triangular(self.L, B), transposed=True).astype(np.float64, copy=False)

    def half(self, B: Matrix) -> Matrix:
        """L⁻¹ B."""
        return triangular(self.L, B).astype(np.float64, copy=False)

    def multiply(self, U: Matrix) -> Matrix:
        """(K̃ + alpha I) U, accumulated in float64."""
        return upper_product(self.L, self.shifted, U)

    def log_determinant(self) -> float:
        """log det(K̃ + alpha I)."""
        return 2.0 * float(np.log(np.diagonal(self.L), dtype=np.float64).sum())

    def solve(self, y: Matrix) -> tuple[Matrix, Matrix | None]:
        u = self.solve_system(y if self.roots is None else self.roots[:, None] * y)
        b = None
        if self.V is not None:
            b = sla.cho_solve(self.inner, self.P.T @ u)
            u = u - self.V @ b
        return (u if self.roots is None else self.roots[:, None] * u), b

    def residual(self, y: Matrix, c: Matrix, b: Matrix | None = None) -> Matrix:
        """s∘y − (K̃ + alpha I)u − P̃b for a solution (c, b), in float64, shape (n, t)."""
        s = np.ones(1) if self.roots is None else self.roots[:, None]
        R = s * y - self.multiply(c / s)
        return R if b is None else R - self.P @ b

    def refined(self, y: Matrix, tol: float) -> tuple[Matrix, Matrix | None, Matrix]:
        """(c, b) and its residual vectors, refined where the first solution's are above `tol`."""
        return refined(self.solve, lambda c, b: self.residual(y, c, b), y, self.roots, tol)

    def smoother(self, Kz: NDArray[Any], Pz: Matrix | None = None) -> Matrix:
        Kz = Kz if self.roots is None else Kz * self.roots
        L = self.solve_system(Kz.T).T
        if self.V is not None and Pz is not None:
            L = L + sla.cho_solve(self.inner, (Pz - L @ self.P).T).T @ self.V.T
        return L if self.roots is None else L * self.roots

    def inverse(self) -> Matrix:
        lower = self.L.copy(order="F")
        lapack.inverse_from_cholesky(lower, lower=True)
        H = np.asarray(lower.T, dtype=np.float64)  # C-ordered, its upper triangle filled
        step = 512
        for i in range(0, len(H), step):
            square = H[i : i + step, i : i + step]
            square[...] = np.triu(square) + np.triu(square, 1).T
            H[i + step :, i : i + step] = H[i : i + step, i + step :].T
        if self.V is not None:
            H -= self.V @ sla.cho_solve(self.inner, self.V.T)
        if self.roots is not None:
            H *= self.roots[:, None]
            H *= self.roots
        return H

    def diagonal(self) -> Matrix:
        inverse = self.L.copy(order="F")
        lapack.inverse_of_triangle(inverse, lower=True)
        H = np.empty(len(inverse))
        for j in range(0, len(H), 256):
            strip = inverse[j:, j : j + 256]
            strip[:256] = np.tril(strip[:256])
            H[j : j + 256] = np.einsum("ij,ij->j", strip, strip, dtype=np.float64)
        if self.V is not None:
            H -= np.einsum("ip,pi->i", self.V, sla.cho_solve(self.inner, self.V.T))
        return H if self.roots is None else self.roots**2 * H


def triangular(L: NDArray[Any], B: NDArray[Any], *, transposed: bool = False) -> NDArray[Any]:
    """L⁻¹B or L⁻ᵀB in the precision of L, for a Fortran-ordered lower L; what is above its diagonal is not read."""
    B = np.asarray(B, dtype=L.dtype)
    trsv, trsm = blas.get_blas_funcs(("trsv", "trsm"), (L,))
    if B.ndim == 1:
        return np.asarray(trsv(L, B, lower=1, trans=int(transposed)))
    if B.shape[1] > FEW_COLUMNS:
        return np.asarray(trsm(1.0, L, B, lower=1, trans_a=int(transposed)))
    X = np.empty(B.shape, L.dtype, order="F")
    for j in range(B.shape[1]):
        X[:, j] = trsv(L, B[:, j], lower=1, trans=int(transposed))
    return X


def upper_product(A: NDArray[Any], diagonal: NDArray[Any], U: Matrix) -> Matrix:
    """A symmetric matrix times U in float64: what the Fortran-ordered A holds above its diagonal, and `diagonal`."""
    n, t = U.shape
    if A.dtype == np.float64:
        product = np.empty((n, t), order="F")
        if t > FEW_COLUMNS:
            product[...] = blas.dsymm(1.0, A, U, lower=0)
        else:
            for j in range(t):
                product[:, j] = blas.dsymv(1.0, A, U[:, j], lower=0)
        return product + (diagonal - np.diagonal(A))[:, None] * U
    product = diagonal[:, None] * U
    for i in range(0, n, 256):  # rows of Aᵀ, below its diagonal
        j = min(i + 256, n)
        strip = A.T[i:j, :j].astype(np.float64)
        strip[:, i:] = np.tril(strip[:, i:], -1)
        product[i:j] += strip @ U[:j]
        product[:j] += strip.T @ U[i:j]
    return product


def require_independent(P: Matrix) -> None:
    """Raise where the tail's functions are dependent on the points: their coefficients would not be unique."""
    sizes = np.linalg.norm(P, axis=0)
    rank = np.linalg.matrix_rank(P / np.where(sizes > 0, sizes, 1.0))
    if rank < P.shape[1]:
        raise InvalidInput(
            "The functions of the tail must be linearly independent on the points",
            got=f"rank {rank} of {P.shape[1]}",
            advice="Leave the dependent ones out, or use `solver='eigen'` for the minimum-norm solution.",
        )


def diagnose(problem: LeastSquares, alpha: float) -> InvalidInput:
    """Why K̃ + alpha I has no Cholesky factor: a negative eigenvalue of K, or a singular matrix."""
    n, eps = problem.n, float(np.finfo(problem.gram.dtype).eps)
    if n <= ALL_EIGENVALUES:
        values, _ = lapack.eigh(problem.gram.fresh(np.float64).T)
        lowest, largest = float(values[0]), float(np.abs(values).max())
        rank = f"rank {int((values > n * eps * largest).sum())} of {n}"
    else:
        lowest, largest = _extremes(problem)
        rank = f"its smallest eigenvalue is {lowest:.2g}, its largest {largest:.2g}"
    if lowest < -ROUNDINGS * n * eps * largest:
        return not_psd(lowest, n)
    return InvalidInput(
        "`alpha` must be larger for `solver='cholesky'`",
        got=f"{alpha:.3g}: the Gram matrix is singular to rounding ({rank})",
        advice="Raise `alpha`, or use `solver='eigen'` for the minimum-norm solution.",
    )


def _extremes(problem: LeastSquares) -> tuple[float, float]:
    """The smallest eigenvalue of K and its largest in size, by Lanczos from products with K only."""
    n = problem.n
    start = np.random.default_rng(0).normal(size=n)

    def extreme(multiply: Any) -> float:
        operator = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        try:
            return float(eigsh(operator, k=1, which="LM", v0=start, tol=1e-4, return_eigenvectors=False)[0])
        except ArpackNoConvergence as error:
            return float(error.eigenvalues[0]) if len(error.eigenvalues) else 0.0

    def product(v: Matrix) -> Matrix:
        return np.asarray(problem.gram @ v.reshape(n), dtype=np.float64)

    largest = extreme(product)
    # Shifted by the largest, the other end of the spectrum is the one of largest size.
    other = largest + extreme(lambda v: product(v) - largest * v.reshape(n))
    return min(largest, other), max(abs(largest), abs(other))


def solve(problem: LeastSquares) -> Solution:
    """The exact solution, one factorisation per different alpha; its residual is measured by one product."""
    coef = np.empty_like(problem.y)
    tail = None if problem.tail is None else np.empty((problem.tail.shape[1], problem.y.shape[1]))
    R = np.empty_like(problem.y)
    Y, tol = problem.weighted_targets, TOLERANCE[problem.gram.dtype.itemsize]
    for alpha in np.unique(problem.alpha):
        columns = np.flatnonzero(problem.alpha == alpha)
        y = problem.y[:, columns]
        for dtype in dict.fromkeys([problem.gram.dtype, np.dtype(np.float64)]):
            coef[:, columns], b, R[:, columns] = CholeskyFactor.of(problem, float(alpha), dtype).refined(y, tol)
            if relative(R[:, columns], Y[:, columns]) <= UNSOLVED:
                break  # a float32 factor may be too rough even to refine by
        else:
            if alpha == 0:
                raise diagnose(problem, 0.0)
        if tail is not None:
            tail[:, columns] = b
    residual = relative(R, Y)
    status, converged = verdict("by a Cholesky factor", residual, float(problem.alpha.min()))
    return Solution(coef, tail, "cholesky", status, residual, {"converged": converged})
