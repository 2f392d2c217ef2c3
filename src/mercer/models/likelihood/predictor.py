"""What models of a smooth loss share: a linear predictor η = f(x), in columns or in a kernel's space, and its descent.

A model says what the loss and its targets are. Here are the two kinds of functions it may minimise over (weights of
features, an expansion in a kernel), the methods, the trace, and what an interrupt or a limit leaves behind.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.gram.centers import choose_centers
from mercer.kernels.custom import Precomputed
from mercer.memory import budget as memory_budget
from mercer.memory import show_bytes
from mercer.models.base import (
    KernelEstimator,
    Matrix,
    check_columns,
    keeping,
    outside,
    penalties,
    resolve_kernel,
    shown,
)
from mercer.models.callbacks import CallbackSupportMixin
from mercer.models.convergence import NotConverged
from mercer.models.least_squares.design import Design
from mercer.models.progress import Listeners
from mercer.problems.losses import Loss
from mercer.problems.risk import Risk
from mercer.problems.spaces import Element, FeatureSpace, GramSpace, NystromSpace, Space
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smooth
from mercer.solvers.base import End
from mercer.solvers.curvature import WIDE, System, system
from mercer.solvers.descent import KEPT, Minimum, Step, Trace
from mercer.solvers.nystrom import default_centers
from mercer.solvers.psd import require_psd

# Bytes per squared number of points of an exact kernel fit: the matrix, its factor in half the precision, and a copy.
EXACT = 8 + 4 + 4
# Features that are this many times more than rows are solved through the rows' Gram matrix, up to so many rows, unless
# they are so many times as far from zero as from each other: it would lose the square of that in digits.
TIMES, ROWS, FAR = 2, 4000, 1e3
# The rounding of a kernel's values must be below this share of alpha.
ROUNDED = 0.01
# A fitted model of more points than this does not hold its matrices; who asks for leave-one-out waits for them.
HELD = 2000


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
        """The loss of the fit."""

    @abstractmethod
    def _open(self, X: Any, points: Points, y: Any) -> Space:
        """The functions to minimise over, at the training points; sets `kernel_` and the columns."""

    @abstractmethod
    def _close(self, space: Space, u: Element) -> None:
        """Keep the fitted function."""

    @abstractmethod
    def _values(self, points: Points) -> Matrix:
        """f at m points, shape (m, t)."""

    @abstractmethod
    def _again(self) -> Space:
        """The functions of the fit, built again from its points."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    def _minimise(
        self,
        space: Space,
        loss: Loss,
        y: NDArray[Any],
        w: Matrix | None,
        offset: Matrix | None = None,
        start: Element | None = None,
    ) -> Minimum:
        """Minimise, keep the function, the trace and the status; an interrupt keeps the best iterate and goes on."""
        if self.progress is not None and not callable(self.progress):
            raise InvalidInput(
                "`progress` must be a function of a Step that returns whether to go on",
                got=shown(self.progress),
                advice="For a line on the terminal: model.set_callbacks(mc.SolverProgress()).",
            )
        for name in ("_curvature", "_fisher"):  # of an earlier fit
            self.__dict__.pop(name, None)
        risk = Risk(space, loss, y, self._penalty(), w, offset)
        listeners = Listeners(self.progress, getattr(self, "_watch", None))
        task = listeners.begin(steps=True)

        def told(step: Step) -> bool:
            return listeners.told(task, step)

        found = smooth.minimise(
            risk,
            self.solver,
            start=start if start is not None else self._begin(space, loss),
            step=self._step(),
            tol=self._tolerance(),
            max_iter=self._limit("max_iter", whole=True),
            max_time=self._limit("max_time"),
            progress=told,
        )
        listeners.end(task)
        self._risk, self._minimum = risk, found
        self.trace_, self.n_iter_ = self._trace(space, found.trace), len(found.trace) - 1
        self.objective_ = found.state.value
        self.status_, self.end_ = f"{found.status}; {self._where(space)}", found.end.value
        self._close(space, found.state.at)
        return found

    def _finish(self) -> None:
        """Raise the interrupt that a fit ended with, or warn of what it did not reach; let go of large matrices."""
        found, space = self._minimum, self._risk.space
        if not isinstance(space, FeatureSpace) and space.n > HELD:
            self.__dict__ = self.__getstate__()
        if found.interrupted:
            raise keeping(self, KeyboardInterrupt("interrupted; the best iterate so far was kept"))
        if not found.converged:
            advice = "Raise `max_iter`, scale the columns, or take solver='newton'."
            if found.overshot:
                advice = "Take a shorter `step`, or None for one that is safe."
            warnings.warn(NotConverged(self.status_, advice), stacklevel=outside())

    def _penalty(self) -> float:
        return float(penalties(self.alpha, 1)[0])

    def _step(self) -> float | None:
        if self.step is None:
            return None
        if self.solver != "gradient":
            raise InvalidInput(
                "`step` is the fixed step of solver='gradient'", got=f"solver={self.solver!r}", advice="Leave it out."
            )
        return _number(self.step, "step")

    def _tolerance(self) -> float:
        return _number(self.tol, "tol")

    def _limit(self, name: str, *, whole: bool = False) -> Any:
        value = getattr(self, name)
        if value is None:
            return None
        found = _number(value, name)
        if whole and found != int(found):
            raise InvalidInput(f"`{name}` must be a whole number ≥ 1, or None", got=shown(value), advice="Such as 100.")
        return int(found) if whole else found

    def _begin(self, space: Space, loss: Loss) -> Element | None:
        """The start that was asked for, or None."""
        if getattr(self, "start", None) is not None:
            raise InvalidInput("`start` is for weights of features", got="a kernel", advice="Leave it out.")
        return None

    def _trace(self, space: Space, trace: Trace) -> Trace:
        return trace

    def _where(self, space: Space) -> str:
        """In words, what kind of functions."""
        return f"{space.size} coefficients"

    def _tail(self, n: int) -> Matrix:
        return np.ones((n, 1 if self.fit_intercept else 0))

    # -- after it -----------------------------------------------------------------------------------------------------

    def _whole(self) -> Risk:
        """The problem that was solved; where its matrices were let go of, as in a pickle, built again."""
        check_is_fitted(self)
        if "_risk" not in self.__dict__:
            y, w, offset, alpha, coef, tail = self._packed
            risk = Risk(self._again(), self._loss(), y, alpha, w, offset)
            state = risk.at(risk.space.element(coef, tail))
            trace: Any = self.__dict__.get("trace_")  # which files leave out
            end = End(getattr(self, "end_", "converged"))  # which older files do not have
            self._risk, self._minimum = risk, Minimum(state, end, self.status_, trace)
        return self._risk

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: points and coefficients, not the matrices, which can be computed again."""
        state: dict[str, Any] = super().__getstate__()
        if "_risk" in state:  # not packed yet
            risk, at = state["_risk"], state["_minimum"].state.at
            state["_packed"] = risk.y, risk.weights, risk.offset, risk.alpha, at.coef, at.tail
        gone = ("_risk", "_minimum", "_curvature", "_Phi")
        return {name: value for name, value in state.items() if name not in gone}

    def _training_only(self) -> tuple[str, ...]:
        return ("_packed", "_points", "_kept")

    def _system(self) -> System:
        """The factorised curvature at the minimum, with Fisher's weights."""
        if "_curvature" not in self.__dict__:
            risk = self._whole()
            self._curvature = system(risk.space, self._fisher_weights(), risk.alpha, precise=True)
        return self._curvature

    def _fisher_weights(self) -> Matrix:
        """W at the minimum, shape (n,)."""
        if "_fisher" in self.__dict__:  # of a file, to the last digit
            return self._fisher
        w = self._whole().weights
        return (1.0 if w is None else w) * self._minimum.state.terms.fisher[:, 0]


class FeaturePredictor(Predictor):
    """f(x) = wᵀφ(x) + b on explicit features."""

    features: Any
    _Phi: Any

    def _open(self, X: Any, points: Points, y: Any) -> Space:
        self._points, self._design = points, Design.of(self.features, points, y)
        self.kernel_, self.features_ = self._design.kernel, self._design.phi
        check_columns(self, X, reset=True)
        Phi = self._design.matrix(points)
        n, m = Phi.shape
        wide = m > TIMES * n and n <= ROWS and self._penalty() > 0 and self.start is None
        self._wide = wide and not (self.fit_intercept and _far_from_zero(Phi))
        self._Phi = Phi if self._wide else None
        return self._space(Phi)

    def _again(self) -> Space:
        return self._space(self._design.matrix(self._points))

    def _space(self, Phi: Any) -> Space:
        tail = self._tail(Phi.shape[0])
        if not self._wide:
            return FeatureSpace(Phi, tail)
        K = (Phi @ Phi.T).toarray() if sp.issparse(Phi) else np.asarray(Phi, np.float64) @ np.asarray(Phi.T, float)
        return GramSpace(gram.of(Precomputed(K), np.arange(len(K))), tail)

    def _close(self, space: Space, u: Element) -> None:
        """Keep the weights; without a penalty, of all that give the same values the shortest, as in `Ridge`."""
        self._unseen = np.empty((space.size, 0))
        if isinstance(space, FeatureSpace) and self._penalty() == 0 and self.start is None and 0 < space.size <= WIDE:
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

    def _begin(self, space: Space, loss: Loss) -> Element | None:
        if self.start is None:
            return None
        assert isinstance(space, FeatureSpace)
        t, size = loss.outputs, space.size + bool(self.fit_intercept)
        last = ", then the intercept" if self.fit_intercept else ""
        required, advice = f"`start` must hold {size} numbers: a weight per feature{last}", "None begins at a constant."
        required += f", for each of {t} classes: shape ({size}, {t})" if t > 1 else ""
        try:
            given = np.asarray(self.start, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(required, got=str(error), advice=advice) from None
        fits = given.shape == (size, t) or (t == 1 and given.shape == (size,))
        if not fits or not np.isfinite(given).all():
            raise InvalidInput(required, got=f"shape {np.shape(self.start)}", advice=advice)
        given = given.reshape(size, t)
        constants = given[-1] if self.fit_intercept else np.zeros(t)
        return space.from_weights(given[: space.size], constants)

    def _trace(self, space: Space, trace: Trace) -> Trace:
        """The path in weights and intercept of wᵀx + b."""
        path = trace.coef
        if isinstance(space, FeatureSpace) and path.size and self.fit_intercept:
            path[:, -1] -= path[:, :-1] @ space.mean
        elif isinstance(space, GramSpace) and path.size:
            few = self._Phi.shape[1] <= KEPT
            weights = np.asarray((self._Phi.T @ path[:, : space.n].T).T) if few else np.empty((0, 0))
            trace = replace(trace, coef=np.hstack([weights, path[:, space.n :]]) if few else weights)
        return trace

    def _where(self, space: Space) -> str:
        if isinstance(space, GramSpace):
            return f"{self._Phi.shape[1]} features through the Gram matrix of {space.n} rows"
        return f"{space.size} features of {space.n} rows"


class KernelPredictor(Predictor):
    """f = Σ cᵢ k(xᵢ, ·) + b in the space of a kernel: on all points, or on Nyström centres."""

    kernel: Any
    n_centers: Any
    centers: Any
    random_state: Any

    def _open(self, X: Any, points: Points, y: Any) -> Space:
        self.kernel_ = resolve_kernel(self.kernel, points)
        self.kernel_.touch(points)
        check_columns(self, X, reset=True)
        if self._penalty() == 0 and not self.kernel_.tags.finite_rank:
            raise InvalidInput(
                "`alpha` must be > 0 for a kernel, whose functions fit any targets exactly",
                got=shown(self.alpha),
                advice="Try 1e-3; the linear models take 0.",
            )
        n, limit = points.n, memory_budget(self.budget)
        K = gram.of(self.kernel_, points, dtype=np.float64, budget=self.budget)
        self._points, self._centres, self._why = points, None, ""
        exact, m = EXACT * n * n, self.n_centers
        if m is None and isinstance(self.centers, str):
            if self._penalty() == 0:
                m = n  # of them as many as the rank are kept: a system of full rank, which the Gram matrix is not
            elif exact <= limit:
                if not self.kernel_.proof(getattr(self, "n_features_in_", None)).valid:
                    require_psd(K)  # of centres, their own matrix is checked
                self._warn_of_rounding(K)
                return GramSpace(K, self._tail(n))
            else:
                m = default_centers(n, limit)
                self._why = f" ({show_bytes(exact)} for all points would not fit in {show_bytes(limit)})"
        chosen = choose_centers(K, m, self.centers, rng=np.random.default_rng(self.random_state))
        Phi = K.low_rank(chosen, np.float64, limit)
        self._centres, self._Phi = Phi.centers, Phi
        return NystromSpace(Phi, self._tail(n))

    def _again(self) -> Space:
        tail = self._tail(self._points.n)
        K = gram.of(self.kernel_, self._points, dtype=np.float64, budget=self.budget)
        if self._centres is None:
            return GramSpace(K, tail)
        return NystromSpace(K.low_rank(self._centres, np.float64, memory_budget(self.budget)), tail)

    def _warn_of_rounding(self, K: gram.Gram) -> None:
        """Where the rounding of large kernel values is not far below alpha, the fit is not to be relied on."""
        largest = float(np.abs(K.diag()).max())
        rounding = K.shape[0] * float(np.finfo(np.float64).eps) * largest
        if rounding > ROUNDED * self._penalty():
            warnings.warn(
                f"Kernel values up to {largest:.3g} have a rounding of about {rounding:.1g}, near alpha = "
                f"{self.alpha:g}: the fit is inexact. Centre and scale the columns, or raise `alpha`.",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    def _close(self, space: Space, u: Element) -> None:
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

    def _where(self, space: Space) -> str:
        if isinstance(space, NystromSpace):
            return f"on {space.size} centres for {space.n} points{self._why}"
        return f"on all {space.n} points"


def _far_from_zero(Phi: Any) -> bool:
    """Whether rows are much nearer to each other than to zero."""
    if sp.issparse(Phi):
        return False
    mean = Phi.mean(axis=0, dtype=np.float64)
    return bool(mean @ mean > FAR**2 * np.square(Phi - mean).sum() / len(Phi))


def _number(value: Any, name: str) -> float:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not 0 < value < np.inf:
        raise InvalidInput(f"`{name}` must be a number > 0", got=shown(value), advice="The default is fine.")
    return float(value)
