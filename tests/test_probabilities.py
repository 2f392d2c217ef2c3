"""Probabilities from decision values: never certain, and near the share of rows whatever classes weigh."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import mercer as mc
from mercer.models.recalibration import Recalibration
from mercer.models.svm import probabilities
from mercer.models.svm.probabilities import Sigmoid, Softmax


def rare(n):
    own = np.random.default_rng(5)
    y = np.where(own.uniform(size=n) < 0.08, "rare", "usual")
    return own.normal(size=(n, 3)) + 1.0 * (y == "rare")[:, None], y


@pytest.mark.parametrize("shifted", [False, True])
def test_a_softmax_is_the_maximum_of_the_smoothed_likelihood(shifted):
    own = np.random.default_rng(0)
    codes, w = own.integers(0, 3, 80), own.integers(1, 4, 80).astype(float)
    V = 1.3 * np.eye(3)[codes] + own.normal(size=(80, 3))
    found = Softmax.fit(V, codes, w, shifted=shifted)
    wrong = 1 / (w.sum() + 2)
    T = np.where(np.arange(3) == codes[:, None], 1 - wrong, wrong / 2)

    def loss(theta):
        return -float(w @ (T * log_softmax(theta[0] * V + shifted * np.append(0.0, theta[1:]), axis=1)).sum(axis=1))

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert loss(np.append(found.scale, found.offsets[1:] - found.offsets[0])) <= best.fun + 1e-9 * abs(best.fun)
    assert found.scale == pytest.approx(best.x[0], rel=1e-4)
    if shifted:  # the classes are as probable as they are common
        np.testing.assert_allclose(w @ found(V), w @ T, rtol=1e-6)


def test_rows_without_an_error_make_nothing_certain():
    V = np.eye(3)[np.arange(30) % 3] * 5.0
    fitted = Softmax.fit(V, np.arange(30) % 3)
    assert fitted(V).max() == pytest.approx(31 / 32, abs=1e-6)
    assert Softmax.fit(-V, np.arange(30) % 3).scale == 0.0  # values of no use
    sides = Sigmoid.fit(np.zeros(0), np.zeros(0))
    assert sides(np.ones(2)).tolist() == [0.5, 0.5]


def test_an_automatic_classifier_is_not_certain_where_it_made_no_error():
    own = np.random.default_rng(1)
    y = np.repeat(np.arange(3), 20)
    X = own.normal(scale=0.01, size=(60, 2)) + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[y]
    model = mc.AutoClassifier(loss="squared", kernel=mc.Gaussian(1.0)).fit(X, y)
    assert (model.predict(X) == y).all()
    P = model.predict_proba(X)
    assert P.max(axis=1).min() > 0.9
    assert P.max() < 0.999


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_class_weights_of_an_automatic_classifier_move_labels_and_not_probabilities(loss):
    X, y = rare(300)
    given = {"loss": loss, "kernel": mc.Gaussian(2.0), "random_state": 0}
    model = mc.AutoClassifier(class_weight="balanced", **given).fit(X, y)
    share = (y == "rare").mean()
    assert model.predict_proba(X)[:, 0].mean() == pytest.approx(share, abs=0.03)
    assert (model.predict(X) == "rare").mean() > 1.5 * share


def test_pairs_of_digits_that_share_a_sigmoid():
    """Few rows beside those of the fit, none of them wrong: votes of pairs would be certain, as wrong ones are too."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:700]
    X, y = X[order] / 16, y[order]
    model = mc.SVC(mc.Gaussian(2.0), C=10.0).fit(X[:350], y[:350])
    kept = 350 + np.flatnonzero(model.predict(X[350:]) == y[350:])[:60]
    rest = np.setdiff1d(np.arange(350, 700), kept)
    model.calibrate(X[kept], y[kept])
    P = model.predict_proba(X[rest])
    wrong = model.predict(X[rest]) != y[rest]
    assert wrong.any()
    assert P[np.arange(len(rest)), y[rest]].min() > 1e-4
    assert log_loss(y[rest], P, labels=np.arange(10)) < 0.2


def test_leave_one_out_score_estimates_score_whatever_classes_weigh():
    X, y = rare(200)
    model = mc.LeastSquaresClassifier(mc.Gaussian(2.0), class_weight="balanced").fit(X, y)
    assert model.loo_score_ == pytest.approx((model.loo_predictions_ == y).mean(), abs=1e-12)


def test_calibration_refuses_labels_of_other_classes():
    X, y = rare(100)
    model = mc.SVC(mc.Gaussian(2.0)).fit(X, y)
    with pytest.raises(ValueError, match="labels of the classes"):
        model.calibrate(X[:3], ["rare", "usual", "unheard of"])


def test_newtons_method_ends_where_the_loss_cannot_show_a_gain(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 26, 2000)
    P = np.zeros((2000, 26))
    P[np.arange(2000), np.where(rng.random(2000) < 0.86, codes, rng.integers(0, 26, 2000))] = 1.0
    calls = []

    def counted(z, axis):
        calls.append(1)
        return log_softmax(z, axis=axis)

    monkeypatch.setattr(probabilities, "log_softmax", counted)
    Recalibration.fit(P, codes)
    assert len(calls) < 1000, "no line search below the rounding of the loss; it took 2,600 losses per mixing"
