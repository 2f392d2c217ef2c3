"""The linear system of least squares, factorised once: every exact answer follows from it.

    M = [[K + alpha W⁻¹, P], [Pᵀ, 0]].

The fit is linear in the targets: f(z) = Σᵢ lᵢ(z) yᵢ, where l(z) are the first n entries of M⁻¹ [k(z); p(z)]. Leaving
row i out changes it to f(z) − lᵢ(z) rᵢ, with the leave-one-out residual rᵢ = cᵢ/(M⁻¹)ᵢᵢ; leaving a whole fold B out
takes the block (M⁻¹)_BB instead of one entry. The evidence needs log |det M|.

Weights enter as s = √w on both sides: A = K̃ + alpha I with K̃ = diag(s) K diag(s), P̃ = diag(s) P and c = s∘u. They are
applied here; a subclass sees only the weighted system M̃ = [[A, P̃], [P̃ᵀ, 0]].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.rkhs.tail import Singular

Matrix = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


class Factor(ABC):
    """The system at one alpha, factorised: each result costs O(n²).

    Attributes
    ----------
    alpha : float
        The penalty.
    roots : array or None
        √w, shape (n,), or None.
    tail : array or None
        P, shape (n, p), without weights, or None.
    explicit : bool
        Whether `smoother` takes the features φ(z) of a query instead of its row k(z, X).
    """

    explicit: ClassVar[bool] = False
    alpha: float
    roots: Matrix | None
    tail: Matrix | None = None

    # -- the weighted system --------------------------------------------------------------------------------------

    @abstractmethod
    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix | None]:
        """(u, b), the solution of M̃ (u, b) = (Z, 0)."""

    @abstractmethod
    def _smoother(self, Z: Matrix, Pz: Matrix | None) -> Matrix:
        """The weights before √w, shape (m, n), of queries Z: weighted rows k(z, X)∘s, or features if `explicit`."""

    @abstractmethod
    def _diagonal(self) -> Matrix:
        """(M̃⁻¹)ᵢᵢ for the n points."""

    @abstractmethod
    def _inverse(self) -> Matrix:
        """The first n rows and columns of M̃⁻¹, in new memory."""

    @abstractmethod
    def _log_determinant(self) -> float:
        """log |det M̃|."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """The condition number of the matrix that was factorised: estimated, or known from its spectrum."""

    # -- its results ----------------------------------------------------------------------------------------------

    def solve(self, y: Matrix) -> tuple[Matrix, Matrix | None]:
        """(c, b) for targets y of shape (n, t)."""
        u, b = self._solve(self._weighted(y))
        return self._weighted(u), b

    def smoother(self, queries: Any, Pz: Matrix | None = None) -> Matrix:
        """l(z) for m queries, shape (m, n), from k(Z, X) or their features, and the tail's functions (m, p) there."""
        if self.explicit or self.roots is None:
            weights = self._smoother(queries, Pz)
        else:
            weights = self._smoother(queries * self.roots, Pz)
        return weights if self.roots is None else weights * self.roots

    def diagonal(self) -> Matrix:
        """(M⁻¹)ᵢᵢ for the n points, shape (n,)."""
        H = self._diagonal()
        return H if self.roots is None else self.roots**2 * H

    def inverse(self) -> Matrix:
        """The first n rows and columns of M⁻¹, shape (n, n)."""
        return self._scaled(self._inverse())

    def log_determinant(self) -> float:
        """log |det M| = log det(K + alpha W⁻¹) + log det(Pᵀ(K + alpha W⁻¹)⁻¹P)."""
        value = self._log_determinant()
        return value if self.roots is None else value - 2.0 * float(np.log(self.roots).sum())

    @property
    def degrees_of_freedom(self) -> float:
        """The trace of the smoother on the training points: fitted = y − alpha W⁻¹ M⁻¹ y."""
        H = self._diagonal()
        return float(len(H) - self.alpha * H.sum())

    def leave_one_out(self, y: Matrix) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ), the residual of each point in the model fitted without it, shape (n, t)."""
        require_left(self.tail)
        c, _ = self.solve(y)
        return np.asarray(c / self.diagonal()[:, None])

    def leave_fold_out(self, y: Matrix, fold: NDArray[np.int64]) -> Matrix:
        """The residuals yᵢ − f₋B(xᵢ) without the whole fold B of point i: (M⁻¹)_BB⁻¹ c_B.

        `fold` is the number of each point's fold; a point with −1 is in no fold, and its row is NaN.
        """
        c, _ = self.solve(y)
        G = self.inverse()
        residuals = np.full_like(c, np.nan)
        for label in np.unique(fold[fold >= 0]):
            B = np.flatnonzero(fold == label)
            require_left(self.tail, B, f"fold {label}")
            residuals[B] = np.linalg.solve(G[np.ix_(B, B)], c[B])
        return residuals

    def _weighted(self, B: Matrix) -> Matrix:
        return B if self.roots is None else self.roots[:, None] * B

    def _scaled(self, H: Matrix) -> Matrix:
        """diag(s) H diag(s), in place."""
        if self.roots is not None:
            H *= self.roots[:, None]
            H *= self.roots
        return H


# -- the tail ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Border:
    """The change that unpenalised functions P̃ make to the inverse of a positive definite A = LLᵀ, of rank p:

        M̃⁻¹ = [[A⁻¹, 0], [0, 0]] − [W; −T] [W; −T]ᵀ.

    With the singular values of L⁻¹P̃ = X Σ Yᵀ it is W = L⁻ᵀX and T = YΣ⁻¹, so that WWᵀ = A⁻¹P̃ S⁻¹ P̃ᵀA⁻¹ and TTᵀ = S⁻¹
    for the Schur complement S = P̃ᵀA⁻¹P̃. If functions depend on each other, S⁻¹ is the pseudoinverse.

    Attributes
    ----------
    W, T : array
        Shapes (n, r) and (p, r), r the rank of P̃.
    """

    W: Matrix
    T: Matrix

    @classmethod
    def of(cls, half: Matrix, back: Callable[[Matrix], Matrix]) -> Border:
        """The border of L⁻¹P̃, `back` being X ↦ L⁻ᵀX."""
        half = np.asarray(half, dtype=np.float64)
        sizes = np.linalg.norm(half, axis=0)
        sizes[sizes == 0] = 1.0
        X, T = orthonormal(half / sizes)
        return cls(np.asarray(back(X), dtype=np.float64), T / sizes[:, None])

    def correct(self, U: Matrix, Z: Matrix, Q: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """M̃⁻¹ (Z, Q) from U = A⁻¹Z: both its parts, shapes (n, t) and (p, t); Q is zero by default."""
        share = self.W.T @ Z if Q is None else self.W.T @ Z - self.T.T @ Q
        return U - self.W @ share, self.T @ share

    @property
    def log_determinant(self) -> float:
        """log det S, of the functions that are independent."""
        return log_square(self.T)


def spread(values: Matrix) -> float:
    """The largest over the smallest of values ≥ 0; 1 if there are none, or only zeros."""
    if not len(values) or values.max() == 0:
        return 1.0
    return float(values.max() / values.min()) if values.min() > 0 else np.inf


def orthonormal(P: Matrix) -> tuple[Matrix, Matrix]:
    """Q with orthonormal columns that span those of P, shape (n, r), and R⁻¹ with b = R⁻¹Qᵀz the shortest solution of
    P b ≈ z, shape (p, r)."""
    if P.shape[1] == 1:  # an intercept, the usual case in searches
        left, sizes, right = P, np.linalg.norm(P, axis=0), np.eye(1)
        left = left / np.where(sizes > 0, sizes, 1.0)
    else:
        left, sizes, right = sla.svd(P, full_matrices=False, check_finite=False)
    usable = sizes > len(P) * EPS * max(sizes.max(initial=0.0), np.finfo(float).tiny)
    return left[:, usable], right[usable].T / sizes[usable]


def log_square(R_inverse: Matrix) -> float:
    """log det(PᵀP) = log det(RᵀR) from the R⁻¹ of `orthonormal`, without functions that depend on others."""
    upper = np.linalg.qr(R_inverse, mode="r")
    return -2.0 * float(np.log(np.abs(np.diagonal(upper))).sum())


def require_left(P: Matrix | None, out: NDArray[np.int64] | None = None, name: str = "") -> None:
    """Raise if the remaining rows do not determine the tail P, shape (n, p): without any one row, or without `out`.

    With an orthonormal basis Q of P, the rows without B have the least singular value √(1 − ‖Q_B‖²).
    """
    if P is None or not P.any():
        return
    sizes = np.linalg.norm(P, axis=0)
    Q, _ = orthonormal(P / np.where(sizes > 0, sizes, 1.0))
    required = "Folds must leave points that determine the tail"
    if out is None:
        share = np.einsum("ip,ip->i", Q, Q)
        worst = int(share.argmax())
        taken, name = float(share[worst]), f"row {worst}"
        required = "Leave-one-out needs points whose tail is determined without any one of them"
    else:
        taken = float(np.linalg.norm(Q[out], 2)) ** 2
    if taken >= 1 - 10 * len(P) * EPS:
        raise Singular(
            required,
            got=f"{name}, without which it is not (n_samples = {len(P)})",
            advice="Add points, or use fewer unpenalised functions (the intercept is one).",
        )
