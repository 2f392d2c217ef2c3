"""Mercer's condition on data, counterexamples, repairs: each checker was seen to fail on a planted bug."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mercer as mc
from expressions import set_kernels, vector_kernels
from mercer.kernels.strings.sequences import STRINGS
from mercer.kernels.validity import candidates, confirmation, noise, spectrum
from mercer.kernels.validity import check as validity
from mercer.kernels.validity import shrink as search
from mercer.kernels.validity.interval import Interval, dot, exactly

rng = np.random.default_rng(0)


def squared(x, z):
    return float(np.sum((x - z) ** 2))


def edit_distance(s, t):
    row = list(range(len(t) + 1))
    for i, a in enumerate(s, 1):
        corner, row[0] = row[0], i
        for j, b in enumerate(t, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
    return row[-1]


def orthogonal(n, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


# -- check ----------------------------------------------------------------------------------------------------------


def test_three_statements_agree_with_the_truth():
    X = rng.normal(size=(20, 3))
    good = mc.check(mc.Polynomial(2), X)
    assert good.psd
    assert good.by_eigenvalues
    assert good.by_factor
    assert good.by_quadratic
    assert good.rank == 6
    assert good.factor.shape == (6, 20)
    K = mc.Polynomial(2)(X)
    np.testing.assert_allclose(good.factor.T @ good.factor, K, atol=good.tolerance)
    bad = mc.check(mc.FromFunction(squared), X)
    assert not bad.psd
    assert not any([bad.by_eigenvalues, bad.by_factor, bad.by_quadratic])
    assert bad.factor is None
    K = np.array([[squared(x, z) for z in X] for x in X])
    assert bad.vector @ K @ bad.vector == pytest.approx(bad.quadratic) == pytest.approx(bad.eigenvalues[0])
    assert "NOT positive semidefinite on these 20 points" in str(bad)
    assert str(good).startswith("positive semidefinite")


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_the_planted_eigenvalue_just_beyond_the_tolerance(n, dtype, scale):
    U = orthogonal(n, n)
    values = scale * np.linspace(0.1, 1.0, n)

    def matrix(smallest):
        K = (U * np.r_[smallest, values[1:]]) @ U.T
        return ((K + K.T) / 2).astype(dtype)

    tolerance = mc.check(matrix(0.0)).tolerance
    assert mc.check(matrix(0.0)).psd
    assert mc.check(matrix(-0.9 * tolerance)).psd
    beyond = mc.check(matrix(-1.1 * tolerance))
    assert not beyond.psd
    assert not beyond.by_eigenvalues
    assert not beyond.by_quadratic
    assert not beyond.by_factor


def test_the_tolerance_covers_rounding_and_not_more_than_needed():
    for kernel in (mc.Gaussian(3.0), mc.Linear(), mc.exp(mc.Linear()), mc.Polynomial(4, c=1.0), mc.Matern(2.0, 0.7)):
        for dtype in (np.float64, np.float32):
            X = np.repeat(rng.normal(size=(60, 4)), 2, axis=0).astype(dtype)
            result = mc.check(kernel, X)
            assert result.psd
            assert result.tolerance < 2e5 * np.finfo(dtype).eps * result.eigenvalues[-1]


@settings(max_examples=settings.default.max_examples // 4)
@given(kernel=vector_kernels, exponent=st.floats(-3, 2), seed=st.integers(0, 99))
def test_every_proven_kernel_passes_on_any_data(kernel, exponent, seed):
    X = 10**exponent * np.random.default_rng(seed).normal(size=(12, 3))
    X[6:] = X[:6] * (1 + 1e-9)
    result = mc.check(kernel, X)
    assert result.psd, str(result)


def test_one_point_zeros_integers_and_objects():
    assert mc.check([[0.0]]).psd
    assert mc.check(np.zeros((3, 3))).rank == 0
    assert mc.check([[2]]).factor.tolist() == [[pytest.approx(2**0.5)]]
    assert not mc.check([[-1]]).psd
    assert mc.check(np.eye(3, dtype=bool)).rank == 3
    assert mc.check(mc.Intersection(), [{1, 2}, set(), {2}]).psd
    assert mc.check(mc.Linear(), [[1.0, 2.0], [3.0, 4.0]]).rank == 2
    assert mc.check(np.full((2, 2), 1e308)).psd
    assert not mc.check([[1e-310, 2e-310], [2e-310, 1e-310]]).psd


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mc.check(np.ones((2, 3))), "square matrix"),
        (lambda: mc.check(np.ones(3)), "square matrix"),
        (lambda: mc.check(np.empty((0, 0))), "square matrix"),
        (lambda: mc.check([[1.0, np.nan], [np.nan, 1.0]]), "finite.*row 0, column 1"),
        (lambda: mc.check([[1.0, 2.0], [3.0, 1.0]]), "symmetric.*row 0, column 1"),
        (lambda: mc.check([["a", "b"], ["b", "a"]]), "real numbers"),
        (lambda: mc.check(np.eye(2) * 1j), "real numbers"),
        (lambda: mc.check(mc.Linear()), "needs data"),
        (lambda: mc.check(np.eye(2), np.eye(2)), "must be a kernel"),
        (lambda: mc.check(mc.FromFunction(lambda x, z: float(x[0])), rng.normal(size=(4, 2))), "symmetric"),
        (lambda: mc.repair(np.eye(2), "fix"), "'clip', 'flip' or 'shift'"),
        (lambda: mc.repair([[1.0, 2.0], [3.0, 1.0]]), "symmetric"),
        (lambda: mc.repair(np.eye(2)).project(np.ones((1, 3))), "one column per training point"),
    ],
)
def test_bad_matrices_are_refused(call, message):
    with pytest.raises(mc.InvalidInput, match=message):
        call()


# -- refute ---------------------------------------------------------------------------------------------------------

F = mc.FromFunction
NOT_KERNELS = {
    "tanh(⟨x,z⟩ − 1)": (F(lambda x, z: np.tanh(x @ z - 1.0)), {"dim": 2}, 1),
    "−‖x−z‖²": (F(lambda x, z: -squared(x, z)), {"dim": 2}, 2),
    "‖x−z‖²": (F(squared), {"dim": 2}, 2),
    "exp ‖x−z‖": (F(lambda x, z: np.exp(np.linalg.norm(x - z))), {"dim": 2}, 2),
    "√(⟨x,z⟩ + 1)": (F(lambda x, z: (x @ z + 1) ** 0.5), {"dim": 2}, 3),
    "√(⟨x,z⟩ + 1), complex": (F(lambda x, z: (float(x @ z) + 1) ** 0.5), {"dim": 2}, 3),
    "(⟨x,z⟩ − 1)²": (F(lambda x, z: (x @ z - 1) ** 2), {"dim": 2}, 2),
    "Gaussian − wider": (F(lambda x, z: np.exp(-squared(x, z) / 2) - np.exp(-squared(x, z) / 8)), {"dim": 2}, 2),
    "1.5 Gaussian − wider": (
        F(lambda x, z: 1.5 * np.exp(-squared(x, z) / 2) - np.exp(-squared(x, z) / 8)),
        {"dim": 1},
        3,
    ),
    "exp(−r^2.1)": (F(lambda x, z: np.exp(-(squared(x, z) ** 1.05))), {}, 3),
    "min − intersection": (F(lambda A, B: min(len(A), len(B)) - len(A & B)), {"space": "sets"}, 2),
    "overlap": (F(lambda A, B: len(A & B) / min(len(A), len(B))), {"space": "sets"}, 3),
    "exp(−edit)": (F(lambda s, t: np.exp(-edit_distance(s, t))), {"space": "strings"}, 22),
    "Tanh": (mc.Tanh(1.0, -1.0), {"dim": 2}, 1),
    "Tanh + 1": (mc.Tanh(1.0, 1.0), {}, 2),
    "exp(Tanh)": (F(lambda x, z: np.exp(np.tanh(x @ z))), {}, 3),
    "Epanechnikov": (mc.Epanechnikov(1.0), {"dim": 1}, 3),
    "Uniform": (mc.Uniform(2.0), {"dim": 1}, 3),
    "Tricube": (mc.Tricube(0.3), {"dim": 1}, 4),
    "Biweight": (mc.Biweight(1.0), {"dim": 1}, 4),
    "tiny Biweight": (mc.Biweight(1e-5), {"dim": 3}, 4),
    "Triangular, d = 2": (mc.Triangular(1.0), {"dim": 2}, 25),
    "Triangular, some d": (mc.Triangular(1.0), {}, 25),
    "Epanechnikov, d = 20": (mc.Epanechnikov(1.0), {"dim": 20}, 3),
    "weights on columns": (mc.Uniform(1.0).on(0) * mc.Uniform(1.0).on(1), {"dim": 2}, 4),
    "matrix": (mc.Precomputed([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]), {}, 3),
    "kernel + function": (
        mc.Gaussian(1.0) + F(lambda x, z: -np.exp(-np.sum((x - z) ** 2) / 8)),
        {"dim": 2},
        2,
    ),
}


def trials(n=5000):
    """As many trials on a busy machine as on an idle one."""
    return {"seconds": 600.0, "trials": n}


@pytest.mark.parametrize("name", NOT_KERNELS)
def test_what_is_no_kernel_is_refuted(name):
    kernel, where, size = NOT_KERNELS[name]
    r = mc.refute(kernel, **where, **trials())
    assert r.refuted
    assert r.value < 0
    assert len(r.points) == len(r.vector) == len(r.gram) <= size
    assert r.vector @ r.gram @ r.vector == pytest.approx(r.value, rel=1e-4, abs=1e-9)
    assert "is not a kernel: aᵀKa ≤ -" in str(r)
    # Minimal: none of the points can be left out.
    for i in range(len(r.points)) if len(r.points) > 1 else ():
        rest = [x for j, x in enumerate(r.points) if j != i]
        assert not mc.refute(kernel, points=rest).refuted
    # Whole numbers, and vectors with few digits.
    assert r.vector.dtype.kind == "i"
    if isinstance(r.points, np.ndarray):
        assert np.abs(r.points - np.vectorize(lambda v: float(f"{v:.4g}"))(r.points)).max() < 1e-15


def test_the_smallest_eigenvalue_of_the_edit_distance_kernel():
    strings = STRINGS.pool(None, "01", 4, None)
    k = F(lambda s, t: np.exp(-edit_distance(s, t)))
    assert len(strings) == 31
    assert mc.check(k, strings).eigenvalues[0] == pytest.approx(-0.0429, abs=5e-5)
    assert mc.check(k, strings[1:]).eigenvalues[0] == pytest.approx(-0.0429, abs=5e-5)
    r = mc.refute(k, points=strings)
    assert r.refuted
    assert set(r.points) <= set(strings)


def test_a_refutation_can_be_verified_independently():
    r = mc.refute(mc.Tanh(1.0, 0.0), dim=2, **trials())
    with mpmath.workdps(50):
        X = [[mpmath.mpf(float(v)) for v in x] for x in r.points]
        a = [mpmath.mpf(int(v)) for v in r.vector]
        total = mpmath.fsum(
            u * v * mpmath.tanh(mpmath.fdot(x, z)) for u, x in zip(a, X, strict=True) for v, z in zip(a, X, strict=True)
        )
        assert total <= mpmath.mpf(r.value) < 0


def test_asymmetry_is_a_counterexample():
    r = mc.refute(F(lambda x, z: float(x @ z + 1e-6 * x[0])), dim=2, **trials())
    assert r.refuted
    assert len(r.points) == 2
    assert len(r.vector) == 0
    assert r.value > 0
    assert "but k(x2, x1)" in str(r)


def test_the_answer_is_never_valid():
    r = mc.refute(mc.Gaussian(1.0), dim=2, trials=3)
    assert not r.refuted
    assert r.trials == 3
    assert "not refuted after 3 trials" in str(r)
    assert "valid" not in str(r)
    assert len(r.points) == 0


def test_the_triangular_weight_is_not_refuted_on_a_line():
    assert not mc.refute(mc.Triangular(0.7), dim=1, **trials(300)).refuted


def test_functions_that_fail_at_some_points_are_refuted_on_the_others():
    r = mc.refute(F(lambda x, z: np.sqrt(float(x @ z) - 0.1)), dim=1, **trials())
    assert r.refuted
    assert r.skipped > 0
    assert "gave no number" in str(r)


def test_the_number_of_trials_is_kept():
    r = mc.refute(mc.Linear(), dim=2, trials=7)
    assert r.trials == 7
    assert not r.stopped


def test_equal_seeds_give_equal_counterexamples():
    first, second = (mc.refute(mc.Biweight(1.0), dim=1, random_state=3, **trials()) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.vector, second.vector)


state = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mc.refute(F(lambda x, z: None), dim=2), "finite number for some points.*NoneType"),
        (lambda: mc.refute(F(lambda x, z: np.ones(3)), dim=2), "finite number for some points"),
        (lambda: mc.refute(F(lambda x, z: 1 / 0), dim=2), "ZeroDivisionError"),
        (lambda: mc.refute(F(lambda x, z: float("nan")), dim=2), "finite number for some points"),
        (lambda: mc.refute(F(lambda x, z: state.normal()), dim=2), "same value for the same points"),
        (lambda: mc.refute(F(lambda s, t: float(len(s & t)))), "or describe its points by dim="),
        (lambda: mc.refute(mc.Gaussian([1.0, 2.0]), dim=3), "finite number for some points"),
        (lambda: mc.refute(mc.Linear(), dim=0), "`dim` must be a whole number ≥ 1, got 0"),
        (lambda: mc.refute(mc.Linear(), dim=1.5), "`dim` must be a whole number"),
        (lambda: mc.refute(mc.Linear(), space="numbers"), "`space` must be one of"),
        (lambda: mc.refute(mc.Linear(), points=[]), "at least one candidate"),
        (lambda: mc.refute(mc.Precomputed()), "counterexample needs the matrix"),
        (lambda: mc.refute(mc.Linear(), seconds=0.0), "`seconds` must be a number > 0"),
        (lambda: mc.refute(mc.Linear(), trials=0), "`trials` must be a whole number ≥ 1"),
        (lambda: mc.refute(mc.Intersection(), length=0), "`length` must be a whole number ≥ 1"),
        (lambda: mc.refute(lambda x, z: 1.0), "must be a kernel"),
    ],
)
def test_broken_functions_are_named(call, message):
    with pytest.raises(mc.InvalidInput, match=message):
        call()


def hard_points(seed, d=3):
    """Points of many sizes, some nearly equal, some on a line: what makes Gram matrices nearly singular."""
    rng = np.random.default_rng(seed)
    X = next(candidates.random([d], rng))[:16]
    near = X[:5] + 1e-4 * rng.normal(size=(len(X[:5]), d))
    return np.vstack([X, near, 10 ** rng.uniform(-3, 3, size=(6, 1)) * rng.normal(size=(6, d))])


@pytest.mark.thorough
@given(kernel=vector_kernels, seed=st.integers(0, 10**6))
def test_no_proven_expression_is_refuted(kernel, seed):
    r = mc.refute(kernel, points=hard_points(seed))
    assert not r.refuted, str(r)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 8)
@given(kernel=vector_kernels, seed=st.integers(0, 10**6))
def test_no_proven_expression_is_refuted_by_search(kernel, seed):
    r = mc.refute(kernel, dim=3, random_state=seed, trials=120)
    assert not r.refuted, str(r)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 4)
@given(kernel=set_kernels, seed=st.integers(0, 10**6))
def test_no_proven_expression_on_sets_is_refuted(kernel, seed):
    r = mc.refute(kernel, random_state=seed, trials=4)
    assert not r.refuted, str(r)


VALID = {
    "rank-deficient xᵀAz": (mc.Bilinear(np.outer([1.0, 0.3], [1.0, 0.3])), {}),
    "rank-deficient matrix": (mc.Precomputed(np.outer(np.arange(9) / 7, np.arange(9) / 7)), {}),
    "single precision matrix": (mc.Precomputed(np.outer(np.arange(9) / 7, np.arange(9) / 7).astype(np.float32)), {}),
    "single precision map": (mc.Gaussian(1.0).after(lambda X: (X * 3).astype(np.float32)), {"dim": 2}),
    "features": (mc.FromFeatures(lambda X: np.column_stack([X, X**2, X**3])), {"dim": 2}),
    "huge factors": (mc.Linear().rescale(lambda X: 1e9 * np.sin(X[:, 0])), {"dim": 2}),
    "overflow": (mc.exp(mc.Polynomial(2, c=1.0)), {"dim": 2}),
    "degree 9": (mc.Polynomial(9), {"dim": 2}),
    "tiny width": (mc.Gaussian(1e-6), {"dim": 2}),
    "tiny values": (F(lambda x, z: 1e-300 * float(x @ z)), {"dim": 2}),
    "denormal values": (F(lambda x, z: 1e-310), {"dim": 2}),
    "huge values": (F(lambda x, z: 1e300), {"dim": 2}),
    "zero": (F(lambda x, z: 0), {"dim": 2}),
    "cancellation": (F(lambda x, z: np.exp(-squared(x, z)) - np.exp(-x @ x) * np.exp(-z @ z)), {"dim": 1}),
    "single precision function": (F(lambda x, z: np.float32(np.exp(-squared(x, z))), error=1e-6), {"dim": 2}),
    "categories": (mc.Delta() + mc.Hamming(), {}),
    "sets": (mc.exp(np.log(2) * mc.Intersection()).normalize(), {}),
}


@pytest.mark.parametrize("name", VALID)
def test_badly_scaled_kernels_are_not_refuted(name):
    kernel, where = VALID[name]
    r = mc.refute(kernel, **where, **trials(100))
    assert not r.refuted, str(r)


# -- planted bugs ---------------------------------------------------------------------------------------------------


class Claimed(mc.Kernel):
    """⟨x, z⟩ − c with a false proof."""

    c: float = mc.positive(0.5)

    def tile(self, block, out):
        block.dot(out)
        out -= self.c

    def enclose(self, x, z):
        return dot(x, z) - self.c

    def proof(self, dim=None):
        return mc.Axiom(self, "because I say so")


class Blurred(mc.Kernel):
    """The same, with values known to ±10 only."""

    c: float = mc.positive(0.5)
    tile, proof = Claimed.tile, Claimed.proof

    def enclose(self, x, z):
        return dot(x, z) - self.c + Interval(-10, 10)


class Noisy(mc.Kernel):
    """The constant 1 with a wrong digit, whose exact values are right."""

    def tile(self, block, out):
        x, z = block.vectors()
        out[...] = 1.0 + 1e-9 * np.sin(1e6 * np.add.outer(x[:, 0], z[:, 0]))

    def enclose(self, x, z):
        return exactly(1)


@pytest.mark.thorough
def test_a_false_proof_is_refuted_and_an_uncertain_value_is_not():
    assert Claimed(0.5).proof().valid
    assert mc.refute(Claimed(0.5), dim=2, **trials()).refuted
    near = mc.refute(Blurred(0.5), dim=2, **trials(100))
    assert not near.refuted, str(near)
    assert not mc.refute(Noisy(), dim=2, **trials(100)).refuted
    assert not mc.check(Claimed(0.5), np.zeros((2, 2))).psd


def test_the_guard_against_false_refutations_has_teeth(monkeypatch):
    """Without interval arithmetic the noisy constant would be refuted: the planted bug is caught by the test above."""
    monkeypatch.setattr(
        Noisy, "enclose", lambda self, x, z: exactly(float(self([list(map(float, x))], [list(map(float, z))])[0, 0]))
    )
    assert mc.refute(Noisy(), dim=2, **trials()).refuted


def test_shrink_keeps_a_violation_and_drops_the_rest():
    K = np.eye(12)
    K[np.ix_([2, 5, 9], [2, 5, 9])] += 0.9 * np.array([[0, 1, -1], [1, 0, 1], [-1, 1, 0]])
    hunt = search.Search(mc.Linear(), 1.0, None, rng)
    assert hunt.shrink(K, 1e-14).tolist() == [2, 5, 9]
    assert search._usable(np.array([[1.0, np.nan, 1.0], [np.nan, 1.0, np.nan], [1.0, np.nan, 1.0]])).tolist() == [0, 2]


def test_bounds_are_rounded_to_the_safe_side():
    third = Fraction(1, 3)
    assert confirmation.below(third) <= third < np.nextafter(confirmation.below(third), 1)
    assert confirmation.below(-third) <= -third
    assert confirmation.below(Fraction(10) ** 400) == np.finfo(np.float64).max


# -- repair ---------------------------------------------------------------------------------------------------------

symmetric = (
    st.integers(1, 8)
    .flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=st.floats(-5, 5).map(lambda v: round(v, 3))))
    .map(lambda A: A + A.T)
)


@pytest.mark.thorough
@given(K=symmetric, method=st.sampled_from(["clip", "flip", "shift"]))
def test_repaired_matrices_are_positive_semidefinite(K, method):
    r = mc.repair(K, method)
    assert mc.check(r.K).psd
    assert r.moved == pytest.approx(np.linalg.norm(r.K - K), abs=1e-9)
    assert r.method in str(r)
    if method != "shift":
        np.testing.assert_allclose(r.project(K), r.K, atol=1e-9)
        np.testing.assert_allclose(r.project(K[0]), r.K[0], atol=1e-9)
    else:
        np.testing.assert_array_equal(r.project(K), K)
        off = ~np.eye(len(K), dtype=bool)
        np.testing.assert_allclose(r.K[off], K[off], atol=1e-12)
    np.testing.assert_allclose(mc.repair(r.K, method).K, r.K, atol=1e-9)


@pytest.mark.thorough
@given(B=symmetric, method=st.sampled_from(["clip", "flip", "shift"]))
def test_positive_semidefinite_matrices_stay(B, method):
    K = B @ B.T
    r = mc.repair(K, method)
    assert len(r.negative) == 0
    np.testing.assert_allclose(r.K, K, atol=1e-13 * max(1.0, np.abs(K).max()) * len(K))


def is_nearest(K, repaired, seed):
    """Whether no random positive semidefinite matrix, near or far, is closer to K."""
    rng = np.random.default_rng(seed)
    best = np.linalg.norm(repaired - K)
    for _ in range(50):
        step = rng.normal(size=K.shape) * 10 ** rng.uniform(-4, 0)
        near = np.linalg.cholesky(repaired + 1e-9 * np.eye(len(K))) + np.tril(step)
        if np.linalg.norm(near @ near.T - K) < best - 1e-7:
            return False
    return True


def test_clip_is_the_nearest_and_the_others_are_not():
    U = orthogonal(5, 7)
    K = (U * [-2.0, -0.5, 0.3, 1.0, 4.0]) @ U.T
    assert all(is_nearest(K, mc.repair(K).K, seed) for seed in range(10))
    assert not all(is_nearest(K, mc.repair(K, "flip").K, seed) for seed in range(10))
    assert not all(is_nearest(K, mc.repair(K, "shift").K, seed) for seed in range(10))
    np.testing.assert_allclose(mc.repair(K).negative, [-2.0, -0.5])
    assert mc.repair(K).moved == pytest.approx(np.hypot(2.0, 0.5))
    assert mc.repair(K, "flip").moved == pytest.approx(2 * np.hypot(2.0, 0.5))
    assert mc.repair(K, "shift").moved == pytest.approx(2 * 5**0.5)
    assert "2 of 5 eigenvalues were negative (smallest -2); K moved by 2.06155" in str(mc.repair(K))


def test_repair_works_at_all_scales():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(mc.repair(scale * K).K / scale, mc.repair(K).K)
    assert mc.repair(np.zeros((2, 2))).relative == 0.0


@pytest.mark.parametrize(
    ("f", "dim"),
    [
        (lambda x, z: np.cos(x[0] - z[0]), 1),
        (lambda x, z: np.cos((x - z) @ np.array([1.0, 2.0])), 2),
        (lambda x, z: np.exp(-2 * np.sin(np.pi * (x[0] - z[0])) ** 2), 1),
        (lambda x, z: np.prod(np.cos(3 * (x - z))), 2),
    ],
)
def test_functions_that_lose_digits_far_away_are_not_refuted_there(f, dim):
    """x − z of large x and z is off by a rounding of x: what that does to f is no counterexample."""
    assert not mc.refute(mc.FromFunction(f), dim=dim, **trials(200)).refuted


# -- the function's own rounding, the clock, negative spectra -------------------------------------------------------


def distance(x, z):
    return float(np.sqrt(np.sum((x - z) ** 2)))


def spherical(r):
    return 1 - 1.5 * r + 0.5 * r**3 if r < 1 else 0.0


def single(x, z):
    return float(np.exp(-np.sum((x.astype(np.float32) - z.astype(np.float32)) ** 2)))


ROUNDED = {
    "(1 + ⟨x,z⟩/10⁶)^10⁶": lambda x, z: (1 + float(x @ z) / 1e6) ** 1e6,
    "(1 + r²/10⁸)^−10⁸": lambda x, z: (1 + squared(x, z) / 1e8) ** -1e8,
    "Gaussian in float32": lambda x, z: np.float32(single(x, z)),
    "Gaussian in float32, as a float": single,
    "⟨x,z⟩ in float32": lambda x, z: float(np.float32(x @ z)),
    "log of exp": lambda x, z: np.log(np.exp(float(x @ z))) + 20.0,
    "1 − (1 − exp)": lambda x, z: 1e4 - (1e4 - np.exp(-squared(x, z))),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_kernels_are_not_refuted_by_the_rounding_of_their_functions(name):
    r = mc.refute(F(ROUNDED[name]), dim=2, trials=300, seconds=600)
    assert not r.refuted, str(r)


KERNELS = [
    *(mc.Gaussian(s) for s in (0.01, 1.0, 30.0)),
    *(mc.Matern(1.0, nu=nu) for nu in (0.5, 1.5, 2.5, 7.3, 90.0)),
    *(mc.Polynomial(p, c=c) for p, c in ((1, 0.0), (3, 1.0), (9, 0.1))),
    mc.Laplacian(0.3),
    mc.RationalQuadratic(1.0, 1e4),
    mc.ArcCosine(1),
    mc.exp(mc.Linear()),
    mc.exp(mc.Linear()).normalize(),
    mc.Linear().normalize() ** 50,
]


# Coarse values are the harder ones: of the fine ones a few are enough.
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dtype", "kernel"),
    [*((np.float32, kernel) for kernel in KERNELS), *((np.float64, kernel) for kernel in KERNELS[::4])],
    ids=lambda value: value.__name__ if isinstance(value, type) else repr(value),
)
def test_catalogue_kernels_as_functions_are_not_refuted(kernel, dtype):
    f = F(lambda x, z: float(kernel(x[None].astype(dtype), z[None].astype(dtype))[0, 0]))
    X = hard_points(7, d=2)[:12]
    for points in (X, X + 100.0):
        with contextlib.suppress(mc.InvalidInput):  # the values overflow far from the origin
            r = mc.refute(f, points=points, seconds=600)
            assert not r.refuted, str(r)


@pytest.mark.thorough
def test_the_verdict_says_what_it_rests_on():
    function = mc.refute(F(lambda x, z: -squared(x, z)), dim=2)
    assert function.evidence is confirmation.Evidence.VALUES
    assert 0 < function.error < 1e-9
    assert "provided that the function's values are off by at most 1e-12" in str(function)
    exact = mc.refute(mc.Epanechnikov(1.0), dim=1)
    assert exact.evidence is confirmation.Evidence.INTERVALS
    assert exact.error == 0
    rough = mc.refute(F(lambda x, z: np.float32(-squared(x, z))), dim=2)
    assert rough.refuted
    assert rough.error > 1e-6


def test_noise_is_measured_not_guessed():
    X = rng.normal(size=(5, 2))
    for name, least, most in (
        ("(1 + ⟨x,z⟩/10⁶)^10⁶", 1e-11, 1e-6),
        ("(1 + r²/10⁸)^−10⁸", 1e-9, 1e-5),
        ("Gaussian in float32, as a float", 1e-8, 1e-4),
    ):
        assert least < noise.measured_noise(ROUNDED[name], X) < most, name
    for exact in (lambda x, z: float(x @ z), lambda x, z: np.exp(-distance(x, z)), lambda x, z: float(x[0] > z[0])):
        assert noise.measured_noise(exact, X) < 1e-12


FOURIER = {
    "Gaussian − 0.01": (lambda x, z: np.exp(-squared(x, z)) - 0.01, 2, 110),
    "spherical, d = 4": (lambda x, z: spherical(distance(x, z)), 4, 5000),
    "(1 − r/2)², d = 6": (lambda x, z: max(0.0, 1 - distance(x, z) / 2) ** 2, 6, 20000),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOURIER)
def test_violations_that_need_many_points_are_found(name):
    f, dim, most = FOURIER[name]
    r = mc.refute(F(f), dim=dim, seconds=120)
    assert r.refuted
    assert 64 < len(r.points) == len(r.vector) <= most
    # The quadratic form by the definition; on a lattice its autocorrelation by Fourier's transform.
    a = r.vector.astype(float)
    if len(r.gram):
        total = a @ np.array([[f(x, z) for z in r.points] for x in r.points]) @ a
    else:
        axis = np.unique(r.points[:, 0])
        m, spacing = len(axis), axis[1] - axis[0]
        assert len(np.unique(r.points, axis=0)) == m**dim
        waves = np.fft.fftn(a.reshape((m,) * dim), (2 * m,) * dim, range(dim))
        lags = np.fft.fftfreq(2 * m, 1 / (2 * m)) ** 2
        squares = sum(lags.reshape([-1 if i == j else 1 for j in range(dim)]) for i in range(dim))
        phi = [f(spacing * np.sqrt(q) * np.eye(dim)[0], np.zeros(dim)) for q in range(int(squares.max()) + 1)]
        total = float((np.fft.ifftn(np.abs(waves) ** 2).real * np.array(phi)[squares.astype(int)]).sum())
    assert total == pytest.approx(r.value, rel=1e-3)
    assert total < 0
    if not len(r.gram):
        assert r.evidence is confirmation.Evidence.RADIAL
        assert "depends on ‖x − z‖ alone" in str(r)


@pytest.mark.parametrize(
    ("f", "dim"),
    [
        (lambda x, z: spherical(distance(x, z)), 3),
        (lambda x, z: max(0.0, 1 - distance(x, z) / 2) ** 2, 3),
        (lambda x, z: max(0.0, 1 - distance(x, z)), 1),
        (lambda x, z: np.sinc(distance(x, z)), 3),
    ],
)
def test_spectra_that_touch_zero_are_not_refuted(f, dim):
    hunt = search.Search(F(f), 60.0, None, np.random.default_rng(0))
    hunt.vectorial = True
    assert hunt.lattices(dim) is None


def test_weights_of_a_box_are_those_of_its_points():
    box = spectrum._box(0.5, 3, 2, 4, 20)
    X, a = box.points / box.spacing, box.vector
    squares = ((X[:, None] - X[None]) ** 2).sum(-1).astype(int)
    direct = np.bincount(squares.ravel(), weights=np.multiply.outer(a, a).ravel().astype(float))
    np.testing.assert_array_equal(direct, np.array(box.weights()[: len(direct)], dtype=float))
    assert box.size == int(np.abs(a).sum()) ** 2


class Steps:
    """A clock that moves by one at every reading, and at every evaluation of the function below."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.mark.parametrize("limit", [1, 500, 3000, 6000])
def test_the_clock_ends_the_search_between_any_two_evaluations(monkeypatch, limit):
    clock, calls = Steps(), []
    monkeypatch.setattr(search, "clock", clock)

    def f(x, z):
        calls.append(clock())  # a search that does not look is late too
        return np.exp(-(distance(x, z) ** 2.1)) if distance(x, z) else 1.0

    r = mc.refute(F(f), dim=2, seconds=limit)
    assert r.stopped or r.refuted
    # One call of `enclose` moves the points a little, which is one step of the search.
    assert sum(at > limit + 1 for at in calls) <= 9


@pytest.mark.thorough
def test_errors_of_a_function_do_not_escape():
    def touchy(x, z):
        if (np.round(x, 6) != x).any() or (np.round(z, 6) != z).any():
            raise OverflowError("math range error")
        return float(x @ z + x[0])

    # Asymmetric, but not defined next to any of the points: nothing can be said about its rounding there.
    r = mc.refute(F(touchy), dim=2, trials=40, seconds=600)
    assert not r.refuted
    assert r.skipped > 0
    r = mc.refute(F(lambda x, z: math.exp(700 * float(x @ z) + x[0])), dim=1, trials=60, seconds=600)
    assert r.skipped > 0


# -- check: tolerance and proof -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("nu", [5.3, 90.0])
def test_matern_of_high_order_on_close_points_passes(nu, scale):
    for seed in range(3):
        X = scale * np.random.default_rng(seed).normal(size=(12, 1))
        result = mc.check(mc.Matern(1.0, nu=nu), X)
        assert result.psd, str(result)


class Coarse(mc.Kernel):
    """⟨x, z⟩, computed to three digits."""

    def tile(self, block, out):
        block.dot(out)
        out[...] = np.round(out, 3)

    def enclose(self, x, z):
        return dot(x, z)

    def proof(self, dim=None):
        return mc.Axiom(self, "an inner product")


def test_a_proof_and_numbers_that_disagree():
    X = np.random.default_rng(0).normal(size=(12, 1))
    lost = mc.check(Coarse(), X)
    assert not lost.psd
    assert lost.verdict is validity.Verdict.ROUNDING
    assert "its proof stands" in str(lost)
    wrong = mc.check(Claimed(0.5), np.zeros((2, 2)))
    assert wrong.verdict is validity.Verdict.FAILS
    assert "its proof stands" not in str(wrong)
    assert mc.check(mc.Gaussian(1.0), X).verdict is validity.Verdict.HOLDS
    assert mc.check(F(lambda x, z: -squared(x, z)), X).verdict is validity.Verdict.FAILS


def test_functions_in_single_precision_pass_the_check():
    X = np.repeat(np.random.default_rng(0).normal(size=(8, 2)), 2, axis=0)
    X[1::2] += 1e-3
    assert mc.check(F(single), X).psd
    assert not mc.check(F(lambda x, z: single(x, z) - 0.5), 10 * X).psd


def test_kernels_on_named_columns_ask_for_rows_and_take_a_frame():
    import pandas as pd

    kernel = mc.Gaussian(1.0).on("age") * mc.Hamming().on("city")
    with pytest.raises(mc.InvalidInput, match=r"reads 'age', 'city'.*Pass a data frame with these columns"):
        mc.refute(kernel)
    frame = pd.DataFrame({"age": [0.0, 1.0, 2.0], "city": ["a", "b", "a"], "other": [1, 2, 3]})
    assert not mc.refute(kernel, points=frame).refuted
    wrong = mc.refute(mc.Uniform(1.5).on("age"), points=frame)
    assert wrong.refuted
    assert "'age': 2" in str(wrong)
    assert list(wrong.points.columns) == list(frame.columns)


# -- rounding, and what is not rounding -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1e6, 1e9])
def test_rounding_that_hides_where_a_function_is_nearly_constant_is_seen(n):
    """(1 + ⟨x, z⟩/n)ⁿ is a kernel: near the origin it takes two values, 1 and the next that a power of a float has."""
    k = mc.FromFunction(lambda x, z: (1 + float(x @ z) / n) ** n)
    X = np.sqrt(n / 1e6) * np.array([[1.15e-05, 1.15e-05], [1.55e-05, 1.55e-05]])
    assert k(X)[0, 1] ** 2 > k(X)[0, 0] * k(X)[1, 1]
    assert not mc.refute(k, points=X, trials=1).refuted
    assert mc.check(k, X).verdict is validity.Verdict.HOLDS


@pytest.mark.parametrize(
    "f", [lambda x, z: np.sin(1e6 * (x @ z)), lambda x, z: np.floor(1e5 * x.sum() * z.sum()) % 7 - 3]
)
def test_a_function_that_moves_up_and_down_is_not_called_noisy(f):
    X = np.random.default_rng(0).normal(size=(20, 2))
    found = mc.check(mc.FromFunction(f), X)
    assert found.verdict is validity.Verdict.FAILS
    assert found.tolerance < 1e-6


def test_values_may_contradict_what_an_author_claims():
    class Lowered(mc.Kernel):
        def tile(self, block, out):
            block.sqdist(out)
            np.exp(-out, out=out)
            np.subtract(out, 0.01, out=out)

        def proof(self, dim=None):
            return mc.Axiom(self, "trust me")

    X = 10.0 * np.arange(150)[:, None]  # fewer than 101 points do not show it
    assert mc.check(Lowered(), X).verdict is validity.Verdict.FAILS
