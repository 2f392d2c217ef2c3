"""Kernels on histograms, which are rows of numbers ≥ 0: counts of words, colours or substructures.

Each compares the rows column by column: the smaller number, or the square roots. The harmonic mean and its χ² distance
are in `chi_squared`.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._loops import counts, tiles
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels import costs
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import COMPOSITION, Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair, recompute_cancelled, sparse_l1
from mercer.kernels.ratios import EMPTY, JACCARD, jaccard_
from mercer.kernels.ratios import jaccard as jaccard_interval
from mercer.kernels.spaces import Space, dimension

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval


class Histograms(Space):
    """Rows of numbers ≥ 0."""

    __slots__ = ()
    numeric_rows = True

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return rng.gamma(2.0, size=(n, dimension(kernel)))

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        return [np.array(row, float) for row in itertools.product(range(4), repeat=dimension(kernel))]

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        moved = np.array(x, dtype=np.float64)
        moved[rng.integers(len(moved))] = float(rng.integers(8)) / 2
        return moved


HISTOGRAMS = Histograms("histograms")


def require_nonnegative(points: Points) -> None:
    """Raise if a number is negative, with its place."""

    def check() -> bool:
        X = points.vectors()
        if (X.data if sp.issparse(X) else X).min(initial=0.0) < 0:
            i, j = (int(at[0]) for at in (X < 0).nonzero())
            raise InvalidInput(
                "A histogram must hold numbers ≥ 0",
                got=f"{float(X[i, j]):g} in row {i}, column {j}",
                advice="Pass counts or shares, or take a kernel on vectors such as mc.Gaussian.",
            )
        return True

    points.once("nonnegative", check)


class Histogram(Kernel):
    """A kernel on rows of numbers ≥ 0, which k(x, x) adds up."""

    space: ClassVar[str] = HISTOGRAMS
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    @abstractmethod
    def derivation(self) -> Proof:
        """Why it is a kernel."""

    def touch(self, points: Points) -> None:
        super().touch(points)
        require_nonnegative(points)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return row_sums(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)


@dataclass(frozen=True)
class Mean:
    """A mean of two numbers ≥ 0 that adds up to the common part of two histograms.

    The distance of the common part in feature space is Σ xₖ + Σ zₖ − 2 Σ mean(xₖ, zₖ), computed without cancellation.

    Attributes
    ----------
    term : int
        Its number in the loops over sparse rows.
    tile : function
        The sums of means of dense rows.
    distances : function
        The distances of dense rows.
    sparse_distances
        The distance of every sparse row of one matrix and the same row of another.
    """

    term: int
    tile: Callable[[Array, Array, Array], None]
    distances: Callable[[Array, Array, Array], None]
    sparse_distances: Callable[[Any, Any], NDArray[np.float64]]

    def common(self, block: Block, out: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """out = the common part; the sums of the rows and columns of the block."""
        block = _without_zeros(block)
        x, z = block.pair.vectors()
        a, b = (row_sums(points)[span] for points, span in ((block.pair.x, block.rows), (block.pair.z, block.cols)))
        if sp.issparse(x):
            first = block.rows.start, block.cols.start
            counts.add_products(*_laid_out(block.pair), first, out, fresh=True, term=self.term)
        else:
            self.tile(x[block.rows], z[block.cols], out)
        if block.diagonal:
            np.fill_diagonal(out, a)
        return a, b

    def apart(self, block: Block, out: Array) -> None:
        """out = the distance."""
        block = _without_zeros(block)
        x, z = block.vectors()
        if sp.issparse(x):
            a, b = self.common(block, out)
            out *= -2
            out += (a[:, None] + b).astype(out.dtype)
            recompute_cancelled(x, z, a, b, out, self.sparse_distances)
        else:
            self.distances(x, z, out)
        if block.diagonal:
            np.fill_diagonal(out, 0.0)


@dataclass(frozen=True)
class _Nonzero:
    """The same rows, stored without their zeros."""

    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        return sp.csr_array(points.vectors())


def _without_zeros(block: Block) -> Block:
    """The block with sparse rows, if most numbers of both sides are zeros, which add nothing to a common part."""
    mostly_zeros = all(map(_mostly_zeros, (block.pair.x, block.pair.z)))
    return block.view(_Nonzero()) if mostly_zeros else block


def _mostly_zeros(points: Points) -> bool:
    def share() -> bool:
        X = points.vectors()
        return not sp.issparse(X) and np.count_nonzero(X) < costs.NONZERO_SHARE * X.size

    return points.once("mostly zeros", share)


LEAST = Mean(counts.LEAST, tiles.least_tile, tiles.l1_tile, sparse_l1)
"""min(u, v), with the distance ‖x − z‖₁."""


class Common(Histogram):
    """The common part itself."""

    mean: ClassVar[Mean] = LEAST

    def tile(self, block: Block, out: Array) -> None:
        self.mean.common(block, out)

    def distance_tile(self, block: Block, out: Array) -> None:
        self.mean.apart(block, out)

    def distance_size(self, points: Points) -> float:
        return 0.0


class HistogramIntersection(Common):
    """Σₖ min(xₖ, zₖ), the common part of two histograms.

    References
    ----------
    Swain and Ballard 1991; Barla, Odone and Verri 2003.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.HistogramIntersection()([[1.0, 2.0, 0.0], [3.0, 1.0, 1.0]])
    array([[3., 2.],
           [2., 5.]])
    """

    about: ClassVar[About] = About("Σₖ min(xₖ, zₖ)", "Histograms of colours, words, events.", "HistogramIntersection()")

    def enclose(self, x: Any, z: Any) -> Interval:
        return _least(x, z)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of steps: min(u, v) = ∫ 1[t ≤ u] 1[t ≤ v] dt for u, v ≥ 0, summed over columns",
            reference="Barla, Odone and Verri 2003",
        )


class MinMax(Histogram):
    """Σₖ min(xₖ, zₖ)/Σₖ max(xₖ, zₖ): the share of counts in common, in [0, 1]; 1 for two rows of zeros.

    It is (‖x‖₁ + ‖z‖₁ − ‖x − z‖₁)/(‖x‖₁ + ‖z‖₁ + ‖x − z‖₁). On rows of 0 and 1 it is `Tanimoto`.

    References
    ----------
    Ralaivola et al. 2005, Graph kernels for chemical informatics; Ioffe 2010.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.MinMax()([[1.0, 2.0, 0.0], [3.0, 1.0, 1.0]]).round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """

    about: ClassVar[About] = About(
        "Σₖ min(xₖ, zₖ)/Σₖ max(xₖ, zₖ)", "Counts of substructures: molecules, documents.", "MinMax()"
    )

    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    def tile(self, block: Block, out: Array) -> None:
        jaccard_(out, *LEAST.common(block, out))
        np.minimum(out, 1.0, out=out)  # equal rows, up to rounding
        if block.diagonal:
            np.fill_diagonal(out, 1.0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def enclose(self, x: Any, z: Any) -> Interval:
        return jaccard_interval(_least(x, z), _least(x, x), _least(z, z))

    def derivation(self) -> Proof:
        return JACCARD(self, HistogramIntersection().derivation(), condition=EMPTY)


@dataclass(frozen=True)
class _Roots:
    """The square root of every number."""

    transient: ClassVar[bool] = False
    state: ClassVar[None] = None

    def apply(self, points: Points) -> Any:
        X = points.vectors()
        return X.sqrt() if sp.issparse(X) else np.sqrt(X)


class Hellinger(Histogram):
    """Σₖ √(xₖ zₖ), the inner product of square roots (the Bhattacharyya coefficient of two distributions).

    References
    ----------
    Jebara, Kondor and Howard 2004, Probability product kernels.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Hellinger()([[0.25, 0.75], [1.0, 0.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    about: ClassVar[About] = About("Σₖ √(xₖ zₖ)", "Shares that add up to 1, such as compositions.", "Hellinger()")

    tags: ClassVar[Tags] = Tags(nonnegative=True, finite_rank=True)

    def tile(self, block: Block, out: Array) -> None:
        block.view(_Roots()).dot(out)

    def distance_tile(self, block: Block, out: Array) -> None:
        block.view(_Roots()).sqdist(out)

    def distance_size(self, points: Points) -> float:
        return 0.0

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        terms = [exactly(Fraction(u) * Fraction(v)).sqrt() for u, v in zip(x, z)]
        return sum(terms[1:], start=terms[0])

    def derivation(self) -> Proof:
        root = Axiom("⟨u, v⟩", "inner product: phi(u) = u", reference="Bishop 2006, (6.1)")
        return COMPOSITION(self, root, condition="phi takes the square root of every number ≥ 0")

    def features(self, d: Any, *, index: str = "monomials") -> FeatureMap:
        from mercer.features import ComposedMap, IdentityMap

        return ComposedMap(IdentityMap(d), np.sqrt, d)


def _least(x: Any, z: Any) -> Interval:
    from mercer.kernels.validity.interval import exactly

    return exactly(sum((min(Fraction(u), Fraction(v)) for u, v in zip(x, z)), Fraction(0)))


def row_sums(points: Points) -> NDArray[np.float64]:
    """The sum of every row, in float64."""
    return points.once("row sums", lambda: np.asarray(points.vectors().sum(axis=1, dtype=np.float64)).ravel())


def _laid_out(pair: Pair) -> tuple[Any, Any]:
    """Sparse rows of the first side, and sparse columns of the second."""

    def make() -> tuple[Any, Any]:
        x, z = pair.vectors()
        left, right = (
            (side.indptr.astype(np.int64), side.indices.astype(np.int64), side.data.astype(np.float64))
            for side in (x, z)
        )
        return left, counts.by_columns(*right, z.shape[1])

    return pair.once("rows and columns", make)
