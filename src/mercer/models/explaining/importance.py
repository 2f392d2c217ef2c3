"""Feature importance by permutation: how much the error rises when one column is shuffled among the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import mean_poisson_deviance

from mercer.data.columns import gathered
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.base import exposure_of, targets
from mercer.models.explaining.additivity import part_of
from mercer.models.explaining.answers import TOGETHER, as_table, names_of, sampled
from mercer.models.explaining.effort import Effort
from mercer.models.labels import labels
from mercer.models.scores import Baseline, predicted, predicts_counts
from mercer.validation import check_whole_number, generator

Matrix = NDArray[np.float64]

MEASURED_COLUMNS = 100
"""The largest number of columns whose importance commands and reports measure."""
SHUFFLES, ROWS = (2, 5), (50, 500)
"""The fewest and the most shuffles and rows of a measurement in limited time."""
ROUNDINGS = 100
"""Rounding errors of predictions, in units in the last place of the largest one, are below this."""


@dataclass(frozen=True)
class Importance:
    """Feature importance: the rise of a model's error when a column is shuffled.

    Attributes
    ----------
    names : tuple of str
        The columns.
    rise : tuple of float
        How much the error rises when the column is shuffled, the mean over the repetitions.
    spread : tuple of float
        The standard deviation of this rise over the repetitions.
    measure : str
        The error: "RMSE" for numbers, "Poisson deviance" for counts, "log loss" for classes with probabilities, "error
        rate" for classes without.
    error : float
        Its value on the rows as they are.
    rows, repeats : int
        The number of rows, and how often each column was shuffled.
    """

    names: tuple[str, ...]
    rise: tuple[float, ...]
    spread: tuple[float, ...]
    measure: str
    error: float
    rows: int
    repeats: int

    @property
    def ranked(self) -> list[tuple[str, float, float]]:
        """Name, rise and spread of each column, the most important first."""
        return sorted(zip(self.names, self.rise, self.spread), key=lambda entry: -entry[1])

    def shown(self, value: float) -> str:
        """A rise or a spread with as many decimals as the largest rise needs for three digits.

        >>> importance = Importance(("a", "b"), (0.123456, 1e-6), (0.0, 0.0), "RMSE", 1.0, 9, 5)
        >>> importance.shown(0.123456), importance.shown(1e-6)
        ('0.123', '0.000')
        """
        largest = max(map(abs, self.rise), default=0.0)
        decimals = 2 - int(np.floor(np.log10(largest))) if largest > 0 else 0
        decimals = min(max(decimals, 0), 15)
        return f"{round(value, decimals) + 0.0:.{decimals}f}"  # −0.0 + 0.0 is 0.0

    def of(self, name: str) -> float:
        """The rise for a column; 0 for a column that was not measured, such as an exposure."""
        return dict(zip(self.names, self.rise)).get(name, 0.0)

    def words(self, rows: str) -> str:
        """The definition for a reader, with the rows on which it was measured.

        >>> print(Importance(("a",), (1.0,), (0.1,), "RMSE", 2.0, 500, 5).words("held-out rows"))
        Feature importance: how much the error (RMSE 2, on 500 held-out rows) rises when the values of a column are \
shuffled among the rows. Mean ± standard deviation of 5 shuffles; near 0 means that the model does as well without the \
column.
        """
        return (
            f"Feature importance: how much the error ({self.measure} {self.error:.4g}, on {self.rows:,} {rows}) rises "
            f"when the values of a column are shuffled among the rows. Mean ± standard deviation of {self.repeats} "
            "shuffles; near 0 means that the model does as well without the column."
        )

    def __str__(self) -> str:
        wide = max(map(len, self.names), default=0)
        return "\n".join(f"{name.ljust(wide)}  {rise:.4g} ± {spread:.2g}" for name, rise, spread in self.ranked)


def feature_importance(
    model: Any, X: Any, y: Any, *, repeats: int = 5, rows: int = 500, random_state: int = 0
) -> Importance:
    """How much the error of a fitted model rises when a column is shuffled (permutation importance, Breiman 2001).

    Shuffling a column among the rows breaks its relation with the target and with the other columns. The error is the
    root mean squared error of numbers, the Poisson deviance of counts, the log loss of classes (without probabilities,
    the share of wrong classes). Measure it on rows that the model was not fitted to: on training rows, columns that the
    model only memorised seem important, too. Of two columns with the same information, each seems less important than
    both together are.

    `mercer fit`, `mercer explain` and the report show these numbers.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier.
    X, y : array or frame, array
        Rows and their targets, best held-out rows: an array, or a pandas or Polars frame. A column that is the exposure
        of counts is not a feature, and is left out.
    repeats : int
        How often each column is shuffled.
    rows : int
        The largest number of rows to use; of more, this many are drawn at random.
    random_state : int
        Seed of the permutations, which are the same for all columns, and of the drawn rows.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = 3 * X[:, 0] + X[:, 1]
    >>> model = mc.Ridge(alpha=1e-9).fit(X[:300], y[:300])
    >>> importance = mc.feature_importance(model, X[300:], y[300:])
    >>> importance.measure, [f"{name} {rise:.1f}" for name, rise, spread in importance.ranked]
    ('RMSE', ['x0 4.2', 'x1 1.3', 'x2 0.0'])
    """
    check_whole_number(repeats, "repeats", such_as=5)
    check_whole_number(rows, "rows", least=2, such_as=500)
    X, y = as_table(X), np.asarray(y)
    if y.ndim != 1 or len(y) != length(X) or len(y) < 2:
        raise InvalidInput(
            "y must hold one target per row, for at least two rows",
            got=f"shape {y.shape} for {length(X)} rows",
            advice="Pass X and y of the same rows.",
        )
    known = labels(y, len(y)) if is_classifier(model) else targets(y, len(y))[0]
    if predicts_counts(model) and (known < 0).any():
        raise InvalidInput(
            "y must hold counts ≥ 0, which the model predicts",
            got=f"{known.min():g} in row {int(known.argmin())}",
            advice="Drop those rows (X and y), or correct them.",
        )
    drawn = sampled(len(y), rows, random_state)
    X, y = take(X, drawn), y[drawn]
    error, scale = _error(model, X, y)
    rng, n, d = generator(random_state), len(y), X.shape[1]
    orders = np.stack([rng.permutation(n) for _ in range(repeats)])
    exposure, names = exposure_of(model), names_of(X)
    features = [j for j in range(d) if names[j] != exposure]
    index = np.tile(np.arange(n)[:, None], (repeats, d))
    parts = {j: part_of(model, X, [j]) for j in features} if _measure(model) == "RMSE" else {}
    whole = [j for j in features if parts.get(j) is None]
    at_once = max(1, TOGETHER // len(index))
    shuffled: dict[int, Matrix] = {}
    for first in range(0, len(whole), at_once):  # several columns in one call of the model
        some = whole[first : first + at_once]
        changed = np.tile(index, (len(some), 1, 1))
        changed[np.arange(len(some)), :, some] = orders.ravel()
        errors = _errors(model, gathered(X, changed.reshape(-1, d)), y, len(some) * repeats)
        shuffled |= dict(zip(some, errors.reshape(len(some), repeats)))
    if len(whole) < len(features):
        predictions = np.asarray(model.predict(X), dtype=np.float64)
        for j, part in parts.items():  # only the terms that read this column change
            if part is not None:
                changed = index.copy()
                changed[:, j] = orders.ravel()
                moved = part(gathered(X, changed)).reshape(repeats, n) - part(X)
                shuffled[j] = np.sqrt(np.mean((y - predictions - moved) ** 2, axis=1))
    rises = np.stack([shuffled[j] for j in features]) - error
    rises[np.abs(rises) <= ROUNDINGS * np.finfo(np.float64).eps * scale] = 0.0
    spread = rises.std(axis=1, ddof=1) if repeats > 1 else np.zeros(len(features))
    return Importance(
        tuple(names[j] for j in features),
        tuple(rises.mean(axis=1).tolist()),
        tuple(spread.tolist()),
        _measure(model),
        error,
        n,
        repeats,
    )


def measured_importance(model: Any, X: Any, y: Any, effort: Effort | None = None) -> Importance | None:
    """The feature importance as commands and reports show it; None if there are no columns to compare, or too many.

    If there is not enough time for five shuffles of 500 rows, columns are shuffled less often, then fewer rows.

    >>> import numpy as np, mercer as mc
    >>> X = np.arange(20.0)[:, None]
    >>> measured_importance(mc.KernelRidge().fit(X, X[:, 0]), X, X[:, 0]) is None
    True
    """
    if isinstance(X, list) or hasattr(X, "tocsr") or len(X.shape) != 2 or not 1 < X.shape[1] <= MEASURED_COLUMNS:
        return None
    if length(X) < 2:
        return None
    effort = Effort.of(model) if effort is None else effort
    rows, cell = min(ROWS[1], length(X)), X.shape[1] * effort.row
    repeats = effort.most(rows * cell, *SHUFFLES)
    return feature_importance(model, X, y, repeats=repeats, rows=effort.most(repeats * cell, *ROWS))


def _measure(model: Any) -> str:
    if is_classifier(model):
        return "log loss" if hasattr(model, "predict_proba") else "error rate"
    return "Poisson deviance" if predicts_counts(model) else "RMSE"


def _error(model: Any, X: Any, y: NDArray[Any]) -> tuple[float, float]:
    """The error on these rows, and the size of numbers whose rounding may change it."""
    error = float(_errors(model, X, y, 1)[0])
    return error, 1.0 + error if is_classifier(model) else float(np.abs(y.astype(np.float64)).max()) + error


def _errors(model: Any, X: Any, y: NDArray[Any], repeats: int) -> Matrix:
    """The error on each of `repeats` equal parts of the rows X, all of them with the targets y."""
    truth, known = np.tile(y, repeats), {}
    if is_classifier(model) and hasattr(model, "predict_proba"):  # the log loss needs no predicted classes
        known = {"predictions": truth, "probabilities": np.asarray(model.predict_proba(X), dtype=np.float64)}
    answers = predicted(model, X, truth, Baseline(), **known)
    if predicts_counts(model):
        means = np.maximum(answers.predictions, np.finfo(np.float64).tiny).reshape(repeats, -1)
        return np.array([mean_poisson_deviance(y, mean) for mean in means])
    losses = answers.losses.reshape(repeats, -1).mean(axis=1)
    return losses if is_classifier(model) else np.sqrt(losses)
