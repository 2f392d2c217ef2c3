"""Intervals hold the true value (mpmath at 400 digits) and are narrow."""

from __future__ import annotations

import operator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.kernels.validity import interval
from mercer.kernels.validity.interval import Interval, around, dot, exactly, pi, rational

NARROW = Fraction(1, 2**140)

floats = st.floats(-200, 200, allow_nan=False)
rationals = st.fractions(-50, 50, max_denominator=10**6)
numbers = st.one_of(
    st.integers(-40, 40), floats, rationals, st.builds(lambda m, e: m * 2.0**e, floats, st.integers(-300, -5))
)


def precise(q: object) -> mpmath.mpf:
    q = rational(q)  # type: ignore[arg-type]
    return mpmath.mpf(q.numerator) / q.denominator


def holds(x: Interval, value: mpmath.mpf) -> bool:
    slack = abs(value) * mpmath.mpf(10) ** -390
    return bool(precise(x.lower) <= value + slack and precise(x.upper) >= value - slack)


def assert_encloses(x: Interval, value: mpmath.mpf, size: Fraction | None = None) -> None:
    assert holds(x, value)
    assert x.width <= NARROW * (max(abs(x.lower), abs(x.upper)) if size is None else size)


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(400):
        yield


def anything(q: Fraction) -> Fraction:
    return q


# Into the domain, the truth, and the size that the width is relative to.
FUNCTIONS = {
    "exp": (anything, mpmath.exp, None),
    "log": (lambda q: abs(q) or Fraction(1), mpmath.log, None),
    "sqrt": (abs, mpmath.sqrt, None),
    "tanh": (anything, mpmath.tanh, None),
    "arccos": (lambda q: q / 200, mpmath.acos, None),
    "sin": (anything, mpmath.sin, Fraction(1)),
    "cos": (anything, mpmath.cos, Fraction(1)),
    "sin_pi": (anything, mpmath.sinpi, Fraction(1)),
    "cos_pi": (anything, mpmath.cospi, Fraction(1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=settings.default.max_examples // 4)
@given(q=numbers, shrink=st.booleans())
def test_functions_hold_the_true_value(name, q, shrink):
    into, truth, size = FUNCTIONS[name]
    q = into(rational(q))
    if shrink:
        q = q / 256
    assert_encloses(getattr(exactly(q), name)(), truth(precise(q)), size and size * (1 + abs(q)))


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=settings.default.max_examples // 4)
@given(ends=st.tuples(numbers, numbers), share=st.fractions(0, 1, max_denominator=97))
def test_functions_hold_every_value_inside(name, ends, share):
    into, truth, _ = FUNCTIONS[name]
    a, b = sorted(into(rational(end)) for end in ends)
    x = getattr(Interval(a, b), name)()
    for q in (a, b, a + share * (b - a)):
        assert holds(x, truth(precise(q)))


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
@settings(max_examples=settings.default.max_examples // 4)
@given(
    ends=st.tuples(numbers, numbers, numbers, numbers), shares=st.tuples(*[st.fractions(0, 1, max_denominator=97)] * 2)
)
def test_arithmetic_holds_every_value_inside(op, ends, shares):
    (a, b), (c, d) = sorted(map(rational, ends[:2])), sorted(map(rational, ends[2:]))
    if op is operator.truediv and c <= 0 <= d:  # to one side of zero
        c, d = sorted((abs(c) + 1, abs(c) + 1 + d))
        c, d = (c, d) if shares[0] < shares[1] else (-d, -c)
    x = op(Interval(a, b), Interval(c, d))
    assert op(a + shares[0] * (b - a), c + shares[1] * (d - c)) in x
    assert_encloses(op(exactly(a), exactly(c)), precise(op(a, c)))


@settings(max_examples=settings.default.max_examples // 4)
@given(a=numbers, b=numbers, n=st.integers(-5, 7), share=st.fractions(0, 1, max_denominator=97))
def test_powers_absolute_values_and_extremes(a, b, n, share):
    a, b = sorted(map(rational, (a, b)))
    q = a + share * (b - a)
    x = Interval(a, b)
    assert abs(q) in abs(x)
    assert max(q, Fraction(1)) in x.max(1)
    assert min(q, Fraction(1)) in x.min(exactly(1))
    assert -q in -x
    if n >= 0 or a > 0 or b < 0:
        assert q**n in x**n
    if a > 0:
        assert holds(x**0.3, precise(q) ** precise(0.3))


def test_exact_cases_stay_exact():
    half = Fraction(1, 2)
    assert exactly(Fraction(9, 4)).sqrt().lower == exactly(Fraction(9, 4)).sqrt().upper == Fraction(3, 2)
    for x in (exactly(0).exp(), exactly(0).cos_pi(), exactly(half).sin_pi(), exactly(7).cos_pi() * -1):
        assert (x.lower, x.upper) == (1, 1)
    for x in (exactly(1).log(), exactly(0).tanh(), exactly(3).sin_pi(), exactly(1).arccos(), exactly(0).sqrt()):
        assert (x.lower, x.upper) == (0, 0)
    assert (2 - exactly(half) * 3 / 5).lower == Fraction(17, 10)
    assert (1 / exactly(3)).lower == Fraction(1, 3)


def test_extreme_sizes():
    assert (exactly(-1e300)).exp().lower == 0
    assert 0 < exactly(-1e300).exp().upper < Fraction(1, 2**90000)
    assert exactly(1e300).tanh().upper == 1
    assert exactly(1e300).tanh().lower > 1 - NARROW
    with pytest.raises(OverflowError):
        exactly(1e300).exp()
    for q in (1e300, 1e-300, 5e-324):
        assert_encloses(exactly(q).log(), mpmath.log(precise(q)))
        assert_encloses(exactly(q).tanh(), mpmath.tanh(precise(q)))
        assert_encloses(exactly(q).sqrt(), mpmath.sqrt(precise(q)))
    assert "2**" in repr(exactly(2) ** 5000)


def test_ends_stay_small():
    x = exactly(1) / 3
    for _ in range(50):
        x = x * x + Fraction(1, 7)
    assert x.lower.denominator.bit_length() <= interval.BITS + 8


def test_vectors():
    x, z = (1, 0.5, Fraction(1, 3)), (np.float32(2), np.int64(3), 3)
    assert dot(x, z).lower == dot(x, z).upper == Fraction(9, 2)
    with pytest.raises(ValueError):
        dot((1, 2), (1,))


def test_around_covers_rounding_and_underflow():
    assert Fraction(1, 3) in around(1 / 3)
    assert 1e-310 in around(0.0)
    assert 2 in around(1.5, relative=0.5)
    assert holds(pi(), mpmath.pi)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_not_a_number(value):
    with pytest.raises(InvalidInput, match="finite"):
        exactly(value)


def test_empty_and_outside_the_domain():
    with pytest.raises(InvalidInput, match="lower end"):
        Interval(2, 1)
    for broken in (lambda: exactly(0).log(), lambda: exactly(-1).sqrt(), lambda: exactly(2).arccos()):
        with pytest.raises(ValueError):
            broken()
    with pytest.raises(ZeroDivisionError):
        1 / Interval(-1, 1)


def test_the_checker_sees_a_series_cut_short(monkeypatch):
    """The planted bug: log 2 wrong in its 40th digit."""
    wrong = interval._log2() + (1 << 70)
    monkeypatch.setattr(interval, "_log2", lambda: wrong)
    assert not holds(exactly(10).exp(), mpmath.exp(10))


@pytest.mark.parametrize("q", [1 + 1e-6 / 3, -1.0000001, 0.9999, -0.99999])
def test_high_powers_stay_short_and_hold_the_value(q):
    for n in (1000, 10**6, 10**6 + 1):
        x = exactly(q) ** n
        assert holds(x, precise(q) ** n)
        assert x.width <= NARROW * abs(x.upper)
        assert x.upper.numerator.bit_length() <= 2 * interval.BITS
    assert holds(Interval(-1.001, 1.002) ** 10**5, precise(1.001) ** 10**5)
