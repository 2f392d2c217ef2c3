"""The additive kernel over numeric columns: each column contributes on its own, and at most its share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.data.points import Array, Points
from mercer.data.vectors import as_vectors, per_column, require_same_width
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive, show
from mercer.kernels.algebra.proof import SUM, Axiom, Proof
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval

# The number that stands for a missing value in the loops, in widths, for float32 and float64: so far away that 1 + t²
# equals t² for every present value.
FAR = {4: 1e9, 8: 1e70}


class Additive(Kernel):
    """(1/d) Σₖ 1/(1 + (xₖ − zₖ)²/σₖ²): the mean of one Cauchy kernel per column, with one σ or one for each.

    Its functions are sums of functions of one column; products of columns come with `exp(c * Additive(...))`. Each
    column has its share and no more, so that neither outliers nor irrelevant columns drown the others. A missing value
    (NaN) is like another missing value and unlike all present values: 1 and 0 in its column's share.

    >>> import numpy as np, mercer as mc
    >>> mc.Additive(1.0)([[0.0, 0.0], [0.0, 1e9], [np.nan, 0.0]]).round(3)
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0. ],
           [0.5, 0. , 1. ]])
    """

    about: ClassVar[About] = About(
        "(1/d) Σₖ 1/(1 + (xₖ − zₖ)²/σ²)",
        "Columns of numbers in tables: each counts for its share, outliers and missing values too.",
        "Additive(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    tags: ClassVar[Tags] = Tags(stationary=True, normalised=True, nonnegative=True)

    def check(self) -> None:
        if np.abs(np.log10(self.sigma)).max() > 100:
            raise InvalidInput(
                "`sigma` must lie between 1e-100 and 1e100", got=show(self.sigma), advice="Rescale the columns of X."
            )

    @property
    def bounds(self) -> NDArray[np.float64]:
        """A thousandth to ten thousand times the current σ, which has the unit of its column."""
        return self.theta[:, None] + np.log([1e-3, 1e4])

    def terms(self, columns: Sequence[str]) -> list[set[str]]:
        return [{column} for column in columns]

    @property
    def encoding(self) -> Any:
        return "vectors with missing values"

    def encode(self, X: Any) -> Any:
        return as_vectors(X.toarray() if sp.issparse(X) else X, missing=True)

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        require_same_width(x, z)
        return x, z

    def _sides(self, block: Block) -> tuple[Array, Array, np.dtype[Any]]:
        """Both sides in widths from the middle of the second one, FAR where a value is missing; the dtype to use."""
        sides = block.encoded(self)
        centre = block.pair.once("middle", lambda: _middle(block.pair.encoded(self)[1]))
        sigmas = per_column(self.sigma, len(centre))
        x, z = ((np.asarray(side, dtype=np.float64) - centre) / sigmas for side in sides)
        reach = max(np.nan_to_num(np.abs(side)).max(initial=0.0) for side in (x, z))
        dtype = block.dtype if reach < 1e4 else np.dtype(np.float64)  # further out float32 has too few digits
        far = FAR[dtype.itemsize]
        x, z = (np.where(np.isnan(side), far, np.clip(side, -far / 4, far / 4)) for side in (x, z))
        return x, z, dtype

    def tile(self, block: Block, out: Array) -> None:
        from mercer._loops import tables

        x, z, dtype = self._sides(block)
        filled = out if dtype == out.dtype else np.empty(out.shape, dtype)
        tables.additive_tile(x, z, filled)
        if filled is not out:
            out[...] = filled
        if block.diagonal:
            np.fill_diagonal(out, 1.0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """(2/d) Σᵢⱼ Gᵢⱼ t²/(1 + t²)², for every column or their sum."""
        if not len(self.theta):
            return np.empty(0)
        from mercer._loops import tables

        x, z, _ = self._sides(block)
        slopes = tables.additive_slopes(x, z, G)
        slopes /= len(slopes)
        return slopes if np.ndim(self.sigma) else np.array([slopes.sum()])

    def tile_input_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """−(2/d) Σⱼ Gᵢⱼ t/(1 + t²)²/σₖ with t = (xₖ − zₖ)/σₖ."""
        x, z, _ = self._sides(block)
        differences = (x[:, k, None] - z[:, k] for k in range(x.shape[1]))
        moved = np.stack([(G * t / (1.0 + t * t) ** 2).sum(axis=1) for t in differences], axis=1)
        return np.asarray(-2.0 * moved / per_column(self.sigma, x.shape[1]) / x.shape[1])

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        total = exactly(0)
        for a, b, s in zip(x, z, per_column(self.sigma, len(x))):
            if is_missing(a) or is_missing(b):
                total = total + int(is_missing(a) and is_missing(b))
            else:
                u = ((Fraction(a) - Fraction(b)) / Fraction(float(s))) ** 2
                total = total + exactly(1 / (1 + u))
        return total / len(x)

    def derivation(self) -> Proof:
        column = Axiom(
            "1/(1 + (xₖ − zₖ)²/σₖ²)",
            "Schoenberg: a mixture of Gaussians with exponentially distributed precision",
            condition="a missing value is a point of its own: a direct sum",
            reference="Rasmussen & Williams 2006, (4.20)",
        )
        return SUM(self, column, condition="the mean over the columns")


def _middle(rows: Array) -> NDArray[np.float64]:
    """A value in the middle of each column, from at most 1 000 rows: 0 if all are missing."""
    some = np.sort(np.asarray(rows[:: -(-len(rows) // 1000)], dtype=np.float64), axis=0)  # NaN comes last
    present = (~np.isnan(some)).sum(axis=0)
    return np.nan_to_num(some[np.maximum(present - 1, 0) // 2, np.arange(some.shape[1])])
