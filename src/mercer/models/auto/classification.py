"""The task of predicting classes: least squares with a softmax, logistic regression, and support vector machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.points import Points, take
from mercer.models.auto.entry import Entry, Problem
from mercer.models.auto.record import compared
from mercer.models.auto.task import PAIRS_PER_ROW, Cost, Fit, Index, LeftOut, LossChoice, Task, quietly
from mercer.models.base import Matrix
from mercer.models.labels import Labelled, class_weights
from mercer.models.least_squares.classifier import LeastSquaresClassifier
from mercer.models.likelihood.logistic import KernelLogisticRegression
from mercer.models.svm.probabilities import Softmax
from mercer.models.svm.svc import SVC
from mercer.models.tune_margin import tune_margin
from mercer.tuning.trials import Measure, Trial, Trials

if TYPE_CHECKING:
    from mercer.models.auto.search import Search

LOSSES = ("auto", "logistic", "hinge", "squared")
# The penalty of the logistic loss, in units of the penalty of least squares; the values of C for the hinge loss.
LOGISTIC_PENALTY = 0.12
HINGE_CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# The softmax of more than two classes is tried up to this number of rows times classes: its Newton steps cost the cube.
SOFTMAX_SIZE = 500
# If the number of classes is above this share of the rows, the labels are amounts rather than names.
AMOUNTS_SHARE = 0.3
# Up to this number of rows, probabilities are calibrated by leaving each row out of the last fit; beyond it, by at most
# the second number of rows that are held out.
LEFT_OUT_ROWS, HELD_OUT_ROWS = 2500, 2000
# The fewest classes for which the problems between two of them are small.
MANY_CLASSES = 5
# Widths differ less freely than for numbers, and fewer rows are enough in the second race: the squared error of classes
# carries less information. Both as in `Problem`.
FREEDOM, ENOUGH = 0.05, 500
# The measure by which losses are compared.
LOO_LOG_LOSS = Measure("loo", "log loss when each row is left out", greater=False)


def class_values(model: Any, X: Any) -> Matrix:
    """One value per class at each of m points: of logistic regression log P, of least squares its predictions."""
    if isinstance(model, KernelLogisticRegression):
        return np.asarray(model.predict_log_proba(X))
    return np.asarray(model.regression_.predict(X))


def left_out_values(model: Any) -> Matrix:
    """The same at each row of the fit, by the model fitted without it."""
    if isinstance(model, KernelLogisticRegression):
        return np.asarray(np.log(np.maximum(model.loo_proba_, 1e-300)))
    return np.asarray(model.regression_.loo_predictions_)


# -- the losses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassificationLoss(LossChoice):
    """A loss of classes.

    Attributes
    ----------
    softmax : Softmax or None
        The map from one value per class to calibrated probabilities; None if the model has its own.
    """

    task: Classification
    softmax: Softmax | None = None


@dataclass(frozen=True, eq=False)
class Calibrated(ClassificationLoss):
    """A loss whose probabilities are the softmax of one value per class, fitted to rows left out."""

    def finished(self, fit: Fit, search: Search) -> Fit:
        if fit.rows is not None or self.task.too_few():  # else calibrated before, by the comparison of losses
            return fit
        softmax = self.task.calibrated(left_out_values(fit.model), np.arange(len(self.task.y)))
        return replace(fit, loss=replace(self, softmax=softmax))

    def calibrated_on(self, rows: LeftOut) -> Calibrated:
        codes = np.searchsorted(self.task.data.classes, rows.y)
        shifted = True if self.task.weighted else None
        return replace(self, softmax=Softmax.fit(rows.values, codes, rows.weights, shifted=shifted))


@dataclass(frozen=True, eq=False)
class Logistic(Calibrated):
    """Logistic regression."""

    name = "logistic"

    @property
    def cost(self) -> Cost:
        evaluations = self.task.newton()
        return Cost(evaluations, 2.0 * evaluations)

    def estimator(self) -> Any:
        alpha = max(LOGISTIC_PENALTY * self.entry.alpha, 1e-6)
        return KernelLogisticRegression(self.entry.kernel, alpha=alpha, tol=1e-5, **self.task.settings)


@dataclass(frozen=True, eq=False)
class Squared(Calibrated):
    """Least squares on the classes, which on many rows competes with a support vector machine."""

    name = "squared"
    cost = Cost(0.1, 1.0)
    by_all_rows = MappingProxyType({"alpha": "loo"})

    def estimator(self) -> Any:
        return LeastSquaresClassifier(self.entry.kernel, alpha=self.entry.alpha, **self.task.settings)

    def held_out(self, rows: Index) -> Index:
        many = len(self.task.y) > max(LEFT_OUT_ROWS, 2 * self.task.fewest)
        return rows[-HELD_OUT_ROWS:] if many else rows[:0]

    def finished(self, fit: Fit, search: Search) -> Fit:
        rows = fit.held_out
        if rows is None or not len(rows):
            return super().finished(fit, search)
        values = class_values(fit.model, take(self.task.points.raw, rows))
        fit = replace(fit, loss=replace(self, softmax=self.task.calibrated(values, rows)))
        machine = self.task.machine(fit, search) if fit.staged else None
        return fit if machine is None else self.task.better(fit, machine, values, search)


@dataclass(frozen=True, eq=False)
class Hinge(ClassificationLoss):
    """A support vector machine and its C, with its own probabilities."""

    C: float = 1.0

    name = "hinge"
    cost = Cost(1.0, 1.0)

    def estimator(self) -> Any:
        weights, seed = self.task.weights_by_label, self.task.settings["random_state"]
        return SVC(self.entry.kernel, C=self.C, class_weight=weights, calibrated=True, random_state=seed)

    @property
    def weights(self) -> Matrix | None:
        """Sample weights without class weights: the machine gets these separately, its probabilities ignore them."""
        return self.task.data.counts


# -- the task ----------------------------------------------------------------------------------------------------------


class Classification(Task):
    """Classes."""

    in_memory = "hinge"

    def __init__(self, data: Labelled, requested: str, class_weight: Any = None, **settings: Any) -> None:
        self.points, self.y, self.weights = data.points, data.classes[data.codes], data.weights
        self.data, self.kept, self.counts = data, data.kept, np.bincount(data.codes)
        self.requested, self.weighted, self.settings = requested, class_weight is not None, settings
        self.advice = {}
        self.fewest = 2 * len(self.counts)
        counts = np.ones(len(data)) if data.counts is None else data.counts
        self.factors = class_weights(class_weight, data.classes, data.codes, counts)

    @property
    def weights_by_label(self) -> dict[Any, float] | None:
        """The weight of each class, or None if they are not weighted."""
        return dict(zip(self.data.classes.tolist(), self.factors.tolist())) if self.weighted else None

    def describe(self) -> tuple[str, str]:
        k, n, counts = len(self.counts), len(self.data), self.counts
        summary = f"{n:,} rows; the rarest class has {counts.min():,}, the most frequent {counts.max():,}"
        if self.data.classes.dtype.kind in "iuf" and k > max(10, AMOUNTS_SHARE * n):
            self.advice["Target"] = "If these are amounts rather than names, AutoRegressor is the better model."
        elif counts.max() > 9 * counts.min():
            summary += f". Always predicting the most frequent class would be right for {counts.max() / n:.1%} of the "
            summary += "rows: look at probabilities"
            self.advice["Target"] = "class_weight='balanced' weights the classes."
        return f"{k} classes", summary

    def too_few(self) -> str:
        n, others = len(self.data), len(self.data) - int(self.counts.max())
        if n >= 6 and np.sort(self.counts)[-2] >= 2:
            return ""
        return f"{n} rows, {others} of them not of the most frequent class, are too few to compare kernels"

    def problem(self, points: Points, units: Matrix | None, names: tuple[str, ...]) -> Problem:
        """Targets ±1 for each class; for two classes only those of the second."""
        k = len(self.counts)
        Y = 2.0 * (self.data.codes[:, None] == np.arange(k)) - 1.0
        return Problem(points, Y[:, 1:] if k == 2 else Y, self.roots, FREEDOM, ENOUGH, units, names)

    def order(self, rng: np.random.Generator) -> Index:
        """In random order, but two rows of every class first: no sample lacks a class."""
        order = super().order(rng)
        by_class = np.argsort(self.data.codes[order], kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return np.concatenate([order[rank < 2], order[rank >= 2]])

    def default(self, entry: Entry) -> ClassificationLoss:
        if self.requested == "hinge":
            return Hinge(self, entry)
        # The probabilities of a weighted model are those of data in which a class is more frequent by its weight.
        softmax = Softmax(1.0, -np.log(self.factors))
        return (Logistic if self.requested == "logistic" else Squared)(self, entry, softmax)

    def fitted(self, y: NDArray[Any], w: Matrix | None, exposure: Matrix | None) -> tuple[NDArray[Any], Matrix | None]:
        if not self.weighted:
            return y, w
        return y, (1.0 if w is None else w) * self.factors[np.searchsorted(self.data.classes, y)]

    # -- losses -------------------------------------------------------------------------------------------------------

    def losses(self, search: Search) -> Iterator[ClassificationLoss]:
        """Compare losses by their log loss when each row is left out."""
        assert search.loss is not None
        began, requested, entry = time.perf_counter(), self.requested, search.loss.entry
        index = search.sample()
        X, codes = take(search.plain.raw, index), self.data.codes[index]
        w = None if self.weights is None else self.weights[index]
        if requested == "hinge":
            hinge = self.margin(entry, X, codes, w)
            yield hinge
            why = f"as requested; C={hinge.C:.3g} has the highest accuracy in cross-validation"
            search.record.add("Loss", hinge.name, why, began=began)
            return
        tried = list[tuple[Calibrated, Matrix, Trial]]()

        def attempt(loss: Calibrated) -> Calibrated:
            with quietly():
                fitted = loss.estimator().fit(X, codes, w)
            values = left_out_values(fitted)
            softmax = self.calibrated(values, index)
            losses, right, mean = self.scored(softmax(values), index)
            search.clock.report(f"{loss.name} loss", right, "leave-one-out accuracy")
            note = f"{right:.1%} right, alpha={fitted.alpha:.3g}"
            trial = Trial({"loss": loss.name, "alpha": fitted.alpha}, mean, name=loss.name, note=note)
            tried.append((replace(loss, softmax=softmax), losses, trial))
            return tried[-1][0]

        if requested != "logistic":
            yield attempt(Squared(self, entry))
        logistic: Calibrated = Logistic(self, entry)
        small = len(self.counts) == 2 or len(index) * len(self.counts) <= SOFTMAX_SIZE
        cost = logistic.cost.evaluations
        affordable = search.plan.affords_loss(len(index), cost) and search.plan.affords_exact(cost)
        if requested == "logistic" or (requested == "auto" and small and affordable and not search.clock.stops()):
            logistic = attempt(logistic)
        best, why = tried[0][0], "as requested"
        if requested == "auto":
            why = "it has a closed-form solution, which is fast for this number of rows and classes"
        if len(tried) == 2:
            better = self.clearly(tried[0][1], tried[1][1], index)
            best = logistic if better else best
            why = f"the log loss of the other is {'higher' if better else 'not lower'} by more than a standard error"
        yield best
        trials = compared(LOO_LOG_LOSS, [trial for *_, trial in tried], best.name)
        search.record.add("Loss", best.name, why, trials, began)

    def sample_weights(self, rows: Index) -> Matrix | None:
        """The sample weights of these rows, without those of their classes."""
        return None if self.data.counts is None else self.data.counts[rows]

    def calibrated(self, values: Matrix, rows: Index) -> Softmax:
        """Probabilities from values of these rows, by a model that was fitted without each of them."""
        shifted = True if self.weighted else None
        return Softmax.fit(values, self.data.codes[rows], self.sample_weights(rows), shifted=shifted)

    def scored(self, P: Matrix, rows: Index) -> tuple[Matrix, float, float]:
        """−log P of each row's class, the accuracy, and the mean of the former."""
        codes, w = self.data.codes[rows], self.sample_weights(rows)
        losses = -np.log(np.maximum(P[np.arange(len(codes)), codes], 1e-300))
        right = float(np.average(P.argmax(axis=1) == codes, weights=w))
        return losses, right, float(np.average(losses, weights=w))

    def clearly(self, before: Matrix, after: Matrix, rows: Index) -> bool:
        """Whether log losses of these rows are less than others by more than a standard error."""
        gain = before - after
        return float(np.average(gain, weights=self.sample_weights(rows))) > float(gain.std()) / np.sqrt(len(gain))

    def newton(self) -> float:
        """The cost of Newton's method for logistic regression, in evaluations of the race's criterion."""
        k = len(self.counts)
        return 1.5 if k == 2 else 4.0 * k**3

    def margin(self, entry: Entry, X: Any, codes: Index, w: Matrix | None) -> Hinge:
        """A support vector machine with the C of the highest accuracy."""
        size = float(np.mean(entry.kernel.diag(X))) or 1.0
        machine = SVC(entry.kernel, max_iter=PAIRS_PER_ROW * len(codes), tol=1e-2)
        with quietly():
            tuned = tune_margin(machine, X, codes, cv=3, grid={"C": np.array(HINGE_CS) / size}, sample_weight=w)
        return Hinge(self, entry, C=tuned.C)

    # -- many rows ----------------------------------------------------------------------------------------------------

    def machine(self, fit: Fit, search: Search) -> SVC | None:
        """A support vector machine of all rows that are not held out, if it is quick enough to compete.

        It needs no centres, and with many classes its problems between two of them are small.
        """
        assert fit.held_out is not None
        pairs = float(((self.counts[:, None] + self.counts) ** 2)[np.triu_indices(len(self.counts), 1)].sum())
        comparable = self.requested == "auto" and not self.weighted  # accuracy ignores weights of errors
        quick = len(self.counts) >= MANY_CLASSES and search.plan.affords_machine(pairs)
        if not comparable or not quick or search.clock.stops():
            return None
        rows = np.setdiff1d(np.arange(len(self.y)), fit.held_out)
        search.clock.report(f"support vector machine, of {len(rows):,} rows")
        entry, limit = fit.loss.entry, max(search.clock.left, 0.1)
        machine = SVC(entry.kernel, C=1.0 / entry.alpha, max_time=limit, random_state=self.settings["random_state"])
        w = None if self.weights is None else self.weights[rows]
        with quietly():
            machine.fit(take(self.points.raw, rows), self.y[rows], w)
        return None if search.clock.stops() else machine  # one that was stopped does not compete

    def better(self, fit: Fit, machine: SVC, values: Matrix, search: Search) -> Fit:
        """The fit of least squares or the support vector machine, by their log loss on the rows that were held out.

        Both are calibrated on one half of them and judged on the other, and the other way round.
        """
        rows = fit.held_out
        assert rows is not None
        X, w, side = take(self.points.raw, rows), self.sample_weights(rows), np.arange(len(rows)) % 2 == 0
        P = np.empty((2, *values.shape))
        for some, others in ((side, ~side), (~side, side)):
            P[0][others] = self.calibrated(values[some], rows[some])(values[others])
            part = take(X, np.flatnonzero(some))
            machine.calibrate(part, self.y[rows][some], self.sample_weights(rows[some]))
            P[1][others] = machine.predict_proba(take(X, np.flatnonzero(others)))
        squared, hinge = (self.scored(p, rows) for p in P)
        if self.clearly(squared[0], hinge[0], rows):
            machine.calibrate(X, self.y[rows], w)
            loss = Hinge(self, fit.loss.entry, C=machine.C)
            fitted = np.setdiff1d(np.arange(len(self.y)), rows)
            fit = Fit(loss, machine, fitted, rows)
        judged = Measure("held out", f"log loss of {len(rows):,} rows that were held out", greater=False)
        trials = tuple(
            Trial({"loss": loss}, mean, name=f"{loss}, {where}", note=f"{right:.1%} right")
            for loss, where, (_, right, mean) in (("squared", "on centres", squared), ("hinge", "on all rows", hinge))
        )
        search.record.add(
            "Loss of many rows", fit.loss.name,
            f"an exact fit of least squares would take longer than {search.clock.seconds:g} s",
            Trials(judged, trials, int(fit.model is machine)),
        )  # fmt: skip
        return fit
