"""Elementwise operations on tiles that NumPy has no fast form of."""

from __future__ import annotations

import numpy as np

from mercer.kernels.points import Array


def whole_power(tile: Array, n: int) -> None:
    """tile = tileⁿ in place for a whole n ≥ 0, by repeated squaring (NumPy's power calls libm from n = 3 on)."""
    if n == 0:
        tile[...] = 1.0
        return
    base = tile.copy() if n & (n - 1) else tile
    for bit in bin(n)[3:]:
        np.square(tile, out=tile)
        if bit == "1":
            tile *= base
