"""The second derivative of a risk as a system: (A*WA + alpha) d = g, factorised for weights W = w∘loss'' ≥ 0.

For features and centres it is a matrix of their number; for a Gram matrix it is B = alpha I + √W K √W, whose
eigenvalues are at least alpha, however small the weights are (W⁻¹ is never formed).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.spaces import Element, FeatureSpace, FunctionSpace, GramSpace, NystromSpace
from mercer.solvers import costs
from mercer.solvers.cholesky import CholeskyFactor

Matrix = NDArray[np.float64]
# Nyström systems of more multiply-adds than `costs.SAMPLED_FLOPS` use a sample of the rows, PER_CENTER for each centre.
PER_CENTER = 12


class System(ABC):
    """(A*WA + alpha) d = g: solved, exactly or nearly so.

    Attributes
    ----------
    exact : bool
        Whether the solution is exact to rounding; otherwise the system is a preconditioner.
    patience : float
        The system is used for further steps as long as each lowers the excess by this factor; the cheaper a new system
        is, the smaller is the factor.
    """

    exact: bool = True
    patience: float = 0.1

    @abstractmethod
    def solve(self, g: Element) -> Element:
        """d, with its values."""


class FeatureSystem(System):
    """By the Cholesky factor of ZᵀWZ + alpha, Z = [X, P], scaled to a unit diagonal; if it is singular, by its
    eigenvectors, which give the shortest of all solutions."""

    def __init__(self, space: FeatureSpace | NystromSpace, H: Matrix, alpha: float, *, exact: bool = True) -> None:
        self.space, self.exact = space, exact
        self.patience = 1e-3 if space.n * space.size**2 <= costs.CHEAP_FLOPS else 0.1
        H = H.copy()
        m = space.size
        if isinstance(space, FeatureSpace) and alpha == 0:  # a centred constant column is only rounding
            total = float(np.trace(H[m:, m:])) if len(H) > m else 0.0
            lost = np.flatnonzero(np.diagonal(H)[:m] <= (8 * np.finfo(float).eps * space.mean) ** 2 * total)
            H[lost], H[:, lost] = 0.0, 0.0
        H.flat[: m * len(H) : len(H) + 1] += alpha
        diagonal = np.diagonal(H).copy()
        self.scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        H *= self.scale
        H *= self.scale[:, None]
        self.H = H
        self.vectors: Matrix | None = None
        try:
            self.L = sla.cholesky(H, lower=True, check_finite=False)
            singular = np.diagonal(self.L).min(initial=1.0) ** 2 < 1e2 * len(H) * np.finfo(float).eps
        except np.linalg.LinAlgError:
            singular = True
        if singular:
            values, vectors = sla.eigh(H, check_finite=False)
            used = values > 1e2 * len(H) * np.finfo(float).eps * max(values[-1], 1e-300)
            self.vectors = vectors[:, used] / np.sqrt(values[used])

    @property
    def rank(self) -> int:
        return len(self.H) if self.vectors is None else self.vectors.shape[1]

    def seen_from(self, space: FeatureSpace | NystromSpace, *, exact: bool) -> FeatureSystem:
        """The same system for another set of points with nearly the same curvature."""
        other = copy(self)
        other.space, other.exact, other.patience = space, exact, 0.1
        return other

    def apply(self, G: Matrix) -> Matrix:
        """(ZᵀWZ + alpha)⁻¹ G, shape (size + p, t)."""
        G = self.scale[:, None] * G
        if self.vectors is not None:
            solved = self.vectors @ (self.vectors.T @ G)
        else:
            solved = sla.cho_solve((self.L, True), G, check_finite=False)
        return np.asarray(self.scale[:, None] * solved)

    def inverse(self) -> Matrix:
        """(ZᵀWZ + alpha)⁻¹, or the pseudo-inverse if it is singular."""
        return self.apply(np.eye(len(self.H)))

    def solve(self, g: Element) -> Element:
        d = self.apply(np.vstack([g.coef, g.tail]))
        m = self.space.size
        return self.space.element(d[:m], d[m:])


class Diagonal(System):
    """By the diagonal of ZᵀWZ + alpha alone, if there are too many features to factorise it."""

    exact = False

    def __init__(self, space: FeatureSpace, W: Matrix, alpha: float) -> None:
        self.space = space
        diagonal = space.diagonal(W)
        diagonal[: space.size] += alpha
        self.diagonal = np.where(diagonal > 0, diagonal, 1.0)[:, None]

    def solve(self, g: Element) -> Element:
        main, tail = self.diagonal[: self.space.size], self.diagonal[self.space.size :]
        return self.space.element(g.coef / main, g.tail / tail)


class GramSystem(System):
    """By the Cholesky factor of B = alpha I + √W K √W.

    With v the values of d: d = (g − W v)/alpha and B √W v = √W K g + alpha √W P b, where Pᵀ(d's coefficients) = 0:
    (√W v, −alpha b) solves the bordered system of B for (√W K g, the tail's part of g).
    """

    def __init__(self, space: GramSpace, W: Matrix, alpha: float, dtype: type = np.float64) -> None:
        self.space, self.alpha, self.exact = space, alpha, dtype is np.float64
        self.roots = np.sqrt(W)
        K = space.gram.fresh(dtype)
        s: NDArray[Any] = self.roots.astype(dtype)
        K *= s[:, None]
        K *= s
        self.factor = CholeskyFactor(K, alpha, self.roots, space.tail if space.tail.shape[1] else None)

    def solve(self, g: Element) -> Element:
        s = self.roots[:, None]
        values = self.space.penalised(g).values  # K g
        y, b = self.factor.bordered(s * values, g.tail)
        tail = np.zeros_like(g.tail) if b is None else -b / self.alpha
        return self.space.element((g.coef - s * y) / self.alpha, tail)

    def variances(self, K: Matrix, diagonal: Matrix, tail: Matrix) -> Matrix:
        """A_z H⁻¹ A_z* at m points from K = k(X, Z), (n, m), k(z, z), (m,), and the tail's functions there, (m, p).

        It is k(z, z) less the bordered quadratic form of √W k(X, z) and p(z), over alpha.
        """
        b = self.roots[:, None] * np.asarray(K, dtype=np.float64)
        return np.asarray((diagonal - self.factor.quadratic(b, tail.T)) / self.alpha, dtype=np.float64)


def factorise(space: FunctionSpace, W: Matrix, alpha: float, *, precise: bool = False) -> System:
    """The system of a space for these weights: exact if that is cheap or `precise`, else a preconditioner."""
    if isinstance(space, FeatureSpace):
        if space.size > costs.FACTORED_FEATURES and not precise:
            return Diagonal(space, W, alpha)
        return FeatureSystem(space, space.normal_matrix(W, precise=precise), alpha)
    if isinstance(space, NystromSpace):
        return _of_centres(space, W, alpha, precise)
    assert isinstance(space, GramSpace)
    if space.n > costs.FLOAT64_ROWS and not precise:
        try:
            return GramSystem(space, W, alpha, np.float32)
        except np.linalg.LinAlgError:
            pass  # float32 does not have enough digits
    try:
        return GramSystem(space, W, alpha)
    except np.linalg.LinAlgError:
        largest = float(np.abs(space.gram.diag()).max())
        raise InvalidInput(
            "`alpha` must be above the rounding of the kernel's values",
            got=f"alpha = {alpha:g} and k(x, x) up to {largest:.3g}, whose rounding is {largest * 2e-16 * space.n:.1g}",
            advice="Raise `alpha`, or centre and scale the columns.",
        ) from None


def _of_centres(space: NystromSpace, W: Matrix, alpha: float, precise: bool) -> FeatureSystem:
    """ΦᵀWΦ + alpha over all rows, or over a sample of them drawn by weight."""
    n, m, p = space.n, space.size, space.tail.shape[1]
    count = PER_CENTER * m
    if not precise and n * m**2 > costs.SAMPLED_FLOPS and count < n // 2 and W.sum() > 0:
        index = np.sort(np.random.default_rng(0).choice(n, count, p=W / W.sum()))
        Z = np.hstack([space.Phi.features(index), space.tail[index]])
        return FeatureSystem(space, float(W.sum()) / count * (Z.T @ Z).astype(np.float64), alpha, exact=False)
    H = np.empty((m + p, m + p))
    H[:m, :m] = space.Phi.normal_matrix(np.arange(n), np.sqrt(W))
    cross = space.Phi.adjoint(W[:, None] * space.tail)
    H[:m, m:], H[m:, :m], H[m:, m:] = cross, cross.T, space.tail.T @ (W[:, None] * space.tail)
    return FeatureSystem(space, H, alpha, exact=space.Phi.dtype == np.float64)
