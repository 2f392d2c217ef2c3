"""Centres: a few points that stand for all of them.

Uniform sampling is hard to beat: if the spectrum of a kernel decays slowly, nothing else does better. k-means spreads
the centres over the data, pivoted Cholesky over the feature space (any kind of points, fast-decaying spectra).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.frames import as_table
from mercer.data.points import Array, Points, owned
from mercer.errors import InvalidInput
from mercer.gram.base import Gram
from mercer.kernels.block import squared_norms
from mercer.validation import check_choice, check_whole_number

RULES = ("uniform", "kmeans", "pivoted")
# k-means and pivoted Cholesky use this many points per centre, drawn at random: more change the centres very little.
PER_CENTER = 20
# Points at which two centres are compared.
PROBES = 64
# Lloyd stops when a step lowers the inertia by less than this share of it, or after this many steps.
GAIN, STEPS = 1e-3, 25


def choose_centers(gram: Gram, m: int, how: Any = "uniform", *, rng: np.random.Generator) -> Points:
    """At most m centres for the points of a Gram matrix, no two of which the kernel sees as equal.

    Parameters
    ----------
    gram : Gram
        K of the n points, symmetric.
    m : int
        The number of centres; if it is n or more, all points are centres.
    how : str, array, frame or list of objects
        "uniform" (m points without replacement), "kmeans" (means of clusters; vectors only), "pivoted" (randomly
        pivoted Cholesky: points in proportion to what the centres before them left of k(x, x)), or the centres
        themselves: an array, a frame, a list of objects. Given centres are all used, whatever m is.
    rng : random.Generator
        The random number generator.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> G = mc.gram.of(mc.Gaussian(1.0), X)
    >>> np.sort(choose_centers(G, 2, "kmeans", rng=np.random.default_rng(0)).raw, axis=0)
    array([[0.05],
           [5.05]])
    """
    gram.require_symmetric("choose_centers")
    if not isinstance(how, str):
        return _distinct(gram, gram.points(owned(how)))
    advice = "Use 'uniform', the default, if in doubt."
    check_choice(how, "centers", RULES, alternative="the centres themselves", advice=advice)
    m = check_whole_number(m, "n_centers", such_as=100)
    n = gram.shape[0]
    if m >= n:
        return _distinct(gram, gram.x)
    if how == "kmeans":
        return _distinct(gram, Points(as_table(gram.x.raw, _means(gram, m, rng))))
    if how == "pivoted":
        from mercer.gram.pivoted import pivoted_cholesky

        # The factor is as large as K_nm: use a sample if there are many points.
        sample = np.sort(rng.choice(n, min(n, max(PER_CENTER * m, 10_000)), replace=False))
        pivots = pivoted_cholesky(gram if len(sample) == n else gram.restrict(sample), m, rng=rng).pivots
        chosen = sample[pivots[:m]]
    else:
        chosen = np.sort(rng.choice(n, size=m, replace=False))
    return _distinct(gram, gram.x.take(chosen))


def _distinct(gram: Gram, points: Points) -> Points:
    """The points without repetitions, that is points that the kernel cannot distinguish from an earlier one."""
    K_all = gram.between(points)
    n, diagonal = points.n, K_all.diag().astype(np.float64)
    rounding = 8.0 * float(np.finfo(K_all.dtype).eps)
    probe = points.take(np.linspace(0, n - 1, min(n, PROBES)).astype(np.int64))
    repeated = np.zeros(n, dtype=bool)
    for rows in threads.spans(n, 512):
        K = gram.between(points.take(rows), points.take(slice(0, rows.stop)), np.float64).fresh()
        # ‖φ(x) − φ(z)‖² = k(x, x) + k(z, z) − 2k(x, z), against the rounding of its terms, and z before x
        size = diagonal[rows, None] + diagonal[: rows.stop]
        near = np.abs(size - 2.0 * K) <= rounding * np.abs(size)
        near &= np.arange(rows.start, rows.stop)[:, None] > np.arange(rows.stop)
        suspects = np.flatnonzero(near.any(axis=1))
        if len(suspects):
            # A conditionally positive kernel has other zeros of that difference: the rest of K must agree, too.
            x, z = points.take(suspects + rows.start), points.take(near[suspects].argmax(axis=1))
            A, B = (gram.between(side, probe, np.float64).fresh() for side in (x, z))
            repeated[suspects + rows.start] = np.abs(A - B).max(axis=1) <= 1e-2 * np.abs(A).max(axis=1)
    return points if not repeated.any() else points.take(np.flatnonzero(~repeated))


def _means(gram: Gram, m: int, rng: np.random.Generator) -> Array:
    """The means of m clusters of the points, in their dtype."""
    try:
        X = gram.x.vectors()
    except InvalidInput as error:
        raise InvalidInput(
            "`centers='kmeans'` needs vectors, which have a mean",
            got=error.got,
            advice="Use 'uniform' or 'pivoted', which take any kind of points.",
        ) from None
    if sp.issparse(X):
        raise InvalidInput(
            "`centers='kmeans'` needs dense vectors",
            got="a sparse matrix, whose cluster means are not sparse",
            advice="Use 'uniform' or 'pivoted', or pass X.toarray().",
        )
    # Distances as the kernel sees them: in units of its widths, if it has one per column.
    scale = gram.column_scale
    sample = X if len(X) <= PER_CENTER * m else X[np.sort(rng.choice(len(X), PER_CENTER * m, replace=False))]
    centre = sample.mean(axis=0, dtype=np.float64)
    points = ((sample - centre) / scale).astype(X.dtype)
    means, _ = kmeans(points, m, rng=rng)
    return np.asarray(means * scale + centre).astype(X.dtype)


def kmeans(X: Array, m: int, *, rng: np.random.Generator) -> tuple[NDArray[np.float64], list[float]]:
    """Lloyd's algorithm from a k-means++ start: the m means and the inertia Σ min ‖x − mean‖² before each step.

    >>> means, inertia = kmeans(np.array([[0.0], [2.0], [10.0]]), 2, rng=np.random.default_rng(0))
    >>> np.sort(means, axis=0).ravel(), inertia[-1]
    (array([ 1., 10.]), 2.0)
    """
    norms = squared_norms(X)
    means = _spread(X, norms, m, rng).astype(np.float64)
    inertia: list[float] = []
    for _ in range(STEPS):
        nearest, distance = _assign(X, norms, means)
        inertia.append(float(distance.sum()))
        if len(inertia) > 1 and inertia[-2] - inertia[-1] <= GAIN * inertia[-2]:
            break
        means = _update(X, nearest, distance, means)
    return means, inertia


def _spread(X: Array, norms: NDArray[np.float64], m: int, rng: np.random.Generator) -> Array:
    """k-means++: each next mean is a point drawn in proportion to its squared distance from those before it."""
    chosen = [int(rng.integers(len(X)))]
    distance = np.full(len(X), np.inf)
    for _ in range(m - 1):
        x = X[chosen[-1]]
        np.minimum(distance, np.maximum(norms - 2.0 * (X @ x) + norms[chosen[-1]], 0.0), out=distance)
        distance[chosen[-1]] = 0.0
        cumulated = np.cumsum(distance)
        if cumulated[-1] <= 0.0:  # fewer different points than means
            break
        chosen.append(min(int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")), len(X) - 1))
    return X[chosen]


def _assign(
    X: Array, norms: NDArray[np.float64], means: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The nearest mean of every point and its squared distance, by one matrix product per stripe of rows."""
    nearest, distance = np.empty(len(X), dtype=np.intp), np.empty(len(X))
    columns = np.ascontiguousarray(-2.0 * means.T).astype(X.dtype)
    offsets = squared_norms(means).astype(X.dtype)

    def work(rows: slice, share: int) -> None:
        D = X[rows] @ columns
        D += offsets
        nearest[rows] = D.argmin(axis=1)

    threads.stripes(len(X), work, rows=max(16, 2**18 // len(means)))
    for rows in threads.spans(len(X), 4096):
        difference = X[rows] - means[nearest[rows]]
        distance[rows] = np.einsum("ij,ij->i", difference, difference)
    return nearest, distance


def _update(
    X: Array, nearest: NDArray[np.intp], distance: NDArray[np.float64], means: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of every cluster; an empty one moves to the point that is farthest from its mean."""
    m = len(means)
    sizes = np.bincount(nearest, minlength=m)
    members = sp.csr_array((np.ones(len(X)), nearest, np.arange(len(X) + 1)), shape=(len(X), m))
    means = np.asarray(members.T @ X.astype(np.float64)) / np.maximum(sizes, 1)[:, None]
    empty = np.flatnonzero(sizes == 0)
    means[empty] = X[np.argsort(distance)[::-1][: len(empty)]]
    return means
