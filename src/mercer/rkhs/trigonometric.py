"""f = Σⱼ cⱼ exp(2πi Σ jₖhₖxₖ): functions on a grid of frequencies, which do not keep the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.features.nonuniform import Complex, Frequencies
from mercer.kernels.base import Kernel
from mercer.rkhs.space import finite
from mercer.rkhs.tail import Tail


@dataclass(frozen=True, eq=False, repr=False)
class FourierFunction:
    """A function of a stationary kernel's space on a grid of frequencies, plus a tail; made by `solver="fourier"`.

    It represents f = Σ cᵢ k(xᵢ, ·) in a box around the data, one period of the grid wide. Farther away k(xᵢ, ·) is
    smaller than the tolerance of the grid for every xᵢ, and only the tail remains.

    Attributes
    ----------
    kernel : Kernel
        The kernel of the space.
    frequencies : Frequencies
        The grid.
    coef : array
        Real and imaginary parts of the stored coefficients, one after the other: shape (q,), or (q, t).
    tail : Tail or None
        The part outside the Hilbert space, or None.
    tol : float
        The error of evaluating f, relative to Σ|cⱼ|.
    single : bool
        Whether it was fitted to float32 data: values at float32 points are float32, too.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0.0, 6.0, 500)[:, None]
    >>> f = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1, solver="fourier").fit(X, np.sin(X[:, 0])).function_
    >>> f
    <FourierFunction: 31 frequencies, Gaussian(sigma=1.0)>
    >>> f([[1.0], [100.0]]).round(3), f.gradient([[1.0]]).round(2)
    (array([0.843, 0.   ]), array([[0.55]]))
    """

    kernel: Kernel
    frequencies: Frequencies
    coef: Array
    tail: Tail | None
    tol: float
    single: bool

    def __post_init__(self) -> None:
        expected = 2 * math.prod(self.frequencies.shape)
        if len(self.coef) != expected:
            raise InvalidInput(
                f"A function on {self.frequencies.number} frequencies must have {expected} numbers",
                got=str(len(self.coef)),
                advice="Pass the real and the imaginary part of every stored coefficient.",
            )

    def __repr__(self) -> str:
        functions = "" if self.coef.ndim == 1 else f"{self.coef.shape[1]} functions, "
        tail = "" if self.tail is None else f", tail of degree {self.tail.basis.degree}"
        return f"<FourierFunction: {functions}{self.frequencies.number} frequencies, {self.kernel!r}{tail}>"

    def __call__(self, Z: Any) -> Array:
        """f(z) for every point z, shape (m,) or (m, t)."""
        points, X = self._vectors(Z)
        values = self._shaped(self._sum(X, self._coefficients()))
        if self.tail is not None:
            values = values + self.tail(points)
        dtype = np.float32 if self.single and X.dtype == np.float32 else np.float64
        return finite(values.astype(dtype, copy=False), "Values of f")

    def gradient(self, Z: Any) -> NDArray[np.float64]:
        """∇f(z) for every point z: shape (m, d), or (m, t, d) for t functions."""
        points, X = self._vectors(Z)
        C = self._coefficients()
        slopes = [self._shaped(self._sum(X, 2j * np.pi * axis * C)) for axis in self.frequencies.axes()]
        gradient = np.stack(slopes, axis=-1)
        return gradient if self.tail is None else gradient + self.tail.gradient(points)

    def _coefficients(self) -> Complex:
        """The stored coefficients, shape (t, *frequencies.shape)."""
        columns = np.ascontiguousarray(self.coef.reshape(len(self.coef), -1).T)
        return columns.view(np.complex128).reshape(len(columns), *self.frequencies.shape)

    def _sum(self, X: Array, C: Complex) -> NDArray[np.float64]:
        """Σⱼ cⱼ exp(…) at every point, 0 out of reach, shape (m, t)."""
        grid = self.frequencies
        # The period is the length of the data's box and twice the reach.
        inside = (np.abs(X - grid.centre) <= 0.5 / grid.spacing).all(axis=1)
        if inside.all():
            return grid.from_grid(X, C, self.tol)
        values = np.zeros((len(X), len(C)))
        if inside.any():
            values[inside] = grid.from_grid(X[inside], C, self.tol)
        return values

    def _shaped(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[:, 0] if self.coef.ndim == 1 else values

    def _vectors(self, Z: Any) -> tuple[Points, Array]:
        points = self.kernel.prepare(Z)
        X, d = points.vectors(), len(self.frequencies.largest)
        if not isinstance(X, np.ndarray):
            X = X.toarray()
        if X.shape[1] != d:
            raise InvalidInput(
                f"Points must have {d} columns, as in the fit",
                got=f"{X.shape[1]} columns",
                advice="Pass the same columns as before.",
            )
        return points, X
