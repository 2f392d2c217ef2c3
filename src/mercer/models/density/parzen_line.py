"""The distribution function of a Parzen density on a line, and its inverse.

F(q) = Σᵢ wᵢ C((q − xᵢ)/hᵢ), C the distribution function of the kernel. Points out of reach count whole or not at all;
many points under one Gaussian width are put together in cells, whose moments give F to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mercer.errors import InvalidInput
from mercer.kernels.vectors.radial import Gaussian
from mercer.models.base import shortened
from mercer.smoothing import density

Float = NDArray[np.float64]

DIRECT = 4096
"""Up to so many points they are summed one by one."""
CELL, MOMENTS, REACH = 0.5, 14, 9.0
"""The width of a cell, its moments, and how far it acts, in widths of the kernel: the error is below 1e-14."""
TAIL = 1e-4
"""Below this probability cells are too coarse (their error is small beside one, not beside it), and log F is nearly a
parabola while F is nearly flat."""
ENTRIES = 2**21
"""Numbers held at a time."""


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
        self.cells = self.single and len(x) > DIRECT and isinstance(similarity, Gaussian)
        if self.cells:
            self._gather()

    def cdf(self, q: Float) -> Float:
        """F at q, shape (m,)."""
        order = np.argsort(q, kind="stable")
        values = np.empty(len(q))
        values[order] = self._at(q[order])[0] if self.cells else self._direct(q[order])[0]
        return np.clip(values, 0.0, 1.0)

    def quantile(self, p: Float, pdf: Callable[[Float], Float]) -> Float:
        """The inverse of F at p, shape (m,), by Newton's steps that stay within a bracket."""
        with np.errstate(invalid="ignore"):
            u = self.profile.quantile(p)
        found = np.where(p <= 0, (self.x - self.h).min(), (self.x + self.h).max()) if np.isfinite(u).all() else u.copy()
        inside = (p > 0) & (p < 1)
        p, u = p[inside], u[inside]
        if not len(p):
            return found
        # F of the mixture lies between the kernels' own: so does the quantile.
        if self.single:
            low, high = self.x[0] + self.h[0] * u, self.x[-1] + self.h[0] * u
        else:
            low = np.array([(self.x + self.h * v).min() for v in u])
            high = np.array([(self.x + self.h * v).max() for v in u])
        q = np.clip(self.x[np.minimum(np.searchsorted(self.before[1:], p), len(self.x) - 1)], low, high)
        active = np.arange(len(p))
        for _ in range(200):
            at = q[active]
            F, slope = self._at(at) if self.cells else (self.cdf(at), pdf(at))
            gap = gap_to(F, p[active])
            low[active] = np.where(gap <= 0, at, low[active])
            high[active] = np.where(gap >= 0, at, high[active])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = at - gap / slope
            middle = 0.5 * (low[active] + high[active])
            usable = (step > low[active]) & (step < high[active])
            # a step that does not shrink the bracket's half is followed by one that does
            q[active] = np.where(usable & (np.abs(step - at) < 0.5 * (high - low)[active]), step, middle)
            size = 4e-16 * np.maximum(np.abs(low[active]), np.abs(high[active]))
            done = ((high - low)[active] <= size) | (np.abs(q[active] - at) <= size) | (gap == 0)
            q[active] = np.where(gap == 0, at, q[active])
            active = active[~done]
            if not len(active):
                break
        found[inside] = q
        return found

    def _at(self, q: Float) -> tuple[Float, Float]:
        """F and its density by cells, and in the lower tail point by point."""
        F, f = self._by_cells(q)
        low = np.flatnonzero(F < TAIL)
        low = low[np.argsort(q[low], kind="stable")]
        if len(low):
            F[low], f[low] = self._direct(q[low], slopes=True)
        return F, f

    def _direct(self, q: Float, slopes: bool = False) -> tuple[Float, Float]:
        """F point by point, and its density if it is asked for, for queries in order."""
        values, slope = np.empty(len(q)), np.zeros(len(q))
        log_mass = self.profile.log_mass(1)
        n = len(self.x)
        reach = self.profile.reach * float(self.h.max())
        rows = max(1, min(256, ENTRIES // n))
        for start in range(0, len(q), rows):
            part = q[start : start + rows]
            first = int(np.searchsorted(self.x, part[0] - reach))
            last = int(np.searchsorted(self.x, part[-1] + reach, side="right"))
            near = slice(first, last)
            with np.errstate(over="ignore"):
                u = (part[:, None] - self.x[near]) / self.h[near]
            values[start : start + rows] = self.before[first] + self.profile.cdf(u) @ self.w[near]
            if slopes:
                k = np.exp(self.profile.log_profile(u) - log_mass)
                slope[start : start + rows] = k @ (self.w[near] / self.h[near])
        return values, slope

    def _gather(self) -> None:
        h = float(self.h[0])
        numbers = np.floor((self.x - self.x[0]) / (CELL * h))
        starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        self.centres = self.x[0] + (numbers[starts] + 0.5) * CELL * h
        e = (self.x - self.centres.repeat(np.diff(np.append(starts, len(self.x))))) / h
        term, self.moments = self.w.copy(), np.empty((MOMENTS, len(starts)))
        for k in range(MOMENTS):
            self.moments[k] = np.add.reduceat(term, starts)
            term *= e / (k + 1)
        self.passed = np.concatenate([[0.0], np.cumsum(self.moments[0])])

    def _by_cells(self, q: Float) -> tuple[Float, Float]:
        """F and its density: Φ(u − ε) = Φ(u) − φ(u) Σ_{k≥1} εᵏ/k! He_{k−1}(u), summed over the points of a cell."""
        h, values, slopes = float(self.h[0]), np.empty(len(q)), np.empty(len(q))
        wide = int(2 * REACH / CELL) + 3
        for start in range(0, len(q), max(1, ENTRIES // (8 * wide))):
            part = q[start : start + max(1, ENTRIES // (8 * wide))]
            first = np.searchsorted(self.centres, part - REACH * h)
            last = np.searchsorted(self.centres, part + REACH * h, side="right")
            at = first[:, None] + np.arange(max(1, int((last - first).max())))
            inside = at < last[:, None]
            at = np.minimum(at, len(self.centres) - 1)
            u = np.clip((part[:, None] - self.centres[at]) / h, -REACH - 1, REACH + 1)
            F, f = np.zeros_like(u), np.zeros_like(u)
            before, hermite = np.zeros_like(u), np.ones_like(u)
            for k in range(MOMENTS):
                m = self.moments[k][at]
                f += m * hermite
                F += m * before
                before, hermite = hermite, u * hermite - k * before
            phi = np.where(inside, np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi), 0.0)
            terms = np.where(inside, self.moments[0][at] * ndtr(u), 0.0) - phi * F
            values[start : start + len(part)] = self.passed[first] + terms.sum(axis=1)
            slopes[start : start + len(part)] = (phi * f).sum(axis=1) / h
        return values, slopes


def gap_to(F: Float, p: Any) -> Float:
    """F − p, or in the lower tail F log(F/p): over the density it is Newton's step for F = p, or for log F = log p."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithmic = F * np.log(F / p)
    return np.where((p < TAIL) & (F > 0), logarithmic, F - p)


def numbers_of(values: Any, name: str) -> Float:
    """The values as float64 of any shape; NaN is refused."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if np.isnan(numbers).any():
        raise InvalidInput(f"`{name}` must hold numbers", got=shortened(values), advice="Drop the NaN among them.")
    return numbers
