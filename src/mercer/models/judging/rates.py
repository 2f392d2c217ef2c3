"""The baseline of counts over an exposure: one rate for all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.models.judging.measures import Guesses
from mercer.models.scores import Baseline

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RateBaseline(Baseline):
    """A baseline that predicts the same rate for all rows: the count of the training rows divided by their exposure.

    Attributes
    ----------
    rate : that rate.
    exposure : the exposures of the rows to score, shape (m,).

    >>> baseline = RateBaseline.over(np.array([1.0, 2.0]), np.array([2.0, 4.0]), np.array([1.0, 3.0]))
    >>> baseline.guesses(np.array([0.0, 2.0])).mean
    array([0.5, 1.5])
    """

    rate: float = np.nan
    exposure: Matrix | None = None

    @classmethod
    def over(cls, y: Any, exposure: Matrix, scored: Matrix) -> RateBaseline:
        """The baseline of training targets and their exposures, for scored rows with these exposures."""
        y = np.asarray(y, dtype=np.float64)
        return cls(**vars(Baseline.of(y)), rate=float(y.sum() / exposure.sum()), exposure=scored)

    def guesses(self, y: NDArray[Any]) -> Guesses:
        assert self.exposure is not None
        return super().guesses(y)._replace(mean=self.rate * self.exposure)
