"""Pairs of data sets and the tiles of their Gram matrix: leaves share products and distances, computed here once.

A `Pair` holds both data sets in the Gram's dtype: centred with a common centre for distances, so that offsets do not
cancel digits. A `Block` is one tile of it: it owns the products and squared distances that several leaves use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import _loops, memory
from mercer.data.frames import column_names
from mercer.data.points import Array, Once, Points, View
from mercer.data.vectors import per_column, require_same_width
from mercer.errors import InvalidInput

if TYPE_CHECKING:
    from mercer.kernels.base import Similarity

T = TypeVar("T")

# Squared distances below this share of ‖x‖² + ‖z‖² are recomputed from the differences: the relative error of the
# others is then at most a hundred roundings.
CANCELLATION = 1e-2
# Up to this many columns the differences themselves, which have all digits, are as cheap as a matrix product.
DIRECT_COLUMNS = 4


class Centred(NamedTuple):
    """Both sides minus a common centre, with squared row norms in float64.

    Centring rounds points far from the centre (two distant clusters), so distances that cancel are computed again from
    `x_rows` and `z_rows`: the original data, or the data centred and rescaled in float64.
    """

    x: Any
    z: Any
    x_norms: NDArray[np.float64]
    z_norms: NDArray[np.float64]
    x_rows: Any
    z_rows: Any
    plain: bool  # the centre is so near the origin that x and z are the data itself


class Pair(Once):
    """Two data sets (or one with itself) and the dtype of their Gram matrix."""

    def __init__(
        self,
        x: Points,
        z: Points | None,
        dtype: Any,
        *,
        shared: bool = True,
        scale: tuple[float, ...] | None = None,
    ) -> None:
        super().__init__()
        self.x = x
        self.z = x if z is None else z
        self.same = z is None or z is x
        self.dtype = np.dtype(dtype)
        self.shared = shared
        self.scale = scale
        self.shape = (self.x.n, self.z.n)

    def view(self, view: View) -> Pair:
        def make() -> Pair:
            z = None if self.same else self.z.view(view)
            return Pair(self.x.view(view), z, self.dtype, shared=self.shared)

        return self.once(("view", view), make)

    def rescaled(self, scale: tuple[float, ...]) -> Pair:
        """The same pair, whose distances divide every column by its own scale (after centring, to keep digits)."""
        z = None if self.same else self.z
        return self.once(("rescaled", scale), lambda: Pair(self.x, z, self.dtype, shared=self.shared, scale=scale))

    def widened(self) -> Pair:
        """The same pair, evaluated in float64."""
        z = None if self.same else self.z
        return self.once("wide", lambda: Pair(self.x, z, np.float64, shared=self.shared, scale=self.scale))

    def block(self, rows: slice, cols: slice, workspace: Workspace | None = None) -> Block:
        return Block(self, rows, cols, workspace or Workspace())

    def encoded(self, kernel: Similarity) -> tuple[Any, Any]:
        """Both sides as `kernel.align` makes them comparable (joint category codes, a common vocabulary)."""

        def make() -> tuple[Any, Any]:
            x = self.x.encoded(kernel)
            return kernel.align(x, x if self.same else self.z.encoded(kernel))

        return self.once(("encoded", kernel.encoding), make)

    def vectors(self) -> tuple[Any, Any]:
        """Both sides as float matrices in the Gram's dtype."""

        def make() -> tuple[Any, Any]:
            x, z = self.x.vectors(), self.z.vectors()
            names = column_names(self.x.raw), column_names(self.z.raw)
            if all(names) and names[0] != names[1]:
                raise InvalidInput(
                    "Both data sets must have the same columns in the same order",
                    got=f"{names[0]} and {names[1]}",
                    advice="Select the same columns of both, in the same order.",
                )
            require_same_width(x, z)
            x = x.astype(self.dtype, copy=False)
            z = x if self.same else z.astype(self.dtype, copy=False)
            if sp.issparse(x) != sp.issparse(z):
                x, z = sp.csr_array(x), sp.csr_array(z)
            return x, z

        return self.once("vectors", make)

    def centred(self) -> Centred:
        """Both sides minus the second side's mean, over the scale. Sparse data is not centred."""
        return self.once("centred", self._centre)

    def _centre(self) -> Centred:
        self.vectors()

        def second() -> tuple[Any, Any, NDArray[np.float64]]:
            z, rows = self._centred_side(self.z)
            return z, rows, squared_norms(z)

        # The second side is often a model's data: unless it is large, its layout is kept for every first side.
        small = not self.same and self.z.n * self.vectors()[1].shape[1] <= memory.HELD
        key = "centred", self.dtype.str, self.scale, sp.issparse(self.vectors()[1])
        z, z_rows, z_norms = self.z.once(key, second) if small else second()
        x, x_rows = (z, z_rows) if self.same else self._centred_side(self.x)
        x_norms = z_norms if self.same else squared_norms(x)
        largest = max(x_norms.max(), z_norms.max())
        if not largest < float(np.finfo(self.dtype).max) / 8:
            raise InvalidInput(
                f"Squared distances must fit {self.dtype}",
                got=f"centred points of norm {np.sqrt(largest):.3g} (squared: overflow)",
                advice="Rescale the columns (for example to unit variance)"
                + (", or use float64." if self.dtype == np.float32 else "."),
            )
        return Centred(x, z, x_norms, z_norms, x_rows, z_rows, x is self.vectors()[0])

    def _centred_side(self, side: Points) -> tuple[Any, Any]:
        """The centred points in the Gram's dtype, and the rows for differences."""
        X = side.vectors()
        if sp.issparse(self.vectors()[0]):
            X = sp.csr_array(X).astype(self.dtype)
            return (X, X) if self.scale is None else (self._rescale(X),) * 2
        centre = self.z.mean()
        if self.scale is None:
            rows = X if X.dtype.itemsize > self.dtype.itemsize else X.astype(self.dtype, copy=False)
            if self._near_origin:
                return self.vectors()[0 if side is self.x else 1], rows
            return _minus(X, centre, self.dtype), rows
        rows = self._rescale(_minus(X, centre, np.dtype(np.float64)))
        with np.errstate(over="ignore"):  # the check of the norms reports it
            return rows.astype(self.dtype, copy=False), rows

    @property
    def _near_origin(self) -> bool:
        """Whether centring gains too few digits to be worth a second product: the spread exceeds the offset."""
        Z = self.z.vectors()
        with np.errstate(over="ignore"):
            spread = float(np.sqrt(squared_norms(Z).mean()))
        return bool(np.linalg.norm(self.z.mean()) <= 0.5 * spread) and np.isfinite(spread)

    def _rescale(self, X: Any) -> Any:
        scale = per_column(self.scale, X.shape[1])
        if sp.issparse(X):
            return sp.csr_array(X @ sp.diags_array(1.0 / scale)).astype(self.dtype)
        X /= scale
        return X


def _minus(X: Array, centre: NDArray[np.float64], dtype: np.dtype[Any]) -> Array:
    """X − centre, subtracted in float64 and stored in `dtype`."""
    out = np.empty(X.shape, dtype)
    with np.errstate(over="ignore"):
        np.subtract(X, centre, out=out, casting="same_kind")
    return out


def squared_norms(X: Any) -> NDArray[np.float64]:
    """‖x‖² for every row, accumulated in float64."""
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            wide = X.astype(np.float64)  # squares of float32 have float32 digits
            return np.asarray(wide.multiply(wide).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


class Workspace:
    """Scratch buffers of one worker thread: taken during a tile, returned at its end."""

    def __init__(self) -> None:
        self._buffers: list[Array] = []
        self.used = 0

    def take(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
        size = shape[0] * shape[1] * dtype.itemsize
        if self.used == len(self._buffers):
            self._buffers.append(np.empty(size, np.uint8))
        elif self._buffers[self.used].size < size:
            self._buffers[self.used] = np.empty(size, np.uint8)
        buffer = self._buffers[self.used]
        self.used += 1
        return buffer[:size].view(dtype).reshape(shape)

    def release(self, mark: int = 0) -> None:
        """Return every buffer taken since `used` was `mark`."""
        self.used = mark


class Block:
    """One tile of a pair: row and column slices, and the products and distances that leaves share."""

    def __init__(self, pair: Pair, rows: slice, cols: slice, workspace: Workspace) -> None:
        self.pair, self.rows, self.cols, self.workspace = pair, rows, cols, workspace
        self.shape = (rows.stop - rows.start, cols.stop - cols.start)
        self.dtype = pair.dtype
        self._views: dict[Hashable, Block] = {}
        self._tiles: dict[str, Array] = {}
        self._values: dict[Similarity, Array] | None = None

    @property
    def diagonal(self) -> bool:
        """Whether this tile lies on the diagonal of a symmetric Gram."""
        return self.pair.same and self.rows == self.cols

    def view(self, view: View) -> Block:
        """The same tile of the data seen through `view`."""
        if view not in self._views:
            self._views[view] = self._like(Block(self.pair.view(view), self.rows, self.cols, self.workspace))
        return self._views[view]

    def rescaled(self, scale: tuple[float, ...]) -> Block:
        """The same tile with every column's distances divided by its own scale."""
        if scale not in self._views:
            self._views[scale] = Block(self.pair.rescaled(scale), self.rows, self.cols, self.workspace)
        return self._views[scale]

    def widened(self) -> Block:
        """The same tile, evaluated in float64."""
        if self.dtype == np.float64:
            return self
        if "wide" not in self._views:
            self._views["wide"] = self._like(Block(self.pair.widened(), self.rows, self.cols, self.workspace))
        return self._views["wide"]

    def remembering(self) -> Block:
        """This block, made to keep the values of all nodes of an expression, because derivatives need them again."""
        self._values = {}
        return self

    def _like(self, other: Block) -> Block:
        """Another block on the same data, which keeps values if this one does."""
        return other if self._values is None else other.remembering()

    def evaluate(self, kernel: Similarity, out: Array) -> None:
        """out = k(x, z) for every pair: how a node evaluates its parts."""
        if self._values is None:
            kernel.tile(self, out)
        else:
            np.copyto(out, self.values(kernel))

    def values(self, kernel: Similarity) -> Array:
        """k(x, z) for every pair: read it, do not write to it."""
        known = self._values
        if known is not None and kernel in known:
            return known[kernel]
        tile = self.scratch()
        kernel.tile(self, tile)
        if known is not None:
            tile.flags.writeable = False
            known[kernel] = tile
        return tile

    def scratch(self) -> Array:
        """An uninitialised tile, valid until this block is done."""
        return self.workspace.take(self.shape, self.dtype)

    def encoded(self, kernel: Similarity) -> tuple[Any, Any]:
        x, z = self.pair.encoded(kernel)
        return x[self.rows], z[self.cols]

    def vectors(self) -> tuple[Any, Any]:
        x, z = self.pair.vectors()
        return x[self.rows], z[self.cols]

    def dot(self, out: Array | None = None) -> Array:
        """⟨x, z⟩ for every pair. Without `out`, the shared tile: read it, do not write to it."""
        return self._tile("dot", self._fill_dot, out)

    def sqdist(self, out: Array | None = None) -> Array:
        """‖x − z‖² for every pair, without cancellation. Without `out`, the shared tile: do not write to it."""
        return self._tile("sqdist", self._fill_sqdist, out)

    def l1(self, out: Array | None = None) -> Array:
        """‖x − z‖₁ for every pair. Without `out`, the shared tile: do not write to it."""
        return self._tile("l1", self._fill_l1, out)

    def _tile(self, name: str, fill: Callable[[Array], None], out: Array | None) -> Array:
        if out is not None and not self.pair.shared:
            fill(out)
            return out
        if name not in self._tiles:
            tile = self.scratch()
            fill(tile)
            tile.flags.writeable = False  # other leaves read it
            self._tiles[name] = tile
        if out is None:
            return self._tiles[name]
        np.copyto(out, self._tiles[name])
        return out

    def _fill_dot(self, out: Array) -> None:
        product(*self.vectors(), out, symmetric=self.diagonal)

    def _fill_sqdist(self, out: Array) -> None:
        c = self.pair.centred()
        x, z, x_norms, z_norms = c.x[self.rows], c.z[self.cols], c.x_norms[self.rows], c.z_norms[self.cols]
        if sp.issparse(x):
            product(x, z, out)
            out *= -2
            out += x_norms[:, None].astype(self.dtype)
            out += z_norms.astype(self.dtype)
            recompute_cancelled(x, z, x_norms, z_norms, out, lambda u, v: squared_norms(u - v))
        elif x.shape[1] <= DIRECT_COLUMNS:
            self._differences(_loops.tiles.sqdist_tile, out)
        else:
            if c.plain and self.pair.shared:
                np.copyto(out, self.dot())
            else:
                product(x, z, out, symmetric=self.diagonal)
            rows = c.x_rows[self.rows], c.z_rows[self.cols]
            _loops.tiles.sqdist_(out, x_norms, z_norms, *rows, CANCELLATION)
        if self.diagonal:
            np.fill_diagonal(out, 0.0)

    def _fill_l1(self, out: Array) -> None:
        if not sp.issparse(self.pair.vectors()[0]):
            self._differences(_loops.tiles.l1_tile, out)
            return
        c = self.pair.centred()
        _sparse_l1(c.x[self.rows], c.z[self.cols], out)
        if self.diagonal:
            np.fill_diagonal(out, 0.0)

    def _differences(self, fill: Callable[[Array, Array, Array], None], out: Array) -> None:
        """Fill `out` from the differences of rows, computed in the precision of the rows."""
        c = self.pair.centred()
        rows = c.x_rows[self.rows], c.z_rows[self.cols]
        wide = np.result_type(*rows)
        if wide == self.dtype:
            fill(*rows, out)
        else:
            tile = self.workspace.take(self.shape, wide)
            fill(*rows, tile)
            out[...] = tile


def product(x: Any, z: Any, out: Array, *, symmetric: bool = False) -> None:
    """out = x zᵀ for dense or sparse rows, with the same bits whether or not x is z, unless `symmetric`."""
    if sp.issparse(x):
        x, z = _occupied(x, z)
        out[...] = (x @ z.T).toarray()
        return
    if not symmetric and np.may_share_memory(x, z):  # NumPy would use BLAS's x xᵀ, whose sums have another order
        z = z.copy()
    np.matmul(x, z.T, out=out)


def _occupied(x: Any, z: Any) -> tuple[Any, Any]:
    """Sparse rows without the columns that are empty in both, if these are most: every column costs time."""
    if x.shape[1] <= x.nnz + z.nnz:
        return x, z
    columns = np.unique(np.concatenate([x.indices, z.indices]))
    width = max(1, len(columns))
    left, right = (
        sp.csr_array((side.data, np.searchsorted(columns, side.indices), side.indptr), shape=(side.shape[0], width))
        for side in (x, z)
    )
    return left, right


def recompute_cancelled(
    x: Any,
    z: Any,
    x_norms: NDArray[np.float64],
    z_norms: NDArray[np.float64],
    out: Array,
    distances: Callable[[Any, Any], NDArray[np.float64]],
) -> None:
    """Recompute cancelled distances of sparse rows, by a function that takes as many rows of both sides."""
    cancelled = np.argwhere(out < CANCELLATION * (x_norms[:, None] + z_norms))
    for start in range(0, len(cancelled), 4096):
        i, j = cancelled[start : start + 4096].T
        out[i, j] = distances(x[i].astype(np.float64), z[j].astype(np.float64))


def _sparse_l1(x: Any, z: Any, out: Array) -> None:
    """‖x − z‖₁ = ‖x‖₁ + ‖z‖₁ − Σ (|xₖ| + |zₖ| − |xₖ − zₖ|), the sum over common non-zero columns only."""
    x_size, z_size = (np.asarray(abs(side.astype(np.float64)).sum(axis=1)).ravel() for side in (x, z))
    x, z = _occupied(x, z)
    columns = z.tocsc()
    for i in range(x.shape[0]):
        row = slice(x.indptr[i], x.indptr[i + 1])
        starts, ends = columns.indptr[x.indices[row]], columns.indptr[x.indices[row] + 1]
        sizes = ends - starts
        # The positions of all entries of these columns, one run after the other.
        at = np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        a, b = np.repeat(x.data[row].astype(np.float64), sizes), columns.data[at].astype(np.float64)
        common = np.bincount(columns.indices[at], np.abs(a) + np.abs(b) - np.abs(a - b), minlength=len(z_size))
        out[i] = x_size[i] + z_size - common
    recompute_cancelled(x, z, x_size, z_size, out, sparse_l1)


def sparse_l1(x: Any, z: Any) -> NDArray[np.float64]:
    """‖x − z‖₁ of every sparse row of x and the same row of z."""
    return np.asarray(abs(x - z).sum(axis=1)).ravel()
