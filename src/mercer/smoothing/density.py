"""Densities by kernel sums: which kernels are densities, comparable widths, a width for each point, leave-one-out.

The profiles themselves, with mass, moments and distribution functions, are in `kernels/vectors/densities.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import _loops, threads
from mercer.data.points import Points
from mercer.errors import InvalidInput
from mercer.kernels import costs as kernel_costs
from mercer.kernels import tiling
from mercer.kernels.base import Similarity
from mercer.kernels.block import Pair
from mercer.kernels.vectors.densities import Density
from mercer.kernels.vectors.radial import ByWidth, Gaussian
from mercer.kernels.vocabulary import vocabulary
from mercer.smoothing import costs
from mercer.smoothing.sums import exponents, sums
from mercer.smoothing.sums.tiled import Stretched

Float = NDArray[np.float64]


def families() -> list[type[Any]]:
    """The kernels and weights whose profile is a density.

    >>> import mercer as mc
    >>> mc.Gaussian in families(), mc.Periodic in families()
    (True, False)
    """
    widths = [cls for cls in vocabulary().values() if issubclass(cls, ByWidth)]
    return [cls for cls in widths if cls.density is not ByWidth.density]


def of(similarity: Any, d: int) -> Density:
    """The profile of a similarity as a density of d columns; raises if it cannot be normalised.

    >>> import numpy as np, mercer as mc
    >>> float(np.exp(of(mc.Epanechnikov(1.0), 1).log_mass(1)).round(6))
    1.333333
    """
    profile = similarity.density if isinstance(similarity, ByWidth) else None
    if profile is None:
        names = ", ".join(cls.__name__ for cls in families())
        raise InvalidInput(
            "A density needs a kernel whose integral is known", got=repr(similarity), advice=f"Use one of {names}."
        )
    profile.require_integrable(d)
    return profile


def on_a_line(similarity: Any) -> Density:
    """The profile as a density on a line whose distribution function is known in closed form.

    >>> import mercer as mc
    >>> on_a_line(mc.Triangular(1.0)).cdf(np.array([-1.0, 0.0, 0.5]))
    array([0.   , 0.5  , 0.875])
    """
    profile = of(similarity, 1)
    if not profile.on_a_line:
        raise InvalidInput(
            "A distribution function needs a kernel whose integral is known in closed form",
            got=repr(similarity),
            advice="Use a Gaussian, Laplacian, rational quadratic or compact kernel.",
        )
    return profile


def comparable(similarity: Any, d: int) -> bool:
    """Whether the widths of a similarity can be compared with those of a Gaussian."""
    profile = similarity.density if isinstance(similarity, ByWidth) else None
    return profile is not None and not math.isnan(profile.log_roughness(d))


def equivalent(similarity: Any, d: int) -> float:
    """The factor from the width of a Gaussian to the width at which this kernel smooths equally.

    The best widths of two kernels differ by their canonical bandwidths δ = (∫k² / μ₂²)^(1/(d+4)) only (Marron & Nolan).

    >>> import mercer as mc
    >>> round(equivalent(mc.Epanechnikov(1.0), 1), 3)
    2.214
    """
    if not comparable(similarity, d):
        raise InvalidInput(
            f"A rule for the width needs a Gaussian, Laplacian or compact kernel, not {type(similarity).__name__}",
            got="a rule",
            advice=f"Pass the width itself: {type(similarity).__name__}(sigma), or bandwidth=sigma.",
        )
    profile = of(similarity, d)
    log_ratio = profile.log_roughness(d) - 2 * math.log(profile.variance(d)) + 0.5 * d * math.log(4 * math.pi)
    return math.exp(log_ratio / (d + 4))


# --- sums with a width for each point ---------------------------------------------------------------------------------


def log_sums_of_spread(similarity: Similarity, x: Points, log_v: Float, z: Points, scale: Float) -> Float:
    """log Σᵢ vᵢ k((zⱼ − xᵢ)/(σ sᵢ)) for every query, shape (m,): point i has the width σ sᵢ.

    log_v, scale : (n,); points with log_v = −inf do not count.
    """
    pair = Pair(z, x, np.float64, shared=True)
    m, n = pair.shape
    totals = np.full(m, -np.inf)
    similarity.touch(z)
    similarity.touch(x)

    def work(rows: slice, share: int) -> None:
        space = tiling.workspace()
        for cols in threads.spans(n, kernel_costs.TILE_COLS):
            if threads.stopped():
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

    threads.stripes(m, work, rows=kernel_costs.TILE_ROWS, columns=n)
    return totals


def log_sum_exp(W: Float) -> Float:
    """log Σⱼ exp Wᵢⱼ for every row, −inf if all entries are; W is overwritten."""
    largest = W.max(axis=1)
    unit = np.where(np.isfinite(largest), largest, 0.0)
    W -= unit[:, None]
    _loops.tiles.exp_(W)
    with np.errstate(divide="ignore"):
        return np.asarray(unit + np.log(W.sum(axis=1)))


# --- leave-one-out ----------------------------------------------------------------------------------------------------


def left_out_sums(X: Float, widths: Float, V: Float) -> tuple[Float, Float, Float]:
    """Gaussian sums at every point over all the others, and the second moments that their derivatives need.

    Σ_{j≠i} kᵢⱼ Vⱼ = exp(sᵢ) Tᵢ and Σ_{j≠i} kᵢⱼ uᵢⱼₖ² Vⱼ = exp(sᵢ) Mᵢₖ with u = (x − z)/h: the second is the
    derivative of the first by log hₖ.

    Returns
    -------
    tuple
        s (n,), T (n, c) and M (n, d, c), c the columns of V.
    """
    if len(X) ** 2 <= costs.FEW_PAIRS and X.shape[1] <= costs.DIRECT_COLUMNS:
        few = _left_out_sums_of_few(X, widths, V)
        if np.isfinite(few[2]).all():
            return few
    kernel, points, d = Gaussian(widths), Points(X), X.shape[1]
    if d <= costs.MOMENT_COLUMNS:
        moments = sums(kernel, points, V, degree=2, exclude=True, tolerance=1e-10)
        powers = exponents(d, 2)
        pure = [int(np.flatnonzero(powers[:, k] == 2)[0]) for k in range(d)]
        return moments.log_scale, moments.totals[:, 0], moments.totals[:, pure]
    # With many columns most monomials are mixed: u² = x² − 2xz + z² needs 2d columns more instead of d² monomials.
    U = (X - X.mean(axis=0)) / widths
    parts = [V, *(V * U[:, k, None] for k in range(d)), *(V * U[:, k, None] ** 2 for k in range(d))]
    moments = sums(kernel, points, np.hstack(parts), exclude=True, tolerance=1e-12)
    T, first, second = np.split(moments.totals[:, 0].reshape(len(X), 2 * d + 1, -1), [1, d + 1], axis=1)
    M = U[:, :, None] ** 2 * T - 2 * U[:, :, None] * first + second
    return moments.log_scale, T[:, 0], np.maximum(M, 0.0)


def _left_out_sums_of_few(X: Float, widths: Float, V: Float) -> tuple[Float, Float, Float]:
    """The same from all differences at once; M is NaN where a row has no others, or their squares overflow."""
    columns = np.ascontiguousarray(X.T)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square((columns[:, :, None] - columns[:, None]) / widths[:, None, None])
        exponents = -0.5 * squares.sum(axis=0)
        np.fill_diagonal(exponents, -np.inf)
        s = exponents.max(axis=1)
        W = np.exp(exponents - s[:, None])
        return s, W @ V, np.matmul(squares * W, V).transpose(1, 0, 2)


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
