"""Every leaf against its naive double loop, in both precisions, dense and sparse, and where digits are at risk."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import mercer as mc
import naive

rng = np.random.default_rng(0)
LEAVES = [
    (mc.Linear(), naive.dot),
    (mc.Polynomial(2), naive.polynomial(2, 0.0)),
    (mc.Polynomial(5, c=0.3), naive.polynomial(5, 0.3)),
    (mc.Bilinear(np.diag([1.0, 2.0, 3.0])), lambda x, z: x[0] * z[0] + 2 * x[1] * z[1] + 3 * x[2] * z[2]),
    (mc.Gaussian(1.3), naive.gaussian(1.3)),
    (mc.Gaussian([0.5, 1.0, 2.0]), lambda x, z: naive.gaussian(1.0)(x / [0.5, 1.0, 2.0], z / [0.5, 1.0, 2.0])),
    (mc.Laplacian(0.8), naive.laplacian(0.8)),
    *((mc.Matern(1.2, nu), naive.matern(1.2, nu)) for nu in (0.5, 1.5, 2.5, 0.3, 3.7, 40.0)),
    (mc.RationalQuadratic(1.1, 0.7), naive.rational_quadratic(1.1, 0.7)),
    (mc.Periodic(0.9, 2.5), naive.periodic(0.9, 2.5)),
    *((mc.ArcCosine(n), naive.arc_cosine(n)) for n in (0, 1, 2)),
    (mc.Tanh(0.5, -1.0), lambda x, z: np.tanh(0.5 * naive.dot(x, z) - 1.0)),
    (mc.Uniform(2.0), naive.compact(lambda r: 1.0, 2.0)),
    (mc.Triangular(2.0), naive.compact(lambda r: 1 - r, 2.0)),
    (mc.Epanechnikov(2.0), naive.compact(lambda r: 1 - r**2, 2.0)),
    (mc.Biweight(2.0), naive.compact(lambda r: (1 - r**2) ** 2, 2.0)),
    (mc.Tricube(2.0), naive.compact(lambda r: (1 - r**3) ** 3, 2.0)),
    (mc.Constant(2.0), lambda x, z: 2.0),
]


@pytest.mark.parametrize(("kernel", "reference"), LEAVES, ids=lambda v: repr(v) if isinstance(v, mc.Similarity) else "")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leaf_is_its_formula(kernel, reference, dtype):
    X, Z = rng.normal(size=(9, 3)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)
    X[0] = Z[0]
    X[1] = 0.0
    K = kernel(X, Z)
    expected = naive.gram(reference, X.astype(float), Z.astype(float))
    assert K.dtype == dtype
    np.testing.assert_allclose(K, expected, rtol=0, atol=200 * np.finfo(dtype).eps * np.abs(expected).max())
    np.testing.assert_allclose(np.diag(kernel(X)), kernel.diag(X), rtol=50 * np.finfo(dtype).eps, atol=1e-30)


SPARSE = [mc.Linear(), mc.Polynomial(3, c=1.0), mc.Gaussian(1.3), mc.Gaussian([0.5, 1.0, 2.0, 3.0]), mc.Matern(1.0),
          mc.RationalQuadratic(1.0), mc.ArcCosine(1), mc.Bilinear(np.eye(4)), mc.Gaussian(1.0) * mc.Linear() + 1.0,
          mc.Polynomial(2).normalize(), mc.Gaussian(1.0).on(0, 2), mc.Epanechnikov(2.0), mc.Laplacian(1.0),
          mc.Laplacian([0.5, 1.0, 2.0, 3.0])]  # fmt: skip


@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_matrix])
def test_sparse_equals_dense(kernel, form):
    X = rng.normal(size=(7, 4)) * (rng.random((7, 4)) < 0.5)
    Z = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5)
    np.testing.assert_allclose(kernel(form(X)), kernel(X), atol=1e-14)
    np.testing.assert_allclose(kernel(form(X), form(Z)), kernel(X, Z), atol=1e-14)
    np.testing.assert_allclose(kernel(form(X), Z), kernel(X, Z), atol=1e-14)
    assert kernel(form(X.astype(np.float32))).dtype == np.float32


def test_sparse_is_refused_where_it_makes_no_sense():
    X = sp.csr_array(np.eye(3))
    with pytest.raises(mc.InvalidInput, match="dense"):
        mc.Periodic(1.0, 1.0)(X)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 20, 80])
def test_offsets_do_not_cancel_digits(d):
    """Float64 data at offset 1e6 with unit spread: 12 digits in the float64 Gram, 5 in the float32 one."""
    X = rng.normal(size=(16, d)) + 1e6
    exact = [[sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, z)) for z in X] for x in X]
    sigma = np.sqrt(d)
    for kernel, f in (
        (mc.Gaussian(sigma), lambda D: mpmath.exp(-D / (2 * mpmath.mpf(sigma) ** 2))),
        (mc.Gaussian(np.full(d, sigma)), lambda D: mpmath.exp(-D / (2 * mpmath.mpf(sigma) ** 2))),
        (mc.Matern(sigma, 0.5), lambda D: mpmath.exp(-mpmath.sqrt(D) / mpmath.mpf(sigma))),
        (mc.Gaussian(sigma) + mc.Gaussian(sigma), lambda D: 2 * mpmath.exp(-D / (2 * mpmath.mpf(sigma) ** 2))),
    ):
        with mpmath.workdps(40):
            true = np.array([[float(f(mpmath.mpf(D.numerator) / D.denominator)) for D in row] for row in exact])
        assert np.abs(kernel(X) / true - 1).max() < 1e-12
        assert np.abs(kernel(X, X.copy()) / true - 1).max() < 1e-12
        assert np.abs(kernel(X, dtype=np.float32) / true - 1).max() < 1e-5


@pytest.mark.parametrize("d", [1, 3, 20])
def test_distant_clusters_keep_their_inner_distances(d):
    X = np.concatenate([rng.normal(size=(20, d)), rng.normal(size=(20, d)) + 1e5])
    near = np.array([[naive.sqdist(x, z) for z in X] for x in X])
    for kernel, true in ((mc.Gaussian(2.0), np.exp(-near / 8)), (mc.Matern(2.0, 0.5), np.exp(-np.sqrt(near) / 2))):
        assert np.abs(kernel(X) - true).max() < 1e-12
        assert np.abs(kernel(X.astype(np.float32)) - kernel(X.astype(np.float32).astype(float))).max() < 1e-5


def test_near_duplicates_keep_relative_distance():
    x = rng.normal(size=(1, 20))
    X = np.concatenate([x, x + 1e-9])
    expected = np.exp(-np.sqrt(naive.sqdist(X[0], X[1])))
    assert abs(mc.Matern(1.0, 0.5)(X)[0, 1] - expected) < 1e-15
    assert mc.ArcCosine(0)(X)[0, 1] > 1 - 1e-9


def test_angles_keep_digits_near_zero_and_pi():
    x = rng.normal(size=5)
    for small in (1e-3, 1e-7, 1e-12):
        turned = x + small * np.linalg.norm(x) * np.array([x[1], -x[0], 0, 0, 0]) / np.hypot(x[0], x[1])
        with mpmath.workdps(50):
            exact = mpmath.acos(mpmath.fdot(x, turned) / (mpmath.norm(list(x)) * mpmath.norm(list(turned))))
            angle = float(exact)
        assert abs(mc.ArcCosine(0)([x], [turned])[0, 0] - (1 - angle / np.pi)) < 1e-15
        assert abs(mc.ArcCosine(0)([x], [-turned])[0, 0] - angle / np.pi) < 1e-15
    assert mc.check(mc.ArcCosine(0), np.concatenate([rng.normal(size=(20, 2)), -rng.normal(size=(20, 2))])).psd
    np.testing.assert_array_equal(mc.ArcCosine(0)([[1.0], [-2.0]]), np.eye(2))


def test_matern_far_away_is_zero():
    for nu in (0.5, 0.8, 2.5, 3.3, 100.0):
        assert mc.Matern(1.0, nu)([[0.0]], [[2e9], [1e100]]).max() == 0.0


def test_far_points_weigh_nothing_and_extreme_scales_are_refused():
    assert mc.Gaussian(1.0)([[0.0]], [[1e3]])[0, 0] == 0.0
    X = np.array([[1e300], [-1e300]])
    for kernel in (
        mc.Gaussian(1.0),
        mc.Linear(),
        mc.Polynomial(3),
        mc.Matern(1.0),
        mc.RationalQuadratic(1.0),
        mc.ArcCosine(1),
    ):
        with pytest.raises(mc.InvalidInput, match=r"Rescale|overflow"):
            kernel(X)
    with pytest.raises(mc.InvalidInput, match="float64"):
        mc.Gaussian(1.0)(np.array([[1e30], [-1e30]], dtype=np.float32))
    np.testing.assert_array_equal(mc.Gaussian(1.0)([[1e-300], [-1e-300]]), 1.0)
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.exp(mc.Linear())([[100.0]])
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.exp(np.log(2) * mc.Intersection())([set(range(1100))])


def test_log_domain_survives_overflow():
    sets = [set(range(2000)), set(range(1, 2001)), set()]
    K = mc.exp(np.log(2) * mc.Intersection()).normalize()(sets)
    np.testing.assert_allclose(K, [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], atol=1e-12)
    assert mc.exp(mc.Linear()).normalize()([[100.0]]) == 1.0


def test_normalised_kernels_at_the_origin():
    K = mc.Linear().normalize()([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_array_equal(K, [[0, 0], [0, 1]])
    np.testing.assert_array_equal(mc.Intersection().normalize()([set(), {1}]), [[0, 0], [0, 1]])


def test_categories_compare_as_python_does():
    np.testing.assert_array_equal(mc.Delta()([1, 2], [1.0, 3]), [[1, 0], [0, 0]])
    np.testing.assert_array_equal(mc.Delta()(["1", "2"], [1, 2]), 0)
    np.testing.assert_array_equal(mc.Delta()([("a", 1), ("a", 2)]), np.eye(2))
    np.testing.assert_array_equal(mc.Hamming()([("a", 1), ("a", 2)], [("b", 2)]), [[0.0], [0.5]])
    with pytest.raises(mc.InvalidInput, match="missing"):
        mc.Delta()(["a", None])
    with pytest.raises(mc.InvalidInput, match="row 1"):
        mc.Delta()([1.0, float("nan")])
    with pytest.raises(mc.InvalidInput, match="hashable"):
        mc.Delta()([{1: 2}, {1: 3}])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_table(frame):
    data = {"age": [30.0, 40.0, 50.0], "income": [1, 2, 3], "city": ["Rome", "Oslo", "Rome"],
            "tags": [["a", "b"], ["b"], ["c"]]}  # fmt: skip
    table = frame(data)
    k = mc.Gaussian([10.0, 1.0]).on("age", "income") * mc.Delta().on("city") + mc.Intersection().on("tags")
    numbers = np.column_stack([data["age"], data["income"]])
    expected = mc.Gaussian([10.0, 1.0])(numbers) * mc.Delta()(data["city"])
    expected += np.array([[2, 1, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(k(table), expected)
    np.testing.assert_allclose(k(table[:2], table), expected[:2])
    np.testing.assert_allclose(mc.Linear().on(0, 1)(table), numbers @ numbers.T)
    with pytest.raises(mc.InvalidInput, match="'town' must exist"):
        mc.Delta().on("town")(table)
    with pytest.raises(mc.InvalidInput, match="'city' must be numeric"):
        mc.Linear()(table)
    with pytest.raises(mc.InvalidInput, match="data frame"):
        mc.Linear().on("age")(numbers)


def test_precomputed_in_both_conventions():
    X = rng.normal(size=(6, 2))
    K = mc.Gaussian(1.0)(X)
    k = mc.Precomputed(K)
    np.testing.assert_array_equal(k(np.arange(6)), K)
    np.testing.assert_array_equal(k([4, 1], [0, 2]), K[np.ix_([4, 1], [0, 2])])
    np.testing.assert_allclose((2.0 * k + 1.0)(np.arange(6)), 2 * K + 1)
    np.testing.assert_array_equal(mc.gram.of(k, np.arange(6)).restrict([1, 3]).dense(), K[np.ix_([1, 3], [1, 3])])
    bare = mc.Precomputed()
    np.testing.assert_array_equal(bare(K), K)
    np.testing.assert_array_equal(bare.diag(K), np.diag(K))
    train = bare.prepare(K)
    np.testing.assert_array_equal(bare(K[:2], train), K[:2])
    support = train.take([1, 4])
    np.testing.assert_array_equal(bare(K[:2], support), K[:2, [1, 4]])
    np.testing.assert_array_equal(bare(K[:2, [1, 4]], support), K[:2, [1, 4]])
    for bad in ([[1.0, 2.0]], [[1.0, 2.0], [0.0, 1.0]], [[np.nan]]):
        with pytest.raises(mc.InvalidInput):
            mc.Precomputed(bad)
    with pytest.raises(mc.InvalidInput, match=r"0 … 5"):
        k([6])
    with pytest.raises(mc.InvalidInput, match="one column per training point"):
        bare(K[:, :3], train)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_a_precomputed_matrix_read_its_rows(dtype, monkeypatch):
    K = mc.Gaussian(1.0)(rng.normal(size=(40, 2))).astype(dtype)
    V = rng.normal(size=(30, 2)).astype(dtype)
    x, z = rng.integers(0, 40, 9), np.concatenate([rng.permutation(40)[:25], np.arange(5)])  # some positions twice
    gathered = mc.gram.of(mc.Precomputed(K), x, z[:10], budget=10).multiply(V[:10])
    np.testing.assert_allclose(gathered, K[np.ix_(x, z[:10])].astype(float) @ V[:10], rtol=1e-6)
    monkeypatch.setattr(mc.Precomputed, "tile", lambda *_: pytest.fail("entries were gathered"))
    product = mc.gram.of(mc.Precomputed(K), x, z, budget=10).multiply(V)
    assert product.dtype == np.float64
    np.testing.assert_allclose(product, K[np.ix_(x, z)].astype(float) @ V, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_large_matrices_are_hashed_by_a_few_entries():
    K = np.eye(3000)
    k, same = mc.Precomputed(K), mc.Precomputed(K)
    K[0, 1] = K[1, 0] = 0.5
    tracemalloc.start()
    assert hash(k) == hash(same)
    assert k == same
    assert k != mc.Precomputed(np.eye(2))
    assert k != mc.Gaussian(1.0)
    assert tracemalloc.get_traced_memory()[1] < 4 * K.size  # a copy of the entries takes twice as much
    tracemalloc.stop()
    assert k != mc.Precomputed(K)
    zero, negative = mc.Precomputed([[0.0]]), mc.Precomputed([[-0.0]])
    assert zero == negative
    assert hash(zero) == hash(negative)


def test_any_python_similarity_of_any_objects():
    k = mc.FromFunction(lambda s, t: sum(a == b for a, b in zip(s, t)))
    np.testing.assert_array_equal(k(["abc", "abd"], ["abc", "xyz"]), [[3, 0], [2, 0]])
    np.testing.assert_array_equal((2.0 * k + 1.0)(["abc"]), [[7.0]])
    with pytest.raises(mc.InvalidInput, match="finite"):
        mc.FromFunction(lambda x, z: float("nan"))([1, 2])
    with pytest.raises(mc.InvalidInput, match="NoneType"):
        mc.FromFunction(lambda x, z: None)([1, 2])
    with pytest.raises(mc.InvalidInput, match="function"):
        mc.FromFunction(3)


def test_maps_of_the_wrong_length_are_refused():
    with pytest.raises(mc.InvalidInput, match="one row per point"):
        mc.FromFeatures(lambda X: X[:1])([[1.0], [2.0]])
    with pytest.raises(mc.InvalidInput, match="one number per point"):
        mc.Linear().rescale(lambda X: X)([[1.0], [2.0]])
    with pytest.raises(mc.InvalidInput, match="finite"):
        mc.Linear().rescale(lambda X: X[:, 0] / 0 * np.inf if False else np.full(len(X), np.nan))([[1.0], [2.0]])


def test_transformers_serve_as_maps():
    from sklearn.preprocessing import StandardScaler

    X = rng.normal(3.0, 5.0, size=(8, 2))
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(mc.Gaussian(1.0).after(scaler)(X), mc.Gaussian(1.0)(scaler.transform(X)))
    np.testing.assert_allclose(mc.FromFeatures(scaler)(X), mc.Linear()(scaler.transform(X)))


def test_points_and_functions_are_pickled_without_what_was_computed():
    import pickle

    X = rng.normal(size=(5, 2))
    k = mc.Gaussian(1.0) + mc.Linear()
    points = k.prepare(X).take([1, 3])
    again = pickle.loads(pickle.dumps(points))
    np.testing.assert_array_equal(k(again), k(X[[1, 3]]))
    np.testing.assert_array_equal(again.index, [1, 3])
    f = mc.Expansion(k, X, np.ones(5))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(X), f(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_functions_on_frames_add(frame):
    a, b = frame({"x": [1.0, 2.0], "y": [0.0, 1.0]}), frame({"x": [3.0], "y": [5.0]})
    k = mc.Gaussian(1.0).on("x")
    f, g = mc.Expansion(k, a, [1.0, 2.0]), mc.Expansion(k, b, [3.0])
    np.testing.assert_allclose((f + g)(a), f(a) + g(a))


def test_reordered_precomputed_points_keep_their_columns():
    K = np.array([[3.0, 1, 0], [1, 4, 2], [0, 2, 5]])
    order = [2, 0, 1]
    for size in (None, 71):
        part = mc.gram.of(mc.Precomputed(), K, budget=size).restrict(order)
        for row in range(3):
            np.testing.assert_array_equal(part.rows([row]), K[np.ix_([order[row]], order)])
        np.testing.assert_array_equal(part.diag(), np.diag(K)[order])
    np.testing.assert_array_equal(mc.gram.of(mc.Precomputed(), K, budget=30).block([0], [2, 1, 0]), K[:1, ::-1])
    with pytest.raises(mc.InvalidInput, match="symmetric"):
        mc.Precomputed()([[1.0, 2.0], [0.0, 1.0]])


def test_overflow_is_refused_wherever_it_arises():
    narrow = np.array([[1.0], [0.0]], np.float32)
    for kernel, X in (
        (1e200 * mc.Linear(), [[1e100]]),
        (mc.Polynomial(2) * mc.Polynomial(2), [[1e70]]),
        (mc.Linear() + mc.Linear(), [[1.2e154]]),
        (mc.Linear().rescale(lambda X: np.full(len(X), 1e200)), [[1.0]]),
        (1e60 * mc.Linear(), narrow),
        (1e60 * mc.Gaussian(1.0), narrow),
        (mc.Linear() + 1e60, narrow),
    ):
        with pytest.raises(mc.InvalidInput, match="overflow"):
            kernel(X)
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.Polynomial(4).diag(np.array([[1e10]], np.float32))
    with pytest.raises(mc.InvalidInput, match="overflow"):
        mc.exp(mc.Polynomial(2, c=1.0)).gradient([[30.0]], [[1.0]])


def test_columns_are_never_guessed():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(mc.InvalidInput, match="same order"):
        mc.Linear()(frame, frame[["b", "a"]])
    with pytest.raises(mc.InvalidInput, match="positions or names"):
        mc.Linear().on(np.array([True, False]))
    with pytest.raises(mc.InvalidInput, match="positions or names"):
        mc.Linear().on([0.7, 1.9])
    with pytest.raises(mc.InvalidInput, match="distinct"):
        mc.Linear().on("a", "a")
    with pytest.raises(mc.InvalidInput, match="equal length"):
        mc.Linear().on(1)([(1.0, 2.0), (5.0,)])
    for table in (frame, pl.DataFrame(frame)):
        taken = mc.Linear().prepare(table).take(np.array([True, False]))
        np.testing.assert_array_equal(mc.Linear()(taken), [[10.0]])


def test_text_is_not_a_number():
    for X in (
        [["10"], ["20"]],
        np.array([["10"], [20]], dtype=object),
        pd.DataFrame({"zip": pd.Categorical(["1", "2"])}),
    ):
        with pytest.raises(mc.InvalidInput, match="numeric"):
            mc.Linear()(X)
    for bad in ("2", True):
        with pytest.raises(mc.InvalidInput, match="sigma"):
            mc.Gaussian(bad)


def test_sparse_distances_do_not_cancel_and_input_is_left_alone():
    X = rng.normal(size=(30, 50)) * (rng.random((30, 50)) < 0.3) * 100
    X = np.vstack([X, X])
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        for kernel in (mc.Matern(1.0, 0.5), mc.Gaussian(1.0), mc.Laplacian(30.0)):
            dense, sparse = kernel(X.astype(dtype)), kernel(sp.csr_array(X.astype(dtype)))
            assert np.abs(dense - sparse).max() < tolerance
    unsorted = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    before = unsorted.indices.copy()
    np.testing.assert_array_equal(mc.Linear()(unsorted), [[20.0]])
    np.testing.assert_array_equal(unsorted.indices, before)
    with pytest.raises(mc.InvalidInput, match="row 1, column 2"):
        mc.Linear()(sp.csr_array(np.array([[1.0, 0, 0], [0, 0, np.nan]])))


def test_categories_of_every_kind():
    frame = pd.DataFrame([["a", "a"], ["b", "a"]], columns=["x", "x"])
    np.testing.assert_array_equal(mc.Hamming()(frame), [[1, 0.5], [0.5, 1]])
    with pytest.raises(mc.InvalidInput, match="missing"):
        mc.Delta()(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}))
    day = np.array(["2020-01-01", "2020-01-02"])
    np.testing.assert_array_equal(mc.Delta()(day.astype("M8[ns]"), day.astype("M8[us]")), np.eye(2))
    with pytest.raises(mc.InvalidInput, match="equal length"):
        mc.Delta()([("b", 1), 3])
    with pytest.raises(mc.InvalidInput, match="sparse"):
        mc.Delta()(sp.csr_array(np.eye(2)))


def test_a_constant_does_not_widen_the_dtype():
    frame = pd.DataFrame({"a": np.ones(2, np.float32)})
    assert (mc.Linear() + 1.0)(frame).dtype == np.float32
