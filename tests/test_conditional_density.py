"""Conditional densities: identities of lecture 004, numerical integration of the joint density, and finite answers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.density.conditional_density import ConditionalDensity
from mercer.models.density.parzen import ParzenDensity
from mercer.tuning.bandwidth import isj, scott, scott_covariance, silverman
from mercer.tuning.parzen_likelihood import loo

COVARIANCE = np.array([[0.10, 0.02, 0.05], [0.02, 0.20, -0.04], [0.05, -0.04, 0.08]])


def sine(n=120, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, d))
    return X, np.sin(2 * np.pi * X[:, 0]) + 0.2 * rng.normal(size=n)


def naive_weights(kernel, X, w, z):
    values = np.array([float(kernel(z[None], x[None])[0, 0]) for x in X]) * w
    return values / values.sum()


# --- the mean and the bands -------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.1), mc.Laplacian(0.2), mc.Epanechnikov(0.5), mc.Tricube([0.4, 0.9])])
def test_the_mean_is_nadaraya_watsons(kernel):
    X, t = sine(d=2)
    w = np.random.default_rng(1).uniform(0.5, 2, len(X))
    model = ConditionalDensity(kernel, target_bandwidth=0.3).fit(X, t, sample_weight=w)
    Z = np.random.default_rng(2).uniform(0.2, 0.8, (8, 2))
    W = np.array([naive_weights(kernel, X, w, z) for z in Z])
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, W @ t, rtol=1e-7)
    np.testing.assert_allclose(model.predict(Z), mean, rtol=1e-7)
    np.testing.assert_allclose(std**2, W @ t**2 - (W @ t) ** 2 + 0.3**2, rtol=1e-6)
    np.testing.assert_allclose(model.bands(Z), np.stack([mean - 2 * std, mean + 2 * std], axis=1))
    np.testing.assert_allclose(model.effective_sample_size(Z), 1 / (W**2 / w).sum(axis=1), rtol=1e-6)


def test_the_mean_is_that_of_the_nadaraya_watson_model():
    X, t = sine(d=2)
    peer = mc.NadarayaWatsonRegressor(mc.Gaussian(0.15)).fit(X, t)
    Z = np.vstack([X[:20], [[40.0, -3.0]]])
    ours = ConditionalDensity(mc.Gaussian(0.15), target_bandwidth=1.0).fit(X, t).predict(Z)
    np.testing.assert_allclose(ours, peer.predict(Z), rtol=1e-7)


def joint_on_a_line(X, t, C, x, grid):
    """The joint Parzen density of (x, t) at one x along a grid of t, by SciPy's normal densities."""
    total = np.zeros(len(grid))
    points = np.column_stack([np.tile(x, (len(grid), 1)), grid])
    for xn, tn in zip(X, t):
        total += scipy.stats.multivariate_normal([*xn, tn], C).pdf(points)
    return total / len(X)


def test_a_full_covariance_against_numerical_integration():
    X, t = sine(40, d=2)
    X = X + np.array([5.0, -3.0])
    model = ConditionalDensity(covariance=COVARIANCE).fit(X, t)
    slope = COVARIANCE[2:, :2] @ np.linalg.inv(COVARIANCE[:2, :2])
    grid = np.linspace(-5, 5, 2001)
    for x in X[:3] + np.array([0.05, 0.1]):
        joint = joint_on_a_line(X, t, COVARIANCE, x, grid)
        p = joint / np.trapezoid(joint, grid)
        mean = np.trapezoid(grid * p, grid)
        std = np.sqrt(np.trapezoid((grid - mean) ** 2 * p, grid))
        got = model.predict(x[None], return_std=True)
        assert got[0][0] == pytest.approx(mean, rel=1e-7)
        assert got[1][0] == pytest.approx(std, rel=1e-7)
        W = np.array([scipy.stats.multivariate_normal(xn, COVARIANCE[:2, :2]).pdf(x) for xn in X])
        formula = (W / W.sum()) @ (t + ((x - X) @ slope.T)[:, 0])
        assert got[0][0] == pytest.approx(formula, rel=1e-8)
        at = np.array([-1.0, 0.1, 0.7])
        np.testing.assert_allclose(model.pdf(np.tile(x, (3, 1)), at), np.interp(at, grid, p), rtol=1e-4)
        below = np.trapezoid(np.where(grid <= 0.1, p, 0.0), grid)
        assert model.cdf(x[None], 0.1)[0] == pytest.approx(below, abs=2e-3)
    assert np.abs(model.slope_ - slope).max() < 1e-12


def test_without_correlation_a_covariance_is_a_product():
    X, t = sine(d=2)
    a = ConditionalDensity(covariance=np.diag([0.01, 0.04, 0.09])).fit(X, t)
    b = ConditionalDensity(bandwidth=[0.1, 0.2], target_bandwidth=0.3).fit(X, t)
    Z, s = X[:9] + 0.01, t[:9] + 0.1
    for got, expected in zip(a.predict(Z, return_std=True), b.predict(Z, return_std=True)):
        np.testing.assert_allclose(got, expected, rtol=1e-8)
    np.testing.assert_allclose(a.score_samples(Z, s), b.score_samples(Z, s), rtol=1e-7)
    np.testing.assert_allclose(a.quantile(Z, 0.3), b.quantile(Z, 0.3), rtol=1e-8)


# --- the distribution -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"bandwidth": 0.1, "target_bandwidth": 0.2},
        {"kernel": mc.Epanechnikov, "bandwidth": 0.3, "target_kernel": mc.Biweight, "target_bandwidth": 0.5},
        {"kernel": mc.Laplacian(0.1), "target_kernel": mc.Laplacian(0.2)},
        {"kernel": mc.Gaussian, "bandwidth": "silverman", "target_kernel": mc.RationalQuadratic(0.2, alpha=6.0)},
        {"bandwidth": 0.1, "target_kernel": mc.Uniform, "target_bandwidth": "isj"},
        {"covariance": "scott"},
    ],
)
def test_density_distribution_and_quantiles_agree(parameters):
    X, t = sine(60)
    model = ConditionalDensity(**parameters).fit(X, t, sample_weight=np.random.default_rng(0).integers(1, 3, 60))
    z = np.array([[0.3], [0.9]])
    grid = np.linspace(-4, 4, 8001)
    for x in z:
        p = model.pdf(np.tile(x, (len(grid), 1)), grid)
        assert np.trapezoid(p, grid) == pytest.approx(1.0, abs=3e-4)
        assert np.trapezoid(grid * p, grid) == pytest.approx(model.predict(x[None])[0], abs=3e-4)
        below = np.trapezoid(np.where(grid <= 0.4, p, 0.0), grid)
        assert model.cdf(x[None], [0.4])[0] == pytest.approx(below, abs=2e-3)
    for share in (0.01, 0.5, 0.9):
        np.testing.assert_allclose(model.cdf(z, model.quantile(z, share)), share, atol=1e-10)
    ends = model.predict_interval(z, 0.8)
    assert ends.shape == (2, 2)
    np.testing.assert_allclose(model.quantile(z, [0.1, 0.9]), ends)
    axes, values = model.on_grid(z, 300)
    np.testing.assert_allclose(values[1], model.pdf(np.tile(z[1], (300, 1)), axes[0]), rtol=1e-6, atol=1e-12)
    draws = model.sample(z, 2000, random_state=0)
    assert draws.shape == (2, 2000)
    for x, drawn in zip(z, draws):
        assert scipy.stats.kstest(drawn, lambda v, x=x: model.cdf(np.tile(x, (len(v), 1)), v)).pvalue > 1e-3


def test_the_joint_density_is_marginal_times_conditional():
    X, t = sine(50, d=2)
    H = np.array([[0.02, 0.01], [0.01, 0.05]])
    conditional = ConditionalDensity(bandwidth=H, target_bandwidth=0.2).fit(X, t)
    joint = ParzenDensity(bandwidth=np.block([[H, np.zeros((2, 1))], [np.zeros((1, 2)), 0.04 * np.eye(1)]]))
    joint.fit(np.column_stack([X, t]))
    marginal = ParzenDensity(bandwidth=H).fit(X)
    Z, s = X[:10] + 0.03, t[:10] - 0.05
    product = marginal.score_samples(Z) + conditional.score_samples(Z, s)
    np.testing.assert_allclose(joint.score_samples(np.column_stack([Z, s])), product, rtol=1e-7)
    np.testing.assert_allclose(conditional.score_samples(Z), marginal.score_samples(Z), rtol=1e-9)
    compact = ConditionalDensity(mc.Epanechnikov([0.3, 0.4]), target_bandwidth=1.0).fit(X, t)
    expected = ParzenDensity(mc.Epanechnikov([0.3, 0.4])).fit(X).score_samples(Z)
    np.testing.assert_allclose(compact.score_samples(Z), expected, rtol=1e-9)


def test_quantiles_from_cells_are_those_of_the_points():
    X, t = sine(3000)
    model = ConditionalDensity(bandwidth=0.02, target_bandwidth=0.2).fit(X, t)
    z = np.array([[0.2], [0.21], [0.77], [30.0]])
    for share in (1e-6, 0.3, 0.999):
        found = model.quantile(z, share)
        for x, q in zip(z, found):
            W = np.exp(-0.5 * ((x - X[:, 0]) / 0.02) ** 2 + 0.5 * np.min(((x - X[:, 0]) / 0.02) ** 2))
            W /= W.sum()
            assert W @ scipy.stats.norm.cdf((q - t) / 0.2) == pytest.approx(share, rel=1e-9)


def test_several_targets():
    X, t = sine(50)
    T = np.column_stack([t, -t, X[:, 0] ** 2])
    model = ConditionalDensity(bandwidth=0.1, target_bandwidth=[0.2, 0.1, 0.3]).fit(X, T)
    z = X[:4] + 0.01
    mean, std = model.predict(z, return_std=True)
    assert mean.shape == std.shape == model.quantile(z, 0.5).shape == model.cdf(z, T[:4]).shape == (4, 3)
    assert model.predict_interval(z).shape == model.bands(z).shape == (4, 3, 2)
    assert model.sample(z, 7, random_state=0).shape == (4, 7, 3)
    assert model.score_samples(z, T[:4]).shape == (4,)
    alone = [
        ConditionalDensity(bandwidth=0.1, target_bandwidth=h).fit(X, T[:, k]) for k, h in enumerate([0.2, 0.1, 0.3])
    ]
    for k, one in enumerate(alone):
        np.testing.assert_allclose(mean[:, k], one.predict(z), rtol=1e-9)
        np.testing.assert_allclose(model.quantile(z, 0.2)[:, k], one.quantile(z, 0.2), rtol=1e-9)
    W = np.array([naive_weights(mc.Gaussian(0.1), X, np.ones(50), q) for q in z])
    K = np.prod([scipy.stats.norm.pdf(T[:4, None, k], T[:, k], h) for k, h in enumerate([0.2, 0.1, 0.3])], axis=0)
    np.testing.assert_allclose(model.pdf(z, T[:4]), (W * K).sum(axis=1), rtol=1e-7)
    H = scott_covariance(np.column_stack([X, T + 0.1 * np.random.default_rng(0).normal(size=T.shape)]))
    model = ConditionalDensity(covariance=H).fit(X, T)
    draws = model.sample(z[:1], 60_000, random_state=1)[0]
    np.testing.assert_allclose(draws.mean(axis=0), model.predict(z[:1])[0], atol=0.01)
    np.testing.assert_allclose(draws.std(axis=0), model.predict(z[:1], return_std=True)[1][0], rtol=0.02)


def test_kernels_on_objects_weigh_the_data_too():
    sets = [{"a"}, {"a", "b"}, {"b", "c"}, {"c"}]
    t = np.array([0.0, 1.0, 2.0, 3.0])
    kernel = mc.Intersection().exp()
    model = ConditionalDensity(kernel, target_bandwidth=0.5).fit(sets, t)
    K = kernel([{"a", "b"}], sets)[0]
    assert model.predict([{"a", "b"}])[0] == pytest.approx(K @ t / K.sum(), rel=1e-7)
    assert model.cdf([{"a", "b"}], model.quantile([{"a", "b"}], 0.3))[0] == pytest.approx(0.3)
    alike = ConditionalDensity(mc.Delta(), target_bandwidth=0.5).fit(["a", "a", "b"], [1.0, 2.0, 6.0])
    np.testing.assert_allclose(alike.predict(["a", "b", "never"]), [1.5, 6.0, 3.0])
    assert alike.effective_sample_size(["never"])[0] == pytest.approx(3.0)
    with pytest.raises(InvalidInput, match="Pass y"):
        model.score_samples([{"a"}])
    with pytest.raises(InvalidInput, match="≥ 0"):
        ConditionalDensity(mc.Linear(), target_bandwidth=1.0).fit([[1.0], [-2.0]], [0.0, 1.0])


# --- widths -----------------------------------------------------------------------------------------------------------


def brute_conditional(X, t, h, g):
    total = 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        k = np.prod(scipy.stats.norm.pdf((X[i] - X[others]) / h) / h, axis=1)
        total += np.log((k * scipy.stats.norm.pdf(t[i], t[others], g)).sum() / k.sum())
    return total / len(X)


def test_leave_one_out_conditional_likelihood_is_the_brute_force_one():
    X, t = sine(60, d=2)
    model = ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(X, t)
    h, g = model.bandwidth_, model.target_bandwidth_[0]
    best = brute_conditional(X, t, h, g)
    assert loo(np.column_stack([X, t]), targets=1).value == pytest.approx(best, rel=1e-7)
    for factor in (0.95, 1.05):
        assert brute_conditional(X, t, h * [factor, 1.0], g) < best
        assert brute_conditional(X, t, h, g * factor) < best
    assert h[1] > 5 * h[0]  # the second column says nothing


@pytest.mark.parametrize("names", [("loo", 0.3), (0.1, "loo"), ("loo", "scott")])
def test_one_width_may_be_held(names):
    X, t = sine(60)
    model = ConditionalDensity(bandwidth=names[0], target_bandwidth=names[1]).fit(X, t)
    h, g = model.bandwidth_, model.target_bandwidth_
    held = h if names[0] != "loo" else g
    assert held[0] == pytest.approx(
        names[1] if names[1] == 0.3 else 0.1 if names[0] == 0.1 else scott(np.column_stack([X, t]))[1]
    )
    free = "bandwidth" if names[0] == "loo" else "target"

    def brute(a):
        return -brute_conditional(X, t, *((np.exp(a), g[0]) if free == "bandwidth" else (h, np.exp(a))))

    found = h[0] if free == "bandwidth" else g[0]
    best = minimize_scalar(brute, bounds=np.log([found / 2, found * 2]), method="bounded", options={"xatol": 1e-5})
    assert found == pytest.approx(np.exp(best.x), rel=1e-3)


@pytest.mark.parametrize(("name", "rule"), [("scott", scott), ("silverman", silverman), ("isj", isj)])
def test_rules_see_inputs_and_targets_together(name, rule):
    X, t = sine(d=2)
    model = ConditionalDensity(bandwidth=name, target_bandwidth=name).fit(X, t)
    expected = rule(np.column_stack([X, t]))
    np.testing.assert_allclose([*model.bandwidth_, *model.target_bandwidth_], expected, rtol=1e-12)
    assert name in model.status_
    given = ConditionalDensity(mc.Gaussian(9.0), bandwidth=0.3, target_kernel=mc.Laplacian(9.0), target_bandwidth=0.2)
    assert given.fit(X, t).kernel_ == mc.Gaussian(0.3)
    assert given.target_bandwidth_.tolist() == [0.2]
    assert ConditionalDensity(mc.median_gaussian).fit(X, t).kernel_ == mc.median_gaussian(X)
    mixed = ConditionalDensity(bandwidth=name, target_bandwidth=0.5).fit(X, t)
    np.testing.assert_allclose(mixed.bandwidth_, expected[:2], rtol=1e-12)


@pytest.mark.thorough
def test_a_good_fit_of_the_lectures_example():
    X, t = sine(400, seed=4)
    model = ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(X, t)
    z = np.linspace(0.05, 0.95, 50)[:, None]
    mean, std = model.predict(z, return_std=True)
    assert np.abs(mean - np.sin(2 * np.pi * z[:, 0])).max() < 0.2
    assert std.mean() == pytest.approx(0.2, rel=0.35)
    new_x, new_t = sine(2000, seed=5)
    ends = model.predict_interval(new_x, 0.9)
    assert np.mean((ends[:, 0] <= new_t) & (new_t <= ends[:, 1])) == pytest.approx(0.9, abs=0.06)


# --- far away, and bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ConditionalDensity(bandwidth=0.1, target_bandwidth=0.2),
        ConditionalDensity(mc.Tricube, bandwidth=0.1, target_bandwidth=0.2),
        ConditionalDensity(mc.Epanechnikov(0.1), target_kernel=mc.Laplacian(0.2)),
        ConditionalDensity(mc.Laplacian, bandwidth=0.1),
    ],
)
def test_far_from_all_data_the_nearest_point_decides(model):
    X, t = sine(30)
    model.fit(X, t)
    far = np.array([[50.0], [-1e5], [1e9]])
    nearest = t[[np.argmax(X), np.argmin(X), np.argmax(X)]]
    mean, std = model.predict(far, return_std=True)
    ties = 1e-9 if not isinstance(model.kernel_, mc.Laplacian) else 2.0
    np.testing.assert_allclose(mean, nearest, atol=ties)
    for values in (std, model.score_samples(far, nearest), model.quantile(far, 0.5), model.sample(far, 5, 0),
                   model.cdf(far, nearest), model.effective_sample_size(far), model.bands(far)):  # fmt: skip
        assert np.isfinite(values).all()
    assert np.isfinite(model.predict([[1e150]], return_std=True)).all()  # where all points are equally far
    assert np.isfinite(model.score_samples([[1e150]], [0.0])).all()
    if ties < 1:
        np.testing.assert_allclose(model.effective_sample_size(far), 1.0)
        np.testing.assert_allclose(model.cdf(far, nearest), 0.5, atol=1e-9)
        alone = model._mixtures()[0].log_kernel(nearest + 0.13)[
            np.arange(3), [np.argmax(X), np.argmin(X), np.argmax(X)]
        ]
        np.testing.assert_allclose(model.score_samples(far, nearest + 0.13), alone, rtol=1e-9)


@pytest.mark.parametrize(
    "kernel", [mc.Gaussian(0.1), mc.Epanechnikov(0.1), mc.Tricube([0.1, 0.3]), mc.Matern(0.1), mc.Laplacian(0.1)]
)
def test_far_away_everything_speaks_of_the_same_rows(kernel):
    """At any distance, the nearest row decides the mean, the quantiles, the samples and the effective size alike."""
    X, t = sine(60, d=2)
    model = ConditionalDensity(kernel, target_bandwidth=0.2).fit(X, t)
    for distance in (40.0, 1e5, 1e14, 1e30, 1e150, 1e200, 1e307):
        z = distance * np.array([[1.0, 0.5], [-0.3, 1.0]])
        mean, std = model.predict(z, return_std=True)
        size = model.effective_sample_size(z)
        assert np.isfinite([*mean, *std, *size, *model.score_samples(z, mean), *model.bands(z).ravel()]).all()
        alone = size < 1 + 1e-9
        if not isinstance(kernel, mc.Laplacian | mc.Matern):  # these see many rows of much the same weight
            assert alone.all()
            sigma = np.broadcast_to(kernel.sigma, 2)
            ahead = np.argmax(((X - X.mean(axis=0)) / sigma**2) @ (z / distance).T, axis=0)
            if distance > 1e4:
                np.testing.assert_allclose(mean, t[ahead], rtol=1e-12)
        np.testing.assert_allclose(std[alone], 0.2, rtol=1e-9)
        np.testing.assert_allclose(model.quantile(z, 0.5)[alone], mean[alone], atol=1e-9)


def test_far_away_weights_of_rows_close_to_each_other_keep_their_digits():
    """The logarithms of the two weights are −5e13 and differ by 0.1."""
    model = ConditionalDensity(bandwidth=0.1, target_bandwidth=1.0).fit([[0.0], [1e-9]], [0.0, 1.0])
    ratio = np.exp(-(1e6 * 1e-9) / 0.1**2)
    assert model.effective_sample_size([[1e6]])[0] == pytest.approx((1 + ratio) ** 2 / (1 + ratio**2), rel=1e-7)
    assert model.predict([[1e6]])[0] == pytest.approx(1 / (1 + ratio), rel=1e-7)
    assert model.cdf([[1e6]], model.quantile([[1e6]], 0.3))[0] == pytest.approx(0.3)


def test_targets_far_from_all_data_have_finite_logarithms():
    X, t = sine(40)
    for target in (mc.Gaussian(0.2), mc.Laplacian(0.2), mc.RationalQuadratic(0.2, alpha=3.0)):
        for kernel in (mc.Gaussian(0.1), mc.Tricube(0.3)):
            model = ConditionalDensity(kernel, target_kernel=target).fit(X, t)
            values = model.score_samples(np.full((4, 1), 0.5), [1e3, 1e160, -1e300, 1.7e308])
            assert np.isfinite(values).all()
            assert values[0] > values[1]
            np.testing.assert_allclose(model.cdf(np.full((2, 1), 0.5), [-1.7e308, 1.7e308]), [0.0, 1.0], atol=1e-300)
    leaning = ConditionalDensity(covariance=np.array([[0.01, 0.02], [0.02, 0.09]])).fit(X, t)
    assert np.isfinite(leaning.score_samples([[0.5]], [1e160])).all()
    assert np.isfinite(leaning.predict([[1e300]])).all()
    with pytest.raises(InvalidInput, match="queries must be near enough"):
        leaning.predict([[1.7e308]])


@pytest.mark.parametrize("kernel", [mc.Epanechnikov(0.1), mc.Tricube(0.02), mc.Gaussian(0.1), mc.Uniform(0.05)])
def test_where_nobody_is_in_reach_the_mean_is_still_nadaraya_watsons(kernel):
    X, t = sine(60)
    X[0] = X[1] = X.max() + 1e-3  # a tie for the nearest
    z = np.array([[3.0], [-2.0], [0.5], [1e9]])
    model, peer = ConditionalDensity(kernel, target_bandwidth=0.2).fit(X, t), mc.NadarayaWatsonRegressor(kernel)
    np.testing.assert_allclose(model.predict(z), peer.fit(X, t).predict(z), rtol=1e-7)
    np.testing.assert_allclose(model.effective_sample_size(z), peer.effective_sample_size(z), rtol=1e-6)


def test_weights_that_are_negative_at_queries_are_refused():
    model = ConditionalDensity(mc.Linear(), target_bandwidth=1.0).fit([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0])
    assert model.predict([[1.0, 3.0]])[0] == pytest.approx(0.75)
    for ask in (model.predict, model.effective_sample_size, lambda z: model.quantile(z, 0.5),
                lambda z: model.cdf(z, [0.0]), lambda z: model.pdf(z, [0.0]), model.sample):  # fmt: skip
        with pytest.raises(InvalidInput, match="≥ 0"):
            ask([[1.0, -0.99]])


def test_the_standard_deviation_does_not_cancel():
    """Two clusters of targets a million apart, each with a noise of a thousandth."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1.0], [2.0]], 200, axis=0) + 0.05 * rng.normal(size=(600, 1))
    t = np.repeat([-1e6, 0.0, 1e6], 200) + 1e-3 * rng.normal(size=600)
    model = ConditionalDensity(bandwidth=0.05, target_bandwidth=1e-5).fit(X, t)
    mean, std = model.predict([[0.0], [1.0], [2.0], [0.5]], return_std=True)
    np.testing.assert_allclose(mean[:3], [-1e6, 0.0, 1e6], atol=1e-3)
    np.testing.assert_allclose(std[:3], 1e-3, rtol=0.15)
    assert std[3] > 1e3


@pytest.mark.parametrize("n", [60, 5000])
@pytest.mark.parametrize("target", [mc.Gaussian(0.2), mc.Laplacian(0.2), mc.Epanechnikov(0.2)])
def test_quantiles_and_distribution_are_inverses_in_the_tails(n, target):
    X, t = sine(n)
    model = ConditionalDensity(mc.Gaussian(0.1), target_kernel=target).fit(X, t)
    z = np.array([[0.3], [0.8], [7.0]])
    for p in (1e-5, 1e-12, *(() if isinstance(target, mc.Epanechnikov) else (1e-30, 1e-200))):
        np.testing.assert_allclose(model.cdf(z, model.quantile(z, p)), p, rtol=1e-4 if p > 1e-20 else 1e-9)


def test_a_row_of_tiny_weight_decides_a_tinier_quantile():
    model = ConditionalDensity(bandwidth=0.1, target_bandwidth=1.0).fit([[0.0], [1.0]], [0.0, -100.0])
    for p in (1e-20, 1e-23, 1e-25):  # the second row weighs exp(−50), about 2e-22
        q = model.quantile([[0.0]], p)
        assert model.cdf([[0.0]], q)[0] == pytest.approx(p, rel=1e-9)
        assert (q[0] < -90) == (p < 1e-22)


@pytest.mark.thorough
def test_the_usual_widths_cover_what_they_say():
    X, t = sine(400, seed=4)
    new_x, new_t = sine(1000, seed=5)
    for kernel in (None, mc.Gaussian(0.03), mc.Epanechnikov):
        model = ConditionalDensity(kernel).fit(X, t)
        ends = model.predict_interval(new_x, 0.9)
        assert np.mean((ends[:, 0] <= new_t) & (new_t <= ends[:, 1])) == pytest.approx(0.9, abs=0.06)
        assert "of t: loo" in model.status_
        assert isinstance(kernel, mc.Gaussian) or "of x: loo" in model.status_
    matrix = ConditionalDensity(bandwidth=np.array([[0.03**2]])).fit(X, t)
    alike = ConditionalDensity(mc.Gaussian(0.03)).fit(X, t)
    np.testing.assert_allclose(matrix.target_bandwidth_, alike.target_bandwidth_, rtol=1e-4)
    assert "of t: scott" in ConditionalDensity(mc.Matern(0.1)).fit(X, t).status_


@pytest.mark.thorough
def test_the_usual_widths_of_very_many_rows_are_found_on_some(monkeypatch):
    X, t = sine(800)
    exact = ConditionalDensity(bandwidth="loo", target_bandwidth="loo").fit(X, t)
    monkeypatch.setattr("mercer.models.density.conditional_widths.SEARCH_ROWS", 300)
    some = ConditionalDensity().fit(X, t)
    assert "300 of 800" in some.status_
    np.testing.assert_allclose(some.target_bandwidth_, exact.target_bandwidth_, rtol=0.3)
    new = sine(1000, seed=3)
    assert some.score_samples(*new).mean() == pytest.approx(exact.score_samples(*new).mean(), abs=0.03)
    assert ConditionalDensity(bandwidth="loo").fit(X, t).bandwidth_ == pytest.approx(exact.bandwidth_)


def test_far_from_all_data_under_a_covariance_the_line_goes_on():
    X, t = sine(30)
    C = np.array([[0.01, 0.02], [0.02, 0.09]])
    model = ConditionalDensity(covariance=C).fit(X, t)
    i = np.argmax(X)
    np.testing.assert_allclose(model.predict([[200.0]]), t[i] + 2.0 * (200.0 - X[i]), rtol=1e-9)
    assert np.isfinite(model.score_samples([[200.0]], model.predict([[200.0]]))).all()


def test_one_point_and_equal_points():
    model = ConditionalDensity(bandwidth=1.0, target_bandwidth=2.0).fit([[1.0]], [3.0])
    mean, std = model.predict([[0.0], [9.0]], return_std=True)
    np.testing.assert_allclose(mean, 3.0)
    np.testing.assert_allclose(std, 2.0)
    assert model.quantile([[0.0]], 0.5)[0] == pytest.approx(3.0)
    same = ConditionalDensity(bandwidth=1.0, target_bandwidth=2.0).fit([[1.0]] * 4, [1.0, 2.0, 3.0, 4.0])
    assert same.predict([[7.0]])[0] == pytest.approx(2.5)


def test_weights_are_repetitions():
    X, t = sine(40)
    w = np.random.default_rng(1).integers(0, 4, 40)
    for parameters in ({}, {"covariance": "scott"}, {"bandwidth": "loo", "target_bandwidth": "loo"}):
        a = ConditionalDensity(**parameters).fit(X, t, sample_weight=w)
        b = ConditionalDensity(**parameters).fit(np.repeat(X, w, axis=0), np.repeat(t, w))
        np.testing.assert_allclose(a.predict(X, return_std=True), b.predict(X, return_std=True), rtol=1e-5)
        np.testing.assert_allclose(a.quantile(X, 0.2), b.quantile(X, 0.2), rtol=1e-4)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    X, t = sine(40, d=2)
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = ConditionalDensity().fit(table, t)
    np.testing.assert_array_equal(model.predict(table), ConditionalDensity().fit(X, t).predict(X))
    assert model.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"bandwidth": 0.0}, "number > 0"),
        ({"bandwidth": [1.0, 2.0]}, "1 column,"),
        ({"bandwidth": "gold"}, "one of"),
        ({"target_bandwidth": -1.0}, "target_bandwidth"),
        ({"target_bandwidth": "gold"}, "target_bandwidth"),
        ({"covariance": np.eye(2), "bandwidth": 1.0}, "alone"),
        ({"covariance": np.eye(3)}, "shape"),
        ({"covariance": np.array([[1.0, 2.0], [2.0, 1.0]])}, "positive definite"),
        ({"kernel": mc.Gaussian([1.0, 2.0])}, "1 column"),
        ({"kernel": "gaussian"}, "integral"),
        ({"target_kernel": mc.Matern(1.0)}, "closed form"),
        ({"kernel": mc.Matern(1.0), "target_bandwidth": "loo"}, "loo"),
        ({"bandwidth": mc.Gaussian(1.0)}, "Pass it as kernel"),
        ({"target_bandwidth": mc.Gaussian}, "Pass it as target_kernel"),
        ({"tolerance": None}, "tolerance"),
    ],
)
def test_bad_parameters_are_refused(parameters, match):
    with pytest.raises(InvalidInput, match=match):
        ConditionalDensity(**parameters).fit(*sine(20))


def test_bad_input_is_refused():
    X, t = sine(20)
    model = ConditionalDensity().fit(X, t)
    with pytest.raises(InvalidInput, match="NaN"):
        ConditionalDensity(bandwidth=1.0, target_bandwidth=1.0).fit([[np.nan]], [0.0])
    with pytest.raises(InvalidInput, match="vary"):
        ConditionalDensity().fit(X, np.ones(20))
    with pytest.raises(InvalidInput, match=r"\(0, 1\)"):
        model.quantile(X, 1.0)
    with pytest.raises(InvalidInput, match="`p` must hold numbers"):
        model.quantile(X, "half")
    with pytest.raises(InvalidInput, match="coverage"):
        model.predict_interval(X, 2.0)
    for deviations in (np.nan, -1.0, None, "two"):
        with pytest.raises(InvalidInput, match="deviations"):
            model.bands(X, deviations)
    for n in (0, 1, -3, 2.5, True, "many"):
        with pytest.raises(InvalidInput, match="`n` must"):
            model.on_grid(X, n)
    with pytest.raises(InvalidInput, match="margin"):
        model.on_grid(X, margin=np.nan)
    with pytest.raises(InvalidInput, match="y must"):
        model.pdf(X, t[:-1])
    with pytest.raises(InvalidInput, match="1 target "):
        model.pdf(X, np.column_stack([t, t]))


def test_clone_pickle_and_cross_validation():
    X, t = sine()
    model = ConditionalDensity(mc.Gaussian(1.0)).set_params(kernel__sigma=0.1)
    assert clone(model).kernel == mc.Gaussian(0.1)
    model.fit(X, t)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert cross_val_score(model, X, t).mean() > 0.8


@pytest.mark.parametrize(
    ("seed", "columns", "better"), [(4, 3, [0.007, 0.301, 0.411, 0.312]), (6, 2, [0.00985, 0.569, 0.837])]
)
def test_the_likelihood_is_not_left_at_a_local_maximum(seed, columns, better):
    """Widths that are likelier than those of the nearest maximum, found by forty random starts."""
    own = np.random.default_rng(seed)
    n = int(own.integers(30, 90))
    X = own.uniform(0, 1, (n, int(own.integers(1, 4))))
    assert X.shape[1] == columns
    y = np.sin(2 * np.pi * 6 * X[:, 0]) + 0.1 * own.normal(size=n) if seed == 4 else own.normal(size=n)
    joint = np.column_stack([X, y])
    known = loo(joint, targets=1, held=np.array(better)).value
    found = loo(joint, targets=1)
    assert found.value > known - 1e-3
    assert (loo(joint, targets=1).parameters["widths"] == found.parameters["widths"]).all()
