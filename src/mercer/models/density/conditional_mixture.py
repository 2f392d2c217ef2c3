"""One mixture for every query: the weights of the rows given x, and a kernel around the target of each row.

p(t | x) = Σₙ Wₙ(x) K(t − rₙ), the same for a product of kernels and, with residual targets r, for a full covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Points
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.kernels.vectors.radial import Gaussian
from mercer.models.density.cells import MOMENTS, TAIL, Cells, level
from mercer.problems.root_finding import find_roots
from mercer.smoothing import density
from mercer.smoothing.local_polynomial import narrowed
from mercer.smoothing.sums.far import remote_weights

Float = NDArray[np.float64]

Law = Callable[[NDArray[np.int64], Float], Float]
"""F of the mixtures with these numbers, at one t each."""

NEGLIGIBLE = 1e-17
"""Weights below this share of the probability that is looked for are left out of the search."""
FAR = -1e5
"""Logarithms of weights whose differences have few digits left."""
FARTHEST = 1e153
"""The largest distance that is computed, in units of the kernel's width: its square is a finite float."""


def spans(m: int, n: int) -> list[slice]:
    """Groups of queries whose weights on n points fit in memory."""
    return threads.spans(m, max(1, min(512, memory.HELD // n)))


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
        X, Z = x.dense(), z.dense()
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
        exact = self._point_by_point(W, r)
        cells = self._by_cells(W, r) or exact
        t = np.empty((len(W), len(p)))
        for j, share in enumerate(p):
            law = exact if share < TAIL else cells

            def beyond(at: Float, rows: NDArray[np.int64], law: Law = law, share: float = share) -> Float:
                return level(law(rows, at), share)

            # F of the mixture lies between the distribution functions of its kernels: so does the quantile.
            u = float(self.profile.quantile(np.array(share)))
            low, high = np.full(len(W), r[0] + self.h * u), np.full(len(W), r[-1] + self.h * u)
            t[:, j] = find_roots(beyond, low, high, atol=1e-13 * self.h, rtol=4e-16)
        return t

    def _by_cells(self, W: Float, r: Float) -> Law | None:
        """F by cells, where these are few enough to save work; r is sorted."""
        if not isinstance(self.similarity, Gaussian):
            return None
        cells = Cells(r, self.h)
        return cells.mixtures(W).cdf if 4 * MOMENTS * len(cells) < len(r) else None

    def _point_by_point(self, W: Float, r: Float) -> Law:
        """The same without cells, accurate relative to F itself."""

        def law(rows: NDArray[np.int64], t: Float) -> Float:
            return np.asarray(np.einsum("ij,ij->i", W[rows], self.profile.cdf((t[:, None] - r) / self.h)))

        return law
