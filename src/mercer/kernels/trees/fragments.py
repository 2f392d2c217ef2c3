"""Common fragments of two trees: complete subtrees, subset trees, partial trees."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from mercer import memory
from mercer._loops import trees as loops
from mercer.data.objects import objects_of
from mercer.data.points import Array, Points
from mercer.data.trees import Forest, Tree
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.spaces import Space

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class Trees(Space):
    """Ordered trees with the labels a, b, c."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return [self._draw(rng, 3) for _ in range(n)]

    def _draw(self, rng: np.random.Generator, depth: int) -> Any:
        label = str(rng.choice(list("abc")))
        width = int(rng.integers(0, 4)) if depth else 0
        return (label, *(self._draw(rng, depth - 1) for _ in range(width)))

    def holds(self, x: Any) -> bool:
        """Objects that cannot be anything else; tuples, texts and documents may be."""
        return isinstance(x, (Tree, ast.AST, ElementTree.Element))

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Fragments with and without missing children, and complete subtrees."""
        return {
            "partial trees": PartialTree(0.5, 0.5).normalize(),
            "subset trees": SubsetTree(0.5).normalize(),
            "subtrees": Subtree().normalize(),
        }

    def show(self, x: Any) -> str:
        return str(Tree.of(x))


TREES = Trees("trees")


class Subtree(Counted):
    """The number of pairs of nodes, one of each tree, below which the trees are equal: common complete subtrees.

    Trees are nested tuples (label, child, …), bracket text "(S (NP dogs) bark)", nodes of `ast`, elements of
    `xml.etree`, or JSON documents (dicts and lists).

    References
    ----------
    Vishwanathan and Smola 2003, Fast kernels for string and tree matching.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Subtree()(["(S (NP dogs) bark)", "(S (NP dogs) (VP bark))"])
    array([[4., 3.],
           [3., 5.]])
    """

    about: ClassVar[About] = About(
        "the number of common complete subtrees of x and z", "Documents and code with equal parts.", "Subtree()"
    )

    space: ClassVar[str] = TREES

    def encode(self, X: Any) -> Counts:
        forest = Forest.of(X)
        return Counts.of(forest.subtrees, forest.ends)

    def spelled(self, X: Any, keys: NDArray[np.uint64]) -> tuple[str, ...]:
        """Subtrees as bracket text."""
        texts = [text for i, x in enumerate(objects_of(X, "Trees")) for text in Tree.of(x, i).subtree_texts()]
        by_key = dict(zip(Forest.of(X).subtrees.tolist(), texts))
        return tuple(by_key[key] for key in keys.tolist())

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(x)_t = how often the complete subtree t stands in x",
            reference="Vishwanathan and Smola 2003",
        )


class Fragments(Kernel):
    """A weighted count of common fragments, by sums over pairs of nodes."""

    space: ClassVar[str] = TREES
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    @abstractmethod
    def _count(self, x: Any, z: Any, log: bool, out: Array) -> None:
        """out = k(x, z), or its logarithm, for trees as arrays."""

    @abstractmethod
    def _keys(self, forest: Forest) -> NDArray[np.uint64]:
        """The keys by which nodes are compared."""

    @property
    @abstractmethod
    def _least(self) -> float:
        """The smallest number by which the loops multiply: no sum that is not 0 is smaller."""

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        """Refused: a tree of n nodes has up to 2ⁿ fragments, which only sums over pairs of nodes can count."""
        raise InvalidInput(
            "An explicit map must have a number of features that can be listed",
            got=f"{self!r}, whose fragments grow exponentially with the size of a tree",
            advice="Use mc.Subtree, which has a feature for every complete subtree, or a model on Nyström centres.",
        )

    @property
    def encoding(self) -> Any:
        return "trees"

    def encode(self, X: Any) -> Forest:
        return Forest.of(X)

    def _values(self, pair: Pair, rows: slice, cols: slice, log: bool, out: Array) -> None:
        x, z = pair.encoded(self)
        largest = [int(np.diff(forest.ends).max()) for forest in (x, z)]
        memory.within(
            8 * largest[0] * largest[1],
            memory.budget(),
            f"The table of pairs of nodes of two trees ({largest[0]:,} × {largest[1]:,})",
            "Cut the trees into parts, or use mc.Subtree, which needs no table.",
        )
        x, z = x.encoded_rows(rows), z.encoded_rows(cols)
        left, right = ((self._keys(f), f.arities, f.starts, f.children, f.ends) for f in (x, z))
        self._count(left, right, log, out)

    def tile(self, block: Block, out: Array) -> None:
        self._values(block.pair, block.rows, block.cols, False, out)

    def enclose(self, x: Any, z: Any) -> Interval:
        """The computed value, a sum of positive terms, widened by 2⁻⁴⁰ of its size."""
        from mercer.kernels.validity.interval import around

        return around(float(self([x], [z])[0, 0]))

    @property
    def exact_log(self) -> bool:
        return True

    def log_tile(self, block: Block, out: Array) -> None:
        """The logarithm of the value; by sums of logarithms if one overflows, or may underflow."""
        if self._large_enough:
            self.tile(block, out)
        if self._large_enough and np.isfinite(out).all():
            with np.errstate(divide="ignore"):
                np.log(out, out=out)
        else:
            self._values(block.pair, block.rows, block.cols, True, out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return self._on_diagonal(points, False)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        plain = self._on_diagonal(points, False) if self._large_enough else np.array([np.inf])
        return np.log(plain) if np.isfinite(plain).all() else self._on_diagonal(points, True)

    @property
    def _large_enough(self) -> bool:
        """Whether numbers that underflow are smaller than the rounding errors of the others."""
        numbers = np.finfo(np.float64)
        return self._least * float(numbers.eps) >= float(numbers.tiny)

    def _on_diagonal(self, points: Points, log: bool) -> NDArray[np.float64]:
        pair, out, one = Pair(points, None, np.float64), np.empty(points.n), np.empty((1, 1))
        for i in range(points.n):
            self._values(pair, slice(i, i + 1), slice(i, i + 1), log, one)
            out[i] = one[0, 0]
        return out


class SubsetTree(Fragments):
    """Σ decay^(productions of t) over the common fragments t of two trees that consist of whole productions.

    A fragment is a connected part that has all children of a node or none. The sum is over pairs of nodes with the same
    label and the same labels of children, C(n, m) = decay · Π (1 + C(childᵢ, childᵢ)). Leaves alone are not fragments,
    except for a tree of one node. Values grow exponentially with the trees; `normalize()` works with logarithms.

    Parameters
    ----------
    decay : float
        The weight of a production, > 0; below 1 large fragments count less.

    References
    ----------
    Collins and Duffy 2001, Convolution kernels for natural language.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.SubsetTree(1.0)(["(S (NP dogs) (VP bark))", "(S (NP cats) (VP bark))"])
    array([[6., 3.],
           [3., 6.]])
    """

    about: ClassVar[About] = About(
        "Σ λ^productions over common fragments of x and z",
        "Parse trees and other trees in which the children of a node belong together.",
        "SubsetTree(decay=0.5)",
        arguments={"decay": ("λ", "")},
    )

    decay: float = positive(0.5)

    @property
    def _least(self) -> float:
        return self.decay

    def _keys(self, forest: Forest) -> NDArray[np.uint64]:
        return forest.productions

    def _count(self, x: Any, z: Any, log: bool, out: Array) -> None:
        loops.subset_trees(x, z, self.decay, log, out)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(x)_t = √λ^(productions of t) · how often fragment t stands in x",
            condition=f"λ = {self.decay:g} > 0",
            reference="Collins and Duffy 2001",
        )


class PartialTree(Fragments):
    """A weighted count of all common connected parts of two trees, in which children may be left out.

    D(n, m) = decay · (gap² + Σ gap^(d(I) + d(J)) Π D(childᵢ, childⱼ)) for nodes with the same label, summed over
    equally long sequences I and J of children; d(I) is the span of I from its first to its last child. The value is the
    sum of D over all pairs of nodes. `normalize()` works with logarithms.

    Parameters
    ----------
    decay : float
        The weight of a node, > 0; below 1 large parts count less.
    gap : float
        The weight of every child within the span of a part, > 0; below 1 wide parts with gaps count less.

    References
    ----------
    Moschitti 2006, Efficient convolution kernels for dependency and constituent syntactic trees.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.PartialTree(1.0, 1.0)(["(a b c)", "(a c)"])
    array([[6., 3.],
           [3., 3.]])
    """

    about: ClassVar[About] = About(
        "Σ λ^nodes μ^(leaves + spans) over common parts of x and z",
        "Trees in which children may be missing: dependencies, HTML, JSON.",
        "PartialTree(decay=0.5, gap=0.5)",
        arguments={"decay": ("λ", ""), "gap": ("μ", "")},
    )

    decay: float = positive(0.5)
    gap: float = positive(0.5)

    @property
    def _least(self) -> float:
        return min(1.0, self.decay) * self.gap**2

    def _keys(self, forest: Forest) -> NDArray[np.uint64]:
        return forest.labels

    def _count(self, x: Any, z: Any, log: bool, out: Array) -> None:
        loops.partial_trees(x, z, self.decay, self.gap, log, out)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product: phi(x)_t sums √λ^(nodes of t) · μ^(leaves of t + spans of children) over its places in x",
            condition=f"λ = {self.decay:g} > 0, μ = {self.gap:g} > 0",
            reference="Moschitti 2006",
        )
