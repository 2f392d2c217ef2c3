"""The kernel perceptron (lecture 002): f = Σ_{s ∈ S} yₛ k(xₛ, ·), where S are the examples it was wrong about.

It learns from one example after the other, but computes many at a time. The values of f at a chunk are one product with
the support set before the chunk; a loop over the kernel values within the chunk adds the changes by its mistakes. A
chunk of examples, or of queries, is given as its Gram, which has the matrix between its points and others. Everything
is float64, whatever the points are, so that every decision agrees with `values`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.rkhs.space import finite, joined
from mercer.solvers import costs
from mercer.threads import spans

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

LARGEST = float(np.finfo(np.float64).max)


def functions_of(classes: int) -> int:
    """The number of functions that separate the classes: one for two classes, else one each."""
    return 1 if classes == 2 else classes


def changes(codes: Index, guesses: Index, functions: int) -> Matrix:
    """The changes of the coefficients after mistakes, one row each: ±1, or 1 for the class and −1 for the guess."""
    if functions == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    D = np.zeros((len(codes), functions))
    D[np.arange(len(codes)), codes] = 1.0
    D[np.arange(len(codes)), guesses] = -1.0
    return D


def product(gram: Gram, others: Points, coef: Matrix) -> Matrix:
    """K(points, others)·coef in float64, for the points of the Gram."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = gram.between(gram.x, others, np.float64).multiply(coef)
    return finite(values, "Values of f")


class Learnt(NamedTuple):
    """The state of a perceptron: a new value after each chunk, so that an interrupt leaves one or the other.

    Attributes
    ----------
    segments : tuple of Points
        The support vectors, in the order in which they were added.
    rows, codes : Index
        Their positions in the stream and their classes, shape (s,).
    coef : array
        Their coefficients, shape (s, functions).
    late : array
        Σ time·(change of the coefficients), the time being the number of examples before; same shape.
    slots, guesses, times : Index
        For each update its support vector, the guessed class, and its time (voted only).
    seen, mistakes : int
        The number of examples so far, and of those on which f was wrong.
    """

    segments: tuple[Points, ...]
    rows: Index
    codes: Index
    coef: Matrix
    late: Matrix
    slots: Index
    guesses: Index
    times: Index
    seen: int = 0
    mistakes: int = 0

    @classmethod
    def nothing(cls, functions: int) -> Learnt:
        """f = 0."""
        none = np.empty(0, dtype=np.int64)
        zero = np.empty((0, functions))
        return cls((), none, none, zero, zero, none, none, none)

    def slots_of(self, rows: Index) -> Index:
        """The support vector that each row is, or −1."""
        if not len(self.rows) or rows.min() > self.rows[-1] == self.rows.max():
            return np.full(len(rows), -1)
        order = np.argsort(self.rows)
        at = np.minimum(np.searchsorted(self.rows, rows, sorter=order), len(order) - 1)
        return np.where(self.rows[order[at]] == rows, order[at], -1)

    def after(self, points: Points, rows: Index, codes: Index, guesses: Index, order: Index, voted: bool) -> Learnt:
        """The state after visiting the points in this order: guesses ≥ 0 were mistakes."""
        wrong = np.flatnonzero(guesses >= 0)
        seen, mistakes = self.seen + len(order), self.mistakes + len(wrong)
        if not len(wrong):
            return self._replace(seen=seen)
        at, times = order[wrong], self.seen + wrong
        D = changes(codes[at], guesses[wrong], self.coef.shape[1])
        slots = self.slots_of(rows[at])
        new = slots < 0
        slots[new] = len(self.rows) + np.arange(int(new.sum()))
        more = np.zeros((int(new.sum()), D.shape[1]))
        coef, late = np.concatenate([self.coef, more]), np.concatenate([self.late, more])
        coef[slots] += D
        late[slots] += times[:, None] * D
        segments = self.segments
        if new.any():
            fresh = points.take(at[new])
            if segments and segments[-1].n + fresh.n <= costs.SEGMENT_VECTORS:
                segments, fresh = segments[:-1], joined(segments[-1], fresh)
            segments = (*segments, fresh)
        learnt = self._replace(
            segments=segments,
            rows=np.concatenate([self.rows, rows[at[new]]]),
            codes=np.concatenate([self.codes, codes[at[new]]]),
            coef=coef,
            late=late,
            seen=seen,
            mistakes=mistakes,
        )
        if not voted:
            return learnt
        return learnt._replace(
            slots=np.concatenate([self.slots, slots]),
            guesses=np.concatenate([self.guesses, guesses[wrong]]),
            times=np.concatenate([self.times, times]),
        )


class OnlinePerceptron:
    """The perceptron that keeps every example it was wrong about.

    Parameters
    ----------
    classes : int
        The number of classes.
    variant : str
        "plain" for the last function, "averaged" for the mean of all functions on the way, "voted" for their votes.
    """

    chunk = costs.EXAMPLES

    def __init__(self, classes: int, variant: str = "plain") -> None:
        self.variant, self.functions = variant, functions_of(classes)
        self.learnt = Learnt.nothing(self.functions)
        self.anchor: Points | None = None  # the x with which f = 0 is written as 0·k(x, ·)

    @property
    def seen(self) -> int:
        return self.learnt.seen

    @property
    def mistakes(self) -> int:
        return self.learnt.mistakes

    @property
    def rows(self) -> Index:
        return self.learnt.rows

    def learn(self, gram: Gram, codes: Index, rows: Index) -> int:
        """Learn from a chunk of examples, in their order. Returns the number of mistakes."""
        from mercer._loops import perceptron as loops

        points = self._begin(gram)
        F = np.ascontiguousarray(self._sum(gram, self.learnt.coef).T)
        K = gram.fresh(np.float64)
        order, guesses = np.arange(points.n), np.empty(points.n, dtype=np.int64)
        mistakes: int = loops.sweep(K, order, codes, F, guesses)
        self.learnt = self.learnt.after(points, rows, codes, guesses, order, self.variant == "voted")
        return mistakes

    def passes(self, gram: Gram, codes: Index) -> Callable[[Index], int]:
        """A function that visits the points in an order, from f = 0 on, with their kernel matrix in memory."""
        from mercer._loops import perceptron as loops

        points = self._begin(gram)
        K, F = gram.fresh(np.float64), np.zeros((self.functions, points.n))
        rows = np.arange(points.n)

        def visit(order: Index) -> int:
            guesses = np.empty(len(order), dtype=np.int64)
            mistakes: int = loops.sweep(K, order, codes, F, guesses)
            self.learnt = self.learnt.after(points, rows, codes, guesses, order, self.variant == "voted")
            return mistakes

        return visit

    def values(self, gram: Gram) -> Matrix:
        """f at the m points of a Gram, shape (m, functions); for the voted perceptron, the mean vote."""
        return self._votes(gram) if self.variant == "voted" else self._sum(gram, self.coef)

    @property
    def coef(self) -> Matrix:
        """The coefficients of f, or of the mean of all functions on the way, shape (s, functions)."""
        learnt = self.learnt
        return learnt.coef if self.variant != "averaged" else learnt.coef - learnt.late / max(1, learnt.seen)

    def support(self) -> Points | None:
        """The support vectors, in the order in which they were added."""
        segments = self.learnt.segments
        return reduce(joined, segments) if segments else None

    def _begin(self, gram: Gram) -> Points:
        if self.anchor is None:
            self.anchor = gram.x.take(slice(0, 1))
        return gram.x

    def _sum(self, gram: Gram, coef: Matrix) -> Matrix:
        total, start = np.zeros((gram.shape[0], self.functions)), 0
        for segment in self.learnt.segments:
            total += product(gram, segment, coef[start : start + segment.n])
            start += segment.n
        return total

    def _votes(self, gram: Gram) -> Matrix:
        from mercer._loops import perceptron as loops

        learnt, support, points = self.learnt, self.support(), gram.x
        out = np.zeros((points.n, self.functions))
        lives = np.diff(learnt.times, prepend=0, append=learnt.seen).astype(np.float64)
        for span in spans(points.n, costs.EXAMPLES):
            K = np.zeros((span.stop - span.start, 1))
            if support is not None:
                K = gram.between(points.take(span), support, np.float64).fresh()
            loops.votes(K, learnt.slots, learnt.codes[learnt.slots], learnt.guesses, lives, out[span])
        return out / max(1, learnt.seen)


class PrimalPerceptron:
    """The perceptron on explicit features: weights W (functions, d) and constants b, and no support vectors.

    An intercept is one more column of ones: the kernel xᵀz + 1.
    """

    chunk = costs.PRIMAL_EXAMPLES

    def __init__(self, d: int, classes: int, variant: str, intercept: bool) -> None:
        self.variant, self.intercept, self.functions = variant, intercept, functions_of(classes)
        self.seen = self.mistakes = 0
        # W, b and their Σ time·change, in one array: a chunk makes a new one.
        self.weights = np.zeros((2, self.functions, d + 1))
        self.updates: list[Index] = []

    @property
    def rows(self) -> Index:
        """Positions of the examples it was wrong about, each once, in that order."""
        visited = np.concatenate([np.empty(0, dtype=np.int64), *self.updates])
        return visited[np.sort(np.unique(visited, return_index=True)[1])]

    def learn(self, X: Any, codes: Index, rows: Index) -> int:
        """Learn from rows of features, dense or CSR, in their order. Returns the number of mistakes."""
        from mercer._loops import perceptron as loops

        # |wᵀx| is at most the number of mistakes times the largest ‖x‖² ≤ d max |xₖ|², and no weight is larger.
        largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
        if not largest < np.sqrt((LARGEST / (self.seen + X.shape[0]) ** 2 - 1) / X.shape[1]):
            raise InvalidInput("‖x‖² must fit float64", got="an overflow", advice="Rescale the columns of X.")
        guesses = np.empty(X.shape[0], dtype=np.int64)
        parts = self.weights.copy()
        (W, late), (b, late_b) = (np.ascontiguousarray(p) for p in (parts[..., :-1], parts[..., -1:]))
        state = W, b, late, late_b, self.seen, int(self.intercept), guesses
        if sp.issparse(X):
            # The index type depends on the size of the matrix; the loop is compiled for one type.
            at = X.indices.astype(np.int64, copy=False), X.indptr.astype(np.int64, copy=False)
            mistakes: int = loops.sweep_sparse(X.data.astype(np.float64, copy=False), *at, codes, *state)
        else:
            mistakes = loops.sweep_rows(X, codes, *state)
        parts[0, :, :-1], parts[0, :, -1:], parts[1, :, :-1], parts[1, :, -1:] = W, b, late, late_b
        self.weights = parts
        if mistakes:
            self.updates.append(rows[guesses >= 0])
        self.seen, self.mistakes = self.seen + X.shape[0], self.mistakes + mistakes
        return mistakes

    @property
    def coef(self) -> Matrix:
        """The weights, and the constant last, shape (functions, d + 1)."""
        W, late = self.weights
        return W if self.variant != "averaged" else W - late / max(1, self.seen)

    def values(self, X: Any) -> Matrix:
        """f at m rows, shape (m, functions)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(np.asarray(X @ self.coef[:, :-1].T + self.coef[:, -1]), "Values of f")
