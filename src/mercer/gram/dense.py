"""The whole matrix in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.points import Array
from mercer.gram.base import Gram, positions
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair


class DenseGram(Gram):
    """K as an array, computed once, at the first use of an entry."""

    def __init__(self, kernel: Similarity, pair: Pair, K: Array | None = None) -> None:
        super().__init__(kernel, pair)
        self._K = K

    def dense(self) -> Array:
        if self._K is None:
            self._K = self.kernel.fill(self.pair, np.empty(self.shape, self.dtype))
            self._K.flags.writeable = False
        return self._K

    def fresh(self, dtype: Any = None) -> Array:
        return super().fresh(dtype) if self._K is None else np.array(self._K, dtype=dtype or self.dtype)

    def block(self, rows: Any, cols: Any) -> Array:
        return self.dense()[np.ix_(positions(rows, self.shape[0]), positions(cols, self.shape[1]))]

    def __matmul__(self, V: Any) -> Array:
        V, single = self._vectors(V)
        product = self.dense() @ V
        return product[:, 0] if single else product

    def restrict(self, index: Any) -> DenseGram:
        self._require_symmetric("restrict")
        chosen = positions(index, self.shape[0])
        pair = self.kernel.pair(self.x.take(chosen), dtype=self.dtype)
        if self._K is None:
            return DenseGram(self.kernel, pair)
        K = self._K[np.ix_(chosen, chosen)]
        K.flags.writeable = False
        return DenseGram(self.kernel, pair, K)
