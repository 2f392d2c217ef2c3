"""Identities of theory, across models: one function, found in different ways."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc

RNG = np.random.default_rng(5)
X = RNG.normal(size=(35, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=35)
Z = RNG.normal(size=(9, 2))


def test_primal_dual_and_expansion_are_one_function():
    kernel, alpha = mc.Polynomial(3, c=1.0), 0.4
    phi = kernel.features(2)
    primal = mc.Ridge(phi, alpha=alpha, fit_intercept=False, form="primal").fit(X, Y)
    dual = mc.Ridge(phi, alpha=alpha, fit_intercept=False, form="dual").fit(X, Y)
    expansion = mc.KernelRidge(kernel, alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(primal.predict(Z), dual.predict(Z), atol=1e-10)
    np.testing.assert_allclose(primal.predict(Z), expansion.function_(Z), atol=1e-10)
    np.testing.assert_allclose(primal.coef_, expansion.function_.weights(), atol=1e-9)
    assert np.linalg.norm(primal.coef_) == pytest.approx(expansion.function_.norm())  # one norm, too


def test_ridge_is_the_mean_of_a_gaussian_process():
    kernel = 2.0 * mc.Gaussian(0.8) + mc.Linear()
    ridge = mc.KernelRidge(kernel, alpha=0.3).fit(X, Y)
    process = mc.GaussianProcessRegressor(kernel, alpha=0.3).fit(X, Y)
    np.testing.assert_allclose(process.predict(Z), ridge.predict(Z), atol=1e-10)
    np.testing.assert_allclose(process.loo_predictions_, ridge.loo_predictions_, atol=1e-9)


def test_bayesian_linear_regression_is_a_gaussian_process():
    phi = mc.Polynomial(2, c=1.0).features(2)
    bayes = mc.BayesianLinearRegression(features=phi, prior_precision=2.0, noise_precision=10.0).fit(X, Y)
    process = mc.GaussianProcessRegressor(0.5 * mc.Polynomial(2, c=1.0), alpha=0.1).fit(X, Y)
    mean, std = bayes.predict(Z, return_std=True)
    f, spread = process.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, f, atol=1e-9)
    np.testing.assert_allclose(std**2, spread**2 + 0.1, atol=1e-9)  # a new target has the noise as well
    np.testing.assert_allclose(bayes.equivalent_kernel_(Z, X) @ Y, mean, atol=1e-9)
    assert bayes.log_evidence_ == pytest.approx(process.log_evidence_)


def test_a_network_with_every_centre_is_kernel_ridge():
    kernel = mc.Gaussian(0.9)
    network = mc.RBFNetwork(kernel, centers="all", alpha=0.2, penalty="rkhs").fit(X, Y)
    np.testing.assert_allclose(network.predict(Z), mc.KernelRidge(kernel, alpha=0.2).fit(X, Y).predict(Z), atol=1e-8)
    K = kernel(X)
    weights = np.linalg.solve(K.T @ K + 0.2 * np.eye(len(X)), K.T @ Y)
    network = mc.RBFNetwork(kernel, centers="all", alpha=0.2, penalty="ridge").fit(X, Y)
    np.testing.assert_allclose(network.predict(Z), kernel(Z, X) @ weights, atol=1e-8)


def test_gradient_descent_from_zero_stays_in_the_span_and_finds_the_ridge_solution():
    """Lecture 001: every step adds multiples of the data, so that w = Σ cᵢ xᵢ at all times."""
    A, alpha = RNG.normal(size=(6, 20)), 0.5
    t = RNG.normal(size=6)
    w = np.zeros(20)
    outside = np.eye(20) - np.linalg.pinv(A) @ A
    step = 1 / (np.linalg.norm(A, 2) ** 2 + alpha)
    for _ in range(3000):
        w -= step * (A.T @ (A @ w - t) + alpha * w)
        assert np.linalg.norm(outside @ w) < 1e-12
    f = mc.KernelRidge(mc.Linear(), alpha=alpha).fit(A, t).function_
    np.testing.assert_allclose(f.weights(), w, atol=1e-8)


def test_dropping_rows_without_a_coefficient_changes_nothing():
    kernel = mc.Gaussian(1.0)
    weight = np.ones(35)
    weight[::3] = 0
    model = mc.KernelRidge(kernel, alpha=0.1).fit(X, Y, sample_weight=weight)
    kept = mc.KernelRidge(kernel, alpha=0.1).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(model.predict(Z), kept.predict(Z), atol=1e-12)
    assert len(model.function_) == int(weight.sum())
