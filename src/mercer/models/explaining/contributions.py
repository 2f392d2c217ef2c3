"""How much each column contributes to the prediction of a row: Shapley values, exactly or by sampling.

The contribution of a column is the change of the prediction when the row's value replaces the value of a background
row, averaged over all orders in which the columns can be replaced and over the background rows (Shapley 1953;
Štrumbelj & Kononenko 2014). Contributions add up: their sum is the prediction minus the mean prediction of the
background. An exposure is not a feature: the background rows are taken over the exposure of the row.

If the model is a sum of functions of groups of columns, as the kernel shows, the groups are treated one by one: a
column that is a group of its own contributes its term, minus the mean of this term. Groups of few columns are
enumerated, so that their contributions are exact; in larger ones orders are drawn at random, in pairs of an order and
its reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.frames import column_names, is_frame, selected
from mercer.data.points import concatenate, length, take
from mercer.errors import InvalidInput
from mercer.models.base import exposure_of
from mercer.models.explaining.additivity import Groups, column_groups
from mercer.models.explaining.answers import Answer, as_table, explained_quantity, names_of, sample
from mercer.validation import check_whole_number, generator
from mercer.words import first_few

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

BACKGROUND = 100
"""The largest number of background rows that are used by default."""
PREDICTED = 5000
"""The largest number of rows that are predicted to choose background rows among them."""
ENUMERATED = 6
"""Groups of at most this many columns are enumerated: 2⁶ subsets cost about as much as the orders that are drawn."""
ROUNDING = 1e-6
"""If contributions miss the prediction by a larger relative error, the model is not the sum that its kernel suggests.
"""


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions of columns to predictions: mean + Σ contributions of a row = its prediction.

    Attributes
    ----------
    names : tuple of str
        The columns, d of them; without the exposure of counts.
    values : array
        The contributions, shape (m, d).
    errors : array
        Their standard errors by sampling, shape (m, d); 0 for those that are exact.
    mean : array
        The mean prediction of the background.
    compared : int
        The number of background rows.
    predictions : array
        Shape (m,).
    labels
        The class whose probability is explained, for each row; None for a regressor.
    votes
        Whether the model has no probabilities, so that a vote is explained: 1 for its class, 0 for others.
    """

    names: tuple[str, ...]
    values: Matrix
    errors: Matrix
    mean: Matrix
    compared: int
    predictions: Matrix
    labels: tuple[Any, ...] | None = None
    votes: bool = False

    @property
    def exact(self) -> bool:
        """Whether no contribution was estimated by sampling."""
        return not self.errors.any()

    def what(self, row: int = 0, show: Callable[[Any], str] = str) -> str:
        """The quantity that is explained for a row, in words."""
        return explained_quantity(None if self.labels is None else show(self.labels[row]), self.votes)

    def background(self, total: int, whose: str = "training rows") -> str:
        """The rows that the mean is over, in words, given the number of rows from which they were drawn."""
        if self.compared >= total:
            return f"all {total:,} {whose}"
        return f"{self.compared:,} rows drawn from {total:,} {whose}"

    def ranked(self, row: int = 0) -> list[tuple[str, float, float]]:
        """Name, contribution and standard error of each column for a row, the largest contribution first."""
        entries = zip(self.names, self.values[row].tolist(), self.errors[row].tolist())
        return sorted(entries, key=lambda entry: -abs(entry[1]))

    def __str__(self) -> str:
        wide = max(map(len, self.names), default=0)
        lines = []
        for i, prediction in enumerate(self.predictions):
            what = "" if self.labels is None else f" of {self.labels[i]}"
            lines.append(f"prediction{what} {prediction:.4g} = mean {self.mean[i]:.4g} + contributions:")
            for name, value, error in self.ranked(i):
                lines.append(f"  {name.ljust(wide)}  {value:+.4g}" + (f" ± {error:.2g}" if error else ""))
        return "\n".join(lines)


def contributions(
    model: Any, rows: Any, background: Any, *, label: Any = None, orders: int = 2, random_state: int = 0
) -> Contributions:
    """How much each column contributes to the predictions of some rows, compared with background rows.

    The parts are exact if the kernel is a sum of kernels on few columns each, or if there are at most six columns.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier.
    rows : array or frame
        m rows to explain: an array, or a pandas or Polars frame.
    background : array or frame
        The rows to compare with, such as the training rows; of more than 100, that many are used, those of
        `background_rows`.
    label
        For a classifier, the class whose probability is explained; by default the class that is predicted.
    orders : int
        Pairs of random orders for each background row, at least 2, where contributions are sampled.
    random_state : int
        Seed of these orders.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    >>> kernel = mc.Gaussian(1.0).on(0) + mc.Gaussian(1.0).on(1)
    >>> model = mc.KernelRidge(kernel, alpha=1e-3).fit(X, X[:, 0] + X[:, 1] ** 2)
    >>> parts = mc.contributions(model, X[:2], X)
    >>> parts.exact, bool(np.allclose(parts.mean + parts.values.sum(axis=1), parts.predictions))
    (True, True)
    >>> print(mc.contributions(model, [[1.0, 0.0, 0.0]], X))
    prediction 0.9934 = mean 0.3621 + contributions:
      x0  +0.9414
      x1  -0.3102
      x2  +0
    """
    check_whole_number(orders, "orders", least=2, such_as=2)
    rows, background = as_table(rows), background_rows(model, background)
    if not length(rows) or not length(background) or rows.shape[1] != background.shape[1]:
        raise InvalidInput(
            "`rows` and `background` must be tables of the same columns, with rows",
            got=f"shapes {rows.shape} and {background.shape}",
            advice="Pass the training rows as the background.",
        )
    if is_frame(rows) and is_frame(background):
        given, order = column_names(rows), column_names(background)
        if sorted(given) != sorted(order):
            raise InvalidInput(
                "`rows` and `background` must have the same columns",
                got=f"{first_few(given, 5)} and {first_few(order, 5)}",
                advice="Pass the training rows as the background.",
            )
        rows = selected(rows, order)
    answers = _answers(model, rows, label)
    names, m, d = names_of(rows), length(rows), rows.shape[1]
    table = concatenate(background, rows)
    exposure = exposure_of(model)
    features = [j for j in range(d) if names[j] != exposure]
    groups = tuple(tuple(j for j in group if j in features) for group in column_groups(model, rows))
    values, errors = np.zeros((m, d)), np.zeros((m, d))
    means = {answer.label: answer(background).mean() for answer in answers}
    mean = np.array([means[answer.label] for answer in answers])
    predictions = np.array([answer(take(rows, [i]))[0] for i, answer in enumerate(answers)])
    for i in range(m):
        game = Game(answers[i], table, length(background), length(background) + i, tuple(features), d)
        if len(features) < d:
            mean[i] = game(np.zeros((game.background, d), dtype=bool), np.arange(game.background)).mean()
        rng = generator(random_state)
        values[i], errors[i] = shared(game, groups, orders, rng)
        rest = predictions[i] - mean[i] - values[i].sum()
        if abs(rest) > ROUNDING * max(abs(predictions[i]), abs(mean[i])):
            # Where a bound holds, as for predictions ≥ 0, a model of an additive kernel is not a sum.
            values[i], errors[i] = shared(game, (tuple(features),), orders, rng)
    return Contributions(
        tuple(names[j] for j in features),
        values[:, features],
        errors[:, features],
        mean,
        length(background),
        predictions,
        tuple(answer.label for answer in answers) if is_classifier(model) else None,
        answers[0].votes,
    )


def background_rows(model: Any, X: Any, rows: int = BACKGROUND, among: int = PREDICTED) -> Any:
    """At most `rows` rows of a table that stand for all of them: their mean prediction is close to that of all rows.

    The rows are sorted by their prediction, those of a classifier by the predicted class and its probability, and every
    k-th one is taken. Of more than `among` rows, that many are drawn at random first.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(2000, 1))
    >>> model = mc.Ridge().fit(X, X[:, 0])
    >>> few = background_rows(model, X)
    >>> len(few), bool(abs(model.predict(few).mean() - model.predict(X).mean()) < 0.01)
    (100, True)
    """
    X = as_table(X)
    if length(X) <= rows:
        return X
    X = sample(X, max(among, rows))
    if not is_classifier(model):
        key = Answer.of(model)(X)
    elif hasattr(model, "predict_proba"):
        P = np.asarray(model.predict_proba(X))
        key = P.argmax(axis=1) + P.max(axis=1) / 2
    else:
        key = np.unique(np.asarray(model.predict(X)), return_inverse=True)[1].astype(np.float64)
    middles = (np.arange(rows) + 0.5) * length(X) / rows
    return take(X, np.sort(np.argsort(key, kind="stable")[middles.astype(np.int64)]))


def predictions_each(columns: int, orders: int = 2) -> int:
    """Predictions for each background row by which a row of this many columns is explained, at most.

    >>> predictions_each(3), predictions_each(30)
    (8, 124)
    """
    return int(2**columns) if columns <= ENUMERATED else 2 * orders * (columns + 1)


def _answers(model: Any, rows: Any, label: Any) -> list[Answer]:
    """The quantity to explain of each row."""
    if label is not None or not is_classifier(model):
        return [Answer.of(model, label)] * length(rows)
    return [Answer.of(model, predicted) for predicted in np.asarray(model.predict(rows)).tolist()]


@dataclass(frozen=True, eq=False)
class Game:
    """Answers about a row of which only some columns are known; the others come from background rows.

    Attributes
    ----------
    answer : Answer
        The explained quantity.
    table
        The background rows, followed by the rows to explain.
    background, row : int
        The number of background rows, and the position of the row.
    features : tuple of int
        The positions of the features; other columns, as an exposure, are always those of the row.
    columns : int
        The number of columns.
    """

    answer: Answer
    table: Any
    background: int
    row: int
    features: tuple[int, ...]
    columns: int

    def __call__(self, known: NDArray[np.bool_], rows: Index) -> Matrix:
        """The answers if the columns `known`, shape (k, d), are those of the row, the others of background `rows`."""
        index = np.full(known.shape, self.row)
        index[:, self.features] = np.where(known, self.row, rows[:, None])[:, self.features]
        return self.answer.mixed(self.table, index)


def shared(game: Game, groups: Groups, orders: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """The contributions of all columns and their standard errors, where the answer is a sum over groups of columns."""
    values, errors = np.zeros(game.columns), np.zeros(game.columns)
    together: list[tuple[int, ...]] = []
    for group in filter(None, groups):
        part = replace(game, answer=game.answer.part(game.table, group)) if len(groups) > 1 else game
        if len(group) > ENUMERATED:
            values[list(group)], errors[list(group)] = drawn(part, group, orders, rng)
        elif part.answer is game.answer:
            together.append(group)
        else:
            values += enumerated(part, [group])
    return values + enumerated(game, together), errors


def enumerated(game: Game, groups: list[tuple[int, ...]]) -> Matrix:
    """The exact contributions of groups of columns, from all subsets of each, in one call of the model; else 0."""
    values, b = np.zeros(game.columns), game.background
    if not groups:
        return values
    subsets = [np.array([[bool(k >> j & 1) for j in range(len(group))] for k in range(2 ** len(group))])
               for group in groups]  # fmt: skip
    known = np.zeros((sum(map(len, subsets)), game.columns), dtype=bool)
    starts = np.cumsum([0, *map(len, subsets)])
    for group, some, start in zip(groups, subsets, starts):
        known[start : start + len(some), group] = some
    worth = game(np.repeat(known, b, axis=0), np.tile(np.arange(b), len(known))).reshape(-1, b).mean(axis=1)
    for group, some, start in zip(groups, subsets, starts):
        s, own, sizes = len(group), worth[start : start + len(some)], some.sum(axis=1)
        weights = np.array([factorial(k) * factorial(s - k - 1) / factorial(s) for k in range(s)])
        for j, column in enumerate(group):
            without = np.flatnonzero(~some[:, j])
            values[column] = weights[sizes[without]] @ (own[without + 2**j] - own[without])
    return values


def drawn(game: Game, group: tuple[int, ...], orders: int, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """The contributions of a group of columns by random orders, the same number for each background row.

    Along an order, the columns of the row replace those of the background row one by one, and the steps add up to the
    whole difference: so do the contributions, whatever the orders. Also returns standard errors, from the differences
    between the orders of one background row.
    """
    s, b = len(group), game.background
    ranks = np.stack([rng.permutation(s) for _ in range(b * orders)]).reshape(b, orders, s)
    both = np.concatenate([ranks, s - 1 - ranks], axis=1)  # an order and its reverse
    steps = np.arange(s + 1)[:, None]
    known = np.zeros((b, 2 * orders, s + 1, game.columns), dtype=bool)
    known[..., group] = both[:, :, None, :] < steps
    rows = np.repeat(np.arange(b), 2 * orders * (s + 1))
    worth = game(known.reshape(-1, game.columns), rows).reshape(b, 2 * orders, s + 1)
    gains = np.take_along_axis(np.diff(worth, axis=2), both, axis=2)
    pairs = (gains[:, :orders] + gains[:, orders:]) / 2
    error = np.sqrt((pairs.var(axis=1, ddof=1) / orders).sum(axis=0)) / b
    return pairs.mean(axis=(0, 1)), error
