"""Local regression: equal to weighted normal equations, exact on polynomials, stable where points do not suffice."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest

import mercer as mc
from mercer import memory
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.local.local_regression import LocalRegression
from mercer.models.local.nadaraya_watson import NadarayaWatsonRegressor
from mercer.smoothing import local_polynomial
from mercer.smoothing.local_polynomial import ldl_solve
from mercer.smoothing.neighbours import neighbour_distances
from mercer.tuning.local_losses import SquaredError
from mercer.tuning.smoothing import loo_loss

rng = np.random.default_rng(0)

WEIGHTS = [
    mc.Gaussian(0.6),
    mc.Gaussian([0.6, 0.9]),
    mc.Epanechnikov(2.5),
    mc.Tricube([2.5, 3.0]),
    mc.Matern(0.8),
    mc.Laplacian(0.6),
    mc.Biweight(2.5).on(0) * mc.Biweight(3.0).on(1),
]


def data(n=60, d=2, t=1):
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, :1]) + 0.2 * rng.normal(size=(n, t))
    return X, y[:, 0] if t == 1 else y


def monomials(U, degree):
    """All products of at most `degree` columns."""
    columns = [np.ones(len(U))]
    for k in range(1, degree + 1):
        columns += [np.prod(U[:, c], axis=1) for c in itertools.combinations_with_replacement(range(U.shape[1]), k)]
    return np.stack(columns, axis=1)


def lwlr(k, X, y, z, degree, v=None):
    """Lecture 000: w minimises Σ rₙ (tₙ − wᵀφ(xₙ))² with rₙ = k(xₙ, z); the output is wᵀφ(z). Coefficients around z."""
    r = k(z[None], X)[0] * (1 if v is None else v)
    Phi = monomials(X - z, degree)
    return np.linalg.lstsq(np.sqrt(r)[:, None] * Phi, np.sqrt(r)[:, None] * np.reshape(y, (len(y), -1)), rcond=None)[0]


# --- the fit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("k", WEIGHTS, ids=repr)
def test_it_solves_the_weighted_normal_equations(k, degree):
    X, y = data(t=2)
    v = rng.uniform(0.5, 2.0, len(X))
    Z = 0.7 * rng.normal(size=(10, 2))
    model = LocalRegression(k, degree=degree).fit(X, y, v)
    direct = np.stack([lwlr(k, X, y, z, degree, v) for z in Z])
    np.testing.assert_allclose(model.predict(Z), direct[:, 0], rtol=1e-5, atol=1e-6)
    W = model.weights(Z)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    np.testing.assert_allclose(W @ y, model.predict(Z), rtol=1e-6, atol=1e-7)
    if degree:
        np.testing.assert_allclose(model.predict_gradient(Z), np.swapaxes(direct[:, 1:3], 1, 2), rtol=1e-4, atol=1e-5)


FAST = [
    (mc.Gaussian, 0.08, 1),
    (mc.Gaussian, 0.002, 1),
    (mc.Tricube, 0.2, 1),
    (mc.Epanechnikov, 0.2, 1),
    (mc.Laplacian, 0.05, 1),
    (mc.Gaussian, 0.12, 2),
    (mc.Tricube, 0.4, 2),
    (mc.Gaussian, 0.3, 3),
]


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize(("weight", "h", "d"), FAST)
def test_the_fast_sums_solve_them_too(weight, h, d, degree):
    X, Z = rng.uniform(0, 1, size=(1000, d)), rng.uniform(0, 1, size=(40, d))
    y = np.sin(5 * X[:, :1]) + 0.1 * rng.normal(size=(1000, 1))
    k = weight(h)
    model = LocalRegression(k, degree=degree).fit(X, y[:, 0])
    near = (k(Z, X) > 1e-3).sum(axis=1) > 3 * (degree + 1) ** d
    Z = Z[near]
    direct = np.array([lwlr(k, X, y, z, degree)[0, 0] for z in Z])
    np.testing.assert_allclose(model.predict(Z), direct, atol=1e-6)
    rows = [i for i in range(0, 1000, 125) if (k(X[i : i + 1], X) > 1e-3).sum() > 3 * (degree + 1) ** d]
    left = [lwlr(k, np.delete(X, i, 0), np.delete(y, i, 0), X[i], degree)[0, 0] for i in rows]
    np.testing.assert_allclose(model.loo_predictions_[rows], left, atol=1e-6)
    shares = model.weights(Z)
    error, both = model.predict(Z, return_std=True)[1], model.predict_distribution(Z)[1]
    np.testing.assert_allclose(error**2 / (both**2 - error**2), (shares**2).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize(("weight", "h", "d"), [case for case in FAST if case[1] > 0.01])
@pytest.mark.parametrize("degree", [0, 1])
def test_the_gradient_of_the_fast_sums(weight, h, d, degree):
    X = rng.uniform(0, 1, size=(400, d))
    y = np.sin(5 * X[:, :1]) + 0.1 * rng.normal(size=(400, 1))
    k, loss = weight(np.full(d, h)), SquaredError.of(y, np.ones(400))
    value, slopes = loo_loss(k, Points(X), loss, degree=degree)
    step = 1e-3 * np.eye(d)
    moved = [loo_loss(k.with_theta(k.theta + s * e), Points(X), loss, degree=degree, gradient=False)[0]
             for e in step for s in (1, -1)]  # fmt: skip
    differences = (np.array(moved[::2]) - moved[1::2]) / 2e-3
    np.testing.assert_allclose(slopes, differences, rtol=0.02, atol=1e-3 * value)


@pytest.mark.parametrize("k", [mc.Gaussian(0.4), mc.Epanechnikov(0.9), mc.Laplacian(0.3)], ids=repr)
def test_degree_zero_is_nadaraya_watson(k):
    X, y = data()
    Z = np.r_[X[:10] + 0.1, [[50.0, 50.0]]]
    local, mean = LocalRegression(k, degree=0).fit(X, y), NadarayaWatsonRegressor(k).fit(X, y)
    for a, b in zip(local.predict(Z, return_std=True), mean.predict(Z, return_std=True)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(local.loo_predictions_, mean.loo_predictions_)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("k", [mc.Gaussian(0.5), mc.Tricube(2.0), mc.Matern(1.0)], ids=repr)
def test_polynomials_of_the_degree_are_reproduced(k, degree, d):
    X = rng.uniform(-1, 1, size=(200, d))
    coef = rng.normal(size=monomials(X, degree).shape[1])
    Z = rng.uniform(-1.2, 1.2, size=(20, d))
    model = LocalRegression(k, degree=degree).fit(X + 1000.0, monomials(X, degree) @ coef)
    np.testing.assert_allclose(model.predict(Z + 1000.0), monomials(Z, degree) @ coef, rtol=1e-4, atol=1e-5)
    assert model.loo_score_ > 1 - 1e-7


def test_derivatives_on_a_line():
    X = np.linspace(-1, 1, 80)[:, None]
    model = LocalRegression(degree=3, bandwidth=0.2).fit(X, np.c_[X[:, 0] ** 3, 2 * X[:, 0] ** 2])
    z = np.array([[-0.5], [0.0], [0.9]])
    for order, (a, b) in enumerate([(z**3, 2 * z**2), (3 * z**2, 4 * z), (6 * z, 4 + 0 * z), (6 + 0 * z, 0 * z)]):
        np.testing.assert_allclose(model.derivative(z, order), np.c_[a, b], atol=1e-5)
    np.testing.assert_allclose(model.predict_gradient(z)[:, 0, 0], 3 * z[:, 0] ** 2, atol=1e-6)
    for order in (4, -1, True, 1.0):
        with pytest.raises(InvalidInput, match="order"):
            model.derivative(z, order)
    with pytest.raises(InvalidInput, match="degree"):
        LocalRegression(degree=0, bandwidth=1.0).fit(X, X[:, 0]).predict_gradient(z)
    with pytest.raises(InvalidInput, match="requires a single column"):
        LocalRegression(bandwidth=1.0).fit(np.c_[X, X], X[:, 0]).derivative(np.c_[z, z])


# --- where points do not suffice --------------------------------------------------------------------------------------


def test_undetermined_unknowns_are_left_out():
    A = rng.normal(size=(30, 4))
    A[:, 2] = A[:, 0] - 2 * A[:, 1]
    S, t = A.T @ A, A.T @ rng.normal(size=(30, 2))
    found = ldl_solve(S[:, :, None], t[:, :, None])[:, :, 0]
    kept = [0, 1, 3]
    np.testing.assert_allclose(found[kept], np.linalg.solve(S[np.ix_(kept, kept)], t[kept]))
    np.testing.assert_array_equal(found[2], 0.0)


def test_few_points_lower_the_degree():
    one = LocalRegression(degree=3, bandwidth=1.0).fit([[0.0]], [5.0])
    np.testing.assert_allclose(one.predict([[0.0], [9.0]]), 5.0)
    two = LocalRegression(degree=3, bandwidth=1.0).fit([[0.0], [1.0]], [5.0, 7.0])
    np.testing.assert_allclose(two.predict([[0.0], [0.5], [1.0]]), [5.0, 6.0, 7.0])
    same = LocalRegression(degree=2, bandwidth=1.0).fit(np.ones((6, 2)), np.arange(6.0))
    np.testing.assert_allclose(same.predict([[1.0, 1.0], [3.0, 0.0]]), 2.5)
    np.testing.assert_allclose(same.predict_gradient([[1.0, 1.0]]), 0.0)
    t = np.linspace(-1, 1, 40)
    line = LocalRegression(degree=1, bandwidth=0.3).fit(np.c_[t, 2 * t], 3 * t)
    np.testing.assert_allclose(line.predict(np.c_[t, 2 * t]), 3 * t, atol=1e-7)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("k", [mc.Gaussian(0.1), mc.Tricube(0.2), mc.Matern(0.1)], ids=repr)
def test_everywhere_finite(k, degree):
    X = np.r_[rng.uniform(0, 1, size=(40, 1)), [[5.0], [5.0]]]
    y = np.sin(5 * X[:, 0])
    model = LocalRegression(k, degree=degree).fit(X, y)
    Z = np.array([[0.5], [1.5], [3.0], [5.0], [10.0], [1e3], [1e8], [-1e4], [-1e140]])
    mean, std = model.predict(Z, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    assert np.isfinite(model.loo_predictions_).all()
    assert mean[3] == pytest.approx(y[-1])
    if isinstance(k, mc.Tricube):
        np.testing.assert_allclose(mean[4:8], [y[-1], y[-1], y[-1], y[X[:, 0].argmin()]])
        np.testing.assert_allclose(model.weights(Z).sum(axis=1), 1.0)


@pytest.mark.parametrize("options", [{}, {"degree": 2}, {"degree": 0, "neighbors": 10}], ids=repr)
def test_far_queries_see_one_direction(options):
    X = rng.uniform(0, 1, size=(50, 2))
    model = LocalRegression(bandwidth=0.1, **options).fit(X, X[:, 0])
    Z = np.array([[1e14, 3e14], [1e100, 3e100], [1e300, 3e300]])
    found = model.predict(Z)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, found[0], rtol=1e-4)
    assert np.isfinite(model.weights(Z)).all()


def test_rows_that_come_later_stay_where_they_are():
    model = LocalRegression(bandwidth=0.1).fit([[0.0]], [1.0]).partial_fit([[1.7e9], [1.7e9 + 1]], [2.0, 3.0])
    np.testing.assert_array_equal(model._rows.points.vectors()[:, 0], [0.0, 1.7e9, 1.7e9 + 1])
    np.testing.assert_allclose(model.predict([[1.7e9], [1.7e9 + 1]]), [2.0, 3.0])


# --- memory -----------------------------------------------------------------------------------------------------------


def test_moments_are_held_a_few_at_a_time(monkeypatch):
    X, Z = rng.normal(size=(40, 6)), rng.normal(size=(400, 6))
    y = np.c_[X[:, 0] ** 2, X[:, 1]]
    model = LocalRegression(degree=2, bandwidth=3.0).fit(X, y)
    whole = model.predict(Z), model.weights(Z[:50])
    made, points = model._fit_at(Points(Z)), Points(X)
    shares = local_polynomial.spread(made, model.kernel_, points, np.ones(40), Points(Z), degree=2)
    monkeypatch.setattr(memory, "HELD", 40_000)
    tracemalloc.start()
    parts = model.predict(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(parts, whole[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.weights(Z[:50]), whole[1], rtol=1e-6, atol=1e-8)
    again = local_polynomial.spread(made, model.kernel_, points, np.ones(40), Points(Z), degree=2)
    np.testing.assert_allclose(again, shares, rtol=1e-6)
    assert peak < 2.5e6  # of 8 MB all at once: 2 MB of moments, and systems of 2.5 MB with their factors


def test_what_does_not_fit_the_memory_is_refused(monkeypatch):
    X = rng.normal(size=(2000, 9))
    model = LocalRegression(degree=2, bandwidth=3.0).fit(X, X[:, 0])
    line = LocalRegression(bandwidth=0.5).fit(X[:, :1], X[:, 1])
    monkeypatch.setenv("MERCER_MEMORY", "10 MB")
    with pytest.raises(InvalidInput, match="memory"):
        LocalRegression(degree=3, bandwidth=3.0).fit(X, X[:, 0]).loo_predictions_  # noqa: B018
    with pytest.raises(InvalidInput, match="bootstrap"):
        line.bands(X[:, :1], method="bootstrap", n_samples=10_000)
    assert np.isfinite(model.predict(X[:3])).all()


# --- leave-one-out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("k", [mc.Gaussian(0.5), mc.Tricube(2.0), mc.Laplacian(0.4)], ids=repr)
def test_leave_one_out_is_refitting(k, degree):
    X, y = data(40)
    v = rng.uniform(0.5, 2.0, 40)
    model = LocalRegression(k, degree=degree).fit(X, y, v)
    rest = [np.delete(np.arange(40), i) for i in range(40)]
    models = [LocalRegression(k, degree=degree).fit(X[r], y[r], v[r]) for r in rest]
    refitted = np.array([m.predict(X[i : i + 1])[0] for i, m in enumerate(models)])
    np.testing.assert_allclose(model.loo_predictions_, refitted, rtol=1e-5, atol=1e-6)
    leverages = np.diag(model.weights(X))
    assert model.degrees_of_freedom_ == pytest.approx(leverages.sum(), rel=1e-6)
    well = leverages < 0.999
    shortcut = (y - model.predict(X)) / (1 - np.where(well, leverages, 0.0))
    np.testing.assert_allclose((y - refitted)[well], shortcut[well], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("k", [mc.Gaussian([0.6, 0.9]), mc.Gaussian(0.7), mc.Biweight(3.0), mc.Matern(0.8),
                               mc.Laplacian([0.6, 0.9])], ids=repr)  # fmt: skip
def test_the_criterion_and_its_gradient(k, degree):
    X, y = data(50, t=2)
    v = rng.uniform(0.5, 2.0, 50)
    loss = SquaredError.of(y, v)
    value, slopes = loo_loss(k, Points(X), loss, degree=degree)
    rest = [np.delete(np.arange(50), i) for i in range(50)]
    F = np.array([lwlr(k, X[r], y[r], X[i], degree, v[r])[0] for i, r in enumerate(rest)])
    unit = np.average((y - np.average(y, axis=0, weights=v)) ** 2, axis=0, weights=v)
    assert value == pytest.approx(np.average(((y - F) ** 2 / unit).mean(axis=1), weights=v), rel=1e-4)
    step = 1e-4
    for i in range(len(k.theta)):
        e = step * (np.arange(len(k.theta)) == i)
        up, down = (
            loo_loss(k.with_theta(k.theta + s * e), Points(X), loss, degree=degree, gradient=False)[0] for s in (1, -1)
        )
        assert slopes[i] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("degree", [1, 2])
def test_the_chosen_bandwidth_is_the_best_of_a_fine_grid(degree):
    X = rng.uniform(0, 1, size=(150, 1))
    y = np.sin(12 * X[:, 0]) + 0.3 * rng.normal(size=150)
    model = LocalRegression(degree=degree).fit(X, y)
    errors = [np.mean((y - LocalRegression(degree=degree, bandwidth=h).fit(X, y).loo_predictions_) ** 2)
              for h in np.geomspace(0.01, 3, 40)]  # fmt: skip
    assert model.loo_loss_ <= min(errors) * (1 + 1e-6)


def test_a_line_takes_the_widest_bandwidth():
    X = rng.uniform(0, 1, size=(100, 1))
    model = LocalRegression().fit(X, 3 * X[:, 0] + 0.1 * rng.normal(size=100))
    assert model.bandwidth_[0] > 0.5
    assert model.degrees_of_freedom_ < 2.5


# --- neighbours and robustness ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
def test_distances_to_the_nearest(d):
    X, Z = rng.normal(size=(90, d)), 3 * rng.normal(size=(30, d))
    X[5] = X[6]
    sigma = np.array([1.0, 2.0])[:d]
    D = np.sort(np.linalg.norm((Z[:, None] - X) / sigma, axis=2), axis=1)
    own = np.sort(np.linalg.norm((X[:, None] - X) / sigma, axis=2), axis=1)
    for k in (1, 2, 30, 80, 90):
        np.testing.assert_allclose(neighbour_distances(Points(X), sigma, k, Points(Z)), D[:, k - 1], rtol=2e-6)
        np.testing.assert_allclose(
            neighbour_distances(Points(X), sigma, k, exclude=True), np.maximum(own[:, min(k, 89)], 1e-9), rtol=2e-6
        )
    np.testing.assert_allclose(neighbour_distances(Points(X), sigma, 0.5, Points(Z)), D[:, 44], rtol=2e-6)
    v = rng.integers(1, 4, 90).astype(float)
    again = np.repeat(X, v.astype(int), axis=0)
    for k in (1, 7, 0.3, 1.0):
        np.testing.assert_allclose(
            neighbour_distances(Points(X), sigma, k, Points(Z), v=v),
            neighbour_distances(Points(again), sigma, k, Points(Z)),
        )
    left = neighbour_distances(Points(X), sigma, 7, v=v, exclude=True)
    for i in range(0, 90, 9):
        others = np.repeat(np.delete(X, i, 0), np.delete(v, i).astype(int), axis=0)
        assert left[i] == pytest.approx(neighbour_distances(Points(others), sigma, 7, Points(X[i : i + 1]))[0])


def lowess(x, y, share, iterations, degree=1):
    """Cleveland 1979, one point at a time."""
    k = int(np.floor(share * len(x) + 1e-5))  # R's loess
    trust = np.ones(len(x))
    for _ in range(iterations + 1):
        fitted = np.empty(len(x))
        for i, z in enumerate(x):
            distance = np.abs(x - z)
            h = np.sort(distance)[k - 1]
            w = np.clip(1 - (distance / h) ** 3, 0, None) ** 3 * trust
            fitted[i] = np.polynomial.Polynomial.fit(x - z, y, degree, w=np.sqrt(w))(0.0)
        r = np.abs(y - fitted)
        trust = np.clip(1 - (r / (6 * np.median(r))) ** 2, 0, None) ** 2
    return fitted


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("iterations", [0, 3])
@pytest.mark.parametrize("n", [61, 62])
def test_it_is_lowess(n, iterations, degree):
    x = np.sort(rng.uniform(0, 1, n))
    y = np.sin(6 * x) + 0.1 * rng.normal(size=n)
    y[::8] += 3.0
    model = LocalRegression(neighbors=0.4, robust=iterations, degree=degree).fit(x[:, None], y)
    np.testing.assert_allclose(model.predict(x[:, None]), lowess(x, y, 0.4, iterations, degree), atol=1e-5)


def test_cars_are_those_of_r():
    """R's help page ?lowess: lowess(cars), the speed and stopping distance of cars (Ezekiel 1930)."""
    x = [4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16]
    x += [17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25]
    y = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40]
    y += [32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85]
    model = LocalRegression(neighbors=2 / 3, robust=3).fit(np.array(x, dtype=float)[:, None], np.array(y, dtype=float))
    found = model.predict([[4.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0]])
    expected = [4.965459, 13.124495, 15.858633, 18.579691, 21.280313, 24.129277, 27.119549, 30.027276, 32.962506]
    assert found == pytest.approx(expected, rel=1e-4)


def test_outliers_lose_their_say():
    X = rng.uniform(0, 1, size=(150, 1))
    truth = np.sin(6 * X[:, 0])
    y = truth + 0.1 * rng.normal(size=150)
    bad = np.arange(0, 150, 9)
    y[bad] += 8.0
    for options in ({"bandwidth": 0.06}, {"neighbors": 0.3}, {}):
        plain, robust = LocalRegression(**options).fit(X, y), LocalRegression(robust=3, **options).fit(X, y)
        errors = [np.sqrt(np.mean((m.predict(X) - truth) ** 2)) for m in (plain, robust)]
        assert errors[1] < 0.1 < 0.3 < errors[0]
        assert robust.robustness_weights_[bad].max() < 1e-6
        assert np.median(robust.robustness_weights_) > 0.8
        assert (plain.robustness_weights_ == 1).all()
    two = LocalRegression(robust=3, bandwidth=0.06).fit(X, np.c_[y, truth])
    assert two.robustness_weights_[bad].max() < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("k", [10, 100])
def test_the_uniform_weight_reaches_the_last_neighbour(k, d):
    own = np.random.default_rng(0)
    X, Z = own.uniform(0, 1, (300, d)) + 50.0, own.uniform(0, 1, (500, d)) + 50.0
    model = LocalRegression(mc.Uniform(0.7), degree=0, neighbors=k).fit(X, X[:, 0])
    np.testing.assert_allclose(model.effective_sample_size(Z), k, rtol=1e-9)
    np.testing.assert_array_equal((model.weights(Z) > 0).sum(axis=1), k)


def test_neighbours_follow_the_density():
    X = np.r_[rng.uniform(0, 0.1, size=(200, 1)), rng.uniform(0.1, 1, size=(50, 1))]
    model = LocalRegression(neighbors=20).fit(X, np.sin(X[:, 0]))
    support = model.effective_sample_size([[0.05], [0.7]])
    assert (support > 8).all()
    assert (support < 20).all()
    refitted = [LocalRegression(neighbors=20, bandwidth=model.bandwidth_)
                .fit(np.delete(X, i, 0), np.delete(np.sin(X[:, 0]), i)).predict(X[i : i + 1])[0]
                for i in range(0, 250, 25)]  # fmt: skip
    np.testing.assert_allclose(model.loo_predictions_[::25], refitted, rtol=1e-6)


# --- uncertainty ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [mc.Gaussian(0.3), mc.Tricube(0.9), mc.Epanechnikov(0.9)], ids=repr)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_standard_error_comes_from_the_weights(k, degree):
    X, y = rng.uniform(-1, 1, size=(40, 1)), rng.normal(size=40)
    v = rng.uniform(0.5, 2, 40)
    Z = np.array([[-0.9], [0.0], [0.5]])
    model = LocalRegression(k, degree=degree).fit(X, y, v)
    _, error = model.predict(Z, return_std=True)
    _, both = model.predict_distribution(Z)
    variance = both**2 - error**2
    np.testing.assert_allclose(error**2 / variance, model.weights(Z) ** 2 @ (1 / v), rtol=1e-5)
    rows = [np.delete(np.arange(40), i) for i in range(40)]
    left = [LocalRegression(k, degree=degree).fit(X[r], y[r], v[r]).weights(X[i : i + 1])[0] ** 2 @ (1 / v[r])
            for i, r in enumerate(rows)]  # fmt: skip
    squares = (y - model.loo_predictions_) ** 2 / (1 + np.array(left))
    W = k(Z, X) * v
    np.testing.assert_allclose(variance, W @ squares / W.sum(axis=1), rtol=1e-5)


@pytest.mark.thorough
def test_bands_cover():
    covered = []
    X = np.linspace(0, 1, 200)[:, None]
    Z = np.linspace(0.1, 0.9, 9)[:, None]
    for _ in range(40):
        model = LocalRegression(bandwidth=0.05).fit(X, np.sin(3 * X[:, 0]) + (0.1 + X[:, 0]) * rng.normal(size=200))
        for method in ("asymptotic", "bootstrap"):
            low, high = model.bands(Z, 0.9, method=method, n_samples=200).T
            covered.append([method == "bootstrap", np.mean((low < np.sin(3 * Z[:, 0])) & (np.sin(3 * Z[:, 0]) < high))])
    covered = np.array(covered)
    for method in (0, 1):
        assert 0.83 < covered[covered[:, 0] == method, 1].mean() < 0.96


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_classes_of_kernels():
    X, y = data(60)
    near = LocalRegression(mc.Epanechnikov, neighbors=20).fit(X, y)
    np.testing.assert_allclose(near.bandwidth_, X.std(axis=0))
    assert "nearest" in near.status_
    assert "leave-one-out" in LocalRegression(mc.Gaussian).fit(X, y).status_


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_targets_of_any_size(unit):
    X = rng.uniform(0, 1, (80, 1))
    y = np.sin(9 * X[:, 0]) + 0.2 * rng.normal(size=80)
    for options in ({}, {"robust": 2}):
        plain, scaled = LocalRegression(**options).fit(X, y), LocalRegression(**options).fit(X, unit * y)
        np.testing.assert_allclose(scaled.bandwidth_, plain.bandwidth_, rtol=1e-3)
        np.testing.assert_allclose(np.array(scaled.predict(X, return_std=True)) / unit,
                                   plain.predict(X, return_std=True), atol=1e-2)  # fmt: skip


def test_weight_means_repetition():
    X, y = data(40, 1)
    v = rng.integers(0, 4, 40)
    again = np.repeat(np.arange(40), v)
    Z = rng.normal(size=(9, 1))
    for options in ({"bandwidth": 0.4}, {"neighbors": 0.5, "bandwidth": 1.0}, {"bandwidth": 0.4, "robust": 2}):
        weighted, repeated = LocalRegression(**options).fit(X, y, v), LocalRegression(**options).fit(X[again], y[again])
        np.testing.assert_allclose(weighted.predict(Z), repeated.predict(Z), rtol=1e-5, atol=1e-7)


def test_rows_may_come_in_parts():
    X, y = data(60)
    for options in ({"bandwidth": 0.5}, {"neighbors": 12, "bandwidth": 1.0, "robust": 2}):
        whole, parts = LocalRegression(**options).fit(X, y), LocalRegression(**options)
        for rows in (slice(0, 30), slice(30, 60)):
            parts.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-7)
        np.testing.assert_allclose(pickle.loads(pickle.dumps(parts)).predict(X), whole.predict(X), rtol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 4}, {"degree": -1}, {"degree": 1.0}, {"degree": True}, {"robust": -1}, {"robust": 1.5},
        {"neighbors": 0}, {"neighbors": 0.0}, {"neighbors": 1.5}, {"neighbors": True}, {"neighbors": "all"},
        {"neighbors": 0.5, "bandwidth": "loo"}, {"bandwidth": 0.0}, {"bandwidth": np.nan}, {"bandwidth": "isj?"},
        {"neighbors": 3, "kernel": mc.Matern(1.0).on(0)},
    ],
    ids=repr,
)  # fmt: skip
def test_bad_options(options):
    with pytest.raises(InvalidInput):
        LocalRegression(**options).fit(*data(20))


def test_bad_data():
    with pytest.raises(InvalidInput, match="vectors"):
        LocalRegression(mc.Delta()).fit(["a", "b"], [1.0, 2.0])
    for kernel, points in ((mc.Precomputed(), np.eye(4)), (mc.Precomputed(np.eye(4)), np.arange(4)[:, None]),
                           (mc.Intersection(), [{1}, {2}, {3}, {4}]), (mc.Delta(), np.eye(4)),
                           (mc.Delta().on(0), [["a", 1.0], ["b", 2.0], ["c", 3.0], ["d", 4.0]])):  # fmt: skip
        with pytest.raises(InvalidInput, match="Use NadarayaWatsonRegressor"):
            LocalRegression(kernel).fit(points, np.arange(4.0))
    with pytest.raises(InvalidInput, match="coefficients"):
        LocalRegression(degree=3, bandwidth=1.0).fit(rng.normal(size=(20, 30)), rng.normal(size=20))
    single = LocalRegression(bandwidth=0.5).fit(*(a.astype(np.float32) for a in data(30)))
    assert single.predict(np.zeros((1, 2), np.float32)).dtype == np.float64
