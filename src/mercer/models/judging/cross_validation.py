"""Scores by cross-validation: every row is predicted by a model that was fitted without its fold.

The whole procedure is judged, not one model: each fold chooses its own kernel and parameters, so that no choice has
seen the rows that score it. The scores therefore stand for a model that is fitted in the same way to all rows.

    folds = make_folds(len(y), 5, repeats=3)
    judgement = judge_by_folds(lambda X, y: menu.fit("ridge", X, y).model, X, y, folds)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.models.base import exposures_in
from mercer.models.judging.held_out_intervals import crossed_intervals, own_intervals
from mercer.models.judging.measures import COVERAGE, Guesses, Predicted
from mercer.models.scores import Baseline, Judgement, predicted
from mercer.tuning.folds import Fold, group_numbers

Index = NDArray[np.int64]
Matrix = NDArray[np.float64]


def judge_by_folds(
    fit: Callable[[Any, NDArray[Any]], Any],
    X: Any,
    y: Any,
    folds: Sequence[Fold],
    *,
    groups: Any = None,
    exposure: Matrix | None = None,
    intervals: bool = False,
    apart: bool = False,
    progress: Callable[[str], Any] | None = None,
) -> Judgement:
    """Score a way to fit a model by cross-validation.

    The predictions of all folds are scored together. The baseline of each row is that of the rows its model was fitted
    to. Intervals draw a row with all its predictions, or a group with all its rows.

    Parameters
    ----------
    fit : function
        A function of rows and their targets that returns a fitted classifier or regressor.
    X, y : array or frame, array
        n rows and their targets or labels.
    folds : sequence of Fold
        The folds, from `mercer.tuning.folds.make_folds`.
    groups
        (n,) or None. Rows of one group depend on each other: the intervals draw whole groups.
    exposure : array or None
        (n,) or None. The exposures, of which the targets are counts: the baseline is then one rate. By default the
        column of X that is the exposure of the models.
    intervals : bool
        Whether 90 % intervals are scored, as by `judge`.
    apart : bool
        Whether the folds hold out whole groups, or later rows, as for `with_intervals`.
    progress
        Called with a line of text before each fold.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> from mercer.tuning.folds import make_folds
    >>> X = np.random.default_rng(0).normal(size=(60, 1))
    >>> y = np.sin(X[:, 0])
    >>> ridge = mc.KernelRidge(mc.Gaussian(1.0), alpha=0.01)
    >>> judgement = judge_by_folds(lambda X, y: ridge.fit(X, y), X, y, make_folds(60, 5))
    >>> judgement.by, len(judgement.predictions), judgement["R²"].value > 0.95
    ('folds', 60, True)
    """
    y = np.asarray(y)
    parts: list[Predicted] = []
    for number, fold in enumerate(folds):
        if progress is not None:
            progress(f"fold {number + 1} of {len(folds)}: fitting {len(fold.train):,} rows")
        model = fit(take(X, fold.train), y[fold.train])
        sizes = exposures_in(X, model) if exposure is None else exposure
        known, scored = (None, None) if sizes is None else (sizes[fold.train], sizes[fold.test])
        baseline = Baseline.of(y[fold.train], classes=is_classifier(model), exposure=known)
        Z, z = take(X, fold.test), y[fold.test]
        part = predicted(model, Z, z, baseline, exposure=scored)
        ends = own_intervals(model, Z, COVERAGE) if intervals and not apart and part.classes is None else None
        parts.append(replace(part, intervals=ends))
    if not parts:
        raise InvalidInput("`folds` must hold folds", got="none", advice="Make them with make_folds(len(y), 5).")
    rows = np.concatenate([fold.test for fold in folds])
    numbers = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
    if groups is not None:
        units = group_numbers(groups, len(y))[rows]
    else:
        units = rows if len(np.unique(rows)) < len(rows) else None
    together = _together(parts, units)
    if intervals:
        together = replace(together, intervals=_intervals(parts, units))
    return Judgement.of(together, "folds", rows, numbers, apart)


def _together(parts: list[Predicted], units: Index | None) -> Predicted:
    """The predictions of all folds; a class that the training rows of a fold lack has probability 0 there."""
    classes = None
    if parts[0].classes is not None:
        classes = np.unique(np.concatenate([part.classes for part in parts if part.classes is not None]))
    probabilities = None
    if classes is not None and all(part.probabilities is not None for part in parts):
        wide = []
        for part in parts:
            assert part.classes is not None
            P = np.zeros((len(part.y), len(classes)))
            P[:, np.searchsorted(classes, part.classes)] = part.probabilities
            wide.append(P)
        probabilities = np.concatenate(wide)
    return Predicted(
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.predictions for part in parts]),
        Guesses(*(np.concatenate(sides) for sides in zip(*(part.guesses for part in parts)))),
        classes,
        probabilities,
        counts=any(part.counts for part in parts),
        units=units,
        rate=any(part.rate for part in parts),
    )


def _intervals(parts: list[Predicted], units: Index | None) -> Matrix | None:
    """The intervals of all folds; if some models have none, from the residuals of half of the rows for the others."""
    if parts[0].classes is not None:
        return None
    known = [part.intervals for part in parts if part.intervals is not None]
    if len(known) == len(parts):
        return np.concatenate(known)
    y, predictions = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "predictions"))
    return crossed_intervals(y, predictions, COVERAGE, units)
