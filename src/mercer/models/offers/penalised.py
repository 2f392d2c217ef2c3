"""Models with a penalty: kernel ridge, least squares on classes, kernel logistic and Poisson regression.

The penalty is chosen on a sample, by leave-one-out in closed form. It is the variance of the noise in units of the
kernel, which does not depend on the number of rows, so that the fit to all rows takes it over: exactly if the time
allows that, else on centres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import mercer as mc
from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.models.auto.intervals import SMALLEST, Counts
from mercer.models.auto.plan import LEAST_TIME, PILOT_CENTRES
from mercer.models.auto.stages import in_stages
from mercer.models.base import Matrix
from mercer.models.offers.request import FIT_SHARE, SEARCH_SHARE, Request
from mercer.problems.families import NegativeBinomial, Poisson


class Effort(NamedTuple):
    """The costs of a model, in evaluations of `auto.plan` on the same rows.

    Attributes
    ----------
    search, exact : float
        Those of the whole search for the penalty, and of an exact fit.
    steps : float
        The Newton steps of a fit on centres.
    """

    search: float
    exact: float
    steps: float


RIDGE = Effort(2.0, 0.1, 1.0)
Penalties = tuple[tuple[float, ...], ...]
PENALTIES: Penalties = ((1.0, 0.3, 0.1, 0.03, 0.01), (3.0,))
OF_COUNTS: Penalties = ((3.0, 1.0, 0.3, 0.1), (10.0, 30.0))
"""The penalties that are compared, of classes and of counts: from the first one to smaller and to larger ones."""


def ridge(request: Request, X: Any, y: Any) -> Any:
    """Kernel ridge: the path of all penalties in one decomposition."""
    make = partial(_kernel_ridge, request)

    def choose(X: Any, y: Any, weighted: dict[str, Any]) -> tuple[Any, float]:
        request.progress(f"kernel ridge: choosing alpha by leave-one-out on {len(y):,} rows")
        model = make("loo").fit(X, y, **weighted)
        return model, float(model.alpha_)

    return _chosen(request, X, y, choose, make, RIDGE, "with the smallest leave-one-out error")


def last_ridge(request: Request, y: Any) -> tuple[int, Any]:
    """The planned number of rows of the last fit of `ridge`, and the model, not fitted, with a penalty of one."""
    if _searched(request, y, RIDGE) == len(y) and request.centers is None:
        return len(y), _kernel_ridge(request, "loo")
    number, centres = _last_sizes(request, y, RIDGE)[-1]
    return number, _kernel_ridge(request, 1.0, **_solver(centres))


def _kernel_ridge(request: Request, alpha: Any, **solver: Any) -> Any:
    return mc.KernelRidge(request.kernel, alpha=alpha, fit_intercept=True, random_state=request.seed, **solver)


def least_squares(request: Request, X: Any, y: Any) -> Any:
    """Least squares on classes."""

    def make(alpha: float, **solver: Any) -> Any:
        return mc.LeastSquaresClassifier(
            request.kernel, alpha=alpha, random_state=request.seed, **solver, **request.by_class()
        )

    choose = _candidates(request, make, "leave-one-out accuracy", PENALTIES, len(y))
    return _chosen(request, X, y, choose, make, Effort(6 * 0.5, 0.1, 1.0))


def logistic(request: Request, X: Any, y: Any) -> Any:
    """Kernel logistic regression."""

    def make(alpha: float, **solver: Any) -> Any:
        return mc.KernelLogisticRegression(
            request.kernel, alpha=alpha, random_state=request.seed, max_time=_left(request), **_centred(solver),
            **request.by_class(),
        )  # fmt: skip

    k = len(np.unique(y))
    newton = 1.0 if k == 2 else float(k) ** 2
    choose = _candidates(request, make, "leave-one-out log likelihood", PENALTIES, len(y))
    return _chosen(request, X, y, choose, make, Effort(6 * newton, newton, 2.0 * newton))


def poisson(request: Request, X: Any, y: Any) -> Any:
    """Kernel Poisson regression, or a negative binomial one if the counts vary clearly more than Poisson's."""
    if (y < 0).any():
        raise InvalidInput(
            "Targets must be counts ≥ 0 for the model 'poisson'",
            got=f"{y.min():g}",
            advice="Choose the model 'ridge'.",
            option="Use --model ridge.",
        )

    family: Poisson | NegativeBinomial = Poisson()

    def make(alpha: float, **solver: Any) -> Any:
        return mc.KernelGLM(
            request.kernel, family=family, alpha=alpha, random_state=request.seed, max_time=_left(request),
            **_centred(solver),
        )  # fmt: skip

    by_deviance = _candidates(request, make, "leave-one-out explained deviance", OF_COUNTS, len(y))

    def choose(X: Any, y: Any, weighted: dict[str, Any]) -> tuple[Any, float]:
        nonlocal family
        made = len(request.choices)
        chosen = by_deviance(X, y, weighted)
        mu = np.maximum(np.asarray(chosen[0].loo_predictions_), SMALLEST)
        family, why = family_of(np.asarray(y, dtype=np.float64), mu, weighted.get("sample_weight"))
        if not isinstance(family, Poisson):  # its deviance has other units, and so has its penalty
            del request.choices[made:]
            chosen = by_deviance(X, y, weighted)
        request.choices.append(why)
        return chosen

    # The penalty is chosen for both distributions; the dispersion, for intervals, costs as much as a Newton step.
    return _chosen(request, X, y, choose, make, Effort(13.0, 1.0, 3.0))


def family_of(y: Matrix, mu: Matrix, w: Matrix | None = None) -> tuple[Poisson | NegativeBinomial, str]:
    """The distribution of counts y whose means were predicted without them, and a sentence about it.

    The negative binomial one has the variance μ + μ²/θ. It is used if its mean log likelihood is higher by more than
    two standard errors, with the θ of the residuals: Σ (y − μ)² = Σ μ + Σ μ²/θ.

    >>> rng = np.random.default_rng(0)
    >>> mu = np.full(400, 5.0)
    >>> family_of(rng.poisson(mu).astype(float), mu)[0]
    Poisson()
    >>> family, why = family_of(rng.poisson(mu * rng.gamma(2.0, 0.5, size=400)).astype(float), mu)
    >>> 1.5 < family.theta < 3.0, why[:75]
    (True, 'negative binomial, since the variance of left-out training counts is 3.2 × ')
    """
    whole = bool((y == np.floor(y)).all())
    of = f"the variance of left-out training counts is {Counts.of(y, mu, w).dispersion:.2g} × "
    more = float(np.average((y - mu) ** 2 - mu, weights=w))
    if whole and more > 0:
        wide = NegativeBinomial(float(np.average(mu**2, weights=w)) / more)
        gain = Counts(1.0 + mu / wide.theta).log_probability(y, mu) - Counts(1.0).log_probability(y, mu)
        if float(np.average(gain, weights=w)) > 2.0 * float(gain.std()) / np.sqrt(len(y)):
            return wide, f"negative binomial, since {of}that of a Poisson distribution (theta = {wide.theta:.3g})"
    return Poisson(), f"Poisson distribution: {of}its own, which is not clearly more"


def _left(request: Request) -> float:
    """The time limit of one fit."""
    return max(request.clock.left, LEAST_TIME)


def _centred(solver: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a model that needs no solver by name for its centres."""
    return {name: value for name, value in solver.items() if name == "n_centers"}


Choose = Callable[[Any, Any, dict[str, Any]], tuple[Any, float]]


def _candidates(request: Request, make: Callable[..., Any], score: str, paths: Penalties, total: int) -> Choose:
    """The choice among some penalties, each with a model of its own."""

    def choose(X: Any, y: Any, weighted: dict[str, Any]) -> tuple[Any, float]:
        def candidate(alpha: float) -> tuple[str, Callable[[], tuple[Any, float]]]:
            def fitted() -> tuple[Any, float]:
                model = make(alpha).fit(X, y, **weighted)
                value = -float(model.loo_log_loss_) if hasattr(model, "loo_log_loss_") else float(model.loo_score_)
                return (model, alpha), value

            return f"alpha = {alpha:g}", fitted

        found: tuple[Any, float] = request.best((map(candidate, path) for path in paths), score, len(y), total)
        return found

    return choose


def _chosen(
    request: Request, X: Any, y: Any, choose: Choose, make: Callable[..., Any], effort: Effort, by: str = ""
) -> Any:
    """The model with the penalty chosen on a sample, fitted to all rows."""
    n = len(y)
    rows = _searched(request, y, effort)
    index = request.sample(y, rows)
    model, alpha = choose(X if rows == n else take(X, index), y[index], request.weighted(index))
    on = f" on {rows:,} of {n:,} rows" if rows < n else ""
    if by:
        request.choices.append(f"alpha = {alpha:.3g}, {by}{on}")
    if rows == n and request.centers is None:
        request.used(y, n, n)
        return model
    request.progress(f"fitting {n:,} rows with alpha = {alpha:g}")

    def fitted(size: tuple[int, int | None]) -> Any:
        number, centres = size
        part = request.sample(y, number)
        return make(alpha, **_solver(centres)).fit(
            X if number == n else take(X, part), y[part], **request.weighted(part)
        )

    sizes = _last_sizes(request, y, effort)
    (number, centres), model = in_stages(request.clock, sizes, fitted)
    request.used(y, number, sizes[-1][0], centres, "" if request.centers is not None else "time")
    if request.last is not None and (number, centres) != sizes[-1]:
        request.last = replace(request.last, limit="clock")
    return model


def _searched(request: Request, y: Any, effort: Effort) -> int:
    """The number of rows on which the penalty is chosen."""
    return request.sizes(y, lambda r: effort.search * request.plan.evaluation(r), SEARCH_SHARE)[-1]


def _last_sizes(request: Request, y: Any, effort: Effort) -> tuple[tuple[int, int | None], ...]:
    """Numbers of rows and centres for the stages of the last fit: all rows exactly if there is time for that."""
    n = len(y)
    if request.centers is not None:
        return ((n, min(request.centers, n)),)
    if effort.exact * request.plan.evaluation(n) <= FIT_SHARE * request.seconds or n <= 2 * PILOT_CENTRES:
        return ((n, None),)
    fits = 2 if request.task == "classification" else 1  # another one calibrates probabilities on held-out rows
    return request.plan.stages(fits * effort.steps, request.fewest(y))


def _solver(centres: int | None) -> dict[str, Any]:
    return {} if centres is None else {"solver": "nystrom", "n_centers": centres}
