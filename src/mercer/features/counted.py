"""Counted features as columns: all features that occur in some objects, or all features spread over a few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.points import Encoder, Points
from mercer.features.base import Array, FeatureMap
from mercer.features.terms import Term, Variables, atom
from mercer.validation import check_whole_number


class _Counted(FeatureMap):
    """The shared part of both maps: sparse images, made dense only on request."""

    encoder: Encoder

    def _columns(self, keys: NDArray[np.uint64]) -> tuple[Array, Array]:
        """The column of every key, −1 if it has none, and its sign."""
        raise TypeError("a map of counted features says where a feature goes")

    def sparse(self, X: Any) -> sp.csr_array:
        """phi(x) for every object as a sparse matrix, which linear models take as it is."""
        counts = Points(X).encoded(self.encoder)
        columns, signs = self._columns(counts.keys)
        known = columns >= 0
        most = max(len(counts), self.dimension, len(counts.keys))
        short = np.int32 if most < 2**31 else np.int64  # many linear models take no longer indices
        entries = (counts.values * signs)[known], (counts.rows[known].astype(short), columns[known].astype(short))
        return sp.csr_array(sp.coo_array(entries, shape=(len(counts), self.dimension)))

    def _fill(self, X: Any, out: Array) -> None:
        out[...] = self.sparse(X).toarray()


@dataclass(frozen=True)
class CountMap(_Counted):
    """phi_g(x) = how often feature g occurs in x, for the features g that occur in given objects.

    Features that occurred in none of them have no column, so phi(x)ᵀphi(z) = k(x, z) if x or z is one of the objects.

    Parameters
    ----------
    encoder
        The kernel whose features these are.
    keys : tuple of int
        The features, as 64-bit keys in increasing order.
    labels : tuple of str
        Their names, if the kernel can spell them.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.NGrams(2).features(["banana", "bandana"])
    >>> phi.dimension, sorted(phi.names)
    (5, ['an', 'ba', 'da', 'na', 'nd'])
    >>> float(phi.sparse(["ananas"]).sum())
    4.0
    """

    encoder: Any
    keys: tuple[int, ...]
    labels: tuple[str, ...] = ()

    @property
    def dimension(self) -> int:
        return len(self.keys)

    def _columns(self, keys: NDArray[np.uint64]) -> tuple[Array, Array]:
        known = np.array(self.keys, dtype=np.uint64)
        at = np.searchsorted(known, keys)
        at[at == len(known)] = 0
        found = known[at] == keys if len(known) else np.zeros(len(keys), bool)
        return np.where(found, at, -1), np.ones(len(keys))

    def _term(self, j: int, x: Variables) -> Term:
        return atom(self.labels[j] if self.labels else f"#{self.keys[j]:016x}")


@dataclass(frozen=True)
class HashedMap(_Counted):
    """Every feature added to one of m columns, with a random sign: E phi(x)ᵀphi(z) = k(x, z).

    The variance falls as 1/m. No data is looked at, so new features need no new map (feature hashing).

    Parameters
    ----------
    encoder
        A kernel of counted features.
    columns : int
        m, the number of columns.
    seed : int
        Which of all such maps.

    References
    ----------
    Weinberger et al. 2009, Feature hashing for large scale multitask learning.

    Examples
    --------
    >>> import mercer as mc
    >>> phi = mc.hashed_features(mc.NGrams(3), 256)
    >>> phi.sparse(["a text", "another text"]).shape
    (2, 256)
    """

    encoder: Any
    columns: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole_number(self.columns, "columns", owner="HashedMap")
        check_whole_number(self.seed, "seed", least=0, owner="HashedMap")

    @property
    def dimension(self) -> int:
        return self.columns

    def _columns(self, keys: NDArray[np.uint64]) -> tuple[Array, Array]:
        bits = mixed(keys ^ mixed(np.array([self.seed + 1], np.uint64)))
        return (bits >> np.uint64(1)) % np.uint64(self.columns), np.where(bits & np.uint64(1), 1.0, -1.0)

    def _term(self, j: int, x: Variables) -> Term:
        return atom(f"h{j}")


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64-bit keys, well mixed, so that every bit of the result depends on every bit of the key (splitmix64).

    >>> mixed(np.array([0, 1], np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    bits = keys + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hashed_features(kernel: Any, columns: int = 4096, *, seed: int = 0) -> HashedMap:
    """A random map of m columns whose inner products estimate a kernel of counted features, without looking at data.

    >>> import mercer as mc
    >>> mc.hashed_features(mc.NGrams(2), 8)(["banana"]).shape
    (1, 8)
    """
    return HashedMap(kernel, columns, seed)
