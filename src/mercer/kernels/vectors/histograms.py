"""Kernels on histograms, which are rows of numbers ≥ 0: counts of words, colours or substructures.

Each compares the rows column by column. With a = Σ xₖ and b = Σ zₖ, Σ min(xₖ, zₖ) is (a + b − ‖x − z‖₁)/2, and
Σ 2xₖzₖ/(xₖ + zₖ) is (a + b − χ²)/2 with χ² = Σ (xₖ − zₖ)²/(xₖ + zₖ): both are computed from these distances.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import _loops
from mercer._loops import counts
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import COMPOSITION, Axiom, Proof, Rule
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.ratios import EMPTY, JACCARD, jaccard_
from mercer.kernels.ratios import jaccard as jaccard_interval
from mercer.kernels.spaces import Space, dimension

if TYPE_CHECKING:
    from mercer.features.base import FeatureMap
    from mercer.kernels.validity.interval import Interval

FARTHEST = 1e4
"""χ²/2σ² beyond this gives the value 0 in any case."""


class Histograms(Space):
    """Rows of numbers ≥ 0."""

    __slots__ = ()

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
    """What kernels on histograms share: rows of numbers ≥ 0, their sums, and distances between them."""

    space: ClassVar[str] = HISTOGRAMS
    tags: ClassVar[Tags] = Tags(nonnegative=True)
    common: ClassVar[int] = counts.LEAST
    """The term of the common part of two histograms, for sparse ones."""

    @abstractmethod
    def derivation(self) -> Proof:
        """Why it is a kernel."""

    def touch(self, points: Points) -> None:
        super().touch(points)
        require_nonnegative(points)

    def _apart(self, block: Block, out: Array) -> None:
        """out = ‖x − z‖₁, or χ², depending on `common`."""
        x, z = block.pair.vectors()
        if sp.issparse(x):
            a, b = sums(block.pair)
            first = block.rows.start, block.cols.start
            counts.add_products(*_laid_out(block.pair), first, out, fresh=True, term=self.common)
            out *= -2
            out += (a[block.rows, None] + b[block.cols]).astype(out.dtype)
            np.maximum(out, 0.0, out=out)
        elif self.common == counts.LEAST:
            block.l1(out)
        else:
            _loops.tiles.chi_squared_tile(x[block.rows], z[block.cols], out)
        if block.diagonal:
            np.fill_diagonal(out, 0.0)

    def _common(self, block: Block, out: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """out = the common part; the sums of the rows and columns of the block."""
        self._apart(block, out)
        a, b = sums(block.pair)
        a, b = a[block.rows], b[block.cols]
        np.subtract(a[:, None] + b, out, out=out, casting="same_kind")
        out *= 0.5
        np.maximum(out, 0.0, out=out)
        return a, b

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return row_sums(points)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)


class _Common(Histogram):
    """The common part itself, of which the distance is the squared distance in feature space."""

    def tile(self, block: Block, out: Array) -> None:
        self._common(block, out)

    def distance_tile(self, block: Block, out: Array) -> None:
        self._apart(block, out)

    def distance_size(self, points: Points) -> float:
        return 0.0 if not sp.issparse(points.vectors()) else super().distance_size(points)


class HistogramIntersection(_Common):
    """Σₖ min(xₖ, zₖ), the common part of two histograms.

    References
    ----------
    Swain and Ballard 1991; Barla, Odone and Verri 2003.

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
        jaccard_(out, *self._common(block, out))
        if block.diagonal:
            np.fill_diagonal(out, 1.0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def enclose(self, x: Any, z: Any) -> Interval:
        return jaccard_interval(_least(x, z), _least(x, x), _least(z, z))

    def derivation(self) -> Proof:
        return JACCARD(self, HistogramIntersection().derivation(), condition=EMPTY)


class AdditiveChiSquared(_Common):
    """Σₖ 2xₖzₖ/(xₖ + zₖ), the sum of harmonic means; a column that is 0 in both rows adds 0.

    References
    ----------
    Vedaldi and Zisserman 2012, Efficient additive kernels via explicit feature maps.

    >>> import mercer as mc
    >>> mc.AdditiveChiSquared()([[1.0, 2.0, 0.0], [3.0, 2.0, 1.0]])
    array([[3. , 3.5],
           [3.5, 6. ]])
    """

    about: ClassVar[About] = About(
        "Σₖ 2xₖzₖ/(xₖ + zₖ)", "Histograms in which rare bins matter as much as full ones.", "AdditiveChiSquared()"
    )

    common: ClassVar[int] = counts.HARMONIC

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = [(Fraction(u), Fraction(v)) for u, v in zip(x, z)]
        return exactly(sum((2 * u * v / (u + v) for u, v in pairs if u + v), Fraction(0)))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "2uv/(u + v) = 2∫ u e^(−tu) v e^(−tv) dt over t > 0, for u, v ≥ 0, summed over columns",
            reference="Vedaldi and Zisserman 2012",
        )


SCHOENBERG = Rule("exp(−‖phi(x) − phi(z)‖²/2σ²) of the distance in the feature space of a kernel", "Schoenberg 1938")


class ChiSquared(Histogram):
    """exp(−χ²/2σ²) with χ² = Σₖ (xₖ − zₖ)²/(xₖ + zₖ); a column that is 0 in both rows adds 0.

    Parameters
    ----------
    sigma : the width; scikit-learn's `chi2_kernel` with gamma is σ = 1/√(2·gamma).

    References
    ----------
    Vedaldi and Zisserman 2012, Efficient additive kernels via explicit feature maps.

    >>> import mercer as mc
    >>> mc.ChiSquared(1.0)([[1.0, 2.0, 0.0], [3.0, 2.0, 1.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    about: ClassVar[About] = About(
        "exp(−Σₖ (xₖ − zₖ)²/(xₖ + zₖ)/2σ²)", "Histograms of words and of visual features.", "ChiSquared(sigma=1.0)"
    )

    sigma: float = positive(1.0)
    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)
    common: ClassVar[int] = counts.HARMONIC

    @property
    def exact_log(self) -> bool:
        return True

    def log_tile(self, block: Block, out: Array) -> None:
        self._apart(block, out)
        out *= out.dtype.type(-0.5 / self.sigma**2)

    def tile(self, block: Block, out: Array) -> None:
        self.log_tile(block, out)
        _loops.tiles.exp_(out)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        if not len(self.theta):
            return np.empty(0)
        tile = block.scratch()
        self.log_tile(block, tile)
        far = np.minimum(-tile.astype(np.float64), FARTHEST)
        return np.array([2.0 * np.vdot(G, far * np.exp(-far))])

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = [(Fraction(u), Fraction(v)) for u, v in zip(x, z)]
        apart = sum(((u - v) ** 2 / (u + v) for u, v in pairs if u + v), Fraction(0))
        return (-exactly(apart / (2 * Fraction(self.sigma) ** 2))).exp()

    def derivation(self) -> Proof:
        condition = f"σ = {self.sigma:g} > 0; χ² is the squared distance of the premise"
        return SCHOENBERG(self, AdditiveChiSquared().derivation(), condition=condition)


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


def sums(pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sums of the rows on both sides."""
    a = row_sums(pair.x)
    return a, a if pair.same else row_sums(pair.z)


def _laid_out(pair: Pair) -> tuple[Any, Any]:
    """Sparse rows of the first side, and sparse columns of the second."""

    def make() -> tuple[Any, Any]:
        x, z = pair.vectors()
        columns = sp.csc_array(z)
        columns.sort_indices()
        left, right = (
            (side.indptr.astype(np.int64), side.indices.astype(np.int64), side.data.astype(np.float64))
            for side in (x, columns)
        )
        return left, right

    return pair.once("rows and columns", make)
