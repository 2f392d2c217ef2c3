"""The arc-cosine kernels: functions of the lengths of two points and the angle between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import show
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block, Pair, squared_norms
from mercer.threads import spans
from mercer.validation import is_number

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


def polar(X: Any) -> tuple[NDArray[np.float64], Any]:
    """‖x‖ and x/‖x‖ for every row in float64, without squares that over- or underflow; the origin stays 0."""
    X = X.astype(np.float64)
    if sp.issparse(X):
        largest = abs(X).max(axis=1).toarray().ravel()
    else:
        largest = np.abs(X).max(axis=1)
    largest = np.where(largest > 0, largest, X.dtype.type(1))
    X = _divided(X, largest)
    norms = np.sqrt(squared_norms(X))
    with np.errstate(over="ignore"):
        return largest.astype(np.float64) * norms, _divided(X, np.where(norms > 0, norms, 1.0).astype(X.dtype))


def _divided(X: Any, divisors: Array) -> Any:
    """Every row divided by its number."""
    if not sp.issparse(X):
        return X / divisors[:, None]
    return sp.csr_array((X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def lengths(X: Any) -> NDArray[np.float64]:
    """‖x‖ for every row, > 0 unless x = 0."""
    return polar(X)[0]


@dataclass(frozen=True)
class Directions:
    """Every point divided by its length; the origin stays 0."""

    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        return polar(points.vectors())[1]


class ArcCosine(Kernel):
    """(1/π) ‖x‖ⁿ ‖z‖ⁿ Jₙ(θ), θ the angle between x and z: an infinitely wide layer of step (n = 0), rectified linear
    (n = 1) or rectified quadratic (n = 2) units with Gaussian weights.

    J₀ = π − θ, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ). The origin counts as
    perpendicular to everything, as a step unit with step(0) = ½ sees it.

    >>> import mercer as mc
    >>> mc.ArcCosine(1)([[1.0, 0.0], [0.0, 1.0]]).round(4)
    array([[1.    , 0.3183],
           [0.3183, 1.    ]])

    References
    ----------
    Cho and Saul, Kernel methods for deep learning, NeurIPS 2009.
    """

    about: ClassVar[About] = About(
        "‖x‖ⁿ‖z‖ⁿ Jₙ(θ)/π, θ the angle of x and z",
        "An infinitely wide layer of step (0) or rectified (1, 2) units.",
        "ArcCosine(order=1)",
        arguments={"order": Argument("n", "0, 1 or 2")},
    )

    order: int = 1
    tags: ClassVar[Tags] = Tags(nonnegative=True)
    vanishes_at_origin_only: ClassVar[bool] = True

    def check(self) -> None:
        if not is_number(self.order) or self.order not in (0, 1, 2):
            raise InvalidInput("`order` of ArcCosine must be 0, 1 or 2", got=show(self.order), advice="Pass order=1.")
        self._set(order=int(self.order))

    def tile(self, block: Block, out: Array) -> None:
        x, z = (lengths(v) for v in block.vectors())
        out[...] = self._angular(self._angles(block, x == 0, z == 0))
        if self.order:
            with np.errstate(over="ignore", invalid="ignore"):
                out *= (x**self.order)[:, None].astype(out.dtype)
                out *= (z**self.order).astype(out.dtype)

    @staticmethod
    def _angles(block: Block, x_zero: NDArray[np.bool_], z_zero: NDArray[np.bool_]) -> Array:
        """θ for every pair, π/2 where one of them is the origin."""
        # sin(θ/2) = ‖u − v‖/2 for unit vectors keeps the digits that arccos of the cosine loses near θ = 0; near θ = π
        # cos(θ/2) = ‖u + v‖/2 does.
        unit = block.view(Directions())
        chord = unit.sqdist().copy()
        chord[x_zero] = 2.0
        chord[:, z_zero] = 2.0
        theta = 2.0 * np.arcsin(np.minimum(np.sqrt(chord) / 2, 1.0))
        opposite = np.argwhere(chord > 3.9)
        u, v = unit.vectors()
        for span in spans(len(opposite), 4096):
            i, j = opposite[span].T
            total = u[i] + v[j]
            theta[i, j] = np.pi - 2.0 * np.arcsin(np.minimum(np.sqrt(squared_norms(total)) / 2, 1.0))
        return np.asarray(theta)

    def _angular(self, theta: Array) -> Array:
        if self.order == 0:
            return np.asarray(1.0 - theta / np.pi)
        sin, cos = np.sin(theta), np.cos(theta)
        if self.order == 1:
            return np.asarray((sin + (np.pi - theta) * cos) / np.pi)
        return np.asarray((3 * sin * cos + (np.pi - theta) * (1 + 2 * cos * cos)) / np.pi)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        x = lengths(points.vectors())
        if self.order == 0:
            return np.where(x > 0, 1.0, 0.5)
        with np.errstate(over="ignore"):
            return np.asarray((1.0 if self.order == 1 else 3.0) * x ** (2 * self.order))

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """With u, v the directions of x, z:  n = 1: (‖z‖/π) (sin θ u + (π − θ) v);

        n = 2: (‖x‖‖z‖²/π) (2 (sin θ cos θ + π − θ) u + 4 J₁ v);  n = 0: (v − cos θ u)/(π ‖x‖ sin θ), and 0 at the kinks
        θ = 0 and π, where one side is minus the other.
        """
        if block.dtype != np.float64:
            wide_x, wide_z = (Points(v.astype(np.float64)) for v in block.vectors())
            block = Pair(wide_x, wide_z, np.float64).block(slice(0, wide_x.n), slice(0, wide_z.n))
        (x, u), (z, v) = (polar(side) for side in block.vectors())
        theta = self._angles(block, x == 0, z == 0)
        sin, cos = np.sin(theta), np.cos(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.order == 0:
                smooth = (sin > 1e-14) & (x[:, None] > 0) & (z > 0)
                of_v = np.divide(G, np.pi * x[:, None] * sin, out=np.zeros(G.shape), where=smooth)
                of_u = -of_v * cos
            elif self.order == 1:
                weights = G * z / np.pi
                of_u, of_v = weights * sin, weights * (np.pi - theta)
            else:
                weights = G * x[:, None] * z**2 / np.pi
                of_u = weights * 2 * (sin * cos + np.pi - theta)
                of_v = weights * 4 * (sin + (np.pi - theta) * cos)
            u = u.toarray() if sp.issparse(u) else u
            return np.asarray(of_u.sum(axis=1)[:, None] * u + of_v @ v)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import dot, exactly, pi

        xx, zz = dot(x, x), dot(z, z)
        norm = (xx * zz).sqrt()
        if xx.upper <= 0 or zz.upper <= 0:
            return exactly(0.5) if self.order == 0 else exactly(0.0)
        cos = dot(x, z) / norm
        theta = cos.arccos()
        rest = pi() - theta
        if self.order == 0:
            return rest / pi()
        sin = (exactly(1) - cos * cos).sqrt()
        if self.order == 1:
            return (sin + rest * cos) * norm / pi()
        return (sin * cos * 3 + rest * (cos * cos * 2 + 1)) * norm * norm / pi()

    def derivation(self) -> Proof:
        statement = "an expectation of φ(wᵀx)φ(wᵀz) over Gaussian w"
        return Axiom(self, statement, condition=f"order {self.order}", reference="Cho & Saul 2009")
