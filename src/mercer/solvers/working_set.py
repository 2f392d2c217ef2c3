"""Working sets of the box problem: the variables to optimise next, and those to set aside for a while (shrinking)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.gram.values import Values
from mercer.problems.box import BoxProblem, Matrix

KEPT = 0.5
"""The share of a working set that is taken over from the last one."""

Index = NDArray[np.int64]


class Part:
    """The active variables, which have not been set aside, and their gradient.

    `index` holds their positions among all variables; `problem` has these variables only (its Gram has all points).
    """

    def __init__(
        self, problem: BoxProblem, index: Index, beta: Matrix, g: Matrix, values: Values, objective: float
    ) -> None:
        self.problem, self.index, self.beta, self.g, self.values = problem, index, beta, g, values
        self.began = beta.copy(), g.copy(), objective

    def objective(self) -> float:
        """The objective of all variables: its value at the start plus the change since, ½ Δᵀ(g + g₀)."""
        beta, g, objective = self.began
        return objective + 0.5 * float((self.beta - beta) @ (self.g + g))

    def points(self, variables: Index) -> Index:
        """The points of these variables."""
        return self.problem.points_of(variables)

    def add(self, columns: Index, delta: Matrix) -> None:
        """g += K[:, columns] Δ."""
        if self.problem.rows is None:
            self.values.add(self.g, columns, delta)
        else:
            product = np.zeros(self.values.n)
            self.values.add(product, self.points(columns), delta)
            self.g += product[self.problem.rows]

    def shrunk(self, recent: Index) -> tuple[Part, Index]:
        """The part without the variables at a bound that belong to no violating pair at present."""
        p = self.problem
        stay = np.zeros(p.size, dtype=bool)
        for member in p.members():
            up, low = p.ends(self.beta, self.g, member)
            grow, shrink = self.beta < p.upper, self.beta > p.lower
            stay |= member & ((grow & (self.g <= low)) | (shrink & (self.g >= up)))
        stay[recent] = True
        kept = np.flatnonzero(stay)
        position = np.cumsum(stay) - 1
        rows, values = None, self.values
        if p.rows is None:
            values = values.part(kept)
        else:
            points, rows = np.unique(p.rows[kept], return_inverse=True)
            values = values.part(points)
        group = None if p.group is None else p.group[kept]
        smaller = BoxProblem(p.gram, p.linear[kept], p.lower[kept], p.upper[kept], p.start[kept], rows, group)
        part = Part(smaller, self.index[kept], self.beta[kept], self.g[kept], values, self.objective())
        return part, position[recent]

    def working_set(self, recent: Index, size: int) -> Index:
        """The variables that violate optimality most, in both directions, and the variables that moved last."""
        p = self.problem
        kept = recent[-int(size * KEPT) :] if len(recent) else recent
        out = np.ones(p.size, dtype=bool)
        out[kept] = False
        chosen = [kept]
        members = p.members()
        share = max(1, (size - len(kept)) // (2 * len(members)))
        for member in members:
            mask = out & member
            for sign, may in ((1.0, self.beta < p.upper), (-1.0, self.beta > p.lower)):
                candidates = np.flatnonzero(mask & may)
                if len(candidates) > share:
                    candidates = candidates[np.argpartition(sign * self.g[candidates], share)[:share]]
                mask[candidates] = False
                chosen.append(candidates)
        return np.sort(np.concatenate(chosen))
