"""Maps of time series: series to series (time, a base point, lead and lag), and the signature as explicit features.

The first three are for `k.after(phi)`: they add what a kernel of paths does not see by itself. Each takes a data set of
series and returns a list of arrays of shape (T', c').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import memory
from mercer.data.series import as_series
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom
from mercer.threads import spans
from mercer.validation import check_number, check_whole_number

LOST = (
    "Choose a lower level, or make the series smaller or smoother: the parts of paths that go far and come back cancel."
)
"""The advice about series whose signatures lose their digits."""


def base_point(X: Any) -> list[Array]:
    """Every series, started at the origin: paths then differ if one is the other moved by a constant.

    >>> base_point([[3.0, 4.0]])[0].tolist()
    [[0.0], [3.0], [4.0]]
    """
    series = as_series(X)
    return [np.concatenate([np.zeros_like(series[i][:1]), series[i]]) for i in range(len(series))]


def lead_lag(X: Any) -> list[Array]:
    """Every series beside its own past: (x₁, x₁), (x₂, x₁), (x₂, x₂), (x₃, x₂), …, with twice the channels.

    The areas between the two copies are quadratic variations, which the path alone does not show.

    References
    ----------
    I. Chevyrev and A. Kormilitzin, A primer on the signature method in machine learning, 2016.

    Examples
    --------
    >>> lead_lag([[1.0, 5.0]])[0].tolist()
    [[1.0, 1.0], [5.0, 1.0], [5.0, 5.0]]
    """
    series = as_series(X)
    twice = [np.repeat(series[i], 2, axis=0) for i in range(len(series))]
    return [np.concatenate([x[1:], x[:-1]], axis=1) for x in twice]


@dataclass(frozen=True)
class TimeMap:
    """Every series with a channel more: scale · t, where t runs evenly from 0 to 1. See `add_time`."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_number(self.scale, "scale", above=0.0))

    def transform(self, X: Any) -> list[Array]:
        """The series with their time."""
        series = as_series(X)
        timed = []
        for i in range(len(series)):
            time = np.linspace(0.0, self.scale, len(series[i]), dtype=series.dtype)
            timed.append(np.column_stack([series[i], time]))
        return timed

    __call__ = transform

    def __repr__(self) -> str:
        return f"add_time({self.scale!r})"


def add_time(scale: float = 1.0) -> TimeMap:
    """The map that adds time as a channel: with it, paths differ if one runs through the other at another speed.

    Parameters
    ----------
    scale : float
        The value of the new channel at the end of every series; it is 0 at the beginning.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.add_time(10.0)([[5.0, 6.0, 5.0]])[0].tolist()
    [[5.0, 0.0], [6.0, 5.0], [5.0, 10.0]]
    >>> k = mc.Signature(level=2).after(mc.add_time(1.0))
    >>> k([[0.0, 1.0, 2.0]], [[0.0, 0.0, 2.0]])
    array([[12.25]])
    """
    return TimeMap(scale)


@dataclass(frozen=True)
class SignatureMap(FeatureMap):
    """The iterated integrals of a path up to a level: phi_w(x) = ∫ … ∫ dx_w₁ … dx_w_m over ordered times.

    Parameters
    ----------
    d : int
        The number of channels.
    level : int
        The highest level.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.Signature(level=2).features(2)
    >>> phi.names
    ['1', 'S0', 'S1', 'S00', 'S01', 'S10', 'S11']
    >>> phi([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]])                 # right, then up
    array([[1. , 1. , 1. , 0.5, 1. , 0. , 0.5]])
    """

    d: int
    level: int

    def __post_init__(self) -> None:
        check_whole_number(self.d, "d", owner="SignatureMap")
        check_whole_number(self.level, "level", owner="SignatureMap")

    @property
    def dimension(self) -> int:
        return sum(self.d**m for m in range(self.level + 1))

    def _fill(self, X: Any, out: Array) -> None:
        series = as_series(X)
        n, d = len(series), series.values.shape[1]
        if d != self.d:
            raise InvalidInput(
                f"Series must have {self.d} channels, like those that the map was made for",
                got=f"{d} channels",
                advice=f"Make the map for these series: k.features({d}).",
            )
        for span in spans(n, max(1, memory.CACHED // self.dimension)):
            out[span] = self._signatures([series[i] for i in range(span.start, span.stop)])

    def _signatures(self, series: list[Array]) -> Array:
        n, d = len(series), self.d
        steps = np.zeros((n, max(max(map(len, series)) - 1, 1), d))
        for i in range(n):  # a step of 0 changes nothing
            steps[i, : len(series[i]) - 1] = np.diff(series[i].astype(np.float64, copy=False), axis=0)
        levels = [np.ones((n, 1)), *(np.zeros((n, d**m)) for m in range(1, self.level + 1))]
        largest, norms = np.zeros((self.level + 1, n)), np.ones((self.level + 1, n))
        for t in range(steps.shape[1]):  # multiply by exp(step), by Horner's rule, from the highest level down
            step = steps[:, t, None, :]
            for m in range(self.level, 0, -1):
                product = levels[0]
                for r in range(m):
                    product = (product[:, :, None] * (step / (m - r))).reshape(n, -1) + levels[r + 1]
                levels[m] = product
                norms[m] = np.sqrt(np.einsum("ij,ij->i", product, product))
            np.maximum(largest, _by_level(norms, norms), out=largest)
        # A rounding of level j at time t is multiplied by the rest of the signature, S(t)⁻¹ ⊗ S, whose first factor has
        # the norms of S(t).
        roundings = np.linalg.norm(_by_level(largest, norms), axis=0) / np.linalg.norm(norms, axis=0)
        lost = np.isfinite(roundings) & (roundings > np.finfo(np.float64).eps ** -0.5)
        if lost.any():  # `transform` reports overflows
            raise InvalidInput(
                "Signatures must keep half of their digits",
                got=f"a rounding error that level {self.level} makes {roundings[lost].max():.3g} times larger",
                advice=LOST,
            )
        return np.concatenate(levels, axis=1)

    def _term(self, j: int, x: Variables) -> Term:
        m = 0
        while j >= self.d**m:
            j -= self.d**m
            m += 1
        word = [j // self.d ** (m - 1 - k) % self.d for k in range(m)]
        return atom("S" + (".".join if self.d > 10 else "".join)(map(str, word))) if m else Term()


def _by_level(a: Array, b: Array) -> Array:
    """Σ_j a_j b_(m − j) for every level m: the norm of a product of tensors has this bound."""
    return np.array([np.einsum("ij,ij->j", a[: m + 1], b[m::-1]) for m in range(len(a))])
