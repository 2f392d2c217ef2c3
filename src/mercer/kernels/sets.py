"""Kernels on finite sets: the size of the intersection, from which 2^|A∩B| and e^|A∩B| are expressions.

A set is its indicator vector over all elements; |A ∩ B| is the inner product of two of them (lecture 001, quiz 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.objects import as_set, objects_of
from mercer.data.points import Array, Points
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
        return [as_set(A, i) for i, A in enumerate(objects_of(X, "Sets"))]

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

        return exactly(len(as_set(x, 0) & as_set(z, 0)))

    def derivation(self) -> Proof:
        return Axiom(self, "inner product of indicator vectors: phi(A)ᵢ = 1[i ∈ A]", reference="Bishop 2006, (6.1)")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        """The indicator vector over a ground set `d` (its elements, or their number m for 0 … m−1)."""
        from mercer.features import IncidenceMap

        return IncidenceMap(d)


def aligned(x: Any, z: Any, matrix: Callable[[Any, dict[Any, int]], sp.csr_array]) -> tuple[Any, Any]:
    """Both sides as sparse matrices over one vocabulary, to which `matrix` adds its words."""
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
