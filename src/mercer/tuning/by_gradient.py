"""The search for the best parameters of a kernel and the best alpha: by gradient, in log space, within bounds.

The criterion on a sample of the points is cheap and has nearly the same optimum. So the search begins there, from
several starts that the data suggests. Its curvature, scaled by the number of points, gives good first steps on all
points, where only a few evaluations remain.
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
from mercer.tuning.loo import Matrix, require_memory, require_others
from mercer.tuning.quasi_newton import EPS, Evaluation
from mercer.tuning.ranges import held_names, mean_diagonal, ranges
from mercer.tuning.remarks import remarks
from mercer.tuning.search import GradientSearch, curvature
from mercer.tuning.trials import Tuned
from mercer.validation import check_choice, check_whole_number, generator

SAMPLE = 256
"""Up to this number of points, all of them are the sample."""
PRECISION = 5e-3
"""A search ends when the next step promises less than this, in units of log likelihood (nats)."""
PRECISION_ON_SAMPLES = {"evidence": 0.05, "loo": 0.1}
"""The same, by criterion, on a sample of the points."""
PRECISION_OF_MANY = 0.2
"""The same for the leave-one-out error of many points: a share 0.4/n of it, far below its uncertainty."""
START_MEASURED = 1024
"""Up to this number of points the criterion at the start is evaluated, too; beyond, it would cost as much as a step."""
REMARKS_ON = 512
"""Remarks on parameters that do not matter are tested on at most this number of points."""
STEP, LEAST, SHARE = 1e-2, 0.05, 1e-4
"""The step of the differences that give the curvature; its least eigenvalue in nats, and as a share of the largest."""


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
    kernel : Kernel
        The kernel whose free parameters are searched, starting from their values.
    points : Points
        n prepared points.
    y : array
        Targets, shape (n, t), which share the kernel and alpha.
    alpha : float
        The start of alpha.
    roots, tail : array or None
        √w and P as in `LeastSquares`, or None.
    by : str
        "loo" or "evidence".
    hold : sequence of str
        Names of parameters to keep, as in `kernel.parameter_names` (`"sigma"` means every `sigma[i]`), and "alpha".
        They may have the prefix `kernel__`.
    n_restarts : int
        The number of random starts, beside this kernel and the one that the data suggests.
    random_state : int
        Seed of the sample and the restarts, or a generator.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X, k = rng.normal(size=(80, 2)), mc.Gaussian([1.0, 1.0])
    >>> y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
    >>> tuned = tune_problem(k, k.prepare(X), y, 1.0, by="evidence")
    >>> tuned.value > tuned.start_value + 100
    True
    >>> tuned.notes[0].split(":")[0]
    'The width of column 1 does not matter'
    """
    check_choice(by, "by", ("loo", "evidence"))
    check_whole_number(n_restarts, "n_restarts", least=0, such_as=2)
    rng = generator(random_state)
    began = time.perf_counter()
    n = len(y)
    require_memory(n)
    if by == "loo":
        require_others(n, tail)
    names = [*kernel.parameter_names, "alpha"]
    held = held_names(names, hold)
    if held[-1] and alpha == 0:
        raise InvalidInput(
            "`alpha` must be > 0 if it is held",
            got="0, at which a singular Gram matrix has no criterion",
            advice="Hold a small alpha such as 1e-6, or do not hold it.",
        )
    by_parameter = ranges(kernel, points, y)
    size, variance = mean_diagonal(kernel, points), float(y.var(axis=0).mean()) or float((y**2).mean()) or 1.0
    # A free scale will become that of the targets.
    scaled = by == "evidence" and kernel.scale_factors is not None
    log_alpha = np.log(_alpha_range(n, variance if scaled else size, variance, by))
    begin = float(np.log(alpha)) if alpha > 0 else log_alpha[0]
    x = np.append(kernel.theta, begin)
    low = np.append([r.low for r in by_parameter], min(begin, log_alpha[0]))
    high = np.append([r.high for r in by_parameter], max(begin, log_alpha[1]))
    suggested = np.append([r.start for r in by_parameter], np.log(0.1 * (variance if by == "evidence" else size)))
    if by == "loo" and not held[-1]:
        # The error depends only on the ratio of the scale and alpha: searching for one of them is enough.
        factors = kernel.scale_factors
        if factors is not None and not held[:-1][factors].any():
            held[np.flatnonzero(factors)[0]] = True
    low[held] = high[held] = suggested[held] = x[held]
    floor = max(float((y**2).mean()) * EPS**2, 1e-300)
    whole = LeastSquaresCriterion(kernel, points, y, roots, tail, by, low, high, floor)
    search = GradientSearch(whole)
    first = search.alone(x) if n <= START_MEASURED else np.nan
    at, notes = Evaluation(x, first, np.zeros_like(x)), []
    constant = not np.ptp(y, axis=0).any() and (tail is not None or not y.any())
    if held.all():
        notes.append("Every parameter is held: nothing was tuned.")
    elif constant:
        notes.append("The targets are constant: every kernel explains them equally well, and nothing was tuned.")
    else:
        order = rng.permutation(n)
        starts = [x, suggested, *(suggested + rng.normal(size=(n_restarts, len(x))) * ~held)]
        reached = _over_samples(search, starts, suggested, order)
        if np.isfinite(reached.value) and not first < reached.value:
            at = reached
        tested = whole if n <= REMARKS_ON else whole.sample(np.sort(order[:REMARKS_ON]))
        notes += remarks(kernel.with_theta(at.x[:-1]), tested, at.x, low, high, held)
        if by == "evidence" and kernel.scale_factors is None and not 1e-2 < variance / size < 1e2:
            notes.append(
                f"The kernel has no free scale: its functions have the variance {size:.2g}, the targets have "
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
    """The minimum on all points, reached by minima on more and more of them in the given order."""
    whole = search.criterion
    assert isinstance(whole, LeastSquaresCriterion)
    n, by, tail = whole.n, whole.by, whole.tail
    # A sample must determine more than the tail.
    sample = SAMPLE if tail is None else max(SAMPLE, 4 * tail.shape[1])
    sizes = [n] if n <= sample else [max(sample, n // 8), *([n // 2] if n >= 4 * sample else []), n]
    final = PRECISION_OF_MANY if by == "loo" and n > START_MEASURED else PRECISION

    def level(m: int) -> GradientSearch:
        return search if m == n else GradientSearch(whole.sample(np.sort(order[:m])))

    here, precision = level(sizes[0]), final if len(sizes) == 1 else PRECISION_ON_SAMPLES[by]
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
            # The best alpha and the best widths shrink like a power of the number of points.
            drift = np.log(m / sizes[1]) / np.log(sizes[1] / sizes[0]) * (path[1] - path[0])
            begin = begin + np.clip(drift, -1.0, 1.0)
        best = here.descend([begin], precision=final if m == n else PRECISION_ON_SAMPLES[by], curvature=B)
        path.append(best.at.x)
    return best.at


def _alpha_range(n: int, size: float, variance: float, by: str) -> tuple[float, float]:
    """The range of alpha: from the size of rounding errors to a multiple of the kernel's values (or the targets')."""
    least = 100 * EPS * n * size
    if by == "loo":
        return least, 10 * n * size
    return max(least, 1e-8 * variance), max(10 * variance, 10 * least)
