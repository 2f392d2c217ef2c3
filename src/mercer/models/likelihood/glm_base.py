"""The shared part of generalised linear models: the fit, predictions, intervals, and the content of a model file."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from mercer import memory, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.base import Matrix, numbers_by_row, outside, targets, weighted_rows, weights
from mercer.models.callbacks import with_callbacks
from mercer.models.likelihood import glm_intervals as intervals
from mercer.models.likelihood.glm_statistics import FitStatistics, constant_diverges
from mercer.models.likelihood.glm_summary import Summary
from mercer.models.likelihood.separation import LARGE, require_finite_minimum, require_numbers
from mercer.models.progress import watched
from mercer.models.quantiles import share
from mercer.problems.families import Family, Gaussian, family_of
from mercer.problems.links import Cloglog, Identity, Link, Log
from mercer.problems.losses import Deviance
from mercer.problems.spaces import FeatureSpace

# A response whose standard deviation is below this share of its mean equals the mean up to rounding.
EXACT_RESPONSE = 1e-12


class GeneralisedLinearModel(RegressorMixin, FitStatistics):  # type: ignore[misc]  # scikit-learn has no types
    """A model with a family for the response, a link, offsets and the statistics of the fit."""

    family: Any
    link: Any

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _variances(self, points: Points) -> Matrix:
        """h at m points: the variance of η divided by the dispersion, shape (m,)."""

    @abstractmethod
    def summary(self, coverage: float = 0.95) -> Summary:
        """The fit as a table."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None, offset: Any = None,
        target: str | None = None,
    ) -> Self:  # fmt: skip
        """Fit to n points X and their responses y, shape (n,).

        With a kernel, X may be a path or a `Batches`: its rows are then read in batches, once per pass, which needs
        Nyström centres.

        Parameters
        ----------
        X, y : array or frame, array
            Points and responses; the family determines which values y may have.
        sample_weight : array or None
            How often each row counts: weight 2 is the same as the row given twice, weight 0 as the row left out. (The
            random choice of Nyström centres ignores the weights.)
        exposure : array or None
            Time, area or number at risk, > 0: y is a count over it, with mean exposure · g⁻¹(f(x)). It adds
            log(exposure) to η, so the link must be the logarithm (or the complementary log-log).
        offset : array or None
            Known numbers that are added to η and not fitted.
        target : str or None
            The column of a file that holds the responses.
        """
        X, points, y = self._data(X, y, target)
        self.family_: Family = family_of(self.family)
        self.link_: Link = self.family_.link(self.link)
        response = _checked_response(y, points.n, self.family_)
        w = weights(sample_weight, points.n)
        shift = self._shift(exposure, offset, points.n)
        kept = weighted_rows(w, points.n)
        self._y, self._shifts, self._kept = response, shift, kept
        self._cache: dict[str, Any] = {}
        self._rest: Points | None = None
        if len(kept) < points.n:
            self._rest = points.take(np.setdiff1d(np.arange(points.n), kept))
            points, response = points.take(kept), response[kept]
            w, shift = w[kept] if w is not None else None, None if shift is None else shift[kept]
        loss = Deviance(self.family_, self.link_)
        if self.fit_intercept:
            _require_bounded(loss, response)
        with np.errstate(over="ignore"):  # `require_numbers` reports an overflow
            space = self._open(X, points, response)
        require_numbers(self, space, w)
        with watched(self, 1, X, y, sample_weight):
            self._minimise(space, loss, response, w, shift)
        require_finite_minimum(self._risk, self._minimum, names=getattr(self, "feature_names_in_", None))
        self._finish()
        return self

    def _shift(self, exposure: Any, offset: Any, n: int) -> Matrix | None:
        """The sum of the offset and log(exposure), which is added to η, shape (n,), or None."""
        shift = None if offset is None else _number_per_point(offset, n, "offset")
        if exposure is None:
            return shift
        if not isinstance(self.link_, (Log, Cloglog)):
            raise InvalidInput(
                "`exposure` multiplies the mean, so it requires a log link, where it becomes an offset",
                got=f"link={self.link_.name!r}",
                advice="Use link='log', or pass `offset` on the scale of η.",
            )
        log_exposure = np.log(exposures(exposure, n))
        return log_exposure if shift is None else log_exposure + shift

    # -- predictions --------------------------------------------------------------------------------------------------

    def _eta(self, X: Any, exposure: Any, offset: Any) -> tuple[Points, Matrix]:
        """The queries and η at them."""
        check_is_fitted(self)
        points = self._queries(X)
        eta = self._values(points)[:, 0]
        shift = self._shift(exposure, offset, points.n)
        return points, eta if shift is None else eta + shift

    def predict_linear(self, X: Any, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """η = f(x) + offset + log(exposure) at m points, shape (m,)."""
        return self._eta(X, exposure, offset)[1]

    def predict(self, X: Any, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """The mean of the response at m points, shape (m,); without `exposure`, per unit of exposure.

        If η is outside the link's domain (the inverse link allows positive values only), the nearest end of the domain
        is used.
        """
        return intervals.means(self._loss(), self._eta(X, exposure, offset)[1])

    def mean_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """Intervals for the mean at m points, shape (m, 2): g⁻¹(η ± q √(φ h)).

        q is a quantile of Student's t if φ was estimated, and of the normal distribution if the family fixes it, as in
        `confidence_intervals`. For alpha > 0 it is a posterior interval, with a Gaussian prior of variance φ/alpha on
        the weights (or of covariance φ k/alpha on f).
        """
        points, eta = self._eta(X, exposure, offset)
        reach = self._reach(coverage) * np.sqrt(self.dispersion_ * self._finite_variances(points))
        return np.sort(intervals.means(self._loss(), np.stack([eta - reach, eta + reach], axis=1)), axis=1)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """Intervals that contain a new response at each of m points with the given probability, shape (m, 2).

        The ends are quantiles of the family, with a mean that is itself uncertain: the distribution of η, normal or
        Student's t as in `mean_interval`, is integrated out. For the Gaussian family with the identity link these are
        the intervals of least squares, mean ± t √(φ(1 + h)). For counts both ends are whole numbers, and the coverage
        is at least the given one. The dispersion of the response itself is treated as known.
        """
        inside = share(coverage)
        points, eta = self._eta(X, exposure, offset)
        dispersion, h = self.dispersion_, self._finite_variances(points)
        if self._classical:
            reach = self._reach(coverage) * np.sqrt(dispersion * (1.0 + h))
            return np.stack([eta - reach, eta + reach], axis=1)
        mu = intervals.means(self._loss(), eta)
        if (largest := float(np.abs(mu).max())) > LARGE:
            raise InvalidInput(
                f"An interval for a new response requires a mean within ±{LARGE:g}, so that its square fits float64",
                got=f"{largest:.3g}",
                advice="Check the columns of X: a query this far from the training rows has no meaningful interval.",
            )
        ends = np.stack([mu, mu], axis=1)
        wide = np.flatnonzero(dispersion * self.family_.variance(mu) > (EXACT_RESPONSE * mu) ** 2)
        for part in threads.spans(len(wide), memory.HELD // 256):
            rows = wide[part]
            deviation = np.sqrt(dispersion * h[rows])
            for j, q in enumerate((0.5 - 0.5 * inside, 0.5 + 0.5 * inside)):
                ends[rows, j] = intervals.quantiles(
                    self._loss(), q, eta[rows], deviation, dispersion, self._freedom_of_errors()
                )
        return ends

    def _finite_variances(self, points: Points) -> Matrix:
        """h at m points; an error if it overflows, at points very far from all rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            h = self._variances(points)
        bad = np.flatnonzero(~np.isfinite(h))
        if len(bad):
            raise InvalidInput(
                "The variance of η must fit float64 at every query",
                got=f"an overflow in row {bad[0]} ({len(bad)} such rows)",
                advice="Check the columns of X: an interval this far from the training rows would be infinite.",
            )
        return h

    @property
    def _classical(self) -> bool:
        """Whether this is least squares, whose intervals are exact."""
        return isinstance(self.family_, Gaussian) and isinstance(self.link_, Identity)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, offset: Any = None) -> float:
        """D² = 1 − deviance/deviance of the best constant for these rows: the share of the deviance that is explained.

        1 is perfect, 0 no better than a constant; for the Gaussian family it is R². If the model was fitted with
        exposures or offsets, pass those of these rows; without them there is a warning.
        """
        if exposure is None and offset is None and self._shifts is not None:
            warnings.warn(
                "This model was fitted with exposures or offsets: a score without them treats every row as one unit. "
                "Pass `exposure` (cross-validation: set_score_request(exposure=True) with metadata routing).",
                UserWarning,
                stacklevel=outside(),
            )
        points, eta = self._eta(X, exposure, offset)
        response = _checked_response(y, points.n, self.family_)
        w, shift = weights(sample_weight, points.n), self._shift(exposure, offset, points.n)
        return self._explained(response, intervals.means(self._loss(), eta), w, shift)

    # -- files and scikit-learn ---------------------------------------------------------------------------------------

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` is available: with the curvature in the file, or one computed from the rows."""
        if in_file:
            return self._on_rows() or "_curvature" in self._file_state()[1]
        return "_curvature" in self.__dict__ or "_packed" not in self.__dict__.get("_not_in_file", ())

    def _training_only(self) -> tuple[str, ...]:
        return () if self._on_rows() else (*super()._training_only(), "_y", "_rest")

    def _on_rows(self) -> bool:
        """Whether f is a sum over all rows, of kernel values or of products of features."""
        return bool(getattr(self, "_wide", getattr(self, "_centres", None) is None))

    def _file_state(self) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Files hold the curvature and the dispersion, which intervals need, and the rows only if f is a sum over them.

        The curvature is left out if it is larger than the training data, and on Nyström centres.
        """
        if not hasattr(self, "family_"):
            return super()._file_state()
        curvature: Any = None
        with suppress(InvalidInput):
            curvature = self._system()
            self._cache |= {"dispersion": self.dispersion_, "left": self._residual_freedom()}
        parameters, fitted, left_out = super()._file_state()
        fitted["_cache"] = {name: float(self._cache[name]) for name in ("dispersion", "left") if name in self._cache}
        if self._on_rows():
            fitted["_fisher"] = self._fisher_weights()
        elif self._shifts is not None:
            fitted["_shifts"] = self._shifts[:0]  # records that there were offsets
        space: Any = getattr(curvature, "space", None)
        if isinstance(space, FeatureSpace) and space.size <= (space.n or space.size):
            fitted["_curvature"] = curvature.seen_from(space.restrict(np.arange(0)), exact=curvature.exact)
        return parameters, fitted, left_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(InvalidInput):
            tags.target_tags.positive_only = family_of(self.family).range == (0.0, np.inf)
        return tags


def _checked_response(y: Any, n: int, family: Family) -> Matrix:
    """y as (n,) float64 in the support of the family."""
    Y, single = targets(y, n)
    if Y.shape[1] > 1:
        raise InvalidInput(
            f"y must hold one response per point, shape ({n},)",
            got=f"shape {Y.shape}",
            advice="Fit one model for each column of y.",
        )
    if not single:
        message = "A column-vector y was passed when a 1d array was expected: pass y.ravel()."
        warnings.warn(message, DataConversionWarning, stacklevel=outside())
    family.check(Y[:, 0])
    if (largest := float(np.abs(Y).max())) > LARGE:
        raise InvalidInput(
            f"y must hold numbers within ±{LARGE:g}, whose squares can be summed",
            got=f"{largest:.3g}",
            advice="Divide y by its mean, or measure it in a larger unit.",
        )
    return Y[:, 0]


def exposures(argument: Any, n: int, *, zero: bool = False) -> Matrix:
    """The exposures of n points, checked: finite numbers > 0, or ≥ 0 if `zero` is allowed."""
    return _number_per_point(argument, n, "exposure", "≥ 0" if zero else "> 0")


def _number_per_point(argument: Any, n: int, name: str, sign: str = "") -> Matrix:
    """`exposure` (of a sign) or `offset` as (n,) float64."""
    required = f"`{name}` must hold {n} finite numbers{f' {sign}' if sign else ''}, one per point"
    values = numbers_by_row(argument, required, "Pass one real number per point.")
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise InvalidInput(required, got=f"shape {values.shape}", advice="Pass one number per point.")
    bad = ~np.isfinite(values)
    if sign:
        bad |= values < 0 if sign == "≥ 0" else values <= 0
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        advice = "Drop the rows without exposure." if sign else "Drop these rows, or fill them in."
        raise InvalidInput(required, got=f"{values[row]} in row {row} ({int(bad.sum())} such rows)", advice=advice)
    return values


def _require_bounded(loss: Deviance, y: Matrix) -> None:
    """Raise if the likelihood grows without limit with the intercept: all counts are zero, or there is one class."""
    if constant_diverges(loss, y):
        raise InvalidInput(
            f"With an intercept, y of the {loss.family.name} family must not be at the end of its range in every row: "
            "the likelihood would have no maximum",
            got=f"{y[0]:g} in all {len(y)} rows of weight > 0",
            advice="Check y and the weights, or set fit_intercept=False.",
        )
