"""Recall and precision of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.models.labels import labels


@dataclass(frozen=True)
class ClassScore:
    """How well one class is predicted.

    Attributes
    ----------
    label
        The class.
    rows, predicted : int
        The number of rows of the class, and of rows that are predicted to be of it.
    recall : float
        The share of its rows that are predicted to be of it; NaN if it has none.
    precision : float
        The share of the rows that are predicted to be of it and are; NaN if there are none.
    confused
        The classes that its rows are most often predicted to be instead, with their numbers.
    """

    label: Any
    rows: int
    predicted: int
    recall: float
    precision: float
    confused: tuple[tuple[Any, int], ...]

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision; 0 if no row of the class is found."""
        right = 0.0 if self.rows == 0 else self.recall * self.rows
        return 2 * right / (self.rows + self.predicted)


def scores_by_class(y: Any, predictions: Any, confusions: int = 3) -> tuple[ClassScore, ...]:
    """Recall and precision of each class that occurs or is predicted, the most frequent class first.

    Parameters
    ----------
    y, predictions : array
        True and predicted labels, shape (n,).
    confusions : int
        The largest number of other classes to name.

    Examples
    --------
    >>> for one in scores_by_class(["a", "a", "a", "b"], ["a", "a", "b", "b"]):
    ...     print(one.label, f"recall {one.recall:.2f}, precision {one.precision:.2f}, F1 {one.f1:.2f}", one.confused)
    a recall 0.67, precision 1.00, F1 0.80 (('b', 1),)
    b recall 1.00, precision 0.50, F1 0.67 ()
    """
    truth, guess = np.asarray(y).ravel(), np.asarray(predictions).ravel()
    if len(truth) != len(guess):
        raise InvalidInput(
            "There must be as many true as predicted labels",
            got=f"{len(truth)} and {len(guess)}",
            advice="Pass both labels of the same rows.",
        )
    together: NDArray[Any] = np.concatenate([truth, guess])
    if truth.dtype.kind != guess.dtype.kind:
        together = labels([*truth.tolist(), *guess.tolist()], 2 * len(truth))  # refuses texts among numbers
    scores = []
    for label in np.unique(together):
        members, chosen = truth == label, guess == label
        right = int((members & chosen).sum())
        wrong, times = np.unique(guess[members & ~chosen], return_counts=True)
        most = np.argsort(-times, kind="stable")[:confusions]
        rows, predicted = int(members.sum()), int(chosen.sum())
        scores.append(
            ClassScore(
                label.item() if isinstance(label, np.generic) else label,
                rows,
                predicted,
                right / rows if rows else np.nan,
                right / predicted if predicted else np.nan,
                tuple(zip(wrong[most].tolist(), times[most].tolist())),
            )
        )
    return tuple(sorted(scores, key=lambda one: -one.rows))
