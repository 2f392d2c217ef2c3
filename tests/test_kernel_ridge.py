"""Kernel ridge: identities of theory, leave-one-out against brute force, weights as repetition, and bad input."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_predict

import mercer as mc


def data(n=40, d=3, t=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, y if t is None else np.stack([y * (j + 1) + X[:, j % d] for j in range(t)], axis=1)


KERNELS = [mc.Gaussian(1.3), mc.Polynomial(2, c=1.0), mc.Linear(), 0.5 * mc.Matern(2.0) + mc.Linear().on(0)]


# -- what the fit is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("solver", ["auto", "cholesky", "eigen", "cg"])
def test_coefficients_solve_the_dual_system(kernel, solver):
    X, y = data()
    model = mc.KernelRidge(kernel, alpha=0.3, solver=solver).fit(X, y)
    c = np.linalg.solve(kernel(X) + 0.3 * np.eye(len(X)), y)
    np.testing.assert_allclose(model.dual_coef_, c, atol=1e-8)
    np.testing.assert_allclose(model.predict(X[:5] + 1), kernel(X[:5] + 1, X) @ c, atol=1e-8)
    assert model.residual_ <= 1e-9


def test_each_coefficient_is_the_residual_over_alpha():
    X, y = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.2, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, -(model.predict(X) - y) / 0.2, atol=1e-10)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_kernel_is_ridge_regression(intercept, weighted):
    X, y = data(t=2)
    w = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else None
    ours = mc.KernelRidge(mc.Linear(), alpha=0.7, fit_intercept=intercept).fit(X, y, sample_weight=w)
    theirs = Ridge(alpha=0.7, fit_intercept=intercept, solver="cholesky").fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_ if intercept else np.zeros(2), atol=1e-10)
    np.testing.assert_allclose(ours.function_.weights(), theirs.coef_.T, atol=1e-10)


def test_alpha_zero_is_least_squares_of_minimum_norm():
    X, y = data(d=3)
    ours = mc.KernelRidge(mc.Linear(), alpha=0, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-9)
    assert ours.rank_ == 3
    few, t = X[:2], y[:2]
    ours = mc.KernelRidge(mc.Linear(), alpha=0).fit(few, t)
    np.testing.assert_allclose(ours.function_.weights(), np.linalg.pinv(few) @ t, atol=1e-10)
    assert ours.degrees_of_freedom_ == pytest.approx(2.0)


def test_the_solution_is_the_smallest_objective_in_the_space():
    X, y = data(25)
    kernel, alpha = mc.Gaussian(1.0), 0.4
    f = mc.KernelRidge(kernel, alpha=alpha).fit(X, y).function_

    def objective(g):
        return 0.5 * ((y - g(X)) ** 2).sum() + 0.5 * alpha * g.norm() ** 2

    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1):
        g = f + size * mc.Expansion(kernel, rng.normal(size=(7, 3)), rng.normal(size=7))
        assert objective(g) > objective(f)


@pytest.mark.thorough
def test_degrees_of_freedom_are_the_trace_of_the_smoother():
    X, y = data()
    K = mc.Gaussian(1.0)(X)
    for intercept in (False, True):
        w = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
        model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.5, fit_intercept=intercept).fit(X, y, sample_weight=w)
        unit = [clone(model).fit(X, e, sample_weight=w).predict(X)[i] for i, e in enumerate(np.eye(len(X)))]
        assert model.degrees_of_freedom_ == pytest.approx(sum(unit), rel=1e-8)
    plain = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.5).fit(X, y)
    assert plain.degrees_of_freedom_ == pytest.approx(np.trace(K @ np.linalg.inv(K + 0.5 * np.eye(len(K)))))


# -- several targets ---------------------------------------------------------------------------------------------------


def test_one_alpha_per_target():
    X, Y = data(t=3)
    alphas = [0.1, 1.0, 0.1]
    together = mc.KernelRidge(mc.Gaussian(1.0), alpha=alphas, fit_intercept=True).fit(X, Y)
    for j, alpha in enumerate(alphas):
        alone = mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, fit_intercept=True).fit(X, Y[:, j])
        np.testing.assert_allclose(together.predict(X)[:, j], alone.predict(X), atol=1e-10)
        np.testing.assert_allclose(together.loo_predictions_[:, j], alone.loo_predictions_, atol=1e-9)
        assert together.degrees_of_freedom_[j] == pytest.approx(alone.degrees_of_freedom_)


def test_shapes_follow_the_targets():
    X, y = data()
    assert mc.KernelRidge().fit(X, y).predict(X).shape == (40,)
    assert mc.KernelRidge().fit(X, y[:, None]).predict(X).shape == (40, 1)
    model = mc.KernelRidge(fit_intercept=True).fit(X, np.stack([y, y], axis=1))
    assert model.predict(X).shape == model.loo_predictions_.shape == model.dual_coef_.shape == (40, 2)
    assert model.predict_interval(X[:4]).shape == (4, 2, 2)


def test_float32_is_kept_and_as_accurate_as_it_can_be():
    X, y = data()
    narrow = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X.astype(np.float32), y.astype(np.float32))
    wide = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    assert narrow.predict(X.astype(np.float32)).dtype == narrow.dual_coef_.dtype == np.float32
    np.testing.assert_allclose(narrow.predict(X.astype(np.float32)), wide.predict(X), atol=2e-5)


# -- leaving out -------------------------------------------------------------------------------------------------------


def left_out(model, X, y, w=None):
    """Refit n times."""
    found = []
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        fitted = clone(model).fit(X[rest], y[rest], sample_weight=None if w is None else w[rest])
        found.append(fitted.predict(X[[i]])[0])
    return np.array(found)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Linear()], ids=repr)
def test_leave_one_out_equals_refitting(kernel, alpha, intercept):
    X, Y = data(22, t=2)
    w = np.random.default_rng(1).uniform(0.2, 2, len(X))
    for weights in (None, w):
        model = mc.KernelRidge(kernel, alpha=alpha, fit_intercept=intercept)
        fitted = clone(model).fit(X, Y, sample_weight=weights)
        np.testing.assert_allclose(fitted.loo_predictions_, left_out(model, X, Y, weights), atol=1e-7)


def test_k_folds_equal_refitting():
    X, y = data(31)
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, fit_intercept=True)
    cv = KFold(4, shuffle=True, random_state=3)
    fitted = clone(model).fit(X, y)
    np.testing.assert_allclose(fitted.cv_predictions(cv), cross_val_predict(model, X, y, cv=cv), atol=1e-9)
    np.testing.assert_allclose(fitted.cv_predictions(5), cross_val_predict(model, X, y, cv=5), atol=1e-9)
    with pytest.raises(mc.InvalidInput, match="every row"):
        fitted.cv_predictions(TimeSeriesSplit(3))


@pytest.mark.thorough
@pytest.mark.parametrize("intercept", [False, True])
def test_alpha_by_leave_one_out_is_the_best_of_the_path(intercept):
    X, Y = data(50, t=2)
    Y[:, 1] += np.random.default_rng(4).normal(size=50)
    w = np.random.default_rng(1).uniform(0.2, 2, len(X))
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo", fit_intercept=intercept).fit(X, Y, sample_weight=w)
    assert model.alpha_.shape == (2,)

    def error(alpha, j):
        other = mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, fit_intercept=intercept).fit(X, Y[:, j], sample_weight=w)
        return (w * (Y[:, j] - other.loo_predictions_) ** 2).sum()

    for j in range(2):
        chosen = error(model.alpha_[j], j)
        assert all(chosen <= error(alpha, j) * (1 + 1e-6) for alpha in np.geomspace(1e-6, 1e3, 60))
    single = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo", fit_intercept=intercept).fit(X, Y[:, 0], sample_weight=w)
    assert single.alpha_ == pytest.approx(model.alpha_[0], rel=1e-3)


def test_nystrom_with_every_point_as_centre_is_the_exact_fit():
    X, y = data(60)
    exact = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, fit_intercept=True).fit(X, y)
    low = mc.KernelRidge(
        mc.Gaussian(1.0), alpha=0.1, fit_intercept=True, solver="nystrom", n_centers=60, tol=1e-12
    ).fit(X, y)
    assert low.solver_ == "nystrom"
    np.testing.assert_allclose(low.predict(X + 0.1), exact.predict(X + 0.1), atol=1e-6)
    np.testing.assert_allclose(low.loo_predictions_, exact.loo_predictions_, atol=1e-6)
    np.testing.assert_allclose(low.predict_interval(X), exact.predict_interval(X), atol=1e-6)


def test_nystrom_leave_one_out_keeps_the_centres():
    X, y = data(60)
    model = mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, solver="nystrom", centers=X[:9], tol=1e-12).fit(X, y)
    phi = mc.Gaussian(1.5)(X, X[:9])
    found = []
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        A = phi[rest].T @ phi[rest] + 0.1 * mc.Gaussian(1.5)(X[:9])
        found.append(phi[i] @ np.linalg.solve(A, phi[rest].T @ y[rest]))
    np.testing.assert_allclose(model.loo_predictions_, found, atol=1e-6)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["cholesky", "eigen", "cg", "nystrom"])
@pytest.mark.parametrize("intercept", [False, True])
def test_weight_means_repetition_and_zero_means_left_out(solver, intercept):
    X, y = data(30)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    more = {"centers": X[:10], "tol": 1e-13} if solver == "nystrom" else {}
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.2, solver=solver, fit_intercept=intercept, **more)
    weighted = clone(model).fit(X, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)
    assert weighted.loo_predictions_.shape == (30,)
    gone = w == 0
    np.testing.assert_allclose(weighted.loo_predictions_[gone], weighted.predict(X[gone]))


# -- intervals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_jackknife_plus_equals_refitting(intercept):
    X, y = data(26)
    Z = data(5, seed=9)[0]
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, fit_intercept=intercept)
    ends = clone(model).fit(X, y).predict_interval(Z, 0.8)
    low, high = [], []
    for i in range(26):
        rest = np.delete(np.arange(26), i)
        fitted = clone(model).fit(X[rest], y[rest])
        spread = abs(y[i] - fitted.predict(X[[i]])[0])
        low.append(fitted.predict(Z) - spread)
        high.append(fitted.predict(Z) + spread)
    k = int(np.ceil(0.8 * 27))
    np.testing.assert_allclose(ends[:, 0], -np.sort(-np.array(low), axis=0)[k - 1], atol=1e-9)
    np.testing.assert_allclose(ends[:, 1], np.sort(np.array(high), axis=0)[k - 1], atol=1e-9)


def test_intervals_cover_about_as_often_as_they_say():
    hits = []
    for seed in range(15):
        X, y = data(60, seed=seed)
        Z, t = data(200, seed=100 + seed)
        ends = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y).predict_interval(Z, 0.9)
        hits.append(((ends[:, 0] <= t) & (t <= ends[:, 1])).mean())
    assert 0.86 <= np.mean(hits) <= 0.96


def test_intervals_refuse_what_they_cannot_promise():
    X, y = data(8)
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    with pytest.raises(mc.InvalidInput, match=r"at most n/\(n \+ 1\)"):
        model.predict_interval(X, 0.95)
    for bad in (0.0, 1.0, 90, "0.9", None, np.nan):
        with pytest.raises(mc.InvalidInput, match="coverage"):
            model.predict_interval(X, bad)


# -- every kind of data ------------------------------------------------------------------------------------------------


def test_precomputed_matrices_in_both_forms():
    X, y = data()
    k = mc.Gaussian(1.0)
    K, Kz = k(X), k(X[:6] + 0.2, X)
    exact = mc.KernelRidge(k, alpha=0.1).fit(X, y).predict(X[:6] + 0.2)
    bare = mc.KernelRidge(mc.Precomputed(), alpha=0.1).fit(K, y)
    np.testing.assert_allclose(bare.predict(Kz), exact, atol=1e-10)
    held = mc.KernelRidge(mc.Precomputed(K), alpha=0.1).fit(np.arange(30), y[:30])
    np.testing.assert_allclose(
        held.predict(np.arange(30, 40)), mc.KernelRidge(k, alpha=0.1).fit(X[:30], y[:30]).predict(X[30:]), atol=1e-10
    )
    grid = GridSearchCV(mc.KernelRidge(mc.Precomputed()), {"alpha": [1e-2, 1e-1, 1.0]}, cv=3).fit(K, y)
    plain = GridSearchCV(mc.KernelRidge(k), {"alpha": [1e-2, 1e-1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])


def test_sets_sparse_rows_and_frames():
    import pandas as pd
    import polars as pl

    rng = np.random.default_rng(0)
    sets = [set(rng.choice(9, 4, replace=False).tolist()) for _ in range(30)]
    y = np.array([len(s & {1, 2, 3}) for s in sets], dtype=float)
    model = mc.KernelRidge(mc.Intersection(), alpha=1e-6).fit(sets, y)
    np.testing.assert_allclose(model.predict(sets), y, atol=1e-3)
    X, y = data()
    dense = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y).predict(X)
    sparse = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(sp.csc_array(X), y).predict(sp.coo_array(X))
    np.testing.assert_allclose(sparse, dense, atol=1e-9)
    kernel = mc.Gaussian(1.0).on("a") + mc.Linear().on(["b", "c"])
    for library in (pd, pl):
        frame = library.DataFrame({name: X[:, j] for j, name in enumerate("abc")})
        model = mc.KernelRidge(kernel, alpha=0.1).fit(frame, y)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        K = mc.Gaussian(1.0)(X[:, :1]) + mc.Linear()(X[:, 1:])
        np.testing.assert_allclose(model.dual_coef_, np.linalg.solve(K + 0.1 * np.eye(40), y), atol=1e-9)


def test_a_kernel_may_be_a_rule_and_nothing_leaks():
    X, y = data()
    seen = []

    def rule(points):
        seen.append(len(points))
        return mc.Gaussian(float(np.std(points)))

    model = mc.KernelRidge(rule, alpha=0.1)
    cross_val_predict(model, X, y, cv=4)
    assert seen == [30] * 4
    with pytest.raises(mc.InvalidInput, match="a rule that returned 3"):
        mc.KernelRidge(lambda X: 3).fit(X, y)
    for bad in ("rbf", mc.Gaussian, mc.Epanechnikov(1.0)):
        with pytest.raises(mc.InvalidInput, match="kernel"):
            mc.KernelRidge(bad).fit(X, y)


def test_the_default_width_ignores_order_repetition_and_survives_anything():
    X, _ = data(50)
    assert mc.median_gaussian(X) == mc.median_gaussian(np.vstack([X[::-1], X[:20]]))
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))[np.triu_indices(50, 1)]
    assert mc.median_gaussian(X).sigma == pytest.approx(np.median(D))
    assert mc.median_gaussian(np.ones((5, 2))).sigma == 1.0
    assert mc.median_gaussian([[3.0]]).sigma == 1.0


def test_pickles_are_small_and_predict_the_same():
    X, y = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    model.loo_predictions_  # noqa: B018  # fills the cache
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_allclose(copy.loo_predictions_, model.loo_predictions_)
    assert len(pickle.dumps(model)) < 40 * 3 * 8 * 2 + 6000


def test_gradients_of_predictions():
    X, y = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, fit_intercept=True).fit(X, y)
    step = 1e-5
    for j, e in enumerate(np.eye(3)):
        slope = (model.predict(X[:4] + step * e) - model.predict(X[:4] - step * e)) / (2 * step)
        np.testing.assert_allclose(model.predict_gradient(X[:4])[:, j], slope, atol=1e-7)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "large", [1.0, 2.0], True, None])
def test_bad_penalties(alpha):
    X, y = data()
    with pytest.raises(mc.InvalidInput, match="alpha"):
        mc.KernelRidge(alpha=alpha).fit(X, y)


def test_bad_targets_and_weights():
    X, y = data()
    broken = y.copy()
    broken[[3, 7]] = np.nan
    with pytest.raises(mc.InvalidInput, match=r"2 NaN or inf, the first \(NaN\) in row 3"):
        mc.KernelRidge().fit(X, broken)
    for bad in (y[:-1], np.array(["a"] * 40), y[:, None, None], [[1.0]] * 39 + [[1.0, 2.0]], y + 1j):
        with pytest.raises(mc.InvalidInput, match="y must"):
            mc.KernelRidge().fit(X, bad)
    for bad in (-np.ones(40), np.zeros(40), np.ones(39), np.full(40, np.nan), ["x"] * 40):
        with pytest.raises(mc.InvalidInput, match="sample_weight"):
            mc.KernelRidge().fit(X, y, sample_weight=bad)


def test_degenerate_data_gives_finite_answers():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.0).fit(np.vstack([X, X]), np.concatenate([y, y + 1]))
        np.testing.assert_allclose(twice.predict(X), y + 0.5, atol=1e-4)
        assert twice.rank_ <= 40
        assert "rank" in twice.status_
        constant = mc.KernelRidge(alpha="loo", fit_intercept=True).fit(X, np.full(40, 3.0))
        np.testing.assert_allclose(constant.predict(X), 3.0, atol=1e-8)
        one = mc.KernelRidge(alpha=0.5).fit([[1.0, 2.0]], [3.0])
        assert one.predict([[1.0, 2.0]])[0] == pytest.approx(2.0)
        wide = mc.KernelRidge(mc.Linear(), alpha=0.1).fit(X.T, X[:3, 0])
        assert np.isfinite(wide.predict(X.T)).all()
        scaled = mc.KernelRidge(alpha=0.1).fit(X * [1e-8, 1.0, 1e8], y)
        assert np.isfinite(scaled.predict(X)).all()


def test_a_gram_that_is_not_positive_names_the_eigenvalue():
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # eigenvalues −1, 1, 3
    for alpha in (0.0, 0.5, 5.0, "loo"):
        for kernel, X in ((mc.Precomputed(), K), (mc.Precomputed(K), np.arange(3))):
            with pytest.raises(mc.InvalidInput, match=r"eigenvalue -1 < 0 .*check.*repair"):
                mc.KernelRidge(kernel, alpha=alpha).fit(X, [1.0, 2.0, 3.0])
    mended = mc.repair(K).K
    assert np.isfinite(mc.KernelRidge(mc.Precomputed(), alpha=0.5).fit(mended, [1.0, 2.0, 3.0]).predict(mended)).all()


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(n=st.integers(1, 12), d=st.integers(1, 3), scale=st.sampled_from([1e-6, 1.0, 1e6]), seed=st.integers(0, 99))
def test_fits_are_finite_on_any_small_data(n, d, scale, seed):
    rng = np.random.default_rng(seed)
    X = scale * rng.integers(-2, 3, (n, d)).astype(float)
    y = rng.normal(size=n)
    for alpha in (0.0, 1e-3, "loo"):
        model = mc.KernelRidge(alpha=alpha, fit_intercept=bool(seed % 2)).fit(X, y)
        assert np.isfinite(model.predict(X)).all()


# -- combinations ------------------------------------------------------------------------------------------------------


def test_alphas_may_be_an_array():
    X, Y = data(t=2)
    listed = mc.KernelRidge(mc.Gaussian(1.0), alpha=[0.1, 0.5]).fit(X, Y)
    given = mc.KernelRidge(mc.Gaussian(1.0), alpha=np.array([0.1, 0.5])).fit(X, Y)
    np.testing.assert_array_equal(given.predict(X), listed.predict(X))
    given.predict_interval(X[:3])


def test_sets_may_be_lists_of_any_length_and_columns_are_forgotten():
    model = mc.KernelRidge(mc.Intersection(), alpha=0.1).fit([[1, 2], [3], [2, 3]], [1.0, 2.0, 3.0])
    assert np.isfinite(model.predict([[1, 2, 3], []])).all()
    assert not hasattr(model, "n_features_in_")
    X, y = data()
    model = mc.KernelRidge(alpha=0.1).fit(X, y)
    assert model.n_features_in_ == 3
    model.set_params(kernel=mc.Intersection()).fit([{1}, {2}], [0.0, 1.0])
    assert not hasattr(model, "n_features_in_")


def test_alpha_by_leave_one_out_on_centres():
    X, y = data(80)
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo", solver="nystrom", n_centers=12, tol=1e-12).fit(X, y)
    assert model.solver_ == "nystrom"
    assert len(model.function_) == 12

    def error(alpha):
        other = mc.KernelRidge(
            mc.Gaussian(1.0), alpha=alpha, solver="nystrom", centers=model.function_.points.raw, tol=1e-12
        )
        return np.mean((other.fit(X, y).loo_predictions_ - y) ** 2)

    best = np.mean((model.loo_predictions_ - y) ** 2)
    assert all(best <= error(alpha) * (1 + 1e-5) for alpha in np.geomspace(1e-6, 1e2, 25))
    beyond = mc.KernelRidge(mc.Gaussian(1.0), alpha="loo", n_centers=12, budget="100 kB").fit(X, y)
    assert beyond.solver_ == "nystrom"
    with pytest.raises(mc.InvalidInput, match="solver"):
        mc.KernelRidge(alpha="loo", solver="foo").fit(X, y)
    with pytest.raises(mc.InvalidInput, match=r"eigendecomposition.*nystrom"):
        mc.KernelRidge(alpha="loo", solver="eigen", budget="100 kB").fit(X, y)


def test_a_refit_forgets_what_it_did_not_do():
    X, y = data()
    model = mc.KernelRidge(alpha="loo").fit(X, y)
    assert hasattr(model, "path_")
    model.set_params(alpha=0.1, fit_intercept=True).fit(X, y)
    assert not hasattr(model, "path_")
    before = model.predict_interval(X[:3])
    model.set_params(fit_intercept=False)  # takes effect at the next fit
    np.testing.assert_array_equal(model.predict_interval(X[:3]), before)


def test_means_of_frames_are_frames():
    import pandas as pd
    import polars as pl

    X, y = data(60)
    for library in (pd, pl):
        frame = library.DataFrame({name: X[:, j] for j, name in enumerate("abc")})
        kernel = mc.Gaussian(1.0).on("a") + mc.Linear().on(["b", "c"])
        model = mc.KernelRidge(kernel, alpha=0.1, solver="nystrom", centers="kmeans", n_centers=8).fit(frame, y)
        assert list(model.function_.points.raw.columns) == ["a", "b", "c"]
        assert model.score(frame, y) > 0.5


def test_masked_targets_text_and_unreachable_parameters_are_refused():
    X, y = data()
    with pytest.raises(mc.InvalidInput, match="masked"):
        mc.KernelRidge().fit(X, np.ma.masked_array(y, mask=y > 1))
    with pytest.raises(mc.InvalidInput, match=r"text.*astype"):
        mc.KernelRidge().fit(X, y.astype(str))
    with pytest.raises(mc.InvalidInput, match="needs a kernel to reach into"):
        mc.KernelRidge().set_params(kernel__sigma=2.0)
    from sklearn.model_selection import RepeatedKFold

    model = mc.KernelRidge().fit(X, y)
    for cv, words in ((np.zeros(7), "fold label"), (RepeatedKFold(n_splits=4, n_repeats=2), "in several")):
        with pytest.raises(mc.InvalidInput, match=words):
            model.cv_predictions(cv)


@pytest.mark.parametrize("wrong", [{"solver": "magic"}, {"n_centers": -1}, {"centers": None}, {"tol": 2.0}])
def test_parameters_are_checked_also_where_the_solver_does_not_read_them(wrong):
    with pytest.raises(mc.errors.InvalidInput, match=next(iter(wrong))):
        mc.KernelRidge(mc.Gaussian(1.0), **wrong).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_who_names_centres_gets_them(alpha):
    X, y = data(40)
    assert mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, n_centers=10).fit(X, y).solver_ == "nystrom"
    assert mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, centers=X[:7]).fit(X, y).solver_ == "nystrom"
    assert mc.KernelRidge(mc.Gaussian(1.0), alpha=alpha, n_centers=40).fit(X, y).solver_ != "nystrom"
    assert mc.KernelPCA(mc.Gaussian(1.0), n_components=2, n_centers=10).fit(X).solver_ == "nystrom"


@pytest.mark.parametrize("params", [{"alpha": 0.1}, {"alpha": 0.0}, {"alpha": "loo"}], ids=["one", "zero", "loo"])
def test_what_the_fit_factorised_is_not_factorised_again(params, monkeypatch):
    """Leave-one-out, intervals and folds come from the solution's own factor; a copy is the model without it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = mc.KernelRidge(mc.Gaussian(1.0), fit_intercept=True, **params).fit(X, y)
    bare = copy.copy(model)
    wanted = bare.loo_predictions_, bare.predict_interval(X[:3]), bare.degrees_of_freedom_
    assert not copy.copy(bare)._cache

    def refuse(*_, **__):
        raise AssertionError("the Gram matrix is built again")

    monkeypatch.setattr("mercer.gram.of", refuse)
    np.testing.assert_allclose(model.loo_predictions_, wanted[0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.predict_interval(X[:3]), wanted[1], rtol=1e-9, atol=1e-10)
    assert model.degrees_of_freedom_ == pytest.approx(wanted[2])
