"""Dynamic programmes over pairs of strings, as plain loops: interpreted for few cells, compiled for many.

Each takes the codes of both data sets, string after string (x_ends, z_ends), the numbers of the strings of every pair
(rows, columns) and fills out[p] for pair p. `run` decides by the number of cells of the whole matrix.
"""

# Numba infers the types of the loops; only what Python calls is annotated.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False
from __future__ import annotations

from functools import cache
from math import exp, inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import costs

Array = NDArray[Any]


def run(name: str, cells: float, *arguments: Any) -> None:
    """Call the loop of this name: interpreted for few cells, compiled for many."""
    function = globals()[name] if cells <= costs.INTERPRETED_CELLS else compiled(name)
    with np.errstate(over="ignore", invalid="ignore"):
        function(*arguments)


@cache
def compiled(name: str) -> Any:
    """The loop of this name, compiled; it releases the interpreter lock."""
    import numba

    return numba.njit(cache=True, nogil=True)(globals()[name])


def subsequences(x, x_ends, z, z_ends, rows, columns, p, decay, out, slopes):
    """Σ λ^(spans) / λ^2p over common subsequences of p symbols (Lodhi et al. 2002), and its derivative by λ.

    `inner[j, q]` is K'_q of the prefixes that end before symbol i of s and after symbol j of t; `run[q]` is K''_q. The
    derivatives are computed if `slopes` has entries.
    """
    derive = len(slopes) > 0
    run, run_slope, before, before_slope = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    for pair in range(len(rows)):
        low, high = x_ends[rows[pair]], x_ends[rows[pair] + 1]
        start, m = z_ends[columns[pair]], z_ends[columns[pair] + 1] - z_ends[columns[pair]]
        inner, inner_slope = np.zeros((m, p)), np.zeros((m if derive else 0, p))
        total, slope = 0.0, 0.0
        for i in range(low, high):
            run[:] = 0.0
            before[:] = 0.0
            before[0] = 1.0
            if derive:
                run_slope[:] = 0.0
                before_slope[:] = 0.0
            for j in range(m):
                same = x[i] == z[start + j]
                if same:
                    total += before[p - 1]
                    slope += before_slope[p - 1]
                for q in range(p - 1, 0, -1):
                    if derive:
                        run_slope[q] = run[q] + decay * run_slope[q] + (before_slope[q - 1] if same else 0.0)
                        before_slope[q] = inner_slope[j, q]
                        inner_slope[j, q] = inner[j, q] + decay * inner_slope[j, q] + run_slope[q]
                    run[q] = decay * run[q] + (before[q - 1] if same else 0.0)
                    before[q] = inner[j, q]
                    inner[j, q] = decay * inner[j, q] + run[q]
        out[pair] = total
        if derive:
            slopes[pair] = slope


def local_alignments(x, x_ends, z, z_ends, rows, columns, scores, opening, extension, out):
    """log Σ exp(score) over all local alignments (Saigo et al. 2004), from scores and penalties times β.

    Sums of exponentials first; if they overflow, the same recursion on logarithms.
    """
    factors, enter, stay = np.exp(scores), exp(-opening), exp(-extension)
    for pair in range(len(rows)):
        low, high = x_ends[rows[pair]], x_ends[rows[pair] + 1]
        start, m = z_ends[columns[pair]], z_ends[columns[pair] + 1] - z_ends[columns[pair]]
        match, skip_x, skip_z = np.zeros(m + 1), np.zeros(m + 1), np.zeros(m + 1)
        total = 1.0
        for i in range(low, high):
            before = 1.0
            for j in range(1, m + 1):
                until = 1.0 + match[j] + skip_x[j] + skip_z[j]
                skip_x[j] = enter * match[j] + stay * skip_x[j]
                skip_z[j] = enter * (match[j - 1] + skip_x[j - 1]) + stay * skip_z[j - 1]
                match[j] = factors[x[i], z[start + j - 1]] * before
                total += match[j]
                before = until
        if total < inf:
            out[pair] = log(total)
            continue
        match[:], skip_x[:], skip_z[:] = -inf, -inf, -inf
        total = 0.0
        for i in range(low, high):
            before = 0.0
            for j in range(1, m + 1):
                top = max(0.0, match[j], skip_x[j], skip_z[j])
                until = top + log(exp(-top) + exp(match[j] - top) + exp(skip_x[j] - top) + exp(skip_z[j] - top))
                top = max(match[j] - opening, skip_x[j] - extension)
                if top > -inf:
                    top += log(exp(match[j] - opening - top) + exp(skip_x[j] - extension - top))
                skip_x[j] = top
                a, b, c = match[j - 1] - opening, skip_x[j - 1] - opening, skip_z[j - 1] - extension
                top = max(a, b, c)
                if top > -inf:
                    top += log(exp(a - top) + exp(b - top) + exp(c - top))
                skip_z[j] = top
                match[j] = scores[x[i], z[start + j - 1]] + before
                top = max(total, match[j])
                total = top + log(exp(total - top) + exp(match[j] - top))
                before = until
        out[pair] = total


def best_alignments(x, x_ends, z, z_ends, rows, columns, scores, opening, extension, out):
    """The score of the best local alignment (Smith and Waterman 1981, with affine penalties by Gotoh 1982)."""
    for pair in range(len(rows)):
        low, high = x_ends[rows[pair]], x_ends[rows[pair] + 1]
        start, m = z_ends[columns[pair]], z_ends[columns[pair] + 1] - z_ends[columns[pair]]
        match, skip = np.zeros(m + 1), np.full(m + 1, -inf)
        best = 0.0
        for i in range(low, high):
            before, across = 0.0, -inf
            for j in range(1, m + 1):
                skip[j] = max(skip[j] - extension, match[j] - opening)
                across = max(across - extension, match[j - 1] - opening)
                value = max(0.0, before + scores[x[i], z[start + j - 1]], skip[j], across)
                before = match[j]
                match[j] = value
                best = max(best, value)
        out[pair] = best


def edits(x, x_ends, z, z_ends, rows, columns, out):
    """The smallest number of insertions, deletions and replacements (Levenshtein 1966)."""
    for pair in range(len(rows)):
        low, high = x_ends[rows[pair]], x_ends[rows[pair] + 1]
        start, m = z_ends[columns[pair]], z_ends[columns[pair] + 1] - z_ends[columns[pair]]
        distance = np.arange(m + 1)
        for i in range(low, high):
            before = distance[0]
            distance[0] = i - low + 1
            for j in range(1, m + 1):
                value = min(before + (x[i] != z[start + j - 1]), distance[j] + 1, distance[j - 1] + 1)
                before = distance[j]
                distance[j] = value
        out[pair] = distance[m]
