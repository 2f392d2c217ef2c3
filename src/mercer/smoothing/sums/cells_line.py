"""Gaussian sums on a line: cells with moments if points are dense, windows of the sorted points if they are not.

Cells have a width of hσ. The points of a cell act on a query at a distance of at most t through K moments with a
relative error below |a|ᴷ e^|a| / K!, a = t·h/2, so h and K follow from the tolerance; cells so far away that all of
them together weigh less than the tolerance of the nearest one are left out. Rows that this cannot serve (queries far
from all data, sums that would cancel) are summed over windows of the sorted points, relative to the nearest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.smoothing import costs

Float = NDArray[np.float64]
Int = NDArray[np.int64]

FEWEST, SMALL, LARGE = 8, 16, 40
"""Numbers of moments per cell: for few queries, for queries among the data, and for those far from it."""
NEARBY, SPAN = 3.0, 20.0
"""Distances from the data, in units of σ, up to which the small and the large number serve."""
DISTINCT = 0.3
"""Points at this distance (in σ) show the true size of the moments of u, by which omitted terms are judged."""
FAITHFUL = 0.01
"""If Σ w u² is below this share of Σ w, the points are so close that cells would cancel digits of it."""


@dataclass(frozen=True, eq=False)
class Line:
    """A task: Gaussian sums on a line."""

    x: Float
    """(n,) points."""
    V: Float
    """(n, c) values; the column `measure` is the size of every row: at least |V| of the others, in units of each."""
    z: Float
    """(m,) queries; with `exclude` the points themselves."""
    sigma: float
    scale: Float | None
    degree: int
    tolerance: float
    share: float
    """Σ size / min size: the weight of all points, relative to the smallest."""
    measure: int
    exclude: bool

    @property
    def exponent(self) -> float:
        """Points of a weight below exp(−exponent) of the nearest point's may be left out; moments need more of them."""
        return math.log(4.0 * self.share / self.tolerance) + 5.0 * self.degree

    @cached_property
    def ends(self) -> tuple[float, float]:
        return float(self.x.min()), float(self.x.max())

    @cached_property
    def ones(self) -> bool:
        """Whether only weights are summed."""
        some = self.V[:1] if self.V.strides[0] == 0 else self.V
        return self.V.shape[1] == 1 and not self.exclude and bool((some == 1.0).all())

    @cached_property
    def order(self) -> Int:
        return np.argsort(self.x)

    @cached_property
    def sorted(self) -> tuple[Float, Float]:
        """x (n,) and V (c, n) in the order of x."""
        if self.ones:
            return np.sort(self.x), np.ones((1, len(self.x)))
        return self.x[self.order], np.ascontiguousarray(self.V[self.order].T)


@dataclass(frozen=True, eq=False)
class Scheme:
    """Cells of width hσ with K moments."""

    h: float
    K: int
    reach: Int
    """reach[o]: the number of cells to either side that count if the nearest occupied cell is o cells away."""
    terms: Int
    """terms[o]: the number of moments that count for a cell that is o cells away."""


@lru_cache(maxsize=64)
def scheme(exponent: float, degree: int, tolerance: float, K: int, distance: float) -> Scheme:
    """The widest cells that K moments allow for queries up to `distance` from the data."""
    # u of a close cell may be much smaller than its parts δ and t: its moments need more digits.
    close = max(math.exp(-5.0 * degree) * tolerance / 4, 1e-15)
    far = tolerance / (4 if degree == 0 else 32)

    def terms(h: float, o: int) -> int:
        return _terms((o + 0.5) * h * h / 2, far if o >= 4 else close) + degree

    def reach(h: float, o: int) -> int:
        # The nearest point is at most o + 1 cells away, the points of a cell that is left out at least its number − 1.
        return math.ceil(math.hypot((o + 1) * h, math.sqrt(2 * exponent)) / h)

    h = 4.0
    while max(terms(h, reach(h, math.ceil(distance / h))), terms(h, 3)) > K:
        h *= 0.95
    reaches = [reach(h, o) for o in range(math.ceil(distance / h) + 1)]
    return Scheme(h, K, np.array(reaches), np.array([terms(h, o) for o in range(reaches[-1] + 1)]))


def _terms(a: float, tolerance: float) -> int:
    """The least K with aᴷ e^a / K! ≤ tolerance."""
    term, K = math.exp(min(a, 700.0)), 0
    while term > tolerance and K < 1000:
        K += 1
        term *= a / K
    return max(K, 1)


# --- cells ------------------------------------------------------------------------------------------------------------


def cell_sums(line: Line) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, degree + 1, c) by cells, then by windows for the remaining rows."""
    m, c = len(line.z), line.V.shape[1]
    # Σ w u² shows whether the first moment is accurate, so it is computed, too.
    even = replace(line, degree=line.degree + line.degree % 2)
    log_scale, totals = np.empty(m), np.empty((m, even.degree + 1, c))
    tolerance = line.tolerance / 10 if line.exclude else line.tolerance
    order = np.arange(m) if (line.z[1:] >= line.z[:-1]).all() else np.argsort(line.z)
    left = order
    doubtful: list[Int] = []
    first = FEWEST if 16 * m < len(line.x) and line.degree == 0 else SMALL
    for K, distance in ((first, NEARBY), (LARGE, SPAN)):
        chosen = scheme(even.exponent, even.degree, tolerance, K, distance)
        rest, doubts = _by_cells(even, chosen, left, log_scale, totals)
        left, doubtful = rest, [*doubtful, doubts]
        if len(left) * len(line.x) < costs.FAR_PAIRS or _outside(line, left).all():
            break
    left = np.concatenate([left, *doubtful])
    if len(left):
        left = left[np.argsort(line.z[left])]
        log_scale[left], totals[left] = window_sums(_outermost(even, left), left)
    return log_scale, totals[:, : line.degree + 1]


def _outside(line: Line, rows: Int) -> NDArray[np.bool_]:
    return (line.z[rows] < line.ends[0]) | (line.z[rows] > line.ends[1])


def _outermost(line: Line, rows: Int) -> Line:
    """The line with only the points that count for these rows, if all of them are outside the data."""
    (low, high), z = line.ends, line.z[rows]
    if line.exclude or not _outside(line, rows).all():
        return line
    outside = np.maximum(low - z, z - high)
    # At a distance a the nearest point is an end of the data, and points count up to √(a² + r²) − a behind it.
    reach = math.sqrt(2 * line.exponent) * line.sigma * (1 + 1e-9)
    behind = float(np.max(reach * (reach / (np.hypot(outside, reach) + outside)))) + 1e-9 * (high - low)
    sides = [(z < low).any() and line.x <= low + behind, (z > high).any() and line.x >= high - behind]
    keep = np.unique(np.concatenate([np.flatnonzero(side) for side in sides if side is not np.False_]))
    return replace(line, x=line.x[keep], V=line.V[keep])


def _by_cells(line: Line, s: Scheme, rows: Int, log_scale: Float, totals: Float) -> tuple[Int, Int]:
    """Fill these rows, which are sorted by z; return the rows for which cells fail, and those that are inaccurate."""
    occupied, centres, moments = _moments(line, s)
    z = line.z if _all_in_order(rows, len(line.z)) else line.z[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        cells = np.floor((z - line.ends[0]) / (s.h * line.sigma))
    cells = np.clip(cells, -(2.0**52), 2.0**52).astype(np.int64)
    starts = np.ones(len(z), dtype=bool)
    np.not_equal(cells[1:], cells[:-1], out=starts[1:])
    starts[:: costs.LINE_POINTS] = True
    bounds = np.append(np.flatnonzero(starts), len(z))
    cell, sizes = cells[bounds[:-1]], np.diff(bounds)
    after = np.searchsorted(occupied, cell)
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(occupied) - 1)
    to_left, to_right = np.abs(cell - occupied[before]), np.abs(occupied[after] - cell)
    nearest, offset = np.where(to_left < to_right, before, after), np.minimum(to_left, to_right)
    reach = s.reach[np.minimum(offset, len(s.reach) - 1)]
    served = offset < len(s.reach)
    first = np.searchsorted(occupied, cell - reach)
    last = np.where(served, np.searchsorted(occupied, cell + reach, side="right"), first)
    groups = np.ascontiguousarray(np.stack([cell, nearest, first, last], axis=1))
    results = np.empty((len(z), *totals.shape[1:]))
    parts = _parts(bounds)

    from mercer._loops import local_cells

    def work(span: slice, share: int) -> None:
        part = slice(parts[span.start], parts[span.stop])
        local_cells.evaluate_cells(
            z, bounds[part.start : part.stop + 1], groups[part], occupied, centres, moments, s.terms,
            1.0 / line.sigma, line.degree, results,
        )  # fmt: skip

    threads.stripes(len(parts) - 1, work, rows=1)
    t0 = (z - centres[nearest].repeat(sizes)) / line.sigma
    good = served.repeat(sizes)
    with np.errstate(over="ignore", invalid="ignore"):
        log_scale[rows] = -0.5 * t0 * t0
        size = results[:, 0, line.measure].copy()
        if line.exclude:
            results[:, 0] -= line.V[rows] * np.exp(0.5 * t0 * t0)[:, None]
            # subtracting the row itself must not have cancelled the rest
            good &= results[:, 0, line.measure] > 0.1 * size
        for k in range(2, line.degree + 1, 2):
            good &= results[:, k, line.measure] > FAITHFUL ** (k // 2) * size
    totals[rows] = results
    served = served.repeat(sizes)
    return rows[~served], rows[served & ~good]


def _all_in_order(rows: Int, m: int) -> bool:
    return len(rows) == m and bool((rows[1:] > rows[:-1]).all())


def _moments(line: Line, s: Scheme) -> tuple[Int, Float, Float]:
    """The numbers of the occupied cells, their centres and moments (cells, c, K)."""
    width, (start, stop) = s.h * line.sigma, line.ends
    n, c = line.V.shape
    total = int((stop - start) / width) + 1
    if total <= n // 8 + 64:
        occupied, places = np.arange(total), np.arange(total)
        by_point = False
    else:
        numbers = ((line.x - start) * (1.0 / width)).astype(np.int64)
        occupied, places = np.unique(numbers, return_inverse=True)
        by_point = True
    centres: Float = start + (occupied + 0.5) * np.float64(width)
    tables: dict[int, Float] = {}

    from mercer._loops import local_cells

    def work(span: slice, share: int) -> None:
        if share not in tables:
            tables[share] = np.zeros((len(occupied), c, s.K))
        local_cells.add_moments(
            line.x[span], None if line.ones else line.V[span], (start, 1.0 / width),
            places[span] if by_point else places, by_point, centres, 1.0 / line.sigma, tables[share],
        )  # fmt: skip

    threads.stripes(n, work, rows=8 * costs.LINE_POINTS)
    moments = tables[0]
    for share in sorted(tables)[1:]:
        moments += tables[share]
    moments /= np.array([math.factorial(k) for k in range(s.K)], dtype=np.float64)
    if not by_point:
        inside = np.flatnonzero(moments[:, line.measure, 0])
        if len(inside) < total:
            return inside.astype(np.int64), centres[inside], moments[inside]
    return occupied.astype(np.int64), centres, moments


def _parts(bounds: Int) -> Int:
    """Positions of groups that begin a part: about LINE_POINTS queries, fewer if some threads would have no part."""
    wanted = np.arange(0, bounds[-1], min(costs.LINE_POINTS, max(64, int(bounds[-1]) // (2 * threads.n_threads()))))
    return np.unique(np.append(np.searchsorted(bounds[:-1], wanted), len(bounds) - 1))


# --- windows ----------------------------------------------------------------------------------------------------------


def window_sums(line: Line, rows: Int | None = None) -> tuple[Float, Float]:
    """log_scale and totals of these rows (or all), directly over the sorted points that count."""
    x, V = line.sorted
    n = len(x)
    if rows is None:
        # in the order of the points, which are looked up many times
        rows = np.argsort(line.z)
        log_scale, totals = np.empty(len(rows)), np.empty((len(rows), line.degree + 1, len(V)))
        log_scale[rows], totals[rows] = window_sums(line, rows)
        return log_scale, totals
    if line.exclude:
        if n == 1:
            return np.full(len(rows), -np.inf), np.zeros((len(rows), line.degree + 1, len(V)))
        inverse = np.empty(n, dtype=np.int64)
        inverse[line.order] = np.arange(n)
    z = line.z[rows]
    sigma = np.full(len(rows), line.sigma) if line.scale is None else line.sigma * line.scale[rows]
    if line.exclude:
        left_out = inverse[rows]
        before, after = left_out - 1, left_out + 1
    else:
        left_out = np.full(len(rows), -1)
        after = np.searchsorted(x, z)
        before = after - 1
    with np.errstate(over="ignore"):
        nearest = np.where(_distance(x, z, before) <= _distance(x, z, after), before, after)
        anchor = np.abs(x[nearest] - z)
        if line.degree:
            # the size of the moments comes from the nearest point that is not at u = 0
            apart = DISTINCT * sigma
            distinct = np.minimum(
                _distance(x, z, np.searchsorted(x, z - apart, side="right") - 1),
                _distance(x, z, np.searchsorted(x, z + apart)),
            )
            anchor = np.maximum(anchor, distinct)
        width = np.hypot(anchor, math.sqrt(2 * line.exponent) * sigma) * (1 + 1e-12)
        windows = np.stack(
            [np.searchsorted(x, z - width), np.searchsorted(x, z + width, side="right"), nearest, left_out]
        )
        windows = np.ascontiguousarray(windows.T)
        u0 = (x[nearest] - z) / sigma
        log_scale = np.maximum(-0.5 * u0 * u0, np.finfo(np.float64).min)
    totals = np.empty((len(rows), line.degree + 1, len(V)))
    factors = 1.0 / sigma

    from mercer._loops import local_line

    def work(span: slice, share: int) -> None:
        local_line.window_sums(x, V, z[span], factors[span], windows[span], totals[span])

    threads.stripes(len(rows), work, rows=256)
    if line.scale is not None:
        totals *= (line.scale[rows, None] ** np.arange(line.degree + 1))[:, :, None]
    return log_scale, totals


def _distance(x: Float, z: Float, at: Int) -> Float:
    """|x[at] − z|, infinite if there is no such point."""
    distance: Float = np.abs(x[np.clip(at, 0, len(x) - 1)] - z)
    distance[(at < 0) | (at >= len(x))] = np.inf
    return distance
