"""Signature kernels: inner products of the iterated integrals of two paths.

A time series is a piecewise linear path X, here in the space of features of a static kernel. Its signature is
S(X) = (1, ∫dX, ∫∫dX⊗dX, …), the integrals of level m running over ordered times t₁ < … < t_m: totals, areas between
channels, and so on. It determines the path up to the speed at which it is run through (and detours that return on
themselves), and linear functions of it approximate every continuous function of paths. For a path of steps δᵢ it is
the product exp(δ₁) ⊗ … ⊗ exp(δ_n), so ⟨S(X), S(Z)⟩ needs only ⟨δᵢ, δ'ⱼ⟩: second differences of the static kernel.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer._loops import series as loops
from mercer.data.points import Array, Points
from mercer.data.series import Series, as_series
from mercer.errors import InvalidInput
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.elementwise import require_finite
from mercer.kernels.algebra.linear import Scaled, Sum
from mercer.kernels.algebra.nodes import Constant
from mercer.kernels.algebra.proof import Proof, Rule, Unproven
from mercer.kernels.algebra.rounding import keeps_digits, require_digits
from mercer.kernels.algebra.views import On
from mercer.kernels.base import Indefinite, Kernel, Kind, Tags, diagonals
from mercer.kernels.block import Block, Pair, squared_norms
from mercer.kernels.series.pairs import OnSeries, Sides, increments, require_same_channels, require_static
from mercer.kernels.vectors.dot import Bilinear, Linear, Polynomial
from mercer.threads import spans
from mercer.validation import check_whole_number

if TYPE_CHECKING:
    from mercer.features.series import SignatureMap
    from mercer.kernels.validity.interval import Interval

HIGHEST_LEVEL = 20
"""The highest level: beyond it, terms of paths that fit float64 are smaller than its rounding."""

SIGNATURE = Rule("inner product of the signatures of piecewise linear paths in the feature space of the static kernel",
                 "Király and Oberhauser 2019, Kernels for sequentially ordered data")  # fmt: skip


EXPLICIT = 10_000
"""The signatures themselves are computed if they have at most this many entries: that loses the fewest digits."""


def affine(static: Any) -> bool:
    """Whether static(x, z) is ⟨Ax, Az⟩ plus a constant, so that second differences ignore where a series is."""
    match static:
        case Linear() | Constant() | Bilinear():
            return True
        case Polynomial():
            return static.degree == 1
        case Scaled() | On():
            return affine(static.kernel)
        case Sum():
            return all(map(affine, static.kernels))
    return False


class _Paths(OnSeries):
    """The shared part of kernels of paths: the steps of paths, which are second differences of static values."""

    @property
    def centred(self) -> bool:  # type: ignore[override]
        """Inner products of points far from the origin would lose the digits of their differences."""
        return affine(self.static_kernel)


@dataclass(frozen=True)
class Signatures:
    """The view of series as their signatures, for an affine static kernel."""

    kernel: Signature
    state: ClassVar[None] = None

    @property
    def transient(self) -> bool:
        """Whether it depends on parameters that a search changes."""
        return bool(len(self.kernel.theta))

    def apply(self, points: Points) -> Any:
        from mercer.features.series import SignatureMap

        series = points.encoded(self.kernel).centred()
        phi = self.kernel.static_kernel.features(series.values.shape[1])
        images = Series(np.asarray(phi(series.values)), series.ends)
        return SignatureMap(phi.dimension, self.kernel.level)([images[i] for i in range(len(images))])


class Signature(_Paths, Kernel):
    """Σ_m ⟨S_m(x), S_m(z)⟩ over the levels m = 0 … n of the signatures of two series, exact up to rounding.

    The signature does not change when a path is run through at another speed: with `static=Linear()`, a point inserted
    on the straight line between two others makes no difference, nor does a constant added to the whole series. Use
    `mc.add_time` or `mc.base_point` where these differences matter. `c * static` multiplies level m by cᵐ. Series that
    go far and come back cancel most of their iterated integrals: values that keep less than half of their digits are
    refused.

    Parameters
    ----------
    level : int
        The highest level n.
    static : Kernel
        The kernel of two points in time; `Linear()` gives the signature of the series itself.

    References
    ----------
    F. J. Király and H. Oberhauser, Kernels for sequentially ordered data, JMLR 20, 2019.

    Examples
    --------
    >>> import mercer as mc
    >>> rise, late, fall = [0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 2.0], [2.0, 1.0, 0.0]
    >>> mc.Signature(level=2)([rise, late, fall])                   # 1 + 2·2 + (2²/2)·(2²/2) = 9
    array([[9., 9., 1.],
           [9., 9., 1.],
           [1., 1., 9.]])
    >>> mc.Signature(level=4, static=mc.Gaussian(1.0)).normalize()([rise, late, fall]).round(3)
    array([[ 1.   ,  0.936, -0.08 ],
           [ 0.936,  1.   , -0.028],
           [-0.08 , -0.028,  1.   ]])
    """

    about: ClassVar[About] = About(
        "Σ_m ⟨S_m(x), S_m(z)⟩, levels m ≤ n of signatures by s",
        "Time series as paths: shapes and the order of events, at any speed.",
        "Signature(level=3, static=Gaussian(1.0))",
        arguments={"level": Argument("n", "whole number from 1 to 20"), "static": Argument("s", "kernel on vectors")},
    )

    kind: ClassVar[Kind] = "rule"
    level: int = 4
    static: Any = Linear()
    tags: ClassVar[Tags] = Tags()

    def check(self) -> None:
        advice = "Use mc.SignaturePDE for all levels together." if self.level is None else ""
        level = check_whole_number(self.level, "level", most=HIGHEST_LEVEL, such_as=4, advice=advice)
        self._set(level=level, static=require_static(self.static, "Signature"))

    def _view(self, points: Points) -> Signatures | None:
        """The series as explicit signatures, if those are short enough."""
        if not self.centred:
            return None
        channels = points.encoded(self).values.shape[1]
        short = sum(self.static_kernel.features(channels).dimension ** m for m in range(self.level + 1)) <= EXPLICIT
        return Signatures(self) if short else None

    def touch(self, points: Points) -> None:
        super().touch(points)
        view = self._view(points)
        if view is not None and not view.transient:
            points.view(view)

    def tile(self, block: Block, out: Array) -> None:
        view = self._view(block.pair.x)
        if view is None:
            super().tile(block, out)
            return
        require_same_channels(*(points.encoded(self) for points in (block.pair.x, block.pair.z)))
        wide = block.widened()
        values = out if wide is block else wide.scratch()
        wide.view(view).dot(values)
        if values is not out:
            with np.errstate(over="ignore"):
                out[...] = values

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        view = self._view(points)
        if view is not None:
            return squared_norms(points.view(view).vectors())
        out = np.empty(points.n)
        for span in spans(points.n, loops.LANES):
            series = points.take(span).encoded(self)
            sides, n = Sides(series, series, self.centred), len(series)
            tile, values = np.empty((sides.x.n, sides.z.n)), np.empty((n, loops.LANES))
            static = sides.block(self.static_kernel, slice(0, sides.x.n), slice(0, sides.z.n), None)
            self.fill_static(static, tile)
            roundings = np.diagonal(self.combine(tile, sides.ends, sides.lengths, values, sides, static))
            out[span] = np.diagonal(values)
            require_finite(out[span], self)
            self._require_digits(roundings / np.maximum(1.0, np.abs(out[span])))
        return out

    def combine(self, tile: Array, ends: Array, lengths: Array, out: Array, sides: Sides, at: Any) -> Array:
        sizes = np.empty(out.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            largest = max(float(tile.max()), -float(tile.min()))
            loops.signature(tile, ends, self.level, out, sizes, compiled=sides.compiled)
            # Static values are rounded, too, and then multiplied by terms of one level less.
            return np.asarray(sizes + largest * sizes ** (1 - 1 / self.level))

    def require_precise(self, values: Array, roundings: Array, pair: Pair, rows: slice, cols: slice) -> None:
        # k(x, x) ≥ 1, so most values need no comparison with √(k(x, x) k(z, z)).
        with np.errstate(over="ignore", invalid="ignore"):
            if keeps_digits(float((roundings / np.maximum(1.0, np.abs(values))).max()), np.float64, np.float64):
                return
        x, z = diagonals(self, pair)
        self._require_digits(roundings / np.sqrt(x[rows, None]) / np.sqrt(z[cols]))

    def _require_digits(self, roundings: Array) -> None:
        from mercer.features.series import LOST

        require_digits(float(roundings.max()), np.float64, self, np.float64, advice=LOST)

    def enclose_program(self, s: list[list[Interval]]) -> Interval:
        from mercer.kernels.validity.interval import exactly

        M, total = increments(s), exactly(1)
        cells = [(i, j) for i in range(len(M)) for j in range(len(M[0]))]
        # Products of m steps each; the value of a cell depends on how often its two steps were used in a row.
        terms = {(i, j, 1, 1): M[i][j] for i, j in cells}
        for m in range(1, self.level + 1):
            for term in terms.values():
                total = total + term
            if m == self.level:
                break
            longer: dict[tuple[int, int, int, int], Interval] = defaultdict(lambda: exactly(0))
            for (i, j, r, c), term in terms.items():
                for p, q in cells:
                    if p >= i and q >= j:
                        again = (r + 1 if p == i else 1, c + 1 if q == j else 1)
                        longer[p, q, *again] += term * M[p][q] / (again[0] * again[1])
            terms = dict(longer)
        return total

    def derivation(self) -> Proof:
        return SIGNATURE(self, self.static_kernel.proof(), condition=f"levels 0 … {self.level}")

    def features(self, d: Any, *, index: str = "monomials") -> SignatureMap:
        """The signature of a series of d channels (or as many as the series `d` have), for the static kernel ⟨x, z⟩."""
        from mercer.features.series import SignatureMap

        if not isinstance(self.static, Linear):
            raise InvalidInput(
                "An explicit signature needs the static kernel Linear()",
                got=repr(self.static),
                advice="Use the kernel itself, or replace its static kernel by mc.Linear().",
            )
        channels = as_series(d).values.shape[1] if isinstance(d, (list, tuple, np.ndarray)) else d
        return SignatureMap(channels, self.level)


class SignaturePDE(_Paths, Indefinite):
    """⟨S(x), S(z)⟩ over all levels, approximated: u(1, 1) for ∂²u/∂s∂t = ⟨x'(s), z'(t)⟩ u, u = 1 at s = 0 and at t = 0.

    The limit of small steps is a kernel. The values for finite steps are not: the discretised function is not positive
    semidefinite, and `mc.refute` finds series that show it. It is here to compare with other software. `Signature`
    with a high level is a kernel, and as close to the same limit.

    Parameters
    ----------
    static : Kernel
        The kernel of two points in time.
    refine : int
        How many times every step is halved; each time the error is divided by about four.

    References
    ----------
    C. Salvi, T. Cass, J. Foster, T. Lyons and W. Yang, The signature kernel is the solution of a Goursat PDE, SIAM
    Journal on Mathematics of Data Science 3, 2021.

    Examples
    --------
    >>> import mercer as mc
    >>> x, z = [[0.0, 0.0], [1.0, 0.5]], [[0.0, 1.0], [1.0, 2.0]]   # Σ 1.5ᵐ/(m!)², m = 0, 1, …
    >>> mc.Signature(level=12)([x], [z]).round(6), mc.SignaturePDE(refine=4)([x], [z]).round(6)
    (array([[3.165589]]), array([[3.166059]]))
    """

    about: ClassVar[About] = About(
        "u(1, 1), ∂²u/∂s∂t = ⟨x'(s), z'(t)⟩ u, by steps of 2⁻ʰ",
        "Comparing with solvers of the signature kernel's equation; it is not positive semidefinite.",
        "SignaturePDE(static=Gaussian(1.0), refine=1)",
        arguments={"static": Argument("s", "kernel on vectors"), "refine": Argument("h", "whole number from 0 to 8")},
    )

    static: Any = Linear()
    refine: int = 0
    tags: ClassVar[Tags] = Tags(cpd_order=None)

    def check(self) -> None:
        refine = check_whole_number(self.refine, "refine", least=0, most=8, such_as=1)
        self._set(static=require_static(self.static, "SignaturePDE"), refine=refine)

    @property
    def instead(self) -> str:
        return f"Take mc.Signature(level=8, static={self.static!r}), which is a kernel."

    def combine(self, tile: Array, ends: Array, lengths: Array, out: Array, sides: Sides, at: Any) -> None:
        loops.goursat(tile, ends, self.refine, out, compiled=sides.compiled)

    def enclose_program(self, s: list[list[Interval]]) -> Interval:
        from mercer.kernels.validity.interval import exactly

        M, pieces = increments(s), 2**self.refine
        width = pieces * (len(s[0]) - 1)
        above = [exactly(1)] * (width + 1)
        for i in range(pieces * len(M)):
            row = [exactly(1)]
            for j in range(width):
                G = M[i // pieces][j // pieces] / pieces**2
                row.append((row[j] + above[j + 1]) * (1 + G / 2 + G * G / 12) - above[j] * (1 - G * G / 12))
            above = row
        return above[-1]

    def derivation(self) -> Proof:
        return Unproven(
            self,
            "not a kernel for finite steps, only in the limit of small ones: the part of level 3 is 0 for a series of "
            "one step with itself, but not for series of one and of two steps",
        )
