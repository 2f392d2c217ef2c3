"""The perceptron's mistake bound (lecture 002): a function that separates the classes limits the number of mistakes."""

from __future__ import annotations

import numpy as np

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.space import hilbert, streamed
from mercer.solvers.perceptron import Index, functions_of, product


def mistake_bound(u: Expansion, points: Points, codes: Index, classes: int, rows: Index) -> float:
    """‖u‖²·max k(x, x)/(min y·u(x))² over these examples: no perceptron makes more mistakes on them (lecture 002).

    With several classes u consists of one function for each, y·u(x) is the margin of the right class over all others,
    ‖u‖² the sum of their squares, and the bound twice as large, since an update changes two functions.
    """
    functions = functions_of(classes)
    if not isinstance(u, Expansion):
        raise InvalidInput(
            "`u` must be an Expansion", got=type(u).__name__, advice="Pass for instance the function_ of a model."
        )
    if u.tail is not None:
        raise InvalidInput(
            "`u` must lie in the Hilbert space of the kernel",
            got="a function with a tail (an intercept)",
            advice="Leave out the tail, or add a constant to the kernel: k + mc.Constant(1.0).",
        )
    coef = u.coef.reshape(len(u), -1).astype(np.float64)
    if coef.shape[1] != functions:
        raise InvalidInput(
            f"`u` must be {functions} function{'s' * (functions > 1)} for {classes} classes",
            got=f"coefficients of shape {u.coef.shape}",
            advice="Pass one column per class; for two classes a single function, positive on the second.",
        )
    kernel = hilbert(u.kernel)
    values = product(streamed(kernel, points, dtype=np.float64), u.points, coef)
    if functions == 1:
        margins = np.where(codes == 1, values[:, 0], -values[:, 0])
    else:
        right = values[np.arange(len(codes)), codes]
        values[np.arange(len(codes)), codes] = -np.inf
        margins = right - values.max(axis=1)
    worst = int(margins.argmin())
    if not margins[worst] > 0:
        raise InvalidInput(
            "`u` must separate the classes, y·u(x) > 0 on every row",
            got=f"{margins[worst]:.3g} in row {rows[worst]}",
            advice="Pass another u, or use a kernel that separates the classes: the theorem is about separable data.",
        )
    squared = float(np.sum(np.square(u.norm())))
    largest = float(np.max(kernel.diagonal(points)))
    return (1 if functions == 1 else 2) * squared * largest / float(margins[worst]) ** 2
