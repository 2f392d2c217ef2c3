"""Leakage: columns that reproduce the target almost exactly, and so probably hold the answer.

A column that is known only after the target (a part of a total, the same amount in another currency, a status that is
set with the outcome) gives perfect scores and useless predictions. Each rule is learnt on one half of a sample of the
rows and measured on the other half, so that no rule is good by chance:

    a column alone     a number by interpolation between its sorted values, by a straight line, by its rank, or by the
                       class of the nearest value; a category by the mean or the commonest class of its level
    a sum of columns   least squares on the fewest columns, chosen one after the other
    a product          the same for logarithms, if the target and the columns are positive
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import rankdata

from mercer.data.columns import as_array, tabled
from mercer.data.missing import missing_entries
from mercer.data.points import length, take
from mercer.errors import InvalidInput
from mercer.models.judging.cautions import Caution, percent
from mercer.models.judging.overlap import Seen
from mercer.validation import generator
from mercer.words import first_few

Matrix = NDArray[np.float64]

NEARLY_ALL = 0.9999
"""Columns leak if they explain at least this share of the target's variance: an error of 1 % of its spread."""
NEARLY_RIGHT = 0.998
"""A column leaks if it gives the class of at least this share of the rows, each class weighted equally."""
SAMPLED, FEWEST = 4000, 40
"""The largest number of rows that are looked at, and the fewest."""
CELLS, FEWEST_OF_MANY = 400_000, 1000
"""The largest number of cells, and the fewest rows of a table of many columns."""
FEWEST_OF_CLASS = 5
"""The fewest rows of a class in half of the sample, on average."""
MOST_TERMS = 8
"""A sum of more columns than this is a law rather than a leak."""
WIDE = 500
"""Sums are searched among at most this many columns of numbers."""


@dataclass(frozen=True)
class Leak(Caution):
    """Columns that reproduce the target almost exactly.

    Attributes
    ----------
    target : str
        The name of the target.
    columns : tuple of str
        The columns, the most important first.
    rule : {"column", "sum", "product"}
        How they give the target: one "column" alone, a "sum" or a "product" of several.
    score : float
        The share of the variance that they explain, or of rows whose class they give (the mean over classes), on rows
        that did not choose them.
    weights : tuple of float
        The weights of a sum, or the exponents of a product; empty for one column.
    classes : bool
        Whether the target is a class.
    """

    target: str
    columns: tuple[str, ...]
    rule: Literal["column", "sum", "product"]
    score: float
    weights: tuple[float, ...] = ()
    classes: bool = False

    @property
    def words(self) -> str:
        if self.classes:
            measured = f"right for {percent(self.score)} of the rows"
        else:
            measured = f"R² {self.score:.6f}".rstrip("0").rstrip(".") if self.score < 1 - 5e-7 else "R² 1.000000"
        names = first_few(self.columns, MOST_TERMS, repr)
        if self.rule == "column":
            return (
                f"column {names} alone gives the target {self.target!r} almost exactly ({measured}), so it may hold "
                "the answer. If it is not known when a prediction is made, leave it out"
            )
        plain = np.allclose(self.weights, 1.0, rtol=1e-3)
        how = f"{'the' if plain else 'a weighted' if self.rule == 'sum' else 'a'} {self.rule}"
        if not plain and self.rule == "product":
            how += " of powers"
        return (
            f"the target {self.target!r} is almost exactly {how} of the columns {names} ({measured}), so they may hold "
            "the answer. If they are not known when a prediction is made, leave them out"
        )


def leakage(
    X: Any, y: Any, held_out: tuple[Any, Any] | None = None, *, classes: bool = False, target: str = "target"
) -> tuple[Caution, ...]:
    """The reasons why scores may be too good: columns that hold the answer, and held-out rows that were trained on.

    Parameters
    ----------
    X, y : array or frame, array
        The training rows and their targets.
    held_out
        (Z, z), the rows that score the model, or None.
    classes, target : bool, str
        As for `find_leaks`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> y = X[:, 0] + X[:, 1]
    >>> [type(caution).__name__ for caution in leakage(X[:60], y[:60], (X[50:], y[50:]))]
    ['Leak', 'Overlap']
    """
    cautions: list[Caution] = list(find_leaks(X, y, classes=classes, target=target))
    if held_out is not None and length(held_out[0]):
        seen = Seen.of(X, y)
        overlap = None if seen is None else seen.overlap(*held_out)
        cautions += [] if overlap is None or not overlap.notable else [overlap]
    return tuple(cautions)


def find_leaks(
    X: Any, y: Any, *, classes: bool = False, target: str = "target", random_state: int = 0
) -> tuple[Leak, ...]:
    """The columns of a table, or sums and products of them, that reproduce the target almost exactly.

    Parameters
    ----------
    X, y : array or frame, array
        Rows (an array, a pandas or Polars frame) and their targets. Sparse matrices and other objects have no leaks.
    classes : bool
        Whether y are labels.
    target : str
        The name of the target, for the words.
    random_state : int
        Seed of the sample of rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 4))
    >>> for leak in find_leaks(X, X[:, 1] + X[:, 3], target="total"):
    ...     print(leak.rule, leak.columns)
    sum ('x1', 'x3')
    >>> find_leaks(X, X[:, 1] + X[:, 3] + 0.1 * rng.normal(size=200))
    ()
    """
    y = np.asarray(y)
    width = getattr(X, "shape", (0,))[-1]
    if sp.issparse(X) or len(y) < FEWEST or y.ndim != 1 or width < 2:  # a single column is a function, not a leak
        return ()
    size = int(np.clip(CELLS // width, FEWEST_OF_MANY, SAMPLED))
    rows = generator(random_state).permutation(len(y))[:size]
    try:
        parts = {name: as_array(column, name) for name, column in tabled(take(X, rows)).items()}
    except (InvalidInput, TypeError):
        return ()
    if classes:
        return _of_classes(parts, y[rows], len(rows) // 2, target)
    return _of_numbers(parts, y[rows].astype(np.float64), len(rows) // 2, target)


def _as_numbers(values: NDArray[Any]) -> Matrix | None:
    """Numbers, yes or no, dates and durations as numbers with NaN where they are missing; None for others."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind in "mM":
        return np.where(np.isnat(values), np.nan, values.astype("i8").astype(np.float64))
    return None


def _codes(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """The number of each value's level, −1 if it is missing; None for values that are not text."""
    known: dict[Any, int] = {}
    missing = missing_entries(values)
    try:
        codes = [-1 if gone else known.setdefault(value, len(known)) for value, gone in zip(values.tolist(), missing)]
    except TypeError:
        return None
    return np.array(codes, dtype=np.int64)


def _explained(y: Matrix, predictions: Matrix, mean: float) -> float:
    """1 − the squared error of the predictions that are there, as a share of that of the mean."""
    there = ~np.isnan(predictions)
    total = float(((y[there] - mean) ** 2).sum())
    return 1.0 - float(((y[there] - predictions[there]) ** 2).sum()) / total if total > 0 else -np.inf


# -- numbers -----------------------------------------------------------------------------------------------------------


def _of_numbers(parts: dict[str, NDArray[Any]], y: Matrix, half: int, target: str) -> tuple[Leak, ...]:
    learn, test = y[:half], y[half:]
    mean = float(learn.mean())
    leaks, others = list[Leak](), dict[str, Matrix]()
    for name, values in parts.items():
        x = _as_numbers(values)
        if x is not None:
            score = max(_explained(test, f, mean) for f in _by_number(x[:half], learn, x[half:], mean))
            score = max(score, _monotone(x, y))
            if score < NEARLY_ALL and not np.isnan(x).any():
                others[name] = x
        else:
            codes = _codes(values)
            if codes is None:
                continue
            score = _explained(test, _by_level(codes[:half], learn, codes[half:], mean), mean)
        if score >= NEARLY_ALL:
            leaks.append(Leak(target, (name,), "column", min(score, 1.0)))
    if 1 < len(others) <= WIDE:
        together = _combination(others, y, half, target, "sum")
        positive = {name: np.log(x) for name, x in others.items() if (x > 0).all()}
        if together is None and len(positive) > 1 and (y > 0).all():
            together = _combination(positive, np.log(y), half, target, "product")
        leaks += [] if together is None else [together]
    return tuple(leaks)


def _by_number(x: Matrix, y: Matrix, z: Matrix, mean: float) -> list[Matrix]:
    """Predictions at z by a column alone: between its sorted values, and by a straight line."""
    known, wanted = ~np.isnan(x), ~np.isnan(z)
    values, place = np.unique(x[known], return_inverse=True)
    if len(values) < 2:
        return [np.full(len(z), mean)]
    means = np.bincount(place, y[known]) / np.bincount(place)
    slope, level = np.polyfit((x[known] - values.mean()) / np.ptp(values), y[known], 1)
    curve = np.interp(z, values, means, left=np.nan, right=np.nan)  # beyond the ends there is nothing to judge
    line = slope * (z - values.mean()) / np.ptp(values) + level
    return [np.where(wanted, f, mean) for f in (curve, line)]


def _monotone(x: Matrix, y: Matrix) -> float:
    """The squared correlation of ranks: 1 if the target grows or falls with the column, as with its logarithm."""
    if np.isnan(x).any() or not np.ptp(x) > 0 or not np.ptp(y) > 0:
        return -np.inf
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1] ** 2)


def _by_level(codes: NDArray[np.int64], y: Matrix, wanted: NDArray[np.int64], mean: float) -> Matrix:
    """Predictions by the mean of each level."""
    size = max(int(codes.max()), int(wanted.max())) + 2
    counts, sums = np.bincount(codes + 1, minlength=size), np.bincount(codes + 1, y, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), mean)
    return np.asarray(means[wanted + 1])


def _combination(
    columns: dict[str, Matrix], y: Matrix, half: int, target: str, rule: Literal["sum", "product"]
) -> Leak | None:
    """The fewest columns whose weighted sum is the target, or None."""
    names, A = list(columns), np.column_stack(list(columns.values()))
    spread = A[:half].std(axis=0)
    keep = spread > 0
    names, A = [name for name, some in zip(names, keep) if some], A[:, keep] / spread[keep]
    centre, mean = A[:half].mean(axis=0), float(y[:half].mean())
    A, r, test = A - centre, y[:half] - mean, y[half:]
    if not 1 < A.shape[1] < half // 2:
        return None
    learn = A[:half]

    def fitted(chosen: list[int]) -> tuple[Matrix, float]:
        weights = np.linalg.lstsq(learn[:, chosen], r, rcond=None)[0]
        return weights, _explained(test, mean + A[half:][:, chosen] @ weights, mean)

    if fitted(list(range(len(names))))[1] < NEARLY_ALL:
        return None
    chosen: list[int] = []
    residual = r
    while len(chosen) < min(MOST_TERMS, len(names)):
        chosen.append(
            int(np.argmax(np.where(np.isin(np.arange(len(names)), chosen), -1.0, np.abs(learn.T @ residual))))
        )
        weights, score = fitted(chosen)
        if score >= NEARLY_ALL:
            exponents = weights / spread[keep][chosen]
            return Leak(target, tuple(names[j] for j in chosen), rule, min(score, 1.0), tuple(exponents.tolist()))
        residual = r - learn[:, chosen] @ weights
    return None


# -- classes -----------------------------------------------------------------------------------------------------------


def _of_classes(parts: dict[str, NDArray[Any]], y: NDArray[Any], half: int, target: str) -> tuple[Leak, ...]:
    labels, codes = np.unique(y, return_inverse=True)
    if len(labels) > half // FEWEST_OF_CLASS:
        return ()
    learn, test = codes[:half], codes[half:]
    commonest = int(np.bincount(learn).argmax())
    leaks = []
    for name, values in parts.items():
        levels = _nearest_levels(values, half)
        if levels is None:
            continue
        counts = np.zeros((levels.max() + 2, len(labels)))
        np.add.at(counts, (levels[:half] + 1, learn), 1.0)
        best = np.where(counts.any(axis=1), counts.argmax(axis=1), commonest)
        predictions = best[levels[half:] + 1]
        present = np.unique(test)
        score = float(np.mean([(predictions[test == c] == c).mean() for c in present]))
        if len(present) > 1 and score >= NEARLY_RIGHT:
            leaks.append(Leak(target, (name,), "column", score, classes=True))
    return tuple(leaks)


def _nearest_levels(values: NDArray[Any], half: int) -> NDArray[np.int64] | None:
    """The level of each value: of a number, the nearest number of the first half; −1 if it is missing."""
    x = _as_numbers(values)
    if x is None:
        return _codes(values)
    known = np.unique(x[:half][~np.isnan(x[:half])])
    if not len(known):
        return None
    above = np.clip(np.searchsorted(known, x), 1, max(len(known) - 1, 1))
    middle = (known[above - 1] + known[np.minimum(above, len(known) - 1)]) / 2
    levels = np.minimum(np.where(x > middle, above, above - 1), len(known) - 1)
    return np.where(np.isnan(x), -1, levels)
