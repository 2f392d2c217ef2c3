"""Smoothing kernels as probability densities: their mass, their moments, draws from them, and sums with own widths.

A profile k((x − z)/σ) with peak 1 becomes a density when it is divided by its mass ∫k(u)du · Πσ. Every family here is
known in closed form in d columns: the compact ones are (1 − r^q)^p within the unit ball, so that r^q is a beta
variable; Matérn and rational quadratic profiles are mixtures of Gaussians.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mercer import _loops
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.kernels.vectors.matern import Matern
from mercer.kernels.vectors.radial import Gaussian, RationalQuadratic
from mercer.kernels.vectors.stationary import Laplacian
from mercer.kernels.weights import Biweight, Epanechnikov, Triangular, Tricube, Uniform
from mercer.smoothing.sums import exponents, sums
from mercer.smoothing.sums.tiled import Stretched

Float = NDArray[np.float64]

COMPACT: dict[type[Similarity], tuple[int, int]] = {
    Uniform: (1, 0),
    Triangular: (1, 1),
    Epanechnikov: (2, 1),
    Biweight: (2, 2),
    Tricube: (3, 3),
}
"""(q, p) of the profiles (1 − r^q)^p, r ≤ 1."""
FAMILIES: tuple[type[Similarity], ...] = (Gaussian, Laplacian, Matern, RationalQuadratic, *COMPACT)
REACH: dict[type[Similarity], float] = {Gaussian: 38.5, Laplacian: 745.0, Matern: math.inf, RationalQuadratic: math.inf}
"""Beyond so many widths a profile is 0 in float64; 1 for the compact ones."""
ROWS, COLS = 64, 1024
"""Queries and points of one tile."""
MOMENTS = 3
"""Up to so many columns the second moments of u are summed as monomials."""


def require_density(similarity: Any, d: int) -> None:
    """Raise where a similarity of d columns cannot be normalised to a density."""
    if type(similarity) not in FAMILIES:
        names = ", ".join(family.__name__ for family in FAMILIES)
        raise InvalidInput(
            "A density needs a kernel whose integral is known", got=repr(similarity), advice=f"There are {names}."
        )
    if isinstance(similarity, RationalQuadratic) and similarity.alpha <= d / 2:
        raise InvalidInput(
            f"RationalQuadratic is a density in {d} columns for alpha > {d / 2:g} only",
            got=f"alpha={similarity.alpha:g}",
            advice="Its integral is infinite: raise alpha.",
        )


def log_mass(similarity: Any, d: int) -> float:
    """log ∫ k(u) du over d columns, in units of the width.

    >>> import numpy as np, mercer as mc
    >>> float(np.exp(log_mass(mc.Epanechnikov(1.0), 1)).round(6))
    1.333333
    """
    require_density(similarity, d)
    if type(similarity) in COMPACT:
        q, p = COMPACT[type(similarity)]
        return _log_sphere(d) + float(special.betaln(d / q, p + 1)) - math.log(q)
    if isinstance(similarity, Gaussian):
        return 0.5 * d * math.log(2 * math.pi)
    if isinstance(similarity, Laplacian):
        return d * math.log(2.0)
    if isinstance(similarity, Matern):
        nu = float(similarity.nu)
        return 0.5 * d * math.log(2 * math.pi / nu) + float(special.gammaln(nu + d / 2) - special.gammaln(nu))
    a = float(similarity.alpha)
    return 0.5 * d * math.log(2 * math.pi * a) + float(special.gammaln(a - d / 2) - special.gammaln(a))


def _log_sphere(d: int) -> float:
    """log of the surface of the unit sphere in d dimensions."""
    return math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(d / 2)


def variance(similarity: Any, d: int) -> float:
    """The variance of each column of the density, in units of σ²; infinite for heavy tails."""
    if type(similarity) in COMPACT:
        q, p = COMPACT[type(similarity)]
        return math.exp(special.betaln((d + 2) / q, p + 1) - special.betaln(d / q, p + 1)) / d
    if isinstance(similarity, Gaussian):
        return 1.0
    if isinstance(similarity, Laplacian):
        return 2.0
    if isinstance(similarity, Matern):
        return float((similarity.nu + d / 2) / similarity.nu)
    a = float(similarity.alpha)
    return 2 * a / (2 * a - d - 2) if 2 * a > d + 2 else math.inf


def equivalent(similarity: Any, d: int) -> float:
    """The factor by which a Gaussian's width is multiplied for this kernel to smooth as much.

    The best widths of two kernels differ by their canonical bandwidths δ = (∫k² / μ₂²)^(1/(d+4)) only (Marron & Nolan).

    >>> import mercer as mc
    >>> round(equivalent(mc.Epanechnikov(1.0), 1), 3)
    2.214
    """
    if isinstance(similarity, Gaussian):
        return 1.0
    if type(similarity) in COMPACT:
        q, p = COMPACT[type(similarity)]
        log_squares = _log_sphere(d) + float(special.betaln(d / q, 2 * p + 1)) - math.log(q)
        log_roughness = log_squares - 2 * log_mass(similarity, d)
    elif isinstance(similarity, Laplacian):
        log_roughness = -d * math.log(4.0)
    else:
        raise InvalidInput(
            f"A rule for the width needs a Gaussian, Laplacian or compact kernel, not {type(similarity).__name__}",
            got="a rule",
            advice=f"Pass the width itself: {type(similarity).__name__}(sigma), or bandwidth=sigma.",
        )
    log_ratio = log_roughness - 2 * math.log(variance(similarity, d)) + 0.5 * d * math.log(4 * math.pi)
    return math.exp(log_ratio / (d + 4))


def draw(similarity: Any, n: int, d: int, rng: np.random.Generator) -> Float:
    """n independent draws from the density around 0 in units of the width, shape (n, d)."""
    if isinstance(similarity, Laplacian):
        return rng.laplace(size=(n, d))
    normal = rng.standard_normal((n, d))
    if isinstance(similarity, Gaussian):
        return normal
    if isinstance(similarity, Matern):
        nu = float(similarity.nu)
        return normal * np.sqrt(rng.gamma(nu + d / 2, size=(n, 1)) / nu)
    if isinstance(similarity, RationalQuadratic):
        a = float(similarity.alpha)
        return normal * np.sqrt(a / rng.gamma(a - d / 2, size=(n, 1)))
    q, p = COMPACT[type(similarity)]
    direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return direction * rng.beta(d / q, p + 1, size=(n, 1)) ** (1.0 / q)


def cdf(similarity: Any, u: Float) -> Float:
    """∫ of the density on a line up to u, in units of the width.

    >>> import mercer as mc
    >>> cdf(mc.Triangular(1.0), np.array([-1.0, 0.0, 0.5]))
    array([0.   , 0.5  , 0.875])
    """
    if isinstance(similarity, Gaussian):
        return np.asarray(special.ndtr(u))
    if type(similarity) in COMPACT:
        q, p = COMPACT[type(similarity)]
        # the mass beyond |u|, which keeps its digits in the tail
        tail = 0.5 * special.betaincc(1.0 / q, p + 1.0, np.minimum(np.abs(u), 1.0) ** q)
        return np.where(u < 0, tail, 1.0 - tail)
    if isinstance(similarity, RationalQuadratic):
        a = float(similarity.alpha)
        return np.asarray(special.stdtr(2 * a - 1, u * math.sqrt((2 * a - 1) / (2 * a))))
    _require_laplace(similarity)
    tail = 0.5 * np.exp(-np.abs(u))
    return np.where(u < 0, tail, 1.0 - tail)


def quantile(similarity: Any, p: Float) -> Float:
    """The inverse of `cdf`."""
    if isinstance(similarity, Gaussian):
        return np.asarray(special.ndtri(p))
    if type(similarity) in COMPACT:
        q, power = COMPACT[type(similarity)]
        return np.sign(p - 0.5) * special.betainccinv(1.0 / q, power + 1.0, 2 * np.minimum(p, 1 - p)) ** (1.0 / q)
    if isinstance(similarity, RationalQuadratic):
        a = float(similarity.alpha)
        inside = special.stdtrit(2 * a - 1, np.clip(p, 1e-300, 1.0)) / math.sqrt((2 * a - 1) / (2 * a))
        return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, inside))  # which SciPy has from 1.16 on
    _require_laplace(similarity)
    with np.errstate(divide="ignore"):
        return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))


def log_profile(similarity: Any, u: Float) -> Float:
    """log k(u) of the profile on a line, in units of the width.

    >>> import mercer as mc
    >>> log_profile(mc.Gaussian(1.0), np.array([0.0, 2.0]))
    array([-0., -2.])
    """
    if isinstance(similarity, Gaussian):
        return -0.5 * u * u
    if type(similarity) in COMPACT:
        q, p = COMPACT[type(similarity)]
        r = np.abs(u)
        with np.errstate(divide="ignore"):
            return np.where(r <= 1, p * np.log1p(-(np.minimum(r, 1.0) ** q)) if p else 0.0, -np.inf)
    if isinstance(similarity, RationalQuadratic):
        a = float(similarity.alpha)
        return np.asarray(-a * np.log1p(u * u / (2 * a)))
    _require_laplace(similarity)
    return -np.abs(u)


def _require_laplace(similarity: Any) -> None:
    if isinstance(similarity, Laplacian) or (isinstance(similarity, Matern) and similarity.nu == 0.5):
        return
    raise InvalidInput(
        "A distribution function needs a kernel whose integral is known in closed form",
        got=repr(similarity),
        advice="Use a Gaussian, Laplacian, rational quadratic or compact kernel.",
    )


def reach(similarity: Any) -> float:
    """Beyond so many widths the profile is 0."""
    return REACH.get(type(similarity), 1.0)


# --- sums in which every point has its own width ----------------------------------------------------------------------


def log_sums_of_spread(similarity: Similarity, x: Points, log_v: Float, z: Points, scale: Float) -> Float:
    """log Σᵢ vᵢ k((zⱼ − xᵢ)/(σ sᵢ)) for every query, shape (m,): point i has the width σ sᵢ.

    log_v, scale : (n,); points of −inf do not count.
    """
    pair = Pair(z, x, np.float64, shared=True)
    m, n = pair.shape
    totals = np.full(m, -np.inf)
    similarity.touch(z)
    similarity.touch(x)

    def work(rows: slice, share: int) -> None:
        space = tiling.workspace()
        for cols in tiling.spans(n, COLS):
            if tiling.stopped():
                return
            mark = space.used
            try:
                block = Stretched(pair, rows, cols, space, scale[cols])
                W = np.empty(block.shape)
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    similarity.log_tile(block, W)
                W += log_v[cols]
                totals[rows] = np.logaddexp(totals[rows], log_sum_exp(W))
            finally:
                space.release(mark)

    tiling.stripes(m, work, rows=ROWS, columns=n)
    return totals


def log_sum_exp(W: Float) -> Float:
    """log Σⱼ exp Wᵢⱼ for every row, −inf where all are; W is overwritten."""
    largest = W.max(axis=1)
    unit = np.where(np.isfinite(largest), largest, 0.0)
    W -= unit[:, None]
    _loops.tiles.exp_(W)
    with np.errstate(divide="ignore"):
        return np.asarray(unit + np.log(W.sum(axis=1)))


# --- leave-one-out ----------------------------------------------------------------------------------------------------


def left_out_sums(X: Float, widths: Float, V: Float) -> tuple[Float, Float, Float]:
    """Gaussian sums at every point over all the others, and what their derivatives by the widths need.

    Σ_{j≠i} kᵢⱼ Vⱼ = exp(sᵢ) Tᵢ and Σ_{j≠i} kᵢⱼ uᵢⱼₖ² Vⱼ = exp(sᵢ) Mᵢₖ with u = (x − z)/h: ∂/∂log hₖ of the first is the
    second.

    Returns
    -------
    s (n,), T (n, c) and M (n, d, c), c the columns of V.
    """
    kernel, points, d = Gaussian(widths), Points(X), X.shape[1]
    if d <= MOMENTS:
        found = sums(kernel, points, V, degree=2, exclude=True, tolerance=1e-10)
        powers = exponents(d, 2)
        pure = [int(np.flatnonzero(powers[:, k] == 2)[0]) for k in range(d)]
        return found.log_scale, found.totals[:, 0], found.totals[:, pure]
    # In many columns most monomials are mixed ones: u² = x² − 2xz + z² needs 2d columns more, not d² monomials.
    U = (X - X.mean(axis=0)) / widths
    parts = [V, *(V * U[:, k, None] for k in range(d)), *(V * U[:, k, None] ** 2 for k in range(d))]
    found = sums(kernel, points, np.hstack(parts), exclude=True, tolerance=1e-12)
    T, first, second = np.split(found.totals[:, 0].reshape(len(X), 2 * d + 1, -1), [1, d + 1], axis=1)
    M = U[:, :, None] ** 2 * T - 2 * U[:, :, None] * first + second
    return found.log_scale, T[:, 0], np.maximum(M, 0.0)


def leave_one_out(X: Float, widths: Float, w: Float) -> tuple[Float, Float]:
    """log f₋ᵢ(xᵢ) of the Gaussian density without row i, shape (n,), and its derivatives by log hₖ, shape (n, d).

    >>> X = np.array([[0.0], [1.0]])
    >>> value, slope = leave_one_out(X, np.array([1.0]), np.ones(2))
    >>> value.round(4), slope.ravel()
    (array([-1.4189, -1.4189]), array([0., 0.]))
    """
    s, T, M = left_out_sums(X, widths, w[:, None])
    constant = 0.5 * X.shape[1] * math.log(2 * math.pi) + float(np.log(widths).sum())
    with np.errstate(divide="ignore"):
        value = s + np.log(T[:, 0]) - np.log(w.sum() - w) - constant
    return value, M[:, :, 0] / T - 1.0
