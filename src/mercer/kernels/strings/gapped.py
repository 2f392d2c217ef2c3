"""Inexact runs: k-mers with gaps, and k-mers with mismatches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import strings as loops
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counts
from mercer.kernels.strings.runs import OfRuns, require_memory, table_of
from mercer.kernels.strings.sequences import Sequences, sequences_of
from mercer.validation import check_whole_number

MOST_NAMES = 10**6
"""Features of `Mismatch` have names if there are at most this many k-mers over the alphabet."""


class GappedKmers(OfRuns):
    """Σ_u #u(s)·#u(t) over all u that keep k of g neighbouring symbols: how many gapped k-mers two strings share.

    A window of g symbols is looked at through every mask that keeps k of them, "AC.G." for g = 5 and k = 3. Equally, it
    is Σ C(g − d, k) over all pairs of windows, where d is the number of places in which they differ. With k = g it is
    the spectrum kernel.

    Parameters
    ----------
    g : int
        The length of a window. Strings that are shorter have no features.
    k : int
        How many of its symbols count, from 1 to g.

    References
    ----------
    Leslie and Kuang 2004, Fast string kernels using inexact matching for protein sequences.
    Ghandi, Lee, Mohammad-Noori and Beer 2014, Enhanced regulatory sequence prediction using gapped k-mer features.

    Examples
    --------
    >>> import mercer as mc
    >>> k = mc.GappedKmers(3, 2)
    >>> k(["ACGT", "AGGT"])
    array([[6., 2.],
           [2., 6.]])
    >>> sorted(k.features(["ACG"]).names)
    ['.CG', 'A.G', 'AC.']
    """

    about: ClassVar[About] = About(
        "Σ_u #u(x)·#u(z), u keeps k of g neighbouring symbols",
        "DNA and proteins whose motifs have variable places.",
        "GappedKmers(4, 3)",
        arguments={"g": Argument(domain="whole number ≥ k"), "k": Argument(domain="whole number from 1 to g")},
    )

    g: int = 6
    k: int = 4

    def check(self) -> None:
        g = check_whole_number(self.g, "g", such_as=6)
        self._set(g=g, k=check_whole_number(self.k, "k", most=g))

    def _keys(self, sequences: Sequences) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
        windows = int(np.maximum(sequences.sizes - self.g + 1, 0).sum())
        number = math.comb(self.g, self.k)
        require_memory(number * max(windows, self.g), f"The windows of {self.g} symbols, through {number:,} masks,")
        masks = np.zeros((number, self.g), bool)
        for mask, places in zip(masks, itertools.combinations(range(self.g), self.k)):
            mask[list(places)] = True
        table = table_of(sequences.symbols, self.g)
        return *loops.masked_keys(sequences.codes, sequences.ends, masks, table), masks

    def counts(self, sequences: Sequences) -> Counts:
        keys, ends, _ = self._keys(sequences)
        return Counts.of(keys, ends)

    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        keys, _, masks = self._keys(sequences)
        starts = sequences.runs(self.g)
        for mask, of_mask in zip(masks, keys.reshape(-1, len(masks)).T):
            yield of_mask, starts, mask.tolist()

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(s)_u = how often u occurs in s, with any symbols in its gaps",
            condition=f"u keeps {self.k} of {self.g} neighbouring symbols",
            reference="Leslie and Kuang 2004",
        )

    def __repr__(self) -> str:
        return f"GappedKmers({self.g}, {self.k})"


class Mismatch(OfRuns):
    """Σ_α #ₘα(s)·#ₘα(t) over all words α of k letters; #ₘα(s) counts the runs of s that differ from α in ≤ m places.

    Every run counts for all words in its neighbourhood, Σᵢ C(k, i)·(a − 1)ⁱ of them for i ≤ m and a letters: exact, but
    expensive for m > 2 or many letters. A symbol outside the alphabet differs from every letter.

    Parameters
    ----------
    k : int
        The length of the words.
    m : int
        The number of mismatches, from 0 to k.
    alphabet : str
        The letters of the words; more letters make the neighbourhoods larger.

    References
    ----------
    Leslie, Eskin, Cohen, Weston and Noble 2004, Mismatch string kernels for discriminative protein classification.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Mismatch(3, 1)(["ACG", "ACT", "TTT"])       # 10 words are within 1 of ACG, 4 of them within 1 of ACT
    array([[10.,  4.,  0.],
           [ 4., 10.,  2.],
           [ 0.,  2., 10.]])
    """

    about: ClassVar[About] = About(
        "Σ_u #u(x)·#u(z), u of k letters of A, up to m differ",
        "DNA whose k-mers vary: Mismatch(5, 1).normalize(); name the letters of A.",
        "Mismatch(3, 1, alphabet='abc')",
        arguments={
            "k": Argument(domain="whole number ≥ 1"),
            "m": Argument(domain="whole number from 0 to k"),
            "alphabet": Argument("A", "text of different letters"),
        },
    )

    k: int = 3
    m: int = 1
    alphabet: str = "ACGT"

    @property
    def letters(self) -> str:
        """The letters that it tells apart."""
        return self.alphabet

    def check(self) -> None:
        k = check_whole_number(self.k, "k", such_as=5)
        m = check_whole_number(self.m, "m", least=0, most=k)
        letters = self.alphabet
        if not isinstance(letters, str) or not letters or len(set(letters)) < len(letters):
            raise InvalidInput(
                "`alphabet` must be a text of different letters", got=repr(letters), advice="Pass alphabet='ACGT'."
            )
        self._set(k=k, m=m)

    def counts(self, sequences: Sequences) -> Counts:
        k, a = self.k, len(self.alphabet)
        neighbours = sum(math.comb(k, i) * a**i for i in range(self.m + 1))
        number = np.maximum(sequences.sizes - k + 1, 0)
        runs = int(number.sum())
        require_memory(runs * neighbours, f"The words within {self.m} of the runs of {k} symbols")
        codes = sequences.codes[sequences.runs(k)[:, None] + np.arange(k)]
        letters = np.array(list(map(ord, self.alphabet)), np.uint64)
        own, other = table_of(sequences.symbols, k), table_of(letters, k)
        there = np.isin(sequences.symbols, letters)[codes]
        terms = own[np.arange(k), codes]
        keys = np.empty((runs, neighbours), np.uint64)
        near = np.empty((runs, neighbours), bool)
        at = 0
        for i in range(self.m + 1):
            for places in itertools.combinations(range(k), i):
                rest = [j for j in range(k) if j not in places]
                kept, known = terms[:, rest].sum(axis=1), there[:, rest].all(axis=1)
                for word in itertools.product(range(a), repeat=i):
                    keys[:, at], near[:, at] = kept, known
                    for j, letter in zip(places, word):
                        keys[:, at] += other[j, letter]
                        near[:, at] &= terms[:, j] != other[j, letter]
                    at += 1
        ends = np.concatenate([[0], np.cumsum(near.sum(axis=1))])[np.concatenate([[0], np.cumsum(number)])]
        return Counts.of(keys[near], ends)

    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        return iter(())

    def spelled(self, X: Any, keys: NDArray[np.uint64]) -> tuple[str, ...]:
        if len(self.alphabet) ** self.k > MOST_NAMES:
            return ()
        words = list(map("".join, itertools.product(self.alphabet, repeat=self.k)))
        codes = sequences_of(words)
        own = table_of(codes.symbols, self.k)[np.arange(self.k), codes.codes.reshape(-1, self.k)].sum(axis=1)
        names = dict(zip(own.tolist(), words))
        return tuple(names[key] for key in keys.tolist())

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "inner product of counts: phi(s)_α = how many runs of s differ from the word α in at most m places",
            condition=f"α of {self.k} letters of {self.alphabet!r}, m = {self.m}",
            reference="Leslie et al. 2004",
        )

    def __repr__(self) -> str:
        alphabet = f", alphabet={self.alphabet!r}" if self.alphabet != "ACGT" else ""
        return f"Mismatch({self.k}, {self.m}{alphabet})"
