"""RBF networks and interpolation: the bordered system, SciPy's interpolant, and the identities of the theory."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import RBFInterpolator as SciPy
from sklearn.base import clone

import mercer as mc
from mercer.errors import InvalidInput
from mercer.kernels.vectors.splines import Multiquadric, Polyharmonic, ThinPlate
from mercer.models.least_squares.rbf_interpolator import NAMES, RBFInterpolator
from mercer.models.least_squares.rbf_network import RBFNetwork
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.tail import Monomials, monomials
from mercer.solvers.eigen import Eigendecomposition
from mercer.solvers.saddle import Projected, SaddleFactor

N = 24


def data(n=N, d=2, t=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    Y = np.stack([np.sin(3 * X.sum(axis=1) + j) for j in range(t)], axis=1) + 0.1 * rng.normal(size=(n, t))
    return X, Y, rng.uniform(-1.2, 1.2, size=(7, d))


# -- the bordered system -----------------------------------------------------------------------------------------------


def bordered(k, X, Y, alpha, w, degree):
    """The problem, the whole matrix M, and the tail's functions."""
    points = k.prepare(X)
    basis = Monomials.around(points, degree) if degree >= 0 else None
    P = None if basis is None else basis(points)
    problem = LeastSquares(mc.gram.of(k, X), Y, np.full(Y.shape[1], alpha), None if w is None else np.sqrt(w), P)
    p = 0 if P is None else P.shape[1]
    M = np.zeros((len(X) + p, len(X) + p))
    M[: len(X), : len(X)] = k(X) + alpha * np.diag(1 / (np.ones(len(X)) if w is None else w))
    if P is not None:
        M[: len(X), len(X) :], M[len(X) :, : len(X)] = P, P.T
    return problem, M, basis


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize(
    ("k", "degree"), [(ThinPlate(), 1), (Polyharmonic(1), 0), (Polyharmonic(5), 2), (mc.Matern(1.0), -1)], ids=repr
)
def test_the_factor_answers_as_the_inverse_does(k, degree, alpha, weighted):
    X, Y, Z = data()
    w = np.random.default_rng(1).uniform(0.5, 2, N) if weighted else None
    problem, M, basis = bordered(k, X, Y, alpha, w, degree)
    inverse = np.linalg.inv(M)
    Pz = None if basis is None else basis(k.prepare(Z))
    rows = np.hstack([k(Z, X), np.empty((len(Z), 0)) if Pz is None else Pz]) @ inverse
    for definite in (True, False):
        factor = SaddleFactor(problem.matrix(np.float64), alpha, problem.roots, problem.tail, definite=definite)
        c, b = factor.solve(Y)
        whole = inverse[:, :N] @ Y
        np.testing.assert_allclose(c, whole[:N], rtol=1e-6, atol=1e-7)
        if b is not None:
            np.testing.assert_allclose(b, whole[N:], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(factor.inverse(), inverse[:N, :N], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(factor.diagonal(), np.diagonal(inverse)[:N], rtol=1e-6)
        np.testing.assert_allclose(factor.smoother(k(Z, X), Pz), rows[:, :N], rtol=1e-6, atol=1e-7)
        trace = np.trace(k(X) @ inverse[:N, :N]) + (0 if b is None else np.trace(problem.tail @ inverse[N:, :N]))
        assert factor.degrees_of_freedom == pytest.approx(trace, rel=1e-6)


def test_the_condition_number_is_estimated_within_its_usual_factor():
    k = ThinPlate()
    X, Y, _ = data()
    problem, _, _ = bordered(k, X, Y, 1e-3, None, 1)
    Q = np.linalg.qr(problem.tail, mode="complete")[0][:, 3:]
    exact = np.linalg.cond(Q.T @ (k(X) + 1e-3 * np.eye(N)) @ Q, 1)
    assert exact / 10 < SaddleFactor.of(problem, 1e-3).condition < 10 * exact


def test_the_projected_problem_has_the_same_coefficients_and_residuals():
    k = ThinPlate()
    X, Y, _ = data()
    w = np.random.default_rng(1).uniform(0.5, 2, N)
    problem, _, _ = bordered(k, X, Y, 0.2, w, 1)
    factor = SaddleFactor.of(problem, 0.2)
    spectral = Eigendecomposition(Projected(problem.gram, problem.y, problem.alpha, problem.roots, problem.tail)).at(
        0.2
    )
    np.testing.assert_allclose(spectral.solve(Y)[0], factor.solve(Y)[0], atol=1e-9)
    np.testing.assert_allclose(spectral.leave_one_out(Y), factor.leave_one_out(Y), atol=1e-9)


def test_repeated_points_are_named():
    X, Y, _ = data()
    X[17] = X[4]
    problem, _, _ = bordered(ThinPlate(), X, Y, 0.0, None, 1)
    with pytest.raises(InvalidInput, match=r"rows 4 and 17.*raise alpha"):
        SaddleFactor.of(problem, 0.0)
    with pytest.raises(np.linalg.LinAlgError):  # it is that too
        SaddleFactor.of(problem, 0.0)
    SaddleFactor.of(problem, 1e-3)


@pytest.mark.parametrize(
    ("X", "degree", "message"),
    [
        (np.eye(2), 1, r"only 2\. Use degree 0"),
        (np.outer(np.arange(6.0), [1.0, 2.0]) + 1e6, 1, r"rank 2.*line.*Use degree 0"),
        (np.stack([np.cos(np.arange(12.0)), np.sin(np.arange(12.0))], axis=1), 2, r"rank 5.*curve.*Use degree 1"),
    ],
)
def test_points_that_do_not_determine_a_polynomial(X, degree, message):
    points = ThinPlate().prepare(X)
    with pytest.raises(InvalidInput, match=message):
        Monomials.around(points, degree).require_unisolvent(points)
    with pytest.raises(np.linalg.LinAlgError):
        RBFInterpolator(X, X[:, 0], degree=degree, kernel="linear") if len(X) > 2 else RBFNetwork(
            ThinPlate(), centers="all"
        ).fit(X, X[:, 0])


def test_monomials():
    X = np.random.default_rng(0).normal(size=(4, 3))
    powers = SciPy(np.random.default_rng(1).normal(size=(30, 3)), np.zeros(30), degree=3).powers
    np.testing.assert_allclose(monomials(X, 3), np.prod(X[:, None] ** powers, axis=2), rtol=1e-13)
    assert monomials(X, -1).shape == (4, 0)


# -- SciPy's interpolant -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(NAMES))
def test_equal_to_scipy(name, d):
    X, Y, Z = data(40, d, 2, seed=d)
    if d == 1:
        X = np.linspace(-4, 4, 40)[:, None] + 0.03 * X  # points that stay apart
    values = Y.reshape(40, 1, 2)
    for degree in (None, -1, 0, 1, 2):
        for neighbors in (None, 14):
            for smoothing in (0.0, 0.3, np.linspace(0.01, 1.0, 40)):
                args = {"kernel": name, "epsilon": 2.5, "degree": degree, "neighbors": neighbors}
                args["smoothing"] = smoothing
                with warnings.catch_warnings(record=True) as theirs:
                    warnings.simplefilter("always")
                    expected = SciPy(X, values, **args)
                with warnings.catch_warnings(record=True) as ours:
                    warnings.simplefilter("always")
                    found = RBFInterpolator(X, values, **args)
                assert [w.category for w in ours] == [w.category for w in theirs]
                reference = expected(Z)
                np.testing.assert_allclose(found(Z), reference, atol=1e-8 * np.abs(reference).max(), err_msg=str(args))


def test_the_attributes_of_scipy():
    X, Y, _ = data()
    args = {"neighbors": 9, "smoothing": 0.5, "kernel": "cubic", "degree": 2}
    ours, theirs = RBFInterpolator(X, Y, **args), SciPy(X, Y, **args)
    for name in ("y", "d", "smoothing", "powers"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("d_shape", "neighbors", "kernel", "epsilon"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert np.dtype(ours.d_dtype) == np.dtype(theirs.d_dtype)


@pytest.mark.parametrize("neighbors", [None, 1, 10])
def test_complex_values_lists_and_pickles(neighbors):
    X, Y, Z = data()
    values = Y[:, 0] + 1j * Y[:, 1]
    degree = 0 if neighbors == 1 else 1
    ours = RBFInterpolator(X.tolist(), values, neighbors=neighbors, kernel="linear", degree=degree)
    expected = SciPy(X, values, neighbors=neighbors, kernel="linear", degree=degree)(Z)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(ours))(Z.tolist()), expected, atol=1e-10)
    assert ours(np.empty((0, 2))).shape == (0,)
    assert ours(Z).dtype == np.complex128


@pytest.mark.parametrize("neighbors", [None, 12])
def test_kernels_of_the_library(neighbors):
    X, Y, Z = data()
    by_name = RBFInterpolator(X, Y, kernel="gaussian", epsilon=0.5, degree=-1, neighbors=neighbors, smoothing=1e-3)
    by_kernel = RBFInterpolator(
        X, Y, kernel=mc.Gaussian.from_gamma(0.25), degree=-1, neighbors=neighbors, smoothing=1e-3
    )
    np.testing.assert_allclose(by_kernel(Z), by_name(Z), atol=1e-9)
    scaled = RBFInterpolator(X, Y, kernel=Polyharmonic(3, sigma=[1.0, 4.0]), neighbors=neighbors)
    expected = RBFInterpolator(X / [1.0, 4.0], Y, kernel="cubic")(Z / [1.0, 4.0])
    if neighbors is None:
        np.testing.assert_allclose(scaled(Z), expected, atol=1e-9)
    composed = RBFInterpolator(X, Y, kernel=mc.Matern(1.0) + mc.Linear(), neighbors=neighbors)
    np.testing.assert_allclose(composed(X), Y, atol=1e-8)


def test_an_ill_conditioned_interpolant_still_interpolates():
    X, Y, _ = data(60)
    f = RBFInterpolator(X, Y, kernel="gaussian", epsilon=0.3)  # singular to rounding: no Cholesky factor
    assert f.condition > 1e15
    residual = np.abs(f(X) - Y).max()
    assert residual < 10 * max(1e-3, np.abs(SciPy(X, Y, kernel="gaussian", epsilon=0.3)(X) - Y).max())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "gaussian"}, "`epsilon` must be specified"),
        ({"kernel": "multiquadric"}, "`epsilon` must be specified"),
        ({"kernel": "sinc"}, "`kernel` must be one of"),
        ({"degree": -2}, "`degree` must be at least -1"),
        ({"degree": 6}, "At least 28 data points are required"),
        ({"neighbors": 2}, "At least 3 data points are required"),
        ({"neighbors": 0}, "`neighbors` must be"),
        ({"smoothing": [1.0]}, "Expected `smoothing`"),
        ({"smoothing": -1.0}, "`smoothing` must be"),
        ({"y": np.zeros(N)}, "`y` must be a 2-dimensional array"),
        ({"d": np.zeros(3)}, "first axis of `d`"),
        ({"d": np.full(N, np.nan)}, "`d` must be finite"),
        ({"kernel": mc.Epanechnikov(1.0)}, "positive definite"),
        ({"kernel": mc.Gaussian(1.0), "epsilon": 1.0}, "`epsilon` is for kernels that are passed by name"),
        ({"kernel": "gaussian", "epsilon": 0.0}, "`epsilon` must be a number > 0"),
    ],
)
def test_bad_arguments(change, message):
    X, Y, _ = data()
    with pytest.raises(ValueError, match=message):
        RBFInterpolator(**({"y": X, "d": Y} | change))


def test_bad_queries_and_degenerate_neighbourhoods():
    X, Y, Z = data()
    with pytest.raises(InvalidInput, match="second axis of `x`"):
        RBFInterpolator(X, Y)(Z[:, :1])
    grid = np.stack(np.meshgrid(np.arange(9.0), [0.0, 5.0]), axis=-1).reshape(-1, 2)
    with pytest.raises(np.linalg.LinAlgError, match="monomials of degree 1"):
        RBFInterpolator(grid, grid[:, 0], neighbors=3)([[4.01, 0.0]])
    twice = np.concatenate([X, X[:1]])
    with pytest.raises(np.linalg.LinAlgError, match="rows 0 and 24"):
        RBFInterpolator(twice, twice[:, 0])


# -- networks: the identities ------------------------------------------------------------------------------------------


def test_all_centres_under_the_norm_of_the_space_is_kernel_ridge():
    X, Y, Z = data()
    k, w = mc.Gaussian(0.7), np.random.default_rng(2).uniform(0.2, 3, N)
    for alpha in (1e-3, 0.5):
        expected = k(Z, X) @ np.linalg.solve(k(X) + alpha * np.diag(1 / w), Y)
        model = RBFNetwork(k, centers="all", alpha=alpha).fit(X, Y, w)
        np.testing.assert_allclose(model.predict(Z), expected, atol=1e-9)
        np.testing.assert_allclose(model.coef_, np.linalg.solve(k(X) + alpha * np.diag(1 / w), Y), atol=1e-6)
        given = RBFNetwork(k, centers=X, alpha=alpha).fit(X, Y, w)  # the same by explicit features
        np.testing.assert_allclose(given.predict(Z), expected, atol=1e-7)
    ridge = mc.KernelRidge(k, alpha=0.5, fit_intercept=True).fit(X, Y, w)
    with_intercept = RBFNetwork(k, centers="all", alpha=0.5, degree=0).fit(X, Y, w)
    np.testing.assert_allclose(with_intercept.predict(Z), ridge.predict(Z), atol=1e-9)
    np.testing.assert_allclose(with_intercept.loo_predictions_, ridge.loo_predictions_, atol=1e-9)


@pytest.mark.parametrize("k", [mc.Gaussian(0.7), mc.Laplacian(1.0), mc.Epanechnikov(1.5)], ids=repr)
def test_the_penalty_on_weights_is_ridge_on_the_basis(k):
    X, Y, Z = data()
    K = k(X)
    w = np.linalg.solve(K.T @ K + 0.3 * np.eye(N), K.T @ Y)
    model = RBFNetwork(k, centers="all", alpha=0.3, penalty="ridge").fit(X, Y)
    np.testing.assert_allclose(model.coef_, w, atol=1e-9)
    np.testing.assert_allclose(model.predict(Z), k(Z, X) @ w, atol=1e-9)


@pytest.mark.parametrize("k", [ThinPlate(), Polyharmonic(1), Polyharmonic(5), Multiquadric(0.8)], ids=repr)
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_splines_on_all_points_are_scipys_interpolants(k, alpha):
    X, Y, Z = data()
    name = {"ThinPlate": "thin_plate_spline", "Multiquadric": "multiquadric"}.get(type(k).__name__)
    name = name or {1: "linear", 5: "quintic"}[k.degree]
    expected = SciPy(X, Y, kernel=name, smoothing=alpha, epsilon=1 / k.sigma)
    model = RBFNetwork(k, centers="all", alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(model.predict(Z), expected(Z), atol=1e-8)
    assert model.tail_.basis.degree == k.order - 1
    if alpha:  # on centres that happen to be all points: another way to the same function
        given = RBFNetwork(k, centers=X, alpha=alpha).fit(X, Y)
        np.testing.assert_allclose(given.predict(Z), expected(Z), atol=1e-7)
        higher = RBFNetwork(k, centers=X, alpha=alpha, degree=k.order).fit(X, Y)
        dual = RBFNetwork(k, centers="all", alpha=alpha, degree=k.order).fit(X, Y)
        np.testing.assert_allclose(higher.predict(Z), dual.predict(Z), atol=1e-7)
    else:
        np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)
        assert "interpolation of 24 points; condition number" in model.status_
        assert "the nearest two, rows" in model.status_


@pytest.mark.parametrize("k", [mc.Gaussian(0.4), mc.Laplacian(0.4), mc.Tricube(0.9)], ids=repr)
def test_the_normalised_basis_with_weights_t_is_nadaraya_watson(k):
    X, Y, Z = data()
    model = RBFNetwork(k, centers="all", normalized=True).fit(X, Y)
    H, W = model.basis(Z), k(Z, X)
    near = W.sum(axis=1) > 0
    np.testing.assert_allclose(H[near] @ Y, W[near] @ Y / W[near].sum(axis=1, keepdims=True), rtol=1e-10)
    far = model.basis(Z + 1e6)
    np.testing.assert_allclose(far.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(model.predict(Z + 1e6)).all()
    H = model.basis(X)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(H.T @ H + 0.01 * np.eye(N), H.T @ Y), atol=1e-9)


def test_outside_a_compact_weight_the_nearest_centre_decides():
    model = RBFNetwork(mc.Epanechnikov(0.5), normalized=True, alpha=1e-9).fit([[0.0], [2.0]], [1.0, 3.0])
    np.testing.assert_allclose(model.predict([[0.9], [1.2], [100.0]]), [1.0, 3.0, 3.0], atol=1e-6)


# -- what every network does -------------------------------------------------------------------------------------------

NETWORKS = {
    "all": RBFNetwork(mc.Gaussian(0.7), centers="all", alpha=0.05),
    "all, interpolation": RBFNetwork(mc.Matern(0.7), centers="all", alpha=0.0),
    "all, intercept": RBFNetwork(mc.Gaussian(0.7), centers="all", alpha=0.05, degree=0),
    "thin plate": RBFNetwork(ThinPlate(), centers="all", alpha=0.05),
    "thin plate, interpolation": RBFNetwork(ThinPlate(), centers="all", alpha=0.0),
    "cubic, given": RBFNetwork(Polyharmonic(3), centers=np.random.default_rng(5).uniform(-1, 1, (8, 2)), alpha=0.05),
    "given": RBFNetwork(mc.Gaussian(0.7), centers=np.random.default_rng(5).uniform(-1, 1, (8, 2)), alpha=0.05),
    "least squares": RBFNetwork(mc.Gaussian(0.7), centers=np.random.default_rng(5).uniform(-1, 1, (8, 2)), alpha=0.0),
    "ridge": RBFNetwork(mc.Gaussian(0.7), centers=[[0.0, 0.0], [0.5, -0.5]], penalty="ridge", degree=1, alpha=0.05),
    "normalised": RBFNetwork(
        mc.Gaussian(0.3), centers=np.random.default_rng(5).uniform(-1, 1, (8, 2)), normalized=True, alpha=0.05
    ),
    "neighbours": RBFNetwork(ThinPlate(), neighbors=9, alpha=0.05),
}


@pytest.fixture(params=NETWORKS, ids=str)
def network(request):
    return clone(NETWORKS[request.param])


def test_leave_one_out_is_brute_force(network):
    X, Y, _ = data()
    w = np.random.default_rng(3).uniform(0.5, 2, N)
    expected = np.empty_like(Y)
    for i in range(N):
        rest = np.arange(N) != i
        expected[i] = clone(network).fit(X[rest], Y[rest], w[rest]).predict(X[[i]])[0]
    np.testing.assert_allclose(network.fit(X, Y, w).loo_predictions_, expected, atol=1e-6)


def test_a_weight_is_a_repetition_and_zero_leaves_out(network):
    X, Y, Z = data()
    times = np.random.default_rng(4).integers(0, 4, N)
    if network.alpha == 0 and isinstance(network.centers, str) and isinstance(network.kernel, ThinPlate):
        times = np.minimum(times, 1)  # repeated points have no interpolant
    weighted = network.fit(X, Y, times)
    repeated = clone(network).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), atol=1e-6)


@pytest.mark.parametrize("how", ["kmeans", "random", "pivoted"])
@pytest.mark.parametrize("k", [None, ThinPlate()], ids=repr)
def test_chosen_centres_do_not_depend_on_repetition_or_order(how, k):
    X, Y, Z = data(60)
    times = np.random.default_rng(4).integers(0, 4, 60)
    model = RBFNetwork(k, n_centers=9, centers=how).fit(X, Y, times)
    order = np.random.default_rng(6).permutation(times.sum())
    repeated = clone(model).fit(np.repeat(X, times, axis=0)[order], np.repeat(Y, times, axis=0)[order])
    assert model.centers_.shape == (9, 2)
    np.testing.assert_allclose(model.predict(Z), repeated.predict(Z), atol=1e-7)


def test_intervals_are_jackknife_plus(network):
    X, Y, Z = data()
    model = network.fit(X, Y)
    if model.neighbors is not None:
        with pytest.raises(InvalidInput, match="one network"):
            model.predict_interval(Z)
        return
    others = np.stack([clone(network).fit(np.delete(X, i, 0), np.delete(Y, i, 0)).predict(Z) for i in range(N)])
    spread = np.abs(Y - model.loo_predictions_)[:, None]
    k = int(np.ceil(0.8 * (N + 1)))
    expected = np.sort(others - spread, axis=0)[N - k], np.sort(others + spread, axis=0)[k - 1]
    np.testing.assert_allclose(model.predict_interval(Z, coverage=0.8), np.stack(expected, axis=-1), atol=1e-6)


def test_shapes_dtypes_pickles(network):
    X, Y, Z = data()
    model = network.fit(X, Y[:, 0])
    assert model.predict(Z).shape == (7,)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(Z), model.predict(Z))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).loo_predictions_, model.loo_predictions_, atol=1e-12)
    small = clone(network).fit(X.astype(np.float32), Y[:, 0])
    assert small.predict(Z.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(small.predict(Z.astype(np.float32)), model.predict(Z), atol=2e-3)


def test_one_alpha_per_target(network):
    X, Y, Z = data()
    alphas = [0.01, 1.0]
    both = clone(network).set_params(alpha=alphas).fit(X, Y)
    for t, alpha in enumerate(alphas):
        alone = clone(network).set_params(alpha=alpha).fit(X, Y[:, t])
        np.testing.assert_allclose(both.predict(Z)[:, t], alone.predict(Z), atol=1e-9)
        np.testing.assert_allclose(both.loo_predictions_[:, t], alone.loo_predictions_, atol=1e-9)


@pytest.mark.parametrize("name", ["all", "thin plate", "given", "cubic, given", "normalised"])
def test_alpha_by_leave_one_out_is_no_worse_than_any_of_a_grid(name):
    X, Y, _ = data(60, t=1, seed=3)
    y = Y[:, 0]
    network = NETWORKS[name]
    chosen = clone(network).set_params(alpha="loo").fit(X, y)
    grid = [clone(network).set_params(alpha=a).fit(X, y).loo_predictions_ for a in np.logspace(-4, 2, 25)]
    best = min(((y - p) ** 2).mean() for p in grid)
    assert ((y - chosen.loo_predictions_) ** 2).mean() <= best * (1 + 1e-6)
    assert chosen.alpha_ > 0


def test_the_gradient_of_the_function_includes_its_tail():
    X, Y, Z = data()
    f = RBFNetwork(ThinPlate(), centers="all", alpha=0.1).fit(X, Y[:, 0]).function_
    h = 1e-6
    slopes = np.stack([(f(Z + h * e) - f(Z - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(f.gradient(Z), slopes, atol=1e-6)


def test_local_fits_are_those_of_scipy():
    X, Y, Z = data(80)
    model = RBFNetwork(Polyharmonic(3), neighbors=15, alpha=0.1).fit(X, Y)
    np.testing.assert_allclose(model.predict(Z), SciPy(X, Y, kernel="cubic", neighbors=15, smoothing=0.1)(Z), atol=1e-8)
    w = np.random.default_rng(7).uniform(0.2, 3, 80)
    everything = RBFNetwork(Polyharmonic(3), neighbors=1000, alpha=0.1).fit(X, Y, w)
    whole = RBFNetwork(Polyharmonic(3), centers="all", alpha=0.1).fit(X, Y, w)
    np.testing.assert_allclose(everything.predict(Z), whole.predict(Z), atol=1e-8)


def test_intervals_cover():
    covered = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Z = rng.uniform(-3, 3, size=(200, 1)), rng.uniform(-3, 3, size=(500, 1))
        y, z = (np.sin(2 * V[:, 0]) + 0.3 * rng.normal(size=len(V)) for V in (X, Z))
        ends = RBFNetwork(n_centers=50, centers="kmeans").fit(X, y).predict_interval(Z, coverage=0.9)
        covered.append(np.mean((ends[:, 0] <= z) & (z <= ends[:, 1])))
    assert 0.88 < np.mean(covered) < 0.93


def test_a_singular_interpolation_is_diagnosed():
    X, Y, _ = data(50)
    wide = RBFNetwork(mc.Gaussian(30.0), centers="all", alpha=0.0).fit(X, Y)
    assert wide.rank_ < 50
    assert wide.condition_ == np.inf
    assert f"rank {wide.rank_} of 50, the solution of minimum norm" in wide.status_
    assert "raise alpha" in wide.status_
    X[9] = X[3]
    model = RBFNetwork(mc.Gaussian(0.2), centers="all", alpha=0.0).fit(X, Y)
    assert "rows 3 and 9, are 0 apart" in model.status_
    with pytest.raises(InvalidInput, match="rows 3 and 9"):
        RBFNetwork(ThinPlate(), centers="all", alpha=0.0).fit(X, Y)


def test_centres_at_distance_one_are_not_taken_for_the_same():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    model = RBFNetwork(ThinPlate(), alpha=1e-8).fit(grid, np.sin(grid[:, 0]))  # r² log r is 0 at r = 1
    assert len(model.centers_) == 16
    np.testing.assert_allclose(model.predict(grid), np.sin(grid[:, 0]), atol=1e-6)


def test_sparse_rows_and_other_objects():
    X, Y, Z = data(50)
    for how in ("kmeans", "random", "all"):
        n_centers = None if how == "all" else 7
        dense = RBFNetwork(mc.Gaussian(0.7), centers=how, n_centers=n_centers).fit(X, Y)
        sparse = RBFNetwork(mc.Gaussian(0.7), centers=how, n_centers=n_centers).fit(sp.csr_array(X), Y)
        np.testing.assert_allclose(sparse.predict(sp.csr_array(Z)), dense.predict(Z), atol=1e-8)
    sets = [{1}, {1, 2}, {2, 3}, {4}, {1, 4}]
    model = RBFNetwork(mc.Intersection(), centers="all", alpha=0.1).fit(sets, [1.0, 2.0, 2.0, 1.0, 2.0])
    K = mc.Intersection()(sets)
    np.testing.assert_allclose(model.predict(sets), K @ np.linalg.solve(K + 0.1 * np.eye(5), [1.0, 2, 2, 1, 2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "l1"}, "`penalty` must be"),
        ({"normalized": True, "penalty": "rkhs"}, r"penalty='rkhs' needs.*normalised.*‖w‖²"),
        ({"kernel": mc.Tricube(1.0), "penalty": "rkhs"}, r"penalty='rkhs' needs.*Tricube"),
        ({"kernel": mc.Linear(), "normalized": True}, "functions ≥ 0"),
        ({"kernel": ThinPlate(), "normalized": True}, "functions ≥ 0"),
        ({"kernel": ThinPlate(), "degree": 0}, "`degree` must be a whole number ≥ 1"),
        ({"degree": 0.5}, "`degree` must be a whole number"),
        ({"centers": "grid"}, "`centers` must be one of"),
        ({"centers": "all", "n_centers": 3}, "`n_centers` is for centres that are chosen"),
        ({"n_centers": 0}, "n_centers"),
        ({"centers": np.zeros((2, 5))}, "same columns"),
        ({"alpha": -1.0}, "`alpha` must be"),
        ({"alpha": "cv"}, "'loo'"),
        ({"neighbors": 5, "alpha": "loo"}, "`neighbors` requires the penalty"),
        ({"neighbors": 0}, "`neighbors` must be a whole number"),
        ({"kernel": "gaussian"}, "`kernel` must be a kernel"),
        ({"kernel": ThinPlate(), "centers": np.zeros((1, 2))}, "Use degree 0"),
        ({"kernel": mc.FromFunction(lambda x, z: -float(x @ z)), "centers": "all"}, "positive semidefinite"),
        (
            {"kernel": mc.FromFunction(lambda x, z: -float(x @ z)), "n_centers": 5, "centers": "random"},
            "positive semidefinite",
        ),
    ],
)
def test_bad_parameters(change, message):
    X, Y, _ = data()
    with pytest.raises(InvalidInput, match=message):
        RBFNetwork(**change).fit(X, Y)


def test_leave_one_out_that_does_not_exist():
    model = RBFNetwork(ThinPlate(), centers="all", alpha=0.1).fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, 2.0, 4.0])
    np.testing.assert_allclose(model.predict([[1.0, 1.0]]), [5.0])
    with pytest.raises(InvalidInput, match="Leave-one-out needs"):
        _ = model.loo_predictions_


def test_parameters_reach_the_function():
    model = RBFNetwork(Polyharmonic(3)).set_params(kernel__degree=5, alpha=0.5)
    assert model.kernel == Polyharmonic(5)
    assert clone(model).kernel is model.kernel


def test_infinitely_many_neighbours_are_all_of_them():
    """As for SciPy."""
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=(4, 2))
    model = mc.RBFInterpolator(X, y, neighbors=np.inf)
    assert model.neighbors == 12
    assert model(Z) == pytest.approx(SciPy(X, y, neighbors=np.inf)(Z), rel=1e-9)
    with pytest.raises(mc.InvalidInput, match="neighbors"):
        mc.RBFInterpolator(X, y, neighbors=-np.inf)
