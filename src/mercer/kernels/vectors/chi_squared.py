"""The harmonic mean of two histograms, and χ² = Σ (xₖ − zₖ)²/(xₖ + zₖ), its squared distance in feature space.

χ² = Σ xₖ + Σ zₖ − 2 Σ 2xₖzₖ/(xₖ + zₖ), so exp(−χ²/2σ²) is a kernel by Schoenberg's theorem.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import counts, tiles
from mercer.data.points import Array, Points
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof, Rule
from mercer.kernels.base import Tags
from mercer.kernels.block import Block
from mercer.kernels.vectors.histograms import Common, Histogram, Mean
from mercer.kernels.vectors.radial import require_inverse_square, require_square

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

FARTHEST = 1e4
"""χ²/2σ² beyond this gives the value 0 in any case."""


def _sparse_chi_squared(x: Any, z: Any) -> NDArray[np.float64]:
    apart, inverse = x - z, x + z
    with np.errstate(over="ignore"):  # the inverse of a subnormal number
        inverse.data = np.minimum(1.0 / inverse.data, np.finfo(np.float64).max)
    return np.asarray(apart.multiply(apart.multiply(inverse)).sum(axis=1)).ravel()


HARMONIC = Mean(counts.HARMONIC, tiles.harmonic_tile, tiles.chi_squared_tile, _sparse_chi_squared)
"""2uv/(u + v), with the distance χ²."""


class AdditiveChiSquared(Common):
    """Σₖ 2xₖzₖ/(xₖ + zₖ), the sum of harmonic means; a column that is 0 in both rows adds 0.

    References
    ----------
    Vedaldi and Zisserman 2012, Efficient additive kernels via explicit feature maps.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.AdditiveChiSquared()([[1.0, 2.0, 0.0], [3.0, 2.0, 1.0]])
    array([[3. , 3.5],
           [3.5, 6. ]])
    """

    about: ClassVar[About] = About(
        "Σₖ 2xₖzₖ/(xₖ + zₖ)", "Histograms in which rare bins matter as much as full ones.", "AdditiveChiSquared()"
    )

    mean: ClassVar[Mean] = HARMONIC

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = [(Fraction(u), Fraction(v)) for u, v in zip(x, z)]
        return exactly(sum((2 * u * v / (u + v) for u, v in pairs if u + v), Fraction(0)))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "2uv/(u + v) = 2∫ u e^(−tu) v e^(−tv) dt over t > 0, for u, v ≥ 0, summed over columns",
            reference="Vedaldi and Zisserman 2012",
        )


SCHOENBERG = Rule("exp(−‖phi(x) − phi(z)‖²/2σ²) of the distance in the feature space of a kernel", "Schoenberg 1938")


class ChiSquared(Histogram):
    """exp(−χ²/2σ²) with χ² = Σₖ (xₖ − zₖ)²/(xₖ + zₖ); a column that is 0 in both rows adds 0.

    Parameters
    ----------
    sigma : float
        The width; scikit-learn's `chi2_kernel` with gamma is σ = 1/√(2·gamma).

    References
    ----------
    Vedaldi and Zisserman 2012, Efficient additive kernels via explicit feature maps.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.ChiSquared(1.0)([[1.0, 2.0, 0.0], [3.0, 2.0, 1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    about: ClassVar[About] = About(
        "exp(−Σₖ (xₖ − zₖ)²/(xₖ + zₖ)/2σ²)", "Histograms of words and of visual features.", "ChiSquared(sigma=1.0)"
    )

    sigma: float = positive(1.0)
    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    def check(self) -> None:
        require_square(self.sigma)

    @property
    def exact_log(self) -> bool:
        return True

    def log_tile(self, block: Block, out: Array) -> None:
        require_inverse_square(self.sigma, out.dtype)
        HARMONIC.apart(block, out)
        with np.errstate(over="ignore"):  # −inf is the logarithm of 0
            out *= out.dtype.type(-0.5 / self.sigma**2)

    def tile(self, block: Block, out: Array) -> None:
        self.log_tile(block, out)
        tiles.exp_(out)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if not len(self.theta):
            return np.empty(0)
        tile = block.scratch()
        self.log_tile(block, tile)
        far = np.minimum(-tile.astype(np.float64), FARTHEST)
        return np.array([2.0 * np.vdot(G, far * np.exp(-far))])

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = [(Fraction(u), Fraction(v)) for u, v in zip(x, z)]
        apart = sum(((u - v) ** 2 / (u + v) for u, v in pairs if u + v), Fraction(0))
        return (-exactly(apart / (2 * Fraction(self.sigma) ** 2))).exp()

    def derivation(self) -> Proof:
        condition = f"σ = {self.sigma:g} > 0; χ² is the squared distance of the premise"
        return SCHOENBERG(self, AdditiveChiSquared().derivation(), condition=condition)
