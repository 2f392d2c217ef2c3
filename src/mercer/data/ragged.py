"""Rows of unequal length, stored end to end: which entries some of them have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def entries(starts: Index, sizes: Index) -> tuple[Index, Index]:
    """The positions of the entries of some rows, given where each starts and its size, and where each row ends then.

    The ends begin with 0: row i has the positions ends[i] … ends[i + 1] − 1 of the result.

    >>> entries(np.array([7, 2]), np.array([1, 3]))
    (array([7, 2, 3, 4]), array([0, 1, 4]))
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes), ends


def entries_of(ends: Index, index: Index | slice) -> tuple[Index, Index]:
    """The same for the rows at some positions of a data set in which row i has the entries ends[i] … ends[i + 1] − 1.

    >>> entries_of(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([3, 4, 5, 0, 1]), array([0, 3, 5]))
    """
    return entries(np.atleast_1d(ends[:-1][index]), np.atleast_1d(np.diff(ends)[index]))
