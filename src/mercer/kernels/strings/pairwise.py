"""The shared part of kernels that run a dynamic programme over every pair of strings."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._loops import alignments as loops
from mercer.data.points import Array, Points
from mercer.kernels.base import Similarity
from mercer.kernels.block import Block, Pair
from mercer.kernels.strings.sequences import STRINGS, Sequences, sequences_of


class Side(NamedTuple):
    """One data set of a pair: the positions of its symbols in the alphabet of both."""

    codes: NDArray[np.int32]
    ends: NDArray[np.int64]
    symbols: NDArray[np.uint64]


class OfPairs(Similarity):
    """A function of two strings that is computed pair by pair, by a loop of `_loops.alignments`."""

    space: ClassVar[str] = STRINGS
    tile_shape: ClassVar[tuple[int, int]] = (16, 64)

    @property
    def encoding(self) -> Any:
        return "sequences"

    def encode(self, X: Any) -> Sequences:
        return sequences_of(X)

    def align(self, x: Sequences, z: Sequences) -> tuple[Side, Side]:
        symbols = np.union1d(x.symbols, z.symbols)
        left = Side(x.numbered_by(symbols), x.ends, symbols)
        return left, left if x is z else Side(z.numbered_by(symbols), z.ends, symbols)

    def run_tile(self, name: str, block: Block, *arguments: Any, slopes: bool | None = None) -> tuple[Array, Array]:
        """The values of a loop for all pairs of a block, and their slopes if it has some and they are wanted."""
        x, z = block.pair.encoded(self)
        rows, columns = np.indices(block.shape)
        return self._run(
            name, x, z, rows.ravel() + block.rows.start, columns.ravel() + block.cols.start, arguments, slopes
        )

    def run_diagonal(self, name: str, points: Points, *arguments: Any, slopes: bool | None = None) -> Array:
        """The values of a loop for every string with itself."""
        side, _ = Pair(points, None, np.float64).encoded(self)
        each = np.arange(points.n)
        return self._run(name, side, side, each, each, arguments, slopes)[0]

    def _run(
        self, name: str, x: Side, z: Side, rows: Array, columns: Array, arguments: tuple[Any, ...], slopes: bool | None
    ) -> tuple[Array, Array]:
        out, derivatives = np.empty(len(rows)), np.empty(len(rows) if slopes else 0)
        cells = (len(x.codes) / (len(x.ends) - 1)) * (len(z.codes) / (len(z.ends) - 1))
        # By the size of both data sets, and not of one tile, so that all tiles are computed in the same way.
        cells *= (len(x.ends) - 1) * (len(z.ends) - 1)
        more = (derivatives,) if slopes is not None else ()
        loops.run(name, cells, x.codes, x.ends, z.codes, z.ends, rows, columns, *arguments, out, *more)
        return out, derivatives
