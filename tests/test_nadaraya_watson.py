"""Nadaraya-Watson: weights that sum to one, equal to double loops, finite far away, bandwidths by leave-one-out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import mercer as mc
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.local.nadaraya_watson import NadarayaWatsonClassifier, NadarayaWatsonRegressor
from mercer.tuning.local_losses import LogLoss, SquaredError
from mercer.tuning.search import GradientSearch
from mercer.tuning.smoothing import LIMIT, PRECISION, BandwidthCriterion, loo_bandwidth, loo_loss

rng = np.random.default_rng(0)

WEIGHTS = [
    mc.Gaussian(0.5),
    mc.Gaussian([0.4, 0.7]),
    mc.Laplacian(0.5),
    mc.Matern(0.8),
    mc.RationalQuadratic(0.5),
    mc.Uniform(1.5),
    mc.Triangular(1.5),
    mc.Epanechnikov(1.5),
    mc.Biweight([1.5, 2.0]),
    mc.Tricube(1.5),
    mc.Epanechnikov(1.5).on(0) * mc.Tricube(2.0).on(1),
    0.5 * mc.Gaussian(0.5) + mc.Gaussian(2.0),
]


def data(n=40, d=2, t=1):
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, :1]) + 0.2 * rng.normal(size=(n, t))
    return X, y[:, 0] if t == 1 else y


def naive(k, X, y, Z, v=None, exclude=False):
    """Σ w y/Σ w, query by query."""
    v = np.ones(len(X)) if v is None else v
    W = k(Z, X) * v
    if exclude:
        np.fill_diagonal(W, 0.0)
    return np.array([w @ y / w.sum() for w in W])


# --- the mean ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", WEIGHTS, ids=repr)
def test_it_is_the_weighted_mean(k):
    X, y = data(t=3)
    v = rng.uniform(0.5, 2.0, len(X))
    Z = X[:15] + 0.1
    model = NadarayaWatsonRegressor(k).fit(X, y, v)
    np.testing.assert_allclose(model.predict(Z), naive(k, X, y, Z, v), rtol=1e-8, atol=1e-10)
    W = model.weights(Z)
    np.testing.assert_allclose(W.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(W @ y, model.predict(Z), rtol=1e-8, atol=1e-10)
    K = k(Z, X)
    np.testing.assert_allclose(model.effective_sample_size(Z), (K @ v) ** 2 / (K**2 @ v), rtol=1e-7)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(1, 12), st.integers(1, 3), st.floats(-6, 6), st.integers(0, 100))
def test_weights_sum_to_one_everywhere(n, d, log_h, seed):
    own = np.random.default_rng(seed)
    X, Z = own.normal(size=(n, d)), 10.0 ** own.integers(-3, 9, size=(5, 1)) * own.normal(size=(5, d))
    model = NadarayaWatsonRegressor(bandwidth=10.0**log_h).fit(X, own.normal(size=n))
    W = model.weights(Z)
    assert (W >= 0).all()
    np.testing.assert_allclose(W.sum(axis=1), 1.0, rtol=1e-8)
    y = model._rows.y[:, 0]
    assert ((model.predict(Z) >= y.min() - 1e-9) & (model.predict(Z) <= y.max() + 1e-9)).all()


def test_the_limits_of_the_width():
    X, y = data(30)
    narrow = NadarayaWatsonRegressor(bandwidth=1e-3).fit(X, y)
    np.testing.assert_allclose(narrow.predict(X), y)
    Z = rng.normal(size=(20, 2))
    nearest = np.linalg.norm(Z[:, None] - X, axis=2).argmin(axis=1)
    np.testing.assert_allclose(narrow.predict(Z), y[nearest], rtol=1e-6)
    np.testing.assert_allclose(NadarayaWatsonRegressor(bandwidth=1e5).fit(X, y).predict(Z), y.mean(), rtol=1e-6)


@pytest.mark.parametrize("k", WEIGHTS[:-1], ids=repr)
def test_far_away_the_nearest_decides(k):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = NadarayaWatsonRegressor(k).fit(X, [1.0, 2.0, 3.0])
    assert np.isfinite(model.predict([[1e100, 1e100], [-1e140, 0.0]])).all()
    if isinstance(k, mc.RationalQuadratic):  # whose tail is heavy: all count alike
        assert model.predict([[1e8, 0.0]])[0] == pytest.approx(2.0)
        return
    if isinstance(k, mc.Laplacian):  # a ratio of weights that does not depend on how far away it is
        e = np.exp(-2.0)
        assert model.predict([[1e6, -1.0]])[0] == pytest.approx((e * 1 + 2 + e * e * 3) / (1 + e + e * e))
        return
    np.testing.assert_allclose(model.predict([[1e6, 1.0], [-3.0, 1e4]]), [2.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(model.effective_sample_size([[1e6, 1.0]]), 1.0, rtol=1e-6)
    np.testing.assert_allclose(model.weights([[1e6, 1.0]])[0], [0, 1, 0], atol=1e-6)


def test_ties_of_the_nearest_share():
    model = NadarayaWatsonRegressor(mc.Uniform(0.1)).fit([[-1.0], [1.0], [1.0]], [0.0, 3.0, 6.0])
    np.testing.assert_allclose(model.predict([[0.0], [0.5]]), [3.0, 4.5])
    np.testing.assert_allclose(model.effective_sample_size([[0.0], [0.5]]), [3.0, 2.0])


def test_any_objects():
    sets = [{1, 2}, {2, 3}, {3, 4}, {9}]
    k = mc.Intersection()
    model = NadarayaWatsonRegressor(k).fit(sets, [1.0, 2.0, 3.0, 9.0])
    np.testing.assert_allclose(model.predict([{2}, {3, 4}, {7}]), [1.5, (2 + 2 * 3) / 3, 15 / 4])
    words = NadarayaWatsonClassifier(mc.Delta()).fit(["a", "b", "a"], [0, 1, 1])
    np.testing.assert_allclose(words.predict_proba(["a", "b"]), [[0.5, 0.5], [0, 1]])
    K = mc.Gaussian(1.0)(np.arange(6.0)[:, None])
    y = np.arange(6.0)
    inside = NadarayaWatsonRegressor(mc.Precomputed(K)).fit([0, 1, 2, 3], y[:4])
    np.testing.assert_allclose(inside.predict([4, 5]), K[4:, :4] @ y[:4] / K[4:, :4].sum(axis=1))
    pairwise = NadarayaWatsonRegressor(mc.Precomputed()).fit(K[:4, :4], y[:4])
    np.testing.assert_allclose(pairwise.predict(K[4:, :4]), inside.predict([4, 5]))
    np.testing.assert_allclose(pairwise.loo_predictions_, inside.loo_predictions_)
    with pytest.raises(InvalidInput, match="Precomputed"):
        pairwise.partial_fit(K[4:, :4], y[4:])


def test_sparse_and_dense_agree():
    X, y = data(30, 3)
    X[X < 0] = 0
    for model in (NadarayaWatsonRegressor(bandwidth=0.7), NadarayaWatsonRegressor(mc.Laplacian(0.5))):
        dense, sparse = clone(model).fit(X, y).predict(X), clone(model).fit(sp.csr_array(X), y).predict(sp.csr_array(X))
        np.testing.assert_allclose(dense, sparse, rtol=1e-7)
    assert NadarayaWatsonRegressor().fit(sp.csr_array(X), y).bandwidth_ > 0


def test_frames():
    pd = pytest.importorskip("pandas")
    X, y = data(30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for k in (mc.Gaussian([0.5, 0.7]), mc.Gaussian(0.5).on("a") * mc.Gaussian(0.7).on("b")):
        model = NadarayaWatsonRegressor(k).fit(frame, y)
        np.testing.assert_allclose(
            model.predict(frame[:5]), naive(mc.Gaussian([0.5, 0.7]), X, y, X[:5]), rtol=1e-7, atol=1e-12
        )
        model.partial_fit(frame, y)
        assert model.weights(frame[:2]).shape == (2, 60)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"a": "c"}))
    compact = NadarayaWatsonRegressor(mc.Tricube(1e-4).on("a") * mc.Tricube(1e-4).on("b")).fit(frame, y)
    np.testing.assert_allclose(compact.predict(frame + 1e-3), y)


def test_weight_means_repetition():
    X, y = data(25)
    v = rng.integers(0, 4, len(X))
    again = np.repeat(np.arange(len(X)), v)
    Z = rng.normal(size=(9, 2))
    weighted = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y, v)
    repeated = NadarayaWatsonRegressor(bandwidth=0.5).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), rtol=1e-8)
    np.testing.assert_allclose(weighted.effective_sample_size(Z), repeated.effective_sample_size(Z), rtol=1e-8)
    labels = y > 0
    p = [NadarayaWatsonClassifier(bandwidth=0.5).fit(*rows).predict_proba(Z) for rows in
         ((X, labels, v), (X[again], labels[again]))]  # fmt: skip
    np.testing.assert_allclose(p[0], p[1], rtol=1e-8)


def test_rows_may_come_in_parts():
    X, y = data(40)
    whole = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    parts = NadarayaWatsonRegressor(bandwidth=0.5)
    for rows in (slice(0, 10), slice(10, 11), slice(11, 40)):
        parts.partial_fit(X[rows], y[rows])
        assert parts.loo_predictions_.shape == (rows.stop,)
    np.testing.assert_allclose(parts.predict(X, return_std=True), whole.predict(X, return_std=True), rtol=1e-8)
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, 40)]
    labels[:5] = "b"
    one = NadarayaWatsonClassifier(bandwidth=0.5).partial_fit(X[:5], labels[:5]).partial_fit(X[5:], labels[5:])
    assert one.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(
        one.predict_proba(X), NadarayaWatsonClassifier(bandwidth=0.5).fit(X, labels).predict_proba(X), rtol=1e-8
    )
    declared = NadarayaWatsonClassifier(bandwidth=0.5).partial_fit(X[:5], labels[:5], classes=["a", "b"])
    np.testing.assert_allclose(declared.predict_proba(X[:2]), [[0, 1], [0, 1]])


FAR = [1e9, 1e14, 1e100, 1e150, 1e200, 1.7e308]


@pytest.mark.parametrize("k", [mc.Gaussian(0.1), mc.Epanechnikov(0.1), mc.Tricube(0.1), mc.Matern(0.1)], ids=repr)
@pytest.mark.parametrize("d", [1, 2])
def test_all_answers_far_away_are_about_the_same_row(k, d):
    own = np.random.default_rng(0)
    X = own.uniform(0, 1, (300, d))
    y = X[:, 0] + own.normal(size=300)
    model = NadarayaWatsonRegressor(k).fit(X, y)
    direction = np.array([1.0, 0.25])[:d]
    outermost = (X @ direction).argmax()
    Z = np.outer(FAR, direction)
    np.testing.assert_allclose(model.predict(Z), y[outermost])
    np.testing.assert_allclose(model.effective_sample_size(Z), 1.0)
    np.testing.assert_allclose(model.weights(Z)[:, outermost], 1.0)
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, y[outermost])
    np.testing.assert_allclose(std, model.predict_distribution(Z)[1] / np.sqrt(2))
    labels = NadarayaWatsonClassifier(k).fit(X, np.arange(300) == outermost)
    assert labels.predict(Z).all()
    assert labels.effective_sample_size(Z) == pytest.approx(1.0)


def test_rows_that_come_later_stay_where_they_are():
    for model in (NadarayaWatsonRegressor(bandwidth=0.1), NadarayaWatsonClassifier(bandwidth=0.1)):
        model.fit([[0.0]], [1]).partial_fit([[1.7e12], [1.7e12 + 1]], [2, 3])
        np.testing.assert_array_equal(model._rows.points.vectors()[:, 0], [0.0, 1.7e12, 1.7e12 + 1])
        np.testing.assert_array_equal(model.predict([[1.7e12 + 1]]), [3])


def test_support_where_weights_underflow():
    X = np.random.default_rng(0).uniform(0, 1, (300, 2))
    k = mc.Gaussian(0.2) + mc.Laplacian(0.1)
    model = NadarayaWatsonRegressor(k).fit(X, X[:, 0])
    Z = np.array([[16.0, 16.0], [18.0, 18.0], [20.0, 20.0]])
    W = model.weights(Z)
    np.testing.assert_allclose(model.effective_sample_size(Z), 1 / (W**2).sum(axis=1), rtol=1e-6)
    assert (model.effective_sample_size(Z) < 20).all()
    corner = X.sum(axis=1).argmax()
    far = [[1e3, 1e3], [1e150, 1e150]]  # where even the weights underflow the nearest decides
    for sum_of in (k, 2.0 * mc.Gaussian(0.2) + mc.Gaussian([0.1, 0.3])):
        model = NadarayaWatsonRegressor(sum_of).fit(X, X[:, 0])
        np.testing.assert_allclose(model.effective_sample_size(far), 1.0)
        np.testing.assert_allclose(model.predict(far)[0], X[corner, 0] if sum_of is k else model.predict(far)[1])


def test_support_of_what_is_like_no_row():
    y = np.array([1.0, 2.0, 5.0, 6.0])
    words = NadarayaWatsonRegressor(mc.Delta()).fit(["a", "a", "b", "b"], y)
    np.testing.assert_allclose(words.effective_sample_size(["a", "c"]), [2.0, 0.0])
    mean, std = words.predict(["a", "c"], return_std=True)
    np.testing.assert_allclose([mean[1], std[1]], [y.mean(), y.std()])
    assert std[0] < std[1]
    classes = NadarayaWatsonClassifier(mc.Delta()).fit(["a", "a", "b"], [0, 1, 1])
    np.testing.assert_allclose(classes.effective_sample_size(["b", "c"]), [1.0, 0.0])


def test_negative_weights_of_queries():
    for model in (NadarayaWatsonRegressor, NadarayaWatsonClassifier):
        fitted = model(mc.Linear()).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
        fitted.predict([[1.0, 0.5]])
        for ask in (fitted.predict, fitted.weights, fitted.effective_sample_size):
            with pytest.raises(InvalidInput, match="≥ 0"):
                ask([[1.0, 0.5], [1.0, -0.99]])
    many = np.r_[np.ones((200, 1)), [[-1.0]]]  # the one that is not looked at first
    later = NadarayaWatsonRegressor(mc.Linear()).fit(many[:200], np.ones(200)).partial_fit(many[200:], [1.0])
    with pytest.raises(InvalidInput, match="≥ 0"):
        later.loo_score_  # noqa: B018


# --- leave-one-out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", WEIGHTS, ids=repr)
def test_leave_one_out_is_refitting(k):
    X, y = data(25)
    X[3] = X[4]
    v = rng.uniform(0.5, 2.0, len(X))
    model = NadarayaWatsonRegressor(k).fit(X, y, v)
    rest = [np.delete(np.arange(25), i) for i in range(25)]
    refitted = [NadarayaWatsonRegressor(k).fit(X[r], y[r], v[r]).predict(X[i : i + 1])[0] for i, r in enumerate(rest)]
    np.testing.assert_allclose(model.loo_predictions_, refitted, rtol=1e-7, atol=1e-9)
    r2 = 1 - v @ (y - refitted) ** 2 / (v @ (y - v @ y / v.sum()) ** 2)
    assert model.loo_score_ == pytest.approx(r2, rel=1e-7)
    K = k(X) * v
    assert model.degrees_of_freedom_ == pytest.approx(np.sum(np.diag(K) / K.sum(axis=1)), rel=1e-7)


def test_an_isolated_row_is_predicted_by_its_nearest():
    X, y = np.array([[0.0], [1.0], [1e4], [1e9]]), np.array([1.0, 2.0, 3.0, 4.0])
    for k in (mc.Gaussian(1e-3), mc.Epanechnikov(1e-3)):
        np.testing.assert_allclose(NadarayaWatsonRegressor(k).fit(X, y).loo_predictions_, [2, 1, 2, 3])
        assert np.isfinite(NadarayaWatsonRegressor(k).fit(X, y).predict([[0.4], [1e12]], return_std=True)).all()


def test_a_row_of_weight_zero_is_left_out_anyway():
    X, y = data(20)
    v = np.ones(20)
    v[7] = 0
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y, v)
    assert model.loo_predictions_[7] == pytest.approx(model.predict(X[7:8])[0])
    classifier = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, y > 0, v)
    np.testing.assert_allclose(classifier.loo_proba_[7], classifier.predict_proba(X[7:8])[0])


THETAS = [
    mc.Gaussian([0.5, 0.8]),
    mc.Gaussian(0.5),
    mc.Epanechnikov([2.5, 2.0]),
    mc.Biweight(2.5),
    mc.Tricube([2.5, 2.0]),
    mc.Matern(0.8),
    mc.Laplacian([0.5, 0.8]),
    mc.RationalQuadratic(0.5),
    0.5 * mc.Gaussian(0.5) + mc.Gaussian(2.0),
]


@pytest.mark.parametrize("k", THETAS, ids=repr)
@pytest.mark.parametrize("kind", ["error", "likelihood"])
def test_the_criterion_and_its_gradient(k, kind):
    X, y = data(40, t=2)
    v = rng.uniform(0.5, 2.0, len(X))
    if kind == "likelihood":
        y = (rng.integers(0, 3, len(X))[:, None] == np.arange(3)).astype(float)
    loss = SquaredError.of(y, v) if kind == "error" else LogLoss(y, v)
    value, slopes = loo_loss(k, Points(X), loss)
    F = naive(k, X, y, X, v, exclude=True)
    if kind == "error":
        unit = np.average((y - np.average(y, axis=0, weights=v)) ** 2, axis=0, weights=v)
        expected = np.average(((y - F) ** 2 / unit).mean(axis=1), weights=v)
    else:
        p = (y * F).sum(axis=1)
        prior = (y * np.average(y, axis=0, weights=v)).sum(axis=1)
        expected = -np.average(np.log((1 - 1 / 40) * p + prior / 40), weights=v)
    assert value == pytest.approx(expected, rel=1e-7)
    step = 1e-5
    for i in range(len(k.theta)):
        e = step * (np.arange(len(k.theta)) == i)
        up, down = (loo_loss(k.with_theta(k.theta + s * e), Points(X), loss, gradient=False)[0] for s in (1, -1))
        assert slopes[i] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-7)


def test_both_ways_to_the_gradient_agree():
    X, y = data(50, 5)
    loss = SquaredError.of(y[:, None], np.ones(50))
    few = Points(X[:, :3])
    by_moments = loo_loss(mc.Gaussian([0.5, 0.6, 0.7]), few, loss)[1]
    by_tiles = loo_loss(mc.Gaussian([0.5, 0.6, 0.7, 1e9]), Points(X[:, :4]), loss)[1]
    np.testing.assert_allclose(by_moments, by_tiles[:3], rtol=1e-6)


def test_the_chosen_bandwidth_is_the_best_of_a_fine_grid():
    X = rng.uniform(0, 1, size=(150, 1))
    y = np.sin(12 * X[:, 0]) + 0.3 * rng.normal(size=150)
    model = NadarayaWatsonRegressor().fit(X, y)
    errors = [np.mean((y - NadarayaWatsonRegressor(bandwidth=h).fit(X, y).loo_predictions_) ** 2)
              for h in np.geomspace(0.003, 3, 60)]  # fmt: skip
    assert model.loo_loss_ <= min(errors) * (1 + 1e-9)
    assert model.loo_loss_ == pytest.approx(np.mean((y - model.loo_predictions_) ** 2), rel=1e-6)


@pytest.mark.thorough
def test_a_column_that_says_nothing_does_not_count():
    X = rng.uniform(0, 1, size=(200, 2))
    y = np.sin(9 * X[:, 0]) + 0.2 * rng.normal(size=200)
    error, likelihood = SquaredError.of(y[:, None], np.ones(200)), LogLoss(np.c_[y <= 0, y > 0] * 1.0, np.ones(200))
    for model, loss in ((NadarayaWatsonRegressor(), error), (NadarayaWatsonClassifier(), likelihood)):
        model.fit(X, y if isinstance(loss, SquaredError) else y > 0)
        assert model.bandwidth_[1] > 4 * model.bandwidth_[0]
        widths = np.geomspace(0.01, 3, 9)
        grid = [loo_loss(mc.Gaussian([a, b]), Points(X), loss, gradient=False)[0] for a in widths for b in widths]
        assert model.loo_loss_ <= min(grid) * (1 + 1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [17, 20, 37])
def test_the_search_does_not_end_in_a_bad_minimum(seed):
    own = np.random.default_rng(seed)
    d, n = 2 + seed % 3, 80 + 20 * (seed % 4)
    X = own.uniform(size=(n, d))
    y = np.sin(10 * X[:, :1]) * (1 if seed % 2 else X[:, 1:2]) + 0.3 * own.normal(size=(n, 1))
    loss, start = SquaredError.of(y, np.ones(n)), mc.Gaussian(np.full(d, 0.2))
    search = GradientSearch(BandwidthCriterion.of(start, Points(X), loss, 0, False))
    elsewhere = search.descend(own.uniform(-4, 1, size=(8, d)), precision=PRECISION, limit=LIMIT).at.value
    assert np.log(loo_bandwidth(start, Points(X), loss).value) < elsewhere + 1e-3


def test_many_rows_end_where_a_search_over_all_would():
    X = rng.uniform(0, 1, size=(2500, 1))
    y = np.sin(12 * X[:, 0]) + 0.3 * rng.normal(size=2500)
    loss = SquaredError.of(y[:, None], np.ones(2500))
    found = loo_bandwidth(mc.Gaussian([0.3]), Points(X), loss)
    values = {h: loo_loss(mc.Gaussian([h]), Points(X), loss, gradient=False)[0] for h in np.geomspace(0.01, 0.06, 12)}
    assert found.value <= min(values.values()) * (1 + 1e-6)
    assert abs(np.log(found.kernel.sigma[0] / min(values, key=values.get))) < 0.2


def test_bandwidths_by_rule_and_by_hand():
    X, y = data(60)
    scott = NadarayaWatsonRegressor(bandwidth="scott").fit(X, y).bandwidth_
    np.testing.assert_allclose(scott, 60 ** (-1 / 6) * X.std(axis=0, ddof=1), rtol=0.02)
    wide = NadarayaWatsonRegressor(mc.Epanechnikov(), bandwidth="scott").fit(X, y)
    np.testing.assert_allclose(wide.bandwidth_, np.sqrt(5) * scott)
    assert NadarayaWatsonRegressor(bandwidth=[0.3, 0.4]).fit(X, y).kernel_ == mc.Gaussian([0.3, 0.4])
    assert NadarayaWatsonRegressor(mc.Tricube(9.0)).fit(X, y).kernel_ == mc.Tricube(9.0)
    assert NadarayaWatsonRegressor(mc.median_gaussian).fit(X, y).kernel_ == mc.median_gaussian(X)
    common = NadarayaWatsonRegressor(mc.Gaussian([1.0, 3.0]), bandwidth="loo-common").fit(X, y).bandwidth_
    assert common[1] / common[0] == pytest.approx(3.0)
    with pytest.raises(InvalidInput, match="free parameters"):
        NadarayaWatsonRegressor(mc.Delta(), bandwidth="loo").fit(X, y)


@pytest.mark.parametrize("unit", [1e-200, 1e160, 1e200])
def test_targets_of_any_size(unit):
    own = np.random.default_rng(0)
    X = own.uniform(0, 1, (100, 1))
    y = np.sin(9 * X[:, 0]) + 0.2 * own.normal(size=100)
    for t in (y, np.c_[y, -y]):
        plain, scaled = NadarayaWatsonRegressor().fit(X, t), NadarayaWatsonRegressor().fit(X, unit * t)
        np.testing.assert_allclose(scaled.bandwidth_, plain.bandwidth_, rtol=1e-3)
        for a, b in zip(scaled.predict(X, return_std=True), plain.predict(X, return_std=True)):
            np.testing.assert_allclose(a / unit, b, rtol=1e-2, atol=1e-3)
        np.testing.assert_allclose(scaled.bands(X) / unit, plain.bands(X), atol=1e-2)
    few = NadarayaWatsonRegressor().fit([[1.0]], [5.0])
    assert few.loo_loss_ is None


@pytest.mark.thorough
def test_a_class_of_kernels_leaves_the_width_to_the_data():
    X, y = data(60)
    model = NadarayaWatsonRegressor(mc.Epanechnikov).fit(X, y)
    same = NadarayaWatsonRegressor(mc.Epanechnikov(), bandwidth="loo").fit(X, y)
    assert isinstance(model.kernel_, mc.Epanechnikov)
    np.testing.assert_allclose(model.bandwidth_, same.bandwidth_)
    assert NadarayaWatsonRegressor(mc.Tricube, bandwidth=2.0).fit(X, y).kernel_ == mc.Tricube(2.0)
    assert NadarayaWatsonClassifier(mc.Delta).fit(["a", "b"], [0, 1]).kernel_ == mc.Delta()
    clone(model).fit(X, y)
    sparse = sp.csr_array(np.maximum(X, 0.0))
    assert NadarayaWatsonRegressor(mc.Laplacian).fit(sparse, y).bandwidth_ > 0
    with pytest.raises(InvalidInput, match=r"mc\.FromFunction"):
        NadarayaWatsonRegressor(mc.FromFunction).fit(X, y)


def test_the_status_says_how_the_bandwidth_was_chosen():
    X, y = data(20)
    cases = {None: "leave-one-out", 1.0: "as given", "scott": "'scott'", "loo-common": "one factor"}
    assert NadarayaWatsonRegressor(mc.Gaussian(1.0)).fit(X, y).status_ == "kernel as given"
    for bandwidth, said in cases.items():
        options = {"bandwidth": bandwidth}
        assert said in NadarayaWatsonRegressor(**options).fit(X, y).status_
        assert said in NadarayaWatsonClassifier(**options).fit(X, y > 0).status_


# --- uncertainty ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_standard_error_is_that_of_repeated_draws():
    X = rng.uniform(0, 1, size=(150, 1))
    Z = np.array([[0.1], [0.5], [0.9]])
    truth, noise = np.sin(4 * X[:, 0]), 0.1 + 0.5 * X[:, 0]
    draws, errors, deviations = [], [], []
    for _ in range(150):
        model = NadarayaWatsonRegressor(bandwidth=0.06).fit(X, truth + noise * rng.normal(size=150))
        mean, error = model.predict(Z, return_std=True)
        draws.append(mean)
        errors.append(error)
        deviations.append(model.predict_distribution(Z)[1])
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(draws, axis=0), rtol=0.15)
    np.testing.assert_allclose(np.mean(deviations, axis=0), 0.1 + 0.5 * Z[:, 0], rtol=0.2)


def test_intervals_cover_and_bands_agree():
    X = rng.uniform(0, 1, size=(400, 1))
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=400)
    model = NadarayaWatsonRegressor().fit(X, y)
    Z = rng.uniform(0, 1, size=(1000, 1))
    new = np.sin(6 * Z[:, 0]) + 0.3 * rng.normal(size=1000)
    low, high = model.predict_interval(Z, 0.8).T
    assert 0.74 < np.mean((low <= new) & (new <= high)) < 0.86
    Z = np.linspace(0.05, 0.95, 20)[:, None]
    asymptotic, bootstrap = model.bands(Z, 0.9), model.bands(Z, 0.9, method="bootstrap", n_samples=2000)
    assert np.abs(np.diff(bootstrap) / np.diff(asymptotic) - 1).mean() < 0.12
    mean = model.predict(Z)
    assert ((asymptotic[:, 0] < mean) & (mean < asymptotic[:, 1])).all()
    together = model.bands(Z, 0.9, method="bootstrap", simultaneous=True)
    assert (np.diff(together) > 1.2 * np.diff(asymptotic)).all()
    two = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, np.c_[y, -y])
    assert two.bands(Z).shape == (20, 2, 2) == two.predict_interval(Z).shape
    np.testing.assert_allclose(two.bands(Z)[:, 0], -two.bands(Z)[:, 1, ::-1])


@pytest.mark.thorough
def test_bands_of_few_rows_know_that_the_noise_is_estimated():
    own = np.random.default_rng(0)
    X = np.linspace(0, 1, 60)[:, None]
    Z = np.linspace(0.1, 0.9, 25)[:, None]
    covered = {"each": [], "all": [], "bootstrap": []}
    for _ in range(150):
        model = NadarayaWatsonRegressor(bandwidth=0.03).fit(X, own.normal(size=60))
        for kind, options in (("each", {}), ("bootstrap", {"method": "bootstrap"}),
                              ("all", {"method": "bootstrap", "simultaneous": True})):  # fmt: skip
            low, high = model.bands(Z, 0.9, n_samples=300, **options).T
            inside = (low < 0) & (high > 0)
            covered[kind].append(inside.all() if kind == "all" else inside.mean())
    for kind, values in covered.items():
        assert 0.855 < np.mean(values) < 0.96, kind


# --- classes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
def test_the_weighted_majority(classes):
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0) if classes == 4 else (X[:, 0] > X[:, 1] ** 2).astype(int)
    k = mc.Gaussian(0.4)
    model = NadarayaWatsonClassifier(k).fit(X, y)
    Z = np.r_[rng.normal(size=(20, 2)), [[1e7, 0.0]]]
    p = model.predict_proba(Z)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    W = k(Z[:-1], X)
    votes = np.stack([W[:, y == c].sum(axis=1) for c in range(classes)], axis=1)
    np.testing.assert_allclose(p[:-1], votes / votes.sum(axis=1, keepdims=True), rtol=1e-7, atol=1e-12)
    if classes == 2:  # lecture 000: the sign of Σ w t
        np.testing.assert_array_equal(model.predict(Z[:-1]), (W @ (2 * y - 1) > 0).astype(int))
    refitted = [NadarayaWatsonClassifier(k).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]
                for i in range(60)]  # fmt: skip
    np.testing.assert_array_equal(model.loo_predictions_, refitted)
    assert model.loo_score_ == pytest.approx(np.mean(np.array(refitted) == y))


# --- bad input, and scikit-learn --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bandwidth", [0.0, -1.0, np.nan, np.inf, "wide", [1.0, 2.0, 3.0], True, [[1.0]], [0.5, -1.0], {}]
)
@pytest.mark.parametrize("model", [NadarayaWatsonRegressor, NadarayaWatsonClassifier])
def test_no_such_bandwidth(model, bandwidth):
    with pytest.raises(InvalidInput, match="bandwidth"):
        model(bandwidth=bandwidth).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def test_bad_input():
    X, y = data(10)
    for kernel in ("rbf", lambda X: 3, int):
        with pytest.raises(InvalidInput, match="kernel"):
            NadarayaWatsonRegressor(kernel).fit(X, y)
    with pytest.raises(InvalidInput, match="≥ 0"):
        NadarayaWatsonRegressor(mc.Linear()).fit(X, y)
    with pytest.raises(InvalidInput, match="NaN"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(np.where(X > 0, X, np.nan), y)
    with pytest.raises(InvalidInput, match="NaN"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(X, np.where(y > 0, y, np.nan))
    one = NadarayaWatsonRegressor().fit([[1.0]], [5.0])
    np.testing.assert_allclose(one.predict([[3.0], [1e9]]), 5.0)
    for ask in (lambda: one.loo_score_, lambda: one.predict([[1.0]], return_std=True)):
        with pytest.raises(InvalidInput, match="two rows"):
            ask()
    same = NadarayaWatsonRegressor().fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_allclose(same.predict([[1.0, 1.0], [9.0, 9.0]]), 2.0)
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    with pytest.raises(InvalidInput, match="coverage"):
        model.bands(X, 1.5)
    with pytest.raises(InvalidInput, match="method"):
        model.bands(X, method="jackknife")
    with pytest.raises(InvalidInput, match="shape of the first"):
        model.partial_fit(X, np.c_[y, y])
    assert len(model._rows) == 10
    with pytest.raises(ValueError, match="features"):
        NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y > 0).partial_fit(X[:, :1], y > 0)


def test_labels_of_one_kind():
    model = NadarayaWatsonClassifier(bandwidth=1.0).fit([[0.0], [1.0]], ["a", "b"])
    for later in ([1, 2], np.array([True, False])):
        with pytest.raises(InvalidInput, match="text"):
            model.partial_fit([[2.0], [3.0]], later)
    with pytest.raises(InvalidInput, match="text"):
        NadarayaWatsonClassifier(bandwidth=1.0).partial_fit([[0.0], [1.0]], [1, 2], classes=["a", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    assert len(model._rows) == 2
    model.partial_fit([[2.0]], np.array(["c"], dtype=object))
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_what_messages_advise():
    X, y = data(10, 1)
    with pytest.raises(InvalidInput, match=r"'rbf' is mc\.Gaussian"):
        NadarayaWatsonRegressor("rbf").fit(X, y)
    with pytest.raises(InvalidInput, match="Use NadarayaWatsonRegressor"):
        NadarayaWatsonClassifier().fit(X, y)
    with pytest.raises(InvalidInput, match="in 1 column, or the name of a rule"):
        NadarayaWatsonRegressor(bandwidth=[1.0, 2.0]).fit(X, y)


def test_single_precision_and_pickles():
    X, y = data(50)
    X += 1000
    exact = NadarayaWatsonRegressor(bandwidth=0.5).fit(X.astype(np.float32).astype(float), y)
    single = NadarayaWatsonRegressor(bandwidth=0.5).fit(X.astype(np.float32), y)
    Z = X.astype(np.float32)[:9]
    np.testing.assert_allclose(single.predict(Z), exact.predict(Z), rtol=1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(single)).predict(Z, return_std=True),
                               single.predict(Z, return_std=True))  # fmt: skip
