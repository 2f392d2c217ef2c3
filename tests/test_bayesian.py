"""Bayesian linear regression: posterior, evidence, sequential updates, and the equivalent kernel (lecture 004)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import PolynomialFeatures

import mercer as mc
from mercer.models.least_squares.bayesian import BayesianLinearRegression, Belief, Conditioning
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.ridge import Ridge
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.cholesky import CholeskyFactor

RNG = np.random.default_rng(0)
X, Z = RNG.uniform(-1, 1, size=(25, 2)), RNG.uniform(-1.5, 1.5, size=(9, 2))
T = np.column_stack([np.sin(3 * X[:, 0]), X[:, 0] * X[:, 1] + 1]) + 0.1 * RNG.normal(size=(25, 2))
ALPHA, BETA = 0.7, 25.0


def quadratic(X):
    """1, x₀, x₁, x₀², x₀x₁, x₁²."""
    X = np.asarray(X)
    return np.column_stack([np.ones(len(X)), X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])


def random_covariance(M, seed=1):
    A = np.random.default_rng(seed).normal(size=(M, M + 2))
    return A @ A.T / M


def close(a, b, tol=1e-10):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= tol * max(1.0, np.abs(b).max())


def naive(Phi, t, S0_inverse, m0, beta):
    """m_N and S_N by the formulas of the lecture, with its sign put right."""
    S = np.linalg.inv(S0_inverse + beta * Phi.T @ Phi)
    return S @ (S0_inverse @ m0 + beta * Phi.T @ t), S


# -- the posterior -----------------------------------------------------------------------------------------------------


PRIORS = {
    "isotropic": ({"prior_precision": ALPHA}, np.full(6, ALPHA)),
    "precisions": ({"prior_precision": np.arange(1.0, 7.0)}, np.arange(1.0, 7.0)),
    "flat on the constant": ({"prior_precision": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}, np.arange(6.0)),
    "flat": ({"prior_precision": 0.0}, np.zeros(6)),
    "covariance": ({"prior_covariance": random_covariance(6)}, np.linalg.inv(random_covariance(6))),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("mean", [None, 0.5, np.arange(6.0)])
def test_posterior_and_predictive_distribution(prior, mean):
    params, precision = PRIORS[prior]
    P = np.diag(precision) if precision.ndim == 1 else precision
    m0 = np.zeros(6) if mean is None else np.broadcast_to(mean, 6)
    model = BayesianLinearRegression(quadratic, noise_precision=BETA, prior_mean=mean, **params).fit(X, T[:, 0])
    m, S = naive(quadratic(X), T[:, 0], P, m0, BETA)
    close(model.coef_, m)
    close(model.covariance_, S)
    mu, std = model.predict(Z, return_std=True)
    close(mu, quadratic(Z) @ m)
    close(std, np.sqrt(1 / BETA + np.einsum("ij,jk,ik->i", quadratic(Z), S, quadratic(Z))))
    _, cov = model.predict(Z, return_cov=True)
    close(cov, quadratic(Z) @ S @ quadratic(Z).T + np.eye(9) / BETA)
    several = BayesianLinearRegression(quadratic, noise_precision=BETA, prior_mean=mean, **params).fit(X, T)
    close(several.coef_[:, 0], m)
    close(several.predict(Z, return_std=True)[1], np.column_stack([std, std]))


def test_the_mean_is_ridge_regression():
    for intercept in (False, True):
        ridge = Ridge(quadratic, alpha=ALPHA / BETA, fit_intercept=intercept).fit(X, T)
        model = BayesianLinearRegression(
            quadratic, prior_precision=ALPHA, noise_precision=BETA, fit_intercept=intercept
        ).fit(X, T)
        close(model.predict(Z), ridge.predict(Z))
        close(model.coef_, ridge.coef_)
        close(model.intercept_, ridge.intercept_)
        close(model.loo_predictions_, ridge.loo_predictions_)
        close(model.predict_interval(Z, 0.8, method="jackknife+"), ridge.predict_interval(Z, 0.8))
        assert model.degrees_of_freedom_ == pytest.approx(ridge.degrees_of_freedom_)


@pytest.mark.parametrize("rows", [25, 4])  # fewer rows than features
def test_the_function_is_a_gaussian_process(rows):
    S0 = random_covariance(6)
    kernel = mc.Bilinear(S0).after(quadratic)
    model = BayesianLinearRegression(quadratic, prior_covariance=S0, noise_precision=BETA).fit(X[:rows], T[:rows])
    problem = LeastSquares(mc.gram.of(kernel, X[:rows]), T[:rows], np.ones(2))
    factor = CholeskyFactor.of(problem, 1 / BETA)
    mean, std = model.predict(Z, return_std=True)
    close(mean, kernel(Z, X[:rows]) @ factor.solve(T[:rows])[0], 1e-9)
    variance = kernel.diag(Z) - factor.quadratic(kernel(X[:rows], Z))
    close(std[:, 0], np.sqrt(variance + 1 / BETA), 1e-9)
    evidence = multivariate_normal(np.zeros(rows), kernel(X[:rows]) + np.eye(rows) / BETA)
    assert model.log_evidence_ == pytest.approx(sum(evidence.logpdf(t) for t in T[:rows].T), rel=1e-10)
    process = GaussianProcessRegressor(kernel, alpha=1 / BETA).fit(X[:rows], T[:rows])
    for ours, theirs in zip((mean, std), process.predict_distribution(Z)):
        close(ours, theirs, 1e-9)
    low, high = model.predict_interval(Z, 0.95, noise=False)[:, 0].T
    close(high - low, 2 * norm.ppf(0.975) * np.sqrt(variance), 1e-8)


def test_more_features_than_rows_and_certain_directions():
    wide = np.random.default_rng(2).normal(size=(8, 40))
    model = BayesianLinearRegression(prior_precision=2.0, noise_precision=3.0).fit(wide, np.arange(8.0))
    m, S = naive(wide, np.arange(8.0), 2 * np.eye(40), np.zeros(40), 3.0)
    close(model.coef_, m)
    close(model.covariance_, S)
    singular = np.diag([1.0, 0.0])  # the second weight is known to be 5
    model = BayesianLinearRegression(prior_covariance=singular, prior_mean=[0.0, 5.0]).fit(X, T[:, 0])
    assert model.coef_[1] == 5.0
    assert model.covariance_[1, 1] == 0.0


def test_ill_conditioned_features_keep_their_digits():
    # Condition 1e8: the normal equations would have 1e16. With a wide prior the mean is the least squares solution.
    x = np.linspace(-1, 1, 40)[:, None]
    powers = lambda x: np.asarray(x) ** np.arange(12)  # noqa: E731
    t = powers(x) @ np.arange(1.0, 13.0)
    model = BayesianLinearRegression(powers, prior_precision=1e-14, noise_precision=1.0).fit(x, t)
    close(model.coef_, np.arange(1.0, 13.0), 1e-7)
    assert (np.linalg.eigvalsh(model.covariance_) > 0).all()


def test_samples_have_the_posterior_as_their_distribution():
    model = BayesianLinearRegression(quadratic, noise_precision=BETA).fit(X, T)
    f = model.sample_functions(Z, 40_000, random_state=1)
    assert f.shape == (9, 2, 40_000)
    mean, cov = model.predict(Z, return_cov=True)
    close(f.mean(axis=-1), mean, 0.02)
    close(np.cov(f[:, 1]), cov - np.eye(9) / BETA, 0.02)
    y = model.sample_y(Z, 40_000, random_state=1)
    close(np.cov(y[:, 0]), cov, 0.02)
    single = BayesianLinearRegression(quadratic).fit(X, T[:, 0])
    assert single.sample_y(Z, 3).shape == (9, 3)
    close(single.sample_functions(Z, 3, 7), single.sample_functions(Z, 3, 7), 0)


@pytest.mark.parametrize("prior", ["isotropic", "flat on the constant", "covariance"])
def test_rows_one_batch_after_the_other_are_rows_at_once(prior):
    params, _ = PRIORS[prior]
    make = lambda: BayesianLinearRegression(quadratic, noise_precision=BETA, prior_mean=1.0, **params)  # noqa: E731
    weights = RNG.integers(0, 3, size=25)
    whole, stream = make().fit(X, T, weights), make()
    for batch in np.array_split(np.arange(25), [3, 4, 12]):
        if weights[batch].any():
            stream = stream.partial_fit(X[batch], T[batch], weights[batch])
    close(stream.coef_, whole.coef_)
    close(stream.covariance_, whole.covariance_)
    assert stream.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    close(stream.summation_defect(Z), whole.summation_defect(Z))
    close(stream.equivalent_kernel_(Z, X), whole.equivalent_kernel_(Z, X))
    close(stream.predict_interval(Z), whole.predict_interval(Z))
    with pytest.raises(mc.InvalidInput, match="partial_fit"):
        stream.loo_predictions_  # noqa: B018
    with pytest.raises(mc.InvalidInput, match="partial_fit"):
        stream.predict_interval(Z, method="jackknife+")
    with pytest.raises(mc.InvalidInput, match="2 targets"):
        stream.partial_fit(X, T[:, 0])


@pytest.mark.parametrize("tune", [None, "evidence"])
def test_a_weight_is_a_repetition_in_the_evidence_too(tune):
    weights = np.random.default_rng(5).integers(0, 4, size=25)
    often = np.repeat(np.arange(25), weights)
    make = lambda: BayesianLinearRegression(quadratic, prior_precision=[0, 1, 1, 1, 1, 1], tune=tune)  # noqa: E731
    weighted, repeated = make().fit(X, T, weights), make().fit(X[often], T[often])
    close(weighted.coef_, repeated.coef_, 1e-7)
    close(weighted.covariance_, repeated.covariance_, 1e-7)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-9)


# -- the evidence ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"fit_intercept": True}, {"prior_covariance": random_covariance(6)}])
@pytest.mark.parametrize("targets", [T[:, 0], T])
def test_fixed_point_is_the_maximum_of_the_evidence(params, targets):
    model = BayesianLinearRegression(quadratic, tune="evidence", **params).fit(X, targets)
    assert model.status_ == f"evidence: converged after {model.n_iter_} updates"
    data = model._data()
    best = minimize(lambda v: -data.log_evidence(*np.exp(v)), [0.0, 0.0], method="Nelder-Mead",
                    options={"xatol": 1e-8, "fatol": 1e-12})  # fmt: skip
    assert model.log_evidence_ == pytest.approx(-best.fun, rel=1e-9)
    close([model.prior_scale_, model.noise_precision_], np.exp(best.x), 1e-4)
    for update in (data.fixed_point, data.expected):  # both rest there
        close(update(model.prior_scale_, model.noise_precision_), [model.prior_scale_, model.noise_precision_], 1e-6)


def test_an_update_that_would_lower_the_evidence_is_replaced(monkeypatch):
    data = BayesianLinearRegression(quadratic).fit(X, T)._data()
    monkeypatch.setattr(data, "fixed_point", lambda alpha, beta: (1e-9, 1e9))
    assert data.updated(1.0, 1.0) == data.expected(1.0, 1.0)
    assert data.log_evidence(*data.updated(1.0, 1.0)) > data.log_evidence(1.0, 1.0)


def test_every_update_raises_the_evidence():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Phi, t = rng.normal(size=(12, 8)), rng.normal(size=(12, 1))
        data = Conditioning(Belief(np.zeros((8, 1)), np.ones(8), np.zeros((8, 0))), Phi, t, None)
        start = np.exp(rng.normal(0, 4, size=2))
        for update in (data.updated, data.expected):
            alpha, beta = start
            values = [data.log_evidence(alpha, beta)]
            for _ in range(40):
                alpha, beta = update(alpha, beta)
                values.append(data.log_evidence(alpha, beta))
            assert (np.diff(values) > -1e-9).all()


def test_flat_directions_are_the_limit_of_wide_priors():
    # p(w) = 1 instead of √(α/2π): the evidence differs by that constant.
    flat = BayesianLinearRegression(quadratic, prior_precision=[0, 1, 1, 1, 1, 1], noise_precision=BETA).fit(X, T[:, 0])
    tiny = 1e-9
    wide = BayesianLinearRegression(quadratic, prior_precision=[tiny, 1, 1, 1, 1, 1], noise_precision=BETA).fit(
        X, T[:, 0]
    )
    assert flat.log_evidence_ == pytest.approx(wide.log_evidence_ - 0.5 * np.log(tiny / (2 * np.pi)), abs=1e-6)
    close(flat.predict(Z), wide.predict(Z), 1e-7)


def test_tuning_where_there_is_nothing_to_tune_by():
    exact = BayesianLinearRegression(tune="evidence").fit(X, X @ [1.0, 2.0])
    assert "fitted exactly" in exact.status_
    close(exact.coef_, [1.0, 2.0], 1e-7)
    assert (
        "not tuned, because all targets equal the prior's mean"
        in BayesianLinearRegression(tune="evidence").fit(X, np.zeros(25)).status_
    )
    noise = BayesianLinearRegression(tune="evidence").fit(X, np.random.default_rng(11).normal(size=25) * 0.1)
    assert np.isfinite(noise.predict(Z)).all()
    constant = BayesianLinearRegression(tune="evidence", fit_intercept=True).fit(X, np.ones(25))
    close(constant.predict(Z), np.ones(9), 1e-7)
    with pytest.warns(ConvergenceWarning, match="not converged after 1 updates"):
        BayesianLinearRegression(quadratic, tune="evidence", max_iter=1).fit(X, T)


# -- the equivalent kernel ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [None, quadratic, mc.Polynomial(2, c=1.0), PolynomialFeatures(2)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_mean_is_the_equivalent_kernel_on_the_targets(features, fit_intercept):
    model = BayesianLinearRegression(
        features, prior_precision=ALPHA, noise_precision=BETA, fit_intercept=fit_intercept
    ).fit(X, T)
    k = model.equivalent_kernel_
    close(k(Z, X) @ T, model.predict(Z))
    close(k(Z, X), model._smoother(Z))
    assert isinstance(k, mc.Kernel)
    assert k.proof().valid
    assert np.linalg.eigvalsh(k(X)).min() > -1e-12
    both = 2.0 * k + mc.Gaussian(1.0)  # it composes
    close(both(Z, X), 2 * k(Z, X) + mc.Gaussian(1.0)(Z, X))
    close(pickle.loads(pickle.dumps(k))(Z, X), k(Z, X), 0)


def test_the_equivalent_kernel_is_the_formula():
    model = BayesianLinearRegression(features=quadratic, prior_precision=1.0, noise_precision=25.0).fit(X, T[:, 0])
    close(model.equivalent_kernel_(Z, X), 25 * quadratic(Z) @ model.covariance_ @ quadratic(X).T)


def test_a_prior_mean_adds_its_own_term():
    S0, m0 = random_covariance(6), np.arange(6.0)
    model = BayesianLinearRegression(quadratic, prior_covariance=S0, prior_mean=m0, noise_precision=BETA).fit(
        X, T[:, 0]
    )
    gained = quadratic(Z) @ model.covariance_ @ np.linalg.solve(S0, m0)
    close(model.predict(Z), model.equivalent_kernel_(Z, X) @ T[:, 0] + gained)
    assert np.abs(gained).max() > 0.01


@pytest.mark.parametrize("weights", [None, np.arange(25.0)])
def test_the_equivalent_kernel_sums_to_one_iff_the_prior_is_flat_on_the_constant(weights):
    w = np.ones(25) if weights is None else weights
    S0, v = random_covariance(6), np.eye(6)[0]  # vᵀφ = 1
    proper = BayesianLinearRegression(quadratic, prior_covariance=S0, noise_precision=BETA).fit(X, T, weights)
    defect = quadratic(Z) @ proper.covariance_ @ np.linalg.solve(S0, v)
    close(proper.summation_defect(Z), defect, 1e-9)
    close(1 - proper.equivalent_kernel_(Z, X) @ w, defect, 1e-9)
    assert np.abs(defect).max() > 1e-3
    for params in ({"prior_precision": [0, 1, 2, 3, 4, 5]}, {"prior_covariance": S0, "fit_intercept": True}):
        flat = BayesianLinearRegression(quadratic, noise_precision=BETA, **params).fit(X, T, weights)
        assert np.abs(flat.summation_defect(Z)).max() < 1e-12
        close(flat.equivalent_kernel_(Z, X) @ w, np.ones(9), 1e-12)
    raw = BayesianLinearRegression(noise_precision=BETA).fit(X, T)  # no constant among the features
    assert np.abs(raw.summation_defect(Z)).max() > 0.1


# -- conventions and bad input -----------------------------------------------------------------------------------------


def test_intervals_cover_what_they_promise():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(200, 3)), rng.normal(size=(2000, 3))
    draw = lambda X: X @ [1.0, -2.0, 0.5] + rng.normal(size=len(X))  # noqa: E731
    model = BayesianLinearRegression(noise_precision=1.0).fit(A, draw(A))
    t = draw(B)
    for method in ("gaussian", "jackknife+"):
        low, high = model.predict_interval(B, 0.9, method=method).T
        assert 0.86 < np.mean((low <= t) & (t <= high)) < 0.94


def test_sparse_and_single_precision_and_pickles():
    dense = BayesianLinearRegression(fit_intercept=True).fit(X, T)
    close(
        BayesianLinearRegression(fit_intercept=True).fit(sp.csr_array(X), T).predict(sp.csr_array(Z)), dense.predict(Z)
    )
    narrow = BayesianLinearRegression(mc.Polynomial(2, c=1.0)).fit(X.astype(np.float32), T)
    for found in narrow.predict(Z.astype(np.float32), return_std=True, return_cov=True):
        assert found.dtype == np.float32
    again = pickle.loads(pickle.dumps(dense))
    close(again.predict(Z), dense.predict(Z), 0)
    close(again.loo_predictions_, dense.loo_predictions_, 1e-12)
    assert again.degrees_of_freedom_ == pytest.approx(dense.degrees_of_freedom_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise_precision": 0.0}, "`noise_precision` must be a number > 0"),
        ({"noise_precision": "high"}, "noise_precision"),
        ({"prior_precision": -1.0}, "≥ 0"),
        ({"prior_precision": [1.0, 2.0, 3.0]}, "shape"),
        ({"prior_precision": np.inf}, "finite"),
        ({"prior_mean": [1.0]}, "shape"),
        ({"prior_mean": "zero"}, "finite number"),
        ({"prior_covariance": np.eye(3)}, r"shape \(2, 2\)"),
        ({"prior_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "eigenvalue -1"),
        ({"prior_covariance": [[1.0, 2.0], [0.0, 1.0]]}, "asymmetric"),
        ({"tune": "loo"}, "'evidence'"),
        ({"tune": "evidence", "max_iter": 0}, "`max_iter` must be a whole number ≥ 1, got 0"),
        ({"tune": "evidence", "max_iter": "many"}, "`max_iter`"),
        ({"tune": "evidence", "tol": -1.0}, "`tol` must be a number > 0"),
        ({"noise_precision": 1e300, "prior_precision": 1e-300}, "finite square"),
        ({"noise_precision": 1e300, "prior_precision": 1e-280}, "precisions.*must not overflow"),
        ({"noise_precision": 1e-310}, "precisions.*must not overflow"),
        ({"noise_precision": 1e300, "tune": "evidence", "prior_precision": 1e-280}, "precisions.*must not overflow"),
        ({"features": mc.Gaussian(1.0)}, "finite feature map"),
        ({"features": 3}, "`features` must be"),
        ({"budget": 100}, "budget"),
    ],
)
def test_parameters_that_cannot_be_used(params, message):
    with pytest.raises(mc.InvalidInput, match=message):
        BayesianLinearRegression(**params).fit(X, T)


@pytest.mark.parametrize("noise", [1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("prior", [0.0, 1e-100, 1.0, 1e100])
def test_extreme_precisions_are_right_or_refused(noise, prior):
    model = BayesianLinearRegression(prior_precision=prior, noise_precision=noise)
    try:
        mean, std = model.fit(X, T).predict(Z, return_std=True)
    except mc.InvalidInput as error:
        assert "precision" in str(error)  # noqa: PT017
        assert noise == 1e300
        return
    ratio = prior / noise
    wanted = np.zeros_like(mean) if ratio > 1e90 else Z @ np.linalg.solve(X.T @ X + ratio * np.eye(2), X.T @ T)
    close(mean, wanted, 1e-9)
    S = np.linalg.inv(X.T @ X + ratio * np.eye(2)) if ratio < 1e90 else np.eye(2) / ratio
    wanted = np.sqrt(1 + np.einsum("ij,jk,ik->i", Z, S, Z)) / np.sqrt(noise)
    assert np.abs(std[:, 0] / wanted - 1).max() < 1e-9
    assert np.isfinite(model.log_evidence_)


@pytest.mark.parametrize("size", [1e160, 1e-160])
def test_features_whose_squares_are_no_numbers_are_refused(size):
    for params in ({}, {"fit_intercept": True}, {"tune": "evidence"}, {"prior_precision": 0.0}):
        with pytest.raises(mc.InvalidInput, match="finite square"):
            BayesianLinearRegression(**params).fit(X * size, T)
    model = BayesianLinearRegression().fit(X, T)
    before = model.predict(Z)
    with pytest.raises(mc.InvalidInput, match="finite square"):
        model.partial_fit(X * size, T)
    close(model.predict(Z), before, 0)


def test_a_row_that_alone_determines_a_flat_direction_cannot_be_left_out():
    alone = np.column_stack([X, np.eye(25)[:, 3]])
    model = BayesianLinearRegression(prior_precision=[1.0, 1.0, 0.0]).fit(alone, T)
    for ask in (lambda: model.loo_predictions_, lambda: model.predict_interval(alone, method="jackknife+")):
        with pytest.raises(mc.InvalidInput, match=r"Leave-one-out needs.*row 3"):
            ask()


def test_data_that_cannot_be_used():
    with pytest.raises(mc.InvalidInput, match="2 of them, 1 independent on 1 rows"):
        BayesianLinearRegression(prior_precision=0.0).fit(X[:1], T[:1])
    with pytest.raises(mc.InvalidInput, match="NaN"):
        BayesianLinearRegression().fit(X, np.full(25, np.nan))
    model = BayesianLinearRegression().fit(X, T)
    with pytest.raises(mc.InvalidInput, match="coverage"):
        model.predict_interval(Z, 1.0)
    with pytest.raises(mc.InvalidInput, match="method"):
        model.predict_interval(Z, method="bootstrap")
    for bad in (-1, "seed"):
        with pytest.raises(mc.InvalidInput, match="`random_state` must be"):
            model.sample_y(Z, random_state=bad)
    with pytest.raises(mc.InvalidInput, match="`n_samples` must be"):
        model.sample_functions(Z, -1)
    with pytest.raises(ValueError, match="features"):
        model.predict(Z[:, :1])
