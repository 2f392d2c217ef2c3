"""The search for the best parameters of a kernel and the best alpha: by gradient, in log space, within bounds.

The criterion of a sample of the points is cheap and has nearly the same optimum. So the search starts there, from
several starts that the data suggests, and its curvature, in proportion to the number of points, tells the full problem
which steps to take: a handful of full evaluations is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.tuning.criteria import LeastSquaresCriterion
from mercer.tuning.loo import Matrix, fits, require_others
from mercer.tuning.quasi_newton import EPS, Evaluation
from mercer.tuning.ranges import held_names, mean_diagonal, ranges, scale_factors
from mercer.tuning.remarks import remarks
from mercer.tuning.search import GradientSearch, curvature
from mercer.tuning.trials import Tuned
from mercer.validation import generator

# Up to this many points the whole data set is its own sample.
SAMPLE = 256
# A search ends where the next step promises less than this, in units of log likelihood (nats); on a sample, and for the
# leave-one-out error of many points, less exactly: 0.2 is a share of 0.4/n, far below what the data can tell apart.
PRECISION = 5e-3
ROUGH = {"evidence": 0.05, "loo": 0.1}
ROUGH_ERROR = 0.2
# Up to this many points the criterion at the start is measured too; beyond, it would cost as much as a step.
MEASURED = 1024
# Whether something does not matter is judged on at most this many points.
JUDGED = 512
# Differences of gradients that give the curvature, and its least eigenvalue: in nats, and as a share of the largest.
STEP, LEAST, SHARE = 1e-2, 0.05, 1e-4


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
    known = ranges(kernel, points, y)
    size, variance = mean_diagonal(kernel, points), float(y.var(axis=0).mean()) or float((y**2).mean()) or 1.0
    # Where the scale is free, it will be that of the targets.
    scaled = by == "evidence" and scale_factors(kernel) is not None
    log_alpha = np.log(_alpha_range(n, variance if scaled else size, variance, by))
    given = float(np.log(alpha)) if alpha > 0 else log_alpha[0]
    x = np.append(kernel.theta, given)
    low = np.append([r.low for r in known], min(given, log_alpha[0]))
    high = np.append([r.high for r in known], max(given, log_alpha[1]))
    suggested = np.append([r.start for r in known], np.log(0.1 * (variance if by == "evidence" else size)))
    if by == "loo" and not held[-1]:
        # Only the ratio of the scale and alpha matters to the error: one of them is enough.
        factors = scale_factors(kernel)
        if factors is not None and not held[:-1][factors].any():
            held[np.flatnonzero(factors)[0]] = True
    low[held] = high[held] = suggested[held] = x[held]
    floor = max(float((y**2).mean()) * EPS**2, 1e-300)
    whole = LeastSquaresCriterion(kernel, points, y, roots, tail, by, low, high, floor)
    search = GradientSearch(whole)
    first = search.alone(x) if n <= MEASURED else np.nan
    at, notes = Evaluation(x, first, np.zeros_like(x)), []
    constant = not np.ptp(y, axis=0).any() and (tail is not None or not y.any())
    if held.all():
        notes.append("Every parameter is held: nothing was tuned.")
    elif constant:
        notes.append("The targets are constant: every kernel explains them alike, and nothing was tuned.")
    else:
        order = rng.permutation(n)
        starts = [x, suggested, *(suggested + rng.normal(size=(n_restarts, len(x))) * ~held)]
        reached = _over_samples(search, starts, suggested, order)
        if np.isfinite(reached.value) and not first < reached.value:
            at = reached
        judged = whole if n <= JUDGED else whole.sample(np.sort(order[:JUDGED]))
        notes += remarks(kernel.with_theta(at.x[:-1]), judged, at.x, low, high, held)
        if by == "evidence" and scale_factors(kernel) is None and not 1e-2 < variance / size < 1e2:
            notes.append(
                f"The kernel has no free scale: its functions have variance {size:.2g}, and the targets "
                f"{variance:.2g}. Tune 1.0 * kernel instead, or normalise the targets."
            )
    bounded = [i for i in np.flatnonzero(~held) if not low[i] + 1e-6 < at.x[i] < high[i] - 1e-6]
    kept = constant or held.all()
    return Tuned(
        {
            "kernel": kernel if kept else kernel.with_theta(at.x[:-1]),
            "alpha": alpha if kept or held[-1] else float(np.exp(at.x[-1])),
        },
        search.trials(at.x, at.value),
        evaluations=search.evaluations,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
        at_bounds=() if kept else tuple(names[i] for i in bounded),
        start_value=whole.score(first),
    )


def _over_samples(
    search: GradientSearch, starts: list[Matrix], suggested: Matrix, order: NDArray[np.int64]
) -> Evaluation:
    """The minimum on all points, by way of more and more of them in the given order."""
    whole = search.criterion
    assert isinstance(whole, LeastSquaresCriterion)
    n, by, tail = whole.n, whole.by, whole.tail
    # A sample has to determine the tail, and say something beyond it.
    sample = SAMPLE if tail is None else max(SAMPLE, 4 * tail.shape[1])
    sizes = [n] if n <= sample else [max(sample, n // 8), *([n // 2] if n >= 4 * sample else []), n]
    final = ROUGH_ERROR if by == "loo" and n > MEASURED else PRECISION

    def level(m: int) -> GradientSearch:
        return search if m == n else GradientSearch(whole.sample(np.sort(order[:m])))

    here, precision = level(sizes[0]), final if len(sizes) == 1 else ROUGH[by]
    best = here.descend(starts, precision=precision, at_once=True)
    if not np.isfinite(best.at.value):
        best = here.descend([np.append(suggested[:-1], whole.high[-1])], precision=precision)
    path = [best.at.x]
    for smaller, m in pairwise(sizes):
        H = None
        if smaller == sizes[0]:
            assert isinstance(here.criterion, LeastSquaresCriterion)
            H = curvature(replace(here.criterion, profile=False), best.at, STEP, LEAST, SHARE)
        B = (best.B if H is None else H) * (m / smaller)
        here, begin = level(m), best.at.x
        if by == "loo" and len(path) == 2:
            # The best alpha shrinks with the number of points as a power, and so do widths.
            drift = np.log(m / sizes[1]) / np.log(sizes[1] / sizes[0]) * (path[1] - path[0])
            begin = begin + np.clip(drift, -1.0, 1.0)
        best = here.descend([begin], precision=final if m == n else ROUGH[by], curvature=B)
        path.append(best.at.x)
    return best.at


def _alpha_range(n: int, size: float, variance: float, by: str) -> tuple[float, float]:
    """From what rounding allows to what drowns the kernel (or, as a variance of noise, the targets)."""
    least = 100 * EPS * n * size
    if by == "loo":
        return least, 10 * n * size
    return max(least, 1e-8 * variance), max(10 * variance, 10 * least)
