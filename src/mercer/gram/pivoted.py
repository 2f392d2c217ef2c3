"""K ≈ F Fᵀ from few of its columns: randomly pivoted Cholesky.

A pivot is drawn with probability proportional to the part of its diagonal entry that is not yet explained, so that
points far, in feature space, from the span of the earlier pivots come first. If the spectrum decays, the expected error
is near that of the best approximation of the same rank.

Chen, Epperly, Tropp and Webber, *Randomly pivoted Cholesky* (2023); the blocks with rejection: Epperly, Tropp and
Webber, *Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky* (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.data.points import Array
from mercer.errors import InvalidInput
from mercer.gram import costs
from mercer.gram.base import Gram
from mercer.validation import check_whole_number

# The rest of a diagonal entry counts as rounding below this many units in its last place.
ROUNDING = 100


@dataclass(frozen=True, eq=False)
class Pivoted:
    """A partial Cholesky factor, K ≈ F Fᵀ; the difference is positive semidefinite.

    Attributes
    ----------
    factor : array
        F, shape (n, k). F[pivots] is lower triangular up to rounding.
    pivots : array
        The positions of the chosen points, in order, shape (k,).
    residual : array
        diag(K − F Fᵀ) ≥ 0, shape (n,), zero at the pivots and where only rounding is left.
    trace : float
        Trace of K.
    """

    factor: Array
    pivots: NDArray[np.int64]
    residual: NDArray[np.float64]
    trace: float

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def error(self) -> float:
        """tr(K − F Fᵀ) / tr K."""
        return float(self.residual.sum() / self.trace) if self.trace > 0 else 0.0


def pivoted_cholesky(
    gram: Gram, rank: int, *, rng: np.random.Generator, tol: float = 0.0, block: int | None = None
) -> Pivoted:
    """F of at most `rank` columns with K ≈ F Fᵀ, from those columns of K and its diagonal only.

    Parameters
    ----------
    gram : Gram
        K, symmetric and positive semidefinite; float32 or float64, as F then is.
    rank : int
        Columns at most; fewer if the rest of K is rounding.
    rng : random.Generator
        The random number generator.
    tol : float
        Stop when tr(K − F Fᵀ) ≤ tol · tr K.
    block : int or None
        Pivots proposed at a time. They are drawn independently and kept by rejection, so that the law of the result is
        that of one pivot at a time, at the speed of matrix products.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> P = pivoted_cholesky(mc.gram.of(mc.Linear(), X), 10, rng=np.random.default_rng(1))
    >>> P.rank, bool(np.allclose(P.factor @ P.factor.T, X @ X.T))
    (3, True)
    """
    source = gram.recomputed() if gram.keeps else gram  # a Gram that keeps its entries would compute all of them first
    diagonal = gram.diag().astype(np.float64)
    block = min(block or costs.PIVOTS, source.rows_at_once)
    return by_rows(source.rows, diagonal, gram.dtype, rank, rng=rng, tol=tol, block=block)


def by_rows(
    rows: Callable[[Any], Array],
    diagonal: NDArray[np.float64],
    dtype: Any,
    rank: int,
    *,
    rng: np.random.Generator,
    tol: float = 0.0,
    block: int = costs.PIVOTS,
) -> Pivoted:
    """`pivoted_cholesky` of any matrix that is known by its diagonal and a function from positions to whole rows."""
    n = len(diagonal)
    check_whole_number(rank, "rank", such_as=100)
    if diagonal.min() < 0:
        raise InvalidInput(
            "The diagonal of a positive semidefinite matrix must be ≥ 0",
            got=f"{diagonal.min():.4g} at point {int(diagonal.argmin())}",
            advice="Run mc.check(kernel, X), which shows the violation.",
        )
    rank = min(rank, n)
    floor = ROUNDING * float(np.finfo(dtype).eps) * diagonal
    trace = float(diagonal.sum())
    residual = np.where(diagonal > floor, diagonal, 0.0)
    G = np.empty((rank, n), dtype)  # Fᵀ, so that a column of F is contiguous
    (trsm,) = blas.get_blas_funcs(("trsm",), (G,))
    pivots = np.empty(rank, np.int64)
    k = 0
    while k < rank and (left := residual.sum()) > tol * trace:
        proposed = rng.choice(n, size=min(block, n), p=residual / left)
        known = G[:k, proposed].T
        columns = rows(proposed)
        H = columns[:, proposed].astype(np.float64) - known.astype(np.float64) @ known.astype(np.float64).T
        accepted, L = _accept(H, residual[proposed], floor[proposed], rank - k, rng)
        if not len(accepted):  # the rest is rounding of the products, not a direction
            residual[proposed] = 0.0
            continue
        chosen = proposed[accepted]
        new = slice(k, k + len(chosen))
        rest = columns[accepted]
        rest -= known[accepted] @ G[:k]
        # F = rest L⁻ᵀ, on the Fortran-ordered transpose.
        G[new] = trsm(1.0, L.astype(dtype), rest.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        residual -= np.einsum("ij,ij->j", G[new], G[new], dtype=np.float64)
        residual[residual <= floor] = 0.0
        residual[chosen] = 0.0
        pivots[new] = chosen
        k += len(chosen)
    return Pivoted(G[:k].T, pivots[:k], residual, trace)


def _accept(
    H: NDArray[np.float64],
    proposal: NDArray[np.float64],
    floor: NDArray[np.float64],
    most: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The proposals to keep, and the Cholesky factor of the residual matrix H on them.

    Proposal i, drawn with weight h_ii at the start of the block, is kept with probability (h_ii now)/(h_ii at the
    start): then the kept ones are distributed as if each had been drawn after the one before.
    """
    b = len(H)
    L = np.zeros((b, b))
    kept: list[int] = []
    draws = rng.random(b)
    for i in range(b):
        k = len(kept)
        now = H[i, i] - L[i, :k] @ L[i, :k]
        if now <= max(draws[i] * proposal[i], floor[i]):
            continue
        L[i:, k] = (H[i:, i] - L[i:, :k] @ L[i, :k]) / np.sqrt(now)
        kept.append(i)
        if len(kept) == most:
            break
    chosen = np.array(kept, dtype=np.int64)
    return chosen, L[chosen, : len(kept)]
