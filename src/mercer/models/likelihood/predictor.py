"""Models that minimise a smooth loss of a linear predictor η = f(x), on features or in the space of a kernel.

A model defines the loss and its targets. This module has the two kinds of functions to minimise over (weights of
features, an expansion in a kernel), the call of the solver, the trace, and the state after an interrupt or a limit.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.batches import Batches, is_source
from mercer.data.frames import is_frame
from mercer.data.points import Points
from mercer.data.sampling import StreamedPoints, drawn
from mercer.errors import InvalidInput
from mercer.gram.centers import choose_centers
from mercer.gram.streamed import StreamedGram
from mercer.kernels.custom import Precomputed
from mercer.kernels.tables.rule import TableKernel
from mercer.kernels.tables.typed import Typed
from mercer.memory import budget as memory_budget
from mercer.models.base import (
    KernelEstimator,
    Matrix,
    check_columns,
    keeping,
    outside,
    penalties,
    resolve_kernel,
    shown,
    training_points,
)
from mercer.models.callbacks import CallbackSupportMixin
from mercer.models.convergence import NotConverged
from mercer.models.least_squares.design import Design
from mercer.models.progress import Listeners
from mercer.problems.losses import Loss
from mercer.problems.risk import Risk
from mercer.problems.spaces import Element, FeatureSpace, FunctionSpace, GramSpace, NystromSpace
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import costs, smooth
from mercer.solvers.base import End
from mercer.solvers.curvature import System, factorise
from mercer.solvers.descent import KEPT, Minimum, Trace
from mercer.solvers.nystrom import default_centers
from mercer.solvers.psd import require_psd
from mercer.solvers.step import Step
from mercer.validation import check_choice, check_function, check_number, check_numbers, check_whole_number, generator
from mercer.words import show_bytes

# Bytes per pair of points in an exact kernel fit: the matrix, its factor in half the precision, and a copy.
PAIR_BYTES = 8 + 4 + 4
FEATURES_PER_ROW = 1
"""Features per row: with more of them the fit uses the Gram matrix of the rows, if that can be factorised."""
# It does not if the rows are this many times farther from zero than from each other: the Gram matrix would lose twice
# as many digits.
FAR_FROM_ZERO = 1e3
# A warning is given if the rounding of the kernel's values is above this share of alpha.
ROUNDING_SHARE = 0.01
SAMPLE = 3000
"""Rows of a source in batches from which a kernel rule makes the kernel."""
# A fitted model of more points than this drops its matrices, to save memory; leave-one-out computes them again.
KEPT_ROWS = 2000


class Predictor(CallbackSupportMixin, KernelEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model whose linear predictor f minimises Σ wᵢ loss(yᵢ, f(xᵢ) + oᵢ) + ½ alpha ‖f‖²."""

    alpha: Any
    fit_intercept: bool
    solver: str
    step: Any
    start: Any
    tol: float
    max_iter: Any
    max_time: Any
    progress: Any
    budget: Any
    _fisher: Matrix

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _loss(self) -> Any:
        """The loss to minimise."""

    @abstractmethod
    def _open(self, X: Any, points: Points, y: Any) -> FunctionSpace:
        """The space of functions to minimise over, at the training points; sets `kernel_` and the columns."""

    @abstractmethod
    def _close(self, space: FunctionSpace, u: Element) -> None:
        """Set the attributes of the fitted function."""

    @abstractmethod
    def _values(self, points: Points) -> Matrix:
        """f at m points, shape (m, t)."""

    @abstractmethod
    def _again(self) -> FunctionSpace:
        """The space of functions of the fit, built again from its points."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    def _data(self, X: Any, y: Any, target: str | None) -> tuple[Any, Points, Any]:
        """The rows (a sample of those in batches), all of them as points, and the targets."""
        if is_source(X):
            raise InvalidInput(
                f"{type(self).__name__} needs all rows in memory",
                got="rows that are read in batches",
                advice="Load the rows as an array, or use a model with a kernel, which takes batches on centres.",
            )
        if target is not None:
            raise InvalidInput(
                "`target` names a column of a file", got=f"target={target!r} with X in memory", advice="Pass y instead."
            )
        return X, training_points(X), y

    def _minimise(
        self,
        space: FunctionSpace,
        loss: Loss,
        y: NDArray[Any],
        w: Matrix | None,
        offset: Matrix | None = None,
        start: Element | None = None,
    ) -> Minimum:
        """Minimise; set the function, the trace and the status. After an interrupt they are those of the best iterate.

        `_finish` then raises the interrupt.
        """
        check_function(
            self.progress,
            "progress",
            kind="a function of a Step that returns whether to go on",
            advice="For a line on the terminal, call model.set_callbacks(mc.SolverProgress()).",
        )
        for name in ("_curvature", "_fisher"):  # of an earlier fit
            self.__dict__.pop(name, None)
        risk = Risk(space, loss, y, self._penalty(), w, offset)
        listeners = Listeners(self.progress, getattr(self, "_watch", None))
        task = listeners.begin(steps=True)

        def report(step: Step) -> bool:
            return listeners.report(task, step)

        minimum = smooth.minimise(
            risk,
            self.solver,
            start=start if start is not None else self._begin(space, loss),
            step=self._step(),
            tol=check_number(self.tol, "tol", above=0, such_as=1e-6),
            max_iter=self._max_iter(),
            max_time=self._max_time(),
            progress=report,
        )
        listeners.end(task)
        self._risk, self._minimum = risk, minimum
        self.trace_, self.n_iter_ = self._trace(space, minimum.trace), len(minimum.trace) - 1
        self.objective_ = minimum.state.value
        self.status_, self.end_ = f"{minimum.status}; {self._where(space)}", minimum.end.value
        self._close(space, minimum.state.at)
        return minimum

    def _finish(self) -> None:
        """Drop large matrices; raise the interrupt that ended the fit, or warn if it did not converge."""
        minimum, space = self._minimum, self._risk.space
        if not isinstance(space, FeatureSpace) and space.n > KEPT_ROWS:
            self.__dict__ = self.__getstate__()
        if minimum.interrupted:
            raise keeping(self, KeyboardInterrupt("interrupted; the best iterate so far was kept"))
        if not minimum.converged:
            advice = "Raise `max_iter`, scale the columns, or use solver='newton'."
            if minimum.overshot:
                advice = "Use a shorter `step`, or step=None for a safe one."
            warnings.warn(NotConverged(self.status_, advice), stacklevel=outside())

    def _penalty(self) -> float:
        return float(penalties(self.alpha, 1)[0])

    def _step(self) -> float | None:
        if self.step is None:
            return None
        if self.solver != "gradient":
            raise InvalidInput(
                "`step` is the fixed step of solver='gradient' and requires this solver",
                got=f"solver={self.solver!r}",
                advice="Leave out `step`, or pass solver='gradient'.",
            )
        return check_number(self.step, "step", above=0, alternative="None", such_as=0.1)

    def _max_iter(self) -> int | None:
        if self.max_iter is None:
            return None
        return check_whole_number(self.max_iter, "max_iter", alternative="None", such_as=100)

    def _max_time(self) -> float | None:
        if self.max_time is None:
            return None
        return check_number(self.max_time, "max_time", above=0, alternative="None for no limit", such_as=60)

    def _begin(self, space: FunctionSpace, loss: Loss) -> Element | None:
        """The function to begin at, or None for the solver's default."""
        return None

    def _trace(self, space: FunctionSpace, trace: Trace) -> Trace:
        """The trace, with the path in the parameters of the model."""
        return trace

    @abstractmethod
    def _where(self, space: FunctionSpace) -> str:
        """The kind and size of the space, for `status_`."""

    def _tail(self, n: int) -> Matrix:
        """The values of the functions that are not penalised: a column of ones for the intercept, or none."""
        return np.ones((n, 1 if self.fit_intercept else 0))

    # -- after it -----------------------------------------------------------------------------------------------------

    def _whole(self) -> Risk:
        """The problem that was solved; built again if its matrices were dropped, as in a pickle."""
        check_is_fitted(self)
        if "_risk" not in self.__dict__:
            y, w, offset, alpha, coef, tail = self._packed
            risk = Risk(self._again(), self._loss(), y, alpha, w, offset)
            state = risk.at(risk.space.element(coef, tail))
            trace: Any = self.__dict__.get("trace_")  # not in files
            end = End(getattr(self, "end_", "converged"))  # not in older files
            self._risk, self._minimum = risk, Minimum(state, end, self.status_, trace)
        return self._risk

    def __getstate__(self) -> dict[str, Any]:
        """The points and coefficients, without the matrices, which can be computed again."""
        state: dict[str, Any] = super().__getstate__()
        if "_risk" in state:  # not packed yet
            risk, at = state["_risk"], state["_minimum"].state.at
            state["_packed"] = risk.y, risk.weights, risk.offset, risk.alpha, at.coef, at.tail
        matrices = ("_risk", "_minimum", "_curvature", "_Phi")
        return {name: value for name, value in state.items() if name not in matrices}

    def _training_only(self) -> tuple[str, ...]:
        return ("_packed", "_points", "_kept")

    def _system(self) -> System:
        """The factorised curvature at the minimum, with Fisher's weights."""
        if "_curvature" not in self.__dict__:
            risk = self._whole()
            self._curvature = factorise(risk.space, self._fisher_weights(), risk.alpha, precise=True)
        return self._curvature

    def _fisher_weights(self) -> Matrix:
        """W at the minimum, shape (n,)."""
        if "_fisher" in self.__dict__:  # from a file, so that a loaded model agrees to the last digit
            return self._fisher
        w = self._whole().weights
        return (1.0 if w is None else w) * self._minimum.state.terms.fisher[:, 0]


class FeaturePredictor(Predictor):
    """f(x) = wᵀφ(x) + b on explicit features."""

    features: Any
    _Phi: Any

    def _open(self, X: Any, points: Points, y: Any) -> FunctionSpace:
        self._points, self._design = points, Design.of(self.features, points, y)
        self.kernel_, self.features_ = self._design.kernel, self._design.phi
        check_columns(self, X, reset=True)
        Phi = self._design.matrix(points)
        n, m = Phi.shape
        wide = m > FEATURES_PER_ROW * n and n <= costs.FACTORED_FEATURES and self._penalty() > 0 and self.start is None
        self._wide = wide and not (self.fit_intercept and _far_from_zero(Phi))
        self._Phi = Phi if self._wide else None
        return self._space(Phi)

    def _again(self) -> FunctionSpace:
        return self._space(self._design.matrix(self._points))

    def _space(self, Phi: Any) -> FunctionSpace:
        tail = self._tail(Phi.shape[0])
        if not self._wide:
            return FeatureSpace(Phi, tail)
        K = (Phi @ Phi.T).toarray() if sp.issparse(Phi) else np.asarray(Phi, np.float64) @ np.asarray(Phi.T, float)
        return GramSpace(gram.of(Precomputed(K), np.arange(len(K))), tail)

    def _close(self, space: FunctionSpace, u: Element) -> None:
        """Set the weights. Without a penalty they are the shortest of all that give the same values, as in `Ridge`."""
        self._unseen = np.empty((space.size, 0))
        free = self._penalty() == 0 and self.start is None
        if free and isinstance(space, FeatureSpace) and 0 < space.size <= costs.FACTORED_FEATURES:
            Q = self._unseen = space.unseen()
            u = space.element(u.coef - Q @ (Q.T @ u.coef), u.tail) if Q.size else u
        if isinstance(space, FeatureSpace):
            self._weights, self._constants = u.coef, space.intercept(u)
        else:
            self._weights = np.asarray(self._Phi.T @ u.coef)
            self._constants = u.tail[0] if len(u.tail) else np.zeros(u.coef.shape[1])
        self._Phi = None

    @property
    def function_(self) -> Expansion:
        """f as an expansion in the kernel φ(x)ᵀφ(z), w = Σ cᵢ φ(xᵢ) over the training points."""
        check_is_fitted(self)
        Phi = self._design.matrix(self._points)
        coef = np.linalg.lstsq(Phi.toarray().T if sp.issparse(Phi) else Phi.T, self._weights, rcond=None)[0]
        one = coef.shape[1] == 1
        tail = Tail.constant(float(self._constants[0]) if one else self._constants) if self.fit_intercept else None
        return Expansion(self.kernel_, self._points, coef[:, 0] if one else coef, tail)

    def _values(self, points: Points) -> Matrix:
        return np.asarray(self._design.matrix(points) @ self._weights + self._constants, dtype=np.float64)

    def _begin(self, space: FunctionSpace, loss: Loss) -> Element | None:
        if self.start is None:
            return None
        assert isinstance(space, FeatureSpace)
        t, size = loss.outputs, space.size + bool(self.fit_intercept)
        last = ", then the intercept" if self.fit_intercept else ""
        required = f"`start` must hold {size} finite numbers: a weight per feature{last}"
        required += f", for each of {t} classes: shape ({size}, {t})" if t > 1 else ""
        advice = "Pass None to begin at a constant."
        shapes = [(size, t), (size,)] if t == 1 else [(size, t)]
        start = check_numbers(self.start, required, shapes=shapes, advice=advice).reshape(size, t)
        constants = start[-1] if self.fit_intercept else np.zeros(t)
        return space.from_weights(start[: space.size], constants)

    def _trace(self, space: FunctionSpace, trace: Trace) -> Trace:
        """The path in weights and intercept of wᵀx + b."""
        path = trace.coef
        if isinstance(space, FeatureSpace) and path.size and self.fit_intercept:
            path[:, -1] -= path[:, :-1] @ space.mean
        elif isinstance(space, GramSpace) and path.size:
            few = self._Phi.shape[1] <= KEPT  # the trace holds the weights only if there are few
            weights = np.asarray((self._Phi.T @ path[:, : space.n].T).T) if few else np.empty((0, 0))
            trace = replace(trace, coef=np.hstack([weights, path[:, space.n :]]) if few else weights)
        return trace

    def _where(self, space: FunctionSpace) -> str:
        if isinstance(space, GramSpace):
            return f"{self._Phi.shape[1]} features through the Gram matrix of {space.n} rows"
        return f"{space.size} features of {space.n} rows"


class KernelPredictor(Predictor):
    """f = Σ cᵢ k(xᵢ, ·) + b in the space of a kernel: on all points, or on Nyström centres."""

    _in_batches: ClassVar[bool] = True

    kernel: Any
    n_centers: Any
    centers: Any
    random_state: Any

    def _data(self, X: Any, y: Any, target: str | None) -> tuple[Any, Points, Any]:
        if not is_source(X):
            return super()._data(X, y, target)
        batches = Batches.of(X, y, target)
        if isinstance(self.kernel, (TableKernel, Typed)):
            batches = batches.as_tables()
        wanted = default_centers(batches.n, memory_budget(self.budget)) if self.n_centers is None else self.n_centers
        sample = drawn(batches, max(wanted, SAMPLE), generator(self.random_state))
        return sample.X, StreamedPoints(batches, sample), sample.y if y is None else y

    def _gram(self, points: Points) -> gram.Gram:
        if isinstance(points, StreamedPoints):
            return StreamedGram(self.kernel_, points.batches, self.kernel_.prepare(points.sample), np.float64)
        return gram.of(self.kernel_, points, dtype=np.float64, budget=self.budget)

    def _open(self, X: Any, points: Points, y: Any) -> FunctionSpace:
        self.kernel_ = resolve_kernel(self.kernel, points)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        if isinstance(points, StreamedPoints) and points.batches.names is not None and not is_frame(X):
            self.feature_names_in_ = np.array(points.batches.names, dtype=object)
        if self._penalty() == 0 and not self.kernel_.tags.finite_rank:
            raise InvalidInput(
                "`alpha` must be > 0 for a kernel of infinite rank, whose functions can fit any targets exactly",
                got=shown(self.alpha),
                advice="Pass a number such as 1e-3; only the models on features accept 0.",
            )
        n, limit = points.n, memory_budget(self.budget)
        K = self._gram(points)
        self._points, self._centres, self._why = points, None, ""
        exact, m, how = PAIR_BYTES * n * n, self.n_centers, self.centers
        if isinstance(points, StreamedPoints) and isinstance(how, str):
            check_choice(how, "centers", ("uniform",), alternative="the centres themselves", advice="Use 'uniform'.")
            m = min(n, default_centers(n, limit) if m is None else m)
            how = points.sample.take(slice(0, m)).raw
        elif m is None and isinstance(self.centers, str):
            if self._penalty() == 0:
                m = n  # reduced to as many centres as the rank: that system has full rank, the Gram matrix does not
            elif exact <= limit:
                if not self.kernel_.proof(getattr(self, "n_features_in_", None)).valid:
                    require_psd(K)  # with centres, their own matrix is checked instead
                self._warn_of_rounding(K)
                return GramSpace(K, self._tail(n))
            else:
                m = default_centers(n, limit)
                self._why = f" ({show_bytes(exact)} for all points would not fit in {show_bytes(limit)})"
        chosen = choose_centers(K, m, how, rng=generator(self.random_state))
        Phi = K.low_rank(chosen, np.float64, limit)
        self._centres, self._Phi = Phi.centers, Phi
        return NystromSpace(Phi, self._tail(n))

    def _again(self) -> FunctionSpace:
        tail = self._tail(self._points.n)
        K = self._gram(self._points)
        if self._centres is None:
            return GramSpace(K, tail)
        return NystromSpace(K.low_rank(self._centres, np.float64, memory_budget(self.budget)), tail)

    def _warn_of_rounding(self, K: gram.Gram) -> None:
        """Warn if the rounding of large kernel values is not far below alpha: the fit is then inexact."""
        largest = float(np.abs(K.diag()).max())
        rounding = K.shape[0] * float(np.finfo(np.float64).eps) * largest
        if rounding > ROUNDING_SHARE * self._penalty():
            warnings.warn(
                f"Kernel values up to {largest:.3g} have a rounding error of about {rounding:.1g}, close to alpha = "
                f"{self.alpha:g}: the fit is inexact. Centre and scale the columns, or raise `alpha`.",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    def _close(self, space: FunctionSpace, u: Element) -> None:
        coef, points = u.coef, self._points
        if isinstance(space, NystromSpace):
            coef, points = space.Phi.coefficients(coef), space.Phi.centers
        b = u.tail[0] if len(u.tail) else np.zeros(coef.shape[1])
        one = coef.shape[1] == 1
        tail = Tail.constant(float(b[0]) if one else b) if self.fit_intercept else None
        self.function_ = Expansion(self.kernel_, points, coef[:, 0] if one else coef, tail)
        self.dual_coef_: Any = self.function_.coef
        self.intercept_: Any = float(b[0]) if one else b

    def _values(self, points: Points) -> Matrix:
        return np.asarray(self.function_(points), dtype=np.float64).reshape(points.n, -1)

    def _where(self, space: FunctionSpace) -> str:
        if isinstance(space, NystromSpace):
            return f"on {space.size} centres for {space.n} points{self._why}"
        return f"on all {space.n} points"


def _far_from_zero(Phi: Any) -> bool:
    """Whether rows are much nearer to each other than to zero."""
    if sp.issparse(Phi):
        return False
    mean = Phi.mean(axis=0, dtype=np.float64)
    return bool(mean @ mean > FAR_FROM_ZERO**2 * np.square(Phi - mean).sum() / len(Phi))
