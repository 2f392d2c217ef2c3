"""Radial basis function networks: a sum of bumps around centres, fitted by least squares."""

from __future__ import annotations

import contextlib
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import gram, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel, Weight
from mercer.kernels.vectors.splines import ConditionalKernel
from mercer.memory import budget, within
from mercer.models.base import Matrix, Rows, check_columns, penalties, training_points
from mercer.models.least_squares.local_fits import LocalFits, order_of
from mercer.models.least_squares.rbf_basis import (
    CENTERS,
    RadialBasis,
    basis_function,
    chosen_centers,
    different,
    nearest_pair,
)
from mercer.models.least_squares.smoother import PenalisedSmoother, check_penalty_rule
from mercer.models.tunable import RidgeProblem
from mercer.problems.least_squares import LeastSquares
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Monomials, Tail
from mercer.solvers.eigen import Eigendecomposition, SpectralFactor
from mercer.solvers.factor import Factor
from mercer.solvers.primal import FeatureFactor, FeatureSpectrum
from mercer.solvers.psd import require_psd
from mercer.solvers.saddle import HOPELESS, Projected, SaddleFactor
from mercer.tuning.loo import choose_alpha
from mercer.validation import check_choice, check_whole_number

ILL_CONDITIONED = 1e12
"""Beyond this condition number few digits of a fit are left, and `status_` says so."""


@dataclass(eq=False, repr=False)
class RBFNetwork(PenalisedSmoother):
    """f(x) = Σⱼ wⱼ φ(‖x − μⱼ‖) + polynomial: radial basis functions around centres μ, by penalised least squares.

    w minimises ½ Σ (yᵢ − f(xᵢ))² + ½ alpha wᵀKw, where K is φ between centres and wᵀKw is the squared norm of f in the
    Hilbert space of φ: with all points as centres this is kernel ridge regression. With `penalty="ridge"` the penalty
    is ½ alpha ‖w‖² instead.

    Parameters
    ----------
    kernel : Kernel, rule or None
        φ. A kernel, a conditionally positive definite function (`ThinPlate`, `Polyharmonic`, `Multiquadric`), a
        smoothing weight (with the penalty ‖w‖²), a rule X → kernel, or None for a Gaussian with the median width.
    n_centers : int or None
        The number of centres; by default 100, or every point if there are fewer.
    centers : str or array
        "kmeans", "pivoted" (randomly pivoted Cholesky), "random", "all" (every point: at alpha = 0 the exact
        interpolant), or the centres themselves, shape (m, d). They are chosen among the different rows of X.
    alpha : float, array or str
        The penalty, a number ≥ 0, or one per target; "loo" chooses it by the leave-one-out error.
    penalty : str
        "rkhs" for wᵀKw, "ridge" for ‖w‖²; "auto" takes the second only if there is no Hilbert space, for a normalised
        basis or a smoothing weight.
    normalized : bool
        Whether the basis functions are divided by their sum, h = φⱼ/Σφ, which follows from least squares with input
        noise of density φ (lecture 004). Far from all centres the nearest one decides.
    degree : int or None
        The degree of the polynomial, which is not penalised: 0 is an intercept, −1 is no polynomial. By default the
        smallest that φ needs.
    neighbors : int or None
        For many points: each prediction comes from the network of this number of nearest points (all of them centres;
        `centers` is not used).
    random_state : int
        Seed of the choice of centres.

    Attributes
    ----------
    kernel_, alpha_ : Kernel, float or array
        Those that were used.
    centers_
        The centres, m of them.
    coef_ : array
        w, shape (m,) or (m, t).
    tail_ : Tail or None
        The polynomial, or None.
    function_ : Expansion
        f as an `Expansion`, unless the basis is normalised.
    rank_, condition_
        Rank and condition number of the linear system.
    status_ : str
        How it was solved, and how well it is conditioned.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80)
    >>> model = mc.RBFNetwork(mc.Gaussian(1.0), n_centers=10, alpha="loo").fit(X, y)
    >>> len(model.centers_), round(model.loo_score_, 2)
    (10, 0.98)
    >>> model.predict_interval([[np.pi / 2]], coverage=0.9).round(1)
    array([[0.8, 1.2]])
    >>> mc.RBFNetwork(mc.ThinPlate(), centers="all", alpha=0.0).fit([[0.0], [1.0], [3.0]], [1.0, 0.0, 2.0]).status_
    'interpolation of 3 points; condition number 1; the nearest two, rows 0 and 1, are 1 apart'
    """

    kernel_: Any = field(init=False)
    coef_: Any = field(init=False)
    rank_: Any = field(init=False)
    condition_: Any = field(init=False)

    kernel: Any = None
    _: KW_ONLY
    n_centers: int | None = None
    centers: Any = "kmeans"
    alpha: Any = 1e-2
    penalty: str = "auto"
    normalized: bool = False
    degree: int | None = None
    neighbors: int | None = None
    random_state: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to n points X and targets y, shape (n,) or (n, t).

        A sample weight says how often its row counts: with weight 2 as if it were there twice, with weight 0 not at
        all. (Except in leave-one-out and alpha="loo": a row of weight 2 is left out as a whole, two equal rows are left
        out one at a time.)
        """
        rows = Rows.of(training_points(X), y, sample_weight)
        self._rows = rows
        self._cache: dict[Any, Any] = {}
        points = different(rows.points)  # so that a repetition of a row changes its weight and nothing else
        self.kernel_ = basis_function(self.kernel, points)
        self.kernel_.touch(rows.points)
        self._of_rows = self.kernel_.dtype_of(rows.points)
        check_columns(self, X, reset=True)
        self._check()
        alpha = penalties(1.0 if isinstance(self.alpha, str) else self.alpha, rows.y.shape[1])
        self._tail_basis = None
        if self._degree >= 0:
            self._tail_basis = Monomials.around(rows.points, self._degree)
            self._tail_basis.require_unisolvent(rows.points)
        for name in ("function_", "_local", "_whiten"):
            self.__dict__.pop(name, None)
        if self.neighbors is not None:
            return self._fit_nearby(alpha)
        if self._dual:
            self._centers = rows.points
        else:
            self._centers = chosen_centers(self.kernel_, points, self.centers, self.n_centers, self.random_state)
            if self._penalty == "rkhs":
                self._whiten = self._basis.whitening()
        return self._fit_network(alpha)

    def predict(self, X: Any) -> NDArray[Any]:
        """f(x) for m points, shape (m,) or (m, t), in the dtype of the data."""
        points = self._queries(X)
        if self.neighbors is not None:
            values = np.empty((points.n, self._rows.y.shape[1]))
            for columns, fits in self._local:
                values[:, columns] = fits(points.dense())
            return self._rows.shaped(values).astype(self._dtype(points), copy=False)
        if not self.normalized:
            return self.function_(points).astype(self._dtype(points), copy=False)
        values = np.empty((points.n, *self.coef_.shape[1:]))
        for span in threads.spans(points.n, max(1, 2**22 // self._centers.n)):
            part = points.take(span)
            values[span] = self._basis(part) @ self.coef_
            if self.tail_ is not None:
                values[span] += self.tail_(part)
        return values.astype(self._dtype(points), copy=False)

    def basis(self, X: Any) -> Matrix:
        """The basis functions φ(‖x − μⱼ‖) at m points, shape (m, centres), divided by their sum if `normalized`.

        >>> import numpy as np, mercer as mc
        >>> model = mc.RBFNetwork(mc.Gaussian(1.0), normalized=True).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.basis([[0.5], [1e6]])
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        points = self._queries(X)
        if self.neighbors is not None:
            raise InvalidInput(
                "`basis` needs one network for all queries", got="`neighbors`", advice="Fit with neighbors=None."
            )
        return self._basis(points)

    def _training_only(self) -> tuple[str, ...]:
        return () if self.neighbors is not None or getattr(self, "_dual", True) else ("_rows", "_whiten")

    # -- choices ------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check the parameters, alone and together."""
        check_choice(self.penalty, "penalty", ("auto", "rkhs", "ridge"), advice="Pass 'auto' to have one chosen.")
        check_penalty_rule(self.alpha)
        if isinstance(self.centers, str):
            advice = "Pass 'kmeans', the default, or an array of points."
            check_choice(self.centers, "centers", CENTERS, alternative="the centres themselves", advice=advice)
        if self.n_centers is not None and not (isinstance(self.centers, str) and self.centers != "all"):
            which = "centers='all'" if isinstance(self.centers, str) else "an array of centres"
            raise InvalidInput(
                "`n_centers` is for centres that are chosen",
                got=f"{self.n_centers} beside {which}",
                advice="Leave `n_centers` out.",
            )
        kernel = self.kernel_
        hilbert = not self.normalized and not isinstance(kernel, Weight)
        self._penalty = ("rkhs" if hilbert else "ridge") if self.penalty == "auto" else self.penalty
        if self._penalty == "rkhs" and not hilbert:
            what = "a normalised basis" if self.normalized else repr(kernel)
            raise InvalidInput(
                "penalty='rkhs' needs a function of a Hilbert space, whose squared norm is wᵀKw",
                got=f"{what}, which has no Hilbert space",
                advice="Use penalty='ridge', the penalty ‖w‖².",
            )
        if self.normalized and not kernel.tags.nonnegative:
            raise InvalidInput(
                "A normalised basis needs functions ≥ 0",
                got=repr(kernel),
                advice="Use a kernel such as mc.Gaussian or mc.Matern.",
            )
        order = 0 if isinstance(kernel, Weight) else order_of(kernel)
        self._degree = order - 1
        if self.degree is not None:
            advice = f"Pass None for the smallest degree that {kernel!r} needs."
            self._degree = check_whole_number(self.degree, "degree", least=order - 1, advice=advice)
        self._dual = isinstance(self.centers, str) and self.centers == "all" and self._penalty == "rkhs"

    # -- one network: every point a centre (a system of the points), or chosen centres (features) ----------------------

    def _fit_network(self, alpha: Matrix) -> Self:
        """Compute the weights of the centres, by the factor of each alpha."""
        rows, m = self._rows, self._centers.n
        if isinstance(self.alpha, str):
            spectrum = self._spectrum_of_points(alpha) if self._dual else self._spectrum_of_centers()
            alpha = choose_alpha(spectrum, rows.y, None if rows.roots is None else rows.roots**2)
        self._penalties = alpha
        self._report_alpha()
        proven = isinstance(self.kernel_, ConditionalKernel) or self.kernel_.proof(self._dimension).valid
        if self._dual and not proven:
            require_psd(gram.of(self.kernel_, rows.points))
        functions = self._tail_values(rows.points.take(slice(0, 1)))
        t = rows.y.shape[1]
        coef, tail = np.empty((m, t)), np.empty((0 if functions is None else functions.shape[1], t))
        self.condition_, self.rank_ = 1.0, m
        for alpha_of_columns, columns in self._by_alpha():
            factor, y = self._factor(alpha_of_columns), rows.y[:, columns]
            c, b = factor.weights(y) if isinstance(factor, FeatureFactor) else factor.solve(y)
            coef[:, columns] = self._whiten @ c if hasattr(self, "_whiten") else c
            if b is not None and len(b):
                tail[:, columns] = b
            self.condition_ = max(self.condition_, factor.condition)
            if isinstance(factor, (SpectralFactor, FeatureFactor)):
                self.rank_ = factor.spectrum.rank
        self.centers_ = self._centers.raw
        self.coef_ = rows.shaped(coef).astype(self._of_rows, copy=False)
        self.tail_ = None if self._tail_basis is None else Tail(self._tail_basis, rows.shaped(tail))
        if not self.normalized:
            self.function_ = Expansion(self.kernel_, self._centers, self.coef_, self.tail_)
        self.status_ = self._status()
        return self

    def _status(self) -> str:
        n, m = len(self._rows), self._centers.n
        exact = self._dual and not self._penalties.any()
        if exact:
            status = f"interpolation of {n} points"
        else:
            every, penalty = "all " if self._dual else "", "wᵀKw" if self._penalty == "rkhs" else "‖w‖²"
            status = f"penalised least squares on {every}{m} centres, penalty {penalty}"
        if self.rank_ < m:
            minimum = ", the solution of minimum norm" if not self._penalties.all() else ""
            status += f"; rank {self.rank_} of {m}{minimum}"
        status += f"; condition number {self.condition_:.1g}"
        if exact or self.condition_ > ILL_CONDITIONED:
            status += nearest_pair(self._centers)
        if self.condition_ > ILL_CONDITIONED:
            status += ". Few digits are certain: raise alpha, use fewer centres or a narrower function"
        return status

    @property
    def _dimension(self) -> int | None:
        return getattr(self, "n_features_in_", None)

    def _dtype(self, points: Points) -> np.dtype[Any]:
        """The dtype of the data: queries and training points."""
        return np.result_type(self.kernel_.dtype_of(points), self._of_rows)

    def _tail_values(self, points: Points) -> Matrix | None:
        return None if self._tail_basis is None else self._tail_basis(points)

    def _factor(self, alpha: float) -> Factor:
        if self.neighbors is not None:
            raise InvalidInput(
                "Intervals and degrees of freedom need one network for all queries",
                got="`neighbors`",
                advice="Fit with neighbors=None.",
            )
        return super()._factor(alpha)

    def _factorise(self, alpha: float) -> Factor:
        return self._factor_of_points(alpha) if self._dual else self._spectrum_of_centers().at(alpha)

    def _query(self, points: Points, *, explicit: bool) -> tuple[Matrix, Matrix | None]:
        if explicit:
            return self._features(points), self._tail_values(points)
        return self.kernel_(points, self._rows.points, dtype=np.float64), self._tail_values(points)

    # -- every point a centre -----------------------------------------------------------------------------------------

    def _problem(self, alpha: Matrix) -> LeastSquares:
        rows = self._rows
        K = gram.of(self.kernel_, rows.points)
        return LeastSquares(K, rows.y, alpha, rows.roots, self._tail_values(rows.points))

    def _spectrum_of_points(self, alpha: Matrix) -> Eigendecomposition:
        """The spectrum for every alpha, within the tail's null space: φ may be positive definite only there."""
        p = self._problem(alpha)
        return Eigendecomposition(Projected(p.gram, p.y, p.alpha, p.roots, p.tail))

    def _factor_of_points(self, alpha: float) -> Factor:
        problem = self._problem(self._penalties)
        if isinstance(self.kernel_, ConditionalKernel):
            return SaddleFactor.of(problem, alpha)
        with contextlib.suppress(np.linalg.LinAlgError):
            factor = SaddleFactor(problem.matrix(np.float64), alpha, problem.roots, problem.tail)
            if factor.condition < HOPELESS:
                return factor
        return Eigendecomposition(problem).at(alpha)  # singular to rounding: the solution of minimum norm

    # -- chosen centres -----------------------------------------------------------------------------------------------

    @property
    def _basis(self) -> RadialBasis:
        return RadialBasis(self.kernel_, self._centers, self.normalized)

    def _features(self, points: Points) -> Matrix:
        """The functions whose weights have the penalty ‖θ‖²."""
        basis = self._basis(points)
        return basis @ self._whiten if hasattr(self, "_whiten") else basis

    def _spectrum_of_centers(self) -> FeatureSpectrum:
        """The singular values of the basis functions at the rows, for every alpha."""
        if "spectrum" not in self._cache:
            rows, m = self._rows, self._centers.n
            size = 8 * len(rows) * m
            within(4 * size, budget(), f"{m} basis functions at {len(rows)} points", "Use fewer centres.")
            features, tail = self._query(rows.points, explicit=True)
            self._cache["spectrum"] = FeatureSpectrum(features, rows.roots, tail)
        spectrum: FeatureSpectrum = self._cache["spectrum"]
        return spectrum

    # -- one network for each query, of its nearest points ------------------------------------------------------------

    def _fit_nearby(self, alpha: Matrix) -> Self:
        """Keep the different points and their mean targets; each query will have its own network."""
        rows = self._rows
        if self.normalized or self._penalty != "rkhs" or isinstance(self.alpha, str) or self.n_centers is not None:
            raise InvalidInput(
                "`neighbors` requires the penalty wᵀKw, a number as alpha, and no choice of centres",
                got=f"penalty={self._penalty!r}, alpha={self.alpha!r}, normalized={self.normalized}",
                advice="Leave `neighbors` out, or these parameters.",
            )
        k = check_whole_number(self.neighbors, "neighbors", such_as=50)
        X, self._which = np.unique(rows.points.dense(), axis=0, return_inverse=True)
        self._which = self._which.reshape(-1)
        w = np.ones(len(rows)) if rows.roots is None else rows.roots**2
        total = np.bincount(self._which, w)
        means = np.stack([np.bincount(self._which, w * column) for column in rows.y.T], axis=1) / total[:, None]
        self._merged = len(X) < len(rows)
        k = min(k, len(X))
        self._penalties = alpha
        self._report_alpha()
        self._local = [
            (columns, LocalFits(self.kernel_, X, means[:, columns], a / total, k, int(self._degree)))
            for a, columns in self._by_alpha()
        ]
        self.centers_, self.tail_, self.coef_ = X, None, None
        self.rank_ = self.condition_ = None
        self.status_ = f"local fits on the {k} nearest of {len(X)} points"
        return self

    # -- tuning -------------------------------------------------------------------------------------------------------

    def ridge_problem(self, rows: Rows) -> RidgeProblem:
        """The problem on these rows whose criteria `mc.tune` searches, if the network is kernel ridge regression."""
        kernel = basis_function(self.kernel, rows.points)
        checked = clone(self)
        checked.kernel_ = kernel
        checked._check()
        why = (
            f"neighbors={self.neighbors!r}" if self.neighbors is not None
            else "normalized=True" if self.normalized
            else repr(kernel) if not isinstance(kernel, Kernel)
            else f"penalty={self.penalty!r}" if checked._penalty != "rkhs"
            else None
        )  # fmt: skip
        if why is not None or not isinstance(kernel, Kernel):
            alone = "Tune it with neighbors=None" if self.neighbors is not None else "Choose its penalty by alpha='loo'"
            raise InvalidInput(
                "An RBFNetwork is tuned by the criterion of kernel ridge, which needs a positive definite kernel and "
                "the penalty wᵀKw on one network",
                got=why,
                advice=f"{alone}; compare kernels by loo_score_.",
            )
        if checked._degree < 0:
            return RidgeProblem(kernel, rows.y, None)
        basis = Monomials.around(rows.points, int(checked._degree))
        basis.require_unisolvent(rows.points)
        return RidgeProblem(kernel, rows.y, basis(rows.points))

    def _leave_one_out(self) -> Matrix:
        if self.neighbors is None:
            return super()._leave_one_out()
        if self._merged:
            raise InvalidInput(
                "Leave-one-out with `neighbors` needs different rows",
                got="repeated rows",
                advice="Merge them: pass their mean target, and their number as sample_weight.",
            )
        if len(self._rows) < 2:
            raise InvalidInput(
                "Leave-one-out with `neighbors` needs two points", got="one point", advice="Fit on more rows."
            )
        residuals = np.empty_like(self._rows.y)
        for columns, fits in self._local:
            residuals[:, columns] = self._rows.y[:, columns] - fits.leave_one_out()[self._which]
        return residuals
