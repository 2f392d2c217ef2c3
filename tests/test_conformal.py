"""Conformal intervals: the guarantee by simulation, and closed forms against what they stand for, refitting."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.linear_model import Ridge as LinearRidge
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models import conformal
from mercer.models.conformal import ConformalRegressor, with_intervals
from mercer.models.local.nadaraya_watson import NadarayaWatsonRegressor
from mercer.models.local.neighbors import KernelNeighborsRegressor
from mercer.models.quantiles import around, plus_ends
from mercer.models.quantiles import conformal as quantile
from mercer.models.residual_scale import ResidualScale


def data(n, rng, noise=0.3):
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_t(3, n)


def covered(ends, y):
    return float(np.mean((ends[..., 0] <= y) & (y <= ends[..., 1])))


def simulate(model, repetitions, n, *coverages, m=200, noise=0.3):
    """For each coverage, the mean share that is covered over independent data sets, and its standard error."""
    shares = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X, y = data(n, rng, noise)
        Z, t = data(m, rng, noise)
        fitted = clone(model).fit(X, y)
        shares.append([covered(fitted.predict_interval(Z, coverage), t) for coverage in coverages])
    return list(zip(np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(repetitions)))


# -- the guarantee ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "normalised"),
    [
        (LinearRegression(), False),  # wrong about the function: the guarantee does not ask
        (mc.KernelRidge(mc.Gaussian(0.7), alpha=0.1), False),
        (KernelNeighborsRegressor(mc.Linear(), n_neighbors=4), True),
        (BayesianRidge(), True),
    ],
    ids=["linear", "ridge", "neighbours", "bayes"],
)
def test_split_covers_exactly_as_often_as_it_says(model, normalised):
    # 19 rows calibrate: ranks 18 and 15 of 20 are 0.9 and 0.75, and one rank less or more would be off by 0.05.
    conformal = ConformalRegressor(model, cv=2, normalised=normalised)
    for coverage, (mean, error) in zip((0.9, 0.75), simulate(conformal, 150, 38, 0.9, 0.75)):
        assert abs(mean - coverage) < 4 * error < 0.04


@pytest.mark.thorough
def test_other_numbers_of_rows_cover_more_but_not_by_much():
    for n in (20, 25, 31):  # calibration rows 10, 13, 16: ranks over n + 1 above 0.8, by up to 1/(n + 1)
        half = -(-n // 2)
        [(mean, error)] = simulate(ConformalRegressor(LinearRegression(), cv=2), 150, n, 0.8)
        assert abs(mean - np.ceil(0.8 * (half + 1)) / (half + 1)) < 4 * error


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["jackknife+", "cv+"])
@pytest.mark.parametrize(
    "model",
    [mc.KernelRidge(mc.Gaussian(0.7), alpha=0.1), KernelNeighborsRegressor(mc.Linear(), n_neighbors=3)],
    ids=["ridge", "neighbours"],
)
def test_all_rows_cover_what_is_promised_and_about_what_is_asked(model, method):
    [(mean, error)] = simulate(ConformalRegressor(model, method=method), 50, 40, 0.9)
    assert mean - 4 * error > 0.8
    assert 0.86 < mean < 0.97


@pytest.mark.thorough
def test_jackknife_plus_holds_where_the_plain_jackknife_fails():
    plain, plus = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        beta = rng.normal(size=20)
        X, Z = rng.normal(size=(20, 20)), rng.normal(size=(100, 20))
        y, t = X @ beta + rng.normal(size=20), Z @ beta + rng.normal(size=100)
        model = ConformalRegressor(LinearRegression(fit_intercept=False), method="jackknife+").fit(X, y)
        plus.append(covered(model.predict_interval(Z, 0.8), t))
        mean, reach = model.predict(Z), np.sort(model.residuals_)[16]  # rank ⌈0.8·21⌉
        plain.append(covered(np.column_stack([mean - reach, mean + reach]), t))
    assert np.mean(plain) < 0.5 < 0.6 < np.mean(plus)  # 1 − 2·0.2 is promised


# -- what the intervals are -------------------------------------------------------------------------------------------


def test_split_is_the_quantile_of_held_out_residuals():
    X, y = data(60, np.random.default_rng(0))
    splitter = ShuffleSplit(1, test_size=20, random_state=3)
    train, held_out = next(splitter.split(X))
    model = ConformalRegressor(LinearRegression(), cv=splitter).fit(X, y)
    fitted = LinearRegression().fit(X[train], y[train])
    residuals = np.abs(y[held_out] - fitted.predict(X[held_out]))
    np.testing.assert_allclose(model.residuals_, residuals)
    reach = np.sort(residuals)[18]  # ⌈0.9·21⌉ = 19th
    np.testing.assert_allclose(model.predict_interval(X)[:, 1], fitted.predict(X) + reach)
    np.testing.assert_allclose(model.predict_interval(X)[:, 0], fitted.predict(X) - reach)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X))
    prefit = ConformalRegressor(fitted, cv="prefit").fit(X[held_out], y[held_out])
    np.testing.assert_allclose(prefit.predict_interval(X), model.predict_interval(X))
    assert (prefit.fits_, model.fits_, model.n_calibration_) == (0, 1, 20)
    assert prefit.model_ is fitted


@pytest.mark.parametrize("normalised", [False, True])
def test_cv_plus_is_its_definition(normalised):
    X, y = data(30, np.random.default_rng(0))
    Z = np.linspace(-2, 2, 7)[:, None]
    found = ConformalRegressor(BayesianRidge(), method="cv+", cv=KFold(3), normalised=normalised).fit(X, y)
    below, above = [], []
    for train, test in KFold(3).split(X):
        model = BayesianRidge().fit(X[train], y[train])
        for i in test:
            (f,), (s,) = model.predict(X[i : i + 1], return_std=True)
            mean, std = model.predict(Z, return_std=True)
            reach = abs(y[i] - f) * (std / s if normalised else 1.0)
            below.append(mean - reach)
            above.append(mean + reach)
    rank = 28  # ⌈0.9·31⌉
    np.testing.assert_allclose(found.predict_interval(Z)[:, 1], np.sort(above, axis=0)[rank - 1])
    np.testing.assert_allclose(found.predict_interval(Z)[:, 0], np.sort(below, axis=0)[30 - rank])
    assert found.fits_ == 4
    np.testing.assert_allclose(found.predict(Z), BayesianRidge().fit(X, y).predict(Z))


IN_ONE_FIT = [
    mc.KernelRidge(mc.Gaussian(0.7), alpha=0.1),
    mc.KernelRidge(mc.Laplacian(1.0), alpha=0.3, fit_intercept=True),
    mc.Ridge(alpha=0.5),
    mc.GaussianProcessRegressor(mc.Gaussian(0.7), alpha=0.1),
    KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=3, weights="distance"),
    NadarayaWatsonRegressor(bandwidth=0.3),
    NadarayaWatsonRegressor(bandwidth=0.01),  # a single row decides almost everywhere
    NadarayaWatsonRegressor(mc.Epanechnikov(0.2)),
]


@pytest.mark.parametrize(
    ("model", "targets"), [*((model, 2) for model in IN_ONE_FIT), *((model, 1) for model in IN_ONE_FIT[::4])], ids=repr
)
def test_closed_forms_are_refits(model, targets, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = data(30, rng)
    y = y if targets == 1 else np.column_stack([y, X[:, 0] ** 2])
    Z = np.concatenate([X[:3], rng.uniform(-2, 2, (6, 1)), [[9.0]]])
    once = ConformalRegressor(model, method="jackknife+").fit(X, y)
    ends = once.predict_interval(Z, 0.8)
    assert once.fits_ == 1
    assert ends.shape == ((10, 2) if targets == 1 else (10, 2, 2))
    monkeypatch.setattr(conformal, "_in_one_fit", lambda model: False)
    again = ConformalRegressor(model, method="jackknife+").fit(X, y)
    assert again.fits_ == 31
    np.testing.assert_allclose(once.residuals_, again.residuals_, atol=1e-8)
    np.testing.assert_allclose(ends, again.predict_interval(Z, 0.8), atol=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model",
    [
        mc.KernelRidge(),
        mc.KernelRidge(mc.Gaussian(1.0), alpha="loo"),
        mc.KernelRidge(mc.Gaussian(1.0), tune="evidence"),
        mc.KernelRidge(mc.Gaussian(1.0), solver="nystrom", n_centers=5),
        mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.1, normalize_y=True),
        KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors="loo"),
        NadarayaWatsonRegressor(bandwidth="scott"),
        LinearRidge(),
    ],
    ids=repr,
)
def test_what_the_rows_have_chosen_is_chosen_again_without_each(model):
    X, y = data(12, np.random.default_rng(0))
    fitted = ConformalRegressor(model, method="jackknife+").fit(X, y)
    assert fitted.fits_ == 13
    refits = [clone(model).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(12)]
    np.testing.assert_allclose(fitted.residuals_, np.abs(y - refits), atol=1e-10)


def test_the_order_of_rows_does_not_matter():
    X, y = data(40, np.random.default_rng(0))
    Z = np.linspace(-2, 2, 9)[:, None]
    order = np.random.default_rng(1).permutation(40)
    for model in (mc.KernelRidge(mc.Gaussian(0.7), alpha=0.1), LinearRegression()):
        plus = ConformalRegressor(model, method="jackknife+")
        expect = clone(plus).fit(X, y).predict_interval(Z)
        np.testing.assert_allclose(plus.fit(X[order], y[order]).predict_interval(Z), expect, atol=1e-9)
    fitted = LinearRegression().fit(X[:20], y[:20])
    expect = ConformalRegressor(fitted, cv="prefit").fit(X, y).predict_interval(Z)
    found = ConformalRegressor(fitted, cv="prefit").fit(X[order], y[order]).predict_interval(Z)
    np.testing.assert_array_equal(found, expect)


def test_low_coverage_gives_no_interval_upside_down():
    others = np.array([[[0.0], [10.0], [20.0]]])
    ends = plus_ends(others, np.zeros((3, 1)), 0.25)  # quantiles cross: 20 below, 0 above
    assert ends.tolist() == [[[10.0, 10.0]]]


# -- normalised -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_normalised_widths_follow_the_noise(method):
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.uniform(0, 1, (n, 1))
        return X, (0.1 + 2 * X[:, 0]) * rng.normal(size=n)

    (X, y), (Z, t) = draw(700), draw(1500)
    noisy = Z[:, 0] > 0.8
    model = KernelNeighborsRegressor(mc.Linear(), n_neighbors=45)
    widths, shares = {}, {}
    for normalised in (False, True):
        ends = ConformalRegressor(model, method=method, normalised=normalised).fit(X, y).predict_interval(Z)
        widths[normalised] = np.ptp(ends, axis=1)
        shares[normalised] = covered(ends[noisy], t[noisy])
        assert covered(ends, t) == pytest.approx(0.9, abs=0.04)
    assert np.corrcoef(widths[True], 0.1 + 2 * Z[:, 0])[0, 1] > 0.9
    assert np.ptp(widths[False]) < 0.5 < np.ptp(widths[True])
    assert shares[False] < 0.8 < 0.85 < shares[True]


def test_the_deviation_of_a_new_target_is_taken_where_a_model_knows_it():
    X, y = data(60, np.random.default_rng(0))
    model = ConformalRegressor(mc.GaussianProcessRegressor(mc.Gaussian(0.5), alpha=0.1), normalised=True).fit(X, y)
    Z = np.array([[0.0], [1.0], [30.0]])
    mean, std = model.model_.predict_distribution(Z)
    ends = model.predict_interval(Z)
    np.testing.assert_allclose(np.ptp(ends, axis=1) / std, 2 * np.sort(model.residuals_)[11])  # ⌈0.9·13⌉ = 12th
    np.testing.assert_allclose(ends.mean(axis=1), mean)


def test_models_without_a_deviation():
    X, y = data(40, np.random.default_rng(0))
    with pytest.raises(mc.InvalidInput, match=r"predict\(X, return_std=True\).*LinearRegression"):
        ConformalRegressor(LinearRegression(), normalised=True).fit(X, y)
    with pytest.raises(mc.InvalidInput, match="standard deviation is > 0"):
        ConformalRegressor(KernelNeighborsRegressor(mc.Linear(), n_neighbors=1), normalised=True).fit(X, y)


# -- any data, any regressor ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_sets_matrices_and_frames(method):
    rng = np.random.default_rng(0)
    sets = [set(rng.choice(10, rng.integers(1, 6), replace=False).tolist()) for _ in range(40)]
    y = np.array([len(s) for s in sets]) + 0.1 * rng.normal(size=40)
    k = mc.Intersection()
    given = {"method": method, "cv": 2}
    on_sets = ConformalRegressor(mc.KernelRidge(k, alpha=0.5), **given).fit(sets, y)
    expect = on_sets.predict_interval(sets[:7], 0.8)
    K = k(sets)
    bare = ConformalRegressor(mc.KernelRidge(mc.Precomputed(), alpha=0.5), **given).fit(K, y)
    np.testing.assert_allclose(bare.predict_interval(K[:7], 0.8), expect, atol=1e-9)
    np.testing.assert_allclose(bare.predict(K[:7]), on_sets.predict(sets[:7]), atol=1e-9)
    assert bare.n_features_in_ == 40
    pandas = pytest.importorskip("pandas")
    X, y = data(40, rng)
    frame = pandas.DataFrame(X, columns=["x"])
    model = ConformalRegressor(mc.KernelRidge(mc.Gaussian(1.0)), **given).fit(frame, pandas.Series(y))
    plain = ConformalRegressor(mc.KernelRidge(mc.Gaussian(1.0)), **given).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(frame, 0.8), plain.predict_interval(X, 0.8))
    assert model.feature_names_in_.tolist() == ["x"]


def test_several_targets_have_their_own_intervals():
    X, y = data(60, np.random.default_rng(0))
    Y = np.column_stack([y, 10 * y])
    for method in ("split", "cv+", "jackknife+"):
        for model in (mc.KernelRidge(mc.Gaussian(1.0)), LinearRegression()):
            ends = ConformalRegressor(model, method=method).fit(X, Y).predict_interval(X[:5])
            assert ends.shape == (5, 2, 2)
            np.testing.assert_allclose(ends[:, 1], 10 * ends[:, 0], rtol=1e-6)
            one = ConformalRegressor(model, method=method).fit(X, y).predict_interval(X[:5])
            np.testing.assert_allclose(ends[:, 0], one, rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        mc.SVR(mc.Gaussian(1.0)),
        mc.RBFNetwork(),
        mc.BayesianLinearRegression(),
        RandomForestRegressor(5, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_every_regressor(model):
    X, y = data(60, np.random.default_rng(0))
    for method in ("split", "cv+"):
        ends = ConformalRegressor(model, method=method, cv=3).fit(X, y).predict_interval(X)
        assert (ends[:, 0] <= ends[:, 1]).all()
        assert 0.8 < covered(ends, y) <= 1.0


def test_parameters_reach_the_kernel():
    X, y = data(40, np.random.default_rng(0))
    model = ConformalRegressor(mc.KernelRidge(mc.Gaussian(1.0)))
    grid = GridSearchCV(model, {"model__kernel__sigma": [0.1, 1.0], "model__alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert set(grid.best_params_) == {"model__kernel__sigma", "model__alpha"}
    assert model.set_params(model__kernel__sigma=0.25).model.kernel == mc.Gaussian(0.25)


def test_folds_are_drawn_by_the_random_state():
    X, y = data(40, np.random.default_rng(0))
    one, two, other = (
        ConformalRegressor(LinearRegression(), random_state=seed).fit(X, y).residuals_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    copy = pickle.loads(pickle.dumps(ConformalRegressor(LinearRegression(), method="cv+").fit(X, y)))
    assert copy.predict_interval(X).shape == (40, 2)


# -- what cannot be ---------------------------------------------------------------------------------------------------


def test_too_few_rows_name_the_smallest_number():
    X, y = data(40, np.random.default_rng(0))
    model = ConformalRegressor(LinearRegression()).fit(X, y)  # 8 rows calibrate
    assert np.isfinite(model.predict_interval(X, 8 / 9)).all()
    with pytest.raises(mc.InvalidInput, match=r"coverage 0\.9 needs at least 9 held-out rows, got 8"):
        model.predict_interval(X, 0.9)
    with pytest.raises(mc.InvalidInput, match=r"coverage 0\.99 needs at least 99 held-out rows, got 40"):
        ConformalRegressor(LinearRegression(), method="jackknife+").fit(X, y).predict_interval(X, 0.99)
    nine = ConformalRegressor(LinearRegression(), cv=ShuffleSplit(1, test_size=9, random_state=0)).fit(X, y)
    assert np.isfinite(nine.predict_interval(X, 0.9)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "jackknife"}, "`method` must be"),
        ({"cv": "prefit", "method": "cv+"}, "`cv` must be a number of folds"),
        ({"cv": "loo"}, "`cv` must be a number of folds"),
        ({"cv": True}, "`cv` must be a number of folds"),
        ({"cv": 1}, "`cv` must be a number of folds from 2"),
        ({"cv": 21, "method": "cv+"}, "got 21 for n_samples = 20"),
        ({"cv": ShuffleSplit(3, random_state=0), "method": "cv+"}, "every row in one test fold"),
        ({"cv": [(np.arange(15), np.arange(10, 20))]}, "without common rows"),
        ({"model": 3}, "`model` must be a regressor"),
        ({"model": LinearRegression}, "`model` must be a regressor"),
        ({"random_state": "a"}, "`random_state`"),
    ],
)
def test_bad_arguments(given, message):
    X, y = data(20, np.random.default_rng(0))
    with pytest.raises(mc.InvalidInput, match=message):
        ConformalRegressor(**{"model": LinearRegression(), **given}).fit(X, y)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, True, "0.9", np.nan])
def test_bad_coverage(coverage):
    X, y = data(20, np.random.default_rng(0))
    with pytest.raises(mc.InvalidInput, match="`coverage` must be a number in"):
        ConformalRegressor(LinearRegression()).fit(X, y).predict_interval(X, coverage)


# -- weights ----------------------------------------------------------------------------------------------------------


def _weighted_ends(values, coverage, w):
    """By definition: the first value whose weight, with all below it, is coverage · (Σw + mean w)."""
    order = np.argsort(values)
    need = coverage * (w.sum() + w.mean()) * (1 - 1e-12)
    return values[order][np.flatnonzero(np.cumsum(w[order]) >= need)[0]]


@pytest.mark.parametrize(
    "model",
    [
        mc.KernelRidge(mc.Gaussian(0.7), alpha=0.5),
        mc.Ridge(alpha=0.5),
        mc.GaussianProcessRegressor(mc.Gaussian(0.7), alpha=0.5),
        mc.KernelNeighborsRegressor(mc.Gaussian(0.7), n_neighbors=4),
    ],
)
def test_jackknife_plus_counts_weights(model):
    """Ends are weighted quantiles over n refits; equal weights change nothing."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(24, 1)), rng.normal(size=(5, 1))
    y, w = X[:, 0] + rng.normal(size=24) * (1 + (X[:, 0] > 0)), np.where(X[:, 0] > 0, 3.0, 0.5)
    more = {"method": "jackknife+"} if isinstance(model, mc.GaussianProcessRegressor) else {}
    fitted = clone(model).fit(X, y, w)
    found = fitted.predict_interval(Z, 0.8, **more)
    others = [clone(model).fit(np.delete(X, i, 0), np.delete(y, i), np.delete(w, i)) for i in range(24)]
    spreads = [abs(y[i] - other.predict(X[[i]])[0]) for i, other in enumerate(others)]
    at = np.array([other.predict(Z) for other in others])
    for j in range(len(Z)):
        high = _weighted_ends(at[:, j] + spreads, 0.8, w)
        low = -_weighted_ends(spreads - at[:, j], 0.8, w)
        assert found[j] == pytest.approx([low, high], rel=1e-6)


def test_quantiles_with_equal_weights_are_those_without():
    values = np.random.default_rng(1).normal(size=(30, 4))
    for coverage in (0.1, 0.5, 0.9, 30 / 31):
        assert (quantile(values, coverage, np.full(30, 7.0)) == quantile(values, coverage)).all()
    with pytest.raises(InvalidInput, match="at most"):
        quantile(values, 0.99)


@pytest.mark.thorough
@pytest.mark.parametrize("residuals", ["signed", "local"])
def test_two_sided_intervals_cover_on_each_side(residuals):
    """A new target is below and above the interval as rarely as promised, and not much more rarely."""
    rng = np.random.default_rng(0)
    model = mc.Ridge(alpha=0.0).fit([[0.0], [1.0]], [5.0, 6.0])
    for n, coverage in ((39, 0.9), (99, 0.8), (199, 0.99)):
        below, above = [], []
        for _ in range(120):
            X = rng.uniform(size=(n + 20, 1))
            noise = rng.exponential(size=n + 20)  # all on one side
            f = model.predict(X)
            y = f + noise if residuals == "signed" else f * (1 + noise)
            held = mc.ConformalRegressor(model, cv="prefit", residuals=residuals).fit(X[:n], y[:n])
            low, high = held.predict_interval(X[n:], coverage).T
            below.append(y[n:] < low)
            above.append(y[n:] > high)
        below, above = np.mean(below), np.mean(above)
        assert max(below, above) < (1 - coverage) / 2 + 0.02
        assert 1 - coverage - 0.03 < below + above < 1 - coverage + 0.03


def test_two_sides_need_twice_the_rows():
    X = np.arange(24.0)[:, None]
    model = mc.Ridge().fit(X, X[:, 0])
    one, two = (mc.ConformalRegressor(model, cv="prefit", residuals=r).fit(X, X[:, 0]) for r in ("absolute", "signed"))
    assert one.largest_coverage_ == pytest.approx(24 / 25)
    assert two.largest_coverage_ == pytest.approx(23 / 25)
    for held in (one, two):
        held.predict_interval(X, held.largest_coverage_)
        with pytest.raises(mc.InvalidInput, match="at least"):
            held.predict_interval(X, held.largest_coverage_ + 0.01)
    with pytest.raises(mc.InvalidInput, match="at least 199"):
        two.predict_interval(X, 0.99)


@pytest.mark.parametrize("wrong", [{"residuals": "local", "method": "cv+"}, {"residuals": "squared"}])
def test_residuals_must_fit_the_method(wrong):
    with pytest.raises(mc.InvalidInput, match="`residuals`"):
        mc.ConformalRegressor(mc.Ridge(), **wrong).fit(np.arange(9.0)[:, None], np.arange(9.0))


def test_local_residuals_have_their_own_scale():
    X = np.arange(9.0)[:, None]
    model = mc.ConformalRegressor(mc.GaussianProcessRegressor(mc.Gaussian(1.0)), residuals="local", normalised=True)
    with pytest.raises(mc.InvalidInput, match="has a scale of its own"):
        model.fit(X, X[:, 0])


def covered_by_thirds(ends, y, f):
    """The share of targets inside, by thirds of the prediction."""
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return [float(inside[part].mean()) for part in np.array_split(np.argsort(f), 3)]


def growing_errors(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, 1.0 + 10.0 * X[:, 0] + 3.0 * X[:, 0] ** 2 * rng.normal(size=n)


@pytest.mark.thorough
def test_local_intervals_cover_small_and_large_predictions_alike(tmp_path):
    """The errors of this table grow from 0 to 3; without a scale small predictions are always inside."""
    (X, y), (held, z), (new, t) = (growing_errors(n, seed) for n, seed in ((400, 0), (1000, 1), (6000, 2)))
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, y)
    f = model.predict(new)
    for plain, local in (
        (model.jackknife_plus(new, 0.8), model.jackknife_plus(new, 0.8, local=True)),
        tuple(
            mc.ConformalRegressor(model, cv="prefit", residuals=kind).fit(held, z).predict_interval(new, 0.8)
            for kind in ("signed", "local")
        ),
    ):
        assert covered_by_thirds(plain, t, f)[0] > 0.95
        assert covered_by_thirds(plain, t, f)[2] < 0.65
        assert all(0.68 < share < 0.9 for share in covered_by_thirds(local, t, f))
    conformal = mc.ConformalRegressor(model, cv="prefit", residuals="local").fit(held, z)
    conformal.save(tmp_path / "local.mercer")
    again = mc.load(tmp_path / "local.mercer").predict_interval(new[:50], 0.8)
    assert (again == conformal.predict_interval(new[:50], 0.8)).all()


def test_local_intervals_of_positive_targets_do_not_go_below_zero():
    X, y = growing_errors(300, 0)
    model = mc.Ridge().fit(X, np.maximum(y, 0.0))
    ends = mc.ConformalRegressor(model, cv="prefit", residuals="local").fit(X, np.maximum(y, 0.0))
    assert ends.predict_interval(X - 5.0, 0.9).min() == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_errors_without_a_trend_have_nearly_one_scale(seed):
    rng = np.random.default_rng(seed)
    f, r = rng.normal(size=500), rng.standard_t(3, size=500)
    scale, own = ResidualScale.of(f, r)
    ends = scale(np.array([-1.6, 1.6]))  # of 90 % of the rows
    assert ends.max() < 1.6 * ends.min()
    assert own.mean() == pytest.approx(np.abs(r).mean(), rel=0.05)
    assert (ResidualScale.of(f, r, np.ones(500))[0].sizes == scale.sizes).all()


def test_a_scale_knows_weights_and_hardly_sees_the_row_itself():
    rng = np.random.default_rng(0)
    f = np.exp(np.sort(rng.normal(size=100)))
    r = f * rng.normal(size=100)
    scale, own = ResidualScale.of(f, r)
    changed = np.where(np.arange(100) == 60, 3.0 * r, r)
    assert ResidualScale.of(f, changed)[1][60] == pytest.approx(own[60], rel=0.1)
    larger = np.where(np.arange(100) < 50, r, 5.0 * r)
    light, _ = ResidualScale.of(f, larger, np.where(np.arange(100) < 50, 1.0, 1e-6))
    assert light(f[40:41]) == pytest.approx(scale(f[40:41]), rel=0.3), "rows that hardly count"


@pytest.mark.parametrize("n", [60, 115])
def test_large_predictions_of_small_tables_are_covered(n):
    """A hundred rows cannot prove that errors grow with the prediction, but intervals must follow if they seem to."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(40):
        f, g = np.exp(0.7 * rng.normal(size=n)), np.exp(0.7 * rng.normal(size=300))
        y, z = (v + 0.3 * np.sqrt(v) * rng.normal(size=len(v)) for v in (f, g))
        scale, own = ResidualScale.of(f, y - f)
        below, above = around(((y - f) / own)[:, None], 0.9)
        inside = (g + below * scale(g) <= z) & (z <= g + above * scale(g))
        shares.append([inside[part].mean() for part in np.array_split(np.argsort(g), 3)])
    small, middle, large = np.mean(shares, axis=0)
    assert min(small, middle) > 0.88
    assert 0.87 < large < 0.95  # 0.79 and 0.85 if the size is constant unless a trend is proven


def test_counts_that_vary_more_than_poissons_get_intervals_by_their_residuals():
    """The quantiles of a Poisson distribution would hold about half of such counts."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 1))
    y = rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(2.0 + X[:, 0])))
    train, held_out, new = slice(0, 200), slice(200, 400), slice(400, 600)
    glm = mc.KernelGLM(mc.Gaussian(1.0), family="poisson", alpha=1.0).fit(X[train], y[train])
    model = with_intervals(glm, X[held_out], y[held_out])
    inside = [
        float(((ends[:, 0] <= y[new]) & (y[new] <= ends[:, 1])).mean())
        for ends in (glm.predict_interval(X[new], 0.9), model.predict_interval(X[new], 0.9))
    ]
    assert inside[0] < 0.75 < 0.85 < inside[1] < 0.97
    assert (model.predict_interval(X[new], 0.9) >= 0).all()
