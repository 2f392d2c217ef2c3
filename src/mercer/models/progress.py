"""How far a fit is, told to scikit-learn's callbacks: `model.set_callbacks(ProgressBar()).fit(X, y)`.

A solver does not know how many steps it will take, but its gap falls about as fast on a logarithmic scale all the way:
log(first gap/gap)/log(first gap/tol) is the share that is done. One problem is `STEPS` tasks, told as that share grows
(and now and then where it does not, so that a callback is heard and may stop the fit); several are a task each.
Each of these tasks carries a `Progress` (gap, objective, and what the solver adds) as metadata["progress"].
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer import threads

STEPS = 200
"""Tasks of a problem that is told of in steps."""
HEARTBEAT = 1.0
"""Seconds after which a step is told though the gap has not fallen."""


class Progress(Protocol):
    """Where an iteration is, as any solver tells it."""

    @property
    def gap(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def detail(self) -> str: ...


class Watch:
    """The callbacks of one fit: what they are told, and whether they want it to go on."""

    def __init__(self, model: Any, problems: int | None, given: dict[str, Any]) -> None:
        self.model, self.given, self.alone, self.count = model, given, problems == 1, 0
        self.context = model._init_callback_context(
            max_subtasks=STEPS if self.alone else problems, sequential_subtasks=self.alone
        )
        self.context.call_on_fit_task_begin(estimator=model, **given)

    def task(self, steps: bool) -> Task:
        """The task of the next problem, told of in steps where it is a long one."""
        if self.alone:
            return Task(self, self.context, own=False)
        self.count += 1
        context = self.context.subcontext("problem", self.count - 1, STEPS if steps else 0)
        context.call_on_fit_task_begin(estimator=self.model)
        return Task(self, context, own=True)

    def end(self) -> None:
        # Copies of the model are fitted: there is nothing to be added to them.
        self.context.call_on_fit_task_end(estimator=self.model, reconstruction_attributes=dict, **self.given)


class Task:
    """One problem: the steps that were told of it."""

    def __init__(self, watch: Watch, context: Any, own: bool) -> None:
        self.watch, self.context, self.own = watch, context, own
        self.told, self.last, self.first = 0, time.perf_counter(), 0.0
        self.progress: Progress | None = None

    def __call__(self, progress: Progress) -> bool:
        """Tell the steps up to here; False where a callback asks to stop."""
        self.progress = progress
        self.first = self.first or progress.gap
        most = self.context.max_subtasks - 1 if self.context.max_subtasks else 0
        reached = int(most * share_done(self.first, progress.gap, self.watch.model.tol))
        now = time.perf_counter()
        if now - self.last > HEARTBEAT:
            reached = max(reached, self.told + 1)
        stop = False
        while self.told < min(reached, most):
            step = self.context.subcontext("step")
            step.call_on_fit_task_begin(estimator=self.watch.model)
            stop |= step.call_on_fit_task_end(estimator=self.watch.model, metadata={"progress": progress})
            self.told, self.last = self.told + 1, now
        return not stop

    def end(self) -> bool:
        """Tell that the problem is solved, or as far as it will be."""
        at_end = {"estimator": self.watch.model, "metadata": {"progress": self.progress}}
        if self.own:
            return not self.context.call_on_fit_task_end(**at_end)
        step = self.context.subcontext("step")
        step.call_on_fit_task_begin(estimator=self.watch.model)
        return not step.call_on_fit_task_end(**at_end)


@contextmanager
def watched(model: Any, problems: int | None, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
    """While a model solves so many problems (None: no one knows), its callbacks are told. Without any, nothing."""
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
    """A caller's progress and callbacks, from one thread at a time; what stops one problem stops all of them."""

    def __init__(self, progress: Callable[[Any], bool] | None, watch: Watch | None, go_on: bool = True) -> None:
        self.progress, self.watch, self.lock, self.go_on = progress, watch, threading.Lock(), go_on

    def begin(self, steps: bool) -> Task | None:
        with self.lock:
            return None if self.watch is None else self.watch.task(steps)

    def told(self, task: Task | None, progress: Progress) -> bool:
        """Whether to go on."""
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
    """How much of the way from the first gap to tol is behind, on a logarithmic scale.

    >>> share_done(1.0, 0.1, 0.01), share_done(1.0, 2.0, 0.01), share_done(1.0, 0.0, 0.01)
    (0.5, 0.0, 1.0)
    """
    if gap <= tol:
        return 1.0
    return float(np.clip(np.log(first / gap) / np.log(first / tol), 0.0, 1.0)) if first > gap else 0.0


class SolverProgress:
    """A callback that writes a line on how a fit is going: objective, gap, support vectors, time left.

    On a terminal the line is written over; elsewhere a new one is written from time to time.

    Parameters
    ----------
    every : seconds between two lines.
    stream : where to write; by default standard error.

    >>> import sys, numpy as np, mercer as mc
    >>> from mercer.models.progress import SolverProgress
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> told = SolverProgress(stream=sys.stdout)
    >>> model = mc.SVC(mc.Gaussian(1.0)).set_callbacks(told).fit(X, X[:, 0] > 0)        # doctest: +ELLIPSIS
    SVC: 100 %, objective -..., gap ... (to 0.001), ... support vectors, ... s
    """

    def __init__(self, *, every: float = 0.5, stream: Any = None) -> None:
        self.every, self.stream = every, stream
        self._fits: dict[int, _Line] = {}  # one callback may watch several at once

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""
        self._fits[id(estimator)] = _Line(time.perf_counter())

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to tell yet."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        """Write a line, where the last one is old."""
        progress, line = (metadata or {}).get("progress"), self._fits.get(id(estimator))
        if progress is None or line is None:
            return
        line.tell(estimator, progress, context)
        if time.perf_counter() - line.written >= self.every:
            self._write(line)

    def teardown(self, estimator: Any, context: Any) -> None:
        """A fit is over, or given up: write how it stood, and end the line."""
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
    """What is known of one fit."""

    began: float
    written: float = -np.inf
    first: tuple[float, float] | None = None
    last: Progress | None = None
    done: int = 0
    text: str = ""
    fresh: bool = False

    def tell(self, model: Any, progress: Progress, context: Any) -> None:
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
