"""The one door to least squares: the coefficients, by the solver that `choice` names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.memory import budget as _budget
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import blocks, cholesky, eigen, fourier, nystrom
from mercer.solvers.base import UNSOLVED, Matrix, Solution
from mercer.solvers.checkpoint import Checkpoint, Journal
from mercer.solvers.choice import SOLVERS, Choice, Size, choose
from mercer.solvers.refinement import Iteration
from mercer.solvers.step import Progress, until

__all__ = ["SOLVERS", "chosen", "solve"]


def chosen(
    problem: LeastSquares, solver: str = "auto", budget: Any = None, tol: float | None = None, *, grids: bool = True
) -> Choice:
    """The solver that `solve` uses, and why; `grids` says whether it may be a grid of frequencies."""
    grid = partial(fourier.affordable, problem, tol) if grids else None
    return choose(Size.of(problem), solver, budget, grid)


def solve(
    problem: LeastSquares,
    solver: str = "auto",
    *,
    budget: Any = None,
    tol: float | None = None,
    random_state: int = 0,
    n_centers: Any = None,
    centers: Any = "uniform",
    max_time: float | None = None,
    max_passes: int | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | Journal | None = None,
    grids: bool = True,
) -> Solution:
    """The coefficients, by the given solver or the one that suits size, penalty and memory.

    Parameters
    ----------
    problem : LeastSquares
        The Gram matrix, the targets, one alpha each, weights and tail.
    solver : str
        "auto", "cholesky", "eigen", "cg", "nystrom", "blocks" or "fourier".
    budget : int, str or None
        Bytes, or a text such as "2 GB"; by default MERCER_MEMORY, else half of the available memory.
    tol : float or None
        Relative residual at which iterations stop, by default 1e-10, or 1e-3 if K does not fit into memory; "nystrom"
        and "fourier" have their own measures and defaults.
    random_state : int
        The seed of pivots and centres.
    n_centers, centers
        The number of centres for "nystrom", and how they are chosen.
    max_time : float or None
        Seconds after which iterations that compute the matrix anew stop, at the end of a product.
    max_passes : int or None
        The largest number of products with a matrix that is not stored: by default 100 for "cg" and 10 for "blocks".
    progress : Progress or None
        Called with a `Step` after every iteration of "cg", "nystrom", "blocks" and "fourier"; False stops it.
    checkpoint : Checkpoint or None
        Keeps the state of iterations that compute the whole matrix anew, of "nystrom" and of "blocks"; a later call
        with the same problem continues there, and ends with the same coefficients.
    grids : bool
        Whether "auto" may take "fourier", whose solution is not an expansion in the points.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.problems.least_squares import LeastSquares
    >>> X = np.arange(4.0)[:, None]
    >>> s = solve(LeastSquares(mc.gram.of(mc.Gaussian(1.0), X), X, np.array([0.1])))
    >>> s.status, s.residual < 1e-14
    ('exact, by a Cholesky factor (n = 4 is small)', True)
    """
    choice = chosen(problem, solver, budget, tol, grids=grids)
    progress = until(max_time if choice.streamed else None, progress)
    if choice.solver in ("nystrom", "blocks"):
        refine = choice.solver == "blocks"
        more: dict[str, Any] = {} if tol is None or refine else {"tol": tol}
        journal = Journal.of(checkpoint)
        solution = nystrom.solve(
            problem,
            n_centers=n_centers,
            centers=centers,
            random_state=random_state,
            budget=budget,
            progress=progress,
            checkpoint=journal,
            **more,
        )
        how = solution.status
        if refine and solution.stats["stopped"]:
            stats = solution.stats | {"converged": False}
            solution = replace(solution, status=f"stopped before the first block: {how}", stats=stats)
        elif refine:
            limit = blocks.PASSES if max_passes is None else max_passes
            solution = blocks.solve(
                problem,
                _on_all_points(problem, solution),
                solution.tail,
                tol=choice.tol if tol is None else tol,
                passes=limit,
                random_state=random_state,
                progress=progress,
                checkpoint=journal,
            )
            solution = replace(solution, status=f"{solution.status}, after {how}")
        if journal is not None and not solution.stats["stopped"]:
            journal.remove()
    elif choice.solver == "fourier":
        solution = fourier.solve(problem, tol=tol, budget=budget, progress=progress)
    elif choice.solver == "eigen":
        solution = eigen.solve(problem)
        solution.stats["converged"] = solution.residual <= UNSOLVED
    elif choice.solver == "cholesky":
        solution = cholesky.solve(problem)
    else:
        tol = choice.tol if tol is None else tol
        solution = Iteration(
            problem, choice, _budget(budget), tol, random_state, progress, checkpoint, max_passes
        ).solve()
    return replace(solution, status=f"{solution.status} ({choice.why})") if solver == "auto" else solution


def _on_all_points(problem: LeastSquares, solution: Solution) -> Matrix:
    """The coefficients of centres that are points of the problem as coefficients of all points, zero elsewhere."""
    x, points = problem.gram.x, solution.points
    coef = np.zeros((problem.n, solution.coef.shape[1]))
    if points is None or points is x:
        return solution.coef
    if points.index is None:
        raise InvalidInput(
            "`solver='blocks'` starts from centres that are rows",
            got="other centres",
            advice="Use centers='uniform' or 'pivoted'.",
        )
    at = points.index if x.index is None else np.searchsorted(x.index, points.index)
    coef[at] = solution.coef
    return coef
