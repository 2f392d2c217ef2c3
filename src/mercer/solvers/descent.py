"""Minimise a smooth risk over functions: gradient descent with fixed steps or backtracking, and L-BFGS.

Every method is written once for features, Gram matrices and centres: a step is a function added to a function, and the
loss along it needs no pass over the data. `Trace` keeps the figures of lecture 003: objective, gradient and step.

The quasi-Newton method of `tuning/quasi_newton.py` does another job: there a few parameters have bounds and every value
costs a factorisation; here there are as many unknowns as points, no bounds, and a line search is nearly free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.families import Bernoulli, Gaussian
from mercer.problems.links import Identity, Logit, Probit
from mercer.problems.losses import Deviance, Loss, Softmax
from mercer.problems.risk import Line, Risk, State
from mercer.problems.spaces import Element
from mercer.solvers.base import End
from mercer.solvers.step import Progress, Step

Matrix = NDArray[np.float64]
# A step must lower the objective by at least this share of the decrease that the slope predicts, and reduce the slope
# to at most this share.
ARMIJO, WOLFE = 1e-4, 0.9
# The limit of halvings of a step; the pairs that L-BFGS remembers; the limit of steps of the power method.
HALVINGS, MEMORY, POWER = 60, 10, 60
# Up to this many coefficients are kept for every step of a trace.
KEPT = 256
# The relative rounding of a sum of n losses: a smaller change of the objective cannot be seen.
ROUNDING = 1e-13


@dataclass(frozen=True, kw_only=True)
class DescentStep(Step):
    """The state of a minimisation of a smooth function.

    Attributes
    ----------
    gradient : float
        The norm of the gradient.
    step : float
        The length of the step along its direction.
    """

    gradient: float
    step: float

    @property
    def detail(self) -> str:
        """The figures that only this method has, in words."""
        return f"step {self.iteration}, gradient {self.gradient:.1e}"


@dataclass(frozen=True, eq=False)
class Trace:
    """The steps of a minimisation: one row per iterate, the start first.

    Attributes
    ----------
    objective, gradient, step, seconds : array
        One number per iterate, shape (steps + 1,).
    coef : array
        The coefficients of every iterate with the tail's (an intercept) last, shape (steps + 1, size), if there are few
        of them and one column; else empty.

    Examples
    --------
    >>> Trace.of([DescentStep(iteration=0, objective=2.0, gradient=1.0, step=0.0, gap=1.0, tol=1e-6)], []).objective
    array([2.])
    """

    objective: Matrix
    gradient: Matrix
    step: Matrix
    seconds: Matrix
    coef: Matrix

    @classmethod
    def of(cls, steps: list[DescentStep], path: list[Matrix]) -> Trace:
        def column(name: str) -> Matrix:
            return np.array([getattr(step, name) for step in steps], dtype=np.float64)

        coef = np.array(path) if path else np.empty((0, 0))
        return cls(column("objective"), column("gradient"), column("step"), column("seconds"), coef)

    def __len__(self) -> int:
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class Minimum:
    """The result of a minimisation.

    Attributes
    ----------
    state : State
        The best iterate, with its value and gradient.
    end : End
        The reason why the method stopped.
    status : str
        The same in words.
    trace : Trace
        The steps to it.
    overshot : bool
        Whether a fixed step was so long that the best iterate is not the last.
    """

    state: State
    end: End
    status: str
    trace: Trace
    overshot: bool = False

    @property
    def converged(self) -> bool:
        """Whether the stopping rule was met."""
        return self.end is End.CONVERGED

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.end is End.INTERRUPTED


@dataclass(eq=False)
class Journey:
    """The bookkeeping of one minimisation: steps reported and kept, limits, interrupts."""

    risk: Risk
    tol: float
    max_iter: int
    progress: Progress | None = None
    max_time: float | None = None
    steps: list[DescentStep] = field(default_factory=list)
    path: list[Matrix] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    steep: float = 0.0  # the gradient's norm at the best constant, if the start is another one
    state: State | None = None
    best: DescentStep | None = None
    ended: End | None = None
    reason: str = ""  # more about the end, in words
    overshot: bool = False
    system: Any = None  # the last system of Newton's method
    scale: float | None = None  # the objective at the best constant, if the start is another one

    def steepness(self, first: State) -> float:
        """The unit of gradient norms: the norm at the first iterate, or at the best constant if that is larger."""
        return max(self.risk.space.norm(first.gradient), self.steep) or 1.0

    def arrive(self, state: State, step: float, gap: float) -> bool:
        """Keep an iterate and report it. Returns whether to continue from it."""
        seconds = time.perf_counter() - self.began
        latest = DescentStep(
            iteration=len(self.steps),
            gap=gap,
            tol=self.tol,
            objective=state.value,
            seconds=seconds,
            gradient=self.risk.space.norm(state.gradient),
            step=step,
        )
        self.steps.append(latest)
        if self.state is None or state.value <= self.state.value + ROUNDING * abs(self.state.value):
            self.state, self.best = state, latest
        coef = state.at.coef
        if coef.shape[1] == 1 and len(coef) <= KEPT:
            self.path.append(np.concatenate([coef[:, 0], state.at.tail[:, 0]]))
        if self.progress is not None and self.progress(latest) is False:
            self.ended = End.CALLER
        elif gap <= self.tol:
            self.ended = End.CONVERGED
        elif latest.iteration >= self.max_iter:
            self.ended = End.ITERATIONS
        elif self.max_time is not None and seconds > self.max_time:
            self.ended = End.TIME
        return self.ended is None

    def forget(self) -> None:
        """Remove the last iterate, which will be reported again."""
        self.steps.pop()
        if self.path:
            self.path.pop()

    def stop(self, end: End, reason: str = "") -> None:
        """End the minimisation."""
        self.ended, self.reason = end, reason

    def end(self, *, interrupted: bool = False) -> Minimum:
        """The result, at the best iterate."""
        assert self.state is not None
        assert self.best is not None
        if interrupted:
            self.stop(End.INTERRUPTED)
        assert self.ended is not None
        words = {
            End.CONVERGED: "converged in",
            End.CALLER: "stopped by the caller after",
            End.TIME: f"stopped by the limit of {self.max_time:g} s after" if self.max_time is not None else "",
            End.DIVERGED: "diverged after",
            End.INTERRUPTED: "interrupted after",
        }
        count, why = len(self.steps) - 1, f", {self.reason}" if self.reason else ""
        status = f"{words.get(self.ended, 'stopped after')} {count} step{'s' * (count != 1)}{why}"
        status += f": objective {self.best.objective:.8g}, relative gap {self.best.gap:.1e}"
        return Minimum(self.state, self.ended, status, Trace.of(self.steps, self.path), self.overshot)


def backtrack(line: Line, value: float, slope: float, step: float = 1.0) -> tuple[float, bool]:
    """The first of step, step/2, step/4, … that descends, and whether there is one."""
    for _ in range(HALVINGS):
        if _descends(line, value, slope, step):
            return step, True
        step *= 0.5
    return 0.0, False


def _descends(line: Line, value: float, slope: float, step: float) -> bool:
    """Whether a step lowers the objective by the share ARMIJO of the decrease that the slope predicts.

    If rounding hides the change, the slope at the step's end decides, which for a parabola is equivalent (Hager and
    Zhang, 2005).
    """
    hidden = ROUNDING * abs(value)
    if -step * slope > hidden:
        return line.value(step) <= value + ARMIJO * step * slope
    return line.value(step) <= value + hidden and line.slope(step) <= (2.0 * ARMIJO - 1.0) * slope


def steepest(loss: Loss) -> float:
    """The least upper bound of a loss's second derivative."""
    match loss:
        case Softmax():
            return 0.5
        case Deviance(family=Bernoulli(), link=Logit()):
            return 0.25
        case Deviance(family=Bernoulli(), link=Probit()) | Deviance(family=Gaussian(), link=Identity()):
            return 1.0
    return np.inf


def lipschitz(risk: Risk) -> float:
    """A bound on the curvature of the whole risk: that of the loss times ‖A‖², by the power method, plus alpha.

    Descent with steps of 1/L cannot diverge. There is no bound for losses whose curvature grows without end.
    """
    bound = steepest(risk.loss)
    if not np.isfinite(bound):
        raise InvalidInput(
            "Fixed steps need a loss of bounded curvature, so that 1/L is a safe step",
            got=repr(risk.loss),
            advice="Use solver='backtracking', or pass a number for `step`.",
        )
    space, w = risk.space, 1.0 if risk.weights is None else risk.weights[:, None]
    R = np.random.default_rng(0).normal(size=(len(risk.y), 1))
    largest = 0.0
    for _ in range(POWER):
        u = space.representer(w * R)
        size = space.norm(u)
        if size == 0.0:
            break
        R = u.values / size
        u = u.times(1.0 / size)
        quotient = float((w * u.values**2).sum())  # ⟨u, A*wA u⟩
        if quotient <= (1.0 + 1e-4) * largest:
            largest = max(quotient, largest)
            break
        largest = quotient
    return 1.05 * bound * largest + risk.alpha


def gradient(risk: Risk, start: Element, journey: Journey, step: float | None = None) -> Minimum:
    """f ← f − step·gradient with a fixed step: 1/L, or the given one, which may diverge (then the status says so)."""
    space = risk.space
    state = risk.at(start)
    begin, first = state.value, journey.steepness(state)
    length = 1.0 / lipschitz(risk) if step is None else step
    go_on = journey.arrive(state, 0.0, space.norm(state.gradient) / first)
    while go_on:
        with np.errstate(over="ignore", invalid="ignore"):
            state = risk.at(state.at.plus(-length, state.gradient))
        if not state.value <= 1e3 * max(abs(begin), 1.0):
            journey.stop(End.DIVERGED)
            break
        go_on = journey.arrive(state, length, space.norm(state.gradient) / first)
    best = journey.state
    if best is not None and best is not state and journey.ended is not End.CONVERGED:
        journey.overshot, journey.reason = True, f"the step {length:.3g} is too long"
    return journey.end()


def backtracking(risk: Risk, start: Element, journey: Journey) -> Minimum:
    """Gradient descent whose steps are halved until they lower the objective, and doubled for the next try."""
    space = risk.space
    state = risk.at(start)
    first = journey.steepness(state)
    length = 1.0
    go_on = journey.arrive(state, 0.0, space.norm(state.gradient) / first)
    while go_on:
        d = state.gradient.times(-1.0)
        slope = -space.inner(state.gradient, state.gradient)
        length, moved = backtrack(risk.line(state.at, d), state.value, slope, 2.0 * length)
        if not moved:
            journey.stop(End.STALLED, "no step lowers the objective because of rounding")
            break
        state = risk.at(state.at.plus(length, d))
        go_on = journey.arrive(state, length, space.norm(state.gradient) / first)
    return journey.end()


def lbfgs(risk: Risk, start: Element, journey: Journey) -> Minimum:
    """Limited-memory BFGS: the inverse curvature from the last pairs of steps and gradient changes."""
    space = risk.space
    state = risk.at(start)
    first = journey.steepness(state)
    pairs: list[Pair] = []
    go_on = journey.arrive(state, 0.0, space.norm(state.gradient) / first)
    while go_on:
        d = two_loops(risk, state.gradient, pairs).times(-1.0)
        slope = space.inner(state.gradient, d)
        if not slope < 0.0:  # rounding has spoilt the memory
            pairs, d = [], state.gradient.times(-1.0)
            slope = -space.inner(state.gradient, state.gradient)
        length = 1.0 if pairs else min(1.0, 1.0 / space.norm(state.gradient))
        length, moved = _wolfe(risk.line(state.at, d), state.value, slope, length)
        if not moved:
            if pairs:
                pairs = []
                continue
            journey.stop(End.STALLED, "no step lowers the objective because of rounding")
            break
        new = risk.at(state.at.plus(length, d))
        pairs = [*pairs[-MEMORY + 1 :], *secant(risk, state, new)]
        state = new
        go_on = journey.arrive(state, length, space.norm(state.gradient) / first)
    return journey.end()


Pair = tuple[Element, Element, float]
"""A step s, the change y of the gradient along it, and ⟨s, y⟩."""


def secant(risk: Risk, before: State, after: State) -> list[Pair]:
    """The pair of a step, or an empty list if rounding hides its curvature."""
    space = risk.space
    s, y = after.at.plus(-1.0, before.at), after.gradient.plus(-1.0, before.gradient)
    product = space.inner(s, y)
    return [(s, y, product)] if product > 1e-14 * space.norm(s) * space.norm(y) else []


def two_loops(risk: Risk, g: Element, pairs: list[Pair], solve: Callable[[Element], Element] | None = None) -> Element:
    """H⁻¹g by the secant pairs, starting from `solve`, an approximate H⁻¹, or from a multiple of the identity."""
    space, q, shares = risk.space, g, []
    for s, y, product in reversed(pairs):
        share = space.inner(s, q) / product
        shares.append(share)
        q = q.plus(-share, y)
    if solve is not None:
        q = solve(q)
    elif pairs:
        _, y, product = pairs[-1]
        q = q.times(product / space.inner(y, y))
    for (s, y, product), share in zip(pairs, reversed(shares)):
        q = q.plus(share - space.inner(y, q) / product, s)
    return q


def _wolfe(line: Line, value: float, slope: float, step: float) -> tuple[float, bool]:
    """A step after which the objective is lower and its slope flatter, by bisection."""
    low, high = 0.0, np.inf
    for _ in range(HALVINGS):
        if not _descends(line, value, slope, step):
            high = step
        elif line.slope(step) < WOLFE * slope:
            low = step
        else:
            return step, True
        step = 2.0 * step if np.isinf(high) else 0.5 * (low + high)
    return low, low > 0.0
