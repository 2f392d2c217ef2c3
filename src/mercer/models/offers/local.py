"""Local models: smoothers, neighbours and local lines, whose width is chosen by leaving rows out.

Leaving every row out costs a pass over all pairs of rows, so that widths are chosen on a sample. With more rows the
best width is smaller, and the best number of neighbours larger, at known rates: n^(−1/(4 + d)) and n^(4/(4 + d)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import mercer as mc
from mercer.data.points import Points, take
from mercer.kernels.vectors.radial import ByWidth
from mercer.models.offers.request import FIT_SHARE, SEARCH_SHARE, Request
from mercer.tuning import smoothing
from mercer.words import count

# Seconds per pair of rows and coefficient of a local polynomial: of an evaluation with its gradient, and of a value.
SLOPE_PAIR, VALUE_PAIR = 1e-8, 2e-9
# Seconds per pair of rows of a value of a kernel of a table, and of the search for the nearest rows.
TABLE_PAIR, NEAREST_PAIR = 1.5e-8, 3e-8
# Predictions that are expected after a fit, as a share of its rows: scores, intervals and pictures.
PREDICTED = 0.5
POWERS = (4, 8, 16, 32, 64, 128)
"""The powers of a kernel that are compared: a higher one is narrower."""


def smoother(request: Request, X: Any, y: Any) -> Any:
    """A Nadaraya-Watson smoother, of numbers or of votes."""
    cls: Any = mc.NadarayaWatsonRegressor if request.task == "regression" else mc.NadarayaWatsonClassifier
    if request.own_kernel or request.kernel is None:
        return _by_width(request, X, y, lambda **own: cls(request.kernel, **own), coefficients=1, degree=0)
    pair = TABLE_PAIR + request.plan.beyond
    rows = request.sizes(y, lambda r: len(POWERS) * pair * r * r, SEARCH_SHARE)[-1]
    index = request.sample(y, rows)
    X_, y_ = take(X, index), y[index]

    def candidate(power: int) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            model = cls(request.kernel**power).fit(X_, y_, **request.weighted(index))
            return model.kernel_, float(model.loo_score_)

        return f"power {power} of the kernel", make

    kernel = request.best([map(candidate, POWERS)], "leave-one-out score", rows, len(y))
    return _last(request, X, y, lambda _: cls(kernel), pair)


def local_lines(request: Request, X: Any, y: Any) -> Any:
    """Local linear regression."""
    kernel = request.kernel if request.own_kernel else None
    make, coefficients = partial(mc.LocalRegression, kernel), 1 + (_columns(X) or 0)
    return _by_width(request, X, y, make, coefficients, degree=1)


def neighbors(request: Request, X: Any, y: Any) -> Any:
    """The mean or the votes of the nearest rows."""
    cls: Any = mc.KernelNeighborsRegressor if request.task == "regression" else mc.KernelNeighborsClassifier
    pair = NEAREST_PAIR + request.plan.beyond
    planned = request.sizes(y, lambda r: pair * r * r, SEARCH_SHARE)

    def search(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        request.progress(f"nearest neighbours: choosing their number by leave-one-out on {len(y):,} rows")
        return cls(request.kernel, n_neighbors="loo").fit(X, y, **weighted)

    rows, model = request.stages(X, y, planned, search)
    chosen, d = int(model.n_neighbors_), _columns(X)
    rate = 0.0 if d is None else 4.0 / (4.0 + d)  # objects have no known dimension

    def more(total: int) -> Any:
        return cls(model.kernel_, n_neighbors=max(1, round(chosen * (total / rows) ** rate)))

    if rows < len(y):
        model = _last(request, X, y, more, pair)
        by = f"{chosen:,} by leave-one-out on {rows:,} of {len(y):,} rows"
        request.choices.append(f"{count(int(model.n_neighbors_), 'neighbour')}: {by}")
    else:
        request.used(y, rows, rows)
        request.choices.append(f"{count(chosen, 'neighbour')}, the best number by leave-one-out")
    return model


def _columns(X: Any) -> int | None:
    """The number of columns; None for a list of objects."""
    return int(X.shape[1]) if len(getattr(X, "shape", ())) == 2 else None


def _by_width(request: Request, X: Any, y: Any, make: Callable[..., Any], coefficients: int, degree: int) -> Any:
    """A model whose widths are chosen by leave-one-out: on a sample, then adapted to more rows."""
    d = _columns(X) or 1
    evaluations = smoothing.evaluations(d)

    def cost(r: int) -> float:
        pair = SLOPE_PAIR * coefficients
        some = min(r, smoothing.SAMPLE)
        return pair * (evaluations * some**2 + (smoothing.LIMIT_ALL + d) * (r**2 if r > some else 0.0))

    planned = request.sizes(y, cost, SEARCH_SHARE)

    def search(X: Any, y: Any, weighted: dict[str, Any]) -> Any:
        request.progress(f"choosing the width by leave-one-out on {len(y):,} rows")
        return make().fit(X, y, **weighted)

    rows, model = request.stages(X, y, planned, search)
    if rows == len(y):
        request.used(y, rows, rows)
        request.choices.append(model.status_)
        return model
    request.choices.append(f"{model.status_} on {rows:,} of {len(y):,} rows")
    if model.loo_loss_ is None or not isinstance(model.kernel_, ByWidth):  # nothing was chosen
        return _last(request, X, y, lambda _: make(), VALUE_PAIR * coefficients)
    points = Points(X)

    def adapted(total: int) -> Any:
        kernel = smoothing.for_rows(model.kernel_, points, rows, total, degree)
        return make(bandwidth=kernel.sigma)

    return _last(request, X, y, adapted, VALUE_PAIR * coefficients)


def _last(request: Request, X: Any, y: Any, make: Callable[[int], Any], pair: float) -> Any:
    """The model of as many rows as leave time for its predictions, each of which passes over all of them."""
    most = request.sizes(y, lambda r: pair * math.ceil(PREDICTED * len(y)) * r, FIT_SHARE)[-1]
    index = request.sample(y, most)
    request.used(y, most, most)
    return make(most).fit(take(X, index), y[index], **request.weighted(index))
