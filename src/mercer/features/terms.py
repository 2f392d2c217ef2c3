"""The name of a feature as an algebra: a coefficient and a product of factors, "√3·x0²·x1".

Maps multiply, scale and raise features to powers; doing the same to terms gives every feature a readable name without
ever evaluating it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self, overload

from mercer.errors import InvalidInput

Variables = Callable[[int], "Term"]
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SIMPLE = re.compile(r"\w+|\w*(\(.*\)|\[.*\]|\{.*\})|‖[^‖]*‖|∅")  # labels that need no brackets in a product
SIX_DIGITS = Context(prec=6)
ONE = Fraction(1)
LONGEST_LIST = 1_000_000


@dataclass(frozen=True)
class Term:
    """√square · a^i · b^j · …

    Neighbouring equal factors are merged, others keep their order, so that the tuples (0, 1) and (1, 0) of factors
    have different names.

    >>> print(Term(square=Fraction(3)) * variable(0) ** 2 * variable(1))
    √3·x0²·x1
    """

    square: Fraction = ONE
    factors: tuple[tuple[str, int], ...] = ()

    def __mul__(self, other: Term) -> Term:
        left, right = self.factors, other.factors
        if left and right and left[-1][0] == right[0][0]:
            left, right = (*left[:-1], (left[-1][0], left[-1][1] + right[0][1])), right[1:]
        if self.square is ONE or other.square is ONE:  # fractions are slow: most factors have no coefficient
            return Term(other.square if self.square is ONE else self.square, left + right)
        return Term(self.square * other.square, left + right)

    def __pow__(self, n: int) -> Term:
        square = self.square if self.square is ONE else self.square**n
        return Term(square, tuple((label, power * n) for label, power in self.factors if n))

    def __str__(self) -> str:
        alone = len(self.factors) == 1 and self.square == 1
        above = [_power(label, power, alone) for label, power in self.factors if power > 0]
        below = [_power(label, -power, False) for label, power in self.factors if power < 0]
        if self.square != 1 or not above:
            above.insert(0, _root(self.square))
        return "/".join(["·".join(above), *below])


def atom(label: str) -> Term:
    """A feature that has only a label."""
    return Term(factors=((label, 1),))


def variable(i: int) -> Term:
    """The i-th column, "xi"."""
    return atom(f"x{i}")


def product(terms: Sequence[Term]) -> Term:
    return math.prod(terms, start=Term())


@lru_cache(maxsize=64)
def rational(value: float) -> Fraction:
    """The simple or decimal fraction that a float stands for: 0.333… → 1/3, 1e300 → 10³⁰⁰."""
    decimal = Fraction(repr(float(value)))
    simple = decimal.limit_denominator(10**6)
    return simple if abs(simple - decimal) <= decimal * Fraction(1, 10**14) else decimal


def _power(label: str, power: int, alone: bool) -> str:
    if alone and power == 1:
        return label
    base = label if SIMPLE.fullmatch(label) else f"({label})"
    return base if power == 1 else base + str(power).translate(SUPERSCRIPTS)


def _root(square: Fraction) -> str:
    p, q = square.numerator, square.denominator
    root = Fraction(math.isqrt(p), math.isqrt(q))
    return _decimal(root) if root * root == square else f"√{_decimal(square)}"


def _decimal(value: Fraction) -> str:
    if value.denominator == 1 and value < 10**9:
        return str(value.numerator)
    return format((Decimal(value.numerator) / Decimal(value.denominator)).normalize(SIX_DIGITS), "g").lower()


class Names(Sequence[str]):
    """The names of all features, each made when it is needed.

    Indexing and iteration work for any number of features; `len` and `list` refuse above a million of them.

    >>> Names(lambda j: f"x{j}", range(10**12))[-1]
    'x999999999999'
    """

    def __init__(self, name: Callable[[int], str], index: range) -> None:
        self._name, self._index = name, index

    def __len__(self) -> int:
        # `list` calls `len` before it iterates, so a hopeless list is refused here.
        if self._size > LONGEST_LIST:
            raise InvalidInput(
                f"A list of names must have at most {LONGEST_LIST:,} entries",
                got=f"{self._size:,} features",
                advice="Take some of them, such as phi.names[:10], or iterate; phi.dimension is their number.",
            )
        return self._size

    @property
    def _size(self) -> int:
        start, stop, step = self._index.start, self._index.stop, self._index.step
        return max(0, -((start - stop) // step))

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self._name, self._index[index])
        return self._name(self._index[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._name, self._index)

    def __repr__(self) -> str:
        if self._size <= 12:
            return repr(list(self))
        return f"[{', '.join(map(repr, self[:6]))}, …, {self[-1]!r}] ({self._size:,} names)"
