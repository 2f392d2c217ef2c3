"""Values and texts for people: shortened, with few digits, in the singular or the plural."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # commands that refuse their arguments use these words, and need not wait for NumPy
    from numpy.typing import NDArray

_DECIMAL = re.compile(r"(?<![\w.'])(\d+)\.\d+(e[-+]?\d+)?")
_ITEM = r"(?:'[^']*'|[-+\w.]+)"
_LONG = re.compile(rf"({_ITEM}, {_ITEM}, {_ITEM}), {_ITEM}(?:, {_ITEM}){{3,}}(?=[\])])")


def cut(text: str, most: int) -> str:
    """The beginning of a text that is too long, and a sign that there is more.

    >>> cut("a long name", 7), cut("short", 7)
    ('a long…', 'short')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def one_line(text: str, most: int = 300) -> str:
    """A text on one line, of at most the given number of characters.

    >>> one_line("first\\n  second", 20)
    'first second'
    """
    return cut(" ".join(text.split()), most)


def shortened(value: Any) -> str:
    """The repr of a value on one line, but never a page of it.

    >>> import numpy as np
    >>> shortened([1, 2]), shortened("x" * 100)[-8:], shortened(np.eye(2))
    ('[1, 2]', 'x… (str)', 'array([[1., 0.], [0., 1.]])')
    """
    text = repr(value)
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= 80 else f"{text[:60]}… ({type(value).__name__})"


def shown(value: Any) -> str:
    """The shortened repr of a value, a NumPy scalar as Python prints it: 7, not np.int64(7)."""
    numpy = sys.modules.get("numpy")  # without NumPy there is no scalar of it
    return shortened(value.item() if numpy is not None and isinstance(value, numpy.generic) else value)


def number(value: float, digits: int = 4, *, padded: bool = True) -> str:
    """A number with the given number of digits, without an exponent if it is neither huge nor tiny.

    Zeros at the end show how precise a measured number is; `padded=False` leaves them out.

    >>> number(1234567.0), number(0.91234), number(0.5), number(3.2e-9)
    ('1,234,567', '0.9123', '0.5000', '3.200e-09')
    >>> number(53.712, 3), number(3.0, padded=False), number(float("nan"))
    ('53.7', '3', 'nan')
    """
    value = float(value)
    size = abs(value)
    if not math.isfinite(value) or size == 0:
        return f"{value:.0f}"
    if not 1e-4 <= size < 1e9:
        return f"{value:#.{digits}g}" if padded else f"{value:.{digits}g}"
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"
    return text if padded or "." not in text else text.rstrip("0").rstrip(".")


def rounded(text: str) -> str:
    """A text in which every decimal number is rounded to four digits, or to a whole number if that has more digits.

    >>> rounded("Gaussian(sigma=0.123456789) + 12345.678 * Linear() + Matern(sigma=2.0)")
    'Gaussian(sigma=0.1235) + 12346 * Linear() + Matern(sigma=2.0)'
    """
    return _DECIMAL.sub(_rounded, text)


def _rounded(decimal: re.Match[str]) -> str:
    digits = 4 if decimal[2] else max(4, len(decimal[1]))
    text = f"{float(decimal[0]):.{digits}g}"
    return decimal[0] if float(text) == float(decimal[0]) else text


def brief(expression: Any) -> str:
    """An expression, or its text, to read, not to copy: numbers as in `rounded`, three items of each long list.

    >>> brief("Gaussian(sigma=0.123456789) * Delta().on('x1')")
    "Gaussian(sigma=0.1235) * Delta().on('x1')"
    >>> brief("Gaussian(sigma=[1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])")
    'Gaussian(sigma=[1.5, 2.0, 3.0, …])'
    """
    text = rounded(expression if isinstance(expression, str) else repr(expression))
    return _LONG.sub(r"\1, …", re.sub(r"\[\[.*?\]\]", "[[…]]", text))


def seconds(value: float) -> str:
    """A time in words.

    >>> seconds(0.034), seconds(12.3), seconds(75)
    ('34 ms', '12.3 s', '1 min 15 s')
    """
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def show_count(n: int) -> str:
    """A whole number, however large: 15,943,435,565 or 1.27e+30."""
    return f"{n:,}" if n < 10**15 else format(Decimal(n), ".3g").lower()


def show_bytes(size: int) -> str:
    """A number of bytes with its unit.

    >>> show_bytes(127_547_484_520)
    '128 GB'
    """
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    exponent = next((e for e in range(len(units)) if size < 0.9995 * 10 ** (3 * e + 3)), len(units) - 1)
    return f"{float(Decimal(size) / 10 ** (3 * exponent)):.3g} {units[exponent]}"


def first_few(items: Sequence[Any] | NDArray[Any], most: int, show: Callable[[Any], str] = str) -> str:
    """The first items of a list, and a sign if there are more.

    >>> first_few([1, 2, 3], 2), first_few(["a", "b"], 2, repr)
    ('1, 2, …', "'a', 'b'")
    """
    return ", ".join(map(show, items[:most])) + (", …" if len(items) > most else "")


def count(n: int, what: str, several: str | None = None) -> str:
    """A number of things.

    >>> count(1, "row"), count(2000, "row"), count(3, "class", "classes")
    ('1 row', '2,000 rows', '3 classes')
    """
    return f"{n:,} {what if n == 1 else several or what + 's'}"
