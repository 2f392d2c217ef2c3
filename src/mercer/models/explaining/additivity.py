"""Whether a model is a sum of functions of groups of columns, and these functions, read from its kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import column_names, is_frame
from mercer.data.points import length
from mercer.kernels.algebra.linear import Sum
from mercer.models.auto.regressor import AutoRegressor
from mercer.models.auto.response import LogScale
from mercer.models.base import innermost, rows_of_innermost
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.least_squares.ridge import Ridge
from mercer.models.svm.svr import SVR, KernelQuantileRegressor, NuSVR
from mercer.rkhs.expansion import Expansion

Groups = tuple[tuple[int, ...], ...]
"""Positions of columns, in groups."""


def column_groups(model: Any, X: Any) -> Groups:
    """Groups of columns of X: the prediction is a sum of one function of each group, and of a constant.

    Columns that the model does not read are in no group. If nothing else is known, all columns are one group.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(20, 4))
    >>> kernel = mc.Gaussian(1.0).on(0) + mc.Gaussian(1.0).on(1, 2) + mc.Linear().on(2)
    >>> column_groups(mc.KernelRidge(kernel).fit(X, X[:, 0]), X)
    ((0,), (1, 2))
    """
    inner, seen = innermost(model), _seen(model, X)
    if seen is None or not _predicts_its_function(model, inner):
        return (tuple(range(X.shape[1])),)
    if isinstance(inner, Ridge):
        return _merged([{position} for position in seen.values()] if inner.features is None else [set(seen.values())])
    return _merged([{seen[name] for name in term} for term in inner.kernel_.terms(list(seen))])


def part_of(model: Any, X: Any, columns: Collection[int]) -> Callable[[Any], NDArray[np.float64]] | None:
    """The terms of the fitted function that read some columns of X: a change of only these columns changes only them.

    They cost as many kernel values as they have terms. None if the predictions are not values of a sum of kernels.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> model = mc.KernelRidge(mc.Gaussian(1.0).on(0) + mc.Gaussian(1.0).on(1)).fit(X, X[:, 0])
    >>> changed, part = X[::-1] * [1.0, 0.0] + X * [0.0, 1.0], part_of(model, X, [0])
    >>> bool(np.allclose(part(changed) - part(X), model.predict(changed) - model.predict(X)))
    True
    """
    inner, outer = innermost(model), model
    while outer is not inner:
        if is_bounded(outer):
            return None
        outer = outer.model_
    kernel = getattr(inner, "kernel_", None)
    seen = _seen(model, X)
    if seen is None or not isinstance(kernel, Sum) or not _predicts_its_function(model, inner):
        return None
    names = {name for name, position in seen.items() if position in columns}
    terms = [part for part in kernel.parts if names & set().union(*part.terms(list(seen)))]
    if not terms:
        return lambda rows: np.zeros(length(rows))
    function = Expansion(reduce(add, terms), inner.function_.points, inner.function_.coef)

    def value(rows: Any) -> NDArray[np.float64]:
        return np.asarray(function(inner._queries(rows_of_innermost(model, rows))), dtype=np.float64)

    return value


def is_bounded(model: Any) -> bool:
    """Whether a model moves negative predictions of the model inside to 0."""
    least = model._least if isinstance(model, AutoRegressor) else getattr(model, "least_", -np.inf)
    return bool(np.isfinite(least))


def _seen(model: Any, X: Any) -> dict[str, int] | None:
    """Positions in X of the columns that the model inside sees, by name; None if they are not columns of X."""
    names: list[Any] = column_names(X) if is_frame(X) else list(range(X.shape[1]))
    features = rows_of_innermost(model, X)
    seen: list[Any] = column_names(features) if is_frame(features) else list(range(features.shape[1]))
    return {str(name): names.index(name) for name in seen} if set(seen) <= set(names) else None


def _predicts_its_function(model: Any, inner: Any) -> bool:
    """Whether predictions are the values of the fitted function, not of a nonlinear function of them."""
    while model is not inner:
        if isinstance(getattr(model, "response_", None), LogScale):
            return False
        model = model.model_
    return isinstance(inner, (KernelRidge, GaussianProcessRegressor, SVR, NuSVR, KernelQuantileRegressor, Ridge))


def _merged(terms: list[set[int]]) -> Groups:
    """The terms, joined where they share columns."""
    groups: list[set[int]] = []
    for term in terms:
        joined = set(term).union(*(group for group in groups if group & term))
        groups = [group for group in groups if not group & term] + [joined]
    return tuple(sorted(tuple(sorted(group)) for group in groups if group))
