"""The hard margin: no slack at all, as the limit of soft margins whose C grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.gram import Gram
from mercer.models.base import Matrix
from mercer.models.svm.problems import soft_margin
from mercer.models.svm.solving import Solved, Solver, stores
from mercer.models.svm.split import Part
from mercer.models.svm.support import sampled
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End

STOPPED = "stopped before the hard margin was reached"
GO_ON = End.CONVERGED, End.ITERATIONS, End.STALLED
"""Ends of a stage after which the next one may begin."""
STAGE_PAIRS = 200_000
"""Pairs of variables moved in one stage of the hard margin, so that no stage runs on while coefficients grow with C."""
NARROW = 1e-5
"""A margin below this share of the points' spread counts as no margin."""


def hard_margin(
    solver: Solver, K: Gram, parts: Sequence[Part], starts: Sequence[Matrix] | None = None
) -> tuple[list[BoxProblem], list[smo.Optimum]]:
    """The problem and the optimum of each part, for a C that grows until no coefficient is at its bound.

    A larger C would then change nothing. Two classes are at most 2‖f‖/Σ|β| apart: that is the distance of their means
    with the weights |β|. If it vanishes, no margin separates them; the optimum is then that of the stage with the least
    slack, and its end is `NO_MARGIN`.
    """
    values, even = stores(K, parts, again=True), np.ones(K.shape[0])
    length, most_pairs = _spread(K), np.inf if solver.model.max_iter is None else solver.model.max_iter
    C, last = 10.0 / length**2, 1e10 / length**2
    begin: list[Matrix | None] = [None] * len(parts) if starts is None else list(starts)
    reached: dict[int, Solved] = {}
    least: dict[int, tuple[Matrix, Solved]] = {}  # the slack and the optimum of the stage with the smallest Σ slack
    pending = list(range(len(parts)))
    while pending:
        problems = [soft_margin(K, parts[i], even, C, begin[i]) for i in pending]
        spent = {i: reached[i][1].iterations if i in reached else 0 for i in pending}
        stage = max(STAGE_PAIRS, 100 * max(p.size for p in problems))
        pairs = int(min(max(0, most_pairs - max(spent.values())), stage))
        optima = solver.solve_all(problems, [values[i] for i in pending], pairs)
        again = []
        for i, problem, optimum in zip(pending, problems, optima):
            o = replace(optimum, iterations=optimum.iterations + spent[i])
            reached[i], begin[i] = (problem, o), o.beta
            product, inside = o.gradient - problem.linear, bool(np.abs(o.beta).max() < C)
            slack = np.maximum(0.0, 1.0 - parts[i][1] * (product + problem.offsets(o.beta, o.gradient)[0]))
            if i not in least or slack.sum() < least[i][0].sum():
                least[i] = slack, (problem, o)
            if solver.interrupt or (inside and o.converged):
                continue
            near = max(float(o.beta @ product), 0.0) ** 0.5 / max(float(np.abs(o.beta).sum()), 1e-300)
            if o.iterations >= most_pairs or o.end not in GO_ON:
                if o.converged:
                    reached[i] = problem, replace(o, converged=False, status=STOPPED, end=End.ITERATIONS)
            elif not inside and (near <= NARROW * length or last <= C):
                reached[i] = _not_separable(*least[i], near, parts[i][2] if len(parts) > 1 else None)
            elif last > C:
                again.append(i)
        pending, C = again, 10 * C
    return [reached[i][0] for i in range(len(parts))], [reached[i][1] for i in range(len(parts))]


def _spread(K: Gram) -> float:
    """The root mean square distance of points from their mean in the kernel's space; 1 if all are the same point."""
    values = sampled(K).fresh(np.float64)
    diagonal = np.diagonal(values)
    squared = max(float(diagonal.mean() - values.mean()), 1e-12 * float(np.abs(diagonal).mean()))
    return float(np.sqrt(squared)) if squared > 1e-290 else 1.0


def _not_separable(slack: Matrix, solved: Solved, near: float, between: tuple[str, str] | None) -> Solved:
    problem, optimum = solved
    sides = "" if between is None else f" ({between[0]} | {between[1]})"
    status = (
        f"not separable{sides}: the smallest violation found is Σ max(0, 1 − yᵢ f(xᵢ)) = {slack.sum():.4g}, at most "
        f"{slack.max():.3g} in a row, and no margin can be wider than {near:.1g}. Use a finite C"
    )
    return problem, replace(optimum, status=status, end=End.NO_MARGIN)
