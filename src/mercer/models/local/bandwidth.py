"""The parameters `kernel` and `bandwidth` of local models: the similarity they stand for, and what it must satisfy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vectors.radial import ByWidth
from mercer.models.base import shortened
from mercer.tuning import bandwidth as rules
from mercer.validation import check_numbers
from mercer.words import count

Matrix = NDArray[np.float64]

CHECKED_ROWS = 64
"""Rows at which `fit` checks a similarity that is not known to be non-negative."""
ROUNDING = 1e-9
"""A share of negative weights below this is attributed to rounding."""
FARTHEST = 1e8
"""Queries farther outside the data than this, in units of its extent, are moved to this distance: squared distances can
still distinguish rows that are 1e-8 of the extent apart."""


def similarity_of(kernel: Any, points: Points, default: Callable[[Points], Similarity]) -> Similarity:
    """The similarity that the parameter `kernel` stands for: itself, the result of a rule X → kernel, or the default.

    A class with widths stands for its member whose widths are the standard deviations of the columns (or the median
    distance, if X is sparse).
    """
    if isinstance(kernel, Similarity):
        return kernel
    if kernel is None:
        return default(points)
    got, advice = shortened(kernel), "Pass for instance mc.Gaussian(1.0), mc.Tricube(2.0) or mc.median_gaussian."
    if isinstance(kernel, type) and issubclass(kernel, Similarity):
        return _member(kernel, points)
    if callable(kernel) and not isinstance(kernel, type):
        result = kernel(points.raw)
        if isinstance(result, Similarity):
            return result
        got += f", a rule that returned {shortened(result)}"
    if isinstance(kernel, str):
        advice = f"scikit-learn's names are kernels here: 'rbf' is mc.Gaussian, 'poly' mc.Polynomial. {advice}"
    raise InvalidInput(
        "`kernel` must be a kernel, a smoothing weight, a class of them, a rule X → kernel, or None",
        got=got,
        advice=advice,
    )


def _member(family: type[Similarity], points: Points) -> Similarity:
    """The member of a class of similarities whose widths follow from the data."""
    try:
        member: Any = family()
    except TypeError:
        raise InvalidInput(
            "A class as `kernel` must have a constructor that requires no arguments",
            got=family.__name__,
            advice=f"Pass a kernel of that class: mc.{family.__name__}(…).",
        ) from None
    if not isinstance(member, ByWidth):
        return member
    if sp.issparse(points.vectors()):
        return with_bandwidth(member, median_gaussian(points).sigma, points)
    return with_bandwidth(member, spreads(points), points)


def spreads(points: Points) -> Matrix:
    """The standard deviation of every column, 1 for a constant one: shape (d,)."""
    X = points.vectors().astype(np.float64)
    spread = (X - X.mean(axis=0)).std(axis=0)
    return np.where((spread > 1e-140) & (spread < 1e140), spread, 1.0)


def by_rule(rule: str, similarity: Any, points: Points) -> Matrix:
    """Bandwidths by the name of a rule, (d,): those of a Gaussian, or of a compact weight with the same variance."""
    if not isinstance(similarity, ByWidth):
        raise no_bandwidth(similarity, rule)
    if rule not in ("spread", "scott", "silverman"):
        raise InvalidInput(
            "`bandwidth` must be a number > 0, one per column, or 'loo', 'loo-common', 'scott' or 'silverman'",
            got=shortened(rule),
            advice="Pass 'loo' for the bandwidth of least leave-one-out error.",
        )
    unit = 1.0 / np.sqrt(getattr(similarity, "variance", 1.0))
    n, d = points.vectors().shape
    if rule == "spread":
        return np.asarray(unit * spreads(points) * n ** (-1.0 / (d + 4)))
    return np.asarray(unit * (rules.scott if rule == "scott" else rules.silverman)(points.vectors()))


def with_bandwidth(similarity: Any, bandwidth: Any, points: Points) -> Similarity:
    """The similarity with this bandwidth: a number, or one per column."""
    if not isinstance(similarity, ByWidth):
        raise no_bandwidth(similarity, bandwidth)
    d = points.vectors().shape[1]
    h = check_numbers(
        bandwidth,
        "`bandwidth` must be a finite number > 0, or one per column",
        shapes=((), (d,)),
        above=0,
        advice=f"Pass the width of a neighbourhood in {count(d, 'column')}, or the name of a rule: 'loo' or 'scott'.",
    )
    return similarity.replace(sigma=float(h) if h.ndim == 0 else h)


def no_bandwidth(similarity: Any, bandwidth: Any) -> InvalidInput:
    """The error for a bandwidth beside a similarity that has none."""
    return InvalidInput(
        "`bandwidth` requires a similarity of (x − z)/σ, such as Gaussian or Tricube",
        got=f"{similarity!r} with bandwidth={shortened(bandwidth)}",
        advice="Leave out `bandwidth`, to use the kernel unchanged.",
    )


def require_nonnegative(similarity: Similarity, points: Points, queries: Points | None = None) -> None:
    """Raise if weights are negative: their sum could be 0, and the weighted mean undefined.

    The weights of all queries are checked, or without queries those of some of the points. This costs one pass over
    them for similarities that are not known to be ≥ 0, and nothing for others.
    """
    if similarity.tags.nonnegative:
        return
    if queries is None:
        queries = points.take(np.unique(np.linspace(0, points.n - 1, min(points.n, CHECKED_ROWS)).astype(np.int64)))
    for rows in threads.spans(queries.n, max(1, memory.HELD // points.n)):
        W = similarity(queries.take(rows), points, dtype=np.float64)
        if (W.sum(axis=1) < (1 - ROUNDING) * np.abs(W).sum(axis=1)).any():
            raise InvalidInput(
                "Weights must be ≥ 0",
                got=f"{similarity!r}, with values down to {W.min():.3g}",
                advice="Use a similarity that is nowhere negative, such as Gaussian, or k.exp().",
            )


def nearer(Z: Any, X: Any, unit: Any) -> Matrix | None:
    """The queries Z (m, d), those far outside the data X (n, d) moved towards it; None if there are none of these.

    Beyond `FARTHEST` extents only the direction of a query matters: the nearest rows stay the same, but squared
    distances lose the digits that distinguish these rows, and finally overflow. So such a query is moved along the line
    to the middle of the data. `unit` is the similarity's width, a number or (d,).

    >>> import numpy as np
    >>> nearer(np.array([[0.5, 9.0], [1e30, 3e30]]), np.array([[-1.0, -1.0], [1.0, 1.0]]), 1.0)
    array([[5.e-01, 9.e+00],
           [1.e+08, 3.e+08]])
    """
    low, high = (np.asarray(side, dtype=np.float64) for side in (X.min(axis=0), X.max(axis=0)))
    with np.errstate(over="ignore"):
        reach = np.minimum(FARTHEST * (high - low + unit), np.finfo(np.float64).max / 4)
        inside = (low - reach <= Z) & (high + reach >= Z)
    if inside.all():
        return None
    moved, far = Z.astype(np.float64), np.flatnonzero(~inside.all(axis=1))
    centre = 0.5 * low + 0.5 * high
    step = 0.5 * moved[far] - 0.5 * centre
    step /= np.abs(step).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore"):
        length = (reach / np.abs(step)).min(axis=1, keepdims=True)
    moved[far] = centre + length * step
    return moved
