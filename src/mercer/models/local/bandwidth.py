"""Similarities of models that keep their data: what `kernel` and `bandwidth` stand for, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vectors.radial import ByWidth
from mercer.models.base import shortened
from mercer.tuning import bandwidth as rules

Matrix = NDArray[np.float64]

CHECKED = 64
"""Rows in which a similarity that is not known to be non-negative is looked at."""
ENTRIES = 2**22
"""Of its values, how many are held at a time."""
ROUNDING = 1e-9
"""The share of negative weights that is put down to rounding."""
FARTHEST = 1e8
"""Queries are not seen farther outside of the data than this, in units of its extent: there squared distances still
tell apart rows that are 1e-8 of it from each other."""


def similarity_of(kernel: Any, points: Points, default: Callable[[Points], Similarity]) -> Similarity:
    """The similarity that a parameter stands for: itself, what a rule makes of the data, or the default.

    A class of them stands for its member with the columns' standard deviations as widths, if it has widths (with the
    median distance, if X is sparse).
    """
    if isinstance(kernel, Similarity):
        return kernel
    if kernel is None:
        return default(points)
    got, advice = shortened(kernel), "Such as mc.Gaussian(1.0), mc.Tricube(2.0) or mc.median_gaussian."
    if isinstance(kernel, type) and issubclass(kernel, Similarity):
        return _member(kernel, points)
    if callable(kernel) and not isinstance(kernel, type):
        made = kernel(points.raw)
        if isinstance(made, Similarity):
            return made
        got += f", a rule that returned {shortened(made)}"
    if isinstance(kernel, str):
        advice = f"scikit-learn's names are kernels here: 'rbf' is mc.Gaussian, 'poly' mc.Polynomial. {advice}"
    raise InvalidInput(
        "`kernel` must be a kernel, a smoothing weight, a class of them, a rule X → kernel, or None",
        got=got,
        advice=advice,
    )


def _member(family: type[Similarity], points: Points) -> Similarity:
    """The member of a class of similarities that the data suggests."""
    try:
        made: Any = family()
    except TypeError:
        raise InvalidInput(
            "`kernel` as a class must need no arguments",
            got=family.__name__,
            advice=f"Pass a kernel of that class: mc.{family.__name__}(…).",
        ) from None
    if not isinstance(made, ByWidth):
        return made
    if sp.issparse(points.vectors()):
        return with_bandwidth(made, median_gaussian(points).sigma, points)
    return with_bandwidth(made, spreads(points), points)


def spreads(points: Points) -> Matrix:
    """The standard deviation of every column, 1 for a constant one: shape (d,)."""
    X = points.vectors().astype(np.float64)
    spread = (X - X.mean(axis=0)).std(axis=0)
    return np.where((spread > 1e-140) & (spread < 1e140), spread, 1.0)


def by_rule(rule: str, similarity: Any, points: Points) -> Matrix:
    """Bandwidths by name, (d,), as those of a Gaussian; of a compact weight as wide as to have its variance."""
    if not isinstance(similarity, ByWidth):
        raise no_bandwidth(similarity, rule)
    if rule not in ("spread", "scott", "silverman"):
        raise InvalidInput(
            "`bandwidth` must be a number > 0, one per column, or 'loo', 'loo-common', 'scott' or 'silverman'",
            got=shortened(rule),
            advice="'loo' is the one that looks at y.",
        )
    unit = 1.0 / np.sqrt(getattr(similarity, "variance", 1.0))
    n, d = points.vectors().shape
    if rule == "spread":
        return np.asarray(unit * spreads(points) * n ** (-1.0 / (d + 4)))
    return np.asarray(unit * (rules.scott if rule == "scott" else rules.silverman)(points.vectors()))


def with_bandwidth(similarity: Any, given: Any, points: Points) -> Similarity:
    """The similarity with these bandwidths: one, or one per column."""
    required = "`bandwidth` must be a finite number > 0, or one per column"
    if not isinstance(similarity, ByWidth):
        raise no_bandwidth(similarity, given)
    try:
        h = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=shortened(given), advice="Or a rule: 'loo', 'scott'.") from None
    d = points.vectors().shape[1]
    if isinstance(given, (bool, np.bool_)) or h.ndim > 1 or h.shape not in ((), (d,)):
        columns = "There is 1 column." if d == 1 else f"There are {d} columns."
        raise InvalidInput(required, got=shortened(given), advice=columns)
    if not (np.isfinite(h) & (h > 0)).all():
        raise InvalidInput(required, got=shortened(given), advice="It is the width of a neighbourhood.")
    return similarity.replace(sigma=float(h) if h.ndim == 0 else h)


def no_bandwidth(similarity: Any, given: Any) -> InvalidInput:
    return InvalidInput(
        "A bandwidth needs a similarity of (x − z)/σ, such as Gaussian or Tricube",
        got=f"{similarity!r} with bandwidth={shortened(given)}",
        advice="Leave `bandwidth` out: the kernel is then taken as it is.",
    )


def require_nonnegative(similarity: Similarity, points: Points, queries: Points | None = None) -> None:
    """Weights must not be negative: their sum could vanish, and the mean with it.

    Those of all queries are looked at, or without queries those of some of the points. It costs a pass over them for
    similarities that are not known to be ≥ 0, and nothing for others.
    """
    if similarity.tags.nonnegative:
        return
    if queries is None:
        queries = points.take(np.unique(np.linspace(0, points.n - 1, min(points.n, CHECKED)).astype(np.int64)))
    for rows in threads.spans(queries.n, max(1, ENTRIES // points.n)):
        W = similarity(queries.take(rows), points, dtype=np.float64)
        if (W.sum(axis=1) < (1 - ROUNDING) * np.abs(W).sum(axis=1)).any():
            raise InvalidInput(
                "Weights must be ≥ 0",
                got=f"{similarity!r}, with values down to {W.min():.3g}",
                advice="Take a similarity that is nowhere negative, such as Gaussian, or k.exp().",
            )


def nearer(Z: Any, X: Any, unit: Any) -> Matrix | None:
    """Queries Z (m, d) that are far outside of the data X (n, d), moved towards it; None where there are none.

    From `FARTHEST` extents on all is one direction: the same rows are near, but squared distances lose the digits that
    tell these rows apart, and overflow at last. So such a query is moved along the line to the middle of the data.
    `unit` is the similarity's width, one or (d,).

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
