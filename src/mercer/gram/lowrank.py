"""Nyström: functions on m centres instead of n points, in coordinates where their norm is the Euclidean one.

With K_mm = L Lᵀ the Gram matrix of the centres z and K_nm = k(xᵢ, zⱼ), the whitened features are Φ = K_nm L⁻ᵀ. A
function f = Σ cⱼ k(zⱼ, ·) with β = Lᵀc has the values Φβ and the norm ‖f‖ = ‖β‖, and ΦΦᵀ is the best approximation
of K on the centres' span. Normal equations in β keep digits that normal equations in c lose: their condition number is
that of the problem, not its square times that of K_mm.

Every product is a sum over blocks of rows, each of which is computed, used and discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mercer import memory, threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.gram import costs
from mercer.gram.base import Gram
from mercer.kernels import tiling
from mercer.memory import budget as _budget
from mercer.memory import within

Matrix = NDArray[np.float64]
# A centre is kept if it adds more than this many rounding errors of the largest k(z, z) to the span of the others.
ROUNDINGS = 4.0


@dataclass(frozen=True, eq=False)
class RowTerms:
    """w∘U − B M, row by row: the step of `Nystrom.normal` between its two products, as arrays with one row per point.

    Attributes
    ----------
    weights
        W, shape (n, 1), or None for ones.
    basis
        B, shape (n, p), or None for no second term.
    inside
        M, shape (p, t).
    """

    weights: Matrix | None
    basis: Matrix | None
    inside: Matrix

    def __call__(self, rows: slice, U: Matrix) -> Matrix:
        if self.weights is not None:
            U = self.weights[rows] * U
        return U if self.basis is None else U - self.basis[rows] @ self.inside


class Nystrom:
    """Φ = K_nm L⁻ᵀ as an operator: its products with vectors, block of rows by block of rows.

    Parameters
    ----------
    gram : Gram
        K of the n points.
    centers : Points
        The m centres, taken from the points of the Gram or made by `gram.points`.
    dtype
        Of the entries of K_nm, float32 or float64. Sums over rows are float64 in any case.
    budget : int, str or None
        Bytes, or a text such as "2 GB". K_nm is stored if it takes a small part of it and storing is faster.
    least : float
        The share of k(z, z) that a centre must have outside of the span of the others, at least a few roundings.

    Attributes
    ----------
    centers : Points
        The m centres that remain; one whose function is in the span of the others, up to rounding, is dropped.
    kept
        Their positions among the given centres.
    L
        The lower Cholesky factor of their K_mm, float64.
    stored : bool
        Whether K_nm is kept.
    once : callable
        Calls a function that sums over all rows, and returns its result; a solver that keeps the results of such sums
        in a checkpoint replaces it.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> K = mc.gram.of(mc.Gaussian(0.5), X)
    >>> Phi = K.low_rank(K.x.take(slice(0, 50, 10)))
    >>> Phi.shape, bool(np.abs(Phi.features() @ Phi.features().T - K.dense()).max() < 1e-2)
    ((50, 5), True)
    """

    def __init__(self, gram: Gram, centers: Points, dtype: Any = None, budget: Any = None, least: float = 0.0) -> None:
        limit = _budget(budget)
        advice = "Use fewer centres, or allow more memory."
        within(4 * 8 * centers.n**2, limit, f"The factors on {centers.n} centres", advice)
        self.gram, self.points = gram, gram.x
        self.dtype = gram.between(self.points, centers, dtype).dtype
        self.L, self.kept = _factor(gram.between(centers, None, np.float64).fresh(), self.dtype, least)
        self.centers = centers if len(self.kept) == centers.n else centers.take(self.kept)
        self.K = gram.between(self.points, self.centers, self.dtype)
        self.shape = (gram.shape[0], self.centers.n)
        m = self.shape[1]
        self.height = max(16, memory.CACHED // m)
        self.height = max(1, min(self.height, -(-self.shape[0] // threads.n_threads())))
        self.once: Callable[[Callable[[], Matrix]], Matrix] = lambda make: np.ascontiguousarray(make())
        self._stored: Array | None = None
        self._stored = self._store(limit)

    @property
    def stored(self) -> bool:
        return self._stored is not None

    def __repr__(self) -> str:
        kept = "stored" if self.stored else "streamed"
        return f"<Nystrom of {self.K!r}, {kept}>"

    # -- rows ------------------------------------------------------------------------------------------------------

    def block(self, rows: slice, out: Array | None = None) -> Array:
        """K_nm at these rows, shape (rows, m): a view, or scratch of the calling thread that its next block reuses."""
        if self._stored is not None:
            return self._stored[rows]
        space = tiling.workspace()
        mark = space.used
        try:
            tile = space.take((rows.stop - rows.start, self.shape[1]), self.dtype) if out is None else out
            self.K.fill_rows(rows, tile)
        finally:
            space.release(mark)
        return tile

    def sum_over_rows(self, work: Callable[[slice, Array], Matrix], shape: tuple[int, ...]) -> Matrix:
        """Σ work(rows, K_nm[rows]) over all blocks of rows, on the threads, in float64 and a fixed order."""
        totals = threads.Totals(shape)

        def add(rows: slice, share: int) -> None:
            totals[share] += work(rows, self.block(rows))

        threads.stripes(self.shape[0], add, rows=self.height)
        return totals.sum()

    def _store(self, limit: int) -> Array | None:
        """K_nm, if it fits comfortably and if reading it is worth more than computing it again."""
        n, m = self.shape
        if n * m * self.dtype.itemsize > costs.STORED_SHARE * limit or not self.K.worth_storing(self.dtype):
            return None
        stored = np.empty((n, m), self.dtype)

        def fill(rows: slice, share: int) -> None:
            self.block(rows, stored[rows])

        threads.stripes(n, fill, rows=self.height)
        return stored

    # -- products --------------------------------------------------------------------------------------------------

    def whiten(self, B: Matrix) -> Matrix:
        """L⁻¹ B."""
        return np.asarray(sla.solve_triangular(self.L, B, lower=True, check_finite=False))

    def coefficients(self, beta: Matrix) -> Matrix:
        """c = L⁻ᵀβ, the coefficients of the centres."""
        return np.asarray(sla.solve_triangular(self.L, beta, lower=True, trans=1, check_finite=False))

    def __matmul__(self, V: Any) -> Matrix:
        """Φ V for V of shape (m, t)."""
        W = self.coefficients(np.asarray(V, np.float64)).astype(self.dtype)
        out = np.empty((self.shape[0], *W.shape[1:]))

        def work(rows: slice, share: int) -> None:
            out[rows] = tiling.product(self.block(rows), W)

        threads.stripes(self.shape[0], work, rows=self.height)
        return out

    def adjoint(self, U: Matrix) -> Matrix:
        """Φᵀ U for U of shape (n, t)."""
        return self.normal(np.zeros((self.shape[1], U.shape[1])), lambda rows, _: U[rows])

    def normal(self, V: Matrix, between: Callable[[slice, Matrix], Matrix] | None = None) -> Matrix:
        """Φᵀ between(Φ V), every block of K_nm computed once; `between(rows, U)` works on the block's rows of ΦV."""
        W = self.coefficients(V).astype(self.dtype)

        def work(rows: slice, K: Array) -> Matrix:
            U = tiling.product(K, W)
            if between is not None:
                U = between(rows, U)
            return tiling.product(K.T, U.astype(self.dtype))

        return self.whiten(self.once(lambda: self.sum_over_rows(work, W.shape)))

    def features(self, index: Any = None) -> Array:
        """Φ at these positions (all by default) as an array, shape (rows, m)."""
        return self.features_of(self.points if index is None else self.points.take(index))

    def features_of(self, points: Points) -> Array:
        """φ of any points as an array, shape (points, m)."""
        return self._whitened(points).T

    def _whitened(self, points: Points) -> Array:
        """Φᵀ = L⁻¹K_mn of these points, computed in place, in Fortran order."""
        return self._solve(self.gram.between(points, self.centers, self.dtype).fresh())

    def _solve(self, K: Array) -> Array:
        """L⁻¹Kᵀ in K's own memory: rows of K in C order are columns of Kᵀ in Fortran order."""
        (trsm,) = blas.get_blas_funcs(("trsm",), (K,))
        return np.asarray(trsm(1.0, self.L.astype(self.dtype), K.T, lower=1, overwrite_b=1))

    def parts(self, index: NDArray[np.int64], step: int) -> Iterator[tuple[slice, Points]]:
        """The rows at these ascending positions, at most `step` at a time: which of the positions, and their points."""
        for part in threads.spans(len(index), step):
            yield part, self.points.take(index[part])

    def normal_matrix(
        self, index: NDArray[np.int64], roots: Matrix | None = None, tail: Matrix | None = None, ridge: float = 0.0
    ) -> Matrix:
        """Φ̃ᵀ(I − QQᵀ)Φ̃ + ridge L⁻¹L⁻ᵀ over the rows at these positions, shape (m, m).

        Φ̃ = diag(roots) Φ, Q is the orthonormal `tail`, both at these rows, and the ridge is one on the coefficients,
        ridge ‖c‖². A symmetric rank-k update per chunk of rows, added up in float64.
        """
        return self.once(lambda: self._normal_matrix(index, roots, tail, ridge))

    def _normal_matrix(
        self, index: NDArray[np.int64], roots: Matrix | None, tail: Matrix | None, ridge: float
    ) -> Matrix:
        m = self.shape[1]
        (syrk,) = blas.get_blas_funcs(("syrk",), dtype=self.dtype)
        H = np.zeros((m, m), order="F")
        G = np.zeros((m, 0 if tail is None else tail.shape[1]))
        for part, points in self.parts(index, max(2048, m)):
            Phi = self._whitened(points)
            if roots is not None:
                Phi *= roots[part].astype(self.dtype)
            H += syrk(1.0, Phi, lower=1)
            if tail is not None:
                G += Phi @ tail[part].astype(self.dtype)
        H -= np.tril(G @ G.T)
        if ridge > 0.0:
            # The ridge acts like m more rows of K_nm that are √ridge I.
            Phi = self._solve(np.sqrt(ridge) * np.eye(m, dtype=self.dtype))
            H += syrk(1.0, Phi, lower=1)
        return H + np.tril(H, -1).T


def _factor(K: Matrix, dtype: np.dtype[Any], least: float) -> tuple[Matrix, NDArray[np.int64]]:
    """L with L Lᵀ = K = K_mm over the centres that are kept, and their positions.

    A centre is dropped if less than a few roundings of K_nm's dtype, or a share `least`, is left of k(z, z) once the
    centres before it are projected out: it adds no function to their span, and would amplify those roundings.
    """
    m, scale = len(K), float(np.diagonal(K).max())
    tolerance = scale * max(least, ROUNDINGS * float(np.finfo(dtype).eps), m * float(np.finfo(np.float64).eps))
    L, info = lapack.dpotrf(K.T, lower=1, clean=1)
    if not info and float(np.diagonal(L).min()) ** 2 > tolerance:
        return L, np.arange(m)
    L, pivots, rank, _ = lapack.dpstrf(K.T, lower=1, tol=tolerance)
    order, rank = pivots - 1, int(rank)
    rest = L[rank:, :rank]
    left = np.abs(K[np.ix_(order[rank:], order[rank:])] - rest @ rest.T)
    if rank == 0 or left.max(initial=0.0) > 100.0 * tolerance:
        lowest = float(sla.eigvalsh(K, subset_by_index=[0, 0])[0])
        raise InvalidInput(
            "The Gram matrix of the centres must be positive semidefinite and not zero",
            got=f"the eigenvalue {lowest:.4g} on {m} centres, the largest diagonal entry being {scale:.4g}",
            advice="Run mc.check(kernel, X), which shows the violation; kernel.proof() shows the unproven part.",
        )
    return np.asfortranarray(np.tril(L[:rank, :rank])), order[:rank].astype(np.int64)
