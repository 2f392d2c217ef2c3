"""Smooth risks over spaces of functions: their geometry, their derivatives, and every way down to the minimum."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import mercer as mc
from mercer.errors import InvalidInput
from mercer.problems.families import Bernoulli, Gaussian, Poisson
from mercer.problems.links import Cauchit, Identity, Log, Logit, Probit
from mercer.problems.losses import Deviance, Softmax
from mercer.problems.risk import Risk
from mercer.problems.spaces import FeatureSpace, GramSpace, NystromSpace
from mercer.solvers import costs, descent, leave_out, newton, smooth
from mercer.solvers.base import End
from mercer.solvers.curvature import factorise
from mercer.solvers.descent import Journey, Minimum, lipschitz
from mercer.solvers.smooth import minimise

rng = np.random.default_rng(0)
N, D = 60, 3
ONES, NONE = np.ones((N, 1)), np.ones((N, 0))
X = np.random.default_rng(1).normal(size=(N, D))
SPARSE = sp.random_array((N, 5), density=0.4, rng=np.random.default_rng(2)).tocsr()
K = mc.Gaussian(1.5)


def of_centres(tail=ONES, kernel=K):
    return NystromSpace(mc.gram.of(kernel, X).low_rank(kernel.prepare(X[:12]), np.float64), tail)


SPACES = {
    "features": lambda: FeatureSpace(X, ONES),
    "no intercept": lambda: FeatureSpace(X, NONE),
    "far from zero": lambda: FeatureSpace(X + 1e6, ONES),
    "float32": lambda: FeatureSpace(X.astype(np.float32), ONES),
    "sparse": lambda: FeatureSpace(SPARSE, ONES),
    "gram": lambda: GramSpace(mc.gram.of(K, X), ONES),
    "gram, no intercept": lambda: GramSpace(mc.gram.of(K, X), NONE),
    "centres": of_centres,
    "centres, no intercept": lambda: of_centres(NONE),
}
LOSSES = {
    "logistic": Deviance(Bernoulli(), Logit()),
    "probit": Deviance(Bernoulli(), Probit()),
    "gaussian": Deviance(Gaussian(), Identity()),
    "poisson": Deviance(Poisson(), Log()),
    "softmax": Softmax(3),
}
ITERATIVE = ["newton", "newton-cg", "lbfgs", "gradient", "backtracking"]
BINARY = (np.random.default_rng(3).random(N) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
CLASSES = np.argmax(X @ np.eye(3) + np.random.default_rng(4).gumbel(size=(N, 3)), axis=1)
WEIGHTS = np.random.default_rng(5).uniform(0.5, 2.0, N)
OFFSET = np.random.default_rng(6).normal(size=N) / 2


def element(space, t=1, size=1.0):
    return space.element(size * rng.normal(size=(space.size, t)), rng.normal(size=(space.tail.shape[1], t)))


def targets(loss):
    if isinstance(loss, Softmax):
        return CLASSES
    return np.random.default_rng(7).poisson(1.5, N).astype(float) if loss.family == Poisson() else BINARY


def risk_of(space="features", loss="logistic", alpha=0.3, weights=WEIGHTS, offset=None):
    space = SPACES[space]() if isinstance(space, str) else space
    return Risk(space, LOSSES[loss], targets(LOSSES[loss]), alpha, weights, offset)


# -- spaces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
def test_a_representer_stands_for_its_functional(name):
    space = SPACES[name]()
    for t in (1, 3):
        R, u = rng.normal(size=(N, t)), element(space, t)
        found = space.representer(R)
        expected = (R * u.values).sum()
        assert space.inner(found, u) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        again = space.element(found.coef, found.tail)
        np.testing.assert_allclose(found.values, again.values, atol=1e-9 * np.abs(again.values).max())


@pytest.mark.parametrize("name", SPACES)
def test_inner_products(name):
    space = SPACES[name]()
    u, v, w = (element(space, 2) for _ in range(3))
    assert space.inner(u, v) == pytest.approx(space.inner(v, u), rel=1e-9)
    assert space.inner(u.plus(2.0, v), w) == pytest.approx(space.inner(u, w) + 2.0 * space.inner(v, w), rel=1e-9)
    assert space.norm(u) ** 2 == pytest.approx(space.inner(u, u))
    assert space.inner(u, u) > 0
    inside = space.penalised(u)
    assert space.squared_norm(u) == pytest.approx(space.inner(inside, inside))
    assert space.inner(u, u) - space.squared_norm(u) == pytest.approx((u.tail**2).sum(), abs=1e-9)
    np.testing.assert_allclose(inside.values, space.element(u.coef, 0 * u.tail).values, atol=1e-8)
    zero = space.zero(2)
    assert space.norm(zero) == 0.0
    assert not zero.values.any()


def test_values_are_those_of_the_function():
    w, b = rng.normal(size=(D, 2)), rng.normal(size=2)
    for shift, atol in ((0.0, 1e-13), (1e6, 1e-8)):
        space = FeatureSpace(X + shift, ONES)
        u = space.from_weights(w, b - shift * w.sum(axis=0))
        np.testing.assert_allclose(u.values, X @ w + b, atol=atol)
        np.testing.assert_allclose(space.intercept(u), b - shift * w.sum(axis=0), rtol=1e-12)
    sparse = FeatureSpace(SPARSE, ONES).from_weights(rng.normal(size=(5, 1)), np.array([2.0]))
    np.testing.assert_allclose(sparse.values, SPARSE.toarray() @ sparse.coef + 2.0, atol=1e-13)
    c = rng.normal(size=(N, 1))
    np.testing.assert_allclose(GramSpace(mc.gram.of(K, X), ONES).element(c, np.ones((1, 1))).values, K(X) @ c + 1.0)
    space = of_centres()
    beta = rng.normal(size=(space.size, 1))
    there = K(X, X[:12]) @ space.Phi.coefficients(beta)
    np.testing.assert_allclose(space.element(beta, np.zeros((1, 1))).values, there, atol=1e-10)
    c = space.Phi.coefficients(beta)
    assert space.squared_norm(space.element(beta, np.ones((1, 1)))) == pytest.approx((c.T @ K(X[:12]) @ c).item())


def test_float32_features_keep_the_digits_they_have():
    a, b = (
        FeatureSpace((X + 100).astype(np.float32), ONES),
        FeatureSpace((X + 100).astype(np.float32).astype(float), ONES),
    )
    R = rng.normal(size=(N, 1))
    np.testing.assert_allclose(a.representer(R).values, b.representer(R).values, rtol=1e-12)
    assert a.representer(R).coef.dtype == np.float64


@pytest.mark.parametrize("name", SPACES)
def test_some_of_the_points(name):
    space = SPACES[name]()
    index = np.array([3, 10, 11, 40])
    part = space.restrict(index)
    assert part.n == 4
    R = rng.normal(size=(4, 2))
    spread = np.zeros((N, 2))
    spread[index] = R
    lifted, direct = space.lift(part.representer(R), index), space.representer(spread)
    scale = np.abs(direct.values).max()
    np.testing.assert_allclose(lifted.values, direct.values, atol=1e-8 * scale)
    np.testing.assert_allclose(part.representer(R).values, direct.values[index], atol=1e-8 * scale)
    u = part.representer(R)
    assert part.inner(u, u) == pytest.approx(space.inner(lifted, lifted), rel=1e-8)


@pytest.mark.parametrize("name", ["features", "far from zero", "sparse", "no intercept"])
def test_normal_matrix(name):
    space = SPACES[name]()
    dense = space.X.toarray() if sp.issparse(space.X) else space.X
    Z = np.hstack([dense - space.mean, space.tail])
    np.testing.assert_allclose(space.normal_matrix(WEIGHTS), Z.T @ (WEIGHTS[:, None] * Z), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(space.joint(slice(2, 9)), Z[2:9])


@pytest.mark.parametrize("name", SPACES)
def test_a_system_inverts_the_second_derivative(name):
    risk = risk_of(name)
    space = risk.space
    state = risk.at(element(space))
    held = factorise(space, risk.curvature(state), risk.alpha, precise=True)
    g = space.representer(rng.normal(size=(N, 1)))
    d = held.solve(g)
    back = risk.curve(state, d)
    assert held.exact
    assert space.norm(back.plus(-1.0, g)) < 1e-7 * space.norm(g)
    np.testing.assert_allclose(d.values, space.element(d.coef, d.tail).values, atol=1e-8 * np.abs(d.values).max())


# -- risks ------------------------------------------------------------------------------------------------------------

CASES = [(s, loss) for s in ("features", "sparse", "gram", "centres", "no intercept") for loss in LOSSES]


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_gradients_and_curvature_are_derivatives(name, loss):
    risk = risk_of(name, loss, offset=OFFSET)
    space, t, h = risk.space, risk.loss.outputs, 1e-5
    for _ in range(3):
        u, d = element(space, t, 0.3), element(space, t, 0.3)
        state = risk.at(u)
        assert state.value == pytest.approx(risk.total(u.values) + 0.5 * risk.alpha * space.squared_norm(u))
        ahead, behind = risk.at(u.plus(h, d)), risk.at(u.plus(-h, d))
        slope = space.inner(state.gradient, d)
        assert slope == pytest.approx((ahead.value - behind.value) / (2 * h), rel=1e-6, abs=1e-6)
        curved = risk.curve(state, d)
        difference = ahead.gradient.plus(-1.0, behind.gradient).times(0.5 / h)
        assert space.norm(curved.plus(-1.0, difference)) < 1e-6 * space.norm(curved)


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_convex_along_random_lines(name, loss):
    risk = risk_of(name, loss, alpha=0.0)
    space, t = risk.space, risk.loss.outputs
    assert risk.loss.convex
    for size in (0.1, 1.0, 5.0):
        u, d, e = element(space, t, size), element(space, t), element(space, t)
        state = risk.at(u)
        bend, other = space.inner(d, risk.curve(state, d)), space.inner(e, risk.curve(state, e))
        assert bend >= -1e-9 * space.inner(d, d)
        difference = space.inner(e, risk.curve(state, d)) - space.inner(d, risk.curve(state, e))
        assert abs(difference) <= 1e-10 * np.sqrt(bend * other)  # Cauchy and Schwarz give the size
        assert (risk.curvature(state) >= 0).all()


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_along_a_line(name, loss):
    risk = risk_of(name, loss)
    space, t = risk.space, risk.loss.outputs
    u, d = element(space, t, 0.3), element(space, t, 0.3)
    line = risk.line(u, d)
    for step in (0.0, 0.7, -1.3):
        there = risk.at(u.plus(step, d))
        assert line.value(step) == pytest.approx(there.value, rel=1e-10)
        assert line.slope(step) == pytest.approx(space.inner(there.gradient, d), rel=1e-8, abs=1e-8)


def test_weights_are_repetitions_and_offsets_are_added():
    w = rng.integers(1, 4, N)
    rows = np.repeat(np.arange(N), w)
    loss = LOSSES["logistic"]
    one = Risk(FeatureSpace(X, ONES, np.zeros(D)), loss, BINARY, 0.5, w.astype(float), OFFSET)
    many = Risk(
        FeatureSpace(X[rows], np.ones((len(rows), 1)), np.zeros(D)), loss, BINARY[rows], 0.5, None, OFFSET[rows]
    )
    coef, tail = rng.normal(size=(D, 1)), np.ones((1, 1))
    a, b = one.at(one.space.element(coef, tail)), many.at(many.space.element(coef, tail))
    assert a.value == pytest.approx(b.value)
    np.testing.assert_allclose(a.gradient.coef, b.gradient.coef)
    by_hand = np.log1p(np.exp(-(2 * BINARY - 1) * ((X @ coef)[:, 0] + 1 + OFFSET)))
    assert a.value == pytest.approx(w @ by_hand + 0.25 * (coef**2).sum())


def test_a_part_of_the_rows_weighs_as_much_as_all():
    for weights in (None, WEIGHTS):
        part = risk_of(weights=weights, offset=OFFSET).restrict(np.arange(0, N, 4))
        assert part.weights.sum() == pytest.approx(N if weights is None else WEIGHTS.sum())
        np.testing.assert_array_equal(part.offset, OFFSET[::4])
        if weights is not None:
            assert np.ptp(part.weights / WEIGHTS[::4]) < 1e-12


def test_a_loss_that_is_not_convex_descends_by_fishers_curvature():
    risk = Risk(FeatureSpace(X, ONES), Deviance(Bernoulli(), Cauchit()), BINARY, 0.5)
    assert not risk.loss.convex
    u = element(risk.space, 1, 3.0)
    d = element(risk.space)
    state = risk.at(u)
    assert risk.space.inner(d, risk.curve(state, d)) > 0
    found = minimise(risk, "newton", tol=1e-8)
    assert found.converged
    assert risk.space.norm(found.state.gradient) < 1e-5


# -- the way down -----------------------------------------------------------------------------------------------------

WAYS = {
    "binary": ("logistic", 0.3, None, None),
    "weights": ("logistic", 0.3, WEIGHTS, None),
    "offset": ("logistic", 1.0, WEIGHTS, OFFSET),
    "multinomial": ("softmax", 0.3, WEIGHTS, None),
    "counts": ("poisson", 1.0, WEIGHTS, OFFSET),
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["features", "sparse", "gram", "centres", "no intercept", "far from zero"])
def test_every_solver_reaches_the_same_minimum(name, way):
    loss, alpha, weights, offset = WAYS[way]
    risk = risk_of(name, loss, alpha, weights, offset)
    far = name == "far from zero"  # where the values have six digits less
    exact = minimise(risk, "newton", tol=1e-8 if far else 1e-11)
    assert exact.converged, exact.status
    first = risk.at(smooth.constant(risk)).value
    for solver in ITERATIVE:
        if (solver, loss) == ("gradient", "poisson"):
            continue  # of no bounded curvature
        slow = solver in ("gradient", "backtracking")
        if slow and name == "centres" and way != "offset":
            continue  # thousands of steps
        found = minimise(risk, solver, tol=1e-6 if slow else 1e-8)
        assert found.converged, (solver, found.status)
        assert found.state.value - exact.state.value < (1e-8 if slow else 1e-10) * first
        np.testing.assert_allclose(found.state.at.values, exact.state.at.values, atol=1e-2 if slow else 1e-4)


def test_the_minimum_is_where_every_derivative_vanishes():
    risk = risk_of("gram", offset=OFFSET)
    found = minimise(risk, tol=1e-12)
    pull = risk.pull(found.state.at.values)
    np.testing.assert_allclose(found.state.at.coef, -pull / risk.alpha, atol=1e-9)
    assert abs(pull.sum()) < 1e-8  # the intercept's


@pytest.mark.parametrize("name", ["features", "sparse", "gram", "centres"])
@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_a_quadratic_takes_one_step(name, solver):
    risk = risk_of(name, "gaussian", alpha=1.0)
    found = minimise(risk, solver, tol=1e-9 if solver == "newton" else 1e-3)
    assert len(found.trace) - 1 <= (1 if solver == "newton" else 3)
    assert found.trace.step[1] == 1.0
    if name == "features":
        Z = np.hstack([X, ONES])
        A = Z.T @ (WEIGHTS[:, None] * Z) + np.diag([1.0] * D + [0.0])
        w = np.linalg.solve(A, Z.T @ (WEIGHTS * BINARY))
        found = minimise(risk, solver, tol=1e-9)
        np.testing.assert_allclose(found.state.at.coef[:, 0], w[:D], atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("solver", ["gradient", "backtracking", "lbfgs"])
def test_descent_with_a_gram_matrix_is_descent_with_features(solver, loss):
    primal = risk_of(FeatureSpace(X, NONE), loss)
    dual = risk_of(GramSpace(mc.gram.of(mc.Linear(), X), NONE), loss)
    t = primal.loss.outputs
    a = minimise(primal, solver, start=primal.space.zero(t), max_iter=8)
    b = minimise(dual, solver, start=dual.space.zero(t), max_iter=8)
    assert len(a.trace) == len(b.trace) == 9
    np.testing.assert_allclose(a.trace.objective, b.trace.objective, rtol=1e-9)
    np.testing.assert_allclose(a.trace.gradient, b.trace.gradient, rtol=1e-6)
    np.testing.assert_allclose(a.state.at.coef, X.T @ b.state.at.coef, atol=1e-9)  # in the span of the data


def test_descent_stays_in_the_span_of_few_rows():
    few = FeatureSpace(X[:2], np.ones((2, 0)))
    found = minimise(Risk(few, LOSSES["logistic"], BINARY[:2], 0.1), "gradient", max_iter=5)
    c = np.linalg.lstsq(X[:2].T, found.state.at.coef, rcond=None)[0]
    np.testing.assert_allclose(X[:2].T @ c, found.state.at.coef, atol=1e-14)


@pytest.mark.parametrize("loss", ["logistic", "probit", "gaussian", "softmax"])
@pytest.mark.parametrize("name", ["features", "gram", "centres", "sparse"])
def test_steps_of_one_over_the_bound_never_rise(name, loss):
    risk = risk_of(name, loss)
    L = lipschitz(risk)
    space, t = risk.space, risk.loss.outputs
    for size in (0.0, 1.0, 10.0):
        found = minimise(risk, "gradient", start=element(space, t, size), max_iter=60, tol=1e-12)
        assert (np.diff(found.trace.objective) <= 1e-13 * found.trace.objective[0]).all()
        np.testing.assert_allclose(found.trace.step[1:], 1 / L)
    for _ in range(10):  # no curvature is above L
        state, d = risk.at(element(space, t, 0.1)), element(space, t)
        assert space.inner(d, risk.curve(state, d)) <= L * space.inner(d, d)


def test_the_bound_is_reached_by_the_squared_loss():
    risk = risk_of("features", "gaussian", alpha=0.0)
    top = np.linalg.eigvalsh(risk.space.normal_matrix(WEIGHTS))[-1]
    assert top <= lipschitz(risk) <= 1.1 * top
    with pytest.raises(InvalidInput, match=r"bounded curvature.*backtracking"):
        minimise(risk_of("features", "poisson"), "gradient")


@pytest.mark.parametrize("factor", [2.2, 50.0, 1e150, 1e300])
def test_a_step_too_long_is_told(factor):
    risk = risk_of("features", "gaussian", alpha=0.5)
    step = factor / lipschitz(risk) * 1.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimise(risk, "gradient", step=step)
    assert not found.converged
    assert "diverged" in found.status
    assert f"the step {step:.3g} is too long" in found.status
    assert np.isfinite(found.state.value)
    assert found.state.value == found.trace.objective.min()


def test_a_step_that_only_leaps_to_and_fro_is_told():
    risk = risk_of("features", alpha=0.0)
    found = minimise(risk, "gradient", step=30 / lipschitz(risk), max_iter=50)
    assert "stopped after 50 steps, the step" in found.status
    assert "too long" in found.status
    assert found.state.value == found.trace.objective.min() < found.trace.objective[-1]
    short = minimise(risk, "gradient", step=0.01 / lipschitz(risk), max_iter=50)
    assert "too long" not in short.status


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("name", ["features", "gram"])
def test_traces(name, solver):
    risk = risk_of(name)
    told = []
    found = minimise(risk, solver, progress=lambda step: told.append(step) or True)
    trace = found.trace
    assert found.converged
    assert len(trace) == len(told) == len(trace.gradient) == len(trace.step) == len(trace.seconds) == len(trace.coef)
    assert trace.coef.shape[1] == risk.space.size + 1
    assert [step.iteration for step in told] == list(range(len(trace)))
    np.testing.assert_array_equal(trace.objective, [step.objective for step in told])
    assert (np.diff(trace.objective) <= 1e-12 * trace.objective[0]).all()
    assert (np.diff(trace.seconds) >= 0).all()
    assert trace.step[0] == 0.0
    assert (trace.step[1:] > 0).all()
    for k in (0, len(trace) // 2, -1):
        u = risk.space.element(trace.coef[k, :-1, None], trace.coef[k, -1:, None])
        state = risk.at(u)
        assert state.value == pytest.approx(trace.objective[k], rel=1e-9)
        assert risk.space.norm(state.gradient) == pytest.approx(trace.gradient[k], rel=1e-5, abs=1e-9)
    assert found.state.value == pytest.approx(trace.objective[-1], rel=1e-12)
    assert found.status.startswith(f"converged in {len(trace) - 1} step")
    assert told[-1].gap <= 1e-6


def test_newton_starts_at_the_best_constant():
    for loss in ("logistic", "softmax", "poisson"):
        risk = risk_of("features", loss, offset=OFFSET if loss != "softmax" else None)
        start = smooth.constant(risk)
        assert np.ptp(start.values, axis=0).max() == 0
        assert abs(risk.at(start).gradient.tail).max() < 1e-6 * WEIGHTS.sum()
    assert not smooth.constant(risk_of("no intercept")).values.any()


@pytest.mark.parametrize("solver", ITERATIVE)
def test_a_start_at_the_minimum_stays_there(solver):
    risk = risk_of()
    best = minimise(risk, tol=1e-10).state.at
    found = minimise(risk, solver, start=best)
    assert found.converged, found.status
    np.testing.assert_allclose(found.state.at.values, best.values, atol=1e-6)


@pytest.mark.parametrize("solver", ITERATIVE)
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_tolerance_near_rounding_is_reached(solver, loss):
    risk = risk_of("features", loss)
    found = minimise(risk, solver, tol=1e-13)
    assert found.converged, found.status
    assert risk.space.norm(found.state.gradient) < 1e-9


@pytest.mark.parametrize("solver", ITERATIVE)
def test_limits(solver):
    risk = risk_of("far from zero", alpha=1e-6)
    found = minimise(risk, solver, max_iter=2, tol=1e-12)
    assert not found.converged
    assert len(found.trace) == 3
    assert found.status.startswith("stopped after 2 steps: objective")
    found = minimise(risk, solver, max_time=1e-9, tol=1e-12)
    assert len(found.trace) <= 2
    assert "stopped by the limit of 1e-09 s after 0 steps" in found.status
    stopped = minimise(risk, solver, tol=1e-12, progress=lambda step: step.iteration < 1)
    assert stopped.status.startswith("stopped by the caller after 1 step: ")
    assert stopped.state.value == stopped.trace.objective[-1] < stopped.trace.objective[0]


@pytest.fixture
def ctrl_c():
    """A signal as from the keyboard, also where the tests run in the background and ignore it."""

    def press():
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(5)  # until it is delivered

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield press
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_an_interrupt_keeps_the_best_iterate(solver, ctrl_c):
    risk = risk_of(alpha=1e-3)

    def pressed(step):
        if step.iteration == 2:
            ctrl_c()
        return True

    found = minimise(risk, solver, tol=1e-12, progress=pressed)
    assert found.interrupted
    assert not found.converged
    assert found.status.startswith("interrupted after 2 steps")
    assert found.state.value == found.trace.objective[2] < found.trace.objective[0]


@pytest.mark.parametrize("solver", ["lbfgs", "gradient", "backtracking"])
def test_an_interrupt_before_there_is_an_iterate_is_raised(monkeypatch, solver):
    def pressed(self, u):
        raise KeyboardInterrupt

    monkeypatch.setattr(Risk, "at", pressed)
    with pytest.raises(KeyboardInterrupt):
        minimise(risk_of("no intercept"), solver)


def test_the_best_iterate_is_kept():
    risk = risk_of()
    journey = Journey(risk, 1e-6, 10)
    low, high = sorted((risk.at(element(risk.space, 1, s)) for s in (0.1, 5.0)), key=lambda state: state.value)
    for state in (high, low, high):
        assert journey.arrive(state, 1.0, 0.5)
    journey.stop(End.CALLER)
    found = journey.end()
    assert isinstance(found, Minimum)
    assert found.state is low
    np.testing.assert_array_equal(found.trace.objective, [high.value, low.value, high.value])
    assert f"objective {low.value:.8g}" in found.status


def test_long_traces_do_not_keep_many_coefficients():
    wide = FeatureSpace(rng.normal(size=(N, descent.KEPT + 1)), ONES)
    assert minimise(Risk(wide, LOSSES["logistic"], BINARY, 1.0)).trace.coef.size == 0
    assert minimise(risk_of("features", "softmax")).trace.coef.size == 0  # of several columns


def test_many_rows_begin_with_a_sample_of_them(monkeypatch):
    n = 8000
    Z = rng.normal(size=(n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-Z @ [1.0, -1.0, 0.5, 2.0]))).astype(float)
    w = rng.uniform(0.5, 2.0, n)
    risk = Risk(FeatureSpace(Z, np.ones((n, 1))), LOSSES["logistic"], y, 0.1, w)
    started = minimise(risk, "newton", tol=1e-9)
    plain = minimise(risk, "newton", start=smooth.constant(risk), tol=1e-9)
    assert started.trace.objective[0] < 0.2 * plain.trace.objective[0] + 0.8 * plain.state.value
    np.testing.assert_allclose(started.state.at.coef, plain.state.at.coef, atol=1e-6)
    monkeypatch.setattr(newton, "SAMPLE", 10**9)
    assert minimise(risk, "newton").trace.objective[0] == pytest.approx(plain.trace.objective[0])


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("name", ["gram", "centres", "features"])
def test_rough_systems_are_mended_by_conjugate_gradients(monkeypatch, name, loss):
    from mercer.solvers import curvature

    exact = minimise(risk_of(name, loss, alpha=0.01), tol=1e-10).state
    monkeypatch.setattr(costs, "FLOAT64_ROWS", 0)
    monkeypatch.setattr(costs, "FACTORED_FEATURES", 0)
    monkeypatch.setattr(costs, "SAMPLED_FLOPS", 0.0)
    monkeypatch.setattr(curvature, "PER_CENTER", 2)
    risk = risk_of(name, loss, alpha=0.01)
    rough = factorise(risk.space, risk.curvature(risk.at(risk.space.zero(risk.loss.outputs))), risk.alpha)
    assert not rough.exact
    found = minimise(risk, tol=1e-9)
    assert found.converged, found.status
    np.testing.assert_allclose(found.state.at.values, exact.at.values, atol=1e-5)


def test_columns_that_depend_on_each_other_share_the_weight():
    Z = np.hstack([X, X[:, :1], np.ones((N, 1))])
    loss = LOSSES["logistic"]
    found = minimise(Risk(FeatureSpace(Z, ONES), loss, BINARY, 0.0), tol=1e-10)
    plain = minimise(Risk(FeatureSpace(X, ONES), loss, BINARY, 0.0), tol=1e-10)
    assert found.converged
    assert found.state.value == pytest.approx(plain.state.value, rel=1e-10)
    coef = found.state.at.coef[:, 0]
    assert coef[0] + coef[3] == pytest.approx(plain.state.at.coef[0, 0], abs=1e-6)
    assert coef[4] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["features", "gram", "centres"])
def test_secant_pairs_are_solved_exactly(name):
    """The inverse curvature of L-BFGS takes the last change of the gradient to the last step."""
    risk = risk_of(name)
    states = [risk.at(element(risk.space, 1, 0.3)) for _ in range(5)]
    pairs = [pair for a, b in pairwise(states) for pair in descent.secant(risk, a, b)]
    assert len(pairs) == 4
    step, change, _ = pairs[-1]
    found = descent.two_loops(risk, change, pairs)
    assert risk.space.norm(found.plus(-1.0, step)) < 1e-9 * risk.space.norm(step)


@pytest.mark.parametrize("tail", [ONES, NONE], ids=["intercept", "none"])
def test_leverages_of_gram_and_features(tail):
    W = np.where(np.arange(N) % 4 == 0, 0.0, WEIGHTS)
    W[1::8] = 1e-12
    dual, primal = GramSpace(mc.gram.of(mc.Linear(), X), tail), FeatureSpace(X, tail)
    Z = np.hstack([X, tail])
    A = Z.T @ (W[:, None] * Z) + np.diag([0.3] * D + [0.0] * tail.shape[1])
    expected = np.einsum("ij,ij->i", Z @ np.linalg.inv(A), Z)
    for space in (dual, primal):
        found = leave_out.leverages(factorise(space, W, 0.3, precise=True), W)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_unknown_solvers():
    with pytest.raises(InvalidInput, match=r"`solver` must be one of.*'newton'.*got 'sgd'"):
        minimise(risk_of(), "sgd")
