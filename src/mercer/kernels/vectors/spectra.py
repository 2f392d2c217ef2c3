"""Spectral densities of stationary kernels: k(x − z) = ∫ k̂(ξ) exp(2πi ξᵀ(x − z)) dξ with k̂ ≥ 0 (Bochner).

With ω = 2πξ the density of σ∘ω, k̂ divided by k(0), is that of random Fourier features (`features.fourier`): normal for
a Gaussian, a multivariate t for a Matérn kernel, independent Cauchy variables for a Laplacian. Multiples and sums of
kernels have the multiples and sums of densities; so a kernel is a list of terms, each a positive multiple of a leaf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer.data.vectors import per_column
from mercer.features.base import SpectralDensity

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpectralTerm:
    """A positive multiple of a leaf whose spectral density is known.

    Attributes
    ----------
    scale : float
        The multiple, k(0) of the term.
    leaf : Kernel
        A kernel with the attributes `spectrum` and `sigma` (and `nu`, if its density is a Student's).
    sigma : array
        The widths of the d columns.

    Examples
    --------
    >>> import mercer as mc
    >>> [term] = (2.0 * mc.Gaussian(0.5)).spectral_terms(1)
    >>> term.scale, term.density([np.zeros(1)]).round(4)                    # 2·σ√2π
    (2.0, array([2.5066]))
    """

    scale: float
    leaf: Any
    sigma: Float

    def times(self, factor: float) -> SpectralTerm:
        return replace(self, scale=factor * self.scale)

    @property
    def _degrees(self) -> float:
        """The degrees of freedom of a column's frequency; infinite if it is normal."""
        if self.leaf.spectrum is SpectralDensity.NORMAL:
            return math.inf
        return 2.0 * float(self.leaf.nu) if self.leaf.spectrum is SpectralDensity.STUDENT else 1.0

    def density(self, frequencies: list[Float]) -> Float:
        """k̂ at frequencies in cycles per unit, one array per column; they are broadcast."""
        d, squares = len(frequencies), [(2 * np.pi * s * f) ** 2 for s, f in zip(self.sigma, frequencies)]
        size = self.scale * math.prod(2 * np.pi * s for s in self.sigma.tolist())
        if self.leaf.spectrum is SpectralDensity.CAUCHY:
            return np.asarray(size * math.prod((1 / (np.pi * (1 + v)) for v in squares), start=1.0))
        total = np.asarray(sum(squares, start=np.zeros(())))
        if self.leaf.spectrum is SpectralDensity.NORMAL:
            return np.asarray(size * (2 * np.pi) ** (-d / 2) * np.exp(-total / 2))
        nu = self._degrees
        peak = math.exp(math.lgamma((nu + d) / 2) - math.lgamma(nu / 2)) / (nu * np.pi) ** (d / 2)
        return np.asarray(size * peak * np.exp(-(nu + d) / 2 * np.log1p(total / nu)))

    def beyond(self, column: int, frequency: float) -> float:
        """The integral of k̂ over all frequencies whose part in a column is larger than this in absolute value."""
        v = 2 * np.pi * float(self.sigma[column]) * frequency
        degrees = self._degrees
        tail = special.ndtr(-v) if degrees == math.inf else special.stdtr(degrees, -v)
        return 2.0 * self.scale * float(tail)

    def values(self, distances: Float) -> Float:
        """k along a column at distances in units of its width: no value of k at such a distance is larger."""
        return np.asarray(self.scale * self.leaf.replace(sigma=1.0)([[0.0]], distances[:, None])[0])


def term_of(leaf: Any, d: int) -> tuple[SpectralTerm]:
    """The density of a leaf by its attributes `spectrum` and `sigma`."""
    return (SpectralTerm(1.0, leaf, per_column(leaf.sigma, d)),)
