"""M ≈ K̃ + alpha I with a cheap inverse: a few iterations instead of hundreds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.solvers import costs
from mercer.solvers.base import Matrix
from mercer.solvers.cholesky import CholeskyFactor


class RoundedFactor:
    """M = L Lᵀ from the matrix rounded to float32: half the memory and twice the speed of the exact factor.

    Rounding spoils eigenvalues near or below 6e-8 of the largest; at usual alpha 3 to 6 iterations correct this.

    Parameters
    ----------
    K : array
        K̃ in float32; overwritten.
    alpha : float
        The shift, large enough that K + alpha I has a float32 factor, else `numpy.linalg.LinAlgError`.
    """

    def __init__(self, K: NDArray[np.float32], alpha: float) -> None:
        self.factor = CholeskyFactor(K, alpha)

    def __call__(self, R: Matrix) -> Matrix:
        """M⁻¹R. Columns are scaled first, because late residuals are below float32's range."""
        sizes = np.linalg.norm(R, axis=0)
        sizes[sizes == 0] = 1.0
        return self.factor.solve_system(R / sizes) * sizes


class LowRank:
    """M = F Fᵀ + alpha I, with M⁻¹R = (R − F (alpha I + FᵀF)⁻¹ FᵀR)/alpha.

    The smaller alpha is, the more of the spectrum F must hold: at alpha ≳ 0.05 of the kernel's scale a few hundred
    columns are enough, at 1e-3 they are not.

    Parameters
    ----------
    F : array
        Shape (n, k), Fortran-ordered; products with it keep its dtype.
    alpha : float
        > 0.
    """

    def __init__(self, F: NDArray[Any], alpha: float) -> None:
        self.F, self.alpha = np.asfortranarray(F), alpha
        k = F.shape[1]
        inner = np.zeros((k, k))
        for i in range(0, len(F), 4096):  # float64 sums, without a float64 copy of F
            part = F[i : i + 4096].astype(np.float64)
            inner += part.T @ part
        inner.flat[:: k + 1] += alpha
        self.inner = sla.cho_factor(inner, overwrite_a=True, check_finite=False)

    def __call__(self, R: NDArray[Any]) -> NDArray[Any]:
        """M⁻¹R, in the dtype of R."""
        # Only SciPy's BLAS is used: NumPy's has its own threads, and the two pools would block each other's cores.
        gemm, gemv = blas.get_blas_funcs(("gemm", "gemv"), (self.F,))
        Z = np.empty(R.shape, R.dtype, order="F")
        if R.shape[1] > costs.FEW_COLUMNS:
            G = self._inside(gemm(1.0, self.F, R, trans_a=1))
            Z[...] = gemm(1.0, self.F, G)
        else:
            for j in range(R.shape[1]):
                Z[:, j] = gemv(1.0, self.F, self._inside(gemv(1.0, self.F, R[:, j], trans=1)))
        np.subtract(R, Z, out=Z)
        Z /= R.dtype.type(self.alpha)
        return Z

    def _inside(self, G: NDArray[Any]) -> NDArray[Any]:
        """(alpha I + FᵀF)⁻¹ G, in float64."""
        return np.asarray(sla.cho_solve(self.inner, G.astype(np.float64), check_finite=False), dtype=self.F.dtype)
