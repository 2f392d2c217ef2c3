"""From a table to a classifier: kernel and loss are chosen, and every choice is explained."""

from __future__ import annotations

import time as clock_time
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from mercer.data.points import take
from mercer.errors import InvalidInput
from mercer.models.auto.model import AutoModel
from mercer.models.auto.plan import Trial
from mercer.models.auto.record import Candidate
from mercer.models.auto.search import Cost, Search, quietly
from mercer.models.base import Matrix, shown, training_points
from mercer.models.labels import Labelled, class_weights
from mercer.models.least_squares.classifier import LeastSquaresClassifier
from mercer.models.likelihood.logistic import KernelLogisticRegression
from mercer.models.svm.probabilities import Softmax
from mercer.models.svm.svc import SVC
from mercer.models.tune_margin import tune_margin

LOSSES = ("auto", "logistic", "hinge", "squared")
# The penalty of the logistic loss, in units of that of least squares; Cs of the hinge loss.
PENALTY = 0.12
CS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# The softmax of more than two classes is tried up to so many rows times classes: its Newton steps cost that cubed.
SOFTMAX = 500
# As many classes as this share of the rows look like numbers.
MANY = 0.3
# Up to so many rows probabilities are set by leaving each out of the last fit; beyond, by so many rows at most that
# are not fitted.
LEFT_OUT, KEPT = 2500, 2000
# Pairs that a support vector machine may move for each row while C is chosen, and the fewest classes of which the
# problems between two are small.
PAIRS, MULTIPLE = 1000, 5


class AutoClassifier(ClassifierMixin, AutoModel):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that chooses its kernel and loss itself, and says why. Its probabilities are calibrated.

    Kernels that suit the columns race on a sample by the closed-form leave-one-out error of least squares on the
    classes; the best is tuned by gradient, with one width per column where the rows allow it. Then least squares, with
    the softmax of its values, and logistic regression (of more than two classes where rows are few) are compared by
    their calibrated log-loss without each row, in closed form and approximately, and the better one is fitted. Where
    there are too many for an exact fit in the time, least squares on centres competes with a support vector machine.

    Parameters
    ----------
    kernel : None to choose one for the columns (numbers, or a frame of mixed ones); or a kernel or a rule X → kernel,
        whose parameters are tuned.
    time : seconds for the search and the last fit, on one core of a common machine: what is tried, and on how many
        rows, is planned for them by counting operations, so that the same data gets the same model on any day. Where
        they are over before the plan is done, the rest is left out; `stopped_by_` and `status_` say so.
    budget : memory for a fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    loss : "auto" for the better of "squared" and "logistic"; or one of them, or "hinge", a support vector machine.
    class_weight : None, "balanced" or numbers > 0 by label.
    random_state : of samples and folds; the same number gives the same model, unless `stopped_by_` is not None.
    progress : called with a `Trial` (name, score, best, seconds, share of the time) after each kernel and loss that was
        tried; its `str` is a line to show. Where it returns False the search ends, and the best so far is fitted.

    Attributes
    ----------
    model_ : the fitted `KernelLogisticRegression`, `SVC` or `LeastSquaresClassifier`.
    choices_ : the decisions in their order, with what else was considered; `print` it.
    classes_ : the labels, sorted.
    kernel_, function_, status_, loss_ : of that model, and its loss.
    stopped_by_ : None where the plan was carried out; else "time", "progress" or "interrupt".

    >>> from sklearn.datasets import load_iris
    >>> from mercer import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9, model.predict_proba(X[:3]).shape
    (True, (3, 3))
    >>> [decision.question for decision in model.choices_]
    ['Target', 'Columns', 'Kernel', 'Loss', 'Solver']
    """

    _added: ClassVar[dict[str, Any]] = {"stopped_by_": None, "_offsets": 0.0}

    def __init__(
        self,
        *,
        kernel: Any = None,
        time: float = 60.0,
        budget: Any = None,
        loss: str = "auto",
        class_weight: Any = None,
        random_state: int = 0,
        progress: Callable[[Trial], Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.time = time
        self.budget = budget
        self.loss = loss
        self.class_weight = class_weight
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit a model of n points X and their labels y, of any kind.

        An interrupt keeps the best model so far, fitted to some rows, and is raised again.
        """
        self._one_of(LOSSES)
        data = Labelled.of(
            training_points(X), y, sample_weight, self.class_weight, model="AutoClassifier", regressor="AutoRegressor"
        )
        alone = data.classes[np.bincount(data.codes) == 1]
        if self.loss == "hinge" and len(alone):
            raise InvalidInput("`loss='hinge'` needs at least two rows of each class, to calibrate its probabilities",
                               got=f"one of {shown(alone[0])}",
                               advice="Leave that class out, or take another loss.")  # fmt: skip
        return self._found(X, _Search(self, data))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: the most probable one, or with class weights, which do not move
        probabilities, the one that they make the costliest to miss."""
        self._asked(X)
        return np.asarray(self.model_.predict(X))

    def predict_proba(self, X: Any) -> Matrix:
        """P(class | x), shape (m, k), calibrated on rows left out: never certain, even where all were right."""
        self._asked(X)
        if self.loss_ == "squared":
            return Softmax(self._steepness, self._offsets)(self.model_.regression_.predict(X))
        if self.loss_ == "logistic":
            return Softmax(self._steepness, self._offsets)(self.model_.predict_log_proba(X))
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def decision_function(self, X: Any) -> Matrix:
        """log-odds or margins of the model: of two classes shape (m,), positive for the second; else (m, k)."""
        self._asked(X)
        return np.asarray(self.model_.decision_function(X), dtype=np.float64)

    def _keep(self, X: Any, search: Any, made: Any) -> None:
        self.classes_ = search.data.classes
        self._steepness, self._offsets = search.softmax.scale, search.softmax.offsets
        super()._keep(X, search, made)


class _Search(Search):
    """One search for the kernel and the loss of classes."""

    # Widths differ less freely, and more rows gain less: the squared error of classes says less than that of numbers.
    freedom, enough = 0.05, 500

    def __init__(self, model: AutoClassifier, data: Labelled) -> None:
        super().__init__(model, data.points, data.classes[data.codes], data.weights)
        self.data, self.counts = data, np.bincount(data.codes)
        k, counts = len(self.counts), np.ones(len(data)) if data.counts is None else data.counts
        self.C, self.fewest = 1.0, 2 * k
        self.factors = class_weights(model.class_weight, data.classes, data.codes, counts)
        # The probabilities of a weighted model are those of data where a class is so many times as common.
        self.softmax = Softmax(1.0, -np.log(self.factors))
        self.rival: Any = None
        self.loss = "squared" if model.loss == "auto" else model.loss

    def look(self) -> None:
        k, n, counts = len(self.counts), len(self.data), self.counts
        what = f"{n:,} rows; the rarest class has {counts.min():,}, the commonest {counts.max():,}"
        if self.data.classes.dtype.kind in "iuf" and k > max(10, MANY * n):
            what += ". If these are amounts rather than names, AutoRegressor is the better model"
        elif counts.max() > 9 * counts.min():
            what += ". Whoever always says the commonest is right in "
            what += f"{counts.max() / n:.1%}: look at probabilities, or weigh by class_weight='balanced'"
        self.record.add("Target", f"{k} classes", what)

    def too_few(self) -> str:
        n, others = len(self.data), len(self.data) - int(self.counts.max())
        if n >= 6 and np.sort(self.counts)[-2] >= 2:
            return ""
        return f"{n} rows, {others} of them not of the commonest class, are too few to compare kernels"

    def targets(self) -> Matrix:
        k = len(self.counts)
        Y = 2.0 * (self.data.codes[:, None] == np.arange(k)) - 1.0
        return Y[:, 1:] if k == 2 else Y

    def order(self) -> NDArray[np.int64]:
        """By chance, but two rows of every class first: a sample lacks none."""
        order = super().order()
        by_class = np.argsort(self.data.codes[order], kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return np.concatenate([order[rank < 2], order[rank >= 2]])

    # -- losses ---------------------------------------------------------------------------------------------------

    def losses(self) -> None:
        """Compare losses by their log-loss without each row."""
        began, asked, k = clock_time.perf_counter(), self.model.loss, len(self.counts)
        index = self.sample()
        X, codes = take(self.plain.raw, index), self.data.codes[index]
        w = None if self.weights is None else self.weights[index]
        if asked == "hinge":
            self.machine(X, codes, w)
            self.record.add("Loss", asked, f"as asked; C={self.C:.3g} is right most often in folds", began=began)
            return
        found, softmax = dict[str, tuple[Matrix, Candidate]](), dict[str, Softmax]()

        def tried(loss: str) -> None:
            self.loss = loss
            with quietly():
                fitted = self.unfitted()[0].fit(X, codes, w)
            values = _left_out(fitted)
            softmax[loss] = self.calibrated(values, index)
            found[loss] = self.compared(softmax[loss](values), index, f"alpha={fitted.alpha:.3g}")

        if asked != "logistic":
            tried("squared")
        small = k == 2 or len(index) * k <= SOFTMAX
        cost = self.steps(k)
        affordable = self.plan.affords_loss(len(index), cost) and self.affords(cost)
        if asked == "logistic" or (asked == "auto" and small and affordable and not self.clock.stops()):
            tried("logistic")
        self.loss, why = next(iter(found)), "as asked"
        if asked == "auto":
            why = "its closed form suits this many rows and classes"
        if len(found) == 2:
            gain = found["squared"][0] - found["logistic"][0]
            sure = float(np.average(gain, weights=self.often(index))) > float(gain.std()) / np.sqrt(len(gain))
            self.loss = "logistic" if sure else "squared"
            why = f"the log-loss of the other is {'more' if sure else 'not less'} by a standard error"
        self.softmax = softmax[self.loss]
        considered = sorted((candidate for _, candidate in found.values()), key=lambda c: c.value)
        self.record.add("Loss", self.loss, why, "log-loss when each row is left out", considered, began)

    def often(self, rows: NDArray[np.int64]) -> Matrix | None:
        """The sample weights of these rows, without those of their classes."""
        return None if self.data.counts is None else self.data.counts[rows]

    def calibrated(self, values: Matrix, rows: NDArray[np.int64]) -> Softmax:
        """Probabilities from values of these rows, by a model that was fitted without each of them."""
        return Softmax.fit(values, self.data.codes[rows], self.often(rows), shifted=self.model.class_weight is not None)

    def compared(self, P: Matrix, rows: NDArray[np.int64], how: str) -> tuple[Matrix, Candidate]:
        """−log P of each row's class, and their mean beside the share of right rows."""
        codes, w = self.data.codes[rows], self.often(rows)
        each = -np.log(np.maximum(P[np.arange(len(codes)), codes], 1e-300))
        right = float(np.average(P.argmax(axis=1) == codes, weights=w))
        self.clock.report(f"{self.loss} loss", right, "leave-one-out accuracy")
        return each, Candidate(self.loss, float(np.average(each, weights=w)), f"{right:.1%} right, {how}")

    @staticmethod
    def steps(k: int) -> float:
        """Newton's, of logistic regression in k classes, as evaluations in the race."""
        return 4.0 if k == 2 else 4.0 * k**3

    def machine(self, X: Any, codes: Any, w: Any) -> None:
        """The C that is right most often."""
        assert self.best is not None
        size = float(np.mean(self.best.kernel.diag(X))) or 1.0
        machine = SVC(self.best.kernel, max_iter=PAIRS * len(codes), tol=1e-2)
        with quietly():
            self.C = tune_margin(machine, X, codes, cv=3, grid={"C": np.array(CS) / size}, sample_weight=w).C

    # -- fits -----------------------------------------------------------------------------------------------------

    def unfitted(self) -> tuple[Any, Cost]:
        assert self.best is not None
        kernel, alpha, own = self.best.kernel, self.best.alpha, self.model
        shared = {"budget": own.budget, "random_state": own.random_state}
        if self.loss == "hinge":
            weights = None if own.class_weight is None else dict(zip(self.data.classes.tolist(), self.factors.tolist()))
            machine = SVC(kernel, C=self.C, class_weight=weights, calibrated=True, random_state=own.random_state)
            return machine, Cost(1.0, 1.0)
        if self.loss == "squared":
            return LeastSquaresClassifier(kernel, alpha=alpha, **shared), Cost(0.1, 1.0)
        alpha = max(PENALTY * alpha, 1e-6)
        steps = self.steps(len(self.counts))
        return KernelLogisticRegression(kernel, alpha=alpha, tol=1e-5, **shared), Cost(steps, 2.0 * steps)

    def fit(self, index: NDArray[np.int64] | None, more: dict[str, Any]) -> Any:
        if self.loss != "hinge":
            return super().fit(index, more)
        # A machine is given the weights of classes by themselves: its probabilities must not see them.
        both, self.weights = self.weights, self.data.counts
        try:
            return super().fit(index, more)
        finally:
            self.weights = both

    def kept(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        many = self.loss == "squared" and len(self.y) > max(LEFT_OUT, 2 * self.fewest)
        return index[-KEPT:] if many else index[:0]

    def after(self, kept: NDArray[np.int64]) -> None:
        if self.loss == "hinge" or self.too_few():
            return
        if not len(kept):
            if self.rows is None:  # of a fit to some rows the comparison of losses has calibrated
                self.softmax = self.calibrated(_left_out(self.fitted), np.arange(len(self.data)))
            return
        X = take(self.points.raw, kept)
        values = np.asarray(self.fitted.regression_.predict(X))
        self.softmax = self.calibrated(values, kept)
        if self.rival is not None:
            self.compare(X, kept, values)

    def before(self, rows: NDArray[np.int64]) -> None:
        """A support vector machine needs no centres, and of many classes its pairs are small: then it is quick."""
        pairs = float(((self.counts[:, None] + self.counts) ** 2)[np.triu_indices(len(self.counts), 1)].sum())
        quick = self.plan.affords_machine(pairs)
        alike = self.model.loss == "auto" and self.model.class_weight is None  # it must be right, not weigh errors
        if not alike or not len(self.kept(rows)) or not quick or len(self.counts) < MULTIPLE or self.clock.stops():
            return
        assert self.best is not None
        self.clock.report(f"support vector machine, of {len(rows):,} rows")
        limit = max(self.clock.left, 0.1)
        machine = SVC(self.best.kernel, C=1.0 / self.best.alpha, max_time=limit, random_state=self.model.random_state)
        w = None if self.weights is None else self.weights[rows]
        with quietly():
            machine.fit(take(self.points.raw, rows), self.y[rows], w)
        self.rival = None if self.clock.stops() else machine  # one that was stopped is no rival

    def compare(self, X: Any, rows: NDArray[np.int64], values: Matrix) -> None:
        """Take the support vector machine where it has the lesser log-loss on the rows that were kept.

        Both are calibrated on one half of them and judged on the other, and the other way round.
        """
        codes, w, side = self.data.codes[rows], self.often(rows), np.arange(len(rows)) % 2 == 0
        P = np.empty((2, *values.shape))
        for some, others in ((side, ~side), (~side, side)):
            at = take(X, np.flatnonzero(others))
            P[0][others] = self.calibrated(values[some], rows[some])(values[others])
            self.rival._calibrate_on(take(X, np.flatnonzero(some)), self.y[rows][some], self.often(rows[some]))
            P[1][others] = self.rival.predict_proba(at)
        lost = -np.log(np.maximum(P[:, np.arange(len(codes)), codes], 1e-300))
        gain = lost[0] - lost[1]
        if float(np.average(gain, weights=w)) > float(gain.std()) / np.sqrt(len(gain)):
            self.rival._calibrate_on(X, self.y[rows], w)
            self.loss, self.fitted = "hinge", self.rival
        right = [f"{float(np.average(p.argmax(axis=1) == codes, weights=w)):.1%} right" for p in P]
        means = [float(np.average(each, weights=w)) for each in lost]
        names = ("squared, on centres", "hinge, on all rows")
        self.record.add(
            "Loss of many rows", self.loss, f"an exact fit by squares does not fit into {self.clock.seconds:g} s",
            f"log-loss of {len(codes):,} rows that were not fitted",
            [Candidate(*each) for each in zip(names, means, right)],
        )  # fmt: skip


def _left_out(fitted: Any) -> Matrix:
    """One value per class at each row, by the model fitted without it: of logistic regression log P."""
    if isinstance(fitted, KernelLogisticRegression):
        return np.asarray(np.log(np.maximum(fitted.loo_proba_, 1e-300)))
    return np.asarray(fitted.regression_.loo_predictions_)
