"""Least-squares classification: against its definition, scikit-learn, brute-force leave-one-out, and on bad days."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_circles
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import PolynomialFeatures

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.least_squares.classifier import LeastSquaresClassifier

rng = np.random.default_rng(0)

REAL = {
    "cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "digits": load_digits(return_X_y=True),
}


def standardised(X):
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)


def three_classes(n=60, d=3):
    y = np.arange(n) % 3
    y[: n // 6] = 0
    return rng.normal(size=(n, d)) + np.array([[0, 0, 0], [2, 0, 1], [0, 2, -1]])[y], y


# -- the definition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_definition(fit_intercept, weighted):
    X, y = three_classes()
    w = rng.uniform(0.5, 2, size=60) if weighted else np.ones(60)
    Z = rng.normal(size=(10, 3))
    alpha, Y = 0.7, np.array([[1.0 if label == c else 0.0 for c in range(3)] for label in y])
    # weights by the normal equations, a column of ones for the intercept without a penalty
    P = np.column_stack([X, np.ones(60)]) if fit_intercept else X
    penalty = alpha * np.diag([1, 1, 1, 0] if fit_intercept else [1, 1, 1])
    W = np.linalg.solve(P.T @ (w[:, None] * P) + penalty, P.T @ (w[:, None] * Y))
    expected = (np.column_stack([Z, np.ones(10)]) if fit_intercept else Z) @ W
    linear = LeastSquaresClassifier(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, w)
    kernel = LeastSquaresClassifier(mc.Linear(), alpha=alpha, fit_intercept=fit_intercept).fit(X, y, w)
    for model in (linear, kernel):
        np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-8)
        np.testing.assert_array_equal(model.predict(Z), [int(np.argmax(row)) for row in expected])
        np.testing.assert_allclose(model.function_(Z), expected, atol=1e-8)
    np.testing.assert_allclose(linear.coef_, W[:3].T, atol=1e-8)
    np.testing.assert_allclose(linear.intercept_, W[3] if fit_intercept else 0, atol=1e-8)


def test_kernel_definition():
    X, y = three_classes()
    kernel, alpha = mc.Gaussian(1.5), 0.2
    K = np.array([[np.exp(-np.sum((a - b) ** 2) / 4.5) for b in X] for a in X])
    expected = K @ np.linalg.solve(K + alpha * np.eye(60), np.eye(3)[y])
    model = LeastSquaresClassifier(kernel, alpha=alpha, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


@pytest.mark.parametrize("name", REAL)
def test_equal_to_scikit_learn(name):
    X, y = REAL[name]
    X = standardised(X)
    model, peer = LeastSquaresClassifier(alpha=2.0).fit(X, y), RidgeClassifier(alpha=2.0).fit(X, y)
    f, g = model.decision_function(X), peer.decision_function(X)  # their targets are −1 and 1
    np.testing.assert_allclose(f if f.ndim == 1 else 2 * f - 1, g, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_values_sum_to_one_but_are_no_probabilities():
    X, y = REAL["iris"]
    for model in (LeastSquaresClassifier(), LeastSquaresClassifier(mc.Gaussian(1.0), alpha=0.1)):
        values = model.fit(X, y).decision_function(X)
        np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-8)
        assert values.min() < 0
        assert not hasattr(model, "predict_proba")


def test_two_classes_share_fishers_direction():
    X, y = REAL["cancer"]
    X = standardised(X)
    a = np.diff(LeastSquaresClassifier(alpha=3.0).fit(X, y).coef_, axis=0)[0]
    b = mc.FisherDiscriminant(alpha=3.0).fit(X, y).directions_[:, 0]
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) == pytest.approx(1, abs=1e-10)


def test_outliers_on_the_right_side_move_the_boundary():
    """Lecture 003: far beyond the boundary, and right; squares count them as errors, the logistic loss does not."""
    x = np.r_[rng.normal(-2, 0.5, 40), rng.normal(2, 0.5, 40)][:, None]
    y = np.repeat([0, 1], 40)
    far, label = np.vstack([x, np.full((10, 1), 60.0)]), np.r_[y, np.ones(10, int)]
    boundaries = {}
    for name, model in {"squares": LeastSquaresClassifier(alpha=1e-6), "logistic": LogisticRegression()}.items():
        for data in ((x, y), (far, label)):
            grid = np.linspace(-3, 3, 601)
            guess = clone(model).fit(*data).predict(grid[:, None])
            boundaries.setdefault(name, []).append(grid[np.argmax(guess == 1)] if guess.any() else np.inf)
    before, after = boundaries["squares"]
    assert abs(before) < 0.3
    assert after > 1.5
    assert abs(np.subtract(*boundaries["logistic"])) < 0.3


def test_curved_boundaries():
    X, y = make_circles(200, factor=0.5, noise=0.1, random_state=0)
    assert LeastSquaresClassifier().fit(X, y).score(X, y) < 0.7
    assert LeastSquaresClassifier(mc.Gaussian(0.7), alpha=0.1).fit(X, y).loo_score_ > 0.97
    features = [mc.Polynomial(2, c=1.0), PolynomialFeatures(2), lambda A: np.column_stack([A, A**2])]
    for phi in features:
        model = LeastSquaresClassifier(features=phi, alpha=0.1).fit(X, y)
        assert model.score(X, y) > 0.97
        assert model.coef_.shape[0] == 2
    implicit = LeastSquaresClassifier(mc.Polynomial(2, c=1.0), alpha=0.1).fit(X, y)
    explicit = LeastSquaresClassifier(features=mc.Polynomial(2, c=1.0), alpha=0.1).fit(X, y)
    np.testing.assert_allclose(implicit.decision_function(X), explicit.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(implicit.function_.weights().T, explicit.coef_, atol=1e-7)


# -- leave-one-out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [LeastSquaresClassifier(alpha=0.3), LeastSquaresClassifier(mc.Gaussian(1.0), alpha=0.3)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_brute_force(model, weighted):
    X, y = three_classes(45)
    w = rng.uniform(0.2, 2, size=45) if weighted else np.ones(45)
    if weighted:
        w[[3, 20]] = 0
    fitted = clone(model).fit(X, y, w)
    expected = np.empty(45, dtype=int)
    for i in range(45):
        rest = np.arange(45) != i
        expected[i] = clone(model).fit(X[rest], y[rest], w[rest]).predict(X[i : i + 1])[0]
    np.testing.assert_array_equal(fitted.loo_predictions_, expected)
    assert fitted.loo_score_ == pytest.approx(np.average(expected == y, weights=w))
    assert (expected != y).any()
    assert (fitted.predict(X) != expected).any()  # it is not the fit itself


def test_leave_one_out_of_labels():
    X, y = three_classes()
    names = np.array(["low", "middle", "top"])
    model = LeastSquaresClassifier(alpha=0.1).fit(X, names[y])
    plain = LeastSquaresClassifier(alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(model.loo_predictions_, names[plain.loo_predictions_])
    assert model.loo_score_ == plain.loo_score_


def test_alpha_by_leave_one_out():
    X, y = REAL["wine"]
    X = standardised(X)
    for kernel in (None, mc.Gaussian(4.0)):
        model = LeastSquaresClassifier(kernel, alpha="loo").fit(X, y)
        assert model.alpha_.shape == (3,)
        assert model.loo_score_ > 0.96
        ridge = (mc.Ridge if kernel is None else mc.KernelRidge)(kernel, alpha="loo", fit_intercept=True)
        np.testing.assert_allclose(model.alpha_, ridge.fit(X, np.eye(3)[y]).alpha_)
    best = max(
        LeastSquaresClassifier(mc.Gaussian(4.0), alpha=a).fit(X, y).loo_score_ for a in (1e-6, 1e-2, 1, 1e2, 1e4)
    )
    assert model.loo_score_ >= best - 0.01


def test_the_kernel_is_tuned():
    X, y = REAL["iris"]
    start = LeastSquaresClassifier(mc.Gaussian(0.05), alpha=1.0).fit(X, y)
    model = LeastSquaresClassifier(mc.Gaussian(0.05), tune="loo").fit(X, y)
    assert model.kernel_.sigma > 0.3
    assert model.tuning_.kernel == model.kernel_
    assert model.loo_score_ > start.loo_score_
    with pytest.raises(InvalidInput, match="`tune` needs a kernel"):
        LeastSquaresClassifier(tune="loo").fit(X, y)


# -- what it takes ----------------------------------------------------------------------------------------------------

BOTH = [LeastSquaresClassifier(alpha=0.5), LeastSquaresClassifier(mc.Gaussian(1.5), alpha=0.5)]


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_a_weight_is_a_repetition(model):
    X, y = three_classes()
    w = rng.integers(0, 4, size=60)
    weighted = clone(model).fit(X, y, w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)
    assert np.abs(weighted.decision_function(X) - clone(model).fit(X, y).decision_function(X)).max() > 0.01


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_class_weight_is_a_weight(model):
    X, y = three_classes()
    for given, w in [("balanced", 60 / 3 / np.bincount(y)[y]), ({0: 3.0}, np.where(y == 0, 3.0, 1.0))]:
        f = clone(model).set_params(class_weight=given).fit(X, y).decision_function(X)
        np.testing.assert_allclose(f, clone(model).fit(X, y, w).decision_function(X), atol=1e-10)


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_labels_of_any_type(model):
    X, y = three_classes()
    plain = clone(model).fit(X, y)
    for names in (["low", "middle", "top"], [-7, 3, 40]):
        named = np.array(names)[y]
        for given in (named, named.tolist(), pd.Series(named), pl.Series(named), named.astype(object)):
            fitted = clone(model).fit(X, given)
            assert fitted.classes_.tolist() == names
            np.testing.assert_array_equal(fitted.predict(X), np.array(names)[plain.predict(X)])
    truth = clone(model).fit(X, y == 1)
    f = truth.decision_function(X)
    assert f.shape == (60,)
    np.testing.assert_array_equal(truth.predict(X), f > 0)
    values = truth.regression_.predict(X)
    np.testing.assert_allclose(f, values[:, 1] - values[:, 0])


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_frames_sparse_and_float32(model):
    X, y = three_classes()
    X[np.abs(X) < 0.3] = 0
    frame = pd.DataFrame(X, columns=list("abc"))
    f = clone(model).fit(X, y).decision_function(X)
    for other in (frame, pl.DataFrame(X, schema=list("abc")), sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(clone(model).fit(other, y).decision_function(other), f, atol=1e-8)
    assert clone(model).fit(frame, y).feature_names_in_.tolist() == list("abc")
    single = X.astype(np.float32)
    np.testing.assert_allclose(clone(model).fit(single, y).decision_function(single), f, atol=1e-4)
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), f)
    assert again.loo_score_ == fitted.loo_score_


def test_precomputed_and_other_objects():
    X, y = three_classes()
    kernel = mc.Gaussian(1.5)
    pairwise = LeastSquaresClassifier(mc.Precomputed(), alpha=0.5).fit(kernel(X[:40]), y[:40])
    model = LeastSquaresClassifier(kernel, alpha=0.5).fit(X[:40], y[:40])
    np.testing.assert_allclose(pairwise.decision_function(kernel(X, X[:40])), model.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(pairwise.loo_predictions_, model.loo_predictions_)
    assert cross_val_score(LeastSquaresClassifier(mc.Precomputed()), kernel(X), y, cv=3).mean() > 0.6
    words = LeastSquaresClassifier(mc.Delta(), alpha=0.1).fit(["a", "a", "b", "c"], [0, 0, 1, 1])
    assert words.predict(["a", "b", "c"]).tolist() == [0, 1, 1]


def test_parameters_reach_into_the_kernel():
    X, y = REAL["iris"]
    search = GridSearchCV(LeastSquaresClassifier(mc.Gaussian(1.0)), {"kernel__sigma": [0.01, 1.0], "alpha": [0.1, 1.0]})
    assert search.fit(X, y).best_params_["kernel__sigma"] == 1.0
    assert LeastSquaresClassifier(mc.median_gaussian).fit(X, y).kernel_ == mc.median_gaussian(X)


BEYOND = [
    ("auto", "4 MB", "frequencies", 0.02),
    ("cg", "4 MB", "a matrix that is never stored", 0.02),
    ("nystrom", "400 kB", "centres (uniform)", 0.1),
]


@pytest.mark.parametrize(("solver", "budget", "words", "close"), BEYOND)
def test_beyond_memory(solver, budget, words, close):
    X, y = make_circles(1500, factor=0.5, noise=0.15, random_state=0)
    exact = LeastSquaresClassifier(mc.Gaussian(0.5)).fit(X, y)
    model = LeastSquaresClassifier(mc.Gaussian(0.5), solver=solver, budget=budget).fit(X, y)
    assert words in model.status_
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=close)


@pytest.mark.thorough
def test_digits():
    X, y = REAL["digits"]
    linear, curved = (
        LeastSquaresClassifier().fit(X / 16, y),
        LeastSquaresClassifier(mc.Gaussian(2.0), alpha=0.01).fit(X / 16, y),
    )
    assert 0.9 < linear.loo_score_ < 0.96
    assert curved.loo_score_ > 0.985
    assert cross_val_score(LeastSquaresClassifier(), X / 16, y, cv=10).mean() == pytest.approx(
        linear.loo_score_, abs=0.03
    )


# -- bad input --------------------------------------------------------------------------------------------------------

GOOD = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.5], [3.0, 2.0], [2.5, 3.5]])


@pytest.mark.parametrize("kernel", [None, mc.Gaussian(1.0)])
def test_bad_input(kernel):
    model = LeastSquaresClassifier(kernel)
    y = [0, 0, 1, 1, 1]
    bad = [
        (GOOD, [1] * 5, None, "at least two classes, got 1 class"),
        (GOOD, [0.0, np.nan, 1, 1, 0], None, "NaN"),
        (GOOD, [0.5, 1.25, 2.5, 0.1, 3], None, "Use Ridge"),
        (GOOD, y[:4], None, "4 labels for 5 points"),
        (GOOD, None, None, "None"),
        (GOOD[:1], [1], None, "at least two classes"),
        (GOOD, y, [1, 1, 0, 0, 0], "the only one with weight > 0"),
        (GOOD, y, [1, 1, -1, 1, 1], "row 2"),
        (np.where(GOOD == 2.5, np.nan, GOOD), y, None, "NaN"),
        (np.where(GOOD == 2.5, np.inf, GOOD), y, None, "infinity"),
        (GOOD[:, :0], y, None, "at least one feature"),
        ([["a", "b"]] * 5, y, None, "numeric"),
    ]
    for X, labels, w, message in bad:
        with pytest.raises(InvalidInput, match=message):
            model.fit(X, labels, w)
    model.fit(GOOD, y)
    for Z, message in [(GOOD[:, :1], "1 features"), (GOOD + np.nan, "NaN")]:
        with pytest.raises(ValueError, match=message):
            model.predict(Z)


# Parameters of solvers that a small problem does not need.
UNREAD = [
    ("solver", "x"),
    ("n_centers", -1),
    ("n_centers", 2.5),
    ("centers", "x"),
    ("centers", 3),
    ("tol", "a"),
    ("tol", 0.0),
    ("random_state", "a"),
    ("random_state", -1),
]


@pytest.mark.parametrize("kernel", [None, mc.Gaussian(1.0)])
def test_bad_parameters(kernel):
    X, y = three_classes()
    for bad in (-1.0, "auto", np.nan, [1.0, 2.0], None):
        with pytest.raises(InvalidInput, match="alpha"):
            LeastSquaresClassifier(kernel, alpha=bad).fit(X, y)
    for bad in ({"x": 1.0}, {0: -1.0}, "even", {0: "much"}):
        with pytest.raises(InvalidInput, match="class_weight"):
            LeastSquaresClassifier(kernel, class_weight=bad).fit(X, y)
    for name, bad in UNREAD:
        with pytest.raises(InvalidInput, match=f"`{name}` must be"):
            LeastSquaresClassifier(kernel, **{name: bad}).fit(X, y)
    with pytest.raises(InvalidInput, match="`kernel` or `features` must be None"):
        LeastSquaresClassifier(mc.Linear(), features=np.square).fit(X, y)
    with pytest.raises(InvalidInput, match="features"):
        LeastSquaresClassifier(features="squares").fit(X, y)
    with pytest.raises(AttributeError, match="linear model"):
        _ = LeastSquaresClassifier(mc.Gaussian(1.0)).fit(X, y).coef_


@pytest.mark.parametrize("kernel", [None, mc.Gaussian(1.0)])
def test_constant_columns_and_a_class_without_weight(kernel):
    X, y = three_classes()
    model = LeastSquaresClassifier(kernel, alpha=0.5)
    f = clone(model).fit(X, y).decision_function(X)
    more = np.column_stack([X, np.full(60, 7.0)])
    np.testing.assert_allclose(clone(model).fit(more, y).decision_function(more), f, atol=1e-8)
    fitted = clone(model).fit(X, y, np.where(y == 1, 0.0, 1.0))
    assert fitted.classes_.tolist() == [0, 2]
    expected = clone(model).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(fitted.decision_function(X), expected.decision_function(X), atol=1e-9)
    assert fitted.loo_predictions_.shape == (60,)
    assert fitted.loo_score_ == pytest.approx(expected.loo_score_)


def test_least_squares_without_penalty():
    X, y = rng.normal(size=(20, 40)), np.arange(20) % 2
    model = LeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert model.score(X, y) == 1
    np.testing.assert_allclose(np.abs(model.decision_function(X)), 1, atol=1e-9)  # it interpolates
