"""From decision values to probabilities: a sigmoid per function, and one distribution from all pairs of classes.

Platt's sigmoid 1/(1 + exp(a f + b)) is fitted to held-out values of f by maximum likelihood, with targets slightly
inside (0, 1) so that it exists for separable data (Lin, Lin and Weng 2007). For more than two classes the pairwise
probabilities rᵢⱼ = P(i | i or j) are coupled: p minimises Σᵢⱼ (rⱼᵢ pᵢ − rᵢⱼ pⱼ)² with Σp = 1 (Wu, Lin and Weng 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.gram import Gram
from mercer.kernels import tiling
from mercer.models.parts import Data, Fitted, Index, Part, by_rows, pair_values
from mercer.rkhs.expansion import Expansion

Matrix = NDArray[np.float64]

CERTAIN = 1e-7
"""Probabilities of pairs stay this far from 0 and 1, so that the coupled ones are unique."""


@dataclass(frozen=True)
class Sigmoid:
    """P(+1 | f) = 1/(1 + exp(a f + b)).

    >>> import numpy as np
    >>> f = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> Sigmoid.fit(f, np.array([-1.0, -1.0, 1.0, 1.0]))(f).round(2)
    array([0.21, 0.34, 0.66, 0.79])
    """

    a: float
    b: float

    def __call__(self, f: Matrix) -> Matrix:
        return np.asarray(expit(-(self.a * f + self.b)))

    @classmethod
    def fit(cls, f: Matrix, signs: Matrix, weights: Matrix | None = None) -> Self:
        """Maximum likelihood for values f of points with signs ±1, by Newton's method with halved steps."""
        w = np.ones(len(f)) if weights is None else weights
        scale = max(float(np.abs(f).max(initial=0.0)), 1e-300)
        z = np.column_stack([f / scale, np.ones(len(f))])
        plus, minus = float(w[signs > 0].sum()), float(w[signs < 0].sum())
        t = np.where(signs > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))

        def loss(theta: Matrix) -> float:
            # −log likelihood of p = 1/(1 + e^u) with u = zθ: log(1 + e^u) − (1 − t) u.
            u = z @ theta
            return float(w @ (np.logaddexp(0.0, u) - (1 - t) * u))

        theta = np.array([0.0, np.log((minus + 1) / (plus + 1))])
        value = loss(theta)
        for _ in range(100):
            p = expit(-(z @ theta))
            slope = z.T @ (w * (t - p))
            if np.abs(slope).max() < 1e-9 * w.sum():
                break
            curvature = (z.T * (w * p * (1 - p))) @ z + 1e-12 * w.sum() * np.eye(2)
            direction = -np.linalg.solve(curvature, slope)
            step = 1.0
            while step > 1e-10:
                trial = loss(theta + step * direction)
                if trial <= value + 1e-4 * step * float(slope @ direction):
                    break
                step /= 2
            else:
                break
            theta, value = theta + step * direction, trial
        return cls(float(theta[0] / scale), float(theta[1]))


def couple(pairs: Matrix, classes: int) -> Matrix:
    """Probabilities of the classes, shape (m, k), from P(b | a or b) of the pairs a < b, shape (m, k(k − 1)/2).

    >>> import numpy as np
    >>> p = np.array([0.2, 0.3, 0.5])
    >>> couple(np.array([[0.3 / 0.5, 0.5 / 0.7, 0.5 / 0.8]]), 3).round(6)
    array([[0.2, 0.3, 0.5]])
    """
    a, b = np.triu_indices(classes, 1)
    found = np.empty((len(pairs), classes))
    for span in tiling.spans(len(pairs), max(1, 2**20 // (classes + 1) ** 2)):
        r = np.clip(pairs[span], CERTAIN, 1 - CERTAIN)
        R = np.zeros((len(r), classes, classes))  # R[:, i, j] = P(i | i or j)
        R[:, b, a], R[:, a, b] = r, 1 - r
        # The minimum under Σp = 1: Qᵢᵢ = Σⱼ rⱼᵢ², Qᵢⱼ = −rⱼᵢ rᵢⱼ, bordered by ones.
        system = np.zeros((len(r), classes + 1, classes + 1))
        system[:, :classes, :classes] = -R * R.transpose(0, 2, 1)
        diagonal = np.arange(classes)
        system[:, diagonal, diagonal] = (R**2).sum(axis=1)
        system[:, classes, :classes] = system[:, :classes, classes] = 1
        right = np.zeros((len(r), classes + 1, 1))
        right[:, classes] = 1
        p = np.maximum(np.linalg.solve(system, right)[:, :classes, 0], 0.0)
        found[span] = p / p.sum(axis=1, keepdims=True)
    return found


def held_out(
    data: Data, folds: Index, parts: Sequence[Part], fitted: Sequence[Fitted], *, at_once: bool
) -> list[Matrix]:
    """The values of every part at its rows, each by the function that was fitted without the row's fold.

    `parts` and `fitted` are those of the folds, fold by fold for each part; `at_once` sums all pairs of classes
    together.
    """
    found = [np.empty(len(part.signs)) for part in data.parts]
    count, n, k, whole = len(parts) // len(data.parts), len(folds), int(data.codes.max()) + 1, data.gram
    for number in range(count):
        out = [part.rows()[folds[part.rows()] == number] for part in data.parts]
        own, functions = parts[number::count], fitted[number::count]
        if at_once:
            coef = by_rows(own, functions, n, k)
            used, at = np.flatnonzero(coef.any(axis=1)), np.flatnonzero(folds == number)
            used = used if len(used) else np.array([0])
            ends = np.searchsorted(data.codes[used], np.arange(k + 1))
            b = np.array([f.intercept for f in functions])
            every = pair_values(whole.kernel, whole.x.take(used), ends, coef[used], b, whole.x.take(at))
            values = [every[np.searchsorted(at, rows), p] for p, rows in enumerate(out)]
        else:
            values = [at_rows(whole, part.rows(), f, rows) for part, f, rows in zip(own, functions, out)]
        for part, all_of_it, some in zip(data.parts, found, values):
            all_of_it[folds[part.rows()] == number] = some
    return found


def at_rows(whole: Gram, rows: Index, f: Fitted, at: Index) -> Matrix:
    """A part's f at other rows of the Gram."""
    moved = f.summary.moved
    if not len(moved):
        return np.full(len(at), f.intercept)
    function = Expansion(whole.kernel, whole.x.take(rows[moved]), f.coef[moved])
    return function(whole.x.take(at)).astype(np.float64) + f.intercept
