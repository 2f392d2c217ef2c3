"""Remarks on an optimum: parameters that do not matter, and parameters that stopped at a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.algebra.linear import Sum
from mercer.kernels.base import Kernel
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.loo import Matrix
from mercer.tuning.ranges import WIDTHS, mean_diagonal, slots
from mercer.words import brief

NEGLIGIBLE = 1e-3
"""Terms with a smaller share of the kernel's diagonal are suspected not to matter."""
NO_LOSS = 1.0
"""A parameter or term does not matter if the criterion loses less than this (in nats) without it."""


def remarks(
    kernel: Kernel, criterion: LeastSquaresCriterion, x: Matrix, low: Matrix, high: Matrix, held: NDArray[np.bool_]
) -> list[str]:
    """Remarks on an optimum: parameters that do not matter, and parameters that stopped at a bound.

    A wide column may still be needed (the function is nearly linear in it), and a small term may carry the fit: a
    remark says that something does not matter only after a fit without it has changed nothing.
    """
    points, notes = criterion.points, []
    here = criterion.alone(x)
    for i, slot in enumerate(slots(kernel, points)):
        if held[i]:
            continue
        value = float(np.exp(x[i]))
        if slot.unit in WIDTHS:
            size = slot.lengths
            what = "of `" + slot.name + "`" if slot.column is None else f"of column {slot.column}"
            if size.largest == 0:
                notes.append(f"The width {what} does not matter: the column is constant. It can be dropped."
                             if slot.column is not None
                             else f"The width {what} does not matter: all points are equal.")  # fmt: skip
            elif slot.column is not None and value > 10 * size.largest:
                without = x.copy()
                without[i] = np.log(1e6 * size.largest)
                if criterion.alone(without) < here + NO_LOSS:
                    notes.append(
                        f"The width {what} does not matter: it is {value / size.largest:.0f} × the range of the data. "
                        "The column can be dropped."
                    )
            elif x[i] >= high[i]:
                notes.append(f"The width {what} is at its upper bound, {value / size.largest:.0f} × the diameter of "
                             "the data: the function is nearly a polynomial of low degree.")  # fmt: skip
            elif x[i] <= low[i]:
                notes.append(f"The width {what} is at its lower bound, below the spacing of the data: points say "
                             "nothing about their neighbours.")  # fmt: skip
        elif x[i] <= low[i] or x[i] >= high[i]:
            side = "lower" if x[i] <= low[i] else "upper"
            notes.append(f"`{slot.name}` = {value:.3g} is at its {side} bound: the criterion is flat there, or best "
                         "beyond it.")  # fmt: skip
    notes += _weak_terms(kernel, criterion, here, x[-1])
    if not held[-1]:
        alpha = float(np.exp(x[-1]))
        if x[-1] <= low[-1]:
            notes.append(f"alpha = {alpha:.3g} is at its lower bound: the targets look free of noise, and the function "
                         "interpolates them.")  # fmt: skip
        elif x[-1] >= high[-1]:
            notes.append(f"alpha = {alpha:.3g} is at its upper bound: the inputs explain nothing of the targets.")
    return notes


def _weak_terms(kernel: Kernel, criterion: LeastSquaresCriterion, here: float, log_alpha: float) -> list[str]:
    """Terms of a sum without which the fit is as good."""
    if not isinstance(kernel, Sum):
        return []
    shares = np.array([mean_diagonal(part, criterion.points) for part in kernel.kernels])
    shares /= shares.sum()
    notes = []
    for i, (part, share) in enumerate(zip(kernel.kernels, shares)):
        if share < NEGLIGIBLE:
            rest = [other for j, other in enumerate(kernel.kernels) if j != i]
            others = rest[0] if len(rest) == 1 else Sum(tuple(rest))
            if replace(criterion, kernel=others).alone(np.append(others.theta, log_alpha)) < here + NO_LOSS:
                notes.append(f"The term {brief(part)} is {share:.1g} of the kernel: it can be dropped.")
    return notes
