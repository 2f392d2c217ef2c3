"""Kernel ridge regression: least squares in the Hilbert space of a kernel."""

from __future__ import annotations

import os
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.batches import Batches
from mercer.data.frames import is_frame, unframed
from mercer.data.points import Points
from mercer.data.sampling import drawn
from mercer.errors import InvalidInput
from mercer.files.checkpoint import CheckpointFile, digest_of
from mercer.gram.centers import choose_centers
from mercer.gram.lowrank import Nystrom
from mercer.gram.streamed import StreamedGram
from mercer.kernels.tables.rule import TableKernel
from mercer.kernels.tables.typed import Typed
from mercer.memory import budget as memory_budget
from mercer.memory import within
from mercer.models.base import (
    Matrix,
    Rows,
    outside,
    penalties,
    positive_weights,
    resolve_kernel,
    targets,
    training_points,
)
from mercer.models.least_squares.smoother import PenalisedSmoother, check_penalty_rule, explained
from mercer.models.solver_parameters import check_limits, check_solver_parameters, requested_solver
from mercer.models.tunable import RidgeProblem
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.rkhs.trigonometric import FourierFunction
from mercer.solvers import auto, eigen, nystrom
from mercer.solvers.base import Solution
from mercer.solvers.checkpoint import Journal
from mercer.solvers.choice import TOL_BEYOND_MEMORY
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.factor import Factor
from mercer.solvers.left_out import LeftOutSample
from mercer.solvers.primal import FeatureSpectrum
from mercer.solvers.psd import require_psd
from mercer.solvers.step import Progress
from mercer.tuning.by_gradient import tune_problem
from mercer.tuning.folds import fold_numbers, make_folds
from mercer.tuning.loo import alpha_path, sampled_path
from mercer.validation import check_choice, generator

SAMPLE = 3000
"""Rows of a source in batches from which a kernel rule makes the kernel."""
LEFT_OUT = 20_000
"""Rows of a source in batches whose leave-one-out errors choose alpha."""
DECOMPOSITION = 8 * (1 + 1 + 2)
"""Bytes per n² of an eigendecomposition: the Gram matrix, its eigenvectors, and two matrices of LAPACK's."""
VALUES_SHARE = 1e-4
"""The error of evaluating a function on frequencies, relative to the sum of its coefficients, as a share of `tol`."""


class LeftOutRows(NamedTuple):
    """Rows of a source in batches, each predicted by the fit to all others.

    Attributes
    ----------
    at
        Their positions in the source.
    y
        Their targets, shape (s, t).
    predictions
        F₋ᵢ(xᵢ), shape (s, t).
    weights
        Their weights, or None.
    """

    at: NDArray[np.int64]
    y: Matrix
    predictions: Matrix
    weights: Matrix | None

    @classmethod
    def of(cls, sample: LeftOutSample, at: NDArray[np.int64], alpha: Matrix) -> LeftOutRows:
        """Those of a sample at the chosen alpha, one per target."""
        residuals = np.hstack([sample.residuals(float(a), [t]) for t, a in enumerate(alpha)])
        return cls(at, sample.y, sample.y - residuals, sample.weights)


@dataclass(eq=False, repr=False)
class KernelRidge(PenalisedSmoother):
    """Ridge regression in the Hilbert space of a kernel: f = Σ cᵢ k(xᵢ, ·) + b with c = (K + alpha I)⁻¹(y − b).

    f minimises ½ Σ wᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖f‖². alpha = 0 is kernel least squares: the function of smallest norm
    among all with the least error.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    alpha : float, array or str
        The penalty, a number ≥ 0, or one per target; "loo" chooses it (one per target) by the leave-one-out error along
        the whole path. For rows in batches the errors are those of up to 20 000 rows, each left out of the fit to all.
    fit_intercept : bool
        Whether a constant b is added, which is not penalised.
    solver : str
        "auto", "cholesky", "eigen", "cg", "nystrom", "blocks" or "fourier". "auto" takes the fastest exact one. If no
        matrix fits into memory, it takes a grid of frequencies ("fourier": at most three columns, and a kernel whose
        spectral density is known); else "cg", which then computes the kernel anew in every iteration. If that takes too
        long (from about 200 000 rows on), or if `n_centers` or `centers` is set, it takes Nyström centres. `status_`
        says which and why. "blocks" starts from the residuals of centres and then refines the coefficients of all
        points, block by block, as long as `max_time` and `max_passes` allow. Where that is not enough to be better, it
        keeps the fit on the centres. It is meant for 200 000 to a few million rows.
    tune : str or None
        None, "loo" or "evidence": choose kernel parameters and alpha by gradient, starting from these.
    n_centers, centers : int or None, str or array
        For Nyström: their number, and "uniform", "kmeans", "pivoted" or the points themselves.
    tol : float or None
        Relative residual at which iterative solvers stop; by default 1e-10, and 1e-3 for Nyström and for a matrix that
        does not fit into memory. For "fourier" the relative error of f and of the kernel's values (`solvers.fourier`),
        by default 1e-4.
    max_time : float or None
        Seconds after which iterations over a matrix that is not stored stop, or None. The coefficients so far are kept,
        with a warning.
    max_passes : int or None
        The largest number of products with a matrix that is not stored, or None for 100, and 10 for "blocks".
    progress : Progress or None
        Called with a `Step` (iteration, gap, tol) after every iteration; False stops the fit there.
    checkpoint : str, Path or None
        The path of a file in which iterations over a matrix that does not fit into memory, fits on centres, from
        batches and by blocks keep their state about every ten seconds. A fit that was killed continues there, with the
        same data and parameters, and ends with the same answer; the file is deleted at the end. Other solvers write
        none.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.
    random_state : int
        Seed of the random choices of solvers.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that was used.
    alpha_ : float or array
        The penalty that was used, a number, or one per target.
    function_ : Expansion or FourierFunction
        The fitted function, an `Expansion`; a `FourierFunction` if `solver_` is "fourier".
    dual_coef_, intercept_ : array, float or array
        c, shape (n,) or (n, t), and b. A `FourierFunction` has no c.
    solver_, status_, residual_ : str, float
        How it was solved, in words, and the relative residual of the linear system.
    rank_ : int or None
        The rank of the Gram matrix, if the solver computes it (alpha = 0 and "loo").
    tuning_ : record
        The record of `tune`, if it was set.
    left_out_ : LeftOutRows
        For alpha="loo" and rows in batches: `at`, `y` and `predictions` of up to 20 000 rows, drawn at random, each
        by the fit to all other rows. `loo_score_` is theirs.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    >>> round(model.loo_score_, 3), round(model.degrees_of_freedom_, 1)
    (1.0, 10.5)
    """

    _in_batches: ClassVar[bool] = True
    _grids: ClassVar[bool] = True  # whether solver="auto" may take a grid of frequencies, which has no expansion

    kernel: Any = None
    _: KW_ONLY
    alpha: Any = 1.0
    fit_intercept: bool = False
    solver: str = "auto"
    tune: str | None = None
    n_centers: int | None = None
    centers: Any = "uniform"
    tol: float | None = None
    max_time: float | None = None
    max_passes: int | None = None
    progress: Progress | None = None
    checkpoint: Any = None
    budget: Any = None
    random_state: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: str | None = None) -> Self:
        """Fit to n points X and targets y, shape (n,) or (n, t).

        X may be a path or a `Batches`: its rows are then read in batches, once per pass, and never all in memory, which
        needs Nyström centres. `target` names the column of a file that holds the targets.

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (Except in alpha="loo", `tune` and the choice of Nyström centres, which leave out or draw rows.)
        """
        for name in ("tuning_", "path_", "left_out_", "_not_in_file", "_centres", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        check_solver_parameters(self, auto.SOLVERS)
        check_limits(self)
        if isinstance(X, (str, os.PathLike, Batches)):
            return self._fit_batches(Batches.of(X, y, target), y, sample_weight)
        if target is not None:
            raise InvalidInput(
                "`target` names a column of a file", got=f"target={target!r} with X in memory", advice="Pass y instead."
            )
        rows = self._training(X, y, sample_weight)
        self._rows, self._intercept = rows, bool(self.fit_intercept)
        self._cache = {}
        alpha = penalties(1.0 if isinstance(self.alpha, str) else self.alpha, rows.y.shape[1])
        check_penalty_rule(self.alpha)
        if self.tune is not None:
            advice = "Pass 'loo', 'evidence' or None; mc.tune searches grids, too."
            check_choice(self.tune, "tune", ("loo", "evidence"), alternative="None", advice=advice)
            alpha = self._tune(alpha)
        problem = self._problem(alpha)
        if not self.kernel_.proof(getattr(self, "n_features_in_", None)).valid and not self._on_centres(problem):
            require_psd(problem.gram)  # on centres, their own matrix is checked
        if isinstance(self.alpha, str) and self.tune is None:
            problem, solution = self._along_the_path(problem)
        else:
            solution = self._solve(problem, requested_solver(self, problem.n), self.n_centers, self.centers)
        return self._conclude(rows, problem, solution)

    def _conclude(self, rows: Rows, problem: LeastSquares, solution: Solution) -> Self:
        """Set the fitted attributes."""
        if not solution.stats.get("converged", True):
            warnings.warn(solution.status, ConvergenceWarning, stacklevel=outside())
        self._cache.update(solution.factors)
        self._penalties = problem.alpha
        self._report_alpha()
        self.solver_, self.status_, self.residual_ = solution.solver, solution.status, solution.residual
        self.rank_ = solution.stats.get("rank")
        tail = None
        self.intercept_: Any = 0.0 if rows.single else np.zeros(rows.y.shape[1])
        if solution.tail is not None:
            self.intercept_ = float(solution.tail[0, 0]) if rows.single else solution.tail[0]
            tail = Tail.constant(self.intercept_)
        if solution.grid is not None:
            single, accuracy = problem.gram.dtype == np.float32, VALUES_SHARE * solution.stats["tol"]
            coef = rows.shaped(solution.coef)
            self.function_: Any = FourierFunction(self.kernel_, solution.grid.frequencies, coef, tail, accuracy, single)
            return self
        coef = rows.shaped(solution.coef).astype(problem.gram.dtype, copy=False)
        self._centres = solution.points or rows.points
        self.function_ = Expansion(self.kernel_, self._centres, coef, tail)
        self.dual_coef_ = self.function_.coef
        return self

    def _fit_batches(self, batches: Batches, y: Any, sample_weight: Any) -> Self:
        """Fit on centres to rows that are read in batches, once per pass."""
        check_penalty_rule(self.alpha)
        batches = batches_for(self, batches)
        n, limit, by_rule = batches.n, memory_budget(self.budget), isinstance(self.alpha, str)
        m = nystrom.default_centers(n, limit) if self.n_centers is None else min(self.n_centers, n)
        judged = _judged(m, limit) if by_rule else 0
        sample = drawn(batches, max(m, judged, SAMPLE), generator(self.random_state))
        points = training_points(sample.X)
        self._resolve(sample.X, points)
        if batches.names is not None and not is_frame(sample.X):
            self.feature_names_in_ = np.array(batches.names, dtype=object)
        Y, single = targets(sample.y if y is None else y, n)
        w = positive_weights(sample_weight, n)
        rows = Rows(points, Y, single, None if w is None else np.sqrt(w), np.arange(n), None)
        self._rows, self._intercept, self._cache = rows, bool(self.fit_intercept), {}
        tail = np.ones((n, 1)) if self._intercept else None
        gram_of_all = StreamedGram(self.kernel_, batches, self.kernel_.prepare(points))
        alpha = penalties(1.0 if by_rule else self.alpha, Y.shape[1])
        problem = LeastSquares(gram_of_all, Y, alpha, rows.roots, tail)
        centers: Any = self.centers if not isinstance(self.centers, str) else points.take(slice(0, m))
        solution: Solution | None = None
        journal = Journal.of(self._checkpoint(problem, "nystrom"))
        if by_rule:
            chosen = choose_centers(gram_of_all, m, centers, rng=generator(self.random_state))
            Phi = gram_of_all.low_rank(chosen, np.float64, limit)
            if journal is not None:
                Phi.once = journal.once
            left_out = LeftOutSample(problem, Phi, points.take(slice(0, judged)), sample.at[:judged])
            self.path_ = sampled_path(left_out)
            problem = replace(problem, alpha=self.path_.chosen)
            self.left_out_ = LeftOutRows.of(left_out, sample.at[:judged], problem.alpha)
            direct = left_out.solution(problem.alpha)
            if direct.residual <= (TOL_BEYOND_MEMORY if self.tol is None else self.tol):
                solution = direct
                if journal is not None:
                    journal.remove()
        self._conclude(rows, problem, solution or self._solve(problem, "nystrom", None, centers, journal))
        del self._rows
        self.__dict__["_not_in_file"] = ("_rows",)  # the same explanation as in a loaded model
        return self

    @property
    def loo_score_(self) -> float:
        """R² of the leave-one-out predictions, averaged over targets: an estimate of `score` on new data."""
        if "left_out_" not in self.__dict__:
            return super().loo_score_
        return explained(self.left_out_.y, self.left_out_.predictions, self.left_out_.weights)

    def predict(self, X: Any) -> NDArray[Any]:
        """f(x) for m points, shape (m,) or (m, t), in the dtype of the data."""
        points = self._queries(X)
        return self.function_(points)

    def predict_gradient(self, X: Any) -> NDArray[np.float64]:
        """∇f(x) by the columns of X, shape (m, d) or (m, t, d)."""
        points = self._queries(X)
        return self.function_.gradient(points)

    def cv_predictions(self, cv: Any = 5) -> NDArray[Any]:
        """f₋B(xᵢ): the prediction at each training point of the model fitted without its whole fold, in closed form.

        Parameters
        ----------
        cv : int, splitter or array
            The number of folds (contiguous, as in scikit-learn), a splitter that puts every row in one test fold, or
            one fold label per row.

        Examples
        --------
        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> model = mc.KernelRidge(mc.Gaussian(1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
        >>> bool(abs(model.cv_predictions(np.arange(40)) - model.loo_predictions_).max() < 1e-8)
        True
        """
        check_is_fitted(self)
        fold = self._folds(cv)
        predictions = self._rows.y.copy()
        for alpha, columns in self._by_alpha():
            factor = self._factor(alpha)
            if factor.explicit:
                raise InvalidInput(
                    "`cv_predictions` needs an exact solver",
                    got="'nystrom'",
                    advice="Use loo_predictions_, or fit again with another solver.",
                )
            predictions[:, columns] -= factor.leave_fold_out(predictions[:, columns], fold)
        return self._rows.shaped(predictions)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _training_only(self) -> tuple[str, ...]:
        # Without centres the function holds all rows anyway; with their targets, intervals remain possible.
        return ("_rows",) if getattr(self, "solver_", None) in ("nystrom", "fourier") else ()

    def _solve(
        self, problem: LeastSquares, solver: str, n_centers: Any, centers: Any, journal: Journal | None = None
    ) -> Solution:
        return auto.solve(
            problem,
            solver,
            budget=self.budget,
            tol=self.tol,
            n_centers=n_centers,
            centers=centers,
            random_state=self.random_state,
            max_time=self.max_time,
            max_passes=self.max_passes,
            progress=self.progress,
            checkpoint=self._checkpoint(problem, solver) if journal is None else journal,
            grids=self._grids,
        )

    def _checkpoint(self, problem: LeastSquares, solver: str) -> CheckpointFile | None:
        """The checkpoint of this problem, if one is requested and the solver will write it."""
        if self.checkpoint is None:
            return None
        choice = auto.chosen(problem, solver, self.budget, self.tol, grids=self._grids)
        if not choice.streamed:
            return None
        others: tuple[Any, ...] = (self.kernel_, problem.y, problem.alpha, problem.roots, problem.tail)
        others += (problem.gram.dtype,)
        if choice.solver != "cg":  # whose rank follows the memory available now: the checkpoint has its own
            where = self.centers if isinstance(self.centers, str) else np.asarray(unframed(self.centers))
            limit = memory_budget(self.budget)
            m = nystrom.default_centers(problem.n, limit) if self.n_centers is None else self.n_centers
            others += (m, where, _judged(m, limit) if isinstance(self.alpha, str) else 0)
        rows = problem.gram.batches if isinstance(problem.gram, StreamedGram) else problem.gram.x
        digest = digest_of(rows, *others, choice.solver, self.tol, self.random_state)
        return CheckpointFile(self.checkpoint, digest)

    def _on_centres(self, problem: LeastSquares) -> bool:
        """Whether the fit will use centres."""
        solver = requested_solver(self, problem.n)
        if isinstance(self.alpha, str) and self.tune is None:
            fits = DECOMPOSITION * problem.n**2 <= memory_budget(self.budget)
            return solver == "nystrom" or (solver == "auto" and not fits)
        return auto.chosen(problem, solver, self.budget, self.tol, grids=self._grids).solver == "nystrom"

    def _along_the_path(self, problem: LeastSquares) -> tuple[LeastSquares, Solution]:
        """The fit at the alpha of least leave-one-out error, one per target: on all points, or on centres."""
        if self.solver == "fourier":
            raise _needs_factor("The errors of `alpha='loo'`", "Pass a number for alpha, or use solver='nystrom'.")
        n, limit = problem.n, memory_budget(self.budget)
        w = None if problem.roots is None else problem.roots**2
        if not self._on_centres(problem):
            within(DECOMPOSITION * n * n, limit, f"The eigendecomposition of {n} points", "Use solver='nystrom'.")
            spectrum = eigen.Eigendecomposition(problem)
            self.path_ = alpha_path(spectrum, problem.y, w)
            problem = self._problem(self.path_.chosen)
            return problem, eigen.solve(problem, spectrum)
        m = nystrom.default_centers(n, limit) if self.n_centers is None else self.n_centers
        rng = generator(self.random_state)
        self._centres = choose_centers(problem.gram, m, self.centers, rng=rng)
        self.path_ = alpha_path(self._on_features(), problem.y, w)
        problem = self._problem(self.path_.chosen)
        return problem, self._solve(problem, "nystrom", None, self._centres)

    def _problem(self, alpha: Matrix) -> LeastSquares:
        rows = self._rows
        tail = np.ones((len(rows), 1)) if self._intercept else None
        return LeastSquares(gram.of(self.kernel_, rows.points, budget=self.budget), rows.y, alpha, rows.roots, tail)

    def ridge_problem(self, rows: Rows) -> RidgeProblem:
        """The problem on these rows whose criteria `mc.tune` searches."""
        tail = np.ones((len(rows), 1)) if self.fit_intercept else None
        return RidgeProblem(resolve_kernel(self.kernel, rows.points), rows.y, tail)

    def _tune(self, alpha: Matrix) -> Matrix:
        problem = self._problem(alpha)
        self.tuning_ = tune_problem(
            self.kernel_,
            self._rows.points,
            problem.y,
            float(alpha.mean()),
            problem.roots,
            problem.tail,
            by=str(self.tune),
            random_state=self.random_state,
        )
        self.kernel_ = self.tuning_.kernel
        return np.full(len(alpha), self.tuning_.alpha)

    def _factorise(self, alpha: float) -> Factor:
        if self.solver_ == "fourier":
            advice = "Fit again with solver='nystrom' on fewer rows, or use mc.ConformalRegressor for intervals."
            raise _needs_factor("Leave-one-out, degrees of freedom and the intervals that follow from them", advice)
        if self.solver_ == "nystrom":
            return self._on_features().at(alpha)
        problem = self._problem(self._penalties)
        if self.solver_ != "eigen":
            return CholeskyFactor.of(problem, alpha, np.float64)
        if "spectrum" not in self._cache:
            self._cache["spectrum"] = eigen.Eigendecomposition(problem)
        factor: Factor = self._cache["spectrum"].at(alpha)
        return factor

    def _on_features(self) -> FeatureSpectrum:
        """The singular values of the training rows' features, which are those of the centres."""
        if "spectrum" not in self._cache:
            rows = self._rows
            features, tail = self._query(rows.points, explicit=True)
            self._cache["spectrum"] = FeatureSpectrum(features, rows.roots, tail)
        spectrum: FeatureSpectrum = self._cache["spectrum"]
        return spectrum

    def _query(self, points: Points, *, explicit: bool) -> tuple[Matrix, Matrix | None]:
        tail = np.ones((points.n, 1)) if self._intercept else None
        if not explicit:
            return self.kernel_(points, self._rows.points, dtype=np.float64), tail
        # With centres, φ(x) = L⁻¹ k(centres, x) are the coordinates in which the solver works.
        centres = self._centres
        size = 8 * points.n * centres.n
        within(3 * size, memory_budget(self.budget), "Leave-one-out over Nyström centres", "Take fewer centres.")
        if "whitening" not in self._cache:
            self._cache["whitening"] = gram.of(self.kernel_, centres, budget=self.budget).low_rank(
                centres, np.float64, self.budget
            )
        whitening: Nystrom = self._cache["whitening"]
        return whitening.whiten(self.kernel_(whitening.centers, points, dtype=np.float64)).T, tail

    def _folds(self, cv: Any) -> NDArray[np.int64]:
        """A fold label for each fitted row."""
        rows = self._rows
        total = len(rows) + (0 if rows.left_out is None else rows.left_out.n)
        if isinstance(cv, (list, tuple, np.ndarray)) and np.ndim(cv) == 1:
            if len(cv) != total:
                raise InvalidInput(
                    f"`cv` must hold one fold label for each of the {total} rows",
                    got=f"{len(cv)} labels",
                    advice="Pass one label per row, a number of folds, or a splitter such as KFold.",
                )
            return np.unique(np.asarray(cv)[rows.kept], return_inverse=True)[1]
        return fold_numbers(make_folds(total, cv, shuffle=False), total)[rows.kept]


def batches_for(model: KernelRidge, batches: Batches) -> Batches:
    """The batches as `fit` reads them, as tables for kernels on tables. Parameters that need all rows are refused."""
    solver = requested_solver(model, batches.n)
    for name, value, fits in (
        ("solver", model.solver, solver in ("auto", "nystrom")),
        ("tune", model.tune, model.tune is None),
        ("centers", model.centers, not isinstance(model.centers, str) or model.centers == "uniform"),
    ):
        if not fits:
            raise InvalidInput(
                "Rows in batches need Nyström centres, uniform or given",
                got=f"{name}={value!r}",
                advice="Choose these on a sample of the rows, or load all rows as an array.",
            )
    return batches.as_tables() if isinstance(model.kernel, (TableKernel, Typed)) else batches


def _judged(m: int, limit: int) -> int:
    """The number of rows in batches whose leave-one-out errors choose alpha, on m centres within a number of bytes."""
    return max(1, min(LEFT_OUT, limit // (4 * 8 * m)))


def _needs_factor(what: str, advice: str) -> InvalidInput:
    """The error for results that a fit on frequencies does not have."""
    return InvalidInput(f"{what} need a factorised system", got="solver='fourier', which has none", advice=advice)
