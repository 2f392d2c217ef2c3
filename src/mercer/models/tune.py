"""`mc.tune`: kernel parameters and alpha of a model, chosen by gradient or on a grid, in closed form."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.data.cluster import Cluster
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.models.base import Matrix, Rows, penalties, training_points
from mercer.models.tunable import FoldTunable, RidgeProblem, RidgeTunable, listed, recipes
from mercer.models.tune_margin import tune_margin
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.space import same_points
from mercer.tuning.by_gradient import tune_problem
from mercer.tuning.folds import Fold, make_folds
from mercer.tuning.ranges import held_names
from mercer.tuning.ridge_grid import evaluate_grid
from mercer.tuning.trials import LOG_EVIDENCE, LOO_ERROR, Tuned


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
    client: Any = None,
) -> Any:
    """A fitted clone of the model with the kernel's free parameters and alpha that suit the data best.

    Without `grid` they are searched by gradient, in log space: widths (one per column: automatic relevance), offsets,
    the weights of a sum of kernels (multiple kernel learning), and alpha. With `grid` its candidates are compared.

    Parameters
    ----------
    model : estimator
        A `KernelRidge`, a `GaussianProcessRegressor`, an `RBFNetwork` with the penalty wᵀKw, or another model of kernel
        ridge regression, which has a method `ridge_problem`; or a support vector machine with a C, whose C, kernel and
        `epsilon` or `nu` are compared on a grid by folds. Its `max_time` applies to each fit. (Use scikit-learn's
        GridSearchCV for machines without a C and for Pipelines.) A rule X → kernel is resolved on the training rows of
        each fold, and without folds on all rows.
    X, y : array or frame, array
        The data, as for `fit`.
    by : str, int or None
        "loo", the leave-one-out squared error; "evidence", the log marginal likelihood; or, with `grid`, the number of
        folds, shuffled by `random_state`, compared by mean R² as scikit-learn's GridSearchCV does. By default "loo".
    cv : int, splitter or array
        The same as a number for `by` (the only choice for support vector machines, stratified for classes); or, as in
        scikit-learn, a splitter or pairs of training and test rows.
    grid
        Values by parameter name, such as {"kernel__sigma": [0.5, 1.0], "alpha": [0.1, 1.0]}.
    hold : sequence of str
        Names of parameters to keep, such as "alpha" or "kernel__sigma". Those in `mc.Fixed` are kept anyway.
    n_restarts : int
        The number of random starts, beside the model's own kernel and the one that the data suggests.
    sample_weight : array or None
        As for `fit`. A weight is not a repetition here: of two equal rows, one predicts the other.
    random_state : int
        Seed of restarts, samples and folds.
    client : distributed.Client or None
        The client of a Dask cluster on whose workers candidates are tried, each with each fold as a task; the rows are
        sent once. The last fit runs in this process, as all of it does by default. Kernel ridge needs a `grid` for it.

    Returns
    -------
    model : estimator
        Fitted; its attribute `tuning_` holds the chosen `parameters`, all `trials`, notes about parameters that do not
        matter, and (as `baseline` and `beats_baseline`) a comparison with always predicting the same value.

    Examples
    --------
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
    by = by if cv is None else cv
    cluster = None if client is None else Cluster(client)
    if isinstance(model, FoldTunable) and not isinstance(model, type):
        return tune_margin(
            model, X, y, cv=5 if by is None else by, grid=grid, hold=hold, sample_weight=sample_weight,
            random_state=random_state, cluster=cluster,
        )  # fmt: skip
    if isinstance(model, type) or not isinstance(model, RidgeTunable):
        raise InvalidInput(
            "`model` must be kernel ridge regression, which has closed forms, or a support vector machine with a C",
            got=model.__name__ if isinstance(model, type) else type(model).__name__,
            advice="Pass a model such as mc.KernelRidge() or mc.SVC(). Tune NuSVC, OneClassSVM and Pipelines by "
            "scikit-learn's GridSearchCV, with names such as svc__kernel__sigma; KernelRidge(tune='loo') in a Pipeline "
            "tunes itself, and some models have alpha='loo'.",
        )
    parameters = model.get_params(deep=False)
    by = "loo" if by is None else by
    rows = Rows.of(training_points(X), y, sample_weight)
    problem = model.ridge_problem(rows)
    kernel = problem.kernel
    kernel.touch(rows.points)
    if grid is None:
        if cluster is not None:
            raise InvalidInput(
                "`client` needs candidates that are tried side by side",
                got="a search by gradient, in which each step follows from the one before",
                advice="Pass a grid such as {'alpha': [0.1, 1.0], 'kernel__sigma': [0.5, 1.0, 2.0]}, or no client.",
            )
        if not isinstance(by, str):
            raise InvalidInput(
                'Without `grid`, `by` must be "loo" or "evidence"',
                got=repr(by),
                advice="Pass a grid to use folds.",
            )
        held = held_names([*kernel.parameter_names, "alpha"], hold)[-1]
        alpha = _start(parameters["alpha"], problem.y.shape[1], not held)
        tuned = tune_problem(
            kernel, rows.points, problem.y, alpha, rows.roots, problem.tail, by,
            hold=hold, n_restarts=n_restarts, random_state=random_state,
        )  # fmt: skip
    else:
        tuned = _on_grid(model, problem, rows, by, grid, random_state, cluster)
    tuned = _against_the_mean(tuned, problem.y, rows.roots)
    changes = tuned.parameters | ({"tune": None} if "tune" in parameters else {})
    weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
    fitted = clone(model).set_params(**changes).fit(X, y, **weighted)
    fitted.tuning_ = _with_centres(tuned, fitted)
    return fitted


def _start(alpha: Any, t: int, tuned: bool) -> float:
    """The alpha to begin with; the one to keep if it is not tuned."""
    alphas = None if isinstance(alpha, str) else penalties(alpha, t)
    if not tuned and (alphas is None or np.ptp(alphas) > 0):
        raise InvalidInput(
            "`alpha` must be one number if it is not tuned",
            got=repr(alpha),
            advice="Put alphas into the grid, or do not hold it.",
        )
    if alphas is None:
        return 1.0
    return float(alphas.mean()) if np.ptp(alphas) > 0 else float(alphas[0])


def _with_centres(tuned: Tuned, fitted: Any) -> Tuned:
    """The record of the search, with a note if the model's centres are not the points of the search."""
    f = getattr(fitted, "function_", None)
    if not isinstance(f, Expansion) or same_points(f.points, fitted._rows.points):
        return tuned
    rows = fitted._rows
    what = {LOO_ERROR: "error", LOG_EVIDENCE: "evidence"}.get(tuned.trials.measure, "R²")
    note = f"That is the {what} of kernel ridge on all {len(rows)} points"
    if tuned.trials.measure == LOO_ERROR:
        w = np.ones(len(rows)) if rows.roots is None else rows.roots**2
        error = float(np.average((fitted._leave_one_out() ** 2).mean(axis=1), weights=w))
        if np.isclose(error, tuned.value, rtol=1e-6, atol=0.0):  # the same points in another order
            return tuned
        note += f". On its {len(f)} centres this model has {error:.6g}: choose alpha='loo' for them, or more centres."
    elif len(f) < len(rows):
        note += f"; this model has {len(f)} centres."
    else:
        return tuned
    return replace(tuned, notes=(note, *tuned.notes))


def _against_the_mean(tuned: Tuned, Y: Matrix, roots: Matrix | None) -> Tuned:
    """The record of the search, with the criterion of always predicting the mean as its baseline, if there is one."""
    if tuned.trials.measure == LOG_EVIDENCE:
        return tuned
    baseline = 0.0  # R² of the mean
    if tuned.trials.measure == LOO_ERROR:
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
    model: Any,
    problem: RidgeProblem,
    rows: Rows,
    by: Any,
    grid: Mapping[str, Any],
    random_state: int,
    cluster: Cluster | None,
) -> Tuned:
    """The best of a grid: rules X → kernel are resolved on the training rows of each fold."""
    began = time.perf_counter()
    candidates = recipes(model.kernel, grid, ("alpha",))
    values = listed("alpha", grid["alpha"]) if "alpha" in grid else [_start(model.alpha, problem.y.shape[1], False)]
    alphas = penalties(values, len(values))
    kernels = [recipe(rows.points) if isinstance(recipe.kernel, Kernel) else recipe for recipe in candidates]
    if not isinstance(by, str):
        n = len(rows) + (0 if rows.left_out is None else rows.left_out.n)
        weights = np.isin(np.arange(n), rows.kept)
        y = np.zeros((n, rows.y.shape[1]))
        y[rows.kept] = rows.y
        folds = make_folds(n, by, y=rows.shaped(y), weights=weights, random_state=random_state)
        by = [Fold(*(np.searchsorted(rows.kept, part) for part in fold)) for fold in folds]
    table = evaluate_grid(kernels, alphas, rows.points, problem.y, rows.roots, problem.tail, by, cluster)
    notes = tuple(f"The best {axis} is at the edge of the grid: widen it." for axis in table.at_edge)
    return Tuned(
        table.parameters,
        table.trials,
        evaluations=table.values.size,
        seconds=time.perf_counter() - began,
        notes=notes,
        grid=table,
    )
