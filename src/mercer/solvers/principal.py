"""Leading principal functions of points in feature space, from their Gram matrix: the mathematics of kernel PCA.

Points weigh w = s² (repetition), W = Σw, and q = s/√W. The covariance about the mean μ = Σ wᵢ phi(xᵢ)/W has the
eigenvalues of G = P S K S P with P = I − qqᵀ, up to the factor 1/W, and to G u = λu belongs the function of norm one

    f = Σ cᵢ k(xᵢ, ·),   c = S P u/√λ,   f(xᵢ) − ⟨f, μ⟩ = √λ uᵢ/sᵢ.

G is never formed unless all of its eigenvalues are needed: centring is two inner products around K @ V.

* Few points, or many of the eigenvalues: one decomposition of G.
* Otherwise a block Krylov space with full orthogonalisation and thick restarts. A product with a block of vectors costs
  hardly more than with one (K comes from memory, or is computed anew), and blocks need fewer products.
* Nyström: the functions on m centres, an approximation. Its G is m × m.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram, lapack
from mercer.memory import within
from mercer.solvers import costs
from mercer.solvers.base import not_psd
from mercer.validation import check_choice

Matrix = NDArray[np.float64]

SOLVERS = ("auto", "eigen", "krylov", "nystrom")
# If K does not fit the memory, products compute it anew up to this n; beyond it K is approximated.
TILED = 60_000
# Vectors beyond the required ones, and the largest number of vectors in a block.
EXTRA, WIDEST = 6, 64
# The Krylov space restarts at this many vectors, or this multiple of the required ones; and the limit of products.
BASIS, BASIS_SHARE, PRODUCTS = 400, 4, 500


@dataclass(frozen=True, eq=False)
class Principal:
    """Orthonormal functions f₁, …, f_t of largest variance.

    Attributes
    ----------
    eigenvalues : array
        λ, descending, of the centred Gram matrix: W times the variances, shape (t,).
    coef : array
        The coefficients of the functions, one column each, shape (n, t), or (m, t) on m centres.
    mean : array
        The coefficients of the mean μ, shape (n,) or (m,).
    values : array
        fⱼ at those points, shape (n, t) or (m, t).
    mean_values : array
        μ at those points, shape (n,) or (m,).
    offsets : array
        ⟨fⱼ, μ⟩, shape (t,).
    mean_square : float
        ‖μ‖².
    total : float
        Σ wᵢ ‖phi(xᵢ) − μ‖², the sum of all eigenvalues.
    solver, status : str
        The solver, and how it ended.
    residual : float
        The largest ‖Gu − λu‖/λ; every λ is that close to an eigenvalue.
    converged : bool
        Whether the residual is within the tolerance.
    points : Points or None
        The centres, or None for the n points.
    """

    eigenvalues: Matrix
    coef: Matrix
    mean: Matrix
    values: Matrix
    mean_values: Matrix
    offsets: Matrix
    mean_square: float
    total: float
    solver: str
    status: str
    residual: float
    converged: bool = True
    points: Points | None = None


class Centred:
    """G = P S K S P as an operator.

    >>> import mercer as mc
    >>> K = mc.gram.of(mc.Linear(), [[1.0], [2.0]])
    >>> (Centred(K) @ np.eye(2)).round(12)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """

    def __init__(self, gram: Gram, roots: Matrix | None = None) -> None:
        self.gram, self.n = gram, gram.shape[0]
        self.s = np.ones(self.n) if roots is None else roots
        self.weight = float(self.s @ self.s)
        self.q = self.s / np.sqrt(self.weight)
        self.mean = self.s**2 / self.weight
        # μ at the points, and everything that depends on the mean
        self.mean_values = self.multiply(self.mean[:, None])[:, 0]
        self.mean_square = float(self.mean @ self.mean_values)
        spread = float(self.s**2 @ gram.diag().astype(np.float64))
        self.total = spread - self.weight * self.mean_square
        self.size = max(self.weight * abs(self.mean_square), spread / self.n)

    def zero_beside(self, values: Matrix) -> float:
        """The largest eigenvalue that rounding alone can make, beside these in increasing order; none may be negative.

        It follows from the size of K: the largest variance or the mean.
        """
        zero = rounding(self.gram, max(self.size, float(np.abs(values).max())))
        if values[0] < -100 * zero:
            raise not_psd(float(values[0]), self.n)
        return zero

    def multiply(self, V: Matrix) -> Matrix:
        """K V."""
        if not self.gram.keeps:
            return np.asarray(self.gram @ V, dtype=np.float64)
        # Rows of K as columns: BLAS reads them in order, and every thread has its own.
        K, out = self.gram.dense(), np.empty((V.shape[1], self.n))
        left = np.ascontiguousarray(V.T, dtype=K.dtype)

        def work(rows: slice, share: int) -> None:
            out[:, rows] = left @ K[rows].T

        threads.stripes(self.n, work, rows=min(costs.PRODUCT_ROWS, -(-self.n // threads.n_threads())))
        return out.T

    def without_mean(self, V: Matrix) -> Matrix:
        """P V."""
        return np.asarray(V - np.outer(self.q, self.q @ V))

    def __matmul__(self, V: Matrix) -> Matrix:
        s = self.s[:, None]
        return self.without_mean(s * self.multiply(s * self.without_mean(V)))

    def dense(self) -> Matrix:
        """G as an array."""
        G = self.gram.fresh(np.float64)
        G *= self.s[:, None]
        G *= self.s
        r = G @ self.q
        r -= 0.5 * float(self.q @ r) * self.q
        G -= np.outer(self.q, r)
        G -= np.outer(r, self.q)
        return G

    def principal(self, eigenvalues: Matrix, U: Matrix, **more: Any) -> Principal:
        """The functions that belong to eigenvectors U."""
        coef = self.s[:, None] * self.without_mean(U) / np.sqrt(eigenvalues)
        return Principal(
            eigenvalues=eigenvalues,
            coef=coef,
            mean=self.mean,
            values=self.multiply(coef),
            mean_values=self.mean_values,
            offsets=self.mean_values @ coef,
            mean_square=self.mean_square,
            total=self.total,
            **more,
        )


def choose(gram: Gram, t: int | None, solver: str, limit: int) -> tuple[str, str]:
    """The solver for t of the eigenvalues (None: all), and why."""
    check_choice(solver, "solver", SOLVERS, advice="Use 'auto' if in doubt.")
    if solver == "krylov" and t is None:
        raise InvalidInput(
            "`solver='krylov'` computes some of the eigenvalues, not all",
            got="n_components=None",
            advice="Set `n_components`, or use solver='eigen'.",
        )
    n = gram.shape[0]
    if solver == "auto":
        if t is None or ((n <= costs.FEW_ROWS or t > costs.MANY_VECTORS * n) and 32 * n * n <= limit):
            few = n <= costs.FEW_ROWS
            return "eigen", f"n = {n} is small" if few else f"{t or 'all'} of {n} eigenvalues are needed"
        if gram.keeps or n <= TILED:
            return "krylov", f"n = {n}" if gram.keeps else f"n = {n}, K computed anew in each product"
        return "nystrom", f"n = {n} exceeds the memory and {TILED:,}: an approximation"
    return solver, "as requested"


def decompose(operator: Centred, t: int | None, limit: int, why: str = "as requested") -> Principal:
    """From all eigenvalues of G: the ones above rounding, or the t largest."""
    n = operator.n
    within(32 * n * n, limit, f"The eigendecomposition of {n} points", "Set `n_components`, or use solver='nystrom'.")
    # For a small matrix threads cost more than they gain.
    with threads.single_threaded_blas() if n <= costs.FEW_ROWS else nullcontext():
        values, vectors = lapack.eigh(np.require(operator.dense().T, requirements=["F", "W"]))
    zero = operator.zero_beside(values)
    rank = int((values > zero).sum())
    t = require_rank(rank if t is None else t, rank, n)
    top = slice(n - 1, n - 1 - t if t < n else None, -1)
    status = f"exact, by eigendecomposition; rank {rank} of {n} ({why})"
    return operator.principal(values[top].copy(), vectors[:, top], solver="eigen", status=status, residual=0.0)


def krylov(operator: Centred, t: int, *, tol: float, rng: np.random.Generator, why: str = "as requested") -> Principal:
    """The t largest eigenvalues of G and their vectors, by a block Krylov space.

    It grows by G times its last block, orthogonalised twice. Within it the eigenvalues are those of T = QᵀGQ, and the
    part of GQ outside of it bounds their error. When it is full, it restarts from its best vectors.
    """
    with threads.single_threaded_blas():  # products run on the threads; the rest is too small for them
        return _krylov(operator, t, tol, rng, why)


def _krylov(operator: Centred, t: int, tol: float, rng: np.random.Generator, why: str) -> Principal:
    n = operator.n
    b = min(t + EXTRA, WIDEST, n)
    capacity = min(n, max(BASIS, BASIS_SHARE * t) + b)
    Q, T = np.empty((n, capacity), order="F"), np.zeros((capacity, capacity))
    block, _ = np.linalg.qr(operator.without_mean(rng.standard_normal((n, b))))
    m, products = 0, 0
    while True:
        old, m = m, m + block.shape[1]
        Q[:, old:m] = block
        W = operator @ block
        products += 1
        inside = Q[:, :m].T @ W
        T[:m, old:m], T[old:m, :m] = inside, inside.T
        W -= Q[:, :m] @ inside
        values, Y = np.linalg.eigh(T[:m, :m])
        zero = operator.zero_beside(values)  # the least eigenvalue of G is not larger than these
        count = min(t, m)
        top = slice(m - 1, m - 1 - count if count < m else None, -1)
        block, outside = np.linalg.qr(W)
        residuals = np.linalg.norm(outside @ Y[old:m, top], axis=0)
        enough = np.maximum(
            tol * values[top], 2.0 * zero / np.sqrt(n)
        )  # the rounding of the products, vector by vector
        converged = m >= t and bool((residuals <= enough).all())
        if converged or products == PRODUCTS or m == n:
            break
        if m + block.shape[1] > capacity:
            if capacity < n:
                keep = min(m, max(2 * t, capacity // 2))
                Q[:, :keep] = Q[:, :m] @ Y[:, m - keep :]
                T[:keep, :keep] = np.diag(values[m - keep :])
                m = keep
            block = block[:, : capacity - m]
        block, _ = np.linalg.qr(block - Q[:, :m] @ (Q[:, :m].T @ block))
    largest, U = values[top].copy(), Q[:, :m] @ Y[:, top]
    require_rank(t, int((largest > zero).sum()), n)
    residual = float((residuals / largest).max())
    how = f"by {products} products with blocks of {b} vectors, residual {residual:.1e} ({why})"
    converged = converged or m == n
    limit = "" if residual <= tol else f" to the rounding of {operator.gram.dtype}"
    status = f"exact{limit}, {how}" if converged else f"not converged to the tolerance {tol:.0e}: {how}"
    return operator.principal(largest, U, solver="krylov", status=status, residual=residual, converged=converged)


def on_centers(
    gram: Gram, centers: Points, t: int | None, roots: Matrix | None, budget: Any, why: str = "as requested"
) -> Principal:
    """The functions of largest variance among those on the centres; the mean is projected onto them, too.

    In whitened features Φ the covariance is that of PCA: an m × m matrix, a sum over the rows.
    """
    n = gram.shape[0]
    s = np.ones(n) if roots is None else roots
    weight = float(s @ s)
    features = gram.low_rank(centers, np.float64, budget)
    q = s / np.sqrt(weight)
    C = features.normal_matrix(np.arange(n), roots, q[:, None])
    average = features.adjoint((s**2 / weight)[:, None])[:, 0]
    values, beta = sla.eigh(C, overwrite_a=True, check_finite=False, driver="evd")
    mean_square = float(average @ average)
    spread = float(s**2 @ gram.diag().astype(np.float64))
    size = max(weight * mean_square, float(np.abs(values).max()), spread / n)
    rank = int((values > rounding(gram, size)).sum())
    t = require_rank(rank if t is None else t, rank, n)
    top = slice(len(values) - 1, len(values) - 1 - t if t < len(values) else None, -1)
    beta = beta[:, top]
    return Principal(
        eigenvalues=values[top].copy(),
        coef=features.coefficients(beta),
        mean=features.coefficients(average[:, None])[:, 0],
        values=features.L @ beta,
        mean_values=features.L @ average,
        offsets=average @ beta,
        mean_square=mean_square,
        total=spread - weight * mean_square,
        solver="nystrom",
        status=f"approximate, on {len(values)} centres ({why})",
        residual=float("nan"),
        points=features.centers,
    )


def rounding(gram: Gram, size: float) -> float:
    """The size of a zero eigenvalue after rounding, for a matrix of this norm: independent errors grow with √n."""
    return 8.0 * float(np.sqrt(gram.shape[0])) * float(np.finfo(gram.dtype).eps) * size


def require_rank(t: int, rank: int, n: int) -> int:
    """t, if that many directions have a variance."""
    if rank == 0:
        raise InvalidInput(
            "Principal components need points that differ: their variance in feature space must be > 0",
            got=f"{n} points that the kernel sees as equal, to rounding",
            advice="Remove equal rows of X, or lower the width of the kernel.",
        )
    if t > rank:
        raise InvalidInput(
            f"`n_components` must be at most the number of directions with a variance above rounding, {rank}",
            got=str(t),
            advice="Use n_components=None for all of them.",
        )
    return t
