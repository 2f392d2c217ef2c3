"""Widths of smoothing kernels by leave-one-out likelihood: of a density, or of targets given the other columns."""

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
"""Multiples of Silverman's widths at which the likelihood is looked at first."""
STARTS, SAMPLE = 6, 2000
"""The likelihood of targets is climbed from that many of the likeliest, on that many rows at most."""
PRECISION, LIMIT = 1e-10, 200
"""The mean log likelihood that is not worth another step, and evaluations of a descent at the most."""
OUTLYING = 5.0
"""A width of this many times the robust rule's is a sign of outliers."""


@dataclass(frozen=True, eq=False)
class LikelihoodCriterion(Criterion):
    """−Σ wᵢ log f₋ᵢ(xᵢ)/Σw by the logarithms of widths; of targets in the last columns, that of them given the others.

    Attributes
    ----------
    X, w : different rows (n, d), and how often each counts.
    targets : how many of the last columns are targets; 0 for a density.
    low, high : bounds of the logarithms.
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
    """The widths, one per column, under which the Gaussian density without row i finds row i most likely.

    Σᵢ wᵢ log f₋ᵢ(xᵢ) is maximised over log h by its gradient, so that widths are positive. Rows that are equal are left
    out together: else two equal rows would find each other infinitely likely as h → 0. Columns with ties keep a width
    of at least half their resolution, for the same reason; `notes` says where that was the choice. Weights count
    as repetitions.

    Parameters
    ----------
    targets : how many of the last columns are targets t: then the likelihood is that of t given the other columns,
        Σ log f₋ᵢ(xᵢ, tᵢ)/f₋ᵢ(xᵢ).
    held : (d,) widths that stay as they are, NaN for those to be chosen; None chooses all.

    >>> import numpy as np
    >>> from mercer.tuning.parzen_likelihood import loo
    >>> x = np.random.default_rng(0).normal(size=(300, 1))
    >>> loo(x).parameters["widths"].round(2)
    array([0.36])
    """
    began = time.perf_counter()
    X, given = table(X, weights)
    silverman(X, given)  # which refuses columns that do not vary
    X, inverse = np.unique(X, axis=0, return_inverse=True)
    # of different rows, for equal ones are left out together
    ties = [len(X) - len(np.unique(x)) for x in X.T]
    w = np.bincount(inverse.ravel(), given, len(X)).astype(np.float64)
    # of the different rows, so that a weight and as many repetitions start from the same bits
    start = silverman(X, w)
    d = X.shape[1]
    low, high = np.empty(d), np.empty(d)
    for k, x in enumerate(X.T):
        steps = np.diff(np.unique(x))
        low[k] = max(1e-3 * start[k], 0.5 * float(steps.min()) if ties[k] else 0.0)
        # a column that says nothing about the target is smoothed out, a density has no wider width than its data
        high[k] = float(np.ptp(x)) * (1.0 if k >= d - targets or not targets else 1e3)
    low = np.minimum(low, high)
    if held is not None:
        kept = np.isfinite(held)
        low, high = np.where(kept, held, low), np.where(kept, held, high)
    search = GradientSearch(LikelihoodCriterion(X, w, targets, np.log(low), np.log(high)))
    # The likelihood may have several maxima: of targets, one for every set of columns that counts.
    if targets and len(X) > SAMPLE:
        rows = np.sort(np.random.default_rng(0).choice(len(X), SAMPLE, replace=False))
        few = loo(X[rows], w[rows], targets=targets, held=held).parameters["widths"]
        shrunk = few * (SAMPLE / len(X)) ** (1.0 / (d + 4))  # as the best width does with n
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
                f"The width of column {k} is {widths[k] / start[k]:.0f} × Silverman's: rows far from all others, left "
                "out, ask for a wide kernel. Try 'isj', or leave them out."
            )
    return Tuned(
        {"widths": widths},
        search.trials(at.x, at.value),
        evaluations=search.evaluations,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
    )


def _starts(start: Float, wide: Float, targets: int) -> list[Float]:
    """Logarithms of widths to begin at: multiples of a rule's; of targets, also with columns that hardly count.

    `wide` is the logarithm of a width at which a column hardly counts, but still has a slope.
    """
    d, usual = len(start), np.log(start)
    starts = [usual + np.log(f) for f in (FACTORS if targets else FACTORS[:2])]
    inputs = np.arange(d) < d - targets
    for f in FACTORS if targets else ():
        narrow = usual + np.log(f)
        starts.append(np.where(inputs, narrow, usual))
        for k in range(d - targets if d - targets > 1 else 0):
            own = np.arange(d) == k
            starts += [np.where(own, wide, narrow), np.where(own, narrow, np.where(inputs, wide, usual))]
    return starts
