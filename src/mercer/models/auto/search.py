"""The search of an automatic model: target, columns, kernel, loss and the last fit, one after the other."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer import memory
from mercer.data.frames import column_names
from mercer.data.points import take
from mercer.kernels.base import Kernel
from mercer.models.auto.candidates import candidates, widened
from mercer.models.auto.columns import Columns
from mercer.models.auto.entry import Entry, Problem
from mercer.models.auto.plan import LEAST_TIME, PILOT_CENTRES, Clock, Plan, pair_of
from mercer.models.auto.race import race
from mercer.models.auto.record import Record
from mercer.models.auto.stages import LastFit, Limit, in_stages
from mercer.models.auto.task import Fit, Index, LossChoice, Task
from mercer.models.base import Matrix, default_kernel, resolve_kernel
from mercer.tuning.ranges import ranges
from mercer.validation import generator
from mercer.words import brief, cut

# At most this many rows are read to infer the types of the columns.
TYPED_ROWS = 20_000


class Search:
    """One search for a kernel and a loss, and the last fit.

    Parameters
    ----------
    task : Task
        The rows, and the losses that suit them.
    clock : Clock
        Stops the search when its seconds are over.
    kernel : Kernel or None
        The parameter `kernel`, or None.
    random_state : int, Generator or None
        The seed of samples.
    columns : Columns or None
        The roles of the columns of a table.

    Attributes
    ----------
    plain : array
        The points; those of a frame of numbers as one array.
    record, plan
        The decisions so far, and the cost model that they follow.
    kernels, problem
        The kernels of the race and its problem, once they are known.
    loss
        The best loss so far, with the best kernel; None before the race.
    fitted, last
        The last fit, and the rows that it used; or None.
    """

    def __init__(
        self, task: Task, clock: Clock, kernel: Any = None, random_state: Any = 0, columns: Columns | None = None
    ) -> None:
        self.task, self.clock, self.kernel = task, clock, kernel
        self.columns = columns or Columns()
        self.record, self.plan = Record(), Plan(clock.seconds, len(task.y), memory.budget(task.settings.get("budget")))
        self.rng = generator(random_state)
        self.plain = self.columns.searchable(task.points)
        self.kernels: dict[str, Kernel] = {}
        self.problem: Problem | None = None
        self.loss: LossChoice | None = None
        self.fitted: Fit | None = None
        self.last: LastFit | None = None

    def run(self) -> Fit:
        """The last fit. Where an interrupt ends this, `in_haste` has a fit at once."""
        kind, summary = self.task.describe()
        self.record.add("Target", kind, summary, advice=self.task.advice.get("Target", ""))
        self.kernels, units = self.starts()
        few = self.task.too_few()
        if few:
            name, kernel = next(iter(self.kernels.items()))
            self.leads(Entry.of(name, kernel if units is None else widened(kernel, units), self.plain))
            self.record.add("Kernel", name, few)
        else:
            names = column_names(self.task.points.raw) or map(str, range(0 if units is None else len(units)))
            self.problem = self.task.problem(self.plain, units, tuple(names))
            self.leads(race(self.kernels, self.problem, self.plan, self.clock, self.rng, self.record, self.leads))
            for loss in self.task.losses(self):
                self.loss = loss  # an interrupt finds the best so far here
        return self.last_fit()

    def leads(self, entry: Entry) -> None:
        """Keep the best kernel so far."""
        self.loss = self.task.default(entry)

    def starts(self) -> tuple[dict[str, Kernel], Matrix | None]:
        """The kernels to begin with (those that suit the columns, or the given one), and the units of the columns."""
        if self.kernel is None:
            began, many = time.perf_counter(), len(self.task.y) > TYPED_ROWS
            sample = self.plain.take(self.order()[:TYPED_ROWS]) if many else self.plain
            found, remarks = candidates(sample, self.columns.assigned), self.columns.remarks()
            self.plan = replace(self.plan, pair=pair_of(found.kernels.values(), sample))
            number = f"{len(found.kernels)} kernels" if len(found.kernels) > 1 else "1 kernel"
            why = found.why + (f". Column {remarks}" if remarks else "")
            advice = self.columns.advice() or found.advice
            self.record.add("Columns", f"{number} to try", why, began=began, advice=advice)
            return found.kernels, found.units
        kernel = resolve_kernel(self.kernel, self.plain)
        kernels = {"given": kernel}
        self.plan = replace(self.plan, pair=pair_of([kernel], self.plain))
        if len(kernel.theta):
            kernel.touch(self.plain)
            around = ranges(kernel, self.plain, np.array([[-1.0], [1.0]]))
            kernels["given, with widths from the data"] = kernel.with_theta(np.array([r.start for r in around]))
        self.record.add("Columns", "the given kernel", cut(brief(kernel), 300))
        return kernels, None

    def order(self) -> Index:
        """The rows in random order: any number of the first are a sample."""
        return self.task.order(self.rng)

    def sample(self) -> Index:
        """Rows to compare losses on."""
        n, rows = len(self.task.y), self.plan.loss_rows(self.task.fewest)
        return np.arange(n) if rows >= n else np.sort(self.order()[:rows])

    # -- the last fit ---------------------------------------------------------------------------------------------

    def last_fit(self) -> Fit:
        """A fit to all rows: exactly if the plan allows it, else in stages, on more and more rows and centres."""
        assert self.loss is not None
        loss, began, total = self.loss, time.perf_counter(), len(self.task.y)
        order = self.order()
        held_out = loss.held_out(order[total - total // 20 :])
        n = total - len(held_out)
        order = order[:n]
        self.clock.report(f"last fit, of {n:,} rows")
        known = loss.estimator().get_params()
        plan = replace(self.plan, n=n)
        sizes: tuple[tuple[int, int | None], ...] = ((n, None),)
        if "n_centers" not in known:
            sizes = tuple((rows, None) for rows in plan.machines(max(2 * PILOT_CENTRES, self.task.fewest)))
        elif n > 2 * PILOT_CENTRES and not plan.affords_exact(loss.cost.evaluations):
            sizes = plan.stages(loss.cost.steps, self.task.fewest)
        elif n > 2 * PILOT_CENTRES and self.clock.late():
            sizes = plan.stages(loss.cost.steps, self.task.fewest)[:1]

        def stage(size: tuple[int, int | None]) -> tuple[Fit, bool]:
            rows, centres = size
            limits: dict[str, Any] = {"max_time": max(self.clock.left, LEAST_TIME)} if "max_time" in known else {}
            limits |= {} if centres is None else {"n_centers": centres}
            index = None if rows == total else np.sort(order[:rows])
            fit, converged = self.fit(loss, index, limits)
            self.fitted = fit if converged or self.fitted is None else self.fitted  # an interrupt finds it here
            return fit, converged

        done, (fit, converged) = in_stages(self.clock, sizes, stage, lambda fitted: fitted[1])
        if not converged:  # because of `max_time`, or of numbers: the clock knows
            self.clock.late()
        staged = sizes[-1][1] is not None
        fit = loss.finished(replace(fit, held_out=held_out, staged=staged), self)
        rows = total if fit.rows is None else len(fit.rows)
        kept = getattr(getattr(fit.model, "function_", None), "points", None)
        centres = done[1] if fit.model is not None and "n_centers" in fit.model.get_params() else None
        centres = centres if centres is None or kept is None else kept.n  # some of the planned ones may say the same
        limit: Limit = "clock" if done != sizes[-1] else "time" if rows < n or centres is not None else ""
        self.last = LastFit(rows + len(held_out), total, centres, limit)
        why = f"fitted to {self.last}"
        if len(held_out):
            why += f". Of these rows, {len(held_out):,} only calibrate the probabilities"
        self.record.add("Solver", type(fit.model).__name__, f"{why}; {fit.model.status_}", began=began)
        return fit

    def fit(self, loss: LossChoice, rows: Index | None, limits: dict[str, Any]) -> tuple[Fit, bool]:
        """The estimator of a loss fitted to these rows, or to all; and whether its solver converged."""
        X, y, w = self.task.points.raw, self.task.y, loss.weights
        if rows is not None:
            X, y, w = take(X, rows), y[rows], None if w is None else w[rows]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = loss.estimator().set_params(**limits).fit(X, loss.transformed(y), w)
        others = [warning for warning in caught if not issubclass(warning.category, ConvergenceWarning)]
        for one in others:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return Fit(loss, model, rows), len(others) == len(caught)

    def in_haste(self) -> Fit:
        """The fit that can be had at once, after an interrupt."""
        self.clock.stop = "interrupt"
        if self.fitted is not None:
            fit = self.fitted
            fit.model.status_ = f"interrupted before the last fit; {fit.model.status_}"
        else:
            if self.loss is None:
                self.leads(Entry.of("default", default_kernel(self.plain), self.plain))
            assert self.loss is not None
            rows = self.sample()
            fit, _ = self.fit(self.loss, rows, {})
            fit.model.status_ = f"interrupted: fitted to {len(rows)} of {len(self.task.y)} rows; {fit.model.status_}"
        fit = fit.loss.finished(fit, self)
        used = len(self.task.y) if fit.rows is None else len(fit.rows)
        self.last = LastFit(used, len(self.task.y), limit="interrupt")
        self.record.add("Solver", type(fit.model).__name__, fit.model.status_)
        return fit
