"""Choose the kernel's parameters and alpha of a model: by gradient, or on a grid in closed form."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.models.base import Matrix, Rows, penalties, resolve_kernel, shortened, training_points
from mercer.models.least_squares.gaussian_process import normalised
from mercer.models.least_squares.rbf_basis import basis_function
from mercer.models.least_squares.rbf_network import RBFNetwork
from mercer.models.tune_margin import listed, tune_margin
from mercer.rkhs.space import same_points
from mercer.rkhs.tail import Monomials
from mercer.tuning.grid import evaluate_grid
from mercer.tuning.search import Tuned, held_names, tune_problem


def tune(
    model: Any,
    X: Any,
    y: Any,
    *,
    by: str | int | None = None,
    cv: Any = None,
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
    model : a `KernelRidge`, a `GaussianProcessRegressor`, an `RBFNetwork` with the penalty wᵀKw, or another model with
        parameters `kernel` and `alpha` that is kernel ridge regression; or a support vector machine with a C, whose C,
        kernel and `epsilon` or `nu` are compared on a grid by folds. Its `max_time` is for each fit. (Machines without
        a C, and Pipelines, are for scikit-learn's GridSearchCV.) A rule X → kernel is resolved on all rows; of a
        machine, whose folds are fits of their own, on the training rows of each.
    X, y : the data, as for `fit`.
    by : "loo", the leave-one-out squared error; "evidence", the log marginal likelihood; or, with `grid`, the number of
        folds, shuffled by `random_state`, compared by mean R² as scikit-learn's GridSearchCV does. By default "loo".
    cv : the same as a number for `by`; of support vector machines, which have folds only (stratified for classes),
        also what scikit-learn takes: a splitter, or pairs of training and test rows.
    grid : values by parameter name, such as {"kernel__sigma": [0.5, 1.0], "alpha": [0.1, 1.0]}.
    hold : names of parameters to leave alone, such as "alpha" or "kernel__sigma". Those in `mc.Fixed` are held anyway.
    n_restarts : random starts beside the model's own kernel and the one that the data suggests.
    sample_weight : as for `fit`. A weight is not a repetition here: a row given twice predicts itself when left out.
    random_state : seed of restarts, samples and folds.

    Returns
    -------
    model : fitted; its attribute `tuning_` says what was found, with notes about parameters that do not matter, and by
        `baseline` and `beats_baseline` whether that is better than always predicting the same.

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
    by = by if cv is None else cv
    if {"kernel", "C"} <= set(known):
        return tune_margin(
            model, X, y, cv=5 if by is None else by, grid=grid, hold=hold, sample_weight=sample_weight,
            random_state=random_state,
        )  # fmt: skip
    if not {"kernel", "alpha"} <= set(known):
        raise InvalidInput(
            "`model` must be an estimator with the parameters `kernel` and `alpha`, or `kernel` and `C`",
            got=model.__name__ if isinstance(model, type) else type(model).__name__,
            advice="Such as mc.KernelRidge() or mc.SVC(). NuSVC, OneClassSVM and Pipelines are tuned by scikit-learn's "
            "GridSearchCV, with names such as svc__kernel__sigma; KernelRidge(tune='loo') in a Pipeline tunes itself.",
        )
    if not hasattr(type(model), "_leave_one_out"):
        raise InvalidInput(
            "`model` must be linear in its targets, so that leaving rows out has a closed form",
            got=type(model).__name__,
            advice="scikit-learn's GridSearchCV takes names such as kernel__sigma; some models have alpha='loo'.",
        )
    by = "loo" if by is None else by
    if grid is not None and not isinstance(grid, Mapping):
        raise InvalidInput(
            "`grid` must be a dictionary of values by parameter name",
            got=shortened(grid),
            advice="Such as {'kernel__sigma': [0.5, 1.0], 'alpha': [0.1, 1.0]}.",
        )
    rows = Rows.of(training_points(X), y, sample_weight)
    if isinstance(model, RBFNetwork):
        kernel, tail = _of_network(model, rows)
    else:
        kernel = resolve_kernel(known["kernel"], rows.points)
        tail = np.ones((len(rows), 1)) if known.get("fit_intercept") else None
    kernel.touch(rows.points)
    Y = normalised(rows)[0] if known.get("normalize_y") else rows.y
    tuned_too = not held_names([*kernel.parameter_names, "alpha"], hold)[-1] if grid is None else "alpha" in grid
    alpha = _start(known["alpha"], Y.shape[1], tuned_too)
    if grid is None:
        if not isinstance(by, str):
            raise InvalidInput(
                'Without `grid`, `by` must be "loo" or "evidence"', got=repr(by), advice="Folds have no gradient here."
            )
        tuned = tune_problem(
            kernel, rows.points, Y, alpha, rows.roots, tail, by,
            hold=hold, n_restarts=n_restarts, random_state=random_state,
        )  # fmt: skip
    else:
        tuned = _on_grid(kernel, alpha, rows, Y, tail, by, grid, random_state)
    tuned = _against_the_mean(tuned, Y, rows.roots)
    changes = {"kernel": tuned.kernel, "alpha": tuned.alpha} | ({"tune": None} if "tune" in known else {})
    fitted = (
        clone(model)
        .set_params(**changes)
        .fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    )
    fitted.tuning_ = _with_centres(tuned, fitted)
    return fitted


def _of_network(model: RBFNetwork, rows: Rows) -> tuple[Kernel, Matrix | None]:
    """The kernel of a network and its polynomial at the points: with them it is kernel ridge, if anything is."""
    kernel = basis_function(model.kernel, rows.points)
    checked = clone(model)
    checked.kernel_ = kernel
    checked._check()
    why = (
        f"neighbors={model.neighbors!r}" if model.neighbors is not None
        else "normalized=True" if model.normalized
        else repr(kernel) if not isinstance(kernel, Kernel)
        else f"penalty={model.penalty!r}" if checked._penalty != "rkhs"
        else None
    )  # fmt: skip
    if why is not None or not isinstance(kernel, Kernel):
        alone = "Tune it with neighbors=None" if model.neighbors is not None else "alpha='loo' chooses its penalty"
        raise InvalidInput(
            "An RBFNetwork is tuned by the criterion of kernel ridge, which needs a positive definite kernel and the"
            " penalty wᵀKw on one network",
            got=why,
            advice=f"{alone}; compare kernels by loo_score_.",
        )
    if checked._degree < 0:
        return kernel, None
    basis = Monomials.around(rows.points, int(checked._degree))
    basis.require_unisolvent(rows.points)
    return kernel, basis(rows.points)


def _start(alpha: Any, t: int, tuned: bool) -> float:
    """The alpha to begin with; where it is not tuned, the one to keep."""
    given = None if isinstance(alpha, str) else penalties(alpha, t)
    if not tuned and (given is None or np.ptp(given) > 0):
        raise InvalidInput(
            "`alpha` must be one number where it is not tuned",
            got=repr(alpha),
            advice="Put alphas into the grid, or do not hold it.",
        )
    if given is None:
        return 1.0
    return float(given.mean()) if np.ptp(given) > 0 else float(given[0])


def _with_centres(tuned: Tuned, fitted: Any) -> Tuned:
    """What was found, with a note where the model has other centres than the points that were searched with."""
    f = getattr(fitted, "function_", None)
    if f is None or same_points(f.points, fitted._rows.points):
        return tuned
    rows = fitted._rows
    what = {"loo": "error", "evidence": "evidence"}.get(tuned.by, "R²")
    note = f"That is the {what} of kernel ridge on all {len(rows)} points"
    if tuned.by == "loo":
        w = np.ones(len(rows)) if rows.roots is None else rows.roots**2
        own = float(np.average((fitted._leave_one_out() ** 2).mean(axis=1), weights=w))
        if np.isclose(own, tuned.value, rtol=1e-6, atol=0.0):  # the same points in another order
            return tuned
        note += f". On its {len(f)} centres this model has {own:.6g}: choose alpha='loo' for them, or more centres."
    elif len(f) < len(rows):
        note += f"; this model has {len(f)} centres."
    else:
        return tuned
    return replace(tuned, notes=(note, *tuned.notes))


def _against_the_mean(tuned: Tuned, Y: Matrix, roots: Matrix | None) -> Tuned:
    """What was found beside the criterion of always predicting the mean of the other rows, where it has one."""
    if tuned.by == "evidence":
        return tuned
    baseline = 0.0  # R² of the mean
    if tuned.by == "loo":
        w = (np.ones(len(Y)) if roots is None else roots**2)[:, None]
        others = w.sum() - w
        if not (others > 0).all():
            return tuned
        mean = (w * Y).sum(axis=0) / w.sum()
        left_out = (Y - mean) * w.sum() / others  # y less the mean without its row
        baseline = float(np.average((left_out**2).mean(axis=1), weights=w[:, 0]))
    tuned = replace(tuned, baseline=baseline)
    if tuned.beats_baseline or not np.ptp(Y, axis=0).any():  # constant targets are noted already
        return tuned
    note = f"That is not better than always predicting the mean ({baseline:.6g}): try another kernel or other columns."
    return replace(tuned, notes=(*tuned.notes, note))


def _on_grid(
    kernel: Kernel,
    alpha: float,
    rows: Rows,
    Y: Matrix,
    tail: Matrix | None,
    by: str | int,
    grid: Mapping[str, Any],
    random_state: int,
) -> Tuned:
    began = time.perf_counter()
    for name in grid:
        if not isinstance(name, str) or (name not in ("kernel", "alpha") and not name.startswith("kernel__")):
            raise InvalidInput(
                "`grid` must name parameters of the kernel, or alpha",
                got=repr(name),
                advice="Such as 'kernel__sigma' and 'alpha'.",
            )
    values = {name: listed(name, grid[name]) for name in sorted(grid)}
    given = values.pop("alpha", [alpha])
    alphas = penalties(given, len(given))
    kernels = []
    for chosen in product(*values.values()):
        changes = dict(zip(values, chosen))
        base = resolve_kernel(changes.pop("kernel"), rows.points) if "kernel" in changes else kernel
        kernels.append(base.replace(**{n.removeprefix("kernel__"): v for n, v in changes.items()}) if changes else base)
    points, roots = rows.points, rows.roots
    if isinstance(by, (int, np.integer)) and not isinstance(by, bool) and 2 <= by <= len(rows):
        # Folds in an order by chance, one after the other: rows are often sorted.
        splitter = KFold(int(by), shuffle=True, random_state=random_state)
        order = np.concatenate([test for _, test in splitter.split(np.zeros((len(rows), 1)))])
        points, Y = points.take(order), Y[order]
        roots, tail = (None if a is None else a[order] for a in (roots, tail))
    found = evaluate_grid(kernels, alphas, points, Y, roots, tail, by)
    out = [what for what, edge in (("kernel", len(kernels)), ("alpha", len(alphas)))
           if edge > 2 and found.best[what == "alpha"] in (0, edge - 1)]  # fmt: skip
    notes = tuple(f"The best {what} is at the edge of the grid: widen it." for what in out)
    return Tuned(
        found.kernel, found.alpha, found.value, float("nan"), str(by) if isinstance(by, str) else f"{by}-fold R²",
        found.values.size, time.perf_counter() - began, notes, grid=found,
    )  # fmt: skip
