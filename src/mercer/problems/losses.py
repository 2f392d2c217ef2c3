"""Losses as functions of the linear predictor η: half the unit deviance of a family through its link.

    loss(y, η) = ½ d(y, μ),   loss' = −(y − μ) μ'/V(μ),   E loss'' = μ'²/V(μ)     with μ = g⁻¹(η)

so that Gaussian is least squares, and Bernoulli, Poisson and the softmax are negative log-likelihoods up to terms that
depend on y only. The expected second derivative (Fisher) is never negative; the observed one is exact, equal to it
for canonical links, and ≥ 0 everywhere iff the loss is convex.

Which losses are convex:

* canonical links: loss = b(η) − yη up to a factor, and b'' is the variance;
* V = μᵖ and η = μᵏ (the logarithm is k = 0) for y ≥ 0 and μ > 0: loss'' is a positive multiple of (a + 1) μ − a y with
  a = 1 − k − p, and y/μ takes all values, so the loss is convex iff −1 ≤ a ≤ 0, that is 1 ≤ p + k ≤ 2. Poisson has
  log, sqrt and identity, Gamma log and inverse, inverse Gaussian inverse and μ⁻², Tweedie log (and sqrt for p ≤ 3/2);
* Bernoulli-probit: −log Φ is convex because the integral of a log-concave density is log-concave (Prékopa);
* Bernoulli-cloglog: −log(1 − μ) = u with u = e^η, and (−log μ)' = −u/(eᵘ − 1) rises because u/(eᵘ − 1) falls;
* negative binomial-log: loss'' = (y + θ) π(1 − π) with π = μ/(μ + θ).

The others are not: Gaussian with any link but the identity (y < 0 or y large), Bernoulli-cauchit (loss'' ≈ −1/η² far on
the wrong side), and the negative binomial with identity or sqrt (y = 0 and μ large) or inverse (y large).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer import threads
from mercer.errors import InvalidInput
from mercer.problems.families import Bernoulli, Family, NegativeBinomial, Poisson, family_of
from mercer.problems.links import Cloglog, Link, Log, Logit, Probit, UnitLink
from mercer.threads import n_threads, run
from mercer.validation import check_whole_number

Matrix = NDArray[np.float64]
HELD = 150.0
"""Losses of families with positive means clip log μ to ±150: sums of squares of e¹⁵⁰ ≈ 1.4e65 are finite."""


@dataclass(frozen=True, eq=False)
class Terms:
    """A loss at η, row by row.

    Attributes
    ----------
    value : array
        Loss, shape (n,).
    gradient : array
        ∂loss/∂η, shape (n, t).
    fisher : array
        Expected second derivative ≥ 0, shape (n, t); with several outputs its diagonal.
    observed : array
        Exact second derivative, shape (n, t), or its diagonal; negative somewhere if the loss is not convex.
    probabilities : array or None
        p of the softmax, shape (n, k), or None: the second derivative of a row is diag(p) − ppᵀ.
    """

    value: Matrix
    gradient: Matrix
    fisher: Matrix
    observed: Matrix
    probabilities: Matrix | None = None

    def curve(self, V: Matrix, rows: slice = slice(None)) -> Matrix:
        """∂²loss/∂η² · V row by row, exact, shape (n, t), for all rows or for some, to which V then belongs."""
        if self.probabilities is None:
            return self.observed[rows] * V
        P = self.probabilities[rows]
        return P * (V - np.einsum("ij,ij->i", P, V)[:, None])


class Loss(ABC):
    """A smooth function of the t linear predictors of a row."""

    outputs: int
    """t: one, or the number of classes."""
    convex: bool
    """Whether the loss is convex in η for every y, on its domain: proven, see above."""

    @abstractmethod
    def terms(self, y: Any, eta: Matrix) -> Terms:
        """Value, gradient and curvature; y (n,), eta (n, t)."""

    @abstractmethod
    def value(self, y: Any, eta: Matrix) -> Matrix:
        """The loss alone, shape (n,); ∞ outside the domain of η."""

    @abstractmethod
    def recession(self, y: Any) -> tuple[Matrix, Matrix]:
        """The interval of directions δη of each row in which the loss does not increase for ever: lower, upper (n,).

        Zero, or infinite on the side where it falls for ever. A direction of the whole problem that is inside the
        interval of every row, and not zero on all, has no minimum along it: the rows are separated.
        """


class Curves(NamedTuple):
    """Value, slope, expected and observed second derivative in one predictor, each (n,)."""

    value: Matrix
    slope: Matrix
    fisher: Matrix
    observed: Matrix


@dataclass(frozen=True)
class Deviance(Loss):
    """½ d(y, g⁻¹(η)) of a family and a link.

    Outside the domain of η (an inverse or identity link whose mean must be positive) the value is ∞ and the
    derivatives are 0.

    >>> logistic = Deviance(Bernoulli(), Logit())
    >>> terms = logistic.terms(np.array([1.0, 0.0]), np.array([[0.0], [-50.0]]))
    >>> terms.value, terms.gradient.ravel(), logistic.convex
    (array([6.93147181e-01, 1.92874985e-22]), array([-5.00000000e-01,  1.92874985e-22]), True)
    """

    family: Family
    link: Link
    outputs = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "family", family_of(self.family))
        object.__setattr__(self, "link", self.family.link(self.link))

    @cached_property
    def means(self) -> tuple[float, float]:
        """The open interval of means that family and link allow."""
        (a, b), (c, d) = self.family.range, self.link.range
        return max(a, c), min(b, d)

    @cached_property
    def domain(self) -> tuple[float, float]:
        """The open interval of η."""
        ends = [float(self.link(end)) for end in self.means]
        return min(ends), max(ends)

    @property
    def convex(self) -> bool:  # type: ignore[override]
        p, k = self.family.power, self.link.exponent
        if self._by_powers and self.link != self.family.canonical:
            return 1 <= float(p or 0) + float(k or 0) <= 2
        match self.family, self.link:
            case Bernoulli(), Probit() | Cloglog():
                return True
            case NegativeBinomial(), Log():
                return True
        return self.link == self.family.canonical

    def terms(self, y: Any, eta: Matrix) -> Terms:
        y, eta = _columns(y, eta)
        value, slope, fisher, observed = self._curves(y, eta)
        outside = self._outside(eta)
        if outside is not None:
            value = np.where(outside, np.inf, value)
            slope, fisher, observed = (np.where(outside, 0.0, a) for a in (slope, fisher, observed))
        exact = observed[:, None]
        return Terms(value, slope[:, None], exact if fisher is observed else fisher[:, None], exact)

    def value(self, y: Any, eta: Matrix) -> Matrix:
        y, eta = _columns(y, eta)
        value, outside = self._value(y, eta), self._outside(eta)
        return value if outside is None else np.where(outside, np.inf, value)

    def _outside(self, eta: Matrix) -> NDArray[np.bool_] | None:
        """Which rows are outside the domain; None if all are inside."""
        low, high = self.domain
        if np.isinf(low) and np.isinf(high):
            return None
        outside = ~((eta > low) & (eta < high))
        return outside if outside.any() else None

    def recession(self, y: Any) -> tuple[Matrix, Matrix]:
        # The loss falls for ever towards η = ±∞ iff μ moves towards y all the way, that is y is at or beyond its limit.
        y = np.asarray(y, dtype=np.float64)
        lowest, highest = self.means
        at_low, at_high = y <= lowest, y >= highest
        down, up = (at_low, at_high) if self.link.increasing else (at_high, at_low)
        low, high = self.domain
        return (
            np.where(down & np.isinf(low), -np.inf, 0.0),
            np.where(up & np.isinf(high), np.inf, 0.0),
        )

    def _curves(self, y: Matrix, eta: Matrix) -> Curves:
        match self.family, self.link:
            case Bernoulli(), Logit():
                return _logistic(y, eta)
            case Bernoulli(), UnitLink():
                return _bernoulli(self.link, y, eta)
            case Poisson(), Log():
                return _poisson(y, eta)
            case NegativeBinomial(), Log():
                return _negative_binomial(self.family.theta, y, eta)
        if self._by_powers:
            return _power(self.family, self.link, y, eta)
        return _general(self, y, eta)

    def _value(self, y: Matrix, eta: Matrix) -> Matrix:
        match self.family, self.link:
            case Bernoulli(), Logit():
                return _logistic_value(y, eta)
            case Bernoulli(), UnitLink():
                return _costs(y, *self.link.costs(eta))
            case Poisson(), Log():
                return _poisson_value(y, eta)
            case NegativeBinomial(), Log():
                return _negative_binomial_value(self.family.theta, y, eta)
        if self._by_powers:
            return 0.5 * self.family.unit_deviance(y, np.exp(_log_mean(self.link, eta)))
        return 0.5 * self.family.unit_deviance(y, _held(self, eta)[1])

    @property
    def _by_powers(self) -> bool:
        """Whether variance and link are powers of a positive mean."""
        return self.family.power is not None and self.family.range[0] == 0.0 and self.link.exponent is not None


def _columns(y: Any, eta: Any) -> tuple[Matrix, Matrix]:
    """y (n,) and η (n, 1) as the loops need them: contiguous, and of the same length."""
    y, eta = (np.ascontiguousarray(np.asarray(a, dtype=np.float64).reshape(-1)) for a in (y, eta))
    if len(y) != len(eta):
        raise InvalidInput(
            "y and η must have one number per row", got=f"{len(y)} and {len(eta)} numbers", advice="Pass one η per y."
        )
    return y, eta


def _over_threads(work: Callable[[slice], None], n: int, cost: int = 1) -> None:
    """Call `work` on slices of the rows, on the worker threads if there are enough of them."""
    parts = min(n_threads(), n * cost // threads.WORTH_A_THREAD + 1)
    if parts == 1:
        work(slice(0, n))
        return
    ends = np.linspace(0, n, parts + 1).astype(int)
    run([partial(work, slice(a, b)) for a, b in pairwise(ends.tolist())])


def _logistic(y: Matrix, eta: Matrix) -> Curves:
    """Bernoulli-logit in one pass."""
    from mercer._loops import likelihoods

    value, slope, bend = (np.empty(len(y)) for _ in range(3))
    shares: list[float] = []

    def work(i: slice) -> None:
        shares.append(likelihoods.logistic_terms(y[i], eta[i], value[i], slope[i], bend[i]))

    _over_threads(work, len(y))
    return Curves(_less_entropy(y, value) if any(shares) else value, slope, bend, bend)


def _logistic_value(y: Matrix, eta: Matrix) -> Matrix:
    from mercer._loops import likelihoods

    value = np.empty(len(y))
    shares: list[float] = []
    _over_threads(lambda i: shares.append(likelihoods.logistic_values(y[i], eta[i], value[i])), len(y))
    return _less_entropy(y, value) if any(shares) else value


def _poisson(y: Matrix, eta: Matrix) -> Curves:
    """Poisson-log in one pass."""
    from mercer._loops import likelihoods

    value, slope, mean = (np.empty(len(y)) for _ in range(3))
    _over_threads(lambda i: likelihoods.poisson_terms(y[i], eta[i], value[i], slope[i], mean[i]), len(y))
    return Curves(value, slope, mean, mean)


def _poisson_value(y: Matrix, eta: Matrix) -> Matrix:
    from mercer._loops import likelihoods

    value = np.empty(len(y))
    _over_threads(lambda i: likelihoods.poisson_values(y[i], eta[i], value[i]), len(y))
    return value


def _costs(y: Matrix, cost_1: Matrix, cost_0: Matrix) -> Matrix:
    """−y log μ − (1 − y) log(1 − μ), less its value at μ = y."""
    return _less_entropy(y, y * cost_1 + (1 - y) * cost_0)


def _less_entropy(y: Matrix, value: Matrix) -> Matrix:
    share = (y > 0) & (y < 1)
    if share.any():
        value = np.where(share, np.maximum(value - special.entr(y) - special.entr(1 - y), 0.0), value)
    return value


def _bernoulli(link: UnitLink, y: Matrix, eta: Matrix) -> Curves:
    cost_1, cost_0, rate_1, rate_0, bend_1, bend_0 = link.tails(eta)
    slope = (1 - y) * rate_0 - y * rate_1
    return Curves(_costs(y, cost_1, cost_0), slope, rate_1 * rate_0, y * bend_1 + (1 - y) * bend_0)


def _negative_binomial(theta: float, y: Matrix, eta: Matrix) -> Curves:
    """y successes and θ failures at log-odds z = η − log θ: π = μ/(μ + θ)."""
    z = eta - np.log(theta)
    p, q = special.expit(z), special.expit(-z)
    return Curves(_negative_binomial_value(theta, y, eta), theta * p - y * q, theta * p, (y + theta) * p * q)


def _negative_binomial_value(theta: float, y: Matrix, eta: Matrix) -> Matrix:
    return 0.5 * NegativeBinomial(theta).unit_deviance(y, Log().inverse(eta))


def _log_mean(link: Link, eta: Matrix) -> Matrix:
    """log μ of a power link, clipped to ±HELD."""
    L = np.log(np.maximum(eta, 1e-300)) / link.exponent if link.exponent else eta
    return np.clip(L, -HELD, HELD)


def _power(family: Family, link: Link, y: Matrix, eta: Matrix) -> Curves:
    """V = μᵖ and η = μᵏ or log μ: every derivative is a sum of two powers of μ.

    With a = 1 − k − p:  loss' = μᵃ(μ − y)/k  and  loss'' = μ^(a−k) ((a + 1) μ − a y)/k², where the factors 1/k are
    absent for the logarithm, k = 0.
    """
    p, k = float(family.power or 0.0), float(link.exponent or 0.0)
    L = _log_mean(link, eta)
    a, scale, mu = 1 - k - p, k or 1.0, np.exp(L)
    slope = np.exp(a * L) * (mu - y) / scale
    fisher = np.exp((2 - 2 * k - p) * L) / scale**2
    observed = fisher if link == family.canonical else np.exp((a - k) * L) * ((a + 1) * mu - a * y) / scale**2
    return Curves(0.5 * family.unit_deviance(y, mu), slope, fisher, observed)


def _held(loss: Deviance, eta: Matrix) -> tuple[Matrix, Matrix]:
    """η and μ; a mean that must be positive is clipped to e^±HELD."""
    mu = loss.link.inverse(eta)
    if loss.means[0] == 0.0:
        held = np.clip(mu, np.exp(-HELD), np.exp(HELD))
        eta, mu = np.where(mu == held, eta, loss.link(held)), held
    return eta, mu


def _general(loss: Deviance, y: Matrix, eta: Matrix) -> Curves:
    """By the formulas for any family and link."""
    family, link = loss.family, loss.link
    eta, mu = _held(loss, eta)
    rise, V = link.derivative(eta), family.variance(mu)
    fisher, residual = rise * (rise / V), y - mu
    observed = fisher
    if link != family.canonical:
        observed = fisher - residual * (link.second(eta) / V - fisher * (family.variance_slope(mu) / V))
    return Curves(0.5 * family.unit_deviance(y, mu), -residual * (rise / V), fisher, observed)


@dataclass(frozen=True)
class Softmax(Loss):
    """log Σⱼ exp(ηⱼ) − η_y: the negative log-likelihood of class y among k, with P(y = j) = pⱼ ∝ exp(ηⱼ).

    Its second derivative diag(p) − ppᵀ is a covariance, hence the loss is convex. It does not change when a constant
    is added to a row of η.

    Parameters
    ----------
    k : int
        Number of classes, ≥ 2. y are class numbers 0 ... k − 1.

    Examples
    --------
    >>> Softmax(3).terms(np.array([2]), np.zeros((1, 3))).gradient.round(4)
    array([[ 0.3333,  0.3333, -0.6667]])
    """

    k: int
    convex = True

    def __post_init__(self) -> None:
        check_whole_number(self.k, "k", least=2, advice="Pass the number of classes.", owner="Softmax")

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return int(self.k)

    def terms(self, y: Any, eta: Matrix) -> Terms:
        from mercer._loops import likelihoods

        y, eta = self._checked(y, eta)
        value, (P, slope, bend) = np.empty(len(y)), (np.empty(eta.shape) for _ in range(3))
        _over_threads(
            lambda i: likelihoods.softmax_terms(y[i], eta[i], value[i], P[i], slope[i], bend[i]), len(y), 8 * self.k
        )
        return Terms(value, slope, bend, bend, P)

    def value(self, y: Any, eta: Matrix) -> Matrix:
        from mercer._loops import likelihoods

        y, eta = self._checked(y, eta)
        value = np.empty(len(y))
        _over_threads(lambda i: likelihoods.softmax_values(y[i], eta[i], value[i]), len(y), 8 * self.k)
        return value

    def _checked(self, y: Any, eta: Any) -> tuple[NDArray[np.int64], Matrix]:
        """Class numbers and predictors as the loops need them: no number may point outside."""
        y = np.ascontiguousarray(y, dtype=np.int64)
        eta = np.ascontiguousarray(eta, dtype=np.float64)
        if eta.shape != (len(y), self.k) or (len(y) and not (y.min() >= 0 and y.max() < self.k)):
            raise InvalidInput(
                f"Softmax({self.k}) must have class numbers 0 ... {self.k - 1} (n,) and predictors (n, {self.k})",
                got=f"numbers {y.min(initial=0)} ... {y.max(initial=0)} and predictors of shape {eta.shape}",
                advice="Number the classes from 0 before you call the loss.",
            )
        return y, eta

    def recession(self, y: Any) -> tuple[Matrix, Matrix]:
        """Not an interval: the loss of a row does not increase for ever along δ iff δ_y ≥ δⱼ for every class j.

        The interval is meant for the margins δ_y − δⱼ, the same for every j: they must be ≥ 0.
        """
        n = len(np.asarray(y))
        return np.zeros(n), np.full(n, np.inf)


def loss_of(family: Any, link: Any = None) -> Loss:
    """The loss of a family by name or value, with its default link or another.

    >>> loss_of("poisson"), loss_of("binomial", "probit").convex
    (Deviance(family=Poisson(), link=Log()), True)
    """
    return Deviance(family_of(family), link)
