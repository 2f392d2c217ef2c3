"""The unpenalised part of a fitted function: a constant on any objects, or a polynomial in the columns of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.points import Array, Points

Matrix = NDArray[np.float64]


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
        X = _dense(points)
        low, high = X.min(axis=0), X.max(axis=0)
        half = (high - low) / 2
        return cls(degree, (low + high) / 2, np.where(half > 0, half, 1.0))

    def exponents(self, d: int) -> list[tuple[int, ...]]:
        """The columns that are multiplied, for each monomial."""
        return [c for degree in range(self.degree + 1) for c in combinations_with_replacement(range(d), degree)]

    def __call__(self, points: Points) -> Matrix:
        """The values of every monomial at every point, shape (n, p)."""
        if self.degree == 0:
            return np.ones((points.n, 1))
        X = self._coordinates(points)
        return np.stack([X[:, list(e)].prod(axis=1) for e in self.exponents(X.shape[1])], axis=1)

    def gradient(self, points: Points) -> Matrix:
        """∂pⱼ(x)/∂x at every point, shape (n, p, d)."""
        d = _dense(points).shape[1]
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
        X = _dense(points)
        if self.shift is None or self.scale is None:
            return X
        if X.shape[1] != len(self.shift):
            raise InvalidInput(
                f"Points must have {len(self.shift)} columns, as those of the fit",
                got=f"{X.shape[1]} columns",
                advice="Pass the same columns.",
            )
        return (X - self.shift) / self.scale


@dataclass(frozen=True, eq=False)
class Tail:
    """Σ bⱼ pⱼ(x), the part of a function outside the kernel's space.

    Attributes
    ----------
    basis : the functions pⱼ.
    coef : b, shape (p,), or (p, t) for t functions.
    """

    basis: Monomials
    coef: Array

    @classmethod
    def constant(cls, value: Any) -> Self:
        """An intercept: one number, or one per function.

        >>> from mercer.kernels.points import Points
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
        """The sum of two tails: of the same functions, or one of them a constant (the first function of every basis)."""
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


def _dense(points: Points) -> Matrix:
    X = points.vectors()
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
