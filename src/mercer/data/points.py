"""Data sets as kernels see them: raw objects, validated once, and the views that composite kernels take of them."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput, InvalidType, MissingValues

Array = NDArray[Any]
T = TypeVar("T")


class Encoder(Protocol):
    """A kernel, as far as a data set needs to know it: how it reads raw objects."""

    @property
    def encoding(self) -> Hashable:
        """The key of the encoding: encoders with the same key share what they make."""
        ...

    def encode(self, X: Any) -> Any:
        """The raw objects as the kernel computes with them."""
        ...


class View(Protocol):
    """A way to look at a data set: some columns, a feature map, a change of units. Hashable, so it is taken once."""

    @property
    def transient(self) -> bool:
        """Whether it depends on free parameters, so that keeping it would fill memory during a search."""
        ...

    @property
    def state(self) -> Hashable:
        """What changes when the same view shows something else: None where it cannot."""
        ...

    def __hash__(self) -> int: ...
    def apply(self, points: Points) -> Any:
        """The raw objects seen through this view."""
        ...


# What is computed from a data set takes at most this many times its own size, or that of its largest encoding; of a
# small one, this many bytes are kept.
COPIES, SMALL = 8, 2**20

_making = threading.local()


def making() -> bool:
    """Whether this thread is inside a `once`: what it computes then must not wait for other threads."""
    return bool(getattr(_making, "depth", 0))


class Once:
    """Values that are made at the first call and kept, by key; different keys never wait for each other.

    Together they take no more than `room` bytes: beyond it, those that were not asked for the longest are given up.
    """

    def __init__(self) -> None:
        self._cache: dict[Hashable, Any] = {}  # in the order of their last use
        self._locks: dict[Hashable, threading.RLock] = {}
        self._lock = threading.Lock()

    least: ClassVar[float] = math.inf  # bytes that there is room for in any case

    @property
    def room(self) -> float:
        return self.least

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value made for `key`, made at the first call."""
        with self._lock:
            if key in self._cache:
                value: T = self._cache.pop(key)
                self._cache[key] = value
                return value
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            with self._lock:
                if key in self._cache:
                    value = self._cache[key]
                    return value
            _making.depth = getattr(_making, "depth", 0) + 1
            try:
                made = make()
            finally:
                _making.depth -= 1
            with self._lock:
                self._cache[key] = made
                self._locks.pop(key, None)
                self._make_room()
            return made

    def current(self, key: Hashable, state: Hashable, make: Callable[[], T]) -> T:
        """The value made for `key` in this state; those of other states are forgotten."""
        value = self.once(("current", key, state), make)
        with self._lock:
            for other in [k for k in self._cache if isinstance(k, tuple) and k[:2] == ("current", key)]:
                if other[2] != state:
                    del self._cache[other]
        return value

    def _make_room(self) -> None:
        """Give up the values used longest ago until the rest fits; the newest stays in any case."""
        if self.least == math.inf:
            return
        sizes = {key: nbytes(value) for key, value in self._cache.items()}
        total = sum(sizes.values())
        if total <= self.least:
            return
        for key in list(sizes)[:-1]:
            if total <= self.room:
                return
            del self._cache[key]
            total -= sizes[key]


class Points(Once):
    """One data set: the raw objects, and every encoding and view of them that was asked for, computed once.

    Points taken from others remember their positions there (`index`) and how many there were (`among`).
    """

    def __init__(self, raw: Any, index: Array | None = None, among: int | None = None) -> None:
        super().__init__()
        if sp.issparse(raw):
            raw = raw if raw.format == "csr" else sp.csr_array(raw)
        elif hasattr(raw, "__array__") and not hasattr(raw, "shape"):
            raw = np.asarray(raw)
        self.raw, self.index, self.among = raw, index, among
        self.n = length(raw)
        if self.n == 0:
            raise InvalidInput(
                "A data set must hold at least one point", got="0 points", advice="Check how X was selected."
            )

    def __len__(self) -> int:
        return self.n

    least: ClassVar[float] = SMALL

    @property
    def room(self) -> float:
        """A search tries many widths on the same points: the layouts of a few are kept."""
        return max(COPIES * max(map(nbytes, (self.raw, *self._cache.values()))), self.least)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the objects, not what was computed from them."""
        return {"raw": self.raw, "index": self.index, "among": self.among}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def encoded(self, kernel: Encoder) -> Any:
        """What `kernel.encode` makes of the raw objects; leaves with the same encoding share it."""
        return self.once(("encoded", kernel.encoding), lambda: kernel.encode(self.raw))

    def view(self, view: View) -> Points:
        """These points seen through `view`; views by free parameters are not kept, for a search tries many."""
        if view.transient:
            return Points(view.apply(self), self.index, self.among)
        return self.current(view, view.state, lambda: Points(view.apply(self), self.index, self.among))

    def vectors(self) -> Any:
        """The points as a validated float matrix, dense or CSR."""
        return self.once(("encoded", "vectors"), lambda: as_vectors(self.raw))

    def mean(self) -> NDArray[np.float64]:
        """The float64 column mean: the common centre of distance computations."""

        def make() -> NDArray[np.float64]:
            with np.errstate(over="ignore"):
                mean = np.asarray(self.vectors().mean(axis=0, dtype=np.float64)).ravel()
            return np.where(np.isfinite(mean), mean, 0.0)

        return self.once("mean", make)

    def take(self, index: Any) -> Points:
        """The points at these positions (a slice, mask or index array), which stay known as `index`."""
        chosen = np.atleast_1d(np.arange(self.n)[index])
        if self.index is None:
            return Points(take(self.raw, chosen), chosen, self.n)
        return Points(take(self.raw, chosen), self.index[chosen], self.among)


def owned(X: Any) -> Any:
    """The data set as its keeper's own: what is written into X later does not reach it.

    Arrays, sparse matrices and frames are copied, lists with their rows. A read-only array is taken as it is: who needs
    the memory of one copy sets X.flags.writeable = False, and must not write into the array that it is a view of.

    >>> X = np.zeros((2, 1))
    >>> kept = owned(X)
    >>> X[0] = 1.0
    >>> kept[0], owned(kept) is kept
    (array([0.]), False)
    >>> kept.flags.writeable = False
    >>> owned(kept) is kept
    True
    """
    if isinstance(X, np.ndarray):
        return X.copy() if X.flags.writeable or X.dtype == object else X
    if sp.issparse(X) or (is_frame(X) and hasattr(X, "iloc")):
        return X.copy()
    if is_frame(X) and hasattr(X, "clone"):
        return X.clone()  # Polars copies on write
    if isinstance(X, (list, tuple)):
        return [copy(x) if isinstance(x, (list, set, dict, bytearray, np.ndarray)) else x for x in X]
    return X


def nbytes(value: Any) -> int:
    """The bytes of the arrays that a value is made of; Python's own objects count nothing."""
    if isinstance(value, Points):
        return nbytes(value.raw)
    if isinstance(value, (tuple, list)):
        parts = {id(part): part for part in value} if len(value) <= 16 else {}
        return sum(map(nbytes, parts.values()))
    if sp.issparse(value):
        return sum(int(getattr(value, name).nbytes) for name in ("data", "indices", "indptr") if hasattr(value, name))
    return int(getattr(value, "nbytes", 0)) if not is_frame(value) else 0  # a column may have any name


def length(X: Any) -> int:
    """Number of objects in X."""
    if hasattr(X, "shape"):
        if len(X.shape) == 0:
            raise _not_a_data_set(X)
        return int(X.shape[0])
    if isinstance(X, (str, bytes, set, frozenset, dict)) or not hasattr(X, "__len__"):
        raise _not_a_data_set(X)
    return len(X)


def _not_a_data_set(X: Any) -> InvalidInput:
    return InvalidInput(
        "A data set must be a sequence of points (array, data frame, sparse matrix or list of objects)",
        got=f"a single {type(X).__name__}",
        advice="Pass an array, a frame or a list; a data set of one point x is [x].",
    )


def is_frame(X: Any) -> bool:
    """A pandas or Polars data frame, recognised without importing either."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and hasattr(X, "shape")


def take(X: Any, index: Any) -> Any:
    """Rows of any kind of data set."""
    if sp.issparse(X) and X.format not in ("csr", "csc", "lil"):
        X = sp.csr_array(X)  # the other formats have no rows
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if is_frame(X) or hasattr(X, "shape"):
        return X[index]
    if isinstance(index, slice):
        return X[index]
    positions = np.arange(len(X))[np.asarray(index)]
    return [X[i] for i in positions]


def concatenate(X: Any, Z: Any) -> Any:
    """Two data sets of the same kind, one after the other."""
    if sp.issparse(X) or sp.issparse(Z):
        return sp.vstack([sp.csr_array(X), sp.csr_array(Z)], format="csr")
    if isinstance(X, np.ndarray) and isinstance(Z, np.ndarray):
        return np.concatenate([X, Z])
    if is_frame(X) and type(X) is type(Z):
        library: Any = sys.modules[type(X).__module__.partition(".")[0]]  # pandas or Polars, whichever made it
        return library.concat([X, Z])
    return [*X, *Z]


def as_table(like: Any, rows: Array) -> Any:
    """Rows of numbers as the kind of table that `like` is: with its column names, if it is a data frame."""
    if not is_frame(like):
        return rows
    library: Any = sys.modules[type(like).__module__.partition(".")[0]]  # pandas or Polars, whichever made it
    return library.DataFrame(dict(zip(like.columns, rows.T)))


def as_argument(X: Any) -> Any:
    """A raw data set as a user's function expects it: rows of numbers as an array, anything else as it is."""
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        try:
            A = np.asarray(X)
        except ValueError:
            return X
        return A if A.dtype.kind in "iufb" else X
    return X


def real_numbers(values: Any) -> Array:
    """The values as an array; a TypeError where one is complex, of which NumPy would silently keep the real part."""
    A = np.asarray(values)
    if A.dtype.kind == "c" or (
        A.dtype.kind == "O" and any(isinstance(v, (complex, np.complexfloating)) for v in A.flat)
    ):
        raise TypeError("complex numbers")
    return A


def column_names(X: Any) -> list[str]:
    return [str(c) for c in X.columns] if is_frame(X) else []


def select_columns(X: Any, columns: tuple[int | str, ...]) -> Any:
    """Columns of an array, sparse matrix, data frame or list of records, by position or name."""
    if is_frame(X):
        names = list(X.columns)
        there, chosen = set(names), []
        for column in columns:
            if isinstance(column, str) and column not in there:
                raise InvalidInput(
                    f"Column {column!r} must exist in the data frame",
                    got=f"{len(names)} columns: {', '.join(map(str, names[:12]))}{', …' * (len(names) > 12)}",
                    advice="Check its name.",
                )
            if isinstance(column, int) and not -len(names) <= column < len(names):
                raise _no_such_column(column, len(names))
            chosen.append(names[column] if isinstance(column, int) else column)
            if names.count(chosen[-1]) > 1:
                raise InvalidInput(
                    f"Column {chosen[-1]!r} must be one column",
                    got=f"{names.count(chosen[-1])} columns of that name",
                    advice="Rename them, or pass X.to_numpy() and select by position.",
                )
        return X[chosen]
    named = [c for c in columns if isinstance(c, str)]
    if named:
        raise InvalidInput(
            f"Column names such as {named[0]!r} need a data frame",
            got=f"a {type(X).__name__}",
            advice="Pass a pandas or Polars frame, or select columns by position.",
        )
    if not hasattr(X, "shape"):
        X = object_matrix(list(X))
    if len(X.shape) != 2:
        raise _not_two_dimensional(X.shape)
    for column in columns:
        if not -X.shape[1] <= int(column) < X.shape[1]:
            raise _no_such_column(column, X.shape[1])
    return sp.csr_array(X)[:, list(columns)] if sp.issparse(X) else X[:, list(columns)]


def object_matrix(records: list[Any]) -> Array:
    """Records of equal length as an object array, one row each."""
    widths = {len(r) if isinstance(r, (list, tuple, np.ndarray)) else -1 for r in records}
    if len(widths) != 1 or -1 in widths:
        raise InvalidInput(
            "Records must be rows of equal length",
            got=f"lengths {sorted(w for w in widths if w >= 0)}" + (" and single values" if -1 in widths else ""),
            advice="Pad the rows, or pass a data frame.",
        )
    table = np.empty((len(records), widths.pop()), dtype=object)
    for i, record in enumerate(records):
        table[i, :] = record
    return table


def _no_such_column(column: object, n_columns: int) -> InvalidInput:
    return InvalidInput(
        f"Column {column} must exist", got=f"a data set with {n_columns} columns", advice="Columns count from 0."
    )


def _not_two_dimensional(shape: tuple[int, ...]) -> InvalidInput:
    advice = "Reshape your data to one row per point."
    if len(shape) == 1:
        advice = (
            "Reshape your data: np.reshape(X, (-1, 1)) makes n points with one column, "
            "np.reshape(X, (1, -1)) one point with n columns; "
            "for categories there is Delta(), for sets Intersection()."
        )
    return InvalidInput("A data set of vectors must be 2-D, one row per point", got=f"shape {shape}", advice=advice)


def as_vectors(X: Any) -> Any:
    """X as a C-contiguous float32/float64 matrix or CSR array: checked, never silently altered.

    Integers and booleans become float64, float16 becomes float32, wider floats float64.
    """
    if sp.issparse(X):
        S = sp.csr_array(X)
        if S.ndim != 2:
            raise _not_two_dimensional(S.shape)
        if not S.has_canonical_format:
            S = S.copy()  # the arrays may be the caller's
            S.sum_duplicates()
        values = _as_real(S.data)
        if values is not S.data:
            S = sp.csr_array((values, S.indices, S.indptr), shape=S.shape)
        _check_columns(S.shape[1])
        if not np.isfinite(S.data).all():
            at = int(np.flatnonzero(~np.isfinite(S.data))[0])
            raise _not_finite(S.data, int(np.searchsorted(S.indptr, at, side="right")) - 1, S.indices[at], S.data[at])
        return S
    names = column_names(X)
    if is_frame(X):
        X = _frame_to_array(X)
    elif isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise MissingValues("X must have no missing values", got="a masked array", advice="Fill or drop them.")
        X = X.data
    try:
        A = np.asarray(X)
    except ValueError as error:
        raise InvalidInput(
            "X must be a matrix of numbers, one row per point",
            got=f"rows of different lengths ({error})",
            advice="Pad the rows, or use a kernel on sets or sequences.",
        ) from None
    if A.ndim != 2:
        raise _not_two_dimensional(A.shape)
    _check_columns(A.shape[1])
    A = np.ascontiguousarray(_as_real(A, names))
    _check_finite(A, names)
    return A


def frame_columns(X: Any) -> list[Array]:
    """The columns of a data frame as arrays, by position."""
    if hasattr(X, "iloc"):
        return [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    return [np.asarray(X[name]) for name in X.columns]


def _frame_to_array(X: Any) -> Array:
    return np.column_stack([_as_real(c, [str(name)]) for name, c in zip(X.columns, frame_columns(X))])


def _check_columns(d: int) -> None:
    if d == 0:
        raise InvalidInput("X must have at least one column", got="0 columns", advice="Check how X was selected.")


def _as_real(A: Array, names: Sequence[str] = ()) -> Array:
    if not A.dtype.isnative:
        A = A.astype(A.dtype.newbyteorder("="))
    if A.dtype in (np.float32, np.float64):
        return A
    if A.dtype == np.float16:
        return A.astype(np.float32)
    if A.dtype.kind in "iubf":
        return A.astype(np.float64)
    if A.dtype.kind == "c":
        raise InvalidInput("X must be real. Complex data not supported", got=f"dtype {A.dtype}",
                           advice="Stack real and imaginary parts as columns.")  # fmt: skip
    if A.dtype.kind in "mM":
        raise InvalidInput(
            f"{_column(names)} must be numeric", got=f"dtype {A.dtype}", advice="Convert dates to a number first."
        )
    try:
        if A.dtype.kind in "US" or any(isinstance(v, (str, bytes)) for v in A.ravel()):
            raise TypeError("text")
        return real_numbers(A).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidType(
            f"{_column(names)} must be numeric",
            got=f"dtype {A.dtype} ({error})",
            advice="Make numbers of it or leave it out; kernels of other things are Delta() or Hamming() on categories,"
            " Intersection() on sets, FromFunction(f) on any objects.",
        ) from None


def _column(names: Sequence[str]) -> str:
    return f"Column {names[0]!r}" if len(names) == 1 else "X"


def _check_finite(A: Array, names: Sequence[str]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(A.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(A)
    if not bad.any():
        return
    i, j = np.argwhere(bad)[0]
    raise _not_finite(A, i, repr(names[j]) if len(names) > j else j, A[i, j])


def _not_finite(values: Array, row: Any, column: Any, value: Any) -> InvalidInput:
    what = "NaN" if np.isnan(value) else "infinity"
    kind = MissingValues if np.isnan(values).any() else InvalidInput
    return kind(
        "X must be finite, without NaN or infinity",
        got=f"{int((~np.isfinite(values)).sum())} such entries, the first ({what}) in row {row}, column {column}",
        advice="Drop or impute missing values first.",
    )
