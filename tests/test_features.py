"""Explicit feature maps: exact sizes, names that evaluate to the features, and k = phiᵀphi against double loops."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import kv

import mercer as mc
from mercer import memory
from mercer.errors import InvalidInput
from mercer.features import (
    ColumnsMap,
    ComposedMap,
    ConstantMap,
    FunctionMap,
    IdentityMap,
    IncidenceMap,
    LinearMap,
    MonomialMap,
    PowerMap,
    RescaledMap,
    ScaledMap,
    StackedMap,
    SubsetMap,
    TensorMap,
    fourier_features,
    taylor_features,
)
from mercer.features.monomials import factors
from mercer.features.terms import atom

D = 3
POINTS = np.random.default_rng(0).normal(size=(7, D))
OTHERS = np.random.default_rng(1).normal(size=(5, D))
SETS = [{1, 2}, {2, 3}, set(), {1, 2, 3}, {4}]
MATRIX = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, -1.0], [0.0, -1.0, 3.0]])
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def double_loop(k, X, Z):
    return np.array([[k(x, z) for z in Z] for x in X])


def dot(x, z):
    return sum(float(a) * float(b) for a, b in zip(x, z))


def squares(X):
    return np.asarray(X) ** 2


def inverse_length(X):
    return 1 / np.linalg.norm(X, axis=1)


def value_of(name, x):
    """What a name such as "√3·x0²·x1" says, computed at a point."""
    value = 1.0
    for part in name.split("·"):
        variable = re.fullmatch(r"x(\d+)([⁰¹²³⁴⁵⁶⁷⁸⁹]*)", part)
        if variable:
            value *= x[int(variable[1])] ** int(variable[2].translate(SUPERSCRIPTS) or 1)
        else:
            value *= math.sqrt(float(part[1:])) if part.startswith("√") else float(part)
    return value


# -- sizes and names from the lectures --------------------------------------------------------------------------------


def test_the_lectures_sizes():
    assert mc.Polynomial(4, c=1.0).features(784).dimension == 15_943_435_565 == math.comb(788, 4)
    # Lecture 000's count by patterns of exponents, with LECTURES.md's correction (·2 for y_m³y_n, not ·3).
    n = 785
    table = n + 2 * math.comb(n, 2) + math.comb(n, 2) + 3 * math.comb(n, 3) + math.comb(n, 4)
    assert table == 15_943_435_565
    assert mc.Polynomial(2).features(2).dimension == 3
    assert mc.Polynomial(2).features(2, index="tuples").dimension == 4
    assert mc.Polynomial(2, c=1.0).features(2).dimension == 6
    assert mc.Polynomial(2, c=1.0).features(2, index="tuples").dimension == 7  # x0·x1 and x1·x0
    for n in range(1, 6):
        assert MonomialMap(1, n, c=1.0, index="tuples").dimension == n + 1
        for d in range(2, 6):
            assert MonomialMap(d, n, c=2.0, index="tuples").dimension == (d ** (n + 1) - 1) // (d - 1)
            assert MonomialMap(d, n, index="tuples").dimension == d**n
            assert MonomialMap(d, n).dimension == math.comb(d + n - 1, n)
            assert MonomialMap(d, n, c=2.0).dimension == math.comb(d + n, n)


def test_sizes_need_no_memory():
    assert MonomialMap(10**6, 50, c=1.0).dimension == math.comb(10**6 + 50, 50)
    assert SubsetMap(500).dimension == 2**500
    big = mc.Polynomial(4, c=1.0).features(784)
    assert PowerMap(big, 3).dimension == math.comb(big.dimension + 2, 3)
    assert TensorMap((big, big)).dimension == big.dimension**2
    assert StackedMap((big, ConstantMap(big))).dimension == big.dimension + 1
    assert isinstance(big.dimension, int)


def test_lecture_000_maps_by_name():
    assert set(mc.Polynomial(2).features(2).names) == {"x0²", "x1²", "√2·x0·x1"}
    assert list(mc.Polynomial(2).features(2, index="tuples").names) == ["x0²", "x0·x1", "x1·x0", "x1²"]
    assert set(mc.Polynomial(3).features(2).names) == {"x0³", "x1³", "√3·x0²·x1", "√3·x0·x1²"}
    # c = 2: (x1², x2², √2 x1x2, √2√c x1, √2√c x2, c)
    assert set(mc.Polynomial(2, c=2.0).features(2).names) == {"x0²", "x1²", "√2·x0·x1", "2·x0", "2·x1", "2"}
    # c = 3: (x1³, x2³, √c³, √3 x1²x2, √3√c x1², √3 x2²x1, √3√c x2², √3 c x1, √3 c x2, √6√c x1x2)
    assert set(mc.Polynomial(3, c=3.0).features(2).names) == {
        "x0³", "x1³", "√27", "√3·x0²·x1", "3·x0²", "√3·x0·x1²", "3·x1²", "√27·x0", "√27·x1", "√18·x0·x1",
    }  # fmt: skip


def test_lecture_002_tuple_map():
    phi = MonomialMap(2, 2, c=1.0, index="tuples")
    assert list(phi.names) == ["1", "√2·x0", "√2·x1", "x0²", "x0·x1", "x1·x0", "x1²"]
    phi = MonomialMap(2, 3, index="tuples")
    assert len(set(phi.names)) == 8  # one name per tuple: x0·x1·x0 is not x0²·x1


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("c", [0.25, 1.0, 3.0])
def test_offset_is_one_more_column(p, c):
    """Lecture 000: with x̃ = (√c, x) the inhomogeneous kernel is the homogeneous one; even the order is the same."""
    extended = np.column_stack([np.full(len(POINTS), math.sqrt(c)), POINTS])
    np.testing.assert_allclose(MonomialMap(D, p, c)(POINTS), MonomialMap(D + 1, p)(extended), rtol=1e-12)


@pytest.mark.parametrize("index", ["monomials", "tuples"])
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_features_are_in_lexicographic_order(d, k, index):
    choose = itertools.combinations_with_replacement(range(d), k)
    expected = list(choose if index == "monomials" else itertools.product(range(d), repeat=k))
    assert [factors(d, k, j, index) for j in range(len(expected))] == expected


NAMED = {
    "identity": IdentityMap(D),
    "scaled": ScaledMap(IdentityMap(D), 0.5),
    "homogeneous": MonomialMap(D, 4),
    "inhomogeneous": MonomialMap(D, 3, c=0.7),
    "tuples": MonomialMap(D, 3, c=2.0, index="tuples"),
    "stacked": StackedMap((ScaledMap(ConstantMap(), 3.0), IdentityMap(D), MonomialMap(D, 2))),
    "tensor": TensorMap((IdentityMap(D), MonomialMap(D, 2, c=1.0), ScaledMap(MonomialMap(D, 2), 7.0))),
    "power": PowerMap(StackedMap((IdentityMap(D), ScaledMap(MonomialMap(D, 2), 0.3))), 3),
    "power by tuples": PowerMap(MonomialMap(D, 2), 2, index="tuples"),
    "columns": ColumnsMap(MonomialMap(2, 2), (2, -3), D),
    "composed": ComposedMap(MonomialMap(6, 2, c=1.0), MonomialMap(D, 2), D),
    "from a map": FunctionMap(MonomialMap(D, 2)),
}


@pytest.mark.parametrize("phi", NAMED.values(), ids=NAMED)
def test_names_evaluate_to_the_features(phi):
    names = list(phi.names)
    assert len(names) == phi.dimension
    expected = [[value_of(name, x) for name in names] for x in POINTS]
    np.testing.assert_allclose(phi(POINTS), expected, rtol=1e-5)  # coefficients are printed with six digits


def test_names_are_made_one_by_one():
    names = mc.Polynomial(4, c=1.0).features(784).names
    assert (names[0], names[1], names[-1]) == ("1", "2·x0", "x783⁴")
    assert list(names[785:788]) == ["√6·x0²", "√12·x0·x1", "√12·x0·x2"]
    assert names[-2:][0] == "2·x782·x783³"
    assert list(itertools.islice(names, 2)) == ["1", "2·x0"]
    assert "15,943,435,565 names" in repr(names)
    with pytest.raises(IndexError):
        names[15_943_435_565]
    with pytest.raises(InvalidInput, match=r"at most 1,000,000 entries, got 15,943,435,565 features.*names\[:10\]"):
        list(names)
    assert SubsetMap(2).names[::-1][0] == "{0, 1}"


def test_coefficients_are_pretty():
    assert ScaledMap(IdentityMap(1), 0.25).names[0] == "0.5·x0"
    assert ScaledMap(IdentityMap(1), 0.1).names[0] == "√0.1·x0"
    assert ScaledMap(IdentityMap(1), 1 / 3).names[0] == "√0.333333·x0"
    assert ScaledMap(ScaledMap(IdentityMap(1), 2.0), 2.0).names[0] == "2·x0"
    assert ScaledMap(ConstantMap(), 5.0).names[0] == "√5"
    assert ScaledMap(IdentityMap(1), 1e300).names[0] == "1e+150·x0"
    assert MonomialMap(1, 4, c=1e200).names[0] == "1e+400"
    assert PowerMap(LinearMap(MATRIX), 2).names[:2][1] == "√2·(a0·x)·(a1·x)"
    assert RescaledMap(IdentityMap(1), inverse_length, "‖x‖", inverse=True).names[0] == "x0/‖x‖"
    assert str(atom("1/T") * atom("v")) == "(1/T)·v"  # a column's own name


def test_names_of_columns():
    phi = mc.Polynomial(2).on("age", 1).features(2)
    assert list(phi.names) == ["age²", "√2·age·x1", "x1²"]
    assert list(phi.get_feature_names_out(["age", "dose"])) == ["age²", "√2·age·dose", "dose²"]
    assert mc.Polynomial(2).on(2, 0).features(3).get_feature_names_out(list("abc"))[1] == "√2·c·a"
    with pytest.raises(InvalidInput, match=r"must name the 2 columns, got 1 names"):
        phi.get_feature_names_out(["age"])


# -- k(x, z) = phi(x)ᵀphi(z) ------------------------------------------------------------------------------------------

MAPS = {
    "identity": (IdentityMap(D), dot),
    "constant": (ConstantMap(IdentityMap(D)), lambda x, z: 1.0),
    "scaled": (ScaledMap(IdentityMap(D), 2.5), lambda x, z: 2.5 * dot(x, z)),
    "stacked": (StackedMap((ConstantMap(), MonomialMap(D, 2))), lambda x, z: 1 + dot(x, z) ** 2),
    "tensor": (
        TensorMap((IdentityMap(D), MonomialMap(D, 2, c=1.0), IdentityMap(D))),
        lambda x, z: dot(x, z) ** 2 * (dot(x, z) + 1) ** 2,
    ),
    "tensor of one": (TensorMap((IdentityMap(D),)), dot),
    "power": (PowerMap(MonomialMap(D, 2, c=0.5), 3), lambda x, z: (dot(x, z) + 0.5) ** 6),
    "power by tuples": (PowerMap(IdentityMap(D), 3, index="tuples"), lambda x, z: dot(x, z) ** 3),
    "first power": (PowerMap(MonomialMap(D, 2), 1), lambda x, z: dot(x, z) ** 2),
    "rescaled": (
        RescaledMap(IdentityMap(D), inverse_length, "‖x‖", inverse=True),
        lambda x, z: dot(x, z) / math.sqrt(dot(x, x) * dot(z, z)),
    ),
    "columns": (ColumnsMap(MonomialMap(2, 2), (0, 2), D), lambda x, z: dot(x[[0, 2]], z[[0, 2]]) ** 2),
    "composed": (ComposedMap(MonomialMap(D, 2, c=1.0), squares, D), lambda x, z: (dot(x**2, z**2) + 1) ** 2),
    "linear": (LinearMap(np.linalg.cholesky(MATRIX)), lambda x, z: dot(x, MATRIX @ z)),
    "function": (FunctionMap(squares, d=D), lambda x, z: dot(x**2, z**2)),
    **{
        f"({p}, {c}, {index})": (MonomialMap(D, p, c, index), lambda x, z, p=p, c=c: (dot(x, z) + c) ** p)
        for p in (1, 2, 3, 5)
        for c in (0.0, 0.3, 2.0)
        for index in ("monomials", "tuples")
    },
}


@pytest.mark.parametrize(("phi", "k"), MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_maps_give_their_kernels(phi, k, dtype):
    X, Z = POINTS.astype(dtype), OTHERS.astype(dtype)
    left, right = phi(X), phi.transform(Z)
    assert left.dtype == dtype
    assert left.shape == (len(X), phi.dimension)
    # Σ|phiᵢ(x) phiᵢ(z)| ≤ ‖phi(x)‖‖phi(z)‖ is what rounding is relative to.
    size = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    error = np.abs(left.astype(np.float64) @ right.T - double_loop(k, X.astype(np.float64), Z.astype(np.float64)))
    assert (error <= 50 * np.finfo(dtype).eps * size).all()


KERNELS = {
    "Linear": (mc.Linear(), dot),
    "Polynomial": (mc.Polynomial(3, c=1.5), lambda x, z: (dot(x, z) + 1.5) ** 3),
    "Bilinear": (mc.Bilinear(MATRIX), lambda x, z: dot(x, MATRIX @ z)),
    "Constant": (mc.Constant(3.0), lambda x, z: 3.0),
    "Scaled": (0.5 * mc.Polynomial(2), lambda x, z: 0.5 * dot(x, z) ** 2),
    "Sum": (mc.Linear() + mc.Polynomial(2) + 2.0, lambda x, z: dot(x, z) + dot(x, z) ** 2 + 2),
    "Product": (mc.Linear() * mc.Polynomial(2, c=1.0), lambda x, z: dot(x, z) * (dot(x, z) + 1) ** 2),
    "Power": ((mc.Linear() + 1.0) ** 3, lambda x, z: (dot(x, z) + 1) ** 3),
    "Poly": (mc.Linear().poly([1.0, 0.0, 2.0, 0.5]), lambda x, z: 1 + 2 * dot(x, z) ** 2 + 0.5 * dot(x, z) ** 3),
    "On": (
        mc.Polynomial(2).on(0, 2) * mc.Linear().on(1) + mc.Linear(),
        lambda x, z: dot(x[[0, 2]], z[[0, 2]]) ** 2 * x[1] * z[1] + dot(x, z),
    ),
    "After": (mc.Polynomial(2, c=1.0).after(squares), lambda x, z: (dot(x**2, z**2) + 1) ** 2),
    "After a map": (mc.Linear().after(MonomialMap(D, 2)), lambda x, z: dot(x, z) ** 2),
    "Rescaled": (
        mc.Linear().rescale(inverse_length),
        lambda x, z: dot(x, z) / math.sqrt(dot(x, x) * dot(z, z)),
    ),
    "Normalized": (
        mc.Polynomial(2, c=1.0).normalize(),
        lambda x, z: (dot(x, z) + 1) ** 2 / ((dot(x, x) + 1) * (dot(z, z) + 1)),
    ),
    "FromFeatures": (mc.FromFeatures(squares), lambda x, z: dot(x**2, z**2)),
    "nested": (
        (2.0 * (mc.Linear().on(0) + 1.0).normalize() * mc.Bilinear(MATRIX)).poly([0.5, 0.0, 1.0]),
        lambda x, z: (
            0.5 + (2 * (x[0] * z[0] + 1) / math.sqrt((x[0] ** 2 + 1) * (z[0] ** 2 + 1)) * dot(x, MATRIX @ z)) ** 2
        ),
    ),
}


@pytest.mark.parametrize(("kernel", "k"), KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("index", ["monomials", "tuples"])
def test_kernels_have_their_maps(kernel, k, index):
    phi = kernel.features(D, index=index)
    assert phi.inputs == D
    expected = double_loop(k, POINTS, OTHERS)
    np.testing.assert_allclose(phi(POINTS) @ phi(OTHERS).T, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel(POINTS, OTHERS), expected, rtol=1e-11, atol=1e-12)
    assert len(list(phi.names)) == phi.dimension == phi(POINTS).shape[1]


SET_KERNELS = {
    "|A∩B|": (mc.Intersection(), float, 4),
    "2^|A∩B|": (mc.exp(np.log(2) * mc.Intersection()), lambda n: 2.0**n, 16),
    "e^|A∩B|": (mc.exp(mc.Intersection()), math.exp, 16),
    "e^(0.3|A∩B|)": (mc.exp(0.3 * mc.Intersection()), lambda n: math.exp(0.3 * n), 16),
    "|A∩B|²": (mc.Intersection() ** 2, lambda n: float(n**2), 10),
    "q(|A∩B|)": (mc.Intersection().poly([1.0, 2.0]), lambda n: 1.0 + 2.0 * n, 5),
    "|A∩B|·2^|A∩B|": (mc.Intersection() * mc.exp(np.log(2) * mc.Intersection()), lambda n: n * 2.0**n, 64),
}


@pytest.mark.parametrize(("kernel", "of_size", "dimension"), SET_KERNELS.values(), ids=SET_KERNELS)
def test_kernels_on_sets_have_their_maps(kernel, of_size, dimension):
    phi = kernel.features({1, 2, 3, 4})
    assert phi.dimension == dimension
    np.testing.assert_allclose(phi(SETS) @ phi(SETS).T, double_loop(lambda A, B: of_size(len(A & B)), SETS, SETS))


def test_normalised_sets():
    k = mc.exp(np.log(2) * mc.Intersection()).normalize()
    phi = k.features({1, 2, 3, 4})
    np.testing.assert_allclose(phi(SETS) @ phi(SETS).T, k(SETS), rtol=1e-12)


def test_subsets_are_the_features():
    phi = SubsetMap({1, 2, 3})
    names = list(phi.names)
    assert names == ["∅", "{1}", "{2}", "{1, 2}", "{3}", "{1, 3}", "{2, 3}", "{1, 2, 3}"]
    subsets = [set() if name == "∅" else eval(name) for name in names]
    np.testing.assert_array_equal(phi(SETS[:4]), [[float(T <= A) for T in subsets] for A in SETS[:4]])
    weighted = SubsetMap({1, 2, 3}, weight=4.0)
    assert weighted.names[3] == "4·{1, 2}"
    np.testing.assert_array_equal(weighted([{1, 2, 3}])[0], [2.0 ** len(T) for T in subsets])


def test_ground_sets():
    assert IncidenceMap(3).universe == (0, 1, 2)
    assert IncidenceMap("cab").universe == ("c", "a", "b")
    assert IncidenceMap({3, 1, 2}).universe == (1, 2, 3)
    assert set(IncidenceMap({"a", 1, (2, 3)}).universe) == {"a", 1, (2, 3)}
    column = np.empty((2, 1), dtype=object)
    column[:, 0] = [{0}, {1, 2}]
    np.testing.assert_array_equal(IncidenceMap(3)(column), [[1, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(IncidenceMap(3)([[0], (1, 2)]), [[1, 0, 0], [0, 1, 1]])
    with pytest.raises(InvalidInput, match=r"ground set of 3 elements, got 7\. Make the map for"):
        IncidenceMap(3)([{0, 7}])
    with pytest.raises(InvalidInput, match=r"must be a set .* got str at position 1"):
        IncidenceMap("abc")([{"a"}, "bc"])
    for wrong, message in ((0, "whole number ≥ 1"), ((), "at least one"), (None, "its elements"), ([[1]], "hashable")):
        with pytest.raises(InvalidInput, match=message):
            IncidenceMap(wrong)


def test_too_many_subsets_are_refused_with_figures():
    phi = SubsetMap(21)
    with pytest.raises(InvalidInput, match=r"up to 20 elements, got 21 elements, so 2,097,152 features, 16.8 MB per"):
        phi([{1}])
    with pytest.raises(InvalidInput, match="must fit the memory budget"):
        SubsetMap(60)([{1}])
    assert SubsetMap(20)([{1, 5}]).sum() == 4.0


@given(
    d=st.integers(1, 5),
    p=st.integers(1, 5),
    c=st.one_of(st.just(0.0), st.floats(0.01, 10.0)),
    seed=st.integers(0, 1000),
    index=st.sampled_from(["monomials", "tuples"]),
)
@settings(max_examples=settings.default.max_examples // 4)
def test_polynomials_of_any_size(d, p, c, seed, index):
    X = np.random.default_rng(seed).normal(size=(4, d))
    phi = MonomialMap(d, p, c, index=index)
    K = phi(X) @ phi(X).T
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert (np.abs(K - (X @ X.T + c) ** p) <= 1e-13 * scale).all()


def test_many_features_in_many_blocks_of_rows():
    X = np.random.default_rng(3).normal(size=(100, 40))
    phi = MonomialMap(40, 3, c=1.0)
    assert phi.dimension == 12341
    np.testing.assert_allclose(phi(X) @ phi(X).T, (X @ X.T + 1) ** 3, rtol=1e-9, atol=1e-8)
    np.testing.assert_array_equal(phi(X)[57:58], phi(X[57:58]))
    phi = MonomialMap(40, 3)
    np.testing.assert_allclose(phi(X) @ phi(X).T, (X @ X.T) ** 3, rtol=1e-9, atol=1e-8)


# -- the Gaussian's Taylor map ----------------------------------------------------------------------------------------


def ball(rng, n, d, radius):
    X = rng.normal(size=(n, d))
    return X * (radius * rng.uniform(size=(n, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True))


@pytest.mark.parametrize("sigma", [1.0, 0.7, [0.8, 2.0, 1.3]], ids=str)
@pytest.mark.parametrize("error", [0.3, 1e-2, 1e-5])
@pytest.mark.parametrize("radius", [0.5, 1.2])
def test_taylor_bound_holds(sigma, error, radius):
    phi = taylor_features(mc.Gaussian(sigma), D, error=error, radius=radius)
    assert phi.bound <= error
    assert phi.dimension == math.comb(D + phi.degree, D)
    rng = np.random.default_rng(5)
    X = ball(rng, 2000, D, radius)
    X[:500] *= radius / np.linalg.norm(X[:500], axis=1, keepdims=True)  # on the sphere, where the bound is tight
    u = X / np.asarray(sigma)
    exact = np.exp(-0.5 * ((u[:, None] - u[None, :400]) ** 2).sum(axis=2))
    assert np.abs(phi(X) @ phi(X[:400]).T - exact).max() <= phi.bound + 1e-14


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-9])
def test_taylor_bound_is_attained(error):
    """At x = z on the sphere the error is the bound, so that it cannot be improved, nor the degree lowered."""
    sigma, radius = np.array([0.8, 2.0, 1.3]), 1.5
    k = mc.Gaussian(sigma)
    phi = taylor_features(k, D, error=error, radius=radius)
    x = np.array([[radius, 0.0, 0.0]])  # along the column of the smallest sigma
    assert 1 - (phi(x) @ phi(x).T)[0, 0] == pytest.approx(phi.bound, rel=1e-5, abs=1e-15)
    s = (radius / 0.8) ** 2
    for p, enough in ((phi.degree, True), (phi.degree - 1, False)):
        tail = 1 - math.exp(-s) * math.fsum(s**n / math.factorial(n) for n in range(p + 1))
        assert (tail <= error) == enough
    assert phi.bound <= s ** (phi.degree + 1) / math.factorial(phi.degree + 1)  # the textbook's remainder is larger


def test_taylor_takes_the_smallest_degree():
    k = mc.Gaussian(1.0)
    assert [taylor_features(k, 1, error=e, radius=0.5).degree for e in (1.5, 0.3, 0.2, 0.02, 0.002)] == [0, 0, 1, 2, 3]
    assert taylor_features(k, 1, error=0.3, radius=0.5).names[0] == "exp(−‖x/σ‖²/2)"


def test_taylor_names_and_values():
    phi = taylor_features(mc.Gaussian(2.0), 2, error=0.1, radius=2.0)
    assert phi.degree == 2
    assert list(phi.names)[:4] == [
        "exp(−‖x/σ‖²/2)", "0.5·x0·exp(−‖x/σ‖²/2)", "0.5·x1·exp(−‖x/σ‖²/2)", "√0.03125·x0²·exp(−‖x/σ‖²/2)",
    ]  # fmt: skip
    x = np.array([0.6, -0.8])
    expected = [value_of(name.removesuffix("exp(−‖x/σ‖²/2)").rstrip("·") or "1", x) for name in phi.names]
    np.testing.assert_allclose(phi(x[None])[0], math.exp(-1 / 8) * np.array(expected), rtol=1e-5)
    assert phi(x[None].astype(np.float32)).dtype == np.float32


def test_taylor_refuses():
    phi = taylor_features(mc.Gaussian(0.5), 2, error=1e-3, radius=1.0)
    with pytest.raises(InvalidInput, match=r"‖x/σ‖ ≤ radius/min\(σ\) = 2, got ‖x/σ‖ = 2\.5 in row 1\. Centre the data"):
        phi([[0.0, 1.0], [1.25, 0.0], [0.1, 0.1]])
    phi([[0.6, 0.8], [1.0, 0.0]])
    phi(np.array([[0.6, 0.8]], dtype=np.float32))
    with pytest.raises(InvalidInput, match="need a Gaussian kernel, got Linear"):
        taylor_features(mc.Linear(), 2, error=0.1, radius=1.0)
    with pytest.raises(InvalidInput, match="`error` must be a number > 0, got 0"):
        taylor_features(mc.Gaussian(1.0), 2, error=0.0, radius=1.0)
    with pytest.raises(InvalidInput, match="`radius` must be a number > 0, got nan"):
        taylor_features(mc.Gaussian(1.0), 2, error=0.1, radius=math.nan)
    with pytest.raises(InvalidInput, match="has 2 entries, so points must have as many columns, got 3"):
        taylor_features(mc.Gaussian([1.0, 2.0]), 3, error=0.1, radius=1.0)
    wide = taylor_features(mc.Gaussian(0.01), 10, error=1e-6, radius=1.0)
    assert wide.degree > 10_000
    with pytest.raises(InvalidInput, match="must fit the memory budget"):
        wide(np.zeros((1, 10)))


# -- random Fourier features ------------------------------------------------------------------------------------------


def matern(r, nu):
    t = np.where(r > 0, math.sqrt(2 * nu) * r, 1e-12)
    return 2 ** (1 - nu) / math.gamma(nu) * t**nu * kv(nu, t)


def exact_kernel(kernel, X):
    u = X / np.asarray(kernel.sigma)
    difference = u[:, None] - u[None]
    if isinstance(kernel, mc.Laplacian):
        return np.exp(-np.abs(difference).sum(axis=2))
    r = np.sqrt((difference**2).sum(axis=2))
    return np.exp(-0.5 * r**2) if isinstance(kernel, mc.Gaussian) else matern(r, kernel.nu)


STATIONARY = [
    mc.Gaussian(1.5),
    mc.Gaussian([0.8, 2.0, 1.3]),
    mc.Matern(2.0, nu=0.5),
    mc.Matern([1.0, 2.0, 3.0], nu=1.5),
    mc.Matern(1.5, nu=0.8),
    mc.Laplacian(3.0),
    mc.Laplacian([2.0, 3.0, 4.0]),
]


def rms_error(kernel, n_features, *, orthogonal=True, seeds=range(8), d=D):
    X = np.random.default_rng(9).normal(size=(15, d))
    exact, off = exact_kernel(kernel, X), ~np.eye(len(X), dtype=bool)
    errors = []
    for seed in seeds:
        F = fourier_features(kernel, d, n_features, orthogonal=orthogonal, random_state=seed)(X)
        errors.append(np.mean((F @ F.T - exact)[off] ** 2))
    return math.sqrt(np.mean(errors))


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_fourier_error_falls_with_the_root_of_the_size(kernel):
    small, large = rms_error(kernel, 200), rms_error(kernel, 3200)
    assert large < 1 / math.sqrt(3200)  # expected_error
    assert 2.5 < small / large < 6.5  # √16 = 4


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_fourier_maps_are_unbiased(kernel):
    """The mean over many seeds goes where one map of that many features goes."""
    assert rms_error(kernel, 200_000, seeds=[1]) < 4 / math.sqrt(200_000)


@pytest.mark.parametrize("kernel", [mc.Gaussian(2.5), mc.Matern(2.5, nu=2.5)], ids=repr)
def test_orthogonal_frequencies_beat_independent_ones(kernel):
    d, seeds = 8, range(60)
    with_it = rms_error(kernel, 64, d=d, seeds=seeds)
    without = rms_error(kernel, 64, d=d, seeds=seeds, orthogonal=False)
    assert with_it < 0.9 * without


@pytest.mark.thorough
def test_independent_error_is_the_expected_one():
    """Independent Gaussian frequencies have the error (1 − k²)/√(2m), and far points exactly `expected_error`."""
    k = mc.Gaussian(1.0)
    X = np.array([[0.0, 0.0], [0.8, 0.0], [30.0, 0.0]])
    values = np.array(
        [(F := fourier_features(k, 2, 64, orthogonal=False, random_state=s)(X)) @ F.T for s in range(2000)]
    )
    near = math.exp(-0.32)
    assert values[:, 0, 1].std() == pytest.approx((1 - near**2) / 8, rel=0.08)
    assert values[:, 0, 2].std() == pytest.approx(fourier_features(k, 2, 64).expected_error, rel=0.08)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fourier_features_have_length_one(kernel, dtype):
    phi = fourier_features(kernel, D, 50)
    F = phi(1e3 * POINTS.astype(dtype))
    assert F.dtype == dtype
    np.testing.assert_allclose((F.astype(np.float64) ** 2).sum(axis=1), 1.0, rtol=10 * np.finfo(dtype).eps)


def test_fourier_frequencies():
    phi = fourier_features(mc.Gaussian([1.0, 2.0, 4.0]), 3, 14)
    W = phi.frequencies * [1.0, 2.0, 4.0]
    for block in (W[:3], W[3:6], W[6:]):
        products = block @ block.T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    assert phi.orthogonal
    assert not fourier_features(mc.Laplacian(1.0), 3, 14).orthogonal  # not isotropic: stays independent
    assert "orthogonal=False" in repr(fourier_features(mc.Laplacian(1.0), 3, 14))
    again = fourier_features(mc.Gaussian([1.0, 2.0, 4.0]), 3, 14, random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(phi.frequencies, again.frequencies)
    other = fourier_features(mc.Gaussian([1.0, 2.0, 4.0]), 3, 14, random_state=1)
    assert not np.array_equal(phi.frequencies, other.frequencies)
    assert list(phi.names)[6:8] == ["√0.142857·cos(w6·x)", "√0.142857·sin(w0·x)"]
    assert phi.dimension == 14
    assert fourier_features(mc.Gaussian(1.0), 100, 2).dimension == 2


def test_fourier_refuses():
    with pytest.raises(
        InvalidInput, match=r"Gaussian, Matern or Laplacian, got Linear\(\)\. Use k.features\(d\), which is exact"
    ):
        fourier_features(mc.Linear(), 2, 10)
    with pytest.raises(InvalidInput, match=r"half sines, got 11\. Pass an even number such as 12"):
        fourier_features(mc.Gaussian(1.0), 2, 11)
    with pytest.raises(InvalidInput, match="whole number ≥ 2, got 0"):
        fourier_features(mc.Gaussian(1.0), 2, 0)
    with pytest.raises(InvalidInput, match="has 2 entries, so points must have as many columns, got 3"):
        fourier_features(mc.Gaussian([1.0, 2.0]), 3, 10)


# -- data of every kind -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "phi",
    [
        IdentityMap(D),
        MonomialMap(D, 2, c=1.0),
        LinearMap(MATRIX),
        ColumnsMap(IdentityMap(2), (0, 2), D),
        StackedMap((ConstantMap(IdentityMap(D)), PowerMap(IdentityMap(D), 2))),
        taylor_features(mc.Gaussian(1.0), D, error=0.1, radius=4.0),
        fourier_features(mc.Gaussian(1.0), D, 10),
    ],
    ids=lambda phi: type(phi).__name__,
)
def test_one_answer_for_every_container(phi):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = phi(POINTS)
    read_only = POINTS.copy()
    read_only.flags.writeable = False
    strided = np.repeat(POINTS, 2, axis=1)[:, ::2]
    frame = pd.DataFrame(POINTS, columns=list("abc"))
    variants = [
        POINTS.tolist(), read_only, strided, np.asfortranarray(POINTS), POINTS.astype(object), frame,
        pl.DataFrame(POINTS, schema=list("abc")), sp.csr_array(POINTS), sp.csc_matrix(POINTS), sp.coo_array(POINTS),
    ]  # fmt: skip
    for X in variants:
        np.testing.assert_allclose(phi(X), expected, rtol=1e-12)
    assert phi(frame.astype(np.float32)).dtype == np.float32
    assert phi(sp.csr_array(POINTS.astype(np.float32))).dtype == np.float32
    whole = np.arange(-2, 4).reshape(2, 3) // 2
    np.testing.assert_allclose(phi(whole), phi(whole.astype(float)))
    assert phi(POINTS[:1]).shape == (1, phi.dimension)
    assert phi(POINTS[:0]).shape == (0, phi.dimension)


def test_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"name": ["u", "v"], "a": [1.0, 2.0], "b": [3.0, 4.0], "tokens": [{0}, {0, 1}]})
    assert ColumnsMap(MonomialMap(2, 2), ("b", 1))(frame).tolist()[0] == pytest.approx([9.0, 3 * math.sqrt(2), 1.0])
    assert ColumnsMap(IncidenceMap(2), ("tokens",))(frame).tolist() == [[1.0, 0.0], [1.0, 1.0]]
    with pytest.raises(InvalidInput, match=r"Column 'z' must exist .* got 4 columns: name, a, b, tokens"):
        ColumnsMap(IdentityMap(1), ("z",))(frame)
    with pytest.raises(InvalidInput, match="Column 9 must exist, got a data set with 4 columns"):
        ColumnsMap(IdentityMap(1), (9,))(frame)
    with pytest.raises(InvalidInput, match="Column 3 must exist, got 3 columns"):
        ColumnsMap(IdentityMap(1), (3,), 3)
    with pytest.raises(InvalidInput, match="Column names such as 'a' need a data frame, got a ndarray"):
        ColumnsMap(IdentityMap(1), ("a",))(POINTS)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"2-D, one row per point, got shape \(3,\)\. Reshape your data: np\.reshape\(X, \(-1, 1\)\)"),
        (np.ones((2, 4)), r"must have 3 columns.* got 4 columns\. Make the map for this data: k\.features\(4\)"),
        ([[1.0, math.nan, 0.0]], "finite, without NaN"),
        (np.array([[1.0, math.inf, 0.0]]), "finite, without NaN"),
        (sp.csr_array([[1.0, math.nan, 0.0]]), "finite, without NaN"),
        ([["a", "b", "c"]], "X must be numeric, got dtype <U1"),
        ([[1.0, 2.0, 3.0], [1.0]], "matrix of numbers"),
        (np.ones((1, 3), dtype=complex), "X must be real. Complex data not supported, got dtype complex128"),
        (3.0, "sequence of points .* got a single float"),
        ({1, 2}, "sequence of points .* got a single set"),
        (np.array(1.0), "sequence of points"),
    ],
)
def test_bad_points(X, message):
    with pytest.raises(InvalidInput, match=message):
        MonomialMap(3, 2)(X)
    with pytest.raises(InvalidInput):
        fourier_features(mc.Gaussian(1.0), 3, 4)(X)


def test_overflow_is_an_error():
    with pytest.raises(InvalidInput, match="must fit float64, got an overflow in MonomialMap"):
        MonomialMap(2, 2)([[1e200, 1.0]])
    with pytest.raises(InvalidInput, match=r"must fit float32, got an overflow.*use float64"):
        MonomialMap(2, 2)(np.array([[1e30, 1.0]], dtype=np.float32))
    assert MonomialMap(2, 2)([[1e150, 1e-300]])[0, 0] == pytest.approx(1e300)
    assert MonomialMap(2, 2)([[1e-200, 0.0]]).max() == 0.0


def test_memory_is_checked_first(monkeypatch):
    assert memory.available() > 0
    phi = mc.Polynomial(4, c=1.0).features(784)
    with pytest.raises(InvalidInput, match=r"3 points × 15,943,435,565 features\) must .* got 383 GB\. Transform few"):
        phi(np.zeros((3, 784)))
    monkeypatch.setattr(memory, "available", lambda: 1_000_000)
    with pytest.raises(
        InvalidInput, match=r"1,000 points × 286 features\) must fit the memory budget of 900 kB, got 1.14 MB"
    ):
        MonomialMap(10, 3, c=1.0)(np.zeros((1000, 10), dtype=np.float32))
    MonomialMap(10, 3, c=1.0)(np.zeros((100, 10), dtype=np.float32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IdentityMap(0), "`d` of IdentityMap must be a whole number ≥ 1, got 0"),
        (lambda: IdentityMap(2.5), "whole number"),
        (lambda: IdentityMap(True), "whole number"),
        (lambda: MonomialMap(2, 0), "`degree` of MonomialMap must be a whole number ≥ 1"),
        (lambda: MonomialMap(2, 2, c=-1.0), "`c` of MonomialMap must be a number ≥ 0, got -1.0"),
        (lambda: MonomialMap(2, 2, c="a"), "`c` of MonomialMap must be a number ≥ 0, got 'a'"),
        (lambda: MonomialMap(2, 2, index="words"), "`index` must be "),
        (lambda: PowerMap(IdentityMap(2), 0), "`n` of PowerMap"),
        (lambda: ScaledMap(IdentityMap(2), 0.0), "must be a number > 0"),
        (lambda: StackedMap(()), "same points, got no maps"),
        (lambda: TensorMap((IdentityMap(2), IdentityMap(3))), r"same points, got maps of \[2, 3\] columns"),
        (lambda: LinearMap([1.0, 2.0]), "one row per column"),
        (lambda: FunctionMap(squares), "must know its `dimension`"),
        (lambda: FunctionMap(lambda X: X[:, 0], d=2), r"phi must return an array of shape \(1, dimension\)"),
        (lambda: FunctionMap(squares, 2)(POINTS), r"shape \(7, 2\), got shape \(7, 3\)"),
        (lambda: SubsetMap(3, weight=-1.0), "must be a number > 0"),
        (lambda: RescaledMap(IdentityMap(D), lambda X: X)(POINTS), r"one finite number per point, shape \(7,\)"),
        (lambda: RescaledMap(IdentityMap(D), lambda X: np.full(len(X), np.nan))(POINTS), "got NaN or infinity"),
        (lambda: ComposedMap(IdentityMap(D), lambda X: X[1:])(POINTS), "one row per point, 7 here, got 6 rows"),
        (lambda: ConstantMap(IdentityMap(2))(POINTS), "must have 2 columns"),
    ],
)
def test_bad_maps(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


# -- values -----------------------------------------------------------------------------------------------------------


def test_maps_are_frozen_values():
    phi = StackedMap((ScaledMap(IdentityMap(2), 2.0), MonomialMap(2, 3, c=1.0)))
    assert phi == eval(repr(phi))
    assert hash(phi) == hash(eval(repr(phi)))
    assert phi != StackedMap((ScaledMap(IdentityMap(2), 2.5), MonomialMap(2, 3, c=1.0)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        phi.maps = ()
    assert pickle.loads(pickle.dumps(phi)) == phi
    fourier = fourier_features(mc.Gaussian(1.0), 3, 10)
    with pytest.raises(ValueError, match="read-only"):
        fourier.frequencies[0] = 0.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fourier))(POINTS), fourier(POINTS))
    assert str(MonomialMap(2, 2)) == "3 features: ['x0²', '√2·x0·x1', 'x1²']"
    assert repr(MonomialMap(2, 2)) == "MonomialMap(d=2, degree=2, c=0.0, index='monomials')"


@pytest.mark.thorough
def test_maps_do_not_know_kernels():
    code = "import sys, mercer.features; print([m for m in sys.modules if m.startswith(('mercer.kernels', 'sklearn'))])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_maps_of_infinite_kernels_are_refused():
    with pytest.raises(InvalidInput, match="must be finite, got Gaussian"):
        mc.Gaussian(1.0).features(2)
