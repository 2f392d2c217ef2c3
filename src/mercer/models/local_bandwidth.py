"""Similarities of models that keep their data: what `kernel` and `bandwidth` stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.points import Points
from mercer.kernels.radial import ByWidth
from mercer.models.base import shortened
from mercer.tuning import bandwidth as rules

Matrix = NDArray[np.float64]

CHECKED = 64
"""Rows in which a similarity that is not known to be non-negative is looked at."""
VARIANCE = {"Uniform": 1 / 3, "Triangular": 1 / 6, "Epanechnikov": 1 / 5, "Biweight": 1 / 7, "Tricube": 35 / 243}
"""Of the compact weights on a line, for σ = 1."""


def similarity_of(kernel: Any, points: Points, default: Callable[[Points], Similarity]) -> Similarity:
    """The similarity that a parameter stands for: itself, what a rule makes of the data, or the default."""
    if isinstance(kernel, Similarity):
        return kernel
    if kernel is None:
        return default(points)
    got = shortened(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        made = kernel(points.raw)
        if isinstance(made, Similarity):
            return made
        got += f", a rule that returned {shortened(made)}"
    raise InvalidInput(
        "`kernel` must be a kernel, a smoothing weight, a rule X → kernel, or None",
        got=got,
        advice="Such as mc.Gaussian(1.0), mc.Tricube(2.0) or mc.median_gaussian.",
    )


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
    unit = 1.0 / np.sqrt(VARIANCE.get(type(similarity).__name__, 1.0))
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
        raise InvalidInput(required, got=shortened(given), advice=f"There are {d} columns.")
    if not (np.isfinite(h) & (h > 0)).all():
        raise InvalidInput(required, got=shortened(given), advice="It is the width of a neighbourhood.")
    return similarity.replace(sigma=float(h) if h.ndim == 0 else h)


def no_bandwidth(similarity: Any, given: Any) -> InvalidInput:
    return InvalidInput(
        "A bandwidth needs a similarity of (x − z)/σ, such as Gaussian or Tricube",
        got=f"{similarity!r} with bandwidth={shortened(given)}",
        advice="Leave `bandwidth` out: the kernel is then taken as it is.",
    )


def require_nonnegative(similarity: Similarity, points: Points) -> None:
    """Weights must not be negative: their sum could vanish, and the mean with it."""
    if similarity.tags.nonnegative:
        return
    rows = np.unique(np.linspace(0, points.n - 1, min(points.n, CHECKED)).astype(np.int64))
    lowest = float(similarity(points.take(rows), points).min())
    if lowest < 0:
        raise InvalidInput(
            "Weights must be ≥ 0",
            got=f"{similarity!r}, with values down to {lowest:.3g}",
            advice="Take a similarity that is nowhere negative, such as Gaussian, or k.exp().",
        )
