"""The uncertainty of a generalised linear model: the variance of η at new points, and quantiles of a new response.

With H = A*WA + alpha the curvature at the minimum, the posterior of f is nearly Gaussian (Laplace), and

    Var η(z) = φ h(z),      h(z) = A_z H⁻¹ A_z*,

which is the classical variance of the estimate if alpha = 0. A new response at z has the family's distribution around a
mean that is itself uncertain: its distribution function is Σₖ ωₖ F(y; g⁻¹(η + tₖ √(φh))) over nodes tₖ of the normal
distribution, or of Student's t if φ was estimated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

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
from mercer.problems.losses import Deviance
from mercer.problems.root_finding import find_roots
from mercer.solvers.curvature import FeatureSystem, GramSystem

Matrix = NDArray[np.float64]
# The trapezoidal rule, in standard deviations: exact to rounding for integrands as smooth as the density of the noise.
NODES = np.linspace(-6.0, 6.0, 31)
SHARES = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
# Relative width of the bracket at which a quantile is known; the largest response that is looked at.
WIDTH, FARTHEST = 1e-9, 1e300


def of_features(curvature: FeatureSystem, Z: Matrix) -> Matrix:
    """h = diag(Z H⁻¹ Zᵀ) for rows of [φ(z) − m, P(z)], shape (m,)."""
    return np.maximum(np.einsum("ij,ji->i", Z, curvature.apply(np.ascontiguousarray(Z.T))), 0.0)


def of_gram(curvature: GramSystem, K: Matrix, diagonal: Matrix, tail: Matrix) -> Matrix:
    """h at m points from K (m, n), diagonal (m,) and the tail's functions (m, p)."""
    return np.maximum(curvature.variances(K.T, diagonal, tail), 0.0)


def means(loss: Deviance, eta: Matrix) -> Matrix:
    """g⁻¹(η); η outside the link's domain (negative for the inverse link) is moved to the end of the domain."""
    low, high = loss.domain
    return loss.link.inverse(np.clip(eta, low, high))


def student(freedom: float, q: Any) -> Matrix:
    """Quantiles of Student's t, or of the normal distribution for infinite degrees of freedom.

    >>> student(np.inf, 0.975).round(4), student(18.0, 0.975).round(4)
    (np.float64(1.96), np.float64(2.1009))
    """
    return np.asarray(special.ndtri(q) if np.isinf(freedom) else special.stdtrit(freedom, q))[()]


def student_cdf(freedom: float, x: Any) -> Matrix:
    """Student's distribution function, or the normal one for infinite degrees of freedom."""
    return np.asarray(special.ndtr(x) if np.isinf(freedom) else special.stdtr(freedom, x))


def quantiles(
    loss: Deviance, q: float, eta: Matrix, deviation: Matrix, dispersion: float, freedom: float = np.inf
) -> Matrix:
    """The smallest y with P(Y ≤ y) ≥ q for a new response at each η ~ eta + deviation·t of that freedom, shape (m,)."""
    family = loss.family
    nodes = student(freedom, special.ndtr(NODES))  # of the same probability: the weights remain
    mu = means(loss, eta[:, None] + deviation[:, None] * nodes)

    def above(y: Matrix, rows: Any = slice(None)) -> Matrix:
        with np.errstate(all="ignore"):
            return np.asarray(cdf(family, y[:, None], mu[rows], dispersion) @ SHARES - q)

    if isinstance(family, Gaussian):
        ends = family.quantile(q, mu, dispersion)  # the quantile of a mixture lies between the quantiles of its parts
        return find_roots(above, ends.min(axis=1), ends.max(axis=1), atol=0.0, rtol=WIDTH)
    whole = isinstance(family, (Bernoulli, Poisson, NegativeBinomial))
    high = np.ceil(means(loss, eta)) if whole else np.maximum(means(loss, eta), 1.0 / FARTHEST)
    low = np.full(len(eta), -1.0 if whole else 0.0)
    while (short := (above(high) < 0.0) & (high < FARTHEST)).any():
        low, high = np.where(short, high, low), np.where(short, 2.0 * high + whole, high)
    if whole:
        return _first_whole(above, low, high)
    return find_roots(above, low, high, atol=0.0, rtol=WIDTH)


def _first_whole(above: Any, low: Matrix, high: Matrix) -> Matrix:
    """The first whole number in (low, high] at which a rising function is ≥ 0, by bisection."""
    while (wide := (high - low > 1.0) & (high < 2.0**52)).any():  # beyond, every number is whole
        middle = np.where(wide, np.floor(0.5 * (low + high)), high)
        there = above(middle) >= 0.0
        low, high = np.where(wide & ~there, middle, low), np.where(there, middle, high)
    return high


def cdf(family: Family, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
    """P(Y ≤ y) of a response with mean μ.

    >>> float(cdf(Poisson(), np.array(2.0), np.array(3.0), 1.0))
    0.4231...
    """
    match family:
        case Gaussian():
            probability = special.ndtr((y - mu) / np.sqrt(dispersion))
        case Bernoulli():
            probability = np.where(y < 0, 0.0, np.where(y < 1, 1.0 - mu, 1.0))
        case Poisson():
            probability = np.where(y < 0, 0.0, special.gammaincc(np.floor(np.maximum(y, 0.0)) + 1.0, mu))
        case NegativeBinomial(theta=theta):
            probability = special.betainc(theta, np.floor(np.maximum(y, 0.0)) + 1.0, theta / (theta + mu))
            probability = np.where(y < 0, 0.0, probability)
        case Gamma():
            probability = special.gammainc(1.0 / dispersion, np.maximum(y, 0.0) / (dispersion * mu))
        case InverseGaussian():
            probability = stats.invgauss.cdf(y, mu * dispersion, scale=1.0 / dispersion)
        case Tweedie():
            probability = np.minimum(family.cdf(np.maximum(y, 0.0), mu, dispersion), 1.0)
        case _:
            probability = _from_quantiles(family, y, mu, dispersion)
    return np.asarray(probability, dtype=np.float64)


def _from_quantiles(family: Family, y: Matrix, mu: Matrix, dispersion: float) -> Matrix:
    """P(Y ≤ y) by bisection of the family's quantiles, for families that a user defined."""
    y, mu = np.broadcast_arrays(y, mu)
    low, high = np.full(y.shape, 1e-12), np.full(y.shape, 1.0 - 1e-12)
    for _ in range(40):
        middle = 0.5 * (low + high)
        inside = family.quantile(middle, mu, dispersion) <= y
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return 0.5 * (low + high)
