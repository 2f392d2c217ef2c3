"""How much an expression may amplify rounding before its values are meaningless.

A power kⁿ has n times the relative error of k, and exp(k) |k| times. A proof is about exact values. If float32 would
keep less than half of the digits, the values are computed in float64; if that is not enough, they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.errors import InvalidInput, RuleBroken

if TYPE_CHECKING:
    from mercer.data.points import Array
    from mercer.kernels.base import Similarity
    from mercer.kernels.block import Block


def keeps_digits(amplification: float, dtype: Any, result: Any) -> bool:
    """Whether one rounding in `dtype`, amplified, leaves half of the digits of `result`."""
    eps = float(np.finfo(dtype).eps)
    return bool(amplification * eps <= np.sqrt(float(np.finfo(result).eps)))


def require_digits(amplification: float, dtype: Any, kernel: Any, result: Any, *, advice: str = "") -> None:
    """Raise if values would keep less than half of their digits."""
    if keeps_digits(amplification, dtype, result):
        return
    raise InvalidInput(
        "Values of a kernel must keep half of their digits",
        got=f"a rounding error of {np.dtype(dtype)} that {kernel!r} makes {amplification:.3g} times larger",
        advice=advice
        or "Centre the points and rescale them to unit variance, or use a smaller power or factor"
        + (", or use float64." if np.dtype(dtype) == np.float32 else "."),
    )


def require_power(kernel: Any, rule: str, name: str, n: int) -> None:
    """Raise if an n-th power would lose half of its digits whatever the precision of the points."""
    precision = kernel.precision
    if keeps_digits(kernel.amplification, precision, precision):
        return
    raise RuleBroken(
        f"{rule}: a power must keep half of the digits of its values in {precision}",
        got=f"{name} {n}, which makes the rounding of values {kernel.amplification:.3g} times larger",
        advice=f"Choose at most {1 / np.sqrt(float(np.finfo(precision).eps)):.3g} in all, or a kernel whose logarithm "
        "is known, such as mc.Gaussian.",
    )


def precise(kernel: Similarity, block: Block, amplification: float) -> Block:
    """The block, in float64 if amplified roundings of its dtype would take more than half of the digits."""
    coarsest = min(block.dtype, kernel.precision, key=lambda dtype: dtype.itemsize)
    if keeps_digits(amplification, coarsest, coarsest):
        return block
    require_digits(amplification, kernel.precision, kernel, coarsest)
    return block.widened()


def precisely(
    kernel: Similarity, fill: Callable[[Block, Array], None], block: Block, out: Array, amplification: float
) -> None:
    """fill(block, out) of the `precise` block."""
    wide = precise(kernel, block, amplification)
    tile = out if wide is block else wide.scratch()
    fill(wide, tile)
    if tile is not out:
        with np.errstate(over="ignore"):
            out[...] = tile
