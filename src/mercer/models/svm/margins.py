"""What the margin of a support vector machine tells: its width, who holds it, and bounds on the leave-one-out error.

Leaving out a point that is no support vector changes nothing, so that the leave-one-out error is at most the share of
support vectors. Looking at each of them is sharper: with its coefficient α = |β| and slack ξ, a point is classified
correctly when left out unless 2αR² + ξ ≥ 1, R² being the range of the kernel (Joachims 2000). The span estimate counts
α S² ≥ y f(x), S the distance of φ(x) from the affine span of the other free support vectors; it is exact if leaving
out a point changes no other's role (Vapnik and Chapelle 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.problems.box import BoxProblem
from mercer.solvers import smo

if TYPE_CHECKING:
    from mercer.models.svm.parts import Fitted, Part

Matrix = NDArray[np.float64]

LARGEST = 5000
"""With more support vectors than this the span estimate is left out: it factorises their matrix."""


@dataclass(frozen=True)
class Margin:
    """The margin of one function between two classes.

    Attributes
    ----------
    between : the two sides, the negative one first.
    rows : the number of training points.
    margin : 1/‖f‖, the distance of f = ±1 from f = 0 in the space of the kernel.
    free, bounded : support vectors on the margin, and those whose coefficient is at its bound.
    errors : training points on the wrong side; None where the time limit left no time to look at them all.
    loo_support, loo_slack : upper bounds of the leave-one-out error by the count of support vectors and by 2αR² + ξ.
    loo_span : its estimate by the span; None beyond 5 000 support vectors.
    C : that these are of, where it was not given (`NuSVC`): another without a row would have another C.
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
        kept = "" if self.C is None else f" of SVC(C={self.C:.4g})"
        errors = "errors unknown" if self.errors is None else f"{self.errors} error" + "s" * (self.errors != 1)
        return (
            f"{self.between[0]} | {self.between[1]}: margin {self.margin:.4g}, {self.free} free and {self.bounded} "
            f"bounded support vectors of {self.rows} rows, {errors}; leave-one-out error{kept} at most "
            f"{min(self.loo_support, self.loo_slack):.1%}{span}"
        )


@dataclass(frozen=True)
class MarginReport:
    """One `Margin` per function of a classifier: one for two classes, else one per pair or per class.

    `status` says how the fit ended where it is not optimal: there margins are those of an iterate, and bound nothing.
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
class Side:
    """What is remembered of one fitted function: its support vectors, their coefficients, bounds and values.

    Attributes
    ----------
    between : the two sides, the negative one first.
    rows, errors : training points, and those on the wrong side, −1 where that is not known.
    intercept : b.
    support : positions of its support vectors among those of the model.
    beta, bound, values : their coefficients, the greatest |β|, and f there.
    range : R², the largest value of the kernel less the smallest.
    """

    between: tuple[str, str]
    rows: int
    errors: int
    intercept: float
    support: NDArray[np.int64]
    beta: Matrix
    bound: Matrix
    values: Matrix
    range: float

    @property
    def squared_norm(self) -> float:
        """‖f‖² = βᵀKβ = Σ βᵢ (f(xᵢ) − b)."""
        return max(float(self.beta @ (self.values - self.intercept)), 0.0)

    def margin(self, among: Callable[[NDArray[np.int64]], Matrix], C: float | None = None) -> Margin:
        """The report on this function; `among` gives the kernel matrix of some support vectors of the model."""
        if np.isnan(self.values).any():
            return replace(self, values=among(self.support) @ self.beta + self.intercept).margin(among, C)
        alpha, signs = np.abs(self.beta), np.sign(self.beta)
        at_bound = at_bounds(self.beta, self.bound)
        slack = np.maximum(0.0, 1.0 - signs * self.values)
        span: float | None = 0.0
        if len(alpha) > LARGEST:
            span = None
        elif len(alpha):
            spans = _spans(among(self.support), ~at_bound)
            span = float((alpha * spans >= signs * self.values).sum()) / self.rows
        return Margin(
            self.between,
            self.rows,
            float(1 / np.sqrt(self.squared_norm)) if self.squared_norm > 0 else np.inf,
            int((~at_bound).sum()),
            int(at_bound.sum()),
            self.errors if self.errors >= 0 else None,
            len(alpha) / self.rows,
            float((2 * alpha * self.range + slack >= 1).sum()) / self.rows,
            span,
            C,
        )


@dataclass(frozen=True, eq=False)
class Sides:
    """The `Side` of every part, end to end: `ends` says where each begins and ends."""

    between: tuple[tuple[str, str], ...]
    rows: NDArray[np.int64]
    errors: NDArray[np.int64]
    intercept: Matrix
    ends: NDArray[np.int64]
    support: NDArray[np.int64]
    beta: Matrix
    bound: Matrix
    values: Matrix
    range: float

    @classmethod
    def of(cls, parts: Sequence[Part], fitted: Sequence[Fitted], at: NDArray[np.int64], spread: float) -> Self:
        """From the parts and their functions; `at` are the positions of rows among the support vectors."""
        return cls(
            tuple(part.between for part in parts),
            np.array([len(part.signs) for part in parts]),
            np.array([f.errors for f in fitted]),
            np.array([f.intercept for f in fitted]),
            np.cumsum([0, *(len(f.summary.moved) for f in fitted)]),
            at.take(np.concatenate([part.rows().take(f.summary.moved) for part, f in zip(parts, fitted)])),
            np.concatenate([f.summary.beta / f.scale for f in fitted]),
            np.concatenate([f.summary.bound / f.scale for f in fitted]),
            np.concatenate([f.summary.product / f.scale + f.intercept for f in fitted]),
            spread,
        )

    def __len__(self) -> int:
        return len(self.between)

    @property
    def at_bound(self) -> NDArray[np.bool_]:
        return at_bounds(self.beta, self.bound)

    def __iter__(self) -> Iterator[Side]:
        for i, between in enumerate(self.between):
            own = slice(self.ends[i], self.ends[i + 1])
            yield Side(
                between, int(self.rows[i]), int(self.errors[i]), float(self.intercept[i]),
                self.support[own], self.beta[own], self.bound[own], self.values[own], self.range,
            )  # fmt: skip


def duality_gap(problem: BoxProblem, optimum: smo.Optimum, offsets: Any) -> float:
    """The primal at f = Σ βᵢ k(xᵢ, ·) + b less the dual at β: Σ (gᵢ + b)(βᵢ − t), the greatest over t in the box.

    Zero iff β and b are optimal; every term is ≥ 0. `offsets` is b, or one for each group. Infinite where the time
    limit left some of the gradient unknown.
    """
    if np.isnan(optimum.gradient).any():
        return np.inf
    beyond = optimum.gradient + (offsets[0] if problem.group is None else np.take(offsets, problem.group))
    return float(beyond @ (optimum.beta - np.where(beyond > 0, problem.lower, problem.upper)))


def at_bound(problem: BoxProblem, beta: Matrix) -> NDArray[np.bool_]:
    """Whether a point has a coefficient that is as large as it may be, shape (n,)."""
    inside = 1 - 1e-12
    far = (beta != 0) & ((beta <= inside * problem.lower) | (beta >= inside * problem.upper))
    return problem.per_point(far.astype(np.float64)) > 0


def at_bounds(beta: Matrix, bound: Matrix) -> NDArray[np.bool_]:
    """Which coefficients are as large as they may be."""
    return np.abs(beta) >= bound * (1 - 1e-12)


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
