"""Intervals of held-out rows, to be judged: none may come from the residual of the row itself."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from mercer.errors import InvalidInput
from mercer.models.conformal import CALIBRATED, ConformalRegressor, keeps_its_own
from mercer.models.quantiles import rows_needed
from mercer.validation import generator

Matrix = NDArray[np.float64]


def own_intervals(model: Any, X: Any, coverage: float) -> Matrix | None:
    """The intervals that a fitted model computes itself; None if they are taken from held-out residuals instead."""
    if not keeps_its_own(model):
        return None
    try:
        ends = np.asarray(model.predict_interval(X, coverage), dtype=np.float64)
    except InvalidInput:  # too few rows for this coverage
        return None
    return ends if ends.ndim == 2 else None


def crossed_intervals(y: Any, predictions: Any, coverage: float, units: Any = None) -> Matrix | None:
    """Intervals around held-out predictions by residuals of the other half of the rows; None if there are too few.

    They show how good the intervals of `with_intervals` are, which use the residuals of all of these rows. Rows of one
    unit, such as a group, are in the same half.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(1, 10, 2000)
    >>> y = f + 0.2 * f * rng.normal(size=2000)
    >>> low, high = crossed_intervals(y, f, 0.9).T
    >>> round(float(np.mean((low <= y) & (y <= high))), 2)
    0.9
    """
    y, f = np.asarray(y, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    _, unit = np.unique(np.arange(len(y)) if units is None else units, return_inverse=True)
    chosen = generator(0).permutation(unit.max() + 1) < (unit.max() + 1) // 2
    half = chosen[unit]
    if f.ndim != 1 or min(half.sum(), (~half).sum()) < max(CALIBRATED, rows_needed(coverage, 2)):
        return None
    ends = np.empty((len(y), 2))
    for some in (half, ~half):
        calibrated = ConformalRegressor(_Known(), cv="prefit", residuals="local").calibrate(y[some], f[some])
        ends[~some] = calibrated.predict_interval(f[~some], coverage)
    return ends


class _Known(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor whose input is its prediction."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> Any:
        return X


def held_out_intervals(
    model: Any, X: Any, y: Any, predictions: Any, coverage: float, *, units: Any = None, apart: bool = False
) -> Matrix | None:
    """Intervals of held-out rows as `with_intervals` gives them to a model, but never from the residual of the row."""
    intervals = None if apart else own_intervals(model, X, coverage)
    return intervals if intervals is not None else crossed_intervals(y, predictions, coverage, units)
