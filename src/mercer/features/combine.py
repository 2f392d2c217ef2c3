"""Maps of composite kernels: the closure rules of lectures 000 and 001 for feature maps.

c·k scales the map, k₁ + k₂ stacks two maps, k₁·k₂ takes all products of a feature of each, kⁿ all n-fold products,
f(x) k(x, z) f(z) multiplies the map by f.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from mercer.data.points import as_argument
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, filled
from mercer.features.monomials import INDICES, fill_graded, monomial, outer, require_countable, size
from mercer.features.terms import Term, Variables, atom, product, rational
from mercer.validation import check_choice, check_number, check_whole_number


@dataclass(frozen=True)
class ScaledMap(FeatureMap):
    """√c · phi(x), the map of c·k.

    >>> from mercer.features import IdentityMap
    >>> ScaledMap(IdentityMap(2), 2.0).names
    ['√2·x0', '√2·x1']
    """

    phi: FeatureMap
    c: float

    def __post_init__(self) -> None:
        check_number(self.c, "c", above=0, owner="ScaledMap")

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    @property
    def inputs(self) -> int | None:
        return self.phi.inputs

    def _fill(self, X: Any, out: Array) -> None:
        self.phi._fill(X, out)
        out *= out.dtype.type(math.sqrt(self.c))

    def _term(self, j: int, x: Variables) -> Term:
        return Term(square=rational(self.c)) * self.phi._term(j, x)


@dataclass(frozen=True)
class _Several(FeatureMap):
    maps: tuple[FeatureMap, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        columns = {phi.inputs for phi in self.maps} - {None}
        if not self.maps or len(columns) > 1:
            raise InvalidInput(
                f"The maps of {type(self).__name__} must act on the same points",
                got=f"maps of {sorted(columns, key=str)} columns" if self.maps else "no maps",
                advice="Make all for the same number of columns.",
            )

    @property
    def inputs(self) -> int | None:
        return next((phi.inputs for phi in self.maps if phi.inputs is not None), None)


@dataclass(frozen=True)
class StackedMap(_Several):
    """(phi₁(x), phi₂(x), …), the map of k₁ + k₂ + …

    >>> from mercer.features import ConstantMap, IdentityMap
    >>> StackedMap((ConstantMap(), IdentityMap(2))).names
    ['1', 'x0', 'x1']
    """

    @property
    def dimension(self) -> int:
        return sum(phi.dimension for phi in self.maps)

    @property
    def _starts(self) -> list[int]:
        return list(accumulate((phi.dimension for phi in self.maps), initial=0))

    def _fill(self, X: Any, out: Array) -> None:
        for phi, start in zip(self.maps, self._starts):
            phi._fill(X, out[:, start : start + phi.dimension])

    def _term(self, j: int, x: Variables) -> Term:
        part = bisect_right(self._starts, j) - 1
        return self.maps[part]._term(j - self._starts[part], x)


@dataclass(frozen=True)
class TensorMap(_Several):
    """All products of one feature of each map, phi₁(x) ⊗ phi₂(x) ⊗ …, the map of k₁ · k₂ · …

    >>> from mercer.features import IdentityMap
    >>> TensorMap((IdentityMap(2), IdentityMap(2))).names
    ['x0²', 'x0·x1', 'x1·x0', 'x1²']
    """

    @property
    def dimension(self) -> int:
        return math.prod(phi.dimension for phi in self.maps)

    def _fill(self, X: Any, out: Array) -> None:
        *first, last = self.maps
        if not first:
            last._fill(X, out)
        else:
            outer(filled(TensorMap(tuple(first)), X, out), filled(last, X, out), out)

    def _term(self, j: int, x: Variables) -> Term:
        terms = []
        for phi in reversed(self.maps):
            j, factor = divmod(j, phi.dimension)
            terms.append(phi._term(factor, x))
        return product(terms[::-1])


@dataclass(frozen=True)
class PowerMap(FeatureMap):
    """All n-fold products of the features of phi, the map of kⁿ.

    Parameters
    ----------
    phi : FeatureMap
        The map of k.
    n : int
        The power, ≥ 1.
    index : str
        "monomials" (each multiset of features once, with the root of its multinomial coefficient) or "tuples".

    Examples
    --------
    >>> from mercer.features import IdentityMap
    >>> PowerMap(IdentityMap(2), 2).names
    ['x0²', '√2·x0·x1', 'x1²']
    """

    phi: FeatureMap
    n: int
    index: str = "monomials"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_whole_number(self.n, "n", owner="PowerMap"))
        check_choice(self.index, "index", INDICES)
        require_countable(self.phi.dimension, self.n, self.index)

    @property
    def dimension(self) -> int:
        return size(self.phi.dimension, self.n, self.index)

    @property
    def inputs(self) -> int | None:
        return self.phi.inputs

    def _fill(self, X: Any, out: Array) -> None:
        if self.n == 1:
            self.phi._fill(X, out)
        else:
            fill_graded(filled(self.phi, X, out), range(self.n, self.n + 1), [1.0], self.index, out)

    def _term(self, j: int, x: Variables) -> Term:
        return monomial(self.phi.dimension, self.n, j, self.index, lambda i: self.phi._term(i, x))


@dataclass(frozen=True)
class RescaledMap(FeatureMap):
    """f(x) · phi(x), the map of f(x) k(x, z) f(z).

    Parameters
    ----------
    phi : FeatureMap
        The map of k.
    f : function
        A function of data sets, X → one number per point.
    name : str
        How f is written in names.
    inverse : bool
        Whether f is one over what `name` says, so that names are fractions.

    Examples
    --------
    >>> from mercer.features import IdentityMap
    >>> phi = RescaledMap(IdentityMap(2), lambda X: np.linalg.norm(X, axis=1), "‖x‖")
    >>> phi.names, phi([[3.0, 4.0]]).tolist()
    (['‖x‖·x0', '‖x‖·x1'], [[15.0, 20.0]])
    """

    phi: FeatureMap
    f: Callable[[Any], Any]
    name: str = "f(x)"
    inverse: bool = False

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    @property
    def inputs(self) -> int | None:
        return self.phi.inputs

    def _fill(self, X: Any, out: Array) -> None:
        self.phi._fill(X, out)
        values = np.asarray(self.f(as_argument(X)), dtype=np.float64)
        if values.shape != (len(out),) or not np.isfinite(values).all():
            raise InvalidInput(
                f"f must return one finite number per point, shape ({len(out)},)",
                got=f"shape {values.shape}" if values.shape != (len(out),) else "NaN or infinity",
                advice="Write f for whole data sets: reduce over columns with axis=1.",
            )
        out *= values[:, None].astype(out.dtype)

    def _term(self, j: int, x: Variables) -> Term:
        factor = atom("f(x)" if self.name == "<lambda>" else self.name)
        return (factor**-1 if self.inverse else factor) * self.phi._term(j, x)
