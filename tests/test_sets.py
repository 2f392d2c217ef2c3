"""Kernels on sets, multisets and weighted sets against naive counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import mercer as mc
from everywhere import works_everywhere
from mercer._loops import costs


def naive(kernel, x, z):
    x, z = (A if isinstance(A, dict) else dict.fromkeys(A, 1) for A in (x, z))
    both = sum(min(w, z[e]) for e, w in x.items() if e in z)
    total = sum(x.values()) + sum(z.values())
    if kernel == mc.Intersection():
        return both
    if total == 0:
        return 1.0
    return 2 * both / total if kernel == mc.Dice() else both / (total - both)


KERNELS = [mc.Intersection(), mc.Jaccard(), mc.Dice()]


def objects(kind, n=50):
    rng = np.random.default_rng(3)
    words = [rng.zipf(1.5, size=rng.integers(0, 12)).tolist() for _ in range(n)]
    if kind == "sets":
        return [set(w) for w in words]
    if kind == "multisets":
        return [Counter(w) for w in words]
    return [{e: float(rng.gamma(1.0)) for e in w} for w in words]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["sets", "multisets", "weighted"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_those_of_a_naive_count(kernel, kind, compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr(costs, "COMPILED_ENTRIES", 0)
    X = objects(kind)
    K = kernel(X)
    expected = [[naive(kernel, x, z) for z in X] for x in X]
    np.testing.assert_allclose(K, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel(X[:4], X), K[:4], rtol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(K), rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-11 * len(X)
    assert all(float(K[i, i + 1]) == pytest.approx(float(kernel.enclose(X[i], X[i + 1]).upper)) for i in range(9))
    V = np.ones((len(X), 1))
    np.testing.assert_allclose(mc.gram.of(kernel, X, budget=1) @ V, K @ V, rtol=1e-12)


def test_a_set_is_a_multiset_of_ones():
    X = objects("sets")
    ones = [dict.fromkeys(A, 1) for A in X]
    for kernel in KERNELS:
        np.testing.assert_array_equal(kernel(X), kernel(ones))
        np.testing.assert_array_equal(kernel(X, ones), kernel(X))
    # a count of 0 is no element
    assert mc.Jaccard()([{"a": 0, "b": 2}], [{"b": 2}]) == 1.0


def test_every_ratio_is_a_kernel_but_not_that_to_the_smaller_set():
    """Gram matrices of all 64 subsets of six elements, the empty one among them."""
    X = [{i for i in range(6) if mask >> i & 1} for mask in range(64)]
    for kernel in KERNELS:
        assert kernel.proof().valid
        assert np.linalg.eigvalsh(kernel(X)).min() > -1e-12
        assert not mc.refute(kernel, trials=20, seconds=20.0).refuted
    # 2|A ∩ B|/(|A| + |B|) and |A ∩ B|/min(|A|, |B|), of which only the first is one
    overlap = mc.FromFunction(lambda x, z: len(x & z) / min(len(x), len(z)) if x and z else float(x == z))
    assert mc.refute(overlap, space="sets").refuted


def test_large_sets_do_not_overflow():
    X = [set(range(i, i + 5000)) for i in range(0, 50, 10)]
    K = mc.exp(np.log(2) * mc.Intersection()).normalize()(X)
    np.testing.assert_allclose(K[0], 2.0 ** (-np.arange(0.0, 50, 10)), rtol=1e-9)
    assert (np.diagonal(K) == 1.0).all()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([{1}, {"a": -1}], r"≥ 0, got -1 for 'a' at position 1"),
        ([{"a": float("nan")}], "got nan for 'a' at position 0"),
        ([{"a": float("inf")}], "got inf"),
        ([{"a": "many"}], "got 'many'"),
        ([{"a": 10**400}], r"finite numbers ≥ 0, got a number above 1.8e\+308 for 'a'"),
        ([{"a": 10**5000}], "at position 0"),
        ([{"a": 1e308, "b": 1e308}], r"less than 1e\+307, got inf at position 0"),
        ([{"a": 10**308, "b": 10**308}], "got inf at position 0"),
        ([{float("nan"): 1}], "NaN at position 0"),
        ([{1}, 5], "int at position 1"),
    ],
)
def test_bad_weights_are_named(bad, words):
    for kernel in KERNELS:
        with pytest.raises(mc.InvalidInput, match=words):
            kernel(bad)


@pytest.mark.parametrize("kind", ["sets", "multisets"])
def test_models(kind, tmp_path):
    rng = np.random.default_rng(0)
    labels = ["few", "many"] * 15
    words = [rng.integers(0 if label == "few" else 5, 6 if label == "few" else 12, size=7).tolist() for label in labels]
    X = [set(w) if kind == "sets" else dict(Counter(w)) for w in words]
    works_everywhere(mc.Jaccard(), X, labels, tmp_path, lambda X: X[0].clear())
    frame = pd.DataFrame({"tags": X, "x": rng.normal(size=30)})
    k = mc.Dice().on("tags") * mc.Gaussian(1.0).on("x")
    np.testing.assert_allclose(k(frame), mc.Dice()(X) * mc.Gaussian(1.0)(frame[["x"]]), rtol=1e-14)


@pytest.mark.parametrize("kind", [set, frozenset, Counter, lambda w: dict.fromkeys(w, 0.5)])
def test_models_choose_a_kernel_for_sets(kind):
    rng = np.random.default_rng(0)
    labels = np.array(["few", "many"] * 20)
    X = [
        kind(rng.integers(0 if label == "few" else 5, 7 if label == "few" else 12, size=7).tolist()) for label in labels
    ]
    X[0] = kind([])
    assert mc.SVC().fit(X[:30], labels[:30]).score(X[30:], labels[30:]) > 0.8
    assert mc.SVC().fit(X, labels).kernel_ == mc.Jaccard()
    assert mc.AutoClassifier().fit(X[:30], labels[:30]).score(X[30:], labels[30:]) > 0.8
