"""Kernels on point clouds: samples of distributions, of any number of points each, compared by their mean embeddings.

The mean embedding of a cloud is the mean of k(x', ·) over its points. Its inner products are means of k over all pairs
of points, and its distance is the maximum mean discrepancy. So a Gaussian of this distance needs nothing new:
exp(−MMD²/2σ²) is `(MeanEmbedding(k) / σ**2).exp().normalize()`, a kernel by the rules of the algebra.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer.data.arrays import meaning
from mercer.data.objects import objects_of
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.kernels.about import About
from mercer.kernels.algebra.parts import OverParts
from mercer.kernels.base import Similarity
from mercer.kernels.spaces import ANY, TABLE, VECTORS, Space, dimension
from mercer.kernels.vectors.radial import Gaussian


class Clouds(Space):
    """Matrices with one row per point, of different numbers of points."""

    __slots__ = ()
    instead = "If the rows have an order, as those of a time series, pass kernel=mc.Signature(3).normalize()."

    def sample(self, kernel: Similarity, n: int, rng: np.random.Generator) -> Any:
        d = dimension(kernel)
        return [rng.normal(size=(rng.integers(1, 5), d)) + rng.normal(size=d) for _ in range(n)]

    def holds_all(self, objects: list[Any]) -> bool:
        """Matrices of floats whose rows have no order."""
        return meaning(objects) == "clouds"

    def kernels(self, X: Any) -> dict[str, Similarity]:
        """Gaussians of the distance between distributions, in units of the median distances of points and clouds."""
        from mercer.kernels.vectors.median import median_gaussian

        MeanEmbedding(Gaussian(1.0)).prepare(X)  # an error names the cloud and its row
        some = [x[:: -(-len(x) // POINTS)] for x in X[:: -(-len(X) // CLOUDS_EXAMINED)]]
        width = float(median_gaussian(np.concatenate(some)).sigma)
        wide, narrow = (MeanEmbedding(Gaussian(share * width)) for share in (1.0, 0.3))
        return {
            "distributions": _by_distance(wide, some),
            "distributions in detail": _by_distance(narrow, some),
            "mean embeddings": wide.normalize(),
        }


CLOUDS = Clouds("clouds")
CLOUDS_EXAMINED, POINTS = 60, 60
"""Clouds, and points of each, that the widths of a model without a kernel are taken from."""


def _by_distance(embedding: MeanEmbedding, clouds: list[Any]) -> Similarity:
    """exp(−MMD²/2σ²), σ² the median of MMD² over pairs of these clouds."""
    K = embedding(clouds)
    squares = np.diag(K)[:, None] + np.diag(K) - 2.0 * K
    apart = squares[np.triu_indices(len(K), 1)]
    apart = apart[apart > np.sqrt(np.finfo(float).eps) * K.max()]  # smaller ones have lost half of their digits
    variance = float(np.median(apart)) if len(apart) else 1.0
    return (embedding / variance).exp().normalize()


class MeanEmbedding(OverParts):
    """The mean of k(x', z') over all points x' of one cloud and z' of another: ⟨μ(x), μ(z)⟩ of their mean embeddings.

    A cloud is a matrix with one row per point; clouds may differ in their number of points. The Gaussian of the
    distance between embeddings, exp(−MMD²/2σ²), is `(MeanEmbedding(k) / σ**2).exp().normalize()`.

    Parameters
    ----------
    kernel : Kernel
        The kernel on points; with a characteristic one, such as a Gaussian, different distributions differ.

    References
    ----------
    Smola et al. 2007, A Hilbert space embedding for distributions; Christmann and Steinwart 2010, Universal kernels on
    non-standard input spaces.

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> clouds = [np.array([[0.0], [1.0]]), np.array([[3.0]])]
    >>> mc.MeanEmbedding(mc.Linear())(clouds)
    array([[0.25, 1.5 ],
           [1.5 , 9.  ]])
    >>> k = (mc.MeanEmbedding(mc.Gaussian(1.0)) / 0.5 ** 2).exp().normalize()
    >>> k(clouds).round(4)
    array([[1.    , 0.0364],
           [0.0364, 1.    ]])
    """

    about: ClassVar[About] = About(
        "the mean of k(x′, z′) over points x′ of x and z′ of z",
        "Point clouds and samples of distributions, of different sizes.",
        "MeanEmbedding(Gaussian(sigma=1.0))",
    )

    kernel: Any
    space: ClassVar[str] = CLOUDS

    def check(self) -> None:
        super().check()
        if self.inner.space not in (VECTORS, TABLE, ANY):
            raise InvalidInput(
                "The kernel on points must be a kernel on vectors",
                got=f"{self.inner!r} on {self.inner.space}",
                advice="For bags of other objects write k.over(parts, mean=True).",
            )

    @property
    def averaged(self) -> bool:
        return True

    def split(self, X: Any) -> list[Any]:
        return [_cloud(x, i) for i, x in enumerate(objects_of(X, "Clouds"))]

    def __repr__(self) -> str:
        return f"MeanEmbedding({self.inner!r})"


def _cloud(x: Any, position: int) -> Any:
    try:
        return as_vectors(x)
    except InvalidInput as error:
        raise type(error)(f"Cloud {position}: {error.required}", got=error.got, advice=error.advice) from None
