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
from sklearn.metrics import r2_score

from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.models.auto.model import AutoModel
from mercer.models.auto.plan import SearchProgress
from mercer.models.auto.regression import LOSSES, Regression, RegressionLoss
from mercer.models.auto.search import Search
from mercer.models.auto.task import Fit
from mercer.models.base import Rows, outside, training_points
from mercer.models.likelihood.glm_base import exposures
from mercer.validation import check_choice


@dataclass(eq=False, repr=False)
class AutoRegressor(RegressorMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A regression that chooses its kernel, loss and solver itself, and explains why.

    Kernels that suit the columns race on a sample by closed-form leave-one-out; the best is tuned by gradient, with one
    width per column if there are enough rows. Then losses are compared on the same kernel: squared error, squared error
    of log y (for positive, skewed targets), Poisson's loss (for counts) and absolute error beyond ε (for outliers). The
    winner is fitted to all rows: exactly, or on Nyström centres if time or memory do not suffice for that.

    Parameters
    ----------
    kernel : Kernel, rule or None
        None to choose one for the columns (numbers, or a frame of mixed ones) or objects (texts, molecules, …); or a
        kernel or a rule X → kernel, whose parameters are tuned.
    roles : dict or None
        {column: role} for columns of a frame whose types do not say what they are: "number", "category", "date",
        "text", "molecule", "ordered" or "tokens" for features; "drop", "exposure", "weight", "group" or "time" for
        others. Roles travel with the columns, so `cross_val_score` and model files need nothing else.
    time : float
        Seconds for the search and the last fit, on one core of a common machine. The candidates and their numbers of
        rows are planned for this time by counting operations, so that the same data always gets the same model. If the
        time is over before the plan is done, the rest is left out; `stopped_by_` and `status_` report it.
    budget : int, str or None
        Memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : str
        "auto", "squared", "log", "poisson" or "robust"; with an exposure "auto" is "poisson".
    random_state : int
        The seed of samples and folds: the same number gives the same model if `stopped_by_` is None.
    progress : function or None
        Called with a `SearchProgress` (name, score, best, seconds, share of the time) after each kernel and loss that
        was tried; its `str` is one line of text. If it returns False, the search ends and the best so far is fitted.

    Attributes
    ----------
    model_ : estimator
        The fitted `KernelRidge`, `KernelGLM` or `SVR`.
    choices_ : Choices
        The decisions in their order, with the alternatives that were considered; `print` it.
    columns_ : Columns
        The columns of a frame: `roles`, the role of each with the reason, and `left_out`.
    kernel_, function_, status_ : Kernel, Expansion, str
        Those of `model_` (on the scale of log y for loss "log").
    stopped_by_ : str or None
        None if the plan was carried out; else "time", "progress" or "interrupt".
    last_fit_ : LastFit or None
        The number of rows (`rows` of `total`) and of centres that the last fit used; printed, it says why.
    rows_ : array
        The positions of the rows that `model_` was fitted to, in their order; not in a loaded model.
    loss_ : str
        The chosen loss.
    response_ : Response
        From values of `model_` to predictions in the units of the target, and their intervals.
    loo_error_ : float
        The leave-one-out mean squared error on the scale of y (on a sample, if there are many rows), times
        `loo_optimism_`: an estimate of the error on new rows.
    loo_optimism_ : float
        The factor by which tuning on the same rows made that error too small, estimated by tuning on halves of the
        rows; 1 if there are too few rows, or too little time.

    Examples
    --------
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

    Counts over an exposure, as in insurance: the model is y ~ Poisson(exposure · exp(f(x))).

    >>> import pandas as pd
    >>> policies = pd.DataFrame({"age": rng.uniform(18, 80, 300), "years": rng.uniform(0.1, 2, 300)})
    >>> claims = rng.poisson(policies["years"] * np.exp(1 - policies["age"] / 40))
    >>> model = AutoRegressor(roles={"years": "exposure"}, time=5).fit(policies, claims)
    >>> one, two = model.predict(pd.DataFrame({"age": [30.0, 30.0], "years": [1.0, 2.0]}))
    >>> bool(np.isclose(two, 2 * one)), model.loss_
    (True, 'poisson')
    """

    _added: ClassVar[dict[str, Any]] = {"loo_optimism_": 1.0, "_least": -np.inf, "_exposure": None}

    _: KW_ONLY
    kernel: Any = None
    roles: Any = None
    time: float = 60.0
    budget: Any = None
    loss: str = "auto"
    random_state: int = 0
    progress: Callable[[SearchProgress], Any] | None = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None, target: str | None = None
    ) -> Self:
        """Choose and fit a model of n points X and targets y, shape (n,).

        An interrupt keeps the best model so far, fitted to some rows, and is raised again.

        Parameters
        ----------
        X, y
            Array, frame, path or Batches; array Points and targets. Rows of a path (a Parquet or Arrow file, or a
            folder of them) or of a `Batches` need not fit into memory: kernel and loss are chosen on a sample, and the
            last fit reads all rows in batches.
        sample_weight : array or None
            How often each row counts, or the column of `roles` that is the "weight".
        exposure : array or None
            Time, area or number at risk, > 0, of which y is a count, or the column of `roles` that is the "exposure".
            The mean of y is then exposure · exp(f(x)), with Poisson's loss.
        target : str or None
            The column of a file that holds the targets.
        """
        check_choice(self.loss, "loss", LOSSES)
        source = self._source(X, y, sample_weight, exposure, target, classes=False)
        if source is not None:
            X, (y, w, e) = source.sample, source.some
            # Weights and exposures that are columns are read from the sample again.
            sample_weight, exposure = (
                None if given is None else all_ for given, all_ in ((sample_weight, w), (exposure, e))
            )
        parts = self._parts(X, sample_weight, exposure)
        points = training_points(parts.X)
        rows = Rows.of(points, y, parts.weight)
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
        per_row = None if parts.exposure is None else exposures(parts.exposure, points.n)[rows.kept]
        task = Regression(rows, self.loss, per_row, budget=self.budget, random_state=self.random_state)
        return self._search(parts.X, task, source)

    def predict(self, X: Any, *, exposure: Any = None) -> NDArray[Any]:
        """The expected target of each of m points; never below 0 if no training target is.

        A model with an exposure predicts counts over the column that is the exposure, or over the argument; a model
        that was fitted with the argument predicts rates, counts per unit of exposure, without it.
        """
        features = self._features(X)
        mean = np.maximum(self.response_.mean(np.asarray(self.model_.predict(features))), self._least)
        exposure = self._exposures(X, exposure)
        return mean if exposure is None else mean * exposures(exposure, len(mean), zero=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None) -> float:
        """R² of the predictions, of counts if the model has an exposure."""
        return float(r2_score(y, self.predict(X, exposure=exposure), sample_weight=sample_weight))

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The leave-one-out prediction of each row that `model_` was fitted to, if it has them."""
        mean = np.maximum(self.response_.mean(super().loo_predictions_), self._least)
        return mean if self._exposure is None else mean * self._exposure

    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None) -> NDArray[np.float64]:
        """Intervals that contain a new target with the given probability, shape (m, 2).

        All intervals are calibrated on left-out rows, and wider where the errors of predictions of that size are
        larger. Losses "squared" and "log" use jackknife+ (`KernelRidge.jackknife_plus`, for "log" its exponentials).
        Loss "poisson" uses quantiles of a distribution of counts with the observed dispersion, at the level that
        contains the given share of left-out rows; ends are whole numbers, and where a few numbers have most of the
        probability the coverage is higher. Loss "robust" adds quantiles of residuals from cross-validation to the
        prediction. Where no target is negative, no interval goes below 0. The kernel was tuned on the same rows, so
        that intervals are a little too short where rows are few.
        `exposure` as in `predict`.
        """
        features = self._features(X)
        exposure = self._exposures(X, exposure)
        sizes = None if exposure is None else exposures(exposure, length(X), zero=True)
        return np.maximum(self.response_.intervals(self.model_, features, coverage, sizes), self._least)

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
        sizes = loss.task.exposure
        self._exposure = sizes if sizes is None or fit.rows is None else sizes[fit.rows]
