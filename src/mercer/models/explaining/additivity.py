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
from mercer.kernels.algebra.linear import Scaled, Sum
from mercer.kernels.algebra.nodes import Constant
from mercer.kernels.algebra.views import On
from mercer.kernels.tables.additive import Additive
from mercer.kernels.tables.typed import Typed
from mercer.kernels.vectors.dot import Linear
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
    positions, labels = seen
    if isinstance(inner, Ridge):
        return _merged([{position} for position in positions] if inner.features is None else [set(positions)])
    return _merged(_terms(inner.kernel_, positions, labels))


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
    terms = [part for part in kernel.parts if any(term & set(columns) for term in _terms(part, *seen))]
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


def _seen(model: Any, X: Any) -> tuple[list[int], list[str]] | None:
    """Positions in X and names of the columns that the model inside sees; None if they are not columns of X."""
    names: list[Any] = column_names(X) if is_frame(X) else list(range(X.shape[1]))
    features = rows_of_innermost(model, X)
    seen: list[Any] = column_names(features) if is_frame(features) else list(range(features.shape[1]))
    return ([names.index(name) for name in seen], list(map(str, seen))) if set(seen) <= set(names) else None


def _predicts_its_function(model: Any, inner: Any) -> bool:
    """Whether predictions are the values of the fitted function, not of a nonlinear function of them."""
    while model is not inner:
        if isinstance(getattr(model, "response_", None), LogScale):
            return False
        model = model.model_
    return isinstance(inner, (KernelRidge, GaussianProcessRegressor, SVR, NuSVR, KernelQuantileRegressor, Ridge))


def _terms(kernel: Any, positions: list[int], names: list[Any]) -> list[set[int]]:
    """The columns of each term of a kernel that is a sum, where it sees the columns at these positions."""
    if isinstance(kernel, Sum):
        return [term for part in kernel.parts for term in _terms(part, positions, names)]
    if isinstance(kernel, Constant):
        return []
    if isinstance(kernel, Scaled):
        return _terms(kernel.kernel, positions, names)
    if isinstance(kernel, Typed):
        return _terms(kernel.inner, positions, names)
    if isinstance(kernel, On):
        chosen = [c if isinstance(c, int) else names.index(c) for c in kernel.columns]
        return _terms(kernel.inner, [positions[c] for c in chosen], [names[c] for c in chosen])
    if isinstance(kernel, (Additive, Linear)):
        return [{position} for position in positions]
    return [set(positions)]


def _merged(terms: list[set[int]]) -> Groups:
    """The terms, joined where they share columns."""
    groups: list[set[int]] = []
    for term in terms:
        joined = set(term).union(*(group for group in groups if group & term))
        groups = [group for group in groups if not group & term] + [joined]
    return tuple(sorted(tuple(sorted(group)) for group in groups if group))
