"""The role of a table's column: by its data type first, and by its values if the type leaves it open."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data import molecules
from mercer.data.assignment import OTHERS
from mercer.data.columns import as_array, as_level, is_numeric, read, read_array
from mercer.data.frames import Levels, declared_levels
from mercer.data.missing import missing_entries
from mercer.errors import InvalidInput
from mercer.words import cut

Array = NDArray[Any]

Basis = Literal["assigned", "type", "values", "name"]
"""The basis of the role of a column: the user, its data type, its values, or its name together with its values."""
PERIODS = {"yearly": 365.2425, "weekly": 7.0, "daily": 1.0}
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?")
DECIMAL = re.compile(r"[-+]?(\d+|\d*[.,]\d+)([eE][-+]?\d+)?")
IDENTIFIER = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key|index|rowid)($|[\W_\d]))|^ID|[a-z]I[dD]$")
ALIGNED = 20
"""Texts of one length are taken to be aligned if they have at least this many letters."""
TIME = re.compile(r"(?i)year|month|week|day|hour|minute|second|date|time|age|step|period|epoch|^t$")
CODE = re.compile(
    r"(?i:(^|[\W_])(id|ids|code|zip|zipcode|postcode|postal|plz|fips|sku)$)"
    r"|(?i:zip.?code|post(al)?.?code)$|(?i:[a-z][\W_](number|no|nr)\.?$)|[a-z](I[dD]|Code|Number|Nr)$"
)
"""Names of columns whose whole numbers are codes: hospital_id, storeId, zip, area code, house number."""
SHARED_CODE = 2
"""Codes repeat: each is shared by at least this many rows on average."""


@dataclass(frozen=True)
class Role:
    """The role of one column.

    Attributes
    ----------
    name, dtype : str
        Of the column.
    role : str
        In words: "number", "category", "exposure", …, or "left out".
    why : str
        How this was decided.
    kind : str
        How the column is read, or "" if it is not a feature.
    spread : float
        A robust standard deviation of its numbers.
    levels
        The levels of an ordered category, from the lowest to the highest.
    periods : tuple of float
        The periods of a date, in days.
    aligned : bool
        Whether texts are taken to be aligned, place by place: at least 20 letters each, all of one length.
    missing : int
        The number of missing values.
    installable : bool
        Whether texts look like molecules, which they would be read as if RDKit were installed.
    by : Basis
        The basis of the role.
    kernel : str
        The names of the leaves that compare its values; "" if the column is left out, or no kernel was made yet.
    """

    name: str
    dtype: str
    role: str
    why: str
    kind: str
    spread: float = 1.0
    levels: tuple[Any, ...] = ()
    periods: tuple[float, ...] = ()
    aligned: bool = False
    missing: int = 0
    installable: bool = False
    by: Basis = "type"
    kernel: str = ""


def role_of(name: str, column: Any, assigned: str | None = None) -> Role:
    """The role of a column: the assigned one, or the one that its type and values suggest."""
    if assigned in OTHERS:
        words = "left out" if assigned == "drop" else assigned
        return Role(name, _dtype(column), words, f"declared as {assigned!r}", "", by="assigned")
    A = as_array(column, name)
    missing = missing_entries(A)
    dtype = _dtype(column)
    present = A[~missing]

    by: Basis = "type" if assigned is None else "assigned"

    def role(kind: str, why: str, **more: Any) -> Role:
        if missing.any() and not missing.all():
            why += f"; {int(missing.sum())} missing"
        words = "category" if kind == "code" else kind or "left out"
        return Role(name, dtype, words, why, kind, missing=int(missing.sum()), by=by, **more)

    if not len(present):
        return role("", "no value is present")
    declared = declared_levels(column)
    if assigned is None:
        kind, why, by = _kind(name, declared, present)
    else:
        kind, why = _kind_of_role(assigned, present), f"declared as {assigned}"
    if not kind:
        return role(kind, why)
    levels = _levels(declared, present) if kind == "ordered" else ()
    values = read_array(A, missing, kind, name, levels)
    values = values[~(missing if values.dtype == object else np.isnan(values))]
    if kind == "molecule":  # RDKit's molecules are not equal, their texts are
        values = present
    different = len(set(values)) if values.dtype == object else len(np.unique(values))
    if different == 1 and not missing.any():
        return role("", "constant")
    if kind == "text" and _aligned(present):
        return role(kind, f"{why}, all of {len(present[0])} letters: aligned", aligned=True)
    if kind == "text":
        return role(kind, why, installable=assigned is None and _smiles(present) == "needs RDKit")
    if kind in ("tokens", "molecule"):
        return role(kind, why)
    if kind in ("category", "code"):
        if assigned is None and kind == "category":
            why = f"{different} different value{'s' * (different > 1)}"
        return role(kind, why)
    if different == 1:
        return role("code" if kind == "number" else kind, f"{why}, all present values are equal", levels=levels)
    spread = _spread(values)
    if not 1e-90 < spread < 1e90:
        raise InvalidInput(
            f"Column {name!r} must spread between 1e-90 and 1e90",
            got=f"{spread:.3g}",
            advice="Change the unit of the column.",
        )
    if kind == "date":
        periods = _periods(values)
        days = f"{values.max() - values.min():.4g} days"
        parts = ", ".join(["trend", *periods])
        return role(kind, f"{why} over {days}: {parts}", spread=spread, periods=tuple(PERIODS[p] for p in periods))
    if kind == "ordered":
        return role(kind, f"{why}: {len(levels)} levels", spread=spread, levels=levels)
    return role(kind, f"{why}, spread {spread:.3g}", spread=spread)


def _dtype(column: Any) -> str:
    return cut(str(getattr(column, "dtype", "object")), 24)


def _kind_of_role(role: str, present: Array) -> str:
    """How a column of this role is read."""
    return _category(present) if role == "category" else role


def _category(present: Array) -> str:
    """How categories are read: as codes if they are numbers or booleans."""
    return "code" if all(map(is_numeric, set(map(type, present)))) else "category"


def _kind(name: str, declared: Levels | None, present: Array) -> tuple[str, str, Basis]:
    """How to read a column without an assigned role, why, and what decided it."""
    if declared is not None:
        if declared.ordered:
            return "ordered", "ordered categories", "type"
        return _category(present), "categories", "type"
    if present.dtype.kind == "b":
        return "code", "booleans", "type"
    if present.dtype.kind == "M":
        return "date", "dates", "type"
    if present.dtype.kind in "iufm":
        return kind_of_numbers(name, present)
    return _kind_of_objects(name, present)


def kind_of_numbers(name: str, present: Array) -> tuple[str, str, Basis]:
    """How to read a column of numbers without an assigned role ("" to leave it out), why, and what decided it."""
    values = np.unique(present)
    if len(values) == 2 and len(present) > 2:
        return "code", "two different numbers", "values"
    whole = present.dtype.kind in "iu" or (present.dtype.kind == "f" and bool((present == np.floor(present)).all()))
    if whole and CODE.search(name) and values[0] >= 0 and SHARED_CODE * len(values) <= len(present):
        return "code", f"its name suggests codes, and its {len(values):,} different whole numbers repeat", "name"
    if whole and len(values) == len(present) and len(present) > 2:
        if IDENTIFIER.search(name):
            return "", "an identifier: its name says so, and no two rows share a number", "name"
        reach = float(values[-1]) - float(values[0]) + 1
        # Measured numbers would repeat this often if they were spread evenly, and more often if not.
        repeats = len(values) ** 2 / (2 * reach)
        if repeats >= 10 and 0 <= values[0] <= 1 + 0.05 * reach and not TIME.search(name):
            return "", "an identifier: whole numbers in every row, all different", "values"
    return "number", "numbers", "type"


def _kind_of_objects(name: str, present: Array) -> tuple[str, str, Basis]:
    kinds = set(map(type, present))

    def all_are(*classes: type) -> bool:
        return all(issubclass(kind, classes) for kind in kinds)

    if all_are(bool, np.bool_):
        return "code", "booleans", "type"
    if all(issubclass(k, (Set, list, tuple, np.ndarray)) or hasattr(k, "to_list") for k in kinds):
        return "tokens", "lists or sets of tokens", "type"
    if all_are(date):
        return "date", "dates", "type"
    if all(map(is_numeric, kinds)):
        return kind_of_numbers(name, read(present, "number", name))
    odd = [kind for kind in kinds if not issubclass(kind, (str, bool, int, float, np.generic, date))]
    if odd:
        raise InvalidInput(
            f"Column {name!r} must hold numbers, dates, categories, texts or lists of tokens",
            got=f"values of type {odd[0].__name__}",
            advice=f"Convert it, or leave it out with roles={{{name!r}: 'drop'}}.",
            option=f"Leave it out with --drop {name}.",
        )
    if not all_are(str):
        return "category", "categories", "type"
    return _kind_of_words(name, len(present), sorted(set(present)))


def _kind_of_words(name: str, n: int, different: list[str]) -> tuple[str, str, Basis]:
    """How to read the texts of n rows, judged by at most 1 000 different ones."""
    some = different[:: -(-len(different) // 1000)]
    if all(map(ISO_DATE.fullmatch, some)) and all(map(ISO_DATE.fullmatch, different)):
        return "date", "ISO dates", "values"
    decimals = [w for w in some if DECIMAL.fullmatch(w.strip())]
    if len(decimals) >= 0.9 * len(some) and any(set(w) & set(".,") for w in decimals):
        raise InvalidInput(
            f"Column {name!r} must hold numbers, or words",
            got=f"numbers as texts, such as {decimals[0]!r}",
            advice=f"Convert it with pandas.to_numeric, or pass roles={{{name!r}: 'category'}} if these are names.",
            option=f"Add --number {name}, or --category {name} if these are names.",
        )
    smiles = molecules.recognised(some)
    if smiles != "no":
        kind, unread = ("molecule", "") if smiles == "molecules" else ("text", ", not read as molecules without RDKit")
        return kind, f"{len(different)} different SMILES texts{unread}", "values"
    spaced = sum(" " in w.strip() for w in some) / len(some)
    if len(different) == n and n > 2 and spaced < 0.5:
        if IDENTIFIER.search(name):
            return "", "an identifier: its name says so, and no two rows share a value", "name"
        if n >= 10 and sum(any(c.isdigit() for c in w) for w in some) >= 0.9 * len(some):
            return "", "an identifier: one word with digits in every row, all different", "values"
    words, share = sum(len(w.split()) for w in some) / len(some), len(different) / n
    if len(different) > 20 and ((words >= 3 and share > 0.2) or share > 0.5):
        about = f"{len(different)} different texts of about {words:.0f} word{'' if round(words) == 1 else 's'}"
        return "text", about, "values"
    return "category", "categories", "values"


def _smiles(present: Array) -> molecules.Recognised:
    return molecules.recognised(sorted(set(present)))


def _aligned(texts: Array) -> bool:
    """Whether all texts have one length, and consist of many letters and of nothing else, such as DNA around a site."""
    length = len(texts[0])
    return length >= ALIGNED and all(len(text) == length and text.isascii() and text.isalpha() for text in texts)


def _levels(declared: Levels | None, present: Array) -> tuple[Any, ...]:
    """The levels of an ordered category: those of its type, else its values in order."""
    listed = None if declared is None else declared.names
    return tuple(map(as_level, sorted(set(present)) if listed is None else listed))


def _spread(values: Array) -> float:
    """The range of the middle half as a standard deviation; of a larger part if half of the values are equal."""
    for tail, widths in ((0.25, 1.349), (0.1, 2.563), (0.05, 3.290), (0.01, 4.653)):  # a Gaussian's
        low, high = np.quantile(values, [tail, 1 - tail])
        if high > low:
            return float(high - low) / widths
    return float(np.std(values))


def _periods(days: Array) -> list[str]:
    """The periods that dates can show: some are less than half of one apart, all span more than one and a half."""
    times = np.unique(days)
    nearest, span = float(np.diff(times).min()), float(times[-1] - times[0])

    def phases(period: float) -> int:
        return len(np.unique(np.round(times % period, 3)))

    # Local midnights are two different times of day in UTC: summer and winter.
    return [name for name, p in PERIODS.items() if nearest < p / 2 and span >= 1.5 * p and phases(p) >= 3]
