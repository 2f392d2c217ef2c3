"""Support vector classification: the function that separates two classes by the widest margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from mercer.gram import Gram
from mercer.models.base import Matrix
from mercer.models.svm.classification import SupportVectorClassifier
from mercer.models.svm.parts import Data, Fitted, Part, Room, Solved, Unfinished, rooms
from mercer.models.svm.support import feasible, grown, looked_at, positive
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.base import End

STAGE = 200_000
"""Pairs in a stage of the hard margin, so that none takes for ever where coefficients grow with C."""
STOPPED = "stopped before the hard margin was reached"
GO_ON = End.CONVERGED, End.ITERATIONS, End.STALLED
"""Ends of a stage of the hard margin after which the next one may begin."""
NARROW = 1e-5
"""A margin below this share of the points' spread is none."""


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
        probable class. Class weights do not enter probabilities, whose mean stays near the share of each class; with
        them `predict` is, as without probabilities, the side of `decision_function`, which they move.
    tol : the gap at which a problem is solved, measured in float64.
    max_iter : pairs at the most, for each problem, or None.
    max_time : seconds at the most, for all problems together, or None.
    progress : called now and then with a `Progress` (iteration, gap, objective, support, seconds); False stops there.
    random_state : of the folds of the calibration.

    Attributes
    ----------
    classes_ : the labels, sorted.
    kernel_ : the kernel that was used.
    support_, support_vectors_, n_support_ : positions, points, and numbers by class of the support vectors, which are
        sorted by class where there are more than two, and ascending for a bare `Precomputed()`.
    bounded_ : for each of them, whether its coefficient is at its bound C wᵢ: within the margin or beyond it.
    dual_coef_, intercept_ : β, shape (s,), and b. With more classes: shape (s, classes) and (classes,) for "ovr"; for
        "ovo" the coefficients of a row in its pairs with each of the other classes, shape (s, classes − 1), and one b
        per pair.
    function_ : f as an `Expansion`: one function, or one per pair or class.
    gap_, objective_, n_iter_, status_ : the largest violation of optimality, the dual objectives (of a minimum), pairs
        that were moved, and how it ended.
    duality_gap_ : the primal less the dual of each problem, ≥ 0: so far at most is the primal from its minimum. (Of the
        hard margin at the C that was enough for it.)

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

    tunable: ClassVar[tuple[str, ...]] = ("C",)

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

        An interrupt raises a KeyboardInterrupt with the models fitted so far, by growing C, as its attribute `models`:

            try:
                models = machine.path(X, y, Cs)
            except KeyboardInterrupt as stop:
                models = stop.models

        `max_time` is for each model; `progress` is called as in `fit`, scikit-learn's callbacks are not.

        >>> import numpy as np, mercer as mc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> models = mc.SVC(mc.Gaussian(1.0)).path(X, X[:, 0] > X[:, 1] ** 2, [0.1, 1.0, 10.0])
        >>> [model.C for model in models], len(models[0].support_) > len(models[2].support_)
        ([0.1, 1.0, 10.0], True)
        """
        first = clone(self)
        first._begin()
        data = first._data(X, y, sample_weight)
        own = rooms(data.gram, data.parts, again=True)
        last: list[Solved] = []

        def fit(model: Self, growth: float) -> None:
            model._begin()
            starts = [grown(one.problem, one.optimum, growth) for one in last]
            last[:] = model._fit(data, starts or None, own)

        return first._along(Cs, fit, infinite=True)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        positive(self.C, "C", infinite=True)

    def _problems(self, data: Data) -> int | None:
        return None if np.isinf(self.C) else super()._problems(data)  # the hard margin grows C as long as it must

    @staticmethod
    def _box(room: Room, part: Part, C: float, start: Matrix | None = None) -> BoxProblem:
        most = C * part.weights * part.signs
        lower, upper = np.minimum(0.0, most), np.maximum(0.0, most)
        problem = BoxProblem(room.gram, -part.signs, lower, upper, np.zeros(len(most)), room.rows)
        return problem if start is None else feasible(problem, start)

    def _solve(
        self, within: Sequence[Room], parts: Sequence[Part], starts: Sequence[Matrix] | None = None
    ) -> list[Solved]:
        begin: list[Matrix | None] = [None] * len(parts) if starts is None else list(starts)
        if np.isinf(self.C):
            return self._hard(within, parts, begin)
        problems = [self._box(room, part, float(self.C), start) for room, part, start in zip(within, parts, begin)]
        return self._side_by_side(problems, within)

    def _hard(self, within: Sequence[Room], parts: Sequence[Part], starts: list[Matrix | None]) -> list[Solved]:
        """No slack at all: C grows until no coefficient is at its bound, so that a larger one would change nothing.

        Two classes are 2‖f‖/Σ|β| apart at the most: so near are their means with the weights |β|. Where that
        vanishes, no margin separates them.
        """
        even = [Part(p.index, p.signs, np.ones(len(p.signs)), p.between) for p in parts]
        whole = within[0].gram
        within = rooms(whole, parts, again=True)
        length = _spread(whole)
        C, last = 10.0 / length**2, 1e10 / length**2
        found: list[Any] = [None] * len(parts)
        least: list[Any] = [None] * len(parts)  # of the stages, that of the smallest Σ slack
        pending, left = list(range(len(parts))), np.inf if self.max_iter is None else self.max_iter
        while pending:
            problems = [self._box(within[i], even[i], C, starts[i]) for i in pending]
            used = max(0 if found[i] is None else found[i].optimum.iterations for i in pending)
            most = int(min(max(0, left - used), max(STAGE, 100 * max(p.size for p in problems))))
            try:
                solved = self._side_by_side(problems, [within[i] for i in pending], most)
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
                near = one.squared_norm**0.5 / max(total, 1e-300)
                stopped = o.iterations >= left or o.end not in GO_ON
                if stopped:
                    end = o.end if not o.converged else End.ITERATIONS
                    reached = replace(o, converged=False, status=o.status if not o.converged else STOPPED, end=end)
                    found[i] = Solved(one.problem, reached)
                elif not inside and (near <= NARROW * length or last <= C):
                    found[i] = _not_separable(least[i], even[i], near, several=len(parts) > 1)
                elif last > C:
                    again.append(i)
            pending, C = again, 10 * C
        return found

    def _fitted(self, part: Part, solved: Solved) -> Fitted:
        return Fitted.of(part, solved, solved.summary.offsets[0])


def _spread(K: Gram) -> float:
    """The root mean square distance of points from their mean, as the kernel sees them; 1 where they are all one."""
    values = looked_at(K).fresh(np.float64)
    diagonal = np.diagonal(values)
    squared = max(float(diagonal.mean() - values.mean()), 1e-12 * float(np.abs(diagonal).mean()))
    return float(np.sqrt(squared)) if squared > 1e-290 else 1.0


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
