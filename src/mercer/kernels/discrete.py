"""Kernels on categories: equal or not, and in how many columns."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.frames import column_names
from mercer.data.missing import refuse_missing
from mercer.data.objects import category_columns
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import SUM, Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block
from mercer.kernels.spaces import Space

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


class Categories(Space):
    """Values that are equal or not: one of three names, or pairs of them for a counterexample."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return [["red", "green", "blue"][i] for i in rng.integers(0, 3, n)]

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        return list(itertools.product("abc", repeat=2))

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        at = int(rng.integers(len(x)))
        return (*x[:at], str(rng.choice(list("abcdef"))), *x[at + 1 :])


CATEGORIES = Categories("categories")


class OnCategories(Kernel):
    """A kernel that depends only on which values are equal, as Python compares them: 1 == 1.0, "1" != 1."""

    space: ClassVar[str] = CATEGORIES

    @property
    def encoding(self) -> Any:
        return "categories"

    def encode(self, X: Any) -> Any:
        columns = category_columns(X)
        for name, column in zip(column_names(X) or range(len(columns)), columns):
            refuse_missing(column, name, "Fill them with a new category.")
        return columns

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        if len(x) != len(z):
            raise InvalidInput(
                "Both data sets must have the same columns",
                got=f"{len(x)} and {len(z)}",
                advice="Select the same columns of both.",
            )
        pairs = [_codes(a, b, same=x is z) for a, b in zip(x, z)]
        left = np.stack([p[0] for p in pairs], axis=1)
        return left, left if x is z else np.stack([p[1] for p in pairs], axis=1)

    @property
    def exact_log(self) -> bool:
        """Shares of columns neither over- nor underflow."""
        return True

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def _matches(self, block: Block, out: Array) -> int:
        """Fill `out` with the number of equal columns, and return how many columns there are."""
        x, z = block.encoded(self)
        _loops.tiles.match_tile(x, z, out)
        return int(x.shape[1])


def _codes(a: Array, b: Array, *, same: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole numbers that are equal exactly if the values are."""
    known: dict[Any, int] = {}
    try:
        left, right = (
            np.fromiter((known.setdefault(v, len(known)) for v in side.tolist()), np.int64, len(side))
            for side in ((a,) * 2 if same else (a, b))
        )
    except TypeError as error:
        raise InvalidInput("Categories must be hashable", got=str(error), advice="Use strings or numbers.") from None
    return left, right


class Delta(OnCategories):
    """1 if x = z (in every column), else 0.

    >>> import mercer as mc
    >>> mc.Delta()(["red", "blue", "red"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    about: ClassVar[About] = About("1 if x = z, else 0", "One category, such as a city or a colour.", "Delta()")

    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    def tile(self, block: Block, out: Array) -> None:
        columns = self._matches(block, out)
        np.equal(out, columns, out=out, casting="unsafe")

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        return exactly(int(x == z))

    def derivation(self) -> Proof:
        return Axiom(self, "inner product of one-hot vectors: phi(x) = e_x")


class Hamming(OnCategories):
    """The share of columns in which x and z are equal.

    >>> import mercer as mc
    >>> mc.Hamming()([["a", 1], ["a", 2]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    about: ClassVar[About] = About(
        "share of columns k with xₖ = zₖ", "Several categories of equal weight.", "Hamming()"
    )

    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    def tile(self, block: Block, out: Array) -> None:
        out /= self._matches(block, out)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = list(zip(x, z)) if isinstance(x, (tuple, list)) else [(x, z)]
        return exactly(sum(a == b for a, b in pairs)) / len(pairs)

    def derivation(self) -> Proof:
        return SUM(self, Delta().proof(), condition="the mean of one Delta per column")
