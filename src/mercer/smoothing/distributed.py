"""Sums of a kernel over many rows on a Dask cluster: densities, and weighted means of targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.cluster import in_memory, is_dask
from mercer.data.dask_rows import DaskRows
from mercer.data.vectors import as_vectors
from mercer.errors import InvalidInput
from mercer.kernels.base import Similarity
from mercer.smoothing.sums import Sums, over_batches


def sums_on_cluster(similarity: Similarity, rows: Any, V: Any, Z: Any, *, tolerance: float = 1e-8) -> Sums:
    """Σᵢ w(zⱼ, xᵢ) Vᵢ over many rows xᵢ on a Dask cluster, at queries zⱼ in memory.

    With a column of ones the sums are densities up to a constant; divided by that column, sums of targets are the
    weighted means of Nadaraya and Watson. Every worker sums over its rows, and only the sums come back.

    Parameters
    ----------
    similarity : Similarity
        w, a kernel or a smoothing weight of vectors.
    rows : dask.array.Array, dask.dataframe.DataFrame, DaskRows or DaskFiles
        The n rows of numbers.
    V : array
        The numbers that are summed, shape (n, c), NumPy's or Dask's.
    Z : array
        The m queries.
    tolerance : float
        The error, relative to the sum of sizes.

    Returns
    -------
    Sums
        With `log_scale`, shape (m,), and `totals`, shape (m, 1, c): the sums are exp(log_scale) · totals, and do not
        underflow far from all rows.

    Examples
    --------
    >>> import dask.array as da, mercer as mc
    >>> x = np.linspace(0.0, 6.0, 601)[:, None]
    >>> V = np.hstack([np.ones_like(x), np.sin(x)])
    >>> found = mc.sums_on_cluster(mc.Gaussian(0.1), da.from_array(x, chunks=(100, 1)), V, [[1.5], [100.0]])
    >>> (found.totals[:, 0, 1] / found.totals[:, 0, 0]).round(2)     # the mean of the targets near each query
    array([ 0.99, -0.28])
    >>> density = found.values[:, 0, 0] / (len(x) * 0.1 * np.sqrt(2 * np.pi))
    >>> density.round(3)
    array([0.166, 0.   ])
    """
    if is_dask(rows):
        with DaskRows(rows) as held:
            return sums_on_cluster(similarity, held, V, Z, tolerance=tolerance)
    if not isinstance(rows, DaskRows):
        raise InvalidInput(
            "Rows on a cluster must be Dask's, or a DaskRows",
            got=type(rows).__name__,
            advice="Pass dask.array.from_array(X), or fit mc.ParzenDensity or mc.NadarayaWatsonRegressor to them.",
        )
    values = np.asarray(in_memory(V), dtype=np.float64)
    if values.ndim != 2 or len(values) != rows.n or not np.isfinite(values).all():
        raise InvalidInput(
            f"V must hold finite numbers, one row per row of X: shape ({rows.n}, c)",
            got=f"shape {values.shape}" if np.isfinite(values).all() else "NaN or inf",
            advice="Pass np.ones((n, 1)) for a density, and targets as further columns.",
        )
    return over_batches(similarity, rows, values, similarity.prepare(as_vectors(Z)), tolerance=float(tolerance))
