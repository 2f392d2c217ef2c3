"""Direct sums in the plane, in space and beyond: over the cells of a grid near each query, or over all points.

Points are sorted by the cells of a grid; the sum of a query visits the cells within the reach of its weight. The reach
of a Gaussian follows from the tolerance: if a first sum shows that omitted points may count, the sum is repeated with a
longer reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.smoothing import costs

if TYPE_CHECKING:
    from mercer._loops.local_direct import Grid

Float = NDArray[np.float64]
Int = NDArray[np.int64]

LONGEST = 30.0
"""Reach of the Gaussian (in σ) beyond which its values come close to underflow."""
LARGE, SAMPLE, SERVED = 2000, 64, 0.9
"""From LARGE queries on, a SAMPLE of them estimates the reach that the share SERVED of them needs."""


@dataclass(frozen=True, eq=False)
class DirectTask:
    """Points, values and queries of direct sums with a Gaussian or a compact weight, in the units of the loop."""

    kind: str
    x: Float
    """(n, d) points, in units of a power of two near σ, or of σ itself if it differs by column."""
    V: Float
    """(n, c) values."""
    z: Float
    """(m, d) queries."""
    sigma: float
    """The width in these units."""
    ratios: Float
    """(m,) inverse squares of the queries' scale."""
    exponents: Int
    """(M, d) of the monomials."""
    tolerance: float
    measure: int
    """The column of V that bounds every row of it."""
    left_out: Int | None
    """(m,) the point that a query leaves out, or None."""

    @property
    def unit(self) -> float:
        """The factor from |v|² to the argument of the loop: the exponent of 2, or |u|²."""
        inverse = 1.0 / self.sigma**2
        return 0.5 * math.log2(math.e) * inverse if self.kind == "Gaussian" else inverse

    @property
    def code(self) -> int:
        from mercer._loops import local_direct

        coarse = self.kind == "Gaussian" and self.tolerance >= 1e-10
        return local_direct.COARSE if coarse else local_direct.KINDS[self.kind]

    @property
    def reach(self) -> float:
        """The distance up to which weights count, in units of σ; for a Gaussian a first guess."""
        if self.kind != "Gaussian":
            return 1.0 + 1e-9
        share = self.V[:, self.measure].sum() / self.V[:, self.measure].min()
        degree = int(self.exponents.sum(axis=1).max())
        return math.sqrt(1.0 + 2.0 * (math.log(4.0 * share / self.tolerance) + 5.0 * degree))


def all_pairs(task: DirectTask) -> Float:
    """Every query meets every point: totals (m, M, c)."""
    m = len(task.z)
    starts = np.arange(0, m, costs.GROUP_QUERIES)
    groups = np.zeros((len(starts), 5), dtype=np.int64)
    groups[:, 0], groups[:, 1] = starts, np.minimum(starts + costs.GROUP_QUERIES, m)
    return _sums(task, task.x, task.V, task.z, task.ratios, task.left_out, groups, None, 1)


def by_cells(task: DirectTask) -> tuple[Float, Int]:
    """totals (m, M, c) by cells, and the rows for which cells fail: queries too far from the points."""
    totals = np.zeros((len(task.z), len(task.exponents), task.V.shape[1]))
    rows, reach = np.arange(len(task.z)), _first_reach(task)
    while len(rows):
        totals[rows] = _sums_within(task, rows, reach)
        if task.kind != "Gaussian":
            return totals, rows[:0]
        needed = _needed(task, totals[rows], reach)
        rows, needed = rows[needed > reach], needed[needed > reach]
        if len(rows) == 0 or reach >= LONGEST:
            break
        # The median serves half of the remaining rows; the cost of a reach is its cube.
        reach = min(max(float(np.median(needed)), 1.2 * reach), LONGEST)
    return totals, rows


def _first_reach(task: DirectTask) -> float:
    """The first reach: the guess, or if that would be costly, the reach that most queries of a sample need."""
    guess = task.reach
    if task.kind != "Gaussian" or len(task.z) < LARGE:
        return guess
    some = np.linspace(0, len(task.z) - 1, SAMPLE).astype(np.int64)
    left_out = None if task.left_out is None else task.left_out[some]
    sample = replace(task, z=task.z[some], ratios=task.ratios[some], left_out=left_out)
    return min(guess, float(np.sort(_needed(task, all_pairs(sample), guess))[int(SERVED * SAMPLE)]))


def _needed(task: DirectTask, totals: Float, reach: float) -> Float:
    """The reach that these sums need: all points beyond it together are below the tolerance."""
    powers = task.exponents
    needed = np.zeros(len(totals))
    everything = float(task.V[:, task.measure].sum())
    for k in range(0, int(powers.sum(axis=1).max()) + 1, 2):
        # Σ w |u|ᵏ, up to a constant
        pure = np.flatnonzero((powers.sum(axis=1) == k) & (powers.max(axis=1) == k))
        size = totals[:, pure, task.measure].sum(axis=1) / task.sigma**k
        with np.errstate(divide="ignore", over="ignore"):
            # a query without any point goes twice as far, until it has one
            exponent = np.log(4.0 * everything * reach**k / (task.tolerance * np.maximum(size, 0.0)))
        needed = np.maximum(needed, np.where(size > 0, np.sqrt(2.0 * np.maximum(exponent, 0.0)), 2.0 * reach))
    return needed


def _sums_within(task: DirectTask, rows: Int, reach: float) -> Float:
    """totals of these rows over the cells within the reach."""
    from mercer._loops.local_direct import Grid

    n, d = task.x.shape
    low, span = task.x.min(axis=0), np.ptp(task.x, axis=0)
    # cells for about CELL_POINTS evenly spread points, but not so small that most of them are empty
    volume = float(np.prod(np.maximum(span / task.sigma, 1e-3 * reach)))
    side = min(max((costs.CELL_POINTS * volume / n) ** (1.0 / d), reach / 5), reach)
    # and few enough that their numbers do not overflow
    side = max(side, float(span.max()) / task.sigma / 2.0**20)
    width = side * task.sigma
    shape = [int(c) for c in np.floor(span / width) + 1]
    points, queries = _cells(task.x, low, width), _cells(task.z[rows], low, width)
    points = np.minimum(points, np.array(shape) - 1)
    numbers = points[:, 0]
    for k in range(1, d):
        numbers = numbers * shape[k] + points[:, k]
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    total = math.prod(shape)
    if total <= 4 * n + 4096:
        occupied, starts = np.empty(0, dtype=np.int64), np.searchsorted(numbers, np.arange(total + 1))
    else:
        occupied, first = np.unique(numbers, return_index=True)
        starts = np.append(first, n)
    dims = (1, *shape) if d == 2 else tuple(shape)
    grid = Grid((dims[0], dims[1], dims[2]), side, reach, occupied, starts)
    left_out = None
    if task.left_out is None:
        sequence = np.lexsort(queries.T[::-1])
    else:
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        # the queries are points: in the order of the points the queries of a cell are together
        sequence = np.argsort(place[task.left_out[rows]])
        left_out = place[task.left_out[rows]][sequence]
        queries = points[task.left_out[rows]]
    cells = queries[sequence]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    new[:: 4 * costs.GROUP_QUERIES] = True
    starts_of = np.flatnonzero(new)
    groups = np.zeros((len(starts_of), 5), dtype=np.int64)
    groups[:, 0], groups[:, 1] = starts_of, np.append(starts_of[1:], len(rows))
    groups[:, 5 - d :] = cells[starts_of]
    chosen = rows[sequence]
    x, V = task.x[order], task.V[order]
    results = _sums(task, x, V, task.z[chosen], task.ratios[chosen], left_out, groups, grid, 16)
    totals = np.empty_like(results)
    totals[sequence] = results
    return totals


def _cells(x: Float, low: Float, width: float) -> Int:
    return np.clip(np.floor((x - low) / width), -(2.0**40), 2.0**40).astype(np.int64)


def _sums(
    task: DirectTask,
    x: Float,
    V: Float,
    z: Float,
    ratios: Float,
    left_out: Int | None,
    groups: Int,
    grid: Grid | None,
    step: int,
) -> Float:
    """The compiled loop over the threads, `step` groups at a time."""
    from mercer._loops import local_direct

    columns, values = np.ascontiguousarray(x.T), np.ascontiguousarray(V.T)
    z, of = np.ascontiguousarray(z), local_direct.monomials(task.exponents)
    totals = np.zeros((len(z), len(task.exponents), V.shape[1]))

    def work(span: slice, share: int) -> None:
        local_direct.direct_sums(
            task.code, columns, values, z, task.unit, ratios, of, groups[span], grid, left_out, totals
        )

    threads.stripes(len(groups), work, rows=step)
    return totals
