"""Gaussian sums far from all data: only points almost as near as the nearest count, and a tree finds them.

Relative to the point x₀ nearest to the query z the exponent is −⟨x − x₀, (x − z) + (x₀ − z)⟩/2σ², which stays accurate
however far the query is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mercer import memory, threads

Float = NDArray[np.float64]
Int = NDArray[np.int64]

LARGEST = np.finfo(np.float64).max


def far_sums(
    x: Float, V: Float, z: Float, sigma: Float, scale: Float, exponents: Int, exponent: float, left_out: Int | None
) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, M, c) of exp(−‖u‖²/2s²), u = (x − z)/σ.

    x (n, d), V (n, c), z (m, d), sigma (d,), scale (m,) the factors s; weights below exp(−exponent) of the
    nearest point's are left out; left_out (m,) is the point that each query leaves out, or None.
    """
    m, M, c = len(z), len(exponents), V.shape[1]
    log_scale, totals = np.full(m, -np.inf), np.zeros((m, M, c))
    if left_out is not None and len(x) == 1:
        return log_scale, totals
    # The tree finds the near points; their weights are computed from the original coordinates.
    centre = x.mean(axis=0)
    tree, queries = cKDTree((x - centre) / sigma), (z - centre) / sigma
    k = 1 if left_out is None else 2
    distances, at = (a.reshape(m, k) for a in tree.query(queries, k=k, workers=threads.n_threads()))
    second = np.zeros(m, dtype=np.int64) if left_out is None else (at[:, 0] == left_out).astype(np.int64)
    nearest, distance = at[np.arange(m), second], distances[np.arange(m), second]
    with np.errstate(over="ignore"):
        log_scale[:] = np.maximum(-0.5 * np.square(distance / scale), np.finfo(np.float64).min)
    radius = np.hypot(distance, math.sqrt(2.0 * exponent) * scale) * (1 + 1e-12)
    counts = tree.query_ball_point(queries, radius, return_length=True, workers=threads.n_threads())
    cuts = np.searchsorted(np.cumsum(counts), np.arange(memory.HELD, counts.sum(), memory.HELD))
    for start, stop in zip([0, *cuts], [*cuts, m]):
        if start < stop:
            rows = slice(start, stop)
            near = tree.query_ball_point(queries[rows], radius[rows])
            hidden = None if left_out is None else left_out[rows]
            part = _relative(x, V, z[rows], sigma, scale[rows], exponents, nearest[rows], near, hidden)
            log_scale[rows] += part[0]
            totals[rows] = part[1]
    return log_scale, totals


def _relative(
    x: Float,
    V: Float,
    z: Float,
    sigma: Float,
    scale: Float,
    exponents: Int,
    nearest: Int,
    near: Any,
    left_out: Int | None,
) -> tuple[Float, Float]:
    """Logarithms of the largest weights relative to those of `nearest`, and the sums over the near points."""
    sizes = np.array([len(f) for f in near])
    points = np.concatenate([np.asarray(f, dtype=np.int64) for f in near])
    rows = np.repeat(np.arange(len(z)), sizes)
    width = sigma * scale[rows, None]
    v = x[points] - z[rows]
    exponent = -0.5 * np.einsum(
        "ij,ij->i", (x[points] - x[nearest[rows]]) / width, (v + (x[nearest] - z)[rows]) / width
    )
    if left_out is not None:
        exponent[points == left_out[rows]] = -np.inf
    # Distances were rounded: another point may be nearer.
    largest = np.maximum.reduceat(exponent, np.cumsum(sizes) - sizes)
    weights = np.exp(exponent - largest[rows])
    totals = np.zeros((len(z), len(exponents), V.shape[1]))
    for a, alpha in enumerate(exponents):
        product = weights * np.prod((v / sigma) ** alpha, axis=1)
        for col in range(V.shape[1]):
            totals[:, a, col] = np.bincount(rows, product * V[points, col], minlength=len(z))
    return largest, totals


# --- so far that squares overflow -------------------------------------------------------------------------------------


def remote_sums(
    x: Float, V: Float, z: Float, sigma: Float, scale: Float, exponents: Int, left_out: Int | None
) -> tuple[Float, Float]:
    """As `far_sums`, over all points and at any distance, even if its square overflows.

    The logarithm of the magnitude and the moments are cut off at the largest float.
    """
    m, M, c = len(z), len(exponents), V.shape[1]
    log_scale, totals = np.full(m, -np.inf), np.zeros((m, M, c))
    empty: NDArray[np.bool_] = np.abs(V).max(axis=1) == 0
    for j in range(m):
        hidden = empty.copy()
        if left_out is not None:
            hidden[left_out[j]] = True
        if hidden.all():
            continue
        log_scale[j], log_weights = remote_weights(x, z[j], sigma * scale[j], hidden)
        weights = np.exp(log_weights)
        counted = np.flatnonzero(weights)
        with np.errstate(over="ignore", invalid="ignore"):
            u = np.clip((x[counted] - z[j]) / sigma, -LARGEST, LARGEST)
            monomials = np.stack([np.prod(u**alpha, axis=1) for alpha in exponents])
            totals[j] = np.nan_to_num((weights[counted] * np.nan_to_num(monomials)) @ V[counted])
    return log_scale, totals


def remote_weights(x: Float, z: Float, sigma: Float, hidden: NDArray[np.bool_] | None = None) -> tuple[float, Float]:
    """The logarithm of the largest weight exp(−‖(x − z)/σ‖²/2), and the logarithms of all (n,) relative to it.

    x (n, d), z (d,), sigma (d,); `hidden` (n,) marks points that do not count, if any.
    """
    # In units of the largest difference, squares do not overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        v = 0.5 * x - 0.5 * z
        longest = max(float(np.abs(v).max()), 1e-300)
        u = (v / longest) / sigma
        largest = max(float(np.abs(u).max()), 1e-300)
        u /= largest
        unit = min(longest * largest, LARGEST)
        squares = np.square(u).sum(axis=1)
        if hidden is not None:
            squares[hidden] = np.inf
        first = int(np.argmin(squares))
        # relative to this one, in units of 2·unit: −⟨x − x₀, (x − z) + (x₀ − z)⟩/2σ²
        steps = np.clip((x - x[first]) / sigma, -LARGEST, LARGEST)
        relative = -np.einsum("ij,ij->i", steps, 0.5 * (u + u[first]))
        relative[np.isnan(relative)] = -np.inf
        if hidden is not None:
            relative[hidden] = -np.inf
        nearest = int(np.argmax(relative))
        log_weights = np.minimum((relative - relative[nearest]) * unit * 2.0, 0.0)
        size = 2.0 * unit * float(np.sqrt(np.square(u[nearest]).sum()))
    return (-0.5 * size * size if size < 1e154 else -LARGEST), log_weights
