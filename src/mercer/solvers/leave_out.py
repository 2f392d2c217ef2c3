"""Approximate leave-one-out: the prediction of each row by the model fitted without it, from one Newton step.

Without row i the minimiser moves, to first order, by H₋ᵢ⁻¹ of that row's pull rᵢ, and the matrix inversion lemma gives

    η₋ᵢ = ηᵢ + hᵢ rᵢ / (1 − Wᵢ hᵢ),      h = diag(A (A*WA + alpha)⁻¹ A*),

exact for the squared loss. If the loss is not convex, a quadratic describes the other rows badly, and their curvature
changes on the way. Up to SEARCHED rows the first step has the same direction (Fisher's weights make H positive
definite), and its length minimises the risk without row i along it. For most rows that is the minimum. For the few rows
whose loss could still change by more than SETTLED, Newton's method continues with the curvature at the new point, by
conjugate gradients preconditioned with H₋ᵢ: one factorisation serves all rows.

With the log link a single step is cut if it leads far beyond all fitted values, where a quadratic is no longer an
approximation of the exponential.

With several classes W is diag(p) − ppᵀ and h is a matrix for each row. If there are too many weights for one H of all
classes, each class has its own, with the weights p(1 − p).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.gram import lapack
from mercer.problems.links import Log
from mercer.problems.losses import Deviance, Loss, Terms
from mercer.problems.risk import Risk, State
from mercer.problems.root_finding import find_roots
from mercer.problems.spaces import FeatureSpace, FunctionSpace, GramSpace, NystromSpace
from mercer.solvers.cg import Measure, iterate
from mercer.solvers.curvature import FeatureSystem, GramSystem, System, factorise
from mercer.solvers.newton import SURE as ACCURATE
from mercer.solvers.newton import TIRED
from mercer.solvers.smooth import MAX_ITER

Matrix = NDArray[np.float64]
# A row that decides more than this share of its own fitted value has no meaningful prediction without it.
SURE = 1 - 1e-9
# Up to this many weights of all classes together, H is factorised as one matrix; beyond it, class by class.
JOINT = 3000
# With the log link one step may lead this far beyond the range of all fitted values: a factor of e in the mean.
BEYOND = 1.0
# Up to SEARCHED rows, a risk that is not convex is minimised without each row, which takes n² losses for each step and
# a few times n³ multiplications, a few rows at a time. With more rows steps are small. No step is
# longer than FARTHEST times Newton's.
SEARCHED, FARTHEST = 4000, 1e3
# A left-out row is settled when its loss can change by no more than this share of itself and the mean loss of the fit.
# Then the sum over all rows, which is larger than that of the fit, is known to twice this share.
SETTLED = 0.01


def left_out_values(risk: Risk, state: State) -> Matrix:
    """η of every row by the function fitted without it, approximately, shape (n, t)."""
    weights = np.ones(len(risk.y)) if risk.weights is None else risk.weights
    eta, pull = risk.eta(state.at.values).copy(), weights[:, None] * state.terms.gradient
    t, P = eta.shape[1], state.terms.probabilities
    if P is None:
        if not risk.loss.convex and len(eta) <= SEARCHED:
            return eta + _searched(risk, state, weights)[:, None]
        second = state.terms.observed if risk.loss.convex else state.terms.fisher
        W = weights * second[:, 0]
        h = leverages(factorise(risk.space, W, risk.alpha, precise=True), W)
        step = h[:, None] * pull / (1.0 - np.minimum(W * h, SURE))[:, None]
        return eta + (_clipped(state.at.values, step) if _steep(risk.loss) else step)
    W = weights[:, None, None] * (P[:, :, None] * np.eye(t) - P[:, :, None] * P[:, None, :])
    if t * (risk.space.size + risk.space.tail.shape[1]) <= JOINT:
        h = _of_classes(_explicit(risk.space), W, risk.alpha)
        return eta + np.linalg.solve(np.eye(t) - SURE * (h @ W), h @ pull[:, :, None])[:, :, 0]
    for j in range(t):
        of_class = t / (t - 1) * np.ascontiguousarray(W[:, j, j])
        h = leverages(factorise(risk.space, of_class, risk.alpha, precise=True), of_class)
        eta[:, j] += h * pull[:, j] / (1.0 - np.minimum(of_class * h, SURE))
    return eta


def _searched(risk: Risk, state: State, weights: Matrix) -> Matrix:
    """Steps of η₋ᵢ, shape (n,): one along H⁻¹A*eᵢ to the least risk without row i, and more if that is not settled."""
    removal = _Removal(risk, state, weights)
    length, step, far = np.empty(removal.n), np.empty(removal.n), np.zeros(removal.n, dtype=bool)
    for part in threads.spans(removal.n, max(1, memory.CACHED // removal.n)):
        columns = _Columns(removal, np.arange(part.start, part.stop))
        length[part] = columns.first()
        step[part], far[part] = columns.moved, columns.unsettled(columns.gradient()[0])
    unsettled = np.flatnonzero(far)
    for part in threads.spans(len(unsettled), max(1, memory.CACHED // removal.n)):
        rows = unsettled[part]
        columns = _Columns(removal, rows)
        columns.go(length[rows])
        step[rows] = columns.settle()
    return step


class _Removal:
    """The risk without row i, around the minimum of all rows, where H = A*WA + alpha with Fisher's weights W.

    Functions are f + H⁻¹A*z, with the values η + V, V = C z and C = A H⁻¹A*. At f rows and penalty balance, hence the
    gradient of the risk without row i is A*q with

        q = w∘(loss'(η + V) − loss'(η)) + z − W∘V,      without loss'(η + V) of row i,

    and the second derivative takes H⁻¹A*s to A*(s + (w∘loss'' − W)∘C s). So n numbers stand for a function, a gradient
    or a direction, H⁻¹ of a gradient is the same n numbers, and a step costs a product with C.
    """

    def __init__(self, risk: Risk, state: State, weights: Matrix) -> None:
        self.loss, self.y, self.weights, self.n = risk.loss, risk.y, weights, len(risk.y)
        self.eta = risk.eta(state.at.values)[:, 0]
        self.W, self.pull = weights * state.terms.fisher[:, 0], weights * state.terms.gradient[:, 0]
        self.system = factorise(risk.space, self.W, risk.alpha, precise=True)
        self.typical = float(np.average(state.terms.value, weights=weights))
        self.Z: Matrix | None = None
        if isinstance(self.system, FeatureSystem):
            self.Z = np.concatenate([Z for _, Z in _joint(self.system.space, self.n)])

    def smoothed(self, R: Matrix) -> Matrix:
        """C R, shape (n, m)."""
        if isinstance(self.system, FeatureSystem):
            assert self.Z is not None
            return np.asarray(self.Z @ self.system.apply(self.Z.T @ R))
        assert isinstance(self.system, GramSystem)
        return self.system.solve(self.system.space.representer(R)).values

    def at(self, rows: NDArray[np.int64], z: Matrix, V: Matrix) -> tuple[Matrix, Terms]:
        """q without each of these rows, shape (n, m), and the loss at all n·m values, for row i at η itself."""
        each = np.arange(len(rows))
        E = self.eta[:, None] + V
        E[rows, each] = self.eta[rows]
        terms = self.loss.terms(np.repeat(self.y, len(rows)), E.reshape(-1, 1))
        R = terms.gradient.reshape(E.shape) * self.weights[:, None]
        R[rows, each] = 0.0
        return R - self.pull[:, None] + z - self.W[:, None] * V, terms


class _Columns:
    """The functions without row i, for some rows i; z and V have a column for each.

    H without row i differs from H in one row: C₋ᵢ = C + κ G Gᵀ, where G is column i of C and κ = Wᵢ/(1 − WᵢGᵢ).
    """

    def __init__(self, removal: _Removal, rows: NDArray[np.int64]) -> None:
        self.removal, self.rows, self.each = removal, rows, np.arange(len(rows))
        one = np.zeros((removal.n, len(rows)))
        one[rows, self.each] = 1.0
        self.G = removal.smoothed(one)
        self.z, self.V = np.zeros_like(self.G), np.zeros_like(self.G)

    def take(self, some: NDArray[np.int64]) -> _Columns:
        """Some of the columns."""
        taken = copy(self)
        taken.rows, taken.each = self.rows[some], np.arange(len(some))
        taken.G, taken.z, taken.V = self.G[:, some], self.z[:, some], self.V[:, some]
        return taken

    @property
    def moved(self) -> Matrix:
        """How far η₋ᵢ is from ηᵢ."""
        return self.V[self.rows, self.each]

    @property
    def h(self) -> Matrix:
        return self.G[self.rows, self.each]

    @property
    def share(self) -> Matrix:
        """Wᵢhᵢ, the leverage: the share of its own fitted value that a row decides, at most SURE."""
        return np.minimum(self.removal.W[self.rows] * self.h, SURE)

    def first(self) -> Matrix:
        """Go along H⁻¹A*eᵢ to the least risk, and return the lengths. They are searched in units of one Newton step."""
        pull, s, q = self.removal.pull[self.rows], np.zeros_like(self.G), np.zeros_like(self.G)
        newton = pull / (1.0 - self.share)
        s[self.rows, self.each], q[self.rows, self.each] = newton, -pull
        length = newton * self.least(q, s, self.G * newton)
        self.go(length)
        return length

    def go(self, length: Matrix) -> None:
        """Go to these lengths along H⁻¹A*eᵢ."""
        self.z[self.rows, self.each], self.V = length, self.G * length

    def gradient(self) -> tuple[Matrix, Matrix]:
        """q and w∘loss'' without row i, shape (n, m)."""
        q, terms = self.removal.at(self.rows, self.z, self.V)
        B = terms.observed.reshape(q.shape) * self.removal.weights[:, None]
        B[self.rows, self.each] = 0.0
        return q, B

    def least(self, q: Matrix, s: Matrix, S: Matrix) -> Matrix:
        """The length along each s, with the values S, at which the risk is least, shape (m,).

        It is found when the slope is below ACCURATE of the slope at q.
        """
        begin = np.einsum("ij,ij->j", q, S)
        down = np.flatnonzero(np.isfinite(begin) & (begin < 0))  # elsewhere rounding decides

        def slope(x: Matrix, index: NDArray[np.int64]) -> Matrix:
            """Along these columns at x; ∞ outside the domain of the loss and far away."""
            some = down[index]
            ahead = S[:, some]
            with np.errstate(all="ignore"):
                there, terms = self.removal.at(
                    self.rows[some], self.z[:, some] + x * s[:, some], self.V[:, some] + x * ahead
                )
                total = np.einsum("ij,ij->j", there, ahead)
            inside = np.isfinite(terms.value.reshape(there.shape)).all(axis=0) & np.isfinite(total) & (x < FARTHEST)
            return np.where(inside, np.where(np.abs(total) <= -ACCURATE * begin[some], 0.0, total), np.inf)

        # At the end of the domain the search ends inside, where the slope is smaller.
        x = np.zeros(len(begin))
        x[down] = find_roots(slope, np.zeros(len(down)), np.ones(len(down)), grow=True)
        return x

    def unsettled(self, q: Matrix) -> NDArray[np.bool_]:
        """Whether each row's loss may still change by more than SETTLED if the gradient is A*q.

        By Cauchy and Schwarz η₋ᵢ moves by at most √(C₋ᵢ at i) √(qᵀC₋ᵢq), if the curvature is that of H₋ᵢ.
        """
        return self._may_change(np.einsum("ij,ij->j", q, self._without(q)[1]))

    def _may_change(self, squared: Matrix) -> NDArray[np.bool_]:
        removal, share = self.removal, self.share
        left = np.sqrt(np.maximum(self.h / (1.0 - share) * squared, 0.0))
        y, at = removal.y[self.rows], removal.eta[self.rows] + self.moved
        with np.errstate(all="ignore"):
            here, less, more = (removal.loss.value(y, (at + way)[:, None]) for way in (0.0, -left, left))
            change = np.maximum(np.abs(less - here), np.abs(more - here))
            return ~(change <= SETTLED * (here + removal.typical)) & np.isfinite(here) & (share < SURE)

    def _without(self, q: Matrix) -> tuple[Matrix, Matrix]:
        """H₋ᵢ⁻¹A*q: as the n numbers s of H⁻¹A*s, and its values."""
        S = self.removal.smoothed(q)
        s, added = q.copy(), self.removal.W[self.rows] / (1.0 - self.share) * S[self.rows, self.each]
        s[self.rows, self.each] += added
        return s, S + added * self.G

    def settle(self) -> Matrix:
        """`moved` after the number of Newton's steps that each column needs."""
        moved, index, columns = self.moved, self.each, self
        for _ in range(MAX_ITER["newton"]):
            q, B = columns.gradient()
            far = np.flatnonzero(columns.unsettled(q))
            if not len(far):
                break
            index, columns, q = index[far], columns.take(far), q[:, far]
            s, S = columns._newton(q, B[:, far])
            x = columns.least(q, s, S)
            columns.z, columns.V = columns.z + x * s, columns.V + x * S
            moved[index] = columns.moved
            lower = np.flatnonzero(x > 0)
            index, columns = index[lower], columns.take(lower)
            if not len(index):
                break
        return moved

    def _newton(self, q: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
        """The s of Newton's steps and their values, by conjugate gradients with C₋ᵢ as preconditioner."""
        bend = B - self.removal.W[:, None]

        def multiply(p: _Functions) -> _Functions:
            assert p.values is not None
            return _Functions(p.columns, p.numbers + bend[:, p.columns] * p.values)

        def precondition(r: _Functions) -> _Functions:
            return _Functions(r.columns, *self.take(r.columns)._without(r.numbers))

        down = _Functions(self.each, -q)
        run = iterate(
            _Arithmetic(),
            multiply,
            down,
            precondition=precondition,
            tol=ACCURATE,
            max_iter=TIRED,
            measure=Measure.ENERGY,
        )
        s, S = run.X.numbers, run.X.values
        assert S is not None
        # A risk that bends down along the first direction already leaves a column at 0: that direction is a descent.
        still = ~s.any(axis=0)
        if run.flat and still.any():
            s[:, still], S[:, still] = self.take(np.flatnonzero(still))._without(-q[:, still])
        return s, S


@dataclass(frozen=True, eq=False)
class _Functions:
    """Functions H⁻¹A*s without row i, or gradients A*s: for these columns the n numbers s, and a function's values."""

    columns: NDArray[np.int64]
    numbers: Matrix
    values: Matrix | None = None


class _Arithmetic:
    """The arithmetic of `_Functions`, for conjugate gradients. Each inner product is of a gradient and a function."""

    def zero(self, like: _Functions) -> _Functions:
        return _Functions(like.columns, np.zeros_like(like.numbers), np.zeros_like(like.numbers))

    def inner(self, u: _Functions, v: _Functions) -> Matrix:
        numbers, values = (u.numbers, v.values) if u.values is None else (v.numbers, u.values)
        assert values is not None
        return np.asarray(np.einsum("ij,ij->j", numbers, values))

    def plus(self, u: _Functions, step: Matrix, v: _Functions) -> _Functions:
        values = None if u.values is None or v.values is None else u.values + step * v.values
        return _Functions(u.columns, u.numbers + step * v.numbers, values)

    def add(self, u: _Functions, which: NDArray[np.int64], step: Matrix, v: _Functions) -> _Functions:
        assert u.values is not None
        assert v.values is not None
        u.numbers[:, which] += step * v.numbers
        u.values[:, which] += step * v.values
        return u

    def take(self, u: _Functions, which: NDArray[np.bool_]) -> _Functions:
        return _Functions(u.columns[which], u.numbers[:, which], None if u.values is None else u.values[:, which])


def _steep(loss: Loss) -> bool:
    """Whether means grow exponentially with η, so that a step slightly too long gives a large error."""
    return isinstance(loss, Deviance) and isinstance(loss.link, Log)


def _clipped(values: Matrix, step: Matrix) -> Matrix:
    """The steps, cut so that no value leaves the range of the fitted values by more than BEYOND."""
    return np.clip(values + step, values.min() - BEYOND, values.max() + BEYOND) - values


def _explicit(space: FunctionSpace) -> FeatureSpace:
    """The same functions as weights of features."""
    if isinstance(space, GramSpace):
        values, vectors = lapack.eigh(space.gram.fresh(np.float64).T)
        used = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return FeatureSpace(vectors[:, used] * np.sqrt(values[used]), space.tail, np.zeros(np.count_nonzero(used)))
    if isinstance(space, NystromSpace):
        return space.restrict(np.arange(space.n))
    assert isinstance(space, FeatureSpace)
    return space


def _of_classes(space: FeatureSpace, W: Matrix, alpha: float) -> Matrix:
    """The blocks z (H⁻¹) zᵀ of all rows, shape (n, t, t), for W (n, t, t).

    Along the direction common to all classes H is alpha, or 0 for the tail. It has no effect: any value > 0 is allowed.
    """
    n, t, q = len(W), W.shape[1], space.size + space.tail.shape[1]
    H = np.empty((t, q, t, q))
    for a in range(t):
        for b in range(a + 1):
            sign = 1.0 if a == b else -1.0
            H[a, :, b, :] = sign * space.normal_matrix(sign * W[:, a, b])
            H[b, :, a, :] = H[a, :, b, :]
        H[a, np.arange(space.size), a, np.arange(space.size)] += alpha
    common = np.einsum("aqaq->q", H) / t**2
    for a in range(t):
        for b in range(t):
            H[a, np.arange(q), b, np.arange(q)] += common
    inverse = FeatureSystem(space, H.reshape(t * q, t * q), 0.0).inverse().reshape(t, q, t, q)
    h = np.empty((n, t, t))
    for rows in threads.spans(n, int(np.clip(2**18 // max(1, q), 16, 4096))):
        Z = space.joint(rows)
        for a in range(t):
            for b in range(t):
                h[rows, a, b] = np.einsum("ij,ij->i", Z @ inverse[a, :, b, :], Z)
    return h


def leverages(system: System, W: Matrix) -> Matrix:
    """h, shape (n,): the variance of η at every row if f has the prior variance alpha⁻¹."""
    if isinstance(system, GramSystem):
        return _of_gram(system, W)
    assert isinstance(system, FeatureSystem)
    space, inverse = system.space, system.inverse()
    h = np.empty(space.n)
    for rows, Z in _joint(space, int(np.clip(2**18 // max(1, space.size), 16, 4096))):
        h[rows] = np.einsum("ij,ij->i", Z @ inverse, Z)
    return np.maximum(h, 0.0)


def _joint(space: FeatureSpace | NystromSpace, step: int) -> Iterator[tuple[slice, Matrix]]:
    """The features of all rows with the tail, at most `step` rows at a time."""
    if isinstance(space, FeatureSpace):
        for rows in threads.spans(space.n, step):
            yield rows, space.joint(rows)
        return
    for rows, points in space.Phi.parts(np.arange(space.n), step):
        yield rows, np.hstack([space.Phi.features_of(points), space.tail[rows]])


def _of_gram(system: GramSystem, W: Matrix) -> Matrix:
    """From the diagonal of the inverse of B: W h = 1 − alpha B⁻¹ᵢᵢ; if W vanishes, from the variances themselves."""
    space: GramSpace = system.space
    safe = np.where(W > 0, W, 1.0)
    inverse = system.factor.diagonal() / safe  # (B⁻¹)ᵢᵢ with the tail projected out
    h = (1.0 - system.alpha * inverse) / safe
    doubtful = np.flatnonzero(W * space.gram.diag() < 1e-6 * system.alpha)
    diagonal = np.asarray(space.gram.diag(), dtype=np.float64)
    for part in threads.spans(len(doubtful), 256):
        rows = doubtful[part]
        h[rows] = system.variances(space.gram.rows(rows).T, diagonal[rows], space.tail[rows])
    return np.maximum(h, 0.0)
