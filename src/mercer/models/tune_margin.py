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
from mercer.kernels.points import take
from mercer.kernels.rules import median_gaussian
from mercer.models.base import resolve_kernel, training_points
from mercer.tuning.search import brief

Matrix = NDArray[np.float64]
CS = np.geomspace(0.1, 1000.0, 5)
WIDTHS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])


@dataclass(frozen=True, eq=False, repr=False)
class MarginGrid:
    """The scores of every kernel and C on every fold.

    Attributes
    ----------
    kernels, Cs : k of them, and c, ascending.
    scores : shape (k, c, folds): accuracies, or R² of a regression.
    best : position (kernel, C) of the chosen one: the first of the greatest means, so the smallest C among equals.
    seconds : spent.
    """

    kernels: tuple[Kernel, ...]
    Cs: Matrix
    scores: Matrix
    best: tuple[int, int]
    seconds: float

    @property
    def kernel(self) -> Kernel:
        return self.kernels[self.best[0]]

    @property
    def C(self) -> float:
        return float(self.Cs[self.best[1]])

    @property
    def value(self) -> float:
        return float(self.scores[self.best].mean())

    def __str__(self) -> str:
        spread = self.scores[self.best].std() / np.sqrt(max(1, self.scores.shape[2] - 1))
        lines = [
            f"{brief(self.kernel)}, C={self.C:.4g}",
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
    grid : values by parameter name, such as {"C": [1.0, 10.0], "kernel__sigma": [0.5, 1.0]}. By default C from 0.1 to
        1000, and widths around the median distance (of a kernel without `sigma`, the kernel as it is).
    sample_weight : as for `fit`.
    """
    began = time.perf_counter()
    points = training_points(X)
    kernel = resolve_kernel(model.kernel, points)
    kernels, Cs = _candidates(kernel, points, model.C, grid)
    labels = np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    folds = list(check_cv(cv, labels, classifier=is_classifier(model)).split(np.zeros((points.n, 1)), labels))
    scores = np.empty((len(kernels), len(Cs), len(folds)))

    def job(tasks: Sequence[tuple[int, int]]) -> None:
        for i, j in tasks:
            if tiling.stopped():
                return
            train, test = folds[j]
            machine = clone(model).set_params(kernel=kernels[i])
            more = {} if weights is None else {"sample_weight": weights[train]}
            data = take(X, train), labels[train]
            if hasattr(machine, "path"):
                along = machine.path(*data, Cs, **more)
            else:
                along = [clone(machine).set_params(C=float(C)).fit(*data, **more) for C in Cs]
            for c, fitted in enumerate(along):
                scores[i, c, j] = fitted.score(take(X, test), labels[test])

    tasks = list(product(range(len(kernels)), range(len(folds))))
    shares = min(tiling.n_threads(), len(tasks))
    tiling.run([partial(job, tasks[share::shares]) for share in range(shares)])
    i, c = np.unravel_index(int(scores.mean(axis=2).argmax()), scores.shape[:2])
    found = MarginGrid(tuple(kernels), Cs, scores, (int(i), int(c)), time.perf_counter() - began)
    fitted = clone(model).set_params(kernel=found.kernel, C=found.C)
    fitted.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    fitted.tuning_ = found
    return fitted


def _candidates(kernel: Kernel, points: Any, C: Any, grid: Mapping[str, Any] | None) -> tuple[list[Kernel], Matrix]:
    """The kernels and the Cs, ascending."""
    if grid is None:
        sigma = getattr(kernel, "sigma", None)
        if sigma is not None and np.ndim(sigma) == 0:
            grid = {"C": CS, "kernel__sigma": WIDTHS * median_gaussian(points).sigma}
        else:
            grid = {"C": CS}
    wrong = [name for name in grid if name != "C" and not name.startswith("kernel__") and name != "kernel"]
    if wrong:
        raise InvalidInput(
            "`grid` must name C, `kernel`, or parameters of the kernel",
            got=repr(wrong[0]),
            advice="Such as 'C' and 'kernel__sigma'.",
        )
    Cs = np.unique(np.atleast_1d(np.asarray(grid.get("C", [C]), dtype=np.float64)))
    if not len(Cs) or not (Cs > 0).all():
        raise InvalidInput("Values of C must be > 0", got=repr(grid.get("C")), advice="Such as [0.1, 1.0, 10.0].")
    inside = sorted(name for name in grid if name != "C")
    kernels = []
    for values in product(*(np.atleast_1d(grid[name]).tolist() if name != "kernel" else grid[name] for name in inside)):
        changes = dict(zip(inside, values))
        base = resolve_kernel(changes.pop("kernel"), points) if "kernel" in changes else kernel
        kernels.append(base.replace(**{n.removeprefix("kernel__"): v for n, v in changes.items()}) if changes else base)
    return kernels, Cs
