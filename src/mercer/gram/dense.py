"""The whole matrix in memory."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array
from mercer.gram.base import positions
from mercer.gram.tiled import KernelGram
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair


class DenseGram(KernelGram):
    """K as an array, computed once, at the first use of an entry."""

    keeps: ClassVar[bool] = True

    def __init__(self, kernel: Similarity, pair: Pair, K: Array | None = None) -> None:
        super().__init__(kernel, pair)
        self._K = K

    @property
    def stored(self) -> Array | None:
        return self._K

    def dense(self) -> Array:
        if self._K is None:
            self._K = super().fill(np.empty(self.shape, self.dtype))
            self._K.flags.writeable = False
        return self._K

    def fresh(self, dtype: Any = None) -> Array:
        return super().fresh(dtype) if self._K is None else np.array(self._K, dtype=dtype or self.dtype)

    def fill(self, out: Array) -> Array:
        if self._K is None:
            return super().fill(out)
        np.copyto(out, self._K)
        return out

    def fill_rows(self, rows: slice, out: Array) -> None:
        if self._K is None:
            super().fill_rows(rows, out)
        else:
            out[...] = self._K[rows]

    def block(self, rows: Any, cols: Any) -> Array:
        return self.dense()[np.ix_(positions(rows, self.shape[0]), positions(cols, self.shape[1]))]

    def _product(self, V: Array) -> NDArray[np.float64]:
        return np.asarray(self.dense() @ V, dtype=np.float64)

    def partial_product(self, rows: Any, cols: Any, V: Any) -> NDArray[np.float64]:
        if self._K is None:
            return super().partial_product(rows, cols, V)
        return np.asarray(self.block(rows, cols).astype(np.float64, copy=False) @ np.asarray(V, np.float64))

    def restrict(self, index: Any) -> DenseGram:
        self.require_symmetric("restrict")
        chosen = positions(index, self.shape[0])
        pair = self.kernel.pair(self.x.take(chosen), dtype=self.dtype)
        if self._K is None:
            return DenseGram(self.kernel, pair)
        K = self._K[np.ix_(chosen, chosen)]
        K.flags.writeable = False
        return DenseGram(self.kernel, pair, K)
