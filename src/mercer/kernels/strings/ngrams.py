"""N-grams of texts: runs of characters or of words, with upper and lower case the same if wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.data.objects import objects_of
from mercer.errors import InvalidInput, MissingValues
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counts
from mercer.kernels.strings.runs import OfRuns, lengths_of, run_counts, run_occurrences
from mercer.kernels.strings.sequences import Sequences, from_texts, sequences_of
from mercer.validation import check_choice, check_flag

WORD = re.compile(r"\w+(?:['’]\w+)*")
"""A word: letters, digits and underscores, with apostrophes inside ("don't" is one word)."""
UNITS = ("characters", "words")


class NGrams(OfRuns):
    """Σ_g #g(s)·#g(t) over all runs g of n characters or words (the spectrum kernel of texts); #g(s) counts g in s.

    `NGrams(3).normalize()` is the cosine of the counts, which does not grow with the length of the texts.
    `NGrams(1, unit="words")` is the bag of words; `mc.TfIdf` weighs its words by how rare they are.

    Parameters
    ----------
    n : int
        The length of the runs, or (shortest, longest).
    fold : bool
        Whether upper and lower case are the same.
    unit : str
        "characters" or "words". A word is a run of letters, digits, underscores and inner apostrophes; everything
        between words is ignored.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.NGrams(2)(["banana", "Ananas", "cherry"])
    array([[9., 8., 0.],
           [8., 9., 0.],
           [0., 0., 5.]])
    >>> sorted(mc.NGrams((1, 2), unit="words").features(["Don't panic!"]).names)
    ["don't", "don't panic", 'panic']
    """

    about: ClassVar[About] = About(
        "Σ_g #g(x)·#g(z), g of n units, cases alike if fold",
        "Texts: runs of characters, or words; NGrams(3).normalize() ignores their length.",
        "NGrams(3)",
        arguments={
            "n": Argument(domain="whole number ≥ 1, or (shortest, longest)"),
            "fold": Argument(domain="True or False"),
            "unit": Argument(domain="words or characters"),
        },
    )

    n: Any = 3
    fold: bool = True
    unit: str = "characters"

    def check(self) -> None:
        shortest, longest = lengths_of(self.n, "n", "NGrams")
        fold, unit = check_flag(self.fold, "fold"), check_choice(self.unit, "unit", UNITS)
        self._set(n=shortest if shortest == longest else (shortest, longest), fold=fold, unit=unit)

    @property
    def lengths(self) -> range:
        """The lengths of the runs that are counted."""
        shortest, longest = self.n if isinstance(self.n, tuple) else (self.n, self.n)
        return range(shortest, longest + 1)

    def objects(self, X: Any) -> list[Any]:
        """The texts, or the lists of their words, in one case if upper and lower are the same."""
        texts = [_text(s, i) for i, s in enumerate(objects_of(X, "Texts"))]
        if self.fold:
            texts = [text.casefold() for text in texts]
        return texts if self.unit == "characters" else list(map(WORD.findall, texts))

    def sequences(self, X: Any) -> Sequences:
        objects = self.objects(X)
        return from_texts(objects) if self.unit == "characters" else sequences_of(objects)

    def counts(self, sequences: Sequences) -> Counts:
        return run_counts(sequences, self.lengths, self.unit)

    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        return run_occurrences(sequences, self.lengths)

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(s)_g = how often g stands in s",
            condition=f"g of {' to '.join(map(str, np.atleast_1d(self.n)))} {self.unit}",
            reference="Leslie, Eskin and Noble 2002",
        )

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit != "characters" else ""
        return f"NGrams({self.n!r}{'' if self.fold else ', fold=False'}{unit})"


def _text(s: Any, position: int) -> str:
    if not isinstance(s, str):
        missing = is_missing(s)
        raise (MissingValues if missing else InvalidInput)(
            "Every point must be a text",
            got=f"{'a missing value' if missing else type(s).__name__} at position {position}",
            advice="Use mc.Missing(k) for missing values." if missing else "Convert it with str(s).",
        )
    return s
