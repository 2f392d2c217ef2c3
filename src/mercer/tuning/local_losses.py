"""The losses of leave-one-out predictions of local methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LocalLoss(ABC):
    """The mean loss of predictions F (n, t) over rows with targets y (n, t) and weights v (n,)."""

    y: Float
    v: Float

    @abstractmethod
    def __call__(self, F: Float) -> tuple[float, Float]:
        """The loss, and its derivative by F."""

    def take(self, rows: Index) -> Self:
        """The loss of some of the rows."""
        return replace(self, y=self.y[rows], v=self.v[rows])


@dataclass(frozen=True, eq=False)
class SquaredError(LocalLoss):
    """Σ vᵢ ‖(yᵢ − fᵢ)/s‖²/(t Σ v), with one unit s per target, so that all targets count."""

    unit: Float

    @classmethod
    def of(cls, y: Float, v: Float) -> SquaredError:
        spread = np.sqrt(v @ (y - v @ y / v.sum()) ** 2 / v.sum()) if y.shape[1] > 1 else np.ones(1)
        return cls(y, v, np.where(spread > 0, spread, 1.0))

    def __call__(self, F: Float) -> tuple[float, Float]:
        share = self.v[:, None] / (self.v.sum() * F.shape[1] * self.unit**2)
        residuals = F - self.y
        return float((share * residuals**2).sum()), 2 * share * residuals


@dataclass(frozen=True, eq=False)
class LogLoss(LocalLoss):
    """−Σ vᵢ log((1 − δ) p₋ᵢ(yᵢ) + δ π(yᵢ))/Σ v, where π are the shares of the classes.

    δ = 1/n keeps the loss finite if no other row votes for the right class.
    """

    def __call__(self, F: Float) -> tuple[float, Float]:
        share = self.v / self.v.sum()
        delta = 1.0 / len(share)
        prior = self.y @ (share @ self.y)
        votes = np.clip((self.y * F).sum(axis=1), 0.0, 1.0)  # outside [0, 1] only by rounding
        p = (1 - delta) * votes + delta * prior
        return float(-share @ np.log(p)), -self.y * (share * (1 - delta) / p)[:, None]
