"""Short texts: how many runs of characters two strings have in common."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.data.objects import objects_of
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput, MissingValues
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, product
from mercer.kernels.spaces import POOL, Space
from mercer.memory import budget, within

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


RUN_BYTES = 150
"""Bytes that a run takes in a dictionary of counts, beside its characters."""


class Strings(Space):
    """Texts."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        return ["".join(rng.choice(list("abcB "), size=rng.integers(0, 8))) for _ in range(n)]

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        everything = ("".join(c) for n in range(length + 1) for c in itertools.product(alphabet, repeat=n))
        return list(itertools.islice(everything, 4 * POOL))

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        at, letter = int(rng.integers(len(x) + 1)), str(rng.choice(list(alphabet)))
        return x[:at] + ("" if rng.random() < 0.3 else letter) + x[at + int(rng.integers(2)) :]


STRINGS = Strings("strings")


class NGrams(Kernel):
    """Σ_g #g(s)·#g(t) over all runs g of n characters (the spectrum kernel); #g(s) counts g in s.

    `NGrams(3).normalize()` is the cosine of the counts, which does not grow with the length of the texts.

    Parameters
    ----------
    n : the length of the runs, or (shortest, longest).
    fold : whether upper and lower case are the same.

    >>> import mercer as mc
    >>> mc.NGrams(2)(["banana", "Ananas", "cherry"])
    array([[9., 8., 0.],
           [8., 9., 0.],
           [0., 0., 5.]])
    """

    about: ClassVar[About] = About(
        "Σ_g #g(x)·#g(z), g of n characters, cases alike if fold",
        "Short texts; NGrams(3).normalize() ignores their length.",
        "NGrams(3)",
        arguments={
            "n": Argument(domain="whole number ≥ 1, or (shortest, longest)"),
            "fold": Argument(domain="True or False"),
        },
    )

    n: Any = 3
    fold: bool = True
    space: ClassVar[str] = STRINGS
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def check(self) -> None:
        ends = self.n if isinstance(self.n, (tuple, list)) else (self.n, self.n)
        whole = len(ends) == 2 and all(isinstance(e, (int, np.integer)) and not isinstance(e, bool) for e in ends)
        if not whole or not 1 <= ends[0] <= ends[1]:
            raise InvalidInput(
                "`n` must be a whole number ≥ 1, or the shortest and the longest length",
                got=repr(self.n),
                advice="Pass NGrams(3), or NGrams((1, 3)).",
            )
        if not isinstance(self.fold, (bool, np.bool_)):
            raise InvalidInput("`fold` must be True or False", got=repr(self.fold), advice="Pass fold=True.")
        shortest, longest = map(int, ends)
        self._set(n=shortest if shortest == longest else (shortest, longest), fold=bool(self.fold))

    @property
    def lengths(self) -> range:
        """The lengths of the runs that are counted."""
        shortest, longest = self.n if isinstance(self.n, tuple) else (self.n, self.n)
        return range(shortest, longest + 1)

    def encode(self, X: Any) -> Any:
        texts = [_text(s, i) for i, s in enumerate(objects_of(X, "Texts"))]
        within(
            sum(self._bytes(len(text)) for text in texts),
            budget(),
            f"The runs of {' to '.join(map(str, np.atleast_1d(self.n)))} characters of these texts",
            "Count shorter runs, or cut the texts into parts.",
        )
        return [self._counts(text) for text in texts]

    def _bytes(self, length: int) -> int:
        """The most bytes that the runs of a text can take: each its characters, and an entry of a dictionary."""
        first, last = self.lengths.start, min(self.lengths.stop - 1, length)
        runs = max(0, last - first + 1)
        # Σ (length − n + 1) over n = first … last, and the same times n.
        ones, squares = runs * (first + last) // 2, _squares(last) - _squares(min(first, last + 1) - 1)
        number = runs * (length + 1) - ones
        return RUN_BYTES * number + (length + 1) * ones - squares

    def _counts(self, text: str) -> Counter[str]:
        text = text.casefold() if self.fold else text
        lengths = range(self.lengths.start, min(self.lengths.stop, len(text) + 1))
        return Counter(text[i : i + n] for n in lengths for i in range(len(text) - n + 1))

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        return aligned(x, z, _matrix)

    def tile(self, block: Block, out: Array) -> None:
        product(*block.encoded(self), out)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.array([sum(c * c for c in counts.values()) for counts in points.encoded(self)], dtype=np.float64)

    def distance_size(self, points: Points) -> float:
        """Whole numbers cancel without rounding."""
        return 0.0

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        a, b = self._counts(_text(x, 0)), self._counts(_text(z, 0))
        return exactly(sum(count * b[g] for g, count in a.items()))

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(s)_g = how often g stands in s",
            condition=f"g of {' to '.join(map(str, np.atleast_1d(self.n)))} characters",
            reference="Leslie, Eskin and Noble 2002",
        )

    def __repr__(self) -> str:
        return f"NGrams({self.n!r}{'' if self.fold else ', fold=False'})"


def aligned(x: Any, z: Any, matrix: Callable[[Any, dict[Any, int]], sp.csr_array]) -> tuple[Any, Any]:
    """Both sides as sparse matrices over one vocabulary, to which `matrix` adds its words."""
    vocabulary: dict[Any, int] = {}
    left = matrix(x, vocabulary)
    right = left if x is z else matrix(z, vocabulary)
    width = max(len(vocabulary), 1)
    left.resize((len(x), width))
    right.resize((len(z), width))
    return left, right


def _squares(n: int) -> int:
    """1² + … + n²."""
    return n * (n + 1) * (2 * n + 1) // 6


def _text(s: Any, position: int) -> str:
    if not isinstance(s, str):
        missing = is_missing(s)
        raise (MissingValues if missing else InvalidInput)(
            "Every point must be a text",
            got=f"{'a missing value' if missing else type(s).__name__} at position {position}",
            advice="Use mc.Missing(k) for missing values." if missing else "Convert it with str(s).",
        )
    return s


def _matrix(counts: list[Counter[str]], vocabulary: dict[str, int]) -> sp.csr_array:
    columns = [vocabulary.setdefault(g, len(vocabulary)) for c in counts for g in c]
    values = np.fromiter((v for c in counts for v in c.values()), dtype=np.float64, count=len(columns))
    ends = np.cumsum([0, *map(len, counts)])
    return sp.csr_array((values, columns, ends), shape=(len(counts), max(len(vocabulary), 1)))
