"""Grids: every kernel with every penalty, compared by any criterion, round by round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.data.cluster import Cluster
from mercer.kernels.base import Kernel
from mercer.tuning.loo import Matrix
from mercer.tuning.trials import NAN, Measure, Trial, Trials

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Grid:
    """The scores of every kernel and penalty.

    Attributes
    ----------
    measure : Measure
        The meaning of the scores.
    kernels : tuple of Kernel
        k kernels; those of rules are resolved on all rows.
    penalty, penalties : str, array
        The name of the other axis, "alpha" or "C", and its values, shape (a,).
    scores : array
        The scores, shape (k, a, folds), with one fold for a closed form. NaN if the candidate did not run on that fold,
        infinite if the system could not be solved.
    best : tuple
        Position (kernel, penalty) of the chosen candidate: the first of the best that ran on every fold.
    others
        Further parameters of each kernel, such as {"epsilon": 0.1}.
    """

    measure: Measure
    kernels: tuple[Kernel, ...]
    penalty: str
    penalties: Matrix
    scores: Matrix
    best: tuple[int, int]
    others: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        measure: Measure,
        kernels: Sequence[Kernel],
        penalty: str,
        penalties: Matrix,
        scores: Matrix,
        others: Sequence[dict[str, Any]] = (),
    ) -> Grid:
        """The grid of these scores, in which the first of the best candidates is chosen."""
        incomplete = np.isnan(scores).any(axis=2)
        position = measure.best(np.where(incomplete, np.nan, means_of(scores)).ravel())
        i, j = np.unravel_index(position, incomplete.shape)
        return cls(measure, tuple(kernels), penalty, penalties, scores, (int(i), int(j)), tuple(others))

    @property
    def values(self) -> Matrix:
        """Means over the folds that a candidate ran on, shape (k, a); NaN if it could not be solved on one of them."""
        means = means_of(self.scores)
        return np.where(np.isfinite(means), means, np.nan)

    @property
    def value(self) -> float:
        """The mean score of the chosen candidate."""
        return float(self.values[self.best])

    @property
    def folds(self) -> NDArray[np.int64]:
        """The number of folds that each candidate ran on, shape (k, a)."""
        return (~np.isnan(self.scores)).sum(axis=2)

    @property
    def parameters(self) -> dict[str, Any]:
        """The chosen parameters."""
        return self._parameters(*self.best)

    def _parameters(self, i: int, j: int) -> dict[str, Any]:
        others = self.others[i] if self.others else {}
        return {"kernel": self.kernels[i], self.penalty: float(self.penalties[j]), **others}

    @property
    def trials(self) -> Trials:
        """The record of all candidates, kernel by kernel."""
        values, folds = self.values, self.folds
        several = self.scores.shape[2] > 1
        trials = []
        for i, j in np.ndindex(values.shape):
            ran, count = self.scores[i, j, ~np.isnan(self.scores[i, j])], int(folds[i, j])
            error = float(ran.std() / np.sqrt(count - 1)) if count > 1 and np.isfinite(ran).all() else NAN
            trials.append(Trial(self._parameters(i, j), float(values[i, j]), error, folds=count if several else 0))
        return Trials(self.measure, tuple(trials), self.best[0] * values.shape[1] + self.best[1])

    @property
    def at_edge(self) -> tuple[str, ...]:
        """The axes ("kernel" and the penalty) of more than two values at whose end the chosen candidate is."""
        axes = (("kernel", len(self.kernels), self.best[0]), (self.penalty, len(self.penalties), self.best[1]))
        return tuple(name for name, size, position in axes if size > 2 and position in (0, size - 1))


def means_of(scores: Matrix) -> Matrix:
    """Means over the folds that a candidate ran on; NaN if there are none."""
    ran = ~np.isnan(scores)
    totals = np.where(ran, scores, 0.0).sum(axis=2)
    return np.where(ran.any(axis=2), totals / np.maximum(ran.sum(axis=2), 1), np.nan)


class GridCriterion(ABC):
    """A criterion that compares the candidates of a grid.

    Attributes
    ----------
    measure : Measure
        The meaning of its scores.
    rounds : sequence
        The numbers of the folds of each round; between rounds candidates may leave.
    """

    measure: Measure
    rounds: Sequence[Sequence[int]]

    @abstractmethod
    def evaluate(self, racing: Mask, folds: Sequence[int], scores: Matrix) -> None:
        """Fill scores[i, j, folds] of the candidates that are racing."""

    def still(self, racing: Mask, scores: Matrix) -> Mask:
        """The racing candidates that can still become the best."""
        return racing


def run_grid(criterion: GridCriterion, racing: Mask, cluster: Cluster | None = None) -> Matrix:
    """The scores of the candidates that are `racing`, shape (k, a, folds), round by round; NaN elsewhere.

    On a cluster every kernel and fold is a task, to whose workers the data goes once, and no candidate leaves early.
    """
    scores = np.full((*racing.shape, sum(len(folds) for folds in criterion.rounds)), np.nan)
    if cluster is not None:
        every = [fold for part in criterion.rounds for fold in part]
        tasks = [(int(i), fold) for i in np.flatnonzero(racing.any(axis=1)) for fold in every]
        results = cluster.each(_on_worker, (criterion, racing, scores.shape), tasks)
        for (i, fold), values in zip(tasks, results):
            scores[i, :, fold] = values
        return scores
    for folds in criterion.rounds:
        criterion.evaluate(racing, folds, scores)
        racing = criterion.still(racing, scores)
        if not racing.any():
            break
    return scores


def _on_worker(sent: tuple[GridCriterion, Mask, tuple[int, ...]], i: int, fold: int) -> Matrix:
    """The scores of one kernel on one fold."""
    criterion, racing, shape = sent
    only, scores = np.zeros_like(racing), np.full(shape, np.nan)
    only[i] = racing[i]
    with threads.alone():
        criterion.evaluate(only, [fold], scores)
    return scores[i, :, fold]
