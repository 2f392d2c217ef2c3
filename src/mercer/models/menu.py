"""Models by short names, each with sensible defaults, and how each chooses parameters that the caller does not set.

Penalties, widths and powers are chosen by leave-one-out in closed form if the model has it, else by folds. The numbers
of rows for that choice and for the last fit are planned for the given time before anything is computed (`offers`), so
that the same data always gets the same model; the clock only stops work that takes longer than planned. `mercer fit
--model NAME` fits these models, and so does `fit` in Python:

    fitted = menu.fit("ridge", X, y)
    fitted.model.predict(Z)
    print("\\n".join(fitted.choices))
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

import mercer as mc
from mercer.data.assignment import Roles
from mercer.data.columns import is_numeric
from mercer.data.frames import arrays, column_names, is_frame
from mercer.data.missing import missing_entries
from mercer.data.points import Points, take
from mercer.data.roles import Role
from mercer.errors import InvalidInput
from mercer.kernels.tables.rule import TableKernel
from mercer.kernels.vocabulary import suited
from mercer.models.auto.model import AutoModel
from mercer.models.auto.plan import Clock, Plan, pair_of
from mercer.models.auto.stages import LastFit
from mercer.models.base import weights
from mercer.models.calibrated import LEFT_OUT_ROWS, calibrates_itself, decision_in_words
from mercer.models.choices import with_choices
from mercer.models.offers import columns, gaussian_process, local, margins, penalised
from mercer.models.offers.request import Index, Request, sample
from mercer.models.provenance import Task
from mercer.validation import check_number

EXACT = 5000
"""Up to this number of rows, a function that is tuned by folds is a sum over all of them."""
CENTRES = 1500
"""The number of centres for more rows."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model from the menu.

    Attributes
    ----------
    model : estimator
        The fitted estimator.
    choices : tuple of str
        The choices that were made, in words.
    columns : tuple of Role
        The role of every column of a table, if the kernel was made from its columns.
    in_time : bool
        Whether the planned work was completed within the time limit.
    last : LastFit
        The number of rows that the last fit used, and why not more; printed, it is a sentence.
    rows
        The positions of the rows that the model was fitted to, in their order.
    task, seed
        The task, and the seed of its samples.
    """

    model: Any
    choices: tuple[str, ...]
    columns: tuple[Role, ...]
    in_time: bool
    last: LastFit
    rows: Index
    task: Task
    seed: int

    @property
    def left_out(self) -> dict[str, str]:
        """The columns of a table that the automatic kernel does not use, and why."""
        return {role.name: role.why for role in self.columns if not role.kind}


class Offer(NamedTuple):
    """A model of the menu: its description, and the function that fits it.

    It says whether the model accepts `centers`, whether its kernel may be a smoothing weight such as Epanechnikov, and
    whether it may predict any number, also a negative one if no target is.
    """

    what: str
    fit: Callable[[Request, Any, Any], Any]
    centred: bool = False
    weighted: bool = False
    any_number: bool = False


def fit(
    name: str,
    X: Any,
    y: Any,
    *,
    task: Task = "regression",
    kernel: Any = None,
    roles: Mapping[str, str] | None = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    decision: Mapping[str, Any] | None = None,
    time: float = 60.0,
    centers: int | None = None,
    random_state: int = 0,
    progress: Callable[..., None] | None = None,
) -> Fitted:
    """Fit a model by its name; the data chooses all parameters that are not set.

    The probabilities of every classifier are calibrated on rows that it was not fitted to. If no target is negative, no
    prediction is: models that could predict negative numbers are bounded (`BoundedRegressor`).

    Parameters
    ----------
    name : str
        One of `MENU[task]`, such as "auto", "ridge", "gp", "svm".
    X, y : array or frame, array
        Rows (an array, a sparse matrix, a pandas or Polars frame) and their targets or labels.
    task : Task
        "regression" or "classification".
    kernel : Kernel or None
        The kernel; for "nw" and "local" also a smoothing weight, or a class such as mc.Epanechnikov whose width is then
        chosen by leave-one-out. None makes a kernel from the column types of a frame; for an array it is the default of
        the model.
    roles : dict or None
        Roles by column, of features of a frame that are not what their types say, such as "category"; for "auto" and
        "poisson" also of the "exposure", of which the targets are counts.
    sample_weight : array or None
        How often each row counts, relative to the others: weights are divided by their mean, so that the penalties to
        choose from suit survey weights, too.
    class_weight : dict, "balanced" or None
        For classes: None, "balanced" or numbers > 0 by label, how much an error counts in each class.
    decision
        For two classes: `threshold` or `costs`, and `label`, as for `CalibratedClassifier`.
    time : float
        Seconds for the search and the last fit, on one core of a common machine. Their numbers of rows are planned for
        it; the best model so far is used if it is over before.
    centers : int or None
        The number of centres of models that accept it ("ridge", "logistic", "poisson"); by default all rows if there is
        time for an exact fit, else as many as there is time for.
    random_state : int
        Seed of samples, folds and searches.
    progress : function or None
        Called with a line of text, and for "auto" also with the share of the time that has passed.

    Examples
    --------
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
    if task == "regression" and (class_weight is not None or decision):
        raise InvalidInput(
            "`class_weight` and `decision` are for classes",
            got="the task 'regression'",
            advice="Omit them.",
            option="Remove --balance and --threshold, or add --task classification.",
        )
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
    _require_numbers(name, X)
    y = np.asarray(y)
    by_f1 = (decision or {}).get("threshold") == "f1"
    clock = Clock(check_number(time, "time", above=0, infinite=True, such_as=60))
    made_kernel, found = (kernel, ()) if kernel is not None else default_kernel(name, X, assigned)
    request = Request(
        task, made_kernel, kernel is not None, _plan(time, made_kernel, X, y), clock, centers, random_state,
        progress or (lambda text, share=None: None), assigned.features | assigned.others,
        _relative(sample_weight, len(y)), class_weight, 1 + (by_f1 and len(y) > LEFT_OUT_ROWS),
    )  # fmt: skip
    model = offer.fit(request, X, y)
    found = model.columns_.roles if hasattr(model, "columns_") else found
    assert request.last is not None
    rows = model.rows_ if isinstance(model, AutoModel) else request.sample(y, request.last.rows)
    if task == "classification":
        model = _calibrated(request, rows, model, X, y, dict(decision or {}))
    elif offer.any_number and (y >= 0).all():
        model = mc.BoundedRegressor.around(model, X if len(rows) == len(y) else take(X, rows), y)
    return Fitted(model, tuple(request.choices), found, clock.stop != "time", request.last, rows, task, random_state)


def _calibrated(request: Request, rows: Index, model: Any, X: Any, y: Any, decision: dict[str, Any]) -> Any:
    """A fitted classifier with calibrated probabilities and the requested threshold, from the rows of its last fit."""
    decides = isinstance(model, mc.AutoClassifier) or request.class_weight is None
    too_few = int(np.sort(np.unique(y, return_counts=True)[1])[-2]) < 2
    without = too_few or isinstance(model, mc.SVC)  # one without probabilities had no time, or too few rows, for them
    if not decision and decides and (calibrates_itself(model) or without):
        return model
    request.progress("calibrating probabilities on rows that are left out")
    w = None if request.weights is None else request.weights[rows]
    calibrated = mc.CalibratedClassifier.around(
        model, X if len(rows) == len(y) else take(X, rows), y[rows], w, random_state=request.seed, **decision,
        **request.by_class(),
    )  # fmt: skip
    request.choices += filter(None, [decision_in_words(calibrated)])
    return calibrated


def plan(
    name: str, X: Any, y: Any, *, task: Task = "regression", kernel: Any = None,
    roles: Mapping[str, str] | None = None, centers: int | None = None, time: float = 60.0,
) -> Any:  # fmt: skip
    """The plan of the last fit of `fit` with these arguments, for the model "ridge" of regression; nothing is fitted.

    >>> import numpy as np
    >>> from mercer.models import menu
    >>> X = np.random.default_rng(0).normal(size=(80, 1))
    >>> menu.plan("ridge", X, X[:, 0]).solver
    'eigen'
    """
    if (name, task) != ("ridge", "regression"):
        raise InvalidInput(
            "Only the model 'ridge' for regression can be planned without a fit",
            got=f"{name!r} for {task}",
            advice="Choose 'ridge', or fit the model: it takes no longer than `time`.",
            option="Add --model ridge, or leave out --plan: the fit takes no longer than --time.",
        )
    made_kernel = kernel if kernel is not None else default_kernel(name, X, Roles.of(roles))[0]
    request = Request(
        task, made_kernel, kernel is not None, _plan(time, made_kernel, X, y), Clock(time), centers, 0,
        lambda text, share=None: None,
    )  # fmt: skip
    rows, model = penalised.last_ridge(request, y)
    planned = mc.plan(model, X if rows == len(y) else take(X, request.sample(y, rows)))
    if planned.centers and centers is None:
        planned = replace(planned, why=f"as many centres as {time:g} seconds allow")
    return planned


def _plan(seconds: float, kernel: Any, X: Any, y: Any) -> Plan:
    """The plan of a fit with this kernel, or with those that suit the objects."""
    kernels = suited(X)[1].values() if kernel is None else [kernel]
    return Plan(seconds, len(y), pair=pair_of(kernels, Points(X)))


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


def _require_numbers(name: str, X: Any) -> None:
    """Refuse a column of words for a model of the columns themselves."""
    if name not in ("linear", "local") or not is_frame(X):
        return
    for column, values in zip(column_names(X), arrays(X)):
        kinds = set() if values.dtype.kind in "biuf" else set(map(type, values[~missing_entries(values)]))
        if not all(map(is_numeric, kinds)):
            words = f"NGrams(1, unit='words').on({str(column)!r})"
            raise InvalidInput(
                f"The model {name!r} takes columns of numbers only",
                got=f"{column!r}, which holds other values",
                advice="Choose a model with a kernel, such as 'auto', or drop the column. A linear model of words "
                f"is 'ridge' with the kernel {words}.",
                option=f"Use another --model, such as auto, or --drop {shlex.quote(str(column))}. A linear model "
                f'of words is --model ridge --kernel "{words}".',
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


def task_of(name: str, exposure: bool = False) -> Literal["auto", "regression"]:
    """The task "regression" for models of numbers only and for counts over an exposure; else "auto": the values decide.

    Thus a few different whole numbers are counts for the model "poisson". But many different numbers are never classes,
    even if the model is for classes only.

    >>> task_of("poisson"), task_of("logistic"), task_of("ridge"), task_of("auto", exposure=True)
    ('regression', 'auto', 'auto', 'regression')
    """
    only_numbers = name in MENU["regression"] and name not in MENU["classification"]
    return "regression" if exposure or only_numbers else "auto"


def takes_weights(name: str) -> bool:
    """Whether the kernel of the model of this name may be a smoothing weight.

    >>> takes_weights("nw"), takes_weights("ridge")
    (True, False)
    """
    return any(offers[name].weighted for offers in MENU.values() if name in offers)


def default_kernel(name: str, X: Any, roles: Roles | None = None) -> tuple[Any, tuple[Role, ...]]:
    """The kernel for a table or for objects, or None if the model makes its own; and the roles of the columns."""
    assigned = {} if roles is None else roles.features
    numbers = name == "nw" and set(assigned.values()) <= {"number"} and complete_numbers(X)
    if name in ("auto", "linear", "local") or numbers or (roles and roles.exposure):
        return None, ()
    if not is_frame(X):
        return next(iter(suited(X)[1].values()), None), ()
    plan = TableKernel(roles=assigned).explain(X)
    return plan.kernel, plan.roles


def complete_numbers(X: Any) -> bool:
    """Whether X is a frame of which all columns hold numbers, none of them missing."""
    return is_frame(X) and all(A.dtype.kind in "iuf" and not missing_entries(A).any() for A in arrays(X))


def refit(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
    """The same model with the choices that it made, fitted to other rows, such as all rows after scoring.

    If the time was enough for a share of the rows only, it is fitted to the same share of these.
    """
    model, last, w = fitted.model, fitted.last, _relative(sample_weight, len(y))
    if isinstance(model, mc.CalibratedClassifier):
        inner = refit(replace(fitted, model=model.model_), X, y, sample_weight)
        return replace(inner, model=model.around_again(inner.model))
    if isinstance(model, mc.BoundedRegressor):
        inner = refit(replace(fitted, model=model.model_), X, y, sample_weight)
        return replace(inner, model=mc.BoundedRegressor.around(inner.model, take(X, inner.rows), y))
    again = with_choices(model)
    if isinstance(model, AutoModel):
        again.fit(X, y, **({} if w is None else {"sample_weight": w}))
        return replace(fitted, model=again, last=again.last_fit_, rows=again.rows_)
    rows = len(y) if last.rows == last.total else min(len(y), round(len(y) * last.rows / last.total))
    index = sample(y, rows, fitted.task, fitted.seed)
    weighted = {} if w is None else {"sample_weight": w[index]}
    again.fit(X if rows == len(y) else take(X, index), np.asarray(y)[index], **weighted)
    return replace(fitted, model=again, last=replace(last, rows=rows, total=len(y)), rows=index)


def _auto(request: Request, X: Any, y: Any) -> Any:
    cls: Any = mc.AutoRegressor if request.task == "regression" else mc.AutoClassifier
    model = cls(
        kernel=request.kernel if request.own_kernel else None, roles=request.roles or None,
        time=request.seconds / request.fits, random_state=request.seed,
        progress=lambda trial: request.progress(f"{trial.resources}; {trial}", trial.share), **request.by_class(),
    ).fit(X, y, **request.weighted())  # fmt: skip
    model.set_params(progress=None)
    request.choices += [f"{d.question.lower()}: {d.taken} ({d.why})" for d in model.choices_]
    request.clock.stop, request.last = model.stopped_by_, model.last_fit_
    return model


def _poisson(request: Request, X: Any, y: Any) -> Any:
    # The automatic model knows exposures, and its loss is then this one.
    return (_auto if "exposure" in request.roles.values() else penalised.poisson)(request, X, y)


MENU: dict[Task, dict[str, Offer]] = {
    "regression": {
        "auto": Offer("the best of several, tuned (AutoRegressor)", _auto),
        "ridge": Offer(
            "kernel ridge regression, penalty by leave-one-out", penalised.ridge, centred=True, any_number=True
        ),
        "gp": Offer("Gaussian process, noise and widths by evidence", gaussian_process.gp, any_number=True),
        "svm": Offer("support vector regression, C and ε by folds", margins.regressor, any_number=True),
        "poisson": Offer("kernel Poisson regression for counts, penalty by leave-one-out", _poisson, centred=True),
        "nw": Offer("Nadaraya-Watson smoother, width by leave-one-out", local.smoother, weighted=True),
        "neighbors": Offer("mean of the nearest rows, their number by leave-one-out", local.neighbors),
        "local": Offer(
            "local linear regression, width by leave-one-out (numbers only)",
            local.local_lines,
            weighted=True,
            any_number=True,
        ),
        "linear": Offer("ridge regression on the columns (numbers only)", columns.ridge, any_number=True),
    },
    "classification": {
        "auto": Offer("the best of several, tuned (AutoClassifier)", _auto),
        "ridge": Offer("least squares on the classes, penalty by leave-one-out", penalised.least_squares, centred=True),
        "svm": Offer("support vector machine, C by folds, calibrated", margins.classifier),
        "logistic": Offer("kernel logistic regression, penalty by leave-one-out", penalised.logistic, centred=True),
        "nw": Offer("votes weighted by similarity, width by leave-one-out", local.smoother, weighted=True),
        "neighbors": Offer("votes of the nearest rows, their number by leave-one-out", local.neighbors),
        "linear": Offer("logistic regression on the columns (numbers only)", columns.logistic),
    },
}
"""The models by task and name."""
