"""The distribution function of a Parzen density on a line, and its inverse.

F(q) = Σᵢ wᵢ C((q − xᵢ)/hᵢ), C the distribution function of the kernel. Points out of reach count whole or not at all;
many points under one Gaussian width are gathered in cells, whose moments give F to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.kernels.vectors.radial import Gaussian
from mercer.models.density.cells import TAIL, CellMixtures, Cells, level
from mercer.problems.root_finding import find_roots
from mercer.smoothing import density
from mercer.validation import check_numbers

Float = NDArray[np.float64]

DIRECT = 4096
"""Up to this many points are summed one by one."""


class Distribution:
    """F of a mixture of kernels on a line.

    x, w, h : (n,) centres, weights that sum to one, and widths (all the same, or one each).
    """

    def __init__(self, similarity: Any, x: Float, w: Float, h: Float) -> None:
        self.profile = density.on_a_line(similarity)
        order = np.argsort(x, kind="stable")
        self.x, self.w, self.h = x[order], w[order], h[order]
        self.single = bool((h == h[0]).all())
        self.before = np.concatenate([[0.0], np.cumsum(self.w)])
        self.cells: CellMixtures | None = None
        if self.single and len(x) > DIRECT and isinstance(similarity, Gaussian):
            self.cells = Cells(self.x, float(self.h[0])).mixtures(self.w[None])

    def cdf(self, q: Float) -> Float:
        """F at q, shape (m,): by cells, and in the lower tail point by point."""
        values, low = np.empty(len(q)), np.arange(len(q))
        if self.cells is not None:
            values = self.cells.cdf(np.zeros(len(q), dtype=np.int64), q)
            low = np.flatnonzero(values < TAIL)
        low = low[np.argsort(q[low], kind="stable")]
        values[low] = self._point_by_point(q[low])
        return np.clip(values, 0.0, 1.0)

    def quantile(self, p: Float) -> Float:
        """The inverse of F at p, shape (m,)."""
        with np.errstate(invalid="ignore"):
            u = self.profile.quantile(p)
        ends = np.where(p <= 0, (self.x - self.h).min(), (self.x + self.h).max())
        q = ends if np.isfinite(u).all() else u.copy()
        inside = (p > 0) & (p < 1)
        p, u = p[inside], u[inside]
        # F of the mixture lies between the distribution functions of its kernels: so does the quantile.
        if self.single:
            low, high = self.x[0] + self.h[0] * u, self.x[-1] + self.h[0] * u
        else:
            low = np.array([(self.x + self.h * v).min() for v in u])
            high = np.array([(self.x + self.h * v).max() for v in u])
        q[inside] = find_roots(lambda t, rows: level(self.cdf(t), p[rows]), low, high, atol=0.0, rtol=4e-16)
        return q

    def _point_by_point(self, q: Float) -> Float:
        """F without cells, accurate relative to F itself, for queries in order."""
        values = np.empty(len(q))
        reach = self.profile.reach * float(self.h.max())
        for part in threads.spans(len(q), max(1, min(256, memory.HELD // len(self.x)))):
            at = q[part]
            first = int(np.searchsorted(self.x, at[0] - reach))
            last = int(np.searchsorted(self.x, at[-1] + reach, side="right"))
            with np.errstate(over="ignore"):
                u = (at[:, None] - self.x[first:last]) / self.h[first:last]
            values[part] = self.before[first] + self.profile.cdf(u) @ self.w[first:last]
        return values


def numbers_of(values: Any, name: str) -> Float:
    """The values as float64 of any shape; NaN is refused."""
    return check_numbers(
        values, f"`{name}` must hold numbers", infinite=True, advice="Remove missing values (NaN) first."
    )
