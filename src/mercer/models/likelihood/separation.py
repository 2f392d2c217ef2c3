"""Data on which a likelihood has no maximum, because it grows without limit along some direction of the weights.

Such rows are separable: along the direction no row's loss increases, and for some rows it decreases for ever. A row's
*pull* is the size of its gradient, |∂loss/∂η|; at a minimum the pulls of all rows balance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from mercer.errors import InvalidInput
from mercer.problems.losses import Softmax
from mercer.problems.risk import Risk, State
from mercer.problems.spaces import FeatureSpace, FunctionSpace, NystromSpace
from mercer.solvers import smooth
from mercer.solvers.descent import Minimum
from mercer.validation import check_flag
from mercer.words import first_few

Matrix = NDArray[np.float64]
# A fit is suspected of separation if a row whose loss could decrease for ever has a pull below this share of the
# strongest (a remaining probability of 1e-5), or below this multiple of the remaining gradient, or if the loss of every
# row is below that of even odds.
SMALL_PULL, GRADIENTS, EVEN_ODDS = 1e-5, 10.0, np.log(2.0)
# A direction counts if it changes some η by this much, with weights within ±1 in units of their columns.
LEAST_MOVE = 1e-7
# Larger numbers are refused: sums of their squares would overflow.
LARGE = 1e151
# The proof by pulls is tried for at most this number of weights. It uses this number of rows per weight, those of the
# strongest pulls, then all rows, then all again after this number of further Newton steps.
PROOF_WEIGHTS, ROWS_PER_WEIGHT, FURTHER_STEPS = 2000, 20, 30


def require_numbers(model: Any, space: FunctionSpace, w: Matrix | None) -> None:
    """Raise if sums of squares of columns or weights would overflow, or `fit_intercept` is neither True nor False."""
    check_flag(model.fit_intercept, "fit_intercept")
    if w is not None and w.max() > LARGE:
        raise InvalidInput(
            f"`sample_weight` must be ≤ {LARGE:g}",
            got=f"{w.max():.3g}",
            advice="Divide the weights and `alpha` by the same number.",
        )
    if not isinstance(space, FeatureSpace) or not space.X.size:
        return
    # A cheap check of some rows comes first: numbers this large are hardly ever alone.
    if float(abs(space.X[:1000]).max()) <= 1e100:
        return
    scale = _scale(space)
    largest = 1.0 / float(scale[scale > 0].min(initial=np.inf))
    if largest > LARGE:
        raise InvalidInput(
            f"X must hold numbers within ±{LARGE:g}, whose squares can be summed",
            got=f"{largest:.3g}",
            advice="Scale the columns, for instance by their largest values.",
        )


class Separable(InvalidInput):
    """The rows can be separated by a direction of the weights, so the likelihood has no maximum.

    Attributes
    ----------
    direction : array
        The weights and, last, the intercept (if there is one), along which the likelihood grows without limit, shape (M
        + 1,), or (M + 1, k) for several classes.
    complete : bool
        Whether the direction separates every row, or only some of them (the others stay on the boundary).

    Examples
    --------
    >>> import mercer as mc
    >>> try:
    ...     model = mc.LogisticRegression(alpha=0.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    ... except mc.Separable as error:
    ...     print(error.complete, error.direction[0] > 0)
    True True
    """

    direction: Matrix
    complete: bool


def require_finite_minimum(risk: Risk, minimum: Minimum, classes: list[str] | None = None, names: Any = None) -> None:
    """Raise `Separable` if the loss without a penalty decreases for ever along a direction."""
    if risk.alpha > 0 or minimum.interrupted:
        return
    if minimum.converged and not _suspicious(risk, minimum.state):
        return
    separation = receding_direction(risk, minimum.state)
    if separation is None:
        return
    direction, complete = separation
    rows = "every row" if complete else "some rows, the others being on the boundary"
    what = f"the classes {first_few(classes, 4)}" if classes else "the rows"
    error = Separable(
        "`alpha` must be > 0 on data that a hyperplane separates: the likelihood has no maximum",
        got=f"alpha = 0 and {what} separated ({rows}) along {_main_columns(risk, direction, names)}",
        advice="Raise `alpha` (1e-3 is a weak penalty), or leave out the columns that give the answer away. "
        "The error's attribute `direction` holds the whole direction.",
    )
    error.direction, error.complete = direction, complete
    raise error


def _suspicious(risk: Risk, state: State) -> bool:
    """Whether the fit may have stopped on the way along a receding direction, judged by small pulls.

    Along such a direction rows move by mᵢ ≥ 0, and Σ |rᵢ| mᵢ is the component of the gradient along it. So their pulls
    r have become as small as the gradient, however large η is by then (7 for a probit corresponds to 10 for a logit).
    """
    if state.terms.value.max() < EVEN_ODDS:
        return True
    R, w = np.abs(state.terms.gradient), risk.weights
    if isinstance(risk.loss, Softmax):
        free = np.arange(R.shape[1]) != risk.y[:, None]
    else:
        free = np.logical_or(*map(np.isinf, risk.loss.recession(risk.y)))[:, None]
    if not free.any():
        return False
    pulls = R if w is None else w[:, None] * R
    least = pulls[free].min()
    if R[free].min() < SMALL_PULL * R.max():
        return True
    if not isinstance(risk.space, FeatureSpace):
        return True
    gradient = _scale(risk.space)[:, None] * _joint_gradient(risk.space, _weighted(risk, state))
    return bool(least < GRADIENTS * np.abs(gradient).sum())


def _scale(space: FeatureSpace) -> Matrix:
    """One over the largest absolute value of each column, and ones for the tail."""
    size = np.asarray(abs(space.X).max(axis=0).todense() if sp.issparse(space.X) else _largest(space.X)).ravel()
    # a column whose inverse would overflow changes nothing
    inverse = np.divide(1.0, size, out=np.zeros(len(size)), where=size > 1.0 / np.finfo(np.float64).max)
    return np.concatenate([inverse, np.ones(space.tail.shape[1])])


def _largest(X: Matrix) -> Matrix:
    return np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0)).astype(np.float64)


def _joint_gradient(space: FeatureSpace, R: Matrix) -> Matrix:
    """[X, P]ᵀ R, with columns that are not centred."""
    return np.vstack([np.asarray(space.X.T @ R), space.tail.T @ R])


def _main_columns(risk: Risk, direction: Matrix, names: Any) -> str:
    """The names of the columns that change η most along a direction."""
    m = risk.space.size
    each = np.abs(direction.reshape(len(direction), -1)).max(axis=1)[:m]
    if isinstance(risk.space, FeatureSpace):
        each = np.divide(each, _scale(risk.space)[:m], out=np.zeros(m), where=each > 0)
    labels = list(map(str, names)) if names is not None and len(names) == m else [f"column {j}" for j in range(m)]
    first = [j for j in np.argsort(-each, kind="stable")[:5].tolist() if each[j] > 1e-6 * each.max()]
    if direction.ndim > 1:
        return ", ".join(labels[j] for j in first)
    return ", ".join(f"{labels[j]} ({direction[j]:+.3g})" for j in first) or "the intercept"


def receding_direction(risk: Risk, state: State | None = None) -> tuple[Matrix, bool] | None:
    """Weights (and intercept) along which no row's loss rises and some row's falls for ever; and whether all fall.

    It is found by linear programs over weights within ±1 in units of their columns. With a kernel on centres the
    weights are the coefficients of the centres. Given the state at a minimum, the pulls mostly prove that there is no
    such direction, without a linear program.
    """
    space = risk.space
    if isinstance(space, NystromSpace):
        return _on_centres(risk, space, state)
    assert isinstance(space, FeatureSpace)
    if state is not None and risk.loss.convex and _proven(risk, space, state):
        return None
    moving, fixed, _ = _moves(risk, space, np.arange(space.n))
    if not moving.shape[0]:
        return None
    direction, complete = _direction(moving, fixed)
    if direction is None:
        return None
    k = risk.loss.outputs
    weights = direction.reshape(k, -1).T * _scale(space)[:, None]
    return (weights[:, 0] if k == 1 else weights), complete and (k > 1 or not fixed.shape[0])


def _proven(risk: Risk, space: FeatureSpace, state: State) -> bool:
    """Whether the pulls at a minimum prove that there is no receding direction: those of some rows, or of all rows.

    If not, the same is tried closer to the minimum.
    """
    m, k = len(_scale(space)), risk.loss.outputs
    if m * k > PROOF_WEIGHTS:
        return False
    for closer in (False, True):
        if closer:
            state = smooth.minimise(risk, "newton", start=state.at, tol=1e-8, max_iter=FURTHER_STEPS).state
        R = _weighted(risk, state)
        gradient = float(np.abs(_scale(space)[:, None] * _joint_gradient(space, R)).sum())
        rows, few = np.arange(space.n), ROWS_PER_WEIGHT * m
        if few < space.n:
            strongest = np.argpartition(-np.abs(R).max(axis=1), few)[:few]
            if _immovable(*_moves(risk, space, strongest, R), gradient):
                return True
        if _immovable(*_moves(risk, space, rows, R), gradient):
            return True
    return False


def _moves(
    risk: Risk, space: FeatureSpace, rows: NDArray[np.int64], R: Matrix | None = None
) -> tuple[sp.csr_array, sp.csr_array, Matrix]:
    """The changes of η of some rows, as matrices that act on weights in units of their columns; and the pulls.

    Along a receding direction the first must be ≥ 0, the second 0. With several classes they are the changes of the
    margins to each other class. If the gradients R are given, the second matrix also forbids adding the same weights to
    every class, which changes nothing.
    """
    X, tail = space.X[rows], space.tail[rows]
    joined = sp.hstack([sp.csr_array(X), tail]) if sp.issparse(X) else np.hstack([np.asarray(X, np.float64), tail])
    Z = sp.csr_array(sp.csr_array(joined) @ sp.diags_array(_scale(space)))
    if isinstance(risk.loss, Softmax):
        k = risk.loss.outputs
        y = risk.y[rows].astype(np.int64)
        others = [np.flatnonzero(y != j) for j in range(k)]
        moving = sp.csr_array(sp.vstack([_margins(Z, some, y[some], j, k) for j, some in enumerate(others)]))
        if R is None:
            return moving, sp.csr_array((0, moving.shape[1])), np.empty(0)
        shared = sp.csr_array(sp.hstack([sp.eye_array(Z.shape[1])] * k))
        return moving, shared, np.concatenate([np.abs(R[rows[some], j]) for j, some in enumerate(others)])
    lower, upper = risk.loss.recession(risk.y[rows])
    free = np.isinf(lower) | np.isinf(upper)
    signs = np.where(np.isinf(upper), 1.0, -1.0)
    moving = sp.csr_array(sp.diags_array(signs[free]) @ Z[np.flatnonzero(free)])
    return moving, Z[np.flatnonzero(~free)], np.empty(0) if R is None else np.abs(R[rows[free], 0])


def _weighted(risk: Risk, state: State) -> Matrix:
    R = state.terms.gradient
    return R if risk.weights is None else risk.weights[:, None] * R


def _immovable(moving: sp.csr_array, fixed: sp.csr_array, pull: Matrix, gradient: float) -> bool:
    """Whether no receding direction exists, because the pulls r ≥ 0 nearly balance at a minimum.

    Along a receding direction w within ±1 all moves m are ≥ 0, and Σ r m = |gᵀw| ≤ ‖g‖₁. Hence ‖r∘m‖₂ ≤ ‖g‖₁, and
    if the rows r∘z have no singular value as small as that, w is 0.
    """
    A = sp.csr_array(sp.vstack([sp.diags_array(pull) @ moving, pull.max(initial=0.0) * fixed]))
    H = np.asarray((A.T @ A).todense() if A.nnz < 0.1 * np.prod(A.shape) else A.toarray().T @ A.toarray())
    smallest, largest = np.linalg.eigvalsh(H)[[0, -1]]
    return bool(smallest > 1e-10 * largest and np.sqrt(smallest) > 10.0 * gradient)


def _on_centres(risk: Risk, space: NystromSpace, state: State | None) -> tuple[Matrix, bool] | None:
    """A receding direction of a fit on Nyström centres, as coefficients of the centres."""
    separation = receding_direction(replace(risk, space=space.restrict(np.arange(space.n))), state)
    if separation is None:
        return None
    direction, complete = separation
    return np.concatenate([space.Phi.coefficients(direction[: space.size]), direction[space.size :]]), complete


def _direction(moving: sp.csr_array, fixed: sp.csr_array) -> tuple[Matrix | None, bool]:
    """w within ±1 with moving w ≥ 0, not all of it 0, and fixed w = 0; and whether all of moving w > 0.

    The first linear program maximises the least move t; if that is 0, the second maximises the sum of the moves.
    """
    n, m = moving.shape
    rest = {"A_eq": fixed, "b_eq": np.zeros(fixed.shape[0])} if fixed.shape[0] else {}
    widened = {"A_eq": sp.hstack([fixed, sp.csr_array((fixed.shape[0], 1))]), "b_eq": rest["b_eq"]} if rest else {}
    goal = np.concatenate([np.zeros(m), [-1.0]])
    with_least = sp.hstack([-moving, np.ones((n, 1))])
    optimum = linprog(goal, A_ub=with_least, b_ub=np.zeros(n), bounds=[(-1, 1)] * m + [(0, None)], **widened).x
    if optimum is not None and optimum[-1] > LEAST_MOVE:
        return optimum[:-1], True
    optimum = linprog(-np.asarray(moving.sum(axis=0)).ravel(), A_ub=-moving, b_ub=np.zeros(n), bounds=(-1, 1), **rest).x
    if optimum is None or (moving @ optimum).max() <= LEAST_MOVE:
        return None, False
    return optimum, False


def _margins(Z: sp.csr_array, rows: NDArray[np.int64], codes: NDArray[np.int64], j: int, k: int) -> sp.csr_array:
    """zᵢᵀδ_y − zᵢᵀδⱼ of rows with classes y, as a matrix that acts on the weights of all classes, class by class."""
    count, m = len(rows), Z.shape[1]
    part = sp.coo_array(Z[rows])
    at_class = codes[part.coords[0]] * m + part.coords[1]
    at_other = j * m + part.coords[1]
    entries = (
        np.concatenate([part.data, -part.data]),
        (np.tile(part.coords[0], 2), np.concatenate([at_class, at_other])),
    )
    return sp.csr_array(entries, shape=(count, k * m))
