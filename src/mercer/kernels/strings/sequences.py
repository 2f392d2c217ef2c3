"""Strings and lists of tokens as arrays of symbols, and the space of strings.

A string is the list of its characters, so that "ab" and ["a", "b"] are the same. A symbol has a 64-bit key that does
not depend on the data: the code point of a character, the hash of another token. A data set
numbers its symbols from 0.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.frames import unframed
from mercer.data.keys import keys_of
from mercer.data.missing import is_missing
from mercer.data.molecules import INSTALL, recognised
from mercer.data.objects import objects_of
from mercer.data.ragged import entries, entries_of
from mercer.errors import InvalidInput, MissingValues
from mercer.kernels import costs
from mercer.kernels.base import Similarity
from mercer.kernels.spaces import POOL, Space


def told_apart(kernel: Similarity) -> str:
    """The letters that a kernel tells apart, if it knows only some; such a kernel has an attribute `letters`."""
    return "".join(dict.fromkeys("".join(getattr(leaf, "letters", "") for leaf in kernel.leaves)))


class Strings(Space):
    """Texts."""

    __slots__ = ()

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        letters = list("abcB " + told_apart(kernel))
        return ["".join(rng.choice(letters, size=rng.integers(0, 8))) for _ in range(n)]

    def letters(self, kernel: Similarity) -> str:
        return told_apart(kernel) or super().letters(kernel)

    def pool(self, kernel: Similarity, alphabet: str, length: int, rng: np.random.Generator) -> list[Any]:
        everything = ("".join(c) for n in range(length + 1) for c in itertools.product(alphabet, repeat=n))
        return list(itertools.islice(everything, 4 * POOL))

    def mutated(self, x: Any, kernel: Similarity, alphabet: str, rng: np.random.Generator) -> Any:
        at, letter = int(rng.integers(len(x) + 1)), str(rng.choice(list(alphabet)))
        return x[:at] + ("" if rng.random() < 0.3 else letter) + x[at + int(rng.integers(2)) :]

    def holds(self, x: Any) -> bool:
        return isinstance(x, str)

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Runs of a few symbols; beside them words if the texts have spaces, else runs with gaps."""
        from mercer.kernels.strings.gapped import GappedKmers
        from mercer.kernels.strings.ngrams import NGrams
        from mercer.kernels.strings.spectrum import Spectrum
        from mercer.kernels.strings.subsequence import Subsequence

        if recognised(sorted(set(X))) == "needs RDKit":
            warnings.warn(
                f"These texts look like SMILES, and are compared as texts, since RDKit is not installed. To compare "
                f"molecules, install it: {INSTALL}",
                UserWarning,
                stacklevel=2,
            )
        short: dict[str, Similarity] = {
            "n-grams of 1 to 3 symbols": Spectrum((1, 3)).normalize(),
            "n-grams of 3 to 5 symbols": Spectrum((3, 5)).normalize(),
        }
        if any(" " in x for x in X):
            return short | {"words": NGrams((1, 2), unit="words").normalize()}
        return short | {"gapped": GappedKmers(5, 3).normalize(), "subsequences": Subsequence(3, 0.5).normalize()}


STRINGS = Strings("strings")


@dataclass(frozen=True, eq=False)
class Sequences:
    """Objects as numbers of symbols, one after the other.

    Attributes
    ----------
    codes : array
        The number of each symbol, a position in `symbols`.
    ends : array
        Object i has the codes ends[i] … ends[i + 1] − 1.
    symbols : array
        The keys of the symbols that occur, in increasing order.
    """

    codes: NDArray[np.int32]
    ends: NDArray[np.int64]
    symbols: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def nbytes(self) -> int:
        """The bytes of the three arrays."""
        return self.codes.nbytes + self.ends.nbytes + self.symbols.nbytes

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The length of every object."""
        return np.diff(self.ends)

    def encoded_rows(self, index: Any) -> Sequences:
        """The objects at these positions."""
        at, ends = entries_of(self.ends, index)
        return Sequences(self.codes[at], ends, self.symbols)

    def runs(self, n: int) -> NDArray[np.int64]:
        """Where the runs of n symbols start, object after object."""
        return entries(self.ends[:-1], np.maximum(self.sizes - n + 1, 0))[0]

    def numbered_by(self, symbols: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The codes as positions in another array of keys in increasing order, which holds all symbols."""
        return np.searchsorted(symbols, self.symbols).astype(np.int32)[self.codes]


def sequences_of(X: Any) -> Sequences:
    """The objects of a list, an array or a table with one column, each a string or a list of hashable tokens.

    >>> s = sequences_of(["abba", ["b", "c"]])
    >>> s.codes.tolist(), s.ends.tolist(), s.symbols.tolist()
    ([0, 1, 1, 0, 1, 2], [0, 4, 6], [97, 98, 99])
    """
    objects = objects_of(X, "Strings")
    if all(isinstance(x, str) for x in objects):
        return from_texts(objects)
    known: dict[tuple[type, Any], int] = {}
    parts = [_keys(x, i, known) for i, x in enumerate(objects)]
    ends = np.cumsum([0, *map(len, parts)])
    symbols, codes = np.unique(np.concatenate(parts), return_inverse=True)
    return Sequences(codes.astype(np.int32), ends, symbols)


def from_texts(texts: list[str]) -> Sequences:
    """Texts as sequences of characters."""
    ends = np.cumsum([0, *map(len, texts)])
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(points) < costs.SORTED_CHARACTERS:
        symbols, codes = np.unique(points, return_inverse=True)
        return Sequences(codes.astype(np.int32), ends, symbols.astype(np.uint64))
    there = np.zeros(int(points.max()) + 1, bool)
    there[points] = True
    numbers = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return Sequences(numbers[points], ends, np.flatnonzero(there).astype(np.uint64))


def tokens_of(x: Any, position: int) -> Any:
    """One object as a string, list or tuple, or an error that says where it is."""
    x = unframed(x)  # a cell of a frame may be a column itself
    if isinstance(x, np.ndarray) and x.ndim == 1:
        x = x.tolist()
    if isinstance(x, (str, list, tuple)):
        return x
    missing = is_missing(x)
    raise (MissingValues if missing else InvalidInput)(
        "Every point must be a text or a list of tokens",
        got=f"{'a missing value' if missing else type(x).__name__} at position {position}",
        advice="Use mc.Missing(k) for missing values."
        if missing
        else "Decode bytes by x.decode(), sort a set into a list, and convert anything else by str(x).",
    )


def _keys(x: Any, position: int, known: dict[tuple[type, Any], int]) -> NDArray[np.uint64]:
    tokens = tokens_of(x, position)
    if isinstance(tokens, str):
        return np.frombuffer(tokens.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    keys = keys_of(tokens, "Tokens", position, known)
    letters = [j for j, token in enumerate(tokens) if isinstance(token, str) and len(token) == 1]
    keys[letters] = [ord(tokens[j]) for j in letters]
    return keys


def spelled(x: Any, position: int, start: int, mask: list[bool]) -> str:
    """The symbols of an object from a start on, with dots where the mask hides them: "A..T", or "a . b" for tokens."""
    tokens = tokens_of(x, position)
    window = [tokens[start + i] if shown else "." for i, shown in enumerate(mask)]
    return "".join(window) if isinstance(tokens, str) else " ".join(map(str, window))
