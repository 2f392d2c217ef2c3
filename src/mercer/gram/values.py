"""Entries of a symmetric Gram matrix for solvers that read parts of it again and again.

A solver takes a part of the points, lays its matrix out for the compiled loops, and adds K[:, columns] Δ to a gradient.
The Gram decides where the entries come from: read from memory, computed by the fused loop in less time than
reading them would take, or streamed block by block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import _loops, memory, threads
from mercer.data.points import Array
from mercer.gram import costs

if TYPE_CHECKING:
    from mercer.gram.base import Gram

Index = NDArray[np.int64]

REACH = 1000.0
"""Widths from the centre up to which the fused loop may compute float32 values, which are checked in float64 later."""


class LazyMatrix(NamedTuple):
    """A matrix for `_loops.smo.State`: filled, or with the points from which its rows are computed when first needed.

    Attributes
    ----------
    K : Array
        The matrix, laid out for the loops.
    packed : array
        The points of the fused loop, or None if K is filled.
    filled : Index or None
        1 for each row that is filled, else 0; None if K is filled.
    """

    K: Array
    packed: Any = None
    filled: Index | None = None


class Values(ABC):
    """Entries of the matrix of n points in one dtype."""

    n: int
    dtype: np.dtype[Any]

    @abstractmethod
    def part(self, index: Index) -> Values:
        """The entries of some of the points."""

    @abstractmethod
    def fill(self, K: Array) -> Any:
        """Write the n × n matrix to an array."""

    @abstractmethod
    def add(self, g: NDArray[np.float64], columns: Index, delta: NDArray[np.float64]) -> None:
        """g += K[:, columns] Δ, for g of shape (n,), summed in float64."""

    @property
    def laid_out(self) -> Array | None:
        """The matrix if it is in memory as the loops need it, else None."""
        return None

    def lay_out(self, K: Array) -> LazyMatrix:
        """The matrix in the memory of a `_loops.smo.matrix`, filled."""
        self.fill(K[:, : self.n])
        _loops.smo.close(K)
        return LazyMatrix(K)

    def rows(self, space: Callable[[int], Array]) -> LazyMatrix:
        """The matrix for the loops: the one in memory, else a new one in memory that space(n) returns."""
        return self.lay_out(space(self.n)) if self.laid_out is None else LazyMatrix(self.laid_out)


class Fused(Values):
    """Values of a fused loop, recomputed whenever they are needed: faster than fetching them from memory."""

    def __init__(self, packed: Any, rows: Array | None = None) -> None:
        self.packed, self.n, self.dtype = packed, packed.n, packed.dtype
        self.points = _loops.smo.rows_of(packed) if rows is None else rows

    def part(self, index: Index) -> Fused:
        points = self.points.take(index, axis=0)
        return Fused(_loops.smo.pack(points, self.packed.spread), points)

    def fill(self, K: Array) -> None:
        def work(rows: slice, share: int) -> None:
            _loops.tiles.gaussian_tile(self.packed, self.packed, rows.start, rows.stop, 0, self.n, K[rows])

        threads.stripes(self.n, work, rows=max(128, -(-self.n // (2 * threads.n_threads()))))
        np.fill_diagonal(K, 1.0)

    def add(self, g: NDArray[np.float64], columns: Index, delta: NDArray[np.float64]) -> None:
        z = _loops.smo.pack(self.points.take(columns, axis=0), self.packed.spread)
        V = delta.astype(self.packed.dtype)

        def work(rows: slice, share: int) -> None:
            _loops.tiles.gaussian_product(self.packed, z, V, rows.start, rows.stop, g)

        even = -(-self.n // threads.n_threads())
        threads.stripes(self.n, work, rows=min(max(256, memory.HELD // max(len(columns), 1)), max(256, even)))

    def rows(self, space: Callable[[int], Array]) -> LazyMatrix:
        # Most variables are never visited twice, so rows are computed on demand.
        return LazyMatrix(space(self.n), self.packed, np.zeros(self.n, dtype=np.int64))


class Stored(Values):
    """Values of a matrix in memory: all of them, or the rows and columns in `index`."""

    def __init__(self, K: Array, index: Index | None = None, padded: Array | None = None) -> None:
        self.K, self.index, self.padded, self.dtype = K, index, padded, K.dtype
        self.n = len(K) if index is None else len(index)

    @classmethod
    def laid_out_by(cls, fill: Callable[[Array], Any], n: int, dtype: Any) -> Stored:
        """A new matrix in memory, laid out for the loops."""
        K = _loops.smo.matrix(n, dtype)
        fill(K[:, :n])
        _loops.smo.close(K)
        return cls(K[:, :n], padded=K)

    @property
    def laid_out(self) -> Array | None:
        return self.padded

    def part(self, index: Index) -> Stored:
        return Stored(self.K, index if self.index is None else self.index[index])

    def fill(self, K: Array) -> None:
        def work(rows: slice, share: int) -> None:
            if self.index is None:
                K[rows] = self.K[rows]
                return
            for i in range(rows.start, rows.stop):
                K[i] = self.K[self.index[i]].take(self.index)

        threads.stripes(self.n, work)

    def add(self, g: NDArray[np.float64], columns: Index, delta: NDArray[np.float64]) -> None:
        chosen = columns if self.index is None else self.index[columns]
        product = np.zeros(len(self.K))

        def work(span: slice, share: int) -> None:
            # Rows of K, which are its columns and lie in one piece; in chunks that stay in the cache.
            for part in threads.spans(len(chosen), 64):
                product[span] += delta[part].astype(self.K.dtype) @ self.K[chosen[part], span]

        threads.stripes(len(self.K), work, rows=2048)
        g += product if self.index is None else product[self.index]


class Streamed(Values):
    """Values of any Gram that does not keep them, computed or read block by block."""

    def __init__(self, gram: Gram) -> None:
        self.gram, self.n, self.dtype = gram, gram.shape[0], gram.dtype

    def part(self, index: Index) -> Streamed:
        return Streamed(self.gram.restrict(index))

    def fill(self, K: Array) -> None:
        self.gram.fill(K)

    def add(self, g: NDArray[np.float64], columns: Index, delta: NDArray[np.float64]) -> None:
        x = self.gram.x
        g += self.gram.between(x, x.take(columns), self.dtype).multiply(delta)


def room_for(n: int, dtype: Any, limit: int) -> bool:
    """Whether the matrix of n points should be kept, within this many bytes."""
    return n <= costs.STORED_ROWS and n * n * np.dtype(dtype).itemsize <= limit
