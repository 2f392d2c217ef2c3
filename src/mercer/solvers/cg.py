"""Preconditioned conjugate gradients, for several right-hand sides that share the products with the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.solvers.step import Progress, Step

TINY = float(np.finfo(np.float64).tiny)
Array = NDArray[Any]
Vector = TypeVar("Vector")
Linear = Callable[[Array], Array]
"""A linear map of the columns of an (n, t) array."""


class Measure(Enum):
    """The size of a residual r: its length ‖r‖; or √(rᵀM⁻¹r), which is the error in the norm of the matrix if M = A.

    ERROR is that error for any M, relative to the solution: rᵀA⁻¹r ≤ rᵀM⁻¹r/λ with λ the smallest eigenvalue of M⁻¹A,
    estimated by the smallest Ritz value of the iteration. It is computed once √(rᵀM⁻¹r) is within the tolerance.
    """

    LENGTH = "length"
    ENERGY = "energy"
    ERROR = "error"


class _Ritz:
    """The steps of an iteration as Lanczos' tridiagonal matrices, one per column, and its energy ‖x‖²_A."""

    def __init__(self, t: int) -> None:
        self.steps, self.turns = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
        self.energy = np.zeros(t)

    def add(self, step: NDArray[np.float64], rho: NDArray[np.float64]) -> None:
        self.steps.append(step)
        self.energy += step * rho

    def errors(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """√(rᵀM⁻¹r/λ)/‖x‖_A of every column."""
        errors = np.zeros(len(squares))
        for j, square in enumerate(squares):
            used = [k for k, step in enumerate(self.steps) if step[j] > 0]
            if square <= 0 or not used:
                continue
            step = np.array([self.steps[k][j] for k in used])
            turn = np.array([self.turns[k][j] for k in used[:-1]])
            diagonal = 1.0 / step
            diagonal[1:] += turn / step[:-1]
            least = sla.eigvalsh_tridiagonal(diagonal, np.sqrt(turn) / step[:-1], select="i", select_range=(0, 0))[0]
            errors[j] = np.sqrt(abs(square) / max(float(least), TINY) / max(self.energy[j], TINY))
        return errors


class Vectors(Protocol[Vector]):
    """The arithmetic of t vectors that are iterated on side by side."""

    def zero(self, like: Vector) -> Vector:
        """Zeros, which `add` may overwrite."""

    def inner(self, u: Vector, v: Vector) -> NDArray[np.float64]:
        """⟨u, v⟩ for each of them, shape (t,)."""

    def plus(self, u: Vector, step: NDArray[np.float64], v: Vector) -> Vector:
        """u + step∘v."""

    def add(self, u: Vector, which: NDArray[np.int64], step: NDArray[np.float64], v: Vector) -> Vector:
        """u, with step∘v added at these positions."""

    def take(self, u: Vector, which: NDArray[np.bool_]) -> Vector:
        """Some of them."""


class Columns:
    """The columns of arrays, kept in their dtype and in Fortran order: in another layout, sums would round differently.

    Inner products accumulate in float64.
    """

    def zero(self, like: Array) -> Array:
        return np.zeros_like(like, order="F")

    def inner(self, u: Array, v: Array) -> NDArray[np.float64]:
        return np.einsum("ij,ij->j", u, v, dtype=np.float64)

    def plus(self, u: Array, step: NDArray[np.float64], v: Array) -> Array:
        return np.asarray(u + step.astype(u.dtype) * v, order="F")

    def add(self, u: Array, which: NDArray[np.int64], step: NDArray[np.float64], v: Array) -> Array:
        u[:, which] += step.astype(u.dtype) * v
        return u

    def take(self, u: Array, which: NDArray[np.bool_]) -> Array:
        return np.asfortranarray(u[:, which])


@dataclass(frozen=True, eq=False)
class Iterate(Generic[Vector]):
    """The point that conjugate gradients reached.

    Attributes
    ----------
    X : array
        The solution, shape (n, t).
    iterations : int
        Products with the matrix.
    residual : array
        The size of b − AX relative to that of b, per column, as the recursion sees it, shape (t,).
    converged : bool
        Whether every column is within the tolerance.
    stopped : bool
        Whether `progress` stopped it.
    flat : bool
        Whether a direction without positive curvature ended a column: A is not positive definite to rounding.
    """

    X: Vector
    iterations: int
    residual: NDArray[np.float64]
    converged: bool
    stopped: bool = False
    flat: bool = False


@dataclass(frozen=True, eq=False)
class State(Generic[Vector]):
    """All that an iteration needs to continue: the same state gives the same iterates, to the last bit.

    Attributes
    ----------
    X, R, P : array
        Solution, residuals and directions.
    rho, sizes, reached : array
        The scalars of the recursion.
    active, go : array
        The columns that R and P hold, and which of them are not done.
    iterations, flat : int, bool
        As in `Iterate`.
    """

    X: Vector
    R: Vector
    P: Vector
    rho: NDArray[np.float64]
    sizes: NDArray[np.float64]
    reached: NDArray[np.float64]
    active: NDArray[np.int64]
    go: NDArray[np.bool_]
    iterations: int
    flat: bool


def conjugate_gradients(
    multiply: Linear,
    B: Array,
    *,
    precondition: Linear | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
    progress: Progress | None = None,
    measure: Measure = Measure.LENGTH,
    sizes: NDArray[np.float64] | None = None,
    together: bool = False,
    start: State[Array] | None = None,
    keep: Callable[[State[Array]], None] | None = None,
) -> Iterate[Array]:
    """A⁻¹B for a symmetric positive definite A that is known by its products only.

    Each column has its own coefficients, as if it were alone; converged columns leave the products. The vectors are
    kept in the dtype of B, inner products accumulate in float64.

    Parameters
    ----------
    multiply : Linear
        V ↦ A V for V of shape (n, k).
    B : Array
        Right-hand sides, shape (n, t), float32 or float64.
    precondition : Linear or None
        R ↦ M⁻¹R with M ≈ A symmetric positive definite.
    tol : float
        A column is done when the size of b − Ax is at most tol times that of b.
    max_iter : int
        The largest number of iterations.
    progress : Progress or None
        Called after every iteration.
    measure : Measure
        The size of a residual.
    sizes : array or None
        The sizes by which residuals are divided, shape (t,); by default those of B.
    together : bool
        Whether columns stay in the products until all are done, for a `multiply` that depends on the column.
    start : state or None
        A state at which to continue.
    keep : function or None
        Called after every iteration but the last with the state.

    Examples
    --------
    >>> A = np.diag([1.0, 2.0, 3.0])
    >>> result = conjugate_gradients(lambda V: A @ V, np.ones((3, 1)))
    >>> result.X[:, 0].round(6), result.iterations
    (array([1.      , 0.5     , 0.333333]), 3)
    """
    return iterate(
        Columns(),
        multiply,
        np.asarray(B, order="F"),
        precondition=precondition,
        tol=tol,
        max_iter=max_iter,
        progress=progress,
        measure=measure,
        sizes=sizes,
        together=together,
        start=start,
        keep=keep,
    )


def iterate(
    vectors: Vectors[Vector],
    multiply: Callable[[Vector], Vector],
    B: Vector,
    *,
    precondition: Callable[[Vector], Vector] | None = None,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
    measure: Measure = Measure.LENGTH,
    sizes: NDArray[np.float64] | None = None,
    together: bool = False,
    start: State[Vector] | None = None,
    keep: Callable[[State[Vector]], None] | None = None,
) -> Iterate[Vector]:
    """`conjugate_gradients` for vectors of any kind, such as functions, by their own arithmetic."""
    preconditioned = precondition or (lambda residual: residual)
    energy = measure is not Measure.LENGTH
    if start is None:
        start = _beginning(vectors, B, preconditioned, tol, energy=energy, sizes=sizes)
    X, R, P, rho, sizes, reached = start.X, start.R, start.P, start.rho, start.sizes, start.reached
    active, go, iterations, flat = start.active, start.go, start.iterations, start.flat
    ritz = _Ritz(len(active)) if measure is Measure.ERROR else None
    assert ritz is None or together, "the columns of ERROR stay together"
    Z = P
    while go.any() and iterations < max_iter:
        if not go.all() and not together:
            active, rho = active[go], rho[go]
            R, P = vectors.take(R, go), vectors.take(P, go)
        Q = multiply(P)
        curvature = vectors.inner(P, Q)
        iterations += 1
        # Rounding can make a step along an exhausted direction meaningless: such a column does not move.
        sane = (curvature > 0) & (rho > 0) & np.isfinite(curvature)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=sane)
        X = vectors.add(X, active, step, P)
        before, R = R, vectors.plus(R, -step, Q)
        if energy:
            Z = preconditioned(R)
        squares = vectors.inner(R, Z if energy else R)
        reached[active] = np.divide(
            np.sqrt(np.abs(squares)), sizes[active], out=np.zeros_like(squares), where=sizes[active] > 0
        )
        flat = flat or not sane.all()
        if ritz is not None:
            ritz.add(step, rho)
            if (reached <= tol).all():
                reached = ritz.errors(squares)
        state = Step(iteration=iterations, gap=float(reached.max()), tol=tol)
        if progress is not None and progress(state) is False:
            return Iterate(X, iterations, reached, bool((reached <= tol).all()), stopped=True, flat=flat)
        go = (reached[active] > tol) & sane
        if not go.any():
            break
        if not energy:
            Z = preconditioned(R)
        # Polak and Ribière's quotient: directions stay conjugate though float32 rounds A differently every time.
        old, rho = rho, squares if energy else vectors.inner(R, Z)
        turn = np.divide(rho - vectors.inner(before, Z), old, out=np.zeros_like(rho), where=old > 0)
        turn = np.maximum(turn, 0.0)
        P = vectors.plus(Z, turn, P)
        if ritz is not None:
            ritz.turns.append(turn)
        if keep is not None:
            keep(State(X, R, P, rho, sizes, reached, active, go, iterations, flat))
    return Iterate(X, iterations, reached, bool((reached <= tol).all()), flat=flat)


def _beginning(
    vectors: Vectors[Vector],
    B: Vector,
    preconditioned: Callable[[Vector], Vector],
    tol: float,
    *,
    energy: bool,
    sizes: NDArray[np.float64] | None,
) -> State[Vector]:
    """The state before the first iteration."""
    Z = preconditioned(B)
    rho = vectors.inner(B, Z)
    squares = rho if energy else vectors.inner(B, B)
    if sizes is None:
        sizes = np.sqrt(np.maximum(squares, 0.0))
    reached = np.divide(np.sqrt(np.abs(squares)), sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return State(vectors.zero(B), B, Z, rho, sizes, reached, np.arange(len(sizes)), reached > tol, 0, False)
