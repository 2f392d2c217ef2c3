"""Pairs of rows of a table: all columns of categories, or all columns of numbers, in one pass."""

from __future__ import annotations

from .addresses import Array, fits
from .tiles import by_size, filling


def mismatch_tile(A: Array, B: Array, weights: Array, out: Array, *, log: bool = False) -> None:
    """out_ij = exp(-sum_k weights_k [A_ik != B_jk]) for codes A (r, d) and B (c, d), or its logarithm.

    Codes are whole numbers below 2^24 in any dtype: they are compared as numbers of out's dtype.
    """
    fits(A, B, out)
    if weights.shape != A.shape[1:]:
        raise ValueError(f"one weight per column is required: A {A.shape}, weights {weights.shape}")
    filling(out).mismatch_tile(A, B, weights, out, log)


def additive_tile(X: Array, Z: Array, out: Array) -> None:
    """out_ij = mean_k 1/(1 + (X_ik - Z_jk)^2) for the rows of X (r, d) and Z (c, d), in out's dtype.

    The product of two of these denominators must not overflow: differences are below 1e9 in float32, 1e70 in float64.
    """
    fits(X, Z, out)
    filling(out).additive_tile(X, Z, out)


def additive_slopes(X: Array, Z: Array, G: Array) -> Array:
    """2 sum_ij G_ij u^2/(1 + u^2)^2 with u = X_ik - Z_jk, for every column k: float64, shape (d,)."""
    fits(X, Z, G)
    return by_size(G).additive_slopes(X, Z, G)
