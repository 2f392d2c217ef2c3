"""The race of kernels: candidates are compared by the closed-form leave-one-out error of least squares, without folds.

All candidates run on a sample, with one width per group of columns, in units of the columns' spread; the best of them
also with one width per column; the leaders go on to more rows. Individual widths are drawn towards a common one by a
prior of standard deviation ~ √(n/d) on their logarithms: with few rows per column they cannot follow the noise. How far
each of these goes is planned beforehand (`plan`), so that the clock changes nothing unless it stops the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.kernels.base import Kernel
from mercer.models.auto.candidates import widened
from mercer.models.auto.plan import FINALISTS, FIRST_ROWS, FREE_STEPS, FREED, LAST_STEPS, TIED_STEPS, Clock, Plan
from mercer.models.auto.record import Record
from mercer.models.base import Matrix
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.quasi_newton import Evaluation, minimise
from mercer.tuning.ranges import WIDTHS
from mercer.tuning.search import together
from mercer.tuning.trials import Measure, Trial, Trials

# One width per column from this many rows per column, up to this many columns.
ROWS_PER_COLUMN, MOST_COLUMNS = 4.0, 50
# The measure by which kernels are compared.
LOO_SHARE = Measure("loo", "leave-one-out error as a share of the variance", greater=False)
# A descent ends where a step promises less than this (in nats, as of a log likelihood).
LEAST_STEP_GAIN = 1.0
# Each width per column must gain this much (in nats, as of a log likelihood) to be kept.
WIDTH_PRICE = 3.0
# A leave-one-out error above this share of the variance is no better than the error of the mean.
NO_BETTER = 0.99
# The largest logarithmic change of widths, and the least and largest penalty in units of k(x, x).
WIDTH_REACH, LEAST_PENALTY, MOST_PENALTY = 5.0, 1e-7, 1e3


@dataclass(frozen=True, eq=False)
class Problem:
    """Least squares on some rows.

    Attributes
    ----------
    points, y, roots : the points, their targets (n, t), and √w or None.
    freedom : the standard deviation of log σ around a common width, in units of √(n/d).
    enough : the number of rows of the second race; larger problems use half of their rows.
    units, names : the numbers that the columns are divided by (None if they are not numeric), and their names.
    """

    points: Points
    y: Matrix
    roots: Matrix | None = None
    freedom: float = 0.1
    enough: int = 1000
    units: Matrix | None = None
    names: tuple[str, ...] = ()

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
    name, kernel, alpha : its name, its kernel and the penalty so far.
    start : the kernel at first, with widths in the proportions of the columns' spread, to which the prior draws.
    each : whether every width moves by itself, or all of a group together.
    value : ½ n log(leave-one-out error) plus the cost of the prior, on the n rows that it was last tuned on.
    error, rows : that error, and n.
    curvature : the second derivatives of the value by the parameters that moved, or None.
    """

    name: str
    kernel: Kernel
    alpha: float
    start: Kernel
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
        return f"{self.name} per column" if self.each else self.name

    def trial(self, variance: float) -> Trial:
        """Its place in the record, by its error as a share of the variance."""
        found = {"kernel": self.kernel, "alpha": self.alpha}
        return Trial(found, self.error / variance, rows=self.rows, name=self.label, note=f"on {self.rows} rows")

    def times(self, factors: Matrix | None) -> Entry:
        """The same entry with its widths times these factors."""
        if factors is None:
            return self
        return replace(self, kernel=widened(self.kernel, factors), start=widened(self.start, factors))

    def freed(self, problem: Problem) -> Entry | None:
        """The same entry with a width for each column, and the curvature that follows from that of the common widths.

        None if there is only one column, or too few rows.
        """
        free = self.times(None if problem.units is None else np.ones(len(problem.units)))
        A = tied(free.kernel)
        p, groups = A.shape
        if p == groups or p > MOST_COLUMNS or len(problem) < ROWS_PER_COLUMN * p:
            return None
        assert self.curvature is not None
        mean = A / A.sum(axis=0)
        within = np.eye(p) - mean @ A.T
        B = mean @ self.curvature @ mean.T + within * float(np.mean(np.diag(self.curvature) / A.sum(axis=0)))
        return replace(free, each=True, curvature=B)


def tied(kernel: Kernel) -> Matrix:
    """The group of each parameter, shape (p + 1, groups): the widths of a kernel's columns are one group."""
    names = [name.partition("[")[0] for name in kernel.parameter_names] + ["alpha"]
    groups = list(dict.fromkeys(names))
    return np.array([[float(name == group) for group in groups] for name in names])


def descend(entry: Entry, problem: Problem, clock: Clock, limit: int) -> Entry:
    """The entry after a descent of its leave-one-out error on these rows, of at most `limit` evaluations.

    Widths that move by themselves are drawn to the proportions of the anchor by a Gaussian prior on log σ, with the
    standard deviation freedom·√(n/d), between 0.1 and 0.8.
    """
    kernel, n = entry.kernel, len(problem)
    x0 = np.append(kernel.theta, np.log(entry.alpha))
    groups = tied(kernel)
    A = np.eye(len(x0)) if entry.each else groups
    # The part of a change that is not the common one of its group; it is zero for widths that move together.
    apart = np.eye(len(x0)) - groups @ (groups / groups.sum(axis=0)).T
    apart *= entry.each / float(np.clip(problem.freedom * np.sqrt(n / len(x0)), 0.1, 0.8))
    anchor = np.append(entry.start.theta, x0[-1])
    everywhere = np.full(len(x0), np.inf)
    floor = max(float((problem.y**2).mean()) * 1e-30, 1e-300)
    criterion = LeastSquaresCriterion(
        kernel, problem.points, problem.y, problem.roots, np.ones((n, 1)), "loo", -everywhere, everywhere, floor, False
    )

    def f(z: Matrix) -> Evaluation:
        x = x0 + A @ z
        at, off = criterion(x), apart @ (x - anchor)
        return Evaluation(z, at.value + 0.5 * float(off @ off), A.T @ (at.gradient + apart.T @ off))

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
    low[-1], high[-1] = np.log(LEAST_PENALTY * size) - x0[-1], np.log(MOST_PENALTY * size) - x0[-1]
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    minimum = minimise(unless_stopped, np.zeros(A.shape[1]), low, high, B, LEAST_STEP_GAIN, limit)
    if not np.isfinite(minimum.at.value):
        return replace(entry, value=np.inf, rows=n)
    x = x0 + A @ minimum.at.x
    off = apart @ (x - anchor)
    return replace(
        entry,
        kernel=kernel.with_theta(x[:-1]),
        alpha=float(np.exp(x[-1])),
        value=minimum.at.value,
        error=float(np.exp(2.0 * (minimum.at.value - 0.5 * float(off @ off)) / n)),
        rows=n,
        curvature=minimum.B,
    )


def race(
    starts: dict[str, Kernel],
    problem: Problem,
    plan: Plan,
    clock: Clock,
    rng: np.random.Generator,
    record: Record,
    better: Callable[[Entry], None],
) -> Entry:
    """The kernel of least leave-one-out error, tuned. `better` is called with every new leader."""
    began, order = time.perf_counter(), rng.permutation(len(problem))
    p = max(len(kernel.theta) for kernel in starts.values()) + (0 if problem.units is None else len(problem.units))
    planned = plan.race(len(starts), p, problem.enough)

    def leads(entry: Entry) -> None:
        better(entry.times(problem.units))

    small = problem.take(np.sort(order[: planned.rows])).in_units()
    entries = _entries(starts, small)
    leads(entries[0])
    field = _first(entries, small, clock, planned.tied, planned.free, leads)
    seen = list(field)
    if planned.more and not clock.stops():
        field = _ran(field[:FINALISTS], problem.take(np.sort(order[: planned.more])).in_units(), clock, LAST_STEPS)
        leads(field[0])
        seen += field
    best, variance = field[0].times(problem.units), _variance(problem)
    seen.sort(key=lambda e: (-e.rows, e.error))
    trials = [entry.times(problem.units).trial(variance) for entry in seen]
    least = all(best.error <= e.error for e in seen if e.rows == best.rows)
    why = f"the smallest leave-one-out error{'' if least else ' for its number of widths'}, "
    why += f"{best.error / variance:.3g} of the variance; {_in_words(best, problem)}"
    if best.error >= NO_BETTER * variance:
        why += (
            f". On these {best.rows:,} rows no kernel is better than the mean: the columns carry little information, "
        )
        why += "or there are too few rows"
    if clock.stop is not None or not planned.whole:
        why += ". The time was too short to look further"
    chosen = next(i for i, entry in enumerate(seen) if entry is field[0])
    record.add("Kernel", best.label, why, Trials(LOO_SHARE, tuple(trials), chosen), began)
    return best


def _entries(starts: dict[str, Kernel], problem: Problem) -> list[Entry]:
    return [Entry.of(name, kernel, problem.points) for name, kernel in starts.items()]


def _first(
    entries: list[Entry], problem: Problem, clock: Clock, tied: int, free: int, leads: Callable[[Entry], None]
) -> list[Entry]:
    """The first race: all with one width per group, then the best also with one per column; best first."""
    field = _ran(entries, problem, clock, tied)
    leads(field[0])
    freed = [each for e in field[:FREED] if np.isfinite(e.value) and (each := e.freed(problem)) is not None]
    if freed and free and not clock.stops():
        field = sorted(field + _ran(freed, problem, clock, free), key=_paid)
        leads(field[0])
    return field


def _in_words(entry: Entry, problem: Problem) -> str:
    """Its widths in units of the columns' spread, the narrowest by name: those columns are the most informative."""
    text = f"alpha {entry.alpha:.3g}"
    lengths = (getattr(leaf, name) for leaf in entry.kernel.leaves for name, u in leaf.units.items() if u in WIDTHS)
    widths = next(lengths, None)
    if problem.units is None or widths is None or len(problem.units) == 1:
        return text
    widths = widths / problem.units
    if not entry.each:
        return f"widths {float(widths[0]):.3g} × each column's standard deviation, {text}"
    order = np.argsort(widths)
    named = [f"{problem.names[i]} {float(widths[i]):.3g}" for i in order]
    most = ", ".join(named[:4]) + (f", … {named[-1]}" if len(named) > 4 else "")
    return f"widths in standard deviations, from the most informative columns: {most}; {text}"


def _ran(entries: list[Entry], problem: Problem, clock: Clock, limit: int) -> list[Entry]:
    """The entries after a descent, best first; entries that there was no time for come last, unchanged."""
    done = together([partial(_unless_stopped, e, problem, clock, limit) for e in entries])
    return sorted(done, key=_paid)


def _paid(entry: Entry) -> float:
    """Its value, plus the gain that a width per column must bring before it pays."""
    return entry.value + WIDTH_PRICE * entry.each


def _unless_stopped(entry: Entry, problem: Problem, clock: Clock, limit: int) -> Entry:
    if entry.rows and clock.stops():
        return replace(entry, value=np.inf)
    tuned = descend(entry, problem, clock, limit)
    clock.report(tuned.label, 1.0 - tuned.error / _variance(problem), "leave-one-out R²")
    return tuned


def optimism(starts: dict[str, Kernel], problem: Problem, rows: int, rng: np.random.Generator) -> float:
    """The factor by which a search on this many rows makes their leave-one-out error E too small, ≥ 1.

    The first race is repeated on two halves A and B. The choice θ_A of A knows nothing of B, so that log E_B(θ_A) is
    the true worth of a choice on half of the rows, and log E_B(θ_B) its apparent worth. The difference is assumed to
    fall as 1/n, from the rows of a half to those that were tuned on.
    """
    order = rng.permutation(len(problem))
    half = min(len(order) // 2, FIRST_ROWS)
    halves = [problem.take(np.sort(part)).in_units() for part in (order[:half], order[half : 2 * half])]
    silent = Clock(np.inf)
    tuned = [_first(_entries(starts, part), part, silent, TIED_STEPS, FREE_STEPS, lambda _: None)[0] for part in halves]
    crossed = [descend(replace(tuned[1 - i], curvature=None), part, silent, 1) for i, part in enumerate(halves)]
    excess = float(np.mean([np.log(c.error / t.error) for c, t in zip(crossed, tuned)]))
    return float(np.exp(max(excess, 0.0) * half / rows)) if np.isfinite(excess) else 1.0


def _variance(problem: Problem) -> float:
    w = None if problem.roots is None else problem.roots**2
    mean = np.average(problem.y, axis=0, weights=w)
    return float(np.average(((problem.y - mean) ** 2).mean(axis=1), weights=w)) or 1.0
