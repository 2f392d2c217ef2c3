"""The base class of support vector machines: the few points that are kept, paths of C, and how a fit ended.

A fit has four steps, each in its own file: classes are split into problems between two sides (`split`), each of which
is a box problem (`problems`); all are solved within the limits of the fit (`solving`), and their optima become
functions (`margins` for classifiers). The machines put the steps together.
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
from mercer.models.base import KernelEstimator, Matrix, Rows, outside
from mercer.models.callbacks import CallbackSupportMixin
from mercer.models.convergence import NotConverged
from mercer.models.svm.solving import Solver
from mercer.models.svm.split import Index
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smo
from mercer.solvers.base import End
from mercer.solvers.psd import require_psd
from mercer.solvers.step import Progress
from mercer.validation import check_function, check_number

PSD_POINTS = 1000
"""Points on which a kernel without a proof is checked for negative eigenvalues."""


class PathInterrupted(KeyboardInterrupt):
    """An interrupt of `path`: `models` are the models fitted so far, by growing C; the last may not have converged."""

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__(f"interrupted; the {len(models)} models so far are the attribute `models` of this exception")
        self.models = list(models)


class SupportVectorMachine(CallbackSupportMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model whose dual is a box problem.

    A subclass has the parameters `kernel`, `tol`, `max_iter`, `max_time` and `progress`.

    At the time limit the model is the function reached by then, of at least a few hundred rows spread over all rows.
    The limit counts from the beginning of `fit`, and is checked while kernel values are computed, too.

    Attributes
    ----------
    support_ : array
        Positions of the support vectors among the rows of `fit`.
    dual_coef_, intercept_ : array, float or array
        Their coefficients, shape (support vectors, functions), and one constant per function.
    support_vectors_
        The support vectors, in the form in which they were passed.
    bounded_ : array
        For each of them, whether its coefficient is at its bound (in any function); the others are free.
    function_ : Expansion
        Σ βᵢ k(xᵢ, ·) + b over the support vectors alone.
    gap_
        The largest violation of optimality, in float64; infinite if the time limit left no time to compute it.
    objective_
        The dual objective of each problem; NaN if the time limit left no time to compute it.
    duality_gap_ : array
        A bound of the distance of each problem from its optimum: the primal at `function_` less the dual.
    n_iter_, status_ : int, str
        The number of pairs that were moved, and how the fit ended.
    end_
        The reason why the fit ended, the value of a `mercer.solvers.base.End`: "converged", "time", "iterations",
        "caller", "interrupted", "unbounded", "stalled", or "no margin" if no margin separates the classes.

    """

    _indefinite = True
    _added: ClassVar[dict[str, Any]] = {"end_": End.CONVERGED.value}

    tol: float
    max_iter: int | None
    max_time: float | None
    progress: Progress | None
    bounded_: NDArray[np.bool_]

    def _start(self) -> Solver:
        """The solver of a fit that begins now, its limits checked."""
        check_number(self.tol, "tol", above=0, such_as=1e-3)
        for name, unit, example in (("max_iter", "pairs", 100_000), ("max_time", "seconds", 60)):
            if getattr(self, name) is not None:
                check_number(
                    getattr(self, name), name, least=0, infinite=True, alternative="None for no limit",
                    advice=f"Pass a number of {unit} such as {example}.",
                )  # fmt: skip
        check_function(
            self.progress, "progress", kind="a function of a Step that returns whether to go on",
            advice="Pass a function such as lambda p: p.seconds < 60.",
        )  # fmt: skip
        return Solver(self)

    def _warn_if_indefinite(self, K: Gram, solver: Solver) -> None:
        """Warn if a kernel without a proof has a negative eigenvalue on these points, as far as time allows.

        Other models refuse such a kernel. Here a warning is enough: a quadratic on a bounded box has a minimum whatever
        K is, and the solver finds a point that no pair of variables can improve. But it may be a local minimum, and the
        duality gap bounds nothing. Only a part of a large matrix is checked: by interlacing, a negative eigenvalue of
        the part proves one of the whole. (If the part has none, nothing follows.)
        """
        # A proof of Precomputed(K) takes the eigenvalues of all of K, although only these rows matter.
        stored = any(isinstance(leaf, Precomputed) for leaf in self.kernel_.leaves)
        if not stored and self.kernel_.proof(getattr(self, "n_features_in_", None)).valid:
            return
        within_time = threads.time_limit(partial(solver.late, 0.25))
        with suppress(threads.OutOfTime), within_time, threads.single_threaded_blas():
            require_psd(sampled(K), warn=_warn_of_eigenvalue)

    def _along(self, Cs: Any, fit: Callable[[Self, float], None], *, infinite: bool = False) -> list[Self]:
        """A copy of this model for each of the Cs, fitted by growing C: `fit(model, growth)`, C/the last C or 1."""
        listed = np.atleast_1d(np.asarray(Cs, dtype=object)).ravel()
        requested = [check_number(C, "C", above=0, infinite=infinite) for C in listed]
        if not requested:
            raise InvalidInput(
                "`Cs` must hold at least one C", got="none", advice="Pass numbers such as np.logspace(-2, 3, 6)."
            )
        models: dict[float, Self] = {}
        before = np.inf
        for C in sorted(set(requested)):
            model = copy(self).set_params(C=C)
            try:
                fit(model, C / before if models and np.isfinite(C) else 1.0)
            except KeyboardInterrupt:
                begun = [model] if hasattr(model, "status_") else []
                raise PathInterrupted([*models.values(), *begun]) from None
            models[C], before = model, C
        return [models[C] for C in requested]

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
        """Keep the rows whose coefficients are not all zero, and at least one row.

        With a precomputed matrix only their columns are kept, in the order of `fit`: if every point is a support
        vector, the columns `support_` are the matrix itself.
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
        """The support vectors, in the form in which they were passed."""
        check_is_fitted(self)
        return self._support.raw

    def _queries(self, X: Any) -> Points:
        """X, checked as in every model; for a bare Precomputed(), the columns of the support vectors are enough."""
        check_is_fitted(self)
        if self.kernel_.pairwise and getattr(X, "shape", (0, 0))[-1] == len(self.support_):
            return self.kernel_.prepare(X)
        return super()._queries(X)

    def _report(self, solver: Solver, optima: Sequence[smo.Optimum], duality: Matrix) -> None:
        """Record how the fit ended; warn if the tolerance was not reached. ("No margin" is a result, not a failure.)"""
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
            self.status_ += "; half of `max_time` passed before the kernel values were computed, so none were stored"
        if first is not None:
            several = f" ({len(late)} of {len(optima)} problems)" if len(optima) > 1 else ""
            advice = "Raise `max_iter` or `max_time`, lower `C`, or scale the columns."
            if first.end is End.CALLER:
                advice = "Let the fit run longer: the model is the iterate at which `progress` stopped it."
            reached = f"gap {self.gap_:.3g} > tol = {self.tol:g}"
            if np.isinf(self.gap_):
                reached = "the model comes from the rows visited by then, and its gap is not known"
            warnings.warn(NotConverged(f"{first.status}{several}: {reached}", advice), stacklevel=outside())


def check_share(nu: Any) -> float:
    """The parameter `nu` in (0, 1], checked."""
    return check_number(nu, "nu", above=0, most=1, advice="Pass a share of the rows, such as 0.1.")


def sampled(K: Gram) -> Gram:
    """K, or if it is large, the Gram of evenly spread points."""
    n, most = K.shape[0], PSD_POINTS
    return K if n <= most else K.restrict(np.unique(np.linspace(0, n - 1, most).astype(np.int64)))


def _warn_of_eigenvalue(smallest: float, n: int) -> None:
    warnings.warn(
        f"The Gram matrix is not positive semidefinite: it has the eigenvalue {smallest:.4g} on {n} of these points, "
        "so that the solution may not be the best one. mc.check(kernel, X) shows where, mc.repair(K) mends a matrix.",
        RuntimeWarning,
        stacklevel=outside(),
    )
