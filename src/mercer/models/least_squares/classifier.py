"""Least-squares classification (lecture 003): ridge regression to one-hot targets, and the largest value wins."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.batches import Batches, is_source
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints, drawn
from mercer.errors import InvalidInput
from mercer.models.base import KernelEstimator, Matrix, check_columns, shortened, training_points
from mercer.models.labels import Labelled
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.least_squares.ridge import Ridge
from mercer.models.solver_parameters import check_solver_parameters
from mercer.rkhs.expansion import Expansion
from mercer.solvers.auto import SOLVERS
from mercer.validation import generator


def one_hot(data: Labelled, n: int) -> tuple[Matrix, Matrix | None]:
    """Targets and weights of all n rows of `fit`: 1 in the column of the class; weight 0 for rows that are left out."""
    Y = np.zeros((n, len(data.classes)))
    Y[data.kept, data.codes] = 1.0
    if data.weights is None and len(data) == n:
        return Y, None
    w = np.zeros(n)
    w[data.kept] = 1.0 if data.weights is None else data.weights
    return Y, w


def kernel_ridge(model: Any, alpha: Any, *, fit_intercept: bool, kind: type[KernelRidge] = KernelRidge) -> KernelRidge:
    """Kernel ridge regression with the parameters that a classifier shares with it, not fitted."""
    shared = ("kernel", "solver", "tune", "n_centers", "centers", "tol", "budget", "random_state")
    return kind(alpha=alpha, fit_intercept=fit_intercept, **{name: getattr(model, name) for name in shared})


@dataclass(eq=False, repr=False)
class LeastSquaresClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classification by least squares: one function per class fits 1 on its rows and 0 on all others; the largest wins.

        f_c minimises ½ Σ wᵢ ([yᵢ = c] − f_c(xᵢ))² + ½ alpha ‖f_c‖²,      predict(x) = argmax_c f_c(x).

    The fit and its leave-one-out predictions are closed forms. But squares punish rows far on the correct side of the
    boundary as much as those on the wrong side, so that outliers move the boundary (lecture 003), and if several
    classes lie along a line, those in the middle are masked. The values are not probabilities: with an intercept they
    sum to one, but they leave [0, 1]. `KernelLogisticRegression` and `KernelDiscriminant` have probabilities.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel or a rule X → kernel; None for the linear model, on the columns or on `features`.
    features : FeatureMap, transformer, function or None
        Features of the linear model, as for `Ridge`; None for the columns themselves.
    alpha : float, array or str
        The penalty, a number ≥ 0, or one per class; "loo" chooses it (one per class) by the leave-one-out error.
    fit_intercept : bool
        Whether each function has a constant, which is not penalised.
    class_weight : dict, "balanced" or None
        None, "balanced" (all classes count the same, whatever their number of rows) or numbers > 0 by label.
    solver, tune, n_centers, centers, tol, random_state
        For a kernel, as for `KernelRidge`.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    regression_
        The fitted `Ridge` or `KernelRidge`, one target per class.
    function_ : Expansion
        The k functions as one `Expansion` in the kernel `kernel_`.
    coef_, intercept_ : array, float or array
        Weights of the linear model, shape (k, M), and constants, shape (k,).
    alpha_, status_ : float or array, str
        The penalty that was used, and how it was solved, in words.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, 2006, section 4.1.3.

    Examples
    --------
    >>> import mercer as mc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> linear = mc.LeastSquaresClassifier(alpha=0.1).fit(X, y)
    >>> curved = mc.LeastSquaresClassifier(mc.Gaussian(2.0), alpha="loo").fit(X, y)
    >>> round(linear.loo_score_, 3), round(curved.loo_score_, 3)     # for the linear one the middle class is masked
    (0.82, 0.967)
    >>> mc.LeastSquaresClassifier(mc.Intersection()).fit([{1}, {2, 3}, {1, 4}], ["a", "b", "a"]).predict([{1, 2}])
    array(['a'], dtype='<U1')
    """

    _in_batches: ClassVar[bool] = True

    kernel: Any = None
    _: KW_ONLY
    features: Any = None
    alpha: Any = 1.0
    fit_intercept: bool = True
    class_weight: Any = None
    solver: str = "auto"
    tune: str | None = None
    n_centers: int | None = None
    centers: Any = "uniform"
    tol: float | None = None
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: str | None = None) -> Self:
        """Fit to n points X and their labels y, of any type.

        With a kernel, X may be a path or a `Batches`, as for `KernelRidge`; `target` names the column of a file that
        holds the labels.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (Except in alpha="loo", `tune` and the choice of Nyström centres, which leave out or draw rows.)
        """
        unfitted = self._regression()
        self.__dict__.pop("_not_in_file", None)  # of an earlier fit
        rows: Any = X
        points: Points
        if is_source(X) and isinstance(unfitted, KernelRidge):
            rows = Batches.of(X, y, target)
            some = drawn(rows, 1, generator(self.random_state))
            X, points, y = some.X, StreamedPoints(rows, some), some.y if y is None else y
        else:
            points = training_points(X)
        data = Labelled.of(
            points, y, sample_weight, self.class_weight, model="LeastSquaresClassifier", regressor="Ridge"
        )
        Y, w = one_hot(data, points.n)
        regression = unfitted.fit(rows, Y, w)
        self.classes_, self.regression_, self._data = data.classes, regression, data
        self.kernel_, self.alpha_, self.status_ = regression.kernel_, regression.alpha_, regression.status_
        check_columns(self, X, reset=True)
        if isinstance(points, StreamedPoints):
            if hasattr(regression, "feature_names_in_"):
                self.feature_names_in_ = regression.feature_names_in_
            del self._data  # it holds the source
            self.__dict__["_not_in_file"] = ("_data",)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The values f_c(x), shape (m, k); for two classes f₂(x) − f₁(x), shape (m,), positive for the second."""
        return _margin(self._values(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the largest value for each of m points."""
        return self._largest(self._values(X))

    @property
    def function_(self) -> Expansion:
        """The k functions as one `Expansion`."""
        check_is_fitted(self)
        f: Expansion = self.regression_.function_
        return f

    @property
    def coef_(self) -> Matrix:
        """The weights of the linear model, shape (k, M)."""
        check_is_fitted(self)
        if not isinstance(self.regression_, Ridge):
            raise AttributeError(
                "Only the linear model has weights; for a kernel of finite rank use function_.weights()."
            )
        weights: Matrix = self.regression_.coef_.T
        return weights

    @property
    def intercept_(self) -> Matrix:
        """The constants, shape (k,)."""
        check_is_fitted(self)
        constants: Matrix = self.regression_.intercept_
        return constants

    @property
    def tuning_(self) -> Any:
        """The record of `tune`."""
        check_is_fitted(self)
        return self.regression_.tuning_

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The label of each training point by the model fitted without it, in closed form, shape (n,).

        A row of weight zero was left out anyway: its label is that of `predict`. The weights of class_weight="balanced"
        and parameters that were chosen on all rows are not chosen again.
        """
        check_is_fitted(self)
        return self._largest(self.regression_.loo_predictions_)

    @property
    def loo_decision_(self) -> NDArray[Any]:
        """The values of `decision_function` at each training point by the model fitted without it, in closed form."""
        check_is_fitted(self)
        return _margin(self.regression_.loo_predictions_)

    @property
    def loo_score_(self) -> float:
        """The accuracy of the leave-one-out predictions, by sample weight: an estimate of `score` on new data."""
        check_is_fitted(self)
        data = self._data
        right = self.loo_predictions_[data.kept] == data.classes[data.codes]
        return float(np.average(right, weights=data.counts))

    # -- inside ---------------------------------------------------------------------------------------------------

    def _training_only(self) -> tuple[str, ...]:
        return ("_data",)

    def _regression(self) -> Ridge | KernelRidge:
        """The regression, not fitted."""
        check_solver_parameters(self, SOLVERS)
        if self.kernel is None:
            if self.tune is not None:
                raise InvalidInput(
                    "`tune` needs a kernel whose parameters it can choose",
                    got=f"tune={self.tune!r} with kernel=None",
                    advice="Pass a kernel such as mc.median_gaussian, or tune the linear model by alpha='loo'.",
                )
            return Ridge(self.features, alpha=self.alpha, fit_intercept=self.fit_intercept, budget=self.budget)
        if self.features is not None:
            raise InvalidInput(
                "`kernel` or `features` must be None: a kernel has its own features",
                got=f"kernel={shortened(self.kernel)} and features={shortened(self.features)}",
                advice="Pass kernel.after(features), which is the kernel on these features.",
            )
        return kernel_ridge(self, self.alpha, fit_intercept=self.fit_intercept)

    def _values(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return np.asarray(self.regression_.predict(X))

    def _largest(self, values: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[values.argmax(axis=1)]


def _margin(values: NDArray[Any]) -> NDArray[Any]:
    """One value per class; for two classes the second value less the first."""
    return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values
