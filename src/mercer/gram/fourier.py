"""K through a regular grid of frequencies: k(x − z) = ∫ k̂(ξ) exp(2πi ξᵀ(x − z)) dξ by the trapezoidal rule.

With spacing h and whole numbers j, |jₖ| ≤ mₖ, and the features φⱼ(x) = Dⱼ exp(2πi Σ jₖhₖxₖ), Dⱼ² = Πhₖ k̂(jh), the
matrix ΦΦ* differs from K in two ways, and both have a bound for every pair of points in the box of the data:

* aliasing. By Poisson's formula the sum over all j is Σᵢ k(x − z + i/h), the kernel on a torus: too large by the kernel
  between a point and the images of another. The period 1/hₖ exceeds the length of the box by twice the reach a, so that
  images are at least a away even from a query that is a outside of the box, and Σ_q ((2q+1)ᵈ − (2q−1)ᵈ) k(a + (q−1)p)
  bounds their sum: the shell q has that many images, and none is nearer.
* truncation. The left-out terms are ≥ 0 and sum to at most Σₖ ∫_{|ξₖ| > mₖhₖ} k̂ dξ, up to a factor 1 + aliasing: the
  probability that a random Fourier feature of the kernel lies outside of the grid.

The number of frequencies does not depend on the number of points.

References
----------
Greengard, Rachh and Barnett, Equispaced Fourier representations for efficient Gaussian process regression from a
billion data points, 2022; Barnett, Greengard and Rachh, Uniform approximation of common Gaussian process kernels using
equispaced Fourier grids, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.features.nonuniform import Float, Frequencies
from mercer.kernels.base import Similarity
from mercer.kernels.vectors.spectra import SpectralTerm

MOST_COLUMNS = 3
"""Columns: the number of frequencies grows with their power."""
SAMPLE, CELLS, PER_CELL = 100_000, 64, 16
"""Points that estimate the density, the largest number of cells per column, and of points in a cell on average."""
SHELLS = 64
"""Shells of images that are added up; those beyond it are 0 for every kernel here."""
MOST = 2**40
"""Frequencies along a column beyond which none are counted: no memory holds them."""


@dataclass(frozen=True, eq=False)
class FourierGrid:
    """The frequencies that represent a kernel on the box of the data, and the error of doing so.

    Attributes
    ----------
    terms : tuple of SpectralTerm
        The spectral density.
    frequencies : Frequencies
        The grid.
    reach : array
        The distance from the data's box, per column, up to which the kernel is represented.
    error : float
        The bound of |k̃(x, z) − k(x, z)|, relative to k(x, x), for x in that box and z up to `reach` outside of it.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.linspace(0.0, 5.0, 100)[:, None]
    >>> grid = mc.gram.of(mc.Gaussian(1.0), X).fourier(1e-6)
    >>> grid.frequencies.number, grid.error < 1e-6
    (27, True)
    """

    terms: tuple[SpectralTerm, ...]
    frequencies: Frequencies
    reach: Float
    error: float

    @classmethod
    def of(cls, kernel: Similarity, points: Points, tol: float, kept: float = 0.0) -> FourierGrid | None:
        """The smallest grid for these points, see `Gram.fourier`; None if no density or too many columns are known."""
        try:
            X = points.vectors()
        except InvalidInput:
            return None
        if not isinstance(X, np.ndarray) or X.shape[1] > MOST_COLUMNS:
            return None
        terms = kernel.spectral_terms(X.shape[1])
        if not terms:
            return None
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        d, length, total = len(low), high - low, sum(term.scale for term in terms)
        reach = np.max([_reach(term, length / term.sigma, 0.5 * tol) * term.sigma for term in terms], axis=0)
        period = length + 2 * reach
        aliased = sum(_images(t, float((reach / t.sigma).min()), float((period / t.sigma).min()), d) for t in terms)
        # Along a column that hardly varies, the data fill at least the width of the narrowest term.
        volume = _volume(X, low, np.maximum(length, np.min([term.sigma for term in terms], axis=0)))

        def tail(k: int, m: int) -> float:
            return (1 + tol) * sum(term.beyond(k, m / float(period[k])) for term in terms)

        def enough(k: int, m: int) -> bool:
            at = [np.array(m / period[k] if column == k else 0.0) for column in range(d)]
            small = not kept or sum(float(term.density(at)) for term in terms) <= kept * volume
            return small and tail(k, m) <= 0.5 * tol * total / d

        largest = tuple(_smallest(lambda m, k=k: enough(k, m)) for k in range(d))  # type: ignore[misc]
        cut = sum(tail(k, m) for k, m in enumerate(largest))
        frequencies = Frequencies(low + length / 2, 1 / period, largest)
        return cls(terms, frequencies, reach, float((aliased + cut) / total))

    @property
    def roots(self) -> Float:
        """D at the stored frequencies."""
        axes = self.frequencies.axes()
        density = sum((term.density(axes) for term in self.terms), start=np.zeros(()))
        return np.sqrt(density * float(self.frequencies.spacing.prod()))

    def nbytes(self, targets: int) -> int:
        """Bytes that least squares for this many targets and unpenalised functions take on the grid."""
        coefficients = 16 * math.prod(self.frequencies.shape)
        iteration = coefficients * (8 * targets + 3 * 2 ** len(self.reach))
        return max(self.frequencies.doubled().nbytes(1 + targets), iteration)


def _volume(X: Array, low: Float, length: Float) -> float:
    """The volume that the points fill: one over their mean density, as the points themselves see it.

    The share of pairs of points that are in the same cell, divided by the volume of a cell, estimates this density
    without bias. It is large where points are crowded, even if most of the box is empty.
    """
    some = X[:: -(-len(X) // SAMPLE)]
    n, d = some.shape
    cells = int(min(CELLS, max(1.0, (n / PER_CELL) ** (1 / d))))
    places = np.minimum((some - low) / length * cells, cells - 1).astype(np.int64)
    counts = np.bincount(np.ravel_multi_index(tuple(places.T), (cells,) * d)).astype(np.float64)
    pairs = float((counts * (counts - 1)).sum())
    volume = float(length.prod())
    return min(volume, volume / cells**d * n * (n - 1) / pairs) if pairs else volume


def _images(term: SpectralTerm, reach: float, period: float, d: int) -> float:
    """The bound of a term's aliasing error; lengths in widths."""
    q = np.arange(1.0, SHELLS + 1)
    return float(((2 * q + 1) ** d - (2 * q - 1) ** d) @ term.values(reach + (q - 1) * period))


def _reach(term: SpectralTerm, length: Float, tol: float) -> float:
    """The reach in widths whose aliasing error is ≤ tol of the term, up to a hundredth of a width."""
    shortest, d = float(length.min()), len(length)

    def enough(steps: int) -> bool:
        reach = 0.01 * steps
        return _images(term, reach, shortest + 2 * reach, d) <= tol * term.scale

    return 0.01 * _smallest(enough)


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest whole number ≥ 1 for which a condition holds that holds for all larger ones, too."""
    high = 1
    while not enough(high) and high < MOST:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
