"""A time limit of a support vector machine counts while kernel values are computed, by a clock that the tests turn."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer.models.svm import solving
from mercer.solvers import costs, smo
from mercer.threads import OutOfTime, time_limit

N = 500
WHOLE = N * (N + 1) // 2
"""Values of the whole Gram."""


class Clock:
    """Each value of the kernel takes a second."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for module in (solving, smo):
            monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def value(self, x, z):
        self.now += 1.0
        return float(np.exp(-0.5 * (x[0] - z[0]) ** 2))


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    return Clock(monkeypatch)


def data(n=N):
    own = np.random.default_rng(0)
    X = own.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * own.normal(size=n)


MODELS = {
    "SVC": (mc.SVC(C=10.0), lambda y: y > 0),
    "SVC of three classes": (mc.SVC(C=10.0, calibrated=True), lambda y: np.digitize(y, [-0.5, 0.5])),
    "NuSVC": (mc.NuSVC(nu=0.2), lambda y: y > 0),
    "SVR": (mc.SVR(C=10.0), lambda y: y),
    "NuSVR": (mc.NuSVR(C=10.0, nu=0.1), lambda y: y),
    "KernelQuantileRegressor": (mc.KernelQuantileRegressor(C=10.0), lambda y: y),
    "OneClassSVM": (mc.OneClassSVM(nu=0.05), lambda y: y),
}


@pytest.mark.filterwarnings("ignore:The Gram matrix")
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_ends_near_its_limit_with_what_it_has(clock, name, monkeypatch):
    monkeypatch.setattr(costs, "FIRST_VARIABLES", 64)
    model, target = MODELS[name]
    X, y = data()
    model = model.set_params(kernel=mc.FromFunction(clock.value), max_time=1000.0)
    with pytest.warns(ConvergenceWarning, match="stopped at the time limit.*its gap is not known"):
        model.fit(X, target(y))
    assert clock.now < WHOLE / 2  # a tile or two, and a working set alone
    assert model.end_ == "time"
    assert np.isinf(model.gap_)
    assert np.isinf(model.duality_gap_).any()
    assert np.isfinite(model.intercept_).all()
    predicted = model.predict(X[:50])
    if name == "OneClassSVM":
        assert (predicted == 1).mean() > 0.5
    elif isinstance(model, (mc.SVC, mc.NuSVC)):
        assert (predicted == target(y)[:50]).mean() > 0.8
        report = model.margin_report()
        assert report[0].errors is None
        assert np.isfinite(report[0].margin)
        assert "errors unknown" in str(report)
    else:
        assert np.abs(predicted - np.sin(X[:50, 0])).mean() < 0.3


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:The Gram matrix")
def test_time_that_is_not_enough_for_all_values_is_used_for_those_that_are_needed(clock, monkeypatch):
    """Half of it goes into a matrix that is not completed, the other half into working sets."""
    monkeypatch.setattr(costs, "FIRST_VARIABLES", 64)
    X, y = data()
    model = mc.SVC(mc.FromFunction(clock.value), C=10.0, max_time=1.6 * WHOLE)
    model.fit(X, y > 0)
    assert clock.now < 1.6 * WHOLE
    assert model.status_.startswith("converged")
    whole = mc.SVC(mc.Gaussian(1.0), C=10.0).fit(X, y > 0)
    np.testing.assert_allclose(model.decision_function(X[:50]), whole.decision_function(X[:50]), atol=0.02)


@pytest.mark.filterwarnings("ignore:The Gram matrix")
def test_a_limit_that_is_not_reached_changes_nothing(clock):
    X, y = data(200)
    one = mc.SVC(mc.FromFunction(clock.value), C=10.0).fit(X, y > 0)
    two = mc.SVC(mc.FromFunction(clock.value), C=10.0, max_time=1e12).fit(X, y > 0)
    assert one.end_ == two.end_ == "converged"
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_tiles_are_not_computed_after_the_end(monkeypatch, threads):
    monkeypatch.setenv("MERCER_NUM_THREADS", threads)
    seen = []

    def late():
        seen.append(1)
        return len(seen) > 3

    with pytest.raises(OutOfTime), time_limit(late):
        mc.Matern(1.0)(np.zeros((3000, 1)))
    assert 3 < len(seen) < 10
    assert mc.Matern(1.0)(np.zeros((300, 1))).shape == (300, 300)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:The Gram matrix")
@pytest.mark.parametrize(("limit", "said"), [(1.5 * WHOLE, True), (1e9, False)])
def test_a_fit_that_goes_another_way_for_want_of_time_says_so(clock, monkeypatch, limit, said):
    monkeypatch.setattr(costs, "FIRST_VARIABLES", 64)
    X, y = data()
    model = mc.SVR(mc.FromFunction(clock.value), max_time=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert ("half of `max_time` passed" in model.status_) == said
