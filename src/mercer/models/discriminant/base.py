"""Discriminants: classes, axes, and scores that are linear in the coordinates on the axes.

A discriminant projects points on at most k − 1 axes, in which the spread within classes is the same in all directions.
There a class is represented by its mean. Whether `predict` takes the nearest mean, or the most probable of Gaussians
with one covariance, the score of a class is linear in the coordinates, and so are the log-odds of any two classes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.base import KernelEstimator, Matrix, shortened, shown
from mercer.models.labels import Labelled
from mercer.solvers.discriminant_axes import Axes
from mercer.validation import check_whole_number
from mercer.words import first_few


class Discriminant(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn has no types
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    KernelEstimator,
):
    """A classifier by the class means in the coordinates of discriminant axes."""

    classes_: NDArray[Any]
    centres_: Matrix
    ratios_: Matrix
    _slopes: Matrix
    _offsets: Matrix

    @abstractmethod
    def _project(self, X: Any) -> Matrix:
        """The coordinates of m points, shape (m, r)."""

    def transform(self, X: Any) -> Matrix:
        """The coordinates of m points on the axes, shape (m, r): the largest ratio first, r ≤ k − 1.

        The origin is the mean of the class means, weighted by their priors; the unit is the (regularised) standard
        deviation within classes, where the axes are uncorrelated; the last class is on the positive side of every axis.
        """
        return self._project(X)

    def decision_function(self, X: Any) -> Matrix:
        """The scores of the classes, shape (m, k); for two classes second minus first, shape (m,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the largest score for each of m points."""
        largest = self._scores(X).argmax(axis=1)
        return self.classes_[largest]

    @property
    def _n_features_out(self) -> int:
        return len(self.ratios_)

    def _scores(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return self._project(X) @ self._slopes + self._offsets

    def _keep_axes(self, axes: Axes) -> None:
        self._axes, self.centres_, self.ratios_ = axes, axes.means, axes.ratios

    def _score_by(self, means: Matrix, priors: Matrix | None = None, covariance: Matrix | None = None) -> None:
        """Set the scores −½ (z − m_c)ᵀC⁻¹(z − m_c) + log π_c without the terms that all classes share: linear in z."""
        self._slopes = np.asarray(means.T if covariance is None else np.linalg.solve(covariance, means.T))
        logs = 0.0 if priors is None else np.log(priors)
        self._offsets = logs - 0.5 * np.einsum("kr,rk->k", means, self._slopes)


class GaussianDiscriminant(Discriminant):
    """A discriminant whose classes are Gaussians: its scores are log-probabilities, up to a term all classes share."""

    def predict_proba(self, X: Any) -> Matrix:
        """p(c | x) for m points, shape (m, k)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Matrix:
        """log p(c | x) for m points, shape (m, k)."""
        return np.asarray(log_softmax(self._scores(X), axis=1))


def class_priors(priors: Any, data: Labelled) -> Matrix:
    """One probability per class: its share of the weight, or as passed, in the order of the classes or by label."""
    k = len(data.classes)
    if priors is None:
        sizes = np.bincount(data.codes, data.weights, minlength=k)
        return np.asarray(sizes / sizes.sum())
    required = f"`priors` must be None, or {k} numbers > 0 with the sum 1, in the order of the classes or by label"
    names = first_few(data.classes, 10, shown)
    advice = f"Pass one number for each of the classes {names}."
    if isinstance(priors, Mapping):
        if priors.keys() != set(data.classes.tolist()):
            raise InvalidInput(required, got=shortened(dict(priors)), advice=advice)
        priors = [priors[label] for label in data.classes.tolist()]
    try:
        shares = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=shortened(priors), advice=advice) from None
    if shares.shape != (k,) or not (shares > 0).all() or not abs(shares.sum() - 1) < 1e-6:
        raise InvalidInput(required, got=shortened(priors), advice=advice)
    return np.asarray(shares / shares.sum())


def number_of_axes(n_components: Any, k: int) -> int:
    """The number of axes for k classes by the parameter `n_components`."""
    if n_components is None:
        return k - 1
    advice = f"Pass None for all axes: the means of {k} classes differ along at most {k - 1}."
    return check_whole_number(n_components, "n_components", most=k - 1, alternative="None", advice=advice)
