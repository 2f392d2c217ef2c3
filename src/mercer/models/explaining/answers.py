"""The quantity that is explained, as a function of tables: a prediction, or the probability of a class."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.columns import gathered
from mercer.data.frames import column_names, is_frame
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.explaining.additivity import part_of
from mercer.models.labels import position_of_label
from mercer.validation import generator

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

TOGETHER = 20_000
"""The largest number of rows that are predicted in one call."""


def explained_quantity(label: str | None, votes: bool) -> str:
    """The explained quantity, in words: a prediction, or the probability of a class or the vote for it.

    >>> explained_quantity(None, False), explained_quantity("yes", False), explained_quantity("yes", True)
    ('prediction', 'probability of yes', 'vote for yes')
    """
    return "prediction" if label is None else f"{'vote for' if votes else 'probability of'} {label}"


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a model about rows: its prediction, or the probability of one class.

    Attributes
    ----------
    model : estimator
        A fitted regressor or classifier.
    label
        The class whose probability is the answer; None for a regressor.
    terms
        Some terms of the model's function, if only they are the answer.
    """

    model: Any
    label: Any = None
    terms: Callable[[Any], Matrix] | None = None

    @classmethod
    def of(cls, model: Any, label: Any = None) -> Answer:
        """The answer of a model; by default, the probability of the second of two classes."""
        if not is_classifier(model):
            if label is not None:
                raise InvalidInput("`label` is the class of a classifier", got="a regressor", advice="Omit `label`.")
            return cls(model)
        classes = np.asarray(model.classes_)
        return cls(model, classes.tolist()[position_of_label(classes, label)])

    @property
    def words(self) -> str:
        """The quantity, in words.

        >>> Answer(None).words, Answer(None, "yes").words
        ('prediction', 'vote for yes')
        """
        return explained_quantity(None if self.label is None else str(self.label), self.votes)

    @property
    def votes(self) -> bool:
        """Whether the answer is 1 where the class is predicted and 0 elsewhere, by a model without probabilities."""
        return self.label is not None and not hasattr(self.model, "predict_proba")

    def __call__(self, X: Any) -> Matrix:
        """The answers about the rows of X, shape (n,)."""
        parts = [take(X, slice(i, i + TOGETHER)) for i in range(0, length(X), TOGETHER)]
        return np.concatenate([self._of(part) for part in parts])

    def _of(self, X: Any) -> Matrix:
        if self.terms is not None:
            return self.terms(X)
        if self.label is None:
            values = np.asarray(self.model.predict(X), dtype=np.float64)
            if values.ndim > 1:
                raise InvalidInput(
                    "The model must predict one target", got=f"{values.shape[1]}", advice="Fit one model per target."
                )
            return values
        if self.votes:
            return (np.asarray(self.model.predict(X)) == self.label).astype(np.float64)
        position = position_of_label(np.asarray(self.model.classes_), self.label)
        return np.asarray(self.model.predict_proba(X)[:, position], dtype=np.float64)

    def part(self, X: Any, columns: Collection[int]) -> Answer:
        """An answer that changes with these columns of X as this one does, by fewer kernel values if there are such."""
        terms = None if self.label is not None else part_of(self.model, X, columns)
        return self if terms is None else replace(self, terms=terms)

    def mixed(self, X: Any, index: Index) -> Matrix:
        """The answers about rows that are put together from cells of X: cell (i, j) from row index[i, j]."""
        parts = [index[i : i + TOGETHER] for i in range(0, len(index), TOGETHER)]
        return np.concatenate([self._of(gathered(X, part)) for part in parts])


def names_of(X: Any) -> list[str]:
    """The names of the columns of a table; x0, x1, … without names."""
    return column_names(X) if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]


def as_table(X: Any) -> Any:
    """X, if it is a table whose cells can be exchanged: a frame, or a matrix."""
    if is_frame(X):
        return X
    table = X if sp.issparse(X) else np.asarray(X)
    if sp.issparse(table) or table.ndim != 2:
        raise InvalidInput(
            "Columns are explained for a table: a frame or a matrix",
            got="a sparse matrix" if sp.issparse(table) else f"shape {table.shape}",
            advice="Pass X.toarray() if it is small, or ask mc.similar_rows, which takes any objects.",
        )
    return table


def sample(X: Any, most: int, random_state: int = 0) -> Any:
    """At most `most` rows of X, drawn at random, in their order."""
    n = length(X)
    return X if n <= most else take(X, sampled(n, most, random_state))


def sampled(n: int, most: int, random_state: int = 0) -> Index:
    """The positions of at most `most` of n rows, drawn at random, in their order.

    >>> sampled(3, 500), len(sampled(10_000, 500))
    (array([0, 1, 2]), 500)
    """
    return np.sort(generator(random_state).permutation(n)[:most])
