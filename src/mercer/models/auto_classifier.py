"""From a table to a classifier: kernel and loss are chosen, and every choice is explained."""

from __future__ import annotations

import time as clock_time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin

from mercer.errors import InvalidInput
from mercer.kernels.points import Points, take
from mercer.kernels.rules import median_gaussian
from mercer.models.auto_model import (
    AutoModel,
    Candidate,
    Choices,
    Clock,
    Entry,
    Problem,
    Record,
    centres,
    quietly,
    race,
    searchable,
)
from mercer.models.base import Matrix, training_points
from mercer.models.labels import Labelled
from mercer.models.least_squares_classifier import LeastSquaresClassifier
from mercer.models.logistic import KernelLogisticRegression
from mercer.models.svc import SVC

LOSSES = ("auto", "logistic", "hinge", "squared")
# Rows that losses are compared on, folds, and rows up to which a support vector machine is considered.
ROWS, FOLDS, MACHINE = 600, 4, 20_000
# Penalties of the logistic loss, in units of that of least squares, from smooth to close; Cs of the hinge loss.
PENALTIES = (1.0, 0.25, 0.06, 0.015)
CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# The softmax of more than two classes is tried up to so many rows times classes: its Newton steps cost that cubed.
SOFTMAX = 500
# How freely widths differ: the squared error of classes says less about them than that of numbers.
FREEDOM = 0.05
# A class below this share is rare: then the share of right rows says little.
RARE = 0.1
# As many classes as this share of the rows look like numbers.
MANY = 0.3


class AutoClassifier(ClassifierMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that chooses its kernel and loss itself, and says why. Its probabilities are calibrated.

    Kernels that suit the columns race on a sample by the closed-form leave-one-out error of least squares on the
    classes; the best is tuned by gradient, with one width per column where the rows allow it. Then logistic regression
    (penalty by approximate leave-one-out log-loss; of more than two classes where rows are few), least squares and a
    support vector machine (C by folds) are compared on it by folds, and the best is fitted to all rows: logistic
    regression unless another is right more often by half a standard error. Where a class is rare it is not replaced.

    Parameters
    ----------
    kernel : None to choose one for the columns (numbers, or a frame of mixed ones); or a kernel or a rule X → kernel,
        whose parameters are tuned.
    time : seconds that choosing may take, about; the last fit is made in any case.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto", "logistic", "hinge" or "squared".
    class_weight : None, "balanced" or numbers > 0 by label.
    random_state : of samples and folds; the same number gives the same model, unless time runs out.

    Attributes
    ----------
    model_ : the fitted `KernelLogisticRegression`, `SVC` or `LeastSquaresClassifier`.
    choices_ : the decisions in their order, with what else was considered; `print` it.
    classes_ : the labels, sorted.
    kernel_, function_, status_, loss_ : of that model, and its loss.

    >>> from sklearn.datasets import load_iris
    >>> from mercer import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9, model.predict_proba(X[:3]).shape
    (True, (3, 3))
    >>> [decision.question for decision in model.choices_]
    ['Target', 'Columns', 'Kernel', 'Loss', 'Solver']
    """

    def __init__(
        self,
        *,
        kernel: Any = None,
        time: float = 60.0,
        budget: Any = None,
        loss: str = "auto",
        class_weight: Any = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.time = time
        self.budget = budget
        self.loss = loss
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit a model of n points X and their labels y, of any kind.

        An interrupt keeps the best model so far, fitted to no more than 750 rows, and is raised again.
        """
        clock, record = self._clock(), Record()
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise InvalidInput(
                f"`loss` must be one of {', '.join(map(repr, LOSSES))}", got=repr(self.loss), advice="'auto' compares."
            )
        points = training_points(X)
        data = Labelled.of(
            points, y, sample_weight, self.class_weight, model="AutoClassifier", regressor="AutoRegressor"
        )
        search = _Search(self, data, clock, record)
        search.look()
        starts = self._starts(search.points, record)
        try:
            search.run(starts)
            made = search.final()
        except KeyboardInterrupt:
            self._keep(X, search.in_haste(), record, search)
            raise
        self._keep(X, made, record, search)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: the most probable one."""
        self._asked(X)
        return np.asarray(self.model_.predict(X))

    def predict_proba(self, X: Any) -> Matrix:
        """P(class | x), shape (m, k)."""
        self._asked(X)
        if self.loss_ != "squared":
            return np.asarray(self.model_.predict_proba(X), dtype=np.float64)
        values = np.asarray(self.model_.regression_.predict(X), dtype=np.float64)
        return np.asarray(softmax(self._steepness * values, axis=1))

    def decision_function(self, X: Any) -> Matrix:
        """log-odds or margins of the model: of two classes shape (m,), positive for the second; else (m, k)."""
        self._asked(X)
        return np.asarray(self.model_.decision_function(X), dtype=np.float64)

    def _keep(self, X: Any, made: tuple[str, Any], record: Record, search: _Search) -> None:
        self.loss_, self.model_ = made
        self.classes_, self._steepness = search.data.classes, search.steepness
        self.choices_: Choices = record.done()
        self.kernel_, self.status_ = self.model_.kernel_, self.model_.status_
        self._shape(X)


class _Search:
    """One search for the kernel and the loss."""

    def __init__(self, model: AutoClassifier, data: Labelled, clock: Clock, record: Record) -> None:
        self.model, self.data, self.clock, self.record = model, data, clock, record
        self.points = searchable(data.points)
        self.rng = np.random.default_rng(model.random_state)
        self.labels = data.classes[data.codes]
        self.counts = np.bincount(data.codes)
        self.rare = float(self.counts.min()) / len(data) < RARE / max(1.0, len(self.counts) / 4)
        self.loss, self.alpha, self.C, self.steepness = "logistic", 0.01, 1.0, 1.0
        if len(self.counts) * len(data) > SOFTMAX and len(self.counts) > 2:
            self.loss = "squared"
        self.best: Entry | None = None

    def better(self, entry: Entry) -> None:
        self.best = entry

    def look(self) -> None:
        k, n = len(self.counts), len(self.data)
        what = f"{n} rows of {k} classes, from {self.counts.min()} to {self.counts.max()} rows each"
        kind = self.data.classes.dtype.kind
        if kind in "iuf" and k > max(10, MANY * n):
            what += ": if they are amounts rather than names, AutoRegressor is the better model"
        if self.rare:
            what += "; some are rare, so that the log-loss decides rather than the share of right rows"
        self.record.add("Target", f"{k} classes", what)

    def run(self, starts: dict[str, Any]) -> None:
        data, k = self.data, len(self.counts)
        if len(data) < 6 or np.sort(self.counts)[-2] < 2:
            self.best = Entry.of(*next(iter(starts.items())), data.points)
            why = f"{len(data)} rows, {len(data) - self.counts.max()} beside the largest class, are too few to compare"
            self.record.add("Kernel", self.best.name, why)
            return
        Y = 2.0 * (data.codes[:, None] == np.arange(k)) - 1.0
        Y = Y[:, 1:] if k == 2 else Y
        roots = None if data.weights is None else np.sqrt(data.weights)
        self.best = race(
            starts, Problem(self.points, Y, roots, FREEDOM), self.clock, self.rng, self.record, self.better
        )
        self.losses()

    def sample(self, most: int) -> NDArray[np.int64]:
        """Some rows, of every class two at least where it has as many."""
        n = len(self.data)
        if n <= 1.25 * most:
            return np.arange(n)
        order = self.rng.permutation(n)
        codes = self.data.codes[order]
        rank = np.empty(n, dtype=np.int64)
        for c in range(len(self.counts)):
            rank[codes == c] = np.arange(self.counts[c])
        return np.sort(order[np.argsort(np.where(rank < FOLDS, -1, np.arange(n)), kind="stable")[:most]])

    def folds(self, codes: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Training and test rows of every fold, with even shares of the classes; those of one row are in one test."""
        order = self.rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        fold = np.empty(len(codes), dtype=np.int64)
        fold[order] = np.arange(len(codes)) % FOLDS
        return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(FOLDS)]

    # -- losses ---------------------------------------------------------------------------------------------------

    def losses(self) -> None:
        """Compare losses by the share of right rows over the same folds."""
        assert self.best is not None
        began, asked = clock_time.perf_counter(), self.model.loss
        if asked == "auto" and self.clock.over(0.6):
            self.loss = "squared"
            self.record.add("Loss", self.loss, "the time was too short to compare: this one has a closed form")
            return
        index = self.sample(ROWS)
        X, codes = take(self.points.raw, index), self.data.codes[index]
        w = None if self.data.weights is None else self.data.weights[index]
        folds = self.folds(codes)
        k, affordable = len(self.counts), len(index) * len(self.counts) <= SOFTMAX
        found: list[tuple[str, float, str]] = []
        if asked == "logistic" or (asked == "auto" and (k == 2 or affordable)):
            found.append(("logistic", *self.logistic(X, codes, w, folds)))
        if asked == "squared" or (asked == "auto" and not (self.rare and found)):
            found.append(("squared", *self.squared(X, codes, w, folds)))
        if asked == "hinge" or (
            asked == "auto" and not self.rare and len(self.data) <= MACHINE and not self.clock.over(0.6)
        ):
            found.append(("hinge", *self.hinge(X, codes, w, folds)))
        found.sort(key=lambda f: -f[1])
        name, share, _ = found[0]
        error = float(np.sqrt(share * (1.0 - share) / len(codes)))
        close = [f for f in found if f[0] == "logistic" and f[1] >= share - 0.5 * error]
        self.loss = close[0][0] if close else name
        why = (
            "as asked" if asked != "auto"
            else "some classes are rare, and it minimises the log-loss" if self.rare
            else "it is right most often" if self.loss == name
            else "none is right more often by half a standard error, and its values are probabilities"
        )  # fmt: skip
        considered = [Candidate(loss, value, detail) for loss, value, detail in found]
        self.record.add("Loss", self.loss, why, f"share of right rows, {FOLDS} folds", considered, began)

    def regression(self, alpha: float, few: int | None = None) -> KernelLogisticRegression:
        assert self.best is not None
        own = self.model
        return KernelLogisticRegression(
            self.best.kernel, alpha=alpha, tol=1e-5, n_centers=few, budget=own.budget, random_state=own.random_state
        )

    def least_squares(self) -> LeastSquaresClassifier:
        assert self.best is not None
        own = self.model
        return LeastSquaresClassifier(
            self.best.kernel, alpha=self.best.alpha, budget=own.budget, random_state=own.random_state
        )

    def logistic(self, X: Any, codes: Any, w: Any, folds: Any) -> tuple[float, str]:
        """The penalty of least log-loss (approximate leave-one-out), from smooth to close as long as that pays."""
        assert self.best is not None
        best = np.inf
        for factor in PENALTIES:
            alpha = max(factor * self.best.alpha, 1e-6)
            with quietly():
                found = self.regression(alpha).fit(X, codes, w).loo_log_loss_
            if found < best:
                best, self.alpha = found, alpha
            if found > best or self.clock.over(0.6):
                break
        share = _over_folds(self.regression(self.alpha), X, codes, w, folds)
        return share, f"log-loss {best:.4g} without each row, alpha={self.alpha:.3g}"

    def squared(self, X: Any, codes: Any, w: Any, folds: Any) -> tuple[float, str]:
        share = _over_folds(self.least_squares(), X, codes, w, folds)
        return share, "in closed form"

    def hinge(self, X: Any, codes: Any, w: Any, folds: Any) -> tuple[float, str]:
        """The C that is right most often."""
        assert self.best is not None
        size = float(np.mean(self.best.kernel.diag(Points(X)))) or 1.0
        right = np.zeros(len(CS))
        machine = SVC(self.best.kernel, max_time=max(self.clock.left / 60, 0.1), tol=1e-2)
        with quietly():
            for train, test in folds:
                path = machine.path(take(X, train), codes[train], np.array(CS) / size, None if w is None else w[train])
                part = np.ones(len(test)) if w is None else w[test]
                Z = take(X, test)
                right += [float(part @ (fitted.predict(Z) == codes[test])) for fitted in path]
        at = int(right.argmax())
        self.C = CS[at] / size
        return float(right[at] / (len(codes) if w is None else w.sum())), f"C={self.C:.3g}"

    # -- fits -----------------------------------------------------------------------------------------------------

    def made(self, X: Any, y: Any, w: Any) -> tuple[str, Any]:
        """The chosen model fitted to some rows."""
        assert self.best is not None
        with quietly():
            if self.loss == "hinge":
                machine = SVC(self.best.kernel, C=self.C, calibrated=True, random_state=self.model.random_state)
                return "hinge", machine.fit(X, y, w)
            if self.loss == "squared":
                few = centres(len(y), 3.0, self.clock)
                more = {} if few is None else {"solver": "nystrom", "n_centers": few}
                fitted = self.least_squares().set_params(**more).fit(X, y, w)
                self.steepness = _steepness(np.asarray(fitted.regression_.loo_predictions_), fitted._data.codes, w)
                return "squared", fitted
            few = centres(len(y), 10.0 * (len(self.counts) if len(self.counts) > 2 else 1), self.clock)
            return "logistic", self.regression(self.alpha, few).fit(X, y, w)

    def final(self) -> tuple[str, Any]:
        began = clock_time.perf_counter()
        made = self.made(self.data.points.raw, self.labels, self.data.weights)
        name = type(made[1]).__name__
        self.record.add("Solver", name, f"fitted to all {len(self.labels)} rows: {made[1].status_}", began=began)
        return made

    def in_haste(self) -> tuple[str, Any]:
        """What can be had at once, after an interrupt."""
        index = self.sample(ROWS)
        w = None if self.data.weights is None else self.data.weights[index]
        if self.best is None:
            self.best = Entry.of("Gaussian", median_gaussian(self.data.points), self.data.points)
        self.loss = "logistic" if len(self.counts) == 2 else "squared"
        loss, model = self.made(take(self.data.points.raw, index), self.labels[index], w)
        model.status_ = f"interrupted: fitted to {len(index)} of {len(self.labels)} rows; {model.status_}"
        self.record.add("Solver", type(model).__name__, model.status_)
        return loss, model


def _over_folds(model: Any, X: Any, codes: Any, w: Any, folds: Any) -> float:
    """The share of rows that are right when their fold is left out."""
    right = np.zeros(len(codes))
    with quietly():
        for train, test in folds:
            fitted = model.fit(take(X, train), codes[train], None if w is None else w[train])
            right[test] = fitted.predict(take(X, test)) == codes[test]
    return float(np.average(right, weights=w))


def _steepness(values: Matrix, codes: Any, w: Any) -> float:
    """The factor of values at which their softmax has the least log-loss, rows being left out."""

    def loss(log: float) -> float:
        each = -log_softmax(np.exp(log) * values, axis=1)[np.arange(len(codes)), codes]
        return float(np.average(each, weights=w))

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 6.0), method="bounded").x))
