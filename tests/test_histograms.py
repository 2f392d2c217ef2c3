"""Fingerprints and histograms against naive sums, SciPy and scikit-learn."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

import mercer as mc
from everywhere import works_everywhere
from mercer._loops import costs
from mercer.data.points import Points
from mercer.kernels.vectors.fingerprints import Bits


def least(x, z):
    return sum(min(a, b) for a, b in zip(x, z))


def harmonic(x, z):
    return sum(2 * a * b / (a + b) for a, b in zip(x, z) if a + b > 0)


def minmax(x, z):
    most = sum(max(a, b) for a, b in zip(x, z))
    return least(x, z) / most if most else 1.0


def chi(x, z):
    return np.exp(-sum((a - b) ** 2 / (a + b) for a, b in zip(x, z) if a + b > 0) / (2 * 1.5**2))


def tanimoto(x, z):
    both = float(np.dot(x, z))
    total = float(np.dot(x, x) + np.dot(z, z)) - both
    return both / total if total else 1.0


NAIVE = {
    mc.HistogramIntersection(): least,
    mc.MinMax(): minmax,
    mc.AdditiveChiSquared(): harmonic,
    mc.ChiSquared(1.5): chi,
    mc.Hellinger(): lambda x, z: sum(np.sqrt(a * b) for a, b in zip(x, z)),
    mc.Tanimoto(): tanimoto,
}


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, size=(40, 9)).astype(float)
    X[7] = X[8] = 0.0
    return X


@pytest.fixture(scope="module")
def naive_sums():
    """The naive matrix of a kernel on `counts`, computed once."""

    @cache
    def matrix(kernel, rows):
        X = np.frombuffer(rows).reshape(40, 9)
        return np.array([[NAIVE[kernel](x, z) for z in X] for x in X])

    return matrix


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, sp.csr_array])
@pytest.mark.parametrize("kernel", NAIVE, ids=repr)
def test_values_are_those_of_naive_sums(kernel, kind, compiled, counts, naive_sums, monkeypatch):
    if compiled:
        monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    X = counts.astype(kind) if kind is not sp.csr_array else sp.csr_array(counts)
    expected = naive_sums(kernel, counts.tobytes())
    tolerance = 1e-6 if kind is np.float32 else 1e-13
    np.testing.assert_allclose(kernel(X), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel(X[:5], X), expected[:5], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(expected), rtol=tolerance, atol=tolerance)
    assert np.linalg.eigvalsh(kernel(X).astype(float)).min() > -1e-5


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 63, 64, 65, 300])
def test_packed_bits_are_the_jaccard_distances_of_scipy(dtype, columns):
    rng = np.random.default_rng(columns)
    X = rng.random((300, columns)) < 0.2
    X[0] = X[1] = False
    X[5] = True
    expected = 1.0 - cdist(X, X, "jaccard")
    K = mc.Tanimoto()(X.astype(dtype))
    assert isinstance(Points(X.astype(dtype)).encoded(mc.Tanimoto()), Bits)
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-7 if dtype is np.float32 else 2.5e-16)
    assert K.dtype == (np.float32 if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(mc.Tanimoto()(X[:7], X), mc.Tanimoto()(X)[:7])
    np.testing.assert_allclose(mc.Tanimoto()(X), mc.MinMax()(X), rtol=1e-14)
    # one side of bits, the other of counts
    np.testing.assert_allclose(mc.Tanimoto()(X, 2.0 * X)[5, 5], 2 / 3, rtol=1e-14)


def test_chi_squared_is_that_of_scikit_learn(counts):
    gamma = 0.3
    expected = pairwise.chi2_kernel(counts, gamma=gamma)
    np.testing.assert_allclose(mc.ChiSquared(1 / np.sqrt(2 * gamma))(counts), expected, rtol=1e-12)
    # its distance is that of the additive kernel
    K = mc.AdditiveChiSquared()(counts)
    apart = np.diagonal(K)[:, None] + np.diagonal(K) - 2 * K
    np.testing.assert_allclose(-2 * 1.5**2 * np.log(mc.ChiSquared(1.5)(counts)), apart, atol=1e-12)


@pytest.mark.parametrize("kernel", [k for k in NAIVE if k != mc.Tanimoto()], ids=repr)
def test_negative_entries_are_named(kernel):
    X = np.ones((4, 3))
    X[2, 1] = -0.5
    for bad in (X, sp.csr_array(X), X.tolist()):
        with pytest.raises(mc.InvalidInput, match=r"got -0.5 in row 2, column 1"):
            kernel(bad)
        with pytest.raises(mc.InvalidInput, match="row 2"):
            (0.5 * kernel + 1.0)(bad)


def test_sizes_that_differ_are_named():
    with pytest.raises(mc.InvalidInput, match="same columns, got 3 and 4"):
        mc.Tanimoto()(np.eye(3), np.eye(4))


@pytest.mark.parametrize("kernel", NAIVE, ids=repr)
def test_no_counterexample_among_small_rows(kernel):
    assert kernel.proof().valid
    assert not kernel.proof().claimed
    assert not mc.refute(kernel, trials=40, seconds=20.0).refuted


@pytest.mark.thorough
def test_models(tmp_path):
    rng = np.random.default_rng(1)
    labels = np.repeat(["a", "b"], 15)
    shapes = np.where(labels == "a", 0.1, 0.6)[:, None] * np.ones(20)
    X = (rng.random((30, 20)) < shapes).astype(float)

    def change(X):
        X[:] = 1.0

    for kernel in (mc.Tanimoto(), mc.MinMax(), mc.ChiSquared(2.0) + 0.1 * mc.HistogramIntersection()):
        works_everywhere(kernel, X, labels, tmp_path, change)
    frame = pd.DataFrame(X, columns=[f"b{i}" for i in range(20)])
    np.testing.assert_array_equal(mc.Tanimoto()(frame), mc.Tanimoto()(X))
    np.testing.assert_array_equal(mc.MinMax().on("b1", "b2")(frame), mc.MinMax()(X[:, 1:3]))
    tuned = mc.tune(mc.KernelRidge(mc.ChiSquared(1.0), alpha=0.1), X, (labels == "a").astype(float))
    assert tuned.kernel_.sigma != 1.0


COMPILED = pytest.mark.parametrize("compiled", [False, True])


@COMPILED
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_distances_of_large_counts_keep_their_digits(kind, compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    X = 1e8 + np.arange(3.0)[:, None] * [1.0, 0.0]
    X = np.hstack([X, np.zeros((3, 2))])  # columns without a count
    apart = (np.subtract.outer(X[:, 0], X[:, 0])) ** 2 / np.add.outer(X[:, 0], X[:, 0])
    np.testing.assert_allclose(mc.ChiSquared(1e-4)(kind(X)), np.exp(-apart / 2e-8), rtol=1e-12)
    for kernel, expected in (
        (mc.AdditiveChiSquared(), apart),
        (mc.HistogramIntersection(), np.abs(np.subtract.outer(X[:, 0], X[:, 0]))),
    ):
        pair, out = kernel.pair(kind(X)), np.empty((3, 3))
        kernel.distance_tile(pair.block(slice(0, 3), slice(0, 3)), out)
        np.testing.assert_allclose(out, expected, rtol=1e-12)
        assert kernel.distance_size(pair.x) == 0.0


@COMPILED
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
@pytest.mark.parametrize("size", [1e155, 1e-170, 1e-305, 1e306])
def test_squares_of_counts_do_not_overflow_or_underflow(size, kind, compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    counts = np.array([[1.0], [1.13], [1.26]])
    K = mc.AdditiveChiSquared()(counts)
    np.testing.assert_allclose(mc.AdditiveChiSquared()(kind(counts * size)) / size, K, rtol=1e-12)
    apart = -np.log(mc.ChiSquared(1.0)(counts))
    if 1e-300 < size < 1e300:
        K = mc.ChiSquared(float(np.sqrt(size)))(kind(counts * size))
        np.testing.assert_allclose(-np.log(K), apart, rtol=1e-9, atol=1e-15)


@COMPILED
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_small_common_parts_beside_large_counts(kind, compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    X = kind(np.array([[1e16, 1.0], [0.0, 1.0]]))
    assert mc.HistogramIntersection()(X)[0, 1] == 1.0
    assert mc.AdditiveChiSquared()(X)[0, 1] == 1.0
    assert mc.MinMax()(X)[0, 1] == pytest.approx(1e-16, rel=1e-12)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_rows_whose_squares_underflow_are_refused(kind):
    X = np.array([[1.5], [2.5], [3.5]])
    for small in (1e-162, 1e-200):
        with pytest.raises(mc.InvalidInput, match="at point 0, whose squares underflow"):
            mc.Tanimoto()(kind(X * small))
    with pytest.raises(mc.InvalidInput, match="float64"):
        mc.Tanimoto()(kind((X * 1e-22).astype(np.float32)))
    with pytest.raises(mc.InvalidInput, match="at point 1, whose squares underflow"):
        mc.Tanimoto()(kind(X), kind(X * [[1.0], [1e-162], [1.0]]))
    np.testing.assert_allclose(mc.Tanimoto()(kind(X * 1e-150)), mc.Tanimoto()(kind(X)), rtol=1e-12)
    np.testing.assert_array_equal(mc.Tanimoto()(kind(X * [[1.0], [0.0], [1.0]]))[1], [0.0, 1.0, 0.0])


def test_widths_whose_squares_are_no_numbers_are_refused():
    for sigma in (1e-170, 1e170):
        with pytest.raises(mc.InvalidInput, match="between 1e-150 and 1e150"):
            mc.ChiSquared(sigma)
    with pytest.raises(mc.InvalidInput, match="must fit float32"):
        mc.ChiSquared(1e-20)(np.ones((2, 2), np.float32))


def test_histograms_are_vectors_too():
    k = 0.5 * mc.Gaussian(1.0) + mc.ChiSquared(2.0) * mc.Linear().on(0)
    assert k.space == "histograms"
    mc.testing.check_laws(k)
    with pytest.raises(mc.InvalidInput, match="same kind of objects"):
        mc.ChiSquared(1.0) + mc.Jaccard()
