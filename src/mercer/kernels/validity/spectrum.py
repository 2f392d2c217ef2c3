"""Violations in Fourier space: boxes of lattice points for radial functions whose spectrum is somewhere negative.

A continuous radial function φ(‖x − z‖) is a kernel on d columns if and only if its Fourier transform, a Hankel
transform of φ, is ≥ 0 (Bochner, Schoenberg). Where it is negative, at ‖ω‖ = w, a wave a(x) = cos⟨ω, x⟩ under a window
gives aᵀKa < 0, on points dense enough. The points are a box of m points to each side of a cubic lattice, with a wave
that changes its sign from point to point along j axes and is constant along the others: a lattice with the spacing
s = π√j/w. The window is the ground state sin(πi/(m + 1)) of a box. aᵀKa then needs few values of φ, one for every
distance in the lattice: with c[i] the autocorrelation of one axis, Σ c[i₁]…c[i_d] φ(s‖i‖) is a sum over ‖i‖², whose
weights are d convolutions. In six dimensions 15 625 points cost 97 values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Row = Callable[[Matrix, Matrix], Matrix]

# The most points of a box, and the most values of φ for one spacing.
MOST_POINTS, MOST_DISTANCES = 20_000, 2_000
# How many of the most negative frequencies are tried, and the spacings tried for each, relative to its own.
FREQUENCIES, NEAR = 4, (1.0, 0.95, 1.05, 0.9, 1.1)
# Nodes of the quadrature; between them φ is interpolated on straight lines, off by about (π/NODES)²/8 of φ″.
NODES, INTERPOLATION = 256, 2e-4


@dataclass(frozen=True)
class Box:
    """m points along each side of a lattice, and the vector a, a product of `wave` and `flat` along the axes."""

    spacing: float
    d: int
    waves: int
    wave: NDArray[np.int64]
    flat: NDArray[np.int64]

    @property
    def points(self) -> Matrix:
        side = np.arange(len(self.wave))
        grid = np.array(list(itertools.product(side, repeat=self.d)), dtype=np.float64)
        return self.spacing * (grid - len(side) // 2)

    @property
    def vector(self) -> NDArray[np.int64]:
        a = np.ones(1, dtype=np.int64)
        for axis in range(self.d):
            a = np.multiply.outer(a, self.wave if axis < self.waves else self.flat).ravel()
        return a

    @property
    def size(self) -> int:
        """(Σ |a|)², the factor by which errors of the values are multiplied."""
        return int(np.abs(self.wave).sum()) ** (2 * self.waves) * int(self.flat.sum()) ** (2 * (self.d - self.waves))

    def weights(self) -> list[int]:
        """Σ a(x) a(z) over the pairs at each squared distance, in lattice units: exact whole numbers."""
        return _weights([self.wave.tolist()] * self.waves + [self.flat.tolist()] * (self.d - self.waves))


def boxes(row: Row, d: int, unit: float, *, radial: bool) -> Iterator[Box]:
    """Boxes with aᵀKa < 0 in floating point, the smallest first, if k(x, z) is a function of ‖x − z‖ in d dimensions.

    Parameters
    ----------
    row : Row
        The values at one vector and each of some others.
    unit : float
        The error of its values, relative to the largest.
    radial : bool
        Whether it is known to depend on ‖x − z‖ alone; otherwise that is tested.
    """
    most = max(m for m in range(1, 150) if m**d <= MOST_POINTS and d * (m - 1) ** 2 <= MOST_DISTANCES)
    if most < 2 or not (radial or _radial(row, d, unit)):
        return
    radii, profile = _profile(row, d)
    spacings = [(_short(s), waves) for s, waves in _spacings(d, radii, profile)]
    for m in (m for m in (*range(2, 10), 11, 13, 16, 20, 24) if m <= most):
        ranked = []
        tables = {
            waves: np.array(_box(1.0, d, waves, m, 1000).weights(), dtype=np.float64) for waves in range(1, d + 1)
        }
        for s, waves in spacings:
            weights = tables[waves]
            terms = weights * np.interp(s * np.sqrt(np.arange(len(weights))), radii, profile)
            share = float(terms.sum() / np.abs(terms).sum())
            if share < -INTERPOLATION:
                ranked.append((share, s, waves))
        for _, s, waves in sorted(ranked):
            yield from (_box(s, d, waves, m, largest) for largest in (3, 8, 20, 100))


def _box(s: float, d: int, waves: int, m: int, largest: int) -> Box:
    window = np.sin(np.pi * np.arange(1, m + 1) / (m + 1))
    flat = np.round(largest * window / window.max()).astype(np.int64)
    return Box(s, d, waves, flat * (-1) ** np.arange(m), flat)


def _weights(axes: list[list[int]]) -> list[int]:
    """Π over axes of Σ c[i] q^(i²), c being the autocorrelation of an axis: coefficients of q⁰, q¹, …"""
    product = [1]
    for u in axes:
        m = len(u)
        c = [sum(u[i] * u[i + lag] for i in range(m - lag)) * (1 if lag == 0 else 2) for lag in range(m)]
        longer = [0] * (len(product) + (m - 1) ** 2)
        for lag, weight in enumerate(c):
            if weight:
                for q, p in enumerate(product):
                    longer[q + lag * lag] += weight * p
        product = longer
    return product


@cache
def steps(square: int, d: int, largest: int) -> tuple[int, ...] | None:
    """Whole numbers 0 … largest in decreasing order whose squares add up to `square`, or None.

    >>> steps(6, 3, 2), steps(7, 3, 2)
    ((2, 1, 1), None)
    """
    if d == 1:
        root = math.isqrt(square)
        return (root,) if root * root == square and root <= largest else None
    for first in range(min(largest, math.isqrt(square)), -1, -1):
        if d * first * first < square:
            return None
        rest = steps(square - first * first, d - 1, first)
        if rest is not None:
            return (first, *rest)
    return None


def _short(s: float) -> float:
    """s to 8 significant bits, so that whole multiples of it, and their differences, are exact."""
    mantissa, exponent = math.frexp(s)
    return math.ldexp(round(mantissa * 256), exponent - 8)


# -- the shape of the function --------------------------------------------------------------------------------------


def _radial(row: Row, d: int, unit: float) -> bool:
    """Whether k(x, z) depends on ‖x − z‖ alone, at pairs with exact coordinates and at all scales."""
    rng = np.random.default_rng(1)
    lengths: tuple[tuple[int, ...], ...] = ((3, 4, 5), (1, 2, 2, 3), (1, 1, 1, 1, 2), (2, 4, 5, 6, 9))
    sides = [v for v in lengths if len(v) <= d + 1] or [(1, 1)]
    for scale in 4.0 ** np.arange(-4, 5):
        for v in sides:
            axis = np.zeros((1, d))
            axis[0, 0] = scale * v[-1]
            first = float(row(np.zeros(d), axis)[0])
            size = max(abs(first), abs(float(row(axis[0], axis)[0])))
            for _ in range(3):
                step = np.zeros((1, d))
                step[0, rng.permutation(d)[: len(v) - 1]] = scale * np.array(v[:-1]) * rng.choice([-1, 1], len(v) - 1)
                origin = scale * rng.integers(-8, 9, size=d)
                if not abs(float(row(origin, origin + step)[0]) - first) <= 16 * unit * size:
                    return False
    return True


def _profile(row: Row, d: int) -> tuple[Matrix, Matrix]:
    """Radii and the values of φ there, from 0 to where φ no longer changes."""

    def phi(radii: Matrix) -> Matrix:
        return row(np.zeros(d), np.multiply.outer(radii, np.eye(d)[0]))

    coarse = 2.0 ** (np.arange(-60, 61) / 4)
    values = phi(coarse)
    last = values[-1]
    moving = np.flatnonzero(np.abs(values - last) > 1e-8 * np.abs(values - last).max())
    end = coarse[min(len(coarse) - 1, moving[-1] + 1)] if len(moving) else 1.0
    nodes = (np.polynomial.legendre.leggauss(NODES)[0] + 1) * end / 2
    radii = np.r_[0.0, nodes, end]
    return radii, phi(radii)


def _spacings(d: int, radii: Matrix, profile: Matrix) -> Iterator[tuple[float, int]]:
    """Spacings and numbers of axes with a wave, from the frequencies where the transform is most negative."""
    w, transform = hankel(d, radii, profile)
    lower = np.r_[True, transform[1:] < transform[:-1]] & np.r_[transform[:-1] < transform[1:], True]
    dips = np.flatnonzero(lower & (transform < 0))
    for i in dips[np.argsort(transform[dips], kind="stable")][:FREQUENCIES]:
        for waves in range(d, 0, -1):
            yield from ((near * math.pi * math.sqrt(waves) / w[i], waves) for near in NEAR)


def hankel(d: int, radii: Matrix, profile: Matrix) -> tuple[Matrix, Matrix]:
    """Frequencies w and the d-dimensional Fourier transform of φ − φ(∞) there, up to a positive factor.

    ∫ (φ(r) − φ(∞)) r^(d−1) Γ(d/2) (2/wr)^ν J_ν(wr) dr with ν = d/2 − 1, by Gauss's rule.

    >>> nodes = (np.polynomial.legendre.leggauss(512)[0] + 1) * 5
    >>> r = np.r_[0.0, nodes, 10.0]
    >>> w, transform = hankel(3, r, np.exp(-(r**2) / 2))
    >>> bool(np.allclose(transform / transform[0], np.exp(-(w**2) / 2) / np.exp(-(w[0] ** 2) / 2), atol=1e-12))
    True
    """
    from scipy.special import gamma, jv

    end, nu = radii[-1], d / 2 - 1
    r, weights = radii[1:-1], np.polynomial.legendre.leggauss(len(radii) - 2)[1] * end / 2
    w = np.arange(1, len(r) // 2) / end
    x = np.multiply.outer(w, r)
    waves = gamma(d / 2) * (2 / x) ** nu * jv(nu, x)
    return w, waves @ (weights * r ** (d - 1) * (profile[1:-1] - profile[-1]))
