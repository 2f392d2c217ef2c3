"""Why this prediction: the training rows that are most similar to a row, as the kernel of the model sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points, length
from mercer.errors import InvalidInput
from mercer.kernels.base import Weight
from mercer.models.base import given_rows, innermost, rows_of_innermost
from mercer.validation import check_whole_number

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SimilarRows:
    """The training rows that are most similar to a row.

    Attributes
    ----------
    rows : Index
        Their positions, the most similar one first, shape (k,): in the rows of the argument `among`, or without it in
        those that the model was fitted to. If the model does not know these positions, reading `rows` is an error.
    kept : Index
        Their positions among the rows that were compared, shape (k,): those of `among`, or those that the model keeps.
    similarity : array
        The kernel between the row and these, divided by √(k(x, x) k(z, z)): 1 for equal rows, shape (k,). For a
        smoothing weight, the weight divided by that of an equal row.
    share : array
        Their shares of the total similarity to all of these rows, shape (k,).
    terms : array or None
        cᵢ k(x, xᵢ), their terms in the fitted function, shape (k,) or (k, t); None for other rows than those that the
        model keeps, or if it has no such terms.
    points
        The rows themselves, as the model sees them.
    compared : int
        The number of rows that were compared.
    """

    kept: Index
    similarity: Matrix
    share: Matrix
    terms: Matrix | None
    points: Any
    compared: int
    positions: Index | None = field(repr=False)

    @property
    def rows(self) -> Index:
        """The positions of the similar rows in `among`, or in the rows that the model was fitted to."""
        if self.positions is None:
            raise InvalidInput(
                "The positions of similar rows need a model that knows which training rows it keeps",
                got=f"one that keeps {self.compared:,} rows, such as centres or the rows of a file, without positions",
                advice="Pass the training rows as `among`, or read `points`, the similar rows themselves.",
            )
        return self.positions[self.kept]


def similar_rows(model: Any, row: Any, *, among: Any = None, top: int = 5) -> SimilarRows:
    """The training rows that are most similar to one row, by the kernel of a fitted model.

    A kernel model predicts Σ cᵢ k(x, xᵢ) + a constant, so the rows with large k(x, xᵢ) decide about the prediction.
    The model keeps all of its training rows, or only those that it needs: support vectors, or the centres of an
    approximation.

    Parameters
    ----------
    model : estimator
        A fitted model with a kernel, on any kind of data.
    row : array, frame or list of objects
        One row: a table or a list of length 1.
    among : array, frame, list of objects or None
        Rows to compare with, such as all training rows; by default those that the model keeps.
    top : int
        The number of similar rows.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.arange(10.0)[:, None]
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1).fit(X, X[:, 0] ** 2)
    >>> similar = mc.similar_rows(model, [[3.2]], top=3)
    >>> similar.rows, similar.similarity.round(2)
    (array([3, 4, 2]), array([0.98, 0.73, 0.49]))
    """
    check_whole_number(top, "top", such_as=5)
    if length(row) != 1:
        raise InvalidInput("`row` must be one row", got=f"{length(row)}", advice="Pass X[[i]], or X[i:i + 1].")
    points, coef = kept_rows(model) if among is None else (_seen(model, among), None)
    if points is None or getattr(innermost(model), "kernel_", None) is None:
        raise InvalidInput(
            "The model must have a kernel, and keep the rows that it compares with",
            got=type(innermost(model)).__name__,
            advice="Choose a kernel model such as mc.KernelRidge, mc.SVC or mc.AutoRegressor.",
        )
    values, similarity = (matrix[0] for matrix in _similarities(model, _seen(model, row), points))
    order = np.argsort(-similarity, kind="stable")[:top]
    total = float(np.abs(values).sum())
    share = np.abs(values[order]) / total if total > 0 else np.zeros(len(order))
    terms = None if coef is None else coef[order] * (values[order] if coef.ndim == 1 else values[order, None])
    positions = kept_positions(model, points.n) if among is None else np.arange(points.n)
    return SimilarRows(order, similarity[order], share, terms, points.take(order).raw, points.n, positions)


def _seen(model: Any, rows: Any) -> Points:
    """Rows as the model inside an automatic or a conformal model sees them."""
    inner, features = innermost(model), rows_of_innermost(model, rows)
    return inner._queries(features) if hasattr(inner, "_queries") else Points(features)


def _similarities(model: Any, x: Points, z: Points) -> tuple[Matrix, Matrix]:
    """The kernel between two data sets, and the same divided by √(k(x, x) k(z, z))."""
    kernel = innermost(model).kernel_
    values = np.asarray(kernel(x.raw, z.raw), dtype=np.float64)
    if isinstance(kernel, Weight):
        return values, values / float(np.asarray(kernel(x.take([0]).raw))[0, 0] or 1.0)
    lengths = np.sqrt(np.maximum(np.outer(kernel.diag(x), kernel.diag(z)), 0.0))
    return values, np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)


def kept_rows(model: Any) -> tuple[Points | None, Matrix | None]:
    """The rows that a model compares with, and their coefficients; None for a part that it does not have."""
    inner = innermost(model)
    try:
        function = inner.function_
        return function.points, np.asarray(function.coef)
    except (AttributeError, InvalidInput):  # some models have no function, and some files lack its points
        pass
    vectors = getattr(inner, "support_vectors_", None)
    dual = None if vectors is None else getattr(inner, "dual_coef_", None)  # others compute theirs from training rows
    if dual is not None:
        coef = np.atleast_2d(np.asarray(dual)).T
        points = Points(vectors)
        return (points, coef) if len(coef) == points.n else (None, None)
    try:
        kept = inner._rows.points if hasattr(inner, "_rows") else getattr(inner, "_points", None)
    except InvalidInput:  # a file without training rows
        return None, None
    return (kept, None) if isinstance(kept, Points) else (None, None)


def kept_positions(model: Any, n: int) -> Index | None:
    """The positions, in the rows that the model was fitted to, of the n rows that it keeps; None if not known."""
    positions = positions_of_innermost(innermost(model), n)
    layers = [model]
    while hasattr(layers[-1], "model_"):
        layers.append(layers[-1].model_)
    for outer, inner in reversed(list(pairwise(layers))):  # some wrappers fit the model inside to some rows only
        given, used = given_rows(outer), given_rows(inner)
        rows = getattr(outer, "rows_", getattr(outer, "_train", None))
        if positions is None or (rows is None and given is not None and given != used):
            return None
        positions = positions if rows is None else np.asarray(rows)[positions]
    return positions


def positions_of_innermost(inner: Any, n: int) -> Index | None:
    """The positions of the n rows that a model keeps among those of its own fit; None if not known."""
    support, total = getattr(inner, "support_", None), given_rows(inner)
    if support is not None and len(support) == n:
        return np.asarray(support, dtype=np.int64)
    return np.arange(n) if n == total and isinstance(getattr(inner, "centers", ""), str) else None
