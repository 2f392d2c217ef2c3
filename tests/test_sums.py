"""Kernel sums by every path against the definition, a double loop in float64 (mpmath where that has no digits left)."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import mercer as mc
from mercer.errors import InvalidInput
from mercer.smoothing import exponents, plan, sums
from mercer.smoothing.sums.fast import fast_sums
from mercer.smoothing.sums.plans import COMPACT
from mercer.smoothing.sums.tiled import tiled

rng = np.random.default_rng(0)

LINE = ["line cells", "line windows"]
SPACE = ["space cells", "direct"]
PROFILES = {
    "Uniform": lambda r: np.ones_like(r),
    "Triangular": lambda r: 1 - r,
    "Epanechnikov": lambda r: 1 - r**2,
    "Biweight": lambda r: (1 - r**2) ** 2,
    "Tricube": lambda r: (1 - r**3) ** 3,
}


def values(n, c=2):
    """Ones, and columns of both signs."""
    return np.column_stack([np.ones(n), *rng.normal(size=(c - 1, n))])


def naive(k, X, V, Z, powers, exclude=False, scale=None):
    """log maximum, sums and sums of absolute values, in units of the row's largest weight."""
    Z = X if Z is None else Z
    scale = np.ones(len(Z)) if scale is None else scale
    u = (X - Z[:, None]) / k.sigma
    with np.errstate(divide="ignore"):
        if isinstance(k, mc.Gaussian):
            log = -0.5 * (u**2).sum(axis=2) / scale[:, None] ** 2
        elif isinstance(k, mc.Laplacian):
            log = -np.abs(u).sum(axis=2) / scale[:, None]
        else:
            square = ((X - Z[:, None]) ** 2).sum(axis=2) * (1 / scale[:, None] ** 2) * (1 / k.sigma**2)
            r = np.sqrt(np.minimum(square, 1.0))
            log = np.log(PROFILES[type(k).__name__](r) * (square <= 1))
    if exclude:
        np.fill_diagonal(log, -np.inf)
    largest = log.max(axis=1)
    W = np.exp(log - np.where(np.isfinite(largest), largest, 0.0)[:, None])
    monomials = [np.prod(u**alpha, axis=2) for alpha in powers]
    sizes = (np.abs(V) / np.maximum(np.abs(V).max(axis=0), 1e-300)).max(axis=1)[:, None] * np.abs(V).max(axis=0)
    return (
        largest,
        np.stack([(W * p) @ V for p in monomials], axis=1),
        np.stack([(W * np.abs(p)) @ sizes for p in monomials], axis=1),
    )


def error(k, X, V, Z, path, *, degree=0, exclude=False, scale=None, tolerance=1e-9):
    """The largest error of a path, relative to the sum of absolute values."""
    powers = exponents(X.shape[1], degree)
    if path == "tiled":
        z = None if Z is None else k.prepare(Z)
        log_scale, totals = tiled(k, k.prepare(X), V, z, powers, exclude=exclude, scale=scale)
    else:
        log_scale, totals = fast_sums(path, k, X, V, Z, powers, exclude, scale, tolerance)
    largest, expected, size = naive(k, X, V, Z, powers, exclude, scale)
    assert np.array_equal(np.isfinite(log_scale), np.isfinite(largest))
    there = np.isfinite(largest)
    assert (totals[~there] == 0).all()
    if path == "line tree":
        # moments of a node are rounded by its size: Σ w |u^α| of points that are all at u = 0 has no digits there
        size = size + 1e-4 * size[:, :1]
    found = totals[there] * np.exp(log_scale[there] - largest[there])[:, None, None]
    return float(np.max(np.abs(found - expected[there]) / np.maximum(size[there], 1e-300), initial=0.0))


def paths(k, d, degree=0):
    if isinstance(k, mc.Gaussian):
        return [*LINE, "direct"] if d == 1 else [*SPACE, "product"] if degree == 0 else SPACE
    if isinstance(k, mc.Laplacian):
        return ["recursions"]
    return ["line tree", "direct"] if d == 1 else SPACE


# --- every path is the double loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("degree", [0, 1, 4])
@pytest.mark.parametrize("sigma", [0.02, 0.4, 6.0])
def test_gaussian_on_a_line(sigma, degree, tolerance):
    X, Z, k = rng.normal(size=(250, 1)), 2 * rng.normal(size=(100, 1)), mc.Gaussian(sigma)
    for path in paths(k, 1, degree):
        assert error(k, X, values(250), Z, path, degree=degree, tolerance=tolerance) < tolerance
        assert error(k, X, values(250), None, path, degree=degree, exclude=True, tolerance=tolerance) < tolerance


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("sigma", [0.05, 0.5, 6.0])
@pytest.mark.parametrize("d", [2, 3])
def test_gaussian_in_space(d, sigma, degree, tolerance):
    X, Z, k = rng.normal(size=(160, d)), 1.5 * rng.normal(size=(60, d)), mc.Gaussian(sigma)
    for path in paths(k, d, degree):
        assert error(k, X, values(160, 3), Z, path, degree=degree, tolerance=tolerance) < tolerance
        assert error(k, X, values(160), None, path, degree=degree, exclude=True, tolerance=tolerance) < tolerance


@pytest.mark.parametrize("degree", [0, 3])
@pytest.mark.parametrize("weight", [*COMPACT, mc.Laplacian], ids=lambda w: w.__name__)
def test_compact_weights_and_the_laplacian(weight, degree):
    for d in (1, 2):
        if weight is mc.Laplacian and d == 2:
            continue
        X, Z = rng.normal(size=(160, d)), 1.5 * rng.normal(size=(40, d))
        for sigma in (0.05, 0.7, 9.0):
            k = weight(sigma)
            for path in paths(k, d):
                assert error(k, X, values(160), Z, path, degree=degree) < 1e-12
                assert error(k, X, values(160), None, path, degree=degree, exclude=True) < 1e-12


@pytest.mark.parametrize("degree", [0, 2])
def test_a_width_for_every_query(degree):
    for d in (1, 2):
        X, Z = rng.normal(size=(200, d)), rng.normal(size=(70, d))
        for k in (mc.Gaussian(0.3), mc.Tricube(0.6)):
            chosen = (
                ["tiled", "direct"] if d == 2 else ["tiled", "line windows" if k == mc.Gaussian(0.3) else "line tree"]
            )
            for path in chosen:
                for queries, exclude in ((Z, False), (None, True)):
                    scale = rng.uniform(0.3, 4.0, 70 if queries is not None else 200)
                    assert error(k, X, values(200), queries, path, degree=degree, exclude=exclude, scale=scale) < 1e-9


@pytest.mark.parametrize("degree", [0, 3])
def test_tiles_for_any_similarity(degree):
    X, Z = rng.normal(size=(1500, 2)), rng.normal(size=(70, 2))
    for k in (mc.Gaussian([0.3, 0.8]), mc.Laplacian(0.4), mc.Biweight(0.7)):
        assert error(k, X, values(1500), Z, "tiled", degree=degree) < 1e-12
        assert error(k, X[:200], values(200), None, "tiled", degree=degree, exclude=True) < 1e-12


def test_widths_by_column_use_the_fast_paths_too():
    X, Z, k = rng.normal(size=(300, 2)), rng.normal(size=(80, 2)), mc.Gaussian([0.2, 1.5])
    for degree in (0, 2):
        for path in paths(k, 2, degree):
            assert error(k, X, values(300), Z, path, degree=degree) < 1e-9


# --- hard data --------------------------------------------------------------------------------------------------------


def hard(d):
    n = 240
    clusters = np.concatenate([1e-3 * rng.normal(size=(n // 2, d)), 5 + 0.1 * rng.normal(size=(n // 2, d))])
    lattice = rng.integers(0, 4, size=(n, d)).astype(float)
    queries = 3 * rng.normal(size=(60, d))
    return {
        "clusters": (clusters, queries, 0.3),
        "narrow": (clusters, queries, 0.05),
        "duplicates": (lattice, rng.integers(0, 4, size=(60, d)).astype(float), 0.2),
        "between": (lattice, queries, 1.0),
        "offset": (1e6 + rng.normal(size=(n, d)), 1e6 + queries, 0.3),
        "tiny": (clusters[: n // 2], clusters[:50] + 1e-6, 1e-5),
        "huge": (clusters, queries, 1e8),
        "one point": (clusters[:1], queries, 1.0),
        "one query": (clusters, queries[:1], 1.0),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("degree", [0, 2])
@pytest.mark.parametrize("name", list(hard(1)))
@pytest.mark.parametrize("d", [1, 2])
def test_hard_data(d, name, degree):
    X, Z, sigma = hard(d)[name]
    for k in (mc.Gaussian(sigma), mc.Tricube(sigma), mc.Uniform(sigma)):
        for path in paths(k, d, degree):
            V = values(len(X))
            assert error(k, X, V, Z, path, degree=degree) < 1e-8
            assert error(k, X, V, None, path, degree=degree, exclude=True) < 1e-8


@pytest.mark.parametrize("d", [1, 2])
def test_values_of_mixed_size_and_sign(d):
    X, Z = rng.normal(size=(300, d)), rng.normal(size=(60, d))
    V = rng.normal(size=(300, 3))
    V[:100] = 0.0  # points without a value count nowhere
    V[100:110] *= 1e-9
    k = mc.Gaussian(0.2)
    for path in paths(k, d):
        assert error(k, X[100:], V[100:], Z, path) < 1e-9
        with_zeros = fast_sums(path, k, X, V, Z, exponents(d, 0), False, None, 1e-9)
        without = fast_sums(path, k, X[100:], V[100:], Z, exponents(d, 0), False, None, 1e-9)
        assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(with_zeros, without))
        log_scale, totals = fast_sums(path, k, X, V, None, exponents(d, 0), True, None, 1e-9)
        W = k(X)
        np.fill_diagonal(W, 0.0)
        expected, size = W @ V, W @ np.abs(V)
        assert (np.abs(np.exp(log_scale)[:, None] * totals[:, 0] - expected) <= 1e-7 * size.max(axis=1)[:, None]).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_far_from_all_data(d):
    """Beyond 10⁴ widths the logarithm of a weight has no digits left for its differences to another one's."""
    X, V = 0.1 * rng.normal(size=(60, d)), values(60)
    X[0] = X[1]
    for distance in (5.0, 30.0, 1e3, 1e6, 1e9):
        z = distance * np.ones(d) / np.sqrt(d)
        with mpmath.workdps(60):
            u = [[(mpmath.mpf(a) - mpmath.mpf(b)) / mpmath.mpf(0.1) for a, b in zip(x, z)] for x in X]
            log = [-sum(v * v for v in row) / 2 for row in u]
            w = [mpmath.exp(v - max(log)) for v in log]
            total, weighted = mpmath.fsum(w), mpmath.fsum(a * mpmath.mpf(b) for a, b in zip(w, V[:, 1]))
            expected = float(weighted / total)
            scale = float(max(log) + mpmath.log(total))
        k = mc.Gaussian(0.1)
        for path in paths(k, d):
            log_scale, totals = fast_sums(path, k, X, V, z[None], exponents(d, 0), False, None, 1e-9)
            assert totals[0, 0, 1] / totals[0, 0, 0] == pytest.approx(expected, rel=1e-7, abs=1e-9)
            assert log_scale[0] + np.log(totals[0, 0, 0]) == pytest.approx(scale, rel=1e-12, abs=1e-8)


@pytest.mark.parametrize("m", [3, 300])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_so_far_that_squares_overflow(d, m):
    """The nearest points decide at any distance, whatever the other queries are."""
    X, V = rng.uniform(size=(200, d)), values(200)
    X[0] = X[1] = 1.5  # the nearest on one side, twice
    for sigma in (0.3, np.linspace(0.2, 0.5, d)):
        k = mc.Gaussian(sigma)
        x, near = k.prepare(X), rng.uniform(size=(m, d))
        alone = sums(k, x, V, k.prepare(near))
        for distance in (1e31, 1e153, 1e160, 1e200, 1.7e308):
            Z = np.vstack([near, np.full((1, d), distance), np.full((1, d), -distance)])
            found = sums(k, x, V, k.prepare(Z), degree=0)
            assert np.isfinite(found.log_scale).all()
            np.testing.assert_allclose(found.values[:-2], alone.values, rtol=1e-7)
            last = np.argmin((X / np.broadcast_to(sigma, d) ** 2).sum(axis=1))
            np.testing.assert_allclose(found.totals[-2, 0], V[0] + V[1], rtol=1e-12)
            np.testing.assert_allclose(found.totals[-1, 0], V[last], rtol=1e-12)
            assert (found.log_scale[-2:] < -1e61).all()
            moments = sums(k, x, V, k.prepare(Z), degree=2)
            assert np.isfinite(moments.totals).all()
    for weight in (mc.Tricube(0.3), mc.Uniform(2.0)):
        found = sums(weight, x, V, k.prepare(np.full((m, d), 1e200)))
        assert (found.log_scale == -np.inf).all()
        assert (found.totals == 0).all()


def test_a_width_for_every_query_reaches_as_far_as_it_says():
    X, V = rng.uniform(size=(50, 2)), values(50)
    Z = np.array([[0.5, 0.5], [1e40, 0.0], [1e40, 0.0]])
    for k in (mc.Tricube(0.5), mc.Gaussian(0.5)):
        found = sums(k, k.prepare(X), V, k.prepare(Z), scale=[1.0, 1e45, 1.0])
        np.testing.assert_allclose(found.values[1, 0], V.sum(axis=0), rtol=1e-6)
        np.testing.assert_allclose(found.values[:1, 0], k(Z[:1], X) @ V, rtol=1e-7)
        assert (found.log_scale[2] == -np.inf) == isinstance(k, mc.Tricube)


def test_data_so_wide_that_squares_overflow():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1e200, 0.0], [1e200, 1e190], [-1.7e308, 0.0]])
    k, V = mc.Gaussian(1.0), np.eye(5)
    found = sums(k, k.prepare(X), V, k.prepare(np.vstack([X, [[1e100, 0.0]]])))
    e = np.exp(-0.5)
    expected = np.array([[1, e, 0, 0, 0], [e, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]])
    np.testing.assert_allclose(found.values[:5, 0], expected)
    np.testing.assert_allclose(found.totals[5, 0], [0, 1, 0, 0, 0], atol=1e-300)
    left = sums(k, k.prepare(X), V, exclude=True)
    np.testing.assert_allclose(left.totals[:2, 0], np.eye(5)[[1, 0]], atol=1e-300)
    assert (left.totals[[2, 3, 4], 0].argmax(axis=1) == [3, 2, 0]).all()
    assert np.isfinite(left.log_scale).all()


def test_points_without_a_value_count_nowhere():
    """A copy of the query without a value must not be the unit of its sum."""
    for d, similarities in ((2, [mc.Laplacian(0.01), mc.Matern(0.01), mc.Gaussian(0.01)]), (9, [mc.Gaussian(0.01)])):
        X = rng.uniform(size=(40, d))
        X[20:] = X[:20]
        V = np.concatenate([np.zeros((20, 1)), rng.normal(size=(20, 1))])
        for k in similarities:
            for degree, exclude in ((0, False), (0, True), (1, True)):
                found = sums(k, k.prepare(X), V, degree=degree, exclude=exclude)
                fewer = sums(k, k.prepare(X[20:]), V[20:], degree=degree, exclude=exclude)
                np.testing.assert_allclose(found.log_scale[20:], fewer.log_scale, rtol=1e-12, atol=1e-12)
                np.testing.assert_allclose(found.totals[20:], fewer.totals, rtol=1e-7, atol=1e-9)
                assert found.totals[20:, 0].all()


@pytest.mark.parametrize("d", [1, 2])
def test_nearly_equally_far(d):
    """The tree's distances are equal in float64, the weights differ by exp(10): whichever is called the nearest."""
    X = np.zeros((2, d))
    X[1] = 1e-8 / np.sqrt(d)
    k, z = mc.Gaussian(1.0), np.full((1, d), 1e9 / np.sqrt(d))
    for points in (X, X[::-1]):
        V = np.stack([points[:, 0] == 0, points[:, 0] > 0], axis=1).astype(float)
        for path in paths(k, d):
            _, totals = fast_sums(path, k, np.ascontiguousarray(points), V, z, exponents(d, 0), False, None, 1e-9)
            assert totals[0, 0, 0] / totals[0, 0, 1] == pytest.approx(np.exp(-10.0), rel=1e-6)


def test_moments_of_points_beyond_the_reach():
    """All of Σ w u² may come from points whose weight is below the tolerance of the nearest one's."""
    for d in (1, 2):
        X = np.concatenate([np.zeros((30, d)), np.full((30, d), 9.5) + 0.1 * rng.normal(size=(30, d))])
        for path in paths(mc.Gaussian(1.0), d, 2):
            assert error(mc.Gaussian(1.0), X, values(60), np.zeros((1, d)), path, degree=2, tolerance=1e-4) < 1e-4


def test_isolated_points_keep_their_digits_when_left_out():
    """Subtracting the own term would leave exp(−32) of 1 with two digits."""
    X = np.append(rng.normal(size=400) * 0.1, [8.0, 8.5])[:, None]
    for d, path in ((1, "line cells"), (1, "line windows"), (2, "space cells"), (2, "product"), (2, "direct")):
        points = np.repeat(X, d, axis=1) / np.sqrt(d)
        assert error(mc.Gaussian(1.0), points, values(402), None, path, exclude=True) < 1e-9


def test_one_point_far_from_all_others():
    """A spread that no grid can number."""
    for d in (1, 2, 3):
        X = np.append(rng.normal(size=(300, d)), np.full((1, d), 1e16), axis=0)
        k, Z = mc.Gaussian(0.05), np.append(rng.normal(size=(60, d)), np.full((1, d), 1e16), axis=0)
        V = values(301)
        total = sums(k, k.prepare(X), V, k.prepare(Z))
        expected = np.exp(-0.5 * (((X - Z[:, None]) / 0.05) ** 2).sum(axis=2)) @ V
        assert np.allclose(total.values[:, 0], expected, rtol=1e-7, atol=1e-290)
        for path in SPACE if d > 1 else ["line windows"]:
            assert error(k, X[:-1], V[:-1], Z[:-1], path) < 1e-9


def test_no_cancellation_of_prefix_sums():
    """A large value elsewhere must not cost digits here; global prefix sums lose them all."""
    x = np.sort(rng.uniform(0, 100, 2000))
    V = np.where(x < 50, 1e17, 1.0)
    k, z = mc.Epanechnikov(3.0), np.linspace(60, 95, 40)
    expected = k(z[:, None], x[:, None]) @ V
    _, totals = fast_sums("line tree", k, x[:, None], V[:, None], z[:, None], exponents(1, 0), False, None, 1e-9)
    assert np.allclose(totals[:, 0, 0], expected, rtol=1e-12)
    first, last = np.searchsorted(x, z - 3.0), np.searchsorted(x, z + 3.0)
    prefix = np.concatenate([[0.0], np.cumsum(V)])
    counts = prefix[last] - prefix[first]
    assert np.abs(counts / (last - first) - 1).max() > 0.01


# --- the whole --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "d", "n", "expected"),
    [
        (mc.Gaussian(0.1), 1, 2000, "line cells"),
        (mc.Gaussian(1e-6), 1, 2000, "line windows"),
        (mc.Tricube(0.1), 1, 2000, "line tree"),
        (mc.Laplacian(0.1), 1, 2000, "recursions"),
        (mc.Gaussian(0.01), 3, 2000, "space cells"),
        (mc.Epanechnikov(0.1), 2, 2000, "space cells"),
        (mc.Gaussian(1.0), 3, 2000, "product"),
        (mc.Gaussian(1.0), 20, 300, "product"),
        (mc.Triangular(5.0), 3, 500, "direct"),
        (mc.Laplacian(0.1), 2, 500, "tiled"),
        (mc.Gaussian(1.0) * mc.Linear(), 2, 500, "tiled"),
    ],
    ids=str,
)
def test_the_plan_is_followed_and_right(k, d, n, expected):
    X = rng.uniform(size=(n, d))
    x, V = k.prepare(X), values(n)
    chosen = plan(k, x)
    assert chosen.path == expected
    assert chosen.path in repr(chosen)
    assert chosen.reason in repr(chosen)
    W = k(X)
    np.fill_diagonal(W, 0.0)
    total = sums(k, x, V, exclude=True).values[:, 0]
    assert (np.abs(total - W @ V) <= 1e-7 * (np.abs(W) @ np.abs(V)) + 1e-290).all()


def test_objects_of_any_kind():
    words = [{"a", "b"}, {"b"}, {"c", "d"}, {"a", "c"}]
    k = mc.Intersection()
    total = sums(k, k.prepare(words), np.ones((4, 1))).values[:, 0, 0]
    assert np.allclose(total, k(words).sum(axis=1))


def test_exponents_are_graded():
    assert exponents(3, 0).tolist() == [[0, 0, 0]]
    assert exponents(1, 3).tolist() == [[0], [1], [2], [3]]
    powers = exponents(3, 4)
    assert len({tuple(p) for p in powers.tolist()}) == len(powers) == 35
    assert (np.diff(powers.sum(axis=1)) >= 0).all()


def test_bad_arguments():
    k = mc.Gaussian(1.0)
    x, V = k.prepare([[0.0], [1.0]]), np.ones((2, 1))
    for arguments, words in (
        ({"V": np.ones((3, 1))}, r"`V` must have shape"),
        ({"V": np.full((2, 1), np.nan)}, "finite"),
        ({"z": x, "exclude": True}, "exclude"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": None}, "tolerance"),
        ({"degree": -1}, "degree"),
        ({"scale": [1.0]}, "scale"),
        ({"scale": [1.0, 0.0]}, "scale"),
    ):
        with pytest.raises(InvalidInput, match=words):
            sums(k, x, **{"V": V, **arguments})
    with pytest.raises(InvalidInput, match="similarity of"):
        sums(mc.Linear(), x, V, scale=[1.0, 1.0])
    with pytest.raises(InvalidInput, match="columns"):
        sums(k, x, V, k.prepare([[0.0, 1.0]]), degree=1)
