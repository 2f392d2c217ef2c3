"""Elementwise operations on tiles for which NumPy has no fast function, and the check that they did not overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.points import Array
from mercer.errors import InvalidInput


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


def require_finite(values: Array, kernel: Any) -> None:
    """Raise if an evaluation overflowed."""
    # The extremes carry any NaN or infinity, and are faster to find than a mask of all values.
    if np.isfinite(values.max()) and np.isfinite(values.min()):
        return
    raise InvalidInput(
        f"Kernel values must fit {values.dtype}",
        got=f"an overflow in {kernel!r}",
        advice="Rescale the points (for example to unit variance), or use a smaller degree or factor.",
    )
