"""Maps of images: their pixels as rows, and explicit features of the match kernel of patches (`mc.Patches`).

The feature map of a patch kernel is infinite. Its projection onto the span of a few anchor patches (Nyström) is not,
and a sum over positions with Gaussian weights around the points of a grid is the feature map of a kernel of positions.
Both together are a convolutional network of one layer that needs no labels (Mairal, Koniusz, Harchaoui, Schmid 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.images import as_images
from mercer.errors import InvalidInput
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number, generator

SAMPLED = 20_000
"""Patches among which anchors are chosen."""
ROUNDS = 10
"""Rounds of k-means that move the anchors."""
PATCHES = 2**14
"""Patches whose features are computed at a time."""


def pixels(X: Any) -> Array:
    """Every image as one row of all its pixels, for kernels on vectors: `mc.Polynomial(4, c=1.0).after(mc.pixels)`.

    >>> pixels(np.zeros((5, 8, 8))).shape
    (5, 64)
    """
    images = as_images(X)
    return images.reshape(len(images), -1)


def unit_patches(images: Array, size: int) -> tuple[Array, Array]:
    """All patches of size × size pixels divided by their norms, shape (n, h', w', d), and the norms (n, h', w')."""
    if min(images.shape[1:3]) < size:
        raise InvalidInput(
            f"Images must have at least {size} × {size} pixels, like the patches",
            got=f"{images.shape[1]} × {images.shape[2]}",
            advice="Choose a smaller `size`.",
        )
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = windows.reshape(*windows.shape[:3], -1)
    norms = np.sqrt(np.einsum("nhwd,nhwd->nhw", patches, patches))
    return np.divide(patches, norms[..., None], out=np.zeros_like(patches), where=norms[..., None] > 0), norms


@dataclass(frozen=True, eq=False)
class PatchMap(FeatureMap):
    """Σ over patches of their similarities to anchors, around every point of a grid: see `patch_features`.

    Parameters
    ----------
    anchors : array
        Patches of norm 1, shape (m, size · size · channels).
    shape : tuple
        Height, width and channels of the images.
    size : int
        The side of a patch, in pixels.
    sigma, spread : float
        The widths of the kernels of patches and of positions.
    stride : int
        Pixels between the points of the grid.
    """

    anchors: Any
    shape: tuple[int, int, int]
    size: int
    sigma: float
    spread: float
    stride: int

    @property
    def grid(self) -> tuple[Array, Array]:
        """The rows and columns of the points of the grid; some lie a little outside of the image."""
        beyond = self.spread / np.sqrt(2)
        ends = [side - self.size + beyond for side in self.shape[:2]]
        numbers = [max(int(np.ceil((end + beyond) / self.stride)), 1) for end in ends]
        grids = [(end - beyond) / 2 + self.stride * (np.arange(n + 1) - n / 2) for end, n in zip(ends, numbers)]
        return grids[0], grids[1]

    @property
    def dimension(self) -> int:
        rows, columns = self.grid
        return len(rows) * len(columns) * len(self.anchors)

    def _fill(self, X: Any, out: Array) -> None:
        images = as_images(X)
        if images.shape[1:] != tuple(self.shape):
            raise InvalidInput(
                f"Images must have {' × '.join(map(str, self.shape))} pixels and channels, as those of the map",
                got=" × ".join(map(str, images.shape[1:])),
                advice="Make the map for these images: mc.patch_features(k, X).",
            )
        Z = np.asarray(self.anchors, dtype=out.dtype)
        values, vectors = np.linalg.eigh(np.exp((np.asarray(self.anchors) @ Z.T - 1.0) / self.sigma**2))
        kept = values > 1e-10 * values[-1]
        root = ((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T).astype(out.dtype)
        counts = [side - self.size + 1 for side in self.shape[:2]]
        by_rows, by_columns = (self._pooling(grid, n).astype(out.dtype) for grid, n in zip(self.grid, counts))
        step = max(1, PATCHES // (counts[0] * counts[1]))
        for start in range(0, len(images), step):
            units, norms = unit_patches(images[start : start + step].astype(out.dtype, copy=False), self.size)
            similar = units @ Z.T
            similar -= 1.0
            similar *= 1.0 / self.sigma**2
            np.exp(similar, out=similar)
            similar *= norms[..., None]
            pooled = np.einsum("ah,nhwm->nawm", by_rows, similar, optimize=True)
            pooled = np.einsum("bw,nawm->nabm", by_columns, pooled, optimize=True)
            out[start : start + step] = (pooled @ root).reshape(len(units), -1)

    def _pooling(self, grid: Array, n: int) -> Array:
        """Weights of n positions around points of a grid; sums over the grid of their products are Gaussian."""
        width = self.spread / np.sqrt(2)
        weights = np.exp(-0.5 * ((grid[:, None] - np.arange(n)) / width) ** 2)
        return np.asarray(weights * np.sqrt(self.stride / (width * np.sqrt(np.pi))))

    def _term(self, j: int, x: Variables) -> Term:
        m, columns = len(self.anchors), len(self.grid[1])
        return atom(f"patch{j % m}({j // m // columns},{j // m % columns})")


def patch_features(kernel: Any, X: Any, anchors: int = 128, *, stride: int = 2, seed: Any = 0) -> PatchMap:
    """Explicit features of `mc.Patches` with anchors chosen among the patches of X, in time linear in the images.

    Whatever the anchors are, `mc.Linear().after(phi)` is a kernel. To choose them in `fit`, and never on rows that are
    held out, pass models a rule: `kernel=lambda X: mc.Linear().after(mc.patch_features(k, X))`.

    Parameters
    ----------
    kernel : Kernel
        A `Patches` kernel.
    X : array, frame or list of objects
        Images from which the anchors are learned, by spherical k-means.
    anchors : int
        Their number; the more, the closer phi(x)ᵀphi(z) is to the kernel.
    stride : int
        Pixels between the points of the grid; up to about `spread` it costs no accuracy.
    seed : int
        Of the random choices.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> k = mc.Patches(size=3)
    >>> phi = mc.patch_features(k, X, anchors=64)
    >>> K = k(X)
    >>> bool(abs(phi(X) @ phi(X).T - K).max() < 0.05 * K.max())
    True
    """
    number = check_whole_number(anchors, "anchors")
    check_whole_number(stride, "stride")
    images, rng = as_images(X), generator(seed)
    some = images[rng.permutation(len(images))[:1000]]
    units, norms = unit_patches(some.astype(np.float64, copy=False), kernel.size)
    candidates = units[norms > 0]
    if not len(candidates):
        candidates = np.full((1, units.shape[-1]), units.shape[-1] ** -0.5)  # all images are black
    candidates = candidates[rng.permutation(len(candidates))[:SAMPLED]]
    centres = np.unique(candidates[: 4 * number], axis=0)
    centres = centres[rng.permutation(len(centres))[:number]]
    for _ in range(ROUNDS):
        nearest = (candidates @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, candidates)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centres)
    return PatchMap(centres, tuple(images.shape[1:]), kernel.size, kernel.sigma, kernel.spread, int(stride))
