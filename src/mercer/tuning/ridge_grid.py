"""Kernel ridge over a grid: every kernel with every alpha, compared over folds or in closed form.

Cross-validation is a race with a round for each fold: every candidate runs on the first fold; one that is worse than
the best by many standard errors of the paired difference cannot catch up, and does not run on the other folds. All
scores are exact, and those of candidates that stay in the race are over all folds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer import gram, threads
from mercer.data.cluster import Cluster
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.eigen import Eigendecomposition
from mercer.tuning.evidence import log_evidence
from mercer.tuning.folds import Fold, make_folds
from mercer.tuning.grid import Grid, GridCriterion, Mask, means_of, run_grid
from mercer.tuning.loo import Matrix, loo_error, path_errors, require_memory, require_others
from mercer.tuning.search import together
from mercer.tuning.trials import LOG_EVIDENCE, LOO_ERROR, Measure
from mercer.validation import check_choice

BEHIND = 5.0
"""A candidate leaves the race if it is worse than the best by this number of standard errors of the difference."""
EARLY = 200
"""No candidate leaves before this number of points was predicted: standard errors say little until then."""
CLOSE = 0.01
"""Candidates whose error in single precision is within this share of the best run again in double precision."""
BATCH = 4
"""Gram matrices that are held at once, so that their candidates share the threads evenly."""

Candidate: TypeAlias = Kernel | Callable[[Points], Kernel]
"""A kernel, or a rule points → kernel."""


def evaluate_grid(
    kernels: Sequence[Candidate],
    alphas: Matrix,
    points: Points,
    y: Matrix,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    by: str | int | list[Fold] = "loo",
    cluster: Cluster | None = None,
) -> Grid:
    """Every kernel with every alpha: leave-one-out errors, evidences, or R² over folds.

    Parameters
    ----------
    kernels, alphas : sequence of Candidate, array
        The candidates; among equally good ones the first kernel, then the first alpha, is chosen. A rule is resolved on
        the training rows of each fold, so that held-out rows never influence it.
    points, y : Points, array
        n points, and targets of shape (n, t) that share kernel and alpha.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    by : str, int or list of Fold
        "loo", "evidence", a number of contiguous folds, or folds. R² is averaged over targets and folds, as in
        scikit-learn.
    cluster : Cluster or None
        Where the candidates are tried, by default in this process.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> kernels = [mc.Gaussian(s) for s in (0.01, 1.0, 100.0)]
    >>> grid = evaluate_grid(kernels, np.array([1e-4, 1.0]), mc.Gaussian().prepare(X), np.sin(X), by=5)
    >>> grid.parameters, grid.folds.tolist()
    ({'kernel': Gaussian(sigma=1.0), 'alpha': 0.0001}, [[5, 1], [5, 1], [1, 1]])
    """
    n, alphas = len(y), np.asarray(alphas, dtype=np.float64)
    require_memory(n)
    everyone = np.ones((len(kernels), len(alphas)), dtype=bool)
    resolved = [_kernel(candidate, points) for candidate in kernels]
    if isinstance(by, str):
        advice = "Pass 5 for folds, or 'loo'."
        check_choice(by, "by", ("loo", "evidence"), alternative="a number of folds", advice=advice)
        closed = ClosedForm(resolved, alphas, points, y, roots, tail, by)
        return _solvable(Grid.of(closed.measure, resolved, "alpha", alphas, run_grid(closed, everyone, cluster)))
    folds = by if isinstance(by, list) else make_folds(n, by, shuffle=False)
    order = np.concatenate([fold.test for fold in folds])
    if len(order) == n and all(len(fold.train) + len(fold.test) == n for fold in folds):
        # Each row is held out once. In this order folds are contiguous, and their parts of a matrix are quickly copied.
        points, y = points.take(order), y[order]
        roots, tail = (None if a is None else a[order] for a in (roots, tail))
        folds = make_contiguous([len(fold.test) for fold in folds])

    def race(racing: Mask, dtype: type) -> Grid:
        criterion = FoldErrors(kernels, alphas, points, y, roots, tail, folds, dtype)
        scores = run_grid(criterion, racing, cluster)
        return _solvable(Grid.of(criterion.measure, resolved, "alpha", alphas, scores))

    if n < costs.FLOAT64_ROWS:
        return race(everyone, np.float64)
    # Single precision finds the candidates that can win; double precision decides among them.
    rough = race(everyone, np.float32)
    near = (rough.folds == len(folds)) & (rough.values >= rough.value - CLOSE * (1.0 - rough.value))
    exact = race(near | np.isnan(rough.values), np.float64)
    complete = exact.folds == len(folds)
    errors = np.abs(exact.values - rough.values)[near & complete]
    if not (errors < 0.25 * CLOSE * (1.0 - exact.value)).all():
        return race(everyone, np.float64)
    scores = np.where(complete[..., None], exact.scores, rough.scores)
    return Grid(exact.measure, tuple(resolved), "alpha", alphas, scores, exact.best)


def _kernel(candidate: Candidate, points: Points) -> Kernel:
    return candidate if isinstance(candidate, Kernel) else candidate(points)


def _solvable(grid: Grid) -> Grid:
    if not np.isfinite(grid.value):
        raise InvalidInput(
            "K + alpha I must be positive definite for some candidate",
            got="a singular matrix, up to rounding, for every candidate",
            advice="Put larger alphas into the grid.",
        )
    return grid


def make_contiguous(sizes: Sequence[int]) -> list[Fold]:
    """Folds of these sizes, one after the other."""
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    return [Fold(np.flatnonzero(numbers != i), np.flatnonzero(numbers == i)) for i in range(len(sizes))]


@dataclass(eq=False)
class OfKernelRidge(GridCriterion):
    """A criterion of kernel ridge: its candidates, and the data."""

    kernels: Sequence[Any]
    alphas: Matrix
    points: Points
    y: Matrix
    roots: Matrix | None
    tail: Matrix | None


@dataclass(eq=False)
class ClosedForm(OfKernelRidge):
    """Leave-one-out errors or evidences: no folds."""

    by: str
    rounds = ((0,),)

    def __post_init__(self) -> None:
        if self.by == "loo":
            require_others(len(self.y), self.tail)
        self.measure = LOO_ERROR if self.by == "loo" else LOG_EVIDENCE

    def evaluate(self, racing: Mask, folds: Sequence[int], scores: Matrix) -> None:
        """Many alphas > 0 are evaluated by one eigendecomposition, others one by one."""
        alphas, y = self.alphas, self.y
        by_path = self.measure == LOO_ERROR and len(alphas) >= costs.FACTORS
        # The path is one of log alpha: alpha = 0, which needs a positive definite K, is not on it.
        path = (alphas > 0) & by_path
        if path.any():
            for i in np.flatnonzero(racing.any(axis=1)).tolist():
                problem = LeastSquares(
                    gram.of(self.kernels[i], self.points), y, np.ones(y.shape[1]), self.roots, self.tail
                )
                scores[i, path, 0] = path_errors(Eigendecomposition(problem), y, np.log(alphas[path])).mean(axis=1)
        value: Callable[..., tuple[float, Matrix]] = loo_error if self.measure == LOO_ERROR else log_evidence
        worst = -np.inf if self.measure.greater else np.inf

        def job(i: int, j: int) -> None:
            scores[i, j, 0] = worst
            with contextlib.suppress(np.linalg.LinAlgError):
                arguments = self.kernels[i], self.points, y, float(alphas[j]), self.roots, self.tail
                scores[i, j, 0] = value(*arguments, gradient=False)[0]

        threads.run([partial(job, int(i), int(j)) for i, j in np.argwhere(racing & ~path)])


@dataclass(eq=False)
class FoldErrors(OfKernelRidge):
    """R² over folds, in one precision: a race with a round for each fold."""

    folds: Sequence[Fold]
    dtype: type

    def __post_init__(self) -> None:
        self.rounds = tuple((i,) for i in range(len(self.folds)))
        self.measure = Measure(f"{len(self.folds)}-fold R²", f"mean R² of {len(self.folds)} folds", greater=True)
        self.ends = np.cumsum([0, *(len(fold.test) for fold in self.folds)])
        self.losses = np.zeros((len(self.kernels), len(self.alphas), self.ends[-1]))
        self.seen = 0

    def evaluate(self, racing: Mask, folds: Sequence[int], scores: Matrix) -> None:
        """Compute the losses of the rows of each fold, and their means."""
        for number in folds:
            fold, rows = self.folds[number], slice(self.ends[number], self.ends[number + 1])
            for batch in threads.spans(len(self.kernels), BATCH):
                part = range(*batch.indices(len(self.kernels)))
                entries = [(i, j) for i in part for j in range(len(self.alphas)) if racing[i, j]]
                systems = {i: self._system(i, fold) for i in sorted({i for i, _ in entries})}
                losses = together([partial(systems[i].losses, float(self.alphas[j])) for i, j in entries])
                for (i, j), loss in zip(entries, losses):
                    self.losses[i, j, rows] = np.inf if loss is None else loss
                    scores[i, j, number] = 1.0 - self.losses[i, j, rows].mean()
            self.seen = int(self.ends[number + 1])

    def _system(self, i: int, fold: Fold) -> FoldSystem:
        candidate = self.kernels[i]
        kernel = candidate if isinstance(candidate, Kernel) else candidate(self.points.take(fold.train))
        return FoldSystem(kernel(self.points, dtype=self.dtype), self.y, self.roots, self.tail, fold)

    def still(self, racing: Mask, scores: Matrix) -> Mask:
        """The candidates that can be solved and are not far behind the best."""
        means = means_of(scores)
        racing = racing & np.isfinite(means)
        if self.seen < EARLY or not racing.any():
            return racing
        best = np.unravel_index(int(np.where(racing, means, -np.inf).argmax()), racing.shape)
        behind = self.losses[racing][:, : self.seen] - self.losses[best][: self.seen]
        racing[racing] = behind.mean(axis=1) <= BEHIND * behind.std(axis=1) / np.sqrt(self.seen)
        return racing


class FoldSystem:
    """One fold: predictions from its training rows for its test rows, by the Gram matrix of all rows."""

    def __init__(self, K: Matrix, y: Matrix, roots: Matrix | None, tail: Matrix | None, fold: Fold) -> None:
        self.K, self.y, self.tail = K, y, tail
        self.train, self.test = fold
        self.roots = np.ones(len(y)) if roots is None else roots

    def losses(self, alpha: float) -> Matrix | None:
        """The share of each test row in 1 − R², averaged over targets; None if there is no solution."""
        train, test = self.train, self.test
        s = self.roots[train][:, None].astype(self.K.dtype)
        A, cross = parted(self.K, train, test)
        if (self.roots != 1).any():
            A *= s
            A *= s.T
        try:
            factor = CholeskyFactor(A, alpha, self.roots[train], None if self.tail is None else self.tail[train])
        except np.linalg.LinAlgError:
            return None
        c, b = factor.solve(self.y[train])
        f = cross @ c.astype(cross.dtype)
        if b is not None and self.tail is not None:
            f = f + self.tail[test] @ b
        w = self.roots[test][:, None] ** 2
        w = w / w.mean()
        y = self.y[test]
        squares = w * (y - f) ** 2
        spread = (w * (y - (w * y).mean(axis=0)) ** 2).mean(axis=0)
        # Constant targets have no R²; in scikit-learn it is 1 if they are predicted exactly, otherwise 0.
        flat = spread == 0
        squares[:, flat] = np.where(squares[:, flat].any(axis=0), 1.0, 0.0)
        return np.asarray((squares / np.where(flat, 1.0, spread)).mean(axis=1))


def parted(K: Matrix, train: NDArray[np.int64], test: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
    """Copies of K among the training rows, and between test and training rows.

    For a contiguous fold the first consists of four blocks: copying these is several times faster than by index.
    """
    n, start, stop = len(K), int(test[0]), int(test[-1]) + 1
    cut = stop - start
    if cut != len(test) or len(train) + cut != n:
        return K[np.ix_(train, train)], K[np.ix_(test, train)]
    A = np.empty((n - cut, n - cut), K.dtype)
    for rows, into in ((slice(0, start), slice(0, start)), (slice(stop, n), slice(start, n - cut))):
        A[into, :start] = K[rows, :start]
        A[into, start:] = K[rows, stop:]
    return A, K[start:stop, train]
