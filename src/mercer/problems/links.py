"""Links: η = g(μ) takes the mean of a response to the linear predictor, and μ = g⁻¹(η) back (lecture 003).

A link onto (0, 1) is the distribution function of a latent noise ε: y = 1 iff η + ε > 0. Logistic noise gives the
logit, normal noise the probit, Gumbel noise the complementary log-log, Cauchy noise the cauchit.

If μ would leave the range of float64, η is clipped: see `LARGEST` and `SMALLEST`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer.errors import InvalidInput
from mercer.validation import check_number, is_number

Matrix = NDArray[np.float64]
T = TypeVar("T")
LARGEST = 700.0
"""The largest argument of exp (its negative is the least): e⁷⁰⁰ ≈ 1.0e304."""
SMALLEST, HUGEST = 1e-100, 1e100
"""η is clipped to this range before a power is taken, and the power to the range from 1e-300 to 1e300."""


@dataclass(frozen=True)
class Link(ABC):
    """A monotone function η = g(μ), with the inverse and its derivatives.

    Every method takes float64 arrays of any shape and gives the same shape, without warnings.
    """

    name: ClassVar[str]
    increasing: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]]
    """The open interval of means that the link takes."""
    exponent: ClassVar[float | None] = None
    """k of η = μᵏ, 0 for the logarithm, None for links of another kind."""

    @abstractmethod
    def __call__(self, mu: Any) -> Matrix:
        """η = g(μ); at the ends of the range its limits."""

    @abstractmethod
    def inverse(self, eta: Any) -> Matrix:
        """μ = g⁻¹(η)."""

    @abstractmethod
    def derivative(self, eta: Any) -> Matrix:
        """dμ/dη."""

    @abstractmethod
    def second(self, eta: Any) -> Matrix:
        """d²μ/dη²."""


class Tails(NamedTuple):
    """−log μ and −log(1 − μ) as functions of η, with their first two derivatives; accurate however small μ or 1 − μ.

    With the rates h₁ = μ'/μ and h₀ = μ'/(1 − μ): (−log μ)' = −h₁ and (−log(1 − μ))' = h₀, both rates ≥ 0.
    """

    cost_1: Matrix
    cost_0: Matrix
    rate_1: Matrix
    rate_0: Matrix
    bend_1: Matrix
    bend_0: Matrix


class UnitLink(Link):
    """A link onto (0, 1): μ = F(η) with a distribution function F."""

    range = (0.0, 1.0)

    @abstractmethod
    def costs(self, eta: Any) -> tuple[Matrix, Matrix]:
        """−log μ and −log(1 − μ): the losses of y = 1 and y = 0."""

    @abstractmethod
    def tails(self, eta: Any) -> Tails:
        """The same with first and second derivatives."""


def _float(x: Any) -> Matrix:
    return np.asarray(x, dtype=np.float64)


def _exp(eta: Any) -> Matrix:
    """exp of η clipped to ±LARGEST."""
    return np.exp(np.clip(_float(eta), -LARGEST, LARGEST))


@dataclass(frozen=True)
class Identity(Link):
    """η = μ.

    >>> Identity().inverse([-1.0, 2.0])
    array([-1.,  2.])
    """

    name = "identity"
    range = (-np.inf, np.inf)
    exponent = 1.0

    def __call__(self, mu: Any) -> Matrix:
        return _float(mu)

    def inverse(self, eta: Any) -> Matrix:
        return _float(eta)

    def derivative(self, eta: Any) -> Matrix:
        return np.ones(np.shape(eta))

    def second(self, eta: Any) -> Matrix:
        return np.zeros(np.shape(eta))


@dataclass(frozen=True)
class Logit(UnitLink):
    """η = log(μ / (1 − μ)): μ = σ(η), the logistic sigmoid.

    >>> Logit().inverse([-800.0, 0.0, 800.0]), Logit()(0.5)
    (array([0. , 0.5, 1. ]), array(0.))
    """

    name = "logit"

    def __call__(self, mu: Any) -> Matrix:
        return np.asarray(special.logit(_float(mu)))

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(special.expit(_float(eta)))

    def derivative(self, eta: Any) -> Matrix:
        eta = _float(eta)
        return np.asarray(special.expit(eta) * special.expit(-eta))

    def second(self, eta: Any) -> Matrix:
        # μ'(1 − 2μ), and 1 − 2σ(η) = −tanh(η/2)
        return np.asarray(-self.derivative(eta) * np.tanh(0.5 * _float(eta)))

    def costs(self, eta: Any) -> tuple[Matrix, Matrix]:
        eta = _float(eta)
        return -special.log_expit(eta), -special.log_expit(-eta)

    def tails(self, eta: Any) -> Tails:
        eta = _float(eta)
        p, q = special.expit(eta), special.expit(-eta)
        return Tails(*self.costs(eta), q, p, p * q, p * q)


@dataclass(frozen=True)
class Probit(UnitLink):
    """μ = Φ(η), the normal distribution function: y = 1 iff η + ε > 0 with ε ~ N(0, 1).

    >>> Probit().inverse([-20.0, 0.0, 20.0]), Probit().costs(-40.0)[0].round(6)
    (array([2.75362412e-89, 5.00000000e-01, 1.00000000e+00]), np.float64(804.608442))
    """

    name = "probit"

    def __call__(self, mu: Any) -> Matrix:
        return np.asarray(special.ndtri(_float(mu)))

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(special.ndtr(_float(eta)))

    def derivative(self, eta: Any) -> Matrix:
        return np.asarray(np.exp(-0.5 * _float(eta) ** 2) / np.sqrt(2 * np.pi))

    def second(self, eta: Any) -> Matrix:
        return np.asarray(-_float(eta) * self.derivative(eta))

    def costs(self, eta: Any) -> tuple[Matrix, Matrix]:
        eta = _float(eta)
        far, near, _, _ = self._sides(eta)
        return np.where(eta < 0, far, near), np.where(eta < 0, near, far)

    def tails(self, eta: Any) -> Tails:
        eta = _float(eta)
        left, (far, near, steep, flat) = eta < 0, self._sides(eta)
        rate_1, rate_0 = np.where(left, steep, flat), np.where(left, flat, steep)
        return Tails(
            np.where(left, far, near), np.where(left, near, far),
            rate_1, rate_0, _mills_bend(eta, rate_1), _mills_bend(-eta, rate_0),
        )  # fmt: skip

    @staticmethod
    def _sides(eta: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """−log q and −log(1 − q) of the smaller probability q = Φ(−|η|), and φ/q and φ/(1 − q).

        One erfcx, whose size is moderate everywhere: q = ½ exp(−η²/2) erfcx(|η|/√2).
        """
        half, w = 0.5 * eta * eta, special.erfcx(np.abs(eta) / np.sqrt(2))
        g = np.exp(-half)
        q = 0.5 * g * w
        return half - np.log(0.5 * w), -np.log1p(-q), np.sqrt(2 / np.pi) / w, g / (np.sqrt(2 * np.pi) * (1 - q))


def _mills_bend(x: Matrix, rate: Matrix) -> Matrix:
    """(−log Φ)'' = r(r + x) with r = φ/Φ; r + x cancels far to the left, where 1/x² is small."""
    u = 1.0 / np.maximum(x * x, 3600.0)
    far = 1 - u * (1 - u * (6 - u * (50 - u * (518 - u * 6354))))
    return np.where(x < -60.0, far, rate * np.maximum(rate + x, 0.0))


@dataclass(frozen=True)
class Cloglog(UnitLink):
    """η = log(−log(1 − μ)): μ = 1 − exp(−e^η), an event within the exposure e^η.

    >>> Cloglog().inverse([-30.0, 0.0, 30.0])
    array([9.35762297e-14, 6.32120559e-01, 1.00000000e+00])
    """

    name = "cloglog"

    def __call__(self, mu: Any) -> Matrix:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-np.log1p(-_float(mu))))

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(-np.expm1(-_exp(eta)))

    def derivative(self, eta: Any) -> Matrix:
        u = _exp(eta)
        return np.asarray(u * np.exp(-u))

    def second(self, eta: Any) -> Matrix:
        u = _exp(eta)
        return np.asarray(self.derivative(eta) * (1 - u))

    def costs(self, eta: Any) -> tuple[Matrix, Matrix]:
        u = _exp(eta)
        # log(1 − e⁻ᵘ) by the form that keeps its digits; the first is read where u is small
        with np.errstate(divide="ignore"):
            small, large = np.log(-np.expm1(-u)), np.log1p(-np.exp(-u))
        return -np.where(u < np.log(2), small, large), u

    def tails(self, eta: Any) -> Tails:
        u = _exp(eta)
        with np.errstate(over="ignore"):
            rate = u / np.expm1(u)
        # (−log μ)'' = h(h + u − 1), where h + u − 1 = u/2 + u²/12 − ... cancels for small u
        v = np.minimum(u, 0.1)
        w = v * v
        series = v * 0.5 + w * (1 / 12 - w * (1 / 720 - w * (1 / 30240 - w / 1209600)))
        with np.errstate(under="ignore"):
            bend = rate * np.where(u < 0.1, series, rate + u - 1)
        return Tails(*self.costs(eta), rate, u, bend, u)


@dataclass(frozen=True)
class Cauchit(UnitLink):
    """μ = ½ + arctan(η)/π, the Cauchy distribution function: forgiving towards outliers, and not convex.

    >>> Cauchit().inverse([-1.0, 0.0, 1.0])
    array([0.25, 0.5 , 0.75])
    """

    name = "cauchit"

    def __call__(self, mu: Any) -> Matrix:
        mu = _float(mu)
        with np.errstate(divide="ignore"):
            low = -1.0 / np.tan(np.pi * np.minimum(mu, 0.5))
            high = 1.0 / np.tan(np.pi * (1.0 - np.maximum(mu, 0.5)))
        return np.where(mu < 0.5, low, np.where(mu > 0.5, high, 0.0))

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(np.arctan2(1.0, -_float(eta)) / np.pi)

    def derivative(self, eta: Any) -> Matrix:
        return np.asarray(1.0 / (np.pi * (1.0 + _float(eta) ** 2)))

    def second(self, eta: Any) -> Matrix:
        eta = _float(eta)
        return np.asarray(-2.0 * eta / (np.pi * (1.0 + eta**2) ** 2))

    def costs(self, eta: Any) -> tuple[Matrix, Matrix]:
        eta = _float(eta)
        return _cauchit_cost(eta), _cauchit_cost(-eta)

    def tails(self, eta: Any) -> Tails:
        eta = _float(eta)
        slope, turn = self.derivative(eta), 2 * eta / (1 + eta**2)
        rate_1, rate_0 = slope / self.inverse(eta), slope / self.inverse(-eta)
        return Tails(*self.costs(eta), rate_1, rate_0, rate_1 * (rate_1 + turn), rate_0 * (rate_0 - turn))


def _cauchit_cost(eta: Matrix) -> Matrix:
    """−log μ, from 1 − μ if μ is near one."""
    low = np.arctan2(1.0, -np.minimum(eta, 0.0)) / np.pi
    rest = np.arctan2(1.0, np.maximum(eta, 0.0)) / np.pi
    return -np.where(eta < 0, np.log(low), np.log1p(-rest))


@dataclass(frozen=True)
class Log(Link):
    """η = log μ: μ = e^η, η clipped to ±700.

    >>> Log().inverse([0.0, 1.0, 1e6])
    array([1.00000000e+000, 2.71828183e+000, 1.01423205e+304])
    """

    name = "log"
    range = (0.0, np.inf)
    exponent = 0.0

    def __call__(self, mu: Any) -> Matrix:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(_float(mu)))

    def inverse(self, eta: Any) -> Matrix:
        return _exp(eta)

    def derivative(self, eta: Any) -> Matrix:
        return _exp(eta)

    def second(self, eta: Any) -> Matrix:
        return _exp(eta)


class PowerLink(Link):
    """η = μ^k with k ≠ 0, for μ > 0 and η > 0; η is clipped to [1e-100, 1e100]."""

    range = (0.0, np.inf)

    @property
    def _exponent(self) -> float:
        return float(self.exponent)  # type: ignore[arg-type]

    def __call__(self, mu: Any) -> Matrix:
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return np.asarray(_float(mu) ** self._exponent)

    def _power(self, eta: Any, factor: float, exponent: float) -> Matrix:
        if factor == 0.0:
            return np.zeros(np.shape(eta))
        held = np.log(np.clip(_float(eta), SMALLEST, HUGEST))
        return np.asarray(factor * np.exp(np.clip(exponent * held, -LARGEST, LARGEST)))

    def inverse(self, eta: Any) -> Matrix:
        return self._power(eta, 1.0, 1 / self._exponent)

    def derivative(self, eta: Any) -> Matrix:
        r = 1 / self._exponent
        return self._power(eta, r, r - 1)

    def second(self, eta: Any) -> Matrix:
        r = 1 / self._exponent
        return self._power(eta, r * (r - 1), r - 2)


@dataclass(frozen=True)
class Inverse(PowerLink):
    """η = 1/μ for μ > 0: canonical for the Gamma distribution. It is decreasing.

    >>> Inverse().inverse([0.5, 4.0])
    array([2.  , 0.25])
    """

    name = "inverse"
    increasing = False
    exponent = -1.0

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(1.0 / np.clip(_float(eta), SMALLEST, HUGEST))

    def derivative(self, eta: Any) -> Matrix:
        return np.asarray(-1.0 / np.clip(_float(eta), SMALLEST, HUGEST) ** 2)

    def second(self, eta: Any) -> Matrix:
        return np.asarray(2.0 / np.clip(_float(eta), SMALLEST, HUGEST) ** 3)


@dataclass(frozen=True)
class Sqrt(PowerLink):
    """η = √μ for μ > 0: the variance of √y is nearly constant for counts. μ = η² on η > 0 only.

    >>> Sqrt().inverse([1.0, 3.0])
    array([1., 9.])
    """

    name = "sqrt"
    exponent = 0.5

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(np.clip(_float(eta), SMALLEST, HUGEST) ** 2)

    def derivative(self, eta: Any) -> Matrix:
        return np.asarray(2.0 * np.clip(_float(eta), SMALLEST, HUGEST))

    def second(self, eta: Any) -> Matrix:
        return np.full(np.shape(eta), 2.0)


@dataclass(frozen=True)
class Power(PowerLink):
    """η = μ^exponent for μ > 0: the canonical links of the inverse Gaussian (−2) and of Tweedie (1 − power).

    >>> Power(-2.0).inverse(4.0), Power(-2.0).increasing
    (array(0.5), False)
    """

    exponent: float  # type: ignore[misc]

    def __post_init__(self) -> None:
        k = self.exponent
        if not is_number(k) or not 0 < abs(k) < np.inf:
            raise InvalidInput(
                "`exponent` of Power must be a number other than 0", got=repr(k), advice="Use Log() for 0."
            )
        object.__setattr__(self, "exponent", float(k))

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"power({self.exponent:g})"

    @property
    def increasing(self) -> bool:  # type: ignore[override]
        return self.exponent > 0


@dataclass(frozen=True)
class LogRatio(Link):
    """η = log(μ / (μ + θ)) < 0: canonical for the negative binomial with shape θ (statsmodels' `nbinom`).

    >>> LogRatio(2.0).inverse(np.log(0.5)).round(12)
    np.float64(2.0)
    """

    theta: float = 1.0
    name = "logratio"
    range = (0.0, np.inf)

    def __post_init__(self) -> None:
        theta = check_number(self.theta, "theta", above=0, advice="Use the `theta` of the family.", owner="LogRatio")
        object.__setattr__(self, "theta", theta)

    def __call__(self, mu: Any) -> Matrix:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log1p(self.theta / _float(mu)))

    def inverse(self, eta: Any) -> Matrix:
        return np.asarray(self.theta / np.expm1(self._held(eta)))

    def derivative(self, eta: Any) -> Matrix:
        mu = self.inverse(eta)
        return np.asarray(mu * (1 + mu / self.theta))

    def second(self, eta: Any) -> Matrix:
        mu = self.inverse(eta)
        return np.asarray(mu * (1 + mu / self.theta) * (1 + 2 * mu / self.theta))

    @staticmethod
    def _held(eta: Any) -> Matrix:
        """−η, between 1e-100 and 700."""
        return np.clip(-_float(eta), SMALLEST, LARGEST)


_NAMES: dict[str, Link] = {
    link.name: link for link in (Identity(), Logit(), Probit(), Log(), Cloglog(), Cauchit(), Inverse(), Sqrt())
}
# Names in other libraries: R, statsmodels, scikit-learn.
_ALIASES: dict[str, Link] = {
    "logistic": Logit(),
    "normit": Probit(),
    "complementary_log_log": Cloglog(),
    "cauchy": Cauchit(),
    "ln": Log(),
    "reciprocal": Inverse(),
    "inverse_power": Inverse(),
    "inversepower": Inverse(),
    "square_root": Sqrt(),
    "1/mu^2": Power(-2.0),
    "inverse_squared": Power(-2.0),
    "inversesquared": Power(-2.0),
}


def link_of(link: Any) -> Link:
    """The link of this name, or the link itself (a power that has a name is the link of that name).

    >>> link_of("logit"), link_of("Probit"), link_of(Power(-2.0)), link_of(Power(0.5))
    (Logit(), Probit(), Power(exponent=-2.0), Sqrt())
    >>> link_of("softmax")
    Traceback (most recent call last):
    mercer.errors.InvalidInput: `link` must be one of 'cauchit', 'cloglog', 'identity', 'inverse', 'log', 'logit', \
'probit', 'sqrt', or a Link, got 'softmax'. Choose one of these.
    """
    if isinstance(link, Power):
        return {other.exponent: other for other in (Identity(), Inverse(), Sqrt())}.get(link.exponent, link)
    return named(link, "link", Link, _NAMES, _ALIASES)


def named(value_or_name: Any, what: str, kind: Any, names: dict[str, T], aliases: dict[str, T]) -> T:
    """The value with this name, or the value itself; `what` names it in the error.

    >>> named("Logit", "link", Link, {"logit": Logit()}, {})
    Logit()
    """
    if isinstance(value_or_name, kind):
        return value_or_name
    if isinstance(value_or_name, str):
        key = value_or_name.strip().lower().replace("-", "_").replace(" ", "_")
        value = names.get(key) or aliases.get(key)
        if value is not None:
            return value
    advice = "Choose one of these."
    if isinstance(value_or_name, type) and issubclass(value_or_name, kind):
        advice = f"Pass an instance: {value_or_name.__name__}()."
    raise InvalidInput(
        f"`{what}` must be one of {', '.join(map(repr, sorted(names)))}, or a {kind.__name__}",
        got=repr(value_or_name),
        advice=advice,
    )
