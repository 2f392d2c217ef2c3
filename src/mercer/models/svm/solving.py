"""The box problems of one fit, solved side by side within its limits: the third step of every machine."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mercer import threads
from mercer.gram import Gram
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix
from mercer.models.progress import Listeners
from mercer.models.svm import costs
from mercer.models.svm.split import Part
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.step import Progress

Solved = tuple[BoxProblem, smo.Optimum]
"""A problem and its optimum."""
Store = dict[Any, Any] | None
"""Keeps the kernel values of a problem for the next one on the same Gram (`smo.solve`); None keeps nothing."""


class Solver:
    """The clock and the listeners of one fit: it solves problems until the time is over or a listener stops it.

    The clock starts when the solver is made.

    Parameters
    ----------
    model : estimator
        The model, with its `tol`, `max_iter`, `max_time`, `progress` and callbacks.

    Attributes
    ----------
    go_on : bool
        Whether no listener has stopped this fit.
    hurried : bool
        Whether kernel values were not stored because half of the time was over.
    interrupt
        The interrupt that ended the fit, or None.
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

        `max_iter` is the largest number of pairs for each problem; by default the parameter of the model. After an
        interrupt there is an iterate of every problem; the caller keeps them and then raises `interrupt` again.
        """
        optima: list[smo.Optimum | None] = [None] * len(problems)
        model, watch = self.model, getattr(self.model, "_watch", None)
        listeners = Listeners(model.progress, watch, self.go_on) if model.progress or watch else None

        def solve(i: int, progress: Progress | None = None) -> None:
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
                task = listeners.begin(steps=problems[i].size > costs.OWN_THREADS)
                solve(i, partial(listeners.report, task))
                listeners.end(task)

        def job(waiting: deque[int]) -> None:
            while not threads.stopped():
                try:
                    i = waiting.popleft()
                except IndexError:
                    return
                listened(i)

        order = sorted(range(len(problems)), key=lambda i: -problems[i].size)
        large = 1 if len(problems) == 1 else sum(problem.size > costs.OWN_THREADS for problem in problems)
        alone, waiting = order[:large], deque(order[large:])
        shared = stores is not None and len(problems) > 1 and stores[order[-1]] is stores[order[-2]] is not None
        if shared and len(waiting) > costs.SHARED_PREPARATION:
            alone.append(waiting.pop())  # the smallest problem prepares the points for all of them
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
    """A store for each part of one Gram: parts of some rows share one, so that points are prepared once for all.

    If the parts will be solved `again`, parts of all rows keep their kernel values too, as far as memory allows.
    """
    shared: dict[Any, Any] = {}
    keep = again and 8 * K.shape[0] ** 2 * min(len(parts), 3) <= memory_budget() // 2
    return [shared if rows is not None else {} if keep else None for rows, _, _ in parts]


def unsolved(problem: BoxProblem, status: str, end: End) -> smo.Optimum:
    """The start of a problem, as the optimum of a problem that was never begun."""
    beta = np.array(problem.start, dtype=np.float64)
    gradient = problem.linear + (_product(problem, beta) if beta.any() else 0.0)
    gap = float(problem.bounds_met(beta, gradient)[0])
    return smo.Optimum(beta, gradient, gap, problem.objective(beta, gradient), 0, status, False, end)


def _product(problem: BoxProblem, beta: Matrix) -> Matrix:
    """(Kβ)ᵢ for every variable i."""
    rows, K = problem.rows, problem.gram
    if rows is None:
        return np.asarray(K @ beta, dtype=np.float64)
    if len(rows) <= K.shape[0]:  # some of the points
        return np.asarray(K.restrict(rows) @ beta, dtype=np.float64)
    return np.asarray((K @ problem.per_point(beta))[rows], dtype=np.float64)
