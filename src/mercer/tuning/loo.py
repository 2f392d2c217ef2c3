"""The leave-one-out error, how well each point is predicted from all others, and its derivative, in closed form.

With J, the first n rows and columns of [[K + alpha W⁻¹, P], [Pᵀ, 0]]⁻¹, and c = J y, the model fitted without point i
misses it by rᵢ = cᵢ/Jᵢᵢ. Because dJ = −J dK J, with or without a tail, the error E = Σᵢ wᵢ rᵢ² has the derivative

    dE = ⟨J diag(q) J − (J p) cᵀ, dK⟩,      p = 2 w r/diag J,   q = 2 w r²/diag J,

one product of matrices for all parameters together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer import memory
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.eigen import Eigendecomposition
from mercer.solvers.left_out import LeftOutSample
from mercer.solvers.primal import FeatureSpectrum
from mercer.threads import single_threaded_blas

Matrix = NDArray[np.float64]

BEYOND = 100.0
"""The path reaches beyond the eigenvalues by this factor: down to near-interpolation, up to the tail alone."""
PER_DECADE = 3
"""The number of values of alpha per factor of ten, before the best one is refined."""
FLAT = 1e-10
"""Errors that differ by less than this share of the targets' squares count as equal: the larger alpha is better."""
ONE_THREAD = 512
"""Up to this number of points matrices are too small for several threads."""


# -- every alpha from one eigendecomposition ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """The leave-one-out error along alpha, and the alpha of least error.

    Attributes
    ----------
    alphas : array
        The values of alpha, ascending, shape (a,).
    errors : array
        Σ w r²/Σ w at each of them, shape (a, t).
    chosen : array
        The alpha of least error for each target, shape (t,); between the values of `alphas`.
    error : array
        The error there, shape (t,).
    """

    alphas: Matrix
    errors: Matrix
    chosen: Matrix
    error: Matrix


def choose_alpha(spectrum: Eigendecomposition | FeatureSpectrum, y: Matrix, weights: Matrix | None = None) -> Matrix:
    """For each target the alpha of least weighted leave-one-out error, shape (t,).

    Parameters
    ----------
    spectrum : Eigendecomposition or FeatureSpectrum
        The eigendecomposition of a problem with n points.
    y : array
        Targets, shape (n, t).
    weights : array or None
        Weights of the errors, shape (n,); by default those of the problem.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X, noise = np.linspace(0, 6, 60)[:, None], np.random.default_rng(0).normal(size=(60, 1))
    >>> y = np.sin(X) + 0.1 * noise
    >>> problem = LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), y, np.ones(1))
    >>> choose_alpha(Eigendecomposition(problem), y).round(5)
    array([0.00018])
    """
    return alpha_path(spectrum, y, weights).chosen


def alpha_path(spectrum: Eigendecomposition | FeatureSpectrum, y: Matrix, weights: Matrix | None = None) -> AlphaPath:
    """The errors from near-interpolation to the tail alone, and their minimum."""
    w = spectrum.roots**2 if weights is None else weights
    w = w / w.sum()
    return least_error(_Path(spectrum, y, w).errors, _range(spectrum), FLAT * (w @ y**2))


def sampled_path(sample: LeftOutSample) -> AlphaPath:
    """The same over rows that are too many to hold, by the errors of a sample of them."""
    y, w = sample.y, sample.weights
    return least_error(sample.errors, _range(sample), FLAT * np.average(y**2, axis=0, weights=w))


def least_error(errors_of: Callable[[Matrix, list[int]], Matrix], logs: Matrix, flat: Matrix) -> AlphaPath:
    """The errors at evenly spaced log alphas, and their minimum for each target, refined by three nested grids.

    Parameters
    ----------
    errors_of
        The errors at some log alphas for some targets, shape (a, targets).
    logs
        Log alphas, ascending.
    flat
        Errors of a target that differ by less than this count as equal, shape (t,).
    """
    targets = list(range(len(flat)))
    errors = errors_of(logs, targets)
    best = np.array([_largest_of_least(errors[:, t], flat[t]) for t in targets])
    chosen, least = logs[best], errors[best, targets]
    step = logs[1] - logs[0]
    for _ in range(3):
        offsets = step * np.linspace(-1, 1, 9)
        for t in targets:
            fine = np.clip(chosen[t] + offsets, logs[0], logs[-1])
            nearby = errors_of(fine, [t])[:, 0]
            at = _largest_of_least(nearby, flat[t])
            # Move only if the error falls by more than rounding: on a flat curve the larger alpha stays.
            if nearby[at] < least[t] - flat[t]:
                chosen[t], least[t] = fine[at], nearby[at]
        step /= 4
    return AlphaPath(np.exp(logs), errors, np.exp(chosen), least)


def path_errors(
    spectrum: Eigendecomposition | FeatureSpectrum, y: Matrix, logs: Matrix, weights: Matrix | None = None
) -> Matrix:
    """The mean weighted leave-one-out squared error at each log alpha, shape (a, t)."""
    w = spectrum.roots**2 if weights is None else weights
    path = _Path(spectrum, y, w / w.sum())
    return path.errors(logs, list(range(y.shape[1])))


def _range(spectrum: Eigendecomposition | FeatureSpectrum | LeftOutSample) -> Matrix:
    """Logarithms of alpha, evenly spaced."""
    largest = max(float(spectrum.values.max(initial=0.0)), np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
    smallest = float(spectrum.values[spectrum.values > 0].min()) if spectrum.rank else largest
    low = float(np.log(max(spectrum.tolerance, smallest / BEYOND)))
    high = max(float(np.log(largest * BEYOND)), low)  # equal if no feature varies: then every alpha is the same
    return np.linspace(low, high, 2 + int(np.ceil(PER_DECADE * (high - low) / np.log(10.0))))


def _largest_of_least(errors: Matrix, flat: float) -> int:
    """The last position whose error is the smallest one, up to `flat`."""
    return int(np.flatnonzero(errors <= errors.min() + flat)[-1])


class _Path:
    """The weighted leave-one-out errors of some targets for many alphas: a product of matrices for each target."""

    def __init__(self, spectrum: Eigendecomposition | FeatureSpectrum, y: Matrix, w: Matrix) -> None:
        self.spectrum, self.w, self.y = spectrum, w, y
        if isinstance(spectrum, Eigendecomposition):
            self.Z = spectrum.coordinates(spectrum.roots[:, None] * y)

    def errors(self, logs: Matrix, targets: list[int]) -> Matrix:
        """The errors, shape (a, t)."""
        s = self.spectrum
        if not isinstance(s, Eigendecomposition):
            residuals = np.stack([s.at(float(alpha)).leave_one_out(self.y[:, targets]) for alpha in np.exp(logs)])
            return np.einsum("ait,i->at", residuals**2, self.w)
        D = 1.0 / (s.values[:, None] + np.exp(logs))
        g = s.squares @ D
        maps = []
        if s.tail is not None:
            maps = [s.at(float(alpha)).B for alpha in np.exp(logs)]
            for j, B in enumerate(maps):
                g[:, j] -= np.einsum("ip,ip->i", s.vectors @ (D[:, [j]] * s.tail), s.vectors @ B.T)
        # Without a point that alone determines the tail there is no model: g is then 0 up to rounding.
        g = s.roots[:, None] * np.maximum(g, np.finfo(np.float64).eps * D.max(axis=0))
        errors = np.empty((len(logs), len(targets)))
        for i, t in enumerate(targets):
            Z = self.Z[:, [t]]
            inside = Z if s.tail is None else Z - s.tail @ np.hstack([B @ Z for B in maps])
            errors[:, i] = self.w @ (s.vectors @ (D * inside) / g) ** 2
        return errors


# -- one kernel, one alpha, with the derivative ------------------------------------------------------------------------


def blas_threads(n: int) -> contextlib.AbstractContextManager[None]:
    """One BLAS thread for small matrices, for which several would only wait for each other."""
    return single_threaded_blas() if n <= ONE_THREAD else contextlib.nullcontext()


def factorised(
    kernel: Similarity, points: Points, alpha: float, roots: Matrix | None, tail: Matrix | None
) -> CholeskyFactor:
    """The system at one kernel and one alpha, in the memory of one matrix."""
    K = kernel(points, dtype=np.float64)
    if roots is not None:
        K *= roots[:, None]
        K *= roots
    return CholeskyFactor(K, alpha, roots, tail)


def loo_error(
    kernel: Similarity,
    points: Points,
    y: Matrix,
    alpha: float,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    gradient: bool = True,
) -> tuple[float, Matrix]:
    """The mean leave-one-out squared error Σᵢₜ wᵢ rᵢₜ²/(t Σ wᵢ), and its gradient by (kernel.theta, log alpha).

    Parameters
    ----------
    kernel, points : Similarity, Points
        Those of K.
    y : array
        Targets, shape (n, t), that share the kernel and alpha.
    alpha : float
        The penalty, > 0.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    gradient : bool
        Whether to compute the gradient; otherwise it is empty.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> k, X, y = mc.Gaussian(1.0), np.linspace(0, 6, 30)[:, None], np.ones((30, 1))
    >>> value, slopes = loo_error(k, k.prepare(X), y, 0.1)
    >>> round(value, 5), slopes.shape
    (0.00124, (2,))
    """
    with blas_threads(len(y)):
        factor = factorised(kernel, points, alpha, roots, tail)
        J = factor.into_inverse() if gradient else np.empty((0, 0))
        c, g = (J @ y, np.diagonal(J).copy()) if gradient else (factor.solve(y)[0], factor.diagonal())
        # Without a point that alone determines the tail there is no model: J is then 0 up to rounding.
        g = np.maximum(g, np.finfo(np.float64).eps * np.abs(g).max())
        r = c / g[:, None]
        w = np.full(len(y), 1.0 / y.size) if roots is None else roots**2 / (y.shape[1] * float(roots @ roots))
        value = float(w @ (r * r).sum(axis=1))
        if not gradient:
            return value, np.empty(0)
        p = 2.0 * (w / g)[:, None] * r
        q = 2.0 * w * (r * r).sum(axis=1) / g
        Jp = J @ p
        J *= np.sqrt(q)
        A = J @ J.T
        A -= Jp @ c.T
        noise = np.diagonal(A) if roots is None else np.diagonal(A) / roots**2
        return value, np.append(kernel.gradient(points, A), alpha * float(noise.sum()))


def require_others(n: int, tail: Matrix | None) -> None:
    """Refuse to leave a point out if the tail needs all n points."""
    p = 0 if tail is None else tail.shape[1]
    if n <= p:
        raise InvalidInput(
            f"Leave-one-out needs more points than the {p} of an intercept or polynomial",
            got=n,
            advice="Add points, use a lower degree (or no intercept), or tune by='evidence'.",
        )


def require_memory(n: int) -> None:
    """Refuse a criterion whose matrices do not fit into memory, with their size."""
    memory.allocatable(
        3 * 8 * n * n, f"Tuning on {n} points", "Tune on a sample: mc.tune(model, X[:5000], y[:5000]), then fit on all."
    )
