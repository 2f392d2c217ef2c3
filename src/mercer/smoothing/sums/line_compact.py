"""Sums on a line that need no tolerance: compact weights by a tree of moments, the Laplacian by two recursions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mercer import threads

Float = NDArray[np.float64]


def compact_sums(
    kind: str, x: Float, V: Float, z: Float, sigma: float, scale: Float | None, degree: int, exclude: bool
) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, degree + 1, c) of a compact weight; with `exclude` z is x."""
    from mercer._loops import local_tree

    order = np.argsort(x, kind="stable")
    x = x[order]
    # A power of two near 1/σ scales without rounding, so that |u| ≤ 1 is decided exactly as in the weight itself.
    unit = 2.0 ** -round(math.log2(sigma))
    tree = local_tree.tree(kind, x, np.ascontiguousarray(V[order].T), unit, degree)
    sequence = order if exclude else np.argsort(z, kind="stable")
    z = z[sequence]
    left_out = np.arange(len(x)) if exclude else None
    places = np.searchsorted(x, z)
    ratios = np.ones(len(z)) if scale is None else 1.0 / np.square(scale[sequence])
    results = np.empty((len(z), degree + 1, V.shape[1]))

    def work(span: slice, share: int) -> None:
        hidden = None if left_out is None else left_out[span]
        local_tree.tree_sums(tree, z[span], places[span], 1.0 / sigma**2, ratios[span], hidden, results[span])

    threads.stripes(len(z), work, rows=2048)
    results *= ((1.0 / (sigma * unit)) ** np.arange(degree + 1))[:, None]
    totals = np.empty_like(results)
    totals[sequence] = results
    return np.where(totals.any(axis=(1, 2)), 0.0, -np.inf), totals


def laplacian_sums(x: Float, V: Float, z: Float, sigma: float, degree: int, exclude: bool) -> tuple[Float, Float]:
    """log_scale (m,) and totals (m, degree + 1, c) of exp(−|x − z|/σ); with `exclude` z is x."""
    from mercer._loops import local_line

    order = np.argsort(x, kind="stable")
    x = x[order]
    sequence = order if exclude else np.argsort(z, kind="stable")
    z = z[sequence]
    places = np.arange(len(x)) if exclude else np.searchsorted(x, z, side="right")
    shape = (len(z), degree + 1, V.shape[1])
    logs, results = np.empty(len(z)), np.zeros(shape)
    local_line.laplacian_sums(x, V[order], z, places, 1.0 / sigma, exclude, logs, results)
    log_scale, totals = np.empty(len(z)), np.empty(shape)
    log_scale[sequence], totals[sequence] = logs, results
    return log_scale, totals
