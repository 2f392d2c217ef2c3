"""The Hilbert space: functions, distances, means and tests against double loops, and the theory's own laws."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mercer as mc
from expressions import set_kernels, vector_kernels
from mercer.testing import sample

COMPOSITE = 0.5 * mc.Gaussian(1.5) + mc.Polynomial(2, c=1.0) * mc.Matern(2.0, 2.5)
KERNELS = [
    mc.Linear(),
    mc.Polynomial(3, c=0.5),
    mc.Gaussian(1.2),
    mc.Gaussian([0.5, 1.0, 2.0]),
    mc.Laplacian(2.0),
    mc.Matern(1.5, 1.5),
    mc.RationalQuadratic(1.0, 0.7),
    mc.Periodic(1.0, 3.0),
    mc.ArcCosine(1),
    mc.Polynomial(2, c=1.0).normalize(),
    mc.exp(0.2 * mc.Linear()),
    mc.Gaussian(1.0) * mc.Laplacian(3.0),
    COMPOSITE,
    mc.Gaussian(1.0).on(0, 2) + 2.0 * mc.Linear().on(1),
    mc.FromFunction(lambda x, z: float(1.0 / (1.0 + np.sum((x - z) ** 2)))),
    mc.FromFeatures(lambda X: np.column_stack([X, (np.asarray(X) ** 2).sum(axis=1)])),
    mc.Intersection(),
    mc.exp(np.log(2) * mc.Intersection()),
    mc.exp(mc.Intersection()).normalize(),
    mc.Delta(),
    mc.Precomputed([[2.0, 1.0, 0.5], [1.0, 2.0, 0.25], [0.5, 0.25, 1.0]]),
]
FINITE = [
    mc.Linear(),
    mc.Polynomial(2),
    mc.Polynomial(3, c=0.5),
    mc.Polynomial(2, c=1.0).normalize(),
    2.0 * mc.Linear() + mc.Polynomial(2) * mc.Linear() + 1.0,
    mc.Linear().on(0, 1) ** 2,
    mc.FromFeatures(lambda X: np.column_stack([X, (np.asarray(X) ** 2).sum(axis=1)])),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
every_finite_kernel = pytest.mark.parametrize("kernel", FINITE, ids=repr)
laws = settings(max_examples=settings.default.max_examples // 4)


def points(kernel, n=7, seed=0):
    if kernel.space in ("sets", "categories", "indices"):
        return sample(kernel, n, seed=seed)
    return np.random.default_rng(seed).normal(size=(n, 3))


def at(X, i):
    """The i-th object of any data set."""
    return X[i] if not isinstance(X, np.ndarray) or X.ndim > 1 else X[i].item()


def value(kernel, x, z):
    """k(x, z) for two objects."""
    return float(kernel(mc.Expansion.at(kernel, x).points, mc.Expansion.at(kernel, z).points)[0, 0])


def function(kernel, n=7, seed=0, outputs=()):
    coef = np.random.default_rng(100 + seed).normal(size=(n, *outputs))
    return mc.Expansion(kernel, points(kernel, n, seed), coef)


def size(f, Z):
    """Σ |cᵢ k(xᵢ, z)|, what rounding errors of f(z) are relative to."""
    return np.abs(f.kernel(Z, f.points)) @ np.abs(f.coef)


# -- expansions -------------------------------------------------------------------------------------------------------


@every_kernel
def test_values_norms_and_inner_products_are_double_sums(kernel):
    f, g, Z = function(kernel, 7), function(kernel, 5, seed=1), points(kernel, 4, seed=2)
    X, Y, a, b = f.points.raw, g.points.raw, f.coef, g.coef
    values = [math.fsum(a[i] * value(kernel, at(X, i), at(Z, j)) for i in range(7)) for j in range(4)]
    np.testing.assert_allclose(f(Z), values, rtol=1e-9, atol=1e-12 * size(f, Z).max())
    pairs = itertools.product(range(7), range(5))
    inner = math.fsum(a[i] * b[j] * value(kernel, at(X, i), at(Y, j)) for i, j in pairs)
    assert f.inner(g) == pytest.approx(inner, rel=1e-9, abs=1e-10)
    pairs = itertools.product(range(7), range(7))
    square = math.fsum(a[i] * a[j] * value(kernel, at(X, i), at(X, j)) for i, j in pairs)
    assert f.norm() ** 2 == pytest.approx(square, rel=1e-9, abs=1e-10)


@laws
@given(st.one_of(vector_kernels, set_kernels), st.integers(0, 10**6))
def test_the_reproducing_property(kernel, seed):
    """⟨f, k(x, ·)⟩ = f(x)."""
    f, Z = function(kernel, 6, seed % 97), points(kernel, 3, seed % 89 + 1)
    for j, expected in enumerate(f(Z)):
        tolerance = 1e-10 * size(f, Z)[j] + 1e-14
        assert f.inner(mc.Expansion.at(kernel, at(Z, j))) == pytest.approx(expected, abs=tolerance)


@laws
@given(st.one_of(vector_kernels, set_kernels), st.integers(0, 10**6), st.floats(-5, 5))
def test_the_laws_of_an_inner_product(kernel, seed, c):
    f, g, h = (function(kernel, n, seed + s) for s, n in enumerate((6, 4, 6)))
    scale = (f.norm() + g.norm() + h.norm()) ** 2 * (1 + abs(c)) + 1e-12
    assert f.inner(g) == pytest.approx(g.inner(f), abs=1e-10 * scale)
    assert (c * f + g).inner(h) == pytest.approx(c * f.inner(h) + g.inner(h), abs=1e-9 * scale)
    parallelogram = (f + g).norm() ** 2 + (f - g).norm() ** 2
    assert parallelogram == pytest.approx(2 * f.norm() ** 2 + 2 * g.norm() ** 2, abs=1e-9 * scale)
    assert abs(f.inner(g)) <= f.norm() * g.norm() + 1e-9 * scale  # Cauchy-Schwarz
    assert (f + g).norm() <= f.norm() + g.norm() + 1e-7 * scale**0.5
    assert (c * f).norm() == pytest.approx(abs(c) * f.norm(), abs=1e-9 * scale**0.5)


@every_kernel
def test_values_are_linear_in_the_function(kernel):
    f, g, Z = function(kernel, 6), function(kernel, 4, seed=1), points(kernel, 5, seed=2)
    tolerance = 1e-12 * (size(f, Z) + size(g, Z)).max()
    np.testing.assert_allclose((f + g)(Z), f(Z) + g(Z), rtol=1e-10, atol=tolerance)
    np.testing.assert_allclose((f - g)(Z), f(Z) - g(Z), rtol=1e-10, atol=tolerance)
    np.testing.assert_allclose((-f / 4.0 + 2 * g)(Z), -f(Z) / 4 + 2 * g(Z), rtol=1e-10, atol=tolerance)


def test_equal_point_sets_are_merged():
    k, X = mc.Gaussian(1.0), np.random.default_rng(0).normal(size=(5, 2))
    a = np.arange(1.0, 6.0)
    f = mc.Expansion(k, X, a)
    assert len(f + mc.Expansion(k, X.copy(), a)) == len(f + f) == len(mc.Expansion(k, f.points, a) - f) == 5
    np.testing.assert_array_equal((f - f).coef, np.zeros(5))
    assert len(f + mc.Expansion(k, X[::-1], a)) == 10
    assert len(f + mc.Expansion(k, X + 1e-12, a)) == 10
    for make in (sp.csr_array, pd.DataFrame, pl.DataFrame, lambda A: A.tolist()):
        assert len(mc.Expansion(k, make(X), a) + mc.Expansion(k, make(X.copy()), a)) == 5
        assert len(mc.Expansion(k, make(X), a) + mc.Expansion(k, make(2 * X), a)) == 10
        longer = mc.Expansion(k, make(X), a) + mc.Expansion(k, make(2 * X), a)
        assert longer.norm() == pytest.approx((f + mc.Expansion(k, 2 * X, a)).norm())
    shapes = mc.FromFunction(lambda x, z: float(x.sum() * z.sum()))
    objects = [np.ones(2), np.ones((2, 2))]
    assert len(mc.Expansion(shapes, objects, [1, 1]) + mc.Expansion(shapes, list(objects), [1, 2])) == 2
    assert len(mc.Expansion(shapes, objects, [1, 1]) + mc.Expansion(shapes, [2 * x for x in objects], [1, 2])) == 4


def test_several_functions_on_the_same_points():
    k, Z = COMPOSITE, points(COMPOSITE, 4, seed=3)
    f, g = function(k, 6, outputs=(3,)), function(k, 5, seed=1)
    columns = [mc.Expansion(k, f.points, c) for c in f.coef.T]
    np.testing.assert_allclose(f(Z), np.column_stack([c(Z) for c in columns]), rtol=1e-12)
    np.testing.assert_allclose(f.norm(), [c.norm() for c in columns], rtol=1e-12)
    np.testing.assert_allclose(f.inner(g), [c.inner(g) for c in columns], rtol=1e-10)
    np.testing.assert_allclose(g.inner(f), f.inner(g), rtol=1e-10)
    np.testing.assert_allclose(f.inner(f), f.norm() ** 2, rtol=1e-12)
    np.testing.assert_allclose(f.gradient(Z), np.stack([c.gradient(Z) for c in columns], axis=1), rtol=1e-12)
    np.testing.assert_allclose((f + f)(Z), 2 * f(Z), rtol=1e-12)
    assert f(Z).shape == (4, 3)
    assert f.gradient(Z).shape == (4, 3, 3)
    assert "3 functions" in repr(f)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.space in ("vectors", "table")], ids=repr)
def test_the_gradient_is_a_finite_difference(kernel):
    f, Z, h = function(kernel), points(kernel, 4, seed=5), 1e-6
    steps = h * np.eye(3)
    expected = np.stack([(f(Z + e) - f(Z - e)) / (2 * h) for e in steps], axis=1)
    np.testing.assert_allclose(f.gradient(Z), expected, rtol=1e-6, atol=1e-7 * size(f, Z).max())


@pytest.mark.thorough
def test_evaluation_never_stores_the_matrix():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 3))
    f = mc.Expansion(mc.Matern(1.0), X, rng.normal(size=4000))
    f(Z[:300])  # compile outside the measurement
    tracemalloc.start()
    values, norm = f(Z), f.norm()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32e6  # the matrix has 128 MB
    np.testing.assert_allclose(values, f.kernel(Z, X) @ f.coef, rtol=1e-9, atol=1e-9)
    assert norm == pytest.approx(math.sqrt(f.coef @ f.kernel(X) @ f.coef), rel=1e-9)


def test_single_precision_is_kept_and_reduced_in_double():
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(400, 3)).astype(np.float32), rng.normal(size=400)
    k = mc.Gaussian(1.0)
    f, exact = mc.Expansion(k, X, c.astype(np.float32)), mc.Expansion(k, X.astype(float), c.astype(np.float32))
    assert f(X).dtype == np.float32
    assert f.coef.dtype == np.float32
    assert (2.0 * f + f).coef.dtype == np.float32
    assert f.norm() == pytest.approx(exact.norm(), rel=1e-13)
    np.testing.assert_allclose(f(X), exact(X.astype(float)), atol=2e-5)
    for distances in (mc.distance(k, X), mc.distance_to_mean(k, X), mc.nearest(k, X, X, 2)[0]):
        assert distances.dtype == np.float32
    np.testing.assert_allclose(mc.distance(COMPOSITE, X), mc.distance(COMPOSITE, X.astype(float)), rtol=1e-6)


def test_huge_and_tiny_coefficients_have_norms():
    X = [[0.0], [3.0]]
    f = mc.Expansion(mc.Gaussian(1.0), X, [3.0, -2.0])
    for c in (1e200, 1e-200, 1e300, 1e-300):
        assert (c * f).norm() == pytest.approx(c * f.norm(), rel=1e-12)
        assert len((c * f).prune(0.9)) == len(f.prune(0.9))


@every_finite_kernel
def test_finite_rank_functions_collapse_to_weights(kernel):
    f, Z = function(kernel, 30), points(kernel, 6, seed=4)
    phi, w = kernel.features(3), f.weights()
    assert w.shape == (phi.dimension,)
    np.testing.assert_allclose(phi(Z) @ w, f(Z), rtol=1e-9, atol=1e-10 * size(f, Z).max())
    assert np.linalg.norm(w) == pytest.approx(f.norm(), rel=1e-8)
    assert function(kernel, 30, outputs=(2,)).weights(3).shape == (phi.dimension, 2)


def test_sets_collapse_over_their_ground_set():
    k = mc.exp(np.log(2) * mc.Intersection())
    X = [{1, 2}, {2, 3}, set(), {5}]
    f = mc.Expansion(k, X, [1.0, -2.0, 0.5, 1.0])
    np.testing.assert_allclose(k.features({1, 2, 3, 5})(X) @ f.weights(), f(X))
    np.testing.assert_allclose(k.features(range(7))(X) @ f.weights(range(7)), f(X))


def test_weights_are_summed_in_blocks():
    k, X = mc.Polynomial(2, c=1.0), np.random.default_rng(0).normal(size=(50, 60))  # 1891 features, 2²² // 1891 rows
    f = mc.Expansion(k, np.tile(X, (60, 1)), np.repeat(np.random.default_rng(1).normal(size=60), 50))
    np.testing.assert_allclose(f.weights(), k.features(60)(f.points.raw).T @ f.coef, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Linear() + mc.Laplacian(1.0), mc.Matern(1.0)], ids=repr)
def test_infinite_rank_functions_are_non_parametric(kernel):
    with pytest.raises(mc.InvalidInput, match="non-parametric"):
        function(kernel).weights()
    with pytest.raises(mc.InvalidInput, match=r"kernel operations alone.*distance_to_mean.*mean_embedding"):
        mc.mean_coordinates(kernel, points(kernel))


def test_too_many_weights_are_refused_with_figures():
    f = mc.Expansion(mc.Polynomial(4, c=1.0), np.ones((2, 784)), [1.0, 2.0])
    with pytest.raises(mc.InvalidInput, match="128 GB"):
        f.weights()


@every_kernel
def test_pruning_zeros_changes_nothing(kernel):
    f, Z = function(kernel, 8), points(kernel, 5, seed=2)
    coef = f.coef.copy()
    coef[[1, 4, 5]] = 0.0
    f = mc.Expansion(kernel, f.points, coef)
    g = f.prune()
    assert len(g) == 5
    assert (g.pruning.kept, g.pruning.dropped, g.pruning.change) == (5, 3, 0.0)
    np.testing.assert_allclose(g(Z), f(Z), rtol=1e-9, atol=1e-12 * size(f, Z).max())
    assert f.pruning is None


@laws
@given(
    st.one_of(vector_kernels, set_kernels), st.integers(0, 10**6), st.floats(1e-3, 0.99), st.sampled_from([(), (3,)])
)
def test_pruning_honours_its_bound(kernel, seed, tol, outputs):
    f = function(kernel, 12, seed % 97, outputs)
    f = mc.Expansion(kernel, f.points, f.coef * np.logspace(-6, 0, 12).reshape(12, *(1 for _ in outputs)))
    g = f.prune(tol)
    change = (f - g).norm()
    assert np.all(change <= tol * f.norm() + 1e-7 * f.norm())
    assert g.pruning.kept == len(g) == 12 - g.pruning.dropped
    assert g.pruning.change <= tol * (1 + 1e-12)
    if np.all(np.asarray(f.norm()) > 1e-8):
        assert np.max(change / f.norm()) == pytest.approx(g.pruning.change, abs=1e-6)


def test_pruning_many_points_drops_as_many_as_it_can():
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(1500, 2)), rng.normal(size=1500) * 10.0 ** rng.uniform(-6, 0, size=1500)
    f = mc.Expansion(mc.Gaussian(0.3), X, c)
    g = f.prune(0.05)
    order = np.argsort(np.abs(c), kind="stable")
    C, K = c[order], f.kernel(X[order])
    prefix = [math.sqrt(max(0.0, C[:i] @ K[:i, :i] @ C[:i])) / f.norm() for i in range(25, 1500, 25)]
    beyond = next(i for i, share in enumerate(prefix) if share > 0.05)
    assert 25 * beyond <= g.pruning.dropped <= 25 * (beyond + 1)
    assert (f - g).norm() <= 0.05 * f.norm()
    np.testing.assert_array_equal(np.sort(np.abs(c))[-len(g) :], np.sort(np.abs(g.coef)))
    assert "of 1500 points" in str(g.pruning)


def test_the_zero_function_keeps_one_point():
    f = mc.Expansion(mc.Gaussian(1.0), [[0.0], [1.0]], [0.0, 0.0])
    for g in (f.prune(), f.prune(0.5)):
        assert len(g) == 1
        assert g.norm() == 0.0
    cancelling = mc.Expansion(mc.Gaussian(1.0), [[0.0], [0.0]], [1.0, -1.0])
    assert cancelling.norm() == 0.0
    assert cancelling.prune(0.5).norm() == 0.0


def test_functions_of_an_object():
    assert mc.Expansion.at(mc.Intersection(), {1, 2})([{2}])[0] == 1.0
    assert mc.Expansion.at(mc.Delta(), "red")(["red", "blue"]).tolist() == [1.0, 0.0]
    assert mc.Expansion.at(mc.Precomputed([[2.0]]), 0).norm() == pytest.approx(math.sqrt(2))
    for x in (np.array([3.0, 4.0]), [3.0, 4.0], (3.0, 4.0), sp.csr_array([[3.0, 4.0]])):
        assert mc.Expansion.at(mc.Linear(), x).norm() == 5.0


def test_smoothing_weights_evaluate_but_have_no_geometry():
    w, X = mc.Epanechnikov(2.0), [[0.0], [1.0]]
    f = mc.Expansion(w, X, [1.0, 2.0])
    np.testing.assert_allclose(f([[0.5]]), [3 * (1 - 1 / 16)])
    np.testing.assert_allclose((f + mc.Expansion(w, [[3.0]], [1.0]))([[0.5]]), f([[0.5]]))
    assert len(mc.Expansion(w, X, [1.0, 0.0]).prune()) == 1
    for refused in (
        lambda: f.norm(),
        lambda: f.inner(f),
        lambda: f.prune(0.1),
        lambda: mc.distance(w, X),
        lambda: mc.distance_to_mean(w, X, X),
        lambda: mc.nearest(w, X, X, 1),
        lambda: mc.centre(w, X),
        lambda: mc.mean_embedding(w, X),
        lambda: mc.mmd(w, X, X),
        lambda: mc.hsic(w, X, mc.Linear(), X),
        lambda: mc.mean_coordinates(w, X),
    ):
        with pytest.raises(mc.InvalidInput, match="which has a Hilbert space"):
            refused()


def test_functions_are_frozen():
    c = np.array([1.0, 2.0])
    f = mc.Expansion(mc.Linear(), [[1.0], [2.0]], c)
    c[0] = 9.0
    assert f.coef.tolist() == [1.0, 2.0]
    with pytest.raises(AttributeError):
        f.coef = c
    with pytest.raises(ValueError, match="read-only"):
        f.coef[0] = 3.0
    assert (np.float64(2) * f).coef.tolist() == (f * 2).coef.tolist() == [2.0, 4.0]
    for wrong in (lambda: f + 1.0, lambda: f * f, lambda: f * "a", lambda: f / f, lambda: 1.0 - f):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    ("coef", "words"),
    [
        ([1.0], r"got shape \(1,\)"),
        ([[1.0, 2.0]], r"got shape \(1, 2\)"),
        (3.0, r"got shape \(\)"),
        (np.ones((2, 2, 2)), r"\(2, 2, 2\)"),
        (np.ones((2, 0)), r"\(2, 0\)"),
        ([1.0, np.nan], "NaN"),
        ([1.0, np.inf], "NaN or infinity"),
        (["a", "b"], "dtype"),
        ([1j, 2j], "complex"),
        ([True, False], "bool"),
        ([None, None], "object"),
        ([[1.0], [1.0, 2.0]], "same number of coefficients"),
    ],
)
def test_bad_coefficients_are_refused(coef, words):
    with pytest.raises(mc.InvalidInput, match=words) as caught:
        mc.Expansion(mc.Linear(), [[1.0], [2.0]], coef)
    assert caught.value.advice.endswith(".")


def test_bad_combinations_are_refused():
    f = mc.Expansion(mc.Linear(), [[1.0, 2.0]], [1.0])
    g = mc.Expansion(mc.Gaussian(1.0), [[1.0, 2.0]], [1.0])
    two = mc.Expansion(mc.Linear(), [[1.0, 2.0]], [[1.0, 2.0]])
    three = mc.Expansion(mc.Linear(), [[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    wide = mc.Expansion(mc.Linear(), np.ones((1, 3)), [1.0])
    for refused, words in (
        (lambda: f + g, "the space of the same kernel"),
        (lambda: f - g, "the space of the same kernel"),
        (lambda: f.inner(g), "the space of the same kernel"),
        (lambda: f + two, "same number of outputs"),
        (lambda: two.inner(three), "column by column"),
        (lambda: f + wide, "same columns|different lengths"),
        (lambda: f.inner(wide), "same columns"),
        (lambda: f([[1.0]]), "same columns"),
        (lambda: f.inner(3.0), "another Expansion"),
        (lambda: f / 0, "≠ 0"),
        (lambda: f * float("nan"), "finite"),
        (lambda: 1e300 * (1e300 * f), "finite"),
        (lambda: (1e300 * f)([[1e300, 0.0]]), "overflow"),
        (lambda: (1e300 * f).inner(1e300 * f), "overflow"),
        (lambda: mc.Expansion("rbf", [[1.0]], [1.0]), "must be a kernel"),
        (lambda: mc.Expansion(mc.Linear(), [[np.nan]], [1.0]), "finite"),
        (lambda: mc.Expansion(mc.Linear(), np.empty((0, 2)), []), "at least one point"),
        (lambda: f.prune(-0.1), "tol"),
        (lambda: f.prune(1.0), "tol"),
        (lambda: f.prune("a"), "tol"),
        (lambda: f.prune(float("nan")), "tol"),
        (lambda: mc.Expansion(mc.Intersection(), [{1}], [1.0]).gradient([{1}]), "2-D|numeric|matrix"),
    ):
        with pytest.raises(mc.InvalidInput, match=words) as caught:
            refused()
        assert caught.value.advice.endswith(".")


# -- distances --------------------------------------------------------------------------------------------------------


@every_kernel
def test_distances_are_norms_of_differences(kernel):
    X, Z = points(kernel, 6), points(kernel, 4, seed=1)
    D = mc.distance(kernel, X, Z)
    for i, j in itertools.product(range(6), range(4)):
        x, z = at(X, i), at(Z, j)
        square = value(kernel, x, x) - 2 * value(kernel, x, z) + value(kernel, z, z)
        assert D[i, j] ** 2 == pytest.approx(square, abs=1e-11 * (1 + value(kernel, x, x) + value(kernel, z, z)))
    np.testing.assert_allclose(mc.distance(kernel, X, Z, squared=True), D**2, rtol=1e-12, atol=1e-14)
    own = mc.distance(kernel, X)
    np.testing.assert_array_equal(np.diagonal(own), np.zeros(6))
    np.testing.assert_array_equal(own, own.T)


@laws
@given(st.one_of(vector_kernels, set_kernels), st.integers(0, 10**6))
def test_distances_are_a_metric(kernel, seed):
    D = mc.distance(kernel, points(kernel, 6, seed % 97))
    assert (D >= 0).all()
    longest = D.max(initial=0.0) + math.sqrt(np.abs(kernel.diag(points(kernel, 6, seed % 97))).max())
    assert (D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-6 * longest).all()


@every_finite_kernel
def test_distances_are_euclidean_distances_of_features(kernel):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    phi = kernel.features(3)
    px, pz = phi(X), phi(Z)
    scale = max(np.linalg.norm(px, axis=1).max(), np.linalg.norm(pz, axis=1).max())
    expected = np.linalg.norm(px[:, None] - pz[None], axis=2)
    np.testing.assert_allclose(mc.distance(kernel, X, Z), expected, atol=1e-7 * scale)
    to_mean = np.linalg.norm(pz - px.mean(axis=0), axis=1)
    np.testing.assert_allclose(mc.distance_to_mean(kernel, X, Z), to_mean, rtol=1e-9)
    np.testing.assert_allclose(mc.mean_coordinates(kernel, X), px.mean(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mc.mean_coordinates(kernel, X, 3), px.mean(axis=0), rtol=1e-10, atol=1e-12)


@every_kernel
def test_distance_to_the_mean_is_lecture_000s_formula(kernel):
    X, Z = points(kernel, 7), points(kernel, 4, seed=1)
    K, to_X = kernel(X), kernel(Z, X)
    squares = kernel.diag(Z) - 2 * to_X.mean(axis=1) + K.mean()
    tolerance = 1e-12 * (1 + np.abs(K).max() + np.abs(kernel.diag(Z)).max())
    np.testing.assert_allclose(mc.distance_to_mean(kernel, X, Z, squared=True), squares, rtol=1e-9, atol=tolerance)
    mu = mc.mean_embedding(kernel, X)
    norms = [(mc.Expansion.at(kernel, at(Z, j)) - mu).norm() for j in range(4)]
    np.testing.assert_allclose(mc.distance_to_mean(kernel, X, Z), norms, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(mc.distance_to_mean(kernel, X), mc.distance_to_mean(kernel, X, X), atol=1e-7)


NEAR = [
    (mc.Gaussian(1.5), lambda r, _: math.sqrt(2) * mpmath_expm1(-(r**2) / (2 * 1.5**2))),
    (mc.Laplacian(2.0), lambda _, r1: math.sqrt(2) * mpmath_expm1(-r1 / 2.0)),
    (mc.Linear(), lambda r, _: r),
    (3.0 * mc.Gaussian(1.5) + 2.0 * mc.Linear(), lambda r, _: math.sqrt(3 * (r / 1.5) ** 2 + 2 * r**2)),
    (mc.Gaussian(1.5) * mc.Gaussian(1.5), lambda r, _: r / 1.5 * math.sqrt(2)),
]


def mpmath_expm1(x):
    """√(1 − eˣ) for x ≤ 0, to all digits."""
    import mpmath

    return float(mpmath.sqrt(-mpmath.expm1(mpmath.mpf(x))))


@pytest.mark.parametrize(("kernel", "exact"), NEAR, ids=[repr(k) for k, _ in NEAR])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_near_duplicates_keep_their_digits(kernel, exact, offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + offset
    Z = X + 1e-9 * rng.normal(size=(20, 3))
    D = mc.distance(kernel, X, Z)
    for i in range(20):
        difference = [float(a) - float(b) for a, b in zip(X[i], Z[i])]
        r, r1 = math.sqrt(math.fsum(e * e for e in difference)), math.fsum(map(abs, difference))
        assert D[i, i] == pytest.approx(exact(r, r1), rel=1e-6)
    found, where = mc.nearest(kernel, X, Z, 1)
    np.testing.assert_array_equal(where[:, 0], np.arange(20))
    np.testing.assert_allclose(found[:, 0], np.diagonal(D), rtol=1e-9)


def test_an_offset_does_not_cancel_digits():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    k, far = mc.Linear(), 1e6
    X, Z = (X + far) - far, (Z + far) - far  # what is left of them at this offset
    np.testing.assert_allclose(mc.distance(k, X + far, Z + far), mc.distance(k, X, Z), rtol=1e-12)
    np.testing.assert_allclose(mc.distance_to_mean(k, X + far, Z + far), mc.distance_to_mean(k, X, Z), rtol=1e-12)
    np.testing.assert_allclose(mc.centre(k, X + far), mc.centre(k, X), atol=1e-12)
    np.testing.assert_allclose(mc.centre(k, X + far, Z + far), mc.centre(k, X, Z), atol=1e-12)
    near, there = mc.mmd(k, X, Z), mc.mmd(k, X + far, Z + far)
    assert there.biased == pytest.approx(near.biased, rel=1e-10)
    assert there.unbiased == pytest.approx(near.unbiased, rel=1e-10)


@every_kernel
@pytest.mark.parametrize("n", [1, 3, 6])
def test_neighbours_are_those_of_a_full_sort(kernel, n):
    X, Z = points(kernel, 6), points(kernel, 5, seed=1)
    D = mc.distance(kernel, X, Z).T
    distances, indices = mc.nearest(kernel, X, Z, n)
    assert distances.shape == indices.shape == (5, n)
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :n], atol=1e-7)
    np.testing.assert_allclose(np.take_along_axis(D, indices, 1), distances, atol=1e-7)
    for row in indices:
        assert len(set(row.tolist())) == n


def test_the_distance_of_a_text_to_itself_is_a_number():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefgh "), size=90)) for _ in range(60)]
    distances, indices = mc.nearest(mc.NGrams((2, 4)).normalize().exp().normalize(), texts, texts, 2)
    assert distances[:, 0] == pytest.approx(0.0, abs=1e-7)
    assert indices[:, 0].tolist() == list(range(60))


def test_neighbours_over_many_tiles():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2500, 4)), rng.normal(size=(600, 4))
    k = mc.Gaussian(1.0)
    order = np.argsort(np.sqrt(((Z[:, None] - X[None]) ** 2).sum(axis=2)), axis=1, kind="stable")
    D = mc.distance(k, Z, X)
    for n in (1, 5, 40):
        distances, indices = mc.nearest(k, X, Z, n)
        np.testing.assert_array_equal(indices, order[:, :n])
        np.testing.assert_allclose(distances, D[np.arange(600)[:, None], indices], rtol=1e-12)


def test_far_from_all_points_the_logarithm_orders_them():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1500, 2)), 1e4 + rng.normal(size=(300, 2))
    distances, indices = mc.nearest(mc.Gaussian(1.0), X, Z, 3)  # all values of k underflow
    D = np.sqrt(((Z[:, None] - X[None]) ** 2).sum(axis=2))
    np.testing.assert_array_equal(indices, np.argsort(D, axis=1, kind="stable")[:, :3])
    np.testing.assert_allclose(distances, math.sqrt(2), rtol=1e-15)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1500])
def test_equal_distances_over_many_tiles(n):
    X = np.random.default_rng(0).integers(0, 3, (1500, 2)).astype(float)
    D = mc.distance(mc.Linear(), X[:40], X)
    _, indices = mc.nearest(mc.Linear(), X, X[:40], n)
    np.testing.assert_array_equal(indices, np.argsort(D, axis=1, kind="stable")[:, :n])


def test_equally_near_points_come_in_order():
    X = np.repeat(np.arange(3), 1000).astype(str)
    _, indices = mc.nearest(mc.Delta(), list(X), ["1", "2", "9"], 4)
    assert indices.tolist() == [[1000, 1001, 1002, 1003], [2000, 2001, 2002, 2003], [0, 1, 2, 3]]
    words = ["ab", "abc", "xyz", "b"]
    k = mc.FromFunction(lambda s, t: float(len(set(s) & set(t))))
    distances, indices = mc.nearest(k, words, ["abcd"], 2)
    assert [words[i] for i in indices[0]] == ["abc", "ab"]
    np.testing.assert_allclose(distances[0], [1.0, math.sqrt(2)])


@pytest.mark.parametrize("n", [0, 4, -1, 1.5, True, "a", None])
def test_impossible_numbers_of_neighbours(n):
    with pytest.raises(mc.InvalidInput, match=r"from 1 to 3, got .* the number of points"):
        mc.nearest(mc.Linear(), np.ones((3, 2)), np.ones((2, 2)), n)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.space != "indices"], ids=repr)
def test_centring_subtracts_the_mean(kernel):
    X, Z = points(kernel, 7), points(kernel, 4, seed=1)
    K, K_test = kernel(X), kernel(Z, X)
    H = np.eye(7) - 1 / 7
    tolerance = 1e-12 * (np.abs(K).max() + np.abs(K_test).max() + np.abs(kernel.diag(Z)).max())
    test_rows = (K_test - np.ones((4, 7)) @ K / 7) @ H  # (phi(z) − mean)ᵀ(phi(x) − mean)
    for centred in (mc.centre(K), mc.centre(kernel, X), mc.centre(mc.gram.of(kernel, X))):
        np.testing.assert_allclose(centred, H @ K @ H, rtol=1e-9, atol=tolerance)
        np.testing.assert_array_equal(centred, centred.T)
    for centred in (mc.centre(K, K_test), mc.centre(kernel, X, Z), mc.centre(K, mc.gram.of(kernel, Z, X))):
        np.testing.assert_allclose(centred, test_rows, rtol=1e-9, atol=tolerance)
    squares = np.diagonal(mc.centre(kernel, X))
    np.testing.assert_allclose(mc.distance_to_mean(kernel, X, squared=True), squares, rtol=1e-9, atol=tolerance)


def test_large_centred_matrices_are_exactly_symmetric():
    X = np.random.default_rng(0).normal(size=(700, 3))
    for centred in (mc.centre(COMPOSITE(X)), mc.centre(COMPOSITE, X)):
        np.testing.assert_array_equal(centred, centred.T)
        np.testing.assert_allclose(centred.sum(axis=0), 0.0, atol=1e-9)


def test_distances_that_overflow_are_refused():
    k = mc.Precomputed([[1.7e308, -1.7e308], [-1.7e308, 1.7e308]])
    for compute in (mc.distance, mc.distance_to_mean, mc.centre):
        with pytest.raises(mc.InvalidInput, match="overflow"):
            compute(k, [0, 1])
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.nearest(k, [0, 1], [0], 1)
    with pytest.raises(mc.InvalidInput, match="HSIC must fit float64, got an overflow"):
        mc.hsic(mc.Linear(), [[0.0], [1e100]], mc.Linear(), [[0.0], [1e100]], unbiased=False)


def test_pairwise_matrices_are_points_too():
    rng = np.random.default_rng(0)
    X, Z, c = rng.normal(size=(9, 2)), rng.normal(size=(4, 2)), rng.normal(size=9)
    c[[2, 5]] = 0.0
    K, K_test = COMPOSITE(X), COMPOSITE(Z, X)
    f, g = mc.Expansion(COMPOSITE, X, c), mc.Expansion(mc.Precomputed(), K, c)
    for h in (g, g.prune(), g.prune() + g.prune(), g + g):
        copies = h(K_test) / f(Z)
        np.testing.assert_allclose(copies, copies[0], rtol=1e-9)
    assert g.norm() == pytest.approx(f.norm(), rel=1e-9)
    np.testing.assert_allclose(mc.distance(mc.Precomputed(), K), mc.distance(COMPOSITE, X), atol=1e-7)


def test_centring_keeps_single_precision():
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    k = mc.Gaussian(1.0)
    assert mc.centre(k(X)).dtype == mc.centre(k, X).dtype == mc.centre(k, X, X).dtype == np.float32
    assert mc.centre([[2, 1], [1, 2]]).dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.ones((2, 3)),), "square and symmetric"),
        (([[1.0, 2.0], [0.0, 1.0]],), "K − Kᵀ up to 2"),
        (([1.0, 2.0],), "must be a matrix"),
        (([[np.nan]],), "finite"),
        ((np.empty((0, 0)),), "must be a matrix"),
        (([["a"]],), "numbers"),
        ((np.eye(2), np.ones((1, 3))), "one column per training point, 2"),
        ((np.eye(2), np.ones((1, 2)), np.ones((1, 2))), "needs a kernel"),
        ((mc.Linear(),), "needs points"),
    ],
)
def test_what_cannot_be_centred(arguments, words):
    with pytest.raises(mc.InvalidInput, match=words) as caught:
        mc.centre(*arguments)
    assert caught.value.advice.endswith(".")


def test_large_distances_are_streamed_or_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(600, 2))
    k = mc.Gaussian(1.0)
    expected = mc.distance_to_mean(k, X), mc.nearest(k, X, X, 3)[1]
    monkeypatch.setenv("MERCER_MEMORY", "1 MB")
    with pytest.raises(mc.InvalidInput, match=r"600×600 matrix of distances.*2.88 MB.*nearest"):
        mc.distance(k, X)
    np.testing.assert_allclose(mc.distance_to_mean(k, X), expected[0])
    np.testing.assert_array_equal(mc.nearest(k, X, X, 3)[1], expected[1])


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.sampled_from([k for k in KERNELS if k.space == "vectors" and np.ndim(getattr(k, "sigma", 0)) == 0]),
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 6), st.integers(1, 4)),
        elements=st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1e300, -1e300, 1e-300, 1e160, 5e-324])),
    ),
    st.sampled_from([1.0, 1e300, 1e-300]),
)
def test_any_finite_numbers_work_or_are_refused(kernel, X, c):
    """Never a crash, a warning, or a silent NaN."""
    f = mc.Expansion(kernel, X, np.full(len(X), c))
    for compute in (
        lambda: mc.distance(kernel, X),
        lambda: mc.distance_to_mean(kernel, X, X),
        lambda: mc.nearest(kernel, X, X, 2)[0],
        lambda: mc.centre(kernel, X),
        lambda: f(X),
        lambda: f.norm(),
        lambda: f.prune(0.5).coef,
        lambda: mc.mmd(kernel, X, X[::-1], permutations=3).statistic,
        lambda: mc.hsic(kernel, X, kernel, X, unbiased=False, permutations=3).statistic,
    ):
        try:
            result, refused = compute(), "overflow"
        except mc.InvalidInput as error:
            result, refused = 0.0, str(error)
        assert np.isfinite(result).all()
        assert "overflow" in refused or "Rescale" in refused


# -- embeddings -------------------------------------------------------------------------------------------------------


@every_kernel
def test_the_mean_embedding_gives_means(kernel):
    X, f = points(kernel, 7), function(kernel, 5, seed=1)
    mu = mc.mean_embedding(kernel, X)
    assert mu.inner(f) == pytest.approx(f(X).mean(), rel=1e-9, abs=1e-10)
    counts = np.array([1, 2, 0, 1, 3, 1, 1])
    repeated = [i for i, n in enumerate(counts) for _ in range(n)]
    twice = X[repeated] if isinstance(X, np.ndarray) else [X[i] for i in repeated]
    weighted = mc.mean_embedding(kernel, X, counts)
    assert weighted.inner(f) == pytest.approx(mc.mean_embedding(kernel, twice).inner(f), rel=1e-9, abs=1e-10)
    for bad in ([1.0] * 6 + [-1.0], [0.0] * 7, [1.0] * 6, np.ones((7, 2)), [np.nan] * 7):
        with pytest.raises(mc.InvalidInput):
            mc.mean_embedding(kernel, X, bad)


def naive_mmd(K, n):
    """Both estimates by double loops over a joint Gram matrix."""
    N = len(K)
    x, y = range(n), range(n, N)
    m = N - n
    cross = math.fsum(K[i, j] for i in x for j in y) / (n * m)
    biased = math.fsum(K[i, j] for i in x for j in x) / n**2 + math.fsum(K[i, j] for i in y for j in y) / m**2
    fair = math.fsum(K[i, j] for i in x for j in x if i != j) / (n * (n - 1))
    fair += math.fsum(K[i, j] for i in y for j in y if i != j) / (m * (m - 1))
    return biased - 2 * cross, fair - 2 * cross


@every_kernel
def test_mmd_is_the_distance_of_mean_embeddings(kernel):
    X, Y = points(kernel, 8), points(kernel, 5, seed=1)
    joint = np.concatenate([X, Y]) if isinstance(X, np.ndarray) else [*X, *Y]
    K = kernel(joint)
    biased, fair = naive_mmd(K, 8)
    result = mc.mmd(kernel, X, Y)
    tolerance = 1e-12 * (1 + np.abs(K).max())
    assert result.biased == pytest.approx(biased, rel=1e-9, abs=tolerance)
    assert result.unbiased == result.statistic == pytest.approx(fair, rel=1e-9, abs=tolerance)
    assert mc.mmd(kernel, X, Y, unbiased=False).statistic == result.biased
    distance = (mc.mean_embedding(kernel, X) - mc.mean_embedding(kernel, Y)).norm()
    assert distance**2 == pytest.approx(result.biased, rel=1e-7, abs=100 * tolerance)
    assert result.p_value is None
    assert "unbiased" in str(result)


def test_unbiased_mmd_is_zero_on_average_under_the_hypothesis():
    k, statistics = mc.Gaussian(1.0), []
    for seed in range(300):
        Z = np.random.default_rng(seed).normal(size=(25, 2))
        result = mc.mmd(k, Z[:10], Z[10:])
        statistics.append((result.unbiased, result.biased))
    (fair, biased), deviation = np.mean(statistics, axis=0), np.std(statistics, axis=0)[0]
    assert abs(fair) < 3 * deviation / math.sqrt(300)
    assert biased > 10 * deviation / math.sqrt(300)


@pytest.mark.thorough
@pytest.mark.parametrize("unbiased", [True, False])
def test_p_values_are_uniform_under_the_hypothesis(unbiased):
    k, mmds, hsics = mc.Gaussian(1.0), [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(12, 2)), rng.normal(size=(17, 2))
        mmds.append(mc.mmd(k, X, Y, unbiased=unbiased, permutations=99, random_state=seed).p_value)
        hsics.append(mc.hsic(k, X, k, Y[:12], unbiased=unbiased, permutations=99, random_state=seed).p_value)
    for p in (mmds, hsics):
        assert np.min(p) >= 0.01
        for level in (0.1, 0.25, 0.5, 0.75, 0.9):
            assert abs(np.mean(np.array(p) <= level) - level) < 3.3 * math.sqrt(level * (1 - level) / 200)


def test_p_values_are_tiny_under_an_alternative():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 1.0
    k = mc.Gaussian(1.0)
    assert mc.mmd(k, X, Y, permutations=999).p_value == 0.001
    wide = mc.mmd(k, X, 3 * rng.normal(size=(60, 2)), permutations=999)  # the same mean, another variance
    assert wide.p_value == 0.001
    assert wide.permuted.shape == (999,)
    angle = rng.uniform(0, 2 * np.pi, size=80)
    circle = np.cos(angle)[:, None] + 0.05 * rng.normal(size=(80, 1)), np.sin(angle)[:, None]
    result = mc.hsic(mc.Gaussian(0.5), circle[0], mc.Gaussian(0.5), circle[1], permutations=999)
    assert result.p_value <= 0.002
    assert mc.hsic(mc.Linear(), circle[0], mc.Linear(), circle[1], permutations=999).p_value > 0.05
    assert "independent" in str(result)
    assert "by 999 permutations" in str(result)


def test_every_split_is_a_tie_of_itself():
    """With 2 + 2 points there are three splits, so that p cannot be below 1/3 but by rounding."""
    k = mc.Gaussian(1.0)
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(4, 3))
        for unbiased in (True, False):
            p = mc.mmd(k, X[:2], X[2:], unbiased=unbiased, permutations=600, random_state=seed).p_value
            assert min(abs(p - share) for share in (1 / 3, 2 / 3, 1.0)) < 0.07


def naive_hsic(K, L):
    n = len(K)
    pairs = list(itertools.product(range(n), range(n)))
    H = np.eye(n) - 1 / n
    biased = np.trace(K @ H @ L @ H) / n**2
    k, m = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    trace = math.fsum(k[i, j] * m[j, i] for i, j in pairs)
    sums = math.fsum(k[i, j] for i, j in pairs) * math.fsum(m[i, j] for i, j in pairs)
    along = math.fsum(k[i, j] * m[j, q] for i, j in pairs for q in range(n))
    return biased, (trace + sums / ((n - 1) * (n - 2)) - 2 / (n - 2) * along) / (n * (n - 3))


@every_kernel
def test_hsic_is_the_estimator_of_its_papers(kernel):
    X, ky = points(kernel, 8), mc.exp(np.log(2) * mc.Intersection())
    Y = points(ky, 8, seed=3)
    K, L = kernel(X), ky(Y)
    biased, fair = naive_hsic(K, L)
    result = mc.hsic(kernel, X, ky, Y)
    tolerance = 1e-12 * np.abs(K).max() * np.abs(L).max()
    assert result.biased == pytest.approx(biased, rel=1e-9, abs=tolerance)
    assert result.unbiased == result.statistic == pytest.approx(fair, rel=1e-9, abs=tolerance)
    assert mc.hsic(kernel, X, ky, Y, unbiased=False).statistic == result.biased
    assert mc.hsic(ky, Y, kernel, X).unbiased == pytest.approx(result.unbiased, rel=1e-9, abs=tolerance)


@every_finite_kernel
def test_biased_hsic_is_the_norm_of_the_covariance_of_features(kernel):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, :1] ** 2
    phi = kernel.features(3)(X)
    covariance = (phi - phi.mean(axis=0)).T @ (y - y.mean()) / 30
    assert mc.hsic(kernel, X, mc.Linear(), y).biased == pytest.approx((covariance**2).sum(), rel=1e-9)


@pytest.mark.parametrize("unbiased", [True, False])
def test_permuted_statistics_are_those_of_permuted_samples(unbiased):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(6, 2))
    k, joint = mc.Gaussian(1.0), np.concatenate([X, Y])
    K = k(joint)
    result = mc.mmd(k, X, Y, unbiased=unbiased, permutations=20, random_state=5)
    first = np.random.default_rng(5).permuted(np.tile(np.r_[np.ones(9), np.zeros(6)], (20, 1)), axis=1)
    for mask, statistic in zip(first, result.permuted):
        order = np.argsort(-mask, kind="stable")
        assert statistic == pytest.approx(naive_mmd(K[np.ix_(order, order)], 9)[int(unbiased)], abs=1e-13)
    dependent = mc.hsic(k, X, k, X**2, unbiased=unbiased, permutations=20, random_state=5)
    shuffles = np.random.default_rng(5)
    for statistic in dependent.permuted:
        order = shuffles.permutation(9)
        expected = naive_hsic(k(X), k(X[order] ** 2))[int(unbiased)]
        assert statistic == pytest.approx(expected, abs=1e-13)
    reached = (result.permuted >= result.statistic - 1e-14).sum()
    assert result.p_value == (1 + reached) / 21


def test_tests_do_not_depend_on_the_memory_budget(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 3)), rng.normal(size=(280, 3)) + 0.1
    Z = X[:, :1] ** 2 + rng.normal(size=(300, 1))

    def two():
        return mc.mmd(COMPOSITE, X, Y, permutations=30)

    def paired():
        return mc.hsic(mc.Gaussian(1.0), X, mc.Laplacian(1.0), Z, permutations=9)

    stored = two(), paired()
    monkeypatch.setenv("MERCER_MEMORY", "200 kB")
    for tiled, dense in zip((two(), paired()), stored):
        np.testing.assert_allclose(tiled.permuted, dense.permuted, rtol=1e-9, atol=1e-14)
        assert tiled.statistic == pytest.approx(dense.statistic, rel=1e-9)
        assert tiled.p_value == dense.p_value


def test_seeds_make_tests_reproducible():
    X = np.random.default_rng(0).normal(size=(12, 2))
    k = mc.Gaussian(1.0)
    for test in (
        lambda **options: mc.mmd(k, X, X + 0.1, **options),
        lambda **options: mc.hsic(k, X, k, X[::-1], **options),
    ):
        np.testing.assert_array_equal(test(permutations=9).permuted, test(permutations=9).permuted)
        generator = test(permutations=9, random_state=np.random.default_rng(3))
        np.testing.assert_array_equal(generator.permuted, test(permutations=9, random_state=3).permuted)
        assert (test(permutations=9, random_state=4).permuted != generator.permuted).any()
        assert test(permutations=9, random_state=None).permuted.shape == (9,)


def test_mmd_of_frames_sparse_rows_and_words():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    k = mc.Gaussian(1.0)
    expected = mc.mmd(k, X, Y).statistic
    for make in (sp.csr_array, pd.DataFrame, pl.DataFrame, lambda A: A.tolist()):
        assert mc.mmd(k, make(X), make(Y)).statistic == pytest.approx(expected, rel=1e-12)
    letters = mc.FromFunction(lambda s, t: float(len(set(s) & set(t))))
    left, right = ["ab", "abc", "a"] * 4, ["xy", "yz", "xyz"] * 4
    assert mc.mmd(letters, left, right, permutations=99).p_value == 0.01
    assert mc.hsic(letters, left, mc.Delta(), left, permutations=99).p_value == 0.01


def test_bad_samples_are_refused():
    k, X = mc.Gaussian(1.0), np.ones((5, 2))
    for refused, words in (
        (lambda: mc.mmd(k, X[:1], X), "at least 2 points"),
        (lambda: mc.mmd(k, X, X[:1]), "at least 2 points"),
        (lambda: mc.mmd(k, X, np.ones((5, 3))), "same columns"),
        (lambda: mc.mmd(k, X, [[1.0, np.nan]] * 3), "finite"),
        (lambda: mc.mmd(k, X, np.empty((0, 2))), "at least one point"),
        (lambda: mc.mmd(k, X, X, permutations=-1), "permutations"),
        (lambda: mc.mmd(k, X, X, permutations=1.5), "permutations"),
        (lambda: mc.mmd(k, X, X, permutations=5, random_state="a"), "random_state"),
        (lambda: mc.mmd(k, X, X, permutations=5, random_state=-1), "random_state"),
        (lambda: mc.hsic(k, X, k, X[:4]), "point by point"),
        (lambda: mc.hsic(k, X[:3], k, X[:3]), "at least 4 points"),
        (lambda: mc.hsic(k, X[:1], k, X[:1], unbiased=False), "at least 2 points"),
        (lambda: mc.hsic(k, X, "rbf", X), "need a kernel"),
        (lambda: mc.distance("rbf", X), "need a kernel"),
        (lambda: mc.distance(k, X, np.ones((2, 3))), "same columns"),
        (lambda: mc.distance_to_mean(k, X, np.ones((2, 3))), "same columns"),
        (lambda: mc.nearest(k, X, np.ones((2, 3)), 1), "same columns"),
    ):
        with pytest.raises(mc.InvalidInput, match=words) as caught:
            refused()
        assert caught.value.advice.endswith(".")
    small = mc.hsic(k, X[:3], k, X[:3], unbiased=False)
    assert small.unbiased is None
    assert "unbiased not defined" in str(small)


def test_identical_samples_are_at_distance_zero():
    X = np.random.default_rng(0).normal(size=(9, 2))
    for kernel in (mc.Gaussian(1.0), mc.Polynomial(2), COMPOSITE):
        assert mc.mmd(kernel, X, X).biased == pytest.approx(0.0, abs=1e-13)
        assert mc.mmd(kernel, X, X, permutations=19, unbiased=False).p_value == 1.0
