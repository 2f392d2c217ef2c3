"""The evidence: how probable the targets were when only the kernel and the noise were known.

With A = K + alpha W⁻¹, the covariance of the targets, the log marginal likelihood and its derivative are

    log p(y) = −½ yᵀA⁻¹y − ½ log det A − ½ n log 2π,      d log p = ½ ⟨c cᵀ − A⁻¹, dA⟩,   c = A⁻¹y.

An unpenalised tail has a flat prior. Integrating it out gives the restricted likelihood, in which the bordered inverse
J replaces A⁻¹, log det(PᵀA⁻¹P) − log det(PᵀP) is added to the determinant, and n − p replaces n.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from mercer.data.points import Points
from mercer.kernels.base import Similarity
from mercer.solvers.factor import Factor, Matrix
from mercer.tuning.loo import blas_threads, factorised


def gaussian(misfit: float, log_determinant: float, n: float, t: int = 1) -> float:
    """The log density of t draws of n numbers with one covariance A, where `misfit` is the sum of their yᵀA⁻¹y.

    >>> round(gaussian(0.0, 0.0, 1), 4)                                    # the standard normal density at 0
    -0.9189
    """
    return -0.5 * (misfit + t * (log_determinant + n * float(np.log(2 * np.pi))))


def of_factor(factor: Factor, y: Matrix, c: Matrix, scale: float = 0.0) -> float:
    """The log evidence of targets y with the coefficients c, shapes (n, t), for the covariance e^scale (K + alpha W⁻¹).

    An unpenalised tail is integrated out: the restricted likelihood.
    """
    n, t = y.shape
    log_determinant, tail = factor.log_determinant(), factor.tail
    if tail is not None:
        log_determinant -= float(np.linalg.slogdet(tail.T @ tail)[1])
        n -= tail.shape[1]
    return gaussian(float(np.exp(-scale)) * float(np.vdot(y, c)), log_determinant + n * scale, n, t)


def log_evidence(
    kernel: Similarity,
    points: Points,
    y: Matrix,
    alpha: float,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    gradient: bool = True,
) -> tuple[float, Matrix]:
    """The exact log marginal likelihood, summed over targets, and its gradient by (kernel.theta, log alpha).

    Parameters
    ----------
    kernel, points : Similarity, Points
        Those of K.
    y : array
        Targets, shape (n, t), independent draws that share the kernel and the noise.
    alpha : float
        The variance of the noise, > 0; with weights it is alpha/wᵢ.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    gradient : bool
        Whether to compute the gradient; otherwise it is empty.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 5.4 and equation (2.45).

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> k, X, y = mc.Gaussian(1.0), np.array([[0.0], [5.0]]), np.ones((2, 1))
    >>> value, slopes = log_evidence(k, k.prepare(X), y, 1.0)
    >>> bool(np.isclose(value, -0.5 - np.log(2) - np.log(2 * np.pi), atol=1e-5)), slopes.shape
    (True, (2,))
    """
    value, slopes, _ = _evidence(kernel, points, y, alpha, roots, tail, gradient, None)
    return value, slopes


def profiled_evidence(
    kernel: Similarity,
    points: Points,
    y: Matrix,
    alpha: float,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    shifts: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[float, Matrix, float]:
    """The best evidence of e^δ(K + alpha W⁻¹) over δ, the gradient there, and δ = log(yᵀJy/n t) itself.

    The best common factor of the signal's variance and the noise is a closed form, so that no search is needed for it.
    `shifts` are the bounds of δ.
    """
    return _evidence(kernel, points, y, alpha, roots, tail, True, shifts)


def _evidence(
    kernel: Similarity,
    points: Points,
    y: Matrix,
    alpha: float,
    roots: Matrix | None,
    tail: Matrix | None,
    gradient: bool,
    shifts: tuple[float, float] | None,
) -> tuple[float, Matrix, float]:
    n, t = y.shape
    with blas_threads(n):
        factor = factorised(kernel, points, alpha, roots, tail)
        c, _ = factor.solve(y)
        free, shift = t * (n if tail is None else n - tail.shape[1]), 0.0
        if shifts is not None and free > 0:
            misfit = max(float(np.vdot(y, c)), np.finfo(np.float64).tiny)
            shift = float(np.clip(np.log(misfit / free), *shifts))
        value = of_factor(factor, y, c, shift)
        if not gradient:
            return value, np.empty(0), shift
        J = factor.into_inverse()
        # ½(ccᵀ − tJ) in place; the factor e^δ of dK and that of J cancel.
        adjoint = blas.dgemm(0.5 * np.exp(-shift), c, c, beta=-0.5 * t, c=J.T, trans_b=True, overwrite_c=1)
        noise = np.diagonal(adjoint) if roots is None else np.diagonal(adjoint) / roots**2
        return value, np.append(kernel.gradient(points, adjoint.T), alpha * float(noise.sum())), shift
