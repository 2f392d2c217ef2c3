"""Least squares in the Hilbert space: ½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖².

Its solution is one linear system, the same for ridge regression, Gaussian processes and RBF networks. With s = √w,
K̃ = diag(s) K diag(s), P̃ = diag(s) P (the columns of P are the tail's functions at the points) and c = s∘u:

    (K̃ + alpha I) u + P̃ b = s∘y,      P̃ᵀu = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.gram import Gram

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖² with f = Σ cᵢ k(xᵢ, ·) + Σ bⱼ pⱼ, for t targets at once.

    Attributes
    ----------
    gram : Gram
        K of the n points, symmetric.
    y : array
        Targets, shape (n, t), float64.
    alpha : array
        One penalty per target, shape (t,).
    roots : array or None
        √w > 0, shape (n,), or None if all weights are one. Rows of weight zero are not allowed.
    tail : array or None
        P, shape (n, p), the values of the unpenalised functions (a column of ones is an intercept), or None.
    """

    gram: Gram
    y: Matrix
    alpha: Matrix
    roots: Matrix | None = None
    tail: Matrix | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def weighted_targets(self) -> Matrix:
        """s∘y."""
        return self.y if self.roots is None else self.roots[:, None] * self.y

    @property
    def weighted_tail(self) -> Matrix | None:
        """P̃ = diag(s) P."""
        return self.tail if self.tail is None or self.roots is None else self.roots[:, None] * self.tail

    def matrix(self, dtype: Any = None) -> NDArray[Any]:
        """K̃ as a new array, exactly symmetric, which a factorisation may overwrite."""
        K = self.gram.fresh(dtype)
        if self.roots is not None:
            s = self.roots.astype(K.dtype)
            K *= s[:, None]
            K *= s
        return K

    def multiply(self, U: Matrix) -> Matrix:
        """K̃ U, without a new matrix."""
        if self.roots is None:
            return np.asarray(self.gram @ U, dtype=np.float64)
        s = self.roots[:, None]
        return np.asarray(s * (self.gram @ (s * U)), dtype=np.float64)
