"""Bayesian linear regression: a Gaussian belief about weights, before and after the data (lecture 004).

Before the data w ~ N(m₀, S₀); given t = Φw + noise of precision β it is Gaussian again, N(m_N, S_N), with

    S_N⁻¹ = S₀⁻¹ + βΦᵀΦ,      m_N = S_N(S₀⁻¹m₀ + βΦᵀt).

Neither inverse is formed. With S₀ = GGᵀ everything is diagonal in the singular vectors of the whitened features ΦG;
directions in which the prior is flat (precision zero) are a tail that is not penalised.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.features import ComposedMap, ConstantMap, FeatureMap, FunctionMap, IdentityMap, LinearMap, StackedMap
from mercer.kernels.base import Kernel
from mercer.kernels.custom import FromFeatures
from mercer.memory import budget as memory_budget
from mercer.memory import within
from mercer.models.base import KernelEstimator, Matrix, Rows, check_columns, outside, training_points
from mercer.models.least_squares.design import Design
from mercer.models.least_squares.smoother import GaussianSmoother
from mercer.solvers.factor import log_square
from mercer.solvers.primal import FeatureFactor, FeatureSpectrum
from mercer.tuning import evidence
from mercer.validation import check_choice, check_number, check_numbers, check_whole_number, generator

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Belief:
    """A Gaussian distribution of weights, N(mean, root rootᵀ), flat along the columns of `flat`.

    Attributes
    ----------
    mean : array
        The means, shape (M, t), one column per target.
    root : array
        G with covariance GGᵀ, shape (M, q), or (M,) for a diagonal G.
    flat : array
        Orthonormal directions of infinite variance, shape (M, p).
    """

    mean: Matrix
    root: Matrix
    flat: Matrix

    def whitened(self, Phi: Matrix) -> Matrix:
        """ΦG: the features whose weights are N(0, I)."""
        return Phi * self.root if self.root.ndim == 1 else Phi @ self.root

    @property
    def proper(self) -> int:
        """The number of directions in which the prior is not flat."""
        return int((self.root != 0).sum()) if self.root.ndim == 1 else self.root.shape[1]


class Conditioning:
    """A belief given data: posterior and evidence for every precision of noise and every scale of the prior.

    With (I − QQᵀ)Φ̃G = U S Vᵀ and targets z = ỹ − Φ̃m₀ with coordinates c = Uᵀz, the targets are independent, with
    variance 1/β + S²/alpha along U and 1/β in all other directions.

    Parameters
    ----------
    prior : Belief
        The belief before the data, whose covariance the methods divide by `alpha`.
    Phi, y, roots : array, array or None
        Features (n, M), targets (n, t), √w (n,) or None.

    """

    def __init__(self, prior: Belief, Phi: Matrix, y: Matrix, roots: Matrix | None) -> None:
        self.prior = prior
        tail = Phi @ prior.flat if prior.flat.shape[1] else None
        self.spectrum = s = FeatureSpectrum(prior.whitened(Phi), roots, tail)
        if s.Q.shape[1] < prior.flat.shape[1]:
            raise InvalidInput(
                "Directions with a flat prior (precision 0) must be determined by the data",
                got=f"{prior.flat.shape[1]} of them, {s.Q.shape[1]} independent on {len(y)} rows",
                advice="Pass more rows in the first call, or a small precision > 0.",
            )
        self.N = float(len(y) if roots is None else roots @ roots)
        self.targets = y - Phi @ prior.mean
        z = s.roots[:, None] * self.targets
        self.t = y.shape[1]
        self.in_units = log_square(s.R_inverse) if s.Q.shape[1] else 0.0
        self.in_tail = s.Q.T @ z
        self.c = s.coordinates(z)
        self.squares = (self.c**2).sum(axis=1)
        self.rest = float((s.rest(z, self.c) ** 2).sum())
        self.size = float((z**2).sum())

    def require_numbers(self, alpha: float, beta: float) -> None:
        """Refuse precisions with which α + βS², or a variance of the targets, overflows."""
        largest = float(self.spectrum.values.max(initial=0.0))
        with np.errstate(over="ignore"):
            sizes = np.array([alpha + beta * largest, 1 / beta + largest / alpha, beta * self.size])
        if not np.isfinite(sizes).all():
            raise InvalidInput(
                "The precisions of targets and weights, on these features, must not overflow",
                got=f"{beta:.3g} of the noise, with {largest / alpha:.3g} for weights and {self.size:.3g} for targets",
                advice="Use less extreme precisions, or scale features and targets.",
            )

    def factor(self, alpha: float, beta: float) -> FeatureFactor:
        """Ridge regression on the whitened features with the penalty alpha/β: the same mean."""
        return self.spectrum.at(alpha / beta)

    def posterior(self, alpha: float, beta: float) -> Belief:
        """The belief after the data, with covariance root rootᵀ."""
        s, prior = self.spectrum, self.prior
        along = prior.flat @ s.R_inverse  # b = R⁻¹(Qᵀz − QᵀΨ̃u), in the weights' coordinates
        H = (np.diag(prior.root) if prior.root.ndim == 1 else prior.root) - along @ s.through
        V = s.Vt.T
        precision = alpha + beta * s.values
        parts = [H @ V / np.sqrt(precision)]
        if V.shape[1] < V.shape[0]:  # more features than rows: the data say nothing about these directions
            parts.append(H @ sla.qr(V, check_finite=False)[0][:, V.shape[1] :] / np.sqrt(alpha))
        parts.append(along / np.sqrt(beta))
        u = V @ ((beta * s.S / precision)[:, None] * self.c)
        mean = prior.mean + H @ u + along @ self.in_tail
        return Belief(mean, np.hstack(parts), np.zeros((len(mean), 0)))

    def log_evidence(self, alpha: float, beta: float) -> float:
        """log ∫ p(t|w) p(w) dw, summed over targets; along flat directions p(w) = 1."""
        s, n = self.spectrum, self.N - self.prior.flat.shape[1]
        used = s.S > 0
        variance = 1 / beta + s.values[used] / alpha
        misfit = float((self.squares[used] / variance).sum()) + beta * self.rest
        log_determinant = float(np.log(variance).sum()) - (n - s.rank) * np.log(beta) + self.in_units
        return evidence.gaussian(misfit, log_determinant, n, self.t)

    def updated(self, alpha: float, beta: float) -> tuple[float, float]:
        """Better precisions: MacKay's, or if the evidence would fall, those of EM, with which it never falls."""
        now = self.log_evidence(alpha, beta)
        faster = self.fixed_point(alpha, beta)
        if all(0 < value < np.inf for value in faster) and self.log_evidence(*faster) >= now - 1e-12 * abs(now):
            return faster
        return self.expected(alpha, beta)

    def fixed_point(self, alpha: float, beta: float) -> tuple[float, float]:
        """MacKay's update: α = γ/‖u‖² and 1/β = ‖z − Ψu‖²/(N − γ), with γ = Σ λ/(α + λ) including flat directions."""
        gamma, length, error = self._moments(alpha, beta)
        free = self.N - self.prior.flat.shape[1] - gamma
        return (self.t * gamma / length if length > 0 else np.inf), (self.t * free / error if error > 0 else np.inf)

    def expected(self, alpha: float, beta: float) -> tuple[float, float]:
        """EM's update: the inverse mean squares of u and of the noise, under the posterior."""
        gamma, length, error = self._moments(alpha, beta)
        s, q, p = self.spectrum, self.prior.proper, self.prior.flat.shape[1]
        spread = float((1 / (alpha + beta * s.values)).sum()) + (q - len(s.values)) / alpha
        noise = error + self.t * (gamma + p) / beta
        return self.t * q / (length + self.t * spread), self.t * self.N / noise

    def _moments(self, alpha: float, beta: float) -> tuple[float, float, float]:
        """γ, ‖u‖² and ‖z − Ψu‖² at the posterior mean, summed over targets."""
        s = self.spectrum
        used = s.S > 0
        precision = alpha + beta * s.values[used]
        shrink = beta * s.values[used] / precision  # λ/(α + λ)
        length = float((shrink**2 * self.squares[used] / s.values[used]).sum())
        error = float(((alpha / precision) ** 2 * self.squares[used]).sum()) + self.rest
        return float(shrink.sum()), length, error

    def effective(self, alpha: float, beta: float) -> float:
        """γ + p, the number of weights that the data determine."""
        return self.factor(alpha, beta).degrees_of_freedom


@dataclass(eq=False, repr=False)
class BayesianLinearRegression(GaussianSmoother, KernelEstimator):
    """The Gaussian posterior of w in t = wᵀφ(x) + noise of precision β, given w ~ N(m₀, S₀).

    Its mean with m₀ = 0 and S₀ = I/α is ridge regression with the penalty α/β; as a function of x it is the Gaussian
    process with the covariance φ(x)ᵀS₀φ(z) and the noise variance 1/β.

    Parameters
    ----------
    features : FeatureMap, transformer, function or None
        None for the columns themselves; a feature map; a scikit-learn transformer, which is cloned and fitted; a
        function X → Φ; or a kernel with a finite feature map. See `Ridge`.
    prior_precision : float or array
        α with S₀ = I/α, or one precision per feature. 0 is a flat (improper) prior, as is usual for a constant.
    noise_precision : float
        β, the inverse of the noise variance, > 0.
    prior_mean : float, array or None
        m₀, a number, or shape (M,) or (M, t); None is 0.
    prior_covariance : array or None
        S₀, shape (M, M), positive semidefinite, in place of `prior_precision`.
    fit_intercept : bool
        Whether a constant feature is added, with a flat prior.
    tune : str or None
        None, or "evidence": the scale of the prior and β maximise the evidence, starting from these.
    tol, max_iter : float, int
        `tune` ends when both precisions change by less than `tol`, or after `max_iter` updates.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, or half of the available memory.

    Attributes
    ----------
    coef_, intercept_ : array, float or array
        m_N, shape (M,) or (M, t), and the mean weight of the constant feature.
    covariance_ : array
        S_N, shape (M, M), with one more row for the constant feature.
    prior_precision_, noise_precision_
        Those that were used; the first is None with `prior_covariance`.
    prior_scale_
        The factor by which `tune` multiplied the prior's precision; 1.0 without it.
    log_evidence_ : float
        log p(t), summed over targets; with flat directions up to a constant, which depends on their units.
    degrees_of_freedom_ : float
        γ, the number of weights that the data determine.
    equivalent_kernel_
        k(x, z) = βφ(x)ᵀS_Nφ(z), a kernel.
    features_ : FeatureMap or None
        The feature map that was used, fitted; None for the columns themselves.
    n_iter_, status_ : int, str
        The number of updates of the precisions (1 without `tune`), and how it was solved, in words.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, 2006, sections 3.3 and 3.5.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> t = np.sin(2 * np.pi * X[:, 0])
    >>> phi = mc.Polynomial(5, c=1.0).features(1)
    >>> model = mc.BayesianLinearRegression(phi, prior_precision=1e-3, noise_precision=100.0).fit(X, t)
    >>> mean, std = model.predict([[0.25], [1.5]], return_std=True)
    >>> mean[:1].round(1), std.round(1)                                   # sure near the data, unsure far away
    (array([1.]), array([0.1, 9.3]))
    >>> k = model.equivalent_kernel_                                      # the mean is Σ k(x, xₙ) tₙ
    >>> bool(abs(k([[0.25]], X) @ t - mean[0]) < 1e-8), k.proof().valid
    (True, True)
    """

    features: Any = None
    _: KW_ONLY
    prior_precision: Any = 1.0
    noise_precision: float = 1.0
    prior_mean: Any = None
    prior_covariance: Any = None
    fit_intercept: bool = False
    tune: str | None = None
    tol: float = 1e-8
    max_iter: int = 1000
    budget: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compute the posterior given n points X and targets y, (n,) or (n, t), which share the prior and the noise.

        A sample weight says how often its row counts, in the evidence, too: with weight 2 as if it were there twice,
        with weight 0 not at all.
        """
        rows = Rows.of(training_points(X), y, sample_weight)
        self._design = Design.of(self.features, rows.points, rows.y)
        self.features_ = self._design.phi
        self.kernel_ = self._design.kernel
        check_columns(self, X, reset=True)
        Phi = self._features(rows.points)
        size = 8 * Phi.shape[1] * max(Phi.shape)
        advice = "Use fewer features, or mc.GaussianProcessRegressor with the kernel φᵀS₀φ, whose size is that of rows."
        within(4 * size, memory_budget(self.budget), f"The posterior of {Phi.shape[1]:,} weights", advice)
        self._single = rows.single
        self._prior = self._prior_belief(Phi.shape[1], rows.y.shape[1])
        self._rows_fitted: Rows | None = rows
        advice = "Pass the inverse of a variance, such as 1.0."
        beta = check_number(self.noise_precision, "noise_precision", above=0, advice=advice)
        self.prior_scale_, self.noise_precision_ = 1.0, beta
        self.n_iter_, self.status_ = 1, "closed form"
        data = Conditioning(self._prior, Phi, rows.y, rows.roots)
        data.require_numbers(1.0, self.noise_precision_)
        if self.tune is not None:
            advice = "Pass 'evidence', which tunes both precisions."
            check_choice(self.tune, "tune", ("evidence",), alternative="None", advice=advice)
            self._tune(data)
        precision = self.prior_precision
        self.prior_precision_: Any = None
        if self.prior_covariance is None:
            precision = float(precision) if np.ndim(precision) == 0 else np.asarray(precision, float)
            self.prior_precision_ = self.prior_scale_ * precision
        self._cache = {"data": data}
        self.log_evidence_ = 0.0
        self._row_sum = np.zeros(Phi.shape[1])
        return self._conclude(data, Phi, rows, self.prior_scale_)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Condition on further rows, with the posterior as the prior: as `fit` on all rows, evidence included.

        The precisions stay those of the first call (`tune` chooses them from its rows). The rows are not kept, so that
        leave-one-out and jackknife+ are no longer available.

        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(0, 1, 20)[:, None]
        >>> stream = mc.BayesianLinearRegression()
        >>> for start in range(0, 20, 5):
        ...     stream = stream.partial_fit(X[start : start + 5], 3 * X[start : start + 5, 0])
        >>> bool(abs(stream.coef_ - mc.BayesianLinearRegression().fit(X, 3 * X[:, 0]).coef_).max() < 1e-12)
        True
        """
        if not hasattr(self, "_belief"):
            return self.fit(X, y, sample_weight)
        rows = Rows.of(self._queries(X), y, sample_weight)
        if rows.y.shape[1] != self._belief.mean.shape[1]:
            raise InvalidInput(
                f"y must have {self._belief.mean.shape[1]} targets, as before",
                got=rows.y.shape[1],
                advice="Pass the same targets as in `fit`.",
            )
        Phi = self._features(rows.points)
        data = Conditioning(self._belief, Phi, rows.y, rows.roots)
        data.require_numbers(1.0, self.noise_precision_)
        self._rows_fitted, self._cache = None, {}
        self.status_ = "sequential: the posterior of earlier rows was the prior"
        return self._conclude(data, Phi, rows, 1.0)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of the predictive distribution of new targets, shape (m,) or (m, t), in the dtype of the features.

        Parameters
        ----------
        X : array, frame or list of objects
            m points.
        return_std : bool
            Whether to return √(1/β + φᵀS_Nφ), too, in the shape of the mean.
        return_cov : bool
            Whether to return the covariance of the m targets, too: ΦS_NΦᵀ + I/β, shape (m, m), the same for every
            column of y.
        """
        points = self._queries(X)
        Phi, dtype = self._features(points), self._design.matrix(points).dtype
        mean = self._shaped((Phi @ self._belief.mean).astype(dtype, copy=False))
        if not (return_std or return_cov):
            return mean
        half = Phi @ self._belief.root
        results = [mean]
        if return_std:
            std = np.sqrt(1 / self.noise_precision_ + (half**2).sum(axis=1)).astype(dtype, copy=False)
            results.append(std if self._single else np.repeat(std[:, None], mean.shape[1], axis=1))
        if return_cov:
            covariance = half @ half.T + np.eye(points.n) / self.noise_precision_
            results.append(covariance.astype(dtype, copy=False))
        return tuple(results)

    def predict_distribution(self, X: Any, *, noise: bool = True) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation of a new target (or, without noise, of wᵀφ(x)): shapes (m,) or (m, t)."""
        Phi = self._features(self._queries(X))
        mean = Phi @ self._belief.mean
        variance = ((Phi @ self._belief.root) ** 2).sum(axis=1) + (1 / self.noise_precision_ if noise else 0.0)
        std = np.broadcast_to(np.sqrt(variance)[:, None], mean.shape)
        return self._shaped(mean), self._shaped(std)

    def sample_functions(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> NDArray[np.float64]:
        """wᵀφ(x) for weights drawn from the posterior, shape (m, n_samples), or (m, t, n_samples).

        >>> import mercer as mc
        >>> model = mc.BayesianLinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])
        >>> lines = model.sample_functions([[0.0], [1.0], [2.0]], 4)
        >>> lines.shape, bool(abs(lines[2] - 2 * lines[1]).max() < 1e-12)
        ((3, 4), True)
        """
        Phi = self._features(self._queries(X))
        rng, n_samples = generator(random_state), check_whole_number(n_samples, "n_samples", such_as=10)
        mean, root = self._belief.mean, self._belief.root
        drawn = rng.standard_normal((root.shape[1], mean.shape[1] * n_samples))
        around = (Phi @ root @ drawn).reshape(len(Phi), mean.shape[1], n_samples)
        return self._shaped((Phi @ mean)[:, :, None] + around)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> NDArray[np.float64]:
        """New targets drawn from the predictive distribution: `sample_functions` with noise, in the same shape."""
        rng = generator(random_state)
        values = self.sample_functions(X, n_samples, rng)
        return values + rng.standard_normal(values.shape) / np.sqrt(self.noise_precision_)

    def summation_defect(self, X: Any) -> Matrix:
        """1 − Σₙ k(x, xₙ) for every point x, shape (m,): how far the equivalent kernel's weights are from summing to 1.

        If vᵀφ(x) = 1 for all x, it is φ(x)ᵀS_N S₀⁻¹v: zero everywhere iff the prior is flat (precision 0) on the
        constant, S₀⁻¹v = 0. Rows of weight w count w times.

        >>> import numpy as np, mercer as mc
        >>> X = np.linspace(0, 1, 9)[:, None]
        >>> line = lambda X: np.column_stack([np.ones(len(X)), X])
        >>> proper = mc.BayesianLinearRegression(line, prior_precision=1.0).fit(X, X[:, 0])
        >>> flat = mc.BayesianLinearRegression(line, prior_precision=[0.0, 1.0]).fit(X, X[:, 0])
        >>> proper.summation_defect([[0.5]]).round(3), bool(abs(flat.summation_defect(X)).max() < 1e-12)
        (array([0.09]), True)
        """
        Phi = self._features(self._queries(X))
        root = self._belief.root
        return np.asarray(1 - self.noise_precision_ * ((Phi @ root) @ (root.T @ self._row_sum)))

    @property
    def equivalent_kernel_(self) -> Kernel:
        """k(x, z) = βφ(x)ᵀS_Nφ(z), by its features √β S_N^½ φ(x): with m₀ = 0 the mean is Σ wₙ k(x, xₙ) tₙ."""
        check_is_fitted(self)
        half = LinearMap(np.sqrt(self.noise_precision_) * self._belief.root)
        return FromFeatures(half if self._map is None else ComposedMap(half, self._map))

    @property
    def covariance_(self) -> Matrix:
        """S_N."""
        check_is_fitted(self)
        return self._belief.root @ self._belief.root.T

    # -- inside ---------------------------------------------------------------------------------------------------

    def _training_only(self) -> tuple[str, ...]:
        return ("_rows_fitted",)

    @property
    def _rows(self) -> Rows:  # type: ignore[override]
        if self._rows_fitted is None:
            raise InvalidInput(
                "Leave-one-out and jackknife+ need the training rows",
                got="a model after `partial_fit`, which does not keep rows",
                advice="Fit on all rows at once, or use method='gaussian'.",
            )
        return self._rows_fitted

    def _features(self, points: Points) -> Matrix:
        """Φ in float64, with a column of ones at the end if there is an intercept."""
        Phi = self._design.matrix(points)
        if sp.issparse(Phi):
            limit, size = memory_budget(self.budget), 8 * Phi.shape[0] * Phi.shape[1]
            within(size, limit, "The features as a dense matrix", "Use mc.Ridge, which takes sparse features.")
            Phi = Phi.toarray()
        Phi = np.asarray(Phi, dtype=np.float64)
        return np.column_stack([Phi, np.ones(len(Phi))]) if self.fit_intercept else Phi

    def _prior_belief(self, M: int, t: int) -> Belief:
        """The prior of M weights, including that of the constant."""
        count = M - bool(self.fit_intercept)
        mean = np.zeros((M, t))
        if self.prior_mean is not None:
            mean[:count] = _broadcast(self.prior_mean, (count,), (count, t), "prior_mean")
        if self.prior_covariance is not None:
            root = np.zeros((M, count))
            root[:count] = _root(self.prior_covariance, count)
            return Belief(mean, root, np.eye(M)[:, count:])
        precision = np.zeros(M)
        precision[:count] = _broadcast(self.prior_precision, (count,), (count, 1), "prior_precision")[:, 0]
        if (precision < 0).any():
            raise InvalidInput(
                "`prior_precision` must be ≥ 0",
                got=precision.min(),
                advice="Pass 0 for a flat prior, and a larger number for a weight that is more certain.",
            )
        scale = np.divide(1.0, np.sqrt(precision), out=np.zeros(M), where=precision > 0)
        return Belief(mean, scale, np.eye(M)[:, precision == 0])

    def _tune(self, data: Conditioning) -> None:
        """Maximise the evidence by MacKay's fixed point."""
        alpha, beta = 1.0, self.noise_precision_
        tol = check_number(self.tol, "tol", above=0, such_as=1e-8)
        max_iter = check_whole_number(self.max_iter, "max_iter", such_as=1000)
        if data.size == 0:
            self.status_ = "not tuned, because all targets equal the prior's mean"
            return
        strongest = float(data.spectrum.values.max(initial=0.0))
        tunable = data.spectrum.rank > 0
        most = data.t * data.N / (EPS * data.size)  # noise below rounding of the targets
        for self.n_iter_ in range(1, max_iter + 1):
            new_alpha, new_beta = data.updated(alpha, beta)
            new_alpha = new_alpha if tunable else alpha
            new_beta = min(new_beta, most)
            if tunable and new_alpha > new_beta * strongest / EPS:
                self.status_ = "evidence: no relation was found; the prior's precision grew to its bound"
                beta = new_beta
                break
            change = max(abs(np.log(new_alpha / alpha)), abs(np.log(new_beta / beta)))
            alpha, beta = new_alpha, new_beta
            if change < tol:
                exact = f"; the targets are fitted exactly, noise_precision held at {most:.3g}" if beta == most else ""
                self.status_ = f"evidence: converged after {self.n_iter_} updates{exact}"
                break
        else:
            self.status_ = f"evidence: not converged after {max_iter} updates, last change {change:.2g} > {tol:g}"
            warnings.warn(self.status_, ConvergenceWarning, stacklevel=outside())
        self.prior_scale_, self.noise_precision_ = alpha, beta

    def _conclude(self, data: Conditioning, Phi: Matrix, rows: Rows, alpha: float) -> Self:
        beta = self.noise_precision_
        self._belief = data.posterior(alpha, beta)
        self.log_evidence_ += data.log_evidence(alpha, beta)
        self._row_sum = self._row_sum + (Phi.sum(axis=0) if rows.roots is None else rows.roots**2 @ Phi)
        self._map = self._feature_map(Phi.shape[1])
        M = Phi.shape[1] - bool(self.fit_intercept)
        self.coef_ = self._shaped(self._belief.mean[:M])
        constant = self._belief.mean[M] if self.fit_intercept else np.zeros(rows.y.shape[1])
        self.intercept_: Any = float(constant[0]) if self._single else constant
        return self

    def _feature_map(self, M: int) -> FeatureMap | None:
        """φ with the constant, as one map; None for the columns themselves."""
        phi, dimension = self._design.phi, M - bool(self.fit_intercept)
        if phi is None and not self.fit_intercept:
            return None
        if not isinstance(phi, FeatureMap):
            phi = IdentityMap(dimension) if phi is None else FunctionMap(phi, dimension=dimension)
        return StackedMap((phi, ConstantMap())) if self.fit_intercept else phi

    @property
    def degrees_of_freedom_(self) -> float:
        """γ = Σ λᵢ/(α + λᵢ), the number of weights that the data determine; a flat direction counts as one."""
        check_is_fitted(self)
        return self._data().effective(self.prior_scale_, self.noise_precision_)

    def _data(self) -> Conditioning:
        """The prior given the training rows; computed again after pickling."""
        if "data" not in self._cache:
            rows = self._rows
            self._cache["data"] = Conditioning(self._prior, self._features(rows.points), rows.y, rows.roots)
        return self._cache["data"]

    def _shaped(self, values: Matrix) -> Matrix:
        return values[:, 0] if self._single else values

    def _smoother(self, X: Any) -> Matrix:
        Phi = self._features(self._queries(X))
        factor = self._data().factor(self.prior_scale_, self.noise_precision_)
        tail = Phi @ self._prior.flat if self._prior.flat.shape[1] else None
        return factor.smoother(self._prior.whitened(Phi), tail)

    def _leave_one_out(self) -> Matrix:
        data = self._data()
        return data.factor(self.prior_scale_, self.noise_precision_).leave_one_out(data.targets)


# -- parameters --------------------------------------------------------------------------------------------------------


def _broadcast(value: Any, one: tuple[int, ...], several: tuple[int, int], name: str) -> Matrix:
    """A number, a vector of shape `one` or a matrix of shape `several`, as a finite matrix of that shape."""
    required = f"`{name}` must be a finite number, or have shape {one}" + (f" or {several}" if several[1] > 1 else "")
    advice = "Pass one finite number per feature; precision 0 is a flat prior."
    A = check_numbers(value, required, shapes=((), one, several), advice=advice)
    return np.broadcast_to(A[:, None] if A.shape == one else A, several)


def _root(S: Any, M: int) -> Matrix:
    """G with S = GGᵀ."""
    required = f"`prior_covariance` must be a symmetric positive semidefinite matrix of shape ({M}, {M})"
    S = check_numbers(S, required, shapes=[(M, M)], advice="Pass a matrix of finite numbers, one row per feature.")
    if not np.allclose(S, S.T, rtol=1e-10, atol=1e-12 * np.abs(S).max()):
        raise InvalidInput(required, got="an asymmetric matrix", advice="Pass (S + S.T)/2.")
    try:
        return np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((S + S.T) / 2)
    if values[0] < -M * EPS * max(values[-1], 0.0) * 10:
        raise InvalidInput(
            required, got=f"the eigenvalue {values[0]:.4g}", advice="Pass mc.repair(S).K, the nearest such matrix."
        )
    return vectors * np.sqrt(np.maximum(values, 0.0))
