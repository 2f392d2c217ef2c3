"""Runs of symbols, counted: the shared part of spectrum kernels, n-grams, gapped and mismatching k-mers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import strings as loops
from mercer.data.objects import objects_of
from mercer.errors import InvalidInput
from mercer.features.counted import mixed
from mercer.kernels.counted import Counted, Counts
from mercer.kernels.strings.sequences import STRINGS, Sequences, sequences_of, spelled
from mercer.memory import budget, within
from mercer.validation import is_whole_number

KEY_BYTES = 32
"""Bytes that a run takes while it is counted: its key, sorted and merged, and its count."""


class OfRuns(Counted):
    """A kernel that counts runs of symbols, or parts of windows; a leaf says which."""

    space: ClassVar[str] = STRINGS

    def encode(self, X: Any) -> Counts:
        return self.counts(self.sequences(X))

    def sequences(self, X: Any) -> Sequences:
        """The objects as sequences of symbols."""
        return sequences_of(X)

    @abstractmethod
    def counts(self, sequences: Sequences) -> Counts:
        """The features of every sequence."""

    @abstractmethod
    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        """Groups of features as they occur: their keys, where each starts, and which places from there on count."""

    def spelled(self, X: Any, keys: NDArray[np.uint64]) -> tuple[str, ...]:
        sequences, objects = self.sequences(X), self.objects(X)
        names = [""] * len(keys)
        for occurring, starts, mask in self.occurrences(sequences):
            distinct, first = np.unique(occurring, return_index=True)
            at = np.searchsorted(keys, distinct)
            rows = np.searchsorted(sequences.ends, starts[first], side="right") - 1
            offsets = starts[first] - sequences.ends[rows]
            for j, row, offset in zip(at.tolist(), rows.tolist(), offsets.tolist()):
                names[j] = self.name(spelled(objects[row], row, offset, mask), offset)
        return tuple(names)

    def objects(self, X: Any) -> list[Any]:
        """The objects whose symbols are named."""
        return objects_of(X, "Strings")

    def name(self, text: str, offset: int) -> str:
        """The name of a feature that is spelled in this way, and occurs at this place of a sequence."""
        return text


def table_of(symbols: NDArray[np.uint64], longest: int) -> NDArray[np.uint64]:
    """A random number for each place of a run and each symbol, the same in every data set."""
    places = mixed(np.arange(1, longest + 1, dtype=np.uint64))
    return mixed(places[:, None] ^ mixed(symbols ^ np.uint64(0x5851F42D4C957F2D)))


def require_memory(keys: float, what: str) -> None:
    """Raise an error if the keys would not fit the memory budget."""
    within(int(keys) * KEY_BYTES, budget(), what, "Count shorter runs, or cut the texts into parts.")


def run_counts(sequences: Sequences, lengths: range, what: str = "symbols", weights: tuple[float, ...] = ()) -> Counts:
    """How often each run of these lengths occurs, times the root of the weight of its length."""
    words = " to ".join(map(str, dict.fromkeys((lengths.start, lengths.stop - 1))))
    sizes = sequences.sizes
    lengths = range(lengths.start, min(lengths.stop, max(int(sizes.max(initial=0)) + 1, lengths.start + 1)))
    # Σ (size − n + 1) over the lengths n ≤ size.
    last = np.minimum(sizes, lengths.stop - 1)
    number = np.maximum(last - lengths.start + 1, 0)
    total = float((number * (sizes + 1.0) - number * (lengths.start + last) / 2).sum())
    require_memory(total, f"The runs of {words} {what} of these texts")
    keys, ends = loops.run_keys(sequences.codes, sequences.ends, lengths, table_of(sequences.symbols, lengths.stop - 1))
    if not weights or len(set(weights)) == 1:
        counts = Counts.of(keys, ends)
        return counts if not weights else Counts(counts.keys, counts.values * weights[0] ** 0.5, counts.ends)
    numbers = np.maximum(sizes[:, None] - (np.array(lengths) - 1), 0).ravel()
    roots = np.sqrt(np.array(weights[: len(lengths)]))
    return Counts.of(keys, ends, np.repeat(np.tile(roots, len(sizes)), numbers))


def run_occurrences(
    sequences: Sequences, lengths: range
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
    """The runs of every length as they occur (see `OfRuns.occurrences`)."""
    longest = min(lengths.stop - 1, int(sequences.sizes.max(initial=0)))
    table = table_of(sequences.symbols, max(longest, 1))
    for n in range(lengths.start, longest + 1):
        keys, _ = loops.run_keys(sequences.codes, sequences.ends, range(n, n + 1), table)
        yield keys, sequences.runs(n), [True] * n


def lengths_of(value: Any, name: str, example: str) -> tuple[int, int]:
    """A length, or the shortest and the longest, checked."""
    ends = value if isinstance(value, (tuple, list)) else (value, value)
    if len(ends) != 2 or not all(map(is_whole_number, ends)) or not 1 <= ends[0] <= ends[1]:
        raise InvalidInput(
            f"`{name}` must be a whole number ≥ 1, or the shortest and the longest length",
            got=repr(value),
            advice=f"Pass {example}(3), or {example}((1, 3)).",
        )
    return int(ends[0]), int(ends[1])
