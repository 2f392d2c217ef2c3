"""Support vector machines: C and ε by folds on a sample, then a machine of as many rows as the time allows."""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer as mc
from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.models.auto.plan import LEAST_TIME
from mercer.models.offers.request import FIT_SHARE, SEARCH_SHARE, Request

FOLDS = 3
"""The number of folds of a search."""
PAIR_OF_CLASSES = 6e-4
"""Seconds for the problem of two of several classes, however small it is."""


def classifier(request: Request, X: Any, y: Any) -> Any:
    """A support vector machine, with probabilities where every class has two rows."""
    C = _by_folds(request, X, y, mc.SVC(request.kernel), {"C": [0.1, 1.0, 10.0, 100.0]})["C"]
    enough = int(np.unique(y, return_counts=True)[1].min()) > 1
    model = _last(
        request, mc.SVC(request.kernel, C=C, calibrated=enough, **request.by_class()), X, y, 1 + FOLDS * enough
    )
    if enough and not _has_probabilities(model, X):
        request.choices.append("no probabilities: the time limit was reached before they were fitted")
        request.clock.late()
        model.set_params(calibrated=False)
    return model


def regressor(request: Request, X: Any, y: Any) -> Any:
    """Support vector regression."""
    spread = float(np.std(y)) or 1.0
    # C and ε are in units of the target: ½‖f‖² + C Σ |y − f|_ε.
    grid = {"C": [spread * c for c in (0.3, 1.0, 3.0, 10.0, 100.0)], "epsilon": [0.05 * spread, 0.2 * spread]}
    chosen = _by_folds(request, X, y, mc.SVR(request.kernel), grid)
    return _last(request, mc.SVR(request.kernel).set_params(**chosen), X, y, 1)


def _by_folds(request: Request, X: Any, y: Any, model: Any, grid: dict[str, list[float]]) -> dict[str, float]:
    """The parameters of the highest mean score over folds, on a sample if there are many rows."""
    fits = FOLDS * int(np.prod([len(values) for values in grid.values()]))
    planned = request.sizes(y, lambda r: fits * _cost(request, y, r * (FOLDS - 1) / FOLDS), SEARCH_SHARE)
    sizes = " × ".join(str(len(values)) for values in grid.values())

    def search(X: Any, y: Any, weighted: dict[str, Any]) -> dict[str, float]:
        request.progress(f"support vectors: {sizes} candidates by {FOLDS} folds of {len(y):,} rows")
        tuned = mc.tune(model, X, y, cv=FOLDS, grid=grid, **weighted)
        return {name: float(getattr(tuned, name)) for name in grid}

    rows, chosen = request.stages(X, y, planned, search)
    on = f" of {rows:,} rows" if rows < len(y) else ""
    words = ", ".join(f"{name} = {value:.3g}" for name, value in chosen.items())
    request.choices.append(f"{words}, the best by {FOLDS} folds{on}")
    return chosen


def _cost(request: Request, y: Any, rows: float) -> float:
    """Seconds for a machine of this many rows: each pair of classes is a problem of its own, however small it is."""
    k = len(np.unique(y)) if request.task == "classification" else 2
    return request.plan.machine_of_rows(rows) + PAIR_OF_CLASSES * (k * (k - 1) // 2 - 1)


def _last(request: Request, model: Any, X: Any, y: Any, fits: int) -> Any:
    """The machine of as many rows as the plan allows; it reports its duality gap."""
    from sklearn.base import clone

    planned = request.sizes(y, lambda r: fits * _cost(request, y, r), FIT_SHARE)

    def fit(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        request.progress(f"support vector machine of {len(y):,} rows")
        machine = clone(model).set_params(
            max_time=max(request.clock.left, LEAST_TIME),
            progress=lambda step: request.progress(
                f"support vectors of {len(y):,} rows: gap {step.gap:.2g}, until {model.tol:g}"
            ),
        )
        return machine.fit(X, y, **weighted).set_params(progress=None, max_time=None)

    rows, fitted = request.stages(X, y, planned, fit, lambda machine: machine.end_ == "converged")
    request.used(y, rows, planned[-1])
    return fitted


def _has_probabilities(model: Any, X: Any) -> bool:
    """Whether a calibrated machine completed its calibration: one that was stopped predicts classes only."""
    try:
        model.predict_proba(take(X, np.arange(1)))
    except InvalidInput:
        return False
    return True
