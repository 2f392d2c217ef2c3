"""The models that a command line can name, and how each chooses what it was not told.

Penalties, widths and powers are chosen by leave-one-out in closed form where the model has it, else by folds. A choice
that has candidates tells the score so far after each, and ends with the best one when the time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mercer as mc
from mercer.errors import InvalidInput
from mercer.memory import budget, show_bytes

REGRESSION = {
    "auto": "the best of several, tuned (AutoRegressor)",
    "ridge": "kernel ridge regression, penalty by leave-one-out",
    "gp": "Gaussian process, noise and widths by evidence",
    "svm": "support vector regression, C and ε by folds",
    "poisson": "counts: kernel Poisson regression, penalty by leave-one-out",
    "nw": "Nadaraya-Watson smoother, width by leave-one-out",
    "neighbors": "mean of the nearest rows, how many by leave-one-out",
    "local": "local lines, width by leave-one-out (numbers only)",
    "linear": "ridge regression on the columns (numbers only)",
}
CLASSIFICATION = {
    "auto": "the best of several, tuned (AutoClassifier)",
    "ridge": "least squares on the classes, penalty by leave-one-out",
    "svm": "support vector machine, C by folds, calibrated",
    "logistic": "kernel logistic regression, penalty by leave-one-out",
    "nw": "votes weighted by similarity, width by leave-one-out",
    "neighbors": "votes of the nearest rows, how many by leave-one-out",
    "linear": "logistic regression on the columns (numbers only)",
}
MODELS = tuple(dict.fromkeys([*REGRESSION, *CLASSIFICATION]))
# Beyond so many rows functions live on this many centres, and a grid is searched on so many rows.
EXACT, CENTRES, SAMPLE = 5000, 1500, 2000
TUNED_GP = 800


@dataclass
class Wish:
    """What was asked for.

    Attributes
    ----------
    model, task : names from the menu; "regression" or "classification".
    kernel : a kernel, or None to leave it to the model (a sparse matrix, or smoothers on numbers).
    given : whether the user wrote the kernel.
    time : seconds, at most, for the choice.
    centers : how many, or None for the default of this size.
    tell : called with the score so far.
    """

    model: str
    task: str
    kernel: Any
    given: bool = False
    time: float = 60.0
    centers: int | None = None
    seed: int = 0
    tell: Callable[..., None] = lambda text, share=None: None
    choices: list[str] = field(default_factory=list)


def fit(wish: Wish, X: Any, y: Any) -> Any:
    """A fitted model of this kind; `wish.choices` says what was chosen and why."""
    menu = REGRESSION if wish.task == "regression" else CLASSIFICATION
    if wish.model not in menu:
        other = CLASSIFICATION if wish.task == "regression" else REGRESSION
        why = f"{wish.model!r}, which is for {'classes' if wish.task == 'regression' else 'numbers'}" * (
            wish.model in other
        )
        raise InvalidInput(
            f"--model for {wish.task} must be one of {', '.join(menu)}",
            got=why or repr(wish.model),
            advice="--task says what the target is.",
        )
    makers: dict[tuple[str, str], Callable[[Wish, Any, Any], Any]] = {
        ("regression", "ridge"): _ridge,
        ("regression", "gp"): _gp,
        ("regression", "svm"): _svr,
        ("regression", "poisson"): _poisson,
        ("regression", "nw"): _smoother,
        ("regression", "neighbors"): _neighbors,
        ("regression", "local"): _local,
        ("regression", "linear"): _linear,
        ("classification", "ridge"): _least_squares,
        ("classification", "svm"): _svc,
        ("classification", "logistic"): _logistic,
        ("classification", "nw"): _smoother,
        ("classification", "neighbors"): _neighbors,
        ("classification", "linear"): _linear_classes,
    }
    if wish.model == "auto":
        return _auto(wish, X, y)
    return makers[wish.task, wish.model](wish, X, y)


def _auto(wish: Wish, X: Any, y: Any) -> Any:
    from mercer.models.auto.classifier import AutoClassifier
    from mercer.models.auto.regressor import AutoRegressor

    cls: Any = AutoRegressor if wish.task == "regression" else AutoClassifier
    model = cls(
        kernel=wish.kernel if wish.given else None, time=wish.time, random_state=wish.seed,
        progress=lambda trial: wish.tell(str(trial), trial.share),
    ).fit(X, y)  # fmt: skip
    model.set_params(progress=None)
    wish.choices += [f"{d.question.lower()}: {d.taken} ({d.why})" for d in model.choices_ if d.question != "Solver"]
    if model.stopped_by_ == "time":
        wish.choices.append(f"stopped: the {wish.time:g} s were over before the search was done; --time gives more")
    return model


# -- by least squares --------------------------------------------------------------------------------------------------


def _centers(wish: Wish, n: int) -> int | None:
    if wish.centers is not None:
        return min(wish.centers, n)
    if n <= EXACT:
        return None
    wish.choices.append(f"{CENTRES:,} of {n:,} rows are the centres of the function: --centers says how many")
    return CENTRES


def _ridge(wish: Wish, X: Any, y: Any) -> Any:
    wish.tell("kernel ridge: penalties by leave-one-out")
    model = mc.KernelRidge(
        wish.kernel, alpha="loo", fit_intercept=True, random_state=wish.seed, **_solver(_centers(wish, len(y)))
    ).fit(X, y)
    wish.choices.append(f"alpha = {model.alpha_:.3g}, of least leave-one-out error")
    return model


def _solver(centers: int | None) -> dict[str, Any]:
    return {} if centers is None else {"solver": "nystrom", "n_centers": centers}


def _least_squares(wish: Wish, X: Any, y: Any) -> Any:
    def make(alpha: float, centers: int | None) -> Any:
        return mc.LeastSquaresClassifier(wish.kernel, alpha=alpha, random_state=wish.seed, **_solver(centers))

    return _penalised(wish, X, y, make, "leave-one-out accuracy", (1.0, 0.3, 0.1, 0.03, 0.01, 3.0))


def _gp(wish: Wish, X: Any, y: Any) -> Any:
    n = len(y)
    needed = 3 * 8 * n * n
    if needed > budget():
        raise InvalidInput(
            f"A Gaussian process on {n:,} rows must fit the memory budget of {show_bytes(budget())}",
            got=show_bytes(needed),
            advice="Take --model ridge, which needs no such matrix, or fewer rows.",
        )
    kernel = wish.kernel if wish.kernel is not None else mc.median_gaussian(X)
    hold: list[str] = []
    if wish.given or n > TUNED_GP:
        hold = [f"kernel__{name}" for name in kernel.parameter_names]
        wish.choices.append("the kernel stays as it is; the noise is chosen by evidence (mercer tune moves both)")
    else:
        wish.choices.append("widths and noise by evidence")
    if not kernel.parameter_names:
        hold = []
    wish.tell("Gaussian process: by evidence")
    scale = 1.0 * kernel
    hold = [name.replace("kernel__", "kernel__kernel__", 1) if isinstance(scale, mc.Scaled) else name for name in hold]
    return mc.GaussianProcessRegressor(
        scale, normalize_y=True, alpha=0.1, tune="evidence", n_restarts=0, hold=hold
    ).fit(X, y)


# -- by candidates -----------------------------------------------------------------------------------------------------


def _best(wish: Wish, candidates: Iterable[tuple[str, Callable[[], tuple[Any, float]]]], score: str) -> Any:
    """The candidate of greatest score; stops when the time is up, or when scores fell twice."""
    end = time.monotonic() + wish.time
    best: tuple[float, str, Any] | None = None
    fallen, tried, late = 0, 0, False
    for name, make in candidates:
        model, value = make()
        tried += 1
        fallen = fallen + 1 if best is not None and value < best[0] else 0
        if best is None or value > best[0]:
            best = (value, name, model)
        wish.tell(f"{name}: {score} {value:.4g}; best so far {best[0]:.4g} ({best[1]})")
        late = time.monotonic() > end
        if fallen == 2 or late:
            break
    assert best is not None
    wish.choices.append(f"{best[1]}, of the best {score} ({best[0]:.4g}) of {tried} tried")
    if late:
        wish.choices.append("the time was up before all candidates were tried; --time gives more")
    return best[2]


def _svc(wish: Wish, X: Any, y: Any) -> Any:
    C = _margin(wish, X, y, mc.SVC(wish.kernel), {})["C"]
    wish.tell(f"support vector machine with C = {C:g} on all rows")
    enough = int(np.unique(y, return_counts=True)[1].min()) > 1
    model = _watched(wish, mc.SVC(wish.kernel, C=C, calibrated=enough), X, y)
    if enough and not model.calibrated_:  # it was stopped: what it knows is which side, not how surely
        wish.choices.append("no probabilities: the time was up before they were fitted; --time gives more")
        model.set_params(calibrated=False)
    return model


def _svr(wish: Wish, X: Any, y: Any) -> Any:
    spread = float(np.std(y)) or 1.0
    # C and ε are in units of the target: ½‖f‖² + C Σ |y − f|_ε.
    Cs, widths = [spread * c for c in (0.3, 1.0, 3.0, 10.0, 100.0)], [0.05 * spread, 0.2 * spread]
    found = _margin(wish, X, y, mc.SVR(wish.kernel), {"epsilon": widths}, Cs)
    wish.tell("support vector regression on all rows")
    return _watched(wish, mc.SVR(wish.kernel, C=found["C"], epsilon=found["epsilon"]), X, y)


def _watched(wish: Wish, model: Any, X: Any, y: Any) -> Any:
    """The last fit: it may take twice the time of the search, and tells how far it is from the optimum."""
    model.set_params(
        max_time=2 * max(30.0, wish.time),
        progress=lambda now: wish.tell(f"support vectors of {len(y):,} rows: gap {now.gap:.2g}, to {model.tol:g}"),
    )
    return model.fit(X, y).set_params(progress=None)


def _margin(wish: Wish, X: Any, y: Any, model: Any, others: dict[str, list[float]], Cs: Any = None) -> dict[str, float]:
    n = len(y)
    some = np.arange(n)
    if n > SAMPLE:
        some = np.sort(np.random.default_rng(wish.seed).permutation(n)[:SAMPLE])
    grid = {"C": Cs or [0.1, 1.0, 10.0, 100.0]} | others
    wish.tell(
        f"support vectors: {' × '.join(str(len(v)) for v in grid.values())} candidates by 3 folds of {len(some):,} rows"
    )
    tuned = mc.tune(model, X[some], y[some], cv=3, grid=grid)
    found = {name: float(getattr(tuned, name)) for name in grid}
    of = f" of {SAMPLE:,} rows" if n > SAMPLE else ""
    wish.choices.append(", ".join(f"{name} = {value:.3g}" for name, value in found.items()) + f", best by 3 folds{of}")
    return found


def _penalised(wish: Wish, X: Any, y: Any, make: Callable[..., Any], score: str, alphas: Iterable[float]) -> Any:
    """The penalty of best score, chosen on a sample of many rows; then the fit of all rows."""
    n, some = len(y), np.arange(len(y))
    if n > SAMPLE:
        some = np.sort(np.random.default_rng(wish.seed).permutation(n)[:SAMPLE])
        wish.choices.append(f"the penalty is chosen on {SAMPLE:,} of {n:,} rows")
    X_, y_ = X[some], y[some]

    def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def made() -> tuple[Any, float]:
            model = make(alpha, None).fit(X_, y_)
            value = -float(model.loo_log_loss_) if hasattr(model, "loo_log_loss_") else float(model.loo_score_)
            return (model, alpha), value

        return f"alpha = {alpha:g}", made

    model, alpha = _best(wish, map(candidate, alphas), score)
    if n <= SAMPLE:
        return model
    wish.tell(f"fitting all {n:,} rows with alpha = {alpha:g}")
    return make(alpha, _centers(wish, n)).fit(X, y)


def _logistic(wish: Wish, X: Any, y: Any) -> Any:
    def make(alpha: float, centers: int | None) -> Any:
        limit = max(5.0, wish.time)
        return mc.KernelLogisticRegression(
            wish.kernel, alpha=alpha, n_centers=centers, random_state=wish.seed, max_time=limit
        )

    return _penalised(wish, X, y, make, "leave-one-out log likelihood", (1.0, 0.3, 0.1, 0.03, 0.01, 3.0))


def _poisson(wish: Wish, X: Any, y: Any) -> Any:
    if (y < 0).any():
        raise InvalidInput("Counts must be ≥ 0 for --model poisson", got=f"{y.min():g}", advice="Take --model ridge.")

    def make(alpha: float, centers: int | None) -> Any:
        limit = max(5.0, wish.time)
        return mc.KernelGLM(
            wish.kernel, family="poisson", alpha=alpha, n_centers=centers, random_state=wish.seed, max_time=limit
        )

    return _penalised(wish, X, y, make, "leave-one-out share of the deviance", (3.0, 1.0, 0.3, 0.1, 10.0, 30.0))


def _smoother(wish: Wish, X: Any, y: Any) -> Any:
    cls: Any = mc.NadarayaWatsonRegressor if wish.task == "regression" else mc.NadarayaWatsonClassifier
    if wish.given or wish.kernel is None:
        wish.tell("Nadaraya-Watson: widths by leave-one-out")
        return cls(wish.kernel if wish.given else None).fit(X, y)

    def candidate(power: int) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            model = cls(wish.kernel**power if power > 1 else wish.kernel).fit(X, y)
            return model, float(model.loo_score_)

        return f"power {power} of the kernel", make

    return _best(wish, map(candidate, (4, 8, 16, 32, 64, 128)), "leave-one-out score")


def _neighbors(wish: Wish, X: Any, y: Any) -> Any:
    cls: Any = mc.KernelNeighborsRegressor if wish.task == "regression" else mc.KernelNeighborsClassifier
    wish.tell("nearest rows: how many by leave-one-out")
    model = cls(wish.kernel, n_neighbors="loo").fit(X, y)
    wish.choices.append(f"{getattr(model, 'n_neighbors_', '?')} neighbours, best by leave-one-out")
    return model


# -- on the columns themselves -----------------------------------------------------------------------------------------


def _local(wish: Wish, X: Any, y: Any) -> Any:
    wish.tell("local lines: width by leave-one-out")
    return mc.LocalRegression(wish.kernel if wish.given else None).fit(X, y)


def _linear(wish: Wish, X: Any, y: Any) -> Any:
    return mc.Ridge(alpha="loo").fit(X, y)


def _linear_classes(wish: Wish, X: Any, y: Any) -> Any:
    def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
        def make() -> tuple[Any, float]:
            model = mc.LogisticRegression(alpha=alpha).fit(X, y)
            return model, -float(model.loo_log_loss_)

        return f"alpha = {alpha:g}", make

    return _best(wish, map(candidate, (1.0, 0.1, 0.01, 10.0, 100.0)), "leave-one-out log likelihood")
