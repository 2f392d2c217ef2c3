"""How `refute` searches: look at a Gram matrix, make a violation small and round, confirm it.

Every matrix is scaled to unit diagonal and its smallest eigenvalue compared with what rounding can explain. Points
that are not needed are dropped, vectors are moved to where the violation is larger and then rounded to few digits,
and aᵀKa < 0 is confirmed in interval arithmetic with a vector a of small whole numbers.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels import candidates
from mercer.kernels.base import Similarity
from mercer.kernels.candidates import LARGEST, Matrix
from mercer.kernels.custom import FromFunction
from mercer.kernels.interval import Interval, exactly
from mercer.kernels.points import take

# A violation must exceed this many roundings of every kernel value before it is looked at.
ROUNDINGS = 64
# Up to this many points both k(x, z) and k(z, x) are evaluated.
BOTH_WAYS = 8


@dataclass(frozen=True)
class Found:
    """A confirmed counterexample: points, K on them, a, and a bound of aᵀKa. Without a: of the asymmetry."""

    points: Any
    gram: Matrix
    vector: NDArray[Any]
    value: float


class Search:
    """One search: the kernel, the budget, and what was spent of it."""

    def __init__(self, kernel: Similarity, seconds: float, trials: int | None, rng: np.random.Generator) -> None:
        self.kernel, self.rng, self.limit = kernel, rng, trials
        self.began = time.perf_counter()
        self.deadline = self.began + seconds
        self.trials = self.skipped = 0
        self.failure: Exception | None = None
        self.movable = False
        self.typical = 0.0
        self.errors = [leaf.error for leaf in kernel.leaves if isinstance(leaf, FromFunction)]
        self.unit = max(ROUNDINGS * float(np.finfo(np.float64).eps), *self.errors, 0.0)

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    @property
    def over(self) -> bool:
        return self.late or (self.limit is not None and self.trials >= self.limit)

    # -- where to look --------------------------------------------------------------------------------------------

    def vectors(self, dim: int | None) -> Found | None:
        """Structured points at all scales, then random ones that walk downhill."""
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1):
            raise InvalidInput("`dim` must be a whole number ≥ 1", got=repr(dim), advice="Say dim=2.")
        self.movable = True
        dims: list[int] = []
        for d in [2, 1, 3, *range(4, LARGEST + 1)] if dim is None else [int(dim)]:
            X = self.rng.standard_normal((4, d)).round(2)
            if len(dims) < 3 and any(self.probe(scale * X) for scale in (1.0, 0.125, 8.0)):
                dims.append(d)
        if not dims:
            raise self.useless()
        self.skipped = 0
        structured = ((X, 0) for X in candidates.structured(dims, self.rng))
        random = ((X, 20) for X in candidates.random(dims, self.rng))
        for X, steps in itertools.chain(structured, random):
            if self.over:
                break
            found = self.attempt(X, steps)
            if found is not None:
                return found
        return None

    def among(self, pool: Any, mutate: Callable[[Any], Any] | None = None) -> Found | None:
        """The objects of a pool, then the offspring of those that take most part in the smallest eigenvector.

        One look at the whole pool decides about all its subsets (Cauchy's interlacing theorem).
        """
        if not self.probe(take(pool, slice(0, BOTH_WAYS))) and not self.probe(pool):
            raise self.useless()
        X, whole = pool, len(pool) <= 4 * LARGEST
        while not self.over:
            if not whole:
                X = take(pool, np.sort(self.rng.choice(len(pool), 4 * LARGEST, replace=False)))
            found = self.attempt(X)
            if found is not None or (mutate is None and whole):
                return found
            if mutate is not None:
                K = self.gram(X)
                keep = _usable(K)
                part = np.abs(np.linalg.eigh(K[np.ix_(keep, keep)])[1][:, 0])
                best = [X[i] for i in keep[np.argsort(-part)][: LARGEST // 4]]
                X = list(dict.fromkeys([*best, *(mutate(x) for x in best for _ in range(6))]))[:LARGEST]
        return None

    # -- evaluation -----------------------------------------------------------------------------------------------

    def gram(self, X: Any) -> Matrix:
        """K on X, NaN where the kernel fails; of few points both triangles are evaluated."""
        both = len(X) <= BOTH_WAYS
        if self.errors:
            return self._pairs(X, both)
        try:
            K = self.kernel(X, X) if both else self.kernel(X)
        except Exception as error:
            self._note(error)
            return np.full((len(X), len(X)), np.nan)
        self.unit = max(self.unit, ROUNDINGS * float(np.finfo(K.dtype).eps))
        return K.astype(np.float64)

    def _pairs(self, X: Any, both: bool) -> Matrix:
        """The same with a Python function, which may be slow, or fail at some pairs only, and in any way."""
        n, k = len(X), self.kernel
        K = np.full((n, n), np.nan)
        for i in range(n):
            if i > BOTH_WAYS and self.late:
                break
            for j in range(n if both else i + 1):
                try:
                    K[i, j] = k.value(X[i], X[j]) if isinstance(k, FromFunction) else k([X[i]], [X[j]])[0, 0]
                except Exception as error:
                    self._note(error)
        return K if both else np.tril(K) + np.tril(K, -1).T

    def _note(self, error: Exception) -> None:
        self.skipped += 1
        self.failure = self.failure or error

    def probe(self, X: Any) -> bool:
        """Whether the kernel gives any number on X; it must give the same one twice."""
        K, again = self.gram(X), self.gram(X)
        known = np.isfinite(K) & np.isfinite(again)
        differ = np.argwhere(known & (again != K))
        if len(differ):
            i, j = differ[0]
            raise InvalidInput(
                "A kernel must give the same value for the same points",
                got=f"{K[i, j]:.10g} and then {again[i, j]:.10g} for x = {show(X[i])}, z = {show(X[j])}",
                advice="Take randomness and state out of the function.",
            )
        if self.errors and self.typical == 0 and known.any():
            # A function that subtracts numbers of this order errs by as much, however small their difference is.
            self.typical = float(np.abs(K[known]).max())
        return bool(known.any())

    def useless(self) -> InvalidInput:
        return InvalidInput(
            "The kernel must give a finite number for some points",
            got=f"none in {self.skipped} evaluations; the first failed with {self.failure!r}",
            advice="Say what the points are: dim=, space='sets' or 'strings', or points=[...] to choose from.",
        )

    # -- one trial ------------------------------------------------------------------------------------------------

    def attempt(self, X: Any, steps: int = 0) -> Found | None:
        """Examine the Gram matrix of X, after so many steps downhill, and make the most of a violation."""
        self.trials += 1
        K = self.gram(X)
        keep = _usable(K)
        if not len(keep):
            return None
        X, K = _some(X, K, keep)
        gap = np.abs(K - K.T) - self.unit * (np.abs(K) + np.abs(K.T))
        if gap.max() > 0:
            return self._asymmetry(*_some(X, K, np.sort(np.unravel_index(int(gap.argmax()), gap.shape))))
        noise = self.unit * max(float(np.abs(K).max()), self.typical)
        if steps:
            X, K = self.walk(X, K, noise, steps)
        if self.depth(K, noise)[0] >= 0:
            return None
        X, K = _some(X, K, self.shrink(K, noise))
        return self.confirm(*self.polish(X, K, noise), noise) or self.confirm(X, K, noise)

    def depth(self, K: Matrix, noise: float) -> tuple[float, Matrix]:
        """The smallest eigenvalue of K, scaled and beyond rounding: < 0 is a violation. And the vector a to it.

        K plus its rounding noise is scaled to unit diagonal, C = D⁻¹KD⁻¹, so that points of all sizes count alike. The
        entries of C are off by at most `unit`, hence its eigenvalues by at most n·unit (Weyl).
        """
        n = len(K)
        scale = np.sqrt(np.maximum(np.diagonal(K) + noise, noise))
        C = (K + noise * np.eye(n)) / scale / scale[:, None]
        if not np.isfinite(C).all():
            return math.inf, np.zeros(n)
        values, vectors = np.linalg.eigh((C + C.T) / 2)
        return float(values[0]) + n * self.unit, vectors[:, 0] / scale

    def shrink(self, K: Matrix, noise: float) -> NDArray[np.intp]:
        """A few points among which there still is a violation, and none without any one of them."""
        sizes = np.maximum(np.diagonal(K) + noise, noise)
        alone = -np.diagonal(K) - 2 * noise
        if alone.max() > 0:
            return np.flatnonzero(alone >= alone.max() / 3)[:1]
        excess = np.abs(K) - (1 + 2 * self.unit) * np.sqrt(np.multiply.outer(sizes, sizes))
        np.fill_diagonal(excess, 0.0)
        if excess.max() > 0:
            return np.sort(np.argwhere(excess >= excess.max() / 3)[0])

        def depth(index: NDArray[np.intp]) -> float:
            return self.depth(K[np.ix_(index, index)], noise)[0]

        order = np.argsort(-np.abs(self.depth(K, noise)[1]) * np.sqrt(sizes))
        keep = next((order[:n] for n in (3, 4, 6, 8, 12, 16, 24, 32, 48) if depth(order[:n]) < 0), order)
        while len(keep) > 1:
            rests = [np.delete(keep, i) for i in range(len(keep))]
            depths = [depth(rest) for rest in rests]
            if min(depths) >= 0:
                break
            keep = rests[int(np.argmin(depths))]
        return np.sort(keep)

    def walk(self, X: Matrix, K: Matrix, noise: float, steps: int) -> tuple[Matrix, Matrix]:
        """Move vectors at random, keep what lowers the depth, and drop points as soon as they are not needed."""
        lowest, step = self.depth(K, noise)[0], 0.2 * float(np.abs(X).max())
        for _ in range(steps):
            if self.late:
                break
            Y = X + step * self.rng.standard_normal(X.shape) * (self.rng.random((len(X), 1)) < 0.5)
            L = self.gram(Y)
            now = self.depth(L, noise)[0] if np.isfinite(L).all() else math.inf
            if now >= lowest:
                step *= 0.85
                continue
            if now < 0:
                Y, L = _some(Y, L, self.shrink(L, noise))
            X, K, lowest, step = Y, L, self.depth(L, noise)[0], step * 1.5
        return X, K

    def polish(self, X: Any, K: Matrix, noise: float) -> tuple[Any, Matrix]:
        """Vectors with few digits that violate at least half as much."""
        if not self.movable or not X.any():
            return X, K
        if len(X) > 2:
            X, K = self.walk(X, K, noise, min(60, 600 // len(X)))
        goal = self.depth(K, noise)[0] / 2
        size = math.ceil(math.log10(np.abs(X).max()))
        for digits, part in itertools.product(range(-size, 15 - size), (1, 2)):
            Y = np.round(X * part, digits) / part + 0.0
            L = self.gram(Y)
            if np.isfinite(L).all() and self.depth(L, noise)[0] <= goal:
                return _some(Y, L, self.shrink(L, noise))
        return X, K

    # -- confirmation ---------------------------------------------------------------------------------------------

    def enclose(self, X: Any) -> list[list[Interval]]:
        """K on X, surely; values of a Python function are off by its error times their usual size, or their own."""
        exact = [tuple(Fraction(float(v)) for v in x) if is_vector(x) else x for x in X]
        slack = exactly(0) + Fraction(max(self.errors, default=0.0)) * Fraction(self.typical) * Interval(-1, 1)
        return [[self.kernel.enclose(x, z) + slack for z in exact] for x in exact]

    def _asymmetry(self, X: Any, K: Matrix) -> Found | None:
        (_, forth), (back, _) = self.enclose(X)
        gap = _below(max(forth.lower - back.upper, back.lower - forth.upper))
        return Found(X, K, np.empty(0), gap) if gap > 0 else None

    def confirm(self, X: Any, K: Matrix, noise: float) -> Found | None:
        """The first of the roundest vectors a for which aᵀKa < 0 for sure."""
        try:
            E = self.enclose(X)
        except Exception as error:
            self._note(error)
            return None
        for a in _vectors(K, self.depth(K, noise)[1]):
            exact = [Fraction(v) for v in a.tolist()]
            terms = (k * (u * v) for row, u in zip(E, exact) for k, v in zip(row, exact))
            value = -_below(-sum(terms, exactly(0)).upper)
            if value < 0:
                return Found(X, K, a, value)
        return None


def _vectors(K: Matrix, a: Matrix) -> Iterator[NDArray[Any]]:
    """Vectors with aᵀKa < 0: small whole numbers first, then ones closer to the eigenvector a, and it last."""
    n, sizes = len(K), np.abs(np.diagonal(K)) + 1e-14 * np.abs(K).max()
    if n <= 3:
        some = [np.array(c) for c in itertools.product(range(-3, 4), repeat=n) if all(c) and c[0] > 0]
        yield from sorted((c for c in some if c @ K @ c < 0), key=lambda c: (np.abs(c).max(), c @ K @ c))
    starts = [v / v[np.abs(v).argmax()] for v in (a, np.linalg.eigh((K + K.T) / 2)[1][:, 0])]
    wanted = 0.5 * a @ K @ a / (a * a @ sizes)
    for largest in (*range(1, 11), 12, 15, 20, 30, 50, 100, 1000, 10**4, 10**6):
        for start in starts:
            c = np.round(largest * start).astype(np.int64)
            if c.all() and c @ K @ c / (c * c @ sizes) <= wanted:
                yield c
    yield from starts


def _some(X: Any, K: Matrix, index: NDArray[np.intp]) -> tuple[Any, Matrix]:
    """Some points and their part of the Gram matrix."""
    return take(X, index), K[np.ix_(index, index)]


def _usable(K: Matrix) -> NDArray[np.intp]:
    """Points among which every value is a number; the ones that fail most go first."""
    bad = ~(np.isfinite(K) & np.isfinite(K.T))
    keep = np.arange(len(K))
    while len(keep) and (fails := bad[np.ix_(keep, keep)].sum(axis=1)).any():
        keep = np.delete(keep, fails.argmax())
    return keep


def is_vector(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "f"


def _below(q: Fraction) -> float:
    """The largest float ≤ q."""
    try:
        number = float(q)
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if q > 0 else -math.inf
    return number if Fraction(number) <= q else math.nextafter(number, -math.inf)


def show(x: Any) -> str:
    """A point or a number, short."""
    if is_vector(x):
        return f"({', '.join(map(show, x))})"
    if isinstance(x, (np.generic, float)):
        return str(x).removesuffix(".0")
    return repr(set(x)) if isinstance(x, frozenset) and x else repr(x)
