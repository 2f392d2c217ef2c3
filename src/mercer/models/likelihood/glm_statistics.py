"""The statistics of a fitted generalised linear model: deviance, dispersion, likelihood, residuals, leave-one-out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.models.base import Matrix
from mercer.models.likelihood import glm_intervals as intervals
from mercer.models.likelihood.predictor import Predictor
from mercer.models.quantiles import share
from mercer.problems.families import Bernoulli, Family
from mercer.problems.links import Link
from mercer.problems.losses import Deviance
from mercer.problems.risk import Risk, State
from mercer.problems.spaces import FeatureSpace
from mercer.solvers import smooth
from mercer.solvers.curvature import FeatureSystem
from mercer.solvers.leave_out import left_out_values, leverages
from mercer.validation import check_choice

RESIDUALS = ("deviance", "pearson", "response", "working")


class FitStatistics(Predictor):
    """The statistics of a fit, computed from the training rows, the minimum and its curvature."""

    family_: Family
    link_: Link
    _cache: dict[str, Any]

    def _loss(self) -> Deviance:
        check_is_fitted(self)
        return Deviance(self.family_, self.link_)

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        """The loss and its derivatives at the minimum."""
        self._whole()
        return self._minimum.state

    @property
    def _fitted_eta(self) -> Matrix:
        """η at the rows of weight > 0."""
        return self._whole().eta(self._state().at.values)[:, 0]

    @property
    def n_observations_(self) -> float:
        """n: Σ wᵢ, because weights are repetitions; if y holds shares of trials (weights), the number of rows.

        As in R, a row with a share of successes among several trials is one observation of a binomial distribution.
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
        """The deviance of the best constant (with the given offsets)."""
        risk = self._whole()
        if "null" not in self._cache:
            self._cache["null"] = _null_deviance(self._loss(), risk.y, risk.weights, risk.offset)
        return float(self._cache["null"])

    @property
    def degrees_of_freedom_(self) -> float:
        """The number of parameters: the rank for alpha = 0, else tr (A*WA + alpha)⁻¹A*WA, the trace of the smoother.

        The intercept counts as a parameter, the dispersion does not.
        """
        risk = self._whole()
        if "freedom" not in self._cache:
            curvature = self._system()
            if risk.alpha == 0 and isinstance(curvature, FeatureSystem):
                self._cache["freedom"] = curvature.rank
            else:
                w = 1.0 if risk.weights is None else risk.weights
                W = w * self._state().terms.fisher[:, 0]
                self._cache["freedom"] = W @ leverages(curvature, W)
        return float(self._cache["freedom"])

    def _freedom_of_errors(self) -> float:
        """Degrees of freedom of Student's t for every estimate over its standard error; ∞ is the normal distribution.

        As in R's summary.glm: t if the dispersion was estimated, normal if the family fixes it.
        """
        return np.inf if self.family_.known_dispersion else self._residual_freedom()

    def _reach(self, coverage: float) -> float:
        """The number of standard deviations on each side of an interval."""
        return float(intervals.student(self._freedom_of_errors(), 0.5 + 0.5 * share(coverage)))

    def _residual_freedom(self) -> float:
        if "left" in self._cache:
            return float(self._cache["left"])
        left = self.n_observations_ - self.degrees_of_freedom_
        if not left > 1e-9 * self.n_observations_:
            raise InvalidInput(
                "Estimating the dispersion requires more rows than parameters",
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
        """φ: 1 if the family fixes it, else Pearson's χ²/(n − degrees of freedom)."""
        check_is_fitted(self)
        if "dispersion" in self._cache:
            return float(self._cache["dispersion"])
        return 1.0 if self.family_.known_dispersion else self.pearson_chi2_ / self._residual_freedom()

    def _dispersion_of_likelihood(self) -> float:
        """deviance/n, or φ = 1 if the family fixes it."""
        return 1.0 if self.family_.known_dispersion else self.deviance_ / self.n_observations_

    def _criterion(self, price: float) -> float:
        """−2 log-likelihood + price · parameters; as in R, an estimated dispersion is a parameter."""
        parameters = self.degrees_of_freedom_ + (not self.family_.known_dispersion)
        return -2.0 * self.log_likelihood_ + price * parameters

    @property
    def log_likelihood_(self) -> float:
        """Σ wᵢ log p(yᵢ), as R's logLik: an estimated dispersion enters as deviance/n.

        That is its maximum-likelihood estimate for the Gaussian and the inverse Gaussian family, and close to it for
        the others. (statsmodels uses `dispersion_` instead, except for the Gaussian family.) For shares of trials,
        whose weights are the numbers of trials, the likelihood includes the binomial coefficients.
        """
        mu, phi = intervals.means(self._loss(), self._fitted_eta), self._dispersion_of_likelihood()
        if phi == 0.0:
            raise InvalidInput(
                "The log-likelihood requires a fit that leaves residuals",
                got="responses that are fitted exactly",
                advice="Fit on more rows, or raise `alpha`.",
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
        """The residual of each training row, shape (n,); weights do not enter.

        Parameters
        ----------
        kind : str
            "deviance", sign(y − μ) √d(y, μ); "pearson", (y − μ)/√V(μ); "response", y − μ; or "working", (y − μ) g'(μ),
            on the scale of η.
        """
        eta = self._everywhere(self._fitted_eta)
        y, mu = self._y, intervals.means(self._loss(), eta)
        match check_choice(kind, "kind", RESIDUALS):
            case "deviance":
                return np.asarray(np.sign(y - mu) * np.sqrt(np.maximum(self.family_.unit_deviance(y, mu), 0.0)))
            case "pearson":
                return np.asarray((y - mu) / np.sqrt(self.family_.variance(mu)))
            case "response":
                return np.asarray(y - mu)
        return np.asarray((y - mu) / self.link_.derivative(eta))  # "working"

    def _everywhere(self, eta: Matrix) -> Matrix:
        """η at all rows: as given at the rows of weight > 0, and as predicted at the rows of weight 0."""
        if self._rest is None:
            return eta
        every = np.empty(len(self._y))
        rest = np.setdiff1d(np.arange(len(every)), self._kept)
        every[self._kept] = eta
        every[rest] = self._values(self._rest)[:, 0] + (0.0 if self._shifts is None else self._shifts[rest])
        return every

    # -- leave-one-out ------------------------------------------------------------------------------------------------

    def _left_out(self) -> Matrix:
        if "left out" not in self._cache:
            self._cache["left out"] = left_out_values(self._whole(), self._state())[:, 0]
        values: Matrix = self._cache["left out"]
        return values

    @property
    def loo_predictions_(self) -> Matrix:
        """The mean at each training point of the model fitted without it, shape (n,): approximate.

        Each is one Newton step from the minimum, without the row but with the curvature of all rows: exact for the
        Gaussian family with the identity link. With the log link, η is held within 1 of the range of the fitted values.
        If family and link make a loss that is not convex (the inverse Gaussian with the log link), and for up to 4 000
        rows, more Newton steps follow until the deviance of the row is known to about 1 %; its mean may be less
        accurate where the deviance hardly depends on it, far above an inverse-Gaussian response. The steps begin at
        the fit to all rows: if the risk without the row has several minima, a refit from scratch may reach another one.
        For a row of weight 0 it is the prediction of the fit, which left out that row anyway.
        """
        return intervals.means(self._loss(), self._everywhere(self._left_out()))

    @property
    def loo_score_(self) -> float:
        """D² of `loo_predictions_`: an estimate of `score` on new data."""
        risk = self._whole()
        return self._explained(risk.y, intervals.means(self._loss(), self._left_out()), risk.weights, risk.offset)

    def _explained(self, y: Any, mu: Matrix, w: Matrix | None, shift: Matrix | None) -> float:
        """D² of the means μ."""
        return _share_explained(_total(self.family_.unit_deviance(y, mu), w), _null_deviance(self._loss(), y, w, shift))

    def _facts(self) -> dict[str, str]:
        """Names and values of the statistics, for `summary`."""
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
            "D²": f"{_share_explained(self.deviance_, self.null_deviance_):.4f}; leave-one-out {self.loo_score_:.4f}",
            "dispersion": f"{self.dispersion_:.6g}{known}",
            "Pearson's χ²": f"{self.pearson_chi2_:.6g}",
            "log-likelihood": likelihood,
            "AIC, BIC": criteria,
            "solver": self.status_,
        }


def constant_diverges(loss: Deviance, y: Matrix) -> bool:
    """Whether the likelihood grows without limit with a constant: all counts are zero, or there is one class only."""
    lower, upper = loss.recession(y)
    return bool(np.isinf(lower).all() or np.isinf(upper).all())


def _share_explained(deviance: float, null_deviance: float) -> float:
    """D² = 1 − deviance/null deviance; 1 or 0 if a constant fits exactly."""
    return 1.0 - deviance / null_deviance if null_deviance > 0.0 else float(deviance <= 0.0)


def _total(each: Matrix, w: Matrix | None) -> float:
    """The weighted sum."""
    return float(each.sum() if w is None else w @ each)


def _null_deviance(loss: Deviance, y: Any, w: Matrix | None, offset: Matrix | None) -> float:
    """The deviance of the best constant: the mean, or with offsets the constant that the solver finds."""
    if (y == y[0]).all() and offset is None:
        return 0.0
    if offset is None:
        mean = np.clip(np.average(y, weights=w), *loss.means)  # a link may not allow a negative mean
        return _total(loss.family.unit_deviance(y, np.full(len(y), mean)), w)
    if constant_diverges(loss, y):
        return 0.0
    space = FeatureSpace(np.empty((len(y), 0)), np.ones((len(y), 1)))
    return 2.0 * smooth.minimise(Risk(space, loss, y, 0.0, w, offset), tol=1e-9).state.value
