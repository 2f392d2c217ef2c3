"""Data sets of time series: arrays of unequal length with the same channels, checked once and stored end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.missing import is_missing
from mercer.data.objects import objects_of
from mercer.data.vectors import as_numbers
from mercer.errors import InvalidInput, MissingValues

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Series:
    """Time series, one after the other.

    Attributes
    ----------
    values : array
        The points of all series, shape (N, channels).
    ends : array
        Series i has the points ends[i] … ends[i + 1] − 1.
    """

    values: Array
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, as the data was."""
        return np.dtype(self.values.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of both arrays."""
        return self.values.nbytes + self.ends.nbytes

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of points of each series."""
        return np.diff(self.ends)

    def __getitem__(self, i: int) -> Array:
        return self.values[self.ends[i] : self.ends[i + 1]]

    def centred(self) -> Series:
        """Every series moved to the mean of its own points, in float64."""
        means = np.add.reduceat(self.values, self.ends[:-1], axis=0, dtype=np.float64) / self.lengths[:, None]
        return Series(self.values - np.repeat(means, self.lengths, axis=0), self.ends)

    def encoded_rows(self, index: Any) -> Series:
        """The series at these positions."""
        chosen = np.atleast_1d(np.arange(len(self))[index])
        return joined([self[i] for i in chosen])


def joined(arrays: list[Array]) -> Series:
    """Arrays of shape (length, channels) as one data set."""
    ends = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
    return Series(np.concatenate(arrays), ends)


def as_series(X: Any) -> Series:
    """A list of arrays (T,) or (T, c), an array (n, T) or (n, T, c), or a column of a table that holds such arrays.

    Series may have different lengths, of at least one point, and must have the same number of channels. A missing value
    is an error that names the series.

    >>> series = as_series([[1.0, 2.0, 4.0], [3.0]])
    >>> len(series), series.lengths, series[1]
    (2, array([3, 1]), array([[3.]]))
    """
    if isinstance(X, np.ndarray) and X.dtype != object and X.ndim != 1:
        if X.ndim not in (2, 3):
            raise InvalidInput(
                "An array of time series must have the shape (series, points) or (series, points, channels)",
                got=f"shape {X.shape}",
                advice="Reshape it, or pass a list with one array for each series.",
            )
        arrays = [_checked(x, i) for i, x in enumerate(X)]
    else:
        arrays = [_checked(x, i) for i, x in enumerate(objects_of(X, "Time series"))]
    channels = [a.shape[1] for a in arrays]
    other = next((i for i, c in enumerate(channels) if c != channels[0]), None)
    if other is not None:
        raise InvalidInput(
            "All time series must have the same number of channels",
            got=f"{channels[0]} in series 0 and {channels[other]} in series {other}",
            advice="Pass arrays of shape (points, channels), with the channels in the same order.",
        )
    return joined(arrays)


def _checked(x: Any, i: int) -> Array:
    """One series of shape (T, c), or an error that names its position i."""
    if is_missing(x):
        raise MissingValues("No time series may be missing", got=f"a missing value as series {i}",
                            advice="Leave out the rows whose series is missing.")  # fmt: skip
    try:
        a = np.asarray(x)
        if a.ndim == 0 or a.ndim > 2 or a.dtype.kind in "OUSMm":
            a = np.asarray(a.tolist())
    except ValueError as error:
        raise InvalidInput(
            "A time series must be an array of numbers, shape (points,) or (points, channels)",
            got=f"{error} in series {i}",
            advice="Give every point of a series the same channels.",
        ) from None
    missing = a.dtype.kind == "O" and any(map(is_missing, a.ravel()))
    if missing or (a.dtype.kind == "f" and np.isnan(a).any()):
        raise MissingValues(
            "Time series must have no missing values",
            got=f"a missing value in series {i}",
            advice="Interpolate between its neighbours, or leave the point out: lengths may differ.",
        )
    if a.ndim not in (1, 2) or a.size == 0 or a.dtype.kind not in "fiub":
        raise InvalidInput(
            "A time series must be an array of numbers, shape (points,) or (points, channels), with at least one point",
            got=f"shape {a.shape} and dtype {a.dtype} as series {i}",
            advice="Pass a list with one array for each series.",
        )
    if not np.isfinite(a).all():
        raise InvalidInput("Time series must be finite", got=f"infinity in series {i}", advice="Correct this value.")
    return as_numbers(a.reshape(len(a), -1))
