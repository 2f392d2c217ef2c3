"""Missing values, categories, columns and n-grams: the values they claim, the laws, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mercer as mc
from mercer.data.missing import is_missing, missing_entries
from mercer.testing import _PublicNames, check_laws

nan = float("nan")
rng = np.random.default_rng(0)


def with_missing(n: int, d: int, share: float = 0.3, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    X[r.random((n, d)) < share] = nan
    return X


# -- what is missing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, nan, np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA])
def test_what_is_missing(value):
    assert is_missing(value)
    assert missing_entries(np.array([[value], ["x"]], dtype=object)).tolist() == [[True], [False]]


@pytest.mark.parametrize("value", [0, "", "nan", [], np.array([nan]), frozenset(), False])
def test_what_is_present(value):
    assert not is_missing(value)


def test_a_missing_value_is_the_mean_of_kernels_with_an_example_in_its_place():
    like = [-1.0, 0.5, 2.0]
    X, Z = with_missing(8, 1, seed=1), with_missing(5, 1, seed=2)
    for inner in (mc.Gaussian(0.8), mc.Polynomial(2, c=1.0), mc.Linear() + mc.Matern(1.0)):
        filled = [inner(np.nan_to_num(X, nan=v), np.nan_to_num(Z, nan=v)) for v in like]
        assert np.abs(mc.Missing(inner, like=like)(X, Z) - np.mean(filled, axis=0)).max() < 1e-12


def test_without_examples_a_missing_value_is_like_itself_only():
    K = mc.Missing(mc.Gaussian(1.0))([[0.0], [nan], [1.0], [nan]])
    assert K[1].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert K[0, 2] == pytest.approx(np.exp(-0.5))


MISSING = [
    mc.Missing(mc.Gaussian(1.3)),
    mc.Missing(mc.Gaussian(1.3), like=[0.0, 1.0, -2.0]),
    mc.Missing(mc.Gaussian(mc.Fixed(1.3)), like=[0.5]),
    mc.Missing(mc.Polynomial(2, c=1.0) * mc.Matern(1.0, 1.5) + mc.Constant(2.0), like=[0.5, 1.0]),
    mc.Missing(mc.Periodic(0.8, 3.0), like=[0.5, 1.0]),
]


@pytest.mark.parametrize("kernel", MISSING, ids=repr)
def test_laws_with_missing_values(kernel):
    obeyed = check_laws(kernel, with_missing(9, 1, seed=3), with_missing(5, 1, seed=4))
    assert {"positive semidefinite", "point gradient", "enclosure"} <= set(obeyed)
    assert kernel.proof().valid
    check_laws(kernel, np.full((3, 1), nan), with_missing(5, 1, seed=4))  # one side without any value


def test_laws_on_several_columns_sets_texts_and_categories():
    check_laws(mc.Missing(mc.Gaussian([1.0, 2.0, 0.5]), like=[(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]), with_missing(9, 3))
    check_laws(mc.Missing(mc.Intersection().normalize()), [{1, 2}, {2}, None, set()], [None, {1}])
    check_laws(mc.Missing(mc.Delta(), like=["a", "b", "b"]), ["a", "b", None, "c"], [None, "b"])
    check_laws(mc.Missing(mc.NGrams(2), like=["ab", "abc"]), ["ab", None, "banana"], [None, "b"])


def test_repr_rebuilds():
    for kernel in (*MISSING, mc.Missing(mc.NGrams(2).normalize(), like=["a'b"])):
        assert eval(repr(kernel), {}, _PublicNames()) == kernel


def test_missing_values_beyond_one_tile_and_in_products():
    X = with_missing(700, 2, 0.1)
    kernel = mc.Missing(mc.Gaussian(1.0), like=[0.0, 1.0]).on(0) * mc.Missing(mc.Gaussian(2.0)).on(1)
    K = kernel(X)
    assert (K == K.T).all()
    assert np.abs(K[600:, :50] - kernel(X[600:], X[:50])).max() < 1e-12
    assert np.linalg.eigvalsh(K)[0] > -1e-9


def test_frames_of_both_libraries_give_the_same():
    data = {"a": [1.0, None, 2.5, 4.0], "b": ["x", None, "y", "x"]}
    kernel = mc.Missing(mc.Gaussian(1.0), like=[1.0]).on("a") * mc.Missing(mc.Delta()).on("b")
    assert (kernel(pd.DataFrame(data)) == kernel(pl.DataFrame(data))).all()


@pytest.mark.parametrize("library", [pd, pl])
def test_missing_values_of_a_frame_leave_it_a_frame(library):
    frame = library.DataFrame({"a": [1.0, None, 2.5], "b": [0.0, 1.0, 2.0]})
    K = mc.Missing(mc.Gaussian(1.0).on("a") * mc.Gaussian(2.0).on("b"))(frame)
    assert K[1].tolist() == [0.0, 1.0, 0.0]
    assert K[0, 2] == pytest.approx(np.exp(-(1.5**2) / 2 - 4.0 / 8))


@pytest.mark.parametrize(("like", "match"), [("abc", "list of values"), ([1.0, nan], "present"), (3.0, "list")])
def test_examples_are_checked(like, match):
    with pytest.raises(mc.InvalidInput, match=match):
        mc.Missing(mc.Gaussian(1.0), like=like)


# -- Additive --------------------------------------------------------------------------------------------------------


def additive(X, Z, sigma):
    X, Z = np.asarray(X) / sigma, np.asarray(Z) / sigma
    total = np.zeros((len(X), len(Z)))
    for k in range(X.shape[1]):
        for i, x in enumerate(X[:, k]):
            for j, z in enumerate(Z[:, k]):
                one, both = np.isnan(x) or np.isnan(z), np.isnan(x) and np.isnan(z)
                total[i, j] += both if one else 1.0 / (1.0 + (x - z) ** 2)
    return total / X.shape[1]


@pytest.mark.parametrize("d", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_additive_is_the_mean_of_its_columns(d, dtype):
    X, Z = with_missing(37, d, seed=d).astype(dtype), with_missing(21, d, seed=d + 1).astype(dtype)
    sigma = np.linspace(0.5, 2.0, d)
    K = mc.Additive(sigma)(X, Z)
    assert K.dtype == dtype
    assert np.abs(K - additive(X, Z, sigma)).max() < (1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("kernel", [mc.Additive(0.7), mc.Additive([0.5, 1.0, 2.0]), mc.exp(2.0 * mc.Additive(0.7))])
def test_laws_of_additive(kernel):
    check_laws(kernel)
    assert "gradient" in check_laws(kernel, with_missing(9, 3, seed=5), with_missing(6, 3, seed=6))


def test_additive_in_single_precision_keeps_what_the_data_has():
    for rows in ([1e9, 0, 1, 2, nan], [0, 1e9, 2e9, 3e9, nan], [0, 1, 2, 1e7, 1e7 + 1]):
        X = np.array(rows, dtype=np.float32)[:, None]
        assert np.abs(mc.Additive(1.0)(X) - additive(X.astype(float), X.astype(float), 1.0)).max() < 1e-6


def test_additive_keeps_its_digits_far_from_the_origin():
    X = rng.normal(size=(30, 2))
    assert np.abs(mc.Additive(1.0)(X + 1e8) - mc.Additive(1.0)(X)).max() < 1e-6
    assert np.isfinite(mc.Additive(1e-90)(X * 1e6)).all()


@pytest.mark.thorough
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_widths_are_tuned_in_any_unit(unit):
    X = rng.normal(size=(60, 2))
    model = mc.KernelRidge(mc.Additive([0.5, 0.5]), alpha=0.1, tune="loo").fit(X, np.sin(X[:, 0]))
    scaled = mc.KernelRidge(mc.Additive([0.5 * unit, 0.5]), alpha=0.1, tune="loo").fit(X * [unit, 1.0], np.sin(X[:, 0]))
    assert scaled.kernel_.sigma[0] == pytest.approx(model.kernel_.sigma[0] * unit, rel=0.01)
    assert model.kernel_.sigma[1] > 1000  # does not matter


def test_additive_refuses():
    with pytest.raises(mc.InvalidInput, match="as many columns"):
        mc.Additive([1.0, 2.0])(np.zeros((3, 3)))
    with pytest.raises(mc.InvalidInput, match="finite"):
        mc.Additive(1.0)([[nan], [np.inf]])
    with pytest.raises(mc.InvalidInput, match="numeric"):
        mc.Additive(1.0)(np.array([["a"], [None]], dtype=object))


# -- Categorical -----------------------------------------------------------------------------------------------------


def test_categorical_is_the_gaussian_of_one_hot_rows():
    codes = rng.integers(0, 4, size=(40, 3))
    one_hot = np.eye(4)[codes].reshape(40, -1)
    assert np.abs(mc.Categorical(1.7)(codes) - mc.Gaussian(1.7)(one_hot)).max() < 1e-14
    widths = [0.5, 1.0, 2.0]
    assert np.abs(mc.Categorical(widths)(codes) - mc.Gaussian(np.repeat(widths, 4))(one_hot)).max() < 1e-14


def test_categories_beyond_one_tile():
    A, B = rng.integers(0, 3, size=(300, 5)), rng.integers(0, 3, size=(1100, 5))
    sigma = np.array([0.5, 1.0, 2.0, 3.0, 0.7])
    expected = np.exp(-((A[:, None] != B) / sigma**2).sum(axis=-1))
    assert np.abs(mc.Categorical(sigma)(A, B) - expected).max() < 1e-14
    assert np.abs(mc.Categorical(sigma)(A, B, dtype=np.float32) - expected).max() < 1e-6


CATEGORIES = [["a", "x"], ["b", None], ["a", "y"], [None, "x"], [nan, "x"], ["c", "y"]]


@pytest.mark.parametrize("kernel", [mc.Categorical(0.8), mc.Categorical([0.8, 2.0])])
def test_laws_of_categorical(kernel):
    obeyed = check_laws(kernel, CATEGORIES, CATEGORIES[1:4])
    assert {"gradient", "logarithm", "enclosure", "expression"} <= set(obeyed)


def test_a_missing_category_is_equal_to_itself_in_another_process():
    column = mc.Categorical(1.0).encode(np.array([["x"], [None]], dtype=object))[0]
    assert pickle.loads(pickle.dumps(column))[1] == column[1]


def test_unseen_and_missing_categories_are_like_themselves_only():
    K = mc.Categorical(1.0)(["new", None, "a"], ["a", "b", None, "new"])
    q = np.exp(-1.0)
    assert np.allclose(K, [[q, q, q, 1], [q, q, 1, q], [1, q, q, q]])


# -- NGrams ----------------------------------------------------------------------------------------------------------

TEXTS = ["banana", "Ananas", "", "cherry", "xyz ban", "Straße"]


def naive_ngrams(s, t, lengths, fold):
    s, t = (s.casefold(), t.casefold()) if fold else (s, t)
    runs = [(a, b, n) for n in lengths for a in range(len(s) - n + 1) for b in range(len(t) - n + 1)]
    return sum(s[a : a + n] == t[b : b + n] for a, b, n in runs)


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("n", [1, 3, (1, 3)])
def test_ngrams_count_common_runs(n, fold):
    lengths = range(n[0], n[1] + 1) if isinstance(n, tuple) else [n]
    expected = [[naive_ngrams(s, t, lengths, fold) for t in TEXTS] for s in TEXTS[:3]]
    assert mc.NGrams(n, fold=fold)(TEXTS[:3], TEXTS).tolist() == expected


@pytest.mark.parametrize("kernel", [mc.NGrams(), mc.NGrams((1, 2), fold=False), mc.NGrams(2).normalize()])
def test_laws_of_ngrams(kernel):
    check_laws(kernel, TEXTS, TEXTS[2:])
    assert kernel.proof().valid


def test_ngrams_refuse():
    for n in (0, (3, 1), "3", True, (1, 2, 3)):
        with pytest.raises(mc.InvalidInput, match="`n`"):
            mc.NGrams(n)
    with pytest.raises(mc.InvalidInput, match="int at position 1"):
        mc.NGrams(2)(["a", 3])
    with pytest.raises(mc.InvalidInput, match="ndarray at position 0"):
        mc.NGrams(2)(np.zeros((3, 2)))
    assert mc.NGrams((1, 10**9))(["ab", "b"]).tolist() == [[3.0, 1.0], [1.0, 1.0]]
    with pytest.raises(mc.InvalidInput, match=r"missing value at position 1.*mc\.Missing"):
        mc.NGrams(2)(["a", None])
