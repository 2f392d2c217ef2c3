"""Ridge regression on explicit features, in its primal and its dual form (lecture 000)."""

from __future__ import annotations

import contextlib
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import gram, memory
from mercer.data.points import Points
from mercer.memory import budget as memory_budget
from mercer.memory import within
from mercer.models.base import Matrix, Rows, check_columns, penalties, training_points
from mercer.models.least_squares.design import Design
from mercer.models.least_squares.smoother import PenalisedSmoother, check_penalty_rule
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.eigen import Eigendecomposition
from mercer.solvers.factor import Factor, require_left
from mercer.solvers.primal import FeatureFactor, FeatureSpectrum, GramFactor, by_normal_equations
from mercer.tuning.loo import choose_alpha
from mercer.validation import check_choice
from mercer.words import show_bytes, show_count

FORMS = ("auto", "primal", "dual")
SEVEN_DIGITS = 1e9
"""Up to this condition, a Gram matrix leaves about seven digits to leave-one-out, which is not refined."""
NO_DIGITS = 1e12
"""Beyond this condition a kernel's Gram matrix has lost digits that its features still have."""


@dataclass(eq=False, repr=False)
class Ridge(PenalisedSmoother):
    """Ridge regression on features: f(x) = wᵀφ(x) + b that minimises ½ Σ vᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖w‖².

    The primal form solves for M weights, w = (ΦᵀΦ + alpha I)⁻¹Φᵀy; the dual form for N coefficients, w = Φᵀc with
    c = (K + alpha I)⁻¹y and K = ΦΦᵀ. Both give the same function. alpha = 0 is ordinary least squares: the shortest
    weights among all with the least error. Columns of very different sizes, or far from zero, keep their digits: if the
    Gram matrix of the dual form would lose them, the singular values of the features are used.

    Parameters
    ----------
    features : FeatureMap, transformer, function or None
        None for the columns themselves; a feature map such as `mc.Polynomial(5, c=1.0).features(d)`; a scikit-learn
        transformer, which is cloned and fitted; a function X → Φ; or a kernel with a finite feature map, whose dual
        form uses the kernel alone and never builds the features.
    alpha : float, array or str
        The penalty, a number ≥ 0, or one per target; "loo" chooses it (one per target) by the leave-one-out error.
    fit_intercept : bool
        Whether a constant b is added, which is not penalised.
    form : str
        "primal", "dual", or "auto" for the cheaper one; `form_` and `status_` say which and why.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.

    Attributes
    ----------
    coef_, intercept_ : array, float or array
        w, shape (M,) or (M, t), and b.
    dual_coef_ : array
        c with w = Σ cᵢ φ(xᵢ), shape (n,) or (n, t).
    function_ : Expansion
        f as an `Expansion` in the kernel φ(x)ᵀφ(z), which is `kernel_`.
    features_ : FeatureMap or None
        The feature map that was used, fitted; None for the columns themselves.
    alpha_ : float or array
        The penalty that was used, a number, or one per target.
    rank_ : int
        The rank of the features on the training rows, less one if an intercept takes a constant out of them.
    form_, status_
        The form that was solved, and in words how and why.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, 2006, section 6.1.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> model = mc.Ridge(mc.Polynomial(3, c=1.0), alpha=1e-6).fit(X, X[:, 0] ** 3)
    >>> model.predict([[0.5]]).round(4), model.form_, model.rank_
    (array([0.125]), 'primal', 3)
    >>> print(model.status_)
    primal: 4 features ≤ 20 rows; by the normal equations, refined
    >>> dual = mc.Ridge(mc.Polynomial(3, c=1.0), alpha=1e-6, form="dual").fit(X, X[:, 0] ** 3)
    >>> bool(abs(dual.predict(X) - model.predict(X)).max() < 1e-8)
    True
    """

    _cache: dict[Any, Any] = field(init=False)
    _keeps_rows = False  # whether files hold the rows, although predictions do not need them
    _weights: Matrix | None = field(init=False)
    _dual: Matrix | None = field(init=False)

    features: Any = None
    _: KW_ONLY
    alpha: Any = 1.0
    fit_intercept: bool = True
    form: str = "auto"
    budget: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and targets y, shape (n,) or (n, t).

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (Except in alpha="loo": leaving out one of two equal rows is not leaving out both.)
        """
        rows = Rows.of(training_points(X), y, sample_weight)
        self._design = Design.of(self.features, rows.points, rows.y)
        self.kernel_, self.features_ = self._design.kernel, self._design.phi
        check_columns(self, X, reset=True)
        self._rows, self._single, self._cache = rows, rows.single, {}
        tune = isinstance(self.alpha, str)
        check_penalty_rule(self.alpha)
        self._penalties = penalties(1.0 if tune else self.alpha, rows.y.shape[1])
        self.form_, why = self._choose()
        if tune or (self._penalties == 0).any():
            self._spectrum()
        if tune:
            require_left(self._tail(len(rows)))
            weights = None if rows.roots is None else rows.roots**2
            self._penalties = choose_alpha(self._spectrum(), rows.y, weights)
        self._report_alpha()
        self._solve()
        how = "a Cholesky factor" if self.form_ == "dual" else "the normal equations, refined"
        if "spectrum" in self._cache:
            eigen = isinstance(self._spectrum(), Eigendecomposition)
            how = f"{'eigenvalues' if eigen else 'singular values'}, rank {self.rank_}"
        self.status_ = f"{self.form_}: {why}; by {how}"
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """f(x) for m points, shape (m,) or (m, t), in the dtype of the features."""
        points = self._queries(X)
        if self._weights is None:
            dtype = self.kernel_.dtype_of(points)
            return self.function_(points).astype(dtype, copy=False)
        Phi = self._design.matrix(points)
        values = np.asarray(Phi @ self._weights + self._intercept).astype(Phi.dtype, copy=False)
        return values[:, 0] if self._single else values

    @property
    def coef_(self) -> Matrix:
        """w, shape (M,) or (M, t)."""
        check_is_fitted(self)
        if self._weights is None:
            return self.function_.weights()
        return self._weights[:, 0] if self._single else self._weights

    @property
    def dual_coef_(self) -> Matrix:
        """c with w = Σ cᵢ φ(xᵢ), shape (n,) or (n, t)."""
        check_is_fitted(self)
        if self._dual is None:
            c = np.empty_like(self._rows.y)
            for alpha, columns in self._by_alpha():
                c[:, columns] = self._factor(alpha).solve(self._rows.y[:, columns])[0]
            self._dual = c
        return self._rows.shaped(self._dual)

    @property
    def function_(self) -> Expansion:
        """f = Σ cᵢ k(xᵢ, ·) + b in the Hilbert space of k(x, z) = φ(x)ᵀφ(z)."""
        check_is_fitted(self)
        tail = Tail.constant(self.intercept_) if self.fit_intercept else None
        return Expansion(self.kernel_, self._rows.points, self.dual_coef_, tail)

    @property
    def rank_(self) -> int:
        """The rank of the features on the training rows, less one if an intercept takes a constant out of them."""
        check_is_fitted(self)
        spectrum = self._spectrum()
        if isinstance(spectrum, Eigendecomposition) and spectrum.tail is not None:
            outside = np.linalg.norm(spectrum.tail[spectrum.values <= spectrum.tolerance])
            return spectrum.rank - int(outside < 1e-8 * np.linalg.norm(spectrum.tail))
        return spectrum.rank

    # -- inside ---------------------------------------------------------------------------------------------------

    def _training_only(self) -> tuple[str, ...]:
        return () if self._keeps_rows or getattr(self, "_weights", None) is None else ("_rows", "_dual")

    def _choose(self) -> tuple[str, str]:
        """The form, and why."""
        check_choice(self.form, "form", FORMS, advice="Pass 'auto' to have the cheaper one chosen.")
        n, M = self._shape
        limit = memory_budget(self.budget)
        sizes = {"primal": self._primal_bytes(n, M), "dual": self._dual_bytes(n, M)}
        counts = f"{show_count(M)} features {'≤' if n >= M else '>'} {n} rows"
        why = "as requested"
        form = self.form
        if form == "auto":
            form, why = ("primal" if n >= M else "dual"), counts
            if (self._penalties == 0).any() and not self._design.implicit and form == "dual":
                form, why = "primal", f"alpha = 0 needs the rank, which the Gram matrix would blur ({counts})"
            other = {"primal": "dual", "dual": "primal"}[form]
            if sizes[form] > limit >= sizes[other]:
                why = f"{counts}, but the {form} needs {show_bytes(sizes[form])}"
                form = other
        within(
            sizes[form],
            limit,
            f"The {form} form of {n:,} rows and {show_count(M)} features",
            f"The other form needs {show_bytes(sizes['dual' if form == 'primal' else 'primal'])}. Raise `budget`, use "
            "fewer features or rows, or use KernelRidge(solver='nystrom').",
        )
        return form, why

    @property
    def _shape(self) -> tuple[int, int]:
        """The numbers of rows and features."""
        return len(self._rows), self._design.dimension(self._rows.points)

    def _primal_bytes(self, n: int, M: int) -> int:
        if not self._design.implicit and self._stays_sparse(self._design.matrix(self._rows.points)):
            return 3 * 8 * M * M  # the normal equations
        return self._singular_bytes(n, M) if self._spectral else 3 * 8 * n * M

    @staticmethod
    def _singular_bytes(n: int, M: int) -> int:
        """The memory of singular values: the features, two copies (less their mean, and for LAPACK to overwrite), both
        sets of vectors and LAPACK's four small squares."""
        return 8 * (4 * n * M + 5 * min(n, M) ** 2)

    @property
    def _spectral(self) -> bool:
        """Whether the fit needs singular values: to choose alpha, or for alpha = 0."""
        return isinstance(self.alpha, str) or bool((self._penalties == 0).any())

    def _dual_bytes(self, n: int, M: int) -> int:
        if self._design.implicit or self._stays_sparse(self._design.matrix(self._rows.points)):
            return (4 if self._spectral else 2) * 8 * n * n
        return (4 if self._spectral else 2) * 8 * n * n + 8 * n * M  # the features less their mean

    @staticmethod
    def _stays_sparse(Phi: Any) -> bool:
        return bool(sp.issparse(Phi) and Phi.shape[0] * Phi.shape[1] > max(memory.HELD, 6 * Phi.nnz))

    def _phi(self, fill: bool = False) -> Any:
        """Φ on the training rows; sparse only if a dense array would be large."""
        Phi = self._design.matrix(self._rows.points)
        return Phi.toarray() if sp.issparse(Phi) and (fill or not self._stays_sparse(Phi)) else Phi

    def _problem(self) -> LeastSquares:
        rows = self._rows
        K = gram.of(self.kernel_, rows.points, dtype=np.float64, budget=self.budget)
        return LeastSquares(K, rows.y, self._penalties, rows.roots, self._tail(len(rows)))

    def _tail(self, n: int) -> Matrix | None:
        return np.ones((n, 1)) if self.fit_intercept else None

    def _query(self, points: Points, *, explicit: bool) -> tuple[Any, Matrix | None]:
        if explicit:
            return self._design.matrix(points), self._tail(points.n)
        return self.kernel_(points, self._rows.points, dtype=np.float64), self._tail(points.n)

    # -- two paths: normal equations, refined, and singular values --------------------------------------------------

    def _solve(self) -> None:
        """The weights by normal equations, or by singular values if these are known or needed for the digits."""
        rows = self._rows
        t = rows.y.shape[1]
        self._intercept = np.zeros(t)
        solved: dict[int, Matrix] = {}
        dual = False
        for alpha, columns in self._by_alpha():  # ascending: if the first alpha needs a spectrum, it serves all
            y = rows.y[:, columns]
            answer = self._by_normal_equations(alpha, y)
            if answer is None:
                factor = self._factor(alpha)
                dual = not isinstance(factor, (FeatureFactor, GramFactor))
                answer = factor.weights(y) if isinstance(factor, (FeatureFactor, GramFactor)) else factor.solve(y)
            main, tail = answer
            solved.update(zip(columns.tolist(), main.T))
            if tail is not None and len(tail):
                self._intercept[columns] = tail[0]
        coefficients = np.stack([solved[j] for j in range(t)], axis=1)
        self._dual, self._weights = (coefficients, None) if dual else (None, coefficients)
        if dual and not self._design.implicit:
            self._weights = np.asarray(self._design.matrix(rows.points).T @ coefficients, dtype=np.float64)
        self.intercept_: Any = float(self._intercept[0]) if rows.single else self._intercept

    def _by_normal_equations(self, alpha: float, y: Matrix) -> tuple[Matrix, Matrix | None] | None:
        """The weights from ΦᵀΦ or, in the dual form, from ΦΦᵀ; None if these are not built or lose the digits."""
        if alpha == 0 or "spectrum" in self._cache:
            return None
        if self.form_ == "primal":
            Phi = self._design.matrix(self._rows.points)
            if sp.issparse(Phi) or Phi.shape[0] < Phi.shape[1]:
                return None
            return by_normal_equations(Phi, y, alpha, self._rows.roots, self._tail(len(y)))
        factor = None if self._design.implicit else self._gram_factor(alpha)
        if not isinstance(factor, GramFactor):
            return None
        if factor.condition <= SEVEN_DIGITS:
            self._cache[alpha] = factor
        with contextlib.suppress(np.linalg.LinAlgError):
            return factor.weights(y)
        return None

    def _factorise(self, alpha: float) -> Factor:
        if "spectrum" in self._cache or self.form_ == "primal" or self._spectral:
            return self._spectrum().at(alpha)
        factor, implicit = self._gram_factor(alpha), self._design.implicit
        affordable = self._singular_bytes(*self._shape) <= memory_budget(self.budget)
        limit = SEVEN_DIGITS if not implicit else NO_DIGITS if affordable else np.inf
        if factor is not None and factor.condition <= limit:
            return factor
        return self._spectrum(lost=not implicit or affordable).at(alpha)

    def _gram_factor(self, alpha: float) -> CholeskyFactor | None:
        """The dual system from the Gram matrix, by features unless a kernel was passed; None if it is singular."""
        rows = self._rows
        with contextlib.suppress(np.linalg.LinAlgError):
            if self._design.implicit:
                return CholeskyFactor(self._problem().matrix(np.float64), alpha, rows.roots, self._tail(len(rows)))
            return GramFactor(self._phi(), alpha, rows.roots, self._tail(len(rows)))
        return None

    def _spectrum(self, *, lost: bool = False) -> FeatureSpectrum | Eigendecomposition:
        """Singular values of the features, or eigenvalues of K if only K fits into memory and no digits are `lost`."""
        if "spectrum" not in self._cache:
            self._cache["spectrum"] = self._decomposed(lost)
        spectrum: FeatureSpectrum | Eigendecomposition = self._cache["spectrum"]
        return spectrum

    def _decomposed(self, lost: bool) -> FeatureSpectrum | Eigendecomposition:
        rows, limit, size = self._rows, memory_budget(self.budget), self._singular_bytes(*self._shape)
        if self.form_ == "dual":
            implicit = self._design.implicit or self._stays_sparse(self._design.matrix(rows.points))
            if not lost and (implicit or size > limit):
                return Eigendecomposition(self._problem())
            n, M = self._shape
            advice = "Scale the columns to similar ranges, raise `alpha`, or raise `budget`."
            within(size, limit, f"The singular values of {n:,} × {show_count(M)} features", advice)
        return FeatureSpectrum(self._phi(fill=self.form_ == "dual"), rows.roots, self._tail(len(rows)))
