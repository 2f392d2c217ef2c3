"""Ratios of a kernel to the sizes of two objects: Jaccard's k/(k(x,x) + k(z,z) − k), Dice's 2k/(k(x,x) + k(z,z)).

Both are kernels for every kernel k. With a = k(x, x) > 0 and b = k(z, z) > 0,

* 1/(a + b) = ∫ e^(−ta) e^(−tb) dt over t > 0 is a kernel of x and z, so s = k/(a + b) is one as a product;
* |k| ≤ √(ab) ≤ (a + b)/2, so |s| ≤ ½, and k/(a + b − k) = s/(1 − s) = s + s² + s³ + … is a sum of kernels.

An object with k(x, x) = 0 has the value 1 with itself and its like, and 0 with all others, which adds a block of ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array
from mercer.kernels.algebra.proof import Rule
from mercer.kernels.validity.interval import Interval, exactly

DICE = Rule("2k/(k(x,x) + k(z,z)): the product of k with 2/(a + b) = 2∫ e^(−ta) e^(−tb) dt", "Gower and Legendre 1986")
JACCARD = Rule(
    "k/(k(x,x) + k(z,z) − k) = s + s² + …, a sum of kernels, for s = k/(k(x,x) + k(z,z)) ≤ ½",
    "Gower 1971; Swamidass et al. 2005; Ralaivola et al. 2005",
)
EMPTY = "1 for two objects with k(x,x) = 0, and 0 for one of them"


def jaccard_(common: Array, a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """common/(a + b − common) in place, for the values a of k(x, x) and b of k(z, z); 1 where both are 0."""
    _divide(common, a[:, None] + b - common)


def dice_(common: Array, a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    """2·common/(a + b) in place; 1 where both are 0."""
    common *= 2
    _divide(common, a[:, None] + b)


def _divide(numerator: Array, denominator: Array) -> None:
    nothing = denominator == 0
    denominator[nothing] = 1
    numerator /= denominator.astype(numerator.dtype, copy=False)
    numerator[nothing] = 1


def jaccard(common: Interval, a: Interval, b: Interval) -> Interval:
    """The same for values that are known exactly."""
    return exactly(1) if a.upper + b.upper == 0 else common / (a + b - common)


def dice(common: Interval, a: Interval, b: Interval) -> Interval:
    return exactly(1) if a.upper + b.upper == 0 else common * 2 / (a + b)
