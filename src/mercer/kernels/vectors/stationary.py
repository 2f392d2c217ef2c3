"""Kernels of the difference x − z that are not functions of its length: Laplacian, and periodic ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.features.base import SpectralDensity
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import Units, positive
from mercer.kernels.algebra.proof import COMPOSITION, PRODUCT, Axiom, Proof
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block
from mercer.kernels.vectors.radial import FARTHEST, ByWidth, Gaussian, uncentred

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval
    from mercer.kernels.vectors.densities import Density


class Laplacian(ByWidth, Kernel):
    """exp(−‖x − z‖₁/σ), with one σ or one per column.

    >>> import mercer as mc
    >>> mc.Laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    about: ClassVar[About] = About(
        "exp(−Σₖ |xₖ − zₖ|/σ)",
        "Functions with kinks; distances that no outlying column dominates.",
        "Laplacian(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    units: ClassVar[Units] = {"sigma": "taxicab"}
    tags: ClassVar[Tags] = Tags(stationary=True, normalised=True, nonnegative=True, universal=True)
    spectrum: ClassVar[SpectralDensity] = SpectralDensity.CAUCHY

    def log_tile(self, block: Block, out: Array) -> None:
        scaled, sigma = self._scaled(block)
        scaled.l1(out)
        with np.errstate(over="ignore"):
            out *= out.dtype.type(-1.0 / sigma)

    @property
    def exact_log(self) -> bool:
        return True

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def tile(self, block: Block, out: Array) -> None:
        self.log_tile(block, out)
        _loops.tiles.exp_(out)

    def _values(self, block: Block, G: Array) -> Array:
        tile = block.scratch()
        self.tile(block, tile)
        return G * tile.astype(np.float64)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if not len(self.theta):
            return np.empty(0)
        M = self._values(block, G)
        scaled, sigma = self._scaled(block)
        if np.ndim(self.sigma) == 0:
            far = np.minimum(scaled.l1().astype(np.float64) / sigma, FARTHEST)
            return np.array([np.vdot(M, far)])
        x, z = uncentred(block)
        distances = (np.abs(x[:, k, None] - z[:, k]) / s for k, s in enumerate(self.sigma))
        return np.array([np.vdot(M, np.minimum(r, FARTHEST)) for r in distances])

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        M = self._values(block, G)
        x, z = uncentred(block)
        signs = [np.einsum("ij,ij->i", M, np.sign(x[:, k, None] - z[:, k])) for k in range(x.shape[1])]
        return -np.stack(signs, axis=1) / self.sigma

    def squared(self) -> Laplacian:
        return Laplacian(np.asarray(self.sigma) / 2.0)

    @property
    def density(self) -> Density:
        from mercer.kernels.vectors.densities import LaplaceDensity

        return LaplaceDensity()

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        total = sum(abs(Fraction(a) - Fraction(b)) / s for a, b, s in zip(x, z, self._sigmas(len(x))))
        return (-exactly(total)).exp()

    def derivation(self) -> Proof:
        factor = Axiom("exp(−|s|/σ)", "Bochner: its spectral density is a Cauchy density, which is ≥ 0")
        return PRODUCT(self, factor, condition="one factor exp(−|xₖ − zₖ|/σₖ) per column")


@dataclass(frozen=True)
class Circle:
    """Every column wound around a circle: (cos 2πx/p, sin 2πx/p)."""

    period: float
    transient: ClassVar[bool] = True
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        X = points.vectors()
        if sp.issparse(X):
            raise InvalidInput("Periodic needs dense data", got="a sparse matrix", advice="Pass X.toarray().")
        angle = 2 * np.pi * np.fmod(X.astype(np.float64), self.period) / self.period
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(X.dtype)


class Periodic(Kernel):
    """exp(−2 Σₖ sin²(π(xₖ − zₖ)/p)/σ²): functions that repeat with period p in every column.

    >>> import mercer as mc
    >>> mc.Periodic(1.0, period=2.0)([[0.0], [2.0], [1.0]])[0].round(4)
    array([1.    , 1.    , 0.1353])
    """

    about: ClassVar[About] = About(
        "exp(−2 Σₖ sin²(π(xₖ − zₖ)/p)/σ²)",
        "Hours, weekdays, seasons; times Gaussian() where the pattern drifts.",
        "Periodic(sigma=1.0, period=24.0)",
        arguments={"period": Argument("p")},
    )

    sigma: float = positive(1.0)
    period: float = positive(1.0)
    units: ClassVar[Units] = {"period": "period"}
    tags: ClassVar[Tags] = Tags(stationary=True, normalised=True, nonnegative=True)

    def check(self) -> None:
        self._set(_chords=Gaussian(self.sigma))

    @property
    def _of_chords(self) -> Gaussian:
        """The Gaussian of distances between points on the circles."""
        kernel: Gaussian = self._chords  # type: ignore[attr-defined]
        return kernel

    def touch(self, points: Points) -> None:
        points.view(Circle(self.period))

    def tile(self, block: Block, out: Array) -> None:
        self._of_chords.tile(block.view(Circle(self.period)), out)

    def log_tile(self, block: Block, out: Array) -> None:
        self._of_chords.log_tile(block.view(Circle(self.period)), out)

    @property
    def exact_log(self) -> bool:
        return True

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def _turn(self, block: Block, G: Array) -> tuple[list[Array], list[Array]]:
        """Per column: the phase π(x − z)/p, and Gᵢⱼ kᵢⱼ · (−2/σ²) sin(2·phase)."""
        tile = block.scratch()
        self.tile(block, tile)
        M = G * tile.astype(np.float64) * (-2.0 / self.sigma**2)
        x, z = (v.astype(np.float64) for v in block.vectors())
        phases = [np.pi * (x[:, k, None] - z[:, k]) / self.period for k in range(x.shape[1])]
        return phases, [M * np.sin(2 * phase) for phase in phases]

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        gradients = []
        fixed = self.fixed
        if "sigma" not in fixed:
            gradients += list(self._of_chords.tile_gradient(block.view(Circle(self.period)), G))
        if "period" not in fixed:
            phases, turned = self._turn(block, G)
            gradients.append(-sum(float(np.vdot(t, phase)) for t, phase in zip(turned, phases)))
        return np.array(gradients)

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        _, turned = self._turn(block, G)
        return np.stack([t.sum(axis=1) for t in turned], axis=1) * np.pi / self.period

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly, pi

        total = exactly(0)
        for a, b in zip(x, z):
            total = total + (pi() * ((Fraction(a) - Fraction(b)) / Fraction(self.period))).sin() ** 2
        return (total * -2 / Fraction(self.sigma) ** 2).exp()

    def derivation(self) -> Proof:
        condition = f"phi winds every column around a circle, period {self.period:g} > 0"
        return COMPOSITION(self, self._of_chords.proof(), condition=condition)
