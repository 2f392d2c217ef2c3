"""Models that keep their data and predict by weighted means: a similarity, its bandwidth, and normalised weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.utils.validation import check_is_fitted

from mercer import memory
from mercer.data.batches import Batches, is_source
from mercer.data.frames import as_table, is_frame
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints, drawn
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.kernels.custom import bare_precomputed
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vectors.radial import ByWidth, Gaussian
from mercer.memory import allocatable
from mercer.models.base import KernelEstimator, Rows, check_columns, training_points
from mercer.models.least_squares.gaussian_process import appended
from mercer.models.least_squares.smoother import LinearSmoother
from mercer.models.local.bandwidth import (
    by_rule,
    nearer,
    require_nonnegative,
    similarity_of,
    spreads,
    with_bandwidth,
)
from mercer.models.quantiles import share
from mercer.smoothing import local_polynomial as local
from mercer.smoothing.sums.tiled import unit_of
from mercer.tuning.local_losses import SquaredError
from mercer.tuning.smoothing import loo_bandwidth
from mercer.validation import check_whole_number, generator

Matrix = NDArray[np.float64]

SAMPLE = 3000
"""Rows of a source in batches on which the bandwidth is chosen."""
EXACT_ROWS = 3000
"""Up to this number of rows the squares of weights are summed exactly, even if that takes a pass over all pairs."""


class LocalEstimator(KernelEstimator):
    """A model that keeps its rows and weights them by their similarity to the query: wᵢ(z)/Σ w."""

    kernel: Any
    bandwidth: Any
    kernel_: Any
    _rows: Rows
    _degree = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel = getattr(self, "kernel", None)
        known = kernel is None or isinstance(kernel, (Similarity, type))
        tags.input_tags.sparse = self._degree == 0 and known
        return tags

    def weights(self, X: Any) -> Matrix:
        """The normalised weights lᵢ(z) of every row for every query, shape (m, n): f(z) = Σ lᵢ(z) yᵢ.

        They sum to one over the rows. For degree ≥ 1 some are negative.
        """
        z = self._query_points(X)
        x, v = self._rows.points, self._v
        allocatable(8 * z.n * x.n, f"The weights of {x.n} rows for {z.n} queries", "Pass fewer queries at a time.")
        return local.weights(self._fit_at(z), self.kernel_, x, v, z, degree=self._degree, scale=self._scale(z))

    def effective_sample_size(self, X: Any) -> Matrix:
        """(Σ w)²/Σ w² for every query, shape (m,): how many rows of equal weight carry the same information.

        It is 1 if a single row decides, as it does far from all data, and n if all rows have equal weights. It is 0 if
        no row has any weight and none is nearest (for a new category): there the mean of all targets is predicted.
        """
        z = self._query_points(X)
        x, v, scale = self._rows.points, self._v, self._scale(z)
        means = local.fit(self.kernel_, x, self._rows.y[:, :1], v, z, scale=scale)
        size = 1.0 / local.spread(means, self.kernel_, x, v, z, scale=scale, squares=self._v2)
        size[self._unlike_all(means)] = 0.0
        return size

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _v(self) -> Matrix:
        """The weights of the rows."""
        rows = self._rows
        return np.ones(len(rows)) if rows.roots is None else rows.roots**2

    @property
    def _v2(self) -> Matrix:
        """The weights of the rows in sums of squares: a repeated row repeats its square."""
        return self._v

    def _scale(self, z: Points | None, exclude: bool = False) -> Matrix | None:
        """Factors of the bandwidth, one per query, or None."""
        return None

    def _query_points(self, X: Any) -> Points:
        """Checked queries; those far outside the data are moved nearer, because distances lose digits there.

        (The rows of `partial_fit` are not moved: they pass through `_queries` only.)
        """
        z = self._queries(X)
        moved = self._nearer(z)
        z = z if moved is None else self.kernel_.prepare(as_table(z.raw, moved))
        points = self._rows.points
        require_nonnegative(self.kernel_, points.sample if isinstance(points, StreamedPoints) else points, z)
        return z

    def _nearer(self, z: Points) -> Matrix | None:
        """The queries with far ones moved nearer, if points are dense vectors and the similarity is one of vectors."""
        kernel = self.kernel_
        vectors = kernel.space in ("vectors", "table") and all(leaf.space == "vectors" for leaf in kernel.leaves)
        if not vectors and not self._degree:
            return None
        try:
            Z, X = z.vectors(), self._rows.points.vectors()
        except InvalidInput:  # a table with other columns
            return None
        return None if sp.issparse(Z) or sp.issparse(X) else nearer(Z, X, unit_of(kernel))

    def _unlike_all(self, fits: local.LocalFit) -> NDArray[np.bool_]:
        """Whether no row is similar to a query and none is nearest, because the objects have no distance."""
        return fits.alone if local.narrowed(self.kernel_) is None else np.zeros_like(fits.alone)

    def _fit_at(self, z: Points | None, *, exclude: bool = False, y: Any = None, more: Any = None) -> local.LocalFit:
        rows = self._rows
        if z is None:
            require_nonnegative(self.kernel_, rows.points, rows.points)
        return local.fit(
            self.kernel_, rows.points, rows.y if y is None else y, self._v, z,
            degree=self._degree, exclude=exclude, scale=self._scale(z, exclude), more=more,
        )  # fmt: skip

    def _spread(self, fits: local.LocalFit, z: Points | None, *, exclude: bool = False) -> Matrix:
        """Σ lᵢ² of these fits; copies of a row count separately."""
        return local.spread(
            fits, self.kernel_, self._rows.points, self._v, z,
            degree=self._degree, exclude=exclude, scale=self._scale(z, exclude), squares=self._v2,
        )  # fmt: skip

    def _points(self, X: Any) -> Points:
        """Check X and the parameter `kernel`; set `kernel_`, whose bandwidth is chosen later."""
        if is_source(X) and self._in_batches:
            return self._streamed_points(Batches.of(X, None, None))
        points = training_points(X)
        self._read_kernel(X, points)
        return points

    def _streamed_points(self, batches: Batches) -> Points:
        """The same for rows in batches, of which a sample shows the kernel and its bandwidth."""
        points = StreamedPoints(batches, drawn(batches, SAMPLE, generator(0)))
        self._read_kernel(points.raw, points.sample)
        if batches.names is not None and not is_frame(points.raw):
            self.feature_names_in_ = np.array(batches.names, dtype=object)
        return points

    def _read_kernel(self, X: Any, points: Points) -> None:
        self.kernel_ = similarity_of(self.kernel, points, self._default)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)

    def _targets(self, points: Points, y: Any) -> Any:
        """y, or without it the targets that the source of rows in batches has."""
        return points.targets if y is None and isinstance(points, StreamedPoints) else y

    def _default(self, points: Points) -> Similarity:
        """The default similarity, before its bandwidth is chosen."""
        return median_gaussian(points) if sp.issparse(points.vectors()) else Gaussian(spreads(points))

    def _chosen_bandwidth(self) -> Any:
        """The parameter `bandwidth`; by default "loo" if no kernel was given, or a class of kernels with widths."""
        family = isinstance(self.kernel, type) and issubclass(self.kernel, ByWidth)
        return "loo" if self.bandwidth is None and (self.kernel is None or family) else self.bandwidth

    def _choose(self, loss: Callable[[Matrix, Matrix], Any]) -> None:
        """Set the bandwidth of `kernel_` by the parameter `bandwidth`."""
        rows, v, bandwidth = self._rows, self._v, self._chosen_bandwidth()
        points = rows.points
        if isinstance(points, StreamedPoints):
            rows, v = replace(rows, points=points.sample, y=rows.y[points.at]), v[points.at]
        self.loo_loss_: float | None = None
        self.status_ = "kernel as given"
        if isinstance(bandwidth, str) and bandwidth in ("loo", "loo-common"):
            start, common = self.kernel_, bandwidth == "loo-common"
            sparse = isinstance(start, ByWidth) and sp.issparse(rows.points.vectors())
            if isinstance(start, ByWidth) and not sparse and not common and "sigma" not in start.fixed:
                start = with_bandwidth(start, by_rule("spread", start, rows.points), rows.points)
            tuned = loo_bandwidth(start, rows.points, loss(rows.y, v), degree=self._degree, common=common)
            self.kernel_ = tuned.kernel
            self.status_ = "bandwidth not chosen: there is one row"
            if len(rows) > 1:
                self.loo_loss_ = tuned.value
                factor = ", one factor for all columns" if common else ""
                self.status_ = f"bandwidth by least leave-one-out loss{factor}"
        elif isinstance(bandwidth, str):
            self.kernel_ = with_bandwidth(self.kernel_, by_rule(bandwidth, self.kernel_, rows.points), rows.points)
            self.status_ = f"bandwidth by the rule {bandwidth!r}"
        elif bandwidth is not None:
            self.kernel_ = with_bandwidth(self.kernel_, bandwidth, rows.points)
            self.status_ = "bandwidth as given"
        by_rule_on_sample = isinstance(bandwidth, str) and isinstance(self.kernel_, ByWidth) and len(rows) < points.n
        if isinstance(points, StreamedPoints) and by_rule_on_sample:
            narrower = points.narrower(rows.points.vectors().shape[1])
            self.kernel_ = with_bandwidth(self.kernel_, narrower * np.asarray(self.kernel_.sigma), rows.points)
            self.status_ += f", on {len(rows):,} of {points.n:,} rows, times {narrower:.3g} for all of them"
        require_nonnegative(self.kernel_, rows.points)
        self.bandwidth_ = self.kernel_.sigma if isinstance(self.kernel_, ByWidth) else None

    def _append(self, new: Rows) -> Rows:
        """The rows of the model followed by new ones."""
        if isinstance(self._rows.points, StreamedPoints):
            raise InvalidInput(
                "`partial_fit` needs all rows in memory",
                got="a model of rows in batches",
                advice="Add the rows to the source, and fit again.",
            )
        if self.kernel_.pairwise:
            raise bare_precomputed("`partial_fit` requires a kernel that can be evaluated between old and new rows")
        return appended(self._rows, new)


class LocalSmoother(LinearSmoother, LocalEstimator):
    """A local fit of real targets, with the standard errors, bands and leave-one-out that follow from its weights."""

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows and choose the bandwidth."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Append rows; the bandwidth of the first call is kept. If the rows are refused, the model does not change."""
        if not hasattr(self, "_rows"):
            return self.fit(X, y, sample_weight)
        self._rows = self._append(Rows.of(self._queries(X), y, sample_weight))
        self._forget()
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """f(z) at m queries, shape (m,) or (m, t); with `return_std` also the standard error of f, in the same shape.

        Parameters
        ----------
        X : array, frame or list of objects
            m points.
        return_std : bool
            Whether to return √(σ²(z) Σ lᵢ(z)²) too, the standard deviation of f(z) over other draws of the targets,
            with the local variance σ²(z) of targets. It does not include the bias of smoothing (see `bands`).
        """
        z = self._query_points(X)
        if not return_std:
            return self._rows.shaped(self._fit_at(z).values)
        mean, error, *_ = self._distribution(z)
        return self._rows.shaped(mean), self._rows.shaped(error)

    def predict_distribution(self, X: Any, *, noise: bool = True) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of a new target (or, without noise, of f): shapes (m,) or (m, t)."""
        mean, error, deviation, _ = self._distribution(self._query_points(X))
        std = np.hypot(error, deviation) if noise else error
        return self._rows.shaped(mean), self._rows.shaped(std)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Matrix:
        """Intervals that contain a new target with the given probability, if targets are normal around f.

        They are f(z) ± q √(σ²(z) (1 + Σ lᵢ(z)²)) with the local variance σ²(z), which may change from place to place.
        Since it is estimated from few rows, q is the quantile of Student's t with 1/Σ lᵢ(z)² degrees of freedom.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            The probability, in (0, 1).

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        normal = ndtri(0.5 + 0.5 * share(coverage))
        mean, error, deviation, size = self._distribution(self._query_points(X))
        reach = _student(normal, size) * np.hypot(error, deviation)
        return self._rows.shaped(np.stack([mean - reach, mean + reach], axis=-1))

    def bands(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "asymptotic",
        simultaneous: bool = False,
        n_samples: int = 500,
        random_state: Any = 0,
    ) -> Matrix:
        """Confidence bands of the mean: at each query they contain E f(z) with the given probability.

        E f is the true function *smoothed*: where it bends within a bandwidth, f is biased by about ½ h² f'' (degree 0
        and 1), and bands computed from residuals do not include this bias. At the bandwidth of least error the bias is
        as large as the standard error, so a band covers the true function somewhat less often than `coverage`; with
        half that bandwidth the band is wider and the bias small.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            The probability, in (0, 1).
        method : str
            "asymptotic", f ± q·std with the normal quantile; or "bootstrap", which multiplies every residual by a
            standard normal number (wild bootstrap: the noise may differ from row to row). In both, the quantile q of a
            normal variable is replaced by that of Student's t with 1/Σ lᵢ(z)² degrees of freedom, the effective number
            of rows from which std is estimated.
        simultaneous : bool
            For the bootstrap, whether the band contains E f at all queries at once, or at each one.
        n_samples, random_state
            The number of bootstrap samples, and their seed.

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        inside = share(coverage)
        z = self._query_points(X)
        mean, error, _, size = self._distribution(z)
        normal = float(ndtri(0.5 + 0.5 * inside))
        if method == "asymptotic" and not simultaneous:
            reach = _student(normal, size) * error
            return self._rows.shaped(np.stack([mean - reach, mean + reach], axis=-1))
        if method != "bootstrap":
            raise InvalidInput(
                "`method` must be 'asymptotic' or 'bootstrap', and 'bootstrap' for a simultaneous band",
                got=repr(method),
                advice="Call bands(X, method='bootstrap', simultaneous=True).",
            )
        check_whole_number(n_samples, "n_samples", least=20, such_as=500)
        deviations = self._bootstrap_deviations(z, int(n_samples), generator(random_state))
        if simultaneous:
            unit = np.where(error > 0, error, 1.0)
            largest = np.abs(deviations / unit[:, :, None]).max(axis=0)
            reach = _student(np.quantile(largest, inside, axis=1), size) * error
            ends = np.stack([mean - reach, mean + reach], axis=-1)
        else:
            wider = _student(normal, size) / normal if normal > 0 else 1.0
            low, high = wider * np.quantile(deviations, [0.5 - 0.5 * inside, 0.5 + 0.5 * inside], axis=2)
            ends = np.stack([mean - high, mean - low], axis=-1)
        return self._rows.shaped(ends)

    @property
    def degrees_of_freedom_(self) -> float:
        """The trace of the smoother S, with f = S y on the training rows: the effective number of parameters."""
        check_is_fitted(self)
        return float(self._leverages()[1].sum())

    # -- inside -------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the results that belong to earlier rows."""
        self._cache: dict[str, Any] = {}

    def _smoothers(self, X: Any) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        yield np.arange(self._rows.y.shape[1]), self.weights(X)

    def _left_out(self) -> local.LocalFit:
        """The fits at each row without it, kept for the next call."""
        if "left_out" not in self._cache:
            if len(self._rows) < 2:
                raise InvalidInput(
                    "Leave-one-out, standard errors and bands require at least two rows",
                    got="one row",
                    advice="Fit on more rows.",
                )
            self._cache["left_out"] = self._fit_at(None, exclude=True)
        fits: local.LocalFit = self._cache["left_out"]
        return fits

    def _leave_one_out(self) -> Matrix:
        return self._rows.y - self._left_out().values

    def _leverages(self) -> tuple[Matrix, Matrix]:
        """f(xᵢ) (n, t) and Sᵢᵢ (n,): the row itself has u = 0, so Sᵢᵢ = w(xᵢ, xᵢ) vᵢ a₀."""
        rows = self._rows
        fits = self._fit_at(None)
        diagonal = np.exp(self.kernel_.log_diagonal(rows.points) - fits.log_scale) * self._v * fits.dual[:, 0]
        return fits.values, np.clip(np.where(fits.alone, 1.0, diagonal), 0.0, 1.0)

    def _residuals(self) -> Matrix:
        """Leave-one-out residuals over √(1 + Σ l²), which the fit adds to them: of the size of the noise. (n, t)"""
        if "residuals" not in self._cache:
            rows, fits = self._rows, self._left_out()
            if len(rows) <= EXACT_ROWS or not self.kernel_.squared().children:
                extra = self._spread(fits, None, exclude=True)
            else:
                # All pairs would be expensive. With this many rows Σ l² is small: Σ l² ≤ max l ≈ l at the query itself.
                log_diagonal = self.kernel_.log_diagonal(rows.points) - fits.log_scale
                extra = np.clip(np.exp(np.minimum(log_diagonal, 0.0)) * self._v * fits.dual[:, 0], 0.0, 1.0)
            self._cache["residuals"] = (rows.y - fits.values) / np.sqrt(1.0 + extra)[:, None]
        residuals: Matrix = self._cache["residuals"]
        return residuals

    @property
    def _unit(self) -> Matrix:
        """The largest deviation of every target from its mean, (t,): squares in this unit do not overflow."""
        y, v = self._rows.y, self._v
        largest = np.abs(y - (v / v.sum()) @ y).max(axis=0)
        return np.where(largest > 0, largest, 1.0)

    def _choose_by_error(self) -> None:
        """Set the bandwidth of `kernel_`; leave-one-out minimises the squared error."""
        unit = self._unit
        self._choose(lambda y, v: SquaredError.of((y - (v / v.sum()) @ y) / unit, v))
        if self.loo_loss_ is not None and len(unit) == 1:
            self.loo_loss_ = self.loo_loss_ * float(unit[0]) * float(unit[0])

    def _distribution(self, z: Points) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """f, its standard error, and the local standard deviation of targets: (m, t) each; and 1/Σ lᵢ², (m,)."""
        unit = self._unit
        fits = self._fit_at(z, more=(self._residuals() / unit) ** 2)
        share = self._spread(fits, z)
        deviation = unit * np.sqrt(fits.means)
        error = deviation * np.sqrt(share)[:, None]
        unlike = self._unlike_all(fits)
        if unlike.any():  # only the spread of all targets is known
            y, v = self._rows.y / unit, self._v / self._v.sum()
            error[unlike] = unit * np.sqrt(v @ (y - v @ y) ** 2)
        return fits.values, error, deviation, 1.0 / share

    def _bootstrap_deviations(self, z: Points, n_samples: int, rng: np.random.Generator) -> Matrix:
        """Σ lᵢ(z) sᵢ eᵢ for residuals e with standard normal factors s: (m, t, n_samples).

        Random signs would be enough for one query; but with few effective rows they bound the largest of many
        deviations.
        """
        e = self._residuals()
        n, t = e.shape
        # Copies of a row are drawn separately: the variance of their mean is divided by the weight.
        e = e * np.sqrt(self._v2)[:, None] / self._v[:, None]
        allocatable(
            8 * z.n * t * n_samples, f"{n_samples} bootstrap fits at {z.n} queries", "Pass fewer queries at a time."
        )
        deviations = np.empty((z.n, t, n_samples))
        step = max(1, memory.HELD // (n * t))
        for start in range(0, n_samples, step):
            draws = min(step, n_samples - start)
            factors = rng.normal(size=(n, 1, draws))
            targets = (e[:, :, None] * factors).reshape(n, -1)
            deviations[:, :, start : start + draws] = self._fit_at(z, y=targets).values.reshape(z.n, t, draws)
        return deviations


def _student(normal: Any, size: Matrix) -> Matrix:
    """Student's quantile for a normal one, a number or (t,), with `size` degrees of freedom: (m, 1) or (m, t)."""
    return np.asarray(-stdtrit(np.maximum(size, 1.0)[:, None], ndtr(-np.asarray(normal))))
