"""Parameters of solvers, checked in every fit, even if the chosen solver does not read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.centers import RULES
from mercer.validation import check_choice, check_function, check_number, check_whole_number, generator


def check_solver_parameters(model: Any, solvers: tuple[str, ...]) -> None:
    """Check `solver`, `n_centers`, `centers`, `tol` and `random_state` of a model.

    >>> import mercer as mc
    >>> check_solver_parameters(mc.KernelPCA(n_centers=-1), ("auto", "eigen"))
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `n_centers` must be a whole number ≥ 1, or None, got -1. Pass a whole number such as \
100.
    """
    centers = model.centers
    check_choice(model.solver, "solver", solvers, advice="Pass 'auto' to have one chosen.")
    if model.n_centers is not None:
        check_whole_number(model.n_centers, "n_centers", alternative="None", such_as=100)
    if centers is None or np.isscalar(centers):
        advice = "Pass 'uniform', the default, or an array of points."
        check_choice(centers, "centers", RULES, alternative="the centres themselves", advice=advice)
    if model.tol is not None:
        check_number(model.tol, "tol", above=0, below=1, advice="Leave it out to use the default.")
    if not isinstance(model.random_state, np.random.RandomState):  # whose state a check would change
        generator(model.random_state)


def check_limits(model: Any) -> None:
    """Check `max_time`, `max_passes` and `progress` of a model.

    >>> import mercer as mc
    >>> check_limits(mc.KernelRidge(max_time=0))
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `max_time` must be a number > 0, or None for no limit, got 0. Pass a number such as 60.
    """
    if model.max_time is not None:
        check_number(model.max_time, "max_time", above=0, alternative="None for no limit", such_as=60)
    if model.max_passes is not None:
        check_whole_number(model.max_passes, "max_passes", alternative="None for the default", such_as=20)
    kind = "a function of a Step that returns whether to go on"
    check_function(model.progress, "progress", kind=kind, advice="Leave it out to have no reports.")


def requested_solver(model: Any, n: int) -> str:
    """The solver that the parameters of a model request for n points: to name fewer centres is to request Nyström.

    >>> import mercer as mc
    >>> requested_solver(mc.KernelRidge(n_centers=100), 1000), requested_solver(mc.KernelRidge(n_centers=100), 50)
    ('nystrom', 'auto')
    """
    named = not isinstance(model.centers, str) or (model.n_centers is not None and model.n_centers < n)
    return "nystrom" if model.solver == "auto" and named else str(model.solver)
