"""Support vector regression: the loss is piecewise linear, so that few points carry the function.

    min ½ ‖f‖² + C Σ wᵢ loss(yᵢ − f(xᵢ))     over   f = Σ βᵢ k(xᵢ, ·) + b

* within ε (`SVR`): loss(r) = max(|r| − ε, 0);
* within the ε that leaves a share ν of the points outside (`NuSVR`);
* quantiles (`KernelQuantileRegressor`): loss(r) = τr for r ≥ 0, (τ − 1)r for r < 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import d2_pinball_score

from mercer import gram
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.models.base import Matrix, Rows, keeping, shortened
from mercer.models.callbacks import with_callbacks
from mercer.models.progress import watched
from mercer.models.svm.margins import at_bound, duality_gap
from mercer.models.svm.problems import feasible, grown, nu_tube, pinball, tube
from mercer.models.svm.solving import Solved, Solver, Store
from mercer.models.svm.support import SupportVectorMachine, check_share
from mercer.problems.box import BoxProblem
from mercer.solvers import smo
from mercer.solvers.step import Progress
from mercer.validation import check_number, check_numbers


class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn has no types
    """The base class of the regressors of this file: one function Σ βᵢ k(xᵢ, ·) + b for each box problem."""

    C: float

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Check the parameters that only this class has."""

    @abstractmethod
    def _problems(self, rows: Rows, K: Gram, C: Matrix) -> list[BoxProblem]:
        """The box problem of each function; C is one number per row, C wᵢ."""

    def _conclude(self, rows: Rows, solved: Sequence[Solved], offsets: Sequence[list[float]]) -> None:
        """Set the attributes that only this class has; `offsets` holds those of the groups of each problem."""

    def _single(self, rows: Rows) -> bool:
        """Whether predictions have one value per point, shape (m,)."""
        return rows.single

    # -- fit ----------------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and targets y, shape (n,) or (n, t): one function per target.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. An interrupt keeps the best iterate and is raised again.
        """
        solver = self._start()
        rows, K = self._data(solver, X, y, sample_weight)
        problems = self._weighted(rows, K)
        with watched(self, len(problems), X, y, sample_weight):
            self._fit(solver, rows, problems)
        return self

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Self]:
        """A fitted model for each of the Cs, in their order.

        They are fitted by growing C. Each starts from the coefficients of the last one (scaled with C if most of them
        are at their bounds); a single function uses the same kernel values throughout. An interrupt raises a
        KeyboardInterrupt with the models fitted so far, by growing C, as its attribute `models`. `max_time` applies to
        each model; `progress` is called as in `fit`, scikit-learn's callbacks are not.

        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> models = mc.SVR(mc.Gaussian(1.0)).path(X, np.sin(X[:, 0]), [10.0, 0.01])
        >>> [model.C for model in models], models[0].score(X, np.sin(X[:, 0])) > 0.98
        ([10.0, 0.01], True)
        """
        first = clone(self)
        rows, K = first._data(first._start(), X, y, sample_weight)
        values: dict[Any, Any] = {}
        last: list[Solved] = []

        def fit(model: Self, growth: float) -> None:
            solver, problems = model._start(), model._weighted(rows, K)
            if last:
                starts = [grown(problem, optimum, growth) for problem, optimum in last]
                problems = [feasible(problem, start) for problem, start in zip(problems, starts, strict=True)]
            # With several functions, each stores kernel values of its own.
            last[:] = zip(problems, model._fit(solver, rows, problems, [values] if len(problems) == 1 else None))

        return first._along(Cs, fit)

    def predict(self, X: Any) -> NDArray[Any]:
        """f(x) for m points, shape (m,) or (m, t), in the dtype of the data."""
        points = self._queries(X)
        return self.function_(points)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _start(self) -> Solver:
        check_number(self.C, "C", above=0)
        self._check()
        return super()._start()

    def _data(self, solver: Solver, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Gram]:
        rows = self._training(X, y, sample_weight)
        K = gram.of(self.kernel_, rows.points)
        self._warn_if_indefinite(K, solver)
        return rows, K

    def _weighted(self, rows: Rows, K: Gram) -> list[BoxProblem]:
        return self._problems(rows, K, float(self.C) * rows.weights)

    def _fit(
        self, solver: Solver, rows: Rows, problems: Sequence[BoxProblem], values: Sequence[Store] | None = None
    ) -> list[smo.Optimum]:
        """Fit all functions, with stores of kernel values if passed; after an interrupt, keep them and raise it."""
        optima, dtype = solver.solve_all(problems, values), problems[0].gram.dtype
        solved = list(zip(problems, optima, strict=True))
        offsets = [p.offsets(o.beta, o.gradient) for p, o in solved]
        coef = np.column_stack([p.per_point(o.beta) for p, o in solved]).astype(dtype, copy=False)
        used = self._keep(rows, coef, np.array([np.mean(b) for b in offsets]), single=self._single(rows))
        self.bounded_ = np.any([at_bound(p, o.beta)[used] for p, o in solved], axis=0)
        self._conclude(rows, solved, offsets)
        self._report(solver, optima, np.array([duality_gap(p, o, b) for (p, o), b in zip(solved, offsets)]))
        if solver.interrupt is not None:
            raise keeping(self, solver.interrupt)
        return optima


@dataclass(eq=False, repr=False)
class SVR(SupportVectorRegressor):
    """Support vector regression: errors up to epsilon cost nothing, larger ones cost their excess over it.

    f = Σ βᵢ k(xᵢ, ·) + b minimises ½ ‖f‖² + C Σ wᵢ max(|yᵢ − f(xᵢ)| − ε, 0). Points inside the tube have βᵢ = 0: f
    does not need them. |βᵢ| ≤ C wᵢ, with equality outside the tube, so that the pull of a point is bounded.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    C : float
        The weight of errors against ‖f‖², > 0.
    epsilon : float
        Half the width of the tube, ≥ 0, in the units of y.
    tol : float
        The violation of optimality at which to stop, in the units of y.
    max_iter, max_time : int or None, float or None
        The largest number of pairs for each target, and of seconds for all targets; or None.
    progress : Progress or None
        Called regularly with a `Step` (iteration, gap, tol, objective, support, seconds); False stops the fit.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    support_, support_vectors_ : array
        Positions of the support vectors among the rows of `fit`, shape (s,), and their points.
    bounded_ : array
        For each of them, whether its coefficient is at its bound: the point is outside the tube.
    dual_coef_, intercept_ : array, float or array
        Their β, shape (s,) or (s, t), and b.
    function_ : Expansion
        The fitted function, an `Expansion` over the support vectors alone.
    gap_, objective_ : float, array
        The largest violation of optimality, in float64, and ½ βᵀKβ − yᵀβ + ε‖β‖₁ of each target.
    duality_gap_ : array
        The primal less the dual of each target, ≥ 0: a bound on how far the primal is from its minimum.
    n_iter_, status_ : int, str
        The number of pairs that were moved, and how the fit ended.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = mc.SVR(mc.Gaussian(1.0), C=10.0, epsilon=0.1).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.11), len(model.support_) < 12
    (True, True)
    """

    tunable: ClassVar[tuple[str, ...]] = ("C", "epsilon")

    kernel: Any = None
    _: KW_ONLY
    C: float = 1.0
    epsilon: float = 0.1
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None

    def _check(self) -> None:
        check_number(self.epsilon, "epsilon", least=0, advice="Pass a number in the units of y, such as 0.1.")

    def _problems(self, rows: Rows, K: Gram, C: Matrix) -> list[BoxProblem]:
        return [tube(K, y, C, float(self.epsilon)) for y in rows.y.T]


@dataclass(eq=False, repr=False)
class NuSVR(SupportVectorRegressor):
    """Support vector regression whose tube finds its own width: at most a share nu of the points is outside it.

    f and ε minimise ½ ‖f‖² + C Σ wᵢ (νε + max(|yᵢ − f(xᵢ)| − ε, 0)). nu bounds the share of points outside the tube
    from above and the share of support vectors from below (each with its weight); `SVR` with epsilon = `epsilon_` and
    the same C gives the same function.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    nu : float
        The share, in (0, 1].
    C : float
        The weight of errors against ‖f‖², > 0.
    tol, max_iter, max_time, progress : float, int or None, float or None, Progress or None
        As for `SVR`.

    Attributes
    ----------
    epsilon_ : float or array
        Half the width of the tube, a number, or one per target.
    kernel_, support_, support_vectors_, bounded_, dual_coef_, intercept_, function_
        As for `SVR`.
    gap_, objective_, duality_gap_, n_iter_, status_
        As for `SVR`, with the objective ½ βᵀKβ − yᵀβ.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=40)
    >>> model = mc.NuSVR(mc.Gaussian(1.0), nu=0.3, C=10.0).fit(X, y)
    >>> outside = abs(y - model.predict(X)) > model.epsilon_ + model.tol
    >>> bool(outside.mean() <= 0.3 <= len(model.support_) / 40)
    True
    """

    tunable: ClassVar[tuple[str, ...]] = ("C", "nu")

    kernel: Any = None
    _: KW_ONLY
    nu: float = 0.5
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None

    def _check(self) -> None:
        check_share(self.nu)

    def _problems(self, rows: Rows, K: Gram, C: Matrix) -> list[BoxProblem]:
        return [nu_tube(K, y, C, float(self.nu)) for y in rows.y.T]

    def _conclude(self, rows: Rows, solved: Sequence[Solved], offsets: Sequence[list[float]]) -> None:
        # y − f = ε at a free β⁺, and f − y = ε at a free β⁻: the offsets of the groups are b + ε and b − ε.
        above, below = np.transpose(offsets)
        epsilon = np.maximum((above - below) / 2, 0.0)
        self.epsilon_: Any = float(epsilon[0]) if rows.single else epsilon


@dataclass(eq=False, repr=False)
class KernelQuantileRegressor(SupportVectorRegressor):
    """Quantile regression: the function below which a share τ of the targets lies, at every x.

    f = Σ βᵢ k(xᵢ, ·) + b minimises ½ ‖f‖² + C Σ wᵢ ρ(yᵢ − f(xᵢ)) with the pinball loss ρ(r) = max(τr, (τ − 1)r). At
    most a share τ of the training targets lies below f and at most 1 − τ above it; the rest is on it.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    quantile : float
        τ in (0, 1), or several: one function each.
    C : float
        The weight of errors against ‖f‖², > 0.
    tol, max_iter, max_time, progress : float, int or None, float or None, Progress or None
        As for `SVR`.

    Attributes
    ----------
    quantiles_ : array
        The quantiles, shape (q,).
    crossing_ : float
        The share of the fitted rows at which functions of different quantiles are in the wrong order; there `predict`
        puts their values in order, which never increases the sum of their losses.
    kernel_, support_, support_vectors_, bounded_, dual_coef_, intercept_, function_
        As for `SVR`. The functions are the fitted ones, not put in order.
    gap_, objective_, duality_gap_, n_iter_, status_
        As for `SVR`, with the objective ½ βᵀKβ − yᵀβ.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=100)
    >>> model = mc.KernelQuantileRegressor(mc.Gaussian(1.0), quantile=[0.1, 0.9], C=10.0).fit(X, y)
    >>> below = (y[:, None] < model.predict(X) - model.tol).mean(axis=0)
    >>> above = (y[:, None] > model.predict(X) + model.tol).mean(axis=0)
    >>> bool((below <= [0.1, 0.9]).all() and (above <= [0.9, 0.1]).all())
    True
    """

    tunable: ClassVar[tuple[str, ...]] = ("C",)

    kernel: Any = None
    _: KW_ONLY
    quantile: Any = 0.5
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int | None = None
    max_time: float | None = None
    progress: Progress | None = None

    def _check(self) -> None:
        required = "`quantile` must be a number between 0 and 1, or several different ones"
        advice = "Pass a number such as 0.5, which is the median."
        taus = np.atleast_1d(check_numbers(self.quantile, required, above=0, below=1, advice=advice))
        if taus.ndim > 1 or not taus.size or len(np.unique(taus)) < taus.size:
            raise InvalidInput(required, got=shortened(self.quantile), advice=advice)
        self.quantiles_, self._several = taus, np.ndim(self.quantile) == 1

    def _problems(self, rows: Rows, K: Gram, C: Matrix) -> list[BoxProblem]:
        t = rows.y.shape[1]
        if self._several and t > 1:
            raise InvalidInput(
                "Several quantiles need one target", got=f"{t} targets", advice="Fit one model for each target."
            )
        return [pinball(K, y, C, tau) for y in rows.y.T for tau in self.quantiles_]

    def _conclude(self, rows: Rows, solved: Sequence[Solved], offsets: Sequence[list[float]]) -> None:
        self.crossing_ = 0.0
        if self._several:
            values = np.column_stack([o.gradient - p.linear for p, o in solved]) + self.intercept_
            ascending = values[:, np.argsort(self.quantiles_, kind="stable")]
            self.crossing_ = float((np.diff(ascending, axis=1) < -self.tol).any(axis=1).mean())

    def _single(self, rows: Rows) -> bool:
        return rows.single and not self._several

    def predict(self, X: Any) -> NDArray[Any]:
        """The quantile at m points: (m,), (m, q) for several quantiles, in order, or (m, t) for several targets."""
        values = super().predict(X)
        if self._several:
            order = np.argsort(self.quantiles_, kind="stable")
            values[:, order] = np.sort(values, axis=1)
        return values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 − (pinball loss of the model)/(loss of the best constant), averaged over quantiles: 1 is perfect."""
        predicted = np.reshape(self.predict(X), (-1, np.size(self.dual_coef_[0])))
        if not self._several:
            return float(
                d2_pinball_score(
                    np.reshape(y, predicted.shape), predicted, sample_weight=sample_weight, alpha=self.quantiles_[0]
                )
            )
        scores = [
            d2_pinball_score(np.ravel(y), column, sample_weight=sample_weight, alpha=tau)
            for tau, column in zip(self.quantiles_, predicted.T, strict=True)
        ]
        return float(np.mean(scores))
