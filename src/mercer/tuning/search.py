"""The search for the best parameters of a kernel and the best alpha: by gradient, in log space, within bounds.

The criterion of a sample of the points is cheap and has nearly the same optimum. So the search starts there, from
several starts that the data suggests, and its curvature, in proportion to the number of points, tells the full problem
which steps to take: a handful of full evaluations is left.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.algebra.entrywise import Exp
from mercer.kernels.algebra.linear import Product, Scaled, Sum
from mercer.kernels.algebra.nodes import Constant
from mercer.kernels.algebra.views import Viewed
from mercer.kernels.base import Kernel, Similarity
from mercer.kernels.vectors.dot import Polynomial
from mercer.kernels.vectors.radial import ByWidth
from mercer.kernels.vectors.stationary import Laplacian, Periodic
from mercer.tuning.evidence import log_evidence, profiled_evidence
from mercer.tuning.loo import Matrix, fits, loo_error, require_others

T = TypeVar("T")
EPS = float(np.finfo(np.float64).eps)
# Up to this many points the whole data set is its own sample.
SAMPLE = 256
# A search ends where the next step promises less than this, in units of log likelihood (nats); on a sample, and for the
# leave-one-out error of many points, less exactly: 0.2 is a share of 0.4/n, far below what the data can tell apart.
PRECISION = 5e-3
ROUGH = {"evidence": 0.05, "loo": 0.1}
ROUGH_ERROR = 0.2
# Up to this many points the criterion at the start is measured too; beyond, it would cost as much as a step.
MEASURED = 1024
# No step changes a parameter by more than this factor (its logarithm).
LONGEST = 2.0
# Widths beyond this multiple of the data's diameter (below this part of its spacing) make no difference any more.
# One column among several can fade away much farther.
WIDEST, WIDEST_COLUMN, NARROWEST = 50.0, 1e4, 0.1
# Terms whose share of the kernel's diagonal is below this are suspected not to matter.
NEGLIGIBLE = 1e-3
# What the criterion may lose (in nats) by leaving out what does not matter, on at most so many points.
NOTHING, JUDGED = 1.0, 512


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """What a search found.

    Attributes
    ----------
    kernel, alpha : the best ones.
    value : their criterion: the mean leave-one-out squared error, or the log evidence.
    start_value : that of the kernel and alpha that were given; NaN above 1024 points, where it would cost a step.
    by : "loo" or "evidence".
    evaluations : of the criterion on all points.
    seconds : spent.
    notes : what was noticed about the optimum, in words: parameters that do not matter, or that stopped at a bound.
    at_bounds : names of the parameters that stopped at a bound.
    grid : the whole table, where a grid was compared.
    baseline : the criterion of always predicting the mean; NaN for the evidence, and where it was not asked for.
    """

    kernel: Kernel
    alpha: float
    value: float
    start_value: float
    by: str
    evaluations: int
    seconds: float
    notes: tuple[str, ...] = ()
    at_bounds: tuple[str, ...] = ()
    grid: Any = None
    baseline: float = float("nan")

    @property
    def beats_baseline(self) -> bool:
        """Whether it is better than always predicting the mean; True where that is not known."""
        if np.isnan(self.baseline):
            return True
        return self.value < self.baseline if self.by == "loo" else self.value > self.baseline

    def __str__(self) -> str:
        what = {"loo": "mean leave-one-out squared error", "evidence": "log evidence"}.get(self.by, self.by)
        before = f" (before: {self.start_value:.6g})" if np.isfinite(self.start_value) else ""
        effort = f"{self.evaluations} evaluations in {self.seconds:.2g} s"
        lines = [f"{brief(self.kernel)}, alpha={self.alpha:.4g}", f"{what} {self.value:.6g}{before}; {effort}"]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


# -- parameters and what the data says about them ----------------------------------------------------------------------


class Slot(NamedTuple):
    """One free parameter: its name, the node it belongs to, its field and column there, and the points it sees.

    `exponent` says whether that node is inside of an exponential, where a factor is no variance.
    """

    name: str
    owner: Similarity
    field: str
    column: int | None
    points: Points
    exponent: bool


def slots(kernel: Similarity, points: Points, prefix: str = "", exponent: bool = False) -> list[Slot]:
    """The free parameters in the order of `theta`."""
    found = []
    for field, _, mask in kernel._free():
        scalar = np.ndim(getattr(kernel, field)) == 0
        for i in np.flatnonzero(mask):
            name = prefix + (field if scalar else f"{field}[{i}]")
            found.append(Slot(name, kernel, field, None if scalar else int(i), points, exponent))
    seen = points.view(kernel.view) if isinstance(kernel, Viewed) else points
    for name, child in kernel.children.items():
        if isinstance(child, Similarity):
            found += slots(child, seen, f"{prefix}{name}__", exponent or isinstance(kernel, Exp))
    return found


def scale_factors(kernel: Similarity) -> NDArray[np.bool_] | None:
    """The entries of `theta` whose common factor is a factor of the whole kernel, or None where there are none."""
    mask = np.zeros(len(kernel.theta), dtype=bool)
    if isinstance(kernel, (Scaled, Constant)):
        own = len(kernel.theta) - sum(len(c.theta) for c in kernel.children.values())
        mask[:own] = True
        return mask if own else None
    if isinstance(kernel, (Sum, Product)):
        parts = [scale_factors(part) for part in kernel.parts]
        sizes = [len(part.theta) for part in kernel.parts]
        if isinstance(kernel, Sum):
            return None if any(p is None for p in parts) else np.concatenate([p for p in parts if p is not None])
        first = next((i for i, p in enumerate(parts) if p is not None), None)
        if first is None:
            return None
        return np.concatenate([p if i == first and p is not None else np.zeros(s, bool)
                               for i, (p, s) in enumerate(zip(parts, sizes))])  # fmt: skip
    if isinstance(kernel, Viewed):
        return scale_factors(kernel.inner)
    return None


class Lengths(NamedTuple):
    """Distances in a data set: between neighbours, the median, and the largest. Zero where all points coincide."""

    spacing: float
    median: float
    largest: float


def lengths(points: Points, column: int | None = None, taxi: bool = False, sample: int = 400) -> Lengths:
    """Distances between some of the points, in all columns together or in one; `taxi` for ‖x − z‖₁."""
    n = points.n
    X = points.vectors()[np.linspace(0, n - 1, min(n, sample)).astype(int)]
    if column is not None:
        X = X[:, [column]]
    if sp.issparse(X):
        norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        D = np.sqrt(np.maximum(norms[:, None] + norms - 2 * (X @ X.T).toarray(), 0.0))  # near enough for a bound
    else:
        from scipy.spatial.distance import cdist

        X = np.asarray(X, dtype=np.float64)
        D = cdist(X, X, "cityblock" if taxi else "euclidean")
    apart = D[np.triu_indices(len(D), 1)]
    apart = apart[apart > 0]
    if not apart.size:
        return Lengths(0.0, 0.0, 0.0)
    if not np.isfinite(apart).all():
        raise InvalidInput(
            "Distances between points must fit float64",
            got=f"numbers up to {float(abs(X).max()):.3g}, whose squares overflow",
            advice="Rescale the columns (for example to unit variance).",
        )
    np.fill_diagonal(D, np.inf)
    D[D == 0] = np.inf
    nearest = D.min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return Lengths(float(np.quantile(nearest, 0.05)) * len(D) / n, float(np.median(apart)), float(apart.max()))


class Range(NamedTuple):
    """Logarithms: the bounds of a parameter and where to start."""

    low: float
    high: float
    start: float


def ranges(kernel: Similarity, points: Points, y: Matrix) -> list[Range]:
    """Bounds and a start for every free parameter, from the data: lengths for widths, variances for scales."""
    variance = float(y.var(axis=0).mean()) or float((y**2).mean()) or 1.0
    known: dict[Any, Lengths] = {}
    found = []
    for slot, theta, bounds in zip(slots(kernel, points), kernel.theta, kernel.bounds):
        owner = slot.owner
        low, high, start = float(bounds[0]), float(bounds[1]), float(theta)
        if isinstance(owner, ByWidth) and slot.field == "sigma":
            key = (id(slot.points), slot.column, isinstance(owner, Laplacian))
            if key not in known:
                known[key] = lengths(slot.points, slot.column, isinstance(owner, Laplacian))
            size = known[key]
            if size.largest > 0:
                # With one width per column, d columns add up to one distance.
                many = 1.0 if slot.column is None else np.sqrt(len(owner.sigma))
                widest = WIDEST if slot.column is None else WIDEST_COLUMN
                low, high = np.log(NARROWEST * size.spacing), np.log(widest * size.largest)
                start = np.log(size.median * many)
        elif isinstance(owner, Periodic) and slot.field == "period":
            size = lengths(slot.points)
            if size.largest > 0:
                low, high = np.log(2 * size.spacing), np.log(2 * size.largest)
        elif isinstance(owner, (Scaled, Constant)) and slot.exponent:
            low, high = start - np.log(100.0), start + np.log(100.0)
        elif isinstance(owner, (Scaled, Constant)) and slot.field in ("scale", "c"):
            inner = 1.0 if isinstance(owner, Constant) else _mean_diagonal(owner.kernel, slot.points)
            start = np.log(variance / inner)
            low, high = start - np.log(1e8), start + np.log(1e6)
        elif isinstance(owner, Polynomial) and slot.field == "c":
            inner = _mean_diagonal(Polynomial(1, c=0.0), slot.points)
            start = np.log(inner)
            low, high = start - np.log(1e6), start + np.log(1e6)
        low, high = min(low, float(theta)), max(high, float(theta))
        found.append(Range(float(low), float(high), float(np.clip(start, low, high))))
    return found


def _mean_diagonal(kernel: Similarity, points: Points) -> float:
    size = float(np.mean(kernel.diag(points)))
    return size if size > 0 and np.isfinite(size) else 1.0


# -- the criterion as a function of (theta, log alpha), in nats --------------------------------------------------------


class Evaluation(NamedTuple):
    """Where the criterion was evaluated (perhaps moved along the scale), its value to minimise, and its gradient."""

    x: Matrix
    value: float
    gradient: Matrix


@dataclass(frozen=True, eq=False)
class Criterion:
    """The value to minimise on some points: −log evidence, or ½ n log(leave-one-out error), which is comparable."""

    kernel: Kernel
    points: Points
    y: Matrix
    roots: Matrix | None
    tail: Matrix | None
    by: str
    low: Matrix
    high: Matrix
    floor: float  # errors below it are rounding
    profile: bool = True  # whether an evaluation may move along the scale

    @property
    def n(self) -> int:
        return len(self.y)

    def sample(self, index: NDArray[np.int64]) -> Criterion:
        roots, tail = (None if a is None else a[index] for a in (self.roots, self.tail))
        points = self.points.take(index)
        return replace(self, points=points, y=self.y[index], roots=roots, tail=tail)

    def __call__(self, x: Matrix) -> Evaluation:
        """Infinite where the system cannot be solved or the kernel overflows: the search turns back there."""
        nowhere = Evaluation(x, np.inf, np.zeros_like(x))
        try:
            kernel, alpha = self.kernel.with_theta(x[:-1]), float(np.exp(x[-1]))
            if self.low[-1] < self.high[-1] and alpha < self.rounding(kernel):
                return nowhere
            if self.by == "loo":
                error, slopes = loo_error(kernel, self.points, self.y, alpha, self.roots, self.tail)
                error = max(error, self.floor)
                evaluation = Evaluation(x, 0.5 * self.n * np.log(error), 0.5 * self.n * slopes / error)
            else:
                ray = self.ray
                shifts = (0.0, 0.0)
                if ray is not None:
                    shifts = float((self.low - x)[ray].max()), float((self.high - x)[ray].min())
                arguments = kernel, self.points, self.y, alpha, self.roots, self.tail
                value, slopes, shift = profiled_evidence(*arguments, shifts=shifts)
                moved = x if ray is None else x + shift * ray
                evaluation = Evaluation(moved, -value, -slopes)
        except (np.linalg.LinAlgError, InvalidInput):
            return nowhere
        finite = np.isfinite(evaluation.value) and np.isfinite(evaluation.gradient).all()
        return evaluation if finite else nowhere

    def rounding(self, kernel: Kernel) -> float:
        """What rounding amounts to in an eigenvalue of K̃: beside a smaller alpha, the order of operations decides."""
        diagonal = kernel.diag(self.points)
        return EPS * float((diagonal if self.roots is None else diagonal * self.roots**2).sum())

    @property
    def ray(self) -> NDArray[np.bool_] | None:
        """The parameters whose common factor the evidence knows the best value of: the signal's variance and alpha."""
        factors = scale_factors(self.kernel)
        if factors is None or self.by == "loo" or not self.profile:
            return None
        ray = np.append(factors, True)
        return ray if bool((self.low < self.high)[ray].all()) else None

    def alone(self, x: Matrix) -> float:
        """The value without the gradient, at half the cost."""
        try:
            arguments = self.kernel.with_theta(x[:-1]), self.points, self.y, float(np.exp(x[-1])), self.roots, self.tail
            if self.by == "loo":
                return 0.5 * self.n * float(np.log(max(loo_error(*arguments, gradient=False)[0], self.floor)))
            return -log_evidence(*arguments, gradient=False)[0]
        except (np.linalg.LinAlgError, InvalidInput):
            return np.inf

    def measure(self, value: float) -> float:
        """The criterion as people know it."""
        return float(np.exp(2.0 * value / self.n) if self.by == "loo" else -value)


# -- the optimiser -----------------------------------------------------------------------------------------------------


class Minimum(NamedTuple):
    at: Evaluation
    B: Matrix  # the curvature
    evaluations: int


def minimise(
    f: Callable[[Matrix], Evaluation],
    x: Matrix,
    low: Matrix,
    high: Matrix,
    B: Matrix | None = None,
    precision: float = 0.05,
    limit: int = 100,
) -> Minimum:
    """A minimum of f within bounds: BFGS steps on the free parameters, projected, with a backtracking line search.

    B is the curvature to begin with; a search ends where a Newton step promises less than `precision`.
    """
    at = f(np.clip(x, low, high))
    evaluations, known = 1, B is not None
    if B is None:
        B = np.eye(len(x)) * max(float(np.abs(at.gradient).max()), EPS)
    while evaluations < limit and np.isfinite(at.value):
        g = at.gradient
        free = ~(((at.x <= low) & (g >= 0)) | ((at.x >= high) & (g <= 0)))
        if not free.any():
            break
        p = np.zeros_like(g)
        p[free] = -_solve(B[np.ix_(free, free)], g[free])
        if -0.5 * float(g @ p) < precision:
            break
        p *= min(1.0, LONGEST / float(np.abs(p).max()))
        t, found = 1.0, at
        while evaluations < limit:
            trial = np.clip(at.x + t * p, low, high)
            found = f(trial)
            evaluations += 1
            slope = float(g @ (trial - at.x))
            if found.value <= at.value + 1e-4 * slope:
                break
            # The minimum of the parabola through both values and the slope.
            rise = found.value - at.value - slope
            t *= float(np.clip(-0.5 * slope / rise, 0.1, 0.5)) if np.isfinite(rise) else 0.2
            if t < 1e-3:
                break
        if not found.value < at.value:
            break
        s, change = found.x - at.x, found.gradient - g
        if not known and float(s @ change) > 0:
            B, known = np.eye(len(x)) * float(change @ change) / float(s @ change), True
        B = _updated(B, s, change)
        at = found
    return Minimum(at, B, evaluations)


def _solve(B: Matrix, g: Matrix) -> Matrix:
    """B⁻¹ g, for the nearest B that is safely positive definite."""
    values, U = np.linalg.eigh(B)
    values = np.maximum(np.abs(values), max(1e-8 * float(np.abs(values).max()), EPS))
    return np.asarray(U @ ((U.T @ g) / values))


def _updated(B: Matrix, s: Matrix, change: Matrix) -> Matrix:
    """The BFGS update, damped by Powell's rule so that B stays positive definite."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ change)
    if sBs <= 0:
        return B
    if sy < 0.2 * sBs:
        theta = 0.8 * sBs / (sBs - sy)
        change = theta * change + (1 - theta) * Bs
        sy = 0.2 * sBs
    return np.asarray(B - np.outer(Bs, Bs) / sBs + np.outer(change, change) / sy)


def together(jobs: list[Callable[[], T]]) -> list[T]:
    """The results of the jobs, which share the threads: each has one, and BLAS too."""
    results: dict[int, T] = {}

    def store(i: int) -> None:
        results[i] = jobs[i]()

    threads.run([partial(store, i) for i in range(len(jobs))])
    return [results[i] for i in range(len(jobs))]


def curvature(f: Criterion, at: Evaluation) -> Matrix | None:
    """The Hessian by differences of gradients, made positive definite; None where they are not finite."""
    size, step = len(at.x), 1e-2
    f, low, high = replace(f, profile=False), f.low, f.high
    H = np.zeros((size, size))
    moving = np.flatnonzero(low < high)
    moves = [at.x + np.where(at.x[i] + step <= high[i], step, -step) * np.eye(size)[i] for i in moving]
    for i, moved, there in zip(moving, moves, together([partial(f, moved) for moved in moves])):
        if not np.isfinite(there.value):
            return None
        H[i] = (there.gradient - at.gradient) / (moved[i] - at.x[i])
    values, U = np.linalg.eigh(0.5 * (H + H.T))
    values = np.maximum(np.abs(values), max(1e-4 * float(np.abs(values).max()), 0.05))
    return np.asarray((U * values) @ U.T)


# -- the search --------------------------------------------------------------------------------------------------------


def tune_problem(
    kernel: Kernel,
    points: Points,
    y: Matrix,
    alpha: float,
    roots: Matrix | None = None,
    tail: Matrix | None = None,
    by: str = "loo",
    *,
    hold: Iterable[str] = (),
    n_restarts: int = 2,
    random_state: int = 0,
) -> Tuned:
    """The kernel parameters and alpha of least leave-one-out error, or of greatest evidence.

    Parameters
    ----------
    kernel : whose free parameters are searched, beginning with its own values.
    points : n prepared points.
    y : targets, shape (n, t), which share the kernel and alpha.
    alpha : where to begin.
    roots, tail : √w and P as in `LeastSquares`, or None.
    by : "loo" or "evidence".
    hold : names of parameters to leave alone, as in `kernel.parameter_names` (`"sigma"` holds every `sigma[i]`), and
        "alpha". A prefix `kernel__` is understood.
    n_restarts : random starts beside the given kernel and the one that the data suggests.
    random_state : seed of the sample and the restarts, or a generator.

    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X, k = rng.normal(size=(80, 2)), mc.Gaussian([1.0, 1.0])
    >>> y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
    >>> found = tune_problem(k, k.prepare(X), y, 1.0, by="evidence")
    >>> found.value > found.start_value + 100
    True
    >>> found.notes[0].split(":")[0]
    'The width of column 1 does not matter'
    """
    if by not in ("loo", "evidence"):
        raise InvalidInput('`by` must be "loo" or "evidence"', got=repr(by), advice="Choose a criterion.")
    if isinstance(n_restarts, bool) or not isinstance(n_restarts, (int, np.integer)) or n_restarts < 0:
        raise InvalidInput("`n_restarts` must be a whole number ≥ 0", got=repr(n_restarts), advice="Such as 2.")
    rng = generator(random_state)
    began = time.perf_counter()
    n = len(y)
    fits(n)
    if by == "loo":
        require_others(n, tail)
    names = [*kernel.parameter_names, "alpha"]
    held = held_names(names, hold)
    if held[-1] and alpha == 0:
        raise InvalidInput(
            "`alpha` must be > 0 where it is held",
            got="0, at which the criteria have no value for a singular Gram matrix",
            advice="Hold a small one, such as 1e-6, or do not hold it.",
        )
    found = ranges(kernel, points, y)
    size, variance = _mean_diagonal(kernel, points), float(y.var(axis=0).mean()) or float((y**2).mean()) or 1.0
    # Where the scale is free, it will be that of the targets.
    scaled = by == "evidence" and scale_factors(kernel) is not None
    log_alpha = np.log(_alpha_range(n, variance if scaled else size, variance, by))
    given = float(np.log(alpha)) if alpha > 0 else log_alpha[0]
    x = np.append(kernel.theta, given)
    low = np.append([r.low for r in found], min(given, log_alpha[0]))
    high = np.append([r.high for r in found], max(given, log_alpha[1]))
    suggested = np.append([r.start for r in found], np.log(0.1 * (variance if by == "evidence" else size)))
    if by == "loo" and not held[-1]:
        # Only the ratio of the scale and alpha matters to the error: one of them is enough.
        factors = scale_factors(kernel)
        if factors is not None and not held[:-1][factors].any():
            held[np.flatnonzero(factors)[0]] = True
    low[held] = high[held] = suggested[held] = x[held]
    floor = max(float((y**2).mean()) * EPS**2, 1e-300)
    whole = Criterion(kernel, points, y, roots, tail, by, low, high, floor)
    first = whole.alone(x) if n <= MEASURED else np.nan
    constant = not np.ptp(y, axis=0).any() and (tail is not None or not y.any())
    if held.all() or constant:
        why = "Every parameter is held: nothing was tuned." if held.all() else (
            "The targets are constant: every kernel explains them alike, and nothing was tuned."
        )  # fmt: skip
        return Tuned(kernel, alpha, whole.measure(first), whole.measure(first), by, 1,
                     time.perf_counter() - began, (why,))  # fmt: skip
    order = rng.permutation(n)
    starts = [x, suggested, *(suggested + rng.normal(size=(n_restarts, len(x))) * ~held)]
    # A sample has to determine the tail, and say something beyond it.
    sample = SAMPLE if tail is None else max(SAMPLE, 4 * tail.shape[1])
    sizes = [n] if n <= sample else [max(sample, n // 8), *([n // 2] if n >= 4 * sample else []), n]
    level = whole if len(sizes) == 1 else whole.sample(np.sort(order[: sizes[0]]))
    final = ROUGH_ERROR if by == "loo" and n > MEASURED else PRECISION
    precision = final if len(sizes) == 1 else ROUGH[by]
    runs = together([partial(minimise, level, start, low, high, None, precision) for start in starts])
    best = min(runs, key=lambda run: run.at.value)
    if not np.isfinite(best.at.value):
        best = minimise(level, np.append(suggested[:-1], high[-1]), low, high, None, precision)
    path = [best.at.x]
    for smaller, m in pairwise(sizes):
        H = curvature(level, best.at) if smaller == sizes[0] else None
        B = (best.B if H is None else H) * (m / smaller)
        level, precision = (whole, final) if m == n else (whole.sample(np.sort(order[:m])), ROUGH[by])
        begin = best.at.x
        if by == "loo" and len(path) == 2:
            # The best alpha shrinks with the number of points as a power, and so do widths.
            drift = np.log(m / sizes[1]) / np.log(sizes[1] / sizes[0]) * (path[1] - path[0])
            begin = begin + np.clip(drift, -1.0, 1.0)
        best = minimise(level, begin, low, high, B, precision)
        path.append(best.at.x)
    at, evaluations = best.at, best.evaluations + (n <= MEASURED)
    if not np.isfinite(at.value) or first < at.value:
        at = Evaluation(x, first, np.zeros_like(x))
    tuned = kernel.with_theta(at.x[:-1])
    judged = whole if n <= JUDGED else whole.sample(np.sort(order[:JUDGED]))
    notes = remarks(tuned, judged, at.x, low, high, held)
    if by == "evidence" and scale_factors(kernel) is None and not 1e-2 < variance / size < 1e2:
        notes.append(
            f"The kernel has no free scale: its functions have variance {size:.2g}, and the targets {variance:.2g}. "
            "Tune 1.0 * kernel instead, or normalise the targets."
        )
    bounded = [i for i in np.flatnonzero(~held) if not low[i] + 1e-6 < at.x[i] < high[i] - 1e-6]
    return Tuned(
        tuned,
        alpha if held[-1] else float(np.exp(at.x[-1])),
        whole.measure(at.value),
        whole.measure(first),
        by,
        evaluations,
        time.perf_counter() - began,
        tuple(notes),
        tuple(names[i] for i in bounded),
    )


def generator(random_state: Any) -> np.random.Generator:
    """The generator that a parameter stands for: a seed, a generator of NumPy's (also an old one), or None."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InvalidInput(
            "`random_state` must be a whole number ≥ 0, a NumPy generator or None",
            got=repr(random_state),
            advice="The same number gives the same result.",
        ) from None


def held_names(names: list[str], hold: Iterable[str]) -> NDArray[np.bool_]:
    """Which parameters are held, by name."""
    held = np.zeros(len(names), dtype=bool)
    for given in hold if np.iterable(hold) and not isinstance(hold, str) else [hold]:
        wanted = [given, given.removeprefix("kernel__")] if isinstance(given, str) else []
        matches = [any(name == w or name.startswith(w + "[") for w in wanted) for name in names]
        if not any(matches):
            raise InvalidInput(
                "`hold` must name free parameters", got=repr(given), advice=f"They are {', '.join(names)}."
            )
        held |= matches
    return held


def _alpha_range(n: int, size: float, variance: float, by: str) -> tuple[float, float]:
    """From what rounding allows to what drowns the kernel (or, as a variance of noise, the targets)."""
    least = 100 * EPS * n * size
    if by == "loo":
        return least, 10 * n * size
    return max(least, 1e-8 * variance), max(10 * variance, 10 * least)


def remarks(
    kernel: Kernel, criterion: Criterion, x: Matrix, low: Matrix, high: Matrix, held: NDArray[np.bool_]
) -> list[str]:
    """What to know about an optimum: parameters that do not matter, and those that stopped at a bound.

    A wide column may still be needed (the function is nearly linear in it), and a small term may carry the fit: that
    something does not matter is said only where leaving it out was tried, and changed nothing.
    """
    points, notes = criterion.points, []
    here = criterion.alone(x)
    for i, slot in enumerate(slots(kernel, points)):
        if held[i]:
            continue
        value = float(np.exp(x[i]))
        if isinstance(slot.owner, ByWidth) and slot.field == "sigma":
            size = lengths(slot.points, slot.column, isinstance(slot.owner, Laplacian))
            what = "of `" + slot.name + "`" if slot.column is None else f"of column {slot.column}"
            if size.largest == 0:
                notes.append(f"The width {what} does not matter: the column is constant. It can be dropped."
                             if slot.column is not None
                             else f"The width {what} does not matter: all points are the same.")  # fmt: skip
            elif slot.column is not None and value > 10 * size.largest:
                without = x.copy()
                without[i] = np.log(1e6 * size.largest)
                if criterion.alone(without) < here + NOTHING:
                    notes.append(
                        f"The width {what} does not matter: it is {value / size.largest:.0f} × the range of the data. "
                        "The column can be dropped."
                    )
            elif x[i] >= high[i]:
                notes.append(f"The width {what} is at its upper bound, {value / size.largest:.0f} × the diameter of "
                             "the data: the function is nearly a polynomial of low degree.")  # fmt: skip
            elif x[i] <= low[i]:
                notes.append(f"The width {what} is at its lower bound, below the spacing of the data: points say "
                             "nothing about their neighbours.")  # fmt: skip
        elif x[i] <= low[i] or x[i] >= high[i]:
            side = "lower" if x[i] <= low[i] else "upper"
            notes.append(f"`{slot.name}` = {value:.3g} is at its {side} bound: the criterion is flat there, or best "
                         "beyond it.")  # fmt: skip
    notes += _weak_terms(kernel, criterion, here, x[-1])
    if not held[-1]:
        alpha = float(np.exp(x[-1]))
        if x[-1] <= low[-1]:
            notes.append(f"alpha = {alpha:.3g} is at its lower bound: the targets look free of noise, and the function "
                         "interpolates them.")  # fmt: skip
        elif x[-1] >= high[-1]:
            notes.append(f"alpha = {alpha:.3g} is at its upper bound: the inputs explain nothing of the targets.")
    return notes


def _weak_terms(kernel: Kernel, criterion: Criterion, here: float, log_alpha: float) -> list[str]:
    """Terms of a sum without which the fit is as good."""
    if not isinstance(kernel, Sum):
        return []
    shares = np.array([_mean_diagonal(part, criterion.points) for part in kernel.kernels])
    shares /= shares.sum()
    notes = []
    for i, (part, share) in enumerate(zip(kernel.kernels, shares)):
        if share < NEGLIGIBLE:
            rest = [other for j, other in enumerate(kernel.kernels) if j != i]
            others = rest[0] if len(rest) == 1 else Sum(tuple(rest))
            if replace(criterion, kernel=others).alone(np.append(others.theta, log_alpha)) < here + NOTHING:
                notes.append(f"The term {brief(part)} is {share:.1g} of the kernel: it can be dropped.")
    return notes


def brief(kernel: Kernel) -> str:
    """An expression with its numbers to four digits, for people."""
    return re.sub(r"\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+", lambda number: f"{float(number[0]):.4g}", repr(kernel))
