"""Matrices of kernels; `TiledGram` is never stored: its tiles are recomputed whenever they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Array, Points
from mercer.gram import costs
from mercer.gram.base import Gram, positions
from mercer.gram.values import REACH, Fused, Stored, Streamed, Values, room_for
from mercer.kernels import costs as kernel_costs
from mercer.kernels import tiling
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.kernels.custom import Precomputed
from mercer.kernels.vectors.radial import ByWidth

if TYPE_CHECKING:
    from mercer.gram.fourier import FourierGrid


class KernelGram(Gram):
    """A matrix whose entries a kernel computes.

    Attributes
    ----------
    kernel : Similarity
        The kernel or smoothing weight that computes its entries.
    pair : Pair
        Its points as the kernel's tiles read them.
    """

    def __init__(self, kernel: Similarity, pair: Pair) -> None:
        super().__init__(pair.x, None if pair.same else pair.z, pair.dtype)
        self.kernel, self.pair = kernel, pair

    def between(self, x: Points, z: Points | None = None, dtype: Any = None) -> TiledGram:
        return TiledGram(self.kernel, self.kernel.pair(x, z, dtype))

    def recomputed(self, dtype: Any = None) -> TiledGram:
        if dtype is None or np.dtype(dtype) == self.dtype:  # the pair keeps what is laid out for tiles
            return TiledGram(self.kernel, self.pair)
        return self.between(self.x, None if self.symmetric else self.z, dtype)

    def points(self, X: Any) -> Points:
        return self.kernel.prepare(X)

    def fourier(self, tol: float, kept: float = 0.0) -> FourierGrid | None:
        from mercer.gram.fourier import FourierGrid

        return FourierGrid.of(self.kernel, self.x, tol, kept) if self.symmetric else None

    def values(self, dtype: Any, limit: int) -> Values:
        K, n = self.stored, self.shape[0]
        keep = self.keeps and room_for(n, dtype, limit)
        if K is not None and K.itemsize >= np.dtype(dtype).itemsize:
            if keep:
                return Stored.laid_out_by(Stored(K).fill, n, dtype)
            fits = K.dtype == dtype or 4 * K.size <= limit
            return Stored(K.astype(dtype, copy=False) if fits else K)
        computed = self.between(self.x, None, dtype)
        fused = self.kernel.fused(computed.pair, REACH if computed.dtype == np.float32 else None)
        if fused is not None:
            return Fused(fused[0])
        return Stored.laid_out_by(computed.fill, n, dtype) if keep else Streamed(computed)

    def fill(self, out: Array) -> Array:
        return self.kernel.fill(self.pair, out)

    def fill_rows(self, rows: slice, out: Array) -> None:
        space, m = tiling.workspace(), self.shape[1]
        mark = space.used
        try:
            for cols in threads.spans(m, max(kernel_costs.TILE_COLS, memory.CACHED // len(out))):
                tiling.evaluate(self.kernel, self.pair.block(rows, cols, space), out[:, cols], self.bounded)
                space.release(mark)
        finally:
            space.release(mark)

    def diag(self) -> Array:
        self.require_symmetric("diag")
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(self.x).astype(self.dtype, copy=False)
        require_finite(diagonal, self.kernel)
        return diagonal

    @property
    def normalised(self) -> bool:
        return self.kernel.tags.normalised

    @property
    def bounded(self) -> bool:
        return self.kernel.tags.bounded

    @property
    def cheap(self) -> bool:
        if self.stored is not None or all(isinstance(leaf, Precomputed) for leaf in self.kernel.leaves):
            return True
        return self.kernel.fused(self.kernel.pair(self.x, dtype=np.float32), REACH) is not None

    def worth_storing(self, dtype: Any) -> bool:
        return costs.worth_storing(self.kernel, self.x, dtype)

    @property
    def entry_cost(self) -> float:
        return costs.entry(self.kernel, self.x)

    @property
    def column_scale(self) -> NDArray[np.float64]:
        widths = np.asarray(self.kernel.sigma) if isinstance(self.kernel, ByWidth) else np.ones(1)
        return widths if widths.ndim else np.ones(1)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} of {self.kernel!r}>"


class TiledGram(KernelGram):
    """K by tiles: `K @ V` computes, uses and discards each of them.

    Parameters
    ----------
    kernel, pair : Similarity, Pair
        The kernel, and the points.
    budget : int or None
        Bytes that a part of K may take; by default `memory.budget()` at the time when the part is computed.
    """

    def __init__(self, kernel: Similarity, pair: Pair, budget: int | None = None) -> None:
        super().__init__(kernel, pair)
        self.budget = budget

    def dense(self) -> Array:
        advice = f"Use K @ V and blocks of K, or allow it: gram.of(..., budget={self.nbytes})."
        self._require_room(self.nbytes, f"The dense {self.shape[0]}×{self.shape[1]} Gram", advice)
        return self.fresh()

    def block(self, rows: Any, cols: Any) -> Array:
        i, j = positions(rows, self.shape[0]), positions(cols, self.shape[1])
        size = len(i) * len(j) * self.dtype.itemsize
        self._require_room(size, f"A {len(i)}×{len(j)} block", "Take fewer rows or columns at a time.")
        if self.symmetric and np.array_equal(i, j):
            return self.kernel(self.x.take(i), dtype=self.dtype)
        columns = self.z if len(j) == self.z.n and np.array_equal(j, np.arange(self.z.n)) else self.z.take(j)
        return self.kernel(self.x.take(i), columns, dtype=self.dtype)

    @property
    def rows_at_once(self) -> int:
        row = self.shape[1] * self.dtype.itemsize
        return max(1, min(self.shape[0], memory.budget(self.budget) // row))

    def _require_room(self, nbytes: int, what: str, advice: str) -> None:
        memory.within(nbytes, memory.budget(self.budget), what, advice)

    def _product(self, V: Array) -> NDArray[np.float64]:
        return self.kernel.multiply(self.pair, V)

    def restrict(self, index: Any) -> TiledGram:
        self.require_symmetric("restrict")
        points = self.x.take(positions(index, self.shape[0]))
        return TiledGram(self.kernel, self.kernel.pair(points, dtype=self.dtype), self.budget)
