"""Ridge regression on explicit features, in its primal and its dual form (lecture 000)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer import gram
from mercer.data.points import Points
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.features.base import FeatureMap
from mercer.kernels.algebra.rowwise import Given
from mercer.kernels.algebra.views import Mapped
from mercer.kernels.base import Kernel
from mercer.kernels.custom import FromFeatures
from mercer.kernels.sets import Intersection
from mercer.kernels.vectors.dot import Linear
from mercer.memory import budget as memory_budget
from mercer.memory import show_bytes, show_count, within
from mercer.models.base import KernelEstimator, Matrix, Rows, _columns, penalties, training_points
from mercer.models.least_squares.smoother import PenalisedSmoother
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers.base import Factor
from mercer.solvers.cholesky import CholeskyFactor
from mercer.solvers.eigen import Spectrum
from mercer.solvers.primal import (
    FeatureFactor,
    FeatureSpectrum,
    GramFactor,
    by_normal_equations,
    require_each_dispensable,
)
from mercer.tuning.loo import choose_alpha

FORMS = ("auto", "primal", "dual")
# Sparse features up to this size, or four times their own, are solved as dense ones, by singular values.
SMALL = 2**26
# Up to this condition of its Gram matrix, features leave leave-one-out, which is not refined, about seven digits.
RELIABLE = 1e9
# Beyond this condition a kernel's own matrix has lost the digits that its features, where there is room, still have.
HOPELESS = 1e12


@dataclass(frozen=True, eq=False)
class Design:
    """The features of a model, resolved on its training rows: phi(x), and the kernel φ(x)ᵀφ(z) that they induce.

    Attributes
    ----------
    kernel : φ(x)ᵀφ(z).
    phi : the map, or None for the columns as they are.
    implicit : whether a kernel was given, so that the dual form never needs phi.
    """

    kernel: Kernel
    phi: Any
    implicit: bool = False

    @classmethod
    def of(cls, features: Any, points: Points, y: Any) -> Design:
        """What the parameter `features` stands for; a scikit-learn transformer is cloned and fitted."""
        if features is None:
            return cls(Linear(), None)
        if isinstance(features, Kernel):
            return cls(features, _finite_map(features, points), implicit=True)
        if isinstance(features, type) or not (callable(features) or hasattr(features, "transform")):
            raise InvalidInput(
                "`features` must be None, a feature map, a transformer, a function X → Φ, or a kernel of finite rank",
                got=repr(features),
                advice="Such as mc.Polynomial(5, c=1.0), or lambda X: np.column_stack([X, X**2]).",
            )
        if hasattr(features, "fit") and hasattr(features, "transform"):
            features = clone(features).fit(points.raw, y)
        return cls(FromFeatures(features), features)

    def matrix(self, points: Points) -> Any:
        """Φ, one row per point: an array, or a CSR array where the features are sparse."""
        return points.vectors() if self.phi is None else points.view(Mapped(Given(self.phi))).vectors()

    def dimension(self, points: Points) -> int:
        """How many features there are; a map knows it without building any."""
        if isinstance(self.phi, FeatureMap):
            return self.phi.dimension
        return int(self.matrix(points).shape[1])


def _finite_map(kernel: Kernel, points: Points) -> FeatureMap:
    try:
        if kernel.space == "sets":
            return kernel.features(frozenset().union(*points.encoded(Intersection())))
        shape: tuple[int, ...] = getattr(points.raw, "shape", ())
        return kernel.features(shape[1] if len(shape) == 2 else as_vectors(points.raw).shape[1])
    except InvalidInput as error:
        if kernel.tags.finite_rank:
            raise
        raise InvalidInput(
            "A kernel given as `features` must have a finite feature map",
            got=error.got,
            advice="Models whose name begins with Kernel take any; mc.fourier_features and mc.taylor_features "
            "approximate some.",
        ) from None


class Ridge(PenalisedSmoother, KernelEstimator):
    """Ridge regression on features: f(x) = wᵀφ(x) + b that minimises ½ Σ vᵢ (yᵢ − f(xᵢ))² + ½ alpha ‖w‖².

    The primal form solves for M weights, w = (ΦᵀΦ + alpha I)⁻¹Φᵀy; the dual form for N coefficients, w = Φᵀc with
    c = (K + alpha I)⁻¹y and K = ΦΦᵀ. They are the same function. alpha = 0 is ordinary least squares: of all weights
    with the least error the shortest. Columns of very different sizes, or far from zero, keep their digits: where the
    Gram matrix of the dual form would lose them, the singular values of the features are taken.

    Parameters
    ----------
    features : None for the columns as they are; a feature map such as `mc.Polynomial(5, c=1.0).features(d)`; a
        scikit-learn transformer, which is cloned and fitted; a function X → Φ; or a kernel with a finite feature map,
        whose dual form uses the kernel alone and never builds the features.
    alpha : the penalty, a number ≥ 0, or one per target; "loo" chooses it (one per target) by the leave-one-out error.
    fit_intercept : whether a constant b is added, which is not penalised.
    form : "primal", "dual", or "auto" for the cheaper one; `form_` and `status_` say which and why.
    budget : memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.

    Attributes
    ----------
    coef_, intercept_ : w, shape (M,) or (M, t), and b.
    dual_coef_ : c with w = Σ cᵢ φ(xᵢ), shape (n,) or (n, t).
    function_ : f as an `Expansion` in the kernel φ(x)ᵀφ(z), which is `kernel_`.
    features_ : the feature map that was used, fitted; None for the columns as they are.
    alpha_ : the penalty that was used, a number, or one per target.
    rank_ : of the features on the training rows, less the constant that an intercept takes out of them.
    form_, status_ : the form that was solved, and in words how and why.

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

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, 2006, section 6.1.
    """

    _cache: dict[Any, Any]
    _keeps_rows = False  # in files, although predictions do without
    _weights: Matrix | None
    _dual: Matrix | None

    def __init__(
        self,
        features: Any = None,
        *,
        alpha: Any = 1.0,
        fit_intercept: bool = True,
        form: str = "auto",
        budget: Any = None,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.form = form
        self.budget = budget

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and targets y, shape (n,) or (n, t).

        A sample weight counts its row as often: weight 2 is the row given twice, weight 0 the row left out. (That does
        not hold for alpha="loo": leaving out one of two equal rows is not leaving out both.)
        """
        rows = Rows.of(training_points(X), y, sample_weight)
        self._design = Design.of(self.features, rows.points, rows.y)
        self.kernel_, self.features_ = self._design.kernel, self._design.phi
        _columns(self, X, reset=True)
        self._rows, self._single, self._cache = rows, rows.single, {}
        tune = isinstance(self.alpha, str)
        if tune and self.alpha != "loo":
            raise InvalidInput(
                "`alpha` must be a number ≥ 0, one per target, or 'loo'", got=repr(self.alpha), advice="Pass a float."
            )
        self._penalties = penalties(1.0 if tune else self.alpha, rows.y.shape[1])
        self.form_, why = self._choose()
        if tune or (self._penalties == 0).any():
            self._cache["spectrum"] = self._spectrum()
        if tune:
            if self.fit_intercept:
                require_each_dispensable(np.full((len(rows), 1), len(rows) ** -0.5))
            weights = None if rows.roots is None else rows.roots**2
            self._penalties = choose_alpha(self._cache["spectrum"], rows.y, weights)
        self._report_alpha()
        self._solve()
        how = "a Cholesky factor" if self.form_ == "dual" else "the normal equations, refined"
        if "spectrum" in self._cache:
            eigen = isinstance(self._cache["spectrum"], Spectrum)
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
                factor, y = self._factor(alpha), self._rows.y[:, columns]
                c[:, columns] = factor.solve(y)[0] if isinstance(factor, Factor) else factor.dual(y)
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
        """The rank of the features on the training rows, less the constant that an intercept takes out of them."""
        check_is_fitted(self)
        if "spectrum" not in self._cache:
            self._cache["spectrum"] = self._spectrum()
        spectrum = self._cache["spectrum"]
        if isinstance(spectrum, Spectrum) and spectrum.tail is not None:
            outside = np.linalg.norm(spectrum.tail[spectrum.values <= spectrum.tolerance])
            return spectrum.rank - int(outside < 1e-8 * np.linalg.norm(spectrum.tail))
        return spectrum.rank

    # -- inside ---------------------------------------------------------------------------------------------------

    def _training_only(self) -> tuple[str, ...]:
        return () if self._keeps_rows or getattr(self, "_weights", None) is None else ("_rows", "_dual")

    def _choose(self) -> tuple[str, str]:
        """The form, and why."""
        if self.form not in FORMS:
            raise InvalidInput(
                f"`form` must be one of {', '.join(map(repr, FORMS))}",
                got=repr(self.form),
                advice="Use 'auto', which chooses the cheaper one.",
            )
        n, M = len(self._rows), self._design.dimension(self._rows.points)
        limit = memory_budget(self.budget)
        sizes = {"primal": self._primal_bytes(n, M), "dual": self._dual_bytes(n, M)}
        counts = f"{show_count(M)} features {'≤' if n >= M else '>'} {n} rows"
        why = "as asked"
        form = self.form
        if form == "auto":
            form, why = ("primal" if n >= M else "dual"), counts
            if (self._penalties == 0).any() and not self._design.implicit and form == "dual":
                form, why = "primal", f"alpha = 0 asks for the rank, which the Gram matrix would blur ({counts})"
            other = {"primal": "dual", "dual": "primal"}[form]
            if sizes[form] > limit >= sizes[other]:
                why = f"{counts}, but the {form} needs {show_bytes(sizes[form])}"
                form = other
        within(
            sizes[form],
            limit,
            f"The {form} form of {n:,} rows and {show_count(M)} features",
            f"The other form needs {show_bytes(sizes['dual' if form == 'primal' else 'primal'])}. Raise `budget`, take "
            "fewer features or rows, or KernelRidge(solver='nystrom').",
        )
        return form, why

    def _primal_bytes(self, n: int, M: int) -> int:
        if not self._design.implicit and self._stays_sparse(self._design.matrix(self._rows.points)):
            return 3 * 8 * M * M  # the normal equations
        return self._singular_bytes(n, M) if self._spectral else 3 * 8 * n * M

    @staticmethod
    def _singular_bytes(n: int, M: int) -> int:
        """Of singular values: the features, their copy less the mean, what LAPACK overwrites, both sets of vectors and
        the four small squares that it works in."""
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
        return bool(sp.issparse(Phi) and 8 * Phi.shape[0] * Phi.shape[1] > max(SMALL, 4 * 12 * Phi.nnz))

    def _spectrum(self, lost: bool = False) -> FeatureSpectrum | Spectrum:
        """Singular values of the features; eigenvalues of K where it is all there is room for and nothing is `lost`."""
        rows = self._rows
        n, M = len(rows), self._design.dimension(rows.points)
        limit = memory_budget(self.budget)
        if self.form_ == "dual":
            implicit = self._design.implicit or self._stays_sparse(self._design.matrix(rows.points))
            if not lost and (implicit or self._singular_bytes(n, M) > limit):
                return Spectrum(self._problem())
            advice = "Scale the columns to similar ranges, raise `alpha`, or raise `budget`."
            within(
                self._singular_bytes(n, M), limit, f"The singular values of {n:,} × {show_count(M)} features", advice
            )
        return FeatureSpectrum(self._phi(fill=self.form_ == "dual"), rows.roots, self._tail(n))

    def _phi(self, fill: bool = False) -> Any:
        """Φ on the training rows; sparse only where it would be large as an array."""
        Phi = self._design.matrix(self._rows.points)
        return Phi.toarray() if sp.issparse(Phi) and (fill or not self._stays_sparse(Phi)) else Phi

    def _problem(self) -> LeastSquares:
        rows = self._rows
        K = gram.of(self.kernel_, rows.points, dtype=np.float64, budget=self.budget)
        return LeastSquares(K, rows.y, self._penalties, rows.roots, self._tail(len(rows)))

    def _tail(self, n: int) -> Matrix | None:
        return np.ones((n, 1)) if self.fit_intercept else None

    def _solve(self) -> None:
        rows = self._rows
        t = rows.y.shape[1]
        self._intercept = np.zeros(t)
        solved: dict[int, Matrix] = {}
        dual = False
        for alpha, columns in self._by_alpha():  # ascending, so that one spectrum serves all where the first needs it
            y = rows.y[:, columns]
            main, tail = self._quick(y, alpha) or self._factor(alpha).solve(y)
            dual = isinstance(self._cache.get(alpha), Factor) and not isinstance(self._cache[alpha], GramFactor)
            solved.update(zip(columns.tolist(), main.T))
            if tail is not None and len(tail):
                self._intercept[columns] = tail[0]
        coefficients = np.stack([solved[j] for j in range(t)], axis=1)
        self._dual, self._weights = (coefficients, None) if dual else (None, coefficients)
        if dual and not self._design.implicit:
            self._weights = np.asarray(self._design.matrix(rows.points).T @ coefficients, dtype=np.float64)
        self.intercept_: Any = float(self._intercept[0]) if rows.single else self._intercept

    def _quick(self, y: Matrix, alpha: float) -> tuple[Matrix, Matrix] | None:
        """The weights without singular values, which only ranks, alpha = 0 and lost digits ask for."""
        if alpha == 0 or "spectrum" in self._cache:
            return None
        if self.form_ == "dual":
            return None if self._design.implicit else self._by_gram(y, alpha)
        Phi = self._design.matrix(self._rows.points)
        if sp.issparse(Phi) or Phi.shape[0] < Phi.shape[1]:
            return None
        return by_normal_equations(Phi, y, alpha, self._rows.roots, self._tail(len(y)))

    def _by_gram(self, y: Matrix, alpha: float) -> tuple[Matrix, Matrix] | None:
        """The dual solution as weights, by the Gram matrix of the features; None where that loses their digits."""
        with contextlib.suppress(np.linalg.LinAlgError):
            factor = GramFactor(self._phi(), alpha, self._rows.roots, self._tail(len(y)))
            found = factor.weights(y)
            if factor.condition <= RELIABLE:
                self._cache[alpha] = factor
            return found
        return None

    def _factorise(self, alpha: float) -> Factor | FeatureFactor:
        lost = False
        if "spectrum" not in self._cache and self.form_ == "dual" and not self._spectral:
            factor = self._by_kernel(alpha) if self._design.implicit else self._by_features(alpha)
            if factor is not None:
                return factor
            lost = not self._design.implicit or self._affordable()
        if "spectrum" not in self._cache:
            self._cache["spectrum"] = self._spectrum(lost)
        return self._cache["spectrum"].at(alpha)

    def _by_kernel(self, alpha: float) -> CholeskyFactor | None:
        problem = self._problem()
        K = problem.matrix(np.float64)
        size = float(np.abs(K).sum(axis=0).max()) + alpha
        with contextlib.suppress(np.linalg.LinAlgError):  # singular to rounding: eigenvalues still have an answer
            factor = CholeskyFactor(K, alpha, problem.roots, problem.tail)
            reciprocal, _ = lapack.dpocon(factor.L, size, uplo="L")
            return factor if reciprocal * HOPELESS >= 1 or not self._affordable() else None
        return None

    def _affordable(self) -> bool:
        """Whether the features of a kernel have room for their singular values."""
        n, M = len(self._rows), self._design.dimension(self._rows.points)
        return self._singular_bytes(n, M) <= memory_budget(self.budget)

    def _by_features(self, alpha: float) -> GramFactor | None:
        with contextlib.suppress(np.linalg.LinAlgError):
            factor = GramFactor(self._phi(), alpha, self._rows.roots, self._tail(len(self._rows)))
            return factor if factor.condition <= RELIABLE else None
        return None

    def _apply(self, factor: Factor | FeatureFactor, X: Any) -> Matrix:
        points = self._queries(X)
        tail = self._tail(points.n)
        if isinstance(factor, GramFactor):
            return factor.at_features(self._design.matrix(points), tail)
        if isinstance(factor, Factor):
            return factor.smoother(self.kernel_(points, self._rows.points, dtype=np.float64), tail)
        return factor.smoother(self._design.matrix(points), tail)
