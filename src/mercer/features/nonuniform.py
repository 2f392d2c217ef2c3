"""The Fourier transform between scattered points and a regular grid of frequencies, in one, two or three columns.

For points x, a grid of spacing h around a centre and whole numbers j with |jₖ| ≤ mₖ

    to_grid:    cⱼ = Σᵢ vᵢ exp(−2πi Σₖ jₖ hₖ (xᵢₖ − centreₖ)),
    from_grid:  f(x) = Σⱼ cⱼ exp(2πi Σₖ jₖ hₖ (xₖ − centreₖ)).

Values are real, so that c₋ⱼ is the conjugate of cⱼ: only frequencies whose last number is ≥ 0 are stored. Each value is
spread over the w nearest points of a finer regular grid by a Kaiser-Bessel window, the fast transform does the rest,
and the window's own transform, known in closed form, is divided out. On a grid of twice the size the error, relative to
Σ|vᵢ| or Σ|cⱼ|, is about exp(−2.2 w): w = 7 gives six digits, w = 15 gives fourteen.

References
----------
Fessler and Sutton, Nonuniform fast Fourier transforms using min-max interpolation, 2003; Barnett, Magland and
af Klinteberg, A parallel nonuniform fast Fourier transform library, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from mercer import threads
from mercer.errors import InvalidInput
from mercer.validation import check_number

Array = NDArray[Any]
Float = NDArray[np.float64]
Complex = NDArray[np.complex128]

FINER = 2
"""Points of the finer grid per frequency."""
DECAY = 2.2
"""The logarithm of the error falls by this much per point of the window."""
WIDEST = 16
"""Points of the widest window: more would not make the error smaller, because of rounding."""
ROUNDING = 1e-14
"""The smallest tolerance."""


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The frequencies jₖ hₖ with |jₖ| ≤ mₖ, for points around a centre.

    Attributes
    ----------
    centre : array
        Shape (d,).
    spacing : array
        h, shape (d,): functions on the grid have the period 1/hₖ along column k.
    largest : tuple of int
        m, a tuple of d whole numbers.

    Examples
    --------
    >>> grid = Frequencies(np.zeros(2), np.full(2, 0.1), (1, 2))
    >>> grid.shape, grid.number
    ((3, 3), 15)
    """

    centre: Float
    spacing: Float
    largest: tuple[int, ...]

    def __post_init__(self) -> None:
        d = len(self.largest)
        if not 1 <= d <= 3 or not len(self.centre) == len(self.spacing) == d or not (self.spacing > 0).all():
            raise InvalidInput(
                "A grid of frequencies needs one to three columns, each with a centre and a spacing > 0",
                got=f"{d} columns, centre {self.centre}, spacing {self.spacing}",
                advice="Let `Gram.fourier` choose the grid.",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of stored coefficients: all j but for the last column, whose j are ≥ 0."""
        return (*(2 * m + 1 for m in self.largest[:-1]), self.largest[-1] + 1)

    @property
    def number(self) -> int:
        """The number of frequencies, stored or not."""
        return math.prod(2 * m + 1 for m in self.largest)

    def doubled(self) -> Frequencies:
        """The grid of all sums of two frequencies."""
        return Frequencies(self.centre, self.spacing, tuple(2 * m for m in self.largest))

    def axes(self) -> list[Float]:
        """The frequencies of every column, in cycles per unit of the column, shaped to be broadcast."""
        d = len(self.largest)
        numbers = [np.arange(-m, m + 1.0) for m in self.largest[:-1]] + [np.arange(self.largest[-1] + 1.0)]
        return [h * np.expand_dims(j, tuple(k for k in range(d) if k != at))
                for at, (h, j) in enumerate(zip(self.spacing, numbers))]  # fmt: skip

    def nbytes(self, channels: int) -> int:
        """Bytes that a transform of this many columns of values takes beside them."""
        return 3 * 8 * channels * math.prod(self._fine())

    def _fine(self) -> tuple[int, ...]:
        """The points of the finer grid."""
        return tuple(fft.next_fast_len(FINER * (2 * m + 1) + WIDEST, real=True) for m in self.largest)

    # -- transforms ---------------------------------------------------------------------------------------------------

    def to_grid(self, X: Array, V: Float, tol: float = 1e-12) -> Complex:
        """cⱼ for values V of shape (n, c) at points X of shape (n, d): shape (c, *shape).

        The error is at most about tol · Σ|vᵢ|.

        >>> grid = Frequencies(np.zeros(1), np.array([0.25]), (1,))
        >>> grid.to_grid(np.array([[0.0], [1.0]]), np.ones((2, 1))).round(12)
        array([[2.+0.j, 1.-1.j]])
        """
        plan = _Plan(self._fine(), tol)
        grids = plan.spread(X, self, np.ascontiguousarray(V, dtype=np.float64))
        out = np.empty((V.shape[1], *self.shape), np.complex128)
        for c, grid in enumerate(grids):
            out[c] = fft.rfftn(grid, workers=threads.n_threads())[self.places(plan.sizes)]
        out *= plan.correction(self)
        return out

    def from_grid(self, X: Array, C: Complex, tol: float = 1e-12) -> Float:
        """f(x) for coefficients C of shape (c, *shape) at points X of shape (n, d): shape (n, c).

        The error is at most about tol · Σ|cⱼ|.

        >>> grid = Frequencies(np.zeros(1), np.array([0.25]), (1,))
        >>> grid.from_grid(np.array([[0.0], [1.0]]), np.array([[1.0, -0.5j]])).T.round(12)     # 1 + sin(πx/2)
        array([[1., 2.]])
        """
        plan = _Plan(self._fine(), tol)
        grids = []
        for c in C * plan.correction(self):
            half = np.zeros((*plan.sizes[:-1], plan.sizes[-1] // 2 + 1), np.complex128)
            half[self.places(plan.sizes)] = c
            grids.append(fft.irfftn(half, plan.sizes, norm="forward", workers=threads.n_threads()))
        return plan.interpolate(X, self, grids)

    def places(self, sizes: tuple[int, ...]) -> tuple[Array, ...]:
        """Where the frequencies are in the transform of a grid of this size."""
        numbers = [np.arange(-m, m + 1) % N for m, N in zip(self.largest[:-1], sizes)]
        return np.ix_(*numbers, np.arange(self.largest[-1] + 1))


@cache
def _window(tol: float) -> tuple[int, float, Float]:
    """The width w of the window, its parameter β, and the polynomials of its w pieces, highest power first.

    The Kaiser-Bessel window I₀(β√(1 − t²))/I₀(β) is an entire function of t: polynomials converge fast.
    """
    w = min(max(4, math.ceil(-math.log(tol) / DECAY) + 1), WIDEST)
    beta = math.pi * math.sqrt((w * (1 - 0.5 / FINER)) ** 2 - 0.8)
    terms = w + 4
    nodes = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)
    t = ((nodes[:, None] + 1) / 2 - 0.5 * w + np.arange(w)) / (0.5 * w)
    root = np.sqrt(np.maximum(1 - t * t, 0.0))
    values = special.i0e(beta * root) * np.exp(beta * (root - 1)) / special.i0e(beta)
    series = np.polynomial.chebyshev.chebfit(nodes, values, terms - 1)
    table = np.zeros_like(series)
    for column, coefficients in enumerate(series.T):
        powers = np.polynomial.chebyshev.cheb2poly(coefficients)  # without zeros at the end, which rounding decides
        table[: len(powers), column] = powers
    table = table[::-1]
    return w, beta, np.ascontiguousarray(table)


class _Plan:
    """The finer grid, the window for a tolerance, and the loops over points."""

    def __init__(self, sizes: tuple[int, ...], tol: float) -> None:
        tol = check_number(tol, "tol", above=0, below=1, such_as=1e-6)
        self.sizes = sizes
        self.w, self.beta, self.table = _window(max(tol, ROUNDING))
        self.padded = tuple(N + self.w for N in sizes)
        self.strides = np.array([math.prod(self.padded[k + 1 :]) for k in range(len(sizes))])

    def correction(self, grid: Frequencies) -> Float:
        """One over the transform of the window, at the stored frequencies."""
        total = np.ones(grid.shape)
        for k, (h, j) in enumerate(zip(grid.spacing, grid.axes())):
            s = np.sqrt(self.beta**2 - (np.pi * self.w / self.sizes[k] * (j / h)) ** 2)
            window = self.w * np.sinh(s) / s / special.i0(self.beta)
            total = total / window
        return total

    def spread(self, X: Array, grid: Frequencies, V: Float) -> list[Float]:
        """The values of every column of V, spread over the finer grid."""
        from mercer._loops import nonuniform as loops

        shared = grid.centre, grid.spacing, np.array(self.sizes), self.table, self.strides
        channels, reach = V.shape[1], int((self.w - 1) * self.strides.sum()) + 1
        total = np.zeros((channels, math.prod(self.padded)))
        parts: dict[int, tuple[int, Float]] = {}

        def work(order: Array, first: int, last: int, share: int) -> None:
            low, high = loops.stretch(X, order, first, last, *shared)
            parts[share] = low, np.zeros((channels, high - low + reach))
            loops.spread(X, order, first, last, *shared, V, *parts[share])

        self._over(X, grid, work)
        for share in sorted(parts):  # in a fixed order, so that sums do not depend on timing
            low, part = parts.pop(share)
            total[:, low : low + part.shape[1]] += part
        return [self._folded(t.reshape(self.padded)) for t in total]

    def interpolate(self, X: Array, grid: Frequencies, grids: list[Float]) -> Float:
        """The values at the points of functions that are given on the finer grid."""
        from mercer._loops import nonuniform as loops

        shared = grid.centre, grid.spacing, np.array(self.sizes), self.table, self.strides
        pad = [(self.w // 2, self.w - self.w // 2)] * len(self.sizes)
        padded = np.stack([np.pad(g, pad, mode="wrap").ravel() for g in grids])
        out = np.empty((len(X), len(grids)))

        def work(order: Array, first: int, last: int, share: int) -> None:
            loops.interpolate(X, order, first, last, *shared, padded, out)

        self._over(X, grid, work)
        return out

    def _over(self, X: Array, grid: Frequencies, work: Callable[[Array, int, int, int], None]) -> None:
        """Call `work(order, first, last, share)` for one stretch of the points, in the order of cells, per thread."""
        from mercer._loops import nonuniform as loops

        n = len(X)
        shares = max(1, min(threads.n_threads(), n // 1024))
        ends = np.linspace(0, n, shares + 1).astype(int).tolist()
        spans = list(enumerate(pairwise(ends)))
        cell, number = np.empty(n, np.int32), [0]

        def locate(first: int, last: int) -> None:
            number[0] = loops.cells(X, grid.centre, grid.spacing, np.array(self.sizes), first, last, cell)

        threads.run([partial(locate, *span) for _, span in spans])
        order = loops.in_order(cell, number[0])
        threads.run([partial(work, order, *span, share) for share, span in spans])

    def _folded(self, A: Float) -> Float:
        """A padded grid with its margins added to the other side, in place."""
        w, before = self.w, self.w // 2
        for axis, N in enumerate(self.sizes):
            moved = np.moveaxis(A, axis, 0)
            moved[N : N + before] += moved[:before]
            moved[before:w] += moved[before + N :]
        return A[tuple(slice(before, before + N) for N in self.sizes)]
