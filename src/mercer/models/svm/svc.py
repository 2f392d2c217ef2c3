"""Support vector classification: the function that separates two classes by the widest margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from mercer.gram import Gram
from mercer.models.base import Matrix, Rows
from mercer.models.svm.classification import SupportVectorClassifier, class_numbers
from mercer.models.svm.hard_margin import hard_margin
from mercer.models.svm.problems import grown, soft_margin
from mercer.models.svm.solving import Solved, Solver, Store, stores
from mercer.models.svm.split import Part
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.step import Progress
from mercer.validation import check_number


@dataclass(eq=False, repr=False)
class SVC(SupportVectorClassifier):
    """The widest margin between classes, with a price C on points that lie within it.

        min ½ ‖f‖² + C Σ wᵢ max(0, 1 − yᵢ (f(xᵢ) + b))   over f in the Hilbert space of the kernel and b.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    C : float
        The price of a unit of slack, a number > 0; inf is the hard margin, which allows no slack.
    multiclass : str
        "ovo" for one function per pair of classes, "ovr" for one per class against the rest.
    class_weight : dict, "balanced" or None
        None, "balanced" (n/(classes · rows of the class)), or a dictionary of factors of C by label.
    calibrated : bool
        Whether to fit probabilities, by five folds on the same kernel values. `predict` then returns the most probable
        class. Class weights do not change probabilities, whose mean stays near the share of each class; with class
        weights `predict` follows `decision_function`, which they do move.
    tol : float
        The gap at which a problem counts as solved, measured in float64.
    max_iter : int or None
        The largest number of pairs for each problem, or None.
    max_time : float or None
        The largest number of seconds for all problems together, or None.
    progress : Progress or None
        Called regularly with a `Step` (iteration, gap, tol, objective, support, seconds); False stops the fit.
    random_state : int
        The seed of the folds of the calibration.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    kernel_ : Kernel
        The kernel that was used.
    support_, support_vectors_, n_support_ : array
        Positions, points, and numbers by class of the support vectors, which are sorted by class if there are more than
        two classes, and ascending for a bare `Precomputed()`.
    bounded_ : array
        For each of them, whether its coefficient is at its bound C wᵢ: within the margin or beyond it.
    dual_coef_, intercept_ : array, float or array
        β, shape (s,), and b. With more classes: shape (s, classes) and (classes,) for "ovr"; for "ovo" the coefficients
        of a row in its pairs with each of the other classes, shape (s, classes − 1), and one b per pair.
    function_ : Expansion
        f as an `Expansion`: one function, or one per pair or class.
    gap_, objective_, n_iter_, status_
        The largest violation of optimality, the dual objectives (to be minimised), the number of pairs that were moved,
        and how the fit ended.
    duality_gap_ : array
        The primal less the dual of each problem, ≥ 0: a bound on how far the primal is from its minimum. (For the hard
        margin, at the C that was large enough.)

    References
    ----------
    Cortes and Vapnik, Support-vector networks, 1995. Fan, Chen and Lin, Working set selection, 2005.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[-2.0, 0.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [2.0, 1.0], [2.0, -1.0]])
    >>> y = ["left", "left", "left", "right", "right", "right"]
    >>> model = mc.SVC(mc.Linear(), C=np.inf).fit(X, y)
    >>> model.predict([[-0.5, 0.0], [0.5, 3.0]]), model.support_.tolist()
    (array(['left', 'right'], dtype='<U5'), [1, 2, 3])
    >>> round(model.margin_report()[0].margin, 3)
    1.0
    """

    tunable: ClassVar[tuple[str, ...]] = ("C",)

    kernel: Any = None
    _: KW_ONLY
    C: float = 1.0
    multiclass: str = "ovo"
    class_weight: Any = None
    calibrated: bool = False
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None
    random_state: int = 0

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """A fitted model for each of the Cs, in their order.

        They are fitted by growing C on the same kernel values. Each starts from the coefficients of the last: scaled
        with C if most of them are at their bounds, unchanged if most are free and no longer depend on C.

        An interrupt raises a KeyboardInterrupt with the models fitted so far, by growing C, as its attribute `models`::

            try:
                models = machine.path(X, y, Cs)
            except KeyboardInterrupt as stop:
                models = stop.models

        `max_time` applies to each model; `progress` is called as in `fit`, scikit-learn's callbacks are not.

        >>> import numpy as np, mercer as mc
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> models = mc.SVC(mc.Gaussian(1.0)).path(X, X[:, 0] > X[:, 1] ** 2, [0.1, 1.0, 10.0])
        >>> [model.C for model in models], len(models[0].support_) > len(models[2].support_)
        ([0.1, 1.0, 10.0], True)
        """
        first = clone(self)
        solver = first._start()
        rows, w, K = first._data(solver, X, y, sample_weight)
        values = stores(K, first._parts(class_numbers(rows)), again=True)
        last: list[Solved] = []

        def fit(model: Self, growth: float) -> None:
            starts = [grown(problem, optimum, growth) for problem, optimum in last]
            following = model._start()
            following.hurried = solver.hurried
            last[:] = zip(*model._fit(following, rows, w, K, starts or None, values))

        return first._along(Cs, fit, infinite=True)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_number(self.C, "C", above=0, infinite=True)

    def _problems(self, rows: Rows) -> int | None:
        return None if np.isinf(self.C) else super()._problems(rows)  # the hard margin grows C as long as it must

    def _solve(
        self,
        solver: Solver,
        K: Gram,
        parts: Sequence[Part],
        w: Matrix,
        starts: Sequence[Matrix] | None = None,
        values: Sequence[Store] | None = None,
    ) -> tuple[list[BoxProblem], list[smo.Optimum]]:
        if np.isinf(self.C):
            return hard_margin(solver, K, parts, starts)
        begin = [None] * len(parts) if starts is None else starts
        problems = [soft_margin(K, part, w, float(self.C), start) for part, start in zip(parts, begin)]
        return problems, solver.solve_all(problems, stores(K, parts) if values is None else values)
