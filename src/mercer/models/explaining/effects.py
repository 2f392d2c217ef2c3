"""The effect of one or two columns on predictions (partial dependence), and how strongly two columns interact.

The partial dependence on some columns is the mean prediction of background rows in which these columns are replaced by
given values (Friedman 2001). The values are values of the data, so nothing is said outside their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data import frames
from mercer.data.columns import gathered
from mercer.data.missing import missing_entries
from mercer.data.points import length
from mercer.errors import InvalidInput
from mercer.models.base import exposure_of
from mercer.models.explaining.additivity import column_groups
from mercer.models.explaining.answers import Answer, as_table, names_of, sample, sampled
from mercer.validation import check_whole_number
from mercer.words import count

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]

BACKGROUND = 50
"""The number of background rows over which predictions are averaged by default."""
COMPARED = 6
"""The number of columns whose pairs are compared by default, those with the strongest effects."""
LEVELS = 12
"""The largest number of values of a category, the most frequent ones."""
OUTSIDE = 0.01
"""The share of the smallest and of the largest values that a grid leaves out: little is known between outliers."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The partial dependence of predictions on one or two columns.

    Attributes
    ----------
    columns : tuple of str
        Their names.
    grids : tuple of array
        The values of each column, ascending: numbers or dates, shape (g,), or the texts of categories.
    values : array
        The mean prediction there, shape (g,) or (g, h).
    rows : array
        The prediction for each background row, shape (b, g) or (b, g, h).
    complete : tuple of bool
        For each column, whether the grid holds all of its values, so that nothing is between them.
    what : str
        The predicted quantity, in words.
    coverage, intervals : float or None, array or None
        The coverage of prediction intervals, and their ends along one column, shape (g, 2): the means over the
        background rows; None without `coverage`.
    """

    columns: tuple[str, ...]
    grids: tuple[NDArray[Any], ...]
    values: Matrix
    rows: Matrix
    complete: tuple[bool, ...]
    what: str
    coverage: float | None = None
    intervals: Matrix | None = None


def partial_dependence(
    model: Any,
    X: Any,
    columns: Any,
    *,
    label: Any = None,
    grid: int = 25,
    coverage: float | None = None,
    rows: int = BACKGROUND,
    random_state: int = 0,
) -> Effect:
    """The mean prediction as a function of one or two columns, over background rows.

    Parameters
    ----------
    model : estimator
        A fitted regressor or classifier.
    X : array or frame
        The data: an array, or a pandas or Polars frame.
    columns : str, int or pair of them
        One column, by name or position, or two of them.
    label
        For a classifier, the class whose probability is averaged; by default the second of two.
    grid : int
        The largest number of values of a column of numbers or dates, all of them values of X.
    coverage : float or None
        For one column and a regressor with `predict_interval`, the coverage of prediction intervals to compute.
    rows : int
        The number of background rows, drawn at random from X.
    random_state : int
        Seed of the background rows.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> model = mc.Ridge(alpha=1e-9).fit(X, 3 * X[:, 0])
    >>> effect = mc.partial_dependence(model, X, 0, grid=5)
    >>> (effect.values / effect.grids[0]).round(2)
    array([3., 3., 3., 3., 3.])
    """
    check_whole_number(rows, "rows", such_as=BACKGROUND)
    check_whole_number(grid, "grid", such_as=25)
    X = as_table(X)
    if not length(X):
        raise InvalidInput("X must have rows", got="none", advice="Pass the training rows, or some of them.")
    positions = positions_of(X, columns if isinstance(columns, (list, tuple)) else [columns])
    if len(positions) not in (1, 2):
        raise InvalidInput("`columns` must be one or two columns", got=repr(columns), advice="Pass a pair at most.")
    answer = Answer.of(model, label)
    if coverage is not None and (len(positions) > 1 or not hasattr(model, "predict_interval")):
        raise InvalidInput(
            "`coverage` needs one column, and a regressor with predict_interval",
            got=f"{count(len(positions), 'column')} for {type(model).__name__}",
            advice="Omit `coverage`, or wrap the model in mc.ConformalRegressor.",
        )
    chosen = [grid_rows(cells(X, j), grid) for j in positions]
    background = sampled(length(X), rows, random_state)
    meshes = np.meshgrid(background, *chosen, indexing="ij")
    index = np.repeat(meshes[0].ravel()[:, None], X.shape[1], axis=1)
    for j, mesh in zip(positions, meshes[1:]):
        index[:, j] = mesh.ravel()
    answers = answer.mixed(X, index).reshape(meshes[0].shape)
    intervals = None if coverage is None else _mean_intervals(model, X, index, coverage, len(background))
    grids = tuple(_shown(cells(X, j)[at]) for j, at in zip(positions, chosen))
    complete = tuple(len(at) == _distinct(cells(X, j)) for j, at in zip(positions, chosen))
    names = names_of(X)
    moved = tuple(names[j] for j in positions)
    return Effect(moved, grids, answers.mean(axis=0), answers, complete, answer.words, coverage, intervals)


def _mean_intervals(model: Any, X: Any, index: Index, coverage: float, rows: int) -> Matrix:
    """The ends of prediction intervals along a grid, shape (g, 2), as means over background rows."""
    ends = np.asarray(model.predict_interval(gathered(X, index), coverage), dtype=np.float64)
    return np.asarray(ends.reshape(rows, -1, 2).mean(axis=0))


@dataclass(frozen=True)
class Interaction:
    """How strongly two columns interact in a model.

    Attributes
    ----------
    columns : tuple
        The names of the two columns.
    strength : float
        The standard deviation, over the rows, of the part of their joint effect that is not the sum of an effect of
        each; in units of the prediction.
    share : float
        Friedman's H: `strength` divided by the standard deviation of the joint effect, 0 for columns that add up, and
        above 1 where the effects of the two columns cancel.
    """

    columns: tuple[str, str]
    strength: float
    share: float


def interactions(
    model: Any,
    X: Any,
    columns: Sequence[Any] | None = None,
    *,
    label: Any = None,
    rows: int = BACKGROUND,
    random_state: int = 0,
) -> tuple[Interaction, ...]:
    """The pairs of columns, the most strongly interacting one first (Friedman & Popescu 2008).

    With the partial dependences F of a pair and of its two columns, each with mean 0 over the rows, the interaction is
    Fⱼₖ − Fⱼ − Fₖ. It is 0 if the prediction is a sum of a function without xⱼ and a function without xₖ.

    Parameters
    ----------
    model, X, label, rows, random_state
        As for `partial_dependence`.
    columns : sequence of columns or None
        The columns to compare; by default the six with the strongest effects.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = mc.KernelRidge(mc.Polynomial(2, c=1.0), alpha=1e-6).fit(X, X[:, 0] * X[:, 1] + 3 * X[:, 2])
    >>> [f"{pair.columns} {pair.share:.2f}" for pair in mc.interactions(model, X)]
    ["('x0', 'x1') 0.9...", "('x0', 'x2') 0.00", "('x1', 'x2') 0.00"]
    """
    check_whole_number(rows, "rows", least=2, such_as=BACKGROUND)
    X, answer = sample(as_table(X), rows, random_state), Answer.of(model, label)
    names, exposure = names_of(X), exposure_of(model)
    known = [j for j in range(len(names)) if names[j] != exposure] if columns is None else positions_of(X, columns)
    n, d = length(X), X.shape[1]
    first, second = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)

    def dependence(*moved: int) -> Matrix:
        """The partial dependence at the values of each row, with mean 0."""
        index = np.repeat(second[:, None], d, axis=1)
        index[:, moved] = first[:, None]
        values = answer.part(X, moved).mixed(X, index).reshape(n, n).mean(axis=1)
        return np.asarray(values - values.mean())

    effects = {j: dependence(j) for j in known}
    if columns is None:
        known = sorted(sorted(known, key=lambda j: -effects[j].std())[:COMPARED])
    pairs, groups = [], () if answer.label is not None else column_groups(model, X)
    for j, k in combinations(known, 2):
        together = not groups or any(j in group and k in group for group in groups)
        joint = dependence(j, k) if together else effects[j] + effects[k]
        strength, whole = float((joint - effects[j] - effects[k]).std()), float(joint.std())
        strength = 0.0 if strength <= 1e-9 * whole else strength
        pairs.append(Interaction((names[j], names[k]), strength, strength / whole if whole > 0 else 0.0))
    return tuple(sorted(pairs, key=lambda pair: -pair.strength))


def positions_of(X: Any, columns: Sequence[Any]) -> list[int]:
    """The positions of columns that are given by name or position."""
    names, d = names_of(X), X.shape[1]
    positions = []
    for column in columns:
        if str(column) in names and not (isinstance(column, (int, np.integer)) and not frames.is_frame(X)):
            positions.append(names.index(str(column)))
        elif isinstance(column, (int, np.integer)) and -d <= column < d:
            positions.append(int(column) % d)
        else:
            raise InvalidInput(
                "`columns` must be columns of X, by name or position",
                got=repr(column),
                advice=f"Choose from {', '.join(map(repr, names[:10]))}.",
            )
    return positions


def cells(X: Any, j: int) -> NDArray[Any]:
    """The values of one column of a table."""
    return np.asarray(frames.column(X, j)) if frames.is_frame(X) else np.asarray(X)[:, j]


def _distinct(values: NDArray[Any]) -> int:
    """The number of different values."""
    present = values[~missing_entries(values)]
    return len(np.unique(present if present.dtype.kind in "iufM" else _shown(present)))


def _shown(values: NDArray[Any]) -> NDArray[Any]:
    return values if values.dtype.kind in "iufM" else np.array([str(v) for v in values], dtype=str)


def grid_rows(values: NDArray[Any], most: int) -> Index:
    """The rows whose values stand for a column: spread over 98 % of the numbers, or the most frequent categories.

    >>> grid_rows(np.array([5.0, 1.0, 3.0, 3.1, np.nan]), 3)
    array([1, 2, 0])
    """
    rows = np.flatnonzero(~missing_entries(values))
    if not len(rows):
        return np.zeros(1, dtype=np.int64)
    if values.dtype.kind not in "iufM":
        texts = np.array([str(v) for v in values[rows]], dtype=str)
        _, first, counts = np.unique(texts, return_index=True, return_counts=True)
        return np.asarray(rows[first[np.sort(np.argsort(-counts, kind="stable")[:LEVELS])]])
    different, first = np.unique(values[rows], return_index=True)
    if len(different) > most:
        numbers = different.astype(np.float64)
        low, high = np.quantile(values[rows].astype(np.float64), [OUTSIDE, 1 - OUTSIDE])
        steps = np.linspace(low, high, most)
        nearest = np.abs(numbers - steps[:, None]).argmin(axis=1)
        first = first[np.unique(nearest)]
    return np.asarray(rows[first])
