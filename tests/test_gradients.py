"""Derivatives by parameters and by points against 60-digit arithmetic: at ordinary scale, far from the origin, at tiny
and huge scales, and in single precision. And the parameters and points where derivatives or values once failed."""

from __future__ import annotations

import gc

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

import mercer as mc
from mercer.kernels import weights
from mercer.kernels.vectors import dot, radial

# -- every kernel in 60 digits ---------------------------------------------------------------------------------------


def value(kernel, x, z, shifts):
    """k(x, z) for vectors of mpf, with the free parameters moved by `shifts` in log space."""
    own = len(kernel.theta) - sum(len(child.theta) for child in kernel.children.values())
    mine, rest = list(shifts[:own]), list(shifts[own:])
    p = {}
    for name, rule in type(kernel)._rules:
        entries = [mp.mpf(float(v)) for v in np.atleast_1d(getattr(kernel, name))]
        if rule.free and name not in kernel.fixed:
            entries = [v * mp.exp(mine.pop(0)) if v > 0 else v for v in entries]
        p[name] = entries if np.ndim(getattr(kernel, name)) else entries[0]
    inner = []
    for child in kernel.children.values():
        part, rest = rest[: len(child.theta)], rest[len(child.theta) :]
        inner.append(lambda a, b, child=child, part=part: value(child, a, b, part))
    return FORMULAS[type(kernel)](kernel, p, inner, x, z)


def _u(p, x, z):
    sigmas = p["sigma"] if isinstance(p["sigma"], list) else [p["sigma"]] * len(x)
    return sum(((a - b) / s) ** 2 for a, b, s in zip(x, z, sigmas))


def _dot(x, z):
    return sum(a * b for a, b in zip(x, z))


def _matern(kernel, p, inner, x, z):
    t = mp.sqrt(2 * p["nu"] * _u(p, x, z))
    if t == 0:
        return mp.mpf(1)
    return 2 ** (1 - p["nu"]) / mp.gamma(p["nu"]) * t ** p["nu"] * mp.besselk(p["nu"], t)


def _laplacian(kernel, p, inner, x, z):
    sigmas = p["sigma"] if isinstance(p["sigma"], list) else [p["sigma"]] * len(x)
    return mp.exp(-sum(abs(a - b) / s for a, b, s in zip(x, z, sigmas)))


def _periodic(kernel, p, inner, x, z):
    return mp.exp(-2 * sum(mp.sin(mp.pi * (a - b) / p["period"]) ** 2 for a, b in zip(x, z)) / p["sigma"] ** 2)


def _arc_cosine(kernel, p, inner, x, z):
    norm = mp.sqrt(_dot(x, x) * _dot(z, z))
    cos = min(_dot(x, z) / norm, mp.mpf(1))
    t, sin = mp.acos(cos), mp.sqrt(1 - cos**2)
    j = [mp.pi - t, sin + (mp.pi - t) * cos, 3 * sin * cos + (mp.pi - t) * (1 + 2 * cos**2)][kernel.order]
    return norm**kernel.order * j / mp.pi


def _compact(shape):
    return lambda k, p, i, x, z: shape(_u(p, x, z)) if _u(p, x, z) <= 1 else mp.mpf(0)


def _rows(f, *points):
    return [f(np.array([list(x)], dtype=object))[0] for x in points]


FORMULAS = {
    mc.Linear: lambda k, p, i, x, z: _dot(x, z),
    mc.Polynomial: lambda k, p, i, x, z: (_dot(x, z) + p["c"]) ** k.degree,
    mc.Bilinear: lambda k, p, i, x, z: sum(x[r] * mp.mpf(float(a)) * z[c] for (r, c), a in np.ndenumerate(k.A)),
    mc.ArcCosine: _arc_cosine,
    mc.Tanh: lambda k, p, i, x, z: mp.tanh(p["scale"] * _dot(x, z) + p["offset"]),
    mc.Gaussian: lambda k, p, i, x, z: mp.exp(-_u(p, x, z) / 2),
    mc.Matern: _matern,
    mc.RationalQuadratic: lambda k, p, i, x, z: (1 + _u(p, x, z) / (2 * p["alpha"])) ** -p["alpha"],
    mc.Laplacian: _laplacian,
    mc.Periodic: _periodic,
    mc.Constant: lambda k, p, i, x, z: p["c"],
    mc.Uniform: _compact(lambda u: mp.mpf(1)),
    mc.Triangular: _compact(lambda u: 1 - mp.sqrt(u)),
    mc.Epanechnikov: _compact(lambda u: 1 - u),
    mc.Biweight: _compact(lambda u: (1 - u) ** 2),
    mc.Tricube: _compact(lambda u: (1 - mp.sqrt(u) ** 3) ** 3),
    mc.FromFunction: lambda k, p, i, x, z: k.f(np.array(x), np.array(z)),
    mc.FromFeatures: lambda k, p, i, x, z: _dot(*_rows(k.phi, x, z)),
    mc.Scaled: lambda k, p, i, x, z: p["scale"] * i[0](x, z),
    mc.Sum: lambda k, p, i, x, z: sum(part(x, z) for part in i),
    mc.Product: lambda k, p, i, x, z: mp.fprod(part(x, z) for part in i),
    mc.Power: lambda k, p, i, x, z: i[0](x, z) ** k.exponent,
    mc.Poly: lambda k, p, i, x, z: sum(a * i[0](x, z) ** n for n, a in enumerate(p["coefficients"])),
    mc.Exp: lambda k, p, i, x, z: mp.exp(i[0](x, z)),
    mc.Normalized: lambda k, p, i, x, z: i[0](x, z) / mp.sqrt(i[0](x, x) * i[0](z, z)),
    mc.Rescaled: lambda k, p, i, x, z: mp.fprod(_rows(k.f, x, z)) * i[0](x, z),
    mc.After: lambda k, p, i, x, z: i[0](*_rows(k.phi, x, z)),
    mc.On: lambda k, p, i, x, z: i[0]([x[c] for c in k.columns], [z[c] for c in k.columns]),
}
TINY = mp.mpf(10) ** -22


def derivatives(kernel, X, Z, scale):
    """∂k/∂theta, shape (n, m, p), and ∂k/∂x, shape (n, m, d), correct to float64 rounding."""
    P, d = len(kernel.theta), X.shape[1]
    by_theta, by_x = np.zeros((len(X), len(Z), P)), np.zeros((len(X), len(Z), d))
    still = [mp.mpf(0)] * P
    h = TINY * mp.mpf(float(scale))
    with mp.workdps(60):
        for i, row in enumerate(X):
            for j, other in enumerate(Z):
                x, z = [mp.mpf(float(v)) for v in row], [mp.mpf(float(v)) for v in other]
                for p in range(P):
                    ends = [value(kernel, x, z, [s * TINY if q == p else 0 for q in range(P)]) for s in (1, -1)]
                    by_theta[i, j, p] = (ends[0] - ends[1]) / (2 * TINY)
                for k in range(d):
                    ends = [
                        value(kernel, [v + s * h if q == k else v for q, v in enumerate(x)], z, still) for s in (1, -1)
                    ]
                    by_x[i, j, k] = (ends[0] - ends[1]) / (2 * h)
    return by_theta, by_x


# -- the cases: kernels whose lengths are in units of s ---------------------------------------------------------------


def _bent(s):
    def phi(X):
        return np.stack([X[:, 0] / s + (X[:, 1] / s) ** 2 / 4, X[:, 1] / s], axis=1)

    return phi


def _turned(s):
    def phi(X):
        return np.stack([(X[:, 0] + X[:, 1]) / s, (X[:, 0] - 2 * X[:, 1]) / s], axis=1)

    return phi


def _bump(s):
    def f(X):
        return 1 / (1 + (X[:, 0] / s) ** 2 / 2)

    return f


def _cauchy(s):
    return lambda x, z: 1 / (1 + (((x - z) / s) ** 2).sum())


LEAVES = {
    "linear": lambda s: mc.Linear(),
    "quadratic": lambda s: mc.Polynomial(2),
    "cubic": lambda s: mc.Polynomial(3, c=0.7 * s**2),
    "cubic fixed": lambda s: mc.Polynomial(3, c=mc.Fixed(0.7 * s**2)),
    "bilinear": lambda s: mc.Bilinear([[2.0, 0.5], [0.5, 1.0]]),
    "arc-cosine 0": lambda s: mc.ArcCosine(0),
    "arc-cosine 1": lambda s: mc.ArcCosine(1),
    "arc-cosine 2": lambda s: mc.ArcCosine(2),
    "gaussian": lambda s: mc.Gaussian(1.2 * s),
    "gaussian ard": lambda s: mc.Gaussian([0.8 * s, 1.7 * s]),
    "gaussian fixed": lambda s: mc.Gaussian(mc.Fixed([0.8 * s, 1.7 * s])),
    "laplacian": lambda s: mc.Laplacian(1.1 * s),
    "laplacian ard": lambda s: mc.Laplacian([0.8 * s, 1.7 * s]),
    **{f"matern {nu}": lambda s, nu=nu: mc.Matern(1.3 * s, nu) for nu in (0.3, 0.5, 1.0, 1.5, 2.5, 3.3)},
    "matern ard": lambda s: mc.Matern([0.8 * s, 1.7 * s], 2.5),
    "rational quadratic": lambda s: mc.RationalQuadratic(1.1 * s, 0.6),
    "rational quadratic ard": lambda s: mc.RationalQuadratic([0.8 * s, 1.7 * s], mc.Fixed(0.6)),
    "periodic": lambda s: mc.Periodic(0.9, 3.0 * s),
    "from function": lambda s: mc.FromFunction(_cauchy(s)),
    "from features": lambda s: mc.FromFeatures(_bent(s)),
}
OTHERS = {
    "tanh": lambda s: mc.Tanh(0.5 / s**2, -0.3),
    **{
        name: lambda s, name=name: getattr(mc, name)([4.0 * s, 5.0 * s])
        for name in ("Uniform", "Triangular", "Epanechnikov", "Biweight", "Tricube")
    },
    "sum": lambda s: 2.0 * mc.Gaussian(s) + mc.Matern(1.4 * s) + 0.3,
    "product": lambda s: mc.Linear() * mc.Gaussian([s, 2 * s]) * mc.Matern(2 * s),
    "power": lambda s: (mc.Gaussian(s) + 0.5) ** 3,
    "poly": lambda s: mc.Gaussian(s).poly([0.5, 0.0, 2.0]),
    "exp": lambda s: mc.exp(0.3 * mc.Gaussian(s)),
    "after": lambda s: mc.Gaussian(1.3).after(_turned(s)),
    "after, bent": lambda s: mc.Gaussian(1.3).after(_bent(s)),
    "rescaled": lambda s: mc.Gaussian([s, 2 * s]).rescale(_bump(s)),
    "on": lambda s: mc.Gaussian(s).on(1) * mc.Linear().on(0),
    "normalised twice": lambda s: (mc.Linear().normalize() + mc.Gaussian(s)).normalize(),
    "normalised sum": lambda s: (mc.Scaled(s**2, mc.Gaussian(s)) + mc.Linear()).normalize(),
    "normalised product": lambda s: (mc.Linear() * mc.Gaussian([s, 2 * s])).normalize(),
    "normalised scaled": lambda s: (3.0 * mc.Matern(s)).normalize(),
    "normalised exp": lambda s: mc.exp((0.4 / s**2) * mc.Polynomial(1, c=0.2 * s**2)).normalize(),
    "normalised rescaled": lambda s: mc.Gaussian(s).rescale(_bump(s)).normalize(),
    "normalised after": lambda s: mc.Polynomial(2, c=0.5).after(_bent(s)).normalize(),
    "normalised on": lambda s: mc.Polynomial(2, c=0.3 * s**2).on(1).normalize(),
}
CASES = (
    LEAVES | OTHERS | {f"normalised {name}": lambda s, make=make: make(s).normalize() for name, make in LEAVES.items()}
)
PLACES = {"ordinary": (0.0, 1.0), "offset": (1e6, 1.0), "tiny": (0.0, 1e-8), "huge": (0.0, 1e8)}
# By differences, wholly or in part: fewer digits than by formula.
DIFFERENCES = ("from function", "from features", "after", "rescaled")


def _sides(offset, scale, dtype=np.float64):
    rng = np.random.default_rng(3)
    X, Z = (offset + scale * rng.normal(size=(n, 2)) for n in (2, 2))
    return X.astype(dtype), Z.astype(dtype), rng.normal(size=(2, 2))


def _check(kernel, X, Z, G, scale, tolerance, step=None):
    """Within `tolerance` of the sum of sizes, and the rounding of k itself: over |x|, or over a step."""
    by_theta, by_x = derivatives(kernel, X, Z, scale)
    noise = 50 * float(np.finfo(X.dtype).eps) * float(np.abs(kernel(X, Z)).max())
    found, true = kernel.gradient(X, G, Z), np.einsum("ij,ijp->p", G, by_theta)
    size = np.einsum("ij,ijp->p", np.abs(G), np.abs(by_theta))
    assert found.shape == true.shape
    assert (np.abs(found - true) <= tolerance * size + noise).all(), (found, true)
    found, true = kernel.input_gradient(X, G, Z), np.einsum("ij,ijk->ik", G, by_x)
    size = np.einsum("ij,ijk->ik", np.abs(G), np.abs(by_x)).max(axis=1, keepdims=True)
    noise /= np.abs(X).max() if step is None else step
    assert (np.abs(found - true) <= tolerance * size + noise).all(), (found, true)


OVERFLOWING = {"normalised exp", "after, bent", "tanh"}  # values of these over- or underflow at the offset


@pytest.mark.parametrize(
    ("name", "place"), [(n, p) for p in PLACES for n in CASES if not (p == "offset" and n in OVERFLOWING)]
)
def test_gradients_are_exact(name, place):
    offset, scale = PLACES[place]
    X, Z, G = _sides(offset, scale)
    rough = any(word in name for word in DIFFERENCES)
    # At offset 1e6 the points themselves, and angles between them, are known to 1e-10 of their spread.
    tolerance = (1e-8 if rough else 1e-11) * (1e4 if offset else 1)
    _check(CASES[name](scale), X, Z, G, scale, tolerance, 1e-3 * scale if rough else None)


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("from function")])
def test_gradients_of_single_precision_points(name):
    X, Z, G = _sides(0.0, 1.0, np.float32)
    _check(CASES[name](1.0), X, Z, G, 1.0, 2e-5)


# -- where digits are at risk -----------------------------------------------------------------------------------------


def test_differences_far_from_the_origin_and_near_it():
    x, z = np.array([[1e6, 1e6 + 1]]), np.array([[1e6 + 0.5, 1e6]])
    plain = mc.Gaussian(1.0).input_gradient(x, [[1.0]], z)
    np.testing.assert_allclose(mc.Gaussian(1.0).after(lambda X: X).input_gradient(x, [[1.0]], z), plain, rtol=1e-7)
    found = mc.Linear().normalize().input_gradient([[1e-8, 2e-8]], [[1.0]], [[3e-8, 1e-8]])
    np.testing.assert_allclose(found, [[2e7 * np.sqrt(2), -1e7 * np.sqrt(2)]], rtol=1e-12)


@pytest.mark.parametrize("place", [0.0, 1.0, -3e6])
def test_differences_of_points_without_spread(place):
    """One point on either side, the same one: the slope of a stationary kernel is 0, that of a polynomial is not."""
    x = np.full((1, 2), place)
    assert np.abs(mc.FromFunction(_cauchy(1.0)).input_gradient(x, [[1.0]], x)).max() < 1e-9
    quartic = mc.FromFunction(lambda a, b: (1 + float(a @ b)) ** 2)
    exact = mc.Polynomial(2, c=1.0).input_gradient(x, [[1.0]], x)
    np.testing.assert_allclose(quartic.input_gradient(x, [[1.0]], x), exact, rtol=1e-9, atol=1e-12)


def test_differences_of_a_narrow_kernel_on_wide_points():
    """The step starts at the spread of 1e7 and has to find the width of 1."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(6, 2)), rng.normal(size=(6, 2)) + 1e7])
    G = rng.normal(size=(12, 12))
    exact = mc.Gaussian(1.0).input_gradient(X, G, X)
    found = mc.FromFunction(lambda a, b: float(np.exp(-0.5 * ((a - b) ** 2).sum()))).input_gradient(X, G, X)
    np.testing.assert_allclose(found, exact, atol=1e-7)


def test_differences_start_from_the_spread_not_from_the_offset():
    """On top of a large constant, a step that is too long would not show as a bend."""
    rng = np.random.default_rng(0)
    X, Z, G = 1e6 + rng.normal(size=(5, 2)), 1e6 + rng.normal(size=(4, 2)), rng.normal(size=(5, 4))
    k = mc.FromFunction(lambda a, b: 1e6 + float(np.exp(-0.5 * ((a - b) ** 2).sum())))
    np.testing.assert_allclose(k.input_gradient(X, G, Z), mc.Gaussian(1.0).input_gradient(X, G, Z), atol=1e-5)


def test_differences_of_an_almost_constant_column():
    X = np.array([[1.0, 0.3], [1.0 + 2.0**-52, -0.4], [1.0, 1.2]])
    G = np.ones((3, 3))
    exact = mc.Gaussian(1.0).input_gradient(X, G, X)
    np.testing.assert_allclose(mc.FromFunction(_cauchy(1.0)).input_gradient(X, G, X),
                               mc.RationalQuadratic(np.sqrt(0.5), 1.0).input_gradient(X, G, X), atol=1e-6)  # fmt: skip
    np.testing.assert_allclose(mc.Gaussian(1.0).after(lambda Y: Y).input_gradient(X, G, X), exact, atol=1e-6)


@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distant_clusters(d, dtype):
    rng = np.random.default_rng(0)
    far = 1e7 if dtype == np.float64 else 1e4
    X = np.concatenate([rng.normal(size=(20, d)), rng.normal(size=(20, d)) + far]).astype(dtype)
    wide = X.astype(np.float64)
    D = wide[:, None] - wide
    sigma = np.linspace(1.0, 2.0, d) * np.sqrt(d)
    K = np.exp(-0.5 * ((D / sigma) ** 2).sum(axis=-1))
    G = rng.normal(size=K.shape)
    k = mc.Gaussian(sigma)
    # With more than a few columns, the rescaled points are centred first: 1e-9 of the distance of the clusters.
    tolerance = 1e-7 if dtype == np.float64 else 1e-4
    for weights_, signed in ((np.ones_like(K), False), (G, True)):
        size = np.einsum("ij,ij,ijk->k", np.abs(weights_), K, (D / sigma) ** 2)
        true = np.einsum("ij,ij,ijk->k", weights_, K, (D / sigma) ** 2)
        assert (np.abs(k.gradient(X, weights_) - true) <= tolerance * size).all(), signed
        true = -np.einsum("ij,ij,ijk->ik", weights_, K, D / sigma**2)
        size = np.einsum("ij,ij,ijk->ik", np.abs(weights_), K, np.abs(D) / sigma**2)
        assert (np.abs(k.input_gradient(X, weights_) - true) <= tolerance * size).all(), signed


def test_clusters_1e7_apart_keep_every_digit():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 1e7])
    k = mc.Gaussian([1.0, 1.0, 1.0])
    found = k.gradient(X, np.ones((40, 40)))
    np.testing.assert_allclose(found, np.einsum("ij,ijk->k", k(X), (X[:, None] - X) ** 2), rtol=1e-12)


def test_products_and_differences_agree_beyond_one_tile():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(300, 6)), rng.normal(size=(1100, 6))
    G = rng.normal(size=(300, 1100))
    for kernel in (mc.Gaussian(np.linspace(1, 2, 6)), mc.Polynomial(3, c=1.0).normalize(), mc.ArcCosine(1).normalize()):
        parts = [kernel.gradient(X[r], G[r], Z) for r in (slice(0, 100), slice(100, 300))]
        np.testing.assert_allclose(kernel.gradient(X, G, Z), sum(parts), rtol=1e-8, atol=1e-8)
        parts = [kernel.input_gradient(X[r], G[r], Z) for r in (slice(0, 100), slice(100, 300))]
        np.testing.assert_allclose(kernel.input_gradient(X, G, Z), np.concatenate(parts), rtol=1e-9, atol=1e-9)
        assert kernel.gradient(X, np.ones((300, 300))).shape == kernel.theta.shape


def test_sparse_points_have_the_gradients_of_dense_ones():
    rng = np.random.default_rng(0)
    X, Z = (rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.5) for n in (6, 5))
    G = rng.normal(size=(6, 5))
    for kernel in (mc.Gaussian([1.0, 2.0, 1.0, 0.5]), mc.Matern(1.0), mc.Laplacian([1.0, 2.0, 1.0, 0.5]), mc.Linear(),
                   mc.Polynomial(2, c=1.0).normalize(), mc.ArcCosine(1), mc.ArcCosine(2).normalize()):  # fmt: skip
        S, T = sp.csr_array(X), sp.csr_array(Z)
        np.testing.assert_allclose(kernel.gradient(S, G, T), kernel.gradient(X, G, Z), rtol=1e-9, atol=1e-12)
        found = kernel.input_gradient(S, G, T)
        np.testing.assert_allclose(found, kernel.input_gradient(X, G, Z), rtol=1e-9, atol=1e-12)
    with pytest.raises(mc.InvalidInput, match="dense"):
        mc.Linear().rescale(lambda Y: np.ones(Y.shape[0])).input_gradient(sp.csr_array(X), G, sp.csr_array(Z))


# -- normalised kernels ----------------------------------------------------------------------------------------------


def test_normalised_gradients_where_only_the_logarithm_is_a_float():
    """exp(0.5 ⟨x, z⟩ ) of points of norm 60 is exp(1800)."""
    X = np.array([[60.0, 0.0], [60.1, 0.3]])
    k = mc.exp(0.5 * mc.Linear()).normalize()
    equal = mc.Gaussian(np.sqrt(2.0))  # exp(⟨x,z⟩/2 − ‖x‖²/4 − ‖z‖²/4)
    G = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(k.input_gradient(X, G, X), equal.input_gradient(X, G, X), rtol=1e-6)
    # ∂/∂log c of exp(−c‖x − z‖²/2) is −½ the derivative by log σ of the Gaussian
    np.testing.assert_allclose(k.gradient(X, G), -0.5 * equal.gradient(X, G), rtol=1e-7)


def test_normalised_gradients_keep_nothing_per_parameter():
    X = np.random.default_rng(0).normal(size=(50, 3))
    k = (mc.Gaussian([1.0, 2.0, 3.0]) + mc.Linear()).normalize()
    points = k.prepare(X)
    pair = k.pair(points)
    block = pair.block(slice(0, 50), slice(0, 50))
    k.tile_gradient(block, np.ones((50, 50)))
    held = len(pair._cache)
    k.tile_gradient(pair.block(slice(0, 50), slice(0, 50)), np.ones((50, 50)))
    assert len(pair._cache) == held <= 4


def test_default_gradients_keep_nothing():
    class Plain(mc.Kernel):
        sigma: float = mc.positive(1.0, vector=True)

        def tile(self, block, out):
            own = block.rescaled(tuple(np.broadcast_to(self.sigma, 3).tolist()))
            np.exp(-0.5 * own.sqdist(), out=out)

    X = np.random.default_rng(0).normal(size=(20, 3))
    G = np.ones((20, 20))
    k = Plain([1.0, 2.0, 3.0])
    pair = k.pair(k.prepare(X))
    before = len(pair._cache), len(pair.x._cache)
    found = k.tile_gradient(pair.block(slice(0, 20), slice(0, 20)), G)
    assert (len(pair._cache), len(pair.x._cache)) == before
    np.testing.assert_allclose(found, mc.Gaussian([1.0, 2.0, 3.0]).gradient(X, G), rtol=1e-10)
    np.testing.assert_allclose(k.gradient(X.astype(np.float32), G), found, rtol=1e-5)
    del Plain, k, pair
    gc.collect()  # the class must not outlive the test: others look at all subclasses


def test_normalised_at_the_origin_has_no_slope():
    k = mc.Linear().normalize()
    assert (k.input_gradient([[0.0, 0.0]], [[1.0]], [[1.0, 2.0]]) == 0).all()
    assert (k.input_gradient([[1.0, 2.0]], [[1.0]], [[0.0, 0.0]]) == 0).all()


def test_squares_that_underflow_are_not_the_origin():
    np.testing.assert_allclose(mc.ArcCosine(0)([[1e-200, 0], [0, 1e-200]]), [[1, 0.5], [0.5, 1]], rtol=1e-15)
    np.testing.assert_array_equal(mc.ArcCosine(0).diag([[1e-200, 0], [0, 0]]), [1, 0.5])
    np.testing.assert_allclose(mc.ArcCosine(1)([[1e-200, 0]], [[1e200, 0]]), 1.0, rtol=1e-14)
    S = sp.csr_array([[1e-200, 0], [0, 1e-200]])
    np.testing.assert_allclose(mc.ArcCosine(0)(S), [[1, 0.5], [0.5, 1]], rtol=1e-15)
    for kernel in (mc.Linear(), mc.Polynomial(2), 2.0 * mc.Linear() + mc.Polynomial(3), mc.ArcCosine(1)):
        for X in ([[1e-200], [1.0]], [[1e-160], [1.0]], np.array([[1e-30], [1.0]], dtype=np.float32)):
            with pytest.raises(mc.InvalidInput, match="squares underflow"):
                kernel.normalize()(X)
    with pytest.raises(mc.InvalidInput, match="float64"):
        mc.Linear().normalize()(np.array([[1e-20], [1.0]]), dtype=np.float32)
    np.testing.assert_array_equal(mc.Linear().normalize()([[0.0], [1e-150], [1.0]]), [[0, 0, 0], [0, 1, 1], [0, 1, 1]])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_at_its_kinks(order):
    k = mc.ArcCosine(order)
    x = np.array([[1.0, 2.0]])
    h = 1e-6
    for z in (x, 3 * x, -x, np.zeros((1, 2))):
        central = [(k(x + h * e, z) - k(x - h * e, z))[0, 0] / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(k.input_gradient(x, [[1.0]], z)[0], central, atol=1e-5)
    central = [(k(h * e[None], x) - k(-h * e[None], x))[0, 0] / (2 * h) for e in np.eye(2)]
    if order:
        np.testing.assert_allclose(k.input_gradient([[0.0, 0.0]], [[1.0]], x)[0], central, atol=1e-5)
    else:
        assert (k.input_gradient([[0.0, 0.0]], [[1.0]], x) == 0).all()


# -- parameters at their limits --------------------------------------------------------------------------------------

NARROW = [mc.Gaussian(1e-20), mc.Gaussian([1e-20, 1.0]), mc.RationalQuadratic(1e-20), mc.Periodic(1e-20),
          mc.Matern(1e-39), mc.Matern(1e-39, 0.7), mc.Laplacian(1e-39), mc.Laplacian([1.0, 1e-39]),
          mc.Uniform(1e-20), mc.Triangular(1e-20), mc.Epanechnikov(1e-20), mc.Biweight(1e-20),
          mc.Tricube(1e-20)]  # fmt: skip


@pytest.mark.parametrize("kernel", NARROW, ids=repr)
def test_widths_that_single_precision_cannot_square(kernel):
    X = np.random.default_rng(0).normal(size=(40, 2))
    for Z in (None, X[:5].astype(np.float32)):
        with pytest.raises(mc.InvalidInput, match=r"sigma.*float32"):
            kernel(X.astype(np.float32), Z)
    with pytest.raises(mc.InvalidInput, match=r"sigma.*float32"):
        mc.gram.of(kernel, X.astype(np.float32), budget=1) @ np.ones(40)
    np.testing.assert_allclose(kernel(X, X.copy()), np.eye(40), atol=1e-35)


@pytest.mark.parametrize("sigma", [2e-19, 1e18, 1e30])
@pytest.mark.parametrize("make", [mc.Gaussian, mc.RationalQuadratic, mc.Matern, mc.Laplacian, mc.Epanechnikov])
def test_widths_at_the_edge_of_single_precision(make, sigma):
    X = np.array([[0.0], [1.0], [3e18]], dtype=np.float32)
    K = make(sigma)(X, X.copy())
    np.testing.assert_allclose(K, make(sigma)(X.astype(np.float64)), atol=1e-6)
    assert np.isfinite(make(sigma).gradient(X, np.ones((3, 3)))).all()


def test_extreme_parameters_give_numbers_or_errors():
    for alpha in (1e-310, 1e-101, 1e101):
        with pytest.raises(mc.InvalidInput, match="alpha"):
            mc.RationalQuadratic(1.0, alpha=alpha)
    X, G = [[0.0], [1e5]], np.ones((2, 2))
    for kernel in (
        mc.Gaussian(1e-150),
        mc.Laplacian(1e-150),
        mc.Matern(1e-150),
        mc.Matern(1e-150, 3.3),
        mc.Tricube(1e-150),
    ):
        np.testing.assert_array_equal(kernel(X), np.eye(2))
        np.testing.assert_array_equal(kernel.gradient(X, G), [0.0])
        np.testing.assert_array_equal(kernel.input_gradient(X, G), [[0.0], [0.0]])
    k = mc.RationalQuadratic(1e-150, 0.01)
    expected = float(mp.mpf(mp.mpf(10) ** 310 / mp.mpf(0.02)) ** -mp.mpf(0.01))
    np.testing.assert_allclose(k(X)[0, 1], expected, rtol=1e-10)
    assert np.isfinite(k.gradient(X, G)).all()
    for alpha in (1e-100, 1e100):
        k = mc.RationalQuadratic(1.0, alpha)
        np.testing.assert_allclose(k([[0.0]], [[1.0]]), 1.0 if alpha < 1 else np.exp(-0.5), rtol=1e-12)
        assert np.isfinite(k.gradient(X, G)).all()
    with pytest.raises(mc.InvalidInput, match="sigma"):
        mc.Periodic(1e-200)


@pytest.mark.thorough
@pytest.mark.parametrize("nu", [0.3, 0.8, 1.0, 5.0, 20.0, 30.0, 31.0, 40.0, 60.0, 80.0, 100.0])
def test_matern_of_every_order(nu):
    t = 10.0 ** np.linspace(-12, 4, 41)
    k = mc.Matern(np.sqrt(2 * nu), nu)
    with mp.workdps(40):
        v = mp.mpf(nu)
        true = [float(2 ** (1 - v) / mp.gamma(v) * mp.mpf(s) ** v * mp.besselk(v, s)) for s in t]
        slope = [float(-v * 2 ** (1 - v) / mp.gamma(v) * mp.mpf(s) ** (v - 1) * mp.besselk(v - 1, s)) for s in t]
    np.testing.assert_allclose(k([[0.0]], t[:, None])[0], true, rtol=0, atol=1e-12)
    # du/dx = −2(z − x)/σ², σ² = 2ν
    found = np.array([k.input_gradient([[0.0]], [[1.0]], [[s]])[0, 0] for s in t])
    np.testing.assert_allclose(found, -np.array(slope) * t / nu, rtol=1e-11, atol=1e-300)


def test_matern_of_large_order_near_and_far():
    np.testing.assert_allclose(mc.Matern(1.0, 100.0)([[0.0]], [[0.0044]]), 1 - 0.0044**2 * 100 / 198, atol=1e-9)
    assert mc.Matern(1.0, 100.0)([[0.0]], [[1e153]]) == 0.0


def test_gamma_and_variance_stay_fixed():
    assert mc.Gaussian.from_gamma(mc.Fixed(0.5)) == mc.Gaussian(mc.Fixed(1.0))
    assert mc.Gaussian.from_variance(mc.Fixed([4.0, 9.0])) == mc.Gaussian(mc.Fixed([2.0, 3.0]))
    assert mc.Gaussian.from_gamma([0.5, 2.0]) == mc.Gaussian([1.0, 0.5])
    for make in (mc.Gaussian.from_gamma, mc.Gaussian.from_variance):
        with pytest.raises(mc.InvalidInput):
            make([1e-320])


def test_one_width_per_column_is_not_radial():
    for make in (mc.Gaussian, mc.Matern, mc.RationalQuadratic, mc.Epanechnikov, mc.Tricube, mc.Uniform):
        assert make(1.0).tags.radial
        assert not make([1.0, 2.0]).tags.radial
        assert make([1.0, 2.0]).tags.stationary


# -- kernels of the inner product ------------------------------------------------------------------------------------


def test_bilinear_is_positive_semidefinite_to_the_last_digit():
    k = mc.Bilinear([[1, 1 + 2.0**-52], [1 + 2.0**-52, 1]])
    assert k.enclose((1, -1), (1, -1)).lower >= 0
    assert k._view is k._view


def test_wrong_degrees_and_orders_have_proper_errors():
    for bad in (np.inf, np.nan, -np.inf, 2.5, "2", True, None, [2], np.float32(1.5)):
        with pytest.raises(mc.InvalidInput, match="whole number"):
            mc.Polynomial(bad)
    for bad in (np.array([1, 2]), "1", True, 3, 1.5, np.nan, None):
        with pytest.raises(mc.InvalidInput, match="order"):
            mc.ArcCosine(bad)
    assert mc.Polynomial(2.0) == mc.Polynomial(np.int32(2)) == mc.Polynomial(2)
    assert mc.ArcCosine(1.0) == mc.ArcCosine(1)


def test_abstract_classes_cannot_be_made():
    for cls in (dot._Dot, radial.Radial, weights.Compact):
        with pytest.raises(TypeError, match="abstract"):
            cls()


def test_overflowing_gradients_are_errors_not_warnings():
    for kernel, x in (
        (mc.exp(mc.Polynomial(2, c=1.0)), 30.0),
        (mc.Polynomial(4, c=1.0), 1e80),
        (mc.Bilinear([[1e10]]), 1e300),
        (mc.ArcCosine(2), 1e150),
    ):
        if len(kernel.theta):
            with pytest.raises(mc.InvalidInput):
                kernel.gradient([[x]], [[1.0]])
        with pytest.raises(mc.InvalidInput):
            kernel.input_gradient([[x]], [[1.0]])
    assert mc.Tanh(1.0).gradient([[1e200]], [[1.0]]) == mc.Tanh(1.0).input_gradient([[1e200]], [[1.0]]) == 0


def test_nested_nodes_are_evaluated_once_for_a_derivative(monkeypatch):
    """The values of every node are kept while its derivatives are taken: one tile of the leaf, however deep."""
    leaves = []

    def counted(self, block, out, tile=dot.Linear.tile):
        leaves.append(block.shape)
        tile(self, block, out)

    monkeypatch.setattr(dot.Linear, "tile", counted, raising=False)
    X, kernel = np.random.default_rng(0).normal(size=(100, 3)), mc.Linear()
    for _ in range(4):
        kernel = ((kernel + 1.0) ** 2).normalize()
    kernel.gradient(X, np.ones((100, 100)))
    assert leaves == [(100, 100)]
