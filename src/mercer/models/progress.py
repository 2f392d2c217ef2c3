"""The progress of a fit, reported to scikit-learn's callbacks: `model.set_callbacks(ProgressBar()).fit(X, y)`.

A solver does not know how many steps it will take, but on a logarithmic scale its gap falls at an almost constant rate:
log(first gap/gap)/log(first gap/tol) is the share that is done. A single problem is `STEPS` tasks, reported as that
share grows (and regularly while it does not, so that a callback may stop the fit); several problems are one task each.
Each task carries a `Step` (gap, objective, and details of the solver) as metadata["progress"].
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import threads
from mercer.solvers.step import Step

STEPS = 200
"""The number of tasks of a problem that is reported in steps."""
HEARTBEAT = 1.0
"""Seconds after which a step is reported although the gap has not fallen."""


class Watch:
    """The callbacks of one fit: reports the tasks to them, and passes on whether the fit may continue."""

    def __init__(self, model: Any, problems: int | None, arguments: dict[str, Any]) -> None:
        self.model, self.arguments, self.alone, self.count = model, arguments, problems == 1, 0
        self.context = model._init_callback_context(
            max_subtasks=STEPS if self.alone else problems, sequential_subtasks=self.alone
        )
        self.context.call_on_fit_task_begin(estimator=model, **arguments)

    def task(self, steps: bool) -> Task:
        """The task of the next problem, reported in `steps` if it is a long one."""
        if self.alone:
            return Task(self, self.context, whole=True)
        self.count += 1
        context = self.context.subcontext("problem", self.count - 1, STEPS if steps else 0)
        context.call_on_fit_task_begin(estimator=self.model)
        return Task(self, context, whole=False)

    def end(self) -> None:
        # Copies of the model are fitted already: a callback needs no attributes to reconstruct them.
        self.context.call_on_fit_task_end(estimator=self.model, reconstruction_attributes=dict, **self.arguments)


class Task:
    """One problem, which may be the whole fit, and the number of its steps that were reported."""

    def __init__(self, watch: Watch, context: Any, whole: bool) -> None:
        self.watch, self.context, self.whole = watch, context, whole
        self.reported, self.last, self.first = 0, time.perf_counter(), 0.0
        self.progress: Step | None = None

    def __call__(self, progress: Step) -> bool:
        """Report the steps up to here; False if a callback stops the fit."""
        self.progress = progress
        self.first = self.first or progress.gap
        most = self.context.max_subtasks - 1 if self.context.max_subtasks else 0
        reached = int(most * share_done(self.first, progress.gap, self.watch.model.tol))
        now = time.perf_counter()
        if now - self.last > HEARTBEAT:
            reached = max(reached, self.reported + 1)
        stop = False
        while self.reported < min(reached, most):
            step = self.context.subcontext("step")
            step.call_on_fit_task_begin(estimator=self.watch.model)
            stop |= step.call_on_fit_task_end(estimator=self.watch.model, metadata={"progress": progress})
            self.reported, self.last = self.reported + 1, now
        return not stop

    def end(self) -> bool:
        """Report that the solver has finished with the problem."""
        at_end = {"estimator": self.watch.model, "metadata": {"progress": self.progress}}
        if not self.whole:
            return not self.context.call_on_fit_task_end(**at_end)
        step = self.context.subcontext("step")
        step.call_on_fit_task_begin(estimator=self.watch.model)
        return not step.call_on_fit_task_end(**at_end)


@contextmanager
def watched(model: Any, problems: int | None, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
    """Report the given number of problems (None if unknown) to the callbacks of a model, if it has any."""
    if not getattr(model, "_skl_callbacks", None):
        yield
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    model._watch = Watch(model, problems, {"X": X, "y": y, "metadata": metadata})
    try:
        yield
        model._watch.end()
    finally:
        del model._watch


class Listeners:
    """The caller's `progress` and the callbacks, one thread at a time; to stop one problem is to stop all."""

    def __init__(self, progress: Callable[[Any], bool] | None, watch: Watch | None, go_on: bool = True) -> None:
        self.progress, self.watch, self.lock, self.go_on = progress, watch, threading.Lock(), go_on

    def begin(self, steps: bool) -> Task | None:
        with self.lock:
            return None if self.watch is None else self.watch.task(steps)

    def report(self, task: Task | None, progress: Step) -> bool:
        """Report the progress of a task; whether to go on."""
        if threads.stopped():
            return False
        with self.lock:
            if self.go_on and self.progress is not None:
                self.go_on = self.progress(progress) is not False
            if self.go_on and task is not None:
                self.go_on = task(progress)
            return self.go_on

    def end(self, task: Task | None) -> None:
        with self.lock:
            if task is not None:
                self.go_on &= task.end()


def share_done(first: float, gap: float, tol: float) -> float:
    """The share of the way from the first gap to tol that is done, on a logarithmic scale.

    >>> share_done(1.0, 0.1, 0.01), share_done(1.0, 2.0, 0.01), share_done(1.0, 0.0, 0.01)
    (0.5, 0.0, 1.0)
    """
    if gap <= tol:
        return 1.0
    return float(np.clip(np.log(first / gap) / np.log(first / tol), 0.0, 1.0)) if first > gap else 0.0


class SolverProgress:
    """A callback that writes a line about the state of a fit: objective, gap, support vectors, time left.

    On a terminal the line is overwritten; otherwise a new line is written every time.

    Parameters
    ----------
    every : float
        Seconds between two lines.
    stream
        The stream to write to; by default standard error.

    Examples
    --------
    >>> import sys, numpy as np, mercer as mc
    >>> from mercer.models.progress import SolverProgress
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> progress = SolverProgress(stream=sys.stdout)
    >>> model = mc.SVC(mc.Gaussian(1.0)).set_callbacks(progress).fit(X, X[:, 0] > 0)        # doctest: +ELLIPSIS
    SVC: 100 %, objective -..., gap ... (to 0.001), ... support vectors, ... s
    """

    def __init__(self, *, every: float = 0.5, stream: Any = None) -> None:
        self.every, self.stream = every, stream
        self._fits: dict[int, _Line] = {}  # one callback may watch several fits at once

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""
        self._fits[id(estimator)] = _Line(time.perf_counter())

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: there is nothing to report yet."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        """Write a line if the last one is old enough."""
        progress, line = (metadata or {}).get("progress"), self._fits.get(id(estimator))
        if progress is None or line is None:
            return
        line.update(estimator, progress, context)
        if time.perf_counter() - line.written >= self.every:
            self._write(line)

    def teardown(self, estimator: Any, context: Any) -> None:
        """A fit is over or was stopped: write its last state, and end the line."""
        line = self._fits.pop(id(estimator), None)
        if line is not None and line.text:
            self._write(line, last=True)

    def _write(self, line: _Line, *, last: bool = False) -> None:
        stream = sys.stderr if self.stream is None else self.stream
        if getattr(stream, "isatty", bool)():
            stream.write(f"\r{line.text}\033[K" + "\n" * last)
        elif line.fresh:
            stream.write(f"{line.text}\n")
        stream.flush()
        line.written, line.fresh = time.perf_counter(), False


@dataclass
class _Line:
    """The line about one fit."""

    began: float
    written: float = -np.inf
    first: tuple[float, float] | None = None
    last: Step | None = None
    done: int = 0
    text: str = ""
    fresh: bool = False

    def update(self, model: Any, progress: Step, context: Any) -> None:
        now = time.perf_counter()
        total, since, share, of = context.parent.max_subtasks, self.began, None, ""
        if context.task_name == "problem":
            self.done += 1
            of = f" problem {self.done}" + (f" of {total}," if total else ",")
            share = self.done / total if total else None
        else:
            self.first = self.first or (progress.gap, now)
            gap, since = self.first
            share = share_done(gap, progress.gap, model.tol)
        done = "" if share is None else f" {100 * share:.0f} %,"
        left = f", about {(now - since) * (1 - share) / share:.1f} s left" if share and share < 1 else ""
        self.text = (
            f"{type(model).__name__}:{done}{of} objective {progress.objective:.6g}, gap {progress.gap:.1e} (to "
            f"{model.tol:g}), {progress.detail}, {now - self.began:.1f} s{left}"
        )
        self.fresh |= progress is not self.last
        self.last = progress
