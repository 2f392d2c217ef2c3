"""One mixture for every query: the weights of the rows given x, and a kernel around the target of each row.

p(t | x) = Σₙ Wₙ(x) K(t − rₙ), the same for a product of kernels and, with residual targets r, for a full covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mercer import threads
from mercer.data.points import Points
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.kernels.vectors.radial import Gaussian
from mercer.models.density.parzen_line import CELL, MOMENTS, REACH, TAIL, gap_to
from mercer.smoothing import density
from mercer.smoothing.local_polynomial import narrowed
from mercer.smoothing.sums.far import remote_weights

Float = NDArray[np.float64]

Law = Callable[[NDArray[np.int64], Float], tuple[Float, Float]]

ENTRIES = 2**22
"""Weights held at a time."""
NEGLIGIBLE = 1e-17
"""Weights below this share of the probability that is looked for are left out of the search."""
FAR = -1e5
"""Logarithms of weights whose differences have few digits left."""
FARTHEST = 1e153
"""In units of the kernel's width: the square of it is a float."""


def spans(m: int, n: int) -> list[slice]:
    """Groups of queries whose weights on n points fit in memory."""
    return threads.spans(m, max(1, min(512, ENTRIES // n)))


def weight_rows(similarity: Similarity, x: Points, w: Float, z: Points, rows: slice) -> Float:
    """Wₙ(z) for some queries, shape (rows, n): non-negative, each row sums to one.

    Far from all data the nearest points decide, also for compact kernels, which do not reach them; if nothing is near
    (a kernel on objects that is 0), all points have equal weights.
    """
    W = _log_weights(similarity, x, z, rows)
    lost = np.flatnonzero(~np.isfinite(W.max(axis=1)))
    narrow = narrowed(similarity)
    if len(lost):
        W[lost] = 0.0
        if narrow is not None:
            near = z.take(np.arange(z.n)[rows][lost])
            logs = _log_weights(narrow, x, near, slice(0, near.n))
            W[lost] = np.where(np.isfinite(logs.max(axis=1, keepdims=True)), logs, 0.0)
    with np.errstate(divide="ignore"):
        W += np.log(w)
    W -= W.max(axis=1, keepdims=True)
    np.exp(W, out=W)
    W /= W.sum(axis=1, keepdims=True)
    return W


def _log_weights(similarity: Any, x: Points, z: Points, rows: slice) -> Float:
    """log k(z, xₙ) for some queries, up to a constant of the row: shape (rows, n)."""
    pair = Pair(z, x, np.float64, shared=True)
    space = tiling.workspace()
    mark = space.used
    try:
        block = pair.block(rows, slice(0, x.n), space)
        W = np.empty(block.shape)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            similarity.log_tile(block, W)
    finally:
        space.release(mark)
    if not similarity.tags.nonnegative:
        W[np.isnan(W)] = -np.inf  # a weight that is 0 up to rounding
    if type(similarity) is Gaussian:
        X, Z = (np.asarray(side.vectors(), dtype=np.float64) for side in (x, z))
        sigma = np.broadcast_to(np.asarray(similarity.sigma, dtype=np.float64), X.shape[1:])
        for i in np.flatnonzero(~(W.max(axis=1) >= FAR)):
            W[i] = remote_weights(X, Z[rows][i], sigma)[1]
    return W


class Mixture:
    """Kernels around residual targets on a line: the distribution of one target.

    similarity : the kernel of t; r : (n,) centres; h : its width.
    """

    def __init__(self, similarity: Any, r: Float, h: float) -> None:
        self.similarity, self.r, self.h = similarity, r, h
        self.profile = density.on_a_line(similarity)
        self.log_mass = self.profile.log_mass(1) + float(np.log(h))

    def log_kernel(self, t: Float) -> Float:
        """log K(t − rₙ), shape (len(t), n)."""
        reach = FARTHEST * self.h
        t = np.clip(t, self.r.min() - reach, self.r.max() + reach)
        return self.profile.log_profile((t[:, None] - self.r) / self.h) - self.log_mass

    def cdf(self, W: Float, t: Float) -> Float:
        """F at t[j] under the weights W[j], shape (m,)."""
        with np.errstate(over="ignore"):
            u = (t[:, None] - self.r) / self.h
        return np.clip(np.einsum("ij,ij->i", W, self.profile.cdf(u)), 0.0, 1.0)

    def quantiles(self, W: Float, p: Float) -> Float:
        """The t with F(t) = p under every row of W, shape (m, len(p))."""
        kept = np.flatnonzero(W.max(axis=0) > NEGLIGIBLE * float(p.min()))
        kept = kept[np.argsort(self.r[kept])]
        W, r = W[:, kept], self.r[kept]
        ends = np.cumsum(W, axis=1)
        law, direct = self._law(W, r), self._point_by_point(W, r)
        found = np.empty((len(W), len(p)))
        for j, share in enumerate(p):
            first = r[np.minimum((ends < share).sum(axis=1), len(r) - 1)]
            u = float(self.profile.quantile(np.array(share)))
            # F of the mixture lies between the kernels' own: so does the quantile.
            of = direct if share < TAIL else law
            found[:, j] = _invert(of, float(share), first, r[0] + self.h * u, r[-1] + self.h * u, self.h)
        return found

    def _law(self, W: Float, r: Float) -> Law:
        """F and its density for some of the rows, at one t each; r is sorted."""
        cells = np.floor((r - r[0]) / (CELL * self.h))
        starts = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
        if isinstance(self.similarity, Gaussian) and 4 * MOMENTS * len(starts) < len(r):
            return _law_of_cells(W, r, r[0] + (cells[starts] + 0.5) * CELL * self.h, starts, self.h)
        return self._point_by_point(W, r)

    def _point_by_point(self, W: Float, r: Float) -> Law:
        """The same without cells, accurate relative to F itself."""

        def law(rows: NDArray[np.int64], t: Float) -> tuple[Float, Float]:
            u = (t[:, None] - r) / self.h
            weights = W[rows]
            F = np.einsum("ij,ij->i", weights, self.profile.cdf(u))
            f = np.einsum("ij,ij->i", weights, np.exp(self.profile.log_profile(u) - self.log_mass))
            return F, f

        return law


def _law_of_cells(W: Float, r: Float, centres: Float, starts: NDArray[np.int64], h: float) -> Law:
    """F and its density from moments of the points of a cell: Φ(u − ε) = Φ(u) − φ(u) Σ_{k≥1} εᵏ/k! He_{k−1}(u)."""
    e = (r - centres.repeat(np.diff(np.append(starts, len(r))))) / h
    term, moments = W.copy(), []
    for k in range(MOMENTS):
        moments.append(np.add.reduceat(term, starts, axis=1))
        term *= e / (k + 1)

    def law(rows: NDArray[np.int64], t: Float) -> tuple[Float, Float]:
        u = np.clip((t[:, None] - centres) / h, -REACH - 1, REACH + 1)
        F, f = np.zeros_like(u), np.zeros_like(u)
        before, hermite = np.zeros_like(u), np.ones_like(u)
        for k in range(MOMENTS):
            m = moments[k][rows]
            f += m * hermite
            F += m * before
            before, hermite = hermite, u * hermite - k * before
        phi = np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi)
        return (moments[0][rows] * ndtr(u) - phi * F).sum(axis=1), (phi * f).sum(axis=1) / h

    return law


def _invert(law: Law, p: float, first: Float, low: float, high: float, h: float) -> Float:
    """F(t) = p for every row by Newton's steps from `first` that stay within a bracket."""
    t = np.clip(first, low, high)
    if not low < high:
        return t
    below, above = np.full(len(t), low), np.full(len(t), high)
    active = np.arange(len(t))
    for _ in range(200):
        at = t[active]
        F, slope = law(active, at)
        gap = gap_to(F, p)
        below[active] = np.where(gap <= 0, at, below[active])
        above[active] = np.where(gap >= 0, at, above[active])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = at - gap / slope
        room = (above - below)[active]
        usable = (step > below[active]) & (step < above[active]) & (np.abs(step - at) < 0.5 * room)
        t[active] = np.where(gap == 0, at, np.where(usable, step, 0.5 * (below[active] + above[active])))
        size = 1e-13 * h + 4e-16 * np.maximum(np.abs(below[active]), np.abs(above[active]))
        active = active[(room > size) & (np.abs(t[active] - at) > size) & (gap != 0)]
        if not len(active):
            break
    return t
