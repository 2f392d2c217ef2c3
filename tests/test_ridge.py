"""Ridge regression on features: primal = dual = expansion, least squares, leave-one-out, the span of the data."""

from __future__ import annotations

import contextlib
import pickle
import tracemalloc
from functools import cache

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as Peer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import mercer as mc
from mercer.features import MonomialMap
from mercer.models.least_squares.ridge import Ridge
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.primal import FeatureSpectrum, GramFactor, by_normal_equations, tall_qr

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(30, 3)), RNG.normal(size=(12, 3))
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(30, 2)) + 3.0
W = RNG.integers(0, 4, size=30).astype(float)


def close(a, b, tol=1e-10):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max(initial=0.0) <= tol * max(1.0, np.abs(b).max(initial=0.0))


# -- one function, three forms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 4])  # 4, 10 and 35 features of 30 rows
def test_primal_is_dual_is_the_expansion(degree, fit_intercept, weights):
    kernel = mc.Polynomial(degree, c=1.0)
    models = [
        Ridge(features, alpha=0.3, fit_intercept=fit_intercept, form=form).fit(X, Y, weights)
        for features in (kernel, kernel.features(3))
        for form in ("primal", "dual")
    ]
    problem_rows = np.flatnonzero(np.ones(30) if weights is None else weights)
    roots = None if weights is None else np.sqrt(weights[problem_rows])
    tail = np.ones((len(problem_rows), 1)) if fit_intercept else None
    problem = LeastSquares(mc.gram.of(kernel, X[problem_rows]), Y[problem_rows], np.ones(2), roots, tail)
    c, b = CholeskyFactor.of(problem, 0.3).solve(Y[problem_rows])
    wanted = kernel(Z, X[problem_rows]) @ c + (0 if b is None else b)
    for model in models:
        close(model.predict(Z), wanted)
        close(model.function_(Z), wanted)
        close(model.dual_coef_, c, 1e-9)
        close(model.coef_, kernel.features(3)(X[problem_rows]).T @ c)
        close(model.loo_predictions_, models[0].loo_predictions_)
        close(model.predict_interval(Z, 0.8), models[0].predict_interval(Z, 0.8))
        assert model.degrees_of_freedom_ == pytest.approx(models[0].degrees_of_freedom_, rel=1e-10)
    assert [model.form_ for model in models] == ["primal", "dual"] * 2


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_raw_columns_are_scikit_learns_ridge(form, fit_intercept, weights):
    ours = Ridge(alpha=0.7, fit_intercept=fit_intercept, form=form).fit(X, Y, weights)
    peer = Peer(alpha=0.7, fit_intercept=fit_intercept, solver="svd").fit(X, Y, weights)
    close(ours.coef_, peer.coef_.T)
    close(ours.intercept_, np.broadcast_to(peer.intercept_, (2,)))
    close(ours.predict(Z), peer.predict(Z))
    single = Ridge(alpha=0.7, fit_intercept=fit_intercept, form=form).fit(X, Y[:, 0], weights)
    close(single.coef_, peer.coef_[0])
    close(single.predict(Z), peer.predict(Z)[:, 0])
    assert np.ndim(single.intercept_) == 0


def test_the_coefficients_are_the_residuals_over_alpha():
    for form in ("primal", "dual"):
        model = Ridge(alpha=0.3, form=form).fit(X, Y, 1.0 + W)
        close(model.dual_coef_, (1.0 + W)[:, None] * (Y - model.predict(X)) / 0.3, 1e-9)
        assert np.abs(model.dual_coef_.sum(axis=0)).max() < 1e-9  # orthogonal to the constant


def test_the_kernel_trick_reaches_features_that_no_memory_holds():
    pixels = RNG.normal(size=(20, 784)) / 28
    t = np.sin(3 * pixels[:, 0])
    model = Ridge(mc.Polynomial(4, c=1.0), alpha=0.1, fit_intercept=False).fit(pixels, t)
    assert model.form_ == "dual"
    assert "15,943,435,565 features > 20 rows" in model.status_
    K = mc.Polynomial(4, c=1.0)(pixels)
    close(model.predict(pixels), K @ np.linalg.solve(K + 0.1 * np.eye(20), t))
    with pytest.raises(mc.InvalidInput, match="memory budget"):
        Ridge(mc.Polynomial(4, c=1.0), form="primal").fit(pixels, t)
    with pytest.raises(mc.InvalidInput, match="memory budget"):
        model.coef_  # noqa: B018


def test_auto_takes_the_cheaper_form_and_says_why():
    assert Ridge().fit(X, Y).form_ == "primal"
    assert Ridge().fit(X, Y).status_ == "primal: 3 features ≤ 30 rows; by the normal equations, refined"
    assert Ridge().fit(X[:2], Y[:2]).status_ == "dual: 3 features > 2 rows; by a Cholesky factor"
    assert Ridge(form="dual").fit(X, Y).status_ == "dual: as requested; by a Cholesky factor"
    least = Ridge(alpha=0.0).fit(X[:2], Y[:2])
    assert least.form_ == "primal"
    assert "alpha = 0" in least.status_
    wide = Ridge(mc.Polynomial(3, c=1.0), alpha=0.0).fit(X[:6], Y[:6])
    assert (wide.form_, wide.rank_) == ("dual", 5)
    tight = Ridge(MonomialMap(3, degree=4, c=1.0), budget=24_000).fit(X, Y)
    assert (tight.form_, tight.status_.split(";")[0]) == ("dual", "dual: 35 features > 30 rows")
    tall = Ridge(mc.Polynomial(2, c=1.0), budget=8_000).fit(X[:20], Y[:20])
    assert (tall.form_, tall.status_) == ("primal", "primal: 10 features ≤ 20 rows; by the normal equations, refined")
    forced = Ridge(mc.Polynomial(3, c=1.0), budget=8_000).fit(X[:21], Y[:21])
    assert forced.form_ == "dual"
    assert "20 features ≤ 21 rows, but the primal needs 10.1 kB" in forced.status_
    with pytest.raises(mc.InvalidInput, match=r"budget of 100 B, got 2.16 kB.*other form needs 15.1 kB"):
        Ridge(budget=100).fit(X, Y)


# -- least squares -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("shape", ["tall", "square", "wide", "dependent"])
def test_least_squares_of_minimum_norm(shape, form):
    A = {"tall": X, "square": X[:3], "wide": RNG.normal(size=(5, 40)), "dependent": X @ np.ones((3, 4)) + X[:, :1]}[
        shape
    ]
    t = RNG.normal(size=(len(A), 2))
    w, _, rank, _ = np.linalg.lstsq(A, t, rcond=1e-8)
    model = Ridge(alpha=0.0, fit_intercept=False, form=form).fit(A, t)
    close(model.coef_, w, 1e-7 if form == "dual" else 1e-10)
    assert model.rank_ == rank
    assert model.degrees_of_freedom_ == pytest.approx(rank)
    peer = LinearRegression().fit(A, t)
    centred = Ridge(alpha=0.0, form=form).fit(A, t)
    close(centred.predict(A), peer.predict(A), 1e-7)
    close(centred.coef_, peer.coef_.T, 1e-6)
    assert centred.rank_ == np.linalg.matrix_rank(A - A.mean(axis=0), tol=1e-8)


def test_ill_conditioned_features_keep_their_digits():
    # A degree-11 polynomial through twelve points: condition 1e8 here, 1e16 in the normal equations.
    x = np.linspace(-1, 1, 40)[:, None]
    powers = lambda x: x ** np.arange(12)  # noqa: E731
    t = powers(x) @ np.arange(1.0, 13.0)
    model = Ridge(powers, alpha=0.0, fit_intercept=False).fit(x, t)
    assert model.rank_ == 12
    close(model.coef_, np.arange(1.0, 13.0), 1e-9)


def test_offsets_do_not_cancel_the_slope():
    far = X + 1e6
    close(Ridge(alpha=0.1).fit(far, Y).predict(Z + 1e6), Ridge(alpha=0.1).fit(X, Y).predict(Z), 1e-8)
    spectrum = FeatureSpectrum(X + 1e8, None, np.ones((30, 1)))
    assert np.abs(spectrum.Q.T @ spectrum.U).max() < 1e-12


def exactly(A, t, alpha, at, fit_intercept=True):
    """Predictions to 80 digits: (ΦᵀΦ + alpha I)w = Φᵀy with the intercept as a column that is not penalised."""
    return _exactly(A.tobytes(), t.tobytes(), alpha, at.tobytes(), at.shape, fit_intercept)


@cache  # every form of the model is compared with the same numbers
def _exactly(A, t, alpha, at, shape, fit_intercept):
    A, t, at = np.frombuffer(A).reshape(-1, shape[1]), np.frombuffer(t), np.frombuffer(at).reshape(shape)
    with mpmath.workdps(80):
        ones = np.ones((len(A), 1))
        F = mpmath.matrix((np.hstack([A, ones]) if fit_intercept else A).tolist())
        G = F.T * F
        for j in range(A.shape[1]):
            G[j, j] += mpmath.mpf(alpha)
        w = mpmath.lu_solve(G, F.T * mpmath.matrix(t.tolist()))
        query = np.hstack([at, np.ones((len(at), 1))]) if fit_intercept else at
        return np.array((mpmath.matrix(query.tolist()) * w).tolist(), dtype=float).ravel()


WILD = {
    "wide, one column large": (6, np.r_[1e8, np.ones(8)], 0.0),
    "wide, one column larger": (6, np.r_[1e4, np.ones(8)], 0.0),
    "wide, far away": (6, np.ones(9), 1e7),
    "tall, every size": (30, np.array([1e8, 1.0, 1e-8]), 0.0),
    "tall, far away": (30, np.ones(3), 1e7),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("form", ["auto", "primal", "dual"])
@pytest.mark.parametrize("case", WILD)
def test_wildly_scaled_columns_keep_their_digits_in_every_form(case, form, sparse):
    n, scale, offset = WILD[case]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A, t = rng.normal(size=(n, len(scale))) * scale + offset, rng.normal(size=n)
        given = sp.csr_array(A) if sparse else A
        for fit_intercept in (False, True):
            model = Ridge(alpha=1.0, fit_intercept=fit_intercept, form=form).fit(given, t)
            tolerance = 1e-6 if offset else 1e-9  # far away, a rounding of A itself moves the answer by 1e-8
            close(model.predict(given), exactly(A, t, 1.0, A, fit_intercept), tolerance)
            close(model.function_(given) if not offset and scale.max() < 1e5 else model.predict(given),
                  model.predict(given), 1e-7)  # fmt: skip
            for i in (0, n - 1):
                rest = np.arange(n) != i
                left = exactly(A[rest], t[rest], 1.0, A[[i]], fit_intercept)
                close(model.loo_predictions_[[i]], left, 1e-6)


def test_a_kernel_that_loses_the_digits_gives_way_to_its_features():
    rng = np.random.default_rng(0)
    for scale, offset, tolerance in ((np.r_[1e8, np.ones(8)], 0.0, 1e-9), (np.ones(9), 1e7, 1e-6)):
        A, t = rng.normal(size=(6, 9)) * scale + offset, rng.normal(size=6)
        model = Ridge(mc.Linear()).fit(A, t)
        assert (model.form_, "singular values" in model.status_) == ("dual", True)
        close(model.predict(A), exactly(A, t, 1.0, A), tolerance)
        assert model.coef_.shape == (9,)


def test_alpha_by_leave_one_out_on_wildly_scaled_columns():
    rng = np.random.default_rng(0)
    A, t = rng.normal(size=(12, 20)) * np.r_[1e8, np.ones(19)], rng.normal(size=12)
    model = Ridge(alpha="loo").fit(A, t)
    close(model.predict(A), exactly(A, t, model.alpha_, A), 1e-8)
    for i in (0, 11):
        rest = np.arange(12) != i
        close(model.loo_predictions_[[i]], exactly(A[rest], t[rest], model.alpha_, A[[i]]), 1e-6)


def test_a_gram_matrix_that_loses_the_digits_gives_way_to_singular_values_or_is_refused():
    rng = np.random.default_rng(0)
    A, t = rng.normal(size=(6, 9)) * np.r_[1e8, np.ones(8)], rng.normal(size=6)
    model = Ridge(form="dual").fit(A, t)
    assert model.status_ == "dual: as requested; by singular values, rank 5"
    close(A.T @ model.dual_coef_, model.coef_, 1e-7)
    wide = rng.normal(size=(6, 300)) * np.r_[1e8, np.ones(299)]
    with pytest.raises(mc.InvalidInput, match=r"singular values of 6 × 300 features.*budget.*Scale the columns"):
        Ridge(form="dual", budget=20_000).fit(wide, t)


@pytest.mark.parametrize("size", [1e160, 1e-160])
@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("alpha", [0.0, 1.0, "loo"])
def test_features_whose_squares_are_no_numbers_are_refused(alpha, form, size):
    for A in (X * size, sp.csr_array(X * size)):
        with pytest.raises(mc.InvalidInput, match="finite square"):
            Ridge(alpha=alpha, form=form).fit(A, Y)
    assert np.isfinite(Ridge(alpha=alpha, form=form).fit(np.zeros((30, 3)), Y).predict(Z)).all()


def test_duplicate_rows_constant_targets_and_one_sample():
    twice = np.vstack([X, X])
    close(Ridge(alpha=0.0).fit(twice, np.r_[Y, Y + 1]).predict(Z), Ridge(alpha=0.0).fit(X, Y + 0.5).predict(Z))
    close(Ridge().fit(X, np.full(30, 7.0)).predict(Z), np.full(12, 7.0))
    for alpha in (0.0, 1.0):
        close(Ridge(alpha=alpha).fit(X[:1], [5.0]).predict(Z), np.full(12, 5.0))
    nothing = Ridge(alpha=0.0).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0])
    assert (nothing.rank_, nothing.intercept_) == (0, 2.5)
    assert np.abs(nothing.coef_).max() < 1e-12


# -- weights, leave-one-out, the path ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_weight_is_a_repetition(form, alpha):
    often = np.repeat(np.arange(30), W.astype(int))
    weighted = Ridge(alpha=alpha, form=form).fit(X, Y, W)
    repeated = Ridge(alpha=alpha, form=form).fit(X[often], Y[often])
    close(weighted.predict(Z), repeated.predict(Z), 1e-9)
    assert weighted.degrees_of_freedom_ == pytest.approx(repeated.degrees_of_freedom_)


def test_a_transformer_never_sees_rows_of_weight_zero():
    w = np.r_[np.zeros(10), np.ones(20)]
    far = np.r_[X[:10] + 100, X[10:]]
    model = Ridge(StandardScaler()).fit(far, Y, w)
    close(model.predict(Z), Ridge(StandardScaler()).fit(X[10:], Y[10:]).predict(Z))
    close(model.loo_predictions_[:10], model.predict(far[:10]))


@pytest.mark.parametrize("weights", [None, 1.0 + W])
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-3, 1.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("columns", [3, 60])
def test_leave_one_out_is_brute_force(columns, fit_intercept, alpha, weights):
    A = np.random.default_rng(1).normal(size=(30, columns))
    for form in ("primal", "dual") if alpha else ("primal",):
        tolerance = 1e-8 if form == "primal" else 1e-3 if alpha == 1e-12 else 1e-7
        if form == "dual" and alpha == 1e-12 and columns == 3:
            continue  # K + alpha I is singular to rounding: what the primal is for
        make = lambda form=form: Ridge(alpha=alpha, fit_intercept=fit_intercept, form=form)  # noqa: E731
        model = make().fit(A, Y, weights)
        for i in (0, 7, 29):
            rest = np.arange(30) != i
            other = make().fit(A[rest], Y[rest], None if weights is None else weights[rest])
            close(model.loo_predictions_[i], other.predict(A[[i]])[0], tolerance)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("features", [None, mc.Polynomial(2, c=1.0)])
def test_one_row_leaves_no_model_without_it(features, form):
    for alpha in (0.0, 1.0):
        model = Ridge(features, alpha=alpha, form=form).fit(X[:1], [5.0])
        if form == "primal" or features is None:
            for ask in (lambda model=model: model.loo_predictions_, lambda model=model: model.predict_interval(Z, 0.5)):
                with pytest.raises(mc.InvalidInput, match=r"Leave-one-out needs.*row 0"):
                    ask()
        free = Ridge(features, alpha=1.0, form=form, fit_intercept=False).fit(X[:1], [5.0])
        assert free.loo_predictions_ == pytest.approx(0.0, abs=1e-12)  # the function 0 is left
    with pytest.raises(mc.InvalidInput, match=r"Leave-one-out needs.*row 0"):
        Ridge(features, alpha="loo", form=form).fit(X[:1], [5.0])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_leave_one_out_is_the_same_number_whenever_it_is_asked_for(kind):
    """U is formed at its first use: what comes before it must not round otherwise."""
    r = np.random.default_rng(0)
    factor = FeatureSpectrum(kind(r.normal(size=(60, 7))), tail=np.ones((60, 1))).at(0.3)
    y = r.normal(size=(60, 2))
    assert (factor.leave_one_out(y) == factor.leave_one_out(y)).all()


def test_leave_one_out_of_a_point_that_alone_knows_its_feature():
    # hᵢᵢ = 1 to rounding, but 1 − hᵢᵢ ≈ alpha/2 is a number: without the point its weight is zero.
    A = np.column_stack([np.arange(30.0), np.eye(30)[:, 7]])
    model = Ridge(alpha=1e-20, fit_intercept=False).fit(A, Y)
    rest = np.arange(30) != 7
    close(model.loo_predictions_[7], Ridge(alpha=1e-20, fit_intercept=False).fit(A[rest], Y[rest]).predict(A[[7]])[0])


def test_alpha_by_leave_one_out_is_the_best_of_a_grid():
    for A, form in ((X, "primal"), (X, "dual"), (RNG.normal(size=(30, 50)), "dual")):
        model = Ridge(alpha="loo", form=form).fit(A, Y)
        found = [((Ridge(alpha=a, form=form).fit(A, Y).loo_predictions_ - Y) ** 2).mean(axis=0)
                 for a in np.geomspace(1e-3, 1e4, 30)]  # fmt: skip
        own = ((model.loo_predictions_ - Y) ** 2).mean(axis=0)
        assert (own <= np.min(found, axis=0) * (1 + 1e-4)).all()
        assert np.shape(model.alpha_) == (2,)
    close(Ridge(alpha="loo", form="dual").fit(X, Y).alpha_, Ridge(alpha="loo").fit(X, Y).alpha_, 0.1)


def test_one_alpha_per_target():
    model = Ridge(alpha=[0.1, 10.0]).fit(X, Y)
    for t, alpha in enumerate((0.1, 10.0)):
        one = Ridge(alpha=alpha).fit(X, Y[:, t])
        close(model.predict(Z)[:, t], one.predict(Z))
        close(model.loo_predictions_[:, t], one.loo_predictions_)
        assert model.degrees_of_freedom_[t] == pytest.approx(one.degrees_of_freedom_)
        close(model.predict_interval(Z, 0.5)[:, t], one.predict_interval(Z, 0.5))


def test_intervals_cover_what_they_promise():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(200, 4)), rng.normal(size=(2000, 4))
    truth = lambda X: X @ [1.0, -2.0, 0.5, 0.0]  # noqa: E731
    model = Ridge(alpha=1.0).fit(A, truth(A) + rng.normal(size=200))
    low, high = model.predict_interval(B, 0.9).T
    inside = np.mean((low <= (t := truth(B) + rng.normal(size=2000))) & (t <= high))
    assert 0.86 < inside < 0.94


# -- the span of the data (lectures 001 and 003) -----------------------------------------------------------------------


def test_gradient_descent_from_zero_stays_in_the_span_of_the_data():
    A, t = RNG.normal(size=(8, 20)), RNG.normal(size=8)
    away = np.eye(20) - np.linalg.pinv(A) @ A  # onto what is orthogonal to every row
    step = 1 / np.linalg.norm(A, 2) ** 2
    w, started_off = np.zeros(20), np.full(20, 0.1)
    for _ in range(3000):
        w = w - step * A.T @ (A @ w - t)
        assert np.abs(away @ w).max() < 1e-12
        started_off = started_off - step * A.T @ (A @ started_off - t)
    model = Ridge(alpha=0.0, fit_intercept=False).fit(A, t)
    close(model.coef_, w, 1e-8)  # so its limit is the shortest solution,
    close(A.T @ model.dual_coef_, model.coef_)  # a combination of the data
    close(A @ started_off, t, 1e-8)  # while another start also fits
    assert np.abs(started_off - w).max() > 0.01  # and is another solution.


# -- what features may be ----------------------------------------------------------------------------------------------


def test_features_of_every_kind_are_the_same_model():
    Phi = PolynomialFeatures(2, include_bias=False).fit_transform
    wanted = Peer(alpha=0.4, solver="svd").fit(Phi(X), Y).predict(Phi(Z))
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), PolynomialFeatures(2, include_bias=False))
    for features in (Phi, PolynomialFeatures(2, include_bias=False), pipeline):
        for form in ("primal", "dual"):
            close(Ridge(features, alpha=0.4, form=form).fit(X, Y).predict(Z), wanted)
    transformer = PolynomialFeatures(2)
    model = Ridge(transformer).fit(X, Y)
    assert not hasattr(transformer, "n_features_in_")
    assert model.features_.n_features_in_ == 3
    assert clone(Ridge(transformer)).set_params(features__degree=3).features.degree == 3
    assert Ridge(mc.Polynomial(2, c=1.0)).set_params(features__c=2.0).features == mc.Polynomial(2, c=2.0)


def test_words_and_sets():
    texts = ["good good film", "bad film", "good book", "bad bad book", "film"]
    t = np.array([2.0, -1.0, 1.0, -2.0, 0.0])
    model = Ridge(CountVectorizer(), alpha=1e-6).fit(texts, t)
    close(model.predict(["good", "bad"]), [1.0, -1.0], 1e-4)
    sets = [{1}, {2}, {1, 2}, {1, 3}]
    for form in ("primal", "dual"):
        model = Ridge(mc.Intersection(), alpha=0.0, fit_intercept=False, form=form).fit(sets, [1.0, 2.0, 3.0, 5.0])
        close(model.predict([{3}, {1, 2, 3}]), [4.0, 7.0], 1e-8)


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_is_dense(fit_intercept, weights, monkeypatch):
    A = sp.random_array((60, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    t = np.random.default_rng(1).normal(size=60)
    w = None if weights is None else np.r_[weights, weights]
    for alpha in (0.0, 0.5):
        dense = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(A.toarray(), t, w)
        for filled in (True, False):
            monkeypatch.setattr(Ridge, "_stays_sparse", staticmethod(lambda Phi, f=filled: sp.issparse(Phi) and not f))
            for form in ("primal", "dual"):
                model = Ridge(alpha=alpha, fit_intercept=fit_intercept, form=form).fit(A, t, w)
                close(model.predict(A), dense.predict(A.toarray()), 1e-9 if alpha else 1e-7)
                close(model.loo_predictions_, dense.loo_predictions_, 1e-8 if alpha else 1e-6)
                close(model.predict_interval(A[:5]), dense.predict_interval(A[:5].toarray()), 1e-8 if alpha else 1e-6)
                close(model.dual_coef_, dense.dual_coef_, 1e-8) if alpha else None
                assert model.rank_ == dense.rank_


def test_sparse_is_never_filled_in():
    A = sp.random_array((200_000, 400), density=1e-3, rng=np.random.default_rng(0), format="csr")  # 640 MB when dense
    w = np.random.default_rng(1).normal(size=400)
    model = Ridge(alpha=1e-8, budget="50 MB").fit(A, A @ w + 2.0)
    close(model.coef_, w, 1e-6)
    assert model.intercept_ == pytest.approx(2.0)
    wide = Ridge(alpha=1e-8, budget="50 MB").fit(A.T.tocsr()[:50], np.arange(50.0))
    assert wide.form_ == "dual"
    assert wide.coef_.shape == (200_000,)
    with pytest.raises(mc.InvalidInput, match="memory budget"):
        Ridge(budget="50 MB").fit(
            sp.random_array((5000, 5000), density=1e-4, rng=np.random.default_rng(0)), np.ones(5000)
        )


def test_single_precision_stays_single():
    narrow = X.astype(np.float32)
    for form in ("primal", "dual"):
        for features in (None, mc.Polynomial(2, c=1.0), mc.Polynomial(2, c=1.0).features(3)):
            model = Ridge(features, form=form).fit(narrow, Y)
            assert model.predict(narrow).dtype == np.float32
            close(model.predict(narrow), Ridge(features).fit(X, Y).predict(X), 1e-4)


def test_frames_and_lists():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    wanted = Ridge().fit(X, Y).predict(Z)
    for kind in (pandas.DataFrame, polars.DataFrame):
        frame, queries = kind(dict(zip("abc", X.T))), kind(dict(zip("abc", Z.T)))
        model = Ridge().fit(frame, Y)
        close(model.predict(queries), wanted)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
    close(Ridge().fit(X.tolist(), Y.tolist()).predict(Z.tolist()), wanted)


def test_a_fitted_model_survives_pickling():
    for form in ("primal", "dual"):
        for features in (None, mc.Polynomial(2, c=1.0), PolynomialFeatures(2)):
            model = Ridge(features, form=form).fit(X, Y)
            again = pickle.loads(pickle.dumps(model))
            close(again.predict(Z), model.predict(Z), 0)
            close(again.loo_predictions_, model.loo_predictions_, 1e-12)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "≥ 0"),
        ({"alpha": "gcv"}, "'loo'"),
        ({"alpha": [1.0, 2.0, 3.0]}, "one per target"),
        ({"form": "both"}, "'primal'"),
        ({"features": 5}, "`features` must be"),
        ({"features": StandardScaler}, "`features` must be"),
        ({"features": mc.Gaussian(1.0)}, "finite feature map.*name begins with Kernel"),
        ({"features": lambda X: X[:3]}, "one row per point"),
        ({"features": lambda X: np.log(-np.abs(X))}, "finite"),
        ({"features": MonomialMap(2, degree=2)}, "2 columns"),
        ({"budget": "lots"}, "budget"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_parameters_that_cannot_be_used(params, message):
    with pytest.raises(mc.InvalidInput, match=message):
        Ridge(**params).fit(X, Y)


def test_data_that_cannot_be_used():
    for bad, match in ((np.full(30, np.nan), "NaN"), (Y[:5], "shape"), (None, "requires y")):
        with pytest.raises(mc.InvalidInput, match=match):
            Ridge().fit(X, bad)
    with pytest.raises(mc.InvalidInput, match=r"-1\.0 in row 0"):
        Ridge().fit(X, Y, -np.ones(30))
    with pytest.raises(mc.InvalidInput, match="NaN"):
        Ridge().fit(np.where(X > 2, np.nan, X), Y)
    with pytest.raises(ValueError, match="features"):
        Ridge().fit(X, Y).predict(Z[:, :2])


# -- the solver itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 3), (10, 8), (6, 30)])
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_spectrum_is_a_singular_value_decomposition(shape, tail, sparse):
    rng = np.random.default_rng(0)
    A, P, s = rng.normal(size=shape), rng.normal(size=(shape[0], 2)), rng.uniform(0.5, 2, size=shape[0])
    spectrum = FeatureSpectrum(sp.csr_array(A) if sparse else A, s, P if tail else None)
    rest = s[:, None] * A
    if tail:
        Q = np.linalg.qr(s[:, None] * P)[0]
        rest = rest - Q @ (Q.T @ rest)
    z = rng.normal(size=(shape[0], 2))
    before = spectrum.coordinates(z)  # without U where it can be
    close(before, spectrum.U.T @ z, 1e-6 if sparse else 1e-12)
    close((spectrum.U * spectrum.S) @ spectrum.Vt, rest, 1e-6 if sparse else 1e-12)
    assert spectrum.rank == np.linalg.matrix_rank(rest)
    H = spectrum.at(0.3).smoother(A, P if tail else None)
    close(np.diagonal(H), spectrum.at(0.3).leverage(), 1e-10)
    assert np.trace(H) == pytest.approx(spectrum.at(0.3).degrees_of_freedom)


@pytest.mark.parametrize("shape", [(40, 3), (10, 8), (6, 30)])
@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_gram_factor_is_the_spectrum_at_one_alpha(shape, tail, sparse):
    rng = np.random.default_rng(0)
    A, s = rng.normal(size=shape), rng.uniform(0.5, 2, size=shape[0])
    P, t, Az, Pz = (rng.normal(size=shape) for shape in ((shape[0], 2), (shape[0], 3), (5, shape[1]), (5, 2)))
    P, Pz = (P, Pz) if tail else (None, None)
    gram = GramFactor(sp.csr_array(A) if sparse else A, 0.3, s, P)
    wanted = FeatureSpectrum(A, s, P).at(0.3)
    for ours, theirs in zip(gram.weights(t), wanted.weights(t)):
        close(ours, theirs)
    for ours, theirs in zip(gram.solve(t), wanted.solve(t)):
        close(ours, theirs)
    close(gram.leave_one_out(t), wanted.leave_one_out(t))
    close(gram.smoother(Az, Pz), wanted.smoother(Az, Pz))
    close(gram.diagonal(), np.diagonal(gram.inverse()))
    close(gram.inverse() @ t, wanted.solve(t)[0])
    close(gram.inverse(), wanted.inverse())
    close(gram.diagonal(), wanted.diagonal())
    assert gram.log_determinant() == pytest.approx(wanted.log_determinant(), rel=1e-10)
    assert gram.degrees_of_freedom == pytest.approx(wanted.degrees_of_freedom)


def test_normal_equations_are_refined_or_refused():
    rng = np.random.default_rng(0)
    A, t = rng.normal(size=(60, 8)) @ np.diag(np.geomspace(1, 3e-4, 8)), rng.normal(size=(60, 2))
    quick = by_normal_equations(A, t, 1e-9, None, np.ones((60, 1)))
    theta, b = FeatureSpectrum(A, None, np.ones((60, 1))).at(1e-9).weights(t)
    close(quick[0], theta, 1e-11)
    close(quick[1], b, 1e-11)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    steep = np.linalg.qr(A)[0] @ np.diag(np.geomspace(1, 1e-7, 8)) @ turn
    assert by_normal_equations(steep, t, 1e-16) is None
    model = Ridge(alpha=1e-22).fit(steep, t)
    assert "singular values, rank 8" in model.status_
    with_ones = np.column_stack([np.ones(60), steep])
    close(model.predict(steep), with_ones @ np.linalg.lstsq(with_ones, t, rcond=1e-14)[0], 1e-7)


@pytest.mark.parametrize("condition", [1.0, 1e6, 3e7, 1e12, np.inf])
def test_the_triangular_factor_is_orthonormal_at_any_condition(condition):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 6)) * np.geomspace(1, 1e6, 6)
    A[:, 5] = A[:, 0] + A[:, 5] / 1e6 / condition
    Q, R = tall_qr(A)
    close(Q.T @ Q, np.eye(6), 1e-13)
    close(Q @ R / np.abs(A).max(axis=0), A / np.abs(A).max(axis=0), 1e-13)
    close(np.tril(R, -1), np.zeros((6, 6)), 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "shape", "least"),
    [
        (mc.KernelRidge(mc.Gaussian(1.0), alpha="loo"), (300, 3), 24 * 300**2),
        (mc.Ridge(alpha="loo"), (300, 200), 24 * 300 * 200),
        (mc.Ridge(alpha="loo"), (200, 500), 16 * 200**2 + 8 * 200 * 500),
        (mc.Ridge(alpha=0.0), (300, 200), 24 * 300 * 200),
    ],
)
def test_a_budget_that_suffices_is_kept(model, shape, least):
    """The least budget under which a fit is done exactly is what NumPy then takes for it, to a tenth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X.flags.writeable = False
    y = X[:, 0] + 0.1 * rng.normal(size=len(X))
    budgets = least * 1.1 ** np.arange(25)
    for budget in (10**9, *budgets):  # imports, and loops that are compiled, on every path
        with contextlib.suppress(mc.InvalidInput):
            clone(model).set_params(budget=int(budget)).fit(X, y)
    for budget in budgets:
        try:
            tracemalloc.start()
            fitted = clone(model).set_params(budget=int(budget)).fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        except mc.InvalidInput:
            continue
        finally:
            tracemalloc.stop()
        if getattr(fitted, "solver_", "") != "nystrom":
            assert peak <= 1.1 * budget + 3e5  # what does not grow with the data
            return
    raise AssertionError("no budget suffices")
