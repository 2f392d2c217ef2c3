"""The Gram matrix as an operator: the only thing a solver sees.

A kind of Gram defines two methods: its entries (`block`), and the matrix of other points (`between`). Everything else
follows from them; a kind overrides what it can compute more directly or faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.gram.values import Streamed, Values
from mercer.kernels.tiling import product

if TYPE_CHECKING:
    from mercer.gram.fourier import FourierGrid
    from mercer.gram.lowrank import Nystrom


class Gram(ABC):
    """K with Kᵢⱼ = k(xᵢ, zⱼ): its shape, its diagonal, parts of it, and its product with vectors.

    Attributes
    ----------
    x, z : Points, Points or None
        The prepared points of its rows and columns (the same object if K is symmetric).
    symmetric : bool
        Whether rows and columns are the same points.
    shape, dtype
        Of the matrix; entries are float32 or float64.
    keeps : bool
        Whether entries stay in memory once they are computed.
    """

    keeps: ClassVar[bool] = False

    __array_ufunc__ = None  # V @ K reaches __rmatmul__

    def __init__(self, x: Points, z: Points | None, dtype: Any) -> None:
        self.x, self.z = x, x if z is None else z
        self.symmetric = self.z is self.x
        self.shape, self.dtype = (self.x.n, self.z.n), np.dtype(dtype)

    # -- what a kind of Gram defines ----------------------------------------------------------------------------------

    @abstractmethod
    def block(self, rows: Any, cols: Any) -> Array:
        """The entries at these rows and columns (slices or index arrays), as an array."""

    @abstractmethod
    def between(self, x: Points, z: Points | None = None, dtype: Any = None) -> Gram:
        """The matrix of other points, by the same kernel; its entries are computed when they are used, and not kept.

        The default `dtype` is the dtype of the points. Take points from this Gram (`x.take(...)`) or from `points`.
        """

    # -- the same matrix, and parts of it -----------------------------------------------------------------------------

    def recomputed(self, dtype: Any = None) -> Gram:
        """The same matrix in this dtype, by default its own, with entries that are not kept.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).recomputed("float32")
        <TiledGram 2×2 float32 of Linear()>
        """
        return self.between(self.x, None if self.symmetric else self.z, dtype or self.dtype)

    def restrict(self, index: Any) -> Gram:
        """The Gram of a subset of the points, for a symmetric K.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0], [3.0]]).restrict([0, 2]).dense()
        array([[1., 3.],
               [3., 9.]])
        """
        self.require_symmetric("restrict")
        return self.between(self.x.take(positions(index, self.shape[0])), None, self.dtype)

    def points(self, X: Any) -> Points:
        """A raw data set as points that `between` takes."""
        return X if isinstance(X, Points) else Points(X)

    def low_rank(self, centers: Points, dtype: Any = None, budget: Any = None, least: float = 0.0) -> Nystrom:
        """K through its values at some centres, see `gram.lowrank.Nystrom`."""
        from mercer.gram.lowrank import Nystrom

        return Nystrom(self, centers, dtype, budget, least)

    def fourier(self, tol: float, kept: float = 0.0) -> FourierGrid | None:
        """K through a grid of frequencies, see `gram.fourier`; None if it is not known how.

        Parameters
        ----------
        tol : float
            The largest error of an entry, relative to k(x, x).
        kept : float
            No frequency is left out at which k̂, divided by the volume that the points fill, exceeds this number; 0 is
            no limit.
        """
        return None

    # -- entries ------------------------------------------------------------------------------------------------------

    @property
    def stored(self) -> Array | None:
        """K as an array that is in memory already, not to be written to; None if it is not."""
        return None

    def values(self, dtype: Any, limit: int) -> Values:
        """Entries of a symmetric K in this dtype, for a solver that reads parts of K again and again.

        They take at most `limit` bytes.
        """
        return Streamed(self.recomputed(dtype))

    def dense(self) -> Array:
        """K as an array, not to be written to."""
        return self.fresh()

    def fresh(self, dtype: Any = None) -> Array:
        """K as a new array that belongs to the caller, who may overwrite it.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).fresh("float32")
        array([[1., 2.],
               [2., 4.]], dtype=float32)
        """
        n, m = self.shape
        dtype = np.dtype(dtype or self.dtype)
        memory.allocatable(n * m * dtype.itemsize, f"The {n}×{m} matrix", "Use gram.of(k, X), which never stores it.")
        source = self if dtype == self.dtype else self.recomputed(dtype)
        return source.fill(np.empty(self.shape, dtype))

    def fill(self, out: Array) -> Array:
        """Write K to an array of its shape and dtype, over the threads."""
        threads.stripes(self.shape[0], lambda rows, share: self.fill_rows(rows, out[rows]))
        return out

    def fill_rows(self, rows: slice, out: Array) -> None:
        """Write whole rows of K to an array, in this thread."""
        out[...] = self.block(rows, slice(None))

    def rows(self, index: Any) -> Array:
        """Whole rows of K, shape (len(index), m).

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).rows([1])
        array([[2., 4.]])
        """
        return self.block(index, slice(None))

    @property
    def rows_at_once(self) -> int:
        """The number of rows that `rows` may return at once, at least one."""
        return self.shape[0]

    def diag(self) -> Array:
        """The diagonal of a symmetric K, without the rest.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).diag()
        array([1., 4.])
        """
        self.require_symmetric("diag")
        spans = threads.spans(self.shape[0], 32)
        return np.concatenate([np.diagonal(self.block(span, span)) for span in spans])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.dense(), dtype=dtype, copy=copy)

    # -- products -----------------------------------------------------------------------------------------------------

    def multiply(self, V: Any) -> NDArray[np.float64]:
        """K V for V of shape (m,) or (m, t), rounded to K's dtype, with sums in float64.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0]]).multiply([1.0, 1.0])
        array([3., 6.])
        """
        V, single = self._vectors(V)
        total = self._product(V)
        return total[:, 0] if single else total

    def _product(self, V: Array) -> NDArray[np.float64]:
        """K V for V of shape (m, t) in K's dtype."""
        out = np.empty((self.shape[0], V.shape[1]))

        def work(rows: slice, share: int) -> None:
            out[rows] = product(self.block(rows, slice(None)), V)

        threads.stripes(self.shape[0], work)
        return out

    def __matmul__(self, V: Any) -> Array:
        """K V for V of shape (m,) or (m, t), in K's dtype."""
        return self.multiply(V).astype(self.dtype, copy=False)

    def __rmatmul__(self, V: Any) -> Array:
        """V K for a symmetric K."""
        self.require_symmetric("V @ K")
        return (self @ np.asarray(V).T).T

    def partial_product(self, rows: Any, cols: Any, V: Any) -> NDArray[np.float64]:
        """K[rows, cols] V in float64, from entries in memory if there are any, else from entries computed for it.

        >>> import mercer as mc
        >>> mc.gram.of(mc.Linear(), [[1.0], [2.0], [3.0]]).partial_product([2], [0, 1], [1.0, 1.0])
        array([9.])
        """
        part = self.between(self.x.take(rows), self.z.take(cols), np.float64)
        return part.multiply(V)

    # -- what is known about the values -------------------------------------------------------------------------------

    @property
    def normalised(self) -> bool:
        """Whether every k(x, x) is known to be 1 (or 0)."""
        return False

    @property
    def bounded(self) -> bool:
        """Whether every entry is known to lie within [−1, 1]."""
        return False

    @property
    def cheap(self) -> bool:
        """Whether an entry costs about as much as reading it, so that a time limit needs no attention meanwhile."""
        return False

    def worth_storing(self, dtype: Any) -> bool:
        """Whether an entry costs so much more to compute than to fetch from memory that keeping it pays."""
        return True

    @property
    def entry_cost(self) -> float:
        """Nanoseconds that one entry takes on one core, by counting operations."""
        return 10.0

    @property
    def column_scale(self) -> NDArray[np.float64]:
        """Units in which the kernel compares the columns of vectors, one each, or a single 1 if it has none."""
        return np.ones(1)

    @property
    def nbytes(self) -> int:
        """Bytes that the dense matrix takes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<{type(self).__name__} {n}×{m} {self.dtype}>"

    def require_symmetric(self, what: str) -> None:
        """Raise if rows and columns are different points."""
        if not self.symmetric:
            raise InvalidInput(
                f"`{what}` needs a symmetric Gram, whose rows and columns are the same points",
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
                advice="Pass one entry per point.",
            )
        if V.dtype.kind not in "iufb":
            raise InvalidInput("V must be real", got=f"dtype {V.dtype}", advice="Pass floats.")
        return np.ascontiguousarray(V.reshape(len(V), -1), dtype=self.dtype), V.ndim == 1


def positions(index: Any, n: int) -> Array:
    """Slices, masks and index arrays as whole positions, checked."""
    required = f"Positions must be a non-empty slice, mask or 1-D index within 0 … {n - 1}"
    advice = "Pass a slice, a boolean mask or whole numbers in this range."
    try:
        chosen = np.atleast_1d(np.arange(n)[list(index) if isinstance(index, tuple) else index])
    except (IndexError, TypeError) as error:
        raise InvalidInput(required, got=str(error), advice=advice) from None
    if index is None or chosen.ndim != 1 or chosen.size == 0:
        raise InvalidInput(required, got=repr(index), advice=advice)
    return chosen
