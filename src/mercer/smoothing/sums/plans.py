"""The path of a sum, and why: by similarity, dimension, bandwidth, and the number of pairs that count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.radial import Gaussian
from mercer.kernels.vectors.stationary import Laplacian
from mercer.kernels.weights import Biweight, Epanechnikov, Triangular, Tricube, Uniform
from mercer.smoothing import costs

Float = NDArray[np.float64]

COMPACT = (Uniform, Triangular, Epanechnikov, Biweight, Tricube)
WIDEST = 1e30
"""Spread of the data in units of σ above which powers of it could overflow."""
COUNTABLE = 1e14
"""Spread up to which the cells on a line can be numbered."""
SAMPLE = 1024, 32
"""Points and queries in the sample that estimates it."""
TIGHT = 1e-11
"""Tolerances below this need differences instead of products."""


@dataclass(frozen=True)
class Plan:
    """The path of one call of `sums`.

    path : "line cells" (moments of cells), "line windows" (sorted points), "line tree" (compact weights), "recursions"
        (Laplacian), "space cells" (a grid), "product" (fused K V), "direct" (all pairs in registers) or "tiled".
    reason : in words, with the numbers that decided.
    """

    path: str
    reason: str

    def __repr__(self) -> str:
        return f"Plan({self.path}: {self.reason})"


def plan(
    similarity: Similarity,
    x: Points,
    z: Points | None = None,
    *,
    degree: int = 0,
    exclude: bool = False,
    scale: Any = None,
    tolerance: float = 1e-8,
) -> Plan:
    """The path that `sums` takes for these points, and why.

    >>> import numpy as np, mercer as mc
    >>> k = mc.Tricube(0.1)
    >>> plan(k, k.prepare(np.linspace(0, 1, 1000)[:, None]))
    Plan(line tree: a piecewise polynomial on a line)
    """
    if type(similarity) not in (Gaussian, Laplacian, *COMPACT):
        return Plan("tiled", f"no faster path is known for {similarity!r}")
    m = (x if z is None else z).n
    few = f"only {x.n} × {m} pairs" if x.n * m <= costs.FEW_PAIRS else ""
    if few and type(similarity) is not Gaussian:
        return Plan("tiled", few)
    if sp.issparse(x.vectors()) or (z is not None and sp.issparse(z.vectors())):
        return Plan("tiled", "sparse data")
    X = x.vectors()
    Z = X if z is None else z.vectors()
    d = X.shape[1]
    if np.size(similarity.sigma) not in (1, d) or Z.shape[1] != d:  # type: ignore[attr-defined]
        return Plan("tiled", "columns that do not match")  # raises later
    if d > costs.DIRECT_COLUMNS:
        if type(similarity) is Gaussian and degree == 0 and scale is None and tolerance >= TIGHT:
            return Plan("product", f"the fused product with d = {d}")
        return Plan("tiled", f"d = {d} columns")
    if few:
        # far from all data, differences keep digits that the logarithms of a tile have lost
        return Plan("line windows" if d == 1 else "direct", few)
    sigma = np.broadcast_to(np.asarray(similarity.sigma, dtype=np.float64), (d,))  # type: ignore[attr-defined]
    low, high = (np.stack(side) for side in zip(*(ends(points) for points in (x, x if z is None else z))))
    with np.errstate(over="ignore"):
        spread = float(np.max((high.max(axis=0) - low.min(axis=0)) / sigma))
    if not spread < WIDEST:
        return Plan("tiled", f"points {spread:.1g} widths apart")
    if d > 1:
        return _in_space(similarity, X, Z, sigma, degree, scale, tolerance)
    return _on_a_line(similarity, X, Z, sigma, degree, scale, tolerance, spread)


def ends(points: Points) -> tuple[Float, Float]:
    """The smallest and the largest value of every column."""
    X = points.vectors()
    return points.once("ends", lambda: (X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)))


def _on_a_line(
    similarity: Similarity, X: Any, Z: Any, sigma: Float, degree: int, scale: Any, tolerance: float, spread: float
) -> Plan:
    if isinstance(similarity, COMPACT):
        return Plan("line tree", "a piecewise polynomial on a line")
    if isinstance(similarity, Laplacian):
        if scale is None:
            return Plan("recursions", "exponentials on a line")
        return Plan("tiled", "a width for every query rules recursions out")
    if scale is not None:
        return Plan("line windows", "a width for every query")
    if spread > COUNTABLE:
        return Plan("line windows", f"points {spread:.1g} widths apart")
    n, m = len(X), len(Z)
    reach = _reach(n, degree, tolerance)
    pairs = _share(X, Z, sigma, reach) * n
    # Cycles per query: windows by vectors of points, cells by vectors of the queries that share them.
    cells = 2 * reach / (0.45 if degree == 0 else 0.3)
    together = min(max(pairs / cells * m / n, 1.0), 32.0)
    moments = cells * (120 if degree == 0 else 350) / together + 20 * n / m
    windows = (60 if degree == 0 else 120) * (pairs / 32 + 1) + 80 * n / m
    reason = f"about {pairs:.0f} points within {reach:.1f} widths of a query"
    return Plan("line windows" if windows < moments else "line cells", reason)


def _in_space(similarity: Similarity, X: Any, Z: Any, sigma: Float, degree: int, scale: Any, tolerance: float) -> Plan:
    d = len(sigma)
    if isinstance(similarity, Laplacian):
        return Plan("tiled", f"no faster path is known for the Laplacian with d = {d}")
    gaussian = isinstance(similarity, Gaussian)
    reason = f"d = {d}"
    if scale is not None:
        reason = f"a width for every query, d = {d}"
    elif d <= 3:
        reach = _reach(len(X), degree, tolerance) if gaussian else 1.0
        share = _share(X, Z, sigma, reach)
        reason = f"about {100 * share:.2g} % of the points within {reach:.1f} widths of a query, d = {d}"
        if share < costs.NEAR_SHARE:
            return Plan("space cells", reason)
    if gaussian and degree == 0 and scale is None and tolerance >= TIGHT:
        return Plan("product", reason)
    return Plan("direct", reason)


def _reach(n: int, degree: int, tolerance: float) -> float:
    """The distance up to which a Gaussian counts, in widths."""
    return math.sqrt(1.0 + 2.0 * (math.log(4.0 * n / tolerance) + 5.0 * degree))


def _share(X: Any, Z: Any, sigma: Float, reach: float) -> float:
    """The share of points within reach of a query, from a sample of both."""
    points, queries = SAMPLE
    a, b = X[:: max(len(X) // points, 1)], Z[:: max(len(Z) // queries, 1)]
    squares = np.zeros((len(b), len(a)))
    with np.errstate(over="ignore"):
        for k, s in enumerate(sigma):
            squares += np.square((a[:, k] - b[:, k, None]).astype(np.float64) / s)
    return float((squares <= reach**2).mean()) + 1.0 / len(X)
