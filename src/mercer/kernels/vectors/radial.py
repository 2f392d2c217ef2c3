"""Kernels of the distance: their shared part, the Gaussian, and the rational quadratic (Matérn is in matern.py).

A radial leaf is a profile φ(u) of u = ‖x − z‖²/σ². With one σ per column, u is computed from the rescaled points.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import _loops, threads
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.features.base import SpectralDensity
from mercer.kernels import costs
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import Fixed, Units, checked, positive, show
from mercer.kernels.algebra.proof import COMPOSITION, EXPONENTIAL, RESCALING, Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block, Pair

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval
    from mercer.kernels.vectors.densities import Density
    from mercer.kernels.vectors.spectra import SpectralTerm

STATIONARY = Tags(stationary=True, radial=True, normalised=True, nonnegative=True, universal=True)
# Up to this distance from the centre, in units of σ and by bytes of the dtype, centring leaves 5 or 12 digits.
FUSED_REACH = {4: 10.0, 8: 500.0}
# If differences are below this share of the centred coordinates, sums of products would cancel their digits.
CANCELLATION = 1e-4
# Beyond this u every profile that decays is 0, and u times its slope must be too, not 0 · ∞.
FARTHEST = 1e200


def require_square(sigma: Any) -> None:
    """Raise if σ² or 1/σ² is not a number of float64."""
    if np.abs(np.log10(sigma)).max() > 150:
        raise InvalidInput(
            "`sigma` must lie between 1e-150 and 1e150, so that its square is a float",
            got=show(sigma),
            advice="Rescale the columns of X instead.",
        )


def require_inverse_square(sigma: Any, dtype: np.dtype[Any]) -> None:
    """Raise if 1/σ² overflows the Gram's dtype, because 0/σ² would then be NaN."""
    if np.min(sigma) ** 2 < float(np.finfo(dtype).tiny):
        raise InvalidInput(
            f"The inverse square of `sigma` must fit {dtype}",
            got=show(sigma),
            advice="Rescale the columns of X, so that sigma is near 1"
            + (", or use float64." if dtype == np.float32 else "."),
        )


class ByWidth(Similarity):
    """A function of (x − z)/σ."""

    sigma: Any = positive(1.0, vector=True)
    units: ClassVar[Units] = {"sigma": "length"}

    def check(self) -> None:
        require_square(self.sigma)

    def require_fit(self, dtype: np.dtype[Any]) -> None:
        """Raise if 1/σ² overflows the Gram's dtype."""
        require_inverse_square(self.sigma, dtype)

    def _scaled(self, block: Block) -> tuple[Block, float]:
        """The block whose distances are needed, and the σ by which they are still to be divided."""
        self.require_fit(block.dtype)
        if np.ndim(self.sigma) == 0:
            return block, float(self.sigma)
        return block.rescaled(tuple(self.sigma.tolist())), 1.0

    def narrowed(self, share: float) -> Gaussian:
        return Gaussian(share * np.asarray(self.sigma))

    @property
    def density(self) -> Density | None:
        """The profile as a probability density in units of σ, or None if its integral is infinite or not known."""
        return None

    def spectral_terms(self, d: int) -> tuple[SpectralTerm, ...]:
        from mercer.kernels.vectors.spectra import term_of

        return term_of(self, d) if hasattr(self, "spectrum") else ()

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def _sigmas(self, d: int) -> list[Fraction]:
        return [Fraction(float(s)) for s in np.broadcast_to(self.sigma, (d,))]


class Radial(ByWidth):
    """φ(u), u = ‖x − z‖²/σ² (with one σ per column: Σₖ (xₖ − zₖ)²/σₖ²). Abstract: a leaf gives φ and φ'."""

    sigma: Any = positive(1.0, vector=True)
    family: ClassVar[Tags] = STATIONARY

    @property
    def tags(self) -> Tags:  # type: ignore[override]
        return replace(self.family, radial=np.ndim(self.sigma) == 0)

    def from_squares(self, sqdist: Array, sigma: float) -> None:
        """Replace a matrix ‖x − z‖² by φ(‖x − z‖²/sigma²), in place; an overflow leaves inf or NaN, and no warning.

        >>> squares = np.array([[0.0, 2.0]])
        >>> Gaussian().from_squares(squares, 1.0)
        >>> squares.round(3)
        array([[1.   , 0.368]])
        """
        with np.errstate(over="ignore", invalid="ignore"):
            self._profile(sqdist, sigma)

    @abstractmethod
    def _profile(self, sqdist: Array, sigma: float) -> None:
        """Replace ‖x − z‖² by φ(‖x − z‖²/sigma²), in place."""

    @abstractmethod
    def _slope(self, u: Array) -> Array:
        """φ'(u) for u > 0, and anything at u = 0, where it is not used."""

    @property
    def _roughness(self) -> float:
        """The exponent s of the profile 1 − O(uˢ) near 0, at most 1: the rounding of 1 hides a larger one."""
        return 1.0

    def tile(self, block: Block, out: Array) -> None:
        self.require_fit(block.dtype)
        rough = self._underflow_matters(block.dtype)
        wide = block.widened() if rough else block
        scaled, sigma = self._scaled(wide)
        tile = out if wide is block else wide.scratch()
        scaled.sqdist(tile)
        if rough and self._underflow_matters(wide.dtype):
            self._require_normal(scaled, tile)
        self._profile(tile, sigma)
        if tile is not out:
            out[...] = tile

    def _underflow_matters(self, dtype: np.dtype[Any]) -> bool:
        """Whether φ differs from 1 where ‖x − z‖² is too small to be a normal number of this dtype."""
        info = np.finfo(dtype)
        sigma = float(self.sigma) if np.ndim(self.sigma) == 0 else 1.0
        return bool((float(info.tiny) / sigma**2) ** self._roughness >= float(info.eps))

    def _require_normal(self, scaled: Block, sqdist: Array) -> None:
        """Raise if different points are so close that their squared distance underflows."""
        x, z = uncentred(scaled)
        close = np.argwhere(sqdist < float(np.finfo(sqdist.dtype).tiny))
        for span in threads.spans(len(close), 4096):
            i, j = close[span].T
            apart = np.abs(x[i] - z[j]).max(axis=1)
            if apart.any():
                raise InvalidInput(
                    f"Different points must be so far apart that squares do not underflow in {self!r}",
                    got=f"two that differ by {apart[apart > 0].min():.3g} at most in every column",
                    advice="Rescale the columns of X (for example to unit variance), or choose a larger width.",
                )

    def _u(self, block: Block) -> NDArray[np.float64]:
        scaled, sigma = self._scaled(block)
        with np.errstate(over="ignore"):
            u = scaled.sqdist().astype(np.float64) / sigma**2
        return np.minimum(u, FARTHEST)

    def _slopes(self, block: Block, G: Array) -> tuple[NDArray[np.float64], Array]:
        """u, and Gᵢⱼ φ'(uᵢⱼ), 0 where u = 0: all derivatives of u vanish there."""
        u = self._u(block)
        M = self._slope(u)
        M *= G
        M[u == 0] = 0.0
        return u, M

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        width = np.empty(0) if "sigma" in self.fixed else self._width_gradient(*self._slopes(block, G), block)
        return np.concatenate([width, self._more_gradients(block, G)])

    def _width_gradient(self, u: NDArray[np.float64], M: Array, block: Block) -> NDArray[np.float64]:
        """−2 Σᵢⱼ Mᵢⱼ (xᵢₖ − zⱼₖ)²/σₖ², for every column k or their sum."""
        if np.ndim(self.sigma) == 0:
            return np.array([-2.0 * np.vdot(M, u)])
        x, z = (side / self.sigma for side in centred(block))
        M_abs = np.abs(M)
        largest = M_abs.sum(axis=1) @ (x**2).sum(axis=1) + M_abs.sum(axis=0) @ (z**2).sum(axis=1)
        if np.vdot(M_abs, u) < CANCELLATION * largest:
            x, z = (side / self.sigma for side in uncentred(block))
            return np.array([-2.0 * np.vdot(M, (x[:, k, None] - z[:, k]) ** 2) for k in range(x.shape[1])])
        squares = M.sum(axis=1) @ x**2 + M.sum(axis=0) @ z**2
        return np.asarray(-2.0 * (squares - 2.0 * np.einsum("ik,ik->k", x, M @ z)))

    def _more_gradients(self, block: Block, G: Array) -> NDArray[np.float64]:
        """Derivatives by the parameters other than sigma."""
        return np.empty(0)

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """2 Σⱼ Mᵢⱼ (xᵢ − zⱼ)/σ²."""
        u, M = self._slopes(block, G)
        x, z = (side / self.sigma for side in centred(block))
        moved = M.sum(axis=1)[:, None] * x - M @ z
        M_abs = np.abs(M)
        largest = M_abs.sum(axis=1) * np.linalg.norm(x, axis=1) + M_abs @ np.linalg.norm(z, axis=1)
        cancelled = np.flatnonzero((M_abs * np.sqrt(u)).sum(axis=1) < CANCELLATION * largest)
        if len(cancelled):
            x, z = uncentred(block)
            for k, sigma in enumerate(np.broadcast_to(self.sigma, x.shape[1:])):
                differences = (x[cancelled, k, None] - z[:, k]) / sigma
                moved[cancelled, k] = np.einsum("ij,ij->i", M[cancelled], differences)
        return np.asarray(2.0 * moved / self.sigma)

    def _squared(self, x: Any, z: Any) -> Interval:
        """u as an exact interval."""
        from mercer.kernels.validity.interval import exactly

        sigmas = self._sigmas(len(x))
        return exactly(sum(((Fraction(a) - Fraction(b)) / s) ** 2 for a, b, s in zip(x, z, sigmas)))


def uncentred(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides of the block, not centred, dense, in float64: their differences are exact."""
    rows = block.pair.x.vectors()[block.rows], block.pair.z.vectors()[block.cols]
    x, z = (side.toarray() if sp.issparse(side) else side for side in rows)
    return x.astype(np.float64), z.astype(np.float64)


def centred(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sides minus the second side's mean, dense, in float64: small numbers, for sums of products."""
    x, z = uncentred(block)
    centre = block.pair.z.mean()
    return x - centre, z - centre


class Gaussian(Radial, Kernel):
    """exp(−‖x − z‖²/2σ²), with one σ or one per column (automatic relevance).

    `Gaussian.from_gamma(g)` is exp(−g‖x − z‖²); `Gaussian.from_variance(v)` is lecture 002's exp(−‖x − z‖²/2v).

    >>> import mercer as mc
    >>> mc.Gaussian(1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    about: ClassVar[About] = About(
        "exp(−‖x − z‖²/2σ²)",
        "The first choice for smooth functions; one σ per column finds the columns that matter.",
        "Gaussian(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    spectrum: ClassVar[SpectralDensity] = SpectralDensity.NORMAL

    @classmethod
    def from_gamma(cls, gamma: Any) -> Self:
        """exp(−gamma·‖x − z‖²), scikit-learn's convention.

        >>> import mercer as mc
        >>> mc.Gaussian.from_gamma(0.5)
        Gaussian(sigma=1.0)
        """
        return cls._from("gamma", gamma, lambda g: np.sqrt(0.5 / g))

    @classmethod
    def from_variance(cls, variance: Any) -> Self:
        """exp(−‖x − z‖²/(2·variance)), lecture 002's γ.

        >>> import mercer as mc
        >>> mc.Gaussian.from_variance(4.0)
        Gaussian(sigma=2.0)
        """
        return cls._from("variance", variance, np.sqrt)

    @classmethod
    def _from(cls, name: str, value: Any, sigma: Callable[[Any], Any]) -> Self:
        """The kernel whose width is a function of another parameter, and fixed if that one is."""
        rule = cls.__dataclass_fields__["sigma"].metadata["rule"]
        fixed = isinstance(value, Fixed)
        with np.errstate(over="ignore"):
            width = sigma(checked("Gaussian", name, value.value if fixed else value, rule))
        return cls(Fixed(width) if fixed else width)

    def tile(self, block: Block, out: Array) -> None:
        packed = None if block.pair.shared else self.fused(block.pair)
        if packed is None:
            super().tile(block, out)
        else:
            r, c = block.rows, block.cols
            _loops.tiles.gaussian_tile(*packed, r.start, r.stop, c.start, c.stop, out)
        if block.diagonal:
            np.fill_diagonal(out, 1.0)

    def fill(self, pair: Pair, out: Array, finish: Callable[[Array], None] | None = None) -> Array:
        packed = self.fused(pair)
        if packed is None:
            return super().fill(pair, out, finish)
        m = pair.shape[1]

        def work(rows: slice, share: int) -> None:
            # Both triangles: the fused loop is exactly symmetric, and as fast as copying one of them.
            part = out[rows]
            _loops.tiles.gaussian_tile(*packed, rows.start, rows.stop, 0, m, part)
            if pair.same:
                np.fill_diagonal(part[:, rows], 1.0)
            if finish is not None:
                finish(part)

        threads.stripes(pair.shape[0], work, rows=128 if finish is None else 32)
        return out

    def multiply(self, pair: Pair, V: Array) -> NDArray[np.float64]:
        packed = self.fused(pair)
        if packed is None:
            return super().multiply(pair, V)
        totals = threads.Totals((pair.shape[0], V.shape[1]))

        def work(rows: slice, share: int) -> None:
            if pair.same:
                _loops.tiles.gaussian_product_symmetric(packed[0], V, rows.start, rows.stop, totals[share])
            else:
                _loops.tiles.gaussian_product(*packed, V, rows.start, rows.stop, totals[share])

        threads.stripes(pair.shape[0], work, rows=256)
        return totals.sum()

    def fused(self, pair: Pair, reach: float | None = None) -> tuple[Any, Any] | None:
        self.require_fit(pair.dtype)

        def make() -> tuple[Any, Any] | None:
            scaled, sigma = pair, float(np.max(self.sigma))
            if np.ndim(self.sigma):
                scaled, sigma = pair.rescaled(tuple(self.sigma.tolist())), 1.0
            if pair.shape[0] * pair.shape[1] < _loops.costs.COMPILED_ENTRIES or sp.issparse(pair.vectors()[0]):
                return None
            with np.errstate(over="ignore"):
                c = scaled.centred()
            # Centring rounds coordinates by their size: far from the centre, differences of the data itself are
            # more exact, and those are what the tiles of `Radial` fall back on.
            farthest = np.sqrt(max(c.x_norms.max(), c.z_norms.max())) / sigma
            if c.x.shape[1] > costs.FUSED_COLUMNS or farthest > (reach or FUSED_REACH[pair.dtype.itemsize]):
                return None
            packed = _loops.tiles.pack_gaussian(c.x, sigma, pair.dtype)
            return packed, packed if pair.same else _loops.tiles.pack_gaussian(c.z, sigma, pair.dtype)

        return pair.once(("packed", self, reach), make)

    def _profile(self, sqdist: Array, sigma: float) -> None:
        _loops.tiles.gaussian_from_sqdist_(sqdist, 0.5 / sigma**2)

    def _slope(self, u: Array) -> Array:
        slope: Array = np.multiply(u, -0.5)
        _loops.tiles.exp_(slope)
        slope *= -0.5
        return slope

    def log_tile(self, block: Block, out: Array) -> None:
        scaled, sigma = self._scaled(block)
        scaled.sqdist(out)
        with np.errstate(over="ignore"):
            out *= out.dtype.type(-0.5 / sigma**2)

    @property
    def exact_log(self) -> bool:
        return True

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def squared(self) -> Gaussian:
        return Gaussian(np.asarray(self.sigma) / np.sqrt(2.0))

    @property
    def density(self) -> Density:
        from mercer.kernels.vectors.densities import NormalDensity

        return NormalDensity()

    def enclose(self, x: Any, z: Any) -> Interval:
        return (self._squared(x, z) / -2).exp()

    def derivation(self) -> Proof:
        linear = Axiom("Linear()", "inner product: phi(x) = x", reference="Bishop 2006, (6.1)")
        scaled = COMPOSITION("⟨x/σ, z/σ⟩", linear, condition=f"phi divides by σ = {show(self.sigma)} > 0")
        exponential = EXPONENTIAL("exp(⟨x/σ, z/σ⟩)", scaled)
        return RESCALING(self, exponential, condition="f(x) = exp(−½‖x/σ‖²)")


class RationalQuadratic(Radial, Kernel):
    """(1 + ‖x − z‖²/(2ασ²))^(−α): a mixture of Gaussians over all widths; α → ∞ is the Gaussian.

    >>> import mercer as mc
    >>> mc.RationalQuadratic(1.0, alpha=1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6667]])
    """

    about: ClassVar[About] = About(
        "(1 + ‖x − z‖²/2ασ²)^(−α)",
        "Smooth functions that vary on several scales at once.",
        "RationalQuadratic(sigma=1.0, alpha=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    alpha: float = positive(1.0)

    def check(self) -> None:
        super().check()
        if not 1e-100 <= self.alpha <= 1e100:
            raise InvalidInput(
                "`alpha` must lie between 1e-100 and 1e100",
                got=self.alpha,
                advice="Use Gaussian(sigma) instead of a large alpha.",
            )

    def _profile(self, sqdist: Array, sigma: float) -> None:
        v = 0.5 / (self.alpha * sigma**2)
        if self.alpha <= 16 and max(float(sqdist.max()), 1.0) * v < float(np.finfo(sqdist.dtype).max) / 2:
            # The plain logarithm is ten times faster than log1p, and its absolute error is small enough here.
            sqdist *= sqdist.dtype.type(v)
            sqdist += 1
            np.log(sqdist, out=sqdist)
            sqdist *= sqdist.dtype.type(-self.alpha)
        else:
            self._log_profile(sqdist, sigma)
        _loops.tiles.exp_(sqdist)

    def _log_profile(self, sqdist: Array, sigma: float) -> None:
        wide = sqdist.astype(np.float64)
        with np.errstate(over="ignore"):
            u = wide / sigma**2
            log = np.log1p(u * (0.5 / self.alpha))
            far = u > FARTHEST
            if far.any():
                log[far] = np.log(wide[far]) - 2 * np.log(sigma) - np.log(2 * self.alpha)
            np.multiply(log, -self.alpha, out=sqdist, casting="same_kind")

    def log_tile(self, block: Block, out: Array) -> None:
        scaled, sigma = self._scaled(block)
        scaled.sqdist(out)
        self._log_profile(out, sigma)

    @property
    def exact_log(self) -> bool:
        return True

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def _slope(self, u: Array) -> Array:
        return np.asarray(-0.5 * np.exp(-(self.alpha + 1) * np.log1p(u / (2 * self.alpha))))

    def _more_gradients(self, block: Block, G: Array) -> NDArray[np.float64]:
        if "alpha" in self.fixed:
            return np.empty(0)
        v = self._u(block) / (2 * self.alpha)
        log = np.log1p(v)
        return np.array([np.vdot(G, np.exp(-self.alpha * log) * self.alpha * (v / (1 + v) - log))])

    @property
    def density(self) -> Density:
        from mercer.kernels.vectors.densities import StudentDensity

        return StudentDensity(float(self.alpha))

    def enclose(self, x: Any, z: Any) -> Interval:
        return ((self._squared(x, z) / (2 * Fraction(self.alpha)) + 1).log() * -Fraction(self.alpha)).exp()

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "Schoenberg: a mixture of Gaussians with Gamma-distributed precision",
            condition=f"alpha = {self.alpha:g} > 0",
            reference="Rasmussen & Williams 2006, (4.20)",
        )
