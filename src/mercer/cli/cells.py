"""Texts in cells, read as numbers, dates, times of day or truth values, by a format that a whole column has.

A format is a short text, kept in the model file, so that new files are read in the same way:

    1,234.5      thousands are separated by commas (or points, blanks, apostrophes), and what marks decimals
    1,234.5%     the same, with percent signs: 12.5 % is read as 12.5
    hours        times of day, in hours after midnight: 08:30 is 8.5
    %d/%m/%Y     dates, in the directives of strftime
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import polars as pl

CURRENCIES = (
    "$", "€", "£", "¥", "₹", "US$", "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SEK", "NOK",
    "DKK", "PLN", "CZK", "BRL", "MXN", "ZAR",
)  # fmt: skip
_CURRENCY = "|".join(re.escape(mark) for mark in sorted(CURRENCIES, key=len, reverse=True))
_BLANKS = " \u00a0\u202f\u2009"
_NUMBER = r"[-+−]?\d[\d.,'’ ]*(?:[eE][-+]?\d+)?"
TRUTH = {
    "true": True, "false": False, "yes": True, "no": False, "y": True, "n": False, "t": True, "f": False,
    "ja": True, "nein": False, "oui": True, "non": False, "si": True, "sí": True, "sì": True, "sim": True, "não": False,
    "1": True, "0": False,
}  # fmt: skip
"""Words for true and false."""
_PAIRS = [{"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"}, {"si", "no"},
          {"sí", "no"}, {"sì", "no"}, {"sim", "não"}]  # fmt: skip
HOURS = "hours"
ORDERED = 5
"""Fewer different dates may be in order by chance."""
_TIME = r"^(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?\s*([AaPp])?\.?(?:[Mm]\.?)?$"


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written.

    >>> style = NumberStyle.parse("1.234,5%")
    >>> style
    NumberStyle(thousands='.', decimal=',', percent=True)
    >>> str(style), style.read(pl.Series(["1.250,5 %", "3 %", None])).to_list()
    ('1.234,5%', [1250.5, 3.0, None])
    """

    thousands: str = ""
    decimal: str = "."
    percent: bool = False

    @classmethod
    def parse(cls, format: str) -> Self:
        """The style of this format."""
        match = re.fullmatch(r"1(.?)234(.)5(%?)", format)
        if match is None:
            raise ValueError(f"not a format of numbers: {format!r}")
        return cls(match[1], match[2], bool(match[3]))

    def __str__(self) -> str:
        return f"1{self.thousands}234{self.decimal}5{'%' * self.percent}"

    def read(self, words: pl.Series) -> pl.Series:
        """The numbers, without currencies; null where a text is not written in this style."""
        bare = _bare(words)
        if self.percent:
            bare = bare.str.replace(r"\s*%$", "")
        if self.thousands:
            mark, point = re.escape(self.thousands), re.escape(self.decimal)
            grouped = rf"^[-+]?(?:\d{{1,3}}(?:{mark}\d{{3}})+|\d+)(?:{point}\d*)?(?:[eE][-+]?\d+)?$"
            bare = bare.set(~bare.str.contains(grouped).fill_null(False), None)
            bare = bare.str.replace_all(self.thousands, "", literal=True)
        if self.decimal != ".":
            foreign = bare.str.contains(".", literal=True).fill_null(False)
            bare = bare.set(foreign, None).str.replace(self.decimal, ".", literal=True)
        return bare.cast(pl.Float64, strict=False)


def _bare(words: pl.Series) -> pl.Series:
    """Texts without currencies, with a plain minus for − and for the parentheses of accountants."""
    bare = words.str.replace_all(f"[{_BLANKS}]", " ").str.replace_all("’", "'", literal=True).str.strip_chars()
    bare = bare.str.replace(r"^\((.*)\)$", "-$1").str.replace("−", "-", literal=True)
    bare = bare.str.replace(rf"^([-+]?)\s*(?:{_CURRENCY})\s*([-+]?)", "$1$2")
    return bare.str.replace(rf"\s*(?:{_CURRENCY})$", "")


def number_style(words: pl.Series, comma: bool) -> tuple[NumberStyle, str] | None:
    """The style in which all of these texts are numbers, and the currency; None if no style fits, or none is needed.

    `comma`: the numbers of the file have decimal commas.
    """
    some = words.drop_nulls().unique()
    if not some.len() or not some.str.contains(r"\d").all():
        return None
    marks = some.str.extract_all(rf"(?:{_CURRENCY})").explode().drop_nulls().unique().to_list()
    percent = some.str.contains("%", literal=True)
    if len(marks) > 1 or (percent.any() and not percent.all()):
        return None
    bare = _bare(some).str.replace(r"\s*%$", "")
    for thousands, decimal in _layouts(bare, comma):
        style = NumberStyle(thousands, decimal, bool(percent.any()))
        if style.read(some).null_count() == 0:
            return style, marks[0] if marks else ""
    return None


def _layouts(bare: pl.Series, comma: bool) -> list[tuple[str, str]]:
    """Marks of thousands and decimals, the likeliest first: 1,234 is a thousand, but 0,123 and 1,23 are not."""
    blanks, apostrophes = bare.str.contains(" ", literal=True).any(), bare.str.contains("'", literal=True).any()
    points, commas = bare.str.contains(".", literal=True).any(), bare.str.contains(",", literal=True).any()
    if blanks or apostrophes:
        mark = " " if blanks else "'"
        return [(mark, ",")] if commas else [(mark, ".")]
    grouped = bare.str.contains(r"^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?$") | ~bare.str.contains(",", literal=True)
    american, european = (",", "."), (".", ",")
    if not commas:
        several = bare.str.contains(r"\..*\.").any()
        return [european] if points and (comma or several) else [("", ".")]
    if comma:
        return [("", ","), european]
    return [american] if grouped.all() else [("", ","), european]


def hours(words: pl.Series) -> pl.Series:
    """Times of day in hours after midnight; null where a text is not a time of day.

    >>> hours(pl.Series(["08:30", "12:15 am", "11:45:36 PM", "25:00"])).to_list()
    [8.5, 0.25, 23.76, None]
    """
    parts = words.str.strip_chars().str.extract_groups(_TIME)
    hour, minute, second, half = (parts.struct.field(name) for name in parts.struct.fields)
    h, m = hour.cast(pl.Float64, strict=False), minute.cast(pl.Float64, strict=False)
    s = second.cast(pl.Float64, strict=False).fill_null(0.0)
    half = half.str.to_lowercase()
    twelve = half.is_not_null()
    valid = (m < 60) & (s < 60) & pl.select(pl.when(twelve).then((h >= 1) & (h <= 12)).otherwise(h < 24)).to_series()
    h = pl.select(pl.when(twelve).then(h % 12 + 12 * (half == "p").cast(pl.Float64)).otherwise(h)).to_series()
    value = h + m / 60 + s / 3600
    return value.set(~valid.fill_null(False), None).rename(words.name)


def hours_of(times: pl.Series) -> pl.Series:
    """Values of Polars' type Time in hours after midnight."""
    return times.cast(pl.Int64).cast(pl.Float64) / 3_600e9


def truths(words: pl.Series) -> pl.Series | None:
    """Words for true and false as booleans, if all are of one pair and both occur; else None.

    >>> truths(pl.Series(["Yes", "no", None])).to_list(), truths(pl.Series(["yes", "maybe"]))
    ([True, False, None], None)
    """
    lower = words.str.to_lowercase()
    if set(lower.drop_nulls().unique().to_list()) not in _PAIRS:
        return None
    return lower.replace_strict(TRUTH, default=None, return_dtype=pl.Boolean)


# -- dates -------------------------------------------------------------------------------------------------------------

_ISO = re.compile(r"\d{4}-\d\d?-\d\d?([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:?\d\d)?)?")
_DATED = re.compile(r"(\d{1,2}|\d{4})([/.-])\d{1,2}\2(\d{4}|\d\d)(?:[ T](\d{1,2}:\d\d(:\d\d)?))?")
_NAMED = ("%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d. %B %Y", "%d-%b-%y")
"""Dates with names of months, in English."""


@dataclass(frozen=True)
class Dates:
    """A column of texts, read as dates.

    Attributes
    ----------
    values : pl.Series
        The dates or times.
    format : str
        Their format, "" for ISO's.
    instead : str
        Another format that all of them have, with which they are other dates; "" if there is none.
    """

    values: pl.Series
    format: str = ""
    instead: str = ""


def dates(words: pl.Series, known: list[str]) -> Dates | None:
    """The dates or times in a column of texts; None if not all of them are.

    If both orders of day and month are possible, the order of another column (`known` formats) is used, or the one in
    which the rows are sorted. If neither decides, the month comes first in dates with slashes (as in 12/31/2027), and
    the day in all others.
    """
    some = words.drop_nulls().head(20).to_list()
    iso = [_ISO.fullmatch(word) for word in some]
    if some and all(iso):
        timed = any(match and match[1] for match in iso)
        values = read_times(words, "") if timed else words.str.to_date(strict=False)
        return None if (words.is_not_null() & values.is_null()).any() else Dates(values)
    by_format = {format: read_dates(words, format) for format in _formats(some)}
    possible = [format for format, values in by_format.items() if values.null_count() == words.null_count()]
    if not possible:
        return None
    chosen = next((format for format in possible if format in known), None) or _in_order(by_format, possible)
    if chosen is None:
        month_first = [format for format in possible if format.startswith("%m")]
        chosen = month_first[0] if "/" in some[0] and month_first else possible[0]
    others = [format for format in possible if not by_format[format].equals(by_format[chosen])]
    return Dates(by_format[chosen], chosen, others[0] if others else "")


def _formats(some: list[str]) -> list[str]:
    """Formats that the first texts allow."""
    first = _DATED.fullmatch(some[0]) if some else None
    if first is None:
        return list(_NAMED) if some and re.search(r"[A-Za-z]{3}", some[0]) else []
    mark, year = first[2], "%Y" if len(first[3]) == 4 else "%y"
    time = "" if first[4] is None else " %H:%M:%S" if first[5] else " %H:%M"
    if len(first[1]) == 4:
        return [] if len(first[3]) == 4 else [f"%Y{mark}%m{mark}%d{time}"]
    return [f"%d{mark}%m{mark}{year}{time}", f"%m{mark}%d{mark}{year}{time}"]


def _in_order(found: dict[str, pl.Series], possible: list[str]) -> str | None:
    """The only format by which the rows are in the order of time, forwards or backwards."""
    orderly = []
    for format in possible:
        values = found[format].drop_nulls()
        if values.n_unique() >= ORDERED and (values.is_sorted() or values.is_sorted(descending=True)):
            orderly.append(format)
    return orderly[0] if len(orderly) == 1 else None


def read_dates(words: pl.Series, format: str) -> pl.Series:
    """Texts as dates, or as times if the format has hours; null where a text does not have the format."""
    return read_times(words, format) if "%H" in format else words.str.to_date(format or None, strict=False)


def read_times(words: pl.Series, format: str) -> pl.Series:
    """Texts as times."""
    return words.str.to_datetime(format or None, strict=False, time_unit="us")
