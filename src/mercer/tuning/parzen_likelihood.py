"""Widths of smoothing kernels by leave-one-out likelihood, of a density or of targets given the other columns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.smoothing.density import leave_one_out
from mercer.tuning.bandwidth import silverman, table
from mercer.tuning.quasi_newton import Evaluation
from mercer.tuning.search import Criterion, GradientSearch
from mercer.tuning.trials import LOO_LIKELIHOOD, Measure, Tuned

Float = NDArray[np.float64]

FACTORS = (1.0, 0.3, 0.1, 0.03)
"""Multiples of Silverman's widths at which the likelihood is evaluated first."""
STARTS, SAMPLE = 6, 2000
"""The search for widths given targets: the number of starts, and the largest number of rows on which it begins."""
PRECISION, LIMIT = 1e-10, 200
"""A descent ends when a step promises less mean log likelihood, or after this number of evaluations."""
OUTLYING = 5.0
"""A width of this multiple of the robust rule's indicates outliers."""


@dataclass(frozen=True, eq=False)
class LikelihoodCriterion(Criterion):
    """−Σ wᵢ log f₋ᵢ(xᵢ)/Σw by the logarithms of widths, or the same for the last columns given the others.

    Attributes
    ----------
    X, w : array
        Different rows (n, d), and how often each counts.
    targets : int
        The number of targets, which are the last columns; 0 for a density.
    low, high : array
        Bounds of the logarithms.
    """

    X: Float
    w: Float
    targets: int
    low: Float
    high: Float

    @property
    def measure(self) -> Measure:
        return LOO_LIKELIHOOD

    @property
    def names(self) -> list[str]:
        return [f"width[{k}]" for k in range(self.X.shape[1])]

    def __call__(self, x: Float) -> Evaluation:
        X, w, targets, size = self.X, self.w, self.targets, self.w.sum()
        value, slope = leave_one_out(X, np.exp(x), w)
        total, gradient = w @ value, w @ slope
        if targets:
            value, slope = leave_one_out(X[:, :-targets], np.exp(x[:-targets]), w)
            total -= w @ value
            gradient[:-targets] -= w @ slope
        return Evaluation(x, float(-total / size), -gradient / size)

    def score(self, value: float) -> float:
        return -value


def loo(X: Any, weights: Any = None, *, targets: int = 0, held: Any = None) -> Tuned:
    """The widths, one per column, that maximise the leave-one-out likelihood of a Gaussian density.

    Σᵢ wᵢ log f₋ᵢ(xᵢ) is maximised over log h by its gradient, so that widths are positive. Equal rows are left out
    together: otherwise their likelihood would be infinite as h → 0. For the same reason columns with ties keep a width
    of at least half their resolution; `notes` says if that bound was reached. Weights count as repetitions.

    Parameters
    ----------
    targets : int
        The number of last columns that are targets t: then the likelihood is that of t given the other columns, Σ log
        f₋ᵢ(xᵢ, tᵢ)/f₋ᵢ(xᵢ).
    held
        (d,) widths to keep, NaN for those to be chosen; None chooses all.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tuning.parzen_likelihood import loo
    >>> x = np.random.default_rng(0).normal(size=(300, 1))
    >>> loo(x).parameters["widths"].round(2)
    array([0.36])
    """
    began = time.perf_counter()
    X, w = table(X, weights)
    silverman(X, w)  # which refuses columns that do not vary
    X, inverse = np.unique(X, axis=0, return_inverse=True)
    # Ties among different rows, because equal rows are left out together.
    ties = [len(X) - len(np.unique(x)) for x in X.T]
    w = np.bincount(inverse.ravel(), w, len(X)).astype(np.float64)
    # From different rows, so that a weight and the same number of repetitions give exactly the same start.
    start = silverman(X, w)
    d = X.shape[1]
    low, high = np.empty(d), np.empty(d)
    for k, x in enumerate(X.T):
        steps = np.diff(np.unique(x))
        low[k] = max(1e-3 * start[k], 0.5 * float(steps.min()) if ties[k] else 0.0)
        # An irrelevant column is smoothed out by a very large width; a density needs no larger width than its range.
        high[k] = float(np.ptp(x)) * (1.0 if k >= d - targets or not targets else 1e3)
    low = np.minimum(low, high)
    if held is not None:
        kept = np.isfinite(held)
        low, high = np.where(kept, held, low), np.where(kept, held, high)
    search = GradientSearch(LikelihoodCriterion(X, w, targets, np.log(low), np.log(high)))
    # The likelihood may have several maxima: with targets, one for every set of relevant columns.
    if targets and len(X) > SAMPLE:
        rows = np.sort(np.random.default_rng(0).choice(len(X), SAMPLE, replace=False))
        few = loo(X[rows], w[rows], targets=targets, held=held).parameters["widths"]
        shrunk = few * (SAMPLE / len(X)) ** (1.0 / (d + 4))  # the rate at which the best width shrinks with n
        climbs, starts = 1, [*(np.log(f * start) for f in FACTORS[:2]), np.log(shrunk)]
    else:
        climbs, starts = STARTS if targets else 1, _starts(start, np.log(np.ptp(X, axis=0)), targets)
    likeliest = [at for _, at in search.ranked(starts)[:climbs]]
    at = search.descend(likeliest, precision=PRECISION, limit=LIMIT).at
    widths = np.exp(at.x)
    notes = []
    for k in np.flatnonzero(low < high).tolist():
        if widths[k] <= 1.001 * low[k]:
            notes.append(
                f"The width of column {k} is at its lower bound {low[k]:.3g}"
                + (f", half the resolution of the data: {ties[k]} of its values are ties." if ties[k] else ".")
            )
        elif widths[k] >= 0.999 * high[k]:
            notes.append(
                f"The width of column {k} is at its upper bound {high[k]:.3g}"
                + (": it says nothing about the target." if targets and k < d - targets else ".")
            )
        elif not targets and widths[k] > OUTLYING * start[k]:
            notes.append(
                f"The width of column {k} is {widths[k] / start[k]:.0f} × Silverman's: rows far from all others need a "
                "wide kernel when they are left out. Try 'isj', or drop these rows."
            )
    return Tuned(
        {"widths": widths},
        search.trials(at.x, at.value),
        evaluations=search.evaluations,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


def _starts(start: Float, wide: Float, targets: int) -> list[Float]:
    """Logarithms of widths to start from: multiples of a rule's; with targets, also with columns that hardly count.

    `wide` is the logarithm of a width at which a column hardly counts, but still has a slope.
    """
    d, usual = len(start), np.log(start)
    starts = [usual + np.log(f) for f in (FACTORS if targets else FACTORS[:2])]
    inputs = np.arange(d) < d - targets
    for f in FACTORS if targets else ():
        narrow = usual + np.log(f)
        starts.append(np.where(inputs, narrow, usual))
        for k in range(d - targets if d - targets > 1 else 0):
            this = np.arange(d) == k
            starts += [np.where(this, wide, narrow), np.where(this, narrow, np.where(inputs, wide, usual))]
    return starts
