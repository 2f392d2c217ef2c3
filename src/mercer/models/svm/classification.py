"""The base class of `SVC` and `NuSVC`: classes, functions between two sides, votes, probabilities and margins.

Two classes make one box problem. More classes make one problem per pair (or one per class against the rest), all on the
same points. Rows are sorted by class, and pairs are solved side by side on one Gram. Expensive kernel values are
computed once for all pairs, for the folds of a calibration and for a path of Cs.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import MethodType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import gram, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram, KernelGram
from mercer.kernels.custom import Precomputed
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix, Rows, keeping, outside, shown, training_points, weights
from mercer.models.callbacks import with_callbacks
from mercer.models.convergence import NotConverged
from mercer.models.labels import class_weights, decided, labels
from mercer.models.progress import watched
from mercer.models.svm import costs
from mercer.models.svm.margins import MarginReport, Sides, functions
from mercer.models.svm.probabilities import Sigmoid, couple
from mercer.models.svm.solving import Solver, Store
from mercer.models.svm.split import Index, Part, pair_values, per_pair, rows_of, split, votes, without
from mercer.models.svm.support import SupportVectorMachine
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.tuning.folds import fold_numbers, make_folds
from mercer.validation import check_choice

FOLDS = 5
"""The number of folds of a calibration, unless a class has fewer rows."""


class _IfCalibrated:
    """A method that a model has only with calibrated=True; without it, the AttributeError says so.

    scikit-learn's `available_if` does the same, but its error does not name the reason.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Callable[..., Any]:
        if model is None:
            return self.method
        if not model.calibrated:
            name = type(model).__name__
            raise AttributeError(
                f"`{self.method.__name__}` needs calibrated=True, got {name}(calibrated=False). Fit "
                f"{name}(calibrated=True), or use `decision_function`, which needs no calibration."
            )
        return MethodType(self.method, model)


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn has no types
    """The base class of `SVC` and `NuSVC`: a subclass solves the problem of each part."""

    kernel: Any
    multiclass: str
    class_weight: Any
    calibrated: bool
    random_state: int
    _function: Expansion | None

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _solve(
        self,
        solver: Solver,
        K: Gram,
        parts: Sequence[Part],
        w: Matrix,
        starts: Sequence[Matrix] | None = None,
        values: Sequence[Store] | None = None,
    ) -> tuple[list[BoxProblem], list[smo.Optimum]]:
        """The problem of each part and its optimum, for rows with weights w, from `starts`, with stores of `values`."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and their labels y, of any kind.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (In the folds of a calibration the copies of a row may be on both sides, a weighted row may not.)
        """
        solver = self._start()
        rows, w, K = self._data(solver, X, y, sample_weight)
        with watched(self, self._problems(rows), X, y, sample_weight):
            self._fit(solver, rows, w, K)
        return self

    def _start(self) -> Solver:
        self._check()
        advice = "Pass 'ovo' (each pair of classes), which is faster, or 'ovr' (each class against the rest)."
        check_choice(self.multiclass, "multiclass", ("ovo", "ovr"), advice=advice)
        for name in ("_sigmoids", "_ends"):  # left by an earlier fit
            self.__dict__.pop(name, None)
        return super()._start()

    def _data(self, solver: Solver, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Matrix, KernelGram]:
        """The rows to fit on, with class numbers as y; their weights times the class weights; and their Gram.

        Rows are sorted by class if there are more than two classes.
        """
        points = training_points(X)
        all_labels = labels(y, points.n)
        rows = Rows.of(points, np.zeros(points.n), sample_weight)
        self.classes_, codes = np.unique(all_labels[rows.kept], return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(
                f"{type(self).__name__} needs at least two classes",
                got=f"{k} class, {shown(self.classes_[0])}" + (" with weight > 0" if len(rows) < points.n else ""),
                advice="Pass rows of two classes, or use OneClassSVM, which describes a single class.",
            )
        if self.calibrated and int(np.bincount(codes).min()) < 2:
            raise InvalidInput(
                "calibrated=True needs at least two rows of each class",
                got=f"one of class {shown(self.classes_[np.bincount(codes).argmin()])}",
                advice="Leave that class out, or set calibrated=False.",
            )
        self._resolve(X, rows.points)
        rows = replace(rows, y=codes[:, None].astype(np.float64))
        if k > 2:
            order = np.argsort(codes.astype(np.min_scalar_type(k)), kind="stable")  # short integers sort by radix
            roots = None if rows.roots is None else rows.roots[order]
            rows = replace(rows, points=rows.points.take(order), y=rows.y[order], roots=roots, kept=rows.kept[order])
        codes, counts = class_numbers(rows), rows.weights
        w = counts * class_weights(self.class_weight, self.classes_, codes, counts)[codes]
        K = self._gram(solver, rows.points)
        self._warn_if_indefinite(K, solver)
        return rows, w, K

    def _gram(self, solver: Solver, points: Points) -> KernelGram:
        """K of all points: expensive values that are needed several times are computed once, if they fit into memory.

        If half of the time is not enough for them, the solver computes the values it needs.
        """
        kernel, n = self.kernel_, points.n
        looked_up = all(isinstance(leaf, Precomputed) for leaf in kernel.leaves)
        passes = (FOLDS if self.calibrated else 1) * (1 if len(self.classes_) == 2 else 2)
        columns = getattr(points.raw, "shape", (0, 0))[-1]
        expensive = not looked_up
        if kernel.space == "vectors":
            expensive = passes > 1 and columns * passes >= costs.STORED_COLUMNS
        if expensive and 3 * 8 * n * n <= memory_budget():
            try:
                with threads.time_limit(partial(solver.late, 0.5)):
                    return gram.of(Precomputed(kernel(points)), np.arange(n))
            except threads.OutOfTime:
                solver.hurried = True
                return gram.TiledGram(kernel, kernel.pair(points), memory_budget())
        return gram.of(kernel, points)

    def _parts(self, codes: Index) -> list[Part]:
        return split(codes, [str(label) for label in self.classes_], self.multiclass)

    def _pairs(self) -> bool:
        """Whether there is a function for each pair of more than two classes."""
        return len(self.classes_) > 2 and self.multiclass == "ovo"

    def _problems(self, rows: Rows) -> int | None:
        """The number of box problems of a fit, or None if it is not known in advance."""
        k = len(self.classes_)
        parts = 1 if k == 2 else k * (k - 1) // 2 if self._pairs() else k
        return parts * (1 + _folds(class_numbers(rows)) * self.calibrated)

    def _fit(
        self,
        solver: Solver,
        rows: Rows,
        w: Matrix,
        K: KernelGram,
        starts: Sequence[Matrix] | None = None,
        values: Sequence[Store] | None = None,
    ) -> tuple[list[BoxProblem], list[smo.Optimum]]:
        """split(codes) → problems → optima → functions, and probabilities on top; an interrupt is raised at the end.

        `starts` holds coefficients to begin with, `values` stores of kernel values, one for every problem.
        """
        parts = self._parts(class_numbers(rows))
        problems, optima = self._solve(solver, K, parts, w, starts, values)
        largest = float(np.abs(self.kernel_.diag(rows.points)).max())
        spread = largest if self.kernel_.tags.nonnegative else 2 * largest  # |k(x, x')| ≤ the largest k(x, x)
        sides, scales, duality = functions(parts, problems, optima, spread)
        self._remember(rows, sides, scales)
        self._report(solver, optima, duality)
        if solver.interrupt is not None:
            raise keeping(self, solver.interrupt)
        if self.calibrated:
            try:
                self._calibrate_by_folds(solver, rows, w, K, parts, optima)
            except KeyboardInterrupt as stop:
                self.status_, self.end_ = "interrupted", End.INTERRUPTED.value
                raise keeping(self, stop) from None
        return problems, optima

    def _remember(self, rows: Rows, sides: Sides, scales: Matrix) -> None:
        """Keep the support vectors, their coefficients, and the functions for the margin report."""
        k, codes = len(self.classes_), class_numbers(rows)
        coef = sides.coefficients(codes, k, by_rows=self._pairs())
        if self._pairs():
            used = self._keep_points(rows, coef)
            self.dual_coef_, self.intercept_ = coef[used], sides.intercept
            self._codes = codes[used].astype(np.min_scalar_type(k))
            self._function = None
            if k > costs.CLASSES_TOGETHER and not self.kernel_.pairwise:
                self._ends = np.searchsorted(self._codes, np.arange(k + 1))
            else:
                self._function = self._of_pairs()
        else:
            used = self._keep(rows, coef, sides.intercept, single=k == 2)
        self.n_support_ = np.bincount(codes[used], minlength=k)
        at = np.full(len(codes), -1)
        at[used] = np.arange(len(used))
        self._sides = replace(sides, support=at[sides.support])

    @property
    def bounded_(self) -> NDArray[np.bool_]:  # type: ignore[override]
        """For each support vector, whether its coefficient is at its bound in any function."""
        check_is_fitted(self)
        bounded = np.zeros(len(self.support_), dtype=np.bool_)
        bounded[self._sides.support[self._sides.at_bound]] = True
        return bounded

    # -- probabilities ------------------------------------------------------------------------------------------------

    def _calibrate_by_folds(
        self,
        solver: Solver,
        rows: Rows,
        w: Matrix,
        K: KernelGram,
        parts: Sequence[Part],
        optima: Sequence[smo.Optimum],
    ) -> None:
        """Fit a sigmoid for each function, to values of functions that were fitted without the point's fold.

        Class weights move the functions and not the sigmoids: they say what an error costs, not how often a class
        occurs, so that the mean probability of a class stays near its share of the rows. If the fit was stopped, there
        are no sigmoids, and the status says so.
        """
        if not solver.go_on or any(o.end is End.TIME for o in optima):
            self._uncalibrated(smo.LATE if solver.go_on else smo.CALLER)
            return
        codes, counts, n = class_numbers(rows), rows.weights, len(rows)
        folds = make_folds(n, _folds(codes), y=codes, stratify=True, random_state=self.random_state)
        fold_of, place = fold_numbers(folds, n), np.empty(n, np.int64)
        for fold in folds:
            place[fold.test] = np.arange(len(fold.test))
        rest = [without(part, fold_of == number) for number in range(len(folds)) for part in parts]
        problems, optima = self._solve(solver, K, rest, w)
        if solver.interrupt is not None:
            raise solver.interrupt
        if any(o.end is End.CALLER for o in optima):
            self._uncalibrated(smo.CALLER)
            return
        self._warn_of_folds([o for o in optima if o.end is not End.NO_MARGIN])
        held_out = [np.empty(len(signs)) for _, signs, _ in parts]
        for number, fold in enumerate(folds):
            of_fold = slice(number * len(parts), (number + 1) * len(parts))
            sides, _, _ = functions(rest[of_fold], problems[of_fold], optima[of_fold])
            values = self._values_of(sides, K, codes, fold.test)
            for p, part in enumerate(parts):
                here = fold_of[rows_of(part)] == number
                held_out[p][here] = values[place[rows_of(part)[here]], p]
        self._sigmoids = [Sigmoid.fit(values, part[1], counts[rows_of(part)]) for part, values in zip(parts, held_out)]

    def _values_of(self, sides: Sides, K: KernelGram, codes: Index, at: Index) -> Matrix:
        """All functions at some points of their Gram, shape (m, functions)."""
        k = len(self.classes_)
        coef = sides.coefficients(codes, k, by_rows=self._pairs())
        used = np.flatnonzero(coef.any(axis=1))
        used = used if len(used) else np.array([0])
        support, points = K.x.take(used), K.x.take(at)
        if self._pairs():
            ends = np.searchsorted(codes[used], np.arange(k + 1))
            return pair_values(K.kernel, support, ends, coef[used], sides.intercept, points)
        return np.asarray(Expansion(K.kernel, support, coef[used])(points).astype(np.float64) + sides.intercept)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit probabilities to held-out rows, instead of folds; `calibrated` is then True.

        With more than two classes all pairs share one sigmoid, the same for both sides: held-out rows are too few for
        one sigmoid per pair, and all margins are ±1. That holds as long as class weights have not moved them apart.

        >>> import numpy as np, mercer as mc
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> model = mc.SVC(mc.Gaussian(1.0)).fit(X[::2], ["low", "low", "high"])
        >>> model.calibrate(X[1::2], ["low", "high", "high"]).predict_proba([[5.0]]).round(2)
        array([[0.8, 0.2]])
        """
        points = self._queries(X)
        held_out, w = labels(y, points.n), weights(sample_weight, points.n)
        unknown = held_out[~np.isin(held_out, self.classes_)]
        if len(unknown):
            raise InvalidInput(
                "`calibrate` needs labels of the classes that the model was fitted to",
                got=shown(unknown[0]),
                advice="Leave these rows out.",
            )
        codes, counts = np.searchsorted(self.classes_, held_out), np.ones(points.n) if w is None else w
        k, values = len(self.classes_), self._values(points)
        if k == 2 or self.multiclass == "ovr":
            sides = range(k)[-values.shape[1] :]
            self._sigmoids = [Sigmoid.fit(f, np.where(codes == c, 1.0, -1.0), counts) for f, c in zip(values.T, sides)]
        else:
            one, other = np.triu_indices(k, 1)
            side = np.where(codes[:, None] == other, 1.0, np.where(codes[:, None] == one, -1.0, 0.0))
            row, pair = side.nonzero()
            f, signs, half = values[row, pair], side[row, pair], counts[row] / 2
            shared = Sigmoid.fit(np.append(f, -f), np.append(signs, -signs), np.append(half, half))
            self._sigmoids = [shared] * len(one)
        self.calibrated = True
        return self

    def _uncalibrated(self, why: str) -> None:
        self.status_ = f"{why}, and therefore not calibrated"
        if self.gap_ <= self.tol:  # otherwise there has been a warning
            warnings.warn(f"{self.status_}.", ConvergenceWarning, stacklevel=outside())

    def _warn_of_folds(self, optima: Sequence[smo.Optimum]) -> None:
        """Warn once for all folds, unless there has been a warning about the whole fit."""
        late = [o for o in optima if not o.converged]
        if late and self.gap_ <= self.tol:
            status = (
                f"Probabilities are less accurate: {len(late)} of {len(optima)} problems of the calibration's folds "
                f"ended before gap ≤ tol = {self.tol:g}, the first because it was {late[0].status}"
            )
            warnings.warn(NotConverged(status, "Raise `max_iter` or `max_time`."), stacklevel=outside())

    @property
    def calibrated_(self) -> bool:
        """Whether there are probabilities; there are none after an interrupted or stopped calibration."""
        return hasattr(self, "_sigmoids")

    @_IfCalibrated
    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes for m points, shape (m, classes). Needs calibrated=True.

        They assume that the classes are as common as in `fit`, with its sample weights; class weights do not change
        them.
        """
        check_is_fitted(self)
        if not self.calibrated_:
            raise InvalidInput(
                "Probabilities need a calibration that was not interrupted or stopped",
                got=f"status_ = {self.status_!r}",
                advice="Fit again, with a larger `max_time` if the time limit stopped it.",
            )
        values = self._values(self._queries(X))
        sides = np.column_stack([sigmoid(v) for sigmoid, v in zip(self._sigmoids, values.T)])
        k = len(self.classes_)
        if k == 2:
            return np.column_stack([1 - sides[:, 0], sides[:, 0]])
        if self.multiclass == "ovo":
            return couple(sides, k)
        sides = np.maximum(sides, np.finfo(float).tiny)
        return sides / sides.sum(axis=1, keepdims=True)

    # -- predict ------------------------------------------------------------------------------------------------------

    @property
    def function_(self) -> Expansion:
        """f = Σ βᵢ k(xᵢ, ·) + b over the support vectors, one per pair of classes."""
        check_is_fitted(self)
        if self._function is None:  # the attribute exists since `fit`: other threads may be iterating over all of them
            self._function = self._of_pairs()
        return self._function

    @function_.setter
    def function_(self, f: Expansion) -> None:
        self._function = f

    def _of_pairs(self) -> Expansion:
        coef = per_pair(self.dual_coef_, self._codes, len(self.classes_))
        return Expansion(self.kernel_, self._support, coef, Tail.constant(self.intercept_))

    def _values(self, points: Points) -> Matrix:
        """f of every part, shape (m, parts)."""
        if not hasattr(self, "_ends"):
            return self.function_(points).reshape(points.n, -1).astype(np.float64, copy=False)
        return pair_values(self.kernel_, self._support, self._ends, self.dual_coef_, self.intercept_, points)

    def decision_function(self, X: Any) -> Matrix:
        """Decision values: the sign is the side of the boundary, the size how far from the boundary a point is.

        For two classes f(x), shape (m,), positive for the second class. For more, shape (m, classes), largest for the
        predicted class. One-vs-one, these are the votes of the pairs plus a number below ½ from their values, which
        decides between equal votes.
        """
        values = self._values(self._queries(X))
        k = len(self.classes_)
        if k == 2:
            return values[:, 0]
        if self.multiclass == "ovr":
            return values
        return votes(values, k)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: the most probable one, if the model is calibrated.

        With class weights it follows `decision_function`, which they change; they do not change the probabilities.
        """
        check_is_fitted(self)
        if self.calibrated and self.class_weight is None and self.calibrated_:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return decided(self.decision_function(X), self.classes_)

    def margin_report(self) -> MarginReport:
        """Margin, free and bounded support vectors, and bounds on the leave-one-out error, of each function."""
        check_is_fitted(self)
        optimal = self.end_ == End.CONVERGED.value
        Cs = getattr(self, "C_", [None] * len(self._sides))
        margins = tuple(self._sides.margin(i, self._among, C) for i, C in enumerate(Cs))
        return MarginReport(margins, "" if optimal else self.status_)

    def _among(self, some: Index) -> Matrix:
        """The kernel matrix of some support vectors."""
        if self.kernel_.pairwise:
            return self.kernel_(self._support, dtype=np.float64)[np.ix_(some, some)]
        return self.kernel_(self._support.take(some), dtype=np.float64)


def class_numbers(rows: Rows) -> Index:
    """The class numbers of rows."""
    return rows.y[:, 0].astype(np.int64)


def _folds(codes: Index) -> int:
    """The number of folds of a calibration."""
    return max(2, min(FOLDS, int(np.bincount(codes).min())))
