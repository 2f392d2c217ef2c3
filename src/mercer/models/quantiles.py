"""Conformal quantiles: which of the sorted held-out residuals a new one stays below often enough.

If rows are exchangeable, a new value is at most the ⌈(n + 1)·coverage⌉-th smallest of n others with a probability of
at least `coverage`: the + 1 is the new value itself. If rows have weights wᵢ, the new row gets the mean weight w̄, and
the quantile is the smallest value v with

    Σ {wᵢ : vᵢ ≤ v} ≥ coverage · (Σ wᵢ + w̄),

which is the same if all weights are equal (weighted exchangeability: Tibshirani, Barber, Candès and Ramdas, Conformal
prediction under covariate shift, 2019).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.validation import check_number

Matrix = NDArray[np.float64]
ROUNDING = 1e-9
"""Shares that differ by less than this differ by rounding only."""


def share(coverage: Any) -> float:
    """`coverage` as a number in (0, 1)."""
    return check_number(coverage, "coverage", above=0, below=1, such_as=0.9)


def rank(coverage: Any, n: int) -> int:
    """The rank of the upper end among n sorted values: ⌈coverage·(n + 1)⌉.

    >>> rank(0.9, 19)
    18
    """
    k = math.ceil(share(coverage) * (n + 1) - ROUNDING)
    if k > n:
        raise InvalidInput(
            f"`coverage` must be at most n/(n + 1) = {n / (n + 1):.3g} for {n} training rows",
            got=coverage,
            advice="Lower `coverage`, or fit on more rows: a finite interval cannot promise more.",
        )
    return k


def rows_needed(coverage: Any, sides: int = 1) -> int:
    """The number of values that a finite interval needs, with quantiles on one side or on both.

    >>> rows_needed(0.9), rows_needed(0.9, sides=2)
    (9, 19)
    """
    return math.ceil(sides / (1.0 - share(coverage)) - ROUNDING) - 1


def conformal(values: Any, coverage: Any, weights: Matrix | None = None, axis: int = 0) -> Matrix:
    """The smallest of n values that a new one exceeds with a probability of at most 1 − coverage.

    Parameters
    ----------
    values
        n values along `axis`.
    coverage : float
        In (0, n/(n + 1)].
    weights : array or None
        Weights of the n values, shape (n,), ≥ 0 and not all 0; None if all are equal.

    Examples
    --------
    >>> conformal(np.arange(1.0, 20.0), 0.9)                          # the 18th of 19, where np.quantile has 17.2
    array(18.)
    >>> conformal([1.0, 2.0, 3.0, 4.0], 0.5), conformal([1.0, 2.0, 3.0, 4.0], 0.5, np.array([1.0, 1.0, 1.0, 5.0]))
    (array(3.), array(4.))
    """
    values = np.moveaxis(np.asarray(values, dtype=np.float64), axis, 0)
    n = len(values)
    k = rank(coverage, n)
    if weights is None:
        return np.asarray(np.partition(values, k - 1, axis=0)[k - 1])
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum((weights / weights.mean())[order], axis=0)  # adds up to n
    first = (reached < share(coverage) * (n + 1) - ROUNDING).sum(axis=0)
    position = np.take_along_axis(order, np.minimum(first, n - 1)[None], axis=0)
    return np.asarray(np.take_along_axis(values, position, axis=0)[0])


def around(values: Any, coverage: Any, weights: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """Conformal quantiles of n values, shape (n, ...), on both sides: a new one is between them with this coverage.

    >>> around(np.arange(1.0, 20.0), 0.8)                              # of 19 the 2nd and the 18th
    (array(2.), array(18.))
    """
    one_side = 0.5 + 0.5 * share(coverage)
    below = conformal(-np.asarray(values), one_side, weights)
    return np.negative(below, out=below), conformal(values, one_side, weights)


def plus_ends(others: Matrix, spreads: Matrix, coverage: Any, weights: Matrix | None = None) -> Matrix:
    """The interval of jackknife+ and CV+: between quantiles of f₋ᵢ(z) − sᵢ and f₋ᵢ(z) + sᵢ over the n held-out rows i.

    Parameters
    ----------
    others : array
        f₋ᵢ(z), shape (m, n, t).
    spreads : array
        sᵢ ≥ 0, shape (n, t) or (m, n, t).
    coverage, weights
        As in `conformal`.

    Returns
    -------
    array
        Shape (m, t, 2). If the quantiles cross (at a low coverage), both ends are their middle.
    """
    lower = -conformal(spreads - others, coverage, weights, axis=1)
    upper = conformal(others + spreads, coverage, weights, axis=1)
    middle = 0.5 * (lower + upper)
    return np.stack([np.minimum(lower, middle), np.maximum(upper, middle)], axis=-1)
