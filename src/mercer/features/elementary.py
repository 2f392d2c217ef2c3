"""The maps from which others are made: the points themselves, a constant, a matrix, any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.points import as_argument, length
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, dense, vectors
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number


@dataclass(frozen=True)
class IdentityMap(FeatureMap):
    """phi(x) = x, the map of ⟨x, z⟩.

    Parameters
    ----------
    d : int
        The number of columns.

    Examples
    --------
    >>> IdentityMap(3).names
    ['x0', 'x1', 'x2']
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", check_whole_number(self.d, "d", owner="IdentityMap"))

    @property
    def dimension(self) -> int:
        return self.d

    @property
    def inputs(self) -> int:
        return self.d

    def _fill(self, X: Any, out: Array) -> None:
        out[...] = dense(X, self.d)

    def _term(self, j: int, x: Variables) -> Term:
        return x(j)


@dataclass(frozen=True)
class ConstantMap(FeatureMap):
    """phi(x) = 1, the map of the kernel that is 1 everywhere.

    Parameters
    ----------
    like : FeatureMap or None
        A map of the same objects, whose number of columns the points must have; None takes any objects.

    Examples
    --------
    >>> phi = ConstantMap(IdentityMap(2))
    >>> phi.names, phi([[3.0, 4.0], [5.0, 6.0]]).tolist()
    (['1'], [[1.0], [1.0]])
    """

    like: FeatureMap | None = None

    @property
    def dimension(self) -> int:
        return 1

    @property
    def inputs(self) -> int | None:
        return None if self.like is None else self.like.inputs

    def _fill(self, X: Any, out: Array) -> None:
        if self.inputs is not None and (len(getattr(X, "shape", ())) != 2 or X.shape[1] != self.inputs):
            vectors(X, self.inputs)
        out[...] = 1.0

    def _term(self, j: int, x: Variables) -> Term:
        return Term()


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap(FeatureMap):
    """phi(x) = Mᵀx, the map of xᵀAz with A = MMᵀ, such as M = A^½.

    Parameters
    ----------
    matrix : array
        M, of shape (d, m).

    Examples
    --------
    >>> phi = LinearMap([[1.0, 1.0], [0.0, 2.0]])
    >>> phi.names, phi([[3.0, 4.0]]).tolist()
    (['a0·x', 'a1·x'], [[3.0, 11.0]])
    """

    matrix: Any

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise InvalidInput(
                "`matrix` of LinearMap must be finite with one row per column of X",
                got=f"shape {matrix.shape}",
                advice="Pass a d × m matrix.",
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def inputs(self) -> int:
        return int(self.matrix.shape[0])

    def _fill(self, X: Any, out: Array) -> None:
        out[...] = vectors(X, self.inputs) @ self.matrix  # in float64, then rounded once

    def _term(self, j: int, x: Variables) -> Term:
        return atom(f"a{j}·x")

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"LinearMap({self.matrix.tolist() if self.matrix.size <= 16 else f'<{rows}×{columns} matrix>'})"


@dataclass(frozen=True)
class FunctionMap(FeatureMap):
    """phi(x) for any function of data sets, X → n × dimension.

    Parameters
    ----------
    phi : function
        A function of data sets, or an object with `transform`.
    dimension : int or None
        The number of features; if None, found by applying phi to the origin of d columns.
    d : int or None
        The number of columns, for functions of vectors.

    Examples
    --------
    >>> FunctionMap(np.square, d=3).dimension
    3
    """

    phi: Callable[[Any], Any]
    dimension: Any = None  # a whole number after construction
    d: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.phi, FeatureMap):
            object.__setattr__(self, "dimension", self.phi.dimension)
            return
        if self.dimension is not None:
            object.__setattr__(self, "dimension", check_whole_number(self.dimension, "dimension", owner="FunctionMap"))
            return
        if not isinstance(self.d, (int, np.integer)):
            raise InvalidInput(
                "FunctionMap must know its `dimension`, or the number `d` of columns to find it",
                got=f"dimension=None, d={self.d!r}",
                advice="Pass FunctionMap(phi, dimension=m), which takes any objects.",
            )
        object.__setattr__(self, "dimension", int(self._image(np.zeros((1, self.d))).shape[1]))

    @property
    def inputs(self) -> int | None:
        return self.d if isinstance(self.d, (int, np.integer)) else None

    def _image(self, X: Any) -> Array:
        image = image_of(self.phi, X)
        image = np.asarray(image.toarray() if hasattr(image, "toarray") else image)
        if image.ndim != 2 or len(image) != length(X) or self.dimension not in (None, image.shape[1]):
            raise InvalidInput(
                f"phi must return an array of shape ({length(X)}, {self.dimension or 'dimension'})",
                got=f"shape {image.shape}",
                advice="Write phi for whole data sets, with one row per point as its result.",
            )
        return image

    def _fill(self, X: Any, out: Array) -> None:
        out[...] = self._image(X)

    def _term(self, j: int, x: Variables) -> Term:
        return feature_of(self.phi, j, x)


def image_of(phi: Any, X: Any) -> Any:
    """phi(X) for a function of data sets, or phi.transform(X)."""
    X = as_argument(X)
    return phi.transform(X) if hasattr(phi, "transform") else phi(X)


def feature_of(phi: Any, j: int, x: Variables) -> Term:
    """The name of the j-th feature of any map: as a `FeatureMap` names it, else "phi0(x)" after the function."""
    if isinstance(phi, FeatureMap):
        return phi._term(j, x)
    label = getattr(phi, "__name__", "phi")
    return atom(f"{label if label.isidentifier() else 'phi'}{j}(x)")
