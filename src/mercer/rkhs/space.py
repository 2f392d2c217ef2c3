"""Requirements of the Hilbert space on kernels, matrices and points, shared by functions, geometry and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.data.frames import is_frame
from mercer.data.points import Array, Points, concatenate
from mercer.errors import InvalidInput
from mercer.gram import Gram, TiledGram
from mercer.kernels.base import Kernel, Similarity, Weight


def hilbert(kernel: Any) -> Kernel:
    """The kernel, if a Hilbert space belongs to it."""
    if isinstance(kernel, Kernel):
        return kernel
    raise InvalidInput(
        "Lengths and distances need a kernel: only a positive semidefinite function is an inner product",
        got=f"the smoothing weight {kernel!r}" if isinstance(kernel, Weight) else repr(kernel),
        advice="Use a kernel such as mc.Gaussian or mc.Matern, which has a Hilbert space.",
    )


def streamed(similarity: Similarity, X: Any, Z: Any = None, dtype: Any = None) -> Gram:
    """The matrix for a single product: tiles are computed, used and discarded, even if all of them would fit."""
    return TiledGram(similarity, similarity.pair(X, Z, dtype))


def finite(values: Array, what: str) -> Array:
    """The values, if none of them overflowed."""
    if np.isfinite(values).all():
        return values
    raise InvalidInput(
        f"{what} must fit {values.dtype}", got="an overflow", advice="Rescale the points or the coefficients."
    )


def joined(x: Points, z: Points) -> Points:
    """Two point sets as one, x first; positions among the same points stay known."""
    try:
        raw = concatenate(x.raw, z.raw)
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(
            "Both data sets must have the same columns", got=str(error), advice="Select the same columns from both."
        ) from None
    known = x.index is not None and z.index is not None and x.among == z.among
    return Points(raw, np.concatenate([x.index, z.index]) if known else None, x.among if known else None)


def same_points(x: Points, z: Points) -> bool:
    """Whether two point sets are the same objects in the same order, as far as == can tell."""
    a, b = x.raw, z.raw
    if a is b:
        return True
    if x.n != z.n or type(a) is not type(b):
        return False
    if sp.issparse(a):
        return a.shape == b.shape and (a != b).nnz == 0
    if is_frame(a):
        return bool(a.equals(b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    try:
        return bool(a == b)
    except ValueError:  # lists of arrays
        return all(u is v or (np.shape(u) == np.shape(v) and np.array_equal(u, v)) for u, v in zip(a, b, strict=True))
