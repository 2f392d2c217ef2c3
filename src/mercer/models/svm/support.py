"""What support vector machines share: box problems solved side by side, and the few points that are kept."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import tiling
from mercer.kernels.base import Kernel
from mercer.kernels.custom import Precomputed
from mercer.models.base import KernelEstimator, Matrix, outside, shortened, shown
from mercer.models.callbacks import CallbackSupportMixin
from mercer.models.progress import Listeners
from mercer.problems.box import BoxProblem
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.psd import negative_eigenvalue
from mercer.solvers.smo import CALLER

LARGE = 4000
"""Problems with more variables use all threads by themselves; smaller ones share them."""
MANY = 30
"""From so many problems on, what they share is prepared by one of them, before the others begin."""
LOOKED_AT = 1000
"""Points on which a kernel is looked at."""


class Interrupted(smo.Interrupted):
    """An interrupt from outside, with an iterate of every problem as `optima`."""

    def __init__(self, optima: Sequence[smo.Optimum]) -> None:
        super().__init__(optima[0])
        self.optima = list(optima)


class PathInterrupted(KeyboardInterrupt):
    """An interrupt of `path`: `models` are those that were fitted, by growing C; the last may be an iterate only."""

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__(f"interrupted; the {len(models)} models so far are the attribute `models` of this")
        self.models = list(models)


def _unsolved(problem: BoxProblem, status: str = "interrupted", end: End = End.INTERRUPTED) -> smo.Optimum:
    """The start of a problem whose turn did not come."""
    beta = np.array(problem.start, dtype=np.float64)
    gradient = problem.linear + (_product(problem, beta) if beta.any() else 0.0)
    gap = float(problem.bounds_met(beta, gradient)[0])
    return smo.Optimum(beta, gradient, gap, problem.objective(beta, gradient), 0, status, False, end)


def _product(problem: BoxProblem, beta: Matrix) -> Matrix:
    """Kβ of every variable."""
    rows, K = problem.rows, problem.gram
    if rows is None:
        return np.asarray(K @ beta, dtype=np.float64)
    if len(rows) <= K.shape[0]:  # some of the points
        return np.asarray(K.restrict(rows) @ beta, dtype=np.float64)
    return np.asarray((K @ problem.per_point(beta))[rows], dtype=np.float64)


class SupportVectorMachine(CallbackSupportMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model whose dual is a box problem.

    A subclass has the parameters `kernel`, `tol`, `max_iter`, `max_time` and `progress`.

    Attributes
    ----------
    support_ : positions of the support vectors among the rows of `fit`.
    dual_coef_, intercept_ : their coefficients, shape (support vectors, functions), and one constant per function.
    support_vectors_ : the support vectors as they were given.
    bounded_ : for each of them, whether its coefficient is at its bound (in any function); the others are free.
    function_ : Σ βᵢ k(xᵢ, ·) + b over the support vectors alone.
    gap_ : the largest violation of optimality, in float64; infinite where the time limit left no time to compute it.
    objective_ : of the dual, one per problem; NaN where the time limit left no time to compute it.
    duality_gap_ : by how much at most each of them is not optimal: the primal at `function_` less the dual, ≥ 0.
    n_iter_, status_ : pairs that were moved, and how it ended.
    end_ : why it ended, the value of a `mercer.solvers.base.End`: "converged", "time", "iterations", "caller",
        "interrupted", "unbounded" or "stalled".

    At the time limit the model is what was solved by then: at least the function of a few hundred rows, spread over all
    of them. The limit counts from the beginning of `fit`, and is looked at while kernel values are computed.
    """

    _indefinite = True

    tol: float
    max_iter: int | None
    max_time: float | None
    progress: Callable[[smo.Progress], bool] | None
    bounded_: NDArray[np.bool_]
    _go_on: bool
    """Whether no one has asked this fit to stop."""
    _deadline: float | None
    """When this fit must end, by `time.perf_counter`."""

    def _start_clock(self) -> None:
        self._deadline = None if self.max_time is None else time.perf_counter() + self.max_time

    def _late(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over."""
        if self._deadline is None or self.max_time is None:
            return False
        return time.perf_counter() > self._deadline - (1.0 - share) * self.max_time

    def _warn_if_not_psd(self, K: Gram) -> None:
        """Look at a kernel that nobody has proven, where there is time for it."""
        with suppress(tiling.OutOfTime), tiling.within(partial(self._late, 0.25)):
            warn_if_not_psd(self.kernel_, K, getattr(self, "n_features_in_", None))

    def _optimise(
        self,
        problems: Sequence[BoxProblem],
        *,
        max_iter: int | None = None,
        kept: Sequence[dict[Any, Any] | None] | None = None,
        after: Callable[[int, smo.Optimum], None] | None = None,
    ) -> list[smo.Optimum]:
        """The optimum of each problem: large ones one after the other, small ones side by side.

        Parameters
        ----------
        problems : what to minimise.
        max_iter : pairs at the most for each problem; by default the parameter of the same name.
        kept : for each problem a dict that keeps its kernel values for the next one on the same Gram.
        after : called with the position of a problem and its optimum, by the thread that has found it.

        An interrupt raises `Interrupted`, which holds an iterate of every problem.
        """
        deadline = self._deadline
        found: list[smo.Optimum | None] = [None] * len(problems)
        watch = getattr(self, "_watch", None)
        listeners = None if self.progress is None and watch is None else Listeners(self.progress, watch, self._go_on)

        def solve(i: int) -> None:
            if listeners is None:
                solve_told(i, None)
            elif listeners.go_on:
                task = listeners.begin(steps=problems[i].size > LARGE)
                solve_told(i, partial(listeners.told, task))
                listeners.end(task)

        def solve_told(i: int, progress: Callable[[smo.Progress], bool] | None) -> None:
            left = None if deadline is None else max(0.0, deadline - time.perf_counter())
            pairs = self.max_iter if max_iter is None else max_iter
            try:
                found[i] = optimum = smo.solve(
                    problems[i],
                    tol=self.tol,
                    max_iter=pairs,
                    max_time=left,
                    progress=progress,
                    kept=None if kept is None else kept[i],
                )
            except smo.Interrupted as stop:
                found[i] = stop.optimum
                raise
            if after is not None:
                after(i, optimum)

        def job(waiting: deque[int]) -> None:
            while not tiling.stopped():
                try:
                    i = waiting.popleft()
                except IndexError:
                    return
                solve(i)

        order = sorted(range(len(problems)), key=lambda i: -problems[i].size)
        large = 1 if len(problems) == 1 else sum(problem.size > LARGE for problem in problems)
        alone, waiting = order[:large], deque(order[large:])
        if kept is not None and len(waiting) > MANY and kept[order[-1]] is kept[order[-2]] is not None:
            alone.append(waiting.pop())  # the smallest prepares what all of them share
        try:
            for i in alone:
                solve(i)
            if waiting:
                tiling.run([partial(job, waiting)] * min(tiling.n_threads(), len(waiting)))
        except KeyboardInterrupt:
            raise Interrupted([o or _unsolved(p) for o, p in zip(found, problems)]) from None
        self._go_on = listeners is None or listeners.go_on
        return [o or _unsolved(p, CALLER, End.CALLER) for o, p in zip(found, problems)]

    def _along(self, Cs: Any, fit: Callable[[Self, float], None], *, infinite: bool = False) -> list[Self]:
        """A copy of this model for each of the Cs, fitted by growing C: `fit(model, factor)`, C/the last one or 1."""
        wanted = [positive(C, "C", infinite=infinite) for C in np.atleast_1d(np.asarray(Cs, dtype=object)).ravel()]
        if not wanted:
            raise InvalidInput("`Cs` must hold at least one C", got="none", advice="Such as np.logspace(-2, 3, 6).")
        models: dict[float, Self] = {}
        before = np.inf
        for C in sorted(set(wanted)):
            model = copy(self).set_params(C=C)
            try:
                fit(model, C / before if models and np.isfinite(C) else 1.0)
            except KeyboardInterrupt:
                begun = [model] if hasattr(model, "status_") else []
                raise PathInterrupted([*models.values(), *begun]) from None
            models[C], before = model, C
        return [models[C] for C in wanted]

    def _keep(self, points: Points, kept: NDArray[np.int64], coef: Matrix, intercept: Matrix) -> NDArray[np.int64]:
        """Keep the points whose coefficients are not all zero, and say which: coef (n, f), intercept (f,).

        `kept` are the positions of all points among the rows of `fit`.
        """
        used = self._used(coef, kept)
        self._keep_points(points, kept, used)
        self.dual_coef_, self.intercept_ = coef[used], intercept
        self.function_ = Expansion(self.kernel_, self._support, self.dual_coef_, Tail.constant(intercept))
        return used

    def _used(self, coef: Matrix, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """The points whose coefficients are not all zero; one at least.

        Where they are columns of a matrix they are in the order of `fit`: if every point is one of them, the columns
        `support_` are the matrix itself.
        """
        used = np.flatnonzero(coef.any(axis=1))
        used = used if len(used) else np.array([0])
        return used[np.argsort(kept[used])] if self._pairwise() else used

    def _keep_points(self, points: Points, kept: NDArray[np.int64], used: NDArray[np.int64]) -> None:
        """The support vectors; of the rows of a matrix, their own columns alone."""
        self.support_ = kept[used]
        if self.kernel_.children or not self.kernel_.pairwise:
            self._support = points.take(used)
            return
        values = points.encoded(self.kernel_)
        self._support = Points(values[np.ix_(used, self.support_)], self.support_, values.shape[1])

    @property
    def support_vectors_(self) -> Any:
        """The support vectors as they were given."""
        check_is_fitted(self)
        return self._support.raw

    def _queries(self, X: Any) -> Points:
        """As for every model; a bare Precomputed() may have the columns of the support vectors alone."""
        check_is_fitted(self)
        if self._pairwise() and getattr(X, "shape", (0, 0))[-1] == len(self.support_):
            return self.kernel_.prepare(X)
        return super()._queries(X)

    def _pairwise(self) -> bool:
        return self.kernel_.pairwise

    def _report(self, optima: Sequence[smo.Optimum], duality: Sequence[float], answer: str = "") -> None:
        """Tell how it ended; warn where the tolerance was not reached and this is not an `answer` in itself."""
        self.duality_gap_ = np.array(duality)
        self.n_iter_ = sum(o.iterations for o in optima)
        self.gap_ = max(o.gap for o in optima)
        self.objective_ = np.array([o.objective for o in optima])
        late = [o for o in optima if not o.converged]
        self.status_ = f"converged: gap {self.gap_:.2g} ≤ {self.tol:g}" if not late else late[0].status
        self.end_ = (late[0].end if late else End.CONVERGED).value
        if self.__dict__.pop("_unstored", False) or any(o.hurried for o in optima):
            self.status_ += "; half of `max_time` passed before kernel values were stored, so they were not"
        if answer:
            self.status_ = answer
            return
        if late and late[0].end is not End.INTERRUPTED:
            several = f" ({len(late)} of {len(optima)} problems)" if len(optima) > 1 else ""
            advice = "Raise `max_iter` or `max_time`, lower `C`, or scale the columns."
            if late[0].end is End.CALLER:
                advice = "The model is what was reached by then."
            reached = f"gap {self.gap_:.3g} > tol = {self.tol:g}"
            if np.isinf(self.gap_):
                reached = "the model is that of the rows it had looked at, and its gap is not known"
            warnings.warn(
                f"{late[0].status}{several}: {reached}. {advice}",
                ConvergenceWarning,
                stacklevel=outside(),
            )


def positive(value: Any, name: str, *, infinite: bool = False) -> float:
    """A number > 0, checked."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not value > 0 or (np.isinf(value) and not infinite):
        raise InvalidInput(f"`{name}` must be a number > 0", got=shown(value), advice="Such as 1.0.")
    return float(value)


def looked_at(K: Gram) -> Gram:
    """K, or where it is large, that of some points here and there."""
    n = K.shape[0]
    return K if n <= LOOKED_AT else K.restrict(np.unique(np.linspace(0, n - 1, LOOKED_AT).astype(np.int64)))


def warn_if_not_psd(kernel: Kernel, K: Gram, d: int | None = None) -> None:
    """Warn, with the eigenvalue, where a kernel that nobody has proven is seen not to be one.

    A warning, where other models refuse: a quadratic on a bounded box has a minimum whatever K is, and pairs of
    variables find a point that none of them can improve; but it may be a local one, and the duality gap bounds nothing.
    Of a large matrix a part is looked at: by interlacing, a negative eigenvalue of a part is one of the whole (that
    none is seen there says nothing).
    """
    # The proof of Precomputed(K) is the eigenvalues of all of K, of which only these rows matter.
    if not any(isinstance(leaf, Precomputed) for leaf in kernel.leaves) and kernel.proof(d).valid:
        return
    some = looked_at(K)
    with tiling.single_threaded_blas():
        smallest = negative_eigenvalue(some)
    if smallest is None:
        return
    warnings.warn(
        f"The Gram matrix is not positive semidefinite: it has the eigenvalue {smallest:.4g} on {some.shape[0]} of "
        "these points, so that the solution found may not be the best. mc.check(kernel, X) shows where, mc.repair(K) "
        "mends a matrix.",
        RuntimeWarning,
        stacklevel=outside(),
    )


def grown(problem: BoxProblem, optimum: smo.Optimum, growth: float) -> Matrix:
    """Where to start in a box `growth` times as large: from β, or from β times the growth.

    Whichever is nearer to the best factor: s = −qᵀβ/βᵀKβ minimises ½s² βᵀKβ + s qᵀβ. Sums that are not 0 grow too.
    """
    linear = -float(problem.linear @ optimum.beta)
    quadratic = float(optimum.beta @ (optimum.gradient - problem.linear))
    scaled = problem.group is not None or linear > 0.5 * (1 + growth) * quadratic
    return growth * optimum.beta if scaled else optimum.beta


def feasible(problem: BoxProblem, start: Matrix) -> BoxProblem:
    """The problem from another start of the same sums, rounded into the box; from its own where that is not one."""
    beta = np.clip(start, problem.lower, problem.upper)
    moved = np.array([float((beta - problem.start)[member].sum()) for member in problem.members()])
    return problem if (np.abs(moved) > 1e-9 * np.abs(beta).sum()).any() else replace(problem, start=beta)


def filled(C: Matrix, total: float) -> Matrix:
    """β with 0 ≤ β ≤ C and Σβ = total ≤ ΣC, the first ones as large as they may be."""
    before = np.cumsum(C) - C
    return np.clip(total - before, 0.0, C)


def flatten(model: SupportVectorMachine) -> None:
    """One function: coefficients of shape (s,) and a number as intercept."""
    points, b = model.function_.points, float(model.intercept_[0])
    model.dual_coef_ = model.dual_coef_[:, 0]
    model.intercept_ = b  # type: ignore[assignment]  # a number for one function, as every scalar of the models
    model.function_ = Expansion(model.kernel_, points, model.dual_coef_, Tail.constant(b))


def number(value: Any, name: str, range_: str, allowed: Callable[[float], bool], advice: str) -> float:
    """A number in a range, checked."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not allowed(value):
        raise InvalidInput(f"`{name}` must be a number {range_}", got=shown(value), advice=advice)
    return float(value)


def share(nu: Any) -> float:
    """nu in (0, 1], checked."""
    return number(nu, "nu", "in (0, 1]", lambda v: 0 < v <= 1, "It is a share of the points, such as 0.1.")


def limits(model: SupportVectorMachine) -> None:
    """Check when a model is to stop: `tol`, `max_iter`, `max_time`, `progress`."""
    positive(model.tol, "tol")
    for name in ("max_iter", "max_time"):
        value = getattr(model, name)
        if value is not None:
            number(value, name, "≥ 0, or None for no limit", lambda v: v >= 0, "Such as 100000 pairs or 60 seconds.")
    if model.progress is not None and not callable(model.progress):
        raise InvalidInput(
            "`progress` must be a function of a Progress that returns whether to go on",
            got=shortened(model.progress),
            advice="Such as lambda p: p.seconds < 60.",
        )
