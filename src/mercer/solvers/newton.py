"""Newton's method in the space of functions: iteratively reweighted least squares, and its form without a Hessian.

At each step the loss is replaced by its parabola: (A*WA + alpha) d = −gradient, with W = w∘loss''. For canonical links
this is Fisher scoring (IRLS); for others, whose loss'' may be negative, Fisher's weights are used. A factorised system
serves several steps, corrected by the curvature that these show (secants, as in BFGS), as long as it shrinks the excess
fast enough compared with the cost of a new one. If it is not exact (float32, few rows, several classes) it
preconditions conjugate gradients on the exact second derivative.

The stopping rule is the predicted excess ½⟨g, H⁻¹g⟩, relative to the objective at the start, whose root is compared
with tol: scale-free, and in the metric of the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.problems.risk import Risk, State
from mercer.problems.spaces import Element, FeatureSpace, FunctionSpace, GramSpace, Matrix, NystromSpace
from mercer.solvers import costs
from mercer.solvers.base import End
from mercer.solvers.cg import Measure, iterate
from mercer.solvers.curvature import Diagonal, FeatureSystem, System, factorise
from mercer.solvers.descent import MEMORY, Journey, Minimum, Pair, backtrack, secant, two_loops

# Conjugate gradients: the longest run, the number of products after which the next system is factorised anew, and the
# tolerance of the run that a claim of convergence rests on.
LONGEST, TIRED, SURE = 500, 12, 1e-3
# The start comes from a sample of 1 row in LEVEL, if that leaves SAMPLE rows and, with features, PER_FEATURE for each.
LEVEL, SAMPLE, PER_FEATURE = 8, 400, 10
# With this many rows for each coefficient the curvature of a sample is close enough to that of all rows to step by it.
RELIABLE = 50
# Systems with less patience than this are factorised for nearly every step and need no correction by secants.
MODEST = 0.01
# An objective above that of the best constant by this share of it, and flat there, is not at a minimum.
ABOVE = 1e-6
# A predicted excess below this share of the objective is hidden by rounding.
HIDDEN = 1e-11


def newton(risk: Risk, start: Element, journey: Journey, *, levels: bool = True) -> Minimum:
    """Newton's method with factorised systems, begun on a sample of the rows if there are many."""
    system = None
    if levels:
        start, system = _from_a_sample(risk, start)
    return _iterate(risk, start, journey, system, factorises=True)


def newton_cg(risk: Risk, start: Element, journey: Journey) -> Minimum:
    """Newton's method by conjugate gradients alone: products with the second derivative, which is never formed.

    Columns are scaled by its diagonal, so that their units do not matter.
    """
    system = None
    if isinstance(risk.space, FeatureSpace):
        system = Diagonal(risk.space, risk.curvature(risk.at(start)), risk.alpha)
    return _iterate(risk, start, journey, system, factorises=False)


def _iterate(risk: Risk, start: Element, journey: Journey, system: System | None, *, factorises: bool) -> Minimum:
    space = risk.space
    curvature = _Curvature(risk, system, factorises=factorises, single=start.coef.shape[1] == 1)
    state = risk.at(start)
    scale = (abs(state.value) if journey.scale is None else journey.scale) or 1.0
    before, step, gap = np.inf, 0.0, 1.0
    while True:
        d = curvature.direction(state, min(0.1, np.sqrt(gap)), converged=journey.tol**2 * scale)
        excess = 0.5 * max(space.inner(state.gradient, d), 0.0)
        gap = float(np.sqrt(excess / scale))
        if curvature.outlived(excess / before, converged=gap <= journey.tol):
            continue
        if gap <= journey.tol and journey.scale is not None and state.value > (1.0 + ABOVE) * journey.scale:
            journey.arrive(state, step, np.inf)  # a constant is better: this is a plateau, not a minimum
            journey.stop(End.STALLED, "the loss has a slope but no curvature there; begin elsewhere")
            break
        if not journey.arrive(state, step, gap):
            break
        d = d.times(-1.0)
        step, moved = backtrack(risk.line(state.at, d), state.value, -2.0 * excess)
        if moved:
            new = risk.at(state.at.plus(step, d))
            curvature.follow(state, new)
            state, before = new, excess
        elif curvature.improve():
            journey.forget()
        else:
            hidden = excess <= HIDDEN * max(scale, abs(state.value))
            journey.stop(*((End.CONVERGED,) if hidden else (End.STALLED, "no step lowers the objective")))
            break
    journey.system = curvature.system
    return journey.end()


class _Curvature:
    """The second derivative of a risk, as the system that gives Newton's directions.

    One system is used for several steps; when it has become inaccurate, the next is factorised at the present iterate.

    risk : the risk.
    system : the present system, or None if the next direction needs a new one.
    factorises : whether new ones are factorised; otherwise the first, or none, serves all steps.
    single : whether functions have one column. With several of them, a system is never more than a preconditioner.
    """

    def __init__(self, risk: Risk, system: System | None, *, factorises: bool, single: bool) -> None:
        self.risk, self.system, self.factorises, self.single = risk, system, factorises, single
        self.fresh = False  # whether the system was factorised at the present iterate
        self.precise = False  # whether new systems are factorised in float64, from all rows
        self.products = 0  # with the second derivative, for the last direction
        self.pairs: list[Pair] = []  # the curvature that the steps with this system have shown

    @property
    def exact(self) -> bool:
        """Whether directions come from the system alone, without conjugate gradients."""
        return self.system is not None and self.system.exact and self.single

    def direction(self, state: State, tol: float, *, converged: float) -> Element:
        """H⁻¹g: from the system, or to a relative error tol by conjugate gradients that it preconditions.

        A predicted excess below `converged` is confirmed with the tolerance SURE.
        """
        if self.system is None and self.factorises:
            weights = self.risk.curvature(state)
            self.system = factorise(self.risk.space, weights, self.risk.alpha, precise=self.precise)
            self.fresh, self.pairs = True, []
        if self.exact:
            assert self.system is not None
            self.products = 0
            return two_loops(self.risk, state.gradient, self.pairs, self.system.solve)
        d, self.products = _conjugate_gradients(self.risk, state, self.system, tol)
        if 0.5 * self.risk.space.inner(state.gradient, d) <= converged:
            d, self.products = _conjugate_gradients(self.risk, state, self.system, SURE)
        return d

    def outlived(self, remaining: float, *, converged: bool) -> bool:
        """Drop a system that has become inaccurate. Returns whether the last direction should be computed again, too.

        remaining : the predicted excess, relative to that of the iterate before.
        """
        tired = self.products > TIRED
        if tired and self.fresh and self.single and isinstance(self.risk.space, GramSpace):
            self.improve()  # float32 does not have enough digits; the direction itself is good
            return False
        exact = self.exact
        slow = exact and self.system is not None and remaining > self.system.patience
        if not self.factorises or self.fresh or converged or not (slow or tired):
            return False
        self.system = None
        return exact

    def improve(self) -> bool:
        """Drop the system for one of the present iterate or, if it is that already, a more precise one, if possible."""
        if not self.factorises:
            return False
        if self.fresh:
            if self.precise or self.system is None or self.system.exact:
                return False
            self.precise = True
        self.system = None
        return True

    def follow(self, before: State, after: State) -> None:
        """Record a step: an exact system that is kept for many steps is corrected by the change of the gradient."""
        if self.exact and self.system is not None and self.system.patience > MODEST:
            self.pairs = [*self.pairs[-MEMORY + 1 :], *secant(self.risk, before, after)]
        self.fresh = False


class _Functions:
    """The arithmetic of one function of a space, in which its columns are one vector."""

    def __init__(self, space: FunctionSpace) -> None:
        self.space = space

    def zero(self, like: Element) -> Element:
        return self.space.zero(like.coef.shape[1])

    def inner(self, u: Element, v: Element) -> Matrix:
        return np.array([self.space.inner(u, v)])

    def plus(self, u: Element, step: Matrix, v: Element) -> Element:
        return u.plus(float(step[0]), v)

    def add(self, u: Element, which: NDArray[np.int64], step: Matrix, v: Element) -> Element:
        return self.plus(u, step, v)

    def take(self, u: Element, which: NDArray[np.bool_]) -> Element:
        return u


def _conjugate_gradients(risk: Risk, state: State, system: System | None, tol: float) -> tuple[Element, int]:
    """d with H d = g to a relative error tol in the norm of the system, and the number of products with H."""
    solve = None if system is None else system.solve
    run = iterate(
        _Functions(risk.space),
        lambda v: risk.curve(state, v),
        state.gradient,
        precondition=solve,
        tol=tol,
        max_iter=LONGEST,
        measure=Measure.ENERGY,
    )
    if run.flat and run.iterations == 1:  # without curvature along the gradient, the gradient itself is the direction
        return state.gradient if solve is None else solve(state.gradient), 1
    return run.X, run.iterations


def _from_a_sample(risk: Risk, start: Element) -> tuple[Element, System | None]:
    """The minimiser over a sample of the rows as a start for all of them, if it is a better one, and its system."""
    n, space = len(risk.y), risk.space
    small = n // LEVEL
    if not isinstance(space, GramSpace):
        small = max(small // 2, PER_FEATURE * (space.size + 1))
    if small < SAMPLE or 3 * small > n:
        return start, None
    index = np.sort(np.random.default_rng(0).choice(n, small, replace=False))
    part = risk.restrict(index)
    t = start.coef.shape[1]
    begin = part.space.constant(start.tail[0]) if start.tail.shape[0] else part.space.zero(t)
    journey = Journey(part, 1e-2, 12)  # a tolerance below the difference of the sample and all rows
    # With features the system of the sample then serves all rows.
    minimum = newton(part, begin, journey, levels=isinstance(space, GramSpace))
    lifted = space.lift(minimum.state.at, index)
    if not _value(risk, lifted) < _value(risk, start):
        return start, None
    system = journey.system
    if not isinstance(system, FeatureSystem) or not isinstance(space, (FeatureSpace, NystromSpace)):
        return lifted, None
    if isinstance(space, FeatureSpace) and space.size <= costs.NARROW_FEATURES:
        return lifted, None  # a system of all rows is better and costs only a step
    if system.rank < space.size + len(start.tail):  # a column that is constant in the sample would never move
        return lifted, None
    return lifted, system.seen_from(space, exact=small >= RELIABLE * space.size)


def _value(risk: Risk, u: Element) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        value = risk.total(u.values) + 0.5 * risk.alpha * risk.space.squared_norm(u)
    return value if np.isfinite(value) else np.inf
