"""How many rows may be predicted to explain a model in given seconds, by counting operations.

Importance, curves, interactions and contributions are means over predictions, and most of their time is spent on kernel
values between the predicted rows and those that the model keeps. Fewer rows make them less precise, not wrong. The
count does not depend on the machine, so that the same command gives the same numbers everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import is_classifier

from mercer.gram import costs
from mercer.kernels.base import Similarity
from mercer.models.base import innermost
from mercer.models.explaining.similar import kept_rows
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.ridge import Ridge

ROW = 2e-6
"""Seconds for a predicted row of any model."""
PAIR = 3e-9
"""Seconds for a pair of rows, and for each counted nanosecond of its kernel value: small tiles are not fast."""
NEAREST = 3e-8
"""Seconds for a pair of rows of a model without such a kernel, which sorts distances."""
VARIANCE = 5e-11
"""Seconds for a pair of kept rows in the variance of a predicted row."""


@dataclass(frozen=True)
class Effort:
    """The seconds for explanations of a model, and the cost of a predicted row.

    Attributes
    ----------
    seconds
        For all of the explanations; infinite for as many rows as they use at most.
    row, interval
        Seconds for a predicted row, and for one with its interval.
    """

    seconds: float
    row: float
    interval: float

    @classmethod
    def of(cls, model: Any, seconds: float = float("inf")) -> Self:
        """The effort for explanations of a fitted model.

        >>> import numpy as np, mercer as mc
        >>> X = np.random.default_rng(0).normal(size=(1000, 2))
        >>> small, large = (mc.KernelRidge(mc.Gaussian(1.0)).fit(X[:n], X[:n, 0]) for n in (100, 1000))
        >>> Effort.of(small, 1.0).row < Effort.of(large, 1.0).row
        True
        """
        points, coef = kept_rows(model)
        inner = innermost(model)
        kernel, outputs = getattr(inner, "kernel_", None), 1 if coef is None or coef.ndim == 1 else coef.shape[1]
        if points is None or isinstance(inner, Ridge):  # a linear model predicts from its columns
            return cls(seconds, ROW, 2 * ROW)
        pair = PAIR * (costs.entry(kernel, points) + outputs) if isinstance(kernel, Similarity) else NEAREST
        row = ROW + points.n * (pair if coef is not None else max(pair, NEAREST)) * (2 if is_classifier(model) else 1)
        squares = points.n**2 if isinstance(inner, GaussianProcessRegressor) else 0
        return cls(seconds, row, 2 * row + VARIANCE * squares)

    def most(self, each: float, least: int, most: int, share: float = 1.0) -> int:
        """The greatest number up to `most`, each of which costs `each` seconds, within a share of the seconds.

        It is not less than `least`.

        >>> effort = Effort(2.0, 0.001, 0.002)
        >>> effort.most(5 * effort.row, 10, 500), effort.most(5 * effort.row, 10, 500, share=0.5)
        (400, 200)
        >>> effort.most(1.0, 10, 500), Effort(float("inf"), 0.001, 0.002).most(1.0, 10, 500)
        (10, 500)
        """
        affordable = share * self.seconds / each
        return max(min(least, most), int(min(most, affordable)))
