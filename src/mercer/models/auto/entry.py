"""A kernel in the race: its parameters so far, and the descent of its leave-one-out error on some rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.kernels.base import Kernel
from mercer.models.auto.candidates import widened
from mercer.models.auto.plan import Clock
from mercer.models.base import Matrix
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.quasi_newton import Evaluation, minimise
from mercer.tuning.ranges import narrowest
from mercer.tuning.trials import Trial

# One width per column from this many rows per column, up to this many columns.
ROWS_PER_COLUMN, MOST_COLUMNS = 4.0, 200
# A descent ends where a step promises less than this (in nats, as of a log likelihood).
LEAST_STEP_GAIN = 1.0
# Each width per column must gain this much (in nats, as of a log likelihood) to be kept.
WIDTH_PRICE = 3.0
# The largest logarithmic change of widths, and the least and largest penalty in units of k(x, x).
WIDTH_REACH, LEAST_PENALTY, MOST_PENALTY = 5.0, 1e-7, 1e3


@dataclass(frozen=True, eq=False)
class Problem:
    """Least squares on some rows.

    Attributes
    ----------
    points, y, roots : Points, array, array or None
        The points, their targets (n, t), and √w or None.
    freedom : float
        The standard deviation of log σ around a common width, in units of √(n/d).
    enough : int
        The number of rows of the second race; larger problems use half of their rows.
    units, names : array or None, tuple of str
        The numbers that the columns are divided by (None if they are not numeric), and their names.
    rates : bool
        Whether the targets are counts per unit of exposure.
    """

    points: Points
    y: Matrix
    roots: Matrix | None = None
    freedom: float = 0.1
    enough: int = 1000
    units: Matrix | None = None
    names: tuple[str, ...] = ()
    rates: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: NDArray[np.int64]) -> Problem:
        if len(index) == len(self):
            return self
        roots = None if self.roots is None else self.roots[index]
        return replace(self, points=self.points.take(index), y=self.y[index], roots=roots)

    def in_units(self) -> Problem:
        """The same problem with columns of standard deviation one, centred at zero if they are dense."""
        if self.units is None:
            return self
        X = self.points.vectors()
        if sp.issparse(X):
            return replace(self, points=Points(X.multiply(1.0 / self.units).tocsr()))
        X = np.asarray(X, dtype=np.float64)
        return replace(self, points=Points((X - X.mean(axis=0)) / self.units))


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel with its parameters and alpha so far.

    Attributes
    ----------
    name, kernel, alpha : str, Kernel, float
        Its name, its kernel and the penalty so far.
    start : Kernel
        The kernel at first, with widths in the proportions to which the prior draws: those of the columns' spread, or
        of their relevance.
    by_column : bool
        Whether the columns differ in their widths, in units of their spread.
    each : bool
        Whether every width moves by itself, or all of a group together.
    value : float
        ½ n log(leave-one-out error) plus the cost of the prior, on the n rows that it was last tuned on.
    error, rows : float, int
        The leave-one-out error of that value, and n.
    curvature : array or None
        The second derivatives of the value by the parameters that moved, or None.
    """

    name: str
    kernel: Kernel
    alpha: float
    start: Kernel
    by_column: bool = False
    each: bool = False
    value: float = np.inf
    error: float = np.nan
    rows: int = 0
    curvature: Matrix | None = None

    @classmethod
    def of(cls, name: str, kernel: Kernel, points: Points) -> Entry:
        size = float(np.mean(kernel.diag(points)))
        return cls(name, kernel, 0.1 * (size if np.isfinite(size) and size > 0 else 1.0), kernel)

    @property
    def label(self) -> str:
        return f"{self.name}, one width per column" if self.by_column else self.name

    @property
    def paid(self) -> float:
        """Its value, plus the gain that a width per column must bring before it pays."""
        return self.value + WIDTH_PRICE * self.by_column

    def trial(self, variance: float) -> Trial:
        """Its place in the record, by its error as a share of the variance."""
        parameters = {"kernel": self.kernel, "alpha": self.alpha}
        return Trial(parameters, self.error / variance, rows=self.rows, name=self.label, note=f"on {self.rows} rows")

    def times(self, factors: Matrix | None) -> Entry:
        """The same entry with its widths times these factors."""
        if factors is None:
            return self
        return replace(self, kernel=widened(self.kernel, factors), start=widened(self.start, factors))

    def freed(self, problem: Problem) -> Entry | None:
        """The same entry with a width for each column, and the curvature that follows from that of the common widths.

        None if there is only one column, or too few rows.
        """
        free = self.vector(problem)
        if not free.separable(len(problem)):
            return None
        assert self.curvature is not None
        A = tied(free.kernel)
        p = len(A)
        mean = A / A.sum(axis=0)
        within = np.eye(p) - mean @ A.T
        B = mean @ self.curvature @ mean.T + within * float(np.mean(np.diag(self.curvature) / A.sum(axis=0)))
        return replace(free, by_column=True, each=True, curvature=B)

    def moving(self, problem: Problem) -> Entry:
        """The same entry; where columns differ in their widths, each width moves by itself if there are enough rows."""
        return self if self.each or not self.by_column else self.freed(problem) or self

    def separable(self, n: int, rows_per_column: float = ROWS_PER_COLUMN) -> bool:
        """Whether there is more than one column, and n rows are enough for a width for each."""
        p = len(self.kernel.theta) + 1
        return len(groups(self.kernel)) + 1 < p <= min(MOST_COLUMNS, n / rows_per_column)

    def vector(self, problem: Problem) -> Entry:
        """The same entry with a width written for each column."""
        return self.times(None if problem.units is None else np.ones(len(problem.units)))


def groups(kernel: Kernel) -> dict[str, list[int]]:
    """The positions of the parameters in theta by group: the widths of a kernel's columns are one group."""
    by_name: dict[str, list[int]] = {}
    for i, name in enumerate(kernel.parameter_names):
        by_name.setdefault(name.partition("[")[0], []).append(i)
    return by_name


def tied(kernel: Kernel) -> Matrix:
    """Whether a parameter belongs to a group, shape (p + 1, groups); alpha is the last of both."""
    members = [*groups(kernel).values(), [len(kernel.theta)]]
    return np.array([[float(i in group) for group in members] for i in range(len(kernel.theta) + 1)])


def descend(entry: Entry, problem: Problem, clock: Clock, limit: int, tail: float = np.inf) -> Entry:
    """The entry after a descent of its leave-one-out error on these rows, of at most `limit` evaluations.

    Widths that move by themselves are drawn to the proportions of the start by a prior on log σ with the scale
    freedom·√(n/d), between 0.1 and 0.8: a Gaussian one, or Student's with `tail` degrees of freedom, which lets a few
    widths go far.
    """
    kernel, n = entry.kernel, len(problem)
    together = tied(kernel)
    A = np.eye(len(together)) if entry.each else together
    # A width that moves with others is not bound by the values of its column.
    least = np.where((A @ (A.sum(axis=0) == 1))[:-1] == 1, narrowest(kernel, problem.points), -np.inf)
    x0 = np.append(np.maximum(kernel.theta, least), np.log(entry.alpha))
    kernel = kernel.with_theta(x0[:-1])
    # The part of a change that is not the common one of its group; it is zero for widths that move together.
    apart = np.eye(len(x0)) - together @ (together / together.sum(axis=0)).T
    apart *= entry.each / float(np.clip(problem.freedom * np.sqrt(n / len(x0)), 0.1, 0.8))
    anchor = np.append(entry.start.theta, x0[-1])

    def prior(x: Matrix) -> tuple[float, Matrix]:
        off = apart @ (x - anchor)
        if np.isinf(tail):
            return 0.5 * float(off @ off), apart.T @ off
        return 0.5 * tail * float(np.log1p(off**2 / tail).sum()), apart.T @ (off / (1.0 + off**2 / tail))

    everywhere = np.full(len(x0), np.inf)
    floor = max(float((problem.y**2).mean()) * 1e-30, 1e-300)
    criterion = LeastSquaresCriterion(
        kernel, problem.points, problem.y, problem.roots, np.ones((n, 1)), "loo", -everywhere, everywhere, floor, False
    )

    def f(z: Matrix) -> Evaluation:
        x = x0 + A @ z
        at, (cost, slope) = criterion(x), prior(x)
        return Evaluation(z, at.value + cost, A.T @ (at.gradient + slope))

    start = f(np.zeros(A.shape[1]))

    def unless_stopped(z: Matrix) -> Evaluation:
        if not z.any():
            return start
        return Evaluation(z, np.inf, np.zeros_like(z)) if clock.stops() else f(z)

    slopes = np.abs(start.gradient)
    if entry.curvature is None:  # as if a step of one were right for each of a few parameters, or for the steepest
        B = np.diag(np.maximum(slopes, (1.0 if entry.each else 0.3) * max(float(slopes.max()), 1e-12)))
    else:
        B = entry.curvature * (n / entry.rows)
    size = float(np.mean(kernel.diag(problem.points))) or 1.0
    low, high = (
        A.T @ (np.append(entry.start.theta, 0.0) - x0 + reach) / A.sum(axis=0) for reach in (-WIDTH_REACH, WIDTH_REACH)
    )
    low[:-1] = np.maximum(low[:-1], (A[:-1, :-1].T @ np.maximum(least - x0[:-1], -1e3)))
    low[-1], high[-1] = np.log(LEAST_PENALTY * size) - x0[-1], np.log(MOST_PENALTY * size) - x0[-1]
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    minimum = minimise(unless_stopped, np.zeros(A.shape[1]), low, high, B, LEAST_STEP_GAIN, limit)
    if not np.isfinite(minimum.at.value):
        return replace(entry, value=np.inf, rows=n)
    x = x0 + A @ minimum.at.x
    return replace(
        entry,
        kernel=kernel.with_theta(x[:-1]),
        alpha=float(np.exp(x[-1])),
        value=minimum.at.value,
        error=float(np.exp(2.0 * (minimum.at.value - prior(x)[0]) / n)),
        rows=n,
        curvature=minimum.B,
    )
