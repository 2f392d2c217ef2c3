"""The task of predicting numbers: squared loss, also of log y, Poisson's loss and a robust one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points, take
from mercer.errors import InvalidInput
from mercer.models.auto.entry import Entry, Problem, descend
from mercer.models.auto.intervals import Counts, dispersion_by_mean, log_normal
from mercer.models.auto.plan import FIRST_ROWS, FREE_STEPS
from mercer.models.auto.race import optimism
from mercer.models.auto.record import compared
from mercer.models.auto.response import CountLevels, LogResiduals, LogScale, Residuals, Response
from mercer.models.auto.task import PAIRS_PER_ROW, Cost, Fit, LeftOut, LossChoice, Task, quietly
from mercer.models.base import Matrix, Rows
from mercer.models.least_squares.kernel_ridge import KernelRidge
from mercer.models.likelihood.glm import KernelGLM
from mercer.models.svm.svr import SVR
from mercer.models.tune_margin import tune_margin
from mercer.tuning.trials import Measure, Trial

if TYPE_CHECKING:
    from mercer.models.auto.search import Search

LOSSES = ("auto", "squared", "log", "poisson", "robust")
# Positive targets with a greater skewness may be better on a logarithmic scale.
LARGE_SKEW = 1.0
# A smaller share than this by which tuning lowers the leave-one-out error is not worth a sentence.
LEAST_OPTIMISM = 0.0005
# Counts have at most this many different values.
COUNT_VALUES = 100
# Residuals beyond this many robust standard deviations are wide; above this share of the rows they are many, and they
# harm if the error is above this share of the variance.
WIDE_RESIDUAL, MANY_WIDE, HARMFUL_SHARE = 5.0, 0.01, 0.1
# Penalties to try for Poisson's loss, in units of the one that least squares suggests; and evaluations per fit.
POISSON_PENALTIES, POISSON_COST = (1.0, 4.0, 0.25), 1.0
# The fewest rows for a comparison of kernels.
FEWEST_ROWS = 5
# The measures by which losses are compared, without and with an exposure.
LOO_SQUARES = Measure("loo", "mean squared error when each row is left out, on the scale of the target", greater=False)
LOO_RATES = Measure("loo", "mean squared error of the counts per unit of exposure, each row left out", greater=False)


# -- the losses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegressionLoss(LossChoice):
    """A loss of numbers.

    Attributes
    ----------
    error : float
        The mean squared error when each row is left out, on the scale of y; NaN where losses were not compared.
    optimism : float
        The factor by which tuning on the same rows made that error too small.
    response : Response
        The map from values of the fitted model to predictions and intervals.
    """

    task: Regression
    error: float = np.nan
    optimism: float = 1.0
    response: Response = field(default_factory=Response)


@dataclass(frozen=True, eq=False)
class Squared(RegressionLoss):
    """Kernel ridge."""

    name = "squared"
    cost = Cost(0.1, 1.0)

    by_all_rows = MappingProxyType({"alpha": "loo"})

    def estimator(self) -> Any:
        return self.task.ridge(self.entry)

    def calibrated_on(self, rows: LeftOut) -> Squared:
        values = np.maximum(rows.values[:, 0], self.task.least)
        error = float(np.average((rows.y - values) ** 2, weights=rows.weights))
        return replace(self, error=error, response=Residuals.of(values, rows.y - values, rows.weights))


@dataclass(frozen=True, eq=False)
class Logarithm(Squared):
    """Kernel ridge on log y."""

    name = "log"

    def transformed(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.log(y))

    def calibrated_on(self, rows: LeftOut) -> Squared:
        assert isinstance(self.response, LogScale)
        values, log, w = rows.values[:, 0], np.log(rows.y), rows.weights
        smear = float(np.average(np.exp(log - values), weights=w))
        scale = LogResiduals(smear, self.response.most, Residuals.of(values, log - values, w))
        return replace(self, error=float(np.average((rows.y - scale.mean(values)) ** 2, weights=w)), response=scale)


@dataclass(frozen=True, eq=False)
class Poisson(RegressionLoss):
    """Poisson's loss with a logarithmic link, and its penalty."""

    alpha: float = 1.0

    name = "poisson"
    cost = Cost(POISSON_COST, 2 * POISSON_COST)

    def estimator(self) -> Any:
        return self.task.poisson(self.entry, self.alpha)

    def finished(self, fit: Fit, search: Search) -> Fit:
        """Calibrate intervals on the rows of the fit, each left out."""
        return replace(fit, loss=self._calibrated(*self.task.counted(np.asarray(fit.model.loo_predictions_), fit.rows)))

    def calibrated_on(self, rows: LeftOut) -> Poisson:
        sizes = 1.0 if rows.exposure is None else rows.exposure
        return self._calibrated(np.asarray(rows.y, dtype=np.float64), rows.values[:, 0] * sizes, rows.weights)

    def _calibrated(self, y: Matrix, mu: Matrix, w: Matrix | None) -> Poisson:
        """The loss with intervals from counts y and their left-out means."""
        w = None if w is None or np.ptp(w) == 0 else w
        if self.task.whole:
            dispersion, own = dispersion_by_mean(y, mu, w)
            return replace(self, response=CountLevels(Counts(own).level(y, mu), w, dispersion))
        return replace(self, response=Residuals.of(mu, y - mu, w))


@dataclass(frozen=True, eq=False)
class Robust(RegressionLoss):
    """Support vector regression, and its parameters."""

    C: float = 1.0
    epsilon: float = 0.1
    tol: float = 1e-3

    name = "robust"
    cost = Cost(1.0, 1.0)

    def estimator(self) -> Any:
        return SVR(self.entry.kernel, C=self.C, epsilon=self.epsilon, tol=self.tol)


# -- the task ----------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """The rows that losses are compared on.

    Attributes
    ----------
    rows : array
        Their positions among all rows.
    points, X, y, weights
        The rows.
    plain : array
        The leave-one-out predictions of least squares.
    considered : list of Trial
        The trials so far, which each loss joins.
    """

    rows: NDArray[Any]
    points: Points
    X: Any
    y: Matrix
    weights: Matrix | None
    plain: Matrix
    considered: list[Trial]

    def error(self, predictions: Matrix) -> float:
        """The mean squared error of predictions."""
        return float(np.average((self.y - predictions) ** 2, weights=self.weights))

    def tried(self, loss: str, error: float, note: str = "", **parameters: float) -> None:
        """Add the trial of a loss with these parameters."""
        self.considered.append(Trial({"loss": loss, **parameters}, error, name=loss, note=note))


class Regression(Task):
    """Numbers."""

    in_memory = "robust"

    def __init__(self, rows: Rows, requested: str, exposure: Matrix | None = None, **settings: Any) -> None:
        self.points, self.y, self.exposure = rows.points, rows.y[:, 0], exposure
        self.weights, self.kept = None if rows.roots is None else rows.roots**2, rows.kept
        self.requested, self.settings, self.advice = requested, settings, {}
        least = float(self.y.min())
        self.least, self.whole = (0.0 if least >= 0.0 else -np.inf), bool((self.y == np.floor(self.y)).all())
        for loss, bad, required in (("log", least <= 0, "> 0"), ("poisson", least < 0, "≥ 0")):
            if requested == loss and bad:
                raise InvalidInput(
                    f"`loss={loss!r}` requires targets {required}", got=f"{least:.4g}", advice="Use loss='squared'."
                )
        if exposure is not None:
            self._rates(exposure, least)

    def _rates(self, exposure: Matrix, least: float) -> None:
        """Fit rates y/e instead of counts y, each row with e times its weight.

        The deviance of a Poisson count of mean e·μ is e times that of the rate y/e with mean μ, so that this is the
        model with the offset log e; and the variance of a rate is μ/e, so that e are the weights of least squares, too.
        """
        if self.requested not in ("auto", "poisson") or least < 0:
            raise InvalidInput(
                "An exposure needs counts ≥ 0 and Poisson's loss",
                got=f"loss={self.requested!r}" if least >= 0 else f"a target of {least:.4g}",
                advice="Use loss='auto', or fit without the exposure.",
                option="Remove --exposure.",
            )
        self.requested = "poisson"
        self.y, self.weights = self.fitted(self.y, self.weights, exposure)

    def fitted(self, y: Matrix, w: Matrix | None, exposure: Matrix | None) -> tuple[Matrix, Matrix | None]:
        if exposure is None:
            return y, w
        return y / exposure, exposure if w is None else exposure * w

    def counted(self, rates: Matrix, rows: NDArray[Any] | None) -> tuple[Matrix, Matrix, Matrix | None]:
        """Targets, predictions and weights of these rows, or of all; with an exposure as counts, not as rates."""
        part = slice(None) if rows is None else rows
        y, w = self.y[part], None if self.weights is None else self.weights[part]
        if self.exposure is None:
            return y, rates, w
        e = self.exposure[part]
        return y * e, rates * e, None if w is None else w / e

    def describe(self) -> tuple[str, str]:
        if self.exposure is not None:
            e, y = self.exposure, self.y * self.exposure
            rate = f"{len(y):,} counts, {y.sum():,.6g} in all, over an exposure of {e.sum():,.6g}"
            return "counts over an exposure", f"{rate}: {y.sum() / e.sum():.4g} per unit"
        y, values = self.y, np.unique(self.y)
        if len(values) == 1:
            return "constant", f"every target is {values[0]:.6g}: there is nothing to learn"
        kind = "counts" if is_count(y) else "numbers"
        summary = f"{len(y):,} values from {values[0]:.4g} to {values[-1]:.4g}, {len(values):,} different"
        few = len(values) <= 5 and len(y) >= 20 and (values == np.floor(values)).all()
        if len(values) == 2 or (few and kind != "counts") or (few and np.median(y) > 0):
            self.advice["Target"] = "If these are classes rather than amounts, AutoClassifier is the better model."
        if self.least == 0.0:
            summary += ". None is negative: predictions and intervals do not go below 0"
        return kind, summary

    def too_few(self) -> str:
        if not np.ptp(self.y) > 0:
            return "the targets are constant"
        return "" if len(self.y) >= FEWEST_ROWS else f"{len(self.y)} rows are too few to compare kernels"

    def problem(self, points: Points, units: Matrix | None, names: tuple[str, ...]) -> Problem:
        """Targets with mean 0 and variance 1."""
        centre = float(np.average(self.y, weights=self.weights))
        scale = float(np.sqrt(np.average((self.y - centre) ** 2, weights=self.weights)))
        y, rates = ((self.y - centre) / scale)[:, None], self.exposure is not None
        return Problem(points, y, self.roots, units=units, names=names, rates=rates)

    def default(self, entry: Entry) -> Squared:
        return Squared(self, entry)

    # -- losses -------------------------------------------------------------------------------------------------------

    def losses(self, search: Search) -> Iterator[RegressionLoss]:
        """Compare the losses that suit the target by leave-one-out on the scale of y, on one sample."""
        assert search.loss is not None
        began, requested = time.perf_counter(), self.requested
        index = search.sample()
        X, y = take(search.plain.raw, index), self.y[index]
        w = None if self.weights is None else self.weights[index]
        with quietly():
            values = np.asarray(self.ridge(search.loss.entry).fit(X, y, w).loo_predictions_)
        plain = np.maximum(values, self.least)
        sample = Sample(index, search.plain.take(index), X, y, w, plain, [])
        best: RegressionLoss = Squared(self, search.loss.entry, sample.error(plain))
        sample.tried(best.name, best.error, alpha=best.entry.alpha)
        yield best
        notes, skipped, count = list[str](), False, is_count(self.y)

        def allowed(evaluations: float) -> bool:
            """Whether the plan has room for a loss that costs this many evaluations, and the clock does not stop."""
            nonlocal skipped
            fits = search.plan.affords_loss(len(search.sample()), evaluations) and not search.clock.stops()
            skipped = skipped or not fits
            return fits

        if requested == "log" or (requested == "auto" and _skewed(self.y) and allowed(FREE_STEPS)):
            best, reasons = self.logarithm(best, sample, search)
            notes += reasons
            yield best
        if requested == "poisson" or (requested == "auto" and count and allowed(len(POISSON_PENALTIES) * POISSON_COST)):
            best, reasons = self.counts(best, sample, search)
            notes += reasons
            yield best
        if requested == "robust" or (requested == "auto" and best.name == "squared" and not count):
            quick = search.plan.affords_rows_of_machine() and allowed(FREE_STEPS)
            best, reasons = self.outliers(best, sample, search, quick)
            notes += reasons
            yield best
        if skipped and requested == "auto":
            notes.append("there was no time to try others")
        why = "as requested" if self.exposure is None else "the targets are counts over an exposure"
        if requested == "auto":
            why = "; ".join(notes) or "the leave-one-out residuals call for no other loss"
        best, correction = self.judged(best, search)
        yield best
        trials = compared(LOO_SQUARES if self.exposure is None else LOO_RATES, sample.considered, best.name)
        search.record.add("Loss", best.name, why + correction, trials, began, self.advice.get("Loss", ""))

    def judged(self, best: RegressionLoss, search: Search) -> tuple[RegressionLoss, str]:
        """The loss with the optimism of its leave-one-out error, and a sentence about it."""
        assert search.problem is not None
        rows, p = min(len(self.y), 2 * FIRST_ROWS), len(best.entry.kernel.theta)
        if len(self.y) < 4 * FEWEST_ROWS or not search.plan.affords_judging(len(search.kernels), rows, p):
            return best, ". The leave-one-out error is not corrected for the tuning on the same rows"
        if search.clock.stops():
            return best, ""
        best = replace(best, optimism=optimism(search.kernels, search.problem, best.entry.rows, search.rng))
        share = 1 - 1 / best.optimism
        if share < LEAST_OPTIMISM:
            return best, ""
        return best, f". Tuning on the same rows made the leave-one-out error too small by {share:.1%}"

    def logarithm(self, best: RegressionLoss, sample: Sample, search: Search) -> tuple[RegressionLoss, list[str]]:
        """Kernel ridge on log y, its mean by smearing (Duan 1983): used if it is closer on the scale of y."""
        y, w, log = sample.y, sample.weights, np.log(sample.y)
        centred = (log - log.mean()) / (log.std() or 1.0)
        problem = Problem(sample.points, centred[:, None], None if w is None else np.sqrt(w))
        entry = descend(replace(best.entry, curvature=None), problem, search.clock, FREE_STEPS)
        with quietly():
            left_out = np.asarray(self.ridge(entry).fit(sample.X, log, w).loo_predictions_)
        response = LogScale(float(np.average(np.exp(log - left_out), weights=w)), float(log.max()) + 3.0)
        predictions = response.mean(left_out)
        error = sample.error(predictions)
        sample.tried("log", error, alpha=entry.alpha)
        search.clock.report("log of the target", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        if self.requested == "auto" and not _clearly(y, predictions, sample.plain, w):
            return best, ["a logarithmic scale was tried, and is not clearly closer"]
        chosen = Logarithm(self, entry, error, response=response)
        return chosen, ["the targets are positive and skewed, and predictions are closer on a logarithmic scale"]

    def counts(self, best: RegressionLoss, sample: Sample, search: Search) -> tuple[RegressionLoss, list[str]]:
        """Poisson's loss with a logarithmic link, its penalty by approximate leave-one-out deviance."""
        X, y, w = sample.X, sample.y, sample.weights
        # Least squares has the noise E and the signal E/alpha; that of log μ is smaller by μ².
        mean = float(np.average(y, weights=w))
        size = 1.0 if w is None else float(w.mean())
        start = best.entry.alpha * mean**2 / max(best.error, 1e-12 * mean**2) / size
        tried = list[tuple[float, float, Matrix]]()
        for alpha in start * np.array(POISSON_PENALTIES):
            with quietly():
                mu = np.asarray(self.poisson(best.entry, float(alpha)).fit(X, y, w).loo_predictions_)
            tried.append((float(np.average(_deviance(y, np.maximum(mu, 1e-12)), weights=w)), float(alpha), mu))
            if search.clock.stops():
                break
        _, alpha, mu = min(tried, key=lambda t: t[0])
        error = sample.error(mu)
        counts = Counts.of(*self.counted(mu, sample.rows))
        search.clock.report("Poisson's loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        better, note = True, ""  # numbers that are not whole only on request
        if self.whole and self.exposure is None:
            # Both as distributions of whole numbers, each with the variance of its residuals.
            logs = counts.log_probability(y, mu), log_normal(y, sample.plain, w)
            scores = [float(np.average(log, weights=w)) for log in logs]
            note = "log score {:.4g}, with squared loss {:.4g}".format(*scores)
            better = scores[0] - scores[1] > float((logs[0] - logs[1]).std()) / np.sqrt(len(y))
        sample.tried("poisson", error, note, alpha=alpha)
        if self.requested == "auto" and not better:
            return best, ["the targets are whole numbers ≥ 0, but Poisson's loss is not better by a standard error of "
                          "the leave-one-out log score"]  # fmt: skip
        chosen = Poisson(self, best.entry, error, alpha=alpha)
        wide = f"{counts.dispersion:.2g} × that of a Poisson distribution, and the intervals allow for it"
        return chosen, [f"the targets are counts; on left-out training rows their variance is {wide}"]

    def outliers(
        self, best: RegressionLoss, sample: Sample, search: Search, quick: bool
    ) -> tuple[RegressionLoss, list[str]]:
        """Support vector regression, which outliers do not pull: used if its absolute error is smaller, too."""
        X, y, w, requested = sample.X, sample.y, sample.weights, self.requested == "robust"
        r = y - sample.plain
        spread = 1.4826 * float(np.median(np.abs(r - np.median(r)))) or float(r.std()) or 1.0
        wide = float((np.abs(r - np.median(r)) > WIDE_RESIDUAL * spread).mean())
        if not requested and (wide < MANY_WIDE or best.error < HARMFUL_SHARE * float(np.var(y))):
            return best, []
        note = f"{wide:.1%} of the residuals are larger than {WIDE_RESIDUAL:g} robust standard deviations"
        if not requested and not quick:
            self.advice["Loss"] = "Try loss='robust'."
            return best, [f"{note}, and there was no time to try a robust loss"]
        # Kernel ridge has the coefficients r/alpha: C cuts those of wide residuals.
        C = np.minimum(np.geomspace(1.0, 30.0, 3) / best.entry.alpha, 1e5) * spread
        steps = PAIRS_PER_ROW * len(y)
        machine = SVR(best.entry.kernel, C=1.0, epsilon=0.1 * spread, tol=1e-2 * spread, max_iter=steps)
        with quietly():
            tuned = tune_margin(machine, X, y, cv=3, grid={"C": C}, sample_weight=w)
            machine.set_params(C=tuned.C)
            predictions = np.empty_like(y)
            fold = np.arange(len(y)) % 3
            for i in range(3):
                weighted = {} if w is None else {"sample_weight": w[fold != i]}
                part = machine.fit(take(X, np.flatnonzero(fold != i)), y[fold != i], **weighted)
                predictions[fold == i] = part.predict(take(X, np.flatnonzero(fold == i)))
        response = Residuals.of(predictions, y - predictions, w)
        predictions = np.maximum(predictions, self.least)
        error = sample.error(predictions)
        absolute, before = (float(np.average(np.abs(y - p), weights=w)) for p in (predictions, sample.plain))
        compared_to = f"mean absolute error {absolute:.4g}, with squared loss {before:.4g}"
        sample.tried("robust", error, compared_to, C=tuned.C, epsilon=machine.epsilon)
        search.clock.report("robust loss", 1.0 - error / float(np.var(y)), "leave-one-out R²")
        gain = np.abs(r) - np.abs(y - predictions)
        if not requested and not float(gain.mean()) > float(gain.std()) / np.sqrt(len(y)):
            self.advice["Loss"] = "loss='robust' takes the robust loss anyway."
            return best, [f"{note}; the robust loss was tried and is not closer"]
        chosen = Robust(self, best.entry, error, response=response, C=tuned.C, epsilon=0.1 * spread, tol=1e-3 * spread)
        return chosen, [note]

    # -- estimators ---------------------------------------------------------------------------------------------------

    def ridge(self, entry: Entry) -> KernelRidge:
        """Kernel ridge with an intercept."""
        return KernelRidge(entry.kernel, alpha=entry.alpha, fit_intercept=True, **self.settings)

    def poisson(self, entry: Entry, alpha: float) -> KernelGLM:
        """A Poisson model with this penalty."""
        return KernelGLM(entry.kernel, family="poisson", alpha=alpha, tol=1e-5, **self.settings)


def is_count(y: Matrix) -> bool:
    """Whether targets are whole numbers ≥ 0, more than two of them different, but not too many."""
    values = np.unique(y)
    few = 2 < len(values) <= min(COUNT_VALUES, len(y) // 2)
    return bool(values[0] >= 0 and few and (values == np.floor(values)).all())


def _skewed(y: Matrix) -> bool:
    if not y.min() > 0:
        return False
    z = (y - y.mean()) / (y.std() or 1.0)
    return float((z**3).mean()) > LARGE_SKEW


def _deviance(y: Matrix, mu: Matrix) -> Matrix:
    """Poisson's deviance of every row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2.0 * (np.where(y > 0, y * np.log(y / mu), 0.0) - y + mu))


def _clearly(y: Matrix, predictions: Matrix, before: Matrix, w: Matrix | None) -> bool:
    """Whether predictions are closer than others: by squares and by absolute errors, by more than a standard error."""
    squares = (y - before) ** 2 - (y - predictions) ** 2
    gain = np.abs(y - before) - np.abs(y - predictions)
    return all(float(np.average(g, weights=w)) > float(g.std()) / np.sqrt(len(y)) for g in (squares, gain))
