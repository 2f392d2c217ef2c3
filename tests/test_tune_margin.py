"""Tuning support vector machines: the scores are those of scikit-learn's grid search, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer as mc

X, Y = make_classification(150, 5, n_informative=3, flip_y=0.1, random_state=0)
CS, SIGMAS = [0.1, 1.0, 30.0], [0.5, 2.0]


@pytest.mark.parametrize("data", [(X, Y), load_iris(return_X_y=True)], ids=["two classes", "three classes"])
def test_scores_and_choice_are_those_of_a_grid_search(data):
    A, t = data
    tuned = mc.tune(mc.SVC(mc.Gaussian(1.0), tol=1e-6), A, t, grid={"C": CS, "kernel__sigma": SIGMAS}, cv=5)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    peer = GridSearchCV(svm.SVC(tol=1e-6), {"C": CS, "gamma": [0.5 / s**2 for s in SIGMAS]}, cv=folds).fit(A, t)
    found = {}
    for i, kernel in enumerate(tuned.tuning_.grid.kernels):
        for c, C in enumerate(tuned.tuning_.grid.penalties):
            found[C, round(0.5 / kernel.sigma**2, 9)] = tuned.tuning_.grid.scores[i, c].mean()
    for params, score in zip(peer.cv_results_["params"], peer.cv_results_["mean_test_score"]):
        assert found[params["C"], round(params["gamma"], 9)] == pytest.approx(score, abs=0.014)  # ties of votes
    assert tuned.tuning_.value == pytest.approx(peer.best_score_, abs=0.014)
    assert tuned.C == tuned.tuning_.C
    assert tuned.kernel_ == tuned.tuning_.kernel
    assert tuned.score(A, t) > 0.85
    assert "candidates" in str(tuned.tuning_)


@pytest.mark.thorough
def test_regression_weights_splitters_and_defaults():
    y = np.sin(2 * X[:, 0])
    tuned = mc.tune(mc.SVR(mc.Gaussian(1.0)), X, y, grid={"C": [0.1, 10.0]}, cv=KFold(3, shuffle=True, random_state=0))
    assert tuned.C == 10.0
    assert tuned.tuning_.grid.scores.shape == (1, 2, 3)
    weights = np.where(np.arange(len(X)) % 2, 0.0, 1.0)
    half = mc.tune(mc.SVC(mc.Gaussian(2.0)), X, Y, grid={"C": [1.0]}, cv=2, sample_weight=weights)
    assert (half.support_ % 2 == 0).all()
    default = mc.tune(mc.SVC(), X, Y)
    assert default.tuning_.grid.scores.shape == (5, 5, 5)
    other = mc.tune(mc.SVC(mc.Linear()), X, Y)
    assert other.tuning_.grid.scores.shape == (1, 5, 5)


def test_what_a_grid_may_not_say():
    for grid, words in (({"gamma": [1.0]}, "grid"), ({"C": [0.0, 1.0]}, "> 0"), ({"C": []}, "> 0")):
        with pytest.raises(mc.InvalidInput, match=words):
            mc.tune(mc.SVC(mc.Gaussian(1.0)), X, Y, grid=grid)


def test_a_kernel_matrix_is_cut_both_ways():
    A, t = load_iris(return_X_y=True)
    given = {"grid": {"C": CS}, "cv": 5}
    matrix = mc.tune(mc.SVC(mc.Precomputed()), mc.Gaussian(1.0)(A), t, **given)
    direct = mc.tune(mc.SVC(mc.Gaussian(1.0)), A, t, **given)
    np.testing.assert_array_equal(matrix.tuning_.grid.scores, direct.tuning_.grid.scores)
    assert matrix.C == direct.C


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "name"), [(mc.SVR(mc.Gaussian(1.0)), "epsilon"), (mc.NuSVR(mc.Gaussian(1.0)), "nu")])
def test_the_tube_is_tuned_too(model, name):
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
    values = [0.05, 0.3, 0.9]
    grid = {"C": [1.0, 10.0], name: values, "kernel__sigma": SIGMAS}
    tuned = mc.tune(model, X, y, grid=grid, cv=3)
    peer = GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0)).fit(X, y)
    assert tuned.tuning_.grid.scores.shape == (6, 2, 3)
    assert [other[name] for other in tuned.tuning_.grid.others] == [v for v in values for _ in SIGMAS]
    assert tuned.get_params()[name] == tuned.tuning_.parameters[name] == peer.best_params_[name]
    assert peer.best_params_["C"] == tuned.C
    assert tuned.tuning_.value == pytest.approx(peer.best_score_, abs=1e-3)
    assert f"{name}={tuned.tuning_.parameters[name]:.4g}" in str(tuned.tuning_)


def test_what_cannot_be_tuned_here_is_said():
    steps = make_pipeline(StandardScaler(), mc.SVC(mc.Gaussian(1.0)))
    for model in (mc.NuSVC(), mc.OneClassSVM(), steps):
        with pytest.raises(mc.InvalidInput, match="GridSearchCV"):
            mc.tune(model, X, Y)
    assert GridSearchCV(steps, {"svc__C": [1.0], "svc__kernel__sigma": SIGMAS}, cv=3).fit(X, Y).best_score_ > 0.7
    for more, words in (
        ({"by": "loo"}, "compared by folds.*got 'loo'"),
        ({"cv": 1}, "number of folds from 2.*got 1"),
        ({"cv": 1000}, "number of folds from 2.*1000"),
        ({"grid": {"kernel": mc.Linear()}}, r"list of at least one value for 'kernel', got Linear\(\)"),
        ({"grid": [1.0]}, "dictionary"),
        ({"grid": {"C": "large"}}, "must be > 0, got 'large'"),
        ({"grid": {"epsilon": [0.1]}}, "`grid` must name C, `kernel`"),
    ):
        with pytest.raises(mc.InvalidInput, match=words):
            mc.tune(mc.SVC(mc.Gaussian(1.0)), X, Y, **more)
    with pytest.raises(mc.InvalidInput, match="9 for 150 points"):
        mc.tune(mc.SVC(), X, Y[:9])


# -- folds ------------------------------------------------------------------------------------------------------------


def test_folds_are_fitted_and_scored_by_weight():
    w = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    folds = list(KFold(3).split(X))
    tuned = mc.tune(mc.SVC(mc.Gaussian(2.0)), X, Y, grid={"C": [1.0, 30.0]}, cv=folds, sample_weight=w)
    for j, (train, test) in enumerate(folds):
        for c, C in enumerate([1.0, 30.0]):
            model = mc.SVC(mc.Gaussian(2.0), C=C).fit(X[train], Y[train], w[train])
            assert tuned.tuning_.grid.scores[0, c, j] == pytest.approx(
                model.score(X[test], Y[test], w[test]), abs=1e-12
            )


def test_rows_of_weight_zero_are_in_no_fold():
    w = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    given = {"grid": {"C": [1.0, 30.0]}, "cv": 3, "random_state": 4}
    weighted = mc.tune(mc.SVC(), X, Y, sample_weight=w, **given)
    without = mc.tune(mc.SVC(), X[w > 0], Y[w > 0], **given)
    np.testing.assert_array_equal(weighted.tuning_.grid.scores, without.tuning_.grid.scores)
    assert weighted.kernel_ == without.kernel_


def test_rules_see_the_rows_of_training_only():
    seen = []

    def rule(A):
        seen.append(len(A))
        return mc.median_gaussian(A)

    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    tuned = mc.tune(mc.SVC(rule), X, Y, grid={"C": [1.0]}, cv=3)
    assert {100, 150} == set(seen)
    for j, (train, test) in enumerate(folds.split(X, Y)):
        model = mc.SVC(mc.median_gaussian(X[train])).fit(X[train], Y[train])
        assert tuned.tuning_.grid.scores[0, 0, j] == model.score(X[test], Y[test])
    assert tuned.kernel_ == mc.median_gaussian(X)


def test_widths_in_units_of_the_data_are_those_of_the_rows_of_training():
    A = np.linspace(0.0, 1.0, 60)[:, None]
    A[50:] += 1e6  # rows far away, which are scored only
    y = np.sin(6 * A[:, 0])
    folds = [(np.arange(50), np.arange(50, 60)), (np.arange(25), np.arange(25, 50))]
    tuned = mc.tune(mc.SVR(), A, y, cv=folds)
    for j, (train, test) in enumerate(folds):
        for i, factor in enumerate([0.25, 0.5, 1.0, 2.0, 4.0]):
            width = factor * mc.median_gaussian(A[train]).sigma
            model = mc.SVR(mc.Gaussian(width), C=0.1 * y.std(), epsilon=0.1 * y.std()).fit(A[train], y[train])
            assert tuned.tuning_.grid.scores[i, 0, j] == pytest.approx(model.score(A[test], y[test]), abs=1e-3)


def test_sorted_rows_are_shuffled_unless_a_splitter_keeps_their_order():
    A = np.linspace(0, 6, 90)[:, None]
    y = np.sin(A[:, 0])
    given = {"grid": {"C": [10.0]}}
    model = mc.SVR(mc.Gaussian(1.0), epsilon=0.01)
    assert mc.tune(model, A, y, cv=3, **given).tuning_.value > 0.99
    one, two = (mc.tune(model, A, y, cv=3, random_state=seed, **given).tuning_.grid.scores for seed in (0, 1))
    assert (one != two).any()
    in_order = mc.tune(model, A, y, cv=TimeSeriesSplit(3), **given).tuning_
    assert in_order.grid.scores.shape == (1, 1, 3)
    assert in_order.value < 0.9
    for cv in ([], [(np.arange(90), [])], [(np.arange(200), np.arange(5))]):
        with pytest.raises(mc.InvalidInput, match="fold"):
            mc.tune(model, A, y, cv=cv, **given)


# -- what is searched -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_parameters_of_a_kernel_that_was_given_are_searched():
    A = 100.0 * X
    tuned = mc.tune(mc.SVC(mc.Gaussian(1.0)), A, Y, cv=3)
    assert tuned.tuning_.grid.kernels[0] == mc.Gaussian(1.0)
    assert 20.0 < tuned.kernel_.sigma < 5000.0
    assert tuned.tuning_.value > 0.8
    held = mc.tune(mc.SVC(mc.Gaussian(1.0), C=3.0), A, Y, cv=3, hold=["kernel__sigma", "C"])
    assert held.kernel_ == mc.Gaussian(1.0)
    assert held.C == 3.0
    fixed = mc.tune(mc.SVC(mc.Gaussian(mc.Fixed(1.0))), A, Y, cv=2)
    assert fixed.kernel_.sigma == 1.0
    with pytest.raises(mc.InvalidInput, match="`hold` must name"):
        mc.tune(mc.SVC(mc.Gaussian(1.0)), A, Y, hold=["kernel__nu"])


@pytest.mark.thorough
def test_parameters_that_are_no_widths_are_searched_one_after_the_other():
    own = np.random.default_rng(3)
    A = own.uniform(0, 12, size=(120, 1))
    y = np.sin(2 * np.pi * A[:, 0] / 3.0) > 0
    tuned = mc.tune(mc.SVC(mc.Periodic(1.0, period=1.5), C=10.0), A, y, cv=3, hold=["C"])
    assert tuned.kernel_.period == pytest.approx(3.0, rel=1e-9)
    assert tuned.tuning_.value > 0.9
    names = {k.theta.round(6).tobytes() for k in tuned.tuning_.grid.kernels}
    assert len(names) > 8  # several values of either parameter
    summed = mc.tune(
        mc.SVC(2.0 * mc.Gaussian([1.0, 1.0, 1.0, 1.0, 1.0]) + mc.Polynomial(2, c=1.0)), X[:80], Y[:80], cv=2, hold=["C"]
    )
    widths = {k.parts[0].kernel.sigma[0] for k in summed.tuning_.grid.kernels}
    assert len(widths) == 6


# -- the baseline -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_what_is_no_better_than_a_guess_is_said():
    own = np.random.default_rng(0)
    labels = (own.uniform(size=150) < 0.3).astype(int)
    noise = mc.tune(mc.SVC(mc.Gaussian(0.01)), own.normal(size=(150, 4)), labels, grid={"C": [1e4]}, cv=3).tuning_
    assert noise.baseline == pytest.approx(1 - labels.mean(), abs=0.01)
    assert noise.beats_baseline is False
    assert "always predicting the same" in str(noise)
    good = mc.tune(mc.SVC(), X, Y, cv=3).tuning_
    assert good.beats_baseline is True
    assert "always predicting" not in str(good)


def test_the_baseline_follows_weights_and_the_kind_of_model():
    y = X[:, 0] ** 3
    w = np.where(y > 0, 3.0, 1.0)
    folds = list(KFold(3).split(X))
    found = mc.tune(mc.SVR(mc.Linear()), X, y, grid={"C": [1.0]}, cv=folds, sample_weight=w).tuning_
    means = [np.average(y[a], weights=w[a]) for a, _ in folds]
    spreads = [(np.average((y[b] - np.average(y[b], weights=w[b])) ** 2, weights=w[b])) for _, b in folds]
    errors = [np.average((y[b] - m) ** 2, weights=w[b]) for (_, b), m in zip(folds, means)]
    assert found.baseline == pytest.approx(1 - np.mean(np.array(errors) / spreads), rel=1e-9)
    quantile = mc.tune(mc.KernelQuantileRegressor(mc.Linear(), quantile=0.9), X, y, grid={"C": [1.0]}, cv=3).tuning_
    assert -0.5 < quantile.baseline <= 0.0


@pytest.mark.thorough
def test_a_regression_is_tuned_in_the_units_of_its_targets():
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
    same = mc.tune(mc.SVR(mc.Gaussian(1.0), epsilon=0.1 * y.std()), X, y, cv=3)
    for unit in (1e-4, 1e5):
        machine = mc.SVR(mc.Gaussian(1.0), epsilon=0.1 * unit * y.std(), tol=1e-3 * unit)
        tuned = mc.tune(machine, X, unit * y, cv=3)
        assert tuned.C / unit == pytest.approx(same.C, rel=1e-9)
        assert tuned.epsilon / unit == pytest.approx(same.epsilon, rel=1e-9)
        assert tuned.tuning_.value == pytest.approx(same.tuning_.value, abs=1e-3)
        assert tuned.tuning_.value > 0.5
    held = mc.tune(mc.SVR(mc.Gaussian(1.0), epsilon=0.3), X, y, cv=3, hold=["epsilon", "kernel__sigma"])
    assert held.epsilon == 0.3
