"""The Gram matrix as an operator: the only thing a solver sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mercer.data.points import Array
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair


class Gram(ABC):
    """K with Kᵢⱼ = k(xᵢ, zⱼ): its shape, its diagonal, parts of it, and its product with vectors.

    Attributes
    ----------
    kernel : the similarity it belongs to.
    x, z : the prepared points of its rows and columns (the same object where K is symmetric).
    symmetric : whether rows and columns are the same points.
    """

    __array_ufunc__ = None  # V @ K reaches __rmatmul__

    def __init__(self, kernel: Similarity, pair: Pair) -> None:
        self.kernel, self.pair = kernel, pair
        self.x, self.z, self.symmetric = pair.x, pair.z, pair.same
        self.shape, self.dtype = pair.shape, pair.dtype

    @abstractmethod
    def block(self, rows: Any, cols: Any) -> Array:
        """The entries at these rows and columns (slices or index arrays), as an array."""

    @abstractmethod
    def __matmul__(self, V: Any) -> Array:
        """K V for V of shape (m,) or (m, t)."""

    def __rmatmul__(self, V: Any) -> Array:
        """V K for a symmetric K."""
        self._require_symmetric("V @ K")
        return (self @ np.asarray(V).T).T

    @abstractmethod
    def dense(self) -> Array:
        """K as an array."""

    def fresh(self, dtype: Any = None) -> Array:
        """K as a new array that belongs to the caller, who may overwrite it.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).fresh("float32")
        array([[1., 2.],
               [2., 4.]], dtype=float32)
        """
        return self.kernel(self.x, None if self.symmetric else self.z, dtype=dtype or self.dtype)

    @abstractmethod
    def restrict(self, index: Any) -> Gram:
        """The Gram of a subset of the points, for a symmetric K."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.dense(), dtype=dtype, copy=copy)

    def rows(self, index: Any) -> Array:
        """Whole rows of K, shape (len(index), m).

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).rows([1])
        array([[2., 4.]])
        """
        return self.block(index, slice(None))

    def diag(self) -> Array:
        """The diagonal of a symmetric K, without the rest.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).diag()
        array([1., 4.])
        """
        self._require_symmetric("diag")
        return self.kernel.diag(self.x).astype(self.dtype, copy=False)

    @property
    def nbytes(self) -> int:
        """Bytes that the dense matrix takes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<{type(self).__name__} {n}×{m} {self.dtype} of {self.kernel!r}>"

    def _require_symmetric(self, what: str) -> None:
        if not self.symmetric:
            raise InvalidInput(
                f"`{what}` needs a symmetric Gram, rows and columns the same points",
                got=f"{self.shape[0]} rows and {self.shape[1]} other columns",
                advice="Use gram.of(kernel, X) without Z.",
            )

    def _vectors(self, V: Any) -> tuple[Array, bool]:
        """V as a (m, t) array of K's dtype, and whether it was a single vector."""
        V = np.asarray(V)
        if V.ndim not in (1, 2) or V.shape[0] != self.shape[1]:
            raise InvalidInput(
                f"K has {self.shape[1]} columns, so V must have as many rows",
                got=f"shape {V.shape}",
                advice="One entry per point.",
            )
        if V.dtype.kind not in "iufb":
            raise InvalidInput("V must be real", got=f"dtype {V.dtype}", advice="Pass floats.")
        return np.ascontiguousarray(V.reshape(len(V), -1), dtype=self.dtype), V.ndim == 1


def positions(index: Any, n: int) -> Array:
    """Slices, masks and index arrays as whole positions, checked."""
    required = f"Positions must be a non-empty slice, mask or 1-D index within 0 … {n - 1}"
    try:
        chosen = np.atleast_1d(np.arange(n)[list(index) if isinstance(index, tuple) else index])
    except (IndexError, TypeError) as error:
        raise InvalidInput(required, got=str(error), advice="Check the index.") from None
    if index is None or chosen.ndim != 1 or chosen.size == 0:
        raise InvalidInput(required, got=repr(index), advice="Check the index.")
    return chosen
