"""Discriminants in the Hilbert space of a kernel, by ridge regression to one-hot targets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax

from mercer.errors import InvalidInput
from mercer.models.base import Matrix, check_columns, penalties, training_points
from mercer.models.discriminant.base import GaussianDiscriminant, class_priors, number_of_axes
from mercer.models.labels import Labelled
from mercer.models.least_squares.classifier import kernel_ridge, one_hot
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.solver_parameters import check_solver_parameters
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import auto
from mercer.solvers.discriminant_axes import Axes, by_scores, covariance_within_classes, principal

# Smaller relative differences of the classes are rounding, by the bytes of a value; Nyström's iterations stop earlier.
RESOLUTION, RESOLUTION_NYSTROM = {4: 1e-6, 8: 1e-12}, 1e-8
SOLVERS = tuple(name for name in auto.SOLVERS if name != "fourier")
"""Solvers whose function is an expansion, of which the axes are combinations."""
# Added to the variances on the axes, in units of the regularised one, in case a fit leaves no spread within classes.
LEAST_VARIANCE = 1e-10


class Expanded(KernelRidge):
    """Kernel ridge regression whose function is an expansion, whatever the number of points."""

    _in_batches: ClassVar[bool] = False
    _grids: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class Regressed:
    """The classes, the ridge regression to their one-hot targets, and its residuals, shape (n, k)."""

    data: Labelled
    ridge: KernelRidge
    residuals: Matrix

    def axes(self, priors: Matrix, n_components: int | None = None) -> Axes:
        """The discriminant axes as combinations of the k functions."""
        f = self.ridge.function_
        resolution = RESOLUTION[f.coef.dtype.itemsize]
        if self.ridge.solver_ == "nystrom":
            resolution = max(resolution, RESOLUTION_NYSTROM)
        W, means = by_scores(self.residuals, self.data.codes, self.data.weights, resolution=resolution)
        return principal(W, means, priors, n_components)

    def covariance(self, axes: Axes) -> Matrix:
        """The covariance of the rows on the axes around the means of their classes, shape (r, r)."""
        spread = -self.residuals @ axes.directions  # up to the target's coordinates, equal for all rows of a class
        return covariance_within_classes(spread, self.data.codes, self.data.weights, len(self.data.classes))

    def covariance_left_out(self, axes: Axes) -> Matrix:
        """The covariance of each row on the axes of a fit without it, around the class means of the fit with all rows.

        The origin of a fit is the mean of its targets: ȳ, and ȳ − wᵢ (yᵢ − ȳ)/(W − wᵢ) without row i, so that all
        points move away from the class of the row that is left out. Coordinates are therefore taken from the origin of
        the same fit.
        """
        data = self.data
        w = (np.ones(len(data)) if data.weights is None else data.weights)[:, None]
        y, mean = np.eye(len(data.classes))[data.codes], axes.origin
        rest = np.maximum(w.sum() - w, w.min())  # not 0 by rounding if one row outweighs all others
        origins = np.clip(mean - w / rest * (y - mean), 0.0, 1.0)
        left_out = (self.ridge.loo_predictions_[data.kept] - origins) @ axes.directions
        spread = left_out - axes.means[data.codes]
        return np.asarray((w * spread).T @ spread / w.sum())


class _HilbertDiscriminant(GaussianDiscriminant):
    """Discriminants whose axes are functions f = Σ cᵢ k(xᵢ, ·) + b."""

    kernel: Any
    alpha: Any
    solver: str
    tune: str | None
    n_centers: int | None
    centers: Any
    tol: float | None
    budget: Any
    random_state: int
    function_: Expansion

    def _regress(self, X: Any, y: Any, sample_weight: Any, class_weight: Any = None) -> Regressed:
        """Ridge regression to one-hot targets; sets the attributes that both kernel discriminants have."""
        if isinstance(self.alpha, str):
            if self.alpha != "loo":
                raise InvalidInput(
                    "`alpha` must be a number > 0 or 'loo'",
                    got=repr(self.alpha),
                    advice="Pass a number such as 0.1, or 'loo' to choose it by leave-one-out.",
                )
        else:
            penalties(self.alpha, 1, positive=True)
        check_solver_parameters(self, SOLVERS)
        points = training_points(X)
        data = Labelled.of(points, y, sample_weight, class_weight, model=type(self).__name__, regressor="KernelRidge")
        Y, w = one_hot(data, points.n)
        ridge = kernel_ridge(self, self.alpha, fit_intercept=True, kind=Expanded).fit(X, Y, w)
        if isinstance(self.alpha, str) and self.tune is None:  # one alpha for all classes
            path = ridge.path_
            alpha = float(path.alphas[path.errors.sum(axis=1).argmin()])
            ridge = kernel_ridge(self, alpha, fit_intercept=True, kind=Expanded).fit(X, Y, w)
        self.classes_, self.kernel_ = data.classes, ridge.kernel_
        self.alpha_ = float(np.ravel(ridge.alpha_)[0])
        self.solver_, self.status_ = ridge.solver_, ridge.status_
        self.tuning_ = getattr(ridge, "tuning_", None)
        check_columns(self, X, reset=True)
        if ridge.solver_ == "nystrom":
            residuals = Y[data.kept] - ridge.function_(data.points)
        else:  # an exact solution has wᵢ rᵢ = alpha cᵢ
            residuals = self.alpha_ * ridge.dual_coef_.astype(np.float64)
            residuals = residuals if data.weights is None else residuals / data.weights[:, None]
        return Regressed(data, ridge, residuals)

    def _keep_functions(self, axes: Axes, ridge: KernelRidge) -> None:
        """Set the axes as functions: combinations of the fitted ones, minus the origin."""
        self._keep_axes(axes)
        f = ridge.function_
        constants = (ridge.intercept_ - axes.origin) @ axes.directions
        coef = (f.coef @ axes.directions).astype(f.coef.dtype, copy=False)
        self.function_ = Expansion(f.kernel, f.points, coef, Tail.constant(constants))

    def _project(self, X: Any) -> Matrix:
        points = self._queries(X)
        return self.function_(points).astype(np.float64, copy=False)


@dataclass(eq=False, repr=False)
class KernelFisherDiscriminant(_HilbertDiscriminant):
    """Fisher's discriminant in the Hilbert space of a kernel: functions that separate classes relative to their spread.

        max_f ⟨f, S_b f⟩/⟨f, (S_w + alpha I) f⟩,

    with the scatters of `FisherDiscriminant` for the feature vectors k(xᵢ, ·); with `mc.Linear()` it is that model. It
    is kernel ridge regression with an intercept: to targets −n/n₁ and n/n₂ for two classes, to one-hot targets with a
    small eigenproblem for more. It needs one factorisation, or Nyström centres if there is no memory for that.

    `predict` and probabilities follow from linear discriminant analysis in the projected space: Gaussians with one
    covariance around the class means on the axes, with the classes' shares as priors. A flexible function gives its
    training rows less spread than new rows have, and the probabilities are then overconfident; with `calibrated` the
    covariance is computed from rows left out, in closed form, around the class means of the fit. Axes and means are
    kept, so that classes never change places: over the training rows of a class its mean log-odds against any other
    class are higher than over the rows of that other class.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    n_components : int or None
        The number of axes, 1 to k − 1; by default all on which class means differ.
    alpha : float or str
        The ridge on the scatter S_w, > 0, not scaled by the number of rows; "loo" chooses it by the leave-one-out error
        of the regression.
    class_weight : dict, "balanced" or None
        None, "balanced" (all classes count the same, however many rows they have) or numbers > 0 by label, in the
        scatters and as priors.
    calibrated : bool
        Whether the spread of the classes on the axes is computed from rows left out, which costs a matrix inverse. The
        probabilities then refer to classes as frequent as in `fit`: class weights affect `predict` only.
    solver, tune, n_centers, centers, tol, budget, random_state
        As for `KernelRidge`.

    Attributes
    ----------
    classes_, priors_ : array
        The labels, sorted, and their shares, by weight.
    function_ : Expansion
        The axes as functions, an `Expansion`: transform(X) = function_(X), shape (m, r).
    ratios_ : array
        ⟨f, S_b f⟩/⟨f, (S_w + alpha I) f⟩ on each axis, shape (r,).
    centres_ : array
        The class means on the axes, shape (k, r).
    kernel_, alpha_, solver_, status_ : Kernel, float or array, str
        The kernel, penalty and solver that were used, and the fit in words.
    tuning_ : record
        The result of `tune`, or None.

    References
    ----------
    Mika, Rätsch, Weston, Schölkopf and Müller, Fisher discriminant analysis with kernels, 1999. Hastie, Buja and
    Tibshirani, Penalized discriminant analysis, 1995.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(100, factor=0.4, noise=0.05, random_state=0)
    >>> rings = mc.KernelFisherDiscriminant(mc.Gaussian(1.0)).fit(X, y)
    >>> z = rings.transform(X)[:, 0]
    >>> bool(z[y == 0].max() < z[y == 1].min()), rings.score(X, y)
    (True, 1.0)
    """

    _added: ClassVar[dict[str, Any]] = {"_rarer": 0.0}

    kernel: Any = None
    _: KW_ONLY
    n_components: int | None = None
    alpha: Any = 1e-3
    class_weight: Any = None
    calibrated: bool = False
    solver: str = "auto"
    tune: str | None = None
    n_centers: int | None = None
    centers: Any = "uniform"
    tol: float | None = None
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and their labels y, of any type.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (This does not hold where rows are left out or drawn: alpha="loo", `tune`, `calibrated`, and the
        choice of Nyström centres.)
        """
        regressed = self._regress(X, y, sample_weight, self.class_weight)
        data = regressed.data
        self.priors_ = class_priors(None, data)
        axes = regressed.axes(self.priors_, number_of_axes(self.n_components, len(self.classes_)))
        self._keep_functions(axes, regressed.ridge)
        covariance = regressed.covariance_left_out(axes) if self.calibrated else regressed.covariance(axes)
        covariance.flat[:: len(covariance) + 1] += LEAST_VARIANCE
        self._score_by(axes.means, self.priors_, covariance)
        self._rarer = np.zeros(len(self.classes_))
        if self.calibrated and self.class_weight is not None:
            self._rarer = np.log(class_priors(None, replace(data, weights=data.counts)) / self.priors_)
        return self

    def predict_log_proba(self, X: Any) -> Matrix:
        """log p(c | x) for m points, shape (m, k)."""
        return np.asarray(log_softmax(self._scores(X) + self._rarer, axis=1))


@dataclass(eq=False, repr=False)
class KernelDiscriminant(_HilbertDiscriminant):
    """Linear discriminant analysis in the Hilbert space of a kernel: each class is a Gaussian, all with one covariance.

        log p(c | x) = −½ ‖Σ^(−½)(k(x, ·) − m_c)‖² + log π_c + a term that all classes share,   Σ = (S_w + alpha I)/n,

    where m_c is the mean of the feature vectors of class c. With `mc.Linear()` it is `LinearDiscriminant` with the same
    alpha. Distances to the classes differ only along the k − 1 axes of `KernelFisherDiscriminant`: that model measures
    the spread along them without alpha, this one with it.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    alpha : float or str
        The ridge on the scatter S_w, > 0, not scaled by the number of rows; "loo" chooses it by the leave-one-out error
        of the regression. With a small alpha the probabilities are overconfident.
    priors
        π, numbers > 0 with the sum 1 in the order of the classes or by label; None for their shares of the rows.
    solver, tune, n_centers, centers, tol, budget, random_state
        As for `KernelRidge`.

    Attributes
    ----------
    classes_, priors_ : array
        The labels, sorted, and their prior probabilities.
    function_ : Expansion
        The axes as functions, an `Expansion`: transform(X) = function_(X), shape (m, r).
    ratios_ : array
        Between-class over within-class scatter on each axis, shape (r,).
    centres_ : array
        The class means on the axes, shape (k, r).
    kernel_, alpha_, solver_, status_ : Kernel, float or array, str
        The kernel, penalty and solver that were used, and the fit in words.
    tuning_ : record
        The result of `tune`, or None.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mc.KernelDiscriminant(mc.Gaussian(2.0)).fit(X, y)
    >>> round(model.score(X, y), 3), model.predict_proba(X[:1]).round(3)
    (0.993, array([[1., 0., 0.]]))
    """

    kernel: Any = None
    _: KW_ONLY
    alpha: Any = 0.1
    priors: Any = None
    solver: str = "auto"
    tune: str | None = None
    n_centers: int | None = None
    centers: Any = "uniform"
    tol: float | None = None
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and their labels y, of any type.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (This does not hold where rows are left out or drawn: alpha="loo", `tune`, and the choice of Nyström
        centres.)
        """
        regressed = self._regress(X, y, sample_weight)
        self.priors_ = class_priors(self.priors, regressed.data)
        axes = regressed.axes(self.priors_)
        self._keep_functions(axes, regressed.ridge)
        self._score_by(axes.means, self.priors_)
        return self
