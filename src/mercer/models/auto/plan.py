"""The cost of an automatic search: a plan in operations, made before it begins, and the clock that may stop it.

The plan depends on the numbers of rows, columns, classes and candidates and on the given seconds, not on the machine.
So a search of the same data with the same `random_state` makes the same choices on an idle machine and on a busy one.
Seconds become operations by the fixed costs below, those of one slow core, so that most machines need about half of the
given seconds. The clock can only stop the search: if the seconds are over before the plan is carried out, the rest of
it is left out, and the model reports it.

An evaluation of the criterion on n rows with p parameters (the matrix, its inverse, and a gradient) costs

    CALL + (PAIR + PARAMETER · p) · n² + CUBE · n³ seconds,

an exact fit a multiple of it, and a fit of n rows on m centres PAIR · nm + CUBE · nm² for each of its Newton steps.
A kernel value that takes longer by the counts of `gram.costs`, such as one of texts, is paid in place of PAIR.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mercer.data.points import Points
from mercer.gram import costs
from mercer.kernels.base import Similarity
from mercer.memory import resident
from mercer.words import seconds, show_bytes

# Seconds per call, per pair of rows, per pair and parameter, and per cube of the number of rows.
CALL, PAIR, PARAMETER, CUBE = 2e-3, 3e-8, 4e-9, 7e-11
# Seconds for each counted nanosecond of a kernel value, twice those of a common core; and the most nanoseconds that are
# counted, for a function in Python.
COUNTED, PYTHON = 2e-9, 1000.0
# Seconds per kernel value of a support vector machine, for the values between the two classes of every pair.
MACHINE_VALUE = 1e-8
# Seconds per pair of rows of a machine whose classes overlap, or whose targets are numbers.
MACHINE_PAIR = 1e-7

# Rows of the first race, and those that are enough for the second; more are used if there is time for them.
FIRST_ROWS, SECOND_ROWS = 200, 1200
# The most rows of the two races.
MOST_FIRST, MOST_SECOND = 1000, 5000
# The numbers of the best kernels that get a width per column, and that enter the second race.
FREED, FINALISTS = 2, 2
# Evaluations of the criterion: for one width per group of columns, for a width per column, and in the second race.
TIED_STEPS, FREE_STEPS, LAST_STEPS = 8, 8, 4
# Evaluations of the search for relevant columns, the rows of each of its halves that are enough, and the most.
RELEVANCE_STEPS, RELEVANCE_ROWS, MOST_RELEVANCE = 24, 500, 1000
# Centres and rows of the first fit of many rows, and the most centres.
PILOT_CENTRES, PILOT_ROWS, MOST_CENTRES = 250, 1000, 5000
# Bytes of an evaluation for each pair of rows.
BYTES_PER_PAIR = 64
# Rows on which losses are compared: those that are enough, and the most.
LOSS_ROWS, MOST_LOSS_ROWS = 500, 2000
# Shares of the seconds for the first race, for widths per column, for the second race, for each loss, for the estimate
# of the optimism of tuning, and for the last fit. The rest is for costs that are not counted.
RACE_SHARE, WIDTHS_SHARE, SECOND_SHARE, LOSS_SHARE, JUDGE_SHARE, FIT_SHARE = 0.1, 0.05, 0.15, 0.05, 0.1, 0.4
RELEVANCE_SHARE = 0.15
# A fit of many rows is done in stages, each of which costs this many times the one before; the clock is read between.
STAGE_FACTOR = 8.0
# Seconds that every fit has, however short the time is: one that does not converge is of no use.
LEAST_TIME = 5.0
# A stage that costs less than this many seconds needs no smaller one before it.
SHORT_STAGE = 1.0

Stop = Literal["time", "progress", "interrupt"]


# -- the clock ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchProgress:
    """The report of one candidate, with which `progress` is called.

    Attributes
    ----------
    name : str
        The candidate: a kernel, a loss, or the last fit.
    score : float
        Its `measure`, greater is better; NaN if it has none.
    best, best_score : str, float
        The best so far by the same measure.
    seconds, share : float
        The time spent so far, and as a share of the given time, at most 1.
    left, nbytes : float, int
        Seconds that are left of the given time, and the memory of the process.

    Examples
    --------
    >>> from mercer.models.auto.plan import SearchProgress
    >>> print(SearchProgress("Matern 3/2", 0.871, "leave-one-out R²", "Gaussian", 0.883, 1.5, 0.1))
    leave-one-out R² 0.871 (Matern 3/2); best 0.883 (Gaussian)
    """

    name: str
    score: float
    measure: str
    best: str
    best_score: float
    seconds: float
    share: float
    left: float = np.nan
    nbytes: int = 0

    @property
    def resources(self) -> str:
        """The time that is left and the memory in use, in words."""
        left = "time over" if self.left <= 0 else f"{seconds(self.left)} left"
        return f"{left}, {show_bytes(self.nbytes)}"

    def __str__(self) -> str:
        if not np.isfinite(self.score):
            return self.name
        text = f"{self.measure} {self.score:.3f} ({self.name}); "
        if self.best == self.name:
            return f"{text}the best so far"
        best = f"best {self.best_score:.3f}"
        named = f"{best} ({self.best})"
        return text + (named if len(text + named) <= 70 else best)


class Clock:
    """Stops a search when its seconds are over, and reports how they are spent.

    `progress` is called with a `SearchProgress` by one thread at a time; False ends the search. `stop` is the reason
    why a part of the plan was left out, or None.
    """

    now: Callable[[], float] = staticmethod(time.perf_counter)

    def __init__(self, seconds: float, progress: Callable[[SearchProgress], Any] | None = None) -> None:
        self.began, self.seconds, self.progress = self.now(), seconds, progress
        self.lock, self.refused = threading.Lock(), False
        self.stop: Stop | None = None
        self.best: dict[str, tuple[float, str]] = {}

    def report(self, name: str, score: float = np.nan, measure: str = "") -> None:
        """Call `progress`, if there is one."""
        if self.progress is None:
            return
        with self.lock:
            self.best[measure] = max(self.best.get(measure, (-np.inf, "")), (score, name))
            spent = self.spent
            best_score, best = self.best[measure]
            so_far = SearchProgress(
                name, score, measure, best, best_score, spent, min(spent / self.seconds, 1.0), self.seconds - spent,
                resident(),
            )  # fmt: skip
            if not self.refused and self.progress(so_far) is False:
                self.refused = True

    @property
    def spent(self) -> float:
        return self.now() - self.began

    @property
    def left(self) -> float:
        return self.seconds - self.spent

    def stops(self) -> bool:
        """Whether to leave out the next part of the search: called only if there is one, and noted in `stop`."""
        if self.refused:
            self.stop = self.stop or "progress"
        return self.refused or self.late()

    def late(self) -> bool:
        """Whether the seconds are over, so that the next part of the last fit is left out, too; noted in `stop`."""
        late = self.spent > self.seconds
        if late:
            self.stop = self.stop or "time"
        return late


# -- costs -------------------------------------------------------------------------------------------------------------


def pair_of(kernels: Iterable[Any], points: Points) -> float:
    """Seconds for a pair of rows with the most expensive of these kernels, PAIR at least.

    >>> import mercer as mc
    >>> pair_of([mc.Gaussian(1.0)], Points(np.zeros((10, 3)))) == PAIR
    True
    >>> round(pair_of([mc.Spectrum(3)], Points(["a text of twenty-six chars"] * 9)) / PAIR, 2)
    1.8
    """
    counted = [costs.entry(kernel, points) for kernel in kernels if isinstance(kernel, Similarity)]
    return max(PAIR, COUNTED * min(max(counted, default=0.0), PYTHON))


def largest(cost: Callable[[int], float], limit: float, low: int, high: int) -> int:
    """The greatest whole number in [low, high] whose cost is within the limit; low where none is."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= limit else (low, middle - 1)
    return low


# -- the plan ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Race:
    """The effort that goes into the comparison of kernels.

    Attributes
    ----------
    rows, tied : int
        The rows of the first race, and the evaluations for each of its candidates; a single evaluation compares them
        unchanged.
    free : int
        The evaluations for each candidate with a width per column; 0 if there is none.
    half : int
        The number of rows on which the relevance of columns is found, and of others on which it is judged; 0 if it is
        not searched.
    more : int
        The rows of the second race; 0 if there is none.
    whole : bool
        Whether nothing was left out because of the seconds.
    """

    rows: int
    tied: int
    free: int
    half: int
    more: int
    whole: bool


@dataclass(frozen=True)
class Plan:
    """The work that fits into the given seconds, and bytes, for n rows. A race and a fit are always part of it.

    `pair` are the seconds for a kernel value, as of `pair_of`.
    """

    seconds: float
    n: int
    memory: float = np.inf
    pair: float = PAIR

    @property
    def beyond(self) -> float:
        """The seconds by which a kernel value takes longer than those that the constants assume."""
        return self.pair - PAIR

    def evaluation(self, n: int, p: int = 0) -> float:
        """Seconds for the criterion and its gradient by p parameters on n rows."""
        return CALL + (self.pair + PARAMETER * p) * n**2 + CUBE * n**3

    def on_centres(self, n: int, m: int, steps: float) -> float:
        """Seconds for a fit of n rows on m centres."""
        return steps * (CALL + self.pair * n * m + CUBE * n * m**2)

    def machine(self, values: float) -> float:
        """Seconds for a support vector machine whose problems have this many kernel values."""
        return (MACHINE_VALUE + self.beyond) * values

    def machine_of_rows(self, n: float) -> float:
        """Seconds for a support vector machine of n rows of two classes that overlap, or of numbers."""
        return CALL + (MACHINE_PAIR + self.beyond) * n**2

    def in_memory(self, rows: int, enough: int) -> int:
        """At most this many rows, and not more than have room for the matrices of an evaluation if these are enough."""
        return rows if rows <= enough else int(min(rows, max(enough, np.sqrt(self.memory / BYTES_PER_PAIR))))

    def race(self, candidates: int, p: int, enough: int) -> Race:
        """The race of the given number of kernels with up to p parameters each; `enough` is that of `Problem`.

        >>> Plan(60.0, 5000).race(7, 10, 1000)
        Race(rows=891, tied=8, free=8, half=874, more=2228, whole=True)
        >>> Plan(0.1, 5000).race(7, 10, 1000)
        Race(rows=200, tied=1, free=0, half=0, more=0, whole=False)
        """
        n = self.n
        few = n <= 1.25 * FIRST_ROWS
        first = largest(
            lambda r: candidates * TIED_STEPS * self.evaluation(r, p),
            RACE_SHARE * self.seconds,
            FIRST_ROWS,
            MOST_FIRST,
        )
        rows = n if few else min(first, n)
        tied = min(TIED_STEPS, max(1, int(RACE_SHARE * self.seconds / (candidates * self.evaluation(rows, p)))))
        free = min(FREE_STEPS, int(WIDTHS_SHARE * self.seconds / (FREED * self.evaluation(rows, p))))
        wanted = n if n <= 1.25 * enough else int(np.clip(n // 2, enough, SECOND_ROWS))
        room = self.in_memory(max(wanted, min(n // 2, MOST_SECOND)), wanted)
        more = largest(lambda r: FINALISTS * LAST_STEPS * self.evaluation(r, p), SECOND_SHARE * self.seconds, 0, room)
        steps = RELEVANCE_STEPS + candidates * TIED_STEPS + FINALISTS * LAST_STEPS
        both, most = min(n // 2, RELEVANCE_ROWS), min(n // 2, MOST_RELEVANCE)
        half = largest(lambda r: steps * self.evaluation(r, p), RELEVANCE_SHARE * self.seconds, 0, most)
        half = half if half >= min(both, FIRST_ROWS) else 0
        whole = half >= both and tied == TIED_STEPS and free == FREE_STEPS and (more >= wanted or wanted <= 1.25 * rows)
        return Race(rows, tied, free if free > 1 else 0, half, more if more > 1.25 * rows else 0, whole)

    def loss_rows(self, fewest: int) -> int:
        """The number of rows on which losses are compared.

        >>> Plan(60.0, 100_000).loss_rows(0), Plan(1.0, 100_000).loss_rows(0), Plan(60.0, 600).loss_rows(0)
        (1614, 500, 600)
        """
        rows = largest(lambda r: FREE_STEPS * self.evaluation(r), LOSS_SHARE * self.seconds, LOSS_ROWS, MOST_LOSS_ROWS)
        rows = max(self.in_memory(rows, LOSS_ROWS), fewest)
        return self.n if self.n <= 1.25 * rows else rows

    def affords_loss(self, rows: int, evaluations: float) -> bool:
        """Whether a loss may be tried on these rows that costs this many evaluations."""
        return evaluations * self.evaluation(rows) <= LOSS_SHARE * self.seconds

    def affords_judging(self, candidates: int, rows: int, p: int) -> bool:
        """Whether the first race of this many kernels may be repeated on two halves of these rows."""
        evaluations = 2 * (candidates * TIED_STEPS + FREED * FREE_STEPS)
        return evaluations * self.evaluation(rows // 2, p) <= JUDGE_SHARE * self.seconds

    def affords_exact(self, evaluations: float) -> bool:
        """Whether the last fit may be an exact one of all rows, at the cost of this many evaluations."""
        return evaluations * self.evaluation(self.n) <= FIT_SHARE * self.seconds

    def affords_machine(self, pairs: float) -> bool:
        """Whether a support vector machine may be fitted whose problems have this many kernel values."""
        return self.machine(pairs) <= FIT_SHARE * self.seconds

    def affords_rows_of_machine(self) -> bool:
        """Whether a support vector machine may be fitted to all rows, of two classes that overlap or of numbers."""
        return self.machine_of_rows(self.n) <= FIT_SHARE * self.seconds

    def machines(self, fewest: int) -> tuple[int, ...]:
        """Numbers of rows of support vector machines, each larger than the one before; the last one is kept.

        >>> Plan(20.0, 100_000).machines(500)
        (3159, 8943)
        """
        limit, few = FIT_SHARE * self.seconds, min(fewest, self.n)
        last = largest(self.machine_of_rows, limit, few, self.n)
        first = largest(self.machine_of_rows, self.machine_of_rows(last) / STAGE_FACTOR, few, self.n)
        return (last,) if self.machine_of_rows(last) < SHORT_STAGE else tuple(dict.fromkeys((first, last)))

    def stages(self, steps: float, fewest: int = 0) -> tuple[tuple[int, int], ...]:
        """Rows and centres of the fits of many rows, each larger than the one before; the last fit is kept.

        >>> Plan(60.0, 100_000).stages(1.0)
        ((1000, 250), (31388, 250), (100000, 474), (100000, 1649))
        """
        first = min(self.n, max(PILOT_ROWS, fewest)), PILOT_CENTRES
        stages = [self._within(FIT_SHARE * self.seconds, steps, first)]
        cost = self.on_centres(*stages[0], steps) / STAGE_FACTOR
        while cost > self.on_centres(*first, steps) * STAGE_FACTOR:
            stages.append(self._within(cost, steps, first))
            cost /= STAGE_FACTOR
        stages.append(first)
        return tuple(dict.fromkeys(reversed(stages)))

    def _within(self, seconds: float, steps: float, first: tuple[int, int]) -> tuple[int, int]:
        rows = largest(lambda r: self.on_centres(r, PILOT_CENTRES, steps), seconds, first[0], self.n)
        if rows < self.n:
            return rows, PILOT_CENTRES
        most = max(PILOT_CENTRES, min(MOST_CENTRES, rows // 4))
        return rows, largest(lambda m: self.on_centres(rows, m, steps), seconds, PILOT_CENTRES, most)
