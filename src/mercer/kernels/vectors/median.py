"""The median rule, data → Gaussian kernel. The parameter `kernel` of every model may be such a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Points
from mercer.kernels.vectors.radial import Gaussian

# Rows whose distances are compared: enough for a median, and quick.
SAMPLE = 1000


def median_gaussian(X: Any) -> Gaussian:
    """The Gaussian whose width is the median distance between different points of X: the default of every model.

    At most 1 000 different rows are compared, so that repeating or reordering rows changes nothing. (It changes little
    beyond 20 000 rows, of which only some, spread evenly over X, are used.)

    >>> import mercer as mc
    >>> mc.median_gaussian([[0.0], [1.0], [2.0]])
    Gaussian(sigma=1.0)
    >>> mc.KernelRidge(mc.median_gaussian, alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).kernel_
    Gaussian(sigma=1.0)
    """
    points = X if isinstance(X, Points) else Points(X)
    X = points.vectors()
    X = X[_spread(X.shape[0], 20 * SAMPLE)]
    X = np.unique(X.toarray() if sp.issparse(X) else X, axis=0)
    pair = Gaussian(1.0).pair(X[_spread(len(X), SAMPLE)], dtype=np.float64)
    D = np.empty(pair.shape)
    whole = slice(0, len(D))
    pair.block(whole, whole).sqdist(D)
    apart = D[np.triu_indices(len(D), 1)]
    apart = apart[apart > 0]
    width = float(np.sqrt(np.median(apart))) if apart.size else 1.0
    return Gaussian(width if np.isfinite(width) and width > 0 else 1.0)


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """At most `most` positions, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
