"""Generalised linear models: their statistics against statsmodels, identities, intervals that cover, leave-one-out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.preprocessing import SplineTransformer

import mercer as mc
from mercer.errors import InvalidInput
from mercer.models.likelihood import glm_intervals as intervals
from mercer.models.likelihood.separation import Separable
from mercer.problems.families import (
    Bernoulli,
    Family,
    Gamma,
    Gaussian,
    InverseGaussian,
    NegativeBinomial,
    Poisson,
    Tweedie,
)
from mercer.problems.links import Link
from mercer.problems.losses import Deviance, loss_of

NB, TWEEDIE = NegativeBinomial(2.0), Tweedie(1.5)


def draw(n=150, d=3, family="poisson", link=None, seed=0, scale=0.4):
    """Columns, and responses of a family whose η is linear in them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    loss = loss_of(family, link)
    eta = 0.6 + scale * X @ np.linspace(1.0, -1.0, d)
    return X, loss.family.sample(loss.link.inverse(eta), 1.0 if loss.family.known_dispersion else 0.3, rng)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


# -- statsmodels ------------------------------------------------------------------------------------------------------

# statsmodels 0.15.0: GLM(y, [X, 1], family, freq_weights=1 + i % 3, offset=0.2 cos i (none for the inverse link)), the
# data by the recipe below; params, bse, and deviance, null_deviance, pearson_chi2, scale, llf, aic, bic_llf.
# fmt: off
STATSMODELS = [
    ("gaussian", None, "real",
     [0.5396718, -0.2942468, -0.07599421, 1.010967],
     [0.05170999, 0.05051594, 0.1280089, 0.1185289],
     [18.013589, 40.866856, 18.013589, 0.15528956, -56.490704, 120.98141, 132.13137]),
    ("bernoulli", "logit", "zero_one",
     [1.618138, -0.03380968, 2.629658, -1.129857],
     [0.3370637, 0.3100779, 0.819854, 0.739442],
     [126.68446, 166.17562, 121.3848, 1.0, -63.342229, 134.68446, 145.83443]),
    ("bernoulli", "probit", "zero_one",
     [0.9569801, -0.02621382, 1.615033, -0.6776449],
     [0.1919656, 0.1815462, 0.473915, 0.4305831],
     [127.02395, 166.67305, 122.98829, 1.0, -63.511975, 135.02395, 146.17392]),
    ("bernoulli", "cloglog", "zero_one",
     [1.101709, -0.1734038, 1.860421, -0.9572209],
     [0.2326378, 0.2066427, 0.5411193, 0.5017025],
     [126.92905, 166.41391, 119.46412, 1.0, -63.464524, 134.92905, 146.07901]),
    ("poisson", "log", "counts",
     [0.6063933, -0.08627802, -0.6666315, 0.8283619],
     [0.1091341, 0.1001167, 0.2535338, 0.2359283],
     [149.18787, 188.3465, 117.99203, 1.0, -189.97541, 387.95083, 399.10079]),
    ("gamma", "log", "positive",
     [0.3546496, -0.1573921, -0.3968829, -0.2772337],
     [0.05833515, 0.05698811, 0.1444096, 0.133715],
     [26.520542, 37.636978, 22.925137, 0.19763049, 20.639933, -33.279866, -22.129899]),
    ("gamma", "inverse", "positive",
     [-0.7835876, 0.3712354, 0.866811, 1.160134],
     [0.1156326, 0.1060038, 0.2655038, 0.2350335],
     [23.17114, 35.122323, 19.981735, 0.17225633, 28.976294, -49.952588, -38.802621]),
    ("inverse_gaussian", "log", "positive",
     [0.3349568, -0.1171633, -0.3691519, -0.3520706],
     [0.05859377, 0.0571466, 0.1442436, 0.1349908],
     [70.50607, 92.091041, 49.069951, 0.42301682, 12.06262, -16.12524, -4.9752726]),
    (NB, "log", "counts",
     [0.5819749, -0.06333791, -0.6190115, 0.7803267],
     [0.1452209, 0.1374632, 0.349431, 0.323751],
     [95.476456, 115.83745, 63.708398, 1.0, -196.6589, 401.3178, 412.46776]),
    (TWEEDIE, "log", "sums",
     [0.3735615, -0.1888256, -0.6439596, -0.2257441],
     [0.0855004, 0.08275237, 0.2099548, 0.1915773],
     [75.955274, 85.64755, 31.895427, 0.27496058, -120.98765, 249.9753, 261.12527]),
]
# fmt: on


def recipe():
    i = np.arange(60.0)
    X = np.column_stack([np.sin(i), np.cos(1.7 * i) + 2, (i % 7) / 7])
    u = (i * 0.6180339887498949) % 1
    positive = (0.2 + u) * np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1])
    responses = {
        "real": 1 + 0.5 * X[:, 0] - 0.3 * X[:, 1] + np.sin(5 * i) / 2,
        "zero_one": ((np.sin(3 * i) + 0.8 * X[:, 0]) > 0).astype(float),
        "counts": np.floor(4 * u * np.exp(0.5 * X[:, 0])),
        "positive": positive,
        "sums": np.where(u < 0.2, 0.0, positive),
    }
    return X, responses, 1 + (i % 3), 0.2 * np.cos(i)


@pytest.mark.parametrize(("family", "link", "kind", "params", "errors", "numbers"), STATSMODELS)
def test_statistics_are_those_of_statsmodels(family, link, kind, params, errors, numbers):
    X, responses, w, offset = recipe()
    given = None if link == "inverse" else offset
    model = mc.GLM(family=family, link=link, tol=1e-10).fit(X, responses[kind], w, offset=given)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(params, rel=2e-6)
    assert model.standard_errors_ == pytest.approx(errors, rel=2e-6)
    found = [
        model.deviance_, model.null_deviance_, model.pearson_chi2_, model.dispersion_, model.log_likelihood_,
        model.aic_, model.bic_,
    ]  # fmt: skip
    n, known = w.sum(), model.family_.known_dispersion
    if not known:  # likelihood and criteria are R's: by deviance/n, which counts as a parameter
        y, phi = responses[kind], numbers[0] / n
        likelihood = model.family_.log_likelihood(y, model.predict(X, offset=given), w, phi)
        numbers = [*numbers[:4], likelihood, -2 * likelihood + 2 * 5, -2 * likelihood + np.log(n) * 5]
    assert found == pytest.approx(numbers, rel=1e-6)
    assert model.degrees_of_freedom_ == 4
    z = np.array(params) / errors
    assert model.z_values_ == pytest.approx(z, rel=1e-5)
    spread = stats.norm() if known else stats.t(n - 4)
    assert model.p_values_ == pytest.approx(2 * spread.sf(abs(z)), rel=1e-4, abs=1e-12)
    ends = np.array(params)[:, None] + spread.ppf(0.95) * np.array(errors)[:, None] * [-1, 1]
    assert model.confidence_intervals(0.9) == pytest.approx(ends, rel=1e-5)


# R's help page ?glm: clotting times of McCullagh and Nelder (1989, pp. 300-302), summary(glm(lot ~ log(u), Gamma)).
# fmt: off
CLOTTING = [
    ([118, 58, 42, 35, 27, 25, 21, 19, 18],
     [0.01534311, -0.01655438], [0.00041496, 0.00092754], [2.75e-09, 4.28e-07], [0.01673, 3.51283, 0.002446059, 37.99]),
    ([69, 35, 26, 21, 18, 16, 13, 12, 12],
     [0.02359922, -0.02390848], [0.00057678, 0.00132645], [1.36e-09, 4.00e-07],
     [0.012672, 3.118557, 0.001813354, 27.032]),
]
# fmt: on


@pytest.mark.parametrize(("lot", "params", "errors", "p", "numbers"), CLOTTING)
def test_gamma_models_are_those_of_r(lot, params, errors, p, numbers):
    X, y = np.log([[5.0], [10], [15], [20], [30], [40], [60], [80], [100]]), np.array(lot, dtype=float)
    model = mc.GLM(family="gamma", link="inverse", tol=1e-10).fit(X, y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(params, rel=1e-6)
    assert model.standard_errors_ == pytest.approx(errors, rel=2e-5)
    assert model.p_values_ == pytest.approx(p, rel=4e-3)
    found = [model.deviance_, model.null_deviance_, model.dispersion_, model.aic_]
    assert found == pytest.approx(numbers, rel=2e-4)
    # logLik is p + 1 - AIC/2 and BIC has log(n) for 2, also for the dispersion
    assert model.bic_ - model.aic_ == pytest.approx(3 * (np.log(9) - 2))
    phi = model.deviance_ / 9
    density = stats.gamma.logpdf(y, 1 / phi, scale=phi * model.predict(X))
    assert model.log_likelihood_ == pytest.approx(density.sum(), rel=1e-10)


def test_gaussian_models_are_those_of_r():
    """R's help page ?lm: weights of plants by Annette Dobson (1990, p. 9), summary(lm(weight ~ group))."""
    ctl = [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]
    trt = [4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69]
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.array(ctl + trt)
    model = mc.GLM().fit(X, y)
    assert np.append(model.coef_, model.intercept_) == pytest.approx([-0.3710, 5.0320])
    assert model.standard_errors_ == pytest.approx([0.3114, 0.2202], rel=2e-4)
    assert model.p_values_ == pytest.approx([0.249, 9.55e-15], rel=2e-3)
    assert np.sqrt(model.dispersion_) == pytest.approx(0.6964, rel=1e-4)
    # one distribution: the interval of the intercept is the one of the mean where the column is 0
    assert model.mean_interval([[0.0]], 0.95)[0] == pytest.approx(model.confidence_intervals(0.95)[1])
    assert " t " in str(model.summary())
    phi = model.deviance_ / 20
    likelihood = -10 * (np.log(2 * np.pi * phi) + 1)
    assert model.bic_ == pytest.approx(-2 * likelihood + 3 * np.log(20))


@pytest.mark.parametrize(
    ("family", "link"),
    [("gaussian", "identity"), ("gaussian", "log"), ("gamma", None), (InverseGaussian(), None), (TWEEDIE, None),
     (NB, None)],
)  # fmt: skip
def test_one_distribution_for_coefficients_and_means(family, link):
    """A mean at the origin is the inverse link of the intercept, and so are its ends."""
    X, y = draw(12, d=2, family=family, link=link)
    model = mc.GLM(family=family, link=link).fit(X, y)
    ends = model.confidence_intervals(0.9)[-1]
    ends = ends if link == "identity" else np.exp(ends)
    assert model.mean_interval([[0.0, 0.0]], 0.9)[0] == pytest.approx(ends, rel=1e-8)


def test_new_responses_know_that_the_dispersion_was_estimated():
    """η over its standard error is Student's t: at few rows the interval is that of a sample of such means."""
    X, y = draw(8, d=1, family="gamma")
    model = mc.GLM(family="gamma").fit(X, y)
    query = np.array([[2.5]])
    eta, h = model.predict_linear(query)[0], model._variances(model._queries(query))[0]
    rng = np.random.default_rng(0)
    mu = np.exp(eta + np.sqrt(model.dispersion_ * h) * rng.standard_t(6, size=200_000))
    expected = np.quantile(Gamma().sample(mu, model.dispersion_, rng), [0.01, 0.99])
    assert model.predict_interval(query, 0.98)[0] == pytest.approx(expected, rel=0.03)


def test_rows_of_trials_count_once_in_bic():
    """As in R, where a binomial row is one observation: of a constant everything is known in closed form."""
    trials, hits = np.array([4, 9, 6, 11, 2]), np.array([1, 5, 3, 2, 2])
    rate = hits.sum() / trials.sum()
    model = mc.GLM(family="bernoulli", tol=1e-10).fit(np.zeros((5, 1)), hits / trials, sample_weight=trials)
    likelihood = stats.binom.logpmf(hits, trials, rate).sum()
    assert model.n_observations_ == 5
    assert model.aic_ == pytest.approx(-2 * likelihood + 2, rel=1e-10)
    assert model.bic_ == pytest.approx(-2 * likelihood + np.log(5), rel=1e-10)


def test_residuals():
    X, responses, w, offset = recipe()
    model = mc.GLM(family="poisson", tol=1e-10).fit(X, responses["counts"], w, offset=offset)
    mu = np.exp(with_ones(X) @ np.append(model.coef_, model.intercept_) + offset)
    y = responses["counts"]
    assert model.residuals("response") == pytest.approx(y - mu)
    assert model.residuals("pearson") == pytest.approx((y - mu) / np.sqrt(mu))
    assert model.residuals("working") == pytest.approx(y / mu - 1)
    assert w @ model.residuals() ** 2 == pytest.approx(model.deviance_)
    assert w @ model.residuals("pearson") ** 2 == pytest.approx(model.pearson_chi2_)
    assert (np.sign(model.residuals()) == np.sign(y - mu)).all()


# -- scikit-learn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "peer"),
    [
        ("poisson", PoissonRegressor),
        ("gamma", GammaRegressor),
        (Tweedie(1.3), lambda **kw: TweedieRegressor(power=1.3, link="log", **kw)),
    ],
)
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_coefficients_are_those_of_scikit_learn(family, peer, alpha):
    X, y = draw(family=family)
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    other = peer(alpha=alpha / w.sum(), tol=1e-10, max_iter=2000).fit(X, y, w)
    model = mc.GLM(family=family, alpha=alpha).fit(X, y, w)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-5, abs=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-5)
    assert model.score(X, y, w) == pytest.approx(other.score(X, y, w), rel=1e-6)


# -- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_gaussian_is_ridge(intercept):
    X, y = draw(family="gaussian")
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    for alpha in (0.0, 2.0):
        ridge = mc.Ridge(alpha=alpha, fit_intercept=intercept).fit(X, y, w)
        model = mc.GLM(alpha=alpha, fit_intercept=intercept).fit(X, y, w)
        assert model.coef_ == pytest.approx(ridge.coef_, rel=1e-9)
        assert model.predict(X) == pytest.approx(ridge.predict(X), rel=1e-9)
        assert model.score(X, y, w) == pytest.approx(ridge.score(X, y, w), rel=1e-9)
        assert model.degrees_of_freedom_ == pytest.approx(ridge.degrees_of_freedom_, rel=1e-9)
        assert model.loo_predictions_ == pytest.approx(ridge.loo_predictions_, rel=1e-9)
        assert model.loo_score_ == pytest.approx(ridge.loo_score_, rel=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_gaussian_in_a_kernels_space_is_kernel_ridge(intercept):
    X, y = draw(family="gaussian")
    w = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    k = mc.Gaussian(1.5)
    ridge = mc.KernelRidge(k, alpha=0.3, fit_intercept=intercept).fit(X, y, w)
    model = mc.KernelGLM(k, alpha=0.3, fit_intercept=intercept).fit(X, y, w)
    Z = X[:20] + 0.1
    assert model.predict(Z) == pytest.approx(ridge.predict(Z), rel=1e-8)
    assert model.degrees_of_freedom_ == pytest.approx(ridge.degrees_of_freedom_, rel=1e-8)
    assert model.loo_predictions_ == pytest.approx(ridge.loo_predictions_, rel=1e-8)
    assert model.loo_score_ == pytest.approx(ridge.loo_score_, rel=1e-8)


def test_bernoulli_is_logistic_regression():
    X, y = draw(family="bernoulli")
    linear = mc.LogisticRegression(alpha=0.5).fit(X, y)
    assert mc.GLM(family="bernoulli", alpha=0.5).fit(X, y).predict(X) == pytest.approx(linear.predict_proba(X)[:, 1])
    k = mc.Gaussian(1.0)
    other = mc.KernelLogisticRegression(k, alpha=0.5).fit(X, y)
    model = mc.KernelGLM(k, family="bernoulli", alpha=0.5).fit(X, y)
    assert model.predict(X) == pytest.approx(other.predict_proba(X)[:, 1])


@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "gamma", NB, TWEEDIE])
def test_the_linear_kernel_is_the_linear_model(family):
    X, y = draw(family=family)
    options = {"family": family, "alpha": 2.0, "fit_intercept": False, "tol": 1e-9}
    linear, kernel = mc.GLM(**options).fit(X, y), mc.KernelGLM(mc.Linear(), **options).fit(X, y)
    Z = X[:15] * 1.3
    assert kernel.predict(Z) == pytest.approx(linear.predict(Z), rel=1e-7)
    assert kernel.deviance_ == pytest.approx(linear.deviance_, rel=1e-7)
    assert kernel.degrees_of_freedom_ == pytest.approx(linear.degrees_of_freedom_, rel=1e-6)
    assert kernel.mean_interval(Z) == pytest.approx(linear.mean_interval(Z), rel=1e-6)
    assert kernel.predict_interval(Z) == pytest.approx(linear.predict_interval(Z), rel=1e-6)
    assert kernel.loo_predictions_ == pytest.approx(linear.loo_predictions_, rel=1e-6)


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma", InverseGaussian(), NB])
@pytest.mark.parametrize("kernel", [None, mc.Gaussian(1.5)])
def test_weights_are_repetition(family, kernel):
    X, y = draw(80, family=family)
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = (
        mc.GLM(family=family, alpha=0.5, tol=1e-9) if kernel is None else mc.KernelGLM(kernel, family=family, tol=1e-9)
    )
    weighted = clone(model).fit(X, y, times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=1e-6)
    for name in ("deviance_", "null_deviance_", "dispersion_", "degrees_of_freedom_", "log_likelihood_", "bic_"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-6), name
    assert weighted.predict_interval(X[:9]) == pytest.approx(repeated.predict_interval(X[:9]), rel=1e-5)
    if kernel is None:
        assert weighted.standard_errors_ == pytest.approx(repeated.standard_errors_, rel=1e-6)


@pytest.mark.parametrize(("family", "link"), [("poisson", None), ("bernoulli", "probit"), ("gamma", None), (NB, None)])
def test_coefficients_of_a_kernel_are_pulls_of_the_loss(family, link):
    X, y = draw(90, family=family, link=link)
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    offset = 0.2 * X[:, 0]
    model = mc.KernelGLM(mc.Matern(2.5), family=family, link=link, alpha=0.7, tol=1e-10).fit(X, y, w, offset=offset)
    mu, eta = model.predict(X, offset=offset), model.predict_linear(X, offset=offset)
    pull = (y - mu) * model.link_.derivative(eta) / model.family_.variance(mu)
    assert model.dual_coef_ == pytest.approx(w * pull / 0.7, rel=1e-6, abs=1e-8)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-7)  # the intercept is free
    assert model.objective_ == pytest.approx(0.5 * model.deviance_ + 0.35 * model.function_.norm() ** 2)


def test_an_offset_is_a_column_whose_weight_is_known():
    X, y = draw(family="poisson")
    both = mc.GLM(family="poisson", tol=1e-10).fit(X, y)
    known = both.coef_[2] * X[:, 2]
    rest = mc.GLM(family="poisson", tol=1e-10).fit(X[:, :2], y, offset=known)
    assert rest.coef_ == pytest.approx(both.coef_[:2], rel=1e-8)
    assert rest.predict(X[:, :2], offset=known) == pytest.approx(both.predict(X), rel=1e-8)
    # least squares with an offset are least squares of the rest
    model, plain = mc.GLM().fit(X, y, offset=known), mc.GLM().fit(X, y - known)
    assert model.coef_ == pytest.approx(plain.coef_, rel=1e-9)
    assert model.null_deviance_ == pytest.approx(plain.null_deviance_, rel=1e-9)


@pytest.mark.parametrize("make", [mc.GLM, lambda **kw: mc.KernelGLM(mc.Gaussian(1.0), alpha=0.5, **kw)])
def test_exposure_is_a_weight_of_rates(make):
    X, _ = draw()
    rng = np.random.default_rng(2)
    exposure = rng.uniform(0.1, 3.0, size=len(X))
    y = rng.poisson(exposure * np.exp(0.5 + 0.4 * X[:, 0]))
    counts = make(family="poisson", tol=1e-10).fit(X, y, exposure=exposure)
    rates = make(family="poisson", tol=1e-10).fit(X, y / exposure, sample_weight=exposure)
    assert counts.predict(X) == pytest.approx(rates.predict(X), rel=1e-7)
    assert counts.predict(X, exposure=exposure) == pytest.approx(exposure * rates.predict(X), rel=1e-7)
    assert counts.deviance_ == pytest.approx(rates.deviance_, rel=1e-9)
    assert counts.null_deviance_ == pytest.approx(rates.null_deviance_, rel=1e-7)
    assert counts.score(X, y, exposure=exposure) == pytest.approx(rates.score(X, y / exposure, exposure), rel=1e-7)
    # exposure and offset add up; a complementary log-log has exposures, too
    offset = make(family="poisson", tol=1e-10).fit(X, y, exposure=np.sqrt(exposure), offset=0.5 * np.log(exposure))
    assert offset.predict(X) == pytest.approx(counts.predict(X), rel=1e-7)
    some = make(family="bernoulli", link="cloglog", tol=1e-10).fit(X, y > 0, exposure=exposure)
    chance = some.predict(X, exposure=exposure)
    assert chance == pytest.approx(-np.expm1(exposure * np.log1p(-some.predict(X))), rel=1e-9)


def test_the_probit_sees_the_sign_of_a_latent_variable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    latent = X @ [1.0, -0.5] + 0.3 + rng.normal(size=len(X))
    model = mc.GLM(family="bernoulli", link="probit").fit(X, latent > 0)
    assert np.append(model.coef_, model.intercept_) == pytest.approx(
        [1.0, -0.5, 0.3], abs=4 * model.standard_errors_.max()
    )
    # P(η + ε > 0) with normal noise ε is the mean exactly
    eta = model.predict_linear(X[:50])
    assert model.predict(X[:50]) == pytest.approx(stats.norm(loc=eta).sf(0.0), rel=1e-12)
    # the others by their own noise: logistic, Gumbel (of minima, turned round) and Cauchy
    for link, noise in (("logit", stats.logistic), ("cloglog", stats.gumbel_r), ("cauchit", stats.cauchy)):
        other = mc.GLM(family="bernoulli", link=link).fit(X, latent > 0)
        eta = other.predict_linear(X[:50])
        assert other.predict(X[:50]) == pytest.approx(noise(loc=eta).sf(0.0), rel=1e-9), link


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs", "backtracking"])
def test_every_solver_finds_the_same_minimum(solver):
    X, y = draw(family=NB)
    model = mc.GLM(family=NB, alpha=1.0, solver=solver, tol=1e-8).fit(X, y)
    newton = mc.GLM(family=NB, alpha=1.0).fit(X, y)
    assert model.coef_ == pytest.approx(newton.coef_, rel=1e-5)
    assert len(model.trace_.objective) == model.n_iter_ + 1
    assert model.trace_.objective[-1] == pytest.approx(model.objective_)


def test_names_and_values_of_families_are_the_same():
    X, y = draw()
    by_name = mc.GLM(family="poisson", link="log").fit(X, y)
    by_value = mc.GLM(family=Poisson(), link=Poisson().canonical).fit(X, y)
    assert (by_name.coef_ == by_value.coef_).all()
    assert isinstance(by_name.family_, Family)
    assert isinstance(by_name.link_, Link)


def test_centres_that_are_all_points_are_the_exact_model():
    X, y = draw(60)
    options = {"family": "poisson", "alpha": 0.5, "tol": 1e-9}
    exact = mc.KernelGLM(mc.Gaussian(0.7), **options).fit(X, y)
    centred = mc.KernelGLM(mc.Gaussian(0.7), centers=X, **options).fit(X, y)
    Z = X[:20] + 0.3
    assert centred.predict(Z) == pytest.approx(exact.predict(Z), rel=1e-6)
    assert centred.degrees_of_freedom_ == pytest.approx(exact.degrees_of_freedom_, rel=1e-6)
    assert centred.mean_interval(Z) == pytest.approx(exact.mean_interval(Z), rel=1e-6)
    assert centred.loo_predictions_ == pytest.approx(exact.loo_predictions_, rel=1e-6)
    far = [[50.0, 50.0, 50.0]]
    few = mc.KernelGLM(mc.Gaussian(0.7), n_centers=10, **options).fit(X, y)
    assert few.mean_interval(far) == pytest.approx(exact.mean_interval(far), rel=0.3)  # as unsure as the prior


# -- how sure it is ---------------------------------------------------------------------------------------------------


def dense_posterior(Z, W, alpha, intercept):
    """(ZᵀWZ + alpha)⁻¹ without any cleverness."""
    penalty = np.full(Z.shape[1], alpha)
    if intercept:
        penalty[-1] = 0.0
    return np.linalg.inv(Z.T @ (W[:, None] * Z) + np.diag(penalty))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", ["tall", "wide", "sparse"])
def test_standard_errors_are_the_diagonal_of_the_inverse(intercept, shape):
    X, y = draw(40, 100 if shape == "wide" else 5, scale=0.1)
    X = X + 2.0
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    given = sp.csr_array(X) if shape == "sparse" else X
    model = mc.GLM(family="poisson", alpha=0.8, fit_intercept=intercept, tol=1e-10).fit(given, y, w)
    Z = with_ones(X) if intercept else X
    mu = model.predict(given)
    C = dense_posterior(Z, w * mu, 0.8, intercept)
    assert model.standard_errors_ == pytest.approx(np.sqrt(np.diag(C)), rel=1e-6)
    assert model.degrees_of_freedom_ == pytest.approx(np.trace(C @ Z.T @ ((w * mu)[:, None] * Z)), rel=1e-6)
    new = Z[:7] + 0.1
    if intercept:
        new[:, -1] = 1.0
    deviation = np.sqrt(np.einsum("ij,jk,ik->i", new, C, new))
    eta = new @ (np.append(model.coef_, model.intercept_) if intercept else model.coef_)
    query = X[:7] + 0.1
    ends = model.mean_interval(sp.csr_array(query) if shape == "sparse" else query, 0.9)
    assert ends == pytest.approx(np.exp(eta[:, None] + 1.6448536 * deviation[:, None] * [-1, 1]), rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_variance_of_a_kernels_function_is_the_posterior_of_a_process(intercept):
    X, y = draw(50)
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    k, alpha = mc.Gaussian(1.0), 0.6
    model = mc.KernelGLM(k, family="poisson", alpha=alpha, fit_intercept=intercept, tol=1e-10).fit(X, y, w)
    Z = X[:8] + 0.2
    # f ~ N(0, k/alpha), the intercept with a prior so wide that it does not matter; working noise of variance 1/W
    wide = 1e7 if intercept else 0.0
    S = k(X) / alpha + wide + np.diag(1 / (w * model.predict(X)))
    K = k(Z, X) / alpha + wide
    variance = np.diag(k(Z)) / alpha + wide - np.einsum("ij,ji->i", K, np.linalg.solve(S, K.T))
    eta = model.predict_linear(Z)
    ends = np.exp(eta[:, None] + 1.6448536 * np.sqrt(variance)[:, None] * [-1, 1])
    assert model.mean_interval(Z, 0.9) == pytest.approx(ends, rel=1e-4)


def test_least_squares_have_students_intervals():
    X, y = draw(25, 2, family="gaussian")
    model = mc.GLM().fit(X, y)
    Z, new = with_ones(X), with_ones(X[:6] + 0.5)
    beta = np.linalg.lstsq(Z, y)[0]
    s2 = ((y - Z @ beta) ** 2).sum() / 22
    h = np.einsum("ij,jk,ik->i", new, np.linalg.inv(Z.T @ Z), new)
    for found, spread in ((model.predict_interval, 1 + h), (model.mean_interval, h)):
        reach = stats.t(22).ppf(0.95) * np.sqrt(s2 * spread)
        assert found(X[:6] + 0.5, 0.9) == pytest.approx((new @ beta)[:, None] + reach[:, None] * [-1, 1], rel=1e-9)


CDFS = [
    (Gaussian(), lambda y, mu, phi: stats.norm.cdf(y, mu, np.sqrt(phi))),
    (Bernoulli(), lambda y, mu, phi: stats.bernoulli.cdf(y, mu)),
    (Poisson(), lambda y, mu, phi: stats.poisson.cdf(y, mu)),
    (NB, lambda y, mu, phi: stats.nbinom.cdf(y, 2.0, 2.0 / (2.0 + mu))),
    (Gamma(), lambda y, mu, phi: stats.gamma.cdf(y, 1 / phi, scale=phi * mu)),
    (InverseGaussian(), lambda y, mu, phi: stats.invgauss.cdf(y, mu * phi, scale=1 / phi)),
]


@pytest.mark.parametrize(("family", "exact"), CDFS)
def test_distribution_functions(family, exact):
    y = np.array([-0.5, 0.0, 0.3, 1.0, 2.7, 9.0])
    mu = np.array([0.2, 0.5, 0.9]) if isinstance(family, Bernoulli) else np.array([0.4, 2.0, 7.0])
    phi = 1.0 if family.known_dispersion else 0.6
    y, mu = y[:, None], mu[None, :]
    assert intervals.cdf(family, y, mu, phi) == pytest.approx(exact(y, mu, phi), rel=1e-10, abs=1e-14)
    inside = family.quantile([[0.3]], mu, phi)
    assert (intervals.cdf(family, inside, mu, phi) >= 0.3 - 1e-9).all()


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_quasi_separation_is_found_on_the_scale_of_every_link(link, tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] + 0.5 * rng.logistic(size=100) > 0).astype(int)
    mc.GLM(family="bernoulli", link=link, tol=tol).fit(X, y)
    rare = np.arange(100.0) < 6  # y = 1 throughout
    with pytest.raises(Separable) as caught:
        mc.GLM(family="bernoulli", link=link, tol=tol).fit(np.c_[X, rare], np.where(rare, 1, y))
    assert not caught.value.complete
    assert caught.value.direction[2] > 0


@pytest.mark.parametrize("family", ["gaussian", "gamma", "inverse_gaussian", TWEEDIE])
def test_an_exact_fit_has_intervals_and_a_summary(family):
    model = mc.GLM(family=family).fit(np.random.default_rng(0).normal(size=(40, 2)), np.ones(40))
    assert model.predict_interval([[0.0, 0.0]]) == pytest.approx(np.ones((1, 2)), rel=1e-6)
    assert "log-likelihood" in str(model.summary())


def test_shares_of_trials_have_the_binomial_coefficients():
    rng = np.random.default_rng(0)
    X, trials = rng.normal(size=(60, 2)), rng.integers(1, 20, 60)
    hits = rng.binomial(trials, 0.3)
    model = mc.GLM(family="bernoulli").fit(X, hits / trials, sample_weight=trials)
    expected = stats.binom.logpmf(hits, trials, model.predict(X)).sum()
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-10)


def test_the_negative_binomial_of_large_theta_is_poissons():
    X, y = draw()
    poisson = mc.GLM(family="poisson").fit(X, y)
    for theta in (1e12, 1e15):
        model = mc.GLM(family=NegativeBinomial(theta)).fit(X, y)
        assert model.deviance_ == pytest.approx(poisson.deviance_, rel=1e-8)
        assert model.log_likelihood_ == pytest.approx(poisson.log_likelihood_, rel=1e-8)


def test_what_is_no_number_is_refused():
    X = np.random.default_rng(0).normal(size=(4, 2))
    for y in (np.array(["2020-01-01", "NaT", "2021-01-01", "2022-01-01"], "M8[D]"), np.arange(4).astype("m8[s]")):
        with pytest.raises(InvalidInput, match="dates"):
            mc.GLM().fit(X, y)
    for alpha in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="Scale the columns"):
            mc.GLM(alpha=alpha).fit(1e300 * X, np.arange(4.0))
    with pytest.raises(InvalidInput, match="sample_weight"):
        mc.KernelGLM(mc.Gaussian(1.0)).fit(X, np.arange(4.0), sample_weight=np.full(4, 1e300))
    with pytest.raises(InvalidInput, match="fit_intercept"):
        mc.GLM(fit_intercept="x").fit(X, np.arange(4.0))


def test_left_out_counts_are_held_near_the_fitted_ones():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    y = rng.poisson(np.exp(1 + np.sin(X[:, 0])))
    model = mc.KernelGLM(mc.Gaussian(0.3), family="poisson", alpha=1e-8).fit(X, y)
    assert model.loo_predictions_.max() < 1.001 * np.e * model.predict(X).max()


def test_a_mean_that_the_link_cannot_have_is_no_null_model():
    X, y = np.arange(6.0)[:, None], np.array([-3.0, -2.0, 1.0, -1.0, -2.0, 1.5])
    model = mc.GLM(link="log", alpha=1.0).fit(X, y)
    assert model.null_deviance_ == pytest.approx((y**2).sum())


def test_distribution_functions_of_sums_and_of_other_families():
    mu, y = np.array([0.3, 2.0, 30.0]), np.array([[0.0], [0.5], [3.0], [40.0]])
    found = intervals.cdf(TWEEDIE, y, mu, 0.7)
    draws = np.sort(TWEEDIE.sample(np.broadcast_to(mu, (100_000, 3)), 0.7, 0), axis=0)
    for j in range(3):
        assert found[:, j] == pytest.approx(np.searchsorted(draws[:, j], y[:, 0], side="right") / 1e5, abs=0.006)
    assert found[0] == pytest.approx(np.exp(-np.sqrt(mu) / 0.35))
    for p in (1.2, 1.5, 1.8):  # the sum over the number of amounts, term by term
        mu = np.full((41, 1), (100.0 * 0.7 * (2 - p)) ** (1 / (2 - p)))
        y = mu + np.sqrt(0.7 * mu**p) * np.linspace(-3, 4, 41)[:, None]
        n = np.arange(1, 300)
        each = special.gammainc(n * (2 - p) / (p - 1), y / (0.7 * (p - 1) * mu ** (p - 1)))
        summed = np.exp(-100.0) + (stats.poisson.pmf(n, 100.0) * each).sum(axis=1)
        assert intervals.cdf(Tweedie(p), y, mu, 0.7)[:, 0] == pytest.approx(summed, rel=1e-9, abs=1e-12)
    mu, y = np.array([0.3, 2.0, 30.0]), np.array([[0.0], [0.5], [3.0], [40.0]])

    class Exponential(Gamma):  # of someone else's library
        pass

    by_quantiles = intervals._from_quantiles(Exponential(), y[1:], mu, 1.0)
    assert by_quantiles == pytest.approx(-np.expm1(-y[1:] / mu), abs=1e-9)


@pytest.mark.parametrize("family", [Gaussian(), Bernoulli(), Poisson(), NB, Gamma(), InverseGaussian(), TWEEDIE])
def test_quantiles_integrate_the_uncertainty_of_the_mean(family):
    link = "log" if isinstance(family, Gaussian) else None
    loss, phi = loss_of(family, link), 1.0 if family.known_dispersion else 0.4
    assert isinstance(loss, Deviance)
    eta, deviation = np.array([-1.0, 0.5, 2.5]), np.array([0.6, 0.4, 0.3])
    rng = np.random.default_rng(0)
    draws = family.sample(loss.link.inverse(eta + deviation * rng.normal(size=(200_000, 3))), phi, rng)
    for q in (0.05, 0.5, 0.95):
        found = intervals.quantiles(loss, q, eta, deviation, phi)
        below, upto = (draws < found - 1e-9).mean(axis=0), (draws <= found + 1e-9).mean(axis=0)
        assert (below <= q + 0.004).all()
        assert (upto >= q - 0.004).all()
        # without any, the family's own
        sure = intervals.quantiles(loss, q, eta, 0.0 * eta, phi)
        assert sure == pytest.approx(family.quantile(q, loss.link.inverse(eta), phi), rel=1e-7, abs=1e-9)


def test_intervals_of_what_is_not_known_at_all_are_wide_and_finite():
    X, y = draw(60)
    model = mc.KernelGLM(mc.Gaussian(0.5), family="poisson", alpha=1e-3).fit(X, y)
    far = model.predict_interval([[100.0, 0.0, 0.0]], 0.9)
    assert np.isfinite(far).all()
    assert far[0, 0] == 0.0
    assert far[0, 1] > 1e12


@pytest.mark.thorough
@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Gamma(), NegativeBinomial(5.0)])
def test_prediction_intervals_cover(family):
    """Many fits to sixty rows each: new responses fall into the intervals as often as these say."""
    rng = np.random.default_rng(0)
    phi = 1.0 if family.known_dispersion else 0.2
    link, inside, truth = family.link(), [], []
    for _ in range(60):
        X = rng.uniform(-1, 1, size=(90, 2))
        mu = link.inverse(2.5 + X @ [0.8, -0.5])
        y = family.sample(mu, phi, rng)
        model = mc.GLM(family=family).fit(X[:60], y[:60])
        ends = model.predict_interval(X[60:], 0.8)
        inside.append((ends[:, 0] <= y[60:]) & (y[60:] <= ends[:, 1]))
        ends = model.mean_interval(X[60:], 0.8)
        truth.append((ends[:, 0] <= mu[60:]) & (mu[60:] <= ends[:, 1]))
    # counts have whole ends, which hold a little more
    most = 0.83 if family.range[0] < 0 or not family.known_dispersion else 0.88
    assert 0.775 <= np.mean(inside) <= most
    assert 0.75 <= np.mean(truth) <= 0.85


@pytest.mark.thorough
def test_the_band_of_a_kernels_mean_covers_on_average():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 120)[:, None]
    mu = np.exp(1.5 + np.sin(X[:, 0]))
    found = []
    for _ in range(30):
        model = mc.KernelGLM(mc.Gaussian(1.0), family="poisson", alpha=1.0).fit(X, rng.poisson(mu))
        ends = model.mean_interval(X, 0.9)
        found.append(np.mean((ends[:, 0] <= mu) & (mu <= ends[:, 1])))
    assert 0.85 <= np.mean(found) <= 0.97


# -- leave-one-out ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("family", "link", "kernel"),
    [
        ("poisson", None, None),
        ("poisson", None, mc.Gaussian(1.5)),
        ("bernoulli", "probit", mc.Gaussian(1.5)),
        ("gamma", None, None),
        (NB, None, mc.Gaussian(1.5)),
    ],
)
def test_leave_one_out_is_nearly_that_of_refitting(family, link, kernel):
    X, y = draw(40, 2, family=family, link=link)
    w = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    offset = 0.1 * X[:, 0]
    model = mc.GLM(family=family, link=link, alpha=0.5, tol=1e-9)
    if kernel is not None:
        model = mc.KernelGLM(kernel, family=family, link=link, alpha=0.5, tol=1e-9)
    found = clone(model).fit(X, y, w, offset=offset)
    exact = np.empty(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        without = clone(model).fit(X[rest], y[rest], w[rest], offset=offset[rest])
        exact[i] = without.predict(X[[i]], offset=offset[[i]])[0]
    naive = found.predict(X, offset=offset)
    error = np.abs(found.loo_predictions_ - exact)
    assert error.mean() < 0.1 * np.abs(naive - exact).mean()  # a tenth of what ignoring the row would miss
    assert error.max() < 0.35 * np.abs(naive - exact).max()
    d = found.family_.unit_deviance
    assert found.loo_score_ == pytest.approx(1 - w @ d(y, found.loo_predictions_) / found.null_deviance_)


# -- no maximum -------------------------------------------------------------------------------------------------------


def test_counts_of_a_group_that_are_all_zero_have_no_maximum():
    group = np.repeat([0.0, 1.0], 20)
    y = np.where(group == 1, 0.0, np.random.default_rng(0).poisson(3.0, size=40))
    with pytest.raises(Separable, match="the likelihood has no maximum") as caught:
        mc.GLM(family="poisson").fit(group[:, None], y)
    assert caught.value.direction[0] < 0
    assert np.isfinite(mc.GLM(family="poisson", alpha=1e-3).fit(group[:, None], y).coef_).all()


def test_classes_that_are_separated_have_no_maximum():
    X = np.linspace(-1, 1, 30)[:, None]
    with pytest.raises(Separable):
        mc.GLM(family="bernoulli", link="probit").fit(X, X[:, 0] > 0)
    assert mc.GLM(family="bernoulli", link="probit", alpha=0.1).fit(X, X[:, 0] > 0).coef_[0] > 1


@pytest.mark.parametrize(("family", "value"), [("poisson", 0.0), ("bernoulli", 1.0), (NB, 0.0)])
def test_an_intercept_cannot_follow_responses_for_ever(family, value):
    X, _ = draw(20)
    y = np.full(20, value)
    for model in (mc.GLM(family=family, alpha=1.0), mc.KernelGLM(family=family)):
        with pytest.raises(InvalidInput, match="in all 20 rows"):
            model.fit(X, y)
    y[:5] = 1.0 - value
    with pytest.raises(InvalidInput, match="in all 15 rows of weight > 0"):
        mc.GLM(family=family, alpha=1.0).fit(X, y, np.repeat([0.0, 1.0], [5, 15]))
    assert np.isfinite(mc.KernelGLM(family=family, fit_intercept=False).fit(X, np.full(20, value)).predict(X)).all()


# -- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "bad", "what"),
    [
        ("poisson", -1.0, "counts"),
        ("gamma", 0.0, "> 0"),
        ("bernoulli", 2.0, "0 or 1"),
        (NB, -2.0, "counts"),
        (TWEEDIE, -0.1, "≥ 0"),
        ("gaussian", np.nan, "NaN"),
        ("poisson", np.inf, "inf"),
    ],
)
@pytest.mark.parametrize("Model", [mc.GLM, mc.KernelGLM])
def test_responses_outside_the_support_are_named(Model, family, bad, what):
    X, y = draw(30, family=family)
    y = np.array(y, dtype=float)
    y[7] = bad
    with pytest.raises(InvalidInput, match=what) as caught:
        Model(family=family).fit(X, y)
    assert "row 7" in str(caught.value)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_rows_without_exposure_are_named(bad):
    X, y = draw(30)
    exposure = np.ones(30)
    exposure[[4, 9]] = bad
    with pytest.raises(InvalidInput, match=r"row 4 \(2 such rows\). Drop the rows without exposure"):
        mc.GLM(family="poisson").fit(X, y, exposure=exposure)
    model = mc.GLM(family="poisson").fit(X, y)
    with pytest.raises(InvalidInput, match="row 4"):
        model.predict(X, exposure=exposure)


def test_offsets_are_checked():
    X, y = draw(30)
    model = mc.GLM(family="poisson")
    with pytest.raises(InvalidInput, match=r"30 finite numbers, one per point, got shape \(3,\)"):
        model.fit(X, y, offset=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="nan in row 0"):
        model.fit(X, y, offset=np.full(30, np.nan))
    with pytest.raises(InvalidInput, match="`offset` must hold"):
        model.fit(X, y, offset=["a"] * 30)
    with pytest.raises(InvalidInput, match="log link"):
        mc.GLM(family="poisson", link="sqrt").fit(X, y, exposure=np.ones(30))
    with pytest.raises(InvalidInput, match="log link"):
        mc.GLM().fit(X, y, exposure=np.ones(30))
    assert model.fit(X, y, exposure=2.0).predict(X, exposure=2.0) == pytest.approx(model.fit(X, y).predict(X), rel=1e-6)


def test_parameters_are_checked():
    X, y = draw(30)
    for parameters, what in (
        ({"family": "weibull"}, "`family` must be one of"),
        ({"family": "poisson", "link": "logit"}, "`link` of the poisson family"),
        ({"link": "softmax"}, "`link` must be one of"),
        ({"alpha": -1.0}, "`alpha`"),
        ({"solver": "cg"}, "`solver`"),
        ({"tol": 0.0}, "`tol`"),
        ({"max_iter": 2.5}, "`max_iter`"),
        ({"step": 0.1}, "`step` is the fixed step"),
        ({"start": [1.0]}, "`start` must hold 4 finite numbers"),
    ):
        with pytest.raises(InvalidInput, match=what):
            mc.GLM(**parameters).fit(X, y)
    with pytest.raises(InvalidInput, match="`alpha` must be > 0 for a kernel"):
        mc.KernelGLM(alpha=0.0).fit(X, y)
    model = mc.GLM(family="poisson").fit(X, y)
    with pytest.raises(InvalidInput, match="`kind` must be one of"):
        model.residuals("standardised")
    for coverage in (0.0, 1.0, 2, "most"):
        for ask in (
            model.confidence_intervals,
            lambda c: model.mean_interval(X, c),
            lambda c: model.predict_interval(X, c),
        ):
            with pytest.raises(InvalidInput, match="`coverage`"):
                ask(coverage)


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y = draw(30)
    model = mc.GLM(family="poisson").fit(X, y)
    before, errors = model.coef_.copy(), model.standard_errors_
    with pytest.raises(InvalidInput):
        model.fit(X[:, :2], -y - 1)
    assert (model.coef_ == before).all()
    assert (model.standard_errors_ == errors).all()
    other = model.fit(X[:, :2], y)
    assert len(other.standard_errors_) == 3  # nothing is left of the first fit


def test_more_parameters_than_rows_have_no_dispersion():
    X, y = draw(3, 5, family="gaussian")
    model = mc.GLM().fit(X, y)
    assert model.predict(X) == pytest.approx(y)
    with pytest.raises(InvalidInput, match="more rows than parameters"):
        _ = model.dispersion_
    with pytest.raises(InvalidInput, match="a fit that leaves residuals"):
        _ = mc.GLM().fit([[0.0], [1.0], [2.0]], [0.0, 0.0, 0.0]).log_likelihood_
    one = mc.GLM(family="poisson", alpha=1.0).fit([[1.0]], [3.0])
    assert one.predict([[1.0]]) == pytest.approx([3.0], rel=1e-5)
    assert mc.KernelGLM(mc.Gaussian(1.0), family="poisson").fit([[1.0]], [3.0]).predict([[1.0]]) == pytest.approx(
        [3.0], rel=1e-5
    )


def test_an_exact_fit_has_no_errors():
    model = mc.GLM().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 0.0, 0.0])
    assert (model.standard_errors_ == 0).all()
    assert (model.z_values_ == 0).all()
    assert model.score([[0.0], [1.0]], [0.0, 0.0]) == 1.0
    assert model.score([[0.0], [1.0]], [1.0, 1.0]) == 0.0


def test_columns_that_depend_on_each_other():
    X, y = draw(60)
    more = np.column_stack([X, 2 * X[:, 0], np.full(60, 4.0)])
    plain, twice = (mc.GLM(family="poisson", tol=1e-9).fit(A, y) for A in (X, more))
    assert twice.predict(more) == pytest.approx(plain.predict(X), rel=1e-7)
    assert twice.degrees_of_freedom_ == 4
    assert twice.deviance_ == pytest.approx(plain.deviance_)
    assert "one of many solutions" in str(twice.summary())
    # of all weights the shortest: columns that are multiples share the weight, a constant one has none
    assert twice.coef_[[0, 3]] == pytest.approx(plain.coef_[0] * np.array([1, 2]) / 5, rel=1e-6)
    assert twice.coef_[4] == pytest.approx(0.0, abs=1e-9)
    # and so do their errors
    assert twice.standard_errors_[[0, 3]] == pytest.approx(plain.standard_errors_[0] * np.array([1, 2]) / 5, rel=1e-6)
    assert twice.standard_errors_[4] == pytest.approx(0.0, abs=1e-9)
    assert twice.standard_errors_[[1, 2, 5]] == pytest.approx(plain.standard_errors_[1:], rel=1e-6)
    X, y = draw(6, 9, family="gaussian")
    ridge = mc.Ridge(alpha=0.0).fit(X, y)
    assert mc.GLM().fit(X, y).coef_ == pytest.approx(ridge.coef_, rel=1e-6, abs=1e-9)
    assert mc.GLM(fit_intercept=False).fit(X, y).coef_ == pytest.approx(np.linalg.pinv(X) @ y, rel=1e-6)


def test_links_with_an_end_are_held_there():
    X = np.linspace(0.5, 2.0, 40)[:, None]
    y = Gamma().sample(1 / X[:, 0], 0.05, 0)
    model = mc.GLM(family="gamma", link="inverse").fit(X, y)
    assert model.coef_[0] == pytest.approx(1.0, abs=0.2)
    assert (model.mean_interval(X)[:, 0] < model.mean_interval(X)[:, 1]).all()  # the link falls
    assert (model.predict([[-100.0]]) > 1e10).all()
    counts = np.random.default_rng(0).poisson(4 * X[:, 0])
    model = mc.GLM(family="poisson", link="identity").fit(X, counts)
    assert model.predict([[-100.0]]) == 0.0
    assert (model.predict_interval([[-100.0]]) == 0.0).all()


def test_what_stops_early_says_so():
    X, y = draw()
    with pytest.warns(ConvergenceWarning, match="stopped after 1 step"):
        mc.GLM(family="poisson", max_iter=1).fit(X, y)
    steps = []
    with pytest.warns(ConvergenceWarning, match="stopped by the caller"):
        mc.GLM(family="poisson", progress=lambda step: steps.append(step) or len(steps) < 2).fit(X, y)
    assert len(steps) == 2


def test_wrong_queries():
    X, y = draw(30)
    model = mc.GLM(family="poisson").fit(X, y)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :2])
    with pytest.raises(InvalidInput, match="NaN"):
        model.predict(np.full((1, 3), np.nan))
    with pytest.raises(InvalidInput, match="one response per point"):
        mc.GLM().fit(X, np.column_stack([y, y]))


# -- features, frames, pickles, tables --------------------------------------------------------------------------------


def test_features_and_their_function():
    X, y = draw(120, 1)
    model = mc.GLM(SplineTransformer(6), family="poisson", alpha=0.1).fit(X, y)
    assert len(model.coef_) == 8
    assert model.function_(X) == pytest.approx(model.predict_linear(X), rel=1e-8)
    assert model.function_.norm() == pytest.approx(np.linalg.norm(model.coef_))
    plain = mc.GLM(family="poisson").fit(X, y)
    assert plain.function_(X) == pytest.approx(plain.predict_linear(X), rel=1e-12)
    assert plain.function_.weights() == pytest.approx(plain.coef_)
    squares = mc.GLM(mc.Polynomial(2, c=1.0), family="poisson", alpha=1e-3).fit(X, y)
    kernel = mc.KernelGLM(mc.Polynomial(2, c=1.0), family="poisson", alpha=1e-3).fit(X, y)
    assert squares.predict(X) == pytest.approx(kernel.predict(X), rel=1e-4)
    assert squares.function_.norm() == pytest.approx(kernel.function_.norm(), rel=1e-3)


def test_sparse_columns_are_the_dense_ones():
    X, y = draw(100, 6)
    X[X < 0.5] = 0.0
    dense, sparse = (mc.GLM(family="poisson", tol=1e-9).fit(A, y) for A in (X, sp.csr_array(X)))
    assert sparse.coef_ == pytest.approx(dense.coef_, rel=1e-7)
    assert sparse.standard_errors_ == pytest.approx(dense.standard_errors_, rel=1e-7)
    assert sparse.predict_interval(sp.csr_array(X[:5])) == pytest.approx(dense.predict_interval(X[:5]))
    assert sparse.function_(sp.csr_array(X)) == pytest.approx(sparse.predict_linear(sp.csr_array(X)))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_name_the_coefficients(library):
    frames = pytest.importorskip(library)
    X, y = draw(60)
    frame = frames.DataFrame({"age": X[:, 0], "power": X[:, 1], "height": X[:, 2]})
    exposure = frames.Series(np.ones(60))
    model = mc.GLM(family="poisson").fit(frame, frames.Series(y), exposure=exposure)
    assert model.coef_ == pytest.approx(mc.GLM(family="poisson").fit(X, y).coef_)
    text, page = str(model.summary()), model.summary()._repr_html_()
    for name in ("age", "power", "height", "intercept", "std. error", "97.5 %"):
        assert name in text
        assert f">{name}<" in page
    for number in (f"{model.coef_[0]:.5g}", f"{model.standard_errors_[-1]:.4g}", f"{model.deviance_:.6g}"):
        assert number in text
        assert number in page


def test_a_kernels_summary_and_many_coefficients():
    X, y = draw(60)
    text = str(mc.KernelGLM(mc.Gaussian(1.0), family="poisson").fit(X, y).summary())
    assert "Gaussian(sigma=1.0), alpha = 1" in text
    assert "degrees of freedom" in text
    wide = str(mc.GLM(alpha=1.0).fit(*draw(300, 90, family="gaussian", scale=0.1)).summary(0.9))
    assert "… 31 more" in wide
    assert "5 %" in wide
    assert "prior of variance φ/alpha" in wide


@pytest.mark.parametrize(
    ("model", "n", "d"),
    [
        (mc.GLM(family="poisson"), 400, 3),
        (mc.GLM(family="poisson", alpha=1.0), 400, 3),
        (mc.GLM(family="poisson", alpha=1.0), 90, 200),
        (mc.KernelGLM(mc.Gaussian(1.0), family="poisson"), 400, 3),
        (mc.KernelGLM(mc.Gaussian(1.0), family="poisson", n_centers=20), 400, 3),
    ],
)
def test_pickles_hold_no_matrices_and_know_everything(model, n, d):
    X, y = draw(n, d, scale=0.4 if d == 3 else 0.02)
    w = np.where(np.arange(n) % 10 == 0, 0.0, 1.5)
    offset = 0.01 * np.arange(n) / n
    fitted = clone(model).fit(X, y, w, offset=offset)
    # before anything was computed, and after
    for _ in range(2):
        packed = pickle.dumps(fitted)
        assert len(packed) < 3 * X.nbytes + 60_000
        again = pickle.loads(packed)
        assert again.predict(X[:5]) == pytest.approx(fitted.predict(X[:5]), rel=1e-12)
        for name in ("deviance_", "degrees_of_freedom_", "aic_", "loo_score_", "null_deviance_"):
            assert getattr(again, name) == pytest.approx(getattr(fitted, name), rel=1e-9), name
        assert again.predict_interval(X[:5]) == pytest.approx(fitted.predict_interval(X[:5]))
        assert again.residuals() == pytest.approx(fitted.residuals(), rel=1e-9)
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fitted)))).deviance_ == pytest.approx(fitted.deviance_)


def test_rows_of_weight_zero_have_predictions_of_the_fit():
    X, y = draw(50)
    w = np.repeat([0.0, 1.0], [10, 40])
    offset = 0.3 * X[:, 1]
    model = mc.GLM(family="poisson").fit(X, y, w, offset=offset)
    rest = mc.GLM(family="poisson").fit(X[10:], y[10:], offset=offset[10:])
    assert model.loo_predictions_[10:] == pytest.approx(rest.loo_predictions_)
    assert model.loo_predictions_[:10] == pytest.approx(rest.predict(X[:10], offset=offset[:10]))
    assert model.residuals("response") == pytest.approx(y - rest.predict(X, offset=offset))


def test_a_precomputed_gram_matrix():
    X, y = draw(60)
    k = mc.Gaussian(1.0)
    model = mc.KernelGLM(mc.Precomputed(), family="poisson").fit(k(X), y)
    plain = mc.KernelGLM(k, family="poisson").fit(X, y)
    assert model.predict(k(X[:9], X)) == pytest.approx(plain.predict(X[:9]), rel=1e-9)
    assert model.loo_predictions_ == pytest.approx(plain.loo_predictions_, rel=1e-9)
    with pytest.raises(InvalidInput):  # k(z, z) is in no row of k(z, X)
        model.mean_interval(k(X[:9] + 1.0, X))


def test_successes_over_trials():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    trials = rng.integers(1, 9, size=40)
    successes = rng.binomial(trials, special.expit(X[:, 0]))
    shares = mc.GLM(family="bernoulli", tol=1e-9).fit(X, successes / trials, trials)
    single = np.repeat(X, trials, axis=0)
    outcomes = np.concatenate([np.repeat([1.0, 0.0], [s, t - s]) for s, t in zip(successes, trials)])
    each = mc.GLM(family="bernoulli", tol=1e-9).fit(single, outcomes)
    assert shares.coef_ == pytest.approx(each.coef_, rel=1e-7)
    assert shares.standard_errors_ == pytest.approx(each.standard_errors_, rel=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("family", "link", "alpha"),
    [
        ("gaussian", "log", 0.0),
        ("gaussian", "log", 0.1),
        ("gamma", "identity", 0.0),
        ("gamma", "sqrt", 0.1),
        ("inverse_gaussian", "log", 0.1),
        ("inverse_gaussian", "sqrt", 0.0),
        (NB, "sqrt", 0.1),
        (TWEEDIE, "inverse", 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_leave_one_out_where_the_loss_is_not_convex(family, link, alpha):
    """Against refits: the median row to a tenth of what leaving it out changes, and the sum of deviances to 8 %."""
    rng = np.random.default_rng(5)
    X, loss = rng.uniform(-1, 1, (24, 2)), loss_of(family, link)
    eta = {"identity": 3.0, "inverse": 1.2, "sqrt": 1.8, "log": 0.8}[link] + 0.3 * (X @ [1, -1])
    y = loss.family.sample(loss.link.inverse(eta), 1.0 if loss.family.known_dispersion else 0.1, rng)
    w = rng.uniform(0.5, 2.0, 24)
    new = mc.GLM(family=family, link=link) if alpha == 0 else mc.KernelGLM(
        mc.Gaussian(0.7), family=family, link=link, alpha=alpha
    )  # fmt: skip
    model = clone(new).fit(X, y, w)
    rows = np.arange(24)
    exact = np.array([clone(new).fit(X[rows != i], y[rows != i], w[rows != i]).predict(X[[i]])[0] for i in rows])
    off = np.abs(model.loo_predictions_ - exact) / np.maximum(np.abs(model.predict(X) - exact), 1e-12)
    assert np.median(off) < 0.1
    found, wanted = (loss.family.unit_deviance(y, mu) @ w for mu in (model.loo_predictions_, exact))
    assert found == pytest.approx(wanted, rel=0.08)


def _inverse_gaussian_responses(name, n=40):
    """Points and responses: noisy on a plane, where some rows are far from all others, or less noisy on a square."""
    rng = np.random.default_rng(2)
    if name == "plane":
        X = rng.normal(size=(n, 2))
        mean, dispersion, kernel = np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1] ** 2), 0.3, mc.Gaussian(1.0)
    else:
        X = rng.uniform(-1, 1, (n, 2))
        mean, dispersion, kernel = np.exp(0.8 + 0.3 * (X @ [1, -1])), 0.1, mc.Gaussian(0.7)
    return X, InverseGaussian().sample(mean, dispersion, rng), kernel


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "alpha"), [("plane", 1e-4), ("plane", 1e-3), ("square", 1e-3)])
def test_leave_one_out_where_a_row_moves_the_model_far(name, alpha):
    """Against refits from scratch: the sum to 3 %, and each row's deviance to 3 % of its own and the mean one."""
    X, y, kernel = _inverse_gaussian_responses(name)
    new = mc.KernelGLM(kernel, family="inverse_gaussian", link="log", alpha=alpha, max_iter=1000)
    model, rows = clone(new).fit(X, y), np.arange(len(y))
    exact = np.array([clone(new).fit(X[rows != i], y[rows != i]).predict(X[[i]])[0] for i in rows])
    found, wanted = (InverseGaussian().unit_deviance(y, mu) for mu in (model.loo_predictions_, exact))
    assert found.sum() == pytest.approx(wanted.sum(), rel=0.03)
    assert (np.abs(found - wanted) <= 0.03 * (wanted + model.deviance_ / len(y))).all()
