"""The unpenalised part of a fitted function: a constant on any objects, or a polynomial in the columns of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.memory import budget, within
from mercer.words import show_count

Matrix = NDArray[np.float64]
TUPLE = 120
"""Bytes of a tuple in a list, beside 8 for each of its entries."""


class Singular(InvalidInput, np.linalg.LinAlgError):
    """A linear system without a unique solution, in the three parts of every error."""


def factors(d: int, degree: int) -> list[tuple[int, ...]]:
    """The columns whose product is a monomial, for every monomial up to the degree: (), (0,), (1,), (0, 0), …

    >>> factors(2, 1)
    [(), (0,), (1,)]
    """
    _require_memory(d, degree, 8 * degree + TUPLE)
    return [c for total in range(degree + 1) for c in combinations_with_replacement(range(d), total)]


def count(d: int, degree: int) -> int:
    """The number of monomials of d columns up to the degree.

    >>> count(2, 2)
    6
    """
    return comb(d + degree, d) if degree >= 0 else 0


def monomials(X: Matrix, degree: int) -> Matrix:
    """Every monomial up to the degree of the columns of X, shape (…, d) → (…, p); no column for degree −1.

    >>> monomials(np.array([[2.0, 3.0]]), 2)
    array([[1., 2., 3., 4., 6., 9.]])
    """
    d = X.shape[-1]
    _require_memory(d, degree, 8 * prod(X.shape[:-1]))
    out = np.empty((*X.shape[:-1], count(d, degree)))
    out[..., :1] = 1.0
    # Monomials of one degree are the monomials of the degree before times a column not before their last one.
    begin, last = 0, np.zeros(1, dtype=np.int64)
    for _ in range(degree):
        parents = begin + np.repeat(np.arange(len(last)), d - last)
        begin += len(last)
        last = np.concatenate([np.arange(first, d) for first in last])
        for j, (parent, column) in enumerate(zip(parents, last), start=begin):
            np.multiply(out[..., parent], X[..., column], out=out[..., j])
    return out


def _require_memory(d: int, degree: int, each: int) -> None:
    """Refuse more monomials than fit the memory budget, before any of them is built."""
    number = count(d, degree)
    within(
        number * each,
        budget(),
        f"A polynomial of degree {degree} in {d} columns, which has {show_count(number)} monomials,",
        "Lower the degree, or select fewer columns.",
    )


@dataclass(frozen=True, eq=False)
class Monomials:
    """All monomials up to a degree, of columns moved by `shift` and divided by `scale`: 1, x₀, x₁, x₀², x₀x₁, …

    Degree 0 is the constant alone: it needs no columns, so that sets, strings and graphs have it too.
    """

    degree: int = 0
    shift: Matrix | None = None
    scale: Matrix | None = None

    @classmethod
    def around(cls, points: Points, degree: int) -> Self:
        """The monomials in coordinates in which the points fill [−1, 1]."""
        if degree == 0:
            return cls()
        X = points.dense()
        low, high = X.min(axis=0), X.max(axis=0)
        half = (high - low) / 2
        return cls(degree, (low + high) / 2, np.where(half > 0, half, 1.0))

    def exponents(self, d: int) -> list[tuple[int, ...]]:
        """The columns that are multiplied, for each monomial."""
        return factors(d, self.degree)

    def __call__(self, points: Points) -> Matrix:
        """The values of every monomial at every point, shape (n, p)."""
        if self.degree == 0:
            return np.ones((points.n, 1))
        return monomials(self._coordinates(points), self.degree)

    def require_unisolvent(self, points: Points) -> None:
        """Raise unless the points determine a polynomial of this degree: no other than 0 vanishes on all of them."""
        P = self(points)
        n, p = P.shape
        rank = _rank(P)
        if rank == p:
            return
        d = points.dense().shape[1]
        lower = next((m for m in range(self.degree - 1, -1, -1) if _rank(P[:, : comb(d + m, m)]) == comb(d + m, m)), -1)
        why = (
            f"only {n}"
            if n < p
            else f"{n} of rank {rank} (on a common " + ("line or plane)" if lower < 1 else "curve)")
        )
        raise Singular(
            f"A polynomial tail of degree {self.degree} needs points that determine its {p} monomials",
            got=why,
            advice=f"Use degree {lower}, with a radial function of order ≤ {lower + 1}, or add points.",
        )

    def gradient(self, points: Points) -> Matrix:
        """∂pⱼ(x)/∂x at every point, shape (n, p, d)."""
        d = points.dense().shape[1]
        exponents = self.exponents(d) if self.degree else [()]
        slopes = np.zeros((points.n, len(exponents), d))
        if self.degree == 0 or self.scale is None:
            return slopes
        X = self._coordinates(points)
        for j, e in enumerate(exponents):
            for position, column in enumerate(e):
                rest = [*e[:position], *e[position + 1 :]]
                slopes[:, j, column] += X[:, rest].prod(axis=1) / self.scale[column]
        return slopes

    def _coordinates(self, points: Points) -> Matrix:
        X = points.dense()
        if self.shift is None or self.scale is None:
            return X
        if X.shape[1] != len(self.shift):
            raise InvalidInput(
                f"Points must have {len(self.shift)} columns, as in the fit",
                got=f"{X.shape[1]} columns",
                advice="Pass the same columns as before.",
            )
        return (X - self.shift) / self.scale


@dataclass(frozen=True, eq=False)
class Tail:
    """Σ bⱼ pⱼ(x), the part of a function outside the kernel's space.

    Attributes
    ----------
    basis : Monomials
        The functions pⱼ.
    coef : array
        b, shape (p,), or (p, t) for t functions.
    """

    basis: Monomials
    coef: Array

    def __post_init__(self) -> None:
        d = 0 if self.basis.degree == 0 else None if self.basis.shift is None else len(self.basis.shift)
        if d is not None and len(self.coef) != count(d, self.basis.degree):
            raise InvalidInput(
                f"A polynomial of degree {self.basis.degree} in {d} columns must have "
                f"{show_count(count(d, self.basis.degree))} coefficients",
                got=str(len(self.coef)),
                advice="Pass one coefficient per monomial.",
            )

    @classmethod
    def constant(cls, value: Any) -> Self:
        """An intercept: one number, or one per function.

        >>> from mercer.data.points import Points
        >>> Tail.constant(2.0)(Points([{1}, {2, 3}]))
        array([2., 2.])
        """
        return cls(Monomials(), np.asarray(value, dtype=np.float64)[None])

    def __call__(self, points: Points) -> Matrix:
        return self.basis(points) @ self.coef

    def gradient(self, points: Points) -> Matrix:
        """∂/∂x, shape (n, d), or (n, t, d)."""
        slopes = self.basis.gradient(points)
        return np.einsum("npd,p->nd" if self.coef.ndim == 1 else "npd,pt->ntd", slopes, self.coef)

    def scaled(self, factor: float) -> Tail:
        return Tail(self.basis, self.coef * factor)

    def plus(self, other: Tail) -> Tail:
        """The sum of two tails: of the same functions, or one of them a constant (the first of every basis)."""
        basis = self.basis if self.basis.degree >= other.basis.degree else other.basis
        parts = [self, other]
        if not all(_same(part.basis, basis) or part.basis.degree == 0 for part in parts):
            raise InvalidInput(
                "Functions whose polynomial tails are added must share their coordinates",
                got=f"degrees {self.basis.degree} and {other.basis.degree} around different centres",
                advice="Fit both on the same points.",
            )
        coef = np.zeros_like(max((part.coef for part in parts), key=len))
        for part in parts:
            coef[: len(part.coef)] += part.coef
        return Tail(basis, coef)


def _same(a: Monomials, b: Monomials) -> bool:
    return a is b or (
        a.degree == b.degree
        and np.array_equal(np.asarray(a.shift), np.asarray(b.shift))
        and np.array_equal(np.asarray(a.scale), np.asarray(b.scale))
    )


def _rank(P: Matrix) -> int:
    """The numerical rank; monomials within [−1, 1] have columns of about the same size."""
    return int(np.linalg.matrix_rank(P, tol=1e-10 * np.sqrt(len(P)))) if P.size else 0
