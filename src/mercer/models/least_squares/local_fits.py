"""Radial interpolation for many points: each query gets the interpolant of its nearest points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from mercer import memory, threads
from mercer.errors import InvalidInput
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.vectors.radial import Radial
from mercer.kernels.vectors.splines import ConditionalKernel
from mercer.rkhs.tail import Singular, count, monomials
from mercer.words import first_few, show_count

Matrix = NDArray[np.float64]


class LocalFits:
    """At each query, the value of the interpolant of its k nearest points: one small bordered system per neighbourhood.

    Queries with the same neighbours share a system, and systems of one size are solved many at a time.

    Parameters
    ----------
    kernel : Similarity
        A kernel, or a conditionally positive definite function.
    X, y : array
        n points and their values, shapes (n, d) and (n, t).
    ridge : array
        Numbers that are added to the diagonal, shape (n,).
    k : int
        The number of neighbours.
    degree : int
        The degree of the polynomial, in coordinates in which each neighbourhood fills [−1, 1]; −1 for none.

    Examples
    --------
    >>> import mercer as mc
    >>> X = np.arange(100.0)[:, None]
    >>> LocalFits(mc.Polyharmonic(1), X, X**2, np.zeros(100), 2, 0)(np.array([[2.5]]))     # a straight line from 2 to 3
    array([[6.5]])
    """

    def __init__(self, kernel: Similarity, X: Matrix, y: Matrix, ridge: Matrix, k: int, degree: int) -> None:
        if count(X.shape[1], degree) > k:
            raise Singular(
                f"Every neighbourhood must determine the {show_count(count(X.shape[1], degree))} monomials of degree "
                f"{degree}",
                got=f"{k} neighbours",
                advice="Use more neighbours, or a lower degree.",
            )
        self.kernel, self.X, self.y, self.ridge, self.k, self.degree = kernel, X, y, ridge, k, degree
        self.tree = KDTree(X)

    def __call__(self, Z: Matrix) -> Matrix:
        _, index = self.tree.query(Z, self.k, workers=threads.n_threads())
        return self.values(Z, index.reshape(len(Z), self.k))

    def leave_one_out(self) -> Matrix:
        """At each of the n points, the value from its k nearest others."""
        n, k = len(self.X), min(self.k, len(self.X) - 1)
        _, index = self.tree.query(self.X, k + 1, workers=threads.n_threads())
        index = index.reshape(n, k + 1)
        itself = index == np.arange(n)[:, None]
        itself[~itself.any(axis=1), -1] = True  # among coinciding points it may be missing: leave out the last instead
        return self.values(self.X, index[~itself].reshape(n, k))

    def values(self, Z: Matrix, index: NDArray[np.int64]) -> Matrix:
        """f(z) from the points at `index`, shape (m, k), for each of m queries."""
        hoods, which = _distinct(np.sort(index, axis=1), len(self.X))
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(len(hoods) + 1))
        out = np.empty((len(Z), self.y.shape[1]))
        size = hoods.shape[1] + count(self.X.shape[1], self.degree)

        def work(span: slice, share: int) -> None:
            queries = order[starts[span.start] : starts[span.stop]]
            out[queries] = self._chunk(Z[queries], hoods[span], which[queries] - span.start)

        threads.stripes(len(hoods), work, rows=max(1, memory.CACHED // size**2))
        return out

    def _chunk(self, Z: Matrix, hoods: NDArray[np.int64], which: NDArray[np.int64]) -> Matrix:
        """The values at queries Z, of which query i has the interpolant of neighbourhood hoods[which[i]]."""
        X = self.X[hoods]
        low, high = X.min(axis=1, keepdims=True), X.max(axis=1, keepdims=True)
        shift, half = (low + high) / 2, (high - low) / 2
        scale = np.where(half > 0, half, 1.0)
        P = monomials((X - shift) / scale, self.degree)
        (b, k, p), t = P.shape, self.y.shape[1]
        M, rhs = np.zeros((b, k + p, k + p)), np.zeros((b, k + p, t))
        M[:, :k, :k] = similarities(self.kernel, X, X)
        M[:, np.arange(k), np.arange(k)] += self.ridge[hoods]
        M[:, :k, k:], M[:, k:, :k] = P, P.transpose(0, 2, 1)
        rhs[:, :k] = self.y[hoods]
        try:
            solved = np.linalg.solve(M, rhs)
        except np.linalg.LinAlgError:
            raise self._singular(M, P, hoods) from None
        row = similarities(self.kernel, Z[:, None], X[which])[:, 0]
        tail = monomials((Z - shift[which, 0]) / scale[which, 0], self.degree)
        return np.einsum("qj,qjt->qt", np.concatenate([row, tail], axis=1), solved[which])

    def _singular(self, M: Matrix, P: Matrix, hoods: NDArray[np.int64]) -> Singular:
        """Which neighbourhood has no unique interpolant, and why."""
        bad = next(i for i, system in enumerate(M) if _is_singular(system))
        tail, rows, p = P[bad], hoods[bad], P.shape[2]
        got = f"none for the neighbours {first_few(rows, 8)}"
        if p and np.linalg.matrix_rank(tail) < p:
            got += f", which do not determine the {p} monomials of degree {self.degree}"
        return Singular(
            "Every neighbourhood must have a unique interpolant",
            got=got,
            advice="Use more neighbours, a lower degree, or smoothing > 0 if points coincide.",
        )


def _is_singular(A: Matrix) -> bool:
    try:
        np.linalg.solve(A, A[:, :1])
    except np.linalg.LinAlgError:
        return True
    return False


def similarities(kernel: Similarity, A: Matrix, B: Matrix) -> Matrix:
    """k(a, b) within each of many pairs of small point sets: shapes (s, m, d) and (s, k, d) → (s, m, k)."""
    if not isinstance(kernel, Radial):
        return np.stack([kernel(a, b) for a, b in zip(A, B)])
    sigma = 1.0
    if np.ndim(kernel.sigma):
        A, B = A / kernel.sigma, B / kernel.sigma
    else:
        sigma = float(kernel.sigma)
    D = np.zeros((len(A), A.shape[1], B.shape[1]))
    for column in range(A.shape[2]):
        difference = A[:, :, None, column] - B[:, None, :, column]
        difference *= difference
        D += difference
    flat = D.reshape(-1, D.shape[2])
    kernel.from_squares(flat, sigma)
    require_finite(flat, kernel)
    return flat.reshape(D.shape)


def _distinct(index: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different rows of an index array, and which of them each row is.

    Rows are compared by random sums of 64 bits. If two different rows have the same sum, which is checked, they are
    compared entry by entry.
    """
    numbers = np.random.default_rng(0).integers(0, 2**63, size=n, dtype=np.uint64)
    _, first, which = np.unique(numbers[index].sum(axis=1), return_index=True, return_inverse=True)
    if not np.array_equal(index, index[first][which]):
        rows, which = np.unique(index, axis=0, return_inverse=True)
        return rows, which.reshape(-1)
    return index[first], which.reshape(-1)


def order_of(kernel: Similarity) -> int:
    """The order of conditional positive definiteness, 0 for a kernel; a smoothing weight is refused."""
    if isinstance(kernel, ConditionalKernel):
        return kernel.order
    if isinstance(kernel, Kernel):
        return 0
    raise InvalidInput(
        "An interpolating radial function must be (conditionally) positive definite",
        got=repr(kernel),
        advice="Use a function such as mc.Gaussian(1.0), mc.ThinPlate() or mc.Multiquadric(1.0).",
    )
