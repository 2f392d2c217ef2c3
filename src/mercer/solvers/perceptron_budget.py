"""Perceptrons on a budget: whatever the length of the stream, the state fits a fixed memory.

`Projectron` replaces an example by its projection on the span of the support set, if that is near or the budget is
spent. `Forgetron` forgets the oldest example, after all of them have shrunk so far that this does little harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from mercer import threads
from mercer.data.points import Points
from mercer.gram import Gram
from mercer.memory import budget as memory_budget
from mercer.memory import within
from mercer.rkhs.space import joined
from mercer.solvers import costs
from mercer.solvers.perceptron import Index, Matrix, functions_of, product


class Basis(NamedTuple):
    """The state of a Projectron: support vectors, their positions, and the coordinates of f in their span.

    Attributes
    ----------
    points, rows : Points or None, Index
        The support vectors (None if there are none yet) and their positions, shape (s,).
    W, late : array
        The coordinates of f, and Σ time·(their change), shape (functions, budget).
    numbers : array
        Examples seen, mistakes, the largest k(x, x), and a number that only the Forgetron uses.
    """

    points: Points | None
    rows: Index
    W: Matrix
    late: Matrix
    numbers: Matrix


class Queue(NamedTuple):
    """The state of a Forgetron: its support vectors, the oldest first.

    Attributes
    ----------
    points, rows : Points or None, Index
        The support vectors (None if there are none) and their positions, shape (s,).
    codes, others : Index
        Their classes and the guessed classes, shape (s,).
    coef, sigma : array
        Their coefficients, shape (functions, s), and the size of these, shape (s,).
    numbers : array
        Examples seen, mistakes, the largest k(x, x), and the cost of forgetting so far.
    """

    points: Points | None
    rows: Index
    codes: Index
    others: Index
    coef: Matrix
    sigma: Matrix
    numbers: Matrix


class Budgeted(ABC):
    """A perceptron whose support set is bounded: its state is `learnt`, its function Σ coef k(support, ·)."""

    functions: int
    learnt: Basis | Queue
    anchor: Points | None

    @property
    @abstractmethod
    def coef(self) -> Matrix:
        """The coefficients of f, shape (s, functions)."""

    @property
    def seen(self) -> int:
        return int(self.learnt.numbers[0])

    @property
    def mistakes(self) -> int:
        return int(self.learnt.numbers[1])

    @property
    def rows(self) -> Index:
        return self.learnt.rows

    def support(self) -> Points | None:
        return self.learnt.points

    def values(self, gram: Gram) -> Matrix:
        """f at the m points of a Gram, shape (m, functions)."""
        support = self.learnt.points
        if support is None:
            return np.zeros((gram.shape[0], self.functions))
        return product(gram, support, self.coef)


class Projectron(Budgeted):
    """Projectron++ with a hard budget, in an orthonormal basis of the span of the support set.

    With the Cholesky factor L of the support set's Gram matrix, φ(x) = L⁻¹k(x) are the coordinates of x's projection,
    and f(x) = wᵀφ(x): a perceptron with explicit features, whose number grows within the budget. The part outside the
    span has the squared length k(x, x) − ‖φ(x)‖².

    Parameters
    ----------
    classes : int
        The number of classes.
    budget : int
        The largest number of support vectors.
    eta : float
        A mistake whose part outside the span is at most this, in units of the largest √k(x, x), is projected.
    averaged : bool
        Whether f is the mean of all functions on the way.
    """

    chunk = costs.EXAMPLES
    learnt: Basis

    def __init__(self, classes: int, budget: int, eta: float, averaged: bool) -> None:
        self.functions, self.eta, self.averaged = functions_of(classes), eta, averaged
        within(16 * budget**2, memory_budget(), f"A budget of {budget:,} support vectors", "Lower `max_support`.")
        self.L = np.zeros((budget, budget))  # rows beyond the support set are not used yet
        self._inverse = np.empty((0, 0))  # of the rows in use, if it is known
        zero = np.zeros((self.functions, budget))
        self.learnt = Basis(None, np.empty(0, dtype=np.int64), zero, zero, np.zeros(4))
        self.anchor = None

    def learn(self, gram: Gram, codes: Index, rows: Index) -> int:
        """Learn from a chunk of examples, in their order. Returns the number of mistakes."""
        from mercer._loops import perceptron as loops

        points = gram.x
        self.anchor = self.anchor or points.take(slice(0, 1))
        n, s, budget = points.n, len(self.rows), len(self.L)
        basis = self.learnt
        phi = self._coordinates(gram)
        diagonal = gram.diag().astype(np.float64, copy=False)
        K = gram.fresh(np.float64) if s < budget else np.empty((1, 1))
        W, late, numbers = basis.W.copy(), basis.late.copy(), basis.numbers.copy()
        guesses, added = np.empty(n, dtype=np.int64), np.empty(min(n, budget - s) + 1, dtype=np.int64)
        size, mistakes = loops.project(
            phi, s, K, diagonal, codes, self.L, W, late, float(self.eta), numbers, guesses, added
        )
        support, where = basis.points, basis.rows
        if size > s:
            new = added[: size - s]
            fresh = points.take(new)
            support, where = fresh if support is None else joined(support, fresh), np.concatenate([where, rows[new]])
        self.learnt = Basis(support, where, W, late, numbers)
        return int(mistakes)

    @property
    def coef(self) -> Matrix:
        """The coefficients of f, shape (s, functions)."""
        s = len(self.rows)
        W = self.learnt.W - self.learnt.late / max(1, self.seen) if self.averaged else self.learnt.W
        if not s:
            return np.empty((0, self.functions))
        return np.asarray(solve_triangular(self.L[:s, :s], W[:, :s].T, lower=True, trans="T"))

    def _coordinates(self, gram: Gram) -> Matrix:
        """φ = L⁻¹k for every point, shape (n, budget), filled for the support set, else 0."""
        support, points, budget = self.learnt.points, gram.x, len(self.L)
        if support is None:
            return np.zeros((points.n, budget))
        s = support.n
        if len(self._inverse) != s:
            # Pivots are not small: the inverse is as accurate as solving, and a product is much faster.
            self._inverse = np.ascontiguousarray(lapack.dtrtri(self.L[:s, :s], lower=1)[0])
        K, inverse = gram.between(points, support, np.float64).fresh(), self._inverse
        phi = np.empty((points.n, budget)) if s == budget else np.zeros((points.n, budget))

        def work(rows: slice, share: int) -> None:
            for part in threads.spans(s, costs.TRIANGLE_ROWS):  # the inverse is 0 above its diagonal
                np.matmul(K[rows, : part.stop], inverse[part, : part.stop].T, out=phi[rows, part])

        threads.stripes(points.n, work)
        return phi

    def __getstate__(self) -> dict[str, Any]:
        used = slice(0, len(self.rows))
        return self.__dict__ | {"L": self.L[used, used], "budget": len(self.L), "_inverse": np.empty((0, 0))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        budget, L = state.pop("budget"), state["L"]
        state["L"] = np.zeros((budget, budget))
        state["L"][: len(L), : len(L)] = L
        self.__dict__.update(state)


class Forgetron(Budgeted):
    """The self-tuned Forgetron: after a mistake beyond the budget all coefficients shrink, and the oldest is removed.

    Parameters
    ----------
    classes : int
        The number of classes.
    budget : int
        The largest number of support vectors.
    """

    chunk = costs.EXAMPLES
    learnt: Queue

    def __init__(self, classes: int, budget: int) -> None:
        self.functions, self.budget = functions_of(classes), budget
        none = np.empty(0, dtype=np.int64)
        self.learnt = Queue(None, none, none, none, np.empty((self.functions, 0)), np.empty(0), np.zeros(4))
        self.anchor = None

    def learn(self, gram: Gram, codes: Index, rows: Index) -> int:
        """Learn from a chunk of examples, in their order. Returns the number of mistakes."""
        from mercer._loops import perceptron as loops

        points = gram.x
        self.anchor = self.anchor or points.take(slice(0, 1))
        known, n = self.learnt, points.n
        s = len(known.rows)
        pool = points if known.points is None else joined(known.points, points)
        K = gram.between(pool, None, np.float64).fresh()
        classes, others = np.concatenate([known.codes, codes]), np.concatenate([known.others, codes])
        sigma, C = np.zeros(s + n), np.zeros((self.functions, s + n))
        sigma[:s], C[:, :s] = known.sigma, known.coef
        queue, guesses = np.arange(s + n), np.empty(n, dtype=np.int64)
        numbers = known.numbers.copy()
        head, held, mistakes = loops.forget(
            K, np.diagonal(K).copy(), s, classes, others, sigma, C, queue, s, self.budget, numbers, guesses
        )
        if mistakes:
            left = queue[head : head + held]
            where = np.concatenate([known.rows, rows])[left]
            self.learnt = Queue(pool.take(left), where, classes[left], others[left], C[:, left], sigma[left], numbers)
        else:
            self.learnt = known._replace(numbers=numbers)
        return int(mistakes)

    @property
    def coef(self) -> Matrix:
        """The coefficients of f, shape (s, functions)."""
        return np.ascontiguousarray(self.learnt.coef.T)
