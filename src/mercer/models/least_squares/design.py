"""The features of a linear model: its parameter `features`, resolved on the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from mercer.data.points import Points
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.features.base import FeatureMap
from mercer.kernels.algebra.rowwise import UserFunction
from mercer.kernels.algebra.views import Mapped
from mercer.kernels.base import Kernel
from mercer.kernels.custom import FromFeatures
from mercer.kernels.sets import Intersection
from mercer.kernels.vectors.dot import Linear


@dataclass(frozen=True, eq=False)
class Design:
    """The features of a model, resolved on its training rows: phi(x), and the kernel φ(x)ᵀφ(z) that they induce.

    Attributes
    ----------
    kernel : Kernel
        φ(x)ᵀφ(z).
    phi
        The map, or None for the columns themselves.
    implicit : bool
        Whether they come from a kernel, so that the dual form never needs phi.
    """

    kernel: Kernel
    phi: Any
    implicit: bool = False

    @classmethod
    def of(cls, features: Any, points: Points, y: Any) -> Design:
        """The features that the parameter `features` describes; a scikit-learn transformer is cloned and fitted."""
        if features is None:
            return cls(Linear(), None)
        if isinstance(features, Kernel):
            return cls(features, _finite_map(features, points), implicit=True)
        if isinstance(features, type) or not (callable(features) or hasattr(features, "transform")):
            raise InvalidInput(
                "`features` must be None, a feature map, a transformer, a function X → Φ, or a kernel of finite rank",
                got=repr(features),
                advice="Pass a kernel such as mc.Polynomial(5, c=1.0), or lambda X: np.column_stack([X, X**2]).",
            )
        if hasattr(features, "fit") and hasattr(features, "transform"):
            features = clone(features).fit(points.raw, y)
        return cls(FromFeatures(features), features)

    def matrix(self, points: Points) -> Any:
        """Φ, one row per point: an array, or a CSR array if the features are sparse."""
        return points.vectors() if self.phi is None else points.view(Mapped(UserFunction(self.phi))).vectors()

    def dimension(self, points: Points) -> int:
        """The number of features; a map knows it without building any."""
        if isinstance(self.phi, FeatureMap):
            return self.phi.dimension
        return int(self.matrix(points).shape[1])


def _finite_map(kernel: Kernel, points: Points) -> FeatureMap:
    try:
        if kernel.space == "sets":
            return kernel.features(frozenset().union(*points.encoded(Intersection())))
        shape: tuple[int, ...] = getattr(points.raw, "shape", ())
        return kernel.features(shape[1] if len(shape) == 2 else as_vectors(points.raw).shape[1])
    except InvalidInput as error:
        if kernel.tags.finite_rank:
            raise
        raise InvalidInput(
            "A kernel as `features` must have a finite feature map",
            got=error.got,
            advice="Use a model whose name begins with Kernel, which takes any kernel, or approximate features: "
            "mc.fourier_features or mc.taylor_features.",
        ) from None
