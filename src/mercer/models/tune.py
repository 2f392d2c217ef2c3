"""Choose the kernel's parameters and alpha of a model: by gradient, or on a grid in closed form."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.models.base import Matrix, Rows, penalties, resolve_kernel, training_points
from mercer.tuning.grid import evaluate_grid
from mercer.tuning.search import Tuned, tune_problem


def tune(
    model: Any,
    X: Any,
    y: Any,
    *,
    by: str | int | None = None,
    grid: Mapping[str, Any] | None = None,
    hold: Iterable[str] = (),
    n_restarts: int = 2,
    sample_weight: Any = None,
    random_state: int = 0,
) -> Any:
    """A fitted clone of the model with the kernel's free parameters and alpha that suit the data best.

    Without `grid` they are searched by gradient, in log space: widths (one per column: automatic relevance), offsets,
    the weights of a sum of kernels (multiple kernel learning), and alpha. With `grid` its candidates are compared.

    Parameters
    ----------
    model : a `KernelRidge`, a `GaussianProcessRegressor`, or another model with parameters `kernel` and `alpha`.
    X, y : the data, as for `fit`.
    by : "loo", the leave-one-out squared error; "evidence", the log marginal likelihood; or, with `grid`, the number of
        contiguous folds, compared by mean R² as scikit-learn's GridSearchCV does. By default "loo".
    grid : values by parameter name, such as {"kernel__sigma": [0.5, 1.0], "alpha": [0.1, 1.0]}.
    hold : names of parameters to leave alone, such as "alpha" or "kernel__sigma". Those in `mc.Fixed` are held anyway.
    n_restarts : random starts beside the model's own kernel and the one that the data suggests.
    sample_weight : as for `fit`. A weight is not a repetition here: a row given twice predicts itself when left out.
    random_state : seed of restarts and samples.

    Returns
    -------
    model : fitted; its attribute `tuning_` says what was found, with notes about parameters that do not matter.

    >>> import numpy as np, mercer as mc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(100, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> model = tune(mc.KernelRidge(mc.Gaussian([1.0, 1.0])), X, y)
    >>> round(model.tuning_.value, 3), round(model.tuning_.start_value, 3)
    (0.014, 0.028)
    >>> tune(mc.KernelRidge(mc.Gaussian(1.0)), X, y, by=5, grid={"alpha": [0.01, 0.1, 1.0]}).alpha
    0.1
    """
    known = model.get_params(deep=False) if hasattr(model, "get_params") and not isinstance(model, type) else {}
    if not {"kernel", "alpha"} <= set(known):
        raise InvalidInput(
            "`model` must be an estimator with the parameters `kernel` and `alpha`",
            got=model.__name__ if isinstance(model, type) else type(model).__name__,
            advice="Such as mc.KernelRidge(). In a Pipeline, let the last step tune itself: KernelRidge(tune='loo').",
        )
    by = "loo" if by is None else by
    rows = Rows.of(training_points(X), y, sample_weight)
    kernel = resolve_kernel(known["kernel"], rows.points)
    kernel.touch(rows.points)
    Y = _normalised(rows) if known.get("normalize_y") else rows.y
    tail = np.ones((len(rows), 1)) if known.get("fit_intercept") else None
    alpha = 1.0 if isinstance(known["alpha"], str) else float(penalties(known["alpha"], Y.shape[1]).mean())
    if grid is None:
        if not isinstance(by, str):
            raise InvalidInput(
                'Without `grid`, `by` must be "loo" or "evidence"', got=by, advice="Folds have no gradient here."
            )
        tuned = tune_problem(
            kernel, rows.points, Y, alpha, rows.roots, tail, by,
            hold=hold, n_restarts=n_restarts, random_state=random_state,
        )  # fmt: skip
    else:
        tuned = _on_grid(kernel, alpha, rows, Y, tail, by, grid)
    changes = {"kernel": tuned.kernel, "alpha": tuned.alpha} | ({"tune": None} if "tune" in known else {})
    fitted = (
        clone(model)
        .set_params(**changes)
        .fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    )
    fitted.tuning_ = _with_centres(tuned, fitted)
    return fitted


def _with_centres(tuned: Tuned, fitted: Any) -> Tuned:
    """What was found, with a note where the model has fewer centres than the problem that was searched has points."""
    if tuned.by != "loo" or len(getattr(fitted, "function_", fitted._rows)) >= len(fitted._rows):
        return tuned
    rows = fitted._rows
    w = np.ones(len(rows)) if rows.roots is None else rows.roots**2
    own = float(np.average((fitted._leave_one_out() ** 2).mean(axis=1), weights=w))
    note = (
        f"That is the error of kernel ridge on all {len(rows)} points. On its {len(fitted.function_)} centres this "
        f"model has {own:.6g}: choose alpha='loo' for them, or more centres."
    )
    return replace(tuned, notes=(note, *tuned.notes))


def _on_grid(
    kernel: Kernel, alpha: float, rows: Rows, Y: Matrix, tail: Matrix | None, by: str | int, grid: Mapping[str, Any]
) -> Tuned:
    began = time.perf_counter()
    alphas = penalties(grid["alpha"], len(grid["alpha"])) if "alpha" in grid else np.array([alpha])
    inside = sorted(name for name in grid if name != "alpha")
    for name in inside:
        if name != "kernel" and not name.startswith("kernel__"):
            raise InvalidInput(
                "`grid` must name parameters of the kernel, or alpha",
                got=repr(name),
                advice="Such as 'kernel__sigma' and 'alpha'.",
            )
    kernels = []
    for values in product(*(grid[name] for name in inside)):
        changes = dict(zip(inside, values))
        base = resolve_kernel(changes.pop("kernel"), rows.points) if "kernel" in changes else kernel
        kernels.append(base.replace(**{n.removeprefix("kernel__"): v for n, v in changes.items()}) if changes else base)
    found = evaluate_grid(kernels, alphas, rows.points, Y, rows.roots, tail, by)
    out = [what for what, edge in (("kernel", len(kernels)), ("alpha", len(alphas)))
           if edge > 2 and found.best[what == "alpha"] in (0, edge - 1)]  # fmt: skip
    notes = tuple(f"The best {what} is at the edge of the grid: widen it." for what in out)
    return Tuned(
        found.kernel, found.alpha, found.value, float("nan"), str(by) if isinstance(by, str) else f"{by}-fold R²",
        found.values.size, time.perf_counter() - began, notes, grid=found,
    )  # fmt: skip


def _normalised(rows: Rows) -> Matrix:
    """Targets minus their mean, over their standard deviation, as the Gaussian process sees them."""
    w = np.ones(len(rows)) if rows.roots is None else rows.roots**2
    centred = rows.y - np.average(rows.y, axis=0, weights=w)
    unit = np.sqrt(np.average(centred**2, axis=0, weights=w))
    return np.asarray(centred / np.where(unit > 0, unit, 1.0))
