"""Rows of Dask in `fit`, and lazily in `predict` and its like: the same for every estimator.

`KernelEstimator` wraps these methods in every class; without Dask the wrappers cost one comparison of names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import getattr_static
from types import FunctionType
from typing import Any

from mercer import threads
from mercer.data.cluster import each_block, in_memory, is_dask
from mercer.data.dask_rows import DaskRows
from mercer.errors import InvalidInput

LAZY = ("predict", "predict_proba", "decision_function", "transform", "score_samples", "pdf", "predict_interval")
"""Methods that treat every row by itself: rows of Dask give a result of Dask, which is computed when it is needed."""


def with_rows_of_dask(cls: type) -> None:
    """Let the methods of a class take rows of Dask: those that it defines, and those that it has from a mixin."""
    for name in LAZY:
        method = getattr_static(cls, name, None)
        if isinstance(method, FunctionType) and not hasattr(method, "takes_dask"):
            setattr(cls, name, lazily(method))


def lazily(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of rows that returns a lazy result for rows of Dask."""

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        if any(is_dask(value) for value in (*args, *kwargs.values())):
            raise InvalidInput(
                f"`{method.__name__}` of rows of Dask takes other arguments in memory only",
                got="another collection of Dask",
                advice="Compute both, or call the method on each block: X.map_blocks.",
            )
        return each_block(_Call(method.__name__, args, kwargs), self, X)

    wrapped.takes_dask = True  # type: ignore[attr-defined]
    return wrapped


class _Call:
    """A method and its arguments beside the rows, in one thread: what a worker runs on every block."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs

    def __call__(self, model: Any, X: Any) -> Any:
        with threads.alone():
            return getattr(model, self.name)(X, *self.args, **self.kwargs)


def fitted_on_cluster(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that takes rows of Dask: as `DaskRows`, for models that take rows in batches; targets come here."""

    @wraps(fit)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(in_memory, args)), {name: in_memory(value) for name, value in kwargs.items()}
        if not is_dask(X):
            return fit(self, X, *args, **kwargs)
        if not self._in_batches:
            raise InvalidInput(
                f"{type(self).__name__} needs all rows in memory",
                got="rows of Dask",
                advice="Pass X.compute(), or use KernelRidge, KernelGLM, KernelLogisticRegression, "
                "LeastSquaresClassifier, ParzenDensity or a Nadaraya-Watson model, which sum over the rows on the "
                "cluster.",
            )
        if self._keeps_rows:
            return fit(self, DaskRows(X), *args, **kwargs)
        with DaskRows(X) as rows:
            return fit(self, rows, *args, **kwargs)

    return wrapped
