"""Small tiles, by NumPy and SciPy: `tiles` says what each function does, and has checked its arguments.

Nothing here warns: what overflows is infinite, as in the compiled loops.
"""

from __future__ import annotations

import numpy as np

from mercer import memory

from .addresses import Array

NOTHING = 1000.0
"""exp(-r) is 0 from this r on in both dtypes, and powers of r are still finite."""

quiet = np.errstate(over="ignore", invalid="ignore")


@quiet
def exp_(a: Array, scale: float) -> None:
    if scale != 1.0:
        a *= a.dtype.type(scale)
    _exp_(a)


def _exp_(a: Array) -> None:
    # in float64 also for float32, where NumPy's own is off by up to three units in the last place
    np.exp(a, out=a, dtype=np.float64, casting="same_kind")
    a[a < np.finfo(a.dtype).tiny] = 0


@quiet
def matern_(a: Array, scale: float, first: float, second: float) -> None:
    np.maximum(a, 0, out=a)
    np.sqrt(a, out=a)
    a *= a.dtype.type(scale)
    np.minimum(a, NOTHING, out=a)
    polynomial = 1 + a * (first + a * a.dtype.type(second) if second else first) if first else None
    np.negative(a, out=a)
    _exp_(a)
    if polynomial is not None:
        a *= polynomial


@quiet
def sqdist_(g: Array, nx: Array, nz: Array, X: Array, Z: Array, tol: float) -> None:
    norms = np.add.outer(nx.astype(g.dtype, copy=False), nz.astype(g.dtype, copy=False))
    g *= -2
    g += norms
    norms *= g.dtype.type(tol)
    # negative ones are among them
    cancelled = np.flatnonzero(g < norms)
    step = max(1, memory.CACHED // X.shape[1])
    for start in range(0, len(cancelled), step):
        i, j = np.divmod(cancelled[start : start + step], g.shape[1])
        differences = X[i].astype(np.float64) - Z[j]
        g[i, j] = np.einsum("ij,ij->i", differences, differences)


@quiet
def l1_tile(X: Array, Z: Array, out: Array) -> None:
    _distances(X, Z, out, "cityblock")


@quiet
def sqdist_tile(X: Array, Z: Array, out: Array) -> None:
    _distances(X, Z, out, "sqeuclidean")


def _distances(X: Array, Z: Array, out: Array, metric: str) -> None:
    from scipy.spatial.distance import cdist

    out[...] = cdist(X, Z, metric)


def least_tile(X: Array, Z: Array, out: Array) -> None:
    out[...] = 0
    for x, z in zip(X.T.astype(out.dtype), Z.T.astype(out.dtype)):
        out += np.minimum(x[:, None], z)


def harmonic_tile(X: Array, Z: Array, out: Array) -> None:
    out[...] = 0
    for x, z in zip(X.T.astype(out.dtype), Z.T.astype(out.dtype)):
        out += harmonic(x[:, None], z)


def harmonic(u: Array, v: Array) -> Array:
    """2uv/(u + v) for numbers >= 0, without the product, which may overflow; 0 for 0 and 0."""
    least, total = np.minimum(u, v), u + v
    return 2 * least * np.divide(np.maximum(u, v), total, out=np.zeros_like(total), where=total > 0)


def chi_squared_tile(X: Array, Z: Array, out: Array) -> None:
    out[...] = 0
    for x, z in zip(X.T.astype(out.dtype), Z.T.astype(out.dtype)):
        total = x[:, None] + z
        apart = x[:, None] - z
        out += apart * np.divide(apart, total, out=np.zeros_like(total), where=total > 0)


def match_tile(A: Array, B: Array, out: Array) -> None:
    out[...] = 0
    for a, b in zip(A.T, B.T):
        out += a[:, None] == b


def mismatch_tile(A: Array, B: Array, weights: Array, out: Array, log: bool) -> None:
    out[...] = 0
    for a, b, w in zip(A.T, B.T, weights.astype(out.dtype)):
        out -= w * (a[:, None] != b)
    if not log:
        exp_(out, 1.0)


def additive_tile(X: Array, Z: Array, out: Array) -> None:
    out[...] = 0
    for x, z in zip(X.T.astype(out.dtype), Z.T.astype(out.dtype)):
        u = x[:, None] - z
        u *= u
        u += 1
        out += np.divide(1, u, out=u)
    out *= out.dtype.type(1.0 / X.shape[1])


def additive_slopes(X: Array, Z: Array, G: Array) -> Array:
    slopes = np.empty(X.shape[1])
    for k, (x, z) in enumerate(zip(X.T.astype(np.float64), Z.T.astype(np.float64))):
        v = 1 / (1 + (x[:, None] - z) ** 2)
        slopes[k] = 2 * np.vdot(G, v - v * v)
    return slopes


def mirror(src: Array, dst: Array) -> None:
    dst[...] = src.T
