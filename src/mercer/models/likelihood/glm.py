"""Generalised linear models: the mean of a response through a link, E[y | x] = g⁻¹(f(x)) (lecture 003)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer import memory, threads
from mercer.data.points import Points
from mercer.models.base import Matrix
from mercer.models.likelihood import glm_intervals as intervals
from mercer.models.likelihood.glm_base import GeneralisedLinearModel
from mercer.models.likelihood.glm_summary import Summary
from mercer.models.likelihood.predictor import FeaturePredictor, KernelPredictor
from mercer.models.quantiles import share
from mercer.problems.spaces import FeatureSpace, NystromSpace
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers.curvature import FeatureSystem, GramSystem


@dataclass(eq=False, repr=False)
class GLM(GeneralisedLinearModel, FeaturePredictor):
    """A generalised linear model on features: E[y | x] = g⁻¹(wᵀφ(x) + b) with a response from a family.

    w minimises ½ deviance + ½ alpha ‖w‖²; alpha = 0 gives the maximum of the likelihood. With the Gaussian family this
    is `Ridge`, with Bernoulli's `LogisticRegression`. With link="probit" the response is the sign of a latent variable
    with normal noise: y = 1 iff wᵀφ(x) + b + ε > 0 with ε ~ N(0, 1), so that P(y = 1 | x) = Φ(wᵀφ(x) + b).

    Parameters
    ----------
    features : FeatureMap, transformer, function or None
        None to use the columns of X unchanged (dense or sparse); a feature map, a transformer, a function X → Φ, or a
        kernel of finite rank, as in `Ridge`.
    family : str or Family
        "gaussian", "bernoulli" (also shares, with the numbers of trials as weights), "poisson", "gamma",
        "inverse_gaussian", "negative_binomial" or "tweedie", or a value such as `NegativeBinomial(theta=2.0)` and
        `Tweedie(power=1.7)` of mercer.problems.families.
    link : str, Link or None
        "identity", "logit", "probit", "cloglog", "cauchit", "log", "inverse", "sqrt", "canonical" or a value of
        mercer.problems.links. The default depends on the family: identity for the Gaussian, logit for Bernoulli's, log
        for all others.
    alpha : float
        The penalty, ≥ 0.
    fit_intercept : bool
        Whether to add a constant b, which is not penalised.
    solver : str
        "newton" (iteratively reweighted least squares; the choice of "auto"), "newton-cg" (forms no Hessian), "lbfgs",
        "backtracking" (gradient descent with steps halved until they descend), "gradient" (fixed steps).
    step, start : float, array or None
        The fixed step of "gradient"; initial weights (then the intercept).
    tol : float
        Newton's methods stop when the predicted excess over the minimum is below tol² times the first objective, the
        others when the gradient is below tol times the first gradient.
    max_iter, max_time : int or None, float or None
        Limits on steps and seconds; by default 100 to 10 000 steps, depending on the solver, and no limit on time.
    progress : function
        A function that gets each `Step`; if it returns False, the fit stops there. Use `set_callbacks` for
        scikit-learn's callbacks.

    Attributes
    ----------
    coef_, intercept_ : array, float or array
        w, shape (M,), and b.
    standard_errors_, z_values_, p_values_ : array
        For [w, b], shape (M + 1,), or (M,) without intercept. For alpha > 0 they belong to the posterior in Laplace's
        approximation.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, degrees_of_freedom_, log_likelihood_, aic_, bic_ : float
        The statistics of the fit, numbers.
    loo_predictions_, loo_score_ : array, float
        Approximate leave-one-out.
    function_ : Expansion
        f as an `Expansion` in the kernel φ(x)ᵀφ(z).
    family_, link_
        The family and the link that were used.
    trace_, objective_, n_iter_, end_, status_
        The path to the minimum.

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 1989.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = mc.GLM(family="poisson").fit(X, [1, 0, 4, 5, 9, 20])
    >>> model.coef_.round(4), model.standard_errors_.round(4), round(model.deviance_, 4)
    (array([0.6804]), array([0.133 , 0.5652]), 3.5408)
    >>> model.predict([[6.0]]).round(2), model.predict_interval([[6.0]], 0.9)
    (array([38.66]), array([[21., 66.]]))
    >>> rates = mc.GLM(family="poisson").fit(X, [1, 0, 4, 5, 9, 20], exposure=[1, 1, 2, 2, 3, 3])
    >>> rates.predict([[6.0]]).round(2)                                                  # per unit of exposure
    array([9.96])
    """

    features: Any = None
    _: KW_ONLY
    family: Any = "gaussian"
    link: Any = None
    alpha: float = 0.0
    fit_intercept: bool = True
    solver: str = "auto"
    step: float | None = None
    start: Any = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    progress: Any = None

    @property
    def coef_(self) -> Matrix:
        """w, shape (M,)."""
        check_is_fitted(self)
        return self._weights[:, 0]

    @property
    def intercept_(self) -> float:
        """b; 0 without an intercept."""
        check_is_fitted(self)
        return float(self._constants[0])

    @property
    def function_(self) -> Expansion:
        """f in the Hilbert space of k(x, z) = φ(x)ᵀφ(z); on unchanged columns it is ⟨w, ·⟩ itself."""
        check_is_fitted(self)
        if self.features_ is not None:
            return super().function_
        tail = Tail.constant(self.intercept_) if self.fit_intercept else None
        return Expansion(self.kernel_, self.coef_[None, :], np.ones(1), tail)

    # -- statistics of the weights ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Matrix:
        """√diag φ(ZᵀWZ + alpha)⁻¹ of [w, b] with Z = [Φ, 1] and Fisher's weights, shape (M + 1,), or (M,).

        At alpha = 0 these are the classical standard errors; for alpha > 0 the standard deviations of the posterior
        with a Gaussian prior of variance φ/alpha on w, in Laplace's approximation. If columns depend on each other,
        they belong to the solution that was chosen.
        """
        if "errors" not in self._cache:
            self._cache["errors"] = np.sqrt(np.maximum(self._weight_variances(), 0.0))
        return np.asarray(np.sqrt(self.dispersion_) * self._cache["errors"])

    def _weight_variances(self) -> Matrix:
        """The variances of [w, b] divided by the dispersion."""
        curvature, M = self._system(), len(self.coef_)
        if isinstance(curvature, FeatureSystem):
            assert isinstance(curvature.space, FeatureSpace)
            C, m, Q = curvature.inverse(), curvature.space.mean, self._unseen
            C[:M] -= Q @ (Q.T @ C[:M])
            C[:, :M] -= (C[:, :M] @ Q) @ Q.T
            variances = np.diagonal(C).copy()
            if self.fit_intercept:  # b = (the constant of centred columns) − mᵀw
                variances[-1] += m @ (C[:M, :M] @ m) - 2.0 * (m @ C[:M, -1])
            return variances
        assert isinstance(curvature, GramSystem)
        Phi = self._design.matrix(self._points)
        columns = (Phi.toarray() if sp.issparse(Phi) else np.asarray(Phi, dtype=np.float64)).T
        variances = intervals.of_gram(curvature, columns, np.ones(M), np.zeros((M, int(self.fit_intercept))))
        if not self.fit_intercept:
            return variances
        constant = intervals.of_gram(curvature, np.zeros((1, columns.shape[1])), np.zeros(1), np.ones((1, 1)))
        return np.concatenate([variances, constant])

    def _parameters(self) -> Matrix:
        """[w, b], or w without an intercept."""
        return np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_

    @property
    def z_values_(self) -> Matrix:
        """[w, b] over the standard errors; t values if the dispersion was estimated; ±∞ if the standard error is 0."""
        values, errors = self._parameters(), self.standard_errors_
        exact = np.where(values == 0, 0.0, np.copysign(np.inf, values))
        return np.divide(values, errors, out=exact, where=errors > 0)

    @property
    def p_values_(self) -> Matrix:
        """P(|T| ≥ |z|) for each of [w, b]: how surprising the estimate would be if the true value were 0.

        T is standard normal if the family fixes the dispersion; if it was estimated, T is Student's t with n − degrees
        of freedom, as in R's summary.glm.
        """
        return np.asarray(2.0 * intervals.student_cdf(self._freedom_of_errors(), -np.abs(self.z_values_)))

    def confidence_intervals(self, coverage: float = 0.95) -> Matrix:
        """[w, b] ± q standard errors, shape (M + 1, 2), or (M, 2), with the distribution of `p_values_`."""
        reach = self._reach(coverage) * self.standard_errors_
        values = self._parameters()
        return np.stack([values - reach, values + reach], axis=1)

    def summary(self, coverage: float = 0.95) -> Summary:
        """The fit as a table: `print(model.summary())`.

        >>> import numpy as np, mercer as mc
        >>> model = mc.GLM(family="poisson").fit([[0.0], [1.0], [2.0], [3.0]], [1, 1, 4, 7])
        >>> print(str(model.summary()).splitlines()[-2])                                   # doctest: +ELLIPSIS
        x0          ...
        """
        check_is_fitted(self)
        columns = (self._parameters(), self.standard_errors_, self.z_values_, self.p_values_)
        table = np.column_stack([*columns, self.confidence_intervals(coverage)])
        notes = []
        if (alpha := self._whole().alpha) > 0:
            notes.append(f"alpha = {alpha:g}: the errors are posterior ones, with a prior of variance φ/alpha.")
        elif self.degrees_of_freedom_ < len(table):
            notes.append("Columns depend on each other: the coefficients are one of many solutions.")
        statistic = "z" if self.family_.known_dispersion else "t"
        return Summary(
            "Generalised linear model", self._facts(), self._names(), table, share(coverage), tuple(notes), statistic
        )

    def _names(self) -> list[str]:
        """The names of the coefficients, the intercept last."""
        M, letter = len(self.coef_), "x" if self.features_ is None else "φ"
        names = [f"{letter}{j}" for j in range(M)]
        known = None
        if self.features_ is None:
            known = getattr(self, "feature_names_in_", None)
        elif hasattr(self.features_, "get_feature_names_out"):
            with suppress(Exception):  # a transformer may not know its own names
                known = self.features_.get_feature_names_out()
        names = [str(name) for name in known] if known is not None and len(known) == M else names
        return [*names, "intercept"] if self.fit_intercept else names

    # -- inside -------------------------------------------------------------------------------------------------------

    def _variances(self, points: Points) -> Matrix:
        curvature, p = self._system(), int(self.fit_intercept)
        h = np.empty(points.n)
        Phi = self._design.matrix(points)
        train = None if isinstance(curvature, FeatureSystem) else self._design.matrix(self._points)
        width = Phi.shape[1] if train is None else train.shape[0]
        for part in threads.spans(points.n, max(1, memory.HELD // width)):
            rows = Phi[part]
            tail = np.ones((rows.shape[0], p))
            if isinstance(curvature, FeatureSystem):
                assert isinstance(curvature.space, FeatureSpace)
                dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
                h[part] = intervals.of_features(curvature, np.hstack([dense - curvature.space.mean, tail]))
                continue
            assert isinstance(curvature, GramSystem)
            assert train is not None
            K = rows @ train.T
            squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
            h[part] = intervals.of_gram(curvature, K.toarray() if sp.issparse(K) else K, np.ravel(squares), tail)
        return h


@dataclass(eq=False, repr=False)
class KernelGLM(GeneralisedLinearModel, KernelPredictor):
    """A generalised linear model in the Hilbert space of a kernel: E[y | x] = g⁻¹(f(x)) with f = Σ cᵢ k(xᵢ, ·) + b.

    f minimises ½ deviance + ½ alpha ‖f‖². At the minimum cᵢ = wᵢ (yᵢ − μᵢ) μ'ᵢ/(V(μᵢ) alpha): the coefficient of a
    point is proportional to its residual. With the Gaussian family this is `KernelRidge`, with Bernoulli's
    `KernelLogisticRegression`.

    Parameters
    ----------
    kernel : Kernel, rule or None
        A kernel, a rule X → kernel, or None for a Gaussian with the median width.
    family, link
        As in `GLM`.
    alpha : float
        The penalty, > 0 (for kernels of finite rank ≥ 0).
    fit_intercept : bool
        Whether to add a constant b, which is not penalised.
    solver, step, tol, max_iter, max_time, progress
        As in `GLM`.
    n_centers, centers
        Use this number of Nyström centres instead of all points, chosen by "uniform", "kmeans" or "pivoted", or given
        as points. By default all points are used, or centres if the matrix of all points would not fit in memory;
        `status_` reports it.
    budget : int, str or None
        Memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of the available memory.
    random_state : int
        The seed for the choice of centres.

    Attributes
    ----------
    kernel_, family_, link_ : Kernel, Family, Link
        The kernel, the family and the link that were used.
    function_ : Expansion
        f, an `Expansion`; dual_coef_ and intercept_ are its c, shape (n,), and b.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, degrees_of_freedom_, log_likelihood_, aic_, bic_ : float
        The statistics of the fit, numbers.
    loo_predictions_, loo_score_ : array, float
        Approximate leave-one-out.
    trace_, objective_, n_iter_, end_, status_
        The path to the minimum.

    References
    ----------
    O'Sullivan, Yandell and Raynor, Automatic smoothing of regression functions in generalized linear models, 1986.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> counts = np.random.default_rng(0).poisson(np.exp(1 + np.sin(X[:, 0])))
    >>> model = mc.KernelGLM(mc.Gaussian(1.0), family="poisson", alpha=1.0).fit(X, counts)
    >>> model.predict([[np.pi / 2], [3 * np.pi / 2]]).round(1), model.mean_interval([[np.pi / 2]]).round(1)
    (array([8.3, 1.8]), array([[ 6.9, 10.1]]))
    >>> model.predict_interval([[np.pi / 2]], 0.9), round(model.degrees_of_freedom_, 1)
    (array([[ 4., 14.]]), 6.4)
    """

    kernel: Any = None
    _: KW_ONLY
    family: Any = "gaussian"
    link: Any = None
    alpha: float = 1.0
    fit_intercept: bool = True
    solver: str = "auto"
    step: float | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    max_time: float | None = None
    progress: Any = None
    n_centers: int | None = None
    centers: Any = "uniform"
    budget: Any = None
    random_state: int = 0

    def summary(self, coverage: float = 0.95) -> Summary:
        """The fit in words and numbers: `print(model.summary())`."""
        check_is_fitted(self)
        facts = {"kernel": f"{self.kernel_!r}, alpha = {self._whole().alpha:g}", **self._facts()}
        return Summary(
            "Generalised linear model in the space of a kernel", facts, [], np.empty((0, 6)), share(coverage)
        )

    # -- inside -------------------------------------------------------------------------------------------------------

    def _variances(self, points: Points) -> Matrix:
        curvature, p, risk = self._system(), int(self.fit_intercept), self._whole()
        diagonal = np.asarray(self.kernel_.diagonal(points), dtype=np.float64)
        others = self._points if self._centres is None else self._centres
        h = np.empty(points.n)
        for part in threads.spans(points.n, max(1, memory.HELD // others.n)):
            some = points.take(np.arange(part.start, part.stop))
            K = np.asarray(self.kernel_(some, others, dtype=np.float64))
            tail = np.ones((some.n, p))
            if isinstance(curvature, GramSystem):
                h[part] = intervals.of_gram(curvature, K, diagonal[part], tail)
                continue
            assert isinstance(curvature, FeatureSystem)
            assert isinstance(risk.space, NystromSpace)
            Z = risk.space.Phi.whiten(K.T).T
            h[part] = intervals.of_features(curvature, np.hstack([Z, tail]))
            if risk.alpha > 0:  # the part of f that no function on the centres has keeps its prior variance
                h[part] += np.maximum(diagonal[part] - np.einsum("ij,ij->i", Z, Z), 0.0) / risk.alpha
        return h
