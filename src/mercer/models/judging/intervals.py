"""How good intervals are: their coverage, also for small and large predictions, and their interval score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Matrix = NDArray[np.float64]

PARTS = 3
"""The number of parts, by the size of the prediction."""
FEWEST_ROWS = 30
"""Reports do not divide fewer rows than this by the size of their predictions."""


def interval_scores(y: Matrix, ends: Matrix, coverage: float) -> Matrix:
    """The interval score of each row: the width plus 2/(1 − coverage) times the distance of a missed target.

    Its mean is least for the true quantiles, so that it rewards narrow intervals and coverage at once (Winkler 1972;
    Gneiting and Raftery 2007).

    >>> import numpy as np
    >>> interval_scores(np.array([1.0, 5.0]), np.array([[0.0, 2.0], [0.0, 4.0]]), 0.9).round(6)
    array([ 2., 24.])
    """
    low, high = ends.T
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - coverage) * missed)


@dataclass(frozen=True, repr=False)
class CoveragePart:
    """The intervals of one part of the rows, by the size of the prediction.

    Attributes
    ----------
    low, high : float
        The smallest and the largest prediction.
    rows : int
        The number of rows.
    observed : float
        The share of targets inside their intervals.
    error : float
        The standard error of that share if the promise holds.
    width : float
        The mean width of the intervals.
    mae : float
        The mean absolute error of the predictions.
    """

    low: float
    high: float
    rows: int
    observed: float
    error: float
    width: float
    mae: float


def coverage_by_size(
    y: Any, predictions: Any, ends: Any, coverage: float, parts: int = PARTS
) -> tuple[CoveragePart, ...]:
    """Coverage for the rows with small, middle and large predictions.

    Parameters
    ----------
    y, predictions : array
        Targets and predictions of held-out rows, shape (n,).
    ends : array
        Their intervals, shape (n, 2).
    coverage : float
        The promised coverage of the intervals.
    parts : int
        The number of parts, of about equally many rows: rows with equal predictions are in the same part, so that there
        may be fewer.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(6.0)
    >>> ends = np.column_stack([y - 1, y + [1, 1, 1, 1, -0.5, -0.5]])           # the largest two are missed
    >>> [part.observed for part in coverage_by_size(y, y, ends, 0.9)]
    [1.0, 1.0, 0.0]
    >>> [part.rows for part in coverage_by_size(y, [1, 2, 2, 2, 2, 3], ends, 0.9)]
    [5, 1]
    """
    y, f, ends = (np.asarray(values, dtype=np.float64) for values in (y, predictions, ends))
    if y.ndim != 1 or y.shape != f.shape or ends.shape != (len(y), 2) or len(y) < parts:
        raise InvalidInput(
            "There must be as many targets, predictions and intervals, and at least one row for each part",
            got=f"shapes {y.shape}, {f.shape} and {ends.shape}",
            advice="Pass held-out rows with predict and predict_interval.",
        )
    found, order = [], np.argsort(f, kind="stable")
    cuts = [np.searchsorted(f[order], f[part[-1]], side="right") for part in np.array_split(order, parts)[:-1]]
    for rows in filter(len, np.split(order, cuts)):
        inside = (ends[rows, 0] <= y[rows]) & (y[rows] <= ends[rows, 1])
        found.append(
            CoveragePart(
                float(f[rows].min()),
                float(f[rows].max()),
                len(rows),
                float(inside.mean()),
                float(np.sqrt(coverage * (1 - coverage) / len(rows))),
                float((ends[rows, 1] - ends[rows, 0]).mean()),
                float(np.abs(y[rows] - f[rows]).mean()),
            )
        )
    return tuple(found)
