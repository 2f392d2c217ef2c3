"""Work in stages of growing size, and the record of the last one: how many rows it used, and why not more.

The sizes are planned by costs before the work begins. The first stage is always carried out, so that there is a result;
the clock is read between the later ones and, by loops over tiles, within them. A stage that the clock stops is given
up, and the result of the one before is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from mercer import threads
from mercer.models.auto.plan import SHORT_STAGE, STAGE_FACTOR, Clock, largest
from mercer.words import count

S = TypeVar("S")
R = TypeVar("R")

Limit = Literal["", "time", "memory", "clock", "interrupt"]
"""The reason why a fit does not use all rows, or only some of them as centres: by the plan, or because it was ended."""


@dataclass(frozen=True)
class LastFit:
    """The rows that the last fit used.

    Attributes
    ----------
    rows, total : int
        The number of rows that it was fitted to, and of those that were given.
    centres : int or None
        The number of rows that the fitted function is a sum over, if these are fewer; else None.
    limit : Limit
        The reason why it does not use more rows or centres; empty if it uses all, or as many as requested.

    Examples
    --------
    >>> print(LastFit(4000, 50_000, limit="time"))
    4,000 of 50,000 rows: more would take longer than the given time
    >>> print(LastFit(9000, 9000, 1500, "time"))
    all 9,000 rows, by a sum over 1,500 of them (the centres): an exact fit would take longer than the given time
    >>> print(LastFit(300, 300))
    all 300 rows
    """

    rows: int
    total: int
    centres: int | None = None
    limit: Limit = ""

    def __str__(self) -> str:
        every = self.rows == self.total
        text = f"all {count(self.rows, 'row')}" if every else f"{self.rows:,} of {count(self.total, 'row')}"
        if self.centres is not None:
            text += f", by a sum over {self.centres:,} of them (the centres)"
        larger = "an exact fit" if every and self.centres is not None else "more"
        why = {
            "": "",
            "time": f": {larger} would take longer than the given time",
            "memory": f": {larger} would not fit into memory",
            "clock": ": the time limit was reached",
            "interrupt": ": the fit was interrupted",
        }
        return text + why[self.limit]


def sizes(cost: Callable[[int], float], limit: float, low: int, high: int) -> tuple[int, ...]:
    """Numbers in [low, high] for stages: the greatest whose cost is within the limit, after smaller ones.

    >>> sizes(lambda n: 1e-6 * n * n, 100.0, 100, 50_000)
    (441, 1249, 3535, 10000)
    """
    found = [largest(cost, limit, low, high)]
    while found[0] > low and cost(found[0]) > SHORT_STAGE:
        found.insert(0, largest(cost, cost(found[0]) / STAGE_FACTOR, low, high))
    return tuple(dict.fromkeys(found))


def in_stages(
    clock: Clock, stages: Sequence[S], run: Callable[[S], R], complete: Callable[[R], bool] = lambda _: True
) -> tuple[S, R]:
    """The last stage that was carried out, and its result.

    Parameters
    ----------
    clock : Clock
        Stops the work when its seconds are over.
    stages : sequence of S
        The sizes of the stages.
    run : function
        Carries out the stage of a size.
    complete : function
        Whether the result of a stage is complete; if the clock stopped it, the one before is better.
    """
    done: tuple[S, R] | None = None
    for stage in stages:
        if done is None:
            done = stage, run(stage)
            continue
        if clock.late():
            break
        try:
            with threads.time_limit(clock.late):
                result = run(stage)
        except threads.OutOfTime:
            break
        if not complete(result) and clock.late():
            break
        done = stage, result
    assert done is not None
    return done
