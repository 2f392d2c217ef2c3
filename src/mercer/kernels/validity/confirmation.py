"""The confirmation of a counterexample: an upper bound of aᵀKa that is certain, and vectors a that make it negative."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import column_names, is_frame
from mercer.kernels.validity.candidates import Matrix
from mercer.kernels.validity.interval import Interval, exactly


class Evidence(enum.Enum):
    """The kind of evidence that confirms a counterexample."""

    INTERVALS = "exact bounds of every value"
    VALUES = "the values that a function returned, and an estimate of its rounding"
    RADIAL = "the same, and that the function depends on ‖x − z‖ alone, which was tried and not proven"


@dataclass(frozen=True)
class Counterexample:
    """Points, K on them, a, and a bound of aᵀKa that is certain. If a is empty: a bound of the asymmetry."""

    points: Any
    gram: Matrix
    vector: NDArray[Any]
    value: float
    evidence: Evidence
    error: float


def rows(X: Any) -> list[Any]:
    """The points one by one; the rows of a data frame by the names of their columns."""
    if is_frame(X):
        names = column_names(X)
        return [dict(zip(names, row)) for row in X.to_numpy().tolist()]
    return list(X)


def exact_rows(X: Any) -> list[Any]:
    """The points one by one, vectors of floats as tuples of fractions."""
    return [tuple(Fraction(float(v)) for v in x) if _is_vector(x) else x for x in rows(X)]


def _is_vector(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind == "f"


def below(q: Fraction) -> float:
    """The largest float ≤ q."""
    try:
        number = float(q)
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if q > 0 else -math.inf
    return number if Fraction(number) <= q else math.nextafter(number, -math.inf)


def interval_bound(E: list[list[Interval]], a: NDArray[Any]) -> float:
    """An upper bound of aᵀKa for a matrix of intervals that hold the values of K."""
    exact = [Fraction(v) for v in a.tolist()]
    terms = (k * (u * v) for row, u in zip(E, exact) for k, v in zip(row, exact))
    return -below(-sum(terms, exactly(0)).upper)


def sum_bound(K: Matrix, a: NDArray[Any], noise: float) -> float:
    """An upper bound of aᵀKa for values that are off by at most `noise` each.

    A value is split into a float32 and the rest, so that its products with whole numbers below 2²⁴ are exact; `fsum`
    rounds their exact sum once. For other vectors the bound is infinite.
    """
    if a.dtype.kind != "i" or np.abs(a).max() >= 2**12:
        return math.inf
    scale = 2.0 ** -math.frexp(float(np.abs(K).max()))[1]
    K, noise = scale * K, scale * noise
    head = K.astype(np.float32).astype(np.float64)
    weights = np.multiply.outer(a, a).astype(np.float64)
    total = math.fsum(itertools.chain((weights * head).ravel().tolist(), (weights * (K - head)).ravel().tolist()))
    bound = Fraction(total) * (1 + Fraction(1, 2**50)) if total > 0 else Fraction(total) * (1 - Fraction(1, 2**50))
    return -below(-(bound + Fraction(noise) * int(np.abs(a).sum()) ** 2) / Fraction(scale))


def round_vectors(K: Matrix, a: Matrix) -> Iterator[NDArray[Any]]:
    """Vectors with aᵀKa < 0: small whole numbers first, then vectors closer to the eigenvector a, which comes last."""
    n, sizes = len(K), np.abs(np.diagonal(K)) + 1e-14 * np.abs(K).max()
    if n <= 3:
        small = [np.array(c) for c in itertools.product(range(-3, 4), repeat=n) if all(c) and c[0] > 0]
        yield from sorted((c for c in small if c @ K @ c < 0), key=lambda c: (np.abs(c).max(), c @ K @ c))
    starts = [v / v[np.abs(v).argmax()] for v in (a, np.linalg.eigh((K + K.T) / 2)[1][:, 0])]
    wanted = 0.5 * a @ K @ a / (a * a @ sizes)
    for largest in (*range(1, 11), 12, 15, 20, 30, 50, 100, 1000, 10**4, 10**6):
        for start in starts:
            c = np.round(largest * start).astype(np.int64)
            if c.all() and c @ K @ c / (c * c @ sizes) <= wanted:
                yield c
    yield from starts
