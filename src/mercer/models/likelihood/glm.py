"""Generalised linear models: the mean of a response through a link, E[y | x] = g⁻¹(f(x)) (lecture 003)."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.models.base import Matrix, checked_numbers, outside, targets, training_points, weights
from mercer.models.callbacks import with_callbacks
from mercer.models.likelihood import glm_intervals as intervals
from mercer.models.likelihood.glm_summary import Summary
from mercer.models.likelihood.predictor import FeaturePredictor, KernelPredictor, Predictor
from mercer.models.likelihood.separation import LARGE, require_finite_minimum, require_numbers
from mercer.models.progress import watched
from mercer.models.quantiles import share
from mercer.problems.families import Bernoulli, Family, Gaussian, family_of
from mercer.problems.links import Cloglog, Identity, Link, Log
from mercer.problems.losses import Deviance
from mercer.problems.risk import Risk, State
from mercer.problems.spaces import FeatureSpace, NystromSpace
from mercer.rkhs.expansion import Expansion
from mercer.rkhs.tail import Tail
from mercer.solvers import smooth
from mercer.solvers.curvature import FeatureSystem, GramSystem
from mercer.solvers.leave_out import left_out_values, leverages

RESIDUALS = ("deviance", "pearson", "response", "working")
# Numbers between queries and training points that are held at a time.
ENTRIES = 2**23
# A response whose standard deviation is less than this share of its mean is known to rounding.
SHARP = 1e-12


class GeneralisedLinearModel(RegressorMixin, Predictor):  # type: ignore[misc]  # scikit-learn has no types
    """What both forms share: a family about the mean, a link, offsets, and the statistics of the fit."""

    family: Any
    link: Any

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _variances(self, points: Points) -> Matrix:
        """h at m points: the variance of η over the dispersion, shape (m,)."""

    @abstractmethod
    def summary(self, coverage: float = 0.95) -> Summary:
        """The fit as a table."""

    # -- fit ----------------------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, offset: Any = None) -> Self:
        """Fit to n points X and their responses y, shape (n,).

        Parameters
        ----------
        X, y : points and responses; what y may be is the family's to say.
        sample_weight : counts its row as often: weight 2 is the row given twice, weight 0 the row left out. (Not where
            rows are drawn: the choice of Nyström centres.)
        exposure : time, area or number at risk, > 0: y is a count over it, with mean exposure · g⁻¹(f(x)). It adds
            log(exposure) to η, so that the link must be the logarithm (or the complementary log-log).
        offset : numbers that are added to η, known and not fitted.
        """
        points = training_points(X)
        self.family_: Family = family_of(self.family)
        self.link_: Link = self.family_.link(self.link)
        response = _responses(y, points.n, self.family_)
        w = weights(sample_weight, points.n)
        shift = self._shift(exposure, offset, points.n)
        kept = np.arange(points.n) if w is None or w.all() else np.flatnonzero(w)
        self._y, self._shifts, self._kept = response, shift, kept
        self._cache: dict[str, Any] = {}
        self._rest: Points | None = None
        if len(kept) < points.n:
            self._rest = points.take(np.setdiff1d(np.arange(points.n), kept))
            points, response = points.take(kept), response[kept]
            w, shift = w[kept] if w is not None else None, None if shift is None else shift[kept]
        loss = Deviance(self.family_, self.link_)
        if self.fit_intercept:
            _require_bounded(loss, response)
        with np.errstate(over="ignore"):  # which `require_numbers` tells of
            space = self._open(X, points, response)
        require_numbers(self, space, w)
        with watched(self, 1, X, y, sample_weight):
            self._minimise(space, loss, response, w, shift)
        require_finite_minimum(self._risk, self._minimum, names=getattr(self, "feature_names_in_", None))
        self._finish()
        return self

    def _shift(self, exposure: Any, offset: Any, n: int) -> Matrix | None:
        """What is added to η, shape (n,), or None."""
        shift = None if offset is None else _numbers(offset, n, "offset")
        if exposure is None:
            return shift
        if not isinstance(self.link_, (Log, Cloglog)):
            raise InvalidInput(
                "`exposure` multiplies the mean, which is an offset only of the log link",
                got=f"link={self.link_.name!r}",
                advice="Use link='log', or pass `offset` on the scale of η.",
            )
        found = _numbers(exposure, n, "exposure")
        return np.log(found) if shift is None else np.log(found) + shift

    # -- predictions --------------------------------------------------------------------------------------------------

    def _loss(self) -> Deviance:
        check_is_fitted(self)
        return Deviance(self.family_, self.link_)

    def _eta(self, X: Any, exposure: Any, offset: Any) -> tuple[Points, Matrix]:
        """The queries, and η there."""
        check_is_fitted(self)
        points = self._queries(X)
        eta = self._values(points)[:, 0]
        shift = self._shift(exposure, offset, points.n)
        return points, eta if shift is None else eta + shift

    def predict_linear(self, X: Any, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """η = f(x) + offset + log(exposure) at m points, shape (m,)."""
        return self._eta(X, exposure, offset)[1]

    def predict(self, X: Any, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """The mean of the response at m points, shape (m,): per unit of exposure where none is given.

        Where a link cannot have η (the inverse link has positive ones only), η is held at the end of its domain.
        """
        return intervals.means(self._loss(), self._eta(X, exposure, offset)[1])

    def mean_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """Intervals for the mean at m points, shape (m, 2): g⁻¹(η ± q √(φ h)).

        q is a quantile of Student's t where φ was estimated and of the normal distribution where the family knows it,
        as in `confidence_intervals`. For alpha > 0 the interval is the posterior's, with a Gaussian prior of variance
        φ/alpha on the weights (or of f, with covariance φ k/alpha).
        """
        points, eta = self._eta(X, exposure, offset)
        reach = self._reach(coverage) * np.sqrt(self.dispersion_ * self._finite_variances(points))
        return np.sort(intervals.means(self._loss(), np.stack([eta - reach, eta + reach], axis=1)), axis=1)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None, offset: Any = None) -> Matrix:
        """Intervals that hold a new response at each of m points with the given probability, shape (m, 2).

        Quantiles of the family about a mean that is itself uncertain: the distribution of η, normal or Student's t as
        in `mean_interval`, is integrated out. Of the Gaussian family with the identity link these are the intervals of
        least squares, mean ± t √(φ(1 + h)). Counts have whole ends, which hold at least the coverage. The dispersion of
        the response itself is taken as known.
        """
        held = share(coverage)
        points, eta = self._eta(X, exposure, offset)
        dispersion, h = self.dispersion_, self._finite_variances(points)
        if self._classical:
            reach = self._reach(coverage) * np.sqrt(dispersion * (1.0 + h))
            return np.stack([eta - reach, eta + reach], axis=1)
        mu = intervals.means(self._loss(), eta)
        if (largest := float(np.abs(mu).max())) > LARGE:
            raise InvalidInput(
                f"Means must fit float64 with their squares, within ±{LARGE:g}, for an interval of a new response",
                got=f"{largest:.3g}",
                advice="Check the columns of X: a mean so far from the training rows says nothing.",
            )
        found = np.stack([mu, mu], axis=1)
        wide = np.flatnonzero(dispersion * self.family_.variance(mu) > (SHARP * mu) ** 2)
        for part in threads.spans(len(wide), ENTRIES // 256):
            rows = wide[part]
            deviation = np.sqrt(dispersion * h[rows])
            for j, q in enumerate((0.5 - 0.5 * held, 0.5 + 0.5 * held)):
                found[rows, j] = intervals.quantiles(
                    self._loss(), q, eta[rows], deviation, dispersion, self._freedom_of_errors()
                )
        return found

    def _finite_variances(self, points: Points) -> Matrix:
        """h at m points; an error where it is not a number, so far are they from all rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            h = self._variances(points)
        bad = np.flatnonzero(~np.isfinite(h))
        if len(bad):
            raise InvalidInput(
                "The variance of η must fit float64 at every query",
                got=f"an overflow in row {bad[0]} ({len(bad)} such rows)",
                advice="Check the columns of X: an interval so far from the training rows would be infinite.",
            )
        return h

    @property
    def _classical(self) -> bool:
        """Whether this is least squares, whose intervals are exact."""
        return isinstance(self.family_, Gaussian) and isinstance(self.link_, Identity)

    def _freedom_of_errors(self) -> float:
        """Degrees of freedom of Student's t for every estimate over its standard error; ∞ is the normal distribution.

        As in R's summary.glm: t where the dispersion was estimated, normal where the family knows it.
        """
        return np.inf if self.family_.known_dispersion else self._residual_freedom()

    def _reach(self, coverage: float) -> float:
        """How many standard deviations are on each side."""
        return float(intervals.student(self._freedom_of_errors(), 0.5 + 0.5 * share(coverage)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, offset: Any = None) -> float:
        """D² = 1 − deviance/deviance of the best constant for these rows: the share of the deviance that is explained.

        1 is perfect, 0 no better than a constant; of the Gaussian family it is R². A model of counts over exposures is
        judged with theirs; without them it warns.
        """
        if exposure is None and offset is None and self._shifts is not None:
            warnings.warn(
                "This model was fitted with exposures or offsets: a score without them takes every row for one unit. "
                "Pass `exposure` (cross-validation: set_score_request(exposure=True) with metadata routing).",
                UserWarning,
                stacklevel=outside(),
            )
        points, eta = self._eta(X, exposure, offset)
        response = _responses(y, points.n, self.family_)
        w, shift = weights(sample_weight, points.n), self._shift(exposure, offset, points.n)
        return self._explained(response, intervals.means(self._loss(), eta), w, shift)

    def _explained(self, y: Any, mu: Matrix, w: Matrix | None, shift: Matrix | None) -> float:
        left, null = _total(self.family_.unit_deviance(y, mu), w), _null_deviance(self._loss(), y, w, shift)
        return 1.0 - left / null if null > 0.0 else float(left <= 0.0)

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        """The minimum."""
        self._whole()
        return self._minimum.state

    @property
    def _fitted_eta(self) -> Matrix:
        """η of the rows of weight > 0."""
        return self._whole().eta(self._state().at.values)[:, 0]

    @property
    def n_observations_(self) -> float:
        """n: Σ wᵢ, for weights are repetitions; of shares of trials, whose weights are trials, the number of rows.

        As in R, a row of successes among trials is one observation, of the binomial distribution.
        """
        risk = self._whole()
        trials = isinstance(self.family_, Bernoulli) and bool(((risk.y > 0) & (risk.y < 1)).any())
        return float(len(risk.y) if risk.weights is None or trials else risk.weights.sum())

    @property
    def deviance_(self) -> float:
        """Σ wᵢ d(yᵢ, μᵢ), twice the loss."""
        return 2.0 * _total(self._state().terms.value, self._whole().weights)

    @property
    def null_deviance_(self) -> float:
        """The deviance of the best constant (with the offsets that were given)."""
        risk = self._whole()
        if "null" not in self._cache:
            self._cache["null"] = _null_deviance(self._loss(), risk.y, risk.weights, risk.offset)
        return float(self._cache["null"])

    @property
    def degrees_of_freedom_(self) -> float:
        """The number of parameters: the rank for alpha = 0, else tr (A*WA + alpha)⁻¹A*WA, the trace of the smoother.

        It includes the intercept, not the dispersion.
        """
        risk = self._whole()
        if "freedom" not in self._cache:
            held = self._system()
            if risk.alpha == 0 and isinstance(held, FeatureSystem):
                self._cache["freedom"] = held.rank
            else:
                w = 1.0 if risk.weights is None else risk.weights
                W = w * self._state().terms.fisher[:, 0]
                self._cache["freedom"] = W @ leverages(held, W)
        return float(self._cache["freedom"])

    def has_intervals(self, *, in_file: bool = False) -> bool:
        """Whether `predict_interval` can answer, by the file's own curvature, or by one made again from the rows."""
        if in_file:
            return self._on_rows() or "_curvature" in self._file_state()[1]
        return "_curvature" in self.__dict__ or "_packed" not in self.__dict__.get("_not_in_file", ())

    def _training_only(self) -> tuple[str, ...]:
        return () if self._on_rows() else (*super()._training_only(), "_y", "_rest")

    def _on_rows(self) -> bool:
        """Whether f is a sum over all rows, by a kernel or by their products."""
        return bool(getattr(self, "_wide", getattr(self, "_centres", None) is None))

    def _file_state(self) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Intervals need the curvature and the dispersion: files hold them, and the rows only where f is made of them.

        The curvature is left out where it has more numbers than the rows had, and on Nyström centres.
        """
        if not hasattr(self, "family_"):
            return super()._file_state()
        held: Any = None
        with suppress(InvalidInput):
            held = self._system()
            self._cache |= {"dispersion": self.dispersion_, "left": self._residual_freedom()}
        parameters, fitted, left_out = super()._file_state()
        fitted["_cache"] = {name: float(self._cache[name]) for name in ("dispersion", "left") if name in self._cache}
        if self._on_rows():
            fitted["_fisher"] = self._fisher_weights()
        elif self._shifts is not None:
            fitted["_shifts"] = self._shifts[:0]  # there were some
        space: Any = getattr(held, "space", None)
        if isinstance(space, FeatureSpace) and space.size <= (space.n or space.size):
            fitted["_curvature"] = held.seen_from(space.restrict(np.arange(0)), exact=held.exact)
        return parameters, fitted, left_out

    def _residual_freedom(self) -> float:
        if "left" in self._cache:
            return float(self._cache["left"])
        left = self.n_observations_ - self.degrees_of_freedom_
        if not left > 1e-9 * self.n_observations_:
            raise InvalidInput(
                "The dispersion needs more rows than parameters",
                got=f"{self.n_observations_:.6g} rows and {self.degrees_of_freedom_:.6g} parameters",
                advice="Fit on more rows, or raise `alpha`.",
            )
        return left

    @property
    def pearson_chi2_(self) -> float:
        """Σ wᵢ (yᵢ − μᵢ)²/V(μᵢ)."""
        mu = intervals.means(self._loss(), self._fitted_eta)
        risk = self._whole()
        return _total((risk.y - mu) ** 2 / self.family_.variance(mu), risk.weights)

    @property
    def dispersion_(self) -> float:
        """φ: 1 where the family knows it, else Pearson's χ²/(n − degrees of freedom)."""
        check_is_fitted(self)
        if "dispersion" in self._cache:
            return float(self._cache["dispersion"])
        return 1.0 if self.family_.known_dispersion else self.pearson_chi2_ / self._residual_freedom()

    def _dispersion_of_likelihood(self) -> float:
        """deviance/n, or the φ = 1 that the family knows."""
        return 1.0 if self.family_.known_dispersion else self.deviance_ / self.n_observations_

    def _criterion(self, price: float) -> float:
        """−2 log-likelihood and the price of each parameter; an estimated dispersion is one, as in R."""
        parameters = self.degrees_of_freedom_ + (not self.family_.known_dispersion)
        return -2.0 * self.log_likelihood_ + price * parameters

    @property
    def log_likelihood_(self) -> float:
        """Σ wᵢ log p(yᵢ), as R's logLik: an estimated dispersion enters as deviance/n.

        That is its maximum likelihood for the Gaussian and the inverse Gaussian family, and close to it for the others.
        (statsmodels has `dispersion_` there, but for the Gaussian family.) Shares of trials, with their number as
        weight, have the binomial coefficients.
        """
        mu, phi = intervals.means(self._loss(), self._fitted_eta), self._dispersion_of_likelihood()
        if phi == 0.0:
            raise InvalidInput(
                "A likelihood needs responses that are not fitted exactly", got="no residuals", advice="Use more rows."
            )
        risk = self._whole()
        return self.family_.log_likelihood(risk.y, mu, risk.weights, phi)

    @property
    def aic_(self) -> float:
        """−2 log-likelihood + 2 (degrees of freedom + 1 for an estimated dispersion), as R's AIC."""
        return self._criterion(2.0)

    @property
    def bic_(self) -> float:
        """−2 log-likelihood + log(n) (degrees of freedom + 1 for an estimated dispersion), as R's BIC."""
        return self._criterion(float(np.log(self.n_observations_)))

    def residuals(self, kind: str = "deviance") -> Matrix:
        """What the fit leaves of each training row, shape (n,); weights do not enter.

        Parameters
        ----------
        kind : "deviance", sign(y − μ) √d(y, μ); "pearson", (y − μ)/√V(μ); "response", y − μ; or "working",
            (y − μ) g'(μ), on the scale of η.
        """
        eta = self._everywhere(self._fitted_eta)
        y, mu = self._y, intervals.means(self._loss(), eta)
        match kind:
            case "deviance":
                return np.asarray(np.sign(y - mu) * np.sqrt(np.maximum(self.family_.unit_deviance(y, mu), 0.0)))
            case "pearson":
                return np.asarray((y - mu) / np.sqrt(self.family_.variance(mu)))
            case "response":
                return np.asarray(y - mu)
            case "working":
                return np.asarray((y - mu) / self.link_.derivative(eta))
        raise InvalidInput(
            f"`kind` must be one of {', '.join(map(repr, RESIDUALS))}",
            got=repr(kind),
            advice="Use one of these names.",
        )

    def _everywhere(self, eta: Matrix) -> Matrix:
        """η of the rows that count, and for rows of weight 0 that of the fit."""
        if self._rest is None:
            return eta
        found = np.empty(len(self._y))
        rest = np.setdiff1d(np.arange(len(found)), self._kept)
        found[self._kept] = eta
        found[rest] = self._values(self._rest)[:, 0] + (0.0 if self._shifts is None else self._shifts[rest])
        return found

    # -- leave-one-out ------------------------------------------------------------------------------------------------

    def _left_out(self) -> Matrix:
        if "left out" not in self._cache:
            self._cache["left out"] = left_out_values(self._whole(), self._state())[:, 0]
        found: Matrix = self._cache["left out"]
        return found

    @property
    def loo_predictions_(self) -> Matrix:
        """The mean at each training point of the model fitted without it, shape (n,): approximate.

        One Newton step from the minimum without the row, by the last curvature: exact for the Gaussian family with the
        identity link. With the log link η is held within 1 of the range of all fitted ones. Where family and link make
        a loss that is not convex (the inverse Gaussian with the log link), up to 4 000 rows, Newton's steps go on
        until the deviance of the row is known to about 1 %; its mean may be off by more where the deviance hardly
        depends on it, far above an inverse-Gaussian response. The steps begin at the fit to all rows: if the risk
        without the row has several minima, a refit from scratch may end in another one. A row of weight 0 was left out
        anyway.
        """
        return intervals.means(self._loss(), self._everywhere(self._left_out()))

    @property
    def loo_score_(self) -> float:
        """D² of `loo_predictions_`: an estimate of `score` on new data."""
        risk = self._whole()
        return self._explained(risk.y, intervals.means(self._loss(), self._left_out()), risk.weights, risk.offset)

    # -- scikit-learn, and the table ----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(InvalidInput):
            tags.target_tags.positive_only = family_of(self.family).range == (0.0, np.inf)
        return tags

    def _facts(self) -> dict[str, str]:
        n, count = len(self._whole().y), self.n_observations_
        likelihood, criteria = "none: the responses are fitted exactly", "none"
        if self._dispersion_of_likelihood() > 0.0:
            likelihood, criteria = f"{self.log_likelihood_:.6g}", f"{self.aic_:.6g}, {self.bic_:.6g}"
        known = "" if self.family_.known_dispersion else " (Pearson's χ² over n − degrees of freedom)"
        return {
            "family, link": f"{self.family_!r}, {self.link_!r}",
            "rows": f"{n}" if n == count else f"{n}, of weight {count:.6g}",
            "degrees of freedom": f"{self.degrees_of_freedom_:.6g}",
            "deviance": f"{self.deviance_:.6g}; of a constant {self.null_deviance_:.6g}",
            "D²": f"{self._explained_here():.4f}; left out one by one {self.loo_score_:.4f}",
            "dispersion": f"{self.dispersion_:.6g}{known}",
            "Pearson's χ²": f"{self.pearson_chi2_:.6g}",
            "log-likelihood": likelihood,
            "AIC, BIC": criteria,
            "solver": self.status_,
        }

    def _explained_here(self) -> float:
        return 1.0 - self.deviance_ / self.null_deviance_ if self.null_deviance_ > 0.0 else float(self.deviance_ <= 0.0)


@dataclass(eq=False, repr=False)
class GLM(GeneralisedLinearModel, FeaturePredictor):
    """A generalised linear model on features: E[y | x] = g⁻¹(wᵀφ(x) + b) with a response from a family.

    w minimises ½ deviance + ½ alpha ‖w‖², for alpha = 0 the maximum of the likelihood. The Gaussian family is `Ridge`,
    Bernoulli's `LogisticRegression`. For link="probit" the response is a latent variable with normal noise seen through
    its sign: y = 1 iff wᵀφ(x) + b + ε > 0 with ε ~ N(0, 1), so that P(y = 1 | x) = Φ(wᵀφ(x) + b).

    Parameters
    ----------
    features : None for the columns as they are (dense or sparse); a feature map, a transformer, a function X → Φ, or a
        kernel of finite rank, as in `Ridge`.
    family : "gaussian", "bernoulli" (also shares with trials as weights), "poisson", "gamma", "inverse_gaussian",
        "negative_binomial" or "tweedie", or a value such as `NegativeBinomial(theta=2.0)` and `Tweedie(power=1.7)` of
        mercer.problems.families.
    link : "identity", "logit", "probit", "cloglog", "cauchit", "log", "inverse", "sqrt", "canonical" or a value of
        mercer.problems.links; by default the family's: identity, logit, otherwise log.
    alpha : the penalty, ≥ 0.
    fit_intercept : whether a constant b is added, which is not penalised.
    solver : "newton" (iteratively reweighted least squares; "auto" takes it), "newton-cg" (no Hessian is formed),
        "lbfgs", "backtracking" (gradient descent, steps halved until they descend), "gradient" (fixed steps).
    step, start : the fixed step of "gradient"; weights (then the intercept) to begin at.
    tol : Newton's methods stop where the predicted excess over the minimum is tol² of the first objective, the others
        where the gradient is tol of the first.
    max_iter, max_time : steps and seconds; by default as many as it takes, within reason.
    progress : a function of each `Step`; False stops there. Callbacks are set by `set_callbacks`.

    Attributes
    ----------
    coef_, intercept_ : w, shape (M,), and b.
    standard_errors_, z_values_, p_values_ : of [w, b], shape (M + 1,), or (M,) without intercept. For alpha > 0 they
        are the posterior's in Laplace's approximation.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, degrees_of_freedom_, log_likelihood_, aic_, bic_ : numbers.
    loo_predictions_, loo_score_ : approximate leave-one-out.
    function_ : f as an `Expansion` in the kernel φ(x)ᵀφ(z).
    family_, link_, trace_, objective_, n_iter_, end_, status_ : what was fitted, and how it went.

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

    References
    ----------
    McCullagh and Nelder, Generalized Linear Models, 1989.
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
        """f in the Hilbert space of k(x, z) = φ(x)ᵀφ(z); of the columns as they are it is ⟨w, ·⟩ itself."""
        check_is_fitted(self)
        if self.features_ is not None:
            return super().function_
        tail = Tail.constant(self.intercept_) if self.fit_intercept else None
        return Expansion(self.kernel_, self.coef_[None, :], np.ones(1), tail)

    # -- statistics of the weights ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Matrix:
        """√diag φ(ZᵀWZ + alpha)⁻¹ of [w, b] with Z = [Φ, 1] and Fisher's weights, shape (M + 1,), or (M,).

        At alpha = 0 the classical ones; for alpha > 0 the standard deviations of the posterior with a Gaussian prior of
        variance φ/alpha on w, in Laplace's approximation. Where columns depend on each other, of the solution taken.
        """
        if "errors" not in self._cache:
            self._cache["errors"] = np.sqrt(np.maximum(self._weight_variances(), 0.0))
        return np.asarray(np.sqrt(self.dispersion_) * self._cache["errors"])

    def _weight_variances(self) -> Matrix:
        """Of [w, b], over the dispersion."""
        held, M = self._system(), len(self.coef_)
        if isinstance(held, FeatureSystem):
            assert isinstance(held.space, FeatureSpace)
            C, m, Q = held.inverse(), held.space.mean, self._unseen
            C[:M] -= Q @ (Q.T @ C[:M])
            C[:, :M] -= (C[:, :M] @ Q) @ Q.T
            found = np.diagonal(C).copy()
            if self.fit_intercept:  # b = (the constant of centred columns) − mᵀw
                found[-1] += m @ (C[:M, :M] @ m) - 2.0 * (m @ C[:M, -1])
            return found
        assert isinstance(held, GramSystem)
        Phi = self._design.matrix(self._points)
        columns = (Phi.toarray() if sp.issparse(Phi) else np.asarray(Phi, dtype=np.float64)).T
        found = intervals.of_gram(held, columns, np.ones(M), np.zeros((M, int(self.fit_intercept))))
        if not self.fit_intercept:
            return found
        constant = intervals.of_gram(held, np.zeros((1, columns.shape[1])), np.zeros(1), np.ones((1, 1)))
        return np.concatenate([found, constant])

    def _parameters(self) -> Matrix:
        return np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_

    @property
    def z_values_(self) -> Matrix:
        """[w, b] over the standard errors, t values where the dispersion was estimated; ±∞ where there is no error."""
        values, errors = self._parameters(), self.standard_errors_
        sure = np.where(values == 0, 0.0, np.copysign(np.inf, values))
        return np.divide(values, errors, out=sure, where=errors > 0)

    @property
    def p_values_(self) -> Matrix:
        """P(|T| ≥ |z|): how surprising each of [w, b] would be if it were 0.

        T is standard normal where the family knows its dispersion; where it was estimated, Student's t with n − degrees
        of freedom, as in R's summary.glm.
        """
        return np.asarray(2.0 * intervals.student_cdf(self._freedom_of_errors(), -np.abs(self.z_values_)))

    def confidence_intervals(self, coverage: float = 0.95) -> Matrix:
        """[w, b] ± q standard errors, shape (M + 1, 2), or (M, 2), by the distribution of `p_values_`."""
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
            notes.append(f"alpha = {alpha:g}: errors are the posterior's, with a prior of variance φ/alpha.")
        elif self.degrees_of_freedom_ < len(table):
            notes.append("Columns depend on each other: the coefficients are one of many solutions.")
        statistic = "z" if self.family_.known_dispersion else "t"
        return Summary(
            "Generalised linear model", self._facts(), self._names(), table, share(coverage), tuple(notes), statistic
        )

    def _names(self) -> list[str]:
        """Of the coefficients, the intercept last."""
        M, mark = len(self.coef_), "x" if self.features_ is None else "φ"
        names = [f"{mark}{j}" for j in range(M)]
        given = None
        if self.features_ is None:
            given = getattr(self, "feature_names_in_", None)
        elif hasattr(self.features_, "get_feature_names_out"):
            with suppress(Exception):  # a transformer may not know its own names
                given = self.features_.get_feature_names_out()
        names = [str(name) for name in given] if given is not None and len(given) == M else names
        return [*names, "intercept"] if self.fit_intercept else names

    # -- inside -------------------------------------------------------------------------------------------------------

    def _variances(self, points: Points) -> Matrix:
        held, p = self._system(), int(self.fit_intercept)
        h = np.empty(points.n)
        Phi = self._design.matrix(points)
        train = None if isinstance(held, FeatureSystem) else self._design.matrix(self._points)
        for part in threads.spans(points.n, max(1, ENTRIES // (Phi.shape[1] if train is None else train.shape[0]))):
            rows = Phi[part]
            tail = np.ones((rows.shape[0], p))
            if isinstance(held, FeatureSystem):
                assert isinstance(held.space, FeatureSpace)
                dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
                h[part] = intervals.of_features(held, np.hstack([dense - held.space.mean, tail]))
                continue
            assert isinstance(held, GramSystem)
            assert train is not None
            K = rows @ train.T
            squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
            h[part] = intervals.of_gram(held, K.toarray() if sp.issparse(K) else K, np.ravel(squares), tail)
        return h


@dataclass(eq=False, repr=False)
class KernelGLM(GeneralisedLinearModel, KernelPredictor):
    """A generalised linear model in the Hilbert space of a kernel: E[y | x] = g⁻¹(f(x)) with f = Σ cᵢ k(xᵢ, ·) + b.

    f minimises ½ deviance + ½ alpha ‖f‖². At the minimum cᵢ = wᵢ (yᵢ − μᵢ) μ'ᵢ/(V(μᵢ) alpha): every point counts by its
    residual. The Gaussian family is `KernelRidge`, Bernoulli's `KernelLogisticRegression`.

    Parameters
    ----------
    kernel : a kernel, a rule X → kernel, or None for a Gaussian with the median width.
    family, link : as in `GLM`.
    alpha : the penalty, > 0 (for kernels of finite rank ≥ 0).
    fit_intercept : whether a constant b is added, which is not penalised.
    solver, step, tol, max_iter, max_time, progress : as in `GLM`.
    n_centers, centers : f on that many Nyström centres instead of all points: "uniform", "kmeans", "pivoted", or the
        points themselves. By default all points, and centres where their matrix would not fit; `status_` says so.
    budget : memory for the fit, in bytes or as "2 GB"; by default MERCER_MEMORY, else half of what is available.
    random_state : for the choice of centres.

    Attributes
    ----------
    kernel_, family_, link_ : those that were used.
    function_ : f, an `Expansion`; dual_coef_ and intercept_ are its c, shape (n,), and b.
    deviance_, null_deviance_, pearson_chi2_, dispersion_, degrees_of_freedom_, log_likelihood_, aic_, bic_ : numbers.
    loo_predictions_, loo_score_ : approximate leave-one-out.
    trace_, objective_, n_iter_, end_, status_ : the way to the minimum.

    >>> import numpy as np, mercer as mc
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> counts = np.random.default_rng(0).poisson(np.exp(1 + np.sin(X[:, 0])))
    >>> model = mc.KernelGLM(mc.Gaussian(1.0), family="poisson", alpha=1.0).fit(X, counts)
    >>> model.predict([[np.pi / 2], [3 * np.pi / 2]]).round(1), model.mean_interval([[np.pi / 2]]).round(1)
    (array([8.3, 1.8]), array([[ 6.9, 10.1]]))
    >>> model.predict_interval([[np.pi / 2]], 0.9), round(model.degrees_of_freedom_, 1)
    (array([[ 4., 14.]]), 6.4)

    References
    ----------
    O'Sullivan, Yandell and Raynor, Automatic smoothing of regression functions in generalized linear models, 1986.
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
        held, p, risk = self._system(), int(self.fit_intercept), self._whole()
        diagonal = np.asarray(self.kernel_.diagonal(points), dtype=np.float64)
        others = self._points if self._centres is None else self._centres
        h = np.empty(points.n)
        for part in threads.spans(points.n, max(1, ENTRIES // others.n)):
            some = points.take(np.arange(part.start, part.stop))
            K = np.asarray(self.kernel_(some, others, dtype=np.float64))
            tail = np.ones((some.n, p))
            if isinstance(held, GramSystem):
                h[part] = intervals.of_gram(held, K, diagonal[part], tail)
                continue
            assert isinstance(held, FeatureSystem)
            assert isinstance(risk.space, NystromSpace)
            Z = risk.space.Phi.whiten(K.T).T
            h[part] = intervals.of_features(held, np.hstack([Z, tail]))
            if risk.alpha > 0:  # what no function on the centres can know is as uncertain as before
                h[part] += np.maximum(diagonal[part] - np.einsum("ij,ij->i", Z, Z), 0.0) / risk.alpha
        return h


def _responses(y: Any, n: int, family: Family) -> Matrix:
    """y as (n,) float64 in the support of the family."""
    Y, single = targets(y, n)
    if Y.shape[1] > 1:
        raise InvalidInput(
            f"y must hold one response per point, shape ({n},)", got=f"shape {Y.shape}", advice="Fit a model for each."
        )
    if not single:
        message = "A column-vector y was passed when a 1d array was expected: pass y.ravel()."
        warnings.warn(message, DataConversionWarning, stacklevel=outside())
    family.check(Y[:, 0])
    if (largest := float(np.abs(Y).max())) > LARGE:
        raise InvalidInput(
            f"y must hold numbers within ±{LARGE:g}, whose squares can be summed",
            got=f"{largest:.3g}",
            advice="Divide y by its mean, or measure it in a larger unit.",
        )
    return Y[:, 0]


def _numbers(given: Any, n: int, name: str) -> Matrix:
    """`exposure` (> 0) or `offset` as (n,) float64."""
    above = name == "exposure"
    required = f"`{name}` must hold {n} finite numbers{' > 0' if above else ''}, one per point"
    found = checked_numbers(given, required, "Pass one real number per point.")
    if found.ndim == 0:
        found = np.full(n, float(found))
    if found.shape != (n,):
        raise InvalidInput(required, got=f"shape {found.shape}", advice="Pass one number per point.")
    bad = ~np.isfinite(found) | (found <= 0) if above else ~np.isfinite(found)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        advice = "Drop rows without exposure." if above else "Drop these rows, or fill them in."
        raise InvalidInput(required, got=f"{found[row]} in row {row} ({int(bad.sum())} such rows)", advice=advice)
    return found


def _require_bounded(loss: Deviance, y: Matrix) -> None:
    """Responses that an intercept could follow for ever: all zero counts, or one class only."""
    lower, upper = loss.recession(y)
    if np.isinf(lower).all() or np.isinf(upper).all():
        raise InvalidInput(
            f"y of the {loss.family.name} family must not be at the end of its range in every row, with an intercept",
            got=f"{y[0]:g} in all {len(y)} rows of weight > 0",
            advice="The likelihood rises for ever: check y and the weights.",
        )


def _total(each: Matrix, w: Matrix | None) -> float:
    return float(each.sum() if w is None else w @ each)


def _null_deviance(loss: Deviance, y: Any, w: Matrix | None, offset: Matrix | None) -> float:
    """The deviance of the best constant: the mean, or with offsets by the solver."""
    if (y == y[0]).all() and offset is None:
        return 0.0
    if offset is None:
        mean = np.clip(np.average(y, weights=w), *loss.means)  # the link may not have a negative one
        return _total(loss.family.unit_deviance(y, np.full(len(y), mean)), w)
    lower, upper = loss.recession(y)
    if np.isinf(lower).all() or np.isinf(upper).all():
        return 0.0
    space = FeatureSpace(np.empty((len(y), 0)), np.ones((len(y), 1)))
    return 2.0 * smooth.minimise(Risk(space, loss, y, 0.0, w, offset), tol=1e-9).state.value
