"""Tables with numbers and categories: which columns are which, their levels, and smoothing over levels.

Categories are smoothed over their levels, as numbers are over their neighbours: a row at level c' puts the mass
L[c, c'] on level c. Unordered levels share λ evenly (Aitchison & Aitken); ordered ones get λ^|c − c'| (Wang & van
Ryzin), normalised over the existing levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from mercer.data import frames
from mercer.data.frames import column_names, declared_levels, is_frame
from mercer.data.missing import refuse_missing
from mercer.data.objects import object_array, object_matrix
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput, InvalidType
from mercer.validation import check_numbers, is_whole_number

Float = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MixedTable:
    """The columns of a table: positions of numbers and of categories, with the levels that `fit` saw.

    numbers, categories : positions of the columns.
    ordered : for every column of categories, whether its levels are ordered.
    levels : for every column of categories, its levels: sorted, or in the declared order.
    """

    width: int
    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    ordered: tuple[bool, ...]
    levels: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, X: Any, categorical: Any, ordered: Any) -> MixedTable:
        """The columns of X, of which these (positions or names) hold categories."""
        if categorical is None and ordered is None:
            width = dense(X).shape[1]
            return cls(width, tuple(range(width)), (), (), ())
        X = _records(X)
        width = X.shape[1]
        nominal, ranked = _positions(X, categorical, "categorical"), _positions(X, ordered, "ordered")
        if set(nominal) & set(ranked):
            raise InvalidInput(
                "A column must be either `categorical` or `ordered`",
                got=f"column {min(set(nominal) & set(ranked))} in both",
                advice="Name each column in one of them.",
            )
        chosen = (*nominal, *ranked)
        columns = _columns(X)
        orders = _given_orders(X, ordered)
        levels = tuple(
            _ranks(columns[k], k, orders.get(k, _declared(X, k))) if k in ranked else _levels(columns[k], k)
            for k in chosen
        )
        numbers = tuple(k for k in range(width) if k not in chosen)
        return cls(width, numbers, chosen, (False,) * len(nominal) + (True,) * len(ranked), levels)

    def split(self, X: Any) -> tuple[Float, Codes]:
        """The numbers (n, d) in float64, and the codes (n, q) of the categories, −1 for a level unknown to `fit`."""
        if not self.categories:
            numbers = dense(X)
            return numbers, np.empty((len(numbers), 0), dtype=np.int64)
        X = _records(X)
        if X.shape[1] != self.width:
            raise InvalidInput(
                f"X must have {self.width} features, as in `fit`",
                got=f"{X.shape[1]} columns",
                advice="Pass the columns that the model was fitted to.",
            )
        columns = _columns(X)
        n = len(columns[0])
        codes = np.empty((n, len(self.categories)), dtype=np.int64)
        for j, (k, levels) in enumerate(zip(self.categories, self.levels)):
            place = {level: c for c, level in enumerate(levels.tolist())}
            codes[:, j] = [place.get(v, -1) for v in _values(columns[k], k)]
        if not self.numbers:
            return np.empty((n, 0)), codes
        return dense(np.column_stack([columns[k] for k in self.numbers])), codes

    def join(self, numbers: Float, codes: Codes, like: Any) -> Any:
        """Numbers and codes as the same kind of table as `like`: an array or a data frame."""
        if not self.categories and not is_frame(like):
            return numbers
        columns: list[Any] = [None] * self.width
        for j, k in enumerate(self.numbers):
            columns[k] = numbers[:, j]
        for j, (k, levels) in enumerate(zip(self.categories, self.levels)):
            columns[k] = levels[codes[:, j]]
        if is_frame(like):
            return frames.build(like, dict(zip(like.columns, columns)), retyped=self.categories)
        if all(np.asarray(c).dtype.kind in "iufb" for c in columns):
            return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns])
        return object_matrix(list(zip(*columns)))


def dense(X: Any) -> Float:
    """X as a float64 matrix; sparse data is refused."""
    if sp.issparse(X):
        raise InvalidInput("A density requires dense data", got="a sparse matrix", advice="Pass X.toarray().")
    try:
        return np.asarray(as_vectors(X), dtype=np.float64)
    except InvalidType as error:
        raise InvalidType(
            error.required, got=error.got, advice="Name columns of categories in `categorical` or `ordered`."
        ) from None


def _records(X: Any) -> Any:
    """X as a table with a shape: a frame, a matrix, or the rows of a list as a matrix."""
    if sp.issparse(X):
        dense(X)
    if not hasattr(X, "shape"):
        X = object_matrix(list(X))
    if len(X.shape) != 2 or 0 in X.shape:
        raise InvalidInput(
            "X must be a table, one row per point",
            got=f"shape {tuple(X.shape)}",
            advice="Reshape X to rows and columns.",
        )
    return X


def _columns(X: Any) -> list[NDArray[Any]]:
    return frames.arrays(X) if is_frame(X) else [np.asarray(X[:, k]) for k in range(X.shape[1])]


def _positions(X: Any, columns: Any, name: str) -> tuple[int, ...]:
    """Columns, by position or name, as sorted positions."""
    if columns is None:
        return ()
    names = column_names(X)
    positions = set()
    for column in [columns] if isinstance(columns, (str, int, np.integer)) else columns:
        if isinstance(column, str) and column in names:
            positions.add(names.index(column))
        elif is_whole_number(column) and -X.shape[1] <= column < X.shape[1]:
            positions.add(int(column) % X.shape[1])
        else:
            raise InvalidInput(
                f"`{name}` must name columns of X",
                got=repr(column),
                advice=f"Choose from {names}." if names else f"Choose positions from 0 to {X.shape[1] - 1}.",
            )
    return tuple(sorted(positions))


def _values(column: NDArray[Any], position: int) -> list[Any]:
    """The values of a column of categories; missing ones are refused."""
    refuse_missing(column, position, "Fill them in with a level of their own, or drop the rows.")
    return column.tolist()


def _levels(column: NDArray[Any], position: int) -> NDArray[Any]:
    different = set(_values(column, position))
    try:
        ordered = sorted(different)
    except TypeError:
        ordered = sorted(different, key=lambda v: (type(v).__name__, str(v)))
    return _as_levels(ordered)


def _as_levels(ordered: list[Any]) -> NDArray[Any]:
    levels = np.asarray(ordered)
    return object_array(ordered) if levels.dtype.kind in "US" or levels.tolist() != ordered else levels


# --- the order of levels ----------------------------------------------------------------------------------------------


def _given_orders(X: Any, ordered: Any) -> dict[int, list[Any]]:
    """The levels that `ordered` lists if it is a dict {column: levels}, by position."""
    if not isinstance(ordered, dict):
        return {}
    orders = {}
    for column, listed in ordered.items():
        (position,) = _positions(X, [column], "ordered")
        required = "`ordered` as a dict must list different levels, the lowest first, for every column"
        if isinstance(listed, str) or not hasattr(listed, "__iter__"):
            raise InvalidInput(
                required, got=f"{column!r}: {listed!r}", advice="Pass a list, such as {'grade': ['low', 'high']}."
            )
        levels = np.asarray(listed).tolist() if hasattr(listed, "dtype") else list(listed)
        if not levels or len(set(levels)) < len(levels):
            raise InvalidInput(required, got=f"{column!r}: {listed!r}", advice="Name every level once.")
        orders[position] = levels
    return orders


def _declared(X: Any, position: int) -> list[Any] | None:
    """The order that the type of a column declares: an ordered pandas Categorical, or a Polars Enum."""
    declared = declared_levels(frames.column(X, position)) if is_frame(X) else None
    if declared is None or declared.names is None or declared.ordered is False:
        return None
    return list(declared.names)


def _ranks(column: NDArray[Any], position: int, order: list[Any] | None) -> NDArray[Any]:
    """The levels of an ordered column, lowest first: as declared, including those without a row; numbers by size."""
    seen = _values(column, position)
    if order is None:
        if any(isinstance(v, (str, bytes)) for v in seen):
            raise InvalidInput(
                f"Column {position} is text, so `ordered` must declare the order of its levels",
                got=", ".join(map(repr, sorted(set(map(str, seen)))[:5])),
                advice="Pass ordered={column: levels, the lowest first}, an ordered pandas Categorical or a Polars "
                "Enum; or name it in `categorical`.",
            )
        return _levels(column, position)
    known = set(order)
    unknown = [v for v in seen if v not in known]
    if unknown:
        raise InvalidInput(
            f"The levels of column {position} must be among those that `ordered` lists",
            got=repr(unknown[0]),
            advice=f"Add it to the list {order}.",
        )
    return _as_levels(order)


# --- smoothing over levels --------------------------------------------------------------------------------------------


def level_weights(levels: int, width: float, ordered: bool) -> Float:
    """L[c, c']: the mass that a point at level c' puts on level c; columns sum to one.

    >>> level_weights(3, 0.2, ordered=False)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    if levels == 1:
        return np.ones((1, 1))
    if not ordered:
        L = np.full((levels, levels), width / (levels - 1))
        np.fill_diagonal(L, 1.0 - width)
        return L
    steps = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
    L = np.where(steps == 0, 1.0, 0.5 * width**steps)
    return L / L.sum(axis=0)


def widest(levels: int, ordered: bool) -> float:
    """The largest width: that of equal weights for all levels, or 1 for ordered ones."""
    return 1.0 if ordered else (levels - 1) / levels


def category_widths(bandwidth: Any, table: MixedTable) -> list[float | None]:
    """λ of every column of categories by the parameter `category_bandwidth`; None if it is to be chosen."""
    q = len(table.categories)
    if bandwidth is None:
        return [None] * q
    required = f"`category_bandwidth` must be a number in [0, 1], or one for each of {q} categorical columns"
    advice = "Pass the share of the mass that a level gives to the others, such as 0.1."
    numbers = check_numbers(bandwidth, required, shapes=((), (1,), (q,)), least=0, most=1, advice=advice)
    widths = np.broadcast_to(numbers, (q,))
    # with a larger width a level would keep less mass than it gives to another one
    tops = [widest(len(levels), ordered) for levels, ordered in zip(table.levels, table.ordered)]
    return [float(min(a, top)) for a, top in zip(widths, tops)]


def likeliest_width(counts: Float, ordered: bool) -> float:
    """λ of the largest leave-one-out likelihood of one column of categories on its own.

    >>> round(likeliest_width(np.array([50.0, 50.0]), ordered=False), 3)
    0.5
    """
    levels = len(counts)
    if levels == 1:
        return 0.0
    once = np.minimum(counts, 1.0)

    def loss(width: float) -> float:
        L = level_weights(levels, width, ordered)
        others = L @ counts - np.diag(L) * once
        return -float(counts @ np.log(np.maximum(others, 1e-300)))

    top = widest(levels, ordered)
    minimum = minimize_scalar(loss, bounds=(0.0, top), method="bounded", options={"xatol": 1e-8})
    return float(min(minimum.x, top)) if minimum.fun <= loss(top) else top
