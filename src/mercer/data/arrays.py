"""Lists of arrays: whether they are time series, images or point clouds, where the user does not say.

Arrays of unequal shapes are series if the order of their rows matters, and point clouds if it does not. Points in any
order are as far from the next one as from any other: the ratio

    r = mean ‖x_(t+1) − x_t‖² / mean ‖x_s − x_t‖² over all pairs

has the expectation 1 if all orders are equally likely (von Neumann 1941), with a variance of about 1/T for T points.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Meaning = Literal["series", "images", "clouds"]
STANDARD_ERRORS, CLOSE = 4.0, 0.25
"""Rows have no order if r is surely, by four standard errors, within this distance of 1."""
SIDE = 4
"""Images have at least this many pixels in height and width."""
COLOURS = (1, 3, 4)
"""Channels of images: gray; red, green and blue; and transparency."""


def meaning(objects: list[Any]) -> Meaning | None:
    """The meaning of a list of arrays; None for rows of a table and anything else.

    >>> rng = np.random.default_rng(0)
    >>> meaning([rng.normal(size=(n, 2)) for n in range(20, 60)])
    'clouds'
    >>> meaning([rng.normal(size=(n, 2)).cumsum(axis=0) for n in range(20, 60)])
    'series'
    >>> meaning([rng.random((8, 8)) for n in range(5)])
    'images'
    """
    if not objects or not all(isinstance(x, np.ndarray) and x.size and x.dtype.kind in "fiub" for x in objects):
        return None
    shapes = {x.shape for x in objects}
    if len(shapes) == 1 and _is_image(objects[0]):
        return "images"
    if not all(x.dtype.kind == "f" for x in objects):
        return None
    dimensions = {x.ndim for x in objects}
    if dimensions == {1}:
        return "series" if len(shapes) > 1 else None  # of equal length: rows of a table
    if dimensions != {2}:
        return None
    return "clouds" if _unordered(objects) else "series"


def _is_image(x: Any) -> bool:
    """Whether an array can be an image among others of its shape: a series has rarely as many channels as points."""
    if x.ndim == 3:
        return min(x.shape[:2]) >= SIDE and x.shape[2] in COLOURS
    return x.ndim == 2 and min(x.shape) >= SIDE and (x.shape[0] == x.shape[1] or x.dtype == np.uint8)


def _unordered(arrays: list[Any]) -> bool:
    """Whether the order of the rows certainly does not matter."""
    ratios, variances = [], []
    for x in arrays:
        if len(x) < 3 or not np.isfinite(x).all():
            continue
        unit = np.abs(x).max() or 1.0  # squares of large numbers would overflow
        x = np.asarray(x, dtype=np.float64) / unit
        spread = float(((x - x.mean(axis=0)) ** 2).sum())
        if spread > 0.0:
            ratios.append(float((np.diff(x, axis=0) ** 2).sum()) / (2.0 * spread))
            variances.append(1.0 / len(x))
    if not ratios:
        return False
    error = float(np.sqrt(sum(variances))) / len(ratios)
    return abs(float(np.mean(ratios)) - 1.0) + STANDARD_ERRORS * error < CLOSE
