"""Choose C and the kernel of a support vector machine by folds: every fold follows a path of growing C, warm.

A fold knows nothing of the rows that it is scored on: rules X → kernel (a median width, the scales of a table's
columns) and widths in units of the data are resolved on its training rows alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from mercer import threads
from mercer.data.frames import unframed
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.radial import ByWidth
from mercer.models.base import resolve_kernel, shortened, shown, training_points
from mercer.models.base import weights as checked_weights
from mercer.tuning.search import brief, held_names, ranges, scale_factors, slots

Matrix = NDArray[np.float64]
Index = NDArray[np.int64]
CS = np.geomspace(0.1, 1000.0, 5)
FACTORS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Of a parameter, around its value or around what the data suggests."""
OTHERS = "epsilon", "nu"
"""Parameters of a machine that a grid may name beside C and those of the kernel."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginGrid:
    """The scores of every kernel and C on every fold.

    Attributes
    ----------
    kernels, others, Cs : k kernels (as they are of all rows), the further parameters of each such as {"epsilon": 0.1},
        and c Cs, ascending.
    scores : shape (k, c, folds): accuracies, or R² of a regression, of rows by their weight.
    best : position (kernel, C) of the chosen one: the first of the greatest means, so the smallest C among equals.
    seconds : spent.
    baseline : the mean score of always predicting the same: the commonest class, the mean, or a quantile.
    """

    kernels: tuple[Kernel, ...]
    others: tuple[dict[str, Any], ...]
    Cs: Matrix
    scores: Matrix
    best: tuple[int, int]
    seconds: float
    baseline: float = float("nan")

    @property
    def kernel(self) -> Kernel:
        return self.kernels[self.best[0]]

    @property
    def other(self) -> dict[str, Any]:
        return self.others[self.best[0]]

    @property
    def C(self) -> float:
        return float(self.Cs[self.best[1]])

    @property
    def value(self) -> float:
        return float(self.scores[self.best].mean())

    @property
    def beats_baseline(self) -> bool:
        """Whether the chosen one is better than always predicting the same."""
        return self.value > self.baseline

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed about the choice, in words."""
        found = []
        if not self.beats_baseline:
            found.append(
                f"No candidate is better than always predicting the same (score {self.baseline:.4f}): try another "
                "kernel, other columns, or a wider grid."
            )
        if len(self.Cs) > 2 and self.best[1] in (0, len(self.Cs) - 1):
            found.append("The best C is at the edge of the grid: widen it.")
        return tuple(found)

    def __str__(self) -> str:
        spread = self.scores[self.best].std() / np.sqrt(max(1, self.scores.shape[2] - 1))
        lines = [
            ", ".join([brief(self.kernel), *(f"{n}={v:.4g}" for n, v in ({"C": self.C} | self.other).items())]),
            f"mean score {self.value:.4f} ± {spread:.4f} over {self.scores.shape[2]} folds; {self.scores[..., 0].size} "
            f"candidates in {self.seconds:.2g} s",
        ]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Recipe:
    """A kernel that is made of the rows that it is fitted to.

    Attributes
    ----------
    kernel : a kernel, a rule X → kernel, or None for the median width.
    changes : parameters to replace, by name.
    shifts : what is added to `theta`, the logarithms of the kernel's free parameters, or None.
    suggested : whether widths are those that the data suggests, before they are shifted.
    others : further parameters of the machine.
    """

    kernel: Any
    changes: dict[str, Any]
    shifts: Matrix | None = None
    suggested: bool = False
    others: dict[str, Any] | None = None

    def __call__(self, points: Points) -> Kernel:
        kernel = resolve_kernel(self.kernel, points, indefinite=True)
        kernel = kernel.replace(**self.changes) if self.changes else kernel
        if self.shifts is None:
            return kernel
        theta = kernel.theta
        if self.suggested:
            known = ranges(kernel, points, np.ones((points.n, 1)))
            theta = np.array([r.start if one else t for r, one, t in zip(known, _widths(kernel, points), theta)])
        low, high = kernel.bounds.T
        return kernel.with_theta(np.clip(theta + self.shifts, low, high))


def _widths(kernel: Kernel, points: Points) -> NDArray[np.bool_]:
    """Which free parameters are widths."""
    return np.array([isinstance(s.owner, ByWidth) and s.field == "sigma" for s in slots(kernel, points)], dtype=bool)


class _Folds:
    """The candidates on every fold."""

    def __init__(self, model: Any, points: Points, y: NDArray[Any], w: Matrix | None, folds: Any, Cs: Matrix) -> None:
        self.model, self.points, self.y, self.w, self.folds, self.Cs = model, points, y, w, folds, Cs
        self.train = [points.take(train) for train, _ in folds]

    def scores(self, candidates: Sequence[Recipe]) -> Matrix:
        """Of every candidate, C and fold."""
        found = np.empty((len(candidates), len(self.Cs), len(self.folds)))

        def job(tasks: Sequence[tuple[int, int]]) -> None:
            for i, j in tasks:
                if threads.stopped():
                    return
                found[i, :, j] = self.along(candidates[i], j)

        tasks = list(product(range(len(candidates)), range(len(self.folds))))
        shares = min(threads.n_threads(), len(tasks))
        threads.run([partial(job, tasks[share::shares]) for share in range(shares)])
        return found

    def along(self, candidate: Recipe, fold: int) -> list[float]:
        """The scores of one candidate on one fold, for growing C."""
        train, test = self.folds[fold]
        kernel = candidate(self.train[fold])
        machine = clone(self.model).set_params(kernel=kernel, **(candidate.others or {}))
        data = _part(kernel, self.points, train, train), self.y[train]
        more = {} if self.w is None else {"sample_weight": self.w[train]}
        if hasattr(machine, "path"):
            along = machine.path(*data, self.Cs, **more)
        else:
            along = [clone(machine).set_params(C=float(C)).fit(*data, **more) for C in self.Cs]
        held = _part(kernel, self.points, test, train), self.y[test]
        more = {} if self.w is None else {"sample_weight": self.w[test]}
        return [float(fitted.score(*held, **more)) for fitted in along]

    def baseline(self) -> float:
        """The mean score of always predicting the same, of what the training rows suggest."""
        found = []
        for train, test in self.folds:
            w, own = (None, None) if self.w is None else (self.w[train], self.w[test])
            empty = np.zeros((len(train), 1)), np.zeros((len(test), 1))
            if is_classifier(self.model):
                guess: Any = DummyClassifier(strategy="most_frequent").fit(empty[0], self.y[train], w)
                found.append(guess.score(empty[1], self.y[test], own))
            elif hasattr(self.model, "quantile"):
                for tau in np.atleast_1d(self.model.quantile):
                    guess = DummyRegressor(strategy="quantile", quantile=tau).fit(empty[0], self.y[train], w)
                    same = guess.predict(empty[1])
                    found.append(d2_pinball_score(self.y[test], same, sample_weight=own, alpha=tau))
            else:
                guess = DummyRegressor().fit(empty[0], self.y[train], w)
                found.append(guess.score(empty[1], self.y[test], own))
        return float(np.mean(found))


def tune_margin(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    grid: Mapping[str, Any] | None = None,
    hold: Iterable[str] = (),
    sample_weight: Any = None,
    random_state: int = 0,
) -> Any:
    """A fitted clone of the machine with the C and kernel of the best mean score over the folds.

    Parameters
    ----------
    model : with the parameters `kernel` and `C`; a method `path` fits along C with warm starts.
    X, y : the data, as for `fit`.
    cv : the number of folds, shuffled by `random_state` (stratified for classes); or what scikit-learn takes as cv: a
        splitter, such as TimeSeriesSplit() where the order of rows matters, or pairs of training and test rows.
    grid : values by parameter name, such as {"C": [1.0, 10.0], "kernel__sigma": [0.5, 1.0]}, and `epsilon` or `nu` of a
        regression. By default C from 0.1 to 1000, and every free parameter of the kernel (those in `mc.Fixed` are not):
        first its widths, in steps of two around those that the data suggests (or a rule does), then the others one
        after the other around their values. A kernel that was given is itself a candidate.
    hold : names of parameters to leave alone where there is no grid, such as "C" or "kernel__sigma".
    sample_weight : as for `fit`; the rows of a fold are scored by their weight, and rows of weight 0 are in none.
    random_state : seed of the folds.

    The model's `max_time` is for each fit, of which there are many; scikit-learn's callbacks are told of the last one.
    """
    began = time.perf_counter()
    points = training_points(X)
    targets = np.asarray(unframed(y))
    if len(targets) != points.n:
        raise InvalidInput(
            "y must hold one target per point",
            got=f"{len(targets)} for {points.n} points",
            advice="Pass one target for each row of X.",
        )
    w = checked_weights(sample_weight, points.n)
    kept = np.arange(points.n) if w is None else np.flatnonzero(w)
    whole = points if len(kept) == points.n else points.take(kept)
    folds = _folds(model, targets, kept, cv, random_state)
    kernel = resolve_kernel(model.kernel, whole, indefinite=True)
    if grid is None:
        *held, fixed_C = held_names([*kernel.parameter_names, "C"], hold)
        free, Cs = ~np.array(held, dtype=bool), np.array([float(model.C)]) if fixed_C else CS
        candidates = _by_width(model, kernel, whole, free)
    else:
        candidates, Cs = _candidates(model, kernel, grid)
        for candidate in candidates:
            candidate(whole)  # names and values are checked before anything is fitted
    machine = _Folds(model, points, targets, w, folds, Cs)
    scores = machine.scores(candidates)
    if grid is None:
        for position in _one_by_one(kernel, whole, free):
            best = candidates[int(scores.mean(axis=2).max(axis=1).argmax())]
            more = [_moved(best, kernel, position, factor) for factor in FACTORS if factor != 1.0]
            candidates, scores = [*candidates, *more], np.concatenate([scores, machine.scores(more)])
    i, c = np.unravel_index(int(scores.mean(axis=2).argmax()), scores.shape[:2])
    kernels = tuple(candidate(whole) for candidate in candidates)
    others = tuple(candidate.others or {} for candidate in candidates)
    baseline = machine.baseline()
    found = MarginGrid(kernels, others, Cs, scores, (int(i), int(c)), time.perf_counter() - began, baseline)
    fitted = clone(model).set_params(kernel=found.kernel, C=found.C, **found.other)
    fitted.fit(X, y, **({} if w is None else {"sample_weight": w}))
    fitted.tuning_ = found
    return fitted


def _by_width(model: Any, kernel: Kernel, points: Points, free: NDArray[np.bool_]) -> list[Recipe]:
    """The machine's kernel with all its widths times some factors; one that was given is among them as it is."""
    widths = _widths(kernel, points) & free
    given = isinstance(model.kernel, Kernel)
    if not widths.any():
        return [Recipe(model.kernel, {})]
    scaled = [Recipe(model.kernel, {}, np.log(factor) * widths, given) for factor in FACTORS]
    return [Recipe(model.kernel, {}), *scaled] if given else scaled


def _one_by_one(kernel: Kernel, points: Points, free: NDArray[np.bool_]) -> Index:
    """The free parameters that are no widths, but for one factor of the whole kernel, which C stands for."""
    others = ~_widths(kernel, points) & free
    factors = scale_factors(kernel)
    if factors is not None:
        others[np.flatnonzero(factors)[0]] = False
    return np.flatnonzero(others)


def _moved(recipe: Recipe, kernel: Kernel, position: int, factor: float) -> Recipe:
    """With one of its parameters multiplied."""
    shifts = np.zeros(len(kernel.theta)) if recipe.shifts is None else recipe.shifts.copy()
    shifts[position] += np.log(factor)
    return replace(recipe, shifts=shifts)


def _folds(model: Any, targets: NDArray[Any], kept: Index, cv: Any, random_state: int) -> list[tuple[Index, Index]]:
    """The rows of every fold, for training and for the score, of those that are kept."""
    required = "Support vector machines are compared by folds: `cv` must be their number ≥ 2, or a splitter"
    if isinstance(cv, str):
        raise InvalidInput(
            required, got=repr(cv), advice="margin_report() bounds the leave-one-out error of one model."
        )
    some = targets[kept]
    try:
        if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
            # As scikit-learn decides what to stratify, but in an order by chance: rows are often sorted.
            alike = isinstance(check_cv(int(cv), some, classifier=is_classifier(model)), StratifiedKFold)
            splitter: Any = (StratifiedKFold if alike else KFold)(int(cv), shuffle=True, random_state=random_state)
        else:
            splitter = check_cv(cv, some, classifier=is_classifier(model))
        if cv is None or isinstance(cv, (int, np.integer)) or hasattr(cv, "split"):
            folds = [(kept[train], kept[test]) for train, test in splitter.split(np.zeros((len(some), 1)), some)]
        else:  # rows that were chosen by someone, of all that were given
            chosen = [tuple(np.arange(len(targets))[rows] for rows in pair) for pair in splitter.split(targets)]
            folds = [(train[np.isin(train, kept)], test[np.isin(test, kept)]) for train, test in chosen]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInput(required, got=f"{shown(cv)}: {str(error).rstrip('.')}", advice="Try cv=5.") from None
    if any(not len(train) or not len(test) for train, test in folds) or not folds:
        raise InvalidInput(
            "Each fold must have rows of weight > 0 to fit and others to score",
            got=f"{len(folds)} folds, one of them without" if folds else "no fold",
            advice="Pass fewer folds, or other weights.",
        )
    return folds


def _part(kernel: Kernel, points: Points, rows: NDArray[Any], columns: NDArray[Any]) -> Any:
    """Some rows of X; where X is the kernel matrix itself, in the columns of the rows that are trained on."""
    if kernel.pairwise:
        return points.vectors()[np.ix_(rows, columns)]
    return take(points.raw, rows)


def listed(name: str, values: Any) -> list[Any]:
    """The values of one parameter of a grid."""
    found = list(values) if np.iterable(values) and not isinstance(values, (str, bytes, Mapping)) else []
    if not found:
        example = "[mc.Linear(), mc.Gaussian(1.0)]" if name == "kernel" else "[0.1, 1.0]"
        raise InvalidInput(
            f"`grid` must hold a list of at least one value for {name!r}",
            got=shortened(values),
            advice=f"Such as {{{name!r}: {example}}}.",
        )
    return found


def _candidates(model: Any, kernel: Kernel, grid: Mapping[str, Any]) -> tuple[list[Recipe], Matrix]:
    """The kernels, each with the further parameters, and the Cs, ascending."""
    if not isinstance(grid, Mapping):
        raise InvalidInput(
            "`grid` must be a dictionary of values by parameter name",
            got=shortened(grid),
            advice="Such as {'C': [1.0, 10.0], 'kernel__sigma': [0.5, 1.0]}.",
        )
    own = [name for name in OTHERS if name in model.get_params(deep=False)]
    inside = sorted(name for name in grid if name not in ("C", *own))
    wrong = [name for name in inside if not isinstance(name, str) or name.partition("__")[0] != "kernel"]
    if wrong:
        raise InvalidInput(
            f"`grid` must name {', '.join(['C', *own])}, `kernel`, or parameters of the kernel",
            got=repr(wrong[0]),
            advice="Such as 'C' and 'kernel__sigma'.",
        )
    given = grid.get("C", [model.C])
    try:
        Cs = np.unique(np.atleast_1d(np.asarray(given, dtype=np.float64)))
    except (TypeError, ValueError):
        Cs = np.zeros(1)
    if not len(Cs) or not (Cs > 0).all():
        raise InvalidInput("Values of C must be > 0", got=shortened(given), advice="Try [0.1, 1.0, 10.0].")
    names = [*(name for name in own if name in grid), *inside]
    values = [listed(n, grid[n] if n == "kernel" or np.iterable(grid[n]) else [grid[n]]) for n in names]
    found = []
    for chosen in product(*([plain(v) for v in each] for each in values)):
        changes = dict(zip(names, chosen))
        others = {name: changes.pop(name) for name in own if name in changes}
        base = changes.pop("kernel") if "kernel" in changes else model.kernel
        inner = {name.removeprefix("kernel__"): value for name, value in changes.items()}
        found.append(Recipe(base, inner, others=others))
    return found, Cs


def plain(value: Any) -> Any:
    """1.0 for np.float64(1.0), as models show their parameters."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
