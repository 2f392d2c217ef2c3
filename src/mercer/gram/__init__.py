"""The Gram matrix K, Kᵢⱼ = k(xᵢ, xⱼ): all that a learning algorithm needs to know about the data.

Whether it is stored or recomputed tile by tile is decided here by the memory budget, and no solver notices.
"""

from __future__ import annotations

from typing import Any

from mercer.errors import InvalidInput
from mercer.gram.base import Gram
from mercer.gram.dense import DenseGram
from mercer.gram.tiled import KernelGram, TiledGram
from mercer.kernels.base import Similarity
from mercer.memory import budget as _budget

__all__ = ["DenseGram", "Gram", "KernelGram", "TiledGram", "of"]


def of(kernel: Similarity, X: Any, Z: Any = None, *, dtype: Any = None, budget: Any = None) -> KernelGram:
    """The Gram matrix of X (or of X and Z) as an operator within a memory budget.

    Parameters
    ----------
    kernel : Similarity
        The kernel, or a smoothing weight.
    X, Z : array, frame or list of objects
        Data sets, or points that `kernel.prepare` made of them. Without Z the Gram is symmetric.
    dtype
        float32 or float64; by default the dtype of the points.
    budget : int, str or None
        Bytes, or a text such as "2 GB"; by default MERCER_MEMORY, else half of the available memory. A matrix that fits
        is stored (dense); a larger one is recomputed tile by tile and never stored (tiled).

    Examples
    --------
    >>> import numpy as np, mercer as mc
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> G = mc.gram.of(mc.Linear(), X)
    >>> G @ np.ones(3), G.diag()
    (array([ 9., 39., 69.]), array([ 1., 13., 41.]))
    >>> mc.gram.of(mc.Linear(), X, budget=8)
    <TiledGram 3×3 float64 of Linear()>
    """
    if not isinstance(kernel, Similarity):
        raise InvalidInput(
            "`kernel` must be a kernel or a smoothing weight",
            got=repr(kernel),
            advice="Pass an object such as mc.Gaussian(1.0), with its parentheses.",
        )
    pair = kernel.pair(X, Z, dtype)
    limit = _budget(budget)
    if pair.shape[0] * pair.shape[1] * pair.dtype.itemsize <= limit:
        return DenseGram(kernel, pair)
    return TiledGram(kernel, pair, limit)
