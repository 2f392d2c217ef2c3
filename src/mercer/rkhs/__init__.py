"""The reproducing kernel Hilbert space: functions, distances and means, computed from kernel values alone.

A kernel k is the inner product of a space of functions. Its elements are the sums f = Σ cᵢ k(xᵢ, ·) and their limits;
phi(x) = k(x, ·) is one of its feature maps, and ⟨k(x, ·), k(z, ·)⟩ = k(x, z) makes every inner product a sum of kernel
values: ⟨f, g⟩ = Σᵢⱼ aᵢ bⱼ k(xᵢ, zⱼ). Taking g = k(x, ·) gives the reproducing property ⟨f, k(x, ·)⟩ = f(x), after
which the space is named: to evaluate is to project (lecture 002).

So everything that is written in inner products can be computed, for any objects with a kernel. `expansion` has lengths
and angles of functions; `geometry` has distances between points and to their mean, centring and neighbours; `embedding`
has the mean of a sample as a function, the distance of two samples and the dependence of two variables. Coordinates
exist only if the feature map is finite: then f collapses to one weight per feature and the model is parametric. With a
Gaussian kernel the model grows with the data: it is non-parametric (lectures 000 and 002).
"""

from mercer.rkhs.embedding import KernelTest, hsic, mean_embedding, mmd
from mercer.rkhs.expansion import Expansion, Pruning
from mercer.rkhs.geometry import centre, distance, distance_to_mean, mean_coordinates, nearest
from mercer.rkhs.posterior import Posterior

__all__ = [
    "Expansion",
    "KernelTest",
    "Posterior",
    "Pruning",
    "centre",
    "distance",
    "distance_to_mean",
    "hsic",
    "mean_coordinates",
    "mean_embedding",
    "mmd",
    "nearest",
]
