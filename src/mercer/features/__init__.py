"""phi(x): explicit feature maps, exact or approximate.

A kernel is an inner product in a feature space, k(x, z) = phi(x)ᵀphi(z), and phi is not unique: (xᵀz)² in the plane has
the map (x0², √2·x0·x1, x1²) and also (x0², x0·x1, x1·x0, x1²). Where phi is finite it can be written down, named and
built, and then every model is a linear one with a weight per feature. The closure rules of kernels are rules for maps:
multiples scale them, sums stack them, products take all products of features. Where phi is infinite, as for the
Gaussian, it can be cut off with a proven bound (`taylor_features`) or sampled (`fourier_features`). How large phi gets
(15 943 435 565 features for images of 28×28 pixels and degree 4) is why one works with kernels instead.

This package does not depend on kernels: kernels make maps, and maps do not refer back to them.
"""

from mercer.features.base import FeatureMap
from mercer.features.combine import PowerMap, RescaledMap, ScaledMap, StackedMap, TensorMap
from mercer.features.counted import CountMap, HashedMap, hashed_features
from mercer.features.elementary import ConstantMap, FunctionMap, IdentityMap, LinearMap
from mercer.features.fourier import FourierMap, fourier_features
from mercer.features.images import PatchMap, patch_features, pixels
from mercer.features.molecules import Descriptors, Fingerprint, fingerprint, molecule_graph
from mercer.features.monomials import MonomialMap
from mercer.features.series import SignatureMap, TimeMap, add_time, base_point, lead_lag
from mercer.features.subsets import IncidenceMap, SubsetMap
from mercer.features.taylor import TaylorMap, taylor_features
from mercer.features.views import ColumnsMap, ComposedMap

__all__ = [
    "ColumnsMap",
    "ComposedMap",
    "ConstantMap",
    "CountMap",
    "Descriptors",
    "FeatureMap",
    "Fingerprint",
    "FourierMap",
    "FunctionMap",
    "HashedMap",
    "IdentityMap",
    "IncidenceMap",
    "LinearMap",
    "MonomialMap",
    "PatchMap",
    "PowerMap",
    "RescaledMap",
    "ScaledMap",
    "SignatureMap",
    "StackedMap",
    "SubsetMap",
    "TaylorMap",
    "TensorMap",
    "TimeMap",
    "add_time",
    "base_point",
    "fingerprint",
    "fourier_features",
    "hashed_features",
    "lead_lag",
    "molecule_graph",
    "patch_features",
    "pixels",
    "taylor_features",
]
