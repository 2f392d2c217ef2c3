"""Several columns of categories at once: the Gaussian of their one-hot encoding, without the encoding."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import is_missing, marked, missing_entries
from mercer.data.objects import category_columns
from mercer.data.points import Array, Points
from mercer.data.vectors import per_column
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.parameters import positive, show
from mercer.kernels.algebra.proof import PRODUCT, SUM, Axiom, Proof
from mercer.kernels.base import Tags
from mercer.kernels.block import Block
from mercer.kernels.discrete import Delta, OnCategories

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


class Categorical(OnCategories):
    """exp(−Σₖ 1[xₖ ≠ zₖ]/σₖ²): the Gaussian of one-hot encoded columns, with one σ or one per column.

    Values are compared as in Python. A new category equals only itself. Missing values (None, NaN, NaT or NA) are one
    more category.

    >>> import mercer as mc
    >>> mc.Categorical(1.0)([["red", "S"], ["red", "M"], [None, "M"]]).round(3)
    array([[1.   , 0.368, 0.135],
           [0.368, 1.   , 0.368],
           [0.135, 0.368, 1.   ]])
    """

    about: ClassVar[About] = About(
        "exp(−Σₖ 1[xₖ ≠ zₖ]/σ²)",
        "Columns of categories in tables: one σ per column, and a missing value is a category.",
        "Categorical(sigma=1.0)",
    )

    sigma: Any = positive(1.0, vector=True)
    tags: ClassVar[Tags] = Tags(normalised=True, nonnegative=True)

    def check(self) -> None:
        if np.abs(np.log10(self.sigma)).max() > 150:
            raise InvalidInput(
                "`sigma` must lie between 1e-150 and 1e150, so that its square is a float",
                got=show(self.sigma),
                advice="Choose a value near 1.",
            )

    @property
    def encoding(self) -> Any:
        return "categories with missing values"

    def encode(self, X: Any) -> Any:
        return [c if c.dtype.kind in "iub" else marked(c, missing_entries(c)) for c in category_columns(X)]

    def _weights(self, d: int) -> NDArray[np.float64]:
        return per_column(self.sigma, d) ** -2.0

    def tile(self, block: Block, out: Array) -> None:
        self._tile(block, out, log=False)

    def log_tile(self, block: Block, out: Array) -> None:
        self._tile(block, out, log=True)

    def _tile(self, block: Block, out: Array, *, log: bool) -> None:
        from mercer._loops import tables

        x, z = block.encoded(self)
        tables.mismatch_tile(x, z, self._weights(x.shape[1]), out, log=log)

    def log_diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.zeros(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        """2 Σᵢⱼ Gᵢⱼ kᵢⱼ 1[xₖ ≠ zₖ]/σₖ², for every column k or their sum."""
        if not len(self.theta):
            return np.empty(0)
        log = block.scratch()
        self.log_tile(block, log)
        M = G * np.exp(log.astype(np.float64))
        if np.ndim(self.sigma) == 0:
            return np.array([-2.0 * np.vdot(M, log)])
        x, z = block.encoded(self)
        unequal = M.sum() - np.array([M[x[:, k, None] == z[:, k]].sum() for k in range(x.shape[1])])
        return np.asarray(2.0 * self._weights(x.shape[1]) * unequal)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        pairs = list(zip(x, z)) if isinstance(x, (tuple, list)) else [(x, z)]
        sigmas = np.broadcast_to(self.sigma, (len(pairs),))
        unequal = [a != b if not (is_missing(a) or is_missing(b)) else is_missing(a) != is_missing(b) for a, b in pairs]
        return (-exactly(sum(Fraction(u) / Fraction(float(s)) ** 2 for u, s in zip(unequal, sigmas)))).exp()

    def derivation(self) -> Proof:
        constant = Axiom("q", "constant: phi(x) = √q", condition="q = exp(−1/σₖ²) > 0")
        column = SUM("q + (1 − q)·1[xₖ = zₖ]", constant, Delta().proof(), condition="0 < q < 1")
        return PRODUCT(self, column, condition="one factor per column; a missing value is a category")
