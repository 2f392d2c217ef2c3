"""The one primitive of local methods: sums over the data, weighted by similarity to each query.

    Σᵢ w(zⱼ, xᵢ) uᵢⱼ^α Vᵢ = exp(log_scaleⱼ) · totalsⱼ,     uᵢⱼ = (xᵢ − zⱼ)/σ.

Densities are such sums with V = 1, Nadaraya-Watson is a ratio of two of them, local regression solves for the moments
with |α| ≤ 2p. The logarithm of the magnitude is kept separately: far from all data the weights underflow, but their
ratios do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.batches import Batches
from mercer.data.dask_rows import DaskRows
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import ByWidth, Gaussian
from mercer.memory import budget, within
from mercer.smoothing import costs
from mercer.smoothing.sums.far import remote_sums
from mercer.smoothing.sums.fast import different, fast_sums
from mercer.smoothing.sums.plans import COMPACT, WIDEST, ends, plan
from mercer.smoothing.sums.tiled import tiled
from mercer.validation import check_number, check_whole_number

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sums:
    """Σᵢ w(zⱼ, xᵢ) uᵢⱼ^α Vᵢ = exp(log_scale[j]) · totals[j, α].

    log_scale : (m,); −inf if no point has any weight (compact weights), and then totals are 0.
    totals : (m, M, c), one row per monomial (see `exponents`), one column per column of V.
    """

    log_scale: Float
    totals: Float

    @property
    def values(self) -> Float:
        """The sums themselves, (m, M, c); 0 if they underflow."""
        return np.exp(self.log_scale)[:, None, None] * self.totals


TUPLE = 120
"""Bytes of a tuple in a list, in addition to 8 for each of its entries."""
SMALL = 2**16
"""Bytes that always fit: asking the system for its free memory would take longer than filling them."""


def exponents(d: int, degree: int) -> NDArray[np.int64]:
    """The exponents α of the monomials u^α of d variables, |α| ≤ degree, in graded order: shape (M, d).

    >>> exponents(2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    size = comb(d + degree, d) * (8 * (d + degree) + TUPLE)
    if size > SMALL:
        what = f"The monomials of degree {degree} in {d} columns"
        within(size, budget(), what, "Lower the degree, or select fewer columns.")
    chosen = [c for k in range(degree + 1) for c in combinations_with_replacement(range(d), k)]
    powers = np.zeros((len(chosen), d), dtype=np.int64)
    for row, columns in enumerate(chosen):
        for k in columns:
            powers[row, k] += 1
    return powers


def sums(
    similarity: Similarity,
    x: Points,
    V: Float,
    z: Points | None = None,
    *,
    degree: int = 0,
    exclude: bool = False,
    scale: Any = None,
    tolerance: float = 1e-8,
) -> Sums:
    """Σᵢ w(zⱼ, xᵢ) uᵢⱼ^α Vᵢ for every query zⱼ and every monomial |α| ≤ degree, u = (x − z)/σ.

    Parameters
    ----------
    similarity : Similarity
        w, a kernel or a smoothing weight, on any objects.
    x : Points
        The n data points, prepared by `similarity.prepare`; or all rows of a source as `StreamedPoints`.
    V : Float
        (n, c) numbers that are summed: ones, targets, indicators of classes, sample weights. A broadcast row (such as
        np.broadcast_to(1.0, (n, 1))) is known to be the same everywhere.
    z : Points or None
        The m queries; by default the data points themselves.
    degree : int
        The largest degree of the monomials; above 0 points must be dense vectors. u is in units of the similarity's
        sigma (per column; 1 if it has none), whatever `scale` is.
    exclude : bool
        Whether row j is left out of its own sum (leave-one-out); only without z.
    scale
        (m,) factors > 0 of the similarity's width, one per query, or None.
    tolerance : float
        The error of column c, relative to Σᵢ w |u^α| rᵢ · maxᵢ|Vᵢc| for the query; the size rᵢ of row i is its largest
        entry, each in units of the largest in its column. With a column of ones (or of the sample weights that the
        others are multiplied by) sums of one sign are accurate relative to themselves, even far from all data. Compact
        weights on a line and the Laplacian are exact up to rounding.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> x = k.prepare([[0.0], [1.0], [2.0]])
    >>> y = np.array([[1.0, 3.0], [1.0, 5.0], [1.0, 7.0]])
    >>> total = sums(k, x, y, k.prepare([[1.0], [1e6]])).totals[:, 0]
    >>> (total[:, 1] / total[:, 0]).round(6)
    array([5., 7.])
    """
    if isinstance(x, StreamedPoints):
        if z is None:
            raise InvalidInput(
                "Leave-one-out, standard errors and intervals need all rows in memory",
                got="a model of rows in batches",
                advice="Fit a sample of the rows as an array.",
            )
        return over_batches(similarity, x.batches, V, z, degree=degree, scale=scale, tolerance=tolerance)
    V, factors, d = _checked(similarity, x, V, z, degree, exclude, scale, tolerance)
    powers = exponents(d, degree)
    remote = _remote(similarity, x, z, factors)
    if len(remote):
        return _with_remote(similarity, x, V, z, remote, powers, exclude, factors, tolerance)
    chosen = plan(similarity, x, z, degree=degree, exclude=exclude, scale=factors, tolerance=tolerance)
    if chosen.path == "tiled" or V.shape[1] > costs.MATRIX_COLUMNS:
        return Sums(*tiled(similarity, x, np.ascontiguousarray(V), z, powers, exclude=exclude, scale=factors))
    X, Z = x.dense(), None if z is None else z.dense()
    return Sums(*fast_sums(chosen.path, similarity, X, V, Z, powers, exclude, factors, tolerance))


# --- rows in batches --------------------------------------------------------------------------------------------------


def over_batches(
    similarity: Similarity, rows: Batches, V: Float, z: Points, *, degree: int = 0, scale: Any = None, tolerance: float
) -> Sums:
    """The sums over all rows of a source, batch by batch, or on the workers of a cluster: only the sums come back.

    >>> import mercer as mc
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> k, z = mc.Gaussian(0.1), mc.Gaussian(0.1).prepare([[0.5]])
    >>> found = over_batches(k, mc.Batches(X), np.ones((50, 1)), z, tolerance=1e-8)
    >>> bool(np.allclose(found.values[0, 0], k(X, [[0.5]]).sum()))
    True
    """
    work = similarity, z, degree, scale, tolerance
    if isinstance(rows, DaskRows):
        try:
            total: Sums = rows.sum(_part_on_worker, [rows.cluster.value(work)], (V,), _merged)
        finally:
            rows.cluster.forget(V)
        return total
    start, found = 0, None
    for X, _ in rows:
        new = _part(work, X, V[start : start + len(X)])
        start, found = start + len(X), new if found is None else _merged(found, new)
    if found is None or start != len(V):
        raise InvalidInput(
            f"A source of rows must return the same {len(V):,} rows at every pass",
            got=f"{start:,} rows",
            advice="Pass a function that starts anew whenever it is called.",
        )
    return found


def _part(sent: tuple[Similarity, Points, int, Any, float], X: Any, V: Float) -> Sums:
    similarity, z, degree, scale, tolerance = sent
    all_rows = np.broadcast_to(V, (len(X), V.shape[1]))  # one row that was sent stands for equal ones
    return sums(similarity, similarity.prepare(X), all_rows, z, degree=degree, scale=scale, tolerance=tolerance)


def _part_on_worker(sent: tuple[Similarity, Points, int, Any, float], X: Any, V: Float) -> Sums:
    with threads.alone():
        return _part(sent, X, V)


def _merged(*parts: Sums) -> Sums:
    """The sum of several sums, in units of the largest at each query."""
    scale = np.max([part.log_scale for part in parts], axis=0)
    unit = np.where(np.isfinite(scale), scale, 0.0)
    return Sums(scale, np.sum([np.exp(p.log_scale - unit)[:, None, None] * p.totals for p in parts], axis=0))


# --- queries so far away that squares overflow ------------------------------------------------------------------------


def _remote(similarity: Any, x: Points, z: Points | None, scale: Float | None) -> NDArray[np.int64]:
    """The queries to sum separately: more than WIDEST widths from dense data, or all if the data is so wide."""
    none, queries = np.empty(0, dtype=np.int64), x if z is None else z
    if type(similarity) not in (Gaussian, *COMPACT) or any(sp.issparse(p.vectors()) for p in (x, queries)):
        return none
    d = x.vectors().shape[1]
    if queries.vectors().shape[1] != d or np.size(similarity.sigma) not in (1, d):
        return none  # which raises elsewhere
    sigma = np.asarray(similarity.sigma, dtype=np.float64)
    (low, high), (first, last) = ends(x), ends(queries)
    gaussian = type(similarity) is Gaussian
    factors = np.ones(1) if scale is None else scale
    # a compact weight so wide that it may reach a point is summed as any other
    limits = WIDEST * np.minimum(factors, 1.0) if gaussian else np.maximum(factors, WIDEST)
    with np.errstate(over="ignore"):
        if not float(np.max((high - low) / sigma)) < WIDEST:
            return np.arange(queries.n) if gaussian else none
        if float(np.max((np.maximum(high, last) - np.minimum(low, first)) / sigma)) < limits.min():
            return none
        Z = queries.dense()
        away = np.max(np.maximum(low - Z, Z - high) / sigma, axis=1)
    return np.flatnonzero(~(away <= limits))


def _with_remote(
    similarity: Any,
    x: Points,
    V: Float,
    z: Points | None,
    remote: NDArray[np.int64],
    powers: NDArray[np.int64],
    exclude: bool,
    scale: Float | None,
    tolerance: float,
) -> Sums:
    """The sums, with these queries computed separately: a compact weight does not reach them."""
    queries = x if z is None else z
    m, factors = queries.n, np.ones(queries.n) if scale is None else scale
    log_scale, totals = np.full(m, -np.inf), np.zeros((m, len(powers), V.shape[1]))
    if type(similarity) is Gaussian:
        X, sigma = x.dense(), np.broadcast_to(np.asarray(similarity.sigma, dtype=np.float64), x.vectors().shape[1:])
        left_out = remote if exclude else None
        log_scale[remote], totals[remote] = remote_sums(
            X, V, queries.dense()[remote], sigma, factors[remote], powers, left_out
        )
    near = np.setdiff1d(np.arange(m), remote)
    if len(near):
        # data is never remote from itself unless all of it is: these queries are not the data
        part = sums(
            similarity, x, V, queries.take(near), degree=int(powers.sum(axis=1).max()),
            scale=None if scale is None else scale[near], tolerance=tolerance,
        )  # fmt: skip
        log_scale[near], totals[near] = part.log_scale, part.totals
    return Sums(log_scale, totals)


def _checked(
    similarity: Similarity,
    x: Points,
    V: Any,
    z: Points | None,
    degree: int,
    exclude: bool,
    scale: Any,
    tolerance: float,
) -> tuple[Float, Float | None, int]:
    """V, the scale factors and the number of columns (1 for objects that have none)."""
    V = np.asarray(V, dtype=np.float64)
    V = V if V.strides[:1] == (0,) else np.ascontiguousarray(V)
    if V.ndim != 2 or len(V) != x.n:
        raise InvalidInput(f"`V` must have shape ({x.n}, c)", got=V.shape, advice="Pass one row per data point.")
    if not np.isfinite(different(V)).all():
        raise InvalidInput("`V` must be finite", got="NaN or infinity", advice="Drop those points first.")
    if exclude and z is not None:
        raise InvalidInput("`exclude` needs the data as queries", got="other queries", advice="Leave out `z`.")
    check_number(tolerance, "tolerance", above=0, below=1, such_as=1e-8)
    check_whole_number(degree, "degree", least=0, advice="Use 0 to sum the values.")
    similarity.touch(x)
    if z is not None:
        similarity.touch(z)
    m = (x if z is None else z).n
    factors = None if scale is None else _factors(similarity, scale, m)
    return V, factors, _columns(x, z) if degree else 1


def _factors(similarity: Similarity, scale: Any, m: int) -> Float:
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape != (m,):
        raise InvalidInput(f"`scale` must have shape ({m},)", got=factors.shape, advice="Pass one factor per query.")
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise InvalidInput(
            "`scale` must be finite and > 0",
            got=f"{factors[~(np.isfinite(factors) & (factors > 0))][0]}",
            advice="Use a positive factor if the nearest neighbours coincide.",
        )
    if not all(isinstance(leaf, ByWidth) for leaf in similarity.leaves):
        raise InvalidInput(
            "`scale` needs a similarity of (x − z)/σ",
            got=repr(similarity),
            advice="Use Gaussian or Tricube, for instance.",
        )
    return factors


def _columns(x: Points, z: Points | None) -> int:
    """The number of columns of dense vectors."""
    X = x.vectors()
    if sp.issparse(X):
        raise InvalidInput("Moments need dense data", got="a sparse matrix", advice="Pass X.toarray().")
    d = int(X.shape[1])
    if z is not None and (sp.issparse(z.vectors()) or z.vectors().shape[1] != d):
        raise InvalidInput(
            f"Queries must be dense vectors with {d} columns",
            got=z.vectors().shape,
            advice="Pass the columns of the data.",
        )
    return d
