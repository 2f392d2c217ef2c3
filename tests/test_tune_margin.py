"""Tuning support vector machines: the scores are those of scikit-learn's grid search, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer as mc

X, Y = make_classification(150, 5, n_informative=3, flip_y=0.1, random_state=0)
CS, SIGMAS = [0.1, 1.0, 30.0], [0.5, 2.0]


@pytest.mark.parametrize("data", [(X, Y), load_iris(return_X_y=True)], ids=["two classes", "three classes"])
def test_scores_and_choice_are_those_of_a_grid_search(data):
    A, t = data
    tuned = mc.tune(mc.SVC(mc.Gaussian(1.0), tol=1e-6), A, t, grid={"C": CS, "kernel__sigma": SIGMAS}, cv=5)
    peer = GridSearchCV(svm.SVC(tol=1e-6), {"C": CS, "gamma": [0.5 / s**2 for s in SIGMAS]}, cv=5).fit(A, t)
    found = {}
    for i, kernel in enumerate(tuned.tuning_.kernels):
        for c, C in enumerate(tuned.tuning_.Cs):
            found[C, round(0.5 / kernel.sigma**2, 9)] = tuned.tuning_.scores[i, c].mean()
    for params, score in zip(peer.cv_results_["params"], peer.cv_results_["mean_test_score"]):
        assert found[params["C"], round(params["gamma"], 9)] == pytest.approx(score, abs=0.014)  # ties of votes
    assert tuned.tuning_.value == pytest.approx(peer.best_score_, abs=0.014)
    assert tuned.C == tuned.tuning_.C
    assert tuned.kernel_ == tuned.tuning_.kernel
    assert tuned.score(A, t) > 0.85
    assert "candidates" in str(tuned.tuning_)


def test_regression_weights_splitters_and_defaults():
    y = np.sin(2 * X[:, 0])
    tuned = mc.tune(mc.SVR(mc.Gaussian(1.0)), X, y, grid={"C": [0.1, 10.0]}, cv=KFold(3, shuffle=True, random_state=0))
    assert tuned.C == 10.0
    assert tuned.tuning_.scores.shape == (1, 2, 3)
    weights = np.where(np.arange(len(X)) % 2, 0.0, 1.0)
    half = mc.tune(mc.SVC(mc.Gaussian(2.0)), X, Y, grid={"C": [1.0]}, cv=2, sample_weight=weights)
    assert (half.support_ % 2 == 0).all()
    default = mc.tune(mc.SVC(), X, Y)
    assert default.tuning_.scores.shape == (5, 5, 5)
    other = mc.tune(mc.SVC(mc.Linear()), X, Y)
    assert other.tuning_.scores.shape == (1, 5, 5)


def test_what_a_grid_may_not_say():
    for grid, words in (({"gamma": [1.0]}, "grid"), ({"C": [0.0, 1.0]}, "> 0"), ({"C": []}, "> 0")):
        with pytest.raises(mc.InvalidInput, match=words):
            mc.tune(mc.SVC(mc.Gaussian(1.0)), X, Y, grid=grid)


def test_a_kernel_matrix_is_cut_both_ways():
    A, t = load_iris(return_X_y=True)
    given = {"grid": {"C": CS}, "cv": 5}
    matrix = mc.tune(mc.SVC(mc.Precomputed()), mc.Gaussian(1.0)(A), t, **given)
    direct = mc.tune(mc.SVC(mc.Gaussian(1.0)), A, t, **given)
    np.testing.assert_array_equal(matrix.tuning_.scores, direct.tuning_.scores)
    assert matrix.C == direct.C


@pytest.mark.parametrize(("model", "name"), [(mc.SVR(mc.Gaussian(1.0)), "epsilon"), (mc.NuSVR(mc.Gaussian(1.0)), "nu")])
def test_the_tube_is_tuned_too(model, name):
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
    values = [0.05, 0.3, 0.9]
    grid = {"C": [1.0, 10.0], name: values, "kernel__sigma": SIGMAS}
    tuned = mc.tune(model, X, y, grid=grid, cv=3)
    peer = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert tuned.tuning_.scores.shape == (6, 2, 3)
    assert [other[name] for other in tuned.tuning_.others] == [v for v in values for _ in SIGMAS]
    assert tuned.get_params()[name] == tuned.tuning_.other[name] == peer.best_params_[name]
    assert peer.best_params_["C"] == tuned.C
    assert tuned.tuning_.value == pytest.approx(peer.best_score_, abs=1e-3)
    assert f"{name}={tuned.tuning_.other[name]:.4g}" in str(tuned.tuning_)


def test_what_cannot_be_tuned_here_is_said():
    steps = make_pipeline(StandardScaler(), mc.SVC(mc.Gaussian(1.0)))
    for model in (mc.NuSVC(), mc.OneClassSVM(), steps):
        with pytest.raises(mc.InvalidInput, match="GridSearchCV"):
            mc.tune(model, X, Y)
    assert GridSearchCV(steps, {"svc__C": [1.0], "svc__kernel__sigma": SIGMAS}, cv=3).fit(X, Y).best_score_ > 0.7
    for more, words in (
        ({"by": "loo"}, "compared by folds.*got 'loo'"),
        ({"cv": 1}, "compared by folds.*got 1"),
        ({"cv": 1000}, "compared by folds.*1000"),
        ({"grid": {"kernel": mc.Linear()}}, r"list of at least one value for 'kernel', got Linear\(\)"),
        ({"grid": [1.0]}, "dictionary"),
        ({"grid": {"C": "large"}}, "must be > 0, got 'large'"),
        ({"grid": {"epsilon": [0.1]}}, "`grid` must name C, `kernel`"),
    ):
        with pytest.raises(mc.InvalidInput, match=words):
            mc.tune(mc.SVC(mc.Gaussian(1.0)), X, Y, **more)
    with pytest.raises(mc.InvalidInput, match="9 for 150 points"):
        mc.tune(mc.SVC(), X, Y[:9])
