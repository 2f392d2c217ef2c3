"""Hashable values as 64-bit keys: equal values have equal keys in every process, different ones different keys.

Tokens of a sequence, labels of nodes, elements of sets: kernels that count them compare numbers instead of objects.
Different values share a key with probability 2⁻⁶⁴.
"""

from __future__ import annotations

import datetime
import enum
import fractions
import hashlib
import numbers
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.errors import InvalidInput

_START = datetime.datetime(1970, 1, 1)


def keys_of(
    values: Iterable[Any],
    what: str = "Tokens",
    position: int | None = None,
    known: dict[tuple[type, Any], int] | None = None,
) -> NDArray[np.uint64]:
    """One key per value; `what` they are and the `position` of the object that holds them, for errors.

    Numbers that are equal have equal keys, whatever their types are. A dictionary `known` that is passed for one object
    after the other keeps the keys, so that each value is hashed once.

    >>> keys_of(["a", "b", "a"]).tolist() == keys_of(["a", "c", "a"]).tolist()
    False
    >>> bool(keys_of([1])[0] == keys_of([1.0])[0] == keys_of([True])[0])
    True
    """
    known = {} if known is None else known
    keys = []
    for value in values:
        try:
            key = known.get((type(value), value))
        except TypeError:
            key = None  # the error names the value
        if key is None:
            try:
                key = _digest(_bytes(value))
            except InvalidInput as error:
                where = "" if position is None else f" at position {position}"
                raise InvalidInput(f"{what} must be text, numbers, None, dates, or tuples or frozensets of these",
                                   got=f"{error.got}{where}",
                                   advice="Convert them, for example with str(value).") from None  # fmt: skip
            known[type(value), value] = key
        keys.append(key)
    return np.array(keys, dtype=np.uint64)


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _bytes(value: Any) -> bytes:
    """A text of the value that differs for different values: a letter for its kind, then its content."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return b"n"
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, (numbers.Rational, float, Decimal)):
        return b"r" + _number(value)
    if isinstance(value, complex):
        imaginary = _number(value.imag)
        return b"r" + _number(value.real) + (b"" if value.imag == 0 else b"," + imaginary)
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return b"w" + _time(value).encode()
    if isinstance(value, uuid.UUID):
        return b"u" + value.bytes
    if isinstance(value, (tuple, frozenset)):
        parts = [_digest(_bytes(part)).to_bytes(8, "little") for part in value]
        return b"t" + b"".join(parts) if isinstance(value, tuple) else b"f" + b"".join(sorted(parts))
    if isinstance(value, enum.Enum):
        return f"e{type(value).__qualname__}.{value.name}".encode()
    raise InvalidInput("A value must have a key", got=f"a {type(value).__name__}", advice="Convert it.")


def _number(value: Any) -> bytes:
    """An exact text of a number that does not depend on its type."""
    try:
        exact = fractions.Fraction(value)
    except OverflowError:
        return b"inf" if value > 0 else b"-inf"
    except ValueError:
        raise _unequal() from None
    return f"{exact.numerator:x}/{exact.denominator:x}".encode()


def _time(value: Any) -> str:
    """A date, a moment, a time of day or a duration, in UTC if it has a time zone."""
    if is_missing(value):  # pandas.NaT
        raise _unequal()
    if isinstance(value, datetime.timedelta):
        return f"delta {value.days} {value.seconds} {value.microseconds} {getattr(value, 'nanoseconds', 0)}"
    if not isinstance(value, (datetime.datetime, datetime.time)):
        return f"date {value.isoformat()}"
    offset = value.utcoffset()
    zone = "" if offset is None else " utc"
    if isinstance(value, datetime.time):
        moment = _START.replace(
            hour=value.hour, minute=value.minute, second=value.second, microsecond=value.microsecond
        )
        return f"time{zone} {moment - _START - (offset or datetime.timedelta())}"
    fields = value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond
    since = datetime.datetime(*fields) - _START - (offset or datetime.timedelta())
    return f"moment{zone} {since} {getattr(value, 'nanosecond', 0)}"


def _unequal() -> InvalidInput:
    return InvalidInput("A value must equal itself", got="NaN", advice="Use None for a missing value.")
