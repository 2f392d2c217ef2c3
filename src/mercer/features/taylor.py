"""The Gaussian kernel's infinite map, cut off where a proven bound allows it.

exp(−‖x−z‖²/2σ²) = exp(−‖x‖²/2σ²) exp(−‖z‖²/2σ²) Σₙ ⟨x, z⟩ⁿ/(σ²ⁿ n!): every power is a polynomial kernel with its
monomials, so the Gaussian has all monomials as features (lectures 000 and 002). On a ball few degrees are enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.vectors import per_column
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap, SpectralDensity, dense
from mercer.features.monomials import degree_of, fill_graded, monomial, require_countable, size
from mercer.features.terms import Term, Variables, atom, rational
from mercer.validation import check_number, check_whole_number


@dataclass(frozen=True, eq=False)
class TaylorMap(FeatureMap):
    """exp(−‖u‖²/2) u^α/√α! over all monomials of degree ≤ p, u = x/σ; made by `taylor_features`.

    Attributes
    ----------
    degree : int
        p.
    radius : float
        The map is meant for ‖x‖ ≤ radius.
    bound : float
        |k(x, z) − phi(x)ᵀphi(z)| ≤ bound for all x, z with ‖x/σ‖, ‖z/σ‖ ≤ radius/min(σ).

    Examples
    --------
    >>> import mercer as mc
    >>> phi = taylor_features(mc.Gaussian(1.0), 1, error=0.05, radius=1.0)
    >>> phi.degree, phi.names[2]
    (3, '√0.5·x0²·exp(−‖x/σ‖²/2)')
    """

    sigma: NDArray[np.float64] = field(repr=False)
    d: int
    degree: int
    radius: float
    bound: float

    def __post_init__(self) -> None:
        require_countable(check_whole_number(self.d, "d", owner="TaylorMap"), self.degree)

    @property
    def dimension(self) -> int:
        return size(self.d + 1, self.degree)

    @property
    def inputs(self) -> int:
        return self.d

    @property
    def _degrees(self) -> range:
        return range(self.degree + 1)

    def _fill(self, X: Any, out: Array) -> None:
        u = dense(X, self.d).astype(np.float64) / self.sigma
        sqnorms = np.einsum("ij,ij->i", u, u)
        reach = self.radius / float(self.sigma.min())
        if len(u) and math.sqrt(sqnorms.max()) > reach * (1 + 4 * float(np.finfo(out.dtype).eps)):
            i = int(sqnorms.argmax())
            raise InvalidInput(
                f"Points of a Taylor map of radius {self.radius:.6g} must have ‖x/σ‖ ≤ radius/min(σ) = {reach:.6g}",
                got=f"‖x/σ‖ = {math.sqrt(sqnorms[i]):.6g} in row {i}",
                advice="Centre the data, or make the map with a larger `radius`: the error bound fails outside.",
            )
        weights = [1 / math.sqrt(math.factorial(k)) for k in self._degrees]  # √(1/k! · k!/α!) = 1/√α!
        fill_graded(u.astype(out.dtype), self._degrees, weights, "monomials", out)
        out *= np.exp(-0.5 * sqnorms)[:, None].astype(out.dtype)

    def _term(self, j: int, x: Variables) -> Term:
        k, j = degree_of(self.d, self._degrees, j, "monomials")
        scale = [rational(float(s)) for s in np.broadcast_to(self.sigma, self.d)]
        term = monomial(self.d, k, j, "monomials", lambda i: Term(square=1 / scale[i] ** 2) * x(i))
        return Term(square=Fraction(1, math.factorial(k))) * term * atom("exp(−‖x/σ‖²/2)")


def taylor_features(kernel: Any, d: int, *, error: float, radius: float) -> TaylorMap:
    """|k(x, z) − phi(x)ᵀphi(z)| ≤ P(p+1, R²) ≤ R²ᵖ⁺²/(p+1)! for ‖x‖, ‖z‖ ≤ radius, R = radius/min(σ): Taylor features.

    phi has the monomials of degree ≤ p, and p is the smallest degree whose bound is at most `error`. P is the
    regularised incomplete gamma function; the bound is attained at x = z with ‖x/σ‖ = R, so no smaller degree will do.
    It holds on all of ‖x/σ‖ ≤ R, an ellipsoid that contains the ball; `transform` refuses points outside.

    Parameters
    ----------
    kernel : Kernel
        A Gaussian, with one σ or one per column.
    d : int
        The number of columns.
    error : float
        The largest allowed difference of kernel values.
    radius : float
        The radius of the ball that holds the points; centre the data to keep it small.

    References
    ----------
    Lecture 002, equation (5); Cotter, Keshet and Srebro, Explicit approximations of the Gaussian kernel, 2011.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> k, X = mc.Gaussian(2.0), np.random.default_rng(0).uniform(-1, 1, size=(50, 3))
    >>> phi = taylor_features(k, 3, error=1e-3, radius=np.sqrt(3))
    >>> phi.degree, phi.dimension, phi.bound <= 1e-3
    (5, 56, True)
    >>> bool(np.abs(phi(X) @ phi(X).T - k(X)).max() <= phi.bound)
    True
    """
    # Proof of the bound. With u = x/σ, v = z/σ, t = ⟨u, v⟩ the difference is
    #     k − k_p = exp(−(‖u‖² + ‖v‖²)/2) · Σ_{n>p} tⁿ/n!.
    # ‖u − v‖² ≥ 0 and ‖u + v‖² ≥ 0 give |t| ≤ (‖u‖² + ‖v‖²)/2, so that
    #     |k − k_p| ≤ e^{−|t|} Σ_{n>p} |t|ⁿ/n! = P(p+1, |t|),
    # the probability that a Poisson variable of mean |t| exceeds p. Its derivative e^{−s} sᵖ/p! is positive, so it
    # grows with |t| ≤ ‖u‖‖v‖ ≤ R²; and as the derivative is at most sᵖ/p!, P(p+1, s) ≤ sᵖ⁺¹/(p+1)!.
    # At u = v, ‖u‖ = R both inequalities are equalities.
    if getattr(kernel, "spectrum", None) is not SpectralDensity.NORMAL:
        raise InvalidInput(
            "Taylor features need a Gaussian kernel",
            got=repr(kernel),
            advice="Use k.features(d), which is exact, if the map is finite, or mc.fourier_features for a Matern or "
            "Laplacian kernel.",
        )
    d = check_whole_number(d, "d", owner="the map")
    sigma = per_column(kernel.sigma, d)
    error, radius = check_number(error, "error", above=0, such_as=1e-6), check_number(radius, "radius", above=0)
    s = (radius / float(sigma.min())) ** 2
    degree = _smallest_degree(s, error)
    return TaylorMap(sigma, d, degree, radius, _remainder(degree, s))


def _remainder(degree: int, s: float) -> float:
    from scipy.special import gammainc

    return float(gammainc(degree + 1, s))


def _smallest_degree(s: float, error: float) -> int:
    """The smallest p with P(p+1, s) ≤ error, by doubling and bisection."""
    low, high = -1, 1
    while _remainder(high, s) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _remainder(middle, s) > error else (low, middle)
    return high
