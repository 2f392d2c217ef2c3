"""Tanimoto: the share of ones that two rows of bits have in common, compared 64 bits at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._loops import bits
from mercer.data.frames import is_frame
from mercer.data.points import Array, Points
from mercer.data.vectors import as_vectors, require_same_width
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.proof import Proof
from mercer.kernels.base import Kernel, Tags
from mercer.kernels.block import Block, product, squared_norms
from mercer.kernels.ratios import EMPTY, JACCARD, jaccard_
from mercer.kernels.ratios import jaccard as jaccard_interval
from mercer.kernels.vectors.dot import Linear

if TYPE_CHECKING:
    from mercer.kernels.validity.interval import Interval


@dataclass(frozen=True, eq=False)
class Bits:
    """Rows of 0 and 1, 64 to a word.

    Attributes
    ----------
    words : array
        The rows, as uint64.
    sizes : array
        The number of ones in each row.
    columns : int
        The number of bits in a row.
    dtype
        The type of the Gram matrix: float32 if the rows were float32.
    """

    words: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    columns: int
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, X: Any) -> Bits | None:
        """The rows of a matrix, or None if it is not a dense matrix of zeros and ones."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
            return None
        if X.dtype.kind != "b" and not ((X == 0) | (X == 1)).all():
            return None
        words = bits.packed(X != 0 if X.dtype.kind == "f" else X)
        return cls(words, bits.sizes(words), X.shape[1], np.dtype(np.float32 if X.dtype.itemsize < 8 and
                                                                  X.dtype.kind == "f" else np.float64))  # fmt: skip

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        """The bytes of the words."""
        return self.words.nbytes + self.sizes.nbytes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and bits."""
        return len(self.words), self.columns

    def vectors(self) -> Array:
        """The rows as numbers."""
        return bits.unpacked(self.words, self.columns).astype(self.dtype)

    def encoded_rows(self, index: Any) -> Bits:
        """The rows at these positions."""
        return Bits(self.words[index], self.sizes[index], self.columns, self.dtype)

    __getitem__ = encoded_rows


class Tanimoto(Kernel):
    """⟨x, z⟩/(‖x‖² + ‖z‖² − ⟨x, z⟩); for rows of 0 and 1 the ones in common over all ones. 1 for two rows of zeros.

    Dense rows of 0 and 1 (bool, whole numbers or floats) are compared by words of 64 bits; other rows, and sparse ones,
    by inner products. For sets take `Jaccard`, for counts `MinMax`.

    References
    ----------
    Gower 1971, A general coefficient of similarity; Ralaivola et al. 2005, Graph kernels for chemical informatics;
    Swamidass et al. 2005, Kernels for small molecules.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.Tanimoto()([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]).round(4)
    array([[1.    , 0.3333, 0.    ],
           [0.3333, 1.    , 0.    ],
           [0.    , 0.    , 1.    ]])
    """

    about: ClassVar[About] = About(
        "xᵀz/(xᵀx + zᵀz − xᵀz)", "Fingerprints of molecules and other rows of bits.", "Tanimoto()"
    )

    tags: ClassVar[Tags] = Tags(normalised=True)

    def encode(self, X: Any) -> Any:
        """Bits where all entries are 0 or 1, else numbers."""
        rows = X if isinstance(X, np.ndarray) or sp.issparse(X) or is_frame(X) else as_vectors(X)
        bits = Bits.of(rows)
        return as_vectors(X) if bits is None else bits

    @property
    def encoding(self) -> Any:
        return "bits"

    def align(self, x: Any, z: Any) -> tuple[Any, Any]:
        require_same_width(x, z, "Make fingerprints of the same size for both.")
        if isinstance(x, Bits) and isinstance(z, Bits):
            return x, z
        x, z = (side.vectors() if isinstance(side, Bits) else side for side in (x, z))
        return (sp.csr_array(x), sp.csr_array(z)) if sp.issparse(x) != sp.issparse(z) else (x, z)

    def tile(self, block: Block, out: Array) -> None:
        x, z = block.encoded(self)
        if isinstance(x, Bits):
            bits.jaccard_tile(x.words, z.words, x.sizes, z.sizes, out)
            return
        x, z = x.astype(out.dtype, copy=False), z.astype(out.dtype, copy=False)
        a, b = _sizes(x, block.rows.start), _sizes(z, block.cols.start)
        product(x, z, out, symmetric=block.diagonal)
        jaccard_(out, a, b)
        if block.diagonal:
            np.fill_diagonal(out, 1.0)

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        return np.ones(points.n)

    def tile_gradient(self, block: Block, G: Array) -> NDArray[np.float64]:
        return np.empty(0)

    def enclose(self, x: Any, z: Any) -> Interval:
        from mercer.kernels.validity.interval import exactly

        def dot(u: Any, v: Any) -> Interval:
            return exactly(sum((Fraction(p) * Fraction(q) for p, q in zip(u, v)), Fraction(0)))

        return jaccard_interval(dot(x, z), dot(x, x), dot(z, z))

    def derivation(self) -> Proof:
        return JACCARD(self, Linear().derivation(), condition=EMPTY)


def _sizes(X: Any, first: int) -> NDArray[np.float64]:
    """‖x‖² of rows from point `first` on; raise if it is rounded to 0 or has lost digits."""
    norms = squared_norms(X)
    lost = norms < float(np.finfo(X.dtype).tiny)
    if lost.any():
        lost[lost] = np.asarray((X[lost] != 0).sum(axis=1)).ravel() > 0
    if lost.any():
        at = np.flatnonzero(lost)[0]
        raise InvalidInput(
            f"‖x‖² must be 0 or a normal number of {X.dtype}, so that it can be divided by",
            got=f"{norms[at]:.3g} at point {first + at}, whose squares underflow",
            advice="Multiply all points by a large number"
            + (", or use float64." if X.dtype == np.float32 else ": ratios do not change."),
        )
    return norms
