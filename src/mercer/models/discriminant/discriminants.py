"""Linear discriminants: Gaussians with one covariance, and Fisher's directions (lecture 000)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.kernels.vectors.dot import Linear
from mercer.models.base import Matrix, check_columns, outside, penalties, training_points
from mercer.models.discriminant.base import (
    Discriminant,
    GaussianDiscriminant,
    class_priors,
    number_of_axes,
)
from mercer.models.labels import Labelled
from mercer.solvers.discriminant_axes import Whitened, by_columns, principal
from mercer.validation import check_number


class _Columns(Discriminant):
    """Discriminants of vectors: directions in the space of the columns."""

    shrinkage: Any
    alpha: Any
    means_: Matrix
    _whitened: Whitened

    @property
    def directions_(self) -> Matrix:
        """The axes as vectors, shape (d, r): transform(x) = (x − origin) directions."""
        check_is_fitted(self)
        return self._axes.directions

    @property
    def coef_(self) -> Matrix:
        """The weights of the scores, shape (k, d); for two classes of their difference, (1, d)."""
        check_is_fitted(self)
        weights = (self._axes.directions @ self._slopes).T
        return weights[1:] - weights[:1] if len(weights) == 2 else weights

    @property
    def intercept_(self) -> Matrix:
        """The constants of the scores, shape (k,); for two classes of their difference, (1,)."""
        check_is_fitted(self)
        constants = self._offsets - self._axes.origin @ self._axes.directions @ self._slopes
        return constants[1:] - constants[:1] if len(constants) == 2 else constants

    @property
    def covariance_(self) -> Matrix:
        """The regularised covariance within classes, by which distances are measured, shape (d, d)."""
        check_is_fitted(self)
        half, d = self._whitened.half, self._whitened.half.shape[1]
        advice = "Use `transform` or `predict`, which do not need it."
        memory.allocatable(2 * 8 * d * d, f"The covariance of {d:,} columns", advice)
        covariance = half.T @ half
        covariance.flat[:: d + 1] += self._whitened.ridge
        return covariance

    def _whiten(self, X: Any, y: Any, sample_weight: Any) -> tuple[Labelled, Whitened]:
        """The classes and their whitened columns; sets the attributes that all discriminants of columns have."""
        name = type(self).__name__
        shrinkage = _shrinkage(self.shrinkage)
        alpha = float(penalties(self.alpha, 1)[0])
        points = training_points(X)
        data = Labelled.of(points, y, sample_weight, model=name, regressor="Ridge")
        A = data.points.vectors()
        n, d = A.shape
        advice = "Fit on fewer rows, or use KernelDiscriminant or KernelFisherDiscriminant."
        memory.allocatable(4 * 8 * n * d, f"{name} of {n:,} rows × {d:,} columns", advice)
        A = np.asarray(A.toarray() if sp.issparse(A) else A, dtype=np.float64)
        whitened = by_columns(A, data.codes, data.weights, len(data.classes), shrinkage=shrinkage, alpha=alpha)
        self.kernel_ = Linear()
        check_columns(self, X, reset=True)
        self.classes_, self.means_, self._whitened = data.classes, whitened.means, whitened
        self.shrinkage_, self.rank_ = whitened.shrinkage, whitened.rank
        self.status_ = f"covariance of rank {whitened.rank} in {d} columns"
        if whitened.ridge.any():
            self.status_ += f", regularised by {whitened.ridge.mean():.3g} on its diagonal"
        elif whitened.rank < d:
            self.status_ += ", inverted in the directions with spread within classes"
        if whitened.lost:
            self.status_ += "; class means also differ in other directions, which are ignored"
            warnings.warn(
                f"Class means differ in directions without spread within classes (only {whitened.rank} of {d} have "
                "any), which are ignored. Set alpha > 0 or shrinkage > 0 to use them.",
                UserWarning,
                stacklevel=outside(),
            )
        return data, whitened

    def _project(self, X: Any) -> Matrix:
        A = self._queries(X).vectors()
        D, origin = self._axes.directions, self._axes.origin
        return np.asarray(A @ D - origin @ D if sp.issparse(A) else (A - origin) @ D)


@dataclass(eq=False, repr=False)
class LinearDiscriminant(_Columns, GaussianDiscriminant):
    """Linear discriminant analysis: each class is a Gaussian, all with one covariance Σ, so log-odds are linear in x.

        log p(c | x) = m_cᵀΣ⁻¹x − ½ m_cᵀΣ⁻¹m_c + log π_c + a term that all classes share,
        Σ = ((1 − s) S_w + s T + alpha I)/n,    S_w = Σᵢ (xᵢ − m_yᵢ)(xᵢ − m_yᵢ)ᵀ,  T = tr(S_w)/d I.

    Without s and alpha, the means, Σ and π maximise the likelihood (n is the total weight of the rows).

    A singular Σ (constant or dependent columns, more columns than rows, for s = alpha = 0) is inverted in the
    directions with spread within classes, with columns in units of that spread, as in scikit-learn's solver "svd"; if
    class means also differ in other directions, there is a warning.

    Parameters
    ----------
    shrinkage : float or str
        s in [0, 1], towards one variance for all columns, in their units; or "auto", which shrinks correlations only, T
        = diag(S_w), with the s of least expected error (Ledoit and Wolf).
    alpha : float
        A ridge on the scatter S_w, ≥ 0, not scaled by the number of rows.
    priors
        π, numbers > 0 with the sum 1 in the order of the classes or by label; None for their shares of the rows.

    Attributes
    ----------
    classes_, priors_ : array
        The labels, sorted, and their prior probabilities.
    means_, covariance_ : array
        The class means, shape (k, d), and Σ, shape (d, d).
    coef_, intercept_ : array, float or array
        The linear scores, (k, d) and (k,); the log-odds, (1, d) and (1,), for two classes.
    directions_, ratios_ : array
        The axes of `transform`, shape (d, r), and between-class over within-class scatter on each.
    centres_ : array
        The class means on the axes, shape (k, r).
    shrinkage_, rank_, status_
        The s that was used, the rank of S_w, and how Σ was inverted, in words.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, section 4.3.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = mc.LinearDiscriminant().fit(X, y)
    >>> model.score(X, y), model.transform(X).shape, model.ratios_.round(2)
    (1.0, (178, 2), array([9.08, 4.13]))
    >>> print(model.status_)
    covariance of rank 13 in 13 columns
    """

    _: KW_ONLY
    shrinkage: Any = 0.0
    alpha: float = 0.0
    priors: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n rows X and their labels y, of any type. A sample weight says how often its row counts."""
        data, whitened = self._whiten(X, y, sample_weight)
        self.priors_ = class_priors(self.priors, data)
        axes = principal(whitened.whitening, whitened.means, self.priors_)
        self._keep_axes(axes)
        self._score_by(axes.means, self.priors_)
        return self


@dataclass(eq=False, repr=False)
class FisherDiscriminant(_Columns):
    """Fisher's discriminant: the directions along which class means vary most, relative to the spread within classes.

        max_a aᵀS_b a/aᵀA a,    A = (1 − s) S_w + s T + alpha I,    S_b = Σ_c n_c (m_c − m)(m_c − m)ᵀ,

    gives the first axis, and so on for the others, up to k − 1. Nothing is assumed about distributions. For two classes
    the direction is A⁻¹(m₂ − m₁), as in least squares with targets −n/n₁ and n/n₂. `predict` takes the class whose mean
    is nearest on the axes, in units of the spread within classes, so unlike in `LinearDiscriminant` class sizes do not
    matter. A singular A is treated as there.

    Parameters
    ----------
    n_components : int or None
        The number of axes, 1 to k − 1; by default all on which class means differ.
    shrinkage, alpha
        As for `LinearDiscriminant`.

    Attributes
    ----------
    classes_, means_ : array
        The labels, sorted, and the class means, shape (k, d).
    directions_ : array
        The axes, shape (d, r), scaled to unit spread: aᵀA a = n.
    ratios_ : array
        aᵀS_b a/aᵀA a on each axis, shape (r,).
    centres_ : array
        The class means on the axes, shape (k, r).
    coef_, intercept_ : array, float or array
        The linear scores, (k, d) and (k,); their difference, (1, d) and (1,), for two classes.
    covariance_, shrinkage_, rank_, status_
        As for `LinearDiscriminant`.

    References
    ----------
    Fisher, The use of multiple measurements in taxonomic problems, 1936.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mc.FisherDiscriminant(n_components=1).fit(X, y)
    >>> model.transform(X[:2]).round(2), model.ratios_.round(2), round(model.score(X, y), 3)
    (array([[-8.14],
           [-7.2 ]]), array([32.19]), 0.987)
    """

    n_components: int | None = None
    _: KW_ONLY
    shrinkage: Any = 0.0
    alpha: float = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n rows X and their labels y, of any type. A sample weight says how often its row counts."""
        data, whitened = self._whiten(X, y, sample_weight)
        count = number_of_axes(self.n_components, len(data.classes))
        axes = principal(whitened.whitening, whitened.means, class_priors(None, data), count)
        self._keep_axes(axes)
        self._score_by(axes.means)
        return self


def _shrinkage(shrinkage: Any) -> float | str:
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return shrinkage
    return check_number(shrinkage, "shrinkage", least=0, most=1, alternative="'auto'", such_as=0.1)
