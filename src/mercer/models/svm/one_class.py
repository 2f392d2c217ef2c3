"""Novelty detection by support vectors: the region of the kernel's space that holds most of the data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from mercer import gram
from mercer.gram import Gram
from mercer.models.base import Rows, keeping, training_points
from mercer.models.callbacks import with_callbacks
from mercer.models.progress import watched
from mercer.models.svm.margins import at_bound, duality_gap
from mercer.models.svm.problems import one_class
from mercer.models.svm.solving import Solver
from mercer.models.svm.support import SupportVectorMachine, check_share
from mercer.solvers.step import Progress


@dataclass(eq=False, repr=False)
class OneClassSVM(OutlierMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn has no types
    """Novelty detection: the half-space of feature space farthest from the origin that leaves a share nu outside.

    f(x) = Σ βᵢ k(xᵢ, x) − ρ, where β minimises ½ βᵀKβ over 0 ≤ βᵢ ≤ wᵢ, Σβ = ν Σw. At most a share nu of the training
    points (each with its weight) has f < 0, and at least a share nu are support vectors.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    nu : float
        The share, in (0, 1].
    tol : float
        The violation of optimality at which to stop, in the units of `score_samples`.
    max_iter, max_time : int or None, float or None
        The largest number of pairs and of seconds, or None.
    progress : Progress or None
        Called regularly with a `Step` (iteration, gap, tol, objective, support, seconds); False stops the fit.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    offset_
        ρ, so that decision_function = score_samples − offset_.
    support_, support_vectors_ : array
        Positions of the support vectors among the rows of `fit`, shape (s,), and their points.
    bounded_ : array
        For each of them, whether its coefficient is at its bound: only these can be outside.
    dual_coef_, intercept_ : array, float or array
        Their β, shape (s,), and −ρ.
    function_ : Expansion
        f, an `Expansion` over the support vectors alone.
    gap_, objective_ : float, array
        The largest violation of optimality, in float64, and ½ βᵀKβ.
    duality_gap_ : array
        The primal ½ ‖f + ρ‖² − ρν Σw + Σ wᵢ max(0, −f(xᵢ)) less the dual, ≥ 0.
    n_iter_, status_ : int, str
        The number of pairs that were moved, and how the fit ended.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mc.OneClassSVM(mc.Gaussian(1.0), nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    kernel: Any = None
    _: KW_ONLY
    nu: float = 0.5
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to n points X; y is not used.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. An interrupt keeps the best iterate and is raised again.
        """
        check_share(self.nu)
        solver = self._start()
        points = training_points(X)
        rows = Rows.of(points, np.zeros(points.n), sample_weight)
        self._resolve(X, rows.points)
        K = gram.of(self.kernel_, rows.points)
        self._warn_if_indefinite(K, solver)
        with watched(self, 1, X, y, sample_weight):
            self._fit(solver, rows, K)
        return self

    def _fit(self, solver: Solver, rows: Rows, K: Gram) -> None:
        problem = one_class(K, rows.weights, float(self.nu))
        optima = solver.solve_all([problem])
        beta, gradient = optima[0].beta, optima[0].gradient
        # A point that is not at its bound counts as inside, so that tol and rounding leave at most nu outside.
        rho = min(-problem.offsets(beta, gradient)[0], problem.bounds_met(beta, gradient)[1])
        b = np.array([32 * float(np.finfo(K.dtype).eps) * np.nanmax(abs(gradient)) - rho])
        used = self._keep(rows, beta[:, None].astype(K.dtype, copy=False), b, single=True)
        self.bounded_ = at_bound(problem, beta)[used]
        self.offset_ = -self.intercept_
        self._report(solver, optima, np.array([duality_gap(problem, optima[0], b)]))
        if solver.interrupt is not None:
            raise keeping(self, solver.interrupt)

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
