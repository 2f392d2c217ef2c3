"""Nearest neighbours in feature space: the oldest memory-based method, with any kernel on any objects (lecture 001)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.models.base import Matrix, targets, training_points
from mercer.models.labels import labels
from mercer.models.least_squares.smoother import explained
from mercer.models.local.neighbors_base import Index, KernelNeighbors
from mercer.models.quantiles import plus_ends, rank


@dataclass(eq=False, repr=False)
class KernelNeighborsClassifier(ClassifierMixin, KernelNeighbors):  # type: ignore[misc]  # scikit-learn has no types
    """The majority among the k nearest neighbours in feature space, ‖phi(x) − phi(z)‖² = k(x, x) − 2k(x, z) + k(z, z).

    Among equally near rows the first count; among classes with equal votes the first of `classes_` is predicted. A
    training row passed as a query is its own neighbour. With `mc.Linear()`, with a Gaussian and with any kernel that
    decreases with the distance of vectors, these are the nearest neighbours of the vectors themselves.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel on any objects, a rule X → kernel, or None for a Gaussian with the median width. Bare `Precomputed()`
        gives the neighbours for any matrix k(Z, X), but their distances only if all k(x, x) are equal.
    n_neighbors : int or str
        The number of neighbours, from 1 to n; "loo" chooses the number from 1 to min(n − 1, max(30, 2√n)) with the
        least leave-one-out error (the smallest of equal ones), all from one search.
    weights : str
        The weight of a vote: "uniform" 1, "distance" 1/d (rows at distance 0 have all the votes), "kernel" the
        similarity k(x, z) ≥ 0 (1 if all are 0).

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    classes_ : array
        The labels, sorted.
    n_neighbors_ : int
        The number that was used.
    loo_errors_ : array
        With "loo", the share of rows that the others misclassify, for 1, 2, … neighbours.

    Examples
    --------
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

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, which takes two of
        the k places; weight 0 leaves it out. (But n_neighbors="loo" leaves out a row with all its weight.)
        """
        points = training_points(X)
        row_labels = labels(y, points.n, "KernelNeighborsRegressor")
        kept = self._remember(X, points, sample_weight)
        self.classes_, self._codes = np.unique(row_labels[kept], return_inverse=True)
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
    def loo_proba_(self) -> Matrix:
        """The share of every class in the votes of up to `n_neighbors_` other rows, for each training row.

        For a row of weight 0 it is that of `predict_proba`, which leaves out that row anyway.
        """
        return self._everywhere(self._leave_one_out(), self.predict_proba)

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The label of each training row as predicted from up to `n_neighbors_` other rows.

        For a row of weight 0 it is the label of `predict`, which leaves out that row anyway.
        """
        return self._everywhere(self.classes_[self._leave_one_out().argmax(axis=1)], self.predict)

    @property
    def loo_score_(self) -> float:
        """The share of rows that are classified correctly from the others: an estimate of `score` on new data."""
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

    Among equally near rows the first count. A training row passed as a query is its own neighbour.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel on any objects, a rule X → kernel, or None for a Gaussian with the median width. Bare `Precomputed()`
        gives the neighbours for any matrix k(Z, X), but their distances only if all k(x, x) are equal.
    n_neighbors : int or str
        The number of neighbours, from 1 to n; "loo" chooses the number from 1 to min(n − 1, max(30, 2√n)) with the
        least squared leave-one-out error over all targets, each in units of its variance, from one search.
    weights : str
        The weight of a neighbour: "uniform" 1, "distance" 1/d (if rows are at distance 0, only these count), "kernel"
        the similarity k(x, z) ≥ 0 (1 if all are 0), which is Nadaraya-Watson among the k nearest.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    n_neighbors_ : int
        The number that was used.
    loo_errors_ : array
        With "loo", the mean squared leave-one-out error divided by the variance, for 1, 2, … neighbours.

    Examples
    --------
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

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, which takes two of
        the k places; weight 0 leaves it out. (But n_neighbors="loo" leaves out a row with all its weight.)
        """
        points = training_points(X)
        Y, self._single = targets(y, points.n)
        kept = self._remember(X, points, sample_weight)
        self._y = Y[kept]
        self._choose()
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean target of the neighbours of m points, shape (m,) or (m, t).

        With `return_std` also the standard deviation of their targets around it, in the same shape: an estimate of the
        noise (0 for a single neighbour).
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
        """The mean target of up to `n_neighbors_` neighbours of each training row, without the row itself.

        For a row of weight 0 it is the value of `predict`, which leaves out that row anyway.
        """
        return self._everywhere(self._shaped(self._leave_one_out()), self.predict)

    @property
    def loo_score_(self) -> float:
        """R² of the leave-one-out predictions, averaged over targets: an estimate of `score` on new data."""
        return explained(self._y, self._leave_one_out(), self._weights)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Matrix:
        """Intervals that contain a new target with the given probability, by jackknife+ in closed form.

        Leaving out a row changes a prediction only if it was a neighbour: then the next one takes its place. So the n
        leave-one-out models need one search. If rows are exchangeable, the intervals cover at least
        1 − 2(1 − coverage) of new targets, and close to `coverage` in practice (Barber et al. 2021). There is no
        guarantee if the same rows were used to choose the kernel or `n_neighbors`: then use `ConformalRegressor`.
        Sample weights also enter the quantiles: the intervals are for a new row that is drawn with these weights.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            The probability, in (0, 1).

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        return self._jackknife_plus(X, coverage)

    def _jackknife_plus(self, X: Any, coverage: float) -> Matrix:
        check_is_fitted(self)
        n = self._points.n
        rank(coverage, n)  # refuse an impossible coverage before anything is computed
        residuals = np.abs(self._y - self._leave_one_out())
        points, number = self._queries(X), self.n_neighbors_
        count = min(self._count(number) + 1, n)
        ends = np.empty((points.n, residuals.shape[1], 2))
        for rows in self._groups(points.n, count, n):
            group = points.take(rows)
            distances, where = self._nearest(group, count)
            others = np.empty((group.n, n, residuals.shape[1]))
            for out in range(count - 1, -1, -1):  # without the last one there are as many as a prediction needs
                left = np.delete(where, out, axis=1)
                factors = self._factors(group, np.delete(distances, out, axis=1), left)
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
