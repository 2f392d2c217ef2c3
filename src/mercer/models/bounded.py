"""Predictions that are never negative where no target is: counts, prices, amounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.files import described
from mercer.models.around import AroundModel
from mercer.models.base import all_or_nothing, shortened
from mercer.models.choices import with_choices


def _has_intervals(bounded: Any) -> bool:
    model = getattr(bounded, "model_", bounded.model)
    return hasattr(model, "predict_interval") and hasattr(model, "has_intervals")


@dataclass(repr=False, eq=False)
class BoundedRegressor(AroundModel, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Any regressor, with predictions and intervals that are never below 0 if no training target is: max(f(x), 0).

    A sum of kernel values may be negative between training rows even if no target is, and so may a line beyond them. If
    targets are counts, prices or amounts, 0 is then closer to every possible target. `AutoRegressor` and the models of
    `mercer.models.menu` follow the same rule by themselves. If some target is negative, nothing is changed.

    Parameters
    ----------
    model : estimator
        A regressor with `fit` and `predict`.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    least_ : float
        The lower bound of predictions: 0, or −∞ if a training target is negative.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([9.0, 0.0, 0.0, 9.0])
    >>> ridge = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01)
    >>> bool(ridge.fit(X, y).predict([[1.5]])[0] < 0), mc.BoundedRegressor(ridge).fit(X, y).predict([[1.5]])
    (True, array([0.]))
    """

    model: Any

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to n points X and targets y, with weights if the model takes them."""
        if isinstance(self.model, type) or not all(hasattr(self.model, name) for name in ("fit", "predict")):
            raise InvalidInput(
                "`model` must be a regressor with fit and predict",
                got=shortened(self.model),
                advice="Pass an instance such as mc.KernelRidge().",
            )
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._keep(clone(self.model).fit(X, y, **weighted), X, y)

    @classmethod
    def around(cls, model: Any, X: Any, y: Any) -> Self:
        """The bounded form of a model that was already fitted to rows X and targets y."""
        return cls(with_choices(model))._keep(model, X, y)

    def _keep(self, model: Any, X: Any, y: Any) -> Self:
        self.model_, self._fitted_on = model, described(X)
        self.least_ = 0.0 if float(np.min(np.asarray(y, dtype=np.float64))) >= 0.0 else -np.inf
        self._keep_columns(model)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The predictions of the model for m points, none of them below `least_`."""
        check_is_fitted(self)
        return np.maximum(self.model_.predict(X), self.least_)

    @available_if(_has_intervals)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9, **options: Any) -> NDArray[np.float64]:
        """The intervals of the model, without their parts below `least_`, shape (m, 2) or (m, t, 2)."""
        check_is_fitted(self)
        return np.maximum(self.model_.predict_interval(X, coverage, **options), self.least_)

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` works; `in_file` asks for the model that is loaded from its file."""
        return _has_intervals(self) and bool(self.model_.has_intervals(in_file=in_file))

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """The prediction of each training row by a model that was fitted without it, if the model has them."""
        check_is_fitted(self)
        return np.maximum(self.model_.loo_predictions_, self.least_)
