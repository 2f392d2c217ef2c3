"""Discriminants: against scikit-learn, against plain NumPy, against each other, and on bad days."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.linalg as sla
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_circles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer.errors import InvalidInput
from mercer.solvers.discriminant_axes import ledoit_wolf

rng = np.random.default_rng(0)

REAL = {
    "cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "digits": load_digits(return_X_y=True),
}
LINEAR = [mc.LinearDiscriminant, mc.FisherDiscriminant]
KERNEL = [mc.KernelFisherDiscriminant, mc.KernelDiscriminant]


def standardised(X):
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)


def three_classes(n=90, d=4, k=3):
    y = np.arange(n) % k
    y[: n // 6] = 0  # not all of a size
    return (rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y]) @ rng.normal(size=(d, d)), y


def scatters(X, y, w=None):
    """S_w, S_b and the class means, row by row."""
    w = np.ones(len(y)) if w is None else w
    classes = np.unique(y)
    means = [sum(w[i] * X[i] for i in np.flatnonzero(y == c)) / w[y == c].sum() for c in classes]
    middle = sum(w[i] * X[i] for i in range(len(y))) / w.sum()
    Sw, Sb = np.zeros((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)
    for c, m in zip(classes, means):
        for i in np.flatnonzero(y == c):
            Sw += w[i] * np.outer(X[i] - m, X[i] - m)
        Sb += w[y == c].sum() * np.outer(m - middle, m - middle)
    return Sw, Sb, np.array(means)


def posterior(X, means, covariance, priors):
    """p(c | x) from the Gaussian densities, point by point."""
    inverse = np.linalg.inv(covariance)
    out = np.empty((len(X), len(means)))
    for i, x in enumerate(X):
        logs = [np.log(p) - 0.5 * (x - m) @ inverse @ (x - m) for m, p in zip(means, priors)]
        weights = np.exp(np.array(logs) - max(logs))
        out[i] = weights / weights.sum()
    return out


def up_to_sign(A, B):
    return A * np.sign((A * B).sum(axis=0)), B


# -- linear discriminant analysis -------------------------------------------------------------------------------------


@pytest.mark.peer("scikit-learn", "1.9")
@pytest.mark.parametrize("name", REAL)
def test_lda_equals_scikit_learn(name):
    X, y = REAL[name]
    model, peer = mc.LinearDiscriminant().fit(X, y), LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-11)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-9 * np.abs(peer.coef_).max())
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(*up_to_sign(model.transform(X), peer.transform(X)), atol=1e-9)
    np.testing.assert_allclose(model.ratios_ / model.ratios_.sum(), peer.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(model.means_, peer.means_, atol=1e-12)
    np.testing.assert_allclose(model.covariance_, peer.covariance_, atol=1e-10 * np.abs(peer.covariance_).max())
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


@pytest.mark.parametrize("shrinkage", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("name", ["cancer", "wine", "digits"])
def test_shrunk_lda_equals_scikit_learn(name, shrinkage):
    X, y = REAL[name]
    model = mc.LinearDiscriminant(shrinkage=shrinkage).fit(X, y)
    peer = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage, store_covariance=True).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(model.covariance_, peer.covariance_, rtol=1e-8, atol=1e-8 * peer.covariance_.max())
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


@pytest.mark.peer("scikit-learn", "1.9")
@pytest.mark.parametrize("priors", [[0.2, 0.5, 0.3], {2: 0.3, 0: 0.2, 1: 0.5}])
def test_priors(priors):
    X, y = REAL["iris"]
    X, y = X[10:], y[10:]
    model = mc.LinearDiscriminant(priors=priors).fit(X, y)
    peer = LinearDiscriminantAnalysis(priors=[0.2, 0.5, 0.3]).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(*up_to_sign(model.transform(X), peer.transform(X)), atol=1e-10)
    np.testing.assert_allclose(model.priors_, [0.2, 0.5, 0.3])


def test_posterior_is_that_of_the_gaussians():
    X, y = three_classes()
    Sw, _, means = scatters(X, y)
    Z = 2 * rng.normal(size=(20, 4))
    for s, alpha in [(0.0, 0.0), (0.3, 0.0), (0.0, 2.5), (0.4, 1.5)]:
        model = mc.LinearDiscriminant(shrinkage=s, alpha=alpha).fit(X, y)
        covariance = ((1 - s) * Sw + (s * np.trace(Sw) / 4 + alpha) * np.eye(4)) / len(y)
        np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-10, atol=1e-12)
        expected = posterior(Z, means, covariance, np.bincount(y) / len(y))
        np.testing.assert_allclose(model.predict_proba(Z), expected, atol=1e-10)
        likely = expected > 1e-100
        np.testing.assert_allclose(model.predict_log_proba(Z)[likely], np.log(expected[likely]), rtol=1e-6, atol=1e-9)
        linear = Z @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(Z), linear, atol=1e-10)


def test_log_odds_are_linear_and_decide():
    X, y = REAL["cancer"]
    model = mc.LinearDiscriminant().fit(X, y)
    p = model.predict_proba(X)
    inside = (p > 1e-9).all(axis=1)
    odds = np.log(p[inside, 1] / p[inside, 0])
    np.testing.assert_allclose(odds, X[inside] @ model.coef_[0] + model.intercept_[0], atol=1e-6)
    np.testing.assert_allclose(odds, model.decision_function(X[inside]), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(X) == 1, model.decision_function(X) > 0)


def test_ledoit_wolf_equals_scikit_learn():
    for shape in [(50, 8), (8, 50), (400, 3)]:
        D = rng.normal(size=shape) @ rng.normal(size=(shape[1],) * 2)
        expected = ledoit_wolf_shrinkage(D, assume_centered=True)
        assert ledoit_wolf(D, np.ones(len(D))) == pytest.approx(expected, rel=1e-10)
        w = rng.integers(1, 4, size=len(D))
        repeated = np.repeat(D, w, axis=0)
        assert ledoit_wolf(D, w.astype(float)) == pytest.approx(ledoit_wolf(repeated, np.ones(len(repeated))), rel=1e-9)


def test_automatic_shrinkage_does_not_depend_on_units():
    X, y = REAL["wine"]
    model = mc.LinearDiscriminant(shrinkage="auto").fit(X, y)
    units = 10.0 ** rng.integers(-4, 5, size=X.shape[1])
    moved = mc.LinearDiscriminant(shrinkage="auto").fit(X * units, y)
    assert 0.05 < model.shrinkage_ < 0.5
    assert moved.shrinkage_ == pytest.approx(model.shrinkage_, rel=1e-8)
    np.testing.assert_allclose(moved.predict_proba(X * units), model.predict_proba(X), atol=1e-9)
    Sw = scatters(X, y)[0] / len(y)
    expected = (1 - model.shrinkage_) * Sw + model.shrinkage_ * np.diag(np.diag(Sw))
    np.testing.assert_allclose(model.covariance_, expected, rtol=1e-8, atol=1e-9)


def test_automatic_shrinkage_and_constant_columns():
    X, y = three_classes()
    more = np.column_stack([X, np.full(len(X), 0.1)])
    plain, constant = (mc.LinearDiscriminant(shrinkage="auto").fit(A, y) for A in (X, more))
    assert constant.covariance_[-1].tolist() == [0, 0, 0, 0, 0]
    assert (constant.rank_, mc.LinearDiscriminant(shrinkage=1.0).fit(more, y).rank_) == (4, 4)
    moved = more + np.array([0, 0, 0, 0, 5.0])  # what never varied says nothing
    np.testing.assert_allclose(constant.decision_function(moved), constant.decision_function(more), atol=1e-9)
    assert (constant.predict(more) == plain.predict(X)).mean() > 0.95


def test_automatic_shrinkage_helps_where_rows_are_few():
    X, y = REAL["digits"]
    scores = {}
    for shrinkage in (0.0, "auto"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = mc.LinearDiscriminant(shrinkage=shrinkage).fit(X[:80], y[:80])
        scores[shrinkage] = model.score(X[80:], y[80:])
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[:80], y[:80]).score(X[80:], y[80:])
    assert scores["auto"] > scores[0.0] + 0.1
    assert scores["auto"] > peer - 0.02


# -- singular covariances ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Model", LINEAR)
def test_constant_and_repeated_columns_change_nothing(Model):
    X, y = three_classes()
    more = np.column_stack([X, np.full(len(X), 0.1), X[:, 1], 3e7 + np.zeros(len(X)), 2 * X[:, 0] - X[:, 2]])
    plain, singular = Model().fit(X, y), Model().fit(more, y)
    assert (plain.rank_, singular.rank_) == (4, 4)
    np.testing.assert_allclose(singular.decision_function(more), plain.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(singular.transform(more), plain.transform(X), atol=1e-8)
    assert "inverted in the directions with spread" in singular.status_


@pytest.mark.peer("scikit-learn", "1.9")
def test_more_columns_than_rows_as_scikit_learn_with_a_warning():
    X, y = rng.normal(size=(30, 50)), np.arange(30) % 3
    with pytest.warns(UserWarning, match="without spread within classes"):
        model = mc.LinearDiscriminant().fit(X, y)
    peer = LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:9]), peer.predict_proba(X[:9]), atol=1e-9)
    assert model.rank_ == 27


def test_a_column_that_separates_without_spread():
    X, y = three_classes(k=2)
    X = np.column_stack([X, 5.0 * y])
    with pytest.warns(UserWarning, match="which are ignored"):
        left_out = mc.LinearDiscriminant().fit(X, y)
    assert left_out.coef_[0, -1] == 0
    assert mc.LinearDiscriminant(alpha=1e-6).fit(X, y).score(X, y) == 1
    assert mc.FisherDiscriminant(shrinkage="auto").fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("d", [3, 12, 60])
def test_ridge_of_wide_rows_is_that_of_the_whole_covariance(d):
    X, y = rng.normal(size=(20, d)), np.arange(20) % 3
    X[:, 0] += y
    Sw, _, means = scatters(X, y)
    Z = rng.normal(size=(10, d))
    model = mc.LinearDiscriminant(alpha=0.7).fit(X, y)
    expected = posterior(Z, means, (Sw + 0.7 * np.eye(d)) / 20, np.bincount(y) / 20)
    np.testing.assert_allclose(model.predict_proba(Z), expected, atol=1e-9)
    np.testing.assert_allclose(model.covariance_, (Sw + 0.7 * np.eye(d)) / 20, atol=1e-10)


def test_large_offsets_and_units_keep_their_digits():
    X, y = three_classes()
    units, offsets = np.array([1e-7, 1.0, 1e5, 1e9]), np.array([1.0, 1e6, 0.0, -1e12])
    plain, moved = mc.LinearDiscriminant().fit(X, y), mc.LinearDiscriminant().fit(X * units + offsets, y)
    np.testing.assert_allclose(moved.predict_proba(X * units + offsets), plain.predict_proba(X), atol=1e-6)


def test_nearly_dependent_columns_keep_their_digits():
    X, y = three_classes()
    near = X.copy()
    near[:, 1] = X[:, 0] + 1e-6 * X[:, 1]  # the same model, in other coordinates
    f = mc.LinearDiscriminant().fit(X, y).decision_function(X)
    np.testing.assert_allclose(mc.LinearDiscriminant().fit(near, y).decision_function(near), f, atol=1e-8)
    # A ridge far above what scatter the second column has beside the first leaves nothing of it to use.
    one = mc.LinearDiscriminant().fit(X[:, [0, 2, 3]], y).decision_function(X[:, [0, 2, 3]])
    shrunk = mc.LinearDiscriminant(alpha=1e-6).fit(near, y).decision_function(near)
    np.testing.assert_allclose(shrunk, one, atol=1e-3)
    assert np.abs(shrunk - f).max() > 0.1


# -- Fisher's directions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_directions_solve_the_generalised_eigenproblem(alpha):
    X, y = three_classes(n=150, d=6, k=4)
    Sw, Sb, means = scatters(X, y)
    A = Sw + alpha * np.eye(6)
    model = mc.FisherDiscriminant(alpha=alpha).fit(X, y)
    values = sla.eigh(Sb, A, eigvals_only=True)
    D = model.directions_
    assert D.shape == (6, 3)
    np.testing.assert_allclose(model.ratios_, values[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(Sb @ D, A @ D * model.ratios_, atol=1e-8)
    np.testing.assert_allclose(D.T @ A @ D, len(y) * np.eye(3), atol=1e-8)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ D, atol=1e-9)
    np.testing.assert_allclose(model.centres_, (means - X.mean(axis=0)) @ D, atol=1e-9)
    assert (model.centres_[-1] >= 0).all()


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_two_classes_are_least_squares_on_scaled_targets(alpha):
    X, y = REAL["cancer"]
    X = standardised(X)
    Sw, _, means = scatters(X, y)
    model = mc.FisherDiscriminant(alpha=alpha).fit(X, y)
    a = model.directions_[:, 0]
    b = np.linalg.solve(Sw + alpha * np.eye(30), means[1] - means[0])
    n1, n2 = np.bincount(y)
    c = mc.Ridge(alpha=alpha).fit(X, np.where(y == 1, len(y) / n2, -len(y) / n1)).coef_
    for other in (b, c):
        assert a @ other / np.linalg.norm(a) / np.linalg.norm(other) == pytest.approx(1, abs=1e-10)


def test_the_nearest_projected_mean_decides():
    X, y = three_classes(n=120, d=5, k=4)
    for count in (1, 2, None):
        model = mc.FisherDiscriminant(count).fit(X, y)
        Z = model.transform(X)
        assert Z.shape == (120, count or 3)
        nearest = [int(np.argmin([np.sum((z - c) ** 2) for c in model.centres_])) for z in Z]
        np.testing.assert_array_equal(model.predict(X), nearest)
        np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), nearest)
        np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-9)
    assert not hasattr(model, "predict_proba")
    np.testing.assert_array_equal(
        mc.FisherDiscriminant().fit(X, y).predict(X), mc.LinearDiscriminant(priors=[0.25] * 4).fit(X, y).predict(X)
    )


# -- kernel forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cancer", "iris", "wine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_kernel_is_fishers_discriminant(name, weighted):
    X, y = REAL[name]
    X = standardised(X)
    w = rng.uniform(0.2, 3, size=len(y)) if weighted else None
    for alpha in (1e-3, 10.0):
        model = mc.KernelFisherDiscriminant(mc.Linear(), alpha=alpha).fit(X, y, w)
        primal = mc.FisherDiscriminant(alpha=alpha).fit(X, y, w)
        np.testing.assert_allclose(model.ratios_, primal.ratios_, rtol=1e-6)
        np.testing.assert_allclose(model.transform(X), primal.transform(X), atol=1e-5)
        np.testing.assert_allclose(model.function_.weights(), primal.directions_, atol=1e-5)
        np.testing.assert_allclose(model.centres_, primal.centres_, atol=1e-6)


@pytest.mark.parametrize("priors", [None, [0.1, 0.6, 0.3]])
@pytest.mark.parametrize("alpha", [1e-2, 5.0])
def test_linear_kernel_is_linear_discriminant_analysis(alpha, priors):
    X, y = REAL["wine"]
    X = standardised(X)
    model = mc.KernelDiscriminant(mc.Linear(), alpha=alpha, priors=priors).fit(X, y)
    primal = mc.LinearDiscriminant(alpha=alpha, priors=priors).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), primal.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), primal.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(model.transform(X), primal.transform(X), atol=1e-6)
    np.testing.assert_allclose(model.ratios_, primal.ratios_, rtol=1e-7)


@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_quadratic_kernel_is_the_discriminant_of_its_features(alpha):
    X, y = three_classes(n=60, d=3)
    kernel = mc.Polynomial(2, c=1.0)
    Phi = kernel.features(3).transform(X)
    model, explicit = (
        mc.KernelDiscriminant(kernel, alpha=alpha).fit(X, y),
        mc.LinearDiscriminant(alpha=alpha).fit(Phi, y),
    )
    np.testing.assert_allclose(model.predict_proba(X), explicit.predict_proba(Phi), atol=1e-7)
    fisher = mc.KernelFisherDiscriminant(kernel, alpha=alpha, n_components=1).fit(X, y)
    np.testing.assert_allclose(
        fisher.transform(X), mc.FisherDiscriminant(1, alpha=alpha).fit(Phi, y).transform(Phi), atol=1e-5
    )


def test_kernel_fisher_by_the_eigenproblem_of_mika():
    X, y = three_classes(n=60, d=3)
    kernel, alpha, k = mc.Gaussian(1.5), 0.05, 3
    K = kernel(X)
    # f = Σ cᵢ k(xᵢ, ·): ⟨f, S_b f⟩ = cᵀM c and ⟨f, S_w f⟩ = cᵀN c, column by column.
    M, N = np.zeros((60, 60)), np.zeros((60, 60))
    for c in range(k):
        inside = np.flatnonzero(y == c)
        mean = K[:, inside].mean(axis=1)
        M += len(inside) * np.outer(mean - K.mean(axis=1), mean - K.mean(axis=1))
        for i in inside:
            N += np.outer(K[:, i] - mean, K[:, i] - mean)
    values = sla.eigh(M, N + alpha * K + 1e-13 * np.eye(60), eigvals_only=True)[::-1]
    model = mc.KernelFisherDiscriminant(kernel, alpha=alpha).fit(X, y)
    np.testing.assert_allclose(model.ratios_, values[:2], rtol=1e-6)
    for j in range(2):
        c = model.function_.coef[:, j].astype(float)
        np.testing.assert_allclose(c @ M @ c / (c @ (N + alpha * K) @ c), values[j], rtol=1e-6)
        np.testing.assert_allclose(c @ (N + alpha * K) @ c, 60, rtol=1e-6)


def test_kernel_fisher_of_two_classes_is_kernel_ridge_on_scaled_targets():
    X, y = make_circles(80, factor=0.5, noise=0.1, random_state=0)
    y = np.where(np.arange(80) < 15, 0, y)
    n1, n2 = np.bincount(y)
    model = mc.KernelFisherDiscriminant(mc.Gaussian(0.7), alpha=0.02).fit(X, y)
    ridge = mc.KernelRidge(mc.Gaussian(0.7), alpha=0.02, fit_intercept=True)
    ridge.fit(X, np.where(y == 1, 80 / n2, -80 / n1))
    f, g = model.transform(X)[:, 0], ridge.predict(X)
    scale = f @ g / (g @ g)
    assert scale > 0
    np.testing.assert_allclose(f, scale * g, atol=1e-8 * np.abs(f).max())


def test_mahalanobis_distances_in_the_hilbert_space():
    """The posterior from distances in the coordinates of an orthonormal basis of span{k(xᵢ, ·)}."""
    X, y = three_classes(n=40, d=2)
    kernel, alpha = mc.Gaussian(1.2), 0.3
    K = kernel(X)
    values, U = np.linalg.eigh(K)
    keep = values > 1e-10
    coordinates = lambda Z: kernel(Z, X) @ (U[:, keep] / np.sqrt(values[keep]))  # noqa: E731
    Phi = coordinates(X)
    Sw, _, means = scatters(Phi, y)
    Z = rng.normal(size=(15, 2))
    expected = posterior(coordinates(Z), means, (Sw + alpha * np.eye(keep.sum())) / 40, np.bincount(y) / 40)
    model = mc.KernelDiscriminant(kernel, alpha=alpha).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(Z), expected, atol=1e-6)


@pytest.mark.peer("scikit-learn", "1.9")
def test_kernel_fisher_is_linear_discriminant_analysis_in_the_projection():
    X, y = REAL["iris"]
    model = mc.KernelFisherDiscriminant(mc.Gaussian(2.0), alpha=0.1).fit(X, y)
    Z = model.transform(X)
    np.testing.assert_allclose(model.centres_, [Z[y == c].mean(axis=0) for c in range(3)], atol=1e-7)
    peer = LinearDiscriminantAnalysis().fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(Z), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_function_is_the_projection():
    X, y = three_classes()
    for Model in KERNEL:
        model = Model(mc.Gaussian(2.0)).fit(X, y)
        np.testing.assert_allclose(model.function_(X), model.transform(X))
        assert model.function_.coef.shape == (90, 2)
        assert model.transform(X).mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
        assert model.get_feature_names_out().tolist() == [f"{Model.__name__.lower()}{j}" for j in range(2)]


def test_rings_are_separated():
    X, y = make_circles(300, factor=0.5, noise=0.08, random_state=1)
    Xa, Xb, ya, yb = train_test_split(X, y, random_state=0)
    assert mc.FisherDiscriminant().fit(Xa, ya).score(Xb, yb) < 0.7
    for Model in KERNEL:
        model = Model(mc.Gaussian(0.6), alpha=0.1).fit(Xa, ya)
        assert model.score(Xb, yb) > 0.97
    lifted = mc.KernelFisherDiscriminant(mc.Polynomial(2), alpha=0.1).fit(Xa, ya)  # lecture 000's x0², x1², √2 x0 x1
    assert lifted.score(Xb, yb) > 0.97


def test_better_than_linear_on_digits():
    X, y = REAL["digits"]
    Xa, Xb, ya, yb = train_test_split(X / 16, y, random_state=0, stratify=y, test_size=0.4)
    peer = LinearDiscriminantAnalysis().fit(Xa, ya).score(Xb, yb)
    assert mc.LinearDiscriminant().fit(Xa, ya).score(Xb, yb) == peer
    for Model in KERNEL:
        assert Model(alpha=0.01).fit(Xa, ya).score(Xb, yb) > peer + 0.02


def test_calibrated_probabilities_are_those_of_rows_left_out():
    X, y = REAL["cancer"]
    Xa, Xb, ya, yb = train_test_split(standardised(X), y, random_state=0, stratify=y, test_size=0.5)
    plain = mc.KernelFisherDiscriminant(alpha=1e-2).fit(Xa, ya)
    model = mc.KernelFisherDiscriminant(alpha=1e-2, calibrated=True).fit(Xa, ya)
    losses = [log_loss(yb, m.predict_proba(Xb)) for m in (plain, model)]
    assert losses[1] < 0.5 * losses[0]
    np.testing.assert_allclose(model.transform(Xb), plain.transform(Xb))


@pytest.mark.parametrize("weighted", [False, True])
def test_calibrated_covariance_is_that_of_refits_without_a_row(weighted):
    X, y = three_classes(40)
    w = rng.uniform(0.5, 3.0, 40) if weighted else np.ones(40)
    kernel, Y = mc.Gaussian(2.0), np.eye(3)[y]
    model = mc.KernelFisherDiscriminant(kernel, alpha=0.3, calibrated=True).fit(X, y, w)
    ridge = mc.KernelRidge(kernel, alpha=0.3, fit_intercept=True)
    f = clone(ridge).fit(X, Y, w).predict(X) - np.average(Y, axis=0, weights=w)
    axes = np.linalg.lstsq(f, model.transform(X), rcond=None)[0]  # functions beside the mean of their targets
    C = np.zeros((2, 2))
    for i in range(40):
        rest = np.arange(40) != i
        z = clone(ridge).fit(X[rest], Y[rest], w[rest]).predict(X[i : i + 1])[0]
        z = (z - np.average(Y[rest], axis=0, weights=w[rest])) @ axes - model.centres_[y[i]]
        C += w[i] * np.outer(z, z) / w.sum()
    expected = posterior(model.transform(X), model.centres_, C, model.priors_)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-8, 1e-5, 1e-3, 1.0, 1e3, 1e6])
def test_calibrated_classes_never_change_places(alpha):
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(60, 2)), random.normal(size=(500, 2))
    for d in (1, 2):
        y, t = ((A[:, :d] > 0).sum(axis=1) for A in (X, Z))
        plain, model = (
            mc.KernelFisherDiscriminant(mc.Gaussian(1.0), alpha=alpha, calibrated=c).fit(X, y) for c in (False, True)
        )
        assert model.score(X, y) >= model.priors_.max()  # chance, at its best
        assert model.score(Z, t) > (plain.score(Z, t) if alpha > 1e-4 else model.priors_.max()) - 0.05
        assert log_loss(t, model.predict_proba(Z)) < log_loss(t, plain.predict_proba(Z)) + 0.02
        logs = model.predict_log_proba(X)
        for a in range(y.max() + 1):
            for b in range(a):
                odds = logs[:, a] - logs[:, b]
                assert odds[y == a].mean() > odds[y == b].mean()


@pytest.mark.parametrize("seed", range(4))
def test_calibrated_where_left_out_rows_are_on_the_wrong_side(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 10))
    y = (X[:, 0] + random.normal(size=40) > 0) * 1
    model = mc.KernelFisherDiscriminant(mc.Gaussian(1.0), calibrated=True).fit(X, y)
    assert model.score(X, y) == 1.0  # as without: every row is like itself only
    Z = random.normal(size=(500, 10))
    assert log_loss((Z[:, 0] > 0) * 1, model.predict_proba(Z)) < 1.0  # and of nothing else it is sure


def test_alpha_and_kernel_by_leave_one_out():
    X, y = REAL["wine"]
    X = standardised(X)
    model = mc.KernelFisherDiscriminant(alpha="loo").fit(X, y)
    assert 1e-3 < model.alpha_ < 10
    again = mc.KernelFisherDiscriminant(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.transform(X), again.transform(X))
    Y = np.eye(3)[y]
    ridges = [mc.KernelRidge(alpha=model.alpha_ * f, fit_intercept=True).fit(X, Y) for f in (0.2, 1.0, 5.0)]
    errors = [np.sum((Y - ridge.loo_predictions_) ** 2) for ridge in ridges]
    assert min(errors) == errors[1]
    tuned = mc.KernelDiscriminant(mc.Gaussian(1.0), tune="loo").fit(X, y)
    assert tuned.kernel_.sigma > 1.5
    assert tuned.alpha_ == tuned.tuning_.alpha
    assert tuned.score(X, y) > 0.98


def test_beyond_memory():
    X, y = make_circles(1500, factor=0.5, noise=0.1, random_state=0)
    exact = mc.KernelFisherDiscriminant(mc.Gaussian(0.5), alpha=1.0).fit(X, y)
    for given, solver in (({"budget": "4 MB"}, "cg"), ({"solver": "nystrom", "n_centers": 300}, "nystrom")):
        model = mc.KernelFisherDiscriminant(mc.Gaussian(0.5), alpha=1.0, **given).fit(X, y)
        assert model.solver_ == solver
        assert (len(model.function_) < 1500) == (solver == "nystrom")
        np.testing.assert_allclose(model.transform(X), exact.transform(X), atol=0.02 * np.abs(exact.centres_).max())
        np.testing.assert_allclose(model.ratios_, exact.ratios_, rtol=0.01)


def test_precomputed_and_other_objects():
    X, y = three_classes()
    kernel = mc.Gaussian(2.0)
    for Model in KERNEL:
        model = Model(kernel, alpha=0.1).fit(X[:60], y[:60])
        pairwise = Model(mc.Precomputed(), alpha=0.1).fit(kernel(X[:60]), y[:60])
        np.testing.assert_allclose(pairwise.transform(kernel(X, X[:60])), model.transform(X), atol=1e-8)
        np.testing.assert_allclose(pairwise.predict_proba(kernel(X, X[:60])), model.predict_proba(X), atol=1e-8)
        assert cross_val_score(Model(mc.Precomputed()), kernel(X), y, cv=3).mean() > 0.5
        sets = [{"a", "b"}, {"a"}, {"a", "c"}, {"d"}, {"d", "e"}, {"d", "c"}]
        model = Model(mc.Intersection(), alpha=0.1).fit(sets, list("xxxyyy"))
        assert model.predict([{"a", "z"}, {"d", "z"}]).tolist() == ["x", "y"]
        assert model.transform([{"a"}, {"d"}]).ravel()[0] < 0 < model.transform([{"a"}, {"d"}]).ravel()[1]


# -- all of them ------------------------------------------------------------------------------------------------------

ALL = [
    mc.LinearDiscriminant(),
    mc.LinearDiscriminant(shrinkage="auto"),
    mc.LinearDiscriminant(shrinkage=0.3, alpha=0.5),
    mc.FisherDiscriminant(1),
    mc.KernelFisherDiscriminant(mc.Gaussian(2.0), alpha=0.1),
    mc.KernelFisherDiscriminant(mc.Gaussian(2.0), alpha=0.1, class_weight={0: 2.0, 1: 0.5}),
    mc.KernelDiscriminant(mc.Gaussian(2.0)),
]


@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_weight_is_a_repetition(model):
    X, y = three_classes()
    w = rng.integers(0, 4, size=len(y))
    weighted = clone(model).fit(X, y, w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-7)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-6)
    assert np.abs(weighted.transform(X) - clone(model).fit(X, y).transform(X)).max() > 0.01


def test_class_weight_is_a_weight():
    X, y = three_classes()
    for given, w in [("balanced", len(y) / 3 / np.bincount(y)[y]), ({0: 3.0}, np.where(y == 0, 3.0, 1.0))]:
        model = mc.KernelFisherDiscriminant(mc.Gaussian(2.0), class_weight=given).fit(X, y)
        peer = mc.KernelFisherDiscriminant(mc.Gaussian(2.0)).fit(X, y, w)
        np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        mc.KernelFisherDiscriminant(mc.Gaussian(2.0), class_weight="balanced").fit(X, y).priors_, 1 / 3
    )


@pytest.mark.parametrize("model", ALL[3:5] + ALL[6:], ids=str)
def test_labels_of_any_type(model):
    X, y = three_classes()
    plain = clone(model).fit(X, y)
    for names in (["low", "middle", "top"], [-7, 3, 40]):
        named = np.array(names)[y]
        for given in (named, named.tolist(), pd.Series(named), pl.Series(named), named.astype(object)):
            fitted = clone(model).fit(X, given)
            assert fitted.classes_.tolist() == names
            np.testing.assert_array_equal(fitted.predict(X), np.array(names)[plain.predict(X)])
    truth = clone(model).fit(X[y < 2], (y == 1)[y < 2])
    assert truth.predict(X).dtype == bool
    assert truth.decision_function(X).shape == (90,)
    np.testing.assert_array_equal(truth.predict(X), truth.decision_function(X) > 0)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_frames_sparse_and_float32(model):
    X, y = three_classes()
    X[np.abs(X) < 0.3] = 0
    frame = pd.DataFrame(X, columns=list("abcd"))
    plain = clone(model).fit(X, y)
    Z = plain.transform(X)
    for other in (frame, pl.DataFrame(X, schema=list("abcd")), sp.csr_array(X), X.tolist()):
        fitted = clone(model).fit(other, y)
        np.testing.assert_allclose(fitted.transform(other), Z, atol=1e-7)
        np.testing.assert_array_equal(fitted.predict(other), plain.predict(X))
    assert clone(model).fit(frame, y).feature_names_in_.tolist() == list("abcd")
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.transform(X.astype(np.float32)), Z, atol=2e-3 * np.abs(Z).max())
    again = pickle.loads(pickle.dumps(plain))
    np.testing.assert_array_equal(again.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("model", ALL, ids=str)
def test_not_fitted(model):
    for method in ("transform", "predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(clone(model), method)(GOOD)


def test_coordinates_as_a_frame():
    X, y = REAL["iris"]
    frame = mc.KernelFisherDiscriminant().set_output(transform="pandas").fit(X, y).transform(X)
    assert frame.columns.tolist() == ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]


def test_in_a_pipeline():
    X, y = REAL["wine"]
    line = make_pipeline(StandardScaler(), mc.KernelFisherDiscriminant(alpha=0.1), mc.LinearDiscriminant())
    assert cross_val_score(line, X, y, cv=5).mean() > 0.95
    with pytest.raises(InvalidInput, match="whole number from 1 to 2, or None"):
        line.set_params(kernelfisherdiscriminant__n_components=3).fit(X, y)


def test_far_away_probabilities_are_certain_not_nan():
    X, y = REAL["iris"]
    for model in (mc.LinearDiscriminant(), mc.KernelDiscriminant(), mc.KernelFisherDiscriminant()):
        p = model.fit(X, y).predict_proba(1e6 * np.ones((1, 4)))
        assert np.isfinite(p).all()
        assert p.sum() == pytest.approx(1)


def test_equal_class_means_say_nothing():
    X = np.vstack([np.eye(2), -np.eye(2)] * 5)
    X = np.vstack([X, 2 * X])
    y = np.repeat([0, 1], 20)
    for model in (mc.LinearDiscriminant(), mc.KernelDiscriminant(mc.Linear())):
        model.fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-6)
        assert model.ratios_ == pytest.approx([0], abs=1e-10)


def test_near_interpolation_is_finite():
    X, y = three_classes()
    for alpha in (1e-8, 1e-12):
        for Model in KERNEL:
            model = Model(mc.Gaussian(0.3), alpha=alpha).fit(X, y)
            assert np.isfinite(model.transform(X)).all()
            assert np.isfinite(model.predict_proba(X)).all()
            assert model.score(X, y) == 1
    ratios = [mc.KernelFisherDiscriminant(mc.Gaussian(0.3), alpha=a).fit(X, y).ratios_ for a in (1e-8, 1e-12)]
    np.testing.assert_allclose(ratios[1] / ratios[0], 1e4, rtol=1e-3)  # λ ~ 1/alpha: nothing has cancelled


# -- bad input --------------------------------------------------------------------------------------------------------

MODELS = [mc.LinearDiscriminant(), mc.FisherDiscriminant(), mc.KernelFisherDiscriminant(), mc.KernelDiscriminant()]
GOOD = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.5], [3.0, 2.0], [2.5, 3.5]])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_bad_input(model):
    model = clone(model)
    y = [0, 0, 1, 1, 1]
    bad = [
        (GOOD, [1] * 5, None, "at least two classes, got 1 class"),
        (GOOD, [0.0, np.nan, 1, 1, 0], None, "NaN"),
        (GOOD, [0.5, 1.25, 2.5, 0.1, 3], None, "KernelRidge|Ridge"),
        (GOOD, y[:4], None, "4 labels for 5 points"),
        (GOOD, None, None, "None"),
        (GOOD[:1], [1], None, "at least two classes"),
        (GOOD, y, [1, 1, 0, 0, 0], "the only one with weight > 0"),
        (GOOD, y, [1, 1, -1, 1, 1], "row 2"),
        (GOOD, y, [1, 1, np.nan, 1, 1], "row 2"),
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


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_class_without_weight_is_no_class(model):
    X, y = three_classes()
    fitted = clone(model).fit(X, y, np.where(y == 1, 0.0, 1.0))
    assert fitted.classes_.tolist() == [0, 2]
    np.testing.assert_allclose(
        fitted.decision_function(X), clone(model).fit(X[y != 1], y[y != 1]).decision_function(X), rtol=1e-6, atol=1e-8
    )


def test_bad_parameters():
    X, y = three_classes()
    for bad in (-0.1, 1.5, "much", True, None, np.nan):
        with pytest.raises(InvalidInput, match="shrinkage"):
            mc.LinearDiscriminant(shrinkage=bad).fit(X, y)
    for bad in (-1.0, "loo", np.nan, None):
        with pytest.raises(InvalidInput, match="alpha"):
            mc.FisherDiscriminant(alpha=bad).fit(X, y)
    for bad in (0, -1.0, 0.0, "auto", np.inf, [1.0, 2.0, 3.0]):
        for Model in KERNEL:
            with pytest.raises(InvalidInput, match="`alpha` must be a number > 0"):
                Model(alpha=bad).fit(X, y)
    unread = {
        "solver": ["x"],
        "n_centers": [-1, 2.5],
        "centers": ["x", 3],
        "tol": ["a", 0.0],
        "random_state": ["a", -1],
    }
    for name, values in unread.items():  # by the solver of a small problem
        for bad in values:
            for Model in KERNEL:
                with pytest.raises(InvalidInput, match=f"`{name}` must be"):
                    Model(**{name: bad}).fit(X, y)
    for bad in (0, 3, 1.5, True, "all"):
        for Model in (mc.FisherDiscriminant, mc.KernelFisherDiscriminant):
            with pytest.raises(InvalidInput, match="n_components"):
                Model(n_components=bad).fit(X, y)
    for bad in ([0.5, 0.5], [0.5, 0.6, 0.2], [0, 0.5, 0.5], {0: 0.5, 1: 0.5}, "equal", [np.nan, 0.5, 0.5], ["a", 1, 2]):
        for Model in (mc.LinearDiscriminant, mc.KernelDiscriminant):
            with pytest.raises(InvalidInput, match=r"priors.*one number for each of the classes 0, 1, 2"):
                Model(priors=bad).fit(X, y)


def test_no_spread_within_classes():
    X, y = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0], [2.0, 0.0]]), [0, 0, 1, 1]
    for Model in LINEAR:
        with pytest.raises(InvalidInput, match="no spread within any class"):
            Model().fit(X, y)
        assert Model(alpha=0.1).fit(X, y).score(X, y) == 1
    for Model in KERNEL:
        assert Model(alpha=0.1).fit(X, y).score(X, y) == 1
        assert Model(alpha=0.1).fit(X[1:3], y[1:3]).score(X, y) == 1


@pytest.mark.parametrize("Model", LINEAR)
def test_numbers_without_squares(Model):
    for size in (1e200, 1e-200):
        with pytest.raises(InvalidInput, match="finite square"):
            Model().fit(GOOD * size, [0, 0, 1, 1, 1])


def test_a_kernel_that_is_none():
    X, y = three_classes()
    for Model in KERNEL:
        with pytest.raises(InvalidInput, match="positive semidefinite"):
            Model(mc.FromFunction(lambda a, b: -float(np.dot(a, b)))).fit(X, y)
        with pytest.raises(InvalidInput, match=r"mc\.Gaussian"):
            Model("rbf").fit(X, y)


def test_class_weights_move_labels_and_not_calibrated_probabilities():
    own = np.random.default_rng(5)
    y = np.where(own.uniform(size=300) < 0.1, "rare", "usual")
    X = own.normal(size=(300, 3)) + 1.0 * (y == "rare")[:, None]
    share = (y == "rare").mean()
    given = {"alpha": 1.0, "class_weight": "balanced"}
    model = mc.KernelFisherDiscriminant(mc.Gaussian(2.0), calibrated=True, **given).fit(X, y)
    assert model.predict_proba(X)[:, 0].mean() == pytest.approx(share, abs=0.03)
    assert (model.predict(X) == "rare").mean() > 1.5 * share
    np.testing.assert_allclose(model.priors_, 0.5)
    plain = mc.KernelFisherDiscriminant(mc.Gaussian(2.0), alpha=1.0, calibrated=True)
    np.testing.assert_allclose(plain.fit(X, y).predict_proba(X).argmax(axis=1), plain.decision_function(X) > 0)
