"""Feature importance by permutation: how much the predictions change when one column is shuffled among the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.columns import shuffled
from mercer.data.frames import column_names
from mercer.models.scores import row_losses
from mercer.validation import generator

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

ROUNDINGS = 100
"""Rounding errors of predictions, in units in the last place of the largest one, are below this."""
MEASURED_ROWS = 500
"""The largest number of rows on which commands and reports measure feature importance."""


def measured_rows(n: int) -> Index:
    """The positions of the rows, out of n, on which importance is measured: all, or a random sample if there are many.

    >>> measured_rows(3), len(measured_rows(10_000))
    (array([0, 1, 2]), 500)
    """
    return np.sort(np.random.default_rng(0).permutation(n)[:MEASURED_ROWS])


def meaning(measured: int, n: int, rows: str) -> str:
    """An explanation of feature importance for the reader: its definition, and the rows on which it was measured.

    >>> print(meaning(500, 8000, "training rows"))
    Feature importance, measured on 500 of the 8,000 training rows: how much the predictions change when a column is \
shuffled among these rows, as a share of the changes by all columns. The shares add up to 100 %; the model does not \
use a column with 0 %.
    """
    which = f"the {n:,}" if measured == n else f"{measured:,} of the {n:,}"
    return (
        f"Feature importance, measured on {which} {rows}: how much the predictions change when a column is shuffled "
        "among these rows, as a share of the changes by all columns. The shares add up to 100 %; the model does not "
        "use a column with 0 %."
    )


def exposure_of(model: Any) -> str | None:
    """The column that is the exposure of a model's counts, or None."""
    while model is not None:
        if hasattr(model, "columns_"):
            name: str | None = model.columns_.exposure
            return name
        model = getattr(model, "model_", None)
    return None


def feature_importance(model: Any, X: Any, *, random_state: int = 0) -> Matrix:
    """How much the predictions of a fitted model rely on each column of X, as shares that add up to 1, shape (d,).

    Each column in turn is shuffled among the rows. The change is the mean squared difference of the predictions, or
    the share of rows whose predicted class changes; the importance of a column is its change divided by the sum of all
    changes. (If the model is a sum of functions of independent columns, these are their shares of the variance.) All
    shares are 0 if no prediction ever changes; changes within rounding count as 0. No targets are needed. A column that
    is the exposure of counts is not a feature, and has the share 0.

    Parameters
    ----------
    model : a fitted model.
    X : rows to shuffle: an array, a pandas or Polars frame, with at least two columns to compare.
    random_state : seed of the permutation, which is the same for all columns.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = mc.Ridge(alpha=1e-9).fit(X, 3 * X[:, 0] + X[:, 1])
    >>> feature_importance(model, X).round(1)
    array([0.9, 0.1, 0. ])
    """
    base = np.asarray(model.predict(X))
    order = generator(random_state).permutation(len(base))
    names, exposure = column_names(X), exposure_of(model)
    changes = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        if exposure is None or names[j] != exposure:
            changes[j] = row_losses(model, base, np.asarray(model.predict(shuffled(X, j, order)))).mean()
    if base.dtype.kind == "f" and not is_classifier(model):
        changes[changes <= (ROUNDINGS * np.finfo(base.dtype).eps * np.abs(base).max()) ** 2] = 0.0
    return np.asarray(changes / (changes.sum() or 1.0))
