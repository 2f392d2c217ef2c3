"""A Gaussian process: widths, noise and scale by the evidence of a sample, then an exact fit to more rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer as mc
from mercer.memory import budget
from mercer.models.offers.request import FIT_SHARE, SEARCH_SHARE, Request

EVALUATIONS, HELD_EVALUATIONS = 30, 6
"""Evaluations of the evidence that a search needs: of all widths, and of noise and scale only."""
BYTES_PER_PAIR = 3 * 8
"""Memory of an exact fit for each pair of rows."""
EXACT_FIT = 0.1
"""The cost of an exact fit, in evaluations on the same rows."""
SCORED, VARIANCE = 0.25, 5e-11
"""Rows that are scored after a fit, as a share of its rows; and the seconds of their variance for each pair of rows."""


def gp(request: Request, X: Any, y: Any) -> Any:
    """A Gaussian process regression."""
    kernel = request.kernel if request.kernel is not None else mc.median_gaussian(X)
    scaled = 1.0 * kernel
    hold: list[str] = []
    if request.own_kernel:
        inner = "kernel__kernel__" if isinstance(scaled, mc.Scaled) else "kernel__"
        hold = [f"{inner}{name}" for name in kernel.parameter_names]
    evaluations, p = (HELD_EVALUATIONS, 1) if hold else (EVALUATIONS, len(scaled.theta))
    in_memory = int(np.sqrt(budget() / BYTES_PER_PAIR))
    searched = request.sizes(y, lambda r: evaluations * request.plan.evaluation(r, p), SEARCH_SHARE)
    searched = tuple(dict.fromkeys(min(rows, in_memory) for rows in searched))

    def search(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        request.progress(f"Gaussian process: maximising the evidence of {len(y):,} rows")
        return mc.GaussianProcessRegressor(
            scaled, normalize_y=True, alpha=0.1, tune="evidence", n_restarts=0, hold=hold
        ).fit(X, y, **weighted)

    rows, model = request.stages(X, y, searched, search)
    what = "noise and scale" if hold else "widths, noise and scale"
    on = f" of {rows:,} of {len(y):,} rows" if rows < len(y) else ""
    request.choices.append(f"{what} maximise the evidence{on}" + ("; the kernel is as given" if hold else ""))
    if rows == len(y):
        request.used(y, rows, rows)
        return model

    def cost(r: int) -> float:
        return EXACT_FIT * request.plan.evaluation(r) + SCORED * len(y) * VARIANCE * r**2

    planned = request.sizes(y, cost, FIT_SHARE)
    sizes = tuple(size for size in dict.fromkeys(min(size, in_memory) for size in planned) if size > rows)
    if not sizes:
        request.used(y, rows, searched[-1], limit="memory" if rows >= in_memory else "time")
        return model
    settled = model.get_params(deep=False) | {"kernel": model.kernel_, "alpha": model.alpha_, "tune": None}

    def last(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        request.progress(f"Gaussian process of {len(y):,} rows")
        return mc.GaussianProcessRegressor(**settled).fit(X, y, **weighted)

    rows, model = request.stages(X, y, sizes, last)
    request.used(y, rows, sizes[-1], limit="memory" if rows >= in_memory else "time")
    return model
