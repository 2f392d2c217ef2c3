"""From decision values to probabilities: a sigmoid per function, and one distribution from all pairs of classes.

Platt's sigmoid 1/(1 + exp(a f + b)) is fitted to held-out values of f by maximum likelihood, with targets slightly
inside (0, 1) so that it exists for separable data (Lin, Lin and Weng 2007). By Laplace's rule of succession, if N rows
of a class are all classified correctly, the next one will be with probability (N + 1)/(N + 2). If a model has one value
per class, the softmax of a multiple of them is fitted in the same way (`Softmax`). For more than two classes the
pairwise probabilities rᵢⱼ = P(i | i or j) are coupled: p minimises Σᵢⱼ (rⱼᵢ pᵢ − rᵢⱼ pⱼ)² with Σp = 1 (Wu, Lin and Weng
2004).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from mercer import threads

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

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
        if not w.any():  # nothing is known about these two classes
            return cls(0.0, 0.0)
        scale = max(float(np.abs(f).max(initial=0.0)), 1e-300)
        z = np.column_stack([f / scale, np.ones(len(f))])
        plus, minus = float(w[signs > 0].sum()), float(w[signs < 0].sum())
        t = np.where(signs > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))

        def loss(theta: Matrix) -> float:
            # −log likelihood of p = 1/(1 + e^u) with u = zθ: log(1 + e^u) − (1 − t) u.
            u = z @ theta
            return float(w @ (np.logaddexp(0.0, u) - (1 - t) * u))

        def derivatives(theta: Matrix) -> tuple[Matrix, Matrix]:
            p = expit(-(z @ theta))
            return z.T @ (w * (t - p)), (z.T * (w * p * (1 - p))) @ z

        theta = _minimum(loss, derivatives, np.array([0.0, np.log((minus + 1) / (plus + 1))]), float(w.sum()))
        return cls(float(theta[0] / scale), float(theta[1]))


@dataclass(frozen=True, eq=False)
class Softmax:
    """P(c | v) ∝ exp(s v_c + b_c) for one value v_c per class, s ≥ 0.

    >>> import numpy as np
    >>> v = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> Softmax.fit(v, np.array([0, 0, 1, 2]))(v).max(axis=1).round(2)      # all are right, and none is certain
    array([0.95, 0.76, 0.76, 0.76])
    """

    scale: float
    offsets: Matrix

    def __call__(self, values: Matrix) -> Matrix:
        return np.asarray(softmax(self.logits(values), axis=1))

    def logits(self, values: Matrix) -> Matrix:
        """log P up to a constant: s v_c + b_c."""
        return np.asarray(self.scale * np.asarray(values, dtype=np.float64) + self.offsets)

    def loss(self, values: Matrix, codes: Index, weights: Matrix | None = None) -> float:
        """−log P of the class of each row, summed with these weights."""
        logs = log_softmax(self.logits(values), axis=1)
        losses = -logs[np.arange(len(codes)), codes]
        return float(losses.sum() if weights is None else weights @ losses)

    @classmethod
    def fit(cls, values: Matrix, codes: Index, weights: Matrix | None = None, *, shifted: bool | None = False) -> Self:
        """Maximum likelihood for values (n, k) of rows with these class numbers, by Newton's method with halved steps.

        Parameters
        ----------
        values, codes : array, Index
            Those of held-out rows: on the rows that it was fitted to, a model is right too often.
        weights : array or None
            How often each row counts; they do not include class weights.
        shifted : bool or None
            Whether b is fitted, for values that class weights have moved; otherwise it is 0, and the class of the
            largest value is the most probable one. None fits b if the likelihood supports it: if it is better by more
            than one unit of its logarithm for each of the k − 1 further parameters (Akaike's criterion).
        """
        if shifted is None:
            plain, moved = (cls.fit(values, codes, weights, shifted=each) for each in (False, True))
            gain = plain.loss(values, codes, weights) - moved.loss(values, codes, weights)
            return moved if gain > values.shape[1] - 1 else plain
        n, k = values.shape
        w = np.ones(n) if weights is None else weights
        # By Laplace's rule a row belongs to another class than the observed one with probability 1/(n + 2).
        wrong = 1 / (float(w.sum()) + 2)
        T = np.full((n, k), wrong / (k - 1))
        T[np.arange(n), codes] = 1 - wrong
        unit = max(float(np.abs(values).max(initial=0.0)), 1e-300)
        v = np.asarray(values, dtype=np.float64) / unit

        def offsets(theta: Matrix) -> Matrix:
            return theta[1:] if shifted else np.zeros(k)

        def loss(theta: Matrix) -> float:
            return -float(w @ (T * log_softmax(theta[0] * v + offsets(theta), axis=1)).sum(axis=1))

        def derivatives(theta: Matrix) -> tuple[Matrix, Matrix]:
            P = softmax(theta[0] * v + offsets(theta), axis=1)
            off, mean = w[:, None] * (P - T), (P * v).sum(axis=1)
            slope = np.concatenate([[(off * v).sum()], off.sum(axis=0)])
            curvature = np.empty((k + 1, k + 1))
            curvature[0, 0] = w @ ((P * v**2).sum(axis=1) - mean**2)
            curvature[0, 1:] = curvature[1:, 0] = w @ (P * (v - mean[:, None]))
            curvature[1:, 1:] = np.diag(w @ P) - (w[:, None] * P).T @ P
            free = len(theta)
            return slope[:free], curvature[:free, :free]

        shares = np.log(w @ T / w.sum()) if shifted else np.zeros(k)  # the optimum if the values carry no information
        start = np.append(0.0, shares) if shifted else np.zeros(1)
        theta = _minimum(loss, derivatives, start, float(w.sum()))
        if theta[0] <= 0:  # larger values go with less probable classes: they carry no information
            return cls(0.0, shares)
        return cls(float(theta[0] / unit), offsets(theta))


def _minimum(
    loss: Callable[[Matrix], float],
    derivatives: Callable[[Matrix], tuple[Matrix, Matrix]],
    theta: Matrix,
    total: float,
) -> Matrix:
    """The minimum of a convex loss of few parameters, by Newton's method with halved steps.

    `derivatives` returns slope and curvature; `total` is the sum of the weights, the unit of the tolerance. The
    curvature may be singular: adding one constant to the values of all classes changes nothing.
    """
    value = loss(theta)
    for _ in range(100):
        slope, curvature = derivatives(theta)
        if np.abs(slope).max() < 1e-9 * total:
            break
        direction = -np.linalg.solve(curvature + 1e-12 * total * np.eye(len(theta)), slope)
        if -float(slope @ direction) <= np.finfo(np.float64).eps * max(total, 1.0) * abs(value):
            break  # the step promises less than the rounding of this sum, which no line search can see
        step = 1.0
        while step > 1e-10:
            trial = loss(theta + step * direction)
            if trial <= value + 1e-4 * step * float(slope @ direction):
                break
            step /= 2
        else:
            break
        theta, value = theta + step * direction, trial
    return theta


def couple(pairs: Matrix, classes: int) -> Matrix:
    """Probabilities of the classes, shape (m, k), from P(b | a or b) of the pairs a < b, shape (m, k(k − 1)/2).

    >>> import numpy as np
    >>> p = np.array([0.2, 0.3, 0.5])
    >>> couple(np.array([[0.3 / 0.5, 0.5 / 0.7, 0.5 / 0.8]]), 3).round(6)
    array([[0.2, 0.3, 0.5]])
    """
    a, b = np.triu_indices(classes, 1)
    probabilities = np.empty((len(pairs), classes))
    for span in threads.spans(len(pairs), max(1, 2**20 // (classes + 1) ** 2)):
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
        probabilities[span] = p / p.sum(axis=1, keepdims=True)
    return probabilities
