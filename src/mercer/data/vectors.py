"""Vectors: any data set of numbers as a float matrix, checked and never silently altered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.frames import arrays, column_names, is_frame
from mercer.data.missing import missing_entries
from mercer.errors import InvalidInput, InvalidType, MissingValues
from mercer.validation import real_numbers

Array = NDArray[Any]


def not_two_dimensional(shape: tuple[int, ...]) -> InvalidInput:
    advice = "Reshape your data to one row per point."
    if len(shape) == 1:
        advice = (
            "Reshape your data: np.reshape(X, (-1, 1)) makes n points with one column, "
            "np.reshape(X, (1, -1)) one point with n columns; "
            "use Delta() for categories and Intersection() for sets."
        )
    return InvalidInput("A data set of vectors must be 2-D, one row per point", got=f"shape {shape}", advice=advice)


def require_same_width(x: Any, z: Any, advice: str = "Check that the same features were selected for both.") -> None:
    """Refuse two matrices with different numbers of columns."""
    if x.shape[1] != z.shape[1]:
        got = f"{x.shape[1]} and {z.shape[1]}"
        raise InvalidInput("Both data sets must have the same columns", got=got, advice=advice)


def as_vectors(X: Any, *, missing: bool = False) -> Any:
    """X as an aligned C-contiguous float32/float64 matrix or CSR array: checked, never silently altered.

    Integers and booleans become float64, float16 becomes float32, wider floats become float64. Missing values are
    refused or, with `missing`, become NaN.

    >>> as_vectors([[1, 2], [3, None]], missing=True)
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    if sp.issparse(X):
        S = sp.csr_array(X)
        if S.ndim != 2:
            raise not_two_dimensional(S.shape)
        if not S.has_canonical_format:
            S = S.copy()  # the arrays may be the caller's
            S.sum_duplicates()
        values = as_numbers(S.data)
        if values is not S.data:
            S = sp.csr_array((values, S.indices, S.indptr), shape=S.shape)
        _check_columns(S.shape[1])
        if not np.isfinite(S.data).all():
            at = int(np.flatnonzero(~np.isfinite(S.data))[0])
            row = int(np.searchsorted(S.indptr, at, side="right")) - 1
            raise _not_finite(~np.isfinite(S.data), row, S.indices[at], S.data[at])
        return S
    names = column_names(X)
    if is_frame(X):
        X = np.column_stack([as_numbers(A, [name], missing=missing) for A, name in zip(arrays(X), names)])
    elif isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise MissingValues(
                "X must have no missing values",
                got="a masked array",
                advice="Fill in the missing values, or drop their rows.",
            )
        X = X.data
    try:
        A = np.asarray(X)
    except ValueError as error:
        raise InvalidInput(
            "X must be a matrix of numbers, one row per point",
            got=f"rows of different lengths ({error})",
            advice="Pad the rows, or use a kernel on sets or sequences.",
        ) from None
    if A.ndim != 2:
        raise not_two_dimensional(A.shape)
    _check_columns(A.shape[1])
    # Arrays that came in a message of another process need not be aligned: NumPy would copy them in every product.
    A = np.require(as_numbers(A, names, missing=missing), requirements=["C", "A"])
    _check_finite(A, names, missing)
    return A


def _check_columns(d: int) -> None:
    if d == 0:
        raise InvalidInput("X must have at least one column", got="0 columns", advice="Check how X was selected.")


def as_numbers(A: Array, names: Sequence[str] = (), *, missing: bool = False) -> Array:
    """An array of any type as float32 or float64, with NaN for missing objects if `missing` allows them."""
    if not A.dtype.isnative:
        A = A.astype(A.dtype.newbyteorder("="))
    if A.dtype in (np.float32, np.float64):
        return A
    if A.dtype == np.float16:
        return A.astype(np.float32)
    if A.dtype.kind in "iubf":
        return A.astype(np.float64)
    if A.dtype.kind == "c":
        raise InvalidInput("X must be real. Complex data not supported", got=f"dtype {A.dtype}",
                           advice="Stack real and imaginary parts as columns.")  # fmt: skip
    if A.dtype.kind in "mM":
        raise InvalidInput(
            f"{_column(names)} must be numeric",
            got=f"dtype {A.dtype}",
            advice="Convert dates to a number first.",
            option=_in_shell(names),
        )
    if missing and A.dtype.kind == "O":
        present, numbers = ~missing_entries(A), np.full(A.shape, np.nan)
        numbers[present] = as_numbers(A[present], names)
        return numbers
    try:
        if A.dtype.kind in "US" or any(isinstance(v, (str, bytes)) for v in A.ravel()):
            raise TypeError("text")
        return real_numbers(A).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidType(
            f"{_column(names)} must be numeric",
            got=f"dtype {A.dtype} ({error})",
            advice="Convert it to numbers or leave it out; for other objects use Delta() or Hamming() on categories,"
            " Intersection() on sets, FromFunction(f) on any objects.",
            option=_in_shell(names),
        ) from None


def _in_shell(names: Sequence[str]) -> str:
    """The advice of a command that needs numbers."""
    drop = f"leave it out with --drop {names[0]}" if len(names) == 1 else "leave such columns out with --drop"
    return f"Use --model auto or ridge without --kernel, which take any column, or {drop}."


def _column(names: Sequence[str]) -> str:
    return f"Column {names[0]!r}" if len(names) == 1 else "X"


def _check_finite(A: Array, names: Sequence[str], missing: bool) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(A.sum(dtype=np.float64)):
            return
    bad = np.isinf(A) if missing else ~np.isfinite(A)
    if not bad.any():
        return
    i, j = np.argwhere(bad)[0]
    raise _not_finite(bad, i, repr(names[j]) if len(names) > j else j, A[i, j])


def _not_finite(bad: Array, row: Any, column: Any, value: Any) -> InvalidInput:
    what = "NaN" if np.isnan(value) else "infinity"
    return (MissingValues if np.isnan(value) else InvalidInput)(
        "X must be finite, without NaN or infinity",
        got=f"{int(bad.sum())} such entries, the first ({what}) in row {row}, column {column}",
        advice="Drop or impute missing values first.",
    )


def per_column(sigma: Any, d: int) -> NDArray[np.float64]:
    """A parameter that is a number or one number per column, as a read-only vector of d numbers.

    >>> per_column(2.0, 3)
    array([2., 2., 2.])
    """
    if np.ndim(sigma) and len(sigma) != d:
        raise InvalidInput(
            f"`sigma` has {len(sigma)} entries, so points must have as many columns",
            got=d,
            advice="Give one sigma per column, or a single number for all.",
        )
    vector = np.full(d, sigma, dtype=np.float64)
    vector.flags.writeable = False
    return vector
