"""Kernels on finite sets: the size of the intersection, from which 2^|A∩B| and e^|A∩B| are expressions.

A set is its indicator vector over all elements; |A ∩ B| is the inner product of two of them (lecture 001, quiz 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Array, Points, is_frame
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, product
from mercer.kernels.spaces import Space

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class Sets(Space):
    """Finite sets of whole numbers."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return [set(rng.choice(8, size=rng.integers(0, 6), replace=False).tolist()) for _ in range(n)]

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        ground = range(min(length, 8))
        return [frozenset(c) for n in range(len(ground) + 1) for c in itertools.combinations(ground, n)]

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        return x ^ {int(rng.integers(max(x, default=0) + 2))}


SETS = Sets("sets")


class Intersection(Kernel):
    """|A ∩ B|, the number of common elements of two finite sets.

    >>> import numpy as np, mercer as mc
    >>> mc.Intersection()([{1, 2}, {2, 3}, set()])
    array([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 0.]])
    """

    about: ClassVar[About] = About("|x ∩ z|", "Sets of tokens, tags, items in a basket.", "Intersection()")

    space: ClassVar[str] = SETS
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    @property
    def encoding(self) -> Any:
        return "sets"

    def encode(self, X: Any) -> Any:
        return [_as_set(A, i) for i, A in enumerate(_objects(X))]

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        return aligned(x, z, _incidence)

    def tile(self, block: Block, out: Array) -> None:
        product(*block.encoded(self), out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.array([len(A) for A in points.encoded(self)], dtype=np.float64)

    def distance_size(self, points: Points) -> float:
        """Whole numbers cancel without rounding."""
        return 0.0

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        return exactly(len(_as_set(x, 0) & _as_set(z, 0)))

    def derivation(self) -> Proof:
        return Axiom(self, "inner product of indicator vectors: phi(A)ᵢ = 1[i ∈ A]", reference="Bishop 2006, (6.1)")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        """The indicator vector over a ground set `d` (its elements, or their number m for 0 … m−1)."""
        from mercer.features import IncidenceMap

        return IncidenceMap(d)


def _objects(X: Any) -> list[Any]:
    """The sets of a list, an object array, or a table with one column."""
    if is_frame(X):
        if X.shape[1] != 1:
            raise InvalidInput(
                "Sets must be one column of a table", got=f"{X.shape[1]} columns", advice="Use k.on('tokens')."
            )
        return X[X.columns[0]].to_list()
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2 and X.shape[1] == 1:
        return list(X[:, 0])
    return list(X)


def _as_set(A: Any, position: int) -> frozenset[Any]:
    if isinstance(A, (str, bytes)) or not isinstance(A, (Set, list, tuple)):
        raise InvalidInput(
            "Every point must be a set (or a list or tuple of hashable elements)",
            got=f"{type(A).__name__} at position {position}",
            advice="Wrap it: set(tokens). For vectors use a kernel on vectors.",
        )
    try:
        elements = frozenset(A)
    except TypeError as error:
        raise InvalidInput(
            "Elements of a set must be hashable", got=f"{error} at position {position}", advice="Use tuples."
        ) from None
    if any(map(_holds_nan, elements)):
        raise InvalidInput(
            "Elements of a set must equal themselves, or no one could say which sets have them in common",
            got=f"NaN at position {position}",
            advice="Leave missing elements out, or write them as None.",
        )
    return elements


def _holds_nan(element: Any) -> bool:
    """Whether an element is NaN, or a tuple or set that holds one."""
    if isinstance(element, (tuple, frozenset)):
        return any(map(_holds_nan, element))
    try:
        return bool(element != element)
    except (TypeError, ValueError):  # pandas.NA, which is one object, has no answer
        return False


def aligned(x: Any, z: Any, matrix: Callable[[Any, dict[Any, int]], sp.csr_array]) -> tuple[Any, Any]:
    """Both sides as sparse matrices over one vocabulary, which `matrix` goes on writing."""
    vocabulary: dict[Any, int] = {}
    left = matrix(x, vocabulary)
    right = left if x is z else matrix(z, vocabulary)
    width = max(len(vocabulary), 1)
    left.resize((len(x), width))
    right.resize((len(z), width))
    return left, right


def _incidence(sets: list[frozenset[Any]], vocabulary: dict[Any, int]) -> sp.csr_array:
    columns = [vocabulary.setdefault(e, len(vocabulary)) for A in sets for e in A]
    ends = np.cumsum([0, *(len(A) for A in sets)])
    return sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), max(len(vocabulary), 1)))
