"""Nearest neighbours in feature space: the oldest memory-based method, with any kernel on any objects (lecture 001).

The distance of two points is ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z), so neighbours need kernel values alone.
A row of sample weight w counts as w equal rows: the neighbours of z are the nearest rows of total weight k, of which
the last counts with what is left of k. Leaving a row out takes one more neighbour, so one search gives the
leave-one-out error of every k.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer import threads
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
    targets,
    training_points,
    weights,
)
from mercer.models.labels import labels
from mercer.models.least_squares.smoother import explained
from mercer.models.quantiles import plus_ends, rank
from mercer.rkhs.geometry import nearest, smallest_columns

Index = NDArray[np.int64]

ENTRIES = 2**23
"""Numbers that are held at a time for a group of queries, at most."""
GROUP = 32
"""Queries whose neighbours' similarities are computed together."""


class KernelNeighbors(KernelEstimator):
    """What the classifier and the regressor share: the search, the votes, and leaving rows out.

    A subclass sets nothing but its targets, and says what the votes are on: `_ballots`.
    """

    kernel: Any
    n_neighbors: Any
    weights: str
    _points: Points
    _weights: Matrix | None

    @abstractmethod
    def _ballots(self, where: Index) -> Matrix:
        """What the rows at these positions, shape (m, count), vote for: shape (m, count, T)."""

    @abstractmethod
    def _errors(self, rows: slice, votes: Matrix) -> Matrix:
        """The error of every leave-one-out vote (rows, q, T) on its own row, summed over rows: shape (q,)."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    def _remember(self, X: Any, points: Points, sample_weight: Any) -> Index:
        """Keep the points of weight > 0; their positions are returned."""
        if self.weights not in ("uniform", "distance", "kernel"):
            raise InvalidInput(
                "`weights` must be 'uniform', 'distance' (1/d) or 'kernel' (k(x, z))",
                got=shortened(self.weights),
                advice="'uniform' gives every neighbour one vote.",
            )
        if isinstance(self.kernel, Weight):
            raise InvalidInput(
                "Neighbours in feature space need a kernel",
                got=f"the smoothing weight {self.kernel!r}, which has no feature space",
                advice="Such as mc.Gaussian(1.0); LocalRegression(neighbors=k) takes smoothing weights.",
            )
        w = weights(sample_weight, points.n)
        kept = np.arange(points.n) if w is None or w.all() else np.flatnonzero(w)
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
        """`n_neighbors_`: as given, or by the least leave-one-out error."""
        self.__dict__.pop("loo_errors_", None)
        n = self._points.n
        if not isinstance(self.n_neighbors, str):
            self.n_neighbors_ = self._whole(self.n_neighbors, "`n_neighbors`")
            return
        if self.n_neighbors != "loo":
            raise InvalidInput(
                "`n_neighbors` must be a whole number or 'loo'", got=repr(self.n_neighbors), advice="Such as 5."
            )
        self._require_two()
        most = min(n - 1, max(30, 2 * int(np.ceil(np.sqrt(n)))))
        if self._weights is not None:  # not more than there are without the heaviest row
            most = max(1, min(most, int(self._weights.sum() - self._weights.max())))
        numbers = np.arange(1, most + 1)
        errors = np.zeros(most)
        for rows, votes in self._without_own(numbers):
            errors += self._errors(rows, votes)
        self.loo_errors_ = errors / (n if self._weights is None else self._weights.sum())
        self.n_neighbors_ = int(np.argmin(self.loo_errors_)) + 1

    def _whole(self, number: Any, name: str) -> int:
        """A number of neighbours that the training rows can give."""
        n = self._points.n
        most = float(n) if self._weights is None else float(self._weights.sum())
        if not _is_whole(number) or not 1 <= number <= most:
            what = "the number of training rows" if self._weights is None else "the total weight of the training rows"
            raise InvalidInput(
                f"{name} must be a whole number from 1 to {what}, {most:.6g}",
                got=f"{shortened(number)} for n_samples = {n}",
                advice="Ask for fewer neighbours, or fit on more rows.",
            )
        return int(number)

    # -- neighbours ---------------------------------------------------------------------------------------------------

    @property
    def _pairwise(self) -> bool:
        return self.kernel_.pairwise

    def _find_common_diagonal(self) -> float | None:
        """k(x, x) of all points, where it is one number: then it is that of queries too, whose matrix lacks it."""
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
            "Distances from a bare Precomputed() need k(z, z) of the queries, known only where all k(x, x) are equal",
            got="a matrix whose diagonal varies",
            advice="Normalise it: K[i, j]/√(K[i, i] K[j, j]); or use Precomputed(K) of all points, positions as X.",
        )

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Distances and positions of the nearest training rows, nearest first; of equally near ones the first.

        Parameters
        ----------
        X : m queries; without them the training rows themselves, each of which is then not its own neighbour.
        n_neighbors : how many rows, whatever they weigh; by default `n_neighbors_`.
        return_distance : without it the positions alone are returned.

        Returns
        -------
        distances, positions : both of shape (m, n_neighbors); positions count the rows that were given to `fit`.
        """
        check_is_fitted(self)
        n, most = self._points.n, self._points.n - (X is None)
        count: Any = self.n_neighbors_ if n_neighbors is None else n_neighbors
        if not _is_whole(count) or not 1 <= count <= most:
            raise InvalidInput(
                f"`n_neighbors` must be a whole number from 1 to {most}, the number of rows to choose from",
                got=shortened(count),
                advice="Ask for fewer.",
            )
        if X is None:
            found, where = self._others(slice(0, n), int(count))
        else:
            found, where = self._nearest(self._queries(X), int(count))
            if return_distance and np.isnan(found).any():
                raise self._no_distances()
        return (found, self._kept[where]) if return_distance else self._kept[where]

    def _nearest(self, queries: Points, count: int) -> tuple[Matrix, Index]:
        """Distances (NaN where nobody knows them) and positions of the nearest rows, shape (m, count)."""
        if not self._pairwise:
            return nearest(self.kernel_, self._points, queries, count)
        # k(z, z) is the same for all neighbours of z: their order does not need it.
        diagonal = np.asarray(self.kernel_.diag(self._points), dtype=np.float64)
        found, where = np.empty((queries.n, count)), np.empty((queries.n, count), dtype=np.int64)

        def search(rows: slice, share: int) -> None:
            squared = diagonal - 2.0 * self.kernel_(queries.take(rows), self._points, dtype=np.float64)
            where[rows] = smallest_columns(squared, count)
            found[rows] = np.take_along_axis(squared, where[rows], 1)

        threads.stripes(queries.n, search)
        found += np.nan if self._common_diagonal is None else self._common_diagonal
        return np.sqrt(np.maximum(found, 0.0, out=found), out=found), where

    def _others(self, rows: slice, count: int) -> tuple[Matrix, Index]:
        """The same for training rows, none of which is its own neighbour."""
        own = np.arange(rows.start, rows.stop)
        queries = self._points if len(own) == self._points.n else self._points.take(rows)
        found, where = nearest(self.kernel_, self._points, queries, count + 1)
        others = where != own[:, None]
        others[others.all(axis=1), -1] = False  # a row behind count + 1 equal ones: leave out the last instead
        return found[others].reshape(-1, count), where[others].reshape(-1, count)

    def _count(self, number: int) -> int:
        """How many rows surely weigh `number`: as many as the lightest ones would need."""
        if self._weights is None:
            return number
        lightest = np.cumsum(np.sort(self._weights))
        return min(int(np.searchsorted(lightest, number)) + 1, len(lightest))

    # -- votes --------------------------------------------------------------------------------------------------------

    def _groups(self, m: int, count: int, numbers: int = 1) -> list[slice]:
        """Queries in groups whose neighbours and votes fit the memory."""
        entries = min(ENTRIES, budget() // 64)
        columns = self._ballots(np.zeros((1, 1), dtype=np.int64)).shape[2]
        return threads.spans(m, max(1, entries // ((count + numbers) * (columns + 4))))

    def _votes(self, X: Any) -> Iterator[tuple[Points, Matrix, Index, Matrix]]:
        """Queries in groups, with their neighbours' distances and positions, and the mean ballot, shape (m, T)."""
        points = self._queries(X)
        count = self._count(self.n_neighbors_)
        for rows in self._groups(points.n, count):
            group = points if rows == slice(0, points.n) else points.take(rows)
            found, where = self._nearest(group, count)
            factors = self._factors(group, found, where)
            yield group, factors, where, self._mean(factors, where, self._ballots(where), self.n_neighbors_)

    def _without_own(self, numbers: Index) -> Iterator[tuple[slice, Matrix]]:
        """Training rows in groups, with the mean ballot of their others for each number of neighbours: (rows, q, T)."""
        n = self._points.n
        count = min(self._count(int(numbers[-1])), n - 1)
        for rows in self._groups(n, count, len(numbers)):
            found, where = self._others(rows, count)
            factors = self._factors(self._points.take(rows), found, where)
            yield rows, self._means(factors, where, self._ballots(where), numbers)

    def _factors(self, queries: Points, found: Matrix, where: Index) -> Matrix:
        """What the vote of every neighbour counts, shape (m, count), in a unit of each query's own."""
        if self.weights == "uniform":
            return np.ones(where.shape)
        if self.weights == "kernel":
            return self._similarities(queries, where)
        found = np.asarray(found, dtype=np.float64)
        here = found[:, :1] == 0  # rows at distance 0 have all the votes
        return np.where(here, found == 0, found[:, :1] / np.where(found == 0, 1.0, found))

    def _similarities(self, queries: Points, where: Index) -> Matrix:
        """k(z, x) of every query with its neighbours; over the largest of them where log k is known."""
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

        threads.stripes(len(where), work, rows=GROUP)
        if kernel.exact_log:
            largest = values.max(axis=1, keepdims=True)
            return np.exp(values - np.where(np.isfinite(largest), largest, 0.0))
        if values.min() < 0:
            raise InvalidInput(
                "weights='kernel' needs similarities k(x, z) ≥ 0",
                got=f"{values.min():.3g}",
                advice="Use weights='distance' or 'uniform', or a kernel such as mc.Gaussian.",
            )
        return values

    def _mean(self, factors: Matrix, where: Index, ballots: Matrix, number: int) -> Matrix:
        """The mean ballot of the nearest rows of this total weight, shape (m, T)."""
        return self._means(factors, where, ballots, np.array([number]))[:, 0]

    def _means(self, factors: Matrix, where: Index, ballots: Matrix, numbers: Index) -> Matrix:
        """The mean ballot for several numbers of neighbours at once, shape (m, q, T).

        Where all of the votes count nothing (similarities of 0), each counts one.
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
                "Leaving one row out needs at least two rows", got="n_samples = 1", advice="Fit on more rows."
            )

    def _leave_one_out(self) -> Matrix:
        """The vote on every training row without itself, shape (n, T)."""
        check_is_fitted(self)
        self._require_two()
        return np.concatenate([votes[:, 0] for _, votes in self._without_own(np.array([self.n_neighbors_]))])

    def _everywhere(self, predictions: NDArray[Any]) -> NDArray[Any]:
        """Predictions on the rows that were kept, and those of the fit on the rows of weight zero."""
        if self._left_out is None:
            return predictions
        n = len(self._kept) + self._left_out.n
        whole = np.empty((n, *predictions.shape[1:]), dtype=predictions.dtype)
        whole[self._kept] = predictions
        whole[np.setdiff1d(np.arange(n), self._kept)] = self.predict(self._left_out.raw)
        return whole


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, (bool, np.bool_))


def _running(values: Matrix, w: Matrix | None, numbers: Index) -> Matrix:
    """Σ of values (m, count, T) over the first columns of total weight 1, 2, …: shape (m, q, T) for q such numbers.

    The last column counts with what is left.
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


@dataclass(eq=False, repr=False)
class KernelNeighborsClassifier(ClassifierMixin, KernelNeighbors):  # type: ignore[misc]  # scikit-learn has no types
    """The majority among the k nearest neighbours in feature space, ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z).

    Of equally near rows the first are taken; of classes with equal votes the first of `classes_` is predicted. A
    training row given as a query is its own neighbour. With a Gaussian (or any kernel that falls with the distance of
    vectors) these are the nearest neighbours of the vectors themselves, with `mc.Linear()` always.

    Parameters
    ----------
    kernel : a kernel on any objects, a rule X → kernel, or None for a Gaussian with the median width. Bare
        `Precomputed()` gives neighbours of any matrix k(Z, X), but their distances only where all k(x, x) are equal.
    n_neighbors : how many, from 1 to n; "loo" takes the number from 1 to min(n − 1, max(30, 2√n)) with the least
        leave-one-out error (of equal ones the smallest), all from one search.
    weights : what a vote counts: "uniform" one, "distance" 1/d (rows at distance 0 have all the votes), "kernel" the
        similarity k(x, z) ≥ 0 (where all are 0, one).

    Attributes
    ----------
    kernel_ : the kernel that was used.
    classes_ : the labels, sorted.
    n_neighbors_ : the number that was used.
    loo_errors_ : with "loo", the share of rows that the others get wrong, for 1, 2, … neighbours.

    >>> import mercer as mc
    >>> baskets = [{"milk", "bread"}, {"milk", "eggs"}, {"nails", "glue"}, {"nails", "paint", "glue"}]
    >>> model = mc.KernelNeighborsClassifier(mc.Intersection(), n_neighbors=1)
    >>> model.fit(baskets, ["food", "food", "tools", "tools"]).predict([{"eggs"}, {"glue", "paint"}])
    array(['food', 'tools'], dtype='<U5')
    >>> distances, positions = model.kneighbors([{"glue", "paint"}], 2)
    >>> positions, distances ** 2
    (array([[3, 2]]), array([[1., 2.]]))
    """

    kernel: Any = None
    _: KW_ONLY
    n_neighbors: Any = 5
    weights: str = "uniform"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remember n points X and their labels y, of any kind.

        A sample weight counts its row as often: weight 2 is the row given twice, which takes two of the k places;
        weight 0 leaves it out. (Not where one row is left out of several equal ones: n_neighbors="loo".)
        """
        points = training_points(X)
        given = labels(y, points.n, "KernelNeighborsRegressor")
        kept = self._remember(X, points, sample_weight)
        self.classes_, self._codes = np.unique(given[kept], return_inverse=True)
        self._choose()
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """The share of every class in the votes for m points, shape (m, classes)."""
        return np.concatenate([votes for *_, votes in self._votes(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points."""
        votes = self.predict_proba(X)
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The label that the other rows give to each training row, by up to `n_neighbors_` of them.

        A row of weight zero was left out anyway: its label is that of `predict`.
        """
        return self._everywhere(self.classes_[self._leave_one_out().argmax(axis=1)])

    @property
    def loo_score_(self) -> float:
        """The share of rows that the other rows label correctly: an estimate of `score` on new data."""
        right = self._leave_one_out().argmax(axis=1) == self._codes
        return float(np.average(right, weights=self._weights))

    def _ballots(self, where: Index) -> Matrix:
        return np.asarray(self._codes[where][:, :, None] == np.arange(len(self.classes_)), dtype=np.float64)

    def _errors(self, rows: slice, votes: Matrix) -> Matrix:
        wrong = votes.argmax(axis=2) != self._codes[rows, None]
        return np.asarray((wrong if self._weights is None else wrong * self._weights[rows, None]).sum(axis=0))


@dataclass(eq=False, repr=False)
class KernelNeighborsRegressor(RegressorMixin, KernelNeighbors):  # type: ignore[misc]  # scikit-learn has no types
    """The mean target of the k nearest neighbours in feature space, ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z).

    Of equally near rows the first are taken. A training row given as a query is its own neighbour.

    Parameters
    ----------
    kernel : a kernel on any objects, a rule X → kernel, or None for a Gaussian with the median width. Bare
        `Precomputed()` gives neighbours of any matrix k(Z, X), but their distances only where all k(x, x) are equal.
    n_neighbors : how many, from 1 to n; "loo" takes the number from 1 to min(n − 1, max(30, 2√n)) with the least
        squared leave-one-out error over all targets, each in units of its variance, from one search.
    weights : what a neighbour counts: "uniform" one, "distance" 1/d (rows at distance 0 alone, where there are any),
        "kernel" the similarity k(x, z) ≥ 0 (where all are 0, one): Nadaraya-Watson among the k nearest.

    Attributes
    ----------
    kernel_ : the kernel that was used.
    n_neighbors_ : the number that was used.
    loo_errors_ : with "loo", the mean squared leave-one-out error over the variance, for 1, 2, … neighbours.

    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = mc.KernelNeighborsRegressor(mc.Gaussian(1.0), n_neighbors=4).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2), round(model.loo_score_, 3)
    (array([1.]), 1.0)
    """

    kernel: Any = None
    _: KW_ONLY
    n_neighbors: Any = 5
    weights: str = "uniform"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remember n points X and their targets y, shape (n,) or (n, t).

        A sample weight counts its row as often: weight 2 is the row given twice, which takes two of the k places;
        weight 0 leaves it out. (Not where one row is left out of several equal ones: n_neighbors="loo".)
        """
        points = training_points(X)
        Y, self._single = targets(y, points.n)
        kept = self._remember(X, points, sample_weight)
        self._y = Y[kept]
        self._choose()
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean target of the neighbours of m points, shape (m,) or (m, t).

        With `return_std` also the standard deviation of their targets around it, in the same shape: the noise that the
        neighbours show (0 for a single one).
        """
        means, spreads = [], []
        for _, factors, where, votes in self._votes(X):
            means.append(votes)
            if return_std:
                squares = (self._ballots(where) - votes[:, None]) ** 2
                spreads.append(np.sqrt(self._mean(factors, where, squares, self.n_neighbors_)))
        mean = self._shaped(np.concatenate(means))
        return (mean, self._shaped(np.concatenate(spreads))) if return_std else mean

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The mean target of the neighbours of each training row without itself, up to `n_neighbors_` of them.

        A row of weight zero was left out anyway: its entry is that of `predict`.
        """
        return self._everywhere(self._shaped(self._leave_one_out()))

    @property
    def loo_score_(self) -> float:
        """R² of the leave-one-out predictions, averaged over targets: an estimate of `score` on new data."""
        return explained(self._y, self._leave_one_out(), self._weights)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Matrix:
        """Intervals that hold a new target with the given probability, by jackknife+ in closed form.

        Leaving out a row changes the prediction only where it was a neighbour: then the next one takes its place. So
        the n leave-one-out models need one search. Where rows are exchangeable the intervals cover at least 1 − 2(1 −
        coverage) of new targets, and close to `coverage` in practice (Barber et al. 2021). The guarantee is void if the
        same rows chose the kernel or `n_neighbors`: then use `ConformalRegressor`. Rows with weights have them in the
        quantiles, too: the intervals are for a new row that is drawn as the weights say.

        Parameters
        ----------
        X : m queries.
        coverage : in (0, 1).

        Returns
        -------
        lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        return self._jackknife_plus(X, coverage)

    def _jackknife_plus(self, X: Any, coverage: float) -> Matrix:
        check_is_fitted(self)
        n = self._points.n
        rank(coverage, n)  # refused before anything is computed
        residuals = np.abs(self._y - self._leave_one_out())
        points, number = self._queries(X), self.n_neighbors_
        count = min(self._count(number) + 1, n)
        ends = np.empty((points.n, residuals.shape[1], 2))
        for rows in self._groups(points.n, count, n):
            group = points.take(rows)
            found, where = self._nearest(group, count)
            others = np.empty((group.n, n, residuals.shape[1]))
            for out in range(count - 1, -1, -1):  # without the last there are as many as a prediction needs
                left = np.delete(where, out, axis=1)
                factors = self._factors(group, np.delete(found, out, axis=1), left)
                votes = self._mean(factors, left, self._ballots(left), number)
                if out == count - 1:
                    others[:] = votes[:, None]
                np.put_along_axis(others, where[:, out, None, None], votes[:, None], 1)
            ends[rows] = plus_ends(others, residuals, coverage, self._weights)
        return self._shaped(ends)

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[:, 0] if self._single else values

    def _ballots(self, where: Index) -> Matrix:
        return self._y[where]

    def _errors(self, rows: slice, votes: Matrix) -> Matrix:
        w = self._weights
        variance = np.average((self._y - np.average(self._y, axis=0, weights=w)) ** 2, axis=0, weights=w)
        squares = ((votes - self._y[rows, None]) ** 2 / np.where(variance > 0, variance, 1.0)).mean(axis=2)
        return np.asarray((squares if w is None else squares * w[rows, None]).sum(axis=0))
