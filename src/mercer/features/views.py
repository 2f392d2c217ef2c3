"""Maps of kernels that see the points through another map: some columns of them, or the image of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.frames import is_frame
from mercer.data.points import as_argument, length, select_columns
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.elementary import feature_of, image_of
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number


@dataclass(frozen=True)
class ColumnsMap(FeatureMap):
    """phi(x[columns]), the map of a kernel on some columns.

    Parameters
    ----------
    phi : FeatureMap
        The map of the kernel on these columns.
    columns : tuple
        Positions, or names where the points are a data frame.
    d : int or None
        The number of columns of the whole points; None takes any.

    Examples
    --------
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
            object.__setattr__(self, "d", check_whole_number(self.d, "d", owner="ColumnsMap"))
            for column in self.columns:
                if not isinstance(column, str) and not -self.d <= column < self.d:
                    raise InvalidInput(
                        f"Column {column!r} must exist", got=f"{self.d} columns", advice="Count columns from 0."
                    )

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    @property
    def inputs(self) -> int | None:
        return self.d

    def _fill(self, X: Any, out: Array) -> None:
        X = as_argument(X)
        if self.d is not None and not is_frame(X) and np.shape(X)[1:] != (self.d,):
            raise InvalidInput(
                f"X must be 2-D with {self.d} columns",
                got=f"shape {np.shape(X)}",
                advice="Pass the columns that the map was made for.",
            )
        self.phi._fill(select_columns(X, self.columns), out)

    def _term(self, j: int, x: Variables) -> Term:
        return self.phi._term(j, lambda i: self._column(self.columns[i], x))

    def _column(self, column: int | str, x: Variables) -> Term:
        return atom(column) if isinstance(column, str) else x(column % self.d if self.d else column)


@dataclass(frozen=True)
class ComposedMap(FeatureMap):
    """phi(inner(x)), the map of k(inner(x), inner(z)).

    Parameters
    ----------
    phi : FeatureMap
        The map of k.
    inner : function
        A function of data sets, or an object with `transform`, such as another map.
    d : int or None
        The number of columns of the points; None takes any objects.

    Examples
    --------
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
                advice="Write it for whole data sets, as a scikit-learn transformer is.",
            )
        self.phi._fill(image, out)

    def _term(self, j: int, x: Variables) -> Term:
        return self.phi._term(j, lambda i: feature_of(self.inner, i, x))
