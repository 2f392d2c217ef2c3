"""Derivatives by central differences, for functions whose slope is not known.

The step is a power of two and at least a few units in the last place, so that x ± h and x ± 2h are exact. It starts
from the spread of the column, not from |x|: an offset says nothing about how fast a function varies. Where the function
bends within the step (a narrow kernel on widely spread points) the step shrinks, point by point, until it does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array
from mercer.errors import InvalidInput
from mercer.kernels.block import Block, Pair

# Fourth order: the truncation h⁴ meets the rounding eps/h here, relative to the length on which the function varies.
STEP = 2.0**-10
# A second difference above this share of the values means a step above 1/500 of that length.
BEND = 1e-5
SHRINK, ROUNDS = 0.125, 15


def dense_sides(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides of the block as dense float64 rows."""
    x, z = block.vectors()
    if not isinstance(x, np.ndarray):
        raise InvalidInput("Derivatives at points need dense data", got="a sparse matrix", advice="Pass X.toarray().")
    return x.astype(np.float64), z.astype(np.float64)


def scales(pair: Pair) -> NDArray[np.float64]:
    """The length scale of each column, from which steps follow: its spread over both sides, or its size if constant."""

    def make() -> NDArray[np.float64]:
        sides = [v.astype(np.float64) for v in pair.vectors()]
        lowest = np.minimum(*(v.min(axis=0) for v in sides))
        highest = np.maximum(*(v.max(axis=0) for v in sides))
        size = np.maximum(np.abs(lowest), np.abs(highest))
        spread = highest - lowest
        # A spread near rounding may come from a constant column or not: a compromise.
        spread = np.where(spread > 0, np.maximum(spread, 2.0**-20 * size), size)
        return np.where(spread > 0, spread, 1.0)

    return pair.once("scales", make)


def input_slopes(
    values: Callable[[NDArray[np.float64]], Array],
    x: NDArray[np.float64],
    lengths: NDArray[np.float64],
    G: Array,
) -> NDArray[np.float64]:
    """Σⱼ Gᵢⱼ ∂vⱼ(xᵢ)/∂xᵢ, shape (n, d), for a function `values` of rows (n, d) → (n, m).

    `values` is also called on some of the rows, moved a little; row i of its result must depend on row i alone.
    """
    here = values(x)
    columns = [_slope(values, x, k, length, G, here) for k, length in enumerate(lengths)]
    return np.stack(columns, axis=1)


def _slope(
    values: Callable[[NDArray[np.float64]], Array],
    x: NDArray[np.float64],
    k: int,
    length: float,
    G: Array,
    here: Array,
) -> NDArray[np.float64]:
    """The derivative by column k."""
    finest = 4 * np.spacing(np.abs(x[:, k]))
    step = np.maximum(np.exp2(np.floor(np.log2(STEP * length))), finest)
    slope = np.empty(len(x))
    rows = np.arange(len(x))
    for _ in range(ROUNDS):
        back2, back, ahead, ahead2 = (values(_moved(x[rows], k, n * step[rows])) for n in (-2, -1, 1, 2))
        odd, odd2 = ahead - back, ahead2 - back2
        slope[rows] = np.einsum("ij,ij->i", G[rows], 8 * odd - odd2) / (12 * step[rows])
        bend = np.maximum(np.abs(ahead2 - 2 * here[rows] + back2), np.abs(odd2 - 2 * odd)).max(axis=1)
        size = np.maximum(np.abs(here[rows]), np.maximum(np.abs(ahead2), np.abs(back2))).max(axis=1)
        rows = rows[(bend > BEND * size) & (step[rows] > finest[rows])]
        if not len(rows):
            break
        step[rows] = np.maximum(SHRINK * step[rows], finest[rows])
    return slope


def _moved(x: NDArray[np.float64], k: int, by: NDArray[np.float64]) -> NDArray[np.float64]:
    x[:, k] += by
    return x
