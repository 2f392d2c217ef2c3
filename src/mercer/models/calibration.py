"""Calibration: do intervals contain as many new targets as they promise?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.models.base import targets
from mercer.validation import check_numbers

Matrix = NDArray[np.float64]

ERRORS = 2.5
"""A larger deviation than this, in standard errors, is not chance. One in 25 reports of four coverages is wrong."""
COARSE = 0.1
"""With larger standard errors than this a report can show little."""


class IntervalQuality(StrEnum):
    """How well intervals keep their promise."""

    WELL_CALIBRATED = "well calibrated"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    WRONG_SHAPE = "of the wrong shape"


@dataclass(frozen=True, repr=False)
class Calibration:
    """Promised against observed coverage on held-out rows.

    Attributes
    ----------
    n : int
        The number of targets.
    coverages : tuple of float
        The promised shares.
    observed : tuple of float
        The shares of targets inside their intervals.
    errors : tuple of float
        Standard errors of the observed shares if the promise holds, √(p(1 − p)/n).
    widths : tuple of float
        Mean widths of the intervals, in the units of y.
    rmse : float
        Root mean squared error of the predictions.
    nlpd : float or None
        −log predictive density, mean over targets; None for models without a predictive distribution.
    bias, spread : float or None
        Mean and variance of the standardised residuals (y − mean)/std, which are 0 and 1 if the model is right; None
        for models without a predictive distribution.
    """

    n: int
    coverages: tuple[float, ...]
    observed: tuple[float, ...]
    errors: tuple[float, ...]
    widths: tuple[float, ...]
    rmse: float
    nlpd: float | None = None
    bias: float | None = None
    spread: float | None = None

    @classmethod
    def of(cls, y: Any, predictions: Any, intervals: Mapping[float, Any]) -> Calibration:
        """From targets and predictions of held-out rows, and the ends of their intervals by coverage, shape (…, 2).

        >>> import numpy as np
        >>> y = np.random.default_rng(0).normal(size=400)
        >>> round(Calibration.of(y, 0 * y, {0.9: np.tile([-1.645, 1.645], (400, 1))}).observed[0], 1)
        0.9
        """
        Y, mean = np.asarray(y, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
        observed, widths = [], []
        for each in intervals.values():
            ends = np.asarray(each, dtype=np.float64).reshape(*Y.shape, 2)
            observed.append(float(((ends[..., 0] <= Y) & (ends[..., 1] >= Y)).mean()))
            widths.append(float((ends[..., 1] - ends[..., 0]).mean()))
        errors = tuple(float(np.sqrt(c * (1 - c) / Y.size)) for c in intervals)
        rmse = float(np.sqrt(((Y - mean) ** 2).mean()))
        return cls(Y.size, tuple(intervals), tuple(observed), errors, tuple(widths), rmse)

    @property
    def kind(self) -> IntervalQuality:
        """Well calibrated, too narrow, too wide, or of the wrong shape."""
        excess, off = self._deviations()
        if not off.any():
            return IntervalQuality.WELL_CALIBRATED
        if (excess[off] < 0).all():
            return IntervalQuality.TOO_NARROW
        return IntervalQuality.TOO_WIDE if (excess[off] > 0).all() else IntervalQuality.WRONG_SHAPE

    @property
    def verdict(self) -> str:
        """`kind` in words, with the coverage that deviates most from its promise."""
        kind, (excess, off) = self.kind, self._deviations()
        if kind is IntervalQuality.WELL_CALIBRATED:
            return kind + (f", as far as {self.n} targets can show" if max(self.errors) > COARSE else "")
        worst = int(np.argmax(np.abs(excess) / np.asarray(self.errors) * off))
        example = f"the {self.coverages[worst]:.0%} intervals contain {self.observed[worst]:.1%}"
        if kind is IntervalQuality.WRONG_SHAPE:
            example = f"too wide at some coverages and too narrow at others ({example})"
        return f"{kind}: {example}"

    def _deviations(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """By how much the observed shares exceed the promised ones, and which deviate by more than chance explains."""
        excess = np.subtract(self.observed, self.coverages)
        # One target more or less is never evidence.
        return excess, np.abs(excess) > np.maximum(ERRORS * np.asarray(self.errors), 1.0 / self.n)

    def __str__(self) -> str:
        lines = ["coverage  observed         mean width"]
        lines += [
            f"{p:8.1%}  {o:6.1%} ± {e:5.1%}  {w:10.4g}"
            for p, o, e, w in zip(self.coverages, self.observed, self.errors, self.widths)
        ]
        summary = f"RMSE {self.rmse:.4g}"
        if self.nlpd is not None:
            summary += (
                f", NLPD {self.nlpd:.4g}, standardised residuals: mean {self.bias:.2f}, variance {self.spread:.2f}"
            )
        return "\n".join([*lines, summary, f"{self.n} targets: {self.verdict}"])

    __repr__ = __str__


def calibration(
    model: Any, X: Any, y: Any, coverages: Sequence[float] = (0.5, 0.8, 0.9, 0.95), *, method: str | None = None
) -> Calibration:
    """How well the intervals of a fitted regressor keep their promise on held-out rows.

    Parameters
    ----------
    model : estimator
        A fitted model with `predict_interval` (or a Pipeline that ends in one); its `predict_distribution`, if it has
        one, is assessed, too.
    X, y : array or frame, array
        n held-out points and their targets, shape (n,) or (n, t). All targets count equally, so that the standard
        errors are right if the targets are independent.
    coverages : sequence of float
        The coverages to check, each in (0, 1).
    method : str or None
        Which intervals, if the model has several kinds, such as "jackknife+".

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, size=(400, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = mc.GaussianProcessRegressor(mc.Gaussian(1.0), alpha=0.01).fit(X[:200], y[:200])
    >>> print(mc.calibration(model, X[200:], y[200:], coverages=(0.5, 0.9)))
    coverage  observed         mean width
       50.0%   51.0% ±  3.5%      0.1382
       90.0%   90.5% ±  2.1%       0.337
    RMSE 0.1017, NLPD -0.8663, standardised residuals: mean -0.07, variance 0.98
    200 targets: well calibrated
    >>> mc.calibration(model.set_params(alpha=1e-4).fit(X[:200], y[:200]), X[200:], y[200:]).kind.value
    'too narrow'
    """
    if isinstance(model, Pipeline):
        X, model = model[:-1].transform(X), model[-1]
    if not hasattr(model, "predict_interval"):
        raise InvalidInput(
            "`model` must have predict_interval",
            got=type(model).__name__,
            advice="Pass a fitted model such as mc.KernelRidge().",
        )
    promised = _promised(coverages)
    Y, _ = targets(y, length(X))
    options = {} if method is None else {"method": method}
    if options and "method" not in inspect.signature(model.predict_interval).parameters:
        raise InvalidInput(
            "`method` is for models with several kinds of intervals",
            got=f"{method!r} for {type(model).__name__}, which has one",
            advice="Omit `method`.",
        )
    mean, std = _predictive(model, X, Y.shape)
    judged = Calibration.of(Y, mean, {c: model.predict_interval(X, c, **options) for c in promised})
    if std is None:
        return judged
    z = (Y - mean) / std
    nlpd = float((0.5 * z**2 + np.log(std)).mean() + 0.5 * np.log(2 * np.pi))
    return Calibration(**{**vars(judged), "nlpd": nlpd, "bias": float(z.mean()), "spread": float(z.var())})


def _promised(coverages: Any) -> tuple[float, ...]:
    """The coverages as numbers in (0, 1), at least one."""
    required, advice = "`coverages` must be numbers in (0, 1)", "Pass shares such as (0.5, 0.9)."
    p = np.atleast_1d(check_numbers(coverages, required, above=0, below=1, advice=advice))
    if p.ndim > 1 or not p.size:
        raise InvalidInput(required, got=f"shape {p.shape}", advice=advice)
    return tuple(p.tolist())


def _predictive(model: Any, X: Any, shape: tuple[int, ...]) -> tuple[Matrix, Matrix | None]:
    """Mean and standard deviation of new targets, the latter if the model has a predictive distribution."""
    if not hasattr(model, "predict_distribution"):
        return np.asarray(model.predict(X), dtype=np.float64).reshape(shape), None
    mean, std = (np.asarray(a, dtype=np.float64).reshape(shape) for a in model.predict_distribution(X))
    return mean, std if (std > 0).all() else None  # a certain prediction has no density
