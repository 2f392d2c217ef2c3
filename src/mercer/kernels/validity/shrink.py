"""How `refute` searches: examine a Gram matrix, reduce a violation to few round points, confirm it.

Every matrix is scaled to unit diagonal, and its smallest eigenvalue is compared with the rounding error. Points that
are not needed are dropped, vectors are moved to where the violation is larger and then rounded to few digits, and
aᵀKa < 0 is confirmed in interval arithmetic with a vector a of small whole numbers.
"""

from __future__ import annotations

import bisect
import itertools
import math
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.custom import FromFunction, stated_errors
from mercer.kernels.spaces import ANY, Space, distinct
from mercer.kernels.validity import candidates, spectrum
from mercer.kernels.validity.candidates import LARGEST, Matrix
from mercer.kernels.validity.confirmation import (
    Counterexample,
    Evidence,
    below,
    exact_rows,
    interval_bound,
    round_vectors,
    rows,
    sum_bound,
)
from mercer.kernels.validity.interval import Interval, exactly
from mercer.kernels.validity.noise import ROUNDINGS, measured_noise, precision
from mercer.validation import check_whole_number

# Up to this many points both k(x, z) and k(z, x) are evaluated.
BOTH_WAYS = 8
# The most random points at which a negative mean value is looked for.
MOST_POINTS = 2048
# A counterexample of up to this many points is reduced until no point can be left out.
MINIMAL = 128
# On lattices of up to this many points every pair is evaluated, even if a function seems to be radial.
EVERY_PAIR = 512
# Up to this many points the least needed one is left out first; with more that takes too long.
GREEDY = 48


# Replaced by tests, which count evaluations instead of seconds.
clock = time.perf_counter


class Late(BaseException):
    """The time is up. Not an Exception, so that nothing that skips a failing evaluation can swallow it."""


class Search:
    """One search: the kernel, the budget, and how much of it was spent."""

    def __init__(
        self, kernel: Similarity, seconds: float, trials: int | None, rng: np.random.Generator, space: Space = ANY
    ) -> None:
        self.kernel, self.space, self.rng, self.limit = kernel, space, rng, trials
        self.began = clock()
        self.deadline = self.began + seconds
        self.trials = self.skipped = self.evaluations = 0
        self.stopped = False
        self.failure: Exception | None = None
        self.movable = self.vectorial = False
        self.typical = 0.0
        self.errors = stated_errors(kernel)
        # The error of the values, relative to the largest: `least` anywhere, `unit` near the current points.
        self.least = self.unit = max(ROUNDINGS * float(np.finfo(np.float64).eps), *self.errors, 0.0)

    def watch(self) -> None:
        """End the search if the time is up. Called before every evaluation but the first."""
        self.evaluations += 1
        if self.evaluations > 1 and clock() > self.deadline:
            raise Late

    @property
    def over(self) -> bool:
        return self.limit is not None and self.trials >= self.limit

    def run(self, look: Callable[[], Counterexample | None]) -> Counterexample | None:
        """The counterexample that `look` returns, or None if the clock ended the search."""
        try:
            return look()
        except Late:
            self.stopped = True
            return None

    # -- where to look --------------------------------------------------------------------------------------------

    def vectors(self, dim: int | None) -> Counterexample | None:
        """Structured points at all scales, then random ones that walk downhill."""
        if dim is not None:
            dim = check_whole_number(dim, "dim", such_as=2)
        self.movable = self.vectorial = True
        dims: list[int] = []
        for d in [2, 1, 3, *range(4, LARGEST + 1)] if dim is None else [dim]:
            X = self.rng.standard_normal((4, d)).round(2)
            if len(dims) < 3 and any(self.probe(scale * X) for scale in (1.0, 0.125, 8.0)):
                dims.append(d)
        if not dims:
            raise self.useless()
        self.skipped = 0
        few, more = candidates.structured(dims, self.rng)
        random = ((X, 20) for X in candidates.random(dims, self.rng))
        violation = self.each((X, 0) for X in few)
        for d in dims:
            violation = violation or self.lattices(d) or self.spread(d)
        return violation or self.each(itertools.chain(((X, 0) for X in more), random))

    def each(self, trials: Iterable[tuple[Matrix, int]]) -> Counterexample | None:
        """The first confirmed violation among these points and steps downhill."""
        for X, steps in trials:
            if self.over:
                break
            violation = self.attempt(X, steps)
            if violation is not None:
                return violation
        return None

    def lattices(self, d: int) -> Counterexample | None:
        """Boxes of lattice points with a wave, where the spectrum of a radial function is negative."""
        if self.over:
            return None
        self.trials += 1
        self.unit = self.least
        radial = bool(self.kernel.tags.radial)
        boxes = spectrum.boxes(self.row, d, self.unit, radial=radial)
        while True:
            try:
                box = next(boxes, None)
                if box is None:
                    return None
                if len(box.vector) <= MINIMAL:
                    violation = self.attempt(box.points)
                elif len(box.vector) <= EVERY_PAIR and not radial:
                    violation = self.every_pair(box)
                else:
                    violation = self.box(box, radial)
            except Exception as error:  # the function is not defined there
                self.note(error)
                return None
            if violation is not None:
                return violation

    def every_pair(self, box: spectrum.Box) -> Counterexample | None:
        """A box, by the values of all its pairs."""
        X = box.points
        K = self.gram(X)
        return self.confirm(X, K, [box.vector]) if np.isfinite(K).all() else None

    def box(self, box: spectrum.Box, radial: bool) -> Counterexample | None:
        """A box, by one value for each distance."""
        X = box.points
        weights = box.weights()
        origin = (Fraction(0),) * box.d
        values = {}
        for square, weight in enumerate(weights):
            if weight:
                step = spectrum.steps(square, box.d, len(box.wave) - 1)
                values[square] = self.entry(origin, tuple(Fraction(box.spacing) * i for i in step or ()))
        noise = self.noise(X[:: max(1, len(X) // LARGEST)], np.array([[float(values[0].upper)]]))
        total = sum((value * weights[square] for square, value in values.items()), exactly(0))
        total = total + Interval(-1, 1) * (Fraction(noise if self.errors else 0.0) * box.size)
        bound = -below(-total.upper)
        if not bound < 0:
            return None
        return Counterexample(
            X, np.empty((0, 0)), box.vector, bound, self.evidence if radial else Evidence.RADIAL, self.unit
        )

    def spread(self, d: int) -> Counterexample | None:
        """Random points at growing distances: enough of them to make a mean value below 0 a violation.

        A function with k(x, x) = 1 and the mean −m at other pairs has 1ᵀK1 = n − m·n(n − 1) < 0 as soon as
        n > 1 + 1/m.
        """
        for scale in 4.0 ** np.arange(-3, 6):
            if self.over:
                break
            K = self.gram(scale * self.rng.standard_normal((LARGEST // 2, d)))
            sizes = np.sqrt(np.diagonal(K))
            C = K / np.multiply.outer(sizes, sizes)
            np.fill_diagonal(C, 0.0)
            mean = float(C.sum()) / (len(C) * (len(C) - 1))
            if not mean < 0 or 1 / -mean > MOST_POINTS:
                continue
            n = 2 + math.ceil(1.25 / -mean)
            violation = self.attempt(scale * self.rng.standard_normal((n, d))) if n <= MOST_POINTS else None
            if violation is not None:
                return violation
        return None

    def among(self, pool: Any, mutate: Callable[[Any], Any] | None = None) -> Counterexample | None:
        """The objects of a pool, then changed copies of those with the largest weights in the smallest eigenvector.

        The Gram matrix of the whole pool decides about all its subsets (Cauchy's interlacing theorem).
        """
        self.vectorial = isinstance(pool, np.ndarray) and pool.ndim == 2
        if not self.probe(take(pool, slice(0, BOTH_WAYS))) and not self.probe(pool):
            raise self.useless()
        X, whole = pool, len(pool) <= 4 * LARGEST
        while not self.over:
            if not whole:
                X = take(pool, np.sort(self.rng.choice(len(pool), 4 * LARGEST, replace=False)))
            violation = self.attempt(X)
            if violation is not None or (mutate is None and whole):
                return violation
            if mutate is not None:
                K = self.gram(X)
                keep = _usable(K)
                part = np.abs(np.linalg.eigh(K[np.ix_(keep, keep)])[1][:, 0])
                best = [X[i] for i in keep[np.argsort(-part)][: LARGEST // 4]]
                X = distinct([*best, *(mutate(x) for x in best for _ in range(6))])[:LARGEST]
        return None

    # -- evaluation -----------------------------------------------------------------------------------------------

    def gram(self, X: Any) -> Matrix:
        """K on X, NaN where the kernel fails; for few points both triangles are evaluated."""
        both = len(X) <= BOTH_WAYS
        if self.errors and not is_frame(X):
            return self._pairs(X, both)
        self.watch()
        try:
            K = self.kernel(X, X) if both else self.kernel(X)
        except Exception as error:
            self.note(error)
            return np.full((len(X), len(X)), np.nan)
        self.least = max(self.least, ROUNDINGS * float(np.finfo(K.dtype).eps))
        self.unit = max(self.unit, self.least)
        return K.astype(np.float64)

    def _pairs(self, X: Any, both: bool) -> Matrix:
        """The same for a Python function, which may be slow, and may fail at some pairs with any exception."""
        n = len(X)
        K = np.full((n, n), np.nan)
        for i in range(n):
            for j in range(n if both else i + 1):
                try:
                    K[i, j] = self.value(X[i], X[j])
                except Exception as error:
                    self.note(error)
        return K if both else np.tril(K) + np.tril(K, -1).T

    def value(self, x: Any, z: Any) -> float:
        """k(x, z) of one pair."""
        self.watch()
        k = self.kernel
        return k.value(x, z) if isinstance(k, FromFunction) else float(k([x], [z])[0, 0])

    def row(self, x: Matrix, Z: Matrix) -> Matrix:
        """k(x, z) for every z."""
        if self.errors:
            return np.array([self.value(x, z) for z in Z])
        self.watch()
        return self.kernel(x[None], Z)[0].astype(np.float64)

    def settle(self, X: Any) -> None:
        """Estimate the error of a Python function's values near these points."""
        if self.errors and self.vectorial:
            self.unit = max(self.unit, measured_noise(self.value, np.asarray(X, dtype=np.float64)))

    def note(self, error: Exception) -> None:
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
                got=f"{K[i, j]:.10g} and then {again[i, j]:.10g} for x = {self.shown(X, i)}, z = {self.shown(X, j)}",
                advice="Remove randomness and state from the function.",
            )
        if self.errors:
            # A function that returns float32 numbers was computed in float32, whatever their type is now.
            self.least = max(self.least, ROUNDINGS * precision(K[known]))
        if self.errors and self.typical == 0 and known.any():
            # If a function subtracts numbers of this size, so is its error, however small the difference is.
            self.typical = float(np.abs(K[known]).max())
        return bool(known.any())

    def shown(self, X: Any, i: int) -> str:
        return self.space.show(rows(X)[i])

    def useless(self) -> InvalidInput:
        return InvalidInput(
            "The kernel must give a finite number for some points",
            got=f"none in {self.skipped} evaluations; the first failed with {self.failure!r}",
            advice="Check the function on two points by hand, or describe its points by dim=, space= or points=.",
        )

    # -- one trial ------------------------------------------------------------------------------------------------

    def attempt(self, X: Any, steps: int = 0) -> Counterexample | None:
        """Examine the Gram matrix of X, after this many steps downhill, and reduce and confirm a violation."""
        self.trials += 1
        self.unit = self.least
        K = self.gram(X)
        keep = _usable(K)
        if not len(keep):
            return None
        X, K = _some(X, K, keep)
        asymmetry = np.abs(K - K.T) - self.unit * (np.abs(K) + np.abs(K.T))
        if asymmetry.max() > 0:
            self.settle(X)
            asymmetry = np.abs(K - K.T) - self.unit * (np.abs(K) + np.abs(K.T))
        if asymmetry.max() > 0:
            pair = np.sort(np.unravel_index(int(asymmetry.argmax()), asymmetry.shape))
            return self._asymmetry(*_some(X, K, pair))
        noise = self.unit * max(float(np.abs(K).max()), self.typical)
        if steps:
            X, K = self.walk(X, K, noise, steps)
        if self.depth(K, noise)[0] >= 0:
            return None
        noise = self.noise(X, K)
        if self.depth(K, noise)[0] >= 0:
            return None
        X, K = _some(X, K, self.shrink(K, noise))
        return self.confirm(*self.polish(X, K, noise)) or self.confirm(X, K)

    def noise(self, X: Any, K: Matrix) -> float:
        """The error of the values on these points, after a look at how they scatter."""
        self.settle(X)
        return self.unit * max(float(np.abs(K).max()), self.typical)

    def depth(self, K: Matrix, noise: float) -> tuple[float, Matrix]:
        """The smallest eigenvalue of K, scaled, beyond rounding (< 0 is a violation), and its vector a.

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
        """The positions of a few points that still violate the condition, but not if one more is left out."""
        sizes = np.maximum(np.diagonal(K) + noise, noise)
        alone = -np.diagonal(K) - 2 * noise
        if alone.max() > 0:
            return np.flatnonzero(alone >= alone.max() / 3)[:1]
        excess = np.abs(K) - (1 + 2 * self.unit) * np.sqrt(np.multiply.outer(sizes, sizes))
        np.fill_diagonal(excess, 0.0)
        if excess.max() > 0:
            return np.sort(np.argwhere(excess >= excess.max() / 3)[0])

        def depth(index: NDArray[np.intp]) -> float:
            self.watch()
            return self.depth(K[np.ix_(index, index)], noise)[0]

        order = np.argsort(-np.abs(self.depth(K, noise)[1]) * np.sqrt(sizes))
        # Violations grow with the set (Cauchy's interlacing theorem), so that halving finds the shortest prefix.
        at = bisect.bisect_left(
            range(len(order)), True, lo=2, key=lambda n: n == len(order) - 1 or depth(order[: n + 1]) < 0
        )
        keep = order[: at + 1]
        while 1 < len(keep) <= GREEDY:
            rests = [np.delete(keep, i) for i in range(len(keep))]
            depths = [depth(rest) for rest in rests]
            if min(depths) >= 0:
                break
            keep = rests[int(np.argmin(depths))]
        if GREEDY < len(keep) <= MINIMAL:
            # One pass is enough: a point that a set needs is needed by its subsets too.
            for i in keep[::-1]:
                rest = keep[keep != i]
                if depth(rest) < 0:
                    keep = rest
        return np.sort(keep)

    def walk(self, X: Matrix, K: Matrix, noise: float, steps: int) -> tuple[Matrix, Matrix]:
        """Move vectors at random, keep what lowers the depth, and drop points as soon as they are not needed."""
        lowest, step = self.depth(K, noise)[0], 0.2 * float(np.abs(X).max())
        for _ in range(steps):
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
        """The points rounded to few digits, with a violation at least half as large."""
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

    @property
    def evidence(self) -> Evidence:
        return Evidence.VALUES if self.errors else Evidence.INTERVALS

    def enclose(self, X: Any, noise: float) -> list[list[Interval]]:
        """Intervals that hold K on X; those of a Python function are widened by the noise."""
        exact = exact_rows(X)
        slack = Interval(-1, 1) * Fraction(noise if self.errors else 0.0)
        return [[self.entry(x, z) + slack for z in exact] for x in exact]

    def entry(self, x: Any, z: Any) -> Interval:
        self.watch()
        return self.kernel.enclose(x, z)

    def _asymmetry(self, X: Any, K: Matrix) -> Counterexample | None:
        noise = self.noise(X, K)
        try:
            (_, forth), (back, _) = self.enclose(X, noise)
        except Exception as error:
            self.note(error)
            return None
        difference = below(max(forth.lower - back.upper, back.lower - forth.upper))
        return Counterexample(X, K, np.empty(0), difference, self.evidence, self.unit) if difference > 0 else None

    def confirm(self, X: Any, K: Matrix, vectors: Iterable[NDArray[Any]] | None = None) -> Counterexample | None:
        """The counterexample of the first vector a with a certain aᵀKa < 0; by default rounder vectors come first."""
        noise = self.noise(X, K)
        # For a function's values an exact sum of floats and a bound of their noise are enough.
        small = len(X) <= (LARGEST if isinstance(self.kernel, FromFunction) else MINIMAL)
        if not small and not isinstance(self.kernel, FromFunction):
            return None
        try:
            E = self.enclose(X, noise) if small else []
        except Exception as error:
            self.note(error)
            return None
        for a in round_vectors(K, self.depth(K, noise)[1]) if vectors is None else vectors:
            self.watch()
            value = interval_bound(E, a) if small else sum_bound(K, a, noise)
            if value < 0:
                return Counterexample(X, K, a, value, self.evidence, self.unit)
        return None


def _some(X: Any, K: Matrix, index: NDArray[np.intp]) -> tuple[Any, Matrix]:
    """Some points and their part of the Gram matrix."""
    return take(X, index), K[np.ix_(index, index)]


def _usable(K: Matrix) -> NDArray[np.intp]:
    """Points among which every value is a number; those that fail most often are dropped first."""
    bad = ~(np.isfinite(K) & np.isfinite(K.T))
    keep = np.arange(len(K))
    while len(keep) and (fails := bad[np.ix_(keep, keep)].sum(axis=1)).any():
        keep = np.delete(keep, fails.argmax())
    return keep
