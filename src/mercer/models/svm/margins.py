"""The functions of classifiers and their margins: width, support vectors, and bounds on the leave-one-out error.

This is the last step: from box problems and their optima to functions (`Sides`), and to the report on them.

Leaving out a point that is not a support vector changes nothing, so that the leave-one-out error is at most the share
of support vectors. A sharper bound looks at each of them: with its coefficient α = |β| and slack ξ, a point that is
left out is still classified correctly unless 2αR² + ξ ≥ 1, where R² is the range of the kernel (Joachims 2000). The
span estimate counts the points with α S² ≥ y f(x), where S is the distance of φ(x) from the affine span of the other
free support vectors; it is exact if leaving out a point changes the role of no other (Vapnik and Chapelle 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.models.base import Matrix
from mercer.models.svm.split import Index, Part, columns_of
from mercer.problems.box import BoxProblem
from mercer.solvers import smo

SPAN_VECTORS = 5000
"""Support vectors: beyond it the span estimate, which factorises their kernel matrix, is left out."""


@dataclass(frozen=True)
class Margin:
    """The margin of one function between two classes.

    Attributes
    ----------
    between : tuple
        The two sides, the negative one first.
    rows : int
        The number of training points.
    margin : float
        1/‖f‖, the distance of f = ±1 from f = 0 in the space of the kernel.
    free, bounded : int
        The number of support vectors on the margin, and of those whose coefficient is at its bound.
    errors : int or None
        The number of training points on the wrong side; None if the time limit left no time to visit them all.
    loo_support, loo_slack : float
        Upper bounds of the leave-one-out error by the count of support vectors and by 2αR² + ξ.
    loo_span : float or None
        Its estimate by the span; None beyond 5 000 support vectors.
    C : float or None
        For `NuSVC`, the C to which the leave-one-out figures refer (a fit without a row would have another C).
    """

    between: tuple[str, str]
    rows: int
    margin: float
    free: int
    bounded: int
    errors: int | None
    loo_support: float
    loo_slack: float
    loo_span: float | None
    C: float | None = None

    def __str__(self) -> str:
        span = "" if self.loo_span is None else f", about {self.loo_span:.1%} by the span"
        machine = "" if self.C is None else f" of SVC(C={self.C:.4g})"
        errors = "errors unknown" if self.errors is None else f"{self.errors} error" + "s" * (self.errors != 1)
        return (
            f"{self.between[0]} | {self.between[1]}: margin {self.margin:.4g}, {self.free} free and {self.bounded} "
            f"bounded support vectors of {self.rows} rows, {errors}; leave-one-out error{machine} at most "
            f"{min(self.loo_support, self.loo_slack):.1%}{span}"
        )


@dataclass(frozen=True)
class MarginReport:
    """One `Margin` per function of a classifier: one for two classes, otherwise one per pair or per class.

    `status` says how the fit ended if it is not optimal: the margins are then those of an unfinished fit, and their
    bounds do not hold.
    """

    functions: tuple[Margin, ...]
    status: str = ""

    def __getitem__(self, position: int) -> Margin:
        return self.functions[position]

    def __len__(self) -> int:
        return len(self.functions)

    def __str__(self) -> str:
        before = [f"Not optimal, so that no bound holds: {self.status}."] if self.status else []
        return "\n".join([*before, *map(str, self.functions)])


@dataclass(frozen=True, eq=False)
class Sides:
    """All fitted functions between two sides, end to end: the support vectors of function i are `at(i)`.

    Attributes
    ----------
    between : tuple
        The two sides of each function, the negative one first.
    rows, errors : Index
        The numbers of training points of each function, and of those on the wrong side (−1 if unknown).
    intercept : array
        b of each function.
    ends : Index
        Where the support vectors of each function begin and end.
    support : Index
        Their positions: among the rows as `functions` returns them, among the support vectors in a model.
    beta, bound, values : array
        Their coefficients, the largest allowed |β|, and f at these points.
    range : float
        R², the largest value of the kernel less the smallest.
    """

    between: tuple[tuple[str, str], ...]
    rows: Index
    errors: Index
    intercept: Matrix
    ends: Index
    support: Index
    beta: Matrix
    bound: Matrix
    values: Matrix
    range: float

    def __len__(self) -> int:
        return len(self.between)

    @property
    def function(self) -> Index:
        """The number of the function to which each coefficient belongs."""
        return np.repeat(np.arange(len(self)), np.diff(self.ends))

    @property
    def at_bound(self) -> NDArray[np.bool_]:
        """Which coefficients are at their bounds."""
        return _largest(self.beta, self.bound)

    def at(self, i: int) -> slice:
        """The support vectors of function i."""
        return slice(int(self.ends[i]), int(self.ends[i + 1]))

    def coefficients(self, codes: Index, k: int, *, by_rows: bool) -> Matrix:
        """The coefficients of all rows, with these class numbers: (n, functions), or `by_rows` for pairs (n, k − 1)."""
        coef = np.zeros((len(codes), k - 1 if by_rows else len(self)))
        column = columns_of(self.function, codes[self.support], k) if by_rows else self.function
        coef[self.support, column] = self.beta
        return coef

    def margin(self, i: int, among: Callable[[Index], Matrix], C: float | None = None) -> Margin:
        """The report on function i; `among` gives the kernel matrix of some support vectors of the model."""
        at, rows, b = self.at(i), int(self.rows[i]), float(self.intercept[i])
        beta, values = self.beta[at], self.values[at]
        at_bound = _largest(beta, self.bound[at])
        alpha, signs = np.abs(beta), np.sign(beta)
        span: float | None = 0.0
        if np.isnan(values).any():
            values = among(self.support[at]) @ beta + b
        if len(alpha) > SPAN_VECTORS:
            span = None
        elif len(alpha):
            spans = _spans(among(self.support[at]), ~at_bound)
            span = float((alpha * spans >= signs * values).sum()) / rows
        squared_norm = float(beta @ (values - b))  # ‖f‖² = βᵀKβ
        slack = np.maximum(0.0, 1.0 - signs * values)
        return Margin(
            self.between[i],
            rows,
            float(1 / np.sqrt(squared_norm)) if squared_norm > 0 else np.inf,
            int((~at_bound).sum()),
            int(at_bound.sum()),
            int(self.errors[i]) if self.errors[i] >= 0 else None,
            len(alpha) / rows,
            float((2 * alpha * self.range + slack >= 1).sum()) / rows,
            span,
            C,
        )


def functions(
    parts: Sequence[Part], problems: Sequence[BoxProblem], optima: Sequence[smo.Optimum], spread: float = np.nan
) -> tuple[Sides, Matrix, Matrix]:
    """The functions of these optima, scaled to ±1 on the margin; the scales 1/ρ; and the duality gaps.

    If the sums of both sides are fixed, Kβ + b = ±ρ on the margin: the offsets −Kβ of the two groups are b ± ρ.
    Otherwise ρ = 1. `spread` is the range of the kernel.
    """
    moved, beta, bound, values = [], [], [], []
    intercept, scale, duality, errors = np.empty((4, len(parts)))
    for i, (part, p, o) in enumerate(zip(parts, problems, optima)):
        rows, signs, _ = part
        some = o.beta.nonzero()[0]
        coef, lower, upper, gradient = (a.take(some) for a in (o.beta, p.lower, p.upper, o.gradient))
        offsets = _offsets(p, o, gradient[(coef > lower) & (coef < upper)])
        duality[i] = duality_gap(p, o, offsets)
        product, b, rho = gradient - p.linear.take(some), offsets[0], 1.0
        if p.group is not None:
            b, half = (offsets[0] + offsets[1]) / 2, (offsets[0] - offsets[1]) / 2
            rho = half if half > 1e-12 * max(float(np.nanmax(np.abs(o.gradient - p.linear))), 1e-300) else 1.0
            coef, product, b = coef / rho, product / rho, b / rho
        values_here = product + b
        if p.group is None and o.gap < 1:  # rows with βᵢ = 0 are on their side: yᵢ f(xᵢ) ≥ 1 − gap
            errors[i] = np.count_nonzero(coef * values_here <= 0)
        else:
            right = signs * ((o.gradient - p.linear) / rho + b)
            errors[i] = np.count_nonzero(right <= 0) if not np.isnan(right).any() else -1
        intercept[i], scale[i] = b, 1 / rho
        moved.append(some if rows is None else rows.take(some))
        beta.append(coef)
        bound.append((upper - lower) / rho)
        values.append(values_here)
    sides = Sides(
        tuple(between for _, _, between in parts),
        np.array([len(signs) for _, signs, _ in parts]),
        errors.astype(np.int64),
        intercept,
        np.cumsum([0, *map(len, moved)]),
        np.concatenate(moved),
        np.concatenate(beta),
        np.concatenate(bound),
        np.concatenate(values),
        spread,
    )
    return sides, scale, duality


def _offsets(problem: BoxProblem, optimum: smo.Optimum, free: Matrix) -> list[float]:
    """`BoxProblem.offsets`, from the gradient of the free variables alone if there are any."""
    if problem.group is None and np.isfinite(optimum.gap) and len(free):
        return [-float(free.sum()) / len(free)]
    return problem.offsets(optimum.beta, optimum.gradient)


def duality_gap(problem: BoxProblem, optimum: smo.Optimum, offsets: Any) -> float:
    """The primal at f = Σ βᵢ k(xᵢ, ·) + b less the dual at β: the maximum of Σ (gᵢ + b)(βᵢ − tᵢ) over t in the box.

    It is zero iff β and b are optimal; every term is ≥ 0. `offsets` is b, or one for each group. It is infinite if the
    time limit left some of the gradient unknown.
    """
    if np.isnan(optimum.gradient).any():
        return np.inf
    beyond = optimum.gradient + (offsets[0] if problem.group is None else np.take(offsets, problem.group))
    return float(beyond @ (optimum.beta - np.where(beyond > 0, problem.lower, problem.upper)))


def at_bound(problem: BoxProblem, beta: Matrix) -> NDArray[np.bool_]:
    """Whether a point has a coefficient at its bound, shape (n,)."""
    inside = 1 - 1e-12
    far = (beta != 0) & ((beta <= inside * problem.lower) | (beta >= inside * problem.upper))
    return problem.per_point(far.astype(np.float64)) > 0


def _largest(beta: Matrix, bound: Matrix) -> NDArray[np.bool_]:
    return np.asarray(np.abs(beta) >= bound * (1 - 1e-12))


def _spans(K: Matrix, free: NDArray[np.bool_]) -> Matrix:
    """S² of every support vector: its squared distance from the affine span of the (other) free ones."""
    n = int(free.sum())
    diagonal = np.diagonal(K).copy()
    if n < 2:
        return diagonal
    ridge = 1e-10 * max(float(diagonal.mean()), 1e-300)
    border = np.zeros((n + 1, n + 1))
    border[:n, :n] = K[np.ix_(free, free)] + ridge * np.eye(n)
    border[n, :n] = border[:n, n] = 1.0
    inverse = np.linalg.pinv(border, hermitian=True) if n < 300 else np.linalg.inv(border)
    spans = np.empty(len(K))
    with np.errstate(divide="ignore"):
        spans[free] = np.maximum(1.0 / np.diagonal(inverse)[:n], 0.0)
    v = np.vstack([K[np.ix_(free, ~free)], np.ones((~free).sum())])
    spans[~free] = np.maximum(diagonal[~free] - (v * (inverse @ v)).sum(axis=0), 0.0)
    return spans
