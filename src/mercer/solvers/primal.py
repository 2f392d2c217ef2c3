"""The primal side: weights on explicit features, ½ Σ wᵢ (yᵢ − θᵀφ(xᵢ) − bᵀp(xᵢ))² + ½ alpha ‖θ‖², for every alpha.

With the weighted features Φ̃ and tail P̃ = QR, the singular values of (I − QQᵀ)Φ̃ = U S Vᵀ give everything at once:

    fitted = QQᵀỹ + U S²/(S² + alpha) Uᵀỹ,   θ = V S/(S² + alpha) Uᵀỹ,   leverage hᵢᵢ, leave-one-out rᵢ = eᵢ/(1 − hᵢᵢ).

The function is that of the dual with K = ΦΦᵀ, at a cost that depends on the number of features instead of points.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from mercer import memory
from mercer.errors import InvalidInput
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.factor import EPS, Factor, Matrix, log_square, orthonormal, require_left, spread

# A point with a smaller share than this in a direction of length one counts as having no part in it.
SHARE = 1e-10
# Up to this ‖QᵀQ − I‖ a second Cholesky factor makes Q orthonormal to rounding.
NEAR = 0.1
# If the first correction is below this share, the next one ends at rounding.
REFINABLE = 1e-6
# A Gram matrix's solution is refined in at most this many steps, each smaller by this share, until they are this small.
STEPS, SHRINK, SMALL_STEP = 6, 1e-2, 1e-9
# Features outside this range have squares that overflow or vanish.
LARGEST, SMALLEST = 1e145, 1e-145


class FeatureSpectrum:
    """The singular values of a feature matrix: `at(alpha)` solves for any alpha ≥ 0.

    A tall matrix is reduced to its triangular factor and a wide one to its transpose's, in which the singular values
    are the same; U is formed at its first use. A sparse matrix is never filled in: V and S² are those of Φ̃ᵀΦ̃, which
    has the features' size but squares the condition, so that singular values below 1e-8 of the largest count as zero.

    Parameters
    ----------
    features : array or sparse matrix
        Φ, shape (n, M).
    roots : array or None
        √w > 0, shape (n,), or None.
    tail : array or None
        P, shape (n, p), features that are not penalised, or None.

    Attributes
    ----------
    S, Vt
        Singular values, with those at rounding level set to zero, and right singular vectors as rows.
    values
        S².
    rank : int
        The number of singular values that are not zero.
    tolerance
        Values up to this are rounding.
    tail : array or None
        P.
    Q, R_inverse
        P̃ = QR, and R⁻¹; the pseudoinverse if the tail's functions are linearly dependent on the points.
    through : array
        QᵀΦ̃, shape (p, M): the part of the features that the tail explains.

    Examples
    --------
    >>> import numpy as np
    >>> spectrum = FeatureSpectrum(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    >>> spectrum.values, spectrum.rank
    (array([4., 1.]), 2)
    >>> spectrum.at(1.0).weights(np.ones((3, 1)))[0].T                    # s/(s² + 1)
    array([[0.5, 0.4]])
    """

    def __init__(self, features: Any, roots: Matrix | None = None, tail: Matrix | None = None) -> None:
        n = features.shape[0]
        self.roots = np.ones(n) if roots is None else roots
        self.features, self.tail = _weighted(features, roots), tail
        self.Q, self.R_inverse = _orthonormal(None if tail is None else _weighted(tail, roots), n)
        self.through: Matrix = np.asarray(self.Q.T @ self.features)
        self._U: Matrix | None = None
        self._basis: Matrix | None = None
        S = self._by_normal_equations() if sp.issparse(features) else self._by_triangle()
        # Relative to the features before the tail was projected out, which leaves rounding of that size behind.
        largest = max(S.max(initial=0.0), float(np.linalg.norm(self.through)))
        tolerance = max(self.features.shape) * EPS * largest
        if sp.issparse(features):
            tolerance = np.sqrt(max(self.features.shape) * EPS) * largest
        self.S = np.where(tolerance < S, S, 0.0)
        self.values: Matrix = self.S**2
        self.rank = int((self.S > 0).sum())
        self.tolerance = float(tolerance**2)

    def _by_triangle(self) -> Matrix:
        A = _without(self.features, self.Q)
        n, M = A.shape
        if n > M:
            self._basis, R = tall_qr(A)
            self._inner, S, self.Vt = sla.svd(R, full_matrices=False, check_finite=False)
        else:
            Q, R = tall_qr(A.T) if n < M else (np.eye(M), A.T)
            self._U, S, W = sla.svd(R.T, full_matrices=False, check_finite=False)
            self.Vt = W @ Q.T
        return np.asarray(S)

    def _by_normal_equations(self) -> Matrix:
        G = (self.features.T @ self.features).toarray()
        G -= self.through.T @ self.through
        values, vectors = sla.eigh(G, overwrite_a=True, check_finite=False, driver="evd")
        self.Vt = vectors.T[::-1]
        return np.sqrt(np.maximum(values[::-1], 0.0))

    @property
    def U(self) -> Matrix:
        """The left singular vectors, shape (n, k), k = min(n, M); for a sparse matrix zero if the singular value is."""
        if self._U is None:
            n, M = self.features.shape
            advice = "Use predictions only: leave-one-out and intervals need one row of U per point."
            memory.allocatable(3 * 8 * n * M, f"The left singular vectors of {n:,} × {M:,} features", advice)
            if self._basis is None:
                scaled = np.divide(self.Vt.T, self.S, out=np.zeros_like(self.Vt.T), where=self.S > 0)
                self._U = np.asarray(self.features @ scaled - self.Q @ (self.through @ scaled))
            else:
                self._U = self._basis @ self._inner
        return self._U

    def coordinates(self, z: Matrix) -> Matrix:
        """Uᵀz, without forming U if it was not needed yet."""
        if self._U is not None:
            return self._U.T @ z
        if self._basis is not None:
            return np.asarray(self._inner.T @ (self._basis.T @ z))
        inner = self.Vt @ (self.features.T @ z - self.through.T @ (self.Q.T @ z))
        return np.divide(inner, self.S[:, None], out=np.zeros_like(inner), where=self.S[:, None] > 0)

    @cached_property
    def squares(self) -> Matrix:
        """U∘U."""
        return self.U**2

    @cached_property
    def share(self) -> Matrix:
        """The part of each point's direction that neither features nor tail reach, shape (n,)."""
        n, used = len(self.roots), self.S > 0
        if self.rank + self.Q.shape[1] >= n:
            return np.zeros(n)
        rest = 1 - (self.Q**2).sum(axis=1) - self.squares @ used
        return np.where(rest > SHARE, rest, 0.0)

    def rest(self, z: Matrix, coordinates: Matrix) -> Matrix:
        """The part of z that neither features nor tail reach, shape (n, t)."""
        used = self.S > 0
        rest = z - self.Q @ (self.Q.T @ z) - self.U[:, used] @ coordinates[used]
        rest[self.share == 0] = 0.0
        return rest

    def at(self, alpha: float) -> FeatureFactor:
        """The system for this alpha."""
        return FeatureFactor(self, float(alpha))


class FeatureFactor(Factor):
    """The system of explicit features at one alpha; of minimum norm if alpha = 0 and the features are dependent."""

    explicit = True

    def __init__(self, spectrum: FeatureSpectrum, alpha: float) -> None:
        self.spectrum, self.alpha, self.roots, self.tail = spectrum, alpha, spectrum.roots, spectrum.tail
        shifted = spectrum.values + alpha
        used = spectrum.S > 0
        self.shrink = np.divide(spectrum.values, shifted, out=np.zeros_like(shifted), where=used)
        self.gain = np.divide(spectrum.S, shifted, out=np.zeros_like(shifted), where=used)
        self.D = np.divide(1.0, shifted, out=np.zeros_like(shifted), where=used)

    def weights(self, y: Matrix) -> tuple[Matrix, Matrix]:
        """(θ, b) of shapes (M, t) and (p, t) for targets of shape (n, t)."""
        return self._primal(self._weighted(y))

    def leverage(self) -> Matrix:
        """hᵢᵢ, the share of each target in its own fitted value, shape (n,)."""
        s = self.spectrum
        return (s.Q**2).sum(axis=1) + s.squares @ self.shrink

    @property
    def degrees_of_freedom(self) -> float:
        """Σ hᵢᵢ."""
        return float(self.shrink.sum()) + self.spectrum.Q.shape[1]

    def leave_one_out(self, y: Matrix) -> Matrix:
        """yᵢ − f₋ᵢ(xᵢ), shape (n, t).

        Residual and 1 − hᵢᵢ are both divided by alpha: no digits cancel if hᵢᵢ is near one, and in the limit
        alpha → 0 only some of the terms remain.
        """
        require_left(self.tail)
        s, z = self.spectrum, self._weighted(y)
        u, g = self._dual(z), self._diagonal()
        if self.alpha == 0 and s.share.any():
            free = s.share > 0
            u[free], g[free] = s.rest(z, s.coordinates(z))[free], s.share[free]
        return np.asarray(u / (g * s.roots)[:, None])

    # -- the weighted system --------------------------------------------------------------------------------------

    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix]:
        return self._dual(Z), self._primal(Z)[1]

    def _primal(self, Z: Matrix) -> tuple[Matrix, Matrix]:
        """(θ, b)."""
        s = self.spectrum
        theta = s.Vt.T @ (self.gain[:, None] * s.coordinates(Z))
        return theta, s.R_inverse @ (s.Q.T @ Z - s.through @ theta)

    def _dual(self, Z: Matrix) -> Matrix:
        """u with θ = Σ sᵢ uᵢ φ(xᵢ): (zᵢ − f̃(xᵢ))/alpha, or the shortest such u if alpha = 0."""
        s = self.spectrum
        U, coordinates = s.U, s.coordinates(Z)  # U first, for the same rounding at every call
        u = U @ (self.D[:, None] * coordinates)
        return u + s.rest(Z, coordinates) / self.alpha if self.alpha > 0 else u

    def _smoother(self, Z: Any, Pz: Matrix | None) -> Matrix:
        s = self.spectrum
        L = (Z @ s.Vt.T * self.gain) @ s.U.T
        if Pz is not None:
            # b = R⁻¹Qᵀ(z − Φ̃θ), and Qᵀ U = 0.
            direct = Pz @ s.R_inverse
            L = L + direct @ s.Q.T - ((direct @ s.through) @ s.Vt.T * self.gain) @ s.U.T
        return np.asarray(L)

    def _diagonal(self) -> Matrix:
        s = self.spectrum
        g = s.squares @ self.D
        return g + s.share / self.alpha if self.alpha > 0 else g

    def _inverse(self) -> Matrix:
        s = self.spectrum
        H = (s.U * self.D) @ s.U.T
        if self.alpha > 0:  # and 1/alpha on the part that neither features nor tail reach
            used = s.U[:, s.S > 0]
            H += (np.eye(len(H)) - s.Q @ s.Q.T - used @ used.T) / self.alpha
        return np.asarray(H)

    @property
    def condition(self) -> float:
        return spread(self.spectrum.values + self.alpha)

    def _log_determinant(self) -> float:
        s = self.spectrum
        n, used = len(s.roots), s.S > 0
        others = n - s.Q.shape[1] - s.rank
        with np.errstate(divide="ignore"):
            value = float(np.log(s.values[used] + self.alpha).sum()) + (others * np.log(self.alpha) if others else 0.0)
        return value + log_square(s.R_inverse)


class GramFactor(CholeskyFactor):
    """The dual system of explicit features at one alpha > 0: K + alpha I = LLᵀ, with the tail projected out.

    K = AAᵀ with A = (I − QQᵀ)Φ̃ squares the condition of the features. Corrections by z − Aθ − alpha u, in which
    nothing is squared, restore the digits of θ = Aᵀu; if they do not shrink, the solution cannot be trusted and
    `numpy.linalg.LinAlgError` is raised. Leave-one-out is not refined: it loses the digits of `condition`.

    Parameters
    ----------
    features, roots, tail
        Φ, √w and P as in `FeatureSpectrum`. A sparse Φ stays sparse.
    alpha : float
        > 0.

    Examples
    --------
    >>> import numpy as np
    >>> factor = GramFactor(np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), 1.0)
    >>> factor.weights(np.ones((2, 1)))[0].T                              # s/(s² + 1)
    array([[0.5, 0.4, 0. ]])
    """

    explicit = True

    def __init__(self, features: Any, alpha: float, roots: Matrix | None = None, tail: Matrix | None = None) -> None:
        n = features.shape[0]
        self.A = _weighted(features, roots)
        self.Q, self.R_inverse = _orthonormal(None if tail is None else _weighted(tail, roots), n)
        self.through: Matrix = np.asarray(self.Q.T @ self.A)
        self._whole = 0.0
        if sp.issparse(self.A):
            K = (self.A @ self.A.T).toarray()
            self._whole = float(np.abs(K).sum(axis=0).max(initial=0.0))
            K = _without(_without(K, self.Q).T, self.Q)
        else:
            self.A = _without(self.A, self.Q)
            K = self.A @ self.A.T
        # Along the tail K is zero. This term keeps the matrix well-conditioned there; u stays orthogonal to the tail.
        K += (np.trace(K) / n + alpha) * (self.Q @ self.Q.T)
        super().__init__(K, alpha, roots, tail)

    def _norm(self) -> float:
        return max(super()._norm(), self._whole)  # projecting out the tail left rounding of this size behind

    def weights(self, y: Matrix) -> tuple[Matrix, Matrix]:
        """(θ, b) of shapes (M, t) and (p, t) for targets of shape (n, t)."""
        theta, _, b = self._refined(self._weighted(y))
        return theta, b

    def _solve(self, Z: Matrix) -> tuple[Matrix, Matrix]:
        _, u, b = self._refined(Z)
        return u, b

    def _smoother(self, Z: Any, Pz: Matrix | None) -> Matrix:
        direct = np.zeros((Z.shape[0], self.Q.shape[1])) if Pz is None else Pz @ self.R_inverse
        across = Z @ self.A.T
        across = (across.toarray() if sp.issparse(across) else np.asarray(across)) - direct @ (self.through @ self.A.T)
        return np.asarray(self.bordered(across.T)[0].T + direct @ self.Q.T)

    def _up(self, theta: Matrix) -> Matrix:
        """Aθ."""
        values = np.asarray(self.A @ theta)
        return values - self.Q @ (self.through @ theta) if sp.issparse(self.A) else values

    def _down(self, u: Matrix) -> Matrix:
        """Aᵀu."""
        values = np.asarray(self.A.T @ u)
        return values - self.through.T @ (self.Q.T @ u) if sp.issparse(self.A) else values

    def _refined(self, Z: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """(θ, u, b): among all with Aθ + alpha u = z those with the least ‖θ‖² + alpha ‖u‖², one column per target."""
        z = _without(Z, self.Q)
        u = _without(self.solve_system(z), self.Q)
        theta = self._down(u)
        last = size = self._size(theta, u)
        for _ in range(STEPS):
            left = _without(z - self._up(theta) - self.alpha * u, self.Q)
            du = _without(self.solve_system(left), self.Q)
            step = self._size(dtheta := self._down(du), du)
            if not (step <= SHRINK * last).all():
                if (step <= SMALL_STEP * size).all():
                    break
                raise np.linalg.LinAlgError("the Gram matrix of the features has lost their digits")
            theta, u, last = theta + dtheta, u + du, step
            if (step <= EPS * size).all():
                break
        return theta, u, self.R_inverse @ (self.Q.T @ Z - self.through @ theta)

    def _size(self, theta: Matrix, u: Matrix) -> Matrix:
        """√(‖θ‖² + alpha ‖u‖²) of every target."""
        return np.hypot(np.linalg.norm(theta, axis=0), np.sqrt(self.alpha) * np.linalg.norm(u, axis=0))


def by_normal_equations(
    features: Matrix, y: Matrix, alpha: float, roots: Matrix | None = None, tail: Matrix | None = None
) -> tuple[Matrix, Matrix] | None:
    """(θ, b) for one alpha > 0 without singular values: (ΦᵀΦ + alpha I)θ = Φᵀy by a Cholesky factor, refined.

    Two corrections by the residual Φᵀ(y − Φθ) − alpha θ, which is not squared, restore the digits that ΦᵀΦ lost.
    If the first one is large, the system is too ill-conditioned for this, and the result is None.
    """
    A = _weighted(features, roots)
    s = np.ones(len(A)) if roots is None else roots
    Q, R_inverse = _orthonormal(None if tail is None else s[:, None] * tail, len(A))
    z, A0 = s[:, None] * y, A
    A = _without(A, Q)
    G = A.T @ A
    G.flat[:: len(G) + 1] += alpha
    try:
        factor = sla.cho_factor(G, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    theta = sla.cho_solve(factor, A.T @ z, check_finite=False)
    for _ in range(2):
        step = sla.cho_solve(factor, A.T @ (z - A @ theta) - alpha * theta, check_finite=False)
        if not np.linalg.norm(step) <= REFINABLE * np.linalg.norm(theta):
            return None
        theta += step
    return theta, R_inverse @ (Q.T @ (z - A0 @ theta))


def tall_qr(A: Matrix) -> tuple[Matrix, Matrix]:
    """A = QR with QᵀQ = I and R triangular, for at least as many rows as columns.

    By two Cholesky factors, RᵀR = AᵀA and once more for the Q of the first: products of matrices throughout, and as
    exact as reflections if the first Q is nearly orthonormal (Yamamoto et al. 2015). Otherwise, by reflections.
    """
    size = np.sqrt(np.einsum("ij,ij->j", A, A))
    size[size == 0] = 1.0
    try:
        with np.errstate(over="raise", invalid="raise"):
            first = np.linalg.cholesky((A / size).T @ (A / size)).T
            Q = sla.solve_triangular(first, (A / size).T, trans="T", check_finite=False).T
            G = Q.T @ Q
            if np.linalg.norm(G - np.eye(len(G))) < NEAR:
                second = np.linalg.cholesky(G).T
                Q = sla.solve_triangular(second, Q.T, trans="T", check_finite=False).T
                return Q, second @ first * size
    except (np.linalg.LinAlgError, FloatingPointError):
        pass
    return np.linalg.qr(A)


def _weighted(features: Any, roots: Matrix | None) -> Any:
    """diag(√w) Φ in float64, whose squares can be added up."""
    A: Any
    if sp.issparse(features):
        A = sp.csr_array(features, dtype=np.float64)
        A = A if roots is None else sp.csr_array(sp.diags_array(roots) @ A)
        entries = A.data
    else:
        A = np.asarray(features, dtype=np.float64)
        A = A if roots is None else roots[:, None] * A
        entries = A
    size = max(entries.max(initial=0.0), -entries.min(initial=0.0))
    if size and not SMALLEST <= size <= LARGEST:
        raise InvalidInput(
            f"The largest feature must have a finite square that is not zero: {SMALLEST:.0e} to {LARGEST:.0e}",
            got=f"{size:.3g}",
            advice="Scale the features (sklearn's StandardScaler), and a prior's standard deviation with them.",
        )
    return A


def _without(A: Matrix, Q: Matrix) -> Matrix:
    """(I − QQᵀ)A."""
    if Q.size:
        A = A - Q @ (Q.T @ A)
        A -= Q @ (Q.T @ A)  # once more: large offsets leave rounding that is not orthogonal to the tail
    return A


def _orthonormal(P: Matrix | None, n: int) -> tuple[Matrix, Matrix]:
    """Q and R⁻¹ of the tail's values P̃."""
    return (np.zeros((n, 0)), np.zeros((0, 0))) if P is None else orthonormal(P)
