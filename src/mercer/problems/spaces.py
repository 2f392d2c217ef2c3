"""Functions over which a loss is minimised: coefficients together with their values at the data.

A loss depends on a function only through its n values. So a method of descent needs one operation of a space of
functions f = Σ cⱼ φⱼ + Σ bⱼ pⱼ: the representer of a functional u ↦ Σᵢ Rᵢ u(xᵢ), the function whose inner product with
u is this sum. Explicit features, a Gram matrix and Nyström centres differ in nothing else:

* features: ⟨u, v⟩ = wᵀw', the representer of R is w = XᵀR, with values X XᵀR;
* a Gram matrix: ⟨u, v⟩ = cᵀKc', the representer of R is c = R itself (the solution lies in the span of the data);
* centres: β = Lᵀc, K_mm = L Lᵀ, features Φ = K_nm L⁻ᵀ that are never stored.

The tail's coefficients b (an intercept) are not penalised; in inner products they count by their squares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import memory, threads
from mercer.gram import Gram
from mercer.gram.lowrank import Nystrom

Matrix = NDArray[np.float64]
# The mean of this many rows stands for that of all. A column whose mean is this many spreads from zero is far from it.
SAMPLED, FAR = 4096, 30.0


class Element:
    """A function in t columns: coefficients (m, t), the tail's (p, t), and its values at the n points (n, t).

    The values are computed at their first use; sums of functions add the values of both if they are known.
    """

    def __init__(self, space: FunctionSpace, coef: Matrix, tail: Matrix, values: Matrix | None = None) -> None:
        self.space, self.coef, self.tail, self._values = space, coef, tail, values

    @property
    def values(self) -> Matrix:
        if self._values is None:
            self._values = self.space.evaluate(self.coef, self.tail)
        return self._values

    def plus(self, step: float, other: Element) -> Element:
        """self + step · other."""
        known = self._values is not None and other._values is not None
        values = self.values + step * other.values if known else None
        return Element(self.space, self.coef + step * other.coef, self.tail + step * other.tail, values)

    def times(self, factor: float) -> Element:
        values = None if self._values is None else factor * self._values
        return Element(self.space, factor * self.coef, factor * self.tail, values)


class FunctionSpace(ABC):
    """The functions that a loss is minimised over, and their geometry.

    Attributes
    ----------
    n, size : int
        The number of points, and of coefficients beside the tail.
    tail : array
        P, shape (n, p), the values of the functions that are not penalised; p may be 0.
    """

    n: int
    size: int
    tail: Matrix

    @abstractmethod
    def representer(self, R: Matrix) -> Element:
        """The function whose inner product with any u is Σ R∘u.values, for R of shape (n, t)."""

    def normal(self, v: Element, between: Callable[[slice, Matrix], Matrix]) -> Element:
        """A* between(A v), the representer of between(rows, v.values), which treats each row by itself."""
        return self.representer(between(slice(None), v.values))

    @abstractmethod
    def evaluate(self, coef: Matrix, tail: Matrix) -> Matrix:
        """The values of the function with these coefficients, shape (n, t)."""

    def element(self, coef: Matrix, tail: Matrix) -> Element:
        """The function with these coefficients."""
        return Element(self, coef, tail)

    @abstractmethod
    def restrict(self, index: NDArray[np.int64]) -> FunctionSpace:
        """The functions as seen from some of the points."""

    @abstractmethod
    def lift(self, u: Element, index: NDArray[np.int64]) -> Element:
        """A function of the space restricted to these points, as a function of this space."""

    @abstractmethod
    def _inner(self, u: Element, v: Element) -> float:
        """⟨u, v⟩ of the penalised parts."""

    def inner(self, u: Element, v: Element) -> float:
        """⟨u, v⟩, the tail included."""
        return self._inner(u, v) + float(np.vdot(u.tail, v.tail))

    def norm(self, u: Element) -> float:
        """√⟨u, u⟩."""
        return float(np.sqrt(max(self.inner(u, u), 0.0)))

    def squared_norm(self, u: Element) -> float:
        """‖f‖² as penalised: without the tail."""
        return max(self._inner(u, u), 0.0)

    def penalised(self, u: Element) -> Element:
        """The function without its tail."""
        if not len(u.tail):
            return u
        return Element(self, u.coef, np.zeros_like(u.tail))

    def zero(self, t: int) -> Element:
        return Element(self, np.zeros((self.size, t)), np.zeros((self.tail.shape[1], t)), np.zeros((self.n, t)))

    def constant(self, b: Matrix) -> Element:
        """The constant b, one value per column, if the tail's first function is 1."""
        zero = self.zero(len(b))
        tail = zero.tail.copy()
        tail[0] = b
        return Element(self, zero.coef, tail, zero.values + b)


class FeatureSpace(FunctionSpace):
    """f(x) = wᵀ(x − m) + b on explicit columns, dense or sparse.

    m is about the mean of the columns if there is an intercept (the tail, a column of ones) and they are dense: this
    keeps digits of columns far from zero, and w is the same. `intercept(u)` is b of wᵀx + b.

    >>> space = FeatureSpace(np.array([[0.0], [1.0], [5.0]]), np.ones((3, 1)))
    >>> u = space.representer(np.array([[1.0], [0.0], [0.0]]))
    >>> u.coef, space.inner(u, u), u.values[0]
    (array([[-2.]]), 5.0, array([5.]))
    """

    def __init__(self, X: Any, tail: Matrix, mean: Matrix | None = None, far: bool = False) -> None:
        self.X, self.tail = X, tail
        self.n, self.size = X.shape
        centred = not sp.issparse(X) and tail.shape[1] > 0
        self.mean, self.far = np.zeros(self.size) if mean is None else mean, far
        if centred and mean is None:
            some = np.asarray(X[:: max(1, self.n // SAMPLED)], dtype=np.float64)
            self.mean = some.mean(axis=0)
            self.far = bool((np.abs(self.mean) > FAR * some.std(axis=0)).any())
        self.height = int(np.clip(memory.CACHED // max(1, self.size), 64, max(64, -(-self.n // threads.n_threads()))))
        if self.n * self.size <= threads.WORTH_A_THREAD:
            self.height = max(1, self.n)

    def block(self, rows: slice) -> Matrix:
        """Rows of X in float64, not centred."""
        return np.asarray(self.X[rows], dtype=np.float64)

    def _over_rows(self, work: Callable[[slice, int], None]) -> None:
        """Call `work(rows, share)` on blocks of rows, over the threads if there are several blocks."""
        if self.height >= self.n:
            work(slice(0, self.n), 0)
        else:
            threads.stripes(self.n, work, rows=self.height)

    def _times(self, coef: Matrix) -> Matrix:
        if sp.issparse(self.X):
            return np.asarray(self.X @ coef)
        out = np.empty((self.n, coef.shape[1]))

        def work(rows: slice, share: int) -> None:
            np.matmul(self.block(rows), coef, out=out[rows])

        self._over_rows(work)
        return out

    def _adjoint(self, R: Matrix) -> Matrix:
        if sp.issparse(self.X):
            return np.asarray(self.X.T @ R)
        totals = threads.Totals((self.size, R.shape[1]))

        def work(rows: slice, share: int) -> None:
            totals[share] += self.block(rows).T @ R[rows]

        self._over_rows(work)
        return totals.sum()

    def evaluate(self, coef: Matrix, tail: Matrix) -> Matrix:
        values = self._times(coef)
        if not self.tail.shape[1]:
            return values  # nothing is centred
        values -= self.mean @ coef
        values += self.tail @ tail
        return values

    def representer(self, R: Matrix) -> Element:
        coef = self._adjoint(R)
        if not self.tail.shape[1]:
            return self.element(coef, self.tail.T @ R)
        total = R.sum(axis=0) if R.shape[1] > 1 else R.ravel().sum(keepdims=True)
        coef -= np.outer(self.mean, total)
        return self.element(coef, total[None])

    def normal_matrix(self, W: Matrix, *, precise: bool = True) -> Matrix:
        """[X − m, P]ᵀ diag(W) [X − m, P], shape (size + p, size + p).

        If not `precise`, the mean is subtracted at the end unless columns are far from zero: faster.
        """
        precise = precise or self.far
        p = self.tail.shape[1]
        if sp.issparse(self.X):
            Z = sp.hstack([self.X, self.tail]).tocsr() if p else self.X.tocsr()
            return np.asarray((Z.T @ Z.multiply(W[:, None])).todense(), dtype=np.float64)
        totals = threads.Totals((self.size + p, self.size + p))
        roots = np.sqrt(W)

        def work(rows: slice, share: int) -> None:
            Z = np.empty((rows.stop - rows.start, self.size + p))
            if precise:
                np.subtract(self.X[rows], self.mean, out=Z[:, : self.size])
                Z[:, : self.size] *= roots[rows, None]
            else:
                np.multiply(self.X[rows], roots[rows, None], out=Z[:, : self.size])
            np.multiply(self.tail[rows], roots[rows, None], out=Z[:, self.size :])
            totals[share] += Z.T @ Z

        self._over_rows(work)
        H = totals.sum()
        if not precise and p:
            H[: self.size] -= np.outer(self.mean, H[self.size])
            H[:, : self.size] -= np.outer(H[:, self.size], self.mean)
        return H

    def diagonal(self, W: Matrix) -> Matrix:
        """The diagonal of the normal matrix, without the rest, shape (size + p,)."""
        tail = np.square(self.tail).T @ W
        if sp.issparse(self.X):
            return np.concatenate([np.asarray(self.X.multiply(self.X).T @ W).ravel(), tail])
        totals = threads.Totals((self.size,))

        def work(rows: slice, share: int) -> None:
            totals[share] += W[rows] @ np.square(self.X[rows] - self.mean)

        self._over_rows(work)
        return np.concatenate([totals.sum(), tail])

    def unseen(self) -> Matrix:
        """An orthonormal basis of the weights that change no value at the points (up to a constant), shape (M, r)."""
        some = np.linspace(0, self.n - 1, min(self.n, 4 * self.size + 100)).astype(np.int64)
        basis = self.restrict(some)._flat()
        return basis if basis.shape[1] == 0 else self._flat()  # weights that change values at some rows do so at all

    def _flat(self) -> Matrix:
        M, H = self.size, self.normal_matrix(np.ones(self.n))
        if self.tail.shape[1]:  # the intercept absorbs constants
            H = H[:M, :M] - np.outer(H[:M, M], H[M, :M]) / H[M, M]
        size = np.sqrt(np.maximum(np.diagonal(H), 0.0))
        scale = 1.0 / np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(scale[:, None] * H * scale)
        flat = values <= 10 * M * np.finfo(float).eps * max(values[-1], 1.0)
        return np.linalg.qr(scale[:, None] * vectors[:, flat])[0]

    def joint(self, index: Any = slice(None)) -> Matrix:
        """[X − m, P] at some rows, as an array."""
        X = self.X[index]
        X = X.toarray() if sp.issparse(X) else X
        return np.hstack([X - self.mean, self.tail[index]])

    def intercept(self, u: Element) -> Matrix:
        """b of f(x) = wᵀx + b, one per column; 0 without a tail."""
        return u.tail[0] - self.mean @ u.coef if self.tail.shape[1] else np.zeros(u.coef.shape[1])

    def from_weights(self, coef: Matrix, intercept: Matrix) -> Element:
        """The function wᵀx + b."""
        tail = np.zeros((self.tail.shape[1], coef.shape[1]))
        if len(tail):
            tail[0] = intercept + self.mean @ coef
        return self.element(coef, tail)

    def restrict(self, index: NDArray[np.int64]) -> FeatureSpace:
        return FeatureSpace(self.X[index], self.tail[index], self.mean, self.far)

    def lift(self, u: Element, index: NDArray[np.int64]) -> Element:
        return self.element(u.coef, u.tail)

    def _inner(self, u: Element, v: Element) -> float:
        return float(np.vdot(u.coef, v.coef))


class GramSpace(FunctionSpace):
    """f = Σ cᵢ k(xᵢ, ·) + Σ bⱼ pⱼ on all n points, through their Gram matrix.

    >>> import mercer as mc
    >>> space = GramSpace(mc.gram.of(mc.Linear(), [[1.0], [2.0]]), np.zeros((2, 0)))
    >>> space.representer(np.array([[1.0], [1.0]])).values
    array([[3.],
           [6.]])
    """

    def __init__(self, gram: Gram, tail: Matrix) -> None:
        self.gram, self.tail = gram, tail
        self.n = self.size = gram.shape[0]

    def evaluate(self, coef: Matrix, tail: Matrix) -> Matrix:
        return np.asarray(self.gram @ coef + self.tail @ tail)

    def representer(self, R: Matrix) -> Element:
        return self.element(R, self.tail.T @ R)

    def restrict(self, index: NDArray[np.int64]) -> GramSpace:
        return GramSpace(self.gram.restrict(index), self.tail[index])

    def lift(self, u: Element, index: NDArray[np.int64]) -> Element:
        coef = np.zeros((self.n, u.coef.shape[1]))
        coef[index] = u.coef
        return self.element(coef, u.tail)

    def penalised(self, u: Element) -> Element:
        if not len(u.tail):
            return u
        # Through the values of u, which it keeps and inner products need.
        return Element(self, u.coef, np.zeros_like(u.tail), u.values - self.tail @ u.tail)

    def _inner(self, u: Element, v: Element) -> float:
        return float(np.vdot(u.coef, self.penalised(v).values))


class NystromSpace(FunctionSpace):
    """f = Σ cⱼ k(zⱼ, ·) + Σ bⱼ pⱼ on m centres, in whitened coordinates β = Lᵀc with ‖f‖ = ‖β‖."""

    def __init__(self, Phi: Nystrom, tail: Matrix) -> None:
        self.Phi, self.tail = Phi, tail
        self.n, self.size = Phi.shape

    def evaluate(self, coef: Matrix, tail: Matrix) -> Matrix:
        return self.Phi @ coef + self.tail @ tail

    def representer(self, R: Matrix) -> Element:
        return self.element(self.Phi.adjoint(R), self.tail.T @ R)

    def normal(self, v: Element, between: Callable[[slice, Matrix], Matrix]) -> Element:
        if v._values is not None:
            return super().normal(v, between)
        R = np.empty((self.n, v.coef.shape[1]))

        def collected(rows: slice, U: Matrix) -> Matrix:
            R[rows] = between(rows, U + self.tail[rows] @ v.tail)
            return R[rows]

        # Every block of K_nm is computed once for both products.
        return self.element(self.Phi.normal(v.coef, collected), self.tail.T @ R)

    def restrict(self, index: NDArray[np.int64]) -> FeatureSpace:
        """The features of these few points are stored."""
        features = np.ascontiguousarray(self.Phi.features(index))
        return FeatureSpace(features, self.tail[index], np.zeros(self.size))

    def lift(self, u: Element, index: NDArray[np.int64]) -> Element:
        return self.element(u.coef, u.tail)

    def _inner(self, u: Element, v: Element) -> float:
        return float(np.vdot(u.coef, v.coef))
