"""Nadaraya-Watson: the weighted mean of the targets, or the weighted majority of the labels, around every query."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.base import Rows, refitted, shortened, weights
from mercer.models.labels import labels
from mercer.models.local.base import LocalEstimator, LocalSmoother
from mercer.smoothing import local_polynomial as local
from mercer.tuning.local_losses import LogLoss

Matrix = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class NadarayaWatsonRegressor(LocalSmoother):
    """The mean of the targets, weighted by similarity: f(z) = Σ w(z, xᵢ) yᵢ/Σ w(z, xᵢ).

    It is the conditional mean E[t | z] under a Parzen density of (x, t) whose t-part has mean zero (lecture 004), and
    the kernel regression of lecture 000. There is no training. With a small width the closest point decides, with a
    large one the mean of all points. Far from all data the nearest point decides, and `effective_sample_size` is 1.

    Parameters
    ----------
    kernel : Kernel, class, rule or None
        A kernel or smoothing weight on any objects, a class of them such as mc.Epanechnikov whose width is `bandwidth`,
        a rule X → kernel, or None for the Gaussian.
    bandwidth : float, array, str or None
        The kernel's sigma: a number > 0, one per column, "loo" (one per column, of least leave-one-out squared error;
        "loo-common": one factor for all columns), "scott" or "silverman". The default is "loo" if `kernel` is None or a
        class; otherwise the kernel is used unchanged.

    Attributes
    ----------
    kernel_ : Kernel
        The similarity with its bandwidth.
    bandwidth_
        Its sigma, a number or (d,); None if it has no sigma.
    status_ : str
        How the bandwidth was chosen.
    loo_loss_ : float
        The leave-one-out error at bandwidths chosen by "loo" (targets in units of their deviation if several).
    loo_predictions_, loo_score_ : array, float
        f₋ᵢ(xᵢ), and their R².
    degrees_of_freedom_ : float
        Σᵢ w(xᵢ, xᵢ)/Σⱼ w(xᵢ, xⱼ).

    References
    ----------
    Nadaraya, On estimating regression, 1964. Watson, Smooth regression analysis, 1964.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 61)[:, None]
    >>> model = mc.NadarayaWatsonRegressor(bandwidth=0.3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5], [100.0]]).round(2)
    array([ 0.95, -0.28])
    >>> model.effective_sample_size([[1.5], [100.0]]).round(1)
    array([10.6,  1. ])
    >>> words = mc.NadarayaWatsonRegressor(mc.Delta()).fit(["a", "a", "b"], [1.0, 2.0, 5.0])
    >>> words.predict(["a", "b", "c"]).round(3)                       # no row is like "c": the mean of all
    array([1.5  , 5.   , 2.667])
    """

    kernel: Any = None
    _: KW_ONLY
    bandwidth: Any = None

    _in_batches: ClassVar[bool] = True
    _keeps_rows: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep n points X and targets y, shape (n,) or (n, t), and choose the bandwidth.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (But bandwidth="loo" and `loo_predictions_` leave out a row with all its weight.)

        Rows of a `Batches` or of Dask stay where they are, on disk or with the workers, and `predict` sums over them;
        leave-one-out and standard errors need rows in memory. A rule named by `bandwidth` chooses on a sample of s
        rows, times (s/n)^(1/(d+4)).
        """
        points = self._points(X)
        self._rows = Rows.of(points, self._targets(points, y), sample_weight)
        self._forget()
        self._choose_by_error()
        return self


@dataclass(eq=False, repr=False)
class NadarayaWatsonClassifier(ClassifierMixin, LocalEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The majority of the labels, weighted by similarity: p(c | z) = Σ_{yᵢ = c} w(z, xᵢ)/Σ w(z, xᵢ).

    For two classes with labels t = ±1 this is sign(Σ w(z, xᵢ) tᵢ) of lecture 000.

    Parameters
    ----------
    kernel : Kernel, class, rule or None
        A kernel or smoothing weight on any objects, a class of them such as mc.Epanechnikov whose width is `bandwidth`,
        a rule X → kernel, or None for the Gaussian.
    bandwidth : float, array, str or None
        The kernel's sigma: a number > 0, one per column, "loo" (one per column, of greatest leave-one-out likelihood;
        "loo-common": one factor for all columns), "scott" or "silverman". The default is "loo" if `kernel` is None or a
        class; otherwise the kernel is used unchanged.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    kernel_, bandwidth_
        The similarity, and its sigma (None if it has no sigma).
    status_ : str
        How the bandwidth was chosen.
    loo_loss_ : float
        The leave-one-out log loss at bandwidths chosen by "loo".

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0]])
    >>> model = mc.NadarayaWatsonClassifier(bandwidth=1.0).fit(X, ["low", "low", "low", "high", "high"])
    >>> model.predict([[0.5], [9.0], [1000.0]])
    array(['low', 'high', 'high'], dtype='<U4')
    >>> model.predict_proba([[6.0]]).round(3), model.loo_score_
    (array([[0.5, 0.5]]), 1.0)
    """

    classes_: NDArray[Any] = field(init=False)

    kernel: Any = None
    _: KW_ONLY
    bandwidth: Any = None

    _in_batches: ClassVar[bool] = True
    _keeps_rows: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep n points X and their labels y, of any kind, and choose the bandwidth.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (But bandwidth="loo" leaves out a row with all its weight.)

        Rows of a `Batches` or of Dask stay where they are, as for `NadarayaWatsonRegressor`.
        """
        return self._start(X, y, None, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Append rows, of old classes or new ones; the bandwidth of the first call is kept.

        Parameters
        ----------
        classes
            Labels that may occur later; until then their probability is 0.
        """
        if not hasattr(self, "_rows"):
            return self._start(X, y, classes, sample_weight)
        points = self._queries(X)
        new_labels = labels(y, points.n, "NadarayaWatsonRegressor")
        w = weights(sample_weight, points.n)
        old, old_labels = self._rows, self.classes_[self._rows.y.argmax(axis=1)]
        union = _union(self.classes_, classes, new_labels if w is None else new_labels[w > 0])
        new = Rows.of(points, _indicators(new_labels, union), sample_weight)
        with refitted(self):
            self._rows = replace(old, y=_indicators(old_labels, union), single=False)
            self._rows = self._append(new)
        self.classes_ = union
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every query, shape (m,); of equally probable ones the first."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Matrix:
        """p(c | z), shape (m, classes): the shares of the weights, which sum to one."""
        return _shares(self._fit_at(self._query_points(X)))

    def predict_log_proba(self, X: Any) -> Matrix:
        """log p(c | z), shape (m, classes); −∞ for a class without any weight."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def loo_proba_(self) -> Matrix:
        """p₋ᵢ(c | xᵢ): the probabilities at each training row from all others, shape (n, classes)."""
        check_is_fitted(self)
        rows = self._rows
        if len(rows) < 2:
            raise InvalidInput("Leave-one-out requires at least two rows", got="one row", advice="Fit on more rows.")
        shares = _shares(self._fit_at(None, exclude=True))
        if rows.left_out is None:
            return shares
        everywhere = np.empty((len(rows) + rows.left_out.n, shares.shape[1]))
        everywhere[rows.kept] = shares
        everywhere[np.setdiff1d(np.arange(len(everywhere)), rows.kept)] = self.predict_proba(rows.left_out.raw)
        return everywhere

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The class of each row as predicted from all others, shape (n,)."""
        return np.asarray(self.classes_[self.loo_proba_.argmax(axis=1)])

    @property
    def loo_score_(self) -> float:
        """The share of rows that are classified correctly from all others: an estimate of `score` on new data."""
        rows = self._rows
        right = self.loo_proba_[rows.kept].argmax(axis=1) == rows.y.argmax(axis=1)
        return float(self._v @ right / self._v.sum())

    def _start(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        points = self._points(X)
        row_labels = labels(self._targets(points, y), points.n, "NadarayaWatsonRegressor")
        w = weights(sample_weight, points.n)
        self.classes_ = _union(None, classes, row_labels if w is None else row_labels[w > 0])
        self._rows = Rows.of(points, _indicators(row_labels, self.classes_), sample_weight)
        self._choose(LogLoss)
        return self


def _indicators(row_labels: NDArray[Any], classes: NDArray[Any]) -> Matrix:
    """One column per class: 1 if the row has its label, else 0."""
    return (row_labels[:, None] == classes[None, :]).astype(np.float64)


def _union(old: NDArray[Any] | None, more: Any, row_labels: NDArray[Any]) -> NDArray[Any]:
    """All labels, sorted. They must be of one kind: NumPy would convert numbers to text if some labels are text."""
    parts = [row_labels] if more is None else [row_labels, np.asarray(more)]
    parts = parts if old is None else [old, *parts]
    if len({_is_text(part) for part in parts}) > 1:
        examples = ", ".join(shortened(part[:3].tolist()) for part in parts)
        advice = "Convert all labels to text, or all to numbers."
        raise InvalidInput("Either all labels or none must be text", got=examples, advice=advice)
    return np.unique(np.concatenate(parts))


def _is_text(row_labels: NDArray[Any]) -> bool:
    return row_labels.dtype.kind in "US" or (
        row_labels.dtype == object and isinstance(row_labels.flat[0], (str, bytes))
    )


def _shares(fits: local.LocalFit) -> Matrix:
    """Probabilities ≥ 0 that sum to 1, despite rounding."""
    p = np.maximum(fits.values, 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
