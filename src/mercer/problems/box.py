"""The dual of every support vector machine: a quadratic in a box, with a fixed sum of the variables.

    min ½ βᵀKβ + qᵀβ     over   lower ≤ β ≤ upper,   Σβ = s   (in each group, if there are two)

with signed coefficients β, so that f(x) = Σ βᵢ k(xᵢ, x) + b:

* classification, yᵢ = ±1:  q = −y, βᵢ between 0 and yᵢCᵢ, s = 0;
* regression within ε:  two variables per row, β⁺ in [0, C] with q = ε − y and β⁻ in [−C, 0] with q = −ε − y, s = 0;
* the τ-quantile:  q = −y, βᵢ in [−C(1 − τ), Cτ], s = 0;
* one class:  q = 0, βᵢ in [0, 1], s = νn;
* the ν forms fix the sum of each sign as well: two groups.

With the gradient g = Kβ + q, β is optimal iff no pair of a group can move: max g over the variables that may shrink
≤ min g over the variables that may grow. The violation of this inequality is the gap; at 0, −b is between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Gram

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """min ½ βᵀKβ + qᵀβ in a box.

    Attributes
    ----------
    gram : Gram
        K of the n points, symmetric.
    linear : array
        q, shape (N,).
    lower, upper : array
        The box, shape (N,).
    start : array
        A feasible β, with the required sums.
    rows : array or None
        The point that each variable belongs to, shape (N,), or None if variables and points are the same.
    group : array or None
        0 or 1 for each variable, or None if there is one sum.

    Examples
    --------
    >>> import mercer as mc
    >>> y = np.array([-1.0, 1.0])  # the hard margin between −1 and 1: f(x) = x
    >>> K = mc.gram.of(mc.Linear(), np.array([[-1.0], [1.0]]))
    >>> dual = BoxProblem(K, -y, np.array([-np.inf, 0.0]), np.array([0.0, np.inf]), np.zeros(2))
    >>> beta = np.array([-0.5, 0.5])
    >>> g = K @ beta + dual.linear
    >>> dual.bounds_met(beta, g)[0], dual.objective(beta, g), dual.offsets(beta, g)
    (0.0, -0.5, [-0.0])
    """

    gram: Gram
    linear: Matrix
    lower: Matrix
    upper: Matrix
    start: Matrix
    rows: NDArray[np.int64] | None = None
    group: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of variables N."""
        return len(self.linear)

    def points_of(self, variables: NDArray[np.int64]) -> NDArray[np.int64]:
        """The points that these variables belong to."""
        return variables if self.rows is None else np.asarray(self.rows[variables], dtype=np.int64)

    def per_point(self, beta: Matrix) -> Matrix:
        """Σ of the variables of each point: the coefficients of f."""
        if self.rows is None:
            return beta
        return np.bincount(self.rows, beta, minlength=self.gram.shape[0]).astype(np.float64, copy=False)

    def bounds_met(self, beta: Matrix, gradient: Matrix) -> tuple[float, float, float]:
        """(gap, least g that may grow, greatest g that may shrink), for the group with the largest gap.

        The gap is negative if optimality holds strictly, −∞ if nothing may grow or nothing may shrink. Variables
        with an unknown gradient (NaN) are left out.
        """
        worst = (-np.inf, np.nan, np.nan)
        for member in self._known(gradient):
            up, low = self.ends(beta, gradient, member)
            if not low - up <= worst[0]:
                worst = (low - up, up, low)
        return worst

    def objective(self, beta: Matrix, gradient: Matrix) -> float:
        """½ βᵀKβ + qᵀβ, from the gradient."""
        return float(0.5 * beta @ (gradient + self.linear))

    def offsets(self, beta: Matrix, gradient: Matrix) -> list[float]:
        """−g on the margin, for each group: the mean over free variables, else the middle of the allowed interval.

        Variables with an unknown gradient (NaN) are left out.
        """
        offsets = []
        for member in self._known(gradient):
            free = (beta > self.lower) & (beta < self.upper) & member
            if free.any():
                offsets.append(-float(gradient[free].mean()))
                continue
            ends = [end for end in self.ends(beta, gradient, member) if np.isfinite(end)]
            offsets.append(-float(np.mean(ends)) if ends else 0.0)
        return offsets

    def members(self) -> list[Any]:
        """Which variables belong to each group, as masks; True for all of them."""
        return [True] if self.group is None else [self.group == 0, self.group == 1]

    def _known(self, gradient: Matrix) -> list[Any]:
        """The members of each group whose gradient is known, as masks; True for all variables."""
        unknown = np.isnan(gradient)
        return [member & ~unknown for member in self.members()] if unknown.any() else self.members()

    def ends(self, beta: Matrix, gradient: Matrix, member: Any) -> tuple[float, float]:
        """The least g that may grow and the greatest g that may shrink, in a group."""
        up = gradient.min(initial=np.inf, where=(beta < self.upper) & member)
        low = gradient.max(initial=-np.inf, where=(beta > self.lower) & member)
        return float(up), float(low)
