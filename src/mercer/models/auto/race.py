"""The race of kernels: candidates are compared by the closed-form leave-one-out error of least squares, without folds.

All candidates run on a sample, with one width per group of columns, in units of the columns' spread; the best of them
also with one width per column. If few columns matter, all of these see mostly noise: so they run again, on other rows,
with widths by the columns' `relevance`. The leaders go on to more rows. Individual widths are drawn towards a common
one by a prior of standard deviation ~ √(n/d) on their logarithms: with few rows per column they cannot follow the
noise. How far each of these goes is planned beforehand (`plan`), so that the clock changes nothing unless it stops the
search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter

import numpy as np

from mercer.kernels.base import Kernel
from mercer.models.auto.entry import Entry, Problem, descend
from mercer.models.auto.plan import FINALISTS, FIRST_ROWS, FREE_STEPS, FREED, LAST_STEPS, TIED_STEPS, Clock, Plan
from mercer.models.auto.record import Record
from mercer.models.auto.relevance import tuned_by_relevance
from mercer.tuning.ranges import WIDTHS
from mercer.tuning.search import together
from mercer.tuning.trials import Measure, Trials

# A leave-one-out error above this share of the variance is no better than the error of the mean.
NO_BETTER = 0.99
# The gain on rows on which it was not found (in nats, as of a log likelihood) by which the relevance of columns pays.
RELEVANCE_PRICE = 10.0


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
    finalists = field[:FINALISTS]
    if planned.half and not clock.stops():
        parts = order[: planned.half], order[planned.half : 2 * planned.half]
        first, second = (problem.take(np.sort(part)).in_units() for part in parts)
        tried = sorted(tuned_by_relevance([e for e in field if not e.by_column], first, second, clock), key=_paid)
        leaders = _ran(finalists, second, clock, LAST_STEPS) if tried else []
        finalists += [e for e in tried[:FINALISTS] if e.value + RELEVANCE_PRICE < leaders[0].value]
        seen += leaders + tried
    if (planned.more or len(finalists) > FINALISTS) and not clock.stops():
        rows = problem.take(np.sort(order[: max(planned.more, planned.rows)])).in_units()
        field = _ran([e.moving(rows) for e in finalists], rows, clock, LAST_STEPS)
        leads(field[0])
        seen += field
    best, variance = field[0].times(problem.units), _variance(problem)
    seen.sort(key=lambda e: (-e.rows, e.error))
    trials = [entry.times(problem.units).trial(variance) for entry in seen]
    least = all(best.error <= e.error for e in seen if e.rows == best.rows)
    spread = "the variance" + (" of the counts per unit of exposure" if problem.rates else "")
    why = f"the smallest leave-one-out error{'' if least else ' among kernels with the same number of widths'}, "
    why += f"{best.error / variance:.3g} of {spread}; {_in_words(best, problem)}"
    if best.error >= NO_BETTER * variance:
        why += (
            f". On these {best.rows:,} rows no kernel is better than the mean: the columns carry little information, "
        )
        why += "or there are too few rows"
    if clock.stop is not None or not planned.whole:
        why += ". The time was too short to look further"
    chosen = next(i for i, entry in enumerate(seen) if entry is field[0])
    measure = Measure("loo", f"leave-one-out error as a share of {spread}", greater=False)
    record.add("Kernel", best.label, why, Trials(measure, tuple(trials), chosen), began)
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
    if not entry.by_column:
        return f"widths {float(widths[0]):.3g} × each column's standard deviation, {text}"
    order = np.argsort(widths)
    named = [f"{problem.names[i]} {float(widths[i]):.3g}" for i in order]
    most = ", ".join(named[:4]) + (f", … {named[-1]}" if len(named) > 4 else "")
    return f"widths in standard deviations, from the most informative columns: {most}; {text}"


def _ran(entries: list[Entry], problem: Problem, clock: Clock, limit: int) -> list[Entry]:
    """The entries after a descent, best first; entries that there was no time for come last, unchanged."""
    done = together([partial(_unless_stopped, e, problem, clock, limit) for e in entries])
    return sorted(done, key=_paid)


_paid = attrgetter("paid")


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
