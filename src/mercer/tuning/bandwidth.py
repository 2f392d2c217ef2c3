"""Widths of smoothing kernels by rules: Scott's, Silverman's, and the improved Sheather-Jones plug-in.

All of them are standard deviations of a Gaussian kernel, one per column. A rule looks at the spread of the data (Scott,
Silverman) or at the estimated roughness of its density (improved Sheather-Jones); weights count as repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.optimize import brentq

from mercer.errors import InvalidInput

Float = NDArray[np.float64]

CELLS = 2**12, 2**15, 2**18
"""Numbers of cells of the plug-in rule's histogram: a finer one follows if the width is smaller than the cells."""
STAGES = 7
"""The number of derivatives whose roughness is estimated, the last from a normal distribution (Botev et al. 2010)."""


def scott(X: Any, weights: Any = None) -> Float:
    """Scott's rule: hₖ = n^(−1/(d+4)) · stdₖ, shape (d,).

    Parameters
    ----------
    X : array, frame or list of objects
        (n, d) or (n,) numbers, n ≥ 2 and no column constant.
    weights
        (n,), how often each row counts, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tuning.bandwidth import scott
    >>> scott(np.array([0.0, 1.0, 2.0, 3.0])).round(3)
    array([0.978])
    """
    X, w = table(X, weights)
    return _deviations(X, w) * _size(X, w) ** (-1.0 / (X.shape[1] + 4))


def silverman(X: Any, weights: Any = None) -> Float:
    """Silverman's rule, robust to outliers: hₖ = c n^(−1/(d+4)) · min(stdₖ, IQRₖ/1.34), shape (d,).

    c = 0.9 on a line, (4/(d + 2))^(1/(d+4)) in d > 1 columns. An interquartile range of 0 (ties) does not count.

    >>> import numpy as np
    >>> from mercer.tuning.bandwidth import silverman
    >>> silverman(np.array([0.0, 1.0, 2.0, 3.0, 100.0])).round(3)
    array([0.974])
    """
    X, w = table(X, weights)
    d = X.shape[1]
    std = _deviations(X, w)
    spread = np.array([(_quantile(x, w, 0.75) - _quantile(x, w, 0.25)) / 1.34 for x in X.T])
    factor = 0.9 if d == 1 else (4.0 / (d + 2)) ** (1.0 / (d + 4))
    return factor * np.where(spread > 0, np.minimum(std, spread), std) * _size(X, w) ** (-1.0 / (d + 4))


def scott_covariance(X: Any, weights: Any = None) -> Float:
    """Scott's rule with correlations: n^(−2/(d+4)) · cov(X), shape (d, d), as in scipy.stats.gaussian_kde.

    >>> import numpy as np
    >>> from mercer.tuning.bandwidth import scott_covariance
    >>> scott_covariance(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).round(3)
    array([[0.231, 0.116],
           [0.116, 0.231]])
    """
    X, w = table(X, weights)
    _deviations(X, w)
    d = X.shape[1]
    C = _covariance(X, np.ones(len(X)) if w is None else w)
    if np.linalg.eigvalsh(C / np.sqrt(np.outer(np.diag(C), np.diag(C))))[0] < 1e-12:
        raise InvalidInput(
            "The covariance of the data must be positive definite",
            got=f"columns that depend linearly on each other ({d} columns, {len(X)} rows)",
            advice="Drop a column, or use one width per column ('scott').",
        )
    return C * _size(X, w) ** (-2.0 / (d + 4))


def isj(X: Any, weights: Any = None) -> Float:
    """The improved Sheather-Jones plug-in width, column by column, shape (d,).

    The fixed point t = ξ(t) of Botev, Grotowski & Kroese (2010): the roughness ‖f''‖² that the best width needs is
    estimated with a width that needs ‖f'''‖², and so on for seven stages, all by a discrete cosine transform; it keeps
    several modes that Silverman's rule smooths away. In d > 1 columns every width is multiplied by n^(1/5 − 1/(d+4)),
    from the rate in one column to that in d columns. Without a fixed point the width is Silverman's: `plug_in` says
    why.

    >>> import numpy as np
    >>> from mercer.tuning.bandwidth import isj, silverman
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(-20, 1, 500), rng.normal(20, 1, 500)])
    >>> isj(x).round(2), silverman(x).round(2)
    (array([0.32]), array([4.52]))
    """
    return plug_in(X, weights).widths


@dataclass(frozen=True, eq=False)
class PlugIn:
    """Widths (d,) by the plug-in rule, and by column the reasons why some are Silverman's instead."""

    widths: Float
    reasons: dict[int, str]


def plug_in(X: Any, weights: Any = None) -> PlugIn:
    """`isj` with the reasons of its fall-backs.

    >>> import numpy as np
    >>> from mercer.tuning.bandwidth import plug_in
    >>> plug_in(np.array([0.0, 0.0, 0.0, 1.0])).reasons
    {0: '2 different values are too few for a plug-in rule'}
    """
    X, w = table(X, weights)
    d, n = X.shape[1], _size(X, w)
    _deviations(X, w)
    widths, reasons = np.empty(d), {}
    for k, x in enumerate(X.T):
        width = _fixed_point(x, w)
        if isinstance(width, str):
            reasons[k] = width
            # Silverman's width of this column alone, which the same factor below adapts to d columns.
            widths[k] = silverman(x, w)[0]
        else:
            widths[k] = width
    return PlugIn(widths * n ** (0.2 - 1.0 / (d + 4)), reasons)


# --- the fixed point --------------------------------------------------------------------------------------------------


def _fixed_point(x: Float, w: Float | None) -> float | str:
    """The plug-in width of one column, or the reason why there is none."""
    # Equal values count once (as in the authors' program): otherwise the rule would follow the ties, not the density.
    different = len(np.unique(x))
    if different < 5:
        return f"{different} different values are too few for a plug-in rule"
    low, length = float(x.min()), float(np.ptp(x))
    # The transform mirrors the density at the ends of its interval: half a range on either side keeps it away.
    low, length = low - length / 2, 2 * length
    for cells in CELLS:
        p = _histogram((x - low) / length, w, cells)
        squares = np.square(scipy.fft.dct(p)[1:] / 2)
        t = _root(squares, different)
        if t is None:
            return "the plug-in equation has no solution: too few points for its derivatives"
        if sqrt(t) * cells >= 1:
            return sqrt(t) * length
    if different < len(x):
        return f"{len(x) - different} of {len(x)} values are ties: to the plug-in equation they are point masses"
    return "outliers stretch the range: the width would be below its resolution"


def _histogram(x: Float, w: Float | None, cells: int) -> Float:
    """Shares of the points in cells of [0, 1], each point split between the two nearest centres."""
    at = x * cells - 0.5
    left = np.floor(at).astype(np.int64)
    right_share = at - left
    weight = np.ones(len(x)) if w is None else w
    p = np.bincount(np.maximum(left, 0), weight * (1 - right_share), cells)
    p += np.bincount(np.minimum(left + 1, cells - 1), weight * right_share, cells)
    return p / p.sum()


def _root(squares: Float, n: int) -> float | None:
    """The smallest t with t = ξ(t), in units of the squared range."""
    i = np.square(np.arange(1.0, len(squares) + 1))

    def difference(t: float) -> float:
        return t - _stages(t, n, i, squares)

    t = 0.25 / len(squares) ** 2
    if difference(t) >= 0:  # already smaller than the cells
        return t
    while t < 0.1:
        t *= 2
        if difference(t) >= 0:
            return float(brentq(difference, t / 2, t, xtol=1e-3 * t * 1e-6, rtol=1e-9))
    return None


def _stages(t: float, n: int, i: Float, squares: Float) -> float:
    """ξ(t): the best squared width if the roughness of the seventh derivative is estimated with the width √t."""

    def roughness(s: int, t: float) -> float:
        # terms beyond exp(−745) are 0
        last = int(min(len(i), sqrt(745 / (pi * pi * t)) + 1))
        j = i[:last]
        return 2 * pi ** (2 * s) * float(np.sum(j**s * squares[:last] * np.exp(-j * pi**2 * t)))

    f = roughness(STAGES, t)
    for s in range(STAGES - 1, 1, -1):
        odd = float(np.prod(np.arange(1, 2 * s, 2))) / sqrt(2 * pi)
        factor = (1 + 0.5 ** (s + 0.5)) / 3
        if f <= 0 or not np.isfinite(f):
            return np.inf
        f = roughness(s, (2 * factor * odd / (n * f)) ** (2 / (3 + 2 * s)))
    return float((2 * n * sqrt(pi) * f) ** -0.4) if f > 0 else np.inf


# --- what the rules share ---------------------------------------------------------------------------------------------


def table(X: Any, weights: Any) -> tuple[Float, Float | None]:
    """X as (n, d) float64 and positive weights, rows of weight 0 left out."""
    X = np.asarray(X, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or not X.size or not np.isfinite(X).all():
        raise InvalidInput(
            "A width needs finite numbers, shape (n,) or (n, d)",
            got=f"shape {X.shape}" if X.ndim != 2 or not X.size else "NaN or infinity",
            advice="Drop rows with missing values.",
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(2 * np.ptp(X, axis=0)).all():
            raise InvalidInput(
                "A width needs columns whose range fits float64",
                got="a range beyond 1e308",
                advice="Rescale the columns.",
            )
    w = None
    if weights is not None:
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != (len(X),) or not (np.isfinite(w) & (w >= 0)).all():
            raise InvalidInput(
                f"`weights` must hold {len(X)} finite numbers ≥ 0",
                got=f"shape {w.shape}" if w.shape != (len(X),) else "negative or infinite numbers, or NaN",
                advice="Pass one number for each row.",
            )
        X, w = X[w > 0], w[w > 0]
    if len(X) < 2:
        raise InvalidInput(
            "A width needs at least two points, because one point has no spread",
            got=f"n_samples = {len(X)}",
            advice="Pass the width as a number.",
        )
    return X, w


def _size(X: Float, w: Float | None) -> float:
    return float(len(X) if w is None else w.sum())


def _covariance(X: Float, w: Float) -> Float:
    """The covariance, as if every row were there w times."""
    D = X - np.average(X, axis=0, weights=w)
    return (w[:, None] * D).T @ D / _freedom(w.sum())


def _freedom(n: float) -> float:
    """n − 1, but at least n/2, for weights with a small sum."""
    return max(n - 1.0, n / 2)


def _deviations(X: Float, w: Float | None) -> Float:
    """Standard deviations, all of them > 0."""
    scale = np.abs(X).max(axis=0)
    scale[scale == 0] = 1.0
    Y = X / scale
    D = Y - np.average(Y, axis=0, weights=w)
    squares = np.average(np.square(D), axis=0, weights=w) * _size(X, w) / _freedom(_size(X, w))
    # The rounding errors of a constant are not a spread.
    constant = np.flatnonzero(X.max(axis=0) - X.min(axis=0) <= 8 * np.finfo(np.float64).eps * scale)
    if len(constant):
        raise InvalidInput(
            "A rule for the width needs columns that vary",
            got=f"the same value in all {len(X)} rows of column {constant[0]}",
            advice="Drop the column, or pass the widths as numbers, one per column.",
        )
    return np.sqrt(squares) * scale


def _quantile(x: Float, w: Float | None, p: float) -> float:
    """The weighted quantile by linear interpolation; a weight w counts as w repetitions."""
    if w is None:
        return float(np.quantile(x, p))
    order = np.argsort(x, kind="stable")
    ends = np.cumsum(w[order])
    position = max(ends[-1] - 1.0, 0.0) * p
    whole = np.floor(position + 1e-9)
    low, high = np.minimum(np.searchsorted(ends, [whole + 1e-9, whole + 1 + 1e-9], side="right"), len(x) - 1)
    a, b = x[order[low]], x[order[high]]
    return float(a + max(position - whole, 0.0) * (b - a))
