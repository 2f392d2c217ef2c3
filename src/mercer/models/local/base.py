"""What models that keep their data share: a similarity with its bandwidth, normalised weights, and support."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.utils.validation import check_is_fitted

from mercer.data.frames import as_table
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
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
from mercer.validation import generator

Matrix = NDArray[np.float64]

EXACT = 3000
"""Rows up to which the squares of weights are summed even where no fast way is known."""
BATCH = 2**22
"""Bootstrap targets that are held at a time."""


class LocalEstimator(KernelEstimator):
    """A model that keeps its rows and weighs them by their similarity to the query: wᵢ(z)/Σ w."""

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

        They sum to one over the rows. From degree 1 on some are negative.
        """
        z = self._query_points(X)
        x, v = self._rows.points, self._v
        allocatable(8 * z.n * x.n, f"The weights of {x.n} rows for {z.n} queries", "Ask for fewer queries at a time.")
        return local.weights(self._fit_at(z), self.kernel_, x, v, z, degree=self._degree, scale=self._scale(z))

    def effective_sample_size(self, X: Any) -> Matrix:
        """(Σ w)²/Σ w² for every query, shape (m,): how many rows of equal weight would say as much.

        It is 1 where a single row decides, as far from all data, and n where all count alike. It is 0 where no row has
        any weight and none is nearest (a category that is new): there the mean of all is predicted.
        """
        z = self._query_points(X)
        x, v, scale = self._rows.points, self._v, self._scale(z)
        made = local.fit(self.kernel_, x, self._rows.y[:, :1], v, z, scale=scale)
        size = 1.0 / local.spread(made, self.kernel_, x, v, z, scale=scale, squares=self._v2)
        size[self._unlike_all(made)] = 0.0
        return size

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _v(self) -> Matrix:
        """The weights of the rows."""
        rows = self._rows
        return np.ones(len(rows)) if rows.roots is None else rows.roots**2

    @property
    def _v2(self) -> Matrix:
        """The weights of squares over rows: repetition repeats the squares too."""
        return self._v

    def _scale(self, z: Points | None, exclude: bool = False) -> Matrix | None:
        """Factors of the bandwidth, one per query."""
        return None

    def _query_points(self, X: Any) -> Points:
        """Checked queries; those that are far outside of the data are moved nearer, for distances lose digits there.

        (Not so the rows of `partial_fit`, which are kept as they are: `_queries`.)
        """
        z = self._queries(X)
        moved = self._nearer(z)
        z = z if moved is None else self.kernel_.prepare(as_table(z.raw, moved))
        require_nonnegative(self.kernel_, self._rows.points, z)
        return z

    def _nearer(self, z: Points) -> Matrix | None:
        """Far queries moved nearer, where points are dense vectors and the similarity is one of vectors."""
        kernel = self.kernel_
        vectors = kernel.space in ("vectors", "table") and all(leaf.space == "vectors" for leaf in kernel.leaves)
        if not vectors and not self._degree:
            return None
        try:
            Z, X = z.vectors(), self._rows.points.vectors()
        except InvalidInput:  # a table with other columns
            return None
        return None if sp.issparse(Z) or sp.issparse(X) else nearer(Z, X, unit_of(kernel))

    def _unlike_all(self, made: local.LocalFit) -> NDArray[np.bool_]:
        """Queries to which no row is similar and none is nearest: objects without a distance."""
        return made.alone if local.narrowed(self.kernel_) is None else np.zeros_like(made.alone)

    def _fit_at(self, z: Points | None, *, exclude: bool = False, y: Any = None, more: Any = None) -> local.LocalFit:
        rows = self._rows
        if z is None:
            require_nonnegative(self.kernel_, rows.points, rows.points)
        return local.fit(
            self.kernel_, rows.points, rows.y if y is None else y, self._v, z,
            degree=self._degree, exclude=exclude, scale=self._scale(z, exclude), more=more,
        )  # fmt: skip

    def _spread(self, made: local.LocalFit, z: Points | None, *, exclude: bool = False) -> Matrix:
        """Σ lᵢ² of these fits, copies of a row counted apart."""
        return local.spread(
            made, self.kernel_, self._rows.points, self._v, z,
            degree=self._degree, exclude=exclude, scale=self._scale(z, exclude), squares=self._v2,
        )  # fmt: skip

    def _points(self, X: Any) -> Points:
        """Check X, and the similarity that is asked for (its bandwidth is chosen later)."""
        points = training_points(X)
        self.kernel_ = similarity_of(self.kernel, points, self._default)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        return points

    def _default(self, points: Points) -> Similarity:
        """The similarity where none was given, before its bandwidth."""
        return median_gaussian(points) if sp.issparse(points.vectors()) else Gaussian(spreads(points))

    def _chosen_bandwidth(self) -> Any:
        """What `bandwidth` says; without it and without a kernel that has one leave-one-out chooses."""
        family = isinstance(self.kernel, type) and issubclass(self.kernel, ByWidth)
        return "loo" if self.bandwidth is None and (self.kernel is None or family) else self.bandwidth

    def _choose(self, loss: Callable[[Matrix, Matrix], Any]) -> None:
        """Give `kernel_` the bandwidth that is asked for."""
        rows, given = self._rows, self._chosen_bandwidth()
        self.loo_loss_: float | None = None
        self.status_ = "kernel as given"
        if isinstance(given, str) and given in ("loo", "loo-common"):
            start = self.kernel_
            sparse = isinstance(start, ByWidth) and sp.issparse(rows.points.vectors())
            if isinstance(start, ByWidth) and not sparse and given == "loo" and "sigma" not in start.fixed:
                start = with_bandwidth(start, by_rule("spread", start, rows.points), rows.points)
            tuned = loo_bandwidth(
                start, rows.points, loss(rows.y, self._v), degree=self._degree, common=given == "loo-common"
            )
            self.kernel_ = tuned.kernel
            self.status_ = "bandwidth not chosen: there is one row"
            if len(rows) > 1:
                self.loo_loss_ = tuned.value
                self.status_ = "bandwidth by least leave-one-out loss" + (", one factor" if given != "loo" else "")
        elif isinstance(given, str):
            self.kernel_ = with_bandwidth(self.kernel_, by_rule(given, self.kernel_, rows.points), rows.points)
            self.status_ = f"bandwidth by the rule {given!r}"
        elif given is not None:
            self.kernel_ = with_bandwidth(self.kernel_, given, rows.points)
            self.status_ = "bandwidth as given"
        require_nonnegative(self.kernel_, rows.points)
        self.bandwidth_ = getattr(self.kernel_, "sigma", None)

    def _append(self, new: Rows) -> Rows:
        if self.kernel_.pairwise:
            raise InvalidInput(
                "`partial_fit` needs a kernel that can be evaluated between old and new rows",
                got="bare Precomputed()",
                advice="Use Precomputed(K) with the matrix of all points, and positions in it as X.",
            )
        return appended(self._rows, new)


class LocalSmoother(LinearSmoother, LocalEstimator):
    """A local fit of real targets, with what follows from its weights: standard errors, bands and leave-one-out."""

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows and choose the bandwidth."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Append rows; the bandwidth stays that of the first call. Rows that are refused leave the model as it was."""
        if not hasattr(self, "_rows"):
            return self.fit(X, y, sample_weight)
        self._rows = self._append(Rows.of(self._queries(X), y, sample_weight))
        self._forget()
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """f(z) at m queries, shape (m,) or (m, t); with the standard error of f, in the same shape.

        Parameters
        ----------
        X : m points.
        return_std : also √(σ²(z) Σ lᵢ(z)²), the standard deviation of f(z) over other draws of the targets, with the
            local variance σ²(z) of targets. It knows nothing of the bias of smoothing (see `bands`).
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
        """Intervals that hold a new target with the given probability, if targets are normal around f.

        f(z) ± q √(σ²(z) (1 + Σ lᵢ(z)²)) with the local variance σ²(z), which may change from place to place; it is
        estimated from few rows, so q is the quantile of Student's t with 1/Σ lᵢ(z)² degrees of freedom.

        Parameters
        ----------
        X : m queries.
        coverage : in (0, 1).

        Returns
        -------
        lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
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
        """Confidence bands of the mean: at each query they hold E f(z) with the given probability.

        E f is the true function *smoothed*: where that bends within a bandwidth f is biased by about ½ h² f'' (degree 0
        and 1), which no band made of residuals sees. The bandwidth of least error has a bias as large as its standard
        error, so that a band covers the true function somewhat less often than it says; half that bandwidth mends it,
        for a wider band.

        Parameters
        ----------
        X : m queries.
        coverage : in (0, 1).
        method : "asymptotic", f ± q·std with the normal quantile; or "bootstrap", which multiplies every residual
            by a standard normal number (wild bootstrap: the noise may differ from row to row). In both the quantile q
            of a normal variable is replaced by that of Student's t with as many degrees of freedom as rows have a say,
            1/Σ lᵢ(z)²: std is estimated from them.
        simultaneous : for the bootstrap, whether the band holds all of the queries at once, not each one.
        n_samples, random_state : of the bootstrap.

        Returns
        -------
        lower and upper ends, shape (m, 2), or (m, t, 2) for t targets.
        """
        held = share(coverage)
        z = self._query_points(X)
        mean, error, _, size = self._distribution(z)
        normal = float(ndtri(0.5 + 0.5 * held))
        if method == "asymptotic" and not simultaneous:
            reach = _student(normal, size) * error
            return self._rows.shaped(np.stack([mean - reach, mean + reach], axis=-1))
        if method != "bootstrap":
            raise InvalidInput(
                "`method` must be 'asymptotic' or 'bootstrap', and 'bootstrap' for a simultaneous band",
                got=repr(method),
                advice="bands(X, method='bootstrap', simultaneous=True).",
            )
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 20:
            raise InvalidInput("`n_samples` must be a whole number ≥ 20", got=repr(n_samples), advice="Such as 500.")
        moved = self._redrawn(z, int(n_samples), generator(random_state))
        if simultaneous:
            unit = np.where(error > 0, error, 1.0)
            largest = np.abs(moved / unit[:, :, None]).max(axis=0)
            reach = _student(np.quantile(largest, held, axis=1), size) * error
            ends = np.stack([mean - reach, mean + reach], axis=-1)
        else:
            wider = _student(normal, size) / normal if normal > 0 else 1.0
            low, high = wider * np.quantile(moved, [0.5 - 0.5 * held, 0.5 + 0.5 * held], axis=2)
            ends = np.stack([mean - high, mean - low], axis=-1)
        return self._rows.shaped(ends)

    @property
    def degrees_of_freedom_(self) -> float:
        """The trace of the smoother S, f = S y on the training rows: how many targets the fit could follow freely."""
        check_is_fitted(self)
        return float(self._leverages()[1].sum())

    # -- inside -------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop what was computed from other rows."""
        self._cache: dict[str, Any] = {}

    def _smoothers(self, X: Any) -> Iterator[tuple[NDArray[np.int64], Matrix]]:
        yield np.arange(self._rows.y.shape[1]), self.weights(X)

    def _left_out(self) -> local.LocalFit:
        """The fits at each row without it, kept."""
        if "left_out" not in self._cache:
            if len(self._rows) < 2:
                raise InvalidInput(
                    "Leave-one-out needs two rows", got="one row", advice="Standard errors and bands need it, too."
                )
            self._cache["left_out"] = self._fit_at(None, exclude=True)
        made: local.LocalFit = self._cache["left_out"]
        return made

    def _leave_one_out(self) -> Matrix:
        return self._rows.y - self._left_out().values

    def _leverages(self) -> tuple[Matrix, Matrix]:
        """f(xᵢ) (n, t) and Sᵢᵢ (n,): the own row has u = 0, so Sᵢᵢ = w(xᵢ, xᵢ) vᵢ a₀."""
        rows = self._rows
        made = self._fit_at(None)
        own = np.exp(self.kernel_.log_diagonal(rows.points) - made.log_scale) * self._v * made.dual[:, 0]
        return made.values, np.clip(np.where(made.alone, 1.0, own), 0.0, 1.0)

    def _residuals(self) -> Matrix:
        """Leave-one-out residuals, each divided by what its own fit adds to it: of the size of the noise. (n, t)"""
        if "residuals" not in self._cache:
            rows, made = self._rows, self._left_out()
            if len(rows) <= EXACT or not self.kernel_.squared().children:
                extra = self._spread(made, None, exclude=True)
            else:
                # all pairs would be dear: with so many rows Σ l² is small, and Σ l² ≤ max l ≈ l at the query itself
                own = self.kernel_.log_diagonal(rows.points) - made.log_scale
                extra = np.clip(np.exp(np.minimum(own, 0.0)) * self._v * made.dual[:, 0], 0.0, 1.0)
            self._cache["residuals"] = (rows.y - made.values) / np.sqrt(1.0 + extra)[:, None]
        found: Matrix = self._cache["residuals"]
        return found

    @property
    def _unit(self) -> Matrix:
        """The largest deviation of every target from its mean, (t,): squares of targets in this unit are numbers."""
        y, v = self._rows.y, self._v
        largest = np.abs(y - (v / v.sum()) @ y).max(axis=0)
        return np.where(largest > 0, largest, 1.0)

    def _choose_by_error(self) -> None:
        """Give `kernel_` the bandwidth that is asked for: by the squared error, if by leave-one-out."""
        unit = self._unit
        self._choose(lambda y, v: SquaredError.of((y - (v / v.sum()) @ y) / unit, v))
        if self.loo_loss_ is not None and len(unit) == 1:
            self.loo_loss_ = self.loo_loss_ * float(unit[0]) * float(unit[0])

    def _distribution(self, z: Points) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """f, its standard error, and the local standard deviation of targets: (m, t) each; and 1/Σ lᵢ², (m,)."""
        unit = self._unit
        made = self._fit_at(z, more=(self._residuals() / unit) ** 2)
        share = self._spread(made, z)
        deviation = unit * np.sqrt(made.means)
        error = deviation * np.sqrt(share)[:, None]
        unlike = self._unlike_all(made)
        if unlike.any():  # nothing is known but how targets spread
            y, v = self._rows.y / unit, self._v / self._v.sum()
            error[unlike] = unit * np.sqrt(v @ (y - v @ y) ** 2)
        return made.values, error, deviation, 1.0 / share

    def _redrawn(self, z: Points, n_samples: int, rng: np.random.Generator) -> Matrix:
        """Σ lᵢ(z) sᵢ eᵢ for residuals e with standard normal factors s: (m, t, n_samples).

        Random signs would do for one query; the largest of many deviations they bound where few rows have a say.
        """
        e = self._residuals()
        n, t = e.shape
        # Copies of a row are drawn apart: their mean has a variance smaller by the weight.
        e = e * np.sqrt(self._v2)[:, None] / self._v[:, None]
        allocatable(
            8 * z.n * t * n_samples, f"{n_samples} bootstrap fits at {z.n} queries", "Ask for fewer queries at a time."
        )
        moved = np.empty((z.n, t, n_samples))
        step = max(1, BATCH // (n * t))
        for start in range(0, n_samples, step):
            draws = min(step, n_samples - start)
            factors = rng.normal(size=(n, 1, draws))
            targets = (e[:, :, None] * factors).reshape(n, -1)
            moved[:, :, start : start + draws] = self._fit_at(z, y=targets).values.reshape(z.n, t, draws)
        return moved


def _student(normal: Any, size: Matrix) -> Matrix:
    """What a normal quantile, one or (t,), becomes where the variance comes from so many rows: (m, 1) or (m, t)."""
    return np.asarray(-stdtrit(np.maximum(size, 1.0)[:, None], ndtr(-np.asarray(normal))))
