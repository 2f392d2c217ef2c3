"""Users' functions of data sets: they must map every point by itself, and are called again once they have changed.

k(phi(x), phi(z)) is a kernel for any phi of one point. Functions get the whole data set, as transformers do, so they
could look at other rows (count them, or standardise columns by their mean). Then the image of a point would depend on
the other points, and no proof would hold. To find this out, some rows are mapped again without the others.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Hashable
from inspect import getclosurevars
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.frames import is_frame
from mercer.data.missing import is_missing, missing_entries
from mercer.data.objects import object_array
from mercer.data.points import Array, Points, as_argument, length, take
from mercer.errors import InvalidInput
from mercer.kernels.algebra.parameters import Same

# Rows that are mapped again together, from the last to the first, after the last one alone.
ROWS_AGAIN = 4
# The allowed difference between two images of a row, in roundings of the largest number of the image.
IMAGE_ROUNDINGS = 64


class UserFunction(Same):
    """A user's function of data sets, equal to itself only: it need not have a hash, and its == may mean anything."""

    def __call__(self, X: Any) -> Any:
        """The function, or its `transform`, of a data set."""
        X = as_argument(X)
        return self.value.transform(X) if hasattr(self.value, "transform") else self.value(X)

    def state(self) -> Hashable:
        """A value that changes when the function does: a transformer, or one that a function uses, is fitted again.

        Functions have no other state: the variables that they read are assumed to be constant.
        """
        holder = self.value.__self__ if isinstance(self.value, MethodType) else self.value
        if isinstance(holder, FunctionType):
            return tuple(_attributes(value) for value in _used(holder) if hasattr(value, "transform"))
        if isinstance(holder, (BuiltinFunctionType, np.ufunc, type)):
            return None
        try:
            return hashlib.sha256(pickle.dumps(holder, protocol=5)).digest()
        except Exception:  # a foreign object may raise anything: compare its attributes one by one
            return _attributes(holder)


def _used(function: FunctionType) -> list[Any]:
    """The variables outside of a function that it reads."""
    try:
        names = getclosurevars(function)
    except ValueError:  # one has no value yet
        return []
    return [*names.nonlocals.values(), *names.globals.values()]


def _attributes(value: Any) -> Hashable:
    """The attributes of an object, each by its identity: fitting it again makes new ones."""
    return tuple((name, Same(part)) for name, part in sorted(getattr(value, "__dict__", {}).items()))


def require_map(phi: Any) -> None:
    """Raise if a feature map is neither a function of data sets nor a transformer."""
    if not callable(phi) and not hasattr(phi, "transform"):
        raise InvalidInput(
            "phi must be a function X → Φ or have a `transform` method",
            got=repr(phi),
            advice="Pass a function of data sets, or a fitted transformer.",
        )


def require_rowwise(function: UserFunction, name: str, points: Points, image: Any, apply: Callable[[Any], Any]) -> None:
    """Raise if the image of a row changes without the other rows: the last one alone, and some in reverse order."""
    n = points.n
    if n < 2:
        return
    some = some_rows(n)
    for rows in (some[:1], some):
        company = f"row {rows[0]} alone" if len(rows) == 1 else f"{len(rows)} of {n} rows"
        try:
            with np.errstate(all="ignore"):
                again = apply(take(points.raw, rows))
        except Exception as error:
            raise _not_rowwise(function, name, f"{type(error).__name__} for {company} ({error})") from error
        if length(again) != len(rows) or not _equal(take(image, rows), again, image):
            raise _not_rowwise(function, name, f"other values for {company} than among all {n}")


def some_rows(n: int) -> NDArray[np.int64]:
    """A few of n positions, from the last to the first."""
    return np.unique(np.linspace(0, n - 1, min(n, ROWS_AGAIN)).round().astype(np.int64))[::-1]


def same_parts(a: Any, b: Any) -> bool:
    """Whether two lists or matrices of parts are equal; objects that equal only themselves are not compared."""
    if length(a) != length(b):
        return False
    left, right = _values(a), _values(b)
    if all(part.dtype.kind in "fiub" for part in (left, right)):
        return left.size == right.size == 0 or _equal(left, right, left)
    return left.shape == right.shape and all(map(_same, left.ravel(), right.ravel()))


def _same(p: Any, q: Any) -> bool:
    equality: Any = type(p).__eq__
    if type(p) is type(q) and equality is object.__eq__:
        return True
    if isinstance(p, (list, tuple)) and isinstance(q, (list, tuple)):
        return len(p) == len(q) and all(map(_same, p, q))
    try:
        return (is_missing(p) and is_missing(q)) or bool(np.all(p == q))
    except Exception:  # the == of a foreign object may raise anything
        return True


def _not_rowwise(function: UserFunction, name: str, got: str) -> InvalidInput:
    transformer = hasattr(function.value, "transform")
    return InvalidInput(
        f"{name} must map every point by itself, the same way whatever the other points are",
        got=f"{function.value!r}, which gives {got}",
        advice="Use a transformer that does not depend on the other rows or on chance."
        if transformer
        else "Compute means and counts beforehand, as StandardScaler().fit(X) does, and pass a function of rows.",
    )


def _equal(a: Any, b: Any, image: Any) -> bool:
    """Whether two data sets are equal: numbers to half of their digits (sums of other lengths round differently)."""
    left, right, whole = (_values(part) for part in (a, b, image))
    if left.shape != right.shape:
        return False
    if not all(part.dtype.kind in "fiub" for part in (left, right, whole)):
        pairs = zip(left.ravel(), right.ravel())
        return all((is_missing(p) and is_missing(q)) or bool(np.all(p == q)) for p, q in pairs)
    dtype = next((part.dtype for part in (left, right) if part.dtype.kind == "f"), np.dtype(np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.where(np.isfinite(whole), np.abs(whole.astype(np.float64)), 0.0)
        # A column of mere rounding errors (a component beyond the rank) has the errors of the others.
        eps = float(np.finfo(dtype).eps)
        allowed = np.sqrt(eps) * finite.max(axis=0) + IMAGE_ROUNDINGS * eps * finite.max()
        apart = np.abs(left.astype(np.float64) - right.astype(np.float64))
        return bool(((apart <= allowed) | (left == right) | (missing_entries(left) & missing_entries(right))).all())


def _values(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.toarray())
    if is_frame(X):
        return np.asarray(X)
    if isinstance(X, np.ndarray):
        return X
    try:
        A = np.asarray(X)
        if A.dtype.kind in "fiub":
            return A
    except ValueError:  # objects of different lengths
        pass
    return object_array(list(X))
