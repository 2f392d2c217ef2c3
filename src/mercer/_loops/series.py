"""Dynamic programs over pairs of time series: small ones by NumPy here, large ones compiled (`series_large`).

A tile holds static values s(xᵢ, zⱼ) of some series x, one below the other, with a group of `LANES` series z. The points
of the group are interleaved: column j · LANES + q is point j of series q, so that one instruction works on all series
of the group. Series that are shorter than the longest of their group end in repetitions of their last point. A program
runs over the steps of one x at a time: `ends` says where each begins, and `out` has one row per x and one column per z.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = 8
"""The number of series that are worked on together."""


def signature(tile: Array, ends: Array, level: int, out: Array, sizes: Array, *, compiled: bool) -> None:
    """out = Σ_m ⟨S_m(x), S_m(z)⟩ over the levels m = 0 … level of the signatures of piecewise linear paths.

    sizes = the sum of the absolute values of all numbers that were added up: out is off by about as many roundings.
    """
    if compiled:
        from . import series_large

        series_large.signature(tile, ends, level, out, sizes)
        return
    for a, M in _increments(tile, ends):
        out[a], sizes[a] = _signature(M, level)


def goursat(tile: Array, ends: Array, refine: int, out: Array, *, compiled: bool) -> None:
    """out = u(1, 1) for the Goursat problem ∂²u/∂s∂t = ⟨x'(s), z'(t)⟩ u, each step halved `refine` times."""
    if compiled:
        from . import series_large

        series_large.goursat(tile, ends, refine, out)
        return
    pieces = 2**refine
    for a, M in _increments(tile, ends):
        G = np.repeat(np.repeat(M, pieces, axis=0), pieces, axis=1) / pieces**2
        smooth, corner = 1 + G / 2 + G * G / 12, G * G / 12 - 1

        def step(at: tuple[Array, Array], down: Array, right: Array, both: Array, s: Any = (smooth, corner)) -> Array:
            return np.asarray((down + right) * s[0][at] + both * s[1][at])

        out[a] = _sweep(G.shape, 1.0, 1.0, step)[-1]


def alignments(tile: Array, ends: Array, lengths: Array, out: Array, *, compiled: bool, log: bool = False) -> None:
    """out = log Σ_π Π_(i, j)∈π κ(xᵢ, zⱼ) over all alignments π, for the values κ > 0, or for their logarithms if `log`.

    Compiled and without `log`, out is NaN where products may have underflowed: there, call it again with logarithms.
    """
    if compiled:
        from . import series_large

        (series_large.log_alignments if log else series_large.alignments)(tile, ends, lengths, out)
        return
    with np.errstate(divide="ignore"):
        logarithms = tile if log else np.log(tile)
    for a, L in _parts(logarithms, ends):

        def step(at: tuple[Array, Array], down: Array, right: Array, both: Array, L: Array = L) -> Array:
            return np.asarray(np.logaddexp(np.logaddexp(down, right), both) + L[at])

        out[a] = _at(_sweep(L.shape, -np.inf, 0.0, step), lengths)


def warping(tile: Array, ends: Array, lengths: Array, out: Array, *, compiled: bool) -> None:
    """out = the least cost Σ_(i, j)∈π tile(xᵢ, zⱼ) of all alignments π."""
    if compiled:
        from . import series_large

        series_large.warping(tile, ends, lengths, out)
        return
    for a, D in _parts(tile, ends):

        def step(at: tuple[Array, Array], down: Array, right: Array, both: Array, D: Array = D) -> Array:
            return np.asarray(np.minimum(np.minimum(down, right), both) + D[at])

        out[a] = _at(_sweep(D.shape, np.inf, 0.0, step), lengths)


# --- by NumPy --------------------------------------------------------------------------------------------------------


def _parts(tile: Array, ends: Array) -> list[tuple[int, Array]]:
    """The tile of each x with the group, shape (points of x, points of z, LANES)."""
    spans = itertools.pairwise(ends)
    return [(a, tile[start:stop].reshape(stop - start, -1, LANES)) for a, (start, stop) in enumerate(spans)]


def _increments(tile: Array, ends: Array) -> list[tuple[int, Array]]:
    """s(xᵢ₊₁, zⱼ₊₁) − s(xᵢ, zⱼ₊₁) − s(xᵢ₊₁, zⱼ) + s(xᵢ, zⱼ) of each x with the group."""
    return [(a, np.diff(np.diff(part, axis=0), axis=1)) for a, part in _parts(tile, ends)]


def _signature(M: Array, level: int) -> tuple[Array, Array]:
    """The levels one after the other; runs[r, s] are the terms that use the last step of x r times, that of z s times.

    exp(δ) = Σ δʳ/r! for a step δ, so a step that is used once more divides by the number of its uses.
    """
    total, size = 1.0 + M.sum(axis=(0, 1)), 1.0 + np.abs(M).sum(axis=(0, 1))
    runs = {(1, 1): M}
    for m in range(2, level + 1):
        longer = {(r + 1, s + 1): M * A / ((r + 1) * (s + 1)) for (r, s), A in runs.items()}
        for r in range(1, m):
            by_x = np.sum([runs[r, s] for s in range(1, m)], axis=0)
            by_z = np.sum([runs[s, r] for s in range(1, m)], axis=0)
            longer[r + 1, 1] = M * _before(by_x, 1) / (r + 1)
            longer[1, r + 1] = M * _before(by_z, 0) / (r + 1)
        longer[1, 1] = M * _before(_before(np.sum(list(runs.values()), axis=0), 0), 1)
        runs = longer
        total = total + np.sum([A.sum(axis=(0, 1)) for A in runs.values()], axis=0)
        size = size + np.sum([np.abs(A).sum(axis=(0, 1)) for A in runs.values()], axis=0)
    return total, size


def _before(A: Array, axis: int) -> Array:
    """The sum of all entries before each one along an axis."""
    return np.asarray(np.cumsum(A, axis=axis) - A)


def _sweep(shape: tuple[int, ...], border: float, corner: float, step: Callable[..., Array]) -> Array:
    """The last row of u, with u[i+1, j+1] = step((i, j), u[i, j+1], u[i+1, j], u[i, j]), along anti-diagonals.

    u is `border` at i = 0 and at j = 0, and `corner` at both.
    """
    n, m = shape[:2]
    u = np.full((n + 1, m + 1, *shape[2:]), border)
    u[0, 0] = corner
    for d in range(n + m - 1):
        i = np.arange(max(0, d - m + 1), min(n, d + 1))
        j = d - i
        u[i + 1, j + 1] = step((i, j), u[i, j + 1], u[i + 1, j], u[i, j])
    return np.asarray(u[-1])


def _at(row: Array, lengths: Array) -> Array:
    """The entry of each series at its own end."""
    return np.asarray(row[lengths, np.arange(LANES)])
