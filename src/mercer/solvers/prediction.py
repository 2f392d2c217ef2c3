"""How long a fit will take and how much memory, before it starts: counts of operations times measured speeds.

The counts follow the solvers line by line. The speeds are measured on a sample of the points, in about a second: the
cost of a kernel and the speed of a machine differ by more than a factor of two. The number of iterations follows
from the spectrum of the sample: K of n points has about n/m times the eigenvalues of K of m points, a power law
continues them, and conjugate gradients with k pivoted columns see the condition number 1 + 2 λₖ₊₁/alpha.

Predictions inform people. No decision depends on them (`choice` counts, and reads no clock).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mercer.gram import Gram
from mercer.solvers import blocks, costs
from mercer.solvers.choice import Choice, Size
from mercer.solvers.nystrom import sample_size
from mercer.solvers.refinement import PASSES

SAMPLE, SQUARE = 3000, 1000
"""Points of the sample whose products are measured, and rows of the matrices by which arithmetic is measured."""
FACTOR_STEPS = 5
"""Iterations with a float32 factor as the preconditioner, typically."""
STEP_OVERHEAD = 1.3
"""The work of a pass by blocks, with the factor of every block, in units of its rows of K."""
RESIDUAL_SHARE = 2.0
"""The largest eigenvalue that k randomly pivoted columns leave, in units of the largest that the best k would leave."""


@dataclass(frozen=True)
class Speed:
    """Seconds for one unit of work on this machine, by the itemsize of the dtype (4 or 8).

    Attributes
    ----------
    product : dict
        One entry of K, computed and multiplied by every column at once; K is symmetric, and a pair is computed once.
    rows : dict
        The same of some columns of K, where every entry is computed.
    fill : dict
        One entry of K, computed and stored.
    add : dict
        One multiply-add of a matrix product.
    factor : dict
        One multiply-add of a Cholesky factorisation, which has n³/6 of them.
    eigen : float
        One eigendecomposition, divided by n³.
    fetch : float
        One stored entry of K, multiplied by a vector.
    """

    product: dict[int, float]
    rows: dict[int, float]
    fill: dict[int, float]
    add: dict[int, float]
    factor: dict[int, float]
    eigen: float
    fetch: float


@dataclass(frozen=True)
class Prediction:
    """Seconds, bytes beside the data, and iterations of a fit."""

    seconds: float
    nbytes: int
    iterations: int


def measure(gram: Gram, targets: int) -> Speed:
    """The speeds, for the kernel and the points of this Gram (a sample of about `SAMPLE` points)."""
    rng, n = np.random.default_rng(0), gram.shape[0]
    product: dict[int, float] = {}
    rows: dict[int, float] = {}
    fill: dict[int, float] = {}
    add: dict[int, float] = {}
    factor: dict[int, float] = {}
    square = rng.standard_normal((SQUARE, SQUARE))
    some = gram.x.take(slice(0, min(n, SQUARE)))
    out: NDArray[Any] = square
    for dtype in (np.float32, np.float64):
        size = np.dtype(dtype).itemsize
        K, V = gram.recomputed(dtype), rng.standard_normal((n, targets)).astype(dtype)
        A: NDArray[Any] = square.astype(dtype)
        B = A[::-1].copy()
        out = np.empty((n, n), dtype)
        S = A @ A.T
        S.flat[:: SQUARE + 1] += SQUARE
        product[size] = _shortest(partial(K.multiply, V)) / n**2
        part = gram.between(gram.x, some, dtype)
        rows[size] = _shortest(partial(part.multiply, V[: some.n])) / (n * some.n)
        fill[size] = _shortest(partial(K.fill, out)) / n**2
        add[size] = _shortest(partial(np.matmul, A, B)) / SQUARE**3
        factor[size] = _shortest(partial(sla.cholesky, S, lower=True, check_finite=False)) / (SQUARE**3 / 6)
    v = rng.standard_normal((n, 1))
    fetch = _shortest(lambda: out @ v) / n**2
    few = square[: SQUARE // 2, : SQUARE // 2]
    eigen = _shortest(lambda: sla.eigh(few + few.T, check_finite=False, driver="evd")) / len(few) ** 3
    return Speed(product, rows, fill, add, factor, eigen, fetch)


def _shortest(work: Callable[[], Any]) -> float:
    """The shortest of three times: the others waited for something."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues of a sample's Gram matrix, descending."""

    values: NDArray[np.float64]

    @classmethod
    def of(cls, gram: Gram) -> Spectrum:
        return cls(np.maximum(np.linalg.eigvalsh(gram.fresh(np.float64))[::-1], 0.0))

    def at(self, j: int, n: int) -> float:
        """About the j-th eigenvalue of the Gram matrix of n such points.

        >>> Spectrum(1.0 / np.arange(1.0, 1001.0) ** 2).at(10_000, 1000)
        1e-08
        """
        m = len(self.values)
        scaled = self.values * (n / m)
        known = max(1, m // 4 if n > m else m)  # the smallest eigenvalues of a sample are too small
        if j <= known:
            return float(scaled[j - 1])
        near, far = scaled[known - 1], scaled[max(known // 4, 1) - 1]
        if near <= 0.0 or known < 4:
            return 0.0
        power = math.log(near / far) / math.log(known / (known // 4))
        return float(near * (j / known) ** power)


def steps(condition: float, tol: float) -> int:
    """Iterations of conjugate gradients to this relative residual, by the usual bound.

    >>> steps(1.0, 1e-3), steps(100.0, 1e-3)
    (1, 38)
    """
    if condition <= 1.0:
        return 1
    rate = (math.sqrt(condition) - 1.0) / (math.sqrt(condition) + 1.0)
    return max(1, math.ceil(math.log(2.0 / tol) / -math.log(rate))) if rate > 0 else 1


def predict(
    size: Size,
    choice: Choice,
    speed: Speed,
    spectrum: Spectrum,
    *,
    tol: float,
    centers: int,
    stored: bool = False,
    max_passes: int | None = None,
) -> Prediction:
    """The time and the memory of the chosen solver; `stored` says whether K_nm of the centres is kept."""
    n, t, alphas = size.n, size.targets, len(size.alpha)
    square, vectors = float(n) * n, 8 * n * t * 4
    if choice.solver == "cholesky":
        seconds = square * speed.fill[8] + alphas * (n**3 / 6 * speed.factor[8] + 2 * t * square * speed.fetch)
        return Prediction(seconds, 8 * n * n + vectors, 0)
    if choice.solver == "eigen":
        return Prediction(square * speed.fill[8] + n**3 * speed.eigen, 24 * n * n + vectors, 0)
    if choice.solver == "nystrom":
        return _nystrom(size, speed, tol, centers, stored)
    if choice.solver == "blocks":
        first, passes = _nystrom(size, speed, tol, centers, stored), max_passes or blocks.PASSES
        seconds = first.seconds + STEP_OVERHEAD * passes * square * speed.rows[size.rounded.itemsize]
        return Prediction(seconds, first.nbytes + 8 * n * t * 8 + 2 * 8 * blocks.block_size(n) ** 2, passes)
    if choice.preconditioner == "factor":
        keep = not choice.low_memory and n <= costs.STORED_ROWS and size.dtype == np.float64
        one = (square * speed.fetch * t) if keep else square * speed.product[8]
        fill = square * (speed.fill[8] if keep else speed.fill[4])
        each = n**3 / 6 * speed.factor[4] + (FACTOR_STEPS + 1) * (one + t * square * speed.fetch)
        nbytes = (12 if keep else 4) * n * n
        return Prediction(fill * alphas + alphas * each, nbytes + vectors, FACTOR_STEPS)
    k = choice.rank
    left = RESIDUAL_SHARE * spectrum.at(min(k + 1, n), n)
    iterations = sum(steps(1.0 + left / alpha, 0.5 * tol) for alpha in size.alpha)
    item = size.rounded.itemsize if choice.low_memory else 4
    columns = n * k * (speed.rows[item] + k / 2 * speed.add[item]) + alphas * n * k * k / 2 * speed.add[8]
    apply = 2 * n * k * t * speed.fetch
    if choice.low_memory:
        iterations = min(iterations, (max_passes or PASSES) * alphas)
        seconds = columns + iterations * (square * speed.product[item] + apply)
        return Prediction(
            seconds + 2 * alphas * square * speed.product[8], item * n * (k + 256) + 8 * k * k + vectors, iterations
        )
    iterations = min(iterations, costs.PIVOTED_ITERATIONS * alphas)
    sweeps = 1 + math.ceil(math.log10(1.0 / tol) / 4)  # float32 iterations gain four digits at a time
    seconds = square * speed.fill[4] + columns + iterations * (t * square * speed.fetch / 2 + apply)
    return Prediction(
        seconds + alphas * sweeps * square * speed.product[8], 4 * n * n + 4 * n * k + vectors, iterations
    )


def _nystrom(size: Size, speed: Speed, tol: float, m: int, stored: bool) -> Prediction:
    """On m centres: the factor of K_mm, the preconditioner from a sample of rows, and passes over all rows."""
    n, t = size.n, size.targets
    exact = n * m * m <= costs.SAMPLED_FLOPS
    rows = n if exact else sample_size(n, m, tol)
    item = 8 if exact else size.rounded.itemsize
    # The eigenvalues of a matrix that is sampled by `rows` rows lie within (1 ± spread)² of the true ones.
    spread = math.sqrt(m / rows)
    passes = 2 + (1 if rows == n else steps(((1.0 + spread) / (1.0 - spread)) ** 2, 0.5 * tol))
    # A pass multiplies every entry twice; `rows` contains the first time.
    made, one = 0.0, n * m * (speed.rows[item] + t * speed.fetch)
    if stored:
        made, one = n * m * speed.rows[item], 2 * n * m * t * speed.fetch
    system = rows * m * (speed.rows[item] + m * speed.factor[item])  # half of m² for the triangle, half for squares
    seconds = m * m * speed.fill[8] + m**3 / 3 * speed.factor[8] + system + made + passes * one
    block = item * max(2048, m) * m
    kept = item * n * m if stored else 0
    return Prediction(seconds, 4 * 8 * m * m + block + 8 * n * t * 4 + kept, passes)
