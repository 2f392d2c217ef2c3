"""Distances, means and neighbours in feature space, from kernel values alone (lecture 000).

Everything here is a function of d²(x, z) = ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z). That difference loses
digits if the points are close to each other or far from the origin, so d² is computed directly if the expression allows
it, in float64. Means and centring use d² instead of k, because the part common to all points has cancelled there
already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import costs, tiling
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.algebra.nodes import Node
from mercer.kernels.algebra.proof import Proof, Unproven
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.block import Block
from mercer.memory import budget, within
from mercer.rkhs.expansion import Expansion, coordinates
from mercer.rkhs.space import hilbert, streamed
from mercer.validation import check_whole_number

FIRST = 128
"""The least number of columns that give the first neighbours."""


class SquaredDistance(Node):
    """‖phi(x) − phi(z)‖², not clamped at 0: rounding, or a function that is not a kernel, may make it negative."""

    kernel: Any

    def check(self) -> None:
        hilbert(self.kernel)

    def tile(self, block: Block, out: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self.kernel.distance_tile(block, out)
        if block.diagonal:
            np.fill_diagonal(out, 0.0)
        require_finite(out, self.kernel)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def conclusion(self, *premises: Proof) -> Proof:
        return Unproven(self, "a squared distance, not a kernel")


def squared_distances(kernel: Any, X: Any, Z: Any = None) -> NDArray[np.float64]:
    """The float64 matrix of d², if it fits the memory budget."""
    squared = SquaredDistance(kernel)
    x, z = squared.prepare(X), None if Z is None else squared.prepare(Z)
    n, m = x.n, x.n if z is None else z.n
    within(8 * n * m, budget(), f"The {n}×{m} matrix of distances", "Take fewer points at a time, or use mc.nearest.")
    return squared(x, z, dtype=np.float64)


def squared_distance_gram(kernel: Any, X: Any, Z: Any = None) -> Gram:
    """The same as an operator that is never stored."""
    return streamed(SquaredDistance(kernel), X, Z, np.float64)


# -- distances --------------------------------------------------------------------------------------------------------


def distance(kernel: Kernel, X: Any, Z: Any = None, *, squared: bool = False) -> Array:
    """The distance of points in feature space, ‖phi(x) − phi(z)‖ = √(k(x, x) − 2k(x, z) + k(z, z)).

    Distances of close points are accurate if the logarithm of the kernel is known (Gaussian, Laplacian, Periodic, and
    their products), for Linear, and for sums and multiples of these. Otherwise the error is about 1e-8·√k(x, x).

    Parameters
    ----------
    kernel : Kernel
        A kernel on any objects.
    X, Z : array, frame or list of objects
        n and m points. Without Z, distances within X are computed: exactly symmetric, with a diagonal of zeros.
    squared : bool
        Whether to leave out the root.

    Returns
    -------
    array
        Shape (n, m) or (n, n), in the precision of the points.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.distance(mc.Linear(), [[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    >>> mc.distance(mc.Gaussian(1.0), [[0.0]], [[1e-9], [100.0]])            # √2 is the largest distance there is
    array([[1.00000000e-09, 1.41421356e+00]])
    """
    x = hilbert(kernel).prepare(X)
    z = None if Z is None else kernel.prepare(Z)
    result = squared_distances(kernel, x, z)
    np.maximum(result, 0.0, out=result)
    if not squared:
        np.sqrt(result, out=result)
    return result.astype(_dtype(kernel, x, z), copy=False)


def distance_to_mean(kernel: Kernel, X: Any, Z: Any = None, *, squared: bool = False) -> Array:
    """The distance of every z to the mean of X in feature space, ‖phi(z) − (1/n) Σ phi(xᵢ)‖.

    Its square is k(z, z) − (2/n) Σᵢ k(z, xᵢ) + (1/n²) Σᵢⱼ k(xᵢ, xⱼ), without the mean (lecture 000). It is computed as
    the mean of d²(z, xᵢ) minus half the mean of d²(xᵢ, xⱼ), tile by tile.

    Parameters
    ----------
    kernel : Kernel
        A kernel on any objects.
    X : array, frame or list of objects
        n points, whose mean is taken.
    Z : array, frame or list of objects
        m points; X itself by default.
    squared : bool
        Whether to leave out the root.

    Returns
    -------
    array
        Shape (m,), in the precision of the points.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.distance_to_mean(mc.Linear(), [[0.0, 0.0], [2.0, 0.0]], [[1.0, 3.0]])
    array([3.])
    """
    x = hilbert(kernel).prepare(X)
    z = None if Z is None else kernel.prepare(Z)
    mean = np.full(x.n, 1.0 / x.n)
    within_x = squared_distance_gram(kernel, x) @ mean
    to_x = within_x if z is None else squared_distance_gram(kernel, z, x) @ mean
    result = np.maximum(to_x - 0.5 * (mean @ within_x), 0.0)
    return (result if squared else np.sqrt(result)).astype(_dtype(kernel, x, z), copy=False)


def nearest(kernel: Kernel, X: Any, Z: Any, n: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """The n points of X that are nearest to every z in feature space, nearest first.

    For k(x, x) = 1 these are the n most similar ones. Among points at the same distance the first of X come first;
    a point of X that is also in Z is its own neighbour. The distances are computed tile by tile.

    Parameters
    ----------
    kernel : Kernel
        A kernel on any objects.
    X : array, frame or list of objects
        The points to choose from.
    Z : array, frame or list of objects
        m points whose neighbours are searched.
    n : int
        The number of neighbours, from 1 to len(X).

    Returns
    -------
    distances, indices : array
        Both of shape (m, n); the indices are positions in X.

    Examples
    --------
    >>> import mercer as mc
    >>> words = ["kernel", "colonel", "lecture"]
    >>> common_letters = mc.FromFunction(lambda s, t: len(set(s) & set(t)))
    >>> distances, indices = mc.nearest(common_letters, words, ["kennel", "rector"], 1)
    >>> [words[i] for i in indices[:, 0]], distances[:, 0]
    (['kernel', 'lecture'], array([1.        , 1.73205081]))
    """
    x, z = hilbert(kernel).prepare(X), kernel.prepare(Z)
    n = check_whole_number(n, "n", most=x.n, advice=f"Pass at most {x.n}, the number of points.")
    squared = SquaredDistance(kernel)
    pair = squared.pair(z, x, np.float64)
    # If log k is known it orders the points, even if all values of k underflow; only the chosen points need d².
    by_log = kernel.exact_log and kernel.tags.normalised
    distances, indices = np.empty((z.n, n)), np.empty((z.n, n), np.int64)
    first = min(x.n, max(n, FIRST))
    rest = threads.spans(x.n - first, costs.TILE_COLS)
    spans = [slice(0, first), *(slice(first + s.start, first + s.stop) for s in rest)]

    def search(rows: slice, share: int) -> None:
        space = tiling.workspace()
        mark = space.used
        best = _Nearest(rows.stop - rows.start, n)
        for cols in spans:
            block = pair.block(rows, cols, space)
            try:
                tile = block.scratch()
                if by_log:
                    with np.errstate(over="ignore", invalid="ignore"):
                        kernel.log_tile(block, tile)
                    np.negative(tile, out=tile)
                else:
                    squared.tile(block, tile)
                np.maximum(tile, 0.0, out=tile)  # rounding makes those of equal points negative
                best.add(tile, cols.start)
            finally:
                space.release(mark)
        values, indices[rows] = best.sorted()
        distances[rows] = np.sqrt(-2.0 * np.expm1(-values) if by_log else values)

    threads.stripes(z.n, search, rows=max(1, min(costs.TILE_ROWS, memory.HELD // first)), columns=x.n)
    return distances.astype(_dtype(kernel, x, z), copy=False), indices


class _Nearest:
    """The n smallest entries of every row of a matrix that comes tile by tile, from left to right.

    After a few tiles hardly any entry is below the n-th smallest of its row so far: most entries cost one comparison.
    The smaller ones are collected until there are enough to be worth a merge.
    """

    def __init__(self, rows: int, n: int) -> None:
        self.n = n
        self.values, self.places = np.empty((rows, 0)), np.empty((rows, 0), np.int64)
        self.limits = np.full((rows, 1), np.inf)
        self.waiting: list[tuple[Array, Array, Array]] = []

    def add(self, tile: Array, start: int) -> None:
        """Add the columns start, start + 1, …; the first tile has at least n of them."""
        if start == 0:
            self._keep(tile, np.broadcast_to(np.arange(tile.shape[1]), tile.shape))
            return
        row, column = np.divmod(np.flatnonzero(tile < self.limits), tile.shape[1])
        self.waiting.append((row, tile[row, column], start + column))
        if len(self.waiting) == 8 or sum(len(row) for row, *_ in self.waiting) > tile.shape[0] * max(self.n, 16):
            self._merge()

    def sorted(self) -> tuple[Array, NDArray[np.int64]]:
        """Values and columns, smallest first; among equal ones the first."""
        self._merge()
        order = np.argsort(self.values, axis=1, kind="stable")
        return np.take_along_axis(self.values, order, 1), np.take_along_axis(self.places, order, 1)

    def _merge(self) -> None:
        waiting, self.waiting = self.waiting, []
        if not any(len(row) for row, *_ in waiting):
            return
        row, value, place = (np.concatenate(part) for part in zip(*waiting))
        order = np.argsort(row, kind="stable")  # within a row from left to right, as they came
        row, counts = row[order], np.bincount(row, minlength=len(self.limits))
        column = self.n + np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        values = np.full((len(self.limits), self.n + counts.max()), np.inf)
        places = np.zeros(values.shape, np.int64)
        values[:, : self.n], places[:, : self.n] = self.values, self.places
        values[row, column], places[row, column] = value[order], place[order]
        self._keep(values, places)

    def _keep(self, values: Array, places: NDArray[np.int64]) -> None:
        chosen = _among_smallest(values, self.n)
        self.values, self.places = np.take_along_axis(values, chosen, 1), np.take_along_axis(places, chosen, 1)
        self.limits = self.values.max(axis=1, keepdims=True)


def smallest_columns(values: Array, n: int) -> NDArray[np.int64]:
    """Columns of the n smallest entries of every row, in order; among equal ones the first."""
    chosen = _among_smallest(values, n)
    order = np.argsort(np.take_along_axis(values, chosen, 1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, 1)


def _among_smallest(values: Array, n: int) -> NDArray[np.int64]:
    """The same columns, equal entries from left to right, but not sorted."""
    if n == values.shape[1]:
        return np.broadcast_to(np.arange(n), values.shape)
    last = np.partition(values, n - 1, axis=1)[:, n - 1 : n]
    # 0 below the n-th smallest, 1 at it, 2 above: a stable sort of these takes the first ties, no more than needed.
    rank = (values >= last).astype(np.int8) + (values > last)
    return np.argsort(rank, axis=1, kind="stable")[:, :n]


def _dtype(kernel: Similarity, x: Points, z: Points | None) -> np.dtype[Any]:
    return np.result_type(kernel.dtype_of(x), kernel.dtype_of(x if z is None else z))


# -- the mean ---------------------------------------------------------------------------------------------------------


def centre(K: Any, X: Any = None, Z: Any = None) -> Array:
    """The Gram matrix of the points minus their mean in feature space: HKH with H = I − 11ᵀ/n.

    `centre(K)` takes a Gram matrix, and `centre(K, K_test)` the rows k(z, xⱼ) of other points, from which the mean of
    the *training* points is subtracted. `centre(k, X)` and `centre(k, X, Z)` do both from a kernel and points, and
    keep digits that K has lost already if all points are far from the origin.

    Returns
    -------
    array
        Shape (n, n), exactly symmetric if K is; or (m, n).

    Examples
    --------
    >>> import mercer as mc
    >>> mc.centre([[1.0, 2.0], [2.0, 4.0]])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    >>> mc.centre(mc.Linear(), [[1.0], [2.0]], [[3.5]])                      # (3.5 − 1.5)·(1 − 1.5) and ·(2 − 1.5)
    array([[-1.,  1.]])
    """
    if isinstance(K, Similarity):
        if X is None:
            raise InvalidInput("`centre` of a kernel needs points", got="no X", advice="Call centre(k, X).")
        x = hilbert(K).prepare(X)
        z = None if Z is None else K.prepare(Z)
        # HKH = −½ H D² H: k(x, x) and k(z, z) are constant along rows or columns, which centring removes.
        rows = squared_distances(K, x if z is None else z, None if z is None else x)
        means = rows.mean(axis=0) if z is None else squared_distance_gram(K, x) @ np.full(x.n, 1.0 / x.n)
        return (-0.5 * _minus_means(rows, means, same=z is None)).astype(_dtype(K, x, z), copy=False)
    if Z is not None:
        raise InvalidInput("`Z` needs a kernel", got="a matrix K", advice="Pass centre(K, K_test) or centre(k, X, Z).")
    train = _matrix(K.dense() if isinstance(K, Gram) else K, "K")
    n = train.shape[1]
    asymmetry = np.abs(train - train.T).max() if train.shape == (n, n) else np.inf
    if asymmetry > 1e3 * np.finfo(train.dtype).eps * np.abs(train).max():
        raise InvalidInput(
            "K must be square and symmetric",
            got=f"shape {train.shape}" + (f", K − Kᵀ up to {asymmetry:.3g}" if np.isfinite(asymmetry) else ""),
            advice="Pass the Gram matrix of the training points first: centre(K, K_test).",
        )
    rows = train if X is None else _matrix(X.dense() if isinstance(X, Gram) else X, "K_test")
    if rows.shape[1] != n:
        raise InvalidInput(
            f"K_test must have one column per training point, {n}", got=f"shape {rows.shape}", advice="Pass k(Z, X)."
        )
    return _minus_means(rows, train.mean(axis=0, dtype=np.float64), same=X is None).astype(rows.dtype, copy=False)


def _minus_means(rows: Array, means: NDArray[np.float64], *, same: bool) -> NDArray[np.float64]:
    """rows − (mean of each row) − (training mean of each column) + (mean of all training pairs)."""
    row_means = means if same else rows.mean(axis=1, dtype=np.float64)
    return np.asarray(rows - (row_means[:, None] + means) + means.mean())


def _matrix(K: Any, name: str) -> Array:
    try:
        A = np.asarray(K)
        A = A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be a matrix of numbers", got=str(error), advice="Pass k(X).") from None
    if A.ndim != 2 or A.size == 0:
        raise InvalidInput(f"{name} must be a matrix", got=f"shape {A.shape}", advice="Pass k(X).")
    if not np.isfinite(A).all():
        raise InvalidInput(
            f"{name} must be finite", got="NaN or infinity", advice="Rescale the data it was computed from."
        )
    return A


def mean_coordinates(kernel: Kernel, X: Any, d: Any = None) -> NDArray[np.float64]:
    """The mean of phi(X), feature by feature, if the feature map is finite.

    Kernel values are inner products: they give lengths and angles, but no coordinates (the question of lecture 000).
    An infinite or unknown map is refused; use `distance_to_mean` or `mean_embedding` instead.

    Parameters
    ----------
    kernel : Kernel
        A kernel with a finite feature map.
    X : array, frame or list of objects
        n points.
    d
        The argument of `kernel.features`; by default it is taken from the points.

    Returns
    -------
    array
        Shape (dimension,): one number for each of `kernel.features(d).names`.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.mean_coordinates(mc.Polynomial(2), [[1.0, 0.0], [3.0, 0.0]])
    array([5., 0., 0.])
    >>> mc.mean_coordinates(mc.Gaussian(1.0), [[1.0], [3.0]])
    Traceback (most recent call last):
    mercer.errors.InvalidInput: The coordinates of the mean need a finite feature map: kernel operations alone cannot \
give them, got Gaussian(sigma=1.0), whose map is infinite-dimensional or not known. Use mc.distance_to_mean for \
distances to the mean, or mc.mean_embedding for the mean as a function.
    """
    points = hilbert(kernel).prepare(X)
    return coordinates(
        Expansion(kernel, points, np.full(points.n, 1.0 / points.n)),
        d,
        "The coordinates of the mean need a finite feature map: kernel operations alone cannot give them",
        "Use mc.distance_to_mean for distances to the mean, or mc.mean_embedding for the mean as a function.",
    )
