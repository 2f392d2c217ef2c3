"""Novelty by support vectors: the region that holds most of the data, as the kernel sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from mercer import gram
from mercer.gram import Gram
from mercer.models.base import Matrix, _columns, keeping, resolve_kernel, training_points, weights
from mercer.models.callbacks import with_callbacks
from mercer.models.progress import watched
from mercer.models.svm.margins import at_bound, duality_gap
from mercer.models.svm.support import (
    Interrupted,
    SupportVectorMachine,
    filled,
    flatten,
    limits,
    share,
)
from mercer.problems.box import BoxProblem
from mercer.solvers import smo


class OneClassSVM(OutlierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn has no types
    """Novelty detection: the half-space of feature space farthest from the origin that leaves a share nu outside.

    f(x) = Σ βᵢ k(xᵢ, x) − ρ, where β minimises ½ βᵀKβ over 0 ≤ βᵢ ≤ wᵢ, Σβ = ν Σw. At most a share nu of the training
    points (each with its weight) has f < 0, and at least a share nu are support vectors.

    Parameters
    ----------
    kernel : a kernel, a rule X → kernel, or None for a Gaussian with the median width.
    nu : the share, in (0, 1].
    tol : the violation of optimality at which to stop, in the units of `score_samples`.
    max_iter, max_time : pairs and seconds at the most, or None.
    progress : called now and then with a `Progress` (iteration, gap, objective, support, seconds); False stops.

    Attributes
    ----------
    kernel_ : the kernel that was used.
    offset_ : ρ, so that decision_function = score_samples − offset_.
    support_, support_vectors_ : positions of the support vectors among the rows of `fit`, shape (s,), and they.
    bounded_ : for each of them, whether its coefficient is at its bound: only these can be outside.
    dual_coef_, intercept_ : their β, shape (s,), and −ρ.
    function_ : f, an `Expansion` over the support vectors alone.
    gap_, objective_ : the largest violation of optimality, in float64, and ½ βᵀKβ.
    duality_gap_ : the primal ½ ‖f + ρ‖² − ρν Σw + Σ wᵢ max(0, −f(xᵢ)) less the dual, ≥ 0.
    n_iter_, status_ : pairs that were moved, and how it ended.

    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mc.OneClassSVM(mc.Gaussian(1.0), nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        nu: float = 0.5,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_time: float | None = None,
        progress: Callable[[smo.Progress], bool] | None = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to n points X; y is not used.

        A sample weight counts its row as often: weight 2 is the row given twice, weight 0 the row left out. An
        interrupt keeps the best iterate and is raised again.
        """
        data = self._data(X, sample_weight)
        with watched(self, 1, X, y, sample_weight):
            return self._fit(*data)

    def _data(self, X: Any, sample_weight: Any) -> tuple[Gram, NDArray[np.int64], Matrix]:
        """The Gram of the rows whose weight is not zero, their positions, and their weights."""
        limits(self)
        share(self.nu)
        self._start_clock()
        points = training_points(X)
        w = weights(sample_weight, points.n)
        w = np.ones(points.n) if w is None else w
        kept = np.flatnonzero(w)
        points = points if len(kept) == points.n else points.take(kept)
        self.kernel_ = resolve_kernel(self.kernel, points, indefinite=True)
        self.kernel_.touch(points)
        _columns(self, X, reset=True)
        K = gram.of(self.kernel_, points)
        self._warn_if_not_psd(K)
        return K, kept, w[kept]

    def _fit(self, K: Gram, kept: NDArray[np.int64], w: Matrix) -> Self:
        self._go_on = True
        zeros = np.zeros(len(w))
        problem = BoxProblem(K, zeros, zeros, w, filled(w, float(self.nu) * w.sum()))
        interrupt: Interrupted | None = None
        try:
            optimum = self._optimise([problem])[0]
        except Interrupted as stop:
            optimum, interrupt = stop.optimum, stop
        # Any point that is not at its bound counts as inside, so that at most nu is outside whatever tol and rounding.
        least = problem.bounds_met(optimum.beta, optimum.gradient)[1]
        rho = min(-problem.offsets(optimum.beta, optimum.gradient)[0], least)
        b = np.array([32 * float(np.finfo(K.dtype).eps) * np.nanmax(abs(optimum.gradient)) - rho])
        used = self._keep(K.x, kept, optimum.beta[:, None].astype(K.dtype, copy=False), b)
        self.bounded_ = at_bound(problem, optimum.beta)[used]
        flatten(self)
        self.offset_ = -self.intercept_
        self._report([optimum], [duality_gap(problem, optimum, b)])
        if interrupt is not None:
            raise keeping(self, interrupt)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """f(x) for m points: negative outside the region."""
        points = self._queries(X)
        return self.function_(points)

    def score_samples(self, X: Any) -> NDArray[Any]:
        """Σ βᵢ k(xᵢ, x) for m points: the larger, the more ordinary."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 inside the region, −1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
