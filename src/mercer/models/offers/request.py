"""A fit that was requested from the menu: its settings, its plan, its clock, and the choices made so far.

Every model searches its parameters on some rows and is then fitted to as many as the given seconds allow. Both numbers
follow from the costs of the model, those of `auto.plan`, before anything is computed: the clock changes them only if it
stops the work. Half of the seconds are planned for the search and the last fit together; the rest is for predictions,
and for machines and kernels that are slower than the costs assume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import take
from mercer.models.auto.plan import Clock, Plan
from mercer.models.auto.stages import LastFit, Limit, in_stages, sizes
from mercer.models.provenance import Task
from mercer.validation import generator

Index = NDArray[np.int64]
R = TypeVar("R")
Candidate = tuple[str, Callable[[], tuple[Any, float]]]
"""The name of a candidate, and a function that makes it and its score."""

# Shares of the seconds for the search and for the last fit.
SEARCH_SHARE, FIT_SHARE = 0.2, 0.3
# The fewest rows of a search and of a fit, however short the time is.
FEWEST_ROWS = 200


def sample(y: Any, rows: int, task: Task, seed: int) -> Index:
    """The positions of this many rows, drawn at random, but two rows of every class first; in their order.

    >>> {2, 5} <= set(sample(["no", "no", "yes", "no", "no", "yes", "no"], 4, "classification", seed=0).tolist())
    True
    """
    if rows >= len(y):
        return np.arange(len(y))
    order = generator(seed).permutation(len(y))
    if task == "classification":
        codes = np.unique(np.asarray(y)[order], return_inverse=True)[1]
        by_class = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)
        rank = np.empty(len(order), dtype=np.int64)
        rank[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = np.concatenate([order[rank < 2], order[rank >= 2]])
    return np.sort(order[:rows])


@dataclass
class Request:
    """The settings of a fit, and the choices made so far.

    Attributes
    ----------
    task : Task
        "regression" or "classification".
    kernel : Kernel or None
        A kernel, or None for the default of the model.
    own_kernel : bool
        Whether the caller set the kernel.
    plan, clock : Plan, Clock
        The given seconds, as a cost model and as a clock.
    centers : int or None
        The number of centres, or None for the default.
    seed : int
        The seed of samples and folds.
    progress : function
        Called with a line of text.
    roles : dict
        The roles of columns, for automatic models.
    weights
        How often each row counts, or None.
    class_weight : dict, "balanced" or None
        How much errors count by class, or None; `weights` do not include it.
    fits
        The number of fits of an automatic model that the seconds are for: one, and one that holds rows out to choose a
        threshold.
    choices : list of str
        The choices that were made, in words.
    last : LastFit or None
        The rows that the last fit used; None before it.
    """

    task: Task
    kernel: Any
    own_kernel: bool
    plan: Plan
    clock: Clock
    centers: int | None
    seed: int
    progress: Callable[..., None]
    roles: dict[str, str] = field(default_factory=dict)
    weights: Any = None
    class_weight: Any = None
    fits: int = 1
    choices: list[str] = field(default_factory=list)
    last: LastFit | None = None

    @property
    def seconds(self) -> float:
        """The given time."""
        return self.plan.seconds

    def weighted(self, rows: Any = None) -> dict[str, Any]:
        """The argument `sample_weight` of a fit to these rows, or to all, if there are weights."""
        if self.weights is None:
            return {}
        return {"sample_weight": self.weights if rows is None else self.weights[rows]}

    def by_class(self) -> dict[str, Any]:
        """The parameter `class_weight` of a classifier, if errors are weighted by class."""
        return {} if self.class_weight is None else {"class_weight": self.class_weight}

    def sample(self, y: Any, rows: int) -> Index:
        """The positions of this many rows, in their order."""
        return sample(y, rows, self.task, self.seed)

    def fewest(self, y: Any) -> int:
        """The fewest rows of a sample."""
        classes = 0 if self.task == "regression" else 2 * len(np.unique(y))
        return min(len(y), max(FEWEST_ROWS, classes))

    def sizes(self, y: Any, cost: Callable[[int], float], share: float) -> tuple[int, ...]:
        """Numbers of rows for stages of work that costs this many seconds, within a share of the given ones."""
        return sizes(cost, share * self.seconds, self.fewest(y), len(y))

    def stages(
        self, X: Any, y: Any, rows: Sequence[int], run: Callable[[Any, Any, dict[str, Any]], R],
        complete: Callable[[R], bool] = lambda _: True,
    ) -> tuple[int, R]:  # fmt: skip
        """Run work on samples of these numbers of rows: the last number that was carried out, and its result."""

        def stage(number: int) -> R:
            index = self.sample(y, number)
            part = X if number >= len(y) else take(X, index)
            return run(part, np.asarray(y)[index], self.weighted(index))

        return in_stages(self.clock, rows, stage, complete)

    def used(self, y: Any, rows: int, planned: int, centres: int | None = None, limit: Limit = "time") -> None:
        """Record the rows of the last fit, and why they are not all: the plan, or the clock if it stopped it."""
        if rows < planned:
            limit = "clock"
        elif rows >= len(y) and centres is None:
            limit = ""
        self.last = LastFit(rows, len(y), centres, limit)

    def best(self, paths: Iterable[Iterable[Candidate]], score: str, rows: int, total: int) -> Any:
        """The candidate with the best score on some rows of all.

        Each path leads away from the start, the first candidate of the first path, such as to smaller and to larger
        penalties. It ends when the score was below the best twice in a row; the search ends when the time is over.
        """
        best: tuple[float, str, Any] | None = None
        tried, late = 0, False
        for path in paths:
            fallen = 0
            for name, make in path:
                if fallen == 2:
                    break
                if best is not None and self.clock.late():
                    late = True
                    break
                model, value = make()
                tried += 1
                fallen = fallen + 1 if best is not None and value < best[0] else 0
                if best is None or value > best[0]:
                    best = (value, name, model)
                self.progress(f"{name}: {score} {value:.4g}; best so far {best[0]:.4g} ({best[1]})")
        assert best is not None
        among = "the only candidate that was tried" if tried == 1 else f"the best of {tried} candidates"
        on = f" on {rows:,} of {total:,} rows" if rows < total else ""
        self.choices.append(f"{best[1]}, {among}{on} ({score} {best[0]:.4g})")
        if late:
            self.choices.append("the time was over before all candidates were tried")
        return best[2]
