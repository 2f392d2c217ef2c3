"""C and the kernel of a support vector machine, chosen by folds: each fold is a path of growing C with warm starts.

Held-out rows never influence a fold: rules X → kernel (a median width, the scales of a table's columns) and widths in
units of the data are resolved on its training rows alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import d2_pinball_score

from mercer import threads
from mercer.data.cluster import Cluster
from mercer.data.frames import unframed
from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.models.base import Matrix, resolve_kernel, shortened, training_points, weighted_rows
from mercer.models.base import weights as checked_weights
from mercer.models.tunable import Recipe, recipes, stratified, widths
from mercer.tuning.folds import Fold, make_folds
from mercer.tuning.grid import Grid, GridCriterion, Mask, run_grid
from mercer.tuning.ranges import held_names
from mercer.tuning.trials import Measure, Tuned
from mercer.validation import check_numbers

CS = np.geomspace(0.1, 1000.0, 5)
"""The default grid of C; for a regression in units of the spread of its targets."""
EPSILON = 0.1
"""The half width of the tube that is tried without a grid, in units of the spread of the targets."""
FACTORS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Factors of a parameter that are tried, around its value or the one that the data suggests."""


class MachineFolds(GridCriterion):
    """The scores of support vector machines on folds, all of them in one round: a job is a path of Cs on one fold."""

    def __init__(
        self,
        model: Any,
        points: Points,
        y: NDArray[Any],
        w: Matrix | None,
        folds: Sequence[Fold],
        Cs: Matrix,
        candidates: Sequence[Recipe],
        cluster: Cluster | None = None,
    ) -> None:
        self.model, self.points, self.y, self.w, self.folds, self.Cs = model, points, y, w, folds, Cs
        self.candidates, self._cluster = candidates, cluster
        self.rounds = (range(len(folds)),)
        score = "accuracy" if is_classifier(model) else "D² (pinball)" if hasattr(model, "quantile") else "R²"
        self.measure = Measure(f"{len(folds)}-fold {score}", f"mean {score} of {len(folds)} folds", greater=True)

    def scores(self) -> Matrix:
        """The score of every candidate, C and fold."""
        return run_grid(self, np.ones((len(self.candidates), len(self.Cs)), dtype=bool), self._cluster)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}  # a worker evaluates, and starts no tasks

    def evaluate(self, racing: Mask, folds: Sequence[int], scores: Matrix) -> None:
        """Score a path for each candidate and fold."""

        def job(tasks: Sequence[tuple[int, int]]) -> None:
            for i, fold in tasks:
                if threads.stopped():
                    return
                scores[i, :, fold] = self.along(self.candidates[i], fold)

        tasks = list(product(np.flatnonzero(racing.any(axis=1)).tolist(), folds))
        shares = min(threads.n_threads(), len(tasks))
        threads.run([partial(job, tasks[share::shares]) for share in range(shares)])

    def along(self, candidate: Recipe, fold: int) -> list[float]:
        """The scores of one candidate on one fold, for growing C."""
        train, test = self.folds[fold]
        kernel = candidate(self.points.once(("training rows", fold), lambda: self.points.take(train)))
        machine = clone(self.model).set_params(kernel=kernel, **candidate.others)
        weighted = {} if self.w is None else {"sample_weight": self.w[train]}
        path = machine.path(_part(kernel, self.points, train, train), self.y[train], self.Cs, **weighted)
        held_out = _part(kernel, self.points, test, train), self.y[test]
        weighted = {} if self.w is None else {"sample_weight": self.w[test]}
        return [float(fitted.score(*held_out, **weighted)) for fitted in path]

    def baseline(self) -> float:
        """The mean score of always predicting the constant that the training rows suggest."""
        scores = []
        for train, test in self.folds:
            w, held_out = (None, None) if self.w is None else (self.w[train], self.w[test])
            empty = np.zeros((len(train), 1)), np.zeros((len(test), 1))
            if is_classifier(self.model):
                constant: Any = DummyClassifier(strategy="most_frequent").fit(empty[0], self.y[train], w)
                scores.append(constant.score(empty[1], self.y[test], held_out))
            elif hasattr(self.model, "quantile"):
                for tau in np.atleast_1d(self.model.quantile):
                    constant = DummyRegressor(strategy="quantile", quantile=tau).fit(empty[0], self.y[train], w)
                    values = constant.predict(empty[1])
                    scores.append(d2_pinball_score(self.y[test], values, sample_weight=held_out, alpha=tau))
            else:
                constant = DummyRegressor().fit(empty[0], self.y[train], w)
                scores.append(constant.score(empty[1], self.y[test], held_out))
        return float(np.mean(scores))


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
    cluster: Cluster | None = None,
) -> Any:
    """A fitted clone of the machine with the C and kernel of the best mean score over the folds.

    The model's `max_time` applies to each of many fits; scikit-learn's callbacks are called for the last one only.

    Parameters
    ----------
    model : estimator
        A `FoldTunable`: its parameters are `kernel` and those in `tunable`, and `path` fits along C.
    X, y : array or frame, array
        The data, as for `fit`.
    cv : int, splitter or array
        The number of folds, shuffled by `random_state` (stratified for classes); or, as in scikit-learn, a splitter,
        such as TimeSeriesSplit() if the order of rows matters, or pairs of training and test rows.
    grid
        Values by parameter name, such as {"C": [1.0, 10.0], "kernel__sigma": [0.5, 1.0]}, and `epsilon` or `nu` of a
        regression. By default C from 0.1 to 1000 (for a regression times the standard deviation of its targets), and
        every free parameter of the kernel (those in `mc.Fixed` are not free). Its widths come first, in factors of two
        around those that the data or a rule suggests, then the others one by one around their values. `epsilon` is a
        tenth of the standard deviation, unless the model's own is better. The model's kernel is itself a candidate.
    hold : sequence of str
        Names of parameters to keep if there is no grid, such as "C", "epsilon" or "kernel__sigma".
    sample_weight : array or None
        As for `fit`; the rows of a fold are scored by their weight, and rows of weight 0 are in no fold.
    random_state : int
        Seed of the folds.
    cluster : Cluster or None
        Where the candidates are tried, by default in this process.
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
    if isinstance(cv, str):
        raise InvalidInput(
            "Support vector machines are compared by folds: `cv` must be their number ≥ 2, or a splitter",
            got=repr(cv),
            advice="Pass cv=5. (The leave-one-out error of one model is bounded by margin_report().)",
        )
    w = checked_weights(sample_weight, points.n)
    kept = weighted_rows(w, points.n)
    whole = points if len(kept) == points.n else points.take(kept)
    stratify = stratified(model, targets[kept])
    folds = make_folds(points.n, cv, y=targets, stratify=stratify, weights=w, random_state=random_state)
    compare = partial(MachineFolds, model, points, targets, w, folds, cluster=cluster)
    if grid is None:
        spread = 1.0 if is_classifier(model) else _spread(targets, w)
        candidates, Cs, scores = _searched(compare, model, whole, hold, spread)
    else:
        candidates = recipes(model.kernel, _with_lists(grid), model.tunable, indefinite=True)
        Cs = _penalties(grid.get("C", [model.C]))
        for candidate in candidates:
            candidate(whole)  # names and values are checked before anything is fitted
        scores = compare(Cs, candidates).scores()
    machines = compare(Cs, candidates)
    kernels = [candidate(whole) for candidate in candidates]
    table = Grid.of(machines.measure, kernels, "C", Cs, scores, [candidate.others for candidate in candidates])
    baseline, trials = machines.baseline(), table.trials
    notes = []
    if not machines.measure.better(trials.best.score, baseline):
        notes.append(
            f"No candidate is better than always predicting the same value (score {baseline:.4f}): try another kernel, "
            "other columns, or a wider grid."
        )
    if "C" in table.at_edge:
        notes.append("The best C is at the edge of the grid: widen it.")
    fitted = clone(model).set_params(**table.parameters)
    fitted.fit(X, y, **({} if w is None else {"sample_weight": w}))
    fitted.tuning_ = Tuned(
        table.parameters,
        trials,
        evaluations=len(trials),
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
        baseline=baseline,
        grid=table,
    )
    return fitted


def _searched(
    compare: Any, model: Any, whole: Points, hold: Iterable[str], spread: float
) -> tuple[list[Recipe], Matrix, Matrix]:
    """The candidates without a grid, the Cs and the scores: widths first, then the other parameters one by one."""
    kernel = resolve_kernel(model.kernel, whole, indefinite=True)
    tube = "epsilon" in model.tunable
    names = [*kernel.parameter_names, "C", *(["epsilon"] if tube else [])]
    held = held_names(names, hold)
    free = ~held[: len(kernel.theta)]
    Cs = np.array([float(model.C)]) if held[len(free)] else CS * spread
    candidates = _by_width(model, kernel, whole, free)
    searched = tube and not held[-1]
    if searched:
        candidates = [replace(candidate, others={"epsilon": EPSILON * spread}) for candidate in candidates]
    scores = compare(Cs, candidates).scores()

    def best() -> Recipe:
        return candidates[int(scores.mean(axis=2).max(axis=1).argmax())]

    steps: list[Any] = [
        lambda recipe, i=position: [_moved(recipe, kernel, i, factor) for factor in FACTORS if factor != 1.0]
        for position in _one_by_one(kernel, whole, free)
    ]
    if searched:
        steps.append(lambda recipe: [replace(recipe, others={"epsilon": model.epsilon})])
    for step in steps:
        more = step(best())
        candidates, scores = [*candidates, *more], np.concatenate([scores, compare(Cs, more).scores()])
    return candidates, Cs, scores


def _spread(targets: NDArray[Any], w: Matrix | None) -> float:
    """The standard deviation of the targets, 1 if they are constant."""
    y = np.asarray(targets, dtype=np.float64)
    deviation = float(np.sqrt(np.average((y - np.average(y, axis=0, weights=w)) ** 2, axis=0, weights=w).mean()))
    return deviation if np.isfinite(deviation) and deviation > 0 else 1.0


def _with_lists(grid: Any) -> Any:
    """The grid, with a list in place of the single value of a parameter other than the kernel."""
    if not isinstance(grid, Mapping):
        return grid
    return {name: v if name == "kernel" or np.iterable(v) else [v] for name, v in grid.items()}


def _penalties(values: Any) -> Matrix:
    """Values of C, ascending."""
    required, advice = "Values of C must be > 0", "Pass numbers such as [0.1, 1.0, 10.0]."
    Cs = np.unique(check_numbers(values, required, above=0, infinite=True, advice=advice))
    if not len(Cs):
        raise InvalidInput(required, got=shortened(values), advice=advice)
    return Cs


def _by_width(model: Any, kernel: Kernel, points: Points, free: NDArray[np.bool_]) -> list[Recipe]:
    """The machine's kernel with all its widths times each factor, and a kernel (not a rule) also unchanged."""
    moved = widths(kernel, points) & free
    is_kernel = isinstance(model.kernel, Kernel)
    unchanged = Recipe(model.kernel, indefinite=True)
    if not moved.any():
        return [unchanged]
    scaled = [replace(unchanged, shifts=np.log(factor) * moved, suggested=is_kernel) for factor in FACTORS]
    return [unchanged, *scaled] if is_kernel else scaled


def _one_by_one(kernel: Kernel, points: Points, free: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The free parameters other than widths, without one factor of the whole kernel, which has the effect of C."""
    others = ~widths(kernel, points) & free
    factors = kernel.scale_factors
    if factors is not None:
        others[np.flatnonzero(factors)[0]] = False
    return np.flatnonzero(others)


def _moved(recipe: Recipe, kernel: Kernel, position: int, factor: float) -> Recipe:
    """The recipe with one parameter multiplied by a factor."""
    shifts = np.zeros(len(kernel.theta)) if recipe.shifts is None else recipe.shifts.copy()
    shifts[position] += np.log(factor)
    return replace(recipe, shifts=shifts)


def _part(kernel: Kernel, points: Points, rows: NDArray[Any], columns: NDArray[Any]) -> Any:
    """Some rows of X; if X is the kernel matrix itself, only the columns of the training rows."""
    if kernel.pairwise:
        return points.vectors()[np.ix_(rows, columns)]
    return take(points.raw, rows)
