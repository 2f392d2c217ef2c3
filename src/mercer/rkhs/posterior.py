"""The Gaussian posterior: the distribution of f, given its noisy values at n points.

Before the data f is a Gaussian process with covariance k. Given y = f(X) + noise of variance alpha/w, it is one again:

    mean      m(z)    = k(z, X) S (LLᵀ)⁻¹ S y,                 S = diag(√w),   LLᵀ = S K S + alpha I,
    variance  v(z)    = k(z, z) − ‖L⁻¹ S k(X, z)‖²,
    between   v(z, x) = k(z, x) − ⟨L⁻¹ S k(X, z), L⁻¹ S k(X, x)⟩.

The mean is the function that ridge regression fits with the penalty alpha; the variance does not depend on y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack

from mercer import memory, threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.custom import bare_precomputed
from mercer.memory import budget, within
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.space import hilbert, same_points
from mercer.validation import check_whole_number, generator

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """The Gaussian process f given data: its mean, variance, covariance, and samples of it.

    Attributes
    ----------
    mean : Expansion
        m, an `Expansion` on the n points that were observed. Several functions share one covariance.
    L : array
        The lower Cholesky factor of S K S + alpha I, shape (n, n). Entries above its diagonal are not read.
    roots : array or None
        √w, shape (n,), or None if all weights are one.
    scale : float or array
        The unit of the functions, a number or one per function: their covariance is scale² times the kernel's.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.rkhs.posterior import Posterior
    >>> k, X, y = mc.Gaussian(1.0), np.array([[0.0], [1.0]]), np.array([1.0, 2.0])
    >>> A = k(X) + 0.1 * np.eye(2)
    >>> f = Posterior(mc.Expansion(k, X, np.linalg.solve(A, y)), np.linalg.cholesky(A))
    >>> f.std([[0.5], [9.0]]).round(3)                                 # known between the points, unknown far away
    array([0.295, 1.   ])
    >>> f.covariance([[0.5], [9.0]]).shape, f.sample([[0.5], [9.0]], 1000, np.random.default_rng(0)).shape
    ((2, 2), (2, 1000))
    """

    mean: Expansion
    L: Matrix
    roots: Matrix | None = None
    scale: Any = 1.0

    def __post_init__(self) -> None:
        hilbert(self.mean.kernel)
        n = len(self.mean)
        if self.L.shape != (n, n):
            raise InvalidInput(
                f"`L` must be the Cholesky factor for the mean's {n} points",
                got=f"shape {self.L.shape}",
                advice="Pass a factor of shape (n, n).",
            )

    @property
    def kernel(self) -> Kernel:
        """The covariance before the data."""
        return hilbert(self.mean.kernel)

    def variance(self, Z: Any) -> Array:
        """v(z) ≥ 0 for m points, shape (m,), or (m, t) for t functions; block by block."""
        points = self._queries(Z)
        v = self.kernel.diagonal(points)
        for span, V in self._halves(points):
            v[span] -= np.einsum("ij,ij->j", V, V)
        return self._in_units(np.maximum(v, 0.0))

    def std(self, Z: Any) -> Array:
        """√v(z), shape (m,), or (m, t)."""
        return np.asarray(np.sqrt(self.variance(Z)))

    def covariance(self, Z: Any) -> Array:
        """v(z, z′) for all pairs of m points, shape (m, m), or (m, m, t). Its diagonal is exactly `variance`."""
        return self._in_units(self._covariance(self._queries(Z)))

    def sample(self, Z: Any, n: int = 1, rng: Any = None) -> Array:
        """n functions drawn from the posterior, at m points: shape (m, n), or (m, t, n) for t functions.

        The covariance is nearly singular if points are close. A pivoted Cholesky factor of its numerical rank is its
        square root to rounding, so that nothing has to be added to the diagonal.

        Parameters
        ----------
        Z : array, frame or list of objects
            m points.
        n : int
            The number of functions.
        rng
            A generator, a seed, or None.
        """
        check_whole_number(n, "n", such_as=10)
        points = self._queries(Z)
        root = square_root(self._covariance(points))
        mean = self.mean(points)
        columns = np.atleast_1d(np.broadcast_to(self.scale, mean.shape[1:]))
        noise = generator(rng, "rng").standard_normal((root.shape[1], len(columns), n))
        draws = np.tensordot(root, noise, axes=1) * columns[:, None]
        draws += mean.reshape(points.n, -1, 1)
        return np.asarray(draws[:, 0] if mean.ndim == 1 else draws, dtype=mean.dtype)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _queries(self, Z: Any) -> Points:
        points = self.kernel.prepare(Z)
        pairwise = self.kernel.pairwise
        if pairwise and not same_points(points, self.mean.points):
            raise bare_precomputed(
                "The variance needs k(z, z) of the queries, which a matrix of queries against training points lacks"
            )
        return points

    def _covariance(self, points: Points) -> Matrix:
        """The covariance in the kernel's units, shape (m, m)."""
        m, n = points.n, len(self.mean)
        size = 8 * m * (n + 2 * m)
        within(size, budget(), f"The covariance of {m} points", "Pass fewer of them at a time, or use `variance`.")
        half, v = np.empty((n, m), order="F"), self.kernel.diagonal(points)
        for span, V in self._halves(points):
            half[:, span] = V
            v[span] -= np.einsum("ij,ij->j", V, V)
        C = self.kernel(points, dtype=np.float64)
        C -= half.T @ half
        C.flat[:: m + 1] = np.maximum(v, 0.0)
        return C

    def _halves(self, points: Points) -> Iterator[tuple[slice, Matrix]]:
        """L⁻¹ S k(X, z), shape (n, rows), by blocks of rows."""
        for span in threads.spans(points.n, max(1, memory.HELD // len(self.mean))):
            block = points if span == slice(0, points.n) else points.take(span)
            K = self.kernel(block, self.mean.points, dtype=np.float64)
            if self.roots is not None:
                K *= self.roots
            # The transpose of a C-ordered block is Fortran-ordered: solved in place.
            yield span, sla.solve_triangular(self.L, K.T, lower=True, overwrite_b=True, check_finite=False)

    def _in_units(self, values: Matrix) -> Array:
        """Values of the kernel's covariance in the units and the dtype of the functions, one for each of them."""
        dtype = np.result_type(self.mean.coef.dtype, self.kernel.dtype_of(self.mean.points))
        if self.mean.coef.ndim == 2:
            values = values[..., None] * np.broadcast_to(np.square(self.scale), self.mean.coef.shape[1:])
        elif np.ndim(self.scale) or self.scale != 1.0:
            values = values * float(np.square(self.scale))
        return values.astype(dtype, copy=False)


def square_root(C: Array) -> Matrix:
    """R of full column rank with R Rᵀ = C to rounding, for a positive semidefinite C: shape (m, rank).

    >>> import numpy as np
    >>> square_root(np.ones((3, 3)))
    array([[1.],
           [1.],
           [1.]])
    """
    factor, order, rank, _ = lapack.dpstrf(np.asarray(C, dtype=np.float64), lower=1)
    R = np.zeros((len(C), rank))
    R[order - 1] = np.tril(factor)[:, :rank]
    return R
