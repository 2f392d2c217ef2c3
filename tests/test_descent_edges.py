"""Data that once led a descent astray: rare columns, columns far from zero or of other units, poor starts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import mercer as mc


@pytest.mark.parametrize("seed", range(4))
def test_a_column_that_a_sample_does_not_see_is_fitted(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 5))
    rare = rng.choice(20_000, 4, replace=False)
    X[:, 0] = 0.0
    X[rare, 0] = 1.0
    y = rng.poisson(np.exp(0.3 * X[:, 1])).astype(float)
    y[rare] = 5.0
    model = mc.GLM(family="poisson").fit(X, y)
    mean = np.exp(X[rare, 1:] @ model.coef_[1:] + model.intercept_).sum()
    assert model.coef_[0] == pytest.approx(np.log(20.0 / mean), abs=1e-4)


@pytest.mark.thorough
def test_a_rare_column_that_separates_is_diagnosed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    rare = rng.choice(20_000, 4, replace=False)
    X[:, 0] = 0.0
    X[rare, 0] = 1.0
    y = (X[:, 1] - 0.5 + rng.logistic(size=20_000) > 0).astype(int)
    y[rare] = 1
    with pytest.raises(mc.Separable, match="column 0"):
        mc.LogisticRegression(alpha=0.0).fit(X, y)


def test_one_hot_levels_have_their_own_means():
    rng = np.random.default_rng(0)
    level = np.minimum(rng.geometric(0.02, 20_000) - 1, 400)
    X = sp.csr_array((np.ones(20_000), (np.arange(20_000), level)))
    X = X[:, np.asarray(X.sum(axis=0)).ravel() > 0]
    y = rng.poisson(1.0, 20_000) + 1.0
    model = mc.GLM(family="poisson", fit_intercept=False).fit(X, y)
    means = (X.T @ y) / np.asarray(X.sum(axis=0)).ravel()
    np.testing.assert_allclose(model.coef_, np.log(means), atol=1e-4)


@pytest.mark.parametrize("offset", [1e5, 1e8])
@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_columns_far_from_zero_keep_their_digits(offset, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=400) > 0).astype(int)
    near = mc.LogisticRegression(alpha=0.01, tol=1e-9).fit(X, y)
    far = mc.LogisticRegression(alpha=0.01, solver=solver).fit(X + offset, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)


def test_least_squares_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + X[:, 1] + rng.normal(size=400)
    model = mc.GLM().fit(X + 1e8, y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, atol=1e-6)
    assert model.p_values_[0] < 1e-10


def test_units_do_not_matter_to_newton_by_products():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, 1.0, 1.0] + rng.logistic(size=400) > 0).astype(int)
    units = np.array([1e-6, 1.0, 1e6])
    plain = mc.LogisticRegression(alpha=0.0, tol=1e-9).fit(X, y)
    other = mc.LogisticRegression(alpha=0.0, solver="newton-cg").fit(X * units, y)
    np.testing.assert_allclose(other.coef_ * units, plain.coef_, atol=1e-4)


def test_a_poor_start_is_not_called_a_minimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X @ [1.0, 1.0, 1.0] + rng.logistic(size=400) > 0).astype(int)
    best = mc.LogisticRegression(alpha=0.1).fit(X, y).objective_
    with pytest.warns(ConvergenceWarning, match="begin elsewhere|no step lowers"):
        model = mc.LogisticRegression(alpha=0.1, start=[1e6, 1e6, -1e6, 5.0]).fit(X, y)
    assert model.objective_ > 2 * best
    assert not model.status_.startswith("converged")


def test_a_start_of_another_layout_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 4
    with pytest.raises(mc.InvalidInput, match=r"shape \(3, 4\)"):
        mc.LogisticRegression(start=np.zeros((4, 3))).fit(X, y)
    assert mc.LogisticRegression(start=np.zeros((3, 4))).fit(X, y).n_iter_ > 0


def test_rounding_of_large_kernel_values_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="Centre and scale"):
        mc.KernelLogisticRegression(mc.Linear(), alpha=0.01).fit(X + 1e5, y)
    with pytest.warns(ConvergenceWarning), pytest.raises(mc.InvalidInput, match="rounding"):
        mc.KernelLogisticRegression(mc.Linear(), alpha=0.01).fit(X + 1e8, y)


def test_models_that_are_not_linear_in_y_are_not_tuned_as_if_they_were():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(mc.InvalidInput, match="GridSearchCV"):
        mc.tune(mc.KernelLogisticRegression(mc.Gaussian(1.0)), X, (X[:, 0] > 0).astype(int))


def test_progress_must_be_a_function():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(mc.InvalidInput, match="SolverProgress"):
        mc.LogisticRegression(progress=True).fit(X, X[:, 0] > 0)


def test_exposure_does_not_send_a_fit_to_linear_programs(monkeypatch):
    def never(*_, **__):
        raise AssertionError("a linear program was solved")

    monkeypatch.setattr("mercer.models.likelihood.separation.linprog", never)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    exposure = np.exp(rng.uniform(-9, 0, 5000))
    y = rng.poisson(exposure * np.exp(0.3 * X[:, 0] - 2.0))
    assert mc.GLM(family="poisson").fit(X, y, exposure=exposure).status_.startswith("converged")
