"""Logistic regression: the log-odds of the classes are linear, in the columns of X or in the space of a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.models.base import Matrix
from mercer.models.callbacks import with_callbacks
from mercer.models.labels import Labelled
from mercer.models.likelihood.predictor import FeaturePredictor, KernelPredictor, Predictor
from mercer.models.likelihood.separation import require_finite_minimum, require_numbers
from mercer.models.progress import watched
from mercer.problems.losses import Loss, Softmax, loss_of
from mercer.solvers.leave_out import left_out_values


class LogisticClassifier(ClassifierMixin, Predictor):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier with the logistic loss for two classes, and the softmax for more."""

    class_weight: Any

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: str | None = None) -> Self:
        """Fit to n points X and their labels y, of any kind.

        With a kernel, X may be a path or a `Batches`: its rows are then read in batches, once per pass, which needs
        Nyström centres. `target` names the column of a file that holds the labels.

        A sample weight says how often its row counts: weight 2 is the same as the row given twice, weight 0 as the row
        left out. (The random choice of Nyström centres ignores the weights.)
        """
        self.__dict__.pop("_left", None)
        name = type(self).__name__
        X, points, y = self._data(X, y, target)
        rows = Labelled.of(points, y, sample_weight, self.class_weight, model=name, regressor="GLM or KernelGLM")
        self.classes_, self._kept = rows.classes, rows.kept
        k = len(rows.classes)
        with np.errstate(over="ignore"):  # `require_numbers` reports an overflow
            space = self._open(X, rows.points, rows.codes)
        require_numbers(self, space, rows.weights)
        with watched(self, 1, X, y, sample_weight):
            self._minimise(space, self._loss(), rows.codes if k > 2 else rows.codes.astype(np.float64), rows.weights)
        names = getattr(self, "feature_names_in_", None)
        require_finite_minimum(self._risk, self._minimum, [str(c) for c in rows.classes], names)
        self._finish()
        return self

    def _loss(self) -> Loss:
        k = len(self.classes_)
        return loss_of("bernoulli", "logit") if k == 2 else Softmax(k)

    def _logits(self, X: Any) -> Matrix:
        """η at m points, shape (m, 1) for two classes, (m, k) for more."""
        check_is_fitted(self)
        return self._values(self._queries(X))

    def decision_function(self, X: Any) -> Matrix:
        """The log-odds of the second class, shape (m,); with more classes log p up to a constant, shape (m, k)."""
        eta = self._logits(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict_proba(self, X: Any) -> Matrix:
        """P(class | x), shape (m, k)."""
        return _probabilities(self._logits(X))

    def predict_log_proba(self, X: Any) -> Matrix:
        """log P(class | x), shape (m, k); it is finite even if the probability rounds to 0."""
        return _log_probabilities(self._logits(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable label of each of m points; at even odds the first."""
        codes = _most_probable(self._logits(X))
        return np.asarray(self.classes_[codes])

    # -- leave-one-out ------------------------------------------------------------------------------------------------

    def _left_out(self) -> Matrix:
        risk = self._whole()
        if "_left" not in self.__dict__:
            self._left = left_out_values(risk, self._minimum.state)
        return self._left

    def _training_only(self) -> tuple[str, ...]:
        return (*super()._training_only(), "_left")

    @property
    def loo_proba_(self) -> Matrix:
        """P(class | xᵢ) of the model fitted without row i, for every row of weight > 0, shape (n, k): approximate.

        Each is one Newton step from the minimum, without the row but with the curvature of all rows, which would be
        exact for a quadratic loss. It is less accurate with more than two classes and thousands of weights, where the
        curvature of each class is computed separately.
        """
        return _probabilities(self._left_out())

    @property
    def loo_score_(self) -> float:
        """The share of rows that `loo_proba_` classifies correctly: an estimate of `score` on new data."""
        eta = self._left_out()
        right = _most_probable(eta) == self._whole().y.astype(np.int64)
        return float(np.average(right, weights=self._whole().weights))

    @property
    def loo_log_loss_(self) -> float:
        """The mean of −log P(class of row i), fitted without row i: an estimate of the log loss on new data."""
        codes = self._whole().y.astype(np.int64)
        losses = -_log_probabilities(self._left_out())[np.arange(len(codes)), codes]
        return float(np.average(losses, weights=self._whole().weights))


def _probabilities(eta: Matrix) -> Matrix:
    if eta.shape[1] == 1:
        return np.hstack([expit(-eta), expit(eta)])
    return np.asarray(softmax(eta, axis=1))


def _log_probabilities(eta: Matrix) -> Matrix:
    return np.asarray(log_softmax(np.hstack([np.zeros_like(eta), eta]) if eta.shape[1] == 1 else eta, axis=1))


def _most_probable(eta: Matrix) -> NDArray[np.int64]:
    return (eta[:, 0] > 0).astype(np.int64) if eta.shape[1] == 1 else eta.argmax(axis=1)


@dataclass(eq=False, repr=False)
class LogisticRegression(LogisticClassifier, FeaturePredictor):
    """Logistic regression on features: log-odds wᵀφ(x) + b; w minimises −log-likelihood + ½ alpha ‖w‖².

    With two classes P(y = 1 | x) = σ(wᵀφ(x) + b), with more P(y = j | x) ∝ exp(wⱼᵀφ(x) + bⱼ). The objective is convex.
    With alpha = 0 and classes that a hyperplane separates it has no minimum, and the error names the direction.

    Parameters
    ----------
    features : FeatureMap, transformer, function or None
        None to use the columns of X unchanged (dense or sparse); a feature map, a transformer, a function X → Φ, or a
        kernel of finite rank, as in `Ridge`.
    alpha : float
        The penalty, ≥ 0. scikit-learn's C is 1/alpha.
    fit_intercept : bool
        Whether to add a constant b, which is not penalised.
    class_weight : dict, "balanced" or None
        None, "balanced", or numbers > 0 by label.
    solver : str
        "newton" (iteratively reweighted least squares; the choice of "auto"), "newton-cg" (forms no Hessian), "lbfgs",
        "backtracking" (gradient descent with steps halved until they descend), "gradient" (fixed steps).
    step : float or None
        The fixed step of "gradient"; by default 1/L, which cannot diverge.
    start
        Initial weights (then the intercept); by default those of the best constant.
    tol : float
        Newton's methods stop when the predicted excess over the minimum is below tol² times the first objective, the
        others when the gradient is below tol times the gradient at a constant (or at `start`, if that is larger).
    max_iter, max_time : int or None, float or None
        Limits on steps and seconds; by default 100 to 10 000 steps, depending on the solver, and no limit on time.
    progress : function
        A function that gets each `Step`; if it returns False, the fit stops there. Use `set_callbacks` for
        scikit-learn's callbacks.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_, intercept_ : array, float or array
        Shapes (1, M) and (1,), or (k, M) and (k,), as in scikit-learn.
    function_ : Expansion
        f as an `Expansion` in the kernel φ(x)ᵀφ(z).
    trace_
        Objective, gradient norm, step and seconds of every iterate, and the weights if there are few.
    objective_, n_iter_
        The minimum, and the number of steps.
    end_, status_ : str
        How the fit ended, in one word such as "converged" or "time", and in a sentence.
    loo_proba_, loo_score_, loo_log_loss_ : array, float, float
        Approximate leave-one-out.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, 2006, section 4.3.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> model = mc.LogisticRegression(alpha=0.1).fit(X, ["no", "no", "yes", "no", "yes"])
    >>> model.predict([[3.0]]), model.predict_proba([[3.0]]).round(2)
    (array(['yes'], dtype='<U3'), array([[0.08, 0.92]]))
    >>> len(model.trace_.objective) == model.n_iter_ + 1
    True
    """

    features: Any = None
    _: KW_ONLY
    alpha: float = 1e-2
    fit_intercept: bool = True
    class_weight: Any = None
    solver: str = "auto"
    step: float | None = None
    start: Any = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    progress: Any = None

    @property
    def coef_(self) -> Matrix:
        """Weights, shape (1, M) for two classes, (k, M) for more."""
        check_is_fitted(self)
        return self._weights.T

    @property
    def intercept_(self) -> Matrix:
        """b, shape (1,) or (k,)."""
        check_is_fitted(self)
        return self._constants


@dataclass(eq=False, repr=False)
class KernelLogisticRegression(LogisticClassifier, KernelPredictor):
    """Logistic regression in the Hilbert space of a kernel: log-odds f = Σ cᵢ k(xᵢ, ·) + b.

    f minimises −log-likelihood + ½ alpha ‖f‖². At the minimum cᵢ = wᵢ(yᵢ − P(y = 1 | xᵢ))/alpha: the worse a point is
    predicted, the larger its coefficient. With more than two classes, each has its own function.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    alpha : float
        The penalty, > 0 (for kernels of finite rank ≥ 0).
    fit_intercept : bool
        Whether to add a constant b, which is not penalised.
    class_weight : dict, "balanced" or None
        None, "balanced", or numbers > 0 by label.
    solver, step, tol, max_iter, max_time, progress
        As in `LogisticRegression`.
    n_centers, centers
        Use this number of Nyström centres instead of all points, chosen by "uniform", "kmeans" or "pivoted", or given
        as points. By default all points are used, or centres if the matrix of all points would not fit in memory;
        `status_` reports it.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of the available memory.
    random_state : int
        The seed for the choice of centres.

    Attributes
    ----------
    classes_, kernel_ : array, Kernel
        The labels, and the kernel that was used.
    function_ : Expansion
        f, an `Expansion`; dual_coef_ and intercept_ are its c, shape (n,) or (n, k), and b.
    trace_, objective_, n_iter_, end_, status_
        The path to the minimum.
    loo_proba_, loo_score_, loo_log_loss_ : array, float, float
        Approximate leave-one-out.

    References
    ----------
    Jaakkola and Haussler, Probabilistic kernel regression models, AISTATS 1999.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> y = np.hypot(X[:, 0], X[:, 1]) > 1.2
    >>> model = mc.KernelLogisticRegression(mc.Gaussian(1.0), alpha=1e-2).fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]]), model.predict_proba([[0.0, 0.0]]).round(2)
    (array([False,  True]), array([[1., 0.]]))
    """

    kernel: Any = None
    _: KW_ONLY
    alpha: float = 1e-2
    fit_intercept: bool = True
    class_weight: Any = None
    solver: str = "auto"
    step: float | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    progress: Any = None
    n_centers: int | None = None
    centers: Any = "uniform"
    budget: Any = None
    random_state: int = 0
