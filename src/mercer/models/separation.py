"""Data on which a likelihood has no maximum: a direction along which it rises for ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.errors import InvalidInput
from mercer.problems.losses import Softmax
from mercer.problems.risk import Risk, State
from mercer.problems.spaces import FeatureSpace, NystromSpace
from mercer.solvers.descent import Minimum

Matrix = NDArray[np.float64]
# Predictors beyond this are looked into: probabilities of 1e-5, means of a ten-thousandth of the smallest. So are fits
# whose every loss is below that of even odds.
SUSPICIOUS, EVEN = 10.0, np.log(2.0)
# A direction counts if it moves some predictor by this much, of weights within ±1 in units of their columns.
MOVES = 1e-7
# A row pulls strongly at a minimum if by this share of the strongest; so many weights may be asked what they move.
STRONG, WIDEST = 0.1, 2000


class Separable(InvalidInput):
    """Data that a direction separates, so that the likelihood has no maximum.

    Attributes
    ----------
    direction : the weights and, last, the intercept (where there is one), along which the likelihood rises for ever,
        shape (M + 1,), or (M + 1, k) of several classes.
    complete : whether it separates every row, or only some of them (the others stay on the border).

    >>> import mercer as mc
    >>> try:
    ...     model = mc.LogisticRegression(alpha=0.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    ... except mc.Separable as error:
    ...     print(error.complete, error.direction[0] > 0)
    True True
    """

    direction: Matrix
    complete: bool


def require_finite_minimum(risk: Risk, minimum: Minimum, classes: list[str] | None = None) -> None:
    """Raise `Separable` where the unpenalised loss falls for ever along a direction."""
    if risk.alpha > 0 or minimum.interrupted:
        return
    eta = risk.eta(minimum.state.at.values)
    if eta.shape[1] > 1:
        eta = eta - eta.mean(axis=1, keepdims=True)
    if minimum.converged and np.abs(eta).max() < SUSPICIOUS and minimum.state.terms.value.max() >= EVEN:
        return
    found = receding_direction(risk, minimum.state)
    if found is None:
        return
    direction, complete = found
    shown = np.array2string(direction.T.ravel()[:6], precision=3, suppress_small=True, separator=", ")
    shown = shown[:-1] + ", …]" if direction.size > 6 else shown
    last = ", the last the intercept's" if risk.space.tail.shape[1] else ""
    rows = "every row" if complete else "some rows, the others being on the border"
    what = f"the classes {', '.join(classes[:4])}" if classes else "the rows"
    error = Separable(
        "`alpha` must be > 0 on data that a hyperplane separates: the likelihood rises for ever",
        got=f"alpha = 0 and {what} separated ({rows}) by the weights {shown}{last}",
        advice="Raise `alpha` (1e-3 is a weak penalty), or leave out the columns that give the answer away.",
    )
    error.direction, error.complete = direction, complete
    raise error


def receding_direction(risk: Risk, state: State | None = None) -> tuple[Matrix, bool] | None:
    """Weights (and intercept) along which no row's loss rises and some row's falls for ever, and whether all do.

    Linear programs over weights within ±1 in units of their columns. With a kernel on centres the weights are the
    coefficients of these. The state of a minimum, where there is one, mostly proves without them that there is none.
    """
    space = risk.space
    if isinstance(space, NystromSpace):
        return _on_centres(risk, space, state)
    assert isinstance(space, FeatureSpace)
    X = sp.csr_array(space.X) if sp.issparse(space.X) else np.asarray(space.X, dtype=np.float64)
    size = np.asarray(abs(X).max(axis=0).todense() if sp.issparse(X) else np.abs(X).max(axis=0)).ravel()
    scale = np.concatenate([1.0 / np.where(size > 0, size, np.inf), np.ones(space.tail.shape[1])])
    joined = sp.hstack([X, space.tail]) if sp.issparse(X) else np.hstack([X, space.tail])
    Z = sp.csr_array(joined) @ sp.diags_array(scale)
    if isinstance(risk.loss, Softmax):
        k = risk.loss.outputs
        y = risk.y.astype(np.int64)
        others = [np.flatnonzero(y != j) for j in range(k)]
        moving = sp.csr_array(sp.vstack([_margins(Z, rows, y[rows], j, k) for j, rows in enumerate(others)]))
        fixed, every = sp.csr_array((0, moving.shape[1])), True
        shared = sp.csr_array(sp.hstack([sp.eye_array(Z.shape[1])] * k))  # the same added to every class moves nothing
        pull = (
            None
            if state is None
            else np.concatenate([_weighted(risk, state)[rows, j] for j, rows in enumerate(others)])
        )
    else:
        k = 1
        lower, upper = risk.loss.recession(risk.y)
        free = np.isinf(lower) | np.isinf(upper)
        signs = np.where(np.isinf(upper), 1.0, -1.0)
        moving = sp.csr_array(sp.diags_array(signs[free]) @ Z[np.flatnonzero(free)])
        fixed, every = Z[np.flatnonzero(~free)], bool(free.all())
        shared = sp.csr_array((0, Z.shape[1]))
        pull = None if state is None else _weighted(risk, state)[free, 0]
    if not moving.shape[0]:
        return None
    if pull is not None and risk.loss.convex and _still(moving, sp.csr_array(sp.vstack([fixed, shared])), np.abs(pull)):
        return None
    direction, complete = _direction(moving, fixed)
    if direction is None:
        return None
    weights = direction.reshape(k, -1).T * scale[:, None]
    return (weights[:, 0] if k == 1 else weights), complete and every


def _weighted(risk: Risk, state: State) -> Matrix:
    R = state.terms.gradient
    return R if risk.weights is None else risk.weights[:, None] * R


def _still(moving: sp.csr_array, fixed: sp.csr_array, pull: Matrix) -> bool:
    """Whether no direction can move any row, by the pulls r ≥ 0 that all but balance at a minimum.

    Along a receding direction w within ±1 all moves are ≥ 0, and their sum weighted by r is |gᵀw| ≤ ‖g‖₁. So rows of
    a large r move by ‖g‖₁/r at most; where these are of full rank, w is as short.
    """
    if moving.shape[1] > WIDEST:
        return False
    strong = np.flatnonzero(pull > STRONG * pull.max(initial=0.0))
    A = sp.csr_array(sp.vstack([moving[strong], fixed]))
    smallest, largest = np.linalg.eigvalsh((A.T @ A).toarray())[[0, -1]]
    slack = np.abs(moving.T @ pull).sum() / max(STRONG * pull.max(initial=0.0), 1e-300)
    longest = np.sqrt(len(strong)) * slack
    return bool(smallest > 1e-10 * largest and np.sqrt(smallest) > 10.0 * longest)


def _on_centres(risk: Risk, space: NystromSpace, state: State | None) -> tuple[Matrix, bool] | None:
    found = receding_direction(replace(risk, space=space.restrict(np.arange(space.n))), state)
    if found is None:
        return None
    direction, complete = found
    return np.concatenate([space.Phi.coefficients(direction[: space.size]), direction[space.size :]]), complete


def _direction(moving: sp.csr_array, fixed: sp.csr_array) -> tuple[Matrix | None, bool]:
    """w within ±1 with moving w ≥ 0, fixed w = 0 and not all of it 0, and whether all moving w > 0.

    First the greatest least move t, then, where that is 0, the greatest sum of moves.
    """
    n, m = moving.shape
    rest = {"A_eq": fixed, "b_eq": np.zeros(fixed.shape[0])} if fixed.shape[0] else {}
    widened = {"A_eq": sp.hstack([fixed, sp.csr_array((fixed.shape[0], 1))]), "b_eq": rest["b_eq"]} if rest else {}
    goal = np.concatenate([np.zeros(m), [-1.0]])
    with_least = sp.hstack([-moving, np.ones((n, 1))])
    found = linprog(goal, A_ub=with_least, b_ub=np.zeros(n), bounds=[(-1, 1)] * m + [(0, None)], **widened)
    if found.x is not None and found.x[-1] > MOVES:
        return found.x[:-1], True
    found = linprog(-np.asarray(moving.sum(axis=0)).ravel(), A_ub=-moving, b_ub=np.zeros(n), bounds=(-1, 1), **rest)
    if found.x is None or (moving @ found.x).max() <= MOVES:
        return None, False
    return found.x, False


def _margins(Z: sp.csr_array, rows: NDArray[np.int64], own: NDArray[np.int64], j: int, k: int) -> sp.csr_array:
    """zᵢᵀδ_y − zᵢᵀδⱼ of some rows as a matrix on all the classes' weights, class by class."""
    count, m = len(rows), Z.shape[1]
    part = sp.coo_array(Z[rows])
    at_own = own[part.coords[0]] * m + part.coords[1]
    at_other = j * m + part.coords[1]
    entries = (
        np.concatenate([part.data, -part.data]),
        (np.tile(part.coords[0], 2), np.concatenate([at_own, at_other])),
    )
    return sp.csr_array(entries, shape=(count, k * m))
