"""Drift: columns whose values are distributed differently from those of the training rows.

A model keeps, for each column, the shares of its training rows between the deciles of a number, or by the levels of a
category. For new rows the distance of a number is the largest difference of the two distribution functions at the
deciles (Kolmogorov's), and that of a category half the sum of the differences of all shares (the total variation). A
column has drifted if the distance is above 0.2 and above what chance gives once in ten thousand tables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import missing_entries
from mercer.models.judging.cautions import Caution, percent
from mercer.words import number

Matrix = NDArray[np.float64]

LARGE = 0.2
"""The smallest distance of a drift: a fifth of the rows have moved."""
CHANCE = 1e-4
"""The probability that an unchanged column is called a drift, at most."""
PARTS, LEVELS = 10, 30
"""The number of parts of a number's range, and of the most frequent levels that are kept."""


@dataclass(frozen=True)
class Distribution:
    """The distribution of a column in the training rows, in a few shares.

    Attributes
    ----------
    edges : tuple of float
        The deciles of a number, ascending; empty for a category.
    levels : tuple of str
        The most frequent levels of a category; empty for a number.
    shares : tuple of float
        The shares of the present values up to each edge and above the last one, or of each level and all others.
    rows : int
        The number of present values.

    Examples
    --------
    >>> import numpy as np
    >>> d = Distribution.of(np.arange(100.0))
    >>> len(d.edges), round(sum(d.shares), 9)
    (9, 1.0)
    >>> Distribution.of(np.array(["b", "a", "b", None], dtype=object))
    Distribution(edges=(), levels=('b', 'a'), shares=(0.6666666666666666, 0.3333333333333333, 0.0), rows=3)
    """

    edges: tuple[float, ...]
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    rows: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> Distribution | None:
        """The distribution of numbers, texts, or yes and no; None for dates, lists, and columns without values."""
        present = values[~missing_entries(values)]
        if not len(present) or not _has_distribution(present):
            return None
        edges: tuple[float, ...] = ()
        levels: tuple[str, ...] = ()
        if present.dtype.kind in "iuf":
            inner = np.quantile(present.astype(np.float64), np.arange(1, PARTS) / PARTS, method="lower")
            edges = tuple(np.unique(inner).tolist())
        else:
            levels = tuple(level for level, _ in Counter(_texts(present)).most_common(LEVELS))
        draft = cls(edges, levels, (), len(present))
        return cls(edges, levels, tuple((draft.counts(present) / len(present)).tolist()), len(present))

    def counts(self, values: NDArray[Any]) -> Matrix:
        """The numbers of present values up to each edge and above the last one, or of each level and all others."""
        present = values[~missing_entries(values)]
        if self.levels:
            times = Counter(_texts(present))
            listed = [float(times[level]) for level in self.levels]
            return np.array([*listed, len(present) - sum(listed)])
        place = np.searchsorted(self.edges, present.astype(np.float64), side="left")
        return np.bincount(place, minlength=len(self.edges) + 1).astype(np.float64)


@dataclass(frozen=True)
class Drift(Caution):
    """A column whose values are distributed differently from those of the training rows.

    Attributes
    ----------
    column : str
        Its name.
    distance : float
        The distance between the two distributions, from 0 to 1.
    threshold : float
        The largest distance that is no drift.
    where : float, str or None
        The number, or the level, at which the shares differ most; None for all levels that are not listed.
    before, now : float
        The share of training rows and of new rows up to this number, or of this level.
    """

    column: str
    distance: float
    threshold: float
    where: float | str | None
    before: float
    now: float

    @property
    def notable(self) -> bool:
        """Whether the distance is large, and larger than chance explains."""
        return self.distance > self.threshold

    @property
    def words(self) -> str:
        what = "have values that are rare or new" if self.where is None else f"have {self.where!r}"
        if isinstance(self.where, float):
            what = f"are at most {number(self.where, padded=False)}"
        return (
            f"column {self.column!r} differs from the training rows: {percent(self.now)} of these rows {what}, against "
            f"{percent(self.before)} of the training rows. The predictions may be worse than the scores say"
        )


def drift(column: str, training: Distribution, counts: Matrix) -> Drift | None:
    """The drift of a column, from the counts of new rows by `Distribution.counts`; None if all values are missing.

    >>> import numpy as np
    >>> training = Distribution.of(np.arange(1000.0))
    >>> moved = drift("age", training, training.counts(np.arange(500.0, 1500.0)))
    >>> print(moved)
    column 'age' differs from the training rows: 0 % of these rows are at most 499, against 50 % of the training rows. \
The predictions may be worse than the scores say
    >>> drift("age", training, training.counts(np.arange(0.0, 1000.0, 7.0))).notable
    False
    """
    m = counts.sum()
    if not m:
        return None
    before, now = np.asarray(training.shares), counts / m
    rows = 1.0 / training.rows + 1.0 / m
    if training.levels:
        differences = now - before
        distance = float(np.abs(differences).sum() / 2)
        at = int(np.abs(differences).argmax())
        where: float | str | None = None if at == len(training.levels) else training.levels[at]
        chance = np.sqrt((len(before) * np.log(2) - np.log(CHANCE)) / 2 * rows)  # Bretagnolle and Huber-Carol
    else:
        before, now = np.cumsum(before)[:-1], np.cumsum(now)[:-1]
        if not len(before):
            return None
        at = int(np.abs(now - before).argmax())
        distance, where = float(abs(now[at] - before[at])), training.edges[at]
        chance = np.sqrt(np.log(2 / CHANCE) / 2 * rows)  # Dvoretzky, Kiefer, Wolfowitz and Massart
    return Drift(column, distance, float(max(LARGE, chance)), where, float(before[at]), float(now[at]))


def distributions(columns: dict[str, NDArray[Any]]) -> dict[str, Distribution]:
    """The distributions of the columns that have one."""
    found = {name: Distribution.of(values) for name, values in columns.items()}
    return {name: distribution for name, distribution in found.items() if distribution is not None}


def _has_distribution(present: NDArray[Any]) -> bool:
    if present.dtype.kind in "iufb":
        return True
    return present.dtype.kind == "O" and all(isinstance(value, (str, bool)) for value in present[:PARTS])


def _texts(present: NDArray[Any]) -> list[str]:
    return [str(value) for value in present.tolist()]
