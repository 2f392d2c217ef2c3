"""What every estimator with a kernel shares: parameters that reach into frozen expressions, and checked input."""

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
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from mercer.data.frames import is_frame, require_distinct_names, unframed
from mercer.data.points import Points, owned
from mercer.data.vectors import real_numbers
from mercer.errors import InvalidInput
from mercer.files import Saved, described
from mercer.kernels.algebra.values import Value
from mercer.kernels.base import Indefinite, Kernel
from mercer.kernels.tables.typed import Typed
from mercer.kernels.vectors.median import median_gaussian
from mercer.words import shortened as shortened
from mercer.words import shown as shown

Matrix = NDArray[np.float64]
LEAST_WEIGHT, MOST_WEIGHT = float(np.finfo(np.float64).tiny), 1e150
"""Weights of full precision, whose squares, and the sums of many, are finite."""
DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)


@contextmanager
def refitted(model: Any) -> Iterator[None]:
    """A fit that is refused or interrupted leaves the model as it was: wholly the old one, or not fitted.

    An iterative fit may keep what it had reached by then: once the model is whole, it raises the interrupt `keeping`
    it.
    """
    own = model.__dict__
    before = own.copy()
    try:
        yield
    except BaseException as error:
        if not any(whole is model for whole in getattr(error, "kept", ())):
            own.clear()
            own.update(before)
        raise


def keeping(model: Any, interrupt: KeyboardInterrupt) -> KeyboardInterrupt:
    """The interrupt, which says that the model is whole: `refitted` is not to take back what was reached."""
    setattr(interrupt, "kept", (*getattr(interrupt, "kept", ()), model))  # noqa: B010  # no attribute of its own
    return interrupt


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that happens wholly or not at all: see `refitted`."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with refitted(self):
            return fit(self, *args, **kwargs)

    return wrapped


class KernelEstimator(Saved, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn estimator whose parameters may be kernels.

    Kernels are frozen values, so `clone` shares them and `set_params(kernel__sigma=2.0)` puts another kernel in their
    place. Names go as deep as the expression does: `kernel__0__sigma` is the width of the first term of a sum.

    >>> import mercer as mc
    >>> from mercer.models.base import KernelEstimator
    >>> class Model(KernelEstimator):
    ...     def __init__(self, kernel=None):
    ...         self.kernel = kernel
    >>> Model(mc.Gaussian(1.0) + mc.Linear()).set_params(kernel__0__sigma=2.0).kernel
    Gaussian(sigma=2.0) + Linear()

    Whatever stops a `fit`, the model is wholly the old one or the new one: every subclass's `fit` is `all_or_nothing`.
    """

    _indefinite: ClassVar[bool] = False  # whether it only warns where the kernel is not positive semidefinite

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            setattr(cls, "fit", all_or_nothing(cls.__dict__["fit"]))  # noqa: B010  # mypy knows the name as a method

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `kernel__...` replaces the kernel by one with other parameters."""
        inside: dict[str, dict[str, Any]] = {}
        own = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest and isinstance(params.get(head, getattr(self, head, None)), Value):
                inside.setdefault(head, {})[rest] = value
            else:
                own[name] = value
        for name in own:
            head, _, rest = name.partition("__")
            if (
                rest
                and head in self.get_params(deep=False)
                and not hasattr(own.get(head, getattr(self, head)), "get_params")
            ):
                raise InvalidInput(
                    f"`{name}` needs a kernel to reach into",
                    got=f"{head}={shortened(own.get(head, getattr(self, head)))}",
                    advice=f"Set {head} first, such as {head}=mc.Gaussian(1.0).",
                )
        super().set_params(**own)
        for head, changes in inside.items():
            setattr(self, head, getattr(self, head).replace(**changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        kernel = getattr(self, "kernel", None)
        if isinstance(kernel, Kernel):
            # Bare Precomputed() takes the matrix in place of X: cross-validation must cut its columns too.
            tags.input_tags.pairwise = kernel.pairwise
        return tags

    def _training(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        """Check what `fit` was given: the rows to fit on. Sets `kernel_` and the names and number of columns."""
        rows = Rows.of(training_points(X), y, sample_weight)
        self._resolve(X, rows.points)
        return rows

    def _resolve(self, X: Any, points: Points) -> None:
        """Set `kernel_` for the points to fit on, and the names and number of columns of X."""
        self.kernel_ = resolve_kernel(getattr(self, "kernel", None), points, indefinite=self._indefinite)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)

    def _queries(self, X: Any) -> Points:
        """Check X against what was fitted, for `predict` and its kin."""
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return self.kernel_.prepare(X)


def check_columns(model: Any, X: Any, *, reset: bool) -> None:
    """Record (or compare) the names and the number of columns, where the data has columns."""
    require_distinct_names(X)
    if not reset and is_frame(X) and isinstance(getattr(model, "kernel_", None), Typed):
        return  # it finds its columns by name, and checks them: others, or another order, do not matter
    _check_feature_names(model, X, reset=reset)
    if reset:
        model._fitted_on = described(X)
    shape = getattr(X, "shape", None)
    listed = shape is None and isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray))
    if listed and model.kernel_.space == "vectors":  # elsewhere a list may be a set or a sequence
        shape = (len(X), len(X[0]))
    if shape is not None and len(shape) == 2:
        if reset or hasattr(model, "n_features_in_"):
            _check_n_features(model, X, reset=reset)
    elif reset and hasattr(model, "n_features_in_"):
        del model.n_features_in_


def training_points(X: Any) -> Points:
    """X as points of the model's own: what is written into X after `fit` does not change the model.

    A table without rows or columns is refused in scikit-learn's words.
    """
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
    """The kernel that a parameter stands for: a kernel itself, a rule X → kernel, or None for the median Gaussian.

    With `indefinite`, for machines that only warn, also a function that is known not to be positive semidefinite.
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
        return median_gaussian(X)
    got, advice = shortened(kernel), "Such as mc.Gaussian(1.0), mc.Matern(1.0) + mc.Linear(), or mc.median_gaussian."
    if callable(kernel) and not isinstance(kernel, type):
        try:
            made = kernel(X.raw if isinstance(X, Points) else X)
        except InvalidInput:
            raise
        except TypeError as error:
            raise InvalidInput(
                "`kernel` must be a kernel or a rule X → kernel",
                got=f"{got}, which failed ({error})",
                advice="A function of two points is mc.FromFunction(f).",
            ) from error
        if isinstance(made, Kernel):
            return made
        got += f", a rule that returned {shortened(made)}"
    if isinstance(kernel, str):
        advice = f"scikit-learn's names are kernels here: 'rbf' is mc.Gaussian, 'poly' mc.Polynomial. {advice}"
    raise InvalidInput("`kernel` must be a kernel, a rule X → kernel, or None", got=got, advice=advice)


def outside() -> int:
    """The `stacklevel` of whoever called the library, for a warning of the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("mercer.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    return level


def innermost(model: Any) -> Any:
    """The model that computes: what an automatic model chose, what a conformal one is wrapped around, or itself."""
    while hasattr(model, "model_"):
        model = model.model_
    return model


def targets(y: Any, n: int) -> tuple[Matrix, bool]:
    """y as (n, t) float64, and whether it was a single column given as a vector."""
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
        raise InvalidInput(required, got="text", advice="Convert it: y.astype(float), or use a classifier.")
    if Y.dtype.kind in "mM" or (Y.dtype == object and any(isinstance(v, DATES) for v in Y.ravel())):
        raise InvalidInput(
            "y must hold numbers", got="dates or durations",
            advice="Make numbers of them in a unit of your choice, such as days since the first date.",
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
        raise InvalidInput(required, got=f"shape {Y.shape}", advice=f"X has {n} points.")
    if not np.isfinite(Y).all():
        bad = np.argwhere(~np.isfinite(Y.reshape(n, -1)))
        kind = "NaN" if np.isnan(Y.reshape(n, -1)[tuple(bad[0])]) else "inf"
        raise InvalidInput(
            required,
            got=f"{len(bad)} that are NaN or inf, the first ({kind}) in row {bad[0][0]}",
            advice="Drop those rows (X and y), or fill them in.",
        )
    return Y.reshape(n, -1), Y.ndim == 1


def checked_numbers(given: Any, required: str, advice: str) -> Matrix:
    """A float64 copy of numbers, with no silent conversion of dates or of complex ones."""
    try:
        values = real_numbers(unframed(given))
        if values.dtype.kind in "mM":
            raise TypeError("dates or durations")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(required, got=str(error), advice=advice) from None


def weights(sample_weight: Any, n: int) -> Matrix | None:
    """Sample weights as (n,) float64 ≥ 0, not all zero; None where all are one."""
    if sample_weight is None:
        return None
    required = f"`sample_weight` must hold {n} finite numbers ≥ 0, not all of them 0"
    w = checked_numbers(sample_weight, required, "Pass one real number per point.")
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
            advice="Divide the weights by the largest, and set those that count for nothing to 0.",
        )
    return None if (w == 1).all() else w


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a model is fitted on: those whose weight is not zero.

    Attributes
    ----------
    points : their points.
    y : their targets, shape (n, t).
    single : whether y was given as a vector.
    roots : √w, shape (n,), or None where all weights are one.
    kept : their positions among the rows that were given.
    left_out : the points of the other rows, or None.
    """

    points: Points
    y: Matrix
    single: bool
    roots: Matrix | None
    kept: NDArray[np.int64]
    left_out: Points | None

    @classmethod
    def of(cls, points: Points, y: Any, sample_weight: Any = None) -> Rows:
        """Checked rows from what `fit` was given."""
        Y, single = targets(y, points.n)
        w = weights(sample_weight, points.n)
        if w is None:
            return cls(points, Y, single, None, np.arange(points.n), None)
        if w.all():
            return cls(points, Y, single, np.sqrt(w), np.arange(points.n), None)
        kept = np.flatnonzero(w)
        rest = points.take(w == 0)
        return cls(points.take(kept), Y[kept], single, np.sqrt(w[kept]), kept, rest)

    @property
    def weights(self) -> Matrix:
        """w, shape (n,)."""
        return np.ones(len(self.y)) if self.roots is None else self.roots**2

    def shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """(m, t) as y was given: (m,) for a vector."""
        return values[:, 0] if self.single else values

    def __len__(self) -> int:
        return len(self.y)


def penalties(alpha: Any, t: int, *, positive: bool = False) -> Matrix:
    """alpha as one penalty per target, shape (t,)."""
    sign = "> 0" if positive else "≥ 0"
    required = f"`alpha` must be a number {sign}, or one per target"
    try:
        a = np.asarray(real_numbers(alpha), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(required, got=repr(alpha), advice="Try 1.0.") from None
    if isinstance(alpha, (bool, np.bool_)) or a.ndim > 1 or (a.ndim == 1 and a.shape != (t,)):
        raise InvalidInput(required, got=repr(alpha), advice=f"There is {t} target." if t == 1 else f"{t} targets.")
    if not np.isfinite(a).all() or (a < 0).any() or (positive and (a == 0).any()):
        raise InvalidInput(required, got=repr(alpha), advice="It is the noise variance; larger is smoother.")
    return np.broadcast_to(a, (t,)).copy()
