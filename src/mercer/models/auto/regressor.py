"""From a table of numbers to a regression: kernel, loss and solver are chosen, and every choice is explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning

from mercer.errors import InvalidInput
from mercer.models.auto.model import AutoModel
from mercer.models.auto.plan import SearchProgress
from mercer.models.auto.regression import LOSSES, Regression, RegressionLoss
from mercer.models.auto.search import Search
from mercer.models.auto.task import Fit
from mercer.models.base import Rows, outside, training_points
from mercer.validation import check_choice


@dataclass(eq=False, repr=False)
class AutoRegressor(RegressorMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A regression that chooses its kernel, loss and solver itself, and explains why.

    Kernels that suit the columns race on a sample by closed-form leave-one-out; the best is tuned by gradient, with one
    width per column if there are enough rows. Then losses are compared on the same kernel: squared, on the scale of
    log y (positive, skewed targets), Poisson (counts) and absolute beyond ε (wide outliers). The winner is fitted to
    all rows: exactly, or on Nyström centres if time or memory do not suffice for that.

    Parameters
    ----------
    kernel : None to choose one for the columns (numbers, or a frame of mixed ones); or a kernel or a rule X → kernel,
        whose parameters are tuned.
    time : seconds for the search and the last fit, on one core of a common machine. The candidates and their numbers of
        rows are planned for this time by counting operations, so that the same data always gets the same model. If the
        time is over before the plan is done, the rest is left out; `stopped_by_` and `status_` report it.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto", "squared", "log", "poisson" or "robust".
    random_state : the seed of samples and folds: the same number gives the same model if `stopped_by_` is None.
    progress : called with a `SearchProgress` (name, score, best, seconds, share of the time) after each kernel and loss
        that was tried; its `str` is one line of text. If it returns False, the search ends and the best so far is
        fitted.

    Attributes
    ----------
    model_ : the fitted `KernelRidge`, `KernelGLM` or `SVR`.
    choices_ : the decisions in their order, with the alternatives that were considered; `print` it.
    kernel_, function_, status_ : those of `model_` (on the scale of log y for loss "log").
    stopped_by_ : None if the plan was carried out; else "time", "progress" or "interrupt".
    loss_ : the chosen loss.
    response_ : from values of `model_` to predictions in the units of the target, and their intervals.
    loo_error_ : the leave-one-out mean squared error on the scale of y (on a sample, if there are many rows), times
        `loo_optimism_`: an estimate of the error on new rows.
    loo_optimism_ : the factor by which tuning on the same rows made that error too small, estimated by tuning on
        halves of the rows; 1 if there are too few rows, or too little time.

    >>> import numpy as np
    >>> from mercer import AutoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(150, 3))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=150)
    >>> model = AutoRegressor().fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:]) > 0.95
    True
    >>> [decision.question for decision in model.choices_]
    ['Target', 'Columns', 'Kernel', 'Loss', 'Solver']
    """

    _added: ClassVar[dict[str, Any]] = {"stopped_by_": None, "loo_optimism_": 1.0, "_least": -np.inf}

    _: KW_ONLY
    kernel: Any = None
    time: float = 60.0
    budget: Any = None
    loss: str = "auto"
    random_state: int = 0
    progress: Callable[[SearchProgress], Any] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit a model of n points X and targets y, shape (n,).

        An interrupt keeps the best model so far, fitted to some rows, and is raised again.
        """
        check_choice(self.loss, "loss", LOSSES)
        rows = Rows.of(training_points(X), y, sample_weight)
        if rows.y.shape[1] > 1:
            raise InvalidInput(
                "y must be 1-D: one target per row", got=f"shape {np.shape(y)}", advice="Fit one model per target."
            )
        if not rows.single:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected: it is taken as one target per row.",
                DataConversionWarning,
                stacklevel=outside(),
            )
        task = Regression(rows, self.loss, budget=self.budget, random_state=self.random_state)
        return self._search(X, task)

    def predict(self, X: Any) -> NDArray[Any]:
        """The expected target of each of m points."""
        self._check_queries(X)
        return self.response_.mean(np.asarray(self.model_.predict(X)))

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The leave-one-out prediction of each row that `model_` was fitted to, if it has them."""
        values = super().loo_predictions_
        return self.response_.mean(values)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Intervals that contain a new target with the given probability, shape (m, 2).

        All intervals are calibrated on left-out rows, and wider where the errors of predictions of that size are
        larger. Losses "squared" and "log" use jackknife+ (`KernelRidge.jackknife_plus`, for "log" its exponentials).
        Loss "poisson" uses quantiles of a distribution of counts with the observed dispersion, at the level that
        contains the given share of left-out rows; ends are whole numbers, and where a few numbers have most of the
        probability the coverage is higher. Loss "robust" adds quantiles of residuals from cross-validation to the
        prediction. Where no target is negative, no interval goes below 0. The kernel was tuned on the same rows, so
        that intervals are a little too short where rows are few.
        """
        self._check_queries(X)
        return np.maximum(self.response_.intervals(self.model_, X, coverage), self._least)

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` can answer; `in_file` asks for the model that is loaded from its file."""
        return not self.response_.needs_rows or self.model_.has_intervals(in_file=in_file)

    def _keep(self, X: Any, search: Search, fit: Fit) -> None:
        super()._keep(X, search, fit)
        loss = fit.loss
        assert isinstance(loss, RegressionLoss)
        self.response_, self._least = loss.response, loss.task.least
        self.loo_optimism_ = loss.optimism
        self.loo_error_ = loss.error * loss.optimism
