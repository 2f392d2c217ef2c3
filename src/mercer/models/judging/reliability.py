"""Do probabilities keep their promise? Predicted probabilities beside observed frequencies, in bins of equal size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from mercer.models.labels import position_of_label
from mercer.validation import check_paired, check_whole_number
from mercer.words import cut

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

BAND = 0.95
"""The share of observations that fall in the bands if the model is calibrated."""
BIN_ROWS, BINS = 20, 10
"""By default a bin holds at least the first number of rows, and there are at most the second number of bins."""


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted probabilities of an event against its observed frequency.

    Attributes
    ----------
    predicted, observed, counts : array, Index
        The mean probability, the observed share and the number of rows of each bin.
    lower, upper : array
        The binomial band with 95 % of the observed shares if the probabilities are right, shape (bins,).
    error : float
        Σ counts |observed − predicted|/n, the expected calibration error.
    brier : float
        Mean (probability − happened)².

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).uniform(size=1000)
    >>> curve = ReliabilityCurve.of(np.random.default_rng(1).uniform(size=1000) < p, p, bins=4)
    >>> curve.counts, curve.predicted.round(1), curve.observed.round(1)
    (array([250, 250, 250, 250]), array([0.1, 0.4, 0.6, 0.9]), array([0.2, 0.4, 0.7, 0.8]))
    """

    predicted: Matrix
    observed: Matrix
    counts: Index
    lower: Matrix
    upper: Matrix
    error: float
    brier: float

    @classmethod
    def of(cls, happened: Any, probabilities: Any, bins: int | None = None) -> ReliabilityCurve:
        """Probabilities, shape (n,), and whether the event happened; by default ten bins, fewer for under 200 rows."""
        p, hit = np.asarray(probabilities, dtype=np.float64).ravel(), np.asarray(happened).ravel()
        check_paired(
            "There must be as many probabilities in [0, 1] as outcomes 0 or 1",
            "Pass one outcome for each probability.",
            probability=(p, (p >= 0) & (p <= 1)), outcome=(hit, np.isin(hit, (0, 1))),
        )  # fmt: skip
        bins = int(np.clip(len(p) // BIN_ROWS, 2, BINS)) if bins is None else bins
        check_whole_number(bins, "bins", such_as=10)
        hit = hit.astype(bool)
        place = (bins * (rankdata(p) - 0.5) / len(p)).astype(np.int64)  # equal probabilities stay together
        every = np.bincount(place)
        full = np.flatnonzero(every)
        counts = every[full]
        predicted = np.bincount(place, p)[full] / counts
        observed = np.bincount(place, hit)[full] / counts
        mean = np.clip(predicted, 0.0, 1.0)
        ends = [binom.ppf(q, counts, mean) / counts for q in ((1 - BAND) / 2, (1 + BAND) / 2)]
        error = float((counts * np.abs(observed - predicted)).sum() / len(p))
        return cls(predicted, observed, counts, ends[0], ends[1], error, float(((p - hit) ** 2).mean()))


def event(
    classes: NDArray[Any], P: Matrix, truth: NDArray[Any], label: Any = None
) -> tuple[NDArray[np.bool_], Matrix, str]:
    """The event that probabilities of classes are about: whether it happened, its probability, and its name.

    The event is that the class is `label`, by default the second of two; with more classes, that the predicted class is
    the true one.
    """
    if label is None and len(classes) > 2:
        best = P.argmax(axis=1)
        return classes[best] == truth, P[np.arange(len(P)), best], "the predicted class is true"
    at = position_of_label(classes, label)
    label = classes[at]
    return truth == label, P[:, at], f"the class is {cut(str(label), 40)}"
