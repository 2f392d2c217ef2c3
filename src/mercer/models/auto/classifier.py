"""From a table to a classifier: kernel and loss are chosen, and every choice is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.auto.classification import (
    LOSSES,
    Classification,
    ClassificationLoss,
    class_values,
    left_out_values,
)
from mercer.models.auto.model import AutoModel
from mercer.models.auto.plan import SearchProgress
from mercer.models.auto.search import Search
from mercer.models.auto.task import Fit
from mercer.models.base import Matrix, shown, training_points
from mercer.models.labels import Labelled
from mercer.validation import check_choice


@dataclass(eq=False, repr=False)
class AutoClassifier(ClassifierMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that chooses its kernel and loss itself, and explains why. Its probabilities are calibrated.

    Kernels that suit the columns race on a sample by the closed-form leave-one-out error of least squares on the
    classes; the best is tuned by gradient, with one width per column if there are enough rows. Then least squares, with
    the softmax of its values, and logistic regression are compared by their calibrated log loss when each row is left
    out, and the better one is fitted. (This log loss is exact for least squares and approximate for logistic
    regression, which is tried for more than two classes only if there are few rows.) Where there are too many rows for
    an exact fit in the time, least squares on centres competes with a support vector machine.

    Parameters
    ----------
    kernel : Kernel, rule or None
        None to choose one for the columns (numbers, or a frame of mixed ones) or objects (texts, molecules, …); or a
        kernel or a rule X → kernel, whose parameters are tuned.
    roles : dict or None
        {column: role} for columns of a frame whose types do not say what they are: "number", "category", "date",
        "text", "molecule", "ordered" or "tokens" for features; "drop", "weight", "group" or "time" for others. Roles
        travel with the columns, so `cross_val_score` and model files need nothing else.
    time : float
        Seconds for the search and the last fit, on one core of a common machine. The candidates and their numbers of
        rows are planned for this time by counting operations, so that the same data always gets the same model. If the
        time is over before the plan is done, the rest is left out; `stopped_by_` and `status_` report it.
    budget : int, str or None
        Memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : str
        "auto" for the better of "squared" and "logistic"; or one of them, or "hinge", a support vector machine.
    class_weight : dict, "balanced" or None
        None, "balanced" or numbers > 0 by label.
    random_state : int
        The seed of samples and folds: the same number gives the same model if `stopped_by_` is None.
    progress : function or None
        Called with a `SearchProgress` (name, score, best, seconds, share of the time) after each kernel and loss that
        was tried; its `str` is one line of text. If it returns False, the search ends and the best so far is fitted.

    Attributes
    ----------
    model_ : estimator
        The fitted `KernelLogisticRegression`, `SVC` or `LeastSquaresClassifier`.
    choices_ : Choices
        The decisions in their order, with the alternatives that were considered; `print` it.
    columns_ : Columns
        The columns of a frame: `roles`, the role of each with the reason, and `left_out`.
    classes_ : array
        The labels, sorted.
    kernel_, function_, status_ : Kernel, Expansion, str
        Those of `model_`.
    loss_ : str
        The chosen loss.
    softmax_ : Softmax or None
        The calibration that turns one value per class into probabilities; None for loss "hinge".
    stopped_by_ : str or None
        None if the plan was carried out; else "time", "progress" or "interrupt".
    last_fit_ : LastFit or None
        The number of rows (`rows` of `total`) and of centres that the last fit used; printed, it says why.
    rows_ : array
        The positions of the rows that `model_` was fitted to, in their order; not in a loaded model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9, model.predict_proba(X[:3]).shape
    (True, (3, 3))
    >>> [decision.question for decision in model.choices_]
    ['Target', 'Columns', 'Kernel', 'Loss', 'Solver']
    """

    _added: ClassVar[dict[str, Any]] = {"_factors": None}

    _: KW_ONLY
    kernel: Any = None
    roles: Any = None
    time: float = 60.0
    budget: Any = None
    loss: str = "auto"
    class_weight: Any = None
    random_state: int = 0
    progress: Callable[[SearchProgress], Any] | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: str | None = None) -> Self:
        """Choose and fit a model of n points X and their labels y, which may be of any type.

        X may be a path (a Parquet or Arrow file, or a folder of them) or a `Batches`, whose rows need not fit into
        memory: kernel and loss are chosen on a sample, and the last fit reads all rows in batches. `target` names the
        column of a file that holds the labels.

        An interrupt keeps the best model so far, fitted to some rows, and is raised again.
        """
        check_choice(self.loss, "loss", LOSSES)
        source = self._source(X, y, sample_weight, None, target, classes=True)
        if source is not None:
            X, (y, w, _) = source.sample, source.some
            sample_weight = None if sample_weight is None else w  # a column is read from the sample again
        parts = self._parts(X, sample_weight)
        if parts.exposure is not None:
            raise InvalidInput(
                "An exposure is for counts, which a regressor predicts",
                got=f"{self.columns_.exposure!r} as exposure of classes",
                advice="Use AutoRegressor, or assign another role to that column.",
            )
        data = Labelled.of(
            training_points(parts.X), y, parts.weight, self.class_weight, model="AutoClassifier",
            regressor="AutoRegressor",
        )  # fmt: skip
        alone = data.classes[np.bincount(data.codes) == 1]
        if self.loss == "hinge" and len(alone):
            raise InvalidInput("`loss='hinge'` requires at least two rows of each class to calibrate its probabilities",
                               got=f"one row of {shown(alone[0])}",
                               advice="Leave that class out, or use another loss.")  # fmt: skip
        settings = {"budget": self.budget, "random_state": self.random_state}
        return self._search(parts.X, Classification(data, self.loss, self.class_weight, **settings), source)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: the most probable class.

        Class weights do not change probabilities; with them it is the class whose errors would cost most.
        """
        return self._decided(self.predict_proba(X))

    def _decided(self, P: Matrix) -> NDArray[Any]:
        costs = P if self._factors is None else P * self._factors
        return np.asarray(self.classes_[costs.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Matrix:
        """P(class | x), shape (m, k), calibrated on left-out rows: never 0 or 1, even if all were right."""
        X = self._features(X)
        if self.softmax_ is not None:
            return self.softmax_(class_values(self.model_, X))
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    @property
    def loo_proba_(self) -> Matrix:
        """Calibrated P(class | xᵢ) of each row that `model_` was fitted to, by the model fitted without it."""
        check_is_fitted(self)
        if self.softmax_ is None:
            raise AttributeError("Leave-one-out probabilities need another loss than 'hinge'.")
        return self.softmax_(left_out_values(self.model_))

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The leave-one-out prediction of each row that `model_` was fitted to, if it has them."""
        return super().loo_predictions_ if self.softmax_ is None else self._decided(self.loo_proba_)

    def decision_function(self, X: Any) -> Matrix:
        """The log-odds of calibrated probabilities, and with class weights of their costs: `predict` decides by them.

        For two classes the shape is (m,), and positive values mean the second class; for k > 2 it is (m, k), and the
        largest value decides.
        """
        check_is_fitted(self)
        if self.softmax_ is not None:
            values = self.softmax_.logits(class_values(self.model_, self._features(X)))
        else:
            values = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        if self._factors is not None:
            values = values + np.log(self._factors)
        return np.asarray(values[:, 1] - values[:, 0] if values.shape[1] == 2 else values)

    def _keep(self, X: Any, search: Search, fit: Fit) -> None:
        super()._keep(X, search, fit)
        loss = fit.loss
        assert isinstance(loss, ClassificationLoss)
        self.classes_, self.softmax_ = loss.task.data.classes, loss.softmax
        self._factors = loss.task.factors if loss.task.weighted else None
