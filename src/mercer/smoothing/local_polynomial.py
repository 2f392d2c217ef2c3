"""Local polynomials: weighted least squares around every query, from moments.

    b(z) = argmin Σᵢ w(z, xᵢ) vᵢ (yᵢ − Σ_α b_α uᵢ^α)²,   so   S b = t,   S_αβ = Σ w v u^(α+β),   t_α = Σ w v u^α y.

The value at z is b₀ = Σ lᵢ(z) yᵢ with lᵢ = w vᵢ aᵀφ(uᵢ), a = S⁻¹e₀; degree 0 is Nadaraya-Watson. S is factorised as
LDLᵀ in graded order: pivot α is the rest of u^α after all monomials before it. If nothing is left, the points around z
do not determine that coefficient, and it is 0: the fit has as low a degree as it needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.memory import allocatable
from mercer.smoothing.sums import Sums, exponents, sums
from mercer.smoothing.sums.tiled import Stretched, unit_of

Float = NDArray[np.float64]
Index = NDArray[np.int64]

TOLERANCE = (1e-8, 1e-8, 1e-11, 1e-11)
"""The tolerance of the sums, by degree: ratios of sums lose no digits, differences of higher moments do."""
DETERMINED = 100.0
"""A monomial is not determined if its rest after the ones before it is at most this many tolerances."""
FAR = -1e6
"""Below this logarithm of a weight differences of logarithms have few digits left."""
UNDERFLOW = -690.0
"""Below this logarithm the terms of a sum may have underflowed, if no logarithm of the similarity is known."""
NARROW = 1e-3
"""The share of the similarity's width at which the nearest points decide."""


@dataclass(frozen=True, eq=False)
class LocalFit:
    """The local polynomial at each of m queries.

    coef : b, (m, P, t), of the monomials of u = (x − z)/unit.
    dual : a = S⁻¹e₀ in units of exp(−log_scale), (m, P).
    log_scale : (m,) of the sums; 0 if `alone`.
    alone : (m,) whether no point has any weight: then the nearest points decide.
    means : (m, q) weighted means of further columns.
    """

    coef: Float
    dual: Float
    log_scale: Float
    alone: NDArray[np.bool_]
    means: Float

    @property
    def values(self) -> Float:
        """f(z), (m, t)."""
        return self.coef[:, 0]


def fit(
    similarity: Similarity,
    x: Points,
    y: Float,
    v: Float,
    z: Points | None = None,
    *,
    degree: int = 0,
    exclude: bool = False,
    scale: Float | None = None,
    more: Float | None = None,
) -> LocalFit:
    """The local polynomials of targets y (n, t) with weights v (n,), at z, by default at the points themselves.

    With `exclude` row j is left out of its own fit; `more` (n, q) are columns whose weighted means are returned, too.
    """
    centre = v @ y / v.sum()
    columns = [v[:, None], v[:, None] * (y - centre)] + ([] if more is None else [v[:, None] * more])
    V = np.concatenate(columns, axis=1)
    parts = []
    for rows in _held(x, z, degree, V.shape[1]):
        at, factors = _part(z, scale, rows)
        moments = sums(
            similarity, x, V, at, degree=2 * degree, exclude=exclude, scale=factors, tolerance=TOLERANCE[degree]
        )
        local = solved(moments, columns_of(x, degree), degree, y.shape[1])
        if local.alone.any():
            _by_the_nearest(local, similarity, x, V, at, exclude)
        local.coef[:, 0] += centre
        parts.append(local)
    return parts[0] if len(parts) == 1 else _joined(parts)


def _held(x: Points, z: Points | None, degree: int, columns: int) -> list[slice]:
    """Queries in groups whose moments fit the memory; the points themselves, without z, are one group."""
    d = columns_of(x, degree)
    moments = math.comb(d + 2 * degree, 2 * degree) * columns
    if z is None:
        allocatable(
            8 * x.n * moments,
            f"{moments} moments for each of {x.n} rows",
            "Lower `degree`, or pass a `bandwidth`, and predict a few queries at a time.",
        )
        return [slice(0, x.n)]
    return threads.spans(z.n, max(1, memory.HELD // moments)) or [slice(0, 0)]


def _part(z: Points | None, scale: Float | None, rows: slice) -> tuple[Points | None, Float | None]:
    """Some of the queries, with their factors of the width."""
    if z is None or rows == slice(0, z.n):
        return z, scale
    return z.take(rows), None if scale is None else scale[rows]


def _joined(parts: list[LocalFit]) -> LocalFit:
    names = ("coef", "dual", "log_scale", "alone", "means")
    return LocalFit(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def columns_of(x: Points, degree: int) -> int:
    """The number of columns; for a constant fit it does not matter."""
    return int(x.vectors().shape[1]) if degree else 1


def solved(moments: Sums, d: int, degree: int, t: int) -> LocalFit:
    """The fits from the moments of (v, v·y, v·more), not yet filled for queries without a point in reach."""
    totals = moments.totals
    alone = ~np.isfinite(moments.log_scale) | (totals[:, 0, 0] <= 0)
    log_scale = np.where(alone, 0.0, moments.log_scale)
    weight = np.where(alone, 1.0, totals[:, 0, 0])
    means = totals[:, 0, 1 + t :] / weight[:, None]
    if degree == 0:
        return LocalFit(
            totals[:, :1, 1 : 1 + t] / weight[:, None, None], 1.0 / weight[:, None], log_scale, alone, means
        )
    at = pairs(d, degree)
    b = np.empty((len(weight), len(at), t + 1))

    def work(rows: slice, share: int) -> None:
        part = np.moveaxis(totals[rows], 0, -1)
        right = np.zeros((len(at), t + 1, part.shape[-1]))
        right[:, :t] = part[: len(at), 1 : 1 + t]
        right[0, t] = 1.0
        b[rows] = np.moveaxis(ldl_solve(part[at, 0], right, DETERMINED * TOLERANCE[degree]), -1, 0)

    threads.stripes(len(weight), work, rows=max(1, memory.CACHED // len(at) ** 2))
    return LocalFit(b[:, :, :t], b[:, :, t], log_scale, alone, means)


def pairs(d: int, degree: int, shift: Any = 0) -> Index:
    """Positions of α + β + shift among the monomials up to the degree that contains them all, (P, P)."""
    powers = exponents(d, degree)
    place = {tuple(a): i for i, a in enumerate(exponents(d, 2 * degree + int(np.sum(shift))).tolist())}
    return np.array([[place[tuple((a + b + shift).tolist())] for b in powers] for a in powers])


def ldl_solve(S: Float, right: Float, least: float = 1e-9) -> Float:
    """S⁻¹ right for m symmetric systems at once, S (P, P, m) and right (P, c, m), without undetermined unknowns.

    An unknown is undetermined if its pivot is at most `least` of its diagonal entry.

    >>> S = np.array([[[2.0], [2.0]], [[2.0], [2.0]]])                # rank 1: the second unknown is left out
    >>> ldl_solve(S, np.array([[[4.0]], [[4.0]]]))[:, 0, 0]
    array([2., 0.])
    """
    P = len(S)
    L, pivots, x = np.zeros_like(S), np.empty((P, S.shape[-1])), right.copy()
    for k in range(P):
        scaled = L[k, :k] * pivots[:k]
        pivot = S[k, k] - (L[k, :k] * scaled).sum(axis=0)
        # NaN fails this comparison, too.
        kept = pivot > least * S[k, k]
        pivots[k] = np.where(kept, pivot, np.inf)
        if k:
            x[k] -= np.einsum("jm,jcm->cm", L[k, :k], x[:k])
        if k + 1 < P:
            below = S[k + 1 :, k] - np.einsum("ijm,jm->im", L[k + 1 :, :k], scaled) if k else S[1:, 0]
            L[k + 1 :, k] = below / pivots[k]
        # The left-out row must not affect the rows after it: its pivot is infinite, and so its multipliers are 0.
        pivots[k] = np.where(kept, pivot, 0.0)
        x[k] = np.where(kept, x[k], 0.0)
    with np.errstate(divide="ignore"):
        inverse = np.where(pivots > 0, 1.0 / pivots, 0.0)
    x *= inverse[:, None]
    for k in reversed(range(P - 1)):
        x[k] -= np.einsum("im,icm->cm", L[k + 1 :, k], x[k + 1 :])
    return x


# --- no point in reach ------------------------------------------------------------------------------------------------


def _by_the_nearest(
    local: LocalFit, similarity: Similarity, x: Points, V: Float, z: Points | None, exclude: bool
) -> None:
    """Fill the rows without a point in reach: with the mean of the nearest points, or of all without distances."""
    rows = np.flatnonzero(local.alone)
    totals = _nearest_totals(similarity, x, V, z, rows, exclude)
    if not (totals[:, 0] > 0).all():
        raise InvalidInput(
            "Leaving a row out must leave another one", got="a single row", advice="Fit on two rows or more."
        )
    t = local.coef.shape[2]
    local.coef[rows], local.dual[rows] = 0.0, 0.0
    local.coef[rows, 0] = totals[:, 1 : 1 + t] / totals[:, :1]
    local.dual[rows, 0] = 1.0 / totals[:, 0]
    local.means[rows] = totals[:, 1 + t :] / totals[:, :1]


def _nearest_totals(similarity: Similarity, x: Points, V: Float, z: Points | None, rows: Index, exclude: bool) -> Float:
    """Σ V over the nearest points of these rows, ties sharing equally; over all points if no distance is known."""
    narrow = narrowed(similarity)
    if narrow is None:
        everything = V.sum(axis=0)
        return everything - V[rows] if exclude else np.broadcast_to(everything, (len(rows), len(everything)))
    if exclude or z is None:
        return sums(narrow, x, V, exclude=exclude, tolerance=TOLERANCE[0]).totals[rows, 0]
    return sums(narrow, x, V, z.take(rows), tolerance=TOLERANCE[0]).totals[:, 0]


def narrowed(similarity: Similarity) -> Similarity | None:
    """A Gaussian of the same distances, so narrow that the nearest points decide; None if there is no distance."""
    return similarity.narrowed(NARROW)


# --- squares ----------------------------------------------------------------------------------------------------------


def spread(
    local: LocalFit,
    similarity: Similarity,
    x: Points,
    v: Float,
    z: Points | None = None,
    *,
    degree: int = 0,
    exclude: bool = False,
    scale: Float | None = None,
    squares: Float | None = None,
) -> Float:
    """Σᵢ lᵢ(z)²/vᵢ, (m,): the variance of f(z) over that of one target. Its inverse is an effective number of rows.

    v are the weights of the fit, and `squares` the weights of w² in this sum: the same if they mean repetition.
    """
    squares = v if squares is None else squares
    power = similarity.squared()
    share, lost = np.empty(len(local.alone)), np.zeros(len(local.alone), dtype=bool)
    for group in _held(x, z, degree, 1):
        at, factors = _part(z, scale, group)
        moments = sums(
            power, x, squares[:, None], at,
            degree=2 * degree, exclude=exclude, scale=factors, tolerance=TOLERANCE[degree],
        )  # fmt: skip
        share[group] = _square(
            moments, local, group, unit_of(power) / unit_of(similarity), columns_of(x, degree), degree
        )
        # w² underflows before w does
        lost[group] = (moments.totals[:, 0, 0] <= 0) | ((moments.log_scale < UNDERFLOW) & (not power.exact_log))
    # Far away the logarithms are so large that their difference has no digits: the weights themselves are used there.
    far = np.flatnonzero(local.alone | lost | (local.log_scale < FAR) | ~np.isfinite(share))
    queries = x if z is None else z
    for span in threads.spans(len(far), max(1, memory.HELD // x.n)):
        rows = far[span]
        part = LocalFit(local.coef[rows], local.dual[rows], local.log_scale[rows], local.alone[rows], local.means[rows])
        left_out, factors = rows if exclude else None, None if scale is None else scale[rows]
        shares = weights(part, similarity, x, v, queries.take(rows), degree=degree, scale=factors, left_out=left_out)
        share[rows] = shares**2 @ (squares / v**2)
    # Σ l = 1, so that Σ l²/v ≥ 1/Σv: rounding must not go below.
    return np.maximum(share, 1.0 / v.sum())


def _square(moments: Sums, local: LocalFit, rows: slice, ratio: Any, d: int, degree: int) -> Float:
    """Σ l²/v of some queries from the moments of w², whose width is `ratio` of the similarity's."""
    a, totals = local.dual[rows], moments.totals[:, :, 0]
    share = np.empty(len(a))
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.exp(moments.log_scale - 2 * local.log_scale[rows])
        if degree == 0:
            return np.asarray(unit * totals[:, 0] * a[:, 0] ** 2)
        at = pairs(d, degree)
        totals = totals * np.prod(np.broadcast_to(ratio, (d,)) ** exponents(d, 2 * degree), axis=1)
        for part in threads.spans(len(a), max(1, memory.HELD // len(at) ** 2)):
            share[part] = np.einsum("ma,mab,mb->m", a[part], totals[part][:, at], a[part])
        return np.asarray(unit * share)


# --- the weights themselves -------------------------------------------------------------------------------------------


def weights(
    local: LocalFit,
    similarity: Similarity,
    x: Points,
    v: Float,
    z: Points,
    *,
    degree: int = 0,
    scale: Float | None = None,
    left_out: Index | None = None,
) -> Float:
    """lᵢ(z), (m, n): f(z) = Σ lᵢ(z) yᵢ and Σᵢ lᵢ(z) = 1; `left_out` are the rows that each query leaves out."""
    shares = _relative(similarity, x, z, scale, left_out) * v
    if degree:
        X, Z = x.vectors().astype(np.float64), z.vectors().astype(np.float64)
        unit = np.broadcast_to(unit_of(similarity), X.shape[1:])
        for rows in threads.spans(len(Z), max(1, memory.HELD // X.size)):
            u = (X[None] - Z[rows, None]) / unit
            polynomial = np.zeros(shares[rows].shape)
            for alpha, a in zip(exponents(len(unit), degree), local.dual[rows].T):
                polynomial += a[:, None] * np.prod(u**alpha, axis=2)
            shares[rows] *= polynomial
    if local.alone.any():
        lone = np.flatnonzero(local.alone)
        narrow = narrowed(similarity)
        hidden = None if left_out is None else left_out[lone]
        if narrow is not None:
            shares[lone] = _relative(narrow, x, z.take(lone), None, hidden) * v
        else:
            shares[lone] = v
            if hidden is not None:
                shares[lone, hidden] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _relative(similarity: Similarity, x: Points, z: Points, scale: Float | None, left_out: Index | None) -> Float:
    """w(zⱼ, xᵢ) over the largest of the row, (m, n)."""
    if isinstance(x, StreamedPoints):
        raise InvalidInput(
            "The weights of single rows need all rows in memory",
            got="a model of rows in batches",
            advice="Fit a sample of the rows as an array.",
        )
    pair = Pair(z, x, np.float64, shared=True)
    m, n = pair.shape
    out = np.empty((m, n))

    def work(rows: slice, share: int) -> None:
        block = pair.block(rows, slice(0, n))
        if scale is not None:
            block = Stretched(pair, rows, slice(0, n), block.workspace, scale[rows, None])
        with np.errstate(over="ignore", invalid="ignore"):
            similarity.log_tile(block, out[rows])
        if left_out is not None:
            out[np.arange(rows.start, rows.stop), left_out[rows]] = -np.inf
        largest = out[rows].max(axis=1, keepdims=True)
        out[rows] -= np.where(np.isfinite(largest), largest, 0.0)
        np.exp(out[rows], out=out[rows])

    similarity.touch(x)
    similarity.touch(z)
    threads.stripes(m, work, rows=64, columns=n)
    return out
