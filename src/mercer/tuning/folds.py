"""Folds: the one way to hold rows out, for grids, for calibration and for predictions by cross-validation.

Rows are shuffled by default, because data is often sorted; classes are stratified, so that each fold has its share of
them; rows of weight 0 are in no fold. The folds of a seed are those of scikit-learn's `KFold` and `StratifiedKFold`
with `shuffle=True` and the same seed. Other folds are described by a splitter of scikit-learn (an object with `split`)
or by pairs of training and test rows.

Rows that belong together, such as the visits of one patient, are held out together by `groups`: the score is then that
of a new patient. Rows in time are held out by `times`: each fold is fitted to the past and tested on what follows, as a
forecast is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import missing_entries
from mercer.errors import InvalidInput
from mercer.validation import check_whole_number, generator, is_whole_number
from mercer.words import shown

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
    groups: Any = None,
    times: Any = None,
    repeats: int = 1,
    shuffle: bool = True,
    random_state: Any = 0,
) -> list[Fold]:
    """The folds of n rows.

    Parameters
    ----------
    n : int
        The number of rows.
    cv : int, splitter or array
        The number of folds, from 2 to the number of rows of weight > 0; a splitter as in scikit-learn; or pairs of
        training and test rows, as positions or masks. None is 5.
    y : array
        (n, …) targets or labels, which splitters may read.
    stratify : bool
        Whether each of a number of folds has its share of each value of y.
    weights
        (n,) or None. Rows of weight 0 are in no fold.
    groups
        (n,) or None. Rows of one group are held out together. Folds have nearly equal numbers of rows (with `stratify`,
        of each class): the largest groups come first, each to the fold that has least of its rows.
    times
        (n,) numbers or dates, or None. The rows in the order of time are cut into cv + 1 parts of nearly equal size;
        fold i is fitted to the first i parts and tested on the next one. Rows of one time stay together.
    repeats : int
        How often a number of folds is drawn; each time gives other folds.
    shuffle : bool
        Whether a number of folds is drawn at random; otherwise they are contiguous.
    random_state : int, Generator or None
        A seed of the shuffle, a generator of NumPy, or None.

    Examples
    --------
    >>> [fold.test.tolist() for fold in make_folds(6, 3, shuffle=False)]
    [[0, 1], [2, 3], [4, 5]]
    >>> make_folds(4, [([0, 1], [2, 3])], weights=[1, 0, 1, 1])
    [Fold(train=array([0]), test=array([2, 3]))]
    >>> [fold.test.tolist() for fold in make_folds(6, 2, groups=["b", "a", "b", "c", "a", "b"])]
    [[0, 2, 5], [1, 3, 4]]
    >>> make_folds(6, 2, times=[2001, 2003, 2002, 2001, 2003, 2002])
    [Fold(train=array([0, 3]), test=array([2, 5])), Fold(train=array([0, 2, 3, 5]), test=array([1, 4]))]
    """
    cv = 5 if cv is None else cv
    kept = np.arange(n) if weights is None else np.flatnonzero(weights)
    required = f"`cv` must be a number of folds from 2 to {len(kept)}, a splitter, or pairs of training and test rows"
    targets = None if y is None else np.asarray(y)[kept]
    members = None if groups is None else group_numbers(groups, n)[kept]
    _check_roles(cv, members, times, check_whole_number(repeats, "repeats", such_as=3))
    if is_whole_number(cv):
        if not 2 <= cv <= len(kept):
            raise InvalidInput(required, got=f"{cv} for n_samples = {len(kept)}", advice="Pass a number such as cv=5.")
        if times is not None:
            return [Fold(kept[train], kept[test]) for train, test in _forward(time_ranks(times, n)[kept], int(cv))]
        draw = _shuffler(random_state) if shuffle else None
        folds = []
        for _ in range(repeats):
            if members is not None:
                numbers = _grouped(members, targets if stratify else None, int(cv), draw)
            else:
                numbers = _stratified(targets, int(cv), draw) if stratify else _parts(len(kept), int(cv), draw)
            folds += [Fold(kept[numbers != i], kept[numbers == i]) for i in range(int(cv))]
        return folds
    try:
        if hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
            pairs = cv.split(np.zeros((len(kept), 1)), targets, *([] if members is None else [members]))
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


def group_numbers(groups: Any, n: int) -> Index:
    """The number of each row's group, by the order of their first appearance.

    >>> group_numbers(["b", "a", "b"], 3)
    array([0, 1, 0])
    """
    values = _one_per_row(groups, n, "groups")
    numbers: dict[Any, int] = {}
    for value in values.tolist():
        try:
            numbers.setdefault(value, len(numbers))
        except TypeError:
            raise InvalidInput(
                "`groups` must hold names or numbers",
                got=shown(value),
                advice="Convert them, for example with str(value).",
            ) from None
    return np.array([numbers[value] for value in values.tolist()], dtype=np.int64)


def time_ranks(times: Any, n: int) -> Index:
    """The rank of each row's time; equal times have equal ranks.

    >>> time_ranks(["2027-03-01", "2026-12-31", "2027-03-01"], 3)
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `times` must hold numbers or dates, got '2027-03-01'. Convert texts to dates, for \
example with numpy.array(times, dtype="datetime64").
    >>> import numpy as np
    >>> time_ranks(np.array(["2027-03-01", "2026-12-31", "2027-03-01"], dtype="datetime64[D]"), 3)
    array([1, 0, 1])
    """
    values = _one_per_row(times, n, "times")
    if values.dtype == object and all(isinstance(value, date) for value in values.tolist()):
        values = values.astype("datetime64[us]")
    if values.dtype.kind not in "biufmM":
        raise InvalidInput(
            "`times` must hold numbers or dates",
            got=shown(values[0]),
            advice='Convert texts to dates, for example with numpy.array(times, dtype="datetime64").',
        )
    return np.unique(values, return_inverse=True)[1].ravel()


def _one_per_row(values: Any, n: int, name: str) -> NDArray[Any]:
    """One value per row, none of them missing."""
    values = np.asarray(values)
    if values.shape != (n,):
        raise InvalidInput(
            f"`{name}` must hold one value per row",
            got=f"shape {values.shape} for {n} rows",
            advice="Check the length.",
        )
    missing = missing_entries(values)
    if missing.any():
        raise InvalidInput(
            f"`{name}` must have a value in every row",
            got=f"none in row {int(missing.argmax())}, and {int(missing.sum())} missing in all",
            advice="Fill them in, or drop these rows.",
        )
    return values


def _check_roles(cv: Any, members: Index | None, times: Any, repeats: int) -> None:
    """Refuse combinations that contradict each other."""
    if times is not None and (members is not None or repeats > 1):
        raise InvalidInput(
            "Folds in time must be without `groups` and `repeats`: the past is the only choice of rows to fit",
            got="both `times` and " + ("`groups`" if members is not None else f"repeats={repeats}"),
            advice="Pass one of the two.",
        )
    if not is_whole_number(cv) and (times is not None or repeats > 1):
        raise InvalidInput(
            "`times` and `repeats` need a number of folds",
            got=f"cv={shown(cv)}",
            advice="Pass a number such as cv=5, or describe all folds by `cv`.",
        )


def _forward(ranks: Index, count: int) -> list[Fold]:
    """Folds that are fitted to the past and tested on the next part of the rows."""
    rows = np.bincount(ranks)
    ends = np.cumsum(rows)
    part = np.minimum(((ends - rows / 2) * (count + 1) / len(ranks)).astype(np.int64), count)[ranks]
    if len(np.unique(part)) <= count:
        raise InvalidInput(
            f"{count} folds in time need {count + 1} parts of different times",
            got=f"{len(rows)} different times, most of the rows at few of them" if len(rows) > count else
            f"{len(rows)} different times",
            advice="Pass fewer folds.",
        )  # fmt: skip
    return [Fold(np.flatnonzero(part <= i), np.flatnonzero(part == i + 1)) for i in range(count)]


def _grouped(members: Index, labels: Any, count: int, draw: Any) -> Index:
    """The number of each row's part. Groups stay together, and each part has its share of the rows of each label."""
    codes = np.zeros(len(members), dtype=np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    sizes = np.zeros((members.max() + 1, codes.max() + 1))
    np.add.at(sizes, (members, codes.ravel()), 1.0)
    order = np.flatnonzero(sizes.any(axis=1))
    if len(order) < count:
        raise InvalidInput(
            "The number of folds must be at most the number of groups",
            got=f"{count} folds for {len(order)} groups",
            advice="Pass fewer folds.",
        )
    if draw is not None:
        draw.shuffle(order)
    order = order[np.argsort(-sizes[order].sum(axis=1), kind="stable")]
    weights = 1.0 / np.maximum(sizes.sum(axis=0), 1.0) ** 2
    filled = np.zeros((count, sizes.shape[1]))
    part = np.full(len(sizes), -1)
    for group in order:
        # The part where the squares of its shares of the labels grow least; with one label, the smallest part.
        costs = filled @ (weights * sizes[group])
        chosen = int(np.lexsort((filled.sum(axis=1), costs))[0])
        part[group] = chosen
        filled[chosen] += sizes[group]
    return part[members]


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
