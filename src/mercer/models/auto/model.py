"""What automatic models share: the race of kernels, the last fit, and the record of every decision.

Candidates are compared by the closed-form leave-one-out error of least squares, which needs no folds. All of them run
on a sample, with one width per group of columns, in units of the columns' spread, and the best of them also with one
width per column; the leaders go on to more rows. Widths of their own are drawn towards a common one by a prior of
standard deviation ~ √(n/d) on their logarithms: with few rows per column they cannot follow the noise. How far each of
these goes is planned beforehand (`auto_plan`), so that the clock decides nothing unless it stops the search.
"""

from __future__ import annotations

import re
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.data.frames import arrays, column_names, is_frame
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.tables.categories import Categorical
from mercer.kernels.tables.rule import TableKernel
from mercer.kernels.vectors.matern import Matern
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vectors.radial import Gaussian, RationalQuadratic
from mercer.kernels.vectors.stationary import Laplacian
from mercer.models.auto.plan import CENTRES, FINALISTS, FIRST, FREED, LAST, OWN, ROWS, TIED, Clock, Plan, Stop
from mercer.models.base import KernelEstimator, Matrix, _columns, keeping, resolve_kernel, shown
from mercer.rkhs.expansion import Expansion
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.quasi_newton import Evaluation, minimise
from mercer.tuning.ranges import ranges
from mercer.tuning.search import together
from mercer.tuning.trials import brief

# One width per column from this many rows per column, up to this many columns.
ROWS_PER_COLUMN, COLUMNS = 4.0, 50
# A descent ends where a step promises less than this (in nats, as of a log likelihood).
PRECISE = 1.0
# A gain below this (in nats, as of a log likelihood) does not pay for a width per column.
GAIN = 3.0
# From this share of the variance on, a leave-one-out error is no better than that of the mean.
NOTHING = 0.99
# Logarithmic reach of widths around their start, and the penalties in units of k(x, x).
REACH, LEAST, MOST = 5.0, 1e-7, 1e3
# Rows that say what the columns are.
SEEN = 20_000


# -- the record --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """Something that was considered, and the value of the criterion."""

    name: str
    value: float
    detail: str = ""


@dataclass(frozen=True)
class Decision:
    """One decision: what was asked, what was taken and why, and what else was considered, best first."""

    question: str
    taken: str
    why: str
    criterion: str = ""
    considered: tuple[Candidate, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"{self.question}: {self.taken}", f"    {self.why}"]
        if self.considered:
            lines.append(f"    {self.criterion}:")
            width = max(len(c.name) for c in self.considered)
            lines += [f"      {c.name.ljust(width)}  {c.value:<9.4g} {c.detail}".rstrip() for c in self.considered]
        return "\n".join(lines)


@dataclass(frozen=True)
class Choices:
    """The decisions of an automatic model in their order; printed, they explain it.

    >>> from mercer.models.auto.model import Candidate, Choices, Decision
    >>> print(Choices((Decision("Loss", "squared", "the targets are ordinary numbers"),)))
    1. Loss: squared
        the targets are ordinary numbers
    """

    decisions: tuple[Decision, ...] = ()
    leaderboard: tuple[Candidate, ...] = ()

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    def __str__(self) -> str:
        return "\n".join(f"{i}. {decision}" for i, decision in enumerate(self.decisions, 1))

    __repr__ = __str__


@dataclass
class Record:
    """Decisions while they are made."""

    decisions: list[Decision] = field(default_factory=list)
    leaderboard: tuple[Candidate, ...] = ()

    def add(
        self,
        question: str,
        taken: str,
        why: str,
        criterion: str = "",
        considered: Any = (),
        began: float | None = None,
    ) -> None:
        seconds = 0.0 if began is None else time.perf_counter() - began
        self.decisions.append(Decision(question, taken, why, criterion, tuple(considered), seconds))

    def done(self) -> Choices:
        return Choices(tuple(self.decisions), self.leaderboard)


# -- candidates --------------------------------------------------------------------------------------------------------


def spreads(points: Points) -> Matrix:
    """The standard deviation of every column; of a constant one its size, or 1."""
    X = points.vectors()
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
        size = np.abs(mean)
    else:
        X = np.asarray(X, dtype=np.float64)
        size = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(size > 0, size, 1.0)
        deviation = unit * (X / unit).std(axis=0)  # the squares of large numbers would overflow
    tiny = deviation <= 1e-12 * size
    return np.asarray(np.where(tiny, np.where(size > 0, size, 1.0), deviation))


def families(d: int) -> dict[str, Kernel]:
    """Kernels on d columns of spread one, smooth to rough."""
    width = float(np.sqrt(d))
    return {
        "Gaussian": Gaussian(width),
        "Matern 5/2": Matern(1.5 * width, 2.5),
        "Matern 3/2": Matern(2.0 * width, 1.5),
        "Matern 1/2": Matern(4.0 * width, 0.5),
        "Laplacian": Laplacian(float(d)),
        "RationalQuadratic": RationalQuadratic(width, alpha=1.0),
        # Beside an intercept a wide Gaussian is linear: exp(−‖x − z‖²/2σ²) ≈ ⟨x, z⟩/σ² + f(x) + f(z).
        "Gaussian + trend": Gaussian(width) + 10.0 * Gaussian(10.0 * width),
    }


def widened(kernel: Kernel, factors: Matrix) -> Kernel:
    """The kernel with the widths σ·factor, one per column."""
    names = {re.sub(r"\[\d+\]$", "", name) for name in kernel.parameter_names}
    values = kernel.get_params()
    return kernel.replace(**{name: values[name] * factors for name in sorted(names) if name.endswith("sigma")})


def candidates(points: Points) -> tuple[dict[str, Kernel], Matrix | None, str]:
    """The kernels to try, by name; of columns of numbers the spreads that are their units; and why these."""
    raw = points.raw
    if not is_frame(raw):
        spread = spreads(points)
        one = len(spread) == 1
        what = "one column of numbers" if one else f"{len(spread)} columns of numbers, each in units of its spread"
        return families(len(spread)), spread, what
    plan = TableKernel().explain(raw)
    found: dict[str, Kernel] = {"table": TableKernel(interaction=2.0)(raw)}
    numbers = [r for r in plan.roles if r.kind == "number" and "missing" not in r.why]
    named = [r for r in plan.roles if r.kind in ("category", "code")]
    used = [r for r in plan.roles if r.kind]
    if numbers and len(numbers) + len(named) == len(used):
        names = tuple(r.name for r in numbers)
        width = np.sqrt(len(names)) * np.array([r.spread for r in numbers])
        words = Categorical([float(np.sqrt(len(named)))] * len(named)).on(*(r.name for r in named)) if named else None
        for name, kernel in (("Gaussian", Gaussian(width)), ("Matern 3/2", Matern(2.0 * width, 1.5))):
            own = kernel.on(*names)
            found[f"{name} × categories" if named else name] = own if words is None else own * words
    roles = ", ".join(
        f"{sum(r.role == role for r in plan.roles)} × {role}" for role in dict.fromkeys(r.role for r in plan.roles)
    )
    return found, None, f"a table: {roles}"


def _plain(frame: Any) -> bool:
    """Whether all columns are numbers that are present: then the table is an array."""
    try:
        if any(column.dtype.kind not in "iufb" for column in arrays(frame[:1])):
            return False  # asked column by column: an array of dates and numbers would make numbers of the dates
        A = np.asarray(frame)
    except (TypeError, ValueError):
        return False
    return A.dtype.kind in "iufb" and bool(np.isfinite(A).all() if A.dtype.kind == "f" else True)


def searchable(points: Points) -> Points:
    """The same rows; those of a frame of numbers as one array, of which parts are taken in no time."""
    raw = points.raw
    return Points(np.ascontiguousarray(raw, dtype=np.float64)) if is_frame(raw) and _plain(raw) else points


# -- the race ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """Least squares on some rows.

    Attributes
    ----------
    points, y, roots : the points, their targets (n, t), and √w or None.
    freedom : the standard deviation of log σ around a common width, in units of √(n/d).
    enough : rows of the second race, of which more have half.
    units, names : of the columns: what they are divided by (None where they are not numbers), and what to call them.
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
        """The same with columns of spread one, around zero where they are dense."""
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
    name, kernel, alpha : of the entry.
    start : the kernel at first, with widths in the proportions of the columns' spread: what the prior draws towards.
    each : whether every width moves by itself, or all of a group together.
    value : ½ n log(leave-one-out error) plus what the prior costs, on the n rows that it was last tuned on.
    error, rows : that error, and n.
    curvature : of the value there, by the parameters that moved, if known.
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

    def times(self, factors: Matrix | None) -> Entry:
        """The same with these factors of the widths."""
        if factors is None:
            return self
        return replace(self, kernel=widened(self.kernel, factors), start=widened(self.start, factors))

    def freed(self, problem: Problem) -> Entry | None:
        """The same with a width for each column, where there are several and rows enough; of the curvature what the
        common ones tell."""
        free = self.times(None if problem.units is None else np.ones(len(problem.units)))
        A = tied(free.kernel)
        p, groups = A.shape
        if p == groups or p > COLUMNS or len(problem) < ROWS_PER_COLUMN * p:
            return None
        assert self.curvature is not None
        mean = A / A.sum(axis=0)
        within = np.eye(p) - mean @ A.T
        B = mean @ self.curvature @ mean.T + within * float(np.mean(np.diag(self.curvature) / A.sum(axis=0)))
        return replace(free, each=True, curvature=B)


def tied(kernel: Kernel) -> Matrix:
    """Which group each parameter belongs to, shape (p + 1, groups): the widths of a kernel's columns are one."""
    names = [re.sub(r"\[\d+\]$", "", name) for name in kernel.parameter_names] + ["alpha"]
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
    # What is left of a change when that of its group is taken out; widths that move together have nothing left.
    own = np.eye(len(x0)) - groups @ (groups / groups.sum(axis=0)).T
    own *= entry.each / float(np.clip(problem.freedom * np.sqrt(n / len(x0)), 0.1, 0.8))
    anchor = np.append(entry.start.theta, x0[-1])
    everywhere = np.full(len(x0), np.inf)
    floor = max(float((problem.y**2).mean()) * 1e-30, 1e-300)
    criterion = LeastSquaresCriterion(
        kernel, problem.points, problem.y, problem.roots, np.ones((n, 1)), "loo", -everywhere, everywhere, floor, False
    )

    def f(z: Matrix) -> Evaluation:
        x = x0 + A @ z
        at, off = criterion(x), own @ (x - anchor)
        return Evaluation(z, at.value + 0.5 * float(off @ off), A.T @ (at.gradient + own.T @ off))

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
    low, high = (A.T @ (np.append(entry.start.theta, 0.0) - x0 + reach) / A.sum(axis=0) for reach in (-REACH, REACH))
    low[-1], high[-1] = np.log(LEAST * size) - x0[-1], np.log(MOST * size) - x0[-1]
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    found = minimise(unless_stopped, np.zeros(A.shape[1]), low, high, B, PRECISE, limit)
    if not np.isfinite(found.at.value):
        return replace(entry, value=np.inf, rows=n)
    x = x0 + A @ found.at.x
    off = own @ (x - anchor)
    return replace(
        entry,
        kernel=kernel.with_theta(x[:-1]),
        alpha=float(np.exp(x[-1])),
        value=found.at.value,
        error=float(np.exp(2.0 * (found.at.value - 0.5 * float(off @ off)) / n)),
        rows=n,
        curvature=found.B,
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
    field = _first(entries, small, clock, planned.tied, planned.own, leads)
    seen = list(field)
    if planned.more and not clock.stops():
        field = _ran(field[:FINALISTS], problem.take(np.sort(order[: planned.more])).in_units(), clock, LAST)
        leads(field[0])
        seen += field
    best, variance = field[0].times(problem.units), _variance(problem)
    seen.sort(key=lambda e: (-e.rows, e.error))
    record.leaderboard = tuple(Candidate(e.label, e.error / variance, f"on {e.rows} rows") for e in seen)
    least = all(best.error <= e.error for e in seen if e.rows == best.rows)
    why = f"the least leave-one-out error{'' if least else ' for its number of widths'}, {best.error / variance:.3g} of"
    why += f" the variance; {_in_words(best, problem)}"
    if best.error >= NOTHING * variance:
        why += f". On these {best.rows:,} rows no kernel is better than the mean: columns say little, or rows are few"
    if clock.stop is not None or not planned.whole:
        why += ". The time was too short to look further"
    record.add("Kernel", best.label, why, "leave-one-out error as a share of the variance", record.leaderboard, began)
    return best


def _entries(starts: dict[str, Kernel], problem: Problem) -> list[Entry]:
    return [Entry.of(name, kernel, problem.points) for name, kernel in starts.items()]


def _first(
    entries: list[Entry], problem: Problem, clock: Clock, tied: int, own: int, leads: Callable[[Entry], None]
) -> list[Entry]:
    """The first race: all with one width per group, then the best also with one per column; best first."""
    field = _ran(entries, problem, clock, tied)
    leads(field[0])
    free = [free for e in field[:FREED] if np.isfinite(e.value) and (free := e.freed(problem)) is not None]
    if free and own and not clock.stops():
        field = sorted(field + _ran(free, problem, clock, own), key=_paid)
        leads(field[0])
    return field


def _in_words(entry: Entry, problem: Problem) -> str:
    """Its widths in units of the columns' spread, the narrowest by name: there a column tells most."""
    text = f"alpha {entry.alpha:.3g}"
    widths = entry.kernel.get_params().get("sigma")
    if widths is None:
        widths = entry.kernel.get_params().get("0__sigma")
    if problem.units is None or widths is None or len(problem.units) == 1:
        return text
    widths = widths / problem.units
    if not entry.each:
        return f"widths {float(widths[0]):.3g} × each column's standard deviation, {text}"
    order = np.argsort(widths)
    named = [f"{problem.names[i]} {float(widths[i]):.3g}" for i in order]
    most = ", ".join(named[:4]) + (f", … {named[-1]}" if len(named) > 4 else "")
    return f"widths in standard deviations, from the columns that tell most: {most}; {text}"


def _ran(entries: list[Entry], problem: Problem, clock: Clock, limit: int) -> list[Entry]:
    """The entries after a descent, best first; those that the clock left no time for as they are, last."""
    done = together([partial(_unless_stopped, e, problem, clock, limit) for e in entries])
    return sorted(done, key=_paid)


def _paid(entry: Entry) -> float:
    """Its value, with what a width per column has to gain before it pays."""
    return entry.value + GAIN * entry.each


def _unless_stopped(entry: Entry, problem: Problem, clock: Clock, limit: int) -> Entry:
    if entry.rows and clock.stops():
        return replace(entry, value=np.inf)
    found = descend(entry, problem, clock, limit)
    clock.report(found.label, 1.0 - found.error / _variance(problem), "leave-one-out R²")
    return found


def optimism(starts: dict[str, Kernel], problem: Problem, rows: int, rng: np.random.Generator) -> float:
    """The factor by which a search on this many rows makes their leave-one-out error E too small, ≥ 1.

    The first race is repeated on two halves A and B. The choice θ_A of A knows nothing of B, so that log E_B(θ_A) is
    what a choice on half of the rows is worth, where log E_B(θ_B) is what it seems to be worth. The difference is taken
    to fall as 1/n, from the rows of a half to those that were tuned on.
    """
    order = rng.permutation(len(problem))
    half = min(len(order) // 2, FIRST)
    halves = [problem.take(np.sort(part)).in_units() for part in (order[:half], order[half : 2 * half])]
    silent = Clock(np.inf)
    tuned = [_first(_entries(starts, part), part, silent, TIED, OWN, lambda _: None)[0] for part in halves]
    crossed = [descend(replace(tuned[1 - i], curvature=None), part, silent, 1) for i, part in enumerate(halves)]
    gap = float(np.mean([np.log(c.error / t.error) for c, t in zip(crossed, tuned)]))
    return float(np.exp(max(gap, 0.0) * half / rows)) if np.isfinite(gap) else 1.0


def _variance(problem: Problem) -> float:
    w = None if problem.roots is None else problem.roots**2
    mean = np.average(problem.y, axis=0, weights=w)
    return float(np.average(((problem.y - mean) ** 2).mean(axis=1), weights=w)) or 1.0


# -- the search --------------------------------------------------------------------------------------------------------


@contextmanager
def quietly() -> Iterator[None]:
    """Fits of candidates that stop early are no news: the final one says so in its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Cost(NamedTuple):
    """Of a fit.

    Attributes
    ----------
    evaluations : of the criterion on as many rows, that cost as much as an exact fit.
    steps : of Newton's method on centres.
    """

    evaluations: float
    steps: float


class Search:
    """One search for a kernel and a loss, and the last fit.

    Attributes
    ----------
    points, y, weights : n points, their targets or labels, and weights or None.
    best, loss : the kernel and the loss so far.
    fitted, rows, converged : the last model that was fitted with these, if any, its rows (None for all), and whether
        its solver came to an end.
    freedom, enough : of widths, and of rows, as in `Problem`.
    fewest : rows that a sample has at least.
    """

    def __init__(self, model: AutoModel, points: Points, y: NDArray[Any], weights: Matrix | None) -> None:
        self.clock, self.record = model._clock(), Record()
        self.plan = Plan(self.clock.seconds, len(y))
        self.model, self.points, self.y, self.weights = model, points, y, weights
        self.rng = np.random.default_rng(model.random_state)
        self.loss: str = "squared"
        self.fitted: Any = None
        self.rows: NDArray[np.int64] | None = None
        self.converged = True
        self.best: Entry | None = None
        # A kernel that was given may ask for columns by name.
        self.plain = searchable(points) if model.kernel is None else points
        self.units: Matrix | None = None
        self.problem: Problem | None = None
        self.candidates: dict[str, Kernel] = {}

    @abstractmethod
    def look(self) -> None:
        """Say what the target is."""

    @abstractmethod
    def targets(self) -> Matrix:
        """What least squares fits in the race, (n, t)."""

    @abstractmethod
    def too_few(self) -> str:
        """Why kernels cannot be compared, or nothing."""

    @abstractmethod
    def losses(self) -> None:
        """Choose the loss."""

    @abstractmethod
    def unfitted(self) -> tuple[Any, Cost]:
        """The chosen model, and what its fit costs."""

    def starts(self) -> dict[str, Kernel]:
        """The kernels to begin with: those that suit the columns, or the one that was given."""
        own, n = self.model.kernel, len(self.y)
        if own is None:
            began = time.perf_counter()
            found, self.units, why = candidates(self.plain.take(self.order()[:SEEN]) if n > SEEN else self.plain)
            kernels = f"{len(found)} kernels" if len(found) > 1 else "1 kernel"
            self.record.add("Columns", f"{kernels} to try", why, began=began)
            return found
        given = resolve_kernel(own, self.plain)
        found = {"given": given}
        if len(given.theta):
            given.touch(self.plain)
            around = ranges(given, self.plain, np.array([[-1.0], [1.0]]))
            found["given, with widths from the data"] = given.with_theta(np.array([r.start for r in around]))
        self.record.add("Columns", "the kernel that was given", short(given))
        return found

    def run(self) -> Any:
        """The fitted model; after an interrupt `in_haste` has one at once."""
        self.look()
        starts, few = self.starts(), self.too_few()
        if few:
            name, kernel = next(iter(starts.items()))
            kernel = kernel if self.units is None else widened(kernel, self.units)
            self.best = Entry.of(name, kernel, self.plain)
            self.record.add("Kernel", name, few)
        else:
            roots = None if self.weights is None else np.sqrt(self.weights)
            d = 0 if self.units is None else len(self.units)
            names = tuple(column_names(self.points.raw) or map(str, range(d)))
            problem = Problem(self.plain, self.targets(), roots, self.freedom, self.enough, self.units, names)
            self.problem, self.candidates = problem, starts
            self.best = race(starts, problem, self.plan, self.clock, self.rng, self.record, self.better)
            self.losses()
        return self.final()

    freedom, enough = 0.1, 1000
    fewest = 0

    def better(self, entry: Entry) -> None:
        self.best = entry

    def sample(self) -> NDArray[np.int64]:
        """Rows to compare losses on."""
        n = len(self.y)
        most = max(ROWS, self.fewest)
        return np.arange(n) if n <= 1.25 * most else np.sort(self.order()[:most])

    def order(self) -> NDArray[np.int64]:
        """The rows in an order by chance, of which the first are a sample."""
        return self.rng.permutation(len(self.y))

    # -- the last fit ---------------------------------------------------------------------------------------------

    def fit(self, index: NDArray[np.int64] | None, more: dict[str, Any]) -> Any:
        """The chosen model fitted to these rows, or to all."""
        model, _ = self.unfitted()
        X, y, w = self.points.raw, self.y, self.weights
        if index is not None:
            X, y, w = take(X, index), y[index], None if w is None else w[index]
        self.rows = index
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.fitted = model.set_params(**more).fit(X, self.scaled(y), w)
        others = [warning for warning in caught if not issubclass(warning.category, ConvergenceWarning)]
        self.converged = len(others) == len(caught)
        for one in others:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return self.fitted

    def scaled(self, y: NDArray[Any]) -> NDArray[Any]:
        """The targets as the chosen model fits them."""
        return y

    def final(self) -> Any:
        """A fit to all rows: exactly where the plan allows it; else in stages, on more and more rows and centres."""
        began, n = time.perf_counter(), len(self.y)
        order = self.order()
        kept = self.kept(order[n - n // 20 :])
        n -= len(kept)
        order = order[:n]
        model, cost = self.unfitted()
        self.clock.report(f"last fit, of {n:,} rows")
        known = model.get_params()
        all_rows = None if len(kept) == 0 else np.sort(order)
        stages: tuple[tuple[int, int], ...] = ()
        if "n_centers" in known and n > 2 * CENTRES:
            exact = self.affords(cost.evaluations)
            stages = replace(self.plan, n=n).stages(cost.steps, self.fewest)
            stages = stages if not exact else stages[:1] if self.clock.late() else ()
        if not stages:
            rows, made = n, self.fit(all_rows, {"max_time": max(self.clock.left, 0.1)} if "max_time" in known else {})
            if not self.converged:  # because of `max_time`, or of numbers: the clock knows
                self.clock.late()
        else:
            self.before(np.sort(order))
            rows, made = 0, None
            for wider, centres in stages:
                if made is not None and self.clock.late():
                    break
                rows = wider
                made = self.fit(all_rows if rows == n else np.sort(order[:rows]), {"n_centers": centres})
        self.after(kept)
        rows, made = (rows if self.fitted is made else n), self.fitted
        what = f"fitted to all {n:,} rows" if rows == len(self.y) else f"fitted to {rows:,} of {len(self.y):,} rows"
        if len(kept):
            what += f", its probabilities to {len(kept):,} others"
        self.record.add("Solver", type(made).__name__, f"{what}: {made.status_}", began=began)
        return made

    def affords(self, evaluations: float) -> bool:
        """Whether the plan allows an exact fit of all rows that costs this many evaluations in the race."""
        return self.plan.affords_exact(evaluations)

    def before(self, rows: NDArray[np.int64]) -> None:
        """What else is fitted to these rows, where an exact fit is not affordable."""

    def kept(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of these rows, those that the last fit leaves out."""
        return index[:0]

    def after(self, kept: NDArray[np.int64]) -> None:
        """What is learnt from the rows that were left out of the last fit, or from the fit without each row."""

    def in_haste(self) -> Any:
        """What can be had at once, after an interrupt."""
        self.clock.stop = "interrupt"
        if self.fitted is None or self.best is None:
            if self.best is None:
                self.best = Entry.of("Gaussian", median_gaussian(self.plain), self.plain)
            index = self.sample()
            made = self.fit(index, {})
            made.status_ = f"interrupted: fitted to {len(index)} of {len(self.y)} rows; {made.status_}"
        else:
            made = self.fitted
            made.status_ = f"interrupted before the last fit; {made.status_}"
        self.after(np.empty(0, dtype=np.int64))
        self.record.add("Solver", type(made).__name__, made.status_)
        return made


def short(kernel: Kernel) -> str:
    text = brief(kernel)
    return text if len(text) <= 300 else f"{text[:280]}…"


# -- the estimator -----------------------------------------------------------------------------------------------------


# What `status_` begins with where the search was stopped.
STOPPED = {
    "time": "the {:g} s were over before the search was done, so that another run may choose otherwise",
    "progress": "`progress` ended the search before it was done",
}


class AutoModel(KernelEstimator):
    """What `AutoRegressor` and `AutoClassifier` share."""

    kernel: Any
    time: Any
    budget: Any
    loss: Any
    random_state: Any
    progress: Any
    model_: Any

    @property
    def function_(self) -> Expansion:
        """The fitted function in the space of `kernel_`."""
        check_is_fitted(self)
        f: Expansion = self.model_.function_
        return f

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The prediction of each row that `model_` was fitted to, by the model without it, where it knows them."""
        check_is_fitted(self)
        return self._in_units(np.asarray(self.model_.loo_predictions_))

    def _in_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Predictions of `model_` in the units of the target."""
        return values

    def _clock(self) -> Clock:
        seconds = self.time
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.number)) or not seconds > 0:
            raise InvalidInput("`time` must be a number of seconds > 0", got=shown(seconds), advice="Such as 60.")
        if self.progress is not None and not callable(self.progress):
            raise InvalidInput("`progress` must be a function of a Trial, or None", got=shown(self.progress),
                               advice="Such as print.")  # fmt: skip
        memory.budget(self.budget)
        return Clock(float(seconds), self.progress)

    def _one_of(self, losses: tuple[str, ...]) -> None:
        if not isinstance(self.loss, str) or self.loss not in losses:
            raise InvalidInput(f"`loss` must be one of {', '.join(map(repr, losses))}", got=repr(self.loss),
                               advice="'auto' compares.")  # fmt: skip

    def _found(self, X: Any, search: Search) -> Self:
        """Search, and keep what was found; after an interrupt too, which is raised again."""
        try:
            self._keep(X, search, search.run())
        except KeyboardInterrupt as stop:
            self._keep(X, search, search.in_haste())
            raise keeping(self, stop) from None
        return self

    def _keep(self, X: Any, search: Search, made: Any) -> None:
        self.loss_, self.model_ = search.loss, made
        self.choices_: Choices = search.record.done()
        self.kernel_, self.status_ = made.kernel_, made.status_
        self.stopped_by_: Stop | None = search.clock.stop
        if self.stopped_by_ in STOPPED:
            self.status_ = f"{STOPPED[self.stopped_by_].format(search.clock.seconds)}; {self.status_}"
        _columns(self, X, reset=True)

    def _asked(self, X: Any) -> None:
        check_is_fitted(self)
        _columns(self, X, reset=False)
