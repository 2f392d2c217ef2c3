"""Models by short names, each with sensible defaults, and how each chooses parameters that the caller does not set.

Penalties, widths and powers are chosen by leave-one-out in closed form if the model has it, else by folds. A choice
among candidates reports the best score after each of them, and ends with the best candidate at the time limit. `mercer
fit --model NAME` fits these models, and so does `fit` in Python:

    fitted = menu.fit("ridge", X, y)
    fitted.model.predict(Z)
    print("\\n".join(fitted.choices))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import mercer as mc
from mercer.data.assignment import Roles
from mercer.data.frames import arrays, is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import take
from mercer.data.roles import Role
from mercer.errors import InvalidInput
from mercer.kernels.tables.rule import TableKernel
from mercer.memory import budget
from mercer.models.base import weights
from mercer.models.provenance import Task
from mercer.validation import generator
from mercer.words import show_bytes

EXACT = 5000
"""Up to this number of rows, the fitted function is a sum over all of them."""
CENTRES = 1500
"""The number of centres for more rows."""
SAMPLE = 2000
"""The largest number of rows on which a grid is searched."""
TUNED_GP = 800
"""Up to this number of rows, a Gaussian process also tunes its widths."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model from the menu.

    Attributes
    ----------
    model : the fitted estimator.
    choices : the choices that were made, in words.
    columns : the role of every column of a table, if the kernel was made from its columns.
    in_time : whether the search was completed within the time limit.
    """

    model: Any
    choices: tuple[str, ...] = ()
    columns: tuple[Role, ...] = ()
    in_time: bool = True

    @property
    def left_out(self) -> dict[str, str]:
        """The columns of a table that the automatic kernel does not use, and why."""
        return {role.name: role.why for role in self.columns if not role.kind}


@dataclass
class _Request:
    """The settings of a fit, and the choices made so far.

    Attributes
    ----------
    task : "regression" or "classification".
    kernel : a kernel, or None for the default of the model.
    own_kernel : whether the caller set the kernel.
    time : the time limit of the choice, in seconds.
    centers : the number of centres, or None for the default.
    progress : called with a line of text.
    roles : the roles of columns, for automatic models.
    weights : how often each row counts, or None.
    """

    task: Task
    kernel: Any
    own_kernel: bool
    time: float
    centers: int | None
    seed: int
    progress: Callable[..., None]
    roles: dict[str, str] = field(default_factory=dict)
    weights: Any = None
    choices: list[str] = field(default_factory=list)
    in_time: bool = True

    def weighted(self, rows: Any = None) -> dict[str, Any]:
        """The argument `sample_weight` of a fit to these rows, or to all, if there are weights."""
        if self.weights is None:
            return {}
        return {"sample_weight": self.weights if rows is None else self.weights[rows]}


class Offer(NamedTuple):
    """A model of the menu: its description, and the function that fits it.

    It says whether the model accepts `centers`, and whether its kernel may be a smoothing weight such as Epanechnikov.
    """

    what: str
    fit: Callable[[_Request, Any, Any], Any]
    centred: bool = False
    weighted: bool = False


def fit(
    name: str,
    X: Any,
    y: Any,
    *,
    task: Task = "regression",
    kernel: Any = None,
    roles: Mapping[str, str] | None = None,
    sample_weight: Any = None,
    time: float = 60.0,
    centers: int | None = None,
    random_state: int = 0,
    progress: Callable[..., None] | None = None,
) -> Fitted:
    """Fit a model by its name; the data chooses all parameters that are not set.

    Parameters
    ----------
    name : one of `MENU[task]`, such as "auto", "ridge", "gp", "svm".
    X, y : rows (an array, a sparse matrix, a pandas or Polars frame) and their targets or labels.
    task : "regression" or "classification".
    kernel : the kernel; for "nw" and "local" also a smoothing weight, or a class such as mc.Epanechnikov whose width is
        then chosen by leave-one-out. None makes a kernel from the column types of a frame; for an array it is the
        default of the model.
    roles : {column: role} of features of a frame that are not what their types say, such as "category"; for "auto" and
        "poisson" also of the "exposure", of which the targets are counts.
    sample_weight : how often each row counts, relative to the others: weights are divided by their mean, so that the
        penalties to choose from suit survey weights, too.
    time : the time limit of the search, in seconds; the best model so far is used when it is reached.
    centers : the number of centres of models that accept it ("ridge", "logistic", "poisson"); by default all rows, or
        1,500 if there are more than 5,000.
    random_state : seed of samples, folds and searches.
    progress : called with a line of text, and for "auto" also with the share of the time that has passed.

    >>> import numpy as np
    >>> from mercer.models import menu
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(80, 1))
    >>> fitted = menu.fit("ridge", X, np.sin(X[:, 0]))
    >>> type(fitted.model).__name__, fitted.model.score(X, np.sin(X[:, 0])) > 0.9
    ('KernelRidge', True)
    >>> sorted(menu.MENU["classification"])
    ['auto', 'linear', 'logistic', 'neighbors', 'nw', 'ridge', 'svm']
    """
    offer = offered(name, task)
    if centers is not None and not offer.centred:
        names = [other for other, entry in MENU[task].items() if entry.centred]
        raise InvalidInput(
            f"`centers` is for the models {', '.join(map(repr, names))}",
            got=f"centers={centers} with {name!r}",
            advice="Omit it, or choose one of these models.",
            option=f"Remove --centers, or use --model {' or '.join(names)}.",
        )
    assigned = Roles.of(roles)
    _require_roles(name, assigned, centers)
    made_kernel, columns = (kernel, ()) if kernel is not None else default_kernel(name, X, assigned)
    request = _Request(
        task, made_kernel, kernel is not None, time, centers, random_state,
        progress or (lambda text, share=None: None), assigned.features | assigned.others,
        _relative(sample_weight, len(y)),
    )  # fmt: skip
    model = offer.fit(request, X, y)
    columns = model.columns_.roles if hasattr(model, "columns_") else columns
    return Fitted(model, tuple(request.choices), columns, request.in_time)


def plan(
    name: str, X: Any, *, kernel: Any = None, roles: Mapping[str, str] | None = None, centers: int | None = None
) -> Any:
    """The plan of `fit` with these arguments, a `Plan`, for the model "ridge" of regression; nothing is fitted.

    >>> import numpy as np
    >>> from mercer.models import menu
    >>> menu.plan("ridge", np.random.default_rng(0).normal(size=(80, 1))).solver
    'eigen'
    """
    if name != "ridge":
        raise InvalidInput(
            "A plan exists for the regression model 'ridge'",
            got=repr(name),
            advice="Choose 'ridge'; the other models keep to their time limit.",
            option="Add --model ridge; the other models keep to --time.",
        )
    made_kernel = kernel if kernel is not None else default_kernel(name, X, Roles.of(roles))[0]
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    request = _Request("regression", made_kernel, kernel is not None, 0.0, centers, 0, lambda text, share=None: None)
    return mc.plan(_kernel_ridge(request, n), X)


def _relative(sample_weight: Any, n: int) -> Any:
    """Weights with mean one; None without weights."""
    w = weights(sample_weight, n)
    return None if w is None else w / w.mean()


def _require_roles(name: str, roles: Roles, centers: int | None) -> None:
    """Refuse roles that a model does not know."""
    if roles.exposure is not None and (name not in ("auto", "poisson") or centers is not None):
        raise InvalidInput(
            "An exposure is for the models 'auto' and 'poisson', whose centres are chosen by the model",
            got=f"{name!r}" if centers is None else f"centers={centers}",
            advice="Choose one of these models, and omit `centers`.",
            option="Use --model auto or poisson without --centers, or remove --exposure.",
        )
    others = {column: role for column, role in roles.others.items() if role != "exposure"}
    if others and name != "auto":
        raise InvalidInput(
            f"The model {name!r} takes features only",
            got=f"roles {others}",
            advice="Drop these columns from X, and pass weights as `sample_weight`.",
        )
    words = {column: role for column, role in roles.features.items() if role != "number"}
    if words and name in ("linear", "local"):
        column, role = next(iter(words.items()))
        raise InvalidInput(
            f"The model {name!r} takes columns of numbers only",
            got=f"{column!r} as {role!r}",
            advice="Choose another model, or drop the column.",
            option=f"Use another --model, or --drop {column}.",
        )


def offered(name: str, task: Task) -> Offer:
    """The model of this name, or an error with the names for this task."""
    if name in MENU[task]:
        return MENU[task][name]
    elsewhere = next((other for other in MENU if name in MENU[other]), None)
    raise InvalidInput(
        f"The model for {task} must be one of {', '.join(MENU[task])}",
        got=f"{name!r}" + (f", which is for {elsewhere}" if elsewhere else ""),
        advice="Choose one of these, or another task.",
        option="Choose one of these with --model, or another --task.",
    )


def takes_weights(name: str) -> bool:
    """Whether the kernel of the model of this name may be a smoothing weight.

    >>> takes_weights("nw"), takes_weights("ridge")
    (True, False)
    """
    return any(offers[name].weighted for offers in MENU.values() if name in offers)


def default_kernel(name: str, X: Any, roles: Roles | None = None) -> tuple[Any, tuple[Role, ...]]:
    """A kernel from the columns of a table, or None if the model makes its own; and the roles of the columns."""
    assigned = {} if roles is None else roles.features
    numbers = name in ("nw", "neighbors") and set(assigned.values()) <= {"number"} and complete_numbers(X)
    if not is_frame(X) or name in ("auto", "linear", "local") or numbers or (roles and roles.exposure):
        return None, ()
    plan = TableKernel(roles=assigned).explain(X)
    return plan.kernel, plan.roles


def complete_numbers(X: Any) -> bool:
    """Whether X is a frame of which all columns hold numbers, none of them missing."""
    return is_frame(X) and all(A.dtype.kind in "iuf" and not missing_entries(A).any() for A in arrays(X))


def refit(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """The same model with the choices that it made, fitted to other rows, such as all rows after scoring."""
    relative = _relative(sample_weight, len(y))
    weighted = {} if relative is None else {"sample_weight": relative}
    from sklearn.base import clone

    again = clone(model)
    if hasattr(model, "model_"):
        others = dict.fromkeys(model.columns_.left_out, "drop") | Roles.of(model.roles).others
        again.set_params(kernel=model.model_.kernel_, loss=model.loss_, roles=others or None)
        return again.fit(X, y, **weighted)
    known = again.get_params(deep=False)
    if "alpha" in known and hasattr(model, "alpha_"):
        again.set_params(alpha=model.alpha_)
    if known.get("tune") is not None:
        again.set_params(tune=None, kernel=model.kernel_)
    return again.fit(X, y, **weighted)


def _auto(request: _Request, X: Any, y: Any) -> Any:
    cls: Any = mc.AutoRegressor if request.task == "regression" else mc.AutoClassifier
    model = cls(
        kernel=request.kernel if request.own_kernel else None, roles=request.roles or None, time=request.time,
        random_state=request.seed, progress=lambda trial: request.progress(str(trial), trial.share),
    ).fit(X, y, **request.weighted())  # fmt: skip
    model.set_params(progress=None)
    request.choices += [f"{d.question.lower()}: {d.taken} ({d.why})" for d in model.choices_]
    request.in_time = model.stopped_by_ != "time"
    return model


# -- by least squares --------------------------------------------------------------------------------------------------


def _centers(request: _Request, n: int) -> int | None:
    if request.centers is not None:
        return min(request.centers, n)
    if n <= EXACT:
        return None
    request.choices.append(f"{CENTRES:,} of {n:,} rows are centres")
    return CENTRES


def _kernel_ridge(request: _Request, n: int) -> Any:
    solver = _solver(_centers(request, n))
    return mc.KernelRidge(request.kernel, alpha="loo", fit_intercept=True, random_state=request.seed, **solver)


def _ridge(request: _Request, X: Any, y: Any) -> Any:
    request.progress("kernel ridge: choosing alpha by leave-one-out")
    model = _kernel_ridge(request, len(y)).fit(X, y, **request.weighted())
    request.choices.append(f"alpha = {model.alpha_:.3g}, with the smallest leave-one-out error")
    return model


def _solver(centers: int | None) -> dict[str, Any]:
    return {} if centers is None else {"solver": "nystrom", "n_centers": centers}


def _least_squares(request: _Request, X: Any, y: Any) -> Any:
    def make(alpha: float, centers: int | None) -> Any:
        return mc.LeastSquaresClassifier(request.kernel, alpha=alpha, random_state=request.seed, **_solver(centers))

    return _penalised(request, X, y, make, "leave-one-out accuracy", (1.0, 0.3, 0.1, 0.03, 0.01, 3.0))


def _gp(request: _Request, X: Any, y: Any) -> Any:
    n = len(y)
    needed = 3 * 8 * n * n
    if needed > budget():
        raise InvalidInput(
            f"A Gaussian process on {n:,} rows must fit the memory budget of {show_bytes(budget())}",
            got=show_bytes(needed),
            advice="Use fewer rows, or the model 'ridge', which needs no such matrix.",
            option="Use fewer rows, or --model ridge, which needs no such matrix.",
        )
    kernel = request.kernel if request.kernel is not None else mc.median_gaussian(X)
    hold: list[str] = []
    if request.own_kernel or n > TUNED_GP:
        hold = [f"kernel__{name}" for name in kernel.parameter_names]
        request.choices.append("noise and scale maximise the evidence; the kernel is fixed")
    else:
        request.choices.append("widths, noise and scale maximise the evidence")
    if not kernel.parameter_names:
        hold = []
    request.progress("Gaussian process: maximising the evidence")
    scale = 1.0 * kernel
    hold = [name.replace("kernel__", "kernel__kernel__", 1) if isinstance(scale, mc.Scaled) else name for name in hold]
    return mc.GaussianProcessRegressor(
        scale, normalize_y=True, alpha=0.1, tune="evidence", n_restarts=0, hold=hold
    ).fit(X, y, **request.weighted())


# -- by candidates -----------------------------------------------------------------------------------------------------


def _best(request: _Request, candidates: Iterable[tuple[str, Callable[[], tuple[Any, float]]]], score: str) -> Any:
    """The candidate with the best score; stops at the time limit, or when the score has fallen twice in a row."""
    end = time.monotonic() + request.time
    best: tuple[float, str, Any] | None = None
    fallen, tried, late = 0, 0, False
    for name, make in candidates:
        model, value = make()
        tried += 1
        fallen = fallen + 1 if best is not None and value < best[0] else 0
        if best is None or value > best[0]:
            best = (value, name, model)
        request.progress(f"{name}: {score} {value:.4g}; best so far {best[0]:.4g} ({best[1]})")
        late = time.monotonic() > end
        if fallen == 2 or late:
            break
    assert best is not None
    request.choices.append(f"{best[1]}, with the best {score} ({best[0]:.4g}) of {tried} candidates")
    if late:
        request.choices.append("the time limit was reached before all candidates were tried")
        request.in_time = False
    return best[2]


def _svc(request: _Request, X: Any, y: Any) -> Any:
    C = _margin(request, X, y, mc.SVC(request.kernel), {})["C"]
    request.progress(f"support vector machine with C = {C:g} on all rows")
    enough = int(np.unique(y, return_counts=True)[1].min()) > 1
    model = _watched(request, mc.SVC(request.kernel, C=C, calibrated=enough), X, y)
    if enough and not _has_probabilities(model, X):
        request.choices.append("no probabilities: the time limit was reached before they were fitted")
        request.in_time = False
        model.set_params(calibrated=False)
    return model


def _has_probabilities(model: Any, X: Any) -> bool:
    """Whether a calibrated machine completed its calibration: one that was stopped predicts classes only."""
    try:
        model.predict_proba(take(X, np.arange(1)))
    except InvalidInput:
        return False
    return True


def _svr(request: _Request, X: Any, y: Any) -> Any:
    spread = float(np.std(y)) or 1.0
    # C and ε are in units of the target: ½‖f‖² + C Σ |y − f|_ε.
    Cs, widths = [spread * c for c in (0.3, 1.0, 3.0, 10.0, 100.0)], [0.05 * spread, 0.2 * spread]
    chosen = _margin(request, X, y, mc.SVR(request.kernel), {"epsilon": widths}, Cs)
    request.progress("support vector regression on all rows")
    return _watched(request, mc.SVR(request.kernel, C=chosen["C"], epsilon=chosen["epsilon"]), X, y)


def _watched(request: _Request, model: Any, X: Any, y: Any) -> Any:
    """The last fit, which may take twice the time of the search and reports its duality gap."""
    model.set_params(
        max_time=2 * max(30.0, request.time),
        progress=lambda step: request.progress(
            f"support vectors of {len(y):,} rows: gap {step.gap:.2g}, until {model.tol:g}"
        ),
    )
    return model.fit(X, y, **request.weighted()).set_params(progress=None)


def _margin(
    request: _Request, X: Any, y: Any, model: Any, others: dict[str, list[float]], Cs: Any = None
) -> dict[str, float]:
    """C (and other parameters) of a support vector machine by three folds, on a sample if there are many rows."""
    rows = _sample(request, len(y))
    grid = {"C": Cs or [0.1, 1.0, 10.0, 100.0]} | others
    sizes = " × ".join(str(len(values)) for values in grid.values())
    request.progress(f"support vectors: {sizes} candidates by 3 folds of {len(rows):,} rows")
    tuned = mc.tune(model, take(X, rows), y[rows], cv=3, grid=grid, **request.weighted(rows))
    chosen = {name: float(getattr(tuned, name)) for name in grid}
    of = f" of {SAMPLE:,} rows" if len(rows) < len(y) else ""
    request.choices.append(
        ", ".join(f"{name} = {value:.3g}" for name, value in chosen.items()) + f", the best by 3 folds{of}"
    )
    return chosen


def _sample(request: _Request, n: int) -> Any:
    """The positions of the rows on which a grid is searched: all, or a random sample if there are many."""
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(generator(request.seed).permutation(n)[:SAMPLE])


def _penalised(request: _Request, X: Any, y: Any, make: Callable[..., Any], score: str, alphas: Iterable[float]) -> Any:
    """Fit all rows with the penalty of the best score; if there are many rows, it is chosen on a sample."""
    n, rows = len(y), _sample(request, len(y))
    if len(rows) < n:
        request.choices.append(f"alpha is chosen on {SAMPLE:,} of {n:,} rows")
    X_, y_ = take(X, rows), y[rows]

    def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def fitted() -> tuple[Any, float]:
            model = make(alpha, None).fit(X_, y_, **request.weighted(rows))
            value = -float(model.loo_log_loss_) if hasattr(model, "loo_log_loss_") else float(model.loo_score_)
            return (model, alpha), value

        return f"alpha = {alpha:g}", fitted

    model, alpha = _best(request, map(candidate, alphas), score)
    if n <= SAMPLE and request.centers is None:
        return model
    request.progress(f"fitting all {n:,} rows with alpha = {alpha:g}")
    return make(alpha, _centers(request, n)).fit(X, y, **request.weighted())


def _logistic(request: _Request, X: Any, y: Any) -> Any:
    def make(alpha: float, centers: int | None) -> Any:
        limit = max(5.0, request.time)
        return mc.KernelLogisticRegression(
            request.kernel, alpha=alpha, n_centers=centers, random_state=request.seed, max_time=limit
        )

    return _penalised(request, X, y, make, "leave-one-out log likelihood", (1.0, 0.3, 0.1, 0.03, 0.01, 3.0))


def _poisson(request: _Request, X: Any, y: Any) -> Any:
    if (y < 0).any():
        raise InvalidInput(
            "Targets must be counts ≥ 0 for the model 'poisson'",
            got=f"{y.min():g}",
            advice="Choose the model 'ridge'.",
            option="Use --model ridge.",
        )
    if "exposure" in request.roles.values():  # the automatic model knows exposures, and its loss is then this one
        return _auto(request, X, y)

    def make(alpha: float, centers: int | None) -> Any:
        limit = max(5.0, request.time)
        return mc.KernelGLM(
            request.kernel, family="poisson", alpha=alpha, n_centers=centers, random_state=request.seed, max_time=limit
        )

    return _penalised(request, X, y, make, "leave-one-out explained deviance", (3.0, 1.0, 0.3, 0.1, 10.0, 30.0))


def _smoother(request: _Request, X: Any, y: Any) -> Any:
    cls: Any = mc.NadarayaWatsonRegressor if request.task == "regression" else mc.NadarayaWatsonClassifier
    if request.own_kernel or request.kernel is None:
        request.progress("Nadaraya-Watson: choosing the width by leave-one-out")
        return cls(request.kernel if request.own_kernel else None).fit(X, y, **request.weighted())

    def candidate(power: int) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            kernel = request.kernel**power if power > 1 else request.kernel
            model = cls(kernel).fit(X, y, **request.weighted())
            return model, float(model.loo_score_)

        return f"power {power} of the kernel", make

    return _best(request, map(candidate, (4, 8, 16, 32, 64, 128)), "leave-one-out score")


def _neighbors(request: _Request, X: Any, y: Any) -> Any:
    cls: Any = mc.KernelNeighborsRegressor if request.task == "regression" else mc.KernelNeighborsClassifier
    request.progress("nearest neighbours: choosing their number by leave-one-out")
    model = cls(request.kernel, n_neighbors="loo").fit(X, y, **request.weighted())
    request.choices.append(f"{getattr(model, 'n_neighbors_', '?')} neighbours, the best by leave-one-out")
    return model


# -- on the columns themselves -----------------------------------------------------------------------------------------


def _local(request: _Request, X: Any, y: Any) -> Any:
    request.progress("local regression: choosing the width by leave-one-out")
    return mc.LocalRegression(request.kernel if request.own_kernel else None).fit(X, y, **request.weighted())


def _linear(request: _Request, X: Any, y: Any) -> Any:
    return mc.Ridge(alpha="loo").fit(X, y, **request.weighted())


def _linear_classes(request: _Request, X: Any, y: Any) -> Any:
    def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            model = mc.LogisticRegression(alpha=alpha).fit(X, y, **request.weighted())
            return model, -float(model.loo_log_loss_)

        return f"alpha = {alpha:g}", make

    return _best(request, map(candidate, (1.0, 0.1, 0.01, 10.0, 100.0)), "leave-one-out log likelihood")


MENU: dict[Task, dict[str, Offer]] = {
    "regression": {
        "auto": Offer("the best of several, tuned (AutoRegressor)", _auto),
        "ridge": Offer("kernel ridge regression, penalty by leave-one-out", _ridge, centred=True),
        "gp": Offer("Gaussian process, noise and widths by evidence", _gp),
        "svm": Offer("support vector regression, C and ε by folds", _svr),
        "poisson": Offer("kernel Poisson regression for counts, penalty by leave-one-out", _poisson, centred=True),
        "nw": Offer("Nadaraya-Watson smoother, width by leave-one-out", _smoother, weighted=True),
        "neighbors": Offer("mean of the nearest rows, their number by leave-one-out", _neighbors),
        "local": Offer("local linear regression, width by leave-one-out (numbers only)", _local, weighted=True),
        "linear": Offer("ridge regression on the columns (numbers only)", _linear),
    },
    "classification": {
        "auto": Offer("the best of several, tuned (AutoClassifier)", _auto),
        "ridge": Offer("least squares on the classes, penalty by leave-one-out", _least_squares, centred=True),
        "svm": Offer("support vector machine, C by folds, calibrated", _svc),
        "logistic": Offer("kernel logistic regression, penalty by leave-one-out", _logistic, centred=True),
        "nw": Offer("votes weighted by similarity, width by leave-one-out", _smoother, weighted=True),
        "neighbors": Offer("votes of the nearest rows, their number by leave-one-out", _neighbors),
        "linear": Offer("logistic regression on the columns (numbers only)", _linear_classes),
    },
}
"""The models by task and name."""
