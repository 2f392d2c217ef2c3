"""Choose C and the kernel of a support vector machine by folds: every fold follows a path of growing C, warm."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from mercer.errors import InvalidInput
from mercer.kernels import tiling
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.kernels.points import Points, take
from mercer.kernels.rules import median_gaussian
from mercer.models.base import resolve_kernel, shortened, shown, training_points
from mercer.tuning.search import brief

Matrix = NDArray[np.float64]
CS = np.geomspace(0.1, 1000.0, 5)
WIDTHS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
OTHERS = "epsilon", "nu"
"""Parameters of a machine that a grid may name beside C and those of the kernel."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginGrid:
    """The scores of every kernel and C on every fold.

    Attributes
    ----------
    kernels, others, Cs : k kernels, the further parameters of each such as {"epsilon": 0.1}, and c Cs, ascending.
    scores : shape (k, c, folds): accuracies, or R² of a regression.
    best : position (kernel, C) of the chosen one: the first of the greatest means, so the smallest C among equals.
    seconds : spent.
    """

    kernels: tuple[Kernel, ...]
    others: tuple[dict[str, Any], ...]
    Cs: Matrix
    scores: Matrix
    best: tuple[int, int]
    seconds: float

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

    def __str__(self) -> str:
        spread = self.scores[self.best].std() / np.sqrt(max(1, self.scores.shape[2] - 1))
        lines = [
            ", ".join([brief(self.kernel), *(f"{n}={v:.4g}" for n, v in ({"C": self.C} | self.other).items())]),
            f"mean score {self.value:.4f} ± {spread:.4f} over {self.scores.shape[2]} folds; {self.scores[..., 0].size} "
            f"candidates in {self.seconds:.2g} s",
        ]
        edges = [name for name, at, size in (("C", self.best[1], len(self.Cs)),) if size > 2 and at in (0, size - 1)]
        return "\n".join([*lines, *(f"The best {name} is at the edge of the grid: widen it." for name in edges)])

    __repr__ = __str__


def tune_margin(
    model: Any, X: Any, y: Any, *, cv: Any = 5, grid: Mapping[str, Any] | None = None, sample_weight: Any = None
) -> Any:
    """A fitted clone of the machine with the C and kernel of the best mean score over the folds.

    Parameters
    ----------
    model : with the parameters `kernel` and `C`; a method `path` fits along C with warm starts.
    X, y : the data, as for `fit`.
    cv : the number of folds (stratified for classes), or a splitter.
    grid : values by parameter name, such as {"C": [1.0, 10.0], "kernel__sigma": [0.5, 1.0]}, and `epsilon` or `nu` of a
        regression. By default C from 0.1 to 1000, and widths around the median distance (of a kernel without `sigma`,
        the kernel as it is).
    sample_weight : as for `fit`.

    The model's `max_time` is for each fit, of which there are many; scikit-learn's callbacks are told of the last one.
    """
    began = time.perf_counter()
    points = training_points(X)
    kernel = resolve_kernel(model.kernel, points, indefinite=True)
    candidates, Cs = _candidates(model, kernel, points, grid)
    labels = np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    folds = _folds(model, points.n, labels, cv)
    scores = np.empty((len(candidates), len(Cs), len(folds)))

    def job(tasks: Sequence[tuple[int, int]]) -> None:
        for i, j in tasks:
            if tiling.stopped():
                return
            train, test = folds[j]
            own, others = candidates[i]
            machine = clone(model).set_params(kernel=own, **others)
            more = {} if weights is None else {"sample_weight": weights[train]}
            data = _part(own, points, train, train), labels[train]
            if hasattr(machine, "path"):
                along = machine.path(*data, Cs, **more)
            else:
                along = [clone(machine).set_params(C=float(C)).fit(*data, **more) for C in Cs]
            for c, fitted in enumerate(along):
                scores[i, c, j] = fitted.score(_part(own, points, test, train), labels[test])

    tasks = list(product(range(len(candidates)), range(len(folds))))
    shares = min(tiling.n_threads(), len(tasks))
    tiling.run([partial(job, tasks[share::shares]) for share in range(shares)])
    i, c = np.unravel_index(int(scores.mean(axis=2).argmax()), scores.shape[:2])
    kernels, others = zip(*candidates)
    found = MarginGrid(kernels, others, Cs, scores, (int(i), int(c)), time.perf_counter() - began)
    fitted = clone(model).set_params(kernel=found.kernel, C=found.C, **found.other)
    fitted.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    fitted.tuning_ = found
    return fitted


def _folds(model: Any, n: int, labels: NDArray[Any], cv: Any) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The rows of every fold, for training and for the score."""
    required = "Support vector machines are compared by folds: `cv` must be their number ≥ 2, or a splitter"
    if isinstance(cv, str):
        raise InvalidInput(
            required, got=repr(cv), advice="margin_report() bounds the leave-one-out error of one model."
        )
    if len(labels) != n:
        raise InvalidInput(
            "y must hold one target per point", got=f"{len(labels)} for {n} points", advice="Check both."
        )
    try:
        return list(check_cv(cv, labels, classifier=is_classifier(model)).split(np.zeros((n, 1)), labels))
    except (TypeError, ValueError) as error:
        raise InvalidInput(required, got=f"{shown(cv)}: {str(error).rstrip('.')}", advice="Such as cv=5.") from None


def _part(kernel: Kernel, points: Points, rows: NDArray[Any], columns: NDArray[Any]) -> Any:
    """Some rows of X; where X is the kernel matrix itself, in the columns of the rows that are trained on."""
    if any(isinstance(leaf, Precomputed) and leaf.K is None for leaf in kernel.leaves):
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


def _candidates(
    model: Any, kernel: Kernel, points: Points, grid: Mapping[str, Any] | None
) -> tuple[list[tuple[Kernel, dict[str, Any]]], Matrix]:
    """The kernels, each with the further parameters, and the Cs, ascending."""
    if grid is None:
        sigma = getattr(kernel, "sigma", None)
        if sigma is not None and np.ndim(sigma) == 0:
            grid = {"C": CS, "kernel__sigma": WIDTHS * median_gaussian(points).sigma}
        else:
            grid = {"C": CS}
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
        raise InvalidInput("Values of C must be > 0", got=shortened(given), advice="Such as [0.1, 1.0, 10.0].")
    names = [*(name for name in own if name in grid), *inside]
    values = [listed(n, grid[n] if n == "kernel" or np.iterable(grid[n]) else [grid[n]]) for n in names]
    found = []
    for chosen in product(*([plain(v) for v in each] for each in values)):
        changes = dict(zip(names, chosen))
        others = {name: changes.pop(name) for name in own if name in changes}
        base = resolve_kernel(changes.pop("kernel"), points) if "kernel" in changes else kernel
        inner = {name.removeprefix("kernel__"): value for name, value in changes.items()}
        found.append((base.replace(**inner) if inner else base, others))
    return found, Cs


def plain(value: Any) -> Any:
    """1.0 for np.float64(1.0), as models show their parameters."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
