"""Support vector classification: against LIBSVM, against the theory, and on bad days."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.svm.margins import MarginReport, _spans
from mercer.models.svm.nu_svc import NuSVC
from mercer.models.svm.probabilities import Sigmoid, couple
from mercer.models.svm.svc import SVC

rng = np.random.default_rng(0)
TIGHT = 1e-9


def standardised(X):
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)


def noisy(n=300, d=6, seed=0):
    X, y = make_classification(n, d, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=seed)
    return standardised(X), y


CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
PROBLEMS = {
    "noisy": (*noisy(), mc.Gaussian.from_gamma(0.2), {"gamma": 0.2}),
    "circles": (*make_circles(250, noise=0.1, factor=0.5, random_state=0), mc.Gaussian(0.5), {"gamma": 2.0}),
    "cancer": (standardised(CANCER[0]), CANCER[1], mc.Gaussian.from_gamma(0.03), {"gamma": 0.03}),
    "linear": (*noisy(200), mc.Linear(), {"kernel": "linear"}),
    "cubic": (*noisy(200, seed=1), mc.Polynomial(3, c=1.0), {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}),
}


# -- two classes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_equal_to_libsvm(name, C):
    X, y, kernel, theirs = PROBLEMS[name]
    model = SVC(kernel, C=C, tol=1e-8).fit(X, y)
    peer = svm.SVC(C=C, tol=1e-8, **theirs).fit(X, y)
    K = kernel(X)
    beta = np.zeros(len(X))
    beta[peer.support_] = peer.dual_coef_[0]
    expected = 0.5 * beta @ K @ beta - np.abs(beta).sum()
    assert model.objective_[0] == pytest.approx(expected, rel=1e-7)
    f = peer.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-4 * np.abs(f).max())
    assert model.gap_ <= 1e-8
    assert model.status_.startswith("converged")


def test_optimality_conditions():
    X, y, kernel, _ = PROBLEMS["noisy"]
    C, tol = 2.0, 1e-6
    model = SVC(kernel, C=C, tol=tol).fit(X, y)
    signs = np.where(y == 1, 1, -1)
    margins = signs * model.decision_function(X)
    alpha = np.zeros(len(X))
    alpha[model.support_] = signs[model.support_] * model.dual_coef_
    assert (alpha >= 0).all()
    assert (alpha <= C).all()
    assert abs(signs @ alpha) < 1e-9
    assert (margins[alpha == 0] >= 1 - tol).all()
    assert (margins[alpha == C] <= 1 + tol).all()
    free = (alpha > 0) & (alpha < C)
    assert free.sum() > 10
    np.testing.assert_allclose(margins[free], 1, atol=tol)
    assert alpha[alpha == C].size > 10
    np.testing.assert_array_equal(model.n_support_, [np.sum(y[model.support_] == c) for c in (0, 1)])


def test_rows_without_coefficient_change_nothing():
    X, y, kernel, _ = PROBLEMS["noisy"]
    model = SVC(kernel, tol=TIGHT).fit(X, y)
    again = SVC(kernel, tol=TIGHT).fit(X[model.support_], y[model.support_])
    assert len(model.support_) < len(X)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_hard_margin_is_the_widest_one():
    X = np.r_[np.add(rng.normal(size=(40, 2)), [4, 0]), np.subtract(rng.normal(size=(40, 2)), [4, 0])]
    y = np.r_[np.ones(40), -np.ones(40)]
    model = SVC(mc.Linear(), C=np.inf, tol=1e-8).fit(X, y)
    peer = svm.LinearSVC(C=1e4, loss="squared_hinge", dual=True, tol=1e-10, max_iter=10**6, intercept_scaling=100.0)
    peer.fit(X, y)
    w = model.function_.weights()
    np.testing.assert_allclose(w, peer.coef_[0], rtol=2e-3, atol=1e-3)
    assert (y * model.decision_function(X)).min() == pytest.approx(1, abs=1e-6)
    assert model.margin_report()[0].margin == pytest.approx(1 / np.linalg.norm(w), rel=1e-6)
    assert model.status_.startswith("converged")


def test_hard_margin_of_data_that_is_not_separable():
    X, y, _, _ = PROBLEMS["linear"]
    model = SVC(mc.Linear(), C=np.inf).fit(X, y)  # no warning: they are errors here
    assert model.status_.startswith("not separable: the smallest violation found is")
    stated = float(model.status_.split("= ")[1].split(",")[0])
    signs = np.where(y == 1, 1, -1)
    found = np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert stated == pytest.approx(found, rel=1e-3)
    soft = SVC(mc.Linear(), C=1.0).fit(X, y)
    assert found <= np.maximum(0, 1 - signs * soft.decision_function(X)).sum()


def test_opposite_labels_at_one_point():
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    y = [0, 1, 0, 1]
    soft = SVC(mc.Gaussian(1.0), C=100.0).fit(X, y)
    assert soft.status_.startswith("converged")
    assert np.isfinite(soft.decision_function(X)).all()
    hard = SVC(mc.Gaussian(1.0), C=np.inf).fit(X, y)
    assert hard.status_.startswith("not separable")
    assert hard.predict(X)[2:].tolist() == [0, 1]


# -- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SVC(mc.Gaussian(1.5), C=0.7), NuSVC(mc.Gaussian(1.5), nu=0.3)])
def test_weight_is_repetition(model):
    X, y = noisy(150)
    w = rng.integers(0, 4, size=len(X))
    model = clone(model).set_params(tol=TIGHT)
    if isinstance(model, SVC):
        model.set_params(class_weight="balanced")
    weighted = clone(model).fit(X, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert not np.isin(np.flatnonzero(w == 0), weighted.support_).any()
    plain = clone(model).fit(X, y)
    assert np.abs(plain.decision_function(X) - weighted.decision_function(X)).max() > 0.01


def test_class_weights_against_libsvm():
    X, y = noisy(200)
    w = rng.uniform(0.5, 2.0, size=len(X))
    for class_weight in ({0: 3.0}, "balanced"):
        ours = SVC(mc.Gaussian.from_gamma(0.2), class_weight=class_weight, tol=1e-8)
        theirs = svm.SVC(gamma=0.2, class_weight=class_weight, tol=1e-8)
        weights = w if class_weight != "balanced" else None
        a, b = (m.fit(X, y, sample_weight=weights).decision_function(X) for m in (ours, theirs))
        np.testing.assert_allclose(a, b, atol=1e-5)


# -- many classes -----------------------------------------------------------------------------------------------------


def digits(n=700):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16, y[:n], X[n : n + 500] / 16


def test_digits_as_libsvm():
    X, y, Z = digits()
    model = SVC(mc.Gaussian.from_gamma(0.05), C=3.0, tol=1e-6).fit(X, y)
    peer = svm.SVC(gamma=0.05, C=3.0, tol=1e-6, break_ties=True).fit(X, y)
    np.testing.assert_allclose(model.decision_function(Z), peer.decision_function(Z), atol=1e-4)
    np.testing.assert_array_equal(model.predict(Z), peer.predict(Z))
    np.testing.assert_array_equal(model.n_support_, peer.n_support_)
    np.testing.assert_array_equal(model.support_, peer.support_)
    np.testing.assert_allclose(np.abs(model.dual_coef_).sum(), np.abs(peer.dual_coef_).sum(), rtol=1e-4)
    assert model.function_(Z).shape == (len(Z), 45)
    np.testing.assert_allclose(model.function_(Z), model._values(model.kernel_.prepare(Z)), atol=1e-9)


def test_one_against_the_rest():
    X, y = standardised(WINE[0]), WINE[1]
    names = np.array(["red", "rose", "white"])[y]
    model = SVC(mc.Gaussian(3.0), C=2.0, multiclass="ovr", tol=1e-8).fit(X, names)
    for c, name in enumerate(model.classes_):
        one = SVC(mc.Gaussian(3.0), C=2.0, tol=1e-8).fit(X, names == name)
        np.testing.assert_allclose(model.decision_function(X)[:, c], one.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert (model.predict(X) == names).mean() > 0.97


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_predict_is_the_largest_decision(multiclass):
    X, y, Z = digits(300)
    model = SVC(mc.Gaussian(1.0), multiclass=multiclass).fit(X, y)
    decision = model.decision_function(Z)
    assert decision.shape == (len(Z), 10)
    np.testing.assert_array_equal(model.predict(Z), decision.argmax(axis=1))


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [3.0, 7.0], [np.int8(2), np.int8(5)]])
def test_labels_of_any_kind(labels):
    X, y = noisy(60)
    named = np.array(labels)[y]
    model = SVC(mc.Gaussian(1.0), C=100.0).fit(X, named.tolist())
    assert set(model.predict(X).tolist()) <= set(named.tolist())
    assert (model.predict(X) == named).mean() > 0.9
    assert (model.predict(X) == model.classes_[1])[model.decision_function(X) > 0].all()


# -- nu ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["noisy", "circles", "cancer"])
@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_nu_equal_to_libsvm(name, nu):
    X, y, kernel, theirs = PROBLEMS[name]
    model = NuSVC(kernel, nu=nu, tol=1e-8).fit(X, y)
    peer = svm.NuSVC(nu=nu, tol=1e-8, **theirs).fit(X, y)
    f = peer.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-4 * np.abs(f).max())
    # The nu property, and the C whose SVC this is.
    inside = np.where(y == 1, 1, -1) * f < 1 - 1e-3
    assert inside.mean() <= nu <= len(model.support_) / len(X)
    same = SVC(kernel, C=model.C_[0], tol=1e-8).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), f, atol=1e-4 * np.abs(f).max())


def test_nu_with_several_classes_and_infeasible_nu():
    X, y = standardised(WINE[0]), WINE[1]
    model = NuSVC(mc.Gaussian(3.0), nu=0.3, tol=1e-7).fit(X, y)
    peer = svm.NuSVC(nu=0.3, gamma=1 / 18, tol=1e-7, break_ties=True).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    X, y = rng.normal(size=(10, 2)), np.r_[np.zeros(9), 1]
    with pytest.raises(InvalidInput, match=r"infeasible above 0\.2.*got 0\.5"):
        NuSVC(nu=0.5).fit(X, y)
    assert NuSVC(nu=0.2).fit(X, y).status_.startswith("converged")
    for nu in (0, 1.5, -1, "auto", np.nan):
        with pytest.raises(InvalidInput, match="nu"):
            NuSVC(nu=nu).fit(X, y)


# -- probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_probabilities_agree_with_predictions(multiclass):
    X, y = load_iris(return_X_y=True)
    model = SVC(mc.Gaussian(1.0), calibrated=True, multiclass=multiclass).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (150, 3)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert (model.predict(X) == y).mean() > 0.94
    np.testing.assert_array_equal(p, clone(model).fit(X, y).predict_proba(X))


def test_probabilities_are_calibrated():
    X = rng.normal(size=(3000, 2))
    truth = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = rng.uniform(size=3000) < truth
    model = SVC(mc.Linear(), C=0.1, calibrated=True).fit(X[:1000], y[:1000])
    p = model.predict_proba(X[1000:])[:, 1]
    assert np.abs(p - truth[1000:]).max() < 0.1
    assert np.abs(p - truth[1000:]).mean() < 0.04
    np.testing.assert_array_equal(model.predict(X[1000:]), p > 0.5)


def test_calibration_looks_at_held_out_rows():
    """On labels without a reason a narrow kernel remembers every row; held-out values are honest about the rest."""
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, size=200)
    model = SVC(mc.Gaussian(0.05), C=100.0, calibrated=True).fit(X, y)
    assert (np.sign(model.decision_function(X)) == 2 * y - 1).mean() > 0.95
    assert model.predict_proba(X).max() < 0.8


def test_no_probabilities_without_calibration():
    X, y = noisy(60)
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"needs calibrated=True, got SVC\(calibrated=False\)\. Fit"):
        _ = model.predict_proba
    assert SVC.predict_proba.__doc__
    with pytest.raises(InvalidInput, match="two rows of each class"):
        SVC(calibrated=True).fit(X[:5], [0, 0, 0, 0, 1])


def test_sigmoid_is_the_maximum_of_the_likelihood():
    f = rng.normal(size=200)
    signs = np.where(rng.uniform(size=200) < 1 / (1 + np.exp(-3 * f + 1)), 1.0, -1.0)
    fitted = Sigmoid.fit(f, signs)
    plus, minus = (signs > 0).sum(), (signs < 0).sum()
    t = np.where(signs > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))

    def loss(a, b):
        p = Sigmoid(a, b)(f)
        return -(t * np.log(p) + (1 - t) * np.log(1 - p)).sum()

    best = loss(fitted.a, fitted.b)
    assert all(loss(fitted.a + da, fitted.b + db) > best for da, db in [(0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)])
    assert fitted.a < 0
    repeated = Sigmoid.fit(np.repeat(f, 2), np.repeat(signs, 2))
    weighted = Sigmoid.fit(f, signs, np.full(200, 2.0))
    assert (weighted.a, weighted.b) == pytest.approx((repeated.a, repeated.b), rel=1e-6)


def test_coupling_recovers_consistent_pairs_and_stays_a_distribution():
    p = rng.dirichlet(np.ones(5), size=20)
    a, b = np.triu_indices(5, 1)
    np.testing.assert_allclose(couple(p[:, b] / (p[:, a] + p[:, b]), 5), p, atol=1e-6)
    wild = couple(rng.uniform(size=(500, 10)), 5)
    assert (wild >= 0).all()
    np.testing.assert_allclose(wild.sum(axis=1), 1)


# -- path and report --------------------------------------------------------------------------------------------------


def test_path_equals_single_fits():
    X, y = noisy(200)
    Cs = [10.0, 0.1, 1.0]
    models = SVC(mc.Gaussian(1.5), tol=1e-8).path(X, y, Cs)
    alone = [SVC(mc.Gaussian(1.5), C=C, tol=1e-8).fit(X, y) for C in Cs]
    for model, one, C in zip(models, alone, Cs):
        assert model.C == C
        np.testing.assert_allclose(model.decision_function(X), one.decision_function(X), atol=1e-6)
    grid = np.logspace(-1, 3, 9)
    warm = sum(m.n_iter_ for m in SVC(mc.Gaussian(1.5)).path(X, y, grid))
    assert warm < sum(SVC(mc.Gaussian(1.5), C=C).fit(X, y).n_iter_ for C in grid)
    free = SVC(mc.Gaussian(0.3)).path(X, y, [100.0, 1000.0])
    assert np.abs(free[0].dual_coef_).max() < 100
    assert free[1].n_iter_ == 0  # nothing is at its bound, so that C does not matter any more
    several = SVC(mc.Gaussian(3.0)).path(standardised(WINE[0]), WINE[1], [0.1, np.inf])
    assert [m.status_.startswith("converged") for m in several] == [True, True]
    with pytest.raises(InvalidInput, match="C"):
        SVC().path(X, y, [1.0, -1.0])


@pytest.mark.thorough
def test_margin_report_bounds_the_leave_one_out_error():
    X, y = noisy(70)
    for C in (0.3, 5.0):
        model = SVC(mc.Gaussian(2.0), C=C, tol=1e-6).fit(X, y)
        report = model.margin_report()
        assert isinstance(report, MarginReport)
        only = report[0]
        wrong = 0
        for i in range(len(X)):
            rest = np.arange(len(X)) != i
            wrong += SVC(mc.Gaussian(2.0), C=C, tol=1e-6).fit(X[rest], y[rest]).predict(X[i : i + 1])[0] != y[i]
        loo = wrong / len(X)
        assert loo <= only.loo_support
        assert loo <= only.loo_slack
        assert only.loo_span == pytest.approx(loo, abs=0.06)
        assert only.free + only.bounded == len(model.support_)
        assert only.bounded == np.isclose(np.abs(model.dual_coef_), C, rtol=1e-12).sum()
        assert only.errors == (model.predict(X) != y).sum()
        assert only.margin == pytest.approx(1 / model.function_.norm(), rel=1e-6)
        assert f"{only.free} free and {only.bounded} bounded" in str(report)


def test_spans_are_distances_from_the_others():
    """S² of a free point: the squared distance from the affine span of the other free ones, by least squares."""
    X = rng.normal(size=(7, 9))
    free = np.array([True, True, False, True, True, False, True])
    found = _spans(X @ X.T, free)
    for i in range(7):
        others = X[free & (np.arange(7) != i)]
        directions = (others[1:] - others[0]).T
        rest = X[i] - others[0]
        rest = rest - directions @ np.linalg.lstsq(directions, rest)[0]
        assert found[i] == pytest.approx(rest @ rest, rel=1e-6)


# -- data of every kind -----------------------------------------------------------------------------------------------


def test_precomputed_needs_support_columns_only():
    X, y, Z = digits(200)
    kernel = mc.Gaussian(1.0)
    for labels in (y % 2, y):
        direct = SVC(kernel).fit(X, labels)
        model = SVC(mc.Precomputed()).fit(kernel(X), labels)
        expected = direct.decision_function(Z)
        full = kernel(Z, X)
        np.testing.assert_allclose(model.decision_function(full), expected, atol=2e-3)
        np.testing.assert_array_equal(model.decision_function(full[:, model.support_]), model.decision_function(full))
        with pytest.raises(ValueError, match=r"features|columns"):
            model.predict(full[:, :7])
        fixed = SVC(mc.Precomputed(kernel(np.r_[X, Z]))).fit(np.arange(len(X)), labels)
        found = fixed.decision_function(np.arange(len(X), len(X) + len(Z)))
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_sparse_data():
    X, y, Z = digits(300)
    dense = SVC(mc.Gaussian(1.0), tol=1e-7).fit(X, y)
    sparse = SVC(mc.Gaussian(1.0), tol=1e-7).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(Z)), dense.decision_function(Z), atol=1e-5)
    assert sp.issparse(sparse.support_vectors_)


def test_sets_and_functions():
    sets = [set(rng.choice(12, size=5, replace=False).tolist()) for _ in range(90)]
    y = np.array(["big" if sum(s) > 30 else "mid" if sum(s) > 24 else "small" for s in sets])
    model = SVC(mc.Intersection(), C=10.0).fit(sets, y)
    assert (model.predict(sets) == y).mean() > 0.9
    assert model.support_vectors_[0] == sets[model.support_[0]]
    calls = []

    def overlap(a, b):
        calls.append(1)
        return float(len(a & b))

    same = SVC(mc.FromFunction(overlap), C=10.0).fit(sets, y)
    # Each pair once for all problems, float32 and float64 alike; the diagonal again for the report.
    assert len(calls) <= 90 * 91 // 2 + 2 * 90
    np.testing.assert_allclose(same.decision_function(sets), model.decision_function(sets), atol=1e-2)


def test_shared_values_give_the_same_model():
    X, y = load_digits(return_X_y=True)
    X, y = np.tile(X[:150] / 16, (1, 5)), y[:150]  # 320 columns: the matrix is kept
    model = SVC(mc.Gaussian(2.0), tol=1e-7).fit(X, y)
    assert isinstance(model._data(model._start(), X, y, None)[2].kernel, mc.Precomputed)
    peer = svm.SVC(gamma=1 / 8, tol=1e-7, break_ties=True).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-5)


def test_data_frames_pipelines_and_pickles():
    pd = pytest.importorskip("pandas")
    X, y = noisy(80)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    model = SVC(mc.Gaussian(1.0)).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_allclose(model.decision_function(frame), SVC(mc.Gaussian(1.0)).fit(X, y).decision_function(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    search = GridSearchCV(SVC(mc.Gaussian(1.0)), {"C": [0.1, 1.0], "kernel__sigma": [1.0, 3.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    assert cross_val_score(SVC(mc.Precomputed()), mc.Gaussian(1.0)(X), y, cv=3).mean() > 0.6


# -- limits and interrupts --------------------------------------------------------------------------------------------


def test_limits_are_honoured_and_said():
    X, y = noisy(300)
    with pytest.warns(ConvergenceWarning, match="stopped after 5 iterations: gap"):
        model = SVC(mc.Gaussian(1.0), C=100.0, max_iter=5).fit(X, y)
    assert model.n_iter_ == 5
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        SVC(mc.Gaussian(1.0), C=1e6, tol=1e-12, max_time=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="hard margin|stopped after"):
        SVC(mc.Linear(), C=np.inf, max_iter=50).fit(X, y)


def test_progress_is_called_and_may_stop():
    X, y = noisy(300)
    seen = []
    SVC(mc.Gaussian(1.0), progress=lambda p: seen.append(p) or True).fit(X, y)
    assert seen
    assert seen[-1].gap <= 1e-3
    assert seen[-1].support > 0
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        SVC(mc.Linear(), C=1e5, tol=1e-10, progress=lambda p: False).fit(X, y)


def long_problem():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = np.random.default_rng(1).integers(0, 3, size=2000)
    return X, y


@pytest.mark.thorough
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("classes", [2, 3])
def test_interrupt_keeps_a_usable_model(classes):
    X, y = long_problem()
    y = y % classes
    reports = []

    def seen(at):
        reports.append(at)
        if len(reports) == 3:
            os.kill(os.getpid(), signal.SIGINT)  # as from the keyboard: to the main thread, whichever this is
        return True

    model = SVC(mc.Polynomial(3, c=1.0), C=1e6, tol=1e-12, calibrated=True, progress=seen)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.n_iter_ > 0
    assert set(model.predict(X[:50])) <= set(range(classes))
    assert np.isfinite(model.decision_function(X[:50])).all()
    with pytest.raises(InvalidInput, match="not interrupted"):
        model.predict_proba(X[:5])


@pytest.mark.thorough
def test_interrupt_from_outside():
    """Ctrl-C as a shell sends it: another process, no pytest around."""
    code = textwrap.dedent(
        """
        import numpy as np, mercer as mc
        from mercer.models.svm.svc import SVC
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(1500, 3)), rng.integers(0, 2, size=1500)
        model = SVC(mc.Polynomial(3, c=1.0), C=1e6, tol=1e-12, progress=lambda p: print("go", flush=True) or True)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            print("kept", model.status_, len(model.predict(X)), flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "go"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate()
    assert rest.splitlines()[-1] == "kept interrupted 1500"


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [mc.Tanh(1.0, -1.0), mc.FromFunction(lambda x, z: -float(np.sum((x - z) ** 2)))])
def test_indefinite_kernels_warn_and_end(kernel):
    X, y = noisy(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(kernel, C=1.0).fit(X, y)
    assert any("not positive semidefinite: it has the eigenvalue -" in str(w.message) for w in caught)
    assert np.isfinite(model.decision_function(X)).all()


def test_indefinite_precomputed():
    X, y = noisy(50)
    K = mc.Gaussian(1.0)(X) - 0.5 * np.eye(50)
    with pytest.warns(RuntimeWarning, match="eigenvalue -0"):
        SVC(mc.Precomputed()).fit(K, y)


@pytest.mark.parametrize("C", [0, -1.0, np.nan, "1", None, True])
def test_bad_C(C):
    X, y = noisy(20)
    with pytest.raises(InvalidInput, match="`C` must be a number > 0"):
        SVC(C=C).fit(X, y)


def test_bad_input():
    X, y = noisy(20)
    with pytest.raises(InvalidInput, match="at least two classes, got 1 class"):
        SVC().fit(X, np.zeros(20))
    with pytest.raises(InvalidInput, match="with weight > 0"):
        SVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(InvalidInput, match="finite"):
        SVC().fit(np.where(np.arange(120).reshape(20, 6) == 7, np.nan, X), y)
    with pytest.raises(InvalidInput, match="19 labels for 20 points"):
        SVC().fit(X, y[:-1])
    with pytest.raises(InvalidInput, match="Unknown label type"):
        SVC().fit(X, X[:, 0])
    with pytest.raises(InvalidInput, match="y is None"):
        SVC().fit(X, None)
    with pytest.raises(InvalidInput, match="multiclass"):
        SVC(multiclass="all").fit(X, y)
    with pytest.raises(InvalidInput, match="class_weight"):
        SVC(class_weight="auto").fit(X, y)
    with pytest.raises(InvalidInput, match="class_weight"):
        SVC(class_weight={0: -1.0}).fit(X, y)
    with pytest.raises(InvalidInput, match="tol"):
        SVC(tol=0).fit(X, y)


def test_tiny_and_degenerate_data():
    for C in (1.0, np.inf):
        two = SVC(mc.Linear(), C=C).fit([[0.0], [2.0]], ["a", "b"])
        assert two.predict([[0.1], [1.9]]).tolist() == ["a", "b"]
        assert two.decision_function([[1.0]])[0] == pytest.approx(0, abs=1e-6)
    constant = SVC().fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert np.isfinite(constant.decision_function(np.ones((2, 2)))).all()
    X, y = noisy(80)
    column = np.c_[X, np.full(len(X), 7.0)]
    a = SVC(mc.Gaussian(1.0), tol=1e-7).fit(X, y).decision_function(X)
    b = SVC(mc.Gaussian(1.0), tol=1e-7).fit(column, y).decision_function(column)
    np.testing.assert_allclose(a, b, atol=1e-5)
    for scale in (1e-12, 1e12, 1e25):  # beyond what float32 could square
        large = SVC(mc.Linear(), C=1.0 / scale**2).fit(X * scale, y)
        small = SVC(mc.Linear(), C=1.0).fit(X, y)
        np.testing.assert_allclose(large.decision_function(X * scale), small.decision_function(X), atol=0.01)


def test_refit_forgets():
    X, y, _ = digits(200)
    model = SVC(mc.Gaussian(1.0)).fit(X, y)
    _ = model.function_
    model.fit(X, y % 2)
    assert model.function_(X).shape == (200,)
    assert model.decision_function(X).shape == (200,)
    model.fit(X, y)
    assert model.function_(X).shape == (200, 45)
    np.testing.assert_allclose(model.decision_function(X), SVC(mc.Gaussian(1.0)).fit(X, y).decision_function(X))


# -- words and numbers that were wrong once ---------------------------------------------------------------------------


@pytest.mark.parametrize("away", [0.0, 2e4, 1e5])
@pytest.mark.parametrize("half", [0.1, 0.5])
def test_hard_margin_far_from_the_origin(away, half):
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[:, 0] += half * np.sign(X[:, 0])
    y = X[:, 0] > 0
    model = SVC(mc.Linear(), C=np.inf).fit(X + away, y)
    assert model.status_.startswith("converged")
    assert model.score(X + away, y) == 1
    near = SVC(mc.Linear(), C=np.inf).fit(X, y)
    assert model.margin_report()[0].margin == pytest.approx(near.margin_report()[0].margin, rel=0.02)
    shuffled = np.random.default_rng(1).permutation(y)
    assert SVC(mc.Linear(), C=np.inf).fit(X + away, shuffled).status_.startswith("not separable")


def test_hard_margin_where_all_points_are_one():
    y = np.arange(40) % 2
    for kernel, X in (
        (mc.Precomputed(), np.zeros((40, 40))),
        (mc.Linear(), np.zeros((40, 2))),
        (mc.Linear(), np.ones((40, 2))),
    ):
        model = SVC(kernel, C=np.inf).fit(X, y)
        assert model.status_.startswith("not separable: the smallest violation found is Σ max(0, 1 − yᵢ f(xᵢ)) = 40")
        assert model.n_iter_ < 10_000


def test_nu_that_leaves_no_margin_is_warned_of():
    X, y = make_moons(60, noise=0.35, random_state=2)
    with pytest.warns(ConvergenceWarning, match=r"no margin between 0 \| 1 for nu=0.2: ρ vanishes"):
        model = NuSVC(mc.Polynomial(2, c=1.0), nu=0.2).fit(X, y)
    assert model.status_.startswith("no margin")
    assert str(model.margin_report()).startswith("Not optimal, so that no bound holds: no margin")
    fine = NuSVC(mc.Polynomial(2, c=1.0), nu=0.7).fit(X, y)  # no warning: they are errors here
    assert fine.status_.startswith("converged")
    # Without a row it would have another C: the bounds are those of the SVC that it is.
    report = fine.margin_report()
    assert f"leave-one-out error of SVC(C={fine.C_[0]:.4g}) at most" in str(report)
    same = SVC(mc.Polynomial(2, c=1.0), C=fine.C_[0], tol=1e-8).fit(X, y).margin_report()
    assert report[0].margin == pytest.approx(same[0].margin, rel=0.02)
    assert "of SVC" not in str(same)


def test_the_report_of_an_iterate_bounds_nothing():
    X, y = noisy(100)
    with pytest.warns(ConvergenceWarning, match="stopped after 0 iterations: gap"):
        model = SVC(max_iter=0).fit(X, y)
    assert str(model.margin_report()).startswith("Not optimal, so that no bound holds: stopped after 0 iterations.\n")
    assert not str(SVC().fit(X, y).margin_report()).startswith("Not")
    hard = SVC(mc.Linear(), C=np.inf).fit(X, y)
    assert str(hard.margin_report()).startswith("Not optimal, so that no bound holds: not separable")


def test_class_weights_of_classes_that_are_not_there():
    X, y = noisy(60)
    named = np.array(["ham", "spam"])[y]
    with pytest.raises(InvalidInput, match=r"one of the classes, got 'sapm'\. Choose from 'ham', 'spam'"):
        SVC(class_weight={"sapm": 5.0}).fit(X, named)
    with pytest.raises(InvalidInput, match=r"got -1\.0 for 1"):
        SVC(class_weight={1: -1.0}).fit(X, y)
    # Of all classes in a part of the rows, such as a fold without the rare one.
    both = SVC(class_weight={"ham": 1.0, "spam": 5.0, "rare": 9.0}, tol=1e-8).fit(X, named)
    one = SVC(class_weight={"spam": 5.0}, tol=1e-8).fit(X, named)
    np.testing.assert_allclose(both.decision_function(X), one.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("labels", [[3, 7], [False, True], [1.0, 2.0]])
def test_labels_as_objects(labels):
    X, y = noisy(60)
    plain = np.array(labels)[y]
    model = SVC(mc.Gaussian(1.0)).fit(X, plain.astype(object))
    np.testing.assert_array_equal(model.predict(X), SVC(mc.Gaussian(1.0)).fit(X, plain).predict(X))
    assert model.classes_.tolist() == labels
    for mixed in (np.array([1, None], dtype=object)[y], np.array([1, "a"], dtype=object)[y]):
        with pytest.raises(InvalidInput, match="one label per point"):
            SVC().fit(X, mixed)


def test_words_without_the_names_of_types():
    X, y = noisy(60)
    for refused, words in (
        (lambda: SVC().fit(X, np.full(60, 7)), "got 1 class, 7. "),
        (lambda: SVC(C=np.float64(-1)).fit(X, y), "got -1.0. "),
        (lambda: SVC(max_iter=np.int64(-3)).fit(X, y), "got -3. "),
        (lambda: NuSVC(nu=np.float64(1.5)).fit(X, y), "got 1.5. "),
        (lambda: mc.SVR(epsilon=np.float64(-1)).fit(X, y), "got -1.0. "),
    ):
        with pytest.raises(InvalidInput) as error:
            refused()
        assert words in str(error.value)
    with pytest.warns(ConvergenceWarning) as caught:
        SVC(mc.Gaussian(1.0), C=100.0, max_iter=2).fit(X, np.arange(60) % 3)
    text = str(caught[0].message)
    assert text.startswith("stopped after 2 iterations (3 of 3 problems): gap")
    assert text.count("iterations") == 1


def test_a_sparse_matrix_of_kernel_values_is_one_too():
    import scipy.sparse as sp

    X, y = load_iris(return_X_y=True)
    K = mc.Gaussian(1.0)(X)
    K[K < 1e-3] = 0.0
    K += 0.2 * np.eye(len(K))
    model, dense = (SVC(mc.Precomputed()).fit(given, y) for given in (sp.csr_array(K), K))
    np.testing.assert_array_equal(model.predict(sp.csr_array(K)), dense.predict(K))
    np.testing.assert_array_equal(model.predict(K[:, model.support_]), dense.predict(K))


# -- class weights and probabilities -----------------------------------------------------------------------------------


def rare(n, k=2):
    """Few rows of the last class, none of them easy."""
    own = np.random.default_rng(4)
    y = np.where(own.uniform(size=n) < 0.06, k - 1, own.integers(0, k - 1, n))
    return own.normal(size=(n, 3)) + 1.2 * y[:, None] / (k - 1), y


@pytest.mark.parametrize(("k", "multiclass"), [(2, "ovo"), (3, "ovo"), (3, "ovr")])
def test_class_weights_move_labels_and_not_probabilities(k, multiclass):
    X, y = rare(600, k)
    given = {"C": 1.0, "class_weight": "balanced", "multiclass": multiclass}
    model = SVC(mc.Gaussian(2.0), calibrated=True, **given).fit(X, y)
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), shares, atol=0.02)
    plain = SVC(mc.Gaussian(2.0), **given).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert (model.predict(X) == k - 1).mean() > 2 * shares[-1]  # weights make the rare class be found


def test_sample_weights_move_probabilities():
    """A row of weight 3 is a row that occurs three times as often."""
    X, y = rare(500)
    w = np.where(y == 1, 3.0, 1.0)
    model = SVC(mc.Gaussian(2.0), calibrated=True).fit(X, y, w)
    p = model.predict_proba(X)[:, 1]
    assert np.average(p, weights=w) == pytest.approx(np.average(y, weights=w), abs=0.02)
