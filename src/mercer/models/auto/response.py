"""From the values of a fitted model to predictions of numbers in the units of the target, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.models.auto.intervals import Counts
from mercer.models.base import Matrix
from mercer.models.quantiles import around, conformal
from mercer.models.residual_scale import ResidualScale


@dataclass(frozen=True, eq=False)
class Response:
    """The values and intervals of the model, unchanged.

    Attributes
    ----------
    needs_rows : bool
        Whether intervals need those of the model, which it may lack without its training rows.
    """

    needs_rows: ClassVar[bool] = True

    def mean(self, values: Matrix) -> Matrix:
        """The expected target, from values of the model."""
        return values

    def intervals(self, model: Any, X: Any, coverage: float, exposure: Matrix | None = None) -> Matrix:
        """Intervals that contain a new target with the given probability, shape (m, 2).

        `exposure` are the sizes, one per row, of which targets are counts; the model then predicts rates.
        """
        ends = np.asarray(model.jackknife_plus(X, coverage, local=True), dtype=np.float64)
        return ends if exposure is None else ends * exposure[:, None]

    def _counts(self, model: Any, X: Any, exposure: Matrix | None) -> Matrix:
        """The predicted means, counts if there is an exposure."""
        rate = np.asarray(model.predict(X), dtype=np.float64)
        return rate if exposure is None else rate * exposure


@dataclass(frozen=True, eq=False)
class LogScale(Response):
    """Values are logarithms of the target.

    Attributes
    ----------
    smear : float
        The mean of exp(residual), by which the exponential of a mean logarithm is too small (Duan 1983).
    most : float
        Values above this are cut, so that no exponential is absurdly large.
    """

    smear: float
    most: float

    def mean(self, values: Matrix) -> Matrix:
        return np.asarray(np.exp(np.minimum(values, self.most)) * self.smear)

    def intervals(self, model: Any, X: Any, coverage: float, exposure: Matrix | None = None) -> Matrix:
        return np.asarray(np.exp(np.minimum(super().intervals(model, X, coverage), self.most)))


@dataclass(frozen=True, eq=False)
class CountLevels(Response):
    """Values are means of counts, whose intervals are quantiles of `Counts`.

    Attributes
    ----------
    levels, weights : array, array or None
        The greatest level whose interval holds the target, of each row when it is left out, and the weights of these
        rows or None.
    dispersion : ResidualScale
        The variance of the counts in units of their mean, which may depend on the mean.
    """

    levels: Matrix
    weights: Matrix | None
    dispersion: ResidualScale

    needs_rows = False

    def intervals(self, model: Any, X: Any, coverage: float, exposure: Matrix | None = None) -> Matrix:
        mean = self._counts(model, X, exposure)
        return Counts(self.dispersion(mean)).interval(mean, -float(conformal(-self.levels, coverage, self.weights)))


@dataclass(frozen=True, eq=False)
class Residuals(Response):
    """Intervals are the value plus quantiles of residuals.

    Attributes
    ----------
    residuals, weights : array, array or None
        Of rows that were left out, in units of their scale; the weights of these rows or None.
    scale : ResidualScale
        The typical size of residuals, which may depend on the value.
    """

    residuals: Matrix
    weights: Matrix | None
    scale: ResidualScale

    @classmethod
    def of(cls, values: Matrix, residuals: Matrix, weights: Matrix | None) -> Residuals:
        """From the values and residuals of rows that were left out."""
        scale, sizes = ResidualScale.of(values, residuals, weights)
        return cls(residuals / sizes, weights, scale)

    needs_rows = False

    def intervals(self, model: Any, X: Any, coverage: float, exposure: Matrix | None = None) -> Matrix:
        mean = self._counts(model, X, exposure)
        ends = np.array(around(self.residuals, coverage, self.weights))
        return np.asarray(mean[:, None] + self.scale(mean)[:, None] * ends)


@dataclass(frozen=True, eq=False)
class LogResiduals(LogScale):
    """The same with intervals from residuals of logarithms, for a model without its training rows.

    Attributes
    ----------
    residuals
        Of the logarithms.
    """

    residuals: Residuals

    needs_rows = False

    def intervals(self, model: Any, X: Any, coverage: float, exposure: Matrix | None = None) -> Matrix:
        ends = self.residuals.intervals(model, X, coverage)
        return np.asarray(np.exp(np.minimum(ends, self.most)))
