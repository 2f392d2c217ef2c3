"""FeatureMap, the one abstraction of explicit maps: a size, a name for every feature, and a way to fill an array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import memory
from mercer.data.frames import dtypes, is_frame
from mercer.data.points import length
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.features.terms import Names, Term, Variables, atom, variable
from mercer.words import show_count

Array = NDArray[Any]


class SpectralDensity(Enum):
    """The spectral density of a stationary kernel: the density of the frequencies ω in k(x − z) = E cos ωᵀ(x − z).

    A kernel class states it as its attribute `spectrum`; its width is `sigma`, and a Student's has 2·`nu` degrees of
    freedom. Only the Gaussian kernel has normal frequencies.
    """

    NORMAL = "normal"
    STUDENT = "multivariate t"
    CAUCHY = "an independent Cauchy for every coordinate"


class FeatureMap(ABC):
    """phi with k(x, z) = phi(x)ᵀphi(z): an explicit, finite map of a kernel.

    A map is a frozen value. `dimension` is exact and `names` are made one by one, so both work for maps that no
    memory could hold; only `transform` builds features.

    >>> from mercer.features import MonomialMap
    >>> phi = MonomialMap(2, degree=2)                              # (x0, x1) → (x0², √2·x0·x1, x1²)
    >>> phi.dimension, phi.names
    (3, ['x0²', '√2·x0·x1', 'x1²'])
    >>> (phi([[1.0, 2.0]]) @ phi([[3.0, 4.0]]).T).round(12)         # (1·3 + 2·4)² = 121
    array([[121.]])
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The exact number of features, without building any."""

    @property
    def inputs(self) -> int | None:
        """The number of columns of the points, or None for maps of other objects."""
        return None

    @abstractmethod
    def _fill(self, X: Any, out: Array) -> None:
        """Write phi(x) into the rows of `out`, an n × dimension array whose rows are contiguous."""

    @abstractmethod
    def _term(self, j: int, x: Variables) -> Term:
        """The name of feature j, given the names of the columns."""

    @property
    def names(self) -> Names:
        """The names of the features: a sequence that makes each name when it is needed.

        >>> from mercer.features import MonomialMap
        >>> MonomialMap(784, degree=4, c=1.0).names[-1]
        'x783⁴'
        """
        return Names(lambda j: str(self._term(j, variable)), range(self.dimension))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names as an array, as scikit-learn's transformers give them, with the given names of the columns.

        >>> from mercer.features import MonomialMap
        >>> MonomialMap(2, degree=2).get_feature_names_out(["age", "dose"])
        array(['age²', '√2·age·dose', 'dose²'], dtype=object)
        """
        if input_features is None:
            return np.array(list(self.names), dtype=object)
        columns = [str(name) for name in input_features]
        if self.inputs is not None and len(columns) != self.inputs:
            raise InvalidInput(
                f"`input_features` must name the {self.inputs} columns",
                got=f"{len(columns)} names",
                advice="Pass one name per column.",
            )
        names = Names(lambda j: str(self._term(j, lambda i: atom(columns[i]))), range(self.dimension))
        return np.array(list(names), dtype=object)

    def transform(self, X: Any) -> Array:
        """phi(x) for every point, shape (n, dimension), in the precision of X.

        >>> from mercer.features import IdentityMap
        >>> IdentityMap(2).transform([[1.0, 2.0]])
        array([[1., 2.]])
        """
        n, dtype = length(X), dtype_of(X)
        memory.within(
            n * self.dimension * dtype.itemsize,
            int(0.9 * memory.available()),
            f"The features of these points ({n:,} points × {show_count(self.dimension)} features)",
            "Transform fewer points at a time, or work with the kernel's Gram matrix, which needs no features.",
        )
        out = np.empty((n, self.dimension), dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            self._fill(X, out)
            finite = np.isfinite(out.sum(dtype=np.float64)) or np.isfinite(out).all()
        if not finite:
            raise InvalidInput(
                f"Feature values must fit {dtype}",
                got=f"an overflow in {type(self).__name__}",
                advice="Rescale the points, or use float64." if dtype == np.float32 else "Rescale the points.",
            )
        return out

    def __call__(self, X: Any) -> Array:
        """The same as `transform`."""
        return self.transform(X)

    def __str__(self) -> str:
        return f"{show_count(self.dimension)} features: {self.names!r}"


def filled(phi: FeatureMap, X: Any, like: Array) -> Array:
    """phi(X) as a new array, with the rows and the dtype of another one."""
    out = np.empty((len(like), phi.dimension), like.dtype)
    phi._fill(X, out)
    return out


def dtype_of(X: Any) -> np.dtype[Any]:
    """float32 for data in single precision (or half), float64 for all else."""
    kinds = [X.dtype] if hasattr(X, "dtype") else dtypes(X) if is_frame(X) else []
    single = bool(kinds) and all(str(kind).lower() in ("float32", "float16") for kind in kinds)
    return np.dtype(np.float32 if single else np.float64)


def vectors(X: Any, d: int | None) -> Any:
    """X as a matrix of finite numbers with d columns: an array, or a CSR array if X is sparse."""
    A = as_vectors(X)
    if d is not None and A.shape[1] != d:
        raise InvalidInput(
            f"X must have {d} columns, like the data that the map was made for",
            got=f"{A.shape[1]} columns",
            advice=f"Make the map for this data: k.features({A.shape[1]}).",
        )
    return A


def dense(X: Any, d: int | None) -> Array:
    """X as a checked dense matrix with d columns."""
    A = vectors(X, d)
    return np.asarray(A.toarray() if sp.issparse(A) else A)
