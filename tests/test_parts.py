"""Kernels over parts, and the mean embeddings of point clouds, against naive double sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer as mc
from everywhere import works_everywhere
from mercer import memory
from mercer.kernels import costs
from mercer.kernels.distributions import CLOUDS


def rows(x):
    return np.asarray(x, dtype=float)


def words(text):
    return text.split()


def clouds(n=14, seed=0, most=40):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(1, most), 2)) + rng.normal(size=2) for _ in range(n)]


def naive(k, X, Z, mean):
    return np.array([[k(x, z).mean() if mean else k(x, z).sum() for z in Z] for x in X])


@pytest.mark.thorough
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("inner", [mc.Gaussian(0.7), mc.Linear() + 0.5 * mc.Laplacian(2.0)], ids=repr)
def test_values_are_sums_over_all_pairs_of_parts(inner, mean, monkeypatch):
    monkeypatch.setattr(costs, "TILE_ROWS", 16)  # parts of an object in several tiles
    monkeypatch.setattr(costs, "TILE_COLS", 32)
    X, Z = clouds(), clouds(7, seed=1)
    expected = naive(inner, X, X, mean)
    for k in (inner.over(rows, mean=mean), mc.MeanEmbedding(inner))[: 1 + mean]:
        np.testing.assert_allclose(k(X), expected, rtol=1e-12)
        np.testing.assert_allclose(k(X, Z), naive(inner, X, Z, mean), rtol=1e-12)
        np.testing.assert_allclose(k.diag(X), np.diagonal(expected), rtol=1e-12)
        V = np.random.default_rng(0).normal(size=(14, 3))
        np.testing.assert_allclose(mc.gram.of(k, X, budget=1) @ V, expected @ V, rtol=1e-10)
        assert (k(X) == k(X).T).all()


def test_large_objects_are_split_over_tiles(monkeypatch):
    monkeypatch.setattr(memory, "HELD", 2000)
    X = clouds(12, most=60)
    np.testing.assert_allclose(mc.Gaussian(1.0).over(rows)(X), naive(mc.Gaussian(1.0), X, X, False), rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: k.normalize(), lambda k: (k / 0.5).exp().normalize()])
def test_gradient_is_that_of_differences(wrap):
    X, theta = clouds(9), np.log([0.8, 2.0])
    G = np.random.default_rng(1).normal(size=(9, 9))

    def kernel(theta):
        return wrap(mc.MeanEmbedding(mc.Gaussian(float(np.exp(theta[0]))) + mc.Matern(float(np.exp(theta[1])))))

    found = kernel(theta).gradient(X, G)[-2:]
    for p in range(2):
        step = 1e-5 * np.eye(2)[p]
        slope = ((kernel(theta + step)(X) - kernel(theta - step)(X)) * G).sum() / 2e-5
        assert found[p] == pytest.approx(slope, rel=1e-6)


def test_the_gaussian_of_embeddings_is_that_of_the_mmd():
    X, k = clouds(12), mc.Gaussian(1.0)
    on_top = (mc.MeanEmbedding(k) / 0.6**2).exp().normalize()
    for i in range(3):
        for j in range(3, 6):
            squared = k(X[i]).mean() + k(X[j]).mean() - 2 * k(X[i], X[j]).mean()
            assert on_top([X[i]], [X[j]])[0, 0] == pytest.approx(np.exp(-squared / (2 * 0.6**2)), rel=1e-10)
    assert on_top.proof().valid
    assert np.linalg.eigvalsh(on_top(X)).min() > 0


def test_parts_of_any_kind():
    texts = ["to be or not to be", "", "to do"]
    k = mc.Delta().over(words)
    np.testing.assert_array_equal(k(texts), [[10.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 2.0]])
    np.testing.assert_array_equal(k(["", ""]), np.zeros((2, 2)))
    bags = [text.split() or [""] for text in texts]
    np.testing.assert_array_equal(mc.NGrams(2).over(words)(texts), naive(mc.NGrams(2), bags, bags, False))
    nested = mc.Delta().over(list).over(words, mean=True)
    assert nested(["ab a", "b"]).tolist() == [[1.25, 0.5], [0.5, 1.0]]
    sparse = [sp.csr_array(cloud) for cloud in clouds(4)]
    np.testing.assert_allclose(mc.Linear().over(sp.csr_array)(sparse), mc.Linear().over(rows)(clouds(4)), rtol=1e-12)


def test_proofs_have_the_kernel_on_parts_as_premise():
    proof = mc.Gaussian(1.0).over(rows).proof()
    assert proof.valid
    assert "Haussler" in proof.reference
    assert proof.premises[0].claim == "Gaussian(sigma=1.0)"
    assert not mc.FromFunction(lambda x, z: 1.0).over(rows).proof().valid
    assert repr(mc.Gaussian(1.0).over(words, mean=True)) == "Gaussian(sigma=1.0).over(words, mean=True)"
    with pytest.raises(mc.InvalidInput, match="Python"):
        mc.parse("Gaussian(1.0).over(words)")


def test_errors_name_the_object():
    with pytest.raises(mc.InvalidInput, match="none in object 1"):
        mc.Delta().over(words, mean=True)(["a", ""])
    with pytest.raises(mc.InvalidInput, match="a float for object 0"):
        mc.Delta().over(float)(["1"])
    with pytest.raises(mc.InvalidInput, match="and 3 in object 1"):
        mc.MeanEmbedding(mc.Linear())([np.ones((2, 2)), np.ones((2, 3))])
    with pytest.raises(mc.InvalidInput, match="Cloud 1: A data set of vectors must be 2-D"):
        mc.MeanEmbedding(mc.Linear())([np.ones((2, 2)), np.ones(3)])
    with pytest.raises(mc.InvalidInput, match=r"Cloud 0: X must be finite, .* \(NaN\)"):
        mc.MeanEmbedding(mc.Linear())([[[np.nan]]])
    with pytest.raises(mc.InvalidInput, match="kernel on vectors"):
        mc.MeanEmbedding(mc.Intersection())
    with pytest.raises(mc.InvalidInput, match="must be a function"):
        mc.Delta().over(3)
    with pytest.raises(mc.RuleBroken):
        mc.Convolution(mc.Epanechnikov(1.0), rows)
    calls = []

    def restless(x):
        calls.append(x)
        return [x] * len(calls)

    with pytest.raises(mc.InvalidInput, match="the same parts for the same object"):
        mc.Delta().over(restless)(["a", "b"])


def test_parts_that_depend_on_more_than_their_object_are_refused():
    calls = []

    def counting(x):
        calls.append(x)
        return [[float(len(calls))]]

    def first_of_all(x):
        return [x if x in seen[:1] or seen.append(x) else "other"]

    seen = []
    with pytest.raises(mc.InvalidInput, match="the same parts for the same object, got other parts of object 1"):
        mc.Linear().over(counting)([1, 2], [1, 2])
    with pytest.raises(mc.InvalidInput, match="the same parts"):
        mc.Delta().over(first_of_all)(["a", "b", "c"])


def test_parts_without_an_equality_of_their_own():
    class Atom:
        def __init__(self, name):
            self.name = name

    k = mc.FromFunction(lambda x, z: float(x.name == z.name))
    expected = [[2.0, 1.0], [1.0, 1.0]]
    np.testing.assert_array_equal(mc.Convolution(k, lambda text: [Atom(c) for c in text])(["ab", "a"]), expected)
    pairs = mc.FromFunction(lambda x, z: float(x[0].name == z[0].name))
    np.testing.assert_array_equal(mc.Convolution(pairs, lambda t: [(Atom(c), 1) for c in t])(["ab", "a"]), expected)


@pytest.mark.thorough
def test_models(tmp_path):
    rng = np.random.default_rng(0)
    labels = ["narrow", "wide"] * 12
    X = [rng.normal(size=(rng.integers(8, 15), 2)) * (1.0 if label == "narrow" else 4.0) for label in labels]
    k = (mc.MeanEmbedding(mc.Gaussian(1.0)) / 0.1).exp().normalize()

    def change(X):
        X[0][:] = 100.0

    works_everywhere(k, X, labels, tmp_path, change)
    frame = pd.DataFrame({"cloud": X})
    np.testing.assert_array_equal(k.on("cloud")(frame), k(X))
    tuned = mc.tune(mc.KernelRidge(k, alpha=0.1), X, np.array([float(label == "wide") for label in labels]))
    assert tuned.kernel_ != k


def test_bad_clouds_are_named_where_no_kernel_is_given():
    X = clouds(12)
    narrow = [*X[:3], X[3][:, :1], *X[4:]]
    with pytest.raises(mc.InvalidInput, match="object 3"):
        CLOUDS.kernels(narrow)
    gap = [*X[:3], np.where(np.arange(len(X[3]))[:, None] == 0, np.nan, X[3]), *X[4:]]
    with pytest.raises(mc.InvalidInput, match=r"Cloud 3: .*row 0"):
        CLOUDS.kernels(gap)
    alike = [X[0] + 1e-5 * x[:1].mean() for x in X]
    for kernel in CLOUDS.kernels(alike).values():
        assert np.isfinite(kernel(alike)).all()
