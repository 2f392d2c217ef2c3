"""What automatic models share: the race of kernels, its clock, and the record of every decision.

Candidates are compared by the closed-form leave-one-out error of least squares, which needs no folds. All of them run
on a sample, with one width per group of columns, in units of the columns' spread, and the best of them also with one
width per column; the leaders go on to more rows. Widths of their own are drawn towards a common one by a prior of
standard deviation ~ √(n/d) on their logarithms: with few rows per column they cannot follow the noise.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.categories import Categorical
from mercer.kernels.dot import Bilinear
from mercer.kernels.matern import Matern
from mercer.kernels.points import Points, is_frame
from mercer.kernels.radial import Gaussian, RationalQuadratic
from mercer.kernels.stationary import Laplacian
from mercer.models.base import KernelEstimator, Matrix, _columns, resolve_kernel, shown
from mercer.rkhs.expansion import Expansion
from mercer.tables import TableKernel
from mercer.tuning.search import Criterion, Evaluation, brief, minimise, ranges, together

# Rows of the first race, and between which the second has half: what is best there is best on more, and each costs n³.
FIRST, SECOND, THIRD = 256, 600, 1200
# How many of the first get a width per column, and how many go on to the second race.
FREED, FINALISTS = 3, 2
# One width per column from this many rows per column, up to so many columns.
ROWS_PER_COLUMN, COLUMNS = 2.0, 100
# Multiplications of a factorisation in a second, and the fewest centres that are worth having.
RATE, FEWEST = 1e10, 500
# A descent ends where a step promises less than this (in nats, as of a log likelihood).
PRECISE = 0.3
# A gain below this (in nats, as of a log likelihood) does not pay for a width per column.
GAIN = 3.0
# Logarithmic reach of widths around their start, and the penalties in units of k(x, x).
REACH, LEAST, MOST = 5.0, 1e-7, 1e3


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

    >>> from mercer.models.auto_model import Candidate, Choices, Decision
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


class Clock:
    """Seconds that are left of a budget."""

    def __init__(self, seconds: float) -> None:
        self.began, self.seconds = time.perf_counter(), seconds

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        return self.seconds - self.spent

    def over(self, share: float = 1.0) -> bool:
        """Whether this share of the budget is spent."""
        return self.spent > share * self.seconds


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
        deviation, size = X.std(axis=0), np.abs(X).max(axis=0, initial=0.0)
    tiny = deviation <= 1e-12 * size
    return np.asarray(np.where(tiny, np.where(size > 0, size, 1.0), deviation))


def families(spread: Matrix) -> dict[str, Kernel]:
    """Kernels on columns of numbers, smooth to rough, with widths in units of their spread."""
    d = len(spread)
    width = np.sqrt(d) * spread
    found: dict[str, Kernel] = {
        "Gaussian": Gaussian(width),
        "Matern 5/2": Matern(1.5 * width, 2.5),
        "Matern 3/2": Matern(2.0 * width, 1.5),
        "Matern 1/2": Matern(4.0 * width, 0.5),
        "Laplacian": Laplacian(d * spread),
        "RationalQuadratic": RationalQuadratic(width, alpha=1.0),
    }
    if d <= COLUMNS:
        found["Linear + Gaussian"] = Gaussian(width) + 0.1 / d * Bilinear(np.diag(spread**-2.0))
    return found


def candidates(points: Points) -> tuple[dict[str, Kernel], str]:
    """The kernels to try on this data, by name, and why these."""
    raw = points.raw
    if not is_frame(raw) or _plain(raw):
        spread = spreads(points)
        return families(spread), f"{len(spread)} columns of numbers; widths are in units of their spread"
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
    return found, f"a table: {roles}"


def _plain(frame: Any) -> bool:
    """Whether all columns are numbers that are present: then the table is an array."""
    try:
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
    """

    points: Points
    y: Matrix
    roots: Matrix | None = None
    freedom: float = 0.1

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: NDArray[np.int64]) -> Problem:
        if len(index) == len(self):
            return self
        roots = None if self.roots is None else self.roots[index]
        return replace(self, points=self.points.take(index), y=self.y[index], roots=roots)


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel with its parameters and alpha so far.

    Attributes
    ----------
    name, kernel, alpha : of the entry.
    anchor : theta at the start, in the proportions of the columns' spread: what the prior draws towards.
    each : whether every width moves by itself, or all of a group together.
    value : ½ n log(leave-one-out error) plus what the prior costs, on the n rows that it was last tuned on.
    error, rows : that error, and n.
    """

    name: str
    kernel: Kernel
    alpha: float
    anchor: Matrix
    each: bool = False
    value: float = np.inf
    error: float = np.nan
    rows: int = 0

    @classmethod
    def of(cls, name: str, kernel: Kernel, points: Points) -> Entry:
        size = float(np.mean(kernel.diag(points)))
        return cls(name, kernel, 0.1 * (size if np.isfinite(size) and size > 0 else 1.0), kernel.theta)

    @property
    def label(self) -> str:
        return f"{self.name}, a width per column" if self.each else self.name

    def freed(self) -> Entry:
        """The same with every width for itself."""
        return replace(self, each=True)

    def can_be_freed(self, n: int) -> bool:
        """Whether there are several widths in a group, and rows enough for them."""
        d = len(self.kernel.theta)
        return not self.each and d + 1 > tied(self.kernel).shape[1] and d <= COLUMNS and n >= ROWS_PER_COLUMN * d


def tied(kernel: Kernel) -> Matrix:
    """Which group each parameter belongs to, shape (p + 1, groups): the widths of a kernel's columns are one."""
    names = [re.sub(r"\[\d+\]$", "", name) for name in kernel.parameter_names] + ["alpha"]
    groups = list(dict.fromkeys(names))
    return np.array([[float(name == group) for group in groups] for name in names])


def descend(entry: Entry, problem: Problem, clock: Clock, limit: int = 15) -> Entry:
    """The entry after a descent of its leave-one-out error on these rows.

    Widths that move by themselves are drawn to the proportions of the anchor by a Gaussian prior on log σ, with the
    standard deviation freedom·√(n/d), between 0.1 and 0.8.
    """
    kernel, n = entry.kernel, len(problem)
    x0 = np.append(kernel.theta, np.log(entry.alpha))
    groups = tied(kernel)
    A = np.eye(len(x0)) if entry.each else groups
    # What is left of a change when that of its group is taken out.
    own = np.eye(len(x0)) - groups @ (groups / groups.sum(axis=0)).T
    own /= float(np.clip(problem.freedom * np.sqrt(n / len(x0)), 0.1, 0.8))
    anchor = np.append(entry.anchor, x0[-1])
    everywhere = np.full(len(x0), np.inf)
    floor = max(float((problem.y**2).mean()) * 1e-30, 1e-300)
    criterion = Criterion(
        kernel, problem.points, problem.y, problem.roots, np.ones((n, 1)), "loo", -everywhere, everywhere, floor, False
    )
    begun = False

    def f(z: Matrix) -> Evaluation:
        nonlocal begun
        if begun and clock.over():
            return Evaluation(z, np.inf, np.zeros_like(z))
        begun = True
        x = x0 + A @ z
        at, off = criterion(x), own @ (x - anchor)
        if not entry.each:
            return Evaluation(z, at.value, A.T @ at.gradient)
        return Evaluation(z, at.value + 0.5 * float(off @ off), A.T @ (at.gradient + own.T @ off))

    size = float(np.mean(kernel.diag(problem.points))) or 1.0
    low, high = (A.T @ (np.append(entry.anchor, 0.0) - x0 + reach) / A.sum(axis=0) for reach in (-REACH, REACH))
    low[-1], high[-1] = np.log(LEAST * size) - x0[-1], np.log(MOST * size) - x0[-1]
    found = minimise(f, np.zeros(A.shape[1]), np.minimum(low, 0.0), np.maximum(high, 0.0), None, PRECISE, limit)
    if not np.isfinite(found.at.value):
        return replace(entry, value=np.inf, rows=n)
    x = x0 + A @ found.at.x
    off = own @ (x - anchor)
    plain = found.at.value - (0.5 * float(off @ off) if entry.each else 0.0)
    return replace(
        entry,
        kernel=kernel.with_theta(x[:-1]),
        alpha=float(np.exp(x[-1])),
        value=found.at.value,
        error=float(np.exp(2.0 * plain / n)),
        rows=n,
    )


def race(
    starts: dict[str, Kernel],
    problem: Problem,
    clock: Clock,
    rng: np.random.Generator,
    record: Record,
    better: Callable[[Entry], None],
) -> Entry:
    """The kernel of least leave-one-out error, tuned. `better` is told of every new leader."""
    began = time.perf_counter()
    order, n = rng.permutation(len(problem)), len(problem)
    m = n if n <= 1.25 * FIRST else max(FIRST, min(n // 8, 2 * FIRST))
    small = problem.take(np.sort(order[:m]))
    entries = [Entry.of(name, kernel, small.points) for name, kernel in starts.items()]
    better(entries[0])
    field = _ran(entries, small, clock)
    better(field[0])
    free = [e.freed() for e in field[:FREED] if e.can_be_freed(m)]
    if free and not clock.over(0.3):
        field = sorted(field + _ran(free, small, clock), key=_paid)
        better(field[0])
    seen = list(field)
    most = n if n <= 1.25 * SECOND else int(np.clip(n // 2, SECOND, THIRD))
    if most > m and not clock.over(0.4):
        leaders = field[:FINALISTS]
        if not any(e.each for e in field):
            leaders += [e.freed() for e in leaders if e.can_be_freed(most)]
        field = _ran(leaders, problem.take(np.sort(order[:most])), clock, limit=10)
        better(field[0])
        seen += field
    best, variance = field[0], _variance(problem)
    seen.sort(key=lambda e: (-e.rows, _paid(e)))
    record.leaderboard = tuple(Candidate(e.label, e.error / variance, f"on {e.rows} rows") for e in seen)
    why = "the least leave-one-out error" + ("; the time was too short to look further" if clock.over(0.4) else "")
    record.add("Kernel", best.label, f"{why}: {_short(best.kernel)}, alpha={best.alpha:.3g}",
               "leave-one-out error as a share of the variance", record.leaderboard, began)  # fmt: skip
    return best


def _ran(entries: list[Entry], problem: Problem, clock: Clock, limit: int = 15) -> list[Entry]:
    """The entries after a descent, best first; those that the clock leaves no time for as they are, last."""
    done = together([partial(_unless_over, e, problem, clock, limit) for e in entries])
    return sorted(done, key=_paid)


def _paid(entry: Entry) -> float:
    """Its value, with what a width per column has to gain before it pays."""
    return entry.value + GAIN * entry.each


def _short(kernel: Kernel) -> str:
    text = brief(kernel)
    return text if len(text) <= 300 else f"{text[:280]}…"


def _unless_over(entry: Entry, problem: Problem, clock: Clock, limit: int) -> Entry:
    return replace(entry, value=np.inf) if clock.over(0.5) and entry.rows else descend(entry, problem, clock, limit)


def _variance(problem: Problem) -> float:
    w = None if problem.roots is None else problem.roots**2
    mean = np.average(problem.y, axis=0, weights=w)
    return float(np.average(((problem.y - mean) ** 2).mean(axis=1), weights=w)) or 1.0


def centres(n: int, steps: float, clock: Clock) -> int | None:
    """None where an exact fit of n rows, of so many factorisations, suits the time that is left; else how many centres.

    n³/3 multiplications for each factorisation, n m² on m centres.
    """
    seconds = max(clock.left, 0.2 * clock.seconds)
    if steps * n**3 / 3 <= seconds * RATE or n <= 2 * FEWEST:
        return None
    return int(np.clip(np.sqrt(0.5 * seconds * RATE / (steps * n)), FEWEST, min(n // 2, 5000)))


# -- the estimator -----------------------------------------------------------------------------------------------------


@contextmanager
def quietly() -> Iterator[None]:
    """Fits of candidates that stop early are no news: the final one says so in its status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class AutoModel(KernelEstimator):
    """What `AutoRegressor` and `AutoClassifier` share."""

    kernel: Any
    time: Any
    budget: Any
    random_state: Any
    model_: Any

    @property
    def function_(self) -> Expansion:
        """The fitted function in the space of `kernel_`."""
        check_is_fitted(self)
        f: Expansion = self.model_.function_
        return f

    def _clock(self) -> Clock:
        seconds = self.time
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.number)) or not seconds > 0:
            raise InvalidInput("`time` must be a number of seconds > 0", got=shown(seconds), advice="Such as 60.")
        memory.budget(self.budget)
        return Clock(float(seconds))

    def _starts(self, points: Points, record: Record) -> dict[str, Kernel]:
        """The kernels to begin with: those that suit the columns, or the one that was given."""
        if self.kernel is None:
            began = time.perf_counter()
            found, why = candidates(points)
            record.add("Columns", f"{len(found)} kernels to try", why, began=began)
        else:
            given = resolve_kernel(self.kernel, points)
            found = {"given": given}
            if len(given.theta):
                given.touch(points)
                starts = ranges(given, points, np.array([[-1.0], [1.0]]))
                found["given, with widths from the data"] = given.with_theta(np.array([r.start for r in starts]))
            record.add("Columns", "the kernel that was given", _short(given))
        for kernel in found.values():
            kernel.touch(points)
        return found

    def _shape(self, X: Any) -> None:
        _columns(self, X, reset=True)

    def _asked(self, X: Any) -> None:
        check_is_fitted(self)
        _columns(self, X, reset=False)
