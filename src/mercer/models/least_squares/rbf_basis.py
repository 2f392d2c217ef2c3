"""Radial basis functions: the function, its centres, and coordinates θ in which its penalty is ‖θ‖²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from mercer import gram, memory, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram.centers import choose_centers
from mercer.kernels import costs
from mercer.kernels.base import Kernel, Similarity, Weight
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vectors.splines import ConditionalKernel
from mercer.memory import budget, within
from mercer.models.base import Matrix, resolve_kernel
from mercer.rkhs.tail import Monomials
from mercer.solvers.base import not_psd
from mercer.validation import generator

CENTERS = ("all", "kmeans", "pivoted", "random")
N_CENTERS = 100
"""The default number of centres."""


def basis_function(kernel: Any, points: Points) -> Similarity:
    """The radial function of a parameter: a kernel, a conditionally positive definite function, or a weight."""
    if callable(kernel) and not isinstance(kernel, (type, Similarity)):
        resolved = kernel(points.raw)
        kernel = resolved if isinstance(resolved, (ConditionalKernel, Weight)) else kernel
    if isinstance(kernel, (ConditionalKernel, Weight)):
        return kernel
    return resolve_kernel(kernel, points)


@dataclass(frozen=True, eq=False)
class RadialBasis:
    """φ(‖x − μⱼ‖) around m centres μ, divided by their sum if `normalized`.

    >>> import mercer as mc
    >>> k = mc.Gaussian(1.0)
    >>> RadialBasis(k, k.prepare([[0.0], [1.0]]), normalized=True)(k.prepare([[0.5], [1e6]]))
    array([[0.5, 0.5],
           [0. , 1. ]])
    """

    kernel: Similarity
    centers: Points
    normalized: bool = False

    def __call__(self, points: Points) -> Matrix:
        """The values at n points, shape (n, m). Far from all centres of a normalised basis the nearest one decides."""
        if not self.normalized:
            return self.kernel(points, self.centers, dtype=np.float64)
        pair = self.kernel.pair(points, self.centers, np.float64)
        H = np.empty(pair.shape)

        def work(rows: slice, share: int) -> None:
            block = pair.block(rows, slice(0, pair.shape[1]))
            with np.errstate(over="ignore"):
                self.kernel.log_tile(block, H[rows])
            part = H[rows]
            peak = part.max(axis=1, keepdims=True)
            empty = np.flatnonzero(np.isneginf(peak[:, 0]))
            part -= np.where(np.isneginf(peak), 0.0, peak)
            np.exp(part, out=part)
            if len(empty):  # outside every compact weight
                part[empty, block.sqdist()[empty].argmin(axis=1)] = 1.0
            part /= part.sum(axis=1, keepdims=True)

        threads.stripes(points.n, work, rows=costs.TILE_ROWS)
        return H

    def whitening(self) -> Matrix:
        """B with w = Bθ and wᵀKw = ‖θ‖²; for a conditionally positive definite φ within Σ wⱼ p(μⱼ) = 0."""
        K, m = self.kernel(self.centers, dtype=np.float64), self.centers.n
        N, size = np.eye(m), 0.0
        if isinstance(self.kernel, ConditionalKernel):
            least = Monomials.around(self.centers, self.kernel.order - 1)
            least.require_unisolvent(self.centers)
            P = least(self.centers)
            N = np.linalg.qr(P, mode="complete")[0][:, P.shape[1] :]
            size = float(np.linalg.norm(K))  # the projection of K may be only rounding errors of this size
            K = N.T @ K @ N
        if not len(K):  # as many centres as monomials: only the polynomial is left
            return np.zeros((m, 1))
        values, vectors = np.linalg.eigh(K)
        rounding = len(K) * float(np.finfo(float).eps) * max(size, float(np.abs(values).max()))
        if values[0] < -100 * rounding:
            raise not_psd(float(values[0]), m)
        used = values > rounding
        if not used.any():
            return np.zeros((m, 1))
        return np.asarray(N @ (vectors[:, used] / np.sqrt(values[used])))


def chosen_centers(kernel: Similarity, points: Points, how: Any, n_centers: int | None, seed: int) -> Points:
    """Centres among different points, `how` being one of CENTERS or the centres themselves.

    The choice depends neither on the order of the points nor on repeated rows.
    """
    if isinstance(how, str) and how == "all":
        return points
    # The Gram of a conditionally positive definite function or a weight cannot choose centres: a Gaussian's can.
    chooser = kernel if isinstance(kernel, Kernel) else median_gaussian(points)
    m = min(N_CENTERS, points.n) if n_centers is None else n_centers
    candidates = _sorted(points)
    if isinstance(how, str) and how == "kmeans" and sp.issparse(candidates.raw):
        n, d = candidates.raw.shape
        within(8 * n * d, budget(), f"{n} dense rows of {d} columns, for their k-means", "Use centers='random'.")
        candidates = Points(candidates.raw.toarray())
    how = "uniform" if isinstance(how, str) and how == "random" else how
    return choose_centers(gram.of(chooser, candidates), m, how, rng=generator(seed))


def different(points: Points) -> Points:
    """The points without repetitions, in their order; objects other than vectors are returned unchanged."""
    X = _coordinates(points)
    if X is None:
        return points
    first = np.unique(X, axis=0, return_index=True)[1]
    return points if len(first) == points.n else points.take(np.sort(first))


def _sorted(points: Points) -> Points:
    """The points ordered by their coordinates, so that a random choice does not depend on the order of the rows."""
    X = _coordinates(points)
    return points if X is None else points.take(np.lexsort(X.T[::-1]))


def _coordinates(points: Points) -> Matrix | None:
    """The points as a dense matrix, or None if they are not vectors or it would be large."""
    try:
        X = points.vectors()
    except InvalidInput:  # not vectors, or unusable ones: the kernel will say so
        return None
    return None if sp.issparse(X) and X.shape[0] * X.shape[1] > memory.HELD else points.dense()


def nearest_pair(points: Points) -> str:
    """The two points that are closest to each other, in words; empty if points are not vectors or too many."""
    X = _coordinates(points)
    if X is None or len(X) < 2 or X.shape[1] > 20 or len(X) > 50_000:
        return ""
    distances, index = KDTree(X).query(X, 2)
    i = int(distances[:, 1].argmin())
    a, b = sorted((i, int(index[i, 1] if index[i, 1] != i else index[i, 0])))
    rows = np.arange(len(X)) if points.index is None else points.index
    return f"; the nearest two, rows {rows[a]} and {rows[b]}, are {distances[i, 1]:.3g} apart"
