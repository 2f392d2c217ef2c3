"""Counted features: sparse rows of keys against a naive count of them."""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC

import mercer as mc
from mercer.data.keys import keys_of
from mercer.data.points import Points
from mercer.features.counted import CountMap, HashedMap
from mercer.kernels import costs
from mercer.kernels.counted import Counted, Counts


class Numbers(mc.Space):
    """Lists of whole numbers."""

    def sample(self, kernel, n, rng):
        return [rng.integers(0, 6, size=rng.integers(0, 9)).tolist() for _ in range(n)]


class Common(Counted):
    """Σ_g #g(x)·#g(z) over whole numbers g."""

    about = mc.About("Σ_g #g(x)·#g(z)", "A test.", "Common()")
    space = Numbers("lists of numbers")
    calls = 0

    def encode(self, X):
        type(self).calls += 1
        ends = np.concatenate([[0], np.cumsum([len(x) for x in X])])
        return Counts.of(np.array([g for x in X for g in x], dtype=np.uint64), ends)

    def derivation(self):
        return mc.Axiom(self, "inner product of counts")


def naive(X, Z):
    left, right = ([Counter(np.asarray(x).tolist()) for x in side] for side in (X, Z))
    return np.array([[float(sum(c * b[g] for g, c in a.items())) for b in right] for a in left])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def lists(rng):
    """Lists with a few frequent numbers and many rare ones; some are empty."""
    return [(rng.zipf(1.4, size=rng.integers(0, 120)) % 10**6).tolist() for _ in range(700)]


@pytest.mark.parametrize("n", [3, 40, 700])
def test_values_are_those_of_a_naive_count(lists, n):
    k, X, Z = Common(), lists[:n], lists[:60:2]
    np.testing.assert_array_equal(k(X, Z), naive(X, Z))
    np.testing.assert_array_equal(k(X)[:, :3], naive(X, X[:3]))
    np.testing.assert_array_equal(k.diag(X), np.diagonal(k(X)))
    np.testing.assert_array_equal(k(X, Z, dtype=np.float32), naive(X, Z))


def test_both_layouts_are_used(lists):
    k = Common()
    sides = k.sides(k.pair(lists))
    assert sides.dense_x.shape[1] > 0
    assert len(sides.sparse_x[1]) > 0
    share = np.bincount(sides.sparse_x[1]).max() / len(lists)
    assert share**2 <= costs.FREQUENT_SHARE


def test_the_layout_of_the_second_side_is_kept(lists, monkeypatch):
    k, train = Common(), Points(lists)
    before = train.encoded(k).nbytes
    new = [*lists[:2], [10**7]]
    np.testing.assert_array_equal(k(new, train), naive(new, lists))
    assert train.encoded(k).nbytes > before
    monkeypatch.setattr("mercer.kernels.counted.Layout", None)  # not made again
    np.testing.assert_array_equal(k(lists[5:9], train), naive(lists[5:9], lists))
    V = np.arange(2.0 * len(lists)).reshape(-1, 2)
    np.testing.assert_array_equal(k.multiply(k.pair(Points(lists[:3]), train), V), naive(lists[:3], lists) @ V)


def test_weights_that_are_not_whole_are_not_rounded(rng):
    keys = rng.integers(0, 50, size=80_000).astype(np.uint64)
    values, ends = rng.normal(size=80_000), np.linspace(0, 80_000, 301).astype(np.int64)
    counts = Counts.of(keys, ends, values)
    dense = np.zeros((300, 50))
    np.add.at(dense, (np.repeat(np.arange(300), np.diff(ends)), keys.astype(int)), values)
    again = np.zeros((300, 50))
    again[counts.rows, counts.keys.astype(int)] = counts.values
    np.testing.assert_allclose(again, dense, rtol=1e-13, atol=1e-13)

    class Weighted(Counted):
        def encode(self, X):
            return counts.encoded_rows(np.asarray(X).ravel().astype(int))

    np.testing.assert_allclose(Weighted()(np.arange(300)), dense @ dense.T, rtol=1e-11, atol=1e-11)


@pytest.mark.thorough
def test_products_need_no_matrix(lists, rng):
    k, V = Common(), rng.normal(size=(700, 3))
    np.testing.assert_allclose(mc.gram.of(k, lists) @ V, naive(lists, lists) @ V, rtol=1e-12, atol=1e-9)


def test_laws():
    mc.testing.check_laws(Common())
    mc.testing.check_laws((0.5 * Common() + 1.0).normalize() ** 2)


def test_points_that_are_taken_take_their_counts(lists):
    k = Common()
    points = k.prepare(lists)
    before = Common.calls
    np.testing.assert_array_equal(k(points.take([5, 2, 2])), naive([lists[i] for i in (5, 2, 2)], lists)[:, [5, 2, 2]])
    assert Common.calls == before


def test_explicit_features(lists):
    k, X = Common(), lists[:30]
    phi = k.features(X)
    assert isinstance(phi, CountMap)
    assert phi.dimension == len({g for x in X for g in x})
    np.testing.assert_array_equal(phi(lists) @ phi(X).T, k(lists, X))
    np.testing.assert_array_equal(phi.sparse(lists).toarray(), phi(lists))


@pytest.mark.thorough
def test_hashed_features_estimate_the_kernel(lists):
    k, X = Common(), lists[:20]
    K = k(X)
    estimates = [(phi(X) @ phi(X).T) for phi in (HashedMap(k, 64, seed=s) for s in range(200))]
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(estimates, axis=0) - K) <= 5 * error + 1e-9).all()
    assert not np.array_equal(estimates[0], estimates[1])
    with pytest.raises(mc.InvalidInput, match="columns"):
        HashedMap(k, 0)


def test_empty_objects():
    np.testing.assert_array_equal(Common()([[], []]), np.zeros((2, 2)))
    assert Points([[], [1]]).encoded(Common()).keys.tolist() == [1]
    assert Common().features([[], []]).dimension == 0


class Level(enum.IntEnum):
    LOW = 1


def test_equal_values_have_equal_keys_alone_and_together():
    utc = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
    east = datetime.timezone(datetime.timedelta(hours=2))
    equal = [
        [1, 1.0, True, Level.LOW, complex(1), Fraction(1), Decimal(1), np.int8(1), np.complex128(1)],
        [float("inf"), Decimal("Infinity"), complex(float("inf"))],
        [complex(0.0, 1), complex(-0.0, 1)],
        [utc, utc.astimezone(east), pd.Timestamp(utc)],
        [datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 1, fold=1), pd.Timestamp(2024, 3, 1)],
        [datetime.time(12, tzinfo=datetime.UTC), datetime.time(14, tzinfo=east)],
        [datetime.timedelta(1), pd.Timedelta(days=1)],
        [(Level.LOW,), (1,), (1.0,)],
        [frozenset({Level.LOW}), frozenset({1})],
    ]
    for values in equal:
        assert all(hash(value) == hash(values[0]) and value == values[0] for value in values)
        assert len({int(keys_of([value])[0]) for value in values}) == 1, values
        assert len(set(keys_of(values).tolist())) == 1
    firsts = [values[0] for values in equal]
    different = [*firsts, -float("inf"), 10**400, Decimal("1e401"), complex(1, 1), datetime.date(2024, 3, 1),
                 pd.Timestamp(2024, 3, 1) + pd.Timedelta(1, "ns"), datetime.time(12), 10**5000]  # fmt: skip
    assert len(set(keys_of(different).tolist())) == len(different)


@pytest.mark.parametrize("bad", [float("nan"), Decimal("nan"), Decimal("snan"), complex(0, float("nan")), pd.NaT])
def test_values_that_differ_from_themselves_have_no_key(bad):
    with pytest.raises(mc.InvalidInput, match="NaN"):
        keys_of([bad])


def test_sparse_features_suit_linear_models():
    texts, y = ["GATTACA", "TACCA", "GGG", "GATT"], [0, 0, 1, 0]
    for phi in (mc.Spectrum(2).features(texts), mc.hashed_features(mc.Spectrum(2), 16)):
        sparse = phi.sparse(texts)
        assert sparse.indices.dtype == sparse.indptr.dtype == np.int32  # scikit-learn's solvers refuse longer ones
        np.testing.assert_array_equal(LinearSVC().fit(sparse, y).predict(sparse), y)
