"""Bandwidths by leave-one-out: the error of every row's local fit without it, and its gradient in log bandwidths.

One pass of sums, each without its own row, gives all n fits that leave a row out. A bandwidth hₖ changes the fit only
through the weights: ∂w/∂log hₖ = −2φ'(‖u‖²) uₖ², which for the Gaussian is w uₖ². So the gradient consists of moments
of two degrees more:

    ∂f₋ᵢ/∂log hₖ = Σ_α a_α (t'_α − Σ_β S'_αβ b_β),   where S', t' are S, t with ∂w/∂log hₖ in place of w.

Similarities without such a profile use adjoint gradients instead, tile by tile, through their own derivatives.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels import tiling
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.base import Similarity, Weight
from mercer.kernels.block import Block, Pair
from mercer.kernels.vectors.radial import ByWidth, Gaussian, Radial, uncentred
from mercer.smoothing import local_polynomial as local
from mercer.smoothing.sums import Sums, exponents, sums
from mercer.smoothing.sums.tiled import unit_of
from mercer.tuning.local_losses import LocalLoss, SquaredError
from mercer.tuning.quasi_newton import Evaluation
from mercer.tuning.search import Criterion, GradientSearch, curvature
from mercer.tuning.trials import Measure, Trial, Trials, Tuned

Float = NDArray[np.float64]

BY_MOMENTS = 3
"""Up to this number of columns the gradient is computed from moments; with more columns there are too many moments."""
SAMPLE = 1500
"""The number of rows on which the search begins, if there are more."""
FACTORS = np.geomspace(1 / 16, 16, 13)
"""Multiples of the first bandwidths that are tried before any gradient."""
WIDEST, NARROWEST = 10.0, 1e-4
"""Bounds of a bandwidth, in units of the column's range: at the widest all points count almost equally."""
SINGLE_COLUMNS = 8
"""Up to this number of columns the search also starts without each column, and with each column alone."""
ALONE = (0.2, 0.08, 0.03)
"""Bandwidths, in units of the column's range, with which each column is tried alone."""
STARTS = 3
"""The number of starts from which the gradient is followed."""
PRECISION = 5e-6
"""A descent ends when a step promises a smaller relative improvement."""
LIMIT, LIMIT_ALL = 45, 8
"""The largest numbers of evaluations of a descent: on a sample, and on all of many rows, each over all pairs."""
STEP, LEAST = 0.05, 0.01
"""The step of the differences of gradients that give the curvature, and its least eigenvalue."""
LOO_LOSS = Measure("loo", "mean leave-one-out loss", greater=False)


def loo_loss(
    similarity: Similarity, x: Points, loss: LocalLoss, *, degree: int = 0, gradient: bool = True
) -> tuple[float, Float]:
    """The leave-one-out loss of local fits of y to x, and its gradient by `similarity.theta` (logarithms).

    Parameters
    ----------
    similarity : Similarity
        The similarity with its bandwidths.
    x : Points
        n points.
    loss : LocalLoss
        `SquaredError.of(y, v)` or `LogLoss(indicators, v)`, with targets (n, t) and weights (n,).
    degree : int
        The degree of the local polynomial.
    gradient : bool
        Whether to compute the gradient; otherwise it is empty.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.tuning.local_losses import SquaredError
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> loss = SquaredError.of(np.sin(X), np.ones(30))
    >>> value, slopes = loo_loss(mc.Gaussian(0.2), Points(X), loss)
    >>> round(value, 4), slopes.shape
    (0.0042, (1,))
    """
    y, v = loss.y, loss.v
    theta = similarity.theta
    by_moments = gradient and isinstance(similarity, Radial) and len(theta) == np.size(similarity.sigma) and _few(x)
    if by_moments and type(similarity) is Gaussian:
        centre = v @ y / v.sum()
        V = np.concatenate([v[:, None], v[:, None] * (y - centre)], axis=1)
        tolerance = local.TOLERANCE[degree]
        moments = sums(similarity, x, V, degree=2 * degree + 2, exclude=True, tolerance=tolerance)
        lower = Sums(moments.log_scale, moments.totals[:, : len(exponents(x.vectors().shape[1], 2 * degree))])
        fit = local.solved(lower, x.vectors().shape[1], degree, y.shape[1])
        if fit.alone.any():
            fit = local.fit(similarity, x, y, v, degree=degree, exclude=True)
        else:
            fit.coef[:, 0] += centre
        value, G = loss(fit.values)
        return value, _by_moments(similarity, fit, moments.totals, centre, G, degree)
    fit = local.fit(similarity, x, y, v, degree=degree, exclude=True)
    value, G = loss(fit.values)
    if not gradient or not len(theta):
        return value, np.zeros(len(theta))
    if by_moments:
        centre = v @ y / v.sum()
        V = np.concatenate([v[:, None], v[:, None] * (y - centre)], axis=1)
        slope = _Slope(similarity.sigma, similarity)  # type: ignore[attr-defined]
        moments = sums(slope, x, V, degree=2 * degree + 2, exclude=True, tolerance=local.TOLERANCE[degree])
        finite = np.isfinite(moments.log_scale) & ~fit.alone
        with np.errstate(over="ignore"):
            unit = np.where(finite, np.exp(moments.log_scale - fit.log_scale), 0.0)
        totals = moments.totals * np.minimum(unit, 1e300)[:, None, None]
        return value, _by_moments(similarity, fit, totals, centre, G, degree)
    return value, _by_tiles(similarity, x, y, v, fit, G, degree)


def _few(x: Points) -> bool:
    X = x.vectors()
    return not sp.issparse(X) and X.shape[1] <= BY_MOMENTS


def _by_moments(similarity: Any, fit: local.LocalFit, totals: Float, centre: Float, G: Float, degree: int) -> Float:
    """Σᵢ Gᵢ ∂f₋ᵢ/∂log hₖ from all moments up to degree 2p + 2 of ∂w/∂log h (or of w itself, for a Gaussian)."""
    d = {len(exponents(d, 2 * degree + 2)): d for d in range(1, BY_MOMENTS + 1)}[totals.shape[1]]
    b = fit.coef.copy()
    b[:, 0] -= centre
    b[fit.alone] = 0.0
    a = np.where(fit.alone[:, None], 0.0, fit.dual)
    slopes = np.empty(d)
    for k in range(d):
        shift = 2 * (np.arange(d) == k)
        at = local.pairs(d, degree, shift)
        change = totals[:, at[0], 1:] - np.einsum("mab,mbt->mat", totals[:, at, 0], b)
        slopes[k] = np.einsum("mt,ma,mat->", G, a, change)
    return slopes if np.ndim(similarity.sigma) else np.array([slopes.sum()])


def _by_tiles(
    similarity: Similarity, x: Points, y: Float, v: Float, fit: local.LocalFit, G: Float, degree: int
) -> Float:
    """Σᵢⱼ Mᵢⱼ ∂w(xᵢ, xⱼ)/∂theta with Mᵢⱼ = vⱼ (aᵢᵀφᵢⱼ) Σ_t Gᵢₜ (yⱼₜ − bᵢₜᵀφᵢⱼ), without moments, for any similarity."""
    pair = Pair(x, None, np.float64, shared=len(similarity.leaves) > 1)
    powers = exponents(local.columns_of(x, degree), degree)
    usable = ~fit.alone & (fit.log_scale > -600)
    with np.errstate(over="ignore"):
        a = np.where(usable[:, None], fit.dual * np.exp(-np.where(usable, fit.log_scale, 0.0))[:, None], 0.0)
    g = np.einsum("mt,mat->ma", G, fit.coef)
    totals = threads.Totals((len(similarity.theta),))

    def work(block: Block, share: int) -> None:
        r, c = block.rows, block.cols
        left, right = np.zeros(block.shape), G[r] @ y[c].T
        if degree:
            z, X = uncentred(block)
            sigma = np.broadcast_to(unit_of(similarity), X.shape[1:])
            u = [(X[:, k] - z[:, k, None]) / s for k, s in enumerate(sigma)]
        for p, alpha in enumerate(powers):
            phi: Any = 1.0
            for k, e in enumerate(alpha):
                phi = phi * u[k] ** int(e) if e else phi
            left += a[r, p, None] * phi
            right -= g[r, p, None] * phi
        left *= right
        left *= v[c]
        itself = np.arange(max(r.start, c.start), min(r.stop, c.stop))
        left[itself - r.start, itself - c.start] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            totals[share] += similarity.tile_gradient(block, left)

    tiling.each(pair, work, triangle=False)
    return np.nan_to_num(totals.sum())


# --- the search -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BandwidthCriterion(Criterion):
    """The logarithm of the leave-one-out loss, because relative changes matter, by coordinates p of a similarity.

    Attributes
    ----------
    similarity
        The similarity whose free parameters are searched; `at(p)` has the coordinates p.
    points, loss, degree : Points, LocalLoss, int
        As in `loo_loss`.
    common : bool
        Whether there is one coordinate, a factor of all parameters.
    start, low, high : array
        Coordinates to begin with, and their bounds.
    """

    similarity: Any
    points: Points
    loss: LocalLoss
    degree: int
    common: bool
    start: Float
    low: Float
    high: Float

    @classmethod
    def of(cls, similarity: Any, x: Points, loss: LocalLoss, degree: int, common: bool) -> BandwidthCriterion:
        theta, bounds = similarity.theta, similarity.bounds
        if not len(theta):
            raise InvalidInput(
                "bandwidth='loo' needs a similarity with free parameters",
                got=repr(similarity),
                advice="Pass a similarity such as mc.Gaussian(), or leave `bandwidth` out.",
            )
        if isinstance(similarity, ByWidth):
            X = x.vectors()
            spread = 1.0 if sp.issparse(X) else np.ptp(X.astype(np.float64), axis=0)
            unit = np.log(np.where(spread > 0, spread, 1.0))
            unit = np.broadcast_to(unit if len(theta) > 1 else np.max(unit), theta.shape)
            if sp.issparse(X):
                unit = theta
            bounds = np.stack([unit + math.log(NARROWEST), unit + math.log(WIDEST)], axis=1)
        if common:
            # one factor of all bandwidths
            apart = bounds - theta[:, None]
            low, high = np.array([apart[:, 0].min()]), np.array([apart[:, 1].max()])
            return cls(similarity, x, loss, degree, True, np.zeros(1), low, high)
        low, high = bounds.T
        return cls(similarity, x, loss, degree, False, np.clip(theta, low, high), low, high)

    def sample(self, rows: NDArray[np.int64]) -> BandwidthCriterion:
        """The criterion on some of the rows."""
        return replace(self, points=self.points.take(rows), loss=self.loss.take(rows))

    @property
    def measure(self) -> Measure:
        return LOO_LOSS

    @property
    def names(self) -> list[str]:
        return ["factor"] if self.common else list(self.similarity.parameter_names)

    def at(self, p: Float) -> Any:
        """The similarity with these coordinates."""
        return self.similarity.with_theta(self.similarity.theta + p if self.common else p)

    @property
    def floor(self) -> float:
        """The size of rounding errors of the loss."""
        return 1e-24 * float(np.mean(self.loss.y**2)) + 1e-300

    def alone(self, x: Float) -> float:
        loss = loo_loss(self.at(x), self.points, self.loss, degree=self.degree, gradient=False)[0]
        return math.log(loss + self.floor)

    def __call__(self, x: Float) -> Evaluation:
        value, gradient = loo_loss(self.at(x), self.points, self.loss, degree=self.degree)
        gradient = np.array([gradient.sum()]) if self.common else gradient
        return Evaluation(x, math.log(value + self.floor), gradient / (value + self.floor))

    def score(self, value: float) -> float:
        return math.exp(value)

    def for_rows(self, p: Float, before: int, after: int) -> Float:
        """Coordinates of widths that are the best on `before` rows, for `after` rows: less where there are more.

        Columns whose width is at its upper bound do not count: they stay there.
        """
        shrink = math.log(before / after) / (4 * (self.degree // 2) + 4 + len(p))
        return np.where(p < self.high - 0.5, np.clip(p + shrink, self.low, self.high), p)

    def starts(self, search: GradientSearch) -> list[Float]:
        """The best of: local minima over multiples of the start, and starts without or with only one column."""
        grid = [np.clip(self.start + s, self.low, self.high) for s in np.log(FACTORS)]
        values = np.array([search.alone(p) for p in grid])
        padded = np.concatenate([[np.inf], values, [np.inf]])
        minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
        best = grid[int(minima[np.argmin(values[minima])])]
        starts = [(float(values[i]), grid[i]) for i in minima]
        if 1 < len(self.start) <= SINGLE_COLUMNS and isinstance(self.similarity, ByWidth):
            wide = self.high - math.log(5.0)
            for k in range(len(self.start)):
                only = np.arange(len(best)) == k
                alone = [np.where(only, self.high + math.log(s / WIDEST), wide) for s in ALONE]
                starts += [(search.alone(p), p) for p in (np.where(only, wide, best), *alone)]
        starts.sort(key=lambda start: start[0])
        return [p for _, p in starts[:STARTS]]


def for_rows(similarity: Any, x: Points, before: int, after: int, degree: int) -> Any:
    """A similarity whose bandwidths are the best on `before` rows of x, with bandwidths for `after` of them.

    >>> import numpy as np, mercer as mc
    >>> x = Points(np.linspace(0, 1, 50)[:, None])
    >>> round(for_rows(mc.Gaussian(0.1), x, 100, 3200, degree=1).sigma, 6)
    0.05
    """
    criterion = BandwidthCriterion.of(similarity, x, SquaredError.of(np.zeros((x.n, 1)), np.ones(x.n)), degree, False)
    return criterion.at(criterion.for_rows(similarity.theta, before, after))


def evaluations(d: int) -> int:
    """The largest number of evaluations of the loss that the search on a sample of d columns needs."""
    alone = len(FACTORS) + (d * (1 + len(ALONE)) if 1 < d <= SINGLE_COLUMNS else 0)
    return alone + STARTS * LIMIT


def loo_bandwidth(
    similarity: Similarity, x: Points, loss: LocalLoss, *, degree: int = 0, common: bool = False
) -> Tuned:
    """The similarity with the bandwidths of least leave-one-out loss, and that loss.

    Logarithms are searched, so that bandwidths are positive: multiples of the start first, then along the gradient.
    With many rows the search begins on a sample. Its bandwidths, which shrink like n^(−1/(4⌊p/2⌋ + 4 + d)), are the
    start on all rows, where a few quasi-Newton steps remain.

    Parameters
    ----------
    similarity : Similarity
        A similarity with free parameters, which are the start.
    x, loss, degree : Points, LocalLoss, int
        As in `loo_loss`.
    common : bool
        Whether all parameters are multiplied by one factor.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.tuning.local_losses import SquaredError
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(200, 1))
    >>> loss = SquaredError.of(np.sin(X) + 0.3 * rng.normal(size=X.shape), np.ones(200))
    >>> tuned = loo_bandwidth(mc.Gaussian(1.0), Points(X), loss)
    >>> bool(0.1 < tuned.kernel.sigma < 0.5), bool(0.08 < tuned.value < 0.12)
    (True, True)
    """
    began = time.perf_counter()
    if x.n < 2:
        return Tuned({"kernel": similarity}, Trials.of(LOO_LOSS, [Trial({}, 0.0)]), 0, 0.0)
    whole = BandwidthCriterion.of(similarity, x, loss, degree, common)
    search = GradientSearch(whole)
    if x.n <= SAMPLE:
        at = search.descend(whole.starts(search), precision=PRECISION, limit=LIMIT).at
    else:
        few = whole.sample(np.sort(np.random.default_rng(0).choice(x.n, SAMPLE, replace=False)))
        some = GradientSearch(few)
        at = some.descend(few.starts(some), precision=PRECISION, limit=LIMIT).at
        H, p = curvature(few, at, STEP, LEAST), at.x
        if isinstance(similarity, ByWidth):
            p = whole.for_rows(p, SAMPLE, x.n)
        at = search.descend([p], precision=PRECISION, limit=LIMIT_ALL, curvature=H).at
    return Tuned(
        {"kernel": whole.at(at.x)},
        search.trials(at.x, at.value),
        evaluations=search.evaluations,
        seconds=time.perf_counter() - began,
    )


class _Slope(Radial, Weight):  # type: ignore[override]
    """−2φ'(u) of a radial similarity φ(u): times uₖ² it is the derivative by the logarithm of bandwidth k."""

    sigma: Any = positive(1.0, vector=True)
    of: Any = None

    def _profile(self, sqdist: Array, sigma: float) -> None:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            u = np.minimum(sqdist * (1.0 / sigma**2), 1e200)
            sqdist[...] = np.where(u > 0, -2.0 * self.of._slope(u), 0.0)

    def _slope(self, u: Array) -> Array:
        raise TypeError("The derivative of a slope needs φ'', which a profile does not have; use only its values.")
