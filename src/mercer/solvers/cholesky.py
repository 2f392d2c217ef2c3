"""The exact solution by a Cholesky factor: K̃ + alpha I = L Lᵀ."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas
from scipy.linalg.lapack import dpocon
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.errors import InvalidInput
from mercer.gram import lapack
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.base import TOLERANCE, UNSOLVED, Solution, not_psd, refined, relative, verdict
from mercer.solvers.factor import Border, Factor, Matrix

# A negative eigenvalue counts as rounding down to this many times n ε of the matrix's size.
ROUNDINGS = 100
# Up to this size the diagnosis computes every eigenvalue; above it, Lanczos computes the extreme ones.
ALL_EIGENVALUES = 1500


class CholeskyFactor(Factor):
    """The system at one alpha by L, the lower Cholesky factor of A = K̃ + alpha I, and the border that a tail makes.

    Raises `numpy.linalg.LinAlgError` if A is not positive definite to rounding.

    Parameters
    ----------
    K : array
        K̃, symmetric and C-ordered. It is overwritten by the factor.
    alpha : float
        > 0 unless K̃ is positive definite by itself.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    shift : float
        ≥ 0, added to the diagonal for the factorisation only: `multiply` and `residual` use alpha alone.

    Attributes
    ----------
    L
        The factor on and below the diagonal. Above the diagonal the entries of K̃ stay, so that `multiply` needs no
        second matrix.
    shifted
        The diagonal of A.
    border
        The border of the tail, or None.

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
        self.border = self._border()

    def _border(self) -> Border | None:
        if self.tail is None:
            return None
        half = triangular(self.L, self._weighted(self.tail))
        return Border.of(half, lambda X: triangular(self.L, X, transposed=True))

    @classmethod
    def of(cls, problem: LeastSquares, alpha: float, dtype: Any = None) -> CholeskyFactor:
        """The factor of a problem; raises an error with the negative eigenvalue if its Gram matrix has one.

        If an alpha > 0 is below the rounding of K̃, the order of operations decides whether a pivot is positive. Then
        a bound on the rounding is added to the diagonal before the factorisation, and the residual, always computed
        with alpha itself, shows how well this solves the system.
        """
        if problem.weighted_tail is not None:
            require_independent(problem.weighted_tail)
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
        """A⁻¹ B."""
        return triangular(self.L, triangular(self.L, B), transposed=True).astype(np.float64, copy=False)

    def bordered(self, Z: Matrix, Q: Matrix | None = None) -> tuple[Matrix, Matrix | None]:
        """M̃⁻¹ (Z, Q), both its parts: shapes (n, t) and (p, t), the second None without a tail; Q is 0 by default."""
        U = self.solve_system(Z)
        return (U, None) if self.border is None else self.border.correct(U, Z, Q)

    def quadratic(self, Z: Matrix, Q: Matrix | None = None) -> Matrix:
        """(z, q)ᵀ M̃⁻¹ (z, q) for each column of Z and Q, shape (t,)."""
        U, B = self.bordered(Z, Q)
        value = np.einsum("ij,ij->j", Z, U)
        return value if B is None or Q is None else value + np.einsum("ij,ij->j", Q, B)

    @property
    def condition(self) -> float:
        """The condition number of A in the 1-norm, estimated."""
        return condition(self.L, self._norm())

    def _norm(self) -> float:
        """The 1-norm of A, from the entries of K̃ above the diagonal of L."""
        sums = np.abs(self.shifted)
        for i in range(0, len(sums), 256):
            strip = np.abs(self.L[:, i : i + 256])
            strip[i:] = np.triu(strip[i:], 1)
            sums[i : i + 256] += strip.sum(axis=0)
            sums += strip.sum(axis=1)
        return float(sums.max())

    def multiply(self, U: Matrix) -> Matrix:
        """A U, accumulated in float64."""
        return upper_product(self.L, self.shifted, U)

    def residual(self, y: Matrix, c: Matrix, b: Matrix | None = None) -> Matrix:
        """s∘y − Au − P̃b for a solution (c, b), in float64, shape (n, t)."""
        s = np.ones(1) if self.roots is None else self.roots[:, None]
        R = s * y - self.multiply(c / s)
        return R if b is None or self.tail is None else R - s * (self.tail @ b)

    def refined(self, y: Matrix, tol: float) -> tuple[Matrix, Matrix | None, Matrix]:
        """(c, b) and its residual vectors, refined if those of the first solution are above `tol`."""
        return refined(self.solve, lambda c, b: self.residual(y, c, b), y, self.roots, tol)

    def into_inverse(self) -> Matrix:
        """`inverse` in the memory of the factor, which is destroyed."""
        return self._scaled(self._inverted(self.L))

    def grown(
        self, across: Matrix, K: Matrix, roots: Matrix | None = None, tail: Matrix | None = None
    ) -> CholeskyFactor:
        """The factor of [[A, K̃₁₂], [K̃₂₁, K̃₂₂ + alpha I]], at O(n²) per added row.

        L₂₁ = K̃₂₁ L⁻ᵀ, and L₂₂ is the factor of the Schur complement K̃₂₂ + alpha I − L₂₁ L₂₁ᵀ. A new matrix is filled
        each time: the copy costs as much as one of the new rows.

        Parameters
        ----------
        across, K : array
            K₂₁ between m new points and the old ones, shape (m, n), and K₂₂ among the new ones.
        roots, tail : array or None
            √w and P of all n + m points, or None.
        """
        n, m = len(self.L), len(K)
        if roots is not None:
            across = roots[n:, None] * across * roots[:n]
            K = roots[n:, None] * K * roots[n:]
        L = np.empty((n + m, n + m), order="F")
        L[:n, :n] = self.L
        L[n:, :n] = triangular(self.L, across.T).T
        schur = K - L[n:, :n] @ L[n:, :n].T
        schur.flat[:: m + 1] += self.alpha
        L[:n, n:], L[n:, n:] = across.T, np.tril(np.linalg.cholesky(schur)) + np.triu(K, 1)
        grown = copy(self)
        grown.L, grown.roots, grown.tail = L, roots, tail
        grown.shifted = np.concatenate([self.shifted, np.diagonal(K) + self.alpha])
        grown.border = grown._border()
        return grown

    # -- the weighted system --------------------------------------------------------------------------------------

    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix | None]:
        return self.bordered(Z)

    def _smoother(self, Z: Matrix, Pz: Matrix | None) -> Matrix:
        return self.bordered(Z.T, None if Pz is None else Pz.T)[0].T

    def _log_determinant(self) -> float:
        value = 2.0 * float(np.log(np.diagonal(self.L), dtype=np.float64).sum())
        return value if self.border is None else value + self.border.log_determinant

    def _inverse(self) -> Matrix:
        return self._inverted(self.L.copy(order="F"))

    def _inverted(self, lower: NDArray[Any]) -> Matrix:
        """The inverse in the memory of a factor."""
        lapack.inverse_from_cholesky(lower, lower=True)
        H = np.asarray(lower.T, dtype=np.float64)  # C-ordered, its upper triangle filled
        step = 512
        for i in range(0, len(H), step):
            square = H[i : i + step, i : i + step]
            square[...] = np.triu(square) + np.triu(square, 1).T
            H[i + step :, i : i + step] = H[i : i + step, i + step :].T
        if self.border is not None:
            H -= self.border.W @ self.border.W.T
        return H

    def _diagonal(self) -> Matrix:
        inverse = self.L.copy(order="F")
        lapack.inverse_of_triangle(inverse, lower=True)
        H = np.empty(len(inverse))
        for j in range(0, len(H), 256):
            strip = inverse[j:, j : j + 256]
            strip[:256] = np.tril(strip[:256])
            H[j : j + 256] = np.einsum("ij,ij->j", strip, strip, dtype=np.float64)
        return H if self.border is None else H - np.einsum("ip,ip->i", self.border.W, self.border.W)


def condition(L: Matrix, size: float) -> float:
    """The condition number of LLᵀ in the 1-norm, estimated from the norm of LLᵀ, `size`."""
    reciprocal, _ = dpocon(L, size, uplo="L")
    return 1.0 / reciprocal if reciprocal > 0 else np.inf


def triangular(L: NDArray[Any], B: NDArray[Any], *, transposed: bool = False) -> NDArray[Any]:
    """L⁻¹B or L⁻ᵀB in the precision of L, for a Fortran-ordered lower L; entries above its diagonal are not read."""
    B = np.asarray(B, dtype=L.dtype)
    trsv, trsm = blas.get_blas_funcs(("trsv", "trsm"), (L,))
    if B.ndim == 1:
        return np.asarray(trsv(L, B, lower=1, trans=int(transposed)))
    if B.shape[1] > costs.FEW_COLUMNS:
        return np.asarray(trsm(1.0, L, B, lower=1, trans_a=int(transposed)))
    X = np.empty(B.shape, L.dtype, order="F")
    for j in range(B.shape[1]):
        X[:, j] = trsv(L, B[:, j], lower=1, trans=int(transposed))
    return X


def upper_product(A: NDArray[Any], diagonal: NDArray[Any], U: Matrix) -> Matrix:
    """A symmetric matrix times U in float64, from the Fortran-ordered A above its diagonal, and `diagonal`."""
    n, t = U.shape
    if A.dtype == np.float64:
        product = np.empty((n, t), order="F")
        if t > costs.FEW_COLUMNS:
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
    """Raise if the tail's functions are linearly dependent on the points: their coefficients would not be unique."""
    sizes = np.linalg.norm(P, axis=0)
    rank = np.linalg.matrix_rank(P / np.where(sizes > 0, sizes, 1.0))
    if rank < P.shape[1]:
        raise InvalidInput(
            "The functions of the tail must be linearly independent on the points",
            got=f"rank {rank} of {P.shape[1]}",
            advice="Leave out the dependent ones, or use `solver='eigen'` for the minimum-norm solution.",
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
    # After a shift by the largest, the other end of the spectrum is the largest in size.
    other = largest + extreme(lambda v: product(v) - largest * v.reshape(n))
    return min(largest, other), max(abs(largest), abs(other))


def solve(problem: LeastSquares) -> Solution:
    """The exact solution, one factorisation per different alpha; its residual is measured by one product."""
    coef = np.empty_like(problem.y)
    tail = None if problem.tail is None else np.empty((problem.tail.shape[1], problem.y.shape[1]))
    R = np.empty_like(problem.y)
    Y, tol = problem.weighted_targets, TOLERANCE[problem.gram.dtype.itemsize]
    alphas, factors = np.unique(problem.alpha), dict[float, Factor]()
    for alpha in alphas:
        columns = np.flatnonzero(problem.alpha == alpha)
        y = problem.y[:, columns]
        for dtype in dict.fromkeys([problem.gram.dtype, np.dtype(np.float64)]):
            factor = CholeskyFactor.of(problem, float(alpha), dtype)
            coef[:, columns], b, R[:, columns] = factor.refined(y, tol)
            if len(alphas) == 1 and dtype == np.float64:  # several would take more memory than the fit
                factors[float(alpha)] = factor
            if relative(R[:, columns], Y[:, columns]) <= UNSOLVED:
                break  # a float32 factor may be too rough for refinement
        else:
            if alpha == 0:
                raise diagnose(problem, 0.0)
        if tail is not None:
            tail[:, columns] = b
    residual = relative(R, Y)
    status, converged = verdict("by a Cholesky factor", residual, float(problem.alpha.min()))
    return Solution(coef, tail, "cholesky", status, residual, {"converged": converged}, factors=factors)
