"""Cautions: facts about rows and predictions that a person should know before trusting a score or a prediction.

Each is a typed record with numbers, and with `words` for people. The command line prints them as notes, and the report
shows them above the scores.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caution:
    """A reason for doubt: about the scores of a model, or about its predictions for some rows."""

    @property
    def words(self) -> str:
        """The fact, what it means, and what to do, in a sentence or two."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Dropped(Caution):
    """Rows that were dropped because they have no target.

    >>> print(Dropped(37, 153))
    37 of 153 rows were dropped because they have no target: if targets are missing for a reason, such as large values \
that could not be measured, neither the scores nor the predictions hold for such rows
    """

    rows: int
    total: int

    @property
    def words(self) -> str:
        return (
            f"{self.rows:,} of {self.total:,} rows were dropped because they have no target: if targets are missing "
            "for a reason, such as large values that could not be measured, neither the scores nor the predictions "
            "hold for such rows"
        )


def percent(share: float) -> str:
    """A share for a sentence.

    >>> percent(0.8), percent(0.0432), percent(0.0004), percent(1.0), percent(0.99999)
    ('80 %', '4.3 %', '0.04 %', '100 %', '99.999 %')
    """
    value = 100 * share
    if value >= 99.95 and share < 1:
        digits = 6
    else:
        digits = 2 if value < 10 or share < 1 else 3
    text = f"{value:.{digits}g}"
    return f"{text if 'e' not in text else f'{value:.4f}'} %"
