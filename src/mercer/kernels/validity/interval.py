"""Interval arithmetic with rational endpoints: numbers that are certain to lie between two others.

A counterexample to Mercer's condition counts only if aᵀKa < 0 beyond rounding. Points and vectors are exact rationals
(every float is one); kernel values are enclosed in intervals, and an interval with a negative upper end is a proof.
Series are summed in integers scaled by a power of two, with their truncation and rounding bounded in units of the
last place (R. P. Brent and P. Zimmermann, Modern Computer Arithmetic, 2010, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from operator import index
from typing import SupportsFloat, SupportsIndex, TypeAlias

from mercer.errors import InvalidInput

Number: TypeAlias = SupportsIndex | SupportsFloat | Fraction

# Endpoints keep BITS significant bits; series are summed with P bits after the point.
BITS, P = 160, 208
# Beyond exp(±2¹⁶) the numbers would have more than 90 000 bits.
LARGEST_EXPONENT = 2**16
# The smallest normal float64: the largest error of an underflow.
TINY = Fraction(1, 2**1022)


def rational(value: Number) -> Fraction:
    """The exact value of an integer, a float or a fraction.

    >>> rational(0.75)
    Fraction(3, 4)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int) or (not isinstance(value, float) and isinstance(value, SupportsIndex)):
        return Fraction(index(value))
    number = float(value)
    if not math.isfinite(number):
        raise InvalidInput("An interval needs finite numbers", got=number, advice="Leave this point out.")
    return Fraction(number)


class Interval:
    """All real numbers between two rationals, `lower` and `upper`.

    Operations return an interval that holds every possible result; ends are rounded outward to 160 significant bits.

    >>> x = Interval(1, 2)
    >>> x * x - 3
    Interval(-2.0, 1.0)
    >>> bool((-exactly(1)).exp().upper < 0.367879441171443)
    True
    """

    __slots__ = ("lower", "upper")
    lower: Fraction
    upper: Fraction

    def __init__(self, lower: Number, upper: Number) -> None:
        self.lower, self.upper = _round(rational(lower), False), _round(rational(upper), True)
        if self.lower > self.upper:
            raise InvalidInput("An interval's lower end must be ≤ its upper end", got=self, advice="Swap the ends.")

    @property
    def width(self) -> Fraction:
        return self.upper - self.lower

    def __contains__(self, value: Number) -> bool:
        return self.lower <= rational(value) <= self.upper

    def __repr__(self) -> str:
        return f"Interval({_show(self.lower)}, {_show(self.upper)})"

    # -- arithmetic -----------------------------------------------------------------------------------------------

    def __add__(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        return Interval(self.lower + z.lower, self.upper + z.upper)

    def __sub__(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        return Interval(self.lower - z.upper, self.upper - z.lower)

    def __rsub__(self, other: Interval | Number) -> Interval:
        return _interval(other) - self

    def __mul__(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        if self.lower == self.upper:
            products = [self.lower * z.lower, self.lower * z.upper]
        elif z.lower == z.upper:
            products = [self.lower * z.lower, self.upper * z.lower]
        else:
            products = [a * b for a in (self.lower, self.upper) for b in (z.lower, z.upper)]
        return Interval(min(products), max(products))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        if z.lower <= 0 <= z.upper:
            raise ZeroDivisionError(f"division by {z}, which holds 0")
        return self * Interval(1 / z.upper, 1 / z.lower)

    def __rtruediv__(self, other: Interval | Number) -> Interval:
        return _interval(other) / self

    def __neg__(self) -> Interval:
        return Interval(-self.upper, -self.lower)

    def __abs__(self) -> Interval:
        if self.lower >= 0:
            return self
        return -self if self.upper <= 0 else Interval(0, max(-self.lower, self.upper))

    def __pow__(self, exponent: Number) -> Interval:
        """x**n for whole n; for other exponents x must be > 0."""
        p = rational(exponent)
        if p.denominator != 1:
            return (self.log() * p).exp()
        if p < 0:
            return 1 / self ** (-p)
        x = self if p % 2 else abs(self)
        return _increasing(lambda q: _power(q, p.numerator), x)

    def min(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        return Interval(min(self.lower, z.lower), min(self.upper, z.upper))

    def max(self, other: Interval | Number) -> Interval:
        z = _interval(other)
        return Interval(max(self.lower, z.lower), max(self.upper, z.upper))

    # -- functions ------------------------------------------------------------------------------------------------

    def exp(self) -> Interval:
        return _increasing(_exp, self)

    def log(self) -> Interval:
        if self.lower <= 0:
            raise ValueError(f"logarithm of {self}, which may be ≤ 0")
        return _increasing(_log, self)

    def sqrt(self) -> Interval:
        """√x. The part below 0 is cut off: the number under the root is known to be ≥ 0."""
        if self.upper < 0:
            raise ValueError(f"square root of {self}")
        return _increasing(_sqrt, self.max(0))

    def tanh(self) -> Interval:
        return _increasing(_tanh, self)

    def arccos(self) -> Interval:
        """arccos x. The part outside [−1, 1] is cut off: a cosine is known to be inside."""
        if self.upper < -1 or self.lower > 1:
            raise ValueError(f"arc cosine of {self}")
        x = self.max(-1).min(1)
        return Interval(_arccos(x.upper)[0], _arccos(x.lower)[1])

    def cos_pi(self) -> Interval:
        """cos(πx), with exact reduction by the period."""
        a, b = self.lower, self.upper
        ends = [*_cos_pi(a), *_cos_pi(b)]
        holds_even = 2 * math.ceil(a / 2) <= b
        holds_odd = 2 * math.ceil((a - 1) / 2) + 1 <= b
        return Interval(-1 if holds_odd else min(ends), 1 if holds_even else max(ends))

    def sin_pi(self) -> Interval:
        """sin(πx)."""
        return Interval(self.lower - Fraction(1, 2), self.upper - Fraction(1, 2)).cos_pi()

    def cos(self) -> Interval:
        return (self / pi()).cos_pi()

    def sin(self) -> Interval:
        return (self / pi()).sin_pi()


def exactly(value: Number) -> Interval:
    """The interval that holds one number only.

    >>> exactly(0.5) + 1
    Interval(1.5, 1.5)
    """
    q = rational(value)
    return Interval(q, q)


def around(value: Number, relative: Number = Fraction(1, 2**40)) -> Interval:
    """A computed number and its neighbourhood: ± `relative` of its size, and the largest error of an underflow.

    >>> 1 / 3 in around(1 / 3), 0.3333 in around(1 / 3)
    (True, False)
    """
    q = rational(value)
    error = abs(q) * rational(relative) + TINY
    return Interval(q - error, q + error)


def dot(x: Iterable[Interval | Number], z: Iterable[Interval | Number]) -> Interval:
    """⟨x, z⟩ of two vectors of rationals or intervals.

    >>> dot((1, 0.5), (2, 3))
    Interval(3.5, 3.5)
    """
    exact, total = Fraction(0), exactly(0)
    for a, b in zip(x, z, strict=True):
        if isinstance(a, Interval) or isinstance(b, Interval):
            total = total + _interval(a) * _interval(b)
        else:
            exact += rational(a) * rational(b)
    return total + exact


@cache
def pi() -> Interval:
    """π.

    >>> pi()
    Interval(3.141592653589793, 3.141592653589793)
    """
    return Interval(_scaled(_pi() - 1, P), _scaled(_pi() + 1, P))


# -- rounding -------------------------------------------------------------------------------------------------------

Bounds: TypeAlias = tuple[Fraction, Fraction]
HALF = Fraction(1, 2)


def _interval(value: Interval | Number) -> Interval:
    return value if isinstance(value, Interval) else exactly(value)


def _show(q: Fraction) -> str:
    try:
        return repr(float(q))
    except OverflowError:
        return f"{'-' if q < 0 else ''}2**{q.numerator.bit_length() - q.denominator.bit_length()}"


def _round(q: Fraction, up: bool) -> Fraction:
    """q if it is short, else the next number with BITS significant bits below or above."""
    n, d = q.numerator, q.denominator
    if n.bit_length() <= BITS + 1 and (d.bit_length() <= BITS or not d & (d - 1)):
        return q
    p = BITS + d.bit_length() - n.bit_length()
    return -_scaled(_fixed(-q, p), p) if up else _scaled(_fixed(q, p), p)


def _fixed(q: Fraction, p: int) -> int:
    """⌊q·2ᵖ⌋"""
    return (q.numerator << p) // q.denominator if p >= 0 else q.numerator // (q.denominator << -p)


def _scaled(m: int, p: int) -> Fraction:
    """m·2⁻ᵖ"""
    return Fraction(m, 1 << p) if p >= 0 else Fraction(m << -p)


def _precision(q: Fraction) -> int:
    """Bits after the point that keep P − 1 significant ones of q, and of functions that behave like q near 0."""
    return P + max(0, q.denominator.bit_length() - q.numerator.bit_length())


def _increasing(function: Callable[[Fraction], Bounds], x: Interval) -> Interval:
    lower = function(x.lower)
    return Interval(lower[0], (lower if x.upper == x.lower else function(x.upper))[1])


# -- series: a rational in, two rational bounds out -----------------------------------------------------------------
#
# A number v is held as an integer near v·2ᵖ; a *unit* is 2⁻ᵖ. Every ⌊·⌋ and >> cuts off less than one unit.


def _power(q: Fraction, n: int) -> Bounds:
    """qⁿ for a whole n ≥ 0: exact where that is short, else by squares that are rounded outward."""
    if n * max(q.numerator.bit_length(), q.denominator.bit_length()) <= 2**12:
        return q**n, q**n
    square, product = exactly(q), exactly(1)
    while n:
        if n & 1:
            product = product * square
        n >>= 1
        if n:
            square = square * square
    return product.lower, product.upper


def _exp(q: Fraction) -> Bounds:
    """2ᵏ·exp(r) with q = k·log 2 + r and the Taylor series of exp(r); 1/exp(−q) for q < 0."""
    if q > LARGEST_EXPONENT:
        raise OverflowError(f"exp({_show(q)}) is too large for interval arithmetic")
    if q < -LARGEST_EXPONENT:
        return Fraction(0), _exp(Fraction(-LARGEST_EXPONENT))[1]
    if q < 0:
        lower, upper = _exp(-q)
        return 1 / upper, 1 / lower
    if q == 0:
        return Fraction(1), Fraction(1)
    p = _precision(q) if q < HALF else P
    k, r = (0, _fixed(q, p)) if q < HALF else divmod(_fixed(q, p), _log2())
    total, term, n = 0, 1 << p, 0
    while term:
        total += term
        n += 1
        term = (term * r >> p) // n
    # r < 0.7 is off by less than 1 + k units, exp(r) by less than 3 times that. The error e of a term passes on as
    # (0.7e + 1)/n + 1 < 4 units; the terms left out are below 1 unit, together below 4.
    error = 3 * (1 + k) + 4 * n + 4
    return _scaled(total - error, p - k), _scaled(total + error, p - k)


def _odd_series(y: Fraction, p: int, sign: int) -> tuple[int, int]:
    """Σ signʲ·y²ʲ⁺¹/(2j + 1) for 0 ≤ y ≤ ½, in units, and a bound of its error: artanh (sign 1), arctan (sign −1).

    The error e of a power passes on as e/4 + 2 < 3 units, the division cuts another: less than 4 units in each term;
    the powers left out are below 3 units and fall by 4 at each step, together below 4.
    """
    power, square = _fixed(y, p), _fixed(y * y, p)
    total, n = 0, 0
    while power:
        total += (sign if n % 2 else 1) * (power // (2 * n + 1))
        power = power * square >> p
        n += 1
    return total, 4 * n + 4


@cache
def _log2() -> int:
    """log 2 = 2 artanh ⅓ in units of 2⁻ᴾ, off by less than one: 16 more bits hold the 70 terms' errors."""
    return 2 * _odd_series(Fraction(1, 3), P + 16, 1)[0] >> 16


@cache
def _pi() -> int:
    """π = 16 arctan ⅕ − 4 arctan 1/239 (Machin) in units of 2⁻ᴾ, off by less than one."""
    return 16 * _odd_series(Fraction(1, 5), P + 16, -1)[0] - 4 * _odd_series(Fraction(1, 239), P + 16, -1)[0] >> 16


def _log(q: Fraction) -> Bounds:
    """k·log 2 + 2 artanh((m − 1)/(m + 1)) with q = 2ᵏ·m, ⅔ ≤ m ≤ 4/3."""
    if q == 1:
        return Fraction(0), Fraction(0)
    k = q.numerator.bit_length() - q.denominator.bit_length()
    m = q * _scaled(1, k)
    if m > Fraction(4, 3):
        k, m = k + 1, m / 2
    elif m < Fraction(2, 3):
        k, m = k - 1, m * 2
    y = (m - 1) / (m + 1)
    p = P if k else _precision(y)
    total, error = _odd_series(abs(y), p, 1)
    total = (2 * total if y > 0 else -2 * total) + k * _log2()
    error = 2 * error + abs(k)
    return _scaled(total - error, p), _scaled(total + error, p)


def _sqrt(q: Fraction) -> Bounds:
    """√(n/d) = √(nd)/d, exact for squares."""
    n, d = q.numerator, q.denominator
    root_n, root_d = math.isqrt(n), math.isqrt(d)
    if root_n**2 == n and root_d**2 == d:
        return Fraction(root_n, root_d), Fraction(root_n, root_d)
    s = max(0, P - (n * d).bit_length() // 2)
    root = math.isqrt(n * d << 2 * s)
    return Fraction(root, d << s), Fraction(root + 1, d << s)


def _tanh(q: Fraction) -> Bounds:
    """1 − 2/(exp(2q) + 1), odd; beyond 256 it is 1 to more digits than an interval keeps."""
    if q < 0:
        lower, upper = _tanh(-q)
        return -upper, -lower
    if q == 0:
        return Fraction(0), Fraction(0)
    below, above = _exp(2 * min(q, Fraction(256)))
    return 1 - 2 / (below + 1), Fraction(1) if q > 256 else 1 - 2 / (above + 1)


def _cos_pi(q: Fraction) -> Bounds:
    """cos πq, reduced exactly to 0 ≤ q ≤ ½: the cosine's series at πq, or the sine's at π(½ − q), up to π/4."""
    q = abs((q + 1) % 2 - 1)
    if q > HALF:
        lower, upper = _cos_pi(1 - q)
        return -upper, -lower
    if q in (0, HALF):
        return 1 - 2 * q, 1 - 2 * q
    sine = q > Fraction(1, 4)
    x = _fixed(_pi() * (HALF - q if sine else q), 0)
    square = x * x >> P
    term, total, sign, n = (x, 0, 1, 1) if sine else (1 << P, 0, 1, 0)
    while term:
        total += sign * term
        term = (term * square >> P) // ((n + 1) * (n + 2))
        sign, n = -sign, n + 2
    # x is off by less than 2 units, and so are its sine and cosine. The error e of a term passes on as
    # (0.7e + 2)/2 + 1 < 4 units; the terms left out are below 1 unit, together below 2.
    error = 2 + 4 * n + 2
    return _scaled(total - error, P), _scaled(total + error, P)


def _arccos(q: Fraction) -> Bounds:
    """2 arctan √((1 − q)/(1 + q)), and π − arccos(−q) for q < 0."""
    if q < 0:
        lower, upper = _arccos(-q)
        return pi().lower - upper, pi().upper - lower
    if q == 1:
        return Fraction(0), Fraction(0)
    x = exactly((1 - q) / (1 + q)).sqrt()
    for _ in range(2):  # arctan x = 2 arctan(x/(1 + √(1 + x²))): from 1 to 0.42 to 0.2
        x = x / (1 + (1 + x * x).sqrt())
    p = _precision(x.lower)
    (least, error), (most, more) = _odd_series(x.lower, p, -1), _odd_series(x.upper, p, -1)
    return 8 * _scaled(least - error, p), 8 * _scaled(most + more, p)
