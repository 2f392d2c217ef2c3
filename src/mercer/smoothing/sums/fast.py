"""The fast paths of the sums: their common preparation, and a slower path for the rows on which they fail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.kernels.base import Similarity
from mercer.smoothing.sums.cells_line import Line, cell_sums, window_sums
from mercer.smoothing.sums.cells_space import DirectTask, all_pairs, by_cells
from mercer.smoothing.sums.far import far_sums
from mercer.smoothing.sums.line_compact import compact_sums, laplacian_sums

Float = NDArray[np.float64]
Int = NDArray[np.int64]

FAINT = 1e-250
"""Sums of a Gaussian below this have lost terms to underflow."""
ISOLATED = 1e-3
"""If the other points' share of a sum is below this, subtracting the row itself would cancel digits."""


@dataclass(frozen=True, eq=False)
class Task:
    """One call of `sums` on dense vectors, with an exact size for every row of V."""

    similarity: Similarity
    X: Float
    V: Float
    """(n, c) values, no row of them zero; the column `measure` is the largest of each row, in units of each column."""
    measure: int
    Z: Float | None
    powers: Int
    exclude: bool
    scale: Float | None
    tolerance: float

    @property
    def kind(self) -> str:
        return type(self.similarity).__name__

    @property
    def degree(self) -> int:
        return int(self.powers.sum(axis=1).max())

    @property
    def queries(self) -> Float:
        return self.X if self.Z is None else self.Z

    @property
    def sigma(self) -> Float:
        return np.broadcast_to(np.asarray(self.similarity.sigma, dtype=np.float64), self.X.shape[1:])  # type: ignore[attr-defined]

    @property
    def share(self) -> float:
        """The weight of all points together, relative to the smallest."""
        sizes = self.V[:, self.measure]
        return float(len(sizes)) if sizes.strides[0] == 0 else float(sizes.sum() / sizes.min())


def different(V: Float) -> Float:
    """The rows of V that may differ: a single one if V is a row broadcast to all."""
    return V[:1] if V.strides[0] == 0 else V


def fast_sums(
    path: str,
    similarity: Similarity,
    X: Float,
    V: Float,
    Z: Float | None,
    powers: Int,
    exclude: bool,
    scale: Float | None,
    tolerance: float,
) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, M, c) by the planned path."""
    rows_of = different(V)
    nonzero: NDArray[np.bool_] = rows_of[:, 0] != 0
    for k in range(1, V.shape[1]):
        nonzero |= rows_of[:, k] != 0
    if not nonzero.any():
        m = len(X if Z is None else Z)
        return np.zeros(m), np.zeros((m, len(powers), V.shape[1]))
    if not nonzero.all():
        # Points without any value count nowhere, not even as the nearest; as queries they have nothing to leave out.
        some, values = X[nonzero], V[nonzero]
        if not exclude:
            queries = X if Z is None else Z
            return fast_sums(path, similarity, some, values, queries, powers, False, scale, tolerance)
        log_scale, totals = np.empty(len(X)), np.empty((len(X), len(powers), V.shape[1]))
        parts: list[tuple[NDArray[np.bool_], Float | None]] = [(nonzero, None), (~nonzero, X[~nonzero])]
        for rows, others in parts:
            factors = None if scale is None else scale[rows]
            part = fast_sums(path, similarity, some, values, others, powers, others is None, factors, tolerance)
            log_scale[rows], totals[rows] = part
        return log_scale, totals
    c = V.shape[1]
    V, measure = _measured(V if c == 1 and path == "line cells" else np.ascontiguousarray(V))
    task = Task(similarity, X, V, measure, Z, powers, exclude, scale, tolerance)
    log_scale, totals = _PATHS[path](task)
    return log_scale, totals[:, :, :c]


def _measured(V: Float) -> tuple[Float, int]:
    """V with a column that is the size of every row, and its position: a column of V if possible, else a new one."""
    if V.shape[1] == 1:
        return (V, 0) if different(V).min() > 0 else (np.concatenate([V, np.abs(V)], axis=1), 1)
    largest = np.abs(V).max(axis=0)
    sizes = np.max([np.abs(V[:, k]) / largest[k] for k in np.flatnonzero(largest)], axis=0)
    for k in np.flatnonzero(largest):
        if np.array_equal(V[:, k] / largest[k], sizes):
            return V, int(k)
    return np.concatenate([V, sizes[:, None]], axis=1), V.shape[1]


# --- the paths --------------------------------------------------------------------------------------------------------


def _line(task: Task) -> Line:
    V = task.V if (different(task.V) == 1.0).all() else np.ascontiguousarray(task.V)
    return Line(
        np.ascontiguousarray(task.X[:, 0]), V, np.ascontiguousarray(task.queries[:, 0]),
        float(task.sigma[0]), task.scale, task.degree, task.tolerance, task.share, task.measure, task.exclude,
    )  # fmt: skip


def _line_cells(task: Task) -> tuple[Float, Float]:
    return cell_sums(_line(task))


def _line_windows(task: Task) -> tuple[Float, Float]:
    return window_sums(_line(task))


def _line_tree(task: Task) -> tuple[Float, Float]:
    x, z = task.X[:, 0], task.queries[:, 0]
    return compact_sums(task.kind, x, task.V, z, float(task.sigma[0]), task.scale, task.degree, task.exclude)


def _recursions(task: Task) -> tuple[Float, Float]:
    return laplacian_sums(task.X[:, 0], task.V, task.queries[:, 0], float(task.sigma[0]), task.degree, task.exclude)


def _direct_task(task: Task) -> tuple[DirectTask, Float]:
    """The task in the units of the loop, and the factors of its monomials."""
    X, Z = task.X, task.queries
    if np.ptp(task.sigma) == 0:
        # A power of two near 1/σ scales without rounding: no offset of the data costs a digit.
        unit = 2.0 ** -round(math.log2(task.sigma[0]))
        width = float(task.sigma[0]) * unit
        X, Z = X * unit, Z * unit
    else:
        centre, width = X.mean(axis=0), 1.0
        X, Z = (X - centre) / task.sigma, (Z - centre) / task.sigma
    ratios = np.ones(len(Z)) if task.scale is None else 1.0 / np.square(task.scale)
    left_out = np.arange(len(X)) if task.exclude else None
    direct = DirectTask(task.kind, X, task.V, Z, width, ratios, task.powers, task.tolerance, task.measure, left_out)
    return direct, width ** -task.powers.sum(axis=1).astype(np.float64)


def _space_cells(task: Task) -> tuple[Float, Float]:
    direct, units = _direct_task(task)
    totals, left = by_cells(direct)
    return _finished(task, totals * units[:, None], left)


def _direct(task: Task) -> tuple[Float, Float]:
    direct, units = _direct_task(task)
    totals = all_pairs(direct) * units[:, None]
    left = np.empty(0, dtype=np.int64)
    if task.kind == "Gaussian":
        left = np.flatnonzero(~(totals[:, 0, task.measure] > FAINT * task.V[:, task.measure].max()))
    return _finished(task, totals, left)


def _product(task: Task) -> tuple[Float, Float]:
    z = None if task.Z is None else Points(task.Z)
    x = Points(task.X)
    pair = task.similarity.pair(x, None, np.float64) if z is None else task.similarity.pair(z, x, np.float64)
    totals = task.similarity.multiply(pair, task.V)[:, None]
    sizes = totals[:, 0, task.measure].copy()
    weak = ~(sizes > FAINT * task.V[:, task.measure].max())
    if task.exclude:
        totals[:, 0] -= task.V
        weak |= ~(totals[:, 0, task.measure] > ISOLATED * sizes)
    return _finished(task, totals, np.flatnonzero(weak))


def _finished(task: Task, totals: Float, left: Int) -> tuple[Float, Float]:
    """log_scale and totals, with the rows in `left` summed relative to their nearest point."""
    log_scale = np.where(totals[:, 0, task.measure] > 0, 0.0, -np.inf)
    if len(left):
        exponent = math.log(4.0 * task.share / task.tolerance) + 5.0 * task.degree
        scale = np.ones(len(left)) if task.scale is None else task.scale[left]
        log_scale[left], totals[left] = far_sums(
            task.X, task.V, task.queries[left], task.sigma, scale, task.powers, exponent, left if task.exclude else None
        )
    return log_scale, totals


_PATHS = {
    "line cells": _line_cells,
    "line windows": _line_windows,
    "line tree": _line_tree,
    "recursions": _recursions,
    "space cells": _space_cells,
    "product": _product,
    "direct": _direct,
}
