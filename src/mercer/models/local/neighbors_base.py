"""The search for nearest neighbours in feature space, their votes, and leaving rows out.

The distance of two points is ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z), so only kernel values are needed.
A row of sample weight w counts as w equal rows: the neighbours of z are the nearest rows of total weight k, and the
last of them counts with the rest of k. Leaving a row out needs one more neighbour, so one search gives the
leave-one-out error for every k.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import memory, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Weight
from mercer.memory import budget
from mercer.models.base import (
    KernelEstimator,
    Matrix,
    check_columns,
    resolve_kernel,
    shortened,
    weighted_rows,
    weights,
)
from mercer.rkhs.geometry import nearest, smallest_columns
from mercer.validation import check_choice, is_whole_number

Index = NDArray[np.int64]

GROUP_ROWS = 32
"""Queries whose similarities to their neighbours are computed together: a few rows share many neighbours."""


class KernelNeighbors(KernelEstimator):
    """A model that predicts by votes of the nearest neighbours.

    A subclass sets its targets, and defines the votes by `_ballots` and their errors by `_errors`.
    """

    kernel: Any
    n_neighbors: Any
    weights: str
    _points: Points
    _weights: Matrix | None

    @abstractmethod
    def _ballots(self, where: Index) -> Matrix:
        """The votes of the rows at these positions; positions (m, count) give votes (m, count, T)."""

    @abstractmethod
    def _errors(self, rows: slice, votes: Matrix) -> Matrix:
        """The errors of the leave-one-out votes (rows, q, T), summed over rows: shape (q,)."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    def _remember(self, X: Any, points: Points, sample_weight: Any) -> Index:
        """Keep the points of weight > 0, and return their positions."""
        check_choice(self.weights, "weights", ("uniform", "distance", "kernel"))
        if isinstance(self.kernel, Weight):
            raise InvalidInput(
                "Neighbours in feature space require a kernel",
                got=f"the smoothing weight {self.kernel!r}, which has no feature space",
                advice="Pass a kernel such as mc.Gaussian(1.0), or use LocalRegression(neighbors=k).",
            )
        w = weights(sample_weight, points.n)
        kept = weighted_rows(w, points.n)
        self._left_out = None if len(kept) == points.n else points.take(w == 0)
        self._points = points if len(kept) == points.n else points.take(kept)
        self._weights = None if w is None else w[kept]
        self._kept = kept
        self.kernel_ = resolve_kernel(self.kernel, self._points)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        self._common_diagonal = self._find_common_diagonal()
        return kept

    def _choose(self) -> None:
        """Set `n_neighbors_`: as given, or by the least leave-one-out error."""
        self.__dict__.pop("loo_errors_", None)
        n = self._points.n
        if not isinstance(self.n_neighbors, str):
            self.n_neighbors_ = self._checked_number()
            return
        if self.n_neighbors != "loo":
            raise InvalidInput(
                "`n_neighbors` must be a whole number or 'loo'",
                got=repr(self.n_neighbors),
                advice="Pass a whole number such as 5.",
            )
        self._require_two()
        most = min(n - 1, max(30, 2 * int(np.ceil(np.sqrt(n)))))
        if self._weights is not None:  # at most the total weight without the heaviest row
            most = max(1, min(most, int(self._weights.sum() - self._weights.max())))
        numbers = np.arange(1, most + 1)
        errors = np.zeros(most)
        for rows, votes in self._without_own(numbers):
            errors += self._errors(rows, votes)
        self.loo_errors_ = errors / (n if self._weights is None else self._weights.sum())
        self.n_neighbors_ = int(np.argmin(self.loo_errors_)) + 1

    def _checked_number(self) -> int:
        """The parameter `n_neighbors`: at most the total weight of the training rows."""
        n, number = self._points.n, self.n_neighbors
        most = float(n) if self._weights is None else float(self._weights.sum())
        if not is_whole_number(number) or not 1 <= number <= most:
            what = "the number of training rows" if self._weights is None else "the total weight of the training rows"
            raise InvalidInput(
                f"`n_neighbors` must be a whole number from 1 to {what}, {most:.6g}",
                got=f"{shortened(number)} for n_samples = {n}",
                advice="Pass a smaller number, or fit on more rows.",
            )
        return int(number)

    # -- neighbours ---------------------------------------------------------------------------------------------------

    @property
    def _pairwise(self) -> bool:
        return self.kernel_.pairwise

    def _find_common_diagonal(self) -> float | None:
        """k(x, x) if it is the same for all points: it is then assumed for queries too, whose matrix lacks it."""
        if not self._pairwise:
            return None
        diagonal = np.asarray(self.kernel_.diag(self._points), dtype=np.float64)
        if np.ptp(diagonal) <= 1e-6 * np.abs(diagonal).max():
            return float(diagonal.mean())
        if self.weights == "distance":
            raise self._no_distances()
        return None

    @staticmethod
    def _no_distances() -> InvalidInput:
        return InvalidInput(
            "Distances from a bare Precomputed() require k(z, z) of the queries, known only if all k(x, x) are equal",
            got="a matrix whose diagonal varies",
            advice="Normalise it to K[i, j]/√(K[i, i] K[j, j]), or pass Precomputed(K) of all points and positions.",
        )

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Distances and positions of the nearest training rows, nearest first; equally near rows in their order.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries; by default the training rows, each of which is then not its own neighbour.
        n_neighbors : int or None
            The number of rows, whatever their weights; by default `n_neighbors_`.
        return_distance : bool
            Whether to return the distances too, or only the positions.

        Returns
        -------
        distances, positions : array
            Both of shape (m, n_neighbors); positions among the rows that were passed to `fit`.
        """
        check_is_fitted(self)
        n, most = self._points.n, self._points.n - (X is None)
        count: Any = self.n_neighbors_ if n_neighbors is None else n_neighbors
        if not is_whole_number(count) or not 1 <= count <= most:
            raise InvalidInput(
                f"`n_neighbors` must be a whole number from 1 to {most}, the number of rows to choose from",
                got=shortened(count),
                advice="Pass a smaller number.",
            )
        if X is None:
            distances, where = self._others(slice(0, n), int(count))
        else:
            distances, where = self._nearest(self._queries(X), int(count))
            if return_distance and np.isnan(distances).any():
                raise self._no_distances()
        return (distances, self._kept[where]) if return_distance else self._kept[where]

    def _nearest(self, queries: Points, count: int) -> tuple[Matrix, Index]:
        """Distances (NaN if they are unknown) and positions of the nearest rows, shape (m, count)."""
        if not self._pairwise:
            return nearest(self.kernel_, self._points, queries, count)
        # k(z, z) is the same for all neighbours of z, so it does not affect their order.
        diagonal = np.asarray(self.kernel_.diag(self._points), dtype=np.float64)
        distances, where = np.empty((queries.n, count)), np.empty((queries.n, count), dtype=np.int64)

        def search(rows: slice, share: int) -> None:
            squared = diagonal - 2.0 * self.kernel_(queries.take(rows), self._points, dtype=np.float64)
            where[rows] = smallest_columns(squared, count)
            distances[rows] = np.take_along_axis(squared, where[rows], 1)

        threads.stripes(queries.n, search)
        distances += np.nan if self._common_diagonal is None else self._common_diagonal
        return np.sqrt(np.maximum(distances, 0.0, out=distances), out=distances), where

    def _others(self, rows: slice, count: int) -> tuple[Matrix, Index]:
        """The same for training rows, none of which is its own neighbour."""
        positions = np.arange(rows.start, rows.stop)
        queries = self._points if len(positions) == self._points.n else self._points.take(rows)
        distances, where = nearest(self.kernel_, self._points, queries, count + 1)
        others = where != positions[:, None]
        others[others.all(axis=1), -1] = False  # a row behind count + 1 equal ones: leave out the last instead
        return distances[others].reshape(-1, count), where[others].reshape(-1, count)

    def _count(self, number: int) -> int:
        """A number of rows whose total weight is at least `number`, whichever they are: that of the lightest ones."""
        if self._weights is None:
            return number
        lightest = np.cumsum(np.sort(self._weights))
        return min(int(np.searchsorted(lightest, number)) + 1, len(lightest))

    # -- votes --------------------------------------------------------------------------------------------------------

    def _groups(self, m: int, count: int, numbers: int = 1) -> list[slice]:
        """Groups of queries whose neighbours and votes fit in memory."""
        entries = min(memory.HELD, budget() // 64)
        columns = self._ballots(np.zeros((1, 1), dtype=np.int64)).shape[2]
        return threads.spans(m, max(1, entries // ((count + numbers) * (columns + 4))))

    def _votes(self, X: Any) -> Iterator[tuple[Points, Matrix, Index, Matrix]]:
        """Groups of queries, with the factors and positions of their neighbours, and the mean ballot, shape (m, T)."""
        points = self._queries(X)
        count = self._count(self.n_neighbors_)
        for rows in self._groups(points.n, count):
            group = points if rows == slice(0, points.n) else points.take(rows)
            distances, where = self._nearest(group, count)
            factors = self._factors(group, distances, where)
            yield group, factors, where, self._mean(factors, where, self._ballots(where), self.n_neighbors_)

    def _without_own(self, numbers: Index) -> Iterator[tuple[slice, Matrix]]:
        """Groups of training rows, with the mean ballot of the others for each number of neighbours: (rows, q, T)."""
        n = self._points.n
        count = min(self._count(int(numbers[-1])), n - 1)
        for rows in self._groups(n, count, len(numbers)):
            distances, where = self._others(rows, count)
            factors = self._factors(self._points.take(rows), distances, where)
            yield rows, self._means(factors, where, self._ballots(where), numbers)

    def _factors(self, queries: Points, distances: Matrix, where: Index) -> Matrix:
        """The weight of every neighbour's vote, shape (m, count), in a unit that may differ between queries."""
        if self.weights == "uniform":
            return np.ones(where.shape)
        if self.weights == "kernel":
            return self._similarities(queries, where)
        distances = np.asarray(distances, dtype=np.float64)
        equal = distances[:, :1] == 0  # rows at distance 0 have all the votes
        return np.where(equal, distances == 0, distances[:, :1] / np.where(distances == 0, 1.0, distances))

    def _similarities(self, queries: Points, where: Index) -> Matrix:
        """k(z, x) of every query with its neighbours; divided by the largest of them if log k is known."""
        kernel, values = self.kernel_, np.empty(where.shape)

        def work(rows: slice, share: int) -> None:
            there, at = np.unique(where[rows], return_inverse=True)
            z, x = queries.take(rows), self._points.take(there)
            if kernel.exact_log:
                tile = np.empty((z.n, x.n))
                kernel.log_tile(kernel.pair(z, x, np.float64).block(slice(0, z.n), slice(0, x.n)), tile)
            else:
                tile = kernel(z, x, dtype=np.float64)
            values[rows] = np.take_along_axis(tile, at.reshape(where[rows].shape), 1)

        threads.stripes(len(where), work, rows=GROUP_ROWS)
        if kernel.exact_log:
            largest = values.max(axis=1, keepdims=True)
            return np.exp(values - np.where(np.isfinite(largest), largest, 0.0))
        if values.min() < 0:
            raise InvalidInput(
                "weights='kernel' requires similarities k(x, z) ≥ 0",
                got=f"{values.min():.3g}",
                advice="Use weights='distance' or 'uniform', or a kernel such as mc.Gaussian.",
            )
        return values

    def _mean(self, factors: Matrix, where: Index, ballots: Matrix, number: int) -> Matrix:
        """The mean ballot of the nearest rows of this total weight, shape (m, T)."""
        return self._means(factors, where, ballots, np.array([number]))[:, 0]

    def _means(self, factors: Matrix, where: Index, ballots: Matrix, numbers: Index) -> Matrix:
        """The mean ballot for several numbers of neighbours at once, shape (m, q, T).

        If all votes of a query have weight 0 (similarities of 0), each counts as one.
        """
        w = None if self._weights is None else self._weights[where]
        totals = _running(factors[:, :, None], w, numbers)
        sums = _running(factors[:, :, None] * ballots, w, numbers)
        silent = totals[:, :, 0] == 0
        if silent.any():
            ones = np.ones((*where.shape, 1))
            totals = np.where(silent[:, :, None], _running(ones, w, numbers), totals)
            sums = np.where(silent[:, :, None], _running(ballots, w, numbers), sums)
        return np.asarray(sums / totals)

    # -- leave-one-out ------------------------------------------------------------------------------------------------

    def _require_two(self) -> None:
        if self._points.n < 2:
            raise InvalidInput(
                "Leave-one-out requires at least two rows", got="n_samples = 1", advice="Fit on more rows."
            )

    def _leave_one_out(self) -> Matrix:
        """The vote on every training row without itself, shape (n, T)."""
        check_is_fitted(self)
        self._require_two()
        return np.concatenate([votes[:, 0] for _, votes in self._without_own(np.array([self.n_neighbors_]))])

    def _everywhere(self, predictions: NDArray[Any], predict: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """Predictions for all rows: the given ones at the rows of weight > 0, and those of the fit at the others."""
        if self._left_out is None:
            return predictions
        n = len(self._kept) + self._left_out.n
        whole = np.empty((n, *predictions.shape[1:]), dtype=predictions.dtype)
        whole[self._kept] = predictions
        whole[np.setdiff1d(np.arange(n), self._kept)] = predict(self._left_out.raw)
        return whole


def _running(values: Matrix, w: Matrix | None, numbers: Index) -> Matrix:
    """Sums of values (m, count, T) over the first columns of total weight 1, 2, …: shape (m, q, T) for q such numbers.

    The last column counts with the rest of the weight.
    """
    m, count, columns = values.shape
    sums = np.zeros((m, count + 1, columns))
    if w is None:
        np.cumsum(values, axis=1, out=sums[:, 1:])
        return sums[:, np.minimum(numbers, count)]
    np.cumsum(values * w[:, :, None], axis=1, out=sums[:, 1:])
    weight = np.zeros((m, count + 1))
    np.cumsum(w, axis=1, out=weight[:, 1:])
    whole = np.stack([(weight[:, 1:] <= number).sum(axis=1) for number in numbers], axis=1)  # columns that fit
    left = np.where(whole < count, numbers - np.take_along_axis(weight, whole, 1), 0.0)
    last = np.take_along_axis(values, np.minimum(whole, count - 1)[:, :, None], 1)
    return np.asarray(np.take_along_axis(sums, whole[:, :, None], 1) + left[:, :, None] * last)
