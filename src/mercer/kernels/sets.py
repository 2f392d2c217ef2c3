"""Kernels on finite sets: the size of the intersection, from which 2^|A∩B| and e^|A∩B| are expressions, and its ratios.

A set is its indicator vector over all elements; |A ∩ B| is the inner product of two of them (lecture 001, quiz 2). A
multiset or weighted set (a dict or Counter: element → number ≥ 0) has Σ min(a, b) over common elements instead.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops.counts import LEAST, PRODUCT
from mercer.data.objects import as_weighted_set, objects_of
from mercer.data.points import Array, Points
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.counted import Counts, Sides
from mercer.kernels.ratios import DICE, EMPTY, JACCARD, dice, dice_, jaccard, jaccard_
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

    def holds(self, x: Any) -> bool:
        """Sets, and dicts of numbers such as Counters; lists may be rows or sequences."""
        if isinstance(x, Mapping):
            return all(isinstance(w, (int, float, np.number)) for w in x.values())
        return isinstance(x, Set)

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Shares of common elements, and the cosine of indicator vectors."""
        return {"common share": Jaccard(), "common elements": Dice(), "cosine": Intersection().normalize()}


SETS = Sets("sets")


class OfSets(Kernel):
    """A function of |A ∩ B|, |A| and |B|, or of sums of weights in their place."""

    space: ClassVar[str] = SETS
    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    @abstractmethod
    def derivation(self) -> Proof:
        """Why it is a kernel."""

    @property
    def encoding(self) -> Any:
        return "sets"

    def encode(self, X: Any) -> Any:
        return [as_weighted_set(A, i) for i, A in enumerate(objects_of(X, "Sets"))]

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        numbers: dict[Any, int] = {}
        left = _counts(x, numbers)
        right = left if x is z else _counts(z, numbers)
        sides = Sides(left, right, LEAST if any(map(_weighted, (*x, *z))) else PRODUCT)
        return sides, sides

    def common(self, block: Block, out: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """out = |A ∩ B|; |A| of the rows and |B| of the columns of the block."""
        sides: Sides = block.pair.encoded(self)[0]
        sides.tile(block, out)
        a, b = (self.sizes(points) for points in (block.pair.x, block.pair.z))
        return a[block.rows], b[block.cols]

    def sizes(self, points: Points) -> NDArray[np.float64]:
        """|A| of every set, or the sum of its weights."""

        def make() -> NDArray[np.float64]:
            return np.array([_size(A) for A in points.encoded(self)], dtype=np.float64)

        return points.once("sizes of sets", make)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)


class Intersection(OfSets):
    """|A ∩ B|, the number of common elements of two finite sets; Σ min(a, b) for multisets and weighted sets.

    Objects are sets, lists or tuples of hashable elements (repetitions count once), or dicts and Counters that give
    each element a number ≥ 0.

    >>> import numpy as np, mercer as mc
    >>> mc.Intersection()([{1, 2}, {2, 3}, set()])
    array([[2., 1., 0.],
           [1., 2., 0.],
           [0., 0., 0.]])
    >>> mc.Intersection()([{"a": 3, "b": 0.5}, {"a": 1, "c": 2}])
    array([[3.5, 1. ],
           [1. , 3. ]])
    """

    about: ClassVar[About] = About("|x ∩ z|", "Sets of tokens, tags, items in a basket.", "Intersection()")

    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def tile(self, block: Block, out: Array) -> None:
        self.common(block, out)

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        """x (zᵀ V) for plain sets: the matrix is never formed."""
        sides: Sides = pair.encoded(self)[0]
        return sides.multiply(V) if sides.term == PRODUCT else super().multiply(pair, V)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self.sizes(points)

    def distance_size(self, points: Points) -> float:
        """Whole numbers cancel without rounding."""
        return super().distance_size(points) if any(map(_weighted, points.encoded(self))) else 0.0

    def enclose(self, x: Any, z: Any) -> Interval:
        return _least(x, z)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of indicator vectors: phi(A)ᵢ = 1[i ∈ A]; of weights, min(a, b) = ∫ 1[t ≤ a] 1[t ≤ b] dt",
            reference="Bishop 2006, (6.1)",
        )

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        """The indicator vector over a ground set `d` (its elements, or their number m for 0 … m−1)."""
        from mercer.features import IncidenceMap

        return IncidenceMap(d)


class Jaccard(OfSets):
    """|A ∩ B|/|A ∪ B|, the share of common elements; Σ min(a, b)/Σ max(a, b) for multisets. 1 for two empty sets.

    It is also called Tanimoto's; for rows of bits take `Tanimoto`, for rows of counts `MinMax`.

    References
    ----------
    Gower 1971, A general coefficient of similarity; Ralaivola et al. 2005, Graph kernels for chemical informatics.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Jaccard()([{1, 2}, {2, 3, 4}, set()])
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    about: ClassVar[About] = About("|x ∩ z|/|x ∪ z|", "Sets of very different sizes.", "Jaccard()")

    def tile(self, block: Block, out: Array) -> None:
        jaccard_(out, *self.common(block, out))

    def enclose(self, x: Any, z: Any) -> Interval:
        return jaccard(_least(x, z), _least(x, x), _least(z, z))

    def derivation(self) -> Proof:
        return JACCARD(self, Intersection().derivation(), condition=EMPTY)


class Dice(OfSets):
    """2|A ∩ B|/(|A| + |B|), the common elements over the mean size; weights add up as in `Intersection`.

    The value of two empty sets is 1.

    References
    ----------
    Gower and Legendre 1986, Metric and Euclidean properties of dissimilarity coefficients.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Dice()([{1, 2}, {2, 3}, {2, 3, 4, 5}]).round(4)
    array([[1.    , 0.5   , 0.3333],
           [0.5   , 1.    , 0.6667],
           [0.3333, 0.6667, 1.    ]])
    """

    about: ClassVar[About] = About("2|x ∩ z|/(|x| + |z|)", "Sets, with less weight on their sizes.", "Dice()")

    def tile(self, block: Block, out: Array) -> None:
        dice_(out, *self.common(block, out))

    def enclose(self, x: Any, z: Any) -> Interval:
        return dice(_least(x, z), _least(x, x), _least(z, z))

    def derivation(self) -> Proof:
        return DICE(self, Intersection().derivation(), condition=EMPTY)


def _weighted(A: Any) -> bool:
    return isinstance(A, dict)


def _size(A: Any) -> float:
    return float(sum(A.values())) if _weighted(A) else float(len(A))


def _least(x: Any, z: Any) -> Interval:
    """|x ∩ z| exactly, or Σ min over the common elements."""
    from mercer.kernels.validity.interval import exactly

    a, b = (A if isinstance(A, dict) else dict.fromkeys(A, 1.0) for A in (as_weighted_set(x, 0), as_weighted_set(z, 0)))
    return exactly(sum((min(Fraction(w), Fraction(b[e])) for e, w in a.items() if e in b), Fraction(0)))


def _counts(sets: list[Any], numbers: dict[Any, int]) -> Counts:
    """Sets as sparse rows: every element has a number, to which new ones are added."""
    keys = [numbers.setdefault(e, len(numbers)) for A in sets for e in A]
    values = [float(w) for A in sets for w in (A.values() if _weighted(A) else itertools.repeat(1.0, len(A)))]
    return Counts.of(keys, np.cumsum([0, *map(len, sets)]), np.array(values))
