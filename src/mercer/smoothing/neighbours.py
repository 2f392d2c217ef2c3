"""Distances to the k-th nearest neighbour: bandwidths that follow the density of the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.vectors.radial import Gaussian
from mercer.smoothing import costs

Float = NDArray[np.float64]

SLACK = 1e-5
"""A share of the rows is rounded up to a whole number if it lacks at most this, as in R's loess."""
CLOSEST = 1e-9
"""The least distance, in units of σ, used if neighbours coincide."""


def neighbour_distances(
    x: Points, sigma: Any, neighbors: Any, z: Points | None = None, *, v: Float | None = None, exclude: bool = False
) -> Float:
    """‖(xᵢ − z)/σ‖ of the k-th nearest row xᵢ for every query, (m,).

    Parameters
    ----------
    x : Points
        n points.
    sigma
        The units of the columns.
    neighbors
        k, or a share of the rows as a float: k = ⌊share·n⌋, at least 1, as in R's loess.
    z : Points or None
        m queries; by default the points themselves, each its own nearest neighbour unless `exclude`.
    v : Float or None
        (n,) the number of times that each row counts, by default once.

    Examples
    --------
    >>> neighbour_distances(Points(np.arange(5.0)[:, None]), 1.0, 2, Points(np.array([[0.0], [2.4]])))
    array([1. , 0.6])
    """
    X = x.vectors()
    n, d = X.shape
    Z = X if z is None else z.vectors()
    A, B = (side.astype(np.float64) / np.asarray(sigma, dtype=np.float64) for side in (X, Z))
    if v is None:
        others = n - 1 if exclude else n
        if others < 1:
            raise InvalidInput(
                "Leaving a row out must leave another one", got="one row", advice="Fit on two or more rows."
            )
        k = min(max(1, _count(neighbors, others)), others) + (1 if exclude else 0)  # the tree crashes at 0
        if d == 1:
            distances = _on_a_line(A[:, 0], B[:, 0], k)
        elif k <= costs.TREE_NEIGHBOURS:
            distances = np.asarray(cKDTree(A).query(B, [k], workers=threads.n_threads())[0])[:, 0]
        else:
            distances = _by_all(A, B, lambda D, rows: np.partition(D, k - 1, axis=1)[:, k - 1])
    else:
        distances = _by_all(A, B, lambda D, rows: _weighted(D, rows, v, neighbors, exclude))
    return _outwards(np.maximum(distances, CLOSEST), A, B)


def _outwards(distances: Float, A: Float, B: Float) -> Float:
    """Distances increased by a bound on their rounding, so that they do reach the k-th row.

    A squared distance is a difference of squares, each wrong by a few units of rounding.
    """
    centre = A.mean(axis=0)
    size = np.square(A - centre).sum(axis=1).max() + np.square(B - centre).sum(axis=1)
    rounding = 8 * np.finfo(np.float64).eps * size / np.square(distances)
    return distances * (1 + np.clip(rounding, 1e-12, 1e-6))


def _count(neighbors: Any, n: float) -> int:
    """k for a share (a float) or a count of n rows."""
    share = isinstance(neighbors, (float, np.floating))
    return max(1, math.floor(neighbors * n + SLACK)) if share else int(neighbors)


def _on_a_line(x: Float, z: Float, k: int) -> Float:
    """The k nearest are a window of the sorted points: the first whose middle is beyond z, or the one before it."""
    x = np.sort(x)
    low, high = x[: len(x) - k + 1], x[k - 1 :]
    at = np.searchsorted(low + high, 2 * z)
    best = np.full(len(z), np.inf)
    for i in (np.maximum(at - 1, 0), np.minimum(at, len(low) - 1)):
        best = np.minimum(best, np.maximum(z - low[i], high[i] - z))
    return best


def _by_all(A: Float, B: Float, reduce: Any) -> Float:
    """A reduction of the distances between every row of B and all rows of A."""
    distances = np.empty(len(B))
    pair = Gaussian(1.0).pair(B, A, np.float64)

    def work(rows: slice, share: int) -> None:
        D = np.empty((rows.stop - rows.start, len(A)))
        pair.block(rows, slice(0, len(A))).sqdist(D)
        np.sqrt(np.maximum(D, 0.0, out=D), out=D)
        distances[rows] = reduce(D, rows)

    threads.stripes(len(B), work, rows=32, columns=len(A))
    return distances


def _weighted(D: Float, rows: slice, v: Float, neighbors: Any, exclude: bool) -> Float:
    """The distance within which the rows have the total weight k."""
    counts = np.broadcast_to(v, D.shape)
    if exclude:
        counts = counts.copy()
        counts[np.arange(len(D)), np.arange(rows.start, rows.stop)] = 0.0
    order = np.argsort(D, axis=1)
    within = np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)
    weight = np.array([min(_count(neighbors, w), w) for w in within[:, -1].tolist()])
    at = (within < weight[:, None] * (1 - 1e-12)).sum(axis=1)
    return np.take_along_axis(np.take_along_axis(D, order, axis=1), at[:, None], axis=1)[:, 0]
