"""How far off the values of a function are: computational noise, measured from outside.

A Python function is known by its values alone. The errors of its arithmetic show when the points move a little: the
true function changes smoothly, its rounding errors do not. Differences of order k of n equally spaced
values remove the smooth part and multiply the variance of the rest by (2k)!/(k!)², which gives the size of the noise
(Hamming, Introduction to Applied Numerical Analysis, 1971; Moré and Wild, Estimating computational noise, SIAM J. Sci.
Comput. 33, 2011). Steps of many sizes are tried, because noise shows only once a step moves the rounded numbers
inside the function: 1 + ⟨x, z⟩/10⁶ does not change before ⟨x, z⟩ has moved by 10⁻¹⁰.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Value = Callable[[Any, Any], float]

# The rounding errors that every value of a kernel is trusted to have at most, beside those of its products.
ROUNDINGS = 64
# An error of a value may be 4 standard deviations, and their estimate off by a factor of 4 (Moré and Wild, section 3).
SPREAD = 16
# Binary logarithms of the steps, as shares of the spread of the points. Noise shows up to the last but one.
STEPS = (-32, -26, -20, -14, -8)
# Points on each line, pairs of points for each scale, and scales.
LENGTH, PAIRS, SCALES = 7, 8, (0.125, 1.0, 8.0, 64.0)
# Rounding hides where a function is nearly constant: scales grow until values differ by this share, up to the last.
VARIED, LAST = 2.0**-4, 2.0**60
# An error of more than half of the digits of a float32 is not rounding: the function itself oscillates there.
HALF_OF_FLOAT32 = math.sqrt(float(np.finfo(np.float32).eps))


def measured_noise(value: Value, X: Matrix) -> float:
    """The error of the values of a function near the points X, relative to the largest of them.

    Parameters
    ----------
    value : Value
        The function of two vectors.
    X : array
        Points, one per row. Only where they lie and how far apart matters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(4, 2))
    >>> single = measured_noise(lambda x, z: float(np.float32(np.exp(-np.sum((x - z) ** 2)))), X)
    >>> double = measured_noise(lambda x, z: float(np.exp(-np.sum((x - z) ** 2))), X)
    >>> bool(1e-7 < single < 1e-5), bool(double < 1e-13)
    (True, True)
    """
    rng = np.random.default_rng(0)
    centre = X.mean(axis=0)
    spread = (float(np.abs(X - centre).max()) or float(np.abs(X).max()) or 1.0) / math.sqrt(X.shape[1])
    largest, worst, scales = float(np.abs(X).max()), 0.0, list(SCALES)
    for scale in scales:
        lines = [_line(value, rng, centre, scale * spread, largest) for _ in range(PAIRS)]
        seen = [line for line in lines if line is not None]
        if not seen:
            continue
        # Three quarters, not the maximum: a few lines cross a kink or a jump of the function itself.
        noise, varied = (float(np.quantile(part, 0.75)) for part in zip(*seen))
        worst = max(worst, noise) if noise <= HALF_OF_FLOAT32 else worst
        if scale == scales[-1] < LAST and varied < VARIED:
            scales.append(8 * scale)
    return SPREAD * worst


def _line(
    value: Value, rng: np.random.Generator, centre: Matrix, size: float, largest: float
) -> tuple[float, float] | None:
    """Noise on a random line through a random pair of points, relative to the values there; None without values.

    The second result is the difference between the values of the pair, relative to the largest.

    Both points move by different shares of their distance, and together by a share of their size: only then the error
    shows that a function of x − z makes when it subtracts large numbers.
    """
    x, z, dx, dz, both = (rng.standard_normal(len(centre)) for _ in range(5))
    x, z, dx, dz = centre + size * x, centre + size * z, size * dx + largest * both, size * dz + largest * both
    ladder: list[float] = []
    try:
        values = value(x, x), value(z, z), value(x, z)
        for step in STEPS:
            moved = [value(x + t * dx, z + t * dz) for t in 2.0**step * np.arange(LENGTH)]
            ladder.append(_level(np.array(moved)))
    except Exception:  # the function is not defined here
        return None
    height = max(map(abs, values))
    if not 0 < height < math.inf:
        return 0.0, 1.0
    # Noise does not grow with the step once it shows; a scatter at a single step is the function itself.
    plateaus = [max(a, b) for a, b in itertools.pairwise(ladder) if 0 < max(a, b) <= 8 * min(a, b)]
    return max(plateaus, default=0.0) / height, (max(values) - min(values)) / height


def _level(values: Matrix) -> float:
    """The standard deviation of the noise in equally spaced values of a smooth function; 0 if none shows.

    Differences of three successive orders must agree on it within a factor of 4, and change their sign.
    """
    levels, signs, differences = [], [], values
    for k in range(1, len(values)):
        differences = np.diff(differences)
        gamma = math.factorial(k) ** 2 / math.factorial(2 * k)
        levels.append(math.sqrt(gamma * float(np.mean(differences**2))))
        signs.append(bool(differences.min() < 0 < differences.max()))
    for k in range(len(levels) - 2):
        three = levels[k : k + 3]
        if signs[k] and max(three) <= 4 * min(three):
            return three[0]
    return 0.0


def precision(values: NDArray[Any]) -> float:
    """The relative spacing of the numbers that these values come from: float32's if all values are such numbers.

    Whole numbers and short fractions are not counted, because they are numbers of any precision.

    >>> precision(np.array([0.1, 0.25])) == 2.0**-52, precision(np.array([np.float32(0.1), 0.25])) == 2.0**-23
    (True, True)
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    for dtype, bits in ((np.float16, 9), (np.float32, 18)):
        with np.errstate(over="ignore", under="ignore"):
            kept = finite.astype(dtype)
            mantissa = np.ldexp(np.frexp(finite)[0], bits)
        long = (mantissa != np.round(mantissa)) & (finite != np.round(finite))
        if long.any() and (kept == finite).all():
            return float(np.finfo(dtype).eps)
    return float(np.finfo(np.float64).eps)
