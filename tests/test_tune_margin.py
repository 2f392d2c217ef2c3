"""Tuning support vector machines: the scores are those of scikit-learn's grid search, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV, KFold

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
