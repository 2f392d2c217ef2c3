"""The matrix k(x, z) of objects on a Dask cluster: lazily, one block of rows per partition."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mercer import threads
from mercer.data.batches import joined
from mercer.data.cluster import Array, Cluster, is_bag, is_dask, row_blocks
from mercer.errors import InvalidInput


def lazy_gram(kernel: Any, X: Any, Z: Any, dtype: Any) -> Any:
    """K(X, Z) as a Dask array with the blocks of rows of X, a bag of objects, an array or a frame.

    The objects of Z, by default all of X, are one task, whose result every worker holds. Partitions of unknown sizes
    are counted first.

    >>> import dask.bag, mercer as mc
    >>> words = dask.bag.from_sequence(["banana", "ananas", "tree"], npartitions=2)
    >>> K = mc.Spectrum(2)(words)
    >>> K.shape, K.chunks, K.compute(scheduler="sync").tolist()
    ((3, 3), ((2, 1), (3,)), [[9.0, 8.0, 0.0], [8.0, 9.0, 0.0], [0.0, 0.0, 3.0]])
    """
    if not is_dask(X):
        raise InvalidInput(
            "The rows of a lazy matrix must be a collection of Dask",
            got=f"{type(X).__name__} for X, and Dask for Z",
            advice="Swap them and transpose, kernel(Z, X).T, or compute Z first.",
        )
    cluster = Cluster()
    blocks = _blocks(X)
    other = cluster.task(_all, *(blocks if Z is None else _blocks(Z) if is_dask(Z) else [cluster.value(Z)]))
    lengths = cluster.result(cluster.task(_listed, *[cluster.task(_length, block) for block in blocks]))
    if not sum(lengths):
        raise InvalidInput("Objects of Dask must not be empty", got="none", advice="Check how they were selected.")
    columns = sum(lengths) if Z is None else cluster.result(cluster.task(_length, other))
    kind = np.dtype(np.float64 if dtype is None else dtype)
    whole = cluster.task(_prepared, kernel, other)
    rows = [cluster.task(_rows, kernel, block, whole, kind) for block, n in zip(blocks, lengths) if n]
    return cluster.stacked(rows, [(n, columns) for n in lengths if n], kind)


def _blocks(X: Any) -> list[Any]:
    return list(X.to_delayed()) if is_bag(X) else row_blocks(X)


# -- what runs on workers ----------------------------------------------------------------------------------------------


def _objects(block: Any) -> Any:
    """The objects of a partition: those of a bag may come as an iterator."""
    return block if hasattr(block, "__len__") else list(block)


def _length(block: Any) -> int:
    return len(_objects(block))


def _all(*blocks: Any) -> Any:
    """The objects of several partitions, one after the other."""
    some = [part for part in map(_objects, blocks) if len(part)]
    if isinstance(some[0], list):
        return [x for part in some for x in part]
    return reduce(joined, some)


def _listed(*parts: Any) -> list[Any]:
    return list(parts)


def _prepared(kernel: Any, objects: Any) -> Any:
    return kernel.prepare(objects)


def _rows(kernel: Any, block: Any, other: Any, dtype: Any) -> Array:
    with threads.alone():
        K: Array = kernel(_objects(block), other, dtype=dtype)
    return K
