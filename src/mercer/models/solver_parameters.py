"""Parameters of solvers, checked in every fit: also where the solver that is taken does not read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InvalidInput
from mercer.gram.centers import RULES
from mercer.models.base import shown
from mercer.validation import generator


def check_solver_parameters(model: Any, solvers: tuple[str, ...]) -> None:
    """Check `solver`, `n_centers`, `centers`, `tol` and `random_state` of a model.

    >>> import mercer as mc
    >>> check_solver_parameters(mc.KernelPCA(n_centers=-1), ("auto", "eigen"))
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `n_centers` must be None or a whole number ≥ 1, got -1. Such as 100.
    """
    m, centers, tol = model.n_centers, model.centers, model.tol
    if not isinstance(model.solver, str) or model.solver not in solvers:
        raise InvalidInput(
            f"`solver` must be one of {', '.join(map(repr, solvers))}",
            got=shown(model.solver),
            advice="'auto' chooses well.",
        )
    if m is not None and (isinstance(m, (bool, np.bool_)) or not isinstance(m, (int, np.integer)) or m < 1):
        raise InvalidInput("`n_centers` must be None or a whole number ≥ 1", got=shown(m), advice="Such as 100.")
    if centers is None or (np.isscalar(centers) and not (isinstance(centers, str) and centers in RULES)):
        raise InvalidInput(
            f"`centers` must be one of {', '.join(map(repr, RULES))}, or the centres themselves",
            got=shown(centers),
            advice="'uniform' is the default.",
        )
    number = isinstance(tol, (int, float, np.number)) and not isinstance(tol, bool)
    if tol is not None and not (number and 0 < tol < 1):
        raise InvalidInput("`tol` must be a number in (0, 1)", got=shown(tol), advice="Leave it out for the default.")
    if not isinstance(model.random_state, np.random.RandomState):  # which would move on
        generator(model.random_state)


def asked_for(model: Any, n: int) -> str:
    """The solver that a model of n points asks for: who names centres wants them, unless that is all points.

    >>> import mercer as mc
    >>> asked_for(mc.KernelRidge(n_centers=100), 1000), asked_for(mc.KernelRidge(n_centers=100), 50)
    ('nystrom', 'auto')
    """
    named = not isinstance(model.centers, str) or (model.n_centers is not None and model.n_centers < n)
    return "nystrom" if model.solver == "auto" and named else str(model.solver)
