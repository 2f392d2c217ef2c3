"""Mixtures of Gaussians on a line whose points are many for a width: their distribution function from cells.

With ε the distance of a point from the centre of its cell, in widths, and u that of the query,

    Φ(u − ε) = Φ(u) − φ(u) Σ_{k≥1} εᵏ/k! He_{k−1}(u),

so that the moments Σ w εᵏ/k! of a cell stand for all of its points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mercer import memory, threads

Float = NDArray[np.float64]

CELL, MOMENTS, REACH = 0.5, 14, 9.0
"""The width of a cell, its moments, and how far it acts, in widths of the kernel: the error is below 1e-14."""
TAIL = 1e-4
"""Below this probability cells are too coarse: their error is small compared with 1, but not with the probability."""


def level(F: Float, p: Float | float) -> Float:
    """F − p, or below TAIL log(F/p): zero at the quantile, and nowhere as flat as F is in its tail."""
    with np.errstate(divide="ignore"):
        return np.where(np.asarray(p) < TAIL, np.log(F) - np.log(p), F - p)


class Cells:
    """Points in order on a line, gathered in cells of CELL widths.

    x : (n,) in order; h : the width of the Gaussian around each.
    """

    def __init__(self, x: Float, h: float) -> None:
        self.h = h
        numbers = np.floor((x - x[0]) / (CELL * h))
        self.starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        self.centres = x[0] + (numbers[self.starts] + 0.5) * CELL * h
        self.offsets = (x - self.centres.repeat(np.diff(np.append(self.starts, len(x))))) / h

    def __len__(self) -> int:
        return len(self.starts)

    def mixtures(self, W: Float) -> CellMixtures:
        """One mixture of the Gaussians for each row of weights, shape (m, n)."""
        return CellMixtures(self, W)


class CellMixtures:
    """The moments of the weights of each mixture in each cell."""

    def __init__(self, cells: Cells, W: Float) -> None:
        self.cells = cells
        term, self.moments = W.copy(), np.empty((MOMENTS, len(W), len(cells)))
        for k in range(MOMENTS):
            self.moments[k] = np.add.reduceat(term, cells.starts, axis=1)
            term *= cells.offsets / (k + 1)
        self.before = np.zeros((len(W), len(cells) + 1))
        np.cumsum(self.moments[0], axis=1, out=self.before[:, 1:])

    def cdf(self, rows: NDArray[np.int64], t: Float) -> Float:
        """F at t[j] of the mixture rows[j], shape (len(t),)."""
        h, centres, values = self.cells.h, self.cells.centres, np.empty(len(t))
        widest = int(2 * REACH / CELL) + 3
        for part in threads.spans(len(t), max(1, memory.CACHED // widest)):
            at, of = t[part], rows[part]
            first = np.searchsorted(centres, at - REACH * h)
            last = np.searchsorted(centres, at + REACH * h, side="right")
            near = first[:, None] + np.arange(max(1, int((last - first).max())))
            inside = near < last[:, None]
            near = np.minimum(near, len(centres) - 1)
            u = np.clip((at[:, None] - centres[near]) / h, -REACH - 1, REACH + 1)
            series, previous, hermite = np.zeros_like(u), np.zeros_like(u), np.ones_like(u)
            for k in range(1, MOMENTS):
                series += self.moments[k][of[:, None], near] * hermite
                previous, hermite = hermite, u * hermite - (k - 1) * previous
            phi = np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi)
            terms = np.where(inside, self.moments[0][of[:, None], near] * ndtr(u) - phi * series, 0.0)
            values[part] = self.before[of, first] + terms.sum(axis=1)
        return values
