"""Support vector classification: the function that separates two classes by the widest margin.

Two classes are one box problem. More of them are one problem per pair (or one per class against the rest), all on the
same points: rows are sorted by class, pairs are solved side by side, and where kernel values are dear they are computed
once for all of them, for the folds of a calibration and for a path of Cs.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer import gram
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import tiling
from mercer.kernels.custom import Precomputed
from mercer.kernels.points import Points
from mercer.memory import budget as memory_budget
from mercer.models.base import Matrix, _columns, resolve_kernel, shortened, training_points, weights
from mercer.models.margins import MarginReport, Side
from mercer.models.probabilities import Sigmoid, couple
from mercer.models.support import Interrupted, SupportVectorMachine, positive, warn_if_not_psd
from mercer.models.svr import filled, flatten, limits
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo

Index = NDArray[np.int64]
Room = Sequence[dict[Any, Any]] | None

FOLDS = 5
"""Of the calibration."""
DEAR = 300
"""Columns × passes from which the whole matrix of vectors is computed once and kept, where it fits."""
STAGE = 200_000
"""Pairs in a stage of the hard margin, so that none takes for ever where coefficients grow with C."""
STOPPED = "stopped before the hard margin was reached"
NARROW = 1e-5
"""A margin below this share of the points' own length is none."""


@dataclass(frozen=True, eq=False)
class Part:
    """One problem between two sides.

    Attributes
    ----------
    index : its rows, or None for all.
    signs : −1 or 1 for each of them.
    weights : of each of them.
    between : the labels of the two sides, the negative one first.
    """

    index: Index | None
    signs: Matrix
    weights: Matrix
    between: tuple[str, str]

    def gram(self, whole: Gram) -> Gram:
        return whole if self.index is None else whole.restrict(self.index)

    def rows(self) -> Index:
        return np.arange(len(self.signs)) if self.index is None else self.index

    def slack(self, solved: Solved) -> Matrix:
        """max(0, 1 − yᵢ f(xᵢ)) of its rows."""
        return np.maximum(0.0, 1.0 - self.signs * (solved.product + solved.offset()))

    def without(self, fold: NDArray[np.bool_]) -> Part:
        """The same sides without the rows of a fold."""
        rows = self.rows()
        left = ~fold[rows]
        return Part(rows[left], self.signs[left], self.weights[left], self.between)


@dataclass(frozen=True, eq=False)
class Solved:
    """A part's problem, its optimum, and what to say about it beside (data that no margin separates)."""

    problem: BoxProblem
    optimum: smo.Optimum
    note: str = ""

    def offset(self, group: int = 0) -> float:
        return self.problem.offsets(self.optimum.beta, self.optimum.gradient)[group]

    @property
    def product(self) -> Matrix:
        """Kβ."""
        return self.optimum.gradient - self.problem.linear


class Unfinished(KeyboardInterrupt):
    """An interrupt, with what there is of every part."""

    def __init__(self, solved: Sequence[Solved]) -> None:
        super().__init__("interrupted; the best iterate so far was kept")
        self.solved = list(solved)


@dataclass(frozen=True, eq=False)
class Fitted:
    """f = Σ cᵢ k(xᵢ, ·) + b of a part: c, b, the greatest |c|, and f at the part's rows."""

    coef: Matrix
    intercept: float
    bound: Matrix
    values: Matrix
    squared_norm: float


@dataclass(frozen=True, eq=False)
class Data:
    """What a classifier is fitted on: points sorted by class, their class numbers, weights, and positions in X."""

    points: Points
    codes: Index
    weights: Matrix
    kept: Index
    gram: Gram
    parts: tuple[Part, ...]

    def room(self) -> list[dict[Any, Any]] | None:
        """For each part a dict that keeps its kernel values, where all of them fit: in all, pairs have 2n² of them."""
        n, k = len(self.codes), len(self.parts)
        return [{} for _ in self.parts] if 8 * n * n * min(k, 3) <= memory_budget() // 2 else None


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

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _solve(
        self, whole: Gram, parts: Sequence[Part], starts: Sequence[Matrix] | None = None, room: Room = None
    ) -> list[Solved]:
        """The optimum of every part; an interrupt raises `Unfinished` with an iterate of each."""

    @abstractmethod
    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        """The function that an optimum stands for."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and their labels y, of any kind.

        A sample weight counts its row as often: weight 2 is the row given twice, weight 0 the row left out. (Not in the
        folds of a calibration: rows given twice may be on both sides.)
        """
        self._begin()
        return self._fit(self._data(X, y, sample_weight))

    def _begin(self) -> None:
        self._check()
        limits(self)
        if self.multiclass not in ("ovo", "ovr"):
            raise InvalidInput(
                "`multiclass` must be 'ovo' (each pair of classes) or 'ovr' (each class against the rest)",
                got=shortened(self.multiclass),
                advice="'ovo' is faster.",
            )
        for name in ("function_", "_sigmoids", "_ends"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._deadline = None if self.max_time is None else time.perf_counter() + self.max_time

    def _data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        """Check what was given: rows of weight > 0, sorted by class where there are several, and their parts."""
        points = training_points(X)
        labels = _labels(y, points.n)
        w = weights(sample_weight, points.n)
        kept = np.arange(points.n) if w is None or w.all() else np.flatnonzero(w)
        w = np.ones(len(kept)) if w is None else w[kept]
        self.classes_, codes = np.unique(labels[kept], return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(
                f"{type(self).__name__} needs at least two classes",
                got=f"{k} class, {self.classes_[0]!r}" + (" with weight > 0" if len(kept) < points.n else ""),
                advice="OneClassSVM describes a single class.",
            )
        w = w * self._class_weights(codes, w)[codes]
        if k > 2:
            order = np.argsort(codes, kind="stable")
            kept, codes, w = kept[order], codes[order], w[order]
        self.kernel_ = resolve_kernel(self.kernel, points if len(kept) == points.n else points.take(np.sort(kept)))
        self.kernel_.touch(points)
        if k > 2 or len(kept) < points.n:
            points = points.take(kept)
        _columns(self, X, reset=True)
        shared = self._gram(points, k)
        warn_if_not_psd(self.kernel_, shared, getattr(self, "n_features_in_", None))
        return Data(points, codes, w, kept, shared, tuple(self._parts(codes, w)))

    def _class_weights(self, codes: Index, w: Matrix) -> Matrix:
        k = len(self.classes_)
        if self.class_weight is None:
            return np.ones(k)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return w.sum() / (k * np.bincount(codes, w, minlength=k))
        required = "`class_weight` must be None, 'balanced' or a dictionary of numbers > 0 by label"
        if not isinstance(self.class_weight, Mapping):
            raise InvalidInput(required, got=shortened(self.class_weight), advice="Such as {'spam': 2.0}.")
        found = np.array([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()], dtype=object)
        for label, value in zip(self.classes_, found):
            try:
                fine = 0 < float(value) < np.inf
            except (TypeError, ValueError):
                fine = False
            if not fine:
                raise InvalidInput(required, got=f"{value!r} for {label!r}", advice="Drop rows to leave a class out.")
        return found.astype(np.float64)

    def _gram(self, points: Points, k: int) -> Gram:
        """K of all points: values that are dear and asked for repeatedly are computed once, where they fit."""
        kernel, n = self.kernel_, points.n
        looked_up = all(isinstance(leaf, Precomputed) for leaf in kernel.leaves)
        passes = (FOLDS if self.calibrated else 1) * (1 if k == 2 else 2)
        columns = getattr(points.raw, "shape", (0, 0))[-1]
        dear = columns * passes >= DEAR and passes > 1 if kernel.space == "vectors" else not looked_up
        if dear and 3 * 8 * n * n <= memory_budget():
            return gram.of(Precomputed(kernel(points)), np.arange(n))
        return gram.of(kernel, points)

    def _parts(self, codes: Index, w: Matrix) -> list[Part]:
        names = [str(label) for label in self.classes_]
        k = len(names)
        if k == 2:
            return [Part(None, np.where(codes == 1, 1.0, -1.0), w, (names[0], names[1]))]
        if self.multiclass == "ovr":
            return [Part(None, np.where(codes == c, 1.0, -1.0), w, ("rest", names[c])) for c in range(k)]
        ends = np.searchsorted(codes, np.arange(k + 1))
        rows = [np.arange(ends[c], ends[c + 1]) for c in range(k)]
        parts = []
        for a, b in combinations(range(k), 2):
            index = np.concatenate([rows[a], rows[b]])
            signs = np.concatenate([-np.ones(len(rows[a])), np.ones(len(rows[b]))])
            parts.append(Part(index, signs, w[index], (names[a], names[b])))
        return parts

    def _fit(self, data: Data, starts: Sequence[Matrix] | None = None, room: Room = None) -> Self:
        interrupt: KeyboardInterrupt | None = None
        try:
            solved = self._solve(data.gram, data.parts, starts, room)
        except Unfinished as stop:
            solved, interrupt = stop.solved, stop
        self._remember(data, [self._fitted(part, one) for part, one in zip(data.parts, solved)])
        self._betas = [one.optimum.beta for one in solved]
        self._report([one.optimum for one in solved], next((one.note for one in solved if one.note), ""))
        if interrupt is None and self.calibrated:
            try:
                self._sigmoids = self._calibrate(data)
            except KeyboardInterrupt as stop:
                interrupt = stop
        if interrupt is not None:
            self.status_ = "interrupted"
            raise interrupt
        return self

    def _side_by_side(self, problems: Sequence[BoxProblem], **limit: Any) -> list[Solved]:
        try:
            optima = self._optimise(problems, deadline=self._deadline, **limit)
        except Interrupted as stop:
            raise Unfinished([Solved(p, o) for p, o in zip(problems, stop.optima)]) from None
        return [Solved(p, o) for p, o in zip(problems, optima)]

    def _remember(self, data: Data, fitted: Sequence[Fitted]) -> None:
        """Keep the support vectors, their coefficients, and what the margin report asks for."""
        n, k, parts = len(data.codes), len(self.classes_), data.parts
        intercept = np.array([f.intercept for f in fitted])
        pairs = k > 2 and self.multiclass == "ovo"
        if not pairs:
            self._keep(data.points, data.kept, np.column_stack([f.coef for f in fitted]), intercept)
            used = np.flatnonzero(np.any([f.coef != 0 for f in fitted], axis=0))
            used = used if len(used) else np.array([0])
            if k == 2:
                flatten(self)
            self._support = self.function_.points
        else:
            # Each row has coefficients in its k − 1 pairs alone: column c of class a is its pair with the c-th other.
            coef = np.zeros((n, k - 1))
            for (a, b), part, f in zip(combinations(range(k), 2), parts, fitted):
                ofb = part.signs > 0
                rows = part.rows()
                coef[rows[~ofb], b - 1] = f.coef[~ofb]
                coef[rows[ofb], a] = f.coef[ofb]
            used = np.flatnonzero(coef.any(axis=1))
            used = used if len(used) else np.array([0])
            self.support_, self.dual_coef_, self.intercept_ = data.kept[used], coef[used], intercept
            self._support = data.points.take(used)
            self._ends = np.searchsorted(data.codes[used], np.arange(k + 1))
        self.n_support_ = np.bincount(data.codes[used], minlength=k)
        largest = float(np.abs(self.kernel_.diag(data.points)).max())
        spread = largest if self.kernel_.tags.nonnegative else 2 * largest  # |k(x, x')| ≤ the largest k(x, x)
        at = np.full(n, -1)
        at[used] = np.arange(len(used))
        self._sides = []
        for part, f in zip(parts, fitted):
            moved = np.flatnonzero(f.coef)
            wrong = int((part.signs * f.values <= 0).sum())
            self._sides.append(
                Side(
                    part.between, len(part.signs), wrong, f.squared_norm,
                    at[part.rows()[moved]], f.coef[moved], f.bound[moved], f.values[moved], spread,
                )
            )  # fmt: skip

    # -- probabilities ------------------------------------------------------------------------------------------------

    def _calibrate(self, data: Data) -> list[Sigmoid]:
        """A sigmoid for each part, on values of functions that were fitted without the point's fold."""
        smallest = int(np.bincount(data.codes).min())
        count = max(2, min(FOLDS, smallest))
        if smallest < 2:
            raise InvalidInput(
                "calibrated=True needs at least two rows of each class",
                got=f"one of class {self.classes_[np.bincount(data.codes).argmin()]!r}",
                advice="Leave that class out, or set calibrated=False.",
            )
        splitter = StratifiedKFold(count, shuffle=True, random_state=self.random_state)
        folds = np.empty(len(data.codes), dtype=np.int64)
        for number, (_, test) in enumerate(splitter.split(np.zeros((len(folds), 1)), data.codes)):
            folds[test] = number
        parts = [part.without(folds == number) for part in data.parts for number in range(count)]
        fitted = [self._fitted(part, o) for part, o in zip(parts, self._solve(data.gram, parts))]
        sigmoids = []
        for p, part in enumerate(data.parts):
            rows, values = part.rows(), np.empty(len(part.signs))
            for number in range(count):
                at = p * count + number
                held_out = np.flatnonzero(folds[rows] == number)
                values[held_out] = self._apply(data.gram, parts[at].rows(), fitted[at], rows[held_out])
            sigmoids.append(Sigmoid.fit(values, part.signs, part.weights))
        return sigmoids

    @staticmethod
    def _apply(whole: Gram, rows: Index, f: Fitted, at: Index) -> Matrix:
        """f at other rows of the Gram."""
        moved = np.flatnonzero(f.coef)
        if not len(moved):
            return np.full(len(at), f.intercept)
        function = Expansion(whole.kernel, whole.x.take(rows[moved]), f.coef[moved])
        return function(whole.x.take(at)).astype(np.float64) + f.intercept

    @available_if(_calibrated)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> Matrix:
        """Probabilities of the classes for m points, shape (m, classes). Needs calibrated=True."""
        check_is_fitted(self)
        if not hasattr(self, "_sigmoids"):
            raise InvalidInput(
                "Probabilities need a calibration that was not interrupted", got=f"status_ = {self.status_!r}",
                advice="Fit again.",
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

    def _queries(self, X: Any) -> Points:
        """As for every model; a bare Precomputed() may have the columns of the support vectors alone."""
        check_is_fitted(self)
        if self._pairwise() and getattr(X, "shape", (0, 0))[-1] == len(self.support_):
            return self.kernel_.prepare(X)
        return super()._queries(X)

    def _pairwise(self) -> bool:
        return any(isinstance(leaf, Precomputed) and leaf.K is None for leaf in self.kernel_.leaves)

    @cached_property
    def function_(self) -> Expansion:  # type: ignore[override]
        """f = Σ βᵢ k(xᵢ, ·) + b over the support vectors, one per pair of classes."""
        k = len(self.classes_)
        coef = np.zeros((len(self.support_), k * (k - 1) // 2))
        for p, (a, b) in enumerate(combinations(range(k), 2)):
            for own, column in ((a, b - 1), (b, a)):
                span = slice(self._ends[own], self._ends[own + 1])
                coef[span, p] = self.dual_coef_[span, column]
        return Expansion(self.kernel_, self._support, coef, Tail.constant(self.intercept_))

    @property
    def support_vectors_(self) -> Any:
        """The support vectors as they were given."""
        check_is_fitted(self)
        return self._support.raw

    def _values(self, points: Points) -> Matrix:
        """f of every part, shape (m, parts)."""
        if not hasattr(self, "_ends") or self._pairwise():
            return self.function_(points).reshape(points.n, -1).astype(np.float64, copy=False)
        k = len(self.classes_)
        number = np.zeros((k, k), dtype=np.int64)
        a, b = np.triu_indices(k, 1)
        number[a, b] = number[b, a] = np.arange(len(a))
        spans = [slice(*ends) for ends in zip(self._ends[:-1], self._ends[1:])]
        values = np.tile(self.intercept_, (points.n, 1))

        def work(rows: slice, share: int) -> None:
            # Rows of a class have coefficients in its own pairs alone: k − 1 columns of k(k − 1)/2.
            K = self.kernel_(points.take(rows), self._support)
            for own, span in enumerate(spans):
                values[rows, np.delete(number[own], own)] += K[:, span] @ self.dual_coef_[span]

        tiling.stripes(points.n, work, rows=int(np.clip(2**21 // len(self.support_), 16, 256)))
        return values

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
        votes, sums = np.zeros((len(values), k)), np.zeros((len(values), k))
        for p, (a, b) in enumerate(combinations(range(k), 2)):
            second = values[:, p] > 0
            votes[:, b] += second
            votes[:, a] += ~second
            sums[:, b] += values[:, p]
            sums[:, a] -= values[:, p]
        return votes + sums / (3 * (np.abs(sums) + 1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each of m points; where calibrated, the most probable one."""
        check_is_fitted(self)
        if self.calibrated and hasattr(self, "_sigmoids"):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        decision = self.decision_function(X)
        return self.classes_[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def margin_report(self) -> MarginReport:
        """Margin, free and bounded support vectors, and bounds on the leave-one-out error, of each function."""
        check_is_fitted(self)
        return MarginReport(tuple(side.margin(self.kernel_, self._support) for side in self._sides))


class SVC(SupportVectorClassifier):
    """The widest margin between classes, with a price C on what lies within it.

        min ½ ‖f‖² + C Σ wᵢ max(0, 1 − yᵢ (f(xᵢ) + b))   over f in the Hilbert space of the kernel and b.

    Parameters
    ----------
    kernel : a kernel, a rule X → kernel, or None for a Gaussian with the median width.
    C : the price of a unit of slack, a number > 0; inf is the hard margin, which allows none.
    multiclass : "ovo" for one function per pair of classes, "ovr" for one per class against the rest.
    class_weight : None, "balanced" (n/(classes · rows of the class)), or a dictionary of factors of C by label.
    calibrated : whether to fit probabilities, by five folds on the same kernel values. `predict` is then the most
        probable class.
    tol : the gap at which a problem is solved, measured in float64.
    max_iter : pairs at the most, for each problem, or None.
    max_time : seconds at the most, for all problems together, or None.
    progress : called now and then with a `Progress` (iteration, gap, objective, support, seconds); False stops there.
    random_state : of the folds of the calibration.

    Attributes
    ----------
    classes_ : the labels, sorted.
    kernel_ : the kernel that was used.
    support_, support_vectors_, n_support_ : positions, points, and numbers by class of the support vectors.
    dual_coef_, intercept_ : β, shape (s,), and b. With more classes: shape (s, classes) and (classes,) for "ovr"; for
        "ovo" the coefficients of a row in its pairs with each of the other classes, shape (s, classes − 1), and one b
        per pair.
    function_ : f as an `Expansion`: one function, or one per pair or class.
    gap_, objective_, n_iter_, status_ : the largest violation of optimality, the dual objectives (of a minimum), pairs
        that were moved, and how it ended.

    >>> import numpy as np, mercer as mc
    >>> X = np.array([[-2.0, 0.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [2.0, 1.0], [2.0, -1.0]])
    >>> y = ["left", "left", "left", "right", "right", "right"]
    >>> model = mc.SVC(mc.Linear(), C=np.inf).fit(X, y)
    >>> model.predict([[-0.5, 0.0], [0.5, 3.0]]), model.support_.tolist()
    (array(['left', 'right'], dtype='<U5'), [1, 2, 3])
    >>> round(model.margin_report()[0].margin, 3)
    1.0

    References
    ----------
    Cortes and Vapnik, Support-vector networks, 1995. Fan, Chen and Lin, Working set selection, 2005.
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        C: float = 1.0,
        multiclass: str = "ovo",
        class_weight: Any = None,
        calibrated: bool = False,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        progress: Callable[[smo.Progress], bool] | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.calibrated = calibrated
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress
        self.random_state = random_state

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """A fitted model for each of the Cs, in their order.

        They are fitted by growing C on the same kernel values, each from the coefficients of the last: scaled with C
        where most of them are at their bounds, as they are where most are free and no longer depend on C.

        >>> import numpy as np, mercer as mc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> models = mc.SVC(mc.Gaussian(1.0)).path(X, X[:, 0] > X[:, 1] ** 2, [0.1, 1.0, 10.0])
        >>> [model.C for model in models], len(models[0].support_) > len(models[2].support_)
        ([0.1, 1.0, 10.0], True)
        """
        wanted = [positive(C, "C", infinite=True) for C in np.atleast_1d(np.asarray(Cs, dtype=object)).ravel()]
        if not wanted:
            raise InvalidInput("`Cs` must hold at least one C", got="none", advice="Such as np.logspace(-2, 3, 6).")
        first = clone(self).set_params(C=wanted[0])
        first._begin()
        data = first._data(X, y, sample_weight)
        room = data.room()
        models: dict[float, Self] = {}
        last: Self | None = None
        for C in sorted(set(wanted)):
            model = copy(first).set_params(C=C)
            model._begin()
            starts = None
            if last is not None:
                growth = C / last.C if np.isfinite(C) else 1.0
                starts = [_grown(b, side.squared_norm, growth) for b, side in zip(last._betas, last._sides)]
            models[C] = last = model._fit(data, starts, room)
        return [models[C] for C in wanted]

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        positive(self.C, "C", infinite=True)

    @staticmethod
    def _box(whole: Gram, part: Part, C: float, start: Matrix | None = None) -> BoxProblem:
        most = C * part.weights * part.signs
        lower, upper = np.minimum(0.0, most), np.maximum(0.0, most)
        beta = np.zeros(len(most)) if start is None else np.clip(start, lower, upper)
        if start is not None and abs(beta.sum()) > 1e-9 * np.abs(beta).sum():  # clipped: no start of Σβ = 0
            beta = np.zeros(len(most))
        return BoxProblem(whole, -part.signs, lower, upper, beta)

    def _solve(
        self, whole: Gram, parts: Sequence[Part], starts: Sequence[Matrix] | None = None, room: Room = None
    ) -> list[Solved]:
        begin: list[Matrix | None] = [None] * len(parts) if starts is None else list(starts)
        if np.isinf(self.C):
            return self._hard(whole, parts, begin, room)
        return self._side_by_side(
            [self._box(part.gram(whole), part, float(self.C), start) for part, start in zip(parts, begin)], kept=room
        )

    def _hard(self, whole: Gram, parts: Sequence[Part], starts: list[Matrix | None], room: Room) -> list[Solved]:
        """No slack at all: C grows until no coefficient is at its bound, so that a larger one would change nothing.

        Two classes are 2‖f‖/Σ|β| apart at the most: so near are their means with the weights |β|. Where that
        vanishes, no margin separates them.
        """
        even = [Part(p.index, p.signs, np.ones(len(p.signs)), p.between) for p in parts]
        grams = [part.gram(whole) for part in even]
        length = float(np.sqrt(max(float(np.abs(whole.kernel.diag(whole.x)).mean()), 1e-300)))
        C, last = 10.0 / length**2, 1e10 / length**2
        found: list[Any] = [None] * len(parts)
        least: list[Any] = [None] * len(parts)  # of the stages, that of the smallest Σ slack
        pending, left = list(range(len(parts))), np.inf if self.max_iter is None else self.max_iter
        while pending:
            problems = [self._box(grams[i], even[i], C, starts[i]) for i in pending]
            used = max(0 if found[i] is None else found[i].optimum.iterations for i in pending)
            most = int(min(max(0, left - used), max(STAGE, 100 * max(p.size for p in problems))))
            try:
                kept = None if room is None else [room[i] for i in pending]
                solved = self._side_by_side(problems, max_iter=most, kept=kept)
            except Unfinished as stop:
                for i, one in zip(pending, stop.solved):
                    found[i] = _counted(one, found[i])
                raise Unfinished(found) from None
            again = []
            for i, one in zip(pending, solved):
                found[i] = one = _counted(one, found[i])
                o = one.optimum
                starts[i] = o.beta
                if least[i] is None or even[i].slack(one).sum() < even[i].slack(least[i]).sum():
                    least[i] = one
                total = float(np.abs(o.beta).sum())
                inside = bool(np.abs(o.beta).max() < C)
                if inside and o.converged:
                    continue
                near = max(float(o.beta @ one.product), 0.0) ** 0.5 / max(total, 1e-300)
                stopped = o.iterations >= left or not (o.converged or o.status.startswith(("stopped after", "stalled")))
                if stopped:
                    reached = replace(o, converged=False, status=o.status if not o.converged else STOPPED)
                    found[i] = Solved(one.problem, reached)
                elif not inside and (near <= NARROW * length or last <= C):
                    found[i] = _not_separable(least[i], even[i], near, several=len(parts) > 1)
                elif last > C:
                    again.append(i)
            pending, C = again, 10 * C
        return found

    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        b, product, beta = solved.offset(), solved.product, solved.optimum.beta
        return Fitted(
            beta, b, solved.problem.upper - solved.problem.lower, product + b, max(float(beta @ product), 0.0)
        )


def _grown(beta: Matrix, squared_norm: float, growth: float) -> Matrix:
    """β times the factor, 1 or that of C, which is nearer to the best one: Σ|β|/‖f‖² minimises ½s²‖f‖² − sΣ|β|."""
    scaled = np.abs(beta).sum() > 0.5 * (1 + growth) * squared_norm
    return growth * beta if scaled else beta


def _counted(solved: Solved, before: Solved | None) -> Solved:
    """With the iterations of the stages before."""
    more = 0 if before is None else before.optimum.iterations
    return replace(solved, optimum=replace(solved.optimum, iterations=solved.optimum.iterations + more))


def _not_separable(solved: Solved, part: Part, near: float, *, several: bool) -> Solved:
    slack = part.slack(solved)
    between = f" ({part.between[0]} | {part.between[1]})" if several else ""
    return replace(
        solved,
        note=f"not separable{between}: the smallest violation found is Σ max(0, 1 − yᵢ f(xᵢ)) = {slack.sum():.4g}, at "
        f"most {slack.max():.3g} in a row, and no margin can be wider than {near:.1g}. Use a finite C",
    )


class NuSVC(SupportVectorClassifier):
    """Support vector classification by the share of support vectors instead of C.

        min ½ ‖f‖² − νρ + 1/n Σ max(0, ρ − yᵢ (f(xᵢ) + b)),   scaled so that ρ = 1:

    at most the share ν of the rows lies within the margin, and at least that share are support vectors. It is the
    function of `SVC` for C = 1/ρ.

    Parameters
    ----------
    nu : in (0, 1], and at most twice the share of the smaller class (of each pair of classes).
    kernel, multiclass, calibrated, tol, max_iter, max_time, progress, random_state : as for `SVC`. There are no
        class weights: they would take away what ν means.

    Attributes
    ----------
    as for `SVC`, whose coefficients and values these are; `C_` : 1/ρ of each function.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mc.NuSVC(mc.Gaussian(1.0), nu=0.2).fit(X, X[:, 0] > 0)
    >>> len(model.support_) >= 0.2 * 200
    True

    References
    ----------
    Schölkopf, Smola, Williamson and Bartlett, New support vector algorithms, 2000.
    """

    class_weight = None

    def __init__(
        self,
        kernel: Any = None,
        *,
        nu: float = 0.5,
        multiclass: str = "ovo",
        calibrated: bool = False,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        progress: Callable[[smo.Progress], bool] | None = None,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.multiclass = multiclass
        self.calibrated = calibrated
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress
        self.random_state = random_state

    def _check(self) -> None:
        if positive(self.nu, "nu") > 1:
            raise InvalidInput("`nu` must be in (0, 1]", got=repr(self.nu), advice="It is a share of the rows.")

    def _solve(
        self, whole: Gram, parts: Sequence[Part], starts: Sequence[Matrix] | None = None, room: Room = None
    ) -> list[Solved]:
        problems = []
        for part in parts:
            w, signs = part.weights, part.signs
            half = float(self.nu) * w.sum() / 2
            sides = [w[signs < 0].sum(), w[signs > 0].sum()]
            if half > min(sides) * (1 + 1e-12):
                most = 2 * min(sides) / w.sum()
                raise InvalidInput(
                    f"`nu` must be at most twice the share of the smaller class: it is infeasible above {most:.4g} for "
                    f"{part.between[0]} | {part.between[1]}",
                    got=repr(self.nu),
                    advice="Lower it, or take SVC, which always has a solution.",
                )
            start = np.zeros(len(w))
            for side in (-1.0, 1.0):
                start[signs == side] = side * filled(w[signs == side], half)
            lower, upper = np.minimum(0.0, signs * w), np.maximum(0.0, signs * w)
            group = (signs > 0).astype(np.int64)
            problems.append(BoxProblem(part.gram(whole), np.zeros(len(w)), lower, upper, start, group=group))
        return self._side_by_side(problems)

    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        # On the margin Kβ + b = ±ρ, so that the offsets −Kβ of the two groups are b ± ρ.
        below, above = solved.offset(0), solved.offset(1)
        b, rho = (below + above) / 2, (below - above) / 2
        product, beta = solved.product, solved.optimum.beta
        scale = rho if rho > 1e-12 * max(float(np.abs(product).max()), 1e-300) else 1.0
        norm = max(float(beta @ product), 0.0) / scale**2
        return Fitted(beta / scale, b / scale, part.weights / scale, (product + b) / scale, norm)

    def _remember(self, data: Data, fitted: Sequence[Fitted]) -> None:
        super()._remember(data, fitted)
        self.C_ = np.array([f.bound[0] / part.weights[0] for part, f in zip(data.parts, fitted)])


def _labels(y: Any, n: int) -> NDArray[Any]:
    """One label per point, of any kind."""
    if y is None:
        raise InvalidInput(
            "A classifier requires y to be passed, but the target y is None", got="None", advice="One label per row."
        )
    required = "y must hold one label per point: numbers, strings or booleans"
    try:
        labels = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("Input y contains NaN or infinity")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        advice = "For numbers to be predicted use SVR; classes are whole numbers, strings or booleans."
        raise InvalidInput(required, got=f"this: {error}", advice=advice) from None
    if len(labels) != n:
        raise InvalidInput(required, got=f"{len(labels)} labels for {n} points", advice="Check both lengths.")
    return np.asarray(labels)
