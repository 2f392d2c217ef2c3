"""The spectrum kernel: how many runs of k symbols two strings have in common."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counts
from mercer.kernels.strings.runs import OfRuns, lengths_of, run_counts, run_occurrences
from mercer.kernels.strings.sequences import Sequences
from mercer.validation import is_number

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


class Spectrum(OfRuns):
    """Σ_g w_|g|·#g(s)·#g(t) over all runs g of k symbols; #g(s) counts g in s. On texts, DNA, proteins, token lists.

    `Spectrum(3).normalize()` is the cosine of the counts, which does not grow with the length of the strings. Upper
    and lower case differ (`NGrams` can ignore case, and can count words).

    Parameters
    ----------
    k : int
        The length of the runs, or (shortest, longest) for runs of several lengths (the blended spectrum).
    weights
        w ≥ 0, one for each length; 1 if none are given.

    References
    ----------
    Leslie, Eskin and Noble 2002, The spectrum kernel: a string kernel for SVM protein classification.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Spectrum(2)(["GATTACA", "ATTAC", ["A", "T", "T"]])
    array([[6., 4., 2.],
           [4., 4., 2.],
           [2., 2., 2.]])
    >>> sorted(mc.Spectrum((1, 2)).features(["GATA"]).names)
    ['A', 'AT', 'G', 'GA', 'T', 'TA']
    """

    about: ClassVar[About] = About(
        "Σ_g w·#g(x)·#g(z), g of k symbols",
        "DNA, proteins, texts, token lists; Spectrum(3).normalize() ignores their length.",
        "Spectrum(3)",
        arguments={
            "k": Argument(domain="whole number ≥ 1, or (shortest, longest)"),
            "weights": Argument("w", "numbers ≥ 0, one per length"),
        },
    )

    k: Any = 3
    weights: Any = ()

    def check(self) -> None:
        shortest, longest = lengths_of(self.k, "k", "Spectrum")
        weights = self.weights.tolist() if isinstance(self.weights, np.ndarray) else self.weights
        number = longest - shortest + 1
        right = isinstance(weights, (tuple, list)) and len(weights) in (0, number)
        if not right or not all(is_number(w) and 0 <= w < np.inf for w in weights) or (weights and not any(weights)):
            raise InvalidInput(
                f"`weights` of Spectrum must be {number} number{'s' * (number > 1)} ≥ 0, one per length, not all 0",
                got=repr(self.weights),
                advice="Pass, for example, Spectrum((1, 3), weights=(1.0, 2.0, 4.0)), or leave them out.",
            )
        self._set(k=shortest if shortest == longest else (shortest, longest), weights=tuple(map(float, weights)))

    @property
    def lengths(self) -> range:
        """The lengths of the runs that are counted."""
        shortest, longest = self.k if isinstance(self.k, tuple) else (self.k, self.k)
        return range(shortest, longest + 1)

    def counts(self, sequences: Sequences) -> Counts:
        return run_counts(sequences, self.lengths, weights=self.weights)

    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        return run_occurrences(sequences, self.lengths)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        if not self.weights:
            return super().enclose(x, z)
        parts = ((Fraction(w), Spectrum(n).enclose(x, z)) for w, n in zip(self.weights, self.lengths))
        return sum((part * w for w, part in parts), exactly(0))

    def derivation(self) -> Proof:
        weighted = f", times √w for w = {list(self.weights)} by length" if self.weights else ""
        return Axiom(
            self,
            f"inner product of counts: phi(s)_g = how often g stands in s{weighted}",
            condition=f"g of {' to '.join(map(str, np.atleast_1d(self.k)))} symbols",
            reference="Leslie, Eskin and Noble 2002",
        )

    def __repr__(self) -> str:
        return f"Spectrum({self.k!r}{f', weights={self.weights!r}' if self.weights else ''})"
