"""Gaussian process regression: the posterior by brute force, identities with ridge regression, and hard input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal, norm
from sklearn.model_selection import cross_val_score

import mercer as mc
from mercer import memory
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.rkhs.posterior import Posterior, square_root

KERNELS = {
    "gaussian": 2.0 * mc.Gaussian([0.8, 1.5]),
    "sum": 1.5 * mc.Matern(1.0, nu=2.5) + mc.Linear(),
    "finite rank": mc.Polynomial(2, c=1.0),
}


def data(n=30, t=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return X, y if t is None else np.column_stack([y * (j + 1) + j * X[:, 0] for j in range(t)])


def brute(kernel, X, y, Z, noise):
    """Mean and covariance at Z from the inverse; `noise` is a variance, or one per row."""
    A = np.linalg.inv(kernel(X) + np.diag(np.broadcast_to(noise, len(X))))
    Kz = kernel(Z, X)
    return Kz @ A @ y, kernel(Z) - Kz @ A @ Kz.T


# -- the posterior -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("t", [None, 2])
def test_mean_and_covariance_equal_brute_force(name, t):
    (X, y), Z = data(t=t), data(12, seed=1)[0]
    mean, cov = brute(KERNELS[name], X, y, Z, 0.05)
    model = GaussianProcessRegressor(KERNELS[name], alpha=0.05).fit(X, y)
    found, std = model.predict(Z, return_std=True)
    _, full = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(found, mean, atol=1e-9)
    if t is None:
        np.testing.assert_allclose(full, cov, atol=1e-10)
        assert np.array_equal(std, np.sqrt(np.diagonal(full)))
    else:
        assert std.shape == (12, 2)
        assert full.shape == (12, 12, 2)
        for j in range(t):
            np.testing.assert_allclose(full[..., j], cov, atol=1e-10)
            assert np.array_equal(std[:, j], np.sqrt(np.diagonal(full[..., j])))


def test_row_blocks_change_nothing_but_rounding(monkeypatch):
    (X, y), Z = data(), data(50, seed=1)[0]
    model = GaussianProcessRegressor(KERNELS["gaussian"], alpha=0.05).fit(X, y)
    whole = model.predict(Z, return_std=True)[1]
    monkeypatch.setattr(memory, "HELD", 7 * len(X))
    std, cov = model.predict(Z, return_std=True)[1], model.predict(Z, return_cov=True)[1]
    np.testing.assert_allclose(std, whole, rtol=1e-12)
    assert np.array_equal(std, np.sqrt(np.diagonal(cov)))


def test_the_variance_is_never_negative():
    X, y = data(10)
    A = mc.Gaussian(1.0)(X) + 1e-12 * np.eye(10)
    f = mc.Expansion(mc.Gaussian(1.0), X, np.linalg.solve(A, y))
    rounded = Posterior(f, (1 - 1e-6) * np.linalg.cholesky(A))
    half = np.linalg.solve(np.tril(rounded.L), A)
    assert (1 - (half**2).sum(axis=0)).max() < -1e-7  # what the formula gives with a factor that is a little too small
    assert np.array_equal(rounded.variance(X), np.zeros(10))
    assert np.array_equal(np.diagonal(rounded.covariance(X)), np.zeros(10))


def test_a_mean_alone_does_not_touch_the_factor():
    X, y = data()
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    model._cache.clear()
    model._factorise = None  # calling it would fail
    model.predict(X)
    model.predict_gradient(X)
    with pytest.raises(TypeError):
        model.predict(X, return_std=True)


def test_the_mean_is_kernel_ridge_and_so_is_leave_one_out():
    X, y = data(t=2)
    w = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    w[4] = 0.0
    gp = GaussianProcessRegressor(KERNELS["sum"], alpha=0.3).fit(X, y, w)
    ridge = KernelRidge(KERNELS["sum"], alpha=0.3).fit(X, y, w)
    Z = data(7, seed=1)[0]
    np.testing.assert_allclose(gp.predict(Z), ridge.predict(Z), atol=1e-9)
    np.testing.assert_allclose(gp.predict_gradient(Z), ridge.predict_gradient(Z), atol=1e-9)
    np.testing.assert_allclose(gp.loo_predictions_, ridge.loo_predictions_, atol=1e-9)
    jackknife = gp.predict_interval(Z, method="jackknife+")
    np.testing.assert_allclose(jackknife, ridge.predict_interval(Z), atol=1e-9)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_brute_force(normalize_y, weighted):
    X, y = data(14, t=2)
    y += 5.0
    w = np.random.default_rng(3).uniform(0.5, 2.0, 14) if weighted else None
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.2, normalize_y=normalize_y)
    loo = model.fit(X, y, w).loo_predictions_
    smooth = model._smoother(X) @ y
    np.testing.assert_allclose(smooth, model.predict(X), atol=1e-10)
    for i in range(14):
        rest = np.arange(14) != i
        alone = model.fit(X[rest], y[rest], None if w is None else w[rest]).predict(X[[i]])
        np.testing.assert_allclose(loo[[i]], alone, atol=1e-9)


def test_weights_divide_the_noise():
    (X, y), Z = data(), data(9, seed=1)[0]
    w = np.random.default_rng(1).uniform(0.1, 5.0, len(X))
    w[[2, 5]] = 0.0
    kept = w > 0
    mean, cov = brute(mc.Gaussian(1.0), X[kept], y[kept], Z, 0.2 / w[kept])
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.2).fit(X, y, w)
    found, full = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(found, mean, atol=1e-10)
    np.testing.assert_allclose(full, cov, atol=1e-10)
    A = mc.Gaussian(1.0)(X[kept]) + np.diag(0.2 / w[kept])
    expected = multivariate_normal(np.zeros(kept.sum()), A).logpdf(y[kept])
    assert np.isclose(model.log_evidence_, expected)
    assert np.isclose(model.log_evidence(gradient=False), expected)


# -- evidence and tuning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_evidence_is_the_density_and_its_gradient_the_difference(name):
    X, Y = data(25, t=2)
    model = GaussianProcessRegressor(KERNELS[name], alpha=0.07).fit(X, Y)
    A = KERNELS[name](X) + 0.07 * np.eye(25)
    expected = sum(multivariate_normal(np.zeros(25), A).logpdf(y) for y in Y.T)
    assert np.isclose(model.log_evidence_, expected)
    value, slopes = model.log_evidence()
    assert np.isclose(value, expected)
    theta, h = model.kernel_.theta, 1e-5
    assert len(slopes) == len(theta) + 1
    for p in range(len(theta)):
        moved = [model.log_evidence(theta + s * h * np.eye(len(theta))[p], gradient=False) for s in (1, -1)]
        assert np.isclose(slopes[p], (moved[0] - moved[1]) / (2 * h), rtol=1e-5, atol=1e-5)
    moved = [model.log_evidence(alpha=0.07 * np.exp(s * h), gradient=False) for s in (1, -1)]
    assert np.isclose(slopes[-1], (moved[0] - moved[1]) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.thorough
def test_tuning_finds_the_noise_and_raises_the_evidence():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(150, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=150)
    kernel = 1.0 * mc.Gaussian([3.0, 3.0])
    plain = GaussianProcessRegressor(kernel, alpha=1.0).fit(X, y)
    tuned = GaussianProcessRegressor(kernel, alpha=1.0, tune="evidence").fit(X, y)
    assert tuned.log_evidence_ > plain.log_evidence_ + 50
    assert np.isclose(tuned.log_evidence_, tuned.tuning_.value, rtol=1e-6)
    assert 0.03 < tuned.alpha_ < 0.05
    sigma = tuned.kernel_.kernel.sigma
    assert sigma[1] > 5 * sigma[0]  # the second column says nothing
    assert np.abs(tuned.log_evidence()[1][[0, 1, 3]]).max() < 0.5
    held = GaussianProcessRegressor(kernel, alpha=1.0, tune="evidence", hold=("alpha", "scale")).fit(X, y)
    assert (held.alpha_, held.kernel_.scale) == (1.0, 1.0)
    loo = GaussianProcessRegressor(kernel, alpha=1.0, tune="loo").fit(X, y)
    assert loo.loo_score_ > plain.loo_score_
    assert tuned.kernel == kernel  # parameters are left as given


# -- intervals, samples ------------------------------------------------------------------------------------------------


def test_intervals_are_the_quantiles_of_the_predictive_distribution():
    (X, y), Z = data(t=2), data(6, seed=1)[0]
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.3).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    wide, narrow = model.predict_interval(Z, 0.8), model.predict_interval(Z, 0.8, noise=False)
    assert wide.shape == (6, 2, 2)
    np.testing.assert_allclose(wide, np.stack(norm(mean, np.sqrt(std**2 + 0.3)).interval(0.8), axis=-1))
    np.testing.assert_allclose(narrow, np.stack(norm(mean, std).interval(0.8), axis=-1))
    single = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.3).fit(X, y[:, 0])
    np.testing.assert_allclose(single.predict_interval(Z, 0.8), wide[:, 0])
    with pytest.raises(mc.InvalidInput, match="coverage"):
        model.predict_interval(Z, 1.0)
    with pytest.raises(mc.InvalidInput, match="jackknife"):
        model.predict_interval(Z, method="bootstrap")
    with pytest.raises(mc.InvalidInput, match="jackknife"):
        model.predict_interval(Z, method="jackknife+", noise=False)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_samples_have_the_mean_and_covariance_of_the_posterior(normalize_y):
    (X, y), Z = data(t=2), data(5, seed=1)[0]
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.3, normalize_y=normalize_y).fit(X, y)
    mean, cov = model.predict(Z, return_cov=True)
    draws = model.sample_y(Z, 40_000, random_state=1)
    assert draws.shape == (5, 2, 40_000)
    size = np.sqrt(cov.max())
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.02 * size)
    for j in range(2):
        np.testing.assert_allclose(np.cov(draws[:, j]), cov[..., j], atol=0.03 * size**2)
    assert abs(np.corrcoef(draws[0])[0, 1]) < 0.02  # targets are independent
    assert np.array_equal(draws, model.sample_y(Z, 40_000, random_state=1))
    single = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.3).fit(X, y[:, 0])
    assert single.sample_y(Z, 3).shape == (5, 3)
    with pytest.raises(mc.InvalidInput, match="samples"):
        single.sample_y(Z, 0)


def test_samples_at_repeated_points_agree():
    X, y = data()
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.3).fit(X, y)
    draws = model.sample_y(np.repeat(X[:3], 40, axis=0), 5)
    np.testing.assert_allclose(draws[:40], np.broadcast_to(draws[0], (40, 5)), atol=1e-6)


def test_square_root_of_a_singular_matrix():
    A = np.random.default_rng(0).normal(size=(20, 3))
    R = square_root(A @ A.T)
    assert R.shape == (20, 3)
    np.testing.assert_allclose(R @ R.T, A @ A.T, atol=1e-12)
    assert square_root(np.zeros((4, 4))).shape == (4, 0)


def test_posterior_wants_a_matching_factor_and_ignores_its_upper_triangle():
    X, y = data(5)
    A = mc.Gaussian(1.0)(X) + 0.1 * np.eye(5)
    f = mc.Expansion(mc.Gaussian(1.0), X, np.linalg.solve(A, y))
    L = np.linalg.cholesky(A)
    dirty = L + np.triu(np.full((5, 5), np.nan), 1)
    np.testing.assert_allclose(Posterior(f, dirty).variance(X), Posterior(f, L).variance(X))
    with pytest.raises(mc.InvalidInput, match="5 points"):
        Posterior(f, L[:3, :3])


# -- more rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize_y", [False, True])
def test_repeated_partial_fits_are_one_fit(weighted, normalize_y):
    (X, Y), Z = data(60, t=2), data(8, seed=1)[0]
    w = np.ones(60)
    if weighted:
        w[30:] = np.random.default_rng(0).uniform(0.2, 3.0, 30)
        w[[40, 55]] = 0.0
    whole = GaussianProcessRegressor(KERNELS["sum"], alpha=0.05, normalize_y=normalize_y).fit(X, Y, w)
    stream = GaussianProcessRegressor(KERNELS["sum"], alpha=0.05, normalize_y=normalize_y)
    for part in np.split(np.arange(60), [1, 20, 21, 33, 50]):
        stream.partial_fit(X[part], Y[part], w[part])
    for ours, theirs in zip(stream.predict(Z, return_cov=True), whole.predict(Z, return_cov=True)):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    np.testing.assert_allclose(stream.dual_coef_, whole.dual_coef_, atol=1e-8)
    np.testing.assert_allclose(stream.loo_predictions_, whole.loo_predictions_, atol=1e-8)
    assert np.isclose(stream.log_evidence_, whole.log_evidence_, rtol=1e-10)


def test_partial_fit_keeps_the_kernel_and_checks_what_comes():
    X, y = data(20)
    model = GaussianProcessRegressor(alpha=0.1).partial_fit(X[:10], y[:10])
    kernel = model.kernel_
    assert model.partial_fit(X[10:], y[10:]).kernel_ is kernel
    assert len(model.dual_coef_) == 20
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1], y)
    with pytest.raises(mc.InvalidInput, match="first call"):
        model.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(mc.InvalidInput, match="NaN"):
        model.partial_fit(X, np.full(20, np.nan))
    assert len(model.dual_coef_) == 20  # what was refused left no trace
    assert model.fit(X[:5], y[:5]).dual_coef_.shape == (5,)
    pairwise = GaussianProcessRegressor(mc.Precomputed(), alpha=0.1).fit(kernel(X), y)
    with pytest.raises(mc.InvalidInput, match="Precomputed"):
        pairwise.partial_fit(kernel(X), y)


def test_partial_fit_of_repeated_rows_without_noise_falls_back_to_jitter():
    X, y = data(10)
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0).partial_fit(X, y)
    assert model.jitter_ == 0.0
    model.partial_fit(X[:3], y[:3])
    assert 0 < model.jitter_ < 1e-10
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


# -- what X may be -----------------------------------------------------------------------------------------------------


def test_float32_is_kept():
    X, y = data()
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X.astype(np.float32), y)
    exact = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    Z = X[:7].astype(np.float32)
    mean, std = model.predict(Z, return_std=True)
    _, cov = model.predict(Z, return_cov=True)
    assert {a.dtype for a in (mean, std, cov, model.sample_y(Z))} == {np.dtype(np.float32)}
    assert np.array_equal(std, np.sqrt(np.diagonal(cov)))
    np.testing.assert_allclose(mean, exact.predict(X[:7]), atol=1e-5)
    np.testing.assert_allclose(std, exact.predict(X[:7], return_std=True)[1], atol=1e-5)


def test_sparse_matrices_frames_and_precomputed_matrices_agree_with_arrays():
    X, y = data()
    kernel, Z = mc.Gaussian(1.0), X[:6] + 0.1
    expected = GaussianProcessRegressor(kernel, alpha=0.1).fit(X, y).predict(Z, return_std=True)
    joint = kernel(np.vstack([X, Z]))
    cases = {
        "sparse": (kernel, sp.csr_array(X), sp.csr_array(Z)),
        "pandas": (kernel, pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Z, columns=["a", "b"])),
        "polars": (kernel, pl.DataFrame(X, schema=["a", "b"]), pl.DataFrame(Z, schema=["a", "b"])),
        "indices": (mc.Precomputed(joint), np.arange(30), np.arange(30, 36)),
    }
    for name, (k, train, test) in cases.items():
        found = GaussianProcessRegressor(k, alpha=0.1).fit(train, y).predict(test, return_std=True)
        for ours, theirs in zip(found, expected):
            np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=name)
    pieces = GaussianProcessRegressor(mc.Precomputed(joint), alpha=0.1).partial_fit(np.arange(12), y[:12])
    np.testing.assert_allclose(pieces.partial_fit(np.arange(12, 30), y[12:]).predict(np.arange(30, 36)), expected[0])
    bare = GaussianProcessRegressor(mc.Precomputed(), alpha=0.1).fit(joint[:30, :30], y)
    np.testing.assert_allclose(bare.predict(joint[30:, :30]), expected[0], atol=1e-9)
    at_home = GaussianProcessRegressor(kernel, alpha=0.1).fit(X, y).predict(X, return_std=True)[1]
    np.testing.assert_allclose(bare.predict(joint[:30, :30], return_std=True)[1], at_home, atol=1e-9)
    with pytest.raises(mc.InvalidInput, match=r"k\(z, z\)"):
        bare.predict(joint[30:, :30], return_std=True)
    assert cross_val_score(GaussianProcessRegressor(mc.Precomputed(), alpha=0.1), kernel(X), y, cv=3).min() > 0.3
    frame = GaussianProcessRegressor(kernel, alpha=0.1).fit(cases["pandas"][1], y)
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(mc.InvalidInput, match="DataFrame"):
        frame.partial_fit(X, y)


def test_sets_have_a_posterior_too():
    sets = [{1, 2}, {2, 3}, {3}, {1, 3, 4}, {4}]
    model = GaussianProcessRegressor(mc.Intersection(), alpha=0.1).fit(sets[:4], [2.0, 2.0, 1.0, 3.0])
    mean, std = model.predict(sets, return_std=True)
    K = mc.Intersection()(sets)
    A = np.linalg.inv(K[:4, :4] + 0.1 * np.eye(4))
    np.testing.assert_allclose(mean, K[:, :4] @ A @ [2.0, 2.0, 1.0, 3.0])
    np.testing.assert_allclose(std**2, np.diagonal(K - K[:, :4] @ A @ K[:4]))
    np.testing.assert_allclose(model.partial_fit(sets[4:], [1.0]).predict(sets[4:]), [1.0], atol=0.2)


def test_normalised_targets_are_undone_everywhere():
    (X, Y), Z = data(t=2), data(6, seed=1)[0]
    Y = 1000.0 + np.array([10.0, 0.1]) * Y
    kernel, centre, unit = mc.Gaussian(1.0), Y.mean(axis=0), Y.std(axis=0)
    model = GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=True).fit(X, Y)
    plain = GaussianProcessRegressor(kernel, alpha=0.1).fit(X, (Y - centre) / unit)
    mean, cov = plain.predict(Z, return_cov=True)
    np.testing.assert_allclose(model.predict(Z), centre + unit * mean)
    np.testing.assert_allclose(model.predict(Z, return_cov=True)[1], unit**2 * cov)
    np.testing.assert_allclose(model.predict(Z, return_std=True)[1], unit * plain.predict(Z, return_std=True)[1])
    ends = centre[:, None] + unit[:, None] * plain.predict_interval(Z)
    np.testing.assert_allclose(model.predict_interval(Z), ends)
    np.testing.assert_allclose(model.predict_gradient(Z), unit[:, None] * plain.predict_gradient(Z))
    draws = centre[:, None] + unit[:, None] * plain.sample_y(Z, 3, 5)
    np.testing.assert_allclose(model.sample_y(Z, 3, 5), draws)
    assert np.isclose(model.log_evidence_, plain.log_evidence_)
    np.testing.assert_allclose(model.function_(Z), model.predict(Z))


def test_a_pickled_model_is_small_and_the_same():
    X, y = data(200)
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    text = pickle.dumps(model)
    assert len(text) < 8 * 200**2 / 4
    again = pickle.loads(text)
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1], rtol=1e-10)
    assert "factor" in model._cache


# -- hard input --------------------------------------------------------------------------------------------------------


def test_alpha_zero_interpolates():
    X, y = data(12)
    model = GaussianProcessRegressor(mc.Matern(1.0), alpha=0.0).fit(X, y)
    assert model.jitter_ == 0.0
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-9)
    np.testing.assert_allclose(std, 0.0, atol=1e-6)
    assert np.isclose(model.log_evidence(gradient=False), model.log_evidence_)


def test_a_singular_gram_without_noise_says_what_was_added():
    X = np.linspace(0, 1, 50)[:, None]
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0).fit(X, np.sin(3 * X[:, 0]))
    assert 0 < model.jitter_ < 1e-10
    assert f"{model.jitter_:.2g} was added" in model.status_
    np.testing.assert_allclose(model.predict(X), np.sin(3 * X[:, 0]), atol=1e-5)


def test_contradicting_duplicates_need_noise():
    X, y = np.array([[0.0], [1.0], [2.0], [1.0]]), np.array([0.0, 1.0, 2.0, 3.0])
    with pytest.raises(mc.InvalidInput, match=r"alpha.*> 0.*row (1|3) .*(1|3).*Raise alpha"):
        GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0).fit(X, y)
    y[3] = y[1]
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    noisy = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, [0.0, 1.0, 2.0, 3.0])
    mean, _ = brute(mc.Gaussian(1.0), X, np.array([0.0, 1.0, 2.0, 3.0]), X, 0.1)
    np.testing.assert_allclose(noisy.predict(X), mean)
    with pytest.raises(mc.InvalidInput, match="no function interpolates all targets"):
        GaussianProcessRegressor(mc.Linear(), alpha=0.0).fit([[1.0], [2.0], [3.0]], [1.0, 0.0, 1.0])


@pytest.mark.parametrize("alpha", [-1.0, np.nan, "much", [0.1, 0.2], True])
def test_a_bad_alpha_is_refused(alpha):
    with pytest.raises(mc.InvalidInput, match="alpha"):
        GaussianProcessRegressor(mc.Gaussian(1.0), alpha=alpha).fit(*data())


def test_bad_data_is_refused():
    X, y = data()
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1)
    with pytest.raises(mc.InvalidInput, match="NaN"):
        model.fit(X, np.where(np.arange(30) == 3, np.nan, y))
    with pytest.raises(mc.InvalidInput, match="NaN"):
        model.fit(np.where(np.arange(60).reshape(30, 2) == 7, np.nan, X), y)
    with pytest.raises(mc.InvalidInput, match="30 points"):
        model.fit(X, y[:-1])
    with pytest.raises(mc.InvalidInput, match="≥ 0"):
        model.fit(X, y, -np.ones(30))
    with pytest.raises(mc.InvalidInput, match="both"):
        model.fit(X, y).predict(X, return_std=True, return_cov=True)
    with pytest.raises(mc.InvalidInput, match="eigenvalue -1"):
        GaussianProcessRegressor(mc.Precomputed([[0.0, 1.0], [1.0, 0.0]]), alpha=0.1).fit([0, 1], [0.0, 1.0])
    with pytest.raises(mc.InvalidInput, match="memory budget"):
        GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1, budget=1000).fit(X, y)
    with pytest.raises(mc.InvalidInput, match="by"):
        GaussianProcessRegressor(mc.Gaussian(1.0), tune="cv").fit(X, y)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_one_sample_and_constant_targets(normalize_y):
    one = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1, normalize_y=normalize_y).fit([[1.0]], [3.0])
    assert np.isclose(one.predict([[1.0]])[0], 3.0 if normalize_y else 3.0 / 1.1)
    assert one.loo_predictions_.shape == (1,)
    X = data()[0]
    for tune in (None, "evidence"):
        model = GaussianProcessRegressor(1.0 * mc.Gaussian(1.0), alpha=0.1, normalize_y=normalize_y, tune=tune)
        mean, std = model.fit(X, np.full(30, 3.0)).predict(X, return_std=True)
        assert np.isfinite(std).all()
        if normalize_y:
            np.testing.assert_allclose(mean, 3.0, atol=1e-9)


def test_wildly_scaled_columns_are_tuned_to_their_own_width():
    X, y = data(80)
    wild = X * [1e-6, 1e6]
    tuned = GaussianProcessRegressor(1.0 * mc.Gaussian([1.0, 1.0]), alpha=0.1, tune="evidence").fit(wild, y)
    tame = GaussianProcessRegressor(1.0 * mc.Gaussian([1.0, 1.0]), alpha=0.1, tune="evidence").fit(X, y)
    assert tuned.log_evidence_ > tame.log_evidence_ - 1.0
    np.testing.assert_allclose(tuned.predict(wild), tame.predict(X), atol=0.05)


# -- no silent noise, no trace of what was refused ---------------------------------------------------------------------


@pytest.mark.parametrize("normalize_y", [False, True])
def test_a_refused_partial_fit_leaves_the_model_as_it_was(normalize_y):
    X, y = data(12)
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0, normalize_y=normalize_y).fit(X, y)
    before = *model.predict(X, return_cov=True), model.loo_predictions_, model.log_evidence_, model.jitter_
    with pytest.raises(mc.InvalidInput, match="no function interpolates all targets"):
        model.partial_fit(X[:1], y[:1] + 1)
    after = *model.predict(X, return_cov=True), model.loo_predictions_, model.log_evidence_, model.jitter_
    for ours, theirs in zip(after, before):
        assert np.array_equal(ours, theirs)
    Z, t = X[:4] + 3.0, y[:4]
    whole = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0, normalize_y=normalize_y)
    whole.fit(np.vstack([X, Z]), np.r_[y, t])
    np.testing.assert_allclose(model.partial_fit(Z, t).predict(Z + 0.1), whole.predict(Z + 0.1), atol=1e-6)


def test_noise_below_rounding_is_refused_and_not_replaced():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    with pytest.raises(mc.InvalidInput, match=r"rounding.*got alpha = 1 .*Raise alpha.*columns"):
        GaussianProcessRegressor(mc.Linear(), alpha=1.0).fit(X * [1e8, 1, 1], y)
    model = GaussianProcessRegressor(mc.Linear(), alpha=1.0).fit(X, y)
    with pytest.raises(mc.InvalidInput, match="rounding"):
        model.partial_fit(X * [1e8, 1, 1], y)
    assert model.jitter_ == 0.0
    large = GaussianProcessRegressor(mc.Linear(), alpha=1e5).fit(X * [1e8, 1, 1], y)
    assert large.jitter_ <= 1e5
    with pytest.raises(mc.InvalidInput, match="rounding"):
        GaussianProcessRegressor(mc.Gaussian(1.0), alpha=1e-18).fit(np.r_[X, X], np.r_[y, y + 1])


def test_a_matrix_that_turns_out_not_to_be_one_is_named():
    K = np.eye(3)
    K[0, 2] = K[2, 0] = 5.0
    model = GaussianProcessRegressor(mc.Precomputed(K), alpha=0.1).fit([0, 1], [0.0, 1.0])
    with pytest.raises(mc.InvalidInput, match="eigenvalue -4"):
        model.partial_fit([2], [1.0])
    assert len(model.dual_coef_) == 2


def test_targets_that_are_constant_to_rounding_have_no_unit():
    X = data()[0]
    y = 0.1 * (1 + np.where(np.arange(30) % 2, np.finfo(float).eps, 0.0))
    Y = np.column_stack([y, np.sin(X[:, 0])])
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1, normalize_y=True).fit(X, Y)
    assert not model.dual_coef_[:, 0].any()
    assert model.dual_coef_[:, 1].any()


def test_samples_want_a_usable_seed():
    X, y = data()
    model = GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    for bad in (-1, "a", 0.5):
        with pytest.raises(mc.InvalidInput, match="`random_state` must be"):
            model.sample_y(X, random_state=bad)
    for good in (None, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)):
        assert model.sample_y(X, 2, random_state=good).shape == (30, 2)
    assert np.array_equal(model.sample_y(X, random_state=4), model.sample_y(X, random_state=np.int64(4)))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_grown_factor_is_whole(weighted, tmp_path):
    """Its products are those of the grown system, also from a file: nothing of the old length is left behind."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    w = rng.uniform(0.5, 2.0, 30) if weighted else np.ones(30)
    model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1).fit(X[:10], y[:10], w[:10])
    for rows in (slice(10, 18), slice(18, 30)):
        model.partial_fit(X[rows], y[rows], w[rows])
    roots = np.sqrt(w)
    A = roots[:, None] * mc.Gaussian(1.0)(X) * roots + 0.1 * np.eye(30)
    model.save(tmp_path / "grown.mercer")
    for fitted in (model, mc.load(tmp_path / "grown.mercer")):
        factor = fitted._factor
        assert factor.multiply(np.eye(30)) == pytest.approx(A, abs=1e-12)
        c, _, left = factor.refined(y[:, None], 1e-12)
        assert abs(left).max() < 1e-11
        assert c[:, 0] == pytest.approx(fitted.dual_coef_, rel=1e-8)
