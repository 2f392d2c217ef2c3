"""Preconditioned conjugate gradients, for several right-hand sides that share the products with K."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Linear = Callable[[Array], Array]
"""A linear map of the columns of an (n, t) array."""


@dataclass(frozen=True)
class Step:
    """Where the iteration is, for `progress`: the largest relative residual of the columns so far, and its goal."""

    iteration: int
    residual: float
    tol: float

    def __str__(self) -> str:
        return f"iteration {self.iteration}: relative residual {self.residual:.1e}, wanted {self.tol:.1e}"


Progress = Callable[[Step], bool]
"""Called after every iteration; False ends the iteration there."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """What conjugate gradients reached.

    Attributes
    ----------
    X : the solution, shape (n, t).
    iterations : products with the matrix.
    residual : ‖b − AX‖/‖b‖ per column as the recursion sees it, shape (t,).
    converged : whether every column is within the tolerance.
    stopped : whether `progress` asked to stop.
    """

    X: Array
    iterations: int
    residual: NDArray[np.float64]
    converged: bool
    stopped: bool = False


def conjugate_gradients(
    multiply: Linear,
    B: Array,
    *,
    precondition: Linear | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> Iterate:
    """A⁻¹B for a symmetric positive definite A that is known by its products only.

    Each column has its own coefficients, as if it were alone; converged columns leave the products. The vectors are
    kept in the dtype of B, inner products accumulate in float64.

    Parameters
    ----------
    multiply : V ↦ A V for V of shape (n, k).
    B : right-hand sides, shape (n, t), float32 or float64.
    precondition : R ↦ M⁻¹R with M ≈ A symmetric positive definite.
    tol : a column is done when ‖b − Ax‖ ≤ tol ‖b‖.
    max_iter : iterations at most.
    progress : called after every iteration.

    >>> A = np.diag([1.0, 2.0, 3.0])
    >>> result = conjugate_gradients(lambda V: A @ V, np.ones((3, 1)))
    >>> result.X[:, 0].round(6), result.iterations
    (array([1.      , 0.5     , 0.333333]), 3)
    """
    precondition = precondition or (lambda R: R.copy())
    X = np.zeros_like(B, order="F")
    sizes = np.linalg.norm(B.astype(np.float64), axis=0)
    reached = np.where(sizes > 0, 1.0, 0.0)
    active = np.flatnonzero(sizes > 0)
    R = np.array(B[:, active], order="F")
    Z = precondition(R)
    P = np.array(Z, order="F")
    rho = _dots(R, Z)
    iterations = 0
    while len(active) and iterations < max_iter:
        Q = multiply(P)
        curvature = _dots(P, Q)
        iterations += 1
        # Rounding can make a step along an exhausted direction senseless: such a column stays where it is.
        sane = (curvature > 0) & (rho > 0) & np.isfinite(curvature)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=sane).astype(B.dtype)
        X[:, active] += step * P
        R -= step * Q
        reached[active] = np.linalg.norm(R.astype(np.float64, copy=False), axis=0) / sizes[active]
        if progress is not None and not progress(Step(iterations, float(reached.max()), tol)):
            return Iterate(X, iterations, reached, bool((reached <= tol).all()), stopped=True)
        go = (reached[active] > tol) & sane
        if not go.any():
            break
        if not go.all():
            active, R, P, rho = active[go], R[:, go], P[:, go], rho[go]
        Z = precondition(R)
        before, rho = rho, _dots(R, Z)
        P = Z + (rho / before).astype(B.dtype) * P
    return Iterate(X, iterations, reached, bool((reached <= tol).all()))


def _dots(A: Array, B: Array) -> NDArray[np.float64]:
    """The inner products of the columns, in float64."""
    return np.einsum("ij,ij->j", A, B, dtype=np.float64)
