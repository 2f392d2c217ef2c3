"""The matrix that is never stored: tiles are recomputed whenever they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.points import Array
from mercer.gram.base import Gram, positions
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.memory import within


class TiledGram(Gram):
    """K by tiles within a memory budget: `K @ V` computes, uses and forgets each of them."""

    def __init__(self, kernel: Similarity, pair: Pair, budget: int) -> None:
        super().__init__(kernel, pair)
        self.budget = budget

    def dense(self) -> Array:
        within(
            self.nbytes,
            self.budget,
            f"The dense {self.shape[0]}×{self.shape[1]} Gram",
            f"Use K @ V and blocks of K, or allow it: gram.of(..., budget={self.nbytes}).",
        )
        return self.kernel(self.x, None if self.symmetric else self.z, dtype=self.dtype)

    def block(self, rows: Any, cols: Any) -> Array:
        i, j = positions(rows, self.shape[0]), positions(cols, self.shape[1])
        advice = "Take fewer rows or columns at a time."
        within(len(i) * len(j) * self.dtype.itemsize, self.budget, f"A {len(i)}×{len(j)} block", advice)
        if self.symmetric and np.array_equal(i, j):
            return self.kernel(self.x.take(i), dtype=self.dtype)
        columns = self.z if len(j) == self.z.n and np.array_equal(j, np.arange(self.z.n)) else self.z.take(j)
        return self.kernel(self.x.take(i), columns, dtype=self.dtype)

    def __matmul__(self, V: Any) -> Array:
        V, single = self._vectors(V)
        product = self.kernel.multiply(self.pair, V).astype(self.dtype, copy=False)
        return product[:, 0] if single else product

    def restrict(self, index: Any) -> TiledGram:
        self._require_symmetric("restrict")
        points = self.x.take(positions(index, self.shape[0]))
        return TiledGram(self.kernel, self.kernel.pair(points, dtype=self.dtype), self.budget)
