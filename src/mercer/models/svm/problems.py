"""The dual of each support vector machine as a box problem, and a start in the box: the second step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.models.base import Matrix, shown
from mercer.models.svm.split import Part
from mercer.problems.box import BoxProblem
from mercer.solvers import smo


def soft_margin(K: Gram, part: Part, w: Matrix, C: float, start: Matrix | None = None) -> BoxProblem:
    """The margin between two sides at the price C wᵢ of slack: q = −y, βᵢ between 0 and yᵢCwᵢ, Σβ = 0.

    `w` are the weights of all rows; `start` are coefficients to begin with, if they are feasible.
    """
    rows, signs, _ = part
    most = C * (w if rows is None else w.take(rows)) * signs
    lower, upper = np.minimum(0.0, most), np.maximum(0.0, most)
    problem = BoxProblem(K, -signs, lower, upper, np.zeros(len(most)), rows)
    return problem if start is None else feasible(problem, start)


def nu_margin(K: Gram, part: Part, w: Matrix, nu: float) -> BoxProblem:
    """The margin that a share ν lies within: q = 0, βᵢ between 0 and yᵢwᵢ, and ½ν Σw as the sum of |β| of each side."""
    rows, signs, between = part
    w = w if rows is None else w.take(rows)
    half = nu * w.sum() / 2
    smaller = min(w[signs < 0].sum(), w[signs > 0].sum())
    if half > smaller * (1 + 1e-12):
        raise InvalidInput(
            f"`nu` must be at most twice the share of the smaller class: it is infeasible above "
            f"{2 * smaller / w.sum():.4g} for {between[0]} | {between[1]}",
            got=shown(nu),
            advice="Lower `nu`, or use SVC, which always has a solution.",
        )
    start = np.zeros(len(w))
    for side in (-1.0, 1.0):
        start[signs == side] = side * filled(w[signs == side], half)
    lower, upper = np.minimum(0.0, signs * w), np.maximum(0.0, signs * w)
    return BoxProblem(K, np.zeros(len(w)), lower, upper, start, rows, (signs > 0).astype(np.int64))


def tube(K: Gram, y: Matrix, C: Matrix, epsilon: float) -> BoxProblem:
    """Regression within ε: β⁺ in [0, C] with q = ε − y and β⁻ in [−C, 0] with q = −ε − y, Σβ = 0."""
    zeros = np.zeros(len(y))
    lower, upper = np.concatenate([zeros, -C]), np.concatenate([C, zeros])
    return BoxProblem(
        K, np.concatenate([epsilon - y, -epsilon - y]), lower, upper, np.zeros(2 * len(y)), _twice(len(y))
    )


def nu_tube(K: Gram, y: Matrix, C: Matrix, nu: float) -> BoxProblem:
    """Regression within the ε that leaves a share ν outside: the sums of β⁺ and of −β⁻ are ½ν ΣC."""
    zeros, half = np.zeros(len(y)), filled(C, nu * C.sum() / 2)
    lower, upper = np.concatenate([zeros, -C]), np.concatenate([C, zeros])
    group = np.repeat([0, 1], len(y))
    return BoxProblem(K, np.concatenate([-y, -y]), lower, upper, np.concatenate([half, -half]), _twice(len(y)), group)


def pinball(K: Gram, y: Matrix, C: Matrix, tau: float) -> BoxProblem:
    """The τ-quantile: q = −y, βᵢ in [−C(1 − τ), Cτ], Σβ = 0."""
    return BoxProblem(K, -y, -C * (1 - tau), C * tau, np.zeros(len(y)))


def one_class(K: Gram, w: Matrix, nu: float) -> BoxProblem:
    """The region that leaves a share ν outside: q = 0, βᵢ in [0, wᵢ], Σβ = ν Σw."""
    zeros = np.zeros(len(w))
    return BoxProblem(K, zeros, zeros, w, filled(w, nu * w.sum()))


def _twice(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The point of each variable, if every row has two."""
    return np.concatenate([np.arange(n), np.arange(n)])


def filled(C: Matrix, total: float) -> Matrix:
    """β with 0 ≤ β ≤ C and Σβ = total ≤ ΣC: the first entries are as large as allowed, the last are 0."""
    before = np.cumsum(C) - C
    return np.clip(total - before, 0.0, C)


def grown(problem: BoxProblem, optimum: smo.Optimum, growth: float) -> Matrix:
    """A start in a box that is `growth` times as large: β, or β times the growth.

    The nearer one to the best factor is taken: s = −qᵀβ/βᵀKβ minimises ½s² βᵀKβ + s qᵀβ. Sums other than 0 grow too.
    """
    linear = -float(problem.linear @ optimum.beta)
    quadratic = float(optimum.beta @ (optimum.gradient - problem.linear))
    scaled = problem.group is not None or linear > 0.5 * (1 + growth) * quadratic
    return growth * optimum.beta if scaled else optimum.beta


def feasible(problem: BoxProblem, start: Matrix) -> BoxProblem:
    """The problem with another start of the same sums, clipped to the box; unchanged if that is infeasible."""
    beta = np.clip(start, problem.lower, problem.upper)
    moved = np.array([float((beta - problem.start)[member].sum()) for member in problem.members()])
    return problem if (np.abs(moved) > 1e-9 * np.abs(beta).sum()).any() else replace(problem, start=beta)
