"""An adversary of proofs: random expressions with extreme parameters on odd data, and a search for contradictions.

A proven kernel evaluated in floats is positive semidefinite to rounding. How much that is follows from the expression:
`condition` is the number of roundings, to first order, by which k(x, z)/√(k(x, x) k(z, z)) may be off. Eigenvalues of
the normalised matrix below minus n times as much, values beyond Cauchy and Schwarz, an asymmetry, a value that depends
on its company, or a number that is not finite contradict the proof.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from scipy.special import gammaln

import mercer as mc
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.kernels.algebra.entrywise import Exp, Poly, Power
from mercer.kernels.algebra.linear import Product
from mercer.kernels.algebra.rescaling import Normalized
from mercer.kernels.block import CANCELLATION
from mercer.kernels.vectors.radial import FUSED_REACH


class Contradiction(AssertionError):
    """A proven kernel whose values contradict the proof."""


# -- expressions ------------------------------------------------------------------------------------------------------


def power_of_ten(rng, low, high):
    """Mostly near 1, now and then anywhere between the ends."""
    if rng.random() < 0.75:
        return float(10.0 ** rng.uniform(max(low, -2), min(high, 2)))
    return float(10.0 ** rng.uniform(low, high))


def width(rng, d, scale):
    if rng.random() < 0.25:
        return [power_of_ten(rng, -12, 12) * scale for _ in range(d)]
    return power_of_ten(rng, -12, 12) * scale


def with_one(X):
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    return np.column_stack([X, np.ones(len(X))])


def vector_leaf(rng, d, scale):
    B = rng.normal(size=(d, d)) * [power_of_ten(rng, -8, 4) for _ in range(d)]
    kinds = [
        mc.Linear,
        lambda: mc.Polynomial(
            int(rng.choice([1, 2, 3, 7, 40, 3000, 10**6])), c=float(rng.choice([0.0, 1e-6, 1.0, 1e3]))
        ),
        lambda: mc.Bilinear(B @ B.T),
        lambda: mc.Gaussian(width(rng, d, scale)),
        lambda: mc.Gaussian(width(rng, d, scale)),
        lambda: mc.Laplacian(width(rng, d, scale)),
        lambda: mc.Matern(
            width(rng, d, scale), nu=float(rng.choice([1e-3, 0.03, 0.5, 0.8, 1.5, 2.5, 3.1, 31.0, 90.0]))
        ),
        lambda: mc.RationalQuadratic(width(rng, d, scale), alpha=power_of_ten(rng, -90, 90)),
        lambda: mc.Periodic(power_of_ten(rng, -3, 3), period=power_of_ten(rng, -3, 3) * scale),
        lambda: mc.ArcCosine(int(rng.integers(3))),
        lambda: mc.Additive(width(rng, d, scale)),
        lambda: mc.Constant(power_of_ten(rng, -30, 30)),
        lambda: mc.FromFeatures(with_one),
    ]
    return kinds[rng.integers(len(kinds))]()


def combined(rng, leaf, depth):
    """A random expression over leaves that `leaf()` makes."""
    if depth == 0 or rng.random() < 0.15:
        return leaf()
    inner = lambda: combined(rng, leaf, depth - 1)  # noqa: E731
    n = int(rng.choice([1, 2, 3, 5, 60, 2500, 10**5, 10**7, 10**12]))
    kinds = [
        lambda: inner() + inner(),
        lambda: inner() * inner(),
        lambda: power_of_ten(rng, -30, 30) * inner(),
        lambda: inner() ** (n if rng.random() < 0.4 else int(rng.integers(1, 4))),
        lambda: inner().poly(10.0 ** rng.uniform(-3, 3, size=rng.integers(1, 5))),
        lambda: mc.exp(power_of_ten(rng, -6, 3) * inner()),
        lambda: mc.exp(power_of_ten(rng, -3, 3) * inner()).normalize(),
        lambda: mc.exp(inner().normalize()),
        lambda: inner().normalize(),
        lambda: inner().normalize() ** n,
    ]
    return kinds[rng.integers(len(kinds))]()


def vectors(rng, d, scale):
    """Points of one scale, with an offset, copies, near copies, constant columns, two far clusters."""
    n = int(rng.choice([2, 3, 7, 20, 40]))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 3)] = X[0]
    if rng.random() < 0.3:
        X[: n // 2] = X[0] + 10.0 ** rng.uniform(-12, -2) * rng.normal(size=(n // 2, d))
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = 1.0
    if rng.random() < 0.2:
        X[n // 2 :] += 10.0 ** rng.uniform(1, 6)
    if rng.random() < 0.2:
        X = X.round()
    if rng.random() < 0.1:
        X[0] = 0.0
    if rng.random() < 0.4:
        X += 10.0 ** rng.uniform(-2, 9) * rng.normal(size=d)
    X = X * scale
    kind = rng.random()
    if np.abs(X).max() > 1e37:
        return X
    if kind < 0.4:
        return X.astype(np.float32)
    if kind < 0.5:
        return sp.csr_array(X.astype(np.float32 if rng.random() < 0.5 else np.float64))
    if kind < 0.55:
        return np.asfortranarray(X)
    if kind < 0.6:
        return pd.DataFrame(X.astype(np.float32) if rng.random() < 0.5 else X)
    if kind < 0.65:
        return pl.DataFrame({f"c{j}": X[:, j] for j in range(d)})
    if kind < 0.7 and scale == 1.0:
        return (10 * X).round().clip(-100, 100).astype(rng.choice([np.int64, np.int8, np.bool_]))
    return X.tolist() if kind < 0.75 else X


ODD = [1, True, 1.0, 0, False, 0.0, -0.0, "1", "", None, float("nan"), np.nan, np.float32(1), np.int8(1), (1,), (True,),
       frozenset(), frozenset({1}), 1 + 0j, 2**70, float(2**70), np.inf, "é", "e\u0301", b"1"]  # fmt: skip


def odd_sets(rng):
    return [{ODD[i] for i in rng.integers(len(ODD), size=rng.integers(0, 6))} for _ in range(rng.integers(2, 25))]


def odd_rows(rng, missing=True):
    values = [v for v in ODD if missing or (v is not None and v == v)]
    d = int(rng.integers(1, 4))
    rows = [[values[i] for i in rng.integers(len(values), size=d)] for _ in range(rng.integers(2, 25))]
    return rows if rng.random() < 0.5 else pd.DataFrame([list(r) for r in rows], dtype=object)


def odd_texts(rng):
    return ["".join(rng.choice(list("abAB é\u0301\0ß"), size=rng.integers(0, 9))) for _ in range(rng.integers(2, 25))]


def mixed_table(rng):
    n = int(rng.integers(3, 25))
    numbers = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) * power_of_ten(rng, -6, 6))
    words = [["a", "b", None, "1"][i] for i in rng.integers(4, size=n)]
    table = {"x": numbers, "y": rng.normal(size=n).astype(np.float32), "w": words, "b": rng.random(n) < 0.5}
    return pd.DataFrame(table) if rng.random() < 0.5 else pl.DataFrame(table)


def table_leaf(rng):
    kinds = [
        lambda: mc.Linear().on("y"),
        lambda: mc.Missing(mc.Gaussian(power_of_ten(rng, -6, 6))).on("x"),
        lambda: mc.Missing(mc.Laplacian(power_of_ten(rng, -6, 6)), like=[0.0, 1.0, 5.0]).on("x"),
        lambda: mc.Additive(power_of_ten(rng, -6, 6)).on("x", "y"),
        lambda: mc.Categorical(power_of_ten(rng, -2, 2)).on("w", "b"),
        lambda: mc.Delta().on("b"),
        lambda: mc.Hamming().on("b", "y"),
        lambda: mc.Matern(power_of_ten(rng, -2, 2)).on("y"),
    ]
    return kinds[rng.integers(len(kinds))]()


def case(seed):
    """One expression and one data set."""
    rng = np.random.default_rng([20141, seed])
    kind, depth = rng.random(), int(rng.integers(0, 4))
    if kind < 0.7:
        d = int(rng.integers(1, 7))
        scale = 1.0 if rng.random() < 0.7 else float(10.0 ** rng.uniform(-170, 150))
        wide = 1.0 if rng.random() < 0.3 else min(max(scale, 1e-130), 1e130)
        return combined(rng, lambda: vector_leaf(rng, d, wide), depth), vectors(rng, d, scale)
    if kind < 0.78:
        return combined(rng, lambda: mc.Intersection(), depth), odd_sets(rng)
    if kind < 0.84:
        leaf = lambda: [mc.Delta, mc.Hamming][rng.integers(2)]()  # noqa: E731
        return combined(rng, leaf, depth), odd_rows(rng, missing=False)
    if kind < 0.87:
        return combined(rng, lambda: mc.Categorical(power_of_ten(rng, -3, 3)), depth), odd_rows(rng)
    if kind < 0.9:
        return combined(rng, lambda: mc.NGrams((1, int(rng.integers(1, 4)))), depth), odd_texts(rng)
    if kind < 0.95:
        return combined(rng, lambda: table_leaf(rng), depth), mixed_table(rng)
    n, r = int(rng.integers(2, 12)), int(rng.integers(1, 12))
    V = rng.normal(size=(n, r)) * power_of_ten(rng, -100, 100)
    K = V @ V.T
    if rng.random() < 0.5 and np.abs(K).max() < 1e37:
        K = K.astype(np.float32)
    return combined(rng, lambda: mc.Precomputed(K), depth), rng.integers(n, size=rng.integers(2, 15))


# -- how much rounding ------------------------------------------------------------------------------------------------


def condition(k, X, dtype):
    """How many roundings of `dtype` k(x, z) may be off, relative to √(k(x, x) k(z, z)), to first order."""
    parts = list(k.children.values())
    if isinstance(k, (mc.On, mc.After)):
        points = Points(X) if not isinstance(X, Points) else X
        return condition(k.kernel, points.view(k.view), dtype)
    if isinstance(k, Product):
        return sum(condition(part, X, dtype) + 1 for part in parts)
    if isinstance(k, Exp):
        return 4 + condition(k.kernel, X, dtype) * largest(k.kernel, X)
    if isinstance(k, Poly):
        return 4 + len(k.coefficients) * (1 + condition(k.kernel, X, dtype))
    if isinstance(k, Power):
        if k.kernel.exact_log:  # v·|log v| ≤ 1/e below 1, and |log v| above; and what cancels in logarithms
            return 4 + condition(k.kernel, X, dtype) * max(1.0, log_largest(k, X), k.log_size(k.prepare(X)))
        return 4 + k.exponent * (1 + condition(k.kernel, X, dtype))
    if isinstance(k, Normalized):
        if k.kernel.exact_log:
            return 4 + 2 * condition(exponent_of(k.kernel), X, dtype) * max(1.0, k.log_size(k.prepare(X)))
        return 4 + 2 * condition(k.kernel, X, dtype)
    if parts:
        return 2 + max(condition(part, X, dtype) for part in parts)
    return of_leaf(k, X, dtype)


def roughest(k, X, dtype):
    """The largest condition of a leaf."""
    if isinstance(k, (mc.On, mc.After)):
        return roughest(k.kernel, (X if isinstance(X, Points) else Points(X)).view(k.view), dtype)
    parts = k.children.values()
    return max(roughest(part, X, dtype) for part in parts) if parts else of_leaf(k, X, dtype)


def exponent_of(k):
    """Of a kernel that is normalised by logarithms, what these logarithms are distances of."""
    return k.kernel if isinstance(k, Exp) else k


def largest(k, X):
    with np.errstate(all="ignore"):
        return max(1.0, float(np.max(np.abs(k.diagonal(k.prepare(X))))))


def log_largest(k, X):
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(k.log_diagonal(k.prepare(X)))))


def of_leaf(k, X, dtype):
    if isinstance(k, mc.Precomputed):
        return 10.0 * len(k.K) ** 2
    try:
        V = (X if isinstance(X, Points) else Points(X)).vectors()
    except InvalidInput:  # objects, or numbers with missing ones among them: as for distances of some columns
        return 5 / CANCELLATION + 4 * min(FUSED_REACH.values()) ** 2
    V = V.toarray() if sp.issparse(V) else V
    V = np.asarray(V, dtype=np.float64)
    d = V.shape[1]
    roundings = 4 / CANCELLATION + 4 * d
    if isinstance(k, mc.Polynomial):
        return roundings * k.degree
    if isinstance(k, (mc.Gaussian, mc.Additive)) or np.ndim(getattr(k, "sigma", 0.0)):
        with np.errstate(over="ignore"):
            reach = np.linalg.norm((V - V.mean(axis=0)) / k.sigma, axis=1).max()
        roundings += 4 * reach if np.ndim(k.sigma) or isinstance(k, mc.Additive) else 0.0  # rows are divided first
    if isinstance(k, mc.Gaussian):
        return roundings + 4 * min(reach, FUSED_REACH[np.dtype(dtype).itemsize]) ** 2
    if isinstance(k, mc.Matern):
        if np.ndim(k.sigma):  # which moves points by so much, and a rough profile is steep
            moved = 4 * np.finfo(float).eps * reach
            roundings += (1 - mc.Matern(1.0, nu=k.nu)([[0.0]], [[max(moved, 1e-150)]])[0, 0]) / np.finfo(dtype).eps
        return roundings * (1 + (gammaln(k.nu + 1) + k.nu * 40) / 20 if k.nu > 2.5 else 4)
    if isinstance(k, mc.Periodic):
        return roundings + 8 * d * (1 / k.sigma + 1 / k.sigma**2)
    return roundings


# -- contradictions ---------------------------------------------------------------------------------------------------


def examine(k, X):
    """Raise `Contradiction` if values contradict the proof; whether there was a proof and there were values."""
    if not k.proof(dim=columns(X)).valid:
        return False
    try:
        K = k(X)
        diagonal = k.diag(X)
    except InvalidInput:
        return False
    n, eps = len(K), float(np.finfo(K.dtype).eps)
    coarse = np.float32 if k.precision == np.float32 else K.dtype
    unit = float(np.finfo(coarse).eps)
    # Beyond half of the digits an expression is refused, unless a leaf alone needs them.
    share = unit * min(condition(k, X, coarse), max(4 / math.sqrt(unit), roughest(k, X, coarse)))
    K = np.asarray(K, dtype=np.float64)
    if not np.isfinite(K).all() or not np.isfinite(diagonal).all():
        raise Contradiction(f"{k!r}: values that are not finite")
    if not np.array_equal(K, K.T):
        raise Contradiction(f"{k!r}: not symmetric")
    own = np.diagonal(K).copy()
    if (own < 0).any():
        raise Contradiction(f"{k!r}: k(x, x) = {own.min()} < 0")
    lowest = float(np.finfo(np.float32 if eps > 1e-10 else np.float64).tiny) / eps
    normal = own > lowest  # below, digits are missing
    bounds = np.sqrt(np.maximum(own, lowest))
    if (np.abs(K) / bounds[:, None] / bounds > 1 + share).any():
        raise Contradiction(f"{k!r}: |k(x, z)| is larger than √(k(x, x) k(z, z))")
    if (np.abs(diagonal.astype(np.float64) - own)[normal] / own[normal] > share).any():
        raise Contradiction(f"{k!r}: diag(X) is not the diagonal of k(X)")
    at = np.flatnonzero(normal)
    if not len(at):
        return True
    roots = np.sqrt(own[at])
    C = K[np.ix_(at, at)] / roots[:, None] / roots
    smallest = np.linalg.eigvalsh(C)[0]
    if smallest < -n * share - 10 * n * np.finfo(float).eps:
        raise Contradiction(f"{k!r}: normalised eigenvalue {smallest:.3g}, where −{n * share:.3g} is rounding")
    half = (n + 1) // 2
    rows, others = np.arange(half), np.arange(n)[::-1]
    try:
        part = np.asarray(k(take(X, rows), take(X, others)), dtype=np.float64)
    except InvalidInput as error:
        raise Contradiction(f"{k!r}: values of all points, but of some: {error}") from error
    apart = np.abs(part - K[np.ix_(rows, others)])
    with np.errstate(over="ignore"):
        allowed = 2 * share * np.sqrt(own[rows, None]) * np.sqrt(own[others]) + lowest
    within = normal[rows, None] & normal[others]
    if (apart > allowed)[within].any():
        raise Contradiction(f"{k!r}: values depend on the other points, by {np.max(np.where(within, apart, 0)):.3g}")
    return True


def columns(X):
    return int(X.shape[1]) if hasattr(X, "shape") and len(X.shape) == 2 else None
