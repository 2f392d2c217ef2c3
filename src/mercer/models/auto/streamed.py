"""The search of an automatic model over rows that do not fit into memory.

One pass over the source draws a sample, collects targets, weights and exposures (eight bytes per row each), and makes
sure that the sample shows which columns miss values, and every class. Kernel and loss are chosen on the sample, as on
rows in memory. The last fit uses all rows, on centres; its penalty has the least leave-one-out error there, and the
same left-out rows calibrate intervals or probabilities. The number of centres is planned by counting operations, so
that the same rows always give the same model; all rows are read, even if that takes longer than the given time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import memory
from mercer.data.assignment import Roles
from mercer.data.batches import Batches
from mercer.data.sampling import Witnesses, drawn
from mercer.errors import InvalidInput
from mercer.models.auto.plan import FIT_SHARE, MOST_CENTRES, PILOT_CENTRES, Clock, Plan, largest
from mercer.models.auto.search import TYPED_ROWS, Search
from mercer.models.auto.stages import LastFit, Limit
from mercer.models.auto.task import Fit, Index, LeftOut, Task
from mercer.models.base import Matrix, positive_weights
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.likelihood.predictor import KernelPredictor
from mercer.solvers.nystrom import default_centers
from mercer.validation import generator
from mercer.words import count


class Targets(NamedTuple):
    """The targets or labels of some rows, with weights and exposures if there are any."""

    y: NDArray[Any]
    weights: Matrix | None
    exposure: Matrix | None

    def take(self, at: Index) -> Targets:
        return Targets(*(None if values is None else values[at] for values in self))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Source:
    """All rows of a source, after the first pass.

    Attributes
    ----------
    batches
        The rows, with the columns that are not features.
    sample
        Some of them, and `at` their positions.
    targets
        Those of all rows.
    clock
        That of the search, which began before the first pass.
    """

    batches: Batches
    sample: Any
    at: Index
    targets: Targets
    clock: Clock

    @classmethod
    def of(
        cls, batches: Batches, y: Any, sample_weight: Any, exposure: Any, roles: Roles, clock: Clock, seed: Any, *,
        classes: bool = False,
    ) -> Source:  # fmt: skip
        """Read all rows once."""
        batches, columns = batches.as_tables(), {"weight": list[Any](), "exposure": list[Any]()}
        witnesses, given = Witnesses(classes=classes), None if y is None else np.asarray(y)
        total = batches.n
        if given is not None and len(given) != total:
            raise InvalidInput(
                f"y must have one entry for each of the {total:,} rows of the source",
                got=f"{len(given):,}",
                advice="Pass the targets of all rows, in their order.",
            )

        def also(start: int, X: Any, found: Any) -> list[int]:
            clock.report(f"reading row {start + len(X):,} of {total:,}")
            parts = roles.apart(X)
            for role, values in columns.items():
                if getattr(parts, role) is not None:
                    values.append(getattr(parts, role))
            return witnesses(start, X, found if given is None else given[start : start + len(X)])

        sample = drawn(batches, TYPED_ROWS, generator(seed), also)
        found = sample.y if given is None else given
        if found is None:
            raise InvalidInput(
                "A source of rows must have targets",
                got="rows alone",
                advice="Name the column of a file by `target`, pass y, or yield pairs (X, y).",
            )
        w, e = (np.concatenate(values) if values else None for values in columns.values())
        w, e = sample_weight if w is None else w, exposure if e is None else e
        w = positive_weights(w, total)
        e = None if e is None else np.asarray(e, dtype=np.float64)
        return cls(batches, sample.X, sample.at, Targets(found, w, e), clock)

    @property
    def some(self) -> Targets:
        """The targets of the sample."""
        return self.targets.take(self.at)


class StreamedSearch(Search):
    """A search on a sample of the rows of a source, whose last fit uses all rows."""

    def __init__(self, source: Source, task: Task, *args: Any) -> None:
        super().__init__(task, *args)
        if task.requested == task.in_memory:
            raise InvalidInput(
                f"The loss {task.requested!r} needs all rows in memory",
                got="rows that are read in batches",
                advice="Choose another loss, or load a sample of the rows as an array.",
            )
        self.source = source
        self.plan = Plan(self.clock.seconds, source.batches.n, memory.budget(task.settings.get("budget")))

    def centres(self, steps: float) -> tuple[int, Limit]:
        """The number of centres that fit into the seconds and bytes, and what limits it."""
        n = self.plan.n
        most = min(n, max(PILOT_CENTRES, min(MOST_CENTRES, n // 4)))
        room = min(most, default_centers(n * n, int(self.plan.memory)))
        least = min(PILOT_CENTRES, room)
        m = largest(lambda m: self.plan.on_centres(n, m, steps), FIT_SHARE * self.clock.seconds, least, room)
        return m, "memory" if m == room < most else "time"

    def last_fit(self) -> Fit:
        """A fit to all rows, on centres."""
        assert self.loss is not None
        loss, began, n = self.loss, time.perf_counter(), self.plan.n
        if loss.name == self.task.in_memory:
            loss = self.task.default(loss.entry)
        centres, limit = self.centres(2.0 * loss.cost.steps)
        passes = 0

        def report(rows: int) -> None:
            nonlocal passes
            self.clock.report(f"last fit on {centres:,} centres, pass {passes + 1}, row {rows:,} of {n:,}")
            passes += rows == n

        rows = self.source.batches.mapped(self.columns.select).watched(report)
        targets = self.source.targets
        y, w = self.task.fitted(targets.y, targets.weights, targets.exposure)
        estimator = loss.estimator().set_params(n_centers=centres, **loss.by_all_rows)
        model = estimator.fit(rows, loss.transformed(y), w)
        at, values = _left_out(model, self.source.at)
        some = targets.take(at)
        loss = loss.calibrated_on(LeftOut(values, some.y, some.weights, some.exposure))
        self.fitted = Fit(loss, model)
        self.last = LastFit(n, n, centres, limit)
        why = f"fitted to {self.last}, read {count(passes, 'time')}"
        self.record.add("Solver", type(model).__name__, f"{why}; {model.status_}", began=began)
        return self.fitted


def _left_out(model: Any, at: Index) -> tuple[Index, Matrix]:
    """Positions of rows, and the values of the model there, each of the fit without the row, shape (s, t)."""
    if isinstance(model, KernelPredictor):
        values = (
            np.log(np.maximum(model.loo_proba_, 1e-300)) if hasattr(model, "loo_proba_") else model.loo_predictions_
        )
        return at, np.reshape(values[at], (len(at), -1))
    ridge = model if isinstance(model, KernelRidge) else model.regression_
    return ridge.left_out_.at, ridge.left_out_.predictions
