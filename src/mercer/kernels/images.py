"""Kernels on images: patches that look alike at places that are near each other."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer import _loops
from mercer.data.arrays import meaning
from mercer.data.images import as_images
from mercer.data.points import Array, Points
from mercer.errors import InvalidInput
from mercer.features.images import unit_patches
from mercer.kernels.about import About, Argument
from mercer.kernels.algebra.parameters import positive
from mercer.kernels.algebra.proof import Axiom, Proof
from mercer.kernels.base import Kernel, Similarity, Tags
from mercer.kernels.block import Block
from mercer.kernels.spaces import Space
from mercer.threads import over
from mercer.validation import check_whole_number

ANCHORS = 64
"""Patches to which a model without a kernel compares those of its images."""
EXAMINED = 500
"""Images that the widths of its kernels are taken from."""


class Images(Space):
    """Small gray images, a little larger than the patches of the kernel."""

    __slots__ = ()
    instead = (
        "If these arrays are time series, pass kernel=mc.Signature(3).normalize(); if they are point clouds, "
        "kernel=mc.MeanEmbedding(mc.Gaussian(1.0))."
    )

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        side = 2 + max(getattr(leaf, "size", 1) for leaf in kernel.leaves)
        return list(rng.random((n, side, side)))

    def holds_all(self, objects: list[Any]) -> bool:
        """Square arrays of one size, arrays of bytes, and arrays with the channels of colours."""
        return meaning(objects) == "images"

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Patches around anchors that are learned from these images, and pixels."""
        from mercer.features.images import patch_features, pixels
        from mercer.kernels.vectors.dot import Linear
        from mercer.kernels.vectors.median import median_gaussian

        images = as_images(X)
        patches = Patches(0.5, 2.0, size=min(5, *(side // 2 for side in images.shape[1:3])))
        phi = patch_features(patches, images, ANCHORS)
        some = images[:: -(-len(images) // EXAMINED)]
        return {
            "patches": median_gaussian(phi(some)).after(phi),
            "linear patches": Linear().after(phi).normalize(),
            "pixels": median_gaussian(pixels(some)).after(pixels),
        }


IMAGES = Images("images")


class Patches(Kernel):
    """Σ_p Σ_q ‖a_p‖ ‖b_q‖ exp(−(1 − cos(a_p, b_q))/σ²) exp(−‖p − q‖²/2τ²) over the patches a_p and b_q of two images.

    Two images are similar if patches that look alike are at places that are near each other. All pairs of patches are
    compared: use `mc.patch_features` for more than a few hundred images, and `.normalize()` if brightness should not
    matter.

    Parameters
    ----------
    sigma : float
        The width σ on the unit sphere of patches: smaller values tell patches of similar directions apart.
    spread : float
        τ, by how many pixels a pattern may move.
    size : int
        The side of a patch, in pixels.

    References
    ----------
    J. Mairal, P. Koniusz, Z. Harchaoui and C. Schmid, Convolutional kernel networks, NIPS 2014; L. Bo, X. Ren and
    D. Fox, Kernel descriptors for visual recognition, NIPS 2010.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> images = np.zeros((3, 8, 8))
    >>> images[0, 2:6, 2], images[1, 2:6, 3], images[2, 2, 2:6] = 1.0, 1.0, 1.0     # |, | one pixel further, and —
    >>> mc.Patches(size=3, sigma=0.5, spread=2.0).normalize()(images).round(2)
    array([[1.  , 0.88, 0.26],
           [0.88, 1.  , 0.3 ],
           [0.26, 0.3 , 1.  ]])
    """

    about: ClassVar[About] = About(
        "Σ ‖a‖‖b‖ exp((cos(a, b) − 1)/σ²) exp(−‖p − q‖²/2τ²), w × w",
        "Images: patches that look alike at places near each other.",
        "Patches(sigma=0.5, spread=2.0, size=3)",
        arguments={"size": Argument("w", "whole number ≥ 1"), "spread": Argument("τ")},
    )

    sigma: float = positive(0.5)
    spread: float = positive(2.0)
    size: int = 5
    space: ClassVar[str] = IMAGES
    tags: ClassVar[Tags] = Tags(nonnegative=True)

    def check(self) -> None:
        self._set(size=check_whole_number(self.size, "size", such_as=5))

    @property
    def encoding(self) -> Any:
        return "images"

    def encode(self, X: Any) -> Array:
        return as_images(X)

    def _patches(self, points: Points) -> tuple[Array, Array]:
        """The patches of all images, of norm 1, and their norms, position by position."""

        def make() -> tuple[Array, Array]:
            units, norms = unit_patches(points.encoded(self).astype(np.float64, copy=False), self.size)
            return units.reshape(len(units), -1, units.shape[-1]), norms.reshape(len(norms), -1)

        return points.once(("patches", self.size), make)

    def _near(self, images: Array) -> NDArray[np.float64]:
        """exp(−‖p − q‖²/2τ²) for all pairs of positions."""
        sides = [np.arange(side - self.size + 1.0) for side in images.shape[1:3]]
        by_row, by_column = (np.exp(-0.5 * ((s[:, None] - s) / self.spread) ** 2) for s in sides)
        return np.asarray(np.kron(by_row, by_column), dtype=np.float64)

    def touch(self, points: Points) -> None:
        super().touch(points)
        self._patches(points)

    def tile(self, block: Block, out: Array) -> None:
        pair = block.pair
        (a, a_norms), (b, b_norms) = self._patches(pair.x), self._patches(pair.z)
        near = pair.once(("near", self), lambda: self._near(pair.x.encoded(self)))
        require_same_size(pair.x.encoded(self), pair.z.encoded(self))
        for i in range(block.shape[0]):
            if over():
                return
            x, weights = a[block.rows.start + i], a_norms[block.rows.start + i][:, None] * near
            seen = np.flatnonzero(a_norms[block.rows.start + i])
            for j in range(i + 1 if block.diagonal else block.shape[1]):
                out[i, j] = self._pair(x[seen], b[block.cols.start + j], weights[seen], b_norms[block.cols.start + j])
                if block.diagonal:
                    out[j, i] = out[i, j]

    def _pair(self, x: Array, z: Array, weights: Array, norms: Array) -> float:
        seen = np.flatnonzero(norms)
        similar = x @ z[seen].T
        similar -= 1.0
        np.minimum(similar, 0.0, out=similar)  # cos ≤ 1, and a small σ would amplify a rounding above
        similar *= 1.0 / self.sigma**2
        if similar.size:
            _loops.tiles.exp_(similar)
        return float(np.einsum("pq,pq,q->", similar, weights[:, seen], norms[seen], optimize=False))

    def diagonal(self, points: Points) -> NDArray[np.float64]:
        (a, norms), near = self._patches(points), self._near(points.encoded(self))
        return np.array([self._pair(x, x, n[:, None] * near, n) for x, n in zip(a, norms)])

    def derivation(self) -> Proof:
        return Axiom(
            self,
            "sum over all pairs of parts of a kernel of parts, which is a product of Gaussians of directions and of "
            "positions, and of one factor for each of both",
            condition=f"σ = {self.sigma:g} > 0, τ = {self.spread:g} > 0",
            reference="Haussler 1999, Convolution kernels on discrete structures; Schoenberg 1938",
        )


def require_same_size(x: Array, z: Array) -> None:
    """Raise if two data sets have images of different sizes."""
    if x.shape[1:] != z.shape[1:]:
        raise InvalidInput(
            "Both data sets must have images of the same size and channels",
            got=f"{x.shape[1:]} and {z.shape[1:]}",
            advice="Crop or resize them first.",
        )
