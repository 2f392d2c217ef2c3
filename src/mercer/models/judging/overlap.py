"""Rows that a model has seen: the digests of its training rows, and how many other rows are copies of them.

A test row that equals a training row in every column and the target says nothing about new rows: a model that only
memorises its rows would predict it correctly. Tables of few categories have equal rows by chance, which is no reason
for doubt; so the share of copies is compared with the share that independent columns with these values would have.
Texts of which most differ, such as messages, are never equal by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.columns import as_array, tabled
from mercer.data.digests import BITS, Keys, column_keys, row_digests
from mercer.data.missing import missing_entries
from mercer.data.points import length
from mercer.models.judging.cautions import Caution, percent
from mercer.words import count

Digests = NDArray[np.int64]

KEPT = 10_000
"""The largest number of digests that a model keeps: 80 kB. Of more rows it keeps those with the smallest digests."""
MANY = 0.01
"""A smaller share of copies than this among test rows hardly changes a score."""
BEYOND_CHANCE = 2.0
"""Copies are not due to chance if their share is greater than this many times the share that chance explains."""


@dataclass(frozen=True)
class Overlap(Caution):
    """Rows that equal training rows of the model in every column and the target.

    Attributes
    ----------
    rows, of : int
        The number of such rows (an estimate if not `exact`), and of all rows that were compared.
    chance : float
        The share of rows that would equal a training row if columns were independent.
    exact : bool
        Whether the digests of all training rows are known.
    held_out : bool
        Whether the rows were held out from the fit; otherwise they come from another table.
    """

    rows: int
    of: int
    chance: float
    exact: bool = True
    held_out: bool = True

    @property
    def share(self) -> float:
        """The share of copies among the rows."""
        return self.rows / max(self.of, 1)

    @property
    def notable(self) -> bool:
        """Whether there are more copies than chance explains, and among held-out rows enough to change a score."""
        least = MANY if self.held_out else 0.0
        return self.rows > 0 and self.share >= least and self.share > BEYOND_CHANCE * self.chance

    @property
    def words(self) -> str:
        about = "" if self.exact else "about "
        these = f"{about}{self.rows:,} of {count(self.of, 'row')} ({percent(self.share)})"
        if self.held_out:
            return (
                f"{about}{self.rows:,} of {count(self.of, 'held-out row')} ({percent(self.share)}) equal a training "
                "row in every column and the target, so the scores may be too good. If several rows describe the same "
                "thing, remove the copies, or hold them out together: name the column that identifies it as the group"
            )
        return (
            f"{these} {'is' if self.rows == 1 and self.exact else 'are'} also among the training rows, equal in every "
            "column that the model was given and in the target: the scores are too good for new rows"
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """The digests of all training rows of a model, targets included, even if its last fit used only some of them.

    Attributes
    ----------
    digests : Digests
        The digests, sorted. Of more than 10,000 rows only the smallest digests are kept; as digests are random numbers,
        these stand for a random sample of the rows.
    limit : int
        The largest digest that would have been kept.
    rows : int
        The number of training rows.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> overlap = Seen.of(X, y).overlap(X[5:], y[5:], held_out=False)
    >>> print(overlap)
    5 of 5 rows (100 %) are also among the training rows, equal in every column that the model was given and in the \
target: the scores are too good for new rows
    """

    digests: Digests
    limit: int
    rows: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Seen) or (self.limit, self.rows) != (other.limit, other.rows):
            return False
        return np.array_equal(self.digests, other.digests)

    def __hash__(self) -> int:
        return hash((self.limit, self.rows, self.digests.tobytes()))

    @classmethod
    def of(cls, X: Any, y: Any) -> Seen | None:
        """The digests of training rows; None if their values have none, as graphs."""
        keys = keys_with_targets(X, y)
        if keys is None:
            return None
        digests = np.sort(row_digests(keys))
        largest = 2**BITS - 1
        if len(digests) <= KEPT:
            return cls(digests, largest, length(X))
        return cls(digests[:KEPT], int(digests[KEPT - 1]), length(X))

    def overlap(self, X: Any, y: Any, *, held_out: bool = True) -> Overlap | None:
        """How many of these rows are copies of training rows; None if they have no digests, or too few are comparable.

        Parameters
        ----------
        X, y : array or frame, array
            Rows and their targets, with the columns of the training rows in the same order.
        held_out : bool
            Whether the rows were held out from the fit.
        """
        keys = keys_with_targets(X, y)
        if keys is None or not len(keys[0]):
            return None
        digests = row_digests(keys)
        compared = digests[digests <= self.limit]
        if not len(compared):
            return None
        copies = int(np.isin(compared, self.digests).sum())
        n, exact = len(digests), self.rows <= KEPT
        rows = copies if exact else round(copies * n / len(compared))
        return Overlap(rows, n, 0.0 if _has_free_text(X) else _chance(keys, self.rows), exact, held_out)


def keys_with_targets(X: Any, y: Any) -> list[Keys] | None:
    """The keys of the columns and, last, of the targets; None if there are none."""
    columns, target = column_keys(X), column_keys(np.asarray(y)[:, None])
    return None if columns is None or target is None else [*columns, *target]


def _has_free_text(X: Any) -> bool:
    """Whether a column holds texts most of which differ."""
    if isinstance(X, list):
        columns: list[NDArray[Any]] = [np.fromiter(X, dtype=object, count=len(X))]
    elif sp.issparse(X):
        return False
    else:
        columns = [as_array(column, name) for name, column in tabled(X).items()]
    for column in columns:
        texts = [value for value in column if isinstance(value, str)] if column.dtype.kind in "OUT" else []
        if 2 * len(set(texts)) > len(texts) > 0 and len(texts) + int(missing_entries(column).sum()) == len(column):
            return True
    return False


def _chance(keys: list[Keys], n: int) -> float:
    """The probability that a row equals one of n others if columns are independent.

    Two rows are equal with probability Πⱼ qⱼ, where qⱼ is the share of pairs of rows with equal values in column j.
    """
    m, equal = len(keys[0]), 1.0
    for column in keys:
        times = np.unique(column, return_counts=True)[1]
        equal *= float((times * (times - 1.0)).sum()) / max(m * (m - 1.0), 1.0)
    return float(-np.expm1(n * np.log1p(-min(equal, 1 - 1e-12))))
