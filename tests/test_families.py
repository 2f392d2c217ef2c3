"""Links, families and their losses: exact at the borders, accurate in the tails, and convex where they say so."""

from __future__ import annotations

import copy
import hashlib
import pickle
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special, stats

from mercer import threads
from mercer._loops import costs, exponential, likelihoods, vectors
from mercer.errors import InvalidInput
from mercer.problems.families import (
    Bernoulli,
    Family,
    Gamma,
    Gaussian,
    InverseGaussian,
    NegativeBinomial,
    Poisson,
    Tweedie,
    excess,
    family_of,
)
from mercer.problems.links import (
    Cauchit,
    Cloglog,
    Identity,
    Inverse,
    Link,
    Log,
    Logit,
    LogRatio,
    Power,
    Probit,
    Sqrt,
    link_of,
)
from mercer.problems.losses import Deviance, Softmax, loss_of
from mercer.problems.root_finding import find_roots

rng = np.random.default_rng(0)

UNIT = (Logit(), Probit(), Cloglog(), Cauchit())
POSITIVE = (Inverse(), Sqrt(), Power(-2.0), Power(-0.5), Power(3.0))
LINKS = (*UNIT, Identity(), Log(), *POSITIVE, LogRatio(2.0))
FAMILIES = (
    Gaussian(), Bernoulli(), Poisson(), Gamma(), InverseGaussian(), NegativeBinomial(0.7), NegativeBinomial(30.0),
    Tweedie(1.2), Tweedie(1.5), Tweedie(1.8),
)  # fmt: skip
PAIRS = [Deviance(f, name) for f in FAMILIES for name in dict.fromkeys((*f.links, "canonical"))]
PAIRS = list(dict.fromkeys(PAIRS))


def name(x: object) -> str:
    return f"{x.family!r}-{x.link.name}" if isinstance(x, Deviance) else repr(x)


def exact(f, *arguments) -> np.ndarray:
    """f in a hundred digits on arrays."""
    with mp.workdps(100):
        return np.vectorize(lambda *a: float(f(*(mp.mpf(float(v)) for v in a))), otypes=[float])(*arguments)


def close(found, expected, rtol: float, atol: float = 1e-300) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


# --- links ------------------------------------------------------------------------------------------------------------

REFERENCE = {
    "identity": lambda e: e,
    "logit": lambda e: 1 / (1 + mp.exp(-e)),
    "probit": lambda e: mp.erfc(-e / mp.sqrt(2)) / 2,
    "cloglog": lambda e: -mp.expm1(-mp.exp(e)),
    "cauchit": lambda e: mp.atan2(1, -e) / mp.pi,
    "log": mp.exp,
    "inverse": lambda e: 1 / e,
    "sqrt": lambda e: e**2,
    "power(-2)": lambda e: e ** mp.mpf(-0.5),
    "power(-0.5)": lambda e: e**-2,
    "power(3)": lambda e: mp.cbrt(e),
    "logratio": lambda e: 2 / mp.expm1(-e),
}


def predictors(link: Link, far: float = 30.0) -> np.ndarray:
    eta = np.concatenate([-np.geomspace(1e-3, far, 12)[::-1], [0.0], np.geomspace(1e-3, far, 12)])
    if isinstance(link, LogRatio):
        return eta[eta < 0]
    return eta[eta > 0] if link.range == (0.0, np.inf) and link != Log() else eta


@pytest.mark.parametrize("link", LINKS, ids=name)
def test_links_agree_with_a_hundred_digits(link) -> None:
    eta, f = predictors(link, 15.0 if link == Probit() else 30.0), REFERENCE[link.name]
    # Φ(−15) is known to 15² roundings of its argument
    close(link.inverse(eta), exact(f, eta), 2e-13 if link == Probit() else 2e-14)
    close(link.derivative(eta), exact(lambda e: mp.diff(f, e), eta), 1e-12)
    # a zero of the second derivative is met to rounding of the first
    scale = np.abs(link.derivative(eta)).max()
    second = exact(lambda e: mp.diff(f, e, 2), eta)
    close(link.second(eta), second, 1e-12, 1e-16 * scale)


@pytest.mark.parametrize("link", LINKS, ids=name)
def test_links_and_their_inverses_undo_each_other(link) -> None:
    """As far as the digits of a mean near one allow."""
    eta = predictors(link, 8.0 if link in UNIT else 30.0)
    eta = eta[eta < {"cloglog": 2, "probit": 4}.get(link.name, 50)]
    close(link(link.inverse(eta)), eta, 1e-8, 1e-12)
    rises = np.diff(link.inverse(np.sort(eta)))
    assert (rises > 0).all() if link.increasing else (rises < 0).all()


@pytest.mark.parametrize("link", LINKS, ids=name)
def test_links_are_finite_everywhere_and_keep_shapes(link) -> None:
    eta = np.concatenate([np.linspace(-700, 700, 1401), [1e-300, -1e-300, 1e4, -1e4]])
    for f in (link.inverse, link.derivative, link.second):
        assert np.isfinite(f(eta)).all()
        assert np.shape(f(0.25)) == ()
        assert f(eta[:12].reshape(3, 2, 2)).shape == (3, 2, 2)
    assert link(np.full((2, 3), 0.4)).shape == (2, 3)


@pytest.mark.parametrize(("link", "low", "high"), list(zip(UNIT, (-200, -24, -200, -200), (200, 24, 4, 200))))
def test_links_far_out(link, low, high) -> None:
    """Where 1 − μ is not a number any more, −log(1 − μ) is."""
    eta = np.concatenate([-np.geomspace(0.01, -low, 6), [0.0], np.geomspace(0.01, high, 6)])
    f = REFERENCE[link.name]
    mirror = (lambda t: mp.exp(-mp.exp(t))) if link == Cloglog() else lambda t: f(-t)
    tails = link.tails(eta)
    for g, cost, rate, bend in (
        (f, tails.cost_1, -tails.rate_1, tails.bend_1),
        (mirror, tails.cost_0, tails.rate_0, tails.bend_0),
    ):
        with mp.workdps(240):
            at = [mp.mpf(float(t)) for t in eta]
            for order, found in enumerate((cost, rate, bend)):
                expected = [float(mp.diff(lambda t, g=g: -mp.log(g(t)), t, order, h=mp.mpf(10) ** -60)) for t in at]
                close(found, expected, (1e-13, 1e-12, 1e-11)[order])
    close(np.array(link.costs(eta)), np.array(tails[:2]), 1e-15)


def test_probit_far_to_the_left() -> None:
    cost, _, rate, _, bend, _ = Probit().tails(np.array([-40.0, -59.9, -60.1, -1e4, -1e8]))
    close(cost[0], 804.608442013754, 1e-14)  # mpmath
    x = np.array([40.0, 59.9, 60.1, 1e4, 1e8])
    close(rate, x + 1 / x - 2 / x**3 + 10 / x**5, 1e-9)
    close(bend, 1 - 1 / x**2 + 6 / x**4 - 50 / x**6, 1e-10)


def test_links_by_name() -> None:
    for link in LINKS[:-1]:
        if type(link) is not Power:
            assert link_of(link.name.upper()) == link
    aliases = ("logistic", "inverse_power", "1/mu^2", " Log ")
    assert [link_of(a) for a in aliases] == [Logit(), Inverse(), Power(-2.0), Log()]
    assert link_of(Power(-1.0)) == Inverse()
    for bad in ("softmax", 3, None, Logit):
        with pytest.raises(InvalidInput, match="'cloglog', 'identity', 'inverse', 'log', 'logit', 'probit', 'sqrt'"):
            link_of(bad)
    for bad in (0.0, np.nan, "1", True):
        with pytest.raises(InvalidInput, match="exponent"):
            Power(bad)


@pytest.mark.parametrize("value", [*LINKS, *FAMILIES, *PAIRS, Softmax(3)], ids=name)
def test_values_are_frozen_and_equal(value) -> None:
    assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
    assert hash(copy.deepcopy(value)) == hash(value)
    assert len({*LINKS, value}) == len(LINKS) + (value not in LINKS)
    with pytest.raises(AttributeError):
        value.theta = 3.0
    if not isinstance(value, Deviance):
        assert eval(repr(value)) == value


# --- families ---------------------------------------------------------------------------------------------------------


def half_deviance(family: Family):
    """½ d(y, μ) by its definition ∫_μ^y (y − t)/V(t) dt."""
    match family:
        case Gaussian():
            return lambda y, m: (y - m) ** 2 / 2
        case Bernoulli():
            part = lambda a, b: a * mp.log(a / b) if a else mp.mpf(0)  # noqa: E731
            return lambda y, m: part(y, m) + part(1 - y, 1 - m)
        case Poisson():
            return lambda y, m: (y * mp.log(y / m) if y else 0) - y + m
        case Gamma():
            return lambda y, m: y / m - 1 - mp.log(y / m)
        case InverseGaussian():
            return lambda y, m: (y - m) ** 2 / (2 * y * m**2)
        case NegativeBinomial():
            t = mp.mpf(family.theta)
            return lambda y, m: (y * mp.log(y / m) if y else 0) - (y + t) * mp.log((y + t) / (m + t))
        case Tweedie():
            p = mp.mpf(family.power)
            a, b = 1 - p, 2 - p
            return lambda y, m: (y**b / (a * b) if y else 0) - y * m**a / a + m**b / b
    raise AssertionError


def responses(family: Family, size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Responses and means: near and far from each other, and at the borders."""
    if isinstance(family, Bernoulli):
        y = np.concatenate([[0.0, 1.0, 0.0, 1.0, 0.3], rng.random(size)])
        mu = np.concatenate([[0.01, 0.01, 0.9, 0.9, 0.3], rng.uniform(0.001, 0.999, size)])
        near = rng.uniform(0.2, 0.8, size)
        return np.append(y, near), np.append(mu, near * (1 + rng.normal(size=size) * 10.0 ** -rng.uniform(1, 9, size)))
    y = np.exp(rng.normal(size=2 * size) * 2)
    mu = np.exp(rng.normal(size=2 * size) * 2)
    mu[:size] = y[:size] * (1 + rng.normal(size=size) * 10.0 ** -rng.uniform(0.5, 9, size))
    mu = np.abs(mu)
    if isinstance(family, Gaussian):
        return y - 1, mu - 1
    if isinstance(family, (Poisson, NegativeBinomial, Tweedie)):
        y[-5:] = 0.0
        y[-10:-5] = 1e-9
    return y, mu


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_unit_deviance_keeps_its_digits(family) -> None:
    y, mu = responses(family)
    # a mean given to 1e-16 fixes (y − μ)² only to this
    close(family.unit_deviance(y, mu), 2 * exact(half_deviance(family), y, mu), 3e-14)
    assert (family.unit_deviance(mu, mu) == 0).all()


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_unit_deviance_integrates_the_variance(family) -> None:
    y, mu = (a[-30:-12] for a in responses(family))
    expected = [integrate.quad(lambda t, y=a: (y - t) / float(family.variance(t)), b, a)[0] for a, b in zip(y, mu)]
    close(0.5 * family.unit_deviance(y, mu), expected, 1e-6, 1e-12)
    h = 1e-5 * np.abs(mu)
    slope = (family.variance(mu + h) - family.variance(mu - h)) / (2 * h)
    close(family.variance_slope(mu), slope, 1e-7, 1e-9)


def test_excess_near_and_far() -> None:
    a = np.concatenate([1 + np.geomspace(1e-12, 0.5, 50), 1 - np.geomspace(1e-12, 0.99, 50), np.geomspace(2, 1e6, 9)])
    close(excess(a, 1.0), exact(lambda t: t - 1 - mp.log(t), a), 2e-15)


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_deviance_is_a_likelihood_ratio(family) -> None:
    y, mu = responses(family)
    inside = (y > 1e-3) & (y < 1 if isinstance(family, Bernoulli) else True)
    y, mu = y[inside], mu[inside]
    ratio = family.log_likelihood(y, y) - family.log_likelihood(y, mu)
    close(2 * ratio, family.unit_deviance(y, mu).sum(), 1e-11)


Y, MU = np.array([0.5, 1.0, 2.5, 4.0, 7.0]), np.array([0.8, 1.1, 2.0, 5.0, 6.5])
COUNTS, W = np.array([0.0, 1.0, 2.0, 4.0, 7.0]), np.array([1.0, 2.0, 1.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("family", "y", "mu", "dispersion", "likelihood", "deviance"),
    [
        # statsmodels 0.15.0: family.loglike(y, mu, freq_weights=W, scale=dispersion), family.deviance(...)
        (Gaussian(), Y, MU, 0.7, -8.50337991845388, 3.61),
        (Gamma(), Y, MU, 0.7, -13.002475405703082, 0.40581602886795554),
        (InverseGaussian(), Y, MU, 0.7, -15.669302404160138, 0.35362423415745103),
        (Poisson(), COUNTS, MU, 1.0, -11.259685124420313, 2.3008256593937735),
        (NegativeBinomial(2.0), COUNTS, MU, 1.0, -14.20400537627241, 1.5607655044167414),
        (Bernoulli(), np.array([0.0, 1.0, 1.0, 0.0, 1.0]), MU / 8, 1.0, -8.610044724342163, 17.220089448684327),
        (Tweedie(1.6), np.array([0.0, 1.0, 2.5, 4.0, 7.0]), MU, 0.7, -14.665700534649124, 4.932631034666495),
    ],
)
def test_statsmodels_agrees(family, y, mu, dispersion, likelihood, deviance) -> None:
    close(family.log_likelihood(y, mu, W, dispersion), likelihood, 1e-13)
    close((W * family.unit_deviance(y, mu)).sum(), deviance, 1e-13)
    repeated = np.repeat(np.arange(5), W.astype(int))
    close(family.log_likelihood(y[repeated], mu[repeated], None, dispersion), likelihood, 1e-13)


def test_scipy_agrees() -> None:
    phi = 0.7
    for family, y, expected in (
        (Gaussian(), Y, stats.norm.logpdf(Y, MU, np.sqrt(phi))),
        (Gamma(), Y, stats.gamma.logpdf(Y, 1 / phi, scale=phi * MU)),
        (InverseGaussian(), Y, stats.invgauss.logpdf(Y, MU * phi, scale=1 / phi)),
    ):
        close(family.log_likelihood(y, MU, None, phi), expected.sum(), 1e-12)
    close(Poisson().log_likelihood(COUNTS, MU), stats.poisson.logpmf(COUNTS, MU).sum(), 1e-12)
    nb = stats.nbinom.logpmf(COUNTS, 2.0, 2.0 / (2.0 + MU)).sum()
    close(NegativeBinomial(2.0).log_likelihood(COUNTS, MU), nb, 1e-12)
    # a large theta is Poisson
    close(NegativeBinomial(1e9).log_likelihood(COUNTS, MU), stats.poisson.logpmf(COUNTS, MU).sum(), 1e-6)


@pytest.mark.parametrize("power", [1.1, 1.5, 1.9])
@pytest.mark.parametrize(("mu", "phi"), [(2.0, 0.7), (0.05, 1.5), (100.0, 0.002)])
def test_tweedie_density_and_quantiles(power, mu, phi) -> None:
    """The density integrates to the distribution, whose quantiles are the right ones; also by strides (φ small)."""
    family = Tweedie(power)
    zero = np.exp(family.log_likelihood(0.0, mu, None, phi))
    q = np.array([0.1, 0.5, 0.97])
    at = family.quantile(q, mu, phi)
    assert ((at == 0) == (q <= zero)).all()
    for x, p in zip(at[at > 0], q[at > 0]):
        spread, shape = np.sqrt(phi * mu ** (power - 2)), (2 - power) / (power - 1)
        u = np.linspace(np.log(x) - (15 * spread if spread < 0.1 else 45 / min(1.0, shape)), np.log(x), 8001)
        density = np.exp(family._log_density(np.exp(u), np.full(u.shape, mu), phi) + u)
        close(zero + integrate.simpson(density, x=u), p, 2e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_samples_have_the_moments_and_quantiles(family) -> None:
    mu, n = 0.6, 40_000
    phi = 1.0 if family.known_dispersion else 0.4
    x = family.sample(np.full(n, mu), phi, np.random.default_rng(1))
    family.check(x)
    variance = phi * float(family.variance(mu))
    assert abs(x.mean() - mu) < 5 * np.sqrt(variance / n)
    assert abs(x.var() / variance - 1) < 0.12
    for q in (0.05, 0.5, 0.9):
        at = float(family.quantile(q, mu, phi))
        slack = 5 * np.sqrt(q * (1 - q) / n)
        assert (x <= at).mean() > q - slack
        assert (x < at).mean() < q + slack
    assert family.quantile(np.full((3, 1), 0.5), np.full(4, mu), phi).shape == (3, 4)


def test_a_seed_that_is_none() -> None:
    with pytest.raises(InvalidInput, match="`rng` must be a whole number ≥ 0, a NumPy generator, or None, got 'x'"):
        Gaussian().sample([0.0], rng="x")


def test_quantiles_far_out() -> None:
    q = np.array([1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])
    for mu, phi in ((2.0, 0.7), (1.0, 10.0), (5.0, 0.01), (1e3, 5.0)):
        found = InverseGaussian().quantile(q, mu, phi)
        close(stats.invgauss.cdf(found, mu * phi, scale=1 / phi), q, 1e-11)
    narrow = InverseGaussian().quantile(q, 1e-8, 1e-9) / 1e-8 - 1  # SciPy gives 0 ... 9e-6 here
    close(narrow, special.ndtri(q) * np.sqrt(1e-17), 1e-6, 3e-14)
    assert Poisson().quantile(0.5, [0.0, 1e-320, 1e12]).tolist() == [0.0, 0.0, 1e12]
    large = Poisson().quantile(q, 1.001e8)  # the expansion beside the exact one
    close(large, stats.poisson.ppf(q, 1.001e8), 0.0, 1.0)
    assert np.isfinite(Poisson().sample([0.0, 1e30])).all()
    for bad in (0.0, 1.0, np.nan, -1.0):
        with pytest.raises(InvalidInput, match="`q` must be"):
            Poisson().quantile(bad, 1.0)


@pytest.mark.parametrize(
    ("family", "bad"),
    [
        (Gaussian(), np.nan), (Bernoulli(), 1.5), (Bernoulli(), -1.0), (Poisson(), -1.0), (Poisson(), np.inf),
        (Gamma(), 0.0), (InverseGaussian(), 0.0), (NegativeBinomial(), -2.0), (Tweedie(), -0.5),
    ],
)  # fmt: skip
def test_responses_outside_the_support(family, bad) -> None:
    y = np.full(9, 0.5)
    family.check(y)
    y[[4, 7]] = bad
    with pytest.raises(InvalidInput, match=rf"y of the {family.name} family must be .*, got {bad!r} in row 4 and 1"):
        family.check(y)


def test_borders_and_rates_are_allowed() -> None:
    Bernoulli().check([0.0, 1.0, 0.25])
    Poisson().check([0.0, 2.5])
    Tweedie().check([0.0])


def test_families_by_name() -> None:
    for family in (Gaussian(), Bernoulli(), Poisson(), Gamma(), InverseGaussian(), NegativeBinomial(), Tweedie()):
        assert family_of(family.name.upper()) == family
    aliases = ("binomial", "logistic", "normal", "negbin", "negative-binomial", "inverse gaussian")
    expected = [Bernoulli(), Bernoulli(), Gaussian(), NegativeBinomial(), NegativeBinomial(), InverseGaussian()]
    assert [family_of(a) for a in aliases] == expected
    for bad in ("weibull", 3, None, Poisson):
        with pytest.raises(InvalidInput, match="'negative_binomial', 'poisson', 'tweedie', or a Family"):
            family_of(bad)
    for make, bad in ((NegativeBinomial, 0.0), (NegativeBinomial, "2"), (Tweedie, 1.0), (Tweedie, 2.0), (Tweedie, 0)):
        with pytest.raises(InvalidInput, match="must be a number"):
            make(bad)
    with pytest.raises(InvalidInput, match="dispersion of the poisson family must be 1"):
        Poisson().log_likelihood([1.0], [1.0], None, 2.0)
    with pytest.raises(InvalidInput, match="`dispersion` must be a number > 0"):
        Gamma().quantile(0.5, 1.0, 0.0)


def test_links_of_families() -> None:
    canonical = {f.name: f.canonical for f in FAMILIES}
    assert canonical["inverse_gaussian"] == Power(-2.0)
    assert NegativeBinomial(2.0).link("canonical") == LogRatio(2.0)
    assert [f.default for f in FAMILIES[:7]] == [Identity(), Logit(), Log(), Log(), Log(), Log(), Log()]
    for family, link in (
        (Bernoulli(), "log"), (Bernoulli(), "identity"), (Bernoulli(), Power(2.0)), (Gaussian(), "logit"),
        (Poisson(), "probit"), (Gamma(), LogRatio(1.0)), (NegativeBinomial(2.0), LogRatio(3.0)),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=f"`link` of the {family.name} family must be one of"):
            loss_of(family, link)
    for family in FAMILIES:
        assert family.link(family.default) == family.link() == family.default
        # the natural parameter: dη/dμ is a multiple of 1/V
        mu = np.array([0.2, 0.5, 0.7])
        ratio = family.canonical.derivative(family.canonical(mu)) / family.variance(mu)
        close(ratio, np.full(3, ratio[0]), 1e-12)


# --- losses -----------------------------------------------------------------------------------------------------------


def lines(loss: Deviance, size: int = 400, far: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Responses of every kind, and predictors all over the domain."""
    y = rng.permutation(responses(loss.family, size)[0])[:size]
    if isinstance(loss.family, Bernoulli):
        y[: size // 2] = rng.integers(0, 2, size // 2)
    low, high = loss.domain
    if np.isinf(low) and np.isinf(high):
        # the mean of cloglog is one in 16 digits from 3.6 on
        return y, rng.uniform(-far, min(far, 2.0) if loss.link == Cloglog() else far, (len(y), 1))
    eta = np.exp(rng.uniform(-1.5, 2.5, (len(y), 1)))
    return y, eta if low == 0.0 else -eta


@pytest.mark.parametrize("loss", PAIRS, ids=name)
def test_loss_is_half_the_deviance_and_its_derivatives_are_right(loss) -> None:
    y, eta = lines(loss)
    found = loss.terms(y, eta)
    mu = loss.link.inverse(eta[:, 0])
    close(found.value, 0.5 * loss.family.unit_deviance(y, mu), 1e-11, 1e-14 * (1 + y.max()))
    close(loss.value(y, eta), found.value, 1e-12, 1e-15 * (1 + y.max()))
    formula = -(y - mu) * loss.link.derivative(eta[:, 0]) / loss.family.variance(mu)
    close(found.gradient[:, 0], formula, 1e-9, 1e-12)
    h = 1e-5 * np.minimum(1.0, np.abs(eta))
    above, below = loss.terms(y, eta + h), loss.terms(y, eta - h)
    scale = 1 + np.abs(found.value) + np.abs(found.gradient[:, 0]) + np.abs(found.observed[:, 0])
    slope = (above.value - below.value) / (2 * h[:, 0])
    assert (np.abs(slope - found.gradient[:, 0]) < 1e-6 * scale).all()
    bend = (above.gradient - below.gradient) / (2 * h)
    assert (np.abs(bend - found.observed) < 1e-6 * scale[:, None]).all()
    V = rng.normal(size=eta.shape)
    assert (np.abs(found.curve(V) - V * bend) < 1e-5 * scale[:, None]).all()


@pytest.mark.parametrize("loss", PAIRS, ids=name)
def test_expected_curvature_is_the_mean_of_the_observed(loss) -> None:
    """The second derivative is linear in y, hence its mean is its value at y = μ."""
    _, eta = lines(loss)
    mu = loss.link.inverse(eta[:, 0])
    found = loss.terms(mu, eta)
    close(found.fisher, found.observed, 1e-11)
    assert (found.fisher > 0).all()
    y, eta = lines(loss)
    found = loss.terms(y, eta)
    if loss.link == loss.family.canonical:
        close(found.fisher, found.observed, 1e-13)
    else:
        assert not np.allclose(found.fisher, found.observed, rtol=1e-3)


@pytest.mark.parametrize("loss", PAIRS, ids=name)
def test_convex_means_convex(loss) -> None:
    """Along random lines the second derivative and second differences are ≥ 0, or somewhere they are not."""
    y, eta = lines(loss, 3000, 9.0)
    observed = loss.terms(y, eta).observed[:, 0]
    step = 0.3 * np.abs(eta) * rng.random(eta.shape)
    values = [loss.value(y, eta + t * step) for t in (-1, 0, 1)]
    differences = values[0] - 2 * values[1] + values[2]
    scale = 1e-13 * sum(np.abs(v) + np.abs(y) for v in values) + 1e-13
    if loss.convex:
        assert (observed >= 0).all()
        assert (differences >= -scale).all()
    else:
        assert (observed < 0).any()
        assert (differences < -1e3 * scale).any()


def test_which_losses_are_convex() -> None:
    convex = {(loss.family.name, loss.link.name) for loss in PAIRS if loss.convex}
    assert convex == {
        ("gaussian", "identity"), ("bernoulli", "logit"), ("bernoulli", "probit"), ("bernoulli", "cloglog"),
        ("poisson", "log"), ("poisson", "identity"), ("poisson", "sqrt"), ("gamma", "log"), ("gamma", "inverse"),
        ("inverse_gaussian", "inverse"), ("inverse_gaussian", "power(-2)"), ("negative_binomial", "log"),
        ("negative_binomial", "logratio"), ("tweedie", "log"), ("tweedie", "sqrt"), ("tweedie", "power(-0.2)"),
        ("tweedie", "power(-0.5)"), ("tweedie", "power(-0.8)"),
    }  # fmt: skip
    assert not loss_of(Tweedie(1.8), "sqrt").convex
    assert loss_of(Tweedie(1.001), "canonical").convex
    assert not loss_of("gaussian", Power(1.5)).convex  # p + k = 3/2, but y may be negative
    assert loss_of("gaussian", Power(1.5)).terms([-5.0], np.ones((1, 1))).observed[0, 0] < 0
    assert loss_of(Tweedie(1.5), "sqrt").convex


@pytest.mark.parametrize("loss", PAIRS, ids=name)
def test_directions_in_which_a_loss_does_not_grow(loss) -> None:
    y = np.unique(np.concatenate([lines(loss)[0][:60], {"gaussian": [-1.0, 0.0]}.get(loss.family.name, [])]))
    if isinstance(loss.family, Bernoulli):
        y = np.append(y, [0.0, 1.0])
    lower, upper = loss.recession(y)
    low, high = loss.domain
    for bound, sign, end in ((lower, -1.0, low), (upper, 1.0, high)):
        falls = np.zeros(len(y), dtype=bool)
        if np.isinf(end):
            slopes = np.stack(
                [sign * loss.terms(y, np.full((len(y), 1), sign * t)).gradient[:, 0] for t in (1e12, 1e13)]
            )
            falls = (slopes <= 0).all(axis=0)
        assert (np.isinf(bound) == falls).all()
        assert (bound[~falls] == 0).all()
        assert (bound[falls] == sign * np.inf).all()


def test_recession_of_the_common_losses() -> None:
    inf = np.inf
    lower, upper = loss_of("bernoulli").recession([0.0, 0.5, 1.0])
    assert lower.tolist() == [-inf, 0, 0]
    assert upper.tolist() == [0, 0, inf]
    lower, upper = loss_of("poisson").recession([0.0, 2.0])
    assert lower.tolist() == [-inf, 0]
    assert upper.tolist() == [0, 0]
    lower, upper = loss_of("gaussian").recession([0.0, 2.0])
    assert not lower.any()
    assert not upper.any()


@pytest.mark.parametrize("loss", PAIRS, ids=name)
def test_far_predictors_are_finite(loss) -> None:
    y = np.repeat(_border(loss.family), 12)
    eta = np.tile([-1e4, -800.0, -40.0, -1e-3, -1e-120, 0.0, 1e-120, 1e-3, 1.0, 40.0, 800.0, 1e4], len(y) // 12)
    found = loss.terms(y, eta[:, None])
    low, high = loss.domain
    inside = (eta > low) & (eta < high)
    assert np.isfinite(found.value[inside]).all()
    assert (found.value[~inside] == np.inf).all()
    assert (loss.value(y, eta[:, None])[~inside] == np.inf).all()
    for part in (found.gradient, found.fisher, found.observed):
        assert np.isfinite(part).all()
        assert (part[~inside] == 0).all()
    assert (found.value >= 0).all()


def _border(family: Family) -> np.ndarray:
    if isinstance(family, (Gamma, InverseGaussian)):
        return np.array([1e-6, 1.0, 1e6])
    return np.array([0.0, 0.5, 1.0]) if isinstance(family, Bernoulli) else np.array([0.0, 1.0, 1e6])


def test_logistic_loss_far_on_either_side() -> None:
    """e⁻⁵⁰ is not 0: nothing is computed as 1 − p."""
    eta = np.concatenate([np.linspace(-700, 700, 41), rng.normal(size=100) * 4, [1e-8, -1e-17, 0.0]])
    for label in (0.0, 1.0):
        sign = 1 - 2 * label
        found = loss_of("bernoulli").terms(np.full(len(eta), label), eta[:, None])
        with mp.workdps(340):
            e = [mp.exp(sign * mp.mpf(float(t))) for t in eta]
            value = [float(mp.log1p(t)) for t in e]
            slope = [float(sign * t / (1 + t)) for t in e]
            bend = [float(t / (1 + t) ** 2) for t in e]
        close(found.value, value, 8e-16)
        close(found.gradient[:, 0], slope, 8e-16)
        close(found.observed[:, 0], bend, 1e-15)


def test_poisson_loss_to_rounding() -> None:
    eta = np.concatenate([rng.normal(size=400) * 3, [140.0, -140.0]])
    y = np.concatenate([rng.poisson(3.0, 200), rng.gamma(0.2, 5.0, 200), [0.0, 3.0]])
    found = loss_of("poisson").terms(y, eta[:, None])
    value = exact(half_deviance(Poisson()), y, np.exp(eta))
    size = np.exp(eta) + y * (1 + np.abs(eta) + np.abs(np.log(np.maximum(y, 1e-30))))
    assert (np.abs(found.value - value) < 5e-16 * size).all()
    close(found.observed[:, 0], exact(mp.exp, eta), 3e-16)
    y = np.geomspace(1e-8, 1e12, 300)  # at η = 0 there is nothing but the logarithm
    value = exact(lambda t: 1 - t + t * mp.log(t), y)
    assert (
        np.abs(loss_of("poisson").value(y, np.zeros((300, 1))) - value) < 3e-16 * (1 + y + y * np.abs(np.log(y)))
    ).all()


@pytest.mark.parametrize("n", [0, 1, 7, 31, 32, 33, 64, 100])
def test_loops_end_where_the_rows_end(n, monkeypatch) -> None:
    y, eta = rng.integers(0, 2, n).astype(float), rng.normal(size=(n, 2))
    for family in ("bernoulli", "poisson"):
        loss = loss_of(family)
        found = loss.terms(y, eta[:, 1:])
        assert found.value.shape == (n,)
        assert found.gradient.shape == found.fisher.shape == (n, 1)
        close(found.value, 0.5 * loss.family.unit_deviance(y, loss.link.inverse(eta[:, 1])), 1e-12, 1e-15)
        monkeypatch.setattr(threads, "WORTH_A_THREAD", 10)
        again = loss.terms(y, eta[:, 1:])
        close(again.value, found.value, 0)
        close(loss.value(y, eta[:, 1:]), found.value, 0)
        close(again.gradient, found.gradient, 0)
        monkeypatch.undo()


def test_shares_are_many_trials() -> None:
    """y = 3/10 with weight 10 is three successes and seven failures, less what they have at best."""
    loss, eta = loss_of("binomial"), np.array([[0.4]])
    one, zero = (loss.value(np.array([v]), eta)[0] for v in (1.0, 0.0))
    best = 10 * (special.entr(0.3) + special.entr(0.7))
    for family_loss in (loss, Deviance(Bernoulli(), "probit")):
        one, zero = (family_loss.value(np.array([v]), eta)[0] for v in (1.0, 0.0))
        close(10 * family_loss.value(np.array([0.3]), eta)[0], 3 * one + 7 * zero - best, 1e-13)


def test_a_large_theta_is_poisson() -> None:
    y, eta = rng.poisson(2.0, 50).astype(float), rng.normal(size=(50, 1))
    a, b = loss_of(NegativeBinomial(1e8)).terms(y, eta), loss_of("poisson").terms(y, eta)
    close(a.value, b.value, 1e-5, 1e-6)
    close(a.gradient, b.gradient, 1e-6, 1e-6)


def test_the_disk_cache_follows_what_is_inlined() -> None:
    sources = b"".join(Path(str(m.__file__)).read_bytes() for m in (vectors, exponential, costs))
    assert hashlib.sha256(sources).hexdigest()[:16] == likelihoods.VECTORS


# --- softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 2), (50, 2), (333, 3), (40, 7), (3, 2500)])
def test_softmax(n, k, monkeypatch) -> None:
    loss, y, eta = Softmax(k), rng.integers(0, k, n), 3 * rng.normal(size=(n, k))
    if n > 5:
        eta[3] = 1.0  # ties
        eta[4, :2] = eta[4].max() + 1
    found = loss.terms(y, eta)
    P = special.softmax(eta, axis=1)
    own = np.arange(n), y
    close(found.value, special.logsumexp(eta, axis=1) - eta[own] if n else [], 1e-13, 1e-15)
    close(loss.value(y, eta), found.value, 1e-14)
    close(found.probabilities, P, 1e-13)
    expected = P.copy()
    expected[own] -= 1
    close(found.gradient, expected, 1e-12, 1e-15)
    close(found.fisher, P * (1 - P), 1e-12, 1e-15)
    assert found.observed is found.fisher
    V = rng.normal(size=(n, k))
    for i in range(min(n, 8)):
        H = np.diag(P[i]) - np.outer(P[i], P[i])
        close(found.curve(V)[i], H @ V[i], 1e-11, 1e-14)
    assert (np.einsum("ij,ij->i", V, found.curve(V)) >= 0).all()
    h = 1e-5
    slope = (loss.value(y, eta + h * V) - loss.value(y, eta - h * V)) / (2 * h)
    close(slope, np.einsum("ij,ij->i", found.gradient, V), 1e-6, 1e-8)
    bend = (loss.terms(y, eta + h * V).gradient - loss.terms(y, eta - h * V).gradient) / (2 * h)
    close(found.curve(V), bend, 1e-6, 1e-8)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 64)
    for a, b in ((loss.terms(y, eta).gradient, found.gradient), (loss.value(y, eta), found.value)):
        close(a, b, 0)


def test_softmax_is_convex_along_lines() -> None:
    loss, y = Softmax(4), rng.integers(0, 4, 500)
    a, b = 5 * rng.normal(size=(2, 500, 4))
    middle = 0.5 * (loss.value(y, a) + loss.value(y, b)) - loss.value(y, 0.5 * (a + b))
    assert loss.convex
    assert (middle >= -1e-14).all()


def test_softmax_of_two_is_logistic() -> None:
    y, eta = rng.integers(0, 2, 200), 20 * rng.normal(size=(200, 1))
    two = Softmax(2).terms(y, np.hstack([np.zeros((200, 1)), eta]))
    one = loss_of("bernoulli").terms(y.astype(float), eta)
    close(two.value, one.value, 1e-14)
    close(two.gradient[:, 1:], one.gradient, 1e-14)
    close(two.gradient[:, :1], -one.gradient, 1e-14)
    close(two.fisher[:, 1:], one.fisher, 1e-14)


def test_softmax_far_out() -> None:
    """Also where one class is almost sure, the loss and its derivatives keep their digits."""
    eta = np.array([[800.0, 0.0, -800.0], [60.0, 0.0, 1.0], [-1e300, 1e300, 0.0]])
    right, wrong = Softmax(3).terms([0, 0, 1], eta), Softmax(3).terms([2, 1, 0], eta)
    rest = np.exp(-60) + np.exp(-59)
    close(right.value, [0.0, rest, 0.0], 1e-15)
    close(right.gradient[1], [-rest, np.exp(-60), np.exp(-59)], 1e-15)
    close(right.fisher[1], [rest, np.exp(-60), np.exp(-59)], 1e-15)
    close(wrong.value, [1600.0, 60.0, 2e300], 1e-15)
    for terms in (right, wrong):
        assert all(np.isfinite(a).all() for a in (terms.value, terms.gradient, terms.fisher, terms.probabilities))


def test_losses_of_wrong_input() -> None:
    for bad in (1, 0, 2.5, "3", True):
        with pytest.raises(InvalidInput, match="whole number ≥ 2"):
            Softmax(bad)
    with pytest.raises(InvalidInput, match="one number per row"):
        loss_of("poisson").terms(np.zeros(5), np.zeros((4, 1)))
    with pytest.raises(InvalidInput, match="one number per row"):
        loss_of("bernoulli").value(np.zeros(4), np.zeros((4, 2)))
    for y, shape in (([0, 3], (2, 3)), ([0, -1], (2, 3)), ([0, 1], (2, 2)), ([0], (2, 3))):
        with pytest.raises(InvalidInput, match=r"class numbers 0 ... 2 \(n,\)"):
            Softmax(3).terms(y, np.zeros(shape))


def test_loss_of() -> None:
    assert loss_of("poisson") == Deviance(Poisson(), Log())
    assert loss_of("gamma", "canonical") == Deviance(Gamma(), Inverse())
    assert loss_of("logistic").outputs == 1
    assert Softmax(4).outputs == 4


@pytest.mark.parametrize("bad", [None, 1j, "a", -1.0, True, np.inf])
def test_parameters_must_be_numbers(bad) -> None:
    for kind in (NegativeBinomial, Tweedie, LogRatio):
        with pytest.raises(InvalidInput, match="must be a number"):
            kind(bad)


def test_numbers_may_be_numpys() -> None:
    assert Power(np.int64(2)) == Power(2.0)


def test_roots_within_grown_brackets_and_without_any() -> None:
    """Guesses grow until they enclose; a function without a zero ends at the last guess instead of never."""
    shifts = np.array([-1e6, 0.3, 1e6])
    found = find_roots(lambda x, rows: np.arctan(x - shifts[rows]), np.zeros(3), np.ones(3), grow=True)
    assert found == pytest.approx(shifts, rel=1e-12)
    signs = np.array([1.0, -1.0])
    for grow in (False, True):
        low, high = find_roots(lambda x, rows: signs[rows] + 0.0 * x, np.zeros(2), np.ones(2), grow=grow)
        assert (low, high) == (0.0, 1.0) if not grow else (low < -1e40 and high > 1e40)
    jump = find_roots(lambda x, rows: np.where(x < 0.7, -1.0, np.inf), np.zeros(1), np.ones(1))
    assert 0.7 - 1e-12 < jump[0] < 0.7
    assert find_roots(lambda x, rows: x, np.empty(0), np.empty(0)).shape == (0,)
