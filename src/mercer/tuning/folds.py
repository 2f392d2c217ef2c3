"""Folds: the one way to hold rows out, for grids, for calibration and for predictions by cross-validation.

Rows are shuffled by default, because data is often sorted; classes are stratified, so that each fold has its share of
them; rows of weight 0 are in no fold. The folds of a seed are those of scikit-learn's `KFold` and `StratifiedKFold`
with `shuffle=True` and the same seed. Other folds are described by a splitter of scikit-learn (an object with `split`)
or by pairs of training and test rows, such as `GroupKFold().split(X, y, groups)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.validation import generator, is_whole_number

Index = NDArray[np.int64]


class Fold(NamedTuple):
    """Positions of the rows to fit on, and of the rows that are held out."""

    train: Index
    test: Index


def make_folds(
    n: int,
    cv: Any = 5,
    *,
    y: Any = None,
    stratify: bool = False,
    weights: Any = None,
    shuffle: bool = True,
    random_state: Any = 0,
) -> list[Fold]:
    """The folds of n rows.

    Parameters
    ----------
    n : the number of rows.
    cv : the number of folds, from 2 to the number of rows of weight > 0; a splitter as in scikit-learn; or pairs of
        training and test rows, as positions or masks. None is 5.
    y : (n, …) targets or labels, which splitters may read.
    stratify : whether each of a number of folds has its share of each value of y.
    weights : (n,) or None. Rows of weight 0 are in no fold.
    shuffle : whether a number of folds is drawn at random; otherwise they are contiguous.
    random_state : a seed of the shuffle, a generator of NumPy, or None.

    >>> [fold.test.tolist() for fold in make_folds(6, 3, shuffle=False)]
    [[0, 1], [2, 3], [4, 5]]
    >>> make_folds(4, [([0, 1], [2, 3])], weights=[1, 0, 1, 1])
    [Fold(train=array([0]), test=array([2, 3]))]
    """
    cv = 5 if cv is None else cv
    kept = np.arange(n) if weights is None else np.flatnonzero(weights)
    required = f"`cv` must be a number of folds from 2 to {len(kept)}, a splitter, or pairs of training and test rows"
    targets = None if y is None else np.asarray(y)[kept]
    if is_whole_number(cv):
        if not 2 <= cv <= len(kept):
            raise InvalidInput(required, got=f"{cv} for n_samples = {len(kept)}", advice="Pass a number such as cv=5.")
        draw = _shuffler(random_state) if shuffle else None
        numbers = _stratified(targets, int(cv), draw) if stratify else _parts(len(kept), int(cv), draw)
        return [Fold(kept[numbers != i], kept[numbers == i]) for i in range(int(cv))]
    try:
        if hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
            pairs = cv.split(np.zeros((len(kept), 1)), targets)
            folds = [Fold(kept[train], kept[test]) for train, test in pairs]
        else:
            rows = np.arange(n)
            chosen = [(rows[_positions(train)], rows[_positions(test)]) for train, test in _pairs(cv)]
            folds = [Fold(train[np.isin(train, kept)], test[np.isin(test, kept)]) for train, test in chosen]
    except (TypeError, ValueError, IndexError) as error:
        got = f"{cv!r}"[:80] + f": {str(error).rstrip('.')}"
        raise InvalidInput(required, got=got, advice="Pass a number such as cv=5.") from None
    if not folds or any(not len(train) or not len(test) for train, test in folds):
        raise InvalidInput(
            "Each fold must have rows of weight > 0 to fit and others to score",
            got=f"{len(folds)} folds, one of them without such rows" if folds else "no fold",
            advice="Pass fewer folds, or other weights.",
        )
    return folds


def fold_numbers(folds: list[Fold], n: int) -> Index:
    """The number of the fold that holds out each row, for folds that hold out every row once; −1 for unused rows.

    >>> fold_numbers(make_folds(6, 3, shuffle=False), 6)
    array([0, 0, 1, 1, 2, 2])
    """
    numbers, times, seen = np.full(n, -1), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    for number, (train, test) in enumerate(folds):
        numbers[test] = number
        times[test] += 1
        seen[train] = seen[test] = True
    if (times[seen] != 1).any():
        raise InvalidInput(
            "`cv` must put every row in one test fold",
            got=f"{(times[seen] == 0).sum()} rows in none and {(times > 1).sum()} in several",
            advice="Use a splitter such as KFold.",
        )
    return numbers


def _shuffler(random_state: Any) -> Any:
    """An object with `shuffle`. A seed is for NumPy's old generator, with which scikit-learn draws folds."""
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    try:
        return np.random.RandomState(random_state)
    except (TypeError, ValueError):
        return generator(random_state)


def _parts(n: int, count: int, draw: Any) -> Index:
    """The number of each row's part; the sizes of the parts differ by at most one."""
    order = np.arange(n)
    if draw is not None:
        draw.shuffle(order)
    numbers = np.empty(n, dtype=np.int64)
    for number, rows in enumerate(np.array_split(order, count)):
        numbers[rows] = number
    return numbers


def _stratified(labels: Any, count: int, draw: Any) -> Index:
    """The number of each row's part; each part has its share of each label, drawn label by label as in scikit-learn."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes.ravel()]  # numbered by their first appearance
    if (np.bincount(codes) < count).all():
        raise InvalidInput(
            "The number of folds must be at most the number of rows of the commonest class",
            got=f"{count} folds for classes of at most {np.bincount(codes).max()} rows",
            advice="Pass fewer folds.",
        )
    ordered = np.sort(codes)
    share = np.array([np.bincount(ordered[i::count], minlength=len(first)) for i in range(count)])
    numbers = np.empty(len(codes), dtype=np.int64)
    for label in range(len(first)):
        parts = np.arange(count).repeat(share[:, label])
        if draw is not None:
            draw.shuffle(parts)
        numbers[codes == label] = parts
    return numbers


def _pairs(cv: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(cv, (str, bytes)) or not np.iterable(cv):
        raise TypeError(f"{type(cv).__name__} is neither a splitter nor pairs")
    return cv


def _positions(rows: Any) -> Any:
    rows = np.asarray(rows)
    return rows if rows.dtype.kind in "biu" or rows.size else rows.astype(np.int64)
