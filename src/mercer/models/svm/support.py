"""What support vector machines share: the few points that are kept, paths of C, and how a fit ended.

A fit is four steps, each with a file of its own: classes are split into problems between two sides (`split`), each is a
box problem (`problems`), all are solved within the limits of the fit (`solving`), and their optima are functions
(`margins` for classifiers). The machines put them together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels.custom import Precomputed
from mercer.models.base import KernelEstimator, Matrix, Rows, outside, shortened, shown
from mercer.models.callbacks import CallbackSupportMixin
from mercer.models.convergence import NotConverged
from mercer.models.svm.solving import Solver
from mercer.models.svm.split import Index
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.psd import require_psd

LOOKED_AT = 1000
"""Points on which a kernel is looked at."""


class PathInterrupted(KeyboardInterrupt):
    """An interrupt of `path`: `models` are those that were fitted, by growing C; the last may be an iterate only."""

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__(f"interrupted; the {len(models)} models so far are the attribute `models` of this")
        self.models = list(models)


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
        "interrupted", "unbounded", "stalled", or "no margin" where none separates the classes.

    At the time limit the model is what was solved by then: at least the function of a few hundred rows, spread over all
    of them. The limit counts from the beginning of `fit`, and is looked at while kernel values are computed.
    """

    _indefinite = True
    _added: ClassVar[dict[str, Any]] = {"end_": End.CONVERGED.value}

    tol: float
    max_iter: int | None
    max_time: float | None
    progress: Callable[[smo.Progress], bool] | None
    bounded_: NDArray[np.bool_]

    def _start(self) -> Solver:
        """The solver of a fit that begins now, its limits checked."""
        limits(self)
        return Solver(self)

    def _look_at(self, K: Gram, solver: Solver) -> None:
        """Warn, with the eigenvalue, where a kernel that nobody has proven is seen not to be one, if time allows.

        A warning, where other models refuse: a quadratic on a bounded box has a minimum whatever K is, and pairs of
        variables find a point that none of them can improve; but it may be a local one, and the duality gap bounds
        nothing. Of a large matrix a part is looked at: by interlacing, a negative eigenvalue of a part is one of the
        whole (that none is seen there says nothing).
        """
        # The proof of Precomputed(K) is the eigenvalues of all of K, of which only these rows matter.
        stored = any(isinstance(leaf, Precomputed) for leaf in self.kernel_.leaves)
        if not stored and self.kernel_.proof(getattr(self, "n_features_in_", None)).valid:
            return
        within_time = threads.within(partial(solver.late, 0.25))
        with suppress(threads.OutOfTime), within_time, threads.single_threaded_blas():
            require_psd(looked_at(K), warn=_warn_of_psd)

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

    def _keep(self, rows: Rows, coef: Matrix, intercept: Matrix, *, single: bool) -> Index:
        """Keep one function, or one per column of `coef` (n, f), and return which rows are support vectors."""
        used = self._keep_points(rows, coef)
        self.dual_coef_, self.intercept_ = coef[used], intercept
        if single:
            self.dual_coef_ = self.dual_coef_[:, 0]
            self.intercept_ = float(intercept[0])  # type: ignore[assignment]  # a number, as every scalar of the models
        self.function_ = Expansion(self.kernel_, self._support, self.dual_coef_, Tail.constant(self.intercept_))
        return used

    def _keep_points(self, rows: Rows, coef: Matrix) -> Index:
        """Keep the rows whose coefficients are not all zero, one at least; of a matrix, only their own columns.

        Where they are columns of a matrix they are in the order of `fit`: if every point is one of them, the columns
        `support_` are the matrix itself.
        """
        used = np.flatnonzero(coef.any(axis=1))
        used = used if len(used) else np.array([0])
        used = used[np.argsort(rows.kept[used])] if self.kernel_.pairwise else used
        self.support_ = rows.kept[used]
        if self.kernel_.pairwise and not self.kernel_.children:
            values = rows.points.encoded(self.kernel_)
            self._support = Points(values[np.ix_(used, self.support_)], self.support_, values.shape[1])
        else:
            self._support = rows.points.take(used)
        return used

    @property
    def support_vectors_(self) -> Any:
        """The support vectors as they were given."""
        check_is_fitted(self)
        return self._support.raw

    def _queries(self, X: Any) -> Points:
        """As for every model; a bare Precomputed() may have the columns of the support vectors alone."""
        check_is_fitted(self)
        if self.kernel_.pairwise and getattr(X, "shape", (0, 0))[-1] == len(self.support_):
            return self.kernel_.prepare(X)
        return super()._queries(X)

    def _report(self, solver: Solver, optima: Sequence[smo.Optimum], duality: Matrix) -> None:
        """Record how it ended; warn where the tolerance was not reached. (That there is no margin is an answer.)"""
        self.duality_gap_ = duality
        self.n_iter_ = sum(o.iterations for o in optima)
        self.gap_ = max(o.gap for o in optima)
        self.objective_ = np.array([o.objective for o in optima])
        late = [o for o in optima if not o.converged or o.end is End.NO_MARGIN]
        first = next((o for o in late if o.end is End.NO_MARGIN), late[0] if late else None)
        self.status_ = f"converged: gap {self.gap_:.2g} ≤ {self.tol:g}" if first is None else first.status
        self.end_ = (End.CONVERGED if first is None else first.end).value
        if solver.interrupt is not None:
            self.status_, self.end_ = "interrupted", End.INTERRUPTED.value
            return
        if first is not None and first.end is End.NO_MARGIN:
            return
        if solver.hurried or any(o.hurried for o in optima):
            self.status_ += "; half of `max_time` passed before kernel values were stored, so they were not"
        if first is not None:
            several = f" ({len(late)} of {len(optima)} problems)" if len(optima) > 1 else ""
            advice = "Raise `max_iter` or `max_time`, lower `C`, or scale the columns."
            if first.end is End.CALLER:
                advice = "The model is what was reached by then."
            reached = f"gap {self.gap_:.3g} > tol = {self.tol:g}"
            if np.isinf(self.gap_):
                reached = "the model is that of the rows it had looked at, and its gap is not known"
            warnings.warn(NotConverged(f"{first.status}{several}: {reached}", advice), stacklevel=outside())


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


def _warn_of_psd(smallest: float, n: int) -> None:
    warnings.warn(
        f"The Gram matrix is not positive semidefinite: it has the eigenvalue {smallest:.4g} on {n} of these points, "
        "so that the solution found may not be the best. mc.check(kernel, X) shows where, mc.repair(K) mends a matrix.",
        RuntimeWarning,
        stacklevel=outside(),
    )


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
