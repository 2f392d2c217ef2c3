"""Models of different kinds beside each other, on the same folds, ranked by a score."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer.data.assignment import Roles
from mercer.data.frames import arrays, column_names, is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import length, take
from mercer.errors import InvalidInput, MissingValues
from mercer.models import menu
from mercer.models.base import shortened
from mercer.models.judging.boosting import BoostingClassifier, BoostingRegressor
from mercer.models.judging.cross_validation import judge_by_folds
from mercer.models.judging.measures import MEASURES
from mercer.models.provenance import Task
from mercer.models.scores import Judgement, Score, hold_out
from mercer.tuning.folds import Fold, group_numbers, make_folds
from mercer.validation import check_number, check_whole_number, generator
from mercer.words import first_few, number, one_line, seconds

Index = NDArray[np.int64]

FOLDED = 1000
"""Up to this number of rows models are compared by five folds, above it on a fifth of the rows that is held out."""
ROWS = 2000
"""The number of rows on which models are compared by default."""
BOOSTING = "boosting"
DEFAULT: dict[Task, tuple[str, ...]] = {
    "regression": ("auto", "ridge", "gp", "svm", "poisson", "neighbors", "local", "linear", BOOSTING),
    "classification": ("auto", "logistic", "svm", "neighbors", "linear", BOOSTING),
}
"""The models that are compared by default: poisson for counts only, and local only for few columns of numbers without
missing values. Linear models are listed with the reason if they cannot be fitted."""
OVER_EXPOSURE = ("auto", BOOSTING)
"""The models that are compared by default for counts over an exposure; "poisson" is then the same as "auto"."""
FEW_COLUMNS = 4
"""Local regression is compared by default if there are at most this many columns: in more, no row is near another."""
SHOWN: dict[Task, tuple[str, ...]] = {
    "regression": ("R²", "RMSE", "MAE", "Poisson deviance"),
    "classification": ("log loss", "accuracy", "balanced accuracy", "area under ROC"),
}
"""The measures that a printed comparison shows; the first one ranks."""
DEVIANCE = "Poisson deviance"
ALIASES = {"R²": "r2", "area under ROC": "auc"}
"""Names of measures as they are often typed."""
TIE = 1.645
"""A model is as good as the best if its losses are greater by less than this many standard errors."""


@dataclass(frozen=True, eq=False)
class Contender:
    """One of the models that are compared.

    Attributes
    ----------
    name, what : str
        Its name, and its description in a few words.
    judgement : Judgement or None
        Its predictions and scores; None if it could not be fitted.
    seconds : float
        The time of all its fits and predictions.
    failure : str
        The reason why it could not be fitted, or "".
    tied : bool
        Whether its losses, and those of all models before it, are not clearly greater than those of the best model: by
        less than 1.645 standard errors of the differences row by row. The best model is tied with itself.
    """

    name: str
    what: str
    judgement: Judgement | None
    seconds: float
    failure: str = ""
    tied: bool = False

    def score(self, name: str) -> Score | None:
        """The score of this name, if the model has it."""
        scores = () if self.judgement is None else self.judgement.scores
        return next((score for score in scores if score.name == name), None)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models ranked by a score, the best first; those without it come last.

    Attributes
    ----------
    contenders : tuple of Contender
        The models in their order.
    by : str
        The measure that ranks them.
    task : Task
        "regression" or "classification".
    rows, of : int
        The number of rows that were used, and of all rows.
    folds : tuple of Fold
        The folds, the same for all models.
    """

    contenders: tuple[Contender, ...]
    by: str
    task: Task
    rows: int
    of: int
    folds: tuple[Fold, ...] = field(repr=False)

    @property
    def best(self) -> Contender:
        """The model with the best score."""
        return self.contenders[0]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that at least one model has, the ranking one first."""
        known = [name for name in SHOWN[self.task] if any(c.score(name) for c in self.contenders)]
        return tuple(dict.fromkeys([self.by, *known]))

    @property
    def how(self) -> str:
        """The rows and folds of the comparison, in words."""
        some = f"{self.rows:,} rows" if self.rows == self.of else f"{self.rows:,} of {self.of:,} rows"
        if len(self.folds) == 1:
            train, test = self.folds[0]
            return f"{some}: fitted to {len(train):,}, scored on {len(test):,} held-out rows"
        return f"{some}, by cross-validation with {len(self.folds)} folds"

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Header and rows: rank, name, scores, seconds; "=" beside the rank marks a model as good as the best."""
        header = ["", "model", *self.measures, "time"]
        rows: list[list[Any]] = []
        for k, contender in enumerate(self.contenders):
            scores = [contender.score(name) for name in self.measures]
            rank = "" if contender.judgement is None else f"{k + 1}{'=' if contender.tied and k else ''}"
            values = [None if score is None else score.value for score in scores]
            rows.append([rank, contender.name, *values, seconds(contender.seconds)])
        scores = [next((s for c in self.contenders if (s := c.score(name))), None) for name in self.measures]
        baseline = [None if score is None else score.rounded_baseline for score in scores]
        rows.append(["", "baseline", *baseline, ""])
        return header, rows

    def notes(self) -> list[str]:
        """The models that could not be fitted and why, and what "=" means if it is there."""
        notes = [f"{c.name} was not fitted: {_within_sentence(c.failure)}" for c in self.contenders if c.failure]
        if any(c.tied for c in self.contenders[1:]):
            notes.append("= as good as the best: the difference is within chance on these rows")
        return notes

    def __str__(self) -> str:
        header, rows = self.table()
        cells = [header, *([value if isinstance(value, str) else _shown(value) for value in row] for row in rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
        lines = [
            "  ".join(
                cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([f"{self.how}, ranked by {self.by}", *lines, *self.notes()])

    __repr__ = __str__


def _within_sentence(text: str) -> str:
    """A text that follows a colon: without the capital of a first word such as "The"."""
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def _shown(value: float | None) -> str:
    return "–" if value is None or not np.isfinite(value) else number(value)


def compare(
    X: Any,
    y: Any,
    models: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    task: Task | None = None,
    by: str | None = None,
    roles: Mapping[str, str] | None = None,
    cv: Any = None,
    groups: Any = None,
    times: Any = None,
    repeats: int = 1,
    rows: int | None = ROWS,
    time: float = 60.0,
    random_state: int = 0,
    progress: Callable[[str], Any] | None = None,
) -> Comparison:
    """Fit models of different kinds to the same rows, and rank them by their scores on the same held-out rows.

    Every model makes all its choices within each fold. Scores have intervals, and models whose losses differ from those
    of the best by no more than chance are marked as equally good.

    Parameters
    ----------
    X, y : array or frame, array
        Rows (an array, a sparse matrix, a pandas or Polars frame) and their targets or labels.
    models
        Names from `mercer.models.menu.MENU` and "boosting" (gradient-boosted trees of scikit-learn), or estimators with
        `fit` and `predict` by name. By default models that suit the task.
    task : Task or None
        "regression" or "classification"; by default numbers are a regression, and anything else classes.
    by : str or None
        The measure that ranks the models; by default R² or the log loss, and the Poisson deviance of counts over an
        exposure.
    roles : dict or None
        {column: role} of features that are not what their types say, and of the "exposure" of counts, for models by
        name, as for `menu.fit`. Over an exposure, "auto", "poisson" and "boosting" are compared.
    cv : int, splitter or array
        The number of folds, a splitter, or pairs of training and test rows; by default 5 up to 1,000 rows, above it a
        fifth of the rows is held out once.
    groups, times, repeats
        As for `mercer.tuning.folds.make_folds`.
    rows : int or None
        The largest number of rows to use, drawn at random; None for all. Some models need time like its square.
    time : float
        Seconds for all models together, divided equally among all fits. It limits searches, not single fits.
    random_state : int
        Seed of the rows, the folds and the models.
    progress
        Called with a line of text before each fit.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(120, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=120)
    >>> ranking = mc.compare(X, y, ["linear", "ridge", "neighbors"])
    >>> [contender.name for contender in ranking.contenders]
    ['ridge', 'neighbors', 'linear']
    >>> ranking.best.score("R²").value > 0.97
    True
    """
    y = np.asarray(y)
    n = length(X)
    if y.shape != (n,):
        raise InvalidInput("y must hold one target per row", got=f"shape {y.shape} for {n} rows", advice="Check y.")
    check_number(time, "time", above=0, such_as=60)
    task = ("regression" if y.dtype.kind in "iuf" else "classification") if task is None else task
    exposure = Roles.of(roles).exposure
    by = (SHOWN[task][0] if exposure is None else DEVIANCE) if by is None else _measure(by, SHOWN[task])
    kept = _sampled(n, rows, random_state)
    X, y = (X, y) if len(kept) == n else (take(X, kept), y[kept])
    groups, times = (None if role is None else np.asarray(role)[kept] for role in (groups, times))
    folds = _folds(y, cv, task, groups, times, repeats, random_state)
    entries = _entries(X, y, models, task, roles, time / len(folds), random_state)
    results = []
    for name, (what, fit) in entries.items():
        results.append(_judged(name, what, fit, X, y, folds, groups, progress))
    if all(contender.judgement is None for contender in results):
        raise InvalidInput(
            "At least one model must be fitted", got=f"{results[0].name}: {results[0].failure}", advice="Name others."
        )
    _measure(by, tuple(score.name for c in results if c.judgement for score in c.judgement.scores))
    units = None if groups is None else group_numbers(groups, len(y))
    return Comparison(_ranked(results, by, task, units), by, task, len(y), n, tuple(folds))


def _measure(name: Any, names: tuple[str, ...]) -> str:
    """The measure of this name, in any case, also as it is typed without special letters."""
    spellings = {known.lower(): known for known in names} | {
        ALIASES[known]: known for known in names if known in ALIASES
    }
    if str(name).lower() in spellings:
        return spellings[str(name).lower()]
    raise InvalidInput(
        f"`by` must be a score that a model has: {', '.join(map(repr, dict.fromkeys(names)))}",
        got=shortened(name),
        advice="Pass one of these names.",
    )


def _sampled(n: int, rows: int | None, random_state: int) -> Index:
    """The positions of the rows that are used."""
    if rows is None or n <= check_whole_number(rows, "rows", least=10, alternative="None for all", such_as=ROWS):
        return np.arange(n)
    return np.sort(generator(random_state).permutation(n)[:rows])


def _folds(
    y: NDArray[Any], cv: Any, task: Task, groups: Any, times: Any, repeats: int, random_state: int
) -> list[Fold]:
    classes = task == "classification"
    if cv is None and len(y) > FOLDED and repeats == 1:
        split = hold_out(y, 0.2, classes=classes, groups=groups, times=times, random_state=random_state)
        return [Fold(*split)]
    return make_folds(
        len(y), cv, y=y, stratify=classes, groups=groups, times=times, repeats=repeats, random_state=random_state
    )


Fit = Callable[[Any, NDArray[Any]], Any]


def _entries(
    X: Any, y: NDArray[Any], models: Any, task: Task, roles: Any, seconds_each: float, random_state: int
) -> dict[str, tuple[str, Fit]]:
    """The description of each model, and the function that fits it."""
    if isinstance(models, Mapping):
        return {str(name): (type(model).__name__, _cloned(model)) for name, model in models.items()}
    names = _suitable(X, y, task, roles) if models is None else list(models)
    if not names:
        raise InvalidInput("`models` must name models", got="none", advice="Name some, such as ['auto', 'ridge'].")
    limit = seconds_each / len(names)
    entries: dict[str, tuple[str, Fit]] = {}
    for name in names:
        if name == BOOSTING:
            over = Roles.of(roles).exposure
            rival: Any = (
                BoostingRegressor(random_state, over) if task == "regression" else BoostingClassifier(random_state)
            )
            entries[name] = ("gradient-boosted trees of scikit-learn", _cloned(rival))
        elif name in menu.MENU[task]:
            entries[name] = (menu.offered(name, task).what, _from_menu(name, task, roles, limit, random_state))
        else:
            near = get_close_matches(str(name), [*menu.MENU[task], BOOSTING], 1)
            raise InvalidInput(
                f"A model for {task} must be one of {', '.join([*menu.MENU[task], BOOSTING])}",
                got=shortened(name),
                advice=f"Did you mean {near[0]!r}?" if near else "Name one of these.",
            )
    return entries


def _suitable(X: Any, y: NDArray[Any], task: Task, roles: Mapping[str, str] | None = None) -> list[str]:
    """The default models for these rows."""
    if Roles.of(roles).exposure is not None:
        return list(OVER_EXPOSURE)
    counts = task == "regression" and bool((y >= 0).all() and (y == np.floor(y)).all())
    wide = getattr(X, "shape", (0,))[-1] > FEW_COLUMNS
    numbers = set((roles or {}).values()) <= {"number"} and menu.complete_numbers(X)
    mixed = is_frame(X) and not numbers
    unsuitable = {"poisson": not counts, "local": wide or mixed}
    return [name for name in DEFAULT[task] if not unsuitable.get(name)]


def _cloned(model: Any) -> Fit:
    return lambda X, y: clone(model).fit(X, y)


def _from_menu(name: str, task: Task, roles: Any, limit: float, random_state: int) -> Fit:
    return lambda X, y: menu.fit(name, X, y, task=task, roles=roles, time=limit, random_state=random_state).model


def _judged(
    name: str, what: str, fit: Fit, X: Any, y: NDArray[Any], folds: list[Fold], groups: Any, progress: Any
) -> Contender:
    """A model with its scores, or with the reason why it could not be fitted."""
    began = clock.perf_counter()

    def report(text: str) -> None:
        if progress is not None:
            progress(f"{name}, {text}")

    try:
        judgement = judge_by_folds(fit, X, y, folds, groups=groups, progress=report)
    except (InvalidInput, MemoryError, np.linalg.LinAlgError) as error:
        return Contender(name, what, None, clock.perf_counter() - began, one_line(_reason(error, X), 200))
    return Contender(name, what, judgement, clock.perf_counter() - began)


def _reason(error: Exception, X: Any) -> str:
    """Why a model could not be fitted; rows are not named, since an error counts those of a fold."""
    if isinstance(error, MissingValues):
        columns = zip(column_names(X), arrays(X)) if is_frame(X) else ()
        names = [repr(name) for name, A in columns if missing_entries(A).any()]
        return "it needs a value in every cell, and some are missing" + (f" in {first_few(names, 5)}" if names else "")
    return f"{error.required}, got {error.got}" if isinstance(error, InvalidInput) else str(error).rstrip(".")


def _ranked(results: list[Contender], by: str, task: Task, units: Index | None) -> tuple[Contender, ...]:
    """The models in the order of a score, with those marked that are as good as the best."""
    sign = -1.0 if MEASURES[by].greater_is_better else 1.0

    def key(contender: Contender) -> tuple[int, float]:
        score = contender.score(by)
        if score is not None:
            return 0, sign * score.value
        return (2, 0.0) if contender.judgement is None else (1, float(contender.judgement.losses.mean()))

    order = sorted(results, key=key)
    best, ranked, leading = order[0].judgement, list[Contender](), True
    assert best is not None
    for contender in order:
        leading = leading and contender.score(by) is not None and _tied(best, contender, units)
        ranked.append(replace(contender, tied=leading))
    return tuple(ranked)


def _tied(best: Judgement, contender: Contender, units: Index | None) -> bool:
    """Whether the losses of a model are not clearly greater than those of the best, row by row."""
    other = contender.judgement
    if other is None or (other.probabilities is None) != (best.probabilities is None):
        return False
    place = best.rows if units is None else units[best.rows]
    codes = np.unique(place, return_inverse=True)[1]
    more = np.bincount(codes, other.losses - best.losses)
    error = float(np.linalg.norm(more - more.mean()))  # of the sum over independent rows or groups
    return bool(more.sum() <= TIE * error)
