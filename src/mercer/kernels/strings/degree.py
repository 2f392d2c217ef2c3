"""Weighted degree kernels for aligned strings: equal runs at equal places, or nearly equal ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import strings as loops
from mercer.features.counted import mixed
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.counted import Counts
from mercer.kernels.strings.runs import OfRuns, require_memory, table_of
from mercer.kernels.strings.sequences import Sequences
from mercer.validation import check_whole_number

FREQUENCIES = 2**14
"""Points of the circle at which the spectrum of the shifts is factorised; its cepstrum is then exact to rounding."""


class WeightedDegree(OfRuns):
    """Σₙ βₙ Σᵢⱼ p(i − j)·1[the runs of n symbols at place i of s and at place j of t are equal], n = 1 … d.

    βₙ = 2(d − n + 1)/(d(d + 1)), p(0) = 1, and p(i − j) = 1/(2(|i − j| + 1)) for shifts of up to `shift` places. For
    strings that are aligned, such as DNA around a splice site: the place of a motif counts.

    Parameters
    ----------
    d : int
        The length of the longest runs.
    shift : int
        How many places apart equal runs may be; 0 compares equal places only.

    References
    ----------
    Rätsch and Sonnenburg 2004, Accurate splice site detection for Caenorhabditis elegans.
    Rätsch, Sonnenburg and Schölkopf 2005, RASE: recognition of alternatively spliced exons.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.WeightedDegree(2)(["ACGT", "ACTT", "TACG"]).round(3)
    array([[3.667, 2.333, 0.   ],
           [2.333, 3.667, 0.   ],
           [0.   , 0.   , 3.667]])
    >>> mc.WeightedDegree(2, shift=1)(["ACGT", "TACG"]).round(3)
    array([[3.667, 0.667],
           [0.667, 3.667]])
    """

    about: ClassVar[About] = About(
        "Σ_u β·p(i − j), u of up to d symbols, |i − j| ≤ S",
        "Aligned strings, such as DNA around a site: where a motif is counts.",
        "WeightedDegree(3, shift=1)",
        arguments={"d": Argument(domain="whole number ≥ 1"), "shift": Argument("S", "whole number ≥ 0")},
    )

    d: int = 3
    shift: int = 0

    def check(self) -> None:
        d = check_whole_number(self.d, "d", such_as=3)
        self._set(d=d, shift=check_whole_number(self.shift, "shift", least=0, most=FREQUENCIES // 16))

    @property
    def degree_weights(self) -> tuple[float, ...]:
        """β₁ … β_d."""
        return tuple(2 * (self.d - n + 1) / (self.d * (self.d + 1)) for n in range(1, self.d + 1))

    def _runs(self, sequences: Sequences) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.int64]]]:
        """The runs of every length: their keys, and where they start."""
        table = table_of(sequences.symbols, self.d)
        for n in range(1, self.d + 1):
            keys, _ = loops.run_keys(sequences.codes, sequences.ends, range(n, n + 1), table)
            yield n, keys, sequences.runs(n)

    def counts(self, sequences: Sequences) -> Counts:
        filters = shift_filter(self.shift)
        require_memory(len(sequences.codes) * self.d * len(filters), f"The runs of 1 to {self.d} symbols by place")
        rows, keys, values = [], [], []
        for n, of_length, starts in self._runs(sequences):
            row = np.searchsorted(sequences.ends, starts, side="right") - 1
            places = starts - sequences.ends[row]
            for step, weight in enumerate(filters):
                rows.append(row)
                keys.append(of_length + _place(places + step))
                values.append(np.full(len(row), weight * self.degree_weights[n - 1] ** 0.5))
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(sequences)))])
        return Counts.of(np.concatenate(keys)[order], ends, np.concatenate(values)[order])

    def occurrences(self, sequences: Sequences) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], list[bool]]]:
        for n, keys, starts in self._runs(sequences):
            row = np.searchsorted(sequences.ends, starts, side="right") - 1
            for step in range(self.shift + 1):
                yield keys + _place(starts - sequences.ends[row] + step), starts, [True] * n

    def name(self, text: str, offset: int) -> str:
        return f"{text} at {offset}"

    def enclose(self, x: Any, z: Any) -> Any:
        from mercer.kernels.strings.sequences import sequences_of
        from mercer.kernels.validity.interval import exactly

        pair = sequences_of([x, z])
        s, t = (pair.codes[pair.ends[i] : pair.ends[i + 1]].tolist() for i in (0, 1))
        total = exactly(0)
        for n in range(1, self.d + 1):
            for i in range(len(s) - n + 1):
                for j in range(max(0, i - self.shift), min(i + self.shift, len(t) - n) + 1):
                    if s[i : i + n] == t[j : j + n]:
                        total = total + exactly(2 * (self.d - n + 1)) / (1 if i == j else 2 * (abs(i - j) + 1))
        return total / (self.d * (self.d + 1))

    def derivation(self) -> Proof:
        if not self.shift:
            statement = "inner product: phi(s)_(n, i, u) = √βₙ·1[u stands at place i of s]"
            return Axiom(self, statement, condition=f"n ≤ {self.d}", reference="Rätsch and Sonnenburg 2004")
        return Axiom(
            self,
            "1[u = v] times p(i − j), summed over all runs u at place i of s and v at place j of t: p is positive "
            "definite, because ½ + Σ cos(nω)/(n + 1) ≥ 0 (Rogosinski and Szegő 1928)",
            condition=f"runs of up to {self.d} symbols, shifts of up to {self.shift} places",
            reference="Rätsch, Sonnenburg and Schölkopf 2005",
        )

    def __repr__(self) -> str:
        return f"WeightedDegree({self.d}{f', shift={self.shift}' if self.shift else ''})"


def _place(places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A random number for each place of a string."""
    return mixed(places.astype(np.uint64) + np.uint64(1 << 40))


@lru_cache(maxsize=16)
def shift_filter(shift: int) -> tuple[float, ...]:
    """q₀ … q_S with Σᵢ qᵢ qᵢ₊ₙ = p(n): the spectral factor of the weights of shifts (Fejér and Riesz, by the cepstrum).

    >>> q = np.array(shift_filter(2))
    >>> np.correlate(q, q, "full")[2:].round(12)
    array([1.        , 0.25      , 0.16666667])
    """
    if not shift:
        return (1.0,)
    steps = np.arange(1, shift + 1)
    spectrum = np.zeros(FREQUENCIES)
    spectrum[0], spectrum[steps], spectrum[-steps] = 1.0, 0.5 / (steps + 1), 0.5 / (steps + 1)
    cepstrum = np.fft.ifft(np.log(np.fft.fft(spectrum).real)).real
    half = np.zeros(FREQUENCIES)
    half[0], half[1 : FREQUENCIES // 2] = cepstrum[0] / 2, cepstrum[1 : FREQUENCIES // 2]
    factor = np.fft.ifft(np.exp(np.fft.fft(half))).real[: shift + 1]
    return tuple(factor.tolist())
