"""Maps of kernels on finite sets: the indicator vector of |A ∩ B|, and all subsets for e^(c|A ∩ B|).

Lecture 001 shows that 2^|A ∩ B| counts the common subsets of A and B: phi_T(A) = 1[T ⊆ A] has one feature per subset T
of the ground set, and phi(A)ᵀphi(B) counts the T inside both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.data.objects import as_set, objects_of
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom, rational
from mercer.validation import check_number, check_whole_number
from mercer.words import show_bytes, show_count

LARGEST_GROUND_SET = 20  # elements: 2²⁰ features are 8 MB per point


@dataclass(frozen=True)
class _GroundSet(FeatureMap):
    universe: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "universe", _elements(self.universe))

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {element: i for i, element in enumerate(self.universe)}

    def _indicators(self, X: Any, dtype: Any) -> Array:
        """1[e ∈ A] for every set A (rows) and element e of the ground set (columns)."""
        sets = [as_set(A, i) for i, A in enumerate(objects_of(X, "Sets"))]
        table = np.zeros((len(sets), len(self.universe)), dtype)
        for row, A in zip(table, sets):
            try:
                row[[self._position[element] for element in A]] = 1.0
            except KeyError as error:
                raise InvalidInput(
                    f"Every element of a set must be in the map's ground set of {len(self.universe)} elements",
                    got=f"{error.args[0]!r}",
                    advice="Make the map for a ground set that holds all elements: k.features(set().union(*X)).",
                ) from None
        return table


@dataclass(frozen=True)
class IncidenceMap(_GroundSet):
    """phi_e(A) = 1[e ∈ A] for every element e of a ground set, the map of |A ∩ B|.

    Parameters
    ----------
    universe
        The elements of the ground set, or their number m for 0 … m−1.

    Examples
    --------
    >>> phi = IncidenceMap("abc")
    >>> phi.names, phi([{"a", "c"}]).tolist()
    (["['a'∈A]", "['b'∈A]", "['c'∈A]"], [[1.0, 0.0, 1.0]])
    """

    @property
    def dimension(self) -> int:
        return len(self.universe)

    def _fill(self, X: Any, out: Array) -> None:
        out[...] = self._indicators(X, out.dtype)

    def _term(self, j: int, x: Variables) -> Term:
        return atom(f"[{self.universe[j]!r}∈A]")


@dataclass(frozen=True)
class SubsetMap(_GroundSet):
    """phi_T(A) = w^(|T|/2) · 1[T ⊆ A] for every subset T of a ground set, the map of (1 + w)^|A ∩ B|.

    Σ over T ⊆ A ∩ B of w^|T| is (1 + w)^|A ∩ B| by the binomial theorem: w = 1 gives 2^|A ∩ B|, w = eᶜ − 1 gives
    e^(c|A ∩ B|). Subset T is feature Σ 2ⁱ over the positions i of its elements.

    Parameters
    ----------
    universe
        The elements of the ground set, or their number m for 0 … m−1; 2ᵐ features.
    weight : float
        w > 0.

    References
    ----------
    Lecture 001, quiz 2; lecture 004, kernels on subsets.

    Examples
    --------
    >>> phi = SubsetMap({1, 2})
    >>> phi.names, phi([{1}, {1, 2}]).tolist()
    (['∅', '{1}', '{2}', '{1, 2}'], [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.weight, "weight", above=0, advice="Choose, for example, 1 for 2^|A∩B|.", owner="SubsetMap")

    @property
    def dimension(self) -> int:
        return int(2 ** len(self.universe))

    def _fill(self, X: Any, out: Array) -> None:
        m = len(self.universe)
        if m > LARGEST_GROUND_SET:
            raise InvalidInput(
                f"The subsets of a ground set can be features up to {LARGEST_GROUND_SET} elements",
                got=f"{m} elements, so {show_count(self.dimension)} features, "
                f"{show_bytes(8 * self.dimension)} per point",
                advice="Use the kernel itself: exp(c * Intersection()) needs only the sizes of intersections.",
            )
        factor = self._indicators(X, out.dtype) * out.dtype.type(math.sqrt(self.weight))
        out[:, 0] = 1.0
        for i in range(m):  # the subsets with largest element i: those without it, and i
            np.multiply(out[:, : 1 << i], factor[:, i : i + 1], out=out[:, 1 << i : 2 << i])

    def _term(self, j: int, x: Variables) -> Term:
        chosen = [self.universe[i] for i in range(j.bit_length()) if j >> i & 1]
        label = "{" + ", ".join(map(repr, chosen)) + "}" if chosen else "∅"
        return Term(square=rational(self.weight) ** len(chosen)) * atom(label)


def _elements(universe: Any) -> tuple[Any, ...]:
    """The ground set in a fixed order: the given one, or sorted if it has none."""
    if isinstance(universe, (int, np.integer)):
        return tuple(range(check_whole_number(universe, "universe", owner="a map of sets")))
    if not isinstance(universe, Iterable):
        raise InvalidInput(
            "A ground set must be its elements, or their number m for 0 … m−1",
            got=repr(universe),
            advice="Pass set().union(*X), or a number.",
        )
    try:
        elements = list(dict.fromkeys(universe))
    except TypeError as error:
        raise InvalidInput(
            "Elements of a set must be hashable", got=f"{error}", advice="Use tuples in place of lists."
        ) from None
    if not elements:
        raise InvalidInput("A ground set must have at least one element", got="none", advice="Pass its elements.")
    if isinstance(universe, Set):
        try:
            elements.sort()
        except TypeError:
            elements.sort(key=lambda e: (type(e).__name__, repr(e)))
    return tuple(elements)
