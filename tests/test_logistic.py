"""Logistic regression in columns and in a kernel's space: fits, probabilities, separation, leave-one-out, bad input."""

from __future__ import annotations

import io
import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.likelihood import logistic, separation
from mercer.models.likelihood.separation import Separable, receding_direction
from mercer.problems.losses import Softmax, loss_of
from mercer.problems.risk import Risk
from mercer.problems.spaces import FeatureSpace
from mercer.solvers import leave_out

rng = np.random.default_rng(0)
N = 120
X = np.random.default_rng(1).normal(size=(N, 3))
TRUTH = np.array([1.0, -2.0, 0.5])
y = (np.random.default_rng(2).random(N) < expit(X @ TRUTH + 0.3)).astype(int)
THREE = np.argmax(X @ np.random.default_rng(3).normal(size=(3, 3)) + np.random.default_rng(4).gumbel(size=(N, 3)), 1)
W = np.random.default_rng(5).uniform(0.5, 2.0, N)
K = mc.Gaussian(1.5)
SOLVERS = ["newton", "newton-cg", "lbfgs", "gradient", "backtracking"]
BOTH = [mc.LogisticRegression, mc.KernelLogisticRegression]


def sk(alpha, **options):
    return linear_model.LogisticRegression(C=1 / alpha if alpha else np.inf, tol=1e-12, max_iter=10_000, **options)


# -- against scikit-learn ---------------------------------------------------------------------------------------------


@pytest.mark.peer("scikit-learn", "1.9")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("target", ["two", "three"])
def test_the_same_as_scikit_learn(target, solver):
    t = y if target == "two" else THREE
    for options in ({}, {"class_weight": "balanced"}, {"fit_intercept": False}):
        tol = 1e-7 if solver in ("gradient", "backtracking") else 1e-9
        ours = mc.LogisticRegression(alpha=0.7, solver=solver, tol=tol, **options).fit(X, t, W)
        theirs = sk(0.7, solver="newton-cholesky", **options).fit(X, t, W)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-6)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-6)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.score(X, t) == theirs.score(X, t)


def test_weights_by_class():
    given = {0: 2.0, 1: 0.5}
    ours = mc.LogisticRegression(alpha=0.3, class_weight=given, tol=1e-9).fit(X, y, W)
    theirs = sk(0.3, class_weight=given).fit(X, y, W)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    same = mc.LogisticRegression(alpha=0.3, tol=1e-9).fit(X, y, W * np.where(y, 0.5, 2.0))
    np.testing.assert_allclose(ours.coef_, same.coef_, atol=1e-7)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "newton-cg"])
@pytest.mark.parametrize("target", ["two", "three"])
def test_sparse_columns(target, solver):
    Z = sp.random_array((N, 8), density=0.4, rng=np.random.default_rng(6)).tocsr()
    t = (Z.sum(axis=1) + 0.5 * rng.normal(size=N) > 1.5).astype(int)
    t = t if target == "two" else t + (Z[:, [0]].toarray()[:, 0] > 0.3)
    for form in (sp.csr_array(Z), sp.csc_matrix(Z)):
        ours = mc.LogisticRegression(alpha=0.5, tol=1e-9, solver=solver).fit(form, t)
        theirs = sk(0.5).fit(Z, t)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.predict_proba(form), theirs.predict_proba(Z), atol=1e-5)
        np.testing.assert_allclose(ours.predict_proba(Z.toarray()), ours.predict_proba(form), atol=1e-12)
    dense = mc.LogisticRegression(alpha=0.5, tol=1e-9).fit(Z.toarray(), t)
    np.testing.assert_allclose(ours.coef_, dense.coef_, atol=1e-6)


@pytest.mark.parametrize("target", [y, THREE], ids=["two", "three"])
def test_without_a_penalty(target):
    ours = mc.LogisticRegression(alpha=0.0, tol=1e-9).fit(X, target)
    theirs = sk(0.0).fit(X, target)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    kernel = mc.KernelLogisticRegression(mc.Linear(), alpha=0.0, tol=1e-9).fit(X, target)
    np.testing.assert_allclose(kernel.predict_proba(X), ours.predict_proba(X), atol=1e-6)


def test_intercepts_of_several_classes_balance():
    for model in (mc.LogisticRegression(alpha=0.3, tol=1e-11), mc.KernelLogisticRegression(K, alpha=0.3, tol=1e-11)):
        model.fit(X, THREE)
        assert abs(model.intercept_.sum()) < 1e-9
        assert np.abs(model.decision_function(X).sum(axis=1)).max() < 1e-9


def test_columns_far_from_zero_and_half_precision():
    near = mc.LogisticRegression(alpha=0.5, tol=1e-9).fit(X, y)
    far = mc.LogisticRegression(alpha=0.5).fit(X + 1e6, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    np.testing.assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), atol=1e-4)
    half = mc.LogisticRegression(alpha=0.5).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(half.coef_, near.coef_, atol=1e-4)
    assert half.predict_proba(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_columns_than_rows_go_through_the_gram_matrix(solver):
    Z, t = rng.normal(size=(30, 100)), np.arange(30) % 2
    model = mc.LogisticRegression(alpha=2.0, tol=1e-9, solver=solver).fit(Z, t)
    assert "100 features through the Gram matrix of 30 rows" in model.status_
    theirs = sk(2.0).fit(Z, t)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.trace_.coef[-1], np.append(model.coef_, model.intercept_), atol=1e-12)
    assert model.trace_.coef.shape == (len(model.trace_), 101)
    sparse = mc.LogisticRegression(alpha=2.0, tol=1e-9, solver=solver).fit(sp.csr_array(Z), t)
    np.testing.assert_allclose(sparse.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.function_(Z), model.decision_function(Z), atol=1e-9)


def test_more_columns_than_rows_far_from_zero():
    Z, t = rng.normal(size=(30, 100)), np.arange(30) % 2
    near = mc.LogisticRegression(alpha=2.0, tol=1e-9).fit(Z, t)
    far = mc.LogisticRegression(alpha=2.0).fit(Z + 1e6, t)
    assert far.status_.startswith("converged")
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)
    bare = mc.LogisticRegression(alpha=2.0, fit_intercept=False).fit(Z + 10.0, t)
    assert "Gram" in bare.status_


def test_features_of_every_kind():
    def squares(Z):
        return np.hstack([Z, Z**2])

    by_hand = mc.LogisticRegression(alpha=0.5, tol=1e-9).fit(squares(X), y)
    for features in (squares, mc.FromFeatures(squares)):
        try:
            model = mc.LogisticRegression(features, alpha=0.5, tol=1e-9).fit(X, y)
        except InvalidInput:
            assert features is not squares
            continue
        np.testing.assert_allclose(model.coef_, by_hand.coef_, atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(squares(X)), atol=1e-7)
    scaled = mc.LogisticRegression(StandardScaler(), alpha=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        scaled.coef_,
        mc.LogisticRegression(alpha=0.5, tol=1e-9).fit(StandardScaler().fit_transform(X), y).coef_,
        atol=1e-7,
    )
    kernel = mc.Polynomial(2, c=1.0)
    primal = mc.LogisticRegression(kernel, alpha=0.5, tol=1e-9).fit(X, y)
    dual = mc.KernelLogisticRegression(kernel, alpha=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(primal.decision_function(X), dual.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(primal.function_(X), dual.function_(X), atol=1e-5)


# -- in the space of a kernel -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"class_weight": "balanced"}])
def test_a_linear_kernel_is_the_linear_model(options, target):
    linear = mc.LogisticRegression(alpha=0.5, tol=1e-10, **options).fit(X, target, W)
    for more in ({}, {"n_centers": N}, {"solver": "lbfgs"}, {"solver": "newton-cg"}):
        kernel = mc.KernelLogisticRegression(mc.Linear(), alpha=0.5, tol=1e-9, **more, **options).fit(X, target, W)
        np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-5)
        np.testing.assert_allclose(kernel.intercept_, linear.intercept_.squeeze(), atol=1e-5)
        assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-9)


def test_every_point_counts_by_how_badly_it_is_predicted():
    model = mc.KernelLogisticRegression(K, alpha=0.5, tol=1e-10).fit(X, y, W)
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.dual_coef_, W * (y - p[:, 1]) / 0.5, atol=1e-7)
    assert abs(model.dual_coef_.sum()) < 1e-7
    several = mc.KernelLogisticRegression(K, alpha=0.5, tol=1e-10).fit(X, THREE, W)
    wrong = np.eye(3)[THREE] - several.predict_proba(X)
    np.testing.assert_allclose(several.dual_coef_, W[:, None] * wrong / 0.5, atol=1e-6)
    assert several.dual_coef_.shape == (N, 3)
    np.testing.assert_allclose(several.function_(X), several.decision_function(X))


def test_the_objective_is_what_is_said():
    for model, norm in (
        (mc.LogisticRegression(alpha=0.5), lambda m: (m.coef_**2).sum()),
        (mc.KernelLogisticRegression(K, alpha=0.5), lambda m: np.sum(m.dual_coef_ * (K(X) @ m.dual_coef_))),
    ):
        for target in (y, THREE):
            model.fit(X, target, W)
            loss = -W @ model.predict_log_proba(X)[np.arange(N), target]
            assert model.objective_ == pytest.approx(loss + 0.25 * norm(model), rel=1e-9)


def test_centres_approach_the_exact_fit():
    exact = mc.KernelLogisticRegression(K, alpha=0.5).fit(X, y)
    errors = []
    for m in (5, 20, 60, N):
        model = mc.KernelLogisticRegression(K, alpha=0.5, n_centers=m).fit(X, y)
        errors.append(np.abs(model.predict_proba(X) - exact.predict_proba(X)).max())
        assert f"centres for {N} points" in model.status_
        assert "would not fit" not in model.status_
        assert len(model.dual_coef_) <= m
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[2] < 0.02
    assert errors[3] < 1e-5
    chosen = mc.KernelLogisticRegression(K, alpha=0.5, centers=X[:20]).fit(X, y)
    assert len(chosen.dual_coef_) == 20
    assert "would not fit" not in chosen.status_
    for how in ("kmeans", "pivoted"):
        assert mc.KernelLogisticRegression(K, n_centers=20, centers=how).fit(X, y).score(X, y) > 0.8


def test_a_small_budget_takes_centres_and_says_so():
    model = mc.KernelLogisticRegression(K, alpha=0.5, budget="200 kB").fit(X, y)
    assert "centres for 120 points" in model.status_
    assert "would not fit in 200 kB" in model.status_
    assert model.score(X, y) > 0.8
    assert "on all 120 points" in mc.KernelLogisticRegression(K, alpha=0.5).fit(X, y).status_


def test_precomputed_matrices():
    G = K(X)
    plain = mc.KernelLogisticRegression(K, alpha=0.5).fit(X[:80], y[:80])
    given = mc.KernelLogisticRegression(mc.Precomputed(), alpha=0.5).fit(G[:80, :80], y[:80])
    np.testing.assert_allclose(given.predict_proba(G[80:, :80]), plain.predict_proba(X[80:]), atol=1e-9)
    np.testing.assert_allclose(given.loo_proba_, plain.loo_proba_, atol=1e-9)
    a = cross_val_score(mc.KernelLogisticRegression(mc.Precomputed(), alpha=0.5), G, y, cv=4, scoring="neg_log_loss")
    b = cross_val_score(mc.KernelLogisticRegression(K, alpha=0.5), X, y, cv=4, scoring="neg_log_loss")
    np.testing.assert_allclose(a, b, rtol=1e-6)
    w = np.ones(80)
    w[:5] = 0.0
    without = mc.KernelLogisticRegression(mc.Precomputed(), alpha=0.5).fit(G[:80, :80], y[:80], w)
    np.testing.assert_allclose(
        without.predict_proba(G[80:, :80]),
        mc.KernelLogisticRegression(K, alpha=0.5).fit(X[5:80], y[5:80]).predict_proba(X[80:]),
        atol=1e-9,
    )


def test_points_that_are_not_vectors():
    words = [{"a", "b"}, {"a"}, {"c"}, {"c", "d"}, {"a", "e"}, {"d"}]
    model = mc.KernelLogisticRegression(mc.Intersection(), alpha=0.1).fit(words, list("xxyyxy"))
    assert list(model.predict([{"a"}, {"d", "c"}])) == ["x", "y"]
    same = mc.FromFunction(lambda a, b: float(len(set(a) & set(b))))
    texts = ["abc", "abd", "xyz", "xyw"]
    model = mc.KernelLogisticRegression(same, alpha=0.1).fit(texts, [0, 0, 1, 1])
    assert list(model.predict(["ab", "yz"])) == [0, 1]


@pytest.mark.parametrize("kind", BOTH)
def test_frames(kind):
    options = {} if kind is mc.LogisticRegression else {"kernel": K}
    plain = kind(**options, alpha=0.5).fit(X, y)
    names = ["a", "b", "c"]
    labels = np.where(y, "yes", "no")
    for frame, column in (
        (pd.DataFrame(X, columns=names), pd.Series(labels)),
        (pl.DataFrame(X, schema=names), pl.Series(labels)),
    ):
        model = kind(**options, alpha=0.5).fit(frame, column)
        np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(X), atol=1e-9)
        assert list(model.feature_names_in_) == names
        assert set(model.predict(frame)) == {"no", "yes"}


def test_rules_grids_and_defaults():
    assert isinstance(mc.KernelLogisticRegression().fit(X, y).kernel_, mc.Gaussian)
    grid = GridSearchCV(mc.KernelLogisticRegression(K), {"kernel__sigma": [0.5, 2.0], "alpha": [0.1, 1.0]}, cv=3)
    grid.fit(X, y)
    assert grid.best_score_ > 0.75
    deep = clone(mc.KernelLogisticRegression(K, alpha=0.2)).set_params(kernel__sigma=9.0)
    assert deep.kernel == mc.Gaussian(9.0)


# -- weights ----------------------------------------------------------------------------------------------------------

MODELS = {
    "linear": mc.LogisticRegression(alpha=0.5, tol=1e-10),
    "lbfgs": mc.LogisticRegression(alpha=0.5, tol=1e-10, solver="lbfgs"),
    "kernel": mc.KernelLogisticRegression(K, alpha=0.5, tol=1e-10),
    "centres": mc.KernelLogisticRegression(K, alpha=0.5, tol=1e-10, centers=X[:15]),
}


@pytest.mark.parametrize("target", [y, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_repetitions(name, target):
    w = np.random.default_rng(8).integers(0, 4, N)
    rows = np.repeat(np.arange(N), w)
    a = clone(MODELS[name]).fit(X, target, w)
    b = clone(MODELS[name]).fit(X[rows], target[rows])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    c = clone(MODELS[name]).fit(X[w > 0], target[w > 0], w[w > 0])
    np.testing.assert_allclose(a.predict_proba(X), c.predict_proba(X), atol=1e-9)
    assert len(a.loo_proba_) == np.count_nonzero(w)


# -- labels and probabilities -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "names",
    [
        ["b", "a"],
        [True, False],
        [7, -3],
        [2.0, 1.0],
        ["z", "a", "m"],
        [30, 10, 20],
        [np.int8(5), np.int8(3), np.int8(4)],
    ],
)
def test_labels_of_any_kind(kind, names):
    t = y if len(names) == 2 else THREE
    labels = np.array(names)[t]
    model = kind(alpha=0.5).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    assert model.predict(X).dtype == labels.dtype
    reference = kind(alpha=0.5).fit(X, t)
    order = np.argsort(np.array(names))
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X)[:, order], atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), np.array(names)[reference.predict(X)])
    as_objects = kind(alpha=0.5).fit(X, list(labels))
    np.testing.assert_allclose(as_objects.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", [y, THREE], ids=["two", "three"])
def test_probabilities_agree_with_predictions(name, target):
    model = clone(MODELS[name]).fit(X, target)
    Z = 3 * rng.normal(size=(200, 3))
    P, log_P, eta = model.predict_proba(Z), model.predict_log_proba(Z), model.decision_function(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(Z), model.classes_[P.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(log_P), P, atol=1e-14)
    if len(model.classes_) == 2:
        np.testing.assert_allclose(P[:, 1], expit(eta), rtol=1e-12)
        assert eta.shape == (200,)
    else:
        np.testing.assert_allclose(P, softmax(eta, axis=1), rtol=1e-12)
        assert eta.shape == (200, 3)


def test_extreme_odds_have_finite_logarithms():
    model = mc.LogisticRegression(alpha=0.5).fit(X, y)
    far = 1e4 * np.sign(model.coef_)
    for Z, rare in ((far, 0), (-far, 1)):
        P, log_P = model.predict_proba(Z)[0], model.predict_log_proba(Z)[0]
        assert P[rare] == 0.0
        assert np.isfinite(log_P).all()
        assert log_P[rare] == pytest.approx(-abs(model.decision_function(Z)[0]))
    several = mc.LogisticRegression(alpha=0.5).fit(X, THREE)
    assert np.isfinite(several.predict_log_proba(np.full((1, 3), 1e5))).all()
    assert list(logistic._most_probable(np.array([[0.0], [1e-300], [-1.0]]))) == [0, 1, 0]  # at even odds the first


def calibration(P, t, bins=8):
    """The greatest distance of the mean probability from the frequency over bins, in binomial deviations."""
    parts = np.array_split(np.argsort(P), bins)
    return max(abs(P[i].sum() - t[i].sum()) / np.sqrt((P[i] * (1 - P[i])).sum()) for i in parts)


def test_probabilities_are_calibrated():
    n, d = 4000, 5
    Z = rng.normal(size=(2 * n, d))
    w = rng.normal(size=d)
    t = rng.random(2 * n) < expit(Z @ w - 0.5)
    model = mc.LogisticRegression(alpha=1e-2).fit(Z[:n], t[:n])
    inside, outside = model.predict_proba(Z[:n])[:, 1], model.predict_proba(Z[n:])[:, 1]
    assert calibration(inside, t[:n]) < 3.0
    assert calibration(outside, t[n:]) < 3.5
    assert calibration(expit(2 * model.decision_function(Z[n:])), t[n:]) > 5  # what too sure a model would get
    assert abs((t[:n] - inside).sum()) < 1e-4 * n
    weighted = mc.LogisticRegression(alpha=1.0, tol=1e-9).fit(X, y, W)
    assert abs(W @ (y - weighted.predict_proba(X)[:, 1])) < 1e-6
    B = rng.normal(size=(d, 3))
    several = np.argmax(Z @ B + rng.gumbel(size=(2 * n, 3)), axis=1)
    P = mc.LogisticRegression(alpha=1e-2).fit(Z[:n], several[:n]).predict_proba(Z[n:])
    for j in range(3):
        assert calibration(P[:, j], several[n:] == j) < 3.5


def test_kernel_probabilities_are_calibrated():
    n = 500
    Z = rng.uniform(-2, 2, size=(4 * n, 1))
    k, anchors = mc.Gaussian(0.7), np.array([[-1.0], [0.0], [1.0]])
    t = rng.random(4 * n) < expit(k(Z, anchors) @ [3.0, -4.0, 3.0])  # in the space of the kernel
    model = mc.KernelLogisticRegression(k, alpha=0.1, tol=1e-8).fit(Z[:n], t[:n])
    P = model.predict_proba(Z)[:, 1]
    assert calibration(P[n:], t[n:]) < 4.0
    assert abs((t[:n] - P[:n]).sum()) < 1e-4 * n


# -- separation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_separable_data(solver):
    t = X[:, 0] + 0.1 > 0
    with pytest.raises(Separable, match=r"alpha. must be > 0.*False, True separated .every row") as caught:
        mc.LogisticRegression(alpha=0.0, solver=solver, max_iter=100).fit(X, t)
    direction = caught.value.direction
    assert caught.value.complete
    assert direction.shape == (4,)
    assert (np.where(t, 1, -1) * (X @ direction[:3] + direction[3]) > 0).all()
    model = mc.LogisticRegression(alpha=1.0, solver=solver).fit(X, t)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, t) > 0.97


@pytest.mark.parametrize("tol", [1e-6, 1e-2, 0.1])
def test_separable_data_is_told_at_any_tolerance(tol):
    for solver in ("newton", "lbfgs", "gradient"):
        with pytest.raises(Separable):
            mc.LogisticRegression(alpha=0.0, tol=tol, solver=solver, max_iter=200).fit(X, X[:, 0] > 0)
        apart = np.array([[-2.0], [-1.5], [1.5], [2.0]])
        with pytest.raises(Separable):  # long before the odds are extreme
            mc.LogisticRegression(alpha=0.0, tol=max(tol, 0.3), solver=solver).fit(apart, [0, 0, 1, 1])


def test_rows_on_the_border():
    Z = np.array([[-2.0], [-1.0], [0.0], [0.0], [1.0], [2.0]])
    with pytest.raises(Separable, match="some rows") as caught:
        mc.LogisticRegression(alpha=0.0).fit(Z, [0, 0, 0, 1, 1, 1])
    d = caught.value.direction
    assert not caught.value.complete
    moves = np.array([-1, -1, -1, 1, 1, 1]) * (Z[:, 0] * d[0] + d[1])
    assert moves.min() >= -1e-9
    assert moves.max() > 1e-3
    indicator = np.column_stack([X[:, 0], np.arange(N) < 10])
    t = y.copy()
    t[:10] = 1
    with pytest.raises(Separable, match="some rows") as caught:
        mc.LogisticRegression(alpha=0.0).fit(indicator, t)
    d = caught.value.direction
    assert (np.where(t, 1, -1) * (indicator @ d[:2] + d[2])).min() > -1e-9


@pytest.mark.thorough
def test_several_classes_that_are_separated():
    t = np.digitize(X[:, 0], [-0.5, 0.5])
    for form in (X, sp.csr_array(X)):
        with pytest.raises(Separable) as caught:
            mc.LogisticRegression(alpha=0.0).fit(form, t)
        d = caught.value.direction
        assert d.shape == (4, 3)
        eta = X @ d[:3] + d[3]
        own = eta[np.arange(N), t][:, None]
        assert (own - eta >= -1e-9).all()
        assert (eta.argmax(axis=1) == t).all()
        assert caught.value.complete
    one = THREE.copy()
    one[X[:, 0] > 0.9] = 3  # one class apart from the others, which are mixed
    with pytest.raises(Separable, match="some rows") as caught:
        mc.LogisticRegression(alpha=0.0).fit(X, one)
    eta = X @ caught.value.direction[:3] + caught.value.direction[3]
    assert (eta[np.arange(N), one][:, None] - eta >= -1e-9).all()
    assert mc.LogisticRegression(alpha=1e-2).fit(X, t).score(X, t) > 0.97


def test_separation_without_intercept_and_with_kernels():
    t = X[:, 0] > 0
    with pytest.raises(Separable) as caught:
        mc.LogisticRegression(alpha=0.0, fit_intercept=False).fit(X, t)
    assert caught.value.direction.shape == (3,)
    assert (np.where(t, 1, -1) * (X @ caught.value.direction) > 0).all()
    shifted = X[:, :1] + 5.0
    mc.LogisticRegression(alpha=0.0, fit_intercept=False).fit(shifted, shifted[:, 0] > 5.0)  # not through the origin
    with pytest.raises(Separable):
        mc.LogisticRegression(alpha=0.0).fit(shifted, shifted[:, 0] > 5.0)
    with pytest.raises(Separable):
        mc.KernelLogisticRegression(mc.Linear(), alpha=0.0).fit(X, t)
    with pytest.raises(Separable):  # a circle, by the square's features
        mc.KernelLogisticRegression(mc.Polynomial(2, c=1.0), alpha=0.0).fit(X, np.hypot(X[:, 0], X[:, 1]) > 1.2)


def test_left_out_values_are_computed_once_a_fit(monkeypatch):
    calls = []
    monkeypatch.setattr(
        logistic, "left_out_values", lambda *given: calls.append(1) or leave_out.left_out_values(*given)
    )
    model = mc.LogisticRegression().fit(X, y)
    before = model.loo_proba_, model.loo_score_, model.loo_log_loss_
    assert len(calls) == 1
    assert model.fit(X, ~np.asarray(y, bool)).loo_score_ == before[1]
    assert len(calls) == 2


def test_most_fits_need_no_linear_program(monkeypatch):
    def never(*given, **more):
        raise AssertionError

    monkeypatch.setattr(separation, "GRADIENTS", np.inf)
    monkeypatch.setattr(separation, "linprog", never)
    mc.LogisticRegression(alpha=0.0).fit(X, y)
    mc.LogisticRegression(alpha=0.0).fit(X, THREE)
    with pytest.raises(AssertionError):
        mc.LogisticRegression(alpha=0.0).fit(X, X[:, 0] > 0)


@pytest.mark.thorough
def test_proof_and_programs_agree():
    """The shortcut never hides a direction that the linear programs find."""
    kinds = set()
    for seed in range(12):
        draw = np.random.default_rng(seed)
        n, k = int(draw.integers(4, 14)), int(draw.integers(2, 4))
        Z = draw.normal(size=(n, 2)).round(int(draw.integers(0, 2)))
        t = draw.integers(0, k, n)
        t[:k] = np.arange(k)
        loss = loss_of("bernoulli", "logit") if k == 2 else Softmax(k)
        risk = Risk(FeatureSpace(Z, np.ones((n, 1))), loss, t if k > 2 else t.astype(float), 0.0)
        found = receding_direction(risk)
        try:
            model = mc.LogisticRegression(alpha=0.0).fit(Z, t)
        except Separable:
            assert found is not None
        else:
            assert found is None
            assert np.abs(model.coef_).max() < 1e3
        kinds.add(None if found is None else found[1])
    assert kinds == {None, True, False}


# -- leave-one-out ----------------------------------------------------------------------------------------------------

FEW = slice(0, 45)


def refitted(model, X, t, w):
    n = len(t)
    found = []
    for i in range(n):
        rest = np.arange(n) != i
        found.append(clone(model).fit(X[rest], t[rest], w[rest]).predict_proba(X[i : i + 1])[0])
    return np.array(found)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "target", "alpha", "error"),
    [
        ("linear", "two", 1.0, 1e-2),
        ("linear", "three", 5.0, 1e-2),
        ("kernel", "two", 5.0, 3e-3),
        ("kernel", "three", 1.0, 2e-2),
        ("centres", "two", 1.0, 1e-2),
        ("centres", "three", 5.0, 1e-2),
    ],
)
def test_leave_one_out_against_refits(name, target, alpha, error):
    t, w = (y if target == "two" else THREE)[FEW], W[FEW]
    model = clone(MODELS[name]).set_params(alpha=alpha, tol=1e-7).fit(X[FEW], t, w)
    exact = refitted(model, X[FEW], t, w)
    fitted = model.predict_proba(X[FEW])
    assert np.abs(model.loo_proba_ - exact).max() < error
    assert np.abs(model.loo_proba_ - exact).max() < 0.15 * np.abs(fitted - exact).max()
    losses = -np.log(exact[np.arange(len(t)), t])
    assert model.loo_log_loss_ == pytest.approx(np.average(losses, weights=w), rel=0.03)
    right = np.average(exact.argmax(axis=1) == t, weights=w)
    assert model.loo_score_ == pytest.approx(right, abs=0.03)


@pytest.mark.parametrize("target", [y, THREE], ids=["two", "three"])
def test_leave_one_out_of_gram_and_features(target, monkeypatch):
    linear = mc.LogisticRegression(alpha=0.5, tol=1e-10).fit(X, target, W)
    gram = mc.KernelLogisticRegression(mc.Linear(), alpha=0.5, tol=1e-10).fit(X, target, W)
    centres = mc.KernelLogisticRegression(mc.Linear(), alpha=0.5, tol=1e-10, n_centers=N).fit(X, target, W)
    for other in (gram, centres):
        np.testing.assert_allclose(other.loo_proba_, linear.loo_proba_, atol=1e-6)
    if target is THREE:  # each class by itself, where there are too many weights
        together = linear.loo_proba_
        monkeypatch.setattr(leave_out, "JOINT", 0)
        del gram._left, linear._left
        for other in (gram, linear):
            np.testing.assert_allclose(other.loo_proba_, linear.loo_proba_, atol=1e-6)
        assert 1e-4 < np.abs(linear.loo_proba_ - together).max() < 0.03


def test_leave_one_out_where_odds_are_extreme():
    Z = np.vstack([X[:, :1], [[60.0], [-60.0]]])
    t = np.append(X[:, 0] + 0.3 * rng.normal(size=N) > 0, [True, False])
    linear = mc.LogisticRegression(alpha=0.01).fit(Z, t)
    gram = mc.KernelLogisticRegression(mc.Linear(), alpha=0.01, tol=1e-9).fit(Z, t)
    assert np.isfinite(linear.loo_proba_).all()
    np.testing.assert_allclose(gram.loo_proba_, linear.loo_proba_, atol=1e-4)


# -- the way down -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_traces_are_in_weights_and_intercept(solver):
    model = mc.LogisticRegression(alpha=0.5, solver=solver).fit(X + 3.0, y)
    trace = model.trace_
    assert len(trace) == model.n_iter_ + 1
    assert (np.diff(trace.objective) <= 1e-12 * trace.objective[0]).all()
    np.testing.assert_allclose(trace.coef[-1], np.append(model.coef_, model.intercept_), atol=1e-12)
    for k in range(0, len(trace), 5):
        eta = (X + 3.0) @ trace.coef[k, :-1] + trace.coef[k, -1]
        value = np.logaddexp(0, -(2 * y - 1) * eta).sum() + 0.25 * (trace.coef[k, :-1] ** 2).sum()
        assert value == pytest.approx(trace.objective[k])
    assert model.status_.startswith(f"converged in {model.n_iter_} step")
    assert "3 features of 120 rows" in model.status_


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start(solver):
    begin = np.array([2.0, 2.0, -1.0, 1.0])
    model = mc.LogisticRegression(alpha=0.5, solver=solver, start=begin).fit(X + 3.0, y)
    np.testing.assert_allclose(model.trace_.coef[0], begin, atol=1e-12)
    np.testing.assert_allclose(model.coef_, mc.LogisticRegression(alpha=0.5).fit(X + 3.0, y).coef_, atol=1e-3)
    several = mc.LogisticRegression(alpha=0.5, solver=solver, start=np.ones((4, 3))).fit(X, THREE)
    np.testing.assert_allclose(several.coef_, mc.LogisticRegression(alpha=0.5).fit(X, THREE).coef_, atol=1e-3)


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_not_reached_is_told(kind):
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps: objective.*Raise `max_iter`") as caught:
        model = kind(alpha=1e-3, max_iter=2, tol=1e-10).fit(X, y)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 2
    assert model.score(X, y) > 0.7
    with pytest.warns(ConvergenceWarning, match="stopped by the limit of 1e-09 s"):
        kind(alpha=1e-3, max_time=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="stopped by the caller after 1 step: "):
        kind(alpha=1e-3, progress=lambda step: step.iteration < 1).fit(X, y)


def test_a_step_too_long_diverges_and_says_so():
    with pytest.warns(ConvergenceWarning, match="diverged.*the step 10 is too long.*Use a shorter `step`"):
        model = mc.LogisticRegression(alpha=0.5, solver="gradient", step=10.0).fit(X, y)
    assert "diverged" in model.status_
    assert model.objective_ == model.trace_.objective.min()
    assert np.isfinite(model.coef_).all()


@pytest.fixture
def ctrl_c():
    """A signal as from the keyboard, also where the tests run in the background and ignore it."""

    def press():
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(5)  # until it is delivered

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield press
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", BOTH)
def test_an_interrupt_keeps_the_best_iterate_and_goes_on(kind, solver, ctrl_c):
    def pressed(step):
        if step.iteration == 2:
            ctrl_c()
        return True

    model = kind(alpha=1e-3, solver=solver, tol=1e-10, progress=pressed)
    with pytest.raises(KeyboardInterrupt, match="best iterate"):
        model.fit(X, y)
    assert model.status_.startswith("interrupted after 2 steps")
    assert model.n_iter_ == 2
    assert model.objective_ == model.trace_.objective[-1] < model.trace_.objective[0]
    assert model.predict(X).shape == (N,)


def test_an_interrupt_of_a_fit_without_penalty_is_not_taken_for_separation(monkeypatch):
    def pressed(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mc.LogisticRegression(alpha=0.0, progress=pressed).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("kind", BOTH)
def test_an_interrupt_before_there_is_an_iterate_leaves_the_model_as_it_was(kind, monkeypatch):
    def pressed(*given, **more):
        raise KeyboardInterrupt

    model = kind(alpha=0.5).fit(X, THREE)
    before, kept = model.predict_proba(X), dict(vars(model))
    monkeypatch.setattr(Risk, "at", pressed)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:50, :2], y[:50])
    assert vars(model).keys() == kept.keys()
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("kind", BOTH)
def test_pickles_and_refits(kind):
    model = kind(alpha=0.5).fit(X, THREE, W)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(again.loo_proba_, model.loo_proba_)
    other = clone(model).fit(X[:, :2], y)
    model.fit(X[:, :2], y)
    np.testing.assert_array_equal(model.predict_proba(X[:, :2]), other.predict_proba(X[:, :2]))
    np.testing.assert_array_equal(model.loo_proba_, other.loo_proba_)


# -- callbacks --------------------------------------------------------------------------------------------------------


class Recorder:
    def __init__(self, stop=False):
        self.told, self.stop = [], stop

    def setup(self, estimator, context):
        self.told.append(("setup", None))

    def teardown(self, estimator, context):
        self.told.append(("teardown", None))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", None))

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.told.append((context.task_name, (metadata or {}).get("progress")))
        return self.stop


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_callbacks_are_told_the_way(kind, solver):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from release 1.9 on")
    told = Recorder()
    model = kind(alpha=0.5, solver=solver).set_callbacks(told).fit(X, y, W)
    plain = kind(alpha=0.5, solver=solver).fit(X, y, W)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert [told.told[0][0], told.told[-2][0], told.told[-1][0]] == ["setup", "fit", "teardown"]
    steps = [progress for name, progress in told.told if name == "step"]
    assert len(steps) > 3
    assert steps[-1].gap <= model.tol
    assert steps[-1].objective == pytest.approx(model.objective_)
    assert not {"_watch", "_callback_fit_ctx"} & set(vars(model))
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        kind(alpha=0.5, solver=solver).set_callbacks(Recorder(stop=True)).fit(X, y)


@pytest.mark.parametrize("kind", BOTH)
def test_progress_is_written(kind, capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from release 1.9 on")
    out = io.StringIO()
    model = kind(alpha=0.5).set_callbacks(mc.SolverProgress(every=0.0, stream=out)).fit(X, y)
    last = out.getvalue().splitlines()[-1]
    assert last.startswith(f"{kind.__name__}: 100 %, objective {model.objective_:.6g}, gap")
    assert f"step {model.n_iter_}, gradient" in last
    kind(alpha=0.5).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert f"{kind.__name__} - fit" in capsys.readouterr().out


# -- bad input --------------------------------------------------------------------------------------------------------

NAN = np.where(np.arange(N) == 5, np.nan, 0.0)
BAD = {
    "one class": (lambda m: m.fit(X, np.ones(N, int)), r"needs at least two classes, got 1 class, 1\."),
    "one row": (lambda m: m.fit(X[:1], y[:1]), r"at least two classes"),
    "no rows": (lambda m: m.fit(X[:0], y[:0]), r"at least one sample"),
    "NaN labels": (lambda m: m.fit(X, y + NAN), r"one label per point.*NaN"),
    "numbers": (lambda m: m.fit(X, X[:, 0]), r"Use GLM or KernelGLM"),
    "no labels": (lambda m: m.fit(X, None), r"requires y"),
    "lengths": (lambda m: m.fit(X, y[:-1]), r"119 labels for 120 points"),
    "a class of weight 0": (lambda m: m.fit(X, y, (y == 1).astype(float)), r"the only one with weight > 0"),
    "negative weights": (lambda m: m.fit(X, y, -W), r"`sample_weight` must hold 120 finite numbers ≥ 0"),
    "NaN in X": (lambda m: m.fit(X + NAN[:, None], y), r"NaN"),
    "inf in X": (lambda m: m.fit(np.where(X > 2, np.inf, X), y), r"inf"),
    "solver": (lambda m: m.set_params(solver="sgd").fit(X, y), r"`solver` must be one of 'auto', 'newton'.*got 'sgd'"),
    "no solver": (lambda m: m.set_params(solver=None).fit(X, y), r"`solver` must be one of"),
    "step of newton": (lambda m: m.set_params(step=0.1).fit(X, y), r"`step` is the fixed step of solver='gradient'"),
    "step 0": (
        lambda m: m.set_params(step=0.0, solver="gradient").fit(X, y),
        r"`step` must be a number > 0, or None, got 0.0",
    ),
    "step NaN": (lambda m: m.set_params(step=np.nan, solver="gradient").fit(X, y), r"`step` must be a number > 0"),
    "tol": (lambda m: m.set_params(tol=-1.0).fit(X, y), r"`tol` must be a number > 0, got -1.0"),
    "tol text": (lambda m: m.set_params(tol="small").fit(X, y), r"`tol` must be a number > 0, got 'small'"),
    "max_iter": (lambda m: m.set_params(max_iter=2.5).fit(X, y), r"`max_iter` must be a whole number"),
    "max_iter 0": (lambda m: m.set_params(max_iter=0).fit(X, y), r"`max_iter` must be"),
    "max_time": (lambda m: m.set_params(max_time=-1).fit(X, y), r"`max_time` must be a number > 0"),
    "alpha": (lambda m: m.set_params(alpha=-1.0).fit(X, y), r"`alpha` must be a number ≥ 0.*got -1.0"),
    "alpha NaN": (lambda m: m.set_params(alpha=np.nan).fit(X, y), r"`alpha` must be a number ≥ 0"),
    "alpha text": (lambda m: m.set_params(alpha="auto").fit(X, y), r"`alpha` must be a number ≥ 0"),
    "class_weight": (lambda m: m.set_params(class_weight={5: 2.0}).fit(X, y), r"one of the classes, got 5"),
    "class_weight 0": (lambda m: m.set_params(class_weight={0: 0.0}).fit(X, y), r"got 0.0 for 0"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_input_is_refused_and_leaves_the_model_as_it_was(kind, case):
    refused, words = BAD[case]
    model = kind(alpha=0.5).fit(X, THREE)
    before, kept = model.predict_proba(X), dict(vars(model))
    with pytest.raises(InvalidInput, match=words):
        refused(model)
    after = vars(model)
    assert after.keys() == kept.keys()
    assert all(after[name] is kept[name] for name in kept if name not in model.get_params())
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("kind", BOTH)
def test_queries_are_checked(kind):
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])
    with pytest.raises(InvalidInput, match="NaN"):
        model.predict_proba(np.full((1, 3), np.nan))
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(kind(), name)(X)
    for name in ("loo_proba_", "loo_score_", "loo_log_loss_"):
        with pytest.raises(NotFittedError):
            getattr(kind(), name)
    if kind is mc.LogisticRegression:
        for name in ("coef_", "intercept_", "function_"):
            with pytest.raises(NotFittedError):
                getattr(kind(), name)


@pytest.mark.parametrize("start", [[1.0, 2.0], "here", [1.0, 2.0, np.nan, 0.0], np.ones((5, 1))])
def test_starts_of_the_wrong_kind(start):
    with pytest.raises(
        InvalidInput, match="`start` must hold 4 finite numbers: a weight per feature, then the intercept"
    ):
        mc.LogisticRegression(start=start).fit(X, y)


def test_kernels_need_a_penalty():
    with pytest.raises(InvalidInput, match="`alpha` must be > 0 for a kernel"):
        mc.KernelLogisticRegression(K, alpha=0).fit(X, y)
    for kernel in ("rbf", 3):
        with pytest.raises(InvalidInput, match="`kernel` must be"):
            mc.KernelLogisticRegression(kernel).fit(X, y)
    with pytest.raises(InvalidInput, match="`centers` must be one of"):
        mc.KernelLogisticRegression(K, n_centers=10, centers="best").fit(X, y)
    with pytest.raises(InvalidInput, match="n_centers"):
        mc.KernelLogisticRegression(K, n_centers=0).fit(X, y)
    with pytest.raises(InvalidInput, match="eigenvalue"):
        mc.KernelLogisticRegression(mc.Precomputed(-K(X))).fit(np.arange(N), y)
    with pytest.raises(InvalidInput, match="`features` must be"):
        mc.LogisticRegression(3).fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_constant_columns(alpha):
    plain = mc.LogisticRegression(alpha=alpha, tol=1e-9).fit(X, y)
    for value in (0.0, 1.0):
        model = mc.LogisticRegression(alpha=alpha, tol=1e-9).fit(np.column_stack([X, np.full(N, value)]), y)
        np.testing.assert_allclose(model.coef_[0], np.append(plain.coef_, 0.0), atol=1e-6)
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-6)
    only = mc.LogisticRegression(alpha=alpha).fit(np.zeros((N, 1)), y)
    np.testing.assert_allclose(only.predict_proba(np.zeros((1, 1)))[0, 1], y.mean(), atol=1e-6)
    several = mc.LogisticRegression(alpha=alpha).fit(np.ones((N, 1)), THREE)
    np.testing.assert_allclose(several.predict_proba(np.ones((1, 1)))[0], np.bincount(THREE) / N, atol=1e-6)


@pytest.mark.parametrize("kind", BOTH)
def test_two_rows_and_repeated_points(kind):
    model = kind(alpha=0.1).fit([[0.0], [1.0]], ["a", "b"])
    assert list(model.predict([[0.0], [1.0]])) == ["a", "b"]
    same = kind(alpha=0.1).fit(np.zeros((4, 2)), [0, 1, 1, 1])
    np.testing.assert_allclose(same.predict_proba([[0.0, 0.0]]), [[0.25, 0.75]], atol=1e-5)
    rare = kind(alpha=0.1).fit(X, (np.arange(N) == 3).astype(int))
    assert np.isfinite(rare.predict_log_proba(X)).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_columns_of_any_size(scale):
    plain = mc.LogisticRegression(alpha=1.0, tol=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alpha = scale**2 if 1e-150 < scale < 1e150 else 0.0
        model = mc.LogisticRegression(alpha=alpha, tol=1e-9).fit(scale * X, y)
    if alpha:
        np.testing.assert_allclose(scale * model.coef_, plain.coef_, rtol=1e-5)


# -- real data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_digits])
def test_real_data_at_least_as_well_as_scikit_learn(load):
    Z, t = load(return_X_y=True)
    Z = StandardScaler().fit_transform(Z)
    train, test = np.arange(len(t)) % 2 == 0, np.arange(len(t)) % 2 == 1
    ours = mc.LogisticRegression(alpha=1.0).fit(Z[train], t[train])
    theirs = sk(1.0).set_params(tol=1e-6).fit(Z[train], t[train])
    assert ours.score(Z[test], t[test]) >= theirs.score(Z[test], t[test]) - 1e-9
    assert log_loss(t[test], ours.predict_proba(Z[test])) <= log_loss(t[test], theirs.predict_proba(Z[test])) + 1e-4
    kernel = mc.KernelLogisticRegression(alpha=1e-2, n_centers=100).fit(Z[train], t[train])
    assert kernel.score(Z[test], t[test]) > 0.93


@pytest.mark.parametrize(
    ("end", "settings"),
    [
        ("converged", {}),
        ("iterations", {"solver": "gradient", "max_iter": 2}),
        ("time", {"solver": "gradient", "max_time": 1e-9}),
        ("caller", {"progress": lambda step: False}),
        ("diverged", {"solver": "gradient", "step": 1e6}),
    ],
)
def test_the_end_is_one_word(end, settings):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] + np.sin(9 * X[:, 1]) > 0
    model = mc.LogisticRegression(alpha=1.0, **settings)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert model.end_ == end
    assert ("shorter `step`" in "".join(str(w.message) for w in heard)) == (end == "diverged")
