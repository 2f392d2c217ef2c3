"""Tuning: the criteria and their gradients against brute force, the grid against scikit-learn, and the search."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer as mc
from mercer import gram, threads
from mercer.kernels.spaces import dimension
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.tune import tune
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import costs
from mercer.solvers.eigen import Eigendecomposition
from mercer.tuning import by_gradient, quasi_newton, ranges, ridge_grid
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.evidence import log_evidence, profiled_evidence
from mercer.tuning.folds import Fold
from mercer.tuning.loo import alpha_path, choose_alpha, loo_error, path_errors
from mercer.tuning.ranges import narrowest
from mercer.tuning.trials import LOO_ERROR, Trial, Trials, Tuned

ALPHA = 0.3


@pytest.fixture(autouse=True)
def one_thread():
    """These matrices are too small for several threads of BLAS, the peers' too."""
    with threads.single_threaded_blas():
        yield


def data(n=40, d=3, t=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = np.stack([np.sin(X[:, 0] + j) + 0.5 * X[:, 1] * X[:, 2 % d] + 0.1 * rng.normal(size=n) for j in range(t)], 1)
    return X, Y, np.sqrt(rng.uniform(0.3, 2.0, n)), np.c_[np.ones(n), X[:, 0]]


def refit(K, y, alpha, roots, tail, train):
    """(c, b) of the model fitted on some rows, by one dense bordered system."""
    w = np.ones(len(y)) if roots is None else roots**2
    P = np.empty((len(y), 0)) if tail is None else tail
    A, p = K[np.ix_(train, train)] + alpha * np.diag(1 / w[train]), P.shape[1]
    M = np.block([[A, P[train]], [P[train].T, np.zeros((p, p))]])
    solution = np.linalg.solve(M, np.r_[y[train], np.zeros((p, y.shape[1]))])
    return solution[: len(train)], solution[len(train) :], P


def brute_loo(K, y, alpha, roots, tail):
    """The mean weighted squared error by n refits."""
    errors, w = np.zeros(len(y)), np.ones(len(y)) if roots is None else roots**2
    for i in range(len(y)):
        train = np.delete(np.arange(len(y)), i)
        c, b, P = refit(K, y, alpha, roots, tail, train)
        errors[i] = ((y[i] - K[i, train] @ c - P[i] @ b) ** 2).mean()
    return w @ errors / w.sum()


KERNELS = [
    mc.Gaussian(1.3),
    2.0 * mc.Gaussian([1.0, 2.0, 3.0]) + 0.3 * mc.Polynomial(2, c=1.5),
    mc.Matern([1.0, 2.0, 0.5], 2.5),
    mc.RationalQuadratic(1.0, 0.7) * (0.5 * mc.Gaussian(2.0).on(0, 2)),
    mc.Laplacian(2.0) + 0.7,
]


@pytest.mark.parametrize("criterion", [loo_error, log_evidence])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_tail", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_are_finite_differences(kernel, with_tail, weighted, criterion):
    X, Y, roots, tail = data()
    points, rest = kernel.prepare(X), (roots if weighted else None, tail if with_tail else None)
    value, gradient = criterion(kernel, points, Y, ALPHA, *rest)
    alone, empty = criterion(kernel, points, Y, ALPHA, *rest, gradient=False)
    assert alone == pytest.approx(value, rel=1e-12)
    assert empty.size == 0
    x, step = np.append(kernel.theta, np.log(ALPHA)), 1e-5

    def at(z):
        return criterion(kernel.with_theta(z[:-1]), points, Y, float(np.exp(z[-1])), *rest, gradient=False)[0]

    numeric = [(at(x + step * e) - at(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    np.testing.assert_allclose(gradient, numeric, atol=1e-7 * np.abs(gradient).max())


def test_gradients_beyond_one_tile():
    """Tiles off the diagonal count twice: 400 points are several tiles."""
    X = data(400)[0]
    for kernel in (mc.Gaussian([1.0, 2.0, 3.0]), mc.Laplacian(1.0), 2.0 * mc.Polynomial(3, c=1.0)):
        G = np.random.default_rng(1).normal(size=(400, 400))
        step, points = 1e-5, kernel.prepare(X)
        numeric = [
            np.vdot(G, kernel.with_theta(kernel.theta + step * e)(X) - kernel.with_theta(kernel.theta - step * e)(X))
            / (2 * step)
            for e in np.eye(len(kernel.theta))
        ]
        np.testing.assert_allclose(kernel.gradient(points, G), numeric, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_tail", [False, True])
def test_leave_one_out_is_refitting(with_tail, weighted):
    X, Y, roots, tail = data(25)
    kernel = mc.Gaussian(1.3)
    rest = roots if weighted else None, tail if with_tail else None
    expected = brute_loo(kernel(X), Y, ALPHA, *rest)
    assert loo_error(kernel, kernel.prepare(X), Y, ALPHA, *rest)[0] == pytest.approx(expected, rel=1e-9)
    spectrum = Eigendecomposition(LeastSquares(gram.of(kernel, X), Y, np.ones(2), *rest))
    assert path_errors(spectrum, Y, np.log([ALPHA])).mean() == pytest.approx(expected, rel=1e-9)


def test_evidence_is_the_density_of_the_targets():
    from scipy.stats import multivariate_normal

    X, Y, roots, tail = data(12)
    kernel = mc.Gaussian(1.3)
    A = kernel(X) + ALPHA * np.diag(roots**-2)
    expected = sum(multivariate_normal(np.zeros(12), A).logpdf(y) for y in Y.T)
    assert log_evidence(kernel, kernel.prepare(X), Y, ALPHA, roots)[0] == pytest.approx(expected, rel=1e-10)
    # The restricted likelihood is the density of what is orthogonal to the tail.
    Q = np.linalg.qr(tail, mode="complete")[0][:, 2:]
    expected = sum(multivariate_normal(np.zeros(10), Q.T @ A @ Q).logpdf(Q.T @ y) for y in Y.T)
    assert log_evidence(kernel, kernel.prepare(X), Y, ALPHA, roots, tail)[0] == pytest.approx(expected, rel=1e-10)


def test_profile_is_the_best_common_factor():
    X, Y, roots, tail = data(30)
    kernel = 2.0 * mc.Gaussian(1.3)
    points = kernel.prepare(X)
    value, gradient, shift = profiled_evidence(kernel, points, Y, ALPHA, roots, tail)

    def at(delta):
        factor = float(np.exp(delta))
        return log_evidence(kernel.replace(scale=2.0 * factor), points, Y, ALPHA * factor, roots, tail)

    there, slopes = at(shift)
    assert value == pytest.approx(there, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-9)
    assert value > max(at(shift - 0.1)[0], at(shift + 0.1)[0])
    assert abs(gradient[0] + gradient[-1]) < 1e-9 * np.abs(gradient).max()


# -- the path of alpha -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_tail", [False, True])
def test_alpha_path(with_tail, weighted):
    X, Y, roots, tail = data(60, t=3)
    Y[:, 1] += np.random.default_rng(5).normal(size=60)
    rest = roots if weighted else None, tail if with_tail else None
    spectrum = Eigendecomposition(LeastSquares(gram.of(mc.Gaussian(1.3), X), Y, np.ones(3), *rest))
    path = alpha_path(spectrum, Y)
    w = np.ones(60) if not weighted else roots**2
    exact = np.stack([w @ spectrum.at(a).leave_one_out(Y) ** 2 / w.sum() for a in path.alphas])
    np.testing.assert_allclose(path.errors, exact, rtol=1e-7)
    fine = np.exp(np.linspace(*np.log(path.alphas[[0, -1]]), 1000))
    best = np.stack([w @ spectrum.at(a).leave_one_out(Y) ** 2 / w.sum() for a in fine]).min(axis=0)
    assert (path.error <= best * (1 + 1e-5)).all()
    np.testing.assert_array_equal(path.chosen, choose_alpha(spectrum, Y))
    assert len(set(path.chosen)) == 3


def test_alpha_of_flat_curves_is_the_largest():
    X = data()[0]
    Y = np.c_[np.zeros(40), np.full(40, 3.0)]
    spectrum = Eigendecomposition(LeastSquares(gram.of(mc.Gaussian(1.0), X), Y, np.ones(2), None, np.ones((40, 1))))
    path = alpha_path(spectrum, Y)
    assert (path.chosen == path.alphas[-1]).all()


def test_alpha_without_noise_interpolates():
    X = np.linspace(0, 3, 30)[:, None]
    spectrum = Eigendecomposition(LeastSquares(gram.of(mc.Gaussian(1.0), X), np.sin(X), np.ones(1)))
    assert alpha_path(spectrum, np.sin(X)).chosen[0] < 1e-6 * spectrum.values.max()


# -- the grid ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_tail", [False, True])
@pytest.mark.parametrize("by", ["loo", "evidence", 4])
def test_grid_is_brute_force(by, with_tail, weighted):
    X, Y, roots, tail = data(40)
    kernels, alphas = [mc.Gaussian(s) for s in (0.3, 1.0, 3.0)], np.array([1e-2, 0.3, 5.0])
    rest = roots if weighted else None, tail if with_tail else None
    found = ridge_grid.evaluate_grid(kernels, alphas, mc.Gaussian().prepare(X), Y, *rest, by=by)
    w = np.ones(40) if not weighted else roots**2
    for i, kernel in enumerate(kernels):
        for j, alpha in enumerate(alphas):
            if by == "loo":
                expected = brute_loo(kernel(X), Y, alpha, *rest)
            elif by == "evidence":
                expected = log_evidence(kernel, kernel.prepare(X), Y, alpha, *rest)[0]
            else:
                scores = []
                for test in np.array_split(np.arange(40), by):
                    train = np.setdiff1d(np.arange(40), test)
                    c, b, P = refit(kernel(X), Y, alpha, *rest, train)
                    f = kernel(X)[np.ix_(test, train)] @ c + P[test] @ b
                    total = w[test] @ (Y[test] - np.average(Y[test], axis=0, weights=w[test])) ** 2
                    scores.append((1 - w[test] @ (Y[test] - f) ** 2 / total).mean())
                expected = np.mean(scores)
            assert found.values[i, j] == pytest.approx(expected, rel=1e-8)
    best = found.values.argmin() if by == "loo" else found.values.argmax()
    assert found.best == np.unravel_index(best, found.values.shape)


def test_many_alphas_by_one_decomposition():
    X, Y, roots, tail = data(40)
    alphas = np.geomspace(1e-3, 10, costs.FACTORS)
    points = mc.Gaussian().prepare(X)
    many = ridge_grid.evaluate_grid([mc.Gaussian(1.0)], alphas, points, Y, roots, tail)
    few = [
        ridge_grid.evaluate_grid([mc.Gaussian(1.0)], alphas[[j]], points, Y, roots, tail).value
        for j in range(len(alphas))
    ]
    np.testing.assert_allclose(many.values[0], few, rtol=1e-8)


@pytest.mark.thorough
def test_the_race_ends_like_scikit_learn(monkeypatch):
    from sklearn.kernel_ridge import KernelRidge as Peer
    from sklearn.model_selection import GridSearchCV, KFold

    X, Y, _, _ = data(450, 4, 1, seed=3)
    sigmas, alphas = np.geomspace(0.3, 10, 5), np.geomspace(1e-3, 10, 4)
    folds = KFold(5, shuffle=True, random_state=0)
    peer = GridSearchCV(Peer(kernel="rbf"), {"gamma": 0.5 / sigmas**2, "alpha": alphas}, cv=folds).fit(X, Y[:, 0])
    model = tune(KernelRidge(mc.Gaussian(1.0)), X, Y[:, 0], by=5, grid={"kernel__sigma": sigmas, "alpha": alphas})
    assert model.alpha == peer.best_params_["alpha"]
    assert 0.5 / model.kernel.sigma**2 == pytest.approx(peer.best_params_["gamma"], rel=1e-12)
    assert model.tuning_.value == pytest.approx(peer.best_score_, rel=1e-9)
    folds = model.tuning_.grid.folds
    assert folds.max() == 5
    assert (folds < 5).sum() > 8, "the race must have spared most candidates the later folds"
    # Whoever stayed has scikit-learn's score.
    scores = peer.cv_results_["mean_test_score"].reshape(4, 5).T
    np.testing.assert_allclose(model.tuning_.grid.values[folds == 5], scores[folds == 5], rtol=1e-8)
    # Single precision finds who can win, and double precision decides.
    monkeypatch.setattr(costs, "FLOAT64_ROWS", 1)
    rough = tune(KernelRidge(mc.Gaussian(1.0)), X, Y[:, 0], by=5, grid={"kernel__sigma": sigmas, "alpha": alphas})
    assert (rough.kernel, rough.alpha) == (model.kernel, model.alpha)
    assert rough.tuning_.value == pytest.approx(peer.best_score_, rel=1e-12)
    both = (folds == 5) & (rough.tuning_.grid.folds == 5)
    np.testing.assert_allclose(rough.tuning_.grid.values[both], scores[both], rtol=1e-3)


def test_the_race_is_not_decided_by_its_first_fold(monkeypatch):
    """Rows of the first fold are noise, which prefers another candidate than all folds together."""
    monkeypatch.setattr(ridge_grid, "EARLY", 1)
    X, Y, _, _ = data(300, 2, 1)
    Y[:60] = np.random.default_rng(1).normal(size=(60, 1))
    kernels, alphas = [mc.Gaussian(s) for s in (0.1, 1.0)], np.geomspace(1e-4, 1e3, 8)
    points = mc.Gaussian().prepare(X)
    found = ridge_grid.evaluate_grid(kernels, alphas, points, Y, by=5)
    monkeypatch.setattr(ridge_grid, "EARLY", 1000)
    everywhere = ridge_grid.evaluate_grid(kernels, alphas, points, Y, by=5)
    assert found.best == everywhere.best
    fold = ridge_grid.FoldSystem(kernels[1](X), Y, None, None, Fold(np.arange(60, 300), np.arange(60)))
    assert np.argmin([fold.losses(a).mean() for a in alphas]) != found.best[1]
    assert (everywhere.folds == 5).all()


def test_grid_of_kernels_and_wrong_names():
    X, Y, _, _ = data(60)
    model = tune(KernelRidge(), X, Y, by=3, grid={"kernel": [mc.Linear(), mc.Gaussian(1.0)], "alpha": [0.1, 1.0]})
    assert isinstance(model.kernel, mc.Gaussian)
    with pytest.raises(mc.InvalidInput, match="kernel__sigma"):
        tune(KernelRidge(), X, Y, grid={"solver": ["eigen"]})
    with pytest.raises(mc.InvalidInput, match="folds"):
        tune(KernelRidge(), X, Y, by=61, grid={"alpha": [1.0]})
    with pytest.raises(mc.InvalidInput, match="loo"):
        tune(KernelRidge(), X, Y, by="r2", grid={"alpha": [1.0]})
    with pytest.raises(mc.InvalidInput, match="larger alphas"):
        tune(KernelRidge(mc.Linear()), X, Y, by=3, grid={"alpha": [0.0]})
    edge = tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid={"alpha": [1e3, 1e4, 1e5]})
    assert "edge" in edge.tuning_.notes[0]


# -- the search --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("n", [100, 400])
def test_evidence_reaches_the_optimum_of_scikit_learn(n):
    from sklearn.gaussian_process import GaussianProcessRegressor as Peer
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, Y, _, _ = data(n, 3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = Peer(ConstantKernel(1.0) * RBF(np.ones(3)) + WhiteKernel(0.1)).fit(X, Y[:, 0])
    kernel = 1.0 * mc.Gaussian(np.ones(3))
    found = by_gradient.tune_problem(kernel, kernel.prepare(X), Y, 0.1, by="evidence")
    assert found.value > peer.log_marginal_likelihood_value_ - 0.02
    assert found.value == pytest.approx(log_evidence(found.kernel, kernel.prepare(X), Y, found.alpha)[0], rel=1e-9)
    assert found.start_value == pytest.approx(log_evidence(kernel, kernel.prepare(X), Y, 0.1)[0], rel=1e-9)


def test_leave_one_out_is_at_a_minimum():
    X, Y, roots, tail = data(80, 2, 1)
    kernel = mc.Gaussian([1.0, 1.0])
    points = kernel.prepare(X)
    found = by_gradient.tune_problem(kernel, points, Y, 1.0, roots, tail)
    x = np.append(found.kernel.theta, np.log(found.alpha))
    for step in 0.3 * np.r_[np.eye(3), -np.eye(3)]:
        z = x + step
        near = loo_error(kernel.with_theta(z[:-1]), points, Y, float(np.exp(z[-1])), roots, tail, gradient=False)[0]
        assert near > found.value * (1 - 1e-3)
    assert found.value < found.start_value


def test_restarts_beat_a_bad_start():
    X, Y, _, _ = data(120, 2, 1)
    kernel = 1.0 * mc.Gaussian(1e-3)
    points = kernel.prepare(X)
    stuck = quasi_newton.minimise(
        LeastSquaresCriterion(kernel, points, Y, None, None, "evidence", np.full(3, -20.0), np.full(3, 20.0), 0.0),
        np.append(kernel.theta, np.log(1e-3)), np.full(3, -20.0), np.full(3, 20.0),
    )  # fmt: skip
    found = by_gradient.tune_problem(kernel, points, Y, 1e-3, by="evidence")
    assert found.value > 20 - stuck.at.value


@pytest.mark.thorough
def test_relevance_of_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = np.sin(2 * X[:, 1]) + np.sin(2 * X[:, 3]) + 0.05 * rng.normal(size=150)
    for by in ("loo", "evidence"):
        model = tune(KernelRidge(1.0 * mc.Gaussian(np.ones(5))), X, y, by=by)
        sigma = model.kernel_.kernel.sigma
        assert max(sigma[[1, 3]]) < 0.2 * min(sigma[[0, 2, 4]])
        if by == "evidence":
            assert sum("can be dropped" in note for note in model.tuning_.notes) == 3
            assert "column 0" in model.tuning_.notes[0]


@pytest.mark.thorough
def test_weights_of_a_sum_of_kernels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = 2 * X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=150)
    kernel = 1.0 * mc.Linear() + 1.0 * mc.Gaussian(mc.Fixed(0.2))
    for by in ("loo", "evidence"):
        model = tune(KernelRidge(kernel), X, y, by=by)
        linear, gaussian = (float(part.scale) for part in model.kernel_.kernels)
        assert gaussian < 2e-3 * linear
        assert model.kernel_.kernels[1].kernel == mc.Gaussian(mc.Fixed(0.2))
    assert any("can be dropped" in note and "Gaussian" in note for note in model.tuning_.notes)


def test_offset_of_a_polynomial():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(80, 1))
    y = 5 + X[:, 0] ** 2 + 0.01 * rng.normal(size=80)
    model = tune(KernelRidge(mc.Polynomial(2, c=1e-3), alpha=1e-2), X, y)
    assert model.kernel_.c > 0.01
    assert model.tuning_.value < 2e-4 < model.tuning_.start_value


@pytest.mark.thorough
def test_held_parameters_stay():
    X, Y, _, _ = data(50, 2, 1)
    kernel = 2.0 * mc.Gaussian([1.5, 0.7])
    for hold, same in [
        ("alpha", lambda m: m.alpha == 0.25),
        ("kernel__kernel__sigma", lambda m: m.kernel.kernel == kernel.kernel),
        ("kernel__sigma[0]", lambda m: m.kernel.kernel.sigma[0] == 1.5 != m.kernel.kernel.sigma[1]),
        ("scale", lambda m: m.kernel.scale == 2.0),
    ]:
        model = tune(GaussianProcessRegressor(kernel, alpha=0.25), X, Y[:, 0], by="evidence", hold=(hold,))
        assert same(model)
        assert model.tuning_.value > model.tuning_.start_value
    model = tune(KernelRidge(kernel, alpha=0.25), X, Y, hold=("alpha", "scale", "kernel__sigma"))
    assert model.kernel == kernel
    assert "nothing was tuned" in model.tuning_.notes[0]
    with pytest.raises(mc.InvalidInput, match=r"kernel__sigma\[0\], kernel__sigma\[1\], alpha"):
        tune(KernelRidge(kernel), X, Y, hold=("width",))


def test_models_are_fitted_clones():
    X, Y, roots, _ = data(60, 2, 1)
    given = KernelRidge(fit_intercept=True)
    model = tune(given, X, Y[:, 0], sample_weight=roots**2)
    assert given.kernel is None
    assert model.kernel_ == model.tuning_.kernel
    assert model.alpha_ == model.tuning_.alpha
    assert model.predict(X).shape == (60,)
    again = tune(given, X, Y[:, 0], sample_weight=roots**2)
    assert again.kernel == model.kernel
    assert again.alpha == model.alpha
    process = tune(GaussianProcessRegressor(1.0 * mc.Gaussian(1.0), normalize_y=True), X, 1e3 * Y[:, 0], by="evidence")
    assert process.log_evidence_ == pytest.approx(process.tuning_.value, rel=1e-8)
    assert "log evidence" in str(process.tuning_)
    with pytest.raises(mc.InvalidInput, match="alpha"):
        tune(object(), X, Y)
    with pytest.raises(mc.InvalidInput, match="by"):
        tune(given, X, Y, by="aic")
    with pytest.raises(mc.InvalidInput, match="grid"):
        tune(given, X, Y, by=5)


@pytest.mark.thorough
def test_a_search_over_samples_ends_where_a_full_one_does():
    X, Y, _, _ = data(1100, 3, 1)
    kernel = 1.0 * mc.Gaussian(1.0)
    points = kernel.prepare(X)
    found = by_gradient.tune_problem(kernel, points, Y, 1.0, by="evidence")
    low, high = np.full(3, -15.0), np.full(3, 15.0)
    whole = LeastSquaresCriterion(kernel, points, Y, None, None, "evidence", low, high, 0.0)
    x = np.append(found.kernel.theta, np.log(found.alpha))
    polished = quasi_newton.minimise(whole, x, low, high, precision=1e-5)
    assert found.value > -polished.at.value - 0.02
    assert found.evaluations <= 10


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["loo", "evidence"])
@pytest.mark.parametrize("case", ["zero", "constant", "duplicates", "flat column", "three", "noise", "huge", "tiny"])
def test_degenerate_data_gives_words(case, by):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    if case == "zero":
        y = np.zeros(40)
    elif case == "constant":
        y = np.full(40, 3.0)
    elif case == "duplicates":
        X = np.repeat(X[:10], 4, axis=0)
    elif case == "flat column":
        X[:, 1] = 7.0
    elif case == "three":
        X, y = X[:3], y[:3]
    elif case == "huge":
        X, y = 1e6 * X, 1e8 * np.sin(X[:, 0])
    elif case == "tiny":
        X, y = 1e-7 * X, 1e-9 * np.sin(X[:, 0])
    for kernel, intercept in ((mc.Gaussian(np.ones(2)), True), (1.0 * mc.Gaussian(1.0), False)):
        with warnings.catch_warnings():
            if case == "tiny" and by == "evidence":
                # Targets of size 1e-9 and a kernel of size 1: the noise is rounding, and the solver may say so.
                warnings.simplefilter("ignore", ConvergenceWarning)
            model = tune(KernelRidge(kernel, fit_intercept=intercept), X, y, by=by)
        tuned = model.tuning_
        assert np.isfinite([tuned.alpha, tuned.value]).all()
        assert np.isfinite(model.predict(X)).all()
        assert tuned.value <= tuned.start_value if by == "loo" else tuned.value >= tuned.start_value
        if case == "zero" or (case == "constant" and intercept):
            assert "constant" in tuned.notes[0]
        if case == "flat column" and kernel == mc.Gaussian(np.ones(2)):
            assert any("column 1" in note and "constant" in note for note in tuned.notes)
        if case in ("huge", "tiny") and (by == "loo" or isinstance(kernel, mc.Scaled)):
            assert model.score(X, y) > 0.9
        elif case in ("huge", "tiny"):
            assert "no free scale" in tuned.notes[-1]


def test_ranges_follow_the_units_of_the_data():
    X, Y, _, _ = data(60, 2, 1)
    kernel = 1.0 * mc.Gaussian([1.0, 1.0]) + mc.Polynomial(2, c=1.0)
    for unit in (1e-6, 1e4):
        here, there = (ranges.ranges(kernel, kernel.prepare(u * X), Y) for u in (1.0, unit))
        for i in (1, 2):
            assert there[i].start - here[i].start == pytest.approx(np.log(unit))
        assert there[3].start - here[3].start == pytest.approx(2 * np.log(unit))


def test_a_new_leaf_says_what_its_parameters_are_compared_with():
    class Bell(mc.Kernel):
        reach: float = mc.positive(1.0)
        height: float = mc.positive(1.0)
        units = {"reach": "length", "height": "factor"}

        def tile(self, block, out):
            np.multiply(self.height, np.exp(-0.5 * block.sqdist() / self.reach**2), out=out)

    X, Y, _, _ = data(60, 2, 1)
    bell, known = Bell(1.0, 2.0), mc.Scaled(2.0, mc.Gaussian(1.0))
    for unit in (1.0, 1e-6):
        height, reach = ranges.ranges(known, known.prepare(unit * X), Y)
        assert np.allclose(ranges.ranges(bell, bell.prepare(unit * X), Y), [reach, height])
    assert bell.scale_factors.tolist() == [False, True]
    for units, words in (({"reach": "metres"}, "'length', 'taxicab'"), ({"width": "length"}, "Name a parameter")):
        with pytest.raises(mc.InvalidInput, match=words):
            type(
                "Wrong", (mc.Kernel,), {"__annotations__": {"reach": float}, "reach": mc.positive(1.0), "units": units}
            )


def test_the_columns_of_a_new_leaf_are_those_of_its_widths():
    class Bell(mc.Kernel):
        reach: float = mc.positive(1.0, vector=True)
        units = {"reach": "length"}

        def tile(self, block, out):
            x, z = (side / self.reach for side in block.vectors())
            np.exp(-0.5 * ((x[:, None] - z) ** 2).sum(axis=2), out=out)

    assert dimension(Bell([1.0, 2.0])) == 2
    assert dimension(mc.Linear().poly([1.0, 1.0, 1.0, 1.0])) == 3


def test_units_that_cannot_be_are_refused():
    def leaf(fields, units):
        annotations = dict.fromkeys(fields, float)
        return type("Wrong", (mc.Kernel,), {"__annotations__": annotations, **fields, **units})

    with pytest.raises(mc.InvalidInput, match=r"a parameter\. Give the parameter another name"):
        leaf({"units": mc.positive(1.0)}, {})
    with pytest.raises(mc.InvalidInput, match="a class without parameters, must be empty, got 'sigm'"):
        leaf({}, {"units": {"sigm": "length"}})


def test_all_widths_are_shown():
    widths = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 12345.678])
    kernels = [mc.Gaussian(widths), mc.Gaussian(widths * [1, 1, 1, 1, 1, 2, 1])]
    labels = [Trial({"kernel": kernel}, 0.5).label for kernel in kernels]
    assert labels[0] == "Gaussian(sigma=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 12346])"
    assert labels[0] != labels[1]
    tuned = Tuned({"kernel": kernels[1]}, Trials.of(LOO_ERROR, [Trial({"kernel": kernels[1]}, 0.5)]), 1, 0.0)
    assert "12.0, 12346]" in str(tuned)


def test_of_two_factors_of_a_leaf_one_scales_the_kernel():
    class Twice(mc.Kernel):
        a: float = mc.positive(1.0)
        b: float = mc.positive(1.0)
        units = {"a": "factor", "b": "factor"}

        def tile(self, block, out):
            np.multiply(self.a * self.b, np.exp(-0.5 * block.sqdist()), out=out)

    X, Y, _, _ = data(40, 2, 1)
    k = Twice(2.0, 3.0)
    theta = k.theta + k.scale_factors * np.log(5.0)
    np.testing.assert_allclose(k.with_theta(theta)(X), 5.0 * k(X))
    tuned = mc.tune(mc.KernelRidge(k, alpha=0.1), X, Y[:, 0], by="evidence", n_restarts=0)
    again = mc.GaussianProcessRegressor(tuned.tuning_.kernel, alpha=tuned.tuning_.alpha).fit(X, Y[:, 0])
    assert tuned.tuning_.value == pytest.approx(again.log_evidence_, abs=1e-6)


def test_names_of_slots_are_those_of_theta():
    X = data()[0]
    for kernel in [*KERNELS, mc.Gaussian([1.0, 2.0]).on(0, 2) + mc.Periodic(1.0, 2.0).on(1)]:
        assert [slot.name for slot in ranges.slots(kernel, kernel.prepare(X))] == kernel.parameter_names


def test_factors_of_the_whole_kernel():
    X = data()[0]
    for kernel in [2.0 * mc.Gaussian(1.0), 2.0 * mc.Linear() + 3.0 * mc.Gaussian(1.0), 2.0 * mc.Linear() + 1.0,
                   mc.Gaussian(1.0) * (2.0 * mc.Linear()), (2.0 * mc.Gaussian(1.0)).on(0)]:  # fmt: skip
        factors = kernel.scale_factors
        np.testing.assert_allclose(kernel.with_theta(kernel.theta + factors * np.log(5.0))(X), 5.0 * kernel(X))
    for kernel in [mc.Gaussian(1.0), mc.Linear() + 2.0 * mc.Gaussian(1.0), mc.Scaled(mc.Fixed(2.0), mc.Linear())]:
        assert kernel.scale_factors is None


@pytest.mark.thorough
def test_sparse_rows_tune_as_dense_ones():
    import scipy.sparse as sp

    X = sp.random_array((60, 3), density=0.6, rng=np.random.default_rng(0), format="csr")
    y = np.sin(3 * X.toarray()[:, 0])
    sparse = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, tune="loo").fit(X, y)
    dense = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, tune="loo").fit(X.toarray(), y)
    assert sparse.tuning_.value == pytest.approx(dense.tuning_.value, rel=1e-2)


@pytest.mark.thorough
def test_a_wide_column_that_matters_is_not_called_needless():
    """Nearly linear in a column: its width is long, and without it the fit is lost."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 3))
    y = 3 * X[:, 0] + np.sin(5 * X[:, 1]) + 0.05 * rng.normal(size=150)
    notes = " ".join(mc.tune(mc.KernelRidge(mc.Gaussian(np.ones(3)), alpha=0.1), X, y).tuning_.notes)
    assert "column 2 does not matter" in notes
    assert "column 0" not in notes
    assert "column 1" not in notes


@pytest.mark.thorough
def test_a_small_term_that_carries_the_fit_is_not_called_needless():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 120), rng.normal(0, 1e3, 120)])
    y = np.sin(4 * X[:, 0]) + 1e-3 * X[:, 1]
    kernel = 1.0 * mc.Gaussian(1.0).on(0) + 1.0 * mc.Linear().on(1)
    assert "can be dropped" not in str(mc.tune(mc.KernelRidge(kernel, alpha=0.1), X, y).tuning_)
    idle = 1.0 * mc.Gaussian(1.0).on(0) + 1.0 * mc.Linear().on(1) + 1.0 * mc.Gaussian(1.0).on(1)
    noted = str(mc.tune(mc.KernelRidge(idle, alpha=0.1), X, y).tuning_)
    assert noted.count("can be dropped") <= 1


@pytest.mark.thorough
def test_models_with_centres_say_what_their_own_error_is():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(120, 2))
    y = np.sin(4 * X[:, 0])
    for model in (mc.RBFNetwork(n_centers=8), mc.KernelRidge(mc.Gaussian(1.0), solver="nystrom", n_centers=8)):
        tuned = mc.tune(model, X, y)
        own = np.mean((tuned.loo_predictions_ - y) ** 2)
        assert f"this model has {own:.6g}" in tuned.tuning_.notes[0]


def test_what_cannot_be_tuned_is_named():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipe = make_pipeline(StandardScaler(), mc.KernelRidge())
    with pytest.raises(mc.InvalidInput, match=r"got Pipeline.*tune='loo'"):
        mc.tune(pipe, np.ones((3, 1)), np.ones(3))
    with pytest.raises(mc.InvalidInput, match="got KernelRidge"):
        mc.tune(mc.KernelRidge, np.ones((3, 1)), np.ones(3))
    with pytest.raises(mc.InvalidInput, match="`tune` must be"):
        mc.KernelRidge(tune="cv").fit(np.ones((3, 1)), np.ones(3))


# -- models whose criterion this is, and those whose it is not ---------------------------------------------------------


def own_error(model, y):
    return float(np.mean((model.loo_predictions_ - y) ** 2))


@pytest.mark.parametrize("degree", [None, 0, 1, 2])
@pytest.mark.parametrize("searched", ["gradient", "grid"])
def test_a_network_on_all_points_is_tuned_with_its_own_polynomial(degree, searched):
    X, Y, _, _ = data(60, 2, 1)
    y = Y[:, 0] + 5.0 - 3.0 * X[:, 1]
    # The search by gradient would go to wide functions, whose K is nearly singular: alpha keeps the digits there.
    near, hold = (1e-6, ["alpha"]) if searched == "gradient" else (1e-8, [])
    given = None if searched == "gradient" else {"kernel__sigma": [0.5, 1.0, 2.0], "alpha": [0.01, 0.1, 1.0]}
    tuned = tune(mc.RBFNetwork(mc.Gaussian(1.0), alpha=0.1, centers="all", degree=degree), X, y, grid=given, hold=hold)
    assert tuned.tuning_.value == pytest.approx(own_error(tuned, y), rel=near)
    assert "centres" not in str(tuned.tuning_)
    weights = np.r_[0.0, np.linspace(0.5, 2.0, 59)]
    weighted = tune(
        mc.RBFNetwork(mc.Gaussian(1.0), alpha=0.1, centers="all", degree=degree),
        X,
        y,
        grid=given,
        hold=hold,
        sample_weight=weights,
    )
    own = np.average((weighted.loo_predictions_ - y)[1:] ** 2, weights=weights[1:])
    assert weighted.tuning_.value == pytest.approx(own, rel=near)


def test_a_network_with_a_polynomial_is_tuned_over_samples_too():
    X, Y, _, _ = data(400, 2, 1)
    y = Y[:, 0] - 30.0 * X[:, 1]
    tuned = tune(mc.RBFNetwork(mc.Gaussian(1.0), centers="all", degree=1), X, y, n_restarts=0)
    assert tuned.tuning_.value == pytest.approx(own_error(tuned, y), rel=1e-6)


def test_samples_are_large_enough_for_the_polynomial(monkeypatch):
    monkeypatch.setattr(by_gradient, "SAMPLE", 8)
    sizes, sample = [], LeastSquaresCriterion.sample
    monkeypatch.setattr(
        LeastSquaresCriterion, "sample", lambda self, index: sizes.append(len(index)) or sample(self, index)
    )
    X, Y, _, _ = data(60, 3, 1)
    tune(mc.RBFNetwork(mc.Gaussian(1.0), centers="all", degree=2), X, Y[:, 0], n_restarts=0)
    assert sizes
    assert min(sizes) >= 40, "ten monomials"


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"normalized": True}, "normalized=True"),
        ({"penalty": "ridge"}, "penalty='ridge'"),
        ({"neighbors": 10}, "neighbors=10"),
        ({"kernel": mc.ThinPlate()}, "ThinPlate"),
        ({"kernel": mc.Multiquadric(1.0)}, "Multiquadric"),
        ({"kernel": lambda X: mc.ThinPlate()}, "ThinPlate"),
    ],
)
def test_networks_with_another_criterion_are_refused(options, got):
    X, Y, _, _ = data(40, 2, 1)
    with pytest.raises(mc.InvalidInput, match=rf"kernel ridge.*got .*{got}.*") as error:
        tune(mc.RBFNetwork(**{"kernel": mc.Gaussian(1.0), **options}), X, Y[:, 0])
    assert ("alpha='loo'" in error.value.advice) == ("neighbors" not in options)
    with pytest.raises(mc.InvalidInput, match="`degree` must be a whole number"):
        tune(mc.RBFNetwork(mc.Gaussian(1.0), degree="linear"), X, Y[:, 0])
    with pytest.raises(mc.InvalidInput, match="polynomial tail of degree 9"):
        tune(mc.RBFNetwork(mc.Gaussian(1.0), degree=9), X, Y[:, 0])


def test_centres_elsewhere_are_noted_even_if_they_are_many():
    X, Y, _, _ = data(40, 2, 1)
    model = tune(mc.RBFNetwork(mc.Gaussian(1.0), centers=np.random.default_rng(1).normal(size=(50, 2))), X, Y[:, 0])
    assert f"On its 50 centres this model has {own_error(model, Y[:, 0]):.6g}" in model.tuning_.notes[0]
    few = mc.RBFNetwork(mc.Gaussian(1.0), n_centers=5)
    assert "R² of kernel ridge on all 40" in tune(few, X, Y[:, 0], by=4, grid={"alpha": [0.1, 1.0]}).tuning_.notes[0]
    assert "evidence of kernel ridge on all 40" in tune(few, X, Y[:, 0], by="evidence").tuning_.notes[0]


# -- what is held stays, and constant targets teach nothing ------------------------------------------------------------


def test_a_held_alpha_is_not_changed():
    X, Y, _, _ = data(30, 3, 2)
    for alpha in (0.1, 0.3, 1e-3, 0.7, 3.3):
        assert tune(KernelRidge(mc.Gaussian(1.0), alpha=alpha), X, Y, hold=["alpha"], n_restarts=0).alpha == alpha
    for model in (KernelRidge(mc.Gaussian(1.0), alpha=0.0), GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0)):
        with pytest.raises(mc.InvalidInput, match=r"`alpha` must be > 0 if it is held, got 0.*hold"):
            tune(model, X, Y, hold=["alpha"])
    with pytest.raises(mc.InvalidInput, match="> 0 if it is held"):
        GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.0, tune="evidence", hold=["alpha"]).fit(X, Y)
    assert tune(KernelRidge(mc.Gaussian(1.0), alpha=0.0), X, Y).alpha > 0
    flat = tune(KernelRidge(mc.Gaussian(1.0), alpha=0.0), X, np.zeros(30))
    assert flat.alpha == 0.0, "nothing was tuned, it says"


@pytest.mark.parametrize("alpha", ["loo", [0.1, 0.5]])
@pytest.mark.parametrize("options", [{"hold": "alpha"}, {"grid": {"kernel__sigma": [0.5, 1.0]}}])
def test_an_alpha_that_is_not_tuned_must_be_one_number(alpha, options):
    X, Y, _, _ = data(30, 3, 2)
    with pytest.raises(mc.InvalidInput, match=r"`alpha` must be one number if it is not tuned, got .*grid"):
        tune(KernelRidge(mc.Gaussian(1.0), alpha=alpha), X, Y, **options)
    same = tune(KernelRidge(mc.Gaussian(1.0), alpha=[0.3, 0.3]), X, Y, n_restarts=0, **options)
    assert same.alpha == 0.3


@pytest.mark.parametrize("level", [0.1, 3.3, 1e9 / 7])
@pytest.mark.parametrize("by", ["loo", "evidence"])
def test_constant_targets_with_normalize_y_are_not_tuned_on_rounding(level, by):
    X = data(30)[0]
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 30)
    kernel, y = 1.0 * mc.Gaussian(1.3), np.full(30, level)
    for w in (None, weights):
        found = [
            tune(GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=True), X, y, by=by, sample_weight=w),
            GaussianProcessRegressor(kernel, alpha=0.1, normalize_y=True, tune=by).fit(X, y, w),
        ]
        for model in found:
            assert model.tuning_.kernel == kernel
            assert model.tuning_.alpha == 0.1
            assert "constant" in model.tuning_.notes[0]
            assert np.array_equal(model.predict(X), y)


# -- what is refused in words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [{"alpha": 0.1}, {"alpha": []}, {"alpha": "0.1"}, {"alpha": np.array(0.1)}, {"kernel__sigma": 1.0},
               {"kernel__sigma": []}, {"kernel": mc.Linear()}, {"alpha": None}],
)  # fmt: skip
def test_a_grid_wants_lists(values):
    X, Y, _, _ = data(30)
    with pytest.raises(
        mc.InvalidInput, match=rf"`grid` must hold a list .*'{next(iter(values))}'.*got .*Pass a list, such as"
    ):
        tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid=values)


def test_a_grid_wants_names_and_values_that_can_be_used():
    X, Y, _, _ = data(30)
    with pytest.raises(mc.InvalidInput, match="`grid` must be a dictionary"):
        tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid=[0.1, 1.0])
    with pytest.raises(mc.InvalidInput, match="`grid` must name alpha, `kernel`, or parameters"):
        tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid={3: [1.0]})
    for bad in (-1.0, np.nan, "a"):
        with pytest.raises(mc.InvalidInput, match="`alpha` must be"):
            tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid={"alpha": [1.0, bad]})
    generated = tune(KernelRidge(mc.Gaussian(1.0)), X, Y, grid={"alpha": (10.0**-k for k in range(3))})
    assert generated.tuning_.grid.penalties.tolist() == [1.0, 0.1, 0.01]


def test_folds_may_be_counted_by_numpy():
    X, Y, _, _ = data(40)
    grids = {"alpha": [0.01, 0.1, 1.0]}
    ours, theirs = (tune(KernelRidge(mc.Gaussian(1.0)), X, Y, by=by, grid=grids) for by in (np.int64(5), 5))
    assert ours.tuning_.value == theirs.tuning_.value
    assert ours.tuning_.by == theirs.tuning_.by == "5-fold R²"
    for by in (5.0, True, np.array([5, 5]), None.__class__):
        with pytest.raises(mc.InvalidInput, match="must be a number of folds"):
            tune(KernelRidge(mc.Gaussian(1.0)), X, Y, by=by, grid=grids)
        with pytest.raises(mc.InvalidInput, match="`by` must be"):
            tune(KernelRidge(mc.Gaussian(1.0)), X, Y, by=by)


def test_alpha_zero_in_a_long_grid_is_as_in_a_short_one():
    X, Y, roots, tail = data(20, 2)
    alphas = np.r_[0.0, np.geomspace(1e-3, 10, costs.FACTORS)]
    kernel = mc.Laplacian(1.0)
    points = kernel.prepare(X)
    many = ridge_grid.evaluate_grid([kernel], alphas, points, Y, roots, tail)
    few = ridge_grid.evaluate_grid([kernel], alphas[:3], points, Y, roots, tail)
    np.testing.assert_allclose(many.values[0, :3], few.values[0], rtol=1e-8)
    assert many.values[0, 0] == pytest.approx(brute_loo(kernel(X), Y, 0.0, roots, tail), rel=1e-8)
    singular = ridge_grid.evaluate_grid([mc.Linear()], alphas, points, Y)
    assert np.isnan(singular.values[0, 0])
    assert singular.parameters["alpha"] > 0


@pytest.mark.parametrize("n", [1, 3])
def test_leave_one_out_needs_points_beside_the_tail(n):
    X, Y, _, _ = data(3, 2)
    model = KernelRidge(mc.Gaussian(1.0), fit_intercept=True) if n == 1 else mc.RBFNetwork(centers="all", degree=1)
    for given in (None, {"alpha": [0.1, 1.0]}, {"alpha": np.geomspace(0.1, 1.0, costs.FACTORS)}):
        with pytest.raises(mc.InvalidInput, match=rf"Leave-one-out needs more points .* {n} .*, got {n}\..*evidence"):
            tune(model, X[:n], Y[:n], grid=given)
    assert np.isfinite(tune(model, X[:n], Y[:n], by="evidence").alpha)


@pytest.mark.parametrize("hold", [3, [3], None, [None]])
def test_what_is_held_is_named(hold):
    X, Y, _, _ = data(30)
    with pytest.raises(mc.InvalidInput, match=r"`hold` must name free parameters.*Choose from sigma, alpha"):
        tune(KernelRidge(mc.Gaussian(1.0)), X, Y, hold=hold)


@pytest.mark.parametrize("n_restarts", [-1, 1.5, "two", None, True])
def test_restarts_are_counted(n_restarts):
    X, Y, _, _ = data(30)
    with pytest.raises(mc.InvalidInput, match="`n_restarts` must be a whole number ≥ 0"):
        tune(KernelRidge(mc.Gaussian(1.0)), X, Y, n_restarts=n_restarts)
    with pytest.raises(mc.InvalidInput, match="`n_restarts` must be a whole number ≥ 0"):
        GaussianProcessRegressor(mc.Gaussian(1.0), tune="evidence", n_restarts=n_restarts).fit(X, Y)


def test_random_states():
    X, Y, _, _ = data(30)
    model = KernelRidge(mc.Gaussian(1.0))
    for bad in (-1, "a", 0.5):
        with pytest.raises(mc.InvalidInput, match="`random_state` must be"):
            tune(model, X, Y, random_state=bad)
    for good in (None, 3, np.int64(3), np.random.default_rng(0), np.random.RandomState(0)):
        assert np.isfinite(tune(model, X, Y, random_state=good, n_restarts=1).tuning_.value)


def test_a_factor_inside_of_an_exponential_is_no_variance():
    """exp(c k) with targets of variance 1e6: c stays about what it was, where a factor of the kernel follows them."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), 1e3 * np.random.default_rng(1).normal(size=(30, 1))
    k = 2.0 * mc.exp(3.0 * mc.Linear())
    outer, inner = ranges.ranges(k, k.prepare(X), y)
    assert np.isclose(inner.start, np.log(3.0))
    assert np.isclose(inner.high - inner.low, np.log(1e4))
    assert outer.start != np.log(2.0)


# -- folds of sorted rows, and the baseline ------------------------------------------------------------------------


def test_folds_of_sorted_rows_are_shuffled():
    from sklearn.model_selection import KFold

    X = np.linspace(0, 6, 90)[:, None]
    y = np.sin(X[:, 0])
    w = np.where(X[:, 0] > 3, 2.0, 1.0)
    given = {"by": 3, "grid": {"alpha": [1e-3]}, "sample_weight": w}
    found = tune(KernelRidge(mc.Gaussian(1.0)), X, y, random_state=3, **given).tuning_
    assert found.value > 0.999
    scores = []
    for train, test in KFold(3, shuffle=True, random_state=3).split(X):
        model = KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X[train], y[train], w[train])
        scores.append(model.score(X[test], y[test], w[test]))
    assert found.value == pytest.approx(np.mean(scores), abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_search_that_finds_nothing_says_so(weighted):
    own = np.random.default_rng(0)
    X, y, w = own.normal(size=(40, 3)), own.normal(size=40), own.integers(1, 4, 40).astype(float)
    more = {"sample_weight": w} if weighted else {}
    found = tune(KernelRidge(mc.Gaussian(1.0), fit_intercept=True), X, y, grid={"alpha": [1e-3]}, **more)
    w = w if weighted else np.ones(40)
    others = np.array([np.average(np.delete(y, i), weights=np.delete(w, i)) for i in range(40)])
    assert found.tuning_.baseline == pytest.approx(np.average((y - others) ** 2, weights=w), rel=1e-9)
    assert found.tuning_.beats_baseline is False
    assert "not better than always predicting the mean" in str(found.tuning_)
    good = tune(KernelRidge(mc.Gaussian(1.0)), X, X[:, 0]).tuning_
    assert good.beats_baseline
    assert "always predicting" not in str(good)
    assert np.isnan(tune(KernelRidge(mc.Gaussian(1.0)), X, y, by="evidence").tuning_.baseline)


# -- one record, and folds that know nothing of each other -------------------------------------------------------------


def test_rules_are_resolved_on_the_training_rows_of_each_fold():
    from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

    X = np.linspace(0, 1, 60)[:, None]
    X[50:] += 100.0  # far rows, which widen the median of all
    y = np.sin(6 * X[:, 0])
    folds = [(np.arange(50), np.arange(50, 60)), (np.arange(25), np.arange(25, 50))]
    for cv in (folds, KFold(3), TimeSeriesSplit(3), list(GroupKFold(3).split(X, y, np.arange(60) // 10))):
        tuned = tune(KernelRidge(), X, y, cv=cv, grid={"alpha": [0.01, 1.0]})
        pairs = cv if isinstance(cv, list) else list(cv.split(X))
        for f, (train, test) in enumerate(pairs):
            for j, alpha in enumerate([0.01, 1.0]):
                model = KernelRidge(mc.median_gaussian, alpha=alpha).fit(X[train], y[train])
                score = model.score(X[test], y[test])
                assert tuned.tuning_.grid.scores[0, j, f] == pytest.approx(score, rel=1e-6)
        assert tuned.kernel == mc.median_gaussian(X)


def test_every_search_leaves_its_trials():
    X, Y, _, _ = data(60)
    y = Y[:, 0]
    folds = tune(KernelRidge(mc.Gaussian(1.0)), X, y, by=3, grid={"alpha": [0.1, 1.0], "kernel__sigma": [0.5, 2.0]})
    gradient = tune(KernelRidge(mc.Gaussian(1.0)), X, y)
    machine = tune(mc.SVR(mc.Gaussian(1.0)), X, y, cv=3, grid={"C": [0.1, 1.0]})
    for model in (folds, gradient, machine):
        tuned = model.tuning_
        trials = tuned.trials
        assert trials.best.score == tuned.value
        assert trials.ranked()[0].score == pytest.approx(tuned.value, rel=1e-3)
        assert all(np.isfinite(trial.score) for trial in trials if trial.folds)
        assert "alpha" in trials.best.parameters or "C" in trials.best.parameters
    assert len(folds.tuning_.trials) == 4
    assert {trial.folds for trial in folds.tuning_.trials} == {3}
    scores = folds.tuning_.grid.scores[folds.tuning_.grid.best]
    assert folds.tuning_.trials.best.standard_error == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
    assert gradient.tuning_.trials.best.parameters["sigma"] == pytest.approx(gradient.kernel.sigma)
    assert len(gradient.tuning_.trials) == gradient.tuning_.evaluations + 1
    with pytest.raises(AttributeError, match="not tuned"):
        _ = machine.tuning_.alpha


@pytest.mark.thorough
def test_the_width_of_a_column_of_whole_numbers_is_not_below_half_their_distance():
    rng = np.random.default_rng(0)
    x, levels = rng.integers(0, 10, 200), rng.normal(size=10)
    X = np.column_stack([x, rng.normal(size=200)])
    y = levels[x] + 0.05 * rng.normal(size=200)
    for scale in (1.0, 0.01):
        tuned = mc.tune(mc.KernelRidge(mc.Gaussian([scale, 1.0])), X * [scale, 1.0], y)
        assert tuned.kernel_.sigma[0] >= 0.5 * scale * (1 - 1e-9)
    binary = X.copy()
    binary[:, 0] = x > 4
    for leaf, bounds in ((mc.Gaussian, [0.5, 0.0]), (mc.Laplacian, [1.0, 0.0]), (mc.Additive, [0.5, 0.0])):
        kernel = leaf([1.0, 1.0])
        assert np.exp(narrowest(kernel, kernel.prepare(X))) == pytest.approx(bounds)
        assert np.exp(narrowest(kernel, kernel.prepare(binary))) == pytest.approx([0.0, 0.0])


def test_steps_of_values_do_not_depend_on_the_order_of_the_rows():
    X = np.arange(4000.0)[:, None] % 10
    k = mc.Gaussian(1.0)
    assert np.exp(narrowest(k, k.prepare(X))) == pytest.approx([0.5])
