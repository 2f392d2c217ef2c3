"""The state of an iteration, as every solver reports it while it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Step:
    """The state of an iteration. Each solver may add figures of its own.

    Attributes
    ----------
    iteration : int
        Its number; 0 is the start.
    gap : float
        The error in the stopping rule, which stops at `tol`: the largest relative residual of linear systems, the
        duality gap of a support vector machine, the relative size of the gradient of a smooth loss.
    tol : float
        The tolerance.
    objective : float
        The objective, or NaN if the solver does not compute it.
    seconds : float
        The time since the start, or NaN if the solver does not measure it.

    Examples
    --------
    >>> print(Step(iteration=3, gap=2e-4, tol=1e-6))
    iteration 3: gap 2.0e-04, tolerance 1.0e-06
    """

    iteration: int
    gap: float
    tol: float
    objective: float = float("nan")
    seconds: float = float("nan")

    @property
    def detail(self) -> str:
        """The figures that only this method has, in words."""
        return f"step {self.iteration}"

    def __str__(self) -> str:
        return f"iteration {self.iteration}: gap {self.gap:.1e}, tolerance {self.tol:.1e}"


Progress = Callable[[Any], bool]
"""A function that is called with a `Step` after every iteration; returning False ends the run."""


def until(max_time: float | None, progress: Progress | None = None) -> Progress | None:
    """The same function, which also ends the run when this many seconds have passed.

    >>> until(0.0)(Step(iteration=1, gap=1.0, tol=0.1))
    False
    """
    if max_time is None:
        return progress
    deadline = time.perf_counter() + max_time

    def watch(step: Any) -> bool:
        return (progress is None or progress(step) is not False) and time.perf_counter() < deadline

    return watch
