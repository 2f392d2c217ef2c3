"""The base class of every estimator with a kernel: parameters that reach into frozen expressions, and checked input."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from mercer.data.batches import Batches
from mercer.data.frames import arrays, column_names, is_frame, require_distinct_names, selected, unframed
from mercer.data.points import Points, owned
from mercer.errors import InvalidInput
from mercer.files import Saved, described
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Indefinite, Kernel, Weight
from mercer.kernels.tables.typed import Typed
from mercer.kernels.vectors.median import median_gaussian
from mercer.kernels.vocabulary import suited
from mercer.models.on_cluster import fitted_on_cluster, with_rows_of_dask
from mercer.validation import check_numbers, real_numbers
from mercer.words import shortened as shortened
from mercer.words import shown as shown

Matrix = NDArray[np.float64]
LEAST_WEIGHT, MOST_WEIGHT = float(np.finfo(np.float64).tiny), 1e150
"""The range of weights: they have full precision, and their squares and sums are finite."""
DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)


@contextmanager
def refitted(model: Any) -> Iterator[None]:
    """Leave the model unchanged if its fit is refused or interrupted: it stays the old one, or not fitted.

    An iterative fit may keep the iterate it has reached: once the model is complete, it raises the interrupt with
    `keeping`.
    """
    attributes = model.__dict__
    before = attributes.copy()
    try:
        yield
    except BaseException as error:
        if not any(complete is model for complete in getattr(error, "kept", ())):
            attributes.clear()
            attributes.update(before)
        raise


def keeping(model: Any, interrupt: KeyboardInterrupt) -> KeyboardInterrupt:
    """The interrupt, marked so that `refitted` keeps the model, which is complete."""
    setattr(interrupt, "kept", (*getattr(interrupt, "kept", ()), model))  # noqa: B010  # no attribute of its own
    return interrupt


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that happens completely or not at all: see `refitted`."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with refitted(self):
            return fit(self, *args, **kwargs)

    return wrapped


class KernelEstimator(Saved, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn estimator whose parameters may be kernels.

    Kernels are frozen values: `clone` shares them, and `set_params(kernel__sigma=2.0)` replaces the kernel by another
    one. Names go as deep as the expression does: `kernel__0__sigma` is the width of the first term of a sum.

    >>> import mercer as mc
    >>> from mercer.models.base import KernelEstimator
    >>> class Model(KernelEstimator):
    ...     def __init__(self, kernel=None):
    ...         self.kernel = kernel
    >>> Model(mc.Gaussian(1.0) + mc.Linear()).set_params(kernel__0__sigma=2.0).kernel
    Gaussian(sigma=2.0) + Linear()

    Whatever stops a `fit`, the model is the old one or the new one: the `fit` of every subclass is `all_or_nothing`.
    """

    _indefinite: ClassVar[bool] = False  # whether a kernel that is not positive semidefinite only causes a warning
    _in_batches: ClassVar[bool] = False  # whether `fit` takes rows in batches, and so rows of Dask
    _keeps_rows: ClassVar[bool] = False  # whether predictions sum over these rows, which then stay on the workers

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            fit = all_or_nothing(fitted_on_cluster(cls.__dict__["fit"]))
            setattr(cls, "fit", fit)  # noqa: B010  # mypy knows the name as a method
        with_rows_of_dask(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `kernel__...` replaces the kernel by one with other parameters."""
        of_kernels: dict[str, dict[str, Any]] = {}
        others = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest and isinstance(params.get(head, getattr(self, head, None)), Value):
                of_kernels.setdefault(head, {})[rest] = value
            else:
                others[name] = value
        for name in others:
            head, _, rest = name.partition("__")
            if not rest or head not in self.get_params(deep=False):
                continue
            target = others.get(head, getattr(self, head))
            if not hasattr(target, "get_params"):
                raise InvalidInput(
                    f"`{name}` needs a kernel to reach into",
                    got=f"{head}={shortened(target)}",
                    advice=f"Set {head} first, such as {head}=mc.Gaussian(1.0).",
                )
        super().set_params(**others)
        for head, changes in of_kernels.items():
            setattr(self, head, getattr(self, head).replace(**changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        kernel = getattr(self, "kernel", None)
        if isinstance(kernel, Kernel):
            # Bare Precomputed() takes the matrix in place of X: cross-validation must select its columns, too.
            tags.input_tags.pairwise = kernel.pairwise
        return tags

    def _training(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        """The rows to fit on, checked. Sets `kernel_` and the names and number of columns."""
        rows = Rows.of(training_points(X), y, sample_weight)
        self._resolve(X, rows.points)
        return rows

    def _resolve(self, X: Any, points: Points) -> None:
        """Set `kernel_` for the points to fit on, and the names and number of columns of X."""
        self.kernel_ = resolve_kernel(getattr(self, "kernel", None), points, indefinite=self._indefinite)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)

    def _queries(self, X: Any) -> Points:
        """X as points, checked against the columns of `fit`, for `predict` and similar methods."""
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return self.kernel_.prepare(X)


def check_columns(model: Any, X: Any, *, reset: bool) -> None:
    """Record (or, without `reset`, compare) the names and the number of columns, if the data has columns."""
    require_distinct_names(X)
    if not reset and is_frame(X) and isinstance(getattr(model, "kernel_", None), Typed):
        return  # this kernel finds and checks its columns by name: other columns, or another order, do not matter
    _check_feature_names(model, X, reset=reset)
    if reset:
        model._fitted_on = described(X)
    shape = getattr(X, "shape", None)
    listed = shape is None and isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray))
    if listed and model.kernel_.space == "vectors":  # in other spaces a list may be a set or a sequence
        shape = (len(X), len(X[0]))
    if shape is not None and len(shape) == 2:
        if reset:
            model.n_features_in_ = int(shape[1])
        expected = getattr(model, "n_features_in_", shape[1])
        if shape[1] != expected:
            name = type(model).__name__  # scikit-learn's tests look for the words after the colon
            raise InvalidInput(
                "X must have the columns that the model was fitted to",
                got=f"others: X has {shape[1]} features, but {name} is expecting {expected} features as input",
                advice="Pass the same columns as in `fit`, in the same order.",
            )
    elif reset and hasattr(model, "n_features_in_"):
        del model.n_features_in_


def training_points(X: Any) -> Points:
    """X as points that belong to the model: changes of X after `fit` do not change it.

    A table without rows or columns is refused in scikit-learn's words, which its tests look for.
    """
    if isinstance(X, Batches):
        raise InvalidInput(
            "This model needs all rows in memory",
            got="rows that are read in batches",
            advice="Load the rows as an array, or use KernelRidge, KernelGLM, KernelLogisticRegression, "
            "LeastSquaresClassifier with a kernel, ParzenDensity, a Nadaraya-Watson model or an automatic model, which "
            "take batches.",
        )
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2 and 0 in shape:
        what, minimum = ("sample", "n_samples") if shape[0] == 0 else ("feature", "n_features")
        raise InvalidInput(
            f"X must have at least one {what}: found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1"
            " is required",
            got=f"{minimum} = 0",
            advice="Check how X was selected.",
        )
    require_distinct_names(X)
    return Points(owned(X))


def resolve_kernel(kernel: Any, X: Any, *, indefinite: bool = False) -> Kernel:
    """The kernel of a parameter that is a kernel, a rule X → kernel, or None for the median Gaussian.

    With `indefinite` it may also be a function that is known not to be positive semidefinite.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Indefinite):
        if indefinite and kernel.tags.cpd_order is None:
            similar: Any = kernel
            return similar
        raise InvalidInput(
            "`kernel` must be positive semidefinite", got=f"{kernel!r}, which is not", advice=kernel.instead
        )
    if kernel is None:
        return default_kernel(X)
    if isinstance(kernel, Weight):
        raise InvalidInput(
            "`kernel` must be positive semidefinite",
            got=f"{shortened(kernel)}, a smoothing weight",
            advice="Pass a kernel such as mc.Gaussian(1.0), or smooth with mc.NadarayaWatsonRegressor or "
            "mc.LocalRegression.",
        )
    got = shortened(kernel)
    advice = "Pass a kernel such as mc.Gaussian(1.0) or mc.Matern(1.0) + mc.Linear(), or the rule mc.median_gaussian."
    if callable(kernel) and not isinstance(kernel, type):
        try:
            result = kernel(X.raw if isinstance(X, Points) else X)
        except InvalidInput:
            raise
        except TypeError as error:
            raise InvalidInput(
                "`kernel` must be a kernel or a rule X → kernel",
                got=f"{got}, which failed ({error})",
                advice="If it is a function of two points, pass mc.FromFunction(f).",
            ) from error
        if isinstance(result, Kernel):
            return result
        got += f", a rule that returned {shortened(result)}"
    if isinstance(kernel, str):
        advice = f"In place of scikit-learn's 'rbf' pass mc.Gaussian, in place of 'poly' mc.Polynomial. {advice}"
    raise InvalidInput("`kernel` must be a kernel, a rule X → kernel, or None", got=got, advice=advice)


def default_kernel(X: Any) -> Kernel:
    """The kernel of a model that was given none: for rows of numbers the median Gaussian, else what suits the objects.

    >>> default_kernel([[0.0], [1.0], [2.0]]), default_kernel(["banana", "ananas"])
    (Gaussian(sigma=1.0), Spectrum((1, 3)).normalize())
    """
    _, kernels = suited(X.raw if isinstance(X, Points) else X)
    return next(iter(kernels.values())) if kernels else median_gaussian(X)


def outside() -> int:
    """The `stacklevel` with which a warning of the calling function points to the code that called the library."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("mercer.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    return level


def innermost(model: Any) -> Any:
    """The model that computes: the one inside an automatic, conformal or calibrated model, or the model itself."""
    while hasattr(model, "model_"):
        model = model.model_
    return model


def unwrapped(model: Any) -> Any:
    """The automatic model inside conformal intervals or a calibration, otherwise the model that computes."""
    while not hasattr(model, "choices_") and hasattr(model, "model_"):
        model = model.model_
    return model


def rows_of_innermost(model: Any, X: Any) -> Any:
    """X as the model that computes sees it: an automatic model passes on its features only."""
    while hasattr(model, "model_"):
        X, model = model.columns_.select(X) if hasattr(model, "columns_") else X, model.model_
    return X


def given_rows(model: Any) -> int | None:
    """The number of rows that `fit` was called with; None if the model does not record it."""
    rows = training_record(model).get("rows")
    return None if rows is None else int(rows)


def training_record(model: Any) -> dict[str, Any]:
    """The record that a fitted model keeps of its training rows: their number, their kind, and the types of columns."""
    return getattr(model, "_fitted_on", None) or {}


def exposure_of(model: Any) -> str | None:
    """The column that is the exposure of a model's counts, or None."""
    while model is not None:
        if hasattr(model, "columns_"):
            name: str | None = model.columns_.exposure
            return name
        model = getattr(model, "model_", None)
    return None


def exposures_in(X: Any, model: Any) -> Matrix | None:
    """The exposures of the rows X of a model of counts, shape (n,); None if X has no such column."""
    name = exposure_of(model)
    if name is None or name not in column_names(X):
        return None
    return np.asarray(arrays(selected(X, [name]))[0], dtype=np.float64)


def targets(y: Any, n: int) -> tuple[Matrix, bool]:
    """y as (n, t) float64, and whether it was passed as a vector."""
    if y is None:
        raise InvalidInput(
            "A model requires y to be passed, but the target y is None", got="None", advice="Pass one target per row."
        )
    required = f"y must hold finite numbers, one row per point: shape ({n},) or ({n}, t)"
    if np.ma.is_masked(y):
        raise InvalidInput(required, got="masked entries", advice="Drop those rows (X and y), or fill them in.")
    try:
        Y = np.asarray(unframed(y))
    except ValueError as error:
        raise InvalidInput(required, got=str(error), advice="Pass one number per point.") from None
    if Y.dtype.kind in "US" or (Y.dtype == object and any(isinstance(v, (str, bytes)) for v in Y.ravel())):
        raise InvalidInput(required, got="text", advice="Convert it by y.astype(float), or use a classifier.")
    if Y.dtype.kind in "mM" or (Y.dtype == object and any(isinstance(v, DATES) for v in Y.ravel())):
        raise InvalidInput(
            "y must hold numbers", got="dates or durations",
            advice="Convert them to numbers, such as days since the first date.",
        )  # fmt: skip
    if Y.dtype.kind == "c":
        raise InvalidInput(
            "y must be real. Complex data not supported", got=f"dtype {Y.dtype}",
            advice="Fit the real and the imaginary part as two columns of y.",
        )  # fmt: skip
    try:
        Y = Y.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            required, got=f"dtype {Y.dtype}", advice="Encode classes as numbers, or use a classifier."
        ) from None
    if Y.ndim not in (1, 2) or len(Y) != n or Y.size == 0:
        raise InvalidInput(required, got=f"shape {Y.shape}", advice=f"Pass one row per point: X has {n} points.")
    if not np.isfinite(Y).all():
        bad = np.argwhere(~np.isfinite(Y.reshape(n, -1)))
        kind = "NaN" if np.isnan(Y.reshape(n, -1)[tuple(bad[0])]) else "inf"
        raise InvalidInput(
            required,
            got=f"{len(bad)} NaN or inf, the first ({kind}) in row {bad[0][0]}",
            advice="Drop those rows (X and y), or fill them in.",
        )
    return Y.reshape(n, -1), Y.ndim == 1


def numbers_by_row(numbers: Any, required: str, advice: str) -> Matrix:
    """A float64 copy of one number per row, without a silent conversion of dates or complex numbers."""
    try:
        values = real_numbers(unframed(numbers))
        if values.dtype.kind in "mM":
            raise TypeError("dates or durations")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(required, got=str(error), advice=advice) from None


def weights(sample_weight: Any, n: int) -> Matrix | None:
    """Sample weights as (n,) float64 ≥ 0, not all zero; None if all are one."""
    if sample_weight is None:
        return None
    required = f"`sample_weight` must hold {n} finite numbers ≥ 0, not all of them 0"
    w = numbers_by_row(sample_weight, required, "Pass one real number per point.")
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise InvalidInput(required, got=f"shape {w.shape}", advice="Pass one weight per point.")
    if not np.isfinite(w).all() or w.min() < 0:
        bad = int(np.flatnonzero(~(np.isfinite(w) & (w >= 0)))[0])
        raise InvalidInput(required, got=f"{w[bad]} in row {bad}", advice="Pass 0 for rows that should not count.")
    if not w.any():
        raise InvalidInput(required, got="only zeros", advice="Give at least one row a weight > 0.")
    beyond = (w > 0) & ((w < LEAST_WEIGHT) | (w > MOST_WEIGHT))
    if beyond.any() or w.max() ** 2 < LEAST_WEIGHT:
        bad = int(np.flatnonzero(beyond)[0]) if beyond.any() else int(w.argmax())
        raise InvalidInput(
            f"`sample_weight` must be 0 or between {LEAST_WEIGHT:.2g} and {MOST_WEIGHT:g}, the largest at least "
            f"{np.sqrt(LEAST_WEIGHT):.2g}",
            got=f"{w[bad]:g} in row {bad}",
            advice="Divide the weights by the largest, and set negligible ones to 0.",
        )
    return None if (w == 1).all() else w


def weighted_rows(w: Matrix | None, n: int) -> NDArray[np.int64]:
    """The positions of the rows of weight > 0, among n; all of them without weights."""
    return np.arange(n) if w is None else np.flatnonzero(w)


def positive_weights(sample_weight: Any, n: int) -> Matrix | None:
    """Sample weights of rows in batches, which are all used: > 0; None if all are one."""
    w = weights(sample_weight, n)
    if w is not None and not w.all():
        raise InvalidInput(
            "Weights of rows in batches must be > 0", got="0", advice="Leave such rows out of the source."
        )
    return w


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a model is fitted on: those whose weight is not zero.

    Attributes
    ----------
    points : Points
        Their points.
    y : array
        Their targets, shape (n, t).
    single : bool
        Whether y was passed as a vector.
    roots : array or None
        √w, shape (n,), or None if all weights are one.
    kept : array
        Their positions among the rows that were passed.
    left_out : Points or None
        The points of the other rows, or None.
    """

    points: Points
    y: Matrix
    single: bool
    roots: Matrix | None
    kept: NDArray[np.int64]
    left_out: Points | None

    @classmethod
    def of(cls, points: Points, y: Any, sample_weight: Any = None) -> Rows:
        """The rows of the arguments of `fit`, checked."""
        Y, single = targets(y, points.n)
        w = weights(sample_weight, points.n)
        kept = weighted_rows(w, points.n)
        if len(kept) == points.n:
            return cls(points, Y, single, None if w is None else np.sqrt(w), kept, None)
        assert w is not None
        return cls(points.take(kept), Y[kept], single, np.sqrt(w[kept]), kept, points.take(w == 0))

    @property
    def weights(self) -> Matrix:
        """w, shape (n,)."""
        return np.ones(len(self.y)) if self.roots is None else self.roots**2

    def shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of shape (m, t) in the shape of y: (m,) for a vector."""
        return values[:, 0] if self.single else values

    def __len__(self) -> int:
        return len(self.y)


def penalties(alpha: Any, t: int, *, positive: bool = False) -> Matrix:
    """alpha as one penalty per target, shape (t,)."""
    sign = "> 0" if positive else "≥ 0"
    required = f"`alpha` must be a number {sign}, or one per target"
    advice = "Pass the variance of the noise: the larger it is, the smoother the function."
    least, above = (None, 0.0) if positive else (0.0, None)
    a = check_numbers(alpha, required, shapes=((), (t,)), least=least, above=above, advice=advice)
    return np.broadcast_to(a, (t,)).copy()
