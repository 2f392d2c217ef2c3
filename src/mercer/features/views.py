"""Maps of kernels that see the points through another map: some columns of them, or the image of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, length, whole
from mercer.features.elementary import feature_of, image_of
from mercer.features.terms import Term, Variables, atom


@dataclass(frozen=True)
class ColumnsMap(FeatureMap):
    """phi(x[columns]), the map of a kernel on some columns.

    Parameters
    ----------
    phi : the map of the kernel on these columns.
    columns : positions, or names where the points are a data frame.
    d : the number of columns of the whole points; None takes any.

    >>> from mercer.features import IdentityMap
    >>> phi = ColumnsMap(IdentityMap(2), (0, 2), 3)
    >>> phi.names, phi([[5.0, 6.0, 7.0]]).tolist()
    (['x0', 'x2'], [[5.0, 7.0]])
    """

    phi: FeatureMap
    columns: tuple[int | str, ...]
    d: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.d is not None:
            object.__setattr__(self, "d", whole(self.d, "d", "ColumnsMap"))
            for column in self.columns:
                if not isinstance(column, str) and not -self.d <= column < self.d:
                    raise self._missing(column, self.d)

    @staticmethod
    def _missing(column: int | str, there: object) -> InvalidInput:
        return InvalidInput(f"Column {column!r} must exist", got=f"{there} columns", advice="Columns count from 0.")

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    @property
    def inputs(self) -> int | None:
        return self.d

    def _fill(self, X: Any, out: Array) -> None:
        self.phi._fill(self._select(X), out)

    def _select(self, X: Any) -> Any:
        if hasattr(X, "columns") and hasattr(X, "to_numpy"):  # a pandas or Polars frame
            names = list(X.columns)
            wanted = [
                c if isinstance(c, str) else names[c] if -len(names) <= c < len(names) else c for c in self.columns
            ]
            absent = [c for c in wanted if c not in names]
            if absent:
                raise self._missing(absent[0], names)
            return X[wanted]
        named = [c for c in self.columns if isinstance(c, str)]
        if named:
            raise InvalidInput(
                f"Column names such as {named[0]!r} need a data frame",
                got=f"a {type(X).__name__}",
                advice="Pass a pandas or Polars frame, or select columns by position.",
            )
        A: Any = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if A.ndim != 2 or self.d not in (None, A.shape[1]):
            raise InvalidInput(
                f"X must be 2-D with {self.d or 'enough'} columns", got=f"shape {A.shape}", advice="Check its columns."
            )
        return A[:, list(self.columns)]

    def _term(self, j: int, x: Variables) -> Term:
        return self.phi._term(j, lambda i: self._column(self.columns[i], x))

    def _column(self, column: int | str, x: Variables) -> Term:
        return atom(column) if isinstance(column, str) else x(column % self.d if self.d else column)


@dataclass(frozen=True)
class ComposedMap(FeatureMap):
    """phi(inner(x)), the map of k(inner(x), inner(z)).

    Parameters
    ----------
    phi : the map of k.
    inner : function of data sets, or an object with `transform`, such as another map.
    d : the number of columns of the points; None takes any objects.

    >>> from mercer.features import IdentityMap, MonomialMap
    >>> ComposedMap(MonomialMap(3, degree=1), MonomialMap(2, degree=2), 2).names
    ['x0²', '√2·x0·x1', 'x1²']
    """

    phi: FeatureMap
    inner: Any
    d: int | None = None

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    @property
    def inputs(self) -> int | None:
        return self.d if isinstance(self.d, int) else None

    def _fill(self, X: Any, out: Array) -> None:
        image = image_of(self.inner, X)
        if length(image) != len(out):
            raise InvalidInput(
                f"The inner map must return one row per point, {len(out)} here",
                got=f"{length(image)} rows",
                advice="It receives the whole data set, as a scikit-learn transformer does.",
            )
        self.phi._fill(image, out)

    def _term(self, j: int, x: Variables) -> Term:
        return self.phi._term(j, lambda i: feature_of(self.inner, i, x))
