"""Few relevant columns among many: the widths of one kernel show which columns matter, and all kernels try them.

If most columns are noise, distances with one width for all columns are mostly noise, too, and no kernel is better than
the mean. But the leave-one-out error of a kernel that is a product of one factor per column falls along its gradient by
the widths of the columns, until those that do not matter are so wide that they no longer count. The prior on the
widths has heavy tails: most columns may share a width, and a few may differ from it by any factor. The inverse widths,
in units of the columns' spread, are the columns' relevance.

It is found on one half of the rows and judged on the other: there, every kernel gets widths in proportion to
1/relevance, and tunes only what they have in common. These widths cannot follow the noise of rows that they have not
seen. The idea that a first fit shows which columns a second one should look at is that of recursive feature machines
(Radhakrishnan, Beaglehole, Pandit & Belkin 2024), which take the squared gradients of the fitted function.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mercer.models.auto.entry import Entry, Problem, descend, groups
from mercer.models.auto.plan import RELEVANCE_STEPS, TIED_STEPS, Clock
from mercer.models.base import Matrix
from mercer.tuning.search import together

# The degrees of freedom of the prior on log σ while the relevance of columns is searched.
TAIL = 2.0
# The least number of rows per column: fewer than to keep the widths, because other rows judge them.
ROWS_PER_COLUMN = 2.0


def tuned_by_relevance(entries: list[Entry], first: Problem, second: Problem, clock: Clock) -> list[Entry]:
    """The kernels with widths by relevance, which is found on the first rows, tuned on the second.

    None of them if there are too few rows for the number of columns.
    """
    logs = log_relevance(entries, first, clock)
    if not logs or clock.stops():
        return []
    kernels = [one for entry in entries if (one := by_relevance(entry, logs, second)) is not None]
    return together([partial(descend, one, second, clock, TIED_STEPS) for one in kernels])


def log_relevance(entries: list[Entry], problem: Problem, clock: Clock) -> dict[str, Matrix]:
    """log(relevance) of the columns, 0 for the most relevant one, by group of widths; empty if there are too few rows.

    The first of the kernels with one factor per column is tuned from its start, with a width for each column.
    """
    scout = max(entries, key=_is_product)
    start = Entry.of(scout.name, scout.start, problem.points).vector(problem)
    if not start.separable(len(problem), ROWS_PER_COLUMN):
        return {}
    tuned = descend(replace(start, by_column=True, each=True), problem, clock, RELEVANCE_STEPS, TAIL)
    wider = tuned.kernel.theta - start.kernel.theta
    return {name: wider[at].min() - wider[at] for name, at in groups(tuned.kernel).items() if len(at) > 1}


def by_relevance(entry: Entry, logs: dict[str, Matrix], problem: Problem) -> Entry | None:
    """The kernel as it was at first, with widths in proportion to 1/relevance; None if it has no width per column.

    The common factor is that of as many columns as are relevant: widths grow as the root of Σ relevance.
    """
    start = Entry.of(entry.name, entry.start, problem.points).vector(problem)
    by_size = {len(one): one for one in reversed(logs.values())}
    shift = np.zeros(len(start.kernel.theta))
    for name, at in groups(start.kernel).items():
        one = logs.get(name, by_size.get(len(at)))
        if one is not None and len(one) == len(at):
            shift[at] = 0.5 * np.log(np.exp(one).mean()) - one
    if not shift.any():
        return None
    kernel = start.kernel.with_theta(start.kernel.theta + shift)
    return replace(start, kernel=kernel, start=kernel, by_column=True)


def _is_product(entry: Entry) -> bool:
    """Whether the kernel is a product of one factor per column: its distance is a sum over the columns."""
    return any(unit == "taxicab" for leaf in entry.kernel.leaves for unit in leaf.units.values())
