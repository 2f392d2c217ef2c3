"""A grid of kernels and penalties in closed form: one Gram matrix for all folds and all alphas.

Cross-validation is a race. Every candidate runs on the first fold; one that is worse there than the best by many
standard errors of the paired difference cannot catch up, and the other folds are spared it. The errors themselves are
exact, and those of the candidates that stay in the race are over all folds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer import gram, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import lapack
from mercer.kernels.base import Kernel
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.eigen import Spectrum
from mercer.tuning.evidence import log_evidence
from mercer.tuning.loo import Matrix, fits, loo_error, path_errors, require_others
from mercer.tuning.search import together

# A candidate leaves the race when it is worse than the best by this many standard errors of the difference.
BEHIND = 5.0
# Before this many points were seen, standard errors say little, and nobody leaves.
EARLY = 200
# From this many points on the race is run in single precision, and those within this share of the best error run again.
SINGLE, CLOSE = 1000, 0.01
# Gram matrices that are held at once, so that their candidates share the threads evenly.
BATCH = 4
# From this many alphas on one eigendecomposition is cheaper than a factor for each.
EIGEN = 8


@dataclass(frozen=True, eq=False)
class Grid:
    """The criterion at every kernel and alpha.

    Attributes
    ----------
    kernels, alphas : k of them, and a.
    by : "loo", "evidence", or the number of folds.
    values : shape (k, a): mean leave-one-out squared errors, log evidences, or mean R² over folds; NaN where the system
        could not be solved.
    folds : shape (k, a): over how many folds the mean is (all of them for those that could have won); 0 without folds.
    best : position (kernel, alpha) of the chosen one.
    """

    kernels: tuple[Kernel, ...]
    alphas: Matrix
    by: str | int
    values: Matrix
    folds: NDArray[np.int64]
    best: tuple[int, int]

    @property
    def kernel(self) -> Kernel:
        return self.kernels[self.best[0]]

    @property
    def alpha(self) -> float:
        return float(self.alphas[self.best[1]])

    @property
    def value(self) -> float:
        return float(self.values[self.best])


def evaluate_grid(
    kernels: Sequence[Kernel],
    alphas: Matrix,
    points: Points,
    y: Matrix,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    by: str | int = "loo",
) -> Grid:
    """Every kernel with every alpha: leave-one-out errors, evidences, or R² of K contiguous folds.

    Parameters
    ----------
    kernels, alphas : the candidates; of equal ones the first kernel, then the first alpha, is chosen.
    points, y : n points, and targets of shape (n, t) that share kernel and alpha.
    roots, tail : √w and P as in `LeastSquares`, or None.
    by : "loo", "evidence", or the number of folds ≥ 2. R² is averaged over targets and folds, as in scikit-learn.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> kernels = [mc.Gaussian(s) for s in (0.01, 1.0, 100.0)]
    >>> found = evaluate_grid(kernels, np.array([1e-4, 1.0]), mc.Gaussian().prepare(X), np.sin(X), by=5)
    >>> found.kernel, found.alpha, found.folds.tolist()
    (Gaussian(sigma=1.0), 0.0001, [[5, 1], [5, 1], [1, 1]])
    """
    n, alphas = len(y), np.asarray(alphas, dtype=np.float64)
    fits(n)
    if isinstance(by, (int, np.integer)) and not isinstance(by, bool):
        by = int(by)
        if not 2 <= by <= n:
            raise InvalidInput(f"The number of folds must be 2 … {n}", got=by, advice="Take 5, or by='loo'.")
        everyone = np.ones((len(kernels), len(alphas)), dtype=bool)
        rest = points, y, roots, tail, by
        if n < SINGLE:
            return _race(tuple(kernels), alphas, *rest, everyone, np.float64)
        # Single precision tells who can win; double precision decides among those.
        rough = _race(tuple(kernels), alphas, *rest, everyone, np.float32)
        near = (rough.folds == by) & (rough.values >= rough.value - CLOSE * (1.0 - rough.value))
        exact = _race(tuple(kernels), alphas, *rest, near | np.isnan(rough.values), np.float64)
        off = np.abs(exact.values - rough.values)[near & (exact.folds == by)]
        if not (off < 0.25 * CLOSE * (1.0 - exact.value)).all():
            return _race(tuple(kernels), alphas, *rest, everyone, np.float64)
        known = exact.folds == by
        values, folds = np.where(known, exact.values, rough.values), np.where(known, by, np.minimum(rough.folds, by))
        return Grid(tuple(kernels), alphas, by, values, folds, exact.best)
    if not isinstance(by, str) or by not in ("loo", "evidence"):
        raise InvalidInput('`by` must be "loo", "evidence" or a number of folds', got=repr(by), advice="Such as 5.")
    if by == "loo":
        require_others(n, tail)
    values = np.full((len(kernels), len(alphas)), np.nan)
    # The path is one of log alpha: 0, which asks for a positive definite K, is not on it.
    path = (alphas > 0) & (by == "loo") & (len(alphas) >= EIGEN)
    if path.any():
        for i, kernel in enumerate(kernels):
            spectrum = Spectrum(LeastSquares(gram.of(kernel, points), y, np.ones(y.shape[1]), roots, tail))
            values[i, path] = path_errors(spectrum, y, np.log(alphas[path])).mean(axis=1)
    criterion: Callable[..., tuple[float, Matrix]] = loo_error if by == "loo" else log_evidence

    def job(i: int, j: int) -> None:
        with contextlib.suppress(np.linalg.LinAlgError):
            values[i, j] = criterion(kernels[i], points, y, float(alphas[j]), roots, tail, gradient=False)[0]

    threads.run([partial(job, i, j) for i in range(len(kernels)) for j in map(int, np.flatnonzero(~path))])
    return _chosen(tuple(kernels), alphas, by, values, np.zeros(values.shape, dtype=np.int64))


def _chosen(
    kernels: tuple[Kernel, ...], alphas: Matrix, by: str | int, values: Matrix, folds: NDArray[np.int64]
) -> Grid:
    """The first of the best among those that were evaluated on all folds."""
    score = -values if by == "loo" else values
    score = np.where(np.isfinite(score) & (folds == folds.max()), score, -np.inf)
    if not np.isfinite(score).any():
        raise InvalidInput(
            "K + alpha I must be positive definite for some candidate",
            got="none that is, to rounding",
            advice="Put larger alphas into the grid.",
        )
    i, j = np.unravel_index(int(score.argmax()), score.shape)
    return Grid(kernels, alphas, by, values, folds, (int(i), int(j)))


def _race(
    kernels: tuple[Kernel, ...],
    alphas: Matrix,
    points: Points,
    y: Matrix,
    roots: Matrix | None,
    tail: Matrix | None,
    n_folds: int,
    racing: NDArray[np.bool_],
    dtype: type,
) -> Grid:
    """The candidates that are `racing`, fold by fold; the others are not looked at."""
    shape, racing = racing.shape, racing.copy()
    folds, losses = np.zeros(shape, dtype=np.int64), np.zeros((*shape, len(y)))
    totals = np.zeros(shape)
    seen = 0
    for test in np.array_split(np.arange(len(y)), n_folds):
        for batch in threads.spans(len(kernels), BATCH):
            part = range(*batch.indices(len(kernels)))
            entries = [(i, j) for i in part for j in range(len(alphas)) if racing[i, j]]
            made = {
                i: Fold(kernels[i](points, dtype=dtype), y, roots, tail, test) for i in sorted({i for i, _ in entries})
            }
            found = together([partial(made[i].losses, float(alphas[j])) for i, j in entries])
            for (i, j), loss in zip(entries, found):
                losses[i, j, test] = np.inf if loss is None else loss
                totals[i, j] += losses[i, j, test].mean()
                folds[i, j] += 1
        seen += len(test)
        racing &= np.isfinite(totals)
        if not racing.any():
            break
        best = np.unravel_index(int(np.where(racing, totals, np.inf).argmin()), shape)
        if seen >= EARLY:
            behind = losses[racing][:, :seen] - losses[best][:seen]
            racing[racing] = behind.mean(axis=1) <= BEHIND * behind.std(axis=1) / np.sqrt(seen)
    values = np.where(np.isfinite(totals) & (folds > 0), 1.0 - totals / np.maximum(folds, 1), np.nan)
    return _chosen(kernels, alphas, n_folds, values, folds)


class Fold:
    """One fold: what the rest of the data predicts about it, from the Gram matrix of all."""

    def __init__(
        self, K: Matrix, y: Matrix, roots: Matrix | None, tail: Matrix | None, test: NDArray[np.int64]
    ) -> None:
        self.K, self.y, self.tail, self.test = K, y, tail, test
        self.roots = np.ones(len(y)) if roots is None else roots
        self.train = np.delete(np.arange(len(y)), test)

    def losses(self, alpha: float) -> Matrix | None:
        """For each point of the fold its share of 1 − R², averaged over targets; None where there is no solution."""
        train, test = self.train, self.test
        s = self.roots[train][:, None].astype(self.K.dtype)
        A = without(self.K, int(test[0]), int(test[-1]) + 1)
        if (self.roots != 1).any():
            A *= s
            A *= s.T
        A.flat[:: len(A) + 1] += alpha
        factor = np.require(A.T, requirements=["F", "W"])
        if lapack.cholesky(factor, lower=False):
            return None
        u = sla.cho_solve((factor, False), (s * self.y[train]).astype(A.dtype), check_finite=False)
        f = 0.0
        if self.tail is not None:
            P = (s * self.tail[train]).astype(A.dtype)
            V = sla.cho_solve((factor, False), P, check_finite=False)
            b = np.linalg.lstsq(P.T @ V, P.T @ u, rcond=None)[0]
            u, f = u - V @ b, self.tail[test] @ b
        f = f + self.K[test[0] : test[-1] + 1, train] @ (s * u)
        w = self.roots[test][:, None] ** 2
        w = w / w.mean()
        y = self.y[test]
        squares = w * (y - f) ** 2
        spread = (w * (y - (w * y).mean(axis=0)) ** 2).mean(axis=0)
        # Constant targets have no R²; scikit-learn calls it 1 where they are met exactly, else 0.
        flat = spread == 0
        squares[:, flat] = np.where(squares[:, flat].any(axis=0), 1.0, 0.0)
        return np.asarray((squares / np.where(flat, 1.0, spread)).mean(axis=1))


def without(K: Matrix, start: int, stop: int) -> Matrix:
    """A copy of K without the rows and columns start … stop − 1: four blocks, several times faster than by index."""
    n, cut = len(K), stop - start
    A = np.empty((n - cut, n - cut), K.dtype)
    for rows, into in ((slice(0, start), slice(0, start)), (slice(stop, n), slice(start, n - cut))):
        A[into, :start] = K[rows, :start]
        A[into, start:] = K[rows, stop:]
    return A
