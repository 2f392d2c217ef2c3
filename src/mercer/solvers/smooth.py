"""Minimise a smooth risk: the choice of a method, its start, and its stopping rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.families import Gaussian
from mercer.problems.links import Identity
from mercer.problems.losses import Deviance, Softmax
from mercer.problems.risk import Risk
from mercer.problems.spaces import Element, FeatureSpace
from mercer.solvers import descent, newton
from mercer.solvers.descent import Journey, Minimum
from mercer.solvers.step import Progress
from mercer.validation import check_choice

Matrix = NDArray[np.float64]

SOLVERS = ("auto", "newton", "newton-cg", "lbfgs", "gradient", "backtracking")
MAX_ITER = {"newton": 100, "newton-cg": 100, "lbfgs": 1000, "gradient": 10_000, "backtracking": 10_000}


def minimise(
    risk: Risk,
    solver: str = "auto",
    *,
    start: Element | None = None,
    step: float | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    progress: Progress | None = None,
) -> Minimum:
    """The minimiser of a smooth risk.

    An interrupt (Ctrl-C) ends it at the best iterate, with `interrupted` set; before the first iterate it is raised.

    Parameters
    ----------
    risk : Risk
        The function to minimise.
    solver : str
        "newton" (the same as "auto"), "newton-cg", "lbfgs", "gradient" or "backtracking".
    start : Element or None
        The first iterate; by default the best constant, for Newton's method then the fit to a sample of the rows.
    step : float or None
        A fixed step of "gradient", by default 1/L.
    tol : float
        Newton's methods stop when the root of the predicted excess over the minimum, relative to the first objective,
        is below it; the others when the norm of the gradient is, relative to the first one (or to the one at the best
        constant if that is larger).
    max_iter, max_time : int or None, float or None
        The largest numbers of steps and of seconds.
    progress : Progress or None
        Called with a `Step` after every step; False stops there.

    Examples
    --------
    >>> from mercer.problems.losses import loss_of
    >>> X, y = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> risk = Risk(FeatureSpace(X, np.ones((4, 1))), loss_of("bernoulli", "logit"), y, alpha=0.1)
    >>> minimum = minimise(risk)
    >>> minimum.converged, minimum.state.at.coef.round(4)
    (True, array([[0.8155]]))
    """
    check_choice(solver, "solver", SOLVERS, advice="Use 'auto', which is 'newton'.")
    name = "newton" if solver == "auto" else solver
    journey = Journey(risk, tol, MAX_ITER[name] if max_iter is None else max_iter, progress, max_time)
    begin = constant(risk) if start is None else start
    if start is not None:  # progress must not be measured against a poor start
        usual = risk.at(constant(risk))
        journey.steep, journey.scale = risk.space.norm(usual.gradient), abs(usual.value)
    try:
        match name:
            case "newton":
                minimum = newton.newton(risk, begin, journey, levels=start is None)
            case "newton-cg":
                minimum = newton.newton_cg(risk, begin, journey)
            case "lbfgs":
                minimum = descent.lbfgs(risk, begin, journey)
            case "backtracking":
                minimum = descent.backtracking(risk, begin, journey)
            case _:
                minimum = descent.gradient(risk, begin, journey, step)
    except KeyboardInterrupt:
        if not journey.steps:
            raise
        minimum = journey.end(interrupted=True)
    return _balanced(minimum) if isinstance(risk.loss, Softmax) else minimum


def _balanced(minimum: Minimum) -> Minimum:
    """The minimum without the part common to all classes: the softmax ignores it, and steps add rounding to it."""
    u = minimum.state.at
    at = Element(u.space, *(a - a.mean(axis=1, keepdims=True) for a in (u.coef, u.tail, u.values)))
    return replace(minimum, state=replace(minimum.state, at=at))


def constant(risk: Risk) -> Element:
    """The best constant function, or 0 without an intercept; a rough fit if the loss is not defined there."""
    t, loss = risk.loss.outputs, risk.loss
    begin = risk.space.zero(t)
    if risk.space.tail.shape[1]:
        w = risk.weights
        if isinstance(loss, Softmax):
            share = np.bincount(risk.y.astype(np.int64), w, minlength=t) / (len(risk.y) if w is None else w.sum())
            b = np.log(np.maximum(share, 1e-12))
            return risk.space.constant(b - b.mean())
        begin = risk.space.constant(_best_constant(risk, w))
    if np.isfinite(risk.total(begin.values)):
        return begin
    return _rough(risk)


def _best_constant(risk: Risk, w: Matrix | None) -> Matrix:
    """b that minimises Σ w loss(y, b + o): the link of the mean, or with offsets by Newton's method."""
    loss = risk.loss
    assert isinstance(loss, Deviance)
    mean = np.atleast_1d(loss.family.start(np.atleast_1d(np.average(risk.y, weights=w))))
    low, high = loss.means
    if not low < mean[0] < high:  # a Gaussian with the log link may have any targets
        mean = np.atleast_1d(np.abs(risk.y).mean())
    b = loss.link(mean)
    if risk.offset is None:
        return np.asarray(b)
    b = b - np.average(risk.offset, weights=w)
    space = FeatureSpace(np.empty((len(risk.y), 0)), np.ones((len(risk.y), 1)))
    null = Risk(space, loss, risk.y, 0.0, risk.weights, risk.offset)
    if not np.isfinite(null.total(np.full((len(risk.y), 1), float(b[0])))):
        return np.asarray(b)
    return newton.newton(null, space.constant(b), Journey(null, 1e-8, 50)).state.at.tail[0]


def _rough(risk: Risk) -> Element:
    """Least squares to the link of targets moved inside their range, if the loss is not defined at a constant."""
    loss: Any = risk.loss
    targets = loss.link(loss.family.start(risk.y))
    if risk.offset is not None:
        targets = targets - risk.offset
    linear = Risk(risk.space, Deviance(Gaussian(), Identity()), targets, risk.alpha, risk.weights)
    fit = newton.newton(linear, risk.space.zero(1), Journey(linear, 1e-6, 5), levels=False).state.at
    if not np.isfinite(risk.total(fit.values)):
        raise InvalidInput(
            f"The {loss.link.name} link needs a start at which every mean is possible",
            got="impossible means for a constant and for the fit to the link of the targets",
            advice="Use the log link, or fit_intercept=True.",
        )
    return fit
