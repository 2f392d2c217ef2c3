"""Newton's method in the space of functions: iteratively reweighted least squares, and its form without a Hessian.

At each step the loss is replaced by its parabola: (A*WA + alpha) d = −gradient, with W = w∘loss''. For canonical links
this is Fisher scoring (IRLS); for others, where loss'' may be negative, Fisher's weights are taken. A factorised system
serves several steps, corrected by what these show of the curvature (secants, as in BFGS), as long as it shrinks the
excess fast enough for what a new one costs; where it is not exact (float32, few rows, several classes) it preconditions
conjugate gradients on the exact second derivative.

The stopping rule is the predicted excess ½⟨g, H⁻¹g⟩, relative to the objective at the start, whose root is compared
with tol: scale-free, and in the metric of the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.problems.risk import Risk, State
from mercer.problems.spaces import Element, FeatureSpace, GramSpace, Matrix, NystromSpace, Space
from mercer.solvers.base import End
from mercer.solvers.cg import Measure, iterate
from mercer.solvers.curvature import Diagonal, FeatureSystem, System, system
from mercer.solvers.descent import MEMORY, Journey, Minimum, Pair, backtrack, secant, two_loops

# Conjugate gradients: the longest run, the number of steps after which the next system is factorised anew, and the
# tolerance of the run that a claim of convergence rests on.
LONGEST, TIRED, SURE = 500, 12, 1e-3
# A subsample of 1 row in LEVEL gives the start, where that leaves SAMPLE rows and, of features, as many for each.
LEVEL, SAMPLE, PER_FEATURE = 8, 400, 10
# With so many rows for each coefficient a sample's curvature is that of all rows, well enough for steps by it alone.
RELIABLE = 50
# Up to so many features the curvature of all rows costs about as much as a step.
NARROW = 150
# Systems that are made anew for nearly every step need no correction by secants.
MODEST = 0.01


def newton(risk: Risk, start: Element, journey: Journey, *, levels: bool = True) -> Minimum:
    """Newton's method with factorised systems, begun on a subsample of the rows where there are many."""
    held = None
    if levels:
        start, held = _from_a_sample(risk, start)
    return _iterate(risk, start, journey, held, factorise=True)


def newton_cg(risk: Risk, start: Element, journey: Journey) -> Minimum:
    """Newton's method by conjugate gradients alone: products with the second derivative, which is never formed.

    Columns are scaled by its diagonal, so that their units do not matter.
    """
    held, space = None, risk.space
    if isinstance(space, FeatureSpace):
        held = Diagonal(space, risk.curvature(risk.at(start)), risk.alpha)
    return _iterate(risk, start, journey, held, factorise=False)


def _iterate(risk: Risk, start: Element, journey: Journey, held: System | None, *, factorise: bool) -> Minimum:
    space = risk.space
    state = risk.at(start)
    scale = (abs(state.value) if journey.scale is None else journey.scale) or 1.0
    fresh, precise, before, step, gap = False, False, np.inf, 0.0, 1.0
    several = start.coef.shape[1] > 1
    pairs: list[Pair] = []  # what the steps since have shown of the curvature
    while True:
        if factorise and held is None:
            held, fresh, pairs = _factorised(risk, state, precise), True, []
        direct = held is not None and held.exact and not several
        if direct:
            assert held is not None
            d, passes = two_loops(risk, state.gradient, pairs, held.solve), 0
        else:
            d, passes = _conjugate_gradients(risk, state, held, min(0.1, np.sqrt(gap)))
            if 0.5 * space.inner(state.gradient, d) <= journey.tol**2 * scale:  # to be sure that it is converged
                d, passes = _conjugate_gradients(risk, state, held, SURE)
        d = d.times(-1.0)
        excess = 0.5 * max(-space.inner(state.gradient, d), 0.0)
        gap = float(np.sqrt(excess / scale))
        if passes > TIRED and fresh and not precise and not several and isinstance(space, GramSpace) and factorise:
            held, precise = None, True  # float32 has not the digits: the next system has
        stale = (direct and held is not None and excess > held.patience * before) or passes > TIRED
        if factorise and stale and not fresh and gap > journey.tol:
            held = None  # the curvature has changed too much
            if direct:
                continue
        if gap <= journey.tol and journey.scale is not None and state.value > (1.0 + 1e-6) * journey.scale:
            journey.arrive(state, step, np.inf)  # a constant is better: this is a plain, not a minimum
            journey.stop(End.STALLED, "where it is, the loss has a slope but no curvature; begin elsewhere")
            break
        if not journey.arrive(state, step, gap):
            break
        step, moved = backtrack(risk.line(state.at, d), state.value, -2.0 * excess)
        if not moved:
            if factorise and not fresh:
                held = None
            elif factorise and not precise and held is not None and not held.exact:
                held, precise = None, True
            else:
                seen = excess <= 1e-11 * max(scale, abs(state.value))
                journey.stop(*((End.CONVERGED,) if seen else (End.STALLED, "no step lowers the objective")))
                break
            journey.forget()
            continue
        new = risk.at(state.at.plus(step, d))
        if direct and held is not None and held.patience > MODEST:
            pairs = [*pairs[-MEMORY + 1 :], *secant(risk, state, new)]
        state, before, fresh = new, excess, False
    journey.system = held
    return journey.end()


def _factorised(risk: Risk, state: State, precise: bool) -> System:
    return system(risk.space, risk.curvature(state), risk.alpha, precise=precise)


class _Functions:
    """The arithmetic of one function of a space, in which its columns are one vector."""

    def __init__(self, space: Space) -> None:
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


def _conjugate_gradients(risk: Risk, state: State, held: System | None, tol: float) -> tuple[Element, int]:
    """d with H d = g to a relative error tol in the norm of the system, and the number of products with H."""
    solve = None if held is None else held.solve
    run = iterate(
        _Functions(risk.space),
        lambda v: risk.curve(state, v),
        state.gradient,
        precondition=solve,
        tol=tol,
        max_iter=LONGEST,
        measure=Measure.ENERGY,
    )
    if run.flat and run.iterations == 1:  # no curvature along the gradient: it is the direction itself
        return state.gradient if solve is None else solve(state.gradient), 1
    return run.X, run.iterations


def _from_a_sample(risk: Risk, start: Element) -> tuple[Element, System | None]:
    """The minimiser over a sample of the rows as a start for all of them, where it is a better one, and its system."""
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
    journey = Journey(part, 1e-2, 12)  # farther than the sample is from all rows
    # A sample of features is solved by a system of its own rows, which is then handed on.
    found = newton(part, begin, journey, levels=isinstance(space, GramSpace))
    lifted = space.lift(found.state.at, index)
    if not _value(risk, lifted) < _value(risk, start):
        return start, None
    held = journey.system
    if not isinstance(held, FeatureSystem) or not isinstance(space, (FeatureSpace, NystromSpace)):
        return lifted, None
    if isinstance(space, FeatureSpace) and space.size <= NARROW:
        return lifted, None  # all rows make a better one for the price of a step
    if held.rank < space.size + len(start.tail):  # a rare column that the sample has not seen would never move
        return lifted, None
    return lifted, held.seen_from(space, exact=small >= RELIABLE * space.size)


def _value(risk: Risk, u: Element) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        found = risk.total(u.values) + 0.5 * risk.alpha * risk.space.squared_norm(u)
    return found if np.isfinite(found) else np.inf
