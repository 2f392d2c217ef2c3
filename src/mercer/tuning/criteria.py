"""Leave-one-out error and evidence of kernel ridge as functions of (theta, log alpha), in nats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.tuning.evidence import log_evidence, profiled_evidence
from mercer.tuning.loo import Matrix, loo_error
from mercer.tuning.quasi_newton import EPS, Evaluation
from mercer.tuning.search import Criterion
from mercer.tuning.trials import LOG_EVIDENCE, LOO_ERROR, Measure


@dataclass(frozen=True, eq=False)
class LeastSquaresCriterion(Criterion):
    """The value to minimise on some points: −log evidence, or ½ n log(leave-one-out error), of the same scale."""

    kernel: Kernel
    points: Points
    y: Matrix
    roots: Matrix | None
    tail: Matrix | None
    by: str
    low: Matrix
    high: Matrix
    floor: float  # smaller errors are rounding errors
    profile: bool = True  # whether an evaluation may also optimise the scale

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def measure(self) -> Measure:
        return LOO_ERROR if self.by == "loo" else LOG_EVIDENCE

    @property
    def names(self) -> list[str]:
        return [*self.kernel.parameter_names, "alpha"]

    def sample(self, index: NDArray[np.int64]) -> LeastSquaresCriterion:
        roots, tail = (None if a is None else a[index] for a in (self.roots, self.tail))
        points = self.points.take(index)
        return replace(self, points=points, y=self.y[index], roots=roots, tail=tail)

    def __call__(self, x: Matrix) -> Evaluation:
        """The value and its gradient; infinite if the system cannot be solved or the kernel overflows."""
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
        """The rounding error of an eigenvalue of K̃. With a smaller alpha, results would be rounding errors."""
        diagonal = kernel.diag(self.points)
        return EPS * float((diagonal if self.roots is None else diagonal * self.roots**2).sum())

    @property
    def ray(self) -> NDArray[np.bool_] | None:
        """The parameters whose best common factor is a closed form: the signal's variance and alpha."""
        factors = self.kernel.scale_factors
        if factors is None or self.by == "loo" or not self.profile:
            return None
        ray = np.append(factors, True)
        return ray if bool((self.low < self.high)[ray].all()) else None

    def alone(self, x: Matrix) -> float:
        try:
            arguments = self.kernel.with_theta(x[:-1]), self.points, self.y, float(np.exp(x[-1])), self.roots, self.tail
            if self.by == "loo":
                return 0.5 * self.n * float(np.log(max(loo_error(*arguments, gradient=False)[0], self.floor)))
            return -log_evidence(*arguments, gradient=False)[0]
        except (np.linalg.LinAlgError, InvalidInput):
            return np.inf

    def score(self, value: float) -> float:
        return float(np.exp(2.0 * value / self.n) if self.by == "loo" else -value)
