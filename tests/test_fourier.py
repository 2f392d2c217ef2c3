"""Grids of frequencies: the transforms, the kernel's error, least squares on them, and the function that results."""

from __future__ import annotations

import numpy as np
import pytest

import mercer as mc
from mercer.errors import InvalidInput
from mercer.features.nonuniform import Frequencies
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.trigonometric import FourierFunction
from mercer.solvers import auto, costs, fourier

GRIDS = {1: (100,), 2: (20, 13), 3: (5, 8, 6)}


def data(n=400, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    y = np.column_stack([np.sin(2 * X).sum(axis=1), 5 + np.cos(X[:, 0])]) + 0.1 * rng.normal(size=(n, 2))
    return X, y, rng


def exponentials(grid, X):
    """exp(−2πi …) at every stored frequency and point, from the definition."""
    phase = sum(axis[..., None] * (X[:, k] - grid.centre[k]) for k, axis in enumerate(grid.axes()))
    return np.exp(-2j * np.pi * phase)


def grid_of(d):
    return Frequencies(np.full(d, 2.0), np.linspace(0.05, 0.06, d), GRIDS[d])


# -- transforms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sums_over_points_are_those_of_the_definition(d, tol):
    rng = np.random.default_rng(d)
    X, V, grid = rng.uniform(-30, 40, (200, d)), rng.normal(size=(200, 2)), grid_of(d)  # beyond the period, too
    naive = np.moveaxis(exponentials(grid, X) @ V, -1, 0)
    error = np.abs(grid.to_grid(X, V, tol) - naive).max()
    assert error <= tol * np.abs(V).sum(axis=0).max()
    if tol > 1e-12:
        assert error > 0  # a window as wide as possible whatever tol would be slow
    single = X.astype(np.float32)
    naive = np.moveaxis(exponentials(grid, single.astype(np.float64)) @ V, -1, 0)
    assert np.abs(grid.to_grid(single, V, tol) - naive).max() <= tol * np.abs(V).sum(axis=0).max()


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_at_points_are_those_of_the_definition(d, tol):
    rng = np.random.default_rng(d)
    X, grid = rng.uniform(-30, 40, (200, d)), grid_of(d)
    C = rng.normal(size=(2, *grid.shape)) + 1j * rng.normal(size=(2, *grid.shape))
    C[..., 0] += np.conj(np.flip(C[..., 0], axis=tuple(range(1, d))))  # c₋ⱼ is the conjugate of cⱼ
    twice = np.where(np.arange(grid.shape[-1]) > 0, 2.0, 1.0)
    naive = ((C * twice).reshape(2, -1) @ np.conj(exponentials(grid, X)).reshape(-1, len(X))).real.T
    error = np.abs(grid.from_grid(X, C, tol) - naive).max()
    assert error <= tol * np.abs(C * twice).sum(axis=tuple(range(1, d + 1))).max()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_threads_share_the_points(monkeypatch, d):
    rng = np.random.default_rng(d)
    X, V, grid = rng.uniform(0, 10, (5000, d)), rng.normal(size=(5000, 1)), grid_of(d)
    one = grid.to_grid(X, V)
    monkeypatch.setenv("MERCER_NUM_THREADS", "3")
    first, second = grid.to_grid(X, V), grid.to_grid(X, V)
    assert np.array_equal(first, second)
    np.testing.assert_allclose(first, one, atol=1e-12 * np.abs(V).sum())
    values = grid.from_grid(X, one)
    monkeypatch.setenv("MERCER_NUM_THREADS", "1")
    assert np.array_equal(values, grid.from_grid(X, one))


def test_a_grid_is_checked():
    with pytest.raises(InvalidInput, match="one to three columns"):
        Frequencies(np.zeros(1), np.zeros(1), (3,))


# -- the kernel --------------------------------------------------------------------------------------------------------

KERNELS = [
    mc.Gaussian(1.0),
    mc.Gaussian([0.5, 2.0]),
    mc.Matern(1.0, nu=0.5),
    mc.Matern([2.0, 1.0], nu=1.5),
    mc.Matern(1.0, nu=2.5),
    mc.Matern(2.0, nu=4.2),
    mc.Laplacian(1.5),
    2.0 * mc.Gaussian(0.7) + mc.Matern(1.0, nu=3.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_kernel_is_within_the_stated_bound(kernel):
    rough = kernel in (KERNELS[2], KERNELS[6])  # in two columns their grids would be large
    X = data(100, 1 if rough else 2)[0]
    for tol in (1e-2, 1e-3) if rough or kernel == KERNELS[3] else (1e-2, 1e-4, 1e-6):
        grid = mc.gram.of(kernel, X).fourier(tol)
        corners = np.vstack([X.min(axis=0) - 0.999 * grid.reach, X.max(axis=0) + 0.999 * grid.reach])
        Z = np.vstack([X, corners])
        some = [int(X[:, 0].argmin()), int(X[:, 0].argmax()), 2]
        sums = grid.frequencies.to_grid(X[some], np.eye(3), 1e-13)
        approximation = grid.frequencies.from_grid(Z, sums * grid.roots**2, 1e-13)
        error = np.abs(approximation - kernel(Z, X[some])).max() / kernel.diag(X[:1])[0]
        assert 1e-3 * grid.error < error <= grid.error <= tol


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Matern(2.0, nu=2.5)], ids=repr)
def test_the_bound_holds_in_one_and_three_columns(kernel, d):
    X = data(60, d)[0]
    grid = mc.gram.of(kernel, X).fourier(1e-2)
    sums = grid.frequencies.to_grid(X[:3], np.eye(3), 1e-13)
    approximation = grid.frequencies.from_grid(X, sums * grid.roots**2, 1e-13)
    assert np.abs(approximation - kernel(X, X[:3])).max() <= grid.error <= 1e-2


def test_no_frequency_is_left_out_that_matters():
    X = data()[0]
    gram = mc.gram.of(mc.Gaussian(1.0), X)
    few, many = gram.fourier(1e-2), gram.fourier(1e-2, 1e-9)
    assert many.frequencies.number > few.frequencies.number
    edge = [np.array(h * m) for h, m in zip(many.frequencies.spacing, many.frequencies.largest)]
    volume = np.ptp(X, axis=0).prod()
    for k in range(2):
        [term] = many.terms
        at = [edge[j] if j == k else np.array(0.0) for j in range(2)]
        before = [(1 - 1 / many.frequencies.largest[j]) * a for j, a in enumerate(at)]
        assert term.density(at) <= 1e-9 * volume < term.density(before)


def test_densities_compose():
    terms = (3.0 * (mc.Gaussian(2.0) + 0.5 * mc.Matern(1.0))).spectral_terms(2)
    assert [(t.scale, t.leaf) for t in terms] == [(3.0, mc.Gaussian(2.0)), (1.5, mc.Matern(1.0))]
    for other in (
        mc.Linear(),
        mc.Gaussian(1.0) + mc.Linear(),
        mc.Gaussian(1.0) * mc.Gaussian(1.0),
        mc.RationalQuadratic(1.0),
        mc.Gaussian(1.0).on(0),
        mc.Epanechnikov(1.0),
    ):
        assert other.spectral_terms(2) == ()
    axis = np.linspace(-60, 60, 6001)
    for kernel in (mc.Gaussian(0.7), mc.Matern(0.7, nu=1.5), mc.Laplacian(0.7)):
        [term] = kernel.spectral_terms(1)  # its integral is k(0)
        inside = np.trapezoid(term.density([axis]), axis)
        assert inside + term.beyond(0, 60.0) == pytest.approx(1.0, abs=1e-6)


# -- least squares -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kernel", "d", "tol"),
    [
        (mc.Gaussian(1.0), 1, 1e-4),
        (mc.Matern(1.0, nu=1.5), 1, 1e-3),
        (mc.Gaussian([1.5, 2.0]), 2, 1e-6),
        (mc.Matern(3.0, nu=2.5), 2, 1e-2),
        (0.5 * mc.Gaussian(4.0), 3, 1e-3),
    ],
    ids=repr,
)
def test_the_fit_is_kernel_ridge_within_the_tolerance(kernel, d, tol, weighted):
    X, y, rng = data(d=d)
    weights = rng.uniform(0.0, 2.0, len(X)) * (rng.uniform(size=len(X)) > 0.1) if weighted else None
    settings = {"alpha": [0.1, 0.3], "fit_intercept": weighted}
    exact = mc.KernelRidge(kernel, solver="cholesky", **settings).fit(X, y, weights)
    model = mc.KernelRidge(kernel, solver="fourier", tol=tol, **settings).fit(X, y, weights)
    Z = rng.uniform(2.0, 8.0, (300, d))  # a part of them is outside of the box
    difference = np.sqrt(((model.predict(Z) - exact.predict(Z)) ** 2).mean(axis=0))
    assert (difference <= 2 * tol * exact.predict(Z).std(axis=0)).all()
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=10 * tol)
    assert model.solver_ == "fourier"
    assert "frequencies for" in model.status_
    assert isinstance(model.function_, FourierFunction)
    assert not hasattr(model, "dual_coef_")


@pytest.mark.thorough
def test_low_frequencies_precondition_the_others(monkeypatch):
    X, y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(0.8), X), y, np.array([0.01, 0.1]), None, np.ones((len(X), 1)))
    whole = fourier.solve(problem, tol=1e-8)
    monkeypatch.setattr(costs, "FACTORED_FREQUENCIES", 300)
    part = fourier.solve(problem, tol=1e-8)
    monkeypatch.setattr(costs, "FACTORED_FREQUENCIES", 1)
    none = fourier.solve(problem, tol=1e-8)
    assert whole.stats["iterations"] < part.stats["iterations"] < none.stats["iterations"]
    for other in (part, none):
        assert other.stats["converged"]
        np.testing.assert_allclose(other.coef, whole.coef, atol=1e-6 * np.abs(whole.coef).max())


@pytest.mark.thorough
def test_iterations_can_be_stopped_and_limited(monkeypatch):
    monkeypatch.setattr(costs, "FACTORED_FREQUENCIES", 1)
    X, y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(0.5), X), y, np.array([0.01, 0.01]))
    steps = []
    stopped = fourier.solve(problem, progress=lambda step: bool(steps.append(step)) or len(steps) < 3)
    assert len(steps) == 3
    assert stopped.status.startswith("stopped after 3 iterations")
    assert fourier.solve(problem, progress=steps.append).stats["converged"]  # None goes on: only False stops
    limited = fourier.solve(problem, max_iter=2)
    assert limited.status.startswith("not converged after 2 iterations")
    assert not limited.stats["converged"]


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_points_far_from_the_origin_and_of_any_scale_keep_their_digits(tol):
    X, y, rng = data()
    Z = rng.uniform(3, 7, (50, 2))
    near = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="fourier", tol=tol).fit(X, y)
    unit = np.array([2.0**-30, 2.0**20])
    kernel = mc.Gaussian(unit)
    far = mc.KernelRidge(kernel, alpha=0.1, solver="fourier", tol=tol).fit((X + 2.0**20) * unit, y)
    moved = np.abs((X + 2.0**20) - 2.0**20 - X).max()  # the rounding of the points themselves
    np.testing.assert_allclose(far.predict((Z + 2.0**20) * unit), near.predict(Z), atol=1e-9 + 100 * moved)


def test_float32_points_have_float32_values():
    X, y, _ = data()
    single = X.astype(np.float32)
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="fourier").fit(single, y[:, 0])
    assert model.predict(single).dtype == np.float32
    assert model.predict(X).dtype == np.float64
    double = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="fourier").fit(single.astype(np.float64), y[:, 0])
    np.testing.assert_allclose(model.predict(X), double.predict(X), rtol=1e-10)


def test_far_from_the_data_only_the_intercept_remains():
    X, y, _ = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="fourier", fit_intercept=True).fit(X, y)
    period = 1 / model.function_.frequencies.spacing
    np.testing.assert_allclose(model.predict([[50.0, 5.0], [5.0, 1e9], X[0] + period]), [model.intercept_] * 3)
    assert model.predict_gradient([[50.0, 5.0]]) == pytest.approx(np.zeros((1, 2, 2)))


def test_gradients_are_those_of_the_exact_function():
    X, y, rng = data()
    Z = rng.uniform(3, 7, (20, 2))
    for targets in (y, y[:, 0]):
        fits = [
            mc.KernelRidge(mc.Gaussian(1.5), alpha=0.1, solver=solver, tol=1e-8, fit_intercept=True).fit(X, targets)
            for solver in ("fourier", "cholesky")
        ]
        ours, exact = (model.predict_gradient(Z) for model in fits)
        np.testing.assert_allclose(ours, exact, atol=1e-5)


@pytest.mark.thorough
def test_a_model_file_keeps_every_bit(tmp_path):
    X, y, rng = data(d=3)
    for targets in (y, y[:, 0]):
        model = mc.KernelRidge(mc.Gaussian(4.0), alpha=0.1, solver="fourier", tol=1e-2, fit_intercept=True)
        model.fit(X, targets)
        model.save(tmp_path / "model.safetensors")
        loaded = mc.load(tmp_path / "model.safetensors")
        Z = rng.uniform(2, 8, (40, 3))
        assert np.array_equal(loaded.predict(Z), model.predict(Z))
        assert np.array_equal(loaded.predict_gradient(Z), model.predict_gradient(Z))
        assert repr(loaded.function_) == repr(model.function_)


def test_coefficients_must_fit_the_grid():
    X, y, _ = data()
    f = mc.KernelRidge(mc.Gaussian(1.0), solver="fourier").fit(X, y[:, 0]).function_
    with pytest.raises(InvalidInput, match="numbers, got 7"):
        FourierFunction(f.kernel, f.frequencies, f.coef[:7], None, 1e-8, False)
    with pytest.raises(InvalidInput, match="must have 2 columns"):
        f([[1.0]])


# -- the choice of the solver ------------------------------------------------------------------------------------------


def chosen(kernel, d=2, budget=3_000_000, **settings):
    X, y, _ = data(1000, d)
    return mc.KernelRidge(kernel, alpha=0.1, budget=budget, **settings).fit(X, y[:, 0])


def test_auto_takes_it_where_no_exact_solver_fits():
    model = chosen(mc.Gaussian(2.0))
    assert model.solver_ == "fourier"
    assert "a float32 matrix of 1000 points takes 4 MB, the budget is 3 MB: a grid of frequencies" in model.status_
    assert chosen(mc.Gaussian(2.0), budget="1 GB").solver_ == "cholesky"


@pytest.mark.parametrize(
    ("kernel", "d"), [(mc.Gaussian(2.0), 4), (mc.Polynomial(2), 2), (mc.Gaussian(0.01), 2), (mc.RationalQuadratic(), 2)]
)
def test_auto_takes_centres_elsewhere(kernel, d):
    assert chosen(kernel, d, n_centers=None).solver_ != "fourier"


def test_auto_counts_frequencies(monkeypatch):
    monkeypatch.setattr(costs, "MOST_FREQUENCIES", 100)
    assert chosen(mc.Gaussian(2.0)).solver_ != "fourier"
    X, y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(2.0), X, budget=1000), y, np.array([0.1, 0.1]))
    assert auto.chosen(problem, budget=600_000, grids=False).solver != "fourier"


def test_named_centres_are_a_request_for_them():
    assert chosen(mc.Gaussian(2.0), n_centers=50).solver_ == "nystrom"


def test_discriminants_need_an_expansion():
    X, y, _ = data()
    model = mc.KernelFisherDiscriminant(mc.Gaussian(2.0), alpha=0.1, budget=600_000).fit(X, y[:, 0] > 0)
    assert model.solver_ != "fourier"
    with pytest.raises(InvalidInput, match="`solver` must be"):
        mc.KernelFisherDiscriminant(mc.Gaussian(2.0), solver="fourier").fit(X, y[:, 0] > 0)


def test_a_classifier_can_use_it():
    X, y, _ = data()
    labels = np.where(y[:, 0] > 0, "high", "low")
    exact, ours = (
        mc.LeastSquaresClassifier(mc.Gaussian(1.0), alpha=0.1, solver=solver).fit(X, labels).decision_function(X)
        for solver in ("cholesky", "fourier")
    )
    np.testing.assert_allclose(ours, exact, atol=1e-4)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "d", "settings", "words"),
    [
        (mc.Gaussian(1.0), 2, {"alpha": 0.0}, "`alpha` must be ≥ 5.0e-13 for `solver='fourier'`.*got 0"),
        (mc.Gaussian(1.0), 4, {}, "at most three columns"),
        (mc.Polynomial(2), 2, {}, "spectral density is known.*Polynomial"),
        (mc.Gaussian(1e-4), 2, {"budget": "100 MB"}, "frequencies.*must fit the memory budget of 100 MB.*Raise `tol`"),
        (mc.Matern(1.0, nu=0.5), 3, {}, "frequencies.*must fit the memory budget"),
        (mc.Gaussian(1.0), 2, {"alpha": "loo"}, "`alpha='loo'` need a factorised system"),
        (mc.Gaussian(1.0), 2, {"tol": 2.0}, "`tol` must be"),
    ],
)  # fmt: skip
def test_what_is_refused(kernel, d, settings, words):
    X, y, _ = data(50, d)
    with pytest.raises(InvalidInput, match=words):
        mc.KernelRidge(kernel, solver="fourier", **settings).fit(X, y[:, 0])


def test_auto_does_not_take_it_for_a_penalty_below_rounding():
    X, y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(2.0), X), y, np.array([1e-13, 0.1]))
    assert not fourier.affordable(problem, None, 10**9)
    assert fourier.affordable(LeastSquares(problem.gram, y, np.array([1e-9, 0.1])), None, 10**9)


@pytest.mark.parametrize("alpha", [1e-11, 1e-8])
def test_a_tiny_penalty_is_solved_or_named(alpha):
    X, y, _ = data()
    problem = LeastSquares(mc.gram.of(mc.Gaussian(2.0), X), y, np.full(2, alpha))
    solution = fourier.solve(problem)
    assert solution.stats["converged"] == (solution.residual <= 1e-4)
    assert np.isfinite(solution.coef).all()


def test_points_without_extent_have_a_grid():
    for X in (np.full((1, 2), 3.0), np.full((5, 2), 3.0), np.column_stack([np.arange(5.0), np.zeros(5)])):
        y = np.arange(float(len(X)))
        exact, ours = (
            mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver=s).fit(X, y).predict(X) for s in ("cholesky", "fourier")
        )
        np.testing.assert_allclose(ours, exact, atol=1e-3)


def test_sparse_rows_are_refused():
    import scipy.sparse as sp

    with pytest.raises(InvalidInput, match="at most three columns of numbers"):
        mc.KernelRidge(mc.Gaussian(1.0), solver="fourier").fit(sp.eye_array(3).tocsr(), np.arange(3.0))


def test_what_a_factor_would_give_is_refused():
    X, y, _ = data()
    model = mc.KernelRidge(mc.Gaussian(1.0), solver="fourier").fit(X, y[:, 0])
    for ask in (
        lambda: model.loo_score_,
        lambda: model.degrees_of_freedom_,
        lambda: model.predict_interval(X[:2]),
        lambda: model.cv_predictions(3),
    ):
        with pytest.raises(InvalidInput, match="need a factorised system, got solver='fourier'"):
            ask()
