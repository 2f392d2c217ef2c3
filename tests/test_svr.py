"""Regression and novelty by support vectors: duality, optimality, the meaning of ε, ν, τ and weights; scikit-learn."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict

import mercer as mc
from mercer.models.svm.one_class import OneClassSVM
from mercer.models.svm.problems import filled
from mercer.models.svm.svr import SVR, KernelQuantileRegressor, NuSVR
from mercer.solvers import smo

rng = np.random.default_rng(0)

REGRESSORS = [SVR, NuSVR, KernelQuantileRegressor]
MODELS = [*REGRESSORS, OneClassSVM]
GAMMA = 0.3
KERNEL = mc.Gaussian.from_gamma(GAMMA)


def data(n=150, d=3):
    X = rng.normal(size=(n, d))
    return X, 2 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def dense(model, n):
    """β of every row, zeros included."""
    beta = np.zeros((n, *np.shape(model.dual_coef_)[1:]))
    beta[model.support_] = model.dual_coef_
    return beta


def primal(model, X, y, loss):
    """½ ‖f‖² + Σ loss(y − f)."""
    return 0.5 * model.function_.norm() ** 2 + loss(y - model.predict(X)).sum()


# -- optimality: the primal value of f is minus the dual value of β, computed without the solver -----------------------


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_svr_has_no_duality_gap(C, epsilon):
    X, y = data()
    w = rng.uniform(0.5, 2, size=len(y))
    model = SVR(KERNEL, C=C, epsilon=epsilon, tol=1e-8).fit(X, y, w)
    beta = dense(model, len(y))
    dual = 0.5 * beta @ KERNEL(X) @ beta - y @ beta + epsilon * abs(beta).sum()
    assert model.objective_ == pytest.approx([dual], rel=1e-9)
    assert primal(model, X, y, lambda r: C * w * np.maximum(abs(r) - epsilon, 0)) == pytest.approx(-dual, rel=1e-6)
    assert model.gap_ <= 1e-8


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_quantiles_have_no_duality_gap(tau):
    X, y = data()
    w = rng.uniform(0.5, 2, size=len(y))
    model = KernelQuantileRegressor(KERNEL, quantile=tau, C=3.0, tol=1e-8).fit(X, y, w)
    beta = dense(model, len(y))
    dual = 0.5 * beta @ KERNEL(X) @ beta - y @ beta
    assert model.objective_ == pytest.approx([dual], rel=1e-9)
    assert primal(model, X, y, lambda r: 3 * w * np.maximum(tau * r, (tau - 1) * r)) == pytest.approx(-dual, rel=1e-6)


@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_nu_svr_has_no_duality_gap(nu):
    X, y = data()
    w = rng.uniform(0.5, 2, size=len(y))
    model = NuSVR(KERNEL, nu=nu, C=3.0, tol=1e-8).fit(X, y, w)
    beta = dense(model, len(y))
    dual = 0.5 * beta @ KERNEL(X) @ beta - y @ beta
    e = model.epsilon_
    assert model.objective_ == pytest.approx([dual], rel=1e-9)
    assert primal(model, X, y, lambda r: 3 * w * (nu * e + np.maximum(abs(r) - e, 0))) == pytest.approx(-dual, rel=1e-6)
    assert e >= 0


@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
def test_one_class_has_no_duality_gap(nu):
    X, _ = data()
    w = rng.uniform(0.5, 2, size=len(X))
    model = OneClassSVM(KERNEL, nu=nu, tol=1e-8).fit(X, sample_weight=w)
    beta = dense(model, len(X))
    assert beta.sum() == pytest.approx(nu * w.sum())
    scores, rho = model.score_samples(X), model.offset_
    value = 0.5 * beta @ KERNEL(X) @ beta
    assert value - rho * nu * w.sum() + (w * np.maximum(rho - scores, 0)).sum() == pytest.approx(-value, rel=1e-6)


def test_svr_meets_the_conditions_of_karush_kuhn_and_tucker():
    X, y = data()
    C, epsilon, tol = 2.0, 0.15, 1e-6
    model = SVR(KERNEL, C=C, epsilon=epsilon, tol=tol).fit(X, y)
    beta, r = dense(model, len(y)), y - model.predict(X)
    assert abs(beta.sum()) < 1e-9
    assert abs(beta).max() <= C
    free = (abs(beta) > 0) & (abs(beta) < C)
    assert free.any()
    assert (abs(beta) == C).any()
    assert abs(r[free] * np.sign(beta[free]) - epsilon).max() < 2 * tol
    assert (abs(r[beta == 0]) < epsilon + 2 * tol).all()
    assert (r[abs(beta) == C] * np.sign(beta[abs(beta) == C]) > epsilon - 2 * tol).all()


def test_points_inside_the_tube_are_not_needed():
    X, y = data()
    model = SVR(KERNEL, epsilon=0.4, tol=1e-9).fit(X, y)
    assert len(model.support_) < 0.8 * len(y)
    again = SVR(KERNEL, epsilon=0.4, tol=1e-9).fit(X[model.support_], y[model.support_])
    assert np.allclose(again.predict(X), model.predict(X), atol=1e-6)


# -- against scikit-learn (whose kernel values are float32, so that it ends some 1e-5 away) ----------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.3, 5.0])
def test_svr_and_nu_svr_agree_with_scikit_learn(C, weighted):
    X, y = data()
    Z = rng.normal(size=(40, 3))
    w = rng.uniform(0.2, 3, size=len(y)) if weighted else None
    for mine, theirs in [
        (SVR(KERNEL, C=C, epsilon=0.2, tol=1e-7), sklearn.svm.SVR(gamma=GAMMA, C=C, epsilon=0.2, tol=1e-7)),
        (NuSVR(KERNEL, C=C, nu=0.4, tol=1e-7), sklearn.svm.NuSVR(gamma=GAMMA, C=C, nu=0.4, tol=1e-7)),
    ]:
        mine.fit(X, y, w)
        theirs.fit(X, y, w)
        assert np.allclose(mine.predict(Z), theirs.predict(Z), atol=5e-5)
        assert mine.intercept_ == pytest.approx(theirs.intercept_[0], abs=5e-5)
        assert np.array_equal(mine.support_, theirs.support_)
        assert np.allclose(mine.dual_coef_, theirs.dual_coef_[0], atol=2e-3 * C)
        assert mine.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.03, 0.3, 0.9])
def test_one_class_agrees_with_scikit_learn(nu, weighted):
    X, _ = data()
    Z = 2 * rng.normal(size=(40, 3))
    w = rng.uniform(0.2, 3, size=len(X)) if weighted else None
    mine = OneClassSVM(KERNEL, nu=nu, tol=1e-7).fit(X, sample_weight=w)
    theirs = sklearn.svm.OneClassSVM(gamma=GAMMA, nu=nu, tol=1e-7).fit(X, sample_weight=w)
    assert np.allclose(mine.decision_function(Z), theirs.decision_function(Z), atol=2e-5)
    assert np.allclose(mine.score_samples(Z), theirs.score_samples(Z), atol=2e-5)
    assert mine.offset_ == pytest.approx(theirs.offset_[0], abs=2e-5)
    assert np.array_equal(mine.predict(Z), theirs.predict(Z))
    assert np.allclose(mine.decision_function(Z), mine.score_samples(Z) - mine.offset_)


# -- what ε, ν and τ mean ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.8])
def test_nu_is_between_the_share_outside_the_tube_and_the_share_of_support_vectors(nu):
    X, y = data()
    model = NuSVR(KERNEL, nu=nu, C=5.0, tol=1e-6).fit(X, y)
    outside = abs(y - model.predict(X)) > model.epsilon_ + 1e-5
    assert outside.mean() <= nu <= len(model.support_) / len(y)
    assert outside.mean() > nu - 0.2
    same = SVR(KERNEL, epsilon=model.epsilon_, C=5.0, tol=1e-6).fit(X, y)
    assert np.allclose(same.predict(X), model.predict(X), atol=1e-4)


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5])
def test_nu_is_between_the_share_of_outliers_and_the_share_of_support_vectors(nu):
    X, _ = data()
    model = OneClassSVM(KERNEL, nu=nu).fit(X)
    outliers = model.predict(X) == -1  # exactly, whatever tol
    assert outliers.mean() <= nu <= len(model.support_) / len(X)
    assert outliers.mean() > nu - 0.1
    assert list(model.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])) == [1, -1]
    assert np.array_equal(model.fit_predict(X) == -1, outliers)
    narrow = OneClassSVM(KERNEL, nu=nu).fit(X.astype(np.float32))
    assert (narrow.predict(X.astype(np.float32)) == -1).mean() <= nu


@pytest.mark.parametrize("tau", [0.05, 0.3, 0.5, 0.9])
def test_a_share_tau_of_the_targets_lies_below_the_quantile(tau):
    X, y = data()
    model = KernelQuantileRegressor(KERNEL, quantile=tau, C=1.0, tol=1e-6).fit(X, y)
    r = y - model.predict(X)
    assert (r < -1e-5).mean() <= tau
    assert (r > 1e-5).mean() <= 1 - tau
    assert (abs(r) <= 1e-5).mean() < 0.5  # so that the two bounds say something


def test_the_median_is_the_tube_of_no_width():
    X, y = data()
    median = KernelQuantileRegressor(KERNEL, C=2.0, tol=1e-7).fit(X, y)
    tube = SVR(KERNEL, C=1.0, epsilon=0.0, tol=1e-7).fit(X, y)
    assert np.allclose(median.predict(X), tube.predict(X), atol=1e-5)


def test_several_quantiles_are_columns_in_order():
    X, y = data()
    taus = [0.9, 0.1, 0.5, 0.55]
    model = KernelQuantileRegressor(KERNEL, quantile=taus, C=30.0, tol=1e-5).fit(X, y)
    ones = [KernelQuantileRegressor(KERNEL, quantile=t, C=30.0, tol=1e-5).fit(X, y) for t in taus]
    raw = np.column_stack([m.predict(X) for m in ones])
    assert np.allclose(model.function_(X), raw, atol=1e-12)
    assert model.predict(X).shape == (len(X), 4)
    order = np.argsort(taus)
    assert (np.diff(model.predict(X)[:, order], axis=1) >= 0).all()
    crossed = (np.diff(raw[:, order], axis=1) < -1e-5).any(axis=1)
    assert model.crossing_ == crossed.mean() > 0
    assert np.allclose(np.sort(model.predict(X), axis=1), np.sort(raw, axis=1), rtol=1e-12, atol=1e-12)

    def losses(values):
        r = y[:, None] - values
        return np.maximum(taus * r, (np.array(taus) - 1) * r).sum()

    assert losses(model.predict(X)) < losses(raw)
    assert model.score(X, y) > np.mean([m.score(X, y) for m in ones])
    assert all(m.crossing_ == 0 for m in ones)


def test_the_score_of_quantiles_is_the_share_of_the_pinball_loss_of_a_constant():
    X, y = data()
    model = KernelQuantileRegressor(KERNEL, quantile=0.2).fit(X, y)

    def loss(r):
        return np.maximum(0.2 * r, -0.8 * r).sum()

    constant = loss(y - np.quantile(y, 0.2))
    assert model.score(X, y) == pytest.approx(1 - loss(y - model.predict(X)) / constant)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Model", MODELS)
def test_a_weight_is_a_repetition_and_zero_leaves_the_row_out(Model):
    X, y = data(80)
    w = rng.integers(0, 4, size=80)
    weighted = Model(KERNEL, tol=1e-9).fit(X, y, sample_weight=w)
    repeated = Model(KERNEL, tol=1e-9).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    Z = rng.normal(size=(20, 3))
    call = "decision_function" if Model is OneClassSVM else "predict"
    assert np.allclose(getattr(weighted, call)(Z), getattr(repeated, call)(Z), atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert not np.isin(weighted.support_, np.flatnonzero(w == 0)).any()
    plain = Model(KERNEL, tol=1e-9).fit(X, y)
    assert not np.allclose(getattr(weighted, call)(Z), getattr(plain, call)(Z), atol=1e-3)


# -- data of every kind ------------------------------------------------------------------------------------------------


def values(model, Z):
    return model.decision_function(Z) if isinstance(model, OneClassSVM) else model.predict(Z)


@pytest.mark.parametrize("Model", MODELS)
def test_float32_sparse_precomputed_and_frames_give_the_same_function(Model):
    pandas = pytest.importorskip("pandas")
    X, y = data(80)
    Z = rng.normal(size=(20, 3))
    reference = Model(KERNEL, tol=1e-7).fit(X, y)
    expected = values(reference, Z)
    narrow = Model(KERNEL, tol=1e-5).fit(X.astype(np.float32), y.astype(np.float32))
    assert values(narrow, Z.astype(np.float32)).dtype == np.float32
    assert narrow.dual_coef_.dtype == np.float32
    assert np.allclose(values(narrow, Z.astype(np.float32)), expected, atol=1e-3)
    sparse = Model(KERNEL, tol=1e-7).fit(sp.csr_array(X), y)
    assert np.allclose(values(sparse, sp.csr_array(Z)), expected, atol=1e-5)
    frame = Model(KERNEL, tol=1e-7).fit(pandas.DataFrame(X, columns=list("abc")), pandas.Series(y))
    assert np.allclose(values(frame, pandas.DataFrame(Z, columns=list("abc"))), expected, atol=1e-5)
    assert list(frame.feature_names_in_) == ["a", "b", "c"]
    pairwise = Model(mc.Precomputed(), tol=1e-7).fit(KERNEL(X), y)
    K = KERNEL(Z, X)
    assert np.allclose(values(pairwise, K), expected, atol=1e-5)
    others = np.setdiff1d(np.arange(80), pairwise.support_)
    K[:, others] = 0.0
    assert np.allclose(values(pairwise, K), expected, atol=1e-5)  # only columns of support vectors are read
    weights = np.ones(80)
    weights[::5] = 0
    fewer = Model(KERNEL, tol=1e-7).fit(X, y, sample_weight=weights)
    by_matrix = Model(mc.Precomputed(), tol=1e-7).fit(KERNEL(X), y, sample_weight=weights)
    assert np.allclose(values(by_matrix, KERNEL(Z, X)), values(fewer, Z), atol=1e-5)


@pytest.mark.parametrize("Model", MODELS)
def test_sets(Model):
    sets = [set(np.flatnonzero(row)) for row in rng.random((40, 8)) < 0.4]
    sizes = np.array([len(s) for s in sets], dtype=float)
    model = Model(mc.Intersection(), tol=1e-6).fit(sets, sizes)
    incidence = np.array([[j in s for j in range(8)] for s in sets], dtype=float)
    linear = Model(mc.Linear(), tol=1e-6).fit(incidence, sizes)
    assert np.allclose(values(model, sets), values(linear, incidence), atol=1e-4)


@pytest.mark.parametrize("Model", REGRESSORS)
def test_several_targets_are_one_function_each(Model):
    X, y = data(100)
    Y = np.column_stack([y, X[:, 2] - y, np.cos(X[:, 0])])
    model = Model(KERNEL, tol=1e-5).fit(X, Y)
    ones = [Model(KERNEL, tol=1e-5).fit(X, column) for column in Y.T]
    assert model.predict(X).shape == (100, 3)
    assert np.allclose(model.predict(X), np.column_stack([m.predict(X) for m in ones]), atol=1e-9)
    assert np.array_equal(model.support_, np.unique(np.concatenate([m.support_ for m in ones])))
    assert model.dual_coef_.shape == (len(model.support_), 3)
    assert np.allclose(model.intercept_, [m.intercept_ for m in ones])
    assert np.allclose(model.objective_, [m.objective_[0] for m in ones])
    assert model.score(X, Y) == pytest.approx(np.mean([m.score(X, c) for m, c in zip(ones, Y.T)]))
    if Model is NuSVR:
        assert np.allclose(model.epsilon_, [m.epsilon_ for m in ones])


def test_more_variables_than_one_working_set():
    X, y = data(2200)
    mine = SVR(KERNEL, tol=1e-4).fit(X, y)
    theirs = sklearn.svm.SVR(gamma=GAMMA, tol=1e-4).fit(X, y)
    assert np.allclose(mine.predict(X[:200]), theirs.predict(X[:200]), atol=5e-4)


@pytest.mark.parametrize("Model", REGRESSORS)
def test_a_path_over_C_is_the_models_fitted_one_by_one(Model):
    X, y = data(120)
    Y = np.column_stack([y, X[:, 0] * X[:, 1]])
    w = rng.integers(0, 3, size=120)
    Cs = [10.0, 0.1, 1.0, 2.0, 10.0]
    models = Model(KERNEL, tol=1e-7).path(X, Y, Cs, sample_weight=w)
    ones = [Model(KERNEL, C=C, tol=1e-7).fit(X, Y, sample_weight=w) for C in Cs]
    assert [m.C for m in models] == Cs
    for along, one in zip(models, ones):
        assert np.allclose(along.predict(X), one.predict(X), atol=1e-5)
        assert np.allclose(along.objective_, one.objective_, rtol=1e-9)
        assert along.status_.startswith("converged")
    with pytest.raises(mc.InvalidInput, match="`C` must be"):
        Model().path(X, y, [1.0, -1.0])
    with pytest.raises(mc.InvalidInput, match="at least one C"):
        Model().path(X, y, [])


def test_a_path_over_C_computes_fewer_kernel_values():
    X, y = data(30)
    calls = []

    def similarity(a, b):
        calls.append(1)
        return float(np.exp(-GAMMA * ((a - b) ** 2).sum()))

    model = KernelQuantileRegressor(mc.FromFunction(similarity), tol=1e-7)
    model.fit(X, y)
    once = len(calls)
    model.path(X, y, [0.1, 0.3, 1.0, 3.0, 10.0])
    assert len(calls) - once < 0.75 * 5 * once


# -- how it ends -------------------------------------------------------------------------------------------------------


class StopAt:
    """Raises an interrupt at the k-th call, as Ctrl-C would."""

    def __init__(self, k):
        self.left, self.seen = k, []
        self.lock = threading.Lock()

    def __call__(self, progress):
        with self.lock:
            self.seen.append(progress)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return True


def hard(Model, **more):
    """A model that needs many pairs."""
    C = {} if Model is OneClassSVM else {"C": 1e6}
    return Model(mc.Gaussian(2.0), tol=1e-12, **C, **more)


@pytest.mark.parametrize("Model", REGRESSORS)
def test_an_interrupt_keeps_the_best_iterate_and_is_raised_again(Model):
    X, y = data(200)
    stop = StopAt(2)
    model = hard(Model, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.gap_ > model.tol
    assert model.predict(X).shape == (200,)
    assert model.objective_[0] < 0  # that of the start
    assert stop.seen[0].support > 0


def test_an_interrupt_keeps_what_other_targets_have_reached(monkeypatch):
    X, y = data(60)
    model = SVR(KERNEL, tol=1e-6)
    full = clone(model).fit(X, np.column_stack([y, -y, y]))
    solve, calls = smo.solve, []

    def interrupted(problem, **options):
        calls.append(problem)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(problem, **options)

    monkeypatch.setattr("mercer.threads.n_threads", lambda: 1)
    monkeypatch.setattr(smo, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.column_stack([y, -y, y]))
    assert model.status_ == "interrupted"
    assert np.allclose(model.predict(X)[:, :2], full.predict(X)[:, :2])
    assert np.ptp(model.predict(X)[:, 2]) == 0  # never begun: a constant between the targets
    assert y.min() < model.predict(X)[0, 2] < y.max()


def test_an_interrupt_of_one_class_keeps_the_best_iterate(monkeypatch):
    X, _ = data(60)
    reached = OneClassSVM(KERNEL, tol=1e-2).fit(X)
    solve = smo.solve

    def interrupted(problem, **options):
        raise smo.Interrupted(solve(problem, **{**options, "tol": 1e-2}))

    monkeypatch.setattr(smo, "solve", interrupted)
    model = OneClassSVM(KERNEL, tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert np.allclose(model.decision_function(X), reached.decision_function(X))


@pytest.mark.parametrize("Model", REGRESSORS)
def test_limits_are_kept_and_said(Model):
    X, y = data(200)
    with pytest.warns(ConvergenceWarning, match="gap"):
        model = hard(Model, max_iter=50).fit(X, y)
    assert model.n_iter_ <= 50
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = hard(Model, max_time=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="caller"):
        model = hard(Model, progress=lambda p: False).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("Model", MODELS)
def test_what_memory_held_before_does_not_matter(Model):
    X, y = data(75)
    counts = set()
    for rest in (0.0, np.nan, 1e300):
        for size in 3 * [75, 80, 150, 160, 6000, 12_000, 22_500, 24_000]:
            np.full(size, rest)  # freed at once: the fit is likely to get the same memory
        counts.add(Model(KERNEL, tol=1e-9).fit(X, y).n_iter_)
    assert len(counts) == 1


def test_convergence_is_said():
    X, y = data(50)
    model = SVR(KERNEL).fit(X, y)
    assert model.status_.startswith("converged")
    assert 0 <= model.gap_ <= 1e-3
    assert model.n_iter_ > 0


# -- edges and bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Model", REGRESSORS)
def test_small_and_degenerate_data(Model):
    assert Model().fit([[1.0]], [2.0]).predict([[3.0]]) == pytest.approx([2.0])
    assert np.isfinite(Model().fit([[1.0], [2.0]], [2.0, 4.0]).predict([[3.0]])).all()
    X, _ = data(30)
    assert Model(KERNEL).fit(X, np.full(30, 5.0)).predict(X) == pytest.approx(np.full(30, 5.0))
    same = Model(KERNEL, tol=1e-6).fit(np.ones((21, 2)), np.arange(21.0))  # duplicates with different targets
    assert same.predict(np.ones((1, 2))) == pytest.approx([10.0], abs=0.51)
    far = Model(KERNEL).fit(X, 1e9 * X[:, 0])  # C far too small for such targets: nearly a constant
    assert np.isfinite(far.predict(X)).all()


@pytest.mark.parametrize("nu", [1e-9, 1.0])
def test_one_class_of_few_points(nu):
    assert list(OneClassSVM(KERNEL, nu=nu).fit([[1.0]]).predict([[1.0], [9.0]])) == [1, -1]
    assert OneClassSVM(KERNEL, nu=nu).fit(np.ones((5, 2))).decision_function(np.ones((1, 2))) == pytest.approx(0)


def test_the_start_of_nu_problems_has_the_sum_it_should():
    C = rng.uniform(0, 2, size=20)
    for share in (1e-3, 0.37, 1.0):
        start = filled(C, share * C.sum())
        assert start.sum() == pytest.approx(share * C.sum())
        assert ((start >= 0) & (start <= C)).all()


@pytest.mark.parametrize("Model", MODELS)
def test_an_indefinite_kernel_is_warned_of_with_its_eigenvalue_and_ends(Model):
    X, y = data(60)
    K = -mc.Gaussian(1.0)(X)
    with pytest.warns(RuntimeWarning, match=r"eigenvalue -\d.*repair"):
        model = Model(mc.Precomputed(), max_time=5.0).fit(K, y)
    assert np.isfinite(values(model, K)).all()


@pytest.mark.parametrize(
    ("Model", "parameters", "words"),
    [
        (SVR, {"C": 0}, "`C` must be a number > 0, got 0"),
        (SVR, {"C": np.nan}, "`C` must be"),
        (SVR, {"C": "1"}, "`C` must be"),
        (SVR, {"epsilon": -0.1}, "`epsilon` must be a number ≥ 0, got -0.1"),
        (SVR, {"epsilon": np.inf}, "`epsilon` must be"),
        (SVR, {"tol": 0.0}, "`tol` must be"),
        (SVR, {"max_iter": "many"}, "`max_iter` must be"),
        (SVR, {"max_time": -1.0}, "`max_time` must be"),
        (SVR, {"progress": 3}, "`progress` must be"),
        (SVR, {"kernel": "rbf"}, "mc.Gaussian"),
        (NuSVR, {"nu": 0.0}, r"`nu` must be a number in \(0, 1\], got 0.0"),
        (NuSVR, {"nu": 1.1}, "`nu` must be"),
        (NuSVR, {"nu": True}, "`nu` must be"),
        (NuSVR, {"C": -1}, "`C` must be"),
        (OneClassSVM, {"nu": 2}, "`nu` must be"),
        (OneClassSVM, {"nu": None}, "`nu` must be"),
        (OneClassSVM, {"tol": -1}, "`tol` must be"),
        (KernelQuantileRegressor, {"quantile": 0.0}, "`quantile` must be"),
        (KernelQuantileRegressor, {"quantile": 1}, "`quantile` must be"),
        (KernelQuantileRegressor, {"quantile": [0.5, 0.5]}, "different"),
        (KernelQuantileRegressor, {"quantile": []}, "`quantile` must be"),
        (KernelQuantileRegressor, {"quantile": "median"}, "`quantile` must be"),
        (KernelQuantileRegressor, {"quantile": [[0.1, 0.9]]}, "`quantile` must be"),
        (KernelQuantileRegressor, {"quantile": np.nan}, "`quantile` must be"),
    ],
)
def test_bad_parameters_are_refused_in_words(Model, parameters, words):
    X, y = data(10)
    with pytest.raises(mc.InvalidInput, match=words):
        Model(**parameters).fit(X, y)


@pytest.mark.parametrize("Model", MODELS)
def test_bad_data_is_refused_in_words(Model):
    X, y = data(10)
    with pytest.raises(mc.InvalidInput, match="sample_weight"):
        Model().fit(X, y, sample_weight=-np.ones(10))
    with pytest.raises(mc.InvalidInput, match="only zeros"):
        Model().fit(X, y, sample_weight=np.zeros(10))
    if Model is not OneClassSVM:
        with pytest.raises(mc.InvalidInput, match="NaN"):
            Model().fit(X, np.where(np.arange(10) == 3, np.nan, y))


def test_several_quantiles_of_several_targets_are_refused():
    X, y = data(10)
    with pytest.raises(mc.InvalidInput, match="one target"):
        KernelQuantileRegressor(quantile=[0.1, 0.9]).fit(X, np.column_stack([y, y]))


# -- in scikit-learn's company -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("Model", MODELS)
def test_pickles(Model):
    X, y = data(30)
    model = Model(KERNEL).fit(X, y)
    assert np.array_equal(values(pickle.loads(pickle.dumps(model)), X), values(model, X))


def test_grids_reach_the_kernel_and_pairwise_data_is_cut_both_ways():
    X, y = data(60)
    grid = {"kernel__sigma": [0.01, 1.3], "C": [0.01, 10.0], "epsilon": [0.1]}
    search = GridSearchCV(SVR(mc.Gaussian(1.0)), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__sigma": 1.3, "C": 10.0, "epsilon": 0.1}
    direct = cross_val_predict(SVR(KERNEL, tol=1e-6), X, y, cv=3)
    pairwise = cross_val_predict(SVR(mc.Precomputed(), tol=1e-6), KERNEL(X), y, cv=3)
    assert np.allclose(direct, pairwise, atol=1e-5)
