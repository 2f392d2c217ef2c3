"""Tiles by NumPy and by the compiled loops against definitions: mpmath for exp, double loops for tiles."""

from __future__ import annotations

import hashlib
import itertools
import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from mercer._loops import costs, tables, tiles

DTYPES = [np.float32, np.float64]
SHAPES = [(1, 1), (3, 7), (33, 65), (257, 129)]
TOLERANCE = {np.float32: 2e-6, np.float64: 5e-15}

on_dtypes = pytest.mark.parametrize("dtype", DTYPES)
on_shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.fixture(autouse=True, params=["numpy", "loops"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim holds for small tiles and for large ones, whatever their size is."""
    monkeypatch.setattr(costs, "COMPILED_ENTRIES", {"numpy": 2**62, "loops": 0}[request.param])


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def inside(shape: tuple[int, int], dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """A tile that is a view of a larger matrix, and that matrix, whose other entries must stay 7."""
    matrix = np.full((shape[0] + 3, shape[1] + 11), 7, dtype=dtype)
    return matrix[2 : 2 + shape[0], 5 : 5 + shape[1]], matrix


def untouched(tile: np.ndarray, matrix: np.ndarray) -> bool:
    r, c = tile.shape
    frame = matrix.copy()
    frame[2 : 2 + r, 5 : 5 + c] = 7
    return bool((frame == 7).all())


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def pairs(X: np.ndarray, Z: np.ndarray, function) -> np.ndarray:
    """function(x, z) for every pair of rows, one after the other, in float64."""
    return np.array([[function(x, z) for z in Z.astype(np.float64)] for x in X.astype(np.float64)])


def squared(x: np.ndarray, z: np.ndarray) -> float:
    return math.fsum((x - z) ** 2)


def points(shape: tuple[int, int], d: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    r = rng()
    return r.normal(size=(shape[0], d)).astype(dtype), r.normal(size=(shape[1], d)).astype(dtype)


# --- exp -------------------------------------------------------------------------------------------------------------


def exp_of(x: np.ndarray) -> np.ndarray:
    a = x.reshape(1, -1).copy()
    tiles.exp_(a)
    return a.reshape(-1)


@on_dtypes
def test_exp_is_within_a_few_ulp(dtype: type) -> None:
    low, high = {np.float32: (-87.3, 88.7), np.float64: (-708.3, 709.7)}[dtype]
    r = rng()
    x = np.concatenate([r.uniform(low, high, 1500), r.uniform(-1, 1, 500), np.arange(-40, 41) * math.log(2) / 2])
    x = x.astype(dtype)
    y = exp_of(x)
    with mpmath.workdps(40):
        exact = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        ulps = [abs(mpmath.mpf(float(b)) - e) / mpmath.mpf(float(np.spacing(dtype(e)))) for b, e in zip(y, exact)]
    assert max(ulps) < {np.float32: 1.2, np.float64: 1.2}[dtype]


@on_dtypes
def test_exp_at_the_edges(dtype: type) -> None:
    info = np.finfo(dtype)
    tiny = float(info.smallest_subnormal)
    below, above = math.log(float(info.tiny)), math.log(float(info.max))
    x = np.array([0.0, -0.0, tiny, -tiny, float(info.tiny), -np.inf, np.inf, np.nan, -1e30, 1e30], dtype=dtype)
    expected = np.array([1, 1, 1, 1, 1, 0, np.inf, np.nan, 0, np.inf], dtype=dtype)
    np.testing.assert_array_equal(exp_of(x), expected)
    # zero below the smallest normal number, never a subnormal or a clamped constant
    far = np.array([below * 1.0001, below - 1, 2 * below, above * 1.0001, above + 1], dtype=dtype)
    np.testing.assert_array_equal(exp_of(far), np.array([0, 0, 0, np.inf, np.inf], dtype=dtype))
    near = np.array([below * 0.9999, above * 0.9999], dtype=dtype)
    y = exp_of(near)
    assert y[0] >= info.tiny
    assert np.isfinite(y[1])
    np.testing.assert_allclose(y, [float(mpmath.exp(float(v))) for v in near], rtol=4 * float(info.eps))


@on_dtypes
def test_exp_keeps_every_nan(dtype: type) -> None:
    """NaNs carry bits (R's missing value has 1954): shifted to the exponent, they must not make a number."""
    integer, quiet = {np.float32: (np.uint32, 0x7FC00000), np.float64: (np.uint64, 0x7FF8000000000000)}[dtype]
    signs = [0, 1 << (8 * np.dtype(dtype).itemsize - 1)]
    payloads = [quiet | sign | low for sign in signs for low in (0, 1, 0x1FF, 0x7FF, 1954, 0x3FFFF)]
    nans = np.array(payloads, dtype=integer).view(dtype)
    assert np.isnan(exp_of(nans)).all()
    panels = tiles.pack_gaussian(np.zeros((len(nans), 1)), 1.0, dtype).panels
    lanes = panels.shape[2]  # of the processor: the NaNs may need more than one panel
    for i, nan in enumerate(nans):
        panels[i // lanes, 0, i % lanes] = nan
    packed = tiles.Packed(panels, len(nans), 0.0)
    K = np.empty((len(nans), len(nans)), dtype)
    tiles.gaussian_tile(packed, packed, 0, len(nans), 0, len(nans), K)
    assert np.isnan(K).all()


@on_dtypes
def test_exp_is_continuous_into_the_edges(dtype: type) -> None:
    """Every value is 0, inf or right: no gap where neither polynomial nor edge applies."""
    info = np.finfo(dtype)
    for edge in (math.log(float(info.tiny)), math.log(float(info.max))):
        x = dtype(edge) + np.arange(-200, 200).astype(dtype) * np.spacing(abs(dtype(edge)))
        y = exp_of(x)
        with mpmath.workdps(40):
            for b, v in zip(y, x):
                exact = mpmath.exp(mpmath.mpf(float(v)))
                if b == 0:
                    assert exact <= mpmath.mpf(float(info.tiny)) * (1 + 8 * mpmath.mpf(float(info.eps)))
                elif np.isinf(b):
                    assert exact >= mpmath.mpf(float(info.max)) * (1 - 200 * mpmath.mpf(float(info.eps)))
                else:
                    assert abs(mpmath.mpf(float(b)) / exact - 1) < 2 * float(info.eps)


@on_dtypes
@on_shapes
def test_elementwise_tiles(shape: tuple[int, int], dtype: type) -> None:
    a, matrix = inside(shape, dtype)
    values = rng().normal(size=shape).astype(dtype) * 4
    distances = np.abs(values).astype(np.float64)
    r1, r3, r5 = (0.7 * np.sqrt(nu * distances) for nu in (1, 3, 5))
    cases = [
        (values, lambda: tiles.exp_(a), np.exp(values.astype(np.float64))),
        (np.abs(values), lambda: tiles.gaussian_from_sqdist_(a, 0.3), np.exp(-0.3 * distances)),
        (np.abs(values), lambda: tiles.matern_(a, 1, 0.7), np.exp(-r1)),
        (np.abs(values), lambda: tiles.matern_(a, 3, 0.7), (1 + r3) * np.exp(-r3)),
        (np.abs(values), lambda: tiles.matern_(a, 5, 0.7), (1 + r5 + r5**2 / 3) * np.exp(-r5)),
    ]
    for start, run, expected in cases:
        a[...] = start
        run()
        np.testing.assert_allclose(a, expected, rtol=TOLERANCE[dtype])
    assert untouched(a, matrix)


@on_dtypes
@pytest.mark.parametrize("twice_nu", [1, 3, 5])
def test_matern_at_the_edges(twice_nu: int, dtype: type) -> None:
    a = np.array([[0.0, np.inf, np.finfo(dtype).max, np.nan]], dtype=dtype)
    tiles.matern_(a, twice_nu, 1.0)
    np.testing.assert_array_equal(a, np.array([[1, 0, 0, np.nan]], dtype=dtype))


def test_what_cannot_be_a_tile_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        tiles.exp_(np.zeros((4, 4)).T[:, ::2])
    crooked = np.zeros(4 * 8 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(2, 2)
    with pytest.raises(ValueError, match="aligned"):
        tiles.mirror(np.zeros((2, 2)), crooked)
    out = np.empty((2, 2))
    tiles.l1_tile(crooked, np.ones((2, 2)), out)
    np.testing.assert_array_equal(out, 2)
    with pytest.raises(ValueError, match="read-only"):
        tiles.exp_(read_only(np.zeros((2, 2))))
    with pytest.raises(TypeError, match="float32 or float64"):
        tiles.exp_(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(ValueError, match="1, 3 or 5"):
        tiles.matern_(np.zeros((2, 2)), 2, 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        tiles.l1_tile(np.zeros((2, 3)), np.zeros((2, 4)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="transpose"):
        tiles.mirror(np.zeros((2, 3)), np.zeros((2, 3)))
    packed = tiles.pack_gaussian(np.zeros((5, 2)), 1.0, np.float64)
    with pytest.raises(IndexError, match="0:6 of 5"):
        tiles.gaussian_tile(packed, packed, 0, 6, 0, 5, np.zeros((6, 5)))
    with pytest.raises(ValueError, match="do not match"):
        tiles.gaussian_tile(
            packed, tiles.pack_gaussian(np.zeros((5, 3)), 1.0, np.float64), 0, 5, 0, 5, np.zeros((5, 5))
        )
    with pytest.raises(ValueError, match="do not fit"):
        tiles.gaussian_product(packed, packed, np.zeros(4), 0, 5, np.zeros(5))


# --- pairs of rows ---------------------------------------------------------------------------------------------------


@on_dtypes
@on_shapes
@pytest.mark.parametrize("d", [1, 5])
def test_squared_distances(shape: tuple[int, int], d: int, dtype: type) -> None:
    X, Z = points(shape, d, dtype)
    # half of the points have a partner so near that norms minus product would keep no digit
    half = min(shape) // 2
    Z[:half] = X[:half] * dtype(1 + 1e-4)
    expected = pairs(X, Z, squared)
    g, matrix = inside(shape, dtype)
    for norms in (np.float64, dtype):
        g[...] = X @ Z.T
        nx, nz = ((A.astype(np.float64) ** 2).sum(1).astype(norms) for A in (X, Z))
        tiles.sqdist_(g, read_only(nx), read_only(nz), read_only(X), read_only(Z), 1e-2)
        np.testing.assert_allclose(g, expected, rtol=100 * TOLERANCE[dtype], atol=0)
    assert untouched(g, matrix)
    out, matrix = inside(shape, dtype)
    tiles.sqdist_tile(read_only(X), np.asfortranarray(Z), out)
    np.testing.assert_allclose(out, expected, rtol=TOLERANCE[dtype])
    assert untouched(out, matrix)


@on_dtypes
def test_a_point_is_at_distance_zero_from_itself(dtype: type) -> None:
    X, _ = points((70, 70), 3, dtype)
    norms = (X**2).sum(1)
    g = X @ X.T
    tiles.sqdist_(g, norms, norms, X, X, 1e-2)
    np.testing.assert_array_equal(np.diag(g), 0)
    assert (g >= 0).all()


@on_dtypes
def test_squared_distances_keep_nan(dtype: type) -> None:
    X, Z = points((3, 70), 2, dtype)
    g = X @ Z.T
    g[1, 68] = np.nan
    tiles.sqdist_(g, (X**2).sum(1), (Z**2).sum(1), X, Z, 0.0)
    assert np.argwhere(np.isnan(g)).tolist() == [[1, 68]]


@on_dtypes
@on_shapes
def test_l1_distances(shape: tuple[int, int], dtype: type) -> None:
    X, Z = points(shape, 4, dtype)
    out, matrix = inside(shape, dtype)
    tiles.l1_tile(read_only(X), read_only(Z), out)
    np.testing.assert_allclose(out, pairs(X, Z, lambda x, z: math.fsum(np.abs(x - z))), rtol=TOLERANCE[dtype])
    assert untouched(out, matrix)


@on_dtypes
@on_shapes
def test_matches(shape: tuple[int, int], dtype: type) -> None:
    codes = rng().integers(-1, 2, size=(sum(shape), 5)) * 2**40
    A, B = read_only(codes[: shape[0]]), read_only(codes[shape[0] :])
    out, matrix = inside(shape, dtype)
    tiles.match_tile(A, B, out)
    np.testing.assert_array_equal(out, [[sum(p == q for p, q in zip(a, b)) for b in B] for a in A])
    assert untouched(out, matrix)


@on_dtypes
@on_shapes
def test_pairs_of_rows_of_a_table(shape: tuple[int, int], dtype: type) -> None:
    r = rng()
    codes, weights = r.integers(0, 3, size=(sum(shape), 3)), r.random(3)
    A, B = read_only(codes[: shape[0]]), read_only(codes[shape[0] :])
    log = pairs(A, B, lambda a, b: -math.fsum(weights[a != b]))
    out, matrix = inside(shape, dtype)
    tables.mismatch_tile(A, B, read_only(weights), out, log=True)
    np.testing.assert_allclose(out, log, rtol=TOLERANCE[dtype])
    tables.mismatch_tile(A, B, weights, out)
    np.testing.assert_allclose(out, np.exp(log), rtol=TOLERANCE[dtype])
    X, Z = points(shape, 3, dtype)
    tables.additive_tile(read_only(X), read_only(Z), out)
    np.testing.assert_allclose(out, pairs(X, Z, lambda x, z: np.mean(1 / (1 + (x - z) ** 2))), rtol=TOLERANCE[dtype])
    assert untouched(out, matrix)
    G = read_only(r.normal(size=shape).astype(dtype))
    squares = np.square(X[:, None].astype(np.float64) - Z)
    expected = 2 * np.einsum("ij,ijk->k", G.astype(np.float64), squares / (1 + squares) ** 2)
    np.testing.assert_allclose(tables.additive_slopes(X, Z, G), expected, atol=1e-14 * np.abs(G).sum())


def test_no_columns() -> None:
    out = np.full((3, 2), 7.0)
    tiles.l1_tile(np.empty((3, 0)), np.empty((2, 0)), out)
    np.testing.assert_array_equal(out, 0)
    packed = [tiles.pack_gaussian(np.empty((n, 0)), 1.0, np.float64) for n in (3, 2)]
    tiles.gaussian_tile(*packed, 0, 3, 0, 2, out)
    np.testing.assert_array_equal(out, 1)


# --- mirror ----------------------------------------------------------------------------------------------------------


@on_dtypes
@on_shapes
def test_mirror(shape: tuple[int, int], dtype: type) -> None:
    src, _ = inside(shape, dtype)
    src[...] = rng().normal(size=shape)
    dst, matrix = inside(shape[::-1], dtype)
    tiles.mirror(read_only(src), dst)
    np.testing.assert_array_equal(dst, src.T)
    assert untouched(dst, matrix)


@on_dtypes
@pytest.mark.parametrize("apart", [0, 8193], ids=["small", "huge"])
def test_mirror_within_one_matrix(apart: int, dtype: type) -> None:
    """Rows that lie far apart are written past the caches, from every possible alignment."""
    K = np.full((350, 350 + apart), 7, dtype=dtype)[:, :350]
    K[...] = rng().normal(size=K.shape)
    expected = np.tril(K) + np.tril(K, -1).T
    for i in range(0, 350, 47):
        rows = slice(i, min(i + 47, 350))
        tiles.mirror(K[rows, :i], K[:i, rows])
        K[rows, rows] = expected[rows, rows]
    np.testing.assert_array_equal(K, expected)
    lower = np.full((257, 140 + apart), 7, dtype=dtype)
    tiles.mirror(K[:129, 1:258], lower[:, 3:132])
    np.testing.assert_array_equal(lower[:, 3:132], K[:129, 1:258].T)
    assert (lower[:, :3] == 7).all()
    assert (lower[:, 132:] == 7).all()


# --- the fused Gaussian ----------------------------------------------------------------------------------------------


def gaussian(X: np.ndarray, Z: np.ndarray, sigma: float | np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * pairs(X / sigma, Z / sigma, squared))


@on_dtypes
@on_shapes
@pytest.mark.parametrize("sigma", [2.0, 0.05], ids=["products", "differences"])
def test_fused_gaussian(shape: tuple[int, int], sigma: float, dtype: type) -> None:
    (r, c), d = shape, 5
    X, Z = points(shape, d, np.float64)
    Z[: min(r, c) // 2] = X[: min(r, c) // 2] + 1e-2 * Z[: min(r, c) // 2]
    K = gaussian(X, Z, sigma)
    x, z = (tiles.pack_gaussian(read_only(A), sigma, dtype) for A in (X, Z))
    tolerance = {np.float32: 1e-5, np.float64: 1e-13}[dtype]
    for i0, i1, j0, j1 in [(0, r, 0, c), (r // 3, r, c // 3, c), (0, r // 2, c // 2, c // 2 + 1), (0, 0, 0, c)]:
        out, matrix = inside((i1 - i0, j1 - j0), dtype)
        tiles.gaussian_tile(x, z, i0, i1, j0, j1, out)
        np.testing.assert_allclose(out, K[i0:i1, j0:j1], atol=tolerance)
        assert untouched(out, matrix)
    for V in (rng().normal(size=c), rng().normal(size=(c, 1)), rng().normal(size=(c, 3))):
        y = np.full((r, *V.shape[1:]), 2.0)
        tiles.gaussian_product(x, z, read_only(V), r // 3, r, y)
        np.testing.assert_allclose(y[r // 3 :], 2 + K[r // 3 :] @ V, atol=c * tolerance)
        np.testing.assert_array_equal(y[: r // 3], 2.0)


@on_dtypes
@pytest.mark.parametrize("sigma", [2.0, 0.05], ids=["products", "differences"])
def test_fused_gaussian_is_exactly_symmetric_and_at_most_one(sigma: float, dtype: type) -> None:
    X, _ = points((205, 1), 6, np.float64)
    x = tiles.pack_gaussian(np.concatenate([X, X]), sigma, dtype)
    K = np.empty((410, 410), dtype)
    tiles.gaussian_tile(x, x, 0, 410, 0, 410, K)
    np.testing.assert_array_equal(K, K.T)
    assert K.max() <= 1
    part = np.empty((93, 41), dtype)
    tiles.gaussian_tile(x, x, 17, 110, 203, 244, part)
    np.testing.assert_array_equal(part, K[17:110, 203:244])


@on_dtypes
@pytest.mark.parametrize("n", [1, 7, 300])
def test_symmetric_product_counts_each_pair_once(n: int, dtype: type) -> None:
    X, _ = points((n, 1), 3, np.float64)
    x = tiles.pack_gaussian(X, 1.5, dtype)
    K = gaussian(X, X, 1.5)
    for V in (rng().normal(size=n), rng().normal(size=(n, 2))):
        y = np.zeros(V.shape)
        cuts = [0, n // 5, n // 5, n // 2, n]
        for i0, i1 in itertools.pairwise(cuts):
            tiles.gaussian_product_symmetric(x, V, i0, i1, y)
        np.testing.assert_allclose(y, K @ V, atol=n * {np.float32: 1e-6, np.float64: 1e-14}[dtype])


def test_long_float32_sums_are_added_in_float64() -> None:
    """0.1 summed 60 000 times: float32 alone would be wrong in the fourth digit."""
    n = 60_000
    x = tiles.pack_gaussian(np.zeros((n, 1)), 1.0, np.float32)
    y = np.zeros(n)
    tiles.gaussian_product(x, x, np.full(n, 0.1, np.float32), 0, 8, y)
    np.testing.assert_allclose(y[:8], n * float(np.float32(0.1)), rtol=1e-6)
    n, y = 1024, np.zeros(1024)  # and down the columns of a triangle
    x = tiles.pack_gaussian(np.zeros((n, 1)), 1.0, np.float32)
    for i in range(0, n, 512):
        tiles.gaussian_product_symmetric(x, np.full(n, 0.1, np.float32), i, i + 512, y)
    np.testing.assert_allclose(y, n * float(np.float32(0.1)), rtol=1e-6)


@on_dtypes
def test_one_sigma_per_column_and_far_points(dtype: type) -> None:
    X, Z = points((9, 70), 3, np.float64)
    sigma = np.array([0.5, 1.0, 3.0])
    x, z = (tiles.pack_gaussian(A, sigma, dtype) for A in (X, Z))
    out = np.empty((9, 70), dtype)
    tiles.gaussian_tile(x, z, 0, 9, 0, 70, out)
    np.testing.assert_allclose(out, gaussian(X, Z, sigma), atol={np.float32: 1e-5, np.float64: 1e-13}[dtype])
    far = tiles.pack_gaussian(np.array([[0.0], [1.0], [1e3], [1e18]]), 1e-1, dtype)
    K = np.empty((4, 4), dtype)
    tiles.gaussian_tile(far, far, 0, 4, 0, 4, K)
    np.testing.assert_allclose(K[:2, :2], [[1, math.exp(-50)], [math.exp(-50), 1]], rtol=50 * TOLERANCE[dtype])
    np.testing.assert_array_equal(K[2:], np.eye(4)[2:])


# --- loading ---------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_importing_the_package_does_not_import_numba() -> None:
    code = (
        "import mercer._loops, sys; assert 'numba' not in sys.modules\n"
        "mercer._loops.tiles.pack_gaussian; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.thorough
def test_importing_the_loops_compiles_nothing() -> None:
    code = (
        "from mercer._loops import large, gaussian\n"
        "jitted = [f for m in (large, gaussian) for f in vars(m).values() if hasattr(f, 'signatures')]\n"
        "assert len(jitted) >= 7 and not any(f.signatures for f in jitted)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_disk_cache_follows_the_vectors() -> None:
    """Numba looks for changes only in the file of a compiled function; the vectors are in another."""
    from mercer._loops import exponential, gaussian, large, smo, vectors

    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in (vectors, exponential, costs))
    digest = hashlib.sha256(sources).hexdigest()[:16]
    for module in (large, gaussian, smo):
        assert digest == module.VECTORS, f'write VECTORS = "{digest}" in {module.__file__}'
