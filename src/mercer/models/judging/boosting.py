"""Gradient-boosted trees of scikit-learn on tables of any library, as a rival of a different kind.

Numbers and dates are numbers, with missing values as they are; texts that repeat are categories. Free text is left out:
trees have no use for it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from mercer.data.columns import as_array, tabled
from mercer.data.missing import missing_entries
from mercer.errors import InvalidInput
from mercer.models.base import exposures_in
from mercer.problems.families import Poisson

Matrix = NDArray[np.float64]

LEVELS = 255
"""The largest number of categories that the trees accept."""


class _Columns:
    """Columns as numbers, and texts as the numbers of their levels, both learnt from training rows.

    The exposure of counts is not among them.
    """

    def __init__(self, X: Any, exposure: str | None = None) -> None:
        self.exposure = exposure
        self.levels: dict[str, dict[Any, int] | None] = {}
        for name, column in _columns(X).items():
            if name == exposure:
                continue
            if column.dtype.kind != "O":
                self.levels[name] = None
                continue
            values = [value for value, gone in zip(column.tolist(), missing_entries(column)) if not gone]
            try:
                distinct = list(dict.fromkeys(values))
            except TypeError:  # lists
                continue
            if len(distinct) <= min(LEVELS, max(len(values) // 2, 2)):
                self.levels[name] = {value: k for k, value in enumerate(distinct)}
        if not self.levels:
            raise InvalidInput(
                "Gradient boosting needs columns of numbers or categories",
                got="free text only",
                advice="Compare other models.",
            )

    @property
    def categorical(self) -> list[bool]:
        """Which columns are categories."""
        return [levels is not None for levels in self.levels.values()]

    def __call__(self, X: Any) -> Matrix:
        columns = _columns(X)
        return np.column_stack([self._numbers(columns[name], levels) for name, levels in self.levels.items()])

    @staticmethod
    def _numbers(column: NDArray[Any], levels: dict[Any, int] | None) -> Matrix:
        if levels is not None:
            return np.array([levels.get(value, np.nan) for value in column.tolist()], dtype=np.float64)
        numbers = column.astype("i8" if column.dtype.kind in "mM" else np.float64).astype(np.float64)
        return np.where(missing_entries(column), np.nan, numbers)


def _columns(X: Any) -> dict[str, NDArray[Any]]:
    X = X.toarray() if hasattr(X, "toarray") else X
    return {name: as_array(column, name) for name, column in tabled(X).items()}


class _Boosting(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The shared part of both models: columns are read, then boosted trees are fitted to them."""

    trees: Any

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the trees to rows of an array, a sparse matrix or a frame."""
        self.columns_ = _Columns(X)
        mask = self.columns_.categorical
        self.trees_ = self.trees(
            categorical_features=mask if any(mask) else None, random_state=self.random_state
        ).fit(self.columns_(X), y)  # fmt: skip
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The predictions for rows."""
        return np.asarray(self.trees_.predict(self.columns_(X)))


class BoostingRegressor(RegressorMixin, _Boosting):  # type: ignore[misc]
    """`HistGradientBoostingRegressor` with its defaults, on a table.

    With an `exposure`, the name of a column, the targets are counts over it: the trees predict the rate by Poisson's
    deviance, each row weighted by its exposure, and predictions are the rate times the exposure.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> BoostingRegressor().fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9
    True
    """

    trees = HistGradientBoostingRegressor

    def __init__(self, random_state: int = 0, exposure: str | None = None) -> None:
        super().__init__(random_state)
        self.exposure = exposure

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the trees to rows of an array, a sparse matrix or a frame."""
        if self.exposure is None:
            return super().fit(X, y)
        self.columns_, self.family_ = _Columns(X, self.exposure), Poisson()
        mask, over = self.columns_.categorical, exposures_in(X, self)
        self.trees_ = self.trees(
            loss="poisson", categorical_features=mask if any(mask) else None, random_state=self.random_state
        ).fit(self.columns_(X), np.asarray(y) / over, sample_weight=over)  # fmt: skip
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The predictions for rows; with an exposure, the expected counts over it."""
        rates = super().predict(X)
        over = exposures_in(X, self)
        return rates if over is None else rates * over


class BoostingClassifier(ClassifierMixin, _Boosting):  # type: ignore[misc]
    """`HistGradientBoostingClassifier` with its defaults, on a table."""

    trees = HistGradientBoostingClassifier

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return np.asarray(self.trees_.classes_)

    def predict_proba(self, X: Any) -> Matrix:
        """The probabilities of the classes."""
        return np.asarray(self.trees_.predict_proba(self.columns_(X)))
