"""What classifiers by margins share: classes, parts of two sides each, votes, probabilities and margins.

Two classes are one box problem. More of them are one problem per pair (or one per class against the rest), all on the
same points: rows are sorted by class, pairs are solved side by side on one Gram, and where kernel values are dear they
are computed once for all of them, for the folds of a calibration and for a path of Cs.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import tiling
from mercer.kernels.custom import Precomputed
from mercer.memory import budget as memory_budget
from mercer.models.base import (
    Matrix,
    _columns,
    keeping,
    outside,
    resolve_kernel,
    shortened,
    shown,
    training_points,
    weights,
)
from mercer.models.callbacks import with_callbacks
from mercer.models.labels import class_weights, labels
from mercer.models.progress import watched
from mercer.models.svm.margins import MarginReport, Sides
from mercer.models.svm.parts import (
    Data,
    Fitted,
    Index,
    Part,
    Room,
    Solved,
    Unfinished,
    by_rows,
    divide,
    pair_values,
    per_pair,
    rooms,
    votes,
)
from mercer.models.svm.probabilities import Sigmoid, couple, held_out
from mercer.models.svm.support import (
    Interrupted,
    SupportVectorMachine,
    flatten,
    limits,
)
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.smo import CALLER, LATE
from mercer.tuning.folds import fold_numbers, make_folds

FOLDS = 5
"""Of the calibration."""
FEW = 12
"""Up to so many classes all pairs' functions are summed over all support vectors; of more, each over those it has."""
DEAR = 300
"""Columns × passes from which the whole matrix of vectors is computed once and kept, where it fits."""


def _calibrated(model: Any) -> bool:
    if not model.calibrated:
        raise AttributeError("Probabilities need calibrated=True; decision_function has values without it.")
    return True


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn has no types
    """What `SVC` and `NuSVC` share: classes, parts, votes, probabilities and margins."""

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
        self, within: Sequence[Room], parts: Sequence[Part], starts: Sequence[Matrix] | None = None
    ) -> list[Solved]:
        """The optimum of every part in its room; an interrupt raises `Unfinished` with an iterate of each."""

    @abstractmethod
    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        """The function that an optimum stands for."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and their labels y, of any kind.

        A sample weight counts its row as often: weight 2 is the row given twice, weight 0 the row left out. (Not in the
        folds of a calibration: rows given twice may be on both sides.)
        """
        self._begin()
        data = self._data(X, y, sample_weight)
        with watched(self, self._problems(data), X, y, sample_weight):
            self._fit(data)
        return self

    def _problems(self, data: Data) -> int | None:
        """How many box problems a fit has, where that is known before."""
        return len(data.parts) * (1 + self._folds(data) * self.calibrated)

    def _begin(self) -> None:
        self._check()
        limits(self)
        if self.multiclass not in ("ovo", "ovr"):
            raise InvalidInput(
                "`multiclass` must be 'ovo' (each pair of classes) or 'ovr' (each class against the rest)",
                got=shortened(self.multiclass),
                advice="Use 'ovo', which is faster.",
            )
        for name in ("_sigmoids", "_ends"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._go_on = True
        self._start_clock()

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Check what was given: rows of weight > 0, sorted by class where there are several, and their parts."""
        points = training_points(X)
        given = labels(y, points.n)
        w = weights(sample_weight, points.n)
        kept = np.arange(points.n) if w is None or w.all() else np.flatnonzero(w)
        w = np.ones(len(kept)) if w is None else w[kept]
        self.classes_, codes = np.unique(given[kept], return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(
                f"{type(self).__name__} needs at least two classes",
                got=f"{k} class, {shown(self.classes_[0])}" + (" with weight > 0" if len(kept) < points.n else ""),
                advice="OneClassSVM describes a single class.",
            )
        if self.calibrated and int(np.bincount(codes).min()) < 2:
            raise InvalidInput(
                "calibrated=True needs at least two rows of each class",
                got=f"one of class {shown(self.classes_[np.bincount(codes).argmin()])}",
                advice="Leave that class out, or set calibrated=False.",
            )
        if k > 2:
            order = np.argsort(codes.astype(np.min_scalar_type(k)), kind="stable")  # short integers sort by radix
            kept, codes, w = kept[order], codes[order], w[order]
        counts, w = w, w * class_weights(self.class_weight, self.classes_, codes, w)[codes]
        used = points if len(kept) == points.n else points.take(np.sort(kept))
        self.kernel_ = resolve_kernel(self.kernel, used, indefinite=True)
        self.kernel_.touch(points)
        if k > 2 or len(kept) < points.n:
            points = points.take(kept)
        _columns(self, X, reset=True)
        shared = self._gram(points, k)
        self._warn_if_not_psd(shared)
        parts = divide(codes, w, [str(label) for label in self.classes_], self.multiclass)
        return Data(points, codes, counts, kept, shared, tuple(parts))

    def _gram(self, points: Points, k: int) -> Gram:
        """K of all points: expensive values that are asked for repeatedly are computed once, where they fit.

        Where half of the time is not enough for them, the solver computes those it needs.
        """
        kernel, n = self.kernel_, points.n
        looked_up = all(isinstance(leaf, Precomputed) for leaf in kernel.leaves)
        passes = (FOLDS if self.calibrated else 1) * (1 if k == 2 else 2)
        columns = getattr(points.raw, "shape", (0, 0))[-1]
        dear = columns * passes >= DEAR and passes > 1 if kernel.space == "vectors" else not looked_up
        if dear and 3 * 8 * n * n <= memory_budget():
            try:
                with tiling.within(partial(self._late, 0.5)):
                    return gram.of(Precomputed(kernel(points)), np.arange(n))
            except tiling.OutOfTime:
                self._unstored = True  # `_report` says so
                return gram.TiledGram(kernel, kernel.pair(points), memory_budget())
        return gram.of(kernel, points)

    def _fit(
        self, data: Data, starts: Sequence[Matrix] | None = None, own: Sequence[Room] | None = None
    ) -> list[Solved]:
        """Fit all parts, in the rooms of an earlier fit where these are given; keep what an interrupt left."""
        interrupt: KeyboardInterrupt | None = None
        try:
            solved = self._solve(rooms(data.gram, data.parts) if own is None else own, data.parts, starts)
        except Unfinished as stop:
            solved, interrupt = stop.solved, stop
        fitted = [self._fitted(part, one) for part, one in zip(data.parts, solved)]
        self._remember(data, fitted)
        optima = [one.optimum for one in solved]
        self._report(optima, [f.summary.duality for f in fitted], next((one.note for one in solved if one.note), ""))
        if interrupt is None and self.calibrated:
            try:
                self._calibrate(data, optima)
            except KeyboardInterrupt as stop:
                interrupt = stop
        if interrupt is not None:
            self.status_, self.end_ = "interrupted", End.INTERRUPTED.value
            raise keeping(self, interrupt)
        return solved

    def _side_by_side(
        self, problems: Sequence[BoxProblem], within: Sequence[Room], max_iter: int | None = None
    ) -> list[Solved]:
        ready: dict[int, Solved] = {}

        def after(i: int, optimum: smo.Optimum) -> None:
            ready[i] = one = Solved(problems[i], optimum)
            one.summary  # noqa: B018  # while other threads solve, and before the cache forgets

        try:
            kept = [room.kept for room in within]
            optima = self._optimise(problems, max_iter=max_iter, kept=kept, after=after)
        except Interrupted as stop:
            raise Unfinished([Solved(p, o) for p, o in zip(problems, stop.optima)]) from None
        return [ready.get(i) or Solved(p, o) for i, (p, o) in enumerate(zip(problems, optima))]

    def _remember(self, data: Data, fitted: Sequence[Fitted]) -> None:
        """Keep the support vectors, their coefficients, and what the margin report asks for."""
        n, k, parts = len(data.codes), len(self.classes_), data.parts
        intercept = np.array([f.intercept for f in fitted])
        if k == 2 or self.multiclass == "ovr":
            used = self._keep(data.points, data.kept, np.column_stack([f.coef for f in fitted]), intercept)
            if k == 2:
                flatten(self)
        else:
            coef = by_rows(parts, fitted, n, k)
            used = self._used(coef, data.kept)
            self._keep_points(data.points, data.kept, used)
            self.dual_coef_, self.intercept_ = coef[used], intercept
            self._codes = data.codes[used].astype(np.min_scalar_type(k))
            self._function = None
            if k > FEW and not self._pairwise():
                self._ends = np.searchsorted(self._codes, np.arange(k + 1))
            else:
                self._function = self._of_pairs()
        self.n_support_ = np.bincount(data.codes[used], minlength=k)
        largest = float(np.abs(self.kernel_.diag(data.points)).max())
        spread = largest if self.kernel_.tags.nonnegative else 2 * largest  # |k(x, x')| ≤ the largest k(x, x)
        at = np.full(n, -1)
        at[used] = np.arange(len(used))
        self._sides = Sides.of(parts, fitted, at, spread)

    @property
    def bounded_(self) -> NDArray[np.bool_]:  # type: ignore[override]
        """For each support vector, whether its coefficient is at its bound in any function."""
        check_is_fitted(self)
        sides = self._sides
        found = np.zeros(len(self.support_), dtype=np.bool_)
        found[sides.support[sides.at_bound]] = True
        return found

    # -- probabilities ------------------------------------------------------------------------------------------------

    @staticmethod
    def _folds(data: Data) -> int:
        return max(2, min(FOLDS, int(np.bincount(data.codes).min())))

    def _calibrate(self, data: Data, optima: Sequence[smo.Optimum]) -> None:
        """A sigmoid for each part, on values of functions that were fitted without the point's fold.

        Class weights move the functions and not the sigmoids: they say what an error costs, not how often a class
        occurs, so that the mean probability of a class stays near its share of the rows. Where the fit was told to stop
        there are none, and the status says so.
        """
        if not self._go_on or any(o.end is End.TIME for o in optima):
            self._uncalibrated(CALLER if not self._go_on else LATE)
            return
        count = self._folds(data)
        n = len(data.codes)
        folds = fold_numbers(make_folds(n, count, y=data.codes, stratify=True, random_state=self.random_state), n)
        parts = [part.without(folds == number) for part in data.parts for number in range(count)]
        solved = self._solve(rooms(data.gram, parts), parts)
        if any(one.optimum.end is End.CALLER for one in solved):
            self._uncalibrated(CALLER)
            return
        self._warn_of_folds([one.optimum for one in solved if not one.note])
        fitted = [self._fitted(part, one) for part, one in zip(parts, solved)]
        at_once = len(self.classes_) > 2 and self.multiclass == "ovo" and not self._pairwise()
        values = held_out(data, folds, parts, fitted, at_once=at_once)
        self._sigmoids = [Sigmoid.fit(f, part.signs, data.counts[part.rows()]) for part, f in zip(data.parts, values)]

    def _calibrate_on(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        """Probabilities from rows that were not fitted, instead of folds: `calibrated` is then True.

        All pairs of more than two classes, whose margins are all ±1, share one sigmoid, the same for both sides: there
        are too few such rows for each pair to have its own. That holds where no class weights have moved them apart.
        """
        points = self._queries(X)
        codes, w = np.searchsorted(self.classes_, labels(y, points.n)), weights(sample_weight, points.n)
        counts = np.ones(points.n) if w is None else w
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

    def _uncalibrated(self, why: str) -> None:
        self.status_ = f"{why}, and therefore not calibrated"
        if self.gap_ <= self.tol:  # else it has been warned of
            warnings.warn(f"{self.status_}.", ConvergenceWarning, stacklevel=outside())

    def _warn_of_folds(self, optima: Sequence[smo.Optimum]) -> None:
        """Once for all of them, and not where the whole has been warned of."""
        late = [o for o in optima if not o.converged]
        if late and self.gap_ <= self.tol:
            warnings.warn(
                f"Probabilities are less sure: {len(late)} of {len(optima)} problems of the calibration's folds ended "
                f"before gap ≤ tol = {self.tol:g}, the first because it was {late[0].status}. Raise `max_iter` or "
                "`max_time`.",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    @available_if(_calibrated)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes for m points, shape (m, classes). Needs calibrated=True.

        They are those of rows as common as in `fit`, each with its sample weight; class weights do not change them.
        """
        check_is_fitted(self)
        if not hasattr(self, "_sigmoids"):
            raise InvalidInput(
                "Probabilities need a calibration that was not interrupted or stopped",
                got=f"status_ = {self.status_!r}",
                advice="Fit again, with more time.",
            )  # fmt: skip
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
        if self._function is None:  # the name is there already: other threads may be looking at them
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
        """How far each point is on which side.

        Two classes: f(x), shape (m,), positive for the second. More: shape (m, classes), largest for the class that is
        predicted. One-vs-one these are votes of the pairs, plus less than ½ by their values, so that equal votes are
        decided by distance.
        """
        values = self._values(self._queries(X))
        k = len(self.classes_)
        if k == 2:
            return values[:, 0]
        if self.multiclass == "ovr":
            return values
        return votes(values, k)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points: where calibrated, the most probable one.

        With class weights, that of `decision_function`: they have moved it, and do not move probabilities.
        """
        check_is_fitted(self)
        if self.calibrated and self.class_weight is None and hasattr(self, "_sigmoids"):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def margin_report(self) -> MarginReport:
        """Margin, free and bounded support vectors, and bounds on the leave-one-out error, of each function."""
        check_is_fitted(self)
        status = "" if self.status_.startswith("converged") else self.status_
        Cs = getattr(self, "C_", [None] * len(self._sides))
        return MarginReport(tuple(side.margin(self._among, C) for side, C in zip(self._sides, Cs)), status)

    def _among(self, some: Index) -> Matrix:
        """The kernel matrix of some support vectors."""
        if self._pairwise():
            return self.kernel_(self._support, dtype=np.float64)[np.ix_(some, some)]
        return self.kernel_(self._support.take(some), dtype=np.float64)
