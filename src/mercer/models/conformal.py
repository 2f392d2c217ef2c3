"""Conformal intervals: a distribution-free guarantee for any regressor, from the residuals of held-out rows.

If rows are exchangeable, the rank of a new residual among n held-out ones is uniform: it is at most the
⌈(n + 1)·coverage⌉-th smallest with a probability of at least `coverage`, whatever the model and the distribution.
Method "split" holds rows out once; the others hold out every row in turn and so use all of them, at the price of more
fits (Barber, Candès, Ramdas and Tibshirani, Predictive inference with the jackknife+, Annals of Statistics 2021).
"""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer import memory, threads
from mercer.data.points import Points, length, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel, Similarity
from mercer.memory import budget, within
from mercer.models.around import AroundModel
from mercer.models.base import Matrix, all_or_nothing, innermost, shortened, targets, training_points
from mercer.models.least_squares.gaussian_process import GaussianProcessRegressor
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.least_squares.ridge import Ridge
from mercer.models.least_squares.smoother import GaussianSmoother
from mercer.models.likelihood.glm_base import GeneralisedLinearModel
from mercer.models.local.nadaraya_watson import NadarayaWatsonRegressor
from mercer.models.provenance import fitted_rows
from mercer.models.quantiles import ROUNDING, around, conformal, plus_ends, rows_needed, share
from mercer.models.residual_scale import ResidualScale
from mercer.tuning.folds import fold_numbers, make_folds
from mercer.validation import check_choice, generator

Index = NDArray[np.int64]

METHODS = ("split", "cv+", "jackknife+")
RESIDUALS = ("absolute", "signed", "local")
SMALL = 2000
"""Up to this number of rows `with_intervals` uses a model's own intervals: they solve systems of this size."""
CALIBRATED = 20
"""The smallest number of held-out rows from which `with_intervals` measures residuals."""


@dataclass(eq=False, repr=False)
class ConformalRegressor(AroundModel, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Prediction intervals with a finite-sample guarantee for any regressor, of this library or of scikit-learn.

    If rows are exchangeable (and the model treats them alike), a new target is in its interval with a probability of

    - "split": at least `coverage`, and at most `coverage` + 1/(n + 1) if residuals do not tie; n rows are held out.
    - "jackknife+": at least 1 − 2(1 − coverage), in practice `coverage`; all rows are used for fitting and calibrating.
    - "cv+": at least 1 − 2(1 − coverage) − √(2/n), in practice `coverage` or a little more; the model is fitted `cv`
      times.

    The probability is over the rows and the new point: nothing is promised for each single x. The plain jackknife,
    f(z) ± a quantile of leave-one-out residuals, costs the same and has no guarantee at all (it fails for unstable
    models), so it is not offered. Instead, jackknife+ adds the leave-one-out residuals to the leave-one-out predictions
    f₋ᵢ(z) at the query. Models that have these in closed form (`KernelRidge`, `Ridge`, `GaussianProcessRegressor`,
    `NadarayaWatsonRegressor` and `KernelNeighborsRegressor`, with a kernel and parameters that are set and not chosen
    by the rows) are fitted once, others n times.

    Parameters
    ----------
    model : estimator
        A regressor; it is cloned, unless cv="prefit".
    method : str
        "split", "cv+" or "jackknife+".
    cv : int, splitter or array
        For "cv+" the number of folds, or a splitter with every row in one test fold. For "split" a number k (one of k
        parts is held out), a splitter (its first split is used), or "prefit" (the model is already fitted, and `fit`
        gets rows that it has not seen).
    normalised : bool
        Whether residuals are divided by the model's standard deviation, so that intervals are wide where it is large:
        from `predict_distribution`, or predict(X, return_std=True), > 0 on held-out rows.
    random_state : int, Generator or None
        Seed of the folds; the same number gives the same folds.
    residuals : str
        The kind of residuals. "absolute": |y − f(x)|, so that intervals are f(x) ± a quantile. For method="split" also
        "signed": y − f(x), with a quantile for each side, for errors that are larger on one side; "local": the same
        divided by the typical size of residuals at predictions like f(x), for errors that grow with the prediction.
        This size is learned from the same held-out rows, so that the guarantee holds approximately; and if none of
        their targets is negative, no interval goes below 0. Two sides need twice as many held-out rows.

    Attributes
    ----------
    model_ : estimator
        The model that predicts: fitted to all rows, for "split" to the rows that are not held out.
    models_
        The models without a fold, one for each fold; empty in closed form.
    residuals_ : array
        Residuals of held-out rows, divided by the standard deviation if normalised; shape (n,) or (n, t).
    n_calibration_
        n, the number of these rows, which limits `largest_coverage_`.
    fits_ : int
        The number of times the model was fitted.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (1300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_t(2, size=1300)                    # heavy tails
    >>> ridge = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.1)
    >>> model = mc.ConformalRegressor(ridge, method="jackknife+").fit(X[:300], y[:300])
    >>> lower, upper = model.predict_interval(X[300:], coverage=0.9).T
    >>> model.fits_, round(float(np.mean((lower <= y[300:]) & (y[300:] <= upper))), 2)
    (1, 0.9)
    """

    model: Any
    _: KW_ONLY
    method: str = "split"
    cv: Any = 5
    normalised: bool = False
    random_state: Any = 0
    residuals: str = "absolute"

    # -- fit ----------------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to n points X and targets y, shape (n,) or (n, t), and measure residuals of held-out rows."""
        self._check()
        points = training_points(X)
        Y, self._single = targets(y, points.n)
        data = points.raw
        self._train: Index | None
        self.models_: list[Any]
        if self.method == "split" and isinstance(self.cv, str):
            check_is_fitted(self.model)
            self.model_, self.models_, self.fits_, self._train = self.model, [], 0, None
            self._residuals = self._held_out(self.model_, data, Y)
        elif self.method == "split":
            self._train, held_out = self._split(points, Y)
            self.model_, self.models_, self.fits_ = self._fitted(data, Y, self._train), [], 1
            rows = self._seen_by(self._train, take(data, held_out))
            self._residuals = self._held_out(self.model_, rows, Y[held_out])
        else:
            self._fit_all(points, Y)
        self._keep()
        if self._train is not None and get_tags(self.model).input_tags.pairwise:
            self.n_features_in_ = points.n
        return self

    def calibrate(self, y: Any, predictions: Any) -> Self:
        """Measure residuals from held-out predictions that were made before, around a fitted model (cv="prefit").

        Each of the n targets y must have been predicted by a model that was fitted without its row, such as those of
        cross-validation. If that was not `model` itself but one of fewer rows, the guarantee is lost, and intervals are
        in practice a little too wide.
        """
        self._check()
        check_is_fitted(self.model)
        mean = np.asarray(predictions, dtype=np.float64)
        Y, self._single = targets(y, len(mean))
        self.model_, self.models_, self.fits_, self._train = self.model, [], 0, None
        self._residuals = self._measured(mean.reshape(Y.shape), np.ones_like(Y), Y)
        self._keep()
        return self

    def _keep(self) -> None:
        """The public attributes of a fitted model."""
        self.residuals_ = self._shaped(self._residuals)
        self.n_calibration_ = len(self._residuals)
        self._keep_columns(self.model_)

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """(m, t) values in the shape of y: (m,) if y is a vector."""
        return values[:, 0] if self._single else values

    def _check(self) -> None:
        check_choice(self.method, "method", METHODS, advice="Pass 'jackknife+' for few rows, 'split' for many.")
        if self.residuals not in RESIDUALS or (self.residuals != "absolute" and self.method != "split"):
            raise InvalidInput(
                "`residuals` must be 'absolute', or for method='split' also 'signed' or 'local'",
                got=f"{shortened(self.residuals)} with method={self.method!r}",
                advice="Set method='split', or omit `residuals`.",
            )
        if self.normalised and self.residuals == "local":
            raise InvalidInput(
                "residuals='local' has a scale of its own, beside which there is no other",
                got="normalised=True",
                advice="Set normalised=False, or residuals='signed'.",
            )
        if isinstance(self.model, type) or not all(
            hasattr(self.model, name) for name in ("fit", "predict", "get_params")
        ):
            raise InvalidInput(
                "`model` must be a regressor with fit and predict",
                got=shortened(self.model),
                advice="Pass an instance such as mc.KernelRidge().",
            )
        prefit = isinstance(self.cv, str) and self.cv == "prefit" and self.method == "split"
        if isinstance(self.cv, (str, bool)) and not prefit:
            raise InvalidInput(
                "`cv` must be a number of folds or a splitter, or for method='split' also 'prefit'",
                got=f"{self.cv!r} with method={self.method!r}",
                advice="Pass a number such as 5.",
            )
        if self.normalised and not _knows_std(self.model):
            raise InvalidInput(
                "normalised=True needs a model with predict(X, return_std=True) or predict_distribution(X)",
                got=type(self.model).__name__,
                advice="Use mc.GaussianProcessRegressor or mc.KernelNeighborsRegressor, or set normalised=False.",
            )

    def _fit_all(self, points: Points, Y: Matrix) -> None:
        """Fit a model to all rows, and one without each fold unless their predictions have a closed form."""
        data, n = points.raw, points.n
        _require_two(n)
        self.model_, self.models_, self.fits_, self._train = self._fitted(data, Y, None), [], 1, None
        self._fold: Index = np.arange(n) if self.method == "jackknife+" else self._folds(points, Y)
        if self.method == "jackknife+" and not self.normalised and _in_one_fit(self.model_):
            predictions = np.asarray(self.model_.loo_predictions_, dtype=np.float64).reshape(Y.shape)
            self._residuals = np.abs(Y - predictions)
            self.model_._keeps_rows = True  # every query needs them, also in a loaded model
            return
        self._residuals = np.empty_like(Y)
        self._rows: list[Index] = []
        for fold in range(int(self._fold.max()) + 1):
            out, rest = np.flatnonzero(self._fold == fold), np.flatnonzero(self._fold != fold)
            model = self._fitted(data, Y, rest)
            self._residuals[out] = self._held_out(model, self._seen_by(rest, take(data, out)), Y[out])
            self.models_.append(model)
            self._rows.append(rest)
        self.fits_ += len(self.models_)

    def _fitted(self, X: Any, Y: Matrix, rows: Index | None) -> Any:
        """A clone of the model, fitted to these rows."""
        y = self._shaped(Y)
        if rows is None:
            return clone(self.model).fit(X, y)
        return clone(self.model).fit(self._seen_by(rows, take(X, rows)), y[rows])

    def _seen_by(self, rows: Index | None, X: Any) -> Any:
        """X for a model of these rows: their columns if X is a matrix of similarities (bare Precomputed())."""
        if rows is None or not get_tags(self.model).input_tags.pairwise:
            return X
        return np.asarray(X)[:, rows]

    def _split(self, points: Points, Y: Matrix) -> tuple[Index, Index]:
        """Training rows and held-out rows."""
        _require_two(points.n)
        cv = min(self.cv, points.n) if isinstance(self.cv, (int, np.integer)) else self.cv
        train, held_out = make_folds(points.n, cv, y=Y, random_state=generator(self.random_state))[0]
        both = np.intersect1d(train, held_out)
        if len(both) or not len(train) or not len(held_out):
            raise InvalidInput(
                "`cv` must split rows into two parts without common rows",
                got=f"{len(train)} and {len(held_out)} rows, {len(both)} in common",
                advice="Use KFold or ShuffleSplit.",
            )
        return np.asarray(train), np.asarray(held_out)

    def _folds(self, points: Points, Y: Matrix) -> Index:
        """The number of each row's fold."""
        return fold_numbers(make_folds(points.n, self.cv, y=Y, random_state=generator(self.random_state)), points.n)

    def _held_out(self, model: Any, X: Any, Y: Matrix) -> Matrix:
        """The residuals of held-out rows, divided by the model's standard deviation if normalised."""
        return self._measured(*self._predicted(model, X, Y.shape[1]), Y)

    def _measured(self, mean: Matrix, std: Matrix, Y: Matrix) -> Matrix:
        """The residuals of targets around predictions."""
        if not (np.isfinite(std) & (std > 0)).all():
            raise InvalidInput(
                "normalised=True needs a model whose standard deviation is > 0 on held-out rows",
                got=f"{std.min():.3g} as the smallest",
                advice="Raise its noise (`alpha`) or number of neighbours, or set normalised=False.",
            )
        if self.residuals == "local":
            parts = [ResidualScale.of(f, r) for f, r in zip(mean.T, (Y - mean).T)]
            self._scales = [scale for scale, _ in parts]
            self._least = np.where(Y.min(axis=0) >= 0.0, 0.0, -np.inf)
            std = np.stack([own for _, own in parts], axis=1)
        signed = (Y - mean) / std
        return np.abs(signed) if self.residuals == "absolute" else signed

    def _predicted(self, model: Any, X: Any, t: int) -> tuple[Matrix, Matrix]:
        """Predictions and standard deviations (ones, unless normalised), both (m, t)."""
        if not self.normalised:
            mean = np.asarray(model.predict(X), dtype=np.float64)
            mean = mean.reshape(len(mean), t)
            return mean, np.ones_like(mean)
        has_distribution = hasattr(model, "predict_distribution")
        mean, std = model.predict_distribution(X) if has_distribution else model.predict(X, return_std=True)
        mean, std = (np.asarray(part, dtype=np.float64) for part in (mean, std))
        return mean.reshape(len(mean), t), np.broadcast_to(std.reshape(len(std), -1), (len(std), t))

    def _example_rows(self, count: int) -> Any:
        if self._train is None or not get_tags(self.model).input_tags.pairwise:
            return None
        within(
            8 * count * self.n_features_in_, budget(), "Rows of numbers", "Raise MERCER_MEMORY if you trust the file."
        )
        return np.zeros((count, self.n_features_in_))  # similarities to all rows; `model_` keeps only some of them

    # -- predict ------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The predictions of `model_` for m points."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(self._seen_by(self._train, X)))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Matrix:
        """Intervals that contain a new target with the given probability; the class docstring states the guarantee.

        Parameters
        ----------
        X : array, frame or list of objects
            m queries.
        coverage : float
            In (0, 1), at most `largest_coverage_`.

        Returns
        -------
        array
            Lower and upper ends, shape (m, 2); for t targets (m, t, 2), where the coverage holds for each target by
            itself.
        """
        check_is_fitted(self)
        residuals = self._residuals
        n, t = residuals.shape
        if share(coverage) > self.largest_coverage_ + ROUNDING:
            needed = rows_needed(coverage, self._sides)
            raise InvalidInput(
                f"A finite interval of coverage {coverage:g} needs at least {needed} held-out rows",
                got=f"{n} of them",
                advice="Fit on more rows, choose a smaller coverage, or hold out each row with method='jackknife+'.",
            )
        if self.method == "split":
            mean, std = self._predicted(self.model_, self._seen_by(self._train, X), t)
            if self.residuals == "local":
                std = np.stack([scale(f) for scale, f in zip(self._scales, mean.T)], axis=1)
            if self.residuals != "absolute":
                below, above = around(residuals, coverage)
                ends = mean[..., None] + np.stack([below * std, above * std], axis=-1)
                return self._shaped(np.maximum(ends, self._least[:, None]) if self.residuals == "local" else ends)
            reach = conformal(residuals, coverage) * std
            return self._shaped(np.stack([mean - reach, mean + reach], axis=-1))
        if not self.models_:
            return self._in_closed_form(X, coverage)
        parts = [self._predicted(model, self._seen_by(rows, X), t) for model, rows in zip(self.models_, self._rows)]
        means, stds = (np.stack(side, axis=1) for side in zip(*parts))  # (m, folds, t)
        ends = np.empty((len(means), t, 2))
        for span in threads.spans(len(means), max(1, memory.HELD // (n * t))):
            others, spreads = means[span][:, self._fold], stds[span][:, self._fold] * residuals
            ends[span] = plus_ends(others, spreads, coverage)
        return self._shaped(ends)

    @property
    def largest_coverage_(self) -> float:
        """The largest coverage that n held-out rows allow: n/(n + 1), or (n − 1)/(n + 1) with two quantiles."""
        check_is_fitted(self)
        return (self.n_calibration_ + 1 - self._sides) / (self.n_calibration_ + 1)

    @property
    def _sides(self) -> int:
        """The number of quantiles that an interval needs."""
        return 1 if self.residuals == "absolute" else 2

    def _in_closed_form(self, X: Any, coverage: float) -> Matrix:
        """Jackknife+ from one fitted model, which has the leave-one-out predictions in closed form."""
        model = self.model_
        if isinstance(model, NadarayaWatsonRegressor):
            points, n = Points(X), len(self._residuals)
            ends = np.empty((points.n, self._residuals.shape[1], 2))
            for span in threads.spans(points.n, max(1, memory.HELD // (n * ends.shape[1]))):
                others = self._without_each(model, take(points.raw, np.arange(points.n)[span]))
                ends[span] = plus_ends(others, self._residuals, coverage)
            return self._shaped(ends)
        more = {"method": "jackknife+"} if isinstance(model, GaussianSmoother) else {}
        return np.asarray(model.predict_interval(X, coverage, **more))

    def _without_each(self, model: NadarayaWatsonRegressor, X: Any) -> Matrix:
        """f₋ᵢ(z) = (f(z) − lᵢ(z) yᵢ)/(1 − lᵢ(z)) for a weighted mean, shape (m, n, t)."""
        rows, L = model._rows, model.weights(X)
        alone = L > 0.5
        rest = np.where(alone, 1.0, 1.0 - L)[:, :, None]
        others = ((L @ rows.y)[:, None] - L[:, :, None] * rows.y) / rest
        for i in np.flatnonzero(alone.any(axis=0)):  # the difference would cancel: fit without that row
            refitted = self._fitted(rows.points.raw, rows.y, np.delete(np.arange(len(rows)), i))
            at = np.flatnonzero(alone[:, i])
            others[at, i] = np.reshape(refitted.predict(take(X, at)), (len(at), -1))
        return np.asarray(others)


def with_intervals(model: Any, X: Any, y: Any, predictions: Any = None, *, apart: bool = False) -> Any:
    """A fitted regressor with prediction intervals that work also after loading it from its file.

    The result is the model itself if it is small and its own `predict_interval` works after loading from left-out rows;
    otherwise a `ConformalRegressor` around it, with the residuals of the held-out rows. A classifier, or a model
    without enough held-out rows, is returned unchanged.

    Parameters
    ----------
    model : estimator
        A fitted model.
    X, y : array or frame, array
        Held-out rows and their targets.
    predictions
        Their predictions by models that were fitted without them, such as those of cross-validation; by default those
        of the model.
    apart : bool
        Whether these rows are of other groups, or later, than the training rows. The intervals of a model itself are
        then too narrow, since they leave out single rows and not whole groups, and residuals are used instead.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(size=(60, 1))
    >>> ridge, machine = mc.KernelRidge().fit(X[:30], X[:30, 0]), mc.SVR().fit(X[:30], X[:30, 0])
    >>> [type(with_intervals(model, X[30:], X[30:, 0])).__name__ for model in (ridge, machine)]
    ['KernelRidge', 'ConformalRegressor']
    """
    if is_classifier(model) or length(X) < CALIBRATED:
        return model
    if keeps_its_own(model) and not apart:
        return model
    known = model.predict(X) if predictions is None else np.asarray(predictions)
    return ConformalRegressor(model, cv="prefit", residuals="local").calibrate(y, known)


def keeps_its_own(model: Any) -> bool:
    """Whether the intervals of a fitted model are used: they are quick, and need no assumption that may be wrong."""
    if isinstance(model, ConformalRegressor):
        return True
    # The intervals of a generalised linear model hold if its distribution is right; those of residuals hold anyway.
    assumed = isinstance(model, GeneralisedLinearModel)
    quick = not getattr(getattr(model, "response_", None), "needs_rows", True)  # calibrated already, for any row count
    small = quick or (fitted_rows(model) or 0) <= SMALL
    # A fit that stopped early predicts differently from the models whose left-out residuals it knows.
    complete = getattr(innermost(model), "end_", "converged") == "converged"
    own = hasattr(model, "has_intervals") and bool(model.has_intervals(in_file=True))
    return own and small and complete and not assumed


def moved(conformal: ConformalRegressor, model: Any) -> ConformalRegressor:
    """Intervals with the same residuals around another model: the same one, fitted again to more rows.

    The guarantee is lost, since the residuals of the new model are not measured; more rows should not make it worse.
    """
    again = copy(conformal)
    again.model = again.model_ = model
    return again


def _require_two(n: int) -> None:
    if n < 2:
        raise InvalidInput(
            "Holding rows out needs at least two rows", got=f"n_samples = {n}", advice="Fit on more rows."
        )


def _knows_std(model: Any) -> bool:
    return hasattr(model, "predict_distribution") or "return_std" in inspect.signature(model.predict).parameters


def _in_one_fit(model: Any) -> bool:
    """Whether a model's own jackknife+ equals n refits: nothing about the model may be chosen by its rows."""
    parameters = model.get_params(deep=False)
    if isinstance(model, NadarayaWatsonRegressor):
        kernel, bandwidth = parameters["kernel"], parameters["bandwidth"]
        fixed_kernel = kernel is None or isinstance(kernel, Similarity)
        chosen = isinstance(bandwidth, str) or (kernel is None and bandwidth is None)
        return fixed_kernel and not chosen and not get_tags(model).input_tags.pairwise
    if not (isinstance(model, (KernelRidge, Ridge, GaussianProcessRegressor)) or hasattr(model, "_jackknife_plus")):
        return False
    return not (
        ("kernel" in parameters and not isinstance(parameters["kernel"], Kernel))  # a rule, such as the median width
        or parameters.get("features") is not None  # may be fitted to the rows
        or any(isinstance(parameters.get(name), str) for name in ("alpha", "n_neighbors"))
        or parameters.get("tune") is not None
        or parameters.get("normalize_y", False)
        or getattr(model, "solver_", None) in ("nystrom", "fourier")
    )
