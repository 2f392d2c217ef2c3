"""Box problems of one fit, solved side by side within its limits: the third step of every support vector machine."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer import threads
from mercer.gram import Gram
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix
from mercer.models.progress import Listeners
from mercer.models.svm.split import Part
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End

LARGE = 4000
"""Problems with more variables use all threads by themselves; smaller ones share them."""
MANY = 30
"""From this number of problems on, one of them prepares what all share before the others begin."""

Solved = tuple[BoxProblem, smo.Optimum]
"""A problem and its optimum."""
Store = dict[Any, Any] | None
"""Where a problem keeps its kernel values for the next one on the same Gram (`smo.solve`), or None."""


class Solver:
    """The clock of one fit and its listeners: it solves problems until the time is over or someone asks to stop.

    Parameters
    ----------
    model : whose `tol`, `max_iter`, `max_time`, `progress` and callbacks count; the clock starts here.

    Attributes
    ----------
    go_on : whether no one has asked this fit to stop.
    hurried : whether kernel values were not stored because half of the time was over.
    interrupt : the interrupt that ended it, or None.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.go_on, self.hurried = model, True, False
        self.interrupt: KeyboardInterrupt | None = None
        self.deadline = None if model.max_time is None else time.perf_counter() + model.max_time

    def late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over."""
        if self.deadline is None:
            return False
        return time.perf_counter() > self.deadline - (1.0 - share) * float(self.model.max_time)

    def solve_all(
        self,
        problems: Sequence[BoxProblem],
        stores: Sequence[Store] | None = None,
        max_iter: int | None = None,
    ) -> list[smo.Optimum]:
        """The optimum of each problem: large ones one after the other, small ones side by side.

        `max_iter` are pairs at the most for each problem; by default the parameter of the model. An interrupt leaves an
        iterate of every problem, which the caller keeps before it raises `interrupt` again.
        """
        optima: list[smo.Optimum | None] = [None] * len(problems)
        model, watch = self.model, getattr(self.model, "_watch", None)
        listeners = Listeners(model.progress, watch, self.go_on) if model.progress or watch else None

        def solve(i: int, progress: Callable[[smo.Progress], bool] | None = None) -> None:
            try:
                optima[i] = smo.solve(
                    problems[i],
                    tol=model.tol,
                    max_iter=model.max_iter if max_iter is None else max_iter,
                    max_time=None if self.deadline is None else max(0.0, self.deadline - time.perf_counter()),
                    progress=progress,
                    kept=None if stores is None else stores[i],
                )
            except smo.Interrupted as stop:
                optima[i] = stop.optimum
                raise

        def listened(i: int) -> None:
            if listeners is None:
                solve(i)
            elif listeners.go_on:
                task = listeners.begin(steps=problems[i].size > LARGE)
                solve(i, partial(listeners.told, task))
                listeners.end(task)

        def job(waiting: deque[int]) -> None:
            while not threads.stopped():
                try:
                    i = waiting.popleft()
                except IndexError:
                    return
                listened(i)

        order = sorted(range(len(problems)), key=lambda i: -problems[i].size)
        large = 1 if len(problems) == 1 else sum(problem.size > LARGE for problem in problems)
        alone, waiting = order[:large], deque(order[large:])
        if stores is not None and len(waiting) > MANY and stores[order[-1]] is stores[order[-2]] is not None:
            alone.append(waiting.pop())  # the smallest prepares what all of them share
        try:
            for i in alone:
                listened(i)
            if waiting:
                threads.run([partial(job, waiting)] * min(threads.n_threads(), len(waiting)))
        except KeyboardInterrupt:
            self.interrupt = KeyboardInterrupt("interrupted; the best iterate so far was kept")
            return [o or unsolved(p, "interrupted", End.INTERRUPTED) for o, p in zip(optima, problems)]
        self.go_on = listeners is None or listeners.go_on
        return [o or unsolved(p, smo.CALLER, End.CALLER) for o, p in zip(optima, problems)]


def stores(K: Gram, parts: Sequence[Part], *, again: bool = False) -> list[Store]:
    """Stores for parts of one Gram: those of some rows share one, so that points are prepared once for all of them.

    Where they are to be solved `again`, parts of all rows keep their kernel values too, if these fit into memory.
    """
    shared: dict[Any, Any] = {}
    keep = again and 8 * K.shape[0] ** 2 * min(len(parts), 3) <= memory_budget() // 2
    return [shared if rows is not None else {} if keep else None for rows, _, _ in parts]


def unsolved(problem: BoxProblem, status: str, end: End) -> smo.Optimum:
    """The start of a problem whose turn did not come."""
    beta = np.array(problem.start, dtype=np.float64)
    gradient = problem.linear + (_product(problem, beta) if beta.any() else 0.0)
    gap = float(problem.bounds_met(beta, gradient)[0])
    return smo.Optimum(beta, gradient, gap, problem.objective(beta, gradient), 0, status, False, end)


def _product(problem: BoxProblem, beta: Matrix) -> Matrix:
    """Kβ of every variable."""
    rows, K = problem.rows, problem.gram
    if rows is None:
        return np.asarray(K @ beta, dtype=np.float64)
    if len(rows) <= K.shape[0]:  # some of the points
        return np.asarray(K.restrict(rows) @ beta, dtype=np.float64)
    return np.asarray((K @ problem.per_point(beta))[rows], dtype=np.float64)
