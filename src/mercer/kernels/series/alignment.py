"""Alignments of time series: pairs of points in order, in which every point of both series occurs at least once.

An alignment π steps from (1, 1) to (n, m) by moving on in x, in z, or in both. Its value is the product of local values
over its pairs. The sum over all alignments is a kernel for suitable local values; the best alignment alone is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import series as loops
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput, RuleBroken
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Proof, Rule, Unproven
from mercer.kernels.base import Indefinite, Kernel, Kind, Similarity, Tags
from mercer.kernels.block import Block, Pair
from mercer.kernels.series.pairs import OnSeries, Sides, require_static
from mercer.kernels.vectors.dot import Linear
from mercer.kernels.vectors.radial import Gaussian
from mercer.threads import spans

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

ALIGNMENTS = Rule(
    "Σ over alignments of Π κ, κ = s/(2 − s): as κ = Σ (s/2)ʳ, r ≥ 1, it is the sum of Π s/2 over all ways to repeat "
    "points of both series until they have the same length",
    "Cuturi, Vert, Birkenes and Matsui 2007; Cuturi 2011",
)


class GlobalAlignment(OnSeries, Kernel):
    """Σ_π Π_(i, j)∈π κ(xᵢ, zⱼ) over all alignments π of two series, with κ = s/(2 − s) for a static kernel 0 ≤ s ≤ 1.

    A sum over alignments is a kernel if κ/(1 + κ) is one; here that is s/2. The number of alignments grows
    exponentially with the lengths, so use `.normalize()`, which is computed from logarithms. Long series are then
    similar only to themselves unless the static kernel is wide: start with a width of several times the typical
    distance of points.

    Parameters
    ----------
    static : Kernel
        The kernel s of two points in time, with s(p, p) = 1 and s ≥ 0, such as a Gaussian.

    References
    ----------
    M. Cuturi, Fast global alignment kernels, ICML 2011.

    Examples
    --------
    >>> import mercer as mc
    >>> rise, late, fall = [0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0]
    >>> mc.GlobalAlignment(mc.Gaussian(1.0)).normalize()([rise, late, fall]).round(3)
    array([[1.   , 0.374, 0.006],
           [0.374, 1.   , 0.001],
           [0.006, 0.001, 1.   ]])
    """

    about: ClassVar[About] = About(
        "Σ_π Π κ(xᵢ, zⱼ), κ = s/(2 − s), over all alignments π",
        "Time series that run at different speeds; GlobalAlignment(s).normalize().",
        "GlobalAlignment(Gaussian(1.0))",
        arguments={"static": Argument("s", "kernel on vectors with s(p, p) = 1 and s ≥ 0")},
    )

    kind: ClassVar[Kind] = "rule"
    static: Any = Gaussian(1.0)
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def check(self) -> None:
        static = require_static(self.static, "GlobalAlignment")
        if not (static.tags.normalised and static.tags.nonnegative):
            raise RuleBroken(
                "`static` of GlobalAlignment must be known to lie between 0 and 1, so that s/(2 − s) is well defined",
                got=repr(static),
                advice="Pass a kernel such as mc.Gaussian(1.0), mc.Laplacian(1.0) or mc.Matern(1.0).",
            )
        self._set(static=static)

    @property
    def exact_log(self) -> bool:
        return True

    def fill_static(self, block: Block, tile: Array) -> None:
        self.static_kernel.tile(block, tile)
        np.divide(tile, 2.0 - tile, out=tile)

    def combine(self, tile: Array, ends: Array, lengths: Array, out: Array, sides: Sides, at: Any) -> None:
        if sides.compiled:
            loops.alignments(tile, ends, lengths, out, compiled=True)
            if not np.isnan(out).any():
                return
        self._fill_log(at, tile)
        loops.alignments(tile, ends, lengths, out, compiled=sides.compiled, log=True)

    def _fill_log(self, block: Block, tile: Array) -> None:
        """log κ = log s − log(2 − s)."""
        self.static_kernel.log_tile(block, tile)
        tile -= np.log(2.0 - np.exp(tile))

    def finish(self, values: Array) -> Array:
        with np.errstate(over="ignore"):  # reported once the matrix is there
            return np.asarray(np.exp(values))

    def log_tile(self, block: Block, out: Array) -> None:
        self._fill(block, out, lambda values: values)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        out = np.empty(points.n)
        for span in spans(points.n, loops.LANES):
            sub = Pair(points.take(span), None, np.float64)
            tile = np.empty(sub.shape)
            self.log_tile(sub.block(slice(0, sub.shape[0]), slice(0, sub.shape[0])), tile)
            out[span] = np.diagonal(tile)
        if np.isneginf(out).any():
            raise InvalidInput(
                "The `static` kernel of GlobalAlignment must have s(p, p) = 1 at every point",
                got=f"s(p, p) = 0 at a point of series {np.flatnonzero(np.isneginf(out))[0]}",
                advice="Use a static kernel such as mc.Gaussian(1.0), or leave out the points where s(p, p) = 0.",
            )
        return out

    def enclose_program(self, s: list[list[Interval]]) -> Interval:
        from mercer.kernels.validity.interval import exactly

        above = [exactly(1), *[exactly(0)] * len(s[0])]
        for row in s:
            here = [exactly(0)]
            for j, value in enumerate(row):
                here.append((here[j] + above[j + 1] + above[j]) * (value / (2 - value)))
            above = here
        return above[-1]

    def derivation(self) -> Proof:
        return ALIGNMENTS(self, self.static_kernel.proof(), condition="0 ≤ s ≤ 1, so that s/2 < 1")


class DTW(OnSeries, Indefinite):
    """exp(−D(x, z)/σ), where D is the least Σ ‖xᵢ − zⱼ‖² over all alignments (dynamic time warping): not a kernel.

    A minimum over alignments is not an inner product, and `mc.refute` finds series that show it. The algebra refuses
    it, and so do models that need a Hilbert space; `SVC` and `SVR` accept it with a warning, nearest-neighbour models
    without one.

    >>> import mercer as mc
    >>> mc.DTW(1.0)([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [1.0]]).round(3)
    array([[1.   , 1.   , 0.135],
           [1.   , 1.   , 0.05 ],
           [0.135, 0.05 , 1.   ]])
    """

    about: ClassVar[About] = About(
        "exp(−D(x, z)/σ), D the cost of the best alignment",
        "Comparing with dynamic time warping; it is not positive semidefinite.",
        "DTW(sigma=1.0)",
    )

    sigma: float = positive(1.0)
    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True, cpd_order=None)

    @property
    def instead(self) -> str:
        return "Take mc.GlobalAlignment(mc.Gaussian(1.0)).normalize(), which adds up all alignments."

    @property
    def static_kernel(self) -> Similarity:
        return Linear()  # its points and its layout: distances are read from the block itself

    def fill_static(self, block: Block, tile: Array) -> None:
        block.sqdist(tile)

    def combine(self, tile: Array, ends: Array, lengths: Array, out: Array, sides: Sides, at: Any) -> None:
        loops.warping(tile, ends, lengths, out, compiled=sides.compiled)

    @property
    def exact_log(self) -> bool:
        return True

    def log_tile(self, block: Block, out: Array) -> None:
        self._fill(block, out, lambda costs: costs / -self.sigma)

    def finish(self, values: Array) -> Array:
        return np.asarray(np.exp(values / -self.sigma))

    def enclose_static(self, p: Any, q: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        return exactly(sum((a - b) ** 2 for a, b in zip(p, q)))

    def enclose_program(self, s: list[list[Interval]]) -> Interval:
        above: list[Interval | None] = [None] * len(s[0])
        for row in s:
            here: list[Interval | None] = []
            for j, cost in enumerate(row):
                ways = [above[j], here[j - 1] if j else None, above[j - 1] if j else None]
                known = [way for way in ways if way is not None]
                best = known[0] if known else cost * 0
                for way in known[1:]:
                    best = best.min(way)
                here.append(best + cost)
            above = here
        last = above[-1]
        return (-(last if last is not None else s[0][0]) / self.sigma).exp()

    def derivation(self) -> Proof:
        return Unproven(self, "not a kernel: a minimum over alignments is not an inner product")
