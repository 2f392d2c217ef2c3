"""Searches by gradient: a criterion with bounds, descents from several starts, and the record of each evaluation.

Every search by gradient is this loop with its own criterion: kernel ridge and Gaussian processes (`by_gradient`),
bandwidths of local methods (`smoothing`), widths of densities (`parzen_likelihood`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from mercer import threads
from mercer.tuning.quasi_newton import Evaluation, Matrix, Reached, minimise, positive_definite
from mercer.tuning.trials import Measure, Trial, Trials

T = TypeVar("T")


class Criterion(ABC):
    """A function of some numbers x, mostly logarithms of parameters, to be minimised between `low` and `high`."""

    low: Matrix
    high: Matrix

    @property
    @abstractmethod
    def measure(self) -> Measure:
        """The meaning of the value."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the parameters."""

    @abstractmethod
    def __call__(self, x: Matrix) -> Evaluation:
        """The value to minimise and its gradient; an infinite value, if there is none, makes the search turn back."""

    def alone(self, x: Matrix) -> float:
        """The value without its gradient, which may cost less."""
        return self(x).value

    def score(self, value: float) -> float:
        """The value as a score by `measure`."""
        return value

    def natural(self, x: Matrix) -> Matrix:
        """The parameters themselves."""
        return np.exp(x)


class GradientSearch:
    """Descents of one criterion; each of its evaluations becomes a trial."""

    def __init__(self, criterion: Criterion) -> None:
        self.criterion = criterion
        self._evaluated: list[tuple[Matrix, float]] = []

    def __call__(self, x: Matrix) -> Evaluation:
        """The criterion, recorded."""
        at = self.criterion(x)
        self._evaluated.append((at.x, at.value))
        return at

    def alone(self, x: Matrix) -> float:
        """The criterion without its gradient, recorded."""
        value = self.criterion.alone(x)
        self._evaluated.append((x, value))
        return value

    def ranked(self, starts: Iterable[Matrix]) -> list[tuple[float, Matrix]]:
        """The starts with their values, moved within the bounds, best first."""
        inside = [np.clip(x, self.criterion.low, self.criterion.high) for x in starts]
        return sorted(((self.alone(x), x) for x in inside), key=lambda start: start[0])

    def descend(
        self,
        starts: Sequence[Matrix],
        *,
        precision: float,
        limit: int = 100,
        curvature: Matrix | None = None,
        at_once: bool = False,
    ) -> Reached:
        """The lowest of the minima that are reached from the starts.

        precision, limit, curvature : as in `minimise`.
        at_once : whether the descents share the threads; otherwise each evaluation may use all of them.
        """
        low, high = self.criterion.low, self.criterion.high
        jobs = [partial(minimise, self, x, low, high, curvature, precision, limit) for x in starts]
        reached = together(jobs) if at_once else [job() for job in jobs]
        return min(reached, key=lambda one: one.at.value)

    def trials(self, chosen: Matrix, value: float) -> Trials:
        """The record of all evaluations, with the chosen one at its end."""
        c, names = self.criterion, list(self.criterion.names)
        evaluated = [*self._evaluated, (chosen, value)]
        trials = [Trial(dict(zip(names, c.natural(x).tolist())), c.score(v)) for x, v in evaluated]
        return Trials(c.measure, tuple(trials), len(trials) - 1)

    @property
    def evaluations(self) -> int:
        return len(self._evaluated)


def curvature(f: Criterion, at: Evaluation, step: float, least: float, share: float = 0.0) -> Matrix | None:
    """The Hessian by differences of gradients, made positive definite; None if they are not finite.

    Its eigenvalues are at least `least`, and at least the given `share` of the largest.
    """
    size, low, high = len(at.x), f.low, f.high
    H = np.zeros((size, size))
    moving = np.flatnonzero(low < high)
    moves = [at.x + np.where(at.x[i] + step <= high[i], step, -step) * np.eye(size)[i] for i in moving]
    for i, moved, there in zip(moving, moves, together([partial(f, moved) for moved in moves])):
        if not np.isfinite(there.value):
            return None
        H[i] = (there.gradient - at.gradient) / (moved[i] - at.x[i])
    largest = float(np.abs(np.linalg.eigvalsh(0.5 * (H + H.T))).max())
    return positive_definite(H, max(share * largest, least))


def together(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The results of the jobs, which share the threads: each job, and BLAS in it, has one."""
    results: dict[int, T] = {}

    def store(i: int) -> None:
        results[i] = jobs[i]()

    threads.run([partial(store, i) for i in range(len(jobs))])
    return [results[i] for i in range(len(jobs))]
