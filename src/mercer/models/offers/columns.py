"""Linear models of the columns themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mercer as mc
from mercer.data.points import take
from mercer.models.offers.request import FIT_SHARE, SEARCH_SHARE, Request

# Seconds per row and pair of columns: of a decomposition, and of the Newton steps of a logistic regression.
DECOMPOSED, NEWTON = 2e-9, 1e-8
PENALTIES = ((1.0, 0.1, 0.01), (10.0, 100.0))
"""The penalties of logistic regression that are compared: from the first one to smaller and to larger ones."""


def ridge(request: Request, X: Any, y: Any) -> Any:
    """Ridge regression, its penalty by leave-one-out."""
    planned = request.sizes(y, lambda r: DECOMPOSED * r * (1 + X.shape[1]) ** 2, FIT_SHARE)

    def fit(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        return mc.Ridge(alpha="loo").fit(X, y, **weighted)

    rows, model = request.stages(X, y, planned, fit)
    request.choices.append(f"alpha = {model.alpha_:.3g}, with the smallest leave-one-out error")
    request.used(y, rows, planned[-1])
    return model


def logistic(request: Request, X: Any, y: Any) -> Any:
    """Logistic regression, its penalty by leave-one-out."""
    size = (1 + X.shape[1]) * max(1, len(np.unique(y)) - 1)
    rows = request.sizes(y, lambda r: sum(map(len, PENALTIES)) * NEWTON * r * size**2, SEARCH_SHARE)[-1]
    index = request.sample(y, rows)
    X_, y_ = take(X, index), y[index]

    def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            model = mc.LogisticRegression(alpha=alpha, **request.by_class()).fit(X_, y_, **request.weighted(index))
            return (model, alpha), -float(model.loo_log_loss_)

        return f"alpha = {alpha:g}", make

    model, alpha = request.best(
        (map(candidate, path) for path in PENALTIES), "leave-one-out log likelihood", rows, len(y)
    )
    if rows == len(y):
        request.used(y, rows, rows)
        return model
    planned = request.sizes(y, lambda r: NEWTON * r * size**2, FIT_SHARE)

    def fit(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        return mc.LogisticRegression(alpha=alpha, **request.by_class()).fit(X, y, **weighted)

    rows, model = request.stages(X, y, planned, fit)
    request.used(y, rows, planned[-1])
    return model
