"""The monomials of (⟨x, z⟩ + c)ᵖ: each once with a multinomial weight, or one feature per tuple of factors.

By the multinomial theorem (⟨x, z⟩)ᵏ = Σ_α k!/α! x^α z^α over the multisets α of k columns (lecture 000), or without
collecting equal terms, Σ_v Π x_vₛ z_vₛ over all tuples v of k columns (lecture 002).
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import memory
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, dense
from mercer.features.terms import Term, Variables, product, rational
from mercer.validation import check_choice, check_number, check_whole_number

INDICES = ("monomials", "tuples")


@dataclass(frozen=True)
class MonomialMap(FeatureMap):
    """√(p!/((p−k)! α!) cᵖ⁻ᵏ) · x^α over all monomials of degree k = p (c = 0) or k ≤ p (c > 0): map of (⟨x, z⟩ + c)ᵖ.

    With `index="tuples"` the features are √(C(p, k) cᵖ⁻ᵏ) Π x_vₛ over all tuples v of k columns: equal monomials are
    repeated instead of weighted.

    Parameters
    ----------
    d : int
        The number of columns.
    degree : int
        p ≥ 1.
    c : float
        The offset, ≥ 0.
    index : str
        "monomials" (C(d+p, p) features, or C(d+p−1, p) for c = 0) or "tuples" ((dᵖ⁺¹−1)/(d−1), or dᵖ for c = 0).

    References
    ----------
    Lecture 000 (both maps of (xᵀz)², inhomogeneous maps); lecture 002, equation (4), with weights cᵖ⁻ᵏ for any c.

    Examples
    --------
    >>> MonomialMap(2, degree=3).names
    ['x0³', '√3·x0²·x1', '√3·x0·x1²', 'x1³']
    >>> MonomialMap(2, degree=2, index="tuples").names
    ['x0²', 'x0·x1', 'x1·x0', 'x1²']
    >>> MonomialMap(784, degree=4, c=1.0).dimension
    15943435565
    """

    d: int
    degree: int
    c: float = 0.0
    index: str = "monomials"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", check_whole_number(self.d, "d", owner="MonomialMap"))
        object.__setattr__(self, "degree", check_whole_number(self.degree, "degree", owner="MonomialMap"))
        check_choice(self.index, "index", INDICES)
        object.__setattr__(self, "c", check_number(self.c, "c", least=0, owner="MonomialMap"))
        require_countable(self.d, self.degree, self.index)

    @property
    def _degrees(self) -> range:
        return range(0 if self.c > 0 else self.degree, self.degree + 1)

    @property
    def dimension(self) -> int:
        if not self.c:
            return size(self.d, self.degree, self.index)
        if self.index == "monomials":  # one more variable for the powers of c
            return size(self.d + 1, self.degree)
        return self.degree + 1 if self.d == 1 else (self.d ** (self.degree + 1) - 1) // (self.d - 1)

    @property
    def inputs(self) -> int:
        return self.d

    def _fill(self, X: Any, out: Array) -> None:
        p = self.degree
        weights = [math.sqrt(math.comb(p, k)) * math.sqrt(self.c) ** (p - k) if self.c else 1.0 for k in self._degrees]
        fill_graded(dense(X, self.d), self._degrees, weights, self.index, out)

    def _term(self, j: int, x: Variables) -> Term:
        k, j = degree_of(self.d, self._degrees, j, self.index)
        weight = math.comb(self.degree, k) * rational(self.c) ** (self.degree - k) if self.c else Fraction(1)
        return Term(square=weight) * monomial(self.d, k, j, self.index, x)


# -- counting: the order of the features is by degree, then lexicographic --------------------------------------------


def size(d: int, k: int, index: str = "monomials") -> int:
    """The number of monomials, or tuples, of degree k in d variables."""
    return math.comb(d + k - 1, k) if index == "monomials" else d**k


def require_countable(d: int, k: int, index: str = "monomials") -> None:
    """Refuse maps whose number of features is too long for Python to write down."""
    digits = k * math.log10(d)
    if index == "monomials":
        digits = (math.lgamma(d + k + 1) - math.lgamma(d + 1) - math.lgamma(k + 1)) / math.log(10)
    if digits > sys.int_info.default_max_str_digits:
        raise InvalidInput(
            f"The number of features must have at most {sys.int_info.default_max_str_digits:,} digits",
            got=f"about {digits:,.0f} digits for degree {k} in {d} variables",
            advice="Lower the degree, or work with the kernel, which needs no features.",
        )


def degree_of(d: int, degrees: range, j: int, index: str) -> tuple[int, int]:
    """The degree of feature j of a graded map, and its place among those of this degree."""
    for k in degrees:
        if j < size(d, k, index):
            return k, j
        j -= size(d, k, index)
    raise IndexError("feature index out of range")


def factors(d: int, k: int, j: int, index: str = "monomials") -> tuple[int, ...]:
    """The j-th non-decreasing sequence, or tuple, of k variables in lexicographic order.

    >>> [factors(2, 2, j) for j in range(3)]
    [(0, 0), (0, 1), (1, 1)]
    """
    if index == "tuples":
        return tuple(j // d ** (k - 1 - s) % d for s in range(k))
    variables: list[int] = []
    first = 0
    for remaining in range(k, 0, -1):
        # size(d − first) − size(d − i) sequences begin with a variable in [first, i)
        total = size(d - first, remaining)
        i = bisect_right(range(first, d), j, key=lambda v: total - size(d - v, remaining)) - 1 + first
        j -= total - size(d - i, remaining)
        variables.append(i)
        first = i
    return tuple(variables)


def monomial(d: int, k: int, j: int, index: str, x: Variables) -> Term:
    """The name of the j-th feature of ⟨x, z⟩ᵏ, with its weight."""
    chosen = factors(d, k, j, index)
    if index == "tuples":
        return product([x(i) for i in chosen])
    powers = [(i, len(list(run))) for i, run in groupby(chosen)]
    multinomial = math.factorial(k) // math.prod(math.factorial(n) for _, n in powers)
    return Term(square=Fraction(multinomial)) * product([x(i) ** n for i, n in powers])


# -- building: degree by degree, each from the one below --------------------------------------------------------------


def fill_graded(x: Array, degrees: range, weights: list[float], index: str, out: Array) -> None:
    """Write the features of Σₖ wₖ² ⟨x, z⟩ᵏ, k in `degrees`, into `out`.

    In lexicographic order the monomials of degree k that begin with xᵢ are xᵢ times a tail of those of degree k − 1,
    so that every degree takes d vectorised products.
    """
    d, top = x.shape[1], degrees[-1]
    sizes = {k: size(d, k, index) for k in range(top + 1)}
    starts = dict(zip(degrees, np.cumsum([0, *(sizes[k] for k in degrees)]).tolist()))
    factor = np.empty(out.shape[1], out.dtype)
    roots = _roots_of_multinomials(d, top) if index == "monomials" else None
    for k in range(top + 1):
        root = next(roots) if roots is not None else 1.0
        if k in starts:
            factor[starts[k] : starts[k] + sizes[k]] = np.multiply(root, weights[degrees.index(k)])
    rows = max(16, memory.CACHED // max(out.shape[1], 1))
    for begin in range(0, len(x), rows):
        part, target = x[begin : begin + rows].astype(out.dtype, copy=False), out[begin : begin + rows]
        below = np.ones((len(part), 1), out.dtype)
        for k in range(top + 1):
            inside = k in starts
            level = (
                target[:, starts[k] : starts[k] + sizes[k]] if inside else np.empty((len(part), sizes[k]), out.dtype)
            )
            _grow(part, k, below, level, index)
            below = level
        target *= factor


def _grow(x: Array, k: int, below: Array, out: Array, index: str) -> None:
    """Fill `out` with the products of degree k from those of degree k − 1."""
    d = x.shape[1]
    if k == 0:
        out[...] = 1.0
    elif k == 1:
        out[...] = x
    elif index == "tuples":
        outer(x, below, out)
    else:
        start = 0
        for i in range(d):
            tail = size(d - i, k - 1)
            np.multiply(x[:, i : i + 1], below[:, -tail:], out=out[:, start : start + tail])
            start += tail


def outer(left: Array, right: Array, out: Array) -> None:
    """out[:, (i, j)] = left[:, i] · right[:, j]."""
    table = out.reshape(len(out), left.shape[1], right.shape[1])  # a view: the rows of `out` are contiguous
    np.multiply(left[:, :, None], right[:, None, :], out=table)


def _roots_of_multinomials(d: int, top: int) -> Iterator[NDArray[np.float64]]:
    """√(k!/α!) of the monomials of degree k = 0, 1, …, top in lexicographic order.

    Prepending xᵢ multiplies k!/α! by k/αᵢ, where αᵢ is one more than before if the monomial began with xᵢ already.
    """
    value, lead = np.ones(1), np.zeros(1)
    for k in range(top + 1):
        if k == 1:
            value, lead = np.ones(d), np.ones(d)
        elif k > 1:
            values, leads = [], []
            for i in range(d):
                tail, rest = size(d - i, k - 1), size(d - i - 1, k - 1) if i + 1 < d else 0
                power = np.ones(tail)
                power[: tail - rest] += lead[len(lead) - tail : len(lead) - rest]
                values.append(value[-tail:] * (k / power))
                leads.append(power)
            value, lead = np.concatenate(values), np.concatenate(leads)
        yield np.sqrt(value)
