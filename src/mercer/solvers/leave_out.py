"""The prediction of each row without it: one Newton step from the minimum, by the curvature there.

Without row i the minimiser moves, to first order, by H₋ᵢ⁻¹ of that row's pull rᵢ, and the matrix inversion lemma gives

    η₋ᵢ = ηᵢ + hᵢ rᵢ / (1 − Wᵢ hᵢ),      h = diag(A (A*WA + alpha)⁻¹ A*),

exact for the squared loss. Where the loss is not convex, a quadratic knows too little of the others: up to SEARCHED
rows the step has the same direction (Fisher's weights make H positive definite), and its length is where the risk
without row i is least along it. With the log link a single step is cut where it leads far beyond all fitted values: a
quadratic knows nothing of the exponential there.

Of several classes W is diag(p) − ppᵀ, h a matrix for each row, and where there are too many weights for one H of all
classes, each class has its own, with the weights p(1 − p).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.gram import lapack
from mercer.kernels import tiling
from mercer.problems.families import roots
from mercer.problems.links import Log
from mercer.problems.losses import Deviance, Loss
from mercer.problems.risk import Risk, State
from mercer.problems.spaces import FeatureSpace, GramSpace, NystromSpace, Space
from mercer.solvers.curvature import FeatureSystem, GramSystem, System, system

Matrix = NDArray[np.float64]
# Above this share of itself a row decides its own value, and nothing is known without it.
SURE = 1 - 1e-9
# Up to this many weights of all classes together, H is factorised as it is.
JOINT = 3000
# With the log link one step may lead this far beyond the range of all fitted values: a factor of e in the mean.
BEYOND = 1.0
# Up to SEARCHED rows, losses that are not convex are searched along each step, which takes n² losses a time, ENTRIES of
# them in memory at once. More rows have small steps. No step is longer than FARTHEST of Newton's.
SEARCHED, ENTRIES, FARTHEST = 4000, 2**18, 1e3


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
        h = leverages(system(risk.space, W, risk.alpha, precise=True), W)
        step = h[:, None] * pull / (1.0 - np.minimum(W * h, SURE))[:, None]
        return eta + (_within(state.at.values, step) if _steep(risk.loss) else step)
    W = weights[:, None, None] * (P[:, :, None] * np.eye(t) - P[:, :, None] * P[:, None, :])
    if t * (risk.space.size + risk.space.tail.shape[1]) <= JOINT:
        h = _of_classes(_explicit(risk.space), W, risk.alpha)
        return eta + np.linalg.solve(np.eye(t) - SURE * (h @ W), h @ pull[:, :, None])[:, :, 0]
    for j in range(t):
        of_class = t / (t - 1) * np.ascontiguousarray(W[:, j, j])
        h = leverages(system(risk.space, of_class, risk.alpha, precise=True), of_class)
        eta[:, j] += h * pull[:, j] / (1.0 - np.minimum(of_class * h, SURE))
    return eta


def _searched(risk: Risk, state: State, weights: Matrix) -> Matrix:
    """Steps of η₋ᵢ, shape (n,): each to the least risk without row i along d = H⁻¹A*eᵢ, whose values are G = A d.

    At a length t the slope is Σ_{j ≠ i} wⱼ(loss'(ηⱼ + t Gⱼ) − loss'(ηⱼ)) Gⱼ + t alpha‖d‖² − rᵢ Gᵢ, for at t = 0 all
    rows balance the penalty, and alpha‖d‖² = Gᵢ − Σ Wⱼ Gⱼ². It is looked for in units of the one Newton step.
    """
    loss, n = risk.loss, len(risk.y)
    eta, gradient = risk.eta(state.at.values)[:, 0], state.terms.gradient[:, 0]
    W, pull = weights * state.terms.fisher[:, 0], weights * gradient
    held = system(risk.space, W, risk.alpha, precise=True)
    step = np.empty(n)
    for part in tiling.spans(n, max(1, ENTRIES // n)):
        out = np.arange(part.start, part.stop)
        G = _covariances(held, out)
        h = G[out, np.arange(len(out))]
        newton = pull[out] / (1.0 - np.minimum(W[out] * h, SURE))
        penalty = np.maximum(h - W @ G**2, 0.0)

        def slope(
            x: Matrix,
            columns: NDArray[np.int64],
            out: NDArray[np.int64] = out,
            G: Matrix = G,
            h: Matrix = h,
            newton: Matrix = newton,
            penalty: Matrix = penalty,
        ) -> Matrix:
            """Along each of these columns at x steps, > 0 beyond the least risk, where the domain ends or far away."""
            t, rows, slopes = x * newton[columns], out[columns], G[:, columns]
            E = eta[:, None] + t * slopes
            E[rows, np.arange(len(rows))] = eta[rows]
            with np.errstate(all="ignore"):
                terms = loss.terms(np.repeat(risk.y, len(rows)), E.reshape(-1, 1))
                change = weights[:, None] * (terms.gradient.reshape(E.shape) - gradient[:, None]) * slopes
                total = change.sum(axis=0) + t * penalty[columns] - pull[rows] * h[columns]
                inside = np.isfinite(terms.value.reshape(E.shape)).all(axis=0) & (x < FARTHEST)
            return np.where(inside & np.isfinite(total), np.sign(newton[columns]) * total, np.inf)

        step[out] = roots(slope, np.zeros(len(out)), np.ones(len(out))) * newton * h
    return step


def _covariances(held: System, rows: NDArray[np.int64]) -> Matrix:
    """A H⁻¹ A* between all rows and some, shape (n, m)."""
    if isinstance(held, FeatureSystem):
        Z = _joint(held.space, slice(0, held.space.n))
        return np.asarray(Z @ held.apply(np.ascontiguousarray(Z[rows].T)))
    assert isinstance(held, GramSystem)
    space, s = held.space, held.roots[:, None]
    K = np.asarray(space.gram.rows(rows), dtype=np.float64).T
    y, b = held.factor.bordered(s * K, space.tail[rows].T)
    C = K - space.gram @ (s * y)
    return np.asarray((C if b is None else C - space.tail @ b) / held.alpha, dtype=np.float64)


def _steep(loss: Loss) -> bool:
    """Whether means grow exponentially with η, so that a step that is too long by little is wrong by much."""
    return isinstance(loss, Deviance) and isinstance(loss.link, Log)


def _within(values: Matrix, step: Matrix) -> Matrix:
    """The steps, cut where they would lead out of the range of the fitted values by more than BEYOND."""
    return np.clip(values + step, values.min() - BEYOND, values.max() + BEYOND) - values


def _explicit(space: Space) -> FeatureSpace:
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

    H is 0 (of the tail) or alpha along what is the same for all classes, which changes nothing: it may be anything > 0.
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
    for rows in tiling.spans(n, int(np.clip(2**18 // max(1, q), 16, 4096))):
        Z = space.joint(rows)
        for a in range(t):
            for b in range(t):
                h[rows, a, b] = np.einsum("ij,ij->i", Z @ inverse[a, :, b, :], Z)
    return h


def leverages(held: System, W: Matrix) -> Matrix:
    """h, shape (n,): the variance of η at every row, were alpha⁻¹ that of f."""
    if isinstance(held, GramSystem):
        return _of_gram(held, W)
    assert isinstance(held, FeatureSystem)
    space, inverse = held.space, held.inverse()
    h = np.empty(space.n)
    for rows in tiling.spans(space.n, int(np.clip(2**18 // max(1, space.size), 16, 4096))):
        Z = _joint(space, rows)
        h[rows] = np.einsum("ij,ij->i", Z @ inverse, Z)
    return np.maximum(h, 0.0)


def _joint(space: FeatureSpace | NystromSpace, rows: slice) -> Matrix:
    if isinstance(space, FeatureSpace):
        return space.joint(rows)
    return np.hstack([space.Phi.features(np.arange(rows.start, rows.stop)), space.tail[rows]])


def _of_gram(held: GramSystem, W: Matrix) -> Matrix:
    """From the diagonal of the inverse of B: W h = 1 − alpha B⁻¹ᵢᵢ; where W vanishes, from the values themselves."""
    space: GramSpace = held.space
    safe = np.where(W > 0, W, 1.0)
    kept = held.factor.diagonal() / safe  # (B⁻¹)ᵢᵢ with the tail projected out
    h = (1.0 - held.alpha * kept) / safe
    doubtful = np.flatnonzero(W * space.gram.diag() < 1e-6 * held.alpha)
    diagonal = np.asarray(space.gram.diag(), dtype=np.float64)
    for part in tiling.spans(len(doubtful), 256):
        rows = doubtful[part]
        h[rows] = held.variances(space.gram.rows(rows).T, diagonal[rows], space.tail[rows])
    return np.maximum(h, 0.0)
