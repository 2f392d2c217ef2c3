"""Data sets as kernels see them: raw objects, validated once, and the views that composite kernels take of them."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from copy import copy, deepcopy
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.frames import is_frame
from mercer.data.graph_sources import frozen
from mercer.data.missing import missing_entries
from mercer.data.objects import object_array, object_matrix, rows_of
from mercer.data.vectors import as_vectors, not_two_dimensional
from mercer.errors import InvalidInput
from mercer.words import first_few

Array = NDArray[Any]
T = TypeVar("T")


class Encoder(Protocol):
    """The part of a kernel that a data set needs: how it reads raw objects."""

    @property
    def encoding(self) -> Hashable:
        """The key of the encoding: encoders with the same key share their results."""
        ...

    def encode(self, X: Any) -> Any:
        """The raw objects in the form with which the kernel computes."""
        ...


@runtime_checkable
class Selectable(Protocol):
    """An encoding of objects that is costly to make: points taken from others take their rows of it, too."""

    def encoded_rows(self, index: Any) -> Any:
        """The encoding of the objects at these positions."""
        ...


class View(Protocol):
    """A way to look at a data set: some columns, a feature map, a change of units. Hashable, so it is taken once."""

    @property
    def transient(self) -> bool:
        """Whether it depends on free parameters, so that keeping it would fill memory during a search."""
        ...

    @property
    def state(self) -> Hashable:
        """A value that changes when the view would show something else; None if it cannot."""
        ...

    def __hash__(self) -> int: ...
    def apply(self, points: Points) -> Any:
        """The raw objects seen through this view."""
        ...


# The values computed from a data set and kept may take this many times its size, or the size of its largest encoding;
# for a small one, this many bytes.
COPIES, SMALL = 8, 2**20

_making = threading.local()


def making() -> bool:
    """Whether this thread is inside a `once`, where it must not wait for other threads."""
    return bool(getattr(_making, "depth", 0))


class Once:
    """Values that are made at the first call and kept, by key; different keys never wait for each other.

    Together they take no more than `room` bytes: beyond that, the values used longest ago are dropped.
    """

    def __init__(self) -> None:
        self._cache: dict[Hashable, Any] = {}  # in the order of their last use
        self._locks: dict[Hashable, threading.RLock] = {}
        self._lock = threading.Lock()

    least: ClassVar[float] = math.inf  # bytes that may be kept in any case

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
                value = make()
            finally:
                _making.depth -= 1
            with self._lock:
                self._cache[key] = value
                self._locks.pop(key, None)
                self._make_room()
            return value

    def current(self, key: Hashable, state: Hashable, make: Callable[[], T]) -> T:
        """The value made for `key` in this state; the values of other states are dropped."""
        value = self.once(("current", key, state), make)
        with self._lock:
            for other in [k for k in self._cache if isinstance(k, tuple) and k[:2] == ("current", key)]:
                if other[2] != state:
                    del self._cache[other]
        return value

    def _make_room(self) -> None:
        """Drop the values used longest ago until the rest fits; the newest stays in any case."""
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
    """One data set: the raw objects, and every encoding and view of them that was needed, computed once.

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
        """The objects are pickled, not the values computed from them."""
        return {"raw": self.raw, "index": self.index, "among": self.among}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def encoded(self, kernel: Encoder) -> Any:
        """The raw objects encoded by `kernel.encode`; leaves with the same encoding share them."""
        return self.once(("encoded", kernel.encoding), lambda: kernel.encode(self.raw))

    def view(self, view: View) -> Points:
        """These points seen through `view`; views by free parameters are not kept, because a search tries many."""
        if view.transient:
            return Points(view.apply(self), self.index, self.among)
        return self.current(view, view.state, lambda: Points(view.apply(self), self.index, self.among))

    def vectors(self) -> Any:
        """The points as a validated float matrix, dense or CSR."""
        return self.once(("encoded", "vectors"), lambda: as_vectors(self.raw))

    def dense(self) -> NDArray[np.float64]:
        """The points as a dense float64 matrix."""
        X = self.vectors()
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def mean(self) -> NDArray[np.float64]:
        """The float64 column mean: the common centre of distance computations."""

        def make() -> NDArray[np.float64]:
            with np.errstate(over="ignore"):
                mean = np.asarray(self.vectors().mean(axis=0, dtype=np.float64)).ravel()
            return np.where(np.isfinite(mean), mean, 0.0)

        return self.once("mean", make)

    def matrix(self) -> Array:
        """The points as an array with one row each: of numbers, or of objects."""
        return self.once("rows", lambda: rows_of(self.raw))

    def missing(self) -> NDArray[np.bool_]:
        """Which points miss a value, in any of their columns."""
        return self.once("missing", lambda: np.asarray(missing_entries(self.matrix()).any(axis=1)))

    def take(self, index: Any) -> Points:
        """The points at these positions (a slice, mask or index array), which stay known as `index`."""
        chosen = np.atleast_1d(np.arange(self.n)[index])
        if self.index is None:
            some = Points(take(self.raw, chosen), chosen, self.n)
        else:
            some = Points(take(self.raw, chosen), self.index[chosen], self.among)
        with self._lock:
            ready = {key: value for key, value in self._cache.items() if isinstance(value, Selectable)}
        some._cache.update({key: value.encoded_rows(chosen) for key, value in ready.items()})
        return some


def owned(X: Any) -> Any:
    """A copy of the data set, which later changes of X do not reach.

    Arrays, sparse matrices and frames are copied, lists together with their rows; graphs of networkx and igraph become
    `Graph`s, nodes of `ast` and `xml.etree` trees. A read-only array is not copied: to save memory, set
    X.flags.writeable = False, and do not write into an array of which X is a view.

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
        if X.dtype == object:
            return object_array([_owned_object(x, i) for i, x in enumerate(X.ravel())]).reshape(X.shape)
        return X.copy() if X.flags.writeable else X
    if sp.issparse(X):
        return X.copy()
    if is_frame(X):
        return frames.copied(X, _frozen)
    if isinstance(X, (list, tuple)):
        return [_owned_object(x, i) for i, x in enumerate(X)]
    return X


def _owned_object(x: Any, position: int) -> Any:
    if isinstance(x, (list, dict)):
        nested = any(isinstance(v, (list, dict)) for v in (x.values() if isinstance(x, dict) else x))
        return deepcopy(x) if nested else copy(x)
    return copy(x) if isinstance(x, (set, bytearray, np.ndarray)) or sp.issparse(x) else _frozen(x, position)


def _frozen(x: Any, position: int) -> Any:
    """Graphs and trees of other libraries in our own form, which later changes do not reach; errors say where."""
    if type(x).__module__ in ("ast", "xml.etree.ElementTree"):
        from mercer.data.trees import Tree

        return Tree.of(x)
    return frozen(x, position)


def nbytes(value: Any) -> int:
    """The bytes of the arrays in a value; Python objects are not counted."""
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


def take(X: Any, index: Any) -> Any:
    """Rows of any kind of data set."""
    if sp.issparse(X) and X.format not in ("csr", "csc", "lil"):
        X = sp.csr_array(X)  # the other formats have no rows
    if hasattr(X, "shape"):
        return frames.rows(X, index)
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
        return frames.concatenated(X, Z)
    return [*X, *Z]


def as_argument(X: Any) -> Any:
    """A raw data set as a user's function expects it: rows of numbers as an array, anything else unchanged."""
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        try:
            A = np.asarray(X)
        except ValueError:
            return X
        return A if A.dtype.kind in "iufb" else X
    return X


def select_columns(X: Any, columns: tuple[int | str, ...]) -> Any:
    """Columns of an array, sparse matrix, data frame or list of records, by position or name."""
    if is_frame(X):
        names = list(X.columns)
        times, chosen = Counter(names), []
        for column in columns:
            if isinstance(column, str) and column not in times:
                raise InvalidInput(
                    f"Column {column!r} must exist in the data frame",
                    got=f"{len(names)} columns: {first_few(names, 12)}",
                    advice="Check the name of the column.",
                )
            if isinstance(column, int) and not -len(names) <= column < len(names):
                raise _no_such_column(column, len(names))
            chosen.append(names[column] if isinstance(column, int) else column)
            if times[chosen[-1]] > 1:
                raise InvalidInput(
                    f"Column {chosen[-1]!r} must be one column",
                    got=f"{times[chosen[-1]]} columns of that name",
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
        raise not_two_dimensional(X.shape)
    for column in columns:
        if not -X.shape[1] <= int(column) < X.shape[1]:
            raise _no_such_column(column, X.shape[1])
    return sp.csr_array(X)[:, list(columns)] if sp.issparse(X) else X[:, list(columns)]


def _no_such_column(column: object, n_columns: int) -> InvalidInput:
    return InvalidInput(
        f"Column {column} must exist", got=f"a data set with {n_columns} columns", advice="Count columns from 0."
    )
