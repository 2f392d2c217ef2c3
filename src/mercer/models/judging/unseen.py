"""Values that a model has not seen in its training rows: classes, categories, numbers far away, missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.missing import missing_entries
from mercer.models.judging.cautions import Caution, percent
from mercer.words import count, first_few, number

CATEGORIES = 1000
"""The largest number of different texts of a column that a model keeps."""
REPORTED = 5
"""The largest number of columns that are named."""


@dataclass(frozen=True)
class UnseenClasses(Caution):
    """Rows of classes that no training row had: no prediction can be right for them.

    Attributes
    ----------
    classes
        The labels.
    rows, of : int
        The number of rows with such a label, and of all rows.
    """

    classes: tuple[Any, ...]
    rows: int
    of: int

    @property
    def notable(self) -> bool:
        """Whether there is such a row."""
        return self.rows > 0

    @property
    def words(self) -> str:
        have, a = ("has", "a class") if self.rows == 1 else ("have", "classes")
        return (
            f"{count(self.rows, 'row')} of {self.of:,} {have} {a} that no training row had "
            f"({first_few(self.classes, 5, repr)}): the model never predicts such a class, and these rows count as "
            "errors"
        )


def unseen_classes(model: Any, y: Any) -> UnseenClasses | None:
    """The labels among y that a fitted classifier does not know; None for a regressor.

    >>> import numpy as np, mercer as mc
    >>> model = mc.LogisticRegression().fit(np.arange(6.0)[:, None], ["a", "a", "a", "b", "b", "b"])
    >>> print(unseen_classes(model, ["a", "c", "b"]))
    1 row of 3 has a class that no training row had ('c'): the model never predicts such a class, and these rows count \
as errors
    """
    if not is_classifier(model):
        return None
    y = np.asarray(y)
    unseen = ~np.isin(y, np.asarray(model.classes_))
    return UnseenClasses(tuple(np.unique(y[unseen]).tolist()), int(unseen.sum()), len(y))


@dataclass(frozen=True)
class UnseenValues(Caution):
    """Rows with a category that no training row had, or with a number far outside the training range.

    Attributes
    ----------
    column, rows : str, int
        The column, and the number of such rows.
    low, high : float or None
        The training range of a number; None for a category.
    more : int
        The number of further columns with such rows.
    """

    column: str
    rows: int
    low: float | None = None
    high: float | None = None
    more: int = 0

    @property
    def words(self) -> str:
        what = "a value that is not in the training rows"
        if self.low is not None and self.high is not None:
            what = f"a number far outside the training range ({number(self.low)} to {number(self.high)})"
        have = "has" if self.rows == 1 else "have"
        text = f"column {self.column!r}: {count(self.rows, 'row')} {have} {what}; these predictions are unreliable"
        if not self.more:
            return text
        return f"{text}. {count(self.more, 'more column has', 'more columns have')} such values, too"


@dataclass(frozen=True)
class NewlyMissing(Caution):
    """Missing values in columns that had none in the training rows.

    Attributes
    ----------
    cells : int
        The number of missing values.
    columns : tuple of str
        The columns, those with most of them first.
    """

    cells: int
    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        return (
            f"{count(self.cells, 'missing value')} in columns that had none in the training rows "
            f"({first_few(self.columns, REPORTED, repr)}); the predictions for these rows are less reliable"
        )


@dataclass(frozen=True)
class Outside(Caution):
    """Rows with a number or a date outside the range of the training rows, where a model extrapolates.

    Attributes
    ----------
    rows, of : int
        The number of such rows, and of all rows.
    columns : tuple of str
        The columns, those with most such rows first.
    chance : float
        The share of such rows among rows like the training rows: each of d columns of n rows is left with a probability
        of 2/(n + 1).
    """

    rows: int
    of: int
    columns: tuple[str, ...]
    chance: float

    @property
    def share(self) -> float:
        """The share of such rows."""
        return self.rows / max(self.of, 1)

    @property
    def notable(self) -> bool:
        """Whether more than 5 % of the rows, and twice as many as chance explains, are outside."""
        return self.share > max(0.05, 2 * self.chance)

    @property
    def words(self) -> str:
        return (
            f"{self.rows:,} of {count(self.of, 'row')} ({percent(self.share)}) have a number or date outside the range "
            f"of the training rows, most often in {first_few(self.columns, 3, repr)}: the model extrapolates, and "
            "these predictions are less reliable"
        )


# -- columns -----------------------------------------------------------------------------------------------------------


def value_ranges(columns: dict[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """The values of every column: the smallest and the largest number or date, or the different texts if they repeat.

    >>> import numpy as np
    >>> value_ranges({"n": np.array([2, 1, 3]), "t": np.array(["a", "b", "a", "b"], dtype=object)})
    {'n': [1, 3], 't': ['a', 'b']}
    """
    ranges: dict[str, list[Any]] = {}
    for name, values in columns.items():
        present = values[~missing_entries(values)]
        if not len(present):
            continue
        if present.dtype.kind in "iuf":
            ranges[name] = [present.min().item(), present.max().item()]
        elif present.dtype.kind == "M":
            ranges[name] = [str(present.min()), str(present.max())]
        elif present.dtype == object and all(isinstance(value, str) for value in present[:REPORTED]):
            levels = set(map(str, present.tolist()))
            if len(levels) <= min(CATEGORIES, len(present) // 2):
                ranges[name] = sorted(levels)
    return ranges


def far_rows(values: NDArray[Any], seen: list[Any], is_number: bool) -> int:
    """The number of rows with new texts, or with numbers more than half a range outside the range that was seen."""
    present = values[~missing_entries(values)]
    if is_number:
        low, high = map(float, seen)
        return int((np.abs(present.astype(np.float64) - (low + high) / 2) > high - low).sum())
    known = set(seen)
    return sum(times for value, times in Counter(map(str, present.tolist())).items() if value not in known)


def named(rows: Counter[str], ranges: dict[str, list[Any]], numbers: Iterable[str]) -> list[UnseenValues]:
    """The columns with most unseen values."""
    columns = [(name, times) for name, times in rows.most_common() if times]
    cautions = []
    for k, (name, times) in enumerate(columns[:REPORTED]):
        low, high = map(float, ranges[name]) if name in numbers else (None, None)
        more = len(columns) - REPORTED if k == REPORTED - 1 and len(columns) > REPORTED else 0
        cautions.append(UnseenValues(name, times, low, high, more))
    return cautions
