"""Families: the distribution of a response about its mean μ, with variance φ V(μ) (lecture 003).

A family measures the fit by its unit deviance d(y, μ) ≥ 0, zero at y = μ. Half of it is the loss: squares for the
Gaussian, for the others the negative log-likelihood up to terms that depend on y only. Three of the deviances consist
of one function that stays accurate at y ≈ μ,

    excess(a, b) = a/b − 1 − log(a/b) ≥ 0.

A weight means repetition: a row of weight 2 is the row twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer.errors import InvalidInput
from mercer.problems.links import (
    LARGEST,
    Identity,
    Inverse,
    Link,
    Log,
    Logit,
    LogRatio,
    Power,
    PowerLink,
    link_of,
    named,
)
from mercer.problems.root_finding import find_roots
from mercer.validation import check_number, generator

Matrix = NDArray[np.float64]
_POSITIVE = ("log", "identity", "inverse", "sqrt")
_LOG_2PI = float(np.log(2 * np.pi))


def excess(a: Any, b: Any) -> Matrix:
    """a/b − 1 − log(a/b) for a, b > 0, to full relative accuracy even if a ≈ b.

    >>> excess([1.0 + 1e-8, 2.0, 0.5], 1.0)
    array([4.99999991e-17, 3.06852819e-01, 1.93147181e-01])
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        x = (a - b) / b
        return np.where(np.abs(x) < 0.4, _beyond_log(x), x - (np.log(a) - np.log(b)))


def _beyond_log(x: Matrix) -> Matrix:
    """x − log(1 + x) for |x| ≤ 0.4.

    With s = x/(2 + x): log(1 + x) = 2 artanh s and x = s(2 + x), hence x − log(1 + x) = s(x − 2s²(1/3 + s²/5 + ...)).
    """
    x = np.clip(x, -0.4, 0.4)
    s = x / (2.0 + x)
    z = s * s
    series = np.full(np.shape(z), 1 / 27)
    for k in range(25, 1, -2):
        series = series * z + 1 / k
    return np.asarray(s * (x - 2.0 * z * series))


@dataclass(frozen=True)
class Family(ABC):
    """A distribution about a mean μ with variance φ V(μ).

    Every method takes float64 arrays that broadcast.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]]
    """The open interval of means."""
    known_dispersion: ClassVar[bool] = False
    """Whether φ = 1 is part of the distribution."""
    support: ClassVar[str]
    """The allowed y, in words."""
    links: ClassVar[tuple[str, ...]]
    """Names of the allowed links, beside `canonical`; others give impossible means, or not all possible ones."""
    power: ClassVar[float | None] = None
    """p of V = μᵖ, None for other variances."""

    @property
    @abstractmethod
    def canonical(self) -> Link:
        """The link for which η is the natural parameter, up to a factor."""

    @property
    def default(self) -> Link:
        """The link that is used if none is given."""
        return Log()

    def link(self, link: Any = None) -> Link:
        """The link to use: `default` for None, `canonical` by that name, else the given one if its means fit.

        >>> Poisson().link(), Gamma().link("inverse"), InverseGaussian().link("canonical")
        (Log(), Inverse(), Power(exponent=-2.0))
        >>> Poisson().link("logit")
        Traceback (most recent call last):
        mercer.errors.InvalidInput: `link` of the poisson family must be one of 'log', 'identity', 'inverse', 'sqrt', \
'canonical', got 'logit'. Choose one of these: this link gives means in (0, 1), the family has (0, inf).
        """
        if link is None:
            return self.default
        if isinstance(link, str) and link.strip().lower() == "canonical":
            return self.canonical
        candidate = link_of(link)
        powers = isinstance(candidate, PowerLink) and "sqrt" in self.links
        if candidate.name in self.links or powers or candidate == self.canonical:
            return candidate
        (a, b), (c, d) = candidate.range, self.range
        raise InvalidInput(
            f"`link` of the {self.name} family must be one of {', '.join(map(repr, (*self.links, 'canonical')))}",
            got=repr(candidate.name),
            advice=f"Choose one of these: this link gives means in ({a:g}, {b:g}), the family has ({c:g}, {d:g})."
            if candidate.range != self.range
            else f"Use {self.canonical!r}: this link belongs to another family.",
        )

    def check(self, y: Any) -> None:
        """Raise if a response is outside the support, with the first such row."""
        y = np.atleast_1d(np.asarray(y, dtype=np.float64))
        bad = ~(np.isfinite(y) & self._inside(y))
        if bad.any():
            row = int(np.argwhere(bad)[0, 0])
            number = int(bad.sum())
            raise InvalidInput(
                f"y of the {self.name} family must be {self.support}",
                got=f"{float(y[bad][0])!r} in row {row}" + (f" and {number - 1} more" if number > 1 else ""),
                advice=self._advice,
            )

    _advice: ClassVar[str] = "Remove or correct these rows, or choose another family."

    @abstractmethod
    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        """Which finite y are in the support."""

    @abstractmethod
    def variance(self, mu: Any) -> Matrix:
        """V(μ), the variance over the dispersion."""

    @abstractmethod
    def variance_slope(self, mu: Any) -> Matrix:
        """V'(μ)."""

    @abstractmethod
    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        """d(y, μ) ≥ 0: twice the log-likelihood ratio against μ = y, for φ = 1."""

    def start(self, y: Any) -> Matrix:
        """Means inside the range near y, for a first step: half-way from y to their mean."""
        y = np.asarray(y, dtype=np.float64)
        mean = float(y.mean()) if y.size else 1.0
        return np.asarray(0.5 * (y + (mean if mean > 0 else 1.0)))

    @abstractmethod
    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        """log p(y) of every row."""

    def log_likelihood(self, y: Any, mu: Any, weights: Any = None, dispersion: float = 1.0) -> float:
        """Σ wᵢ log p(yᵢ; μᵢ, φ), as statsmodels' `llf` with `freq_weights`.

        >>> round(Poisson().log_likelihood([0.0, 3.0], [1.0, 2.0]), 6)
        -2.712318
        """
        y, mu = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        each = self._log_density(y, mu, self._dispersion(dispersion))
        return float(each.sum() if weights is None else (np.asarray(weights, dtype=np.float64) * each).sum())

    @abstractmethod
    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix: ...

    def quantile(self, q: Any, mu: Any, dispersion: float = 1.0) -> Matrix:
        """The smallest y with P(Y ≤ y) ≥ q, for a new response Y with mean μ.

        >>> Poisson().quantile([0.05, 0.95], 4.0)
        array([1., 8.])
        """
        q, mu = np.asarray(q, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        if not ((q > 0) & (q < 1)).all():
            raise InvalidInput(
                "`q` must be between 0 and 1", got=repr(q.tolist()), advice="Pass a probability such as 0.975."
            )
        return np.asarray(self._quantile(q, mu, self._dispersion(dispersion)), dtype=np.float64)

    @abstractmethod
    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix: ...

    def sample(self, mu: Any, dispersion: float = 1.0, rng: Any = None) -> Matrix:
        """One new response for every mean.

        >>> Bernoulli().sample([0.0, 1.0], rng=0)
        array([0., 1.])
        """
        mu = np.asarray(mu, dtype=np.float64)
        return np.asarray(self._sample(mu, self._dispersion(dispersion), generator(rng, "rng")), dtype=np.float64)

    def _dispersion(self, dispersion: float) -> float:
        """φ, checked."""
        if self.known_dispersion:
            if dispersion != 1.0:
                raise InvalidInput(
                    f"The dispersion of the {self.name} family must be 1",
                    got=repr(dispersion),
                    advice="Leave it out, or use NegativeBinomial(theta) for counts that vary more.",
                )
        elif not (np.ndim(dispersion) == 0 and dispersion > 0 and np.isfinite(dispersion)):
            raise InvalidInput("`dispersion` must be a number > 0", got=repr(dispersion), advice="Pass an estimate.")
        return float(dispersion)


@dataclass(frozen=True)
class Gaussian(Family):
    """N(μ, φ): V = 1, d = (y − μ)².

    >>> Gaussian().unit_deviance([1.0, 2.0], 0.0), Gaussian().default
    (array([1., 4.]), Identity())
    """

    name = "gaussian"
    range = (-np.inf, np.inf)
    support = "finite numbers"
    links = ("identity", "log", "inverse", "sqrt")
    power = 0.0

    @property
    def canonical(self) -> Link:
        return Identity()

    @property
    def default(self) -> Link:
        return Identity()

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return np.ones(y.shape, dtype=bool)

    def start(self, y: Any) -> Matrix:
        """y itself."""
        return np.asarray(y, dtype=np.float64)

    def variance(self, mu: Any) -> Matrix:
        return np.ones(np.shape(mu))

    def variance_slope(self, mu: Any) -> Matrix:
        return np.zeros(np.shape(mu))

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        return np.asarray((np.asarray(y, dtype=np.float64) - mu) ** 2)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return np.asarray(-0.5 * ((y - mu) ** 2 / dispersion + np.log(dispersion) + _LOG_2PI))

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return mu + np.sqrt(dispersion) * special.ndtri(q)

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        return mu + np.sqrt(dispersion) * rng.standard_normal(mu.shape)


@dataclass(frozen=True)
class Bernoulli(Family):
    """P(y = 1) = μ: V = μ(1 − μ), d = 2[y log(y/μ) + (1 − y) log((1 − y)/(1 − μ))].

    y between 0 and 1 is a share of successes, and its weight the number of trials. If successes and trials are whole
    numbers, the log-likelihood contains the binomial coefficient of that row, which no parameter changes.

    >>> Bernoulli().unit_deviance([0.0, 0.5, 1.0], 0.5).round(6)
    array([1.386294, 0.      , 1.386294])
    """

    name = "bernoulli"
    range = (0.0, 1.0)
    known_dispersion = True
    support = "0 or 1, or a share between them with the number of trials as weight"
    links = ("logit", "probit", "cloglog", "cauchit")
    _advice = "Encode the two classes as 0 and 1; divide successes by trials."

    @property
    def canonical(self) -> Link:
        return Logit()

    @property
    def default(self) -> Link:
        return Logit()

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return (y >= 0) & (y <= 1)

    def variance(self, mu: Any) -> Matrix:
        mu = np.asarray(mu, dtype=np.float64)
        return np.asarray(mu * (1 - mu))

    def variance_slope(self, mu: Any) -> Matrix:
        return np.asarray(1 - 2 * np.asarray(mu, dtype=np.float64))

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        y, mu = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        difference = mu - y
        return 2.0 * (_shared(y, mu, difference) + _shared(1 - y, 1 - mu, -difference))

    def start(self, y: Any) -> Matrix:
        """(y + ½)/2."""
        return np.asarray(0.5 * np.asarray(y, dtype=np.float64) + 0.25)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return np.asarray(special.xlogy(y, mu) + special.xlog1py(1 - y, -mu))

    def log_likelihood(self, y: Any, mu: Any, weights: Any = None, dispersion: float = 1.0) -> float:
        """Σ wᵢ [yᵢ log μᵢ + (1 − yᵢ) log(1 − μᵢ)], and log (wᵢ over wᵢyᵢ) for a share of whole numbers, as in R.

        >>> np.exp(Bernoulli().log_likelihood([0.5], [0.5], weights=[2.0])).round(6)     # one of two
        np.float64(0.5)
        """
        total = super().log_likelihood(y, mu, weights, dispersion)
        if weights is None:
            return total
        y, trials = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(weights, dtype=np.float64))
        hits = np.round(y * trials)
        whole = (y > 0) & (y < 1) & (trials == np.round(trials)) & (np.abs(y * trials - hits) < 1e-9 * trials)
        n, k = trials[whole], hits[whole]
        return total - float((np.log1p(n) + special.betaln(n - k + 1, k + 1)).sum())

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return (q > 1 - mu).astype(np.float64)

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        return (rng.random(mu.shape) < mu).astype(np.float64)


def _shared(y: Matrix, mu: Matrix, difference: Matrix) -> Matrix:
    """y log(y/μ) − y + μ, which is μ at y = 0; `difference` is μ − y, which may be more accurate than μ and y."""
    zero = y == 0
    safe = np.where(zero, 1.0, y)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x = difference / safe
        far = safe * (np.log(safe) - np.log(mu)) + difference
    return np.where(zero, mu, np.where(np.abs(x) < 0.4, safe * _beyond_log(x), far))


@dataclass(frozen=True)
class Poisson(Family):
    """Counts with mean μ: V = μ, d = 2[y log(y/μ) − (y − μ)].

    y ≥ 0; whole numbers are not required, since V = μ is all that estimation uses (counts over exposures, say). The
    log-likelihood is then the same formula with Γ(y + 1) for y!.

    >>> Poisson().unit_deviance([0.0, 3.0], 3.0)
    array([6., 0.])
    """

    name = "poisson"
    range = (0.0, np.inf)
    known_dispersion = True
    support = "counts ≥ 0 (whole numbers are not required)"
    links = _POSITIVE
    power = 1.0

    @property
    def canonical(self) -> Link:
        return Log()

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return y >= 0

    def variance(self, mu: Any) -> Matrix:
        return np.asarray(mu, dtype=np.float64)

    def variance_slope(self, mu: Any) -> Matrix:
        return np.ones(np.shape(mu))

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        y, mu = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        return 2.0 * _shared(y, mu, mu - y)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return np.asarray(special.xlogy(y, mu) - mu - special.gammaln(y + 1))

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        from scipy import stats  # half a second

        # Cornish and Fisher's expansion for rates so large that SciPy gives up: the error is O(1/√μ)
        z = special.ndtri(q)
        large = np.ceil(mu + z * np.sqrt(mu) + (z * z - 4) / 6)
        return np.where(mu > 1e8, large, stats.poisson.ppf(q, np.minimum(mu, 1e8)))

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        # the generator refuses larger rates
        return rng.poisson(np.minimum(mu, 9e18)).astype(np.float64)


@dataclass(frozen=True)
class Gamma(Family):
    """Positive responses whose standard deviation grows with μ: V = μ², d = 2[y/μ − 1 − log(y/μ)].

    The shape is 1/φ.

    >>> Gamma().unit_deviance([2.0, 4.0], 2.0).round(6), Gamma().default, Gamma().canonical
    (array([0.      , 0.613706]), Log(), Inverse())
    """

    name = "gamma"
    range = (0.0, np.inf)
    support = "> 0"
    links = _POSITIVE
    power = 2.0

    @property
    def canonical(self) -> Link:
        return Inverse()

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return y > 0

    def variance(self, mu: Any) -> Matrix:
        return np.asarray(np.asarray(mu, dtype=np.float64) ** 2)

    def variance_slope(self, mu: Any) -> Matrix:
        return np.asarray(2 * np.asarray(mu, dtype=np.float64))

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        return 2.0 * excess(y, mu)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        k = 1 / dispersion
        return np.asarray(k * (np.log(k * y / mu) - y / mu) - np.log(y) - special.gammaln(k))

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return special.gammaincinv(1 / dispersion, q) * dispersion * mu

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        return rng.gamma(1 / dispersion, dispersion * mu)


@dataclass(frozen=True)
class InverseGaussian(Family):
    """Positive responses with heavier tails than Gamma's: V = μ³, d = (y − μ)²/(y μ²).

    >>> InverseGaussian().unit_deviance([1.0, 4.0], 2.0)
    array([0.25, 0.25])
    """

    name = "inverse_gaussian"
    range = (0.0, np.inf)
    support = "> 0"
    links = _POSITIVE
    power = 3.0

    @property
    def canonical(self) -> Link:
        return Power(-2.0)

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return y > 0

    def variance(self, mu: Any) -> Matrix:
        return np.asarray(np.asarray(mu, dtype=np.float64) ** 3)

    def variance_slope(self, mu: Any) -> Matrix:
        return np.asarray(3 * np.asarray(mu, dtype=np.float64) ** 2)

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        y, mu = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64)
        return np.asarray(((y - mu) / mu) ** 2 / y)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        return np.asarray(
            -0.5 * (self.unit_deviance(y, mu) / dispersion + np.log(dispersion) + 3 * np.log(y) + _LOG_2PI)
        )

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        # y = μ eᵘ has P(Y ≤ y) = Φ(a) + e^(2κ) Φ(−b) with κ = 1/(φμ) and a, b = √κ (e^(u/2) ∓ e^(−u/2))
        q, mu = np.broadcast_arrays(q, mu)
        p, root = q.ravel(), 1 / np.sqrt(dispersion * mu.ravel())

        def beyond(u: Matrix, rows: NDArray[np.int64]) -> Matrix:
            a, b = 2 * root[rows] * np.sinh(u / 2), 2 * root[rows] * np.cosh(u / 2)
            mirrored = 0.5 * np.exp(-0.5 * a * a) * special.erfcx(b / np.sqrt(2))
            return np.asarray(special.ndtr(a) + mirrored - p[rows])

        width = np.minimum(3 / root, 1.0)
        u = find_roots(beyond, -width, width, grow=True)
        return np.asarray(mu * np.exp(u).reshape(q.shape))

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        return rng.wald(mu, 1 / dispersion)


@dataclass(frozen=True)
class NegativeBinomial(Family):
    """Counts that vary more than Poisson's: V = μ + μ²/θ, a Poisson count whose rate is Gamma with shape θ.

    `theta` is R's; statsmodels' `alpha` is 1/theta, and Poisson is the limit theta → ∞.

    >>> NegativeBinomial(2.0).variance(4.0), NegativeBinomial(2.0)
    (array(12.), NegativeBinomial(theta=2.0))
    """

    theta: float = 1.0
    name = "negative_binomial"
    range = (0.0, np.inf)
    known_dispersion = True
    support = "counts ≥ 0 (whole numbers are not required)"
    links = _POSITIVE

    def __post_init__(self) -> None:
        advice = "Use Poisson() for the limit."
        theta = check_number(self.theta, "theta", above=0, advice=advice, owner="NegativeBinomial")
        object.__setattr__(self, "theta", theta)

    @property
    def canonical(self) -> Link:
        return LogRatio(self.theta)

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return y >= 0

    def variance(self, mu: Any) -> Matrix:
        mu = np.asarray(mu, dtype=np.float64)
        return np.asarray(mu * (1 + mu / self.theta))

    def variance_slope(self, mu: Any) -> Matrix:
        return np.asarray(1 + 2 * np.asarray(mu, dtype=np.float64) / self.theta)

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        # ½d = y log(1 + u) + θ log(1 + v) with
        #   u = θ(y − μ)/(μ(y + θ)),  v = (μ − y)/(y + θ);  yu + θv = θ(y − μ)²/(μ(y + θ)) is the leading term,
        # of which log(1 + u) − u and log(1 + v) − v take half: no cancellation at y ≈ μ.
        y, mu, theta = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64), self.theta
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            u, v = theta * (y - mu) / (mu * (y + theta)), (mu - y) / (y + theta)
            near = u * (y - mu) - y * _beyond_log(u) - theta * _beyond_log(v)
            far = special.xlog1py(y, u) + theta * np.log1p(v)
        return 2.0 * np.where(y == mu, 0.0, np.where((np.abs(u) < 0.3) & (np.abs(v) < 0.3), near, far))

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        theta, rise = self.theta, np.log1p(mu / self.theta)
        if theta < 100.0:
            ratio = special.gammaln(y + theta) - special.gammaln(theta) - special.xlogy(y, theta)
        else:  # log Γ(θ + y)/(Γ(θ) θʸ) by Stirling's series, in which no term of the size of θ is left
            x = theta + y
            ratio = (x - 0.5) * np.log1p(y / theta) - y + _stirling(x) - _stirling(theta)
        return np.asarray(special.xlogy(y, mu) + ratio - (y + theta) * rise - special.gammaln(y + 1))

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        from scipy import stats

        return stats.nbinom.ppf(q, self.theta, self.theta / (self.theta + mu))

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        rate = rng.gamma(self.theta, mu / self.theta)
        return rng.poisson(np.minimum(rate, 9e18)).astype(np.float64)


@dataclass(frozen=True)
class Tweedie(Family):
    """Sums of a Poisson number of Gamma amounts, zero with positive probability: V = μ^power, 1 < power < 2.

    ½d = y^(2−p)/((1 − p)(2 − p)) − y μ^(1−p)/(1 − p) + μ^(2−p)/(2 − p). The number of amounts has mean
    λ = μ^(2−p)/(φ(2 − p)), each amount shape (2 − p)/(p − 1) and scale φ(p − 1)μ^(p−1).

    >>> Tweedie(1.5).unit_deviance([0.0, 4.0], 4.0)
    array([8., 0.])
    """

    power: float = 1.5  # type: ignore[misc]
    name = "tweedie"
    range = (0.0, np.inf)
    support = "≥ 0"
    links = _POSITIVE

    def __post_init__(self) -> None:
        advice = "Use Poisson() for 1 and Gamma() for 2."
        power = check_number(self.power, "power", above=1, below=2, advice=advice, owner="Tweedie")
        object.__setattr__(self, "power", power)

    @property
    def canonical(self) -> Link:
        return Power(1 - self.power)

    def _inside(self, y: Matrix) -> NDArray[np.bool_]:
        return y >= 0

    def variance(self, mu: Any) -> Matrix:
        return np.asarray(np.asarray(mu, dtype=np.float64) ** self.power)

    def variance_slope(self, mu: Any) -> Matrix:
        return np.asarray(self.power * np.asarray(mu, dtype=np.float64) ** (self.power - 1))

    def unit_deviance(self, y: Any, mu: Any) -> Matrix:
        # With t = y/μ, L = log t and c = 2 − p:  ½d = μᶜ (e^{cL} − 1 − c(t − 1))/(c(c − 1)), whose series in L is
        # Σ_{k ≥ 2} (1 + c + ... + c^{k−2}) Lᵏ/k!.
        y, mu, c = np.asarray(y, dtype=np.float64), np.asarray(mu, dtype=np.float64), 2.0 - self.power
        x = (y - mu) / mu
        with np.errstate(divide="ignore"):
            L = np.where(np.abs(x) < 0.5, np.log1p(x), np.log(y) - np.log(mu))
        h = np.clip(L, -0.5, 0.5)
        series, term, geometric = np.zeros(np.shape(h)), h.copy(), 0.0
        for k in range(2, 18):
            term, geometric = term * h / k, geometric * c + 1.0
            series = series + geometric * term
        far = (np.expm1(c * L) - c * x) / (c * (c - 1))
        return np.asarray(2.0 * mu**c * np.where(np.abs(L) < 0.5, series, far))

    def _parts(self, mu: Matrix, dispersion: float) -> tuple[Matrix, float, Matrix]:
        """Mean number of amounts, their shape and their scale."""
        p = self.power
        return mu ** (2 - p) / (dispersion * (2 - p)), (2 - p) / (p - 1), dispersion * (p - 1) * mu ** (p - 1)

    def _log_density(self, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        y, mu = np.broadcast_arrays(y, mu)
        rate, shape, scale = self._parts(mu, dispersion)
        log_density = -rate
        some = y > 0
        if some.any():
            rate, scale, y = rate[some], scale[some], y[some]
            # the n-th term of the sum over the number of amounts is largest near n = y^(2−p)/(φ(2 − p))
            peak = y ** (2 - self.power) / (dispersion * (2 - self.power))

            def log_term(n: Matrix) -> Matrix:
                return (
                    n * np.log(rate) - rate - special.gammaln(n + 1)
                    + special.xlogy(n * shape - 1, y / scale) - y / scale - special.gammaln(n * shape) - np.log(scale)
                )  # fmt: skip

            log_density = log_density.copy()
            log_density[some] = _log_sum(log_term, peak, 1 / np.sqrt(1 + shape), 1 / np.sqrt(1 + shape))
        return log_density

    def cdf(self, x: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        """P(Y ≤ x) = Σₙ P(n amounts) F(x; n amounts) for x ≥ 0."""
        rate, shape, scale = self._parts(mu, dispersion)

        def log_term(n: Matrix) -> Matrix:
            with np.errstate(divide="ignore"):
                return n * np.log(rate) - rate - special.gammaln(n + 1) + np.log(special.gammainc(n * shape, x / scale))

        return np.exp(-rate) + np.exp(_log_sum(log_term, rate, 1.0, 1 / np.sqrt(1 + shape)))

    def _quantile(self, q: Matrix, mu: Matrix, dispersion: float) -> Matrix:
        q, mu = np.broadcast_arrays(q, mu)
        quantiles = np.zeros(q.shape)
        # q within the mass at zero has the quantile zero
        some = np.flatnonzero(q.ravel() > np.exp(-self._parts(mu, dispersion)[0]).ravel())
        if len(some):
            p, m = q.ravel()[some], mu.ravel()[some]

            def beyond(u: Matrix, rows: NDArray[np.int64]) -> Matrix:
                return self.cdf(np.exp(u), m[rows], dispersion) - p[rows]

            u = find_roots(beyond, np.log(m) - 1, np.log(m) + 1, grow=True)
            quantiles.reshape(-1)[some] = np.exp(u)
        return quantiles

    def _sample(self, mu: Matrix, dispersion: float, rng: np.random.Generator) -> Matrix:
        rate, shape, scale = self._parts(mu, dispersion)
        amounts = rng.poisson(rate)
        return np.where(amounts > 0, rng.gamma(np.maximum(amounts, 1) * shape, scale), 0.0)


def _stirling(x: Any) -> Any:
    """log Γ(x) − (x − ½) log x + x − ½ log 2π for x ≥ 100."""
    return (1 / 12 - (1 / 360 - 1 / 1260 / x**2) / x**2) / x


def _log_sum(log_term: Any, peak: Matrix, width: float, fine: float) -> Matrix:
    """log Σ_{n ≥ 1} exp(log_term(n)), whose terms are largest near `peak` and fall like a normal density there.

    The window has ten standard deviations width·√peak and twenty terms on each side. If the terms change over many
    n (fine·√peak), every s-th of them counts s times: the trapezoidal rule, exact to rounding for such functions.
    """
    centre = np.maximum(np.round(peak), 1.0)
    half = np.ceil(10 * width * np.sqrt(centre)) + 20
    stride = np.maximum(np.floor(0.25 * fine * np.sqrt(centre)), 1.0)
    first = np.maximum(centre - half, 1.0)
    offset = log_term(centre)
    offset = np.where(np.isfinite(offset), offset, 0.0)
    total = np.zeros(np.shape(peak))
    for step in range(int(((centre + half - first) / stride).max(initial=0.0)) + 1):
        total = total + np.exp(np.minimum(log_term(first + step * stride) - offset, LARGEST))
    with np.errstate(divide="ignore"):
        return np.asarray(offset + np.log(stride * total))


_NAMES: dict[str, Family] = {
    family.name: family
    for family in (Gaussian(), Bernoulli(), Poisson(), Gamma(), InverseGaussian(), NegativeBinomial(), Tweedie())
}
# Names in other libraries: R, statsmodels, scikit-learn.
_ALIASES: dict[str, Family] = {
    "normal": Gaussian(),
    "binomial": Bernoulli(),
    "logistic": Bernoulli(),
    "negativebinomial": NegativeBinomial(),
    "negbin": NegativeBinomial(),
    "nbinom": NegativeBinomial(),
    "inversegaussian": InverseGaussian(),
    "inverse.gaussian": InverseGaussian(),
    "wald": InverseGaussian(),
}


def family_of(family: Any) -> Family:
    """The family with this name, or the family itself.

    >>> family_of("poisson"), family_of("binomial"), family_of(NegativeBinomial(2.0))
    (Poisson(), Bernoulli(), NegativeBinomial(theta=2.0))
    >>> family_of("weibull")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `family` must be one of 'bernoulli', 'gamma', 'gaussian', 'inverse_gaussian', \
'negative_binomial', 'poisson', 'tweedie', or a Family, got 'weibull'. Choose one of these.
    """
    return named(family, "family", Family, _NAMES, _ALIASES)
